//! What the host refuses of one request, and what is in the way of it.

use super::super::rivals::IN_THE_WAY;
use super::*;

#[tokio::test]
async fn x_4_what_is_refused_of_one_request_slows_no_look() {
    for (kind, change) in [
        (HostKind::Gitea, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Github, "PATCH /api/v3/repos/acme/shop/pulls/1"),
        (HostKind::Gitlab, "PUT /api/v4/projects/acme%2Fshop/merge_requests/1"),
    ] {
        let mut office = Office::on(kind).await;
        // So that none is over while the test runs.
        let poll = Duration::from_secs(60);
        office.clerk.setting.poll = poll;
        let mut source = office.world.source("d");
        let view = office.asking(&mut source, "half", Some("first")).await;
        office.clerk.turn(&view).await;
        office.server.change(1, json!({"title": "mine"}));
        office.asked();
        let refused = fault(change, 403);
        for (fault, rested, tries) in [(refused.clone(), false, 1), (refused, false, 0), (None, true, 1)] {
            office.server.state().fault = fault;
            if rested {
                office.clerk.rests = Rests::default();
            }
            assert_eq!(office.clerk.turn(&view).await, poll, "{kind:?}");
            assert!(office.clerk.patience.is_fine(), "{kind:?}");
            let tried = office.asked().iter().filter(|what| what.contains(change)).count();
            assert_eq!(tried, tries, "{kind:?}: it alone is tried less often");
        }
    }
}

/// Whoever may push can open one from the branch of ours to where ours leads, while ours is closed: hosts take no second one.
#[tokio::test]
async fn x_4_what_somebody_else_opens_from_a_branch_of_ours_makes_way() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut office = Office::on(kind).await;
        let (wanted, view) = (unmade(&office, 1), Arc::clone(&office.view));
        let branch = wanted.keys().next().unwrap();
        assert_eq!(office.server.open(7, branch, DECISIONS, "theirs"), 1);
        assert_eq!(office.server.open(7, "theirs", DECISIONS, "theirs"), 2);
        for _ in 0..2 {
            assert_eq!(office.clerk.round(&view, &wanted).await, Ok(None), "{kind:?}");
        }
        let pulls = office.server.state().pulls.clone();
        let all: Vec<_> = pulls.iter().map(|pull| (pull["state"].as_str(), pull["user"]["id"].as_u64())).collect();
        let expected = [(Some("closed"), Some(7)), (Some("open"), Some(7)), (Some("open"), Some(USER))];
        assert_eq!(all, expected, "{kind:?}");
        let said = office.server.state().comments.clone();
        assert_eq!(said, [("1".to_owned(), IN_THE_WAY.to_owned())], "{kind:?}");
    }
}
