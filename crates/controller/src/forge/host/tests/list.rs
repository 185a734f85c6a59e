//! Lists of our pull requests: how many calls they take, and that nothing is missed.

use super::*;

/// The part of a request that tells pages of lists apart.
fn pages(client: &Client) -> Vec<String> {
    let asked = client.asked();
    asked.iter().map(|what| what.split_once('?').unwrap().1.replace("per_page=50&", "")).collect()
}

fn queries(kind: HostKind) -> [&'static str; 2] {
    match kind {
        HostKind::Gitea | HostKind::Github => ["state=all&sort=updated&direction=desc&page=", "state=open&page="],
        HostKind::Gitlab => {
            ["state=all&order_by=updated_at&sort=desc&author_id=42&page=", "state=opened&author_id=42&page="]
        }
    }
}

/// A host with so many open pull requests, whose pages are so long, and which was looked at.
async fn looked_at(kind: HostKind, count: u64, page: usize) -> Client {
    let mut client = Client::new(kind).await;
    client.server.state().page = Some(page);
    for n in 1..=count {
        client.server.open(USER, &format!("b{n}"), "main", "");
    }
    assert_eq!(numbers(&client.host.open().await.unwrap()), (1..=count).rev().collect::<Vec<_>>());
    client
}

#[tokio::test]
async fn a_list_is_read_to_its_end_once_and_costs_nothing_while_it_is_the_same() {
    for kind in KINDS {
        let mut client = looked_at(kind, 3, 2).await;
        // The next page is asked of the address that we know, not of the one that the answer names.
        let [changes, open] = queries(kind);
        let all = [format!("{changes}1"), format!("{open}1"), format!("{open}2"), format!("{changes}1")];
        assert_eq!(pages(&client), all);
        assert_eq!(client.counted(), [CallOutcome::Done, CallOutcome::Done, CallOutcome::Done, CallOutcome::Unchanged]);
        let spent = client.server.state().spent;
        assert_eq!(numbers(&client.host.open().await.unwrap()), [3, 2, 1]);
        assert_eq!((client.counted(), client.server.state().spent), (vec![CallOutcome::Unchanged], spent));
        client.server.change(1, json!({"state": "closed"}));
        assert_eq!(numbers(&client.host.open().await.unwrap()), [3, 2]);
    }
}

#[tokio::test]
async fn a_thousand_open_ones_cost_one_call_for_each_look() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut client = looked_at(kind, 1_000, 100).await;
        assert_eq!(client.asked().len(), 12);
        // However far back in the list it was, what changes is told first.
        for (number, fields) in [
            (7, json!({"state": "closed"})),
            (500, json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"})),
            (900, json!({"title": "mine"})),
            (7, json!({"state": "open"})),
        ] {
            client.server.change(number, fields);
            client.host.open().await.unwrap();
            client.host.open().await.unwrap();
            assert_eq!(client.asked().len(), 2);
        }
        let open = client.host.open().await.unwrap();
        assert_eq!((open.len(), open.iter().filter(|found| found.text.title == "mine").count()), (999, 1));
        // What was seen to be merged is not looked for.
        client.asked();
        let merged = client.host.closed("b500", |_| true).await.unwrap();
        assert_eq!((numbers(&merged), merged[0].state), (vec![500], PullState::Merged));
        assert_eq!(client.asked(), [""; 0]);
    }
}

#[tokio::test]
async fn changes_are_read_back_to_what_is_known() {
    for kind in KINDS {
        let mut client = looked_at(kind, 9, 2).await;
        client.asked();
        for number in 1..=5 {
            client.server.change(number, json!({"state": "closed"}));
        }
        // A part that is missing is no end: what was on the first page is not known by that.
        let [changes, _] = queries(kind);
        client.fails("page=3", 503, &[], "");
        assert!(matches!(client.host.open().await, Err(HostError::Away { .. })));
        client.server.state().fault = None;
        client.asked();
        assert_eq!(numbers(&client.host.open().await.unwrap()), [9, 8, 7, 6]);
        // What changed in the very second that is known is read too.
        assert_eq!(pages(&client), [1, 2, 3, 4].map(|page| format!("{changes}{page}")));
    }
}

#[tokio::test]
async fn what_closes_while_pages_are_read_hides_no_other() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        client.server.state().page = Some(2);
        for n in 1..=5 {
            client.server.open(USER, &format!("b{n}"), "main", "");
        }
        // The newest is closed once the first page was read, so that the third moves to it.
        let first = queries(kind)[1].split('&').next().unwrap();
        client.server.state().turn = Some((first, 5));
        let open = numbers(&client.host.open().await.unwrap());
        assert_eq!(open, [4, 2, 1], "3 is missed for once");
        assert_eq!(numbers(&client.host.open().await.unwrap()), [4, 3, 2, 1]);
        client.asked();
        assert_eq!((client.host.open().await.unwrap().len(), client.asked().len()), (4, 1));
    }
}

#[tokio::test]
async fn all_are_read_anew_after_ten_minutes() {
    for kind in KINDS {
        let mut client = looked_at(kind, 3, 2).await;
        client.asked();
        client.host.now = Box::new(|| time("12:09:59"));
        client.host.open().await.unwrap();
        assert_eq!(client.asked().len(), 1);
        client.host.now = Box::new(|| time("12:10:00"));
        client.host.open().await.unwrap();
        assert_eq!(client.asked().len(), 4);
    }
}

#[tokio::test]
async fn of_an_account_that_is_gone_a_list_is_read_too() {
    let mut client = Client::new(HostKind::Gitea).await;
    for user in [json!({"id": -1, "login": "Ghost"}), Value::Null] {
        client.server.open(USER, "theirs", "main", "");
        client.server.state().pulls.last_mut().unwrap()["user"] = user;
    }
    client.server.open(USER, "ours", "main", "");
    let open = client.host.open().await.unwrap();
    assert_eq!(
        open.iter().map(|found| (found.number, found.author)).collect::<Vec<_>>(),
        [(3, Some(USER)), (2, None), (1, None)]
    );
}

#[tokio::test]
async fn what_others_write_in_theirs_is_not_kept() {
    for kind in [HostKind::Gitea, HostKind::Github] {
        let mut client = Client::new(kind).await;
        client.server.open(7, "theirs", "main", "a long text");
        client.server.open(USER, "ours", "main", "ours");
        client.host.open().await.unwrap();
        client.server.change(1, json!({"title": "another one"}));
        let open = client.host.open().await.unwrap();
        let said: Vec<_> = open.iter().map(|found| (found.text.title.as_str(), found.text.body.as_str())).collect();
        assert_eq!(said, [("a title", "ours"), ("", "")], "{kind:?}");
        let theirs = client.host.others("theirs", "main").await.unwrap();
        assert_eq!(numbers(&theirs), [1], "{kind:?}");
        for (branch, base) in [("ours", "main"), ("theirs", "release")] {
            assert_eq!(client.host.others(branch, base).await.unwrap(), [], "{kind:?}");
        }
    }
}
