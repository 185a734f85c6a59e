//! Whose the commits of a branch are: what the keys that count have signed, and what has come in between.
//!
//! A commit says with the line [`ADOPTS`] that a person, who has the key, has accepted all that lies behind it: there the
//! looking back ends. Without such a commit each one has to be signed, as each was made on top of one that was looked at.

use super::commit::{Draft, commit_id, seal};
use super::history::{subject, time};
use super::{GitError, Store, oid};
use crate::manifest::ids::CommitId;
use crate::sign::{self, PublicKey, Seal, Signers, SigningKey};
use chrono::{DateTime, Utc};
use git2::{Commit, ErrorCode, Repository};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What the line begins with that says which tip a commit accepts.
pub(super) const ADOPTS: &str = "Tidegate-Adopts: ";

/// Keys whose commits are believed.
pub type Keys = Arc<BTreeSet<PublicKey>>;

/// What commits of the record are signed with, and whose are believed.
#[derive(Clone)]
pub struct Signing {
    /// The key of this installation.
    pub key: Arc<SigningKey>,
    /// All that are believed, its own too.
    pub trusted: Keys,
}

impl Signing {
    /// Signs with `key`; believes it and `others`.
    #[must_use]
    pub fn new(key: Arc<SigningKey>, others: impl IntoIterator<Item = PublicKey>) -> Self {
        let trusted = others.into_iter().chain([key.public().clone()]).collect();
        Self { key, trusted: Arc::new(trusted) }
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("trusted", &self.trusted).finish_non_exhaustive()
    }
}

/// A commit, and who has signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its id.
    pub commit: CommitId,
    /// The first line of its message, escaped.
    pub subject: String,
    /// When it was committed.
    pub time: DateTime<Utc>,
    /// What its signature is worth.
    pub verdict: Verdict,
    /// Whether it says that all that lies behind it is accepted.
    pub adopts: bool,
}

/// What a signature is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A key that counts has signed it.
    Trusted(PublicKey),
    /// A key that does not count has.
    Foreign(PublicKey),
    /// Nobody has.
    Unsigned,
    /// It has a signature that proves nothing.
    Void(&'static str),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted(key) => write!(f, "is signed by {}", key.fingerprint()),
            Self::Foreign(key) => write!(f, "is signed by {}, a key that is not trusted", key.fingerprint()),
            Self::Unsigned => f.write_str("is not signed"),
            Self::Void(what) => write!(f, "carries {what}"),
        }
    }
}

impl Sealed {
    /// Whether a key that counts has signed it.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self.verdict, Verdict::Trusted(_))
    }
}

impl Store {
    /// The keys whose commits of the record are believed; none, where all are.
    #[must_use]
    pub fn trusted(&self) -> Option<Keys> {
        self.inner.config.signing.as_ref().map(|signing| Arc::clone(&signing.trusted))
    }

    /// The commits of the branch that ends at `tip`, newest first, back to those that are `known`, or to one that is
    /// trusted and accepts what lies behind it. The tip itself is always among them.
    ///
    /// # Errors
    /// `Missing` when the tip is not in the cache.
    pub async fn sealed(
        &self,
        tip: &CommitId,
        keys: &Keys,
        known: &BTreeSet<CommitId>,
    ) -> Result<Vec<Sealed>, GitError> {
        let (tip, keys, known) = (tip.clone(), Arc::clone(keys), known.clone());
        self.on_cache(move |_, repository| {
            let (mut found, mut met) = (Vec::new(), BTreeSet::new());
            let mut ahead = vec![oid(tip.as_str())];
            while let Some(id) = ahead.pop() {
                let name = commit_id(id);
                if !met.insert(id) || (name != tip && known.contains(&name)) {
                    continue;
                }
                let commit = repository.find_commit(id).map_err(|error| GitError::commit(&name, error))?;
                let sealed = look(repository, &commit, &keys)?;
                if !(sealed.adopts && sealed.is_trusted()) {
                    ahead.extend(commit.parent_ids());
                }
                found.push(sealed);
            }
            Ok(found)
        })
        .await
    }

    /// Why nobody who may sign has signed that commit, which has to be so where the installation names a list of signers.
    ///
    /// # Errors
    /// `Missing` when the commit is not in the cache.
    pub async fn unverified(&self, commit: &CommitId) -> Result<Option<String>, GitError> {
        let Some(file) = self.inner.config.signers_file.clone() else { return Ok(None) };
        let id = commit.clone();
        self.on_cache(move |_, repository| {
            let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(&id, error))?;
            let listed =
                |why: String| Ok(Some(format!("the list of signers {} cannot be used: {why}", file.display())));
            let signers = match std::fs::read_to_string(&file).map(|text| Signers::parse(&text)) {
                Ok(Ok(signers)) => signers,
                Ok(Err(error)) => return listed(error.to_string()),
                Err(error) => return listed(error.to_string()),
            };
            let verdict = look(repository, &commit, &BTreeSet::new())?.verdict;
            if let Verdict::Foreign(key) = &verdict
                && signers.name(key, time(&commit)).is_some()
            {
                return Ok(None);
            }
            Ok(Some(format!("commit {id} {verdict}; {} lists who may sign it", file.display())))
        })
        .await
    }

    /// Makes a signed commit on top of `tip` with the files of `of`, or those of the tip. It accepts all that lies behind it,
    /// and descends from `of` as well, so that a branch that was replaced leads on from where it was. Subject, body, author
    /// and time are the draft's.
    ///
    /// # Errors
    /// `Missing` when a commit is not in the cache.
    pub async fn vouch(
        &self,
        draft: Draft,
        tip: &CommitId,
        of: Option<&CommitId>,
        key: Arc<SigningKey>,
    ) -> Result<CommitId, GitError> {
        let (tip, of) = (tip.clone(), of.cloned());
        self.on_cache(move |_, repository| {
            let find =
                |id: &CommitId| repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(id, error));
            let newest = find(&tip)?;
            let source = of.as_ref().map(find).transpose()?;
            let failed = |error| GitError::local("write a commit", error);
            let root = source.as_ref().unwrap_or(&newest).tree().map_err(failed)?;
            let aside = match &source {
                Some(old) if old.id() == newest.id() => None,
                Some(old) if repository.graph_descendant_of(newest.id(), old.id()).map_err(failed)? => None,
                source => source.as_ref(),
            };
            let parents: Vec<&Commit<'_>> = [&newest].into_iter().chain(aside).collect();
            let body = format!("{}\n{ADOPTS}{tip}", draft.body).trim_start().to_owned();
            seal(repository, &Draft { body, ..draft }, &root, &parents, Some(&key)).map(commit_id)
        })
        .await
    }
}

fn look(repository: &Repository, commit: &Commit<'_>, keys: &BTreeSet<PublicKey>) -> Result<Sealed, GitError> {
    let verdict = match repository.extract_signature(&commit.id(), None) {
        Ok((signature, content)) => match sign::seal(Some(&signature), &content) {
            Seal::By(key) if keys.contains(&key) => Verdict::Trusted(key),
            Seal::By(key) => Verdict::Foreign(key),
            Seal::Void(what) => Verdict::Void(what),
            Seal::None => Verdict::Unsigned,
        },
        Err(error) if error.code() == ErrorCode::NotFound => Verdict::Unsigned,
        Err(error) => return Err(GitError::local(&format!("read the signature of {}", commit.id()), error)),
    };
    let accepted = commit.parent_ids().next().map(|parent| format!("{ADOPTS}{parent}"));
    let message = String::from_utf8_lossy(commit.message_bytes());
    let adopts = accepted.is_some_and(|accepted| message.lines().any(|line| line == accepted));
    Ok(Sealed { commit: commit_id(commit.id()), subject: subject(commit), time: time(commit), verdict, adopts })
}
