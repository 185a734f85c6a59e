//! The commit between deciding and doing: one for all rollouts that changed, pushed compare-and-swap.
//!
//! [`Recorded`] is the proof that everything else asks for: it is made only from a push that succeeded, or from tips that
//! were looked up at the remote after live was read and already say so.

use super::faults;
use super::source::{Branches, GitView, LoadedRecord, LoadedRecords};
use crate::git::{CommitDraft, Edit, GitError, Person, Pushed, Store};
use crate::manifest::desired::Set;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, InstanceName, RolloutId, SetId};
use crate::plan::action::{Action, Ask, GoesBy, Proposal, Verb};
use crate::plan::draft::RecordChange;
use crate::plan::input::Git;
use crate::record::message::{self, CommitEntry};
use crate::record::state::{RolloutState, Time};
use crate::record::store::{self, FileEdit, RecordError};
use crate::report::dashboard::{self, Row};
use crate::report::metrics::{GitOperation, GitOutcome, Metrics};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Proof that the state branch says this, at a moment after live was read. Nothing but a retreat is done without it.
#[derive(Debug)]
pub struct Recorded<'a> {
    states: BTreeMap<&'a RolloutId, &'a RolloutState>,
}

impl<'a> Recorded<'a> {
    /// What the view proves, if its tips were looked up at the remote after live was read: whoever calls this has just got
    /// `Poll::Unchanged` for it.
    #[must_use]
    pub fn verified(view: &'a GitView) -> Option<Self> {
        let fresh = view.git == Git::Fresh && matches!(view.records, LoadedRecords::Read(_));
        fresh.then(|| Self::of(view.records.states()))
    }

    fn of(states: impl Iterator<Item = &'a RolloutState>) -> Self {
        Self { states: states.map(|state| (&state.metadata, state)).collect() }
    }

    /// A proof of what is not pushed yet: for the one fault that breaks the promise.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn forged(view: &'a GitView, changes: &'a BTreeMap<RolloutId, RecordEntry<'_>>) -> Self {
        let kept = view.records.states().filter(|state| !changes.contains_key(&state.metadata));
        Self::of(kept.chain(changes.values().filter_map(RecordEntry::after)))
    }

    /// Whether the record says so: the same rollout, the same cluster, the same posture; and that the object may go, if that takes a
    /// person's decision.
    #[must_use]
    pub fn allows(&self, action: &Action) -> bool {
        let Some(state) = self.states.get(&action.rollout) else { return false };
        let recorded = state.clusters.get(&action.cluster);
        let (Some(cluster), Some(posture)) = (recorded, &action.posture) else { return false };
        let needs_word = matches!(action.verb, Verb::Delete { by: GoesBy::Word, .. });
        let let_go = || state.deletions.let_go().any(|object| object == action.verb.target());
        cluster.uid == action.cluster_uid && cluster.posture.digest() == *posture && (!needs_word || let_go())
    }

    /// Whether the record has a reason to ask people that.
    #[must_use]
    pub fn allows_pull(&self, proposal: &Proposal) -> bool {
        let Some(state) = self.states.get(&proposal.rollout) else { return false };
        match &proposal.ask {
            Ask::Advance { through } => {
                let run = state.run.as_ref().filter(|run| !run.denied);
                run.is_some_and(|run| run.id == proposal.run && !run.approved.contains(through))
            }
            Ask::Revert { .. } => {
                let ended = state.last_run.as_ref().map(|run| &run.id).filter(|_| !state.refused.is_empty());
                state.refused.iter().map(|refused| &refused.run).chain(ended).any(|run| *run == proposal.run)
            }
            Ask::Delete { objects } => {
                let asked = state.deletions.asked.as_ref();
                asked.is_some_and(|asked| state.current() == proposal.run && asked.objects == *objects)
            }
        }
    }
}

/// What one rollout wants recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecordEntry<'a> {
    /// The record as the branch holds it.
    pub before: Option<&'a RolloutState>,
    /// What shall become of it.
    pub change: &'a RecordChange,
    /// The sets that were planned with.
    pub sets: &'a BTreeMap<SetId, Arc<Set>>,
}

impl RecordEntry<'_> {
    fn after(&self) -> Option<&RolloutState> {
        match self.change {
            RecordChange::Keep => self.before,
            RecordChange::Write { state, .. } => Some(state),
            RecordChange::Remove { .. } => None,
        }
    }

    fn why(&self) -> &str {
        match self.change {
            RecordChange::Keep => "",
            RecordChange::Write { what, .. } | RecordChange::Remove { what } => what,
        }
    }

    /// The record as it is after the push.
    fn record(&self) -> Option<LoadedRecord> {
        match self.change {
            RecordChange::Write { state, plan, .. } => {
                Some(LoadedRecord::written((**state).clone(), plan.clone(), &self.named_sets()))
            }
            RecordChange::Keep | RecordChange::Remove { .. } => None,
        }
    }

    fn edits(&self) -> Result<BTreeMap<RepoPath, FileEdit>, RecordError> {
        let (plan, adopted) = match self.change {
            RecordChange::Write { plan, adopted, .. } => (plan.as_deref(), adopted.as_deref()),
            RecordChange::Keep | RecordChange::Remove { .. } => (None, None),
        };
        let mut edits = store::edits(self.before, self.after(), &self.named_sets(), plan)?;
        if let (Some(set), Some(state)) = (adopted, self.after()) {
            // No branch holds these files yet.
            edits.extend(store::set_as_written(&state.metadata, set)?);
        }
        Ok(edits)
    }

    /// The sets that were planned with, and the one that the plan has made of what is live.
    fn named_sets(&self) -> Cow<'_, BTreeMap<SetId, Arc<Set>>> {
        match self.change {
            RecordChange::Write { adopted: Some(set), .. } => {
                let mut sets = self.sets.clone();
                sets.insert(set.id.clone(), Arc::clone(set));
                Cow::Owned(sets)
            }
            RecordChange::Write { .. } | RecordChange::Keep | RecordChange::Remove { .. } => Cow::Borrowed(self.sets),
        }
    }
}

/// What came of recording.
#[derive(Debug)]
pub enum RecordWritten<'a> {
    /// The branch is at `tip` and says what `proof` proves. What is in `left_out` is not in it.
    Done {
        /// The proof.
        proof: Recorded<'a>,
        /// The new tip.
        tip: CommitId,
        /// The records that changed, as they are now.
        changes: BTreeMap<RolloutId, Option<LoadedRecord>>,
        /// Rollouts that could not be recorded, and why.
        left_out: BTreeMap<RolloutId, String>,
    },
    /// Nothing was recorded, as the state branch or main had moved: observe again.
    Moved,
    /// Nothing was recorded: no rollout's change was accepted.
    Refused(BTreeMap<RolloutId, String>),
    /// It is not known whether anything was recorded: observe again.
    Away(String),
}

/// Writes records.
pub struct Recorder<'a> {
    /// The repository.
    pub store: &'a Store,
    /// Its branches.
    pub branches: &'a Branches,
    /// Who writes.
    pub instance: &'a InstanceName,
    /// Counts what is asked of Git.
    pub metrics: &'a Metrics,
    /// What each rollout waits on, in words, for the dashboard.
    pub waiting: &'a BTreeMap<RolloutId, Vec<String>>,
    /// The time of this tick.
    pub now: Time,
}

/// What one push came to.
enum Try {
    Done(CommitId),
    Moved,
    Rejected(String),
    Away(String),
}

impl Recorder<'_> {
    /// Records these changes on top of what `view` shows: in one commit, or, if the server rejects it, in one for each
    /// rollout, so that one offender stops only itself.
    ///
    /// *Guarantees*: the branch moved only from the tip that was planned from, while main was where it was planned from.
    pub async fn record<'a>(
        &self,
        view: &'a GitView,
        entries: &'a BTreeMap<RolloutId, RecordEntry<'a>>,
    ) -> RecordWritten<'a> {
        if view.git != Git::Fresh || matches!(view.records, LoadedRecords::Unreadable(_)) {
            return RecordWritten::Away("the state branch cannot be read".to_owned());
        }
        let mut left_out = BTreeMap::new();
        let mut good = BTreeMap::new();
        for (id, entry) in entries {
            match entry.edits() {
                Ok(edits) => drop(good.insert(id, (*entry, edits))),
                Err(error) => drop(left_out.insert(id.clone(), error.to_string())),
            }
        }
        let mut book = Book::of(view);
        if good.is_empty() {
            return RecordWritten::Refused(left_out);
        }
        let tried = self.push(view, &book, &good).await;
        match tried {
            Try::Done(tip) => book.turn(&good, tip),
            Try::Moved => return RecordWritten::Moved,
            Try::Away(why) => return RecordWritten::Away(why),
            Try::Rejected(why) if good.len() == 1 => {
                left_out.extend(good.keys().map(|id| ((*id).clone(), why.clone())));
            }
            Try::Rejected(_) => {
                for (id, entry) in good {
                    let alone = BTreeMap::from([(id, entry)]);
                    match self.push(view, &book, &alone).await {
                        Try::Done(tip) => book.turn(&alone, tip),
                        Try::Rejected(why) => drop(left_out.insert(id.clone(), why)),
                        // What was recorded before it stays recorded; the rest is planned again.
                        Try::Moved | Try::Away(_) => return RecordWritten::Moved,
                    }
                }
            }
        }
        match book.tip {
            Some(tip) if !book.changes.is_empty() => {
                let proof = Recorded { states: book.states };
                let changes = book.changes.into_iter().map(|(id, entry)| (id.clone(), entry.record())).collect();
                RecordWritten::Done { proof, tip, changes, left_out }
            }
            _ => RecordWritten::Refused(left_out),
        }
    }

    async fn push(&self, view: &GitView, book: &Book<'_>, good: &BTreeMap<&RolloutId, Prepared<'_>>) -> Try {
        let draft = self.draft(book, good);
        let subject = draft.subject.clone();
        let tip = match self.store.commit_record(draft).await {
            Ok(tip) => tip,
            Err(error) => return failed(&error),
        };
        let source = view.tips.main.as_ref().map(|main| (&self.branches.main, main));
        let push = self.store.push(&self.branches.state, book.tip.as_ref(), &tip, source);
        let pushed = faults::effect(subject, push).await;
        self.count(&pushed);
        match pushed {
            Ok(Pushed::Done { .. }) => Try::Done(tip),
            Ok(Pushed::Raced { .. } | Pushed::SourceMoved { .. }) => Try::Moved,
            Ok(Pushed::Rejected { why }) => Try::Rejected(why),
            Err(error) => failed(&error),
        }
    }

    fn draft(&self, book: &Book<'_>, good: &BTreeMap<&RolloutId, Prepared<'_>>) -> CommitDraft {
        let changes: Vec<CommitEntry<'_>> = good
            .iter()
            .map(|(id, (entry, _))| CommitEntry {
                rollout: id,
                before: entry.before,
                after: entry.after(),
                why: entry.why(),
            })
            .collect();
        let message = message::commit(&changes);
        let (subject, body) = message.split_once("\n\n").unwrap_or((&message, ""));
        let mut edits: BTreeMap<RepoPath, Edit> = BTreeMap::new();
        for (_, of_one) in good.values() {
            edits.extend(of_one.iter().map(|(path, edit)| (path.clone(), as_git(edit))));
        }
        let mut states = book.states.clone();
        good.iter().for_each(|(id, (entry, _))| note(&mut states, id, entry.after()));
        let nothing = Vec::new();
        let rows: Vec<Row<'_>> = states
            .values()
            .map(|state| Row { state, waiting: self.waiting.get(&state.metadata).unwrap_or(&nothing) })
            .collect();
        let page = dashboard::print(self.instance, &rows);
        edits.insert(store::readme(), Edit::Write(page.into_bytes().into()));
        CommitDraft {
            parent: book.tip.clone(),
            edits,
            subject: subject.to_owned(),
            body: body.trim_end().to_owned(),
            author: author(self.instance),
            time: self.now,
        }
    }

    fn count(&self, pushed: &Result<Pushed, GitError>) {
        self.metrics.asked_git(GitOperation::Push, push_outcome(pushed));
    }
}

/// What a push came to, as a number.
#[must_use]
pub fn push_outcome(pushed: &Result<Pushed, GitError>) -> GitOutcome {
    match pushed {
        Ok(Pushed::Done { .. }) => GitOutcome::Done,
        Ok(Pushed::Raced { .. } | Pushed::SourceMoved { .. }) => GitOutcome::Raced,
        Ok(Pushed::Rejected { .. }) => GitOutcome::Rejected,
        Err(error) => GitOutcome::of(error),
    }
}

/// Who signs what an instance commits.
#[must_use]
pub fn author(instance: &InstanceName) -> Person {
    Person { name: format!("tidegate {instance}"), email: format!("{instance}@tidegate.invalid") }
}

/// A change with what it does to files.
type Prepared<'a> = (RecordEntry<'a>, BTreeMap<RepoPath, FileEdit>);

/// The state branch as it grows under our pushes.
struct Book<'a> {
    tip: Option<CommitId>,
    states: BTreeMap<&'a RolloutId, &'a RolloutState>,
    changes: BTreeMap<&'a RolloutId, RecordEntry<'a>>,
}

impl<'a> Book<'a> {
    fn of(view: &'a GitView) -> Self {
        let states = view.records.states().map(|state| (&state.metadata, state)).collect();
        Self { tip: view.tips.state.clone(), states, changes: BTreeMap::new() }
    }

    fn turn(&mut self, good: &BTreeMap<&'a RolloutId, Prepared<'a>>, tip: CommitId) {
        for (id, (entry, _)) in good {
            let entry: RecordEntry<'a> = *entry;
            let after = match entry.change {
                RecordChange::Keep => entry.before,
                RecordChange::Write { state, .. } => Some(&**state),
                RecordChange::Remove { .. } => None,
            };
            note(&mut self.states, id, after);
            self.changes.insert(id, entry);
        }
        self.tip = Some(tip);
    }
}

fn note<'a>(
    states: &mut BTreeMap<&'a RolloutId, &'a RolloutState>,
    id: &'a RolloutId,
    after: Option<&'a RolloutState>,
) {
    match after {
        Some(state) => drop(states.insert(id, state)),
        None => drop(states.remove(id)),
    }
}

fn as_git(edit: &FileEdit) -> Edit {
    match edit {
        FileEdit::Write(bytes) => Edit::Write(bytes.as_slice().into()),
        FileEdit::Blob(blob) => Edit::Blob(blob.clone()),
        FileEdit::Remove => Edit::Remove,
        FileEdit::RemoveDir => Edit::RemoveDir,
    }
}

/// A refusal of access, and what cannot be put into a commit, is about what was to be pushed; everything else leaves open
/// what happened.
fn failed(error: &GitError) -> Try {
    let why = error.to_string();
    match error {
        GitError::Denied { .. } | GitError::Missing(_) | GitError::BadTree { .. } | GitError::Limit { .. } => {
            Try::Rejected(why)
        }
        GitError::Config(_)
        | GitError::HostKey { .. }
        | GitError::Away { .. }
        | GitError::Protocol { .. }
        | GitError::Corrupt { .. }
        | GitError::Malformed { .. }
        | GitError::Cache { .. } => Try::Away(why),
    }
}

#[cfg(test)]
mod tests;
