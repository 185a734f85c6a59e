//! What a pod template refers to by name.

use super::desired::Set;
use super::files::RepoPath;
use super::object::{Kind, Object, ObjectRef, at, items};
use super::set;
use serde_json::Value;
use std::fmt;

/// What can be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Referent {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
    /// A ServiceAccount.
    ServiceAccount,
    /// A PersistentVolumeClaim.
    PersistentVolumeClaim,
}

impl Referent {
    /// What can be tracked live.
    pub const TRACKED: [Self; 2] = [Self::ConfigMap, Self::Secret];

    /// The resource's name in request paths; all are of the core group.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::ServiceAccount => "serviceaccounts",
            Self::PersistentVolumeClaim => "persistentvolumeclaims",
        }
    }

    /// The same as a kind that may stand among manifests, and is watched; none for what is looked up by its name.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::ConfigMap => Some(Kind::ConfigMap),
            Self::ServiceAccount => Some(Kind::ServiceAccount),
            Self::Secret | Self::PersistentVolumeClaim => None,
        }
    }
}

/// The images that the pods of an object have, of containers and of volumes, each with its place as a JSON pointer.
pub fn images(object: &Value) -> impl Iterator<Item = (String, &str)> {
    let templates = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec"].into_iter();
    let pods = templates.filter_map(|at| Some((at, object.pointer(at)?))).take(1);
    let lists = ["initContainers", "containers", "ephemeralContainers", "volumes"];
    let parts = pods.flat_map(move |(at, pods)| lists.map(|it| (format!("{at}/{it}"), items(pods, it).enumerate())));
    parts.flat_map(|(at, parts)| {
        parts.filter_map(move |(i, part)| {
            let (at, image) = (format!("{at}/{i}/image"), part.get("image")?);
            let of_volume = || Some((format!("{at}/reference"), image.get("reference")?.as_str()?));
            image.as_str().map(|image| (at.clone(), image)).or_else(of_volume)
        })
    })
}

/// What an object of a set gives to pods that is looked up by its name: a claim itself, or the Secret that its controller writes.
#[must_use]
pub fn given(object: &Object) -> Option<(Referent, &str)> {
    let Kind::Other(kind) = object.reference().kind else { return None };
    let name = object.reference().name.as_str();
    let named = |pointer| object.at(pointer).and_then(Value::as_str);
    match (kind.group(), kind.kind()) {
        ("", "PersistentVolumeClaim") => Some((Referent::PersistentVolumeClaim, name)),
        ("external-secrets.io", "ExternalSecret") => {
            Some((Referent::Secret, named("/spec/target/name").unwrap_or(name)))
        }
        ("bitnami.com", "SealedSecret") => {
            Some((Referent::Secret, named("/spec/template/metadata/name").unwrap_or(name)))
        }
        ("cert-manager.io", "Certificate") => Some((Referent::Secret, named("/spec/secretName")?)),
        _ => None,
    }
}

impl fmt::Display for Referent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
        })
    }
}

/// Whether pods start without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceNeed {
    /// They do not.
    Required,
    /// They do: `optional: true`.
    Optional,
}

/// A reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// To what.
    pub to: Referent,
    /// Of which name.
    pub name: String,
    /// Where in the template the name stands, as a JSON pointer.
    pub pointer: String,
    /// Whether pods start without it.
    pub need: ReferenceNeed,
}

/// In an item of a list: where the reference is, its field with the name, what it is to.
type Source = (&'static str, &'static str, Referent);

const VOLUME: &[Source] = &[
    ("/configMap", "name", Referent::ConfigMap),
    ("/secret", "secretName", Referent::Secret),
    ("/persistentVolumeClaim", "claimName", Referent::PersistentVolumeClaim),
];
const PROJECTED: &[Source] = &[("/configMap", "name", Referent::ConfigMap), ("/secret", "name", Referent::Secret)];
const ENV: &[Source] = &[
    ("/valueFrom/configMapKeyRef", "name", Referent::ConfigMap),
    ("/valueFrom/secretKeyRef", "name", Referent::Secret),
];
const ENV_FROM: &[Source] = &[("/configMapRef", "name", Referent::ConfigMap), ("/secretRef", "name", Referent::Secret)];

/// All references of a pod template that its pods read from. Pull secrets are none: where one is missing the kubelet goes on
/// without it, and an image that cannot be pulled is told by the pod.
#[must_use]
pub fn references(template: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    let length = |pointer: &str| at(template, pointer).and_then(Value::as_array).map_or(0, Vec::len);
    each(template, "/spec/volumes", VOLUME, &mut found);
    for i in 0..length("/spec/volumes") {
        each(template, &format!("/spec/volumes/{i}/projected/sources"), PROJECTED, &mut found);
    }
    for containers in ["/spec/initContainers", "/spec/containers"] {
        for i in 0..length(containers) {
            each(template, &format!("{containers}/{i}/env"), ENV, &mut found);
            each(template, &format!("{containers}/{i}/envFrom"), ENV_FROM, &mut found);
        }
    }
    let account = ["/spec/serviceAccountName", "/spec/serviceAccount"];
    let account = account.into_iter().find_map(|pointer| Some((pointer, at(template, pointer)?.as_str()?)));
    found.extend(account.filter(|(_, name)| !name.is_empty()).map(|(pointer, name)| Reference {
        to: Referent::ServiceAccount,
        name: name.to_owned(),
        pointer: pointer.to_owned(),
        need: ReferenceNeed::Required,
    }));
    found
}

/// The references in the items of the list at `place`.
fn each(template: &Value, place: &str, sources: &[Source], found: &mut Vec<Reference>) {
    let items = at(template, place).and_then(Value::as_array).into_iter().flatten();
    for (i, item) in items.enumerate() {
        for (inside, field, to) in sources {
            let Some(source) = at(item, inside) else { continue };
            let Some(name) = source.get(field).and_then(Value::as_str) else { continue };
            let need = if source.get("optional") == Some(&Value::Bool(true)) {
                ReferenceNeed::Optional
            } else {
                ReferenceNeed::Required
            };
            let pointer = format!("{place}/{i}{inside}/{field}");
            found.push(Reference { to: *to, name: name.to_owned(), pointer, need });
        }
    }
}

/// Where an object of a set says something, such as `teams/shop/podinfo.yaml:31`; `base` is the directory of the rollout's file. It
/// reads the files again: for the few that are told to people.
#[must_use]
pub fn place(set: &Set, base: Option<&RepoPath>, object: &ObjectRef, pointer: &str) -> Option<String> {
    let (items, _) = set::read(&set.files, base, &object.namespace);
    let item = items.get(object)?;
    Some(format!("{}:{}", item.source.path(), item.node.locate(pointer).line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c_7_claims_and_secrets_are_given_by_what_makes_them() {
        let given = |api_version: &str, kind: &str, spec: Value| {
            let kind = Kind::Other(crate::manifest::other::Other::named(api_version, kind).unwrap());
            let reference = ObjectRef { kind, namespace: "shop".parse().unwrap(), name: "web".parse().unwrap() };
            let object = Object::new(reference, json!({"metadata": {"name": "web"}, "spec": spec}));
            super::given(&object).map(|(to, name)| format!("{to} {name}"))
        };
        for (api_version, kind, spec, expected) in [
            ("v1", "PersistentVolumeClaim", json!({}), Some("PersistentVolumeClaim web")),
            ("external-secrets.io/v1", "ExternalSecret", json!({"target": {"name": "tls"}}), Some("Secret tls")),
            ("external-secrets.io/v1", "ExternalSecret", json!({}), Some("Secret web")),
            ("bitnami.com/v1alpha1", "SealedSecret", json!({}), Some("Secret web")),
            ("cert-manager.io/v1", "Certificate", json!({"secretName": "tls"}), Some("Secret tls")),
            ("batch/v1", "CronJob", json!({}), None),
        ] {
            assert_eq!(given(api_version, kind, spec).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn c_7_all_that_pods_read_from_is_found_with_its_place() {
        let template = json!({"spec": {
            "serviceAccountName": "runner",
            "imagePullSecrets": [{"name": "registry"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "files"}},
                {"name": "b", "secret": {"secretName": "tls", "optional": true}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "d", "projected": {"sources": [{"secret": {"name": "token"}}, {"configMap": {"name": "more", "optional": false}}]}},
                {"name": "e", "emptyDir": {}},
            ],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "early"}}]}],
            "containers": [{"env": [
                {"name": "A", "value": "plain"},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "files", "key": "k", "optional": true}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "tls", "key": "k"}}},
            ]}],
        }});
        let shown: Vec<String> = references(&template)
            .into_iter()
            .map(|reference| {
                assert_eq!(template.pointer(&reference.pointer), Some(&json!(reference.name)));
                format!("{} {} {:?}", reference.to, reference.name, reference.need)
            })
            .collect();
        let expected = [
            "ConfigMap files Required",
            "Secret tls Optional",
            "PersistentVolumeClaim data Required",
            "Secret token Required",
            "ConfigMap more Required",
            "Secret early Required",
            "ConfigMap files Optional",
            "Secret tls Required",
            "ServiceAccount runner Required",
        ];
        assert_eq!(shown, expected);
        for nothing in [json!(null), json!({"spec": {"containers": "x", "volumes": [3], "serviceAccountName": ""}})] {
            assert_eq!(references(&nothing), []);
        }
    }
}
