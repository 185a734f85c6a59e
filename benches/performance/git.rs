//! Git at the size of 10,000 rollouts: a look that finds nothing new, and a commit of 1,000 records.

use crate::fleet::{Fleet, now, records};
use crate::measure::{Finding, Samples, timed};
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use std::collections::BTreeMap;
use std::path::Path;
use tidegate::git::{CommitDraft, Edit, RemoteConfig, Store};
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::ids::{InstanceName, RolloutId, SetId};
use tidegate::manifest::installation::Caps;
use tidegate::plan::draft::RecordChange;
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::record::{RecordEntry, RecordWritten, Recorder, author};
use tidegate::reconcile::source::{Branches, GitView, Poll, Source};
use tidegate::record::store::{self, FileEdit};
use tidegate::report::metrics::Metrics;

const ROLLOUTS: usize = 10_000;
const RECORDS: usize = 1_000;
const REPETITIONS: u64 = 7;

/// A repository of that fleet on a server, and who reads it.
pub(crate) struct Repository {
    pub(crate) server: GitServer,
    pub(crate) origin: Origin,
    scratch: tempfile::TempDir,
}

pub(crate) fn instance() -> InstanceName {
    "it".parse().unwrap()
}

/// A fast-import stream of one commit.
pub(crate) fn stream(branch: &str, parent: Option<&str>, files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = format!("commit refs/heads/{branch}\ncommitter Ana <ana@example.com> 1767225600 +0000\ndata 1\nc\n")
        .into_bytes();
    if let Some(parent) = parent {
        out.extend(format!("from {parent}\n").bytes());
    }
    for (path, bytes) in files {
        out.extend(format!("M 100644 inline {path}\ndata {}\n", bytes.len()).bytes());
        out.extend(bytes);
        out.push(b'\n');
    }
    out
}

impl Repository {
    pub(crate) async fn of(fleet: &Fleet) -> Self {
        let server = GitServer::start().await;
        let origin = server.init("fleet");
        let files: Vec<_> = fleet.files().into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        origin.git_with(&["fast-import", "--quiet"], &stream("main", None, &files));
        Self { server, origin, scratch: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("fleet")
    }

    /// What one process keeps under that name.
    pub(crate) fn store(&self, name: &str) -> Store {
        let directory = self.scratch.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Store::open(&directory, RemoteConfig::new(self.url().parse().unwrap())).unwrap()
    }

    fn source(&self, name: &str) -> Source {
        let branches = Branches::new(&instance(), "main").unwrap();
        Source::new(self.store(name), branches, Caps::default(), Metrics::new(), Clock::default())
    }
}

async fn look(source: &mut Source) -> std::sync::Arc<GitView> {
    match source.look_up(None).await {
        Poll::Changed(view) => view,
        other @ (Poll::Unchanged | Poll::Unreachable(_) | Poll::WrongRepository(_)) => panic!("{other:?}"),
    }
}

/// Records every rollout as being at rest on what main wants.
pub(crate) async fn record_all(store: &Store, branches: &Branches, view: &GitView) {
    let changes = records(view, 1, usize::MAX);
    let sets: Vec<BTreeMap<SetId, _>> =
        changes.iter().map(|(rollout, _)| BTreeMap::from([(rollout.set.id.clone(), rollout.set.clone())])).collect();
    let entries: BTreeMap<RolloutId, RecordEntry<'_>> = changes
        .iter()
        .zip(&sets)
        .map(|((rollout, change), sets)| (rollout.id.clone(), RecordEntry { before: None, change, sets }))
        .collect();
    let (instance, metrics) = (instance(), Metrics::new());
    let waiting = BTreeMap::new();
    let recorder = Recorder { store, branches, instance: &instance, metrics: &metrics, waiting: &waiting, now: now() };
    match recorder.record(view, &entries).await {
        RecordWritten::Done { left_out, .. } if left_out.is_empty() => {}
        other @ (RecordWritten::Done { .. }
        | RecordWritten::Moved
        | RecordWritten::Refused(_)
        | RecordWritten::Away(_)) => panic!("{other:?}"),
    }
}

pub(crate) async fn measure() -> Vec<Finding> {
    let repository = Repository::of(&Fleet::new("n", 20, ROLLOUTS)).await;
    let mut source = repository.source("ours");
    let view = look(&mut source).await;
    record_all(source.store(), source.branches(), &view).await;
    let view = look(&mut source).await;
    assert_eq!(view.records.states().count(), ROLLOUTS);
    vec![polls(&repository, &mut source).await, commits(&repository, &mut source, &view).await]
}

/// A new version in main beside a million files that are nobody's: what they cost more.
pub(crate) async fn monorepo() -> Vec<Finding> {
    let fleet = Fleet::new("n", 4, 100);
    let (small, large) = (Repository::of(&fleet).await, Repository::of(&fleet).await);
    let mut beside = b"blob\nmark :1\ndata 2\nx\ncommit refs/heads/main\ncommitter Ana <ana@example.com> 1767225601 +0000\ndata 1\nc\n\
                       from refs/heads/main^0\n"
        .to_vec();
    for n in 0..1_000_000 {
        beside.extend(format!("M 100644 :1 beside/{}/{}/{n}.yaml\n", n / 10_000, n / 100 % 100).bytes());
    }
    large.origin.git_with(&["fast-import", "--quiet"], &beside);
    drop(beside);
    // What the first look takes for good is taken by now.
    look(&mut small.source("first")).await;
    let (mut looks, mut peaks) = (Vec::new(), Vec::new());
    for repository in [&small, &large] {
        let mut source = repository.source("ours");
        let before = forget_peak();
        look(&mut source).await;
        let mut took = Samples::default();
        for version in 0..REPETITIONS {
            let (path, text) = (fleet.manifests_path(0), fleet.manifests(0, 2 + u32::try_from(version).unwrap()));
            let main = repository.origin.tip("main").unwrap();
            let next = stream("main", Some(&main), &[(path, text.into_bytes())]);
            repository.origin.git_with(&["fast-import", "--quiet"], &next);
            let (view, time) = timed(look(&mut source)).await;
            assert_eq!(view.main.rollouts().count(), 100);
            took.add(time);
        }
        looks.push(took);
        peaks.push(resident("VmHWM") - before);
    }
    let (mut more, mut memory) = (Samples::default(), Samples::default());
    more.push(looks[1].median() - looks[0].median());
    memory.push(peaks[1] - peaks[0]);
    vec![
        Finding {
            what: "A new version in a main of 1,000,000 other files: more than without them",
            ours: more,
            unit: "ms",
            reference: None,
            goal: 500.0,
            share: 0.5,
            why: "The server walks all of main's directories to find what is new",
        },
        Finding {
            what: "Resident memory for main at its peak, beside 1,000,000 other files: more than without them",
            ours: memory,
            unit: "MiB",
            reference: None,
            goal: 40.0,
            share: 0.5,
            why: "What libgit2 maps of a pack is counted with it",
        },
    ]
}

/// What this process holds, in MiB, by that line of its status.
fn resident(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells what it holds");
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':')?.split_whitespace().next());
    let kib: f64 = found.and_then(|kib| kib.parse().ok()).expect("a number of KiB");
    kib / 1_024.0
}

/// Counts the peak anew; what is held now.
fn forget_peak() -> f64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux forgets the peak");
    resident("VmRSS")
}

/// A look at the remote that finds nothing new.
async fn polls(repository: &Repository, source: &mut Source) -> Finding {
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let url = repository.url();
    for _ in 0..3 * REPETITIONS {
        let (looked, time) = timed(source.look_up(None)).await;
        assert!(matches!(looked, Poll::Unchanged), "{looked:?}");
        ours.add(time);
        let mut git = tokio::process::Command::new("git");
        git.args(["ls-remote", &url]).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let (output, time) = timed(git.output()).await;
        assert!(output.unwrap().status.success());
        theirs.add(time);
    }
    Finding {
        what: "A poll that finds nothing new, 10,000 rollouts",
        ours,
        unit: "ms",
        reference: Some(("`git ls-remote`", theirs)),
        goal: 0.25,
        share: 0.5,
        why: "Both wait for the same server, which starts `git http-backend` for each request; what is ours of it is one \
              request over a connection that is open already",
    }
}

/// 1,000 records in one commit.
async fn commits(repository: &Repository, source: &mut Source, view: &GitView) -> Finding {
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let tip = view.tips.state.clone().unwrap();
    let other = repository.scratch.path().join("theirs.git");
    std::process::Command::new("git")
        .args(["clone", "--quiet", "--bare"])
        .args([repository.origin.path(), &other])
        .status()
        .map(|status| assert!(status.success()))
        .unwrap();
    for repetition in 0..REPETITIONS {
        let changes = records(view, repetition + 2, RECORDS);
        let (edits, time) = timed(async { edits(view, &changes) }).await;
        let draft = CommitDraft {
            parent: Some(tip.clone()),
            edits: edits.clone(),
            subject: "bench".to_owned(),
            body: String::new(),
            author: author(&instance()),
            time: now(),
        };
        let (made, more) = timed(source.store().commit(draft)).await;
        made.unwrap();
        ours.add(time + more);
        theirs.add(import(&other, tip.as_str(), &edits));
    }
    Finding {
        what: "1,000 records in one commit, among 10,000",
        ours,
        unit: "ms",
        reference: Some(("`git fast-import`", theirs)),
        goal: 0.5,
        share: 0.5,
        why: "Ours prints each record, and libgit2 hashes each object, looks whether it is there already, and compares all of them \
              for a small pack; `git fast-import` is given the texts, and writes them as they come",
    }
}

fn edits(
    view: &GitView,
    changes: &[(std::sync::Arc<tidegate::manifest::desired::Rollout>, RecordChange)],
) -> BTreeMap<RepoPath, Edit> {
    let mut all = BTreeMap::new();
    for (rollout, change) in changes {
        let RecordChange::Write { state, .. } = change else { continue };
        let before = view.records.get(&rollout.id).and_then(|record| record.state.as_ref().ok());
        for (path, edit) in store::edits(before, Some(state), &BTreeMap::new(), None).unwrap() {
            let FileEdit::Write(bytes) = edit else { panic!("{edit:?}") };
            all.insert(path, Edit::Write(bytes.as_slice().into()));
        }
    }
    assert_eq!(all.len(), RECORDS);
    all
}

/// The same commit, made by `git fast-import`.
fn import(repository: &Path, parent: &str, edits: &BTreeMap<RepoPath, Edit>) -> std::time::Duration {
    let text = |edit: &Edit| match edit {
        Edit::Write(bytes) => bytes.to_vec(),
        Edit::Blob(_) | Edit::Remove | Edit::RemoveDir => panic!("only files are written"),
    };
    let files: Vec<_> = edits.iter().map(|(path, edit)| (path.to_string(), text(edit))).collect();
    let input = stream("bench", Some(parent), &files);
    let start = std::time::Instant::now();
    Origin::at(repository).git_with(&["fast-import", "--quiet", "--force"], &input);
    start.elapsed()
}
