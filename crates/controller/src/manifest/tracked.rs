//! What of a version lives in the cluster alone: ConfigMaps and Secrets that no manifest holds and that the target's pods read.
//!
//! The people who own them change them where they are. A version takes each as it was when its run began: under the name of a
//! copy that nobody can change, to which the pods of that version refer. So a change is tried out like any other, no pod meets it
//! before its turn, and going back is possible as long as the run may have to. Git knows digests of the content, never the content;
//! of a Secret not even that, but who wrote it when.

use super::canonical;
use super::ids::ObjectName;
use super::object::Object;
use super::reference::{self, Referent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The file of a pinned set that says what it tracks. No directory of manifests takes a file with that ending.
pub const FILE: &str = "tidegate.tracked";

/// The hex digits by which copies differ.
const DIGITS: usize = 10;
/// The longest name of a ConfigMap or Secret: RFC 1123.
const MAX_NAME: usize = 253;

/// Live objects whose changes are versions, by their names. With the layout `primary` alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Track {
    /// ConfigMaps of the rollout's namespace that the target's pods read, and that are not among the manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 20, "uniqueItems" = true))]
    pub config_maps: Vec<ObjectName>,
    /// Secrets of the rollout's namespace that the target's pods read. The controller needs a right for it: docs/security.md.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 20, "uniqueItems" = true))]
    pub secrets: Vec<ObjectName>,
}

/// The tracked objects of a version, each as it takes it.
pub type Tracked = BTreeMap<(Referent, ObjectName), Taken>;

/// One tracked object as a version takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Which content: a digest; of a Secret its uid, and a digest of who wrote which keys when, or its resourceVersion.
    pub content: String,
    /// The copy that the pods refer to.
    pub copy: ObjectName,
}

/// Says which content a ConfigMap has. Labels and annotations are no content.
#[must_use]
pub fn content(config_map: &Object) -> String {
    format!("sha256:{}", canonical::data(config_map))
}

/// The longest name that a tracked object may have.
#[must_use]
pub fn longest() -> usize {
    MAX_NAME - "-primary-".len() - DIGITS
}

/// What a version takes, with `target`, of objects with these contents.
///
/// # Errors
/// The objects that have none.
pub fn take<'a>(
    names: impl Iterator<Item = (Referent, &'a ObjectName)>,
    target: &ObjectName,
    content: impl Fn(Referent, &ObjectName) -> Option<String>,
) -> Result<Tracked, Vec<(Referent, ObjectName)>> {
    let (mut taken, mut missing) = (Tracked::new(), Vec::new());
    for (kind, name) in names {
        match content(kind, name).and_then(|content| Some((copy_of(name, target, &content)?, content))) {
            Some((copy, content)) => drop(taken.insert((kind, name.clone()), Taken { content, copy })),
            None => missing.push((kind, name.clone())),
        }
    }
    if missing.is_empty() { Ok(taken) } else { Err(missing) }
}

/// The name of a copy. Two rollouts that track one object have one each.
fn copy_of(name: &ObjectName, target: &ObjectName, content: &str) -> Option<ObjectName> {
    let digest = canonical::digest(&Value::from(format!("{target} {content}")));
    format!("{name}-primary-{}", &digest[..DIGITS]).parse().ok()
}

/// The workload with its references led to the copies.
#[must_use]
pub fn moved(workload: &Object, tracked: &Tracked) -> Object {
    let mut moved = workload.clone();
    let Some(template) = moved.value_mut().pointer_mut("/spec/template").filter(|_| !tracked.is_empty()) else {
        return moved;
    };
    for found in reference::references(template) {
        let taken = found.name.parse().ok().and_then(|name| tracked.get(&(found.to, name)));
        if let (Some(taken), Some(place)) = (taken, template.pointer_mut(&found.pointer)) {
            *place = taken.copy.as_str().into();
        }
    }
    moved
}

/// The objects that two versions take otherwise, for people.
#[must_use]
pub fn changes(old: &Tracked, new: &Tracked) -> Vec<String> {
    let mut names: Vec<_> = old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(|(kind, name)| format!("{kind} {name}")).collect()
}

/// The text of the file.
#[must_use]
pub fn print(tracked: &Tracked) -> String {
    tracked.iter().fold(String::new(), |mut text, ((kind, name), Taken { content, copy })| {
        let _ = writeln!(text, "{kind} {name} {content} {copy}");
        text
    })
}

/// Reads the file; none if it does not say what [`print`] writes.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Tracked> {
    let line = |line: &str| {
        let [kind, name, content, copy] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let kind = Referent::TRACKED.into_iter().find(|known| known.to_string() == kind)?;
        Some(((kind, name.parse().ok()?), Taken { content: content.to_owned(), copy: copy.parse().ok()? }))
    };
    std::str::from_utf8(bytes).ok()?.lines().map(line).collect()
}

impl Track {
    /// Whether nothing is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// What is tracked, each with its place in the file below `track`.
    pub fn placed(&self) -> impl Iterator<Item = (Referent, &ObjectName, String)> {
        let Self { config_maps, secrets } = self;
        let config_maps = config_maps.iter().enumerate();
        let config_maps = config_maps.map(|(i, name)| (Referent::ConfigMap, name, format!("configMaps/{i}")));
        let secrets = secrets.iter().enumerate();
        config_maps.chain(secrets.map(|(i, name)| (Referent::Secret, name, format!("secrets/{i}"))))
    }

    /// What is tracked.
    pub fn all(&self) -> impl Iterator<Item = (Referent, &ObjectName)> {
        self.placed().map(|(kind, name, _)| (kind, name))
    }
}

#[cfg(test)]
mod tests;
