//! `tidegate demo`: one application and three versions of it in a world in this process. The controller, the Kubernetes
//! client and Git are the real ones; only the cluster is not.

use super::Exit;
use super::failure::Failure;
use super::screen::{Screen, now};
use super::ui::Ink;
use crate::git::RefName;
use crate::manifest::ids::{CommitId, RolloutId};
use crate::reconcile::controller::{Once, Options};
use crate::record::state::{Phase, Rest, RolloutState, Time};
use crate::sim::kube_api::resource::Resource;
use crate::sim::stage::{Stage, StageError};
use anyhow::Context;
use clap::Args;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

const POLICY: &str = include_str!("tidegate.yaml");
const ROLLOUT: &str = include_str!("rollout.yaml");
const PODINFO: &str = include_str!("podinfo.yaml");

/// How often the world is looked at, in its own time.
const LOOK: Duration = Duration::from_millis(500);
/// How often time is let pass, where it is not as fast as it goes.
const STEP: Duration = Duration::from_millis(50);
/// No chapter of the story takes as long.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Args)]
#[command(
    about = "Show a good and a bad rollout, without a cluster",
    long_about = "Shows a good and a bad rollout in a world in this process: no cluster, no network, no configuration. The \
                  repository is a real one, in a directory that you can look into.\n\n\
                  Version 2 of an application goes out step by step, once you let it; version 3 is broken, and goes back by \
                  itself."
)]
pub(super) struct DemoArgs {
    /// Merge the requests without asking; so it is, too, where there is no terminal
    #[arg(long)]
    auto: bool,
    /// How many seconds pass in the world in one second here, or `max` for as fast as it goes
    #[arg(long, value_name = "N", default_value = "3")]
    speed: Speed,
    /// A new directory for the repository [default: one below the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// How fast time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speed {
    Times(u32),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "max" => Ok(Self::Max),
            Ok(times @ 1..=1_000) => Ok(Self::Times(times)),
            Ok(_) | Err(_) => Err("a number from 1 to 1000, or max".to_owned()),
        }
    }
}

/// A runtime whose time passes only as it is told.
///
/// # Errors
/// When the system has no threads left.
pub(super) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
}

/// Plays the story.
pub(super) async fn command(args: DemoArgs, screen: &Screen) -> Result<Exit, Failure> {
    let asks = !args.auto && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let directory = directory(args.dir)?;
    let stage = Arc::new(Stage::new(&directory, now()).map_err(told)?);
    let mut tasks = JoinSet::new();
    if let Speed::Times(times) = args.speed {
        tasks.spawn(pace(times));
    }
    let world = Arc::clone(&stage);
    tasks.spawn(async move { world.nature().await });
    let world = Arc::clone(&stage);
    tasks.spawn(async move {
        let options = Options { once: Once::No, listen: None, identity: "demo".to_owned() };
        let ended = world.controller("tidegate", options, &CancellationToken::new()).await;
        tracing::error!(?ended, "the controller ended");
    });
    let id = "shop/podinfo".parse().map_err(anyhow::Error::new)?;
    let begun = stage.clock.now();
    let mut story = Story { stage, screen: *screen, id, begun, asks, told: None, weight: None };
    story.play().await?;
    Ok(Exit::Done)
}

fn told(error: StageError) -> Failure {
    Failure::from(anyhow::Error::new(error))
}

/// A directory that nothing else uses.
fn directory(asked: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let directory = match asked {
        Some(directory) => directory,
        None => (0..)
            .map(|n| std::env::temp_dir().join(format!("tidegate-demo-{}-{n}", std::process::id())))
            .find(|path| !path.exists())
            .expect("some number is free because each demo takes one"),
    };
    if directory.exists() {
        return Err(Failure::usage(format!("{} is there already; name a new directory", directory.display())));
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(std::path::absolute(&directory).with_context(|| format!("cannot find {}", directory.display()))?)
}

/// Lets time pass, so much faster than here. While a thread sleeps, the runtime does not skip time by itself.
async fn pace(times: u32) {
    loop {
        let slept = spawn_blocking(|| std::thread::sleep(STEP)).await;
        if slept.is_err() {
            return;
        }
        tokio::time::advance(STEP * times).await;
    }
}

struct Story {
    stage: Arc<Stage>,
    screen: Screen,
    id: RolloutId,
    begun: Time,
    /// Whether there is somebody to be asked.
    asks: bool,
    /// The last commit of the record that was told.
    told: Option<CommitId>,
    /// The last weight that was told.
    weight: Option<i64>,
}

impl Story {
    async fn play(&mut self) -> Result<(), Failure> {
        let repository = self.stage.repository().display().to_string();
        self.say(&format!(
            "A cluster in this process, a Git repository in {repository}.\nLeft: the time in that world, in minutes. Each line \
             is a commit of tidegate's, made before the cluster changed.\n"
        ))?;
        self.chapter("Ana pushes podinfo to main.")?;
        let files = [("tidegate.yaml", POLICY), ("shop/rollout.yaml", ROLLOUT), ("shop/podinfo.yaml", &podinfo("1"))];
        self.stage.push(&files, "podinfo 1").await.map_err(told)?;
        self.until(|record| is_steady(record, Rest::Initialized)).await?;

        self.chapter("Ana pushes version 2.")?;
        self.stage.push(&[("shop/podinfo.yaml", &podinfo("2"))], "podinfo 2").await.map_err(told)?;
        self.approve().await?;
        self.until(|record| is_steady(record, Rest::Succeeded)).await?;

        self.chapter("Ana pushes version 3, which answers every fourth request with an error.")?;
        self.stage.push(&[("shop/podinfo.yaml", &podinfo("3-errors"))], "podinfo 3").await.map_err(told)?;
        self.approve().await?;
        let failed = |record: &RolloutState| matches!(record.phase, Phase::Failed { .. }) && record.revert.is_some();
        let record = self.until(failed).await?;
        let why = record.refused.first().map_or("", |refused| refused.why.as_str());
        self.say(&format!("\nUsers are on version 2, and version 3 is not tried again: {why}.\n"))?;
        if let Some(revert) = &record.revert {
            self.say(&format!("The branch {} undoes it on main, once somebody merges it.\n", revert.branch))?;
        }
        self.say(&format!(
            "\nLook around:\n  git -C {repository} log --oneline tidegate/world/state\n  git -C {repository} show \
             tidegate/world/state:README.md\nThen try it on a real Kubernetes API: ./try\n"
        ))
    }

    /// Waits for the request of the open run, and lets a person merge it.
    async fn approve(&mut self) -> Result<(), Failure> {
        let record = self.until(|record| record.run.as_ref().is_some_and(|run| !run.pulls.is_empty())).await?;
        let pulls = record.run.into_iter().flat_map(|run| run.pulls.into_values());
        let Some(pull) = pulls.into_iter().next() else { return Ok(()) };
        let request = RefName::branch(&pull.branch).map_err(anyhow::Error::new)?;
        self.say(&format!("\n  It waits for a person, who merges {}.\n", self.screen.ink.bold(request.short())))?;
        if self.asks {
            self.say(&format!("  {} ", self.screen.ink.warn("Press Enter to merge it:")))?;
            let read = spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await;
            read.map_err(anyhow::Error::new)??;
        } else {
            self.say("  Ana merges it.\n")?;
        }
        self.say("\n")?;
        self.stage.merge(&request).await.map_err(told)?;
        Ok(())
    }

    /// Tells what happens until the record is so.
    async fn until(&mut self, met: impl Fn(&RolloutState) -> bool) -> Result<RolloutState, Failure> {
        let deadline = self.stage.clock.instant() + PATIENCE;
        while self.stage.clock.instant() < deadline {
            self.tell().await?;
            let record = self.stage.record(&self.id).await.map_err(told)?;
            if let Some(record) = record.filter(|record| met(record)) {
                self.tell().await?;
                return Ok(record);
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(Failure::failed("the world does not come to rest; this is a bug, please report it".to_owned()))
    }

    /// Prints the commits that are new, and the traffic if it has changed.
    async fn tell(&mut self) -> Result<(), Failure> {
        let commits = self.stage.commits(self.told.as_ref()).await.map_err(told)?;
        for commit in commits {
            self.line(commit.time, &commit.subject)?;
            self.told = Some(commit.commit);
        }
        let weight = self.weight();
        if weight != self.weight {
            self.weight = weight;
            if let Some(weight) = weight {
                self.say(&format!("         {}\n", traffic(weight, self.screen.ink)))?;
            }
        }
        Ok(())
    }

    /// The candidate's share of requests, in percent; none while there is no route.
    fn weight(&self) -> Option<i64> {
        let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute")?;
        self.stage.api.look(|world| {
            let route = world.get(routes, "shop", "podinfo")?;
            let backends = route["spec"]["rules"][0]["backendRefs"].as_array()?;
            let canary = backends.iter().find(|backend| backend["name"] == "podinfo-canary");
            Some(canary.and_then(|backend| backend["weight"].as_i64()).unwrap_or(0))
        })
    }

    fn line(&self, at: Time, text: &str) -> Result<(), Failure> {
        let seconds = (at - self.begun).num_seconds().max(0);
        let time = format!("{:>2}:{:02}", seconds / 60, seconds % 60);
        self.say(&format!("  {}  {text}\n", self.screen.ink.dim(&time)))
    }

    fn chapter(&self, text: &str) -> Result<(), Failure> {
        self.say(&format!("\n{}\n", self.screen.ink.bold(text)))
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        self.screen.print(text)
    }
}

fn podinfo(version: &str) -> String {
    PODINFO.replace("VERSION", version)
}

fn is_steady(record: &RolloutState, wanted: Rest) -> bool {
    matches!(record.phase, Phase::Steady { how, .. } if how == wanted)
}

/// Who gets the requests, as a bar.
fn traffic(weight: i64, ink: Ink) -> String {
    let new = usize::try_from(weight / 5).unwrap_or(0).min(20);
    let bar = format!("{}{}", ink.good(&"█".repeat(20 - new)), ink.busy(&"░".repeat(new)));
    format!("{bar}  {} % stable, {weight} % new", 100 - weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("3".parse(), Ok(Speed::Times(3)));
        for bad in ["", "0", "-1", "1001", "fast"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
    }

    #[test]
    fn traffic_is_a_bar_of_twenty() {
        assert_eq!(traffic(0, Ink::Plain), "████████████████████  100 % stable, 0 % new");
        assert_eq!(traffic(10, Ink::Plain), "██████████████████░░  90 % stable, 10 % new");
        assert_eq!(traffic(100, Ink::Plain), "░░░░░░░░░░░░░░░░░░░░  0 % stable, 100 % new");
    }
}
