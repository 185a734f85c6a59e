use super::super::testing::{STATE, World, id, manifest, moved, steady, write};
use super::*;
use crate::manifest::object::{Kind, ObjectRef};
use crate::plan::action::{Class, GoesBy, Verb};
use crate::record::fixture;
use crate::record::posture::Posture;
use crate::record::state::{Consent, DeletionAnswer, DeletionVerdict};
use crate::workload::live::Expects;

fn action(posture: &Posture, cluster: &str, uid: &str) -> Action {
    let target =
        ObjectRef { kind: Kind::Service, namespace: "shop".parse().unwrap(), name: "podinfo".parse().unwrap() };
    Action {
        class: Class::Advance,
        rollout: "shop/podinfo".parse().unwrap(),
        cluster: cluster.parse().unwrap(),
        cluster_uid: uid.to_owned(),
        posture: Some(posture.digest()),
        verb: Verb::Delete { target, expects: Expects::Absent, by: GoesBy::Policy },
        why: String::new(),
    }
}

#[test]
fn only_what_is_recorded_word_for_word_is_allowed() {
    let open = fixture::open();
    let proof = Recorded::of([&open].into_iter());
    let posture = open.clusters.values().next().unwrap().posture.clone();
    assert!(proof.allows(&action(&posture, "home", "c1")));
    assert!(!proof.allows(&action(&posture, "other", "c1")));
    assert!(!proof.allows(&action(&posture, "home", "c2")));
    assert!(!proof.allows(&Action { rollout: "shop/other".parse().unwrap(), ..action(&posture, "home", "c1") }));
    assert!(!proof.allows(&Action { posture: None, ..action(&posture, "home", "c1") }));
    // Even less than recorded is not what was planned with.
    let before = fixture::steady().clusters.values().next().unwrap().posture.clone();
    assert!(!proof.allows(&action(&before, "home", "c1")));
}

#[test]
fn people_are_asked_only_what_the_record_has_a_reason_for() {
    let ask = |run: u8, ask: Ask| Proposal { rollout: "shop/podinfo".parse().unwrap(), run: fixture::run(run), ask };
    let advance = |step: &str| Ask::Advance { through: step.parse().unwrap() };
    let revert = || Ask::Revert { why: String::new() };
    let mut state = fixture::open();
    let proof = Recorded::of([&state].into_iter());
    assert!(proof.allows_pull(&ask(7, advance("half"))));
    assert!(!proof.allows_pull(&ask(7, advance("tenth"))), "it was approved");
    assert!(!proof.allows_pull(&ask(6, advance("half"))), "another run is open");
    assert!(proof.allows_pull(&ask(4, revert())), "its revision is refused");
    assert!(!proof.allows_pull(&ask(3, revert())));
    state.run.as_mut().unwrap().denied = true;
    assert!(!Recorded::of([&state].into_iter()).allows_pull(&ask(7, advance("half"))), "a person said no");
}

#[test]
fn f_6_attack_50_what_takes_a_word_is_deleted_only_if_the_record_has_it() {
    let mut state = fixture::steady();
    let posture = state.clusters.values().next().unwrap().posture.clone();
    let within = action(&posture, "home", "c1");
    let target = within.verb.target().clone();
    let verb = Verb::Delete { target: target.clone(), expects: Expects::Absent, by: GoesBy::Word };
    let beyond = Action { verb, ..within.clone() };
    let allows = |state: &RolloutState, action: &Action| Recorded::of([state].into_iter()).allows(action);
    assert!(allows(&state, &within) && !allows(&state, &beyond));
    let (at, proof) = (fixture::time("12:00:00"), "none".to_owned());
    let yes = DeletionVerdict::Yes(Consent { by: "Ana".to_owned(), at, proof, proven: None });
    let answer =
        |objects, said: &DeletionVerdict| vec![DeletionAnswer { objects, successor: None, said: said.clone() }];
    state.deletions.said = answer(fixture::too_many(3).objects, &yes);
    assert!(!allows(&state, &beyond), "another object");
    state.deletions.said = answer([target.clone()].into(), &DeletionVerdict::No);
    assert!(!allows(&state, &beyond), "a person said no");
    state.deletions.said = answer([target].into(), &yes);
    assert!(allows(&state, &beyond));
}

#[test]
fn x_3_people_are_asked_about_the_deletions_that_the_record_tells_of() {
    let mut state = fixture::steady();
    let question = fixture::too_many(6);
    let ask = |run: u8, objects| Proposal {
        rollout: "shop/podinfo".parse().unwrap(),
        run: fixture::run(run),
        ask: Ask::Delete { objects },
    };
    let allows = |state: &RolloutState, ask: &Proposal| Recorded::of([state].into_iter()).allows_pull(ask);
    let asked = ask(6, question.objects.clone());
    assert!(!allows(&state, &asked));
    state.deletions.asked = Some(question.clone());
    assert!(allows(&state, &asked));
    assert!(!allows(&state, &ask(5, question.objects.clone())), "words are about another run");
    assert!(!allows(&state, &ask(6, fixture::too_many(7).objects)));
}

/// Records these, at some time.
async fn record<'a>(
    source: &super::super::source::Source,
    view: &'a GitView,
    entries: &'a BTreeMap<RolloutId, RecordEntry<'a>>,
) -> RecordWritten<'a> {
    let waiting = BTreeMap::from([(id("b"), vec!["Soak: 3s of 10s".to_owned()])]);
    let recorder = Recorder {
        store: source.store(),
        branches: source.branches(),
        instance: &"prod".parse().unwrap(),
        metrics: &Metrics::new(),
        waiting: &waiting,
        now: fixture::time("12:00:00"),
    };
    recorder.record(view, entries).await
}

#[tokio::test]
async fn one_commit_holds_all_that_changed_and_reads_back_as_it_was_written() {
    let world = World::new().await;
    let mut source = world.source("a");
    let view = moved(&mut source, None).await;
    let ((a, sets_a), (b, sets_b)) = (steady(&view, "a", 1), steady(&view, "b", 1));
    let (change_a, change_b) = (write(a.clone()), write(b.clone()));
    let entries = BTreeMap::from([
        (id("a"), RecordEntry { before: None, change: &change_a, sets: &sets_a }),
        (id("b"), RecordEntry { before: None, change: &change_b, sets: &sets_b }),
    ]);
    let written = record(&source, &view, &entries).await;
    let RecordWritten::Done { proof, tip, changes, left_out } = written else { panic!("{written:?}") };
    assert!(left_out.is_empty());
    assert_eq!(world.subjects(STATE).await.len(), 1);
    assert_eq!(world.tip(STATE).await.as_ref(), Some(&tip));
    let files = world.files(STATE).await;
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let set = |state: &RolloutState| state.promoted.as_ref().unwrap().set.short().to_owned();
    let expected = [
        "README.md".to_owned(),
        format!("rollouts/shop/a/sets/{}/app.yaml", set(&a)),
        "rollouts/shop/a/state.yaml".to_owned(),
        format!("rollouts/shop/b/sets/{}/app.yaml", set(&b)),
        "rollouts/shop/b/state.yaml".to_owned(),
    ];
    assert_eq!(names, expected);
    assert_eq!(files[&expected[1]], manifest("a", "a:1"));
    assert!(files["README.md"].contains("Soak: 3s of 10s"), "{}", files["README.md"]);
    let posture = a.clusters.values().next().unwrap().posture.clone();
    assert!(proof.allows(&Action { rollout: id("a"), ..action(&posture, "home", "c1") }));

    // What the process remembers of its own push is what another process reads.
    let known = source.pushed(tip, changes).unwrap();
    let read = moved(&mut world.source("b"), None).await;
    for name in ["a", "b"] {
        let (known, read) = (known.records.get(&id(name)).unwrap(), read.records.get(&id(name)).unwrap());
        assert_eq!(known.state, read.state);
        assert_eq!(known.sets, read.sets);
    }
    assert!(matches!(source.look_up(None).await, super::super::source::Poll::Unchanged));
}

#[tokio::test]
async fn nothing_is_recorded_over_what_somebody_else_pushed_or_from_an_old_main() {
    let world = World::new().await;
    let mut source = world.source("a");
    let view = moved(&mut source, None).await;
    let (a, sets) = steady(&view, "a", 1);
    let change = write(a);
    let entries = BTreeMap::from([(id("a"), RecordEntry { before: None, change: &change, sets: &sets })]);
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    assert!(matches!(record(&source, &view, &entries).await, RecordWritten::Moved));
    assert_eq!(world.tip(STATE).await, None);

    let view = moved(&mut source, None).await;
    world.commit(STATE, &[("README.md", Some("somebody else's"))]).await;
    assert!(matches!(record(&source, &view, &entries).await, RecordWritten::Moved));
    assert_eq!(world.subjects(STATE).await, ["change"]);
}

#[tokio::test]
async fn a_rollout_whose_set_is_not_at_hand_stops_only_itself() {
    let world = World::new().await;
    let mut source = world.source("a");
    let view = moved(&mut source, None).await;
    let ((a, _), (b, sets_b)) = (steady(&view, "a", 1), steady(&view, "b", 1));
    let (change_a, change_b, none) = (write(a), write(b), BTreeMap::new());
    let entries = BTreeMap::from([
        (id("a"), RecordEntry { before: None, change: &change_a, sets: &none }),
        (id("b"), RecordEntry { before: None, change: &change_b, sets: &sets_b }),
    ]);
    let written = record(&source, &view, &entries).await;
    let RecordWritten::Done { proof, left_out, .. } = written else { panic!("{written:?}") };
    assert_eq!(left_out.keys().collect::<Vec<_>>(), [&id("a")]);
    let posture = Posture::clone(&steady(&view, "a", 1).0.clusters.values().next().unwrap().posture);
    assert!(!proof.allows(&Action { rollout: id("a"), ..action(&posture, "home", "c1") }));
    assert!(!world.files(STATE).await.keys().any(|path| path.contains("/a/")));
}

#[tokio::test]
async fn a_record_that_ends_takes_its_directory_along() {
    let world = World::new().await;
    let mut source = world.source("a");
    let view = moved(&mut source, None).await;
    let (a, sets) = steady(&view, "a", 1);
    let change = write(a);
    let entries = BTreeMap::from([(id("a"), RecordEntry { before: None, change: &change, sets: &sets })]);
    let RecordWritten::Done { tip, changes, .. } = record(&source, &view, &entries).await else { panic!() };
    let view = source.pushed(tip, changes).unwrap();
    let end = RecordChange::Remove { what: "released".to_owned() };
    let before = view.records.get(&id("a")).unwrap().state.as_ref().ok();
    let entries = BTreeMap::from([(id("a"), RecordEntry { before, change: &end, sets: &sets })]);
    let written = record(&source, &view, &entries).await;
    let RecordWritten::Done { tip, changes, .. } = written else { panic!("{written:?}") };
    assert_eq!(world.files(STATE).await.keys().collect::<Vec<_>>(), ["README.md"]);
    assert!(source.pushed(tip, changes).unwrap().records.get(&id("a")).is_none());
}
