#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of a type with a lifetime is no function of all of them"
)]

use super::order::{CONTROL_PLANE, ZONE};
use super::*;
use crate::manifest::desired::{Router, TargetKind, UnitKind};
use crate::manifest::ids::Percent;
use crate::manifest::layer::{Layer, NodeSelector};
use crate::manifest::rolling::{Amount, RollingUpdate};
use crate::record::posture::Units;
use crate::workload::fixtures::{live, namespace, object, plan, set};
use proptest::prelude::*;
use std::sync::Arc;

/// Nodes with what they are told and say, between two versions.
struct Fleet {
    objects: BTreeMap<ObjectRef, Object>,
    stable: Set,
    candidate: Set,
    split: Split,
    rolling: RollingUpdate,
    told: usize,
    age: Span,
    proven: bool,
}

fn version(revision: char, layers: &[(&str, Option<&str>, &str)]) -> Set {
    let layer = |(name, role, text): &(&str, Option<&str>, &str)| Layer {
        name: name.parse().unwrap(),
        nodes: role.map_or_else(NodeSelector::default, |role| {
            serde_json::from_value(json!([{"in": ["role", [role]]}])).unwrap()
        }),
        files: [((*name).to_owned(), Arc::from(text.as_bytes()))].into(),
    };
    Set {
        layers: layers.iter().map(layer).collect(),
        revision: format!("v1:sha256:{}", revision.to_string().repeat(64)).parse().unwrap(),
        ..set([])
    }
}

fn everybody() -> Split {
    Split { weight: Percent::ALL, ..Split::stable() }
}

impl Fleet {
    /// All have the first version, and have said so.
    fn new(nodes: usize, slots: u32) -> Self {
        let (stable, candidate) = (version('a', &[("base", None, "1")]), version('b', &[("base", None, "2")]));
        let mut fleet = Self {
            objects: BTreeMap::new(),
            stable,
            candidate,
            split: Split::stable(),
            rolling: RollingUpdate { max_unavailable: Amount::Count(slots), ..RollingUpdate::default() },
            told: 0,
            age: Span::ZERO,
            proven: true,
        };
        (0..nodes).for_each(|number| fleet.join(&format!("node-{number}"), json!({})));
        while fleet.tell() > 0 {
            fleet.all_say("Applied");
        }
        fleet.told = 0;
        fleet
    }

    fn join(&mut self, name: &str, labels: Value) {
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let node = object(Kind::Node, name, json!({"metadata": {"labels": labels, "uid": name}, "status": status}));
        self.objects.insert(node.reference().clone(), node);
    }

    fn reference(kind: Kind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: namespace(), name: name.parse().unwrap() }
    }

    fn look<T>(&self, look: impl FnOnce(&Nodes<'_>) -> T) -> T {
        let mut plan = plan(Some(Router::Units(UnitKind::Node)));
        plan.target.kind = TargetKind::NodeConfig;
        plan.rolling_update = self.rolling.clone();
        plan.nodes = Some(NodeSelector::default());
        let live = live(self.objects.values().cloned());
        let versions =
            NodeVersions { stable: &self.stable, candidate: &self.candidate, attempt: 7, proven: self.proven };
        let namespace = namespace();
        let age = |_| self.age;
        look(&Nodes::read(&plan, Sight { live: &live, namespace: &namespace, manager: "us", age: &age }, versions))
    }

    /// Names the next ones.
    fn name_next(&mut self) {
        if let Some(batch) = self.look(|nodes| nodes.next_batch(&self.split)) {
            self.split.units.batch = batch;
        }
    }

    fn put(&mut self, all: Vec<Object>) -> usize {
        let many = all.len();
        for mut config in all {
            self.told += 1;
            let known = self.objects.get(config.reference());
            if let Some(status) = known.and_then(|known| known.at("/status")).cloned() {
                config.value_mut()["status"] = status;
            }
            config.value_mut()["metadata"]["generation"] = self.told.into();
            config.value_mut()["metadata"]["managedFields"] = json!([
                {"manager": "us", "time": "2026-03-02T10:00:00Z"},
                {"manager": "agent", "subresource": "status", "time": "2026-03-02T10:00:01Z"},
            ]);
            self.objects.insert(config.reference().clone(), config);
        }
        many
    }

    /// Tells those that are due; how many that are.
    fn tell(&mut self) -> usize {
        let due = self.look(|nodes| {
            let due = nodes.due(&self.split).into_iter();
            due.map(|(unit, role)| nodes.assigned(unit, role, ("a", self.candidate.revision.as_str()))).collect()
        });
        self.put(due)
    }

    fn go_back(&mut self) -> usize {
        let due = self.look(|nodes| {
            let due = nodes.due_back().into_iter();
            due.map(|(unit, role)| nodes.assigned(unit, role, ("a", "b"))).collect()
        });
        self.put(due)
    }

    fn say(&mut self, name: &str, state: &str) {
        let config = self.objects.get_mut(&Self::reference(Kind::NodeConfig, name)).unwrap();
        let status = json!({
            "state": state, "digest": config.at("/spec/digest"), "attempt": config.at("/spec/attempt"),
            "observedGeneration": config.generation(), "message": "no route\u{7}",
        });
        config.value_mut()["status"] = status;
    }

    fn names(&self, which: impl Fn(&Unit<'_>) -> bool) -> Vec<String> {
        self.look(|nodes| {
            let found = nodes.units().iter().filter(|unit| which(unit));
            found.map(|unit| unit.name().to_string()).collect()
        })
    }

    fn all_say(&mut self, state: &str) {
        self.names(|unit| unit.is_moving()).iter().for_each(|name| self.say(name, state));
    }

    fn ready(&mut self, name: &str, is_ready: bool) {
        let node = self.objects.get_mut(&Self::reference(Kind::Node, name)).unwrap();
        node.value_mut()["status"]["conditions"][0]["status"] = if is_ready { "True" } else { "Unknown" }.into();
    }

    fn has(&self, role: RoleName) -> usize {
        self.look(|nodes| nodes.units().iter().filter(|unit| unit.is_new() == (role == RoleName::Candidate)).count())
    }
}

proptest! {
    // Each plays a whole fleet.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Requirements N-1, N-25: no more are under way than the pace lets be, whatever comes when; and none is told that was not named.
    #[test]
    fn n_1_n_25_no_more_are_under_way_than_have_slots_and_all_are_named(
        nodes in 1..20_usize, slots in 1..5_u32, weight in 1..=100_u8, answers in prop::collection::vec(any::<bool>(), 200),
    ) {
        let mut fleet = Fleet::new(nodes, slots);
        fleet.split.weight = weight.try_into().unwrap();
        let most = usize::try_from(fleet.look(|nodes| nodes.most(&fleet.split))).unwrap();
        for answers_first in answers {
            prop_assert!(fleet.has(RoleName::Candidate) <= most);
            let before: BTreeSet<String> = fleet.names(|unit| unit.is_new()).into_iter().collect();
            fleet.name_next();
            let _ = fleet.tell();
            let told = fleet.names(|unit| unit.is_new() && !before.contains(unit.name().as_str()));
            prop_assert!(told.iter().all(|name| fleet.split.units.batch.contains(&name.parse().unwrap())));
            let moving = fleet.names(|unit| unit.is_moving());
            prop_assert!(moving.len() <= usize::try_from(slots).unwrap());
            let says = if answers_first { moving.first() } else { moving.last() };
            says.into_iter().for_each(|name| fleet.say(name, "Applied"));
        }
        prop_assert_eq!(fleet.has(RoleName::Candidate), most);
        // A share of less than one node shows nothing.
        prop_assert_eq!(fleet.look(|nodes| nodes.is_settled(&fleet.split)), most > 0);
    }

    /// Requirements N-10, N-13: a version that kills nodes silently reaches as many as may be away, and as many as may be silent beside.
    #[test]
    fn n_10_n_13_a_silent_killer_is_held(nodes in 1..30_usize, slots in 1..5_u32, stalled in prop::option::of(1..5_u32)) {
        let mut fleet = Fleet::new(nodes, slots);
        fleet.rolling.max_stalled = stalled.map(Amount::Count);
        fleet.split = everybody();
        for _ in 0..60 {
            fleet.name_next();
            let _ = fleet.tell();
            fleet.names(|unit| unit.is_moving()).iter().for_each(|name| fleet.ready(name, false));
        }
        let stalled = stalled.unwrap_or(slots);
        // Rounds of so many until more are silent than may.
        let most = usize::try_from(slots * (stalled / slots + 1)).unwrap();
        prop_assert!(most <= usize::try_from(slots + stalled).unwrap());
        prop_assert_eq!(fleet.has(RoleName::Candidate), nodes.min(most));
        prop_assert_eq!(fleet.look(|nodes| nodes.is_held()), nodes.min(most) > usize::try_from(stalled).unwrap());
    }
}

#[test]
fn n_2_only_what_is_said_of_exactly_this_counts() {
    let mut fleet = Fleet::new(1, 1);
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
    let reference = Fleet::reference(Kind::NodeConfig, "node-0");
    let right = json!({
        "state": "Applied", "digest": fleet.objects[&reference].at("/spec/digest"), "attempt": 7,
        "observedGeneration": fleet.objects[&reference].at("/metadata/generation"),
    });
    for (field, value, confirmed) in [
        ("state", json!("Applied"), true),
        ("state", json!("Done"), false),
        ("state", json!("Started"), false),
        ("digest", json!("0".repeat(64)), false),
        ("attempt", json!(6), false),
        ("attempt", json!("7"), false),
        ("observedGeneration", json!(99), false),
        ("observedGeneration", Value::Null, false),
    ] {
        let mut status = right.clone();
        status[field] = value.clone();
        // What is said of something else is as good as nothing, also where it is bad.
        for (state, answered) in [("Applied", confirmed), ("Failed", confirmed && field != "state")] {
            if field != "state" {
                status["state"] = state.into();
            }
            fleet.objects.get_mut(&reference).unwrap().value_mut()["status"] = status.clone();
            let told = fleet.look(|nodes| (nodes.proven() == 1, nodes.failed().is_some()));
            let expected = if state == "Failed" && field != "state" { (false, answered) } else { (confirmed, false) };
            assert_eq!(told, expected, "{field} {value} {state}");
        }
    }
}

#[test]
fn n_3_a_failure_is_told_and_those_that_have_it_go_back_with_the_failed_one_first() {
    let mut fleet = Fleet::new(6, 2);
    fleet.split = everybody();
    for _ in 0..2 {
        fleet.name_next();
        assert_eq!(fleet.tell(), 2);
        fleet.all_say("Applied");
    }
    fleet.name_next();
    assert_eq!(fleet.tell(), 2);
    fleet.say("node-4", "Failed");
    fleet.say("node-5", "Applied");
    assert_eq!(fleet.look(|nodes| nodes.failed()).unwrap(), "node node-4: Failed: no route ");
    // The failed one takes a slot until it says that it is back.
    assert_eq!(
        (fleet.go_back(), fleet.names(|unit| unit.is_moving())),
        (2, vec!["node-4".to_owned(), "node-5".to_owned()])
    );
    assert_eq!(fleet.go_back(), 0);
    while fleet.has(RoleName::Candidate) > 0 || !fleet.names(|unit| unit.is_moving()).is_empty() {
        fleet.all_say("Applied");
        assert!(fleet.go_back() <= 2);
    }
    let digests: BTreeSet<&str> = fleet.objects.values().filter_map(|object| object.text("/spec/digest")).collect();
    assert_eq!(digests.len(), 1);
    // Who was told nothing of the new version was not touched on the way back either.
    let told = |name: &str| fleet.objects[&Fleet::reference(Kind::NodeConfig, name)].generation().unwrap();
    assert_eq!((0..6).filter(|number| told(&format!("node-{number}")) > 0).count(), 6);
}

#[test]
fn n_12_n_14_n_16_who_joins_has_the_promoted_files_and_who_is_relabelled_others() {
    let mut fleet = Fleet::new(3, 2);
    let layers = [("base", None, "1"), ("edge", Some("edge"), "e")];
    fleet.stable = version('a', &layers);
    fleet.candidate = version('b', &[("base", None, "2"), layers[1]]);
    fleet.join("late", json!({}));
    fleet.join("node-1", json!({"role": "edge"}));
    fleet.split.weight = 50.try_into().unwrap();
    fleet.name_next();
    let due = fleet.look(|nodes| {
        let due = nodes.due(&fleet.split).into_iter();
        due.map(|(unit, role)| (unit.name().to_string(), role)).collect::<Vec<_>>()
    });
    assert_eq!(due, [("late".to_owned(), RoleName::Stable), ("node-1".to_owned(), RoleName::Stable)]);
    assert_eq!(fleet.tell(), 2);
    fleet.all_say("Applied");
    fleet.name_next();
    assert_eq!(fleet.tell(), 2);
    fleet.all_say("Applied");
    assert_eq!(fleet.has(RoleName::Candidate), 2);
    // One that leaves is in no count, and nobody goes back although the others are a larger share.
    fleet.split.units.done = 2;
    fleet.objects.retain(|reference, _| reference.name.as_str() != "late" && reference.name.as_str() != "node-2");
    let (new, most) = fleet.look(|nodes| (nodes.carriers().count(), nodes.most(&fleet.split)));
    assert!(new <= usize::try_from(most).unwrap());
}

#[test]
fn n_28_n_29_zones_take_turns_and_the_control_plane_is_last() {
    let mut fleet = Fleet::new(0, 1);
    for (name, zone, control) in
        [("a", "1", true), ("b", "1", false), ("c", "1", false), ("d", "2", false), ("e", "2", false), ("f", "2", true)]
    {
        let mut labels = json!({ZONE: zone});
        if control {
            labels[CONTROL_PLANE] = "".into();
        }
        fleet.join(name, labels);
    }
    assert_eq!(fleet.names(|_| true), ["b", "d", "c", "e", "a", "f"]);
}

#[test]
fn n_28_those_that_are_named_first_go_first_be_it_the_control_plane() {
    let mut fleet = Fleet::new(0, 1);
    fleet.rolling.order = ["canary", "control"]
        .iter()
        .map(|role| serde_json::from_value(json!({"matchLabels": {"role": role}})).unwrap())
        .collect();
    for (name, role, control) in
        [("a", "", false), ("b", "control", true), ("c", "", true), ("d", "canary", false), ("e", "control", false)]
    {
        let mut labels = json!({"role": role});
        if control {
            labels[CONTROL_PLANE] = "".into();
        }
        fleet.join(name, labels);
    }
    assert_eq!(fleet.names(|_| true), ["d", "b", "e", "a", "c"]);
}

/// Requirement N-1: in each zone no more than its own limit, and a zone that takes its time holds up no other.
#[test]
fn n_1_zones_have_limits_of_their_own() {
    let mut fleet = Fleet::new(0, 4);
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b"), ("b3", "b"), ("c1", "c")] {
        fleet.join(name, json!({"rack": zone}));
    }
    let topology = json!({"key": "rack", "maxUnavailable": "34%"});
    fleet.rolling.topology = Some(serde_json::from_value(topology).unwrap());
    while fleet.tell() > 0 {
        assert!(fleet.names(|unit| unit.is_moving()).len() <= 3);
        fleet.all_say("Applied");
    }
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(
        (fleet.tell(), fleet.names(|unit| unit.is_moving())),
        (3, vec!["a1".to_owned(), "b1".to_owned(), "c1".to_owned()])
    );
    for (said, next) in [("b1", "b2"), ("b2", "b3")] {
        fleet.say(said, "Applied");
        fleet.name_next();
        assert_eq!(
            (fleet.tell(), fleet.names(|unit| unit.is_moving() && unit.name().as_str() == next)),
            (1, vec![next.to_owned()])
        );
    }
    // a1 takes its time: nobody else of its zone was told.
    assert_eq!(fleet.names(|unit| !unit.is_new()), ["a2", "a3"]);
    fleet.all_say("Applied");
    for _ in 0..2 {
        fleet.name_next();
        assert_eq!(fleet.tell(), 1);
        fleet.all_say("Applied");
    }
    assert!(fleet.look(|nodes| nodes.is_settled(&fleet.split)));
}

/// Requirements N-1, N-10: who falls silent frees its slot, and stays away in its zone; and who waits for its zone keeps no other from its turn.
#[test]
fn n_1_n_10_a_zone_does_not_lose_more_than_its_limit() {
    let mut fleet = Fleet::new(0, 3);
    for (name, zone) in [("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")] {
        fleet.join(name, json!({"rack": zone}));
    }
    fleet.rolling.topology = Some(serde_json::from_value(json!({"key": "rack", "maxUnavailable": 1})).unwrap());
    while fleet.tell() > 0 {
        fleet.all_say("Applied");
    }
    fleet.split = Split { units: Units { count: 3, ..Units::default() }, ..Split::stable() };
    fleet.name_next();
    assert_eq!((fleet.tell(), fleet.names(|unit| unit.is_moving())), (2, vec!["a1".to_owned(), "b1".to_owned()]));
    fleet.say("b1", "Applied");
    fleet.ready("a1", false);
    // Of the rack of a1 nobody else goes, whatever slots there are; b2 does not wait for it.
    for _ in 0..3 {
        fleet.name_next();
        let _ = fleet.tell();
        fleet.all_say("Applied");
    }
    assert_eq!(fleet.names(|unit| !unit.is_new()), ["a2"]);
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(
        (fleet.tell(), fleet.look(|nodes| nodes.silent_zone().map(ToString::to_string))),
        (0, Some("a1".to_owned()))
    );
    assert!(fleet.look(|nodes| nodes.waits(&fleet.split)).contains("node a1 fell silent"));
    fleet.ready("a1", true);
    fleet.say("a1", "Applied");
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
}

/// Who has not begun what it was told first is told what comes next, whatever its zone has away.
#[test]
fn n_10_n_14_who_is_silent_is_told_the_next_version_all_the_same() {
    let mut fleet = Fleet::new(0, 1);
    fleet.join("a1", json!({"rack": "a"}));
    fleet.rolling.topology = Some(serde_json::from_value(json!({"key": "rack", "maxUnavailable": 1})).unwrap());
    fleet.proven = false;
    assert_eq!(fleet.tell(), 1);
    fleet.age = Span::from_secs(600);
    assert_eq!((fleet.tell(), fleet.look(|nodes| nodes.lost())), (0, 1));
    (fleet.stable, fleet.candidate) = (version('c', &[("base", None, "3")]), version('c', &[("base", None, "3")]));
    assert_eq!(fleet.tell(), 1);
}

#[test]
fn n_31_one_that_cannot_go_back_holds_up_nobody() {
    let mut fleet = Fleet::new(3, 1);
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
    fleet.say("node-0", "RestoreFailed");
    assert!(fleet.look(|nodes| nodes.failed()).unwrap().contains("RestoreFailed"));
    assert_eq!(fleet.go_back(), 1);
    fleet.say("node-0", "RestoreFailed");
    assert_eq!(fleet.names(|unit| unit.is_quarantined()), ["node-0"]);
    assert_eq!(
        (fleet.go_back(), fleet.names(|unit| unit.is_moving()).len(), fleet.has(RoleName::Candidate)),
        (0, 0, 0)
    );
}

#[test]
fn layers_that_contradict_each_other_leave_their_nodes_alone() {
    let mut fleet = Fleet::new(2, 2);
    fleet.join("node-1", json!({"role": "edge"}));
    let mut other = version('b', &[("base", None, "2"), ("edge", Some("edge"), "e")]);
    other.layers[1].files = [("base".to_owned(), Arc::from(&b"3"[..]))].into();
    fleet.candidate = other;
    let (units, conflicts) = fleet.look(|nodes| (nodes.units().len(), nodes.conflicts.clone()));
    assert_eq!(units, 1);
    assert_eq!(conflicts, ["node-1: the layers base and edge both have the file base, with other content"]);
}

#[test]
fn n_15_n_17_nodes_with_the_same_files_share_one_content() {
    let fleet = Fleet::new(4, 1);
    let contents = fleet.look(|nodes| nodes.contents(&namespace()));
    let told: Vec<String> = contents
        .values()
        .map(|(object, role)| {
            format!("{role:?} {} {}", object.at("/immutable").unwrap(), object.at("/binaryData").unwrap())
        })
        .collect();
    assert_eq!(told.len(), 2);
    assert!(told.contains(&r#"Stable true {"base":"MQ=="}"#.to_owned()), "{told:?}");
    assert!(contents.keys().all(|reference| may_be_content(&fleet.stable, reference)));
    let config = &fleet.objects[&Fleet::reference(Kind::NodeConfig, "node-0")];
    assert_eq!(config.at("/metadata/ownerReferences/0/uid"), Some(&json!("node-0")));
    assert!(config.at("/spec").unwrap().to_string().len() < 1_024);
    let units = Units { count: 1, ..Units::default() };
    assert_eq!(fleet.look(|nodes| nodes.most(&Split { units, ..Split::stable() })), 1);
}

#[test]
fn n_9_n_10_who_does_not_begin_is_stalled_and_who_comes_to_no_end_has_failed() {
    let mut fleet = Fleet::new(3, 1);
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
    fleet.age = Span::from_secs(599);
    assert_eq!((fleet.tell(), fleet.look(|nodes| nodes.lost())), (0, 0));
    // Its slot is free, and it is one of those that may be silent.
    fleet.age = Span::from_secs(600);
    fleet.name_next();
    assert_eq!((fleet.tell(), fleet.look(|nodes| nodes.lost()), fleet.look(|nodes| nodes.failed())), (1, 2, None));
    assert!(fleet.look(|nodes| nodes.is_held()));
    fleet.age = Span::ZERO;
    fleet.say("node-0", "Started");
    assert_eq!(fleet.look(|nodes| nodes.failed()), None);
    fleet.age = Span::from_secs(1);
    let told = "node node-0: it has begun, and has come to no end in time";
    assert_eq!(fleet.look(|nodes| nodes.failed()).as_deref(), Some(told));
    fleet.say("node-0", "Applied");
    assert_eq!(fleet.look(|nodes| nodes.failed()), None);
}

#[test]
fn n_13_where_nobody_is_ready_nothing_is_shown_and_nobody_is_waited_for_that_is_not() {
    let mut fleet = Fleet::new(3, 3);
    fleet.split = everybody();
    ["node-0", "node-1", "node-2"].iter().for_each(|name| fleet.ready(name, false));
    fleet.name_next();
    assert_eq!((fleet.tell(), fleet.look(|nodes| nodes.is_settled(&fleet.split))), (0, false));
    fleet.ready("node-1", true);
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
    fleet.all_say("Applied");
    assert!(fleet.look(|nodes| nodes.is_settled(&fleet.split)));
    // It comes when it is ready.
    fleet.ready("node-0", true);
    assert!(!fleet.look(|nodes| nodes.is_settled(&fleet.split)));
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
}

#[test]
fn n_26_no_content_goes_before_all_have_said_what_they_have() {
    let mut fleet = Fleet::new(2, 1);
    assert!(fleet.look(|nodes| nodes.are_all_confirmed()));
    fleet.split = everybody();
    fleet.name_next();
    assert_eq!(fleet.tell(), 1);
    assert!(!fleet.look(|nodes| nodes.are_all_confirmed()));
    fleet.all_say("Applied");
    let live = live(fleet.objects.values().cloned());
    let namespace = namespace();
    // The new one, and the one to go back to.
    assert_eq!(in_use(&live, &namespace).len(), 2);
}
