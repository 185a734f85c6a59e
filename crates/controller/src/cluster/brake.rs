//! Reads the brake from what is watched of our own namespace.

use super::store::Observed;
use crate::gate::brake::{Brake, BrakeWord};
use crate::manifest::ids::{Namespace, RolloutId};
use crate::manifest::object::Kind;
use crate::workload::live::LiveState;
use serde_json::Value;

/// The ConfigMap that holds the brake, in our own namespace.
pub const BRAKE: &str = "tidegate-brake";

/// What is known of the brake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrakeSight {
    /// As it was read last. A brake that cannot be read any more goes on braking.
    Known(Brake),
    /// It was never read.
    Unknown {
        /// Why.
        why: String,
    },
}

impl BrakeSight {
    /// What it says of a rollout.
    ///
    /// # Errors
    /// Why nobody knows: whoever acts must take that as `hold`.
    pub fn of(&self, rollout: &RolloutId) -> Result<Option<BrakeWord>, String> {
        match self {
            Self::Known(brake) => Ok(brake.of(rollout)),
            Self::Unknown { why } => Err(why.clone()),
        }
    }
}

/// The brake, in what is known of our own namespace.
pub(super) fn read(observed: &Observed, home: &Namespace) -> BrakeSight {
    match observed {
        Observed::Ready(live) | Observed::Partly(live) | Observed::Lost { last: live, .. } => {
            BrakeSight::Known(parse(live, home))
        }
        Observed::NotYet { why } => BrakeSight::Unknown { why: why.clone() },
    }
}

fn parse(live: &LiveState, home: &Namespace) -> Brake {
    let name = BRAKE.parse().expect("valid because the constant is a DNS label");
    let data = live.find(Kind::ConfigMap, home, &name).and_then(|brake| brake.at("/data"));
    let entries = data.and_then(Value::as_object).into_iter().flatten();
    // A value that is no text cannot come from an API server; it holds like any other unknown word.
    Brake::parse(entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())))
}
