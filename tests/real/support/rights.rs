//! What roles let somebody do, one verb at a time, and which requests need it.

use super::audit::Request;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    /// The namespace that it holds in; empty for the cluster as a whole.
    pub(crate) namespace: String,
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// The plural of the kind, with its subresource if it is about one: `deployments/scale`.
    pub(crate) resource: String,
    /// The only object that it is about; empty for all.
    pub(crate) name: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub(crate) verb: String,
}

impl Right {
    /// All that these roles and bindings let that subject do. A role that somebody else has does not count.
    pub(crate) fn of(objects: &[Value], subject: &Value) -> BTreeSet<Self> {
        let mut rights = BTreeSet::new();
        for binding in
            objects.iter().filter(|object| object["subjects"].as_array().is_some_and(|s| s.contains(subject)))
        {
            let (namespace, role) = (&binding["metadata"]["namespace"], &binding["roleRef"]);
            // A ClusterRole has no namespace, whether the binding to it has one or not.
            let place = if role["kind"] == "Role" { namespace } else { &Value::Null };
            let is_role = |object: &&Value| {
                let metadata = &object["metadata"];
                object["kind"] == role["kind"] && metadata["name"] == role["name"] && metadata["namespace"] == *place
            };
            let role = objects.iter().find(is_role).unwrap_or_else(|| panic!("{role} is not there"));
            let namespace = namespace.as_str().unwrap_or_default();
            for rule in role["rules"].as_array().unwrap() {
                rights.extend(Self::of_rule(rule, namespace));
            }
        }
        rights
    }

    fn of_rule(rule: &Value, namespace: &str) -> Vec<Self> {
        let known = ["apiGroups", "resources", "resourceNames", "verbs"];
        let unknown = rule.as_object().unwrap().keys().find(|key| !known.contains(&key.as_str()));
        assert!(unknown.is_none(), "{unknown:?} is not understood here: {rule}");
        let texts = |key: &str| -> Vec<String> {
            let list = rule[key].as_array().cloned().unwrap_or_default();
            list.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let mut names = texts("resourceNames");
        if names.is_empty() {
            names.push(String::new());
        }
        let mut rights = Vec::new();
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                for name in &names {
                    rights.extend(texts("verbs").into_iter().map(|verb| Self {
                        namespace: namespace.to_owned(),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb,
                    }));
                }
            }
        }
        rights
    }

    /// What a request has to have. Server-side apply of what is not there is a `patch` for the audit log, and the API
    /// server asks for `create` besides.
    pub(crate) fn needed(request: &Request) -> Vec<Self> {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let verb = |verb: &str| Self {
            namespace: request.namespace.clone(),
            group: request.group.clone(),
            resource: format!("{}{slash}{}", request.resource, request.subresource),
            name: request.name.clone(),
            verb: verb.to_owned(),
        };
        let created = request.verb == "patch" && request.code == 201;
        std::iter::once(verb(&request.verb)).chain(created.then(|| verb("create"))).collect()
    }

    /// Whether who has this may do that: what holds in the cluster as a whole holds in each namespace, and what holds
    /// for no name in particular for each name.
    pub(crate) fn covers(&self, needed: &Self) -> bool {
        let Self { namespace, group, resource, name, verb } = self;
        let holds = |here: &str, there: &str| here.is_empty() || here == there;
        holds(namespace, &needed.namespace)
            && holds(name, &needed.name)
            && (group, resource, verb) == (&needed.group, &needed.resource, &needed.verb)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, group, resource, name, verb } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{verb} {resource}{dot}{group}")?;
        if !name.is_empty() {
            write!(f, " {name}")?;
        }
        if namespace.is_empty() { f.write_str(" in the cluster") } else { write!(f, " in {namespace}") }
    }
}

/// How what was asked for differs from what is granted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Audited {
    /// What was granted and not used. What was refused was not used.
    pub(crate) unused: BTreeSet<String>,
    /// What was asked for and is not granted by these roles, even if everybody may do it.
    pub(crate) beyond: BTreeSet<String>,
    /// What was granted and refused all the same, as an API server does that has just started.
    pub(crate) refused: BTreeSet<String>,
}

impl Audited {
    /// Compares these rights with these requests.
    pub(crate) fn new(granted: &BTreeSet<Right>, requests: &[Request]) -> Self {
        let mut unused = granted.clone();
        let (mut beyond, mut refusals) = (BTreeSet::new(), BTreeSet::new());
        for request in requests {
            let (needed, refused) = (Right::needed(request), matches!(request.code, 401 | 403));
            for one in &needed {
                let told = || format!("{one}: {} {}", request.code, request.uri);
                if !granted.iter().any(|right| right.covers(one)) {
                    beyond.insert(told());
                } else if refused {
                    refusals.insert(told());
                } else {
                    unused.retain(|right| !right.covers(one));
                }
            }
        }
        Self { unused: unused.iter().map(Right::to_string).collect(), beyond, refused: refusals }
    }
}
