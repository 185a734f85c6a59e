//! `tidegate status ROLLOUT --units`: each node of a rollout that configures nodes, as the cluster has it.

use super::failure::Failure;
use super::live;
use super::repository::Repository;
use super::status::short;
use super::ui::{self, Ink, Paint, Table};
use crate::manifest::ids::Namespace;
use crate::manifest::object::{Kind, Object};
use crate::record::state::Time;
use crate::record::text::plain;
use crate::workload::kinds::nodes::{ZONE, answered, is_ready, last_written};
use crate::workload::live::LiveState;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All nodes of a namespace's rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct UnitsView {
    /// By name.
    pub units: Vec<UnitView>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct UnitView {
    /// Its name.
    pub node: String,
    /// Its zone, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// The revision that it is told; none if it was told nothing yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wants: Option<String>,
    /// `Waiting` while its agent has said nothing of exactly that; else what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What its agent says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Looks at the nodes of a namespace.
pub(super) async fn look(
    repository: &Repository,
    namespace: &Namespace,
    kubeconfig: &Path,
) -> Result<UnitsView, Failure> {
    let kinds: BTreeSet<Kind> = [Kind::Node, Kind::NodeConfig].into();
    let sight = live::look(kubeconfig, &repository.instance, BTreeMap::from([(namespace.clone(), kinds)])).await?;
    let Some(live) = sight.spaces.get(namespace) else { return Ok(UnitsView { units: Vec::new() }) };
    if live.missing.contains(&Kind::NodeConfig) {
        return Err(Failure::failed(LiveState::unserved(Kind::NodeConfig)));
    }
    Ok(units(live, namespace))
}

/// Each node that was told something, and each that was not.
#[must_use]
pub(super) fn units(live: &LiveState, namespace: &Namespace) -> UnitsView {
    let nodes = live.of_kind(Kind::Node).filter(|node| node.reference().namespace == *namespace);
    let unit = |node: &Object| {
        let config = live.find(Kind::NodeConfig, namespace, &node.reference().name);
        let said = config.map(|config| answered(config).unwrap_or("Waiting").to_owned());
        let is_answer = config.is_some_and(|config| answered(config).is_some());
        let message = config.filter(|_| is_answer).and_then(|config| config.text("/status/message"));
        UnitView {
            node: node.reference().name.to_string(),
            zone: node.label(ZONE).map(plain),
            ready: is_ready(node),
            wants: config.and_then(|config| config.text("/spec/revision")).map(plain),
            state: said.map(|said| plain(&said)),
            since: config.and_then(|config| last_written(config, is_answer)),
            message: message.map(plain).filter(|message| !message.is_empty()),
        }
    };
    UnitsView { units: nodes.map(unit).collect() }
}

/// The table for people.
#[must_use]
pub(super) fn table(view: &UnitsView, now: Time, ink: Ink) -> String {
    if view.units.is_empty() {
        return "There are no nodes.\n".to_owned();
    }
    let mut table = Table::new(&["NODE", "ZONE", "READY", "WANTS", "STATE", "SINCE", "MESSAGE"]);
    for unit in &view.units {
        table.row(row(unit, now));
    }
    let told = view.units.iter().filter(|unit| unit.wants.is_some());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    told.filter_map(|unit| unit.state.as_deref()).for_each(|state| *counts.entry(state).or_default() += 1);
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    format!("{}\n{}\n", table.print(ink), ink.dim(&format!("{} nodes: {}", view.units.len(), counts.join(", "))))
}

fn row(unit: &UnitView, now: Time) -> Vec<(String, Option<Paint>)> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let paint: Paint = match unit.state.as_deref() {
        Some("Applied") => Ink::good,
        Some("Failed" | "RestoreFailed" | "Refused") => Ink::bad,
        Some(_) => Ink::busy,
        None => Ink::dim,
    };
    let (ready, ready_paint): (&str, Paint) = if unit.ready { ("yes", Ink::dim) } else { ("no", Ink::warn) };
    vec![
        (unit.node.clone(), None),
        (or_dash(unit.zone.clone()), Some(Ink::dim)),
        (ready.to_owned(), Some(ready_paint)),
        (or_dash(unit.wants.as_deref().map(short)), Some(Ink::dim)),
        (or_dash(unit.state.clone()), Some(paint)),
        (or_dash(unit.since.map(|since| ui::span((now - since).num_seconds()))), None),
        (or_dash(unit.message.clone()), Some(Ink::dim)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::now;
    use super::*;
    use crate::manifest::object::ObjectRef;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn object(kind: Kind, name: &str, value: Value) -> Object {
        let namespace: Namespace = "network".parse().unwrap();
        Object::new(ObjectRef { kind, namespace, name: name.parse().unwrap() }, value)
    }

    fn node(name: &str, zone: &str, ready: &str) -> Object {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        object(Kind::Node, name, json!({"metadata": {"labels": {ZONE: zone}}, "status": {"conditions": conditions}}))
    }

    fn told(name: &str, revision: char, state: Option<(&str, u64)>) -> Object {
        let revision = format!("v1:sha256:{}", revision.to_string().repeat(64));
        let mut config = json!({
            "metadata": {"generation": 2, "managedFields": [
                {"manager": "tidegate-prod", "time": "2026-03-02T10:00:00Z"},
                {"manager": "agent", "subresource": "status", "time": "2026-03-02T10:04:00Z"},
            ]},
            "spec": {"digest": "d", "attempt": 1, "revision": revision},
        });
        if let Some((state, generation)) = state {
            let message = "the uplink\u{7} is gone";
            config["status"] = json!({"state": state, "digest": "d", "attempt": 1, "observedGeneration": generation, "message": message});
        }
        object(Kind::NodeConfig, name, config)
    }

    /// Requirement N-25: who has what, what each says of it, and what was said of something else counts for nothing.
    #[test]
    fn n_25_each_node_is_shown_with_what_it_says_of_exactly_that() {
        let objects = [
            node("a", "one", "True"),
            node("b", "one", "True"),
            node("c", "two", "Unknown"),
            node("d", "two", "True"),
            told("a", '6', Some(("Applied", 2))),
            told("b", '7', Some(("Failed", 2))),
            told("c", '7', Some(("Applied", 1))),
        ];
        let objects = objects.map(|object| (object.reference().clone(), Arc::new(object))).into_iter().collect();
        let live = LiveState { objects, ..LiveState::default() };
        let view = units(&live, &"network".parse().unwrap());
        insta::assert_snapshot!(table(&view, now(), Ink::Plain));
        assert_eq!(serde_json::to_value(&view).unwrap()["units"][2]["state"], "Waiting");
        assert_eq!(table(&UnitsView { units: Vec::new() }, now(), Ink::Plain), "There are no nodes.\n");
    }
}
