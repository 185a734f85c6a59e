//! The Jobs that stand before steps: which were made, and which have succeeded.

use serde_json::Value;
use std::collections::BTreeSet;
use tidegate::manifest::ids::RunId;
use tidegate::record::state::{Phase, RolloutState};
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// Those of one rollout, by name.
#[derive(Default)]
pub(crate) struct Jobs {
    there: BTreeSet<String>,
    made: BTreeSet<String>,
    succeeded: BTreeSet<String>,
    /// Those that Git has said a run waits for.
    asked: BTreeSet<String>,
}

impl Jobs {
    /// Takes note of a record.
    pub(crate) fn recorded(&mut self, state: &RolloutState) {
        if let (Phase::Waiting { next, .. }, Some(run)) = (&state.phase, &state.run) {
            self.asked.insert(called(state.metadata.name.as_str(), &run.id, next.as_str()));
        }
    }

    /// Looks at them once more: those that came, and what is wrong with one.
    pub(crate) fn look(&mut self, world: &World, rollout: &str) -> (Vec<String>, Option<String>) {
        let (prefix, mut there) = (format!("{rollout}-"), BTreeSet::new());
        for job in world.list(Resource::of_kind("batch/v1", "Job").unwrap(), "shop") {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            if name.starts_with(&prefix) {
                there.insert(name.to_owned());
                if is_complete(job) {
                    self.succeeded.insert(name.to_owned());
                }
            }
        }
        let came: Vec<String> = there.difference(&self.there).cloned().collect();
        self.there = there;
        let again = came.iter().find(|name| self.made.contains(*name)).map(|name| format!("Job {name} is made again"));
        let early = || came.iter().find(|name| !self.asked.contains(*name));
        let wrong = again.or_else(|| early().map(|name| format!("Job {name} is made before Git has that a run waits")));
        self.made.extend(came.iter().cloned());
        (came, wrong)
    }

    /// Whether the Job before a step of a run has succeeded.
    pub(crate) fn succeeded(&self, rollout: &str, run: &RunId, step: &str) -> bool {
        self.succeeded.contains(&called(rollout, run, step))
    }
}

fn called(rollout: &str, run: &RunId, step: &str) -> String {
    format!("{rollout}-{run}-{step}")
}

fn is_complete(job: &Value) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
}
