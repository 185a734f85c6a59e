//! When nobody observed: what is on the Lease, and what cannot be read now (requirement X-14).

use crate::cluster::unobserved::{Unobserved, UnobservedScope, cut, kept, merged};
use crate::manifest::ids::Namespace;
use crate::manifest::object::Kind;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// By how much the time of day has to run ahead of the process's own clock to have been set: NTP slews by less.
const SET: TimeDelta = TimeDelta::seconds(1);

/// Spans in which nobody observed, and what is not observed now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnobservedSpans {
    past: Vec<Unobserved>,
    away: BTreeMap<UnobservedScope, Time>,
    /// The last look, by both clocks.
    last: Option<(Time, Instant)>,
}

/// How the time of day went since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// On.
    On,
    /// It was set back: what has a later time is of a clock that ran ahead.
    Back,
}

/// When part of a namespace was not observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceGaps {
    past: Vec<Unobserved>,
    away: BTreeMap<UnobservedScope, Time>,
}

impl NamespaceGaps {
    /// All that count for somebody who needs these kinds, oldest first, none overlapping another. What is not over counts up to now.
    #[must_use]
    pub fn counted(&self, needs: &BTreeSet<Kind>, now: Time) -> Vec<(Time, Time)> {
        let open = self.away.iter().filter(|(_, from)| **from < now);
        let open = open.map(|(scope, from)| Unobserved { from: *from, to: now, of: Some(scope.clone()) });
        let counts = |gap: &Unobserved| {
            let kind = gap.of.as_ref().and_then(|scope| scope.kind);
            kind.is_none_or(|kind| needs.contains(&kind))
        };
        let gaps = self.past.iter().cloned().chain(open).filter(counts).map(|gap| Unobserved { of: None, ..gap });
        merged(gaps.collect()).into_iter().map(|gap| (gap.from, gap.to)).collect()
    }
}

impl UnobservedSpans {
    /// Takes over what a new term finds on the Lease.
    pub fn inherit(&mut self, gaps: Vec<Unobserved>) {
        gaps.into_iter().for_each(|gap| self.add(gap));
    }

    /// Takes note of the time of day, and of the process's own. What the one has gone ahead of the other since the last look
    /// nobody observed: the clock was set forward, or the machine was asleep. Where it was set back, no gap is later than now.
    pub fn look(&mut self, now: Time, own: Instant) -> ClockStep {
        let Some((then, began)) = self.last.replace((now, own)) else { return ClockStep::On };
        let lived = TimeDelta::from_std(own.saturating_duration_since(began)).unwrap_or(TimeDelta::MAX);
        let ahead = (now - then).checked_sub(&lived).unwrap_or_default();
        if ahead >= SET {
            self.add(Unobserved { from: now - ahead, to: now, of: None });
        }
        if ahead > -SET {
            return ClockStep::On;
        }
        self.past = cut(std::mem::take(&mut self.past), now);
        self.away.values_mut().for_each(|from| *from = now.min(*from));
        ClockStep::Back
    }

    /// Takes note of what of a namespace cannot be read now: these kinds, or nothing of it.
    pub fn see(&mut self, namespace: &Namespace, closed: Option<&BTreeMap<Kind, String>>, now: Time) {
        let scope = |kind| UnobservedScope { namespace: Some(namespace.clone()), kind };
        let unread: BTreeSet<UnobservedScope> = match closed {
            Some(closed) => closed.keys().map(|&kind| scope(Some(kind))).collect(),
            None => BTreeSet::from([scope(None)]),
        };
        let goes_on = |of: &UnobservedScope| of.namespace.as_ref() != Some(namespace) || unread.contains(of);
        let (away, over) = std::mem::take(&mut self.away).into_iter().partition(|(of, _)| goes_on(of));
        self.away = away;
        let over: BTreeMap<UnobservedScope, Time> = over;
        for (of, from) in over {
            self.add(Unobserved { from, to: now, of: Some(of) });
        }
        for of in unread {
            self.away.entry(of).or_insert(now);
        }
    }

    fn add(&mut self, gap: Unobserved) {
        if gap.from < gap.to {
            self.past.push(gap);
            self.past = kept(std::mem::take(&mut self.past));
        }
    }

    /// All of them, for the Lease: what is not over counts up to now.
    #[must_use]
    pub fn all(&self, now: Time) -> Vec<Unobserved> {
        let open = self.away.iter().filter(|(_, from)| **from < now);
        let open = open.map(|(scope, from)| Unobserved { from: *from, to: now, of: Some(scope.clone()) });
        merged(self.past.iter().cloned().chain(open).collect())
    }

    /// What counts for a namespace.
    #[must_use]
    pub fn of(&self, namespace: &Namespace) -> NamespaceGaps {
        let is_here = |scope: &UnobservedScope| scope.namespace.as_ref().is_none_or(|its| its == namespace);
        let counts = |gap: &&Unobserved| gap.of.as_ref().is_none_or(is_here);
        let away = self.away.iter().filter(|(scope, _)| is_here(scope));
        NamespaceGaps {
            past: self.past.iter().filter(counts).cloned().collect(),
            away: away.map(|(scope, from)| (scope.clone(), *from)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::unobserved::{parse, print};

    fn at(second: i64) -> Time {
        Time::from_timestamp(second, 0).unwrap()
    }

    fn none() -> BTreeSet<Kind> {
        BTreeSet::new()
    }

    fn closed(kinds: &[Kind]) -> BTreeMap<Kind, String> {
        kinds.iter().map(|&kind| (kind, "forbidden".to_owned())).collect()
    }

    #[tokio::test]
    async fn x_14_a_clock_that_is_set_forward_makes_a_gap_and_one_that_is_set_back_cuts_it() {
        let shop = "shop".parse().unwrap();
        let (mut gaps, began) = (UnobservedSpans::default(), Instant::now());
        let own = |second| began + std::time::Duration::from_secs(second);
        gaps.look(at(100), own(0));
        gaps.look(at(110), own(10));
        assert_eq!(gaps.of(&shop).counted(&none(), at(110)), []);
        assert_eq!(gaps.look(at(180), own(20)), ClockStep::On);
        assert_eq!(gaps.of(&shop).counted(&none(), at(180)), [(at(120), at(180))]);
        gaps.see(&shop, None, at(185));
        assert_eq!(gaps.look(at(150), own(30)), ClockStep::Back);
        assert_eq!(gaps.look(at(161) - TimeDelta::milliseconds(1), own(40)), ClockStep::On);
        gaps.see(&shop, Some(&closed(&[])), at(160));
        let counted = gaps.of(&shop).counted(&none(), at(200));
        assert_eq!(counted, [(at(120), at(160))], "cut once, and not to each now");
    }

    #[test]
    fn what_was_away_counts_for_its_namespace_alone() {
        let (shop, bank) = ("shop".parse().unwrap(), "bank".parse().unwrap());
        let mut gaps = UnobservedSpans::default();
        gaps.inherit(parse("1970-01-01T00:00:00Z/1970-01-01T00:00:10Z"));
        gaps.see(&shop, None, at(5));
        gaps.see(&shop, None, at(15));
        assert_eq!(gaps.of(&shop).counted(&none(), at(20)), [(at(0), at(20))]);
        assert_eq!(gaps.of(&bank).counted(&none(), at(20)), [(at(0), at(10))]);
        gaps.see(&shop, Some(&closed(&[])), at(30));
        gaps.see(&shop, Some(&closed(&[])), at(40));
        assert_eq!(gaps.of(&shop).counted(&none(), at(50)), [(at(0), at(30))]);
        assert_eq!(gaps.all(at(50)).len(), 2);
    }

    #[test]
    fn x_14_a_kind_that_was_closed_in_many_namespaces_counts_for_nobody_who_does_not_need_it() {
        let mut gaps = UnobservedSpans::default();
        let namespaces: Vec<Namespace> = (0..40).map(|n| format!("team-{n}").parse().unwrap()).collect();
        namespaces.iter().for_each(|one| gaps.see(one, Some(&closed(&[Kind::VirtualService])), at(10)));
        namespaces.iter().for_each(|one| gaps.see(one, Some(&closed(&[])), at(3_610)));
        // As the next leader has it.
        let mut next = UnobservedSpans::default();
        next.inherit(parse(&print(&gaps.all(at(4_000)))));
        let (needs, others) = (BTreeSet::from([Kind::VirtualService]), BTreeSet::from([Kind::Deployment]));
        for of in namespaces.iter().map(|one| next.of(one)) {
            assert_eq!(of.counted(&others, at(4_000)), []);
            assert_eq!(of.counted(&needs, at(4_000)), [(at(10), at(3_610))]);
        }
    }

    #[test]
    fn x_14_a_kind_that_was_closed_counts_for_who_needs_it() {
        let (shop, needs) = ("shop".parse().unwrap(), BTreeSet::from([Kind::Ingress]));
        let mut gaps = UnobservedSpans::default();
        gaps.see(&shop, Some(&closed(&[Kind::Ingress])), at(10));
        let before = gaps.of(&shop);
        assert_eq!(before.counted(&needs, at(15)), [(at(10), at(15))]);
        assert_eq!(before.counted(&none(), at(15)), []);
        gaps.see(&shop, Some(&closed(&[Kind::Ingress])), at(20));
        assert_eq!(gaps.of(&shop), before, "it is the same for as long as nothing opens or closes");
        // The rest of the namespace goes too, and comes back in another order.
        gaps.see(&shop, Some(&closed(&[Kind::Ingress, Kind::Pod, Kind::Service, Kind::Job])), at(30));
        gaps.see(&shop, None, at(31));
        gaps.see(&shop, Some(&closed(&[Kind::Pod])), at(40));
        gaps.see(&shop, Some(&closed(&[])), at(50));
        assert_eq!(gaps.of(&shop).counted(&needs, at(60)), [(at(10), at(40))]);
        assert_eq!(gaps.of(&shop).counted(&BTreeSet::from([Kind::Pod]), at(60)), [(at(30), at(50))]);
        assert_eq!(gaps.of(&shop).counted(&none(), at(60)), [(at(31), at(40))]);
    }
}
