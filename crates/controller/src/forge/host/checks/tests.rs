//! Checks on a host that keeps them as GitHub does.

use super::*;
use crate::forge::host::github_checks::APP;
use crate::forge::host::testing::{Fault, Server};
use crate::manifest::installation::{self, Access, HostKind, PullHost};
use crate::record::fixture::{commit, time};
use crate::sign::testing::Registered;
use std::sync::{Arc, Mutex};

const NAME: &str = "tidegate/prod/manifests";

/// A host, a client of it that is an App, and what its calls were for.
struct Story {
    server: Server,
    host: Host,
    errands: Arc<Mutex<Vec<CallPurpose>>>,
    _dir: tempfile::TempDir,
}

impl Story {
    async fn new() -> Self {
        let (server, dir) = (Server::start(HostKind::Github).await, tempfile::tempdir().unwrap());
        let (there, key_file) = (Registered::new("123"), dir.path().join("key.pem"));
        std::fs::write(&key_file, there.pkcs1()).unwrap();
        server.state().app = Some((there, time("12:00:00").into()));
        let access = Access::App(installation::App { id: "123".to_owned(), installation: None, key_file });
        let (host, errands) = client(&server, access);
        Self { server, host, errands, _dir: dir }
    }

    async fn show(&mut self, check: &CheckRun) -> Result<(), HostError> {
        self.host.show(&commit(0xab), NAME, check).await
    }

    /// The lines of each run of the commit, and what it came to.
    fn runs(&self) -> Vec<(String, Vec<u64>)> {
        let runs = self.server.state().checks.of(commit(0xab).as_str());
        let word = |run: &Value| format!("{} {}", run["status"], run["conclusion"]).replace('"', "");
        let lines = |all: &[Value]| all.iter().map(|one| one["start_line"].as_u64().unwrap()).collect();
        runs.iter().map(|(run, annotations)| (word(run), lines(annotations))).collect()
    }

    fn writes(&self) -> usize {
        std::mem::take(&mut self.server.state().checks.writes)
    }

    fn statuses(&self) -> usize {
        self.server.state().comments.len()
    }
}

fn client(server: &Server, access: Access) -> (Host, Arc<Mutex<Vec<CallPurpose>>>) {
    let (owner, name) = ("acme".to_owned(), "shop".to_owned());
    let site = PullHost { kind: HostKind::Github, api: server.api(), owner, name, access };
    let pass = Pass::new(&site, Box::new(|| time("12:00:00"))).unwrap();
    let errands = Arc::new(Mutex::new(Vec::new()));
    let counted = Arc::clone(&errands);
    let count = Box::new(move |errand, _| counted.lock().unwrap().push(errand));
    (Host::new(site, pass, count, Box::new(|| time("12:00:00"))).unwrap(), errands)
}

fn check(id: &str, mark: HostMark, lines: impl IntoIterator<Item = usize>) -> CheckRun {
    let one = |line| Annotation {
        path: "a/rollout.yaml".parse().unwrap(),
        line,
        columns: None,
        level: AnnotationLevel::Failure,
        title: "Schema".to_owned(),
        message: "x".to_owned(),
    };
    let (status, id, summary) = (Status::new(mark, "a line"), id.to_owned(), "a summary".to_owned());
    CheckRun { status, id, summary, annotations: lines.into_iter().map(one).collect() }
}

#[tokio::test]
async fn findings_come_in_batches_and_never_twice() {
    let mut story = Story::new().await;
    let bad = check("a", HostMark::Failure, 1..=120);
    story.show(&bad).await.unwrap();
    assert_eq!((story.writes(), bad.writes()), (3, 3));
    let whole = vec![("completed failure".to_owned(), (1..=120).collect::<Vec<u64>>())];
    assert_eq!(story.runs(), whole);
    story.show(&bad).await.unwrap();
    assert_eq!((story.writes(), story.runs()), (0, whole.clone()), "nothing has changed");

    // Whoever ended in the midst of it goes on there.
    story.server.state().checks.cut(1, 50);
    story.show(&bad).await.unwrap();
    assert_eq!((story.writes(), story.runs()), (2, whole));
    assert_eq!(story.statuses(), 0, "a status beside it would have to be mended too");
}

#[tokio::test]
async fn a_run_is_changed_in_place_unless_it_shows_what_is_not_so_any_more() {
    let mut story = Story::new().await;
    let said = |status: &str, lines: &[u64]| (status.to_owned(), lines.to_vec());
    story.show(&check("a", HostMark::Pending, [])).await.unwrap();
    assert_eq!(story.runs(), [said("in_progress null", &[])]);
    story.show(&check("b", HostMark::Success, [])).await.unwrap();
    story.show(&check("c", HostMark::Failure, [1, 2])).await.unwrap();
    assert_eq!(story.runs(), [said("completed failure", &[1, 2])]);
    // GitHub only ever adds annotations.
    story.show(&check("d", HostMark::Failure, [2])).await.unwrap();
    story.show(&check("e", HostMark::Success, [])).await.unwrap();
    let (first, second, third) =
        (said("completed failure", &[1, 2]), said("completed failure", &[2]), said("completed success", &[]));
    assert_eq!(story.runs(), [first.clone(), second.clone(), third.clone()]);
    // And one that has ended never goes back to being under way.
    story.show(&check("f", HostMark::Pending, [])).await.unwrap();
    assert_eq!(story.runs(), [first, second, third, said("in_progress null", &[])]);
}

#[tokio::test]
async fn attack_84_a_run_of_that_name_by_another_app_is_not_ours() {
    let mut story = Story::new().await;
    let theirs = json!({"name": NAME, "head_sha": commit(0xab)});
    story.server.state().checks.make(APP + 1, &theirs);
    story.show(&check("a", HostMark::Failure, [1])).await.unwrap();
    assert_eq!(story.runs(), [("queued null".to_owned(), vec![]), ("completed failure".to_owned(), vec![1])]);
    story.writes();
    story.show(&check("a", HostMark::Failure, [1])).await.unwrap();
    assert_eq!(story.writes(), 0);
}

#[tokio::test]
async fn who_may_not_write_checks_says_how_the_commit_stands() {
    let mut story = Story::new().await;
    story.server.state().app.as_mut().unwrap().0.granted["checks"] = json!("read");
    story.show(&check("a", HostMark::Failure, [1])).await.unwrap();
    assert_eq!((story.runs(), story.statuses()), (vec![], 1));
    assert!(!story.errands.lock().unwrap().contains(&CallPurpose::Check), "it is not even tried");

    // Where that right was taken away since the token was given.
    let mut story = Story::new().await;
    story.host.ids().await.unwrap();
    story.server.state().app.as_mut().unwrap().0.granted["checks"] = json!("read");
    story.show(&check("a", HostMark::Failure, [1])).await.unwrap();
    assert_eq!((story.runs(), story.statuses()), (vec![], 1));

    // Without an App there is nothing to be tried.
    let (server, dir) = (Server::start(HostKind::Github).await, tempfile::tempdir().unwrap());
    let token_file = dir.path().join("token");
    std::fs::write(&token_file, "token").unwrap();
    let (mut host, errands) = client(&server, Access::Token(token_file));
    host.show(&commit(0xab), NAME, &check("a", HostMark::Failure, [1])).await.unwrap();
    assert_eq!(
        (server.state().comments.len(), errands.lock().unwrap().as_slice()),
        (1, [CallPurpose::Status].as_slice())
    );
}

#[tokio::test]
async fn x_13_checks_are_of_the_budget_and_a_limit_in_the_midst_of_one_is_kept() {
    let mut story = Story::new().await;
    story.host.ids().await.unwrap();
    let at = "PATCH /api/v3/repos/acme/shop/check-runs";
    let (headers, body) = (vec![("retry-after", "7".to_owned())], "{}".to_owned());
    story.server.state().fault = Some(Fault { at, status: 429, headers, body });
    let bad = check("a", HostMark::Failure, 1..=120);
    assert_eq!(story.show(&bad).await, Err(HostError::Limited(7)));
    assert_eq!(story.runs(), [("completed failure".to_owned(), (1..=50).collect())], "what it comes to stands");
    let counted = story.errands.lock().unwrap().iter().filter(|errand| **errand == CallPurpose::Check).count();
    assert_eq!(counted, 3);
    // Nothing is asked, and nothing said in another way, until that is over.
    let asked = story.server.state().asked.len();
    assert_eq!(story.show(&bad).await, Err(HostError::Limited(7)));
    assert_eq!(story.server.state().asked.len(), asked);
    assert_eq!(story.statuses(), 0);
}
