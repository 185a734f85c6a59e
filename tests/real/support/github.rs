//! A stand-in for GitHub: Git over HTTP, and of its API what tidegate asks. It keeps pull requests with their reviews and comments, and
//! sees a push when it is looked at next. All that is asked of its API, and all that it answers, passes a server that knows what GitHub
//! has published of it.

use super::cluster::Bed;
use super::git_host::Hosted;
use super::github_app::{BOT, LOGIN};
use super::github_checks::Checks;
use super::gitlab::{USERS, now};
use super::http_backend;
use super::origin::Origin;
use super::prism::Prism;
use super::ways::Way;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;

mod apps;
pub(crate) mod merges;
mod teams;
mod told;

/// The running stand-in: one for all tests of the process, which have repositories of their own.
pub(crate) struct Github {
    folder: PathBuf,
    address: SocketAddr,
    state: Arc<State>,
    prism: Prism,
}

struct State {
    root: PathBuf,
    repositories: Mutex<BTreeMap<String, Repository>>,
    apps: Mutex<apps::Apps>,
    /// The teams of the organisation `acme`, with who is in each.
    teams: Mutex<teams::Teams>,
}

#[derive(Default)]
struct Repository {
    /// The App that alone is let in.
    app: Option<String>,
    pulls: Vec<Pull>,
    /// What was said of commits.
    statuses: Vec<Value>,
    /// What its App has said of commits.
    checks: Checks,
    /// The branches with a ruleset: its rules.
    rulesets: BTreeMap<String, Value>,
    /// The last number of a comment or a review.
    last: u64,
}

struct Pull {
    /// As lists show it.
    shown: Value,
    merged_by: Value,
    closed_by: Value,
    /// Its branch was deleted: it can never be opened again, also not if there is another one of that name.
    gone: bool,
    reviews: Vec<Value>,
    comments: Vec<Value>,
}

/// A request for what is below a repository.
struct Asked<'a> {
    method: &'a str,
    below: &'a [&'a str],
    query: &'a BTreeMap<String, String>,
    sent: &'a Value,
    by: &'a str,
}

static SHARED: OnceCell<Github> = OnceCell::const_new();

fn user(name: &str) -> Value {
    if name == LOGIN {
        return json!({"id": BOT, "login": LOGIN, "type": "Bot"});
    }
    let (id, name) = USERS.iter().chain([&merges::QUEUE]).find(|(_, known)| *known == name).unwrap();
    let kind = if *name == "robot" || *name == merges::QUEUE.1 { "Bot" } else { "User" };
    json!({"id": id, "login": name, "type": kind})
}

fn wrong(status: u16, why: &str) -> (u16, Value) {
    (status, json!({"message": why, "documentation_url": "https://docs.github.com/rest", "status": status.to_string()}))
}

fn nothing(why: &str) -> (u16, Value) {
    wrong(404, why)
}

impl Pull {
    /// As it shows itself alone.
    fn whole(&self) -> Value {
        let mut whole = self.shown.clone();
        whole["merged_by"] = self.merged_by.clone();
        whole["merged"] = json!(!self.shown["merged_at"].is_null());
        whole
    }

    fn change(&mut self, by: &str, sent: &Value) {
        for field in ["title", "body", "state", "draft"] {
            if let Some(value) = sent.get(field) {
                self.shown[field] = value.clone();
            }
        }
        if let Some(base) = sent.get("base").and_then(Value::as_str) {
            (self.shown["base"]["ref"], self.shown["base"]["label"]) = (json!(base), json!(format!("acme:{base}")));
        }
        self.closed_by = if self.shown["state"] == "closed" { user(by) } else { Value::Null };
    }
}

impl Repository {
    /// Sees what was pushed, or deleted, since it was looked at last.
    fn look(&mut self, origin: &Origin) {
        let us = if self.app.is_some() { LOGIN } else { "bot" };
        for pull in self.pulls.iter_mut().filter(|pull| pull.shown["state"] == "open") {
            let Some(head) = origin.tip(pull.shown["head"]["ref"].as_str().unwrap()) else {
                pull.change(us, &json!({"state": "closed"}));
                pull.gone = true;
                continue;
            };
            if pull.shown["head"]["sha"] != *head {
                origin.git(&["update-ref", &format!("refs/pull/{}/head", pull.shown["number"]), &head]);
                pull.shown["head"]["sha"] = json!(head);
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn pull(&mut self, number: u64) -> &mut Pull {
        self.pulls.iter_mut().find(|pull| pull.shown["number"] == number).unwrap()
    }

    /// Opens one as a user; none if its branch has an open one.
    fn open(&mut self, by: &str, origin: &Origin, sent: &Value) -> Option<Value> {
        let taken = |one: &Pull| {
            one.shown["state"] == "open"
                && one.shown["head"]["ref"] == sent["head"]
                && one.shown["base"]["ref"] == sent["base"]
        };
        if self.pulls.iter().any(taken) {
            return None;
        }
        let end = |branch: &Value| {
            let branch = branch.as_str().unwrap();
            let sha = origin.tip(branch).unwrap();
            json!({"label": format!("acme:{branch}"), "ref": branch, "sha": sha, "repo": {"id": 7}, "user": user("owner")})
        };
        let number = self.pulls.len() + 1;
        let head = end(&sent["head"]);
        origin.git(&["update-ref", &format!("refs/pull/{number}/head"), head["sha"].as_str().unwrap()]);
        let shown = json!({
            "number": number, "state": "open", "title": sent["title"], "body": sent["body"], "user": user(by),
            "head": head, "base": end(&sent["base"]), "draft": false, "merged_at": null,
            "merge_commit_sha": null,
        });
        let (merged_by, closed_by) = (Value::Null, Value::Null);
        let pull = Pull { shown, merged_by, closed_by, gone: false, reviews: Vec::new(), comments: Vec::new() };
        let whole = pull.whole();
        self.pulls.push(pull);
        Some(whole)
    }

    fn comment(&mut self, number: u64, by: &str, body: &Value) -> Value {
        let comment =
            json!({"id": self.next(), "user": user(by), "body": body, "created_at": now(), "updated_at": now()});
        self.pull(number).comments.push(comment.clone());
        comment
    }
}

impl Github {
    /// The one beside the shared bed.
    pub(crate) async fn shared() -> &'static Self {
        SHARED.get_or_init(Self::start).await
    }

    /// In a thread of its own, so that it outlives the runtime of any one test.
    async fn start() -> Self {
        let folder = Bed::shared().await.beside("github.d");
        let state = Arc::new(State {
            root: folder.join("git"),
            repositories: Mutex::default(),
            apps: Mutex::default(),
            teams: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let app = axum::Router::new().fallback(move |request| handle(Arc::clone(&served), request));
                axum::serve(listener, app).await.unwrap();
            });
        });
        std::fs::write(folder.join("bot.token"), "ghp_bot\n").unwrap();
        let prism = Prism::before(&format!("http://{address}/api/v3"), &folder).await;
        Self { folder, address, state, prism }
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.join("bot.token")
    }

    /// Where its API is.
    pub(crate) fn api(&self) -> &str {
        &self.prism.url
    }

    /// Panics if anything that was asked or answered so far is not as GitHub describes it.
    pub(crate) fn is_as_described(&self) {
        let complaints = self.prism.complaints();
        assert!(complaints.is_empty(), "not as GitHub describes it:\n{}", complaints.join("\n"));
    }

    /// Makes a repository that all may write to.
    pub(crate) fn repository(&self, name: &str) -> Hosted {
        self.state.lock().insert(name.to_owned(), Repository::default());
        let origin = Origin::init(&self.state.folder(name));
        Hosted { origin, url: format!("http://{}/acme/{name}.git", self.address) }
    }

    /// Makes a branch of a repository to which pull requests lead alone, with an approval.
    pub(crate) fn keep(&self, name: &str, branch: &str) {
        self.state.with(name, |repository, origin| {
            origin.git(&["update-ref", &format!("refs/heads/{branch}"), "refs/heads/main"]);
            let reviews = json!({
                "required_approving_review_count": 1, "dismiss_stale_reviews_on_push": true, "require_code_owner_review": false,
                "require_last_push_approval": true, "required_review_thread_resolution": false,
            });
            let rules = json!([{"type": "pull_request", "parameters": reviews}, {"type": "deletion"}]);
            repository.rulesets.insert(branch.to_owned(), rules);
        });
    }

    /// All pull requests, newest first.
    pub(crate) fn pulls(&self, name: &str) -> Vec<Value> {
        self.state.with(name, |repository, _| repository.pulls.iter().rev().map(|one| one.shown.clone()).collect())
    }

    pub(crate) fn open(&self, by: &str, name: &str, draft: &Value) -> Value {
        self.state.with(name, |repository, origin| repository.open(by, origin, draft)).unwrap()
    }

    pub(crate) fn change(&self, by: &str, name: &str, number: u64, sent: &Value) {
        self.state.with(name, |repository, _| repository.pull(number).change(by, sent));
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
        self.state.with(name, |repository, _| repository.pull(number).comments.clone())
    }

    /// What people were told below one.
    pub(crate) fn comments(&self, name: &str, number: u64) -> Vec<String> {
        self.said(name, number).iter().map(|comment| comment["body"].as_str().unwrap().to_owned()).collect()
    }

    /// Approves one as a user; the number of the review.
    pub(crate) fn approve(&self, by: &str, name: &str, number: u64) -> u64 {
        self.state.with(name, |repository, _| {
            let id = repository.next();
            let pull = repository.pull(number);
            let review = json!({
                "id": id, "user": user(by), "state": "APPROVED", "body": "", "commit_id": pull.shown["head"]["sha"],
                "submitted_at": now(),
            });
            pull.reviews.push(review);
            id
        })
    }

    /// Merges one as a user, with a merge commit.
    pub(crate) fn merge(&self, by: &str, name: &str, number: u64) {
        self.merge_by(Way::Merge, by, name, number);
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Repository>> {
        self.repositories.lock().unwrap()
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(format!("acme/{name}.git"))
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Repository, &Origin) -> T) -> T {
        let origin = Origin::at(&self.folder(name));
        let mut repositories = self.lock();
        let repository = repositories.get_mut(name).unwrap();
        repository.look(&origin);
        act(repository, &origin)
    }

    fn answer(
        &self,
        method: &str,
        path: &str,
        query: &BTreeMap<String, String>,
        sent: &Value,
        by: &str,
    ) -> (u16, Value) {
        let parts: Vec<&str> = path.trim_start_matches("/api/v3/").split('/').collect();
        match parts.as_slice() {
            ["user"] => (200, user(by)),
            ["orgs", "acme", "teams", below @ ..] => teams::answer(&self.teams.lock().unwrap(), below),
            ["repos", "acme", name, below @ ..] if self.lock().contains_key(*name) => {
                let asked = Asked { method, below, query, sent, by };
                self.with(name, |repository, origin| in_repository(repository, origin, name, &asked))
            }
            _ => nothing("Not Found"),
        }
    }
}

fn in_repository(repository: &mut Repository, origin: &Origin, name: &str, asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, below, query, sent, by } = asked;
    if let Some(said) = told::answer(repository, asked) {
        return said;
    }
    match (*method, *below) {
        ("GET", []) => {
            let may = json!({"admin": *by == "owner", "maintain": *by == "owner", "push": true, "triage": true, "pull": true});
            (200, json!({"id": 7, "name": name, "permissions": may}))
        }
        ("GET", ["pulls"]) => {
            let wanted = |one: &&Pull| {
                let asked =
                    |name: &str, has: &Value| query.get(name).is_none_or(|asked| asked == "all" || *has == **asked);
                asked("state", &one.shown["state"])
                    && asked("head", &one.shown["head"]["label"])
                    && asked("base", &one.shown["base"]["ref"])
            };
            (200, repository.pulls.iter().rev().filter(wanted).map(|one| one.shown.clone()).collect())
        }
        ("POST", ["pulls"]) => match repository.open(by, origin, sent) {
            Some(shown) => (201, shown),
            None => {
                let errors = json!([{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:x."}]);
                (422, json!({"message": "Validation Failed", "errors": errors}))
            }
        },
        (_, ["pulls" | "issues", number, ..]) => in_pull(repository, origin, number.parse().unwrap(), asked),
        ("GET", ["commits", commit, "pulls"]) => {
            let is_it = |one: &&Pull| one.shown["merge_commit_sha"] == **commit;
            (200, repository.pulls.iter().filter(is_it).map(|one| one.shown.clone()).collect())
        }
        ("GET", ["commits", commit]) => (200, commit_of(origin, commit)),
        ("GET", ["contents", path @ ..]) => {
            let path = path.join("/");
            match origin.git(&["ls-tree", &query["ref"], "--", &path]).split_whitespace().nth(2) {
                Some(blob) => (200, json!({"type": "file", "path": path, "sha": blob})),
                None => nothing("Not Found"),
            }
        }
        ("POST", ["statuses", commit]) => {
            let mut status = (*sent).clone();
            repository.statuses.push(status.clone());
            repository.statuses.last_mut().unwrap()["sha"] = json!(commit);
            status["creator"] = user(by);
            (201, status)
        }
        ("GET", ["collaborators", login, "permission"]) => match USERS.iter().find(|(_, name)| name == login) {
            Some((1, _)) => (200, json!({"permission": "admin", "role_name": "admin"})),
            Some(_) => (200, json!({"permission": "write", "role_name": "write"})),
            None => nothing("Not Found"),
        },
        _ => of_branches(repository, origin, asked),
    }
}

/// Rules of branches.
fn of_branches(repository: &mut Repository, origin: &Origin, asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, below, sent, by, .. } = asked;
    match (*method, *below) {
        ("GET", ["branches", branch]) => {
            let branch = branch.replace("%2F", "/");
            let protected = repository.rulesets.contains_key(&branch);
            let tip = origin.tip(&branch);
            tip.map_or(nothing("Branch not found"), |tip| {
                (200, json!({"name": branch, "commit": {"sha": tip}, "protected": protected}))
            })
        }
        ("GET", ["rules", "branches", branch]) => {
            let of_it = repository.rulesets.get(&branch.replace("%2F", "/"));
            (200, of_it.cloned().unwrap_or_else(|| json!([])))
        }
        ("POST", ["rulesets"]) if *by == "owner" => {
            let branch = sent["conditions"]["ref_name"]["include"][0].as_str().unwrap();
            let branch = branch.trim_start_matches("refs/heads/").to_owned();
            repository.rulesets.insert(branch, sent["rules"].clone());
            (201, json!({"id": 1, "name": sent["name"], "enforcement": sent["enforcement"], "rules": sent["rules"]}))
        }
        // Of a webhook, and of a classic rule, only administrators are told.
        _ => nothing("Not Found"),
    }
}

fn in_pull(repository: &mut Repository, origin: &Origin, number: u64, asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, below, sent, by, .. } = asked;
    let pull = repository.pull(number);
    match (*method, below[0], &below[2..]) {
        ("GET", "pulls", []) => (200, pull.whole()),
        ("PATCH", "pulls", []) if pull.gone && sent["state"] == "open" => {
            let why = "state cannot be changed. The branch was force-pushed or recreated.";
            let errors = json!([{"resource": "PullRequest", "field": "state", "code": "invalid", "message": why}]);
            (422, json!({"message": "Validation Failed", "errors": errors}))
        }
        ("PATCH", "pulls", []) => {
            pull.change(by, sent);
            (200, pull.whole())
        }
        ("GET", "pulls", ["reviews"]) => (200, json!(pull.reviews)),
        ("GET", "pulls", ["commits"]) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let head = text(&pull.shown["head"]["sha"]).unwrap();
            let merged = text(&pull.shown["merge_commit_sha"]).map(|merged| format!("{merged}^1"));
            let base = merged.unwrap_or_else(|| text(&pull.shown["base"]["ref"]).unwrap());
            let all = origin.git(&["rev-list", "--reverse", &head, &format!("^{base}")]);
            (200, all.lines().map(|commit| commit_of(origin, commit)).collect())
        }
        ("GET", "issues", []) => {
            (200, json!({"number": number, "state": pull.shown["state"], "closed_by": pull.closed_by}))
        }
        ("GET", "issues", ["comments"]) => (200, json!(pull.comments)),
        ("POST", "issues", ["comments"]) => (201, repository.comment(number, by, &sent["body"])),
        _ => nothing("Not Found"),
    }
}

fn commit_of(origin: &Origin, commit: &str) -> Value {
    let shown = origin.git(&["show", "-s", "--format=%H|%P|%ae|%ce", commit]);
    let [id, parents, author, committer] = shown.split('|').collect::<Vec<_>>().try_into().unwrap();
    let parents: Vec<Value> = parents.split_whitespace().map(|sha| json!({"sha": sha})).collect();
    let whose = |address: &str| {
        let name = address.strip_suffix("@example.test");
        USERS.iter().find(|(_, known)| Some(*known) == name).map(|(_, name)| user(name))
    };
    json!({
        "sha": id, "parents": parents, "author": whose(author), "committer": whose(committer),
        "commit": {"author": {"email": author}, "committer": {"email": committer}},
    })
}

async fn handle(state: Arc<State>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1 << 28).await.unwrap();
    let path = parts.uri.path();
    if !path.starts_with("/api/") {
        if !state.lets_in(path, &parts.headers) {
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"GitHub\"")]).into_response();
        }
        let answer = http_backend::answer(&state.root, &parts.method, &parts.uri, &parts.headers, body).await;
        // What was pushed is seen at once, before the next push hides it.
        let name = path.strip_prefix("/acme/").and_then(|path| path.strip_suffix(".git/git-receive-pack"));
        if let Some(name) = name {
            state.with(name, |_, _| ());
        }
        return answer.into_response();
    }
    let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let (method, sent) = (parts.method.as_str(), serde_json::from_slice(&body).unwrap_or_default());
    let (status, answer) = match state.asker(method, path, &parts.headers, &sent) {
        Ok(asker) => state.answer(method, path, &query, &sent, asker.login),
        Err(said) => said,
    };
    let text = answer.to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let etag = format!("\"{:x}\"", hasher.finish());
    let known = parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    if known {
        return (StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response();
    }
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(ETAG, etag.as_str()), (CONTENT_TYPE, "application/json; charset=utf-8")], text).into_response()
}
