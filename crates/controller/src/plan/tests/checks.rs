//! Checks: evidence against a version at any time, enough for it at the end of the soak, and holding while nobody knows.

use super::manifests::set;
use super::world::{Metric, World};
use crate::analysis::call::WebhookVerdict;
use crate::analysis::judge::Inquiry;
use crate::analysis::reading::{Reading, Readings};
use crate::manifest::decision::DecisionAction;
use crate::record::state::Outcome;
use chrono::TimeDelta;

/// A tenth and half, each measured every minute; the promotion waits for a person, and bakes measured.
pub(super) const MEASURED: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 5s, drain: 30s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 5m, checks: [errors]}
- {name: half, expose: {weight: 50}, soak: 5m, checks: [errors]}
promotion: {before: {approval: pullRequest}, bake: 2m, checks: [errors]}
progressDeadline: 10m
checks:
  errors:
    prometheus: {provider: main, query: errors}
    max: 0.01
    interval: 1m
    minSamples: 2
    failureLimit: 0
    onNoData: hold
";

fn at_tenth_with(plan: &str) -> World {
    let mut world = World::new(plan, "1");
    world.settle();
    world.want(plan, set("2"));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    world
}

fn at_tenth() -> World {
    at_tenth_with(MEASURED)
}

#[test]
fn a_version_that_measures_well_is_promoted() {
    let mut world = at_tenth();
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
    world.pass(306);
    world.approve("promotion");
    assert_eq!(world.phase(), "Promoting(shift)");
    world.pass(126);
    assert_eq!(world.phase(), "Finalising(return)");
    world.pass(31);
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn a_sample_out_of_bounds_takes_the_run_back_at_once_and_says_why() {
    let mut world = at_tenth();
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.metric = Metric::Value(0.25);
    world.pass(60);
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!(world.phase(), "Failed");
    let why = &world.record().refused[0].why;
    assert!(why.contains("tenth: errors: 0.25 at ") && why.ends_with("is above 0.01"), "{why}");
}

#[test]
fn c_34_no_data_and_a_provider_that_is_away_hold() {
    for nothing in [Metric::Silent, Metric::Away] {
        let mut world = at_tenth();
        world.metric = nothing;
        world.pass(3_600);
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
        assert_eq!(world.waits(), ["Inconclusive"]);
        assert_eq!(world.record().conditions[0].reason, "Inconclusive", "people see it in Git");
        world.metric = Metric::Value(0.0);
        world.evidence.readings = Readings::default();
        world.pass(60);
        assert_eq!(world.phase(), "Progressing(half)");
        assert_eq!(world.record().conditions, []);
    }
}

#[test]
fn attack_66_who_is_away_through_the_bake_promotes_nothing() {
    let mut world = at_tenth();
    world.pass(306);
    world.pass(306);
    world.metric = Metric::Away;
    world.approve("promotion");
    world.pass(36_000);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
    assert_eq!(world.waits(), ["Inconclusive"]);
}

/// The same way, with a check that says what half an hour without an answer means.
fn patient() -> World {
    at_tenth_with(&MEASURED.replace("onNoData: hold", "onNoData: hold\n    onAway: {after: 30m, then: revert}"))
}

#[test]
fn attack_66_who_is_away_for_longer_than_the_check_lets_it_takes_the_run_back() {
    let mut world = patient();
    world.pass(306);
    world.pass(306);
    world.metric = Metric::Away;
    world.approve("promotion");
    world.pass(126);
    let seq = world.record().seq;
    world.pass(1_799);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100), "not before the deadline");
    assert_eq!((world.waits(), world.record().seq), (vec!["Inconclusive"], seq), "holding is no news for Git");
    world.pass(1);
    assert_eq!(world.weight(), 0, "nobody goes on unmeasured");
    world.pass(31);
    let last = world.record().history.last().cloned().expect("a run that ended");
    assert_eq!(last.outcome, Outcome::Unmeasured);
    assert_eq!(last.why, "shift: errors has no result: provider main is away: refused, for 30m");
    assert_eq!(world.record().refused, [], "nothing speaks against the version");
}

#[test]
fn c_34_a_version_that_nobody_measured_starts_again_by_a_persons_word() {
    let mut world = patient();
    world.metric = Metric::Away;
    world.pass(306);
    world.pass(1_800);
    world.pass(31);
    world.metric = Metric::Value(0.0);
    world.pass(36_000);
    assert_eq!((world.phase().as_str(), world.weight(), world.waits()), ("Waiting", 0, vec!["Held"]));
    let told = &world.record().conditions[0].message;
    assert!(told.contains("brought the same and went back unmeasured: tenth: errors has no result"), "{told}");
    assert_eq!(world.proposals.len(), 0, "no branch asks to undo the change on main");
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
}

#[test]
fn c_34_another_version_than_the_one_that_nobody_measured_starts_by_itself() {
    let mut world = patient();
    world.metric = Metric::Away;
    world.pass(306);
    world.pass(1_800);
    world.pass(31);
    assert_eq!(world.waits(), ["Held"]);
    let plan = MEASURED.replace("onNoData: hold", "onNoData: hold\n    onAway: {after: 30m, then: revert}");
    world.want(&plan, set("3"));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn x_14_what_a_provider_that_is_away_is_allowed_counts_while_observed_from_the_end_of_the_soak() {
    let mut world = patient();
    world.metric = Metric::Away;
    world.pass(300);
    let away = |world: &World| world.record().run.expect("an open run").away.len();
    assert_eq!(away(&world), 0, "the step stays that long in any case");
    world.pass(6);
    assert_eq!(away(&world), 1);
    let start = world.now;
    world.now += TimeDelta::seconds(3_600);
    world.gaps.push((start, world.now));
    world.settle();
    world.pass(1_799);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.evidence.readings = Readings::default();
    world.pass(1);
    assert_eq!(world.weight(), 0, "a restart does not begin anew");
}

#[test]
fn c_34_a_provider_that_answered_in_between_is_away_anew() {
    let mut world = patient();
    world.metric = Metric::Away;
    world.pass(306);
    world.pass(1_200);
    world.metric = Metric::Silent;
    world.pass(60);
    assert_eq!(world.record().run.expect("an open run").away.len(), 0, "too few samples are an answer");
    world.metric = Metric::Away;
    world.pass(60);
    world.pass(1_799);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.pass(1);
    assert_eq!(world.weight(), 0);
}

#[test]
fn c_34_what_no_data_means_is_said_in_the_file() {
    let mut world = at_tenth_with(&MEASURED.replace("onNoData: hold", "onNoData: pass"));
    world.metric = Metric::Silent;
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");

    let mut world = at_tenth_with(&MEASURED.replace("onNoData: hold", "onNoData: fail"));
    world.metric = Metric::Silent;
    world.pass(300);
    assert_eq!(world.phase(), "Progressing(tenth)", "before the end of the soak there may be more");
    world.pass(6);
    assert_eq!(world.weight(), 0);

    let mut world = at_tenth_with(&MEASURED.replace("onNoData: hold", "onNoData: fail"));
    world.metric = Metric::Away;
    world.pass(3_600);
    assert_eq!(world.weight(), 10, "an outage never fails a version");
}

#[test]
fn c_15_checks_go_on_while_the_promotion_waits_for_a_person() {
    let mut world = at_tenth();
    world.pass(306);
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("WaitingPromotion(half)", 50));
    let seq = world.record().seq;
    (0..60).for_each(|_| world.pass(60));
    assert_eq!(world.record().seq, seq, "a measurement is no news for Git");
    world.metric = Metric::Value(1.0);
    world.pass(60);
    assert_eq!(world.weight(), 0);
}

#[test]
fn a_bad_bake_goes_back() {
    let mut world = at_tenth();
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    world.metric = Metric::Value(1.0);
    world.pass(66);
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!(world.phase(), "Failed");
}

#[test]
fn x_11_a_restart_asks_the_same_question_again() {
    let mut world = at_tenth();
    world.metric = Metric::Value(0.0);
    world.pass(200);
    let before: Vec<_> = world.evidence.readings.samples.keys().cloned().map(Inquiry::Range).collect();
    assert_eq!(before.len(), 1);
    world.evidence.readings = Readings::default();
    assert_eq!(world.plan_now().questions, before);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn skip_ends_the_checks_of_its_step_alone() {
    let mut world = at_tenth();
    world.metric = Metric::Silent;
    world.pass(400);
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.say(world.soak_is_over());
    world.settle();
    assert_eq!(world.phase(), "Progressing(half)");
    world.pass(400);
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(half)", vec!["Inconclusive"]));
}

/// The same way, on which a webhook judges.
fn judged(on_no_data: &str) -> World {
    let start = MEASURED.find("checks:\n").expect("the checks come last");
    let check = "webhook: {provider: tester, metadata: {suite: smoke}}, interval: 1m";
    at_tenth_with(&format!("{}checks:\n  errors: {{{check}, onNoData: {on_no_data}}}\n", &MEASURED[..start]))
}

#[test]
fn a_version_that_a_webhook_calls_good_is_promoted() {
    let mut world = judged("hold");
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
    world.pass(306);
    world.approve("promotion");
    world.pass(126);
    world.pass(31);
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn a_webhook_that_says_bad_takes_the_run_back_at_once_and_says_why() {
    let mut world = judged("hold");
    world.metric = Metric::Bad;
    world.pass(64);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "it is asked after a minute");
    world.pass(1);
    assert_eq!(world.weight(), 0);
    world.pass(31);
    assert_eq!(world.phase(), "Failed");
    assert_eq!(world.record().refused[0].why, "tenth: errors: 3 of 9 tests fail");
}

#[test]
fn c_34_a_webhook_that_holds_or_is_away_holds_the_run() {
    for (nothing, why) in [
        (Metric::Silent, "tenth: errors holds (tests run)"),
        (Metric::Away, "tenth: errors has no result: provider tester is away: refused"),
    ] {
        let mut world = judged("hold");
        world.metric = nothing;
        world.pass(3_600);
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
        assert_eq!(world.waits(), ["Inconclusive"]);
        assert_eq!(world.record().conditions[0].message, why, "people see it in Git");
        let seq = world.record().seq;
        (0..10).for_each(|_| world.pass(60));
        assert_eq!(world.record().seq, seq, "the same answer is no news for Git");
        world.metric = Metric::Value(0.0);
        world.pass(60);
        assert_eq!((world.phase().as_str(), world.record().conditions), ("Progressing(half)", vec![]));
    }
}

#[test]
fn c_34_what_the_hold_of_a_webhook_means_is_said_in_the_file() {
    let mut world = judged("pass");
    world.metric = Metric::Silent;
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");

    let mut world = judged("fail");
    world.metric = Metric::Silent;
    world.pass(300);
    assert_eq!(world.phase(), "Progressing(tenth)", "before the end of the soak it may say more");
    world.pass(6);
    assert_eq!(world.weight(), 0);

    let mut world = judged("fail");
    world.metric = Metric::Away;
    world.pass(3_600);
    assert_eq!(world.weight(), 10, "an outage never fails a version");
}

#[test]
fn x_11_a_restart_asks_a_webhook_the_same_question_again() {
    let mut world = judged("hold");
    world.pass(200);
    let before: Vec<_> = world.evidence.readings.verdicts.keys().cloned().map(Inquiry::Call).collect();
    assert_eq!(before.len(), 1);
    world.evidence.readings = Readings::default();
    world.pass(30);
    assert_eq!(world.evidence.readings.verdicts.keys().cloned().map(Inquiry::Call).collect::<Vec<_>>(), before);
    assert_eq!(world.phase(), "Progressing(tenth)");
}

/// The same way, with a webhook before the first step, before half and before the promotion.
fn asked_for() -> World {
    let gate = "before: {webhook: {provider: confirm}}";
    let plan = MEASURED
        .replace("{name: tenth,", &format!("{{name: tenth, {gate},"))
        .replace("{name: half,", &format!("{{name: half, {gate},"))
        .replace("before: {approval: pullRequest}", &gate.replace("confirm", "promote"));
    let mut world = World::new(&plan, "1");
    world.settle();
    world.webhook = Reading::Said(WebhookVerdict::Hold("nobody has looked".to_owned()));
    world.want(&plan, set("2"));
    world.settle();
    world
}

#[test]
fn a_webhook_before_the_first_step_is_asked_until_it_says_good() {
    let mut world = asked_for();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Webhook"]));
    assert_eq!(world.record().conditions[0].message, "tenth waits for confirm, which holds (nobody has looked)");
    world.webhook = Reading::Said(WebhookVerdict::Good);
    world.pass(29);
    assert_eq!(world.phase(), "Waiting", "it is asked every 30 s");
    world.pass(1);
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn c_16_a_webhook_that_denies_a_step_fails_no_run() {
    let closed = [
        (Reading::Said(WebhookVerdict::Bad("not today".to_owned())), "says bad (not today)"),
        (Reading::Said(WebhookVerdict::Hold(String::new())), "holds"),
        (Reading::Away("refused".to_owned()), "says nothing: provider confirm is away: refused"),
        (Reading::Unusable("no JSON".to_owned()), "says nothing: no JSON"),
    ];
    for (says, told) in closed {
        let mut world = asked_for();
        world.webhook = Reading::Said(WebhookVerdict::Good);
        world.pass(30);
        world.webhook = says;
        world.pass(306);
        assert_eq!((world.phase().as_str(), world.weight()), ("Waiting(tenth)", 10));
        assert_eq!(world.record().conditions[0].message, format!("half waits for confirm, which {told}"));
        let seq = world.record().seq;
        (0..60).for_each(|_| world.pass(60));
        assert_eq!((world.record().seq, world.weight()), (seq, 10), "the same answer is no news for Git");
        world.webhook = Reading::Said(WebhookVerdict::Good);
        world.pass(30);
        assert_eq!(world.phase(), "Progressing(half)");
        assert_eq!(world.record().conditions, []);
    }
}

#[test]
fn c_15_a_run_that_waits_for_a_webhook_is_still_measured() {
    let mut world = asked_for();
    world.webhook = Reading::Said(WebhookVerdict::Good);
    world.pass(30);
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
    world.webhook = Reading::Away("refused".to_owned());
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.waits()), ("WaitingPromotion(half)", vec!["Webhook"]));
    world.metric = Metric::Value(1.0);
    world.pass(60);
    assert_eq!(world.weight(), 0);
}

#[test]
fn a_webhook_that_says_good_at_once_is_no_stop_in_the_record() {
    let mut world = asked_for();
    world.webhook = Reading::Said(WebhookVerdict::Good);
    world.pass(30);
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
    assert!(!world.log.iter().any(|line| line.contains("waits before half")), "{:#?}", world.log);
}
