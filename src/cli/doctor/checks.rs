//! What was found, judged: each check comes out in one sentence, with what to do about it.

use crate::cli::ui::{Ink, Paint, Table, span};
use crate::cluster::checkup::Server;
use crate::cluster::rights::Right;
use crate::forge::host::{HostError, HostWebhook, Permissions};
use crate::forge::settings::{ProtectedBranch, Settings};
use crate::gate::guard;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::{Namespace, RolloutId};
use crate::manifest::installation::{HostKind, PullHost};
use crate::manifest::object::Kind;
use crate::people::branch::Rules;
use crate::record::state::Time;
use crate::record::text::count;
use crate::record::text::plain;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How far clocks may be apart without a word: the seconds that an answer may be under way.
const CLOSE: i64 = 30;
/// How far a Git host's clock may be behind before approvals are taken for older than their run (`plan::proof`).
const FAR: i64 = 600;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Found {
    /// As it should be.
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work, or protects nothing.
    Broken,
    /// It could not be looked at.
    Unknown,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    /// What was looked at.
    pub check: String,
    /// How it came out.
    pub found: Found,
    /// In a sentence.
    pub says: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
}

impl Check {
    pub(super) fn ok(check: impl Into<String>, says: impl Into<String>) -> Self {
        Self { check: check.into(), found: Found::Ok, says: says.into(), act: None }
    }

    pub(super) fn new(found: Found, check: impl Into<String>, says: &str, act: impl Into<String>) -> Self {
        Self { check: check.into(), found, says: plain(says), act: Some(act.into()) }
    }
}

/// All checks, for people: a line each, and below what to do.
pub(super) fn text(checks: &[Check], ink: Ink) -> String {
    let mut table = Table::new(&["", "CHECK", "FINDING"]);
    for Check { check, found, says, act: _ } in checks {
        let (word, paint): (&str, Paint) = match found {
            Found::Ok => ("ok", Ink::good),
            Found::Warning => ("warning", Ink::warn),
            Found::Broken => ("broken", Ink::bad),
            Found::Unknown => ("could not look", Ink::warn),
        };
        table.row(vec![(word.to_owned(), Some(paint)), (check.clone(), None), (says.clone(), None)]);
    }
    let mut text = table.print(ink);
    let todo: Vec<(&str, &str)> =
        checks.iter().filter_map(|check| Some((check.check.as_str(), check.act.as_deref()?))).collect();
    if todo.is_empty() {
        let _ = writeln!(text, "\n{}", ink.good("All is as it should be."));
        return text;
    }
    let _ = writeln!(text, "\n{}", ink.bold("To do:"));
    for (check, act) in todo {
        let _ = writeln!(text, "  {check}\n    {act}");
    }
    text
}

/// The API server itself, and its clock.
pub(super) fn server(server: &Server, now: Time) -> Vec<Check> {
    let user = server.user.as_ref().map(|user| format!(", where this is {}", plain(user))).unwrap_or_default();
    let found = Check::ok("API server", format!("{}{user}", plain(&server.version)));
    [Some(found), server.clock.map(|clock| apart("clock of the API server", clock, now))]
        .into_iter()
        .flatten()
        .collect()
}

/// Two clocks.
pub(super) fn apart(check: &str, theirs: Time, ours: Time) -> Check {
    let seconds = (theirs - ours).num_seconds();
    if seconds.abs() <= CLOSE {
        return Check::ok(check, "shows the same time as this machine's");
    }
    let found = if seconds.abs() <= FAR { Found::Warning } else { Found::Broken };
    let way = if seconds > 0 { "ahead of" } else { "behind" };
    let says = format!("is {} {way} this machine's", span(seconds.abs()));
    Check::new(
        found,
        check,
        &says,
        "set the clocks right on both machines (NTP): soaks, windows and approvals are timed by them",
    )
}

/// Why main's tip is not signed by anybody who may, if it is not.
pub(super) fn signed(main: &str, unverified: Option<&str>) -> Check {
    let check = "signature of main";
    match unverified {
        None => Check::ok(check, format!("the tip of {main} is signed by somebody who may")),
        Some(why) => {
            let act = "sign a commit on top (git commit -S), or mend the file that says who may (docs/record.md, Signed sources)";
            Check::new(Found::Broken, check, why, act)
        }
    }
}

/// What the controller may do, for each place in which it needs rights.
pub(super) fn rights(needed: &[Right], missing: &[Right]) -> Vec<Check> {
    let of = |rights: &[Right]| {
        let mut places: BTreeMap<Option<Namespace>, Vec<String>> = BTreeMap::new();
        rights.iter().for_each(|right| places.entry(right.namespace.clone()).or_default().push(right.to_string()));
        places
    };
    let missing = of(missing);
    let judged = of(needed).into_iter().map(|(place, rights)| {
        let at = place.as_ref().map_or_else(|| "in the cluster".to_owned(), |namespace| format!("in {namespace}"));
        match missing.get(&place) {
            None => Check::ok(format!("rights {at}"), format!("all {} that the controller uses", rights.len())),
            Some(missing) => {
                let says = format!("it may not {}", missing.join(", "));
                let copies = missing.iter().any(|right| right.ends_with(" secrets"));
                let act = format!(
                    "grant its ServiceAccount that, as the chart does (docs/security.md has the table): helm upgrade, with the \
                     namespace among namespaces{}",
                    if copies { ", and with rbac.copySecrets=true, as Secrets are tracked there" } else { "" }
                );
                Check::new(Found::Broken, format!("rights {at}"), &says, act)
            }
        }
    });
    judged.collect()
}

/// What content reaches that is warned of, and would be refused.
pub(super) fn reaching(warnings: &[Diagnostic]) -> Option<Check> {
    let reaches = |warning: &&Diagnostic| matches!(warning.code, Code::NotPermitted | Code::CrossNamespace);
    let paths: Vec<&str> = warnings.iter().filter(reaches).map(|warning| warning.path.as_str()).collect();
    let files = paths.iter().collect::<BTreeSet<_>>().into_iter().take(3).copied().collect::<Vec<_>>().join(", ");
    let says = format!("{} that main's files reach would be refused, such as in {files}", count(paths.len(), "thing"));
    let act = "write allow: [] for their tenants in tidegate.yaml to refuse them now, or allow: [hostPath, …] for what they may; \
               tidegate validate shows each with its line";
    (!paths.is_empty()).then(|| Check::new(Found::Warning, "content", &says, act))
}

/// The kinds that rollouts need; `missing` are those that the cluster does not serve.
pub(super) fn kinds(needed: &BTreeMap<Kind, BTreeSet<RolloutId>>, missing: &BTreeSet<Kind>) -> Vec<Check> {
    let lacking: Vec<Check> = needed
        .iter()
        .filter(|(kind, _)| missing.contains(kind))
        .map(|(kind, users)| {
            let users = users.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let says =
                format!("the cluster does not serve {} of {}, which {users} need", kind.plural(), kind.api_version());
            Check::new(
                Found::Broken,
                format!("kind {}", kind.as_str()),
                &says,
                "install its CustomResourceDefinition in that version",
            )
        })
        .collect();
    if lacking.is_empty() {
        return vec![Check::ok(
            "kinds",
            format!("the cluster serves all {} that rollouts need", count(needed.len(), "kind")),
        )];
    }
    lacking
}

/// What the account of the token may do.
pub(super) fn account(login: &str, permissions: Option<Permissions>, site: &PullHost) -> Check {
    let (check, login) = ("account on the Git host", plain(login));
    let access = &site.access;
    match permissions {
        Some(Permissions { push: false, .. }) => Check::new(
            Found::Broken,
            check,
            &format!("{login} may not write to {}/{}", site.owner, site.name),
            "make it a collaborator that may write, and no administrator",
        ),
        Some(Permissions { admin: true, .. }) => Check::new(
            Found::Warning,
            check,
            &format!("{login} may administer the repository, and so change the rules that hold it"),
            "give it the right to write alone",
        ),
        Some(Permissions { push: true, admin: false }) => {
            Check::ok(check, format!("{login} may write, and not administer"))
        }
        None => Check::new(
            Found::Unknown,
            check,
            &format!("the host does not say what {login} may do"),
            format!("see that it may write, and that {access} is for this repository"),
        ),
    }
}

/// What a branch's protection means to those who ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Without it nothing is protected.
    Needed,
    /// Without it something else still protects.
    Wished,
}

impl Weight {
    /// How a check comes out where it is missing.
    fn found(self) -> Found {
        match self {
            Self::Needed => Found::Broken,
            Self::Wished => Found::Warning,
        }
    }
}

/// How a branch is protected.
pub(super) fn branch(
    settings: &Settings<'_>,
    site: &PullHost,
    branch: ProtectedBranch,
    weight: Weight,
    asked: &Result<Option<Rules>, HostError>,
) -> Check {
    let name = settings.name(branch);
    let check = format!("branch {name}");
    let api = format!("{}/{}", site.api, site.kind.repository(&site.owner, &site.name));
    let set = |rule| settings.command(site.kind, &api, branch, rule);
    let rules = match asked {
        Err(error) => {
            let act = format!("see yourself that it has: {}", settings.words(branch));
            return Check::new(Found::Unknown, check, &error.to_string(), act);
        }
        Ok(None) => {
            let says = "there is no such branch yet: the controller makes it, and its rule cannot be seen before";
            return Check::new(Found::Unknown, check, says, set(None));
        }
        Ok(Some(rules)) => rules,
    };
    // A rule for more branches than this one stays as it is: hosts look at one of the exact name first.
    let wrong = match branch {
        ProtectedBranch::Main | ProtectedBranch::Decisions => guard::open(rules),
        ProtectedBranch::State if !rules.protected => {
            Some("no rule protects it: whoever may write to the repository may change the record")
        }
        ProtectedBranch::State if rules.may_push == Some(false) => {
            Some("its rule does not let tidegate's own account push, so nothing can be recorded")
        }
        ProtectedBranch::State if rules.all_push => Some(
            "its rule lets whoever may write to the repository push to it, and so change the record: a signed record shows that",
        ),
        ProtectedBranch::State if site.kind == HostKind::Gitea && rules.may_merge == Some(true) => Some(
            "its rule has no list of those who may merge: whoever may write to the repository may change the record by a pull request",
        ),
        ProtectedBranch::State => None,
    };
    match wrong {
        Some(why) if rules.all_push && branch == ProtectedBranch::State => {
            let act = format!(
                "sign the record (spec.signing of the Installation); where the host can say it (GitLab Premium: allowed_to_push), let {} \
                 alone push",
                settings.account
            );
            Check::new(weight.found(), check, why, act)
        }
        Some(why) => {
            // Gitea tells administrators alone what the rule is called.
            let there = rules.protected && rules.name.as_ref().is_none_or(|rule| *rule == name);
            Check::new(weight.found(), check, why, set(there.then_some(name.as_str())))
        }
        None if guard::is_hidden(rules) => {
            let words = settings.words(branch);
            let token = format!("run doctor with a token that may read it ({})", hidden(site.kind));
            if rules.hidden && branch == ProtectedBranch::Decisions {
                let says = "it is protected, and the host does not tell this account how: an approval counts only where the policy names \
                            approvers";
                let ruleset =
                    format!("make a ruleset, of which everybody is told: {words} (tidegate init --host github)");
                return Check::new(Found::Unknown, check, says, format!("{ruleset}; or {token}"));
            }
            let act = format!("see yourself that it has: {words}; or {token}");
            Check::new(Found::Unknown, check, "it is protected, and the host does not tell this account how", act)
        }
        None => Check::ok(check, settings.words(branch)),
    }
}

/// The right that tells the rest.
fn hidden(kind: HostKind) -> &'static str {
    match kind {
        HostKind::Gitea => "of an administrator of the repository",
        HostKind::Github => "fine-grained: Administration and Webhooks, read",
        HostKind::Gitlab => "of a Maintainer of the project",
    }
}

/// Who tells the controller of pushes and of pull requests, where it listens.
pub(super) fn webhook(kind: HostKind, asked: &Result<Vec<HostWebhook>, HostError>) -> Check {
    let check = "webhook";
    let hooks = match asked {
        Err(error) => {
            let act = format!(
                "see yourself that one for pushes and pull requests leads to /webhook; or run doctor with a token that may ask ({})",
                hidden(kind)
            );
            return Check::new(Found::Unknown, check, &error.to_string(), act);
        }
        Ok(hooks) => hooks,
    };
    let Some(hook) = hooks.iter().find(|hook| hook.pushes && hook.url.ends_with("/webhook")) else {
        let act = "add one to the repository: pushes and pull requests, JSON, to the controller's address with /webhook, with the secret of webhookSecretFile (docs/hosts.md)";
        return Check::new(
            Found::Broken,
            check,
            "the controller listens, and the host has no active webhook for pushes to /webhook",
            act,
        );
    };
    match &hook.last {
        Some((Some(code), said)) if !(200..300).contains(code) => {
            let says = format!("the last delivery to {} came to {code} {said}", hook.url);
            Check::new(
                Found::Broken,
                check,
                &says,
                "look at the delivery on the host: the address, and the secret, have to be the controller's",
            )
        }
        _ if !hook.pulls => Check::new(
            Found::Warning,
            check,
            &format!("leads to {}, and does not tell of pull requests", hook.url),
            "let it send those too (on GitLab merge requests): until then a closed one, and people's own, are heard of by the poll",
        ),
        Some((Some(_), _)) => Check::ok(check, format!("leads to {}, and the last delivery was taken", hook.url)),
        Some((None, _)) | None => {
            Check::ok(check, format!("leads to {}; what came of deliveries stands on the host's page", hook.url))
        }
    }
}
