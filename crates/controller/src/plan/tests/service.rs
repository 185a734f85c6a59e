//! A Service as the target: where it leads changes in steps, and what it leads to is other people's.

use super::crashes::crash_everywhere;
use super::manifests::{set, set_with};
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::object::{Kind, OWNER};
use crate::plan::action::Class;
use crate::record::posture::Size;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::sync::Arc;

/// Without gates and without waiting.
pub(super) const SERVICE: &str = "
target: {kind: Service, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 1m}
- {name: half, expose: {weight: 50}, soak: 1m}
progressDeadline: 10m
";

pub(super) fn to(app: &str) -> Value {
    json!({"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]})
}

pub(super) fn alias(of: &str) -> Value {
    json!({"type": "ExternalName", "externalName": format!("lb.{of}.example.net"), "ports": [{"name": "http", "port": 80}]})
}

/// A version whose Service is that. No workload is among its objects.
pub(super) fn version(version: &str, service: Value) -> Arc<Set> {
    set_with(version, |all| {
        all.retain(|object| object["kind"] != "Deployment");
        let found = all.iter_mut().find(|object| object["kind"] == "Service").expect("a Service");
        found["spec"] = service;
    })
}

/// Other people's pods, with that label.
pub(super) fn pods(name: &str, app: &str) -> Value {
    let mut deployment = set("1").get(Kind::Deployment, &"podinfo".parse().unwrap()).unwrap().value().clone();
    deployment["metadata"]["name"] = name.into();
    deployment["spec"]["selector"] = json!({"matchLabels": {"app": app}});
    deployment["spec"]["template"]["metadata"]["labels"]["app"] = app.into();
    deployment
}

/// Blue and green run, and the Service leads to the first.
fn at(service: Value) -> World {
    let mut world = World::new(SERVICE, "1");
    for app in ["blue", "green"] {
        world.exists_value(pods(app, app));
    }
    world.want(SERVICE, version("1", service));
    world.settle();
    assert_eq!(world.phase(), "Steady");
    world
}

impl World {
    /// Where a Service leads.
    pub(super) fn leads(&self, name: &str) -> String {
        let Some(service) = self.get(Kind::Service, name) else { return "-".to_owned() };
        let text = |pointer| service.text(pointer).map(str::to_owned);
        text("/spec/selector/app").or_else(|| text("/spec/externalName")).unwrap_or_else(|| "nowhere".to_owned())
    }

    /// Both Services and the share of the second, effect by effect: each new view once. No workload is ours, or changes.
    fn seen_leading(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        for _ in 0..200 {
            if !self.tick_until(1) {
                if self.phase() == "Steady" {
                    return seen;
                }
                self.now += TimeDelta::seconds(70);
            }
            let (stable, copy, weight) = (self.leads("podinfo"), self.leads("podinfo-canary"), self.weight());
            let view = format!("{stable} {}, {copy} {weight}", 100 - weight);
            if seen.last() != Some(&view) {
                seen.push(view);
            }
            for app in ["blue", "green"] {
                let deployment = self.get(Kind::Deployment, app).unwrap();
                assert_eq!((deployment.annotation(OWNER), deployment.generation()), (None, Some(1)), "{app}");
            }
            // The endpoints and the gateway follow.
            self.controllers();
        }
        panic!("no end: {seen:#?} {:#?}", self.log);
    }
}

#[test]
fn c_25_a_service_leads_to_other_pods_in_steps() {
    let mut world = at(to("blue"));
    world.want(SERVICE, version("2", to("green")));
    let expected = [
        "blue 100, - 0",
        "blue 100, nowhere 0",
        "blue 100, green 0",
        "blue 90, green 10",
        "blue 50, green 50",
        "blue 0, green 100",
        "green 0, green 100",
        "green 100, green 0",
        "green 100, - 0",
    ];
    assert_eq!(world.seen_leading(), expected);
    world.settle();
    let posture = world.record().clusters.values().next().unwrap().posture.clone();
    assert_eq!((posture.stable.size, posture.candidate), (Size::Declared, None));
}

#[test]
fn c_27_requests_go_from_one_name_to_the_other_in_steps() {
    let mut world = at(alias("blue"));
    world.want(SERVICE, version("2", alias("green")));
    let (blue, green) = ("lb.blue.example.net", "lb.green.example.net");
    let seen = world.seen_leading();
    let steps = [10, 50, 100].map(|weight| format!("{blue} {}, {green} {weight}", 100 - weight));
    assert!(steps.iter().all(|step| seen.contains(step)), "{seen:#?}");
    assert_eq!(seen.last(), Some(&format!("{green} 100, - 0")));
    world.settle();
}

#[test]
fn c_26_allotments_and_labels_are_applied_without_a_run() {
    let mut world = at(to("blue"));
    let mut allotted = to("blue");
    allotted["ports"][0]["nodePort"] = 30_080.into();
    let more = set_with("1", |all| {
        all.retain(|object| object["kind"] != "Deployment");
        let found = all.iter_mut().find(|object| object["kind"] == "Service").expect("a Service");
        found["metadata"]["labels"] = json!({"team": "shop"});
        found["spec"] = allotted;
    });
    world.want(SERVICE, more);
    world.settle();
    assert_eq!((world.phase().as_str(), world.record().next_run), ("Steady", 1));
    let service = world.get(Kind::Service, "podinfo").unwrap();
    assert_eq!((service.label("team"), service.int("/spec/ports/0/nodePort")), (Some("shop"), Some(30_080)));
}

#[test]
fn c_21_going_back_is_the_route_alone_and_what_promote_has_written() {
    let mut world = at(to("blue"));
    world.want(SERVICE, version("2", to("green")));
    world.settle();
    world.pass(70);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50));
    world.say(DecisionAction::Abort);
    let retreats = world.plan_now().retreats;
    assert!(retreats.iter().all(|action| action.class == Class::Retreat));
    assert_eq!(retreats.first().map(|action| action.verb.target().kind), Some(Kind::HttpRoute));
    world.settle();
    assert_eq!((world.phase().as_str(), world.leads("podinfo").as_str()), ("Steady", "blue"));
    assert_eq!((world.leads("podinfo-canary").as_str(), world.marked()), ("-", vec![]));
}

#[test]
fn c_19_requests_stay_with_the_copy_until_the_service_itself_has_endpoints() {
    let mut world = at(alias("blue"));
    world.want(SERVICE, version("2", to("green")));
    world.settle();
    world.pass(70);
    // Everything that green has is gone for the Service, as its endpoints are late; the copy's are there already.
    world.lost_to = Some("podinfo".to_owned());
    world.pass(70);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(promote)", 100));
    assert_eq!(world.leads("podinfo"), "green");
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 100), "the healthy copy keeps the requests");
    world.lost_to = None;
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!((world.phase().as_str(), world.leads("podinfo-canary").as_str()), ("Steady", "-"));
}

#[test]
fn the_deadline_of_a_service_counts_from_when_it_was_written() {
    let mut world = at(to("blue"));
    world.want(SERVICE, version("2", to("green")));
    world.settle();
    world.pass(70);
    world.now += TimeDelta::seconds(70);
    while world.phase() != "Promoting(promote)" {
        assert!(world.tick_until(1), "{:#?}", world.log);
    }
    // Git has it, and whoever knew of that is gone. The next one writes it, and the endpoints follow a moment later.
    world.now += TimeDelta::seconds(601);
    while world.leads("podinfo") == "blue" {
        assert!(world.tick_until(1), "{:#?}", world.log);
    }
    world.lost_to = Some("podinfo".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(promote)", 100));
    world.lost_to = None;
    world.settle();
    assert_eq!((world.phase().as_str(), world.leads("podinfo").as_str()), ("Steady", "green"));
}

#[test]
fn a_copy_without_ready_endpoints_is_led_nobody_to_and_fails_at_its_deadline() {
    let mut world = at(to("blue"));
    world.want(SERVICE, version("2", to("grene")));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(prepare)", 0));
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.leads("podinfo").as_str()), ("Failed", "blue"));
    assert_eq!(world.weights, [0]);
}

#[test]
fn a_copy_that_is_deleted_or_loses_its_endpoints_takes_the_run_back_at_once() {
    for deleted in [true, false] {
        let mut world = at(to("blue"));
        world.want(SERVICE, version("2", to("green")));
        world.settle();
        world.pass(70);
        if deleted {
            world.remove(Kind::Service, "podinfo-canary");
        } else {
            world.lost_to = Some("podinfo-canary".to_owned());
        }
        world.settle();
        assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 0));
        let record = world.record();
        let why = &record.history.last().unwrap().why;
        let expected = if deleted {
            "half: the candidate's Service was deleted"
        } else {
            "half: the candidate has no ready endpoint left"
        };
        assert_eq!(why, expected);
    }
}

#[test]
fn x_11_a_crash_between_any_two_effects_changes_nothing() {
    for (from, into) in [(to("blue"), to("green")), (alias("blue"), alias("green")), (alias("blue"), to("green"))] {
        let mut world = at(from);
        world.want(SERVICE, version("2", into));
        crash_everywhere(&world);
    }
}

#[test]
fn x_11_a_crash_on_the_way_back_changes_nothing() {
    let mut world = at(to("blue"));
    world.want(SERVICE, version("2", alias("green")));
    world.settle();
    world.say(DecisionAction::Abort);
    crash_everywhere(&world);
}
