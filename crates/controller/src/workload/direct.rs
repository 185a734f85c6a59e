//! What main has changed directly of objects whose set stays as it was: laid over them.

use crate::manifest::desired::Set;
use crate::manifest::object::{Object, ObjectRef, section};
use crate::record::posture::{Directly, TARGET};
use serde_json::Value;
use std::borrow::Cow;

/// The set with that, as far as it has these objects; `target` is what it calls its own.
#[must_use]
pub fn applied<'s>(set: &'s Set, target: &ObjectRef, directly: &Directly) -> Cow<'s, Set> {
    if directly.is_empty() {
        return Cow::Borrowed(set);
    }
    let mut set = set.clone();
    for (reference, object) in &mut set.objects {
        let own = if reference == target { TARGET.to_owned() } else { named(reference) };
        for (pointer, value) in directly.get(&own).into_iter().flatten() {
            put(object, pointer, value);
        }
    }
    Cow::Owned(set)
}

/// How an object that is not the target is named there.
#[must_use]
pub fn named(reference: &ObjectRef) -> String {
    format!("{}/{}", reference.kind.as_str(), reference.name)
}

/// Sets a field, or takes it away.
fn put(object: &mut Object, pointer: &str, value: &Value) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    let path: Vec<&str> = parent.split('/').skip(1).collect();
    // Only the last step is a name of people's.
    let field = field.replace("~1", "/").replace("~0", "~");
    if !value.is_null() {
        section(object.value_mut(), &path).insert(field, value.clone());
    } else if object.at(parent).is_some() {
        section(object.value_mut(), &path).shift_remove(&field);
    }
}
