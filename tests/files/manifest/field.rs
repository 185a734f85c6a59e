//! What people have beside a workload, as their repositories hold it, and a team's shared objects.

use crate::tree::{PODINFO_SET, POLICY, Tree, codes};
use std::collections::BTreeSet;
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::{Loaded, load};

const OTHER_KINDS: &str = include_str!("../field/other_kinds.yaml");
const LIST: &str = include_str!("../field/list.yaml");
const SHARED: &str = include_str!("../field/shared_objects.yaml");
const ROLE: &str = "rbac.authorization.k8s.io/Role";
const TEAM: &str = "teams/shop/team/rollout.yaml";

fn with(more: &str) -> Tree {
    let mut tree = Tree::example();
    tree.append(PODINFO_SET, &format!("\n---\n{more}"));
    tree
}

/// What an installation reads that allows these kinds, too.
fn allowing(tree: &Tree, kinds: &[&str]) -> Loaded {
    let kinds: BTreeSet<_> = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
    load(&tree.0, &Caps::default().beside(kinds))
}

fn text(loaded: &Loaded) -> String {
    report(loaded, Output::Text, Colour::Never).text
}

/// The objects of a rollout of known kinds and others.
fn objects(loaded: &Loaded, id: &str) -> Vec<String> {
    let rollout = loaded.rollouts[&id.parse().unwrap()].as_ref().unwrap();
    rollout.set.objects.keys().map(ToString::to_string).collect()
}

#[test]
fn other_kinds_are_applied_and_a_role_only_where_operations_allows_it() {
    let tree = with(OTHER_KINDS);
    let loaded = tree.load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::KindNotAllowed], "{}", text(&loaded));
    let told = text(&loaded);
    for part in [
        "objects of kind \"Role\" (\"rbac.authorization.k8s.io/v1\") are not managed here",
        "caps.kinds: [rbac.authorization.k8s.io/Role] in the Installation",
        "| kind: Role\n",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let allowed = allowing(&tree, &[ROLE]);
    assert_eq!(allowed.errors().len(), 0, "{}", text(&allowed));
    let has = objects(&allowed, "shop/podinfo");
    for object in [
        "ServiceMonitor shop/podinfo",
        "ExternalSecret shop/podinfo",
        "NetworkPolicy shop/podinfo",
        "CronJob shop/nightly",
        "PersistentVolumeClaim shop/data",
        "Role shop/podinfo",
    ] {
        assert!(has.iter().any(|one| one == object), "{object}: {has:?}");
    }
    assert!(!objects(&Tree::example().load(), "shop/podinfo").contains(&"Role shop/podinfo".to_owned()));
}

#[test]
fn a_list_is_two_objects() {
    let has = objects(&with(LIST).load(), "shop/podinfo");
    assert_eq!(has.iter().filter(|one| ["ConfigMap shop/a", "Service shop/b"].contains(&one.as_str())).count(), 2);
}

#[test]
fn a_kind_in_another_version_is_the_same_object() {
    let old = with("apiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nmetadata: {name: s}\n").load();
    let new = with("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s}\n").load();
    let set = |loaded: &Loaded| loaded.rollouts[&"shop/podinfo".parse().unwrap()].as_ref().unwrap().set.clone();
    let (old, new) = (set(&old), set(&new));
    assert!(old.objects.keys().eq(new.objects.keys()));
    assert_ne!(old.revision, new.revision);
    let both = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s}\n---\n\
                apiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nmetadata: {name: s}\n";
    assert_eq!(codes(&with(both).load(), "shop/podinfo"), [Code::Conflict]);
}

#[test]
fn what_stays_refused_says_what_to_do() {
    let of = |api: &str, kind: &str| format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: x}}\n");
    for (text, help) in [
        (of("batch/v1", "Job"), "before: {job: FILE}"),
        (of("v1", "Namespace"), "operations makes namespaces"),
        (of("v1", "Pod"), "a Deployment makes pods"),
        (of("rbac.authorization.k8s.io/v1", "ClusterRole"), "belong to the whole cluster"),
        (of("cert-manager.io/v1", "ClusterIssuer"), "belong to the whole cluster"),
        (of("networking.istio.io/v1beta1", "VirtualService"), "write apiVersion: networking.istio.io/v1"),
        (of("tidegate.io/v1alpha1", "Decision"), "no object of a set"),
        (of("a.example/v1", "Widget"), "caps.kinds: [a.example/Widget] in the Installation"),
        (of("kustomize.config.k8s.io/v1beta1", "Kustomization"), "kustomize build"),
    ] {
        let tree = with(&text);
        // Whatever operations names: what is never managed is not.
        for loaded in [
            tree.load(),
            allowing(&tree, &["rbac.authorization.k8s.io/ClusterRole", "networking.istio.io/VirtualService"]),
        ] {
            assert_eq!(codes(&loaded, "shop/podinfo"), [Code::KindNotAllowed], "{text}");
            let told = self::text(&loaded);
            assert!(told.contains(help), "{told}");
        }
    }
    for unrendered in [
        "kind: ConfigMap\nmetadata: {{ .Values.meta }}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n",
    ] {
        let told = text(&with(unrendered).load());
        assert!(told.contains("a template that was not rendered"), "{told}");
    }
}

#[test]
fn a_tenant_may_have_fewer_kinds_than_the_installation() {
    let narrowed = |kinds: &str| {
        let mut tree = with(OTHER_KINDS);
        let policy =
            tree.text(POLICY).replacen("      allow: []\n", &format!("      allow: []\n      kinds: {kinds}\n"), 1);
        tree.put(POLICY, policy);
        tree
    };
    let of_group = narrowed("[monitoring.coreos.com/ServiceMonitor]");
    let loaded = allowing(&of_group, &[ROLE]);
    let told = text(&loaded);
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::KindNotAllowed; 4], "{told}");
    assert!(told.contains("operations allows it by tenants.shop.kinds in tidegate.yaml"), "{told}");
    let of_role = narrowed("[Deployment, Service, HTTPRoute, ConfigMap, HorizontalPodAutoscaler, PodDisruptionBudget]");
    let loaded = allowing(&of_role, &[ROLE]);
    let told = text(&loaded);
    assert!(told.contains("tenant shop may have no objects of kind NetworkPolicy"), "{told}");
    assert!(told.contains("tenant shop may have no objects of kind batch/CronJob"), "{told}");
    // A kind of that name in another group is another one.
    let loaded = allowing(&narrowed("[projectcalico.org/NetworkPolicy]"), &[ROLE, "projectcalico.org/NetworkPolicy"]);
    let told = text(&loaded);
    assert!(!told.contains("of kind NetworkPolicy") && told.contains("kind batch/CronJob"), "{told}");
    // A tenant is given nothing that the installation has not.
    let beyond = narrowed("[a.example/Widget]");
    let mut beyond_it = beyond.clone();
    beyond_it.put(
        PODINFO_SET,
        Tree::example().text(PODINFO_SET) + "\n---\napiVersion: a.example/v1\nkind: Widget\nmetadata: {name: x}\n",
    );
    let told = text(&beyond_it.load());
    assert!(told.contains("caps.kinds: [a.example/Widget]"), "{told}");
    // Where no installation is at hand nobody knows better than the policy.
    assert_eq!(codes(&load(&beyond_it.0, &Caps::unknown()), "shop/podinfo"), []);
}

#[test]
fn a_kind_that_no_set_has_is_told_where_the_policy_names_it() {
    for (named, expected) in [
        ("Ingres", "expected kinds that may stand in a set"),
        ("CronJob", "expected batch/CronJob"),
        ("ServiceMonitor", "expected monitoring.coreos.com/ServiceMonitor"),
        ("Pod", "expected kinds that may stand in a set"),
        ("rbac.authorization.k8s.io/ClusterRole", "expected kinds whose objects have a namespace"),
    ] {
        let mut tree = Tree::example();
        let policy =
            tree.text(POLICY).replacen("      allow: []\n", &format!("      allow: []\n      kinds: [{named}]\n"), 1);
        tree.put(POLICY, policy);
        let told = text(&tree.load());
        assert!(told.contains(&format!("kind {named} are never managed")) && told.contains(expected), "{told}");
    }
}

#[test]
fn a_kind_that_begins_as_those_of_the_cluster_do_may_have_a_namespace() {
    let tree = with("apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: web}\n");
    let told = text(&tree.load());
    assert!(told.contains("caps.kinds: [postgresql.cnpg.io/Cluster]"), "{told}");
    assert_eq!(codes(&allowing(&tree, &["postgresql.cnpg.io/Cluster"]), "shop/podinfo"), []);
}

#[test]
fn a_template_in_quotes_is_no_image() {
    let mut tree = Tree::example();
    let set = tree.text(PODINFO_SET);
    let image = set.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap().to_owned();
    tree.put(PODINFO_SET, set.replacen(&image, "\"{{ .Values.image }}\"", 1));
    let told = text(&tree.load());
    assert!(told.contains("this image is a template") && told.contains("render it in CI"), "{told}");
}

#[test]
fn a_claim_for_many_is_no_trouble_for_a_copy() {
    let mounting = |mode: &str| {
        let mut tree = Tree::example();
        let mount = "      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n      containers:";
        let set = tree.text(PODINFO_SET).replacen("      containers:", mount, 1);
        let claim = format!("spec: {{accessModes: [{mode}], resources: {{requests: {{storage: 1Gi}}}}}}");
        tree.put(
            PODINFO_SET,
            format!("{set}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\n{claim}\n"),
        );
        text(&tree.load())
    };
    assert!(mounting("ReadWriteOnce").contains("CannotClone"), "{}", mounting("ReadWriteOnce"));
    assert!(!mounting("ReadWriteMany").contains("CannotClone"), "{}", mounting("ReadWriteMany"));
}

#[test]
fn certificates_are_for_hosts_of_their_tenant() {
    let certificate = |names: &str| {
        let spec = format!("spec: {{secretName: x, issuerRef: {{kind: ClusterIssuer, name: public}}, {names}}}");
        let mut tree =
            with(&format!("apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {{name: x}}\n{spec}\n"));
        let policy = tree.text(POLICY);
        let hosts = "      allow: []\n      hosts: ['podinfo.example.org', '*.shop.example.org']\n";
        tree.put(POLICY, policy.replacen("      allow: []\n", hosts, 1));
        text(&tree.load())
    };
    assert!(certificate("dnsNames: [a.blog.example.org]").contains("no host a.blog.example.org"));
    assert!(certificate("commonName: a.blog.example.org").contains("no host a.blog.example.org"));
    let own = certificate("dnsNames: [a.shop.example.org]");
    assert!(!own.contains("a.shop.example.org"), "{own}");
}

#[test]
fn what_grants_rights_grants_what_it_names_to_whom_the_namespace_has() {
    let role = |rules: &str| {
        format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: x}}\nrules: [{rules}]\n")
    };
    let harmless = "{apiGroups: [''], resources: [configmaps], verbs: [get, list]}";
    let alone = |role: &str, subject: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: x}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: x}}\nsubjects: [{subject}]\n"
        )
    };
    let binding = |kind: &str, subject: &str| role(harmless) + "---\n" + &alone(kind, subject);
    let own = "{kind: ServiceAccount, name: x, namespace: shop}";
    for (text, wrong) in [
        (role(harmless), 0),
        (role("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}"), 3),
        (role("{apiGroups: [''], resources: [secrets], verbs: [get]}"), 1),
        (role("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [bind, escalate]}"), 3),
        (binding("Role", own), 0),
        (alone("Role", own), 1),
        (binding("ClusterRole", own), 1),
        (binding("Role", "{kind: ServiceAccount, name: x, namespace: blog}"), 1),
        (binding("Role", "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:authenticated'}"), 1),
    ] {
        let loaded = allowing(&with(&text), &[ROLE, "rbac.authorization.k8s.io/RoleBinding"]);
        assert_eq!(codes(&loaded, "shop/podinfo"), vec![Code::NotPermitted; wrong], "{text}\n{}", self::text(&loaded));
    }
}

/// The example with a rollout without a target, of that spec and these objects.
fn team(spec: &str, objects: &str) -> Tree {
    let mut tree = Tree::example();
    let head = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: team, namespace: shop}\n";
    tree.put(TEAM, format!("{head}spec:\n  manifests: [objects.yaml]\n{spec}"));
    tree.put("teams/shop/team/objects.yaml", objects);
    tree
}

#[test]
fn shared_objects_have_a_rollout_without_a_target() {
    let loaded = team("  target: none\n", SHARED).load();
    assert_eq!(loaded.errors().len(), 0, "{}", text(&loaded));
    assert_eq!(objects(&loaded, "shop/team"), ["ConfigMap shop/team", "NetworkPolicy shop/default-deny"]);
    let gated = team("  target: none\n  promotion: {before: {approval: pullRequest}}\n", SHARED).load();
    assert_eq!(gated.errors().len(), 0, "{}", text(&gated));
}

#[test]
fn without_a_target_nothing_is_exposed() {
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: x}}, \
                template: {metadata: {labels: {a: x}}, spec: {containers: [{name: c, image: 'e:1'}]}}}\n";
    for (spec, objects, expected) in [
        (
            "  target: none\n  phases: [{name: tenth, expose: {weight: 10}}]\n",
            SHARED,
            "without a target nothing is exposed",
        ),
        ("  target: none\n  traffic: {replicas: {service: x}}\n", SHARED, "without a target nothing is exposed"),
        ("  target: none\n", pods, "makes pods"),
        ("  target: none\n", "# nothing\n", "the manifests hold no object"),
        ("  target: nothing\n", SHARED, "expected none, or a mapping with kind and name"),
        ("  target: {kind: None, name: x}\n", SHARED, "\"None\" is not known here"),
        ("  target: [none]\n", SHARED, "is no value for target"),
    ] {
        let loaded = team(spec, objects).load();
        let told = text(&loaded);
        assert!(loaded.rollouts[&"shop/team".parse().unwrap()].is_err() && told.contains(expected), "{spec}{told}");
        assert_eq!(codes(&loaded, "shop/podinfo"), []);
    }
}
