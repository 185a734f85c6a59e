//! The way to one API server: who we are there, and how a request is sent.

use super::connection::{ClusterError, ClusterSource, Connection};
use super::failure::Failure;
use super::{discovery, request};
use crate::manifest::ids::{InstanceName, Namespace};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::{HeaderMap, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::core::WatchEvent;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::{BoxError, Service};

/// How long a request may take that is no watch.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// One cluster, as one instance of tidegate reaches it. Clones share the connection.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    uid: String,
    home: Namespace,
    instance: InstanceName,
    manager: String,
    found: discovery::Found,
}

impl Cluster {
    /// Connects, and asks the cluster who it is.
    ///
    /// *Guarantees*: no plugin was run, the server's certificate is checked, no request is repeated behind our back.
    /// *Assumptions*: `source` comes from the installation. Proxy variables of the environment are ignored.
    ///
    /// # Errors
    /// When the source cannot be read or asks for what we refuse, or the API server does not answer.
    pub async fn connect(source: &ClusterSource, instance: &InstanceName) -> Result<Self, ClusterError> {
        let (connection, home) = Connection::open(source).await?;
        Self::identified(connection, home, instance).await
    }

    /// The same over any service that answers like an API server.
    ///
    /// # Errors
    /// When it does not say which cluster it is.
    pub async fn over<S, B>(service: S, home: Namespace, instance: &InstanceName) -> Result<Self, ClusterError>
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body_util::BodyExt<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let builder = ClientBuilder::new(service, home.as_str());
        Self::identified(Connection::fixed(builder), home, instance).await
    }

    async fn identified(
        connection: Connection,
        home: Namespace,
        instance: &InstanceName,
    ) -> Result<Self, ClusterError> {
        let uid = identity(&connection.client()).await?;
        let (instance, manager) = (instance.clone(), instance.in_cluster());
        Ok(Self { inner: Arc::new(Inner { connection, uid, home, instance, manager, found: Mutex::default() }) })
    }

    /// The uid of the namespace `kube-system`: which cluster this is, whatever it is called.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.inner.uid
    }

    /// The namespace that we ourselves live in: the service account's, or that of the kubeconfig's context.
    #[must_use]
    pub fn home(&self) -> &Namespace {
        &self.inner.home
    }

    /// The instance that we are.
    #[must_use]
    pub fn instance(&self) -> &InstanceName {
        &self.inner.instance
    }

    /// The field manager of all our writes: `tidegate-<instance>`.
    #[must_use]
    pub fn manager(&self) -> &str {
        &self.inner.manager
    }

    pub(super) fn found(&self) -> &discovery::Found {
        &self.inner.found
    }

    /// Sends a request that is no watch.
    pub(super) async fn call(&self, request: Request<Vec<u8>>) -> Result<Value, Failure> {
        self.call_within(request, REQUEST_TIMEOUT).await
    }

    /// The same with another deadline.
    pub(super) async fn call_within(&self, request: Request<Vec<u8>>, limit: Duration) -> Result<Value, Failure> {
        let answer = send(&self.inner.connection.client(), request, limit).await;
        self.heed(answer).await
    }

    /// The text of the answer to a request that is no watch.
    pub(super) async fn text(&self, request: Request<Vec<u8>>) -> Result<String, Failure> {
        let client = self.inner.connection.client();
        self.heed(within(REQUEST_TIMEOUT, client.request_text(request)).await).await
    }

    /// The answer to a request that reads, with its headers.
    pub(super) async fn answer(&self, request: Request<Vec<u8>>) -> Result<(HeaderMap, Value), Failure> {
        let client = self.inner.connection.client();
        let asked = async {
            let (head, body) = client.send(request.map(Body::from)).await?.into_parts();
            Ok((head, body.collect_bytes().await?))
        };
        let (head, bytes) = self.heed(within(REQUEST_TIMEOUT, asked).await).await?;
        let garbage = || Failure::Garbage { code: head.status.as_u16(), text: "no JSON".to_owned() };
        let found = serde_json::from_slice(&bytes).map_err(|_| garbage())?;
        if head.status.is_success() { Ok((head.headers, found)) } else { Err(garbage()) }
    }

    /// An answer as it came. Where it may be for our credentials, they are read again for the next request.
    async fn heed<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if answer.as_ref().err().is_some_and(|failure| matches!(failure.code(), None | Some(401))) {
            self.inner.connection.renew(&self.inner.uid).await;
        }
        answer
    }

    /// Opens a watch. Its stream ends, with or without an error, whenever the connection does.
    pub(super) async fn open(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<BoxStream<'static, Result<WatchEvent<Value>, Failure>>, Failure> {
        let client = self.inner.connection.client();
        let opened = within(REQUEST_TIMEOUT, client.request_events::<Value>(request)).await;
        let stream = self.heed(opened).await?;
        Ok(Box::pin(stream.map(|event| event.map_err(Failure::of))))
    }
}

/// The uid of the namespace `kube-system`.
pub(super) async fn identity(client: &kube::Client) -> Result<String, ClusterError> {
    let request = request::get("/api/v1/namespaces/kube-system", &[]);
    let found = send(client, request, REQUEST_TIMEOUT).await.map_err(|e| ClusterError::Identity(e.to_string()))?;
    let uid = found.pointer("/metadata/uid").and_then(Value::as_str).filter(|uid| !uid.is_empty());
    Ok(uid.ok_or_else(|| ClusterError::Identity("the answer holds none".to_owned()))?.to_owned())
}

async fn send(client: &kube::Client, request: Request<Vec<u8>>, limit: Duration) -> Result<Value, Failure> {
    let text = within(limit, client.request_text(request)).await?;
    serde_json::from_str(&text).map_err(|error| Failure::of(kube::Error::SerdeError(error)))
}

async fn within<T>(limit: Duration, asked: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer.map_err(Failure::of),
        Err(_) => Err(Failure::Silent(format!("no answer within {} s", limit.as_secs_f32()))),
    }
}
