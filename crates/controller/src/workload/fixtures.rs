//! Small sets and live worlds for the tests of the pure rooms.

use super::live::LiveState;
use crate::manifest::desired::{Layout, OnFailure, Plan, Promotion, Router, Set, Target, TargetKind, Track, Traffic};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Namespace, ObjectName, PodsDigest};
use crate::manifest::object::{Kind, Object, ObjectRef};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn namespace() -> Namespace {
    "shop".parse().unwrap()
}

pub(crate) fn name(text: &str) -> ObjectName {
    text.parse().unwrap()
}

pub(crate) fn pods() -> PodsDigest {
    "0123456789abcdef".parse().unwrap()
}

pub(crate) fn reference(kind: Kind, text: &str) -> ObjectRef {
    ObjectRef { kind, namespace: namespace(), name: name(text) }
}

pub(crate) fn object(kind: Kind, name: &str, value: Value) -> Object {
    Object::new(reference(kind, name), value)
}

pub(crate) fn set(objects: impl IntoIterator<Item = Object>) -> Set {
    Set {
        id: "0".repeat(40).parse().unwrap(),
        files: BTreeMap::new(),
        objects: objects.into_iter().map(|o| (o.reference().clone(), o)).collect(),
        tracked: BTreeMap::new(),
        layers: Vec::new(),
        revision: format!("v1:sha256:{}", "0".repeat(64)).parse().unwrap(),
        pods: pods(),
    }
}

pub(crate) fn live(objects: impl IntoIterator<Item = Object>) -> LiveState {
    LiveState {
        objects: objects.into_iter().map(|o| (o.reference().clone(), Arc::new(o))).collect(),
        ..LiveState::default()
    }
}

pub(crate) fn gateway() -> Router {
    Router::GatewayApi { http_route: name("web"), service: name("web") }
}

pub(crate) fn by_pods() -> Router {
    Router::Replicas { service: name("web") }
}

pub(crate) fn plan(router: Option<Router>) -> Plan {
    let second: Span = "1s".parse().unwrap();
    Plan {
        target: Target {
            kind: TargetKind::Deployment,
            name: name("web"),
            layout: Layout::InPlace,
            track: Track::default(),
            variant: None,
        },
        traffic: router.map(|router| Traffic { router, settle: second, drain: second, session_affinity: None }),
        phases: Vec::new(),
        promotion: Promotion::default(),
        on_failure: OnFailure::default(),
        progress_deadline: second,
        max_unready: crate::manifest::desired::usual_max_unready(),
        on_stable_down: crate::manifest::desired::OnStableDown::Wait,
        nodes: None,
        rolling_update: crate::manifest::desired::RollingUpdate::default(),
        checks: std::collections::BTreeMap::new(),
        hooks: std::collections::BTreeMap::new(),
        jobs: std::collections::BTreeMap::new(),
    }
}
