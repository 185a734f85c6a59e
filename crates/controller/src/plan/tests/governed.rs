//! What the policy and the Git host have to say before a run goes on: floors, and a decisions branch that is protected.

use super::manifests::{CANARY, set, set_with};
use super::world::World;
use crate::gate::guard::Guard;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::Kind;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::{Floors, Trust};
use serde_json::{Value, json};

fn floors(asked: Value) -> Floors {
    serde_json::from_value(asked).unwrap()
}

fn said(world: &World, reason: &str) -> String {
    let plan = world.plan_now();
    plan.waits.into_iter().find(|wait| wait.reason.as_str() == reason).map(|wait| wait.message).unwrap_or_default()
}

/// At rest with version 1.
fn rested(guard: Guard) -> World {
    let mut world = World::new(CANARY, "1");
    world.policy.guard = guard;
    world.settle();
    world
}

fn open() -> Guard {
    Guard::Open { why: "no rule protects it".to_owned(), act: "set a rule".to_owned() }
}

#[test]
fn x_2_an_approval_on_a_branch_that_nobody_protects_opens_no_gate() {
    let mut world = rested(open());
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnprotected"]));
    assert_eq!(said(&world, "ApprovalUnprotected"), "tidegate/prod/decisions is not protected: no rule protects it");
    let told = world.record.as_ref().unwrap().conditions.iter().find(|c| c.reason == "ApprovalUnprotected").cloned();
    assert_eq!(told.unwrap().act.as_deref(), Some("set a rule"));
    let asked = world.proposals.clone();
    world.approve("tenth");
    let void = ["Approval", "ApprovalUnproven", "ApprovalUnprotected"];
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", void.into()));
    assert!(said(&world, "ApprovalUnproven").ends_with("it was given while the decisions branch was not protected"));
    assert_ne!(world.proposals, asked, "it is asked anew: {:?}", world.log);
    world.policy.guard = Guard::Kept;
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnproven"]));
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
    assert!(world.record.as_ref().unwrap().conditions.iter().all(|c| c.reason != "ApprovalUnprotected"));
}

/// A run that waits before `tenth`, whose branch nobody protects by now.
fn unkept() -> World {
    let mut world = rested(Guard::Kept);
    world.want(CANARY, set("2"));
    world.settle();
    world.policy.guard = open();
    world.settle();
    assert!(world.record.as_ref().unwrap().run.as_ref().unwrap().unkept);
    world
}

#[test]
fn x_2_an_approval_from_before_a_protection_was_seen_opens_no_gate_once_there_is_one() {
    // It came between the last look at the unprotected branch and the first one at the protected.
    let mut world = unkept();
    world.policy.guard = Guard::Kept;
    world.approve("tenth");
    assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"], "{:?}", world.log);
    assert!(!world.record.as_ref().unwrap().run.as_ref().unwrap().unkept);

    // A new process does not know yet what the host says: the decision waits, and then is void.
    let mut world = unkept();
    world.policy.guard = Guard::Unknown;
    world.approve("tenth");
    assert_eq!(world.record.as_ref().unwrap().consumed, []);
    world.policy.guard = Guard::Kept;
    world.settle();
    assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"], "{:?}", world.log);
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");

    // By now the policy trusts whoever may write.
    let mut world = unkept();
    world.policy.guard = Guard::Unasked;
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn x_2_c_15_a_protection_that_goes_takes_back_what_was_approved_of_later_steps() {
    let mut world = rested(Guard::Kept);
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("promotion");
    world.policy.guard = open();
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "what was entered stays");
    world.policy.guard = Guard::Kept;
    for _ in 0..4 {
        world.pass(330);
    }
    assert_eq!(world.phase(), "WaitingPromotion(half)", "phases without a gate go on: {:?}", world.log);
    assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"]);
    world.approve("promotion");
    for _ in 0..4 {
        world.pass(60);
    }
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn x_2_a_request_that_was_withdrawn_as_approved_is_no_no_once_the_approval_is_taken_back() {
    let mut world = rested(Guard::Kept);
    world.want(CANARY, set("2"));
    world.settle();
    world.hold();
    world.approve("promotion");
    assert!(world.proposals.is_empty(), "{:?}", world.log);
    world.policy.guard = open();
    world.settle();
    let run = world.record.clone().unwrap().run.unwrap();
    assert!(run.approved.is_empty() && !run.denied, "{:?}", world.log);
    assert_eq!(world.proposals.len(), 1, "it is asked anew: {:?}", world.log);
}

#[test]
fn x_2_an_approval_whose_file_has_left_the_branch_is_taken_back_as_any_other() {
    let mut world = rested(Guard::Kept);
    world.want(CANARY, set("2"));
    world.settle();
    world.hold();
    world.merge_the_request();
    assert_eq!(world.record.as_ref().unwrap().run.as_ref().unwrap().approved.len(), 1, "{:?}", world.log);
    world.files.retain(|file| file.path.file_name().contains("hold"));
    world.policy.guard = open();
    world.settle();
    let record = world.record.clone().unwrap();
    let word = record.consumed.iter().find(|word| word.action == "approve").unwrap();
    let void = word.void.clone().unwrap();
    assert_eq!(void.why, "it was given while the decisions branch was not protected");
    assert_eq!(void.through, Some("tenth".parse().unwrap()));
    assert!(record.run.unwrap().approved.is_empty());
    // What is asked anew is another decision, and counts.
    world.policy.guard = Guard::Kept;
    world.settle();
    world.merge_the_request();
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
}

#[test]
fn x_2_what_holds_and_takes_back_counts_from_an_unprotected_branch_too() {
    let mut world = unkept();
    world.say(DecisionAction::Hold);
    world.settle();
    assert!(world.waits().contains(&"Held"), "{:?}", world.waits());
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn c_15_a_protection_that_goes_stops_no_step_that_was_entered_and_no_way_back() {
    let mut world = rested(Guard::Kept);
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("promotion");
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.policy.guard = open();
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.want(CANARY, set("1"));
    world.settle();
    world.pass(60);
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn a_host_that_was_not_heard_keeps_gates_closed() {
    for (guard, waits) in
        [(Guard::Unknown, vec!["Evidence"]), (Guard::Untold("away".to_owned()), vec!["ApprovalUnprotected"])]
    {
        let mut world = rested(guard);
        world.want(CANARY, set("2"));
        world.settle();
        world.approve("promotion");
        assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", waits));
    }
}

#[test]
fn attack_85_a_rule_that_the_host_hides_opens_a_gate_only_where_reviews_prove_who_approved() {
    let hidden = || Guard::Hidden { act: "set it in a ruleset".to_owned() };
    let mut world = rested(hidden());
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnprotected"]));
    let said = said(&world, "ApprovalUnprotected");
    assert_eq!(said, "tidegate/prod/decisions has a rule, and the Git host does not tell what it asks for");
    // Who knows what the rule let through: what was approved meanwhile counts for nothing later.
    world.policy.guard = Guard::Kept;
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    assert!(world.record().run.unwrap().approved.is_empty());

    let mut world = rested(hidden());
    world.policy.proof = Some(ApprovalRule {
        approvers: ["ana".to_owned()].into(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    });
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
}

#[test]
fn a_version_whose_plan_is_below_a_floor_starts_no_run() {
    let mut world = rested(Guard::Unasked);
    world.policy.floors = floors(json!({"firstExposure": 5}));
    let log = world.log.len();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["PolicyFloor"]));
    assert!(
        said(&world, "PolicyFloor").contains("tenth is the first to get a share of all requests, 10 %"),
        "{}",
        said(&world, "PolicyFloor")
    );
    let written = world.log[log..].iter().filter(|line| !line.starts_with("Steady → Steady")).collect::<Vec<_>>();
    assert!(written.is_empty(), "0 writes: {written:?}");
    world.policy.floors = floors(json!({"firstExposure": 10}));
    world.settle();
    assert_eq!(world.waits(), ["Approval"]);
}

#[test]
fn attack_91_a_version_whose_image_a_tag_names_starts_no_run_where_the_policy_wants_digests() {
    let mut world = rested(Guard::Unasked);
    world.policy.floors = floors(json!({"images": "digest"}));
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["PolicyFloor"]));
    assert!(said(&world, "PolicyFloor").contains("(app:2)"), "{}", said(&world, "PolicyFloor"));
    world.want(CANARY, set(&format!("2@sha256:{}", "a".repeat(64))));
    world.settle();
    assert_eq!(world.waits(), ["Approval"]);

    let mut world = World::new(CANARY, "1");
    world.policy.floors = floors(json!({"images": "digest"}));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Initializing", vec!["PolicyFloor"]));
    assert!(world.live.objects.values().next().is_none(), "nor is a first one made");
}

#[test]
fn a_floor_that_is_raised_holds_at_once_and_never_on_the_way_back() {
    let mut world = rested(Guard::Unasked);
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("promotion");
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.policy.floors = floors(json!({"soak": "24h"}));
    for _ in 0..4 {
        world.pass(330);
    }
    assert!(world.waits().contains(&"PolicyFloor"), "{} {:?}", world.phase(), world.waits());
    world.want(CANARY, set("1"));
    world.settle();
    world.pass(60);
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn x_2_a_policy_that_loosens_together_with_a_version_does_not_let_that_version_in() {
    let mut world = World::new(CANARY, "1");
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    world.policy.proof = Some(rule.clone());
    world.policy.floors = floors(json!({"soak": "6m"}));
    world.settle();
    // One commit: nobody has to approve any more, and another version.
    (world.policy.proof, world.policy.floors) = (None, Floors::default());
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["PolicyFloor"]));
    assert!(said(&world, "PolicyFloor").ends_with("a change of the policy is for what comes after it"));
    // The next version comes after it.
    world.want(CANARY, set("3"));
    world.settle();
    assert_eq!(world.waits(), ["Approval"]);
    assert_eq!(world.record.as_ref().unwrap().run.as_ref().unwrap().rule, None);

    let mut world = World::new(CANARY, "1");
    world.policy.proof = Some(rule.clone());
    world.settle();
    world.policy.proof = None;
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!(
        world.record.as_ref().unwrap().run.as_ref().unwrap().rule,
        Some(rule),
        "it is judged by what was before"
    );
    world.approve("promotion");
    assert_eq!(world.phase(), "Waiting");
}

#[test]
fn a_policy_that_loosens_by_itself_holds_for_the_next_run() {
    let mut world = rested(Guard::Unasked);
    world.policy.floors = floors(json!({"soak": "1h"}));
    world.settle();
    world.policy.floors = Floors::default();
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!(world.waits(), ["Approval"]);
}

#[test]
fn attack_111_where_people_approve_less_capacity_waits_for_them() {
    let mut world = rested(Guard::Kept);
    world.policy.proof = Some(ApprovalRule {
        approvers: ["ana".to_owned(), "ben".to_owned()].into(),
        approvals: 2,
        trust: Trust::Reviews,
        by: By::Reviews,
    });
    world.settle();
    let scaled = |least: u32| {
        set_with("1", |all| {
            all[1]["spec"].as_object_mut().unwrap().remove("replicas");
            all.push(json!({
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "podinfo"},
                "spec": {"scaleTargetRef": {"name": "podinfo"}, "minReplicaCount": least, "triggers": [{"type": "cpu"}]},
            }));
        })
    };
    let fewer = set_with("1", |all| all[1]["spec"]["replicas"] = 1.into());
    for less in [scaled(0), fewer] {
        world.want(CANARY, less);
        world.settle();
        assert_eq!((world.waits(), world.size("podinfo")), (vec!["Approval"], Some(4)), "{:?}", world.log);
        assert!(world.get(Kind::ScaledObject, "podinfo").is_none());
    }
    world.want(CANARY, set_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.pass(60);
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(6)), "{:?}", world.log);
}
