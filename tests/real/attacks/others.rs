//! What somebody else does who answers, leads or writes in our place: a host behind ssh (attack 94), a leader that was paused (97), a
//! record that is not ours (98).

use super::world::{DECISIONS, NAME, STATE, Story, run};
use super::{Row, Told, row};
use crate::support::origin::Origin;
use crate::support::sshd::Sshd;
use futures::FutureExt as _;

pub(super) const BEHIND_SSH: &[Row] = &[
    row(94, "a host whose key was never seen", "host key", unknown),
    row(94, "a host that shows another key", "shows another key than", other_key),
];

pub(super) const PAUSED: &[Row] =
    &[row(97, "a leader that is stopped until another one leads, and wakes", "stands by", paused)];

pub(super) const RECORDED: &[Row] = &[
    row(98, "a record that is not signed", "is not signed", unsigned),
    row(98, "a record with a key of somebody else", "a key that is not trusted", foreign),
];

pub(super) const EXTREME: &[Row] = &[
    row(102, "a record whose run began before all time", "is no time between", early),
    row(102, "a record whose next run has no number", "nextRun is 4294967295", numberless),
];

fn unknown(story: &mut Story) -> Told<'_> {
    async {
        std::fs::copy(story.path("no_hosts"), story.path("known_hosts")).unwrap();
        story.logged(&["Git is away", "host key"]).await
    }
    .boxed()
}

fn other_key(story: &mut Story) -> Told<'_> {
    async {
        std::fs::copy(story.path("other_hosts"), story.path("known_hosts")).unwrap();
        let told = story.logged(&["Git is away", "shows another key than", "known_hosts"]).await;
        // Nobody hears of a word that is given meanwhile.
        let (tip, looks) = (story.origin.tip(STATE), story.looks().await);
        let request = story.record().unwrap().run.unwrap().pulls.into_values().next().unwrap().branch;
        story.origin.merge(&request, DECISIONS);
        story.soon("more looks", async || (story.looks().await >= looks + 3).then_some(())).await;
        let ready = story.get("readyz").await;
        assert_eq!(ready, "ok\nGit is away\n");
        assert_eq!(story.origin.tip(STATE), tip);
        told
    }
    .boxed()
}

/// A repository behind ssh.
pub(super) async fn behind_ssh(sshd: &Sshd) -> Story {
    let mut story = Story::new("").await;
    let origin = Origin::init(&sshd.file("fleet.git"));
    origin.git(&["fetch", "--quiet", story.origin.path().to_str().unwrap(), "+refs/heads/*:refs/heads/*"]);
    for name in ["client", "known_hosts", "no_hosts", "other_hosts"] {
        std::fs::copy(sshd.file(name), story.path(name)).unwrap();
    }
    let [key, hosts] = ["client", "known_hosts"].map(|name| story.path(name).display().to_string());
    let url = sshd.url(origin.path());
    story.repository = format!("url: \"{url}\", poll: 1s, ssh: {{keyFile: {key}, knownHostsFile: {hosts}}}");
    story.origin = origin;
    story.starts = "ssh".to_owned();
    story.start("one").await;
    story.rest().await;
    story.release("owner", 2);
    story.until("a run", |record| record.run.is_some()).await;
    story.waits("Approval").await;
    // Who cannot be reached later is asked now.
    story.until("a request", |record| record.run.as_ref().is_some_and(|run| !run.pulls.is_empty())).await;
    story
}

/// Whoever runs it believes the host's key: the same process goes on, by the word that was given meanwhile.
pub(super) async fn end_behind_ssh(story: &mut Story, sshd: &Sshd) {
    let before = story.recorded();
    std::fs::copy(sshd.file("known_hosts"), story.path("known_hosts")).unwrap();
    story.entered(&before).await;
    story.rest().await;
    assert_eq!(story.api.reached(), ("web:2".to_owned(), 0));
}

fn paused(story: &mut Story) -> Told<'_> {
    async {
        story.signal("one", "-STOP").await;
        story.start("two").await;
        // Another leads once the Lease has run out; what main wants meanwhile is the version before.
        story.release("owner", 1);
        story.rest().await;
        story.mark();
        story.may_try = true;
        let before = story.log_of("one").len();
        story.signal("one", "-CONT").await;
        let told = story
            .soon("that it stands by", async || {
                story.log_of("one")[before..].lines().find(|line| line.contains("stands by")).map(str::to_owned)
            })
            .await;
        assert_eq!(story.api.reached(), ("web:1".to_owned(), 0));
        told
    }
    .boxed()
}

/// A version of which users reach a tenth, for as long as nobody says more.
pub(super) async fn exposed() -> Story {
    let mut story = Story::new("").await;
    let text = super::world::ROLLOUT
        .replace("before: {approval: pullRequest}, expose: {weight: 10}", "expose: {weight: 10}, soak: 1h");
    story.commit("owner", &[("shop/web.rollout.yaml", text)]);
    story.start("one").await;
    story.rest().await;
    story.release("owner", 2);
    let weighs = |story: &Story| story.api.reached().1 == 10;
    story.soon("a tenth", async || weighs(&story).then_some(())).await;
    story
        .until("a tenth that is seen", |record| {
            record.phase.position().is_some_and(|stop| stop.clock.exposed.is_some())
        })
        .await;
    story
}

/// A commit onto the state branch by which the record of `web` says `to` where it said `from`.
fn rewritten(story: &Story, from: &str, to: &str) -> String {
    let good = story.origin.tip(STATE).unwrap();
    let path = "rollouts/shop/web/state.yaml";
    let old = story.origin.git(&["show", &format!("{STATE}:{path}")]) + "\n";
    let new = old.replace(from, to);
    assert_ne!(new, old, "there is no {from:?}");
    story.origin.git(&["update-ref", "refs/heads/scratch", &good]);
    let held = story.origin.commit("scratch", &[(path, Some(new.as_bytes()))], "go on");
    story.origin.git(&["update-ref", "-d", "refs/heads/scratch"]);
    held
}

/// Somebody pushes a record by which the step was approved, signed with that key if one is named.
async fn forged(story: &mut Story, key: Option<&str>) -> String {
    let good = story.origin.tip(STATE).unwrap();
    let mut commit = rewritten(story, "\n  route: phases\n", "\n  route: phases\n  approved: [tenth]\n");
    if let Some(key) = key {
        let (key, tree) = (format!("user.signingKey={}", story.path(key).display()), format!("{commit}^{{tree}}"));
        let tree = story.origin.git(&["rev-parse", &tree]);
        let sign = ["-c", "gpg.format=ssh", "-c", &key, "commit-tree", "-S", "-p", &good, "-m", "go on", &tree];
        commit = story.origin.git(&sign);
    }
    story.origin.git(&["update-ref", &format!("refs/heads/{STATE}"), &commit]);
    assert_eq!(story.record().unwrap().run.unwrap().approved.len(), 1, "it can be read");
    let told = story.held("RecordUnreadable", &["ForeignState: ", &commit]).await;
    assert_eq!(story.origin.tip(STATE), Some(commit), "it is for people to decide");
    story.origin.git(&["update-ref", &format!("refs/heads/{STATE}"), &good]);
    told
}

fn unsigned(story: &mut Story) -> Told<'_> {
    forged(story, None).boxed()
}

fn foreign(story: &mut Story) -> Told<'_> {
    forged(story, Some("mallory")).boxed()
}

/// A signed record of a rollout that waits for a word.
pub(super) async fn recorded() -> Story {
    let mut story = Story::new("").await;
    for key in ["record", "mallory"] {
        let file = story.path(key).display().to_string();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file]).await;
    }
    story.more = format!("  signing: {{keyFile: {}}}\n", story.path("record").display());
    story.start("one").await;
    story.rest().await;
    story.release("owner", 2);
    story.asked().await;
    story.waits("Approval").await;
    story
}

/// With the record back that was signed, the word counts that is given.
pub(super) async fn end_recorded(story: &mut Story) {
    let pull = story.asked().await;
    let before = story.recorded();
    story.site.merge(NAME, &pull).await;
    story.entered(&before).await;
    story.rest().await;
}

/// Somebody who may push where the controller does lets a line of the record that begins like `key` say something else, until that is told
/// in these words.
async fn says(story: &Story, key: &str, extreme: &str, words: &str) -> String {
    let text = story.origin.git(&["show", &format!("{STATE}:rollouts/shop/web/state.yaml")]);
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    let (good, bad) = (format!("\n{line}\n"), format!("\n{key}{extreme}\n"));
    let push = |commit: &str| story.origin.git(&["update-ref", &format!("refs/heads/{STATE}"), commit]);
    push(&rewritten(story, &good, &bad));
    let told = story.held("RecordUnreadable", &[words]).await;
    push(&rewritten(story, &bad, &good));
    story.waits("Approval").await;
    told
}

fn early(story: &mut Story) -> Told<'_> {
    says(story, "  started: ", "\"-262143-01-01T00:00:00Z\"", "is no time between").boxed()
}

fn numberless(story: &mut Story) -> Told<'_> {
    says(story, "nextRun: ", "4294967295", "nextRun is 4294967295").boxed()
}
