//! Rollouts as objects of Kubernetes, for people. They are written and removed here, and read only to know what is written
//! already; nothing of a rollout is ever learned from them.

use super::client::Cluster;
use super::failure::Failure;
use super::request;
use crate::manifest::ids::{Namespace, RolloutId};
use crate::manifest::object::OWNER;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const API: &str = "tidegate.io/v1alpha1";
const PLURAL: &str = "rollouts";

/// What the cluster holds of one rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    /// Which object it is.
    pub uid: String,
    /// What it shows.
    pub status: Value,
}

/// Why an object could not be read, written or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unprojected {
    /// The cluster does not know the kind.
    #[error(
        "the cluster does not serve rollouts.tidegate.io; install it: tidegate schema crd | kubectl apply --filename -"
    )]
    MissingKind,
    /// Another reason, which may pass.
    #[error("{0}")]
    Other(String),
}

impl From<Failure> for Unprojected {
    fn from(failure: Failure) -> Self {
        if failure.is_missing_kind() { Self::MissingKind } else { Self::Other(failure.to_string()) }
    }
}

impl Cluster {
    /// The objects of our rollouts in a namespace.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn projections(&self, namespace: &Namespace) -> Result<BTreeMap<RolloutId, Projected>, Unprojected> {
        let list = self.call(request::get(&request::under(API, namespace, PLURAL), &[])).await?;
        let items = list.get("items").and_then(Value::as_array);
        Ok(items.into_iter().flatten().filter_map(|item| self.ours(namespace, item)).collect())
    }

    fn ours(&self, namespace: &Namespace, object: &Value) -> Option<(RolloutId, Projected)> {
        let name = object.pointer("/metadata/name")?.as_str()?.parse().ok()?;
        let id = RolloutId { namespace: namespace.clone(), name };
        let owner = object.get("metadata")?.get("annotations")?.get(OWNER)?.as_str()?;
        (owner == self.instance().owner_of(&id)).then(|| (id, projected(object)))
    }

    /// Writes what an object shows, by server-side apply and without force: what is somebody else's stays so.
    ///
    /// # Errors
    /// When it is not written.
    pub async fn project(&self, id: &RolloutId, status: &Value) -> Result<Projected, Unprojected> {
        let path = format!("{}/{}", request::under(API, &id.namespace, PLURAL), id.name);
        let owner = self.instance().owner_of(id);
        let body = json!({
            "apiVersion": API, "kind": "Rollout",
            "metadata": {"name": id.name.as_str(), "namespace": id.namespace.as_str(), "annotations": {OWNER: owner}},
            "status": status,
        });
        let query = [("fieldManager", self.manager())];
        Ok(projected(&self.call(request::apply(&path, &query, &body)).await?))
    }

    /// Removes the object of a rollout, if it still is that one.
    ///
    /// # Errors
    /// When it is still there.
    pub async fn unproject(&self, id: &RolloutId, uid: &str) -> Result<(), Unprojected> {
        let path = format!("{}/{}", request::under(API, &id.namespace, PLURAL), id.name);
        match self.call(request::delete(&path, &json!({"preconditions": {"uid": uid}}))).await {
            Ok(_) => Ok(()),
            // Somebody else removed it, or made another.
            Err(failure) if failure.is_absent(PLURAL) || failure.code() == Some(409) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn projected(object: &Value) -> Projected {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    Projected { uid, status: object.get("status").cloned().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn object(owner: &str) -> Value {
        json!({"metadata": {"name": "podinfo", "uid": "u", "annotations": {OWNER: owner}}, "status": {"phase": "Steady"}})
    }

    #[tokio::test]
    async fn only_our_own_are_listed_and_none_is_taken_by_force() {
        let list = json!({"items": [object("a/shop/podinfo"), object("b/shop/podinfo"), {"metadata": {"name": "x"}}]});
        let fake = Fake::answering([(200, list), (200, object("a/shop/podinfo")), (200, json!({}))]);
        let cluster = fake.cluster().await;
        let id: RolloutId = "shop/podinfo".parse().unwrap();
        let found = cluster.projections(&id.namespace).await.unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [&id]);
        cluster.project(&id, &json!({"phase": "Steady"})).await.unwrap();
        cluster.unproject(&id, "u").await.unwrap();
        let asked = fake.asked();
        let path = "/apis/tidegate.io/v1alpha1/namespaces/shop/rollouts";
        let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
        let patch = format!("PATCH {path}/podinfo?fieldManager={}", cluster.manager());
        assert_eq!(lines, [format!("GET {path}"), patch, format!("DELETE {path}/podinfo")]);
        assert_eq!(asked[2].body["preconditions"]["uid"], "u");
    }

    #[tokio::test]
    async fn a_missing_definition_is_told_apart() {
        let fake = Fake::default().then(404, "404 page not found\n");
        let cluster = fake.cluster().await;
        assert_eq!(cluster.projections(&"shop".parse().unwrap()).await, Err(Unprojected::MissingKind));
    }
}
