//! Who may approve, and what can prove that they have: what a policy comes to where words have to be proven. Whether a proof is one is
//! judged in `gate::proof`.

use super::raw::Trust;
use super::team::Team;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What proves a word that lets a rollout go further: the approvers of a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRule {
    /// Who may approve, in lower case: by their names on the Git host, where what begins with `@` is a team and with `id:` a user's
    /// number, or as the list of allowed signers names them. Empty: nobody.
    pub approvers: BTreeSet<String>,
    /// How many of them are needed.
    pub approvals: u32,
    /// What counts as an approval.
    pub trust: Trust,
    /// What can prove it.
    #[serde(default, skip_serializing_if = "By::is_reviews")]
    pub by: By,
}

/// What can prove that an approver has said a word: that follows from the installation, not from the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Reviews on its Git host.
    #[default]
    Reviews,
    /// Signatures of those on its list of allowed signers.
    Signatures,
    /// Nothing: it names neither.
    Nothing,
}

impl By {
    fn is_reviews(&self) -> bool {
        *self == Self::Reviews
    }
}

impl ApprovalRule {
    /// Whether it names a user of the Git host: by what the host calls them now, or by their number, which nobody else ever has. To an
    /// older version a number is nobody.
    #[must_use]
    pub fn means(&self, id: u64, login: &str) -> bool {
        self.names(login) || self.approvers.contains(&format!("id:{id}"))
    }

    /// Whether it has that name, whoever has it now.
    #[must_use]
    pub fn names(&self, login: &str) -> bool {
        self.approvers.contains(&login.to_ascii_lowercase())
    }

    /// The teams that it names. No account's name begins as theirs, so to an older version they are nobody.
    #[must_use]
    pub fn teams(&self) -> BTreeSet<Team> {
        self.approvers.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The stricter of two in each respect: what restricts acts at once, what loosens waits for the next run. How it is proven follows from
    /// the installation as it is now: the other one is the later.
    #[must_use]
    pub fn stricter(one: Option<&Self>, other: Option<&Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other).cloned() };
        Some(Self {
            approvers: one.approvers.intersection(&other.approvers).cloned().collect(),
            approvals: one.approvals.max(other.approvals),
            trust: one.trust.min(other.trust),
            by: other.by,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_rules_the_stricter_holds() {
        let rule = |approvers: &[&str], approvals, trust| ApprovalRule {
            approvers: approvers.iter().map(|name| (*name).to_owned()).collect(),
            approvals,
            trust,
            by: By::default(),
        };
        let (one, other) = (rule(&["ana", "ben"], 1, Trust::Reviews), rule(&["ben", "eve"], 2, Trust::Merges));
        assert_eq!(ApprovalRule::stricter(Some(&one), Some(&other)), Some(rule(&["ben"], 2, Trust::Reviews)));
        assert_eq!(ApprovalRule::stricter(Some(&one), None), Some(one.clone()));
        assert_eq!(ApprovalRule::stricter(None, Some(&other)), Some(other));
        assert_eq!(ApprovalRule::stricter(None, None), None);
        // What proves it is what the installation has now.
        let signed = ApprovalRule { by: By::Signatures, ..one.clone() };
        assert_eq!(ApprovalRule::stricter(Some(&one), Some(&signed)), Some(signed));
    }

    #[test]
    fn teams_are_what_begins_with_an_at_sign() {
        let approvers = ["ana", "@acme/shop", "@acme", "acme/shop"].map(str::to_owned).into();
        let rule = ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Reviews };
        assert_eq!(rule.teams(), ["@acme/shop".parse().unwrap()].into());
        assert!(rule.names("Ana") && !rule.names("shop"));
    }
}
