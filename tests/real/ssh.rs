//! The room `git` behind SSH: a real sshd and a real OpenSSH.

use crate::support::cluster::eventually;
use crate::support::origin::Origin;
use crate::support::port::Port;
use crate::support::sshd::Sshd;
use crate::support::store::{branch, draft, id, open, path, sync, write};
use std::path::Path;
use std::time::Duration;
use tidegate::git::{GitError, Pushed, RemoteConfig, SshIdentity, Store};
use tokio::process::Command;

fn config(sshd: &Sshd, origin: &Origin, key: &str, hosts: &str) -> RemoteConfig {
    let mut config = RemoteConfig::new(sshd.url(origin.path()).parse().unwrap());
    config.ssh = Some(SshIdentity { key_file: sshd.file(key), known_hosts_file: sshd.file(hosts) });
    config
}

async fn look(store: &Store) -> GitError {
    store.ls_refs(&["refs/heads/"]).await.unwrap_err()
}

/// Whatever versions of the protocol the server lets us choose.
#[tokio::test]
async fn branches_are_looked_up_fetched_and_deepened() {
    for sshd in [Sshd::start().await, Sshd::with("").await] {
        let origin = sshd.origin();
        let mut config = config(&sshd, &origin, "client", "known_hosts");
        let main = branch("main");
        config.shallow = Some(main.clone());
        let store = open(&sshd.file("cache"), config);
        assert_eq!(store.ls_refs(&["refs/heads/tidegate/"]).await.unwrap().len(), 0);
        let tips = sync(&store).await;
        let tip = id(origin.tip("main").unwrap());
        assert_eq!(tips.get(&main), Some(&tip));
        let file = store.file(&tip, &path("teams/shop/rollout.yaml")).await.unwrap();
        assert_eq!(file.as_deref(), Some(&b"a: 2\n"[..]));
        assert_eq!(store.history(&tip, 10).await.unwrap().len(), 1, "main comes without its past at first");
        store.deepen(&main).await.unwrap();
        assert_eq!(store.history(&tip, 10).await.unwrap().len(), 2);
        let moved = id(origin.commit("main", &[("x", Some(b"y"))], "third"));
        assert_eq!(sync(&store).await.get(&main), Some(&moved));
    }
}

#[tokio::test]
async fn a_push_moves_a_branch_from_exactly_the_tip_that_is_expected() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let store = open(&sshd.file("cache"), config(&sshd, &origin, "client", "known_hosts"));
    let (main, state) = (branch("main"), branch("tidegate/prod/state"));
    let tip = sync(&store).await.remove(&main).unwrap();
    let first = store.commit(draft(None, &[("README.md", write("1"))])).await.unwrap();
    // The server may finish what it does once it has answered.
    origin.hook("post-receive", Some("#!/bin/sh\nsleep 0.5\ntouch finished\n"));
    let pushed = store.push(&state, None, &first, Some((&main, &tip))).await.unwrap();
    assert_eq!(pushed, Pushed::Done { others: [(main.clone(), tip.clone())].into() });
    assert!(origin.path().join("finished").exists(), "the hook was cut off");
    origin.hook("post-receive", None);
    assert_eq!(origin.tip(state.short()), Some(first.to_string()));

    let second = store.commit(draft(Some(&first), &[("README.md", write("2"))])).await.unwrap();
    assert_eq!(store.push(&state, None, &second, None).await.unwrap(), Pushed::Raced { found: Some(first.clone()) });
    origin.hook("update", Some("#!/bin/sh\necho no way >&2\nexit 1\n"));
    let refused = store.push(&state, Some(&first), &second, None).await.unwrap();
    assert!(matches!(&refused, Pushed::Rejected { why } if why.contains("no way")), "{refused:?}");
    origin.hook("update", None);
    let moved = id(origin.commit("main", &[("x", Some(b"y"))], "third"));
    let stale = store.push(&state, Some(&first), &second, Some((&main, &tip))).await.unwrap();
    assert_eq!(stale, Pushed::SourceMoved { found: Some(moved) });
    assert_eq!(origin.tip(state.short()), Some(first.to_string()));
    let done = store.push(&state, Some(&first), &second, None).await.unwrap();
    assert!(matches!(done, Pushed::Done { .. }), "{done:?}");
    let done = store.delete_branch(&state, &second).await.unwrap();
    assert!(matches!(done, Pushed::Done { .. }), "{done:?}");
    assert_eq!(origin.tip(state.short()), None);
}

#[tokio::test]
async fn attack_94_a_host_whose_key_is_unknown_or_another_gets_nothing() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    for (hosts, says) in [("other_hosts", "shows another key than "), ("no_hosts", "has no key for [127.0.0.1]:")] {
        let before = std::fs::read(sshd.file(hosts)).unwrap();
        let store = open(&sshd.file("cache"), config(&sshd, &origin, "client", hosts));
        let first = store.commit(draft(None, &[("a", write("1"))])).await.unwrap();
        for error in [look(&store).await, store.push(&branch("state"), None, &first, None).await.unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(error, GitError::HostKey { .. }) && !error.is_retriable(), "{error:?}");
            assert!(text.contains(says) && text.contains("nothing was sent") && text.contains(hosts), "{text}");
        }
        assert_eq!(std::fs::read(sshd.file(hosts)).unwrap(), before, "nothing is learned");
    }
    assert_eq!(origin.tip("state"), None);
    assert_eq!(sshd.said("Accepted publickey"), 0);
}

#[tokio::test]
async fn who_is_not_let_in_is_told_with_which_key() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let store = open(&sshd.file("cache"), config(&sshd, &origin, "stranger", "known_hosts"));
    let error = look(&store).await;
    let text = error.to_string();
    assert!(matches!(error, GitError::Denied { .. }), "{error:?}");
    assert!(text.contains("refuses access") && text.contains("Permission denied (publickey)"), "{text}");
    assert!(text.contains(sshd.file("stranger").to_str().unwrap()), "{text}");
    // A key that nobody can use without being asked.
    let mut locked = Command::new("ssh-keygen");
    locked.args(["-q", "-t", "ed25519", "-N", "passphrase", "-f"]).arg(sshd.file("locked"));
    assert!(locked.status().await.unwrap().success());
    let text = look(&open(&sshd.file("cache"), config(&sshd, &origin, "locked", "known_hosts"))).await.to_string();
    assert!(text.contains("refuses access") && text.contains(sshd.file("locked").to_str().unwrap()), "{text}");
    // A repository that is not there.
    let mut gone = config(&sshd, &origin, "client", "known_hosts");
    gone.url = sshd.url(&sshd.file("nowhere.git")).parse().unwrap();
    let gone = look(&open(&sshd.file("gone"), gone)).await;
    assert!(matches!(gone, GitError::Missing(_)), "{gone}");
}

/// How many processes of this machine were told of that file.
fn running(file: &Path) -> usize {
    let name = file.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let told = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    told.filter(|told| String::from_utf8_lossy(told).contains(name)).count()
}

#[tokio::test]
async fn attack_25_a_server_that_says_nothing_is_given_up() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = format!("ssh://git@{}/x.git", listener.local_addr().unwrap());
    let second = Duration::from_secs(1);
    for (name, says) in
        [("never connected", "Connection"), ("no byte", "nothing came for 1 s"), ("no end", "within 1 s")]
    {
        let mut config = config(&sshd, &origin, "silent", "known_hosts");
        match name {
            "never connected" => (config.url, config.timeouts.connect) = (dead.parse().unwrap(), second),
            "no byte" => config.timeouts.read = second,
            _ => config.timeouts.total = second,
        }
        let store = open(&sshd.file("cache"), config);
        let first = store.commit(draft(None, &[("a", write("1"))])).await.unwrap();
        let wants = [(branch("main"), id(origin.tip("main").unwrap()))].into();
        for error in [
            look(&store).await,
            store.fetch(&wants).await.unwrap_err(),
            store.push(&branch("state"), None, &first, None).await.unwrap_err(),
        ] {
            assert!(error.is_retriable() && error.to_string().contains(says), "{name}: {error}");
        }
    }
    let key = sshd.file("silent");
    eventually("no OpenSSH left behind", async || (running(&key) == 0).then_some(())).await;
}

#[tokio::test]
async fn attack_24_a_server_that_sends_without_end_is_cut_off() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let mut config = config(&sshd, &origin, "endless", "known_hosts");
    config.limits.advertisement_bytes = 1 << 14;
    let store = open(&sshd.file("cache"), config);
    let first = store.commit(draft(None, &[("a", write("1"))])).await.unwrap();
    let wants = [(branch("main"), id(origin.tip("main").unwrap()))].into();
    // What nobody asked for may be 64 times as much.
    for (error, most) in [
        (look(&store).await, "16384 bytes"),
        (store.fetch(&wants).await.unwrap_err(), "1048576 bytes"),
        (store.push(&branch("state"), None, &first, None).await.unwrap_err(), "1048576 bytes"),
    ] {
        assert!(matches!(&error, GitError::Limit { limit, .. } if limit == most), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_asked_again() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let mut config = config(&sshd, &origin, "client", "known_hosts");
    let port = Port::held();
    config.url = format!("ssh://git@{}/x.git", port.address).parse().unwrap();
    let error = look(&open(&sshd.file("cache"), config)).await;
    assert!(error.is_retriable() && error.to_string().contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn the_command_line_reads_behind_ssh() {
    let sshd = Sshd::start().await;
    let origin = sshd.origin();
    let mut program = Command::new(crate::support::PROGRAM);
    program.args(["status", "--instance=prod", "--repo", &sshd.url(origin.path()), "--ssh-key-file"]);
    program.arg(sshd.file("client")).arg("--known-hosts-file").arg(sshd.file("known_hosts"));
    let output = program.output().await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("has no branch tidegate/prod/state"), "{text}");
}
