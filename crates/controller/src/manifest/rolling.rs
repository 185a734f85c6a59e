//! At what pace the units of a workload are moved, where both versions share it: how many may be away at a time, and of nodes in which order.

use super::diagnostic::quoted;
use super::duration::Span;
use super::ids::Percent;
use super::raw::NodeSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// At what pace the target's own units become new, and old again where a run goes back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollingUpdate {
    /// How many of them may be away at a time: a number, or a share of all such as `25%`, which is rounded down, and one at least.
    #[serde(default)]
    pub max_unavailable: Amount,
    /// How many nodes may have fallen silent with the new version before no further one gets it. As many as may be away, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Amount")]
    pub max_stalled: Option<Amount>,
    /// How many nodes of one zone may be away at a time, besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Topology")]
    pub topology: Option<Topology>,
    /// Which nodes go first: those that the first of these selects, then those of the second, and so on. All others come after them, zone by zone
    /// in turn, and those that run the control plane at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 20))]
    pub order: Vec<NodeSelector>,
    /// How long the agent of a node that is ready may take until it begins; `10m` if it is not said. A node that has not begun by then has fallen
    /// silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Span")]
    pub pickup_deadline: Option<Span>,
}

/// Zones of nodes, each with a limit of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Topology {
    /// The label of nodes that says in which zone they are. Those without it are one zone together.
    #[schemars(extend("minLength" = 1))]
    pub key: String,
    /// How many nodes of a zone may be away at a time: a number, or a share of those in the zone.
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
        self.max_unavailable.of(of)
    }

    /// How many of so many nodes may have fallen silent with the new version.
    #[must_use]
    pub fn stalled(&self, of: u32) -> u32 {
        self.max_stalled.unwrap_or(self.max_unavailable).of(of)
    }

    /// How long the agent of a node may take until it begins.
    #[must_use]
    pub fn pickup(&self) -> Span {
        self.pickup_deadline.unwrap_or(Span::from_secs(600))
    }

    /// What is said that only nodes have, by its field.
    #[must_use]
    pub fn of_nodes_alone(&self) -> Option<&'static str> {
        let Self { max_unavailable: _, max_stalled, topology, order, pickup_deadline } = self;
        let said = [
            ("maxStalled", max_stalled.is_some()),
            ("topology", topology.is_some()),
            ("order", !order.is_empty()),
            ("pickupDeadline", pickup_deadline.is_some()),
        ];
        said.into_iter().find_map(|(field, is_said)| is_said.then_some(field))
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

    /// How many that are of so many: a share is rounded down, and never none.
    #[must_use]
    pub fn of(self, all: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Share(share) => {
                u32::try_from(u64::from(all) * u64::from(share.get()) / 100).unwrap_or(u32::MAX).max(1)
            }
        }
    }
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
        assert_eq!(serde_json::to_value(&rolling).unwrap(), json!({"maxUnavailable": max}));
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
    fn n_10_as_many_may_be_silent_as_may_be_away_unless_it_is_said() {
        let of = |rolling: Value, all| serde_json::from_value::<RollingUpdate>(rolling).unwrap().stalled(all);
        assert_eq!(of(json!({}), 100), 1);
        assert_eq!(of(json!({"maxUnavailable": "5%"}), 100), 5);
        assert_eq!(of(json!({"maxUnavailable": "5%", "maxStalled": 2}), 100), 2);
        assert_eq!(of(json!({"maxStalled": "1%"}), 50), 1);
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
