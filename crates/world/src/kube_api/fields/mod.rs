//! Who owns which field of an object: server-side apply, and the ownership that updates take.
//!
//! Values in, values out. The rules are those of kube-apiserver 1.36 (`apimachinery/pkg/util/managedfields`, on
//! structured-merge-diff), written anew; `tests/real/sim/apply.rs` puts the same writes to both. Left out: other versions
//! of a kind than the one of its schema, lists and maps that change their type, and the annotation of client-side
//! apply, which the API server heeds for the manager `kubectl` alone.

mod managers;
mod own;
mod set;
mod typed;
mod validate;

use self::managers::{Manager, Managers};
use self::own::{Change, Own};
use self::typed::same;
use super::{defaults, validation};
use serde_json::{Map, Value, json};
use tidegate_controller::manifest::kinds::Schema;
use tidegate_controller::manifest::object::at;
use tidegate_controller::record::state::Time;

/// How somebody writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Server-side apply.
    Apply {
        /// Takes over what others own, instead of being refused.
        force: bool,
    },
    /// Create, replace, or any patch but apply.
    Update,
}

/// Who writes, how, what part, and when.
#[derive(Debug, Clone, Copy)]
pub struct FieldWriter<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// How it writes.
    pub operation: Operation,
    /// The subresource that it writes to, for example `status`.
    pub subresource: Option<&'a str>,
    /// The time of the write.
    pub now: Time,
}

/// What a write comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldsWritten {
    /// The whole object, with its `metadata.managedFields`.
    pub object: Value,
    /// Whether it differs from the live one. An object that does not keeps its resourceVersion.
    pub changed: bool,
}

/// Why a write is refused: what the API server says in a `Status`.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldRefusal {
    /// The HTTP code.
    pub code: u16,
    /// The reason; empty if the API server gives none.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// `details` of the status.
    pub details: Option<Value>,
}

impl FieldRefusal {
    /// The `Status` that is answered.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status["code"] = self.code.into();
        status
    }

    fn bad_request(message: String) -> Self {
        Self { code: 400, reason: "BadRequest", message, details: None }
    }

    /// What the API server did not foresee: it gives no reason.
    fn failure(message: String) -> Self {
        Self { code: 500, reason: "", message, details: None }
    }
}

/// What of an object only the API server writes.
const KEPT: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// The new object, or why it is refused.
///
/// For [`Operation::Update`] `sent` is the whole new object; for an apply it is what the manager wants. What the API
/// server itself keeps in `metadata` (uid, resourceVersion, generation, creationTimestamp, deletion) is taken from
/// `live`, and left out of what is new: the caller fills it in. A write to the object leaves its `status` as it is, one
/// to the subresource `status` all else.
///
/// # Errors
/// What the API server refuses, in its words.
pub fn write(
    schema: &Schema,
    live: Option<&Value>,
    sent: &Value,
    writer: &FieldWriter<'_>,
) -> Result<FieldsWritten, FieldRefusal> {
    let written = unchecked(schema, live, sent.clone(), writer)?;
    if writer.subresource.is_none() {
        validation::check(schema, live, &written.object)?;
    }
    Ok(written)
}

/// The same without looking at whether the new object is valid, which the API server does only after it has compared
/// versions.
pub(super) fn unchecked(
    schema: &Schema,
    live: Option<&Value>,
    sent: Value,
    writer: &FieldWriter<'_>,
) -> Result<FieldsWritten, FieldRefusal> {
    let (object, owners) = match writer.operation {
        Operation::Apply { force } => apply(schema, live, &sent, writer, force)?,
        Operation::Update => update(schema, live, sent, writer),
    };
    Ok(finish(schema, live, object, &owners, writer))
}

/// The object with the fields laid over that are applied, and who owns what then.
fn apply(
    schema: &Schema,
    live: Option<&Value>,
    sent: &Value,
    writer: &FieldWriter<'_>,
    force: bool,
) -> Result<(Value, Managers), FieldRefusal> {
    applicable(schema, sent)?;
    let own = Own::new(schema, writer);
    let blank = defaults::blank(schema);
    let base = live.unwrap_or(&blank);
    let mut owners = Managers::read(base)
        .map_err(|_| FieldRefusal::failure("failed to decode managed fields: they are not well formed".to_owned()))?;
    if owners.is_empty() && live.is_some() {
        let before = Manager::updater("before-first-apply", schema.api_version()).at(writer.subresource);
        own.update(&Change { old: &blank, new: base }, &mut owners, before);
    }
    validate::check(schema.root(), sent).map_err(|why| {
        FieldRefusal::failure(format!("failed to create typed patch object ({}): {why}", name_and_kind(sent)))
    })?;
    let mut object = own.apply(base, sent, &mut owners, force)?;
    take_managed_fields(&mut object);
    defaults::fill(schema, &mut object);
    Ok((object, owners))
}

/// Whether an object can be applied at all.
fn applicable(schema: &Schema, sent: &Value) -> Result<(), FieldRefusal> {
    let text = |key: &str| sent.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != schema.api_version() || text("kind") != schema.kind() {
        return Err(FieldRefusal::bad_request(format!("invalid object type: {}", kind_of(sent))));
    }
    if at(sent, "/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(FieldRefusal::bad_request("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// Group, version and kind as the API server prints them.
fn kind_of(object: &Value) -> String {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

fn name_and_kind(object: &Value) -> String {
    let text = |pointer: &str| at(object, pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}; {}", text("/metadata/namespace"), text("/metadata/name"), kind_of(object))
}

/// The object as it is sent, and who owns what then.
fn update(schema: &Schema, live: Option<&Value>, mut object: Value, writer: &FieldWriter<'_>) -> (Value, Managers) {
    let mut owners = owners_of(schema, live, &mut object, writer);
    defaults::fill(schema, &mut object);
    // What was written before anybody kept track, or has been told to forget, is not tracked until somebody applies.
    if !(owners.is_empty() && live.is_some()) {
        let blank = defaults::blank(schema);
        let change = Change { old: live.unwrap_or(&blank), new: &object };
        Own::new(schema, writer).update(&change, &mut owners, Manager::of(writer, schema.api_version()));
        owners.cap();
    }
    (object, owners)
}

/// The owners that an update starts from: those that it sends, if it sends any; it may also tell to forget them all.
/// They are taken out of the object.
fn owners_of(schema: &Schema, live: Option<&Value>, object: &mut Value, writer: &FieldWriter<'_>) -> Managers {
    let sent = take_managed_fields(object);
    let live = || live.and_then(|live| Managers::read(live).ok()).unwrap_or_default();
    if writer.subresource.is_some() {
        return live();
    }
    let Some(Value::Array(entries)) = sent else { return live() };
    let forget = match &entries[..] {
        // In custom resources the API server does not tell an empty list from none.
        [] => !schema.is_custom(),
        [only] => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    };
    if forget {
        return Managers::default();
    }
    let sent = Managers::read(&json!({"metadata": {"managedFields": entries}}));
    sent.ok().filter(|sent| !sent.is_empty()).unwrap_or_else(live)
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.shift_remove("managedFields")
}

/// Puts in what the writer has no say in, and finds out whether anything has changed.
fn finish(
    schema: &Schema,
    live: Option<&Value>,
    mut object: Value,
    owners: &Managers,
    writer: &FieldWriter<'_>,
) -> FieldsWritten {
    object["apiVersion"] = schema.api_version().into();
    object["kind"] = schema.kind().into();
    for key in KEPT {
        restore(live, &mut object, &["metadata", key]);
    }
    let entries = owners.write();
    let entries = match live {
        Some(live) if same_but_times(live, &object, &entries) => managed_fields(live).to_vec(),
        _ => entries,
    };
    for path in own::hidden_paths(schema, writer.subresource) {
        restore(live, &mut object, path);
    }
    defaults::fill(schema, &mut object);
    defaults::settle(schema, &mut object);
    if !entries.is_empty() {
        object["metadata"]["managedFields"] = Value::Array(entries);
    }
    let changed = live.is_none_or(|live| !same(live, &object));
    FieldsWritten { object, changed }
}

/// Whether an object is the live one but for the times in its entries, which then stay too.
fn same_but_times(live: &Value, object: &Value, entries: &[Value]) -> bool {
    let before = managed_fields(live);
    before.len() == entries.len()
        && before.iter().zip(entries).all(|(before, now)| same_but(before, now, "time", |_, _| true))
        && same_but(live, object, "metadata", |live, object| same_but(live, object, "managedFields", |_, _| true))
}

/// Whether two values are the same but for the field of that name, of which `then` decides if both have it.
fn same_but(left: &Value, right: &Value, name: &str, then: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(left), Value::Object(right)) = (left, right) else { return same(left, right) };
    let rest = |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(name));
    let equal = |key: &str, value: &Value| right.get(key).is_some_and(|other| same(value, other));
    rest(left) == rest(right)
        && left.iter().all(|(key, value)| key == name || equal(key, value))
        && left.get(name).zip(right.get(name)).is_none_or(|(left, right)| then(left, right))
}

/// The entries that say who owns what.
pub(super) fn managed_fields(object: &Value) -> &[Value] {
    at(object, "/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Makes what stands at `path` what it is in `live`.
fn restore(live: Option<&Value>, object: &mut Value, path: &[&str]) {
    let Some((last, way)) = path.split_last() else { return };
    let kept = live.and_then(|live| path.iter().try_fold(live, |at, key| at.get(*key)));
    let mut at = object;
    for key in way {
        match at.get_mut(*key) {
            Some(inner) => at = inner,
            None => return,
        }
    }
    let Some(fields) = at.as_object_mut() else { return };
    match kept {
        Some(kept) => drop(fields.insert((*last).to_owned(), kept.clone())),
        None => drop(fields.shift_remove(*last)),
    }
}

#[cfg(test)]
mod tests;
