//! Jobs before steps: made once in a run, when nothing else bars the step; evidence for it, or against the version.

use super::super::action::Action;
use super::manifests::set;
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{Kind, Object, RUN, STEP};
use crate::record::state::Outcome;
use crate::workload::live;
use serde_json::{Value, json};

/// A Job before each step, the second one after a person's decision.
const TRIED: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, before: {job: smoke.yaml}, expose: {weight: 10}, soak: 1m}
- {name: half, before: {approval: pullRequest, job: smoke.yaml}, expose: {weight: 50}, soak: 1m}
promotion: {before: {job: load.yaml}}
progressDeadline: 10m
jobs:
  smoke.yaml: {metadata: {name: smoke}, spec: {template: {spec: {containers: [{name: a, image: 'smoke:1'}]}}}}
  load.yaml: {metadata: {name: load}, spec: {template: {spec: {containers: [{name: a, image: 'load:1'}]}}}}
";

/// The same without a router, and so without a candidate.
const PLAIN: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
promotion: {before: {job: smoke.yaml}}
progressDeadline: 10m
jobs:
  smoke.yaml: {metadata: {name: smoke}, spec: {template: {spec: {containers: [{name: a, image: 'smoke:1'}]}}}}
";

impl World {
    fn brings(plan: &str) -> Self {
        let mut world = Self::new(plan, "1");
        world.settle();
        world.want(plan, set("2"));
        world.settle();
        world
    }

    /// Whose next plan makes the first Job, and how it does.
    fn about_to_make() -> (Self, Action) {
        let mut world = Self::new(TRIED, "1");
        world.settle();
        world.want(TRIED, set("2"));
        loop {
            world.controllers();
            let plan = world.plan_now();
            if let Some(action) = plan.actions.iter().find(|action| action.verb.target().kind == Kind::Job) {
                return (world, action.clone());
            }
            assert!(world.tick(), "{:?}", world.waits());
        }
    }

    /// The Jobs that are there, by their steps.
    fn jobs(&self) -> Vec<&str> {
        self.live.of_kind(Kind::Job).filter_map(|job| job.annotation(STEP)).collect()
    }

    fn job(&self, step: &str) -> &Object {
        let run = self.record.as_ref().and_then(|record| record.run.as_ref()).expect("a run").id.to_string();
        let mut jobs = self.live.of_kind(Kind::Job);
        let made = |job: &&Object| job.annotation(RUN) == Some(&run) && job.annotation(STEP) == Some(step);
        jobs.find(made).expect("a Job")
    }

    /// The cluster says how a Job ended.
    fn ends(&mut self, step: &str, kind: &str) {
        let name = self.job(step).reference().name.to_string();
        let condition = json!({"type": kind, "status": "True", "reason": "Because", "message": "3 of 9\nfail"});
        self.edit(Kind::Job, &name, |job| job["status"] = json!({"conditions": [condition]}));
        self.settle();
    }

    fn takes_away(&mut self, step: &str) {
        let name = self.job(step).reference().name.to_string();
        self.remove(Kind::Job, &name);
        self.settle();
    }
}

#[test]
fn c_15_c_34_a_job_that_succeeds_opens_its_step() {
    let mut world = World::brings(TRIED);
    assert_eq!((world.phase().as_str(), world.weight()), ("Waiting(prepare)", 0), "what is tried out is there");
    assert_eq!((world.jobs(), world.waits()), (vec!["tenth"], vec!["JobRunning"]));
    assert_eq!(world.record().conditions[0].reason, "JobRunning", "people see it in Git");
    let candidate = world.get(Kind::Deployment, "podinfo-canary").expect("a candidate");
    assert_eq!(candidate.int("/status/readyReplicas"), candidate.int("/spec/replicas"));
    world.pass(3_600);
    assert_eq!(world.phase(), "Waiting(prepare)", "it takes the time that it takes");
    world.ends("tenth", "Complete");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    assert_eq!(world.record().conditions, []);

    world.pass(61);
    assert_eq!(world.phase(), "Waiting(tenth)");
    assert_eq!(world.jobs(), ["tenth"], "with a person's word missing it is not made");
    world.approve("half");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting(tenth)", vec!["JobRunning"]));
    world.ends("half", "Complete");
    assert_eq!(world.weight(), 50);
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.waits()), ("WaitingPromotion(half)", vec!["JobRunning"]));
    assert_eq!(world.job("promotion").text("/spec/template/spec/containers/0/image"), Some("load:1"));
    world.ends("promotion", "Complete");
    assert_eq!((world.phase().as_str(), world.jobs()), ("Steady", vec![]), "they go with their run");
    assert_eq!(world.record().history[0].outcome, Outcome::Promoted);
}

#[test]
fn c_34_a_job_that_fails_takes_the_run_back() {
    for (step, weight) in [("tenth", 0), ("half", 10)] {
        let mut world = World::brings(TRIED);
        if step == "half" {
            world.ends("tenth", "Complete");
            world.pass(61);
            world.approve("half");
        }
        assert_eq!(world.weight(), weight);
        let name = world.job(step).reference().name.to_string();
        world.ends(step, "Failed");
        assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 0));
        assert_eq!(world.record().refused[0].why, format!("{step}: Job {name} failed: Because: 3 of 9 fail"));
        assert_eq!(world.jobs(), [step], "what failed can be looked at");
        world.say(DecisionAction::Retry);
        world.settle();
        assert_eq!((world.phase().as_str(), world.jobs()), ("Waiting(prepare)", vec!["tenth"]));
        assert_ne!(world.job("tenth").reference().name.to_string(), name, "another run has Jobs of its own");
        world.want(TRIED, set("1"));
        world.settle();
        assert_eq!((world.phase().as_str(), world.jobs()), ("Steady", vec![]));
    }
}

#[test]
fn x_11_a_job_is_made_once_wherever_a_tick_ends() {
    for effects in 1..8 {
        let mut world = World::new(TRIED, "1");
        world.settle();
        world.want(TRIED, set("2"));
        let mut uids = std::collections::BTreeSet::new();
        for _ in 0..12 {
            world.tick_until(effects);
            uids.extend(world.live.of_kind(Kind::Job).filter_map(|job| job.uid().map(str::to_owned)));
            world.tick_until(1);
        }
        world.settle();
        uids.extend(world.live.of_kind(Kind::Job).filter_map(|job| job.uid().map(str::to_owned)));
        assert_eq!((world.phase().as_str(), uids.len()), ("Waiting(prepare)", 1), "{effects}");
        let run = world.record().run.expect("a run");
        assert_eq!(run.jobs.values().map(|trial| trial.uid.as_str()).collect::<Vec<_>>(), Vec::from_iter(&uids));
    }
}

#[test]
fn a_plan_made_before_the_job_was_there_makes_no_other() {
    let (mut world, making) = World::about_to_make();
    world.settle();
    let uid = world.job("tenth").uid().map(str::to_owned);
    world.try_late(&making);
    assert_eq!(world.job("tenth").uid().map(str::to_owned), uid);
    world.settle();
}

#[test]
fn a_job_that_is_taken_away_is_not_made_again() {
    let mut world = World::brings(TRIED);
    world.takes_away("tenth");
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.waits(), world.jobs()), ("Waiting(prepare)", vec!["JobGone"], vec![]));
    world.say(world.soak_is_over());
    world.settle();
    assert_eq!(world.phase(), "Waiting(prepare)", "skip opens no gate");
    world.say(DecisionAction::Abort);
    world.settle();
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!((world.waits(), world.jobs()), (vec!["JobRunning"], vec!["tenth"]));
}

#[test]
fn a_success_is_remembered_where_the_step_is_not_entered_yet() {
    let mut world = World::brings(TRIED);
    world.say(DecisionAction::Hold);
    world.settle();
    world.ends("tenth", "Complete");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting(prepare)", vec!["Held"]));
    world.takes_away("tenth");
    assert_eq!(world.waits(), ["Held"]);
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!((world.phase().as_str(), world.jobs()), ("Progressing(tenth)", vec![]));
}

#[test]
fn x_13_a_job_that_cannot_be_made_speaks_against_no_version() {
    let refused = |why: &str| live::WriteOutcome::Refused(why.to_owned());
    for (outage, reason) in [
        (live::WriteOutcome::Forbidden("jobs.batch is forbidden".to_owned()), "Forbidden"),
        (live::WriteOutcome::Retriable("exceeded quota".to_owned()), "Retrying"),
        (refused("admission webhook denied the request"), "JobRefused"),
    ] {
        let (mut world, _) = World::about_to_make();
        world.outage = Some(outage);
        world.pass(31);
        world.pass(31);
        assert_eq!((world.phase().as_str(), world.waits(), world.weight()), ("Waiting(prepare)", vec![reason], 0));
        assert_eq!(world.record().refused, []);
        world.outage = None;
        world.pass(31);
        assert_eq!((world.waits(), world.jobs()), (vec!["JobRunning"], vec!["tenth"]));
    }
}

#[test]
fn a_job_of_somebody_else_is_left_alone() {
    let world = World::brings(TRIED);
    let name = world.job("tenth").reference().name.to_string();
    let mut world = World::new(TRIED, "1");
    world.settle();
    let theirs = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}});
    world.exists_value(theirs);
    world.want(TRIED, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting(prepare)", vec!["OwnedByOther"]));
    world.remove(Kind::Job, &name);
    world.settle();
    // A copy under another name has all our marks.
    let mut copy: Value = world.job("tenth").value().clone();
    copy["metadata"]["name"] = "copy".into();
    world.exists_value(copy);
    world.say(DecisionAction::Abort);
    world.settle();
    let left: Vec<&str> = world.live.of_kind(Kind::Job).map(|job| job.reference().name.as_str()).collect();
    assert_eq!(left, ["copy"]);
}

#[test]
fn without_a_candidate_the_job_stands_before_the_promotion() {
    for (end, phase, image) in [("Complete", "Steady", "app:2"), ("Failed", "Failed", "app:1")] {
        let mut world = World::brings(PLAIN);
        assert_eq!((world.phase().as_str(), world.jobs()), ("Waiting", vec!["promotion"]));
        world.ends("promotion", end);
        assert_eq!((world.phase().as_str(), world.image("podinfo")), (phase, Some(image)));
    }
}

#[test]
fn jobs_go_with_their_rollout() {
    let mut world = World::brings(TRIED);
    world.ends("tenth", "Failed");
    assert_eq!(world.jobs(), ["tenth"]);
    world.gone();
    world.settle();
    assert_eq!((world.record.is_none(), world.jobs()), (true, vec![]));
}

#[test]
fn a_run_keeps_the_job_that_it_started_with() {
    let mut world = World::brings(TRIED);
    world.want(&TRIED.replace("load:1", "load:2"), set("2"));
    world.ends("tenth", "Complete");
    world.pass(61);
    world.approve("half");
    world.ends("half", "Complete");
    world.pass(61);
    assert_eq!(world.job("promotion").text("/spec/template/spec/containers/0/image"), Some("load:1"));
}
