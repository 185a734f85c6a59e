//! How decisions are proven that let a rollout go further.

use super::{Accepted, DecisionFile, Lacks, Unproven, through};
use crate::gate::proof::{self, Flaw, MergedPull, ProofEvidence, ProofQuestion, Required, ReviewEvidence};
use crate::manifest::ids::CommitId;
use crate::manifest::proof::ApprovalRule;
use crate::record::state::{Approved, Proven, Time, Void};
use crate::record::text::plain;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// How old an answer may be by which a decision counts: what people may do can change at any time.
const FRESH: TimeDelta = TimeDelta::seconds(60);
/// For how long a host is left alone that did not tell all.
const AGAIN: TimeDelta = TimeDelta::seconds(15);
/// For how long it is where people have to do something first: each question costs calls of a budget that all share.
const LATER: TimeDelta = TimeDelta::minutes(5);

/// What proofs are judged by.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalVerifier<'a> {
    /// Who may approve, and how.
    pub rule: &'a ApprovalRule,
    /// The decisions branch.
    pub base: &'a str,
    /// Nothing is approved before.
    pub since: Time,
    /// What the Git host has told, or Git itself.
    pub told: &'a BTreeMap<ProofQuestion, ReviewEvidence>,
    /// The time of this tick.
    pub now: Time,
}

impl ApprovalVerifier<'_> {
    pub(super) fn judge(&self, file: &DecisionFile, mut accepted: Accepted) -> Result<Accepted, Box<Unproven>> {
        let asked = |commit: &CommitId| ProofQuestion {
            path: file.path.clone(),
            blob: file.blob.clone(),
            commit: commit.clone(),
            rule: self.rule.clone(),
        };
        let asked = file.brought.as_ref().map(asked);
        let judged = asked.as_ref().map(|asked| (asked, self.verdict(asked)));
        let lacks = match judged {
            Some((asked, Ok((merged, by)))) => {
                let names: Vec<&str> = by.iter().map(|by| by.login.as_str()).collect();
                accepted.consumed.by = plain(&names.join(", "));
                accepted.consumed.proof = match merged {
                    None => "signature",
                    Some(_) if by.iter().all(|by| by.review.is_none()) => "merge",
                    Some(_) => "review",
                }
                .to_owned();
                accepted.consumed.proven = Some(Proven {
                    pull: merged.map(|merged| merged.number),
                    head: merged.map_or(&asked.commit, |merged| &merged.head).clone(),
                    commit: asked.commit.clone(),
                    through: through(&accepted.decision.action).cloned(),
                    by,
                });
                return Ok(accepted);
            }
            Some((_, Err(lacks))) => lacks,
            None => Lacks::Proof([Flaw::Incomplete("Git does not tell how the file came".to_owned())].into()),
        };
        if let Lacks::Proof(flaws) = &lacks {
            let through = through(&accepted.decision.action).cloned();
            accepted.consumed.void = Some(Void { why: plain(&proof::said(flaws)), through, head: None });
        }
        Err(Box::new(Unproven { accepted, asked, lacks }))
    }

    /// What is known of a decision's proof: who has approved the pull request that brought it, or signed the commit that did.
    ///
    /// # Errors
    /// What it lacks.
    pub fn verdict(&self, asked: &ProofQuestion) -> Result<(Option<&MergedPull>, Vec<Approved>), Lacks> {
        let fresh = |told: &&ReviewEvidence| {
            let pause = if matches!(told.evidence, ProofEvidence::Unseen(_)) { LATER } else { TimeDelta::zero() };
            (TimeDelta::zero()..=pause + FRESH).contains(&(self.now - told.at))
        };
        let Some(ReviewEvidence { evidence, at }) = self.told.get(asked).filter(fresh) else {
            return Err(Lacks::Answer);
        };
        let file = (&asked.path, &asked.blob);
        let wanted = Required { base: self.base, file, since: self.since, rule: self.rule };
        match (evidence, proof::prove(&wanted, evidence)) {
            (ProofEvidence::Incomplete(why), _) => Err(Lacks::Knowledge(why.clone(), *at + AGAIN)),
            (ProofEvidence::Unseen(why), _) => Err(Lacks::Knowledge(why.clone(), *at + LATER)),
            (ProofEvidence::Merged(merged), Ok(by)) => Ok((Some(merged), by)),
            (ProofEvidence::Signed(_), Ok(by)) => Ok((None, by)),
            (ProofEvidence::Merged(_) | ProofEvidence::Signed(_) | ProofEvidence::Pushed, Err(flaws)) => {
                Err(Lacks::Proof(flaws))
            }
            (ProofEvidence::Pushed, Ok(_)) => Err(Lacks::Proof([Flaw::Pushed].into())),
        }
    }
}
