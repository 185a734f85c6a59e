//! Looking up by name what is not watched: whether it is there, which one it is, and nothing of what it holds.

use super::client::Cluster;
use super::request;
use crate::manifest::canonical;
use crate::manifest::object::{OWNER, at, items};
use crate::record::state::Time;
use crate::workload::lookup::{Identity, Lookup, Presence};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The hex digits by which contents differ.
const DIGITS: usize = 20;

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

/// Which object it is, and which content it has: who wrote which of its data when, which stays as it is while others write labels and
/// annotations, and when it is encrypted anew. Where the API server does not tell that, its resourceVersion, which any write changes.
pub(super) fn version(object: &Value) -> Option<String> {
    let text = |pointer| at(object, pointer).and_then(Value::as_str);
    let (uid, written) = (text("/metadata/uid")?, text("/metadata/resourceVersion")?);
    let content = writes(object).map(|writes| {
        let one = |(_, entry): (Time, &Value)| {
            let [manager, operation, time] = ["manager", "operation", "time"].map(|part| &entry[part]);
            canonical::digest(&json!([manager, operation, time, entry["fieldsV1"]["f:data"]]))
        };
        let all: BTreeSet<String> = writes.into_iter().map(one).collect();
        format!("data-{}", &canonical::digest(&json!(all))[..DIGITS])
    });
    Some(format!("{uid}:{}", content.as_deref().unwrap_or(written)))
}

/// The entries of `managedFields` with data, as that was written last by each manager; none if they do not tell of all data.
///
/// Whoever changes the value of a key owns it from then on, and its entry has the time of that. A key that is removed leaves its entry, without
/// another time.
fn writes(object: &Value) -> Option<Vec<(Time, &Value)>> {
    let mut all = Vec::new();
    for entry in items(object.get("metadata")?, "managedFields") {
        let fields = entry.get("fieldsV1")?;
        // Of the data that comes of applied `stringData` nobody is the owner: who takes it away leaves no trace.
        if fields.get("f:stringData").is_some() {
            return None;
        }
        if fields.get("f:data").is_some() {
            all.push((entry.get("time")?.as_str()?.parse().ok()?, entry));
        }
    }
    (!all.is_empty()).then_some(all)
}

fn identity(object: &Value) -> Option<Identity> {
    let metadata = object.get("metadata")?;
    let holders = items(metadata, "ownerReferences").filter_map(|holder| holder.get("uid")?.as_str());
    let owner = metadata.get("annotations").and_then(|all| all.get(OWNER)?.as_str());
    Some(Identity {
        version: version(object)?,
        written: writes(object).and_then(|writes| writes.into_iter().map(|(at, _)| at).max()),
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
        let there = Identity { version, written: None, owner, holders: ["anchor".to_owned()].into() };
        assert_eq!(cluster.look(&lookup).await, Presence::There(there));
        assert!(matches!(cluster.look(&lookup).await, Presence::Unknown(_)));
        assert_eq!(cluster.look(&lookup).await, Presence::Absent);
        assert!(matches!(cluster.look(&lookup).await, Presence::Forbidden(_)));
        assert!(matches!(cluster.look(&lookup).await, Presence::Unknown(_)));
        assert!(fake.asked().iter().all(|asked| asked.line == "GET /api/v1/namespaces/shop/secrets/tls"));
    }

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": format!("2026-03-02T10:00:{time}Z"), "fieldsV1": fields})
    }

    /// What is read of a Secret with these entries.
    fn read(version: &str, entries: &[Value]) -> Identity {
        let metadata = json!({"uid": "u", "resourceVersion": version, "managedFields": entries});
        identity(&json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn c_7_the_content_is_who_wrote_which_data_when() {
        let keys = |keys: &[&str]| json!({"f:data": keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect::<Value>()});
        let label = || json!({"f:metadata": {"f:labels": {"f:a": {}}}});
        let first = read("7", &[entry("ana", "01", keys(&["a", "b"]))]);
        assert!(
            first.version.starts_with("u:data-") && first.written == "2026-03-02T10:00:01Z".parse().ok(),
            "{first:?}"
        );
        let same = [
            read("8", &[entry("ana", "01", keys(&["b", "a"])), entry("eve", "09", label())]),
            read("9", &[entry("eve", "59", label()), entry("ana", "01", keys(&["a", "b"]))]),
        ];
        assert_eq!(same, [first.clone(), first.clone()]);
        let others = [
            read("8", &[entry("ana", "02", keys(&["a", "b"]))]),
            read("8", &[entry("eve", "01", keys(&["a", "b"]))]),
            read("8", &[entry("ana", "01", keys(&["a"]))]),
            read("8", &[entry("ana", "01", keys(&["a"])), entry("eve", "03", keys(&["b"]))]),
        ];
        assert!(others.iter().all(|other| other.version.starts_with("u:data-") && other.version != first.version));
        let anew = identity(
            &json!({"metadata": {"uid": "v", "resourceVersion": "7", "managedFields": [entry("ana", "01", keys(&["a", "b"]))]}}),
        );
        assert_ne!(anew.unwrap().version, first.version);
    }

    #[test]
    fn c_7_what_does_not_tell_of_all_data_lets_any_write_be_another_content() {
        let data = || json!({"f:data": {"f:a": {}}});
        let untimed = || json!({"manager": "ana", "operation": "Update", "fieldsV1": data()});
        for entries in [
            vec![],
            vec![entry("ana", "01", json!({"f:metadata": {}}))],
            vec![entry("ana", "01", data()), entry("eve", "02", json!({"f:stringData": {"f:b": {}}}))],
            vec![untimed()],
            vec![entry("ana", "01", data()), json!({"manager": "eve", "operation": "Update"})],
            vec![entry("ana", "later", data())],
        ] {
            let read = read("7", &entries);
            assert_eq!((read.version.as_str(), read.written), ("u:7", None), "{entries:?}");
        }
    }
}
