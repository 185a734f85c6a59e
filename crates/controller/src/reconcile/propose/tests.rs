use super::super::observe::{Scene, Snapshot};
use super::super::source::Poll;
use super::super::testing::{DECISIONS, STATE, World, id, manifest, moved, steady};
use super::*;
use crate::forge::branch::approval;
use crate::gate::guard::Guard;
use crate::manifest::oid;
use crate::manifest::proof::By;
use crate::plan::input::{HeadChange, HeadContent, MayStart};
use crate::record::fixture;
use crate::record::state::{Consumed, EndedRun, Outcome, PastRun, Phase, Pull, Refused, RolloutState, Serving};
use crate::record::store::{print_plan, print_state};
use std::collections::BTreeMap;

const MAIN_A: &str = "teams/shop/a/app.yaml";

fn proposer<'a>(instance: &'a InstanceName, metrics: &'a Metrics) -> Proposer<'a> {
    Proposer { instance, main: "main", metrics, host: None, by: By::Nothing, now: fixture::time("12:00:00") }
}

/// Proposes what the record of `shop/a` allows.
async fn propose(source: &mut Source, proposal: &Proposal) -> Came {
    let view = source.view().unwrap();
    let proof = Recorded::verified(&view).unwrap();
    let (instance, metrics) = ("prod".parse().unwrap(), Metrics::new());
    proposer(&instance, &metrics).propose(source, &proof, proposal).await
}

async fn put(world: &World, state: &RolloutState) {
    let root = format!("rollouts/{}", state.metadata);
    let set = state.promoted.as_ref().unwrap().set.short();
    let (record, file) = (format!("{root}/state.yaml"), format!("{root}/sets/{set}/app.yaml"));
    let mut files = vec![(record, print_state(state)), (file, manifest("a", "a:1"))];
    if let Some(run) = &state.run {
        files.push((format!("{root}/runs/{}.yaml", run.id), print_plan(&fixture::plan())));
    }
    let files: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    world.commit(STATE, &files).await;
}

/// Brings run 7 of `shop/a` before `half`, and the request that it then makes.
async fn waiting(world: &World, source: &mut Source) -> Proposal {
    let view = moved(source, None).await;
    let (mut state, _) = steady(&view, "a", 5);
    state.run = fixture::open().run.map(|run| crate::record::state::Run {
        from: state.promoted.as_ref().unwrap().set.clone(),
        to: state.promoted.as_ref().unwrap().set.clone(),
        approved: Vec::new(),
        ..run
    });
    put(world, &state).await;
    moved(source, None).await;
    Proposal { rollout: id("a"), run: fixture::run(7), ask: Ask::Advance { through: "half".parse().unwrap() } }
}

#[tokio::test]
async fn a_pull_request_has_a_decisions_branch_to_lead_to() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = waiting(&world, &mut source).await;
    let (instance, metrics) = ("prod".parse().unwrap(), Metrics::new());
    let proposer = Proposer { host: Some(HostKind::Gitea), ..proposer(&instance, &metrics) };
    let seen = source.view().unwrap();
    let proof = Recorded::verified(&seen).unwrap();
    assert_eq!(proposer.propose(&mut source, &proof, &proposal).await, Came::Done);
    assert_eq!(world.files(DECISIONS).await.keys().collect::<Vec<_>>(), ["README.md"]);
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half";
    assert_eq!(world.files(branch).await.len(), 2);
    assert_eq!(world.subjects(branch).await[1..], world.subjects(DECISIONS).await);
}

#[tokio::test]
async fn x_2_a_request_to_let_objects_go_tells_how_it_is_answered_where_signatures_prove_the_word() {
    let world = World::new().await;
    let mut source = world.source("c");
    let policy =
        world.files("main").await["tidegate.yaml"].replace("clusters: [home]", "clusters: [home], approvers: [ana]");
    world.commit("main", &[("tidegate.yaml", Some(&policy))]).await;
    let view = moved(&mut source, None).await;
    let (mut state, _) = steady(&view, "a", 5);
    state.deletions.asked = Some(fixture::too_many(6));
    put(&world, &state).await;
    moved(&mut source, None).await;
    let ask = Ask::Delete { objects: fixture::too_many(6).objects };
    let proposal = Proposal { rollout: id("a"), run: state.current(), ask };
    let (instance, metrics) = ("prod".parse().unwrap(), Metrics::new());
    let proposer = Proposer { by: By::Signatures, ..proposer(&instance, &metrics) };
    let seen = source.view().unwrap();
    let proof = Recorded::verified(&seen).unwrap();
    assert_eq!(proposer.propose(&mut source, &proof, &proposal).await, Came::Done);
    let branch = proposer.head(&proposal).branch(&instance);
    let origin = git2::Repository::open_bare(world.dir.path().join("origin.git")).unwrap();
    let commit = origin.find_branch(&branch, git2::BranchType::Local).unwrap().get().peel_to_commit().unwrap();
    let message = commit.message().unwrap();
    assert!(
        message.contains("git merge --no-ff --no-edit -S origin/") && message.contains("signed by an approver"),
        "{message}"
    );
}

#[tokio::test]
async fn x_3_a_request_adds_exactly_one_file_is_made_once_and_withdrawn_from_the_head_that_was_seen() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = waiting(&world, &mut source).await;
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half";

    // Without a decisions branch the request is its first commit.
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    let head = world.tip(branch).await.unwrap();
    assert_eq!(source.view().unwrap().tips.proposals.get(branch), Some(&head));
    assert_eq!(world.files(branch).await.keys().collect::<Vec<_>>(), ["shop/a/7-07070707-half.yaml"]);
    assert_eq!(world.subjects(branch).await.len(), 1);
    assert_eq!(world.tip(DECISIONS).await, None, "nothing is ever pushed there");

    // Made again, by a process that does not know of it: the one that is there is found.
    let mut other = world.source("d");
    moved(&mut other, None).await;
    other.proposed(branch, None);
    assert_eq!(propose(&mut other, &proposal).await, Came::Done);
    assert_eq!(world.tip(branch).await, Some(head.clone()));

    let (instance, metrics) = ("prod".parse().unwrap(), Metrics::new());
    let proposer = proposer(&instance, &metrics);
    let wrong = fixture::commit(0x11);
    assert_eq!(proposer.withdraw(&mut source, &id("a"), branch, &wrong).await, Came::Later);
    assert_eq!(world.tip(branch).await, Some(head.clone()));
    assert_eq!(proposer.withdraw(&mut source, &id("a"), branch, &head).await, Came::Done);
    assert_eq!(world.tip(branch).await, None);

    // With one, it lies on top of it.
    world.commit(DECISIONS, &[("shop/b/0-hold.yaml", Some("x"))]).await;
    moved(&mut source, None).await;
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    assert_eq!(world.files(branch).await.len(), 2);
    assert_eq!(world.subjects(branch).await, ["shop/a: go on to half (weight 50, header x-canary: always)", "change"]);
}

/// Run 7 brought `a:2` and failed.
async fn failed(world: &World, source: &mut Source) -> Proposal {
    let view = moved(source, None).await;
    let (mut state, _) = steady(&view, "a", 5);
    world.commit("main", &[(MAIN_A, Some(&manifest("a", "a:2")))]).await;
    let view = moved(source, None).await;
    let brought = view.main.rollout(&id("a")).unwrap().set.clone();
    let revision = brought.revision.clone();
    let past = fixture::past(7, 6, 7, Outcome::Failed);
    let from = state.promoted.as_ref().unwrap().set.clone();
    state.history = vec![PastRun { from, to: brought.id.clone(), ..past }];
    state.last_run = Some(EndedRun { id: fixture::run(7), decisions_at: None });
    let why = "not ready".to_owned();
    state.phase = Phase::Failed { why: why.clone(), since: fixture::time("11:00:00"), standing: Serving::Stable };
    let at = fixture::time("11:00:00");
    state.refused = vec![Refused { revision, run: fixture::run(7), outcome: Outcome::Failed, why: why.clone(), at }];
    put(world, &state).await;
    let file = format!("rollouts/shop/a/sets/{}/app.yaml", brought.id.short());
    world.commit(STATE, &[(&file, Some(&manifest("a", "a:2")))]).await;
    moved(source, None).await;
    Proposal { rollout: id("a"), run: fixture::run(7), ask: Ask::Revert { why } }
}

#[tokio::test]
async fn x_5_a_revert_undoes_the_runs_own_change_and_keeps_what_others_changed_since() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = failed(&world, &mut source).await;
    let since = manifest("a", "a:2").replace("replicas: 2", "replicas: 2 # enough");
    world.commit("main", &[("README.md", Some("new")), (MAIN_A, Some(&since))]).await;
    moved(&mut source, None).await;
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    let branch = "tidegate/prod/propose/shop/a/7-07070707-revert";
    let files = world.files(branch).await;
    assert_eq!(files[MAIN_A], manifest("a", "a:1").replace("replicas: 2", "replicas: 2 # enough"));
    assert_eq!(files["README.md"], "new");
    assert_eq!(world.subjects(branch).await[0], "shop/a: revert run 7-07070707");
    assert_eq!(world.files("main").await[MAIN_A], since, "main is people's");
}

#[tokio::test]
async fn a_revert_that_meets_other_changes_in_the_same_lines_changes_nothing() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = failed(&world, &mut source).await;
    let since = manifest("a", "a:2 # reviewed");
    world.commit("main", &[(MAIN_A, Some(&since))]).await;
    moved(&mut source, None).await;
    let wanted = source.view().unwrap().main.rollout(&id("a")).unwrap().set.id.clone();
    let entangled = Entangled { run: fixture::run(7), wanted, files: BTreeSet::from([MAIN_A.parse().unwrap()]) };
    assert_eq!(propose(&mut source, &proposal).await, Came::Entangled(entangled));
    assert!(matches!(source.look_up(None).await, Poll::Unchanged) && source.view().unwrap().tips.proposals.is_empty());
}

#[tokio::test]
async fn nothing_is_asked_that_the_record_has_no_reason_for() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = failed(&world, &mut source).await;
    let other = Proposal { run: fixture::run(9), ..proposal };
    assert_eq!(propose(&mut source, &other).await, Came::Later);
    assert!(source.view().unwrap().tips.proposals.is_empty());
}

/// What merging a branch would bring, as a plan sees it.
fn brings(view: &GitView, branch: &str) -> HeadContent {
    let about = view.requests.about(&"prod".parse().unwrap(), &view.tips, &id("a"));
    about[branch].content.clone()
}

fn change(content: HeadContent) -> HeadChange {
    let HeadContent::Read(change) = content else { panic!("{content:?}") };
    change
}

#[tokio::test]
async fn x_2_attack_74_what_a_request_would_bring_is_read_for_each_head() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = waiting(&world, &mut source).await;
    let decisions = world.commit(DECISIONS, &[("README.md", Some("x"))]).await;
    moved(&mut source, None).await;
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half";
    let (path, text) = approval(&id("a"), &fixture::run(7), &"half".parse().unwrap(), 0);
    let asked = BTreeMap::from([(path, Some(oid::blob(text.as_bytes())))]);
    let made = change(brings(&source.view().unwrap(), branch));
    assert_eq!((made.alone, &made.files), (true, &asked), "what we have made is known");
    let read = change(brings(&*moved(&mut world.source("d"), None).await, branch));
    assert_eq!(read, HeadChange { alone: true, files: asked.clone(), undoing: None }, "a new process reads it");

    // On top of ours, on something else, and in its place.
    world.commit(branch, &[("more.yaml", Some("x"))]).await;
    assert!(!change(brings(&*moved(&mut source, None).await, branch)).alone);
    let main = world.tip("main").await;
    world.commit_on(branch, main, &[("more.yaml", Some("x"))]).await;
    assert!(!change(brings(&*moved(&mut source, None).await, branch)).alone);
    world.commit_on(branch, Some(decisions), &[("more.yaml", Some("x")), ("README.md", None)]).await;
    let other = change(brings(&*moved(&mut source, None).await, branch));
    let more = Some(oid::blob(b"x"));
    let files = [("more.yaml", more), ("README.md", None)].map(|(path, blob)| (path.parse().unwrap(), blob));
    assert_eq!(other, HeadChange { alone: true, files: files.into(), undoing: None });
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));

    // Nobody is asked by what is about another run, so nobody wants to know.
    let stray = branch.replace("7-07070707", "8-08080808");
    world.commit(&stray, &[("more.yaml", Some("x"))]).await;
    assert!(matches!(brings(&*moved(&mut source, None).await, &stray), HeadContent::Unread(_)));
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
}

#[tokio::test]
async fn x_5_what_a_revert_would_bring_is_compared_with_what_undoing_the_run_comes_to() {
    let world = World::new().await;
    let mut source = world.source("c");
    let proposal = failed(&world, &mut source).await;
    let since = manifest("a", "a:2").replace("replicas: 2", "replicas: 2 # enough");
    let main = world.commit("main", &[("README.md", Some("new")), (MAIN_A, Some(&since))]).await;
    moved(&mut source, None).await;
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    let branch = "tidegate/prod/propose/shop/a/7-07070707-revert";
    let made = change(brings(&source.view().unwrap(), branch));
    world.commit("main", &[("README.md", Some("newer"))]).await;
    let read = change(brings(&*moved(&mut world.source("d"), None).await, branch));
    assert_eq!((read.alone, read.undoing.as_ref(), &read), (true, Some(&read.files), &made));

    let more = [(MAIN_A, Some(manifest("a", "a:1"))), ("README.md", Some("gone".to_owned()))];
    let more = more.each_ref().map(|(path, text)| (*path, text.as_deref()));
    world.commit_on(branch, Some(main), &more).await;
    let other = change(brings(&*moved(&mut source, None).await, branch));
    assert_eq!((other.alone, &other.undoing), (true, &made.undoing));
    assert_ne!(Some(other.files), other.undoing);
}

/// The same run as a record of its own, in which all decisions count that are there.
async fn hearing(world: &World, source: &mut Source) -> (Proposal, RolloutState) {
    let proposal = waiting(world, source).await;
    let mut state = source.view().unwrap().records.get(&id("a")).unwrap().state.clone().unwrap();
    let run = state.run.as_mut().unwrap();
    run.decisions_at = None;
    run.pulls.clear();
    put(world, &state).await;
    moved(source, None).await;
    (proposal, state)
}

/// By which branches decisions about a rollout came, as its plan sees it.
fn came_by(view: &GitView, name: &str) -> Vec<String> {
    let (instance, rollout) = ("prod".parse().unwrap(), id(name));
    let brought = view.requests.brought(&instance, &view.tips, &view.records, view.decisions.later(&rollout));
    brought.into_values().flatten().collect()
}

#[tokio::test]
async fn attack_74_only_a_branch_that_people_were_asked_by_takes_back_a_word_that_came_by_it() {
    let world = World::new().await;
    let mut source = world.source("c");
    let (proposal, mut state) = hearing(&world, &mut source).await;
    world.commit(DECISIONS, &[("README.md", Some("x"))]).await;
    let word = world.commit(DECISIONS, &[("shop/a/mine.yaml", Some("a word")), ("shop/b/mine.yaml", Some("x"))]).await;
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half";
    let never = ["7-07070707-promotion", "6-06060606-half", "7-07070707-revert"]
        .map(|end| branch.replace("7-07070707-half", end));
    let strays = ["nuisance", "shop/b/1-01010101-half", "shop/none/1-01010101-half"]
        .map(|end| format!("tidegate/prod/propose/{end}"));
    for name in never.iter().chain(&strays) {
        world.branch(name, &word).await;
    }
    world.branch(branch, &word).await;
    let view = moved(&mut source, None).await;
    assert_eq!((came_by(&view, "a"), came_by(&view, "b")), (vec![], vec![]), "nobody was asked by any of them");

    // One that we have made, and somebody replaces before the record names it.
    world.delete(branch).await;
    moved(&mut source, None).await;
    assert_eq!(propose(&mut source, &proposal).await, Came::Done);
    world.delete(branch).await;
    world.branch(branch, &word).await;
    let view = moved(&mut source, None).await;
    assert_eq!((came_by(&view, "a"), came_by(&view, "b")), (vec![branch.to_owned()], vec![branch.to_owned()]));

    // What the record says is known to every process: that it is asked by it, and that what lay there was void.
    let half = "half".parse().unwrap();
    let pull = Pull { branch: branch.to_owned(), head: fixture::commit(9), checks: Vec::new() };
    state.run.as_mut().unwrap().pulls.insert(half, pull);
    put(&world, &state).await;
    let mut other = world.source("d");
    assert_eq!(came_by(&*moved(&mut other, None).await, "b"), [branch]);
    state.run.as_mut().unwrap().pulls.clear();
    let void =
        Some(Void { why: "x".to_owned(), through: Some("half".parse().unwrap()), head: Some(fixture::commit(9)) });
    state.consumed =
        fixture::open().consumed.into_iter().take(1).map(|word| Consumed { void: void.clone(), ..word }).collect();
    put(&world, &state).await;
    assert_eq!(came_by(&*moved(&mut world.source("e"), None).await, "b"), [branch]);

    // A request of a run that is over was one all the same.
    (state.run, state.consumed) = (None, Vec::new());
    put(&world, &state).await;
    assert_eq!(came_by(&*moved(&mut other, None).await, "b"), [branch]);
    assert_eq!(came_by(&*moved(&mut world.source("f"), None).await, "b"), [""; 0], "that one process has seen");
}

#[tokio::test]
async fn attack_74_by_which_request_a_word_came_is_news_by_itself() {
    let world = World::new().await;
    let mut source = world.source("c");
    let (_, mut state) = hearing(&world, &mut source).await;
    let branch = "tidegate/prod/propose/shop/a/7-07070707-half";
    let pull = Pull { branch: branch.to_owned(), head: fixture::commit(9), checks: Vec::new() };
    state.run.as_mut().unwrap().pulls.insert("half".parse().unwrap(), pull);
    put(&world, &state).await;
    let word = world.commit(DECISIONS, &[("shop/b/mine.yaml", Some("a word"))]).await;
    let (snapshot, guard) = (Snapshot::empty(fixture::time("12:00:00")), Guard::Unasked);
    let seen = |view: &GitView| {
        let scene = Scene { me: &state.writer, view, snapshot: &snapshot, by: By::Nothing, guard: &guard };
        scene.fingerprint(&id("b"), MayStart::Yes)
    };
    let before = seen(&*moved(&mut source, None).await);
    // What no request is called is not even looked at.
    world.branch("tidegate/prod/propose/nuisance", &word).await;
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    world.branch("tidegate/prod/propose/shop/c/7-07070707-half", &word).await;
    assert_eq!(seen(&*moved(&mut source, None).await), before);
    world.branch(branch, &word).await;
    assert_ne!(seen(&*moved(&mut source, None).await), before);
}
