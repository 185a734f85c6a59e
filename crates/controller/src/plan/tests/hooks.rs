//! Hooks: told of what is recorded, and waited for by nobody.

use super::manifests::{CANARY, QUICK, set};
use super::world::{Metric, Pods, World};
use crate::analysis::call::{Call, CallKind, Notification};
use crate::analysis::judge::Inquiry;
use crate::manifest::decision::DecisionAction;

const HOOKS: &str =
    "hooks: {chat: {webhook: {provider: tester}}, pager: {webhook: {provider: tester}, events: [wentBack]}}\n";

fn told(question: &Inquiry) -> Option<String> {
    let Inquiry::Call(call) = question else { return None };
    let CallKind::Event(Notification { hook, event, outcome }) = &call.asks else { return None };
    Some(
        format!(
            "{hook} {event:?} {} {}",
            call.about.step,
            outcome.map(|outcome| format!("{outcome:?}")).unwrap_or_default()
        )
        .trim_end()
        .to_owned(),
    )
}

/// What each hook has taken last.
fn taken(world: &World) -> Vec<String> {
    world.evidence.readings.verdicts.keys().filter_map(|call| told(&Inquiry::Call(call.clone()))).collect()
}

fn at_tenth(metric: Metric) -> World {
    let plan = format!("{QUICK}{HOOKS}");
    let mut world = World::new(&plan, "1");
    world.settle();
    assert_eq!(taken(&world), Vec::<String>::new(), "first sight is no run");
    world.metric = metric;
    world.want(&plan, set("2"));
    world.settle();
    world
}

#[test]
fn a_hook_is_told_of_each_stop_that_is_recorded() {
    let mut world = at_tenth(Metric::Value(0.0));
    assert_eq!(taken(&world), ["chat Started prepare", "chat Entered tenth"]);
    world.pass(61);
    world.pass(61);
    assert_eq!(world.phase(), "Steady");
    assert!(taken(&world).iter().any(|told| told == "chat Ended promotion Promoted"));
    world.evidence.readings = crate::analysis::reading::Readings::default();
    let asked = |world: &World| world.plan_now().questions.iter().filter_map(told).collect::<Vec<_>>();
    assert_eq!(asked(&world), ["chat Ended promotion Promoted"], "a process that starts tells it again");
    world.pass(3_600);
    world.evidence.readings = crate::analysis::reading::Readings::default();
    assert_eq!(asked(&world), Vec::<String>::new(), "and after an hour it is no news");
}

#[test]
fn c_34_nothing_waits_for_a_hook_and_no_answer_of_it_decides() {
    for metric in [Metric::Away, Metric::Bad, Metric::Silent] {
        let mut world = at_tenth(metric);
        assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak"]));
        world.pass(61);
        world.pass(61);
        assert_eq!(world.phase(), "Steady");
    }
}

#[test]
fn a_run_that_goes_back_is_told_of_as_it_goes_and_when_it_has_ended() {
    let mut world = at_tenth(Metric::Value(0.0));
    world.behave("app:2", Pods::Stuck);
    world.want(&format!("{QUICK}{HOOKS}"), set("1"));
    world.settle();
    assert_eq!(world.phase(), "Steady");
    let taken = taken(&world);
    for line in ["chat WentBack revert", "pager WentBack revert", "chat Ended promotion Reverted"] {
        assert!(taken.iter().any(|told| told == line), "{line}: {taken:?}");
    }
}

#[test]
fn c_19_who_is_called_hears_of_a_run_that_only_a_person_can_end() {
    let plan = format!("{CANARY}{HOOKS}");
    let mut world = World::new(&plan, "1");
    world.settle();
    world.want(&plan, set("2"));
    world.settle();
    world.approve("tenth");
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    world.only_stable_stuck = true;
    world.pass(66);
    let stuck = |call: &Call| told(&Inquiry::Call(call.clone())).as_deref() == Some("chat OnCandidate promote");
    let since = |world: &World| world.evidence.readings.verdicts.keys().find(|call| stuck(call)).map(|call| call.since);
    assert_eq!((world.phase().as_str(), since(&world)), ("Promoting(promote)", None));
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.waits()), ("Failed", vec!["OnCandidate"]));
    let before = since(&world);
    assert!(before.is_some(), "{:?}", taken(&world));
    // It is told again where it stands there again.
    world.say(DecisionAction::Retry);
    world.settle();
    world.pass(601);
    assert!(world.phase() == "Failed" && since(&world) > before, "{:?}", taken(&world));
}
