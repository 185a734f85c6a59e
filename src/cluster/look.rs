//! Looking up by name what is not watched: whether it is there, which one it is, and nothing of what it holds.

use super::client::Cluster;
use super::request;
use crate::manifest::object::{OWNER, at, items};
use crate::plan::evidence::{Identity, Lookup, Presence};
use serde_json::Value;

impl Cluster {
    /// Whether an object is there. Of it only the metadata is asked for: what a Secret holds does not leave the API server.
    pub async fn look(&self, lookup: &Lookup) -> Presence {
        let Lookup { to, namespace, name } = lookup;
        let path = format!("{}/{name}", request::under("v1", namespace, to.plural()));
        match self.call(request::metadata(&path)).await {
            Ok(metadata) => identity(&metadata)
                .map_or_else(|| Presence::Unknown(format!("{to} {name} came without a uid")), Presence::There),
            Err(failure) if failure.is_absent(to.plural()) => Presence::Absent,
            Err(failure) if failure.code() == Some(403) => Presence::Forbidden(failure.to_string()),
            Err(failure) => Presence::Unknown(failure.to_string()),
        }
    }
}

/// The uid and resourceVersion of an object.
pub(super) fn version(object: &Value) -> Option<String> {
    let text = |pointer| at(object, pointer).and_then(Value::as_str);
    Some(format!("{}:{}", text("/metadata/uid")?, text("/metadata/resourceVersion")?))
}

fn identity(object: &Value) -> Option<Identity> {
    let metadata = object.get("metadata")?;
    let holders = items(metadata, "ownerReferences").filter_map(|holder| holder.get("uid")?.as_str());
    let owner = metadata.get("annotations").and_then(|all| all.get(OWNER)?.as_str());
    Some(Identity {
        version: version(object)?,
        owner: owner.map(str::to_owned),
        holders: holders.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;
    use crate::manifest::reference::Referent;
    use serde_json::json;

    #[tokio::test]
    async fn c_7_what_is_looked_up_is_there_or_not_or_nobody_says() {
        let refusal = |code: u16, reason: &str| {
            (
                code,
                json!({"code": code, "reason": reason, "message": "m", "details": {"kind": "secrets", "name": "tls"}}),
            )
        };
        let fake = Fake::answering([
            (
                200,
                json!({"kind": "PartialObjectMetadata", "metadata": {
                    "name": "tls", "uid": "u", "resourceVersion": "7",
                    "annotations": {OWNER: "a/shop/web"}, "ownerReferences": [{"uid": "anchor"}],
                }}),
            ),
            (200, json!({"kind": "PartialObjectMetadata", "metadata": {"name": "tls"}})),
            refusal(404, "NotFound"),
            refusal(403, "Forbidden"),
            refusal(503, "ServiceUnavailable"),
        ]);
        let cluster = fake.cluster().await;
        let lookup = Lookup { to: Referent::Secret, namespace: "shop".parse().unwrap(), name: "tls".parse().unwrap() };
        let (version, owner) = ("u:7".to_owned(), Some("a/shop/web".to_owned()));
        let there = Identity { version, owner, holders: ["anchor".to_owned()].into() };
        assert_eq!(cluster.look(&lookup).await, Presence::There(there));
        assert!(matches!(cluster.look(&lookup).await, Presence::Unknown(_)));
        assert_eq!(cluster.look(&lookup).await, Presence::Absent);
        assert!(matches!(cluster.look(&lookup).await, Presence::Forbidden(_)));
        assert!(matches!(cluster.look(&lookup).await, Presence::Unknown(_)));
        assert!(fake.asked().iter().all(|asked| asked.line == "GET /api/v1/namespaces/shop/secrets/tls"));
    }
}
