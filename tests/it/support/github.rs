//! A stand-in for GitHub that lets in nobody but an App, written from its documentation: Git over HTTP, and of its API what tidegate
//! asks where approvals are merges.

use super::git_host::Hosted;
use super::github_app::{BOT, LOGIN, Registered};
use super::http_backend;
use super::origin::Origin;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Who all its repositories belong to.
const OWNER: &str = "acme";
/// The App's id.
const APP: &str = "123";
/// The number of each of its repositories.
const REPOSITORY: u64 = 7;

/// The running stand-in.
pub(crate) struct Github {
    directory: tempfile::TempDir,
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    root: PathBuf,
    app: Mutex<Registered>,
    repositories: Mutex<BTreeMap<String, Repository>>,
}

#[derive(Default)]
struct Repository {
    pulls: Vec<Value>,
    /// Each with the number of what it is about.
    comments: Vec<(u64, Value)>,
    /// What was said of commits.
    statuses: Vec<Value>,
    /// The branches that change by approved pull requests alone.
    kept: BTreeSet<String>,
}

impl Repository {
    /// Sees what was pushed, or deleted, since it was looked at last.
    fn look(&mut self, origin: &Origin) {
        for pull in self.pulls.iter_mut().filter(|pull| pull["state"] == "open") {
            match origin.tip(pull["head"]["ref"].as_str().unwrap()) {
                Some(head) => pull["head"]["sha"] = json!(head),
                None => pull["state"] = json!("closed"),
            }
        }
    }

    /// Opens one as a user.
    fn open(&mut self, (id, login): (u64, &str), sent: &Value) -> Value {
        let end = |branch: &Value| {
            let label = format!("{OWNER}:{}", branch.as_str().unwrap());
            json!({"label": label, "ref": branch, "sha": null, "repo": {"id": REPOSITORY}})
        };
        self.pulls.push(json!({
            "number": self.pulls.len() + 1, "state": "open", "merged_at": null, "title": sent["title"], "body": sent["body"],
            "user": {"id": id, "login": login}, "head": end(&sent["head"]), "base": end(&sent["base"]),
        }));
        self.pulls.last().unwrap().clone()
    }

    fn pull(&mut self, number: u64) -> &mut Value {
        self.pulls.iter_mut().find(|pull| pull["number"] == number).unwrap()
    }

    fn change(&mut self, number: u64, sent: &Value) -> Value {
        let pull = self.pull(number);
        pull.as_object_mut().unwrap().extend(sent.as_object().unwrap().clone());
        pull.clone()
    }

    fn answer(
        &mut self,
        origin: &Origin,
        asked: (&str, &[&str]),
        query: &BTreeMap<String, String>,
        sent: &Value,
    ) -> (u16, Value) {
        let is = |name: &str, found: &Value| query.get(name).is_none_or(|asked| found == asked);
        let wanted = |pull: &&Value| {
            is("state", &pull["state"]) && is("head", &pull["head"]["label"]) && is("base", &pull["base"]["ref"])
        };
        match asked {
            ("GET", []) => (200, json!({"id": REPOSITORY})),
            ("GET", ["pulls"]) => (200, self.pulls.iter().rev().filter(wanted).cloned().collect()),
            ("POST", ["pulls"]) => (201, self.open((BOT, LOGIN), sent)),
            ("GET", ["pulls", number]) => (200, self.pull(number.parse().unwrap()).clone()),
            ("PATCH", ["pulls", number]) => (200, self.change(number.parse().unwrap(), sent)),
            ("GET", ["issues", number, "comments"]) => {
                let of: u64 = number.parse().unwrap();
                (200, self.comments.iter().filter(|(about, _)| *about == of).map(|(_, said)| said.clone()).collect())
            }
            ("POST", ["issues", number, "comments"]) => {
                let said = json!({"id": self.comments.len() + 1, "user": {"id": BOT}, "body": sent["body"]});
                self.comments.push((number.parse().unwrap(), said.clone()));
                (201, said)
            }
            ("PATCH", ["issues", "comments", id]) => {
                let said = &mut self.comments[id.parse::<usize>().unwrap() - 1].1;
                said["body"] = sent["body"].clone();
                (200, said.clone())
            }
            ("POST", ["statuses", commit]) => {
                let mut status = sent.clone();
                status["sha"] = json!(commit);
                self.statuses.push(status.clone());
                (201, status)
            }
            ("GET", ["branches", branch]) => {
                let branch = branch.replace("%2F", "/");
                let shown = json!({"name": branch, "protected": self.kept.contains(&branch)});
                origin.tip(&branch).map_or((404, json!({"message": "Branch not found"})), |_| (200, shown))
            }
            ("GET", ["rules", "branches", branch]) => {
                let rule = json!({"type": "pull_request", "parameters": {"required_approving_review_count": 1}});
                let kept = self.kept.contains(&branch.replace("%2F", "/"));
                (200, kept.then_some(rule).into_iter().collect())
            }
            _ => (404, json!({"message": "Not Found"})),
        }
    }
}

impl Github {
    /// Starts it, without repositories.
    pub(crate) async fn start() -> Self {
        let (directory, app) = (tempfile::tempdir().unwrap(), Registered::new(APP));
        let file = directory.path().join("app.pem");
        std::fs::write(&file, app.pkcs8()).unwrap();
        let (root, app, repositories) = (directory.path().join("git"), Mutex::new(app), Mutex::default());
        let state = Arc::new(State { root, app, repositories });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&state);
        let router = axum::Router::new().fallback(move |request| handle(Arc::clone(&served), request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { directory, address, state }
    }

    fn key_file(&self) -> PathBuf {
        self.directory.path().join("app.pem")
    }

    /// The App's private key.
    pub(crate) fn key(&self) -> String {
        std::fs::read_to_string(self.key_file()).unwrap()
    }

    /// What an installation says of the App.
    pub(crate) fn app(&self) -> String {
        format!("{{id: \"{APP}\", keyFile: {}}}", self.key_file().display())
    }

    /// From now on no token lets in that was handed out before.
    pub(crate) fn revoke(&self) {
        self.state.app.lock().unwrap().revoke();
    }

    /// How many tokens were handed out.
    pub(crate) fn handed_out(&self) -> usize {
        self.state.app.lock().unwrap().handed_out()
    }

    pub(crate) fn repository(&self, name: &str) -> Hosted {
        self.state.repositories.lock().unwrap().insert(name.to_owned(), Repository::default());
        let origin = Origin::init(&self.state.folder(name));
        Hosted { origin, url: format!("http://{}/{OWNER}/{name}.git", self.address) }
    }

    pub(crate) fn keep(&self, name: &str, branch: &str) {
        self.state.with(name, |repository, origin| {
            origin.git(&["update-ref", &format!("refs/heads/{branch}"), "refs/heads/main"]);
            repository.kept.insert(branch.to_owned());
        });
    }

    /// All pull requests, newest first.
    pub(crate) fn pulls(&self, name: &str) -> Vec<Value> {
        self.state.with(name, |repository, _| repository.pulls.iter().rev().cloned().collect())
    }

    /// Opens one as a person.
    pub(crate) fn open(&self, by: &str, name: &str, draft: &Value) -> Value {
        self.state.with(name, |repository, _| repository.open((1, by), draft))
    }

    pub(crate) fn change(&self, name: &str, number: u64, sent: &Value) {
        self.state.with(name, |repository, _| repository.change(number, sent));
    }

    pub(crate) fn push(&self, by: &str, name: &str, branch: &str, (path, text): (&str, &str)) {
        let person = format!("{by} <{by}@example.test>");
        self.state.with(name, |_, origin| origin.commit_as(&person, branch, &[(path, Some(text.as_bytes()))], "more"));
    }

    /// What people were told below one.
    pub(crate) fn comments(&self, name: &str, number: u64) -> Vec<String> {
        let text = |said: &Value| said["body"].as_str().unwrap().to_owned();
        self.state.with(name, |repository, _| {
            repository.comments.iter().filter(|(of, _)| *of == number).map(|(_, said)| text(said)).collect()
        })
    }

    /// What was said of a commit.
    pub(crate) fn statuses(&self, name: &str, commit: &str) -> Vec<Value> {
        self.state.with(name, |repository, _| {
            repository.statuses.iter().filter(|status| status["sha"] == commit).cloned().collect()
        })
    }

    /// Merges one as a user, with a merge commit.
    pub(crate) fn merge(&self, by: &str, name: &str, number: u64) {
        self.state.with(name, |repository, origin| {
            let pull = repository.pull(number);
            let text = |end: &str, field: &str| pull[end][field].as_str().unwrap().to_owned();
            origin.merge_as(by, &text("head", "sha"), &text("base", "ref"));
            pull["state"] = json!("closed");
            pull["merged_at"] = json!(chrono::Utc::now().to_rfc3339());
        });
    }
}

impl State {
    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(format!("{OWNER}/{name}.git"))
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Repository, &Origin) -> T) -> T {
        let origin = Origin::at(&self.folder(name));
        let mut repositories = self.repositories.lock().unwrap();
        let repository = repositories.get_mut(name).unwrap();
        repository.look(&origin);
        act(repository, &origin)
    }

    fn answer(
        &self,
        method: &str,
        path: &str,
        query: &BTreeMap<String, String>,
        as_whom: &str,
        sent: &Value,
    ) -> (u16, Value) {
        if let Some(said) = self.app.lock().unwrap().answer(method, path, as_whom, sent, chrono::Utc::now()) {
            return said;
        }
        let parts: Vec<&str> = path.split('/').collect();
        match parts.strip_prefix(&["repos", OWNER]).and_then(<[&str]>::split_first) {
            Some((name, below)) if self.repositories.lock().unwrap().contains_key(*name) => {
                self.with(name, |repository, origin| repository.answer(origin, (method, below), query, sent))
            }
            _ => (404, json!({"message": "Not Found"})),
        }
    }

    /// Whether Git is let in: by a token, under the name that GitHub wants for it.
    fn lets_in(&self, authorization: &str) -> bool {
        let login = authorization.strip_prefix("Basic ").and_then(|login| STANDARD.decode(login).ok());
        let login = login.and_then(|login| String::from_utf8(login).ok()).unwrap_or_default();
        let token = login.strip_prefix("x-access-token:");
        token.is_some_and(|token| self.app.lock().unwrap().lets_in(token, chrono::Utc::now()))
    }
}

async fn handle(state: Arc<State>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1 << 28).await.unwrap();
    let as_whom = parts.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap()).unwrap_or_default();
    let Some(path) = parts.uri.path().strip_prefix("/api/v3/") else {
        if !state.lets_in(as_whom) {
            return (axum::http::StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"GitHub\"")])
                .into_response();
        }
        return http_backend::answer(&state.root, &parts.method, &parts.uri, &parts.headers, body)
            .await
            .into_response();
    };
    let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let sent = serde_json::from_slice(&body).unwrap_or_default();
    let (status, answer) = state.answer(parts.method.as_str(), path, &query, as_whom, &sent);
    let mut response = answer.to_string().into_response();
    *response.status_mut() = status.try_into().unwrap();
    response
}
