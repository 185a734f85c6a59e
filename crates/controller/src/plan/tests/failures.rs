//! What goes wrong, and how a rollout comes back from it.

use super::manifests::{CANARY, QUICK, REPLICAS, set};
use super::world::{Gateway, Pods, World};
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{Kind, SEQ};
use crate::plan::action::Verb;
use crate::plan::draft::RecordChange;
use crate::plan::evidence::Entangled;
use crate::plan::input::Desired;
use crate::record::state::Outcome;
use crate::workload::live;
use std::collections::BTreeSet;

#[test]
fn c_21_a_candidate_that_never_gets_ready_goes_back() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.behave("app:2", Pods::Stuck);
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["CandidateNotReady"]));
    world.pass(601);
    assert_eq!(world.phase(), "Failed");
    assert_eq!((world.image("podinfo"), world.image("podinfo-canary")), (Some("app:1"), None));
    assert!(world.marked().is_empty(), "{:?}", world.marked());
    insta::assert_snapshot!(world.log.join("\n"));
}

#[test]
fn x_5_a_candidate_that_loses_its_endpoints_at_a_tenth_goes_back_at_once() {
    let mut world = World::at_tenth();
    world.behave("app:2", Pods::Stuck);
    world.settle();
    assert_eq!(world.weight(), 0);
    assert!(world.phase().starts_with("Reverting"), "{:#?}", world.log);
    world.pass(31);
    assert_eq!(world.phase(), "Failed");
    assert_eq!(world.proposals.len(), 1, "a revert of main is proposed");
    assert_eq!(world.waits(), vec!["Refused"]);
}

#[test]
fn c_21_traffic_goes_first_then_the_record_then_the_pods() {
    let mut world = World::at_tenth();
    world.behave("app:2", Pods::Stuck);
    world.controllers();
    let plan = world.plan_now();
    let kinds: Vec<Kind> = plan.retreats.iter().map(|action| action.verb.target().kind).collect();
    let marked = [Kind::ConfigMap, Kind::Deployment];
    assert_eq!(kinds, [&[Kind::HttpRoute][..], &marked].concat(), "the route, then marks on stable");
    assert!(plan.actions.is_empty());
    let RecordChange::Write { state, .. } = plan.record else { panic!("a record") };
    let ceiling = state.clusters.values().next().map(|c| c.posture.split.weight.get());
    assert_eq!(ceiling, Some(10), "the record is lowered only after live was read lower");
}

#[test]
fn n_4_c_11_a_known_bad_revision_is_not_started_again_and_another_is_once() {
    let mut world = World::failed();
    world.pass(86_400);
    assert_eq!((world.waits(), world.record().next_run), (vec!["Refused"], 2));
    world.want(QUICK, set("3"));
    let lost = world.plan_now();
    assert_eq!(lost.record, world.plan_now().record, "a lost push starts the same run again");
    world.settle();
    assert_eq!(
        (world.phase().as_str(), world.record().next_run),
        ("Progressing(tenth)", 3),
        "one run for other content"
    );
}

#[test]
fn n_5_retry_lifts_a_refusal() {
    let mut world = World::failed();
    world.behave("app:2", Pods::Ready);
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{:#?}", world.log);
    assert!(world.proposals.is_empty(), "the revert asks for nothing any more: {:?}", world.proposals);
}

#[test]
fn x_5_a_change_on_main_that_cannot_be_undone_is_told_until_main_needs_it_no_more() {
    let mut world = World::failed();
    // As if the branch had met other changes.
    world.proposals.clear();
    let Desired::Wanted(rollout) = &world.desired else { panic!("it is wanted") };
    let files = BTreeSet::from(["teams/shop/podinfo/app.yaml".parse().unwrap()]);
    let run = world.record().last_run.unwrap().id;
    let entangled = Entangled { run, wanted: rollout.set.id.clone(), files };
    world.record.as_mut().unwrap().revert = None;
    world.evidence.entangled = Some(entangled);
    world.settle();
    assert_eq!((world.waits(), world.proposals.len()), (vec!["RevertConflict", "Refused"], 0));
    let told = |world: &World| {
        let all = world.record().conditions;
        all.into_iter().find(|condition| condition.reason == "RevertConflict").map(|condition| condition.message)
    };
    assert!(told(&world).unwrap().ends_with(": teams/shop/podinfo/app.yaml"));

    // A new leader does not know: it tries again, and what is told stays meanwhile.
    let known = world.evidence.entangled.take();
    let plan = world.plan_now();
    assert_eq!((&plan.record, plan.proposals.len()), (&RecordChange::Keep, 1));

    // Main is put right.
    world.evidence.entangled = known;
    world.want(QUICK, set("1"));
    world.settle();
    assert_eq!((world.waits(), told(&world)), (vec![], None));
}

#[test]
fn c_8_main_back_at_the_promoted_version_ends_a_failure() {
    let mut world = World::failed();
    world.want(QUICK, set("1"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
    assert_eq!(world.record().next_run, 2, "no run");
}

#[test]
fn c_9_n_18_main_back_at_the_promoted_version_mid_run() {
    let mut world = World::at_tenth();
    let promoted = world.record().promoted.map(|p| p.revision);
    world.want(CANARY, set("1"));
    world.settle();
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
    assert_eq!(world.record().promoted.map(|p| p.revision), promoted);
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!(world.waits(), vec!["Approval"], "A→B→A→B: nothing refused, nothing approved in advance");
}

#[test]
fn c_10_x_2_a_third_revision_mid_run_starts_over() {
    let mut world = World::at_tenth();
    world.want(CANARY, set("3"));
    world.settle();
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]), "approvals do not carry over");
    assert_eq!(world.record().history.last().map(|run| run.outcome), Some(Outcome::Superseded));
    world.approve("tenth");
    assert_eq!((world.image("podinfo-canary"), world.weight()), (Some("app:3"), 10));
}

#[test]
fn a_third_revision_waits_from_promote_on() {
    let mut world = World::at_return();
    world.want(CANARY, set("3"));
    world.pass(31);
    assert_eq!(world.image("podinfo"), Some("app:2"));
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
}

#[test]
fn c_19_a_stable_that_is_not_ready_at_promote_leaves_traffic_on_the_candidate() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(promote)", 100));
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.weight(), world.waits()), ("Failed", 100, vec!["OnCandidate"]));
    assert_eq!(world.image("podinfo-canary"), Some("app:2"), "the candidate is kept");
    world.only_stable_stuck = false;
    world.say(DecisionAction::Retry);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
}

#[test]
fn an_abort_on_the_candidate_restores_stable_before_traffic_goes_back() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    world.pass(601);
    world.say(DecisionAction::Abort);
    world.tick();
    world.tick();
    assert_eq!((world.image("podinfo"), world.weight()), (Some("app:1"), 100), "restored, but not ready yet");
    world.only_stable_stuck = false;
    world.settle();
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
    assert_eq!(world.waits(), vec!["Refused"], "an aborted revision is refused");
}

#[test]
fn an_abort_beside_a_retry_is_followed() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    world.pass(601);
    assert_eq!(world.waits(), vec!["OnCandidate"]);
    world.only_stable_stuck = false;
    world.say(DecisionAction::Retry);
    world.say(DecisionAction::Abort);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:#?}", world.log);
    assert_eq!(world.waits(), vec!["Refused"]);
}

#[test]
fn a_retreat_names_the_record_that_was_read_not_the_one_that_may_never_be_written() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    world.say(DecisionAction::Abort);
    // The decision changes the record in the same plan; the retreat goes out before that is pushed, and it may not be.
    let (plan, seq) = (world.plan_now(), world.record().seq);
    assert!(matches!(plan.record, RecordChange::Write { .. }) && !plan.retreats.is_empty());
    for action in &plan.retreats {
        let Verb::Apply { object, .. } = &action.verb else { panic!("{action:?}") };
        let relied_on: u64 = object.annotation(SEQ).unwrap().parse().unwrap();
        assert!(relied_on <= seq, "{}: {relied_on} after {seq}", action.why);
    }
}

#[test]
fn refused_by_admission_fails_with_nothing_exposed() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.refused_images.insert("app:2".to_owned());
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Failed", None));
    assert_eq!(world.weights, vec![0]);
    assert!(world.record().history[0].why.contains("admission webhook denied"), "{:?}", world.record().history);
}

#[test]
fn n_7_n_8_x_13_an_outage_never_refuses_a_revision() {
    for outcome in [
        live::WriteOutcome::Retriable("503".to_owned()),
        live::WriteOutcome::Forbidden("cannot patch".to_owned()),
        live::WriteOutcome::MissingKind(Kind::HttpRoute),
        live::WriteOutcome::Stale("409".to_owned()),
    ] {
        let mut world = World::new(QUICK, "1");
        world.settle();
        world.want(QUICK, set("2"));
        world.outage = Some(outcome.clone());
        for _ in 0..20 {
            world.now += chrono::TimeDelta::seconds(60);
            world.evidence.dry_runs.clear();
            world.tick();
        }
        assert_eq!(world.phase(), "Waiting", "{outcome:?}");
        assert_eq!(
            world.record().promoted.map(|p| p.revision),
            Some(set("1").revision.clone()),
            "nothing done on a time-out"
        );
        assert!(world.record().refused.is_empty());
        world.outage = None;
        world.evidence.dry_runs.clear();
        world.settle();
        assert_eq!(world.phase(), "Progressing(tenth)");
    }
}

#[test]
fn n_7_writes_that_time_out_are_tried_again_and_record_nothing() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    while world.phase() != "Progressing(prepare)" {
        world.tick();
    }
    world.outage = Some(live::WriteOutcome::Retriable("time-out".to_owned()));
    for _ in 0..5 {
        world.now += chrono::TimeDelta::seconds(10);
        world.tick();
    }
    assert_eq!(world.phase(), "Progressing(prepare)");
    let size = |w: &World| w.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
    assert_eq!(size(&world), Some(0));
    world.outage = None;
    world.pass(10);
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn a_refused_route_goes_back() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    world.gateway = Gateway::Refuse;
    world.settle();
    assert!(
        world.record().history.iter().any(|run| run.outcome == Outcome::Failed)
            || world.phase().starts_with("Reverting")
    );
    assert_eq!(world.weights, vec![0]);
    world.gateway = Gateway::On;
    world.pass(1);
    assert_eq!(world.phase(), "Failed");
}

#[test]
fn x_15_clocks_run_only_while_the_route_stands() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.gateway = Gateway::Off;
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["RouteNotEffective"]));
    world.pass(3_600);
    assert_eq!(world.phase(), "Progressing(prepare)", "a silent gateway holds, it never fails a version");
    world.gateway = Gateway::On;
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn x_14_time_counts_only_while_observed() {
    let mut world = World::at_tenth();
    let start = world.now;
    world.now += chrono::TimeDelta::seconds(3_600);
    world.gaps.push((start, world.now));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "an hour without us is no soak");
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
}

#[test]
fn x_14_a_deadline_pauses_while_nobody_observes() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.behave("app:2", Pods::Stuck);
    world.want(QUICK, set("2"));
    world.settle();
    let start = world.now;
    world.now += chrono::TimeDelta::seconds(3_600);
    world.gaps.push((start, world.now));
    world.settle();
    assert_eq!(world.phase(), "Progressing(prepare)");
    world.pass(601);
    assert_eq!(world.phase(), "Failed");
}

#[test]
fn x_6_without_git_only_retreats_run_and_git_learns_of_them_afterwards() {
    let mut world = World::at_tenth();
    world.without_git();
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "nothing advances");
    world.behave("app:2", Pods::Stuck);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 0), "traffic went back at once");
    world.behave("app:2", Pods::Ready);
    world.settle();
    assert_eq!(world.weight(), 0);
    let commits = world.log.len();
    world.with_git();
    world.settle();
    assert_eq!(world.log[commits].split(':').next(), Some("Progressing → Reverting"), "{:?}", &world.log[commits..]);
    world.pass(31);
    assert_eq!(world.phase(), "Failed", "the mark stands, whatever the evidence says now");
}

#[test]
fn a_retreat_that_was_never_recorded_still_ends_its_run() {
    let mut world = World::at_tenth();
    world.behave("app:2", Pods::Stuck);
    world.controllers();
    let plan = world.plan_now();
    for action in &plan.retreats {
        world.write(action);
    }
    world.behave("app:2", Pods::Ready);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 0));
    assert!(world.record().refused[0].why.contains("no ready endpoint"), "the mark tells why");
}

#[test]
fn x_12_a_paused_leaders_advance_is_stale_after_a_retreat() {
    let mut world = World::at_tenth();
    world.now += chrono::TimeDelta::seconds(306);
    let mut paused = world.clone();
    while paused.plan_now().actions.iter().all(|a| a.verb.target().kind != Kind::HttpRoute) {
        paused.tick();
    }
    let late = paused.plan_now().actions;
    world.behave("app:2", Pods::Stuck);
    world.settle();
    assert_eq!(world.weight(), 0);
    for action in &late {
        world.try_late(action);
    }
    assert_eq!(world.weight(), 0, "{:?}", world.log.last());
}

#[test]
fn a_plan_from_an_older_record_than_live_names_is_dropped_whole() {
    let mut world = World::at_tenth();
    let old = world.clone();
    world.pass(306);
    let mut stale = old.clone();
    stale.live = world.live.clone();
    stale.behave("app:2", Pods::Stuck);
    let plan = stale.plan_now();
    assert_eq!(plan.waits.iter().map(|w| w.reason.as_str()).collect::<Vec<_>>(), vec!["StaleRead"]);
    assert!(plan.retreats.is_empty() && plan.actions.is_empty());
}

#[test]
fn a_retreat_that_the_cluster_does_not_take_is_told() {
    let mut world = World::at_tenth();
    world.behave("app:2", Pods::Stuck);
    world.outage = Some(live::WriteOutcome::Forbidden("cannot patch httproutes".to_owned()));
    for _ in 0..3 {
        world.tick();
    }
    assert!(world.waits().contains(&"RetreatBlocked"), "{:?}", world.plan_now().waits);
    world.outage = None;
    world.settle();
    assert_eq!(world.weight(), 0);
}

#[test]
fn the_brake_holds_and_takes_back() {
    let mut world = World::at_tenth();
    world.brake = Ok(Some(BrakeWord::Hold));
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.waits(), world.weight()), ("Waiting(tenth)", vec!["Brake"], 10));
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.weight()), ("Steady", 0));
    assert_eq!(world.record().history.last().map(|run| run.outcome), Some(Outcome::Aborted));
}

#[test]
fn a_brake_that_was_not_read_yet_holds_and_says_so() {
    let mut world = World::at_tenth();
    world.brake = Ok(Some(BrakeWord::Hold));
    world.pass(306);
    let told = world.record().conditions.clone();
    let commits = world.log.len();
    // A new process asks for it anew.
    world.brake = Err("not asked yet".to_owned());
    world.pass(60);
    assert_eq!((world.phase().as_str(), world.waits(), world.weight()), ("Waiting(tenth)", vec!["ClusterAway"], 10));
    assert_eq!((&world.record().conditions, world.log.len()), (&told, commits), "{:#?}", world.log);
}

#[test]
fn a_brake_works_without_git() {
    let mut world = World::at_tenth();
    world.without_git();
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!(world.weight(), 0);
}

#[test]
fn by_pods_the_deadline_judges_pods_that_are_on_their_way() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.behave("app:2", Pods::Stuck);
    world.want(REPLICAS, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(fifth)", vec!["CandidateNotReady"]));
    let mut slow = world.clone();
    slow.behave("app:2", Pods::Ready);
    slow.settle();
    assert_eq!((slow.phase().as_str(), slow.waits()), ("Progressing(fifth)", vec!["Soak"]));
    world.pass(601);
    world.pass(31);
    assert_eq!(world.phase(), "Failed", "{:#?}", world.log);
}

#[test]
fn by_pods_a_run_goes_back_from_every_step() {
    for step in ["Progressing(fifth)", "Progressing(half)", "Promoting(shift)"] {
        let mut world = World::new(REPLICAS, "1");
        world.settle();
        world.want(REPLICAS, set("2"));
        world.settle();
        while world.phase() != step {
            world.pass(1);
        }
        world.behave("app:2", Pods::Stuck);
        world.settle();
        world.pass(31);
        assert_eq!(world.phase(), "Failed", "{:#?}", world.log);
        assert_eq!((world.image("podinfo"), world.image("podinfo-canary")), (Some("app:1"), None));
    }
}
