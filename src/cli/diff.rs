//! `tidegate diff ROLLOUT`.

use super::Exit;
use super::args::RepositoryArgs;
use super::failure::Failure;
use super::repository::{Access, Repository, named};
use super::screen::Screen;
use super::tracked::as_recorded;
use super::ui::Ink;
use super::validate;
use crate::git::Sought;
use crate::manifest::desired::Rollout;
use crate::manifest::files::{Files, RepoPath};
use crate::manifest::ids::{ClusterName, RolloutId};
use crate::manifest::installation::Caps;
use crate::manifest::load;
use crate::manifest::set::SetFiles;
use crate::record::text::plain;
use crate::report::view::Record;
use clap::Args;
use serde::Serialize;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::path::PathBuf;

mod live;

/// Compare the promoted manifests of a rollout with the wanted ones
#[derive(Debug, Args)]
#[command(
    long_about = "Compares the promoted manifests of a rollout, as pinned on the state branch, with the wanted ones: those \
                  of a working copy, or of a branch. With a kubeconfig also compares what the record wants live with what \
                  is live. Secrets are in neither.",
    after_help = "Examples:
  tidegate diff shop/podinfo
  tidegate diff shop/podinfo --branch main
  tidegate diff shop/podinfo --kubeconfig ~/.kube/config

Ends with 1 if something differs."
)]
pub(super) struct DiffArgs {
    /// NAMESPACE/NAME, or the name alone if no other rollout has it
    rollout: String,
    /// The working copy with the wanted manifests. Default: the clone that this directory lies in
    #[arg(long, value_name = "DIR", conflicts_with = "branch")]
    dir: Option<PathBuf>,
    /// The branch with the wanted manifests, as the remote has it
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Also compares with what is live in this cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiffView {
    /// `namespace/name`.
    pub rollout: String,
    /// The revision that is promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<String>,
    /// The revision that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The files that differ, by their paths beside the rollout's file.
    pub files: Vec<FileDiff>,
    /// The live objects that differ from what the record wants (with a kubeconfig).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveDiff>,
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileDiff {
    /// Its path.
    pub path: String,
    /// The differences as a unified diff.
    pub diff: String,
}

/// One live object that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveDiff {
    /// Which.
    pub object: String,
    /// In words, one difference each.
    pub differences: Vec<String>,
}

/// Shows what differs.
pub(super) async fn command(args: DiffArgs, screen: &Screen) -> Result<Exit, Failure> {
    let repository = Repository::open(&args.repository, Access::Read).await?;
    let (id, record) = repository.record(&args.rollout).await?;
    let files = wanted_files(&args, &repository, &id, &record.state.source.path).await?;
    let rollout = as_recorded(&repository, &record, wanted(&id, &files, &record.state.writer.cluster)?).await?;
    let mut diff = compare(&repository, &record, &rollout).await?;
    if let Some(kubeconfig) = &args.kubeconfig {
        diff.live = live::differences(&repository, &record, &rollout, kubeconfig).await?;
    }
    screen.show(&diff, text)?;
    Ok(if diff.files.is_empty() && diff.live.is_empty() { Exit::Done } else { Exit::Findings })
}

async fn wanted_files(
    args: &DiffArgs,
    repository: &Repository,
    id: &RolloutId,
    at: &RepoPath,
) -> Result<Files, Failure> {
    if let Some(branch) = &args.branch {
        let name = named(branch)?;
        let tips = repository.store.ls_refs(&[name.as_str()]).await?;
        let tip =
            tips.get(&name).ok_or_else(|| Failure::usage(format!("{} has no branch {branch:?}", repository.url)))?;
        repository.store.fetch_tip(&name, tip).await?;
        let sought = Sought { files: [at.clone()].into(), rollouts: [id.clone()].into() };
        let declared = repository.store.declared(tip, &sought, None).await?;
        return Ok(declared.map(|declared| declared.files).unwrap_or_default());
    }
    let dir = args.dir.as_deref().or(repository.root()).ok_or_else(|| {
        Failure::usage("there is no working copy to compare with; name one with --dir, or a branch with --branch")
    })?;
    Ok(validate::read(dir)?)
}

fn wanted(id: &RolloutId, files: &Files, cluster: &ClusterName) -> Result<Rollout, Failure> {
    match load::load(files, &Caps::unknown().serving(cluster.clone())).rollouts.remove(id) {
        Some(Ok(rollout)) => Ok(rollout),
        Some(Err(rejected)) => {
            let errors: Vec<String> = rejected.diagnostics.iter().map(ToString::to_string).collect();
            Err(Failure::failed(format!("the files of {id} have errors:\n{}", errors.join("\n"))))
        }
        None => Err(Failure::failed(format!("no file there declares the rollout {id}"))),
    }
}

async fn compare(repository: &Repository, record: &Record, rollout: &Rollout) -> Result<DiffView, Failure> {
    let promoted = record.state.promoted.as_ref();
    let old = match promoted {
        Some(promoted) => repository.pinned_files(&rollout.id, &promoted.set).await?.map_err(Failure::failed)?,
        None => SetFiles::new(),
    };
    Ok(DiffView {
        rollout: rollout.id.to_string(),
        promoted: promoted.map(|promoted| promoted.revision.to_string()),
        wanted: Some(rollout.set.revision.to_string()),
        files: file_diffs(&old, &rollout.set.files),
        live: Vec::new(),
    })
}

/// What differs between two sets of files.
#[must_use]
pub(super) fn file_diffs(old: &SetFiles, new: &SetFiles) -> Vec<FileDiff> {
    let paths: BTreeSet<&RepoPath> = old.keys().chain(new.keys()).collect();
    let of = |files: &SetFiles, path: &RepoPath| {
        files.get(path).map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
    };
    let one = |path: &RepoPath| {
        let (before, after) = (of(old, path), of(new, path));
        if before == after {
            return None;
        }
        let name = |side: &str, text: &Option<String>| match text {
            Some(_) => format!("{side}/{path}"),
            None => "/dev/null".to_owned(),
        };
        let (from, to) = (name("promoted", &before), name("wanted", &after));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let diff = TextDiff::from_lines(&before, &after).unified_diff().header(&from, &to).to_string();
        Some(FileDiff { path: path.to_string(), diff })
    };
    paths.into_iter().filter_map(one).collect()
}

/// The differences for people.
#[must_use]
pub(super) fn text(diff: &DiffView, ink: Ink) -> String {
    let mut out = String::new();
    for file in &diff.files {
        file.diff.lines().for_each(|line| {
            out.push_str(&coloured(line, ink));
            out.push('\n');
        });
    }
    for LiveDiff { object, differences } in &diff.live {
        out.push_str(&format!("{}\n", ink.bold(&format!("live {object}"))));
        differences.iter().for_each(|difference| out.push_str(&format!("  {}\n", plain(difference))));
    }
    if out.is_empty() {
        out.push_str(&format!("{}: nothing differs.\n", diff.rollout));
    }
    out
}

fn coloured(line: &str, ink: Ink) -> String {
    // What a manifest contains may try to move the cursor; a diff is no place for that.
    let line: String = line
        .chars()
        .flat_map(|c| if c.is_control() && c != '\t' { c.escape_unicode().collect() } else { vec![c] })
        .collect();
    match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => ink.bold(&line),
        [b'@', ..] => ink.busy(&line),
        [b'-', ..] => ink.bad(&line),
        [b'+', ..] => ink.good(&line),
        _ => line,
    }
}

#[cfg(test)]
mod tests;
