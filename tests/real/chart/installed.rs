//! Releases in a real API server, with RBAC and Pod Security on. The pods' program is not run there.

use super::{chart, few, helm, run, with};
use crate::support::cluster::{Bed, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All kinds that a release makes in a cluster without the Prometheus operator.
const KINDS: [(&str, &str); 12] = [
    ("apps", "Deployment"),
    ("", "Service"),
    ("", "ConfigMap"),
    ("", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("policy", "PodDisruptionBudget"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("", "Secret"),
    ("", "Pod"),
];

/// Runs Helm on the bed, in a namespace; what it printed, or its complaint.
pub(super) async fn helm_in(
    bed: &Bed,
    namespace: &str,
    arguments: &[&str],
    values: Option<Value>,
) -> Result<String, String> {
    let mut helm = helm();
    helm.arg("--kubeconfig").arg(bed.kubeconfig()).args(["--namespace", namespace]).args(arguments);
    tokio::task::spawn_blocking(move || run(helm, values.as_ref())).await.unwrap()
}

/// What of a release is in the cluster, by kind, namespace, name and uid.
pub(super) async fn standing(client: &Client, name: &str) -> BTreeSet<String> {
    let of_it = ListParams::default().labels(&format!("app.kubernetes.io/instance={name}"));
    let of_kind = async |(group, kind): (&str, &str)| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let found = Api::<DynamicObject>::all_with(client.clone(), &resource).list(&of_it).await.unwrap();
        let line = |object: &DynamicObject| {
            let namespace = object.namespace().unwrap_or_default();
            format!("{kind} {namespace}/{} {}", object.name_any(), object.uid().unwrap())
        };
        found.iter().map(line).collect::<Vec<_>>()
    };
    futures::future::join_all(KINDS.map(of_kind)).await.into_iter().flatten().collect()
}

/// The same without the pods, which come and go.
async fn lasting(client: &Client, name: &str) -> BTreeSet<String> {
    standing(client, name).await.into_iter().filter(|line| !line.starts_with("Pod ")).collect()
}

pub(super) async fn running(client: &Client, namespace: &str, name: &str) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    eventually(&format!("two pods of {name}"), async || {
        let status = deployments.get(name).await.unwrap().status?;
        (status.available_replicas == Some(2)).then_some(())
    })
    .await;
}

/// Namespaces for releases and for what they serve.
struct Places {
    bed: &'static Bed,
    client: Client,
    home: String,
    other: String,
    shop: String,
    blog: String,
}

impl Places {
    async fn new() -> Self {
        let bed = Bed::shared().await;
        let (home, other) = (bed.namespace("chart-home").await, bed.namespace("chart-home").await);
        let (shop, blog) = (bed.namespace("chart-shop").await, bed.namespace("chart-blog").await);
        for namespace in [&home, &other] {
            bed.kubectl(&["label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"], "").await;
        }
        Self { bed, client: bed.client().await, home, other, shop, blog }
    }

    async fn helm(&self, namespace: &str, arguments: &[&str]) -> Result<String, String> {
        helm_in(self.bed, namespace, arguments, None).await
    }

    async fn install(&self, namespace: &str, release: &str, values: &Value) -> Result<String, String> {
        let chart = chart();
        helm_in(self.bed, namespace, &["install", release, chart.to_str().unwrap()], Some(values.clone())).await
    }

    /// Those of an instance that serves both shop and blog.
    fn values(&self, instance: &str) -> Value {
        with(&few(), &json!({"instance": instance, "namespaces": [self.shop, self.blog]}))
    }

    async fn may(&self, user: (&str, &str), verb: &str, what: &str, namespace: &str) -> bool {
        let (home, account) = user;
        let (what, name) = what.split_once('/').unwrap_or((what, ""));
        let (resource, group) = what.split_once('.').unwrap_or((what, ""));
        let mut attributes = json!({"verb": verb, "group": group, "resource": resource, "name": name});
        if resource != "namespaces" {
            attributes["namespace"] = namespace.into();
        }
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{home}"), "system:authenticated"];
        let spec = json!({
            "user": format!("system:serviceaccount:{home}:{account}"), "groups": groups, "resourceAttributes": attributes,
        });
        let review: SubjectAccessReview = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
    }
}

#[tokio::test]
async fn releases_live_side_by_side() {
    let places = Places::new().await;
    a_namespace_that_is_not_there_is_told_of_before_anything_is_made(&places).await;
    let Places { home, other, .. } = &places;
    // Two in one namespace, whose names begin alike, and one of the first one's name in another.
    let releases = [(home, "a", "a--b-c"), (home, "a-b", "a-b--c"), (other, "a", "a--all")];
    for (release, instance) in [("a", "b-c"), ("a-b", "c")] {
        places.install(home, release, &places.values(instance)).await.unwrap();
    }
    the_api_server_takes_all_that_can_be_asked_for_and_notes_say_what_is_next(&places).await;
    an_instance_that_another_release_has_is_refused(&places).await;
    x_18_the_service_account_may_do_what_it_needs_and_nothing_else(&places).await;
    f_16_x_18_two_releases_live_side_by_side_and_go_one_by_one(&places, releases).await;
}

async fn f_16_x_18_two_releases_live_side_by_side_and_go_one_by_one(
    places: &Places,
    releases: [(&String, &str, &str); 3],
) {
    for (home, _, name) in releases {
        running(&places.client, home, name).await;
    }
    for (at, (home, release, name)) in releases.into_iter().enumerate() {
        let mut before = BTreeMap::new();
        for (_, _, name) in &releases[at..] {
            let standing = lasting(&places.client, name).await;
            assert!(standing.len() >= 13, "{name}: {standing:?}");
            before.insert(*name, standing);
        }
        places.helm(home, &["uninstall", release, "--no-hooks"]).await.unwrap();
        eventually(&format!("the end of {name}"), async || {
            standing(&places.client, name).await.is_empty().then_some(())
        })
        .await;
        before.remove(name);
        for (other, before) in before {
            assert_eq!(lasting(&places.client, other).await, before, "{other} after the end of {name}");
        }
    }
}

/// Of the release whose names begin like another's.
async fn x_18_the_service_account_may_do_what_it_needs_and_nothing_else(places: &Places) {
    let Places { home, shop, .. } = places;
    let foreign = &places.bed.namespace("chart-foreign").await;
    let user = (home.as_str(), "a--b-c");
    let rights = [
        (true, "patch", "deployments.apps", shop),
        (true, "create", "events.events.k8s.io", shop),
        (true, "update", "leases.coordination.k8s.io/tidegate-b-c", home),
        (true, "watch", "configmaps/tidegate-brake", home),
        (true, "get", "namespaces/kube-system", home),
        (false, "update", "leases.coordination.k8s.io/tidegate-c", home),
        (false, "list", "configmaps", home),
        (false, "patch", "deployments.apps", home),
        (false, "get", "secrets", home),
        (false, "get", "secrets", shop),
        (false, "list", "secrets", shop),
        (false, "patch", "secrets", shop),
        (true, "delete", "pods", shop),
        (false, "create", "pods", shop),
        (false, "list", "configmaps", foreign),
        (false, "list", "namespaces", home),
        (false, "create", "rolebindings.rbac.authorization.k8s.io", shop),
    ];
    // The API server learns of roles a moment after they are there.
    let all = async || {
        for (_, verb, what, namespace) in rights.iter().filter(|(allowed, ..)| *allowed) {
            if !places.may(user, verb, what, namespace).await {
                eprintln!("it may not {verb} {what} in {namespace}");
                return None;
            }
        }
        Some(())
    };
    eventually("all that it needs", all).await;
    let mut wrong = Vec::new();
    for (_, verb, what, namespace) in rights.iter().filter(|(allowed, ..)| !allowed) {
        if places.may(user, verb, what, namespace).await {
            wrong.push(format!("{verb} {what} in {namespace}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

async fn a_namespace_that_is_not_there_is_told_of_before_anything_is_made(places: &Places) {
    let mut wanted = places.values("absent");
    wanted["namespaces"].as_array_mut().unwrap().push("no-such-namespace".into());
    let said = places.install(&places.home, "tide", &wanted).await.unwrap_err();
    let sentence = "- namespaces: no-such-namespace is not in this cluster: make it first (kubectl create namespace";
    assert!(said.contains(sentence), "{said}");
    assert_eq!(standing(&places.client, "tide--absent").await, BTreeSet::new());
    let releases = places.helm(&places.home, &["list", "--short"]).await;
    assert_eq!(releases.as_deref().map(str::trim), Ok(""), "no release that would have to be cleared away");
}

async fn an_instance_that_another_release_has_is_refused(places: &Places) {
    let Places { home, other, .. } = places;
    let said = places.install(other, "tide", &places.values("b-c")).await.unwrap_err();
    let sentence = format!("- instance: b-c is that of the release a in namespace {home}:\n  give each its own");
    assert!(said.contains(&sentence), "{said}");
    assert_eq!(standing(&places.client, "tide--b-c").await, BTreeSet::new());
    // Of oneself it is no other's.
    let chart = chart();
    let again = ["upgrade", "a", chart.to_str().unwrap()];
    helm_in(places.bed, home, &again, Some(places.values("b-c"))).await.unwrap();
}

async fn the_api_server_takes_all_that_can_be_asked_for_and_notes_say_what_is_next(places: &Places) {
    let home = &places.other;
    // What the Prometheus operator would have to bring is left out.
    let monitors = json!({"serviceMonitor": {"enabled": false}, "prometheusRule": {"enabled": false}});
    let here = json!({"instance": "all", "namespaces": [places.shop]});
    let values = with(&with(&super::all(), &here), &monitors);
    let notes = places.install(home, "a", &values).await.unwrap();
    for line in [
        format!("kubectl --namespace {home} create secret generic tidegate-git --from-file=credentials=FILE"),
        "tidegate/all/state                       the controller's own user, without reviews or checks".to_owned(),
        format!("helm --namespace {home} test a"),
        format!("kubectl --namespace {home} create configmap tidegate-brake --from-literal=all=hold"),
    ] {
        assert!(notes.lines().any(|found| found.trim() == line), "{line} in\n{notes}");
    }
    let standing = standing(&places.client, "a--all").await;
    for kind in ["NetworkPolicy", "ConfigMap", "Deployment"] {
        assert!(standing.iter().any(|line| line.starts_with(&format!("{kind} "))), "{kind} in {standing:?}");
    }
}
