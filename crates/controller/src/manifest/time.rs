//! Points in time with which nothing can go wrong: sums stop at the ends of what anybody means.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;
use std::ops::{Add, AddAssign, Deref, Sub};
use std::str::FromStr;

/// A point in time, always within [`Self::MIN`] and [`Self::MAX`]. Sums that would leave them end there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct Time(DateTime<Utc>);

impl Time {
    /// 1900: before any time that is told. A machine without a clock says 1970.
    pub const MIN: Self = Self::at(-2_208_988_800);
    /// 2200: after any time that is meant.
    pub const MAX: Self = Self::at(7_258_118_400);
    /// 1970, as clocks begin.
    pub const UNIX_EPOCH: Self = Self::at(0);

    const fn at(seconds: i64) -> Self {
        match DateTime::from_timestamp(seconds, 0) {
            Some(time) => Self(time),
            None => panic!("a second of these centuries"),
        }
    }

    /// So many seconds after 1970; none outside of what a time may be.
    #[must_use]
    pub fn from_timestamp(seconds: i64, nanos: u32) -> Option<Self> {
        DateTime::from_timestamp(seconds, nanos).and_then(Self::within)
    }

    /// So many milliseconds after 1970; none outside of what a time may be.
    #[must_use]
    pub fn from_timestamp_millis(millis: i64) -> Option<Self> {
        DateTime::from_timestamp_millis(millis).and_then(Self::within)
    }

    /// What somebody says in JSON who means "never": what lies outside becomes the end that is nearer.
    ///
    /// # Errors
    /// When it is no time at all.
    pub fn clamped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(DateTime::<Utc>::deserialize(deserializer)?.into())
    }

    /// As HTTP says it.
    #[must_use]
    pub fn from_rfc2822(text: &str) -> Option<Self> {
        Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc().into())
    }

    /// The same, without what is shorter than so many digits of a second.
    #[must_use]
    pub fn trunc_subsecs(self, digits: u16) -> Self {
        Self(self.0.trunc_subsecs(digits))
    }

    fn within(time: DateTime<Utc>) -> Option<Self> {
        let time = Self(time);
        (Self::MIN..=Self::MAX).contains(&time).then_some(time)
    }
}

impl From<DateTime<Utc>> for Time {
    /// What lies outside becomes the end that is nearer.
    fn from(time: DateTime<Utc>) -> Self {
        Self(time).clamp(Self::MIN, Self::MAX)
    }
}

impl From<Time> for DateTime<Utc> {
    fn from(Time(time): Time) -> Self {
        time
    }
}

impl FromStr for Time {
    type Err = chrono::ParseError;

    /// As RFC 3339 has it; what lies outside becomes the end that is nearer.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<DateTime<Utc>>()?.into())
    }
}

impl<'de> Deserialize<'de> for Time {
    /// What lies outside is refused: nobody has meant it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = DateTime::deserialize(deserializer)?;
        Self::within(time)
            .ok_or_else(|| de::Error::custom(format_args!("{time} is no time between {} and {}", Self::MIN, Self::MAX)))
    }
}

impl Deref for Time {
    type Target = DateTime<Utc>;

    fn deref(&self) -> &DateTime<Utc> {
        &self.0
    }
}

impl Add<TimeDelta> for Time {
    type Output = Self;

    fn add(self, delta: TimeDelta) -> Self {
        let end = if delta < TimeDelta::zero() { Self::MIN } else { Self::MAX };
        self.0.checked_add_signed(delta).map_or(end, Self::from)
    }
}

impl Sub<TimeDelta> for Time {
    type Output = Self;

    fn sub(self, delta: TimeDelta) -> Self {
        let end = if delta < TimeDelta::zero() { Self::MAX } else { Self::MIN };
        self.0.checked_sub_signed(delta).map_or(end, Self::from)
    }
}

impl AddAssign<TimeDelta> for Time {
    fn add_assign(&mut self, delta: TimeDelta) {
        *self = *self + delta;
    }
}

impl Sub for Time {
    type Output = TimeDelta;

    fn sub(self, other: Self) -> TimeDelta {
        self.0 - other.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_stay_within_what_a_time_may_be(at in any::<i64>(), delta in any::<i64>(), nanos in 0..1_000_000_000_u32) {
            let span = TimeDelta::new(delta / 1_000, nanos).expect("a span of seconds");
            let times = [Time::MIN, Time::MAX, Time::UNIX_EPOCH];
            for time in times.into_iter().chain(Time::from_timestamp_millis(at % 10_000_000_000_000)) {
                let mut added = time;
                added += span;
                for sum in [time + span, time - span, added, time + TimeDelta::MIN, time - TimeDelta::MIN, time + TimeDelta::MAX] {
                    prop_assert!((Time::MIN..=Time::MAX).contains(&sum), "{time} and {span}: {sum}");
                    prop_assert_eq!(time + (sum - time), sum);
                }
            }
        }
    }

    #[test]
    fn what_nobody_means_is_refused_where_it_is_written_and_cut_where_it_is_heard() {
        for far in
            ["+262142-12-31T23:59:59Z", "-262143-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1899-12-31T23:59:59Z"]
        {
            let refused = serde_json::from_value::<Time>(far.into()).unwrap_err().to_string();
            assert!(refused.contains("is no time between 1900-01-01 00:00:00 UTC and 2200-01-01"), "{refused}");
            let heard: Time = far.parse().unwrap();
            assert!([Time::MIN, Time::MAX].contains(&heard), "{far}: {heard}");
        }
        let at: Time = serde_json::from_value("2026-03-02T10:00:00.250Z".into()).unwrap();
        assert_eq!(serde_json::to_value(at).unwrap(), "2026-03-02T10:00:00.250Z");
    }
}
