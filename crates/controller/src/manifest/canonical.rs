//! The canonical form of objects: equal meaning, equal bytes, so that a digest can stand for a version.
//!
//! RFC 8785 of the parsed values. Nulls and the defaults of [`DEFAULTS`] are left out, since the API server reads the
//! absent field the same way; empties and the order of lists stay, since they can mean something. The table is closed:
//! a new row is a new hash tag (requirement C-5).

use super::hex::hex;
use super::ids::{PodsDigest, Revision};
use super::object::{Kind, Object, items_mut};
use super::reference::{self, Referent};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The largest integer that all JSON readers agree on (RFC 8785, section 3.2.2.3; ECMAScript's MAX_SAFE_INTEGER).
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Fields that mean the same when absent: where (`*` is every item of a list), and the default as JSON. Deeper rows
/// come first, so that a mapping that held nothing but defaults goes too where its own absence means the same.
///
/// `POD` rows hold below a pod's spec, `CONTAINER` rows below each container of it.
/// Sources: the Kubernetes API reference of each type, as implemented by `SetDefaults_*` in `pkg/apis/core/v1`,
/// `pkg/apis/apps/v1` and `pkg/apis/autoscaling/v2`; for HTTPRoute, `+kubebuilder:default` in the Gateway API v1 types.
#[rustfmt::skip]
const DEFAULTS: &[(Where, &str, &str)] = &[
    // ContainerPort v1
    (Where::Container, "/ports/*/protocol", r#""TCP""#),
    // EnvVarSource v1, ObjectFieldSelector v1
    (Where::Container, "/env/*/valueFrom/fieldRef/apiVersion", r#""v1""#),
    // Probe v1 and HTTPGetAction v1
    (Where::Container, "/livenessProbe/httpGet/path", r#""/""#),
    (Where::Container, "/livenessProbe/httpGet/scheme", r#""HTTP""#),
    (Where::Container, "/livenessProbe/timeoutSeconds", "1"),
    (Where::Container, "/livenessProbe/periodSeconds", "10"),
    (Where::Container, "/livenessProbe/successThreshold", "1"),
    (Where::Container, "/livenessProbe/failureThreshold", "3"),
    (Where::Container, "/readinessProbe/httpGet/path", r#""/""#),
    (Where::Container, "/readinessProbe/httpGet/scheme", r#""HTTP""#),
    (Where::Container, "/readinessProbe/timeoutSeconds", "1"),
    (Where::Container, "/readinessProbe/periodSeconds", "10"),
    (Where::Container, "/readinessProbe/successThreshold", "1"),
    (Where::Container, "/readinessProbe/failureThreshold", "3"),
    (Where::Container, "/startupProbe/httpGet/path", r#""/""#),
    (Where::Container, "/startupProbe/httpGet/scheme", r#""HTTP""#),
    (Where::Container, "/startupProbe/timeoutSeconds", "1"),
    (Where::Container, "/startupProbe/periodSeconds", "10"),
    (Where::Container, "/startupProbe/successThreshold", "1"),
    (Where::Container, "/startupProbe/failureThreshold", "3"),
    // Container v1; `resources` is no pointer, so that {} and absent are one
    (Where::Container, "/terminationMessagePath", r#""/dev/termination-log""#),
    (Where::Container, "/terminationMessagePolicy", r#""File""#),
    (Where::Container, "/resources", "{}"),
    // Volume v1 and its sources
    (Where::Pod, "/volumes/*/configMap/defaultMode", "420"),
    (Where::Pod, "/volumes/*/secret/defaultMode", "420"),
    (Where::Pod, "/volumes/*/projected/defaultMode", "420"),
    (Where::Pod, "/volumes/*/downwardAPI/defaultMode", "420"),
    (Where::Pod, "/volumes/*/downwardAPI/items/*/fieldRef/apiVersion", r#""v1""#),
    (Where::Pod, "/volumes/*/hostPath/type", r#""""#),
    // PodSpec v1
    (Where::Pod, "/restartPolicy", r#""Always""#),
    (Where::Pod, "/terminationGracePeriodSeconds", "30"),
    (Where::Pod, "/dnsPolicy", r#""ClusterFirst""#),
    (Where::Pod, "/schedulerName", r#""default-scheduler""#),
    (Where::Pod, "/enableServiceLinks", "true"),
    (Where::Pod, "/securityContext", "{}"),
    // Deployment apps/v1
    (Where::In(Kind::Deployment), "/spec/replicas", "1"),
    (Where::In(Kind::Deployment), "/spec/revisionHistoryLimit", "10"),
    (Where::In(Kind::Deployment), "/spec/progressDeadlineSeconds", "600"),
    (Where::In(Kind::Deployment), "/spec/strategy/rollingUpdate/maxSurge", r#""25%""#),
    (Where::In(Kind::Deployment), "/spec/strategy/rollingUpdate/maxUnavailable", r#""25%""#),
    (Where::In(Kind::Deployment), "/spec/strategy/rollingUpdate", "{}"),
    (Where::In(Kind::Deployment), "/spec/strategy/type", r#""RollingUpdate""#),
    (Where::In(Kind::Deployment), "/spec/strategy", "{}"),
    // StatefulSet apps/v1, PersistentVolumeClaim v1
    (Where::In(Kind::StatefulSet), "/spec/replicas", "1"),
    (Where::In(Kind::StatefulSet), "/spec/revisionHistoryLimit", "10"),
    (Where::In(Kind::StatefulSet), "/spec/podManagementPolicy", r#""OrderedReady""#),
    (Where::In(Kind::StatefulSet), "/spec/persistentVolumeClaimRetentionPolicy/whenDeleted", r#""Retain""#),
    (Where::In(Kind::StatefulSet), "/spec/persistentVolumeClaimRetentionPolicy/whenScaled", r#""Retain""#),
    (Where::In(Kind::StatefulSet), "/spec/persistentVolumeClaimRetentionPolicy", "{}"),
    (Where::In(Kind::StatefulSet), "/spec/updateStrategy/rollingUpdate/partition", "0"),
    (Where::In(Kind::StatefulSet), "/spec/updateStrategy/rollingUpdate", "{}"),
    (Where::In(Kind::StatefulSet), "/spec/updateStrategy/type", r#""RollingUpdate""#),
    (Where::In(Kind::StatefulSet), "/spec/updateStrategy", "{}"),
    (Where::In(Kind::StatefulSet), "/spec/volumeClaimTemplates/*/spec/volumeMode", r#""Filesystem""#),
    // DaemonSet apps/v1
    (Where::In(Kind::DaemonSet), "/spec/revisionHistoryLimit", "10"),
    (Where::In(Kind::DaemonSet), "/spec/updateStrategy/rollingUpdate/maxSurge", "0"),
    (Where::In(Kind::DaemonSet), "/spec/updateStrategy/rollingUpdate/maxUnavailable", "1"),
    (Where::In(Kind::DaemonSet), "/spec/updateStrategy/rollingUpdate", "{}"),
    (Where::In(Kind::DaemonSet), "/spec/updateStrategy/type", r#""RollingUpdate""#),
    (Where::In(Kind::DaemonSet), "/spec/updateStrategy", "{}"),
    // Service v1
    (Where::In(Kind::Service), "/spec/ports/*/protocol", r#""TCP""#),
    (Where::In(Kind::Service), "/spec/type", r#""ClusterIP""#),
    (Where::In(Kind::Service), "/spec/sessionAffinity", r#""None""#),
    (Where::In(Kind::Service), "/spec/internalTrafficPolicy", r#""Cluster""#),
    // HorizontalPodAutoscaler autoscaling/v2
    (Where::In(Kind::HorizontalPodAutoscaler), "/spec/minReplicas", "1"),
    // HTTPRoute gateway.networking.k8s.io/v1
    (Where::In(Kind::HttpRoute), "/spec/parentRefs/*/group", r#""gateway.networking.k8s.io""#),
    (Where::In(Kind::HttpRoute), "/spec/parentRefs/*/kind", r#""Gateway""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/backendRefs/*/group", r#""""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/backendRefs/*/kind", r#""Service""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/backendRefs/*/weight", "1"),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches/*/headers/*/type", r#""Exact""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches/*/queryParams/*/type", r#""Exact""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches/*/path/type", r#""PathPrefix""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches/*/path/value", r#""/""#),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches/*/path", "{}"),
    (Where::In(Kind::HttpRoute), "/spec/rules/*/matches", "[{}]"),
    // GRPCRoute gateway.networking.k8s.io/v1
    (Where::In(Kind::GrpcRoute), "/spec/parentRefs/*/group", r#""gateway.networking.k8s.io""#),
    (Where::In(Kind::GrpcRoute), "/spec/parentRefs/*/kind", r#""Gateway""#),
    (Where::In(Kind::GrpcRoute), "/spec/rules/*/backendRefs/*/group", r#""""#),
    (Where::In(Kind::GrpcRoute), "/spec/rules/*/backendRefs/*/kind", r#""Service""#),
    (Where::In(Kind::GrpcRoute), "/spec/rules/*/backendRefs/*/weight", "1"),
    (Where::In(Kind::GrpcRoute), "/spec/rules/*/matches/*/headers/*/type", r#""Exact""#),
    (Where::In(Kind::GrpcRoute), "/spec/rules/*/matches/*/method/type", r#""Exact""#),
];

/// Where a row of the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Below each container of a pod.
    Container,
    /// Below a pod's spec.
    Pod,
    /// Below an object of that kind.
    In(Kind),
}

/// Every default of that place, by the keys that lead to it; deeper ones first.
pub fn defaults(place: Where) -> impl DoubleEndedIterator<Item = (&'static [&'static str], &'static Value)> {
    ROWS.iter().filter(move |(row, ..)| *row == place).map(|(_, path, default)| (&path[..], default))
}

/// The rows, read once.
static ROWS: LazyLock<Vec<(Where, Vec<&'static str>, Value)>> = LazyLock::new(|| {
    let row = |&(place, path, default): &(Where, &'static str, &'static str)| {
        let default = serde_json::from_str(default).expect("the table holds JSON, because a test reads it");
        (place, path.split('/').skip(1).collect(), default)
    };
    DEFAULTS.iter().map(row).collect()
});

/// The object without what means the same when absent.
#[must_use]
pub fn canonical(object: &Object) -> Value {
    let mut value = without_nulls(object.value());
    let kind = object.reference().kind;
    if Kind::WORKLOADS.contains(&kind)
        && let Some(template) = value.pointer_mut("/spec/template")
    {
        pod_defaults(template);
    }
    drop_rows(&mut value, Where::In(kind));
    value
}

fn pod_defaults(template: &mut Value) {
    let Some(spec) = template.get_mut("spec") else { return };
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            drop_rows(container, Where::Container);
        }
    }
    drop_rows(spec, Where::Pod);
}

fn drop_rows(value: &mut Value, place: Where) {
    for (path, default) in defaults(place) {
        drop_default(value, path, default);
    }
}

fn drop_default(value: &mut Value, path: &[&str], default: &Value) {
    match (path, value) {
        ([last], Value::Object(fields)) if fields.get(*last) == Some(default) => drop(fields.shift_remove(*last)),
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| drop_default(item, rest, default)),
        ([first, rest @ ..], Value::Object(fields)) => {
            if let Some(inner) = fields.get_mut(*first) {
                drop_default(inner, rest, default);
            }
        }
        _ => {}
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        ),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The revision of a set: its objects, whatever files they stand in.
#[must_use]
pub fn revision<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Revision {
    let all: Map<String, Value> = objects
        .into_iter()
        .map(|object| {
            let reference = object.reference();
            (format!("{}/{}", reference.kind.api_version(), reference), canonical(object))
        })
        .collect();
    let digest = sha256(&Value::Object(all));
    format!("v1:sha256:{digest}").parse().expect("SHA-256 has 64 hex digits")
}

/// The digest of what makes the target's pods: its template, and the content of the ConfigMaps that the template
/// references and the set holds. Their labels and annotations reach no pod and do not count.
#[must_use]
pub fn pods(target: &Object, config_maps: &BTreeMap<&str, &Object>) -> PodsDigest {
    let mut template = without_nulls(target.at("/spec/template").unwrap_or(&Value::Null));
    pod_defaults(&mut template);
    let used: Map<String, Value> = referenced_config_maps(&template)
        .into_iter()
        .filter_map(|name| config_maps.get(name.as_str()).map(|object| (name, content(object))))
        .collect();
    let all = Map::from_iter([("template".to_owned(), template), ("configMaps".to_owned(), Value::Object(used))]);
    sha256(&Value::Object(all))[..16].parse().expect("SHA-256 has 64 hex digits")
}

/// The digest of layers: what nodes are configured by.
#[must_use]
pub fn layers<'a>(layers: impl IntoIterator<Item = &'a Object>) -> PodsDigest {
    let all: Map<String, Value> =
        layers.into_iter().map(|layer| (layer.reference().to_string(), canonical(layer)["spec"].clone())).collect();
    sha256(&Value::Object(all))[..16].parse().expect("SHA-256 has 64 hex digits")
}

/// The digest where nothing has pods.
#[must_use]
pub fn no_pods() -> PodsDigest {
    sha256(&Value::Null)[..16].parse().expect("SHA-256 has 64 hex digits")
}

/// The content of a ConfigMap: its labels and annotations reach no pod.
fn content(config_map: &Object) -> Value {
    let value = without_nulls(config_map.value());
    let fields = ["data", "binaryData"].iter().filter_map(|f| Some(((*f).to_owned(), value.get(*f)?.clone())));
    Value::Object(fields.collect())
}

/// The digest of a live ConfigMap's content.
#[must_use]
pub fn data(config_map: &Object) -> String {
    sha256(&content(config_map))
}

/// The digest of a value: 64 hex digits.
#[must_use]
pub fn digest(value: &Value) -> String {
    sha256(value)
}

/// The digest of what makes a Service lead where it leads: what it asks for, without what the API server allots.
#[must_use]
pub fn service(target: &Object) -> PodsDigest {
    let mut asked = canonical(target);
    drop_allotted(&mut asked["spec"]);
    sha256(&asked["spec"])[..16].parse().expect("SHA-256 has 64 hex digits")
}

/// Takes out of a Service's spec what the API server allots, and what only asks for one allotment rather than another:
/// addresses (but for `None`, which asks for none) and ports of nodes.
pub fn drop_allotted(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|field, value| match field.as_str() {
            "clusterIP" => value == "None",
            "clusterIPs" | "healthCheckNodePort" => false,
            _ => true,
        });
    }
    for port in items_mut(spec, "ports").filter_map(Value::as_object_mut) {
        port.shift_remove("nodePort");
    }
}

/// The names of the ConfigMaps that a pod template references, sorted.
#[must_use]
pub fn referenced_config_maps(template: &Value) -> Vec<String> {
    let all = reference::references(template).into_iter().filter(|one| one.to == Referent::ConfigMap);
    let mut names: Vec<String> = all.map(|one| one.name).collect();
    names.sort();
    names.dedup();
    names
}

fn sha256(value: &Value) -> String {
    // Numbers of a set are finite and all keys are texts, so that this cannot fail.
    let text = serde_jcs::to_vec(value).expect("a JSON value without special numbers has a canonical form");
    hex(&Sha256::digest(&text))
}

#[cfg(test)]
mod tests;
