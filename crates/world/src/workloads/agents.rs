//! The agent of each node: it takes the files that its NodeConfig names, and says what came of it, in the order of the real one: it says that
//! it begins, tries, and says how that went.
//!
//! What befalls it stands in the files: a file `fails` or `kills` names nodes, or `all`. `fails` is told and taken back; with `kills` nobody
//! hears of the node any more. An annotation of the Node says what its agent is like: `slow`, `silent`, or `lies`, which says without having
//! looked that it has what it is told.

use super::{Due, all, text, time, write_status};
use crate::kube_api::World;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The annotation of a Node that says what its agent is like.
pub const LIKE: &str = "world/agent";
/// The name under which agents write.
const MANAGER: &str = "tidegate-agent";
/// How long it takes until a node has its files.
const TAKES: TimeDelta = TimeDelta::seconds(2);
/// The same where its agent is slow.
const TAKES_SLOWLY: TimeDelta = TimeDelta::seconds(90);

pub(super) fn run(world: &mut World, due: &mut Due) {
    let nodes = all(world, "v1", "Node");
    for config in all(world, "tidegate.io/v1alpha1", "NodeConfig") {
        let name = text(&config, "/metadata/name");
        let Some(node) = nodes.iter().find(|node| text(node, "/metadata/name") == name) else { continue };
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let ready = conditions.filter(|one| one["type"] == "Ready").any(|one| one["status"] == "True");
        let like = node["metadata"]["annotations"][LIKE].as_str().unwrap_or_default();
        if ready && like != "silent" {
            act(world, due, &config, (node, like));
        }
    }
}

fn act(world: &mut World, due: &mut Due, config: &Value, (node, like): (&Value, &str)) {
    let (spec, status) = (&config["spec"], &config["status"]);
    let about = ["digest", "attempt"].iter().all(|field| status[*field] == spec[*field])
        && status["observedGeneration"] == config["metadata"]["generation"];
    let state = status["state"].as_str().unwrap_or_default();
    // What was refused is tried again, once it is there.
    let again = about && state == "Refused";
    if about && state != "Started" && !again {
        return;
    }
    if like == "lies" {
        if state != "Applied" {
            let old = json!({"state": "Applied", "digest": spec["previous"]["digest"], "attempt": spec["attempt"],
                "observedGeneration": 1, "started": stamp(world), "message": ""});
            write_status(world, config, old, MANAGER);
        }
        return;
    }
    let files = files(world, config);
    let say = |world: &mut World, state: &str, message: &str, started: Value| {
        let status = json!({"state": state, "digest": spec["digest"], "attempt": spec["attempt"],
            "observedGeneration": config["metadata"]["generation"], "started": started, "message": message});
        write_status(world, config, status, MANAGER);
    };
    let files = match files {
        Ok(files) => files,
        Err(_) if again => return,
        Err(why) => {
            let started = stamp(world);
            return say(world, "Refused", why, started);
        }
    };
    if !about || again {
        let started = stamp(world);
        return say(world, "Started", "", started);
    }
    let takes = if like == "slow" { TAKES_SLOWLY } else { TAKES };
    let end = time(&status["started"]).map_or(world.now(), |started| started + takes);
    if end > world.now() {
        due.at(end);
        return;
    }
    let name = text(config, "/metadata/name");
    let befalls = |what: &str| {
        let named = files.get(what).map(String::as_str).unwrap_or_default();
        named.split_whitespace().any(|one| one == name || one == "all")
    };
    if befalls("kills") {
        let mut node = node.clone();
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
        drop(world.update(node, "status", MANAGER));
    } else if befalls("fails") {
        say(world, "Failed", "the gateway cannot be reached", status["started"].clone());
    } else {
        say(world, "Applied", "", status["started"].clone());
    }
}

fn stamp(world: &World) -> Value {
    world.now().to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

/// The files of a content, if its bytes are what its digest says.
fn files(world: &World, config: &Value) -> Result<BTreeMap<String, String>, &'static str> {
    let (name, namespace) = (text(config, "/spec/content"), text(config, "/metadata/namespace"));
    let maps = all(world, "v1", "ConfigMap");
    let is = |map: &&std::sync::Arc<Value>| {
        text(map, "/metadata/name") == name && text(map, "/metadata/namespace") == namespace
    };
    let map = maps.iter().find(is).ok_or("ContentMissing")?;
    let (mut files, mut hash) = (BTreeMap::new(), Sha256::new());
    for (file, bytes) in map["binaryData"].as_object().into_iter().flatten() {
        let bytes = STANDARD.decode(bytes.as_str().unwrap_or_default()).map_err(|_| "DigestMismatch")?;
        files.insert(file.clone(), bytes);
    }
    for part in files.iter().flat_map(|(file, bytes)| [file.as_bytes(), bytes]) {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if digest != text(config, "/spec/digest") {
        return Err("DigestMismatch");
    }
    Ok(files.into_iter().map(|(file, bytes)| (file, String::from_utf8_lossy(&bytes).into_owned())).collect())
}
