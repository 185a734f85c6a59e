//! Requests whose branch is gone, where the policy names who may say no: whoever deletes a branch is not told by Git, but the host knows
//! who closed its pull request.

use super::Worker;
use crate::forge::host::HostError;
use crate::forge::pull::{Ids, PullRequest, PullState};
use crate::gate::approval;
use crate::manifest::ids::{CommitId, RolloutId, StepName};
use crate::manifest::proof::ApprovalRule;
use crate::plan::evidence::Denial;
use crate::plan::input::MayStart;
use crate::reconcile::source::GitView;
use crate::record::branches::decisions_branch;
use crate::record::state::Pull;
use crate::record::text::plain;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How often, and for how long, a pull request is found open whose branch is gone, until it counts as one that stays open. Hosts take their
/// time to close one, and webhooks, whatever they are about, let looks follow each other within a second.
const LOOKS: u32 = 3;
const STAYS: Duration = Duration::from_secs(30);

/// A request whose branch is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    /// Whose.
    rollout: RolloutId,
    /// The head that the branch had.
    head: CommitId,
    /// Whose no counts.
    rule: ApprovalRule,
}

#[cfg(test)]
impl Gone {
    pub(super) fn new(rollout: &str, head: CommitId, rule: ApprovalRule) -> Self {
        Self { rollout: rollout.parse().expect("a rollout"), head, rule }
    }
}

/// Those of open runs, and those to let objects go, by their branches.
pub(super) fn gone(view: &GitView) -> BTreeMap<String, Gone> {
    let mut all = BTreeMap::new();
    for state in view.records.states() {
        let policy = view.main.policy(&state.source.path, MayStart::Yes).proof;
        let Some(rule) = state.rule(policy.as_ref()) else { continue };
        let deletion = state.deletions.asked.iter().filter_map(|asked| asked.pull.as_ref());
        let plan = view.records.get(&state.metadata).and_then(|record| record.plan.as_deref());
        let open = state.run.as_ref().filter(|run| !run.denied).zip(plan);
        let steps = open.into_iter().flat_map(|(run, plan)| {
            let waits = |(through, _): &(&StepName, &Pull)| !approval::covers(plan, &run.approved, through);
            run.pulls.iter().filter(waits).map(|(_, pull)| pull)
        });
        for pull in deletion.chain(steps).filter(|pull| !view.tips.proposals.contains_key(&pull.branch)) {
            let gone = Gone { rollout: state.metadata.clone(), head: pull.head.clone(), rule: rule.clone() };
            all.insert(pull.branch.clone(), gone);
        }
    }
    all
}

impl Worker {
    /// Tells plans whose the noes to these are. What has gone wrong so far is told of all. What is wrong with one says nothing of
    /// the others: that is what comes back if nothing worse does.
    pub(super) async fn examine_gone(
        &mut self,
        gone: &BTreeMap<String, Gone>,
        done: Result<(), HostError>,
    ) -> Result<Option<HostError>, HostError> {
        self.looks.retain(|head, _| gone.values().any(|request| request.head == *head));
        if gone.is_empty() {
            return done.map(|()| None);
        }
        let mut open = match done {
            Ok(()) => self.open_ones().await,
            Err(error) => Err(error),
        };
        let mut aside = None;
        for (branch, request) in gone {
            let heard = match &open {
                Ok((ids, open)) => self.denial(*ids, open, branch, request).await,
                Err(error) => Err(error.clone()),
            };
            let denial =
                heard.as_ref().map_or_else(|error| Some(Denial::Unknown(plain(&error.lasting()))), Clone::clone);
            if let Some(denial) = denial.filter(|_| self.setting.lead.held().is_some()) {
                (self.setting.inbox)(&request.rollout, (branch.clone(), request.head.clone()), denial);
            }
            match heard {
                Ok(_) => {}
                Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) if open.is_ok() => {
                    aside = Some(error);
                }
                Err(error) => open = Err(error),
            }
        }
        open.map(|_| aside)
    }

    /// Who we are, and all that is open.
    async fn open_ones(&mut self) -> Result<(Ids, Vec<PullRequest>), HostError> {
        Ok((self.setting.host.ids().await?, self.setting.host.open().await?))
    }

    /// That it is no answer, if it was found so often enough and for long enough.
    fn still(&mut self, request: &Gone, why: &str) -> Option<Denial> {
        let (looks, since) = self.looks.entry(request.head.clone()).or_insert_with(|| (0, Instant::now()));
        *looks += 1;
        (*looks >= LOOKS && since.elapsed() >= STAYS).then(|| Denial::NotAuthorized(why.to_owned()))
    }

    /// Whose the no is; none as long as the host or Git has to say more first.
    async fn denial(
        &mut self,
        ids: Ids,
        open: &[PullRequest],
        branch: &str,
        request: &Gone,
    ) -> Result<Option<Denial>, HostError> {
        let head = request.head.as_str();
        let is_it =
            |found: &PullRequest| found.is_ours(ids) && found.branch == branch && found.text.body.contains(head);
        // Hosts close one a little after its branch has gone. One that was opened again meanwhile stays open.
        if open.iter().any(is_it) {
            return Ok(self.still(request, "its branch was deleted, and its pull request is open"));
        }
        let closed = self.setting.host.closed(branch, is_it).await?;
        let Some(found) = closed.first() else {
            return Ok(Some(Denial::NotAuthorized(
                "its branch was deleted, and no pull request for it was closed".to_owned(),
            )));
        };
        // It is on the branch, and will be judged from there, if it says anything.
        if found.state == PullState::Merged && found.base == decisions_branch(&self.setting.instance) {
            return Ok(self.still(request, "it was merged, and brought no word for this"));
        }
        self.looks.remove(&request.head);
        Ok(match found.state {
            PullState::Closed => {
                let objection = self.objection(Some(&request.rule), found.number).await?;
                Some(objection.map_or(Denial::No, |why| Denial::NotAuthorized(plain(&why))))
            }
            PullState::Merged => Some(Denial::NotAuthorized(plain(&format!("it was merged into {}", found.base)))),
            PullState::Open => None,
        })
    }
}
