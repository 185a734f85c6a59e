//! Records and plans come back from their text as they went in, whatever wrote it.

use super::super::fixture::{self, open, past, position, run, set, steady, time};
use super::super::state::{Condition, Outcome, Phase, Rest, Serving, StepClock, Then};
use super::*;
use crate::manifest::desired::{HeaderValue, Router, UnitKind};
use crate::manifest::duration::Span;
use crate::manifest::ids::{PodsDigest, Revision};
use crate::record::state::Time;
use proptest::prelude::*;
use serde_json::json;

fn id() -> RolloutId {
    "shop/podinfo".parse().unwrap()
}

fn read(text: &str) -> Result<RolloutState, RecordError> {
    parse_state(&id(), text.as_bytes())
}

fn there_and_back(state: &RolloutState) {
    let text = print_state(state);
    let back = parse_state(&state.metadata, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(&back, state, "{text}");
    assert_eq!(print_state(&back), text);
}

/// Every phase, with and without what may be left out.
fn phases() -> Vec<Phase> {
    let since = time("10:00:00");
    let step = |name: &str| name.parse().unwrap();
    let bare = |name: &str| super::super::state::Position {
        step: step(name),
        seq: u64::MAX,
        clock: StepClock::entered(since),
    };
    let long = StepClock { exposed: Some(time("10:00:01")), ..StepClock::entered(since) };
    let lost = StepClock { lost: Some(time("10:00:09")), away: Span::from_secs(90), ..long };
    let mut phases = vec![
        Phase::Initializing(StepClock::entered(since)),
        Phase::Initializing(long),
        Phase::Initializing(lost),
        Phase::Waiting { at: None, next: step("testers"), since },
        Phase::Waiting { at: Some(position("tenth")), next: step("half"), since },
        Phase::Progressing(bare("null")),
        Phase::Progressing(position("1e3")),
        Phase::WaitingPromotion { at: position("half"), since },
        Phase::WaitingPromotion { at: bare("half"), since },
        Phase::Promoting(position("shift")),
        Phase::Finalising(bare("return")),
        Phase::Failed { why: "x: y # z\n".to_owned(), since, standing: Serving::Stable },
        Phase::Failed { why: String::new(), since, standing: Serving::OnCandidate },
        Phase::Terminating { since },
        Phase::Unknown(json!({"name": "Baking", "since": "2026-11-25T10:00:00Z", "ovens": [{"n": 1}, null]})),
    ];
    phases.extend([Rest::Initialized, Rest::Succeeded, Rest::Reverted].map(|how| Phase::Steady { how, since }));
    let ends = [Then::Reverted, Then::Aborted, Then::Failed, Then::Unmeasured, Then::NextRun, Then::Terminating];
    phases.extend(ends.map(|then| Phase::Reverting { position: position("split"), why: "- no".to_owned(), then }));
    phases
}

#[test]
fn x_1_the_record_as_text() {
    insta::assert_snapshot!(print_state(&open()));
}

#[test]
fn every_phase_comes_back() {
    let mut names = BTreeSet::new();
    for phase in phases() {
        names.insert(phase.name());
        there_and_back(&RolloutState { phase, ..open() });
    }
    assert_eq!(names.len(), Phase::NAMES.len() + 1);
    there_and_back(&steady());
}

#[test]
fn x_10_a_phase_of_a_newer_version_stays_as_it_was() {
    let text = print_state(&steady())
        .replace("name: Steady", "name: Baking")
        .replace("how: Succeeded", "ovens:\n  - {heat: 1.5, door: null}");
    let mut state = read(&text).unwrap();
    assert_eq!(state.phase.name(), "Unknown");
    assert!(state.phase.position().is_none() && !state.phase.may_become(&steady().phase));
    state.seq += 1;
    let written: Value = serde_yaml::from_str(&print_state(&state)).unwrap();
    let original: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(written["phase"], original["phase"]);
    assert_eq!(written["phase"]["ovens"][0]["heat"], 1.5);
}

#[test]
fn x_10_fields_of_a_newer_version_survive_a_write() {
    let mut value: Value = serde_yaml::from_str(&print_state(&open())).unwrap();
    let places =
        ["", "/writer", "/promoted", "/phase", "/run", "/run/pulls/tenth", "/clusters/home", "/clusters/home/posture"];
    let lists = ["/clusters/home/inventory/0", "/consumed/0", "/refused/0", "/conditions/0", "/history/1"];
    for place in places.iter().chain(&lists) {
        value.pointer_mut(place).unwrap()["novelty"] = json!({"of": place, "list": [1, {"a": null}]});
    }
    let text = serde_yaml::to_string(&value).unwrap();
    let mut state = read(&text).unwrap();
    assert_eq!(serde_yaml::from_str::<Value>(&print_state(&state)).unwrap(), value);

    // The run goes on: what belongs to things that stay, stays.
    state.seq += 1;
    state.history.insert(0, past(3, 2, 3, Outcome::Aborted));
    state.phase = Phase::Progressing(position("half"));
    let later: Value = serde_yaml::from_str(&print_state(&state)).unwrap();
    for place in places.iter().filter(|place| **place != "/phase") {
        assert_eq!(later.pointer(place).unwrap()["novelty"]["of"], **place);
    }
    assert_eq!(later.pointer("/history/2/novelty/of").unwrap(), "/history/1");
    assert!(later["phase"].get("novelty").is_none() && later["history"][1].get("novelty").is_none());
}

#[test]
fn x_10_what_is_no_record_of_ours_is_refused() {
    let good = print_state(&open());
    let error = |text: &str| read(text).expect_err(text).to_string();
    let cases = [
        good.replace("v1alpha1", "v2"),
        good.replace("kind: RolloutState", "kind: Rollout"),
        good.replace("name: podinfo\nwriter", "name: other\nwriter"),
        good.replace("seq: 41", "seq: -1"),
        good.replace("seq: 41", "seq: 41\nseq: 42"),
        good.replace("  step: tenth\n", ""),
        good.replace("name: Progressing", "nom: Progressing"),
        good.replace("nextRun: 8\n", ""),
        "[]".to_owned(),
        String::new(),
        "a: &a [x, x]\nb: *c\n".to_owned(),
    ];
    insta::assert_snapshot!(cases.iter().map(|text| error(text)).collect::<Vec<_>>().join("\n"));
    assert!(matches!(parse_state(&id(), b"\xff\xfe"), Err(RecordError::Yaml(_))));
    let last = RolloutState { seq: u64::MAX, ..open() };
    assert!(matches!(parse_state(&last.metadata, print_state(&last).as_bytes()), Err(RecordError::Seq(u64::MAX))));
    assert!(matches!(parse_state(&id(), &vec![b' '; MAX_BYTES + 1]), Err(RecordError::TooLarge(_))));
    let bomb: String =
        (1..30).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    assert!(read(&format!("a0: &a0 [x]\n{bomb}")).is_err());
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let mut state = fixture::steady();
    state.conditions.push(Condition {
        reason: "Soak".to_owned(),
        message: "x".repeat(MAX_BYTES),
        since: fixture::time("12:00:00"),
        until: None,
        act: None,
        live: None,
    });
    let written = edits(Some(&fixture::steady()), Some(&state), &BTreeMap::new(), None);
    assert!(matches!(written, Err(RecordError::TooLarge(_))), "{written:?}");
}

#[test]
fn plans_come_back_and_unknown_gates_are_not_overlooked() {
    let plan = fixture::plan();
    let text = print_plan(&plan);
    assert_eq!(parse_plan(text.as_bytes()).unwrap(), plan);
    insta::assert_snapshot!(text);
    let newer = text.replace("window: office-hours", "window: office-hours\n      quorum: 2");
    assert!(newer != text);
    let error = parse_plan(newer.as_bytes()).expect_err("a gate that is not known");
    assert_eq!(
        error.to_string(),
        "unknown field \"spec.phases.before.quorum\": a plan cannot be followed in parts, so its run waits for the \
         version that wrote it"
    );
    assert!(parse_plan(text.replace("RunPlan", "Plan").as_bytes()).is_err());
}

/// What a version without patterns for headers wrote, as it stands on a state branch.
#[test]
fn a_plan_with_exact_headers_reads_as_ever() {
    let text = "apiVersion: tidegate.io/v1alpha1
kind: RunPlan
spec:
  target: {kind: Deployment, name: podinfo, layout: inPlace}
  traffic:
    router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}
    settle: 5s
    drain: 30s
  phases:
  - name: testers
    expose:
      headers:
      - x-canary: always
        x-team: shop
    soak: 5m
  promotion: {bake: 30m}
  onFailure: {revert: pullRequest}
  progressDeadline: 10m
";
    let plan = parse_plan(text.as_bytes()).unwrap();
    let exact = |value: &str| HeaderValue::Exact(value.to_owned());
    let wanted = [("x-canary".to_owned(), exact("always")), ("x-team".to_owned(), exact("shop"))];
    assert_eq!(plan.phases[0].expose.headers, BTreeSet::from([BTreeMap::from(wanted)]));
    assert!(print_plan(&plan).contains("      headers:\n      - x-canary: always\n        x-team: shop\n"));
}

#[test]
fn a_pattern_comes_back_and_one_of_a_newer_kind_is_not_taken_for_another() {
    let mut plan = fixture::plan();
    let regex = HeaderValue::Regex { regex: "^a|b$".to_owned() };
    plan.phases[0].expose.headers = BTreeSet::from([BTreeMap::from([("x-canary".to_owned(), regex)])]);
    let text = print_plan(&plan);
    assert!(text.contains("x-canary:\n          regex: ^a|b$\n"), "{text}");
    assert_eq!(parse_plan(text.as_bytes()).unwrap(), plan);
    for newer in [text.replace("regex:", "glob:"), text.replace("regex:", "ignoreCase: true\n          regex:")] {
        assert!(parse_plan(newer.as_bytes()).is_err(), "{newer}");
    }
}

/// Open runs go on after an upgrade: these are the words of versions that knew one router for each kind.
#[test]
fn a_plan_whose_target_has_units_reads_and_is_written_as_ever() {
    for (word, kind) in [("partition", UnitKind::StatefulSet), ("onDelete", UnitKind::DaemonSet)] {
        let mut plan = fixture::plan();
        plan.traffic.as_mut().unwrap().router = Router::Units(kind);
        let text = print_plan(&plan);
        assert!(text.contains(&format!("    router: {word}\n")), "{text}");
        assert_eq!(parse_plan(text.as_bytes()).unwrap(), plan);
        let newer = text.replace(&format!("router: {word}"), "router: someday");
        assert!(parse_plan(newer.as_bytes()).is_err(), "{newer}");
    }
}

/// A set with one file per name.
fn files(id: &SetId, names: &[&str]) -> (SetId, Arc<Set>) {
    let blob: BlobId = "b".repeat(40).parse().unwrap();
    let files = names.iter().map(|name| (name.parse().unwrap(), (blob.clone(), Arc::from(*b"x"))));
    let (revision, pods): (Revision, PodsDigest) = (fixture::revision(1), fixture::pods(1));
    (
        id.clone(),
        Arc::new(Set {
            id: id.clone(),
            files: files.collect(),
            objects: BTreeMap::new(),
            tracked: BTreeMap::new(),
            layers: Vec::new(),
            revision,
            pods,
        }),
    )
}

fn shown(edits: &BTreeMap<RepoPath, FileEdit>) -> String {
    let line = |(path, edit): (&RepoPath, &FileEdit)| match edit {
        FileEdit::Write(_) => format!("write  {path}"),
        FileEdit::Blob(_) => format!("blob   {path}"),
        FileEdit::Remove => format!("remove {path}"),
        FileEdit::RemoveDir => format!("rmdir  {path}"),
    };
    edits.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_new_run_brings_its_plan_and_its_set() {
    let sets = BTreeMap::from([files(&set(7), &["podinfo.yaml", "conf/app.yaml"])]);
    let plan = fixture::plan();
    let made = edits(Some(&steady()), Some(&open()), &sets, Some(&plan)).unwrap();
    insta::assert_snapshot!(shown(&made), @r"
    write  rollouts/shop/podinfo/runs/7-07070707.yaml
    blob   rollouts/shop/podinfo/sets/070707070707/conf/app.yaml
    blob   rollouts/shop/podinfo/sets/070707070707/podinfo.yaml
    write  rollouts/shop/podinfo/state.yaml
    ");
    assert!(edits(Some(&open()), Some(&open()), &BTreeMap::new(), None).unwrap().is_empty());
    let none = edits(Some(&steady()), Some(&open()), &BTreeMap::new(), Some(&plan));
    assert!(matches!(none, Err(RecordError::MissingSet(missing)) if missing == set(7)));
    let none = edits(Some(&steady()), Some(&open()), &sets, None);
    assert!(matches!(none, Err(RecordError::MissingPlan(missing)) if missing == run(7)));
}

#[test]
fn the_end_of_a_run_takes_its_plan_and_its_set_away() {
    let mut after = open();
    super::super::history::end_run(&mut after, Outcome::Superseded, "no", time("11:00:00"));
    after.clusters = steady().clusters;
    let made = edits(Some(&open()), Some(&after), &BTreeMap::new(), None).unwrap();
    insta::assert_snapshot!(shown(&made), @r"
    remove rollouts/shop/podinfo/runs/7-07070707.yaml
    rmdir  rollouts/shop/podinfo/sets/070707070707
    write  rollouts/shop/podinfo/state.yaml
    ");
    // To undo the change of a run that was taken back, its set is needed.
    let mut back = open();
    super::super::history::end_run(&mut back, Outcome::Aborted, "no", time("11:00:00"));
    back.clusters = steady().clusters;
    let made = edits(Some(&open()), Some(&back), &BTreeMap::new(), None).unwrap();
    assert!(!shown(&made).contains("sets/"), "{}", shown(&made));
    // As long as a cluster still runs it, the set stays.
    after.clusters = open().clusters;
    let made = edits(Some(&open()), Some(&after), &BTreeMap::new(), None).unwrap();
    assert!(!shown(&made).contains("sets/"), "{}", shown(&made));
}

#[test]
fn a_record_goes_with_all_that_is_its() {
    let made = edits(Some(&open()), None, &BTreeMap::new(), None).unwrap();
    assert_eq!(shown(&made), "rmdir  rollouts/shop/podinfo");
    assert!(edits(None, None, &BTreeMap::new(), None).unwrap().is_empty());
}

#[test]
fn a_first_record_pins_all_that_it_names() {
    let first = RolloutState { history: Vec::new(), ..steady() };
    let sets = BTreeMap::from([files(&set(6), &["podinfo.yaml"])]);
    let made = edits(None, Some(&first), &sets, None).unwrap();
    assert_eq!(
        shown(&made),
        "blob   rollouts/shop/podinfo/sets/060606060606/podinfo.yaml\nwrite  rollouts/shop/podinfo/state.yaml"
    );
}

#[test]
fn sets_that_would_share_a_directory_are_refused() {
    let twin: SetId = format!("{}{}", "07".repeat(6), "aa".repeat(14)).parse().unwrap();
    let mut after = open();
    after.run.as_mut().unwrap().to = twin.clone();
    let sets = BTreeMap::from([files(&set(7), &["a.yaml"]), files(&twin, &["a.yaml"])]);
    let made = edits(Some(&steady()), Some(&after), &sets, Some(&fixture::plan()));
    assert!(matches!(made, Err(RecordError::Collision(..))), "{made:?}");
}

/// Digits that read like numbers in YAML: `1e10…`, all decimal, leading zeros.
fn tricky_hex(len: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(prop::sample::select("0123456789e".chars().collect::<Vec<_>>()), len),
        proptest::collection::vec(prop::sample::select("0123456789abcdef".chars().collect::<Vec<_>>()), len),
    ]
    .prop_map(String::from_iter)
}

fn tricky_name() -> impl Strategy<Value = String> {
    let words = vec![
        "null",
        "true",
        "yes",
        "no",
        "on",
        "y",
        "n",
        "off",
        "1",
        "0",
        "007",
        "1e3",
        "0x1f",
        "0b1",
        "1-1",
        "2026-11-25",
    ];
    prop_oneof![prop::sample::select(words).prop_map(str::to_owned), "[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_record_comes_back(
        phase in prop::sample::select(phases()),
        ids in (tricky_hex(40), tricky_hex(40), tricky_hex(64), tricky_hex(16), tricky_hex(8)),
        names in (tricky_name(), tricky_name(), tricky_name()),
        why in "(?s).{0,60}|\\PC{0,30}",
        key in "[ -~]{1,12}",
        seconds in 0_i64..4_000_000_000,
        numbers in (0..=MAX_SEQ, 0..=MAX_RUN, 0_u8..=100),
    ) {
        let mut state = RolloutState { phase, seq: numbers.0, next_run: numbers.1, ..open() };
        let at = Time::from_timestamp(seconds, 0).unwrap();
        state.metadata = RolloutId { namespace: names.0.parse().unwrap(), name: names.1.parse().unwrap() };
        state.source.commit = ids.0.parse().unwrap();
        let promoted = state.promoted.as_mut().unwrap();
        promoted.set = ids.1.parse().unwrap();
        promoted.revision = format!("v1:sha256:{}", ids.2).parse().unwrap();
        promoted.pods = ids.3.parse().unwrap();
        promoted.at = at;
        promoted.run = format!("{}-{}", numbers.1 % 1_000, ids.4).parse().unwrap();
        let run = state.run.as_mut().unwrap();
        run.approved.push(names.2.parse().unwrap());
        run.baseline = BTreeMap::from([(names.2.parse().unwrap(), numbers.1)]);
        state.conditions.push(fixture::condition(&why, &why, at));
        state.writer.version = why.clone();
        let split = &mut state.clusters.values_mut().next().unwrap().posture.split;
        split.weight = numbers.2.try_into().unwrap();
        split.headers.insert(BTreeMap::from([(key, HeaderValue::Exact(why))]));
        let text = print_state(&state);
        let back = parse_state(&state.metadata, text.as_bytes());
        prop_assert_eq!(back.map_err(|e| format!("{e}\n{text}")), Ok(state));
    }
}

#[test]
fn a_record_at_rest_is_small() {
    let text = print_state(&RolloutState { refused: Vec::new(), ..steady() });
    assert!(text.len() < 2_048, "{} bytes\n{text}", text.len());
}

#[test]
fn the_places_of_files() {
    let paths = paths(&id());
    assert_eq!(paths.state.as_str(), "rollouts/shop/podinfo/state.yaml");
    assert_eq!(paths.plan(&run(7)).as_str(), "rollouts/shop/podinfo/runs/7-07070707.yaml");
    let deep: RepoPath = vec!["d"; 30].join("/").parse().unwrap();
    assert!(paths.set_file(&set(7), &deep).is_err());
    assert_eq!(readme().as_str(), "README.md");
}

/// A plan as the versions before webhooks wrote it, which may be that of an open run.
#[test]
fn a_check_of_an_older_plan_is_read_and_written_as_it_was() {
    let checks = "checks:\n    errors:\n      prometheus:\n        provider: main\n        query: errors\n      max: 0.01\n      \
        interval: 1m\n      minSamples: 2\n      failureLimit: 0\n      onNoData: hold\n";
    let text = print_plan(&fixture::plan());
    let old = text.replace("  progressDeadline: 10m\n", &format!("  progressDeadline: 10m\n  {checks}"));
    assert_ne!(old, text);
    let plan = parse_plan(old.as_bytes()).unwrap();
    assert_eq!(plan.checks.len(), 1);
    assert_eq!(print_plan(&plan), old);
}

#[test]
fn a_webhook_comes_back_and_has_no_bounds() {
    let with = |check: &str| {
        let text = print_plan(&fixture::plan());
        let checks = format!("  progressDeadline: 10m\n  checks: {{smoke: {{{check}}}}}\n");
        parse_plan(text.replace("  progressDeadline: 10m\n", &checks).as_bytes())
    };
    let plan = with("webhook: {provider: tester, metadata: {suite: smoke}}, interval: 1m, onNoData: fail").unwrap();
    assert_eq!(parse_plan(print_plan(&plan).as_bytes()).unwrap(), plan);
    for (wrong, why) in [
        ("webhook: {provider: tester}, max: 1", "a webhook has no bounds and no samples"),
        ("webhook: {provider: tester}, failureLimit: 0", "a webhook has no bounds and no samples"),
        ("interval: 1m", "a check either measures or asks a webhook"),
        ("webhook: {provider: t}, prometheus: {provider: t, query: q}", "a check either measures or asks a webhook"),
    ] {
        let error = with(wrong).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

/// Whatever a record says at each place where it has a time.
fn with_times(said: &str) -> Vec<(String, Value)> {
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, below)| places(below, &format!("{at}/{key}"), found)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(n, below)| places(below, &format!("{at}/{n}"), found));
            }
            Value::String(text) => found.extend(text.parse::<Time>().is_ok().then(|| at.to_owned())),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let (record, mut found) = (to_json(&open()), Vec::new());
    places(&record, "", &mut found);
    let at = |place: String| {
        let mut record = record.clone();
        *record.pointer_mut(&place).unwrap() = said.into();
        (place, record)
    };
    found.into_iter().map(at).collect()
}

#[test]
fn a_time_that_nobody_means_makes_one_record_unreadable() {
    let read = |record: &Value| parse_state(&open().metadata, to_yaml(record).as_bytes());
    for far in ["+262142-12-31T23:59:59Z", "-262143-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
        let records = with_times(far);
        assert!(records.len() > 8, "{records:?}");
        for (place, record) in records {
            assert!(matches!(read(&record), Err(RecordError::Fields(_))), "{place}: {far}");
        }
    }
    for (place, record) in with_times("1970-01-01T00:00:00Z") {
        assert!(read(&record).is_ok(), "{place}: as a machine without a clock says it");
    }
}

#[test]
fn a_number_that_no_run_can_have_makes_one_record_unreadable() {
    let read = |next_run| {
        let state = RolloutState { next_run, ..open() };
        parse_state(&state.metadata, print_state(&state).as_bytes())
    };
    assert!(matches!(read(u32::MAX), Err(RecordError::NextRun(u32::MAX))));
    assert!(matches!(read(1_000_000_000), Err(RecordError::NextRun(_))));
    assert!(read(999_999_999).is_ok());
}
