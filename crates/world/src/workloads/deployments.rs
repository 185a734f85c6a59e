//! The controller of Deployments: one ReplicaSet for each template, replaced step by step.

use super::{Controlled, Due, MANAGER, all, condition, count, digest, ends, owner, stamp, text, time, write_status};
use crate::kube_api::World;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::sync::Arc;

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// A Deployment with its ReplicaSets.
struct Rollout {
    deployment: Arc<Value>,
    /// The one of the current template.
    new: Option<Arc<Value>>,
    /// The others, the oldest first.
    old: Vec<Arc<Value>>,
}

pub(super) fn run(world: &mut World, due: &mut Due) {
    let sets = Controlled::all(world, "apps/v1", "ReplicaSet");
    for deployment in all(world, "apps/v1", "Deployment") {
        let mut ours: Vec<_> = sets.by(&deployment).iter().filter(|set| !ends(set)).cloned().collect();
        ours.sort_by_key(|set| revision(set));
        let (new, old) = ours.into_iter().partition(|set| is_of(set, &deployment["spec"]["template"]));
        let new: Vec<Arc<Value>> = new;
        let rollout = Rollout { deployment, new: new.into_iter().next(), old };
        if !ends(&rollout.deployment) {
            rollout.reconcile(world);
        }
        rollout.report(world, due);
    }
}

/// Whether a ReplicaSet is of that template.
fn is_of(set: &Value, template: &Value) -> bool {
    is_but(&set["spec"]["template"], template, &["metadata", "labels", HASH])
}

/// Whether a value is the other but for what it has at that path.
fn is_but(value: &Value, other: &Value, path: &[&str]) -> bool {
    let (Value::Object(value), Value::Object(other), [first, rest @ ..]) = (value, other, path) else {
        return value == other;
    };
    let mut known = value.iter().filter(|(key, _)| !rest.is_empty() || key.as_str() != *first);
    known.clone().count() == other.len()
        && known.all(|(key, value)| match other.get(key) {
            Some(other) if key.as_str() == *first => is_but(value, other, rest),
            found => found == Some(value),
        })
}

fn revision(object: &Value) -> i64 {
    object["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn size(set: &Value) -> i64 {
    count(&set["spec"]["replicas"], 1)
}

fn reached(set: &Value, what: &str) -> i64 {
    count(&set["status"][what], 0)
}

impl Rollout {
    fn wanted(&self) -> i64 {
        count(&self.deployment["spec"]["replicas"], 1)
    }

    fn sets(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.new.iter().chain(&self.old)
    }

    fn total(&self, what: &str) -> i64 {
        self.sets().map(|set| reached(set, what)).sum()
    }

    /// How many Pods there may be beyond what is wanted, and how many may be missing.
    fn bounds(&self) -> (i64, i64) {
        let rolling = &self.deployment["spec"]["strategy"]["rollingUpdate"];
        let part = |value: &Value, round_up: bool| {
            let Some(percent) = value.as_str() else { return count(value, 0) };
            let percent: i64 = percent.trim_end_matches('%').parse().unwrap_or(0);
            let hundredths = percent * self.wanted();
            if round_up { (hundredths + 99) / 100 } else { hundredths / 100 }
        };
        let (surge, missing) = (part(&rolling["maxSurge"], true), part(&rolling["maxUnavailable"], false));
        if surge == 0 && missing == 0 { (0, 1) } else { (surge, missing) }
    }

    fn reconcile(&self, world: &mut World) {
        let paused = self.deployment["spec"]["paused"] == true;
        match &self.new {
            // What follows is done with the ReplicaSet in the next round.
            None if !paused => self.make(world),
            None => self.resize_only(world),
            Some(new) if self.mark(world, new) => {}
            Some(_) if paused => self.resize_only(world),
            Some(new) if self.deployment["spec"]["strategy"]["type"] == "Recreate" => self.recreate(world, new),
            Some(new) => self.roll(world, new),
        }
    }

    /// Makes the ReplicaSet of the current template, at once with as many Pods as there may be now.
    fn make(&self, world: &mut World) {
        let all: i64 = self.old.iter().map(|set| size(set)).sum();
        let replicas = match self.deployment["spec"]["strategy"]["type"].as_str() {
            Some("Recreate") if !self.empty_old(world) => return,
            Some("Recreate") => self.wanted(),
            _ => (self.wanted() + self.bounds().0 - all).clamp(0, self.wanted()),
        };
        let deployment = &self.deployment;
        let mut template = deployment["spec"]["template"].clone();
        let hash = digest(&template);
        template["metadata"]["labels"][HASH] = hash.as_str().into();
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = hash.as_str().into();
        let revision = self.sets().map(|set| revision(set)).max().unwrap_or(0) + 1;
        let metadata = json!({
            "name": format!("{}-{hash}", text(deployment, "/metadata/name")),
            "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": owner(deployment),
        });
        let spec = json!({
            "replicas": replicas, "selector": selector, "template": template,
            "minReadySeconds": count(&deployment["spec"]["minReadySeconds"], 0),
        });
        // What the API refuses is tried again with the next round that something else brings about.
        drop(world.create("apps/v1", "ReplicaSet", MANAGER, json!({"metadata": metadata, "spec": spec})));
    }

    /// Writes the revision on the Deployment, and gives a template that came back the newest one. Returns whether
    /// something was written.
    fn mark(&self, world: &mut World, new: &Arc<Value>) -> bool {
        let newest = self.old.iter().map(|set| revision(set)).max().unwrap_or(0);
        let wanted = if revision(new) > newest { revision(new) } else { newest + 1 };
        for object in [new, &self.deployment] {
            if revision(object) != wanted {
                let mut next = object.as_ref().clone();
                next["metadata"]["annotations"][REVISION] = wanted.to_string().into();
                // As a part of the status, since any other change of annotations is a new generation.
                return world.update(next, "status", MANAGER).is_ok();
            }
        }
        let wait = count(&self.deployment["spec"]["minReadySeconds"], 0);
        if count(&new["spec"]["minReadySeconds"], 0) != wait {
            let mut next = new.as_ref().clone();
            next["spec"]["minReadySeconds"] = wait.into();
            return world.update(next, "", MANAGER).is_ok();
        }
        false
    }

    /// A paused Deployment is not rolled, but has its size: the newest that has Pods takes the difference.
    fn resize_only(&self, world: &mut World) {
        let last = self.new.iter().chain(self.old.iter().rev());
        if let Some(set) = last.clone().find(|set| size(set) > 0).or_else(|| last.clone().next()) {
            let rest: i64 = self.sets().map(|set| size(set)).sum::<i64>() - size(set);
            resize(world, set, (self.wanted() - rest).max(0));
        }
    }

    fn recreate(&self, world: &mut World, new: &Value) {
        if self.empty_old(world) {
            resize(world, new, self.wanted());
            self.clean_up(world);
        }
    }

    /// Lets all Pods of old templates go; whether none is left.
    fn empty_old(&self, world: &mut World) -> bool {
        for set in &self.old {
            resize(world, set, 0);
        }
        self.old.iter().all(|set| reached(set, "replicas") == 0 && reached(set, "terminatingReplicas") == 0)
    }

    fn roll(&self, world: &mut World, new: &Value) {
        let wanted = self.wanted();
        let (surge, missing) = self.bounds();
        let all: i64 = self.sets().map(|set| size(set)).sum();
        if size(new) > wanted {
            return resize(world, new, wanted);
        }
        let room = (wanted + surge - all).clamp(0, wanted - size(new));
        if room > 0 {
            return resize(world, new, size(new) + room);
        }
        // What is not available anyway goes first, the rest as far as enough stay available.
        let unavailable = size(new) - reached(new, "availableReplicas");
        let mut spare = all - (wanted - missing) - unavailable;
        let mut available = self.total("availableReplicas") - (wanted - missing);
        for set in self.old.iter().filter(|set| size(set) > 0) {
            let broken = (size(set) - reached(set, "availableReplicas")).clamp(0, spare.max(0));
            let healthy = (size(set) - broken).min(available.max(0)).min((spare - broken).max(0));
            if broken + healthy > 0 {
                resize(world, set, size(set) - broken - healthy);
                spare -= broken + healthy;
                available -= healthy;
            }
        }
        if self.is_complete() {
            self.clean_up(world);
        }
    }

    /// Removes ReplicaSets beyond the history that is kept.
    fn clean_up(&self, world: &mut World) {
        let keep = usize::try_from(count(&self.deployment["spec"]["revisionHistoryLimit"], 10)).unwrap_or(0);
        let empty = self.old.iter().filter(|set| size(set) == 0 && reached(set, "replicas") == 0);
        for set in empty.take(self.old.len().saturating_sub(keep)) {
            drop(world.terminate(set));
        }
    }

    fn updated(&self) -> i64 {
        self.new.as_ref().map_or(0, |new| reached(new, "replicas"))
    }

    fn is_complete(&self) -> bool {
        let wanted = self.wanted();
        self.updated() == wanted && self.total("replicas") == wanted && self.total("availableReplicas") == wanted
    }

    fn report(&self, world: &mut World, due: &mut Due) {
        let deployment = &self.deployment;
        let (all, available) = (self.total("replicas"), self.total("availableReplicas"));
        let ending = self.total("terminatingReplicas");
        let generation = &deployment["metadata"]["generation"];
        let mut status = json!({"observedGeneration": generation, "terminatingReplicas": ending});
        let counts = [
            ("replicas", all),
            ("updatedReplicas", self.updated()),
            ("readyReplicas", self.total("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (self.sets().map(|set| size(set)).sum::<i64>() - available).max(0)),
        ];
        for (key, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            status[key] = number.into();
        }
        let (_, missing) = self.bounds();
        let is_available = available >= self.wanted() - missing;
        let mut conditions = vec![if is_available {
            let message = "Deployment has minimum availability.";
            self.condition(world, "Available", "True", "MinimumReplicasAvailable", message, false)
        } else {
            let message = "Deployment does not have minimum availability.";
            self.condition(world, "Available", "False", "MinimumReplicasUnavailable", message, false)
        }];
        conditions.extend(self.progress(world, due, &status));
        status["conditions"] = conditions.into();
        write_status(world, deployment, status, MANAGER);
    }

    /// Whether the rollout gets on, is done, or has taken longer than it may.
    fn progress(&self, world: &World, due: &mut Due, status: &Value) -> Option<Value> {
        let deployment = &self.deployment;
        let deadline = deployment["spec"]["progressDeadlineSeconds"].as_i64()?;
        let new = self.new.as_ref()?;
        let name = text(new, "/metadata/name");
        let before = condition(deployment, "Progressing");
        if self.is_complete() {
            let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
            let done = before.is_some_and(|before| before["reason"] == "NewReplicaSetAvailable");
            return Some(self.condition(world, "Progressing", "True", "NewReplicaSetAvailable", &message, !done));
        }
        let counted = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        let moved = |key: &&str| count(&status[*key], 0) > count(&deployment["status"][*key], 0);
        let old = |status: &Value| count(&status["replicas"], 0) - count(&status["updatedReplicas"], 0);
        let moved = counted.iter().any(moved) || old(status) < old(&deployment["status"]);
        let begun = before.is_none_or(|before| before["reason"] == "NewReplicaSetAvailable" && self.is_behind());
        if moved || begun {
            let message = format!("ReplicaSet \"{name}\" is progressing.");
            due.at(world.now() + TimeDelta::seconds(deadline));
            return Some(self.condition(world, "Progressing", "True", "ReplicaSetUpdated", &message, true));
        }
        let before = before?;
        let late = time(&before["lastUpdateTime"])? + TimeDelta::seconds(deadline);
        let running = before["reason"] == "ReplicaSetUpdated";
        if running && world.now() >= late && deployment["spec"]["paused"] != true {
            let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
            return Some(self.condition(world, "Progressing", "False", "ProgressDeadlineExceeded", &message, true));
        }
        if running && world.now() < late {
            due.at(late);
        }
        Some(before.clone())
    }

    /// Whether Pods of the current template are still to come.
    fn is_behind(&self) -> bool {
        self.updated() < self.wanted() || self.total("replicas") > self.updated()
    }

    /// A condition: its times stay where nothing changes.
    fn condition(&self, world: &World, kind: &str, status: &str, reason: &str, message: &str, news: bool) -> Value {
        let now = stamp(world);
        let before = condition(&self.deployment, kind);
        let same = before.filter(|before| before["status"] == status);
        let since = same.map_or(&now, |same| &same["lastTransitionTime"]);
        let updated = same.filter(|_| !news).map_or(&now, |same| &same["lastUpdateTime"]);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since, "lastUpdateTime": updated,
        })
    }
}

fn resize(world: &mut World, set: &Value, replicas: i64) {
    if size(set) != replicas {
        let mut next = set.clone();
        next["spec"]["replicas"] = replicas.into();
        // Somebody was faster: the next round looks again.
        drop(world.update(next, "", MANAGER));
    }
}
