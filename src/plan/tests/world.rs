//! A small world for planner tests: one namespace, controllers that answer at once, a state branch that is a value.

use super::super::action::{Action, Ask, Class, Expects, Proposal, Verb};
use super::super::draft::{RecordChange, RolloutPlan};
use super::super::evidence::{Answer, Evidence};
use super::super::input::{Decisions, Desired, Git, Input, Live, PolicyView, Recorded};
use super::super::planner;
use crate::gate::BrakeWord;
use crate::gate::decisions::DecisionFile;
use crate::manifest::decision::{Decision, DecisionAction};
use crate::manifest::desired::{Plan, Rollout, Set, Suspend};
use crate::manifest::duration::Span;
use crate::manifest::ids::{RolloutId, SetId};
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef, RETREATED};
use crate::record::branches::{Asks, Head};
use crate::record::state::{RolloutState, Time, Writer};
use crate::target::live::{LiveState, Outcome};
use crate::target::owned::owned_by;
use crate::traffic::{self, Seen, View};
use chrono::TimeDelta;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

pub(super) const MANAGER: &str = "tidegate-prod";

fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text.as_bytes()).iter().take(bytes).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// How the pods of an image behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pods {
    Ready,
    Stuck,
}

/// How the gateway controller behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gateway {
    On,
    Off,
    Refuse,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: Time,
    pub(super) desired: Desired,
    pub(super) record: Option<RolloutState>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) sets: BTreeMap<SetId, Arc<Set>>,
    pub(super) live: LiveState,
    pub(super) files: Vec<DecisionFile>,
    pub(super) at_start: BTreeSet<(crate::manifest::files::RepoPath, crate::manifest::ids::BlobId)>,
    pub(super) proposals: BTreeMap<String, crate::manifest::ids::CommitId>,
    pub(super) policy: PolicyView,
    pub(super) brake: Option<BrakeWord>,
    pub(super) evidence: Evidence,
    pub(super) gaps: Vec<(Time, Time)>,
    pub(super) git: Git,
    pub(super) behaviour: BTreeMap<String, Pods>,
    pub(super) refused_images: BTreeSet<String>,
    pub(super) gateway: Gateway,
    pub(super) only_stable_stuck: bool,
    pub(super) outage: Option<Outcome>,
    pub(super) epoch: u64,
    versions: u64,
    pub(super) log: Vec<String>,
    pub(super) weights: Vec<u8>,
}

pub(super) fn id() -> RolloutId {
    "shop/podinfo".parse().expect("a rollout")
}

/// The manifests of a version: image `app:<version>`, one ConfigMap, a Service, a route.
pub(super) fn set(version: &str) -> Arc<Set> {
    set_with(version, |_| {})
}

pub(super) fn set_with(version: &str, change: impl FnOnce(&mut Vec<Value>)) -> Arc<Set> {
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"motd": version}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "podinfo"}, "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "podinfo"}},
            "template": {"metadata": {"labels": {"app": "podinfo"}}, "spec": {
                "containers": [{"name": "app", "image": format!("app:{version}"), "envFrom": [{"configMapRef": {"name": "settings"}}]}],
            }},
        }}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "podinfo"}, "spec": {
            "selector": {"app": "podinfo"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        }}),
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "podinfo"}, "spec": {
            "parentRefs": [{"name": "public"}],
            "rules": [{"backendRefs": [{"name": "podinfo", "port": 80}]}],
        }}),
    ];
    change(&mut all);
    let objects: BTreeMap<ObjectRef, Object> =
        all.into_iter().map(object).map(|o| (o.reference().clone(), o)).collect();
    let text = |keep: &dyn Fn(&Object) -> bool| {
        objects.values().filter(|o| keep(o)).map(|o| o.value().to_string()).collect::<String>()
    };
    let pods = text(&|o| matches!(o.reference().kind, Kind::Deployment | Kind::ConfigMap));
    let pods = pods.replace("\"replicas\":4,", "").replace("\"replicas\":6,", "");
    Arc::new(Set {
        id: hex(&text(&|_| true), 20).parse().expect("a set"),
        files: BTreeMap::new(),
        revision: format!("v1:sha256:{}", hex(&text(&|_| true), 32)).parse().expect("a revision"),
        pods: hex(&pods, 8).parse().expect("a digest"),
        objects,
    })
}

fn object(value: Value) -> Object {
    let text = |p: &str| value.pointer(p).and_then(Value::as_str).expect(p);
    let kind = Kind::find(text("/apiVersion"), text("/kind")).expect("a known kind");
    let name = text("/metadata/name").parse().expect("a name");
    Object::new(ObjectRef { kind, namespace: id().namespace, name }, value)
}

pub(super) fn plan(yaml: &str) -> Plan {
    let spec = yaml.replace('\n', "\n  ");
    let text = format!("apiVersion: tidegate.io/v1alpha1\nkind: RunPlan\nspec:{spec}");
    crate::record::store::parse_plan(text.as_bytes()).expect("a plan")
}

/// 10 % after a word, half, then a word for the promotion.
pub(super) const CANARY: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 5s, drain: 30s}
phases:
- {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 5m}
- {name: half, expose: {weight: 50}, soak: 5m}
promotion: {before: {approval: pullRequest}, bake: 1m}
progressDeadline: 10m
";

/// Without gates and without waiting.
pub(super) const QUICK: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 1m}
- {name: half, expose: {weight: 50}, soak: 1m}
progressDeadline: 10m
";

/// Testers first.
pub(super) const HEADERS: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: testers, expose: {headers: [{x-canary: always}]}, soak: 1m}
- {name: tenth, expose: {weight: 10}, soak: 1m}
progressDeadline: 10m
";

/// A window before half.
pub(super) const WINDOWED: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 1m}
- {name: half, before: {window: night}, expose: {weight: 50}, soak: 1m}
progressDeadline: 10m
";

/// By pods.
pub(super) const REPLICAS: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {replicas: {service: podinfo}}, settle: 0s, drain: 30s}
phases:
- {name: fifth, expose: {weight: 20}, soak: 1m}
- {name: half, expose: {weight: 50}, soak: 1m}
promotion: {bake: 1s}
progressDeadline: 10m
";

/// Without a router.
pub(super) const PLAIN: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
promotion: {before: {approval: pullRequest}}
progressDeadline: 10m
";

impl World {
    pub(super) fn at_tenth() -> Self {
        let mut world = Self::new(CANARY, "1");
        world.settle();
        world.want(CANARY, set("2"));
        world.settle();
        world.approve("tenth");
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
        world
    }

    pub(super) fn at_shift() -> Self {
        let mut world = Self::at_tenth();
        world.pass(306);
        world.pass(306);
        world.approve("promotion");
        assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
        world
    }

    pub(super) fn at_return() -> Self {
        let mut world = Self::at_shift();
        world.pass(66);
        assert_eq!((world.phase().as_str(), world.weight()), ("Finalising(return)", 0));
        world
    }

    pub(super) fn failed() -> Self {
        let mut world = Self::new(QUICK, "1");
        world.settle();
        world.behave("app:2", Pods::Stuck);
        world.want(QUICK, set("2"));
        world.settle();
        world.pass(601);
        assert_eq!(world.phase(), "Failed");
        world
    }

    pub(super) fn behave(&mut self, image: &str, pods: Pods) {
        self.behaviour.insert(image.to_owned(), pods);
    }

    pub(super) fn record(&self) -> RolloutState {
        self.record.clone().expect("a record")
    }

    pub(super) fn gone(&mut self) {
        self.desired = Desired::Gone;
    }

    pub(super) fn suspend(&mut self, suspend: Suspend) {
        if let Desired::Wanted(rollout) = &self.desired {
            self.desired = Desired::Wanted(Arc::new(Rollout { suspend, ..(**rollout).clone() }));
        }
    }

    pub(super) fn with_git(&mut self) {
        self.git = Git::Fresh;
    }

    /// Objects that are there before we are.
    pub(super) fn exists(&mut self, set: &Set) {
        for object in set.objects.values() {
            let mut object = object.clone();
            object.value_mut()["metadata"]["managedFields"] = json!([{"manager": "helm-free", "operation": "Update"}]);
            self.put(object);
        }
        self.controllers();
    }

    pub(super) fn exists_value(&mut self, value: Value) {
        self.put(object(value));
    }

    /// An action of a plan that was made earlier, carried out now: what it expects must not be there any more.
    pub(super) fn try_late(&mut self, action: &Action) {
        let live = self.live.get(action.verb.target());
        let found = (live.and_then(Object::uid), live.and_then(Object::resource_version));
        let fits = match action.verb.expects() {
            Expects::Absent => live.is_none(),
            Expects::Uid(uid) => found.0 == Some(uid),
            Expects::Version { uid, resource_version } => found == (Some(uid), Some(resource_version)),
        };
        if let (true, Verb::Apply { object, .. }) = (fits, &action.verb) {
            let merged = self.merged(object);
            self.put(merged);
        }
        self.check_promise();
    }

    pub(super) fn new(plan: &str, version: &str) -> Self {
        let mut world = Self {
            now: "2026-03-02T10:00:00Z".parse().expect("a time"),
            desired: Desired::Gone,
            record: None,
            plan: None,
            sets: BTreeMap::new(),
            live: LiveState { cluster_uid: "cluster-1".to_owned(), ..LiveState::default() },
            files: Vec::new(),
            at_start: BTreeSet::new(),
            proposals: BTreeMap::new(),
            policy: PolicyView { max_deletions: 5, ..PolicyView::default() },
            brake: None,
            evidence: Evidence::default(),
            gaps: Vec::new(),
            git: Git::Fresh,
            behaviour: BTreeMap::new(),
            refused_images: BTreeSet::new(),
            gateway: Gateway::On,
            only_stable_stuck: false,
            outage: None,
            epoch: 1,
            versions: 100,
            log: Vec::new(),
            weights: Vec::new(),
        };
        world.want(plan, set(version));
        world
    }

    /// Main wants this set.
    pub(super) fn want(&mut self, yaml: &str, set: Arc<Set>) {
        self.sets.insert(set.id.clone(), set.clone());
        self.desired = Desired::Wanted(Arc::new(Rollout {
            id: id(),
            path: "teams/shop/podinfo/rollout.yaml".parse().expect("a path"),
            blob: "b".repeat(40).parse().expect("a blob"),
            cluster: "home".parse().expect("a cluster"),
            plan: plan(yaml),
            rollback_window: Span::from_secs(86_400),
            suspend: Suspend::No,
            set,
        }));
    }

    pub(super) fn input(&self) -> Input {
        Input {
            now: self.now,
            id: id(),
            me: Writer {
                instance: "prod".parse().expect("an instance"),
                version: "0.1.0".to_owned(),
                cluster: "home".parse().expect("a cluster"),
                cluster_uid: "cluster-1".to_owned(),
                epoch: self.epoch,
            },
            desired: self.desired.clone(),
            main: "a".repeat(40).parse().expect("a commit"),
            recorded: self.record.clone().map_or(Recorded::None, |r| Recorded::State(Box::new(r), self.plan.clone())),
            sets: self.sets.clone(),
            decisions: Decisions { tip: None, filed: self.files.clone(), at_start: self.at_start.clone() },
            proposals: self.proposals.clone(),
            policy: self.policy.clone(),
            brake: self.brake,
            live: Live::Seen(Arc::new(self.live.clone())),
            evidence: self.evidence.clone(),
            gaps: self.gaps.clone(),
            git: self.git.clone(),
        }
    }

    pub(super) fn plan_now(&self) -> RolloutPlan {
        planner::plan(&self.input())
    }

    /// One tick, in the order of the protocol; says whether anything happened.
    pub(super) fn tick(&mut self) -> bool {
        self.controllers();
        let plan = self.plan_now();
        let mut busy = !plan.needs.is_empty();
        for need in &plan.needs {
            let outcome = self.dry_run(&need.object);
            self.evidence.dry_runs.insert(need.question.clone(), Answer { outcome, at: self.now });
        }
        for action in &plan.retreats {
            assert_eq!(action.class, Class::Retreat, "{action:?}");
            busy |= self.perform(action);
        }
        if self.git != Git::Fresh {
            return busy;
        }
        match &plan.record {
            RecordChange::Keep => {}
            RecordChange::Write { state, plan, what } => {
                let before = self.record.as_ref().map_or("nothing", |r| r.phase.name());
                self.log.push(format!("{before} → {}: {what}", state.phase.name()));
                assert!(self.record.as_ref().is_none_or(|r| r.phase.may_become(&state.phase)), "{:?}", self.log);
                let started = state.run.as_ref().map(|r| &r.id)
                    != self.record.as_ref().and_then(|r| r.run.as_ref()).map(|r| &r.id);
                if started && state.run.is_some() {
                    self.at_start = self.files.iter().map(|f| (f.path.clone(), f.blob.clone())).collect();
                }
                self.record = Some((**state).clone());
                self.plan = plan.clone();
                busy = true;
            }
            RecordChange::Remove { what } => {
                self.log.push(format!("removed: {what}"));
                (self.record, self.plan, busy) = (None, None, true);
            }
        }
        for action in &plan.actions {
            busy |= self.perform(action);
        }
        for proposal in &plan.proposals {
            self.propose(proposal);
            busy = true;
        }
        for (name, _) in &plan.void {
            self.proposals.remove(name);
            busy = true;
        }
        self.check_promise();
        busy
    }

    fn propose(&mut self, proposal: &Proposal) {
        let asks = match &proposal.ask {
            Ask::Advance { through } => Asks::Advance(through.clone()),
            Ask::Revert { .. } => Asks::Revert,
        };
        let head = Head { rollout: proposal.rollout.clone(), run: proposal.run.clone(), asks };
        let name = head.branch(&"prod".parse().expect("an instance"));
        self.log.push(format!("proposes {name}"));
        self.proposals.insert(name, "c".repeat(40).parse().expect("a commit"));
    }

    /// Ticks until nothing happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..60 {
            if !self.tick() {
                self.controllers();
                let plan = self.plan_now();
                assert_eq!(plan.record, RecordChange::Keep, "the second plan is empty: {:?}", self.log);
                assert_eq!((plan.retreats, plan.actions), (vec![], vec![]), "the second plan is empty: {:?}", self.log);
                return;
            }
        }
        panic!("does not settle: {:#?}\n{:#?}", self.log, self.plan_now());
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
        self.settle();
    }

    pub(super) fn say(&mut self, action: DecisionAction) {
        let record = self.record.as_ref().expect("a record");
        let run = record.run.as_ref().map(|r| r.id.clone()).or(record.last_run.as_ref().map(|r| r.id.clone()));
        self.say_of(action, run.expect("a run"));
    }

    pub(super) fn say_of(&mut self, action: DecisionAction, run: crate::manifest::ids::RunId) {
        let n = self.files.len();
        self.files.push(DecisionFile {
            path: format!("shop/podinfo/{run}-{n}.yaml").parse().expect("a path"),
            blob: hex(&n.to_string(), 20).parse().expect("a blob"),
            by: "ana <ana@example.org>".to_owned(),
            decision: Ok(Decision { rollout: id(), run, action, reason: None }),
        });
    }

    pub(super) fn approve(&mut self, through: &str) {
        self.say(DecisionAction::Approve { through: through.parse().expect("a step") });
        self.settle();
    }

    pub(super) fn phase(&self) -> String {
        let record = self.record.as_ref().expect("a record");
        match record.phase.stop() {
            Some(stop) => format!("{}({})", record.phase.name(), stop.step),
            None => record.phase.name().to_owned(),
        }
    }

    pub(super) fn waits(&self) -> Vec<&'static str> {
        self.plan_now().waits.iter().map(|w| w.reason.as_str()).collect()
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.live.find(kind, &id().namespace, &name.parse().expect("a name"))
    }

    pub(super) fn image(&self, name: &str) -> Option<&str> {
        self.get(Kind::Deployment, name)?.text("/spec/template/spec/containers/0/image")
    }

    pub(super) fn weight(&self) -> u8 {
        let Some(plan) = self.plan.clone().or_else(|| match &self.desired {
            Desired::Wanted(r) => Some(Arc::new(r.plan.clone())),
            Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
        }) else {
            return 0;
        };
        let Some(traffic) = &plan.traffic else { return 0 };
        let baseline =
            self.record.as_ref().and_then(|r| r.run.as_ref()).and_then(|r| r.baseline.values().next().copied());
        let view = View {
            live: &self.live,
            namespace: &id().namespace,
            target: &plan.target.name,
            baseline: baseline.unwrap_or(4),
        };
        match traffic::read(&traffic.router, &view) {
            Seen::Split(split) => split.weight.get(),
            Seen::Foreign(why) => panic!("{why}"),
        }
    }

    /// Live is never ahead of the record.
    fn check_promise(&mut self) {
        let weight = self.weight();
        if self.weights.last() != Some(&weight) {
            self.weights.push(weight);
        }
        let posture = self.record.as_ref().and_then(|r| r.clusters.values().next()).map(|c| c.posture.clone());
        // In *return* both roles are the new version.
        let same = posture.as_ref().is_some_and(|p| p.candidate.as_ref().is_some_and(|c| c.set == p.stable.set));
        let allowed = posture.map_or(0, |p| if same { 100 } else { p.split.weight.get() });
        assert!(weight <= allowed, "live {weight} above record {allowed}: {:?}", self.log);
        // Pods of a real Deployment roll; here they turn all at once, which users see only while stable serves.
        assert!(
            weight == 100
                || self.ready_behind("podinfo") > 0
                || self.record.as_ref().is_none_or(|r| r.promoted.is_none()),
            "C-1"
        );
    }

    /// A hand changes a live object.
    pub(super) fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let reference = ObjectRef { kind, namespace: id().namespace, name: name.parse().expect("a name") };
        let mut object = (**self.live.objects.get(&reference).expect("there")).clone();
        change(object.value_mut());
        self.put(object);
    }

    fn put(&mut self, mut object: Object) {
        self.versions += 1;
        let reference = object.reference().clone();
        let old = self.live.get(&reference);
        let generation = match old {
            Some(old) if old.value()["spec"] == object.value()["spec"] => old.generation().unwrap_or(1),
            Some(old) => old.generation().unwrap_or(1) + 1,
            None => 1,
        };
        let uid = old.and_then(Object::uid).map_or_else(|| format!("uid-{}", self.versions), str::to_owned);
        let metadata = &mut object.value_mut()["metadata"];
        metadata["generation"] = generation.into();
        metadata["uid"] = uid.into();
        metadata["resourceVersion"] = self.versions.to_string().into();
        self.live.objects.insert(reference, Arc::new(object));
    }

    fn dry_run(&self, object: &Object) -> Outcome {
        if let Some(outcome) = &self.outage {
            return outcome.clone();
        }
        let image = object.text("/spec/template/spec/containers/0/image").unwrap_or_default();
        if self.refused_images.contains(image) {
            return Outcome::Refused(format!("admission webhook denied the request: {image}"));
        }
        Outcome::Done(Some(Box::new(self.merged(object))))
    }

    fn merged(&self, object: &Object) -> Object {
        let Some(live) = self.live.get(object.reference()) else { return with_fields(object.clone(), object) };
        let mut merged = live.value().clone();
        if let Some(owned) = owned_by(live, MANAGER) {
            remove(&mut merged, owned.value(), object.value());
        }
        merge(&mut merged, object.value());
        with_fields(Object::new(object.reference().clone(), merged), object)
    }

    /// Server-side apply and deletes, with their preconditions; says whether anything was done.
    pub(super) fn perform(&mut self, action: &Action) -> bool {
        if let Some(posture) = &action.posture {
            let recorded = self.record.as_ref().and_then(|r| r.clusters.values().next()).map(|c| c.posture.digest());
            assert_eq!(Some(posture), recorded.as_ref(), "rendered from what is recorded: {}", action.why);
        }
        let live = self.live.get(action.verb.target());
        let found = (live.and_then(Object::uid), live.and_then(Object::resource_version));
        let stale = match action.verb.expects() {
            Expects::Absent => live.is_some(),
            Expects::Uid(uid) => found.0 != Some(uid),
            Expects::Version { uid, resource_version } => found != (Some(uid), Some(resource_version)),
        };
        if stale {
            self.log.push(format!("stale: {}", action.why));
            return true;
        }
        match &action.verb {
            Verb::Apply { object, .. } => match self.dry_run(object) {
                Outcome::Done(Some(merged)) => self.put(*merged),
                outcome @ (Outcome::Done(None)
                | Outcome::Stale(_)
                | Outcome::Conflict { .. }
                | Outcome::Refused(_)
                | Outcome::MissingKind(_)
                | Outcome::Forbidden(_)
                | Outcome::Retriable(_)) => {
                    let digest = object.annotation(crate::manifest::object::APPLIED).unwrap_or_default().to_owned();
                    let key = (object.reference().clone(), digest);
                    self.evidence.writes.insert(key, Answer { outcome, at: self.now });
                }
            },
            Verb::Migrate { .. } => {}
            Verb::Delete { target, .. } => {
                self.live.objects.remove(target);
            }
        }
        true
    }

    /// Deployment, endpoint and gateway controllers catch up.
    pub(super) fn controllers(&mut self) {
        let deployments: Vec<Object> = self.live.of_kind(Kind::Deployment).cloned().collect();
        for mut deployment in deployments {
            let image = deployment.text("/spec/template/spec/containers/0/image").unwrap_or_default().to_owned();
            let stable = deployment.reference().name.as_str() == "podinfo";
            let stuck = self.behaviour.get(&image) == Some(&Pods::Stuck) || (stable && self.only_stable_stuck);
            let replicas = deployment.int("/spec/replicas").unwrap_or(1);
            let ready = if stuck { 0 } else { replicas };
            let status = json!({
                "observedGeneration": deployment.generation(), "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": ready, "availableReplicas": ready,
            });
            if deployment.at("/status") != Some(&status) {
                deployment.value_mut()["status"] = status;
                self.put(deployment);
            }
        }
        let services: Vec<Object> = self.live.of_kind(Kind::Service).cloned().collect();
        self.live.objects.retain(|r, _| r.kind != Kind::EndpointSlice);
        for service in services {
            let name = service.reference().name.clone();
            let address = |i| json!({"addresses": [format!("10.0.0.{i}")], "conditions": {"ready": true}});
            let endpoints: Vec<Value> = (0..self.ready_behind(name.as_str())).map(address).collect();
            let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": format!("{name}-x"), "labels": {"kubernetes.io/service-name": name.as_str()}},
                "endpoints": endpoints});
            let slice = object(slice);
            self.live.objects.insert(slice.reference().clone(), Arc::new(slice));
        }
        self.gateway();
    }

    /// The ready pods that a Service selects.
    pub(super) fn ready_behind(&self, service: &str) -> usize {
        let Some(service) = self.get(Kind::Service, service) else { return 0 };
        let selector = service.at("/spec/selector").and_then(Value::as_object).cloned().unwrap_or_default();
        let matching = self.live.of_kind(Kind::Deployment).filter(|deployment| {
            let labels = deployment.at("/spec/template/metadata/labels");
            selector.iter().all(|(k, v)| labels.and_then(|l| l.get(k)) == Some(v))
        });
        matching.map(|d| usize::try_from(d.int("/status/readyReplicas").unwrap_or(0)).expect("a count")).sum()
    }

    fn gateway(&mut self) {
        let routes: Vec<Object> = self.live.of_kind(Kind::HttpRoute).cloned().collect();
        for mut route in routes {
            let accepted = match self.gateway {
                Gateway::Off => continue,
                Gateway::On => "True",
                Gateway::Refuse => "False",
            };
            let condition = |kind: &str| {
                json!({"type": kind, "status": accepted, "reason": if accepted == "True" { kind } else { "UnsupportedValue" },
                "message": "", "observedGeneration": route.generation()})
            };
            let status = json!({"parents": [{"parentRef": {"name": "public"}, "controllerName": "test",
                "conditions": [condition("Accepted"), condition("ResolvedRefs")]}]});
            if route.at("/status") != Some(&status) {
                route.value_mut()["status"] = status;
                self.put(route);
            }
        }
    }

    pub(super) fn marked(&self) -> Vec<String> {
        let marked = self.live.objects.values().filter(|o| o.annotation(RETREATED).is_some());
        marked.map(|o| o.reference().to_string()).collect()
    }

    pub(super) fn owned(&self) -> usize {
        self.live.objects.values().filter(|o| o.annotation(OWNER).is_some()).count()
    }

    pub(super) fn without_git(&mut self) {
        self.git = Git::Away("connection refused".to_owned());
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn remove(from: &mut Value, owned: &Value, wanted: &Value) {
    let (Some(from), Some(owned)) = (from.as_object_mut(), owned.as_object()) else { return };
    for (key, value) in owned {
        match wanted.get(key) {
            None => {
                from.remove(key);
            }
            Some(wanted) => {
                if let Some(inner) = from.get_mut(key) {
                    remove(inner, value, wanted);
                }
            }
        }
    }
}

/// Records the fields of an apply as ours: maps by key, lists as a whole.
fn with_fields(mut merged: Object, applied: &Object) -> Object {
    let mut fields = fields_of(applied.value());
    for key in ["f:apiVersion", "f:kind"] {
        fields.as_object_mut().expect("a map").remove(key);
    }
    if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        for key in ["f:name", "f:namespace"] {
            metadata.remove(key);
        }
    }
    merged.value_mut()["metadata"]["managedFields"] = json!([{"manager": MANAGER, "operation": "Apply",
        "apiVersion": applied.reference().kind.api_version(), "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    merged
}

fn fields_of(value: &Value) -> Value {
    match value.as_object() {
        Some(map) => {
            map.iter().map(|(k, v)| (format!("f:{k}"), fields_of(v))).collect::<serde_json::Map<_, _>>().into()
        }
        None => json!({}),
    }
}
