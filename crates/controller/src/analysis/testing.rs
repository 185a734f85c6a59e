//! A server that answers always the same, and keeps what it was asked.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use url::Url;

/// A question as it came in.
pub(super) struct Asked {
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Asked {
    /// A header, if it was sent.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// One that always answers the same.
    pub(super) async fn saying(status: u16, headers: &[(&'static str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let (asked, listener) = (Arc::default(), tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let headers: Vec<(&str, String)> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let said: Vec<u8> = body.into();
        let answer = move |State(asked): State<Arc<Mutex<Vec<Asked>>>>, uri: Uri, sent: HeaderMap, body: String| async move {
            asked.lock().unwrap().push(Asked { uri: uri.to_string(), headers: sent, body });
            let mut response: Response = said.into_response();
            *response.status_mut() = status.try_into().unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        };
        let app = Router::new().fallback(answer).with_state(Arc::clone(&asked));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, asked }
    }

    /// An address at which nobody listens.
    pub(super) async fn nobody() -> Self {
        let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        Self { address, asked: Arc::default() }
    }

    pub(super) fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    /// The last question, which is told once.
    pub(super) fn asked(&self) -> Option<Asked> {
        self.asked.lock().unwrap().pop()
    }
}
