//! What actions come to: server-side apply, migration, deletion, and how refusals are told apart.

use super::world::{World, done, version};
use crate::support::cluster::{Bed, PATIENCE, apply};
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use k8s_openapi::api::events::v1::Event as CoreEvent;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate::cluster::events::{EventLevel, KubeEvent};
use tidegate::manifest::object::{Kind, SEQ};
use tidegate::plan::action::{Class, GoesBy, Verb};
use tidegate::workload::live::{Expects, WriteOutcome};
use tidegate::workload::owned::{annotators, owned_by};

on_both! {
    what_we_apply_is_what_we_own_and_applying_it_again_changes_nothing,
    a_route_is_owned_as_a_whole,
    attack_54_a_foreign_field_is_a_conflict_and_the_postures_own_is_taken_back,
    attack_53_what_has_moved_is_stale_and_stays_as_it_is,
    attack_50_53_a_deletion_hits_what_was_meant_or_nothing,
    a_dry_run_changes_nothing,
    refusals_are_told_apart_by_what_follows_from_them,
    an_event_is_seen_on_its_object;
    a_mark_that_a_hand_has_written_is_ours_again_with_the_next_write,
    objects_of_client_side_apply_become_ours_so_that_fields_can_go,
    a_full_quota_is_no_evidence_against_a_revision_but_a_policy_is,
}

fn uid(object: &tidegate::manifest::object::Object) -> Expects {
    Expects::Uid(object.uid().unwrap().to_owned())
}

async fn what_we_apply_is_what_we_own_and_applying_it_again_changes_nothing(world: World) {
    let mut wanted = world.deployment("podinfo", json!({"replicas": 0}));
    wanted.annotate("tidegate.io/seq", "1");
    let created = world.applied(&wanted, Expects::Absent).await;
    world.by_hand(&world.object(Kind::Deployment, "podinfo", json!({"spec": {"minReadySeconds": 3}}))).await;

    let live = world.read(created.reference()).await.unwrap();
    let owned = owned_by(&live, world.cluster.manager()).unwrap();
    assert_eq!(owned, wanted);
    let again = world.applied(&owned, uid(&live)).await;
    assert_eq!(again.generation(), live.generation());
    assert_eq!(again.int("/spec/minReadySeconds"), Some(3));
    assert_eq!(owned_by(&again, world.cluster.manager()), Some(wanted));
}

async fn a_route_is_owned_as_a_whole(world: World) {
    let rules = |weight: u8| {
        let backend = |name: &str, weight| json!({"name": name, "port": 80, "weight": weight});
        json!([{"backendRefs": [backend("stable", 100 - weight), backend("canary", weight)]}])
    };
    let route = |weight| {
        let parents = json!([{"name": "gateway"}]);
        world.object(Kind::HttpRoute, "podinfo", json!({"spec": {"parentRefs": parents, "rules": rules(weight)}}))
    };
    let created = world.applied(&route(0), Expects::Absent).await;
    // A hand raises the weight; the record's split is put back over it.
    world.by_hand(&world.object(Kind::HttpRoute, "podinfo", json!({"spec": {"rules": rules(90)}}))).await;
    // A gateway that writes the status meanwhile makes it stale, as for a tick, which then comes again.
    until("the split is put back", async || {
        let raised = world.read(created.reference()).await.unwrap();
        let outcome = world.apply(&route(10), version(&raised)).await;
        if matches!(outcome, WriteOutcome::Stale(_)) {
            return false;
        }
        let lowered = done(outcome);
        assert_eq!(lowered.int("/spec/rules/0/backendRefs/1/weight"), Some(10));
        let owned = owned_by(&lowered, world.cluster.manager()).unwrap();
        assert_eq!(owned.at("/spec/rules"), lowered.at("/spec/rules"));
        true
    })
    .await;
}

async fn attack_54_a_foreign_field_is_a_conflict_and_the_postures_own_is_taken_back(world: World) {
    let wanted = |replicas: u8| world.deployment("podinfo", json!({"replicas": replicas, "minReadySeconds": 1}));
    let created = world.applied(&wanted(0), Expects::Absent).await;
    world.by_hand(&world.object(Kind::Deployment, "podinfo", json!({"spec": {"replicas": 1}}))).await;
    assert!(matches!(world.apply(&wanted(0), version(&created)).await, WriteOutcome::Stale(_)));
    // A controller that writes the status meanwhile makes it stale, as for a tick, which then comes again.
    until("the size is put back", async || {
        let outcome = world.apply(&wanted(0), uid(&created)).await;
        !matches!(outcome, WriteOutcome::Stale(_)) && done(outcome).int("/spec/replicas") == Some(0)
    })
    .await;

    world.by_hand(&world.object(Kind::Deployment, "podinfo", json!({"spec": {"minReadySeconds": 7}}))).await;
    let live = world.read(created.reference()).await.unwrap();
    let expected = WriteOutcome::Conflict { manager: "hand".into(), fields: vec![".spec.minReadySeconds".into()] };
    assert_eq!(world.apply(&wanted(0), uid(&live)).await, expected);
    assert_eq!(world.cluster.dry_run(&wanted(0), &uid(&live)).await, expected);
    assert!(matches!(world.apply(&wanted(0), Expects::Absent).await, WriteOutcome::Stale(_)));
    let after = world.read(created.reference()).await.unwrap();
    assert_eq!(after.at("/spec"), live.at("/spec"));

    // On the way back nothing that a hand did is in the way.
    until("what Git says is put back", async || {
        let live = world.read(created.reference()).await.unwrap();
        let back = Verb::Apply { object: Box::new(wanted(0)), expects: version(&live) };
        let outcome = world.perform_as(Class::Retreat, back).await;
        !matches!(outcome, WriteOutcome::Stale(_)) && done(outcome).int("/spec/minReadySeconds") == Some(1)
    })
    .await;
}

async fn a_mark_that_a_hand_has_written_is_ours_again_with_the_next_write() {
    let world = World::new().await;
    let marked = |seq: &str| {
        let mut object = world.config_map("a", json!({"k": "1"}));
        object.annotate(SEQ, seq);
        object
    };
    let first = world.applied(&marked("4"), Expects::Absent).await;
    assert_eq!(annotators(&first, SEQ), [world.cluster.manager()]);
    world.by_hand(&marked("9")).await;
    let theirs = world.read(first.reference()).await.unwrap();
    assert!(!annotators(&theirs, SEQ).contains(&world.cluster.manager()), "so it says nothing of us");
    let again = world.applied(&marked("5"), version(&theirs)).await;
    assert_eq!((again.annotation(SEQ), annotators(&again, SEQ)), (Some("5"), vec![world.cluster.manager()]));
}

async fn attack_53_what_has_moved_is_stale_and_stays_as_it_is(world: World) {
    let first = world.applied(&world.config_map("a", json!({"k": "1"})), Expects::Absent).await;
    let second = world.applied(&world.config_map("a", json!({"k": "2"})), version(&first)).await;
    let other = Expects::Uid("00000000-0000-0000-0000-000000000000".into());
    let wanted = world.config_map("a", json!({"k": "3"}));
    // A plan that saw nothing there does not write over what is there by now, whatever it would write.
    for expects in [version(&first), other, Expects::Absent] {
        let outcome = world.apply(&wanted, expects.clone()).await;
        assert!(matches!(outcome, WriteOutcome::Stale(_)), "{expects:?}: {outcome:?}");
    }
    // What was deleted is not made again by a plan that still saw it.
    let delete = Verb::Delete { target: second.reference().clone(), expects: version(&second), by: GoesBy::Policy };
    assert_eq!(world.perform(delete).await, WriteOutcome::Done(None));
    for expects in [version(&second), uid(&second)] {
        let outcome = world.apply(&wanted, expects.clone()).await;
        assert!(matches!(outcome, WriteOutcome::Stale(_)), "{expects:?}: {outcome:?}");
        assert_eq!(world.read(second.reference()).await, None);
    }
}

async fn attack_50_53_a_deletion_hits_what_was_meant_or_nothing(world: World) {
    let first = world.applied(&world.config_map("a", json!({"k": "1"})), Expects::Absent).await;
    let second = world.applied(&world.config_map("a", json!({"k": "2"})), uid(&first)).await;
    let delete = |expects| Verb::Delete { target: first.reference().clone(), expects, by: GoesBy::Policy };
    for expects in [version(&first), Expects::Uid("other".into())] {
        let outcome = world.perform(delete(expects.clone())).await;
        assert!(matches!(outcome, WriteOutcome::Stale(_)), "{expects:?}: {outcome:?}");
    }
    assert_eq!(world.perform(delete(version(&second))).await, WriteOutcome::Done(None));
    assert_eq!(world.perform(delete(version(&second))).await, WriteOutcome::Done(None));

    let mut held = world.config_map("held", json!({}));
    held.value_mut()["metadata"]["finalizers"] = json!(["test.example/held"]);
    world.by_hand(&held).await;
    let held = world.read(held.reference()).await.unwrap();
    let outcome = world
        .perform(Verb::Delete { target: held.reference().clone(), expects: version(&held), by: GoesBy::Policy })
        .await;
    assert!(done(outcome).text("/metadata/deletionTimestamp").is_some());
    let release = json!({"metadata": {"finalizers": null}});
    let maps = Api::<ConfigMap>::namespaced(world.admin.clone(), world.namespace.as_str());
    maps.patch("held", &PatchParams::default(), &Patch::Merge(release)).await.unwrap();
}

async fn objects_of_client_side_apply_become_ours_so_that_fields_can_go() {
    let world = World::new().await;
    let made = world.config_map("a", json!({"keep": "1", "drop": "1"}));
    let bed = Bed::shared().await;
    let file = made.value().to_string();
    bed.kubectl(&["apply", "-f", "-"], &file).await;
    let patch = r#"{"data": {"drop": "2"}}"#;
    let namespace = world.namespace.as_str();
    bed.kubectl(&["-n", namespace, "patch", "configmap", "a", "--field-manager=kubectl-edit", "-p", patch], "").await;

    let live = world.read(made.reference()).await.unwrap();
    let migrate = |expects| Verb::Migrate { target: made.reference().clone(), expects };
    let migrated = done(world.perform(migrate(version(&live))).await);
    assert_eq!(migrated.at("/data"), live.at("/data"));
    let owned = owned_by(&migrated, world.cluster.manager()).unwrap();
    assert_eq!(owned.at("/data"), Some(&json!({"keep": "1", "drop": "2"})));
    assert_eq!(migrated.at("/metadata/managedFields").and_then(Value::as_array).unwrap().len(), 1);

    assert!(matches!(world.perform(migrate(version(&live))).await, WriteOutcome::Stale(_)));
    let again = done(world.perform(migrate(uid(&live))).await);
    assert_eq!(again.resource_version(), migrated.resource_version());
    let applied = world.applied(&world.config_map("a", json!({"keep": "1"})), version(&again)).await;
    assert_eq!(applied.at("/data"), Some(&json!({"keep": "1"})));
}

async fn a_dry_run_changes_nothing(world: World) {
    let wanted = world.config_map("a", json!({"k": "1"}));
    let outcome = world.cluster.dry_run(&wanted, &Expects::Absent).await;
    assert_eq!(done(outcome).at("/data"), Some(&json!({"k": "1"})));
    assert_eq!(world.read(wanted.reference()).await, None);
}

async fn refusals_are_told_apart_by_what_follows_from_them(world: World) {
    let dry = async |object| world.cluster.dry_run(&object, &Expects::Absent).await;
    let wrong = [
        world.deployment("podinfo", json!({"replicas": -1})),
        world.deployment("podinfo", json!({"replicas": "many"})),
        world.deployment("podinfo", json!({"replicaz": 1})),
        world.deployment("podinfo", json!({"selector": {"matchLabels": {"app": "other"}}})),
        world.object(Kind::HttpRoute, "podinfo", json!({"spec": {"rules": [], "hostnamez": []}})),
    ];
    for object in wrong {
        let outcome = dry(object.clone()).await;
        assert!(matches!(outcome, WriteOutcome::Refused(_)), "{:?}: {outcome:?}", object.value());
    }
    let mut elsewhere = world.config_map("a", json!({}));
    elsewhere.value_mut()["metadata"]["labels"] = json!({"x": "y"});
    let reference = tidegate::manifest::object::ObjectRef {
        namespace: "kube-system".parse().unwrap(),
        ..elsewhere.reference().clone()
    };
    let elsewhere = tidegate::manifest::object::Object::new(reference, elsewhere.value().clone());
    let outcome = dry(elsewhere).await;
    assert!(matches!(outcome, WriteOutcome::Forbidden(_)), "{outcome:?}");
}

async fn a_full_quota_is_no_evidence_against_a_revision_but_a_policy_is() {
    let world = World::new().await;
    let quotas = Api::<ResourceQuota>::namespaced(world.admin.clone(), world.namespace.as_str());
    let hard = json!({"hard": {"count/deployments.apps": "0"}, "used": {"count/deployments.apps": "0"}});
    let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": hard["hard"]}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    quotas.patch_status("full", &PatchParams::default(), &Patch::Merge(json!({"status": hard}))).await.unwrap();
    let object = world.deployment("podinfo", json!({"replicas": 1}));
    // Admission hears of a quota by a watch of its own.
    until("the quota is in force", async || {
        let outcome = world.apply(&object, Expects::Absent).await;
        if let WriteOutcome::Done(Some(made)) = &outcome {
            world
                .perform(Verb::Delete { target: made.reference().clone(), expects: uid(made), by: GoesBy::Policy })
                .await;
        }
        matches!(&outcome, WriteOutcome::Retriable(why) if why.contains("exceeded quota"))
    })
    .await;

    let name = world.namespace.as_str();
    let scope = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
    let resources =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let api = "admissionregistration.k8s.io/v1";
    let policy = json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "matchConstraints": {"namespaceSelector": scope, "resourceRules": [resources]},
        "validations": [{"expression": "!has(object.data)", "message": "no data here"}],
    }});
    let binding = json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                         "spec": {"policyName": name, "validationActions": ["Deny"]}});
    apply(&world.admin, &policy).await;
    apply(&world.admin, &binding).await;
    let object = world.config_map("a", json!({"k": "1"}));
    until("the policy is in force", async || {
        let outcome = world.cluster.dry_run(&object, &Expects::Absent).await;
        matches!(&outcome, WriteOutcome::Refused(why) if why.contains("no data here"))
    })
    .await;
}

async fn an_event_is_seen_on_its_object(world: World) {
    let made = world.applied(&world.config_map("a", json!({})), Expects::Absent).await;
    let message = "weight 10 → 0";
    let event = KubeEvent {
        about: made.reference(),
        uid: made.uid(),
        level: EventLevel::Warning,
        reason: "Retreated",
        message,
    };
    world.cluster.announce(&event, "2026-03-01T12:00:00Z".parse().unwrap()).await;
    let events = Api::<CoreEvent>::namespaced(world.admin.clone(), world.namespace.as_str());
    let found = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].note.as_deref(), Some(message));
    assert_eq!(found[0].regarding.as_ref().unwrap().uid.as_deref(), made.uid());
}

/// Waits until `met` says so.
async fn until(what: &str, met: impl AsyncFn() -> bool) {
    let look = async {
        while !met().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("{what}: not in time"));
}
