//! What the host refuses of one request, and what is in the way of it.

use super::super::conflicting::IN_THE_WAY;
use super::*;

#[tokio::test]
async fn x_4_what_is_refused_of_one_request_slows_no_look() {
    for (kind, change) in [
        (HostKind::Gitea, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Github, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Gitlab, "PUT /api/v4/projects/acme%2Fshop/merge_requests/1"),
    ] {
        let mut setup = Setup::on(kind).await;
        // So that none is over while the test runs.
        let poll = Duration::from_secs(60);
        setup.worker.setting.poll = poll;
        let mut source = setup.world.source("d");
        let view = setup.asking(&mut source, "half", Some("first")).await;
        setup.worker.turn(&view).await;
        setup.server.change(1, json!({"title": "mine"}));
        setup.asked();
        let refused = fault(change, 403);
        for (fault, rested, tries) in [(refused.clone(), false, 1), (refused, false, 0), (None, true, 1)] {
            setup.server.state().fault = fault;
            if rested {
                setup.worker.request_backoff = RequestBackoff::default();
            }
            assert_eq!(setup.worker.turn(&view).await, poll, "{kind:?}");
            assert!(setup.worker.backoff.is_fine(), "{kind:?}");
            let tried = setup.asked().iter().filter(|what| what.contains(change)).count();
            assert_eq!(tried, tries, "{kind:?}: it alone is tried less often");
        }
    }
}

/// Whoever may push can open one from the branch of ours to where ours leads, while ours is closed: hosts take no second one.
#[tokio::test]
async fn x_4_what_somebody_else_opens_from_a_branch_of_ours_makes_way() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut setup = Setup::on(kind).await;
        let (wanted, view) = (unmade(&setup, 1), Arc::clone(&setup.view));
        let branch = wanted.keys().next().unwrap();
        assert_eq!(setup.server.open(7, branch, DECISIONS, "theirs"), 1);
        assert_eq!(setup.server.open(7, "theirs", DECISIONS, "theirs"), 2);
        for _ in 0..2 {
            assert_eq!(setup.worker.round(&view, &wanted).await, Ok(None), "{kind:?}");
        }
        let pulls = setup.server.state().pulls.clone();
        let all: Vec<_> = pulls.iter().map(|pull| (pull["state"].as_str(), pull["user"]["id"].as_u64())).collect();
        let expected = [(Some("closed"), Some(7)), (Some("open"), Some(7)), (Some("open"), Some(USER))];
        assert_eq!(all, expected, "{kind:?}");
        let said = setup.server.state().comments.clone();
        assert_eq!(said, [("1".to_owned(), IN_THE_WAY.to_owned())], "{kind:?}");
    }
}
