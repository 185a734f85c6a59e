//! What a process has for its whole life, and what it does while Git keeps a tick waiting.

use super::clock::Clock;
use super::evidence::Collector;
use super::execute::{Executor, Lists};
use super::gaps::Gaps;
use super::lead::Lead;
use super::observe::{Scene, Snapshot};
use super::source::View;
use crate::cluster::client::Cluster;
use crate::cluster::lease::LeaseHeld;
use crate::cluster::watch::Watches;
use crate::manifest::ids::{ClusterName, InstanceName, Namespace};
use crate::plan::draft::RolloutPlan;
use crate::plan::input::MayStart;
use crate::plan::planner;
use crate::record::state::{Time, Writer};
use crate::report::metrics::Metrics;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often open runs are looked at while Git keeps a tick waiting, if nothing happens.
const LOOK: Duration = Duration::from_secs(2);

/// What a process has for its whole life.
pub struct Shell {
    /// Who we are.
    pub instance: InstanceName,
    /// What the installation calls our cluster.
    pub cluster_name: ClusterName,
    /// Our cluster.
    pub cluster: Cluster,
    /// What is live there.
    pub watches: Watches,
    /// The namespaces that we serve: they bound everything.
    pub namespaces: BTreeSet<Namespace>,
    /// The name of main, as people say it.
    pub main: String,
    /// The time.
    pub clock: Clock,
    /// Dry runs and failures.
    pub evidence: Collector,
    /// Who leads.
    pub lead: Lead,
    /// Told of whatever may matter.
    pub woken: Arc<Notify>,
    /// Numbers.
    pub metrics: Metrics,
}

impl Shell {
    /// Who a plan of this term is written by.
    #[must_use]
    pub fn writer(&self, held: &LeaseHeld) -> Writer {
        Writer {
            instance: self.instance.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: self.cluster_name.clone(),
            cluster_uid: self.cluster.uid().to_owned(),
            epoch: held.epoch(),
        }
    }

    /// What writes to the cluster in this tick.
    #[must_use]
    pub fn executor(&self, now: Time) -> Executor<'_> {
        Executor {
            cluster: &self.cluster,
            watches: &self.watches,
            evidence: &self.evidence,
            lead: &self.lead,
            metrics: &self.metrics,
            now,
        }
    }

    /// Looks at all open runs and does what goes back: what may happen while Git keeps a tick waiting.
    async fn retreat_only(&self, held: &LeaseHeld, view: &View, gaps: &Gaps) {
        let mut gaps = gaps.clone();
        let snapshot = Snapshot::take(&self.watches, &self.namespaces, &mut gaps, self.clock.now());
        let me = self.writer(held);
        let scene = Scene { me: &me, view, snapshot: &snapshot, gaps: &gaps };
        let mut plans = Vec::new();
        for state in view.records.states().filter(|state| state.run.is_some()) {
            let id = &state.metadata;
            let plan = planner::plan(&scene.input(id, self.evidence.of(id), MayStart::Yes));
            self.evidence.measure(id, &plan.questions);
            plans.push(plan);
        }
        let mut lists = Lists::new();
        for action in plans.iter().flat_map(RolloutPlan::going_back) {
            lists.entry(&action.rollout).or_default().push(action);
        }
        if !lists.is_empty() {
            self.executor(snapshot.now).retreats(held, &lists).await;
        }
    }

    /// Waits for `work`, and lets retreats happen meanwhile.
    pub async fn during<T>(&self, held: &LeaseHeld, view: &View, gaps: &Gaps, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut woken = false;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut work => break result,
                () = self.woken.notified() => {
                    woken = true;
                    self.retreat_only(held, view, gaps).await;
                }
                // A deadline may pass meanwhile.
                () = sleep(LOOK) => self.retreat_only(held, view, gaps).await,
            }
        };
        if woken {
            // What woke us has to be looked at as a whole.
            self.woken.notify_one();
        }
        result
    }
}
