//! What to set on a Git host, so that nobody can push what only others may decide: in words, and as calls of its API. The one
//! place that says so: `init`, `doctor` and the gates ask for the same.

use crate::manifest::ids::InstanceName;
use crate::manifest::installation::HostKind;
use crate::record::branches::{decisions_branch, state_branch};
use serde_json::{Value, json};

/// What the name of our own rule on GitLab has behind that of a branch: it is about all that begin so, as with one star, and nobody
/// else's.
const STAND_IN: &str = "********";

/// A branch with one kind of writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedBranch {
    /// What people want.
    Main,
    /// What people decide.
    Decisions,
    /// What tidegate records.
    State,
}

impl ProtectedBranch {
    /// All that are to be protected, in the order in which people are told. None is about the branches of requests: no host
    /// lets a branch be deleted that a rule is about, and that is how a request is taken back.
    pub const ALL: [Self; 3] = [Self::Main, Self::Decisions, Self::State];
}

/// For whom.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Whose branches.
    pub instance: &'a InstanceName,
    /// What people call main.
    pub main: &'a str,
    /// The account of tidegate.
    pub account: &'a str,
    /// Its number on the host, by which rulesets of GitHub name it; none where the host was not asked.
    pub id: Option<u64>,
}

impl Settings<'_> {
    /// The name of a branch.
    #[must_use]
    pub fn name(&self, branch: ProtectedBranch) -> String {
        match branch {
            ProtectedBranch::Main => self.main.to_owned(),
            ProtectedBranch::Decisions => decisions_branch(self.instance),
            ProtectedBranch::State => state_branch(self.instance),
        }
    }

    /// What has to hold for it.
    #[must_use]
    pub fn words(&self, branch: ProtectedBranch) -> String {
        let account = self.account;
        match branch {
            ProtectedBranch::Main => format!("changes by pull request with an approval; {account} may not push"),
            ProtectedBranch::Decisions => format!(
                "changes by pull request with an approval by somebody else, or by those who may decide; {account} may not push; no \
                 force-push"
            ),
            ProtectedBranch::State => format!("{account} alone may push, nobody may merge; no force-push, no deletion"),
        }
    }

    /// What to type for that, with a token of who owns the repository in `TOKEN`. `api` is where the repository is in the
    /// host's API, and `rule` the rule that is to be changed, if there may be one of that name. Where the account's number is not known,
    /// it is taken from `ID`.
    #[must_use]
    pub fn command(&self, kind: HostKind, api: &str, branch: ProtectedBranch, rule: Option<&str>) -> String {
        let (method, path, body) = self.call(kind, branch, rule);
        let token = match kind {
            HostKind::Gitea | HostKind::Github => "Authorization: token $TOKEN",
            HostKind::Gitlab => "PRIVATE-TOKEN: $TOKEN",
        };
        let curl_with = |flags: &str, method: &str, path: &str, body: &Value| {
            let method = if method == "POST" { String::new() } else { format!("-X {method} ") };
            // Outside of the quotes, so that the shell puts it in.
            let body = body.to_string().replace("\"actor_id\":null", "\"actor_id\":'$ID'");
            format!(
                "curl {flags} {method}-H \"{token}\" -H 'Content-Type: application/json' \"{api}/{path}\" -d '{body}'"
            )
        };
        let curl = |flags: &str, method: &str, path: &str| curl_with(flags, method, path, &body);
        match (kind, rule) {
            // Whom a ruleset lets past is let past all of it.
            (HostKind::Github, _) if branch == ProtectedBranch::State => {
                let name = self.name(branch);
                let stays = ruleset(
                    &format!("{name} stays"),
                    &name,
                    &json!([{"type": "non_fast_forward"}, {"type": "deletion"}]),
                );
                format!("{} && {}", curl("-fsS", method, &path), curl_with("-fsS", method, &path, &stays))
            }
            // The rule may have another name: then one of this name is made, at which the host looks first.
            (HostKind::Gitea, Some(_)) => {
                let (made, new, _) = self.call(kind, branch, None);
                format!("{} || {}", curl("-fs", method, &path), curl("-fsS", made, &new))
            }
            // It lets levels be changed in its paid plans alone (PATCH knows `allow_force_push` elsewhere): a rule that is there is
            // made anew, behind one for all names that begin so, since of several rules the one that allows most holds. The branch
            // is never without a rule, as each comes once the other is there, and each command can be given again.
            (HostKind::Gitlab, _) => {
                let name = self.name(branch);
                let behind = format!("{name}{STAND_IN}");
                let mut meanwhile = body.clone();
                meanwhile["name"] = json!(behind);
                let put = curl_with("-sS -o /dev/null", method, &path, &meanwhile);
                let of = |flags: &str, name: &str| {
                    format!("curl {flags} -o /dev/null -H \"{token}\" \"{api}/{path}/{}\"", escaped(name))
                };
                let gone = |name: &str| of("-sS -X DELETE", name);
                let (there, made) = (of("-fsS", &behind), curl("-fsS", method, &path));
                format!("{put} && {there} && {} && {made} && {}", gone(&name), gone(&behind))
            }
            (HostKind::Gitea | HostKind::Github, _) => curl("-fsS", method, &path),
        }
    }

    /// The same as a call: its method, its path below the repository, its body.
    #[must_use]
    pub fn call(&self, kind: HostKind, branch: ProtectedBranch, rule: Option<&str>) -> (&'static str, String, Value) {
        match kind {
            HostKind::Gitea => {
                let body = self.gitea(branch);
                match rule {
                    Some(rule) => ("PATCH", format!("branch_protections/{}", escaped(rule)), body),
                    None => ("POST", "branch_protections".to_owned(), body),
                }
            }
            HostKind::Github => ("POST", "rulesets".to_owned(), self.github(branch)),
            HostKind::Gitlab => ("POST", "protected_branches".to_owned(), self.gitlab(branch)),
        }
    }

    /// By roles, which every plan has: 0 is nobody, 30 a Developer, 40 a Maintainer. That one account alone may push it can say in
    /// paid plans only, by the number of that account.
    fn gitlab(&self, branch: ProtectedBranch) -> Value {
        let (push, merge) = match branch {
            ProtectedBranch::Main | ProtectedBranch::Decisions => (0, 40),
            ProtectedBranch::State => (30, 0),
        };
        json!({
            "name": self.name(branch), "push_access_level": push, "merge_access_level": merge, "allow_force_push": false,
        })
    }

    fn gitea(&self, branch: ProtectedBranch) -> Value {
        let name = self.name(branch);
        match branch {
            ProtectedBranch::Main | ProtectedBranch::Decisions => json!({
                "rule_name": name, "enable_push": false, "required_approvals": 1, "dismiss_stale_approvals": true,
                "block_on_rejected_reviews": true,
            }),
            ProtectedBranch::State => json!({
                "rule_name": name, "enable_push": true, "enable_push_whitelist": true,
                "push_whitelist_usernames": [self.account],
                // Without a list of those who may merge, whoever may write may merge a request into it.
                "enable_merge_whitelist": true, "merge_whitelist_usernames": [],
            }),
        }
    }

    /// Rulesets: a repository of a user has them too, where a classic rule cannot say who alone may push.
    fn github(&self, branch: ProtectedBranch) -> Value {
        let name = self.name(branch);
        match branch {
            ProtectedBranch::Main | ProtectedBranch::Decisions => {
                let reviews = json!({
                    "required_approving_review_count": 1, "dismiss_stale_reviews_on_push": true,
                    "require_code_owner_review": false, "require_last_push_approval": true,
                    "required_review_thread_resolution": false,
                });
                let rules = json!([
                    {"type": "pull_request", "parameters": reviews}, {"type": "non_fast_forward"}, {"type": "deletion"},
                ]);
                ruleset(&name, &name, &rules)
            }
            ProtectedBranch::State => {
                let update = json!({"type": "update", "parameters": {"update_allows_fetch_and_merge": false}});
                let mut only = ruleset(&name, &name, &json!([update]));
                // The user of an App is let past as the App.
                let kind = if self.account.ends_with("[bot]") { "Integration" } else { "User" };
                only["bypass_actors"] = json!([{"actor_id": self.id, "actor_type": kind, "bypass_mode": "always"}]);
                only
            }
        }
    }
}

/// A ruleset of GitHub for one branch.
fn ruleset(name: &str, branch: &str, rules: &Value) -> Value {
    json!({
        "name": name, "target": "branch", "enforcement": "active",
        "conditions": {"ref_name": {"include": [format!("refs/heads/{branch}")], "exclude": []}},
        "rules": rules,
    })
}

/// A name as one part of a path.
#[must_use]
pub fn escaped(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_there_is_changed() {
        let instance = "prod".parse().unwrap();
        let settings = Settings { instance: &instance, main: "main", account: "bot", id: Some(7) };
        let (method, path, body) =
            settings.call(HostKind::Gitea, ProtectedBranch::Decisions, Some("tidegate/prod/decisions"));
        assert_eq!((method, path.as_str()), ("PATCH", "branch_protections/tidegate%2Fprod%2Fdecisions"));
        assert_eq!(body["required_approvals"], 1);
        let command = settings.command(
            HostKind::Gitea,
            "https://git.example.test/api/v1/repos/a/b",
            ProtectedBranch::State,
            None,
        );
        insta::assert_snapshot!(command);
        insta::assert_snapshot!("github", settings.command(HostKind::Github, "$api", ProtectedBranch::Decisions, None));
        insta::assert_snapshot!(
            "github_state",
            settings.command(HostKind::Github, "$api", ProtectedBranch::State, None)
        );
        let unasked = Settings { id: None, ..settings };
        let command = unasked.command(HostKind::Github, "$api", ProtectedBranch::State, None);
        assert!(command.contains("\"bypass_actors\":[{\"actor_id\":'$ID',\"actor_type\":\"User\""), "{command}");
        let app = Settings { account: "tidegate[bot]", ..settings };
        let (_, _, body) = app.call(HostKind::Github, ProtectedBranch::State, None);
        let past = json!([{"actor_id": 7, "actor_type": "Integration", "bypass_mode": "always"}]);
        assert_eq!(body["bypass_actors"], past);
        insta::assert_snapshot!("gitlab", settings.command(HostKind::Gitlab, "$api", ProtectedBranch::Decisions, None));
    }
}
