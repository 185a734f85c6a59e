//! Does what one action says, once, and says what came of it.

use super::client::Cluster;
use super::failure::Failure;
use super::{migrate, request};
use crate::manifest::object::{DOMAIN, OWNER, Object, ObjectRef};
use crate::plan::action::{Action, Class, Verb};
use crate::rules::{Rule, holds};
use crate::workload::live::{Expects, WriteOutcome};
use crate::workload::managers::{CLIENT_SIDE, FLAGGER};
use serde_json::{Value, json};

/// Whether an apply takes fields from other managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Force {
    No,
    Yes,
}

/// Whether an apply changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DryRun {
    No,
    All,
}

impl Cluster {
    /// Does one action.
    ///
    /// *Guarantees*: what is not as the action expects is left alone (`Stale`). At most one write is done. Fields of others
    /// are taken only where [`may_force`] says so, and only from the version that was read.
    /// *Assumptions*: the caller has checked that the record allows it.
    pub async fn perform(&self, action: &Action) -> WriteOutcome {
        if action.cluster_uid != self.uid() {
            return WriteOutcome::Stale(format!(
                "planned for the cluster with uid {}, but this one has {}",
                action.cluster_uid,
                self.uid()
            ));
        }
        match &action.verb {
            Verb::Apply { object, expects } => self.apply(action.class, object, expects, DryRun::No).await,
            Verb::Migrate { target, expects } => self.migrate(target, expects).await,
            Verb::Delete { target, expects, by: _ } => self.delete(target, expects).await,
            Verb::CopySecret(copy) => self.copy_secret(copy).await,
        }
    }

    /// What applying `object` would come to: `Done` with the object as it would be. Changes nothing.
    pub async fn dry_run(&self, object: &Object, expects: &Expects) -> WriteOutcome {
        self.apply(Class::Advance, object, expects, DryRun::All).await
    }

    async fn apply(&self, class: Class, object: &Object, expects: &Expects, dry_run: DryRun) -> WriteOutcome {
        let outcome = self.send_apply(object, expects, Force::No, dry_run).await;
        let WriteOutcome::Conflict { manager, fields } = &outcome else { return outcome };
        if *expects == Expects::Absent {
            return WriteOutcome::Stale(format!("{} was expected to be absent, but is there", object.reference()));
        }
        if !may_force(class, object, manager, fields) {
            return outcome;
        }
        match self.pinned(object, expects).await {
            Ok(pinned) => self.send_apply(object, &pinned, Force::Yes, dry_run).await,
            Err(outcome) => outcome,
        }
    }

    async fn send_apply(&self, object: &Object, expects: &Expects, force: Force, dry_run: DryRun) -> WriteOutcome {
        let mut query = vec![("fieldManager", self.manager()), ("fieldValidation", "Strict")];
        query.push(("force", if force == Force::Yes { "true" } else { "false" }));
        if dry_run == DryRun::All {
            query.push(("dryRun", "All"));
        }
        let mut body = object.value().clone();
        expect_in(&mut body["metadata"], expects);
        let target = object.reference();
        let applied = async { self.call(request::apply(&self.item(target).await?, &query, &body)).await };
        match applied.await {
            Ok(value) => WriteOutcome::Done(Some(Box::new(Object::new(target.clone(), value)))),
            Err(failure) => failure.outcome(target),
        }
    }

    /// The exact version that a forced apply may overwrite: the one that the plan saw, or, for upkeep, the one that is
    /// there now if it is still the same object with the same owner.
    async fn pinned(&self, object: &Object, expects: &Expects) -> Result<Expects, WriteOutcome> {
        if let Expects::Version { .. } = expects {
            return Ok(expects.clone());
        }
        let live = self.read(object.reference(), expects).await?;
        if live.annotation(OWNER) != object.annotation(OWNER) {
            return Err(WriteOutcome::Stale(format!("{} has another owner mark by now", object.reference())));
        }
        version_of(&live)
    }

    /// Reads an object that must be as expected.
    async fn read(&self, target: &ObjectRef, expects: &Expects) -> Result<Object, WriteOutcome> {
        let read = async { self.call(request::get(&self.item(target).await?, &[])).await }.await;
        let live = Object::new(target.clone(), read.map_err(|failure| failure.outcome(target))?);
        let met = match expects {
            Expects::Absent => false,
            Expects::Uid(uid) => live.uid() == Some(uid),
            Expects::Version { uid, resource_version } => {
                live.uid() == Some(uid) && live.resource_version() == Some(resource_version)
            }
        };
        if met { Ok(live) } else { Err(WriteOutcome::Stale(format!("{target} is not the one that was expected"))) }
    }

    async fn migrate(&self, target: &ObjectRef, expects: &Expects) -> WriteOutcome {
        let live = match self.read(target, expects).await {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        let managed = live.at("/metadata/managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(migrated) = migrate::migrated(managed, self.manager()) else {
            return WriteOutcome::Done(Some(Box::new(live)));
        };
        let Some(version) = live.resource_version() else {
            return WriteOutcome::Retriable(format!("{target} came without a resourceVersion"));
        };
        let patch = migrate::patch(&migrated, version);
        let query = [("fieldManager", self.manager())];
        let patched = async { self.call(request::json_patch(&self.item(target).await?, &query, &patch)).await };
        match patched.await {
            Ok(value) => WriteOutcome::Done(Some(Box::new(Object::new(target.clone(), value)))),
            Err(failure) => failure.outcome(target),
        }
    }

    async fn delete(&self, target: &ObjectRef, expects: &Expects) -> WriteOutcome {
        let preconditions = match expects {
            Expects::Absent => return WriteOutcome::Done(None),
            Expects::Uid(uid) => json!({"uid": uid}),
            Expects::Version { uid, resource_version } => json!({"uid": uid, "resourceVersion": resource_version}),
        };
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": preconditions, "propagationPolicy": "Background",
        });
        let deleted = async {
            let resource = self.resource(target.kind).await?;
            let gone = |failure: Failure| if failure.is_absent(&resource) { Ok(Value::Null) } else { Err(failure) };
            self.call(request::delete(&self.item(target).await?, &options)).await.or_else(gone)
        };
        match deleted.await {
            Ok(Value::Null) => WriteOutcome::Done(None),
            Ok(value) => WriteOutcome::Done(still_there(target, value)),
            Err(failure) => failure.outcome(target),
        }
    }
}

/// The revision of an empty etcd: the first object that is written gets the next.
const NO_VERSION: &str = "1";

/// Writes what is expected where server-side apply checks it: another uid answers 422 or 409, another resourceVersion
/// 409. A resourceVersion without a uid creates an absent object and answers 409 where there is one: that is how absence is
/// expected, with a version that no object ever has; everywhere else the two go together.
fn expect_in(metadata: &mut Value, expects: &Expects) {
    match expects {
        Expects::Absent if holds(Rule::Expect) => metadata["resourceVersion"] = NO_VERSION.into(),
        Expects::Absent => {}
        Expects::Uid(uid) => metadata["uid"] = uid.as_str().into(),
        Expects::Version { uid, .. } if !holds(Rule::Expect) => metadata["uid"] = uid.as_str().into(),
        Expects::Version { uid, resource_version } => {
            metadata["uid"] = uid.as_str().into();
            metadata["resourceVersion"] = resource_version.as_str().into();
        }
    }
}

fn version_of(live: &Object) -> Result<Expects, WriteOutcome> {
    match (live.uid(), live.resource_version()) {
        (Some(uid), Some(version)) => Ok(Expects::Version { uid: uid.into(), resource_version: version.into() }),
        _ => Err(WriteOutcome::Retriable(format!("{} came without a uid or resourceVersion", live.reference()))),
    }
}

/// The answer to a delete is the object itself where finalizers still hold it, or as long as its containers have time to end, which
/// serve meanwhile; for some kinds also where it is gone.
fn still_there(target: &ObjectRef, answer: Value) -> Option<Box<Object>> {
    let metadata = &answer["metadata"];
    let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let ends = metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|grace| grace > 0);
    let there = (held || ends) && !metadata["deletionTimestamp"].is_null();
    there.then(|| Box::new(Object::new(target.clone(), answer)))
}

/// Whether fields that another manager owns may be taken from it: if it stands for a person's client-side tool, whose
/// fields become ours anyway, or for Flagger, whose Canary is gone by then; on the way back, where nothing that a hand did may be in the way; else only if each is a
/// mark of ours or one that a posture is made of, since there what Git says is the most that may be (design §6). Anything
/// else is a `FieldConflict` for people.
#[must_use]
pub fn may_force(class: Class, object: &Object, manager: &str, fields: &[String]) -> bool {
    if manager.split(", ").all(|manager| manager == FLAGGER || CLIENT_SIDE.contains(&manager)) {
        return true;
    }
    let posture = object.reference().kind.facts().posture;
    let ours = |field: &String| class == Class::Retreat || posture.contains(&field.as_str()) || is_mark(field);
    !fields.is_empty() && fields.iter().all(ours)
}

/// Whether a field is a mark of ours. That of the owner is not: who writes another one claims the object.
fn is_mark(field: &str) -> bool {
    field.contains(&format!(".{DOMAIN}/")) && !field.ends_with(&format!(".{OWNER}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fake, object};
    use super::*;
    use crate::manifest::object::Kind;
    use crate::plan::action::{Class, GoesBy};

    const PATH: &str = "/apis/apps/v1/namespaces/shop/deployments/podinfo";

    fn version() -> Expects {
        Expects::Version { uid: "u1".into(), resource_version: "7".into() }
    }

    fn deployment() -> Object {
        object(Kind::Deployment, json!({"spec": {"replicas": 2}}))
    }

    fn conflict(field: &str) -> (u16, Value) {
        let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"hand\"", "field": field});
        (409, json!({"code": 409, "reason": "Conflict", "message": "1 conflict", "details": {"causes": [cause]}}))
    }

    fn live(owner: &str) -> (u16, Value) {
        let annotations = json!({"tidegate.io/owner": owner});
        (200, json!({"metadata": {"uid": "u1", "resourceVersion": "9", "annotations": annotations}}))
    }

    async fn perform(fake: &Fake, verb: Verb) -> WriteOutcome {
        let cluster = fake.cluster().await;
        let action = Action {
            class: Class::Upkeep,
            rollout: "shop/podinfo".parse().unwrap(),
            cluster: "home".parse().unwrap(),
            cluster_uid: cluster.uid().to_owned(),
            posture: None,
            verb,
            why: String::new(),
        };
        cluster.perform(&action).await
    }

    fn apply(object: Object, expects: Expects) -> Verb {
        Verb::Apply { object: Box::new(object), expects }
    }

    #[tokio::test]
    async fn an_apply_carries_what_it_expects_and_no_force() {
        let fake = Fake::answering([(200, json!({"metadata": {"uid": "u1", "resourceVersion": "8"}}))]);
        let WriteOutcome::Done(Some(done)) = perform(&fake, apply(deployment(), version())).await else { panic!() };
        assert_eq!(done.resource_version(), Some("8"));
        let asked = fake.asked();
        assert_eq!(asked.len(), 1);
        let query = "fieldManager=tidegate-a&fieldValidation=Strict&force=false";
        assert_eq!(asked[0].line, format!("PATCH {PATH}?{query}"));
        assert_eq!(asked[0].media, "application/apply-patch+yaml");
        assert_eq!(
            asked[0].body,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2},
                "metadata": {"name": "podinfo", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
            })
        );
    }

    #[tokio::test]
    async fn a_dry_run_says_so_and_answers_as_the_write_would() {
        let fake = Fake::answering([conflict(".spec.replicas"), (200, json!({}))]);
        let outcome = fake.cluster().await.dry_run(&deployment(), &version()).await;
        assert!(matches!(outcome, WriteOutcome::Done(Some(_))), "{outcome:?}");
        let forced: Vec<_> =
            fake.asked().iter().map(|r| (r.line.contains("dryRun=All"), r.line.contains("force=true"))).collect();
        assert_eq!(forced, [(true, false), (true, true)]);
        let fake = Fake::answering([conflict(".spec.paused")]);
        let outcome = fake.cluster().await.dry_run(&deployment(), &version()).await;
        assert!(matches!(outcome, WriteOutcome::Conflict { .. }), "{outcome:?}");
    }

    #[tokio::test]
    async fn the_postures_own_field_is_forced_once_at_the_version_that_was_read() {
        let fake = Fake::answering([conflict(".spec.replicas"), (200, json!({}))]);
        let outcome = perform(&fake, apply(deployment(), version())).await;
        assert!(matches!(outcome, WriteOutcome::Done(_)), "{outcome:?}");
        let asked = fake.asked();
        assert!(asked[1].line.ends_with("force=true"), "{}", asked[1].line);
        assert_eq!(asked[1].body, asked[0].body);
        assert_eq!(asked.len(), 2);
    }

    #[tokio::test]
    async fn upkeep_is_forced_at_the_version_that_is_there_if_the_owner_is_the_same() {
        let mut ours = deployment();
        ours.annotate(OWNER, "a/shop/podinfo");
        let upkeep = || apply(ours.clone(), Expects::Uid("u1".into()));

        let fake = Fake::answering([conflict(".spec.replicas"), live("a/shop/podinfo"), (200, json!({}))]);
        assert!(matches!(perform(&fake, upkeep()).await, WriteOutcome::Done(_)));
        let asked = fake.asked();
        assert_eq!(asked[0].body["metadata"]["resourceVersion"], Value::Null);
        assert_eq!(asked[2].body["metadata"]["resourceVersion"], "9");
        assert!(asked[2].line.ends_with("force=true"));

        let fake = Fake::answering([conflict(".spec.replicas"), live("b/shop/podinfo")]);
        assert!(matches!(perform(&fake, upkeep()).await, WriteOutcome::Stale(_)));
        assert_eq!(fake.asked().len(), 2);
    }

    #[tokio::test]
    async fn attack_54_fields_of_others_and_objects_that_should_be_absent_are_never_forced() {
        let fake = Fake::answering([conflict(".spec.paused")]);
        let outcome = perform(&fake, apply(deployment(), version())).await;
        assert_eq!(outcome, WriteOutcome::Conflict { manager: "hand".into(), fields: vec![".spec.paused".into()] });
        let fake = Fake::answering([conflict(".spec.replicas")]);
        assert!(matches!(perform(&fake, apply(deployment(), Expects::Absent)).await, WriteOutcome::Stale(_)));
        assert_eq!(fake.asked().len(), 1);
        assert_eq!(fake.asked()[0].body["metadata"]["resourceVersion"], NO_VERSION);
    }

    #[test]
    fn attack_54_only_the_posture_and_our_marks_are_forced_and_what_a_persons_tool_owns() {
        let rows: [(Kind, &str, &[&str], bool); 19] = [
            (Kind::HttpRoute, "hand", &[".spec.rules"], true),
            (Kind::Deployment, "hand", &[".spec.replicas"], true),
            (Kind::Service, "hand", &[".spec.selector"], true),
            (Kind::Service, "hand", &[".spec.replicas"], false),
            (Kind::Deployment, "hand", &[".spec.replicas", ".spec.paused"], false),
            (Kind::Deployment, "hand", &[".spec.replicasX"], false),
            (Kind::ConfigMap, "hand", &[".data.a"], false),
            (Kind::Deployment, "hand", &[], false),
            (Kind::HorizontalPodAutoscaler, "hand", &[".spec.maxReplicas", ".spec.minReplicas"], true),
            (Kind::HorizontalPodAutoscaler, "hand", &[".spec.minReplicas", ".spec.metrics"], false),
            (Kind::ConfigMap, "hand", &[".metadata.annotations.tidegate.io/applied"], true),
            (Kind::Deployment, "hand", &[".metadata.annotations.tidegate.io/retreated", ".spec.replicas"], true),
            (Kind::ConfigMap, "hand", &[".metadata.annotations.tidegate.io/owner"], false),
            (Kind::ConfigMap, "hand", &[".metadata.annotations.not-tidegate.io/seq"], false),
            (Kind::ConfigMap, "kubectl-edit", &[".data.a"], true),
            (Kind::Deployment, "flagger", &[".spec.template.spec.containers"], true),
            (Kind::Deployment, "flagger, hand", &[".spec.template.spec.containers"], false),
            (Kind::HttpRoute, "kubectl-client-side-apply, kubectl-edit", &[".spec.parentRefs", ".spec.rules"], true),
            (Kind::ConfigMap, "kubectl-edit, hand", &[".data.a"], false),
        ];
        for (kind, manager, fields, may) in rows {
            let fields: Vec<_> = fields.iter().map(|&field| field.to_owned()).collect();
            let object = object(kind, json!({}));
            for class in [Class::Upkeep, Class::Advance] {
                assert_eq!(may_force(class, &object, manager, &fields), may, "{kind} {manager} {fields:?}");
            }
            let back = may_force(Class::Retreat, &object, manager, &fields);
            assert_eq!(back, !fields.is_empty(), "nothing is in the way back: {kind} {manager} {fields:?}");
        }
    }

    #[tokio::test]
    async fn attack_50_53_a_delete_names_what_it_deletes() {
        let target = deployment().reference().clone();
        let delete = |expects| Verb::Delete { target: target.clone(), expects, by: GoesBy::Policy };
        let fake = Fake::answering([(200, json!({"kind": "Status", "status": "Success"}))]);
        assert_eq!(perform(&fake, delete(version())).await, WriteOutcome::Done(None));
        let asked = fake.asked();
        assert_eq!(asked[0].line, format!("DELETE {PATH}"));
        assert_eq!(asked[0].body["preconditions"], json!({"uid": "u1", "resourceVersion": "7"}));
        assert_eq!(asked[0].body["propagationPolicy"], "Background");

        let gone = json!({"code": 404, "reason": "NotFound", "details": {"kind": "deployments", "name": "podinfo"}});
        let fake = Fake::answering([(404, gone)]);
        assert_eq!(perform(&fake, delete(Expects::Uid("u1".into()))).await, WriteOutcome::Done(None));
        assert_eq!(fake.asked()[0].body["preconditions"], json!({"uid": "u1"}));

        let ending = |why: &str, value: Value| json!({"metadata": {"uid": "u1", "deletionTimestamp": "2026-01-01T00:00:30Z", why: value}});
        let rows = [
            ("finalizers", json!(["x"]), true),
            ("finalizers", json!([]), false),
            ("deletionGracePeriodSeconds", json!(30), true),
            ("deletionGracePeriodSeconds", json!(0), false),
        ];
        for (why, value, there) in rows {
            let fake = Fake::answering([(200, ending(why, value))]);
            let outcome = perform(&fake, delete(version())).await;
            assert_eq!(matches!(outcome, WriteOutcome::Done(Some(_))), there, "{why}: {outcome:?}");
        }
        let fake = Fake::default();
        assert_eq!(perform(&fake, delete(Expects::Absent)).await, WriteOutcome::Done(None));
        assert!(fake.asked().is_empty());
    }

    #[tokio::test]
    async fn a_migration_reads_changes_the_managers_alone_and_pins_the_version() {
        let fields = json!({"f:spec": {}});
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsV1": fields});
        let managed = [entry("kubectl-client-side-apply", "Update")];
        let read = json!({"metadata": {"uid": "u1", "resourceVersion": "9", "managedFields": managed}});
        let fake = Fake::answering([(200, read.clone()), (200, read.clone())]);
        let target = deployment().reference().clone();
        let outcome =
            perform(&fake, Verb::Migrate { target: target.clone(), expects: Expects::Uid("u1".into()) }).await;
        assert!(matches!(outcome, WriteOutcome::Done(Some(_))), "{outcome:?}");
        let asked = fake.asked();
        assert_eq!(asked[1].line, format!("PATCH {PATH}?fieldManager=tidegate-a"));
        assert_eq!(asked[1].media, "application/json-patch+json");
        assert_eq!(
            asked[1].body,
            json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [entry("tidegate-a", "Apply")]},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "9"},
            ])
        );
        let fake = Fake::answering([(200, read)]);
        let outcome = perform(&fake, Verb::Migrate { target, expects: version() }).await;
        assert!(matches!(outcome, WriteOutcome::Stale(_)), "{outcome:?}");
    }

    #[tokio::test]
    async fn attack_55_59_broken_answers_and_other_clusters_change_nothing() {
        let fake = Fake::default().then(502, "<html>bad gateway</html>").then(200, "{\"metadata\": ");
        let cluster = fake.cluster().await;
        for _ in 0..2 {
            let outcome = cluster.dry_run(&deployment(), &version()).await;
            assert!(matches!(outcome, WriteOutcome::Retriable(_)), "{outcome:?}");
        }
        let action = Action {
            class: Class::Upkeep,
            rollout: "shop/podinfo".parse().unwrap(),
            cluster: "home".parse().unwrap(),
            cluster_uid: "cluster-2".into(),
            posture: None,
            verb: apply(deployment(), version()),
            why: String::new(),
        };
        assert!(matches!(cluster.perform(&action).await, WriteOutcome::Stale(_)));
        assert_eq!(fake.asked().len(), 2);
    }
}
