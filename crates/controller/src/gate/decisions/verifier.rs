//! How words are proven that let a rollout go further.

use super::{DecisionFile, Lacks, Unproven, Word, through};
use crate::gate::proof::{self, Asked, Evidence, Flaw, Merged, ReviewEvidence, Wanted};
use crate::manifest::ids::CommitId;
use crate::manifest::proof::Rule;
use crate::record::state::{Approved, Proven, Time, Void};
use crate::record::text::plain;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// How old an answer may be by which a word counts: what people may do can change at any time.
const FRESH: TimeDelta = TimeDelta::seconds(60);
/// For how long a host is left alone that did not tell all.
const AGAIN: TimeDelta = TimeDelta::seconds(15);
/// For how long it is where people have to do something first: each question costs calls of a budget that all share.
const LATER: TimeDelta = TimeDelta::minutes(5);

/// What proofs are judged by.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalVerifier<'a> {
    /// Who may approve, and how.
    pub rule: &'a Rule,
    /// The decisions branch.
    pub base: &'a str,
    /// Nothing is approved before.
    pub since: Time,
    /// What the Git host has told, or Git itself.
    pub told: &'a BTreeMap<Asked, ReviewEvidence>,
    /// The time of this tick.
    pub now: Time,
}

impl ApprovalVerifier<'_> {
    pub(super) fn judge(&self, file: &DecisionFile, mut word: Word) -> Result<Word, Box<Unproven>> {
        let asked = |commit: &CommitId| Asked {
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
                word.consumed.by = plain(&names.join(", "));
                word.consumed.proof = match merged {
                    None => "signature",
                    Some(_) if by.iter().all(|by| by.review.is_none()) => "merge",
                    Some(_) => "review",
                }
                .to_owned();
                word.consumed.proven = Some(Proven {
                    pull: merged.map(|merged| merged.number),
                    head: merged.map_or(&asked.commit, |merged| &merged.head).clone(),
                    commit: asked.commit.clone(),
                    through: through(&word.decision.action).cloned(),
                    by,
                });
                return Ok(word);
            }
            Some((_, Err(lacks))) => lacks,
            None => Lacks::Proof([Flaw::Incomplete("Git does not tell how the file came".to_owned())].into()),
        };
        if let Lacks::Proof(flaws) = &lacks {
            let through = through(&word.decision.action).cloned();
            word.consumed.void = Some(Void { why: plain(&proof::said(flaws)), through, head: None });
        }
        Err(Box::new(Unproven { word, asked, lacks }))
    }

    /// What is known of a word's proof: who has approved the pull request that brought it, or signed the commit that did.
    ///
    /// # Errors
    /// What it lacks.
    pub fn verdict(&self, asked: &Asked) -> Result<(Option<&Merged>, Vec<Approved>), Lacks> {
        let fresh = |told: &&ReviewEvidence| {
            let pause = if matches!(told.evidence, Evidence::Unseen(_)) { LATER } else { TimeDelta::zero() };
            (TimeDelta::zero()..=pause + FRESH).contains(&(self.now - told.at))
        };
        let Some(ReviewEvidence { evidence, at }) = self.told.get(asked).filter(fresh) else {
            return Err(Lacks::Answer);
        };
        let file = (&asked.path, &asked.blob);
        let wanted = Wanted { base: self.base, file, since: self.since, rule: self.rule };
        match (evidence, proof::prove(&wanted, evidence)) {
            (Evidence::Incomplete(why), _) => Err(Lacks::Knowledge(why.clone(), *at + AGAIN)),
            (Evidence::Unseen(why), _) => Err(Lacks::Knowledge(why.clone(), *at + LATER)),
            (Evidence::Merged(merged), Ok(by)) => Ok((Some(merged), by)),
            (Evidence::Signed(_), Ok(by)) => Ok((None, by)),
            (Evidence::Merged(_) | Evidence::Signed(_) | Evidence::Pushed, Err(flaws)) => Err(Lacks::Proof(flaws)),
            (Evidence::Pushed, Ok(_)) => Err(Lacks::Proof([Flaw::Pushed].into())),
        }
    }
}
