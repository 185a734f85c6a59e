//! Forecasts of strategies as people write them, told in sentences.

use super::*;
use crate::manifest::desired::Rollout;
use crate::manifest::files::{Entry, Files};
use crate::manifest::installation::Caps;
use crate::manifest::{load, oid};
use crate::record::fixture;
use crate::record::state::StepClock;

/// A Friday, half past five in Berlin.
const FRIDAY: &str = "2026-11-20T16:30:00Z";

const MANIFEST: &str = include_str!("../../../../../examples-repo/teams/shop/podinfo/podinfo.yaml");

/// `shop/podinfo` with everything of its spec below `target`, and the policy with these windows and freezes.
fn world(spec: &str, policy: &str) -> (Rollout, Policy) {
    let tenant = "    shop: {path: teams/shop, namespaces: [shop], clusters: [home]}\n";
    let policy = format!("apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n{tenant}{policy}");
    let rollout = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: podinfo, namespace: shop}}\nspec:\n  \
         manifests: [podinfo.yaml]\n  target: {{kind: Deployment, name: podinfo}}\n{spec}"
    );
    let texts = [
        ("tidegate.yaml", policy.as_str()),
        ("teams/shop/podinfo/rollout.yaml", &rollout),
        ("teams/shop/podinfo/podinfo.yaml", MANIFEST),
    ];
    let file = |text: &str| Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().into() };
    let files: Files = texts.into_iter().map(|(path, text)| (path.parse().unwrap(), file(text))).collect();
    let loaded = load::load(&files, &Caps::default());
    assert_eq!(loaded.errors(), Vec::<&crate::manifest::diagnostic::Diagnostic>::new());
    let rollout = loaded.rollouts.into_values().next().unwrap().unwrap();
    (rollout, loaded.policy.unwrap())
}

const OFFICE: &str = "  windows:\n    office-hours: {cron: \"0 9 * * 1-5\", duration: 8h, zone: Europe/Berlin}\n";

/// Phases on a route that settles at once.
fn phases(phases: &str) -> String {
    let traffic = "  traffic:\n    gatewayAPI: {httpRoute: podinfo, service: podinfo}\n    settle: 0s\n    drain: 5s\n";
    format!("{traffic}  phases:\n{phases}")
}

/// The example of the manual: testers, a tenth after a decision, half in office hours.
fn staged() -> String {
    phases(
        "  - {name: testers, expose: {headers: [{x-canary: always}]}, soak: 5m}\n  \
         - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 10m}\n  \
         - {name: half, before: {window: office-hours}, expose: {weight: 50}, soak: 45m}\n  \
         promotion: {bake: 30m}\n",
    )
}

fn foreseen(spec: &str, policy: &str, route: Route, now: &str) -> Forecast {
    let (rollout, policy) = world(spec, policy);
    let way =
        Way { rollout: &rollout, plan: &rollout.plan, route, from: &fixture::set(6), entered: None, approved: &[] };
    forecast(&way, Some(&policy), now.parse().unwrap())
}

fn told(spec: &str, policy: &str, now: &str) -> String {
    foreseen(spec, policy, Route::Phases, now).sentence().unwrap()
}

#[test]
fn a_strategy_is_told_as_people_would_tell_it() {
    insta::assert_snapshot!(
        told(&staged(), OFFICE, FRIDAY),
        @"testers now, tenth after your approval, half not before Monday 09:00 CET, promotion about 09:45, done about 10:15"
    );
}

#[test]
fn while_a_window_is_open_the_times_follow_from_the_word() {
    insta::assert_snapshot!(
        told(&staged(), OFFICE, "2026-11-20T09:00:00Z"),
        @"testers now, tenth after your approval, half 10m later (within office-hours), promotion 45m later, done about 30m5s later"
    );
}

#[test]
fn a_word_and_a_closed_window_before_one_step() {
    let spec = phases(
        "  - {name: half, before: {approval: pullRequest, window: office-hours}, expose: {weight: 50}, soak: 10m}\n",
    );
    insta::assert_snapshot!(
        told(&spec, OFFICE, FRIDAY),
        @"half after your approval and not before Monday 09:00 CET, promotion about 09:10, done about 09:10"
    );
}

#[test]
fn of_a_ramp_the_ends_are_told() {
    let spec = phases("  - {name: ramp, expose: {ramp: {step: 10, max: 100}}, soak: 5m}\n");
    insta::assert_snapshot!(
        told(&spec, "", FRIDAY),
        @"ramp-10 now, on to ramp-100 about 17:15 UTC, promotion about 17:20, done about 17:20"
    );
    let gated = spec.replace("name: ramp,", "name: ramp, before: {approval: pullRequest},");
    insta::assert_snapshot!(
        told(&gated, "", FRIDAY),
        @"ramp-10 after your approval, ramp-20 5m later, on to ramp-100 40m later, promotion 5m later, done about 5s later"
    );
}

#[test]
fn without_a_router_the_promotion_is_all_there_is() {
    let plain = |spec: &str| foreseen(spec, "", Route::Plain, FRIDAY).sentence().unwrap();
    insta::assert_snapshot!(plain("  progressDeadline: 2m\n"), @"promotion now, done once its pods are ready");
    insta::assert_snapshot!(
        plain("  promotion: {before: {approval: pullRequest}}\n"),
        @"promotion after your approval, done once its pods are ready"
    );
}

#[test]
fn a_freeze_is_named_and_a_far_day_has_its_date() {
    let freeze = "  freezes:\n    xmas: {cron: \"0 0 20 11 *\", duration: 336h, zone: America/New_York}\n";
    let spec = phases("  - {name: tenth, expose: {weight: 10}, soak: 1h}\n");
    insta::assert_snapshot!(
        told(&spec, freeze, FRIDAY),
        @"tenth not before 4 December 2026 00:00 EST (freeze xmas), promotion about 01:00, done about 01:00"
    );
}

#[test]
fn when_the_clocks_change_the_zone_is_told_again() {
    let night = "  windows:\n    night: {cron: \"30 1 28 3 *\", duration: 1h, zone: Europe/Berlin}\n";
    let spec = phases("  - {name: half, before: {window: night}, expose: {weight: 50}, soak: 1h}\n");
    insta::assert_snapshot!(
        told(&spec, night, "2027-03-27T12:00:00Z"),
        @"half not before Sunday 01:30 CET, promotion about 03:30 CEST, done about 03:30"
    );
}

#[test]
fn who_else_has_to_agree_is_named() {
    let spec = phases("  - {name: tenth, before: {webhook: {provider: desk}}, expose: {weight: 10}, soak: 3m}\n");
    insta::assert_snapshot!(told(&spec, "", FRIDAY), @"tenth once desk agrees, promotion 3m later, done about 5s later");
}

#[test]
fn of_an_open_run_only_what_is_to_come_is_told() {
    let (rollout, policy) = world(&staged(), OFFICE);
    let clock = StepClock { exposed: Some(FRIDAY.parse().unwrap()), ..StepClock::entered(FRIDAY.parse().unwrap()) };
    let position = Position { step: "testers".parse().unwrap(), seq: 4, clock };
    let way = |approved| Way {
        rollout: &rollout,
        plan: &rollout.plan,
        route: Route::Phases,
        from: &rollout.set.id,
        entered: Some(&position),
        approved,
    };
    let told = |approved| forecast(&way(approved), Some(&policy), FRIDAY.parse().unwrap()).sentence().unwrap();
    insta::assert_snapshot!(
        told(&[]),
        @"tenth after your approval, half not before Monday 09:00 CET, promotion about 09:45, done about 10:15"
    );
    insta::assert_snapshot!(
        told(&["tenth".parse().unwrap()]),
        @"tenth about 17:35 CET, half not before Monday 09:00, promotion about 09:45, done about 10:15"
    );
}

#[test]
fn a_freeze_without_end_is_no_endless_work() {
    let always = "  freezes:\n    always: {cron: \"* * * * *\", duration: 1m, zone: UTC}\n";
    // Said after so many turns: an endless search would say nothing.
    insta::assert_snapshot!(
        told(&phases("  - {name: half, expose: {weight: 50}, soak: 1m}\n"), always, FRIDAY),
        @"half not in sight, as nothing opens for it"
    );
}
