//! The checker is silent where the promise holds and bites where it does not.

use super::logs::{AuditLog, Effect, StateBranch, in_effect_order, instant};
use super::promise::live::Write;
use super::promise::{Checked, Event, Nanos, Watched, What};
use crate::support::audit;
use crate::support::cluster::{Bed, Space};
use crate::support::gateway::http_route;
use crate::support::kubeconfig::client;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tidegate::manifest::desired::Router;
use tidegate::manifest::ids::Percent;

const TIDEGATE: &str = "system:serviceaccount:shop:tidegate";
const OLD: &str = "aaaaaaaaaaaaaaaa";
const NEW: &str = "bbbbbbbbbbbbbbbb";

fn name<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().unwrap()
}

fn watched(router: Router) -> Watched {
    Watched {
        rollout: name("shop/podinfo"),
        cluster: name("home"),
        stable: name("podinfo"),
        candidate: name("podinfo-canary"),
        router: Some(router),
        service: None,
        user: TIDEGATE.to_owned(),
    }
}

fn by_route() -> Watched {
    watched(Router::GatewayApi { http_route: name("podinfo"), service: name("podinfo") })
}

fn by_pods() -> Watched {
    watched(Router::Replicas { service: name("podinfo") })
}

/// A record with that posture, and nine pods as the baseline of its run.
fn state(namespace: &str, stable: Option<&str>, candidate: Option<&str>, split: &Value) -> Value {
    let role = |set: &str, pods: Option<&str>, size: Value| {
        let mut role = json!({"set": set.repeat(40), "size": size});
        if let Some(pods) = pods {
            role["pods"] = pods.into();
        }
        role
    };
    let mut posture = json!({"stable": role("1", stable, json!("declared")), "split": split});
    if candidate.is_some() {
        posture["candidate"] = role("2", candidate, json!({"share": split["weight"].as_u64().unwrap_or(0)}));
    }
    json!({
        "apiVersion": "tidegate.io/v1alpha1", "kind": "RolloutState",
        "metadata": {"namespace": namespace, "name": "podinfo"},
        "writer": {"instance": "test", "version": "0", "cluster": "home", "clusterUid": "u", "epoch": 1},
        "seq": 1, "source": {"commit": "c".repeat(40), "path": "rollout.yaml"}, "nextRun": 2,
        "phase": {"name": "Steady", "how": "Initialized", "since": "2026-01-01T00:00:00Z"},
        "run": {
            "id": "1-00000000", "route": "phases", "from": "1".repeat(40), "to": "2".repeat(40),
            "revision": format!("v1:sha256:{}", "d".repeat(64)), "pods": NEW, "started": "2026-01-01T00:00:00Z",
            "source": "c".repeat(40), "baseline": {"home": 9},
        },
        "clusters": {"home": {"uid": "u", "posture": posture}},
    })
}

/// A log in the making: each line is one second after the one before.
#[derive(Default)]
struct Log(Vec<Event>);

impl Log {
    fn push(mut self, what: What) -> Self {
        let at = Nanos(i64::try_from(self.0.len()).unwrap() * 1_000_000_000);
        self.0.push(Event { at, what });
        self
    }

    fn record(self, stable: Option<&str>, candidate: Option<&str>, split: &Value) -> Self {
        let state = serde_json::from_value(state("shop", stable, candidate, split)).unwrap();
        let commit = format!("commit-{}", self.0.len());
        self.push(What::Moved { commit, state: Some(Box::new(state)) })
    }

    fn write(self, by: &str, resource: &str, name: &str, spec: Value) -> Self {
        let object = Write::Is { resource: resource.to_owned(), name: name.to_owned(), object: json!({"spec": spec}) };
        self.push(What::Wrote { by: by.to_owned(), object })
    }

    fn deployment(self, by: &str, name: &str, replicas: u32, label: Option<&str>, image: &str) -> Self {
        let mut labels = json!({"app": name});
        if let Some(label) = label {
            labels["tidegate.io/pods"] = label.into();
        }
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"image": image}]}});
        self.write(by, "deployments", name, json!({"replicas": replicas, "template": template}))
    }

    fn route(self, by: &str, rules: Value) -> Self {
        self.write(by, "httproutes", "podinfo", json!({"rules": rules}))
    }

    fn weight(self, by: &str, weight: u32) -> Self {
        self.route(by, json!([split_rule(weight)]))
    }

    /// Stable as people have deployed it, the first record, and a candidate of two pods that nobody reaches.
    fn prepared() -> Self {
        Self::default()
            .deployment("ana", "podinfo", 9, None, "v1")
            .record(None, None, &json!({"weight": 0}))
            .record(None, Some(NEW), &json!({"weight": 0}))
            .deployment(TIDEGATE, "podinfo-canary", 2, Some(NEW), "v2")
            .weight(TIDEGATE, 0)
    }

    fn check(self, watched: &Watched) -> Result<Checked, String> {
        watched.check(self.0).map_err(|violation| violation.to_string())
    }

    #[track_caller]
    fn bites(self, watched: &Watched, words: &[&str]) {
        let violation = self.check(watched).expect_err("this breaks the promise");
        for word in words {
            assert!(violation.contains(word), "{word:?} is not in: {violation}");
        }
    }
}

fn split_rule(weight: u32) -> Value {
    json!({"matches": [{"path": {"value": "/"}}], "backendRefs": [
        {"name": "podinfo", "weight": 100 - weight}, {"name": "podinfo-canary", "weight": weight},
    ]})
}

fn header_rule(headers: &Value) -> Value {
    let matches = json!([{"path": {"value": "/"}, "headers": headers}]);
    json!({"matches": matches, "backendRefs": [{"name": "podinfo-canary", "weight": 1}]})
}

#[test]
fn a_whole_rollout_keeps_the_promise() {
    let testers = json!({"weight": 0, "headers": [{"x-canary": "always"}]});
    let tenth = json!({"weight": 10, "headers": [{"x-canary": "always"}]});
    let header = json!([{"name": "X-Canary", "value": "always"}]);
    let checked = Log::prepared()
        .record(None, Some(NEW), &testers)
        .route(TIDEGATE, json!([header_rule(&header), split_rule(0)]))
        .record(None, Some(NEW), &tenth)
        .route(TIDEGATE, json!([header_rule(&header), split_rule(10)]))
        .record(None, Some(NEW), &json!({"weight": 100}))
        .deployment(TIDEGATE, "podinfo-canary", 9, Some(NEW), "v2")
        .weight(TIDEGATE, 100)
        .record(Some(NEW), Some(NEW), &json!({"weight": 100}))
        .deployment(TIDEGATE, "podinfo", 9, Some(NEW), "v2")
        .record(Some(NEW), Some(NEW), &json!({"weight": 0}))
        .weight(TIDEGATE, 0)
        .record(Some(NEW), None, &json!({"weight": 0}))
        .push(What::Wrote {
            by: TIDEGATE.to_owned(),
            object: Write::Gone { resource: "deployments".to_owned(), name: "podinfo-canary".to_owned() },
        })
        .check(&by_route())
        .unwrap();
    assert_eq!(checked.moves, 8);
    assert_eq!(checked.highest_weight, Percent::ALL);
    assert_eq!(checked.most_pods, 9);
    assert_eq!(checked.stable_pods, BTreeSet::from([None, Some(NEW.to_owned())]));
}

#[test]
fn a_weight_before_its_record_bites() {
    let log = Log::prepared().weight(TIDEGATE, 10).record(None, Some(NEW), &json!({"weight": 10}));
    log.bites(
        &by_route(),
        &["HTTPRoute podinfo", "weight 10, 2 candidate pods", "weight 0 (commit commit-2)", TIDEGATE],
    );
}

#[test]
fn a_record_lowered_before_the_route_bites() {
    let log = Log::prepared().record(None, Some(NEW), &json!({"weight": 10})).weight(TIDEGATE, 10);
    log.record(None, Some(NEW), &json!({"weight": 0})).bites(&by_route(), &["when the record became commit-7"]);
}

#[test]
fn headers_that_are_wider_than_recorded_bite() {
    let recorded = json!({"weight": 0, "headers": [{"x-canary": "always", "x-team": "a"}]});
    let narrow =
        json!([{"name": "x-canary", "value": "always"}, {"name": "x-team", "value": "a"}, {"name": "x", "value": "1"}]);
    let log = || Log::prepared().record(None, Some(NEW), &recorded);
    log().route(TIDEGATE, json!([header_rule(&narrow), split_rule(0)])).check(&by_route()).unwrap();
    let wide = json!([{"name": "x-canary", "value": "always"}]);
    log().route(TIDEGATE, json!([header_rule(&wide), split_rule(0)])).bites(&by_route(), &["x-canary: always"]);
    let pattern = json!([{"type": "RegularExpression", "name": "x-canary", "value": "always"}]);
    log().route(TIDEGATE, json!([header_rule(&pattern)])).bites(&by_route(), &["x-canary matches always"]);
    log().route(TIDEGATE, json!([header_rule(&json!([]))])).bites(&by_route(), &["weight 100"]);
}

#[test]
fn a_mirror_to_the_candidate_bites() {
    let mut rule = split_rule(0);
    rule["filters"] = json!([{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "podinfo-canary"}}}]);
    Log::prepared().route(TIDEGATE, json!([rule])).bites(&by_route(), &["mirror 100"]);
    let recorded = Log::prepared().record(None, Some(NEW), &json!({"weight": 0, "mirror": 100}));
    recorded.route(TIDEGATE, json!([rule])).check(&by_route()).unwrap();
}

#[test]
fn a_candidate_of_another_version_than_recorded_bites() {
    let log = Log::prepared().deployment(TIDEGATE, "podinfo-canary", 3, Some(OLD), "v3");
    log.bites(&by_route(), &["podinfo-canary", "no such candidate"]);
}

#[test]
fn candidate_pods_without_a_recorded_candidate_bite_only_when_raised() {
    let retired = Log::prepared().record(None, None, &json!({"weight": 0}));
    retired.check(&by_route()).unwrap();
    let log = Log::prepared().record(None, None, &json!({"weight": 0}));
    log.deployment(TIDEGATE, "podinfo-canary", 3, Some(NEW), "v2").bites(&by_route(), &["3 candidate pods"]);
}

#[test]
fn a_stable_version_that_is_not_recorded_bites() {
    let log = Log::prepared().deployment(TIDEGATE, "podinfo", 9, Some(NEW), "v2");
    log.bites(&by_route(), &["Deployment podinfo", NEW]);
}

#[test]
fn a_new_image_under_the_old_label_bites() {
    let log = Log::prepared().deployment(TIDEGATE, "podinfo", 9, None, "v2");
    log.bites(&by_route(), &["the same label", "v2"]);
}

#[test]
fn a_write_before_any_record_bites() {
    Log::default().deployment(TIDEGATE, "podinfo", 1, None, "v1").bites(&by_route(), &["no record"]);
}

#[test]
fn a_service_that_selects_the_candidate_bites() {
    let log = Log::prepared().write(TIDEGATE, "services", "podinfo", json!({"selector": {"app": "podinfo-canary"}}));
    log.bites(&by_route(), &["Service podinfo", "weight 100"]);
}

#[test]
fn another_hand_is_not_held_against_the_controller_until_it_joins_in() {
    Log::prepared().weight("ana", 50).check(&by_route()).unwrap();
    Log::prepared().weight("ana", 50).weight(TIDEGATE, 0).check(&by_route()).unwrap();
    Log::prepared().weight("ana", 50).weight(TIDEGATE, 20).bites(&by_route(), &["weight 20"]);
}

#[test]
fn calls_are_read_from_a_grpc_route() {
    let watched = watched(Router::Grpc { grpc_route: name("podinfo"), service: name("podinfo") });
    let calls = |log: Log, rules: Value| log.write(TIDEGATE, "grpcroutes", "podinfo", json!({"rules": rules}));
    let header = header_rule(&json!([{"name": "x-canary", "value": "always"}]));
    let tenth = || Log::prepared().record(None, Some(NEW), &json!({"weight": 10}));
    assert_eq!(calls(tenth(), json!([split_rule(10)])).check(&watched).unwrap().highest_weight.get(), 10);
    calls(tenth(), json!([split_rule(11)])).bites(&watched, &["GRPCRoute podinfo", "weight 11"]);
    calls(tenth(), json!([header, split_rule(10)])).bites(&watched, &["x-canary: always"]);
}

/// What is recorded in the test of a router: a tenth, a fifth of the others copied, and testers.
fn recorded() -> Log {
    let cookie = json!({"cookie": {"regex": "^(.*; *)?canary=always( *;.*)?$"}});
    let headers = json!([{"x-canary": "always"}, cookie]);
    Log::prepared().record(None, Some(NEW), &json!({"weight": 10, "mirror": 20, "headers": headers}))
}

/// Weighted services of Traefik.
fn services(stable: u32, new: u32, copied: u32) -> Value {
    json!([
        {"name": "podinfo", "port": 80, "weight": stable}, {"name": "podinfo-canary", "port": 80, "weight": new},
        {"name": "podinfo-canary", "kind": "TraefikService", "weight": copied},
    ])
}

#[test]
fn shares_are_read_from_a_traefik_service() {
    let watched = watched(Router::Traefik { traefik_service: name("podinfo"), service: name("podinfo") });
    let shares = |services: Value| {
        recorded().write(TIDEGATE, "traefikservices", "podinfo", json!({"weighted": {"services": services}}))
    };
    assert_eq!(shares(services(72, 10, 18)).check(&watched).unwrap().highest_weight.get(), 10);
    shares(services(89, 11, 0)).bites(&watched, &["TraefikService podinfo", "weight 11"]);
    shares(services(71, 10, 19)).bites(&watched, &["mirror 22"]);
    shares(json!([{"name": "podinfo-canary", "port": 80}])).bites(&watched, &["weight 100"]);
}

#[test]
fn routes_are_read_from_an_ingress_route() {
    let watched = watched(Router::IngressRoute { ingress_route: name("podinfo"), service: name("podinfo") });
    let routes = |rule: &str, split: Value| {
        let own = json!({"match": rule, "services": [{"name": "podinfo-canary", "port": 80}]});
        let rest = json!({"match": "Host(`a`)", "services": split});
        recorded().write(TIDEGATE, "ingressroutes", "podinfo", json!({"routes": [own, rest]}))
    };
    let cookie = "HeaderRegexp(`cookie`, `^(.*; *)?canary=always( *;.*)?$`)";
    let either = format!("(Host(`a`)) && Header(`x-canary`, `always`) || (Host(`a`)) && {cookie}");
    assert_eq!(routes(&either, services(72, 10, 18)).check(&watched).unwrap().highest_weight.get(), 10);
    routes(&either, services(89, 11, 0)).bites(&watched, &["IngressRoute podinfo", "weight 11"]);
    routes("(Host(`a`)) && Header(`x-canary`, `a`)", services(90, 10, 0)).bites(&watched, &["x-canary: a,"]);
    routes("Host(`a`)", services(90, 10, 0)).bites(&watched, &["weight 100"]);
}

#[test]
fn routes_are_read_from_an_http_proxy() {
    let watched = watched(Router::Contour { http_proxy: name("podinfo"), service: name("podinfo") });
    let routes = |header: Value, rest: Value| {
        let own = json!({"conditions": [{"prefix": "/"}, {"header": header}], "services": [{"name": "podinfo-canary", "port": 80}]});
        let rest = json!({"conditions": [{"prefix": "/"}], "services": rest});
        recorded().write(TIDEGATE, "httpproxies", "podinfo", json!({"routes": [own, rest]}))
    };
    let services = |stable: u32, new: u32| json!([{"name": "podinfo", "weight": stable}, {"name": "podinfo-canary", "weight": new}]);
    let testers = || json!({"name": "X-Canary", "exact": "always"});
    assert_eq!(routes(testers(), services(90, 10)).check(&watched).unwrap().highest_weight.get(), 10);
    routes(testers(), services(89, 11)).bites(&watched, &["HTTPProxy podinfo", "weight 11"]);
    routes(testers(), services(0, 0)).bites(&watched, &["weight 50"]);
    routes(json!({"name": "x-canary", "exact": "a"}), services(90, 10)).bites(&watched, &["x-canary: a,"]);
    let mirror =
        json!([{"name": "podinfo", "port": 80}, {"name": "podinfo-canary", "port": 80, "mirror": true, "weight": 0}]);
    routes(testers(), mirror).bites(&watched, &["mirror 100"]);
}

#[test]
fn routes_are_read_from_a_route_table() {
    let watched = watched(Router::Gloo { route_table: name("podinfo"), service: name("podinfo") });
    let to = |name: &str| json!({"kube": {"ref": {"name": name, "namespace": "shop"}, "port": 80}});
    let routes = |matcher: Value, stable: u32, new: u32| {
        let own = json!({"matchers": [matcher], "routeAction": {"single": to("podinfo-canary")}});
        let several = json!([{"destination": to("podinfo"), "weight": stable}, {"destination": to("podinfo-canary"), "weight": new}]);
        let rest = json!({"matchers": [{"prefix": "/"}], "routeAction": {"multi": {"destinations": several}}});
        recorded().write(TIDEGATE, "routetables", "podinfo", json!({"routes": [own, rest]}))
    };
    let testers = |value: &str| json!({"prefix": "/", "headers": [{"name": "X-Canary", "value": value}]});
    assert_eq!(routes(testers("always"), 90, 10).check(&watched).unwrap().highest_weight.get(), 10);
    routes(testers("always"), 89, 11).bites(&watched, &["RouteTable podinfo", "weight 11"]);
    routes(testers("a"), 90, 10).bites(&watched, &["x-canary: a,"]);
    routes(json!({"prefix": "/"}), 90, 10).bites(&watched, &["weight 100"]);
}

#[test]
fn testers_are_read_from_a_canary_ingress() {
    let watched = watched(Router::Nginx { ingress: name("podinfo"), service: name("podinfo") });
    let canary = |header: &str, cookie: &str, weight: &str| {
        let said = |what: &str| format!("nginx.ingress.kubernetes.io/{what}");
        let mut annotations = json!({});
        let all =
            [("canary", "true"), ("canary-by-header", header), ("canary-by-cookie", cookie), ("canary-weight", weight)];
        for (key, value) in all {
            annotations[said(key)] = value.into();
        }
        let object = json!({"metadata": {"annotations": annotations}});
        let (resource, name) = ("ingresses".to_owned(), "podinfo-canary".to_owned());
        recorded()
            .push(What::Wrote { by: TIDEGATE.to_owned(), object: Write::Is { resource, name, object } })
            .check(&watched)
    };
    assert_eq!(canary("x-canary", "canary", "10").unwrap().highest_weight.get(), 10);
    assert!(canary("x-canary", "", "11").unwrap_err().contains("weight 11"));
    assert!(canary("x-other", "canary", "0").unwrap_err().contains("x-other: always"));
    assert!(canary("x-canary", "other", "0").unwrap_err().contains("other=always"));
}

#[test]
fn a_service_that_is_the_target_leads_where_the_record_says() {
    let leads =
        |log: Log, name: &str, app: &str| log.write(TIDEGATE, "services", name, json!({"selector": {"app": app}}));
    let blue = json!({"selector": {"app": "blue"}});
    let state = |old: &str, new: Option<&str>, weight: u32| {
        let mut state = state("shop", None, new.map(|_| NEW), &json!({"weight": weight}));
        let posture = &mut state["clusters"]["home"]["posture"];
        posture["stable"]["set"] = old.repeat(40).into();
        if new.is_some() {
            posture["candidate"] = json!({"set": "2".repeat(40), "size": "declared"});
        }
        serde_json::from_value(state).unwrap()
    };
    let record = |log: Log, old, new, weight| {
        let state = Some(Box::new(state(old, new, weight)));
        log.push(What::Moved { commit: format!("{old}-{weight}"), state })
    };
    let copied = || {
        let log = record(Log::default().write("ana", "services", "podinfo", blue.clone()), "1", Some("2"), 0);
        leads(log, "podinfo-canary", "green").weight(TIDEGATE, 0)
    };
    leads(copied(), "podinfo", "green").bites(&by_route(), &["Service podinfo, which leads where", "weight 100"]);
    copied().weight(TIDEGATE, 10).bites(&by_route(), &["weight 10"]);
    leads(copied(), "podinfo-canary", "blue").check(&by_route()).unwrap();
    let log = record(record(copied(), "1", Some("2"), 100).weight(TIDEGATE, 100), "2", Some("2"), 100);
    let log = record(leads(log, "podinfo", "green"), "2", Some("2"), 0).weight(TIDEGATE, 0);
    let gone = Write::Gone { resource: "services".to_owned(), name: "podinfo-canary".to_owned() };
    let log = record(log, "2", None, 0).push(What::Wrote { by: TIDEGATE.to_owned(), object: gone });
    assert_eq!(log.check(&by_route()).unwrap().highest_weight, Percent::ALL);
}

#[test]
fn with_pods_as_weight_the_number_of_pods_is_the_exposure() {
    let log = || {
        Log::default()
            .deployment("ana", "podinfo", 9, None, "v1")
            .write("ana", "services", "podinfo", json!({"selector": {"app": "podinfo"}}))
            .record(None, None, &json!({"weight": 0}))
            .record(None, Some(NEW), &json!({"weight": 10}))
    };
    let pods = |log: Log, n| log.deployment(TIDEGATE, "podinfo-canary", n, Some(NEW), "v2");
    assert_eq!(pods(log(), 1).check(&by_pods()).unwrap().most_pods, 1);
    pods(log(), 2).bites(&by_pods(), &["2 candidate pods", "weight 10, which is 1 pods"]);
    let all = json!({"selector": {"app": "podinfo", "tidegate.io/pods": NEW}});
    pods(log(), 1).write(TIDEGATE, "services", "podinfo", all).bites(&by_pods(), &["Service podinfo", "weight 100"]);
    let scaled = Write::Scaled { name: "podinfo-canary".to_owned(), replicas: json!(5) };
    let scaled = What::Wrote { by: TIDEGATE.to_owned(), object: scaled };
    pods(log(), 1).push(scaled).bites(&by_pods(), &["5 candidate pods"]);
    let lowered = pods(log(), 1).record(None, Some(NEW), &json!({"weight": 0}));
    lowered.bites(&by_pods(), &["when the record became"]);
}

fn line(verb: &str, received: &str, answered: &str, version: Option<u64>) -> String {
    let metadata = version.map(|v| json!({"name": "podinfo", "resourceVersion": v.to_string()}));
    json!({
        "stage": "ResponseComplete", "verb": verb, "user": {"username": TIDEGATE}, "userAgent": "tidegate",
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/podinfo",
        "objectRef": {"resource": "deployments", "namespace": "shop", "name": "podinfo"},
        "responseStatus": {"code": 200}, "responseObject": {"metadata": metadata, "spec": {"replicas": version}},
        "requestReceivedTimestamp": format!("2026-01-01T00:00:{received}Z"),
        "stageTimestamp": format!("2026-01-01T00:00:{answered}Z"),
    })
    .to_string()
}

#[test]
fn writes_are_in_the_order_in_which_they_took_effect() {
    let lines = [
        line("patch", "00.900000", "05.000000", Some(7)),
        line("patch", "01.000000", "01.100000", Some(6)),
        line("delete", "05.100000", "05.200000", None),
        line("patch", "05.300000", "05.400000", Some(8))
            .replace("{\"metadata\":", r#"{"kind":"PartialObjectMetadata","metadata":"#),
        line("create", "06.000000", "06.100000", Some(9)),
    ];
    let effects = lines.iter().rev().filter_map(|l| Effect::of(audit::parse(l).unwrap())).collect();
    let events = in_effect_order(effects);
    let start = instant("1767225600.000000000").0;
    let seen: Vec<(i64, Option<u64>)> = events
        .iter()
        .map(|event| {
            let What::Wrote { object, .. } = &event.what else { panic!("no write: {event:?}") };
            let version =
                if let Write::Is { object, .. } = object { object["spec"]["replicas"].as_u64() } else { None };
            ((event.at.0 - start) / 1_000_000, version)
        })
        .collect();
    assert_eq!(seen, [(1000, Some(6)), (1000, Some(7)), (5100, None), (6000, Some(9))]);
}

const STATE: &str = "refs/heads/tidegate/test/state";
const HOOK: &str = r#"#!/bin/sh
[ "$1" = committed ] || exit 0
while read -r old new ref; do echo "$(date +%s.%N) $old $new $ref" >>"$GIT_DIR/moves"; done
"#;

/// Moves the state branch of a bare repository to a commit with that record, as a push does.
fn record(repository: &Path, state: &Value) {
    let bare = git2::Repository::open_bare(repository).unwrap();
    let blob = bare.blob(serde_yaml::to_string(state).unwrap().as_bytes()).unwrap();
    let empty = bare.find_tree(bare.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let namespace = state["metadata"]["namespace"].as_str().unwrap();
    let mut update = git2::build::TreeUpdateBuilder::new();
    update.upsert(format!("rollouts/{namespace}/podinfo/state.yaml"), blob, git2::FileMode::Blob);
    let tree = bare.find_tree(update.create_updated(&bare, &empty).unwrap()).unwrap();
    let author = git2::Signature::now("test", "test@example.test").unwrap();
    let commit = bare.commit(None, &author, &author, "record", &tree, &[]).unwrap();
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["update-ref", STATE, &commit.to_string()]);
    assert!(git.status().unwrap().success());
}

async fn set_weight(space: &Space, weight: u32) {
    let tidegate = client(&space.kubeconfig).await;
    let routes = Api::<DynamicObject>::namespaced_with(tidegate, &space.name, &http_route());
    let mut rule = split_rule(weight);
    for backend in rule["backendRefs"].as_array_mut().unwrap() {
        backend["port"] = 80.into();
    }
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "podinfo"},
        "spec": {"parentRefs": [{"name": "gateway"}], "rules": [rule]},
    });
    routes.patch("podinfo", &PatchParams::apply("tidegate"), &Patch::Apply(route)).await.unwrap();
}

/// Part of what the test bed does.
pub(crate) async fn the_logs_of_a_real_api_server_and_a_real_repository_merge(bed: &Bed) {
    let space = bed.space("promise").await;
    let folder = tempfile::tempdir().unwrap();
    git2::Repository::init_bare(folder.path()).unwrap();
    let hook = folder.path().join("hooks/reference-transaction");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, HOOK).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();

    let mut watched = by_route();
    watched.rollout = name(&format!("{}/podinfo", space.name));
    watched.user.clone_from(&space.user);
    let moves = folder.path().join("moves");
    let branch = StateBranch { repository: folder.path(), moves: &moves, reference: STATE };
    let weight = |w: u32| state(&space.name, None, Some(NEW), &json!({"weight": w}));

    for step in [0, 10, 50] {
        record(folder.path(), &weight(step));
        set_weight(&space, step).await;
    }
    set_weight(&space, 0).await;
    record(folder.path(), &weight(0));
    bed.mark().await;
    let log = bed.audit_log();
    let audit = AuditLog { path: &log, begin: space.begin };
    let checked = watched.assert_kept(audit, branch);
    assert_eq!((checked.moves, checked.writes, checked.highest_weight.get()), (4, 4, 50));

    set_weight(&space, 1).await;
    bed.mark().await;
    let words = watched.check_logs(audit, branch).unwrap_err().to_string();
    assert!(words.contains("weight 1, 0 candidate pods"), "{words}");
}
