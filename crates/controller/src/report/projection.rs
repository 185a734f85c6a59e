//! A rollout as an object of Kubernetes, for people who look with `kubectl`. It is written and never read as truth.

use crate::plan::report::Reason;
use crate::record::posture::Split;
use crate::record::state::{Phase, Rest, RolloutState, Time};
use crate::record::text::{exposure, plain, since};
use chrono::SecondsFormat;
use serde::Serialize;
use serde_json::{Value, json};

/// The definition of such objects, for `kubectl apply`.
pub const DEFINITION: &str = include_str!("rollouts.tidegate.io.yaml");

/// A condition, as objects of Kubernetes have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectedCondition {
    /// `Promoted`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The phase; at rest how it came there.
    pub reason: &'static str,
    /// Since when it has that status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Requirement C-13: unknown while a run is open; the moment changes with the status alone.
#[must_use]
pub fn promoted(state: &RolloutState) -> ProjectedCondition {
    let refused = state.conditions.iter().find(|condition| condition.reason == Reason::Refused.as_str());
    let phase = state.phase.name();
    let (status, reason, since) = match (&state.phase, refused) {
        // Main still wants what was taken back.
        (Phase::Steady { how: Rest::Reverted, .. }, Some(refused)) => ("False", "Reverted", Some(refused.since)),
        (Phase::Steady { how, since }, _) => {
            let how = match how {
                Rest::Initialized => "Initialized",
                Rest::Succeeded => "Succeeded",
                Rest::Reverted => "Reverted",
            };
            ("True", how, Some(*since))
        }
        (Phase::Failed { since, .. }, _) => ("False", phase, Some(*since)),
        (
            Phase::Initializing(_)
            | Phase::Waiting { .. }
            | Phase::Progressing(_)
            | Phase::WaitingPromotion { .. }
            | Phase::Promoting(_)
            | Phase::Finalising(_)
            | Phase::Reverting { .. }
            | Phase::Terminating { .. }
            | Phase::Unknown(_),
            _,
        ) => ("Unknown", phase, state.run.as_ref().map(|run| run.started).or(since(&state.phase))),
    };
    ProjectedCondition { kind: "Promoted", status, reason, last_transition_time: since }
}

/// What the object shows. It follows from the record alone, so that it is new only where that is.
#[must_use]
pub fn status(state: &RolloutState) -> Value {
    let splits = || state.clusters.values().map(|cluster| &cluster.posture.split);
    let text = |time: Option<Time>| time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
    let ProjectedCondition { kind, status, reason, last_transition_time } = promoted(state);
    let revision = state.run.as_ref().map(|run| &run.revision);
    let mut all = json!({
        "phase": state.phase.name(),
        "step": state.phase.position().map(|position| position.step.as_str()),
        "weight": splits().map(|split: &Split| split.weight.get()).max().unwrap_or(0),
        "exposure": splits().find_map(exposure),
        "run": state.run.as_ref().map(|run| run.id.as_str()),
        "revision": revision.or(state.promoted.as_ref().map(|promoted| &promoted.revision)),
        "promoted": state.promoted.as_ref().map(|promoted| &promoted.revision),
        "since": text(since(&state.phase)),
        "message": message(state),
        "conditions": [{
            "type": kind, "status": status, "reason": reason, "message": message(state),
            // The API asks for a moment; a phase of a newer version tells none.
            "lastTransitionTime": text(last_transition_time).unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned()),
        }],
    });
    if let Some(fields) = all.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    all
}

/// Why it went back or failed, else what it waits on, as far as the record says.
fn message(state: &RolloutState) -> String {
    if let Phase::Reverting { why, .. } | Phase::Failed { why, .. } = &state.phase {
        return plain(why);
    }
    let waits = state.conditions.iter().map(|condition| format!("{}: {}", condition.reason, condition.message));
    plain(&waits.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{condition, open, steady, time};

    #[test]
    fn an_object_shows_what_the_record_says() {
        let mut state = open();
        state.conditions = vec![condition("Approval", "half waits for a person's word", time("10:00:00"))];
        insta::assert_snapshot!(format!("{:#}", status(&state)));
        insta::assert_snapshot!("at_rest", format!("{:#}", status(&steady())));
    }

    #[test]
    fn the_definition_knows_all_that_is_shown() {
        let definition: Value = serde_yaml::from_str(DEFINITION).unwrap();
        let version = &definition["spec"]["versions"][0];
        let known = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        for state in [open(), steady()] {
            let shown = status(&state);
            let unknown = shown.as_object().unwrap().keys().find(|key| known[key.as_str()].is_null());
            assert_eq!(unknown, None);
        }
        for column in version["additionalPrinterColumns"].as_array().unwrap() {
            let path = column["jsonPath"].as_str().unwrap();
            let field = path.strip_prefix(".status.").unwrap().split(['[', '.']).next().unwrap();
            assert!(!known[field].is_null(), "{path}");
        }
    }
}
