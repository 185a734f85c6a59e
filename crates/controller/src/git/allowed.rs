//! Who may sign the tip of main: SSH keys on a list, OpenPGP keys in a keyring, or both; and whose on that list a commit is. The files
//! are read anew each time.

use super::history::time;
use super::signed::SignatureVerdict;
use super::signed_payload::open;
use super::{GitError, RemoteConfig, Store, oid};
use crate::manifest::ids::CommitId;
use crate::record::state::Time;
use crate::sign::Signers;
use crate::sign::openpgp::{self, Keyring};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Somebody on the list of allowed signers who has signed a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signatory {
    /// All that the list calls them.
    pub names: BTreeSet<String>,
    /// The fingerprint of their key.
    pub key: String,
    /// When the commit says that it was made.
    pub at: Time,
    /// Why they decide nothing now: whoever has the key can write any time into a commit.
    pub lapsed: Option<String>,
}

/// Bytes of one file: as many as a Secret or a ConfigMap holds.
const LONGEST: u64 = 1 << 20;

impl Store {
    /// Why nobody who may sign has signed that commit, which has to be so where the installation says who may.
    ///
    /// # Errors
    /// `Missing` when the commit is not in the cache.
    pub async fn unverified(&self, commit: &CommitId, now: Time) -> Result<Option<String>, GitError> {
        let config = &self.inner.config;
        if config.signers_file.is_none() && config.keyring_file.is_none() {
            return Ok(None);
        }
        let id = commit.clone();
        self.on_cache(move |inner, repository| {
            let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(&id, error))?;
            let allowed = match Allowed::read(&inner.config) {
                Ok(allowed) => allowed,
                Err(why) => return Ok(Some(why)),
            };
            let judged = match open(repository, &commit)? {
                Ok(opened) => allowed.judge(opened.signature.as_deref(), &opened.content, time(&commit), now),
                Err(what) => Err(format!("carries {what}")),
            };
            Ok(judged.err().map(|why| format!("commit {id} {why}; {}", inner.config.who_may())))
        })
        .await
    }
}

impl Store {
    /// All whom the list of allowed signers names, in lower case; none if there is no list.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn listed(&self) -> Result<Option<BTreeSet<String>>, String> {
        let signers = list("list of signers", self.inner.config.signers_file.as_ref(), Signers::parse)?;
        Ok(signers.map(|signers| signers.all().into_iter().map(str::to_ascii_lowercase).collect()))
    }

    /// Who of the list of allowed signers has signed each of these commits, with a key that was valid then; why nobody has. OpenPGP
    /// keys are nobody's here.
    ///
    /// # Errors
    /// `Config` when there is no list, or it cannot be read; `Missing` when a commit is not in the cache.
    pub async fn signatories(
        &self,
        commits: Vec<CommitId>,
        now: Time,
    ) -> Result<Vec<Result<Signatory, String>>, GitError> {
        self.on_cache(move |inner, repository| {
            let file = inner.config.signers_file.as_ref();
            let signers = list("list of signers", file, Signers::parse).map_err(GitError::Config)?;
            let none = || GitError::Config("no list of allowed signers is named".to_owned());
            let (signers, file) = signers.zip(file).ok_or_else(none)?;
            let judge = |id: &CommitId| {
                let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(id, error))?;
                let at = time(&commit);
                let found = match open(repository, &commit)? {
                    Ok(opened) => signatory(&signers, opened.signature.as_deref(), &opened.content, [at, now]),
                    Err(what) => Err(format!("carries {what}")),
                };
                let told = |why| format!("commit {id} {why}; {} lists who may sign", file.display());
                Ok(found.map(|by| Signatory { lapsed: by.lapsed.map(told), ..by }).map_err(told))
            };
            commits.iter().map(judge).collect()
        })
        .await
    }
}

fn signatory(
    signers: &Signers,
    signature: Option<&[u8]>,
    content: &[u8],
    [at, now]: [Time; 2],
) -> Result<Signatory, String> {
    match SignatureVerdict::of(signature, content, &BTreeSet::new()) {
        SignatureVerdict::Foreign(key) if !signers.names(&key, *at).is_empty() => {
            let (names, names_now) = (signers.names(&key, *at), signers.names(&key, *now));
            let lapsed = names.is_disjoint(&names_now);
            let lapsed = lapsed.then(|| format!("is signed by {}, a key that is not valid now", key.fingerprint()));
            let names = names.into_iter().map(str::to_owned).collect();
            Ok(Signatory { names, key: key.fingerprint(), at, lapsed })
        }
        verdict @ (SignatureVerdict::Trusted(_)
        | SignatureVerdict::Foreign(_)
        | SignatureVerdict::Unsigned
        | SignatureVerdict::Void(_)) => Err(verdict.to_string()),
    }
}

impl RemoteConfig {
    /// Where it stands who may sign.
    fn who_may(&self) -> String {
        let files = [&self.signers_file, &self.keyring_file].into_iter().flatten();
        match &files.map(|file| file.display().to_string()).collect::<Vec<_>>()[..] {
            [one] => format!("{one} lists who may sign it"),
            all => format!("{} list who may sign it", all.join(" and ")),
        }
    }
}

/// Who may sign.
struct Allowed {
    signers: Signers,
    /// None where no file is named.
    keyring: Option<Keyring>,
}

impl Allowed {
    /// Reads the files that are named. One that cannot be read is told even if the other one would do: it may be what takes a key back.
    fn read(config: &RemoteConfig) -> Result<Self, String> {
        let signers = list("list of signers", config.signers_file.as_ref(), Signers::parse)?.unwrap_or_default();
        Ok(Self { signers, keyring: list("keyring", config.keyring_file.as_ref(), Keyring::parse)? })
    }

    /// Why a signature of `content`, which was committed at that time, does not count, if it does not.
    fn judge(&self, signature: Option<&[u8]>, content: &[u8], committed: Time, now: Time) -> Result<(), String> {
        if let Some(signature) = signature.filter(|signature| openpgp::is_meant(signature)) {
            let Some(keyring) = &self.keyring else {
                return Err("carries an OpenPGP signature, and no keyring is named (repository.keyringFile)".to_owned());
            };
            return keyring.judge(signature, content, *now).map(drop).map_err(|refused| format!("carries {refused}"));
        }
        match SignatureVerdict::of(signature, content, &BTreeSet::new()) {
            // None is trusted by itself: whether a key counts is on the list.
            SignatureVerdict::Foreign(key) if self.signers.name(&key, *committed).is_some() => Ok(()),
            verdict @ (SignatureVerdict::Trusted(_)
            | SignatureVerdict::Foreign(_)
            | SignatureVerdict::Unsigned
            | SignatureVerdict::Void(_)) => Err(verdict.to_string()),
        }
    }
}

/// What a file holds, where one is named.
fn list<T, E: Display>(
    what: &str,
    file: Option<&PathBuf>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, String> {
    let Some(file) = file else { return Ok(None) };
    let unusable = |why: String| format!("the {what} {} cannot be used: {why}", file.display());
    let text = text(file).map_err(|error| unusable(error.to_string()))?;
    parse(&text).map(Some).map_err(|error| unusable(error.to_string()))
}

fn text(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = File::open(file)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read <= LONGEST) {
        Ok(text)
    } else {
        Err(std::io::Error::other("it is larger than 1 MiB"))
    }
}
