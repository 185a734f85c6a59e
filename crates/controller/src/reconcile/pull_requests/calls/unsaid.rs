//! Comments that the host fails to take.

use super::super::conflicting::IN_THE_WAY;
use super::*;

/// What a host is asked of the comments on the first pull request.
fn comments(kind: HostKind) -> &'static str {
    if kind == HostKind::Gitlab { "1/notes" } else { "1/comments" }
}

impl Setup {
    /// The first pull request has ended, and the second one came in its place, while the host fails to take comments.
    async fn led_on(&mut self, kind: HostKind, status: u16) -> Arc<GitView> {
        let mut source = self.world.source("d");
        let first = self.asking(&mut source, "half", Some("first")).await;
        self.worker.turn(&first).await;
        self.server.change(1, json!({"state": "closed"}));
        // Why it ended is said before.
        let none = self.asking(&mut source, "half", None).await;
        self.worker.turn(&none).await;
        self.asked();
        let second = self.asking(&mut source, "half", Some("second")).await;
        self.server.state().fault = fault(comments(kind), status);
        self.worker.turn(&second).await;
        assert_eq!(self.tries(kind), 1, "{kind:?}");
        second
    }

    /// How often anything was asked about the first one's comments since the last time.
    fn tries(&self, kind: HostKind) -> usize {
        self.asked().iter().filter(|what| what.contains(comments(kind))).count()
    }

    fn said(&self, what: &str) -> usize {
        self.server.state().comments.iter().filter(|(on, said)| on == "1" && said.contains(what)).count()
    }

    /// How the first one stands.
    fn stands(&self) -> String {
        self.server.state().pulls[0]["state"].as_str().unwrap().to_owned()
    }

    /// Looks again, that much later.
    async fn later(&mut self, view: &GitView, seconds: u64) {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        // The Lease is renewed by then.
        while self.worker.setting.lead.held().is_none() {
            self.worker.setting.lead.changed().await;
        }
        tokio::time::resume();
        self.worker.turn(view).await;
    }
}

const KINDS: [HostKind; 3] = [HostKind::Gitea, HostKind::Github, HostKind::Gitlab];
const LED_ON: &str = "2 has come in its place, for `half`.";

#[tokio::test]
async fn x_2_what_has_come_in_its_place_is_said_later_where_the_host_fails_and_once() {
    for kind in KINDS {
        let mut setup = Setup::on(kind).await;
        // So that no try is due while the test runs.
        setup.worker.setting.poll = Duration::from_secs(60);
        let view = setup.led_on(kind, 500).await;
        setup.worker.turn(&view).await;
        assert_eq!(setup.tries(kind), 0, "{kind:?}: not before a poll is over");
        setup.later(&view, 60).await;
        assert_eq!(setup.tries(kind), 1, "{kind:?}");
        setup.later(&view, 60).await;
        assert_eq!(setup.tries(kind), 0, "{kind:?}: ever less often");
        setup.server.state().fault = None;
        setup.later(&view, 60).await;
        assert_eq!(setup.said(LED_ON), 1, "{kind:?}");
        setup.asked();
        for _ in 0..3 {
            setup.later(&view, 300).await;
            assert_eq!(setup.tries(kind), 0, "{kind:?}: it costs nothing any more");
        }
        assert_eq!(setup.said(LED_ON), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn x_2_what_the_host_has_taken_without_saying_so_is_not_said_again() {
    for kind in KINDS {
        let mut setup = Setup::on(kind).await;
        let view = setup.led_on(kind, 500).await;
        let named = if kind == HostKind::Gitlab { "!" } else { "#" };
        setup.server.state().comments.push(("1".to_owned(), format!("{named}{LED_ON}")));
        setup.server.state().fault = None;
        setup.later(&view, 2).await;
        assert_eq!((setup.tries(kind), setup.said(LED_ON)), (1, 1), "{kind:?}: it is looked at alone");
        setup.later(&view, 300).await;
        assert_eq!((setup.tries(kind), setup.said(LED_ON)), (0, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn x_2_a_comment_that_is_refused_is_not_tried_again() {
    for kind in KINDS {
        let mut setup = Setup::on(kind).await;
        let view = setup.led_on(kind, 403).await;
        setup.server.state().fault = None;
        setup.later(&view, 300).await;
        assert_eq!((setup.tries(kind), setup.said(LED_ON)), (0, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn x_4_why_it_is_opened_again_is_said_later_too() {
    let mut setup = Setup::on(HostKind::Gitea).await;
    let (branch, request) = setup.shows_there().await;
    let (wanted, view) = (BTreeMap::from([(branch.clone(), request)]), Arc::clone(&setup.view));
    let events = json!([{"type": "close", "user": {"id": USER, "login": "bot"}}]);
    setup.server.state().there = [("issues/1/timeline".to_owned(), events)].into();
    setup.server.change(1, json!({"state": "closed"}));
    setup.server.state().fault = fault(comments(HostKind::Gitea), 502);
    setup.worker.round(&view, &wanted).await.unwrap();
    assert_eq!((setup.stands().as_str(), setup.said("")), ("open", 0));
    setup.server.state().fault = None;
    for _ in 0..2 {
        setup.later(&view, 2).await;
        assert_eq!(setup.said("so this is no answer, and it is opened again"), 1);
    }
}

/// Also where nothing of ours is asked by then.
#[tokio::test]
async fn x_4_why_somebody_elses_is_closed_is_said_later_too() {
    for kind in KINDS {
        let mut setup = Setup::on(kind).await;
        let (wanted, view) = (unmade(&setup, 1), Arc::clone(&setup.view));
        setup.server.open(7, wanted.keys().next().unwrap(), DECISIONS, "theirs");
        setup.server.state().fault = fault(comments(kind), 502);
        setup.worker.round(&view, &wanted).await.unwrap();
        assert_eq!((setup.stands().as_str(), setup.said("")), ("closed", 0), "{kind:?}");
        setup.server.state().fault = None;
        for _ in 0..2 {
            setup.later(&view, 2).await;
            assert_eq!(setup.said(IN_THE_WAY), 1, "{kind:?}");
        }
    }
}
