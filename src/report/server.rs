//! The process's own web server: health and metrics, read-only, no secrets, no profiles (attack 73).

use super::metrics::{CONTENT_TYPE, Metrics};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// What has to be true before this process counts as ready. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    inner: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    lease: AtomicBool,
    watches: AtomicBool,
    source: AtomicBool,
}

impl Readiness {
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

    /// What is missing, in words; empty when ready.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let Flags { lease, watches, source } = &*self.inner;
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
    readiness: Readiness,
}

/// Serves until the process ends.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, metrics: Metrics, readiness: Readiness) -> std::io::Result<()> {
    axum::serve(listener, router(metrics, readiness)).await
}

fn router(metrics: Metrics, readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Shown { metrics, readiness })
}

async fn readyz(State(shown): State<Shown>) -> impl IntoResponse {
    let missing = shown.readiness.missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
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
    async fn it_is_ready_when_everything_was_seen_once() {
        let readiness = Readiness::default();
        let router = router(Metrics::new(), readiness.clone());
        assert_eq!(ask(&router, "/healthz").await.0, 200);
        let (status, _, body) = ask(&router, "/readyz").await;
        assert_eq!((status, body.lines().count()), (503, 3));
        readiness.lease_known();
        readiness.watches_synced();
        assert_eq!(ask(&router, "/readyz").await.2, "main was not read yet\n");
        readiness.source_read();
        assert_eq!(ask(&router, "/readyz").await.0, 200);
    }

    #[tokio::test]
    async fn metrics_say_what_they_are_and_nothing_else_is_served() {
        let router = router(Metrics::new(), Readiness::default());
        let (status, kind, body) = ask(&router, "/metrics").await;
        assert_eq!((status, kind.as_str()), (200, CONTENT_TYPE));
        assert!(body.ends_with("# EOF\n"), "{body}");
        for path in ["/debug/pprof", "/", "/metrics/../x"] {
            assert_eq!(ask(&router, path).await.0, 404, "{path}");
        }
    }
}
