//! The decisions branch: people's decisions, by rollout.

use super::state::LoadedRecords;
use crate::gate::decisions::DecisionFile;
use crate::git::{Brought, GitError, Leaf, Person, Store};
use crate::manifest::decision::{self, DecisionAction};
use crate::manifest::diagnostic::Code;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, RolloutId, RunId};
use crate::plan::input::Decisions;
use crate::record::text::plain;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The files of one rollout that were there at some commit; none if nobody can tell.
type There = Option<Arc<BTreeSet<(RepoPath, BlobId)>>>;
/// What the rollouts' directories hold.
type Filed = BTreeMap<RolloutId, Arc<Vec<DecisionFile>>>;

/// Of so many files of a rollout that are no decisions it is kept why; there can be many thousands.
const TOLD: usize = 100;
/// What is kept of all others.
const UNTOLD: &str = "it is no decision; others here say why";

/// People's decisions at one tip.
#[derive(Debug, Clone, Default)]
pub struct FiledDecisions {
    tip: Option<CommitId>,
    filed: Filed,
    /// Why a directory cannot be read, of a rollout, of a namespace, or (without a name) of all.
    unreadable: BTreeMap<String, String>,
    /// What was there when the open (else the last) run of a rollout started, for rollouts with decisions.
    at_start: BTreeMap<RolloutId, There>,
}

impl FiledDecisions {
    /// Nobody knows what is said at that tip.
    pub(super) fn unread(tip: Option<CommitId>, why: String) -> Self {
        Self { tip, unreadable: [(String::new(), why)].into(), ..Self::default() }
    }

    /// What is said about a rollout.
    #[must_use]
    pub fn about(&self, id: &RolloutId) -> Decisions {
        Decisions {
            tip: self.tip.clone(),
            filed: self.filed.get(id).cloned().unwrap_or_default(),
            at_start: self.at_start.get(id).cloned().unwrap_or_else(|| Some(Arc::default())),
            requests: BTreeMap::new(),
            unreadable: self.unreadable(id).map(str::to_owned),
        }
    }

    /// Why nobody knows what is said about a rollout.
    #[must_use]
    pub fn unreadable(&self, id: &RolloutId) -> Option<&str> {
        let own = id.to_string();
        ["", id.namespace.as_str(), &own].iter().find_map(|dir| self.unreadable.get(*dir)).map(String::as_str)
    }

    /// The files about a rollout: the same value while they are the same.
    #[must_use]
    pub fn filed(&self, id: &RolloutId) -> Option<Arc<Vec<DecisionFile>>> {
        self.filed.get(id).cloned()
    }

    /// Whether it is known what of them was there when the open run, else the last one, started.
    pub(in crate::reconcile) fn is_dated(&self, id: &RolloutId) -> bool {
        self.at_start.get(id).is_none_or(Option::is_some)
    }

    /// Those of them that were not there when the open run, else the last one, started, as far as that is known.
    pub fn later(&self, id: &RolloutId) -> impl Iterator<Item = &DecisionFile> {
        let at_start = self.at_start.get(id);
        let is_later = move |file: &&DecisionFile| {
            let before = |there: &Arc<BTreeSet<_>>| there.contains(&(file.path.clone(), file.blob.clone()));
            at_start.is_none_or(|there| there.as_ref().is_some_and(|there| !before(there)))
        };
        self.filed.get(id).into_iter().flat_map(|files| files.iter()).filter(is_later)
    }

    /// The runs that people want to go back to.
    pub(super) fn rollbacks(&self, id: &RolloutId) -> impl Iterator<Item = &RunId> {
        let files = self.filed.get(id).into_iter().flat_map(|files| files.iter());
        let decisions = files.filter_map(|file| file.decision.as_ref().ok());
        decisions.filter(|decision| decision.action == DecisionAction::Rollback).map(|decision| &decision.run)
    }
}

/// What is kept between two looks at the decisions.
#[derive(Default)]
pub(super) struct Cache {
    tip: Option<CommitId>,
    filed: Filed,
    unreadable: BTreeMap<String, String>,
    there: BTreeMap<(CommitId, RolloutId), There>,
}

impl Cache {
    /// Reads the decisions at `tip`; of rollouts with decisions also what was there when their run started.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        tip: Option<&CommitId>,
        records: &LoadedRecords,
        ourselves: &Person,
    ) -> Result<FiledDecisions, GitError> {
        if self.tip.as_ref() != tip {
            (self.filed, self.unreadable) = match tip {
                Some(tip) => self.filed_at(store, tip, ourselves).await?,
                None => Default::default(),
            };
            self.tip = tip.cloned();
            // Who has put the branch back has brought it, too.
            self.there.retain(|_, there| there.is_some());
        }
        let mut at_start = BTreeMap::new();
        let mut asked = BTreeSet::new();
        for id in self.filed.keys() {
            let Some(state) = records.get(id).and_then(|record| record.state.as_ref().ok()) else { continue };
            let Some(commit) = state.decisions_at() else { continue };
            let key = (commit.clone(), id.clone());
            let there = match self.there.get(&key) {
                Some(there) => there.clone(),
                None => there_at(store, commit, id).await?,
            };
            asked.insert(key.clone());
            self.there.insert(key, there.clone());
            at_start.insert(id.clone(), there);
        }
        self.there.retain(|key, _| asked.contains(key));
        Ok(FiledDecisions {
            tip: tip.cloned(),
            filed: self.filed.clone(),
            unreadable: self.unreadable.clone(),
            at_start,
        })
    }

    /// What each directory holds; why one cannot be read. Of such a one none counts rather than some.
    async fn filed_at(
        &self,
        store: &Store,
        tip: &CommitId,
        ourselves: &Person,
    ) -> Result<(Filed, BTreeMap<String, String>), GitError> {
        let (mut shelves, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (dir, read) in store.shelves(tip).await? {
            match read {
                Ok(mut directory_index) => {
                    directory_index.retain(|path, _| path.file_name().ends_with(".yaml"));
                    shelves.extend(dir.parse::<RolloutId>().ok().map(|id| (id, directory_index)));
                }
                Err(error) => {
                    tracing::warn!(dir, %error, "what lies there on the decisions branch cannot be read");
                    unreadable.insert(dir, error.to_string());
                }
            }
        }
        let all = shelves
            .iter()
            .flat_map(|(id, directory_index)| directory_index.iter().map(move |(path, leaf)| (id, path, leaf)));
        let fresh = all.filter(|(id, path, leaf)| self.known(id, path, &leaf.id).is_none());
        let mut brought = store.brought(tip, fresh.map(|(_, path, _)| path.clone()).collect()).await?;
        let mut filed = Filed::new();
        for (id, directory_index) in shelves {
            let (mut files, mut none, mut told) = (Vec::new(), BTreeSet::new(), 0);
            for (path, leaf) in directory_index {
                let mut read = match self.known(&id, &path, &leaf.id) {
                    Some(file) => file.clone(),
                    None => {
                        let brought = brought.remove(&path);
                        file(store, tip, path, leaf, brought, ourselves, &mut none).await?
                    }
                };
                told += usize::from(read.decision.is_err());
                if told > TOLD && read.decision.is_err() {
                    (read.by, read.decision) = ("somebody".to_owned(), Err(UNTOLD.to_owned()));
                }
                files.push(read);
            }
            let same = self.filed.get(&id).filter(|known| ***known == files).cloned();
            if !files.is_empty() {
                filed.insert(id, same.unwrap_or_else(|| Arc::new(files)));
            }
        }
        Ok((filed, unreadable))
    }

    /// A file that was read before.
    fn known(&self, id: &RolloutId, path: &RepoPath, blob: &BlobId) -> Option<&DecisionFile> {
        let files = self.filed.get(id)?;
        // By path, as they were read.
        let at = files.binary_search_by(|file| file.path.cmp(path)).ok()?;
        files.get(at).filter(|file| file.blob == *blob)
    }
}

/// A file that was not read before. What is none says so, as one does that is no decision; `none` are contents that are none wherever
/// they lie, and are read once.
async fn file(
    store: &Store,
    tip: &CommitId,
    path: RepoPath,
    Leaf { id: blob, odd }: Leaf,
    brought: Option<Brought>,
    ourselves: &Person,
    none: &mut BTreeSet<BlobId>,
) -> Result<DecisionFile, GitError> {
    let bytes = match odd {
        None if none.contains(&blob) => None,
        None => store.file(tip, &path).await?,
        Some(_) => None,
    };
    let decision = match bytes {
        Some(bytes) => decision::parse(&path, &bytes).map_err(|found| {
            if found.iter().all(|diagnostic| diagnostic.code != Code::DecisionPath) {
                none.insert(blob.clone());
            }
            // The first is enough to mend it by, and it is kept for as long as the file lies there.
            plain(&found.first().map(ToString::to_string).unwrap_or_default())
        }),
        None if none.contains(&blob) => Err(UNTOLD.to_owned()),
        None => Err(format!("{path} is {} and no decision", odd.unwrap_or("something else"))),
    };
    let by = brought.as_ref().map_or_else(|| "somebody".to_owned(), |brought| plain(&who(brought, ourselves)));
    let merged = brought.as_ref().and_then(|brought| brought.merged.clone());
    Ok(DecisionFile { path, blob, by, brought: brought.map(|brought| brought.commit), merged, decision })
}

/// Who decided, as far as Git tells: whoever made the commit that brought the file to the branch. We make the commits of
/// requests, but never push one to the branch: one of ours at this place was pushed there as it is.
fn who(Brought { commit: _, merged: _, author, committer }: &Brought, ourselves: &Person) -> String {
    let somebody = |person: &&Person| person.email != ourselves.email;
    match (somebody(&author).then_some(author), somebody(&committer).then_some(committer)) {
        (Some(author), Some(committer)) if author != committer => format!("{author} (committed by {committer})"),
        (Some(person), _) | (None, Some(person)) => person.to_string(),
        (None, None) => "fast-forward (who pushed it is not in Git)".to_owned(),
    }
}

async fn there_at(store: &Store, commit: &CommitId, id: &RolloutId) -> Result<There, GitError> {
    let dir: RepoPath = id.to_string().parse().expect("a path of names, because both are DNS labels");
    match store.directory_index(commit, &dir).await {
        // Without a directory nothing was there yet.
        Ok(directory_index) => {
            let there = directory_index.into_iter().flatten().map(|(path, leaf)| (path, leaf.id));
            Ok(Some(Arc::new(there.collect())))
        }
        // The branch was rewritten and the commit is lost, or what lay there could not be read: nobody can tell what is new.
        Err(error) if error.is_of_content() || matches!(error, GitError::Missing(_)) => {
            tracing::warn!(rollout = %id, %commit, %error, "nobody knows what was decided before this run: no word lets it go further");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::record::author;

    #[test]
    fn who_decided_is_whoever_is_not_us() {
        let us = author(&"prod".parse().unwrap());
        let person = |name: &str| Person { name: name.to_owned(), email: format!("{name}@example.com") };
        let (ana, host) = (person("ana"), person("host"));
        for (author, committer, said) in [
            (&ana, &ana, "ana <ana@example.com>"),
            (&us, &us, "fast-forward (who pushed it is not in Git)"),
            (&ana, &host, "ana <ana@example.com> (committed by host <host@example.com>)"),
            // Our commit, picked or rebased by somebody.
            (&us, &ana, "ana <ana@example.com>"),
        ] {
            let commit = "1".repeat(40).parse().unwrap();
            let brought = Brought { commit, merged: None, author: author.clone(), committer: committer.clone() };
            assert_eq!(who(&brought, &us), said);
        }
    }
}
