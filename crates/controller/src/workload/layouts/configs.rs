//! Which ConfigMaps a version brings for its pods.

use crate::manifest::canonical::referenced_config_maps;
use crate::manifest::desired::Set;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object};
use serde_json::Value;

/// The ConfigMaps that a workload's pods refer to and stable does not have.
///
/// # Errors
/// The first that stable has as well, with other content.
pub(in crate::workload) fn new_configs<'a>(
    workload: &Object,
    stable: &Set,
    new: &'a Set,
) -> Result<Vec<&'a Object>, ObjectName> {
    let template = workload.at("/spec/template").unwrap_or(&Value::Null);
    let names = referenced_config_maps(template).into_iter().filter_map(|name| name.parse::<ObjectName>().ok());
    let changed = names.filter_map(|name| changed_config(&name, stable, new));
    let added = |config: &'a Object| {
        let name = &config.reference().name;
        if stable.get(Kind::ConfigMap, name).is_some() { Err(name.clone()) } else { Ok(config) }
    };
    changed.map(added).collect()
}

/// The candidate's ConfigMap of that name, if its content is not stable's. Labels and annotations are no content.
pub(in crate::workload) fn changed_config<'a>(
    name: &ObjectName,
    stable: &Set,
    candidate: &'a Set,
) -> Option<&'a Object> {
    let new = candidate.get(Kind::ConfigMap, name)?;
    let content =
        |object: &Object, part: &str| object.value().get(part).and_then(Value::as_object).cloned().unwrap_or_default();
    let same = stable
        .get(Kind::ConfigMap, name)
        .is_some_and(|old| ["data", "binaryData"].iter().all(|part| content(old, part) == content(new, part)));
    (!same).then_some(new)
}
