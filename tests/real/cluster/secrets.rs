//! Which content a Secret has, told by its metadata alone (requirement C-7).

use super::world::World;
use crate::support::cluster::eventually;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use tidegate::manifest::reference::Referent;
use tidegate::workload::lookup::{Identity, Lookup, Presence};

/// A Secret, and what is seen of it.
struct Original {
    world: World,
    api: Api<Secret>,
    seen: Mutex<BTreeSet<String>>,
}

impl Original {
    async fn new() -> Self {
        let world = World::new().await;
        let api = Api::namespaced(world.admin.clone(), world.namespace.as_str());
        let secret = json!({"metadata": {"name": "tls"}, "stringData": {"a": "1", "b": "1"}});
        let by = PostParams { field_manager: Some("maker".to_owned()), ..PostParams::default() };
        api.create(&by, &serde_json::from_value(secret).unwrap()).await.unwrap();
        Self { world, api, seen: Mutex::default() }
    }

    async fn look(&self) -> Identity {
        let (namespace, name) = (self.world.namespace.clone(), "tls".parse().unwrap());
        match self.world.cluster.look(&Lookup { to: Referent::Secret, namespace, name }).await {
            Presence::There(identity) => identity,
            other @ (Presence::Absent | Presence::Forbidden(_) | Presence::Unknown(_)) => panic!("{other:?}"),
        }
    }

    /// Whether it is seen to have a content that it did not have before.
    async fn is_new(&self) -> bool {
        let version = self.look().await.version;
        self.seen.lock().unwrap().insert(version)
    }

    async fn written(&self) -> String {
        self.api.get("tls").await.unwrap().metadata.resource_version.unwrap()
    }

    async fn patch(&self, by: &str, patch: Patch<Value>) {
        let force = matches!(patch, Patch::Apply(_));
        let params = PatchParams { field_manager: Some(by.to_owned()), force, ..PatchParams::default() };
        self.api.patch("tls", &params, &patch).await.unwrap();
    }

    /// Applies, as the one manager who does.
    async fn apply(&self, mut part: Value) {
        part["apiVersion"] = "v1".into();
        part["kind"] = "Secret".into();
        self.patch("applier", Patch::Apply(part)).await;
    }

    /// Writes the whole object.
    async fn put(&self, by: &str, change: impl FnOnce(&mut Secret)) {
        let mut secret = self.api.get("tls").await.unwrap();
        change(&mut secret);
        let by = PostParams { field_manager: Some(by.to_owned()), ..PostParams::default() };
        self.api.replace("tls", &by, &secret).await.unwrap();
    }
}

/// What is asked of a real cluster.
pub(super) fn really() -> Vec<LocalBoxFuture<'static, ()>> {
    vec![
        Box::pin(c_7_a_write_of_something_else_leaves_a_secret_what_it_was()),
        Box::pin(c_7_each_way_to_another_content_is_seen()),
    ]
}

async fn c_7_a_write_of_something_else_leaves_a_secret_what_it_was() {
    let secret = Original::new().await;
    assert!(secret.is_new().await);
    let written = secret.written().await;
    secret.patch("ana", Patch::Merge(json!({"metadata": {"labels": {"team": "shop"}}}))).await;
    secret.patch("ana", Patch::Merge(json!({"metadata": {"labels": {"team": "blog"}}}))).await;
    let note = |secret: &mut Secret| secret.metadata.annotations = Some([("note".to_owned(), "1".to_owned())].into());
    secret.put("ben", note).await;
    secret.apply(json!({"metadata": {"annotations": {"cert-manager.io/issuer": "ca"}}})).await;
    assert_ne!(secret.written().await, written);
    assert!(!secret.is_new().await, "nobody wrote data");
    // The data that is there already is nobody's write.
    secret.patch("eve", Patch::Merge(json!({"stringData": {"a": "1"}}))).await;
    secret.put("eve", |_| {}).await;
    assert!(!secret.is_new().await, "it is the same data");

    // Whoever applies data has a part in it; to apply the same again changes nothing.
    let same = || json!({"metadata": {"annotations": {"cert-manager.io/issuer": "ca"}}, "data": {"a": "MQ=="}});
    secret.apply(same()).await;
    secret.is_new().await;
    let written = secret.written().await;
    secret.apply(same()).await;
    assert_eq!(secret.written().await, written);
    assert!(!secret.is_new().await);
}

async fn c_7_each_way_to_another_content_is_seen() {
    let secret = Original::new().await;
    assert!(secret.is_new().await);
    let remove = |key: &str| Patch::Merge(json!({"data": {key: null}}));
    secret.patch("ana", Patch::Merge(json!({"data": {"a": "Mg=="}}))).await;
    assert!(secret.is_new().await, "another value");
    let before = secret.look().await;
    // By somebody else: the time of ana's entry stays as it is.
    secret.patch("cleo", Patch::Merge(json!({"stringData": {"c": "1"}}))).await;
    assert!(secret.is_new().await, "another key");
    secret.patch("ben", remove("c")).await;
    assert_eq!(secret.look().await, before, "taken away by somebody who owns nothing: the data is what it was");
    secret.put("ben", |secret| secret.data.as_mut().unwrap().values_mut().for_each(|value| value.0.push(b'!'))).await;
    assert!(secret.is_new().await, "all values are others");
    secret.put("eve", |secret| drop(secret.data.as_mut().unwrap().remove("b"))).await;
    assert!(secret.is_new().await, "a key less, taken away by a writer of the whole");
    let before = secret.look().await;
    secret.apply(json!({"metadata": {"name": "tls"}, "data": {"d": "MQ=="}})).await;
    assert!(secret.is_new().await, "a key that is applied");
    secret.apply(json!({"metadata": {"name": "tls"}})).await;
    assert_eq!(secret.look().await, before, "and not any more");
    // The same manager writes the same key once more: the second tells.
    eventually("another second", async || {
        secret.patch("ana", Patch::Merge(json!({"stringData": {"a": secret.written().await}}))).await;
        secret.is_new().await.then_some(())
    })
    .await;
    assert!(secret.look().await.written.is_some());

    // What is applied as `stringData` leaves no owner of the data: then any write counts.
    secret.apply(json!({"metadata": {"name": "tls"}, "stringData": {"e": "1"}})).await;
    assert!(secret.is_new().await);
    secret.patch("ana", remove("e")).await;
    assert!(secret.is_new().await, "a key that nobody owned");
    secret.patch("ana", Patch::Merge(json!({"metadata": {"labels": {"team": "shop"}}}))).await;
    assert!(secret.is_new().await && secret.look().await.written.is_none());
}
