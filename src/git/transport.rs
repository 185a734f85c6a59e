//! libgit2's connections, carried by our own HTTP client.
//!
//! libgit2 knows one transport of ours, `tidegate://`, for the whole process. Which server that is, with which limits, says
//! the [`Operation`] that runs on the current thread: libgit2 makes a connection on the thread that asks for it.

use super::GitError;
use super::gauge::Gauge;
use super::http::{Answer, Ask, Budget, Http, Service, Version};
use crate::record::text::plain;
use bytes::{Buf, Bytes};
use git2::transport::{Service as Call, SmartSubtransport, SmartSubtransportStream, Transport};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, Once, PoisonError};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// What libgit2 is given as the URL of every HTTP remote.
const URL: &str = "tidegate://remote";

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
        git2::transport::register("tidegate", |remote| {
            let operation = CURRENT.with_borrow(Clone::clone);
            let operation = operation.ok_or_else(|| git2::Error::from_str("no operation runs on this thread"))?;
            Transport::smart(remote, true, Carrier(operation))
        })
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Operation>>> = const { RefCell::new(None) };
}

/// One operation of libgit2 over HTTP: its limits, and the true reason if it fails.
pub(super) struct Operation {
    http: Arc<Http>,
    /// For lists of refs; its deadline is that of the whole operation.
    advertisement: Budget,
    /// For everything else.
    pack: Budget,
    failure: Mutex<Option<GitError>>,
}

impl Operation {
    /// Runs `work` with libgit2's connections going to `http`. It gets the URL for its remote, and a check for its
    /// callbacks whether time is left.
    ///
    /// # Errors
    /// What failed in the transport, sorted; failures of libgit2 itself as [`sort`] has it.
    ///
    /// # Panics
    /// Outside of tokio's blocking threads.
    pub(super) fn run<T>(
        http: &Arc<Http>,
        advertisement_bytes: u64,
        bytes: u64,
        doing: &str,
        work: impl FnOnce(&str, Instant) -> Result<T, git2::Error>,
    ) -> Result<T, GitError> {
        let advertisement = http.budget(advertisement_bytes);
        let pack = Budget { bytes, ..advertisement };
        let operation = Arc::new(Self { http: Arc::clone(http), advertisement, pack, failure: Mutex::new(None) });
        CURRENT.set(Some(Arc::clone(&operation)));
        let result = work(URL, advertisement.deadline);
        CURRENT.set(None);
        result.map_err(|error| {
            let failure = operation.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            failure.unwrap_or_else(|| {
                if Instant::now() >= advertisement.deadline { http.late(doing) } else { sort(doing, error) }
            })
        })
    }

    /// Keeps the reason for ourselves, as libgit2 would only pass a text on.
    fn fail(&self, error: GitError) -> io::Error {
        let text = error.to_string();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other(text)
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

/// Hands out one stream for each request.
struct Carrier(Arc<Operation>);

impl SmartSubtransport for Carrier {
    fn action(&self, _url: &str, call: Call) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let (service, next) = match call {
            Call::UploadPackLs => (Service::UploadPack, Next::Advertise),
            Call::UploadPack => (Service::UploadPack, Next::Command(Vec::new())),
            Call::ReceivePackLs => (Service::ReceivePack, Next::Advertise),
            Call::ReceivePack => (Service::ReceivePack, Next::Command(Vec::new())),
        };
        let gauge = matches!(call, Call::UploadPack).then(|| Gauge::new(self.0.pack.bytes));
        Ok(Box::new(Stream { operation: Arc::clone(&self.0), service, next, chunk: Bytes::new(), gauge }))
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// One request and its answer: sent when libgit2 begins to read.
struct Stream {
    operation: Arc<Operation>,
    service: Service,
    next: Next,
    chunk: Bytes,
    /// For what libgit2 will unpack.
    gauge: Option<Gauge>,
}

enum Next {
    Advertise,
    Command(Vec<u8>),
    Read(Box<Answer>),
    Ended,
}

impl Stream {
    fn advance(&mut self) -> Result<(), GitError> {
        let Operation { http, advertisement, pack, failure: _ } = &*self.operation;
        let (ask, budget) = match std::mem::replace(&mut self.next, Next::Ended) {
            Next::Advertise => (Ask::Advertise(self.service), *advertisement),
            Next::Command(body) => (Ask::Command(self.service, body), *pack),
            Next::Read(mut answer) => {
                if let Some(chunk) = Handle::current().block_on(answer.chunk())? {
                    self.gauge.as_mut().map_or(Ok(()), |gauge| gauge.pass(&chunk))?;
                    self.chunk = chunk;
                    self.next = Next::Read(answer);
                }
                return Ok(());
            }
            Next::Ended => return Ok(()),
        };
        let answer = Handle::current().block_on(http.ask(ask, Version::V0, budget))?;
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
