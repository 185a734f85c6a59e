//! All that the controller may do in a cluster, as the chart grants it. A test holds the two equal.

use crate::manifest::ids::{InstanceName, Namespace};
use crate::manifest::installation::Caps;
use crate::manifest::object::Kind;
use crate::manifest::other::Other;
use crate::manifest::raw::{Gateways, Projection};
use crate::manifest::reference::Referent;
use crate::workload::kinds::shared;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// A verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The namespace that it holds in; none for the cluster as a whole.
    pub namespace: Option<Namespace>,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The plural of the kind.
    pub resource: &'static str,
    /// The only object that it is about; none for all.
    pub name: Option<String>,
    /// `get`, `list`, …
    pub verb: &'static str,
}

/// What is done with the objects of sets.
const SETS: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// What is done with kinds that are only read.
const READ: &[&str] = &["list", "watch"];

/// What is done with what nodes are told: what they say of it is theirs to write (requirement N-22).
const TOLD: &[&str] = &["create", "list", "patch", "watch"];

/// What is done with Jobs that stand before steps.
const JOBS: &[&str] = &["create", "delete", "list", "patch", "watch"];

/// What is done with kinds that nobody watches, in each namespace that is served.
const BESIDE: &[(&str, &str, &[&str])] =
    &[("", "persistentvolumeclaims", &["get"]), ("events.k8s.io", "events", &["create"])];

/// What is done with the objects that show rollouts.
const SHOWN: &[&str] = &["create", "delete", "list", "patch"];

/// All rights of an instance that is at home in one namespace and serves others, with the kinds that it may write.
#[must_use]
pub fn needed(instance: &InstanceName, home: &Namespace, caps: &Caps, projection: Projection) -> Vec<Right> {
    let mut rights = Vec::new();
    let mut add = |namespace: Option<&Namespace>, group, resource, name: Option<&str>, verbs: &[&'static str]| {
        let (namespace, name) = (namespace.cloned(), name.map(str::to_owned));
        rights.extend(verbs.iter().map(|verb| Right {
            namespace: namespace.clone(),
            group,
            resource,
            name: name.clone(),
            verb,
        }));
    };
    for namespace in caps.namespaces() {
        for kind in caps.watched() {
            // Contents of nodes are ConfigMaps.
            let holds_contents = kind == Kind::ConfigMap && caps.nodes().is_some();
            let of_sets = Kind::MANIFEST.contains(&kind) && caps.allows_kind(kind) || holds_contents;
            let verbs = if of_sets {
                SETS
            } else if kind == Kind::Job {
                JOBS
            } else {
                READ
            };
            add(Some(namespace), kind.group(), kind.plural(), None, verbs);
        }
        for other in caps.others().iter().filter_map(Other::of) {
            add(Some(namespace), other.group(), other.plural(), None, SETS);
        }
        if shared::KINDS.iter().any(|kind| caps.allows_kind(*kind)) {
            add(Some(namespace), "", Kind::Pod.plural(), None, &["delete"]);
        }
        for (group, resource, verbs) in BESIDE {
            add(Some(namespace), group, resource, None, verbs);
        }
        if caps.nodes().is_some() {
            add(Some(namespace), Kind::NodeConfig.group(), Kind::NodeConfig.plural(), None, TOLD);
        }
        if projection == Projection::On {
            add(Some(namespace), "tidegate.io", "rollouts", None, SHOWN);
        }
    }
    if caps.nodes().is_some() {
        add(None, "", Kind::Node.plural(), None, READ);
    }
    add(Some(home), "", "configmaps", Some("tidegate-brake"), &["list", "watch"]);
    add(Some(home), "coordination.k8s.io", "leases", None, &["create"]);
    add(Some(home), "coordination.k8s.io", "leases", Some(&instance.in_cluster()), &["get", "update"]);
    add(None, "", "namespaces", Some("kube-system"), &["get"]);
    rights
}

/// What is needed besides where rollouts track Secrets, as `rbac.copySecrets` in the chart's values grants it: to read them, and to
/// make copies.
#[must_use]
pub fn to_copy(namespaces: &BTreeSet<Namespace>) -> Vec<Right> {
    let right = |namespace: &Namespace, verb| {
        let namespace = Some(namespace.clone());
        Right { namespace, group: "", resource: Referent::Secret.plural(), name: None, verb }
    };
    namespaces.iter().flat_map(|namespace| ["create", "get"].map(|verb| right(namespace, verb))).collect()
}

/// What is needed besides where the Installation names proxies that teams share, as `gateways` in the chart's values grants it: to read what
/// delegates to routes, in the gateways' namespaces, and of Gloo what stands beside them in those that are served.
#[must_use]
pub fn to_look(gateways: &Gateways, served: &BTreeSet<Namespace>) -> Vec<Right> {
    const GLOO: [(&str, &str); 5] = [
        ("gateway.solo.io", "routeoptions"),
        ("gateway.solo.io", "virtualservices"),
        ("gloo.solo.io", "settings"),
        ("gloo.solo.io", "upstreamgroups"),
        ("gloo.solo.io", "upstreams"),
    ];
    let of = |namespace: &Namespace, (group, resource)| {
        let right = |verb| Right { namespace: Some(namespace.clone()), group, resource, name: None, verb };
        READ.iter().map(|verb| right(*verb)).collect::<Vec<_>>()
    };
    let own = |kind: Kind| (kind.group(), kind.plural());
    let mut rights = Vec::new();
    if let Some(gateway) = &gateways.gloo {
        rights.extend(of(&gateway.namespace, own(Kind::RouteTable)));
        let places = served.iter().chain([&gateway.namespace]).collect::<BTreeSet<_>>();
        rights.extend(places.into_iter().flat_map(|place| GLOO.into_iter().flat_map(move |one| of(place, one))));
    }
    let contour = gateways.contour.iter();
    rights.extend(contour.flat_map(|gateway| of(&gateway.namespace, own(Kind::HttpProxy))));
    rights
}

impl Right {
    /// Whether one of the rules that an API server lists grants it.
    #[must_use]
    pub fn is_granted(&self, rules: &[Value]) -> bool {
        rules.iter().any(|rule| {
            let has = |list: &str, wanted: &str| {
                rule[list].as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
            };
            // A rule without names is about all objects.
            let named = rule["resourceNames"].as_array().is_none_or(|names| {
                names.is_empty() || self.name.as_ref().is_some_and(|name| names.iter().any(|one| one == name))
            });
            has("verbs", self.verb) && has("apiGroups", self.group) && has("resources", self.resource) && named
        })
    }

    /// The question whether we have it, for the API server.
    #[must_use]
    pub fn question(&self) -> Value {
        let Self { namespace, group, resource, name, verb } = self;
        let attributes =
            json!({"namespace": namespace, "group": group, "resource": resource, "name": name, "verb": verb});
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        })
    }
}

/// As `kubectl` takes it: `patch deployments.apps`, `get leases.coordination.k8s.io/tidegate-prod`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace: _, group, resource, name, verb } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{verb} {resource}{dot}{group}")?;
        name.as_ref().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_grant_what_they_list_and_what_their_stars_stand_for() {
        let rights = needed(&"prod".parse().unwrap(), &"tidegate".parse().unwrap(), &Caps::default(), Projection::Off);
        let said: Vec<String> = rights.iter().map(ToString::to_string).collect();
        let [list, watch, create, get, update, identity] = rights.as_slice() else { panic!("{said:?}") };
        assert_eq!(said[3], "get leases.coordination.k8s.io/tidegate-prod");
        let rule = |groups: &[&str], resources: &[&str], verbs: &[&str], names: Value| {
            vec![json!({"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names})]
        };
        let brake = rule(&[""], &["configmaps"], &["list"], json!(["tidegate-brake"]));
        assert!(list.is_granted(&brake) && !watch.is_granted(&brake));
        assert!(!list.is_granted(&rule(&[""], &["configmaps"], &["list"], json!(["other"]))));
        let leases = rule(&["coordination.k8s.io"], &["leases"], &["*"], json!(["tidegate-prod"]));
        assert!(get.is_granted(&leases) && update.is_granted(&leases) && !create.is_granted(&leases));
        let all = rule(&["*"], &["*"], &["*"], Value::Null);
        assert!(rights.iter().all(|right| right.is_granted(&all)) && !identity.is_granted(&brake));
    }
}
