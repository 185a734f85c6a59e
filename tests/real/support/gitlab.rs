//! A stand-in for GitLab, written from its documentation: Git over HTTP, and of its API what tidegate asks. It keeps merge requests
//! with their versions, approvals, notes and events, and sees a push when it is looked at next.

mod api;
pub(crate) mod faults;
mod teams;

use super::git_host::Hosted;
use super::http_backend;
use super::origin::Origin;
use super::ways::{Way, anew};
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use faults::Wrong;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;

/// The groups of all its repositories.
const GROUPS: &str = "acme/shops";
/// Its users, by number; the address of each is NAME@example.test.
pub(super) const USERS: [(u64, &str); 5] = [(1, "owner"), (2, "reviewer"), (3, "stranger"), (4, "robot"), (42, "bot")];

/// The running stand-in.
pub(crate) struct Gitlab {
    directory: tempfile::TempDir,
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    root: PathBuf,
    projects: Mutex<BTreeMap<String, Project>>,
    /// The groups beside those of the repositories, with who is in each.
    groups: Mutex<teams::Groups>,
    /// Each call of its API, with the status of the answer.
    asked: Mutex<Vec<(String, u16)>>,
    /// What goes wrong.
    faults: Mutex<faults::Faults>,
}

#[derive(Default)]
struct Project {
    /// Another one than at first.
    number: Option<u64>,
    levels: faults::Levels,
    requests: Vec<MergeRequest>,
    /// What was said of commits.
    statuses: Vec<Value>,
    /// The branches with a rule: from which level on people may push, and merge.
    kept: BTreeMap<String, [u64; 2]>,
    /// The branches that were left without one.
    bared: Vec<String>,
    /// Whether no more rules are made.
    refuses: bool,
    /// The last number of a note or a version.
    last: u64,
}

#[derive(Default)]
struct MergeRequest {
    /// As GitLab shows it.
    shown: Value,
    /// The same when it was looked at last.
    known: Value,
    versions: Vec<Value>,
    approvals: BTreeMap<String, Value>,
    notes: Vec<Value>,
    events: Vec<Value>,
}

fn user(name: &str) -> Value {
    let (id, name) = USERS.iter().find(|(_, known)| *known == name).unwrap();
    json!({"id": id, "username": name})
}

pub(super) fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Nanos, true)
}

impl Project {
    /// Sees what was pushed, or deleted, since it was looked at last.
    fn look(&mut self, origin: &Origin) {
        let heads = origin.git(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"]);
        let heads: BTreeMap<&str, &str> = heads.lines().filter_map(|line| line.split_once(' ')).collect();
        let open = self.requests.iter_mut().filter(|request| request.shown["state"] == "opened");
        for request in open {
            let Some(head) = heads.get(request.shown["source_branch"].as_str().unwrap()) else {
                request.shown["state"] = json!("closed");
                continue;
            };
            if request.shown["sha"] != **head {
                self.last += 1;
                request.shown["sha"] = json!(head);
                origin.git(&["update-ref", &format!("refs/merge-requests/{}/head", request.shown["iid"]), head]);
                let version = json!({"id": self.last, "head_commit_sha": head, "created_at": now()});
                request.versions.insert(0, version);
            }
        }
    }

    /// Sees which ones have changed since they were looked at last.
    fn stamp(&mut self) {
        for request in self.requests.iter_mut().filter(|request| request.shown != request.known) {
            request.shown["updated_at"] = json!(now());
            request.known = request.shown.clone();
        }
    }

    /// The rules of a branch.
    fn rules(&self, branch: &str) -> Vec<[u64; 2]> {
        let is_of =
            |name: &str| name == branch || name.split_once('*').is_some_and(|(begin, _)| branch.starts_with(begin));
        self.kept.iter().filter(|(name, _)| is_of(name)).map(|(_, levels)| *levels).collect()
    }

    fn note(&mut self, number: u64, by: &str, body: &str, system: bool) -> u64 {
        self.last += 1;
        let note = json!({
            "id": self.last, "system": system, "body": body, "author": user(by), "created_at": now(), "updated_at": now(),
        });
        self.request(number).notes.push(note);
        self.last
    }

    fn request(&mut self, number: u64) -> &mut MergeRequest {
        self.requests.iter_mut().find(|request| request.shown["iid"] == number).unwrap()
    }

    /// Opens one as a user; none if its branch has an open one.
    fn open(&mut self, by: &str, sent: &Value) -> Option<Value> {
        let taken = |one: &MergeRequest| {
            one.shown["state"] == "opened"
                && one.shown["source_branch"] == sent["source_branch"]
                && one.shown["target_branch"] == sent["target_branch"]
        };
        if self.requests.iter().any(taken) {
            return None;
        }
        let shown = json!({
            "iid": self.requests.len() + 1, "state": "opened", "title": sent["title"], "description": sent["description"],
            "author": user(by), "source_project_id": 7, "target_project_id": 7, "source_branch": sent["source_branch"],
            "target_branch": sent["target_branch"], "sha": null, "merge_commit_sha": null, "squash_commit_sha": null,
            "merge_user": null, "merged_by": null, "merged_at": null, "draft": false,
        });
        self.requests.push(MergeRequest { shown: shown.clone(), ..MergeRequest::default() });
        Some(shown)
    }

    /// Changes one as a user.
    fn change(&mut self, number: u64, by: &str, sent: &Value) -> Value {
        let request = self.request(number);
        for field in ["title", "description", "target_branch"] {
            if let Some(value) = sent.get(field) {
                request.shown[field] = value.clone();
            }
        }
        if let Some(labels) = sent["add_labels"].as_str() {
            request.shown["labels"] = labels.split(',').collect();
        }
        request.shown["draft"] = json!(request.shown["title"].as_str().unwrap().starts_with("Draft: "));
        let state = match sent["state_event"].as_str() {
            Some("close") => "closed",
            Some("reopen") => "opened",
            _ => return request.shown.clone(),
        };
        request.shown["state"] = json!(state);
        let state = if state == "opened" { "reopened" } else { state };
        request.events.push(json!({"user": user(by), "state": state, "created_at": now()}));
        request.shown.clone()
    }
}

impl Gitlab {
    /// Starts it, without repositories.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (root, projects, asked) = (directory.path().join("git"), Mutex::default(), Mutex::default());
        let state = Arc::new(State { root, projects, groups: Mutex::default(), asked, faults: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&state);
        let app = axum::Router::new().fallback(move |request| handle(Arc::clone(&served), request));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        std::fs::write(directory.path().join("bot.token"), "glpat-bot\n").unwrap();
        Self { directory, address, state }
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.directory.path().join("bot.token")
    }

    /// Each call of its API so far, with the status of the answer.
    pub(crate) fn asked(&self) -> Vec<(String, u16)> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Makes a repository that all may write to.
    pub(crate) fn repository(&self, name: &str) -> Hosted {
        self.state.lock().insert(name.to_owned(), Project::default());
        let origin = Origin::init(&self.state.folder(name));
        Hosted { origin, url: format!("http://{}/{GROUPS}/{name}.git", self.address) }
    }

    /// Makes a branch of a repository that nobody may push to, and only Maintainers may merge into.
    pub(crate) fn keep(&self, name: &str, branch: &str) {
        self.state.with(name, |project, origin| {
            origin.git(&["update-ref", &format!("refs/heads/{branch}"), "refs/heads/main"]);
            project.kept.insert(branch.to_owned(), [0, 40]);
        });
    }

    /// Makes a rule of an owner's own.
    pub(crate) fn rule(&self, name: &str, rule: &str) {
        let made = self.state.with(name, |project, _| project.kept.insert(rule.to_owned(), [0, 40]));
        assert_eq!(made, None);
    }

    /// Makes no more rules.
    pub(crate) fn refuse(&self, name: &str) {
        self.state.with(name, |project, _| project.refuses = true);
    }

    /// The rules of a repository, and the branches that were left without one by who changed them.
    pub(crate) fn rules(&self, name: &str) -> (BTreeMap<String, [u64; 2]>, Vec<String>) {
        self.state.with(name, |project, _| (project.kept.clone(), project.bared.clone()))
    }

    /// All merge requests, newest first, in the words of other hosts.
    pub(crate) fn pulls(&self, name: &str) -> Vec<Value> {
        self.state.with(name, |project, _| project.requests.iter().rev().map(|one| as_pull(&one.shown)).collect())
    }

    pub(crate) fn open(&self, by: &str, name: &str, draft: &Value) -> Value {
        self.state.with(name, |project, _| project.open(by, draft)).unwrap()
    }

    pub(crate) fn change(&self, by: &str, name: &str, number: u64, sent: &Value) {
        self.state.with(name, |project, _| project.change(number, by, sent));
    }

    /// Adds a commit to a branch as a user.
    pub(crate) fn push(&self, by: &str, name: &str, branch: &str, (path, text): (&str, &str)) {
        self.state.with(name, |_, origin| origin.push_as(by, branch, path, text));
    }

    /// Puts another commit in the place of the last one of a branch as a user.
    pub(crate) fn rewrite(&self, by: &str, name: &str, branch: &str, (path, text): (&str, &str)) {
        self.state.with(name, |_, origin| {
            origin.undo(branch);
            origin.push_as(by, branch, path, text)
        });
    }

    /// All that was said below one, as its API has it.
    pub(crate) fn said(&self, name: &str, number: u64) -> Vec<Value> {
        self.state.with(name, |project, _| {
            project.request(number).notes.iter().filter(|note| note["system"] == false).cloned().collect()
        })
    }

    /// What people were told below one.
    pub(crate) fn comments(&self, name: &str, number: u64) -> Vec<String> {
        self.said(name, number).iter().map(|note| note["body"].as_str().unwrap().to_owned()).collect()
    }

    /// What was said of a commit: in which word, under which name, in which line.
    pub(crate) fn statuses(&self, name: &str, commit: &str) -> Vec<Value> {
        self.state.with(name, |project, _| {
            project.statuses.iter().filter(|status| status["sha"] == commit).cloned().collect()
        })
    }

    /// Approves one as a user; the number of the note that says so.
    pub(crate) fn approve(&self, by: &str, name: &str, number: u64) -> u64 {
        self.state.with(name, |project, _| {
            let approval = json!({"user": user(by), "approved_at": now()});
            project.request(number).approvals.insert(by.to_owned(), approval);
            project.note(number, by, "approved this merge request", true)
        })
    }

    /// Merges one as a user, with a merge commit.
    pub(crate) fn merge(&self, by: &str, name: &str, number: u64) {
        self.merge_by(Way::Merge, by, name, number);
    }

    /// Merges one as a user; a squashed one as in a project that asks for no merge commits.
    pub(crate) fn merge_by(&self, way: Way, by: &str, name: &str, number: u64) {
        self.state.with(name, |project, origin| {
            let request = project.request(number);
            let text = |field: &str| request.shown[field].as_str().unwrap().to_owned();
            let (target, head) = (text("target_branch"), text("sha"));
            let became = match way {
                Way::Merge => [Some(origin.merge_as(by, &head, &target)), None],
                Way::Squash => [None, Some(anew(origin, &head, &target))],
                Way::Rebase | Way::RebaseMerge => panic!("GitLab has no such way for one merge"),
            };
            request.merged(by, became);
        });
    }
}

/// What its page shows, in the words of other hosts.
fn as_pull(shown: &Value) -> Value {
    let labels: Value = shown["labels"].as_array().into_iter().flatten().map(|name| json!({"name": name})).collect();
    let state = if shown["state"] == "opened" { "open" } else { "closed" };
    json!({
        "number": shown["iid"], "state": state, "title": shown["title"], "body": shown["description"],
        "user": {"login": shown["author"]["username"]}, "head": {"ref": shown["source_branch"], "sha": shown["sha"]},
        "base": {"ref": shown["target_branch"]}, "labels": labels,
    })
}

impl State {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Project>> {
        self.projects.lock().unwrap()
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(format!("{GROUPS}/{name}.git"))
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Project, &Origin) -> T) -> T {
        let origin = Origin::at(&self.folder(name));
        let mut projects = self.lock();
        let project = projects.get_mut(name).unwrap();
        project.look(&origin);
        project.stamp();
        let done = act(project, &origin);
        project.stamp();
        done
    }
}

async fn handle(state: Arc<State>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1 << 28).await.unwrap();
    let path = parts.uri.path();
    if !path.starts_with("/api/") {
        let answer = http_backend::answer(&state.root, &parts.method, &parts.uri, &parts.headers, body).await;
        // What was pushed is seen at once, before the next push hides it.
        if path.ends_with("/git-receive-pack") {
            let names: Vec<String> = state.lock().keys().cloned().collect();
            names.iter().for_each(|name| state.with(name, |_, _| ()));
        }
        return answer.into_response();
    }
    let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let header = |name: &str| parts.headers.get(name).map(|value| value.as_bytes());
    let (status, answer) = match header("authorization").or_else(|| header("private-token")) {
        Some(b"Bearer glpat-bot" | b"glpat-owner") => {
            let sent = serde_json::from_slice(&body).unwrap_or_default();
            state.answer(&parts.method, path, &query, &sent)
        }
        _ => (401, json!({"message": "401 Unauthorized"})),
    };
    let wrong = state.faults.lock().unwrap().meet(&parts.uri);
    let (status, answer) = match wrong {
        Some(Wrong::Status(status)) => (status, json!({"message": "not now"})),
        Some(Wrong::Unmodified | Wrong::Half | Wrong::Endless) | None => (status, answer),
    };
    let (answer, link) = paged(answer, &query);
    let link = if wrong == Some(Wrong::Endless) { Some("<http://next.invalid/>; rel=\"next\"") } else { link };
    let mut text = answer.to_string();
    if wrong == Some(Wrong::Half) {
        text.truncate(text.len() / 2);
    }
    let etag = format!("\"{:x}\"", text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte)));
    let known = status == 200 && header("if-none-match") == Some(etag.as_bytes()) || wrong == Some(Wrong::Unmodified);
    let (status, text) = if known { (304, String::new()) } else { (status, text) };
    state.asked.lock().unwrap().push((format!("{} {}", parts.method, parts.uri), status));
    let mut response = text.into_response();
    *response.status_mut() = status.try_into().unwrap();
    response.headers_mut().insert("etag", etag.parse().unwrap());
    if wrong == Some(Wrong::Status(429)) {
        response.headers_mut().insert("retry-after", "2".parse().unwrap());
    }
    if let Some(link) = link {
        response.headers_mut().insert("link", link.parse().unwrap());
    }
    response
}

/// The page of a list that is asked for, and what leads to the next if there is one.
fn paged(answer: Value, query: &BTreeMap<String, String>) -> (Value, Option<&'static str>) {
    let Value::Array(all) = answer else { return (answer, None) };
    let number = |name: &str, else_is: usize| query.get(name).map_or(else_is, |text| text.parse().unwrap());
    let (length, page) = (number("per_page", 20), number("page", 1));
    let next = (all.len() > length * page).then_some("<http://next.invalid/>; rel=\"next\"");
    (json!(all.chunks(length).nth(page - 1).unwrap_or_default()), next)
}
