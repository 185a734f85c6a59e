//! In which order nodes become new, and in which zone each is.

use super::{Nodes, Unit, labels};
use crate::manifest::ids::ObjectName;
use crate::manifest::layer::NodeSelector;
use crate::manifest::rolling::{RollingUpdate, Topology};
use crate::workload::pace::Zone;
use std::collections::{BTreeMap, BTreeSet};

/// The label by which zones are told apart.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of nodes that run the control plane.
pub(super) const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Those first that the rollout names first; of others zones take turns, and within one names; what runs the control plane comes last unless it is
/// named (requirements N-28, N-29).
pub(super) fn in_order(units: &mut Vec<Unit<'_>>, rolling: &RollingUpdate) {
    let key = rolling.topology.as_ref().map_or(ZONE, |topology| &topology.key);
    let first: Vec<NodeSelector> = rolling.order.iter().filter_map(|raw| NodeSelector::of(raw).ok()).collect();
    units.sort_by_key(|unit| unit.name().clone());
    let mut seen: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut keyed: Vec<((usize, usize, String), Unit<'_>)> = Vec::new();
    for unit in units.drain(..) {
        let labels = labels(unit.node);
        let zone = labels.get(key).cloned().unwrap_or_default();
        let last = first.len() + usize::from(labels.contains_key(CONTROL_PLANE));
        let rank = first.iter().position(|first| first.selects(&labels)).unwrap_or(last);
        let turn = seen.entry((rank, zone.clone())).or_default();
        keyed.push(((rank, *turn, zone), unit));
        *turn += 1;
    }
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    units.extend(keyed.into_iter().map(|(_, unit)| unit));
}

/// Says of each in which zone it is, where zones have limits.
pub(super) fn in_zones(units: &mut [Unit<'_>], rolling: &RollingUpdate) {
    let Some(Topology { key, max_unavailable }) = &rolling.topology else { return };
    let mut zones: BTreeMap<&str, u32> = BTreeMap::new();
    for unit in &*units {
        *zones.entry(unit.node.label(key).unwrap_or_default()).or_default() += 1;
    }
    let zones: BTreeMap<&str, Zone> = zones
        .into_iter()
        .enumerate()
        .map(|(number, (zone, all))| (zone, Zone { number, slots: max_unavailable.of(all) }))
        .collect();
    for unit in units {
        unit.zone = zones.get(unit.node.label(key).unwrap_or_default()).copied();
    }
}

impl Nodes<'_> {
    /// The zone of each that has fallen silent, and is not to be told anything itself: it frees its slot, and stays away in its zone.
    pub(super) fn lost_in_zones(&self) -> Vec<usize> {
        let lost = self.units.iter().filter(|unit| self.keeps_zone(unit));
        lost.filter_map(|unit| Some(unit.zone?.number)).collect()
    }

    fn keeps_zone(&self, unit: &Unit<'_>) -> bool {
        let is_told_again = unit.is_ready() && (unit.is_astray() || unit.is_of_another_try(self.attempt));
        self.is_lost(unit) && !is_told_again
    }

    /// The first of a zone that has fallen silent and keeps others that are ready from their turn, where nobody is on the way that could change
    /// that.
    #[must_use]
    pub fn silent_zone(&self) -> Option<&ObjectName> {
        let has_slot = self.has_slot();
        let is_kept = |unit: &&Unit<'_>| !has_slot(unit) && unit.changes() && !unit.is_new && unit.is_ready();
        let kept = self.units.iter().find(is_kept).filter(|_| !self.units.iter().any(Unit::is_moving))?;
        let silent = self.units.iter().find(|unit| unit.zone == kept.zone && self.keeps_zone(unit));
        silent.map(Unit::name)
    }

    /// Whether a node's zone lets one more be told now: who waits in one that does not keeps nobody else from being named.
    pub(super) fn has_slot(&self) -> impl Fn(&Unit<'_>) -> bool + use<> {
        let mut moving: BTreeMap<usize, u32> = BTreeMap::new();
        let zones =
            self.units.iter().filter(|unit| unit.is_moving() || self.keeps_zone(unit)).filter_map(|unit| unit.zone);
        let is_full = |zone: &Zone| {
            let taken = moving.entry(zone.number).or_default();
            *taken += 1;
            *taken >= zone.slots
        };
        let full: BTreeSet<usize> = zones.filter(is_full).map(|zone| zone.number).collect();
        move |unit| unit.zone.is_none_or(|zone| !full.contains(&zone.number))
    }
}
