//! How much may be asked of a Git host: a share of what it allows, and nothing while it asks for a pause.

use crate::record::state::Time;
use chrono::TimeDelta;
use http::header::{HeaderMap, RETRY_AFTER};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest pause that is believed.
const LONGEST: TimeDelta = TimeDelta::hours(1);
/// A pause that nobody gave a length.
const PAUSE: TimeDelta = TimeDelta::seconds(60);
/// Percent of what the host allows: nobody is held to a share while as much is left. Who asks alone would wait for nobody else.
const AMPLE: i64 = 50;

/// Until when a host wants to be asked nothing, by anybody of ours. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Pause(Arc<Mutex<Option<Time>>>);

impl Pause {
    fn until(&self) -> Option<Time> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, until: Time) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (*known).max(Some(until));
    }
}

/// Until when nothing is asked, and how much is left to others.
#[derive(Debug, Clone)]
pub struct Budget {
    until: Option<Time>,
    /// What the host wants of all who ask it.
    pause: Pause,
    /// Percent of what the host allows.
    spare: i64,
    /// What one of several may take of it once there is no more than half of it left: percent of all.
    share: i64,
    /// How many answers there were since the host last began to count anew, or since the last pause.
    own: i64,
    /// When the host begins to count anew.
    reset: Option<i64>,
}

impl Budget {
    /// Leaves so many percent of what the host allows to others who use the same account.
    #[must_use]
    pub fn leaving(spare: i64) -> Self {
        Self { until: None, pause: Pause::default(), spare, share: 100, own: 0, reset: None }
    }

    /// Keeps a pause that the host asked another one for.
    pub fn heed(&mut self, pause: &Pause) {
        self.pause = pause.clone();
    }

    /// Is one of so many who ask, and leave the same to others: none takes what is another's.
    pub fn share(&mut self, among: usize) {
        self.share = ((100 - self.spare) / i64::try_from(among.max(1)).unwrap_or(i64::MAX)).max(1);
    }

    /// How long nothing may be asked yet.
    #[must_use]
    pub fn rests(&self, now: Time) -> Option<TimeDelta> {
        self.until
            .max(self.pause.until())
            .map(|until| until - now)
            .filter(|pause| *pause > TimeDelta::zero() && *pause <= LONGEST)
    }

    /// Takes note of an answer: its status, its headers, and what it says of itself. Whether it was refused for a limit.
    pub fn update(&mut self, status: u16, headers: &HeaderMap, message: &str, now: Time) -> bool {
        // GitLab leaves out the x.
        let header = |name: &str| headers.get(format!("x-{name}")).or_else(|| headers.get(name));
        let number = |name: &str| header(name)?.to_str().ok()?.trim().parse::<i64>().ok();
        let asked =
            headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(|text| match text.trim().parse() {
                Ok(seconds) => TimeDelta::try_seconds(seconds).unwrap_or(LONGEST),
                Err(_) => Time::from_rfc2822(text).map_or(PAUSE, |at| at - now),
            });
        let reset = number("ratelimit-reset");
        if reset != self.reset {
            (self.own, self.reset) = (0, reset);
        }
        self.own += 1;
        let reset = reset.and_then(|at| Time::from_timestamp(at, 0)).map(|at| at - now);
        let (left, all) = (number("ratelimit-remaining"), number("ratelimit-limit"));
        let low = left.zip(all).is_some_and(|(left, all)| {
            let part = |percent: i64| all.saturating_mul(percent) / 100;
            left < part(self.spare) || (left < part(AMPLE) && self.own > part(self.share))
        });
        let refused = status == 429
            || (status == 403
                && (asked.is_some() || left == Some(0) || message.to_ascii_lowercase().contains("rate limit")));
        let pause = match (asked, low) {
            (Some(asked), _) => Some(asked),
            (None, true) => Some(reset.unwrap_or(PAUSE)),
            (None, false) => refused.then_some(PAUSE),
        };
        if let Some(pause) = pause {
            let until = now + pause.clamp(TimeDelta::seconds(1), LONGEST);
            self.until = self.until.max(Some(until));
            if asked.is_some() || refused {
                self.pause.extend(until);
            }
            // A host that never says when it begins anew would else be asked for nothing but pauses.
            self.own = 0;
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::time;

    /// What is said of an answer, and for how many seconds nothing is asked after it.
    fn heard(status: u16, headers: &[(&'static str, &str)], message: &str) -> (bool, Option<i64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let (mut budget, now) = (Budget::leaving(20), time("12:00:00"));
        let refused = budget.update(status, &map, message, now);
        (refused, budget.rests(now).map(|pause| pause.num_seconds()))
    }

    #[test]
    fn x_13_a_fifth_of_the_budget_is_left_to_others() {
        let soon = (time("12:00:00").timestamp() + 600).to_string();
        for [limit, remaining, reset] in [
            ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
            ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
        ] {
            let with = |left: &str| heard(200, &[(limit, "5000"), (remaining, left), (reset, &soon)], "");
            assert_eq!(with("1000"), (false, None));
            assert_eq!(with("999"), (false, Some(600)));
        }
        assert_eq!(heard(200, &[("x-ratelimit-limit", "x"), ("x-ratelimit-remaining", "-1")], ""), (false, None));
        assert_eq!(heard(200, &[("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "0")], ""), (false, Some(60)));
    }

    #[test]
    fn x_13_whoever_only_helps_leaves_more() {
        let now = time("12:00:00");
        let rests = |left: u32| {
            let mut budget = Budget::leaving(60);
            let told = [("x-ratelimit-limit", "5000".to_owned()), ("x-ratelimit-remaining", left.to_string())];
            let told = told.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            budget.update(200, &HeaderMap::from_iter(told), "", now);
            budget.rests(now)
        };
        assert_eq!((rests(3_000), rests(2_999)), (None, Some(PAUSE)));
    }

    #[test]
    fn x_13_one_of_several_takes_its_share_alone() {
        let now = time("12:00:00");
        let ask = |budget: &mut Budget, left: i64, reset: &[i64]| {
            let told = [("x-ratelimit-limit", 100), ("x-ratelimit-remaining", left)].into_iter();
            let told = told.chain(reset.iter().map(|at| ("x-ratelimit-reset", now.timestamp() + at)));
            let told = told.map(|(name, value)| (name.parse().unwrap(), value.to_string().parse().unwrap()));
            budget.update(200, &HeaderMap::from_iter(told), "", now);
            budget.rests(now).map(|pause| pause.num_seconds())
        };
        let of_two = || {
            let mut budget = Budget::leaving(20);
            budget.share(2);
            budget
        };
        // Alone it takes all but what is left to others.
        let mut alone = Budget::leaving(20);
        alone.share(1);
        assert!((20..100).rev().all(|left| ask(&mut alone, left, &[600]).is_none()));
        assert_eq!(ask(&mut alone, 19, &[600]), Some(600));
        // Where there is plenty nobody is held to a share; then who has had theirs waits, and others go on.
        let [mut greedy, mut modest] = [of_two(), of_two()];
        assert!((50..100).rev().all(|left| ask(&mut greedy, left, &[600]).is_none()));
        assert_eq!(ask(&mut greedy, 49, &[600]), Some(600));
        assert!((20..49).rev().all(|left| ask(&mut modest, left, &[600]).is_none()));
        // The host begins to count anew, or a pause was kept: so does the share.
        let mut again = of_two();
        assert!((50..100).rev().all(|left| ask(&mut again, left, &[600]).is_none()));
        assert_eq!(ask(&mut again, 49, &[4_200]), None);
        let mut silent = of_two();
        assert!((50..100).rev().all(|left| ask(&mut silent, left, &[]).is_none()));
        assert_eq!(ask(&mut silent, 49, &[]), Some(60));
        silent.until = None;
        assert_eq!(ask(&mut silent, 48, &[]), None);
    }

    #[test]
    fn x_13_a_host_that_asks_for_a_pause_gets_one() {
        assert_eq!(heard(429, &[("retry-after", "7")], ""), (true, Some(7)));
        assert_eq!(heard(403, &[("retry-after", "7")], ""), (true, Some(7)));
        assert_eq!(heard(503, &[("retry-after", "999999999999")], ""), (false, Some(3_600)));
        assert_eq!(heard(429, &[("retry-after", "soon")], ""), (true, Some(60)));
        assert_eq!(heard(403, &[], "You have exceeded a secondary rate limit"), (true, Some(60)));
        assert_eq!(heard(403, &[], "Resource not accessible"), (false, None));
        let at = (time("12:00:00") + TimeDelta::seconds(90)).to_rfc2822();
        assert_eq!(heard(429, &[("retry-after", &at)], ""), (true, Some(90)));
    }

    #[test]
    fn x_13_a_pause_is_everybodys_and_a_share_is_ones_own() {
        let (now, pause) = (time("12:00:00"), Pause::default());
        let [mut one, mut other] = [Budget::leaving(20), Budget::leaving(20)];
        [&mut one, &mut other].into_iter().for_each(|budget| budget.heed(&pause));
        let low = [("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "19")];
        let low = low.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        one.update(200, &HeaderMap::from_iter(low), "", now);
        assert_eq!((one.rests(now), other.rests(now)), (Some(PAUSE), None));
        one.update(503, &HeaderMap::from_iter([(RETRY_AFTER, "100".parse().unwrap())]), "", now);
        assert_eq!(other.rests(now), Some(TimeDelta::seconds(100)));
    }

    #[test]
    fn a_longer_pause_is_not_cut_by_a_shorter_one() {
        let (mut budget, now) = (Budget::leaving(20), time("12:00:00"));
        let after = |seconds: &str| HeaderMap::from_iter([(RETRY_AFTER, seconds.parse().unwrap())]);
        budget.update(429, &after("100"), "", now);
        budget.update(429, &after("10"), "", now);
        assert_eq!(budget.rests(now), Some(TimeDelta::seconds(100)));
        assert_eq!(budget.rests(now + TimeDelta::seconds(100)), None);
    }
}
