//! What the record wants live, against what is live.

use super::LiveDiff;
use crate::cli::failure::Failure;
use crate::cli::live;
use crate::cli::repository::Repository;
use crate::manifest::desired::{Plan, Rollout, Set};
use crate::manifest::ids::SetId;
use crate::record::posture::Posture;
use crate::record::text::plain;
use crate::report::view::Record;
use crate::workload::compare::differs;
use crate::workload::inplace::{self, InPlaceFacts};
use crate::workload::live::LiveState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Every object that is not as the record wants it.
pub(super) async fn differences(
    repository: &Repository,
    record: &Record,
    rollout: &Rollout,
    kubeconfig: &Path,
) -> Result<Vec<LiveDiff>, Failure> {
    let namespace = rollout.id.namespace.clone();
    let kinds = BTreeMap::from([(namespace.clone(), live::kinds(Some(&rollout.set), Some(&record.state)))]);
    let sight = live::look(kubeconfig, &repository.instance, kinds).await?;
    let live = sight.spaces.get(&namespace).cloned().unwrap_or_default();
    let state = &record.state;
    let Some((cluster, recorded)) = state.clusters.iter().find(|(_, cluster)| cluster.uid == live.cluster_uid) else {
        let known: Vec<&str> = state.clusters.keys().map(|name| name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::failed(format!(
            "this kubeconfig leads to a cluster that the record of {} does not know (it knows: {known})",
            rollout.id
        )));
    };
    let plan = record.plan.as_ref().unwrap_or(&rollout.plan);
    let baseline = state.run.as_ref().and_then(|run| run.baseline.get(cluster)).copied().unwrap_or(0);
    let sets = sets(repository, rollout, plan, &recorded.posture, record).await?;
    let base = state.run.as_ref().map_or(&recorded.posture.stable.set, |run| &run.from);
    let facts = InPlaceFacts {
        plan,
        base,
        directly: state.directly(base),
        sets: &sets,
        live: &live,
        baseline,
        namespace: &namespace,
        manager: sight.cluster.manager(),
    };
    compare(&recorded.posture, &facts, &live)
}

async fn sets(
    repository: &Repository,
    rollout: &Rollout,
    plan: &Plan,
    posture: &Posture,
    record: &Record,
) -> Result<BTreeMap<SetId, Arc<Set>>, Failure> {
    let of_posture = std::iter::once(&posture.stable).chain(&posture.candidate).map(|role| &role.set);
    let of_run = record.state.run.iter().map(|run| &run.from);
    let mut sets = BTreeMap::new();
    for set in of_posture.chain(of_run).collect::<BTreeSet<_>>() {
        let found = repository.pinned(&rollout.id, set, &plan.target, &record.state).await?.map_err(Failure::failed)?;
        sets.insert(set.clone(), Arc::new(found));
    }
    Ok(sets)
}

fn compare(posture: &Posture, facts: &InPlaceFacts<'_>, live: &LiveState) -> Result<Vec<LiveDiff>, Failure> {
    let rendered = inplace::render(posture, facts).map_err(anyhow::Error::new)?;
    let mut found = Vec::new();
    for (reference, rendered) in rendered {
        let differences = match live.get(&reference) {
            None => vec!["it is not there".to_owned()],
            Some(object) => differs(&rendered.object, object).iter().map(|found| plain(&found.to_string())).collect(),
        };
        if !differences.is_empty() {
            found.push(LiveDiff { object: reference.to_string(), differences });
        }
    }
    Ok(found)
}
