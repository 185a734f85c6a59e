//! The API server's audit log: who asked for what, and what came of it.

use chrono::{DateTime, Utc};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the audit log, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Where the log begins.
    pub(crate) const START: Self = Self(0);
}

/// One request that was answered.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// When it came: nothing that it does can be earlier.
    pub(crate) received: DateTime<Utc>,
    /// When it was answered; for a watch, when its stream began.
    pub(crate) answered: DateTime<Utc>,
    /// Who asked.
    pub(crate) user: String,
    /// With what program.
    pub(crate) agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub(crate) verb: String,
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// The plural of the kind; empty for paths that are no resource.
    pub(crate) resource: String,
    /// `status`, `scale`; empty for the object itself.
    pub(crate) subresource: String,
    /// Its namespace; empty for none.
    pub(crate) namespace: String,
    /// The object; empty for a list.
    pub(crate) name: String,
    /// The HTTP status.
    pub(crate) code: u16,
    /// The request's path and query.
    pub(crate) uri: String,
    /// What was sent, for the writes that the audit policy lists.
    pub(crate) sent: Option<Value>,
    /// What was answered, for the same.
    pub(crate) answer: Option<Value>,
}

impl Request {
    /// Whether it has changed something: a write that succeeded and was no dry run.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && (200..300).contains(&self.code)
            && !self.uri.contains("dryRun=All")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    response_status: Option<Status>,
    request_object: Option<Value>,
    response_object: Option<Value>,
    request_received_timestamp: DateTime<Utc>,
    stage_timestamp: DateTime<Utc>,
}

/// Nobody, where the request was refused before it was known whose it is: an API server that has just started knows no
/// service account yet and answers 401.
#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// Reads the requests between two marks. A watch counts when it begins, everything else when it is answered.
pub(crate) fn between(log: &Path, start: Mark, end: Mark) -> Vec<Request> {
    text(log, start, end).lines().filter_map(parse).collect()
}

/// The same of one user alone.
pub(crate) fn of_user(log: &Path, user: &str, start: Mark, end: Mark) -> Vec<Request> {
    // Most lines are of others: parsing them all would take longer than the tests.
    let named = format!("\"username\":\"{user}\"");
    let lines = text(log, start, end);
    lines.lines().filter(|line| line.contains(&named)).filter_map(parse).filter(|r| r.user == user).collect()
}

fn text(log: &Path, start: Mark, end: Mark) -> String {
    let mut file = std::fs::File::open(log).unwrap();
    file.seek(SeekFrom::Start(start.0)).unwrap();
    let mut text = String::new();
    file.take(end.0 - start.0).read_to_string(&mut text).unwrap();
    text
}

/// One line of the log, if it is where a request is counted.
pub(crate) fn parse(line: &str) -> Option<Request> {
    let line: Line = serde_json::from_str(line).unwrap_or_else(|e| panic!("audit log: {e} in {line}"));
    let counted = if line.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    (line.stage == counted).then(|| Request {
        received: line.request_received_timestamp,
        answered: line.stage_timestamp,
        user: line.user.username,
        agent: line.user_agent,
        verb: line.verb,
        group: line.object_ref.api_group,
        resource: line.object_ref.resource,
        subresource: line.object_ref.subresource,
        namespace: line.object_ref.namespace,
        name: line.object_ref.name,
        code: line.response_status.map_or(0, |s| s.code),
        uri: line.request_uri,
        sent: line.request_object,
        answer: line.response_object,
    })
}

/// Asks for something that nobody else asks for, and finds the end of that line: the API server writes a line right after
/// it has answered, so what was answered before stands above.
pub(crate) async fn mark(client: &Client, log: &Path) -> Mark {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let sign = format!("/version?mark={}", NEXT.fetch_add(1, Ordering::Relaxed));
    let before = std::fs::metadata(log).unwrap().len();
    let request = axum::http::Request::get(&sign).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap();
    let sign = format!("\"{sign}\"");
    super::cluster::eventually("the mark in the audit log", async || {
        let mut file = std::fs::File::open(log).unwrap();
        file.seek(SeekFrom::Start(before)).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        let at = text.find(&sign)?;
        let end = at + text[at..].find('\n')? + 1;
        Some(Mark(before + u64::try_from(end).unwrap()))
    })
    .await
}
