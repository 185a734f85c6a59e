//! Tells people what is recorded; a retreat at once. It can never change a plan, and no tick waits for it.

use super::source::LoadedRecord;
use crate::cluster::client::Cluster;
use crate::cluster::events::{EventLevel, KubeEvent};
use crate::manifest::ids::RolloutId;
use crate::manifest::object::{Kind, ObjectRef};
use crate::plan::action::Action;
use crate::record::state::{Owned, RoleName, RolloutState, Time};
use crate::report::metrics::Metrics;
use crate::report::transition::transition;
use crate::workload::kinds::shared;
use crate::workload::live::Expects;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// How many Events may be on their way; beyond that they are dropped, as they are only a courtesy.
const AT_ONCE: usize = 64;

/// Tells people.
pub struct Announcer {
    cluster: Cluster,
    metrics: Metrics,
    posts: JoinSet<()>,
}

impl Announcer {
    /// Nothing told yet.
    #[must_use]
    pub fn new(cluster: Cluster, metrics: Metrics) -> Self {
        Self { cluster, metrics, posts: JoinSet::new() }
    }

    /// Tells of records that were pushed. `before` says what they were.
    pub fn recorded<'a>(
        &mut self,
        changes: &BTreeMap<RolloutId, Option<LoadedRecord>>,
        before: impl Fn(&RolloutId) -> Option<&'a RolloutState>,
        why: &BTreeMap<RolloutId, String>,
        now: Time,
    ) {
        for (id, record) in changes {
            let what = why.get(id).map_or("", String::as_str);
            let Some(after) = record.as_ref().and_then(|record| record.state.as_ref().ok()) else {
                tracing::info!(rollout = %id, what, "the record ended");
                continue;
            };
            let Some(told) = transition(before(id), after, what) else {
                tracing::info!(rollout = %id, seq = after.seq, what, "recorded");
                continue;
            };
            self.metrics.entered(&after.phase);
            let run = after.run.as_ref().map(|run| run.id.as_str()).unwrap_or_default();
            let revision = after.run.as_ref().map(|run| run.revision.short());
            let revision = revision.or_else(|| after.promoted.as_ref().map(|promoted| promoted.revision.short()));
            tracing::info!(
                rollout = %id, phase = after.phase.name(), run, revision = revision.unwrap_or_default(),
                seq = after.seq, reason = what, "{}", told.message
            );
            let level = if told.warning { EventLevel::Warning } else { EventLevel::Normal };
            if let Some((about, uid)) = target(after) {
                self.post(about, Some(uid), level, told.reason, told.message, now);
            }
        }
    }

    /// Tells at once that traffic was taken back.
    pub fn retreated(&mut self, action: &Action, now: Time) {
        let about = action.verb.target().clone();
        let uid = match action.verb.expects() {
            Expects::Uid(uid) | Expects::Version { uid, .. } => Some(uid.clone()),
            Expects::Absent => None,
        };
        self.post(about, uid, EventLevel::Warning, "Retreated", action.why.clone(), now);
    }

    /// Tells that the Git server does not take the next record of a rollout; `record` is the one that it has.
    pub fn rejected(&mut self, record: Option<&RolloutState>, why: &str, now: Time) {
        if let Some((about, uid)) = record.and_then(target) {
            let message = format!("the Git server does not take the record, so nothing goes on: {why}");
            self.post(about, Some(uid), EventLevel::Warning, "RecordRejected", message, now);
        }
    }

    fn post(
        &mut self,
        about: ObjectRef,
        uid: Option<String>,
        level: EventLevel,
        reason: &'static str,
        message: String,
        now: Time,
    ) {
        while self.posts.try_join_next().is_some() {}
        if self.posts.len() >= AT_ONCE {
            tracing::debug!(%about, reason, "too many Events at once; this one is dropped");
            return;
        }
        let cluster = self.cluster.clone();
        self.posts.spawn(async move {
            let event = KubeEvent { about: &about, uid: uid.as_deref(), level, reason, message: &message };
            cluster.announce(&event, now).await;
        });
    }

    /// Waits until everything is told.
    pub async fn finish(&mut self) {
        while self.posts.join_next().await.is_some() {}
    }
}

/// The stable Deployment, as the record lists it, or the workload that both roles share, which may have the candidate's mark during a run;
/// without them it is a Service that is rolled out.
fn target(state: &RolloutState) -> Option<(ObjectRef, String)> {
    let owned = state.clusters.values().flat_map(|cluster| &cluster.inventory);
    let named = |kind| {
        let is = |o: &&Owned| o.reference.kind == kind && (shared::KINDS.contains(&kind) || o.role == RoleName::Stable);
        owned.clone().find(is)
    };
    let found = [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet, Kind::Service].into_iter().find_map(named);
    found.map(|owned| (owned.reference.clone(), owned.uid.clone()))
}
