//! The rights that an instance needs, and no more (attacks 49 and 60, rule R9). Pure.

use super::brake::BRAKE;
use crate::manifest::ids::{InstanceName, Namespace};
use crate::manifest::object::Kind;
use serde_json::{Value, json};

/// What a role allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resources, sorted.
    pub resources: Vec<&'static str>,
    /// Only the objects of these names; all if empty.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// Watches list before they watch.
const READ: &[&str] = &["list", "watch"];
/// Server-side apply of an absent object asks for `create` beside `patch`; taking over fields reads the object first.
const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// The verbs that are needed on objects of a kind, in each namespace that is served.
#[must_use]
pub fn verbs(kind: Kind) -> &'static [&'static str] {
    if Kind::MANIFEST.contains(&kind) { WRITE } else { READ }
}

/// What is needed in each namespace that is served.
#[must_use]
pub fn namespace_rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for &kind in Kind::ALL {
        let group = kind.api_version().split_once('/').map_or("", |(group, _)| group);
        match rules.iter_mut().find(|rule| rule.group == group && rule.verbs == verbs(kind)) {
            Some(rule) => rule.resources.push(kind.plural()),
            None => rules.push(Rule { group, resources: vec![kind.plural()], names: vec![], verbs: verbs(kind) }),
        }
    }
    rules.push(Rule { group: "events.k8s.io", resources: vec!["events"], names: vec![], verbs: &["create"] });
    for rule in &mut rules {
        rule.resources.sort_unstable();
    }
    rules.sort_by_key(|rule| (rule.group, rule.resources.clone()));
    rules
}

/// What is needed in the instance's own namespace: its Lease and the brake.
#[must_use]
pub fn home_rules(instance: &InstanceName) -> Vec<Rule> {
    let lease = |names, verbs| Rule { group: "coordination.k8s.io", resources: vec!["leases"], names, verbs };
    vec![
        Rule { group: "", resources: vec!["configmaps"], names: vec![BRAKE.to_owned()], verbs: READ },
        // What is to be created has no name yet that a rule could hold on to.
        lease(vec![], &["create"]),
        lease(vec![instance.in_cluster()], &["get", "update"]),
    ]
}

/// What is needed of the cluster as a whole: to know which one it is.
#[must_use]
pub fn cluster_rules() -> Vec<Rule> {
    vec![Rule { group: "", resources: vec!["namespaces"], names: vec!["kube-system".to_owned()], verbs: &["get"] }]
}

/// All roles and bindings of an instance, as YAML documents for `kubectl apply`.
///
/// `subject` is bound to them: `{kind: ServiceAccount, name: …, namespace: …}` or a user.
#[must_use]
pub fn manifests(instance: &InstanceName, home: &Namespace, namespaces: &[Namespace], subject: &Value) -> String {
    let served = format!("{}:rollouts", instance.in_cluster());
    let own = instance.in_cluster();
    let mut documents = bound("ClusterRole", &format!("{own}:identity"), None, &cluster_rules(), subject);
    documents.extend(bound("Role", &own, Some(home), &home_rules(instance), subject));
    for namespace in namespaces {
        documents.extend(bound("Role", &served, Some(namespace), &namespace_rules(), subject));
    }
    let yaml = |document: &Value| serde_yaml::to_string(document).expect("a JSON value with text keys is always YAML");
    documents.iter().map(yaml).collect::<Vec<_>>().join("---\n")
}

/// A role and its binding.
fn bound(kind: &str, name: &str, namespace: Option<&Namespace>, rules: &[Rule], subject: &Value) -> Vec<Value> {
    const API: &str = "rbac.authorization.k8s.io/v1";
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    let rules: Vec<_> = rules.iter().map(rule).collect();
    let role = json!({"apiVersion": API, "kind": kind, "metadata": metadata, "rules": rules});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let binding = json!({
        "apiVersion": API, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": reference, "subjects": [subject],
    });
    vec![role, binding]
}

fn rule(rule: &Rule) -> Value {
    let Rule { group, resources, names, verbs } = rule;
    let mut value = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    if !names.is_empty() {
        value["resourceNames"] = json!(names);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_are_these_and_no_more() {
        let subject = json!({"kind": "ServiceAccount", "name": "tidegate", "namespace": "tidegate"});
        let (instance, home) = ("prod".parse().unwrap(), "tidegate".parse().unwrap());
        insta::assert_snapshot!(manifests(&instance, &home, &["shop".parse().unwrap()], &subject));
    }

    #[test]
    fn nothing_is_granted_on_what_could_grant_more() {
        let all = [namespace_rules(), home_rules(&"a".parse().unwrap()), cluster_rules()].concat();
        for rule in all {
            assert!(
                !rule.resources.iter().any(|r| matches!(*r, "secrets" | "roles" | "rolebindings" | "*")),
                "{rule:?}"
            );
            assert!(!rule.verbs.iter().any(|v| matches!(*v, "*" | "impersonate" | "escalate" | "bind")), "{rule:?}");
            let writes = rule.verbs.iter().any(|v| !matches!(*v, "get" | "list" | "watch"));
            assert!(!writes || !rule.resources.iter().any(|r| matches!(*r, "namespaces" | "pods")), "{rule:?}");
        }
    }
}
