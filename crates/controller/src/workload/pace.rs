//! Who is moved next, where a version is brought to units one after the other: the pods of a workload that both versions share. What a
//! unit is, in which order they go, and how one is moved, its kind knows; how many at a time is said here alone (requirement N-1).
//!
//! The way back is the same way: what is not proven yet takes a slot in either direction, whatever it was before.

use std::collections::BTreeMap;

/// Where a unit stands on the way to one of the two versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has the other version, and serves: it goes in its turn.
    Fresh,
    /// It has the other version and does not serve: it goes at once, as that takes away nobody who serves.
    Failed,
    /// It is between the two, or has the wanted version and is not proven.
    Moving,
    /// It has the wanted version and serves; or it is not to be moved, and not waited for.
    Confirmed,
}

/// The units of one workload on the way to one of the two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacedUnits<T> {
    /// Each with where it stands, in the order in which they are moved that way.
    pub units: Vec<(T, Standing)>,
    /// How many are away altogether, as they are being made.
    pub between: u32,
}

impl<T> PacedUnits<T> {
    /// One of which nothing may be moved now.
    #[must_use]
    pub fn at_rest() -> Self {
        Self { units: Vec::new(), between: 0 }
    }
}

/// A zone of units with a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Which one, counted from 0.
    pub number: usize,
    /// How many of it may be away at a time.
    pub slots: u32,
}

impl<T: Copy> PacedUnits<T> {
    /// Those that go now: of the first `quota` that have the other version those that failed, and as many others as have a slot. All free
    /// slots are filled. What failed has one as long as it is not proven, be it moved or not.
    #[must_use]
    pub fn due(&self, quota: u32, slots: u32) -> Vec<T> {
        self.due_by_zone(quota, slots, &[], |_| None)
    }

    /// The same where others have to have a slot in their zone, too: who has none there lets those behind it pass. Of zones that are named in
    /// `away` one more is away for each time.
    #[must_use]
    pub fn due_by_zone(&self, quota: u32, slots: u32, away: &[usize], zone: impl Fn(&T) -> Option<Zone>) -> Vec<T> {
        let is = |wanted: Standing| self.units.iter().filter(move |(_, standing)| *standing == wanted);
        let left = || self.units.iter().filter(|(_, standing)| matches!(standing, Standing::Fresh | Standing::Failed));
        let failed: Vec<&(T, Standing)> =
            left().take(wide(quota)).filter(|(_, standing)| *standing == Standing::Failed).collect();
        let mut taken: BTreeMap<usize, u32> = BTreeMap::new();
        let moving = is(Standing::Moving).chain(failed.iter().copied()).filter_map(|(unit, _)| zone(unit));
        for number in moving.map(|zone| zone.number).chain(away.iter().copied()) {
            *taken.entry(number).or_default() += 1;
        }
        let free = wide(slots).saturating_sub(is(Standing::Moving).count() + wide(self.between) + failed.len());
        let fits = |(unit, _): &&(T, Standing)| {
            zone(unit).is_none_or(|zone| {
                let taken = taken.entry(zone.number).or_default();
                *taken += 1;
                *taken <= zone.slots
            })
        };
        let fresh = left().filter(|(_, standing)| *standing == Standing::Fresh).filter(fits);
        let fresh = fresh.take(free.min(wide(quota) - failed.len()));
        failed.iter().copied().chain(fresh).map(|(unit, _)| *unit).collect()
    }
}

fn wide(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fleet(standings: &[Standing], between: u32) -> PacedUnits<usize> {
        PacedUnits { units: standings.iter().copied().enumerate().collect(), between }
    }

    fn standing() -> impl Strategy<Value = Standing> {
        prop_oneof![
            4 => Just(Standing::Fresh), 1 => Just(Standing::Failed), 1 => Just(Standing::Moving), 2 => Just(Standing::Confirmed)
        ]
    }

    proptest! {
        /// Requirement N-1.
        #[test]
        fn n_1_no_more_are_unproven_than_there_are_slots_or_were_before(
            standings in prop::collection::vec(standing(), 0..30), between in 0..4_u32, quota in 0..40_u32, slots in 1..10_u32,
        ) {
            let fleet = fleet(&standings, between);
            let go = fleet.due(quota, slots);
            let moving = standings.iter().filter(|standing| **standing == Standing::Moving).count() + wide(between);
            let went = |wanted: Standing| go.iter().filter(|unit| standings[**unit] == wanted).count();
            let (before, fresh) = (moving + went(Standing::Failed), went(Standing::Fresh));
            prop_assert!(before + fresh <= before.max(wide(slots)), "{fresh} beside {before}");
            prop_assert!(go.len() <= wide(quota));
            prop_assert!(go.iter().all(|unit| matches!(standings[*unit], Standing::Fresh | Standing::Failed)));
        }

        /// Requirement N-28: the order is the kind's, and nothing else decides.
        #[test]
        fn n_28_those_that_come_first_go_first_and_no_slot_stays_free(
            standings in prop::collection::vec(standing(), 0..30), between in 0..4_u32, quota in 0..40_u32, slots in 1..10_u32,
        ) {
            let go = fleet(&standings, between).due(quota, slots);
            let left: Vec<usize> = (0..standings.len())
                .filter(|unit| matches!(standings[*unit], Standing::Fresh | Standing::Failed))
                .take(wide(quota))
                .collect();
            let of = |wanted: Standing, all: &[usize]| -> Vec<usize> {
                all.iter().copied().filter(|unit| standings[*unit] == wanted).collect()
            };
            prop_assert_eq!(of(Standing::Failed, &go), of(Standing::Failed, &left), "what failed goes at once");
            let (gone, waiting) = (of(Standing::Fresh, &go), of(Standing::Fresh, &left));
            prop_assert_eq!(&waiting[..gone.len()], &gone[..]);
            let moving = standings.iter().filter(|standing| **standing == Standing::Moving).count() + wide(between);
            let taken = moving + of(Standing::Failed, &left).len() + gone.len();
            prop_assert!(gone.len() == waiting.len() || taken >= wide(slots), "a slot is free");
        }

        /// Requirement N-1: neither are more of a zone, and who waits for its zone holds up nobody else.
        #[test]
        fn n_1_no_more_of_a_zone_are_unproven_than_there_are_slots(
            standings in prop::collection::vec(standing(), 0..30), zones in 1..4_usize, slots in 1..10_u32, of_zone in 1..4_u32,
        ) {
            let fleet = fleet(&standings, 0);
            let zone = |unit: &usize| Zone { number: unit % zones, slots: of_zone };
            let go = fleet.due_by_zone(u32::MAX, slots, &[], |unit| Some(zone(unit)));
            let unproven = |number: usize| {
                let of = |unit: &usize| zone(unit).number == number;
                let fresh = go.iter().filter(|unit| of(unit) && standings[**unit] == Standing::Fresh).count();
                let is = |unit: &usize| matches!(standings[*unit], Standing::Moving | Standing::Failed);
                (fresh, (0..standings.len()).filter(|unit| of(unit) && is(unit)).count())
            };
            for number in 0..zones {
                let (fresh, before) = unproven(number);
                prop_assert!(fresh + before <= before.max(wide(of_zone)));
                let waits = (0..standings.len())
                    .any(|unit| zone(&unit).number == number && standings[unit] == Standing::Fresh && !go.contains(&unit));
                let all: usize = (0..zones).map(unproven).map(|(fresh, before)| fresh + before).sum();
                prop_assert!(!waits || fresh + before >= wide(of_zone) || all >= wide(slots), "a slot is free");
            }
        }

        /// A fleet of which each unit is proven some time after it was moved comes to its end, and never has more than `slots` under way.
        #[test]
        fn n_1_a_fleet_is_moved_as_a_whole(size in 0..40_usize, slots in 1..10_u32, proven in prop::collection::vec(0..3_usize, 200)) {
            let mut standings = vec![Standing::Fresh; size];
            let mut rounds = 0;
            for proven in proven {
                for unit in fleet(&standings, 0).due(u32::MAX, slots) {
                    standings[unit] = Standing::Moving;
                }
                let moving: Vec<usize> = (0..size).filter(|unit| standings[*unit] == Standing::Moving).collect();
                prop_assert!(moving.len() <= wide(slots));
                moving.into_iter().take(proven).for_each(|unit| standings[unit] = Standing::Confirmed);
                rounds += proven;
            }
            prop_assert!(rounds < size || standings.iter().all(|standing| *standing == Standing::Confirmed));
        }
    }

    #[test]
    fn what_is_away_takes_a_slot() {
        use Standing::{Confirmed, Fresh};
        assert_eq!(fleet(&[Fresh, Fresh, Confirmed], 1).due(9, 2), [0]);
        assert_eq!(fleet(&[Fresh, Fresh, Confirmed], 2).due(9, 2), [0; 0]);
        assert_eq!(PacedUnits::<usize>::at_rest().due(9, 9), [0; 0]);
    }
}
