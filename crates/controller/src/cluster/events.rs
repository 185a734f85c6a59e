//! Kubernetes Events on the objects that a rollout is about, for `kubectl describe`. They can never change a plan:
//! what goes wrong is logged at debug and forgotten.

use super::client::Cluster;
use super::failure::foreign;
use super::request;
use crate::manifest::object::ObjectRef;
use crate::record::state::Time;
use chrono::SecondsFormat;
use serde_json::{Value, json};

const API: &str = "events.k8s.io/v1";

/// Whether people should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLevel {
    /// It goes as planned.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something that happened, to be shown on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeEvent<'a> {
    /// The object.
    pub about: &'a ObjectRef,
    /// Its uid: without it `kubectl describe` does not find the event.
    pub uid: Option<&'a str>,
    /// Whether people should look.
    pub level: EventLevel,
    /// One word of the documented list.
    pub reason: &'a str,
    /// What happened, in a sentence. Foreign text in it is escaped, and it is cut at 1 KiB.
    pub message: &'a str,
}

impl Cluster {
    /// Posts an event.
    pub async fn announce(&self, event: &KubeEvent<'_>, wall: Time) {
        let body = self.event(event, wall);
        let request = request::post(&request::under(API, &event.about.namespace, "events"), &[], &body);
        if let Err(failure) = self.call(request).await {
            tracing::debug!(about = %event.about, reason = event.reason, %failure, "event not posted");
        }
    }

    fn event(&self, event: &KubeEvent<'_>, wall: Time) -> Value {
        let KubeEvent { about, uid, level, reason, message } = event;
        let mut regarding = json!({
            "apiVersion": about.kind.api_version(), "kind": about.kind.as_str(),
            "namespace": about.namespace.as_str(), "name": about.name.as_str(),
        });
        if let Some(uid) = uid {
            regarding["uid"] = (*uid).into();
        }
        json!({
            "apiVersion": API,
            "kind": "Event",
            "metadata": {"generateName": "tidegate-", "namespace": about.namespace.as_str()},
            "eventTime": wall.to_rfc3339_opts(SecondsFormat::Micros, true),
            "reportingController": format!("tidegate.io/{}", self.instance()),
            "reportingInstance": self.manager(),
            "action": reason,
            "reason": reason,
            "regarding": regarding,
            "note": foreign(message),
            "type": match level { EventLevel::Normal => "Normal", EventLevel::Warning => "Warning" },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fake, object};
    use super::*;
    use crate::manifest::object::Kind;

    #[tokio::test]
    async fn an_event_names_its_object_and_its_text_is_bounded() {
        let fake = Fake::answering([(403, json!({"kind": "Status", "code": 403, "reason": "Forbidden"}))]);
        let cluster = fake.cluster().await;
        let about = object(Kind::Deployment, json!({})).reference().clone();
        let message = format!("said \u{1b}[31m{}", "x".repeat(5_000));
        let event = KubeEvent {
            about: &about,
            uid: Some("u"),
            level: EventLevel::Warning,
            reason: "Failed",
            message: &message,
        };
        cluster.announce(&event, "2026-03-01T12:00:00Z".parse().unwrap()).await;
        let asked = fake.asked();
        assert_eq!(asked[0].line, "POST /apis/events.k8s.io/v1/namespaces/shop/events");
        let body = &asked[0].body;
        let regarding =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "podinfo", "uid": "u"});
        assert_eq!(body["regarding"], regarding);
        assert_eq!(body["eventTime"], "2026-03-01T12:00:00.000000Z");
        let note = body["note"].as_str().unwrap();
        assert!(note.starts_with("said \\u{1b}[31mxxx") && note.len() <= 1_024, "{note}");
    }
}
