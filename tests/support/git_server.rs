//! A Git server: `git http-backend` behind axum on 127.0.0.1, over a directory of bare repositories, with faults that are
//! switched while it runs.

use super::http_backend;
use super::origin::Origin;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 503.
    Unavailable,
    /// This status and no body.
    Status(u16),
    /// The request is taken, and no byte comes back; it breaks off when the faults end.
    Slow,
    /// The same of each request for a pack that does not say how deep.
    SlowUnlessShallow,
    /// The request is carried out, and its answer ends in the middle.
    Cut,
    /// A redirect to this URL.
    Redirect(String),
    /// Lists of refs come from the copy that [`GitServer::freeze`] made, the other requests from the true repositories.
    Stale,
    /// This header is taken off the request: `git-protocol`, and the server speaks v0.
    Without(&'static str),
    /// This content type and body instead of Git's answer.
    Page(&'static str, Vec<u8>),
}

/// The running server; it ends with this value.
pub(crate) struct GitServer {
    directory: tempfile::TempDir,
    address: SocketAddr,
    state: Arc<State>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    root: PathBuf,
    frozen: PathBuf,
    inner: Mutex<Switches>,
    healed: Notify,
}

#[derive(Default)]
struct Switches {
    /// A part of "METHOD path?query", and what goes wrong there.
    faults: Vec<(String, Fault)>,
    requests: BTreeMap<String, usize>,
    authorizations: Vec<Option<String>>,
    /// The value of the header `Authorization` that lets in.
    wanted: Option<String>,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Switches> {
        self.inner.lock().expect("no holder of the lock panics")
    }
}

impl GitServer {
    /// Starts a server without repositories on a free port.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for tests");
        let (root, frozen) = (directory.path().join("true"), directory.path().join("frozen"));
        std::fs::create_dir(&root).expect("the test's directory can be written");
        let state = Arc::new(State { root, frozen, inner: Mutex::default(), healed: Notify::new() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = Self { directory, address, state, task: Mutex::new(None) };
        server.serve(listener);
        server
    }

    fn serve(&self, listener: TcpListener) {
        let state = Arc::clone(&self.state);
        let app = axum::Router::new().fallback(move |request| handle(Arc::clone(&state), request));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("serves until it is aborted") });
        *self.task.lock().expect("no holder of the lock panics") = Some(task);
    }

    /// Makes an empty repository `NAME.git`.
    pub(crate) fn init(&self, name: &str) -> Origin {
        Origin::init(&self.state.root.join(format!("{name}.git")))
    }

    /// The URL of a repository.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}.git", self.address)
    }

    /// A directory for what the test needs beside the repositories.
    pub(crate) fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// From now on requests whose "METHOD path?query" contains `part` go wrong.
    pub(crate) fn fault(&self, part: &str, fault: Fault) {
        self.state.lock().faults.push((part.to_owned(), fault));
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        self.state.lock().faults.clear();
        self.state.healed.notify_waiters();
    }

    /// Copies all repositories as they are now, for [`Fault::Stale`].
    pub(crate) fn freeze(&self) {
        copy(&self.state.root, &self.state.frozen).expect("the test's directory can be written");
    }

    /// Refuses connections from now on.
    pub(crate) async fn stop(&self) {
        let task = self.task.lock().expect("no holder of the lock panics").take();
        if let Some(task) = task {
            task.abort();
            task.await.expect_err("it only ends by being aborted");
        }
    }

    /// Listens on the same port again.
    pub(crate) async fn restart(&self) {
        self.serve(TcpListener::bind(self.address).await.expect("the port was ours"));
    }

    /// Lets only this user in.
    pub(crate) fn require(&self, user: &str, password: &str) {
        let request = reqwest::Client::new().get(self.url("x")).basic_auth(user, Some(password)).build();
        let request = request.expect("the URL is valid");
        let value = request.headers()["authorization"].to_str().expect("it is ASCII").to_owned();
        self.state.lock().wanted = Some(value);
    }

    /// How many requests there were, by "METHOD path?query".
    pub(crate) fn requests(&self) -> BTreeMap<String, usize> {
        self.state.lock().requests.clone()
    }

    /// Forgets the requests so far; how many there were.
    pub(crate) fn take_count(&self) -> usize {
        std::mem::take(&mut self.state.lock().requests).into_values().sum()
    }

    /// The header `Authorization` of each request so far.
    pub(crate) fn authorizations(&self) -> Vec<Option<String>> {
        self.state.lock().authorizations.clone()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        if let Ok(Some(task)) = self.task.get_mut().map(Option::take) {
            task.abort();
        }
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

async fn handle(state: Arc<State>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let line = format!("{} {target}", parts.method);
    let (fault, admitted) = {
        let mut switches = state.lock();
        let sent = parts.headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let admitted = switches.wanted.is_none() || switches.wanted == sent;
        switches.authorizations.push(sent);
        *switches.requests.entry(line.clone()).or_default() += 1;
        (switches.faults.iter().find(|(part, _)| line.contains(part)).map(|(_, fault)| fault.clone()), admitted)
    };
    let body = to_bytes(body, 1 << 28).await.expect("tests send less");
    let plain = |status: u16| Response::builder().status(status);
    let mut root = &state.root;
    match &fault {
        Some(Fault::Unavailable) => return finish(plain(503).body(Body::empty())),
        Some(Fault::Status(status)) => return finish(plain(*status).body(Body::empty())),
        Some(fault @ (Fault::Slow | Fault::SlowUnlessShallow)) if *fault == Fault::Slow || wants_all(&body) => {
            state.healed.notified().await;
            return finish(Ok(Response::new(broken(Bytes::new()))));
        }
        Some(Fault::Redirect(to)) => return finish(plain(302).header(header::LOCATION, to).body(Body::empty())),
        Some(Fault::Page(kind, page)) => {
            return finish(plain(200).header(header::CONTENT_TYPE, *kind).body(page.clone().into()));
        }
        Some(Fault::Stale) if lists_refs(&parts, &body) => root = &state.frozen,
        Some(Fault::Without(name)) => drop(parts.headers.remove(*name)),
        Some(Fault::Stale | Fault::Cut | Fault::Slow | Fault::SlowUnlessShallow) | None => {}
    }
    if !admitted {
        return finish(plain(401).header(header::WWW_AUTHENTICATE, "Basic realm=\"git\"").body(Body::empty()));
    }
    let answer = http_backend::answer(root, &parts.method, &parts.uri, &parts.headers, body).await;
    if fault != Some(Fault::Cut) {
        return finish(Ok(answer));
    }
    let (head, body) = answer.into_parts();
    let content = to_bytes(body, 1 << 28).await.expect("it is in memory");
    finish(Ok(Response::from_parts(head, broken(content.slice(..content.len() / 2)))))
}

/// No connection outlives its request, so that [`GitServer::stop`] ends all.
fn finish(response: axum::http::Result<Response>) -> Response {
    let mut response = response.expect("its parts are valid");
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

/// A body that breaks off after these bytes.
fn broken(bytes: Bytes) -> Body {
    Body::from_stream(futures::stream::iter([Ok(bytes), Err(std::io::Error::other("cut"))]))
}

fn wants_all(body: &[u8]) -> bool {
    let has = |word: &[u8]| body.windows(word.len()).any(|window| window == word);
    has(b"want ") && !has(b"deepen ")
}

fn lists_refs(parts: &Parts, body: &[u8]) -> bool {
    let command = b"command=ls-refs";
    parts.uri.path().ends_with("/info/refs") || body.windows(command.len()).any(|window| window == command)
}
