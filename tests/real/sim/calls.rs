//! The same calls against the world in a process and against a real API server, answer by answer.
//!
//! Stories are lines: a verb, a path, a body as YAML. What differs between two runs of the same server (uids, versions,
//! times, addresses) is numbered in order of appearance, so that equality within a story is compared too. A difference
//! is a failure, or stands in [`KNOWN`] with its reason.

mod kinds;
mod table;

use self::kinds::KINDS;
use self::table::{FORGOTTEN, KNOWN, STORIES, Story};
use crate::support::cluster::{Bed, CALM};
use crate::support::gateway::Mode;
use futures::{AsyncBufReadExt, TryStreamExt};
use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use tidegate::world::kube_api::{KubeApi, World};

/// How long an answer, or the next event of a watch, may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// One line of a story.
struct Call {
    method: &'static str,
    /// How many events are awaited, if it is a watch.
    events: Option<usize>,
    media: &'static str,
    accept: &'static str,
    path: String,
    body: String,
}

impl Call {
    fn parse(line: &str) -> Self {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let (method, media, accept) = match verb {
            "GET" | "WATCH" => ("GET", "", "application/json"),
            "META" => ("GET", "", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            "METAS" => ("GET", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            "POST" => ("POST", "application/json", "application/json"),
            "PUT" => ("PUT", "application/json", "application/json"),
            "DELETE" => ("DELETE", "application/json", "application/json"),
            "MERGE" => ("PATCH", "application/merge-patch+json", "application/json"),
            "JSON" => ("PATCH", "application/json-patch+json", "application/json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml", "application/json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json", "application/json"),
            "ODD" => ("PATCH", "application/json", "application/json"),
            "TEXT" => ("POST", "text/plain", "application/json"),
            other => panic!("{other}: no verb"),
        };
        let (events, path, body) = if verb == "WATCH" {
            (Some(path.parse().unwrap()), body.to_owned(), String::new())
        } else {
            (None, path.to_owned(), body.trim().to_owned())
        };
        Self { method, events, media, accept, path, body }
    }

    /// The path, with short names written out.
    fn uri(&self, namespace: &str) -> String {
        if self.path.starts_with('/') {
            return self.path.clone();
        }
        let end = self.path.find(['/', '?']).unwrap_or(self.path.len());
        let (short, rest) = self.path.split_at(end);
        let place = match short {
            "cm" => "/api/v1|configmaps",
            "sa" => "/api/v1|serviceaccounts",
            "svc" => "/api/v1|services",
            "pod" => "/api/v1|pods",
            "deploy" => "/apis/apps/v1|deployments",
            "rs" => "/apis/apps/v1|replicasets",
            "lease" => "/apis/coordination.k8s.io/v1|leases",
            "route" => "/apis/gateway.networking.k8s.io/v1|httproutes",
            "hpa" => "/apis/autoscaling/v2|horizontalpodautoscalers",
            "pdb" => "/apis/policy/v1|poddisruptionbudgets",
            "np" => "/apis/networking.k8s.io/v1|networkpolicies",
            "slice" => "/apis/discovery.k8s.io/v1|endpointslices",
            "event" => "/apis/events.k8s.io/v1|events",
            other => panic!("{other}: no short name"),
        };
        let (group, plural) = place.split_once('|').unwrap();
        format!("{group}/namespaces/{namespace}/{plural}{rest}")
    }
}

/// One of the two servers.
struct Side {
    client: Client,
    answers: Vec<Value>,
    names: BTreeMap<String, String>,
}

impl Side {
    fn new(client: &Client) -> Self {
        Self { client: client.clone(), answers: Vec::new(), names: BTreeMap::new() }
    }

    /// Writes what earlier answers said in place of `$rv1`, `$uid1`, `$next1`, between these signs.
    fn filled(&self, text: &str, namespace: &str, quote: &str) -> String {
        let mut text = text.replace("$NS", namespace);
        for (number, answer) in self.answers.iter().enumerate().rev() {
            for (word, pointer) in [("rv", "resourceVersion"), ("uid", "uid"), ("next", "continue")] {
                let found = answer.pointer(&format!("/body/metadata/{pointer}")).and_then(Value::as_str);
                let found = format!("{quote}{}{quote}", found.unwrap_or("none"));
                text = text.replace(&format!("${word}{}", number + 1), &found);
            }
        }
        text
    }

    /// Asks, and returns the answer with all that cannot be equal numbered.
    async fn ask(&mut self, call: &Call, namespace: &str) -> Value {
        let uri = self.filled(&call.uri(namespace), namespace, "");
        let body = self.filled(&call.body, namespace, "'");
        let body = match body.strip_prefix("raw:") {
            Some(raw) => raw.to_owned(),
            None if body.is_empty() => String::new(),
            None => serde_yaml::from_str::<Value>(&body).unwrap_or_else(|e| panic!("{body}: {e}")).to_string(),
        };
        let mut request = Request::builder().method(call.method).uri(uri).header(header::ACCEPT, call.accept);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.media);
        }
        let request = request.body(Body::from(body.into_bytes())).unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.exchange(request, call.events)).await;
        let answer = answer.unwrap_or_else(|_| json!({"code": "no answer in time"}));
        let mut shown = answer.clone();
        self.number(&mut shown, "");
        self.answers.push(answer);
        shown
    }

    async fn exchange(&self, request: Request<Body>, events: Option<usize>) -> Value {
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return json!({"error": error.to_string()}),
        };
        let code = response.status().as_u16();
        match events.filter(|_| code == 200) {
            Some(events) => {
                let bytes = response.into_body().into_data_stream().map_err(std::io::Error::other);
                let mut lines = bytes.into_async_read().lines();
                let mut seen = Vec::new();
                while seen.len() < events {
                    let next = tokio::time::timeout(PATIENCE, lines.try_next()).await;
                    let Ok(Ok(Some(line))) = next else { break };
                    seen.push(serde_json::from_str::<Value>(&line).unwrap());
                }
                json!({"code": code, "events": seen})
            }
            None => {
                let bytes = response.into_body().collect().await.unwrap().to_bytes();
                let body: Result<Value, _> = serde_json::from_slice(&bytes);
                let body = body.unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
                json!({"code": code, "body": body})
            }
        }
    }

    fn name(&mut self, what: &str, text: &str) -> String {
        let number = self.names.values().filter(|name| name.starts_with(&format!("<{what} "))).count() + 1;
        self.names.entry(text.to_owned()).or_insert_with(|| format!("<{what} {number}>")).clone()
    }

    fn number(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => {
                // Versions of lists and bookmarks are the server's own, which others move on too.
                let list = fields.contains_key("items");
                if fields.get("type").is_some_and(|kind| kind == "BOOKMARK") {
                    fields["object"]["metadata"]["resourceVersion"] = "<now>".into();
                }
                let prefix = fields.get("generateName").and_then(Value::as_str).map(str::to_owned);
                if let (Some(prefix), Some(name)) = (prefix, fields.get_mut("name")) {
                    *name = format!("{prefix}<generated>").into();
                }
                for (key, value) in fields.iter_mut() {
                    match &**key {
                        "storageVersionHash" => *value = Value::Null,
                        "metadata" if list => {
                            if let Some(version) = value.get_mut("resourceVersion") {
                                *version = "<now>".into();
                            }
                            if value.get("continue").is_some_and(|next| next != "") {
                                value["continue"] = "<next>".into();
                            }
                        }
                        // The server puts them in the order of their seconds, and one may end between two calls.
                        "managedFields" => {
                            if let Some(entries) = value.as_array_mut() {
                                let who = |entry: &Value| {
                                    ["subresource", "manager", "operation"].map(|of| entry[of].to_string())
                                };
                                entries.sort_by_key(who);
                            }
                            self.number(value, key);
                        }
                        _ => self.number(value, key),
                    }
                }
                fields.shift_remove("storageVersionHash");
            }
            Value::Array(items) => {
                for item in items {
                    self.number(item, key);
                }
            }
            Value::String(text) => {
                let named = match key {
                    "uid" if !text.is_empty() => self.name("uid", text),
                    "resourceVersion" if text.parse::<u64>().is_ok() => self.name("version", text),
                    "clusterIP" | "clusterIPs" if text != "None" => "<address>".to_owned(),
                    "message" => self.renamed(text),
                    _ if is_time(text) => "<time>".to_owned(),
                    _ => return,
                };
                *text = named;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A message with the uids and versions that were seen under their numbers.
    fn renamed(&self, text: &str) -> String {
        let mut shown = String::new();
        for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            match self.names.get(word) {
                Some(name) => {
                    shown.push_str(name);
                    shown.push_str(&part[word.len()..]);
                }
                None => shown.push_str(part),
            }
        }
        // What the server itself counts to cannot be equal, nor up to where it has forgotten: others write meanwhile.
        if let Some((before, _)) = shown.split_once(", current: ") {
            return format!("{before}, current: <now>");
        }
        match shown.split_once(" (").filter(|_| shown.starts_with("too old resource version: ")) {
            Some((before, _)) => format!("{before} (<now>)"),
            None => shown,
        }
    }
}

/// Whether it is a time that a server wrote: those of the stories are of another year.
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T' && !text.starts_with("2001")
}

async fn client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Plays a story on both sides; returns the differences that are not known, and those that are but are none.
async fn play(story: &Story, real: &Client, sim: &Client, namespace: &str) -> (usize, Vec<String>) {
    let lines: Vec<&str> = story.lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (mut left, mut right) = (Side::new(real), Side::new(sim));
    let mut differences = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let call = Call::parse(line);
        let (expected, found) = (left.ask(&call, namespace).await, right.ask(&call, namespace).await);
        let known = KNOWN.iter().find(|known| known.0 == story.title && known.1 == number + 1);
        let differs = expected != found;
        if differs == known.is_some() {
            continue;
        }
        let mut text = format!("{}, line {}: {line}\n", story.title, number + 1);
        match known {
            Some((_, _, why)) => writeln!(text, "  is known to differ, but does not: {why}").unwrap(),
            None => writeln!(text, "  real: {expected}\n  sim:  {found}").unwrap(),
        }
        differences.push(text);
    }
    (lines.len(), differences)
}

/// What is answered to those who come from before the history that is known.
async fn forgotten(bed: &Bed, real: &Client, world: &KubeApi, sim: &Client) -> (usize, Vec<String>) {
    let (mut left, mut right) = (Side::new(real), Side::new(sim));
    let mut differences = Vec::new();
    let lines: Vec<&str> = FORGOTTEN.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for (number, line) in lines.iter().enumerate() {
        if *line == "FORGET" {
            bed.fault(&["expire"]).await;
            world.change(World::compact);
        }
        let call = Call::parse(if *line == "FORGET" { "GET cm/f-a" } else { line });
        let (expected, found) = (left.ask(&call, "story-0").await, right.ask(&call, "story-0").await);
        let known = KNOWN.iter().any(|known| known.0 == "what is forgotten" && known.1 == number + 1);
        if (expected == found) == known {
            differences.push(format!("what is forgotten: {line}\n  real: {expected}\n  sim:  {found}\n"));
        }
    }
    (lines.len(), differences)
}

#[tokio::test]
async fn the_world_answers_as_the_real_api_server_does() {
    // What controllers do is not what is compared here.
    let (bed, calm) = (Bed::quiet().await, CALM.read().await);
    let real = client(&bed.kubeconfig()).await;
    let world = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    let sim = Client::new(world.clone(), "default");
    let (mut calls, mut differences) = (0, Vec::new());
    for (number, story) in STORIES.iter().chain(KINDS).enumerate() {
        let namespace = format!("story-{number}");
        bed.gateway.modes.set(&namespace, Mode::Off);
        for client in [&real, &sim] {
            let body = json!({"metadata": {"name": namespace}}).to_string();
            let request = Request::post("/api/v1/namespaces").header(header::CONTENT_TYPE, "application/json");
            client.send(request.body(Body::from(body.into_bytes())).unwrap()).await.unwrap();
        }
        let (lines, found) = play(story, &real, &sim, &namespace).await;
        calls += lines;
        differences.extend(found);
    }
    drop(calm);
    let _alone = CALM.write().await;
    let (lines, found) = forgotten(bed, &real, &world, &sim).await;
    calls += lines;
    differences.extend(found);
    println!("{calls} calls in {} stories; known to differ:", STORIES.len() + KINDS.len() + 1);
    for (title, line, why) in KNOWN {
        println!("  {title}, line {line}: {why}");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
