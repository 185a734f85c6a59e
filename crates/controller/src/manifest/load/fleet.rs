//! The clusters that a rollout runs on, and whether it is known in which order a version reaches them.

use super::{Draft, unread};
use crate::manifest::check::Findings;
use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::fleet::{self, Fleet};
use crate::manifest::ids::{ClusterName, Revision};
use crate::manifest::policy::Policy;
use crate::manifest::tracked::Track;
use crate::manifest::{raw, set};
use std::collections::{BTreeMap, BTreeSet};

/// What the fleet's file says, if there is one.
pub(super) fn read(files: &Files) -> Result<Option<Fleet>, Vec<Diagnostic>> {
    let path: RepoPath = fleet::FILE.parse().expect("the name of the fleet's file is a path");
    match files.get(&path) {
        Some(Entry::File { bytes, .. }) => fleet::parse(&path, bytes).map(Some),
        Some(entry) => Err(vec![unread(&path, entry)]),
        None => Ok(None),
    }
}

/// The clusters that the tenant of a file runs on.
pub(super) fn clusters(draft: &Draft, policy: Option<&Policy>) -> BTreeSet<ClusterName> {
    let tenant = policy.and_then(|policy| policy.tenant_of(&draft.path));
    tenant.map(|(_, tenant)| tenant.clusters.clone()).unwrap_or_default()
}

/// Why nobody knows in which order a version reaches several clusters.
pub(super) fn unordered(
    draft: &Draft,
    clusters: &BTreeSet<ClusterName>,
    fleet: Result<&Option<Fleet>, &Vec<Diagnostic>>,
) -> Option<Diagnostic> {
    if clusters.len() < 2 {
        return None;
    }
    if draft.raw.as_ref().is_ok_and(|raw| raw.spec.target.track != Track::default()) {
        let what = "what is tracked is another content in each cluster, so that no version would be the same in two";
        let expected = "no track with a tenant of several clusters";
        return Some(draft.at("/spec/target/track", Code::Conflict, what, expected));
    }
    let all = clusters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (what, code) = match fleet {
        Ok(Some(fleet)) => {
            let unknown = clusters.iter().find(|name| !fleet.clusters.contains_key(*name))?;
            (
                format!("its tenant runs on the cluster {unknown}, which {} does not have", fleet::FILE),
                Code::FleetInvalid,
            )
        }
        Ok(None) => {
            (format!("its tenant runs on the clusters {all}, and there is no {}", fleet::FILE), Code::FleetInvalid)
        }
        // It is told there.
        Err(_) => {
            (format!("its tenant runs on the clusters {all}, and {} has errors", fleet::FILE), Code::PolicyInvalid)
        }
    };
    let expected = format!("clusters of {}, which says in which order versions reach them", fleet::FILE);
    Some(draft.at("/metadata", code, what, expected))
}

/// What stands for the name of the cluster in an entry of `manifests`.
const CLUSTER: &str = "{cluster}";

fn differ(manifests: &[String]) -> bool {
    manifests.iter().any(|entry| entry.contains(CLUSTER))
}

/// The clusters that a rollout is read for where they differ: the one that is served; else each, as where none is.
pub(super) fn read_for(
    manifests: &[String],
    clusters: &BTreeSet<ClusterName>,
    served: Option<&ClusterName>,
) -> Vec<Option<ClusterName>> {
    if !differ(manifests) || clusters.is_empty() {
        return vec![None];
    }
    match served {
        Some(served) if clusters.contains(served) => vec![Some(served.clone())],
        // It is somebody else's, who says what is wrong with it.
        Some(_) => vec![clusters.first().cloned()],
        None => clusters.iter().cloned().map(Some).collect(),
    }
}

/// The entries of `manifests` for a cluster.
pub(super) fn entries(manifests: &[String], cluster: Option<&ClusterName>) -> Vec<String> {
    let of = |entry: &String| cluster.map_or_else(|| entry.clone(), |name| entry.replace(CLUSTER, name.as_str()));
    manifests.iter().map(of).collect()
}

/// What a rollout is in the other clusters, where these have files of their own.
pub(super) fn elsewhere(
    files: &Files,
    path: &RepoPath,
    raw: &raw::Rollout,
    rollout: &Rollout,
    served: Option<&ClusterName>,
) -> BTreeMap<ClusterName, Option<Revision>> {
    if !differ(&raw.spec.manifests) || served.is_none() {
        return BTreeMap::new();
    }
    let of = |cluster: &ClusterName| {
        let entries = entries(&raw.spec.manifests, Some(cluster));
        let built = set::build(files, path, &entries, &rollout.id.namespace, &rollout.plan.target);
        built.ok().map(|set| set.revision)
    };
    let others = rollout.clusters.iter().filter(|cluster| Some(*cluster) != served);
    others.map(|cluster| (cluster.clone(), of(cluster))).collect()
}

/// What was found for each cluster.
#[derive(Default)]
pub(super) struct PerCluster {
    clusters: usize,
    errors: BTreeMap<Diagnostic, Vec<ClusterName>>,
    warnings: BTreeMap<Diagnostic, Vec<ClusterName>>,
}

impl PerCluster {
    /// What was found for one.
    pub(super) fn add(&mut self, cluster: Option<ClusterName>, found: Findings) {
        self.clusters += 1;
        for (all, found) in [(&mut self.errors, found.errors), (&mut self.warnings, found.warnings)] {
            for one in found {
                all.entry(one).or_default().extend(cluster.clone());
            }
        }
    }

    /// All of it: what is not so in all clusters says in which it is.
    pub(super) fn together(self) -> Findings {
        let clusters = self.clusters;
        let told = |(mut one, of): (Diagnostic, Vec<ClusterName>)| {
            if of.len() < clusters {
                let names = of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                one.found.push_str(&format!(", in the cluster {names}"));
            }
            one
        };
        Findings {
            errors: self.errors.into_iter().map(told).collect(),
            warnings: self.warnings.into_iter().map(told).collect(),
        }
    }
}
