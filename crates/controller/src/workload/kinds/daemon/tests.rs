use super::*;
use crate::manifest::object::{Kind, PODS, ROLE};
use crate::record::posture::Units;
use crate::workload::fixtures::{live, object};
use crate::workload::kinds::shared;
use serde_json::{Value, json};

const NEW: &str = "0123456789abcdef";

/// A set with a pod on each of four nodes, and the template of that role.
fn set(role: &str, more: Value) -> Object {
    let labels = if role == "candidate" { json!({"app": "log", PODS: NEW}) } else { json!({"app": "log"}) };
    let mut value = json!({
        "metadata": {"uid": "u1", "generation": 2, "annotations": {ROLE: role}, "creationTimestamp": "2026-03-01T10:00:00Z"},
        "spec": {"updateStrategy": {"type": "OnDelete"}, "template": {"metadata": {"labels": labels}}},
        "status": {"observedGeneration": 2, "desiredNumberScheduled": 4, "numberAvailable": 4, "updatedNumberScheduled": 4},
    });
    for (key, field) in more.as_object().into_iter().flatten() {
        value["status"][key] = field.clone();
    }
    object(Kind::DaemonSet, "log", value)
}

/// `0a` is stable's on node 0, `1b!` is new, and not ready; `2b?` is ending, `3b%` on a node that is lost. A candidate's is an hour younger,
/// and `3a+` two.
fn pod(what: &str) -> Object {
    let (node, rest) = what.split_at(1);
    let is_new = rest.starts_with('b');
    let hour = if rest.ends_with('+') { 13 } else { 11 + u8::from(is_new) };
    let word = |signs: &[char]| if rest.contains(signs) { "False" } else { "True" };
    let (ready, containers) = (word(&['!', '%']), word(&['!']));
    let time = format!("2026-03-01T{hour}:00:00Z");
    let mut value = json!({
        "metadata": {
            "uid": what, "labels": {"app": "log"}, "creationTimestamp": time,
            "ownerReferences": [{"uid": "u1", "controller": true}],
        },
        "spec": {"nodeName": format!("node-{node}")},
        "status": {"conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": time},
            {"type": "ContainersReady", "status": containers, "lastTransitionTime": time},
        ]},
    });
    if is_new {
        value["metadata"]["labels"][PODS] = NEW.into();
    }
    if rest.contains('?') {
        value["metadata"]["deletionTimestamp"] = "2026-03-01T14:00:30Z".into();
        value["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    }
    // The names say nothing of the order.
    object(Kind::Pod, &format!("log-{}{node}", ["m", "x", "a", "k", "b"][node.parse::<usize>().unwrap()]), value)
}

fn world(set: &Object, pods: &str) -> LiveState {
    live(pods.split(' ').map(pod).chain([set.clone()]))
}

fn share(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

fn uids(pods: &[&Object]) -> String {
    pods.iter().map(|pod| pod.uid().unwrap()).collect::<Vec<_>>().join(" ")
}

fn due(set: &Object, pods: &str, toward: RoleName, weight: u8, slots: u32) -> String {
    uids(&shared::due(set, &world(set, pods), toward, &share(weight), slots))
}

#[test]
fn the_pods_become_new_one_after_the_other_in_the_order_of_their_nodes() {
    let open = set("candidate", json!({}));
    let next = |set: &Object, pods: &str, weight: u8| due(set, pods, RoleName::Candidate, weight, 1);
    assert_eq!(next(&open, "0a 1a 2a 3a", 50), "0a");
    assert_eq!(next(&open, "0b 1a 2a 3a", 50), "1a");
    assert_eq!(next(&open, "0b 1b 2a 3a", 50), "", "as many as may be");
    assert_eq!(next(&open, "0a 1a 2a 3a", 24), "", "less than one");
    assert_eq!(next(&open, "0b 1b 2b 3a", 100), "3a");
    assert_eq!(next(&open, "0b! 1a 2a 3a", 50), "", "the one before is not ready");
    assert_eq!(next(&open, "0a? 1a 2a 3a", 50), "", "the one before is ending");
    assert_eq!(next(&open, "1a 2a 3a", 50), "", "the one before is not there yet");
    assert_eq!(next(&open, "0a! 1a 2a 3a", 50), "1a", "a node that is down comes last");
    assert_eq!(next(&open, "0a! 1b 2b 3b", 100), "0a!");
    assert_eq!(
        next(&set("candidate", json!({"observedGeneration": 1})), "0a 1a 2a 3a", 50),
        "",
        "it would come back as it is"
    );
    assert_eq!(next(&set("stable", json!({})), "0a 1a 2a 3a", 50), "", "it would come back as it is");
}

#[test]
fn n_1_as_many_are_on_their_way_as_may_be_away() {
    let (open, back) = (set("candidate", json!({})), set("stable", json!({})));
    let next = |pods: &str, weight: u8, slots: u32| due(&open, pods, RoleName::Candidate, weight, slots);
    assert_eq!(next("0a 1a 2a 3a", 100, 3), "0a 1a 2a");
    assert_eq!(next("0a 1a 2a 3a", 50, 3), "0a 1a", "no more than may be new");
    assert_eq!(next("0b! 1a 2a 3a", 100, 3), "1a 2a");
    assert_eq!(next("0a? 1a 2a 3a", 50, 3), "1a", "one comes back new");
    assert_eq!(next("1a 2a 3a", 25, 3), "", "so does one that is not there yet");
    assert_eq!(next("0b! 1a? 2a", 100, 3), "", "one is not there yet");
    assert_eq!(next("0a! 1a 2a 3b", 100, 2), "1a 2a", "a node that is down comes last");
    let gone = |pods: &str, weight: u8, slots: u32| due(&back, pods, RoleName::Stable, weight, slots);
    assert_eq!(gone("0b 1b 2b 3b", 0, 3), "3b 2b 1b");
    assert_eq!(gone("0b! 1b 2b 3b", 0, 3), "0b! 3b 2b", "what is broken anyway takes a slot too");
    assert_eq!(gone("0b 1b? 2b 3b", 0, 3), "3b 2b");
}

#[test]
fn a_number_of_units_counts_where_it_is_more_than_the_share() {
    let open = set("candidate", json!({}));
    let next = |pods: &str, count: u32, weight: u8| {
        let split = Split { units: Units { count, ..Units::default() }, ..share(weight) };
        uids(&shared::due(&open, &world(&open, pods), RoleName::Candidate, &split, 9))
    };
    assert_eq!(next("0a 1a 2a 3a", 1, 0), "0a");
    assert_eq!(next("0a 1a 2a 3a", 1, 50), "0a 1a");
    assert_eq!(next("0b 1a 2a 3a", 1, 24), "");
    assert_eq!(next("0a 1a 2a 3a", 9, 0), "0a 1a 2a 3a", "there are no more");
}

/// Requirement N-12: two of eight were let in, and four nodes have left.
#[test]
fn n_12_who_is_new_stays_when_others_leave_and_nobody_follows() {
    let (open, back) = (set("candidate", json!({})), set("stable", json!({})));
    let split = Split { units: Units { done: 2, ..Units::default() }, ..share(25) };
    let of = |set: &Object, pods: &str, toward| uids(&shared::due(set, &world(set, pods), toward, &split, 9));
    assert_eq!(of(&back, "0b 1b 2a 3a", RoleName::Stable), "");
    assert_eq!(of(&back, "0b 1b 2b 3a", RoleName::Stable), "2b", "that one was never let in");
    assert_eq!(of(&open, "0b 1b 2a 3a", RoleName::Candidate), "");
    assert_eq!(of(&open, "0b 1a 2a 3a", RoleName::Candidate), "", "it would be too large a share");
    let within = |pods: &str| shared::is_within(&back, &world(&back, pods), &split);
    assert!(within("0b 1b 2a 3a") && !within("0b 1b 2b 3a"));
    let eight = set("stable", json!({"desiredNumberScheduled": 8}));
    assert_eq!(shared::let_in(&eight, &share(25)), split);
    assert_eq!(shared::let_in(&back, &split), split, "it never goes down");
}

#[test]
fn the_template_is_the_candidates_only_while_pods_of_it_are_missing() {
    let (stable, new) = (set("stable", json!({})), set("candidate", json!({})));
    let role = |pods: &str, weight: u8| {
        let (made, role) = exposing(&stable, new.clone(), &world(&stable, pods), &share(weight));
        assert_eq!(made.text("/spec/updateStrategy/type"), Some("OnDelete"));
        assert_eq!(
            made.at("/spec/template"),
            if role == RoleName::Stable { &stable } else { &new }.at("/spec/template")
        );
        role
    };
    assert_eq!(role("0a 1a 2a 3a", 0), RoleName::Stable);
    assert_eq!(role("0a 1a 2a 3a", 24), RoleName::Stable);
    assert_eq!(role("0a 1a 2a 3a", 25), RoleName::Candidate);
    assert_eq!(role("0b! 1a 2a 3a", 25), RoleName::Stable, "who joins meanwhile is stable's");
    assert_eq!(role("0b? 1a 2a 3a", 25), RoleName::Candidate, "it shall come back as it was");
    assert_eq!(role("0b 1b 2a 3a", 25), RoleName::Stable, "one too many");
    assert_eq!(role("0b 1b 2b 3b", 100), RoleName::Candidate, "all of them, also those that come");
}

#[test]
fn what_is_too_much_goes_from_the_last_node_on_and_what_is_broken_at_once() {
    let back = set("stable", json!({}));
    let gone = |set: &Object, pods: &str, weight: u8| due(set, pods, RoleName::Stable, weight, 1);
    assert_eq!(gone(&back, "0b 1b 2a 3a", 0), "1b");
    assert_eq!(gone(&back, "0b 1a+ 2a 3a", 0), "0b");
    assert_eq!(gone(&back, "0b 1b 2b 3a", 50), "2b");
    assert_eq!(gone(&back, "0b 1b 2a 3a", 50), "");
    assert_eq!(gone(&back, "0b! 1b! 2b 3a", 0), "1b! 0b!", "what is broken anyway goes at once");
    assert_eq!(gone(&back, "0b 1b? 2a 3a", 0), "", "the one before is ending");
    assert_eq!(gone(&back, "0b 2a 3a", 0), "", "the one before is not there yet");
    assert_eq!(gone(&back, "0b 1a!+ 2a 3a", 0), "", "the one before is not ready yet");
    assert_eq!(gone(&back, "0b 1a! 2a 3a", 0), "0b", "that node was down before, and holds nobody up");
    assert_eq!(gone(&set("candidate", json!({})), "0b 1b 2a 3a", 0), "", "it would come back as it is");
    assert_eq!(gone(&set("stable", json!({"observedGeneration": 1})), "0b 1b 2a 3a", 0), "", "so it might");
}

#[test]
fn a_node_that_goes_down_on_the_way_back_holds_up_no_other() {
    let back = set("stable", json!({}));
    let gone = |pods: &[Object]| {
        let world = live(pods.iter().cloned().chain([back.clone()]));
        uids(&shared::due(&back, &world, RoleName::Stable, &Split::stable(), 1))
    };
    let of = |pods: &str| gone(&pods.split(' ').map(pod).collect::<Vec<_>>());
    assert_eq!(of("0b 1b% 2a 3a"), "1b%", "its pod goes at once");
    assert_eq!(of("0b 1b%? 2a 3a"), "0b", "and is not waited for");
    assert_eq!(of("0b%? 1b 2a 3a"), "1b");
    assert_eq!(of("0b 1b!? 2a 3a"), "0b", "nor is one that was not ready anyway");
    assert_eq!(of("0b 1a%+ 2a 3a"), "0b", "nor one that had come back");
    assert_eq!(of("0b%? 1b!? 2a 3a"), "", "nothing is left that would go");

    // Not ready because it ends, or by a gate of its own: that is no lost node.
    let with = |change: fn(&mut Value)| {
        let mut slow = pod("1b%?");
        change(&mut slow.value_mut()["status"]["conditions"]);
        gone(&[pod("0b"), slow, pod("2a"), pod("3a")])
    };
    assert_eq!(with(|all| all[0]["lastTransitionTime"] = "2026-03-01T14:00:00Z".into()), "0b");
    let ended = |all: &mut Value| {
        all[0]["lastTransitionTime"] = "2026-03-01T14:00:00Z".into();
        all[1]["status"] = "False".into();
    };
    assert_eq!(with(ended), "");
    let gate = |all: &mut Value| {
        all[0]["lastTransitionTime"] = "2026-03-01T14:00:00Z".into();
        all[0]["reason"] = "ReadinessGatesNotReady".into();
    };
    assert_eq!(with(gate), "");
}

fn judged(set: &Object, pods: &str) -> String {
    match readiness(set, &world(set, pods)) {
        Readiness::Ready => "ready".to_owned(),
        Readiness::NotReady { why, available } => match available {
            Available::NotSince(time) => format!("{why} since {}", time.format("%H")),
            Available::Perhaps(_) => why,
            Available::Unseen => format!("{why}, and no deadline"),
        },
    }
}

#[test]
fn during_a_run_it_is_ready_when_each_node_has_its_pod_and_the_new_ones_are() {
    let open = set("candidate", json!({}));
    assert_eq!(judged(&open, "0b 1a 2a 3a"), "ready");
    assert_eq!(judged(&open, "0b! 1a 2a 3a"), "0 of 1 new pods are ready since 12");
    assert_eq!(judged(&open, "0b 1a 2a"), "3 of 4 nodes have their pod");
    assert_eq!(judged(&open, "0b 1a? 2a 3a"), "the pod on node-1 is on its way out, and no deadline");
    assert_eq!(judged(&set("candidate", json!({"numberAvailable": 3})), "0b 1a 2a 3a"), "3 of 4 pods are ready");
    assert_eq!(judged(&set("candidate", json!({"numberAvailable": 3})), "0b 1a! 2a 3a"), "ready", "a node is down");
    assert_eq!(judged(&set("stable", json!({"numberAvailable": 3})), "0b 1a! 2a 3a"), "ready", "so it may be then too");
    let unseen = set("candidate", json!({"observedGeneration": 1}));
    assert_eq!(judged(&unseen, "0b 1a 2a 3a"), "its controller has not seen it yet, and no deadline");
}

#[test]
fn without_a_run_it_is_ready_when_all_pods_are_of_its_template_and_available() {
    assert_eq!(judged(&set("stable", json!({})), "0a 1a 2a 3a"), "ready");
    let old = set("stable", json!({"updatedNumberScheduled": 3}));
    let told = "3 of 4 pods are of its template; with OnDelete delete the others";
    assert_eq!(judged(&old, "0a 1a 2a 3a"), told);
    assert_eq!(judged(&set("stable", json!({"numberAvailable": 3})), "0a 1a! 2a 3a"), "3 of 4 pods are ready since 11");
}

#[test]
fn where_a_hand_lets_kubernetes_replace_pods_all_count_as_new() {
    let mut rolling = set("candidate", json!({}));
    assert_eq!(open(&rolling), 0);
    rolling.value_mut()["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    assert_eq!(open(&rolling), 4);
}

/// A DaemonSet in whose life everything comes in any order: its controller is late, pods take their time, nodes come and go.
struct Fleet {
    /// The pod of each node: whose version, how it is, and how old; none while there is no pod.
    nodes: Vec<Option<(RoleName, Pod, u32)>>,
    template: RoleName,
    /// Nodes whose pod was deleted by the rollout, and has not been ready since.
    away: std::collections::BTreeSet<usize>,
    age: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pod {
    Starts,
    Serves,
    Ends,
}

impl Fleet {
    fn objects(&self) -> (Object, LiveState) {
        let role = if self.template == RoleName::Candidate { "candidate" } else { "stable" };
        let set = set(role, json!({"desiredNumberScheduled": self.nodes.len()}));
        let pods = self.nodes.iter().enumerate().filter_map(|(node, pod)| {
            let (of, how, age) = (*pod)?;
            let time = format!("2026-03-01T10:{:02}:{:02}Z", age / 60, age % 60);
            let ready = if how == Pod::Starts { "False" } else { "True" };
            let mut value = json!({
                "metadata": {
                    "uid": format!("{node}"), "labels": {"app": "log"}, "creationTimestamp": time,
                    "ownerReferences": [{"uid": "u1", "controller": true}],
                },
                "spec": {"nodeName": format!("node-{node:02}")},
                "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": time}]},
            });
            if of == RoleName::Candidate {
                value["metadata"]["labels"][PODS] = NEW.into();
            }
            if how == Pod::Ends {
                value["metadata"]["deletionTimestamp"] = "2026-03-01T11:00:30Z".into();
                value["metadata"]["deletionGracePeriodSeconds"] = 30.into();
            }
            Some(object(Kind::Pod, &format!("log-{node:02}"), value))
        });
        let world = live(pods.chain([set.clone()]));
        (set, world)
    }

    /// What the rollout does in one tick: the template first, then those that are due.
    fn tick(&mut self, split: &Split, slots: u32) {
        let (set, world) = self.objects();
        let (stable, new) = (super::tests::set("stable", json!({})), super::tests::set("candidate", json!({})));
        let (_, template) = exposing(&stable, new, &world, split);
        if template != self.template {
            self.template = template;
            return;
        }
        for pod in shared::due(&set, &world, template, split, slots) {
            let node: usize = pod.uid().unwrap().parse().unwrap();
            let (of, how, age) = self.nodes[node].unwrap();
            assert!(how != Pod::Ends && of != template, "node {node}");
            self.nodes[node] = Some((of, Pod::Ends, age));
            self.away.insert(node);
        }
    }

    /// What else happens to a node: one step of its pod's life. A pod of a version that kills is never ready.
    fn step(&mut self, node: usize, kills: bool) {
        self.age += 1;
        let Some(place) = self.nodes.get_mut(node) else { return };
        *place = match *place {
            None => Some((self.template, Pod::Starts, self.age)),
            Some((of, Pod::Starts, age)) if !(kills && of == RoleName::Candidate) => {
                self.away.remove(&node);
                Some((of, Pod::Serves, age))
            }
            Some((_, Pod::Ends, _)) => None,
            same => same,
        };
    }

    fn count_new(&self) -> u32 {
        count(self.nodes.iter().flatten().filter(|(of, how, _)| *of == RoleName::Candidate && *how != Pod::Ends))
    }
}

proptest::proptest! {
    /// Requirement N-1: whatever comes when, no more pods are away than may be, none is new beyond the ceiling, and a version that kills
    /// reaches no more than may be away.
    #[test]
    fn n_1_whatever_comes_when_no_more_are_away_than_may_be(
        size in 1..12_usize, slots in 1..5_u32, weight in 0..=100_u8, number in 0..4_u32, kills: bool, back_at in 40..200_usize,
        steps in proptest::collection::vec((0..14_usize, 0..8_u8), 240),
    ) {
        let first = (RoleName::Stable, Pod::Serves, 0);
        let mut fleet =
            Fleet { nodes: vec![Some(first); size], template: RoleName::Stable, away: [].into(), age: 0 };
        let split = Split { units: Units { count: number, ..Units::default() }, ..share(weight) };
        let mut most = 0;
        for (at, (node, what)) in steps.into_iter().enumerate() {
            let split = if at < back_at { split.clone() } else { Split::stable() };
            most = most.max(shared::ceiling(u32::try_from(fleet.nodes.len()).unwrap(), &split));
            match what {
                0..3 => {
                    let before = fleet.away.len();
                    fleet.tick(&split, slots);
                    let most = usize::try_from(slots).unwrap().max(before);
                    proptest::prop_assert!(fleet.away.len() <= most, "{:?} are away", fleet.away);
                }
                _ => fleet.step(node, kills),
            }
            // Where the template is the candidate's, those that end come back new.
            proptest::prop_assert!(fleet.count_new() <= most, "{} are new, of {most}", fleet.count_new());
            proptest::prop_assert!(!kills || fleet.count_new() <= slots, "a version that kills has reached {}", fleet.count_new());
        }
        for _ in 0..size * 8 {
            fleet.tick(&Split::stable(), slots);
            (0..size).for_each(|node| fleet.step(node, kills));
        }
        proptest::prop_assert_eq!(fleet.count_new(), 0);
        proptest::prop_assert!(fleet.away.is_empty() && fleet.nodes.iter().all(|pod| matches!(pod, Some((_, Pod::Serves, _)))));
    }
}
