//! Whether a Git host keeps the decisions branch for those who may decide. Who can push there can approve.

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
    /// There is a rule, and the host does not tell what it asks for. Whose words count only if reviews prove them need not care.
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

/// The rules of a branch, as far as a host tells them to the account that asks. It writes to the repository as people do, and so
/// stands for anybody who may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Whether there are any.
    pub protected: bool,
    /// What the rule is called, where one of that name can be changed.
    pub name: Option<String>,
    /// Whether it may push.
    pub may_push: Option<bool>,
    /// Whether it may merge.
    pub may_merge: Option<bool>,
    /// How many others have to approve before anything is merged.
    pub approvals: Option<u32>,
    /// Whether it is known to let everybody push who may write to the repository.
    pub all_push: bool,
    /// Whether there is one of which the host tells nothing else.
    pub hidden: bool,
}

impl Rules {
    /// How others than those who may decide can write to the branch, if it is known that they can.
    #[must_use]
    pub fn open(&self) -> Option<&'static str> {
        if !self.protected {
            Some("no rule protects it: whoever may write to the repository may push to it")
        } else if self.may_push == Some(true) {
            Some("its rule lets tidegate's own account push to it, and so others who may write to the repository")
        } else if self.approvals == Some(0) && self.may_merge != Some(false) {
            Some("its rule asks for no approval: whoever may write to the repository may merge into it alone")
        } else {
            None
        }
    }

    /// Whether the host does not say who may write, be it that it hides the rules or that they name who is left out.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.protected && self.may_push.is_none() && self.approvals.is_none()
    }
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
        assert!(Rules::default().open().unwrap().contains("no rule"));
        assert!(rules(true, true, 1).open().unwrap().contains("push"));
        assert!(rules(false, true, 0).open().unwrap().contains("no approval"));
        assert_eq!(rules(false, true, 1).open(), None);
        // Only those merge who may decide.
        assert_eq!(rules(false, false, 0).open(), None);
        let hidden = Rules { protected: true, ..Rules::default() };
        assert!(hidden.open().is_none() && hidden.is_hidden() && !rules(false, true, 1).is_hidden());
    }
}
