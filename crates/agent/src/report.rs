//! What the controller asks of this node, and what the agent answers: the NodeConfig, as values. Pure.

use crate::content::ContentDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_controller::manifest::time::Time;
use tidegate_controller::record::text::plain;

/// What is asked: a content, and for which time. `retry` counts the attempt up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeAsk {
    /// The content.
    pub digest: ContentDigest,
    /// Which attempt with it.
    pub attempt: u64,
}

/// The NodeConfig of this node, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// What is asked.
    pub ask: NodeAsk,
    /// The ConfigMap that has the content.
    pub content: String,
    /// The generation of the spec: what is answered counts for it alone (N-2).
    pub generation: i64,
    /// The resourceVersion: a write that expects it is refused once somebody else has written.
    pub version: String,
    /// What was answered last; none if there is no answer, or none that an agent has written.
    pub said: Option<NodeReport>,
}

/// How far it is. Every other text counts as "not yet" for the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// Stamped: the node's clock runs from here on, and nothing was touched before.
    Started,
    /// In force, proven, and kept as last-good.
    Applied,
    /// It did not do; what was there before is in force again.
    Failed,
    /// It did not do, and what was there before could not be brought back.
    RestoreFailed,
    /// Nothing was begun, and it is tried again: the content is missing or another, or the node cannot keep it.
    Refused,
}

/// The status of a NodeConfig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// How far it is.
    pub state: Progress,
    /// What it is about.
    #[serde(flatten)]
    pub ask: NodeAsk,
    /// The generation that it is about.
    pub observed_generation: i64,
    /// When it was stamped, by this node's clock. None if it never came so far.
    pub started: Option<Time>,
    /// Why, for people; at most 1 KiB.
    pub message: String,
}

impl NodeReport {
    /// Whether it is about what is asked now.
    #[must_use]
    pub fn is_of(&self, node: &NodeSeen) -> bool {
        self.ask == node.ask && self.observed_generation == node.generation
    }

    /// Whether it says nothing else. The stamp stays that of the start.
    #[must_use]
    pub fn says_as(&self, other: &Self) -> bool {
        let Self { state, ask, observed_generation, started: _, message } = self;
        (*state, ask, *observed_generation, message)
            == (other.state, &other.ask, other.observed_generation, &other.message)
    }
}

impl NodeSeen {
    /// An answer to what is asked. Of one ask there is one stamp: whoever is started again does not get more time.
    #[must_use]
    pub fn report(&self, state: Progress, message: &str, now: Time) -> NodeReport {
        let before = self.said.as_ref().filter(|said| said.is_of(self)).and_then(|said| said.started);
        let started = before.or((state == Progress::Started).then_some(now.trunc_subsecs(0)));
        let (ask, message) = (self.ask.clone(), plain(message));
        NodeReport { state, ask, observed_generation: self.generation, started, message }
    }

    /// Reads a NodeConfig.
    ///
    /// # Errors
    /// When it is none: which field, and what was expected.
    pub fn read(object: &Value) -> Result<Self, String> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        let needed = |path: &str| text(path).ok_or_else(|| format!("{path} is no text"));
        let attempt = object.pointer("/spec/attempt").map_or(Some(0), Value::as_u64);
        let ask = NodeAsk {
            digest: needed("/spec/digest")?.parse()?,
            attempt: attempt.ok_or("/spec/attempt is no number from 0 up")?,
        };
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        Ok(Self {
            ask,
            content: needed("/spec/content")?.to_owned(),
            generation: generation.ok_or("/metadata/generation is no number")?,
            version: needed("/metadata/resourceVersion")?.to_owned(),
            // What a foreign hand has written is written over.
            said: object.get("status").and_then(|status| serde_json::from_value(status.clone()).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(digest: &str, status: Value) -> Value {
        json!({
            "metadata": {"generation": 3, "resourceVersion": "17"},
            "spec": {"content": "fabric-0", "digest": digest, "attempt": 1, "revision": "r"}, "status": status,
        })
    }

    #[test]
    fn what_a_foreign_hand_has_said_counts_for_nothing() {
        let digest = "ab".repeat(32);
        let said = |status: Value| NodeSeen::read(&object(&digest, status)).unwrap().said;
        let own = json!({
            "state": "Applied", "digest": digest, "attempt": 1, "observedGeneration": 3, "message": "",
            "started": "2026-01-01T00:00:00Z",
        });
        assert!(said(own.clone()).is_some());
        assert_eq!(serde_json::to_value(said(own.clone())).unwrap(), own);
        for (field, value) in
            [("state", json!("Fine")), ("digest", json!("x")), ("started", json!("2999-01-01T00:00:00Z"))]
        {
            let mut other = own.clone();
            other[field] = value;
            assert_eq!(said(other), None, "{field}");
        }
        assert_eq!(said(json!({})), None);
    }

    #[test]
    fn a_node_config_that_is_none_says_what_is_missing() {
        let read = |object: Value| NodeSeen::read(&object).unwrap_err();
        assert_eq!(read(json!({})), "/spec/digest is no text");
        assert_eq!(read(object("zz", json!({}))), "\"zz\" is no digest: expected 64 of 0-9 and a-f");
        let mut odd = object(&"ab".repeat(32), json!({}));
        odd["spec"]["attempt"] = json!(-1);
        assert_eq!(read(odd), "/spec/attempt is no number from 0 up");
    }

    #[test]
    fn n_9_of_one_ask_there_is_one_stamp() {
        let mut node = NodeSeen::read(&object(&"ab".repeat(32), json!({}))).unwrap();
        let at = |text: &str| -> Time { text.parse().unwrap() };
        let first = node.report(Progress::Started, "", at("2026-01-01T00:00:00.5Z"));
        assert_eq!(first.started, Some(at("2026-01-01T00:00:00Z")));
        node.said = Some(first.clone());
        assert_eq!(node.report(Progress::Started, "", at("2026-01-01T09:00:00Z")), first);
        assert_eq!(node.report(Progress::Failed, "x", at("2026-01-01T09:00:00Z")).started, first.started);
        node.generation += 1;
        let next = node.report(Progress::Started, "", at("2026-01-01T09:00:00Z"));
        assert_eq!(next.started, Some(at("2026-01-01T09:00:00Z")));
        assert_eq!(node.report(Progress::Refused, "", at("2026-01-01T09:00:00Z")).started, None);
    }
}
