//! A request whose branch is gone: a no, or, where the policy names who may say it, only if one of them did it.

use super::draft::Draft;
use super::evidence::Denial;
use super::proof;
use super::report::{Reason, Wait};
use crate::gate::guard::Guard;
use crate::record::state::Pull;
use std::fmt::Display;

/// Why the no does not count; none if it does.
///
/// # Errors
/// What is waited for until that is known.
pub fn objection(draft: &Draft<'_>, pull: &Pull, what: impl Display) -> Result<Option<String>, Wait> {
    // Where there is no host to ask, whoever may delete the branch may say no.
    if proof::rule(draft).is_none() || draft.input.policy.guard == Guard::Unasked {
        return Ok(None);
    }
    match draft.input.evidence.denials.get(&(pull.branch.clone(), pull.head.clone())) {
        Some(Denial::No) => Ok(None),
        Some(Denial::NotAuthorized(why)) => Ok(Some(why.clone())),
        Some(Denial::Unknown(why)) => {
            let why = format!("who closed the pull request for {what} is not known: {why}");
            Err(Wait::new(Reason::ProofUnavailable, why))
        }
        None => {
            Err(Wait::new(Reason::Evidence, format!("the Git host is asked who closed the pull request for {what}")))
        }
    }
}
