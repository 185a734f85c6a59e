//! Kubernetes objects as plain values, and the closed list of kinds that tidegate reads or writes.

use super::ids::{InvalidId, Namespace, ObjectName};
use super::other::{GroupKind, Other};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// The prefix of every annotation and label that is ours.
pub const DOMAIN: &str = "tidegate.io";
/// Who owns an object: `<instance>/<namespace>/<rollout>`.
pub const OWNER: &str = "tidegate.io/owner";
/// The digest of what was applied last, marks left out.
pub const APPLIED: &str = "tidegate.io/applied";
/// The sequence number of the record that the last write relied on.
pub const SEQ: &str = "tidegate.io/seq";
/// The epoch (leader generation) of the last write.
pub const EPOCH: &str = "tidegate.io/epoch";
/// `<run>/<why>`: that run went back, and may not be raised again.
pub const RETREATED: &str = "tidegate.io/retreated";
/// Whose copy an object is: `stable` or `candidate`.
pub const ROLE: &str = "tidegate.io/role";
/// Which version of which Secret a copy is of.
pub const SOURCE: &str = "tidegate.io/source";
/// The run that a Job was made for.
pub const RUN: &str = "tidegate.io/run";
/// The step that a Job stands before.
pub const STEP: &str = "tidegate.io/step";
/// The label that carries a [`super::ids::PodsDigest`] on pods and selectors.
pub const PODS: &str = "tidegate.io/pods";

/// What has to be known of a kind beside its names.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Who defines it.
    pub origin: Origin,
    /// The mappings that each of its objects has, as JSON pointers.
    pub mappings: &'static [&'static str],
    /// Where the labels stand that it selects pods by, as a JSON pointer.
    pub pods: Option<&'static str>,
    /// The path of the list or map that is one field for the API server, and ours as a whole; empty if there is none that matters.
    pub whole: &'static [&'static str],
    /// What of it a posture is made of, as the API server names fields in a conflict: there what Git says is the most that may be.
    pub posture: &'static [&'static str],
}

/// Who defines a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Kubernetes itself.
    BuiltIn,
    /// A CustomResourceDefinition: an empty field is not left out.
    Custom,
}

const PLAIN: Facts = Facts { origin: Origin::BuiltIn, mappings: &[], pods: None, whole: &[], posture: &[] };

macro_rules! kinds {
    ($($name:ident: $text:literal, $api:literal, $plural:literal, $facts:expr;)*) => {
        /// The kinds that tidegate knows, and those of which it knows the names alone. Those of [`Kind::MANIFEST`] may stand in a set, and
        /// so may others where operations allows them; the rest is only read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", extend("format" = "object-kind"))]
        pub enum Kind {
            $(
                #[doc = concat!("`", $api, "` ", $text)]
                $name,
            )*
            /// Another one.
            Other(Other),
        }

        impl Kind {
            /// Every kind that tidegate knows.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The kind as manifests spell it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* Self::Other(other) => other.kind() }
            }

            /// Group and version, as manifests spell them.
            #[must_use]
            pub fn api_version(self) -> &'static str {
                match self { $(Self::$name => $api,)* Self::Other(other) => other.api_version() }
            }

            /// The resource's name in request paths.
            #[must_use]
            pub fn plural(self) -> &'static str {
                match self { $(Self::$name => $plural,)* Self::Other(other) => other.plural() }
            }

            /// What else has to be known of it.
            #[must_use]
            pub fn facts(self) -> Facts {
                match self {
                    $(Self::$name => $facts,)*
                    Self::Other(other) if other.is_built_in() => PLAIN,
                    Self::Other(_) => Facts { origin: Origin::Custom, ..PLAIN },
                }
            }
        }
    };
}

// The one place that says what a kind is. What else names kinds says what is peculiar to one of them.
kinds! {
    ConfigMap: "ConfigMap", "v1", "configmaps", PLAIN;
    ServiceAccount: "ServiceAccount", "v1", "serviceaccounts", PLAIN;
    Deployment: "Deployment", "apps/v1", "deployments", Facts {
        mappings: &["/spec", "/spec/selector", "/spec/template", "/spec/template/metadata", "/spec/template/spec"],
        pods: Some("/spec/selector/matchLabels"),
        posture: &[".spec.replicas"],
        ..PLAIN
    };
    StatefulSet: "StatefulSet", "apps/v1", "statefulsets", Facts {
        mappings: &["/spec", "/spec/selector", "/spec/template", "/spec/template/metadata", "/spec/template/spec"],
        pods: Some("/spec/selector/matchLabels"),
        posture: &[".spec.replicas", ".spec.updateStrategy.rollingUpdate.partition"],
        ..PLAIN
    };
    DaemonSet: "DaemonSet", "apps/v1", "daemonsets", Facts {
        mappings: &["/spec", "/spec/selector", "/spec/template", "/spec/template/metadata", "/spec/template/spec"],
        pods: Some("/spec/selector/matchLabels"),
        posture: &[".spec.updateStrategy.type"],
        ..PLAIN
    };
    Service: "Service", "v1", "services", Facts {
        mappings: &["/spec"],
        pods: Some("/spec/selector"),
        whole: &["spec", "selector"],
        posture: &[".spec.selector"],
        ..PLAIN
    };
    // The size rule of what an autoscaler scales is in its bounds.
    HorizontalPodAutoscaler: "HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", Facts {
        mappings: &["/spec"], posture: &[".spec.maxReplicas", ".spec.minReplicas"], ..PLAIN
    };
    ScaledObject: "ScaledObject", "keda.sh/v1alpha1", "scaledobjects", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        posture: &[".spec.idleReplicaCount", ".spec.maxReplicaCount", ".spec.minReplicaCount"],
        ..PLAIN
    };
    PodDisruptionBudget: "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", Facts {
        mappings: &["/spec"], pods: Some("/spec/selector/matchLabels"), ..PLAIN
    };
    DestinationRule: "DestinationRule", "networking.istio.io/v1", "destinationrules", Facts {
        origin: Origin::Custom, mappings: &["/spec"], ..PLAIN
    };
    GrpcRoute: "GRPCRoute", "gateway.networking.k8s.io/v1", "grpcroutes", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "rules"],
        posture: &[".spec.rules"],
        ..PLAIN
    };
    HttpRoute: "HTTPRoute", "gateway.networking.k8s.io/v1", "httproutes", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "rules"],
        posture: &[".spec.rules"],
        ..PLAIN
    };
    HttpProxy: "HTTPProxy", "projectcontour.io/v1", "httpproxies", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "routes"],
        posture: &[".spec.routes"],
        ..PLAIN
    };
    Ingress: "Ingress", "networking.k8s.io/v1", "ingresses", Facts {
        mappings: &["/spec"],
        posture: &[".metadata.annotations.nginx.ingress.kubernetes.io/canary", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-weight", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-weight-total", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-by-header", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-by-header-value", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-by-header-pattern", ".metadata.annotations.nginx.ingress.kubernetes.io/canary-by-cookie"],
        ..PLAIN
    };
    IngressRoute: "IngressRoute", "traefik.io/v1alpha1", "ingressroutes", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "routes"],
        posture: &[".spec.routes"],
        ..PLAIN
    };
    // What it names may stand in the gateway's namespace; what may not is told with its router.
    RouteTable: "RouteTable", "gateway.solo.io/v1", "routetables", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "routes"],
        posture: &[".spec.routes"],
        ..PLAIN
    };
    TraefikService: "TraefikService", "traefik.io/v1alpha1", "traefikservices", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "weighted", "services"],
        posture: &[".spec.weighted.services"],
        ..PLAIN
    };
    VirtualService: "VirtualService", "networking.istio.io/v1", "virtualservices", Facts {
        origin: Origin::Custom,
        mappings: &["/spec"],
        whole: &["spec", "http"],
        posture: &[".spec.http"],
        ..PLAIN
    };
    EndpointSlice: "EndpointSlice", "discovery.k8s.io/v1", "endpointslices", PLAIN;
    Pod: "Pod", "v1", "pods", PLAIN;
    NetworkPolicy: "NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", Facts {
        pods: Some("/spec/podSelector/matchLabels"), ..PLAIN
    };
    Job: "Job", "batch/v1", "jobs", Facts { mappings: &["/spec", "/spec/template", "/spec/template/spec"], ..PLAIN };
    // Of the whole cluster: what it says is the same for each namespace.
    Node: "Node", "v1", "nodes", PLAIN;
    NodeConfig: "NodeConfig", "tidegate.io/v1alpha1", "nodeconfigs", Facts { origin: Origin::Custom, mappings: &["/spec"], ..PLAIN };
    // In Git alone: no cluster has one.
    NodeConfigLayer: "NodeConfigLayer", "tidegate.io/v1alpha1", "nodeconfiglayers", Facts { origin: Origin::Custom, mappings: &["/spec"], ..PLAIN };
}

impl Kind {
    /// The kinds that may stand in a set of manifests, in the order in which they are created.
    pub const MANIFEST: &'static [Self] = &[
        Self::ConfigMap,
        Self::ServiceAccount,
        Self::NetworkPolicy,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Service,
        Self::HorizontalPodAutoscaler,
        Self::ScaledObject,
        Self::PodDisruptionBudget,
        Self::DestinationRule,
        Self::GrpcRoute,
        Self::HttpRoute,
        Self::HttpProxy,
        Self::Ingress,
        Self::RouteTable,
        Self::TraefikService,
        Self::IngressRoute,
        Self::VirtualService,
    ];

    /// The kinds that are read whatever sets may hold: what pods refer to, pods, who receives requests, and who may send them.
    pub const READ: &'static [Self] =
        &[Self::ConfigMap, Self::ServiceAccount, Self::EndpointSlice, Self::Pod, Self::NetworkPolicy];

    /// The kinds of [`Kind::MANIFEST`] that make pods of a template.
    pub const WORKLOADS: &'static [Self] = &[Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// The kinds of [`Kind::MANIFEST`] by whose objects people's requests find a Service.
    pub const ROUTES: &'static [Self] = &[
        Self::GrpcRoute,
        Self::HttpRoute,
        Self::HttpProxy,
        Self::Ingress,
        Self::RouteTable,
        Self::TraefikService,
        Self::IngressRoute,
        Self::VirtualService,
    ];

    /// Whether a CustomResourceDefinition defines it.
    #[must_use]
    pub fn is_custom(self) -> bool {
        self.facts().origin == Origin::Custom
    }

    /// The kind of that group, version and kind, if it is known.
    #[must_use]
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.as_str() == kind && k.api_version() == api_version)
    }

    /// Whether its names are all that is known of it.
    #[must_use]
    pub fn is_other(self) -> bool {
        matches!(self, Self::Other(_))
    }

    /// The API group; empty for the core.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The kind that tidegate knows by that name, which may leave out the group; `None` where it is known by its names alone.
    #[must_use]
    pub fn named(name: &GroupKind) -> Option<Self> {
        let is =
            |kind: &Self| kind.as_str() == name.kind() && (name.group().is_empty() || name.group() == kind.group());
        Self::ALL.iter().copied().find(is)
    }

    /// Whether its objects may stand in a set, where operations allows them.
    #[must_use]
    pub fn is_of_sets(self) -> bool {
        self.is_other() || Self::MANIFEST.contains(&self)
    }

    /// Whether the deletion of an object may take data along: of a claim it does, and of a kind that operations has named nobody knows.
    #[must_use]
    pub fn may_hold_data(self) -> bool {
        let Self::Other(other) = self else { return false };
        other.kind() == "PersistentVolumeClaim" || Other::usual().all(|usual| usual != other)
    }

    /// What tells it from all others, for files: its kind, and of others `KIND.VERSION` or `KIND.GROUP/VERSION`.
    #[must_use]
    pub fn text(self) -> String {
        if let Self::Other(other) = self {
            return format!("{}.{}", other.kind(), other.api_version());
        }
        self.as_str().to_owned()
    }
}

impl FromStr for Kind {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let known = || Self::ALL.iter().copied().find(|kind| kind.as_str() == text);
        let other =
            || text.split_once('.').and_then(|(kind, api_version)| Other::named(api_version, kind)).map(Self::Other);
        known().or_else(other).ok_or_else(|| InvalidId {
            what: "kind",
            found: text.chars().take(80).collect(),
            rule: "such as Deployment, or KIND.GROUP/VERSION as in ServiceMonitor.monitoring.coreos.com/v1",
        })
    }
}

impl TryFrom<String> for Kind {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.text()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names one object of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace: all kinds known here have one.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// An object whose kind, namespace and name are known; the rest is as it was written or read.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    reference: ObjectRef,
    value: Value,
}

impl Object {
    /// Takes `value` as the object that `reference` names, and writes apiVersion, kind, namespace and name into it.
    #[must_use]
    pub fn new(reference: ObjectRef, value: Value) -> Self {
        let mut object = Self { reference, value: if value.is_object() { value } else { Value::Object(Map::new()) } };
        object.stamp();
        object
    }

    fn stamp(&mut self) {
        let reference = self.reference.clone();
        self.value["apiVersion"] = reference.kind.api_version().into();
        self.value["kind"] = reference.kind.as_str().into();
        if !self.value["metadata"].is_object() {
            self.value["metadata"] = Value::Object(Map::new());
        }
        self.value["metadata"]["name"] = reference.name.as_str().into();
        self.value["metadata"]["namespace"] = reference.namespace.as_str().into();
    }

    /// What names it.
    #[must_use]
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }

    /// The same content under another name.
    #[must_use]
    pub fn renamed(&self, name: ObjectName) -> Self {
        Self::new(ObjectRef { name, ..self.reference.clone() }, self.value.clone())
    }

    /// The whole object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The whole object, to be changed. Kind, namespace and name are written back by [`Object::new`] only.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.value
    }

    /// The value at a JSON pointer (RFC 6901).
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        at(&self.value, pointer)
    }

    /// The text at a JSON pointer.
    #[must_use]
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).and_then(Value::as_str)
    }

    /// The integer at a JSON pointer.
    #[must_use]
    pub fn int(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).and_then(Value::as_i64)
    }

    /// The uid that the API server gave it.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.text("/metadata/uid")
    }

    /// The resourceVersion that it was read at.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        self.text("/metadata/resourceVersion")
    }

    /// The generation of its spec.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.int("/metadata/generation")
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &str, value: &str) {
        let annotations = &mut self.value["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        annotations[key] = value.into();
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get("labels")?.get(key)?.as_str()
    }
}

/// The map at `path` inside `value`, made on the way where there is none.
pub(crate) fn section<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = value;
    for key in path {
        at = map_of(at).entry(*key).or_insert(Value::Null);
    }
    map_of(at)
}

fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("a map, because anything else was just replaced by one")
}

/// The value at a JSON pointer (RFC 6901): `Value::pointer`, which makes two texts for each step to undo escapes, as if
/// there were any.
pub fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    let mut steps = pointer.split('/');
    if steps.next() != Some("") {
        return None;
    }
    steps.try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// The items of the list `key` of `value`; none if it is not there.
pub fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// [`items`], to be changed.
pub fn items_mut<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}
