//! What `./try` puts around tidegate besides the cluster: a Git host over HTTP and a gateway that takes every route.
//!
//! Run by `./try`; not for anything that others can reach.
#![expect(clippy::disallowed_methods, reason = "this is no part of the controller: it starts git and reads the clock")]
#![expect(clippy::unwrap_used, reason = "it ends with the reason, in the log that ./try names")]

#[path = "../tests/support/gateway.rs"]
#[expect(dead_code, reason = "here the gateway takes every route; the tests make it refuse")]
mod gateway;
#[path = "../tests/support/http_backend.rs"]
mod http_backend;
#[path = "../tests/support/kubeconfig.rs"]
mod kubeconfig;

use axum::extract::Request;
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Parser)]
struct Options {
    /// The cluster admin's kubeconfig.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The directory that holds the bare repositories.
    #[arg(long)]
    repositories: PathBuf,
    /// Where the Git host listens.
    #[arg(long)]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() {
    let Options { kubeconfig, repositories, listen } = Options::parse();
    let client = kubeconfig::client(&kubeconfig).await;
    let root = Arc::new(repositories);
    let git = axum::Router::new().fallback(move |request: Request| {
        let root = root.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 30).await.unwrap();
            http_backend::answer(&root, &parts.method, &parts.uri, &parts.headers, body).await
        }
    });
    let listener = tokio::net::TcpListener::bind(listen).await.unwrap();
    let server = async { axum::serve(listener, git).await.unwrap() };
    tokio::join!(server, gateway::serve(client, gateway::Modes::default()));
}
