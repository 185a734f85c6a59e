//! A process of tidegate's of which each part can be held: it leads, and ticks when it is told to. Tests and benches share it.

use std::sync::Arc;
use std::time::Duration;
use tidegate::cluster::lease::{Lease, LeaseAnnotations, Timing};
use tidegate::cluster::watch::Watches;
use tidegate::gate::guard::Guard;
use tidegate::manifest::ids::CommitId;
use tidegate::manifest::installation::Installation;
use tidegate::manifest::proof::By;
use tidegate::plan::report::Reason;
use tidegate::reconcile::announce::Announcer;
use tidegate::reconcile::evidence::Collector;
use tidegate::reconcile::lead::Renewer;
use tidegate::reconcile::shell::Shell;
use tidegate::reconcile::source::{Branches, Source};
use tidegate::reconcile::table::Table;
use tidegate::reconcile::tick::{Requeue, Term};
use tidegate::reconcile::unobserved::UnobservedSpans;
use tidegate::reconcile::world::Backends;
use tidegate::report::metrics::Metrics;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long anything may take before a bench gives up: thousands of rollouts that are brought up take minutes.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The process.
pub(crate) struct Leader {
    pub(crate) shell: Shell,
    source: Source,
    gaps: UnobservedSpans,
    announcer: Announcer,
    anchor: Option<CommitId>,
    _notes: watch::Sender<LeaseAnnotations>,
    keeping: JoinSet<()>,
    stop: CancellationToken,
}

impl Leader {
    /// Starts it, and waits until it leads.
    pub(crate) async fn start(world: Backends, installation: &Installation, identity: &str) -> Self {
        let Backends { cluster, store, providers, clock, pass: _, transport: _ } = world;
        let (metrics, woken, stop) = (Metrics::new(), Arc::new(Notify::new()), CancellationToken::new());
        let namespaces = installation.caps.namespaces().clone();
        let watched: Vec<_> = namespaces.iter().cloned().collect();
        let watches = Watches::start(&cluster, &watched, &installation.caps.watched(), &woken);
        let (notes, noted) = watch::channel(LeaseAnnotations::default());
        let timing = Timing::default();
        let (renewer, lead, mut begun) =
            Renewer::new(Lease::new(cluster.clone(), identity, timing), timing, clock.clone(), noted);
        let mut keeping = JoinSet::new();
        keeping.spawn(renewer.keep(stop.clone()));
        let branches = Branches::new(&installation.instance, &installation.repository.branch).unwrap();
        let mut shell = Shell {
            instance: installation.instance.clone(),
            cluster_name: installation.clusters.keys().next().unwrap().clone(),
            evidence: Collector::new(cluster.clone(), providers, clock.clone(), Arc::clone(&woken)),
            main: installation.repository.branch.clone(),
            host: None,
            by: By::Nothing,
            guard: watch::channel(Guard::Unasked).1,
            cluster: cluster.clone(),
            watches,
            namespaces,
            clock,
            lead,
            woken,
            metrics: metrics.clone(),
        };
        while shell.lead.held().is_none() {
            tokio::time::timeout(PATIENCE, shell.lead.changed()).await.expect("it leads");
        }
        let inherited = begun.recv().await.expect("a term begins");
        let mut gaps = UnobservedSpans::default();
        gaps.inherit(inherited.gaps);
        Self {
            source: Source::new(store, branches, installation.caps.clone(), metrics.clone(), shell.clock.clone()),
            shell,
            gaps,
            announcer: Announcer::new(cluster, metrics),
            anchor: inherited.anchor,
            _notes: notes,
            keeping,
            stop,
        }
    }

    /// A term of leadership.
    pub(crate) fn term(&mut self) -> Term<'_> {
        let held = self.shell.lead.held().expect("it leads");
        Term {
            shell: &self.shell,
            held,
            source: &mut self.source,
            gaps: &mut self.gaps,
            announcer: &mut self.announcer,
            anchor: &mut self.anchor,
            table: Table::default(),
        }
    }

    /// Ends it; the Lease is free then.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while self.keeping.join_next().await.is_some() {}
    }
}

/// Ticks until `done` says so after a tick.
#[allow(dead_code, reason = "tests tick by themselves")]
pub(crate) async fn drive(term: &mut Term<'_>, mut done: impl FnMut(&Term<'_>, Requeue) -> bool) {
    let all = async {
        loop {
            let next = term.tick().await;
            if done(term, next) {
                break;
            }
            if next != Requeue::Now {
                tokio::select! {
                    () = term.shell.woken.notified() => {}
                    () = sleep(Duration::from_millis(500)) => {}
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("it comes to an end");
}

/// Ticks until nothing is left to do that happens by itself.
#[allow(dead_code, reason = "tests tick by themselves")]
pub(crate) async fn settle(term: &mut Term<'_>) {
    drive(term, is_settled).await;
}

/// Whether nothing is left to do that happens by itself.
pub(crate) fn is_settled(term: &Term<'_>, next: Requeue) -> bool {
    next >= Requeue::WaitForGit && term.source.view().is_some() && !term.table.reasons().any(Reason::is_passing)
}
