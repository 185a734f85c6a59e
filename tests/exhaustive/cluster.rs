//! Clusters as values with numbers, and what one write makes of one.
//!
//! A cluster is the world in a process with what runs in it played in the simplest way: pods are ready and routes are in
//! force at once. Writes go through the executor, the client and the classification that are shipped. What tells two
//! clusters apart and no plan can tell is made equal: resourceVersions and generations are counted anew, uids by name.

use crate::exhaustive::manifests::{NAME, NAMESPACE, id, instance, start, versions};
use crate::exhaustive::numbers::Numbers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate::cluster::client::Cluster as Client;
use tidegate::cluster::lease::{Lease, LeaseAnnotations, LeaseHeld, Timing};
use tidegate::cluster::watch::Watches;
use tidegate::manifest::object::{Kind, Object, ObjectRef};
use tidegate::plan::action::{Action, Verb};
use tidegate::plan::context::seq_of;
use tidegate::plan::evidence::Need;
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::evidence::{Collector, Providers};
use tidegate::reconcile::execute::{Executor, Lists, Ran};
use tidegate::reconcile::lead::{Lead, Renewer};
use tidegate::reconcile::record::Recorded;
use tidegate::report::metrics::Metrics;
use tidegate::workload::live::{Expects, LiveState, WriteOutcome};
use tidegate::world::kube_api::{ApiVerb as Asked, Fault, FaultVerdict, KubeApi, What, World};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// A cluster.
pub(crate) struct Cluster {
    /// As a controller reads it.
    pub(crate) live: Arc<LiveState>,
    /// How often each name was given to a new object, modulo [`UIDS`].
    made: BTreeMap<ObjectRef, u8>,
    /// The newest record that anything in it was written under.
    pub(crate) newest: u64,
    /// The share of people's requests that each version gets, in percent.
    pub(crate) reach: Vec<u8>,
}

/// How many uids objects of one name have in turn: more than anybody can be paused for, with the faults that can be afforded.
const UIDS: u8 = 4;

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// It was done.
    Done,
    /// It was not, and what was planned with it is void if it was a retreat.
    Void,
    /// It failed, or nobody knows.
    Failed,
}

/// What goes wrong with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mishap {
    None,
    /// It fails and has no effect.
    Before,
    /// It has its effect, and nobody is told.
    After,
}

/// All clusters that were met, and the way to write to them.
pub(crate) struct Clusters {
    met: Numbers<Cluster>,
    objects: Numbers<Arc<Object>>,
    runtime: Runtime,
    api: KubeApi,
    client: Client,
    watches: Watches,
    lead: Lead,
    held: LeaseHeld,
    /// Kept open for the renewer of the Lease.
    _notes: watch::Sender<LeaseAnnotations>,
}

impl Clusters {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let api = KubeApi::new(*start());
        let (client, watches, lead, held, notes) = runtime.block_on(async {
            let home = "tidegate".parse().unwrap();
            let client = Client::over(api.clone(), home, &instance()).await.unwrap();
            // The Lease, and the watch of the brake, are of no interest: they have a world of their own.
            let aside = KubeApi::new(*start());
            aside.change(|world| world.make_namespace("tidegate"));
            let own = Client::over(aside, "tidegate".parse().unwrap(), &instance()).await.unwrap();
            let watches = Watches::start(&own, &[], &BTreeSet::new(), &Arc::new(Notify::new()));
            let day = Duration::from_secs(86_400);
            let timing = Timing { duration: 3 * day, deadline: 2 * day, renew: day };
            let (notes, noted) = watch::channel(LeaseAnnotations::default());
            let (renewer, mut lead, _) = Renewer::new(Lease::new(own, "a", timing), timing, Clock::default(), noted);
            tokio::spawn(renewer.keep(CancellationToken::new()));
            while lead.held().is_none() {
                lead.changed().await;
            }
            let held = lead.held().unwrap();
            (client, watches, lead, held, notes)
        });
        let (met, objects) = (Numbers::default(), Numbers::default());
        let mut clusters = Self { met, objects, runtime, api, client, watches, lead, held, _notes: notes };
        let empty = world(&LiveState::default());
        clusters.meet(&empty, empty.clone(), BTreeMap::new());
        clusters
    }

    pub(crate) fn get(&self, number: u32) -> &Cluster {
        self.met.get(number)
    }

    pub(crate) fn count(&self) -> usize {
        self.met.len()
    }

    /// The uid of the cluster.
    pub(crate) fn uid(&self) -> &str {
        self.client.uid()
    }

    /// What a dry run of that comes to there.
    pub(crate) fn dry_run(&self, there: u32, need: &Need) -> WriteOutcome {
        let world = world(&self.get(there).live);
        let live = object(&world, &need.question.target);
        self.api.change(|now| *now = world);
        let expects = tidegate::plan::context::exactly(live.as_ref());
        self.runtime.block_on(self.client.dry_run(&need.object, &expects))
    }

    /// Carries out one action, planned when its object was as it is now (`fresh`), or before it was changed. Returns what
    /// the executor says of it, the cluster then, and the bits of the objects that were changed.
    pub(crate) fn write(
        &mut self,
        there: u32,
        action: &Action,
        fresh: bool,
        proof: Option<&Recorded<'_>>,
        mishap: Mishap,
    ) -> (Wrote, u32, u8) {
        let before = world(&self.get(there).live);
        self.api.change(|world| *world = before.clone());
        self.api.judge(move |seen| match (seen.what, mishap) {
            (What::Request { verb: Asked::Patch | Asked::Delete, .. }, Mishap::Before) => {
                FaultVerdict::Before(Fault::Unavailable)
            }
            (What::Request { verb: Asked::Patch | Asked::Delete, .. }, Mishap::After) => {
                FaultVerdict::After(Fault::Timeout)
            }
            _ => FaultVerdict::Pass,
        });
        let action = aimed(&before, action, fresh);
        let ran = self.run(&action, proof);
        self.api.acquit();
        let after = self.api.snapshot();
        let still = after.version() == before.version();
        let made = self.get(there).made.clone();
        let (now, changed) = if still { (there, 0) } else { self.meet(&before, after, made) };
        let wrote = match ran {
            Ran::All(_) => Wrote::Done,
            Ran::Stopped(WriteOutcome::Conflict { .. } | WriteOutcome::Refused(_) | WriteOutcome::Forbidden(_)) => {
                panic!("the API server does not take what was planned: {ran:?}: {action:?}")
            }
            Ran::Stopped(_) | Ran::NotRecorded | Ran::Rests | Ran::Lost if ran.voids() => Wrote::Void,
            Ran::Stopped(_) | Ran::NotRecorded | Ran::Rests | Ran::Lost => Wrote::Failed,
        };
        (wrote, now, changed)
    }

    fn run(&self, action: &Action, proof: Option<&Recorded<'_>>) -> Ran {
        let clock = Clock::set(start());
        let evidence = Collector::new(self.client.clone(), Providers::new(), clock, Arc::new(Notify::new()));
        let metrics = Metrics::new();
        let executor = Executor {
            cluster: &self.client,
            watches: &self.watches,
            evidence: &evidence,
            lead: &self.lead,
            metrics: &metrics,
            now: start(),
        };
        let rollout = id();
        let lists: Lists<'_> = [(&rollout, vec![action])].into();
        let mut ran = self.runtime.block_on(async {
            match proof {
                None => executor.retreats(&self.held, &lists).await,
                Some(proof) => executor.advance(&self.held, proof, &lists).await,
            }
        });
        ran.remove(&rollout).unwrap()
    }

    /// Lets everything else in the cluster catch up, and gives it its number; with the bits of what was changed since `before`.
    fn meet(&mut self, before: &World, mut after: World, mut made: BTreeMap<ObjectRef, u8>) -> (u32, u8) {
        nature(&mut after);
        let (old, new) = (objects(before), objects(&after));
        let mut changed = 0;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        for reference in old.keys().chain(new.keys()).filter(|r| r.kind != Kind::EndpointSlice) {
            if old.get(reference).map(version) != new.get(reference).map(version) {
                changed |= bit(reference);
            }
        }
        let mut live = LiveState { cluster_uid: self.client.uid().to_owned(), ..LiveState::default() };
        let mut key = String::new();
        for (reference, mut object) in new {
            if old.get(&reference).is_none_or(|old| old["metadata"]["uid"] != object["metadata"]["uid"]) {
                let count = made.entry(reference.clone()).or_default();
                *count = (*count + 1) % UIDS;
                object["metadata"]["uid"] = format!("{reference}, {count}").into();
            }
            plain(&mut object);
            if let Some(address) = object.pointer_mut("/spec/clusterIP") {
                *address = json!("10.96.0.1");
                object["spec"]["clusterIPs"] = json!(["10.96.0.1"]);
            }
            let number = self.objects.number(&object.to_string(), || Arc::new(Object::new(reference.clone(), object)));
            key += &format!("{number} ");
            live.objects.insert(reference, Arc::clone(self.objects.get(number)));
        }
        key += &format!("{made:?}");
        let number = self.met.number(&key, || Cluster {
            reach: reach(&live),
            newest: newest(&live),
            live: Arc::new(live),
            made,
        });
        (number, changed)
    }
}

/// The world in a process that holds just that.
fn world(live: &LiveState) -> World {
    let mut world = World::new(start());
    world.make_namespace(NAMESPACE);
    for object in live.objects.values() {
        world.restore(object.value()).unwrap();
    }
    world
}

fn object(world: &World, reference: &ObjectRef) -> Option<Object> {
    objects(world).remove(reference).map(|value| Object::new(reference.clone(), value))
}

/// The action with the resourceVersion that it was planned for, as this world counts them.
fn aimed(world: &World, action: &Action, fresh: bool) -> Action {
    let mut action = action.clone();
    let now = object(world, action.verb.target());
    if let Verb::Apply { expects, .. } | Verb::Migrate { expects, .. } | Verb::Delete { expects, .. } = &mut action.verb
        && let Expects::Version { resource_version, .. } = expects
    {
        let now = now.as_ref().and_then(Object::resource_version).filter(|_| fresh);
        // No object of ours has the first version: that is of a namespace.
        *resource_version = now.unwrap_or("1").to_owned();
    }
    action
}

/// All objects that anybody here looks at.
fn objects(world: &World) -> BTreeMap<ObjectRef, Value> {
    let kinds = [Kind::Deployment, Kind::Service, Kind::HttpRoute, Kind::EndpointSlice];
    let all = kinds.into_iter().flat_map(|kind| list(world, kind).into_iter().map(move |object| (kind, object)));
    all.map(|(kind, object)| {
        let name = object["metadata"]["name"].as_str().unwrap().parse().unwrap();
        (ObjectRef { kind, namespace: NAMESPACE.parse().unwrap(), name }, object)
    })
    .collect()
}

fn list(world: &World, kind: Kind) -> Vec<Value> {
    let resource = tidegate::world::kube_api::resource::Resource::of_kind(kind.api_version(), kind.as_str()).unwrap();
    world.list(resource, NAMESPACE).map(|object| object.as_ref().clone()).collect()
}

/// Counts nothing any more.
fn plain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("resourceVersion");
            for (key, value) in map {
                match key.as_str() {
                    "generation" | "observedGeneration" => *value = 1.into(),
                    _ => plain(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Everything in the cluster that is not tidegate.
fn nature(world: &mut World) {
    for deployment in list(world, Kind::Deployment) {
        let replicas = deployment["spec"]["replicas"].clone();
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        });
        tell(world, deployment, status);
    }
    let deployments = list(world, Kind::Deployment);
    let mut slices = list(world, Kind::EndpointSlice);
    for service in list(world, Kind::Service) {
        let name = service["metadata"]["name"].as_str().unwrap();
        let pods: i64 = behind(&service, &deployments).map(|d| d["spec"]["replicas"].as_i64().unwrap()).sum();
        let endpoints: Vec<Value> =
            (1..=pods).map(|i| json!({"addresses": [format!("10.0.0.{i}")], "conditions": {"ready": true}})).collect();
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}});
        let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        let known = slices.iter().position(|slice| slice["metadata"]["name"] == name);
        match known.map(|place| slices.remove(place)) {
            Some(old) if old["endpoints"] == slice["endpoints"] => {}
            Some(mut old) => {
                old["endpoints"] = slice["endpoints"].clone();
                world.update(old, "", "nature").unwrap();
            }
            None => drop(world.create("discovery.k8s.io/v1", "EndpointSlice", "nature", slice).unwrap()),
        }
    }
    for slice in slices {
        world.delete(&slice).unwrap();
    }
    for route in list(world, Kind::HttpRoute) {
        let conditions = ["Accepted", "ResolvedRefs"].map(|kind| {
            json!({"type": kind, "status": "True", "reason": kind, "message": "",
                "observedGeneration": route["metadata"]["generation"], "lastTransitionTime": "2026-03-02T10:00:00Z"})
        });
        let parents =
            json!([{"parentRef": {"name": "public"}, "controllerName": "test/gateway", "conditions": conditions}]);
        tell(world, route, json!({"parents": parents}));
    }
}

fn tell(world: &mut World, mut object: Value, status: Value) {
    if object["status"] != status {
        object["status"] = status;
        world.update(object, "status", "nature").unwrap();
    }
}

fn newest(live: &LiveState) -> u64 {
    let manager = instance().in_cluster();
    live.objects.values().map(|object| seq_of(object, &manager)).max().unwrap_or(0)
}

/// The Deployments whose pods a Service leads to.
fn behind<'a>(service: &Value, deployments: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    let selector = service["spec"]["selector"].as_object().cloned().unwrap_or_default();
    deployments.iter().filter(move |deployment| {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        selector.iter().all(|(key, value)| labels[key] == *value)
    })
}

/// The share of people's requests that each version gets, followed as a request goes: route, Service, pods.
fn reach(live: &LiveState) -> Vec<u8> {
    let values = |kind| live.of_kind(kind).map(|o| o.value().clone()).collect::<Vec<Value>>();
    let (deployments, services) = (values(Kind::Deployment), values(Kind::Service));
    let mut reach = vec![0; versions()];
    for route in values(Kind::HttpRoute) {
        let backends = route["spec"]["rules"][0]["backendRefs"].as_array().cloned().unwrap_or_default();
        let weight = |backend: &Value| backend["weight"].as_u64().unwrap_or(1);
        let sum: u64 = backends.iter().map(weight).sum();
        for backend in backends.iter().filter(|backend| weight(backend) > 0) {
            let service = services.iter().filter(|service| service["metadata"]["name"] == backend["name"]);
            for deployment in service.flat_map(|service| behind(service, &deployments)) {
                let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
                let version: usize = image.strip_prefix("app:").unwrap().parse().unwrap();
                reach[version - 1] += u8::try_from(weight(backend) * 100 / sum).unwrap();
            }
        }
    }
    reach
}

/// The bit that stands for an object that is written to.
pub(crate) fn bit(reference: &ObjectRef) -> u8 {
    let kind = [Kind::Deployment, Kind::Service, Kind::HttpRoute].iter().position(|kind| *kind == reference.kind);
    let copy = u8::from(reference.name.as_str() != NAME);
    1 << (2 * u8::try_from(kind.expect("a kind of the set")).unwrap() + copy)
}
