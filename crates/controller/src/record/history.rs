//! What a record keeps of runs: the id of a new one, the end of one, and the sets that can be gone back to.

use super::branches;
use super::posture::Names;
use super::state::{Consumed, EndedRun, Outcome, PastRun, Phase, Refused, RolloutState, Time, Void};
use super::text::plain;
use crate::manifest::desired::Plan;
use crate::manifest::files::RepoPath;
use crate::manifest::hex::hex;
use crate::manifest::ids::{BlobId, InstanceName, ObjectName, Revision, RolloutId, RunId, SetId, StepName};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// How many past runs a record keeps.
pub const RUNS: usize = 20;
/// How many counted decisions a record keeps from before the last run; those given since are all kept, because only a
/// run's start makes older files void.
pub const CONSUMED: usize = 200;
/// How many refused revisions a record keeps: enough for years of failures, and a bound for its size.
pub const REFUSED: usize = 100;
/// The word that lets objects go, as the record spells it.
pub const DELETE: &str = "delete";
/// How many sets that were replaced stay pinned, so that they can be gone back to.
pub const PINNED: usize = 5;

/// All that a run is made of. What of it changes makes another run, so that no approval is carried over.
#[derive(Debug, Clone, Copy)]
pub struct RunOf<'a> {
    /// The instance.
    pub instance: &'a InstanceName,
    /// The rollout.
    pub rollout: &'a RolloutId,
    /// The set that is stable.
    pub from: &'a SetId,
    /// The set that it brings.
    pub to: &'a SetId,
    /// The revision of `to`.
    pub revision: &'a Revision,
    /// How it goes, floors resolved.
    pub plan: &'a Plan,
}

/// The id of a run: its number and 8 hex digits of the digest of what it is made of (canonical JSON, RFC 8785).
#[must_use]
pub fn run_id(number: u32, of: &RunOf<'_>) -> RunId {
    let RunOf { instance, rollout, from, to, revision, plan } = of;
    let content = json!({
        "instance": instance, "rollout": rollout, "from": from, "to": to, "revision": revision, "plan": plan,
    });
    let text = serde_jcs::to_vec(&content).expect("plain JSON, because names, ids and plans have no other values");
    let id = format!("{number}-{}", hex(&Sha256::digest(&text)[..4]));
    id.parse().expect("a number, a dash and 8 hex digits, because it was made so")
}

/// Keeps the last [`RUNS`], and before them what can be gone back to: the promoted ones among which the last [`PINNED`] were replaced.
fn trim(history: &mut Vec<PastRun>) {
    let mut spare = history.len().saturating_sub(RUNS);
    let promoted = history.iter().filter(|past| past.outcome == Outcome::Promoted).count();
    let mut old = promoted.saturating_sub(PINNED + 1);
    history.retain(|past| {
        let is_promoted = past.outcome == Outcome::Promoted;
        let drop = spare > 0 && (!is_promoted || old > 0);
        old = old.saturating_sub(usize::from(is_promoted));
        spare -= usize::from(drop);
        !drop
    });
}

/// Ends the open run: it goes into the history and becomes the last run, and what was against it is remembered.
/// Nothing happens if no run is open.
pub fn end_run(state: &mut RolloutState, outcome: Outcome, why: &str, now: Time) {
    let Some(run) = state.run.take() else { return };
    match outcome {
        Outcome::Failed | Outcome::Aborted => {
            // What main wants by now is refused as well, whatever other runs come before it is wanted again.
            let revisions = [Some(&run.revision), run.along.as_ref().and_then(|along| along.revision.as_ref())];
            for revision in revisions.into_iter().flatten() {
                refuse(state, revision.clone(), run.id.clone(), outcome, why, now);
            }
        }
        // What a rollback leaves is the run before it, refused by whoever starts the rollback.
        Outcome::Promoted | Outcome::Reverted | Outcome::Superseded | Outcome::Unmeasured | Outcome::RolledBack => {}
    }
    state.deletions.ended(&run.to, outcome == Outcome::Promoted);
    state.last_run = Some(EndedRun { id: run.id.clone(), decisions_at: run.decisions_at });
    let mut spare = state.consumed.iter().filter(|c| c.at < run.started).count().saturating_sub(CONSUMED);
    state.consumed.retain(|c| {
        let drop = c.at < run.started && spare > 0;
        spare -= usize::from(drop);
        !drop
    });
    state.history.push(PastRun {
        run: run.id,
        from: run.from,
        names: run.names,
        stable: run.stable,
        to: run.to,
        began: run.along.map(|along| along.began),
        revision: run.revision,
        outcome,
        why: plain(why),
        started: run.started,
        ended: now,
    });
    trim(&mut state.history);
}

/// Remembers that a revision is not started again (N-4). A newer decision about the same revision replaces the older.
pub fn refuse(state: &mut RolloutState, revision: Revision, run: RunId, outcome: Outcome, why: &str, now: Time) {
    state.refused.retain(|r| r.revision != revision);
    state.refused.push(Refused { revision, run, outcome, why: plain(why), at: now });
    let old = state.refused.len().saturating_sub(REFUSED);
    state.refused.drain(..old);
}

/// Forgets what was against the revision of an ended run (`retry`).
pub fn forgive(state: &mut RolloutState, run: &RunId) {
    let revision = state.history.iter().find(|past| past.run == *run).map(|past| past.revision.clone());
    state.refused.retain(|r| r.run != *run && Some(&r.revision) != revision.as_ref());
}

/// A version that was stable once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced<'a> {
    /// Its manifests as they were when it was replaced: later direct changes included.
    pub set: &'a SetId,
    /// What they call their objects, where each version has names of its own.
    pub names: Option<&'a Names>,
    /// When it was replaced: the rollback window counts from here.
    pub at: Time,
}

/// What a promoted run had brought, if another has replaced it since: where `rollback` can go. `0` names what was
/// stable before the first run, as long as that run is in the history.
#[must_use]
pub fn replaced<'a>(state: &'a RolloutState, run: &RunId) -> Option<Replaced<'a>> {
    let promoted = || state.history.iter().filter(|past| past.outcome == Outcome::Promoted);
    let next = if *run == RunId::zero() {
        let first = state.history.first().is_some_and(|past| past.run.as_str().starts_with("1-"));
        promoted().next().filter(|_| first)
    } else {
        promoted().skip_while(|past| past.run != *run).nth(1)
    };
    next.map(|past| Replaced { set: &past.from, names: past.names.as_ref(), at: past.ended })
}

/// The run that brought what was stable when the open run started; `0` if that was there before the first.
#[must_use]
pub fn served(state: &RolloutState) -> RunId {
    let open = state.run.as_ref().map(|run| &run.id);
    let promoted = state.promoted.as_ref().map(|promoted| &promoted.run).filter(|run| Some(*run) != open);
    let last = || state.history.iter().rev().find(|past| past.outcome == Outcome::Promoted).map(|past| &past.run);
    promoted.or_else(last).cloned().unwrap_or_else(RunId::zero)
}

/// The targets that a record names itself, also those of versions that were replaced.
pub fn targets(state: &RolloutState) -> impl Iterator<Item = &ObjectName> {
    let named = state.clusters.values().flat_map(|cluster| cluster.posture.naming.targets());
    named.chain(state.history.iter().filter_map(|past| Some(&past.names.as_ref()?.target)))
}

/// The sets that the state branch must hold for this record: stable, candidate, whatever a posture names, the last
/// [`PINNED`] that were replaced, and what the last run brought if it went back: undoing its change on main needs it.
#[must_use]
pub fn pinned(state: &RolloutState) -> BTreeSet<&SetId> {
    let mut sets: BTreeSet<&SetId> = BTreeSet::new();
    for past in state.history.iter().rev().filter(|past| past.outcome == Outcome::Promoted) {
        if sets.len() < PINNED {
            sets.insert(&past.from);
        }
    }
    sets.extend(state.promoted.iter().map(|promoted| &promoted.set));
    let pending = state.rollback.as_ref().and_then(|pending| replaced(state, &pending.to));
    sets.extend(pending.map(|past| past.set));
    sets.extend(state.run.iter().flat_map(|run| [&run.from, &run.to, run.began()]));
    sets.extend(taken_back(state).into_iter().flat_map(|past| past.began.iter().chain([&past.to])));
    for cluster in state.clusters.values() {
        sets.insert(&cluster.posture.stable.set);
        sets.extend(cluster.posture.candidate.iter().map(|candidate| &candidate.set));
    }
    sets
}

/// Whether a run has entered its first step: until then nothing of it is in the cluster.
#[must_use]
pub fn is_under_way(state: &RolloutState) -> bool {
    state.run.is_some() && !matches!(state.phase, Phase::Waiting { at: None, .. })
}

/// Whether a decision, by its path and content, was counted or made void before.
#[must_use]
pub fn is_consumed(state: &RolloutState, path: &RepoPath, blob: &BlobId) -> bool {
    state.consumed.iter().any(|word| word.path == *path && word.blob == *blob)
}

/// Whether a run was taken back and its revision refused.
#[must_use]
pub fn went_back(past: &PastRun) -> bool {
    matches!(past.outcome, Outcome::Failed | Outcome::Aborted)
}

/// The last run, if it was taken back and its revision refused.
#[must_use]
pub fn taken_back(state: &RolloutState) -> Option<&PastRun> {
    state.history.last().filter(|past| went_back(past))
}

/// The run that brought this version last and went back unmeasured, if none came since; be it by what it took along.
#[must_use]
pub fn unmeasured<'a>(state: &'a RolloutState, (set, revision): (&SetId, &Revision)) -> Option<&'a PastRun> {
    let is_same = |past: &&PastRun| past.revision == *revision || past.to == *set;
    state.history.last().filter(|past| past.outcome == Outcome::Unmeasured).filter(is_same)
}

/// The decisions to delete that were looked at in a run, those that did not count among them.
pub fn deletions<'a>(state: &'a RolloutState, run: &RunId) -> impl Iterator<Item = &'a Consumed> {
    state.consumed.iter().filter(move |word| word.run == *run && word.action == DELETE)
}

/// How many paths of decisions to delete are used up in a run, from the first one on: a decision at one of them would not be looked at again, or
/// be in the way of another.
#[must_use]
pub fn deletion_paths(state: &RolloutState, run: &RunId) -> usize {
    let used: BTreeSet<&RepoPath> = deletions(state, run).map(|word| &word.path).collect();
    let is_free = |n: &usize| !used.contains(&branches::deletion(&state.metadata, run, (&BTreeSet::new(), None), *n).0);
    (0..used.len()).find(is_free).unwrap_or(used.len())
}

/// The approvals of a step that had no proof, and its requests that somebody had written to, oldest first.
pub fn voids<'a>(state: &'a RolloutState, run: &RunId, step: &StepName) -> impl Iterator<Item = &'a Void> {
    let words = state.consumed.iter().filter(move |word| word.run == *run);
    words.filter_map(|word| word.void.as_ref()).filter(move |void| void.through.as_ref() == Some(step))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{commit, open, past, plan, revision, run, set, steady, time};
    use super::super::state::Consumed;
    use super::*;

    #[test]
    fn n_4_what_went_back_unmeasured_is_known_by_all_that_it_brought() {
        let mut state = steady();
        state.history.push(past(7, 6, 7, Outcome::Unmeasured));
        for (of, brought) in [((6, 7), true), ((7, 6), true), ((6, 6), false)] {
            assert_eq!(unmeasured(&state, (&set(of.0), &revision(of.1))).is_some(), brought, "{of:?}");
        }
    }

    #[test]
    fn what_can_be_gone_back_to_stays_in_the_history_whatever_fails_meanwhile() {
        let mut state = steady();
        let served = state.promoted.as_ref().unwrap().run.clone();
        let promoted = state.history.iter().filter(|past| past.outcome == Outcome::Promoted).count();
        for number in 0..30 {
            let mut failed = past(7, 6, 7, Outcome::Superseded);
            failed.run = run(100 + number);
            state.history.push(failed);
            trim(&mut state.history);
        }
        assert_eq!(state.history.len(), RUNS);
        assert_eq!(
            state.history.iter().filter(|past| past.outcome == Outcome::Promoted).count(),
            promoted.min(PINNED + 1)
        );
        assert_eq!(super::served(&state), served);
    }

    #[test]
    fn x_2_all_that_a_run_is_made_of_makes_its_id() {
        let (instance, rollout): (InstanceName, RolloutId) = ("prod".parse().unwrap(), "shop/podinfo".parse().unwrap());
        let (from, to, revision, plan) = (set(6), set(7), revision(7), plan());
        let of =
            RunOf { instance: &instance, rollout: &rollout, from: &from, to: &to, revision: &revision, plan: &plan };
        let id = run_id(7, &of);
        assert_eq!(id.as_str(), "7-8639cfbc", "the digest is part of what is on disk: it may not change");
        assert_eq!(run_id(7, &of), id);
        let mut longer = plan.clone();
        longer.phases[0].soak = "6m".parse().unwrap();
        let others = [
            run_id(8, &of),
            run_id(7, &RunOf { instance: &"test".parse().unwrap(), ..of }),
            run_id(7, &RunOf { rollout: &"shop/other".parse().unwrap(), ..of }),
            run_id(7, &RunOf { from: &set(5), ..of }),
            run_id(7, &RunOf { to: &set(8), ..of }),
            run_id(7, &RunOf { revision: &super::super::fixture::revision(8), ..of }),
            run_id(7, &RunOf { plan: &longer, ..of }),
        ];
        let all: BTreeSet<_> = others.iter().chain([&id]).collect();
        assert_eq!(all.len(), 8);
    }

    #[test]
    fn n_4_a_failed_run_is_remembered_until_retry() {
        let mut state = open();
        end_run(&mut state, Outcome::Failed, "error-rate\n0.2 > 0.01", time("11:00:00"));
        assert_eq!(state.run, None);
        assert_eq!(state.last_run, Some(EndedRun { id: run(7), decisions_at: Some(commit(0x77)) }));
        let last = state.refused.last().unwrap();
        assert_eq!((&last.revision, &last.run, last.why.as_str()), (&revision(7), &run(7), "error-rate 0.2 > 0.01"));
        let entry = state.history.last().unwrap();
        assert_eq!((&entry.run, &entry.to, entry.outcome), (&run(7), &set(7), Outcome::Failed));
        assert_eq!((entry.started, entry.ended), (time("09:00:00"), time("11:00:00")));
        forgive(&mut state, &run(7));
        assert!(state.refused.iter().all(|refused| refused.run == run(4)));
        end_run(&mut state, Outcome::Failed, "", time("12:00:00"));
        assert_eq!(state.history.len(), 3, "no run was open");
    }

    #[test]
    fn a_promoted_reverted_superseded_or_unmeasured_run_refuses_nothing() {
        for outcome in [Outcome::Promoted, Outcome::Reverted, Outcome::Superseded, Outcome::Unmeasured] {
            let mut state = open();
            end_run(&mut state, outcome, "", time("11:00:00"));
            assert_eq!(state.refused, open().refused, "{outcome:?}");
        }
    }

    #[test]
    fn lists_are_bounded_but_words_since_the_last_start_stay() {
        let mut state = open();
        let word = state.consumed.remove(0);
        let words = |count: usize, at| (0..count).map(move |n| (n, at));
        let all = words(250, time("08:00:00")).chain(words(250, time("09:30:00")));
        state.consumed = all
            .map(|(n, at)| Consumed { path: format!("shop/podinfo/{n}.yaml").parse().unwrap(), at, ..word.clone() })
            .collect();
        state.history = (0..40).map(|n| past(n, n, n + 1, Outcome::Failed)).collect();
        end_run(&mut state, Outcome::Promoted, "", time("11:00:00"));
        assert_eq!(state.consumed.len(), CONSUMED + 250);
        assert_eq!(state.consumed[0].path.as_str(), "shop/podinfo/50.yaml", "the oldest go first");
        assert_eq!((state.history.len(), &state.history[19].run, &state.history[0].run), (RUNS, &run(7), &run(21)));
        for n in 0..=u8::MAX {
            refuse(&mut state, revision(n), run(1), Outcome::Failed, "", time("11:00:00"));
            refuse(&mut state, revision(n), run(2), Outcome::RolledBack, "", time("11:00:00"));
        }
        assert_eq!(state.refused.len(), REFUSED);
        assert!(state.refused.iter().all(|refused| refused.run == run(2)));
    }

    #[test]
    fn what_was_replaced_is_as_it_was_last() {
        let mut state = steady();
        let zero = RunId::zero();
        assert_eq!(replaced(&state, &zero), None, "the first run is not in the history");
        // Run 5 brought set 5, and a direct change made set 0x55 of it before run 6 came.
        state.history[1].from = set(0x55);
        assert_eq!(replaced(&state, &run(5)), Some(Replaced { set: &set(0x55), names: None, at: time("08:00:00") }));
        assert_eq!(replaced(&state, &run(6)), None, "it is what serves");
        state.history.insert(0, past(1, 3, 4, Outcome::Failed));
        assert_eq!(replaced(&state, &run(1)), None, "it was never promoted");
        assert_eq!(replaced(&state, &zero).map(|r| r.set), Some(&set(4)));
    }

    #[test]
    fn stable_candidate_and_five_replaced_sets_are_pinned() {
        let mut state = open();
        assert_eq!(pinned(&state), [set(4), set(5), set(6), set(7)].iter().collect());
        state.history = (10..20).map(|n| past(n, n, n + 1, Outcome::Promoted)).collect();
        state.history.push(past(30, 30, 31, Outcome::Failed));
        let expected: BTreeSet<SetId> = [6, 7, 15, 16, 17, 18, 19, 31].map(set).into();
        assert_eq!(pinned(&state), expected.iter().collect());
    }
}
