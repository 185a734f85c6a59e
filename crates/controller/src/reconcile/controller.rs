//! The process: its tasks, its terms of leadership, and when to tick.

use super::announce::Announcer;
use super::backoff::changed;
use super::evidence::Collector;
use super::front::Front;
use super::hosted::{self, Way};
use super::lead::{Lead, LeaseStatus, Renewer};
use super::pace::Pace;
use super::project::Projector;
use super::pull_requests::PullRequests;
pub use super::run_error::RunError;
use super::shell::Shell;
use super::source::{Branches, GitView, Source};
use super::table::Table;
use super::tick::{Requeue, Term};
use super::unobserved::UnobservedSpans;
use super::world::{self, Backends};
use crate::cluster::election;
use crate::cluster::lease::{Inherited, Lease, LeaseAnnotations, LeaseHeld, Timing};
use crate::cluster::store::Observed;
use crate::cluster::watch::Watches;
use crate::manifest::ids::{CommitId, RolloutId};
use crate::manifest::installation::Installation;
use crate::manifest::raw::Projection;
use crate::plan::input::Git;
use crate::plan::report::{Reason, Wait};
use crate::report::server::ServerReadiness;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How a process runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Until when.
    pub once: Once,
    /// Where health and metrics are served; nowhere if none.
    pub listen: Option<SocketAddr>,
    /// What tells this process from all others of the same instance: the name of the pod will do.
    pub identity: String,
}

/// Until when a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// Until it is told to stop.
    No,
    /// Until there is nothing to do by itself, or this long.
    Yes {
        /// The longest time.
        timeout: Duration,
    },
}

/// What each rollout still waited on at the end; empty when all is settled.
pub type Waiting = BTreeMap<RolloutId, Vec<Wait>>;

/// Runs until told to stop (SIGTERM, SIGINT), or as `options` say; then gives the Lease back.
///
/// # Errors
/// When the process cannot start, or one of its tasks ended. What Git or the cluster answer later is no error.
pub async fn run(installation: Installation, options: Options, cache: &Path) -> Result<Waiting, RunError> {
    // Until the signals are taken nothing was done that would have to be ended, and one ends the process.
    let front = Front::open(options.listen, &installation).await?;
    let world = match options.once {
        Once::No => Backends::await_connection(&installation, cache).await?,
        Once::Yes { .. } => Backends::connect(&installation, cache).await?,
    };
    let stop = CancellationToken::new();
    let signals = signalled(&stop)?;
    tokio::select! {
        never = signals => match never {},
        result = run_behind(front, world, &installation, &options, &stop) => result,
    }
}

/// The same in a world that is connected to, until `stop` is cancelled. Dropped before its end it leaves everything as a
/// process does that is killed. Where nothing in the world is left to chance, the same world makes the same run: what is ready
/// at the same time is taken in a fixed order.
///
/// # Errors
/// As [`run`].
pub async fn run_in(
    world: Backends,
    installation: &Installation,
    options: &Options,
    stop: &CancellationToken,
) -> Result<Waiting, RunError> {
    run_behind(Front::open(options.listen, installation).await?, world, installation, options, stop).await
}

async fn run_behind(
    mut front: Front,
    world: Backends,
    installation: &Installation,
    options: &Options,
    stop: &CancellationToken,
) -> Result<Waiting, RunError> {
    let mut keeping = JoinSet::new();
    let mut controller = Controller::start(&front, world, installation, options, stop, &mut keeping)?;
    let deadline = match options.once {
        Once::No => None,
        Once::Yes { timeout } => Some(Instant::now() + timeout),
    };
    let shell = Arc::clone(&controller.shell);
    let background = async {
        tokio::select! {
            biased;
            broken = shell.watches.failed() => broken.to_string(),
            why = front.broken() => why,
            Some(ended) = keeping.join_next() => match ended {
                Ok(()) => "the Lease is not kept, or pull requests are not looked at, any more".to_owned(),
                Err(error) => error.to_string(),
            },
        }
    };
    let result = tokio::select! {
        biased;
        result = controller.terms(deadline) => result,
        why = background => Err(RunError::Task(why)),
    };
    stop.cancel();
    controller.announcer.finish().await;
    if let Some(projector) = controller.projector.take() {
        projector.finish().await;
    }
    // A tick that was under way when `stop` was cancelled has come to its end: another may lead now.
    controller.kept.cancel();
    while keeping.join_next().await.is_some() {}
    result
}

/// Cancels `stop` at the first SIGTERM or SIGINT, and never ends.
fn signalled(stop: &CancellationToken) -> Result<impl Future<Output = Infallible> + use<>, RunError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
    let stop = stop.clone();
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop; finishes what it does");
        stop.cancel();
        std::future::pending().await
    })
}

struct Controller {
    shell: Arc<Shell>,
    source: Source,
    gaps: UnobservedSpans,
    anchor: Option<CommitId>,
    announcer: Announcer,
    projector: Option<Projector>,
    pull_requests: Option<PullRequests>,
    notes: watch::Sender<LeaseAnnotations>,
    begun: mpsc::UnboundedReceiver<Inherited>,
    readiness: ServerReadiness,
    /// Tells of the webhooks of the Git host.
    told: watch::Receiver<()>,
    poll: Duration,
    once: Once,
    stop: CancellationToken,
    /// Gives the Lease back: only once nothing is done under it any more.
    kept: CancellationToken,
    waiting: Waiting,
}

impl Controller {
    fn start(
        front: &Front,
        Backends { cluster, store, providers, clock, pass, transport }: Backends,
        installation: &Installation,
        options: &Options,
        stop: &CancellationToken,
        keeping: &mut JoinSet<()>,
    ) -> Result<Self, RunError> {
        let (cluster_name, _) = world::served(installation)?;
        let namespaces = installation.caps.namespaces().clone();
        let instance = installation.instance.clone();
        let (metrics, readiness) = (front.metrics.clone(), front.readiness.clone());
        let branches = Branches::new(&instance, &installation.repository.branch)?;
        let woken = Arc::new(Notify::new());
        let watched: Vec<_> = namespaces.iter().cloned().collect();
        let watches =
            Watches::start(&cluster, &watched, &installation.caps.watched(), &woken).beside(&installation.gateways);
        let (notes, noted) = watch::channel(LeaseAnnotations::default());
        let timing = Timing::default();
        let lease = Lease::new(cluster.clone(), &options.identity, timing);
        let (renewer, lead, begun) = Renewer::new(lease, timing, clock.clone(), noted);
        let kept = CancellationToken::new();
        let (guarded, guard) = watch::channel(hosted::guard(installation));
        keeping.spawn(renewer.keep(kept.clone()));
        let way = Way { installation, pass: pass.as_ref(), transport: transport.as_ref(), store: &store };
        let shell = Shell {
            evidence: Collector::new(cluster.clone(), providers, clock.clone(), Arc::clone(&woken))
                .with(hosted::review_fetcher(way, &branches, &clock, &metrics)?)
                .reading(hosted::signature_verifier(way, &branches)),
            main: installation.repository.branch.clone(),
            host: installation.repository.forge.as_ref().map(|host| host.kind),
            by: hosted::by(installation),
            guard,
            instance,
            cluster_name,
            watches,
            namespaces,
            clock,
            lead,
            woken,
            metrics: metrics.clone(),
            cluster: cluster.clone(),
        };
        let pull_requests = hosted::pull_requests(way, &shell, &front.told, &kept, guarded, keeping)?;
        Ok(Self {
            source: hosted::source(way, branches, &shell)?,
            shell: Arc::new(shell),
            gaps: UnobservedSpans::default(),
            anchor: None,
            projector: match installation.projection {
                Projection::On => Some(Projector::start(cluster.clone(), installation.caps.namespaces())),
                Projection::Off => None,
            },
            announcer: Announcer::new(cluster, metrics),
            pull_requests,
            notes,
            begun,
            readiness,
            told: front.told.subscribe(),
            poll: installation.repository.poll,
            once: options.once,
            stop: stop.clone(),
            kept,
            waiting: Waiting::new(),
        })
    }

    /// Leads whenever it can, until told to stop or, for `--once`, until nothing is left to do.
    async fn terms(&mut self, deadline: Option<Instant>) -> Result<Waiting, RunError> {
        let mut lead = self.shell.lead.clone();
        let late = async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(late);
        let mut led = false;
        loop {
            let why = match lead.status() {
                LeaseStatus::Unknown(why) => why,
                LeaseStatus::Standby(holder) => {
                    self.readiness.lease_known();
                    // Main is read by who leads: a stand-by is ready without.
                    self.readiness.source_read();
                    self.readiness.git(&Git::Fresh);
                    let holder = holder.unwrap_or_else(|| "somebody".to_owned());
                    tracing::info!(holder, "stands by");
                    format!("{holder} leads")
                }
                LeaseStatus::Leading(_) => {
                    self.readiness.lease_known();
                    led = true;
                    tokio::select! {
                        biased;
                        over = self.term(&mut lead) => if over == Over::Settled { break },
                        () = &mut late => break,
                    }
                    let expired = lead.held().is_none() && matches!(lead.status(), LeaseStatus::Leading(_));
                    if !expired {
                        // Lost to another, or got again meanwhile: the term was told, and nothing more would tell of it.
                        continue;
                    }
                    "the Lease was lost".to_owned()
                }
            };
            self.shell.metrics.leads(false);
            self.projector.iter_mut().for_each(Projector::rest);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = &mut late => if led { break } else { return Err(RunError::NeverLed(why)) },
                () = lead.changed() => {}
                () = self.watch() => {}
            }
        }
        Ok(std::mem::take(&mut self.waiting))
    }

    /// Takes note of what the watches have listed, for as long as nobody ticks.
    async fn watch(&self) {
        loop {
            see(&self.readiness, &self.shell, None);
            self.shell.woken.notified().await;
        }
    }

    /// Takes over what the Lease says that others knew.
    fn inherit(&mut self) {
        while let Ok(Inherited { anchor, gaps }) = self.begun.try_recv() {
            self.anchor = anchor.or_else(|| self.anchor.take());
            self.gaps.inherit(gaps);
        }
    }

    /// Ticks for as long as we lead.
    async fn term(&mut self, lead: &mut Lead) -> Over {
        self.inherit();
        let Some(held) = lead.held() else { return Over::Lost };
        self.shell.metrics.leads(true);
        self.source.forget();
        let shell = Arc::clone(&self.shell);
        let mut term = Term {
            shell: &shell,
            held: held.clone(),
            source: &mut self.source,
            gaps: &mut self.gaps,
            announcer: &mut self.announcer,
            anchor: &mut self.anchor,
            table: Table::default(),
        };
        let mut pace = Pace::new(self.poll);
        let mut next = Requeue::Now;
        loop {
            if self.stop.is_cancelled() {
                return Over::Settled;
            }
            // Who has the Lease again after it had run out begins anew, be it under the same epoch: it inherits a gap.
            if !lead.still(&held) || !self.begun.is_empty() {
                return Over::Lost;
            }
            if pace.poll_is_due() {
                next = next.min(term.look_up().await);
                pace.looked(&term.git());
            }
            if next <= Requeue::Soon {
                next = term.tick().await;
                pace.ticked(&term, next);
            }
            self.notes.send_if_modified(|notes| note(notes, &term, &held));
            see(&self.readiness, &shell, term.source.view().as_deref());
            if let (Some(projector), Some(view)) = (&mut self.projector, term.source.view()) {
                projector.show(&view);
            }
            self.readiness.git(&term.git());
            if let Some(pull_requests) = &self.pull_requests {
                pull_requests.see(term.source.view());
            }
            if let Once::Yes { .. } = self.once {
                self.waiting = waiting(&term.table);
                let shown = self.pull_requests.as_ref().is_none_or(PullRequests::is_quiet);
                if next >= Requeue::WaitForGit && shown && is_quiet(&term, &pace) {
                    return Over::Settled;
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = lead.changed() => {}
                () = shell.woken.notified() => next = Requeue::Now,
                () = changed(&mut self.told) => next = pace.hurry(),
                () = sleep_until(pace.wake_at) => next = Requeue::Now,
                () = sleep_until(pace.poll_at) => next = Requeue::Idle,
                // Else it would be seen when Git is asked next, which may be an hour later.
                () = looked(&mut self.pull_requests), if self.once != Once::No => next = Requeue::Idle,
            }
        }
    }
}

/// Waits until the Git host was looked at once more; for ever if there is none.
async fn looked(pull_requests: &mut Option<PullRequests>) {
    match pull_requests {
        Some(pull_requests) => pull_requests.looked().await,
        None => std::future::pending().await,
    }
}

/// Takes note of what was seen once.
fn see(readiness: &ServerReadiness, shell: &Shell, view: Option<&GitView>) {
    if view.is_some_and(|view| view.main.why_unreadable().is_none()) {
        readiness.source_read();
    }
    let ready = |namespace| !matches!(shell.watches.snapshot(namespace), Observed::NotYet { .. });
    if shell.namespaces.iter().all(ready) {
        readiness.watches_synced();
    }
}

/// Why a term is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Another leads, or nobody knows.
    Lost,
    /// Nothing is left to do, or the process was told to stop.
    Settled,
}

/// What the Lease shall say; whether that is new.
fn note(notes: &mut LeaseAnnotations, term: &Term<'_>, held: &LeaseHeld) -> bool {
    let view = term.source.view();
    let epochs = view.iter().flat_map(|view| view.records.states()).map(|state| state.writer.epoch);
    let new = LeaseAnnotations {
        anchor: term.anchor.clone(),
        gaps: Some(term.gaps.all(term.shell.clock.now())),
        floor: election::floor(epochs).max(held.epoch()),
    };
    let modified = *notes != new;
    *notes = new;
    modified
}

/// Whether nothing is left that happens by itself in the next seconds, be it that what did not succeed is tried again.
fn is_quiet(term: &Term<'_>, pace: &Pace) -> bool {
    let soon = pace.wake_at <= Instant::now() + Duration::from_secs(5);
    term.source.view().is_some() && !soon && !term.table.reasons().any(Reason::is_passing)
}

fn waiting(table: &Table) -> Waiting {
    let waits = table.waits().filter(|(_, waits)| !waits.is_empty());
    waits.map(|(id, waits)| (id.clone(), waits.to_vec())).collect()
}
