//! What GitHub tells of a merged pull request and its reviews, of the rules of a branch and of webhooks, in its own words.

use super::{Server, USER};
use serde_json::{Value, json};

/// A commit.
pub(crate) fn sha(digit: &str) -> String {
    digit.repeat(40)
}

fn user(id: u64, login: &str) -> Value {
    json!({"id": id, "login": login, "type": "User"})
}

/// A program with an account.
pub(crate) fn robot() -> Value {
    json!({"id": 9, "login": "ci[bot]", "type": "Bot"})
}

/// What a ruleset says that asks for so many approvals.
pub(crate) fn ruleset(approvals: u32) -> Value {
    json!({"type": "pull_request", "parameters": {"required_approving_review_count": approvals}})
}

/// A classic rule that asks for so many approvals.
pub(crate) fn classic(approvals: u32) -> Value {
    json!({"required_pull_request_reviews": {"required_approving_review_count": approvals}})
}

/// A classic rule that lets one user push.
pub(crate) fn only(login: &str) -> Value {
    json!({"restrictions": {"users": [{"login": login}], "teams": [], "apps": []}})
}

/// A webhook for pushes, and what came of its last delivery.
pub(crate) fn hook(active: bool, last: Value) -> Value {
    json!({"active": active, "events": ["push"], "config": {"url": "https://t.test/webhook"}, "last_response": last})
}

impl Server {
    /// Tells of a branch: its rulesets, and the classic rule where our account may know it.
    pub(crate) fn keeps(&self, protected: bool, listed: Value, classic: Option<Value>) {
        let (branch, rules) = ("branches/tidegate%2Fprod%2Fdecisions", "rules/branches/tidegate%2Fprod%2Fdecisions");
        let classic = classic.map(|rule| (format!("{branch}/protection"), rule));
        let there = [(branch.to_owned(), json!({"protected": protected})), (rules.to_owned(), listed)];
        self.state().there = there.into_iter().chain(classic).collect();
    }

    /// Tells of pull request 3, which was merged as the commit `e`, of its reviews, and of those who gave them.
    pub(crate) fn merges(&self) {
        let at = "2026-01-01T00:00:00Z";
        let review = |id: u64, by: &Value, state: &str| json!({"id": id, "user": by, "state": state, "commit_id": sha("d"), "submitted_at": at});
        let pull = |number: u64, merged_as: &str| json!({"number": number, "merged_at": at, "merge_commit_sha": merged_as, "user": user(USER, "bot"), "base": {"ref": "main", "sha": sha("c")}});
        let (ana, robot) = (user(1, "Ana"), robot());
        let people = json!({"author": {"email": "eve@example.org"}, "committer": {"email": "ana@example.org"}});
        let commit = json!({"sha": sha("d"), "commit": people, "author": null, "committer": ana, "parents": [{"sha": sha("c")}]});
        let mut merged = pull(3, &sha("e"));
        merged["merged_by"] = user(2, "ben");
        let reviews = [
            review(1, &ana, "COMMENTED"),
            review(2, &ana, "APPROVED"),
            review(3, &robot, "APPROVED"),
            review(4, &Value::Null, "APPROVED"),
            review(5, &json!({"id": -1, "login": "Ghost"}), "APPROVED"),
            review(6, &user(3, "eve"), "DISMISSED"),
        ];
        let there = [
            // It was in others before that, which were not merged as this commit.
            (
                format!("commits/{}/pulls", sha("e")),
                json!([pull(1, &sha("f")), pull(2, &sha("f")), pull(3, &sha("e"))]),
            ),
            (format!("commits/{}", sha("d")), commit.clone()),
            ("pulls/3/reviews".to_owned(), json!(reviews)),
            ("pulls/3/commits".to_owned(), json!([commit])),
            ("collaborators/Ana/permission".to_owned(), json!({"permission": "write"})),
            ("collaborators/ci[bot]/permission".to_owned(), json!({"permission": "admin"})),
            ("issues/3".to_owned(), json!({"closed_by": ana})),
            ("/orgs/acme/teams/shop/repos/acme/shop".to_owned(), Value::Null),
            ("/orgs/acme/teams/shop/memberships/Ana".to_owned(), json!({"role": "member", "state": "active"})),
        ];
        self.state().there = there.into();
        for _ in 0..3 {
            self.open(USER, "b", "main", "");
        }
        self.change(3, merged);
    }
}
