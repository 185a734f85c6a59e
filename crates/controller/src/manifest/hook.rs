//! Who is told how a run fares.

use super::desired::WebhookCall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook that is told of what the record says. Nothing waits for it, and nothing that it answers decides anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Who is told.
    pub webhook: WebhookCall,
    /// Of what; of everything if this is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
    pub events: Vec<Event>,
}

impl Hook {
    /// Whether it is told of such an event.
    #[must_use]
    pub fn hears(&self, event: Event) -> bool {
        self.events.is_empty() || self.events.contains(&event)
    }
}

/// What can be told of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// It has started, and nothing is exposed yet.
    Started,
    /// It stands on a phase, or all requests reach the candidate (`shift`).
    Entered,
    /// Stable was not ready at promotion: the healthy candidate serves, and a person decides.
    OnCandidate,
    /// It goes back.
    WentBack,
    /// It has ended, well or not.
    Ended,
}
