use super::*;
use crate::record::posture::Naming;
use crate::workload::fixtures::{by_pods, live, name, namespace, object, pods};
use crate::workload::live::LiveState;
use crate::workload::routers::tests::rendered;
use crate::workload::routers::{self, RouteStatus};
use proptest::prelude::*;
use serde_json::json;

fn weight(weight: u8) -> Percent {
    weight.try_into().unwrap()
}

fn split(of: u8) -> Split {
    Split { weight: weight(of), ..Split::stable() }
}

fn service(asks: Option<&str>) -> Object {
    let mut selector = json!({"app": "web"});
    if let Some(pods) = asks {
        selector[PODS] = pods.into();
    }
    object(Kind::Service, "web", json!({"spec": {"selector": selector}}))
}

/// A Deployment whose status has seen its generation, unless told otherwise.
fn deployment(name: &str, replicas: u32, ready: u32, seen: u32) -> Object {
    let mut labels = json!({"app": "web"});
    if name.ends_with("-canary") {
        labels[PODS] = pods().as_str().into();
    }
    object(
        Kind::Deployment,
        name,
        json!({
            "metadata": {"generation": 4},
            "spec": {"replicas": replicas, "template": {"metadata": {"labels": labels}}},
            "status": {"observedGeneration": seen, "replicas": replicas, "readyReplicas": ready},
        }),
    )
}

fn slice(slice: &str, pods: &[&str]) -> Object {
    let endpoints: Vec<_> = pods
        .iter()
        .map(|pod| json!({"conditions": {"ready": !pod.ends_with('!')}, "targetRef": {"kind": "Pod", "name": pod}}))
        .collect();
    let metadata = json!({"labels": {"kubernetes.io/service-name": "web"}});
    object(Kind::EndpointSlice, slice, json!({"metadata": metadata, "endpoints": endpoints}))
}

fn on<T>(state: &LiveState, baseline: u32, run: impl FnOnce(&RouteView<'_>) -> T) -> T {
    run(&RouteView { live: state, namespace: &namespace(), target: &name("web"), baseline, naming: &Naming::InPlace })
}

#[test]
fn candidate_pods_never_exceed_the_weight() {
    let table = [
        (3, 0, 0),
        (3, 10, 0),
        (3, 24, 0),
        (3, 25, 1),
        (3, 50, 3),
        (3, 75, 9),
        (3, 99, 297),
        (3, 100, 3),
        (9, 10, 1),
        (0, 50, 0),
        (0, 100, 0),
        (u32::MAX, 99, u32::MAX),
    ];
    for (baseline, of, expected) in table {
        assert_eq!(candidate_replicas(baseline, weight(of)), expected, "{baseline} at {of}");
    }
}

#[test]
fn at_100_the_service_asks_for_the_candidates_pods() {
    let render = |of: u8| rendered(&Replicas(&name("web")), &service(None), &split(of));
    assert_eq!(render(99), service(None));
    assert_eq!(render(100), service(Some("0123456789abcdef")));
}

#[test]
fn c_22_the_split_is_read_from_sizes_and_selector() {
    let ours = "0123456789abcdef";
    let canary = |replicas| deployment("web-canary", replicas, 0, 4);
    let table = [
        (vec![], Some(0)),
        (vec![service(None)], Some(0)),
        (vec![service(None), canary(0)], Some(0)),
        (vec![service(None), canary(1)], Some(25)),
        (vec![service(None), canary(3)], Some(50)),
        (vec![service(Some(ours)), canary(3)], Some(100)),
        (vec![service(Some(ours)), canary(0)], Some(100)),
        (vec![service(Some(ours))], None),
        (vec![service(Some("fedcba9876543210")), canary(3)], None),
    ];
    for (objects, expected) in table {
        let seen = on(&live(objects.clone()), 3, |view| routers::read(&by_pods(), view));
        match expected {
            Some(of) => assert_eq!(seen, ObservedSplit::Split(split(of)), "{objects:?}"),
            None => assert!(matches!(seen, ObservedSplit::Foreign(_)), "{objects:?}"),
        }
    }
}

#[test]
fn retreat_lowers_selector_and_size_and_says_so_twice_the_same() {
    let manager = |object: Object, field: &str| {
        let mut object = object;
        let fields = json!({"f:spec": {format!("f:{field}"): {}}});
        object.value_mut()["metadata"]["managedFields"] =
            json!([{"manager": "tidegate", "operation": "Apply", "fieldsV1": fields}]);
        object
    };
    let state = live([
        manager(service(Some("0123456789abcdef")), "selector"),
        deployment("web", 3, 3, 4),
        manager(deployment("web-canary", 3, 3, 4), "template"),
    ]);
    let lowered = on(&state, 3, |view| routers::retreat(&by_pods(), view, "tidegate"));
    assert_eq!(lowered.len(), 2);
    assert_eq!(lowered[0].at("/spec"), Some(&json!({"selector": {"app": "web"}})));
    assert_eq!(lowered[1].int("/spec/replicas"), Some(0));
    assert_eq!(lowered[1].text("/spec/template/metadata/labels/app"), Some("web"));
    assert!(
        lowered
            .iter()
            .all(|o| o.uid().is_none() && o.at("/status").is_none() && o.at("/metadata/managedFields").is_none())
    );
    let again = on(&live(lowered.clone()), 3, |view| routers::retreat(&by_pods(), view, "tidegate"));
    for (first, second) in lowered.iter().zip(&again) {
        assert_eq!(first.at("/spec/selector"), second.at("/spec/selector"));
        assert_eq!(first.at("/spec/replicas"), second.at("/spec/replicas"));
    }
    let stable = on(&live(again), 3, |view| routers::read(&by_pods(), view));
    assert_eq!(stable, ObservedSplit::Split(Split::stable()));
}

#[test]
fn c_33_the_service_stands_when_its_endpoints_have_followed() {
    let stable = |ready| deployment("web", 3, ready, 4);
    let canary = |ready| deployment("web-canary", 1, ready, 4);
    let all = Some("0123456789abcdef");
    let mut eager = service(None);
    eager.value_mut()["spec"]["publishNotReadyAddresses"] = true.into();
    let table = [
        ("both", vec![service(None), stable(3), canary(1), slice("a", &["a", "b", "c", "d"])], true),
        ("two families", vec![service(None), stable(1), slice("a", &["a"]), slice("b", &["a"])], true),
        ("one is missing", vec![service(None), stable(3), canary(1), slice("a", &["a", "b", "c"])], false),
        ("one is not ready", vec![service(None), stable(3), slice("a", &["a", "b", "c!"])], false),
        ("nothing ready", vec![service(None), stable(0), slice("a", &[])], false),
        ("stable still there", vec![service(all), stable(3), canary(1), slice("a", &["a", "b", "c", "d"])], false),
        ("the candidate alone", vec![service(all), stable(3), canary(1), slice("a", &["d"])], true),
        ("x_15 older status", vec![service(None), deployment("web", 3, 3, 3), slice("a", &["a", "b", "c"])], false),
        ("no Service", vec![stable(3)], false),
        ("unready too", vec![eager, stable(0), slice("a", &["a", "b", "c"])], true),
    ];
    for (what, objects, expected) in table {
        let standing = on(&live(objects), 3, |view| routers::status(&by_pods(), view));
        assert_eq!(standing == RouteStatus::Effective, expected, "{what}: {standing:?}");
    }
}

proptest! {
    #[test]
    fn c_22_read_is_at_most_the_weight_and_renders_the_same(baseline in 0_u32..5_000, of in 0_u8..=100) {
        let shown = reachable(baseline, &split(of));
        prop_assert!(shown.weight <= weight(of));
        if of < 100 {
            let replicas = candidate_replicas(baseline, weight(of));
            prop_assert!(u64::from(replicas) * 100 <= u64::from(of) * (u64::from(baseline) + u64::from(replicas)));
            prop_assert_eq!(candidate_replicas(baseline, shown.weight), replicas);
        }
    }

    #[test]
    fn below_the_smallest_weight_there_is_no_pod(baseline in 1_u32..5_000) {
        // As `WeightTooFine` names it: baseline × w ≥ 100 − w, solved for w.
        let least = u8::try_from(100_u32.div_ceil(baseline + 1)).unwrap();
        prop_assert!(candidate_replicas(baseline, weight(least)) >= 1);
        prop_assert_eq!(candidate_replicas(baseline, weight(least - 1)), 0);
    }
}
