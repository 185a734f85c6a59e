//! `tidegate fleet`.

use super::Exit;
use super::args::RepositoryArgs;
use super::failure::Failure;
use super::repository::{Declared, Repository};
use super::screen::{Screen, now};
use super::status::{choose, paint, short};
use super::ui::{self, Ink, Paint, Table};
use crate::manifest::fleet::Fleet;
use crate::manifest::ids::{ClusterName, InstanceName, RolloutId, WaveName};
use crate::record::state::Time;
use crate::report::view::{self, Records, RolloutView, Urgency};
use clap::Args;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Show where each rollout stands in all clusters
#[derive(Debug, Args)]
#[command(
    long_about = "Shows where each rollout stands in each cluster of fleet.yaml, wave by wave, from Git alone: from the state branches that \
                  the instances keep. A cluster that says nothing is shown as dark.",
    after_help = "Examples:
  tidegate fleet
  tidegate fleet shop/podinfo
  tidegate fleet -o json | jq '.rollouts[] | select(.clusters[].phase == \"Failed\").rollout'"
)]
pub(super) struct FleetArgs {
    /// Only this rollout (NAMESPACE/NAME, or its name alone), or all of this namespace
    #[arg(value_name = "ROLLOUT|NAMESPACE")]
    which: Option<String>,
    /// The branch that people push to, which has fleet.yaml
    #[arg(long, value_name = "NAME", default_value = "main")]
    branch: String,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// All rollouts that run on clusters of the fleet.
#[derive(Debug, Serialize)]
pub(super) struct FleetView {
    /// By name.
    pub rollouts: Vec<AcrossView>,
}

/// A rollout in all its clusters.
#[derive(Debug, Serialize)]
pub(super) struct AcrossView {
    /// `namespace/name`.
    #[serde(serialize_with = "as_text")]
    pub rollout: RolloutId,
    /// Wave by wave, within one by name.
    pub clusters: Vec<InClusterView>,
}

/// A rollout in one cluster.
#[derive(Debug, Serialize)]
pub(super) struct InClusterView {
    /// The cluster.
    pub cluster: ClusterName,
    /// Its wave.
    pub wave: WaveName,
    /// The instance that serves it.
    pub instance: InstanceName,
    /// Why nothing is known, where it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dark: Option<String>,
    /// Where it stands.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stands: Option<RolloutView>,
}

fn as_text<S: Serializer>(id: &RolloutId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// Shows where rollouts stand in all clusters.
pub(super) async fn command(args: FleetArgs, screen: &Screen) -> Result<Exit, Failure> {
    let repository = Repository::of_fleet(Path::new("."), &args.repository).await?;
    let (fleet, rollouts) = declared(&repository, &args.branch).await?;
    let mut records = BTreeMap::new();
    for (cluster, member) in &fleet.clusters {
        let read = repository.records_of(&member.instance).await.map_err(|failure| failure.text());
        records.insert(cluster.clone(), read);
    }
    let mut view = across(&fleet, &rollouts, &records, now());
    if let Some(which) = &args.which {
        let chosen = choose(which, view.rollouts.iter().map(|it| &it.rollout))?;
        view.rollouts.retain(|it| chosen.contains(&it.rollout));
    }
    screen.show(&view, |view, ink| table(view, now(), ink))?;
    Ok(Exit::Done)
}

/// Which clusters each rollout runs on.
type Placed = BTreeMap<RolloutId, BTreeSet<ClusterName>>;

async fn declared(repository: &Repository, branch: &str) -> Result<(Fleet, Placed), Failure> {
    match repository.fleet(branch).await? {
        Declared::Fleet(fleet, placed) => Ok((fleet, placed)),
        Declared::Nothing => Err(Failure::usage(format!(
            "{branch} has no fleet.yaml: each tenant runs on one cluster, and `tidegate status` shows it (docs/fleet.md)"
        ))),
        Declared::Unreadable(why) => Err(Failure::failed(format!("fleet.yaml of {branch} cannot be read:\n{why}"))),
    }
}

/// What the records of all clusters say; why one cannot be read.
type AllRecords = BTreeMap<ClusterName, Result<Records, String>>;

/// Where each rollout stands in each of its clusters. What has errors on main is shown where it is recorded.
#[must_use]
pub(super) fn across(fleet: &Fleet, placed: &Placed, records: &AllRecords, now: Time) -> FleetView {
    let recorded = records.values().flatten().flat_map(BTreeMap::keys);
    let all: BTreeSet<&RolloutId> = placed.keys().chain(recorded).collect();
    let rollouts = all.into_iter().map(|id| {
        let clusters = fleet.waves.iter().flat_map(|wave| wave.clusters.iter().map(move |name| (wave, name)));
        let clusters = clusters.filter_map(|(wave, cluster)| {
            let member = fleet.clusters.get(cluster)?;
            let is_here = placed.get(id).is_some_and(|placed| placed.contains(cluster));
            let (stands, dark) = match records.get(cluster) {
                Some(Ok(records)) => (records.get(id).map(|record| stands(id, record, now)), "it has no record of it"),
                Some(Err(why)) => (None, why.as_str()),
                None => (None, "nobody has looked there"),
            };
            let dark = stands.is_none().then(|| dark.to_owned());
            (is_here || stands.is_some()).then(|| InClusterView {
                cluster: cluster.clone(),
                wave: wave.said.name.clone(),
                instance: member.instance.clone(),
                dark,
                stands,
            })
        });
        AcrossView { rollout: id.clone(), clusters: clusters.collect() }
    });
    FleetView { rollouts: rollouts.collect() }
}

fn stands(id: &RolloutId, record: &Result<view::Record, String>, now: Time) -> RolloutView {
    match record {
        Ok(record) => view::rollout(record, now),
        Err(why) => view::unreadable(id, why),
    }
}

/// The table: a row for each rollout in each cluster.
#[must_use]
pub(super) fn table(fleet: &FleetView, now: Time, ink: Ink) -> String {
    if fleet.rollouts.is_empty() {
        return "No rollout runs on a cluster of fleet.yaml.\n".to_owned();
    }
    let mut table = Table::new(&["ROLLOUT", "WAVE", "CLUSTER", "PHASE", "STEP", "REVISION", "SINCE", "WAITS ON"]);
    for AcrossView { rollout, clusters } in &fleet.rollouts {
        for (i, one) in clusters.iter().enumerate() {
            let name = if i == 0 { rollout.to_string() } else { String::new() };
            table.row(row(name, one, now));
        }
    }
    table.print(ink)
}

fn row(name: String, one: &InClusterView, now: Time) -> Vec<(String, Option<Paint>)> {
    let mut cells: Vec<(String, Option<Paint>)> =
        vec![(name, None), (one.wave.to_string(), Some(Ink::dim)), (one.cluster.to_string(), None)];
    let or_dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "–".to_owned());
    match &one.stands {
        Some(view) => {
            let waits: Vec<&str> = view.waits.iter().map(|wait| wait.reason.as_str()).collect();
            cells.extend([
                (view.phase.clone(), Some(paint(view.urgency))),
                (or_dash(view.step.clone()), None),
                (or_dash(view.revision.as_deref().map(short)), Some(Ink::dim as Paint)),
                (or_dash(view.since.map(|since| ui::span((now - since).num_seconds()))), None),
                (or_dash(Some(waits.join(", "))), Some(if waits.is_empty() { Ink::dim } else { Ink::warn })),
            ]);
        }
        None => {
            let dash = || ("–".to_owned(), Some(Ink::dim as Paint));
            let why = one.dark.clone().unwrap_or_default();
            cells.extend([("Dark".to_owned(), Some(paint(Urgency::Wrong))), dash(), dash(), dash()]);
            cells.push((why.lines().next().unwrap_or_default().to_owned(), Some(Ink::warn)));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::tests::{failed, now, soaking, steady};
    use super::*;
    use crate::manifest::fleet;

    const FLEET: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n    eu: {instance: eu, uid: a}\n    \
                         lab: {instance: lab, uid: b}\n    moon: {instance: moon, uid: c}\n    us: {instance: us, uid: d}\n  waves:\n  \
                         - {name: first, clusters: {names: [lab]}}\n  - {name: rest, clusters: {selector: {}}}\n";

    /// Requirement F-11: each rollout in each of its clusters, and who says nothing is dark.
    #[test]
    fn f_11_the_fleet_for_people() {
        let fleet = fleet::parse(&fleet::FILE.parse().unwrap(), FLEET.as_bytes()).unwrap();
        let (web, cart): (RolloutId, RolloutId) = ("shop/web".parse().unwrap(), "shop/cart".parse().unwrap());
        let named = |mut record: view::Record, id: &RolloutId| {
            record.state.metadata = id.clone();
            (id.clone(), Ok(record))
        };
        let all = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<ClusterName>>();
        let placed = [(web.clone(), all(&["lab", "eu", "moon", "us"])), (cart.clone(), all(&["eu"]))].into();
        let records: AllRecords = [
            ("lab".parse().unwrap(), Ok([named(steady(), &web)].into())),
            ("eu".parse().unwrap(), Ok([named(soaking(), &web), named(failed(), &cart)].into())),
            ("us".parse().unwrap(), Ok(Records::new())),
            ("moon".parse().unwrap(), Err("the branch tidegate/moon/state is not there\nand more".to_owned())),
        ]
        .into();
        let view = across(&fleet, &placed, &records, now());
        insta::assert_snapshot!(table(&view, now(), Ink::Plain));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["rollouts"][1]["clusters"][0]["phase"], "Steady");
        assert_eq!(json["rollouts"][1]["clusters"][2]["dark"], "the branch tidegate/moon/state is not there\nand more");
    }
}
