//! Kinds of which nothing is known but what they are called: they are applied as they are written, where operations allows them.
//!
//! Each is told by its group and its kind alone. Its version is the one that it is written in: an object that moves to another version of its kind
//! stays the same object.

use super::ids::InvalidId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};

/// What a kind is called.
#[derive(Debug)]
struct Names {
    api_version: Cow<'static, str>,
    kind: Cow<'static, str>,
    plural: Cow<'static, str>,
}

const fn names(api_version: &'static str, kind: &'static str, plural: &'static str) -> Names {
    Names { api_version: Cow::Borrowed(api_version), kind: Cow::Borrowed(kind), plural: Cow::Borrowed(plural) }
}

/// The kinds that may stand in a set unless operations says otherwise: what they ask for stays within the namespace, and grants nothing.
static USUAL: [Names; 9] = [
    names("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    names("batch/v1", "CronJob", "cronjobs"),
    names("bitnami.com/v1alpha1", "SealedSecret", "sealedsecrets"),
    names("cert-manager.io/v1", "Certificate", "certificates"),
    names("external-secrets.io/v1", "ExternalSecret", "externalsecrets"),
    names("keda.sh/v1alpha1", "TriggerAuthentication", "triggerauthentications"),
    names("monitoring.coreos.com/v1", "PodMonitor", "podmonitors"),
    names("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules"),
    names("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
];

/// Of which there are no objects.
static NOTHING: Names = names("tidegate.io/none", "Nothing", "nothing");

/// How many more are remembered: those that operations has named, in versions that people write.
const MOST: usize = 10_000;
/// Whether that is a version as Kubernetes writes them, of which there are few: `v1`, `v1beta2`. So nobody takes all places of a kind.
fn is_version(text: &str) -> bool {
    let number = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let parts = ["alpha", "beta"].iter().find_map(|stage| rest.split_once(stage));
    parts.map_or_else(|| number(rest), |(major, minor)| number(major) && number(minor))
}

/// A kind that is known by its names alone.
#[derive(Debug, Clone, Copy)]
pub struct Other(&'static Names);

impl Other {
    /// A kind of which there are no objects.
    pub const NOTHING: Self = Self(&NOTHING);

    /// The kinds that may stand in a set unless operations says otherwise.
    pub fn usual() -> impl Iterator<Item = Self> {
        USUAL.iter().map(Self)
    }

    /// The kind of that name in that version of its group; `None` where these are no names, or there are too many of them. What it is called is
    /// remembered as long as the process runs, so it is only asked for what is allowed.
    #[must_use]
    pub fn named(api_version: &str, kind: &str) -> Option<Self> {
        static KNOWN: LazyLock<Mutex<BTreeMap<(String, String), Other>>> = LazyLock::new(Mutex::default);
        if let Some(usual) = USUAL.iter().find(|names| names.api_version == api_version && names.kind == kind) {
            return Some(Self(usual));
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        GroupKind::new(group, kind).filter(|_| group != "tidegate.io")?;
        if !is_version(version) {
            return None;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = known.get(&key) {
            return Some(*known);
        }
        let plural = match USUAL.iter().find(|names| Self(names).is(group, kind)) {
            Some(usual) => usual.plural.clone(),
            None => Cow::Owned(guessed(kind)),
        };
        let names = Names { api_version: key.0.clone().into(), kind: key.1.clone().into(), plural };
        (known.len() < MOST).then(|| *known.entry(key).or_insert(Self(Box::leak(Box::new(names)))))
    }

    /// The kind in a version of its group that is as good as any other.
    #[must_use]
    pub fn of(kind: &GroupKind) -> Option<Self> {
        let usual = USUAL.iter().map(Self).find(|usual| usual.is(kind.group(), kind.kind()));
        let version = if kind.group().is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group()) };
        usual.or_else(|| Self::named(&version, kind.kind()))
    }

    /// Group and version, as it was written.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        &self.0.api_version
    }

    /// The kind, as manifests spell it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        &self.0.kind
    }

    /// The resource's name in request paths, as kubectl guesses it; what the cluster says counts.
    #[must_use]
    pub fn plural(self) -> &'static str {
        &self.0.plural
    }

    /// The API group; empty for the core.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Whether Kubernetes itself defines it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        const BUILT_IN: [&str; 5] =
            ["autoscaling", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io"];
        self.group().is_empty() || BUILT_IN.contains(&self.group())
    }

    fn is(self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind() == kind
    }

    fn identity(self) -> (&'static str, &'static str) {
        (self.kind(), self.group())
    }
}

impl PartialEq for Other {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Other {}

impl PartialOrd for Other {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Other {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for Other {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// What Kubernetes calls the resource of most kinds (apimachinery, `UnsafeGuessKindToResource`).
fn guessed(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if lower.ends_with('s') => format!("{lower}es"),
        None => format!("{lower}s"),
    }
}

/// A kind in its group, whatever its version: `group/Kind`, or `Kind` of what Kubernetes has without a group or tidegate knows by that name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend(
    "format" = "kind", "pattern" = "^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Z][A-Za-z0-9]*$", "patternErrorMessage" = RULE
))]
pub struct GroupKind(String);

const RULE: &str = "KIND, or GROUP/KIND without a version, as in monitoring.coreos.com/ServiceMonitor";

impl GroupKind {
    /// `None` where these are no names.
    #[must_use]
    pub fn new(group: &str, kind: &str) -> Option<Self> {
        (if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") }).parse().ok()
    }

    /// The text of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The API group; empty where none is named.
    #[must_use]
    pub fn group(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The kind alone.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl From<Other> for GroupKind {
    fn from(other: Other) -> Self {
        Self::new(other.group(), other.kind()).expect("names, because they were checked when it was made")
    }
}

impl FromStr for GroupKind {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (group, kind) = text.rsplit_once('/').unwrap_or(("", text));
        let alnum = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let label = |label: &str| {
            let ends = [label.bytes().next(), label.bytes().last()];
            ends.iter().all(|end| end.is_some_and(alnum)) && label.bytes().all(|c| alnum(c) || c == b'-')
        };
        let is_group = group.len() <= 253 && group.split('.').all(label);
        let is_kind = kind.len() <= 63
            && kind.bytes().next().is_some_and(|c| c.is_ascii_uppercase())
            && kind.bytes().all(|c| c.is_ascii_alphanumeric());
        if is_kind && (is_group || !text.contains('/')) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId { what: "kind", found: text.chars().take(80).collect(), rule: RULE })
        }
    }
}

impl TryFrom<String> for GroupKind {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<GroupKind> for String {
    fn from(kind: GroupKind) -> Self {
        kind.0
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether objects of a kind belong to the whole cluster, as far as that is known without asking one.
#[must_use]
pub fn is_cluster_wide(kind: &GroupKind) -> bool {
    const GROUPS: [&str; 4] =
        ["admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io"];
    const KNOWN: [&str; 24] = [
        "Namespace",
        "Node",
        "PersistentVolume",
        "cert-manager.io/ClusterIssuer",
        "external-secrets.io/ClusterExternalSecret",
        "external-secrets.io/ClusterPushSecret",
        "external-secrets.io/ClusterSecretStore",
        "flowcontrol.apiserver.k8s.io/FlowSchema",
        "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
        "gateway.networking.k8s.io/GatewayClass",
        "generators.external-secrets.io/ClusterGenerator",
        "keda.sh/ClusterTriggerAuthentication",
        "kyverno.io/ClusterPolicy",
        "networking.k8s.io/IngressClass",
        "node.k8s.io/RuntimeClass",
        "rbac.authorization.k8s.io/ClusterRole",
        "rbac.authorization.k8s.io/ClusterRoleBinding",
        "scheduling.k8s.io/PriorityClass",
        "snapshot.storage.k8s.io/VolumeSnapshotClass",
        "snapshot.storage.k8s.io/VolumeSnapshotContent",
        "storage.k8s.io/CSIDriver",
        "storage.k8s.io/CSINode",
        "storage.k8s.io/StorageClass",
        "storage.k8s.io/VolumeAttachment",
    ];
    KNOWN.contains(&kind.as_str()) || GROUPS.contains(&kind.group())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_same_in_each_version_of_its_group() {
        let named = |api_version, kind| Other::named(api_version, kind).unwrap();
        let (old, new) =
            (named("external-secrets.io/v1beta1", "ExternalSecret"), named("external-secrets.io/v1", "ExternalSecret"));
        assert_eq!((old, old.cmp(&new)), (new, Ordering::Equal));
        assert_eq!(
            (old.api_version(), old.plural(), old.group()),
            ("external-secrets.io/v1beta1", "externalsecrets", "external-secrets.io")
        );
        assert_ne!(named("a.example/v1", "Policy"), named("b.example/v1", "Policy"));
        assert_eq!(named("a.example/v1", "Policy").plural(), "policies");
        assert_eq!(named("a.example/v1", "Gas").plural(), "gases");
    }

    #[test]
    fn what_is_no_name_is_no_kind() {
        for (api_version, kind) in [
            ("a.example/v1", "widget"),
            ("a.example/v1", "Wid/get"),
            ("a..example/v1", "Widget"),
            ("a.example/", "Widget"),
            ("a.example/1", "Widget"),
            ("a.example/v1/x", "Widget"),
            ("a.example/v1?", "Widget"),
            ("tidegate.io/v1", "Rollout"),
            ("", "Widget"),
        ] {
            assert!(Other::named(api_version, kind).is_none(), "{api_version} {kind}");
        }
        assert_eq!("a.example/v1/Widget".parse::<GroupKind>().unwrap_err().rule, RULE);
    }
}
