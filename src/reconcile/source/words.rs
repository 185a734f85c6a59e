//! The decisions branch: people's words, by rollout.

use super::state::Records;
use crate::gate::decisions::DecisionFile;
use crate::git::{Brought, GitError, Person, Store};
use crate::manifest::decision::{self, DecisionAction};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::ids::{BlobId, CommitId, RolloutId, RunId};
use crate::plan::input::Decisions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The files of one rollout that were there at some commit.
type There = Arc<BTreeSet<(RepoPath, BlobId)>>;

/// People's words at one tip.
#[derive(Debug, Clone, Default)]
pub struct Words {
    tip: Option<CommitId>,
    filed: BTreeMap<RolloutId, Arc<Vec<DecisionFile>>>,
    /// What was there when the open (else the last) run of a rollout started, for rollouts with words.
    at_start: BTreeMap<RolloutId, There>,
}

impl Words {
    /// What is said about a rollout.
    #[must_use]
    pub fn about(&self, id: &RolloutId) -> Decisions {
        Decisions {
            tip: self.tip.clone(),
            filed: self.filed.get(id).map(|files| files.to_vec()).unwrap_or_default(),
            at_start: self.at_start.get(id).map(|files| (**files).clone()).unwrap_or_default(),
            requests: BTreeMap::new(),
        }
    }

    /// The files about a rollout: the same value while they are the same.
    #[must_use]
    pub fn filed(&self, id: &RolloutId) -> Option<Arc<Vec<DecisionFile>>> {
        self.filed.get(id).cloned()
    }

    /// Those of them that were not there when the open run, else the last one, started.
    pub fn later(&self, id: &RolloutId) -> impl Iterator<Item = &DecisionFile> {
        let at_start = self.at_start.get(id);
        let is_later = move |file: &&DecisionFile| {
            at_start.is_none_or(|there| !there.contains(&(file.path.clone(), file.blob.clone())))
        };
        self.filed.get(id).into_iter().flat_map(|files| files.iter()).filter(is_later)
    }

    /// The runs that people want to go back to.
    pub(super) fn rollbacks(&self, id: &RolloutId) -> impl Iterator<Item = &RunId> {
        let files = self.filed.get(id).into_iter().flat_map(|files| files.iter());
        let words = files.filter_map(|file| file.decision.as_ref().ok());
        words.filter(|word| word.action == DecisionAction::Rollback).map(|word| &word.run)
    }
}

/// What is kept between two looks at the decisions.
#[derive(Default)]
pub(super) struct Cache {
    tip: Option<CommitId>,
    filed: BTreeMap<RolloutId, Arc<Vec<DecisionFile>>>,
    there: BTreeMap<(CommitId, RolloutId), There>,
}

impl Cache {
    /// Reads the words at `tip`; of rollouts with words also what was there when their run started.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        tip: Option<&CommitId>,
        records: &Records,
        ourselves: &Person,
    ) -> Result<Words, GitError> {
        if self.tip.as_ref() != tip {
            self.filed = match tip {
                Some(tip) => self.filed_at(store, tip, ourselves).await?,
                None => BTreeMap::new(),
            };
            self.tip = tip.cloned();
        }
        let mut at_start = BTreeMap::new();
        let mut asked = BTreeSet::new();
        for (id, filed) in &self.filed {
            let Some(state) = records.get(id).and_then(|record| record.state.as_ref().ok()) else { continue };
            let Some(commit) = state.decisions_at() else { continue };
            let key = (commit.clone(), id.clone());
            let there = match self.there.get(&key) {
                Some(there) => Arc::clone(there),
                None => Arc::new(there_at(store, commit, id, filed).await?),
            };
            asked.insert(key.clone());
            self.there.insert(key, Arc::clone(&there));
            at_start.insert(id.clone(), there);
        }
        self.there.retain(|key, _| asked.contains(key));
        Ok(Words { tip: tip.cloned(), filed: self.filed.clone(), at_start })
    }

    async fn filed_at(
        &self,
        store: &Store,
        tip: &CommitId,
        ourselves: &Person,
    ) -> Result<BTreeMap<RolloutId, Arc<Vec<DecisionFile>>>, GitError> {
        let files = match store.files(tip, None).await {
            Ok(files) => files,
            Err(error @ (GitError::BadTree { .. } | GitError::Limit { .. } | GitError::Malformed { .. })) => {
                // No word is heard rather than some.
                tracing::warn!(%error, "the decisions branch cannot be read");
                return Ok(BTreeMap::new());
            }
            Err(error) => return Err(error),
        };
        let mut filed: BTreeMap<RolloutId, Vec<DecisionFile>> = BTreeMap::new();
        for (path, entry) in files {
            let (Some(id), Entry::File { blob, bytes }) = (rollout_of(&path), entry) else { continue };
            let known = self.filed.get(&id).and_then(|files| files.iter().find(|f| f.path == path && f.blob == blob));
            let file = match known {
                Some(known) => known.clone(),
                None => {
                    let brought = match store.brought(tip, &path).await {
                        Ok(brought) => brought,
                        Err(GitError::Missing(_) | GitError::Limit { .. }) => None,
                        Err(error) => return Err(error),
                    };
                    let read = decision::parse(&path, &bytes);
                    let decision =
                        read.map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
                    let by = brought.as_ref().map_or_else(|| "somebody".to_owned(), |brought| who(brought, ourselves));
                    let merged = brought.as_ref().and_then(|brought| brought.merged.clone());
                    DecisionFile { path, blob, by, brought: brought.map(|brought| brought.commit), merged, decision }
                }
            };
            filed.entry(id).or_default().push(file);
        }
        let same = |(id, files): (RolloutId, Vec<DecisionFile>)| {
            let known = self.filed.get(&id).filter(|known| ***known == files).cloned();
            let files = known.unwrap_or_else(|| Arc::new(files));
            (id, files)
        };
        Ok(filed.into_iter().map(same).collect())
    }
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

/// `<namespace>/<name>/<file>.yaml`.
fn rollout_of(path: &RepoPath) -> Option<RolloutId> {
    let dir = path.parent()?;
    path.file_name().ends_with(".yaml").then(|| dir.as_str().parse().ok())?
}

async fn there_at(
    store: &Store,
    commit: &CommitId,
    id: &RolloutId,
    filed: &[DecisionFile],
) -> Result<BTreeSet<(RepoPath, BlobId)>, GitError> {
    let dir: RepoPath = id.to_string().parse().expect("a path of names, because both are DNS labels");
    let blobs = |files: Files| {
        let blob = |(path, entry)| match entry {
            Entry::File { blob, .. } => Some((path, blob)),
            Entry::TooLarge { .. } | Entry::BadName { .. } | Entry::Symlink | Entry::Submodule => None,
        };
        files.into_iter().filter_map(blob).collect()
    };
    match store.files(commit, Some(&dir)).await {
        Ok(files) => Ok(blobs(files)),
        // The directory was not there yet, or the branch was rewritten and the commit is lost: then nobody can tell what
        // is new, and nothing counts.
        Err(GitError::Missing(_)) => match store.tree_id(commit, None).await {
            Ok(_) => Ok(BTreeSet::new()),
            Err(GitError::Missing(_)) => {
                tracing::warn!(rollout = %id, %commit, "the decisions branch was rewritten: no word about this run counts");
                Ok(filed.iter().map(|file| (file.path.clone(), file.blob.clone())).collect())
            }
            Err(error) => Err(error),
        },
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
