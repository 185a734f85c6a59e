//! Who made a version, and what a merge changed.

use super::{Bed, branch, id, path};
use crate::support::origin::Origin;
use std::collections::BTreeMap;
use tidegate::git::{Changed, Made};
use tidegate::manifest::files::RepoPath;
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

fn names(made: Vec<Made>) -> Vec<String> {
    let mut names: Vec<String> = made.into_iter().flat_map(|made| made.by).map(|person| person.name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn attack_74_who_made_a_version_is_whoever_touched_its_files_since_the_one_before() {
    let bed = Bed::new().await;
    let stable = app(&bed.origin, "ana", "main", "1");
    let before = state(&bed.origin, &stable);
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
    assert!(bed.store.makers(&id(&tip), &before).await.is_err());
    bed.store.deepen(&branch("main")).await.unwrap();
    assert_eq!(names(bed.store.makers(&id(&tip), &before).await.unwrap()), ["ben", "eve"]);
    assert_eq!(bed.store.makers(&id(&stable), &before).await.unwrap(), []);
    // A version that main never had: whoever made anything of it.
    let other = before.keys().map(|path| (path.clone(), Some("1".repeat(40).parse().unwrap()))).collect();
    assert_eq!(names(bed.store.makers(&id(&tip), &other).await.unwrap()), ["ana", "ben", "eve"]);
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
