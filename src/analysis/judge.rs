//! Which question a check asks, and what the answer says of the version. Pure.
//!
//! A check is one range query over the whole time that a step has been in force, so that no counter is kept anywhere: after a
//! restart the same question has the same answer. No data is not success (requirement C-34).

use crate::manifest::desired::{Check, PrometheusQuery};
use crate::manifest::duration::Span;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// The most samples that one question asks for: the newest.
const MOST: i64 = 1_000;

/// A question: the values of a query at certain moments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// What is measured, and by whom.
    pub query: PrometheusQuery,
    /// The first moment.
    pub from: Time,
    /// The last moment.
    pub until: Time,
    /// The time between two moments.
    pub interval: Span,
}

impl Range {
    /// What a check asks at `now` of a step that has been in force since `since`; nothing before its first sample is due.
    #[must_use]
    pub fn of(check: &Check, since: Time, now: Time) -> Option<Self> {
        let count = due(check, since, now);
        let at = |n: i64| since + interval(check) * i32::try_from(n).unwrap_or(i32::MAX);
        (count > 0).then(|| Self {
            query: check.prometheus.clone(),
            from: at((count - MOST).max(0) + 1),
            until: at(count),
            interval: check.interval,
        })
    }

    /// When a check asks next.
    #[must_use]
    pub fn next(check: &Check, since: Time, now: Time) -> Time {
        since + interval(check) * i32::try_from(due(check, since, now) + 1).unwrap_or(i32::MAX)
    }
}

fn interval(check: &Check) -> TimeDelta {
    check.interval.delta().max(TimeDelta::seconds(1))
}

/// How many samples are due by now.
fn due(check: &Check, since: Time, now: Time) -> i64 {
    (now - since).num_milliseconds().max(0) / interval(check).num_milliseconds()
}

/// What a provider said.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// The values at those moments that have one. What is not a number (no requests, divided by no requests) is no value.
    Samples(BTreeMap<Time, f64>),
    /// The answer is of no use: several series, or a query that the provider refuses.
    Unusable(String),
    /// The provider did not answer.
    Away(String),
}

/// What a reading says of the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Enough samples, and not too many of them out of bounds.
    Good,
    /// Too many samples are out of bounds.
    Bad(String),
    /// So many samples, and all may be well: not enough to tell.
    TooFew(usize),
    /// Nothing, for this reason.
    Unknown(String),
}

/// Judges the answer to a question.
#[must_use]
pub fn judge(check: &Check, range: &Range, reading: &Reading) -> Verdict {
    let samples = match reading {
        Reading::Samples(samples) => samples,
        Reading::Unusable(why) => return Verdict::Unknown(why.clone()),
        Reading::Away(why) => {
            return Verdict::Unknown(format!("provider {} is away: {why}", check.prometheus.provider));
        }
    };
    // Of samples outside of the exposure nothing follows.
    let samples = samples.range(range.from..=range.until).filter(|(_, value)| !value.is_nan());
    let (mut count, mut out) = (0_usize, Vec::new());
    for (at, value) in samples {
        count += 1;
        out.extend(beyond(check, *value).map(|how| (at, value, how)));
    }
    let allowed = usize::try_from(check.failure_limit).unwrap_or(usize::MAX);
    if let Some((at, value, how)) = out.last().filter(|_| out.len() > allowed) {
        let what = format!("{} at {} is {how}", number(**value), at.format("%H:%M:%SZ"));
        let often = format!("; {} of {count} samples are out of bounds, {allowed} may be", out.len());
        return Verdict::Bad(if allowed == 0 { what } else { what + &often });
    }
    let enough = usize::try_from(check.min_samples).unwrap_or(usize::MAX);
    if count >= enough { Verdict::Good } else { Verdict::TooFew(count) }
}

/// How a value is out of bounds.
fn beyond(check: &Check, value: f64) -> Option<String> {
    match (check.min, check.max) {
        (_, Some(max)) if value > max.get() => Some(format!("above {max}")),
        (Some(min), _) if value < min.get() => Some(format!("below {min}")),
        (_, _) => None,
    }
}

/// A measured value for people: four digits after the point are enough.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str) -> Check {
        let common = "prometheus: {provider: main, query: errors}\ninterval: 60s\nonNoData: hold\n";
        serde_yaml::from_str(&format!("{common}{yaml}")).unwrap()
    }

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000 + seconds, 0).unwrap()
    }

    fn samples(values: &[(i64, f64)]) -> Reading {
        Reading::Samples(values.iter().map(|(seconds, value)| (at(*seconds), *value)).collect())
    }

    fn verdict(yaml: &str, now: i64, values: &[(i64, f64)]) -> Verdict {
        let check = check(yaml);
        let range = Range::of(&check, at(0), at(now)).expect("a sample is due");
        judge(&check, &range, &samples(values))
    }

    const MAX: &str = "max: 0.01\nminSamples: 2\nfailureLimit: 0";

    #[test]
    fn a_question_ends_at_the_last_sample_that_is_due() {
        let check = check(MAX);
        assert_eq!(Range::of(&check, at(0), at(59)), None);
        assert_eq!(Range::next(&check, at(0), at(59)), at(60));
        let range = Range::of(&check, at(0), at(200)).unwrap();
        assert_eq!((range.from, range.until), (at(60), at(180)));
        assert_eq!(Range::next(&check, at(0), at(180)), at(240));
        assert_eq!(Range::of(&check, at(0), at(239)).unwrap(), range);
    }

    #[test]
    fn a_long_wait_asks_for_the_newest_samples() {
        let range = Range::of(&check(MAX), at(0), at(60 * 5_000)).unwrap();
        assert_eq!((range.from, range.until), (at(60 * 4_001), at(60 * 5_000)));
    }

    #[test]
    fn bounds_belong_to_what_is_good() {
        assert_eq!(verdict(MAX, 120, &[(60, 0.01), (120, 0.0)]), Verdict::Good);
        assert_eq!(verdict("min: 1\nmax: 1\nminSamples: 1\nfailureLimit: 0", 60, &[(60, 1.0)]), Verdict::Good);
        let bad = |text: &str| Verdict::Bad(text.to_owned());
        assert_eq!(verdict(MAX, 120, &[(60, 0.0), (120, 0.1234567)]), bad("0.1235 at 13:48:40Z is above 0.01"));
        let min = "min: 0.99\nminSamples: 1\nfailureLimit: 0";
        assert_eq!(verdict(min, 60, &[(60, 0.5)]), bad("0.5 at 13:47:40Z is below 0.99"));
        assert_eq!(verdict(MAX, 60, &[(60, f64::INFINITY)]), bad("inf at 13:47:40Z is above 0.01"));
    }

    #[test]
    fn some_samples_may_be_out_of_bounds() {
        let two = "max: 1\nminSamples: 1\nfailureLimit: 1";
        assert_eq!(verdict(two, 120, &[(60, 2.0), (120, 1.0)]), Verdict::Good);
        let why = "3 at 13:48:40Z is above 1; 2 of 2 samples are out of bounds, 1 may be";
        assert_eq!(verdict(two, 120, &[(60, 2.0), (120, 3.0)]), Verdict::Bad(why.to_owned()));
    }

    #[test]
    fn c_34_no_data_is_not_success() {
        assert_eq!(verdict(MAX, 120, &[]), Verdict::TooFew(0));
        assert_eq!(verdict(MAX, 120, &[(60, f64::NAN), (120, 0.0)]), Verdict::TooFew(1));
        assert_eq!(verdict(MAX, 120, &[(30, 9.0), (300, 9.0)]), Verdict::TooFew(0), "outside of the exposure");
        let check = check(MAX);
        let range = Range::of(&check, at(0), at(120)).unwrap();
        let away = judge(&check, &range, &Reading::Away("timed out".to_owned()));
        assert_eq!(away, Verdict::Unknown("provider main is away: timed out".to_owned()));
    }
}
