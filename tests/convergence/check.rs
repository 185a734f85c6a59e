//! Looks at a world after every change, and says what must never be.

use crate::convergence::acts::Act;
use crate::convergence::daemon::{Asked, pods_of};
use crate::convergence::host::{Host, STATE};
use crate::convergence::seen::{Change, Seen, fails, seq};
use crate::convergence::shape::Router;
use crate::convergence::spans::{LATE, Spans};
use crate::convergence::story::Part;
use crate::promise::Nanos;
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::ids::RolloutId;
use tidegate::record::state::{Consumed, Phase, RolloutState, Time};
use tidegate::record::store;
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// Who writes in the eyes of the promise, whichever controller it is.
pub(crate) const TIDEGATE: &str = "tidegate";
/// No controller may know of the brake for so long, if its watch is late.
const HEARS: i64 = 30;
/// A webhook before a step is asked again after so long.
const ASKED: i64 = 30;
/// Who holds the Lease goes on for so long without a renewal.
const NOTICES: i64 = 10;

/// What is kept of a world to judge it.
pub(crate) struct Checker {
    host: Host,
    tip: Option<git2::Oid>,
    /// What Git says now.
    pub(crate) records: BTreeMap<RolloutId, RolloutState>,
    rollouts: Vec<Seen>,
    lease: Option<Arc<Value>>,
    /// When a hand changed the Lease last.
    pub(crate) meddled: Option<Time>,
    /// The time of the last change.
    now: Time,
    /// What is no part of a soak.
    spans: Spans,
    /// Since when the brake says something of a rollout.
    pub(crate) braked: BTreeMap<String, Time>,
    /// Since when the webhook before steps holds.
    pub(crate) held: Option<Time>,
    /// What was found.
    pub(crate) found: Option<String>,
    /// All that happened, in order.
    pub(crate) transcript: Vec<String>,
    /// Counts what the promise was checked at.
    events: i64,
}

/// A kind that is known by its names alone.
pub(crate) const MONITORS: (&str, &str, &str) = ("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors");

pub(crate) const KINDS: [(&str, &str, &str); 14] = [
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("v1", "Service", "services"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    MONITORS,
    ("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
    ("gateway.networking.k8s.io/v1", "GRPCRoute", "grpcroutes"),
    ("networking.istio.io/v1", "VirtualService", "virtualservices"),
    ("networking.k8s.io/v1", "Ingress", "ingresses"),
    ("gateway.solo.io/v1", "RouteTable", "routetables"),
    ("projectcontour.io/v1", "HTTPProxy", "httpproxies"),
    ("traefik.io/v1alpha1", "TraefikService", "traefikservices"),
    ("traefik.io/v1alpha1", "IngressRoute", "ingressroutes"),
];

impl Checker {
    pub(crate) fn new(host: Host, parts: &[Part]) -> Self {
        let rollouts = parts.iter().map(Seen::new).collect();
        Self {
            host,
            tip: None,
            records: BTreeMap::new(),
            rollouts,
            lease: None,
            meddled: None,
            now: Time::MIN,
            spans: Spans::default(),
            braked: BTreeMap::new(),
            held: None,
            found: None,
            transcript: Vec::new(),
            events: 0,
        }
    }

    fn fail(&mut self, at: Time, invariant: &str, what: &str) {
        self.found.get_or_insert_with(|| format!("{invariant}: {what} ({})", at.format("%H:%M:%S%.3f")));
    }

    /// Takes note that a rollout came to rest for the first time.
    pub(crate) fn begun(&mut self) {
        self.rollouts.iter_mut().for_each(|seen| seen.began = true);
    }

    /// Takes note that a hand changed what is live of a rollout.
    pub(crate) fn touched(&mut self, id: &RolloutId) {
        self.rollouts.iter_mut().filter(|seen| seen.id == *id).for_each(|seen| seen.touched = true);
    }

    /// Hooks were told this.
    pub(crate) fn told(&mut self, lines: &[String], now: Time) {
        self.catch_up(now);
        for line in lines {
            // All hear of their own rollout alone.
            let recorded = self.rollouts.iter_mut().map(|seen| seen.hooks.tell(line)).filter(|is| *is).count();
            if recorded == 0 {
                self.fail(now, "hooks are told what Git has", line);
            }
        }
    }

    /// The end of a run that a hook should have been told of.
    pub(crate) fn untold(&self) -> Option<String> {
        let hooks = self.rollouts.iter().filter(|seen| seen.part.shape.hook);
        hooks.into_iter().find_map(|seen| seen.hooks.untold()).cloned()
    }

    /// Reads what the state branch says since it was looked at last.
    pub(crate) fn catch_up(&mut self, now: Time) {
        let tip = self.host.tip(STATE);
        if tip == self.tip {
            return;
        }
        let Some(tip) = tip else { return };
        // A branch that was put back, by a fault or after one, is no news: what was recorded stays recorded.
        let Some(commits) = self.host.since(self.tip, tip) else {
            if self.tip.is_some_and(|known| !self.host.leads_to(known, tip)) {
                self.fail(now, "no record is lost", &format!("{tip} does not follow on {:?}", self.tip));
            }
            return;
        };
        for commit in commits {
            for place in 0..self.rollouts.len() {
                self.recorded(place, commit, now);
            }
        }
        self.tip = Some(tip);
    }

    fn recorded(&mut self, place: usize, commit: git2::Oid, now: Time) {
        let id = self.rollouts[place].id.clone();
        let path = store::paths(&id).state;
        let blob = self.host.entry(commit, path.as_str());
        if blob == self.rollouts[place].blob {
            return;
        }
        self.rollouts[place].blob = blob;
        let bytes = self.host.file(commit, path.as_str());
        let state = bytes.and_then(|bytes| store::parse_state(&id, &bytes).ok());
        let before = self.records.get(&id).cloned();
        self.events += 1;
        self.rollouts[place].recorded(Nanos(self.events), commit.to_string(), state.as_ref());
        if let Some(state) = &state {
            let place = state.phase.position().map_or_else(String::new, |position| format!(" {}", position.step));
            self.transcript.push(format!(
                "{} {id} {}{place} seq {}",
                now.format("%H:%M:%S%.3f"),
                state.phase.name(),
                state.seq
            ));
            for (invariant, what) in self.judge(place_of(&self.rollouts, &id), before.as_ref(), state, now) {
                self.fail(now, invariant, &what);
            }
            self.records.insert(id, state.clone());
        }
        self.see_exposed(place, now);
    }

    /// What a new record must not say.
    fn judge(
        &self,
        place: usize,
        before: Option<&RolloutState>,
        state: &RolloutState,
        now: Time,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let (seen, id) = (&self.rollouts[place], &state.metadata);
        let known = before.map_or(0, |before| before.seq);
        if state.seq != known + 1 {
            found.push(("no record is lost", format!("{id}: record {} follows on {known}", state.seq)));
        }
        if seen.began && seen.part.chapters.is_empty() {
            found.push(("who is not touched is left alone", format!("{id}: record {} was written", state.seq)));
        }
        let Some(before) = before else { return found };
        if !before.phase.may_become(&state.phase) {
            let what = format!("{id}: {} became {}", before.phase.name(), state.phase.name());
            found.push(("phases follow each other", what));
        }
        let opened = state.run.as_ref().filter(|run| before.run.as_ref().map(|b| &b.id) != Some(&run.id));
        if let Some(run) = opened
            && state.refused.iter().any(|refused| refused.revision == run.revision)
        {
            found.push(("what was refused stays refused", format!("{id}: run {} starts", run.id)));
        }
        found.extend(rises(before, state).map(|what| ("what is said to go back goes back at once", what)));
        found.extend(self.entered(seen, before, state, now).map(|what| ("no gate is passed while it is closed", what)));
        found.extend(
            self.spans
                .left_early(seen, before, state, &self.leader(), now)
                .map(|what| ("a soak is observed time", what)),
        );
        found.extend(self.claimed(seen, before, state).map(|what| ("the record claims what was", what)));
        let promotes = before.promoted.as_ref().map(|past| &past.set) != state.promoted.as_ref().map(|now| &now.set);
        if promotes && fails(&seen.image()) {
            found.push(("what fails is not promoted", format!("{id}: {} is said to be promoted", seen.image())));
        }
        found
    }

    /// A gate that stood closed when a step was entered.
    fn entered(&self, seen: &Seen, before: &RolloutState, state: &RolloutState, now: Time) -> Option<String> {
        let (position, run) = (state.phase.position()?, state.run.as_ref()?);
        let forward = matches!(state.phase, Phase::Progressing(_) | Phase::Promoting(_));
        let here = before.phase.position().is_some_and(|b| b.seq == position.seq);
        if !forward || here || run.route == tidegate::record::state::Route::Rollback {
            return None;
        }
        let (step, shape) = (position.step.as_str(), &seen.part.shape);
        if matches!(step, "promote" | "return" | "retire") {
            return None;
        }
        let first = &shape.phases[0];
        let phase = if step == "prepare" { Some(first) } else { shape.phases.iter().find(|phase| phase.name == step) };
        let approval =
            if step == "shift" { shape.approved_promotion } else { phase.is_some_and(|phase| phase.approval) };
        if approval {
            let through = phase.map_or("promotion", |phase| phase.name);
            let all = shape.phases.iter().map(|phase| phase.name).chain(["promotion"]);
            let path = |step: &str| format!("{}/{}-{step}.yaml", seen.id, run.id);
            let mut reaching = all.skip_while(|name| *name != through);
            if !reaching.any(|step| self.host.has(crate::convergence::host::DECISIONS, &path(step))) {
                return Some(format!("{}: {step} of run {} was never approved", seen.id, run.id));
            }
        }
        let tried = phase.filter(|phase| phase.job && phase.name == step);
        if tried.is_some() && !seen.jobs.succeeded(shape.name, &run.id, step) {
            return Some(format!("{}: no Job has succeeded before {step} of run {}", seen.id, run.id));
        }
        let minute = position.clock.entered.format("%M").to_string().parse::<u32>().unwrap() % 10;
        // The gates of the first phase stand before `prepare`.
        let gates = phase.filter(|_| step == "prepare" || step != first.name);
        if gates.is_some_and(|phase| phase.window) && minute >= 4 {
            return Some(format!("{}: {step} was entered while the window was closed", seen.id));
        }
        let says = |file: &str, what: &str| {
            let text = self
                .host
                .tip(crate::convergence::host::MAIN)
                .and_then(|tip| self.host.file(tip, file))
                .unwrap_or_default();
            String::from_utf8_lossy(&text).contains(what)
        };
        if matches!(minute, 6 | 7) && says("tidegate.yaml", "freezes") {
            return Some(format!("{}: {step} was entered while everything was frozen", seen.id));
        }
        if says(&format!("shop/{}.rollout.yaml", shape.name), "suspend: true") {
            return Some(format!("{}: {step} was entered while it was suspended", seen.id));
        }
        let since = |set: Time| (position.clock.entered.min(now) - set).num_seconds();
        let held = gates.filter(|phase| phase.webhook).and(self.held).map(since);
        if let Some(held) = held.filter(|held| *held > ASKED) {
            return Some(format!("{}: {step} was entered {held} s after the webhook began to hold", seen.id));
        }
        let braked = self.braked.get(shape.name)?;
        let since = since(*braked);
        (since > HEARS).then(|| format!("{}: {step} was entered {since} s after the brake was set", seen.id))
    }

    /// Something that the record claims and the world never was.
    fn claimed(&self, seen: &Seen, before: &RolloutState, state: &RolloutState) -> Option<String> {
        let position = state.phase.position()?;
        let reached = matches!(state.phase, Phase::Progressing(_)) && position.clock.exposed.is_some();
        let news = before.phase.position().is_none_or(|b| b.clock.exposed.is_none());
        if reached && news && !seen.touched && seen.part.shape.router == Router::Daemon {
            let phase = seen.part.shape.phases.iter().find(|phase| phase.name == position.step.as_str())?;
            let (new, wanted) = (seen.daemons.count_new(state), pods_of(phase.expose.weight()));
            let what = || format!("{}: {} is said to be reached with {new} of {wanted} pods", seen.id, position.step);
            return (new != wanted).then(what);
        }
        if reached && news && !seen.touched && seen.part.shape.router.route("").is_some() {
            let phase = seen.part.shape.phases.iter().find(|phase| phase.name == position.step.as_str())?;
            let live = seen.weight();
            if live != phase.expose.weight() {
                return Some(format!("{}: {} is said to be reached at weight {live}", seen.id, position.step));
            }
            if phase.expose.has_testers() && !seen.has_testers() {
                return Some(format!("{}: {} is said to be reached, and no tester is led", seen.id, position.step));
            }
        }
        None
    }

    /// Looks at the world after a change over that connection.
    pub(crate) fn witness(&mut self, world: &World, caller: &str) {
        let now = world.now();
        self.now = now;
        self.catch_up(now);
        self.see_lease(world);
        for place in 0..self.rollouts.len() {
            self.look(place, world, caller);
        }
    }

    fn see_lease(&mut self, world: &World) {
        let leases = Resource::of_kind("coordination.k8s.io/v1", "Lease").unwrap();
        let lease = world.get(leases, "tidegate", "tidegate-world").cloned();
        self.spans.renewed(self.lease.as_deref(), lease.as_deref(), self.now);
        self.lease = lease;
    }

    /// Who holds the Lease.
    pub(crate) fn leader(&self) -> String {
        let holder = self.lease.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        holder.unwrap_or_default().to_owned()
    }

    /// Takes note that the leader's clock, which shows that time now, was set by so many seconds.
    pub(crate) fn clock_set(&mut self, shown: Time, by: i64) {
        let leader = self.leader();
        self.spans.clock_set(leader, shown, by);
    }

    /// Takes note that a pod of a rollout's candidate is about to stop being ready: only where another one serves meanwhile.
    pub(crate) fn falters(&mut self, id: &RolloutId, now: Time) -> bool {
        let serves = self.rollouts.iter().any(|seen| seen.id == *id && seen.ready().candidate > 1);
        if serves {
            self.spans.falters(id, now);
        }
        serves
    }

    /// And that all are ready again.
    pub(crate) fn recovers(&mut self, id: &RolloutId, now: Time) {
        self.spans.recovers(id, now);
    }

    /// Takes note since when stable has fewer pods that are ready, if it has.
    pub(crate) fn starves(&mut self, id: &RolloutId, since: Option<Time>) {
        self.rollouts.iter_mut().filter(|seen| seen.id == *id).for_each(|seen| seen.starves = since);
    }

    /// Somebody is about to write. What was sent before the Lease went may arrive later; a Lease that a hand has changed says
    /// nothing until its holder can have noticed.
    pub(crate) fn writes(&mut self, caller: &str, what: &str) {
        self.catch_up(self.now);
        let holder = self.leader();
        if holder == caller || self.meddled.is_some_and(|at| (self.now - at).num_seconds() <= NOTICES) {
            return;
        }
        let what = format!("{caller} writes {what} while {holder:?} holds the Lease");
        self.fail(self.now, "there is one writer", &what);
    }

    fn look(&mut self, place: usize, world: &World, caller: &str) {
        self.rollouts[place].look_behind(world);
        for change in self.rollouts[place].changes(world) {
            self.changed(place, world, caller, change);
        }
        if self.rollouts[place].part.shape.is_tried_out() {
            self.see_jobs(place, world, caller);
        }
        if self.rollouts[place].part.shape.router == Router::Daemon {
            self.see_pods(place, world, caller);
        }
    }

    fn see_jobs(&mut self, place: usize, world: &World, caller: &str) {
        let seen = &mut self.rollouts[place];
        let (came, wrong) = seen.jobs.look(world, seen.part.shape.name);
        let at = self.now.format("%H:%M:%S%.3f");
        self.transcript.extend(came.iter().map(|name| format!("{at} {caller} jobs/{name}")));
        if let Some(wrong) = wrong {
            self.fail(self.now, "a Job is made once, when Git says that it is waited for", &wrong);
        }
    }

    fn see_pods(&mut self, place: usize, world: &World, caller: &str) {
        let asked = self.rollouts[place].look_at_pods(world);
        for Asked { name, wrong } in asked.into_iter().filter(|_| !caller.is_empty()) {
            self.transcript.push(format!("{} {caller} pods/{name} goes", self.now.format("%H:%M:%S%.3f")));
            if let Some(wrong) = wrong {
                self.fail(self.now, "pods become new in the order of their nodes", &wrong);
            }
        }
        self.see_exposed(place, self.now);
    }

    /// Pods that no object of Tidegate's counts are new beyond the record.
    fn see_exposed(&mut self, place: usize, now: Time) {
        let seen = &self.rollouts[place];
        let what = self.records.get(&seen.id).filter(|_| !seen.touched).and_then(|record| seen.pods_exposed(record));
        if let Some(what) = what {
            let what = format!("{}: {what}", seen.id);
            self.fail(now, "live ≤ recorded", &what);
        }
    }

    fn changed(&mut self, place: usize, world: &World, caller: &str, change: Change) {
        let now = world.now();
        // The share of a canary Ingress stands in its annotations.
        let part = if change.plural == "ingresses" { "metadata" } else { "spec" };
        let spec = |object: &Option<Arc<Value>>| object.as_ref().map(|object| object[part].clone());
        if spec(&change.before) != spec(&change.after) {
            self.events += 1;
            let by = if caller.is_empty() { "others" } else { TIDEGATE };
            let named = (change.plural, change.name.as_str());
            self.rollouts[place].act().wrote(Nanos(self.events), by, named, change.after.as_ref());
        }
        if !caller.is_empty() {
            let version = change.after.as_ref().map_or(&Value::Null, |object| &object["metadata"]["resourceVersion"]);
            self.transcript.push(format!(
                "{} {caller} {}/{} {version}",
                now.format("%H:%M:%S%.3f"),
                change.plural,
                change.name
            ));
            let record = self.records.get(&self.rollouts[place].id);
            let (seen, hears) = (&self.rollouts[place], TimeDelta::seconds(LATE));
            let unfit = seen.unfit(&change, record).or_else(|| seen.crowded(&change, record?, now - hears));
            if let Some((invariant, what)) = unfit {
                self.fail(now, invariant, &what);
            }
        }
        let objects = &mut self.rollouts[place].objects;
        match change.after {
            Some(object) => drop(objects.insert((change.plural, change.name), object)),
            None => drop(objects.remove(&(change.plural, change.name))),
        }
    }

    /// What the promise says of all that was seen, and what was found besides.
    pub(crate) fn verdict(&self) -> Option<String> {
        let mut acts = self.rollouts.iter().flat_map(|seen| &seen.acts);
        let ahead = || acts.find_map(Act::broken).map(|violation| format!("live ≤ recorded: {violation}"));
        self.found.clone().or_else(ahead)
    }

    /// Whether live tells of the newest record.
    pub(crate) fn is_told(&self) -> bool {
        let newest = self.records.values().map(|record| record.seq).max();
        let objects = self.rollouts.iter().flat_map(|seen| seen.objects.values());
        objects.filter_map(|object| seq(object)).max() >= newest
    }

    /// Where a rollout stands, in one line.
    pub(crate) fn standing(&self, id: &RolloutId) -> String {
        let (Some(state), Some(seen)) = (self.records.get(id), self.rollouts.iter().find(|seen| seen.id == *id)) else {
            return format!("{id}: no record");
        };
        let refused: Vec<&str> = state.refused.iter().map(|refused| refused.revision.short()).collect();
        let promoted = state.promoted.as_ref().map_or("", |promoted| promoted.revision.short());
        let rest = match &state.phase {
            Phase::Steady { how, .. } => format!("Steady {how:?}"),
            other => other.name().to_owned(),
        };
        let candidate = !seen.candidate_rests();
        let (image, pods, weight) = (seen.image(), seen.pods(), seen.weight());
        format!(
            "{id}: {rest}, {image}, {pods} pods, weight {weight}, candidate {candidate}, promoted {promoted}, refused {refused:?}"
        )
    }

    /// How many pods a rollout has.
    pub(crate) fn pods(&self, id: &RolloutId) -> u64 {
        self.rollouts.iter().find(|seen| seen.id == *id).map_or(0, Seen::pods)
    }

    /// Whether a rollout is at rest with this image and so many pods, and nothing else of it is there.
    pub(crate) fn rests(&self, id: &RolloutId, tag: &str, pods: u64) -> bool {
        let Some(seen) = self.rollouts.iter().find(|seen| seen.id == *id) else { return false };
        let tagged = seen.image() == format!("{}:{tag}", seen.part.shape.name);
        tagged && seen.is_measured_as(tag) && seen.pods() == pods && seen.weight() == 0 && seen.candidate_rests()
    }
}

fn place_of(rollouts: &[Seen], id: &RolloutId) -> usize {
    rollouts.iter().position(|seen| seen.id == *id).unwrap()
}

/// A run that goes on although a person said to take it back. In its last steps there is nothing left to lower.
fn rises(before: &RolloutState, state: &RolloutState) -> Option<String> {
    let run = before.run.as_ref().filter(|_| !matches!(before.phase, Phase::Finalising(_)))?;
    let known =
        |said: &Consumed| before.consumed.iter().any(|known| (&known.path, &known.blob) == (&said.path, &said.blob));
    let lowers =
        |said: &&Consumed| said.void.is_none() && matches!(said.action.as_str(), "abort" | "rollback") && !known(said);
    let said = state.consumed.iter().find(lowers)?;
    let goes_on =
        state.run.as_ref().is_some_and(|open| open.id == run.id) && !matches!(state.phase, Phase::Reverting { .. });
    goes_on.then(|| format!("{}: run {} goes on after {}", state.metadata, run.id, said.path))
}
