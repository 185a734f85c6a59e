//! Any rollout of a world, by its name.

use super::{DECISIONS, STATE, World};
use crate::support::cluster::{PATIENCE, eventually};
use crate::support::logs::{AuditLog, StateBranch};
use crate::support::promise::Checked;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest, RolloutState};

impl World {
    /// Waits until the record of a rollout is like that.
    pub(in crate::controller) async fn until_of(
        &self,
        name: &str,
        what: &str,
        like: impl Fn(&RolloutState) -> bool,
    ) -> RolloutState {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            self.assert_running();
            let record = self.record_of(name);
            if let Some(found) = record.clone().filter(|record| like(record)) {
                return found;
            }
            if tokio::time::Instant::now() >= deadline {
                let (beyond, phase) = (self.space.audited(&self.bed).await.beyond, record.as_ref().map(|r| &r.phase));
                panic!(
                    "{name}, {what}: the record is {record:#?}\nasked for, and not granted: {beyond:#?}\n\
                     {name}, {what}: {phase:?}"
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for a record of `web` like that in any commit of the state branch after `start`, whose tip it was: a step may be over
    /// before anybody looks.
    pub(in crate::controller) async fn until_since(
        &self,
        start: &str,
        what: &str,
        like: impl Fn(&RolloutState) -> bool,
    ) -> RolloutState {
        let rollout = format!("{}/web", self.space.name);
        eventually(what, async || {
            self.assert_running();
            let commits = self.origin.since(STATE, start);
            commits.iter().filter_map(|commit| self.record_in(commit, &rollout)).find(|record| like(record))
        })
        .await
    }

    /// The tip of the state branch.
    pub(in crate::controller) fn recorded(&self) -> String {
        self.origin.tip(STATE).expect("there are records")
    }

    /// Waits until a rollout rests like that.
    pub(in crate::controller) async fn until_steady_of(&self, name: &str, how: Rest) -> RolloutState {
        self.until_of(name, &format!("Steady {how:?}"), |record| is_steady(record, how)).await
    }

    /// Waits until a run of a rollout has failed; the record, and why in words.
    pub(in crate::controller) async fn until_failed_of(&self, name: &str) -> (RolloutState, String) {
        let failed = |record: &RolloutState| matches!(record.phase, Phase::Failed { .. });
        let record = self.until_of(name, "the failure", failed).await;
        let Phase::Failed { why, .. } = record.phase.clone() else { panic!("it has failed") };
        (record, why)
    }

    /// Waits until the record of a rollout has that condition, and returns its message.
    pub(in crate::controller) async fn until_condition_of(&self, name: &str, reason: Reason) -> String {
        let message = |record: &RolloutState| {
            record.conditions.iter().find(|c| c.reason == reason.as_str()).map(|c| c.message.clone())
        };
        let record = self.until_of(name, reason.as_str(), |record| message(record).is_some()).await;
        message(&record).unwrap()
    }

    /// Waits for the request of a rollout that ends like that; its branch.
    pub(in crate::controller) async fn request_of(&self, name: &str, end: &str) -> String {
        let pattern = format!("tidegate/it/propose/*/{name}/*-{end}");
        let branches = async || {
            self.assert_running();
            self.origin.first(&pattern)
        };
        eventually(&format!("a request for {end} of {name}"), branches).await
    }

    /// Waits for the request to let a rollout enter a step, and merges it.
    pub(in crate::controller) async fn approve_of(&self, name: &str, step: &str) {
        self.origin.merge(&self.request_of(name, step).await, DECISIONS);
    }

    /// Files a decision about a rollout on the decisions branch, with more fields.
    pub(in crate::controller) fn decide_of(&self, name: &str, run: &str, action: &str, more: &str) {
        let namespace = &self.space.name;
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{run: \"{run}\", action: {action}{more}}}\n"
        );
        let path = format!("{namespace}/{name}/{run}-{action}.yaml");
        self.origin.commit(DECISIONS, &[(&path, Some(text.as_bytes()))], action);
    }

    /// Where `web` stood in each commit of the state branch, oldest first: phase and step.
    pub(in crate::controller) fn story(&self) -> Vec<String> {
        let commits = self.origin.git(&["rev-list", "--reverse", &format!("refs/heads/{STATE}")]);
        let at = |commit: &str| {
            let record = self.record_in(commit, &format!("{}/web", self.space.name))?;
            let step = record.phase.position().map(|stop| format!(" {}", stop.step)).unwrap_or_default();
            Some(format!("{}{step}", record.phase.name()))
        };
        commits.lines().filter_map(at).collect()
    }

    /// The files of the state branch below the directory of `web`.
    pub(in crate::controller) fn state_files(&self) -> BTreeMap<String, String> {
        let prefix = format!("rollouts/{}/web/", self.space.name);
        let files = self.origin.tip(STATE).map(|tip| self.origin.files(&tip)).unwrap_or_default();
        let below = files.into_iter().filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?.to_owned(), bytes)));
        below.map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect()
    }

    /// Checks every instant so far of every rollout; what is known of `web` if there are several, of the last else.
    pub(in crate::controller) fn assert_kept(&self) -> Checked {
        let mut kept = self.kept();
        kept.remove("web").or_else(|| kept.pop_last().map(|(_, last)| last)).unwrap_or_default()
    }

    /// Checks every instant so far of every rollout; what is known of each, by its name.
    pub(in crate::controller) fn kept(&self) -> BTreeMap<String, Checked> {
        let moves = self.origin.path().join("stamps");
        let reference = format!("refs/heads/{STATE}");
        let branch = StateBranch { repository: self.origin.path(), moves: &moves, reference: &reference };
        let log = self.bed.audit_log();
        let audit = AuditLog { path: &log, begin: self.space.begin };
        self.watched.values().map(|one| (one.rollout.name.to_string(), one.assert_kept(audit, branch))).collect()
    }
}

/// Whether a rollout stands on that step.
pub(in crate::controller) fn is_on(record: &RolloutState, step: &str) -> bool {
    record.phase.position().is_some_and(|stop| stop.step.as_str() == step)
}

/// On the step `tenth`, seen in force.
pub(in crate::controller) fn is_exposed(record: &RolloutState) -> bool {
    record.phase.position().is_some_and(|stop| stop.step.as_str() == "tenth" && stop.clock.exposed.is_some())
}

/// Whether a rollout rests like that.
pub(in crate::controller) fn is_steady(record: &RolloutState, wanted: Rest) -> bool {
    matches!(record.phase, Phase::Steady { how, .. } if how == wanted)
}
