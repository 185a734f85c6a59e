//! A Job before a step: how it looks for one run, and what its status says.

use crate::manifest::hex::hex;
use crate::manifest::ids::{ObjectName, Revision, RolloutId, RunId, StepName};
use crate::manifest::object::{Kind, Object, ObjectRef, RUN, STEP, items};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest name that fits the label which Kubernetes puts on the pods of a Job.
const LONGEST: usize = 63;

/// What a Job is made for.
#[derive(Debug, Clone, Copy)]
pub struct For<'a> {
    /// The rollout.
    pub rollout: &'a RolloutId,
    /// The run.
    pub run: &'a RunId,
    /// The step that it stands before: a phase, or `promotion`.
    pub step: &'a StepName,
}

impl For<'_> {
    /// What names its Job: always the same, so that whoever makes it twice finds it there.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        let Self { rollout, run, step } = self;
        ObjectRef {
            kind: Kind::Job,
            namespace: rollout.namespace.clone(),
            name: name(&format!("{}-{run}-{step}", rollout.name)),
        }
    }

    /// Whether a live Job was made for this.
    #[must_use]
    pub fn made(&self, live: &Object) -> bool {
        *live.reference() == self.reference()
            && live.annotation(RUN) == Some(self.run.as_str())
            && live.annotation(STEP) == Some(self.step.as_str())
    }
}

/// The text itself, or its beginning and a digest of the whole.
fn name(text: &str) -> ObjectName {
    let digest = hex(&Sha256::digest(text)[..4]);
    let short = || {
        let start: String = text.chars().take(LONGEST - 1 - digest.len()).collect();
        format!("{}-{digest}", start.trim_end_matches('-'))
    };
    let fitting = if text.len() <= LONGEST { text.to_owned() } else { short() };
    fitting.parse().expect("a DNS label, because names, ids and steps are, and a digest is")
}

/// The run and the step that a Job says it was made for.
#[must_use]
pub fn made_for(live: &Object) -> Option<(RunId, StepName)> {
    Some((live.annotation(RUN)?.parse().ok()?, live.annotation(STEP)?.parse().ok()?))
}

/// The Job as it is made. It stays until its run has ended, whatever its file says: a success that vanishes by itself would be
/// lost where nobody had seen it.
#[must_use]
pub fn render(made: For<'_>, revision: &Revision, file: &Value) -> Object {
    let mut value = file.clone();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("ttlSecondsAfterFinished");
    }
    let told = [
        ("TIDEGATE_ROLLOUT", made.rollout.to_string()),
        ("TIDEGATE_RUN", made.run.to_string()),
        ("TIDEGATE_STEP", made.step.to_string()),
        ("TIDEGATE_REVISION", revision.to_string()),
    ];
    for list in ["initContainers", "containers"] {
        let containers = value.pointer_mut(&format!("/spec/template/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| container.is_object()) {
            let is_told = |entry: &&Value| told.iter().any(|(name, _)| entry["name"] == *name);
            let own: Vec<Value> = items(container, "env").filter(|entry| !is_told(entry)).cloned().collect();
            let ours = told.iter().map(|(name, value)| json!({"name": name, "value": value}));
            container["env"] = ours.chain(own).collect();
        }
    }
    let mut job = Object::new(made.reference(), value);
    job.annotate(RUN, made.run.as_str());
    job.annotate(STEP, made.step.as_str());
    job
}

/// How far a live Job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// It runs, or is about to.
    Running,
    /// It has succeeded.
    Complete,
    /// It has failed.
    Failed {
        /// Why, in the words of the cluster.
        why: String,
    },
}

/// What its status says: only `Complete` and `Failed` are final.
#[must_use]
pub fn status(live: &Object) -> JobStatus {
    let conditions = live.at("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let holds = |kind: &str| conditions.iter().find(|c| c["type"] == kind && c["status"] == "True");
    if holds("Complete").is_some() {
        return JobStatus::Complete;
    }
    let Some(failed) = holds("Failed") else { return JobStatus::Running };
    let words = ["reason", "message"].map(|key| failed[key].as_str().unwrap_or_default());
    JobStatus::Failed { why: words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made<'a>(rollout: &'a RolloutId, run: &'a RunId, step: &'a StepName) -> For<'a> {
        For { rollout, run, step }
    }

    fn job(status: Value) -> Object {
        let (rollout, run, step) = ("shop/web".parse().unwrap(), RunId::zero(), StepName::fixed("promotion"));
        Object::new(made(&rollout, &run, &step).reference(), json!({"status": status}))
    }

    #[test]
    fn names_are_labels_that_tell_runs_and_steps_apart() {
        let run: RunId = "7-9ac41f02".parse().unwrap();
        let named = |rollout: &str, step: &str| {
            let (rollout, step) = (format!("shop/{rollout}").parse().unwrap(), step.parse().unwrap());
            made(&rollout, &run, &step).reference().name.to_string()
        };
        assert_eq!(named("podinfo", "tenth"), "podinfo-7-9ac41f02-tenth");
        let long = "a-rollout-with-a-name-that-is-as-long-as-may-be-52ch";
        let names = [named(long, "tenth"), named(long, "tenths"), named(long, "promotion")];
        assert_eq!(names[0], "a-rollout-with-a-name-that-is-as-long-as-may-be-52ch-7-9baac1c0");
        assert!(names.iter().all(|name| name.len() <= LONGEST), "{names:?}");
        assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    }

    #[test]
    fn a_job_knows_its_run_and_stays_until_that_ends() {
        let (rollout, run, step) =
            ("shop/web".parse().unwrap(), "7-9ac41f02".parse().unwrap(), "tenth".parse().unwrap());
        let file = json!({
            "metadata": {"name": "acceptance", "labels": {"team": "shop"}},
            "spec": {"ttlSecondsAfterFinished": 0, "backoffLimit": 0, "template": {"spec": {"containers": [
                {"name": "a", "env": [{"name": "TIDEGATE_RUN", "value": "mine"}, {"name": "URL", "value": "http://web-canary"}]},
            ]}}},
        });
        let revision: Revision = format!("v1:sha256:{}", "a".repeat(64)).parse().unwrap();
        let job = render(made(&rollout, &run, &step), &revision, &file);
        assert_eq!(job.text("/metadata/name"), Some("web-7-9ac41f02-tenth"));
        assert_eq!(job.at("/spec/ttlSecondsAfterFinished"), None);
        assert_eq!(job.text("/metadata/labels/team"), Some("shop"));
        let env = job.at("/spec/template/spec/containers/0/env").and_then(Value::as_array).unwrap();
        let told: Vec<(&str, &str)> =
            env.iter().map(|e| (e["name"].as_str().unwrap(), e["value"].as_str().unwrap())).collect();
        assert_eq!(
            told,
            [
                ("TIDEGATE_ROLLOUT", "shop/web"),
                ("TIDEGATE_RUN", "7-9ac41f02"),
                ("TIDEGATE_STEP", "tenth"),
                ("TIDEGATE_REVISION", revision.as_str()),
                ("URL", "http://web-canary"),
            ]
        );
        assert!(made(&rollout, &run, &step).made(&job));
        assert_eq!(made_for(&job), Some((run, step)));
    }

    #[test]
    fn only_what_is_final_is_an_outcome() {
        assert_eq!(status(&job(Value::Null)), JobStatus::Running);
        let with = |conditions: Value| status(&job(json!({"active": 1, "conditions": conditions})));
        let failed = |kind: &str, status: &str| {
            with(json!([{"type": kind, "status": status, "reason": "BackoffLimitExceeded", "message": "too often"}]))
        };
        assert_eq!(failed("FailureTarget", "True"), JobStatus::Running);
        assert_eq!(failed("Failed", "False"), JobStatus::Running);
        assert_eq!(failed("Failed", "True"), JobStatus::Failed { why: "BackoffLimitExceeded: too often".to_owned() });
        assert_eq!(with(json!([{"type": "SuccessCriteriaMet", "status": "True"}])), JobStatus::Running);
        assert_eq!(with(json!([{"type": "Complete", "status": "True"}])), JobStatus::Complete);
    }
}
