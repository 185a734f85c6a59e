//! Whose the commits of a branch are: what the keys that count have signed, and what has come in between.
//!
//! A commit says with the line [`ADOPTS`] that a person, who has the key, has accepted all that lies behind it: there the
//! looking back ends. Without such a commit each one has to be signed, as each was made on top of one that was looked at.

use super::commit::{CommitDraft, Signer, commit_id, seal};
use super::history::{subject, time};
use super::signed_payload::{Opened, open};
use super::{GitError, Store, oid};
use crate::manifest::ids::CommitId;
use crate::record::state::Time;
use crate::sign::{self, PublicKey, SignedBy, SigningKey};
use git2::{Commit, Repository};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What the line begins with that says which tip a commit accepts.
pub(super) const ADOPTS: &str = "Tidegate-Adopts: ";

/// Keys whose commits are believed.
pub type Keys = Arc<BTreeSet<PublicKey>>;

/// What commits of the record are signed with, and whose are believed.
#[derive(Clone)]
pub struct CommitSigning {
    /// The key of this installation.
    pub key: Arc<SigningKey>,
    /// All that are believed, its own too.
    pub trusted: Keys,
}

impl CommitSigning {
    /// Signs with `key`; believes it and `others`.
    #[must_use]
    pub fn new(key: Arc<SigningKey>, others: impl IntoIterator<Item = PublicKey>) -> Self {
        let trusted = others.into_iter().chain([key.public().clone()]).collect();
        Self { key, trusted: Arc::new(trusted) }
    }
}

impl fmt::Debug for CommitSigning {
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
    pub time: Time,
    /// What its signature is worth.
    pub verdict: SignatureVerdict,
    /// Whether it says that all that lies behind it is accepted.
    pub adopts: bool,
}

/// What a signature is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// A key that counts has signed it.
    Trusted(PublicKey),
    /// A key that does not count has.
    Foreign(PublicKey),
    /// Nobody has.
    Unsigned,
    /// It has a signature that proves nothing.
    Void(&'static str),
}

impl fmt::Display for SignatureVerdict {
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
        matches!(self.verdict, SignatureVerdict::Trusted(_))
    }
}

impl Store {
    /// The keys whose commits of the record are believed; none, where all are.
    #[must_use]
    pub fn trusted(&self) -> Option<Keys> {
        self.inner.config.signing.as_ref().map(|signing| Arc::clone(&signing.trusted))
    }

    /// The commits of the branch that ends at `tip`, newest first, back to one that is trusted and accepts what lies behind it.
    ///
    /// # Errors
    /// `Missing` when the tip is not in the cache.
    pub async fn sealed(&self, tip: &CommitId, keys: &Keys) -> Result<Vec<Sealed>, GitError> {
        let (tip, keys) = (tip.clone(), Arc::clone(keys));
        self.on_cache(move |_, repository| {
            Walk { repository, keys: &keys, known: &BTreeSet::new() }.back_from(&tip, |_| Next::Parents)
        })
        .await
    }

    /// The first of them, as far as they are not `known`, that is not trusted; the tip itself is looked at in any case. What lies behind it
    /// is not: whoever made it may have made that as long as they like.
    ///
    /// # Errors
    /// `Missing` when the tip is not in the cache.
    pub async fn foreign(
        &self,
        tip: &CommitId,
        keys: &Keys,
        known: &BTreeSet<CommitId>,
    ) -> Result<Option<Sealed>, GitError> {
        let (tip, keys, known) = (tip.clone(), Arc::clone(keys), known.clone());
        let looked = self.on_cache(move |_, repository| {
            let ends = |sealed: &Sealed| if sealed.is_trusted() { Next::Parents } else { Next::Nothing };
            Walk { repository, keys: &keys, known: &known }.back_from(&tip, ends)
        });
        Ok(looked.await?.into_iter().find(|sealed| !sealed.is_trusted()))
    }

    /// Makes a signed commit on top of `tip` with the files of `of`, or those of the tip. It accepts all that lies behind it,
    /// and descends from `of` as well, so that a branch that was replaced leads on from where it was. Subject, body, author
    /// and time are the draft's.
    ///
    /// # Errors
    /// `Missing` when a commit is not in the cache.
    pub async fn vouch(
        &self,
        draft: CommitDraft,
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
            seal(repository, &CommitDraft { body, ..draft }, &root, &parents, Some(&Signer::Key(key))).map(commit_id)
        })
        .await
    }
}

/// What is looked at after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Those before it.
    Parents,
    /// Nothing more.
    Nothing,
}

/// A way back through the commits of a branch.
struct Walk<'a> {
    repository: &'a Repository,
    keys: &'a BTreeSet<PublicKey>,
    /// What is not looked at again.
    known: &'a BTreeSet<CommitId>,
}

impl Walk<'_> {
    /// The tip and those behind it, newest first.
    fn back_from(&self, tip: &CommitId, next: impl Fn(&Sealed) -> Next) -> Result<Vec<Sealed>, GitError> {
        let (mut found, mut met) = (Vec::new(), BTreeSet::new());
        let mut ahead = vec![oid(tip.as_str())];
        while let Some(id) = ahead.pop() {
            let name = commit_id(id);
            if !met.insert(id) || (name != *tip && self.known.contains(&name)) {
                continue;
            }
            let commit = self.repository.find_commit(id).map_err(|error| GitError::commit(&name, error))?;
            let sealed = look(self.repository, &commit, self.keys)?;
            if next(&sealed) == Next::Nothing {
                ahead.clear();
            } else if !(sealed.adopts && sealed.is_trusted()) {
                ahead.extend(commit.parent_ids());
            }
            found.push(sealed);
        }
        Ok(found)
    }
}

impl SignatureVerdict {
    /// What a signature of `content` is worth where `keys` count.
    pub(super) fn of(signature: Option<&[u8]>, content: &[u8], keys: &BTreeSet<PublicKey>) -> Self {
        match sign::signed_by(signature, content) {
            SignedBy::By(key) if keys.contains(&key) => Self::Trusted(key),
            SignedBy::By(key) => Self::Foreign(key),
            SignedBy::Void(what) => Self::Void(what),
            SignedBy::None => Self::Unsigned,
        }
    }
}

fn look(repository: &Repository, commit: &Commit<'_>, keys: &BTreeSet<PublicKey>) -> Result<Sealed, GitError> {
    let verdict = match open(repository, commit)? {
        Ok(Opened { signature, content }) => SignatureVerdict::of(signature.as_deref(), &content, keys),
        Err(what) => SignatureVerdict::Void(what),
    };
    let accepted = commit.parent_ids().next().map(|parent| format!("{ADOPTS}{parent}"));
    let message = String::from_utf8_lossy(commit.message_bytes());
    let adopts = accepted.is_some_and(|accepted| message.lines().any(|line| line == accepted));
    Ok(Sealed { commit: commit_id(commit.id()), subject: subject(commit), time: time(commit), verdict, adopts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::openpgp::Keyring;
    use git2::{ObjectType, Signature};

    #[test]
    fn attack_16_87_what_git_and_gpg_sign_is_over_the_commit_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(dir.path()).unwrap();
        let keyring = Keyring::parse(include_str!("../sign/fixtures/openpgp/ed25519.asc")).unwrap();
        let raw = include_str!("../sign/fixtures/openpgp/commit");
        let objects = repository.odb().unwrap();
        let counts = |raw: &str| {
            let id = objects.write(ObjectType::Commit, raw.as_bytes()).unwrap();
            let opened = open(&repository, &repository.find_commit(id).unwrap()).unwrap();
            opened.is_ok_and(|opened| {
                let signature = opened.signature.unwrap_or_default();
                keyring.judge(&signature, &opened.content, "2026-01-01T00:00:00Z".parse().unwrap()).is_ok()
            })
        };
        assert!(counts(raw));
        for (from, to) in [
            ("tree 4b825dc6", "tree 4b825dc7"),
            ("author Ana", "author Ann"),
            ("change\n", "change\r\n"),
            ("is a header\n", "is a header\n\0and more"),
            ("is a header\n", "is a header"),
            ("\ngpgsig -", "\nencoding UTF-8\ngpgsig -"),
            ("\ngpgsig -", "\ngpgsig x\ngpgsig -"),
        ] {
            let changed = raw.replacen(from, to, 1);
            assert!(changed != raw && !counts(&changed), "{changed}");
        }
        let (before, signature) = raw.split_once("gpgsig -").unwrap();
        let (signature, after) = signature.split_once("\n\n").unwrap();
        assert!(counts(&format!("{before}gpgsig -{signature}\n\n{after}")));
        assert!(!counts(&format!("{before}\n{after}gpgsig -{signature}\n")), "in the message it is none");
    }

    #[test]
    fn attack_98_a_foreign_past_is_not_walked_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(dir.path()).unwrap();
        let who = Signature::new("eve", "eve@example.org", &git2::Time::new(0, 0)).unwrap();
        let tree = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let mut tip: Option<git2::Oid> = None;
        for number in 0..9 {
            let parent = tip.map(|tip| repository.find_commit(tip).unwrap());
            let parents: Vec<_> = parent.iter().collect();
            tip = Some(repository.commit(None, &who, &who, &number.to_string(), &tree, &parents).unwrap());
        }
        let (keys, known) = (BTreeSet::new(), BTreeSet::new());
        let walk = Walk { repository: &repository, keys: &keys, known: &known };
        let looked = |next| walk.back_from(&commit_id(tip.unwrap()), |_| next).unwrap().len();
        assert_eq!((looked(Next::Parents), looked(Next::Nothing)), (9, 1));
    }
}
