//! What is served, as clients ask for it. Pure.

use super::resource::{RESOURCES, Resource, Trait};
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The answer to a path that is about no object; `None` where nothing is served.
pub(super) fn answer(world: &World, path: &str) -> Option<Value> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match &segments[..] {
        ["version"] => Some(json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.0-tidegate", "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "",
        })),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => {
            let groups: Vec<_> = groups(world).iter().map(|(group, version)| about(group, version)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", group] => {
            let groups = groups(world);
            let mut answer = about(group, groups.get(group)?);
            answer["kind"] = "APIGroup".into();
            answer["apiVersion"] = "v1".into();
            Some(answer)
        }
        ["api", "v1"] => resources(world, "v1"),
        ["apis", group, version] => resources(world, &format!("{group}/{version}")),
        _ => None,
    }
}

/// The groups that are served, with their versions.
fn groups(world: &World) -> BTreeMap<&'static str, &'static str> {
    let served = RESOURCES.iter().filter(|resource| world.serves(resource) && !resource.group().is_empty());
    served.map(|resource| (resource.group(), resource.version())).collect()
}

fn about(group: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

fn resources(world: &World, api_version: &str) -> Option<Value> {
    let served: Vec<_> = RESOURCES.iter().filter(|r| r.api_version == api_version && world.serves(r)).collect();
    if served.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for resource in served {
        resources.push(whole(resource));
        if resource.is(Trait::Scale) {
            resources.push(json!({
                "name": format!("{}/scale", resource.plural), "singularName": "", "namespaced": true,
                "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
            }));
        }
        if resource.is(Trait::Status) {
            resources.push(json!({
                "name": format!("{}/status", resource.plural), "singularName": "", "kind": resource.kind,
                "namespaced": !resource.is(Trait::ClusterWide), "verbs": ["get", "patch", "update"],
            }));
        }
    }
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}))
}

fn whole(resource: &Resource) -> Value {
    let mut verbs = vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    if resource.kind == "Namespace" {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    let mut about = json!({
        "name": resource.plural, "singularName": resource.singular(), "namespaced": !resource.is(Trait::ClusterWide),
        "kind": resource.kind, "verbs": verbs,
    });
    if !resource.short.is_empty() {
        about["shortNames"] = json!([resource.short]);
    }
    about
}
