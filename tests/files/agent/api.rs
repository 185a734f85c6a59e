//! An API server with one NodeConfig, one Node and some ConfigMaps: what the agent asks, and no more.

use axum::body::Body as Answered;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tidegate::agent::content::{ContentDigest, ContentFiles};
use tokio::sync::watch;

pub(super) const NODE: &str = "worker-1";

/// Clones are the same server.
#[derive(Clone)]
pub(super) struct Api {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    version: u64,
    config: Value,
    node: Value,
    maps: BTreeMap<String, Value>,
    asked: Vec<String>,
    /// It cannot be reached while this file is there.
    cut: Option<PathBuf>,
    stale: usize,
    nodes_are_forbidden: bool,
}

pub(super) fn files(all: &[(&str, &str)]) -> ContentFiles {
    all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

impl Api {
    pub(super) fn new() -> Self {
        let taints = json!([{"key": "fresh", "effect": "NoSchedule"}, {"key": "other", "effect": "NoSchedule"}]);
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"taints": taints}});
        let state = State { node, version: 1, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), changed: watch::Sender::new(0) }
    }

    pub(super) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(io::Error::other)?;
                api.answer(&head.method, head.uri.path(), head.uri.query().unwrap_or_default(), &body)
            }
        });
        kube::Client::new(service, "network")
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.state.lock().unwrap());
        self.changed.send_modify(|count| *count += 1);
        done
    }

    /// What nobody can tell from a change of the network.
    pub(super) fn cut_by(&self, file: PathBuf) {
        self.change(|state| state.cut = Some(file));
    }

    /// Each write of a status meets a newer version so often.
    pub(super) fn be_stale(&self, times: usize) {
        self.change(|state| state.stale = times);
    }

    pub(super) fn forbid_nodes(&self, forbidden: bool) {
        self.change(|state| state.nodes_are_forbidden = forbidden);
    }

    /// Asks the node for these files; the ConfigMap holds `held`.
    pub(super) fn ask_with(&self, wanted: &ContentFiles, held: &ContentFiles, attempt: u64) {
        let digest = ContentDigest::of(wanted);
        let name = format!("fabric-{}", &digest.as_str()[..16]);
        let data: BTreeMap<_, _> = held.iter().map(|(name, bytes)| (name, BASE64_STANDARD.encode(bytes))).collect();
        let metadata = json!({"name": name, "namespace": "network"});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data, "immutable": true});
        self.change(|state| {
            state.version += 1;
            state.maps.insert(name.clone(), map);
            let generation = state.config["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            let status = state.config["status"].take();
            let spec = json!({"content": name, "digest": digest, "revision": "r", "attempt": attempt});
            let metadata = json!({
                "name": NODE, "namespace": "network", "generation": generation, "resourceVersion": state.version.to_string(),
            });
            state.config = json!({"apiVersion": "tidegate.io/v1alpha1", "kind": "NodeConfig", "metadata": metadata, "spec": spec});
            if !status.is_null() {
                state.config["status"] = status;
            }
        });
    }

    pub(super) fn ask(&self, wanted: &ContentFiles) {
        self.ask_with(wanted, wanted, 0);
    }

    /// State and message of the status, if it is about what is asked.
    pub(super) fn said(&self) -> (String, String) {
        let state = self.state.lock().unwrap();
        let (config, text) = (&state.config, |value: &Value| value.as_str().unwrap_or_default().to_owned());
        let status = &config["status"];
        let same = status["digest"] == config["spec"]["digest"]
            && status["attempt"] == config["spec"]["attempt"]
            && status["observedGeneration"] == config["metadata"]["generation"];
        if same { (text(&status["state"]), text(&status["message"])) } else { (String::new(), String::new()) }
    }

    pub(super) fn taints(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let taints = state.node["spec"]["taints"].as_array().unwrap().iter();
        taints.map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }

    /// Waits until that holds.
    pub(super) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changes = self.changed.subscribe();
        while !holds(self) {
            changes.changed().await.unwrap();
        }
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> io::Result<Response<Answered>> {
        let what = path.rsplit('/').next().unwrap_or_default();
        let watches = query.contains("watch=true");
        let word = if watches { "WATCH" } else { method.as_str() };
        if self.state.lock().unwrap().cut.as_ref().is_some_and(|file| file.exists()) {
            self.change(|state| state.asked.push(format!("{word} in vain")));
            return Err(io::Error::other("no route to host"));
        }
        let answer = self.change(|state| {
            state.asked.push(format!("{word} {what}"));
            match (method, path) {
                (&Method::GET, "/apis/tidegate.io/v1alpha1/namespaces/network/nodeconfigs") => {
                    assert!(query.contains(&format!("fieldSelector=metadata.name%3D{NODE}")), "{query}");
                    let items: Vec<_> =
                        Some(state.config.clone()).into_iter().filter(|config| !config.is_null()).collect();
                    let version = state.version.to_string();
                    Ok(json!({"kind": "NodeConfigList", "metadata": {"resourceVersion": version}, "items": items}))
                }
                (&Method::PATCH, "/apis/tidegate.io/v1alpha1/namespaces/network/nodeconfigs/worker-1/status") => {
                    state.say(&serde_json::from_slice(body).unwrap())
                }
                (_, "/api/v1/nodes/worker-1") if state.nodes_are_forbidden => Err((403, "Forbidden")),
                (&Method::GET, "/api/v1/nodes/worker-1") => Ok(state.node.clone()),
                (&Method::PATCH, "/api/v1/nodes/worker-1") => {
                    let patch: Value = serde_json::from_slice(body).unwrap();
                    assert_eq!(patch[0]["value"], state.node["spec"]["taints"], "it is tested first");
                    state.node["spec"]["taints"] = patch[1]["value"].clone();
                    Ok(state.node.clone())
                }
                (&Method::GET, "/version") => Err((403, "Forbidden")),
                _ => {
                    match state.maps.get(what).filter(|_| path.starts_with("/api/v1/namespaces/network/configmaps/")) {
                        Some(map) => Ok(map.clone()),
                        None => Err((404, "NotFound")),
                    }
                }
            }
        });
        Ok(match answer {
            Ok(_) if watches => Response::new(self.events(query)),
            Ok(value) => Response::new(Answered::from(value.to_string())),
            Err((code, reason)) => {
                let status =
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"});
                Response::builder().status(code).body(Answered::from(status.to_string())).unwrap()
            }
        })
    }

    /// A watch, which ends when the server cannot be reached any more.
    fn events(&self, query: &str) -> Answered {
        let from = query.split("resourceVersion=").nth(1).and_then(|rest| rest.split('&').next()).unwrap();
        let from: u64 = from.parse().unwrap();
        let (api, changes) = (self.clone(), self.changed.subscribe());
        Answered::from_stream(stream::unfold((api, changes, from), |(api, mut changes, from)| async move {
            loop {
                {
                    let state = api.state.lock().unwrap();
                    if state.cut.as_ref().is_some_and(|file| file.exists()) {
                        return None;
                    }
                    if state.version > from && !state.config.is_null() {
                        let event = format!("{}\n", json!({"type": "MODIFIED", "object": state.config}));
                        let next = (api.clone(), changes.clone(), state.version);
                        return Some((Ok::<_, io::Error>(Bytes::from(event)), next));
                    }
                }
                changes.changed().await.ok()?;
            }
        }))
    }
}

impl State {
    fn say(&mut self, patch: &Value) -> Result<Value, (u16, &'static str)> {
        if self.stale > 0 {
            self.stale -= 1;
            self.version += 1;
            self.config["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        assert!(patch["metadata"]["resourceVersion"].is_string(), "a status is written at a version");
        if patch["metadata"]["resourceVersion"] != self.config["metadata"]["resourceVersion"] {
            return Err((409, "Conflict"));
        }
        self.version += 1;
        self.config["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.config["status"] = patch["status"].clone();
        Ok(self.config.clone())
    }
}
