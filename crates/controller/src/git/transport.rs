//! libgit2's connections, carried by our own HTTP client, or by OpenSSH.
//!
//! libgit2 knows two transports of ours for the whole process: `tidegate://`, a request and its answer at a time, and
//! `tidegate-ssh://`, one connection both ways. Which server that is, with which limits, says
//! the [`Operation`] that runs on the current thread: libgit2 makes a connection on the thread that asks for it.

use super::GitError;
use super::http::{Answer, Ask, Budget, Http, Service, Version};
use super::pack_limiter::PackLimiter;
use super::ref_list::{Asked, RefList, commits_only};
use super::ssh::{Pipe, Ssh};
use crate::record::text::plain;
use bytes::{Buf, Bytes};
use git2::transport::{Service as Call, SmartSubtransport, SmartSubtransportStream, Transport};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// How a server is reached.
#[derive(Clone)]
pub(super) enum Line {
    /// By HTTP.
    Http(Arc<Http>),
    /// By OpenSSH.
    Ssh(Arc<Ssh>),
}

impl Line {
    /// What libgit2 is given as the URL of the remote.
    fn url(&self) -> &'static str {
        match self {
            Self::Http(_) => "tidegate://remote",
            Self::Ssh(_) => "tidegate-ssh://remote",
        }
    }

    fn budget(&self, bytes: u64) -> Budget {
        match self {
            Self::Http(http) => http.budget(bytes),
            Self::Ssh(ssh) => ssh.budget(bytes),
        }
    }

    fn late(&self, doing: &str) -> GitError {
        match self {
            Self::Http(http) => http.late(doing),
            Self::Ssh(ssh) => ssh.late(doing),
        }
    }
}

/// Makes libgit2 and TLS ready, once in a process: our transport, and nothing read from the machine's Git configuration.
pub(super) fn prepare() {
    static READY: Once = Once::new();
    READY.call_once(|| {
        // Another part of the program may have chosen the same provider already.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        register().expect("only fails when memory is out, because the settings are constants");
    });
}

#[expect(unsafe_code, reason = "libgit2's global settings; prepare() runs this once, before any repository is opened")]
fn register() -> Result<(), git2::Error> {
    use git2::ConfigLevel::{Global, ProgramData, System, XDG};
    unsafe {
        // The cache is ours even if a volume shows it as owned by somebody else.
        git2::opts::set_verify_owner_validation(false)?;
        for level in [ProgramData, System, XDG, Global] {
            git2::opts::set_search_path(level, "")?;
        }
        git2::transport::register("tidegate", |remote| Transport::smart(remote, true, Carrier(current()?)))?;
        git2::transport::register("tidegate-ssh", |remote| Transport::smart(remote, false, Carrier(current()?)))
    }
}

fn current() -> Result<Arc<Operation>, git2::Error> {
    CURRENT.with_borrow(Clone::clone).ok_or_else(|| git2::Error::from_str("no operation runs on this thread"))
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Operation>>> = const { RefCell::new(None) };
}

/// One operation of libgit2 with a server: its limits, and the true reason if it fails.
pub(super) struct Operation {
    line: Line,
    doing: String,
    asked: Asked,
    /// For what is kept of lists of refs; its deadline is that of the whole operation.
    advertisement: Budget,
    /// For everything else.
    pack: Budget,
    /// The server can leave out what is in commits.
    offers_filter: AtomicBool,
    failure: Mutex<Option<GitError>>,
}

impl Operation {
    /// Runs `work` with libgit2's connections going over `line`. It gets the URL for its remote, and a check for its
    /// callbacks whether time is left.
    ///
    /// # Errors
    /// What failed in the transport, sorted; failures of libgit2 itself as [`sort`] has it.
    ///
    /// # Panics
    /// Outside of tokio's blocking threads.
    pub(super) fn run<T>(
        line: &Line,
        asked: Asked,
        [advertisement_bytes, bytes]: [u64; 2],
        doing: &str,
        work: impl FnOnce(&str, Instant) -> Result<T, git2::Error>,
    ) -> Result<T, GitError> {
        let advertisement = line.budget(advertisement_bytes);
        let pack = Budget { bytes, ..advertisement };
        let operation = Arc::new(Self {
            line: line.clone(),
            doing: doing.to_owned(),
            asked,
            advertisement,
            pack,
            offers_filter: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        CURRENT.set(Some(Arc::clone(&operation)));
        let result = work(line.url(), advertisement.deadline);
        CURRENT.set(None);
        result.map_err(|error| {
            operation.failure().take().unwrap_or_else(|| {
                if Instant::now() >= advertisement.deadline { line.late(doing) } else { sort(doing, error) }
            })
        })
    }

    /// Whether the server that the operation on this thread is connected with can leave out what is in commits.
    pub(super) fn offers_filter() -> bool {
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(|it| it.offers_filter.load(Ordering::Relaxed)))
    }

    /// What libgit2 gets of the next bytes of a list of refs.
    fn list(&self, list: &mut RefList, chunk: Bytes) -> Result<Bytes, GitError> {
        let kept = list.pass(&self.doing, chunk)?;
        self.offers_filter.fetch_or(list.offers_filter, Ordering::Relaxed);
        Ok(kept)
    }

    /// Keeps the reason for ourselves, as libgit2 would only pass a text on.
    fn fail(&self, error: GitError) -> io::Error {
        let text = error.to_string();
        *self.failure() = Some(error);
        io::Error::other(text)
    }

    fn failure(&self) -> MutexGuard<'_, Option<GitError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sorts a failure of libgit2 while it talks to a server.
pub(super) fn sort(doing: &str, error: git2::Error) -> GitError {
    use git2::ErrorClass::{Filesystem, Indexer, Net, NoMemory, Odb, Os, Sha1, Zlib};
    let doing = doing.to_owned();
    let why = plain(error.message());
    if matches!(error.class(), Os | Filesystem | NoMemory) {
        GitError::Cache { doing, source: Box::new(error) }
    } else if matches!(error.class(), Indexer | Odb | Zlib | Sha1) {
        GitError::Corrupt { doing, why }
    } else if error.class() == Net && (why.contains("EOF") || why.contains("disconnected")) {
        GitError::Away { doing, why }
    } else {
        GitError::Protocol { doing, why }
    }
}

/// Hands out one stream for each request, or for the whole connection.
struct Carrier(Arc<Operation>);

impl SmartSubtransport for Carrier {
    fn action(&self, _url: &str, call: Call) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let (service, next) = match call {
            Call::UploadPackLs => (Service::UploadPack, Next::Advertise),
            Call::UploadPack => (Service::UploadPack, Next::Command(Vec::new())),
            Call::ReceivePackLs => (Service::ReceivePack, Next::Advertise),
            Call::ReceivePack => (Service::ReceivePack, Next::Command(Vec::new())),
        };
        let (operation, chunk) = (Arc::clone(&self.0), Bytes::new());
        let Operation { line, advertisement, pack, asked, .. } = &*self.0;
        let list = RefList::new(asked.clone(), advertisement.bytes);
        let pack_limiter = || PackLimiter::new(pack.bytes);
        match line {
            Line::Http(http) => {
                let (http, pack_limiter) = (Arc::clone(http), matches!(call, Call::UploadPack).then(pack_limiter));
                let list = matches!(next, Next::Advertise).then_some(list);
                Ok(Box::new(Stream { operation, http, service, next, chunk, list, pack_limiter }))
            }
            Line::Ssh(ssh) => {
                let failed = |error| git2::Error::from_str(&operation.fail(error).to_string());
                let pipe = ssh.connect(service, Version::V0, advertisement.with_unasked()).map_err(failed)?;
                let pack_limiter = matches!(service, Service::UploadPack).then(pack_limiter);
                Ok(Box::new(Connection { operation, pipe, chunk, list, pack_limiter, pack: Some(pack.bytes) }))
            }
        }
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// One request and its answer: sent when libgit2 begins to read.
struct Stream {
    operation: Arc<Operation>,
    http: Arc<Http>,
    service: Service,
    next: Next,
    chunk: Bytes,
    /// For a list of refs.
    list: Option<RefList>,
    /// For what libgit2 will unpack.
    pack_limiter: Option<PackLimiter>,
}

enum Next {
    Advertise,
    Command(Vec<u8>),
    Read(Box<Answer>),
    Ended,
}

impl Stream {
    fn advance(&mut self) -> Result<(), GitError> {
        let Operation { advertisement, pack, asked, .. } = &*self.operation;
        let (ask, budget) = match std::mem::replace(&mut self.next, Next::Ended) {
            Next::Advertise => (Ask::Advertise(self.service), advertisement.with_unasked()),
            Next::Command(body) => {
                let body = if asked.commits_only { commits_only(&body) } else { body };
                (Ask::Command(self.service, body), *pack)
            }
            Next::Read(mut answer) => {
                if let Some(chunk) = Handle::current().block_on(answer.chunk())? {
                    self.pack_limiter.as_mut().map_or(Ok(()), |pack_limiter| pack_limiter.pass(&chunk))?;
                    self.chunk = match &mut self.list {
                        Some(list) => self.operation.list(list, chunk)?,
                        None => chunk,
                    };
                    self.next = Next::Read(answer);
                }
                return Ok(());
            }
            Next::Ended => return Ok(()),
        };
        let answer = Handle::current().block_on(self.http.ask(ask, Version::V0, budget))?;
        self.next = Next::Read(Box::new(answer));
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !matches!(self.next, Next::Ended) {
            if let Err(error) = self.advance() {
                return Err(self.operation.fail(error));
            }
        }
        let len = into.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut into[..len]);
        Ok(len)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.next {
            Next::Command(body) => {
                body.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Next::Advertise | Next::Read(_) | Next::Ended => {
                Err(io::Error::other("written after the request was sent"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection both ways.
struct Connection {
    operation: Arc<Operation>,
    pipe: Pipe,
    chunk: Bytes,
    /// For the list of refs.
    list: RefList,
    /// For what libgit2 will unpack; the list before it is made of packets as well.
    pack_limiter: Option<PackLimiter>,
    /// What may come after the list, which is over once we say something.
    pack: Option<u64>,
}

impl Connection {
    fn next(&mut self) -> Result<(), GitError> {
        while self.chunk.is_empty() {
            let Some(chunk) = Handle::current().block_on(self.pipe.chunk())? else { break };
            self.pack_limiter.as_mut().map_or(Ok(()), |pack_limiter| pack_limiter.pass(&chunk))?;
            self.chunk = self.operation.list(&mut self.list, chunk)?;
        }
        Ok(())
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            self.next().map_err(|error| self.operation.fail(error))?;
        }
        let len = into.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut into[..len]);
        Ok(len)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(pack) = self.pack.take() {
            self.pipe.allow(pack);
            self.list.end();
        }
        let filtered = self.operation.asked.commits_only.then(|| commits_only(bytes));
        let sent = filtered.as_deref().unwrap_or(bytes);
        Handle::current().block_on(self.pipe.send(sent)).map_err(|error| self.operation.fail(error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What failed is cut off; a server that took a push has hooks to run after it has answered.
        let failed = self.operation.failure().is_some();
        if !failed {
            Handle::current().block_on(self.pipe.leave());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{ErrorClass, ErrorCode};

    /// Nobody has two Git objects of one SHA-1, so this is as far as a test can go: what hashes objects here is the code that
    /// finds the marks of an attack, and what it says of one counts as a damaged pack.
    #[test]
    fn attack_15_what_hashes_objects_finds_collisions() {
        // Not as libgit2 writes it, or this test would find itself.
        let says = "sha1 collision attack detected".replace("sha1", "SHA1");
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(program.windows(says.len()).any(|bytes| bytes == says.as_bytes()), "another SHA-1 is linked");
        let found = git2::Error::new(ErrorCode::GenericError, ErrorClass::Sha1, &says);
        assert!(matches!(sort("fetch", found), GitError::Corrupt { why, .. } if why == says));
    }
}
