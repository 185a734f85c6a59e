//! The controller of Jobs, and their Pods' fates: those that the template's annotations, or the tag of its image, choose. The Pods
//! themselves are nobody's to see.
//!
//! A Job ends `testbed/ends-after: 30s` after it started, else at once: well, or, where its Pods crash, not. Where they are stuck or
//! cannot be pulled it ends by its deadline.

use super::pods::{Fate, fate, is_due, span};
use super::{Due, MANAGER, all, condition, count, ends, stamp, time, write_status};
use crate::kube_api::World;
use chrono::TimeDelta;
use serde_json::{Value, json};

pub(super) fn run(world: &mut World, due: &mut Due) {
    for job in all(world, "batch/v1", "Job") {
        if ends(&job) || condition(&job, "Complete").or_else(|| condition(&job, "Failed")).is_some() {
            continue;
        }
        let status = status(world, &job, due);
        write_status(world, &job, status, MANAGER);
    }
}

fn status(world: &World, job: &Value, due: &mut Due) -> Value {
    let Some(started) = time(&job["status"]["startTime"]) else {
        return json!({"startTime": stamp(world), "active": 1, "ready": 0, "terminating": 0});
    };
    let (template, limit) = (&job["spec"]["template"], count(&job["spec"]["activeDeadlineSeconds"], 0));
    let mut over = |after: TimeDelta| is_due(world, started + after, due);
    if limit > 0 && over(TimeDelta::seconds(limit)) {
        return failed(world, job, "DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let fate = fate(template);
    let ended = match fate {
        Fate::Ready | Fate::Crash => over(span(template, "testbed/ends-after").unwrap_or_default()),
        Fate::Stuck | Fate::Image => false,
    };
    match (ended, fate) {
        (false, _) => job["status"].clone(),
        (true, Fate::Crash) => {
            failed(world, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        }
        (true, Fate::Ready | Fate::Stuck | Fate::Image) => {
            let why = ("CompletionsReached", "Reached expected number of succeeded pods");
            let mut status = with_conditions(world, job, ["SuccessCriteriaMet", "Complete"], why);
            status["succeeded"] = 1.into();
            status["completionTime"] = stamp(world);
            status
        }
    }
}

fn failed(world: &World, job: &Value, reason: &str, message: &str) -> Value {
    let mut status = with_conditions(world, job, ["FailureTarget", "Failed"], (reason, message));
    status["failed"] = 1.into();
    status
}

fn with_conditions(world: &World, job: &Value, kinds: [&str; 2], (reason, message): (&str, &str)) -> Value {
    let now = stamp(world);
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastProbeTime": now, "lastTransitionTime": now,
        })
    };
    let conditions: Vec<Value> = kinds.into_iter().map(condition).collect();
    json!({"startTime": job["status"]["startTime"], "ready": 0, "terminating": 0, "conditions": conditions})
}
