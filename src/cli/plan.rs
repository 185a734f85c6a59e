//! `tidegate plan [DIR]`.

mod live;
mod offline;

use super::Exit;
use super::args::RepositoryArgs;
use super::failure::Failure;
use super::repository::{Access, Repository};
use super::screen::{Screen, now};
use super::ui::{self, Ink, Paint, Table};
use super::validate;
use crate::manifest::ids::{CheckName, ClusterName, InstanceName};
use crate::manifest::installation::Caps;
use crate::manifest::load::Loaded;
use crate::manifest::policy;
pub(super) use crate::plan::outlook::Effect;
use crate::record::state::Time;
use crate::record::text::plain;
use crate::report::view::Records;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Show what tidegate would do with these files
#[derive(Debug, Args)]
#[command(
    long_about = "Shows what tidegate would do if the files of a directory were merged: for each rollout whether a run \
                  starts, and its steps with their gates and the earliest times. It changes nothing. With a kubeconfig the \
                  real planner is asked, against what is live (server-side dry runs included).",
    after_help = "Examples:
  tidegate plan
  tidegate plan . --all
  tidegate plan --without-record           # as if nothing had ever run
  tidegate plan --kubeconfig ~/.kube/config"
)]
pub(super) struct PlanArgs {
    /// A working copy, or a directory in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Also lists rollouts that nothing happens to
    #[arg(long)]
    all: bool,
    /// Looks at the files alone, as if nothing had ever run
    #[arg(long, conflicts_with = "kubeconfig")]
    without_record: bool,
    /// Asks the planner itself, with what is live in this cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What would happen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanView {
    /// What the files were compared with.
    pub compared: String,
    /// The rollouts, by name.
    pub rollouts: Vec<PlannedView>,
    /// What is wrong with files that name no rollout, and with the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What in the files is accepted, and probably not meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What would happen to one rollout.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlannedView {
    /// `namespace/name`.
    pub rollout: String,
    /// Its file.
    pub path: String,
    /// In a word.
    pub change: Effect,
    /// In a sentence.
    pub message: String,
    /// When whom its run lets in, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<String>,
    /// The steps to come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// What its checks ask a Prometheus about the candidate, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<CheckName, String>,
    /// What the planner wants done now (with a kubeconfig).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionView>,
    /// What it waits on: all with a kubeconfig, else the mistakes in its files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
}

/// A step to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepView {
    /// Its name.
    pub step: String,
    /// What reaches the new version, in words; empty: nothing.
    pub exposes: String,
    /// What must be open to enter it.
    pub gates: Vec<String>,
    /// How long it lasts at least.
    pub lasts: String,
    /// When it can be entered at the earliest, if pods were ready and people agreed at once; none: its window never opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Time>,
}

/// One thing that the planner wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionView {
    /// `retreat`, `record`, `upkeep` or `advance`.
    pub class: &'static str,
    /// What it does to which object.
    pub does: String,
    /// Why.
    pub why: String,
}

/// Shows what would happen.
pub(super) async fn command(args: PlanArgs, screen: &Screen) -> Result<Exit, Failure> {
    let root = validate::root(&args.dir)?.ok_or_else(|| no_policy(&args.dir))?;
    let mut loaded = validate::loaded(&root)?;
    let against = against(&args, &root).await?;
    if let Against::Record(repository) = &against
        && let Some(cluster) = served(&loaded, &repository.instance)
    {
        loaded = validate::loaded_with(&root, &Caps::unknown().serving(cluster))?;
    }
    let now = now();
    let mut plan = match &against {
        Against::Record(repository) => offline::plan(&loaded, repository, now).await?,
        Against::Nothing(compared) => {
            offline::planned(&loaded, &Records::new(), &offline::Pinned::new(), compared, now)
        }
    };
    if let (Some(kubeconfig), Against::Record(repository)) = (&args.kubeconfig, &against) {
        live::add(&mut plan, &loaded, repository, kubeconfig, now).await?;
    }
    if let Against::Record(repository) = &against {
        waved(&mut plan, &loaded, &repository.instance);
    }
    if !args.all {
        plan.rollouts.retain(|planned| planned.change != Effect::None || !planned.actions.is_empty());
    }
    screen.show(&plan, |plan, ink| text(plan, now, ink))?;
    Ok(if loaded.errors().is_empty() { Exit::Done } else { Exit::Findings })
}

/// The cluster that an instance serves, as the fleet says.
fn served(loaded: &Loaded, instance: &InstanceName) -> Option<ClusterName> {
    let fleet = loaded.fleet.as_ref().ok()?.as_ref()?;
    fleet.clusters.iter().find(|(_, member)| member.instance == *instance).map(|(name, _)| name.clone())
}

/// Says of what would begin which clusters are first.
fn waved(plan: &mut PlanView, loaded: &Loaded, instance: &InstanceName) {
    let (Some(cluster), Ok(Some(fleet))) = (served(loaded, instance), &loaded.fleet) else { return };
    for planned in &mut plan.rollouts {
        let rollout = loaded.rollouts.iter().find(|(id, _)| id.to_string() == planned.rollout);
        let clusters = rollout.and_then(|(_, rollout)| Some(&rollout.as_ref().ok()?.clusters));
        let awaits = clusters.and_then(|clusters| fleet.awaits(&cluster, clusters));
        if let Some(first) = planned.steps.first_mut().filter(|_| planned.change == Effect::Run) {
            first.gates.splice(0..0, awaits);
        }
    }
}

fn no_policy(dir: &Path) -> Failure {
    let (dir, file) = (dir.canonicalize().unwrap_or_else(|_| dir.to_owned()), policy::FILE);
    Failure::usage(format!(
        "there is no {file} in {}, nor above it in the same repository; go to the clone of your deployments, whose root \
         has that file, or name it: tidegate plan DIR",
        dir.display()
    ))
}

/// What the files are compared with.
enum Against {
    Record(Box<Repository>),
    /// Nothing, in words.
    Nothing(String),
}

async fn against(args: &PlanArgs, root: &Path) -> Result<Against, Failure> {
    let alone = "no record, as if nothing had ever run";
    if args.without_record {
        return Ok(Against::Nothing(alone.to_owned()));
    }
    match Repository::open_from(root, &args.repository, Access::Read).await {
        Ok(repository) => Ok(Against::Record(Box::new(repository))),
        // Nothing has ever run.
        Err(Failure::NoRecord(why)) if args.kubeconfig.is_none() => {
            Ok(Against::Nothing(format!("{alone}, since {}", why.lines().next().unwrap_or_default())))
        }
        Err(Failure::NoRepository(why)) if args.kubeconfig.is_none() => Err(Failure::NoRepository(format!(
            "{why}\nThere is no record to compare with. To see what the files alone come to: tidegate plan --without-record"
        ))),
        Err(failure) => Err(failure),
    }
}

/// What is wrong with files that name no rollout, and with the policy.
fn general_errors(loaded: &Loaded) -> Vec<String> {
    let policy = loaded.policy.as_ref().err().into_iter().flatten();
    policy.chain(&loaded.unnamed).map(ToString::to_string).collect()
}

/// The plan for people.
#[must_use]
pub(super) fn text(plan: &PlanView, now: Time, ink: Ink) -> String {
    let mut out = format!("{}\n", ink.dim(&format!("Compared with {}.", plan.compared)));
    for error in &plan.errors {
        let _ = writeln!(out, "\n{} {error}", ink.bad("error:"));
    }
    for warning in &plan.warnings {
        let _ = writeln!(out, "\n{} {warning}", ink.warn("warning:"));
    }
    for planned in &plan.rollouts {
        out.push('\n');
        out.push_str(&one(planned, now, ink));
    }
    if plan.rollouts.is_empty() {
        let _ = writeln!(out, "\nNothing would happen.");
    }
    out
}

fn one(planned: &PlannedView, now: Time, ink: Ink) -> String {
    let PlannedView { rollout, path, change, message, timeline, steps, queries, actions, waits } = planned;
    let (word, paint) = head(*change);
    let mut out = format!("{}  {}  {}\n  {message}\n", ink.bold(rollout), paint(ink, word), ink.dim(path));
    if let Some(timeline) = timeline {
        let _ = writeln!(out, "  In short: {timeline}.");
    }
    for wait in waits {
        let _ = writeln!(out, "  {} {wait}", ink.warn("!"));
    }
    if !steps.is_empty() {
        let mut table = Table::new(&["STEP", "EXPOSES", "GATES", "LASTS", "EARLIEST"]);
        for StepView { step, exposes, gates, lasts, earliest } in steps {
            let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
            table.row(vec![
                (step.clone(), None),
                (or_dash(exposes.clone()), None),
                (or_dash(gates.join(", ")), Some(if gates.is_empty() { Ink::dim } else { Ink::warn })),
                (or_dash(lasts.clone()), None),
                (earliest.map_or("never".to_owned(), |at| ui::distance(at, now)), Some(Ink::dim)),
            ]);
        }
        out.push_str(&indented(&table.print(ink)));
        let _ = writeln!(out, "  {}", ink.dim("Earliest: if pods are ready and people agree at once."));
    }
    for (check, query) in queries {
        let _ = writeln!(out, "  {} {}", ink.dim(&format!("{check} asks:")), plain(query));
    }
    if !actions.is_empty() {
        let mut table = Table::new(&["CLASS", "DOES", "WHY"]);
        for ActionView { class, does, why } in actions {
            table.row(vec![
                ((*class).to_owned(), Some(Ink::busy)),
                (does.clone(), None),
                (why.clone(), Some(Ink::dim)),
            ]);
        }
        out.push_str(&indented(&table.print(ink)));
    }
    out
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn head(change: Effect) -> (&'static str, Paint) {
    match change {
        Effect::None => ("nothing", Ink::dim),
        Effect::FirstSight => ("first sight", Ink::busy),
        Effect::Direct => ("applied directly", Ink::busy),
        Effect::Run => ("a run starts", Ink::busy),
        Effect::UnderWay => ("under way", Ink::busy),
        Effect::Supersedes => ("supersedes the open run", Ink::warn),
        Effect::TakesBack => ("takes the open run back", Ink::warn),
        Effect::Refused => ("refused", Ink::bad),
        Effect::Rejected => ("rejected", Ink::bad),
        Effect::Removed => ("removed", Ink::warn),
        Effect::Held => ("held", Ink::bad),
    }
}

#[cfg(test)]
mod tests;
