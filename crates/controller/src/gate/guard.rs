//! Whether a Git host keeps the decisions branch for those who may decide. Who can push there can approve.

use crate::people::branch::Rules;

/// Whether only those who may decide can write to the decisions branch, as far as its host tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Guard {
    /// Nobody asks: the installation names no host with an API, or the policy trusts whoever may write there.
    #[default]
    Unasked,
    /// It is being asked.
    Unknown,
    /// The host does not tell: why.
    Untold(String),
    /// There is a rule, and the host does not tell what it asks for. Whose decisions count only if reviews prove them need not care.
    Hidden {
        /// What to set on the host.
        act: String,
    },
    /// Only they can.
    Kept,
    /// Others can, too.
    Open {
        /// Why.
        why: String,
        /// What to set on the host.
        act: String,
    },
}

/// How others than those who may decide can write to a branch with these rules, if it is known that they can.
#[must_use]
pub fn open(rules: &Rules) -> Option<&'static str> {
    if !rules.protected {
        Some("no rule protects it: whoever may write to the repository may push to it")
    } else if rules.may_push == Some(true) {
        Some("its rule lets tidegate's own account push to it, and so others who may write to the repository")
    } else if rules.approvals == Some(0) && rules.may_merge != Some(false) {
        Some("its rule asks for no approval: whoever may write to the repository may merge into it alone")
    } else {
        None
    }
}

/// Whether the host does not say who may write, be it that it hides the rules or that they name who is left out.
#[must_use]
pub fn is_hidden(rules: &Rules) -> bool {
    rules.protected && rules.may_push.is_none() && rules.approvals.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(may_push: bool, may_merge: bool, approvals: u32) -> Rules {
        let (may_push, may_merge, approvals) = (Some(may_push), Some(may_merge), Some(approvals));
        Rules { protected: true, may_push, may_merge, approvals, ..Rules::default() }
    }

    #[test]
    fn a_branch_is_kept_if_nobody_can_write_to_it_alone() {
        assert!(open(&Rules::default()).unwrap().contains("no rule"));
        assert!(open(&rules(true, true, 1)).unwrap().contains("push"));
        assert!(open(&rules(false, true, 0)).unwrap().contains("no approval"));
        assert_eq!(open(&rules(false, true, 1)), None);
        // Only those merge who may decide.
        assert_eq!(open(&rules(false, false, 0)), None);
        let hidden = Rules { protected: true, ..Rules::default() };
        assert!(open(&hidden).is_none() && is_hidden(&hidden) && !is_hidden(&rules(false, true, 1)));
    }
}
