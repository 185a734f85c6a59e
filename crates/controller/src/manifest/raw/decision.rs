//! What a decision says.

use crate::manifest::ids::{ObjectName, RunId, SetId, StepName};
use crate::manifest::object::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a person decides about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionSpec {
    /// The run: the open one, else the last, else `"0"`.
    pub run: RunId,
    /// What is decided.
    pub action: Action,
    /// With `approve`: opens approval gates up to and with this step, a phase or `promotion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StepName")]
    pub through: Option<StepName>,
    /// With `skip`: the step whose soak ends, by the name that `tidegate status` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StepName")]
    pub step: Option<StepName>,
    /// With `adopt`: what was live when it was decided, by the digest that `tidegate why` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SetId")]
    pub live: Option<SetId>,
    /// With `delete`: every object of the rollout's namespace that may go, in alphabetical order by kind, then by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Named>", extend("minItems" = 1, "maxItems" = 1000))]
    pub objects: Option<Vec<Named>>,
    /// With `delete`: the version that is to take the place of theirs; none where main has them no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SetId")]
    pub successor: Option<SetId>,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("maxLength" = 1024))]
    pub reason: Option<String>,
}

/// An object of the rollout's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: ObjectName,
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Opens approval gates up to and with the step `through`.
    Approve,
    /// Says no: the posture stays, nothing is asked again before `resume`.
    Deny,
    /// Ends the soak and the checks of the step `step`; never readiness, gates or floors.
    Skip,
    /// Bars entry to the next step.
    Hold,
    /// Lifts hold and deny.
    Resume,
    /// Goes back; the revision is refused.
    Abort,
    /// Lifts the refusal of the ended run that it names.
    Retry,
    /// Goes back to the promoted run that it names.
    Rollback,
    /// What is live becomes the stable version.
    Adopt,
    /// Lets the `objects` go, though they are more than the policy lets go with one change.
    Delete,
}
