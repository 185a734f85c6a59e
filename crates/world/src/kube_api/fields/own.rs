//! How a write changes who owns what.

use super::managers::{Entry, Manager, Managers};
use super::set::{FieldSet, display};
use super::typed::{compare, field_set, merge, same, with_named, without};
use super::{FieldRefusal, FieldWriter};
use crate::kube_api::resource::{Resource, Trait};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tidegate_controller::manifest::kinds::Schema;
use tidegate_controller::record::state::Time;

/// What nobody owns, because it names the object or the API server keeps it.
const NOBODYS: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

static NOBODYS_SET: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(NOBODYS));

/// What a write to the object or to a subresource leaves as it is (`GetResetFields` of the kinds' strategies).
pub(super) fn hidden_paths(schema: &Schema, subresource: Option<&str>) -> &'static [&'static [&'static str]] {
    match (subresource, schema.kind()) {
        (Some("status"), "Deployment") => &[&["spec"], &["metadata", "labels"]],
        (Some("status"), "Pod") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        (Some("status"), _) if schema.is_custom() => &[&["metadata"], &["spec"]],
        (Some("status"), _) => &[&["spec"]],
        _ if is_apart(schema) => &[&["status"]],
        _ => &[],
    }
}

/// Whether the status has a path of its own. Some custom kinds have none, and their status is a field as any other.
fn is_apart(schema: &Schema) -> bool {
    let resource = Resource::of_kind(schema.api_version(), schema.kind());
    schema.has_status() && resource.is_none_or(|resource| resource.is(Trait::Status))
}

/// An object before and after.
pub(super) struct Change<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
}

/// One write's view of ownership.
pub(super) struct Own<'a> {
    schema: &'a Schema,
    writer: &'a FieldWriter<'a>,
    hidden: FieldSet,
    now: Time,
}

impl<'a> Own<'a> {
    pub(super) fn new(schema: &'a Schema, writer: &'a FieldWriter<'a>) -> Self {
        let hidden = FieldSet::of(hidden_paths(schema, writer.subresource));
        Self { schema, writer, hidden, now: writer.now.trunc_subsecs(0) }
    }

    /// `manager` has changed the object: it owns what it changed, nobody owns what is gone.
    pub(super) fn update(&self, change: &Change<'_>, owners: &mut Managers, manager: Manager) {
        let difference = compare(self.schema.root(), change.old, change.new).outside(&self.hidden);
        let changed = difference.modified.union(&difference.added);
        owners.take(&changed.union(&difference.removed), None);
        let taken = changed.difference(&NOBODYS_SET);
        if taken.is_empty() {
            return;
        }
        let mut fields = taken;
        if let Some(before) = owners.get(&manager) {
            fields.add(&before.fields);
        }
        owners.put(Entry { manager, fields, time: Some(self.now) });
    }

    /// Lays `sent` over the object, takes out what the manager applied before and leaves out now, and makes it the
    /// owner of exactly what it sent.
    pub(super) fn apply(
        &self,
        live: &Value,
        sent: &Value,
        owners: &mut Managers,
        force: bool,
    ) -> Result<Value, FieldRefusal> {
        let root = self.schema.root();
        let manager = Manager::of(self.writer, self.schema.api_version());
        let before = owners.get(&manager).cloned();
        let sets = field_set(root, sent).outside(&self.hidden);
        let merged = merge(root, Some(live), Some(sent)).unwrap_or_else(|| json!({}));
        let mut owned = sets.clone();
        owners.entries().filter(|entry| !entry.manager.is(&manager)).for_each(|entry| owned.add(&entry.fields));
        let new = match &before {
            Some(before) => self.prune(merged, &before.fields, &owned),
            None => merged,
        };

        let difference = compare(root, live, &new).outside(&self.hidden);
        let changed = difference.modified.union(&difference.added);
        if !force {
            refuse_conflicts(owners, &manager, &changed)?;
        }
        owners.take(&changed.union(&difference.removed), Some(&manager));
        let time = if same(live, &new) { before.and_then(|before| before.time) } else { Some(self.now) };
        owners.put(Entry { manager, fields: sets.difference(&NOBODYS_SET), time });
        Ok(new)
    }

    /// Takes out what was applied `before` and is not `owned` by anybody now.
    fn prune(&self, merged: Value, before: &FieldSet, owned: &FieldSet) -> Value {
        let root = self.schema.root();
        let before = with_named(root, before);
        let all = with_named(root, &field_set(root, &merged));
        let left = |value: &Value| with_named(root, &field_set(root, value));
        // Cutting out an item takes all that is in it; what others own of it comes back,
        let pruned = without(root, &merged, &before);
        let pruned = without(root, &merged, &all.difference(&left(&pruned).union(&with_named(root, owned))));
        // and so does what nobody has applied.
        without(root, &merged, &all.difference(&left(&pruned)).intersection(&before))
    }
}

/// Refuses to change what others own.
fn refuse_conflicts(owners: &Managers, manager: &Manager, changed: &FieldSet) -> Result<(), FieldRefusal> {
    let others = owners.entries().filter(|entry| !entry.manager.is(manager));
    let conflicts: Vec<(String, Vec<String>)> = others
        .map(|entry| {
            let paths = entry.fields.intersection(changed).paths();
            (entry.manager.shown(), paths.iter().map(|path| display(path)).collect())
        })
        .filter(|(_, paths): &(String, Vec<String>)| !paths.is_empty())
        .collect();
    let number: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let message = match (&conflicts[..], number) {
        ([], _) => return Ok(()),
        ([(who, paths)], 1) => format!("Apply failed with 1 conflict: conflict with {who}: {}", paths.concat()),
        (all, _) => {
            let lines = all.iter().flat_map(|(who, paths)| {
                let paths = paths.iter().map(|path| format!("- {path}"));
                [format!("conflicts with {who}:")].into_iter().chain(paths)
            });
            format!("Apply failed with {number} conflicts: {}", lines.collect::<Vec<_>>().join("\n"))
        }
    };
    let cause = |who: &str, path: &String| {
        let message = format!("conflict with {who}");
        json!({"reason": "FieldManagerConflict", "message": message, "field": path})
    };
    let causes: Vec<Value> =
        conflicts.iter().flat_map(|(who, paths)| paths.iter().map(move |path| cause(who, path))).collect();
    Err(FieldRefusal { code: 409, reason: "Conflict", message, details: Some(json!({"causes": causes})) })
}
