//! Servers that are away, slow, hostile or misconfigured, and what is said about them.

use super::{Bed, branch, config, draft, id, open, write};
use crate::support::git_server::{Fault, GitServer};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::git::{Below, GitError, Store, Timeouts};

#[tokio::test]
async fn away_and_back() {
    let bed = Bed::new().await;
    let tips = bed.sync().await;
    let first = bed.store.commit(draft(None, &[("a", write("1"))])).await.unwrap();
    let moved = id(bed.origin.commit("main", &[("b", Some(b"2"))], "moved"));
    let wants: BTreeMap<_, _> = [(branch("main"), moved.clone())].into();
    bed.server.stop().await;
    let check = async |what: &str| {
        for error in [
            bed.store.ls_refs(&["refs/heads/"]).await.map(drop).unwrap_err(),
            bed.store.fetch(&wants).await.unwrap_err(),
            bed.store.push(&branch("state"), None, &first, None).await.map(drop).unwrap_err(),
        ] {
            assert!(error.is_retriable(), "{what}: {error:?}");
        }
    };
    check("connection refused").await;
    // What was fetched last still serves.
    assert_eq!(bed.store.cached_tips().await.unwrap(), tips);
    bed.store.files(&tips[&branch("main")], None).await.unwrap();
    bed.server.restart().await;
    for status in [429, 500, 502, 504] {
        bed.server.fault("", Fault::Status(status));
        check("a status").await;
        bed.server.heal();
    }
    bed.server.fault("", Fault::Unavailable);
    check("503").await;
    bed.server.heal();
    bed.server.fault("", Fault::Cut);
    check("cut off").await;
    bed.server.heal();
    assert_eq!(bed.sync().await[&branch("main")], moved);
}

#[tokio::test]
async fn attack_25_a_slow_server_is_given_up() {
    let bed = Bed::new().await;
    let short = Duration::from_millis(200);
    bed.server.fault("", Fault::Slow);
    // The other limits are a hundred times as long, and say so: what is told is the limit that ended it.
    for (name, says, change) in [
        ("no byte", "timed out", (|timeouts, short| timeouts.read = short) as fn(&mut Timeouts, Duration)),
        ("no end", "no complete answer within 0.2 s", |timeouts, short| timeouts.total = short),
    ] {
        let mut config = config(&bed.server.url("fleet"));
        change(&mut config.timeouts, short);
        let store = open(&bed.server.scratch().join(name), config);
        let said = complaints(&store).await;
        let ended = |error: &GitError| error.is_retriable() && error.to_string().contains(says);
        assert!(said.iter().all(ended), "{name}: {said:?}");
    }
    bed.server.heal();
    bed.sync().await;
}

#[tokio::test]
async fn attack_115_where_a_past_takes_too_long_the_tip_comes_alone() {
    let bed = Bed::with(|config| config.timeouts.read = Duration::from_millis(300)).await;
    bed.sync().await;
    bed.origin.commit("main", &[("b", Some(b"1"))], "one");
    let tip = id(bed.origin.commit("main", &[("b", Some(b"2"))], "two"));
    let other = id(bed.origin.commit("other", &[("b", Some(b"2"))], "other"));
    bed.server.fault("", Fault::SlowUnlessShallow);
    bed.store.fetch(&[(branch("main"), tip.clone())].into()).await.unwrap();
    assert_eq!(bed.store.files(&tip, None).await.unwrap().len(), 2);
    let error = bed.store.fetch(&[(branch("other"), other)].into()).await.unwrap_err();
    assert!(error.is_retriable(), "what else there is comes whole: {error}");
}

#[tokio::test]
async fn a_stale_answer_is_only_an_older_tip() {
    let bed = Bed::new().await;
    let old = bed.sync().await;
    bed.server.freeze();
    let moved = id(bed.origin.commit("main", &[("b", Some(b"2"))], "moved"));
    bed.server.fault("", Fault::Stale);
    assert_eq!(bed.sync().await, old);
    bed.server.heal();
    assert_eq!(bed.sync().await[&branch("main")], moved);
}

#[tokio::test]
async fn attack_14_a_damaged_pack_leaves_the_cache_as_it_was() {
    let bed = Bed::new().await;
    let old = bed.sync().await;
    let moved = id(bed.origin.commit("main", &[("b", Some(b"2"))], "moved"));
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    pack.extend_from_slice(&[0x95; 60]);
    let mut page = b"0008NAK\n".to_vec();
    page.extend_from_slice(format!("{:04x}\x01", pack.len() + 5).as_bytes());
    page.extend_from_slice(&pack);
    page.extend_from_slice(b"0000");
    bed.server.fault("POST /fleet.git/git-upload-pack", Fault::Page("application/x-git-upload-pack-result", page));
    let wants = [(branch("main"), moved)].into();
    let error = bed.store.fetch(&wants).await.unwrap_err();
    assert!(matches!(error, GitError::Corrupt { .. } | GitError::Protocol { .. }), "{error:?}");
    bed.server.heal();
    assert_eq!(bed.store.cached_tips().await.unwrap(), old);
    bed.store.files(&old[&branch("main")], None).await.unwrap();
    bed.store.fetch(&wants).await.unwrap();
}

#[tokio::test]
async fn what_is_no_git_server_is_named() {
    let bed = Bed::new().await;
    bed.server.fault("", Fault::Page("text/html", b"<h1>sign in</h1>".to_vec()));
    let error = bed.store.ls_refs(&["refs/heads/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Protocol { .. }) && error.to_string().contains("text/html"), "{error}");
    bed.server.heal();
    let error = "zzzz not a packet";
    bed.server.fault("", Fault::Page("application/x-git-upload-pack-advertisement", error.into()));
    let error = bed.store.ls_refs(&["refs/heads/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Protocol { .. }), "{error:?}");
    bed.server.heal();
    let absent = open(&bed.server.scratch().join("cache2"), config(&bed.server.url("absent")));
    let error = absent.ls_refs(&["refs/heads/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)) && error.to_string().contains("absent.git"), "{error:?}");
    let error = absent.fetch(&[(branch("main"), id("1".repeat(40)))].into()).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error:?}");
}

#[tokio::test]
async fn attack_13_24_long_answers_stop_at_their_limits() {
    let bed = Bed::with(|config| config.limits.refs = 5).await;
    for n in 0..10 {
        bed.origin.git(&["update-ref", &format!("refs/heads/b/{n}"), "main"]);
    }
    let error = bed.store.ls_refs(&["refs/heads/b/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Limit { .. }), "{error}");
    assert_eq!(bed.store.ls_refs(&["refs/heads/main"]).await.unwrap().len(), 1);
    let looked_up = bed.store.look_up(&["refs/heads/main"], "refs/heads/b/").await.unwrap();
    assert_eq!((looked_up.found.len(), looked_up.below), (1, Below::TooMany), "whole names are found all the same");
    let looked_up = bed.store.look_up(&["refs/heads/main"], "refs/heads/c/").await.unwrap();
    assert_eq!((looked_up.found.len(), looked_up.below), (1, Below::All));

    let endless = b"00401111111111111111111111111111111111111111 refs/heads/aaaaaaa\n".repeat(2_000);
    bed.server.fault("POST", Fault::Page("application/x-git-upload-pack-result", endless));
    let mut limited = config(&bed.server.url("fleet"));
    limited.limits.advertisement_bytes = 1_000;
    let limited = open(&bed.server.scratch().join("cache2"), limited);
    let error = limited.ls_refs(&["refs/heads/main"]).await.unwrap_err();
    assert!(matches!(error, GitError::Limit { .. }), "{error}");

    let bed = Bed::with(|config| config.limits.fetch_bytes = 2_000).await;
    // Not compressible, and the same in each run.
    let noise: Vec<u8> = (0_u32..20_000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    bed.origin.commit("main", &[("noise", Some(&noise))], "noise");
    let tips = bed.store.ls_refs(&["refs/heads/"]).await.unwrap();
    let error = bed.store.fetch(&tips).await.unwrap_err();
    assert!(matches!(error, GitError::Limit { .. }), "{error:?}");
}

#[tokio::test]
async fn attack_13_a_pack_that_unpacks_to_a_terabyte_is_stopped() {
    let bed = Bed::new().await;
    let tips = bed.store.ls_refs(&["refs/heads/"]).await.unwrap();
    // One object that says so: its type and four bits of its size, then seven bits at a time.
    let pack = b"PACK\0\0\0\x02\0\0\0\x01\xb0\x80\x80\x80\x80\x80\x01";
    let packet = format!("{:04x}\x01", pack.len() + 5);
    let page = [b"0008NAK\n", packet.as_bytes(), pack, b"0000"].concat();
    bed.server.fault("POST", Fault::Page("application/x-git-upload-pack-result", page));
    let error = bed.store.fetch(&tips).await.unwrap_err();
    assert!(matches!(error, GitError::Limit { .. }), "{error:?}");
    bed.server.heal();
    bed.store.fetch(&tips).await.unwrap();
}

#[tokio::test]
async fn attack_17_hostile_names_of_branches_are_not_ours() {
    let bed = Bed::new().await;
    let tip = bed.origin.tip("main").unwrap();
    let line = |name: &str| format!("{:04x}{tip} {name}\n", name.len() + 46);
    let names = ["refs/heads/../../config", "refs/heads/-option", "refs/heads/a\u{7}b", "refs/heads/main"];
    let page = names.map(line).concat() + "0000";
    bed.store.ls_refs(&["refs/heads/"]).await.unwrap();
    bed.server.fault("POST", Fault::Page("application/x-git-upload-pack-result", page.into()));
    assert_eq!(bed.store.ls_refs(&["refs/heads/"]).await.unwrap(), [(branch("main"), id(tip))].into());
}

/// Everything that each operation says when it fails.
async fn complaints(store: &Store) -> Vec<GitError> {
    let first = store.commit(draft(None, &[("a", write("1"))])).await.unwrap();
    vec![
        store.ls_refs(&["refs/heads/"]).await.map(drop).unwrap_err(),
        store.fetch(&[(branch("main"), id("1".repeat(40)))].into()).await.unwrap_err(),
        store.push(&branch("state"), None, &first, None).await.map(drop).unwrap_err(),
    ]
}

#[tokio::test]
async fn credentials_are_sent_read_anew_and_never_shown() {
    const CANARY: &str = "canary-7f3a";
    let bed = Bed::new().await;
    let file = bed.server.scratch().join("credentials");
    bed.server.require("ana", "right");
    let mut config = config(&bed.server.url("fleet"));
    for error in complaints(&bed.store).await {
        assert!(
            matches!(&error, GitError::Denied { said, hint, .. } if said == "401" && hint.contains("no credentials")),
            "{error}"
        );
    }
    config.credentials_file = Some(file.clone());
    let store = open(&bed.server.scratch().join("cache2"), config);
    let mut said = complaints(&store).await;
    assert!(said.iter().all(|error| matches!(error, GitError::Config(_))), "{said:?}");
    let address = bed.server.url("fleet");
    for content in [format!("ana:{CANARY}"), CANARY.to_owned(), address.replace("://", &format!("://ana:{CANARY}@"))] {
        std::fs::write(&file, content).unwrap();
        let denied = complaints(&store).await;
        assert!(denied.iter().all(|error| matches!(error, GitError::Denied { .. })), "{denied:?}");
        said.extend(denied);
        for fault in [
            Fault::Cut,
            Fault::Unavailable,
            Fault::Status(418),
            Fault::Redirect(format!("http://evil.invalid/?token={CANARY}")),
            Fault::Page("text/html", Vec::new()),
        ] {
            bed.server.fault("", fault);
            said.extend(complaints(&store).await);
            bed.server.heal();
        }
    }
    for error in said {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
    }
    // Rotated while it runs.
    std::fs::write(&file, "ana:right\n").unwrap();
    let tips = store.ls_refs(&["refs/heads/"]).await.unwrap();
    store.fetch(&tips).await.unwrap();
}

#[tokio::test]
async fn attack_23_redirects_are_refused_and_carry_nothing_away() {
    let bed = Bed::new().await;
    let other = GitServer::start().await;
    other.init("fleet");
    let file = bed.server.scratch().join("credentials");
    std::fs::write(&file, "ana:secret").unwrap();
    let mut config = config(&bed.server.url("fleet"));
    config.credentials_file = Some(file);
    let store = open(&bed.server.scratch().join("cache2"), config);
    bed.server.fault("", Fault::Redirect(other.url("fleet")));
    for error in complaints(&store).await {
        assert!(
            matches!(error, GitError::Protocol { .. }) && error.to_string().contains("redirect to http://127"),
            "{error}"
        );
    }
    assert!(bed.server.authorizations().iter().any(Option::is_some));
    assert_eq!(other.authorizations(), []);
}

#[tokio::test]
async fn wrong_settings_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = config("https://git.example/fleet.git");
    config.ca_file = Some(scratch.path().join("ca.pem"));
    for content in [None, Some("no certificate")] {
        if let Some(content) = content {
            std::fs::write(scratch.path().join("ca.pem"), content).unwrap();
        }
        let error = Store::open(scratch.path(), config.clone()).err().unwrap();
        assert!(matches!(&error, GitError::Config(why) if why.contains("ca.pem")), "{error}");
    }
}
