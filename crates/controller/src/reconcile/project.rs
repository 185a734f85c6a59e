//! Keeps the objects that show where rollouts stand ([`crate::report::projection`]). It can never change a plan, and nothing waits
//! for it: what cannot be written is tried again later.

use super::source::{GitView, LoadedRecords};
use crate::cluster::client::Cluster;
use crate::cluster::projection::{Projected, Unprojected};
use crate::manifest::ids::{CommitId, Namespace, RolloutId};
use crate::report::projection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// When what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(60);
/// How long the end of a process waits for what is on its way.
const LAST: Duration = Duration::from_secs(10);

/// What every object shall show; none while another leads.
type Goal = Option<Arc<BTreeMap<RolloutId, Value>>>;

/// Shows where rollouts stand.
pub(super) struct Projector {
    goal: watch::Sender<Goal>,
    /// The record that was shown last.
    shown: Option<CommitId>,
    keeping: JoinSet<()>,
}

impl Projector {
    /// Begins with nothing to show.
    #[must_use]
    pub(super) fn start(cluster: Cluster, namespaces: &BTreeSet<Namespace>) -> Self {
        let (goal, goals) = watch::channel(None);
        let writer = Writer { cluster, namespaces: namespaces.clone(), written: None, told: None };
        let mut keeping = JoinSet::new();
        keeping.spawn(writer.keep(goals));
        Self { goal, shown: None, keeping }
    }

    /// Shows what the record says. A record that cannot be read shows nothing new.
    pub(super) fn show(&mut self, view: &GitView) {
        if !matches!(view.records, LoadedRecords::Read(_)) || self.shown == view.tips.state {
            return;
        }
        self.shown.clone_from(&view.tips.state);
        let all = view.records.states().map(|state| (state.metadata.clone(), projection::status(state)));
        self.goal.send_replace(Some(Arc::new(all.collect())));
    }

    /// Another leads: it shows them.
    pub(super) fn rest(&mut self) {
        self.shown = None;
        self.goal.send_replace(None);
    }

    /// Waits until what was to be shown is written, or cannot be.
    pub(super) async fn finish(self) {
        let Self { goal, shown: _, mut keeping } = self;
        drop(goal);
        if timeout(LAST, keeping.join_next()).await.is_err() {
            tracing::debug!("some rollouts' objects were not written to the end");
        }
    }
}

struct Writer {
    cluster: Cluster,
    namespaces: BTreeSet<Namespace>,
    /// What the cluster holds; not known before it was listed.
    written: Option<BTreeMap<RolloutId, Projected>>,
    /// What is wrong, as it was told: once.
    told: Option<Unprojected>,
}

impl Writer {
    /// Until nobody says any more what shall be shown; what was said last is tried once.
    async fn keep(mut self, mut goals: watch::Receiver<Goal>) {
        loop {
            let goal = goals.borrow_and_update().clone();
            let reached = match goal {
                Some(goal) => self.reach(&goal).await,
                None => {
                    self.written = None;
                    Ok(())
                }
            };
            let pause = if reached.is_ok() { Duration::MAX } else { AGAIN };
            if let Err(why) = &reached
                && self.told.as_ref() != Some(why)
            {
                tracing::warn!(%why, "where rollouts stand is not shown as objects");
            }
            self.told = reached.err();
            if let Ok(Err(_)) = timeout(pause, goals.changed()).await {
                return;
            }
        }
    }

    /// Writes what is not as it shall be, and removes what has no rollout any more.
    async fn reach(&mut self, goal: &BTreeMap<RolloutId, Value>) -> Result<(), Unprojected> {
        let mut written = match self.written.take() {
            Some(written) => written,
            None => self.list().await?,
        };
        let mut first = None;
        for (id, status) in goal.iter().filter(|(id, _)| self.namespaces.contains(&id.namespace)) {
            if written.get(id).is_some_and(|known| known.status == *status) {
                continue;
            }
            match self.cluster.project(id, status).await {
                // What the API server makes of it is not compared: it may add to it.
                Ok(now) => drop(written.insert(id.clone(), Projected { status: status.clone(), ..now })),
                Err(why) => drop(first.get_or_insert(why)),
            }
        }
        let gone: Vec<RolloutId> = written.keys().filter(|id| !goal.contains_key(*id)).cloned().collect();
        for id in gone {
            let Some(known) = written.remove(&id) else { continue };
            if let Err(why) = self.cluster.unproject(&id, &known.uid).await {
                written.insert(id, known);
                first.get_or_insert(why);
            }
        }
        self.written = Some(written);
        first.map_or(Ok(()), Err)
    }

    async fn list(&self) -> Result<BTreeMap<RolloutId, Projected>, Unprojected> {
        let mut all = BTreeMap::new();
        for namespace in &self.namespaces {
            all.extend(self.cluster.projections(namespace).await?);
        }
        Ok(all)
    }
}
