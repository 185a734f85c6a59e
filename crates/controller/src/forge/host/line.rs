//! The way to a host's API: one call there, with the limits that hold for each, whoever carries it.

use super::{Answer, HostError, LONGEST, PATIENCE};
use crate::manifest::installation::{HostKind, PullHost};
use crate::record::text::causes;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use reqwest::redirect::Policy;
use reqwest::{Body, Client};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::timeout;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};
use url::Url;

/// Who we say that we are.
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// What brings a request to a Git host, and its answer back: the network, or a host in this process. It follows no redirect.
pub type HttpTransport = BoxCloneSyncService<Request<Bytes>, Response<Body>, BoxError>;

/// The network.
///
/// # Errors
/// This machine's certificates cannot be read.
pub fn network() -> Result<HttpTransport, reqwest::Error> {
    // The token goes nowhere else.
    let client = Client::builder().redirect(Policy::none()).build()?;
    Ok(BoxCloneSyncService::new(service_fn(move |request: Request<Bytes>| {
        let client = client.clone();
        async move {
            let response = client.execute(request.try_into()?).await?;
            Ok::<Response<Body>, BoxError>(response.into())
        }
    })))
}

/// The way to a host's API, for one who is let in by this.
pub(super) struct Line<'a> {
    pub(super) transport: &'a HttpTransport,
    pub(super) site: &'a PullHost,
    pub(super) bearer: &'a SecretString,
}

impl Line<'_> {
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<String>,
    ) -> Result<Answer, HostError> {
        let doing = format!("{method} {}", path.split('?').next().unwrap_or(path));
        let away = |why: String| HostError::Away { doing: doing.clone(), why };
        let request = self.request(method, path, body, etag).map_err(|error| away(causes(error.as_ref())))?;
        let exchange = async {
            let (head, body) = self.transport.clone().oneshot(request).await?.into_parts();
            Ok::<_, BoxError>((head, whole(body).await?))
        };
        let late = |_| away(format!("no answer within {} s", PATIENCE.as_secs()));
        let done = timeout(PATIENCE, exchange).await.map_err(late)?;
        let (head, body) = done.map_err(|error| away(causes(error.as_ref())))?;
        Ok(Answer { doing, status: head.status.as_u16(), headers: head.headers, body, tally: None })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<String>,
    ) -> Result<Request<Bytes>, BoxError> {
        // As a URL it has no way up in it any more, and nothing that HTTP does not take.
        let url = Url::parse(&format!("{}/{path}", self.site.api))?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", self.bearer.expose_secret()))?;
        bearer.set_sensitive(true);
        let mut request = Request::builder().method(method).uri(url.as_str());
        request = request.header(AUTHORIZATION, bearer).header(ACCEPT, "application/json").header(USER_AGENT, AGENT);
        if self.site.kind == HostKind::Github {
            request = request.header("x-github-api-version", "2022-11-28");
        }
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        Ok(request.body(body.map(ToString::to_string).unwrap_or_default().into())?)
    }
}

async fn whole(mut answer: Body) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(frame) = answer.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        // What is cut here is no JSON, and of no use to anybody.
        if body.len() + chunk.len() > LONGEST {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
