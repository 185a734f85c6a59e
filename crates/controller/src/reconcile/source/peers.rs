//! What the other clusters of the fleet have: read from the state branches that their instances keep in the same repository.
//!
//! Of none of them anything is taken for granted: what cannot be read, is of another cluster, or went back, is told, and opens no gate.

use super::{NAMED, Source, Tips, Wanted};
use crate::forge::branch;
use crate::gate::wave::Peer;
use crate::git::{GitError, RefName, Store};
use crate::manifest::files::RepoPath;
use crate::manifest::fleet::{Fleet, FleetMember};
use crate::manifest::ids::{ClusterName, CommitId, InstanceName, RolloutId};
use crate::plan::input::Git;
use crate::record::state::RolloutState;
use crate::record::store::{self, parse_state};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What each of the other clusters has, as far as that can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Peers(BTreeMap<ClusterName, Result<Arc<Rollouts>, String>>);

type Rollouts = BTreeMap<RolloutId, Filed>;

/// One record, and the tree that it was read from.
#[derive(Debug, Clone, PartialEq)]
struct Filed {
    tree: String,
    seq: u64,
    says: Result<Peer, String>,
}

impl Peers {
    /// What a cluster has of a rollout; none if it has no record of it.
    ///
    /// # Errors
    /// Why nobody knows.
    pub fn of(&self, cluster: &ClusterName, id: &RolloutId) -> Result<Option<Peer>, String> {
        let read = self.0.get(cluster).ok_or("nobody has looked there yet")?;
        let rollouts = read.as_ref().map_err(Clone::clone)?;
        rollouts.get(id).map(|filed| filed.says.clone()).transpose()
    }
}

/// The tips of other instances.
pub(super) fn tips(
    peers: &BTreeMap<InstanceName, RefName>,
    found: &BTreeMap<RefName, CommitId>,
) -> BTreeMap<InstanceName, CommitId> {
    peers.iter().filter_map(|(instance, name)| Some((instance.clone(), found.get(name)?.clone()))).collect()
}

/// What is kept between two looks.
#[derive(Default)]
pub(super) struct Cache {
    /// The branches that are looked up, by whose they are.
    asked: BTreeMap<InstanceName, RefName>,
    /// What was read, of which cluster, and from which tip.
    known: BTreeMap<FleetMember, (CommitId, Arc<Rollouts>)>,
    /// Tips that cannot be read, whatever happens, and why.
    unreadable: BTreeMap<FleetMember, (CommitId, String)>,
    peers: Arc<Peers>,
    /// Whether something could not be fetched that may come.
    lacks: bool,
}

impl Cache {
    /// The branches that are looked up.
    pub(super) fn asked(&self) -> &BTreeMap<InstanceName, RefName> {
        &self.asked
    }

    /// Whether something could not be fetched that may come though nothing moves.
    pub(super) fn may_come(&self) -> bool {
        self.lacks
    }

    /// What was read last.
    pub(super) fn last(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// Takes note of whose branches are to be looked up: those of clusters that are before ours, or in the same wave; whether these are others
    /// than before.
    pub(super) fn follow(&mut self, fleet: Option<&Fleet>, me: &InstanceName) -> bool {
        let own = fleet.and_then(|fleet| {
            let (cluster, _) = fleet.clusters.iter().find(|(_, member)| member.instance == *me)?;
            fleet.wave_of(cluster)
        });
        let before =
            fleet.into_iter().flat_map(|fleet| fleet.waves.iter().zip(0..).map(move |(wave, i)| (fleet, wave, i)));
        let before = before.filter(|(.., i)| own.is_some_and(|own| *i <= own));
        let others =
            before.flat_map(|(fleet, wave, _)| wave.clusters.iter().filter_map(|name| fleet.clusters.get(name)));
        let named = others
            .filter(|it| it.instance != *me)
            .filter_map(|it| Some((it.instance.clone(), RefName::branch(&branch::state_branch(&it.instance)).ok()?)));
        let asked: BTreeMap<_, _> = named.collect();
        let moved = asked != self.asked;
        self.asked = asked;
        moved
    }

    /// Reads what moved.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        tips: &BTreeMap<InstanceName, CommitId>,
        fleet: Option<&Fleet>,
    ) -> Arc<Peers> {
        self.lacks = false;
        let mut peers = BTreeMap::new();
        for (cluster, member) in fleet.into_iter().flat_map(|fleet| &fleet.clusters) {
            let Some(name) = self.asked.get(&member.instance).cloned() else { continue };
            let read = match tips.get(&member.instance) {
                None => Err(format!("there is no branch {}", name.short())),
                Some(tip) => self.read_one(store, member, &name, tip).await,
            };
            peers.insert(cluster.clone(), read);
        }
        let is_known = |member: &FleetMember| fleet.is_some_and(|fleet| fleet.clusters.values().any(|it| it == member));
        self.known.retain(|member, _| is_known(member));
        self.unreadable.retain(|member, _| is_known(member));
        if *self.peers != Peers(peers.clone()) {
            self.peers = Arc::new(Peers(peers));
        }
        self.last()
    }

    async fn read_one(
        &mut self,
        store: &Store,
        member: &FleetMember,
        name: &RefName,
        tip: &CommitId,
    ) -> Result<Arc<Rollouts>, String> {
        let known = self.known.get(member);
        if let Some((_, rollouts)) = known.filter(|(known, _)| known == tip) {
            return Ok(Arc::clone(rollouts));
        }
        if let Some((_, why)) = self.unreadable.get(member).filter(|(known, _)| known == tip) {
            return Err(why.clone());
        }
        let before = known.map(|(_, rollouts)| Arc::clone(rollouts));
        match rollouts(store, member, (name, tip), before.as_deref()).await {
            Ok(rollouts) => {
                let rollouts = Arc::new(rollouts);
                self.known.insert(member.clone(), (tip.clone(), Arc::clone(&rollouts)));
                Ok(rollouts)
            }
            Err(error) if error.is_of_content() => {
                tracing::warn!(%error, "{} cannot be read", name.short());
                let why = format!("its branch {} cannot be read: {error}", name.short());
                self.unreadable.insert(member.clone(), (tip.clone(), why.clone()));
                Err(why)
            }
            Err(error) => {
                self.lacks = true;
                tracing::warn!(%error, "{} cannot be fetched", name.short());
                // What it had is what is known of it: only what others have opens a gate, and nothing is begun anew for a look that failed.
                before.ok_or_else(|| format!("its branch {} cannot be fetched", name.short()))
            }
        }
    }
}

impl Source {
    /// What other clusters have. Whose branches those are is known only once main was read.
    pub(super) async fn read_peers(
        &mut self,
        tips: &mut Tips,
        git: &Git,
        main: &Wanted,
    ) -> Result<Arc<Peers>, GitError> {
        if *git != Git::Fresh {
            return Ok(self.peers.last());
        }
        let policies = main.policies();
        let fleet = policies.as_ref().and_then(|policies| policies.fleet());
        if self.peers.follow(fleet.map(Arc::as_ref), &self.branches.instance) {
            let names: Vec<RefName> = self.peers.asked().values().cloned().collect();
            let mut found = BTreeMap::new();
            for some in names.chunks(NAMED) {
                found.extend(self.store.ls_refs(&some.iter().map(RefName::as_str).collect::<Vec<_>>()).await?);
            }
            tips.peers = self::tips(self.peers.asked(), &found);
        }
        Ok(self.peers.read(&self.store, &tips.peers, fleet.map(Arc::as_ref)).await)
    }
}

async fn rollouts(
    store: &Store,
    member: &FleetMember,
    (name, tip): (&RefName, &CommitId),
    before: Option<&Rollouts>,
) -> Result<Rollouts, GitError> {
    store.fetch(&[(name.clone(), tip.clone())].into()).await?;
    let root: RepoPath = super::state::ROLLOUTS.parse().expect("valid because the constant is one word");
    let mut found = Rollouts::new();
    for (path, tree) in store.directories_of_others(tip, &root, 2).await? {
        let Some(id) = path.below(Some(&root)).and_then(|path| path.as_str().parse::<RolloutId>().ok()) else {
            continue;
        };
        let known = before.and_then(|before| before.get(&id));
        let filed = match known.filter(|known| known.tree == tree) {
            Some(known) => known.clone(),
            None => filed(store, member, (tip, &id), tree, known.map(|known| known.seq)).await?,
        };
        found.insert(id, filed);
    }
    Ok(found)
}

/// One record, if it is that of the cluster that is meant, and no older than what was seen before.
async fn filed(
    store: &Store,
    member: &FleetMember,
    (tip, id): (&CommitId, &RolloutId),
    tree: String,
    before: Option<u64>,
) -> Result<Filed, GitError> {
    let path = store::paths(id).state;
    let bytes = match store.file(tip, &path).await {
        Ok(bytes) => bytes.ok_or_else(|| format!("{path} is missing")),
        Err(error) if error.is_of_content() => Err(error.to_string()),
        Err(error) => return Err(error),
    };
    let state = bytes.and_then(|bytes| parse_state(id, &bytes).map_err(|error| format!("{path}: {error}")));
    let before = before.unwrap_or(0);
    let is_theirs =
        |state: &RolloutState| state.writer.instance == member.instance && state.writer.cluster_uid == member.uid;
    let seq = state.as_ref().ok().filter(|state| is_theirs(state)).map_or(before, |state| state.seq.max(before));
    let says = state.and_then(|state| {
        if !is_theirs(&state) {
            let writer = &state.writer;
            return Err(format!(
                "ForeignState: its record was written by {} for the cluster with the uid {}",
                writer.instance, writer.cluster_uid
            ));
        }
        if state.seq < before {
            return Err(format!("HistoryRewritten: its record went back from {before} to {}", state.seq));
        }
        Ok(Peer::of(&state))
    });
    Ok(Filed { tree, seq, says })
}
