//! The loop: one step after the other, as [`AgentState`] decides, and what came of each.

use crate::content::ContentDigest;
use crate::decide::{AgentState, AgentStep, StepOutcome};
use crate::driver::{Driver, DriverFailure, DriverOperation, shown};
use crate::edge::{Edge, Fetched, Pause};
use crate::probes::Probes;
use crate::report::Progress;
use crate::store::AgentStore;
use std::io;
use std::path::Path;
use std::time::Duration;
use tidegate_controller::manifest::time::Time;
use tokio::time::{sleep, sleep_until};

/// How long a restore waits after one that did not work.
const BEFORE_ANOTHER_TRY: Duration = Duration::from_secs(1);

/// An agent and all that it works with.
pub struct Agent {
    /// Its directory.
    pub store: AgentStore,
    /// Its driver.
    pub driver: Driver,
    /// What has to work.
    pub probes: Probes,
    /// The API server.
    pub edge: Edge,
    /// A taint of its node that goes once the node has what it shall have.
    pub startup_taint: Option<String>,
    /// What time it is.
    pub clock: fn() -> Time,
    /// What it knows.
    pub state: AgentState,
}

impl Agent {
    /// Runs until `end`, and then until no change is open.
    ///
    /// *Guarantees*: a change that an earlier process has left open is taken back before the API server is asked for anything.
    pub async fn run(&mut self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        let (mut pause, mut taint) = (Pause::default(), Pause::default());
        let mut ends = false;
        loop {
            let step = self.state.decide((self.clock)());
            if ends && self.state.may_end() && !matches!(step, AgentStep::Keep(_) | AgentStep::Report(_)) {
                return;
            }
            if step != AgentStep::Rest {
                let before = self.state.is_waiting();
                let outcome = self.act(&step).await;
                tell(&step, &outcome);
                self.state.learn(&step, outcome);
                match (before, self.state.is_waiting()) {
                    (false, true) => pause.begin(),
                    (_, false) if self.state.is_applied() => pause = Pause::default(),
                    _ => {}
                }
                continue;
            }
            let may_take = self.startup_taint.is_some() && self.state.is_applied();
            tokio::select! {
                () = &mut end, if !ends => ends = true,
                node = self.edge.next() => self.state.look(node),
                () = sleep_until(pause.until), if self.state.is_waiting() => self.state.retry(),
                () = sleep_until(taint.until), if may_take => self.take_taint(&mut taint).await,
            }
        }
    }

    async fn take_taint(&mut self, pause: &mut Pause) {
        let Some(key) = &self.startup_taint else { return };
        match self.edge.take_taint(key).await {
            Ok(()) => self.startup_taint = None,
            Err(why) => {
                tracing::warn!(why, key, "the taint cannot be taken away now");
                pause.begin();
            }
        }
    }

    async fn act(&mut self, step: &AgentStep) -> StepOutcome {
        match step {
            AgentStep::Restore { good, .. } => self.restore(good.as_ref()).await,
            AgentStep::Probe(None) => StepOutcome::Probed(self.probes.once(&self.edge).await),
            AgentStep::Probe(Some(wanted)) => StepOutcome::Probed(self.probes.until(wanted, &self.edge).await),
            AgentStep::Fetch { content, digest } => self.fetch(content, digest).await,
            AgentStep::Check(digest) => match self.check(digest).await {
                Ok((before, expected)) => StepOutcome::Checked(before, expected),
                Err(outcome) => outcome,
            },
            AgentStep::Stamp(report) | AgentStep::Report(report) => match self.state.version().map(ToOwned::to_owned) {
                Some(version) => self.edge.tell(&version, report).await,
                None => StepOutcome::Stale,
            },
            AgentStep::Keep(disk) => match self.store.save(disk) {
                Ok(()) => {
                    if disk.doing.is_none() {
                        self.store.tidy(disk.good.as_ref().map(|good| &good.digest));
                    }
                    StepOutcome::Done
                }
                Err(error) => StepOutcome::Failed(error.to_string()),
            },
            AgentStep::Try(digest) => self.put(DriverOperation::Try, digest).await,
            AgentStep::Commit(digest) => self.put(DriverOperation::Commit, digest).await,
            AgentStep::Read => {
                self.driver.read().await.map_or_else(|why| StepOutcome::Failed(why.to_string()), StepOutcome::Shown)
            }
            AgentStep::Rest => StepOutcome::Done,
        }
    }

    async fn restore(&mut self, good: Option<&ContentDigest>) -> StepOutcome {
        let dir = good.and_then(|good| self.store.content(good));
        let outcome = self.done(DriverOperation::Restore, dir.as_deref()).await;
        if let StepOutcome::Failed(_) = outcome {
            sleep(BEFORE_ANOTHER_TRY).await;
        }
        outcome
    }

    async fn put(&self, operation: DriverOperation, digest: &ContentDigest) -> StepOutcome {
        match self.store.content(digest) {
            Some(dir) => self.done(operation, Some(&dir)).await,
            None => StepOutcome::Failed(format!("{}: the content is not on the disk any more", operation.as_str())),
        }
    }

    async fn done(&self, operation: DriverOperation, dir: Option<&Path>) -> StepOutcome {
        let done = match self.driver.run(operation, dir).await {
            Ok(_) => self.driver.read().await,
            Err(why) => Err(why),
        };
        done.map_or_else(|why| StepOutcome::Failed(why.to_string()), StepOutcome::Shown)
    }

    /// Has a content on the disk, which also shows that the disk takes what has to be kept later.
    async fn fetch(&self, name: &str, digest: &ContentDigest) -> StepOutcome {
        let unwritable = |error: io::Error| StepOutcome::Refused(format!("DiskUnwritable: {error}"));
        if let Err(error) = self.store.save(self.state.disk()) {
            return unwritable(error);
        }
        if self.store.content(digest).is_some() {
            return StepOutcome::Done;
        }
        let files = match self.edge.content(name).await {
            Fetched::Files(files) => files,
            Fetched::Missing(why) => return StepOutcome::Refused(why),
            Fetched::Away => return StepOutcome::Away,
        };
        let found = ContentDigest::of(&files);
        if found != *digest {
            return StepOutcome::Refused(format!("DigestMismatch: ConfigMap {name} holds {found}"));
        }
        self.store.keep(digest, &files).map_or_else(unwritable, |()| StepOutcome::Done)
    }

    async fn check(&self, digest: &ContentDigest) -> Result<(String, Option<String>), StepOutcome> {
        let Some(dir) = self.store.content(digest) else {
            return Err(StepOutcome::Refused("DiskUnwritable: the content is not on the disk any more".to_owned()));
        };
        // Of a driver that cannot say what is in force nothing is asked; that speaks against no content.
        let before = self.driver.read().await.map_err(|why| match why {
            DriverFailure::Missing(_) => StepOutcome::Refused(why.to_string()),
            DriverFailure::Failed(why) => StepOutcome::Refused(format!("DriverFailed: {why}")),
        })?;
        match self.driver.run(DriverOperation::Check, Some(&dir)).await {
            Ok(said) => Ok((before, (!said.is_empty()).then(|| shown(&said)))),
            Err(why @ DriverFailure::Missing(_)) => Err(StepOutcome::Refused(why.to_string())),
            Err(DriverFailure::Failed(why)) => Err(StepOutcome::Failed(why)),
        }
    }
}

/// Says what was done, once.
fn tell(step: &AgentStep, outcome: &StepOutcome) {
    match (step, outcome) {
        (AgentStep::Try(digest), StepOutcome::Shown(_)) => tracing::info!(%digest, "put into force, on trial"),
        (AgentStep::Commit(digest), StepOutcome::Shown(_)) => tracing::info!(%digest, "it stays"),
        (AgentStep::Restore { .. }, StepOutcome::Shown(_)) => tracing::warn!("gone back to what was in force before"),
        (
            AgentStep::Try(_) | AgentStep::Commit(_) | AgentStep::Restore { .. } | AgentStep::Check(_),
            StepOutcome::Failed(why),
        ) => {
            tracing::error!(why, "the driver has not done what it was asked for");
        }
        (AgentStep::Keep(_), StepOutcome::Failed(why)) => tracing::error!(why, "the state cannot be written"),
        (_, StepOutcome::Refused(why)) => tracing::warn!(why, "nothing is begun"),
        (AgentStep::Report(report), StepOutcome::Heard(_)) => match report.state {
            Progress::Started | Progress::Applied => tracing::info!(state = ?report.state, "reported"),
            Progress::Failed | Progress::RestoreFailed | Progress::Refused => {
                tracing::warn!(state = ?report.state, why = report.message, "reported");
            }
        },
        _ => tracing::debug!(?step, ?outcome),
    }
}
