use super::super::testing::{DECISIONS, STATE, World, id, manifest, moved, rollout, steady};
use super::*;
use crate::manifest::ids::CommitId;
use crate::plan::input::{Desired, MayStart};
use crate::record::fixture;
use crate::record::state::{Deletions, Outcome, PastRun, RolloutState};
use crate::record::store::print_state;
use std::collections::BTreeSet;

fn away() -> Git {
    Git::Away("away".to_owned())
}

fn unreadable(view: &View) -> &str {
    match &view.records {
        Records::Unreadable(why) => why,
        Records::Read(records) => panic!("{records:?}"),
    }
}

fn desired(view: &View, name: &str) -> String {
    let record = view.records.get(&id(name)).and_then(|record| record.state.as_ref().ok());
    match view.main.desired(&id(name), record) {
        Desired::Wanted(rollout) => format!("wanted {}", rollout.set.id.short().len()),
        Desired::Lacking(_, wait) => format!("lacking: {}", wait.message),
        Desired::Rejected(why) => format!("rejected: {why}"),
        Desired::Gone => "gone".to_owned(),
        Desired::Unreadable(why) => format!("unreadable: {why}"),
    }
}

/// Writes a record as another controller would.
async fn put(world: &World, state: &RolloutState, manifest: &str) -> CommitId {
    let root = format!("rollouts/{}", state.metadata);
    let set = state.promoted.as_ref().unwrap().set.short().to_owned();
    let (record, file) = (format!("{root}/state.yaml"), format!("{root}/sets/{set}/app.yaml"));
    world.commit(STATE, &[(&record, Some(&print_state(state))), (&file, Some(manifest))]).await
}

#[tokio::test]
async fn an_unchanged_remote_is_the_same_and_a_moved_one_is_read() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    assert_eq!(view.rollouts(), [id("a"), id("b")]);
    assert!(matches!(source.look_up(None).await, Looked::Same));
    let before = view.main.rollout(&id("b")).unwrap().clone();
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    let view = moved(&mut source, None).await;
    assert!(Arc::ptr_eq(&before, view.main.rollout(&id("b")).unwrap()), "what did not change is the same value");
    assert!(matches!(source.look_up(None).await, Looked::Same));
    world.commit("tidegate/prod/propose/shop/a/1-01010101-tenth", &[("x", Some("y"))]).await;
    world.commit("tidegate/other/propose/shop/a/1-01010101-tenth", &[("x", Some("y"))]).await;
    let view = moved(&mut source, None).await;
    assert_eq!(view.tips.proposals.keys().collect::<Vec<_>>(), ["tidegate/prod/propose/shop/a/1-01010101-tenth"]);
}

#[tokio::test]
async fn records_are_read_with_the_sets_that_they_name_and_a_set_is_what_its_name_says() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    let (state, _) = steady(&view, "a", 5);
    put(&world, &state, &manifest("a", "a:1")).await;
    // Main moves on, so that the pinned set alone has the old version.
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    let view = moved(&mut source, None).await;
    let record = view.records.get(&id("a")).unwrap();
    assert_eq!(record.state.as_ref(), Ok(&state));
    let promoted = &state.promoted.as_ref().unwrap().set;
    assert_eq!(record.sets.keys().collect::<Vec<_>>(), [promoted]);

    // Where people are asked whether what it had may go, the version is at hand that had it.
    let (mut asked, _) = steady(&view, "a", 6);
    asked.history = vec![PastRun { from: promoted.clone(), ..fixture::past(6, 5, 6, Outcome::Promoted) }];
    let newer = put(&world, &asked, &manifest("a", "a:2")).await;
    let file = format!("rollouts/shop/a/sets/{}/app.yaml", promoted.short());
    world.commit(STATE, &[(&file, Some(&manifest("a", "a:1")))]).await;
    let past = |view: &View| view.records.get(&id("a")).unwrap().past.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(past(&*moved(&mut world.source("e"), None).await), [].into(), "{newer}");
    asked.deletions.asked = Some(fixture::too_many(6));
    put(&world, &asked, &manifest("a", "a:2")).await;
    let mut asking = world.source("f");
    assert_eq!(past(&*moved(&mut asking, None).await), [promoted.clone()].into());
    // It stays so when we write the record, as nothing is read then, and for as long as people are asked.
    let mut write = |state: &RolloutState| {
        let written = Record::written(state.clone(), None, &BTreeMap::new());
        past(&asking.pushed(newer.clone(), [(id("a"), Some(written))].into()).unwrap())
    };
    assert_eq!(write(&asked), [promoted.clone()].into());
    assert_eq!(write(&RolloutState { deletions: Deletions::default(), ..asked.clone() }), [].into());

    // A pinned set whose content was changed is not that set.
    put(&world, &state, &manifest("a", "a:evil")).await;
    let view = moved(&mut world.source("d"), None).await;
    assert!(view.records.get(&id("a")).unwrap().sets.is_empty());
}

#[tokio::test]
async fn a_broken_record_holds_its_rollout_alone() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    put(&world, &steady(&view, "a", 5).0, &manifest("a", "a:1")).await;
    world.commit(STATE, &[("rollouts/shop/b/state.yaml", Some("phase: ["))]).await;
    let view = moved(&mut source, None).await;
    assert!(view.records.get(&id("a")).unwrap().state.is_ok());
    let why = view.records.get(&id("b")).unwrap().state.as_ref().unwrap_err();
    assert!(why.starts_with("rollouts/shop/b/state.yaml: "), "{why}");
}

#[tokio::test]
async fn attack_20_a_state_branch_that_was_put_back_or_replaced_is_no_record() {
    let world = World::new().await;
    let mut source = world.source("c");
    let old = world.commit(STATE, &[("README.md", Some("1"))]).await;
    let new = world.commit(STATE, &[("README.md", Some("2"))]).await;
    let view = moved(&mut source, Some(&old)).await;
    assert!(matches!(view.records, Records::Read(_)), "the tip descends from the anchor");

    world.commit_on(STATE, Some(old.clone()), &[("README.md", Some("3"))]).await;
    assert!(unreadable(&*moved(&mut source, Some(&new)).await).starts_with("HistoryRewritten: "));
    world.delete(STATE).await;
    assert!(unreadable(&*moved(&mut source, Some(&new)).await).contains("is gone; its newest tip was"));
    world.commit_on(STATE, Some(old.clone()), &[]).await;
    // The same commit as before the anchor: the branch is older.
    let mut fresh = world.source("d");
    assert!(unreadable(&*moved(&mut fresh, Some(&new)).await).starts_with("HistoryRewritten: "));
    // Put back to where it was, it is the record again.
    world.delete(STATE).await;
    world.commit_on(STATE, Some(new.clone()), &[("README.md", Some("4"))]).await;
    assert!(matches!(moved(&mut source, Some(&new)).await.records, Records::Read(_)));
}

#[tokio::test]
async fn a_lagging_server_shows_an_older_state() {
    let world = World::new().await;
    let mut source = world.source("c");
    world.commit(STATE, &[("README.md", Some("1"))]).await;
    let old = world.commit(STATE, &[("README.md", Some("2"))]).await;
    let new = world.commit(STATE, &[("README.md", Some("3"))]).await;
    moved(&mut source, None).await;
    world.delete(STATE).await;
    let name = crate::git::RefName::branch(STATE).unwrap();
    source.store().push(&name, None, &old, None).await.unwrap();
    assert!(unreadable(&*moved(&mut source, Some(&new)).await).starts_with("StaleRead: "));
}

#[tokio::test]
async fn attack_21_main_deleted_emptied_or_without_policy_ends_nothing() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    put(&world, &steady(&view, "a", 5).0, &manifest("a", "a:1")).await;

    let all: [(&str, Option<&str>); 2] = [("teams/shop/a/rollout.yaml", None), ("teams/shop/b/rollout.yaml", None)];
    let emptied = world.commit("main", &all).await;
    assert!(desired(&*moved(&mut source, None).await, "a").starts_with("unreadable: main holds no rollout at all"));
    let (a, b) = (rollout("a"), rollout("b"));
    world.commit("main", &[(all[0].0, Some(&a)), (all[1].0, Some(&b)), ("tidegate.yaml", None)]).await;
    let found = desired(&*moved(&mut source, None).await, "a");
    assert!(found.starts_with("unreadable: ") && found.contains("there is no policy"), "{found}");
    let policy = moved(&mut world.source("d"), None).await.main.policy(&"x".parse().unwrap(), MayStart::Yes);
    assert_eq!(policy.freezes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["policy-unreadable"]);
    world.delete("main").await;
    let view = moved(&mut source, None).await;
    assert_eq!(desired(&view, "a"), "unreadable: the branch does not exist");
    let policy = view.main.policy(&"x".parse().unwrap(), MayStart::Yes);
    assert_eq!(policy.freezes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["xmas"], "the last good policy");

    // A main that does not descend from what was acted upon is not followed either.
    let text = manifest("a", "a:9");
    world.commit_on("main", None, &[(all[0].0, Some(&a)), ("teams/shop/a/app.yaml", Some(&text))]).await;
    assert!(desired(&*moved(&mut source, None).await, "a").starts_with("unreadable: history rewritten"));
    let mut fresh = world.source("e");
    let found = desired(&*moved(&mut fresh, None).await, "a");
    assert!(found.starts_with("unreadable: history rewritten"), "a new process knows it from the record: {found}");
    drop(emptied);
}

#[tokio::test]
async fn a_file_that_no_longer_tells_its_name_is_broken_not_gone() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    put(&world, &steady(&view, "a", 5).0, &manifest("a", "a:1")).await;
    world.commit("main", &[("teams/shop/a/rollout.yaml", Some("kind: Rollout\nmetadata: ["))]).await;
    let found = desired(&*moved(&mut source, None).await, "a");
    assert!(found.starts_with("rejected: ") && found.contains("teams/shop/a/rollout.yaml"), "{found}");
    world.commit("main", &[("teams/shop/a/rollout.yaml", None)]).await;
    assert_eq!(desired(&*moved(&mut source, None).await, "a"), "gone");
}

#[tokio::test]
async fn while_git_is_away_the_last_tips_serve_if_no_newer_one_is_known() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    let tip = put(&world, &steady(&view, "a", 5).0, &manifest("a", "a:1")).await;
    moved(&mut source, None).await;
    std::fs::rename(world.dir.path().join("origin.git"), world.dir.path().join("gone")).unwrap();
    assert!(matches!(source.look_up(Some(&tip)).await, Looked::Away(_)));
    let view = source.offline(away(), Some(&tip)).await;
    assert_eq!(view.git, Git::Away("away".to_owned()));
    assert!(view.records.get(&id("a")).is_some());

    // The same from the cache on disk, as a new process finds it.
    let mut again = world.source("c");
    assert!(matches!(again.look_up(Some(&tip)).await, Looked::Away(_)));
    let view = again.offline(away(), Some(&tip)).await;
    assert!(view.records.get(&id("a")).is_some() && view.main.rollout(&id("a")).is_some());

    // Another leader has pushed since, or there is no cache: what is known is no record.
    let newer = fixture::commit(0x99);
    assert!(unreadable(&*again.offline(away(), Some(&newer)).await).starts_with("HistoryRewritten: "));
    let view = world.source("empty").offline(away(), Some(&tip)).await;
    assert!(unreadable(&view).starts_with("Git is away (away)"));
    assert!(desired(&view, "a").starts_with("unreadable: "));

    // Git comes back: the same tips are news, as they can be believed again.
    std::fs::rename(world.dir.path().join("gone"), world.dir.path().join("origin.git")).unwrap();
    assert_eq!(moved(&mut source, Some(&tip)).await.git, Git::Fresh);
}

#[tokio::test]
async fn words_are_read_by_rollout_with_what_was_there_before_the_run() {
    let world = World::new().await;
    let word = |run: &str, action: &str| {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: a, namespace: shop}}\n\
             spec: {{run: \"{run}\", action: {action}}}\n"
        )
    };
    let early = word("6-06060606", "hold");
    let before = world.commit(DECISIONS, &[("shop/a/6-06060606-hold.yaml", Some(&early))]).await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    let (mut state, _) = steady(&view, "a", 5);
    state.last_run = Some(crate::record::state::EndedRun { id: fixture::run(6), decisions_at: Some(before.clone()) });
    put(&world, &state, &manifest("a", "a:1")).await;
    let late = word("6-06060606", "resume");
    world.commit(DECISIONS, &[("shop/a/6-06060606-resume.yaml", Some(&late)), ("shop/b/x.yaml", Some("x: ["))]).await;
    let view = moved(&mut source, None).await;
    let words = view.words.about(&id("a"));
    assert_eq!(words.filed.len(), 2);
    assert_eq!(words.filed[0].by, "Ana <ana@example.com>");
    assert_eq!(
        words.at_start.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
        ["shop/a/6-06060606-hold.yaml"]
    );
    assert!(view.words.about(&id("b")).filed[0].decision.is_err());

    // The branch is rewritten, and a new process cannot know what was there before: nothing counts.
    world.delete(DECISIONS).await;
    world.commit(DECISIONS, &[("shop/a/6-06060606-resume.yaml", Some(&late))]).await;
    let view = moved(&mut world.source("d"), None).await;
    let words = view.words.about(&id("a"));
    assert_eq!((words.filed.len(), words.at_start.len()), (1, 1));
}
