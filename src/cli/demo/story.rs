//! The story: who does what when, until it is told or somebody leaves.

use super::Teller;
use super::scene::{Ask, Scene, Tempo, sentence};
use super::terminal::Key;
use crate::cli::failure::Failure;
use crate::cli::shell;
use crate::git::RefName;
use crate::manifest::ids::{CommitId, RolloutId};
use crate::record::state::{Outcome, Phase, Rest, RolloutState, Time};
use crate::report::view::{self, Record};
use std::sync::Arc;
use std::time::Duration;
use tidegate_world::kube_api::resource::Resource;
use tidegate_world::simulation::Simulation;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

const POLICY: &str = include_str!("tidegate.yaml");
const ROLLOUT: &str = include_str!("rollout.yaml");
const PODINFO: &str = include_str!("podinfo.yaml");

/// How often the world is looked at, in its own time.
pub(super) const LOOK: Duration = Duration::from_millis(500);
/// No chapter of the story takes as long.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long Ana looks at a request, where she is the one who merges it.
const THOUGHT: Duration = Duration::from_secs(4);

/// Why the story is not told to its end.
enum Stop {
    Left,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// How far the story was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// To its end.
    Told,
    /// Somebody left before.
    Left,
}

pub(super) struct Story {
    stage: Arc<Simulation>,
    teller: Teller,
    keys: mpsc::UnboundedReceiver<Key>,
    tempo: watch::Sender<Tempo>,
    /// The tempo that was asked for.
    asked: Tempo,
    id: RolloutId,
    begun: Time,
    /// The newest commit of the record that was seen.
    seen: Option<CommitId>,
    record: Option<Record>,
    /// The version that main names.
    version: u8,
    scene: Scene,
}

impl Story {
    pub(super) fn new(
        stage: Arc<Simulation>,
        teller: Teller,
        keys: mpsc::UnboundedReceiver<Key>,
        tempo: watch::Sender<Tempo>,
    ) -> Result<Self, Failure> {
        let id = "shop/podinfo".parse().map_err(anyhow::Error::new)?;
        let (begun, asked) = (stage.clock.now(), *tempo.borrow());
        let (seen, record, scene) = (None, None, Scene::default());
        Ok(Self { stage, teller, keys, tempo, asked, id, begun, seen, record, version: 1, scene })
    }

    /// Plays the story, with Ana merging the requests if nobody is asked.
    ///
    /// # Errors
    /// When the world breaks. To leave is no error.
    pub(super) async fn play(&mut self, nobody_is_asked: bool) -> Result<End, Failure> {
        match self.chapters(nobody_is_asked).await {
            Ok(()) => Ok(End::Told),
            Err(Stop::Left) => Ok(if self.scene.over { End::Told } else { End::Left }),
            Err(Stop::Failed(failure)) => Err(failure),
        }
    }

    async fn chapters(&mut self, nobody_is_asked: bool) -> Result<(), Stop> {
        "Ana pushes an application to main.".clone_into(&mut self.scene.chapter);
        let files = [("tidegate.yaml", POLICY), ("shop/rollout.yaml", ROLLOUT), ("shop/podinfo.yaml", &podinfo("1"))];
        self.stage.push(&files, "podinfo 1").await?;
        self.until(|record| is_steady(record, Rest::Initialized)).await?;

        "Ana pushes version 2.".clone_into(&mut self.scene.chapter);
        self.version = 2;
        self.stage.push(&[("shop/podinfo.yaml", &podinfo("2"))], "podinfo 2").await?;
        self.approval(nobody_is_asked).await?;
        let end = |record: &RolloutState| is_steady(record, Rest::Succeeded) || went_back(record);
        if went_back(&self.until(end).await?) {
            return self.end("Users stay on version 1, as somebody has ended the run.", nobody_is_asked).await;
        }

        "Ana pushes version 3, which answers every fourth request with an error.".clone_into(&mut self.scene.chapter);
        self.version = 3;
        self.stage.push(&[("shop/podinfo.yaml", &podinfo("3-errors"))], "podinfo 3").await?;
        self.approval(nobody_is_asked).await?;
        let record = self.until(went_back).await?;
        let by_itself = record.history.last().is_some_and(|past| past.outcome == Outcome::Failed);
        let end = if by_itself {
            "Users are on version 2 again, and nobody had to do anything."
        } else {
            "Users are on version 2 again, as somebody has ended the run."
        };
        self.end(end, nobody_is_asked).await
    }

    /// The last chapter: it stays until somebody leaves.
    async fn end(&mut self, chapter: &str, nobody_is_asked: bool) -> Result<(), Stop> {
        chapter.clone_into(&mut self.scene.chapter);
        self.scene.over = true;
        self.look().await?;
        if !nobody_is_asked {
            self.tempo.send_replace(Tempo::Paused);
            while self.beat().await? != Some(Key::Merge) {}
        }
        Ok(())
    }

    /// What is said at the end: where all of it is, and what to try next.
    #[must_use]
    pub(super) fn last_words(&self) -> String {
        let repository = self.stage.repository().display().to_string();
        let (program, quoted) = (shell::program(), shell::quoted(&repository));
        let mut out = String::from("\n");
        let record = self.record.as_ref().map(|record| &record.state);
        if let Some(pull) = record.and_then(|record| record.revert.as_ref()) {
            let version = self.version;
            out.push_str(&format!("{} undoes version {version} on main, once somebody merges it.\n", pull.branch));
        }
        out.push_str(&format!("The repository stays in {repository}. Look around:\n"));
        if record.is_some() {
            out.push_str(&format!("  git -C {quoted} log --oneline tidegate/world/state\n"));
            out.push_str(&format!("  {program} why {} --repo {quoted}\n", self.id));
        } else {
            out.push_str(&format!("  git -C {quoted} log --all\n"));
        }
        out.push_str(
            "Then do it yourself: ./try, in a clone of tidegate, is such a world with a real Kubernetes API.\n",
        );
        out
    }

    /// Waits for the request of the open run and until it is approved: by a key, by a command in another terminal, or, if
    /// nobody is asked, by Ana.
    async fn approval(&mut self, nobody_is_asked: bool) -> Result<(), Stop> {
        let record = self.until(|record| request(record).is_some() || went_back(record)).await?;
        let Some(branch) = request(&record) else { return Ok(()) };
        let repository = shell::quoted(&self.stage.repository().display().to_string());
        let command = format!("{} approve {} --repo {repository}", shell::program(), self.id);
        self.scene.asks = Some(Ask { request: branch.clone(), command });
        if self.asked == Tempo::Max && !nobody_is_asked {
            // Nobody can be asked as fast as it goes.
            self.tempo.send_replace(Tempo::Times(1));
        }
        let patience = self.stage.clock.instant() + THOUGHT;
        let mut merges = false;
        while !merges && self.record.as_ref().and_then(|record| request(&record.state)).is_some() {
            merges = self.beat().await? == Some(Key::Merge);
            merges |= nobody_is_asked && self.stage.clock.instant() >= patience;
        }
        if merges {
            self.stage.merge(&RefName::branch(&branch).map_err(anyhow::Error::new)?).await?;
        }
        self.scene.asks = None;
        self.tempo.send_replace(self.asked);
        Ok(())
    }

    /// Lets the world go on until the record is so.
    async fn until(&mut self, met: impl Fn(&RolloutState) -> bool) -> Result<RolloutState, Stop> {
        let deadline = self.stage.clock.instant() + PATIENCE;
        while self.stage.clock.instant() < deadline {
            self.beat().await?;
            if let Some(record) = self.record.as_ref().filter(|record| met(&record.state)) {
                return Ok(record.state.clone());
            }
        }
        Err(Failure::failed("the world does not come to rest; this is a bug, please report it").into())
    }

    /// Looks, tells, and lets some time pass, or less if a key is pressed.
    async fn beat(&mut self) -> Result<Option<Key>, Stop> {
        self.look().await?;
        let key = tokio::select! {
            key = self.keys.recv() => Some(key.unwrap_or(Key::Quit)),
            () = sleep(LOOK) => None,
        };
        match key {
            Some(Key::Quit) => return Err(Stop::Left),
            Some(Key::Pause) if !self.scene.over => {
                let paused = *self.tempo.borrow() == Tempo::Paused;
                self.tempo.send_replace(if paused { self.asked } else { Tempo::Paused });
            }
            Some(Key::Resized) => {
                if let Teller::Terminal(terminal) = &mut self.teller {
                    terminal.redraw();
                }
            }
            Some(Key::Pause | Key::Merge) | None => {}
        }
        Ok(key)
    }

    /// Brings the scene up to date, and tells it.
    async fn look(&mut self) -> Result<(), Failure> {
        let begun = self.begun;
        // Until nothing is new, so that the record is that of the newest commit.
        loop {
            let commits = self.stage.commits(self.seen.as_ref()).await?;
            let Some(newest) = commits.last() else { break };
            self.seen = Some(newest.commit.clone());
            let told = commits.into_iter().map(|logged| ((logged.time - begun).num_seconds(), logged.subject));
            self.scene.commits.extend(told);
            self.record = match self.stage.record(&self.id).await? {
                Some(state) => Some(Record { plan: self.stage.plan(&state).await?, state }),
                None => None,
            };
        }
        let now = self.stage.clock.now();
        self.scene.seconds = (now - begun).num_seconds();
        self.scene.tempo = *self.tempo.borrow();
        self.scene.weight = self.weight();
        self.scene.view = self.record.as_ref().map(|record| view::rollout(record, now));
        if let (Some(record), Some(view)) = (&self.record, &self.scene.view) {
            let allowed = view.exposure.first().map_or(0, |exposure| exposure.weight);
            self.scene.sentence = sentence(&record.state.phase, allowed);
        }
        match &mut self.teller {
            Teller::Terminal(terminal) => Ok(terminal.draw(&self.scene)?),
            Teller::Lines(lines) => lines.tell(&self.scene),
        }
    }

    /// The candidate's share of requests, in percent; none while there is no route.
    fn weight(&self) -> Option<u8> {
        let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute")?;
        self.stage.api.look(|world| {
            let route = world.get(routes, "shop", "podinfo")?;
            let backends = route["spec"]["rules"][0]["backendRefs"].as_array()?;
            let canary = backends.iter().find(|backend| backend["name"] == "podinfo-canary");
            u8::try_from(canary.and_then(|backend| backend["weight"].as_u64()).unwrap_or(0)).ok()
        })
    }
}

/// The branch that asks for the approval that is missing.
fn request(record: &RolloutState) -> Option<String> {
    let waits = matches!(record.phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. });
    let pulls = record.run.as_ref().filter(|_| waits).map(|run| &run.pulls)?;
    pulls.values().next().map(|pull| pull.branch.clone())
}

fn podinfo(version: &str) -> String {
    PODINFO.replace("VERSION", version)
}

/// Whether the last run did not succeed, and all that follows from that is done.
fn went_back(record: &RolloutState) -> bool {
    let ended = record.run.is_none() && record.last_run.is_some() && record.revert.is_some();
    ended && !is_steady(record, Rest::Succeeded)
}

fn is_steady(record: &RolloutState, wanted: Rest) -> bool {
    matches!(record.phase, Phase::Steady { how, .. } if how == wanted)
}
