//! `tidegate status`.

use super::Exit;
use super::args::{Format, RepositoryArgs};
use super::failure::Failure;
use super::repository::{Access, Repository};
use super::screen::{Screen, now};
use super::ui::{self, Ink, Paint, Table};
use super::units;
use crate::forge::branch;
use crate::manifest::ids::{Namespace, RolloutId};
use crate::record::state::Time;
use crate::record::text;
use crate::report::view::{self, RolloutView, StatusView, Urgency, WaitView};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often `--watch` looks.
const EVERY: Duration = Duration::from_secs(2);

/// Show where each rollout stands
#[derive(Debug, Args)]
#[command(
    long_about = "Shows where each rollout stands, from Git alone: no cluster is asked. What needs a person \
                  comes first.",
    after_help = "Examples:
  tidegate status
  tidegate status shop --watch
  tidegate status shop/podinfo -o json
  tidegate status shop/podinfo --exit-code   # 3 while it waits or moves, 1 if it failed
  tidegate status --open --exit-code         # 0 if no run is open
  tidegate status network/fabric --units --kubeconfig ~/.kube/config"
)]
pub(super) struct StatusArgs {
    /// Only this rollout (NAMESPACE/NAME, or its name alone), or all of this namespace
    #[arg(value_name = "ROLLOUT|NAMESPACE")]
    which: Option<String>,
    /// Looks again every 2 s until interrupted
    #[arg(short, long)]
    watch: bool,
    /// Only rollouts whose run is open, or whose record cannot be read
    #[arg(long)]
    open: bool,
    /// Shows the nodes of one rollout that configures nodes, as they are in the cluster
    #[arg(long, requires = "which", requires = "kubeconfig", conflicts_with_all = ["open", "exit_code"])]
    units: bool,
    /// The cluster, for --units
    #[arg(long, value_name = "FILE", requires = "units")]
    kubeconfig: Option<PathBuf>,
    /// Ends with 3 while something waits or moves, with 1 if something failed
    #[arg(long)]
    exit_code: bool,
    /// The branch that people push to: rollouts that it declares with errors are shown as Rejected
    #[arg(long, value_name = "NAME", default_value = "main")]
    branch: String,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// Shows where rollouts stand.
pub(super) async fn command(args: StatusArgs, screen: &Screen) -> Result<Exit, Failure> {
    let mut repository = if args.open {
        Repository::reach(Path::new("."), &args.repository, Access::Read).await?
    } else {
        Repository::open(&args.repository, Access::Read).await?
    };
    if let (Some(which), Some(kubeconfig), true) = (&args.which, &args.kubeconfig, args.units) {
        let records = repository.records().await?;
        let id = super::repository::find(which, records.keys())?;
        let look = async || units::look(&repository, &id.namespace, kubeconfig).await;
        show(screen, args.watch, look, |view, ink| units::table(view, now(), ink)).await?;
        return Ok(Exit::Done);
    }
    let mut is_fetched = true;
    let look = async || {
        if !std::mem::take(&mut is_fetched) {
            repository.refresh().await?;
        }
        look(&repository, &args).await
    };
    let status = show(screen, args.watch, look, |status, ink| table(status, args.open, now(), ink)).await?;
    Ok(if args.exit_code { verdict(&status) } else { Exit::Done })
}

/// Shows what a look finds, and that is all; with `watch` again and again.
async fn show<V: Serialize>(
    screen: &Screen,
    watch: bool,
    mut look: impl AsyncFnMut() -> Result<V, Failure>,
    table: impl Fn(&V, Ink) -> String,
) -> Result<V, Failure> {
    let mut seen = look().await?;
    if !watch {
        screen.show(&seen, &table)?;
        return Ok(seen);
    }
    loop {
        if screen.format == Format::Table {
            // Home, then clear to the end.
            screen.print("\u{1b}[H\u{1b}[2J")?;
        }
        screen.show(&seen, &table)?;
        seen = loop {
            tokio::time::sleep(EVERY).await;
            match look().await {
                Ok(seen) => break seen,
                // A server that is away for a while ends no watch.
                Err(failure) => screen.print(&format!("{} {}\n", screen.ink.bad("error:"), failure.text()))?,
            }
        };
    }
}

async fn look(repository: &Repository, args: &StatusArgs) -> Result<StatusView, Failure> {
    if args.open && args.which.is_none() && repository.state_tip().is_err() {
        return nothing_begun(repository, &args.branch).await;
    }
    let records = repository.records().await?;
    let mut rollouts = view::rollouts(&records, now());
    let (rejected, main_unreadable) = match repository.rejected(&args.branch).await? {
        Ok(rejected) => (rejected, None),
        Err(why) => (BTreeMap::new(), Some(why)),
    };
    // What has a record tells of its errors there, beside where it stands.
    let new = rejected.iter().filter(|(id, _)| !records.contains_key(id));
    rollouts.extend(new.map(|(id, rejected)| view::rejected(id, rejected)));
    view::sort(&mut rollouts);
    if let Some(which) = &args.which {
        let chosen = choose(which, rollouts.iter().map(|view| &view.rollout))?;
        rollouts.retain(|view| chosen.contains(&view.rollout));
    }
    if args.open {
        rollouts.retain(RolloutView::may_be_open);
    }
    let tip = Some(repository.state_tip()?.to_string());
    Ok(StatusView { instance: repository.instance.clone(), tip, main_unreadable, rollouts })
}

/// Who never wrote a record has begun nothing, where there was nothing to begin. Else it may be that no controller ever got
/// to work, or that the record of an open run is lost.
async fn nothing_begun(repository: &Repository, main: &str) -> Result<StatusView, Failure> {
    let instance = &repository.instance;
    if !repository.declares_nothing(main).await? {
        return Err(Failure::failed(format!(
            "nobody can tell whether a run of {instance} is open: its record is missing, and {main} declares rollouts, or \
             cannot be read\n\
             Either no controller has got to work yet, or the branch {} was deleted. If you deleted it, push it again; \
             else look at the cluster whether a route still leads to a candidate.",
            branch::state_branch(instance),
        )));
    }
    Ok(StatusView { instance: instance.clone(), tip: None, main_unreadable: None, rollouts: Vec::new() })
}

/// The rollouts that a person means: one, or those of a namespace.
pub(super) fn choose<'a>(
    which: &str,
    ids: impl Iterator<Item = &'a RolloutId> + Clone,
) -> Result<Vec<RolloutId>, Failure> {
    if let Ok(namespace) = which.parse::<Namespace>() {
        let found: Vec<RolloutId> = ids.clone().filter(|id| id.namespace == namespace).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(vec![super::repository::find(which, ids)?])
}

/// How `--exit-code` ends.
#[must_use]
pub(super) fn verdict(status: &StatusView) -> Exit {
    match status.rollouts.iter().map(|view| view.urgency).min() {
        Some(Urgency::Wrong) => Exit::Findings,
        Some(Urgency::Back | Urgency::Waiting | Urgency::Moving) => Exit::Waiting,
        Some(Urgency::Rest) | None => Exit::Done,
    }
}

/// The paint of a phase.
#[must_use]
pub(super) fn paint(urgency: Urgency) -> Paint {
    match urgency {
        Urgency::Wrong | Urgency::Back => Ink::bad,
        Urgency::Waiting => Ink::warn,
        Urgency::Moving => Ink::busy,
        Urgency::Rest => Ink::good,
    }
}

/// The table of all rollouts, or of those that are `open`, and one line that sums it up.
#[must_use]
pub(super) fn table(status: &StatusView, open: bool, now: Time, ink: Ink) -> String {
    let main =
        status.main_unreadable.iter().map(|why| ink.bad(&format!("Main cannot be read: {why}")).to_string() + "\n");
    main.chain([rollouts(status, open, now, ink)]).collect()
}

fn rollouts(status: &StatusView, open: bool, now: Time, ink: Ink) -> String {
    if status.rollouts.is_empty() && open {
        return format!("No run of {} is open.\n", status.instance);
    }
    if status.rollouts.is_empty() {
        return format!("No rollouts: the record of {} is empty.\n", status.instance);
    }
    let mut table = Table::new(&["ROLLOUT", "PHASE", "STEP", "EXPOSURE", "RUN", "REVISION", "SINCE", "WAITS ON"]);
    for view in &status.rollouts {
        table.row(row(view, now));
    }
    format!("{}\n{}\n", table.print(ink), ink.dim(&summary(status)))
}

fn row(view: &RolloutView, now: Time) -> Vec<(String, Option<Paint>)> {
    let or_dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "–".to_owned());
    let waits: Vec<String> = view.waits.iter().map(|wait| waiting(wait, now)).collect();
    vec![
        (view.rollout.to_string(), None),
        (view.phase.clone(), Some(paint(view.urgency))),
        (progress(view), Some(if view.run.is_some() { Ink::busy } else { Ink::dim })),
        (or_dash(exposure(view)), None),
        (or_dash(view.run.clone()), Some(Ink::dim)),
        (or_dash(view.revision.as_deref().map(short)), Some(Ink::dim)),
        (or_dash(view.since.map(|since| ui::span((now - since).num_seconds()))), None),
        (or_dash(Some(waits.join(", "))), Some(if waits.is_empty() { Ink::dim } else { Ink::warn })),
    ]
}

/// A reason, with the time that is left of it if it ends by itself.
fn waiting(wait: &WaitView, now: Time) -> String {
    match wait.until {
        Some(until) if until > now => format!("{} {}", wait.reason, ui::span((until - now).num_seconds())),
        Some(_) | None => wait.reason.clone(),
    }
}

/// How far the open run is: `▕██░░░▏ 3/8 tenth`.
#[must_use]
pub(super) fn progress(view: &RolloutView) -> String {
    match (view.entered, &view.step) {
        (Some(at), step) => {
            let of = view.steps.len();
            let name = step.as_ref().map_or(String::new(), |step| format!(" {step}"));
            format!("{} {at}/{of}{name}", ui::bar(at, of, 5))
        }
        (None, Some(step)) => step.clone(),
        (None, None) => "–".to_owned(),
    }
}

/// What is exposed, short enough for a column.
fn exposure(view: &RolloutView) -> Option<String> {
    let words: Vec<String> = match &view.exposure[..] {
        [one] => vec![one.words.clone()],
        several => several.iter().map(|one| format!("{}: {}", one.cluster, one.words)).collect(),
    };
    let text = words.join("; ");
    let short: String = text.chars().take(40).collect();
    Some(if short.len() < text.len() { format!("{short}…") } else { short })
}

/// The first digits of a revision.
#[must_use]
pub(super) fn short(revision: &str) -> String {
    revision.rsplit(':').next().unwrap_or(revision).chars().take(8).collect()
}

fn summary(status: &StatusView) -> String {
    let mut phases: Vec<(&str, usize)> = Vec::new();
    for view in &status.rollouts {
        match phases.iter_mut().find(|(phase, _)| *phase == view.phase) {
            Some((_, count)) => *count += 1,
            None => phases.push((&view.phase, 1)),
        }
    }
    let phases: Vec<String> = phases.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    let short: String = status.tip.iter().flat_map(|tip| tip.chars()).take(8).collect();
    format!("{}: {} · {} at {short}", text::count(status.rollouts.len(), "rollout"), phases.join(", "), status.instance)
}
