//! The API server, as the agent needs it: the one NodeConfig is watched and its status written, a content is read by its name, a taint is taken
//! away. At rest nothing is asked for but the watch, which API servers end after some minutes.
//!
//! What an answer means is told by its code, never by its text (N-23).

use crate::content::{self, ContentFiles};
use crate::decide::StepOutcome;
use crate::probes::Reached;
use crate::report::{NodeReport, NodeSeen};
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_controller::cluster::chance::random;
use tidegate_controller::record::text::{plain, with_causes};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a request may take that is no watch.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause after something failed, and the longest. With as many agents as nodes they are not all of one length.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// A pause that doubles.
#[derive(Debug)]
pub(crate) struct Pause {
    next: Duration,
    /// Nothing before this.
    pub(crate) until: Instant,
}

impl Default for Pause {
    fn default() -> Self {
        Self { next: PAUSES.0, until: Instant::now() }
    }
}

impl Pause {
    /// Something failed: the next pause is longer.
    pub(crate) fn begin(&mut self) {
        let part = f64::from(u32::try_from(random() % 1_000).unwrap_or(0)) / 1_000.0;
        self.until = Instant::now() + self.next.mul_f64(0.5 + part / 2.0);
        self.next = (self.next * 2).min(PAUSES.1);
    }
}

/// A content as it was asked for.
pub(crate) enum Fetched {
    Files(ContentFiles),
    /// It is not there, or is none.
    Missing(String),
    Away,
}

/// The way to the API server.
pub struct Edge {
    configs: Api<DynamicObject>,
    contents: Api<DynamicObject>,
    nodes: Api<DynamicObject>,
    client: kube::Client,
    node: String,
    /// The version that is known; none if all is to be looked up.
    version: Option<String>,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>>,
    opened: Instant,
    pause: Pause,
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

impl Edge {
    /// The way to the NodeConfig of this node in that namespace. Nothing is asked yet.
    #[must_use]
    pub fn new(client: kube::Client, namespace: &str, node: &str) -> Self {
        let configs = resource("tidegate.io", "v1alpha1", "NodeConfig", "nodeconfigs");
        Self {
            configs: Api::namespaced_with(client.clone(), namespace, &configs),
            contents: Api::namespaced_with(client.clone(), namespace, &resource("", "v1", "ConfigMap", "configmaps")),
            nodes: Api::all_with(client.clone(), &resource("", "v1", "Node", "nodes")),
            client,
            node: node.to_owned(),
            version: None,
            events: None,
            opened: Instant::now(),
            pause: Pause::default(),
        }
    }

    /// Waits until the NodeConfig is another, or is looked up anew. May be dropped at any time.
    pub async fn next(&mut self) -> Option<NodeSeen> {
        loop {
            sleep_until(self.pause.until).await;
            let seen = match (&mut self.events, &self.version) {
                (Some(events), _) => match events.next().await {
                    Some(event) => self.event(event),
                    // It is opened again where it left off, but not all the time.
                    None => {
                        self.events = None;
                        if self.opened.elapsed() < PATIENCE {
                            self.pause.begin();
                        }
                        continue;
                    }
                },
                (None, Some(version)) => {
                    let only = WatchParams::default().fields(&format!("metadata.name={}", self.node));
                    match within(self.configs.watch(&only, version)).await {
                        Ok(events) => (self.events, self.opened) = (Some(events.boxed()), Instant::now()),
                        Err(why) => self.lost(&why),
                    }
                    continue;
                }
                (None, None) => self.list().await,
            };
            if let Some(seen) = seen {
                return seen;
            }
        }
    }

    /// Looks everything up again before anything else.
    pub fn look_again(&mut self) {
        (self.version, self.events) = (None, None);
    }

    async fn list(&mut self) -> Option<Option<NodeSeen>> {
        let only = ListParams::default().fields(&format!("metadata.name={}", self.node));
        match within(self.configs.list(&only)).await {
            Ok(list) => {
                self.version = list.metadata.resource_version.filter(|version| !version.is_empty());
                self.pause = Pause::default();
                Some(list.items.first().and_then(seen))
            }
            Err(why) => {
                self.lost(&why);
                None
            }
        }
    }

    fn event(&mut self, event: kube::Result<WatchEvent<DynamicObject>>) -> Option<Option<NodeSeen>> {
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                self.version.clone_from(&object.metadata.resource_version);
                self.pause = Pause::default();
                Some(seen(&object))
            }
            Ok(WatchEvent::Deleted(object)) => {
                self.version = object.metadata.resource_version;
                Some(None)
            }
            Ok(WatchEvent::Bookmark(mark)) => {
                self.version = Some(mark.metadata.resource_version);
                None
            }
            Ok(WatchEvent::Error(status)) => {
                self.lost(&status.message);
                // What is too old is looked up anew.
                self.version = None;
                None
            }
            Err(error) => {
                self.lost(&why(&error));
                None
            }
        }
    }

    fn lost(&mut self, why: &str) {
        tracing::warn!(why = plain(why), "the NodeConfig cannot be watched now");
        self.events = None;
        // Whatever has become of the version, a list is never wrong.
        self.version = None;
        self.pause.begin();
    }

    /// Writes the status, at the version that was read and no other.
    pub(crate) async fn tell(&mut self, version: &str, report: &NodeReport) -> StepOutcome {
        let patch = json!({"metadata": {"resourceVersion": version}, "status": report});
        let (settings, patch) = (PatchParams::default(), Patch::Merge(patch));
        let told = timeout(PATIENCE, self.configs.patch_status(&self.node, &settings, &patch));
        match told.await {
            Ok(Ok(object)) => match seen(&object) {
                Some(node) => StepOutcome::Heard(node),
                None => StepOutcome::Stale,
            },
            // Conflict, or gone.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                self.look_again();
                StepOutcome::Stale
            }
            Ok(Err(error)) => {
                tracing::warn!(why = why(&error), "the status cannot be written now");
                StepOutcome::Away
            }
            Err(_) => StepOutcome::Away,
        }
    }

    /// Reads a content.
    pub(crate) async fn content(&self, name: &str) -> Fetched {
        match timeout(PATIENCE, self.contents.get(name)).await {
            Ok(Ok(object)) => match content::of_config_map(&object.data) {
                Ok(files) => Fetched::Files(files),
                Err(why) => Fetched::Missing(format!("DigestMismatch: ConfigMap {name}: {why}")),
            },
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                Fetched::Missing(format!("ContentMissing: there is no ConfigMap {name}"))
            }
            Ok(Err(error)) => {
                tracing::warn!(why = why(&error), name, "the content cannot be read now");
                Fetched::Away
            }
            Err(_) => Fetched::Away,
        }
    }

    /// Takes a taint away from the node that this agent runs on, if it is there.
    ///
    /// # Errors
    /// When that cannot be done now: it is tried again, and nothing else depends on it (N-30).
    pub async fn take_taint(&self, key: &str) -> Result<(), String> {
        let node = within(self.nodes.get(&self.node)).await?;
        let taints = node.data.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
        let others: Vec<&Value> = taints.iter().filter(|taint| taint["key"] != key).collect();
        if others.len() == taints.len() {
            return Ok(());
        }
        // Somebody else's taint is never lost: the list has to be the one that was read.
        let patch = json!([
            {"op": "test", "path": "/spec/taints", "value": taints},
            {"op": "replace", "path": "/spec/taints", "value": others},
        ]);
        let patch = serde_json::from_value(patch).map_err(|error| error.to_string())?;
        let (settings, patch) = (PatchParams::default(), Patch::Json::<()>(patch));
        let patched = self.nodes.patch(&self.node, &settings, &patch);
        within(patched).await.map(drop)
    }
}

impl Reached for Edge {
    async fn reached(&self) -> Result<(), String> {
        match self.client.apiserver_version().await {
            // Any answer is one.
            Ok(_) | Err(kube::Error::Api(_)) => Ok(()),
            Err(error) => Err(why(&error)),
        }
    }
}

async fn within<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| why(&error)),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// What the API server has said, or why it has not.
fn why(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return plain(&status.message);
    }
    with_causes(error)
}

fn seen(object: &DynamicObject) -> Option<NodeSeen> {
    let read = serde_json::to_value(object).map_err(|error| error.to_string()).and_then(|value| NodeSeen::read(&value));
    read.map_err(|why| tracing::error!(why, "the NodeConfig is none")).ok()
}
