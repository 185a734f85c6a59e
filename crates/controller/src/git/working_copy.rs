//! The clone that a person works in: where it came from, who they are, how they get in. Nothing of it is changed.

use super::keygen::Keygen;
use super::remote::{Login, RemoteLimits};
use super::{Authorship, GitError, Person, authors};
use crate::manifest::files::{Had, RepoPath};
use crate::manifest::ids::CommitId;
use crate::record::text::plain;
use git2::{Config, CredentialHelper, ErrorCode, Repository};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A person's clone, or, outside of one, their settings alone. Made before any [`super::Store`], which from then on
/// reads no settings of the machine.
pub struct WorkingCopy {
    place: Option<Place>,
    config: Config,
}

struct Place {
    common: PathBuf,
    work: Option<PathBuf>,
}

impl WorkingCopy {
    /// The clone that `dir` lies in; outside of one only the person's settings.
    ///
    /// # Errors
    /// `Config` when there is a clone that cannot be opened, or the settings cannot be read.
    pub fn discover(dir: &Path) -> Result<Self, GitError> {
        let wrong = |error: git2::Error| GitError::Config(plain(error.message()));
        match Repository::discover(dir) {
            Ok(repository) => {
                let place =
                    Place { common: repository.commondir().to_owned(), work: repository.workdir().map(Path::to_owned) };
                Ok(Self { place: Some(place), config: repository.config().map_err(wrong)? })
            }
            Err(error) if error.code() == ErrorCode::NotFound => {
                Ok(Self { place: None, config: Config::open_default().map_err(wrong)? })
            }
            Err(error) => Err(wrong(error)),
        }
    }

    /// The root of its files; none for a bare repository and outside of a clone.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.place.as_ref()?.work.as_deref()
    }

    /// Its own directory (`.git`), shared by all worktrees; none outside of a clone.
    #[must_use]
    pub fn git_dir(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.common.as_path())
    }

    /// The address of one of its remotes, as it stands in its settings: it may contain a user and a password.
    #[must_use]
    pub fn remote(&self, name: &str) -> Option<String> {
        self.place.as_ref()?;
        self.text(&format!("remote.{name}.url"))
    }

    /// Who commits here: `user.name` and `user.email`.
    #[must_use]
    pub fn person(&self) -> Option<Person> {
        Some(Person { name: self.text("user.name")?, email: self.text("user.email")? })
    }

    /// How they sign commits: `user.signingKey`, where `gpg.format` is `ssh`.
    ///
    /// # Errors
    /// `Config` when that names no file.
    pub fn keygen(&self) -> Result<Option<Keygen>, GitError> {
        let key = self.text("user.signingKey").filter(|_| self.text("gpg.format").as_deref() == Some("ssh"));
        let Some(key) = key else { return Ok(None) };
        if key.starts_with("key::") || key.starts_with("ssh-") {
            let why = "user.signingKey holds a key itself; name the file of the key, or of its public half";
            return Err(GitError::Config(why.to_owned()));
        }
        let key = self.config.get_path("user.signingKey").map_err(|e| GitError::Config(plain(e.message())))?;
        Ok(Some(Keygen { program: self.text("gpg.ssh.program").unwrap_or_else(|| "ssh-keygen".to_owned()), key }))
    }

    /// The commits behind `tip` that made what it has at these paths (see [`super::Store::authors`]), as far as this clone knows.
    ///
    /// # Errors
    /// `Missing` when it does not know, also outside of a clone; `Limit` when that is too long.
    pub fn authors(&self, tip: &CommitId, before: &[BTreeMap<RepoPath, Had>]) -> Result<Vec<Authorship>, GitError> {
        let unknown = |_| GitError::Missing(format!("commit {tip} in a clone"));
        let place = self.place.as_ref().ok_or(()).map_err(unknown)?;
        let repository = Repository::open(&place.common).map_err(|error| GitError::commit(tip, error))?;
        authors::authors(&repository, None, RemoteLimits::default().entries, tip, before)
    }

    /// Asks the person's credential helpers (`credential.helper`, as Git itself does) who they are at `url`. A helper may
    /// take as long as it wants: it may ask the person.
    #[must_use]
    pub fn login(&self, url: &str, user: Option<&str>) -> Option<Login> {
        let (user, password) = CredentialHelper::new(url).username(user).config(&self.config).execute()?;
        Some(Login { user, password: password.into() })
    }

    fn text(&self, key: &str) -> Option<String> {
        self.config.get_string(key).ok().filter(|text| !text.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn clone() -> (tempfile::TempDir, WorkingCopy) {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path()).unwrap();
        let mut config = repository.config().unwrap().open_level(git2::ConfigLevel::Local).unwrap();
        config.set_str("user.name", "Ana").unwrap();
        config.set_str("user.email", "ana@example.org").unwrap();
        config.set_str("remote.origin.url", "https://git.example/x").unwrap();
        let helper = "!f() { echo username=ana; echo password=s3cret; }; f";
        config.set_str("credential.https://git.example.helper", helper).unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let found = WorkingCopy::discover(&dir.path().join("a/b")).unwrap();
        (dir, found)
    }

    #[test]
    fn a_clone_is_found_from_below() {
        let (dir, copy) = clone();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(copy.root().map(|p| p.canonicalize().unwrap()), Some(root.clone()));
        assert_eq!(copy.git_dir().map(|p| p.canonicalize().unwrap()), Some(root.join(".git")));
        assert_eq!(copy.remote("origin").as_deref(), Some("https://git.example/x"));
        assert_eq!(copy.remote("upstream"), None);
        assert_eq!(copy.person(), Some(Person { name: "Ana".into(), email: "ana@example.org".into() }));
    }

    #[test]
    fn who_signs_with_ssh_signs_with_what_git_would_start() {
        let (dir, copy) = clone();
        assert_eq!(copy.keygen().unwrap(), None);
        let mut config = Repository::open(dir.path()).unwrap().config().unwrap();
        config.set_str("user.signingKey", "/home/ana/key").unwrap();
        let found = || WorkingCopy::discover(dir.path()).unwrap().keygen();
        assert_eq!(found().unwrap(), None, "a key of OpenPGP");
        config.set_str("gpg.format", "ssh").unwrap();
        let keygen = |program: &str| Keygen { program: program.to_owned(), key: "/home/ana/key".into() };
        assert_eq!(found().unwrap(), Some(keygen("ssh-keygen")));
        config.set_str("gpg.ssh.program", "sign").unwrap();
        assert_eq!(found().unwrap(), Some(keygen("sign")));
        config.set_str("user.signingKey", "key::ssh-ed25519 AAAA").unwrap();
        assert!(found().unwrap_err().to_string().contains("name the file"));
    }

    #[test]
    fn helpers_are_asked_for_their_own_host_only() {
        let (_dir, copy) = clone();
        let login = copy.login("https://git.example/x", None).unwrap();
        assert_eq!((login.user.as_str(), login.password.expose_secret()), ("ana", "s3cret"));
        assert!(copy.login("https://other.example/x", None).is_none());
        assert!(!format!("{login:?}").contains("s3cret"));
    }
}
