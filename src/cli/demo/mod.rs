//! `tidegate demo`: one application and three versions of it in a world in this process. The controller, the Kubernetes
//! client and Git are the real ones; only the cluster is not.
//!
//! The [`story`] makes a [`scene`] of what is so; [`terminal`] draws it, or [`lines`] say what is new in it.

mod lines;
mod scene;
mod story;
mod terminal;

use super::Exit;
use super::failure::Failure;
use super::screen::{Screen, now};
use super::shell;
use crate::manifest::duration::Span;
use crate::reconcile::controller::{Once, Options};
use anyhow::Context;
use clap::Args;
use lines::Lines;
use scene::Tempo;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use story::{End, Story};
use terminal::{Key, Terminal};
use tidegate_world::simulation::Simulation;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

/// How often time is let pass, where it is not as fast as it goes.
const STEP: Duration = Duration::from_millis(50);
/// The world begins so long ago: time is faster there, and what is looked at afterwards shall lie in the past.
const AGO: Span = Span::from_secs(300);

#[derive(Debug, Clone, Args)]
#[command(
    about = "Show a good and a bad rollout, without a cluster",
    long_about = "Shows a good and a bad rollout in a world in this process: no cluster, no network, no configuration. The \
                  repository is a real one, in a directory that you can look into.\n\n\
                  Version 2 of an application goes out step by step, once you let it; version 3 is broken, and goes back by \
                  itself. Without a terminal it is told in plain lines, and nobody is asked.",
    after_help = "Examples:
  tidegate demo
  tidegate demo --auto --speed 10
  tidegate demo --auto --speed max --dir world && git -C world/fleet.git log tidegate/world/state"
)]
pub(super) struct DemoArgs {
    /// Merge the requests without asking
    #[arg(long)]
    auto: bool,
    /// How many seconds pass in the world in one second here, or `max` for as fast as it goes
    #[arg(long, value_name = "N", default_value = "3")]
    speed: Speed,
    /// A new directory for the repository, which stays. Default: one below the system's temporary directory, which stays
    /// if the story is told to its end
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// How fast time is asked to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Speed(Tempo);

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "max" => Ok(Self(Tempo::Max)),
            Ok(times @ 1..=1_000) => Ok(Self(Tempo::Times(times))),
            Ok(_) | Err(_) => Err("a number from 1 to 1000, or max".to_owned()),
        }
    }
}

/// Where the story is told.
enum Teller {
    Terminal(Terminal),
    Lines(Box<Lines>),
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
    let Speed(speed) = args.speed;
    let mut home = Home::new(args.dir)?;
    let stage = Arc::new(Simulation::new(&home.path, now() - AGO.delta())?);
    let (heard, keys) = mpsc::unbounded_channel();
    let (tempo, paced) = watch::channel(speed);
    // A log would be written across the picture.
    let teller = if Terminal::is_there() && !tracing::enabled!(tracing::Level::INFO) {
        Teller::Terminal(Terminal::open(screen.ink)?)
    } else {
        Teller::Lines(Box::new(Lines::new(*screen)))
    };
    let drawn = matches!(teller, Teller::Terminal(_));
    let mut tasks = JoinSet::new();
    tasks.spawn(pace(paced, drawn.then(|| heard.clone())));
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signals, heard) = (signal(kind)?, heard.clone());
        tasks.spawn(async move {
            signals.recv().await;
            // The story that would hear it may have ended.
            heard.send(Key::Quit).ok();
        });
    }
    let world = Arc::clone(&stage);
    tasks.spawn(async move { world.nature().await });
    let world = Arc::clone(&stage);
    tasks.spawn(async move {
        let options = Options { once: Once::No, listen: None, identity: "demo".to_owned() };
        let ended = world.controller("tidegate", options, &CancellationToken::new()).await;
        tracing::error!(?ended, "the controller ended");
    });
    let mut story = Story::new(stage, teller, keys, tempo)?;
    let words = match story.play(args.auto || !drawn).await? {
        End::Left if home.stays == Stays::IfTold => {
            format!("\nNothing of it stays. To look into the repository: {} demo --dir DIR\n", shell::program())
        }
        End::Told | End::Left => {
            home.stays = Stays::Yes;
            story.last_words()
        }
    };
    // The picture goes, the last words stay.
    drop(story);
    // Who works in the directory ends before it goes.
    tasks.shutdown().await;
    screen.print(&words)?;
    Ok(Exit::Done)
}

/// The directory of a world, which nothing else uses.
struct Home {
    path: PathBuf,
    stays: Stays,
}

/// What becomes of the directory when the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    /// It stays.
    Yes,
    /// It goes, as nobody has asked for it or was told of it.
    IfTold,
}

impl Home {
    fn new(asked: Option<PathBuf>) -> Result<Self, Failure> {
        let stays = if asked.is_some() { Stays::Yes } else { Stays::IfTold };
        Ok(Self { path: directory(asked)?, stays })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Git may be at work on another thread and put a file where all was removed.
        let mut attempts = 0..5;
        while self.stays == Stays::IfTold && attempts.next().is_some() {
            if std::fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

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

/// Lets time pass, and listens to the keyboard if somebody wants to hear it. While a thread waits for the next step, the
/// runtime does not skip time by itself.
async fn pace(tempo: watch::Receiver<Tempo>, heard: Option<mpsc::UnboundedSender<Key>>) {
    loop {
        let now = *tempo.borrow();
        let real = if now == Tempo::Max { Duration::ZERO } else { STEP };
        let key = match &heard {
            Some(heard) => {
                spawn_blocking(move || terminal::read_key(real)).await.map(|key| key.map(|key| heard.send(key)))
            }
            None => spawn_blocking(move || std::thread::sleep(real)).await.map(|()| None),
        };
        // No thread, or nobody who listens: the program ends.
        if !matches!(key, Ok(None | Some(Ok(())))) {
            return;
        }
        match now {
            Tempo::Paused => {}
            Tempo::Times(times) => tokio::time::advance(STEP * times).await,
            Tempo::Max => tokio::time::sleep(story::LOOK).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        assert_eq!("max".parse(), Ok(Speed(Tempo::Max)));
        assert_eq!("3".parse(), Ok(Speed(Tempo::Times(3))));
        for bad in ["", "0", "-1", "1001", "fast"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
    }
}
