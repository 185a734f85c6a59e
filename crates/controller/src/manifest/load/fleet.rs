//! The clusters that a rollout runs on, and whether it is known in which order a version reaches them.

use super::{Draft, unread};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::fleet::{self, Fleet};
use crate::manifest::ids::ClusterName;
use crate::manifest::policy::Policy;
use std::collections::BTreeSet;

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
