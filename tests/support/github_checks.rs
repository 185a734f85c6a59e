//! Check runs as GitHub keeps them: annotations are only ever added to one, and of several with a name the last is shown.
#![allow(dead_code, reason = "the unit tests and the stories ask for different parts of it")]

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of the App that all of ours are, as GitHub counts Apps.
pub(crate) const APP: u64 = 1;
/// The most annotations that GitHub takes at once.
const BATCH: usize = 50;

/// All runs of a repository, the first ones first.
#[derive(Default)]
pub(crate) struct Checks {
    runs: Vec<(Value, Vec<Value>)>,
    /// How often anything was written.
    pub(crate) writes: usize,
}

impl Checks {
    /// What an App is answered, by the path below the repository; nothing if it is about something else.
    pub(crate) fn answer(
        &mut self,
        method: &str,
        below: &[&str],
        query: &BTreeMap<String, String>,
        sent: &Value,
    ) -> Option<(u16, Value)> {
        match (method, below) {
            ("GET", ["commits", commit, "check-runs"]) => {
                let asked = |name: &str, has: &Value| {
                    query
                        .get(name)
                        .is_none_or(|asked| *asked == has.as_str().map_or_else(|| has.to_string(), str::to_owned))
                };
                let of_it = |run: &&Value| {
                    run["head_sha"] == **commit
                        && asked("check_name", &run["name"])
                        && asked("app_id", &run["app"]["id"])
                };
                let mut latest: BTreeMap<(String, String), &Value> = BTreeMap::new();
                for run in self.runs.iter().map(|(run, _)| run).filter(of_it) {
                    latest.insert((run["name"].to_string(), run["app"]["id"].to_string()), run);
                }
                let shown: Vec<&Value> = latest.into_values().collect();
                Some((200, json!({"total_count": shown.len(), "check_runs": shown})))
            }
            ("POST", ["check-runs"]) => {
                let id = self.make(APP, sent);
                Some(self.write(id, 201, sent))
            }
            ("PATCH", ["check-runs", id]) => Some(self.write(id.parse().unwrap(), 200, sent)),
            _ => None,
        }
    }

    /// Makes an empty run of an App, whoever it is; its number.
    pub(crate) fn make(&mut self, app: u64, sent: &Value) -> usize {
        let output = json!({"title": null, "summary": null, "text": null, "annotations_count": 0});
        let id = self.runs.len() + 1;
        let run = json!({
            "id": id, "head_sha": sent["head_sha"], "name": sent["name"], "external_id": null, "status": "queued",
            "conclusion": null, "output": output, "app": {"id": app}, "pull_requests": [],
        });
        self.runs.push((run, Vec::new()));
        id
    }

    fn write(&mut self, id: usize, status: u16, sent: &Value) -> (u16, Value) {
        self.writes += 1;
        let (run, annotations) = &mut self.runs[id - 1];
        let added = sent["output"]["annotations"].as_array().cloned().unwrap_or_default();
        let goes_back = run["status"] == "completed" && sent["status"] == "in_progress";
        if added.len() > BATCH || goes_back || (sent["status"] == "completed") != sent["conclusion"].is_string() {
            return (422, json!({"message": "Invalid request.", "errors": [], "documentation_url": ""}));
        }
        for field in ["external_id", "status", "conclusion"] {
            if let Some(value) = sent.get(field) {
                run[field] = value.clone();
            }
        }
        annotations.extend(added);
        for field in ["title", "summary"] {
            run["output"][field] = sent["output"][field].clone();
        }
        run["output"]["annotations_count"] = json!(annotations.len());
        (status, run.clone())
    }

    /// Takes away the annotations of a run after so many, as if they had never come.
    pub(crate) fn cut(&mut self, id: usize, to: usize) {
        let (run, annotations) = &mut self.runs[id - 1];
        annotations.truncate(to);
        run["output"]["annotations_count"] = json!(to);
    }

    /// All runs of a commit, each with its annotations.
    pub(crate) fn of(&self, commit: &str) -> Vec<(Value, Vec<Value>)> {
        self.runs.iter().filter(|(run, _)| run["head_sha"] == commit).cloned().collect()
    }
}
