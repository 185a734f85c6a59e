//! What is live in a cluster, read once: for `plan` and `diff` with a kubeconfig. Nothing is written.

use super::failure::Failure;
use crate::cluster::brake::BrakeSight;
use crate::cluster::client::Cluster;
use crate::cluster::connection::ClusterSource;
use crate::cluster::store::Observed;
use crate::cluster::watch::Watches;
use crate::manifest::desired::Set;
use crate::manifest::ids::{InstanceName, Namespace};
use crate::manifest::installation::Caps;
use crate::manifest::object::Kind;
use crate::record::state::RolloutState;
use crate::record::text::plain;
use crate::workload::live::LiveState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long all lists may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster, as it was read.
pub(super) struct Sight {
    /// The way to it.
    pub cluster: Cluster,
    /// What is there, by namespace.
    pub spaces: BTreeMap<Namespace, Arc<LiveState>>,
    /// The brake, if it lies in the namespace of the kubeconfig's context.
    pub brake: BrakeSight,
}

/// Reads these namespaces of a cluster; in each of them these kinds, too, of which the names alone are known.
pub(super) async fn look(
    kubeconfig: &Path,
    instance: &InstanceName,
    kinds: BTreeMap<Namespace, BTreeSet<Kind>>,
) -> Result<Sight, Failure> {
    let source = ClusterSource::KubeconfigFile(kubeconfig.to_owned());
    let cluster = Cluster::connect(&source, instance).await.map_err(anyhow::Error::new)?;
    let namespaces: Vec<Namespace> = kinds.keys().cloned().collect();
    let notify = Arc::new(Notify::new());
    let watches = Watches::start(&cluster, &namespaces, &Caps::default().watched(), &notify);
    kinds.iter().for_each(|(namespace, kinds)| watches.want(namespace, kinds));
    let deadline = Instant::now() + PATIENCE;
    let mut spaces = BTreeMap::new();
    for namespace in namespaces {
        let live = loop {
            let why = match watches.snapshot(&namespace) {
                Observed::Ready(live) => break live,
                Observed::Partly(live) => {
                    let closed = live.closed.iter().map(|(kind, why)| format!("{kind}: {why}"));
                    closed.collect::<Vec<_>>().join("; ")
                }
                Observed::NotYet { why } | Observed::Lost { why, .. } => why,
            };
            if timeout_at(deadline, notify.notified()).await.is_err() {
                let why = plain(&why);
                return Err(Failure::failed(format!("the namespace {namespace} cannot be read: {why}")));
            }
        };
        spaces.insert(namespace, live);
    }
    Ok(Sight { brake: watches.brake(), cluster, spaces })
}

/// The kinds of what a rollout shall have, and of what a record says that it has.
pub(super) fn kinds(set: Option<&Set>, state: Option<&RolloutState>) -> BTreeSet<Kind> {
    let owned = state.into_iter().flat_map(|state| state.clusters.values()).flat_map(|cluster| &cluster.inventory);
    let wanted = set.into_iter().flat_map(|set| set.objects.keys());
    let mut kinds: BTreeSet<Kind> =
        wanted.map(|object| object.kind).chain(owned.map(|owned| owned.reference.kind)).collect();
    // Layers are in no cluster.
    if kinds.remove(&Kind::NodeConfigLayer) {
        kinds.extend([Kind::Node, Kind::NodeConfig]);
    }
    kinds
}
