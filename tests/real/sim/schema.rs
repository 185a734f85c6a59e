//! The table of kinds that the simulated API server works by, made from what the real one publishes.

use crate::support::cluster::{Bed, eventually};
use crate::support::helm::Release;
use crate::tree::source_dir;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Where the OpenAPI documents are, and the kinds that are taken from each.
const KINDS: &[(&str, &str, &[&str])] = &[
    ("api/v1", "v1", &["ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount"]),
    ("apis/apps/v1", "apps/v1", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("apis/autoscaling/v2", "autoscaling/v2", &["HorizontalPodAutoscaler"]),
    ("apis/batch/v1", "batch/v1", &["Job"]),
    ("apis/coordination.k8s.io/v1", "coordination.k8s.io/v1", &["Lease"]),
    ("apis/discovery.k8s.io/v1", "discovery.k8s.io/v1", &["EndpointSlice"]),
    ("apis/events.k8s.io/v1", "events.k8s.io/v1", &["Event"]),
    ("apis/networking.k8s.io/v1", "networking.k8s.io/v1", &["NetworkPolicy", "Ingress"]),
    ("apis/policy/v1", "policy/v1", &["PodDisruptionBudget"]),
    ("apis/networking.istio.io/v1", "networking.istio.io/v1", &["DestinationRule", "VirtualService"]),
    ("apis/keda.sh/v1alpha1", "keda.sh/v1alpha1", &["ScaledObject"]),
    ("apis/gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1", &["GRPCRoute", "HTTPRoute"]),
    ("apis/traefik.io/v1alpha1", "traefik.io/v1alpha1", &["IngressRoute", "TraefikService"]),
    ("apis/projectcontour.io/v1", "projectcontour.io/v1", &["HTTPProxy"]),
    ("apis/gateway.solo.io/v1", "gateway.solo.io/v1", &["RouteTable"]),
    ("apis/tidegate.io/v1alpha1", "tidegate.io/v1alpha1", &["NodeConfig"]),
];

/// Texts that stay when they are empty, because they are pointers in Kubernetes' own types (`types.go`), which the
/// documents do not tell.
const POINTERS: &str = "
    HPAScalingRules.selectPolicy LeaseSpec.holderIdentity LeaseSpec.strategy LeaseSpec.preferredHolder
    AppArmorProfile.localhostProfile AzureDiskVolumeSource.cachingMode AzureDiskVolumeSource.fsType
    AzureDiskVolumeSource.kind CSIVolumeSource.fsType ClusterTrustBundleProjection.name
    ClusterTrustBundleProjection.signerName Container.restartPolicy ContainerStatus.stopSignal
    EphemeralContainer.restartPolicy GRPCAction.service HostPathVolumeSource.type ISCSIVolumeSource.initiatorName
    Lifecycle.stopSignal LoadBalancerIngress.ipMode PersistentVolumeClaimSpec.storageClassName
    PersistentVolumeClaimSpec.volumeMode PersistentVolumeClaimSpec.volumeAttributesClassName PodDNSConfigOption.value
    PodResourceClaim.resourceClaimName PodResourceClaim.resourceClaimTemplateName
    PodResourceClaimStatus.resourceClaimName PodSchedulingGroup.podGroupName
    PodSecurityContext.supplementalGroupsPolicy PodSecurityContext.fsGroupChangePolicy
    PodSecurityContext.seLinuxChangePolicy PodSpec.runtimeClassName PodSpec.preemptionPolicy PodSpec.hostnameOverride
    PortStatus.error ResourceHealth.message SeccompProfile.localhostProfile SecurityContext.procMount
    ServicePort.appProtocol ServiceSpec.ipFamilyPolicy ServiceSpec.loadBalancerClass
    ServiceSpec.internalTrafficPolicy ServiceSpec.trafficDistribution TopologySpreadConstraint.nodeAffinityPolicy
    TopologySpreadConstraint.nodeTaintsPolicy TypedLocalObjectReference.apiGroup TypedObjectReference.apiGroup
    TypedObjectReference.namespace VolumeMount.recursiveReadOnly VolumeMount.mountPropagation
    VolumeMountStatus.recursiveReadOnly WindowsSecurityContextOptions.gmsaCredentialSpecName
    WindowsSecurityContextOptions.gmsaCredentialSpec WindowsSecurityContextOptions.runAsUserName Endpoint.hostname
    Endpoint.nodeName Endpoint.zone EndpointPort.name EndpointPort.protocol EndpointPort.appProtocol
    NetworkPolicyPort.protocol IngressSpec.ingressClassName HTTPIngressPath.pathType IngressPortStatus.error
    PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy JobSpec.completionMode JobSpec.managedBy
    JobSpec.podReplacementPolicy JobStatus.failedIndexes PodFailurePolicyOnExitCodesRequirement.containerName
    SuccessPolicyRule.succeededIndexes";

/// Numbers and truth values that are left out when they are zero or false, because they are no pointers there.
const PLAIN: &str = "
    DeploymentSpec.minReadySeconds DeploymentSpec.paused DeploymentStatus.observedGeneration DeploymentStatus.replicas
    DeploymentStatus.updatedReplicas DeploymentStatus.readyReplicas DeploymentStatus.availableReplicas
    DeploymentStatus.unavailableReplicas ReplicaSetSpec.minReadySeconds ReplicaSetStatus.fullyLabeledReplicas
    ReplicaSetStatus.readyReplicas ReplicaSetStatus.availableReplicas ReplicaSetStatus.observedGeneration
    StatefulSetSpec.minReadySeconds StatefulSetStatus.observedGeneration StatefulSetStatus.readyReplicas
    StatefulSetStatus.currentReplicas StatefulSetStatus.updatedReplicas
    DaemonSetSpec.minReadySeconds DaemonSetStatus.observedGeneration DaemonSetStatus.updatedNumberScheduled
    DaemonSetStatus.numberAvailable DaemonSetStatus.numberUnavailable
    HorizontalPodAutoscalerStatus.currentReplicas AWSElasticBlockStoreVolumeSource.partition
    AWSElasticBlockStoreVolumeSource.readOnly AzureFileVolumeSource.readOnly CephFSVolumeSource.readOnly
    CinderVolumeSource.readOnly Container.stdin Container.stdinOnce Container.tty ContainerImage.sizeBytes
    ContainerPort.hostPort ContainerStateTerminated.signal EphemeralContainer.stdin EphemeralContainer.stdinOnce
    EphemeralContainer.tty Event.count EventSeries.count FCVolumeSource.readOnly FlexVolumeSource.readOnly
    GCEPersistentDiskVolumeSource.partition GCEPersistentDiskVolumeSource.readOnly GlusterfsVolumeSource.readOnly
    ISCSIVolumeSource.readOnly ISCSIVolumeSource.chapAuthDiscovery ISCSIVolumeSource.chapAuthSession
    NFSVolumeSource.readOnly NodeSpec.unschedulable PersistentVolumeClaimVolumeSource.readOnly
    PodCondition.observedGeneration PodSpec.hostNetwork PodSpec.hostPID PodSpec.hostIPC PodStatus.observedGeneration
    PortworxVolumeSource.readOnly Probe.initialDelaySeconds Probe.timeoutSeconds Probe.periodSeconds
    Probe.successThreshold Probe.failureThreshold QuobyteVolumeSource.readOnly RBDVolumeSource.readOnly
    ScaleIOVolumeSource.sslEnabled ScaleIOVolumeSource.readOnly ServicePort.nodePort ServiceSpec.healthCheckNodePort
    ServiceSpec.publishNotReadyAddresses StorageOSVolumeSource.readOnly VolumeMount.readOnly
    VolumeMountStatus.readOnly PodDisruptionBudgetStatus.observedGeneration Condition.observedGeneration
    ServiceBackendPort.number ObjectMeta.generation JobStatus.active JobStatus.succeeded JobStatus.failed";

/// Numbers that are zero when they are absent, because they are structs there.
const ZERO: [(&str, &str); 3] =
    [("HTTPGetAction.port", " =0"), ("TCPSocketAction.port", " =0"), ("ResourceFieldSelector.divisor", " =\"0\"")];

/// What is `null` when it is absent, because its type there knows no absence: lists without `omitempty`, times.
const ALWAYS: &str = "
    DeploymentCondition.lastUpdateTime DeploymentCondition.lastTransitionTime ReplicaSetCondition.lastTransitionTime
    DaemonSetCondition.lastTransitionTime
    HorizontalPodAutoscalerCondition.lastTransitionTime ContainerStateRunning.startedAt
    ContainerStateTerminated.startedAt ContainerStateTerminated.finishedAt Event.firstTimestamp Event.lastTimestamp
    Event.eventTime EventSeries.lastObservedTime NamespaceCondition.lastTransitionTime NodeCondition.lastHeartbeatTime
    NodeCondition.lastTransitionTime PodCondition.lastProbeTime PodCondition.lastTransitionTime
    Condition.lastTransitionTime Event.deprecatedFirstTimestamp Event.deprecatedLastTimestamp
    HorizontalPodAutoscalerStatus.currentMetrics CephFSVolumeSource.monitors ContainerImage.names
    NodeAllocatableResourceClaimStatus.resources NodeSelector.nodeSelectorTerms
    PodExtendedResourceClaimStatus.requestMappings PodSpec.containers ProjectedVolumeSource.sources
    RBDVolumeSource.monitors Endpoint.addresses EndpointSlice.endpoints EndpointSlice.ports
    HTTPIngressRuleValue.paths JobCondition.lastProbeTime JobCondition.lastTransitionTime";

/// Writes the table.
struct Writer<'a> {
    documents: &'a BTreeMap<String, Value>,
    done: BTreeSet<String>,
    types: String,
    /// Whether the type in hand is of a custom resource, which keeps what it is given.
    custom: bool,
}

impl Writer<'_> {
    /// How the table names what `schema` describes; `path` is the name that an unnamed type gets.
    fn expression(&mut self, schema: &Value, path: &str) -> String {
        let reference = schema.get("$ref").or_else(|| schema["allOf"].as_array()?.first()?.get("$ref"));
        let atomic = if schema["x-kubernetes-map-type"] == "atomic" { "!" } else { "" };
        if let Some(reference) = reference.and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap();
            let documents = self.documents;
            let named = &documents[name];
            if name.ends_with(".resource.Quantity") {
                return "quantity".to_owned();
            }
            if named.get("properties").is_none() {
                return self.expression(named, name);
            }
            let custom = std::mem::replace(&mut self.custom, false);
            self.define(named, short(name));
            self.custom = custom;
            return format!("{}{atomic}", short(name));
        }
        match schema["type"].as_str() {
            None => "any".to_owned(),
            Some("integer" | "number") => "number".to_owned(),
            Some("boolean") => "bool".to_owned(),
            Some("string") if matches!(schema["format"].as_str(), None | Some("byte")) => "string".to_owned(),
            Some("string") => "scalar".to_owned(),
            Some("array") => format!("[{}]{}", self.expression(&schema["items"], path), list_type(schema)),
            Some("object") if schema.get("properties").is_some() => {
                self.define(schema, path);
                format!("{path}{atomic}")
            }
            Some("object") => {
                let item = match schema.get("additionalProperties") {
                    Some(item) if item.is_object() => self.expression(item, path),
                    _ => "any".to_owned(),
                };
                format!("{{{item}}}{atomic}")
            }
            Some(other) => panic!("{path}: {other}"),
        }
    }

    /// Adds a type and, before it, those that it is made of.
    fn define(&mut self, schema: &Value, name: &str) {
        if !self.done.insert(name.to_owned()) {
            return;
        }
        let mut text = format!("type {name}");
        if schema["x-kubernetes-map-type"] == "atomic" {
            text.push_str(" !");
        }
        text.push('\n');
        for (field, inner) in schema["properties"].as_object().unwrap() {
            let kind = self.expression(inner, &format!("{name}.{field}"));
            write!(text, "  {field} {kind}").unwrap();
            match inner.get("default") {
                Some(default) => write!(text, " ={default}").unwrap(),
                None => text.push_str(self.mark(name, field, &kind)),
            }
            text.push('\n');
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            text.push_str("  * any\n");
        }
        self.types.push_str(&text);
    }

    /// What becomes of a field without a default when it is empty.
    fn mark(&self, name: &str, field: &str, kind: &str) -> &'static str {
        let key = format!("{}.{field}", name.rsplit('.').next().unwrap());
        let listed = |list: &str| list.split_whitespace().any(|entry| entry == key);
        if let Some((_, zero)) = ZERO.iter().find(|(field, _)| *field == key) {
            return zero;
        }
        match kind {
            _ if self.custom => "",
            _ if listed(ALWAYS) => " +",
            "string" if !listed(POINTERS) => " -",
            "number" | "bool" if listed(PLAIN) => " -",
            _ if kind.starts_with(['[', '{']) => " -",
            _ => "",
        }
    }
}

/// `io.k8s.api.core.v1.Pod` is `core.v1.Pod`.
fn short(name: &str) -> &str {
    let dots: Vec<usize> = name.match_indices('.').map(|(at, _)| at).collect();
    dots.len().checked_sub(3).map_or(name, |third| &name[dots[third] + 1..])
}

/// What tells the items of a list apart: by default its place.
fn list_type(schema: &Value) -> String {
    let keys = |value: &Value| {
        let keys = value.as_array().unwrap().iter().map(|key| key.as_str().unwrap());
        format!("by:{}", keys.collect::<Vec<_>>().join(","))
    };
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => keys(&schema["x-kubernetes-list-map-keys"]),
        Some("set") => "set".to_owned(),
        Some(_) => String::new(),
        None if schema["x-kubernetes-patch-strategy"].as_str().is_some_and(|s| s.starts_with("merge")) => {
            schema["x-kubernetes-patch-merge-key"].as_str().map_or("set".to_owned(), |key| format!("by:{key}"))
        }
        None => String::new(),
    }
}

fn table(version: &str, documents: &BTreeMap<String, Value>) -> String {
    let mut writer = Writer { documents, done: BTreeSet::new(), types: String::new(), custom: false };
    let mut kinds = String::new();
    for (_, version, names) in KINDS {
        for name in *names {
            let of = |schema: &Value| {
                let gvk = &schema["x-kubernetes-group-version-kind"][0];
                let group = gvk["group"].as_str().filter(|group| !group.is_empty());
                let api = group.map(|group| format!("{group}/")).unwrap_or_default();
                gvk["kind"] == *name && format!("{api}{}", gvk["version"].as_str().unwrap_or_default()) == *version
            };
            let (path, schema) = documents.iter().find(|(_, schema)| of(schema)).unwrap();
            writer.custom = !path.starts_with("io.k8s.api.");
            writer.define(schema, short(path));
            let custom = if writer.custom { " custom" } else { "" };
            writeln!(kinds, "kind {version} {name} {}{custom}", short(path)).unwrap();
        }
    }
    format!("{HEAD}kubernetes {version}\n{}{kinds}", writer.types)
}

const HEAD: &str = "\
# What the kinds are made of, as kube-apiserver publishes it (OpenAPI v3) and reads it for server-side apply.
# Made by: UPDATE_SCHEMAS=1 cargo test -p tidegate-real sim::schema
#
# type NAME [!]             a type; ! = its fields have one owner
#   FIELD TYPE [=DEFAULT]   `*` is any other field
#   FIELD TYPE -            left out when it is empty or zero
#   FIELD TYPE +            null when it is absent or empty
# kind APIVERSION KIND TYPE [custom]
# kubernetes VERSION        whose kinds these are
#
# TYPE: string number bool scalar (any of them) quantity any, a NAME, [TYPE] an atomic list, [TYPE]set, [TYPE]by:KEY,KEY,
# {TYPE} a map; NAME! and {TYPE}! have one owner
";

/// The definition of NodeConfigs, as the chart brings it.
fn node_configs() -> String {
    let values = json!({
        "instance": "it", "namespaces": ["shop"], "repository": {"url": "https://git.example.test/shop.git"},
        "image": {"repository": "registry.example.test/tidegate"},
        "nodes": {"enabled": true, "namespace": "shop", "agent": {"driver": "/opt/fabric/driver"}},
    });
    let objects = Release { name: "tide", namespace: "tidegate" }.objects(&values);
    let definition = objects.into_iter().find(|object| object["kind"] == "CustomResourceDefinition");
    definition.unwrap().to_string()
}

#[tokio::test]
async fn the_table_of_kinds_is_that_of_the_real_api_server() {
    let bed = Bed::shared().await;
    let client = bed.client().await;
    let definition = tokio::task::spawn_blocking(node_configs).await.unwrap();
    bed.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &definition).await;
    let mut documents = BTreeMap::new();
    for (path, ..) in KINDS {
        // A CRD's document comes a moment after the CRD.
        let document = eventually(path, || async {
            let request = http::Request::get(format!("/openapi/v3/{path}")).body(Vec::new()).unwrap();
            client.request::<Value>(request).await.ok()
        })
        .await;
        let schemas: Map<String, Value> = document["components"]["schemas"].as_object().unwrap().clone();
        documents.extend(schemas);
    }
    let server = client.apiserver_version().await.unwrap();
    let table = table(&format!("{}.{}", server.major, server.minor), &documents);
    let path = source_dir().join("crates/controller/src/manifest/kinds.txt");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == table, "{} is not what the API server publishes: UPDATE_SCHEMAS=1 writes it", path.display());
}
