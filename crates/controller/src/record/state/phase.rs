//! Where a rollout stands, and what may follow.

use super::Time;
use crate::manifest::duration::Span;
use crate::manifest::ids::StepName;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Where a rollout stands (design §5). The transitions are those of [`Phase::may_become`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", remote = "Self")]
pub enum Phase {
    /// First sight: stable is brought up.
    Initializing(StepClock),
    /// Nothing is open.
    Steady {
        /// How it came to rest.
        how: Rest,
        /// Since when.
        since: Time,
    },
    /// A gate or evidence for the next step is missing; the posture stays.
    Waiting {
        /// The step that it stands on; none before *prepare*.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Position>,
        /// The step that it would enter.
        next: StepName,
        /// Since when.
        since: Time,
    },
    /// On *prepare* or a phase of the plan.
    Progressing(Position),
    /// All phases are done, the promotion gate is closed.
    WaitingPromotion {
        /// The last step of the phases.
        at: Position,
        /// Since when.
        since: Time,
    },
    /// *shift* or *promote*.
    Promoting(Position),
    /// *return* or *retire*.
    Finalising(Position),
    /// On the way back: *restore*, *split* or *retire*.
    Reverting {
        /// The step of the Back list.
        #[serde(flatten)]
        position: Position,
        /// Why it goes back.
        why: String,
        /// Where it ends.
        then: Then,
    },
    /// The run's revision is refused.
    Failed {
        /// What failed.
        why: String,
        /// Since when.
        since: Time,
        /// Which role serves.
        standing: Serving,
    },
    /// The manifest is gone; ends with the record's removal.
    Terminating {
        /// Since when.
        since: Time,
    },
    /// Written by a newer version, and kept as it is: hold.
    #[serde(skip)]
    Unknown(Value),
}

// With `remote = "Self"` the derived code is inherent; these wrap it for the one phase that has no fixed shape.
impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Unknown(raw) = self { raw.serialize(serializer) } else { Self::serialize(self, serializer) }
    }
}

impl<'de> Deserialize<'de> for Phase {
    /// A phase of an unknown name is [`Phase::Unknown`]; a known name with other fields is an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(deserializer)?;
        match raw.get("name").and_then(Value::as_str) {
            Some(name) if !Self::NAMES.contains(&name) => Ok(Self::Unknown(raw)),
            Some(_) | None => Self::deserialize(raw).map_err(serde::de::Error::custom),
        }
    }
}

/// A step that was entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// Its name.
    pub step: StepName,
    /// The sequence number of the record that entered it: what a fence asks of live objects.
    pub seq: u64,
    /// Its clock.
    #[serde(flatten)]
    pub clock: StepClock,
}

/// When a step was entered, since when it is exposed, and what of that does not count (design §13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepClock {
    /// When the step was recorded.
    pub entered: Time,
    /// The first tick that saw it reached: soak counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<Time>,
    /// Since when it is not in force any more, or a pod that has served is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Time>,
    /// For how long, since `exposed`, it was not in force and then was again: no part of the soak.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub away: Span,
    /// Whether `lost` is since a pod that has served is not ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failing: bool,
    /// For how long pods that have served were not ready, until they were again.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub unready: Span,
    /// The longest of these times.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub longest: Span,
}

impl StepClock {
    /// A step entered now.
    #[must_use]
    pub fn entered(now: Time) -> Self {
        Self {
            entered: now,
            exposed: None,
            lost: None,
            away: Span::ZERO,
            failing: false,
            unready: Span::ZERO,
            longest: Span::ZERO,
        }
    }
}

/// How a rollout came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rest {
    /// At first sight.
    Initialized,
    /// Its last run was promoted.
    Succeeded,
    /// Its last run was taken back by a person's decision, by main, or as nothing spoke for or against its version.
    Reverted,
}

/// Where a way back ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Then {
    /// Steady(Reverted).
    Reverted,
    /// Steady(Reverted), and the revision is refused by a person's decision.
    Aborted,
    /// Failed: evidence refused the revision.
    Failed,
    /// Steady(Reverted), and the same is tried again once a person says so: nothing speaks against it, and nothing for it.
    Unmeasured,
    /// The next run, for what main says now.
    NextRun,
    /// Terminating.
    Terminating,
}

/// Which role serves after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Serving {
    /// Stable, as promoted.
    Stable,
    /// The healthy candidate: stable was not ready at *promote* by the deadline (C-19).
    OnCandidate,
}

impl Phase {
    /// The labels of all phases that this version knows.
    pub const NAMES: [&'static str; 10] = [
        "Initializing",
        "Steady",
        "Waiting",
        "Progressing",
        "WaitingPromotion",
        "Promoting",
        "Finalising",
        "Reverting",
        "Failed",
        "Terminating",
    ];

    /// The label that people see.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initializing(_) => "Initializing",
            Self::Steady { .. } => "Steady",
            Self::Waiting { .. } => "Waiting",
            Self::Progressing(_) => "Progressing",
            Self::WaitingPromotion { .. } => "WaitingPromotion",
            Self::Promoting(_) => "Promoting",
            Self::Finalising(_) => "Finalising",
            Self::Reverting { .. } => "Reverting",
            Self::Failed { .. } => "Failed",
            Self::Terminating { .. } => "Terminating",
            Self::Unknown(_) => "Unknown",
        }
    }

    /// The step that is entered, if one is.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::Progressing(position) | Self::Promoting(position) | Self::Finalising(position) => Some(position),
            Self::Waiting { at, .. } => at.as_ref(),
            Self::WaitingPromotion { at, .. } => Some(at),
            Self::Reverting { position, .. } => Some(position),
            Self::Initializing(_)
            | Self::Steady { .. }
            | Self::Failed { .. }
            | Self::Terminating { .. }
            | Self::Unknown(_) => None,
        }
    }

    /// Whether the table of design §5 lets one phase follow the other (C-12). Staying is always allowed.
    #[must_use]
    pub fn may_become(&self, next: &Self) -> bool {
        let allowed: &[&str] = match self {
            Self::Initializing(_) => &["Steady", "Failed", "Terminating"],
            Self::Steady { .. } => &["Waiting", "Progressing", "Promoting", "Terminating"],
            Self::Waiting { .. } => &["Progressing", "Promoting", "Reverting", "Failed", "Steady", "Terminating"],
            Self::Progressing(_) => &["Waiting", "WaitingPromotion", "Promoting", "Reverting"],
            Self::WaitingPromotion { .. } => &["Promoting", "Reverting"],
            Self::Promoting(_) => &["Finalising", "Reverting", "Failed"],
            Self::Finalising(_) => &["Reverting", "Steady"],
            Self::Reverting { .. } => &["Steady", "Failed", "Waiting", "Terminating"],
            Self::Failed { .. } => {
                &["Initializing", "Waiting", "Progressing", "Promoting", "Reverting", "Steady", "Terminating"]
            }
            Self::Terminating { .. } | Self::Unknown(_) => &[],
        };
        self.name() == next.name() || allowed.contains(&next.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{position, time};

    fn phases() -> Vec<Phase> {
        let (since, why) = (time("10:00:00"), String::new());
        let position = position("tenth");
        vec![
            Phase::Initializing(StepClock::entered(since)),
            Phase::Steady { how: Rest::Succeeded, since },
            Phase::Waiting { at: None, next: position.step.clone(), since },
            Phase::Progressing(position.clone()),
            Phase::WaitingPromotion { at: position.clone(), since },
            Phase::Promoting(position.clone()),
            Phase::Finalising(position.clone()),
            Phase::Reverting { position, why: why.clone(), then: Then::Failed },
            Phase::Failed { why, since, standing: Serving::Stable },
            Phase::Terminating { since },
        ]
    }

    #[test]
    fn c_12_phases_follow_each_other_as_one_table_says() {
        // One row for each phase, one column for what it may become, both in the order of `Phase::NAMES`.
        let table = [
            "x x . . . . . . x x",
            ". x x x . x . . . x",
            ". x x x . x . x x x",
            ". . x x x x . x . .",
            ". . . . x x . x . .",
            ". . . . . x x x x .",
            ". x . . . . x x . .",
            ". x x . . . . x x x",
            "x x x x . x . x x x",
            ". . . . . . . . . x",
        ];
        assert_eq!(phases().iter().map(Phase::name).collect::<Vec<_>>(), Phase::NAMES);
        for (from, row) in phases().iter().zip(table) {
            let found: Vec<&str> = phases().iter().map(|to| if from.may_become(to) { "x" } else { "." }).collect();
            assert_eq!(found.join(" "), row, "{}", from.name());
        }
        let unknown = Phase::Unknown(Value::Null);
        assert!(phases().iter().all(|phase| !unknown.may_become(phase) && !phase.may_become(&unknown)));
    }
}
