//! Spans of time that are no part of a soak, as the world knows them.

use crate::convergence::seen::Seen;
use chrono::TimeDelta;
use serde_json::Value;
use tidegate::cluster::unobserved::{Unobserved, merged};
use tidegate::manifest::ids::RolloutId;
use tidegate::record::state::{Phase, RolloutState, Time};

/// News of a pod may be so late, in seconds.
pub(crate) const LATE: i64 = 25;
/// By how much a clock is wrong that is far ahead.
pub(crate) const AHEAD: TimeDelta = TimeDelta::days(365);

#[derive(Default)]
pub(crate) struct Spans {
    /// In which nobody held the Lease.
    gaps: Vec<(Time, Time)>,
    /// In which a pod of a candidate was not ready.
    faltered: Vec<(RolloutId, Time, Time)>,
    /// That somebody's clock was set forward by: others see nothing of them.
    clocks: Vec<(String, (Time, Time))>,
    /// By how much the leader's clock was set since it renewed the Lease.
    set: TimeDelta,
}

impl Spans {
    /// Takes note of what has become of the Lease.
    pub(crate) fn renewed(&mut self, before: Option<&Value>, after: Option<&Value>, now: Time) {
        let renewed = |lease: Option<&Value>| Some(right(lease?["spec"]["renewTime"].as_str()?.parse().ok()?, now));
        if let (Some(before), Some(after)) = (renewed(before), renewed(after))
            && before != after
        {
            if (after - before - self.set).num_seconds() > 15 {
                self.gaps.push((before, after));
            }
            self.set = TimeDelta::zero();
        }
    }

    /// Takes note that the leader's clock, which shows that time now, was set by so many seconds.
    pub(crate) fn clock_set(&mut self, leader: String, shown: Time, by: i64) {
        let by = TimeDelta::seconds(by);
        self.clocks.push((leader, (shown - by, shown)));
        self.set += by;
    }

    /// Takes note that a pod of a candidate stops being ready.
    pub(crate) fn falters(&mut self, id: &RolloutId, now: Time) {
        self.faltered.push((id.clone(), now, Time::MAX));
    }

    /// And that all are ready again.
    pub(crate) fn recovers(&mut self, id: &RolloutId, now: Time) {
        let open = self.faltered.iter_mut().filter(|(of, _, to)| of == id && *to == Time::MAX);
        open.for_each(|(_, _, to)| *to = now);
    }

    /// A step that was left before it had been observed, and good, for long enough.
    pub(crate) fn left_early(
        &self,
        seen: &Seen,
        before: &RolloutState,
        state: &RolloutState,
        leader: &str,
        now: Time,
    ) -> Option<String> {
        let left = before.phase.position()?;
        let next = state.phase.position()?;
        let forward = matches!(state.phase, Phase::Progressing(_) | Phase::Promoting(_)) && next.seq != left.seq;
        let phase = seen.part.shape.phases.iter().find(|phase| phase.name == left.step.as_str())?;
        let [exposed, entered] = [left.clock.exposed?, next.clock.entered].map(|time| right(time, now));
        if !forward {
            return None;
        }
        let set = self.clocks.iter().filter(|(of, _)| of == leader).map(|(_, span)| *span);
        let faltered = self.faltered.iter().filter(|(id, ..)| *id == seen.id);
        let faltered = faltered.map(|(_, from, to)| (*from + TimeDelta::seconds(LATE), *to));
        let spans = self.gaps.iter().copied().chain(set).chain(faltered.filter(|(from, to)| from < to));
        let gaps = spans.map(|(from, to)| Unobserved { from, to, of: None }).collect();
        let missed = |gap: Unobserved| (gap.to.min(entered) - gap.from.max(exposed)).num_seconds().max(0);
        let missed: i64 = merged(gaps).into_iter().map(missed).sum();
        let good = (entered - exposed).num_seconds() - missed;
        let need = i64::try_from(phase.soak).unwrap();
        (good < need - 1).then(|| format!("{}: {} was left after {good} s of {need}", seen.id, left.step))
    }
}

/// What a clock shows as all others do, where it is far ahead.
fn right(time: Time, now: Time) -> Time {
    if time > now + AHEAD / 2 { time - AHEAD } else { time }
}
