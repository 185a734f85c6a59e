//! Git over HTTP as every Git installation brings it: `git http-backend`, run as CGI for each request.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, Uri};
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Answers one request for a repository below `root`. Pushes are taken where `http.receivepack` is set.
pub(crate) async fn answer(
    root: &Path,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut git = Command::new("git");
    git.arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", method.as_str())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = git.spawn().expect("git is installed");
    let mut stdin = child.stdin.take().expect("its standard input is a pipe");
    // Read while writing: a pack that is larger than the pipe would stop both sides.
    let write = async move {
        // A request that git refuses is not read to its end.
        stdin.write_all(&body).await.ok();
    };
    let ((), output) = tokio::join!(write, child.wait_with_output());
    response(&output.expect("git http-backend has run").stdout)
}

/// The CGI answer: headers, an empty line, the body; the status is the header `Status`.
fn response(output: &[u8]) -> Response<Body> {
    let end = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(output.len());
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        response = match line.split_once(": ") {
            Some(("Status", status)) => response.status(status.get(..3).unwrap_or("500")),
            Some((name, value)) => response.header(name, value),
            None => response,
        };
    }
    let body = output.get(end + 4..).unwrap_or_default().to_vec();
    response.body(body.into()).expect("git http-backend writes valid headers")
}
