//! What was seen of one rollout, and why a change of it must not have been.

use crate::convergence::acts::{Act, Names};
use crate::convergence::behind::{self, Behind};
use crate::convergence::check::{KINDS, MONITORS, TIDEGATE};
use crate::convergence::daemon::{self, Asked, Pods};
use crate::convergence::hooks::Hooks;
use crate::convergence::jobs::Jobs;
use crate::convergence::routes::{self, Backend};
use crate::convergence::shape::Router;
use crate::convergence::story::Part;
use crate::promise::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::desired::Layout;
use tidegate::manifest::ids::RolloutId;
use tidegate::manifest::object::{PODS, SEQ};
use tidegate::record::state::{Phase, RolloutState, Time};
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// How many versions a rollout has at most.
const VERSIONS: u64 = 6;

/// One rollout.
pub(crate) struct Seen {
    pub(crate) part: Part,
    pub(crate) id: RolloutId,
    /// What the versions call their objects by now.
    pub(crate) names: Names,
    pub(crate) acts: Vec<Act>,
    pub(crate) objects: BTreeMap<(&'static str, String), Arc<Value>>,
    /// What answers, where the target is a Service.
    behind: Behind,
    /// The pods, where the target is a DaemonSet.
    pub(crate) daemons: Pods,
    /// The Jobs before its steps.
    pub(crate) jobs: Jobs,
    /// What its hook is told.
    pub(crate) hooks: Hooks,
    /// The version of the world that was looked at last.
    looked: u64,
    /// Where objects of it may be.
    places: Vec<(&'static Resource, &'static str, String)>,
    pub(crate) blob: Option<git2::Oid>,
    /// Once it is at rest for the first time.
    pub(crate) began: bool,
    /// Whether a hand has changed what is live.
    pub(crate) touched: bool,
    /// Since when fewer of stable's pods are ready.
    pub(crate) starves: Option<Time>,
}

/// A change of one object.
pub(crate) struct Change {
    pub(crate) plural: &'static str,
    pub(crate) name: String,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

impl Seen {
    pub(crate) fn new(part: &Part) -> Self {
        let shape = &part.shape;
        let (id, names) = (format!("shop/{}", shape.name).parse().unwrap(), Names::first(shape));
        let suffixes: Vec<String> = match shape.layout {
            Layout::InPlace | Layout::Primary => ["", "-canary", "-primary", "-copies"].map(str::to_owned).into(),
            Layout::Versioned => (1..=VERSIONS).map(|number| format!("-v{number}")).chain([String::new()]).collect(),
        };
        let places = KINDS.iter().flat_map(|(api, kind, plural)| {
            let resource = Resource::of_kind(api, kind).unwrap();
            suffixes.iter().map(move |suffix| (resource, *plural, format!("{}{suffix}", shape.name)))
        });
        Self {
            part: part.clone(),
            id,
            acts: vec![Act::new(shape, names.clone())],
            names,
            objects: BTreeMap::new(),
            behind: Behind::default(),
            daemons: Pods::default(),
            jobs: Jobs::default(),
            hooks: Hooks::default(),
            looked: 0,
            places: places.collect(),
            blob: None,
            began: false,
            touched: false,
            starves: None,
        }
    }

    /// What happens by now is a part of this.
    pub(crate) fn act(&mut self) -> &mut Act {
        self.acts.last_mut().unwrap()
    }

    /// Takes note of a record, and of what objects are called by it.
    pub(crate) fn recorded(&mut self, at: Nanos, commit: String, state: Option<&RolloutState>) {
        let shape = &self.part.shape;
        self.names = state.and_then(|state| Names::recorded(shape, state)).unwrap_or_else(|| self.names.clone());
        let another = self.acts.last().is_some_and(|act| act.names != self.names);
        if another && self.names.candidate != Names::first(shape).candidate {
            let mut act = Act::new(shape, self.names.clone());
            for ((plural, name), object) in &self.objects {
                act.wrote(at, TIDEGATE, (*plural, name.as_str()), Some(object));
            }
            self.acts.push(act);
        }
        if let Some(state) = state {
            self.jobs.recorded(state);
            self.hooks.recorded(state);
        }
        self.act().recorded(at, commit, state);
    }

    /// Looks at the pods of a DaemonSet.
    pub(crate) fn look_at_pods(&mut self, world: &World) -> Vec<Asked> {
        let set = self.stable().cloned();
        self.daemons.look(world, self.part.shape.name, set.as_ref(), self.part.shape.pace())
    }

    /// What pods of a DaemonSet are beyond the record.
    pub(crate) fn pods_exposed(&self, record: &RolloutState) -> Option<String> {
        self.daemons.exposed(record, self.stable()?)
    }

    /// Looks at what answers by the Services of both versions, where one is the target.
    pub(crate) fn look_behind(&mut self, world: &World) {
        if self.part.shape.leads.is_some() {
            let [stable, candidate] =
                [&self.names.service, &self.names.canary].map(|name| behind::answering(world, name));
            self.behind = Behind { stable, candidate };
        }
    }

    /// What is not as it was seen last.
    pub(crate) fn changes(&mut self, world: &World) -> Vec<Change> {
        let looked = std::mem::replace(&mut self.looked, world.version());
        let moved = self.places.iter().filter(|(resource, ..)| !world.is_still(resource, looked));
        let changed = moved.filter_map(|(resource, plural, name)| {
            let after = world.get(resource, "shop", name);
            let before = self.objects.get(&(*plural, name.clone()));
            let same = match (before, after) {
                (Some(before), Some(after)) => Arc::ptr_eq(before, after),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            let change = || Change { plural, name: name.clone(), before: before.cloned(), after: after.cloned() };
            (!same).then(change)
        });
        changed.collect()
    }

    fn get(&self, plural: &'static str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&(plural, name.to_owned()))
    }

    fn stable(&self) -> Option<&Arc<Value>> {
        let (_, plural) = self.part.shape.target();
        self.get(plural, &self.names.stable)
    }

    fn candidate(&self) -> Option<&Arc<Value>> {
        let plural = if self.part.shape.leads.is_some() { "services" } else { "deployments" };
        self.get(plural, &self.names.candidate)
    }

    /// How many pods of both versions answer.
    pub(crate) fn ready(&self) -> Behind {
        let ready = |target: Option<&Arc<Value>>| {
            target.map_or(0, |target| target["status"]["readyReplicas"].as_u64().unwrap_or(0))
        };
        match self.part.shape.leads {
            Some(_) => self.behind,
            None => Behind { stable: ready(self.stable()), candidate: ready(self.candidate()) },
        }
    }

    fn route(&self) -> Option<&Arc<Value>> {
        let (plural, name) = self.part.shape.router.route(self.part.shape.name)?;
        self.get(plural, &name)
    }

    /// Whether the candidate is as it is without a run: not there, or without pods. Of pods that are no copies all are of one
    /// version then.
    pub(crate) fn candidate_rests(&self) -> bool {
        if self.part.shape.router == Router::Daemon {
            return self.stable().is_some_and(|set| daemon::rests(set));
        }
        if self.part.shape.router == Router::Set {
            let open =
                |set: &Arc<Value>| set["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
            return self
                .stable()
                .is_some_and(|set| open(set) == 0 && set["status"]["readyReplicas"] == set["spec"]["replicas"]);
        }
        match self.part.shape.layout {
            Layout::InPlace => self.candidate().is_none(),
            Layout::Primary => self.candidate().is_some_and(|target| target["spec"]["replicas"] == 0),
            Layout::Versioned => self.objects.keys().all(|(plural, name)| {
                let own = matches!(*plural, "deployments" | "services");
                !own || *name == self.names.stable
            }),
        }
    }

    pub(crate) fn image(&self) -> String {
        self.stable().map_or_else(String::new, |stable| self.image_of(stable))
    }

    fn image_of(&self, target: &Value) -> String {
        if self.part.shape.leads.is_some() {
            return behind::image(self.part.shape.name, target);
        }
        let image = &target["spec"]["template"]["spec"]["containers"][0]["image"];
        image.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn pods(&self) -> u64 {
        let path =
            if self.part.shape.router == Router::Daemon { "/status/desiredNumberScheduled" } else { "/spec/replicas" };
        self.stable().and_then(|stable| stable.pointer(path)?.as_u64()).unwrap_or(0)
    }

    /// The candidate's share in percent, as the route or the Service says.
    pub(crate) fn weight(&self) -> u64 {
        let name = self.part.shape.name;
        match self.part.shape.router {
            Router::Route
            | Router::Grpc
            | Router::Mesh
            | Router::Ingress
            | Router::Traefik
            | Router::IngressRoute
            | Router::Proxy
            | Router::Table => self.route().map_or(0, |route| self.share(route)),
            Router::Set | Router::Daemon => 0,
            Router::Pods | Router::Service => {
                let alone = self.get("services", name).is_some_and(|service| self.leads_to_candidate(service));
                if alone { 100 } else { 0 }
            }
        }
    }

    /// Whether a Service asks for the candidate's pods alone.
    fn leads_to_candidate(&self, service: &Value) -> bool {
        let selector = &service["spec"]["selector"];
        match self.part.shape.router {
            Router::Pods => selector[PODS].is_string(),
            Router::Service => selector["app"] == format!("{}-canary", self.part.shape.name),
            router => {
                debug_assert!(router.is_shared() || router.route("").is_some(), "{router}");
                false
            }
        }
    }

    /// Whether anything leads to the candidate.
    fn names_candidate(&self) -> bool {
        self.weight() > 0 || self.is_led_to(&self.names.canary)
    }

    /// Whether the route leads to a Service.
    fn is_led_to(&self, service: &str) -> bool {
        let names =
            |route: &Arc<Value>| self.backends(route).iter().any(|found| found.to == service && found.weight > 0);
        self.route().is_some_and(names)
    }

    /// Whether somebody is led to the candidate who is told by a request.
    pub(crate) fn has_testers(&self) -> bool {
        let led = |found: &Backend| found.alone && found.to == self.names.canary && found.weight > 0;
        self.route().is_some_and(|route| self.backends(route).iter().any(led))
    }

    /// Whether requests come by what copies them.
    fn comes_by(&self, copier: &str) -> bool {
        self.route().is_some_and(|route| routes::comes_by(&route["spec"], copier))
    }

    fn backends(&self, route: &Value) -> Vec<Backend> {
        self.part.shape.router.backends(self.part.shape.name, route)
    }

    /// The candidate's share of the requests that no header tells apart, in percent.
    fn share(&self, route: &Value) -> u64 {
        let backends = self.backends(route);
        let plain = || backends.iter().filter(|found| !found.alone);
        let all: u64 = plain().map(|found| found.weight).sum();
        let new: u64 = plain().filter(|found| found.to == self.names.canary).map(|found| found.weight).sum();
        if all == 0 { 0 } else { (new * 100).div_ceil(all) }
    }

    /// Why a controller must not have written that.
    pub(crate) fn unfit(&self, change: &Change, record: Option<&RolloutState>) -> Option<(&'static str, String)> {
        let what = format!("{}/{}", change.plural, change.name);
        if self.began && self.part.chapters.is_empty() {
            return Some(("who is not touched is left alone", what));
        }
        let is_route = self.part.shape.router.route(self.part.shape.name) == Some((change.plural, change.name.clone()));
        let candidate = match change.plural {
            "deployments" => change.name == self.names.candidate,
            _ => change.name == self.names.canary,
        };
        let Some(after) = &change.after else {
            // Of versions with names of their own the old one's objects go, too.
            let led = self.is_led_to(&change.name) || candidate && self.names_candidate();
            let led = led || change.plural == "traefikservices" && self.comes_by(&change.name);
            return (led && !is_route)
                .then(|| ("no weight names a set that is not there", format!("{what} was deleted")));
        };
        let before = change.before.as_ref();
        // Nothing can be asked to be absent: a create that comes late meets what is there, and makes it a candidate of no pods.
        let made = self.part.shape.layout == Layout::InPlace && candidate;
        let create = made
            && (change.plural == "services" || after["spec"]["replicas"] == 0 || is_route && self.share(after) == 0);
        if let (Some(old), Some(new)) = (before.and_then(|object| seq(object)), seq(after))
            && new < old
            && !create
        {
            return Some(("old plans die", format!("{what} was written under record {new} after {old}")));
        }
        let (_, target) = self.part.shape.target();
        match (change.plural, candidate) {
            _ if is_route => self.misled(before, after),
            (plural, _) if plural == MONITORS.2 => {
                Self::early(before, after, record).map(|what| ("the rest stays stable's until promotion", what))
            }
            // Of what both versions share the order of its pods is told.
            (plural, false) if plural == target && !self.part.shape.router.is_shared() => {
                self.resized(before, after).or_else(|| self.overwritten(before, after, record))
            }
            ("services", false) => {
                let news =
                    self.leads_to_candidate(after) && !before.is_some_and(|before| self.leads_to_candidate(before));
                (news && self.ready().candidate == 0)
                    .then(|| ("weights name ready pods only", format!("{what} asks for pods of which none is ready")))
            }
            _ => None,
        }
    }

    /// What is known by its names alone is stable's until the promotion.
    fn early(before: Option<&Arc<Value>>, after: &Arc<Value>, record: Option<&RolloutState>) -> Option<String> {
        let step =
            record?.phase.position().filter(|_| matches!(record.map(|r| &r.phase), Some(Phase::Progressing(_))))?;
        let [old, new] = [before?, after].map(|object| &object["spec"]["jobLabel"]);
        (old != new).then(|| format!("{new} in place of {old} while the run stands on {}", step.step))
    }

    /// Whether what stands beside a version is that of it.
    pub(crate) fn is_measured_as(&self, tag: &str) -> bool {
        let monitor = self.get(MONITORS.2, self.part.shape.name);
        !self.part.shape.beside || monitor.is_some_and(|monitor| monitor["spec"]["jobLabel"] == tag)
    }

    /// A route that sends requests where nobody answers.
    fn misled(&self, before: Option<&Arc<Value>>, after: &Arc<Value>) -> Option<(&'static str, String)> {
        let name = self.part.shape.name;
        let (was, is) = (before.map_or(0, |before| self.share(before)), self.share(after));
        let Names { service, canary, .. } = &self.names;
        let backends = self.backends(after);
        let sum: u64 = backends.iter().filter(|found| !found.alone).map(|found| found.weight).sum();
        // In the end a version with a name of its own is alone.
        let shared = [service, canary].iter().all(|to| backends.iter().any(|found| found.to == **to));
        if shared && sum != 100 {
            return Some(("weights sum to 100", format!("those of {name} sum to {sum}")));
        }
        let named = |route: &Value| self.backends(route).iter().any(|found| found.to == *canary && found.weight > 0);
        let raised = is > was || (named(after) && !before.is_some_and(|before| named(before)));
        let wanted = (self.pods() * is).div_ceil(100).max(1);
        let Behind { stable, candidate: there } = self.ready();
        if raised && there < wanted && !self.touched {
            let what = format!("{name} goes from {was} to {is} with {there} of {wanted} ready");
            return Some(("weights name ready pods only", what));
        }
        let lost = is < was && stable == 0 && there > 0;
        lost.then(|| ("weights name ready pods only", format!("{name} goes back to a stable that has none")))
    }

    /// By pods, a candidate that grows beyond its share of the pods that answer, which are fewer since a time before `heard`.
    pub(crate) fn crowded(
        &self,
        change: &Change,
        record: &RolloutState,
        heard: Time,
    ) -> Option<(&'static str, String)> {
        self.starves.filter(|since| *since < heard)?;
        let is_candidate = change.plural == "deployments" && change.name == self.names.candidate;
        let pods = |object: &Option<Arc<Value>>| object.as_ref().and_then(|object| object["spec"]["replicas"].as_u64());
        let (was, is) = (pods(&change.before).unwrap_or(0), pods(&change.after)?);
        let weight = u64::from(record.clusters.values().next()?.posture.split.weight.get());
        let stable = self.ready().stable;
        let most = (stable * weight).checked_div(100 - weight)?;
        (is_candidate && stable > 0 && is > was && is > most).then(|| {
            let what =
                format!("{} pods become {is} beside {stable} that are ready, for {weight} %", self.names.candidate);
            ("by pods the share is one of pods that answer", what)
        })
    }

    /// A number of stable's pods that is an autoscaler's word.
    fn resized(&self, before: Option<&Arc<Value>>, after: &Value) -> Option<(&'static str, String)> {
        let (was, is) = (&before?["spec"]["replicas"], &after["spec"]["replicas"]);
        let what = || format!("{} goes from {was} to {is} pods", self.names.stable);
        (self.part.shape.scaled && was != is).then(|| ("an autoscaler's number is left to it", what()))
    }

    /// A stable that is overwritten too early, or by what failed.
    fn overwritten(
        &self,
        before: Option<&Arc<Value>>,
        after: &Arc<Value>,
        record: Option<&RolloutState>,
    ) -> Option<(&'static str, String)> {
        let (name, image) = (self.part.shape.name, self.image_of(after));
        before.filter(|before| self.image_of(before) != image)?;
        if fails(&image) {
            return Some(("what fails is not promoted", format!("{name} becomes {image}")));
        }
        let going = record.is_some_and(|record| matches!(record.phase, Phase::Promoting(_) | Phase::Finalising(_)));
        let weight = self.weight();
        (going && weight != 100).then(|| {
            ("stable is overwritten once nothing leads to it", format!("{name} becomes {image} at weight {weight}"))
        })
    }
}

/// Whether a version does not do what it should.
pub(crate) fn fails(image: &str) -> bool {
    ["-errors", "-crash", "-untested"].iter().any(|fate| image.ends_with(fate))
}

/// The record that an object was written under last.
pub(crate) fn seq(object: &Value) -> Option<u64> {
    object["metadata"]["annotations"][SEQ].as_str()?.parse().ok()
}
