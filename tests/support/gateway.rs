//! Plays the gateway controller: watches HTTPRoutes and writes their status, as Contour or Envoy Gateway would.
//!
//! A route is Accepted when the gateway is willing, and its references are resolved when every Service that it names is
//! there. What the gateway is like can be changed for each namespace.

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// When it tries again to write a status that was not taken.
const AGAIN: Duration = Duration::from_secs(1);
/// The name under which it writes status.
pub(crate) const CONTROLLER: &str = "tidegate.io/testbed-gateway";

/// What a gateway is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// Takes every route at once.
    #[default]
    On,
    /// Says nothing.
    Off,
    /// Accepted=False.
    Refuse,
    /// Takes each generation of a route this long after it has seen it.
    Delayed(Duration),
    /// Speaks of the generation before.
    Stale,
}

/// What it is like, by namespace; [`Mode::On`] where nothing is said.
#[derive(Default, Clone)]
pub(crate) struct Modes {
    modes: Arc<Mutex<BTreeMap<String, Mode>>>,
    changed: Arc<Notify>,
}

impl Modes {
    /// Changes what it is like in a namespace.
    pub(crate) fn set(&self, namespace: &str, mode: Mode) {
        self.modes.lock().unwrap().insert(namespace.to_owned(), mode);
        self.changed.notify_one();
    }

    fn of(&self, namespace: &str) -> Mode {
        self.modes.lock().unwrap().get(namespace).copied().unwrap_or_default()
    }
}

/// A gateway in a thread of its own, so that it outlives the runtime of any one test.
pub(crate) struct Gateway {
    /// What it is like.
    pub(crate) modes: Modes,
    stop: CancellationToken,
}

impl Gateway {
    /// Starts one; it stops when dropped.
    pub(crate) fn start(kubeconfig: PathBuf) -> Self {
        let gateway = Self { modes: Modes::default(), stop: CancellationToken::new() };
        let (modes, stop) = (gateway.modes.clone(), gateway.stop.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(stop.run_until_cancelled(async {
                let client = super::kubeconfig::client(&kubeconfig).await;
                serve(client, modes).await;
            }));
        });
        gateway
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The kind HTTPRoute, for a client that has no type of it.
pub(crate) fn http_route() -> ApiResource {
    ApiResource {
        group: "gateway.networking.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "gateway.networking.k8s.io/v1".to_owned(),
        kind: "HTTPRoute".to_owned(),
        plural: "httproutes".to_owned(),
    }
}

/// Follows a watch to its end, and tells of each event.
async fn told(events: impl Stream + Send, changed: Arc<Notify>) {
    events.for_each(async |_| changed.notify_one()).await;
}

/// Serves the whole cluster, until dropped.
pub(crate) async fn serve(client: Client, modes: Modes) {
    let routes_api = Api::<DynamicObject>::all_with(client.clone(), &http_route());
    let writer = reflector::store::Writer::new(http_route());
    let routes = writer.as_reader();
    let route_events = watcher(routes_api, watcher::Config::default()).default_backoff().reflect(writer);
    let writer = reflector::store::Writer::default();
    let services = writer.as_reader();
    let services_api = Api::<Service>::all(client.clone());
    let service_events = watcher(services_api, watcher::Config::default()).default_backoff().reflect(writer);
    // What changes is read while statuses are written: a thousand routes that change at once are two or three looks at all of them. A
    // watch that breaks is begun again by the back-off; until then there is nothing to do.
    let mut watches = JoinSet::new();
    watches.spawn(told(route_events, Arc::clone(&modes.changed)));
    watches.spawn(told(service_events, Arc::clone(&modes.changed)));

    let mut waiting = Waiting::default();
    loop {
        let due = waiting.next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = modes.changed.notified() => {}
            () = tokio::time::sleep_until(due) => {}
        }
        waiting.next = None;
        let mut again = false;
        for route in routes.state() {
            let mode = modes.of(&route.namespace().unwrap_or_default());
            if mode == Mode::Off || !waiting.is_over(&route, mode) {
                continue;
            }
            if let Some(status) = status(&route, mode, &services) {
                let api = Api::<DynamicObject>::namespaced_with(
                    client.clone(),
                    &route.namespace().unwrap_or_default(),
                    &http_route(),
                );
                again |=
                    api.patch_status(&route.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.is_err();
            }
        }
        if again {
            // Of a route that is gone an event tells; of an API server that was away and gives no answer, nothing does.
            let soon = Instant::now() + AGAIN;
            waiting.next = Some(waiting.next.map_or(soon, |due| due.min(soon)));
        }
    }
}

/// Since when a delayed gateway knows each route's generation.
#[derive(Default)]
struct Waiting {
    since: BTreeMap<String, (i64, Instant)>,
    next: Option<Instant>,
}

impl Waiting {
    fn is_over(&mut self, route: &DynamicObject, mode: Mode) -> bool {
        let Mode::Delayed(delay) = mode else { return true };
        let generation = route.metadata.generation.unwrap_or_default();
        let now = Instant::now();
        let seen = self.since.entry(route.uid().unwrap_or_default()).or_insert((generation, now));
        if seen.0 != generation {
            *seen = (generation, now);
        }
        let due = seen.1 + delay;
        if due > now {
            self.next = Some(self.next.map_or(due, |n| n.min(due)));
        }
        due <= now
    }
}

/// The status to write, unless it is there already. What other controllers say of the route stays.
fn status(route: &DynamicObject, mode: Mode, services: &Store<Service>) -> Option<Value> {
    let generation = route.metadata.generation.unwrap_or_default();
    let observed = if mode == Mode::Stale { generation - 1 } else { generation };
    let accepted = match mode {
        Mode::Refuse => ("Accepted", "False", "UnsupportedValue", "refused by the test bed".to_owned()),
        Mode::On | Mode::Off | Mode::Delayed(_) | Mode::Stale => ("Accepted", "True", "Accepted", String::new()),
    };
    let resolved = match missing_service(route, services) {
        Some(name) => ("ResolvedRefs", "False", "BackendNotFound", format!("service {name} not found")),
        None => ("ResolvedRefs", "True", "ResolvedRefs", String::new()),
    };
    let empty = Vec::new();
    let old = route.data["status"]["parents"].as_array().unwrap_or(&empty);
    let mut parents: Vec<Value> = old.iter().filter(|p| p["controllerName"] != CONTROLLER).cloned().collect();
    for parent in route.data["spec"]["parentRefs"].as_array().unwrap_or(&empty) {
        let before = old.iter().find(|p| p["controllerName"] == CONTROLLER && p["parentRef"] == *parent);
        let conditions = [&accepted, &resolved].map(|(kind, status, reason, message)| {
            let last = before.and_then(|p| p["conditions"].as_array()?.iter().find(|c| c["type"] == *kind));
            let since = last.filter(|c| c["status"] == *status).map(|c| c["lastTransitionTime"].clone());
            json!({
                "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": observed,
                "lastTransitionTime": since.unwrap_or_else(|| json!(chrono::Utc::now().format("%FT%TZ").to_string())),
            })
        });
        parents.push(json!({"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}));
    }
    (*old != parents).then(|| json!({"status": {"parents": parents}}))
}

/// The first Service that the route names and that is not there.
fn missing_service(route: &DynamicObject, services: &Store<Service>) -> Option<String> {
    let namespace = route.namespace().unwrap_or_default();
    let rules = route.data["spec"]["rules"].as_array()?;
    let named = rules.iter().flat_map(|rule| rule["backendRefs"].as_array().into_iter().flatten());
    named.filter_map(|backend| backend["name"].as_str()).find_map(|name| {
        let reference = reflector::ObjectRef::new(name).within(&namespace);
        services.get(&reference).is_none().then(|| name.to_owned())
    })
}
