//! The copy of a Secret: read and written at the rim (design §13.14). What a Secret holds is known to this file alone, while
//! it does that, and is in nothing that it returns.

use super::client::Cluster;
use super::failure::Failure;
use super::{look, request};
use crate::manifest::object::{OWNER, ObjectRef, SOURCE};
use crate::manifest::reference::Referent;
use crate::plan::action::SecretCopy;
use crate::workload::live::{Expects, WriteOutcome};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

/// Types that the cluster fills in or acts upon by the name: a copy would be something else.
const NOT_COPIED: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

impl Cluster {
    /// Makes the copy.
    ///
    /// *Guarantees*: at most one object is made, of exactly that version; what is there already is left alone. Nothing that the
    /// Secret holds is in the outcome, nor any word of those who were shown it: an admission webhook may repeat it. A copy whose
    /// anchor has gone meanwhile goes too.
    /// *Assumptions*: as [`Cluster::perform`].
    pub(super) async fn copy_secret(&self, copy: &SecretCopy) -> WriteOutcome {
        // The client logs answers that it cannot read, and at some levels those that it can.
        self.copied(copy).with_subscriber(NoSubscriber::default()).await
    }

    async fn copied(&self, copy: &SecretCopy) -> WriteOutcome {
        let SecretCopy { anchor, expects, secret, version, .. } = copy;
        let Expects::Uid(holder) = expects else {
            return WriteOutcome::Stale(format!("no uid of {anchor} is known"));
        };
        let plural = Referent::Secret.plural();
        let path = request::under("v1", &anchor.namespace, plural);
        let mut original = match self.call(request::get(&format!("{path}/{secret}"), &[])).await {
            Ok(original) => original,
            Err(failure) if failure.is_absent(plural) => {
                return WriteOutcome::Stale(format!("Secret {secret} is gone"));
            }
            Err(failure) => return untold(&failure, anchor, &format!("Secret {secret} was not read")),
        };
        if look::version(&original).as_ref() != Some(version) {
            return WriteOutcome::Stale(format!("Secret {secret} has changed since it was looked up"));
        }
        if let Some(kind) = original["type"].as_str().filter(|kind| NOT_COPIED.contains(kind)) {
            return WriteOutcome::Refused(format!(
                "Secret {secret} is of the type {kind}, which is of no use as a copy"
            ));
        }
        let mut body = empty(copy, holder);
        for part in ["type", "data"] {
            body[part] = original[part].take();
        }
        match self.call(request::post(&path, &[("fieldManager", self.manager())], &body)).await {
            Ok(_) => WriteOutcome::Done(None),
            Err(failure) if failure.code() == Some(409) => {
                WriteOutcome::Stale(format!("there is a Secret {} already", anchor.name))
            }
            Err(failure) => {
                untold(&failure, anchor, &format!("the copy {} of Secret {secret} was not made", anchor.name))
            }
        }
    }
}

/// The copy without what it is for.
fn empty(copy: &SecretCopy, holder: &str) -> Value {
    let SecretCopy { anchor, secret, version, owner, .. } = copy;
    let kind = anchor.kind;
    json!({
        "apiVersion": "v1", "kind": "Secret", "immutable": true,
        "metadata": {
            "name": anchor.name, "namespace": anchor.namespace,
            "annotations": {OWNER: owner, SOURCE: format!("{secret} {version}")},
            "ownerReferences": [
                {"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": anchor.name, "uid": holder},
            ],
        },
    })
}

/// What a failure means, in our own words alone.
fn untold(failure: &Failure, about: &ObjectRef, what: &str) -> WriteOutcome {
    let code =
        failure.code().filter(|code| *code > 0).map_or_else(|| "no answer".to_owned(), |code| format!("HTTP {code}"));
    match failure.outcome(about) {
        WriteOutcome::Refused(_) => {
            WriteOutcome::Refused(format!("{what}: the API server or an admission webhook refuses it ({code})"))
        }
        WriteOutcome::Forbidden(_) => WriteOutcome::Forbidden(format!(
            "{what} ({code}): tidegate needs get and create on secrets in the namespace {}, which rbac.copySecrets grants in \
             the chart's values",
            about.namespace
        )),
        WriteOutcome::Done(_)
        | WriteOutcome::Stale(_)
        | WriteOutcome::Conflict { .. }
        | WriteOutcome::MissingKind(_)
        | WriteOutcome::Retriable(_) => WriteOutcome::Retriable(format!("{what}: {code}")),
    }
}

#[cfg(test)]
#[path = "../../../../tests/support/listen.rs"]
mod listen;

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::listen::listen;
    use super::*;
    use crate::manifest::object::Kind;
    use crate::plan::action::{Action, Class, Verb};
    use std::sync::{Arc, Mutex};

    /// Stands in every answer, and must come out nowhere.
    const CANARY: &str = "Y2FuYXJ5LTRmMmE5";

    fn copy() -> SecretCopy {
        SecretCopy {
            anchor: ObjectRef {
                kind: Kind::ConfigMap,
                namespace: "shop".parse().unwrap(),
                name: "tls-primary-0123456789".parse().unwrap(),
            },
            expects: Expects::Uid("anchor".into()),
            secret: "tls".parse().unwrap(),
            version: "u:7".into(),
            owner: "a/shop/web".into(),
        }
    }

    /// All that is logged.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    async fn perform(fake: &Fake) -> WriteOutcome {
        let sink = Sink::default();
        let writer = sink.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
        let _guard = listen(log.finish());
        let action = Action {
            class: Class::Advance,
            rollout: "shop/web".parse().unwrap(),
            cluster: "home".parse().unwrap(),
            cluster_uid: "cluster-1".into(),
            posture: None,
            verb: Verb::CopySecret(Box::new(copy())),
            why: String::new(),
        };
        let outcome = fake.cluster().await.perform(&action).await;
        let logged = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert!(!format!("{action:?} {outcome:?} {logged}").contains(CANARY), "{outcome:?} {logged}");
        outcome
    }

    fn secret(version: &str, kind: &str) -> (u16, Value) {
        let metadata = json!({"name": "tls", "uid": "u", "resourceVersion": version, "labels": {"a": "b"}});
        (200, json!({"kind": "Secret", "metadata": metadata, "type": kind, "data": {"key": CANARY}}))
    }

    fn refusal(code: u16, reason: &str, message: &str) -> (u16, Value) {
        let message = format!("{message} {CANARY}");
        (
            code,
            json!({"code": code, "reason": reason, "message": message, "details": {"kind": "secrets", "name": "tls"}}),
        )
    }

    #[tokio::test]
    async fn c_7_the_copy_has_type_and_data_and_goes_with_its_anchor() {
        let fake = Fake::answering([secret("7", "kubernetes.io/tls"), (201, json!({"data": {"key": CANARY}}))]);
        assert_eq!(perform(&fake).await, WriteOutcome::Done(None));
        let asked = fake.asked();
        assert_eq!(asked[0].line, "GET /api/v1/namespaces/shop/secrets/tls");
        assert_eq!(asked[1].line, "POST /api/v1/namespaces/shop/secrets?fieldManager=tidegate-a");
        let metadata = json!({
            "name": "tls-primary-0123456789", "namespace": "shop",
            "annotations": {OWNER: "a/shop/web", SOURCE: "tls u:7"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "tls-primary-0123456789", "uid": "anchor"}],
        });
        let wanted = json!({
            "apiVersion": "v1", "kind": "Secret", "immutable": true, "metadata": metadata, "type": "kubernetes.io/tls",
            "data": {"key": CANARY},
        });
        assert_eq!(asked[1].body, wanted);
    }

    #[tokio::test]
    async fn another_version_and_what_is_there_make_it_stale() {
        for fake in [
            Fake::answering([secret("8", "Opaque")]),
            Fake::answering([refusal(404, "NotFound", "")]),
            Fake::answering([secret("7", "Opaque"), refusal(409, "AlreadyExists", "")]),
        ] {
            let outcome = perform(&fake).await;
            assert!(matches!(outcome, WriteOutcome::Stale(_)), "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn attack_57_c_7_nobodys_words_are_repeated_that_was_shown_the_secret() {
        let denied = "admission webhook \"policy\" denied the request: data.key is";
        let outcomes = [
            Fake::answering([refusal(403, "Forbidden", "")]),
            Fake::answering([secret("7", "Opaque"), refusal(403, "Forbidden", "")]),
            Fake::answering([secret("7", "Opaque"), refusal(403, "Forbidden", denied)]),
            Fake::answering([secret("7", "Opaque"), refusal(422, "Invalid", "")]),
            Fake::answering([secret("7", "Opaque"), refusal(500, "InternalError", "")]),
            Fake::default().then(200, &format!("{{\"metadata\": \"{CANARY}")),
            Fake::answering([secret("7", "Opaque")]).then(502, CANARY),
            Fake::answering([secret("7", "kubernetes.io/service-account-token")]),
        ];
        let mut told = Vec::new();
        for fake in outcomes {
            told.push(match perform(&fake).await {
                WriteOutcome::Forbidden(why) => {
                    assert!(why.contains("rbac.copySecrets"), "{why}");
                    "Forbidden"
                }
                WriteOutcome::Refused(_) => "Refused",
                WriteOutcome::Retriable(_) => "Retriable",
                other @ (WriteOutcome::Done(_)
                | WriteOutcome::Stale(_)
                | WriteOutcome::Conflict { .. }
                | WriteOutcome::MissingKind(_)) => {
                    panic!("{other:?}")
                }
            });
        }
        let retriable = ["Retriable"; 3];
        let refused = ["Refused"; 2];
        assert_eq!(told, [&["Forbidden"; 2][..], &refused, &retriable, &["Refused"]].concat());
    }
}
