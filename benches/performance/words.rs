//! Git at the size of some years of decisions: whose they are, as a controller asks when it starts.

use crate::fleet::Fleet;
use crate::git::Repository;
use crate::measure::{Finding, Samples, timed};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::ids::CommitId;

const DECISIONS: usize = 10_000;
const ROLLOUTS: usize = 500;
const REPETITIONS: u64 = 7;
const BRANCH: &str = "tidegate/it/decisions";

/// As many commits, each with one word about one of the rollouts; the words.
fn decide(repository: &Repository) -> BTreeSet<RepoPath> {
    let (mut stream, mut words) = (String::new(), BTreeSet::new());
    for number in 0..DECISIONS {
        let rollout = number % ROLLOUTS;
        let path = format!("team-{}/app-{rollout}/{number}-tenth.yaml", rollout % 20);
        let at = 1_767_225_600 + number;
        writeln!(stream, "commit refs/heads/{BRANCH}\ncommitter Ana <ana@example.com> {at} +0000\ndata 1\nc").unwrap();
        writeln!(stream, "M 100644 inline {path}\ndata 8\napprove\n").unwrap();
        words.insert(path.parse().unwrap());
    }
    repository.origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    words
}

pub(crate) async fn measure() -> Vec<Finding> {
    let repository = Repository::of(&Fleet::new("n", 1, 1)).await;
    let words = decide(&repository);
    let store = repository.store("words");
    let tips = store.ls_refs(&[&format!("refs/heads/{BRANCH}")]).await.unwrap();
    store.fetch(&tips).await.unwrap();
    let tip: CommitId = repository.origin.tip(BRANCH).unwrap().parse().unwrap();
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..REPETITIONS {
        let (found, time) = timed(store.brought(&tip, words.clone())).await;
        assert_eq!(found.unwrap().len(), DECISIONS);
        ours.add(time);
        let log = ["log", "--first-parent", "-m", "--name-only", "--format=%H", tip.as_str()];
        let (listed, time) = timed(async { repository.origin.git_with(&log, b"") }).await;
        assert_eq!(listed.iter().filter(|byte| **byte == b'\n').count(), 3 * DECISIONS);
        theirs.add(time);
    }
    vec![Finding {
        what: "Who brought each of 10,000 decisions, as a start asks",
        ours,
        unit: "ms",
        reference: Some(("`git log --name-only`", theirs)),
        goal: 2.0,
        share: 0.5,
        why: "Both compare each commit with the one before it, directory by directory; libgit2 reads what it has read before anew, and \
              ours makes a person of each author",
    }]
}
