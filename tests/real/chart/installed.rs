//! Releases in a real API server, with RBAC and Pod Security on. The pods' program is not run there.

use super::{chart, few, helm, run, with};
use crate::support::cluster::{Bed, Space, eventually};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All kinds that a release makes in a cluster without the Prometheus operator.
const KINDS: &str = "deployments,services,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
                     poddisruptionbudgets,networkpolicies,secrets,pods";

/// Runs Helm on the bed, in a namespace; what it printed, or its complaint.
pub(super) async fn helm_in(
    bed: &Bed,
    space: &Space,
    arguments: &[&str],
    values: Option<Value>,
) -> Result<String, String> {
    let mut helm = helm();
    helm.arg("--kubeconfig").arg(bed.kubeconfig()).args(["--namespace", &space.name]).args(arguments);
    tokio::task::spawn_blocking(move || run(helm, values.as_ref())).await.unwrap()
}

async fn install(bed: &Bed, space: &Space, release: &str, values: &Value) -> Result<String, String> {
    let chart = chart();
    helm_in(bed, space, &["install", release, chart.to_str().unwrap()], Some(values.clone())).await
}

/// What of a release is in the cluster, by kind, namespace, name and uid.
pub(super) async fn standing(bed: &Bed, name: &str) -> BTreeSet<String> {
    let columns = "custom-columns=:.kind,:.metadata.namespace,:.metadata.name,:.metadata.uid";
    let selector = format!("app.kubernetes.io/instance={name}");
    let found = bed.kubectl(&["get", KINDS, "-A", "-l", &selector, "-o", columns, "--no-headers"], "").await;
    found.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The same without the pods, which come and go.
fn lasting(standing: &BTreeSet<String>) -> BTreeSet<String> {
    standing.iter().filter(|line| !line.starts_with("Pod ")).cloned().collect()
}

pub(super) async fn running(bed: &Bed, space: &Space, name: &str) {
    eventually(&format!("two pods of {name}"), async || {
        let path = "jsonpath={.status.availableReplicas}";
        let ready = bed.kubectl(&["-n", &space.name, "get", "deployment", name, "-o", path], "").await;
        (ready == "2").then_some(())
    })
    .await;
}

fn values(instance: &str, namespaces: &[&Space]) -> Value {
    let names: Vec<_> = namespaces.iter().map(|space| &space.name).collect();
    with(&few(), &json!({"instance": instance, "namespaces": names}))
}

#[tokio::test]
async fn f_16_x_18_two_releases_live_side_by_side_and_go_one_by_one() {
    let bed = Bed::shared().await;
    let (home, other) = (bed.space("chart-home").await, bed.space("chart-home").await);
    let (shop, blog) = (bed.space("chart-shop").await, bed.space("chart-blog").await);
    for space in [&home, &other] {
        bed.kubectl(&["label", "namespace", &space.name, "pod-security.kubernetes.io/enforce=restricted"], "").await;
    }
    // Two in one namespace, whose names begin alike, and one of the first one's name in another.
    let releases = [(&home, "a", "b-c"), (&home, "a-b", "c"), (&other, "a", "d")];
    for (home, release, instance) in releases {
        install(bed, home, release, &values(instance, &[&shop, &blog])).await.unwrap();
    }
    let names = ["a--b-c", "a-b--c", "a--d"];
    for ((home, ..), name) in releases.iter().zip(names) {
        running(bed, home, name).await;
    }
    for at in 0..releases.len() {
        let mut before = BTreeMap::new();
        for name in &names[at..] {
            let standing = lasting(&standing(bed, name).await);
            assert!(standing.len() >= 13, "{name}: {standing:?}");
            before.insert(name, standing);
        }
        helm_in(bed, releases[at].0, &["uninstall", releases[at].1, "--no-hooks"], None).await.unwrap();
        eventually(&format!("the end of {}", names[at]), async || {
            standing(bed, names[at]).await.is_empty().then_some(())
        })
        .await;
        before.remove(&names[at]);
        for (name, before) in before {
            assert_eq!(lasting(&standing(bed, name).await), before, "{name} after the end of {}", names[at]);
        }
    }
}

#[tokio::test]
async fn x_18_the_service_account_may_do_what_it_needs_and_nothing_else() {
    let bed = Bed::shared().await;
    let (home, shop, foreign) =
        (bed.space("chart-rights").await, bed.space("chart-shop").await, bed.space("chart-foreign").await);
    install(bed, &home, "tide", &values("prod", &[&shop])).await.unwrap();
    let user = format!("--as=system:serviceaccount:{}:tide--prod", home.name);
    for (allowed, verb, what, space) in [
        (true, "patch", "deployments.apps", &shop),
        (true, "create", "events.events.k8s.io", &shop),
        (true, "update", "leases.coordination.k8s.io/tidegate-prod", &home),
        (true, "watch", "configmaps/tidegate-brake", &home),
        (true, "get", "namespaces/kube-system", &home),
        (false, "update", "leases.coordination.k8s.io/tidegate-test", &home),
        (false, "list", "configmaps", &home),
        (false, "patch", "deployments.apps", &home),
        (false, "get", "secrets", &home),
        (true, "get", "secrets", &shop),
        (false, "list", "secrets", &shop),
        (false, "patch", "secrets", &shop),
        (true, "delete", "pods", &shop),
        (false, "create", "pods", &shop),
        (false, "list", "configmaps", &foreign),
        (false, "list", "namespaces", &home),
        (false, "create", "rolebindings.rbac.authorization.k8s.io", &shop),
    ] {
        let asked = bed.try_kubectl(&["auth", "can-i", verb, what, "--namespace", &space.name, &user], "").await;
        assert_eq!(asked.is_ok_and(|answer| answer.trim() == "yes"), allowed, "{verb} {what} in {}", space.name);
    }
    helm_in(bed, &home, &["uninstall", "tide", "--no-hooks"], None).await.unwrap();
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_told_of_before_anything_is_made() {
    let bed = Bed::shared().await;
    let (home, shop) = (bed.space("chart-absent").await, bed.space("chart-shop").await);
    let mut wanted = values("absent", &[&shop]);
    wanted["namespaces"].as_array_mut().unwrap().push("no-such-namespace".into());
    let said = install(bed, &home, "tide", &wanted).await.unwrap_err();
    let sentence = "- namespaces: no-such-namespace is not in this cluster: make it first (kubectl create namespace";
    assert!(said.contains(sentence), "{said}");
    assert_eq!(standing(bed, "tide--absent").await, BTreeSet::new());
    let releases = helm_in(bed, &home, &["list", "--short"], None).await;
    assert_eq!(releases.as_deref().map(str::trim), Ok(""), "no release that would have to be cleared away");
}

#[tokio::test]
async fn an_instance_that_another_release_has_is_refused() {
    let bed = Bed::shared().await;
    let (home, other, shop) =
        (bed.space("chart-one").await, bed.space("chart-two").await, bed.space("chart-shop").await);
    install(bed, &home, "tide", &values("twice", &[&shop])).await.unwrap();
    let said = install(bed, &other, "tide", &values("twice", &[&shop])).await.unwrap_err();
    let sentence =
        format!("- instance: twice is that of the release tide in namespace {}:\n  give each its own", home.name);
    assert!(said.contains(&sentence), "{said}");
    // Of oneself it is no other's.
    let chart = chart();
    let again = ["upgrade", "tide", chart.to_str().unwrap()];
    helm_in(bed, &home, &again, Some(values("twice", &[&shop]))).await.unwrap();
    helm_in(bed, &home, &["uninstall", "tide", "--no-hooks"], None).await.unwrap();
}

#[tokio::test]
async fn the_api_server_takes_all_that_can_be_asked_for_and_notes_say_what_is_next() {
    let bed = Bed::shared().await;
    let (home, shop) = (bed.space("chart-all").await, bed.space("chart-shop").await);
    // What the Prometheus operator would have to bring is left out.
    let monitors = json!({"serviceMonitor": {"enabled": false}, "prometheusRule": {"enabled": false}});
    let here = json!({"instance": "all", "namespaces": [shop.name]});
    let values = with(&with(&super::all(), &here), &monitors);
    let notes = install(bed, &home, "tide", &values).await.unwrap();
    for line in [
        format!("kubectl --namespace {} create secret generic tidegate-git --from-file=credentials=FILE", home.name),
        "tidegate/all/state                       the controller's own user, without reviews or checks".to_owned(),
        format!("helm --namespace {} test tide", home.name),
        format!("kubectl --namespace {} create configmap tidegate-brake --from-literal=all=hold", home.name),
    ] {
        assert!(notes.lines().any(|found| found.trim() == line), "{line} in\n{notes}");
    }
    let standing = standing(bed, "tide--all").await;
    for kind in ["NetworkPolicy", "ConfigMap", "Deployment"] {
        assert!(standing.iter().any(|line| line.starts_with(&format!("{kind} "))), "{kind} in {standing:?}");
    }
    helm_in(bed, &home, &["uninstall", "tide", "--no-hooks"], None).await.unwrap();
}
