use super::*;
use crate::manifest::desired::Router;
use crate::manifest::object::ROLE;
use crate::record::posture::Names;
use crate::workload::fixtures::{live, name, namespace, object, pods};
use crate::workload::routers::tests::rendered;
use crate::workload::routers::{self, RouteStatus};
use serde_json::json;

fn split(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

fn service(selector: Value) -> Object {
    object(Kind::Service, "web", json!({"spec": {"selector": selector, "ports": [{"port": 80}]}}))
}

fn deployment(name: &str, app: &str) -> Object {
    let spec = json!({"replicas": 2, "template": {"metadata": {"labels": {"app": app, "tier": "front"}}}});
    let status = json!({"observedGeneration": 4, "replicas": 2, "readyReplicas": 2});
    object(Kind::Deployment, name, json!({"metadata": {"generation": 4}, "spec": spec, "status": status}))
}

fn slice(pods: &[&str]) -> Object {
    let endpoints: Vec<_> = pods.iter().map(|pod| json!({"targetRef": {"kind": "Pod", "name": pod}})).collect();
    let metadata = json!({"labels": {"kubernetes.io/service-name": "web"}});
    object(Kind::EndpointSlice, "web-1", json!({"metadata": metadata, "endpoints": endpoints}))
}

fn on<T>(objects: Vec<Object>, run: impl FnOnce(&RouteView<'_>) -> T) -> T {
    by(&Naming::InPlace, objects, run)
}

fn by<T>(naming: &Naming, objects: Vec<Object>, run: impl FnOnce(&RouteView<'_>) -> T) -> T {
    run(&RouteView { live: &live(objects), namespace: &namespace(), target: &name("web"), baseline: 2, naming })
}

fn router() -> Router {
    Router::Service { service: name("web") }
}

fn retreat(live: &Object, view: &RouteView<'_>) -> Object {
    Selector(&name("web")).lowered(live, view)
}

fn primary() -> Naming {
    Naming::Primary(Names { target: name("web"), service: name("web") })
}

/// The target in the layout `primary`, the candidate's or not.
fn target(role: &str) -> Object {
    let mut target = deployment("web", "web");
    target.annotate(ROLE, role);
    target
}

fn both() -> Vec<Object> {
    vec![deployment("web", "web"), deployment("web-canary", "web-canary")]
}

#[test]
fn the_selector_changes_at_100_and_nowhere_else() {
    let plain = service(json!({"app": "web", "tier": "front"}));
    let render = |of| rendered(&Selector(&name("web")), &plain, &split(of));
    assert_eq!(render(0), plain);
    assert_eq!(render(100), service(json!({"app": "web-canary", "tier": "front"})));
}

#[test]
fn c_22_what_the_selector_asks_for_is_the_split() {
    let table = [
        (json!({"app": "web"}), both(), Some(0)),
        (json!({"app": "web-canary"}), both(), Some(100)),
        // Whoever takes a Deployment away changes nothing of where requests are sent.
        (json!({"app": "web-canary"}), vec![], Some(100)),
        (json!({"app": "web-canary"}), both()[..1].to_vec(), Some(100)),
        (json!({"app": "web"}), vec![], Some(0)),
        // An application may be called so itself.
        (json!({"app": "web-canary"}), vec![deployment("web", "web-canary")], Some(0)),
        (json!({"app": "other"}), both(), Some(0)),
        (json!({"tier": "front"}), both(), None),
    ];
    for (selector, mut objects, expected) in table {
        objects.push(service(selector.clone()));
        let seen = on(objects, |view| routers::read(&router(), view));
        match expected {
            Some(of) => assert_eq!(seen, ObservedSplit::Split(split(of)), "{selector}"),
            None => assert!(matches!(seen, ObservedSplit::Foreign(_)), "{selector}"),
        }
    }
    assert_eq!(on(both(), |view| routers::read(&router(), view)), ObservedSplit::Split(Split::stable()), "no Service");
}

#[test]
fn c_21_the_way_back_needs_nothing_but_the_live_service() {
    let switched = service(json!({"app": "web-canary", "tier": "front"}));
    let plain = service(json!({"app": "web", "tier": "front"}));
    assert_eq!(on(both(), |view| retreat(&switched, view)), plain);
    assert_eq!(on(vec![], |view| retreat(&switched, view)), plain, "also where no Deployment is left");
    assert_eq!(on(both(), |view| retreat(&plain, view)), plain, "twice is once");
    let own = vec![deployment("web", "web-canary")];
    assert_eq!(on(own, |view| retreat(&switched, view)), switched, "an application that is called so");
}

#[test]
fn c_33_the_switch_stands_when_exactly_the_candidates_pods_are_behind_it() {
    let status = |selector: Value, pods: &[&str]| {
        let objects = both().into_iter().chain([service(selector), slice(pods)]).collect();
        on(objects, |view| routers::status(&router(), view))
    };
    let (stable, candidate) = (json!({"app": "web"}), json!({"app": "web-canary"}));
    assert_eq!(status(stable.clone(), &["a", "b"]), RouteStatus::Effective);
    assert!(matches!(status(stable, &["a"]), RouteStatus::NotYet { .. }));
    assert_eq!(status(candidate.clone(), &["c", "d"]), RouteStatus::Effective);
    assert!(matches!(status(candidate, &["b", "c", "d"]), RouteStatus::NotYet { .. }), "one of stable's is left");
}

#[test]
fn c_1_the_targets_pods_are_the_candidates_where_its_mark_says_so() {
    let copy = || deployment("web-primary", "web-primary");
    let (to_target, to_copy) = (json!({"app": "web", "tier": "front"}), json!({"app": "web-primary", "tier": "front"}));
    let table = [
        ("in a run", vec![target("candidate"), copy()], 100),
        ("a copy that somebody deleted", vec![target("candidate")], 100),
        ("a target that somebody deleted", vec![copy()], 100),
        ("at first sight", vec![deployment("web", "web"), copy()], 0),
        ("at first sight, before the copy", vec![deployment("web", "web")], 0),
        ("on the way out", vec![target("stable"), copy()], 0),
        ("nobody", vec![], 0),
    ];
    for (what, objects, weight) in table {
        let live = |selector: &Value| objects.iter().cloned().chain([service(selector.clone())]).collect();
        let seen = |selector| by(&primary(), live(selector), |view| routers::read(&router(), view));
        assert_eq!(seen(&to_target), ObservedSplit::Split(split(weight)), "{what}");
        assert_eq!(seen(&to_copy), ObservedSplit::Split(split(0)), "{what}");
        let back = by(&primary(), live(&to_target), |view| retreat(&service(to_target.clone()), view));
        assert_eq!(back, service(if weight == 100 { to_copy.clone() } else { to_target.clone() }), "{what}");
    }
    let at_stable = service(to_copy);
    let render =
        |of| routers::render(&router(), &at_stable, Form { split: &split(of), candidate: &pods(), naming: &primary() });
    assert_eq!(render(100), service(to_target));
    assert_eq!(render(0), at_stable);
}
