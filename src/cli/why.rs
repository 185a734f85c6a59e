//! `tidegate why ROLLOUT`.

use super::Exit;
use super::args::RepositoryArgs;
use super::decide;
use super::decisions;
use super::failure::Failure;
use super::repository::{self, Access, Repository};
use super::screen::{Screen, now};
use super::status::{paint, short};
use super::ui::{self, Ink};
use crate::gate::decisions::Ignored;
use crate::manifest::ids::RunId;
use crate::record::state::{Consumed, Outcome, PastRun, Refused, RolloutState, Time, Void};
use crate::record::text::plain;
use crate::report::view::{self, Record, RolloutView, WaitView};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;

/// How many runs of the history are shown.
const RUNS: usize = 5;

/// How many decisions that do not count are shown.
const IGNORED: usize = 5;

/// Say all that one rollout waits on
#[derive(Debug, Args)]
#[command(
    long_about = "Says all that one rollout waits on: who can change it, since when, when it is looked at next, what to \
                  do. Works from the repository alone.",
    after_help = "Examples:
  tidegate why shop/podinfo
  tidegate why podinfo -o json | jq '.waits[].reason'"
)]
pub(super) struct WhyArgs {
    /// NAMESPACE/NAME, or the name alone if no other rollout has it
    rollout: String,
    /// The branch that people push to, where a rollout without a record may be declared with errors
    #[arg(long, value_name = "NAME", default_value = "main")]
    branch: String,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// All that is known of one rollout.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhyView {
    /// Where it stands and what it waits on.
    #[serde(flatten)]
    pub rollout: RolloutView,
    /// When the open run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// The last run that failed, was aborted or rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<PastRun>,
    /// Revisions that are not started again.
    pub refused: Vec<Refused>,
    /// Decisions that were counted for the open run, else for the last.
    pub counted: Vec<DecisionView>,
    /// Decisions that do not count, and why.
    pub ignored: Vec<DecisionView>,
    /// Ended runs, the newest first.
    pub history: Vec<PastRun>,
}

/// A decision as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionView {
    /// Its file on the decisions branch.
    pub path: String,
    /// Who said it; for one that does not count: why not.
    pub words: String,
    /// When it was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// Says what a rollout waits on.
pub(super) async fn command(args: WhyArgs, screen: &Screen) -> Result<Exit, Failure> {
    let repository = Repository::open(&args.repository, Access::Read).await?;
    let now = now();
    let why = match declared(&repository, &args).await? {
        Some(rollout) => unrecorded(rollout),
        None => {
            let (_, record) = repository.record(&args.rollout).await?;
            let ignored = decisions::ignored(&repository, &record, now).await?;
            why(&record, ignored, now)
        }
    };
    screen.show(&why, |why, ink| text(why, now, ink))?;
    Ok(Exit::Done)
}

/// The rollout that a person named, if it has no record and its branch declares it with errors.
async fn declared(repository: &Repository, args: &WhyArgs) -> Result<Option<RolloutView>, Failure> {
    let records = repository.records().await?;
    if repository::find(&args.rollout, records.keys()).is_ok() {
        return Ok(None);
    }
    let rejected = repository.rejected(&args.branch).await?.unwrap_or_default();
    let found = repository::find(&args.rollout, rejected.keys()).ok().filter(|id| !records.contains_key(id));
    Ok(found.and_then(|id| Some(view::rejected(&id, rejected.get(&id)?))))
}

/// A rollout of which no record tells.
#[must_use]
pub(super) fn unrecorded(rollout: RolloutView) -> WhyView {
    WhyView {
        rollout,
        started: None,
        last_failure: None,
        refused: Vec::new(),
        counted: Vec::new(),
        ignored: Vec::new(),
        history: Vec::new(),
    }
}

/// All that the record tells, and the decisions that do not count.
#[must_use]
pub(super) fn why(record: &Record, ignored: Vec<Ignored>, now: Time) -> WhyView {
    let state = &record.state;
    let (void, counted): (Vec<_>, Vec<_>) = state
        .consumed
        .iter()
        .filter(|decision| is_about_now(state, decision))
        .partition(|decision| decision.void.is_some());
    let lacks = if decide::rule(state).is_some() { "is not proven" } else { "does not count" };
    let unproven = void.into_iter().filter_map(|decision| {
        let Void { why, through: _, head: _ } = decision.void.as_ref()?;
        let words = format!("{} {lacks}: {}", plain(&decision.action), plain(why));
        Some(DecisionView { path: decision.path.to_string(), words, at: Some(decision.at) })
    });
    let counted = counted.into_iter().map(|decision| DecisionView {
        path: decision.path.to_string(),
        words: format!("{} by {}", plain(&decision.action), plain(&decision.by)),
        at: Some(decision.at),
    });
    let ended_badly = |run: &&PastRun| match run.outcome {
        Outcome::Failed | Outcome::Aborted | Outcome::Unmeasured | Outcome::RolledBack => true,
        Outcome::Promoted | Outcome::Reverted | Outcome::Superseded => false,
    };
    WhyView {
        rollout: view::rollout(record, now),
        started: state.run.as_ref().map(|run| run.started),
        last_failure: state.history.iter().rev().find(ended_badly).cloned(),
        refused: state.refused.iter().rev().cloned().collect(),
        counted: counted.collect(),
        ignored: ignored
            .into_iter()
            .map(|decision| DecisionView { path: decision.path.to_string(), words: decision.why, at: None })
            .chain(unproven)
            .collect(),
        history: state.history.iter().rev().cloned().collect(),
    }
}

/// Whether a decision is about the open run, else the last one, else none. One that does not count may also be about any that is refused.
fn is_about_now(state: &RolloutState, decision: &Consumed) -> bool {
    let last = state.last_run.as_ref().map(|run| &run.id);
    let current = state.run.as_ref().map(|run| &run.id).or(last).cloned().unwrap_or_else(RunId::zero);
    decision.run == current
        || decision.void.is_some() && state.refused.iter().any(|refused| refused.run == decision.run)
}

/// The same for people.
#[must_use]
pub(super) fn text(why: &WhyView, now: Time, ink: Ink) -> String {
    let mut out = head(why, now, ink);
    let heading = |out: &mut String, text: &str| {
        let _ = writeln!(out, "\n{}", ink.bold(text));
    };
    if why.rollout.waits.is_empty() {
        let _ = writeln!(out, "\nIt waits on nothing.");
    } else {
        heading(&mut out, "Waits on");
        why.rollout.waits.iter().for_each(|wait| out.push_str(&waiting(wait, now, ink)));
    }
    let told = |because: &str| why.rollout.waits.iter().any(|wait| wait.message == plain(because));
    if let Some(run) = why.last_failure.as_ref().filter(|run| !told(&run.why)) {
        heading(&mut out, "Last failure");
        let _ = writeln!(out, "  {}", past(run, now, ink));
    }
    if !why.refused.is_empty() {
        heading(&mut out, "Refused revisions");
        for Refused { revision, run, outcome, why: because, at } in &why.refused {
            let when = ui::distance(*at, now);
            let because = if told(because) { String::new() } else { format!(": {}", plain(because)) };
            let _ = writeln!(out, "  {}  {outcome:?} in run {run}, {when}{because}", revision.short());
            let _ = writeln!(out, "    {} tidegate retry {} --run {run}", ink.dim("do:"), why.rollout.rollout);
        }
    }
    if !why.counted.is_empty() || !why.ignored.is_empty() {
        heading(&mut out, "Decisions");
        for DecisionView { path, words, at } in &why.counted {
            let when = at.map(|at| ui::distance(at, now)).unwrap_or_default();
            let _ = writeln!(out, "  {} {words}, {when}  {}", ink.good("counted"), ink.dim(path));
        }
        // The newest have the highest runs, and so come last.
        let more = why.ignored.len().saturating_sub(IGNORED);
        if more > 0 {
            let _ = writeln!(out, "  {} {more} older, all in -o json", ink.warn("ignored"));
        }
        for DecisionView { path, words, at: _ } in why.ignored.iter().skip(more) {
            let _ = writeln!(out, "  {} {words}  {}", ink.warn("ignored"), ink.dim(path));
        }
    }
    if !why.history.is_empty() {
        heading(&mut out, "Last runs");
        why.history.iter().take(RUNS).for_each(|run| {
            let _ = writeln!(out, "  {}", past(run, now, ink));
        });
    }
    out
}

fn head(why: &WhyView, now: Time, ink: Ink) -> String {
    let WhyView { rollout: view, started, .. } = why;
    let mut out = format!("{}  {}", ink.bold(&view.rollout.to_string()), paint(view.urgency)(ink, &view.phase));
    if let Some(step) = &view.step {
        let _ = write!(out, " on {step}");
    }
    if let Some(since) = view.since {
        let _ = write!(out, ", since {}", ui::distance(since, now));
    }
    out.push('\n');
    for one in &view.exposure {
        let _ = writeln!(out, "  exposed in {}: {}", one.cluster, one.words);
    }
    let promoted = view.promoted.as_deref().map_or("nothing".to_owned(), short);
    match (&view.run, started) {
        (Some(run), Some(started)) => {
            let brings = view.revision.as_deref().map_or("?".to_owned(), short);
            let when = ui::distance(*started, now);
            let _ = writeln!(out, "  run {run} brings {brings} (promoted: {promoted}), started {when}");
        }
        _ => {
            let _ = writeln!(out, "  promoted: {promoted}");
        }
    }
    if !view.steps.is_empty() {
        let _ = writeln!(out, "  {}", steps(view, ink));
    }
    out
}

/// The steps of the open run: those done, the one that it stands on, those to come.
fn steps(view: &RolloutView, ink: Ink) -> String {
    let at = view.entered.unwrap_or(0);
    let step = |(i, name): (usize, &String)| match () {
        () if i + 1 < at => ink.good(&format!("✓ {name}")),
        () if i + 1 == at => ink.busy(&format!("● {name}")),
        () => ink.dim(&format!("○ {name}")),
    };
    view.steps.iter().enumerate().map(step).collect::<Vec<_>>().join("  ")
}

fn waiting(wait: &WaitView, now: Time, ink: Ink) -> String {
    let WaitView { reason, message, owner, since, until, act } = wait;
    let mut out = format!("  {}  {message}\n", ink.warn(reason));
    let mut facts = vec![format!("who: {owner}")];
    facts.extend(since.map(|since| format!("since {}", ui::distance(since, now))));
    facts.push(match until {
        Some(until) => format!("ends, and is looked at again, {}", ui::distance(*until, now)),
        None => "looked at again at each push, change in the cluster and poll".to_owned(),
    });
    let _ = writeln!(out, "    {}", ink.dim(&facts.join(" · ")));
    if let Some(act) = act {
        let _ = writeln!(out, "    {} {act}", ink.dim("do:"));
    }
    out
}

fn past(run: &PastRun, now: Time, ink: Ink) -> String {
    let PastRun { run, revision, outcome, why, started, ended, from: _, names: _, stable: _, to: _, began: _ } = run;
    let paint: ui::Paint = match outcome {
        Outcome::Promoted => Ink::good,
        Outcome::Failed | Outcome::Aborted | Outcome::RolledBack => Ink::bad,
        Outcome::Reverted | Outcome::Superseded | Outcome::Unmeasured => Ink::warn,
    };
    let took = ui::span((*ended - *started).num_seconds());
    let why = if why.is_empty() { String::new() } else { format!(": {}", plain(why)) };
    format!(
        "{run}  {}  {}  {}, took {took}{why}",
        revision.short(),
        paint(ink, &format!("{outcome:?}")),
        ui::distance(*ended, now)
    )
}
