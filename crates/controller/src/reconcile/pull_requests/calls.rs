//! How often a Git host is asked, with one in this process that counts.

use super::super::clock::Clock;
use super::super::source::Source;
use super::super::testing::{World, leading, moved};
use super::gone::Gone;
use super::tests::seen;
use super::*;
use crate::forge::host::Pass;
use crate::forge::host::testing::{Fault, Server, USER};
use crate::forge::pull::PullState;
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::plan::evidence::Denial;
use crate::record::fixture;
use crate::record::state::{Consumed, DeletionQuestion, EndedRun, Pull, Refused, Void};
use serde_json::json;
use std::sync::Mutex;

mod closed;
mod refused;
mod unsaid;

const DECISIONS: &str = "tidegate/prod/decisions";

/// A pull_requests, and the host that it asks.
struct Setup {
    /// Where main and the token are.
    world: World,
    server: Server,
    worker: Worker,
    view: Arc<GitView>,
    heard: Heard,
}

/// What plans were told of branches that are gone.
type Heard = Arc<Mutex<Vec<(String, Denial)>>>;

impl Setup {
    async fn on(kind: HostKind) -> Self {
        let (world, server, clock) = (World::new().await, Server::start(kind).await, Clock::default());
        let mut source = world.source("c");
        let view = moved(&mut source, None).await;
        let (token_file, lead) = (world.dir.path().join("token"), leading(&clock).await);
        std::fs::write(&token_file, "token").unwrap();
        let heard = Heard::default();
        let (owner, name) = ("acme".to_owned(), "shop".to_owned());
        let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
        let site = PullHost { kind, api: server.api(), owner, name, access };
        let now = clock.clone();
        let worker = Worker::new(Setting {
            host: Host::new(site, pass, Box::new(|_, _| {}), Box::new(move || now.now())).unwrap(),
            store: source.store().clone(),
            lead,
            instance: "prod".parse().unwrap(),
            main: "main".to_owned(),
            clock,
            poll: Duration::from_secs(1),
            guard: watch::channel(Guard::Unknown).0,
            told: watch::Sender::default(),
            woken: Arc::default(),
            inbox: Box::new({
                let heard = Arc::clone(&heard);
                move |_, request, denial| heard.lock().unwrap().push((request.0, denial))
            }),
            feedback: None,
        });
        Self { world, server, worker, view, heard }
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.server.state().asked).into_iter().map(|(what, _)| what).collect()
    }

    /// What plans were told since the last time.
    fn told(&self) -> Vec<(String, Denial)> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    /// So many requests, each of which is shown as it should be.
    fn shows(&self, count: u64) -> BTreeMap<String, PullBody> {
        self.server.state().page = Some(100);
        let shown = |n: u64| {
            let branch = format!("tidegate/prod/propose/shop/a{n}/7-07070707-half");
            let head: CommitId = format!("{n:040x}").parse().unwrap();
            let text = Text { title: "a title".to_owned(), body: format!("head {head}") };
            assert_eq!(self.server.open(USER, &branch, DECISIONS, &text.body), n);
            (branch, PullBody { base: DECISIONS.to_owned(), head, text, rule: None })
        };
        (1..=count).map(shown).collect()
    }

    /// The same of one whose branch is there.
    async fn shows_there(&self) -> (String, PullBody) {
        let (branch, mut request) = self.shows(1).pop_first().unwrap();
        request.head = self.world.commit(&branch, &[]).await;
        request.text.body = format!("head {}", request.head);
        self.server.change(1, json!({"body": request.text.body}));
        (branch, request)
    }
}

#[tokio::test]
async fn a_thousand_open_requests_cost_one_call_for_each_poll() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut setup = Setup::on(kind).await;
        let (wanted, view) = (setup.shows(1_000), Arc::clone(&setup.view));
        setup.worker.round(&view, &wanted).await.unwrap();
        setup.asked();
        let merged = json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"});
        for heard in [None, Some((7, merged)), Some((500, json!({"state": "closed"}))), None] {
            if let Some((number, fields)) = heard {
                setup.server.change(number, fields);
            }
            setup.worker.round(&view, &wanted).await.unwrap();
            let asked = setup.asked();
            assert_eq!(asked.len(), 1, "{kind:?}: {asked:?}");
        }
        assert_eq!(setup.worker.merged, [format!("{:040x}", 7).parse().unwrap()].into());
    }
}

#[tokio::test]
async fn at_rest_nothing_is_asked() {
    let mut setup = Setup::on(HostKind::Github).await;
    let view = Arc::clone(&setup.view);
    setup.worker.turn(&view).await;
    let asked = setup.asked();
    assert!(asked.iter().any(|what| what.contains("/statuses/")), "how main's tip stands is said once: {asked:?}");
    for _ in 0..3 {
        setup.worker.turn(&view).await;
    }
    assert_eq!(setup.asked(), [""; 0]);
}

/// Requests that are not on the host yet.
fn unmade(setup: &Setup, count: u64) -> BTreeMap<String, PullBody> {
    let wanted = setup.shows(count);
    setup.server.state().pulls.clear();
    wanted
}

#[tokio::test]
async fn people_filter_by_labels_that_are_put_on_once_and_that_they_may_take_away() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut setup = Setup::on(kind).await;
        let (mut wanted, view) = (unmade(&setup, 2), Arc::clone(&setup.view));
        let (branch, undoes) = wanted.pop_last().unwrap();
        wanted.insert(branch.replace("-half", "-revert"), PullBody { base: "main".to_owned(), ..undoes });
        setup.worker.round(&view, &wanted).await.unwrap();
        let labels = |setup: &Setup, number| setup.server.labels(number).join(" ");
        assert_eq!(labels(&setup, 1), "tidegate tidegate/advance", "{kind:?}");
        assert_eq!(labels(&setup, 2), "tidegate tidegate/revert", "{kind:?}");
        setup.asked();
        setup.server.change(1, json!({"labels": []}));
        setup.worker.round(&view, &wanted).await.unwrap();
        assert_eq!((setup.asked().len(), labels(&setup, 1).as_str()), (1, ""), "{kind:?}: the list alone");
    }
}

#[tokio::test]
async fn what_is_wrong_with_labels_neither_stops_nor_delays_a_request_and_a_no_is_not_asked_again() {
    for (kind, at) in [
        (HostKind::Gitea, "/labels"),
        (HostKind::Github, "/labels"),
        (HostKind::Gitlab, "PUT /api/v4/projects/acme%2Fshop/merge_requests"),
    ] {
        for (status, lasts) in [(403, true), (404, true), (422, true), (302, true), (500, false), (429, false)] {
            let mut setup = Setup::on(kind).await;
            let (wanted, view) = (unmade(&setup, 2), Arc::clone(&setup.view));
            setup.server.state().fault = fault(at, status);
            setup.worker.round(&view, &wanted).await.unwrap();
            let made = setup.server.state().pulls.len();
            assert_eq!((made, setup.worker.unlabelled), (2, lasts), "{kind:?} {status}");
            let tried = setup.asked().iter().filter(|what| what.contains(at)).count();
            assert_eq!(tried, if lasts { 2 } else { 1 }, "{kind:?} {status}: once for each, or once for this look");
            setup.server.state().fault = None;
            if status != 429 {
                setup.worker.round(&view, &wanted).await.unwrap();
                let alone = setup.asked().len() == 1;
                assert_eq!(alone, lasts, "{kind:?} {status}: after a no, the list alone");
                let bare = [1, 2].map(|number| setup.server.labels(number).is_empty());
                assert_eq!(bare, [lasts; 2], "{kind:?} {status}");
            }
        }
    }
}

/// Three requests to undo something, which nobody wants any more.
fn undone(setup: &Setup) -> [u64; 3] {
    setup.server.state().page = Some(100);
    let branch = |n| format!("tidegate/prod/propose/shop/a{n}/7-07070707-revert");
    [1, 2, 3].map(|n| setup.server.open(USER, &branch(n), "main", "undo it"))
}

/// How each of them stands.
async fn standing(setup: &mut Setup, numbers: [u64; 3]) -> Vec<PullState> {
    let mut all = Vec::new();
    for number in numbers {
        all.push(setup.worker.setting.host.pull(number).await.unwrap().state);
    }
    all
}

/// What the host says instead of what it knows.
fn fault(at: &'static str, status: u16) -> Option<Fault> {
    Some(Fault { at, status, headers: vec![], body: "{\"message\": \"no\"}".to_owned() })
}

#[tokio::test]
async fn x_2_one_request_that_cannot_be_closed_keeps_no_other_open() {
    for (kind, first) in [
        (HostKind::Gitea, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Github, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Gitlab, "PUT /api/v4/projects/acme%2Fshop/merge_requests/1"),
    ] {
        let mut setup = Setup::on(kind).await;
        let (numbers, view) = (undone(&setup), Arc::clone(&setup.view));
        setup.server.state().fault = fault(first, 403);
        for _ in 0..2 {
            let aside = setup.worker.round(&view, &BTreeMap::new()).await.unwrap().unwrap();
            assert!(matches!(aside, HostError::Refused { status: 403, .. }), "{aside}");
        }
        assert_eq!(standing(&mut setup, numbers).await, [PullState::Open, PullState::Closed, PullState::Closed]);
        let said = setup.server.state().comments.iter().filter(|(number, _)| number == "1").count();
        assert_eq!(said, 1, "why is said once");
        setup.server.state().fault = None;
        setup.worker.round(&view, &BTreeMap::new()).await.unwrap();
        assert_eq!(standing(&mut setup, numbers).await, [PullState::Closed; 3], "it is tried again");
    }
}

#[tokio::test]
async fn x_2_a_request_that_takes_no_comment_is_closed_without() {
    for (kind, words) in [(HostKind::Gitea, "/comments"), (HostKind::Github, "/comments"), (HostKind::Gitlab, "/notes")]
    {
        let mut setup = Setup::on(kind).await;
        let (numbers, view) = (undone(&setup), Arc::clone(&setup.view));
        setup.server.state().fault = fault(words, 403);
        setup.worker.round(&view, &BTreeMap::new()).await.unwrap();
        assert_eq!(standing(&mut setup, numbers).await, [PullState::Closed; 3]);
        let text = setup.worker.setting.host.pull(1).await.unwrap().text.body;
        assert!(text.starts_with("> **Closed:** there is nothing to undo any more"), "the text says why: {text}");
    }
}

#[tokio::test]
async fn x_2_a_request_that_somebody_deleted_is_forgotten() {
    for (kind, first) in [
        (HostKind::Gitea, "GET /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Github, "GET /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Gitlab, "GET /api/v4/projects/acme%2Fshop/merge_requests/1"),
    ] {
        let mut setup = Setup::on(kind).await;
        let (numbers, view) = (undone(&setup), Arc::clone(&setup.view));
        setup.worker.open = Some([(numbers[0], "tidegate/prod/propose/shop/a1/7-07070707-revert".to_owned())].into());
        setup.server.change(1, json!({"state": "closed", "user": {"id": 1, "login": "nobody"}}));
        setup.server.state().fault = fault(first, 404);
        setup.worker.round(&view, &BTreeMap::new()).await.unwrap();
        setup.server.state().fault = None;
        assert_eq!(standing(&mut setup, numbers).await[1..], [PullState::Closed; 2]);
        assert_eq!(setup.worker.open, Some(BTreeMap::new()), "{kind:?}");
    }
}

/// Where the policy names who may say no, the host is asked who closed what has no branch any more.
#[tokio::test]
async fn x_4_whose_no_it_is_is_asked_of_the_host() {
    let ana = json!({"id": 7, "login": "ana"});
    let head = fixture::commit(9);
    let text = format!("head {head}");
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half".to_owned();
    let rule = |approver: &str| ApprovalRule {
        approvers: [approver.to_owned()].into(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    };
    let gone = |approver| BTreeMap::from([(branch.clone(), Gone::new("shop/a", head.clone(), rule(approver)))]);
    let told = |denial| vec![(branch.clone(), denial)];
    let unheard = |why: &str| Denial::NotAuthorized(why.to_owned());

    let mut setup = Setup::on(HostKind::Github).await;
    setup.server.state().there = BTreeMap::from([
        ("issues/1".to_owned(), json!({"closed_by": ana})),
        ("collaborators/ana/permission".to_owned(), json!({"permission": "write"})),
    ]);
    setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
    assert_eq!(setup.told(), told(unheard("its branch was deleted, and no pull request for it was closed")));
    setup.server.open(USER, &branch, DECISIONS, &text);
    // Webhooks about other things let looks follow each other at once.
    for _ in 0..9 {
        setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
        assert!(setup.told().is_empty(), "the host has not seen yet that the branch is gone");
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
    assert_eq!(setup.told(), told(unheard("its branch was deleted, and its pull request is open")));
    setup.server.change(1, json!({"state": "closed"}));
    setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
    assert_eq!(setup.told(), told(Denial::No));
    setup.worker.examine_gone(&gone("ben"), Ok(())).await.unwrap();
    assert_eq!(setup.told(), told(unheard("ana is none of the policy's approvers")));
    let away = HostError::Away { doing: "GET x".to_owned(), why: "refused".to_owned() };
    setup.worker.examine_gone(&gone("ana"), Err(away.clone())).await.unwrap_err();
    assert_eq!(setup.told(), told(Denial::Unknown(away.to_string())));
    let merged = json!({"merged_at": "2026-01-01T00:00:00Z"});
    setup.server.change(1, merged);
    setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
    assert!(setup.told().is_empty(), "a merge is judged by what is on the branch");
    setup.server.change(1, json!({"base": {"label": "acme:main", "ref": "main", "sha": "0", "repo": {"id": 7}}}));
    setup.worker.examine_gone(&gone("ana"), Ok(())).await.unwrap();
    assert_eq!(setup.told(), told(unheard("it was merged into main")));
}

#[tokio::test]
async fn x_4_what_is_refused_of_one_request_that_is_gone_is_told_of_that_one_alone() {
    let mut setup = Setup::on(HostKind::Github).await;
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    let request = |n: u8| {
        let (branch, head) = (format!("tidegate/prod/propose/shop/a{n}/7-07070707-half"), fixture::commit(n));
        setup.server.open(USER, &branch, DECISIONS, &format!("head {head}"));
        setup.server.change(n.into(), json!({"state": "closed"}));
        (branch, Gone::new(&format!("shop/a{n}"), head, rule.clone()))
    };
    let gone: BTreeMap<String, Gone> = (1..=3).map(request).collect();
    let ana = json!({"closed_by": {"id": 7, "login": "ana"}});
    setup.server.state().there = BTreeMap::from([
        ("issues/1".to_owned(), ana.clone()),
        ("issues/2".to_owned(), ana.clone()),
        ("issues/3".to_owned(), ana),
        ("collaborators/ana/permission".to_owned(), json!({"permission": "write"})),
    ]);
    setup.server.state().fault = fault("/issues/2", 403);
    let aside = setup.worker.examine_gone(&gone, Ok(())).await.unwrap().unwrap();
    assert!(matches!(aside, HostError::Refused { status: 403, .. }), "{aside}");
    let told: Vec<Denial> = setup.told().into_iter().map(|(_, denial)| denial).collect();
    assert_eq!(told, [Denial::No, Denial::Unknown(aside.to_string()), Denial::No]);

    // A host that is away is away for all.
    setup.server.state().fault = fault("/issues/2", 503);
    let away = setup.worker.examine_gone(&gone, Ok(())).await.unwrap_err();
    let told: Vec<Denial> = setup.told().into_iter().map(|(_, denial)| denial).collect();
    assert_eq!(told, [Denial::No, Denial::Unknown(away.to_string()), Denial::Unknown(away.to_string())]);

    // How often something was looked at is known as long as it matters.
    setup.server.state().fault = None;
    setup.server.change(1, json!({"state": "open"}));
    setup.worker.examine_gone(&gone, Ok(())).await.unwrap();
    assert_eq!(setup.worker.looks.len(), 1);
    setup.worker.examine_gone(&BTreeMap::new(), Ok(())).await.unwrap();
    assert!(setup.worker.looks.is_empty());
}

/// Whatever a request asks, whoever finds the one before is led to the one that has come in its place, once.
#[tokio::test]
async fn x_2_a_request_that_ended_without_an_answer_leads_to_the_next_one() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        for asks in ["half", "delete", "revert"] {
            // Git is looked at between the end of the first one and the beginning of the second, or only then.
            for between in [true, false] {
                let mut setup = Setup::on(kind).await;
                let mut source = setup.world.source("d");
                let first = setup.asking(&mut source, asks, Some("first")).await;
                setup.worker.turn(&first).await;
                setup.server.change(1, json!({"state": "closed"}));
                if between {
                    let none = setup.asking(&mut source, asks, None).await;
                    setup.worker.turn(&none).await;
                }
                let second = setup.asking(&mut source, asks, Some("second")).await;
                setup.worker.turn(&second).await;
                setup.worker.turn(&second).await;
                assert_eq!(setup.server.state().pulls.len(), 2, "{kind:?} {asks} {between}");
                let said = setup.server.state().comments.clone();
                let led = |said: &&(String, String)| said.0 == "1" && said.1.contains("2 has come in its place");
                assert_eq!(said.iter().filter(led).count(), 1, "{kind:?} {asks} {between}: {said:?}");
            }
        }
    }
}

/// What a merge was worth is known only later.
#[tokio::test]
async fn x_2_a_request_whose_merge_did_not_count_leads_to_the_next_one() {
    let mut setup = Setup::on(HostKind::Github).await;
    let mut source = setup.world.source("d");
    let first = setup.asking(&mut source, "half", Some("first")).await;
    setup.worker.turn(&first).await;
    setup.server.change(1, json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}));
    setup.world.delete("tidegate/prod/propose/shop/a/7-07070707-half").await;
    let merged = seen(&setup.world, &mut source, |state| state.run.as_mut().unwrap().pulls.clear()).await;
    setup.worker.turn(&merged).await;
    let second = setup.asking(&mut source, "half", Some("second")).await;
    setup.worker.turn(&second).await;
    setup.worker.turn(&second).await;
    let said = setup.server.state().comments.clone();
    assert_eq!(
        said.iter().filter(|said| said.0 == "1" && said.1.contains("2 has come in its place")).count(),
        1,
        "{said:?}"
    );
}

impl Setup {
    /// What Git says while that is asked from a branch with something new in it; if from none, it will be asked anew.
    async fn asking(&self, source: &mut Source, asks: &str, from: Option<&str>) -> Arc<GitView> {
        let branch = format!("tidegate/prod/propose/shop/a/7-07070707-{asks}");
        if self.world.tip(&branch).await.is_some() {
            self.world.delete(&branch).await;
        }
        let head = match from {
            Some(text) => Some(self.world.commit(&branch, &[("x", Some(text))]).await),
            None => None,
        };
        let pull = head.map(|head| Pull { branch, head, checks: Vec::new() });
        seen(&self.world, source, |state| {
            let run = state.run.as_mut().unwrap();
            run.pulls.clear();
            if asks == "half" {
                run.pulls.extend(pull.map(|pull| ("half".parse().unwrap(), pull)));
                let void = Some(Void { why: "x".to_owned(), through: Some("half".parse().unwrap()), head: None });
                let words = fixture::open().consumed.into_iter();
                state.consumed = words.map(|word| Consumed { void: void.clone(), ..word }).collect();
                return;
            }
            state.last_run = Some(EndedRun { id: run.id.clone(), decisions_at: None });
            let (refused, revision) = (fixture::steady().refused.remove(0), run.revision.clone());
            state.refused = vec![Refused { run: run.id.clone(), revision, ..refused }];
            state.run = None;
            match asks {
                "delete" => state.deletions.asked = Some(DeletionQuestion { pull, ..fixture::too_many(6) }),
                _ => state.revert = pull,
            }
        })
        .await
    }
}

#[tokio::test]
async fn x_4_nor_does_it_keep_others_from_being_shown() {
    let mut setup = Setup::on(HostKind::Github).await;
    let mut source = setup.world.source("d");
    let [gone, shown] = ["half", "promotion"].map(|step| format!("tidegate/prod/propose/shop/a/7-07070707-{step}"));
    let (was, head) = (fixture::commit(9), setup.world.commit(&shown, &[("x", Some("y"))]).await);
    let view = seen(&setup.world, &mut source, |state| {
        let approvers = ["ana".to_owned()].into();
        let run = state.run.as_mut().unwrap();
        run.pulls.clear();
        run.rule = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Reviews });
        for (branch, head) in [(&gone, &was), (&shown, &head)] {
            let step = branch.rsplit('-').next().unwrap().parse().unwrap();
            let pull = Pull { branch: branch.clone(), head: head.clone(), checks: Vec::new() };
            run.pulls.insert(step, pull);
        }
    })
    .await;
    setup.server.open(USER, &gone, DECISIONS, &format!("head {was}"));
    setup.server.change(1, json!({"state": "closed"}));
    setup.server.state().fault = fault("/issues/1", 403);
    for _ in 0..3 {
        let pause = setup.worker.turn(&view).await;
        assert!(pause == setup.worker.setting.poll && setup.worker.backoff.is_fine(), "nor does anything wait longer");
    }
    let again = setup.asked().iter().filter(|what| what.contains("/issues/1")).count();
    assert!(again == 3 && setup.told().len() == 3, "it is tried again");
    setup.worker.turn(&view).await;
    let (told, asked) = (setup.told(), setup.asked());
    assert!(matches!(&told[..], [(branch, Denial::Unknown(_))] if *branch == gone), "{told:?}");
    assert_eq!(setup.server.state().pulls.len(), 2, "{asked:?}");
}
