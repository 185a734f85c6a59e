//! The ends of our requests: people are told why one asks for nothing any more, and what has come in its place.

use super::{Line, Worker};
use crate::forge::branch::{Asks, Head, propose_prefix};
use crate::forge::host::HostError;
use crate::forge::pull::{self, PullBody, PullRequest, PullState};
use crate::gate::approval;
use crate::manifest::ids::{InstanceName, RolloutId, RunId};
use crate::reconcile::source::GitView;
use crate::record::history::{self, voids};
use crate::record::state::{Consumed, RolloutState, Void};
use std::collections::BTreeMap;

impl Worker {
    /// Tells people why a request of ours asks for nothing any more, once it is closed, or by closing it. One that cannot be closed keeps no
    /// other open: what is wrong with it is what comes back if nothing worse is.
    pub(super) async fn tidy(
        &mut self,
        view: &GitView,
        wanted: &BTreeMap<String, PullBody>,
        open: &[PullRequest],
    ) -> Result<Option<HostError>, HostError> {
        let mut known: BTreeMap<u64, String> = self.open.take().unwrap_or_default();
        known.extend(open.iter().map(|found| (found.number, found.branch.clone())));
        // What is left undone by an error is known again the next time.
        self.open = Some(known.clone());
        // Of a branch that was made again the last one is meant.
        let newest: BTreeMap<String, u64> = known.iter().map(|(number, branch)| (branch.clone(), *number)).collect();
        let is_replaced = |number: &u64, branch: &String| newest.get(branch) > Some(number);
        known.retain(|number, branch| {
            is_replaced(number, branch) || !wanted.contains_key(branch) && !view.tips.proposals.contains_key(branch)
        });
        if known.is_empty() {
            self.forget(wanted);
            return Ok(None);
        }
        // The view may be older than the list: a branch that is there now is none to close a request for.
        let prefix = format!("refs/heads/{}", propose_prefix(&self.setting.instance));
        let Ok(there) = self.setting.store.ls_refs(&[&prefix]).await else { return Ok(None) };
        known.retain(|number, branch| is_replaced(number, branch) || there.keys().all(|name| name.short() != branch));
        let mut aside = None;
        for (number, branch) in known {
            let instance = &self.setting.instance;
            let replaced = is_replaced(&number, &branch).then(|| spoiled(instance, &branch)).flatten();
            let why = replaced.or_else(|| over(view, instance, &branch));
            match self.end(view, number, &branch, why, open).await {
                Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) => aside = Some(error),
                done => done?,
            }
        }
        self.forget(wanted);
        Ok(aside)
    }

    /// Ends a pull request whose branch is gone, or was made again, once it is known why.
    async fn end(
        &mut self,
        view: &GitView,
        number: u64,
        branch: &str,
        why: Option<String>,
        open: &[PullRequest],
    ) -> Result<(), HostError> {
        let found = match open.iter().find(|found| found.number == number) {
            Some(found) => found.clone(),
            None => match self.setting.host.pull(number).await {
                // Whoever may delete one has done so: nobody is left to be told.
                Err(HostError::Refused { status: 404 | 410, .. }) => {
                    self.open.get_or_insert_default().remove(&number);
                    return Ok(());
                }
                found => found?,
            },
        };
        if found.state != PullState::Merged {
            let Some(why) = &why else { return Ok(()) };
            if self.setting.lead.held().is_none() {
                return Ok(());
            }
            if let Some(text) = found.over(why) {
                if !self.parted.contains(&number) {
                    self.setting.host.mention(number, why).await?;
                    self.parted.insert(number);
                }
                self.setting.host.close(number, Some(&text)).await?;
                tracing::info!(branch, number, why, "its pull request asks for nothing any more");
            }
        }
        let head = Head::parse(&self.setting.instance, branch);
        let answer = head.as_ref().map_or(Answer::Given, |head| answer(view, head, found.state));
        if answer == Answer::Awaited {
            return Ok(());
        }
        let known = self.open.get_or_insert_default();
        known.remove(&number);
        let instance = &self.setting.instance;
        let Some(head) = head.filter(|_| answer == Answer::None) else { return Ok(()) };
        let ended = line(&head);
        let is_next = |branch: &str| Head::parse(instance, branch).is_some_and(|head| line(&head) == ended);
        let next = known.iter().rfind(|(other, branch)| **other > number && is_next(branch));
        let next = next.map(|(next, branch)| (*next, branch.clone()));
        match next {
            // That was told when it was made.
            Some((_, same)) if same == branch => {}
            Some((next, branch)) => self.point(Some(number), &branch, next),
            None => drop(self.ended.insert(ended, number)),
        }
        Ok(())
    }

    /// Leads whoever finds the pull request before to the one that has come in its place.
    pub(super) fn point(&mut self, before: Option<u64>, branch: &str, number: u64) {
        let Some(head) = Head::parse(&self.setting.instance, branch) else { return };
        let Some(before) = self.ended.remove(&line(&head)).max(before).filter(|before| *before < number) else {
            return;
        };
        let whither = match head.asks {
            Asks::Advance(step) => format!(", for `{step}`"),
            Asks::Revert | Asks::Delete => String::new(),
        };
        let what = format!("{} has come in its place{whither}.", self.setting.host.named(number));
        self.unsaid.add(before, what);
    }
}

/// Those in whose place a request may come.
fn line(head: &Head) -> Line {
    (head.rollout.clone(), pull::labels(&head.asks))
}

/// What a request ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// A decision, or the end of what it asked.
    Given,
    /// None: another one may come in its place.
    None,
    /// It was merged, and nobody knows yet what that is worth.
    Awaited,
}

fn answer(view: &GitView, Head { rollout, run, asks }: &Head, standing: PullState) -> Answer {
    let Some(record) = view.records.get(rollout) else { return Answer::Given };
    let Ok(state) = &record.state else { return Answer::Given };
    // Whether what it asks is open, was said, and was said in vain.
    let (is_open, yes, is_void) = match asks {
        Asks::Advance(step) => {
            let open = state.run.as_ref().filter(|open| open.id == *run).zip(record.plan.as_deref());
            let yes = open.is_some_and(|(open, plan)| approval::covers(plan, &open.approved, step));
            (open.is_some(), yes, open.is_some() && voids(state, run, step).next().is_some())
        }
        Asks::Delete => {
            let is_void = history::deletions(state, run).last().map(|word| word.void.is_some());
            // While people are asked it is another question that was answered.
            let is_asked = state.deletions.asked.is_some();
            (is_asked && is_void.is_none(), !is_asked && is_void == Some(false), is_void == Some(true))
        }
        // Closed by a person it asks for nothing more: the record goes on naming it.
        Asks::Revert => (false, !is_undone_anew(state, run), false),
    };
    match standing {
        _ if yes => Answer::Given,
        PullState::Merged if is_void => Answer::None,
        PullState::Merged if is_open => Answer::Awaited,
        PullState::Merged => Answer::Given,
        PullState::Open | PullState::Closed => Answer::None,
    }
}

/// Whether a run's change shall be undone, and nobody is asked yet.
fn is_undone_anew(state: &RolloutState, run: &RunId) -> bool {
    let is_refused = state.refused.iter().any(|refused| refused.run == *run);
    state.revert.is_none() && is_refused && state.last_run.as_ref().is_some_and(|last| last.id == *run)
}

/// Why a request that is no approval was taken back that is made again.
fn spoiled(instance: &InstanceName, branch: &str) -> Option<String> {
    let why = match Head::parse(instance, branch)?.asks {
        Asks::Revert => "somebody else has written to its branch. It is asked again.",
        Asks::Delete => "something else would go by now, or somebody else has written to its branch. It is asked anew.",
        Asks::Advance(_) => return None,
    };
    Some(why.to_owned())
}

/// Why a request to let objects go asks for nothing any more; none while the record does not tell yet. Which of several questions it was
/// nobody tells.
fn deletion_over(state: Option<&RolloutState>, rollout: &RolloutId, run: &RunId) -> Option<String> {
    let asked = state.and_then(|state| state.deletions.asked.as_ref());
    let mut words = state.into_iter().flat_map(|state| &state.consumed);
    let word = words.rfind(|word| word.run == *run && word.action == history::DELETE);
    let why = match (asked, word) {
        (None, _) => format!(
            "nobody is asked that any more: people have answered, a run is open, or nothing is to go that needs a word. \
             `tidegate why {rollout}` says what holds."
        ),
        (Some(asked), _) if asked.pull.is_some() => return None,
        (Some(_), Some(Consumed { void: Some(Void { why, .. }), .. })) => {
            format!("{}. It is asked again.", pull::escaped(why))
        }
        (Some(_), _) => "something else would go by now. That is asked anew.".to_owned(),
    };
    Some(why)
}

/// Why a request whose branch is gone asks for nothing any more; none while the record does not tell yet.
pub(super) fn over(view: &GitView, instance: &InstanceName, branch: &str) -> Option<String> {
    let Head { rollout, run, asks } = Head::parse(instance, branch)?;
    let record = view.records.get(&rollout);
    let state = record.and_then(|record| record.state.as_ref().ok());
    if asks == Asks::Delete {
        return deletion_over(state, &rollout, &run);
    }
    let Asks::Advance(step) = asks else {
        if state.is_some_and(|state| is_undone_anew(state, &run)) {
            return spoiled(instance, branch);
        }
        return Some(format!(
            "there is nothing to undo any more, or nobody wants to. `tidegate why {rollout}` says more."
        ));
    };
    let open = state.and_then(|state| state.run.as_ref()).filter(|open| open.id == run);
    match (open, record.and_then(|record| record.plan.as_deref())) {
        (Some(open), _) if open.denied => Some(format!(
            "somebody said no. Traffic stays where it is, and nothing is asked again before `tidegate resume {rollout}`."
        )),
        (Some(open), Some(plan)) if approval::covers(plan, &open.approved, &step) => {
            Some(format!("`{step}` is approved already."))
        }
        (Some(_), _) => {
            let void = state.and_then(|state| voids(state, &run, &step).last());
            void.map(|Void { why, through: _, head: _ }| format!("{}. It is asked again.", pull::escaped(why)))
        }
        (None, _) => {
            Some(format!("run `{run}` is over, or its content has changed. `tidegate why {rollout}` says more."))
        }
    }
}
