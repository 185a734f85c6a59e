//! The clusters that a rollout runs on, and whether it is known in which order a version reaches them.

use super::{Draft, Loaded, Rejected, load, unread};
use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::{Code, Diagnostic, few};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::fleet::{self, FILE, Fleet};
use crate::manifest::ids::{ClusterName, Revision, RolloutId};
use crate::manifest::installation::Caps;
use crate::manifest::policy::Policy;
use crate::manifest::tracked::Track;
use crate::manifest::{raw, set};
use std::collections::{BTreeMap, BTreeSet};

/// What the fleet's file says, if there is one.
pub(super) fn read(files: &Files) -> Result<Option<Fleet>, Vec<Diagnostic>> {
    let path: RepoPath = FILE.parse().expect("the name of the fleet's file is a path");
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
    let runs = format!("its tenant runs on the clusters {all}, and");
    let (what, code) = match fleet {
        Ok(Some(fleet)) => {
            let unknown = clusters.iter().find(|name| !fleet.clusters.contains_key(*name))?;
            (format!("its tenant runs on the cluster {unknown}, which {FILE} does not have"), Code::FleetInvalid)
        }
        Ok(None) => (format!("{runs} there is no {FILE}"), Code::FleetInvalid),
        // It is told there.
        Err(_) => (format!("{runs} {FILE} has errors"), Code::PolicyInvalid),
    };
    let expected = format!("clusters of {FILE}, which says in which order versions reach them");
    Some(draft.at("/metadata", code, what, expected))
}

/// The most clusters that are named.
const TOLD: usize = 3;
/// What stands for the name of the cluster in an entry of `manifests`.
const CLUSTER: &str = "{cluster}";

/// Whether clusters have files of their own by these entries of `manifests`.
pub(super) fn differ(manifests: &[String]) -> bool {
    manifests.iter().any(|entry| entry.contains(CLUSTER))
}

/// The cluster whose files are read: the one that is served; else the first, as all are alike where none is.
pub(super) fn read_for<'a>(
    clusters: &'a BTreeSet<ClusterName>,
    served: Option<&ClusterName>,
) -> Option<&'a ClusterName> {
    served.and_then(|served| clusters.get(served)).or_else(|| clusters.first())
}

/// The clusters in which a rollout lays claim to what it has: the one that is served; else one of all that the same tenants run on.
pub(super) fn claims(
    clusters: &BTreeSet<ClusterName>,
    served: Option<&ClusterName>,
    (policy, differs): (Option<&Policy>, bool),
) -> BTreeSet<ClusterName> {
    if let Some(served) = served {
        return clusters.get(served).cloned().into_iter().collect();
    }
    if differs {
        // The others are looked at by themselves.
        return read_for(clusters, None).cloned().into_iter().collect();
    }
    let tenants = || policy.into_iter().flat_map(|policy| policy.tenants.values());
    let mut seen: BTreeMap<Vec<bool>, &ClusterName> = BTreeMap::new();
    for cluster in clusters {
        seen.entry(tenants().map(|tenant| tenant.clusters.contains(cluster)).collect()).or_insert(cluster);
    }
    seen.into_values().cloned().collect()
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

/// Reads everything as each cluster has it that has files of its own: what is wrong in some of them alone says in which.
#[must_use]
pub fn load_everywhere(files: &Files, caps: &Caps) -> Loaded {
    let mut loaded = load(files, caps);
    let mut found: BTreeMap<RolloutId, Everywhere> = BTreeMap::new();
    let mut warnings = BTreeSet::new();
    for cluster in std::mem::take(&mut loaded.differing) {
        let here = load(files, &caps.clone().serving(cluster.clone()));
        let Ok(policy) = &here.policy else { return loaded };
        for (id, outcome) in here.rollouts {
            let path = outcome.as_ref().map_or_else(|it| it.paths.first(), |it| Some(&it.path));
            let tenant = path.and_then(|path| policy.tenant_of(path));
            if tenant.is_some_and(|(_, tenant)| tenant.clusters.contains(&cluster)) {
                found.entry(id).or_default().add(&cluster, outcome.err());
            }
        }
        warnings.extend(here.warnings);
    }
    for (id, found) in found {
        if let Some(rejected) = found.together() {
            loaded.rollouts.insert(id, Err(rejected));
        }
    }
    warnings.extend(std::mem::take(&mut loaded.warnings));
    loaded.warnings = warnings.into_iter().collect();
    loaded
}

impl Loaded {
    /// The rollouts whose tenants run on other clusters of the fleet alone: what becomes of them is for their instances to say.
    #[must_use]
    pub fn elsewhere(&self, served: Option<&ClusterName>) -> BTreeSet<RolloutId> {
        let (Ok(policy), Ok(Some(fleet)), Some(served)) = (&self.policy, &self.fleet, served) else {
            return BTreeSet::new();
        };
        let is_elsewhere = |path: &RepoPath| {
            let tenant = policy.tenant_of(path).map(|(_, tenant)| &tenant.clusters);
            tenant.is_some_and(|clusters| {
                !clusters.contains(served) && clusters.iter().all(|cluster| fleet.clusters.contains_key(cluster))
            })
        };
        let all = self.rollouts.iter().filter(|(_, outcome)| match outcome {
            Ok(rollout) => is_elsewhere(&rollout.path),
            Err(rejected) => rejected.paths.iter().all(is_elsewhere),
        });
        all.map(|(id, _)| id.clone()).collect()
    }

    /// The same without those.
    #[must_use]
    pub fn here(mut self, served: Option<&ClusterName>) -> Self {
        let elsewhere = self.elsewhere(served);
        self.rollouts.retain(|id, _| !elsewhere.contains(id));
        self
    }
}

/// What is wrong with a rollout in each of its clusters.
#[derive(Default)]
struct Everywhere {
    clusters: usize,
    paths: BTreeSet<RepoPath>,
    errors: BTreeMap<Diagnostic, Vec<ClusterName>>,
}

impl Everywhere {
    fn add(&mut self, cluster: &ClusterName, rejected: Option<Rejected>) {
        self.clusters += 1;
        if let Some(Rejected { paths, diagnostics }) = rejected {
            self.paths.extend(paths);
            diagnostics.into_iter().for_each(|one| self.errors.entry(one).or_default().push(cluster.clone()));
        }
    }

    fn together(self) -> Option<Rejected> {
        let told = |(mut one, of): (Diagnostic, Vec<ClusterName>)| {
            if of.len() < self.clusters {
                let names = few(of.iter().map(ToString::to_string), TOLD, ", ");
                one.found.push_str(&format!(", in the cluster {names}"));
            }
            one
        };
        let diagnostics: Vec<Diagnostic> = self.errors.into_iter().map(told).collect();
        (!diagnostics.is_empty()).then_some(Rejected { paths: self.paths, diagnostics })
    }
}
