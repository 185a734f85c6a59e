//! Whose turn it is in a fleet: a version reaches a cluster once those of the waves before have it (requirements F-7, F-11). Each cluster is
//! served by an instance of its own, and what others have is read from the records that they keep in the same repository.
//!
//! Within a wave clusters go in one order, and only what others *have* opens the gate: two instances that see the records at different times
//! never both think that it is their turn, since who sees less waits longer; but for as many as the wave lets say nothing.

use crate::manifest::diagnostic::few;
use crate::manifest::duration::Span;
use crate::manifest::fleet::{Fleet, FleetWave};
use crate::manifest::ids::{ClusterName, Revision};
use crate::record::state::{Phase, RolloutState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most clusters that are named.
const TOLD: usize = 3;

/// A rollout that runs on several clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waves {
    /// All clusters.
    pub fleet: Arc<Fleet>,
    /// Those that the rollout runs on.
    pub clusters: BTreeSet<ClusterName>,
    /// What it is in those that have files of their own for it; none where that cannot be read.
    pub wants: BTreeMap<ClusterName, Option<Revision>>,
    /// What the others say of it; why nobody knows, where it cannot be read.
    pub peers: BTreeMap<ClusterName, Result<Option<Peer>, String>>,
}

/// What the record of a cluster says of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// What it has.
    pub promoted: Option<Revision>,
    /// What its open run brings.
    pub run: Option<Revision>,
    /// What failed there, and is not tried again.
    pub refused: BTreeSet<Revision>,
    /// Where it stands, for people.
    pub phase: String,
}

impl Peer {
    /// What a record says.
    #[must_use]
    pub fn of(state: &RolloutState) -> Self {
        let step = state.phase.position().map(|position| format!(" on {}", position.step)).unwrap_or_default();
        // One that stays on its candidate has not got through.
        let failed = state.run.as_ref().filter(|_| matches!(state.phase, Phase::Failed { .. }));
        Self {
            promoted: state.promoted.as_ref().map(|promoted| promoted.revision.clone()),
            run: state.run.as_ref().map(|run| run.revision.clone()),
            refused: state
                .refused
                .iter()
                .map(|it| &it.revision)
                .chain(failed.map(|run| &run.revision))
                .cloned()
                .collect(),
            phase: format!("{}{step}", state.phase.name()),
        }
    }
}

/// How a version fares in another cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It is promoted.
    Done,
    /// It failed.
    Failed(String),
    /// Neither.
    Open,
    /// Nobody can tell.
    Dark(String),
}

/// Whether a version may begin in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaveTurn {
    /// It failed where it was first.
    Failed(String),
    /// Clusters of the waves before do not have it yet.
    Waits(String),
    /// They have it: it may begin once they have had it for so long, and nobody of its own wave is first.
    Next {
        /// So long.
        soak: Span,
        /// Who is first.
        first: Option<String>,
    },
}

impl Waves {
    /// Whether that version may begin in that cluster; `began` is what its run has begun with.
    #[must_use]
    pub fn turn(&self, me: &ClusterName, revision: &Revision, began: &Revision) -> WaveTurn {
        if self.clusters.len() < 2 {
            return WaveTurn::Next { soak: Span::ZERO, first: None };
        }
        let Some(own) = self.fleet.wave_of(me) else {
            return WaveTurn::Waits(format!("the cluster {me} is in no wave of fleet.yaml"));
        };
        let (mut soak, mut waits, mut first) = (Span::ZERO, None, None);
        for (i, wave) in self.fleet.waves.iter().enumerate().take(own + 1) {
            let all: Vec<&ClusterName> = wave.clusters.intersection(&self.clusters).collect();
            let others = all.iter().copied().filter(|name| *name != me);
            let stands: Vec<_> = others.map(|name| (name, self.standing(name, [revision, began]))).collect();
            let failed: Vec<String> = stands.iter().filter_map(|(name, it)| it.failure(name)).collect();
            let tolerated = usize::try_from(wave.said.tolerate).unwrap_or(usize::MAX);
            if failed.len() > tolerated {
                return WaveTurn::Failed(format!(
                    "the version failed in the wave {}: {}",
                    wave.said.name,
                    few(failed.into_iter(), TOLD, ", ")
                ));
            }
            if i < own {
                let left = stands.iter().filter(|(_, it)| *it != Standing::Done).count();
                soak = if all.is_empty() { soak } else { wave.said.soak };
                waits = waits.or_else(|| (left > tolerated).then(|| is_first(wave, &stands)));
            } else {
                let before: Vec<_> = stands.into_iter().filter(|(name, _)| *name < me).collect();
                // Those that failed, and may, are through, and so are as many that say nothing.
                let silent = before.iter().filter(|(_, it)| matches!(it, Standing::Dark(_))).count();
                let spared = silent.min(tolerated - failed.len());
                let open = before.iter().filter(|(_, it)| *it == Standing::Open).count();
                let left = open + silent - spared;
                first = (left >= at_a_time(wave, all.len())).then(|| is_first(wave, &before));
            }
        }
        waits.map_or(WaveTurn::Next { soak, first }, WaveTurn::Waits)
    }

    fn standing(&self, cluster: &ClusterName, [revision, began]: [&Revision; 2]) -> Standing {
        let (revision, began) = match self.wants.get(cluster) {
            None => (revision, began),
            Some(Some(there)) => (there, there),
            Some(None) => return Standing::Dark("its files on main have errors".to_owned()),
        };
        match self.peers.get(cluster) {
            None => Standing::Dark("nobody has looked there yet".to_owned()),
            Some(Err(why)) => Standing::Dark(why.clone()),
            Some(Ok(None)) => Standing::Dark("it has no record of the rollout".to_owned()),
            Some(Ok(Some(peer))) if [revision, began].iter().any(|one| peer.refused.contains(*one)) => {
                Standing::Failed(peer.phase.clone())
            }
            // What makes no version may have come along here, or there, since.
            Some(Ok(Some(peer)))
                if [revision, began].iter().any(|one| peer.promoted.as_ref() == Some(*one))
                    && peer.run.as_ref() != Some(began) =>
            {
                Standing::Done
            }
            Some(Ok(Some(_))) => Standing::Open,
        }
    }
}

/// How many clusters of a wave may be under way at a time.
fn at_a_time(wave: &FleetWave, all: usize) -> usize {
    let most = wave.said.max_updating.of(u32::try_from(all).unwrap_or(u32::MAX));
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// That a wave is first. Of its clusters only those are named that nobody can tell of: where the others stand changes all the time, and is no
/// news for the record of those that wait.
fn is_first(wave: &FleetWave, stands: &[(&ClusterName, Standing)]) -> String {
    let dark = few(stands.iter().filter_map(|(name, it)| it.dark(name)), TOLD, ", ");
    let dark = if dark.is_empty() { dark } else { format!(": {dark}") };
    format!("the wave {} is first{dark}", wave.said.name)
}

impl Standing {
    fn failure(&self, cluster: &ClusterName) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("{cluster} ({why})")),
            Self::Done | Self::Open | Self::Dark(_) => None,
        }
    }

    fn dark(&self, cluster: &ClusterName) -> Option<String> {
        match self {
            Self::Dark(why) => Some(format!("{cluster} ({why})")),
            Self::Done | Self::Open | Self::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
