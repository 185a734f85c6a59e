//! People's decisions, gates, and hands in the cluster.

use super::manifests::{CANARY, QUICK, WINDOWED, id, set, set_with};
use super::world::{MANAGER, World};
use crate::gate::schedule::{FreezeSpan, Window};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Suspend;
use crate::manifest::duration::Span;
use crate::manifest::object::{Kind, OWNER};
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::plan::draft::RecordChange;
use crate::plan::input::{Desired, MayStart};
use crate::record::state::Outcome;
use serde_json::json;

fn window(cron: &str) -> Window {
    Window::new(cron, Span::from_secs(3_600), chrono_tz::UTC).unwrap()
}

#[test]
fn c_14_a_closed_gate_keeps_the_weight_and_an_open_one_goes_on_from_there() {
    let mut world = World::new(WINDOWED, "1");
    world.policy.windows.insert("night".parse().unwrap(), window("0 22 * * *"));
    world.settle();
    world.want(WINDOWED, set("2"));
    world.settle();
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.weight(), world.waits()), ("Waiting(tenth)", 10, vec!["Window"]));
    let until = world.plan_now().waits[0].until;
    assert_eq!(until.map(|t| t.to_rfc3339()), Some("2026-03-02T22:00:00+00:00".to_owned()), "the earliest opening");
    world.pass(12 * 3_600);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50));
}

#[test]
fn c_15_a_gate_that_closes_later_stops_no_step_that_was_entered() {
    let mut world = World::at_shift();
    world.policy.freezes.insert("now".parse().unwrap(), FreezeSpan { window: window("* * * * *"), tenants: [].into() });
    world.pass(66);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
}

#[test]
fn x_2_where_nobody_knows_what_was_said_before_the_run_a_no_is_heard_and_a_yes_is_not() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    // The branch was squashed, and the cache is another one.
    world.at_start = None;
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["DecisionsUnreadable", "Approval"]));
    world.say(DecisionAction::Hold);
    world.settle();
    assert!(world.record().run.is_some_and(|run| run.held), "{:?}", world.waits());
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.record().history.last().map(|past| past.outcome), Some(Outcome::Aborted), "{:?}", world.log);
    assert_eq!(world.image("podinfo"), Some("app:1"));
}

#[test]
fn c_16_x_4_a_denied_gate_asks_nothing_again_before_resume() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    let branch = world.proposals.keys().next().cloned().unwrap();
    world.proposals.remove(&branch);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Denied"]), "deleted unmerged means no");
    let commits = world.log.len();
    world.pass(86_400);
    assert_eq!(world.log.len(), commits);
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.waits(), vec!["Approval"]);
    assert_eq!(world.proposals.len(), 1);
}

#[test]
fn x_3_a_request_is_found_before_it_is_made() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    world.pass(600);
    let asked = world.log.iter().filter(|line| line.starts_with("proposes")).count();
    assert_eq!((asked, world.proposals.len()), (1, 1));
}

#[test]
fn every_unmet_condition_is_told() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.policy.freezes.insert("now".parse().unwrap(), FreezeSpan { window: window("* * * * *"), tenants: [].into() });
    world.policy.may_start = MayStart::No { limit: 3 };
    world.want(CANARY, set("2"));
    world.suspend(Suspend::Yes);
    world.settle();
    assert_eq!(world.waits(), vec!["Suspended", "Freeze", "Approval", "Concurrency"]);
    assert_eq!(world.record().conditions.len(), 4, "and the record tells it without a cluster");
}

#[test]
fn hold_bars_the_next_step_and_resume_lifts_it() {
    let mut world = World::at_tenth();
    world.say(DecisionAction::Hold);
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting(tenth)", vec!["Held"]));
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.phase(), "Progressing(half)");
}

#[test]
fn abort_takes_a_run_back_and_refuses_its_revision() {
    let mut world = World::at_tenth();
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["Refused"]));
    assert_eq!(world.record().history.last().map(|run| run.outcome), Some(Outcome::Aborted));
}

#[test]
fn an_abort_before_anything_was_made_makes_nothing() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
    assert_eq!(world.waits(), vec!["Refused"]);
}

#[test]
fn x_2_a_word_counts_once_and_only_for_its_run() {
    let mut world = World::at_tenth();
    let consumed = world.record().consumed.len();
    world.settle();
    assert_eq!(world.record().consumed.len(), consumed);
    world.want(CANARY, set("3"));
    world.settle();
    world.pass(31);
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!(world.waits(), vec!["Approval"], "the same content in another run is asked again");
}

#[test]
fn a_hand_that_raises_the_weight_is_brought_down_to_the_record() {
    let mut world = World::at_tenth();
    world.edit(Kind::HttpRoute, "podinfo", |route| {
        route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 50.into();
        route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 50.into();
    });
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    assert!(world.marked().is_empty(), "this is not going back");
}

#[test]
fn c_20_a_hand_that_lowers_the_weight_holds_the_run_and_costs_that_time_only() {
    let mut world = World::at_tenth();
    world.pass(200);
    world.edit(Kind::HttpRoute, "podinfo", |route| {
        route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 95.into();
        route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 5.into();
    });
    world.settle();
    world.pass(3_600);
    assert_eq!(
        (world.phase().as_str(), world.weight(), world.waits()),
        ("Progressing(tenth)", 5, vec!["LoweredByHand"])
    );
    world.edit(Kind::HttpRoute, "podinfo", |route| {
        route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 90.into();
        route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 10.into();
    });
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak"]));
    world.pass(100);
    assert_eq!(world.phase(), "Progressing(tenth)", "the time in which it was not in force does not count");
    // The route settles twice.
    world.pass(11);
    assert_eq!(world.phase(), "Progressing(half)");
}

#[test]
fn x_16_drift_is_shown_during_a_run_and_put_back_at_rest() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.edit(Kind::Service, "podinfo", |service| service["spec"]["ports"][0]["targetPort"] = 9999.into());
    world.settle();
    assert_eq!(world.get(Kind::Service, "podinfo").and_then(|s| s.int("/spec/ports/0/targetPort")), Some(8080));
    let mut world = World::at_tenth();
    world.edit(Kind::Service, "podinfo", |service| service["spec"]["ports"][0]["targetPort"] = 9999.into());
    world.settle();
    assert_eq!(world.get(Kind::Service, "podinfo").and_then(|s| s.int("/spec/ports/0/targetPort")), Some(9999));
    assert_eq!(world.waits(), vec!["Drifted", "Soak"]);
}

#[test]
fn first_sight_takes_over_what_is_equal_and_restarts_nothing() {
    let mut world = World::new(CANARY, "1");
    world.exists(&set("1"));
    let before = world.get(Kind::Deployment, "podinfo").and_then(|d| d.generation());
    world.settle();
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.generation()), before);
    assert_eq!(world.owned(), 4);
}

#[test]
fn first_sight_writes_nothing_where_live_differs() {
    let mut world = World::new(CANARY, "1");
    world.exists(&set_with("1", |all| all[1]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:0")));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["AdoptionDiffers"], 0));
    assert!(world.plan_now().waits[0].message.contains("app:0"), "{:?}", world.plan_now().waits);
    world.exists(&set("1"));
    world.evidence.dry_runs.clear();
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn one_applier_per_object() {
    let mut world = World::new(CANARY, "1");
    world.exists(&set("1"));
    world.edit(Kind::Service, "podinfo", |s| {
        s["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "shop"});
    });
    world.settle();
    assert_eq!((world.waits(), world.owned()), (vec!["ForeignApplier"], 0));
    world.edit(Kind::Service, "podinfo", |s| s["metadata"]["annotations"] = json!({OWNER: "prod/shop/other"}));
    world.settle();
    assert_eq!((world.waits(), world.owned()), (vec!["OwnedByOther"], 1));
}

#[test]
fn our_marks_without_a_record_are_a_lost_state() {
    let mut world = World::at_tenth();
    (world.record, world.plan) = (None, None);
    let plan = world.plan_now();
    assert!(plan.waits.iter().all(|w| w.reason.as_str() == "StateLost"), "{:?}", plan.waits);
    assert_eq!((plan.record, plan.actions, plan.retreats), (RecordChange::Keep, vec![], vec![]), "nothing is written");
}

#[test]
fn what_is_refused_does_not_hide_a_lost_state() {
    let mut world = World::at_tenth();
    (world.record, world.plan) = (None, None);
    // The Deployment does not say any more that it is ours, and what main wants of it is refused.
    world.edit(Kind::Deployment, "podinfo", |d| d["metadata"]["annotations"] = json!({}));
    world.refused_images.insert("app:2".to_owned());
    world.settle();
    assert!(world.record.is_none(), "a blank record would hide the lost one");
    assert!(world.waits().contains(&"StateLost"), "{:?}", world.waits());
}

#[test]
fn x_9_a_broken_file_keeps_the_last_good_state_and_enters_nothing_new() {
    let mut world = World::at_tenth();
    let good = world.desired.clone();
    world.desired = Desired::Rejected("teams/shop/podinfo/rollout.yaml:3:1: unknown field aproval".to_owned());
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("Waiting(tenth)", 10), "it may say suspend: true");
    assert_eq!(world.record().conditions[0].reason, "Rejected");
    assert_eq!(world.waits(), ["Rejected"]);
    world.desired = good;
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50), "the run keeps its plan");
}

#[test]
fn x_8_a_main_that_cannot_be_read_ends_nothing() {
    let mut world = World::at_tenth();
    world.desired = Desired::Unreadable("the tree is empty".to_owned());
    world.pass(10);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
}

#[test]
fn x_10_a_record_of_another_instance_or_cluster_is_not_acted_on() {
    let mut world = World::at_tenth();
    world.live.cluster_uid = "cluster-2".to_owned();
    assert_eq!(world.waits(), vec!["ForeignState"]);
    let mut world = World::at_tenth();
    world.record.as_mut().unwrap().writer.instance = "other".parse().unwrap();
    assert_eq!(world.waits(), vec!["ForeignState"]);
}

#[test]
fn attack_50_deletions_beyond_the_policys_limit_wait_for_a_person() {
    let many = |version: &str, n: usize| {
        set_with(version, |all| {
            for i in 0..n {
                all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("extra-{i}")}, "data": {}}));
            }
        })
    };
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, many("1", 7));
    world.settle();
    world.want(QUICK, many("2", 1));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["TooManyDeletions"]), "{:#?}", world.log);
    assert!(world.get(Kind::ConfigMap, "extra-5").is_some());
    world.policy.max_deletions = 10;
    world.settle();
    assert!(world.get(Kind::ConfigMap, "extra-5").is_none());
    assert!(world.get(Kind::ConfigMap, "extra-0").is_some());
}

#[test]
fn c_23_a_lost_push_leaves_nothing_behind_but_retreats() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    let plan = loop {
        let plan = world.plan_now();
        if matches!(&plan.record, RecordChange::Write { state, .. } if state.phase.name() == "Progressing") {
            break plan;
        }
        world.tick();
    };
    assert!(plan.retreats.is_empty());
    let again = world.plan_now();
    assert_eq!(plan.record, again.record, "observed again, the same is planned");
}

#[test]
fn a_foreign_selector_that_meets_the_candidates_pods_stops_it() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.exists_value(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "all"}, "spec": {"selector": {"app": "podinfo-canary"}}}));
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!(world.waits()[0], "SelectorOverlap");
    assert_eq!((world.image("podinfo-canary"), world.weights.clone()), (None, vec![0]));
    assert_eq!(id().to_string(), "shop/podinfo");
    assert!(MANAGER.starts_with("tidegate-"));
}

#[test]
fn what_covers_stables_pods_and_not_the_candidates_is_told_during_a_run_and_nothing_waits_for_it() {
    let mut world = World::new(QUICK, "1");
    let covering = |kind: &str, version: &str, selector: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "by-app"}, "spec": {selector: {"matchLabels": {"app": "podinfo"}}}});
    world.exists_value(covering("NetworkPolicy", "networking.k8s.io/v1", "podSelector"));
    world.exists_value(covering("PodDisruptionBudget", "policy/v1", "selector"));
    world.settle();
    assert_eq!(world.waits(), [""; 0], "at rest there is no candidate");
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["NotCovered", "Soak"]));
    let told = world.plan_now().waits[0].message.clone();
    assert!(told.starts_with("NetworkPolicy shop/by-app covers stable's pods"), "{told}");
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
}

#[test]
fn x_2_a_word_that_nothing_can_prove_waits_and_people_are_told_why() {
    let mut world = World::new(QUICK, "1");
    let approvers = ["ana".to_owned()].into();
    world.policy.proof = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Nothing });
    world.settle();
    for (action, waits) in [(DecisionAction::Hold, vec![]), (DecisionAction::Resume, vec!["ProofUnavailable"])] {
        let current = world.record().current();
        world.say_of(action, current);
        world.settle();
        assert_eq!(world.waits(), waits);
    }
    world.policy.proof = None;
    world.settle();
    assert!(world.waits().is_empty(), "it was heard: {:?}", world.log);
}
