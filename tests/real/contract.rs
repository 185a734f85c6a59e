//! What GitHub has published: its description of its API, which all that our client asks and all that our stand-ins answer is held
//! against, be it in this process or on the list of what the scenarios ask; its own examples of answers, which our client has to read; its examples of webhooks.

use crate::support::github_app::{BOT, LOGIN, Registered};
use crate::support::github_checks::{APP, Checks};
use crate::support::prism::{Description, Prism, described};
use crate::tree::source_dir;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use testing::{Server, github};
use tidegate::forge::host::{Annotation, AnnotationLevel, CheckRun, Host, HostError, HostMark, Offers, Pass, Status};
use tidegate::forge::pull::Text;
use tidegate::forge::receiver::{PATH, Receiver};
use tidegate::forge::settings::{ProtectedBranch, Settings};
use tidegate::manifest::ids::CommitId;
use tidegate::manifest::installation::{Access, App, HostKind, PullHost};
use tidegate::manifest::proof::{ApprovalRule, By};
use tidegate::manifest::raw::Trust;
use tidegate::people::user::User;
use tidegate::record::state::Time;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::ServiceExt;

/// The stand-in of the unit tests.
#[path = "../../crates/controller/src/forge/host/testing.rs"]
#[allow(dead_code, reason = "it is for more than GitHub")]
mod testing;

const DECISIONS: &str = "tidegate/prod/decisions";
/// What GitHub's example of a merged pull request was merged as.
const MERGED: &str = "e5bd3914e2e596debea16f433f57875b5b90bcd6";

/// A client of the repository `acme/shop` there.
fn client(api: &str, folder: &Path) -> Host {
    let token_file = folder.join("token");
    std::fs::write(&token_file, "ghp_bot\n").unwrap();
    let (kind, api, owner, name) = (HostKind::Github, api.to_owned(), "acme".to_owned(), "shop".to_owned());
    let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
    let site = PullHost { kind, api, owner, name, access };
    Host::new(site, pass, Box::new(|_, _| {}), Box::new(|| Time::UNIX_EPOCH)).unwrap()
}

/// The same for a GitHub App, which GitHub knows like that.
fn as_app(api: &str, folder: &Path, known: &Registered) -> Host {
    let key_file = folder.join("app.pem");
    std::fs::write(&key_file, known.pkcs1()).unwrap();
    let access = Access::App(App { id: "123".to_owned(), installation: None, key_file });
    let (kind, api, owner, name) = (HostKind::Github, api.to_owned(), "acme".to_owned(), "shop".to_owned());
    let site = PullHost { kind, api, owner, name, access };
    let pass = Pass::new(&site, Box::new(|| Time::UNIX_EPOCH)).unwrap();
    Host::new(site, pass, Box::new(|_, _| {}), Box::new(|| Time::UNIX_EPOCH)).unwrap()
}

/// Asks all that is ever asked of GitHub: of a branch, of pull request 3, of what became of it, of those who reviewed it. What it
/// tells, a line for each.
async fn everything(host: &mut Host, merged: &CommitId) -> Result<Vec<String>, HostError> {
    let text = Text { title: "t".to_owned(), body: "b".to_owned() };
    let (status, one, mut seen) = (Status::new(HostMark::Pending, "seen"), github::sha("d"), Offers::default());
    let one: CommitId = one.parse().unwrap();
    let mut told = vec![
        format!("ids: {:?}, {}", host.ids().await?, host.login().await?),
        format!("permissions: {:?}", host.permissions().await?),
        format!("hooks: {:?}", host.hooks().await?),
        format!("rules: {:?}", host.rules(DECISIONS).await?),
        format!("open: {:?}", host.open().await?),
        format!("closed: {:?}", host.closed("b", |_| true).await?),
        format!("one: {:?}", host.pull(3).await?),
        format!("offers: {:?}", host.offers("main", &mut seen).await?),
        format!("merged: {:?}", host.merged_as(merged, "main").await?),
        format!("blob: {:?}", host.blob(&one, &"a/b/c.yaml".parse().unwrap()).await?),
        format!("commits: {:?}", host.commits(3).await?),
        format!("commit: {:?}", host.commit(&one).await?),
        format!("closer: {:?}", host.closer(3).await?),
    ];
    let (reviews, machines) = host.reviews(3).await?;
    told.push(format!("reviews: {reviews:?}"));
    let users: BTreeSet<User> = reviews.into_iter().map(|review| review.by).collect();
    told.push(format!("accounts: {:?}", host.accounts(&users, &machines).await?));
    let rule = ApprovalRule {
        approvers: ["@acme/shop".to_owned()].into(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    };
    told.push(format!("teams: {:?}", host.teams(&rule, users).await?));
    told.push(format!("may write: {:?}", host.may_write(&User { id: 1, login: "Ana".to_owned() }).await?));
    // Once more by its ETag.
    host.offers("main", &mut seen).await?;
    told.push(format!("made: {:?}", host.create("x/1", "main", &text).await?));
    host.label(3, &["tidegate", "tidegate/advance"]).await?;
    host.update(3, &text, Some("main")).await?;
    host.comment(3, "<!-- what").await?;
    told.push(format!("said: {:?}", host.said(3, "<!--").await?));
    host.rephrase(3, 1, "other").await?;
    host.mention(3, "why").await?;
    host.close(3, Some(&text)).await?;
    host.reopen(3).await?;
    host.others("x/1", "main").await?;
    host.tell(&one, "tidegate/prod", &status).await?;
    Ok(told)
}

/// A check with more annotations than one request may have, of both kinds.
fn check() -> CheckRun {
    let one = |line: usize| Annotation {
        path: "a/b/c.yaml".parse().unwrap(),
        line,
        columns: line.is_multiple_of(2).then_some((1, line)),
        level: if line.is_multiple_of(3) { AnnotationLevel::Warning } else { AnnotationLevel::Failure },
        title: "Schema".to_owned(),
        message: "x".to_owned(),
    };
    let (status, id, summary) = (Status::new(HostMark::Failure, "60 findings"), "1".to_owned(), "s".to_owned());
    CheckRun { status, id, summary, annotations: (1..=60).map(one).collect() }
}

/// Panics unless all that GitHub describes was asked of a stand-in, and nothing else.
async fn assert_all_was_asked(server: &Server) {
    let (description, asked) = (Description::read().await, server.state().asked.clone());
    let operation = |(what, _): &(String, String)| {
        let (method, path) = what.split_once(' ').unwrap();
        let path = path.strip_prefix(server.root()).unwrap();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        description.operation(method, path, query)
    };
    let asked: BTreeSet<String> = asked.iter().map(operation).collect();
    // What people set, and paths of files that are longer or shorter.
    let by_people = |what: &String| what.starts_with("PUT ") || what.ends_with("/rulesets");
    let of_files = |what: &String| what.contains("/contents/") && !what.ends_with("/{path}/{path1}/{path2}");
    let never = description.operations().difference(&asked).cloned().collect::<Vec<_>>();
    let never: Vec<_> = never.into_iter().filter(|what| !by_people(what) && !of_files(what)).collect();
    assert_eq!(never, [""; 0], "is described for nothing, or is not tried here");
}

#[tokio::test]
async fn what_is_asked_of_github_and_what_the_stand_in_answers_is_as_github_describes_it() {
    let (server, folder) = (Server::start(HostKind::Github).await, tempfile::tempdir().unwrap());
    let prism = Prism::before(&server.api(), folder.path()).await;
    let mut host = client(&prism.url, folder.path());
    let merged = github::sha("e").parse().unwrap();
    assert_eq!(host.rules(DECISIONS).await, Ok(None));
    assert!(host.hooks().await.is_err(), "hidden");
    for (listed, classic) in [
        (json!([github::ruleset(1), {"type": "deletion"}, {"type": "non_fast_forward"}]), None),
        (json!([{"type": "update"}]), None),
        (json!([]), Some(github::only("ana"))),
        (json!([]), Some(github::classic(2))),
    ] {
        server.keeps(true, listed, classic);
        assert!(host.rules(DECISIONS).await.unwrap().unwrap().protected);
    }
    let mut there = std::mem::take(&mut server.state().there);
    let never = github::hook(false, json!({"code": null, "status": "unused", "message": null}));
    let failed = github::hook(true, json!({"code": 502, "status": "failed", "message": "Bad Gateway"}));
    there.insert("hooks".to_owned(), json!([never, failed]));
    there.insert("contents/a/b/c.yaml".to_owned(), json!({"type": "file", "sha": github::sha("a")}));
    server.merges();
    server.state().there.extend(there);
    server.state().spent = 0;
    let told = everything(&mut host, &merged).await.unwrap();
    let untold: Vec<&String> = told.iter().filter(|line| line.ends_with("None")).collect();
    assert_eq!(untold, ["permissions: None"]);
    // What it refuses.
    let text = Text { title: "t".to_owned(), body: "b".to_owned() };
    let again = host.create("x/1", "main", &text).await;
    assert!(matches!(again, Err(HostError::Refused { status: 422, .. })), "{again:?}");
    assert_eq!(host.blob(&merged, &"a/b/d.yaml".parse().unwrap()).await, Ok(None));
    // What it tells an App of itself.
    let known = Registered::new("123");
    let mut app = as_app(&prism.url, folder.path(), &known);
    server.state().app = Some((known, *Time::UNIX_EPOCH));
    assert_eq!((app.ids().await.unwrap().user, app.login().await.unwrap().as_str()), (BOT, LOGIN));
    let (one, conflict) = (github::sha("d").parse().unwrap(), Status::new(HostMark::Pending, "not checked"));
    let unchecked = CheckRun { status: conflict, id: "0".to_owned(), annotations: Vec::new(), ..check() };
    for (check, writes) in [(&unchecked, 1), (&check(), 3), (&check(), 3)] {
        app.show(&one, "tidegate/prod/manifests", check).await.unwrap();
        assert_eq!(server.state().checks.writes, writes);
    }
    assert_eq!(prism.complaints(), [""; 0]);
    assert_all_was_asked(&server).await;
}

/// Answers each request with the next one of these.
async fn answers(list: Vec<Value>) -> String {
    let left = Arc::new(Mutex::new(list.into_iter()));
    let app = axum::Router::new().fallback(move |_: Request<Body>| {
        let next = left.lock().unwrap().next().unwrap();
        let status = StatusCode::from_u16(u16::try_from(next["status"].as_u64().unwrap()).unwrap()).unwrap();
        let said = if next["answer"].is_null() { String::new() } else { next["answer"].to_string() };
        std::future::ready((status, [(CONTENT_TYPE, "application/json; charset=utf-8")], said))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}/api/v3")
}

#[tokio::test]
async fn what_the_scenarios_ask_and_what_their_stand_in_answers_is_as_github_describes_it() {
    let (description, folder) = (Description::read().await, tempfile::tempdir().unwrap());
    let list = source_dir().join("tests/support/hosts/github.json");
    let list: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    assert!(list.len() > 20, "the list is not read");
    let prism = Prism::before(&answers(list.clone()).await, folder.path()).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for pair in &list {
        let [method, path] = ["method", "path"].map(|field| pair[field].as_str().unwrap());
        let (below, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        description.operation(method, &format!("/{below}"), query);
        let mut request = client.request(method.parse().unwrap(), format!("{}/{path}", prism.url));
        request = request.header("accept", "application/json").header("x-github-api-version", "2022-11-28");
        if !pair["sent"].is_null() {
            request = request.header("content-type", "application/json").body(pair["sent"].to_string());
        }
        let status = request.send().await.unwrap().status().as_u16();
        assert_eq!(pair["status"], status, "{method} {path}");
    }
    assert_eq!(prism.complaints(), [""; 0]);
}

#[tokio::test]
async fn what_github_may_answer_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["examples", "least"] {
        let prism = Prism::mock(&format!("{file}.json"), folder.path()).await;
        let mut host = client(&prism.url, folder.path());
        let told = everything(&mut host, &MERGED.parse().unwrap()).await.unwrap();
        insta::assert_snapshot!(file, told.join("\n"));
        let mut app = as_app(&prism.url, folder.path(), &Registered::new("123"));
        assert_eq!(app.login().await.unwrap(), "octocat");
        app.check(APP, &MERGED.parse().unwrap(), "mighty_readme", &check()).await.unwrap();
        let instance = "prod".parse().unwrap();
        let settings = |account| Settings { instance: &instance, main: "main", account, id: Some(7) };
        for (account, branch) in
            ["bot", "tidegate[bot]"].into_iter().flat_map(|who| ProtectedBranch::ALL.map(|b| (who, b)))
        {
            let (method, path, body) = settings(account).call(HostKind::Github, branch, None);
            let url = format!("{}/repos/acme/shop/{path}", prism.url);
            let sent = reqwest::Client::new().request(method.parse().unwrap(), url);
            let sent = sent.header("content-type", "application/json").body(body.to_string());
            let status = sent.send().await.unwrap().status();
            assert!(status.is_success(), "{method} {path}: {status}");
        }
        // GitHub's examples lack what its description says they must have.
        let ours = |complaint: &String| !complaint.contains("Violation: response");
        assert_eq!(prism.complaints().into_iter().filter(ours).collect::<Vec<_>>(), [""; 0]);
    }
}

#[tokio::test]
async fn attacks_68_70_71_every_webhook_that_github_shows_wakes_if_it_is_signed_and_never_else() {
    const SECRET: &str = "canary-0f8d1c";
    Description::read().await;
    let folder = tempfile::tempdir().unwrap();
    let (secret_file, (tell, mut told)) = (folder.path().join("secret"), watch::channel(()));
    std::fs::write(&secret_file, SECRET).unwrap();
    let router = Receiver { secret_file, told: tell, count: Box::new(|_| {}) }.router();
    let mut send = async |event: &str, signature: Option<String>, body: &str| {
        let mut request =
            Request::post(PATH).header("x-github-event", event).header("content-type", "application/json");
        if let Some(signature) = signature {
            request = request.header("x-hub-signature-256", signature);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let status = router.clone().oneshot(request).await.unwrap().status().as_u16();
        let woken = told.has_changed().unwrap();
        told.mark_unchanged();
        (status, woken)
    };
    let signed = |secret: &str, body: &str| {
        let tag = sign(&Key::new(HMAC_SHA256, secret.as_bytes()), body.as_bytes());
        let hex: Vec<String> = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("sha256={}", hex.concat()))
    };
    let all: Vec<(String, Value)> =
        serde_json::from_str(&std::fs::read_to_string(described("webhooks.json")).unwrap()).unwrap();
    for (event, payload) in &all {
        let body = payload.to_string();
        assert_eq!(send(event, signed(SECRET, &body), &body).await, (202, true), "{event}");
        assert_eq!(send(event, signed("another", &body), &body).await, (401, false), "{event}");
        assert_eq!(send(event, signed(SECRET, &body), &format!("{body} ")).await, (401, false), "{event}");
        assert_eq!(send(event, None, &body).await, (401, false), "{event}");
    }
    let events: BTreeSet<&str> = all.iter().map(|(event, _)| event.as_str()).collect();
    for known in ["ping", "push", "pull_request", "pull_request_review", "create", "delete"] {
        assert!(events.contains(known), "{known} in {events:?}");
    }
}
