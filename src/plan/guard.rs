//! A decisions branch that the Git host does not keep for those who may decide: no approval on it opens a gate.

use super::draft::Draft;
use super::proof;
use super::report::{Reason, Wait};
use crate::gate::guard::Guard;
use crate::record::branches::decisions_branch;
use crate::record::text::plain;

/// Why gates that wait for a person's word stay closed, whatever stands on the decisions branch.
#[must_use]
pub fn unprotected(draft: &Draft<'_>) -> Option<Wait> {
    let branch = decisions_branch(&draft.input.me.instance);
    match &draft.input.policy.guard {
        Guard::Unasked | Guard::Kept => None,
        // Whatever the rule lets through, a word alone opens nothing.
        Guard::Hidden { .. } if proof::rule(draft).is_some() => None,
        Guard::Hidden { act } => {
            let why = format!("{branch} has a rule, and the Git host does not tell what it asks for");
            Some(Wait::new(Reason::ApprovalUnprotected, why).act(act.clone()))
        }
        Guard::Unknown => {
            Some(Wait::new(Reason::Evidence, format!("the Git host is asked whether {branch} is protected")))
        }
        Guard::Untold(why) => {
            let why = format!("nobody knows whether {branch} is protected: {why}");
            let act = "look at the Git host, and at the rights of the controller's token there: tidegate doctor";
            Some(Wait::new(Reason::ApprovalUnprotected, plain(&why)).act(act))
        }
        Guard::Open { why, act } => {
            let wait = Wait::new(Reason::ApprovalUnprotected, format!("{branch} is not protected: {why}"));
            Some(wait.act(act.clone()))
        }
    }
}
