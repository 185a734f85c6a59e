//! Which files there are for nodes, each distinct content once.

use crate::manifest::desired::{Plan, Set};
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::layer::{NodeContent, NodeLabels};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::workload::live::LiveState;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Files that nodes have, under the name of their ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFiles {
    /// The name of the ConfigMap.
    pub name: ObjectName,
    /// The digest of the files.
    pub digest: String,
    files: NodeContent,
}

/// The contents of one version: nodes that the same layers select have the same, which is put together once.
pub(super) struct Contents<'a> {
    prefix: &'a str,
    set: &'a Set,
    known: BTreeMap<Vec<usize>, Result<Rc<NodeFiles>, String>>,
}

impl<'a> Contents<'a> {
    pub(super) fn of(plan: &'a Plan, set: &'a Set) -> Self {
        Self { prefix: plan.target.name.as_str(), set, known: BTreeMap::new() }
    }

    pub(super) fn is_for(&self, labels: &NodeLabels) -> bool {
        self.set.layers.iter().any(|layer| layer.nodes.selects(labels))
    }

    pub(super) fn content(&mut self, labels: &NodeLabels) -> Result<Rc<NodeFiles>, String> {
        let layers = self.set.layers.iter().enumerate().filter(|(_, layer)| layer.nodes.selects(labels));
        let key: Vec<usize> = layers.map(|(place, _)| place).collect();
        let (set, prefix) = (self.set, self.prefix);
        let made = self.known.entry(key).or_insert_with(|| {
            let files = NodeContent::of(&set.layers, labels).map_err(|why| why.to_string())?;
            let digest = files.digest().as_str().to_owned();
            let name =
                format!("{prefix}-{}", &digest[..16]).parse().map_err(|_| format!("{prefix} is too long a name"))?;
            Ok(Rc::new(NodeFiles { name, digest, files }))
        });
        made.clone()
    }
}

impl NodeFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.files.files().is_empty()
    }

    /// The ConfigMap that holds it. It cannot be changed, so that its name says what is in it.
    pub(super) fn object(&self, namespace: &Namespace) -> Object {
        let kind = Kind::ConfigMap;
        let files = self.files.files().iter().map(|(name, bytes)| (name.clone(), STANDARD.encode(bytes).into()));
        let files: Map<String, Value> = files.collect();
        let metadata = json!({"name": self.name, "namespace": namespace});
        let mut value =
            json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "immutable": true});
        if !files.is_empty() {
            value["binaryData"] = Value::Object(files);
        }
        Object::new(ObjectRef { kind, namespace: namespace.clone(), name: self.name.clone() }, value)
    }
}

/// Whether a ConfigMap of that name may be a content of that set: which it has, nodes decide.
#[must_use]
pub fn may_be_content(set: &Set, reference: &ObjectRef) -> bool {
    let digits = reference.name.as_str().rsplit_once('-').map(|(_, digits)| digits);
    let is_digest = |digits: &str| digits.len() == 16 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    !set.layers.is_empty() && reference.kind == Kind::ConfigMap && digits.is_some_and(is_digest)
}

/// The names of the contents that nodes of that namespace are told, or go back to: none of them may go.
#[must_use]
pub fn in_use<'a>(live: &'a LiveState, namespace: &Namespace) -> BTreeSet<&'a str> {
    let told = live.of_kind(Kind::NodeConfig).filter(|config| config.reference().namespace == *namespace);
    told.flat_map(|config| [config.text("/spec/content"), config.text("/spec/previous/content")]).flatten().collect()
}
