use super::super::testing::{DECISIONS, STATE, World, id, manifest, moved, rollout, steady};
use super::*;
use crate::manifest::ids::{CommitId, SetId};
use crate::plan::input::{Desired, HeadContent, MayStart};
use crate::record::fixture;
use crate::record::state::{Deletions, Outcome, PastRun, RolloutState};
use crate::record::store::print_state;
use std::collections::BTreeSet;

mod elsewhere;
mod peers;
mod unfetched;

fn away() -> Git {
    Git::Away("away".to_owned())
}

fn unreadable(view: &GitView) -> &str {
    match &view.records {
        LoadedRecords::Unreadable(why) => why,
        LoadedRecords::Read(records) => panic!("{records:?}"),
    }
}

fn desired(view: &GitView, name: &str) -> String {
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
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    let before = view.main.rollout(&id("b")).unwrap().clone();
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    let view = moved(&mut source, None).await;
    assert!(Arc::ptr_eq(&before, view.main.rollout(&id("b")).unwrap()), "what did not change is the same value");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
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
    let past = |view: &GitView| view.records.get(&id("a")).unwrap().past.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(past(&*moved(&mut world.source("e"), None).await), [].into(), "{newer}");
    asked.deletions.asked = Some(fixture::too_many(6));
    put(&world, &asked, &manifest("a", "a:2")).await;
    let mut asking = world.source("f");
    assert_eq!(past(&*moved(&mut asking, None).await), [promoted.clone()].into());
    // It stays so when we write the record, as nothing is read then, and for as long as people are asked.
    let mut write = |state: &RolloutState| {
        let written = LoadedRecord::written(state.clone(), None, &BTreeMap::new());
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
    assert!(matches!(view.records, LoadedRecords::Read(_)), "the tip descends from the anchor");

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
    assert!(matches!(moved(&mut source, Some(&new)).await.records, LoadedRecords::Read(_)));
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
    let record = steady(&view, "a", 5).0;
    let acted_upon = record.source.commit.clone();
    put(&world, &record, &manifest("a", "a:1")).await;

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
    let known = desired(&*moved(&mut source, None).await, "a");
    let mut fresh = world.source("e");
    let found = desired(&*moved(&mut fresh, None).await, "a");
    for told in [&known, &found] {
        assert!(told.starts_with("unreadable: history rewritten"), "{told}");
        let (_, seen) = told.split_once("does not descend from ").unwrap();
        let (seen, _) = seen.split_once(", which was acted upon").unwrap();
        assert!(told.ends_with(&format!("git merge -s ours {seen}")), "what people can do is said: {told}");
    }
    let from_record = format!("does not descend from {acted_upon}, ");
    assert!(found.contains(&from_record), "a new process knows it from the record: {found}");
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
    assert!(matches!(source.look_up(Some(&tip)).await, Poll::Unreachable(_)));
    let view = source.offline(away(), Some(&tip)).await;
    assert_eq!(view.git, Git::Away("away".to_owned()));
    assert!(view.records.get(&id("a")).is_some());

    // The same from the cache on disk, as a new process finds it.
    let mut again = world.source("c");
    assert!(matches!(again.look_up(Some(&tip)).await, Poll::Unreachable(_)));
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
    let words = view.decisions.about(&id("a"));
    assert_eq!(words.filed.len(), 2);
    assert_eq!(words.filed[0].by, "Ana <ana@example.com>");
    assert_eq!(
        words.at_start.iter().flat_map(|there| there.iter()).map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
        ["shop/a/6-06060606-hold.yaml"]
    );
    assert!(view.decisions.about(&id("b")).filed[0].decision.is_err());

    // The branch is rewritten, and a new process cannot know what was there before.
    world.delete(DECISIONS).await;
    world.commit(DECISIONS, &[("shop/a/6-06060606-resume.yaml", Some(&late))]).await;
    let mut fresh = world.source("d");
    let words = moved(&mut fresh, None).await.decisions.about(&id("a"));
    assert_eq!((words.filed.len(), words.at_start), (1, None));
    // It is put back.
    world.delete(DECISIONS).await;
    world.commit_on(DECISIONS, Some(before), &[("shop/a/6-06060606-resume.yaml", Some(&late))]).await;
    let words = moved(&mut fresh, None).await.decisions.about(&id("a"));
    assert_eq!(words.at_start.map(|there| there.len()), Some(1));
}

#[tokio::test]
async fn what_is_too_large_in_one_record_stops_that_rollout_alone() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    let ((a, _), (b, _)) = (steady(&view, "a", 5), steady(&view, "b", 5));
    put(&world, &a, &manifest("a", "a:1")).await;
    put(&world, &b, &manifest("b", "b:1")).await;
    let large = format!("{}{}", print_state(&a), "#".repeat(1 << 20));
    world.commit(STATE, &[("rollouts/shop/a/state.yaml", Some(&large))]).await;
    let view = moved(&mut source, None).await;
    let state = |view: &GitView, name: &str| view.records.get(&id(name)).unwrap().state.clone().map(|_| ());
    assert!(state(&view, "a").unwrap_err().contains("the size of rollouts/shop/a/state.yaml"));
    assert_eq!(state(&view, "b"), Ok(()));
}

/// As deep as paths of the record are, and one that is deeper.
const DEEPEST: usize = 6;
const DEEP: &str = "shop/b/d/d/d/d/x";

#[tokio::test]
async fn what_cannot_be_read_of_words_mutes_its_own_rollout_and_holds_nobody_up() {
    let world = World::new().await;
    let mut source = world.source_with("c", |config| {
        config.limits.entries = 40;
        config.limits.depth = DEEPEST;
    });
    let view = moved(&mut source, None).await;
    let word = |name: &str| {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec: {{run: \"6-06060606\", action: hold}}\n"
        )
    };
    let hold = word("a");
    world.commit(DECISIONS, &[("shop/a/6-06060606-hold.yaml", Some(&hold)), (DEEP, Some("x"))]).await;
    let words = Arc::clone(&moved(&mut source, None).await.decisions);
    assert_eq!(
        (words.about(&id("a")).filed.len(), words.unreadable(&id("b"))),
        (1, None),
        "what lies deeper is no word"
    );

    let crowd: Vec<String> = (0..11).map(|n| format!("shop/b/{n}.yaml")).collect();
    let all = |text| crowd.iter().map(|path| (path.as_str(), text)).collect::<Vec<_>>();
    let crowded = world.commit(DECISIONS, &all(Some("x"))).await;
    let words = Arc::clone(&moved(&mut source, None).await.decisions);
    let (a, b) = (words.about(&id("a")), words.about(&id("b")));
    assert_eq!((a.filed.len(), a.unreadable, b.filed.len()), (1, None, 0));
    assert_eq!(b.unreadable.as_deref(), Some("the number of entries in shop/b exceeds the limit of 10"));

    // A run started then: once the branch is mended, nobody knows what is new about it, and all others go on.
    let (mut state, _) = steady(&view, "b", 5);
    state.last_run = Some(crate::record::state::EndedRun { id: fixture::run(6), decisions_at: Some(crowded) });
    put(&world, &state, &manifest("b", "b:1")).await;
    world.commit(DECISIONS, &all(None)).await;
    world.commit(DECISIONS, &[("shop/b/6-06060606-hold.yaml", Some(&word("b")))]).await;
    let words = Arc::clone(&moved(&mut source, None).await.decisions);
    let (a, b) = (words.about(&id("a")), words.about(&id("b")));
    assert_eq!((a.filed.len(), b.filed.len(), b.at_start, b.unreadable), (1, 1, None, None));
}

#[tokio::test]
async fn any_number_of_files_that_are_no_words_takes_little_and_mutes_nobody() {
    const MANY: usize = 5_000;
    let world = World::new().await;
    let mut source = world.source("c");
    let fields: String = (0..100).map(|n| format!("f{n}: {}\n", "x".repeat(20))).collect();
    let junk = format!("apiVersion: tidegate.io/v1alpha1\nkind: Decision\n{fields}");
    let abort = "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {name: NAME, namespace: shop}\n\
                 spec: {run: \"6-06060606\", action: abort}\n";
    let (of_a, of_b) = (abort.replace("NAME", "a"), abort.replace("NAME", "b"));
    let names: Vec<String> = (0..MANY).map(|n| format!("shop/a/{n:05}.yaml")).collect();
    let others: Vec<(String, String)> =
        (0..200).map(|n| (format!("shop/a/x{n}.yaml"), format!("{junk}# {n}"))).collect();
    let mut files: Vec<(&str, Option<&str>)> = names.iter().map(|name| (name.as_str(), Some(junk.as_str()))).collect();
    files.extend(others.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))));
    files.push(("shop/a/6-06060606-abort.yaml", Some(&of_a)));
    files.push(("shop/b/6-06060606-abort.yaml", Some(&of_b)));
    world.commit(DECISIONS, &files).await;
    let words = moved(&mut source, None).await.decisions.clone();
    for name in ["a", "b"] {
        let heard = words.about(&id(name)).filed.iter().filter(|file| file.decision.is_ok()).count();
        assert_eq!((heard, words.unreadable(&id(name))), (1, None), "{name}");
    }
    let of_a = words.about(&id("a")).filed;
    assert_eq!(of_a.len(), MANY + 201);
    let texts = of_a.iter().filter_map(|file| file.decision.as_ref().err()).map(String::len);
    assert!(texts.clone().all(|length| length <= 1_024) && texts.sum::<usize>() < 100 * 1_024 + of_a.len() * 64);
    assert!(Arc::ptr_eq(&of_a, &words.about(&id("a")).filed), "no plan has a copy of its own");
}

#[tokio::test]
async fn what_is_no_file_at_the_path_of_a_word_is_told_as_one_that_is_no_decision() {
    let world = World::new().await;
    let mut source = world.source("c");
    let large = "x".repeat((1 << 20) + 1);
    let files =
        [("shop/a/dir.yaml/x", Some("x")), ("shop/a/large.yaml", Some(large.as_str())), ("shop/a/x.txt", Some("x"))];
    world.commit(DECISIONS, &files).await;
    let words = moved(&mut source, None).await.decisions.about(&id("a"));
    let told: Vec<_> =
        words.filed.iter().map(|file| (file.by.as_str(), file.decision.as_ref().unwrap_err().as_str())).collect();
    let ana = "Ana <ana@example.com>";
    assert_eq!(
        told,
        [
            (ana, "shop/a/dir.yaml is a directory and no decision"),
            (ana, "shop/a/large.yaml is too large a file and no decision")
        ]
    );
}

#[tokio::test]
async fn attack_13_any_number_of_branches_holds_nobody_up() {
    let world = World::new().await;
    let mut source = world.source_with("c", |config| config.limits.refs = 1_100);
    let (mut state, _) = steady(&*moved(&mut source, None).await, "a", 5);
    state.deletions.asked = Some(fixture::too_many(6));
    put(&world, &state, &manifest("a", "a:1")).await;
    let origin = git2::Repository::open(world.dir.path().join("origin.git")).unwrap();
    let main = origin.refname_to_id("refs/heads/main").unwrap();
    let make = |name: &str| drop(origin.reference(&format!("refs/heads/{name}"), main, false, "flood").unwrap());
    for n in 0..1_050 {
        make(&format!("tidegate/prod/propose/shop/a/9-01010101-x{n}"));
    }
    for n in 0..100 {
        make(&format!("main-{n}"));
        make(&format!("tidegate/prod/x{n}"));
    }
    make("tidegate/prod/propose/shop/a/0-delete");
    let view = moved(&mut source, None).await;
    assert_eq!(view.tips.proposals.keys().collect::<Vec<_>>(), ["tidegate/prod/propose/shop/a/0-delete"]);
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
}

#[tokio::test]
async fn attack_104_beyond_the_limit_our_own_requests_are_found_by_their_names() {
    let world = World::new().await;
    let mut source = world.source_with("c", |config| config.limits.refs = 20);
    let (mut state, _) = steady(&*moved(&mut source, None).await, "a", 5);
    state.deletions.asked = Some(fixture::too_many(6));
    put(&world, &state, &manifest("a", "a:1")).await;
    let origin = git2::Repository::open(world.dir.path().join("origin.git")).unwrap();
    let main = origin.refname_to_id("refs/heads/main").unwrap();
    let make = |name: &str| drop(origin.reference(&format!("refs/heads/{name}"), main, false, "flood").unwrap());
    for n in 0..30 {
        make(&format!("tidegate/prod/propose/shop/a/9-01010101-x{n}"));
    }
    let ours = "tidegate/prod/propose/shop/a/0-delete";
    make(ours);
    let named = |view: &GitView| view.tips.proposals.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        named(&*moved(&mut world.source_with("d", |config| config.limits.refs = 20), None).await),
        [ours],
        "first"
    );
    assert_eq!(named(&*moved(&mut source, None).await), [ours]);
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    // Main, decisions and the record are followed meanwhile; and what goes is a person's no.
    world.commit(DECISIONS, &[("shop/a/x.yaml", Some("x"))]).await;
    assert_eq!(named(&*moved(&mut source, None).await), [ours]);
    origin.find_reference(&format!("refs/heads/{ours}")).unwrap().delete().unwrap();
    assert_eq!(named(&*moved(&mut source, None).await), Vec::<String>::new());
}

#[tokio::test]
async fn what_somebody_has_put_beside_it_makes_no_request_void() {
    let world = World::new().await;
    let mut source = world.source_with("c", |config| config.limits.depth = DEEPEST);
    let (mut state, _) = steady(&*moved(&mut source, None).await, "a", 5);
    state.deletions.asked = Some(fixture::too_many(6));
    put(&world, &state, &manifest("a", "a:1")).await;
    let tip = world.commit(DECISIONS, &[(DEEP, Some("x"))]).await;
    let branch = "tidegate/prod/propose/shop/a/0-delete";
    world.commit_on(branch, Some(tip), &[("shop/a/0-delete.yaml", Some("x"))]).await;
    let view = moved(&mut source, None).await;
    let requests = view.requests.about(&"prod".parse().unwrap(), &view.tips, &id("a"));
    assert!(matches!(requests[branch].content, HeadContent::Read(_)), "{requests:?}");
}

#[tokio::test]
async fn what_a_word_goes_back_to_stays_at_hand_while_we_write() {
    let world = World::new().await;
    let mut source = world.source("c");
    let (state, _) = steady(&*moved(&mut source, None).await, "a", 6);
    put(&world, &state, &manifest("a", "a:1")).await;
    let old = state.promoted.unwrap().set;
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    let (mut state, _) = steady(&*moved(&mut source, None).await, "a", 7);
    let past = |n, from: &SetId| PastRun { from: from.clone(), ..fixture::past(n, 5, 6, Outcome::Promoted) };
    state.history = vec![past(5, &old), past(6, &old)];
    put(&world, &state, &manifest("a", "a:2")).await;
    let word = "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {name: a, namespace: shop}\n\
                spec: {run: \"5-05050505\", action: rollback}\n";
    world.commit(DECISIONS, &[("shop/a/5-05050505-rollback.yaml", Some(word))]).await;
    let has = |view: &GitView| view.records.get(&id("a")).unwrap().sets.contains_key(&old);
    let view = moved(&mut source, None).await;
    assert!(has(&view));
    let written = LoadedRecord::written(state, None, &BTreeMap::new());
    let pushed = source.pushed(fixture::commit(0x99), [(id("a"), Some(written))].into()).unwrap();
    assert!(has(&pushed), "the word may wait until it is known what that version took of others");
}

#[tokio::test]
async fn attack_103_a_tenant_with_too_much_stops_alone_and_what_is_recorded_there_stays() {
    let world = World::new().await;
    let mut source = world.source_with("c", |config| config.limits.entries = 20);
    let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
                  a: {path: teams/shop/a, namespaces: [shop], clusters: [home]}\n    \
                  b: {path: teams/shop/b, namespaces: [shop], clusters: [home]}\n";
    let (third, app) = (rollout("c"), manifest("c", "c:1"));
    let more = [("teams/shop/a/c/rollout.yaml", third.as_str()), ("teams/shop/a/c/app.yaml", app.as_str())];
    let files: Vec<_> =
        more.into_iter().chain([("tidegate.yaml", policy)]).map(|(at, text)| (at, Some(text))).collect();
    world.commit("main", &files).await;
    let (state, _) = steady(&*moved(&mut source, None).await, "b", 5);
    put(&world, &state, &manifest("b", "b:1")).await;
    let beside: Vec<String> = (0..30).map(|n| format!("docs/{n}.yaml")).collect();
    let all = |paths: &[String], text| -> Vec<(String, Option<&str>)> {
        paths.iter().map(|path| (path.clone(), text)).collect()
    };
    let push = async |files: Vec<(String, Option<&str>)>| {
        world.commit("main", &files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>()).await
    };
    push(all(&beside, Some("x"))).await;
    let view = moved(&mut source, None).await;
    assert_eq!([desired(&view, "a"), desired(&view, "b")], ["wanted 12", "wanted 12"]);
    let crowd: Vec<String> = (0..21).map(|n| format!("teams/shop/b/{n}.txt")).collect();
    push(all(&crowd, Some("x"))).await;
    let view = moved(&mut source, None).await;
    assert_eq!(desired(&view, "a"), "wanted 12");
    let why = desired(&view, "b");
    assert!(why.starts_with("rejected: ") && why.contains("exceeds the limit of 20"), "{why}");
    // It may have gone there from elsewhere: nothing is ended by a directory that is not read.
    push(vec![("teams/shop/a/rollout.yaml".to_owned(), None)]).await;
    assert!(desired(&*moved(&mut source, None).await, "a").starts_with("rejected: "));
    push(all(&crowd, None)).await;
    let view = moved(&mut source, None).await;
    assert_eq!([desired(&view, "a"), desired(&view, "b")], ["gone", "wanted 12"]);
}

#[tokio::test]
async fn a_rollout_that_leaves_its_tenants_directory_is_rejected_and_not_ended() {
    let world = World::new().await;
    let mut source = world.source("c");
    let (state, _) = steady(&*moved(&mut source, None).await, "b", 5);
    put(&world, &state, &manifest("b", "b:1")).await;
    let (file, app) = (rollout("b"), manifest("b", "b:1"));
    let moves = [
        ("teams/shop/b/rollout.yaml", None),
        ("teams/shop/b/app.yaml", None),
        ("apps/b/rollout.yaml", Some(file.as_str())),
        ("apps/b/app.yaml", Some(app.as_str())),
    ];
    world.commit("main", &moves).await;
    let why = desired(&*moved(&mut source, None).await, "b");
    assert!(why.starts_with("rejected: ") && why.contains("directory of no tenant"), "{why}");
    world.commit("main", &[("apps/b/rollout.yaml", None)]).await;
    assert_eq!(desired(&*moved(&mut source, None).await, "b"), "gone");
}
