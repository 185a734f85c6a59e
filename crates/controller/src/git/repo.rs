//! The bare cache of one remote repository: made, mended, filled.

use super::fault_injection::{self, RemoteCall, RemoteFault};
use super::http::Http;
use super::local::Local;
use super::ref_list::Asked;
use super::remote::{RemoteConfig, RemoteLimits, RemoteUrl, Timeouts};
use super::ssh::Ssh;
use super::transport::{self, Line, Operation};
use super::{GitError, RefName, compact, oid, refs};
use crate::manifest::ids::CommitId;
use git2::{
    AutotagOption, ErrorCode, FetchOptions, Oid, RemoteCallbacks, Repository, RepositoryInitOptions,
    RepositoryOpenFlags,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

/// Where the tips that were fetched last are kept. Each is the leaf `-tip` below its branch's name: no part of a branch's
/// name begins with `-`, so that `a` and, later, `a/b` do not collide.
pub(super) const TIPS: &str = "refs/tidegate/cache/";
const LEAF: &str = "/-tip";
/// The key of the cache's configuration that says whose cache it is.
const WHOSE: &str = "tidegate.url";

/// One remote repository and its cache. Cheap to clone; all clones share the cache and the client of the server.
#[derive(Clone)]
pub struct Store {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) directory: PathBuf,
    pub(super) config: RemoteConfig,
    pub(super) remote: Remote,
    speaks_v2: AtomicBool,
    /// Damaged objects were found; the next fetch starts from an empty cache.
    pub(super) damaged: AtomicBool,
    /// The tip whose past was more than may be fetched.
    pub(super) beyond: Mutex<Option<Oid>>,
    /// Held for writing while the cache is replaced.
    pub(super) cache: RwLock<()>,
    /// The commits of the branch that is fetched without its past, once they were needed.
    pub(super) past: OnceLock<Store>,
}

/// How the remote is reached.
pub(super) enum Remote {
    Server(Line),
    Local(Arc<Local>),
}

/// What a look-up found.
#[derive(Debug)]
pub struct LookedUp {
    /// The tips.
    pub found: BTreeMap<RefName, CommitId>,
    /// Whether those are among them that lie below the prefix.
    pub below: Below,
}

/// How much of what lies below a prefix was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// All of it.
    All,
    /// Nothing, since there is too much.
    TooMany,
}

impl Store {
    /// Opens the cache of a repository in `cache_dir/repository.git`; makes it if it is absent, and anew if it is damaged
    /// or the cache of another repository. Does not talk to the remote.
    ///
    /// # Errors
    /// `Config` when the CA file or the HTTP client cannot be used, `Cache` when the directory cannot.
    pub fn open(cache_dir: &Path, config: RemoteConfig) -> Result<Self, GitError> {
        transport::prepare();
        let remote = match &config.url {
            RemoteUrl::Http(url) => Remote::Server(Line::Http(Arc::new(Http::new(url.clone(), &config)?))),
            RemoteUrl::Ssh(url) => Remote::Server(Line::Ssh(Arc::new(Ssh::new(url.clone(), &config)?))),
            RemoteUrl::Local(path) => Remote::Local(Arc::new(Local::new(path.clone()))),
        };
        let inner = Inner {
            directory: cache_dir.join("repository.git"),
            config,
            remote,
            speaks_v2: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            beyond: Mutex::default(),
            cache: RwLock::new(()),
            past: OnceLock::new(),
        };
        if !inner.is_sound() {
            inner.create()?;
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Looks up the tips of all branches whose full names begin with one of `prefixes`; one without a slash at its end is a
    /// whole name. Over HTTP one request (two until
    /// the server is known to speak protocol v2), over SSH one connection.
    ///
    /// # Errors
    /// `Away`, `Denied`, `HostKey`, `Missing`, `Protocol`, `Config`; `Limit` when there are too many.
    pub async fn ls_refs(&self, prefixes: &[&str]) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        let Inner { config, remote, speaks_v2, .. } = &*self.inner;
        match remote {
            Remote::Server(Line::Http(http)) => refs::over_http(http, speaks_v2, prefixes, &config.limits).await,
            Remote::Server(Line::Ssh(ssh)) => refs::over_ssh(ssh, prefixes, &config.limits).await,
            Remote::Local(local) => {
                let fate = self.fate(RemoteCall::LookUp).await?;
                let (local, limits) = (Arc::clone(local), config.limits);
                let owned: Vec<String> = prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
                let look_up = move || {
                    let prefixes: Vec<&str> = owned.iter().map(String::as_str).collect();
                    local.look_up(&prefixes, &limits)
                };
                self.answered(prefixes, remote.blocking(look_up).await?, &fate)
            }
        }
    }

    /// The same for whole names, and for all that lies below a prefix. Whoever may push can make any number of those: where they are too many,
    /// the whole names are looked up alone.
    ///
    /// # Errors
    /// As [`Self::ls_refs`]; `Limit` where a server sends all that it has, whatever is asked for.
    pub async fn look_up(&self, whole: &[&str], below: &str) -> Result<LookedUp, GitError> {
        match self.ls_refs(&[whole, &[below]].concat()).await {
            Ok(found) => Ok(LookedUp { found, below: Below::All }),
            Err(GitError::Limit { .. }) => Ok(LookedUp { found: self.ls_refs(whole).await?, below: Below::TooMany }),
            Err(error) => Err(error),
        }
    }

    /// Brings exactly these tips into the cache, and remembers them as the last ones fetched. Asks the server only for what
    /// is not there. No tags. It may tidy the cache up first: commits that were made but not pushed are gone then.
    ///
    /// # Errors
    /// `Away` also when a branch moved meanwhile so that the tip wanted was not sent; then nothing is remembered.
    /// `Corrupt` for a damaged pack, `Limit` for one too large, else as [`Self::ls_refs`].
    pub async fn fetch(&self, wants: &BTreeMap<RefName, CommitId>) -> Result<(), GitError> {
        self.fetch_with(wants.clone(), self.inner.config.shallow.clone()).await
    }

    /// The same of one branch, without its past at first.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn fetch_tip(&self, name: &RefName, tip: &CommitId) -> Result<(), GitError> {
        self.fetch_with([(name.clone(), tip.clone())].into(), Some(name.clone())).await
    }

    async fn fetch_with(&self, wants: BTreeMap<RefName, CommitId>, shallow: Option<RefName>) -> Result<(), GitError> {
        let fate = self.fate(RemoteCall::Fetch).await?;
        let inner = Arc::clone(&self.inner);
        self.inner.remote.blocking(move || inner.fetch(&wants, shallow.as_ref())).await?;
        if fate == RemoteFault::Lost { Err(fault_injection::away(&RemoteCall::Fetch)) } else { Ok(()) }
    }

    /// The tips that were fetched or pushed last: what is known while the server is away.
    ///
    /// # Errors
    /// `Cache` or `Corrupt`.
    pub async fn cached_tips(&self) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        self.on_cache(|_, repository| known(repository)).await
    }

    /// Runs what takes long where it keeps nobody waiting who waits for something else.
    ///
    /// # Errors
    /// `Away` when the process is ending.
    pub async fn aloof<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, GitError> {
        self.inner.remote.blocking(move || Ok(work())).await
    }

    /// Runs `work` on the cache, on a blocking thread, with its own handle.
    pub(super) async fn on_cache<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &Repository) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let inner = Arc::clone(&self.inner);
        self.inner
            .remote
            .blocking(move || {
                let _shared = inner.cache.read().unwrap_or_else(PoisonError::into_inner);
                let result = inner.repository().and_then(|repository| work(&inner, &repository));
                if matches!(result, Err(GitError::Corrupt { .. })) {
                    inner.damaged.store(true, Ordering::Relaxed);
                }
                result
            })
            .await
    }
}

/// Makes an empty bare repository in `directory`, whose main is called `main`.
///
/// # Errors
/// `Cache` when it cannot be written, or is there already.
pub fn create_bare(directory: &Path) -> Result<(), GitError> {
    transport::prepare();
    let mut options = RepositoryInitOptions::new();
    options.bare(true).mkpath(true).no_reinit(true).external_template(false).initial_head("main");
    let made = Repository::init_opts(directory, &options).map(drop);
    made.map_err(|error| GitError::Cache { doing: format!("make {}", directory.display()), source: Box::new(error) })
}

impl Remote {
    /// Runs `work` where it may block: on a thread of its own, or, for a repository on this machine in a runtime of one thread,
    /// at once. There it keeps nobody else waiting for long, and what runs there repeats exactly.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        match self {
            Self::Local(_) if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread => work(),
            Self::Local(_) | Self::Server(_) => blocking(work).await,
        }
    }
}

/// Runs `work` on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(GitError::Away { doing: "work with Git".to_owned(), why: "the process is ending".to_owned() }),
    }
}

impl Inner {
    pub(super) fn repository(&self) -> Result<Repository, GitError> {
        self.handle().map_err(|error| GitError::local("open the cache", error))
    }

    /// A handle that knows which commits are shallow; `Repository::open_bare` makes one that does not.
    fn handle(&self) -> Result<Repository, git2::Error> {
        let flags = RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        Repository::open_ext(&self.directory, flags, std::iter::empty::<&Path>())
    }

    /// Whether the cache is of this remote and its tips can be read.
    fn is_sound(&self) -> bool {
        let check = || -> Result<bool, git2::Error> {
            let repository = self.handle()?;
            let whose = repository.config()?.snapshot()?.get_string(WHOSE)?;
            for reference in repository.references_glob(&format!("{TIPS}*"))? {
                reference?.peel_to_commit()?.tree()?;
            }
            Ok(whose == self.config.url.to_string())
        };
        check().unwrap_or(false)
    }

    /// Replaces the cache by an empty one.
    pub(super) fn create(&self) -> Result<(), GitError> {
        let doing = format!("make the cache {}", self.directory.display());
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::Cache { doing, source: Box::new(error) });
            }
            Ok(()) => {
                tracing::warn!(cache = %self.directory.display(), "the Git cache was not usable and is made anew");
            }
            Err(_) => {}
        }
        let init = || -> Result<(), git2::Error> {
            let mut options = RepositoryInitOptions::new();
            options.bare(true).mkpath(true).no_reinit(true).external_template(false);
            let repository = Repository::init_opts(&self.directory, &options)?;
            repository.config()?.set_str(WHOSE, &self.config.url.to_string())
        };
        init().map_err(|error| GitError::Cache { doing, source: Box::new(error) })
    }

    fn fetch(&self, wants: &BTreeMap<RefName, CommitId>, shallow: Option<&RefName>) -> Result<(), GitError> {
        if self.damaged.swap(false, Ordering::Relaxed) {
            let _alone = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            self.create()?;
        } else if compact::is_due(&self.directory, self.config.limits.packs) {
            let _alone = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            // A cache that cannot be packed is damaged, or the disk is full: either way a new one is better.
            compact::run(self.repository()?).inspect_err(|_| self.damaged.store(true, Ordering::Relaxed))?;
        }
        let _shared = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let repository = self.repository()?;
        let result = self.fetch_into(&repository, wants, shallow);
        // A damaged pack that the server sent is not our damage.
        if matches!(result, Err(GitError::Corrupt { .. })) && !is_whole(&repository) {
            self.damaged.store(true, Ordering::Relaxed);
        }
        result
    }

    fn fetch_into(
        &self,
        repository: &Repository,
        wants: &BTreeMap<RefName, CommitId>,
        shallow: Option<&RefName>,
    ) -> Result<(), GitError> {
        let odb = repository.odb().map_err(|error| GitError::local("open the cache", error))?;
        let absent = |name: &RefName| wants.get(name).is_some_and(|id| !odb.exists(oid(id.as_str())));

        let new = shallow.filter(|name| absent(name) && !has_tip(repository, name));
        // A repository on the same machine is copied as it is.
        if let (Remote::Server(line), Some(name)) = (&self.remote, new) {
            self.download(line, repository, &[name], 1)?;
            arrived(repository, name, &wants[name])?;
        }
        let rest: Vec<&RefName> = wants.keys().filter(|name| absent(name)).collect();
        match &self.remote {
            _ if rest.is_empty() => {}
            Remote::Server(line) => {
                let started = Instant::now();
                let brought = self.download(line, repository, &rest, 0);
                let Timeouts { read, total, .. } = self.config.timeouts;
                let is_slow = || started.elapsed() >= read.min(total);
                let is_much =
                    |error: &GitError| matches!(error, GitError::Limit { .. }) || (error.is_retriable() && is_slow());
                // What lies behind it is more than may be fetched at once, or takes too long; the tip may not.
                if brought.as_ref().is_err_and(is_much) && rest.iter().all(|name| Some(*name) == shallow) {
                    self.download(line, repository, &rest, 1)?;
                } else {
                    brought?;
                }
            }
            Remote::Local(local) => local.fetch(repository, rest.into_iter().map(|name| &wants[name]))?,
        }
        for (name, id) in wants {
            arrived(repository, name, id)?;
        }
        wants.iter().try_for_each(|(name, id)| remember(repository, name, Some(oid(id.as_str()))))
    }

    /// Downloads the histories of branches that are not in the cache; `depth` 0 means down to what
    /// the cache has.
    pub(super) fn download(
        &self,
        line: &Line,
        repository: &Repository,
        names: &[&RefName],
        depth: i32,
    ) -> Result<(), GitError> {
        let specs: Vec<String> = names.iter().map(|name| format!("+{name}:{}", tip(name))).collect();
        self.download_specs(line, repository, &specs, depth, &self.config.limits)
    }

    /// The same for refs of any kind, with other limits.
    pub(super) fn download_specs(
        &self,
        line: &Line,
        repository: &Repository,
        specs: &[String],
        depth: i32,
        limits: &RemoteLimits,
    ) -> Result<(), GitError> {
        let doing = format!("fetch from {}", self.config.url);
        let download = |url: &str, deadline: Instant| {
            let mut callbacks = RemoteCallbacks::new();
            callbacks.transfer_progress(|_| Instant::now() < deadline);
            let mut options = FetchOptions::new();
            options.depth(depth).download_tags(AutotagOption::None).remote_callbacks(callbacks);
            let mut remote = repository.remote_anonymous(url)?;
            remote.download(specs, Some(&mut options))?;
            remote.disconnect()
        };
        let source = |spec: &String| spec.trim_start_matches('+').split(':').next().unwrap_or_default().to_owned();
        let asked = Asked { refs: specs.iter().map(source).collect(), commits_only: false };
        Operation::run(line, asked, [limits.advertisement_bytes, limits.fetch_bytes], &doing, download)
    }
}

/// The tips that the cache keeps.
pub(super) fn known(repository: &Repository) -> Result<BTreeMap<RefName, CommitId>, GitError> {
    let failed = |error| GitError::local("read the cached tips", error);
    let mut tips = BTreeMap::new();
    for reference in repository.references_glob(&format!("{TIPS}*")).map_err(failed)? {
        let reference = reference.map_err(failed)?;
        let name = reference.name().ok().and_then(|name| name.strip_prefix(TIPS)?.strip_suffix(LEAF)?.parse().ok());
        let id = reference.target().and_then(|id| id.to_string().parse().ok());
        tips.extend(name.zip(id));
    }
    Ok(tips)
}

/// Whether all commits that the tips lead to can be read.
fn is_whole(repository: &Repository) -> bool {
    let walk = || -> Result<(), git2::Error> {
        let mut walk = repository.revwalk()?;
        walk.push_glob(&format!("{TIPS}*"))?;
        walk.into_iter().try_for_each(|id| repository.find_commit(id?)?.tree().map(drop))
    };
    walk().is_ok()
}

/// The name under which the cache keeps the tip of a branch.
pub(super) fn tip(name: &RefName) -> String {
    format!("{TIPS}{name}{LEAF}")
}

fn has_tip(repository: &Repository, name: &RefName) -> bool {
    repository.refname_to_id(&tip(name)).is_ok()
}

/// Checks that what was wanted of a branch was sent.
fn arrived(repository: &Repository, name: &RefName, id: &CommitId) -> Result<(), GitError> {
    match repository.find_commit(oid(id.as_str())) {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ErrorCode::NotFound => Err(GitError::Away {
            doing: format!("fetch {name}"),
            why: format!("{id} was not sent: the branch moved meanwhile, or the server lags behind"),
        }),
        Err(error) => Err(GitError::commit(id, error)),
    }
}

/// Keeps the tip of a branch, or forgets it.
pub(super) fn remember(repository: &Repository, name: &RefName, id: Option<Oid>) -> Result<(), GitError> {
    let doing = format!("remember the tip of {name}");
    let result = match id {
        Some(id) if repository.refname_to_id(&tip(name)).is_ok_and(|known| known == id) => Ok(()),
        Some(id) => repository.reference(&tip(name), id, true, "fetched").map(drop),
        None => match repository.find_reference(&tip(name)) {
            Ok(mut reference) => reference.delete(),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error),
        },
    };
    result.map_err(|error| GitError::Cache { doing, source: Box::new(error) })
}
