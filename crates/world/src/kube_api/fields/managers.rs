//! `metadata.managedFields`: who owns what.

use super::set::{FieldSet, Malformed};
use super::{FieldWriter, Operation};
use chrono::SecondsFormat;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::object::at;
use tidegate_controller::record::state::Time;

/// The most managers that are kept apart if they write by update (kube-apiserver, `DefaultMaxUpdateManagers`).
const MOST_UPDATERS: usize = 10;
/// Who owns what the oldest updates wrote when there are more.
const OLDEST: &str = "ancient-changes";

/// Names one entry: a manager is another one with another operation, subresource or, by update, version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) applies: bool,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl Manager {
    /// Who writes.
    pub(super) fn of(writer: &FieldWriter<'_>, api_version: &str) -> Self {
        Self {
            name: if writer.manager.is_empty() { "unknown" } else { writer.manager }.to_owned(),
            applies: writer.operation != Operation::Update,
            api_version: api_version.to_owned(),
            subresource: writer.subresource.unwrap_or_default().to_owned(),
        }
    }

    /// A manager that updates the object itself.
    pub(super) fn updater(name: &str, api_version: &str) -> Self {
        Self { name: name.to_owned(), applies: false, api_version: api_version.to_owned(), subresource: String::new() }
    }

    /// The same manager, at a subresource.
    pub(super) fn at(self, subresource: Option<&str>) -> Self {
        Self { subresource: subresource.unwrap_or_default().to_owned(), ..self }
    }

    fn operation(&self) -> &'static str {
        if self.applies { "Apply" } else { "Update" }
    }

    /// What the API server knows the manager by, and sorts conflicts by: these fields as JSON.
    pub(super) fn id(&self) -> String {
        let mut id = format!("{{\"manager\":{},\"operation\":\"{}\"", json!(self.name), self.operation());
        if !self.applies {
            id += &format!(",\"apiVersion\":{}", json!(self.api_version));
        }
        if !self.subresource.is_empty() {
            id += &format!(",\"subresource\":{}", json!(self.subresource));
        }
        id + "}"
    }

    /// Whether both have the same id.
    pub(super) fn is(&self, other: &Self) -> bool {
        let Self { name, applies, api_version, subresource } = self;
        let version = *applies || *api_version == other.api_version;
        version && *name == other.name && *applies == other.applies && *subresource == other.subresource
    }

    /// As conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.applies {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }
}

/// What a manager owns.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) manager: Manager,
    pub(super) fields: FieldSet,
    /// When it last changed something, in whole seconds.
    pub(super) time: Option<Time>,
}

/// Every entry of an object, by the manager's id.
#[derive(Debug, Clone, Default)]
pub(super) struct Managers(BTreeMap<String, Entry>);

impl Managers {
    /// Reads `metadata.managedFields`.
    pub(super) fn read(object: &Value) -> Result<Self, Malformed> {
        let mut all = Self::default();
        let Some(entries) = at(object, "/metadata/managedFields") else { return Ok(all) };
        for entry in entries.as_array().into_iter().flatten() {
            let entry = read_entry(entry)?;
            all.0.insert(entry.manager.id(), entry);
        }
        Ok(all)
    }

    /// The entries as `metadata.managedFields`, in the API server's order.
    pub(super) fn write(&self) -> Vec<Value> {
        let mut all: Vec<&Entry> = self.0.values().collect();
        let seconds = |entry: &Entry| entry.time.map_or(0, |time| time.timestamp());
        all.sort_by_key(|entry| {
            let Manager { name, applies: _, api_version, subresource } = &entry.manager;
            (entry.manager.operation(), seconds(entry), name, api_version, subresource)
        });
        all.into_iter().map(write_entry).collect()
    }

    /// Whether nobody owns anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every entry.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    /// What the manager owns.
    pub(super) fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.0.get(&manager.id())
    }

    /// Puts the manager's entry, or takes it out if it owns nothing.
    pub(super) fn put(&mut self, entry: Entry) {
        let id = entry.manager.id();
        if entry.fields.is_empty() {
            self.0.remove(&id);
        } else {
            self.0.insert(id, entry);
        }
    }

    /// Takes these fields from everybody but `writer`.
    pub(super) fn take(&mut self, fields: &FieldSet, writer: Option<&Manager>) {
        for entry in self.0.values_mut().filter(|entry| writer.is_none_or(|writer| !entry.manager.is(writer))) {
            entry.fields.subtract(fields);
        }
        self.0.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Joins the oldest updaters of the same version until there are no more than [`MOST_UPDATERS`].
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<(i64, String)> = self
            .0
            .iter()
            .filter(|(_, entry)| !entry.manager.applies)
            .map(|(id, entry)| (entry.time.map_or(0, |time| time.timestamp()), id.clone()))
            .collect();
        updaters.sort();
        let mut left = updaters.len();
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        for (_, id) in updaters {
            if left <= MOST_UPDATERS {
                return;
            }
            let Some(entry) = self.0.get(&id).cloned() else { continue };
            let version = entry.manager.api_version.clone();
            let Some(earlier) = first.get(&version) else {
                first.insert(version, id);
                continue;
            };
            let bucket = Manager::updater(OLDEST, &version);
            let before = self.0.remove(&bucket.id()).or_else(|| self.0.remove(earlier));
            let fields = before.map_or_else(FieldSet::default, |before| before.fields).union(&entry.fields);
            self.0.remove(&id);
            self.0.insert(bucket.id(), Entry { manager: bucket, fields, time: entry.time });
            left -= 1;
        }
    }
}

fn read_entry(entry: &Value) -> Result<Entry, Malformed> {
    let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let applies = match text("operation").as_str() {
        "Apply" => true,
        "Update" => false,
        _ => return Err(Malformed),
    };
    let manager =
        Manager { name: text("manager"), applies, api_version: text("apiVersion"), subresource: text("subresource") };
    if manager.api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return Err(Malformed);
    }
    let fields = entry.get("fieldsV1").map_or_else(|| Ok(FieldSet::default()), FieldSet::read)?;
    let time = text("time").parse().ok();
    Ok(Entry { manager, fields, time })
}

fn write_entry(entry: &Entry) -> Value {
    let Entry { manager, fields, time } = entry;
    let mut written = json!({
        "manager": manager.name, "operation": manager.operation(), "apiVersion": manager.api_version,
    });
    if let Some(time) = time {
        written["time"] = time.to_rfc3339_opts(SecondsFormat::Secs, true).into();
    }
    written["fieldsType"] = "FieldsV1".into();
    written["fieldsV1"] = Value::Object(fields.write());
    if !manager.subresource.is_empty() {
        written["subresource"] = manager.subresource.as_str().into();
    }
    written
}
