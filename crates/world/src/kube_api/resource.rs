//! Which resources are served, and what is particular to each of them. Pure.
//!
//! A resource needs a row here and its fields in `manifest/kinds.txt`, unless they are open.

use std::sync::LazyLock;
use tidegate_controller::manifest::kinds::Schema;

/// What is particular to a resource; each is one word of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// Objects belong to no namespace.
    ClusterWide,
    /// `status` is written through its own path only.
    Status,
    /// Its size can be read and written as a `Scale`.
    Scale,
    /// Defined by a CustomResourceDefinition, which may be absent.
    Custom,
    /// A replacement must say which version it replaces.
    Versioned,
    /// A replacement of what is absent creates it.
    CreateOnUpdate,
    /// The answer to a deletion is the object that was deleted.
    ShowsDeleted,
    /// `metadata.generation` counts the changes of what is asked for.
    Generation,
    /// Names are labels (RFC 1123), without dots.
    LabelNames,
    /// Its definition has to be installed first.
    Absent,
    /// Nothing is known of its fields: whatever comes is taken.
    Open,
}

use Trait::{
    Absent, ClusterWide, CreateOnUpdate, Custom, Generation, LabelNames, Open, Scale, ShowsDeleted, Status, Versioned,
};

/// A resource: where it is served, and how it behaves.
#[derive(Debug)]
pub struct Resource {
    /// Group and version, as manifests spell them.
    pub api_version: &'static str,
    /// The kind, as manifests spell it.
    pub kind: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// Another name for people; empty if there is none.
    pub short: &'static str,
    /// What is particular to it.
    pub traits: &'static [Trait],
}

macro_rules! resources {
    ($($api:literal $kind:literal $plural:literal $short:literal [$($word:ident),*];)*) => {
        &[$(Resource { api_version: $api, kind: $kind, plural: $plural, short: $short, traits: &[$($word),*] }),*]
    };
}

/// Every resource that can be served.
pub const RESOURCES: &[Resource] = resources! {
    "v1" "ConfigMap" "configmaps" "cm" [];
    "v1" "Event" "events" "ev" [CreateOnUpdate];
    "v1" "Namespace" "namespaces" "ns" [ClusterWide, Status, LabelNames, ShowsDeleted];
    "v1" "Node" "nodes" "no" [ClusterWide, Status];
    "v1" "PersistentVolumeClaim" "persistentvolumeclaims" "pvc" [Status, Open];
    "v1" "Pod" "pods" "po" [Status, ShowsDeleted, Generation];
    "v1" "Secret" "secrets" "" [];
    "v1" "Service" "services" "svc" [Status, CreateOnUpdate, ShowsDeleted, LabelNames];
    "v1" "ServiceAccount" "serviceaccounts" "sa" [ShowsDeleted];
    "apps/v1" "ControllerRevision" "controllerrevisions" "" [];
    "apps/v1" "DaemonSet" "daemonsets" "ds" [Status, Generation];
    "apps/v1" "Deployment" "deployments" "deploy" [Status, Scale, Generation];
    "apps/v1" "ReplicaSet" "replicasets" "rs" [Status, Scale, Generation];
    "apps/v1" "StatefulSet" "statefulsets" "sts" [Status, Scale, Generation];
    "autoscaling/v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers" "hpa" [Status];
    "batch/v1" "CronJob" "cronjobs" "cj" [Status, Generation, Open];
    "batch/v1" "Job" "jobs" "" [Status, Generation];
    "cert-manager.io/v1" "Certificate" "certificates" "cert" [Status, Versioned, Generation, Custom, Open, Absent];
    "coordination.k8s.io/v1" "Lease" "leases" "" [Versioned, CreateOnUpdate];
    "discovery.k8s.io/v1" "EndpointSlice" "endpointslices" "" [Generation];
    "events.k8s.io/v1" "Event" "events" "ev" [CreateOnUpdate];
    "external-secrets.io/v1" "ExternalSecret" "externalsecrets" "es" [Status, Versioned, Generation, Custom, Open, Absent];
    "gateway.networking.k8s.io/v1" "GRPCRoute" "grpcroutes" "" [Status, Versioned, Generation, Custom];
    "gateway.networking.k8s.io/v1" "HTTPRoute" "httproutes" "" [Status, Versioned, Generation, Custom];
    "gateway.solo.io/v1" "RouteTable" "routetables" "rt" [Versioned, Generation, Custom];
    "gateway.solo.io/v1" "VirtualService" "virtualservices" "vs" [Versioned, Generation, Custom, Open, Absent];
    "gloo.solo.io/v1" "Settings" "settings" "st" [Versioned, Generation, Custom, Open, Absent];
    "gloo.solo.io/v1" "Upstream" "upstreams" "us" [Versioned, Generation, Custom, Open, Absent];
    "keda.sh/v1alpha1" "ScaledObject" "scaledobjects" "so" [Status, Versioned, Generation, Custom];
    "monitoring.coreos.com/v1" "ServiceMonitor" "servicemonitors" "smon" [Versioned, Generation, Custom, Open, Absent];
    "networking.istio.io/v1" "DestinationRule" "destinationrules" "dr" [Status, Versioned, Generation, Custom];
    "networking.istio.io/v1" "VirtualService" "virtualservices" "vs" [Status, Versioned, Generation, Custom];
    "networking.k8s.io/v1" "Ingress" "ingresses" "ing" [Status, Generation];
    "networking.k8s.io/v1" "NetworkPolicy" "networkpolicies" "netpol" [Generation];
    "policy/v1" "PodDisruptionBudget" "poddisruptionbudgets" "pdb" [Status, Versioned, Generation];
    "projectcontour.io/v1" "HTTPProxy" "httpproxies" "" [Status, Versioned, Generation, Custom];
    "tidegate.io/v1alpha1" "NodeConfig" "nodeconfigs" "" [Status, Versioned, Generation, Custom];
    "traefik.io/v1alpha1" "IngressRoute" "ingressroutes" "" [Generation, Custom];
    "traefik.io/v1alpha1" "TraefikService" "traefikservices" "" [Generation, Custom];
};

/// What those are made of that are open.
static OPEN: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let open = RESOURCES.iter().filter(|resource| resource.is(Open));
    open.map(|resource| Schema::open(resource.api_version, resource.kind, resource.is(Custom))).collect()
});

impl Resource {
    /// The one of that kind.
    #[must_use]
    pub fn of_kind(api_version: &str, kind: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|r| r.kind == kind && r.api_version == api_version)
    }

    /// The one at that path.
    #[must_use]
    pub fn at(api_version: &str, plural: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|r| r.plural == plural && r.api_version == api_version)
    }

    /// Whether that is so of it.
    #[must_use]
    pub fn is(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }

    /// The API group; empty for the core.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version alone.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// The plural with its group, as most messages name a resource.
    #[must_use]
    pub fn qualified(&self) -> String {
        qualify(self.plural, self.group())
    }

    /// The kind with its group, as messages about content name it.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        qualify(self.kind, self.group())
    }

    /// The name of one object, as discovery tells it.
    #[must_use]
    pub fn singular(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// What its objects are made of.
    #[must_use]
    pub fn schema(&self) -> Option<&'static Schema> {
        Schema::of(self.api_version, self.kind).or_else(|| {
            OPEN.iter().find(|schema| schema.kind() == self.kind && schema.api_version() == self.api_version)
        })
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
