//! The copies of tracked live objects: each as a version took it, for as long as a version that may serve refers to it.
//!
//! Nobody can change one. So what a version was tried out with is what is promoted, whatever has become of the original.
//!
//! What a Secret holds is never seen here. Its copy goes with an *anchor*, a ConfigMap of the same name that says which version of
//! which Secret it is: made before the copy, watched, marked and deleted as any copy is. The copy names it as its owner, so
//! Kubernetes takes it away when the anchor goes, and nobody needs the right to list Secrets or to delete one.

use super::live::LiveState;
use crate::manifest::desired::Set;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::{Kind, Object, ObjectRef, section};
use crate::manifest::reference::Referent;
use crate::manifest::tracked::{self, Taken};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is watched of a copy: the copy of a ConfigMap itself, the anchor of a Secret's.
pub const KEPT: Kind = Kind::ConfigMap;

/// The copies that a set refers to, as far as there is anything to make them of; of Secrets the anchors.
pub fn copies<'a>(set: &'a Set, live: &'a LiveState, namespace: &'a Namespace) -> impl Iterator<Item = Object> {
    set.tracked.iter().filter_map(move |((kind, name), taken)| {
        let original = ObjectRef { kind: KEPT, namespace: namespace.clone(), name: name.clone() };
        let reference = ObjectRef { name: taken.copy.clone(), ..original.clone() };
        if *kind == Referent::Secret {
            return Some(anchor(name, taken, reference));
        }
        let mut made = [&reference, &original].into_iter().filter_map(|from| live.get(from));
        let from = made.find(|from| content(from).as_ref() == Some(&taken.content))?;
        Some(copy(from, reference.clone()))
    })
}

/// The tracked objects of a set that are gone: their copies are, and the originals have moved on.
#[must_use]
pub fn lost(set: &Set, live: &LiveState, namespace: &Namespace) -> Vec<String> {
    let there: Vec<ObjectRef> = copies(set, live, namespace).map(|copy| copy.reference().clone()).collect();
    let lost = set.tracked.iter().filter(|(_, taken)| there.iter().all(|copy| copy.name != taken.copy));
    lost.map(|((kind, name), Taken { copy, .. })| format!("{kind} {copy}, the copy of {name}")).collect()
}

/// Whether an object of that name is a copy that the pods of this set refer to.
#[must_use]
pub fn makes(set: &Set, reference: &ObjectRef) -> bool {
    reference.kind == KEPT && set.tracked.values().any(|taken| taken.copy == reference.name)
}

/// The Secrets that sets take, by the names of their copies.
#[must_use]
pub fn secrets<'a>(sets: impl Iterator<Item = &'a Set>) -> BTreeMap<&'a ObjectName, (&'a ObjectName, &'a str)> {
    let tracked = sets.flat_map(|set| &set.tracked).filter(|((kind, _), _)| *kind == Referent::Secret);
    tracked.map(|((_, name), Taken { content, copy })| (copy, (name, content.as_str()))).collect()
}

/// Which content a live object has.
#[must_use]
pub fn content(live: &Object) -> Option<String> {
    (live.reference().kind == Kind::ConfigMap).then(|| tracked::content(live))
}

/// What is live of a tracked object.
#[must_use]
pub fn of_live(kind: Referent, name: &ObjectName, live: &LiveState, namespace: &Namespace) -> Option<String> {
    live.find(kind.kind()?, namespace, name).and_then(content)
}

fn anchor(secret: &ObjectName, taken: &Taken, reference: ObjectRef) -> Object {
    Object::new(reference, json!({ "immutable": true, "data": { "secret": secret, "version": taken.content } }))
}

fn copy(from: &Object, reference: ObjectRef) -> Object {
    let mut copy = Object::new(reference, json!({ "immutable": true }));
    for part in ["data", "binaryData"] {
        if let Some(data) = from.value().get(part).filter(|data| data.as_object().is_some_and(|data| !data.is_empty()))
        {
            section(copy.value_mut(), &[]).insert(part.to_owned(), Value::clone(data));
        }
    }
    copy
}
