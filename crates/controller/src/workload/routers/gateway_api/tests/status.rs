//! What gateways say of a route, and what that comes to.

use super::*;
use crate::workload::routers::RouteStatus;

fn condition(kind: &str, status: &str, reason: &str, generation: i64) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "words", "observedGeneration": generation})
}

fn accepted(generation: i64) -> Value {
    json!([
        condition("Accepted", "True", "Accepted", generation),
        condition("ResolvedRefs", "True", "ResolvedRefs", generation)
    ])
}

fn parent(name: &str, conditions: Value) -> Value {
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name, "namespace": "shop"});
    json!({"parentRef": parent, "controllerName": "example.org/gw", "conditions": conditions})
}

fn stands(parents: Value, statuses: Value) -> &'static str {
    let live = object(
        Kind::HttpRoute,
        "web",
        json!({"metadata": {"generation": 2}, "spec": {"parentRefs": parents}, "status": {"parents": statuses}}),
    );
    match route_status(&live) {
        RouteStatus::NotYet { .. } => "not yet",
        RouteStatus::Effective => "effective",
        RouteStatus::Refused { .. } => "refused",
        RouteStatus::Barred { .. } => "barred",
        RouteStatus::Blocked { .. } => "blocked",
        RouteStatus::Unknown { .. } => "unknown",
    }
}

/// Linkerd numbers no condition, and writes the group of a Service in its own way.
#[test]
fn x_15_c_21_a_route_of_a_mesh_stands_when_linkerd_says_so() {
    let judged = |controller: &str, status: &str, generation: Value| {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "r", "observedGeneration": generation});
        let conditions = json!([condition("Accepted", status), condition("ResolvedRefs", "True")]);
        let of = json!({"group": "core", "kind": "Service", "name": "web", "namespace": "shop", "port": 80});
        let entry = json!({"controllerName": controller, "parentRef": of, "conditions": conditions});
        let parents = json!([{"group": "", "kind": "Service", "name": "web", "port": 80}]);
        stands(parents, json!([entry]))
    };
    const LINKERD: &str = "linkerd.io/policy-controller";
    assert_eq!(judged(LINKERD, "True", Value::Null), "effective");
    assert_eq!(judged(LINKERD, "False", Value::Null), "refused");
    assert_eq!(judged(LINKERD, "True", json!(1)), "not yet", "should it number them one day");
    assert_eq!(judged("example.com/mesh", "True", Value::Null), "not yet");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all that a gateway controller may say")]
fn x_15_a_route_stands_when_every_parent_says_so_of_this_generation() {
    let gw = || json!([{"name": "gw"}]);
    let both = |a: Value, b: Value| json!([parent("gw", json!([a, b]))]);
    let ok = |kind: &str, generation| condition(kind, "True", kind, generation);
    let resolved = |reason: &str| both(ok("Accepted", 2), condition("ResolvedRefs", "False", reason, 2));
    let refused = |reason: &str| both(condition("Accepted", "False", reason, 2), ok("ResolvedRefs", 2));
    let table = [
        ("in force", gw(), json!([parent("gw", accepted(2))]), "effective"),
        ("older status", gw(), json!([parent("gw", accepted(1))]), "not yet"),
        ("status of a later generation", gw(), json!([parent("gw", accepted(3))]), "not yet"),
        ("one of two is older", gw(), both(ok("Accepted", 2), ok("ResolvedRefs", 1)), "not yet"),
        (
            "an older refusal",
            gw(),
            both(condition("Accepted", "False", "NotAllowedByListeners", 1), ok("ResolvedRefs", 2)),
            "not yet",
        ),
        ("no generation", gw(), both(json!({"type": "Accepted", "status": "True"}), ok("ResolvedRefs", 2)), "not yet"),
        ("no status", gw(), json!([]), "not yet"),
        ("another parent's", gw(), json!([parent("other", accepted(2))]), "not yet"),
        ("one condition missing", gw(), json!([parent("gw", json!([ok("Accepted", 2)]))]), "not yet"),
        ("not accepted", gw(), refused("UnsupportedValue"), "refused"),
        ("not let in", gw(), refused("NotAllowedByListeners"), "barred"),
        (
            "not let in, and unresolved",
            gw(),
            both(
                condition("Accepted", "False", "NotAllowedByListeners", 2),
                condition("ResolvedRefs", "False", "InvalidKind", 2),
            ),
            "refused",
        ),
        ("pending", gw(), refused("Pending"), "not yet"),
        ("unknown", gw(), both(condition("Accepted", "Unknown", "Pending", 2), ok("ResolvedRefs", 2)), "not yet"),
        ("unresolved", gw(), resolved("RefNotPermitted"), "refused"),
        ("the Service is not seen yet", gw(), resolved("BackendNotFound"), "not yet"),
        ("no parents", json!([]), json!([]), "unknown"),
        (
            "part of it dropped",
            gw(),
            json!([parent(
                "gw",
                json!([
                    ok("Accepted", 2),
                    ok("ResolvedRefs", 2),
                    condition("PartiallyInvalid", "True", "UnsupportedValue", 2)
                ])
            )]),
            "refused",
        ),
        (
            "two controllers, one in force",
            gw(),
            json!([
                parent("gw", json!([condition("Accepted", "False", "NoMatchingParent", 2)])),
                parent("gw", accepted(2))
            ]),
            "effective",
        ),
        (
            "two parents, one silent",
            json!([{"name": "gw"}, {"name": "b"}]),
            json!([parent("gw", accepted(2))]),
            "not yet",
        ),
        (
            "two parents, one does not let it in",
            json!([{"name": "gw"}, {"name": "b"}]),
            json!([
                parent("gw", accepted(1)),
                parent("b", json!([condition("Accepted", "False", "NoMatchingParent", 2)]))
            ]),
            "barred",
        ),
        (
            "two parents, and the other one refuses",
            json!([{"name": "gw"}, {"name": "b"}]),
            json!([
                parent("gw", json!([condition("Accepted", "False", "UnsupportedValue", 2)])),
                parent("b", json!([condition("Accepted", "False", "NoMatchingParent", 2)]))
            ]),
            "refused",
        ),
        (
            "another section",
            json!([{"name": "gw", "sectionName": "tls"}]),
            json!([parent("gw", accepted(2))]),
            "not yet",
        ),
        (
            "another namespace",
            json!([{"name": "gw", "namespace": "infra"}]),
            json!([parent("gw", accepted(2))]),
            "not yet",
        ),
    ];
    for (what, parents, statuses, expected) in table {
        assert_eq!(stands(parents, statuses), expected, "{what}");
    }
}

#[test]
fn a_refusal_carries_the_gateways_words() {
    let conditions = json!([condition("Accepted", "False", "UnsupportedValue", 2)]);
    let live = object(
        Kind::HttpRoute,
        "web",
        json!({"metadata": {"generation": 2}, "spec": {"parentRefs": [{"name": "gw"}]}, "status": {"parents": [parent("gw", conditions)]}}),
    );
    let why = "example.org/gw: Accepted=False (UnsupportedValue): words".to_owned();
    assert_eq!(route_status(&live), RouteStatus::Refused { why });
}
