//! The Kubernetes API of the world in a process: a service under the real `kube::Client`, so that all code above the
//! client is the code that is shipped.
//!
//! [`World`] is the cluster as a value and decides everything; [`KubeApi`] is the way to it over HTTP. A suite
//! (`tests/real/sim`) sends the same requests to it and to a real API server and compares the answers.

mod asked;
mod decode;
pub mod defaults;
mod delete;
mod discovery;
mod faults;
pub mod fields;
mod form;
mod kinds;
mod metadata;
mod options;
mod patch;
mod read;
pub mod resource;
mod scale;
mod select;
mod serve;
mod status;
mod store;
pub mod validation;
mod watch;
mod world;
mod write;

#[cfg(test)]
mod tests;

pub use self::asked::ApiVerb;
pub use self::faults::{Fault, FaultVerdict, SeenRequest, What};
pub use self::store::Happened;
pub use self::world::World;

use self::asked::{Asked, Route};
use self::decode::Sent;
use self::fields::FieldRefusal;
use self::serve::{Answer, Envelope};
use self::watch::{Fate, Next, Watcher};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use futures::stream;
use http::request::Parts;
use http::{HeaderMap, Request, Response, header};

use kube::client::Body;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tower::Service;

/// The body of an answer.
pub type AnswerBody = axum::body::Body;

type Hook = dyn Fn(&SeenRequest<'_>) -> FaultVerdict + Send + Sync;
type Witness = dyn Fn(&World, &str) + Send + Sync;

/// The way to a world over HTTP. Clones lead to the same world.
#[derive(Clone)]
pub struct KubeApi {
    shared: Arc<Shared>,
    caller: Arc<str>,
}

struct Shared {
    state: Mutex<State>,
    /// Counts what may give watches something to tell.
    count: AtomicU64,
    /// Told of it. Whoever waited first is told first, so that a world repeats itself; tokio's `watch` tells in any order.
    changed: Notify,
}

struct State {
    world: World,
    hook: Option<Arc<Hook>>,
    witness: Option<Arc<Witness>>,
    seen: u64,
    /// How often all connections were broken.
    broken: u64,
}

/// What has changed since somebody looked.
pub struct Changes {
    shared: Arc<Shared>,
    seen: u64,
}

impl Changes {
    /// Takes note of all that has changed so far.
    pub fn mark_seen(&mut self) {
        self.seen = self.shared.count.load(Ordering::Relaxed);
    }

    /// Waits until something else may have changed.
    pub async fn changed(&mut self) {
        loop {
            // Told of whatever happens from here on.
            let told = self.shared.changed.notified();
            let count = self.shared.count.load(Ordering::Relaxed);
            if count == self.seen {
                told.await;
            } else {
                self.seen = count;
                return;
            }
        }
    }
}

impl KubeApi {
    /// A new world at that time.
    #[must_use]
    pub fn new(now: DateTime<Utc>) -> Self {
        Self::over(World::new(now.into()))
    }

    /// The way to this world.
    #[must_use]
    pub fn over(world: World) -> Self {
        let state = State { world, hook: None, witness: None, seen: 0, broken: 0 };
        let shared = Shared { state: Mutex::new(state), count: AtomicU64::new(0), changed: Notify::new() };
        Self { shared: Arc::new(shared), caller: Arc::from("") }
    }

    /// The same world for somebody whom the hook can tell from others.
    #[must_use]
    pub fn caller(&self, name: &str) -> Self {
        Self { shared: self.shared.clone(), caller: name.into() }
    }

    /// The world as it is now: a value of its own.
    #[must_use]
    pub fn snapshot(&self) -> World {
        self.lock().world.clone()
    }

    /// Looks at the world.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.lock().world)
    }

    /// Changes the world from inside, as controllers do, or puts another in its place; watches are told.
    pub fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut state = self.lock();
        let before = state.world.version();
        let done = change(&mut state.world);
        state.show(before, &self.caller);
        drop(state);
        self.tell();
        done
    }

    /// Shows the world to `witness` from now on after each change, with whose connection it came over. It must not use this
    /// world itself, which waits for it.
    pub fn witness(&self, witness: impl Fn(&World, &str) + Send + Sync + 'static) {
        self.lock().witness = Some(Arc::new(witness));
    }

    /// Tells of whatever may have changed.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let mut changes = Changes { shared: Arc::clone(&self.shared), seen: 0 };
        changes.mark_seen();
        changes
    }

    /// Lets time pass: nothing else moves the clock.
    pub fn pass(&self, time: TimeDelta) {
        self.change(|world| world.pass(time));
    }

    /// Lets `hook` decide from now on what goes wrong. It must not use this world itself, which waits for it.
    pub fn judge(&self, hook: impl Fn(&SeenRequest<'_>) -> FaultVerdict + Send + Sync + 'static) {
        self.lock().hook = Some(Arc::new(hook));
    }

    /// Lets nothing go wrong from now on.
    pub fn acquit(&self) {
        self.lock().hook = None;
    }

    /// Breaks all open watches, as a restart of the API server does.
    pub fn break_watches(&self) {
        self.lock().broken += 1;
        self.tell();
    }

    /// A state is never left half changed, so a panic while it was held does no harm.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.shared.count.fetch_add(1, Ordering::Relaxed);
        self.shared.changed.notify_waiters();
    }

    async fn exchange(self, parts: Parts, body: Bytes) -> io::Result<Response<AnswerBody>> {
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let route = asked::route(&parts.method, path, query, |resource| self.look(|world| world.serves(resource)));
        let asked = match route {
            Err(refusal) => return Ok(refused(&refusal)),
            Ok(Route::Nothing) => return Ok(nothing()),
            Ok(Route::Discovery(path)) => return Ok(self.discover(&path)),
            Ok(Route::Objects(asked)) => asked,
        };
        let verdict = self.judge_request(&asked);
        if let FaultVerdict::Late(time) = verdict {
            // Whoever asked may give up meanwhile; what was sent is on its way.
            let late = tokio::spawn(async move {
                tokio::time::sleep(time.to_std().unwrap_or_default()).await;
                self.answered(FaultVerdict::Pass, asked, &parts.headers, &body).await
            });
            return late.await.map_err(io::Error::other)?;
        }
        self.answered(verdict, asked, &parts.headers, &body).await
    }

    async fn answered(
        self,
        verdict: FaultVerdict,
        asked: Asked,
        headers: &HeaderMap,
        body: &[u8],
    ) -> io::Result<Response<AnswerBody>> {
        let answer = if let FaultVerdict::Before(_) = verdict {
            Err(status::no_such_resource())
        } else {
            self.answer(verdict, &asked, headers, body)
        };
        if let FaultVerdict::Before(fault) | FaultVerdict::After(fault) = verdict {
            return match (fault.refusal(&asked), fault) {
                (Some(refusal), _) => Ok(refused(&refusal)),
                (None, Fault::Silence) => std::future::pending().await,
                (None, _) => Err(reset()),
            };
        }
        match answer {
            Err(refusal) => Ok(refused(&refusal)),
            Ok(Answer::Json(code, text)) => Ok(respond(code, "application/json", text)),
            Ok(Answer::Watch(watcher)) => Ok(self.follow(*watcher)),
        }
    }

    fn judge_request(&self, asked: &Asked) -> FaultVerdict {
        let dry_run = asked.query.get("dryRun") == "All";
        self.lock().judge(&self.caller, asked, &asked.name, What::Request { verb: asked.verb, dry_run })
    }

    /// What the world answers.
    fn answer(
        &self,
        verdict: FaultVerdict,
        asked: &Asked,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Answer, FieldRefusal> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let sent = Sent { media: header(header::CONTENT_TYPE), body };
        let envelope = Envelope { accept: header(header::ACCEPT), agent: header(header::USER_AGENT), sent };
        let mut state = self.lock();
        let stale = if let FaultVerdict::Stale(version) = verdict { Some(version) } else { None };
        let before = state.world.version();
        let answer = state.world.answer(asked, &envelope, stale);
        let changed = state.show(before, &self.caller);
        drop(state);
        if changed {
            self.tell();
        }
        answer
    }

    fn discover(&self, path: &str) -> Response<AnswerBody> {
        if matches!(path, "/readyz" | "/livez" | "/healthz") {
            return respond(200, "text/plain; charset=utf-8", b"ok".to_vec());
        }
        match self.look(|world| discovery::answer(world, path)) {
            Some(answer) => respond(200, "application/json", answer.to_string().into_bytes()),
            None => nothing(),
        }
    }

    /// The stream of a watch.
    fn follow(self, watcher: Watcher) -> Response<AnswerBody> {
        let changes = self.changes();
        let broken = self.lock().broken;
        let events = stream::unfold(Some((self, watcher, changes)), move |open| async move {
            let (api, mut watcher, mut changes) = open?;
            loop {
                // Marked as seen before looking, so that nothing is missed in between.
                changes.mark_seen();
                match api.next(&mut watcher, broken) {
                    Some(Next::Event(text)) => {
                        return Some((Ok(Bytes::from(text)), Some((api, watcher, changes))));
                    }
                    Some(Next::End) => return None,
                    Some(Next::Broken) | None => return Some((Err(reset()), None)),
                    Some(Next::Wait) => changes.changed().await,
                }
            }
        });
        let body = AnswerBody::from_stream(events);
        let response = Response::builder().status(200).header(header::CONTENT_TYPE, "application/json");
        response.body(body).expect("valid because its parts are constants")
    }

    /// What is next on a watch; `None` if its connection was broken.
    fn next(&self, watcher: &mut Watcher, broken: u64) -> Option<Next> {
        let mut state = self.lock();
        if state.broken != broken {
            return None;
        }
        let State { world, hook, seen, .. } = &mut *state;
        Some(watcher.next(world, |asked, happened, object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            match judged(hook.as_deref(), seen, &self.caller, asked, name, What::Event(happened)) {
                FaultVerdict::Lose => Fate::Lost,
                FaultVerdict::Cut => Fate::Cut,
                FaultVerdict::Double => Fate::Doubled,
                FaultVerdict::Delay(time) => Fate::Held(time),
                FaultVerdict::Pass
                | FaultVerdict::Before(_)
                | FaultVerdict::After(_)
                | FaultVerdict::Late(_)
                | FaultVerdict::Stale(_) => Fate::Passes,
            }
        }))
    }
}

impl State {
    /// Shows the world to the witness, if it has changed; says whether it has.
    fn show(&self, before: u64, caller: &str) -> bool {
        let changed = self.world.version() != before;
        if let Some(witness) = self.witness.as_ref().filter(|_| changed) {
            witness(&self.world, caller);
        }
        changed
    }

    fn judge(&mut self, caller: &str, asked: &Asked, name: &str, what: What) -> FaultVerdict {
        judged(self.hook.as_deref(), &mut self.seen, caller, asked, name, what)
    }
}

fn judged(hook: Option<&Hook>, seen: &mut u64, caller: &str, asked: &Asked, name: &str, what: What) -> FaultVerdict {
    *seen += 1;
    let Some(hook) = hook else { return FaultVerdict::Pass };
    hook(&SeenRequest {
        number: *seen,
        caller,
        resource: asked.resource,
        namespace: &asked.namespace,
        name,
        subresource: &asked.subresource,
        what,
    })
}

impl Service<Request<Body>> for KubeApi {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<AnswerBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            api.exchange(parts, body).await
        })
    }
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

fn respond(code: u16, media: &str, text: Vec<u8>) -> Response<AnswerBody> {
    let body = AnswerBody::from(text);
    let response = Response::builder().status(code).header(header::CONTENT_TYPE, media);
    response.body(body).expect("valid because codes and media types are constants")
}

fn refused(refusal: &FieldRefusal) -> Response<AnswerBody> {
    let status: Value = refusal.status();
    let mut response = respond(refusal.code, "application/json", status.to_string().into_bytes());
    if let Some(seconds) = status["details"]["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// What Go answers where nothing is served.
fn nothing() -> Response<AnswerBody> {
    respond(404, "text/plain; charset=utf-8", b"404 page not found\n".to_vec())
}
