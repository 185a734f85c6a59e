//! What merging the branches of our requests would bring: read once for each head, before people are asked by it.
//!
//! What we have not made ourselves is fetched into a cache of its own: anybody who may push can write to these branches.

use super::main::Wanted;
use super::state::{LoadedRecord, LoadedRecords};
use super::{Branches, Tips};
use crate::forge::branch::{Asks, Head};
use crate::forge::request::{RequestError, undoing};
use crate::gate::approval;
use crate::gate::decisions::DecisionFile;
use crate::git::{Ancestry, Edit, GitError, Merge, Proposed, RefName, Store};
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, InstanceName, RolloutId, RunId};
use crate::manifest::oid;
use crate::plan::input::{HeadChange, HeadContent, RequestBranch};
use crate::record::history::{deletions, taken_back, voids};
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many are read in a turn: a new leader finds all that are open.
const AT_ONCE: usize = 4;
/// How soon a head is read again that could not be read.
const AGAIN: TimeDelta = TimeDelta::seconds(30);

/// With more of them than this only those count by which people can be asked, or were: whoever may push can make any number.
const CROWD: usize = 1_000;

/// What the branches of requests would bring, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    branches: BTreeMap<String, RequestBranch>,
    /// Those of them that people were asked by at some time, as far as this process has seen.
    asked: BTreeSet<String>,
}

impl Requests {
    /// What is known of the branches about a rollout.
    #[must_use]
    pub fn about(&self, instance: &InstanceName, tips: &Tips, id: &RolloutId) -> BTreeMap<String, RequestBranch> {
        let prefix = format!("{}{id}/", crate::forge::branch::propose_prefix(instance));
        let ours = tips.proposals.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        ours.map(|(name, head)| {
            let unread =
                || RequestBranch { head: head.clone(), content: HeadContent::Unread("it was not read yet".to_owned()) };
            let known = self.branches.get(name).filter(|branch| branch.head == *head);
            (name.clone(), known.cloned().unwrap_or_else(unread))
        })
        .collect()
    }

    /// By which branches these files came, of any rollout, as far as Git tells: where the head that lies there was merged, or is
    /// the commit that brought the file, or would bring the same. Only where people were asked by that name: whoever may push could
    /// take back everybody's decisions else.
    pub fn brought<'f>(
        &self,
        instance: &InstanceName,
        tips: &Tips,
        records: &LoadedRecords,
        files: impl Iterator<Item = &'f DecisionFile>,
    ) -> BTreeMap<RepoPath, BTreeSet<String>> {
        let branches = |file: &DecisionFile| -> BTreeSet<String> {
            let brings = |branch: &RequestBranch| match &branch.content {
                HeadContent::Read(change) => change.files.get(&file.path) == Some(&Some(file.blob.clone())),
                HeadContent::Unread(_) | HeadContent::Odd(_) => false,
            };
            let is_it = |(name, head): &(&String, &CommitId)| {
                [&file.brought, &file.merged].contains(&&Some((*head).clone()))
                    || self.branches.get(*name).is_some_and(|branch| branch.head == **head && brings(branch))
            };
            let was_asked = |name: &str| self.asked.contains(name) || was_asked(instance, records, name);
            let came_by = tips.proposals.iter().filter(is_it).map(|(name, _)| name);
            came_by.filter(|name| was_asked(name)).cloned().collect()
        };
        let brought = files.map(|file| (file.path.clone(), branches(file)));
        brought.filter(|(_, branches)| !branches.is_empty()).collect()
    }
}

/// Whether the record says that people were asked by a branch of that name: they still are, or its head was void.
fn was_asked(instance: &InstanceName, records: &LoadedRecords, name: &str) -> bool {
    let Some(head) = Head::parse(instance, name) else { return false };
    let record = records.get(&head.rollout);
    let Some(state) = record.and_then(|record| record.state.as_ref().ok()) else { return false };
    let deletion = state.deletions.asked.as_ref().and_then(|asked| asked.pull.as_ref());
    let mut pulls = state.run.iter().flat_map(|run| run.pulls.values()).chain(&state.revert).chain(deletion);
    let is_void = match &head.asks {
        Asks::Advance(step) => voids(state, &head.run, step).any(|void| void.head.is_some()),
        Asks::Delete => {
            deletions(state, &head.run).any(|word| word.void.as_ref().is_some_and(|void| void.head.is_some()))
        }
        Asks::Revert => false,
    };
    is_void || pulls.any(|pull| pull.branch == name)
}

/// The names of all branches that people can be asked by now, or are as the record says: what could be there of ours.
pub(super) fn names(instance: &InstanceName, records: &LoadedRecords) -> BTreeSet<String> {
    let LoadedRecords::Read(records) = records else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    for (id, record) in records.iter() {
        let Ok(state) = &record.state else { continue };
        let name = |run: &RunId, asks| Head { rollout: id.clone(), run: run.clone(), asks }.branch(instance);
        if let Some(run) = &state.run {
            let steps = record.plan.iter().flat_map(|plan| approval::ahead(plan, None));
            names.extend(steps.map(|step| name(&run.id, Asks::Advance(step))));
            names.extend(run.pulls.values().map(|pull| pull.branch.clone()));
        }
        names.extend(state.last_run.iter().map(|run| name(&run.id, Asks::Revert)));
        names.extend(state.revert.iter().map(|pull| pull.branch.clone()));
        if let Some(asked) = &state.deletions.asked {
            names.insert(name(&state.current(), Asks::Delete));
            names.extend(asked.pull.iter().map(|pull| pull.branch.clone()));
        }
    }
    names
}

/// What is kept between two looks at them.
#[derive(Default)]
pub(super) struct Cache {
    aside: Option<Store>,
    known: BTreeMap<String, RequestBranch>,
    /// By which of those that lie there people were asked, by us or as the record said.
    asked: BTreeSet<String>,
    /// When those were tried that could not be read.
    tried: BTreeMap<CommitId, Time>,
}

impl Cache {
    /// Tries again at once what could not be read.
    pub(super) fn retry(&mut self) {
        self.tried.clear();
    }
}

/// Beside what they are read.
pub(super) struct Beside<'a> {
    pub(super) store: &'a Store,
    pub(super) branches: &'a Branches,
    pub(super) tips: &'a Tips,
    pub(super) main: &'a Wanted,
    pub(super) records: &'a LoadedRecords,
    pub(super) now: Time,
}

/// Why a branch was not read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{0}")]
    Lacks(&'static str),
}

impl Cache {
    /// Reads those that the record may ask people by, and that are not known.
    pub(super) async fn read(&mut self, beside: &Beside<'_>) -> Arc<Requests> {
        let tips = &beside.tips.proposals;
        self.known.retain(|name, branch| tips.get(name) == Some(&branch.head));
        self.asked.retain(|name| tips.contains_key(name));
        let instance = &beside.branches.instance;
        self.asked.extend(tips.keys().filter(|name| was_asked(instance, beside.records, name)).cloned());
        self.tried.retain(|head, _| tips.values().any(|tip| tip == head));
        for (name, head, asked) in self.due(beside) {
            let content = match self.content(beside, &name, &head, &asked).await {
                Ok(change) => HeadContent::Read(change),
                Err(Unread::Git(error)) if error.is_of_content() => HeadContent::Odd(error.to_string()),
                Err(error) => {
                    tracing::warn!(branch = name, %head, %error, "nobody knows yet what the branch of a request would bring");
                    self.tried.insert(head.clone(), beside.now);
                    HeadContent::Unread(error.to_string())
                }
            };
            self.known.insert(name, RequestBranch { head, content });
        }
        self.known()
    }

    /// The tips without branches of requests by which nobody can be asked, where there are too many.
    pub(super) fn thinned(&self, mut tips: Tips, branches: &Branches, records: &LoadedRecords) -> Tips {
        let all = tips.proposals.len();
        let LoadedRecords::Read(records) = records else { return tips };
        if all <= CROWD {
            return tips;
        }
        let is_one = |name: &str, head: &CommitId| {
            let asked = Head::parse(&branches.instance, name)?;
            asks(records.get(&asked.rollout)?, &asked, head)
        };
        tips.proposals.retain(|name, head| self.asked.contains(name) || is_one(name, head).is_some());
        let left = tips.proposals.len();
        tracing::debug!(all, left, "of so many branches of requests only those count by which people can be asked");
        tips
    }

    /// What was read so far.
    pub(super) fn known(&self) -> Arc<Requests> {
        Arc::new(Requests { branches: self.known.clone(), asked: self.asked.clone() })
    }

    /// Whether there is any to read now.
    pub(super) fn is_due(&self, beside: &Beside<'_>) -> bool {
        !self.due(beside).is_empty()
    }

    /// Takes note of one that we have just made.
    pub(super) async fn made(&mut self, store: &Store, name: &str, head: &CommitId) -> Arc<Requests> {
        self.asked.insert(name.to_owned());
        if let Ok(Proposed { parents: _, files }) = store.proposed(head).await {
            let content = HeadContent::Read(HeadChange { alone: true, undoing: Some(files.clone()), files });
            self.known.insert(name.to_owned(), RequestBranch { head: head.clone(), content });
        }
        self.known()
    }

    /// Those to read in this turn; first what the record does not name, since nobody can be asked by it before.
    fn due(&self, beside: &Beside<'_>) -> Vec<(String, CommitId, Head)> {
        let LoadedRecords::Read(records) = beside.records else { return Vec::new() };
        let rests = |head: &CommitId| self.tried.get(head).is_some_and(|at| beside.now < *at + AGAIN);
        let unread = |name: &str, head: &CommitId| match self.known.get(name).filter(|branch| branch.head == *head) {
            Some(RequestBranch { content: HeadContent::Unread(_), .. }) => !rests(head),
            Some(_) => false,
            None => true,
        };
        let mut due = Vec::new();
        for (name, head) in beside.tips.proposals.iter().filter(|(name, head)| unread(name, head)) {
            let Some(asked) = Head::parse(&beside.branches.instance, name) else { continue };
            let record = records.get(&asked.rollout);
            let Some(is_asked) = record.and_then(|record| asks(record, &asked, head)) else { continue };
            due.push((is_asked, name.clone(), head.clone(), asked));
        }
        due.sort_by_key(|(is_asked, ..)| *is_asked);
        due.into_iter().take(AT_ONCE).map(|(_, name, head, asked)| (name, head, asked)).collect()
    }

    async fn content(
        &mut self,
        beside: &Beside<'_>,
        name: &str,
        head: &CommitId,
        asked: &Head,
    ) -> Result<HeadChange, Unread> {
        let Proposed { parents, files } = match beside.store.proposed(head).await {
            Err(GitError::Missing(_)) => {
                let aside = match &self.aside {
                    Some(aside) => aside,
                    None => self.aside.insert(beside.store.aside("proposals")?),
                };
                let name = RefName::branch(name).map_err(RequestError::from)?;
                aside.fetch_proposed(&name, head).await?;
                aside.proposed(head).await?
            }
            proposed => proposed?,
        };
        let (base, tip) = match asked.asks {
            Asks::Advance(_) | Asks::Delete => (&beside.branches.decisions, &beside.tips.decisions),
            Asks::Revert => (&beside.branches.main, &beside.tips.main),
        };
        let alone = match (&parents[..], tip) {
            ([], _) => true,
            ([parent], Some(tip)) => is_behind(beside.store, parent, base, tip).await?,
            ([_], None) | ([_, _, ..], _) => false,
        };
        let undoing = match (&asked.asks, &parents[..]) {
            (Asks::Revert, [parent]) if alone => undone(beside, asked, parent).await?,
            (Asks::Revert | Asks::Advance(_) | Asks::Delete, _) => None,
        };
        Ok(HeadChange { alone, files, undoing })
    }
}

/// Whether people are asked by that head; none where nobody could be by a branch of that name, so that nobody wants to know
/// what it would bring.
fn asks(record: &LoadedRecord, asked: &Head, head: &CommitId) -> Option<bool> {
    let state = record.state.as_ref().ok()?;
    let pull = match &asked.asks {
        Asks::Advance(through) => {
            let run = state.run.as_ref().filter(|run| run.id == asked.run)?;
            approval::asked_as(record.plan.as_deref()?, through).filter(|step| step == through)?;
            run.pulls.get(through)
        }
        Asks::Revert => {
            state.last_run.as_ref().filter(|run| run.id == asked.run)?;
            state.revert.as_ref()
        }
        Asks::Delete => state.deletions.asked.as_ref().filter(|_| state.current() == asked.run)?.pull.as_ref(),
    };
    Some(pull.is_some_and(|pull| pull.head == *head))
}

/// Whether a commit is one of the branch that ends at `tip`.
async fn is_behind(store: &Store, commit: &CommitId, branch: &RefName, tip: &CommitId) -> Result<bool, Unread> {
    let mut ancestry = store.is_ancestor(commit, tip).await?;
    if ancestry == Ancestry::Unknown {
        // Whatever keeps us from our own branch says nothing of theirs.
        let away = |_| Unread::Lacks("the past of the branch that it leads to cannot be fetched");
        store.fetch_ancestry(branch).await.map_err(away)?;
        ancestry = store.is_ancestor(commit, tip).await?;
    }
    match ancestry {
        Ancestry::Same | Ancestry::Ancestor => Ok(true),
        Ancestry::Not => Ok(false),
        Ancestry::Unknown => Err(Unread::Lacks("the past of the branch that it leads to is not at hand")),
    }
}

/// What undoing the run's change comes to on a commit of main; none where it meets other changes.
async fn undone(
    beside: &Beside<'_>,
    asked: &Head,
    main: &CommitId,
) -> Result<Option<BTreeMap<RepoPath, Option<BlobId>>>, Unread> {
    let record = beside.records.get(&asked.rollout).ok_or(Unread::Lacks("the record is not at hand"))?;
    let wanted = beside.main.rollout(&asked.rollout).ok_or(Unread::Lacks("what main wants is not at hand"))?;
    let sets = to_undo(record, wanted, &asked.run).ok_or(Unread::Lacks("the manifests are not at hand"))?;
    let edits = match undoing(beside.store, main, &wanted.path, sets).await? {
        Merge::Merged(edits) => edits,
        Merge::Conflict(_) => return Ok(None),
    };
    let blob = |edit: &Edit| match edit {
        Edit::Write(bytes) => Some(oid::blob(bytes)),
        Edit::Blob(blob) => Some(blob.clone()),
        Edit::Remove | Edit::RemoveDir => None,
    };
    Ok(Some(edits.iter().map(|(path, edit)| (path.clone(), blob(edit))).collect()))
}

/// What a run began with, and what serves in its place: what main changed directly since is not undone. After a rollback the former is what main still wants.
#[must_use]
pub(in crate::reconcile) fn to_undo<'r>(
    record: &'r LoadedRecord,
    wanted: &'r Rollout,
    run: &RunId,
) -> Option<[&'r Set; 2]> {
    let state = record.state.as_ref().ok()?;
    let theirs = record.sets.get(&state.promoted.as_ref()?.set)?;
    let past = taken_back(state).filter(|past| past.run == *run);
    let brought = past.and_then(|past| record.sets.get(past.began.as_ref().unwrap_or(&past.to)));
    Some([brought.unwrap_or(&wanted.set), theirs])
}
