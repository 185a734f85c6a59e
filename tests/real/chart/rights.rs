//! What the chart grants and what for, and that releases do not share a name. That it is what the controller needs is
//! seen in the audit log: `controller::rights`.

use super::{RELEASE, all, few, find, with};
use crate::support::helm::{Identity, RBAC, Release};
use crate::support::pages::generated;
use crate::support::rights::Right;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tidegate::cluster::rights;
use tidegate::manifest::ids::Namespace;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::layer::NodeSelector;
use tidegate::manifest::object::Kind;
use tidegate::manifest::other::Other;
use tidegate::manifest::raw::Projection;

/// Where a right holds, as the documents say it.
const SERVED: &str = "each namespace that is served";
const HOME: &str = "its own namespace";
const CLUSTER: &str = "the cluster";

/// What a right is for: where it holds, its kinds (`""` for all that may stand in a set), its verb, and why. This is
/// the one place that says so; `docs/security.md` has it as a table.
const WHY: &[(&str, &str, &str, &str)] = &[
    (SERVED, "", "list", "what is there, at the start and whenever a watch has lost its place"),
    (SERVED, "", "watch", "what changes, by whomever"),
    (SERVED, "", "patch", "server-side apply and its dry runs; field managers of client-side apply are taken over"),
    (
        SERVED,
        "",
        "create",
        "server-side apply of what is not there: first sight, a candidate, a new version's other objects",
    ),
    (SERVED, "", "get", "the object as it is now, before its field managers or fields of the posture are taken over"),
    (SERVED, "", "delete", "what the candidate had, and what a new version no longer has"),
    (
        SERVED,
        "secrets",
        "get",
        "with `rbac.lookUpSecrets`, whether the Secrets that they name are there: by name, and of the metadata alone; with `rbac.copySecrets` the content of one that a rollout tracks, once, when its copy is made",
    ),
    (SERVED, "pods", "list", "whether pods are ready, and why they are not"),
    (SERVED, "pods", "watch", "the same, as soon as it changes"),
    (
        SERVED,
        "pods",
        "delete",
        "a DaemonSet's pods, which become new so; and a StatefulSet's of a version that goes back, where Kubernetes does not replace them",
    ),
    (SERVED, "endpointslices", "list", "which pods receive requests: no weight without a ready one"),
    (SERVED, "endpointslices", "watch", "the same, as soon as it changes"),
    (SERVED, "jobs", "list", "how the Jobs fare that stand before steps"),
    (SERVED, "jobs", "watch", "the same, as soon as it changes"),
    (SERVED, "jobs", "patch", "a Job that stands before a step, made by server-side apply"),
    (SERVED, "jobs", "create", "the same: it is not there yet"),
    (SERVED, "jobs", "delete", "a Job, once its run has ended"),
    (SERVED, "events", "create", "what happens is told on the target"),
    (SERVED, "nodeconfigs", "create", "with `nodes.enabled`, what a node is told that was told nothing yet"),
    (SERVED, "nodeconfigs", "list", "the same, what nodes are told and what they say of it, at the start"),
    (SERVED, "nodeconfigs", "watch", "the same, as soon as it changes"),
    (SERVED, "nodeconfigs", "patch", "the same, what a node is told next; what it says of it is its agent's to write"),
    (CLUSTER, "nodes", "list", "with `nodes.enabled`, the labels of nodes, and whether they are ready, at the start"),
    (CLUSTER, "nodes", "watch", "the same, as soon as it changes"),
    (HOME, "configmaps", "list", "the brake, at the start"),
    (HOME, "configmaps", "watch", "the brake, as soon as it changes"),
    (
        HOME,
        "leases",
        "create",
        "the first to lead makes the Lease; a rule by name cannot say so of what is not there yet",
    ),
    (HOME, "leases", "get", "who leads, and what is noted of times when nobody observed"),
    (HOME, "leases", "update", "to lead, to go on leading, to give it back"),
    (CLUSTER, "namespaces", "get", "its uid says which cluster this is, so that a record is not acted upon in another"),
];

/// What a release for the instance `prod` in the namespace `tidegate` grants, where rollouts live in `shop`, Secrets are looked up and nodes configured.
fn granted() -> BTreeSet<Right> {
    let mut rights = Identity::render("prod", "tidegate", &["shop".to_owned()]).rights;
    let of_nodes = granted_with(&nodes()).into_iter().filter(|right| right.resource.starts_with("node"));
    rights.extend(of_nodes.filter(|right| right.namespace != "blog"));
    rights
}

/// Values with which nodes are configured.
fn nodes() -> Value {
    json!({"nodes": {"enabled": true, "namespace": "shop", "agent": {"files": "/etc/fabric/files"}}})
}

#[test]
fn n_22_with_nodes_doctor_asks_for_exactly_what_is_granted_and_no_status_is_the_controllers() {
    let served: BTreeSet<Namespace> = ["shop", "blog"].map(|name| name.parse().unwrap()).into();
    for kinds in [&[][..], &[Kind::Deployment]] {
        let caps = Caps::new(served.clone(), kinds.iter().copied().collect()).configuring(NodeSelector::default());
        let needed = rights::needed(&"prod".parse().unwrap(), &"delivery".parse().unwrap(), &caps, Projection::Off);
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let mut over = nodes();
        over["kinds"] = json!(names);
        let granted = granted_with(&over);
        assert_eq!(rights_of(needed), granted);
        assert!(granted.iter().all(|right| !right.resource.contains('/')), "{granted:?}");
        assert!(granted.iter().any(|right| right.resource == "configmaps" && right.verb == "create"), "{granted:?}");
    }
}

fn place(right: &Right) -> &'static str {
    match right.namespace.as_str() {
        "shop" => SERVED,
        "tidegate" => HOME,
        "" => CLUSTER,
        other => panic!("{right} is in {other}, which is neither served nor its own"),
    }
}

/// The rights that a line of [`WHY`] is about.
fn meant(right: &Right, (at, kind, verb, _): &(&str, &str, &str, &str)) -> bool {
    let known = || Kind::MANIFEST.iter().map(|kind| kind.plural()).chain(Other::usual().map(|kind| kind.plural()));
    let of_sets = || known().any(|plural| plural == right.resource);
    place(right) == *at && right.verb == *verb && if kind.is_empty() { of_sets() } else { right.resource == *kind }
}

#[test]
fn x_18_every_right_has_one_reason_and_the_documents_tell_it() {
    let mut table = "| where | kinds | verb | why |\n|---|---|---|---|\n".to_owned();
    let (mut kinds, mut told) = (String::new(), BTreeMap::<Right, usize>::new());
    for line in WHY {
        let rights: Vec<Right> = granted().into_iter().filter(|right| meant(right, line)).collect();
        assert!(!rights.is_empty(), "no such right is granted: {line:?}");
        let (at, _, verb, why) = line;
        let now = rights.iter().map(kind).collect::<Vec<_>>().join(", ");
        let same = now == kinds;
        writeln!(table, "| {at} | {} | {verb} | {why} |", if same { "the same" } else { &now }).unwrap();
        kinds = now;
        for right in rights {
            *told.entry(right).or_default() += 1;
        }
    }
    for right in granted() {
        assert_eq!(told.get(&right), Some(&1), "lines in WHY that say what this is for: {right}");
    }
    generated("docs/security.md", "rights", &table);
}

/// The kind of a right as `kubectl` takes it.
fn kind(right: &Right) -> String {
    let Right { group, resource, name, .. } = right;
    let dot = if group.is_empty() { "" } else { "." };
    let named = if name.is_empty() { String::new() } else { format!(" named `{name}`") };
    format!("{resource}{dot}{group}{named}")
}

/// `doctor` asks for what is granted, no more and no less.
#[test]
fn x_18_doctor_asks_for_exactly_what_is_granted() {
    for (projection, shown, copies) in
        [(Projection::Off, false, false), (Projection::On, true, false), (Projection::Off, false, true)]
    {
        let granted = granted_with(&json!({"projection": {"enabled": shown}, "rbac": {"copySecrets": copies}}));
        assert_eq!(asked(&[], projection, copies), granted);
    }
}

/// What a release grants with these values laid over the fewest.
fn granted_with(over: &Value) -> BTreeSet<Right> {
    let account = json!({"kind": "ServiceAccount", "name": "tide--prod", "namespace": "delivery"});
    Right::of(&RELEASE.objects(&with(&few(), over)), &account)
}

/// What `doctor` asks for where these kinds may be written; none stand for all.
fn asked(kinds: &[Kind], projection: Projection, copies: bool) -> BTreeSet<Right> {
    let served: BTreeSet<Namespace> = ["shop", "blog"].map(|name| name.parse().unwrap()).into();
    let caps = Caps::new(served.clone(), kinds.iter().copied().collect());
    let mut needed = rights::needed(&"prod".parse().unwrap(), &"delivery".parse().unwrap(), &caps, projection);
    if copies {
        needed.extend(rights::to_copy(&served));
    }
    rights_of(needed)
}

fn rights_of(needed: Vec<rights::Right>) -> BTreeSet<Right> {
    let right = |right: rights::Right| Right {
        namespace: right.namespace.map(|name| name.to_string()).unwrap_or_default(),
        group: right.group.to_owned(),
        resource: right.resource.to_owned(),
        name: right.name.unwrap_or_default(),
        verb: right.verb.to_owned(),
    };
    needed.into_iter().map(right).collect()
}

#[test]
fn x_18_rights_follow_the_kinds() {
    for kinds in [
        &[Kind::Deployment, Kind::Service, Kind::HttpRoute][..],
        &[Kind::DaemonSet, Kind::Job, Kind::ConfigMap],
        &[Kind::StatefulSet, Kind::ServiceAccount, Kind::ScaledObject, Kind::VirtualService],
    ] {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let granted = granted_with(&json!({"kinds": names}));
        assert_eq!(asked(kinds, Projection::Off, false), granted);
        let written = granted.iter().filter(|right| right.namespace == "shop" && right.verb == "patch");
        let written: BTreeSet<&str> = written.map(|right| right.resource.as_str()).collect();
        assert_eq!(written, kinds.iter().map(|kind| kind.plural()).collect());
        let may = |verb: &str, resource: &str| granted.iter().any(|r| r.verb == verb && r.resource == resource);
        assert!(may("list", "configmaps") && may("watch", "serviceaccounts") && may("list", "pods"), "{granted:?}");
        assert_eq!(may("delete", "pods"), !kinds.contains(&Kind::Deployment));
        assert!(!may("list", "ingresses") && may("watch", "jobs") == kinds.contains(&Kind::Job), "{granted:?}");
    }
}

#[test]
fn x_18_nothing_is_granted_that_could_grant_more() {
    for right in granted() {
        let writes = !["get", "list", "watch"].contains(&right.verb.as_str());
        assert!(!["roles", "rolebindings", "*"].contains(&right.resource.as_str()), "{right}");
        // Who may make a Deployment may mount any Secret beside it: to read one by its name is not more.
        assert!(right.resource != "secrets" || right.verb == "get" && place(&right) == SERVED, "{right}");
        assert!(!["*", "impersonate", "escalate", "bind"].contains(&right.verb.as_str()), "{right}");
        assert!(!right.resource.contains('/'), "{right}");
        assert!(!(writes && right.resource == "namespaces"), "{right}");
        assert!(!(writes && right.resource == "pods") || right.verb == "delete", "{right}");
    }
}

#[test]
fn x_18_secrets_are_looked_up_and_copied_only_where_somebody_has_said_so() {
    let of = |over: Value| -> Vec<String> {
        let secrets = granted_with(&json!({"rbac": over})).into_iter();
        let secrets = secrets.filter(|right| right.resource == "secrets" && right.namespace == "shop");
        secrets.map(|right| right.verb).collect()
    };
    assert_eq!(of(json!({})), [""; 0]);
    assert_eq!(of(json!({"lookUpSecrets": true})), ["get"]);
    assert_eq!(of(json!({"copySecrets": true})), ["create", "get"]);
}

#[test]
fn x_18_pods_run_as_who_has_the_rights_and_nobody_else_has_them() {
    let objects = RELEASE.objects(&few());
    let deployment = find(&objects, "Deployment", "tide--prod");
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], "tide--prod");
    assert_eq!(find(&objects, "ServiceAccount", "tide--prod")["automountServiceAccountToken"], false);
    let account = json!({"kind": "ServiceAccount", "name": "tide--prod", "namespace": "delivery"});
    for binding in objects.iter().filter(|object| object["subjects"].is_array()) {
        assert_eq!(binding["subjects"], json!([account]));
    }
    // In each namespace the same, and as much without pods.
    let rights = Right::of(&objects, &account);
    let alone = RELEASE.objects(&with(&all(), &json!({"replicas": 0, "prometheusRule": {"enabled": false}})));
    assert_eq!(rights, Right::of(&alone, &account));
    let kinds: BTreeSet<_> = alone.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, RBAC.into_iter().chain(["ServiceAccount"]).collect());
    let of = |namespace: &str| -> Vec<Right> {
        let at = rights.iter().filter(|right| right.namespace == namespace);
        at.map(|right| Right { namespace: String::new(), ..right.clone() }).collect()
    };
    assert!(!of("shop").is_empty());
    assert_eq!(of("shop"), of("blog"));
}

#[test]
fn x_18_nothing_in_the_cluster_as_a_whole_can_be_written() {
    let objects = RELEASE.objects(&all());
    let roles: Vec<_> = objects.iter().filter(|object| object["kind"] == "ClusterRole").collect();
    assert_eq!(roles.len(), 1);
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        assert_eq!(rule["verbs"], json!(["get"]), "{rule}");
        assert_eq!(rule["resourceNames"], json!(["kube-system"]), "{rule}");
    }
    for binding in objects.iter().filter(|object| object["kind"] == "RoleBinding") {
        assert_eq!(binding["roleRef"]["kind"], "Role", "{binding}");
    }
}

#[test]
fn attack_95_x_18_there_is_no_crd_no_webhook_and_no_secret() {
    let known = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "Job",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ];
    let objects = RELEASE.objects(&all());
    let kinds: BTreeSet<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), known);
}

#[test]
fn rights_are_left_out_where_somebody_else_grants_them() {
    let kinds = |over: Value| -> BTreeSet<String> {
        let objects = RELEASE.objects(&with(&few(), &over));
        objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    };
    let has = |kinds: &BTreeSet<String>| RBAC.map(|kind| kinds.contains(kind));
    assert_eq!(has(&kinds(json!({}))), [true; 4]);
    assert_eq!(has(&kinds(json!({"rbac": {"create": false}}))), [false, false, true, true]);
    assert_eq!(has(&kinds(json!({"rbac": {"clusterIdentity": false}}))), [true, true, false, false]);
    assert_eq!(has(&kinds(json!({"cluster": {"kubeconfig": {"secretName": "other"}}}))), [false; 4]);
    let mine = json!({"serviceAccount": {"create": false, "name": "mine"}});
    assert!(!kinds(mine.clone()).contains("ServiceAccount"));
    for binding in RELEASE.objects(&with(&few(), &mine)).iter().filter(|o| o["subjects"].is_array()) {
        assert_eq!(binding["subjects"][0]["name"], "mine");
    }
}

/// What no two objects of a cluster have in common.
fn names(release: &Release<'_>, instance: &str) -> BTreeSet<String> {
    let objects = release.objects(&with(&all(), &json!({"instance": instance})));
    let names: Vec<String> = objects
        .iter()
        .map(|object| {
            let metadata = &object["metadata"];
            format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
        })
        .collect();
    let distinct: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    distinct
}

#[test]
fn f_16_no_two_releases_share_a_name() {
    let releases = [
        ("tide", "delivery", "prod"),
        ("tide", "delivery-2", "prod"),
        ("tide", "delivery-2", "test"),
        ("a", "delivery", "b-c"),
        ("a-b", "delivery", "c"),
        ("a-b-c", "delivery", "dashboard"),
        ("a-b", "delivery", "c-dashboard"),
        ("prod", "delivery", "tide"),
    ];
    let all: Vec<_> =
        releases.iter().map(|&(name, namespace, instance)| names(&Release { name, namespace }, instance)).collect();
    for (at, one) in all.iter().enumerate() {
        for (other, name) in all[..at].iter().enumerate() {
            let shared: Vec<_> = one.intersection(name).collect();
            // One release is replaced by another of its name; two of one name and namespace are never there at once.
            let same = releases[at].0 == releases[other].0 && releases[at].1 == releases[other].1;
            assert!(shared.is_empty() || same, "{:?} and {:?} share {shared:?}", releases[at], releases[other]);
        }
    }
}

#[test]
fn all_names_carry_release_and_instance() {
    for object in RELEASE.objects(&all()) {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(name.contains("tide") && name.contains("prod"), "{name}");
        let namespaced = !object["kind"].as_str().unwrap().starts_with("Cluster");
        assert_eq!(object["metadata"]["namespace"].is_string(), namespaced, "{name}");
    }
}
