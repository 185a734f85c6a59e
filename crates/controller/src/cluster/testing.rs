//! A fake API server for the unit tests of this room: answers by method and path, and remembers what it was asked.

use super::client::Cluster;
use super::connection::bounded;
use crate::manifest::object::{Kind, Object, ObjectRef};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tower::ServiceExt as _;

/// What was asked: the request line, the media type, the body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) media: String,
    pub(super) body: Value,
}

/// No code: the next answer takes its time.
const LATE: u16 = 0;

/// A fake API server.
#[derive(Clone, Default)]
pub(super) struct Fake {
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
}

impl Fake {
    /// Gives these answers, in this order.
    pub(super) fn answering(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let fake = Self::default();
        for (code, body) in answers {
            fake.answers.lock().unwrap().push_back((code, body.to_string()));
        }
        fake
    }

    /// Then gives this answer, as it is.
    pub(super) fn then(self, code: u16, text: &str) -> Self {
        self.answers.lock().unwrap().push_back((code, text.to_owned()));
        self
    }

    /// Then takes a minute for the next answer.
    pub(super) fn late(self) -> Self {
        self.then(LATE, "")
    }

    /// What was asked since the connection was made.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().skip(1).cloned().collect()
    }

    /// A cluster that this is.
    pub(super) async fn cluster(&self) -> Cluster {
        self.answers.lock().unwrap().push_front((200, json!({"metadata": {"uid": "cluster-1"}}).to_string()));
        let fake = self.clone();
        let service = tower::service_fn(move |request| fake.clone().answer(request)).map_response(bounded);
        Cluster::over(service, "tidegate".parse().unwrap(), &"a".parse().unwrap()).await.unwrap()
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let media = parts.headers.get("content-type").map_or("", |media| media.to_str().unwrap());
        self.asked.lock().unwrap().push(Asked {
            line: format!("{} {}", parts.method, parts.uri),
            media: media.to_owned(),
            body: if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() },
        });
        let mut next = self.answers.lock().unwrap().pop_front();
        if next.as_ref().is_some_and(|(code, _)| *code == LATE) {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            next = self.answers.lock().unwrap().pop_front();
        }
        let (code, text) = next.unwrap_or_else(|| (500, format!("unexpected {} {}", parts.method, parts.uri)));
        Ok(Response::builder().status(code).body(Body::from(text.into_bytes())).unwrap())
    }
}

/// An object named `shop/podinfo`.
pub(super) fn object(kind: Kind, value: Value) -> Object {
    let reference = ObjectRef { kind, namespace: "shop".parse().unwrap(), name: "podinfo".parse().unwrap() };
    Object::new(reference, value)
}
