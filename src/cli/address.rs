//! Where a person's repository is: a URL, a clone of one, or a directory.

use super::args::{RepositoryArgs, SshArgs};
use super::failure::Failure;
use crate::git::{Login, RemoteUrl, WorkingCopy};
use crate::record::text::plain;
use anyhow::Context;
use std::path::{Path, PathBuf};
use url::Url;

/// Where the repository is, before anybody has talked to it.
pub(super) struct Address {
    pub(super) url: RemoteUrl,
    /// The working copy that the command runs in, or that is named.
    pub(super) copy: WorkingCopy,
    /// What the address itself says.
    pub(super) login: Option<Login>,
    user: Option<String>,
    /// The Git directory of the clone, if it is one: the repository itself gets no cache of ours.
    pub(super) clone: Option<PathBuf>,
}

impl Address {
    /// Finds it for the directory that a person stands in, or names.
    pub(super) fn find(dir: &Path, args: &RepositoryArgs) -> Result<Self, Failure> {
        let here = std::env::current_dir().context("cannot tell the current directory")?;
        let (copy, address, base) = match &args.repo {
            None => {
                let dir = here.join(dir);
                let copy = WorkingCopy::discover(&dir)?;
                let address = copy.remote(&args.remote).ok_or_else(|| no_repository(&copy, &dir, &args.remote))?;
                let base = copy.root().or(copy.git_dir()).unwrap_or(&dir).to_owned();
                (copy, address, base)
            }
            Some(repo) if repo.contains("://") || instead_of_ssh(repo).is_some() => {
                (WorkingCopy::discover(&here)?, repo.clone(), here)
            }
            Some(repo) => {
                let dir = here.join(repo);
                is_directory(&dir)?;
                let copy = WorkingCopy::discover(&dir)?;
                // A clone stands for its remote; a repository without one is the repository itself.
                let address = copy.remote(&args.remote).unwrap_or_else(|| ".".to_owned());
                let base = copy.root().or(copy.git_dir()).unwrap_or(&dir).to_owned();
                (copy, address, base)
            }
        };
        let clone = copy.git_dir().filter(|_| address != ".").map(Path::to_owned);
        let (address, user, password) = without_login(&address);
        let url = url_of(&address, &base, &args.ssh)?;
        let login = user.clone().zip(password).map(|(user, password)| Login { user, password: password.into() });
        Ok(Self { url, copy, login, user, clone })
    }

    /// Asks whom Git would ask for user and password, such as a credential helper.
    pub(super) fn ask(&self) -> Option<Login> {
        match &self.url {
            RemoteUrl::Http(url) => self.copy.login(url.as_str().trim_end_matches('/'), self.user.as_deref()),
            RemoteUrl::Ssh(_) | RemoteUrl::Local(_) => None,
        }
    }
}

/// An address without the user and the password in it, and those two.
fn without_login(address: &str) -> (String, Option<String>, Option<String>) {
    let Ok(mut url) = Url::parse(address) else { return (address.to_owned(), None, None) };
    if !matches!(url.scheme(), "http" | "https") || (url.username().is_empty() && url.password().is_none()) {
        return (address.to_owned(), None, None);
    }
    let user = Some(url.username().to_owned()).filter(|user| !user.is_empty());
    let password = url.password().map(ToOwned::to_owned);
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    if cleared.is_err() {
        return (address.to_owned(), None, None);
    }
    (url.to_string(), user, password)
}

/// The address that our own Git takes: http(s) as it is, ssh if it is said who to be there, a path made absolute.
fn url_of(address: &str, base: &Path, ssh: &SshArgs) -> Result<RemoteUrl, Failure> {
    let asked = ssh.identity().is_some() && address.starts_with("ssh://");
    if let Some(https) = instead_of_ssh(address).filter(|_| !asked) {
        return Err(Failure::usage(format!(
            "the repository's address is for ssh, and these commands ask no agent and read no settings; name the same \
             repository by its https address, perhaps --repo {https}, or use --repo ssh://git@HOST/PATH with \
             --ssh-key-file and --known-hosts-file"
        )));
    }
    let local = address.strip_prefix("file://").or((!address.contains("://")).then_some(address));
    let address = match local {
        None => address.to_owned(),
        Some(path) => {
            let path = if path == "." { base.to_owned() } else { base.join(path) };
            is_directory(&path)?;
            let path = path.canonicalize().with_context(|| format!("there is no repository at {}", path.display()))?;
            path.to_str().map(ToOwned::to_owned).ok_or_else(|| Failure::usage("the repository's path is not UTF-8"))?
        }
    };
    address.parse().map_err(|error| Failure::usage(format!("{error}")))
}

/// A repository on this machine is a directory.
fn is_directory(path: &Path) -> Result<(), Failure> {
    let found = path.metadata().with_context(|| format!("there is no repository at {}", path.display()))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is a file; a repository is a directory, or a URL", path.display())))
}

/// The https address that most hosts give the same repository: of `ssh://git@HOST/PATH` and `git@HOST:PATH`.
fn instead_of_ssh(address: &str) -> Option<String> {
    let (host, path) = match address.strip_prefix("ssh://") {
        Some(rest) => rest.split_once('/')?,
        None if address.contains("://") => return None,
        None => address.split_once(':')?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split(':').next().unwrap_or(host);
    let name = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    (name && !path.starts_with(':')).then(|| format!("https://{host}/{}", plain(path.trim_start_matches('/'))))
}

fn no_repository(copy: &WorkingCopy, dir: &Path, remote: &str) -> Failure {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    Failure::NoRepository(match copy.root().or(copy.git_dir()) {
        Some(clone) => format!(
            "the clone {} has no remote {remote:?}; choose another with --remote, or use --repo URL",
            // Git ends it with a slash.
            clone.components().as_path().display()
        ),
        None => format!(
            "the directory {} is in no Git clone; go to the clone of your deployments, or use --repo URL",
            dir.display()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_addresses_never_keep_a_password() {
        let (url, user, password) = without_login("https://ana:s3cret@h/x");
        assert_eq!((url.as_str(), user.as_deref(), password.as_deref()), ("https://h/x", Some("ana"), Some("s3cret")));
        let refused = ["git@h:x", "ssh://h/x", "ext::sh -c x", "https://h/x?y", "ftp://ana:s3cret@h/x"];
        let errors = refused.map(|address| url_of(address, Path::new("/"), &SshArgs::default()).unwrap_err().text());
        assert!(errors.iter().all(|error| !error.contains("s3cret")));
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn ssh_is_spoken_where_it_is_said_with_which_key() {
        let file = || Some(PathBuf::from("/f"));
        let ssh = SshArgs { ssh_key_file: file(), known_hosts_file: file() };
        let found = url_of("ssh://git@h/x", Path::new("/"), &ssh).unwrap();
        assert_eq!(found.to_string(), "ssh://git@h/x");
        let unclear = url_of("git@h:x", Path::new("/"), &ssh).unwrap_err().text();
        assert!(unclear.contains("--repo ssh://git@HOST/PATH"), "{unclear}");
    }
}
