//! At what pace the units of a workload are moved, where both versions share it: how many may be away at a time.

use super::diagnostic::quoted;
use super::ids::Percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// At what pace the target's own units become new, and old again where a run goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollingUpdate {
    /// How many of them may be away at a time: a number, or a share of all such as `25%`, which is rounded down, and one at least.
    #[serde(default)]
    pub max_unavailable: Amount,
}

impl RollingUpdate {
    /// Whether nothing else is said than what is usual.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// How many of so many units may be away at a time.
    #[must_use]
    pub fn slots(&self, of: u32) -> u32 {
        match self.max_unavailable {
            Amount::Count(count) => count,
            Amount::Share(share) => {
                u32::try_from(u64::from(of) * u64::from(share.get()) / 100).unwrap_or(u32::MAX).max(1)
            }
        }
    }
}

/// A number of units, as a number or as a share of all. Never none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "u32", extend("type" = ["integer", "string"], "format" = "amount", "minimum" = 1, "maximum" = 100_000))]
pub enum Amount {
    /// So many.
    Count(u32),
    /// This share of all.
    Share(Percent),
}

impl Amount {
    /// The most that may be named: more nodes than a cluster has.
    const MOST: u32 = 100_000;
}

impl Default for Amount {
    fn default() -> Self {
        Self::Count(1)
    }
}

/// A text, or a number, that is no number of units.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a number of units: a whole number from 1, without quotes, or a percentage from 1% to 100%")]
pub struct InvalidAmount(String);

impl FromStr for Amount {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let digits = text.strip_suffix('%').filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let share = digits.and_then(|digits| digits.parse().ok()).and_then(|share: u8| Percent::try_from(share).ok());
        share.filter(|share| !share.is_zero()).map(Self::Share).ok_or_else(|| InvalidAmount(quoted(text)))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{share}%"),
        }
    }
}

/// The same as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Count(u32),
    Share(String),
}

impl TryFrom<Written> for Amount {
    type Error = InvalidAmount;

    fn try_from(written: Written) -> Result<Self, InvalidAmount> {
        match written {
            Written::Count(count) if (1..=Self::MOST).contains(&count) => Ok(Self::Count(count)),
            Written::Count(count) => Err(InvalidAmount(count.to_string())),
            Written::Share(text) => text.parse(),
        }
    }
}

impl From<Amount> for Written {
    fn from(amount: Amount) -> Self {
        match amount {
            Amount::Count(count) => Self::Count(count),
            Amount::Share(_) => Self::Share(amount.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn slots(max: Value, of: u32) -> Option<u32> {
        let rolling: Result<RollingUpdate, _> = serde_json::from_value(json!({"maxUnavailable": max}));
        let rolling = rolling.ok()?;
        assert_eq!(serde_json::to_value(rolling).unwrap(), json!({"maxUnavailable": max}));
        Some(rolling.slots(of))
    }

    #[test]
    fn n_1_a_share_is_rounded_down_and_never_none() {
        assert_eq!(RollingUpdate::default().slots(5_000), 1);
        for (max, of, expected) in [
            (json!(3), 2, 3),
            (json!("25%"), 12, 3),
            (json!("25%"), 11, 2),
            (json!("1%"), 5, 1),
            (json!("100%"), 7, 7),
            (json!("100%"), 0, 1),
        ] {
            assert_eq!(slots(max.clone(), of), Some(expected), "{max} of {of}");
        }
        assert_eq!(slots(json!("100%"), u32::MAX), Some(u32::MAX));
    }

    #[test]
    fn n_1_what_is_no_number_of_units_is_refused() {
        for max in [
            json!(0),
            json!(-1),
            json!(1.5),
            json!(100_001),
            json!("0%"),
            json!("150%"),
            json!("-1%"),
            json!("+1%"),
            json!("2"),
            json!("%"),
            json!(" 5%"),
            json!(null),
            json!([1]),
        ] {
            assert_eq!(slots(max.clone(), 10), None, "{max}");
        }
    }
}
