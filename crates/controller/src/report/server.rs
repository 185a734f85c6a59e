//! The process's own web server: health and metrics, read-only, no secrets, no profiles (attack 73). What is missing is said in
//! three fixed sentences: why is in the log, which not everybody can read who reaches a port.

use super::connections;
use super::metrics::{CONTENT_TYPE, Metrics};
use crate::plan::input::Git;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// What has to be true before this process counts as ready. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ServerReadiness {
    inner: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    lease: AtomicBool,
    watches: AtomicBool,
    source: AtomicBool,
    git_away: AtomicBool,
}

impl ServerReadiness {
    /// It is known who leads.
    pub fn lease_known(&self) {
        self.inner.lease.store(true, Ordering::Relaxed);
    }

    /// Everything that is watched was listed once.
    pub fn watches_synced(&self) {
        self.inner.watches.store(true, Ordering::Relaxed);
    }

    /// Main was read once. A stand-by that has never led has nothing to read, and is ready without.
    pub fn source_read(&self) {
        self.inner.source.store(true, Ordering::Relaxed);
    }

    /// How the last request to Git went. Who was ready stays so: what goes back needs no Git.
    pub fn git(&self, git: &Git) {
        self.inner.git_away.store(git.trouble().is_some(), Ordering::Relaxed);
    }

    /// What is missing, in words; empty when ready.
    fn missing(&self) -> Vec<&'static str> {
        let Flags { lease, watches, source, git_away: _ } = &*self.inner;
        let parts = [
            (lease, "it is not known who leads"),
            (watches, "the cluster was not listed yet"),
            (source, "main was not read yet"),
        ];
        parts.into_iter().filter(|(flag, _)| !flag.load(Ordering::Relaxed)).map(|(_, what)| what).collect()
    }
}

#[derive(Clone)]
struct Shown {
    metrics: Metrics,
    readiness: ServerReadiness,
}

/// Serves numbers and health until the process ends.
pub async fn serve(listener: TcpListener, metrics: Metrics, readiness: ServerReadiness) -> Infallible {
    alone(listener, router(metrics, readiness)).await
}

/// Serves that, and nothing else, until the process ends.
pub async fn alone(listener: TcpListener, app: Router) -> Infallible {
    connections::answer(listener, app).await
}

fn router(metrics: Metrics, readiness: ServerReadiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Shown { metrics, readiness })
}

async fn readyz(State(shown): State<Shown>) -> impl IntoResponse {
    let missing = shown.readiness.missing();
    if missing.is_empty() {
        let away = shown.readiness.inner.git_away.load(Ordering::Relaxed);
        (StatusCode::OK, if away { "ok\nGit is away\n" } else { "ok\n" }.to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", missing.join("\n")))
    }
}

async fn text(State(shown): State<Shown>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], shown.metrics.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    async fn ask(router: &Router, path: &str) -> (u16, String, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let kind = answer.headers().get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap()).to_owned();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn attack_73_it_is_ready_when_everything_was_seen_once_and_never_says_why_not() {
        let readiness = ServerReadiness::default();
        let router = router(Metrics::new(), readiness.clone());
        assert_eq!(ask(&router, "/healthz").await.0, 200);
        let (status, _, body) = ask(&router, "/readyz").await;
        assert_eq!((status, body.lines().count()), (503, 3));
        readiness.lease_known();
        readiness.watches_synced();
        assert_eq!(ask(&router, "/readyz").await.2, "main was not read yet\n");
        readiness.git(&Git::Away("failed to ask https://git.internal.test/shop.git: 401".to_owned()));
        assert_eq!(ask(&router, "/readyz").await.2, "main was not read yet\n");
        readiness.source_read();
        let (status, _, body) = ask(&router, "/readyz").await;
        assert_eq!((status, body.as_str()), (200, "ok\nGit is away\n"));
        readiness.git(&Git::Fresh);
        assert_eq!(ask(&router, "/readyz").await.2, "ok\n");
    }

    #[tokio::test]
    async fn attack_73_nothing_can_be_changed_from_outside() {
        let router = router(Metrics::new(), ServerReadiness::default());
        for path in ["/metrics", "/healthz", "/readyz"] {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                let request = Request::builder().method(method).uri(path).body(Body::from("x")).unwrap();
                let answer = router.clone().oneshot(request).await.unwrap();
                assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            }
        }
    }

    #[tokio::test]
    async fn metrics_say_what_they_are_and_nothing_else_is_served() {
        let router = router(Metrics::new(), ServerReadiness::default());
        let (status, kind, body) = ask(&router, "/metrics").await;
        assert_eq!((status, kind.as_str()), (200, CONTENT_TYPE));
        assert!(body.ends_with("# EOF\n"), "{body}");
        for path in ["/debug/pprof", "/", "/metrics/../x"] {
            assert_eq!(ask(&router, path).await.0, 404, "{path}");
        }
    }
}
