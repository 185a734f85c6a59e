//! What people do to our pull requests who may not approve, or not like that (attacks 74 to 86): each word is void, and the step is asked
//! for anew. At last one is approved as it should be, so that a gate that is always closed would be seen.

use super::world::{DECISIONS, NAME, Story, is_exposed, policy};
use super::{Row, Told, row};
use crate::support::gitlab::faults::Wrong;
use crate::support::origin::Origin;
use futures::FutureExt as _;
use serde_json::Value;

/// Whose word the policy wants. `robot` is no person.
pub(super) const APPROVERS: &str = ", approvers: [reviewer, robot, Owner]";

pub(super) const ROWS: &[Row] = &[
    row(74, "who made the version approves it", "owner made commit ", own),
    row(74, "an approver pushes to our branch, and approves", "somebody else has written to its branch", pusher),
    row(75, "a push after the approval", "reviewer reviewed ", pushed),
    row(76, "another head in the place of the one that was approved", "reviewer reviewed ", replaced),
    row(77, "the base moves, and the merge brings more", "the merge changed notes.md", moved),
    row(78, "a bot approves that the policy lists", "robot is no person", machine),
    row(79, "who may only read approves", "reviewer may not write to the repository now", reader),
    row(
        80,
        "who approved may not write any more when the step is entered",
        "reviewer may not write to the repository now",
        gone,
    ),
    row(81, "the decision brings a policy along", "the merge changed tidegate.yaml", smuggled),
    row(
        81,
        "the version brings a policy by which its maker's friend approves it",
        "stranger is none of the policy's approvers",
        lenient,
    ),
    row(82, "a decision is pushed to its branch", "it was pushed to the branch, not merged by a pull request", direct),
    row(83, "a merge whose content was edited", "the merge changed shop/web/", edited),
    row(84, "a comment, a label and a title that say yes", "approved by 0, needed are 1", spoken),
    row(86, "the decision of a run before, for this one", "Approval: ", again),
];

/// What the host answers while it is asked who approved.
pub(super) const ANSWERED: &[Row] = &[
    row(93, "a token that the host refuses", "(401)", refused),
    row(85, "the host is in trouble", "the Git host is away: status 500", trouble),
    row(85, "\"not modified\" when nothing is known", "unexpected answer", unmodified),
    row(85, "an answer that ends in the middle", "unexpected answer", half),
    row(85, "a list without end", "pages", endless),
    row(85, "a limit of the host", "the Git host's limit", limited),
];

/// Approves the request that is open as somebody, and merges it as `reviewer`.
async fn approved_by(story: &mut Story, who: &str) -> String {
    let pull = story.asked().await;
    story.site.approve(who, NAME, &pull).await;
    story.site.merge(NAME, &pull).await;
    story.void().await
}

fn own(story: &mut Story) -> Told<'_> {
    approved_by(story, "owner").boxed()
}

fn pusher(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        let file = ("shop/web/more.yaml", "more: true\n");
        story.site.push("reviewer", NAME, pull["head"]["ref"].as_str().unwrap(), file);
        story.void().await
    }
    .boxed()
}

/// The decision that a request asks for, in other words than ours and than any before.
fn other(story: &Story, pull: &Value) -> (String, String) {
    let (run, head) = (story.record().unwrap().run.unwrap().id, pull["head"]["sha"].as_str().unwrap());
    let path = story.origin.git(&["diff", "--name-only", &format!("{DECISIONS}...{head}")]);
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: web, namespace: shop}}\n\
         spec: {{run: \"{run}\", action: approve, through: tenth, reason: in place of {head}}}\n"
    );
    (path, text)
}

/// Approves the request, lets somebody write to its branch before anybody looks, and merges it.
async fn written(story: &mut Story, write: impl Fn(&Story, &str, (&str, &str))) -> String {
    let pull = story.asked().await;
    let (path, text) = other(story, &pull);
    story.site.approve("reviewer", NAME, &pull).await;
    story.signal("one", "-STOP").await;
    write(story, pull["head"]["ref"].as_str().unwrap(), (&path, &text));
    let now = story.site.pull(NAME, &pull).await;
    assert_ne!(now["head"]["sha"], pull["head"]["sha"]);
    story.site.merge(NAME, &now).await;
    // As a host does that is told to delete what was merged: else what is on the branch is seen, and is void for that.
    story.site.delete_branch("reviewer", NAME, &story.origin, &pull).await;
    story.signal("one", "-CONT").await;
    story.void().await
}

fn pushed(story: &mut Story) -> Told<'_> {
    written(story, |story, branch, file| story.site.push("stranger", NAME, branch, file)).boxed()
}

fn replaced(story: &mut Story) -> Told<'_> {
    written(story, |story, branch, file| story.site.rewrite("stranger", NAME, branch, file)).boxed()
}

/// Approves the request, and merges it as a commit that has these files beside, or instead of, what was approved.
async fn merged_with(story: &mut Story, files: &[(&str, &str)]) -> String {
    let pull = story.asked().await;
    story.site.approve("reviewer", NAME, &pull).await;
    let head = pull["head"]["sha"].as_str().unwrap();
    let (origin, tip) = (&story.origin, story.origin.tip(DECISIONS).unwrap());
    origin.git(&["update-ref", "refs/heads/scratch", head]);
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
    let held = origin.commit("scratch", &files, "more");
    let tree = origin.git(&["merge-tree", "--write-tree", &tip, &held]);
    let merge = origin.git(&["commit-tree", "-p", &tip, "-p", head, "-m", "Merge", &tree]);
    origin.git(&["update-ref", "-d", "refs/heads/scratch"]);
    story.gitlab().merged_as("reviewer", NAME, pull["number"].as_u64().unwrap(), &merge);
    story.void().await
}

fn smuggled(story: &mut Story) -> Told<'_> {
    async { merged_with(story, &[("tidegate.yaml", &policy(", approvers: [stranger]"))]).await }.boxed()
}

fn edited(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        let (path, text) = other(story, &pull);
        merged_with(story, &[(&path, &text)]).await
    }
    .boxed()
}

/// The base goes back to before a file that the request's branch has from it: the same merge brings that one too.
fn moved(story: &mut Story) -> Told<'_> {
    async {
        let before = story.origin.tip(DECISIONS).unwrap();
        story.site.push("owner", NAME, DECISIONS, ("notes.md", "Call me first.\n"));
        approved_by(story, "owner").await;
        let pull = story.asked().await;
        story.site.approve("reviewer", NAME, &pull).await;
        story.signal("one", "-STOP").await;
        story.origin.git(&["update-ref", &format!("refs/heads/{DECISIONS}"), &before]);
        story.site.merge(NAME, &pull).await;
        story.signal("one", "-CONT").await;
        story.void().await
    }
    .boxed()
}

fn machine(story: &mut Story) -> Told<'_> {
    approved_by(story, "robot").boxed()
}

fn reader(story: &mut Story) -> Told<'_> {
    async {
        story.gitlab().level(NAME, "reviewer", 20);
        let told = approved_by(story, "reviewer").await;
        story.gitlab().level(NAME, "reviewer", 30);
        told
    }
    .boxed()
}

/// The brake of the installation: it holds all, or nothing.
fn brake(story: &Story, holds: bool) {
    let brake = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tidegate-brake", "namespace": "tidegate"},
        "data": {"all": "hold"},
    });
    story.api.stage.api.change(|world| {
        if holds {
            world.create("v1", "ConfigMap", "hand", brake).unwrap();
        } else {
            world.delete(&brake).unwrap();
        }
    });
}

fn gone(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        brake(story, true);
        story.waits("Brake").await;
        story.site.approve("reviewer", NAME, &pull).await;
        story.site.merge(NAME, &pull).await;
        story
            .until("a word that counts", |record| record.consumed.last().is_some_and(|word| word.void.is_none()))
            .await;
        story.gitlab().level(NAME, "reviewer", 20);
        // What was told counts for a minute: another process has to ask.
        story.restart().await;
        brake(story, false);
        story.mark();
        let told = story.void().await;
        story.gitlab().level(NAME, "reviewer", 30);
        told
    }
    .boxed()
}

fn lenient(story: &mut Story) -> Told<'_> {
    async {
        let before = story.record().unwrap().run.unwrap().id;
        let policy_of = |approvers: &str| ("tidegate.yaml", policy(approvers));
        story.commit("owner", &[policy_of(", approvers: [stranger]"), ("shop/web.yaml", super::world::manifests(3))]);
        story.until("another run", |record| record.run.as_ref().is_some_and(|run| run.id != before)).await;
        let told = approved_by(story, "stranger").await;
        story.commit("owner", &[policy_of(APPROVERS)]);
        told
    }
    .boxed()
}

fn direct(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        let (path, text) = other(story, &pull);
        story.site.push("reviewer", NAME, DECISIONS, (&path, &text));
        story.void().await
    }
    .boxed()
}

fn spoken(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        for word in ["/approve", "approved this merge request", "LGTM :+1:"] {
            story.gitlab().say("reviewer", NAME, pull["number"].as_u64().unwrap(), word);
        }
        story.site.rename("reviewer", NAME, &pull, "approved by reviewer").await;
        story.site.merge(NAME, &pull).await;
        story.void().await
    }
    .boxed()
}

/// A run is taken back, and another one has the same content: the word that was right for the first is put where the second looks.
fn again(story: &mut Story) -> Told<'_> {
    async {
        let pull = story.asked().await;
        let (path, text) = other(story, &pull);
        let first = story.record().unwrap().run.unwrap().id;
        story.release("owner", 1);
        story.rest().await;
        story.release("owner", 3);
        let pull = story.asked().await;
        story.mark();
        let run = story.record().unwrap().run.unwrap().id;
        let path = path.replace(first.as_str(), run.as_str());
        let (origin, tip) = (&story.origin, story.origin.tip(DECISIONS).unwrap());
        origin.git(&["update-ref", "refs/heads/replay", &tip]);
        let held = origin.commit("replay", &[(&path, Some(text.as_bytes()))], "again");
        let tree = origin.git(&["rev-parse", &format!("{held}^{{tree}}")]);
        let merge = origin.git(&["commit-tree", "-p", &tip, "-p", &held, "-m", "Merge", &tree]);
        let mut like = pull.clone();
        like["head"]["ref"] = "replay".into();
        let replay = story.site.open("stranger", NAME, &like, DECISIONS).await;
        story.site.approve("reviewer", NAME, &replay).await;
        story.gitlab().merged_as("reviewer", NAME, replay["number"].as_u64().unwrap(), &merge);
        let (tip, looks) = (story.origin.tip(DECISIONS).unwrap(), story.looks().await);
        story.soon("looks", async || (story.looks().await >= looks + 3).then_some(())).await;
        let cache = Origin::at(&story.path("one.cache").join("repository.git"));
        assert_eq!(cache.git(&["cat-file", "-t", &tip]), "commit", "it was read");
        assert!(!is_exposed(&story.record().unwrap()));
        // It is in the way of what was asked for, until it was asked for on top of it. No host merges that once it is gone.
        story.asked().await;
        story.origin.commit(DECISIONS, &[(&path, None)], "taken away");
        story.void().await;
        story.waits("Approval").await
    }
    .boxed()
}

fn refused(story: &mut Story) -> Told<'_> {
    async {
        let file = story.path("token");
        let token = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, "canary-93-5e1f0a7c\n").unwrap();
        let told = story.logged(&["the Git host refuses (401)"]).await;
        assert!(!story.log().contains("canary-93-5e1f0a7c"));
        std::fs::write(&file, token).unwrap();
        told
    }
    .boxed()
}

/// Approves the request that is open as it should be, and merges it, while the host answers like that.
async fn approved(story: &mut Story, fault: Option<(&'static str, Wrong)>) {
    let pull = story.asked().await;
    story.gitlab().fault(fault);
    story.site.approve("reviewer", NAME, &pull).await;
    story.site.merge(NAME, &pull).await;
}

/// Merges what is approved as it should be, unless that was done, while the host answers like that; what is known then of who approved.
async fn meanwhile(story: &mut Story, wrong: Wrong) -> String {
    let fault = Some(("/merge_requests", wrong));
    if story.gitlab().met() == 0 {
        approved(story, fault).await;
    }
    story.gitlab().fault(fault);
    let before = story.log().len();
    let told = story.soon("an answer that is none", async || {
        let log = story.log().split_off(before);
        // The first one may have been under way before.
        let mut answers = log.lines().filter(|line| line.contains("asked who approved"));
        (story.gitlab().met() > 0).then(|| answers.nth(1).map(str::to_owned)).flatten()
    });
    let told = told.await;
    let record = story.record().unwrap();
    assert!(!is_exposed(&record) && record.run.is_some_and(|run| !run.denied));
    format!("{} {told}", story.waits("ProofUnavailable").await)
}

fn trouble(story: &mut Story) -> Told<'_> {
    meanwhile(story, Wrong::Status(500)).boxed()
}

fn unmodified(story: &mut Story) -> Told<'_> {
    meanwhile(story, Wrong::Unmodified).boxed()
}

fn half(story: &mut Story) -> Told<'_> {
    meanwhile(story, Wrong::Half).boxed()
}

fn endless(story: &mut Story) -> Told<'_> {
    meanwhile(story, Wrong::Endless).boxed()
}

fn limited(story: &mut Story) -> Told<'_> {
    meanwhile(story, Wrong::Status(429)).boxed()
}

/// A world in which a word before the first step is asked for.
pub(super) async fn begin() -> Story {
    let mut story = Story::new(APPROVERS).await;
    story.start("one").await;
    story.rest().await;
    story.release("owner", 2);
    story.asked().await;
    story
}

/// What is approved as it should be counts, once the host tells all again.
pub(super) async fn end(story: &mut Story, version: u8) {
    // What was approved while the host answered with something else is not entered before it tells all.
    let before = story.recorded();
    if story.gitlab().met() == 0 {
        approved(story, None).await;
    }
    story.gitlab().fault(None);
    story.entered(&before).await;
    story.rest().await;
    assert_eq!(story.api.reached(), (format!("web:{version}"), 0));
}
