//! What hosts tell of the rules of branches, of our account and of webhooks.

use super::*;
use crate::gate::guard;

#[tokio::test]
async fn what_protects_a_branch_is_read_from_rulesets_and_from_classic_rules() {
    let mut client = Client::new(HostKind::Github).await;
    assert_eq!(client.host.rules("tidegate/prod/decisions").await, Ok(None), "there is no such branch");
    let (reviews, only) = (|count| Some(github::classic(count)), |login| Some(github::only(login)));
    let idle = json!([{"type": "deletion"}, {"type": "non_fast_forward"}]);
    for (what, protected, listed, classic, open) in [
        ("nothing", false, json!([]), None, Some("no rule")),
        ("a ruleset", true, json!([github::ruleset(1)]), None, None),
        ("a ruleset without reviewers", true, json!([github::ruleset(0)]), None, Some("no approval")),
        ("one that asks for less", true, idle.clone(), None, Some("no approval")),
        ("that and a classic rule", true, idle, reviews(2), None),
        ("a classic rule", true, json!([]), reviews(1), None),
        ("one without reviewers", true, json!([]), reviews(0), Some("no approval")),
        ("who may push", true, json!([]), only("ana"), None),
        ("that we may push", true, json!([]), only("Bot"), Some("push")),
        ("only whom it leaves out", true, json!([{"type": "update"}]), None, None),
        ("what nobody tells us", true, json!([]), None, None),
    ] {
        client.server.keeps(protected, listed, classic);
        let rules = client.host.rules("tidegate/prod/decisions").await.unwrap().unwrap();
        match open {
            Some(part) => assert!(guard::open(&rules).is_some_and(|why| why.contains(part)), "{what}: {rules:?}"),
            None => assert_eq!(guard::open(&rules), None, "{what}: {rules:?}"),
        }
        let unsaid = ["only whom it leaves out", "what nobody tells us"].contains(&what);
        assert_eq!(
            (guard::is_hidden(&rules), rules.hidden),
            (unsaid, what == "what nobody tells us"),
            "{what}: {rules:?}"
        );
    }
}

#[tokio::test]
async fn rules_that_have_not_changed_cost_nothing() {
    let mut client = Client::new(HostKind::Github).await;
    client.server.keeps(false, json!([]), None);
    let first = client.host.rules("tidegate/prod/decisions").await.unwrap();
    let spent = client.server.state().spent;
    client.counted();
    assert_eq!(client.host.rules("tidegate/prod/decisions").await.unwrap(), first);
    assert_eq!((client.counted(), client.server.state().spent), (vec![CallOutcome::Unchanged], spent));
    client.fails("branches", 500, &[], "");
    assert!(matches!(client.host.rules("tidegate/prod/decisions").await, Err(HostError::Away { .. })));
}

#[tokio::test]
async fn who_is_told_of_pushes_and_what_our_account_may_do() {
    let mut client = Client::new(HostKind::Github).await;
    assert_eq!(client.host.permissions().await, Ok(None));
    let unused = json!({"code": null, "status": "unused", "message": null});
    let failed = json!({"code": 502, "status": "x", "message": "bad\ngateway"});
    let all = json!([github::hook(false, unused), github::hook(true, failed)]);
    client.server.state().there = [("hooks".to_owned(), all)].into();
    let [hook] = &*client.host.hooks().await.unwrap() else { panic!() };
    assert!(hook.pushes && !hook.pulls && hook.url == "https://t.test/webhook", "{hook:?}");
    assert_eq!(hook.last, Some((Some(502), "bad gateway".to_owned())));
    client.server.state().there.clear();
    assert!(matches!(client.host.hooks().await, Err(HostError::Refused { status: 404, .. })), "hidden");
    assert!(client.host.clock().is_some());
}

#[tokio::test]
async fn what_protects_a_branch_of_gitlab_is_who_may_write_to_it_without_asking() {
    let mut client = Client::new(HostKind::Gitlab).await;
    assert_eq!(client.host.rules("tidegate/prod/decisions").await, Ok(None), "there is no such branch");
    let branch = |protected: bool, ours: bool, push: bool, merge: bool| json!({"name": "x", "protected": protected, "can_push": ours, "developers_can_push": push, "developers_can_merge": merge});
    for (what, told, open) in [
        ("nothing", branch(false, true, true, true), Some("no rule")),
        ("nobody pushes, Maintainers merge", branch(true, false, false, false), None),
        ("Developers push", branch(true, true, true, false), Some("push")),
        ("we push, as a Maintainer or by name", branch(true, true, false, false), Some("push")),
        ("all push but us", branch(true, false, true, false), Some("push")),
        ("Developers merge, be it after approvals", branch(true, false, false, true), Some("no approval")),
    ] {
        client.server.state().there = [("repository/branches/tidegate%2Fprod%2Fdecisions".to_owned(), told)].into();
        let rules = client.host.rules("tidegate/prod/decisions").await.unwrap().unwrap();
        match open {
            Some(part) => assert!(guard::open(&rules).is_some_and(|why| why.contains(part)), "{what}: {rules:?}"),
            None => assert_eq!(guard::open(&rules), None, "{what}: {rules:?}"),
        }
        assert!(!guard::is_hidden(&rules), "{what}");
    }
    let half = json!({"name": "x", "protected": true, "can_push": false});
    client.server.state().there = [("repository/branches/tidegate%2Fprod%2Fdecisions".to_owned(), half)].into();
    let half = client.host.rules("tidegate/prod/decisions").await;
    assert!(matches!(half, Err(HostError::Unusable { .. })), "{half:?}");
}

#[tokio::test]
async fn who_is_told_of_pushes_by_gitlab_and_what_our_account_may_do_there() {
    let mut client = Client::new(HostKind::Gitlab).await;
    assert_eq!(client.host.permissions().await, Ok(None));
    for (project, group, may) in [
        (json!(null), json!(null), None),
        (json!({"access_level": 20}), json!(null), Some((false, false))),
        (json!({"access_level": 30}), json!(null), Some((false, true))),
        (json!({"access_level": 30}), json!({"access_level": 50}), Some((true, true))),
    ] {
        let told = json!({"id": REPOSITORY, "permissions": {"project_access": project, "group_access": group}});
        client.fails("/projects/acme%2Fshop", 200, &[], &told.to_string());
        let found = client.host.permissions().await.unwrap();
        assert_eq!(found.map(|found| (found.admin, found.push)), may, "{told}");
    }
    client.server.state().fault = None;
    let hook = |pushes: bool, status: &str| json!({"url": "https://t.test/webhook", "push_events": pushes, "merge_requests_events": true, "alert_status": status});
    let all = json!([hook(true, "disabled"), hook(true, "executable")]);
    client.server.state().there = [("hooks".to_owned(), all)].into();
    let [hook] = &*client.host.hooks().await.unwrap() else { panic!() };
    assert!(hook.pushes && hook.pulls && hook.url == "https://t.test/webhook" && hook.last.is_none(), "{hook:?}");
    client.fails("hooks", 403, &[], "{}");
    assert!(matches!(client.host.hooks().await, Err(HostError::Refused { status: 403, .. })), "for Maintainers alone");
}
