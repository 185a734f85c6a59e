//! Crashes between any two side effects, and two copies that both believe that they lead.

use super::manifests::{CANARY, HEADERS, PLAIN, QUICK, REPLICAS, named, primary, set, set_with, versioned};
use super::world::{Effect, Pods, World};
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{EPOCH, Kind, Object, RETREATED, SEQ};
use crate::plan::evidence::Evidence;
use crate::plan::input::{Git, Live};
use crate::plan::planner;
use crate::record::posture::PostureDigest;
use crate::record::state::{Phase, RoleName, RolloutState, Route};
use crate::workload::live::LiveState;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a rollout came to, without what tells one way there from another.
fn end(world: &World) -> (String, Option<String>, Vec<(String, String)>) {
    let objects = world.live.objects.values().map(|o| (o.reference().to_string(), said(o)));
    let record = world.record();
    let last = record.history.last().map(|past| format!("{} {:?}", past.run, past.outcome));
    (world.phase(), last, objects.collect())
}

fn said(object: &Object) -> String {
    let mut value = object.value().clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations"));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| key != SEQ && key != EPOCH);
        }
    }
    value.as_object_mut().map(|top| top.remove("status"));
    value.to_string()
}

/// One tick, a decision that is waited for, or some time; says whether the rollout is at rest.
fn go_on(world: &mut World) -> bool {
    if world.tick() {
        return false;
    }
    if world.waits().contains(&"Approval") {
        let first = world.phase() == "Waiting" && world.record().run.is_some_and(|run| run.route == Route::Phases);
        let through = if first { "tenth" } else { "promotion" };
        world.say(DecisionAction::Approve { through: through.parse().unwrap() });
        return false;
    }
    for (reason, word) in
        [("OnCandidate", DecisionAction::Retry), ("Held", DecisionAction::Resume), ("Denied", DecisionAction::Resume)]
    {
        if world.waits().contains(&reason) {
            world.say(word);
            return false;
        }
    }
    world.now += TimeDelta::seconds(100);
    matches!(world.record().phase, Phase::Steady { .. } | Phase::Failed { .. }) && world.record().run.is_none()
}

fn to_the_end(world: &mut World) {
    for _ in 0..600 {
        if go_on(world) {
            world.settle();
            return;
        }
    }
    panic!("no end: {} {:?} {:#?}", world.phase(), world.plan_now().waits, world.log);
}

/// Runs a story to its end; then again with a crash after each effect of each of its ticks: the end is the same.
pub(super) fn crash_everywhere(start: &World) {
    let mut whole = start.clone();
    to_the_end(&mut whole);
    let (expected, mut world) = (end(&whole), start.clone());
    loop {
        let mut looked = world.clone();
        looked.controllers();
        let effects = looked.effects(looked.plan_now()).len();
        for done in 0..effects {
            let mut crashed = world.clone();
            crashed.tick_until(done);
            // A new leader: nothing that was in memory is left.
            crashed.epoch += 1;
            crashed.evidence = Evidence::default();
            to_the_end(&mut crashed);
            assert_eq!(end(&crashed), expected, "after {done} effects at {}: {:#?}", world.phase(), crashed.log);
        }
        if go_on(&mut world) {
            return;
        }
    }
}

fn begun(plan: &str) -> World {
    let mut world = World::new(plan, "1");
    world.settle();
    world.slow = true;
    world.want(plan, set("2"));
    world
}

#[test]
fn x_11_a_crash_between_any_two_effects_of_a_canary_changes_nothing() {
    crash_everywhere(&begun(CANARY));
}

#[test]
fn x_11_a_crash_between_any_two_effects_with_stable_in_copies_changes_nothing() {
    crash_everywhere(&begun(&primary(CANARY)));
}

#[test]
fn x_11_a_crash_between_any_two_effects_with_names_of_each_version_changes_nothing() {
    let mut world = World::new(&versioned(CANARY, "1"), "1");
    world.want(&versioned(CANARY, "1"), named("1"));
    world.settle();
    world.slow = true;
    world.want(&versioned(CANARY, "2"), named("2"));
    crash_everywhere(&world);
    // So it is when it goes back.
    world.behave("app:2", Pods::Stuck);
    crash_everywhere(&world);
}

#[test]
fn x_11_a_crash_between_any_two_effects_by_pods_changes_nothing() {
    crash_everywhere(&begun(REPLICAS));
}

#[test]
fn x_11_a_crash_between_any_two_effects_without_a_router_or_with_headers_changes_nothing() {
    crash_everywhere(&begun(PLAIN));
    crash_everywhere(&begun(HEADERS));
    let mut world = begun(QUICK);
    world.want(QUICK, set_with("1", |all| all[3]["spec"]["hostnames"] = json!(["shop.example.org"])));
    crash_everywhere(&world);
}

/// A copy of the controller, somewhere in its tick.
#[derive(Default)]
struct Leader {
    at: At,
    known: Option<(RolloutState, Option<Arc<crate::manifest::desired::Plan>>)>,
}

#[derive(Default)]
enum At {
    #[default]
    Idle,
    /// Has read the cluster, but not the record.
    Looked(LiveState),
    Doing(VecDeque<Effect>, Option<PostureDigest>),
}

impl Leader {
    fn step(&mut self, world: &mut World) {
        self.at = match std::mem::take(&mut self.at) {
            At::Idle => At::Looked(world.live.clone()),
            At::Looked(live) => self.plan(world, live),
            At::Doing(mut effects, mut proof) => {
                let (before, marked) = (world.split(), retreated(world));
                let goes_on = effects.pop_front().is_some_and(|effect| world.carry_out(&effect, &mut proof));
                let raised = !world.split().within(&before);
                assert!(!(raised && marked), "raised after its retreat: {:#?}", world.log);
                if goes_on { At::Doing(effects, proof) } else { At::Idle }
            }
        };
    }

    fn plan(&mut self, world: &World, live: LiveState) -> At {
        let mut input = world.input();
        input.live = Live::Seen(Arc::new(live));
        if world.git == Git::Fresh {
            self.known = world.record.clone().map(|record| (record, world.plan.clone()));
        } else if let Some((record, plan)) = &self.known {
            input.recorded = crate::plan::input::RecordedState::State(Box::new(record.clone()), plan.clone());
        } else {
            return At::Idle;
        }
        At::Doing(world.effects(planner::plan(&input)).into(), world.proof())
    }
}

/// Whether what carries the split says that the open run went back.
fn retreated(world: &World) -> bool {
    let Some(run) = world.record().run else { return false };
    let marks = |kind| world.get(kind, "podinfo").and_then(|o| o.annotation(RETREATED));
    let route = if world.get(Kind::Service, "podinfo-canary").is_some() { Kind::HttpRoute } else { Kind::Service };
    marks(route).is_some_and(|mark| mark.starts_with(run.id.as_str()))
}

/// Numbers that look random and are the same for the same seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// Something that happens to a rollout from outside.
fn event(world: &mut World, dice: &mut Dice, plan: &str) {
    let open = world.record().run.is_some();
    let say = |world: &mut World, action| {
        if open {
            world.say(action);
        }
    };
    match dice.below(27) {
        0 => world.behave("app:2", Pods::Stuck),
        1 => world.behave("app:3", Pods::Stuck),
        2..=4 => world.behaviour.clear(),
        5 => world.want(plan, set("1")),
        6 | 7 => world.want(plan, set("2")),
        8 => world.want(plan, set("3")),
        9 => world.without_git(),
        10..=12 => world.with_git(),
        13 => world.brake = Ok(Some(BrakeWord::Revert)),
        14 => world.brake = Ok(Some(BrakeWord::Hold)),
        15..=17 => world.brake = Ok(None),
        18 => say(world, DecisionAction::Abort),
        19 => say(world, world.soak_is_over()),
        20 | 21 => say(world, DecisionAction::Approve { through: "promotion".parse().unwrap() }),
        22 => say(world, DecisionAction::Hold),
        23 => say(world, DecisionAction::Deny),
        24 => say(world, DecisionAction::Resume),
        25 => world.only_stable_stuck = !world.only_stable_stuck,
        _ => world.now += TimeDelta::seconds(600),
    }
}

fn explore(plan: &str, seed: u64) {
    let mut dice = Dice(seed);
    let mut world = begun(plan);
    let mut leaders = [Leader::default(), Leader::default()];
    for _ in 0..300 {
        match dice.below(40) {
            0..=14 => leaders[0].step(&mut world),
            15..=26 => leaders[1].step(&mut world),
            27..=33 => world.controllers(),
            34 | 35 => world.now += TimeDelta::seconds(i64::try_from(dice.below(90)).unwrap()),
            36 => leaders[usize::try_from(dice.below(2)).unwrap()] = Leader::default(),
            37 => {
                for _ in 0..20 {
                    leaders[0].step(&mut world);
                    world.controllers();
                }
            }
            _ => event(&mut world, &mut dice, plan),
        }
    }
    world.behaviour.clear();
    (world.brake, world.only_stable_stuck) = (Ok(None), false);
    world.with_git();
    world.evidence = Evidence::default();
    to_the_end(&mut world);
    let done = end(&world);
    // What was paused all the while wakes up late.
    for leader in &mut leaders {
        while let At::Doing(..) = leader.at {
            leader.step(&mut world);
        }
    }
    to_the_end(&mut world);
    assert_eq!(end(&world), done, "{:#?}", world.log);
    let promoted = world.record().promoted.unwrap().set;
    assert_eq!(world.image(&world.workload(RoleName::Stable)), world.image_of(&promoted), "{:#?}", world.log);
    let candidate = world.get(Kind::Deployment, &world.workload(RoleName::Candidate));
    let pods = candidate.map(|candidate| candidate.int("/spec/replicas"));
    let rest = if plan.contains("primary") { (Some(Some(0)), 8) } else { (None, 4) };
    assert_eq!((pods, world.owned(), world.weight()), (rest.0, rest.1, 0), "{:#?}", world.log);
    assert!(world.marked().is_empty(), "{:#?}", world.log);
}

#[test]
fn x_12_two_leaders_and_any_faults_keep_the_promise() {
    let copies = primary(QUICK);
    let plans =
        [("canary", CANARY), ("quick", QUICK), ("by pods", REPLICAS), ("plain", PLAIN), ("in copies", copies.as_str())];
    for (name, plan) in plans {
        for seed in seeds() {
            println!("{name}, seed {seed}");
            explore(plan, seed);
        }
    }
}

/// `TIDEGATE_SEEDS=<n>` explores more of them than every test run can afford.
fn seeds() -> std::ops::Range<u64> {
    0..option_env!("TIDEGATE_SEEDS").and_then(|n| n.parse().ok()).unwrap_or(6)
}
