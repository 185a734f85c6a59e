//! What protects a branch on the Git host.

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
