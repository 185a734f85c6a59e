//! Gateways that do not let a route in, which may be their own affair or the version's.

use super::manifests::{QUICK, set_with};
use super::world::{Gateway, World};
use crate::record::state::Outcome;
use serde_json::json;

#[test]
fn x_13_a_gateway_that_lets_the_route_in_no_more_refuses_no_version() {
    let mut world = World::at_tenth();
    world.gateway = Gateway::Bar(None);
    world.settle();
    assert!(world.weight() == 0 && world.phase().starts_with("Reverting"), "{}", world.phase());
    world.pass(3_600);
    // It may still do what it took last.
    assert_eq!((world.phase().as_str(), world.waits()), ("Reverting(retire)", vec!["RouteNotEffective"]));
    world.gateway = Gateway::On;
    world.settle();
    assert_eq!(world.image("podinfo-canary"), Some("app:2"), "requests in flight drain from now on");
    world.pass(30);
    let record = world.record();
    let last = record.history.last().expect("a run that has ended");
    let why = "the gateway does not let the route in: test: Accepted=False (NotAllowedByListeners): ";
    assert_eq!((last.outcome, last.why.as_str()), (Outcome::Unmeasured, why.trim_end()));
    assert!(record.refused.is_empty() && record.revert.is_none(), "nobody is asked to undo it");
    assert!(world.waits().contains(&"Held"), "{:?}", world.waits());
}

#[test]
fn x_13_a_version_whose_route_belongs_where_nobody_lets_it_in_is_refused() {
    for (host, outcome) in [("b.example.test", Outcome::Failed), ("a.example.test", Outcome::Promoted)] {
        let mut world = World::new(QUICK, "1");
        world.settle();
        world.gateway = Gateway::Bar(Some("a.example.test"));
        world.want(QUICK, set_with("2", |all| all[3]["spec"]["hostnames"] = json!([host])));
        world.settle();
        for _ in 0..3 {
            world.pass(61);
        }
        let record = world.record();
        let last = record.history.last().expect("a run that has ended");
        assert_eq!(last.outcome, outcome, "{}", last.why);
        assert_eq!(record.refused.len(), usize::from(outcome == Outcome::Failed));
    }
}
