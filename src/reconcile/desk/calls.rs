//! How often a Git host is asked, with one in this process that counts.

use super::super::clock::Clock;
use super::super::testing::{World, leading, moved};
use super::*;
use crate::forge::host::Pass;
use crate::forge::host::testing::{Server, USER};
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::manifest::raw::Trust;
use crate::record::state::Rule;
use serde_json::json;

const DECISIONS: &str = "tidegate/prod/decisions";

/// A desk, and the host that it asks.
struct Office {
    /// Where main and the token are.
    world: World,
    server: Server,
    clerk: Clerk,
    view: Arc<View>,
}

impl Office {
    async fn on(kind: HostKind) -> Self {
        let (world, server, clock) = (World::new().await, Server::start(kind).await, Clock::default());
        let mut source = world.source("c");
        let view = moved(&mut source, None).await;
        let (token_file, lead) = (world.dir.path().join("token"), leading(&clock).await);
        std::fs::write(&token_file, "token").unwrap();
        let (owner, name) = ("acme".to_owned(), "shop".to_owned());
        let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
        let site = PullHost { kind, api: server.api(), owner, name, access };
        let clerk = Clerk::new(Setting {
            host: Host::new(site, pass, Box::new(|_, _| {}), Box::new(move || clock.now())).unwrap(),
            store: source.store().clone(),
            lead,
            instance: "prod".parse().unwrap(),
            main: "main".to_owned(),
            poll: Duration::from_secs(1),
            guard: watch::channel(Guard::Unknown).0,
            woken: Arc::default(),
            feedback: None,
        });
        Self { world, server, clerk, view }
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.server.state().asked).into_iter().map(|(what, _)| what).collect()
    }

    /// So many requests, each of which is shown as it should be.
    fn shows(&self, count: u64) -> BTreeMap<String, Request> {
        self.server.state().page = Some(100);
        let shown = |n: u64| {
            let branch = format!("tidegate/prod/propose/shop/a{n}/7-07070707-half");
            let head: CommitId = format!("{n:040x}").parse().unwrap();
            let text = Text { title: "a title".to_owned(), body: format!("head {head}") };
            assert_eq!(self.server.open(USER, &branch, DECISIONS, &text.body), n);
            (branch, Request { base: DECISIONS.to_owned(), head, text, rule: None })
        };
        (1..=count).map(shown).collect()
    }
}

#[tokio::test]
async fn a_thousand_open_requests_cost_one_call_for_each_poll() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut office = Office::on(kind).await;
        let (wanted, view) = (office.shows(1_000), Arc::clone(&office.view));
        office.clerk.round(&view, &wanted).await.unwrap();
        office.asked();
        let merged = json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"});
        for heard in [None, Some((7, merged)), Some((500, json!({"state": "closed"}))), None] {
            if let Some((number, fields)) = heard {
                office.server.change(number, fields);
            }
            office.clerk.round(&view, &wanted).await.unwrap();
            let asked = office.asked();
            assert_eq!(asked.len(), 1, "{kind:?}: {asked:?}");
        }
        assert_eq!(office.clerk.merged, [format!("{:040x}", 7).parse().unwrap()].into());
    }
}

#[tokio::test]
async fn at_rest_nothing_is_asked() {
    let mut office = Office::on(HostKind::Github).await;
    let view = Arc::clone(&office.view);
    office.clerk.turn(&view).await;
    let asked = office.asked();
    assert!(asked.iter().any(|what| what.contains("/statuses/")), "how main's tip stands is said once: {asked:?}");
    for _ in 0..3 {
        office.clerk.turn(&view).await;
    }
    assert_eq!(office.asked(), [""; 0]);
}

/// Whoever takes back a branch has closed its pull request, which nobody has said no to; the view tells it a tick later.
#[tokio::test]
async fn x_4_what_closed_with_its_branch_is_not_opened_again() {
    let mut office = Office::on(HostKind::Github).await;
    let (mut wanted, view) = (office.shows(1), Arc::clone(&office.view));
    let (branch, mut request) = wanted.pop_first().unwrap();
    request.head = office.world.commit(&branch, &[]).await;
    request.text.body = format!("head {}", request.head);
    request.rule = Some(Rule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::default() });
    office.server.change(1, json!({"body": request.text.body}));
    let wanted = BTreeMap::from([(branch.clone(), request)]);
    office.clerk.round(&view, &wanted).await.unwrap();
    office.asked();

    office.server.change(1, json!({"state": "closed"}));
    office.world.delete(&branch).await;
    office.clerk.round(&view, &wanted).await.unwrap();
    assert_eq!(office.asked().len(), 1, "the list alone");
    office.world.commit(&branch, &[("other.txt", Some("another head"))]).await;
    office.clerk.round(&view, &wanted).await.unwrap();
    assert_eq!(office.asked().len(), 1, "nor if the branch asks for something else by now");
}
