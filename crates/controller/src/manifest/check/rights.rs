//! What grants rights, where operations allows it: within the namespace, and nothing without naming it.
//!
//! That nobody grants what they have not is Kubernetes' own check, of whoever applies it: of tidegate's ServiceAccount. So what its own rights would
//! let pass is refused here.

use super::Case;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::yaml::{Content, Node};

const GROUP: &str = "rbac.authorization.k8s.io/";

/// Looks at all Roles and RoleBindings.
pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for item in case.items.values() {
        let kind = item.object.reference().kind;
        if !kind.api_version().starts_with(GROUP) {
            continue;
        }
        let mut refuse = |node: &Node, what: &str, expected: &str| {
            found.push(item.source.at(node.mark, Code::NotPermitted, what, expected));
        };
        for rule in item.node.at("/rules").map(Node::items).unwrap_or_default() {
            let words = |field| rule.get(field).map(Node::items).unwrap_or_default().iter();
            for word in ["apiGroups", "resources", "verbs"].into_iter().flat_map(words) {
                match word.text() {
                    Some("*") => refuse(word, "a right on everything", "names of groups, resources and verbs"),
                    Some("bind" | "escalate" | "impersonate") => {
                        refuse(word, "a right to more rights", "verbs such as get, list, watch");
                    }
                    Some(
                        "secrets" | "roles" | "rolebindings" | "serviceaccounts/token" | "pods/exec" | "pods/attach",
                    ) => {
                        refuse(word, "a right by which one has those of others", "resources that hold no rights");
                    }
                    _ => {}
                }
            }
        }
        if let Some(role) = item.node.at("/roleRef/kind").filter(|role| role.text() != Some("Role")) {
            refuse(role, "a role of the whole cluster", "kind: Role, of the namespace");
        }
        // By one of tidegate's own a binding would hand out all that tidegate may.
        let is_of_the_set = |name: &Node| {
            let mut others = case.items.values().map(|other| other.object.reference());
            others.any(|other| {
                let is_role = other.kind.as_str() == "Role" && other.kind.api_version().starts_with(GROUP);
                is_role && Some(other.name.as_str()) == name.text()
            })
        };
        if let Some(name) = item.node.at("/roleRef/name").filter(|name| !is_of_the_set(name)) {
            refuse(name, "a role that is not among these manifests", "the name of a Role of the same set");
        }
        for subject in item.node.at("/subjects").map(Node::items).unwrap_or_default() {
            let text = |field| subject.get(field).and_then(Node::text);
            let is_here = text("namespace") == Some(case.namespace.as_str());
            if text("kind") != Some("ServiceAccount") || !is_here {
                let expected = format!("kind: ServiceAccount, namespace: {}", case.namespace);
                refuse(subject, "rights for whom the namespace does not have", &expected);
            }
        }
        if let Some(rules) = item.node.at("/rules").filter(|rules| !matches!(rules.content, Content::List(_))) {
            refuse(rules, "rules that are no list", "a list");
        }
    }
    found
}
