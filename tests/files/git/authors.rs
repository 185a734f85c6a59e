//! Who made a version, and what a merge changed.

use super::{Bed, branch, id, path};
use crate::support::origin::Origin;
use std::collections::BTreeMap;
use tidegate::git::{Authorship, Changed, GitError};
use tidegate::manifest::files::{Had, RepoPath};
use tidegate::manifest::ids::BlobId;

const APP: &str = "teams/shop/app.yaml";
const CONFIG: &str = "teams/shop/config.yaml";

/// Commits the app as somebody; the commit.
fn app(origin: &Origin, who: &str, branch: &str, text: &str) -> String {
    origin.commit_as(&format!("{who} <{who}@example.org>"), branch, &[(APP, Some(text.as_bytes()))], "app")
}

/// What a commit has at both paths.
fn state(origin: &Origin, commit: &str) -> BTreeMap<RepoPath, Option<BlobId>> {
    let blob = |file: &str| {
        let found = origin.git(&["ls-tree", "--format=%(objectname)", commit, "--", file]);
        (path(file), found.parse().ok())
    };
    [APP, CONFIG].map(blob).into()
}

/// That a version had that.
fn had(state: BTreeMap<RepoPath, Option<BlobId>>) -> BTreeMap<RepoPath, Had> {
    state.into_iter().map(|(path, blob)| (path, blob.map_or(Had::Nothing, Had::Blob))).collect()
}

/// Merges two commits as somebody, so that both paths are as a third one has them; the merge.
fn joins(origin: &Origin, who: &str, branch: &str, parents: [&str; 2], as_in: &str) -> String {
    let (tree, [one, other]) = (origin.git(&["rev-parse", &format!("{as_in}^{{tree}}")]), parents);
    let person = format!("{who} <{who}@example.org> 1767300000 +0000");
    let text = format!("tree {tree}\nparent {one}\nparent {other}\nauthor {person}\ncommitter {person}\n\nmerge\n");
    let merge = origin.object("commit", text.as_bytes());
    origin.git(&["update-ref", &format!("refs/heads/{branch}"), &merge]);
    merge
}

fn names(made: Vec<Authorship>) -> Vec<String> {
    let mut names: Vec<String> = made.iter().flat_map(Authorship::makers).map(|person| person.name.clone()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn attack_74_whom_a_commit_names_as_its_co_authors_made_it_too() {
    let bed = Bed::new().await;
    let stable = app(&bed.origin, "ana", "main", "1");
    let before = had(state(&bed.origin, &stable));
    let (file, message) = ([(APP, Some(b"2".as_slice()))], "app\n\nCo-authored-by: eve <Eve@example.org>");
    let tip = bed.origin.commit_as("ben <ben@example.org>", "main", &file, message);
    bed.sync().await;
    bed.store.deepen(&branch("main")).await.unwrap();
    let made = bed.store.authors(&id(&tip), &[before]).await.unwrap();
    let with: Vec<&str> = made.iter().flat_map(|made| &made.with).map(|person| person.email.as_str()).collect();
    assert_eq!(with, ["eve@example.org"]);
    assert_eq!(names(made), ["ben", "eve"]);
}

#[tokio::test]
async fn attack_74_who_made_a_version_is_whoever_touched_its_files_since_the_one_before() {
    let bed = Bed::new().await;
    let stable = app(&bed.origin, "ana", "main", "1");
    let before = had(state(&bed.origin, &stable));
    app(&bed.origin, "ben", "main", "2");
    // What is not of the version counts for nobody; a branch that was merged counts for who wrote it.
    let base = bed.origin.commit("main", &[("README.md", Some(b"hello"))], "about");
    bed.origin.git(&["branch", "side", &base]);
    let config = ("eve <eve@example.org>", &[(CONFIG, Some(b"3".as_slice()))]);
    bed.origin.commit_as(config.0, "side", config.1, "config");
    bed.origin.commit("main", &[("README.md", Some(b"hello again"))], "about");
    let tip = bed.origin.merge("side", "main");
    bed.sync().await;
    // Main was fetched without its past.
    assert!(bed.store.authors(&id(&tip), std::slice::from_ref(&before)).await.is_err());
    bed.store.deepen(&branch("main")).await.unwrap();
    assert_eq!(names(bed.store.authors(&id(&tip), std::slice::from_ref(&before)).await.unwrap()), ["ben", "eve"]);
    assert_eq!(bed.store.authors(&id(&stable), std::slice::from_ref(&before)).await.unwrap(), []);
    // A version that main never had: whoever made anything of it.
    let other = before.keys().map(|path| (path.clone(), Had::Blob("1".repeat(40).parse().unwrap()))).collect();
    assert_eq!(names(bed.store.authors(&id(&tip), &[other]).await.unwrap()), ["ana", "ben", "eve"]);
}

#[tokio::test]
async fn attack_74_who_moved_a_rollout_hides_nobody_who_had_changed_it_before() {
    const MOVED: &str = "teams/moved/app.yaml";
    let bed = Bed::new().await;
    let stable = app(&bed.origin, "ana", "main", "1");
    app(&bed.origin, "ben", "main", "2");
    let moved: [(&str, Option<&[u8]>); 2] = [(APP, None), (MOVED, Some(b"2"))];
    let tip = bed.origin.commit_as("eve <eve@example.org>", "main", &moved, "moves");
    bed.sync().await;
    bed.store.deepen(&branch("main")).await.unwrap();
    let authors = async |before: &[(&str, Had)]| {
        let before = before.iter().map(|(file, had)| (path(file), had.clone())).collect();
        names(bed.store.authors(&id(&tip), &[before]).await.unwrap())
    };
    let as_in = Had::AsIn(id(&stable));
    assert_eq!(authors(&[(APP, as_in.clone()), (MOVED, Had::Nothing)]).await, ["ben", "eve"]);
    assert_eq!(authors(&[(MOVED, as_in)]).await, ["eve"], "alone it tells of the move only");
    // Main has no such commit any more: all who ever touched the file.
    let gone = Had::AsIn("1".repeat(40).parse().unwrap());
    assert_eq!(authors(&[(APP, gone), (MOVED, Had::Nothing)]).await, ["ana", "ben", "eve"]);
}

#[tokio::test]
async fn attack_74_who_made_parts_that_no_commit_had_together_is_told_of_each() {
    let bed = Bed::new().await;
    let [first, config] = ["1", "loose"].map(|text| text.as_bytes());
    let stable =
        bed.origin.commit_as("ana <ana@example.org>", "main", &[(APP, Some(first)), (CONFIG, Some(first))], "both");
    // What the app is now came with another config than the one before.
    let both = [(APP, Some(b"2".as_slice())), (CONFIG, Some(config))];
    let between = bed.origin.commit_as("eve <eve@example.org>", "main", &both, "both");
    let tip = app(&bed.origin, "ben", "main", "3");
    bed.sync().await;
    bed.store.deepen(&branch("main")).await.unwrap();
    let before =
        [(APP, &between), (CONFIG, &stable)].map(|(file, commit)| [(path(file), Had::AsIn(id(commit)))].into());
    assert_eq!(names(bed.store.authors(&id(&tip), &before).await.unwrap()), ["ben", "eve"]);
    let [before, _] = before;
    assert_eq!(names(bed.store.authors(&id(&tip), &[before]).await.unwrap()), ["ben"], "of the app alone");
}

#[tokio::test]
async fn attack_74_who_merges_an_old_version_and_takes_its_files_made_the_new_one() {
    let bed = Bed::new().await;
    let old = app(&bed.origin, "ana", "main", "1");
    let stable = app(&bed.origin, "ben", "main", "2");
    let before = had(state(&bed.origin, &stable));
    let main = app(&bed.origin, "cid", "main", "3");
    bed.sync().await;
    let one = joins(&bed.origin, "eve", "one", [&main, &old], &old);
    let two = joins(&bed.origin, "eve", "two", [&old, &main], &old);
    let strange = app(&bed.origin, "zoe", "strange", "4");
    let three = joins(&bed.origin, "eve", "three", [&main, &strange], &strange);
    bed.sync().await;
    // Where they have parted is not fetched yet.
    let cut = bed.store.authors(&id(&one), std::slice::from_ref(&before)).await;
    assert!(matches!(cut, Err(GitError::Missing(_))), "{cut:?}");
    bed.store.deepen(&branch("main")).await.unwrap();
    for tip in [one, two] {
        let made = bed.store.authors(&id(&tip), std::slice::from_ref(&before)).await.unwrap();
        let merge = made.iter().find(|made| made.commit == id(&tip)).unwrap();
        assert_eq!(merge.parents, 2);
        assert_eq!(names(made), ["ana", "cid", "eve"]);
    }
    let made = bed.store.authors(&id(&three), &[before]).await.unwrap();
    assert_eq!(names(made), ["cid", "eve", "zoe"], "they have no past in common");
}

#[tokio::test]
async fn attack_74_who_takes_a_change_back_and_merges_that_hides_neither_themselves_nor_others() {
    let bed = Bed::new().await;
    let old = app(&bed.origin, "ana", "main", "1");
    let stable = app(&bed.origin, "ben", "main", "2");
    let before = had(state(&bed.origin, &stable));
    bed.origin.git(&["branch", "side", &stable]);
    let back = app(&bed.origin, "eve", "side", "1");
    // Neither merge drops anything of its own: both sides have the same, or one has what it had where they parted.
    let same = joins(&bed.origin, "mia", "same", [&old, &back], &old);
    let forward = joins(&bed.origin, "mia", "forward", [&stable, &same], &old);
    bed.sync().await;
    bed.store.deepen(&branch("main")).await.unwrap();
    for tip in [same, forward] {
        assert_eq!(names(bed.store.authors(&id(&tip), std::slice::from_ref(&before)).await.unwrap()), ["ana", "eve"]);
    }
}

#[tokio::test]
async fn attack_74_who_merges_what_others_changed_made_nothing() {
    let bed = Bed::new().await;
    let first = app(&bed.origin, "ana", "main", "1");
    let stable = app(&bed.origin, "ben", "main", "2");
    let about: [(&str, Option<&[u8]>); 1] = [("README.md", Some(b"hello"))];
    // A branch from before the stable version changes nothing of it, and follows main.
    bed.origin.git(&["branch", "long", &first]);
    let long = bed.origin.commit_as("kim <kim@example.org>", "long", &about, "about");
    let followed = joins(&bed.origin, "kim", "long", [&long, &stable], &stable);
    // One from the stable version changes it, while main goes on elsewhere.
    bed.origin.git(&["branch", "feature", &stable]);
    let feature = app(&bed.origin, "fay", "feature", "3");
    let main = bed.origin.commit_as("lou <lou@example.org>", "main", &about, "about");
    let merged = joins(&bed.origin, "mia", "main", [&main, &feature], &feature);
    // That one follows main again, and is merged.
    let again = joins(&bed.origin, "kim", "long", [&followed, &merged], &merged);
    let last = joins(&bed.origin, "mia", "main", [&merged, &again], &again);
    bed.sync().await;
    bed.store.deepen(&branch("main")).await.unwrap();
    let authors = async |tip: &str, before: &str| {
        let before = had(state(&bed.origin, before));
        names(bed.store.authors(&id(tip), &[before]).await.unwrap())
    };
    assert_eq!(authors(&merged, &stable).await, ["fay"]);
    assert_eq!(authors(&again, &stable).await, ["fay"]);
    assert_eq!(authors(&last, &stable).await, ["fay"]);
    assert_eq!(authors(&followed, &first).await, ["ben"]);
    assert_eq!(authors(&last, &first).await, ["ben", "fay"]);
}

#[tokio::test]
async fn what_a_commit_changed_is_told_against_its_first_parent() {
    let bed = Bed::new().await;
    let base = app(&bed.origin, "ana", "decisions", "1");
    bed.origin.git(&["branch", "ask", &base]);
    let head = bed.origin.commit("ask", &[(CONFIG, Some(b"2"))], "asks");
    bed.origin.commit("decisions", &[("other", Some(b"3"))], "other");
    let tip = bed.origin.merge("ask", "decisions");
    let gone = bed.origin.commit("decisions", &[("other", None)], "gone");
    bed.sync().await;
    let blob = state(&bed.origin, &tip)[&path(CONFIG)].clone();
    let merged = Changed { merged: Some(id(&head)), files: [(path(CONFIG), blob)].into() };
    assert_eq!(bed.store.changed(&id(&tip)).await.unwrap(), merged);
    let removed = Changed { merged: None, files: [(path("other"), None)].into() };
    assert_eq!(bed.store.changed(&id(&gone)).await.unwrap(), removed);
}
