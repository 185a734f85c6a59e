//! What the cluster calls the kinds that are known by their names alone: asked once, as no CRD can change it while it is there.

use super::client::Cluster;
use super::failure::{Failure, missing};
use super::request;
use crate::manifest::ids::Namespace;
use crate::manifest::object::{Kind, ObjectRef, items};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The resources that were found, by version and kind.
pub(super) type Found = Mutex<BTreeMap<(&'static str, &'static str), Arc<str>>>;

impl Cluster {
    /// The path of all objects of a kind in a namespace.
    pub(super) async fn collection(&self, kind: Kind, namespace: &Namespace) -> Result<String, Failure> {
        let plural = self.resource(kind).await?;
        if kind == Kind::Node {
            return Ok(format!("{}/{plural}", request::version(kind.api_version())));
        }
        Ok(request::under(kind.api_version(), namespace, &plural))
    }

    /// The path of one object.
    pub(super) async fn item(&self, object: &ObjectRef) -> Result<String, Failure> {
        Ok(format!("{}/{}", self.collection(object.kind, &object.namespace).await?, object.name))
    }

    /// The resource of a kind, in paths.
    pub(super) async fn resource(&self, kind: Kind) -> Result<Arc<str>, Failure> {
        let Kind::Other(other) = kind else { return Ok(kind.plural().into()) };
        let key = (other.api_version(), other.kind());
        let known = || self.found().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key).cloned() {
            return Ok(found);
        }
        let served = self.call(request::get(&request::version(other.api_version()), &[])).await;
        let served = served.map_err(|failure| if failure.code() == Some(404) { missing() } else { failure })?;
        let is =
            |one: &&Value| one["kind"] == other.kind() && !one["name"].as_str().is_none_or(|name| name.contains('/'));
        let one = items(&served, "resources").find(is).ok_or_else(missing)?;
        if one["namespaced"] != Value::Bool(true) {
            return Err(Failure::Silent(
                "its objects belong to the whole cluster, and a rollout to a namespace".to_owned(),
            ));
        }
        let name: Arc<str> = one["name"].as_str().unwrap_or_default().into();
        known().insert(key, Arc::clone(&name));
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn the_cluster_says_what_a_kind_is_called_and_whether_it_has_namespaces() {
        let list = json!({"resources": [
            {"name": "widgets/status", "kind": "Widget", "namespaced": true},
            {"name": "widgetry", "kind": "Widget", "namespaced": true},
            {"name": "gadgets", "kind": "Gadget", "namespaced": false},
        ]});
        let absent = json!({"kind": "Status", "code": 404, "message": "404 page not found", "status": "Failure"});
        let answers = [(200, list.clone()), (200, list.clone()), (200, list), (404, absent)];
        let fake = Fake::answering(answers);
        let cluster = fake.cluster().await;
        let kind = |text: &str| text.parse::<Kind>().unwrap();
        for _ in 0..2 {
            let path = cluster.collection(kind("Widget.a.example/v1"), &"shop".parse().unwrap()).await.unwrap();
            assert_eq!(path, "/apis/a.example/v1/namespaces/shop/widgetry");
        }
        let gadget = cluster.resource(kind("Gadget.a.example/v1")).await.unwrap_err();
        assert_eq!(gadget.to_string(), "its objects belong to the whole cluster, and a rollout to a namespace");
        assert!(cluster.resource(kind("Gizmo.a.example/v1")).await.unwrap_err().is_missing_kind());
        assert!(cluster.resource(kind("Widget.a.example/v2")).await.unwrap_err().is_missing_kind());
        let asked: Vec<_> = fake.asked().into_iter().map(|asked| asked.line).collect();
        assert_eq!(
            asked,
            ["GET /apis/a.example/v1", "GET /apis/a.example/v1", "GET /apis/a.example/v1", "GET /apis/a.example/v2"]
        );
    }
}
