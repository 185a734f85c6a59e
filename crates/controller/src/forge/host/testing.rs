//! A Git host in this process, as GitHub or GitLab describes its API: it keeps pull requests, pages, ETags and a budget. What it
//! knows it knows in GitHub's words. The integration tests have it too, where its answers are held against what GitHub publishes.

use super::{Checks, HostKind, Registered};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;

/// How long its pages are, whatever is asked for, unless a test says otherwise.
const PAGE: usize = 2;
pub(crate) const USER: u64 = 42;
pub(crate) const REPOSITORY: u64 = 7;

/// What it says instead of what it knows.
#[derive(Clone)]
pub(crate) struct Fault {
    /// A part of "METHOD path?query".
    pub(crate) at: &'static str,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

#[path = "testing/app.rs"]
mod app;
#[path = "testing/github.rs"]
pub(crate) mod github;
#[path = "testing/gitlab.rs"]
mod gitlab;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) pulls: Vec<Value>,
    pub(crate) comments: Vec<(String, String)>,
    /// The labels of the repository.
    pub(crate) labels: BTreeSet<String>,
    /// What Apps have said of commits.
    pub(crate) checks: Checks,
    /// What else can be read below the repository, or after a slash below the API: lists come in pages.
    pub(crate) there: BTreeMap<String, Value>,
    /// Each request, with the header `Authorization`.
    pub(crate) asked: Vec<(String, String)>,
    pub(crate) fault: Option<Fault>,
    /// What is left of 100 requests; a 304 costs nothing.
    pub(crate) spent: u32,
    /// How long its pages are.
    pub(crate) page: Option<usize>,
    /// A part of a request, and the pull request that is closed right after that was answered.
    pub(crate) turn: Option<(&'static str, u64)>,
    /// How often a pull request was changed, a second apart.
    changes: i64,
    /// Who alone is let in, and what the host's clock shows then.
    pub(crate) app: Option<(Registered, chrono::DateTime<chrono::Utc>)>,
}

impl State {
    fn now(&mut self) -> Value {
        self.changes += 1;
        json!(chrono::DateTime::from_timestamp(1_767_225_600 + self.changes, 0).unwrap().to_rfc3339())
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    kind: HostKind,
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// One end of a pull request.
fn end(branch: &str) -> Value {
    json!({"label": format!("acme:{branch}"), "ref": branch, "sha": github::sha("0"), "repo": {"id": REPOSITORY}})
}

impl Server {
    pub(crate) async fn start(kind: HostKind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { kind, address: listener.local_addr().unwrap(), state: Arc::default() };
        let app = {
            let server = server.clone();
            Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
                std::future::ready(server.answer(&method, &uri, &headers, &body))
            })
        };
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        server
    }

    /// Where its API is.
    pub(crate) fn api(&self) -> String {
        format!("http://{}{}", self.address, self.root())
    }

    /// The path of its API.
    pub(crate) fn root(&self) -> &'static str {
        match self.kind {
            HostKind::Gitea | HostKind::Github => "/api/v3",
            HostKind::Gitlab => "/api/v4",
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Opens a pull request; its number.
    pub(crate) fn open(&self, author: u64, branch: &str, base: &str, body: &str) -> u64 {
        let mut state = self.state();
        let (number, now) = (state.pulls.len() as u64 + 1, state.now());
        state.pulls.push(json!({
            "number": number, "state": "open", "merged_at": null, "title": "a title", "body": body, "updated_at": now,
            "user": {"id": author, "login": "somebody"},
            "head": end(branch),
            "base": end(base),
        }));
        number
    }

    /// Changes a pull request, as a person does.
    pub(crate) fn change(&self, number: u64, fields: Value) {
        let mut state = self.state();
        let now = state.now();
        let pull = state.pulls.iter_mut().find(|pull| pull["number"] == number).unwrap();
        let mut fields = fields.as_object().unwrap().clone();
        // It is sent as a name, and told as an end.
        if let Some(Value::String(base)) = fields.get("base").cloned() {
            fields.insert("base".to_owned(), end(&base));
        }
        pull.as_object_mut().unwrap().extend(fields);
        pull["updated_at"] = now;
    }

    /// All of them, as it tells them, in that state.
    pub(super) fn listed(&self, state: &str) -> String {
        let all = self.state().pulls.clone();
        let all: Vec<Value> = match self.kind {
            HostKind::Gitea | HostKind::Github => all,
            HostKind::Gitlab => all.iter().map(gitlab::as_request).collect(),
        };
        let all = all.into_iter().map(|mut pull| {
            pull["state"] = json!(state);
            pull
        });
        all.collect::<Value>().to_string()
    }

    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let what = format!("{method} {uri}");
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        self.state().asked.push((what.clone(), header("authorization")));
        if self.kind == HostKind::Github {
            let version = [header("accept"), header("x-github-api-version")];
            assert_eq!(version, ["application/json", "2022-11-28"], "the answers are of another version else");
            assert!(header("user-agent").starts_with("tidegate/"), "GitHub answers nobody who does not say who asks");
        }
        let fault = self.state().fault.clone().filter(|fault| what.contains(fault.at));
        if let Some(fault) = fault {
            let mut response = fault.body.into_response();
            *response.status_mut() = fault.status.try_into().unwrap();
            for (name, value) in fault.headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            return response;
        }
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let (status, value, more) = match self.to_app(method, uri.path(), &header("authorization"), body) {
            Some((status, value)) => (status, value, false),
            None => self.carry_out(method, uri.path(), &query, body),
        };
        let turn = self.state().turn.take_if(|(at, _)| what.contains(*at));
        if let Some((_, number)) = turn {
            self.change(number, json!({"state": "closed"}));
        }
        let etag =
            format!("\"{:x}\"", value.to_string().bytes().fold(7_u64, |sum, b| sum.wrapping_mul(31) + u64::from(b)));
        let fresh = method != Method::GET || header("if-none-match") != etag;
        self.state().spent += u32::from(fresh);
        let mut response = if fresh { value.to_string().into_response() } else { String::new().into_response() };
        *response.status_mut() = if fresh { status } else { 304 }.try_into().unwrap();
        let mut say =
            |name: &'static str, value: String| drop(response.headers_mut().insert(name, value.parse().unwrap()));
        if fresh {
            say("content-type", "application/json; charset=utf-8".to_owned());
        }
        // Gitea has none.
        if self.kind != HostKind::Gitea {
            say("etag", etag);
        }
        let [limit, remaining] = match self.kind {
            HostKind::Gitea | HostKind::Github => ["x-ratelimit-limit", "x-ratelimit-remaining"],
            HostKind::Gitlab => ["ratelimit-limit", "ratelimit-remaining"],
        };
        say(limit, "100".to_owned());
        say(remaining, (100 - self.state().spent).to_string());
        if let Some((_, now)) = &self.state().app {
            say("date", now.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }
        if more {
            say("link", format!("<http://evil.test{}>; rel=\"next\", <http://evil.test/>; rel=\"last\"", uri.path()));
        }
        response
    }

    fn carry_out(
        &self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        body: &[u8],
    ) -> (u16, Value, bool) {
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        if self.kind == HostKind::Gitlab {
            return self.as_gitlab(method, path, query, sent);
        }
        let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
        let Some(path) = path.strip_prefix("/api/v3/") else { return (404, json!({"message": "Not Found"}), false) };
        match (method.as_str(), path.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["user"]) => (200, json!({"id": USER, "login": "bot"}), false),
            ("GET", ["repos", "acme", "shop"]) => (200, json!({"id": REPOSITORY, "name": "shop"}), false),
            ("GET", ["repos", "acme", "shop", "pulls"]) => {
                let (value, more) = self.list(query);
                (200, value, more)
            }
            ("POST", ["repos", "acme", "shop", "pulls"]) => {
                let head = text("head");
                let taken = self.state().pulls.iter().any(|p| p["state"] == "open" && p["head"]["ref"] == *head);
                if taken {
                    let errors = json!([{"message": "A pull request already exists for acme:x."}]);
                    return (422, json!({"message": "Validation Failed", "errors": errors}), false);
                }
                let number = self.open(USER, &head, &text("base"), &text("body"));
                self.change(number, json!({"title": text("title")}));
                (201, self.state().pulls.last().unwrap().clone(), false)
            }
            (method @ ("GET" | "PATCH"), ["repos", "acme", "shop", "pulls", number]) => {
                let number: u64 = number.parse().unwrap();
                if method == "PATCH" {
                    self.change(number, sent);
                }
                (200, self.state().pulls[usize::try_from(number).unwrap() - 1].clone(), false)
            }
            ("POST", ["repos", "acme", "shop", "issues", number, "comments"]) => {
                self.state().comments.push(((*number).to_owned(), text("body")));
                (201, json!({"id": 1}), false)
            }
            ("GET", ["repos", "acme", "shop", "issues", number, "comments"]) => {
                let (value, more) = self.paged(&self.said(number), query);
                (200, value, more)
            }
            ("PATCH", ["repos", "acme", "shop", "issues", "comments", id]) => {
                let id: usize = id.parse().unwrap();
                self.state().comments[id - 1].1 = text("body");
                (200, json!({"id": id}), false)
            }
            ("POST", ["repos", "acme", "shop", rest @ .., "labels"]) => self.labelled(rest, &sent),
            ("POST", ["repos", "acme", "shop", "statuses", commit]) => {
                self.state().comments.push(((*commit).to_owned(), sent.to_string()));
                (201, json!({"id": 1}), false)
            }
            (method, ["repos", "acme", "shop", rest @ ..]) if rest.contains(&"check-runs") => {
                let (status, value) = self.checks(method, rest, query, &sent);
                (status, value, false)
            }
            ("GET", ["repos", "acme", "shop", rest @ ..]) => self.there(&rest.join("/"), query),
            ("GET", _) => self.there(&format!("/{path}"), query),
            _ => (404, json!({"message": "Not Found"}), false),
        }
    }

    /// What is answered to whoever labels a pull request, or makes a label.
    fn labelled(&self, below: &[&str], sent: &Value) -> (u16, Value, bool) {
        if let ["issues", number] = below {
            return (200, self.label(number.parse().unwrap(), &sent["labels"]), false);
        }
        let name = sent["name"].as_str().unwrap();
        self.state().labels.insert(name.to_owned());
        (201, json!({"id": 1, "name": name}), false)
    }

    /// Adds labels to a pull request; all that it has then. Gitea passes over what the repository lacks.
    fn label(&self, number: u64, names: &Value) -> Value {
        let wanted = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let mut all = self.labels(number);
        let mut state = self.state();
        let takes = |name: &String| self.kind != HostKind::Gitea || state.labels.contains(name);
        let wanted: Vec<String> = wanted.filter(takes).filter(|name| !all.contains(name)).collect();
        state.labels.extend(wanted.iter().cloned());
        drop(state);
        all.extend(wanted);
        let shown: Value = all.iter().map(|name| json!({"id": 1, "name": name})).collect();
        self.change(number, json!({"labels": shown}));
        shown
    }

    /// The labels of a pull request.
    pub(crate) fn labels(&self, number: u64) -> Vec<String> {
        let state = self.state();
        let pull = state.pulls.iter().find(|pull| pull["number"] == number).unwrap();
        let names = pull["labels"].as_array().into_iter().flatten().map(|label| label["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    fn there(&self, path: &str, query: &BTreeMap<String, String>) -> (u16, Value, bool) {
        let found = self.state().there.get(path).cloned();
        match found {
            Some(Value::Array(all)) => {
                let (value, more) = self.paged(&all, query);
                (200, value, more)
            }
            Some(Value::Null) => (204, Value::Null, false),
            Some(thing) => (200, thing, false),
            None => (404, json!({"message": "Not Found"}), false),
        }
    }

    /// All comments on a pull request: first what others have commented everywhere, be it in our words.
    fn said(&self, number: &str) -> Vec<Value> {
        let foreign = self.state().there.get("foreign").and_then(|said| said.as_array().cloned());
        let ours = self.state().comments.clone().into_iter().enumerate().filter(|(_, (of, _))| of == number);
        let ours = ours.map(|(n, (_, body))| json!({"id": n + 1, "user": {"id": USER}, "body": body}));
        foreign.unwrap_or_default().into_iter().chain(ours).collect()
    }

    fn list(&self, query: &BTreeMap<String, String>) -> (Value, bool) {
        let asked = |name: &str| query.get(name).map(String::as_str);
        let wanted = |pull: &&Value| {
            asked("state").is_none_or(|state| state == "all" || pull["state"] == state)
                && asked("head").is_none_or(|head| pull["head"]["label"] == head)
        };
        let mut all: Vec<Value> = self.state().pulls.iter().filter(wanted).cloned().collect();
        // Of who merged one a list says nothing.
        all.iter_mut().filter_map(Value::as_object_mut).for_each(|pull| drop(pull.remove("merged_by")));
        self.paged(&ordered(all, asked("sort")), query)
    }

    /// A page of a list, and whether there is more.
    fn paged(&self, all: &[Value], query: &BTreeMap<String, String>) -> (Value, bool) {
        let length = self.state().page.unwrap_or(PAGE);
        let page: usize = query.get("page").map_or(1, |page| page.parse().unwrap());
        let shown = all.chunks(length).nth(page - 1).unwrap_or_default();
        (json!(shown), all.len() > page * length)
    }
}

/// The newest first, or those that changed last.
fn ordered(mut all: Vec<Value>, by: Option<&str>) -> Vec<Value> {
    all.reverse();
    if by.is_some_and(|by| by.contains("update")) {
        all.sort_by(|a, b| b["updated_at"].as_str().cmp(&a["updated_at"].as_str()));
    }
    all
}
