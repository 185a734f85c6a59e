//! What an API server, or whoever stands before it, may do to those who ask: keep silent, never end, send elsewhere.

use super::client::Cluster;
use super::connection::{RESPONSE_LIMIT, bounded};
use super::testing::{Fake, object};
use crate::manifest::object::Kind;
use crate::workload::live::{Expects, WriteOutcome};
use axum::body::Body;
use bytes::Bytes;
use futures::stream::{iter, pending};
use futures::{Stream, StreamExt};
use http::{Request, Response};
use serde_json::json;
use std::convert::Infallible;
use std::iter::repeat_n;

/// What a write comes to whose answer has that body. Nothing asks again behind our back.
async fn answered(body: impl Fn() -> Body + Clone + Send + Sync + 'static) -> String {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let asks_who = request.uri().path().ends_with("/kube-system");
        let known = Body::from(json!({"metadata": {"uid": "cluster-1"}}).to_string().into_bytes());
        let answer = Response::new(if asks_who { known } else { body() });
        async move { Ok::<_, Infallible>(bounded(answer)) }
    });
    let cluster = Cluster::over(service, "tidegate".parse().unwrap(), &"a".parse().unwrap()).await.unwrap();
    let outcome = cluster.dry_run(&object(Kind::ConfigMap, json!({})), &Expects::Absent).await;
    let WriteOutcome::Retriable(why) = outcome else { panic!("{outcome:?}") };
    why
}

fn of(parts: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::from_stream(parts.map(Ok::<_, Infallible>))
}

#[tokio::test(start_paused = true)]
async fn attack_55_59_who_begins_to_answer_and_goes_silent_is_given_up() {
    let why = answered(|| of(iter([Bytes::from_static(b"{")]).chain(pending()))).await;
    assert_eq!(why, "no answer within 10 s");
}

#[tokio::test]
async fn attack_59_an_answer_without_end_is_cut_off() {
    let part = Bytes::from(vec![b' '; 1 << 20]);
    let parts = 2 * RESPONSE_LIMIT / part.len();
    let why = answered(move || of(iter(repeat_n(part.clone(), parts)))).await;
    assert!(why.contains("length limit exceeded"), "{why}");
}

#[tokio::test]
async fn attack_59_nobody_is_sent_elsewhere() {
    let fake = Fake::default().then(302, "").then(307, "").then(200, "{}");
    let cluster = fake.cluster().await;
    for _ in 0..2 {
        let outcome = cluster.dry_run(&object(Kind::ConfigMap, json!({})), &Expects::Absent).await;
        assert!(matches!(outcome, WriteOutcome::Retriable(_)), "{outcome:?}");
    }
    assert_eq!(fake.asked().len(), 2, "each was asked once");
}
