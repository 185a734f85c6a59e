//! What would happen to the example repository, in every relation to its record.

use super::offline::{Pinned, PinnedSets, planned};
use super::{Effect, PlanView, text};
use crate::cli::fixture::{self, time};
use crate::cli::tests as states;
use crate::cli::ui::Ink;
use crate::cli::validate;
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::files::{Entry, Files};
use crate::manifest::ids::RolloutId;
use crate::manifest::installation::Caps;
use crate::manifest::load::{Loaded, load};
use crate::manifest::oid;
use crate::plan::draft::{RecordChange, RolloutPlan};
use crate::plan::report::{Reason, Wait};
use crate::record::state::{Outcome, PastRun, Phase, Promoted, Refused, RolloutState, Run};
use crate::report::view::{Record, Records};
use std::path::Path;

fn files() -> Files {
    validate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo")).unwrap()
}

/// Replaces text in a file that has it.
fn edit(files: &mut Files, path: &str, from: &str, to: &str) {
    let path = path.parse().unwrap();
    let Some(Entry::File { bytes, .. }) = files.get(&path) else { panic!("{path} is a file") };
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains(from), "{path} has no {from:?}");
    let text = text.replace(from, to);
    files.insert(path, Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.into_bytes().into() });
}

fn edited(path: &str, from: &str, to: &str) -> Loaded {
    let mut files = files();
    edit(&mut files, path, from, to);
    load(&files, &Caps::default())
}

const MANIFEST: &str = "teams/shop/podinfo/podinfo.yaml";

fn podinfo() -> RolloutId {
    "shop/podinfo".parse().unwrap()
}

fn rollout(loaded: &Loaded) -> Rollout {
    loaded.rollouts[&podinfo()].clone().unwrap()
}

/// The record of a rollout at rest on what the example repository says.
fn at_rest() -> (RolloutState, Set) {
    let rollout = rollout(&load(&files(), &Caps::default()));
    let mut state = fixture::steady();
    state.refused.clear();
    state.promoted = Some(Promoted {
        set: rollout.set.id.clone(),
        revision: rollout.set.revision.clone(),
        pods: rollout.set.pods.clone(),
        ..state.promoted.unwrap()
    });
    (state, (*rollout.set).clone())
}

/// That record with a run that brings what `loaded` says, on this step.
fn open(loaded: &Loaded, step: &str) -> Record {
    let (state, set) = at_rest();
    let rollout = rollout(loaded);
    let run = Run {
        from: set.id.clone(),
        to: rollout.set.id.clone(),
        revision: rollout.set.revision.clone(),
        pods: rollout.set.pods.clone(),
        ..fixture::open().run.unwrap()
    };
    let phase = Phase::Progressing(fixture::position(step));
    Record { state: RolloutState { phase, run: Some(run), ..state }, plan: Some(rollout.plan) }
}

fn plan(loaded: &Loaded, record: Record) -> PlanView {
    compared(loaded, record, None)
}

fn compared(loaded: &Loaded, record: Record, tried: Option<Set>) -> PlanView {
    let (_, set) = at_rest();
    let records = Records::from([(podinfo(), Ok(record))]);
    let pinned = Pinned::from([(podinfo(), PinnedSets { promoted: Some(Ok(set)), tried, brought: None })]);
    let mut plan = planned(loaded, &records, &pinned, "the record of prod at cdcdcdcd", states::now());
    plan.rollouts.retain(|planned| planned.rollout == "shop/podinfo");
    plan
}

fn shown(loaded: &Loaded, record: Record) -> (Effect, String) {
    let plan = plan(loaded, record);
    (plan.rollouts[0].change, text(&plan, states::now(), Ink::Plain))
}

fn rest() -> Record {
    Record { state: at_rest().0, plan: None }
}

fn new_version() -> Loaded {
    edited(MANIFEST, "image: ", "image: example.org/")
}

#[test]
fn a_mistyped_field_is_told_before_it_is_merged() {
    let loaded = edited(MANIFEST, "replicas:", "replica:");
    let plan = planned(&loaded, &Records::new(), &Pinned::new(), "no record", states::now());
    let told = text(&plan, states::now(), Ink::Plain);
    assert!(told.contains(&format!("warning: {MANIFEST}:")) && told.contains("replica"), "{told}");
}

#[test]
fn without_a_record_all_is_seen_for_the_first_time() {
    let loaded = load(&files(), &Caps::default());
    let plan = planned(&loaded, &Records::new(), &Pinned::new(), "no record", states::now());
    assert!(plan.rollouts.iter().all(|planned| planned.change == Effect::FirstSight));
    insta::assert_snapshot!(text(&plan, states::now(), Ink::Plain));
}

#[test]
fn what_is_promoted_changes_nothing() {
    assert_eq!(shown(&load(&files(), &Caps::default()), rest()).0, Effect::None);
}

#[test]
fn a_new_version_gets_a_run_with_its_timeline() {
    let (change, text) = shown(&new_version(), rest());
    assert_eq!(change, Effect::Run);
    insta::assert_snapshot!(text);
}

#[test]
fn the_queries_of_its_checks_are_shown_as_they_are_asked() {
    let mut files = files();
    edit(&mut files, MANIFEST, "image: ", "image: example.org/");
    let checks = "{errors: {successRate: {provider: main, proxy: istio}, min: 99, interval: 30s}}";
    let wanted = format!("  checks: {checks}\n  progressDeadline: 2m");
    edit(&mut files, "teams/shop/podinfo/rollout.yaml", "  progressDeadline: 2m", &wanted);
    let (change, text) = shown(&load(&files, &Caps::default()), rest());
    assert_eq!(change, Effect::Run);
    let asks = "\n  errors asks: 100 * (1 - (sum(rate(istio_requests_total{response_code=~\"5..\",reporter=\"destination\",\
                destination_workload_namespace=\"shop\",destination_workload=\"podinfo-canary\"}[30s])) or vector(0)) / ";
    assert!(text.contains(asks), "{text}");
}

#[test]
fn a_window_and_a_freeze_move_the_timeline() {
    let mut files = files();
    edit(&mut files, MANIFEST, "image: ", "image: example.org/");
    edit(
        &mut files,
        "teams/shop/podinfo/rollout.yaml",
        "- name: half",
        "- name: half\n      before: {window: office-hours}",
    );
    // It opens at 09:00 in Berlin; in the afternoon of 25 November the freeze begins that keeps the next day.
    edit(&mut files, "tidegate.yaml", "0 9 * * 1-5", "0 13 * * 1-5");
    edit(&mut files, "tidegate.yaml", "0 0 20 12 *", "0 12 25 11 *");
    edit(&mut files, "tidegate.yaml", "336h", "4h");
    let (change, text) = shown(&load(&files, &Caps::default()), rest());
    assert_eq!(change, Effect::Run);
    insta::assert_snapshot!(text);
}

#[test]
fn a_change_of_size_is_applied_directly() {
    let (change, text) = shown(&edited(MANIFEST, "replicas: ", "replicas: 1"), rest());
    assert_eq!(change, Effect::Direct, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_refused_revision_is_not_started() {
    let loaded = new_version();
    let tried = rollout(&loaded).set;
    let mut record = rest();
    let (run, outcome, at) = (fixture::run(7), Outcome::Failed, time("09:00:00"));
    let revision = tried.revision.clone();
    record.state.refused = vec![Refused { revision, run, outcome, why: "error-rate".to_owned(), at }];
    let (change, shown) = shown(&loaded, record.clone());
    assert_eq!(change, Effect::Refused);
    insta::assert_snapshot!(shown);
    // Neither is another size of it.
    let (to, revision) = (tried.id.clone(), tried.revision.clone());
    record.state.history = vec![PastRun { to, revision, ..fixture::past(7, 5, 6, outcome) }];
    let mut files = files();
    edit(&mut files, MANIFEST, "image: ", "image: example.org/");
    edit(&mut files, MANIFEST, "replicas: ", "replicas: 1");
    let sized = load(&files, &Caps::default());
    assert_ne!(rollout(&sized).set.revision, tried.revision);
    let told = |tried| text(&compared(&sized, record.clone(), tried), states::now(), Ink::Plain);
    let same = "revision d8434c4a, which has the same pods and routes, met";
    assert_eq!(told(Some((*tried).clone())), shown.replace("revision d8434c4a met", same));
    assert!(told(None).contains("through all phases"), "what was tried is not at hand");
}

#[test]
fn an_open_run_goes_on_is_taken_back_or_superseded() {
    let loaded = new_version();
    let (change, text) = shown(&loaded, open(&loaded, "tenth"));
    assert_eq!(change, Effect::UnderWay);
    insta::assert_snapshot!("under_way", text);
    let (change, text) = shown(&load(&files(), &Caps::default()), open(&loaded, "tenth"));
    assert_eq!(change, Effect::TakesBack);
    insta::assert_snapshot!("taken_back", text);
    let third = edited(MANIFEST, "image: ", "image: example.net/");
    let (change, text) = shown(&third, open(&loaded, "tenth"));
    assert_eq!(change, Effect::Supersedes);
    insta::assert_snapshot!("superseded", text);
    let mut late = open(&loaded, "tenth");
    late.state.phase = Phase::Finalising(fixture::position("return"));
    insta::assert_snapshot!("superseded_late", shown(&third, late).1);
}

#[test]
fn errors_reject_one_rollout_and_say_all() {
    let (change, text) = shown(&edited("teams/shop/podinfo/rollout.yaml", "weight: 10", "weight: 101"), rest());
    assert_eq!(change, Effect::Rejected);
    insta::assert_snapshot!(text);
}

#[test]
fn a_removed_rollout_keeps_its_objects() {
    let mut files = files();
    files.retain(|path, _| !path.as_str().starts_with("teams/shop/podinfo/"));
    let (change, text) = shown(&load(&files, &Caps::default()), rest());
    assert_eq!(change, Effect::Removed);
    insta::assert_snapshot!(text);
}

#[test]
fn what_the_planner_says_is_put_into_words() {
    let loaded = new_version();
    let mut plan = plan(&loaded, rest());
    let decided = RolloutPlan {
        retreats: Vec::new(),
        record: RecordChange::Write {
            state: Box::new(at_rest().0),
            plan: None,
            adopted: None,
            what: "run 7-07070707 brings 07070707".to_owned(),
        },
        actions: Vec::new(),
        proposals: Vec::new(),
        void: Vec::new(),
        waits: vec![Wait::new(Reason::Approval, "tenth waits for a person's word")],
        questions: Vec::new(),
        review_queries: Vec::new(),
        needs: Vec::new(),
        lookups: Vec::new(),
        wake_at: None,
    };
    super::live::show(&mut plan.rollouts[0], &decided);
    insta::assert_snapshot!(text(&plan, states::now(), Ink::Plain));
    insta::assert_snapshot!("plan_json", serde_json::to_string_pretty(&plan).unwrap());
}

#[test]
fn nothing_is_said_plainly() {
    let plan = PlanView {
        compared: "the record".to_owned(),
        rollouts: Vec::new(),
        errors: vec!["x".to_owned()],
        warnings: vec!["y".to_owned()],
    };
    insta::assert_snapshot!(text(&plan, states::now(), Ink::Plain));
}
