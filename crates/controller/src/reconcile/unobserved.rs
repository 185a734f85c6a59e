//! When nobody observed: what is on the Lease, and what cannot be read now (requirement X-14).

use crate::cluster::unobserved::{KEPT, Unobserved, cut, merged};
use crate::manifest::ids::Namespace;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// By how much the time of day has to run ahead of the process's own clock to have been set: NTP slews by less.
const SET: TimeDelta = TimeDelta::seconds(1);

/// Spans in which nobody observed, and what is not observed now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnobservedSpans {
    past: Vec<Unobserved>,
    away: BTreeMap<Namespace, Time>,
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

/// Whether a namespace can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// What is known is up to date.
    Read,
    /// It may be out of date.
    Away,
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

    /// Takes note that a namespace cannot be read now, or can again.
    pub fn see(&mut self, namespace: &Namespace, sight: Visibility, now: Time) {
        match sight {
            Visibility::Away => drop(self.away.entry(namespace.clone()).or_insert(now)),
            Visibility::Read => {
                if let Some(from) = self.away.remove(namespace) {
                    self.add(Unobserved { from, to: now, of: Some(namespace.clone()) });
                }
            }
        }
    }

    fn add(&mut self, gap: Unobserved) {
        if gap.from < gap.to {
            self.past.push(gap);
            self.past = merged(std::mem::take(&mut self.past));
            let old = self.past.len().saturating_sub(KEPT);
            self.past.drain(..old);
        }
    }

    /// All of them, for the Lease: what is not over counts up to now.
    #[must_use]
    pub fn all(&self, now: Time) -> Vec<Unobserved> {
        let open = self.away.iter().filter(|(_, from)| **from < now);
        let open = open.map(|(namespace, from)| Unobserved { from: *from, to: now, of: Some(namespace.clone()) });
        merged(self.past.iter().cloned().chain(open).collect())
    }

    /// All that count for a namespace, oldest first, none overlapping another.
    #[must_use]
    pub fn of(&self, namespace: &Namespace, now: Time) -> Vec<(Time, Time)> {
        let counts = |gap: &Unobserved| gap.of.as_ref().is_none_or(|of| of == namespace);
        let gaps = self.all(now).into_iter().filter(counts).map(|gap| Unobserved { of: None, ..gap });
        merged(gaps.collect()).into_iter().map(|gap| (gap.from, gap.to)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::unobserved::parse;

    fn at(second: i64) -> Time {
        Time::from_timestamp(second, 0).unwrap()
    }

    #[tokio::test]
    async fn x_14_a_clock_that_is_set_forward_makes_a_gap_and_one_that_is_set_back_cuts_it() {
        let shop = "shop".parse().unwrap();
        let (mut gaps, began) = (UnobservedSpans::default(), Instant::now());
        let own = |second| began + std::time::Duration::from_secs(second);
        gaps.look(at(100), own(0));
        gaps.look(at(110), own(10));
        assert_eq!(gaps.of(&shop, at(110)), []);
        assert_eq!(gaps.look(at(180), own(20)), ClockStep::On);
        assert_eq!(gaps.of(&shop, at(180)), [(at(120), at(180))]);
        gaps.see(&shop, Visibility::Away, at(185));
        assert_eq!(gaps.look(at(150), own(30)), ClockStep::Back);
        assert_eq!(gaps.look(at(161) - TimeDelta::milliseconds(1), own(40)), ClockStep::On);
        gaps.see(&shop, Visibility::Read, at(160));
        assert_eq!(gaps.of(&shop, at(200)), [(at(120), at(160))], "cut once, and not to each now");
    }

    #[test]
    fn what_was_away_counts_for_its_namespace_alone() {
        let (shop, bank) = ("shop".parse().unwrap(), "bank".parse().unwrap());
        let mut gaps = UnobservedSpans::default();
        gaps.inherit(parse("1970-01-01T00:00:00Z/1970-01-01T00:00:10Z"));
        gaps.see(&shop, Visibility::Away, at(5));
        gaps.see(&shop, Visibility::Away, at(15));
        assert_eq!(gaps.of(&shop, at(20)), [(at(0), at(20))]);
        assert_eq!(gaps.of(&bank, at(20)), [(at(0), at(10))]);
        gaps.see(&shop, Visibility::Read, at(30));
        gaps.see(&shop, Visibility::Read, at(40));
        assert_eq!(gaps.of(&shop, at(50)), [(at(0), at(30))]);
        assert_eq!(gaps.all(at(50)).len(), 2);
    }
}
