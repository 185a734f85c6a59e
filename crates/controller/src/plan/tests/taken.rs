//! Candidates whose pods something else takes away: that says nothing of their version.

use super::manifests::object;
use super::world::{Pods, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::Kind;
use crate::record::state::{Outcome, Time};
use chrono::TimeDelta;
use serde_json::{Value, json};

impl World {
    /// A pod of the candidate's, made so many seconds ago, that has not been ready for some of them.
    fn pod(&mut self, made: i64, unready: i64, metadata: Value, conditions: Value) {
        let labels =
            self.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.at("/spec/selector/matchLabels").cloned());
        let ago = |seconds| (self.now - TimeDelta::seconds(seconds)).to_rfc3339();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {
            "startTime": ago(made),
            "conditions": [{"type": "Ready", "status": "False", "reason": "x", "lastTransitionTime": ago(unready)}],
        }});
        pod["metadata"]["name"] = "podinfo-canary-x".into();
        pod["metadata"]["labels"] = labels.expect("a candidate");
        pod["metadata"]["creationTimestamp"] = ago(made).into();
        let all = pod["status"]["conditions"].as_array_mut().expect("a list");
        all.extend(conditions.as_array().expect("a list").iter().cloned());
        self.put(object(pod));
    }

    /// The candidate has no ready pod any more, since one is as told; how the run has ended a while later.
    fn comes_to(&mut self) -> Outcome {
        self.behave("app:2", Pods::Stuck);
        self.settle();
        assert_eq!(self.weight(), 0, "traffic goes back at once in any case");
        self.pass(31);
        self.record().history.last().expect("a run that has ended").outcome
    }
}

/// At a tenth, a minute after it was reached.
fn reached() -> World {
    let mut world = World::at_tenth();
    world.pass(60);
    world
}

/// Told to end then, with half a minute for it.
fn told(at: Time) -> Value {
    let end = (at + TimeDelta::seconds(30)).to_rfc3339();
    json!({"deletionTimestamp": end, "deletionGracePeriodSeconds": 30})
}

#[test]
fn x_13_a_candidate_whose_node_is_drained_goes_back_and_is_not_refused() {
    let mut world = reached();
    let now = world.now;
    world.pod(90, 0, told(now), json!([]));
    assert_eq!(world.comes_to(), Outcome::Unmeasured);
    let why = "tenth: the candidate has no ready endpoint left: its pods were taken away";
    let record = world.record();
    assert_eq!(record.history.last().map(|past| past.why.as_str()), Some(why));
    assert!(record.refused.is_empty() && record.revert.is_none(), "nobody is asked to undo it");
    assert!(world.phase() == "Waiting" && world.waits().contains(&"Held"), "{:?}", world.waits());
    world.behave("app:2", Pods::Ready);
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.waits(), ["Approval"], "it starts as any other run");
}

#[test]
fn x_13_what_took_the_pods_away_is_told_from_what_failed_in_them() {
    let evicted =
        |at: Time| json!([{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at.to_rfc3339()}]);
    // Whether it was told to end, and is to be evicted.
    let table = [
        ("its node is drained", [90, 0], [true, true], Outcome::Unmeasured),
        ("somebody deleted it", [90, 0], [true, false], Outcome::Unmeasured),
        ("it is to go", [90, 0], [false, true], Outcome::Unmeasured),
        ("it came in the place of one that was deleted", [5, 5], [false, false], Outcome::Unmeasured),
        ("it failed", [90, 0], [false, false], Outcome::Failed),
        ("it failed, and somebody deleted it", [90, 20], [true, false], Outcome::Failed),
        ("it was there before, and never ready", [90, 90], [false, false], Outcome::Failed),
    ];
    for (what, [made, unready], [ends, goes], outcome) in table {
        let mut world = reached();
        let metadata = if ends { told(world.now) } else { json!({}) };
        let conditions = if goes { evicted(world.now) } else { json!([]) };
        world.pod(made, unready, metadata, conditions);
        assert_eq!(world.comes_to(), outcome, "{what}");
    }
}
