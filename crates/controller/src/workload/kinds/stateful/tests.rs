use super::*;
use crate::manifest::object::{Kind, PODS, ROLE};
use crate::record::posture::Units;
use crate::workload::fixtures::{live, object};
use crate::workload::kinds::shared;
use crate::workload::readiness::Available;
use serde_json::{Value, json};

const NEW: &str = "0123456789abcdef";

/// A set of four pods whose highest may be new from that number on.
fn set(partition: u32, role: &str, more: Value) -> Object {
    let mut value = json!({
        "metadata": {"uid": "u1", "generation": 2, "annotations": {ROLE: role}, "creationTimestamp": "2026-03-01T10:00:00Z"},
        "spec": {
            "replicas": 4, "updateStrategy": {"rollingUpdate": {"partition": partition}},
            "template": {"metadata": {"labels": {"app": "db", PODS: NEW}}},
        },
        "status": {"observedGeneration": 2, "currentRevision": "db-a", "updateRevision": "db-b"},
    });
    for (key, field) in more.as_object().into_iter().flatten() {
        value["status"][key] = field.clone();
    }
    object(Kind::StatefulSet, "db", value)
}

/// `0a` is ready and of revision a, `1b!` of b, and new, and not ready; `2b?` is ending.
fn pod(what: &str) -> Object {
    let (ordinal, rest) = what.split_at(1);
    let is_new = rest.starts_with('b');
    let ready = if rest.ends_with('!') { "False" } else { "True" };
    let mut value = json!({
        "metadata": {
            "uid": what, "labels": {"controller-revision-hash": format!("db-{}", &rest[..1])},
            "ownerReferences": [{"uid": "u1", "controller": true}],
        },
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-03-01T11:00:00Z"}]},
    });
    if is_new {
        value["metadata"]["labels"][PODS] = NEW.into();
    }
    if rest.ends_with('?') {
        value["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    }
    object(Kind::Pod, &format!("db-{ordinal}"), value)
}

fn world(pods: &str) -> LiveState {
    live(pods.split(' ').map(pod))
}

fn gone(set: &Object, pods: &str) -> String {
    let world = world(pods);
    let due = shared::due(set, &world, RoleName::Stable, &Split::stable(), 1);
    due.iter().map(|pod| pod.uid().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_partition_holds_at_the_old_size_and_at_the_new_one() {
    let declared = |replicas: Option<u32>| {
        let spec = replicas.map_or_else(|| json!({}), |replicas| json!({"replicas": replicas}));
        object(Kind::StatefulSet, "db", json!({"spec": spec}))
    };
    let at = |declared_now: Option<u32>, live: Option<u32>, weight: u8| {
        let live = live.map(|live| declared(Some(live)));
        let split = Split { weight: weight.try_into().unwrap(), ..Split::stable() };
        partition(&exposing(declared(declared_now), live.as_ref(), &split))
    };
    assert_eq!(at(Some(4), Some(4), 25), 3);
    assert_eq!(at(Some(4), Some(4), 100), 0);
    assert_eq!(at(Some(4), Some(4), 0), NOBODY, "a pod that is added meanwhile is not new");
    assert_eq!(at(Some(4), Some(4), 24), NOBODY);
    assert_eq!(at(Some(4), Some(8), 50), 4, "a hand has made it larger");
    assert_eq!(at(Some(8), Some(4), 50), 4, "it is about to be made larger");
    assert_eq!(at(None, Some(10), 50), 5, "an autoscaler says how many");
    assert_eq!(at(None, None, 50), NOBODY);
}

#[test]
fn one_pod_is_new_however_small_a_share_that_is() {
    let declared = object(Kind::StatefulSet, "db", json!({"spec": {"replicas": 200}}));
    let at = |count: u32| {
        let split = Split { units: Units { count, ..Units::default() }, ..Split::stable() };
        partition(&exposing(declared.clone(), None, &split))
    };
    assert_eq!([at(0), at(1), at(300)], [NOBODY, 199, 0]);
}

#[test]
fn n_1_several_pods_are_away_where_its_controller_makes_them_at_the_same_time() {
    let parallel = |partition: u32, role: &str, policy: &str| {
        let mut set = set(partition, role, json!({}));
        set.value_mut()["spec"]["podManagementPolicy"] = policy.into();
        set
    };
    let due = |set: &Object, pods: &str, toward, slots| {
        let world = world(pods);
        let due = shared::due(set, &world, toward, &Split::stable(), slots);
        due.iter().map(|pod| pod.uid().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let next = |partition: u32, policy: &str, pods: &str, slots: u32| {
        due(&parallel(partition, "candidate", policy), pods, RoleName::Candidate, slots)
    };
    assert_eq!(next(0, "Parallel", "0a 1a 2a 3a", 3), "3a 2a 1a");
    assert_eq!(next(2, "Parallel", "0a 1a 2a 3a", 3), "3a 2a", "those below the partition are not to be new");
    assert_eq!(next(0, "Parallel", "0a 1a 2a 3b!", 3), "2a 1a", "it starts");
    assert_eq!(next(0, "Parallel", "0a 1a 2a 3a?", 3), "2a 1a", "its controller has begun");
    assert_eq!(next(0, "Parallel", "0a 1a", 3), "1a", "two are not there yet");
    assert_eq!(next(2, "Parallel", "0a! 1a 2a 3a", 2), "3a 2a", "that one was not ready before, and stays as it is");
    assert_eq!(next(0, "Parallel", "0a 1a 2a 3a", 1), "", "its controller does that by itself");
    assert_eq!(next(0, "OrderedReady", "0a 1a 2a 3a", 3), "", "they would be made one after the other");
    let mut back = parallel(0, "stable", "Parallel");
    back.value_mut()["status"]["currentRevision"] = "db-b".into();
    back.value_mut()["status"]["updateRevision"] = "db-a".into();
    back.value_mut()["spec"]["template"]["metadata"]["labels"] = json!({"app": "db"});
    assert_eq!(due(&back, "0b 1b 2b 3b", RoleName::Stable, 2), "3b 2b");
    assert_eq!(due(&back, "0b 1b 2b! 3a!", RoleName::Stable, 3), "2b! 1b", "what is broken first");
}

#[test]
fn a_retreat_lets_no_further_pod_be_new() {
    assert_eq!(partition(&closed(&set(2, "candidate", json!({})))), NOBODY);
    assert_eq!(partition(&closed(&set(2, "stable", json!({})))), 2, "stable's pods are led by nobody");
    assert_eq!(partition(&whole(set(2, "stable", json!({})))), 0);
}

#[test]
fn pods_are_told_by_the_label_of_the_template() {
    let world = world("0a 1a 2b 3b!");
    let of = |role: &str| {
        let found = set(3, role, json!({}));
        let all = members(&found, &world);
        let candidates = all.iter().filter(|member| member.role == RoleName::Candidate);
        candidates.map(|member| member.pod.reference().name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("candidate"), "db-3 db-2");
    assert_eq!(of("stable"), "db-1 db-0", "what is not of stable's template is the candidate's");
    let mut other = set(3, "candidate", json!({}));
    other.value_mut()["metadata"]["uid"] = "u2".into();
    assert!(members(&other, &world).is_empty(), "the pods of a set of that name that is gone");
    assert!(members(&object(Kind::StatefulSet, "d", json!({"metadata": {"uid": "u1"}})), &world).is_empty());
}

#[test]
fn below_the_partition_the_highest_of_the_candidates_pods_goes_once_all_are_ready() {
    let closed = set(NOBODY, "candidate", json!({}));
    assert_eq!(gone(&closed, "0a 1a 2b 3b"), "3b");
    assert_eq!(gone(&closed, "0a 1a 2b 3a!"), "", "the one before has to be ready");
    assert_eq!(gone(&closed, "0a 1a 2b 3b?"), "", "the one before is ending");
    assert_eq!(gone(&closed, "0a 1a 2b"), "", "the one before is not there yet");
    assert_eq!(gone(&closed, "0a 1a 2b! 3b!"), "3b! 2b!", "what is broken anyway goes at once");
    assert_eq!(gone(&closed, "0a 1a! 2b 3a"), "", "a pod of stable's that is not ready keeps its place");
    assert_eq!(gone(&set(3, "candidate", json!({})), "0a 1a 2a 3b!"), "", "it may be new");
    assert_eq!(gone(&set(3, "candidate", json!({})), "0a 1a 2b 3b"), "2b", "one more than may be");
    let unseen = set(NOBODY, "candidate", json!({"observedGeneration": 1}));
    assert_eq!(gone(&unseen, "0a 1a 2b 3b"), "", "it would come back as it is");
    let done = set(NOBODY, "candidate", json!({"currentRevision": "db-b"}));
    assert_eq!(gone(&done, "0b 1b 2b 3b!"), "", "there is no other revision to come back at");
}

#[test]
fn where_the_template_is_stables_again_only_what_is_broken_has_to_be_taken_away() {
    let mut back = set(0, "stable", json!({"currentRevision": "db-b", "updateRevision": "db-a"}));
    back.value_mut()["spec"]["template"]["metadata"]["labels"] = json!({"app": "db"});
    assert_eq!(gone(&back, "0b 1b 2b 3b"), "", "its controller replaces them");
    assert_eq!(gone(&back, "0b 1b 2b! 3a"), "2b!");
    assert_eq!(gone(&back, "0b 1b 2b 3a!"), "", "stable's own pod has to become ready by itself");
}

#[test]
fn it_is_ready_when_as_many_pods_as_may_be_new_are_and_all_are_available() {
    let judged_by =
        |pods: &str, partition: u32, status: Value| match readiness(&set(partition, "candidate", status), &world(pods))
        {
            Readiness::Ready => "ready".to_owned(),
            Readiness::NotReady { why, available } => format!("{why} {}", available == Available::Unseen),
        };
    let judged = |partition, status| judged_by("0b 1b 2b 3b", partition, status);
    let status = |updated: u32, available: u32| json!({"updatedReplicas": updated, "availableReplicas": available, "replicas": 4});
    assert_eq!(judged(3, status(1, 4)), "ready");
    let behind = "0 of 1 pods of the template are seen ready false";
    assert_eq!(judged_by("0a 1a 2a 3a", 3, status(1, 4)), behind, "its pods were heard of before its status");
    assert_eq!(judged_by("0a 1a 2a", 3, status(1, 4)), behind);
    assert_eq!(judged_by("0a 1a 2a 3b!", 3, status(1, 4)), behind);
    assert_eq!(judged(3, status(0, 4)), "0 of 1 pods are of the new template false");
    assert_eq!(judged(3, status(1, 3)), "3 of 4 pods are ready false");
    assert_eq!(judged(0, status(4, 4)), "its update is not complete false");
    let complete = json!({"updatedReplicas": 4, "availableReplicas": 4, "replicas": 4, "currentRevision": "db-b"});
    assert_eq!(judged(0, complete.clone()), "ready");
    let old = json!({"observedGeneration": 1, "updatedReplicas": 4, "availableReplicas": 4, "replicas": 4});
    assert_eq!(judged(3, old), "its controller has not seen it yet true");
    let many = json!({"updatedReplicas": 4, "availableReplicas": 5, "replicas": 5, "currentRevision": "db-b"});
    assert_eq!(judged(0, many), "1 pods too many are still there false");
}

#[test]
fn it_is_not_available_since_the_first_of_its_new_pods_is_not_ready() {
    let since = |pods: &str| match readiness(&set(2, "candidate", json!({})), &world(pods)) {
        Readiness::Ready => panic!("two pods are not of the new template"),
        Readiness::NotReady { available, .. } => available,
    };
    assert_eq!(since("0a 1a 2b 3b!"), Available::NotSince("2026-03-01T11:00:00Z".parse().unwrap()));
    assert_eq!(since("0a! 1a 2b 3b"), Available::Perhaps(Some("2026-03-01T10:00:00Z".parse().unwrap())));
}

#[test]
fn a_run_begins_where_there_is_one_revision() {
    assert!(between_revisions(&set(0, "stable", json!({}))).is_some());
    assert!(between_revisions(&set(0, "stable", json!({"currentRevision": "db-b"}))).is_none());
    assert!(
        between_revisions(&set(0, "stable", json!({"currentRevision": "db-b", "observedGeneration": 1}))).is_some()
    );
}

#[test]
fn a_pod_has_failed_by_itself_when_it_is_not_ready_any_more_or_was_restarted() {
    let failed = |what: &str, more: Value| {
        let mut value = pod(what).value().clone();
        value["status"]["startTime"] = "2026-03-01T10:59:58Z".into();
        for (key, field) in more.as_object().into_iter().flatten() {
            value["status"][key] = field.clone();
        }
        let pod = object(Kind::Pod, "db-3", value);
        Member { pod: &pod, role: RoleName::Candidate }.has_failed()
    };
    assert!(!failed("3b!", json!({})), "it starts");
    assert!(failed("3b!", json!({"startTime": "2026-03-01T10:59:57Z"})), "it was ready before");
    assert!(failed("3b!", json!({"containerStatuses": [{"restartCount": 0}, {"restartCount": 1}]})));
    assert!(!failed("3b", json!({"containerStatuses": [{"restartCount": 1}]})), "it is ready again");
    assert!(!failed("3b?", json!({"startTime": "2026-03-01T10:00:00Z"})), "somebody asked for its end");
    let cut_off = json!([{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T11:00:00Z"},
        {"type": "ContainersReady", "status": "True"}]);
    assert!(!failed("3b!", json!({"startTime": "2026-03-01T10:00:00Z", "conditions": cut_off})), "its node is lost");
}
