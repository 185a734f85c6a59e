//! The copies of tracked live objects: each as a version took it, for as long as a version that may serve refers to it.
//!
//! Nobody can change one. So what a version was tried out with is what is promoted, whatever has become of the original.

use super::live::LiveState;
use crate::manifest::desired::Set;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::{Kind, Object, ObjectRef, section};
use crate::manifest::reference::Referent;
use crate::manifest::tracked::{self, Taken};
use serde_json::{Value, json};

/// The copies that a set refers to, as far as there is anything to make them of.
pub fn copies<'a>(set: &'a Set, live: &'a LiveState, namespace: &'a Namespace) -> impl Iterator<Item = Object> {
    set.tracked.iter().filter_map(move |((kind, name), taken)| {
        let original = ObjectRef { kind: kind.kind()?, namespace: namespace.clone(), name: name.clone() };
        let reference = ObjectRef { name: taken.copy.clone(), ..original.clone() };
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
    let mut taken = set.tracked.iter();
    taken.any(|((kind, _), taken)| kind.kind() == Some(reference.kind) && taken.copy == reference.name)
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
