//! What a process has for its whole life, and what it does while Git keeps a tick waiting.

use super::caught;
use super::clock::Clock;
use super::evidence::Collector;
use super::execute::{Executor, Lists, Ran};
use super::lead::Lead;
use super::observe::{Scene, Snapshot};
use super::plans::{BATCH, is_alarmed};
use super::source::GitView;
use super::table::Table;
use super::unobserved::UnobservedSpans;
use crate::cluster::client::Cluster;
use crate::cluster::lease::LeaseHeld;
use crate::cluster::watch::Watches;
use crate::gate::guard::Guard;
use crate::manifest::ids::{ClusterName, InstanceName, Namespace, RolloutId};
use crate::manifest::installation::HostKind;
use crate::manifest::proof::By;
use crate::plan::action::Action;
use crate::plan::draft::RolloutPlan;
use crate::plan::input::MayStart;
use crate::record::state::{Time, Writer};
use crate::report::metrics::Metrics;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
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
    /// Where requests are pull requests too.
    pub host: Option<HostKind>,
    /// What can prove approvals.
    pub by: By,
    /// What the Git host says of the decisions branch.
    pub guard: watch::Receiver<Guard>,
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

/// What a term knows while something keeps its tick waiting.
#[derive(Debug, Clone, Copy)]
pub struct Meanwhile<'a> {
    /// The proof that we lead.
    pub held: &'a LeaseHeld,
    /// What Git said last.
    pub view: &'a GitView,
    /// When nobody observed.
    pub gaps: &'a UnobservedSpans,
    /// What the last tick made of each rollout.
    pub table: &'a Table,
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

    /// Looks at the open runs that something happened to since `then`, or to all of them, and does what goes back: what may
    /// happen while Git keeps a tick waiting. Returns what it looked at.
    async fn retreat_only(&self, term: &Meanwhile<'_>, then: Option<&Snapshot>) -> Snapshot {
        let Meanwhile { held, view, gaps, table } = *term;
        let mut gaps = gaps.clone();
        let snapshot = Snapshot::take(&self.watches, &self.namespaces, &mut gaps, &self.clock);
        let me = self.writer(held);
        let guard = self.guard.borrow().clone();
        let scene = Scene { me: &me, view, snapshot: &snapshot, by: self.by, guard: &guard };
        let moved = then.and_then(|then| snapshot.moved_since(then));
        let fresh = self.evidence.fresh();
        let mut ids = Vec::new();
        for state in view.records.states().filter(|state| state.run.is_some()) {
            let id = &state.metadata;
            let learned = fresh.contains(id);
            if !learned && moved.as_ref().is_some_and(|moved| !moved.contains(&id.namespace)) {
                continue;
            }
            let sleeps = || table.sleeps(id, &scene.fingerprint(id, MayStart::Yes), &snapshot);
            if !learned && sleeps() {
                continue;
            }
            ids.push(id.clone());
        }
        let alarmed = |id: &RolloutId| is_alarmed(view, id, &self.evidence.of(id));
        let (first, others): (Vec<_>, Vec<_>) = ids.into_iter().partition(alarmed);
        self.retreat_of(term, &snapshot, &first).await;
        for batch in others.chunks(BATCH) {
            self.retreat_of(term, &snapshot, batch).await;
            // Bad news that has come meanwhile waits for one batch, not for all.
            self.retreat_alarmed(term).await;
        }
        snapshot
    }

    /// Looks at the open runs that bad news has come of since anybody looked, and does what goes back: what may happen while a
    /// tick plans all others. The first thing that was done for each.
    pub(super) async fn retreat_alarmed(&self, term: &Meanwhile<'_>) -> Vec<Action> {
        let alarmed = self.evidence.bad_news(|id, evidence| is_alarmed(term.view, id, evidence));
        if alarmed.is_empty() {
            return Vec::new();
        }
        let snapshot = Snapshot::take(&self.watches, &self.namespaces, &mut term.gaps.clone(), &self.clock);
        self.retreat_of(term, &snapshot, &alarmed.into_iter().collect::<Vec<_>>()).await
    }

    /// Plans open runs, and does what goes back, some at a time. The first thing that was done for each.
    async fn retreat_of(&self, term: &Meanwhile<'_>, snapshot: &Snapshot, ids: &[RolloutId]) -> Vec<Action> {
        let me = self.writer(term.held);
        let guard = self.guard.borrow().clone();
        let scene = Scene { me: &me, view: term.view, snapshot, by: self.by, guard: &guard };
        let mut done = Vec::new();
        for batch in ids.chunks(BATCH) {
            let mut plans = Vec::new();
            for id in batch {
                let Some((_, plan)) = caught::plan(&scene, id, self.evidence.of(id), MayStart::Yes) else { continue };
                self.evidence.measure(id, &plan.questions);
                plans.push(plan);
            }
            let mut lists = Lists::new();
            for action in plans.iter().flat_map(RolloutPlan::going_back) {
                lists.entry(&action.rollout).or_default().push(action);
            }
            if lists.is_empty() {
                continue;
            }
            let ran = self.executor(snapshot.now).retreats(term.held, &lists).await;
            let all = ran.iter().filter(|(_, ran)| matches!(ran, Ran::All(_)));
            done.extend(all.filter_map(|(id, _)| lists.get(id)?.first().map(|first| (*first).clone())));
        }
        done
    }

    /// Waits for `work`, and lets retreats happen meanwhile. Where many runs are open each look at them takes a while; the
    /// work goes on for as long after it.
    pub async fn during<T>(&self, term: Meanwhile<'_>, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut woken = false;
        // What the tick has planned from.
        let mut seen = term.table.looked_at().cloned();
        let result = loop {
            tokio::select! {
                biased;
                result = &mut work => break result,
                () = self.woken.notified() => woken = true,
                // A deadline may pass meanwhile.
                () = sleep(LOOK) => seen = None,
            }
            let begun = self.clock.instant();
            seen = Some(self.retreat_only(&term, seen.as_ref()).await);
            if let Some(result) = self.go_on(&term, work.as_mut(), begun.elapsed()).await {
                break result;
            }
        };
        if woken {
            // What woke us has to be looked at as a whole.
            self.woken.notify_one();
        }
        result
    }

    /// Waits for `work` so long, disturbed by bad news alone. What else has come is looked at after it.
    async fn go_on<T>(
        &self,
        term: &Meanwhile<'_>,
        mut work: Pin<&mut impl Future<Output = T>>,
        pause: Duration,
    ) -> Option<T> {
        let pause = sleep(pause);
        tokio::pin!(pause);
        let mut woken = false;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut work => break Some(result),
                () = &mut pause => break None,
                () = self.woken.notified() => woken = true,
            }
            self.retreat_alarmed(term).await;
        };
        if woken {
            self.woken.notify_one();
        }
        result
    }
}
