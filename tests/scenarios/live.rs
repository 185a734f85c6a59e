//! The cluster as it is, in a few words, and the hands of people in it.

use crate::scenarios::edits;
use crate::scenarios::names::Names;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use tidegate::record::state::Time;
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::{RESOURCES, Resource, Trait};
use tidegate::world::workloads::agents::LIKE;

/// Where all rollouts live.
pub(crate) const NAMESPACE: &str = "shop";
/// Where the controller lives.
const HOME: &str = "tidegate";
/// The name under which people edit.
const HAND: &str = "kubectl-edit";

pub(crate) fn resource(kind: &str) -> Result<&'static Resource, String> {
    let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
    // Several groups have a VirtualService: the one that is there from the beginning is meant.
    let mut all = RESOURCES.iter().filter(|resource| resource.kind == name && resource.group().ends_with(group));
    let there = all.clone().find(|resource| !resource.is(Trait::Absent));
    there.or_else(|| all.next()).ok_or_else(|| format!("there is no kind {kind}"))
}

/// One line for each object that people have made, or that was made for them.
pub(crate) fn show(world: &World) -> String {
    let mut out = String::new();
    configs(world, &mut out);
    let kinds = "Deployment StatefulSet DaemonSet Pod Service DestinationRule GRPCRoute HTTPRoute HTTPProxy Ingress RouteTable TraefikService IngressRoute VirtualService ConfigMap Secret \
        HorizontalPodAutoscaler ScaledObject PodDisruptionBudget Job NetworkPolicy CronJob PersistentVolumeClaim \
        ServiceMonitor ExternalSecret Certificate";
    for kind in kinds.split(' ') {
        let mut objects: Vec<_> = world.list(resource(kind).unwrap(), NAMESPACE).collect();
        objects.sort_by_key(|object| object["spec"]["nodeName"].as_str().filter(|_| !is_numbered(object)));
        // What nodes have is told with them.
        objects.retain(|object| object["binaryData"].is_null());
        for object in objects {
            // Those of Deployments are told by their number.
            let of = &object["metadata"]["ownerReferences"][0]["kind"];
            if kind == "Pod" && *of != "StatefulSet" && *of != "DaemonSet" {
                continue;
            }
            let named = if *of == "DaemonSet" { &object["spec"]["nodeName"] } else { &object["metadata"]["name"] };
            let name = named.as_str().unwrap_or_default();
            let kind = if *of == "DaemonSet" && kind == "Pod" { "Pod on" } else { kind };
            let mark = object["metadata"]["annotations"]["tidegate.io/owner"].is_null();
            let owner = if mark && !kind.starts_with("Pod") { " (not ours)" } else { "" };
            let mark = object["metadata"]["annotations"]["tidegate.io/retreated"].as_str().filter(|m| !m.is_empty());
            let mark = mark.map(|mark| format!(", marked {mark:?}")).unwrap_or_default();
            writeln!(out, "{kind} {name}: {}{mark}{owner}", state(kind, object)).unwrap();
        }
    }
    out
}

/// Whether its name says its place.
fn is_numbered(object: &Value) -> bool {
    object["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet"
}

fn state(kind: &str, object: &Value) -> String {
    let spec = &object["spec"];
    let image = spec["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    match kind {
        "Deployment" => {
            let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
            format!("{image}, {ready} of {} ready", spec["replicas"])
        }
        "StatefulSet" => {
            let from = match spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64() {
                Some(2_147_483_647) => " from no pod on".to_owned(),
                Some(0) | None => String::new(),
                Some(partition) => format!(" from pod {partition} on"),
            };
            let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
            format!("{image}{from}, {ready} of {} ready", spec["replicas"])
        }
        "DaemonSet" => {
            let (strategy, status) = (spec["updateStrategy"]["type"].as_str().unwrap_or_default(), &object["status"]);
            format!("{image}, {strategy}, {} of {} ready", status["numberReady"], status["desiredNumberScheduled"])
        }
        "Pod" | "Pod on" => {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.filter(|c| c["type"] == "Ready").any(|c| c["status"] == "True");
            let image = spec["containers"][0]["image"].as_str().unwrap_or_default();
            let ends = if object["metadata"]["deletionTimestamp"].is_null() { "" } else { ", told to end" };
            format!("{image}{}{ends}", if ready { "" } else { ", not ready" })
        }
        "Service" if spec["type"] == "ExternalName" => {
            format!("leads to {}", spec["externalName"].as_str().unwrap_or_default())
        }
        "Service" => format!("selects {}", selector(&spec["selector"])),
        "HTTPRoute" | "GRPCRoute" => {
            spec["rules"].as_array().into_iter().flatten().map(rule).collect::<Vec<_>>().join("; ")
        }
        "Ingress" => {
            let paths =
                spec["rules"].as_array().into_iter().flatten().filter_map(|rule| rule["http"]["paths"].as_array());
            let services = paths.flatten().filter_map(|path| path["backend"]["service"]["name"].as_str());
            let settings = object["metadata"]["annotations"].as_object().into_iter().flatten();
            let settings = settings.filter_map(|(key, value)| {
                let key = key.strip_prefix("nginx.ingress.kubernetes.io/")?;
                value.as_str().filter(|value| !value.is_empty()).map(|value| format!(", {key} {value}"))
            });
            format!("leads to {}{}", services.collect::<Vec<_>>().join(", "), settings.collect::<String>())
        }
        "VirtualService" => {
            spec["http"].as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>().join("; ")
        }
        // Which version of it changes with everything that anybody writes.
        "ConfigMap" if object["data"]["secret"].is_string() => {
            format!("holds a copy of Secret {}", object["data"]["secret"])
        }
        "ConfigMap" | "Secret" => object["data"].to_string(),
        "Job" => job(object),
        "HorizontalPodAutoscaler" => {
            format!("{} of {} to {}", spec["scaleTargetRef"]["name"], spec["minReplicas"], spec["maxReplicas"])
        }
        "ScaledObject" => scaled(object),
        _ => spec.to_string(),
    }
}

fn selector(selector: &Value) -> String {
    let labels = selector.as_object().into_iter().flatten();
    let label = |(name, value): (&String, &Value)| match name.as_str() {
        // Its value is a digest.
        "tidegate.io/pods" => name.clone(),
        _ => format!("{name}={}", value.as_str().unwrap_or_default()),
    };
    labels.map(label).collect::<Vec<_>>().join(",")
}

fn scaled(object: &Value) -> String {
    let (spec, annotations) = (&object["spec"], &object["metadata"]["annotations"]);
    let paused = annotations["autoscaling.keda.sh/paused-replicas"].as_str();
    let paused = paused.map(|pods| format!(", paused at {pods}")).unwrap_or_default();
    let (least, most) = (&spec["minReplicaCount"], &spec["maxReplicaCount"]);
    format!("{} of {least} to {most}{paused}", spec["scaleTargetRef"]["name"])
}

fn job(object: &Value) -> String {
    let image = object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let last = conditions.filter_map(|condition| condition["type"].as_str()).next_back();
    format!("{image}, {}", last.unwrap_or("Running"))
}

fn rule(rule: &Value) -> String {
    let backends = rule["backendRefs"].as_array().into_iter().flatten();
    let backends = backends.map(|backend| {
        let weight = backend["weight"].as_i64().map(|weight| format!("{weight} ")).unwrap_or_default();
        let set = backend["filters"][0]["responseHeaderModifier"]["add"][0]["value"].as_str();
        let set = set.map(|cookie| format!(" (sets {cookie})")).unwrap_or_default();
        format!("{weight}{}{set}", backend["name"].as_str().unwrap_or_default())
    });
    let headers = rule["matches"].as_array().into_iter().flatten().flat_map(|m| m["headers"].as_array().cloned());
    let how = |h: &Value| if h["type"] == "RegularExpression" { " matches" } else { ":" };
    let headers: Vec<String> = headers.flatten().map(|h| format!("{}{} {}", h["name"], how(&h), h["value"])).collect();
    let headers =
        if headers.is_empty() { String::new() } else { format!("[{}] → ", headers.join(", ").replace('"', "")) };
    let copies = rule["filters"].as_array().into_iter().flatten().filter_map(|filter| {
        let mirror = &filter["requestMirror"];
        let percent = mirror["percent"].as_u64().unwrap_or(100);
        Some(format!(", copies of {percent} % to {}", mirror["backendRef"]["name"].as_str()?))
    });
    format!("{headers}{}{}", backends.collect::<Vec<_>>().join(" + "), copies.collect::<String>())
}

fn find(world: &World, object: &str) -> Result<Value, String> {
    let (kind, name) = object.split_once('/').ok_or("an object is named as KIND/NAME")?;
    let of = resource(kind)?;
    let found = match name.split_once('/') {
        Some((at, name)) => world.get(of, at, name),
        None => [NAMESPACE, HOME].into_iter().find_map(|at| world.get(of, at, name)),
    };
    found.map(|found| Value::clone(found)).ok_or_else(|| format!("there is no {object}"))
}

fn update(world: &mut World, object: &Value, subresource: &str) -> Result<(), String> {
    world.update(object.clone(), subresource, HAND).map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// A field of an object, as JSON.
pub(crate) fn field(world: &World, object: &str, path: &str) -> Result<String, String> {
    let found = find(world, object)?;
    let pointer = if path.starts_with('/') { path.to_owned() } else { format!("/{}", path.replace('.', "/")) };
    Ok(found.pointer(&pointer).filter(|value| !value.is_null()).map_or_else(|| "nothing".to_owned(), Value::to_string))
}

/// A hand sets fields of an object.
pub(crate) fn edit(world: &mut World, object: &str, words: &str) -> Result<(), String> {
    let mut found = find(world, object)?;
    words.split(" ; ").try_for_each(|edit| edits::set(&mut found, edit))?;
    update(world, &found, if words.starts_with("status.") { "status" } else { "" })
}

/// Some program changes fields of an object.
pub(crate) fn program(world: &mut World, object: &str, words: &str) -> Result<(), String> {
    let mut found = find(world, object)?;
    words.split(" ; ").try_for_each(|edit| edits::set(&mut found, edit))?;
    world.update(found, "", "some-program").map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// A namespace for what operations has.
pub(crate) fn space(world: &mut World, name: &str) {
    world.make_namespace(name);
}

/// A hand makes an object, in the namespace of the rollouts or in the one that is said.
pub(crate) fn make(world: &mut World, object: &str, words: &str) -> Result<(), String> {
    let (kind, name) = object.split_once('/').ok_or("an object is named as KIND/NAME")?;
    let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
    let Resource { api_version, kind, .. } = resource(kind)?;
    let mut made = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    words.split(" ; ").try_for_each(|edit| edits::set(&mut made, edit))?;
    world.create(api_version, kind, HAND, made).map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// An object by its name as it is shown, without the digest in it.
fn shown(world: &World, names: &Names, object: &str) -> Result<Value, String> {
    let (kind, name) = object.split_once('/').ok_or("an object is named as KIND/NAME")?;
    let is_it = |one: &&Arc<Value>| one["metadata"]["name"].as_str().is_some_and(|full| names.plain(full) == name);
    let exact = find(world, object);
    exact.or_else(|why| world.list(resource(kind)?, NAMESPACE).find(is_it).map(|found| Value::clone(found)).ok_or(why))
}

/// A hand makes an object an owner of another, as `kubectl patch` does.
pub(crate) fn own(world: &mut World, object: &str, owner: &str) -> Result<(), String> {
    let (mut found, owner) = (find(world, object)?, find(world, owner)?);
    found["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }]);
    world.update(found, "", "kubectl-patch").map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// The gateway takes no route any more, or every one.
pub(crate) fn gateway(world: &mut World, word: &str) -> Result<(), String> {
    let found = world.get(resource("Namespace")?, "", NAMESPACE).ok_or("there is no namespace")?;
    let mut namespace = Value::clone(found);
    let refuses = word == "refuses";
    namespace["metadata"]["annotations"] = if refuses { json!({"testbed/gateway": "refuse"}) } else { json!({}) };
    update(world, &namespace, "")
}

/// A hand deletes an object.
pub(crate) fn delete(world: &mut World, names: &Names, object: &str) -> Result<(), String> {
    let found = shown(world, names, object)?;
    world.delete(&found).map_err(|refusal| format!("{refusal:?}"))
}

/// A hand sends that share of an app's requests to its candidate.
pub(crate) fn weigh(world: &mut World, app: &str, weight: i64) -> Result<(), String> {
    let mut route = find(world, &format!("HTTPRoute/{app}"))?;
    for rule in route["spec"]["rules"].as_array_mut().into_iter().flatten() {
        for backend in rule["backendRefs"].as_array_mut().into_iter().flatten() {
            let canary = backend["name"] == format!("{app}-canary");
            backend["weight"] = if canary { weight } else { 100 - weight }.into();
        }
    }
    update(world, &route, "")
}

/// People make an object with kubectl, before there is tidegate.
pub(crate) fn apply(world: &mut World, object: Value) -> Result<(), String> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let made = world.create(&text("apiVersion"), &text("kind"), "kubectl-client-side-apply", object.clone());
    made.map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// An app's autoscaler wants so many pods.
pub(crate) fn scale(world: &mut World, app: &str, pods: usize) -> Result<(), String> {
    let kind = if find(world, &format!("Deployment/{app}")).is_ok() { "Deployment" } else { "StatefulSet" };
    let scale = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app, "namespace": NAMESPACE},
        "spec": {"replicas": pods},
    });
    let scaled = world.update(scale, "scale", "kube-controller-manager");
    scaled.map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// The pods of a Deployment.
fn of_deployment(world: &World, deployment: &str) -> Result<Vec<Value>, String> {
    let prefix = format!("{deployment}-");
    let of = |pod: &&Arc<Value>| {
        // NAME-REPLICASET-POD: a name that another begins with has more dashes.
        let rest = pod["metadata"]["name"].as_str().and_then(|name| name.strip_prefix(&prefix));
        rest.is_some_and(|rest| rest.matches('-').count() == 1)
    };
    let found: Vec<Value> = world.list(resource("Pod")?, NAMESPACE).filter(of).map(|pod| Value::clone(pod)).collect();
    if found.is_empty() { Err(format!("{deployment} has no pods")) } else { Ok(found) }
}

/// The image of each pod of a Deployment, and when it was made.
pub(crate) fn born(world: &World, deployment: &str) -> Result<Vec<(String, Time)>, String> {
    let told = |pod: Value| {
        let born = pod["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse().ok());
        let image = pod["spec"]["containers"][0]["image"].as_str();
        image.map(str::to_owned).zip(born).ok_or_else(|| format!("a pod of {deployment} was never made: {pod}"))
    };
    of_deployment(world, deployment)?.into_iter().map(told).collect()
}

/// All pods of a Deployment are evicted.
pub(crate) fn evict(world: &mut World, deployment: &str) -> Result<(), String> {
    let now = world.now().to_rfc3339();
    for mut pod in of_deployment(world, deployment)? {
        let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastTransitionTime": now});
        pod["status"]["conditions"].as_array_mut().ok_or("the pod has no status")?.push(target);
        update(world, &pod, "status")?;
        let evicted = find(world, &format!("Pod/{}", pod["metadata"]["name"].as_str().unwrap_or_default()))?;
        world.delete(&evicted).map_err(|refusal| format!("{refusal:?}"))?;
    }
    Ok(())
}

/// Pods of a Deployment stop being ready, or are ready again: all, or so many.
pub(crate) fn pods(world: &mut World, deployment: &str, ready: bool, most: usize) -> Result<(), String> {
    let (word, now) = (if ready { "True" } else { "False" }, json!(world.now().to_rfc3339()));
    for mut pod in of_deployment(world, deployment)?.into_iter().take(most) {
        for condition in pod["status"]["conditions"].as_array_mut().into_iter().flatten() {
            if matches!(condition["type"].as_str(), Some("Ready" | "ContainersReady")) {
                condition["status"] = word.into();
                condition["lastTransitionTime"] = now.clone();
            }
        }
        update(world, &pod, "status")?;
    }
    Ok(())
}

/// There are so many nodes.
pub(crate) fn nodes(world: &mut World, wanted: usize) -> Result<(), String> {
    let known: Vec<Value> = world.list(resource("Node")?, "").map(|node| Value::clone(node)).collect();
    for number in 0..wanted.max(known.len()) {
        let name = format!("node-{number}");
        let there = known.iter().find(|node| node["metadata"]["name"] == name);
        let done = match there {
            None => apply(world, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
                .and_then(|()| node(world, &name, "True")),
            Some(node) if number >= wanted => world.delete(node).map_err(|refusal| format!("{refusal:?}")),
            Some(_) => Ok(()),
        };
        done?;
    }
    Ok(())
}

/// What is known of a node.
pub(crate) fn node(world: &mut World, name: &str, ready: &str) -> Result<(), String> {
    let found = world.get(resource("Node")?, "", name).ok_or_else(|| format!("there is no node {name}"))?;
    let mut node = Value::clone(found);
    node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
    update(world, &node, "status")
}

/// What the agent of a node is like.
pub(crate) fn agent(world: &mut World, name: &str, like: &str) -> Result<(), String> {
    let found = world.get(resource("Node")?, "", name).ok_or_else(|| format!("there is no node {name}"))?;
    let mut node = Value::clone(found);
    node["metadata"]["annotations"][LIKE] = like.into();
    update(world, &node, "")
}

/// A node gets a label.
pub(crate) fn label(world: &mut World, name: &str, key: &str, value: &str) -> Result<(), String> {
    let found = world.get(resource("Node")?, "", name).ok_or_else(|| format!("there is no node {name}"))?;
    let mut node = Value::clone(found);
    node["metadata"]["labels"][key] = value.into();
    update(world, &node, "")
}

/// What each node is told, by the text of its file `version`, and what it says of that.
fn configs(world: &World, out: &mut String) {
    for config in world.list(resource("NodeConfig").unwrap(), NAMESPACE) {
        let content = config["spec"]["content"].as_str().unwrap_or_default();
        let map = world.get(resource("ConfigMap").unwrap(), NAMESPACE, content);
        let version = map.and_then(|map| map["binaryData"]["version"].as_str());
        let version =
            version.map_or("no version".to_owned(), |text| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap());
        let status = &config["status"];
        let about = ["digest", "attempt"].iter().all(|field| status[*field] == config["spec"][*field])
            && status["observedGeneration"] == config["metadata"]["generation"];
        let state = status["state"].as_str().unwrap_or("nothing said");
        let state = if about { state.to_owned() } else { format!("{state} of something else") };
        writeln!(out, "{}: {version}, {state}", config["metadata"]["name"].as_str().unwrap_or_default()).unwrap();
    }
}

/// Whether the gateway's listeners let in routes of the namespace.
pub(crate) fn listeners(world: &mut World, open: bool) -> Result<(), String> {
    let found = world.get(resource("Namespace")?, "", NAMESPACE).ok_or("there is no namespace")?;
    let mut namespace = Value::clone(found);
    namespace["metadata"]["labels"]["testbed/no-routes"] = if open { Value::Null } else { "".into() };
    update(world, &namespace, "")
}

/// A pod of a DaemonSet dies.
pub(crate) fn kill(world: &mut World, node: &str) -> Result<(), String> {
    let mut pods = world.list(resource("Pod")?, NAMESPACE).map(|pod| Value::clone(pod));
    let pod = pods.find(|pod| pod["spec"]["nodeName"] == node && !is_numbered(pod)).ok_or("there is no such pod")?;
    drop(pods);
    world.delete(&pod).map_err(|refusal| format!("{refusal:?}"))
}

/// What the brake says from now on.
pub(crate) fn brake(world: &mut World, key: &str, word: &str) -> Result<(), String> {
    let name = "tidegate-brake";
    let there = world.get(resource("ConfigMap")?, "tidegate", name).map(|found| Value::clone(found));
    let mut map = there.clone().unwrap_or_else(|| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "tidegate"}, "data": {}})
    });
    let data = map["data"].as_object_mut().ok_or("the brake has no data")?;
    match word {
        "off" => drop(data.remove(key)),
        word => drop(data.insert(key.to_owned(), word.into())),
    }
    match there {
        Some(_) => update(world, &map, ""),
        None => world.create("v1", "ConfigMap", HAND, map).map(drop).map_err(|refusal| format!("{refusal:?}")),
    }
}
