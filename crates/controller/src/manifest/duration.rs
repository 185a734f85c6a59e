//! Durations as people write them: `90s`, `1h30m`, `250ms` is refused, so is `1y`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A span of time in whole seconds, at most ten years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("format" = "time-span", "pattern" = "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "minLength" = 2))]
pub struct Span(u64);

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: whole hours, minutes and seconds, such as 90s, 10m or 1h30m, at most 87600h")]
pub struct InvalidSpan(String);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Ten years: longer is a slip of the finger.
    const MAX: u64 = 87_600 * 3_600;

    /// That many seconds, capped at the longest span.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(if seconds < Self::MAX { seconds } else { Self::MAX })
    }

    /// Whether it is no time at all.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Its length in seconds.
    #[must_use]
    pub fn as_secs(self) -> u64 {
        self.0
    }

    /// As a difference between two instants.
    #[must_use]
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::seconds(i64::try_from(self.0).unwrap_or(i64::MAX / 1_000))
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        let invalid = || InvalidSpan(text.chars().take(40).collect());
        let (mut rest, mut total, mut found) = (text, 0_u64, false);
        for (unit, factor) in [('h', 3_600), ('m', 60), ('s', 1)] {
            let Some((number, tail)) = rest.split_once(unit) else { continue };
            if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
                return Err(invalid());
            }
            let number: u64 = number.parse().map_err(|_| invalid())?;
            let part = number.checked_mul(factor).ok_or_else(invalid)?;
            total = total.checked_add(part).ok_or_else(invalid)?;
            (rest, found) = (tail, true);
        }
        if found && rest.is_empty() && total <= Self::MAX { Ok(Self(total)) } else { Err(invalid()) }
    }
}

impl TryFrom<String> for Span {
    type Error = InvalidSpan;

    fn try_from(text: String) -> Result<Self, InvalidSpan> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3_600, self.0 / 60 % 60, self.0 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if seconds > 0 || self.0 == 0 {
            write!(f, "{seconds}s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn spans_read_and_print_the_same() {
        for text in ["0s", "90s", "10m", "1h30m", "24h", "1h1m1s"] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }
        assert_eq!("90s".parse::<Span>().map(Span::as_secs), Ok(90));
        assert_eq!("1m30s".parse::<Span>(), "90s".parse());
    }

    #[test]
    fn attack_34_durations_that_are_none() {
        for text in
            ["", "1y", "-5m", "5", "m", "1.5h", "999999999999999999h", "99999999999999999999h", "5m ", "5m1h", "250ms"]
        {
            assert!(text.parse::<Span>().is_err(), "{text:?}");
        }
    }
}
