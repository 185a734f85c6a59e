//! The layouts `primary` and `versioned`: what they go together with, and what they do not.

use crate::tree::{PODINFO, PODINFO_SET, Tree, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// The example with stable's objects in copies.
fn in_copies() -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "{kind: Deployment, name: podinfo}", "{kind: Deployment, name: podinfo, layout: primary}");
    tree
}

const AUTOSCALER: &str = "\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: podinfo}\nspec:\n  \
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}\n  maxReplicas: 3\n";
const READER: &str = "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: reader}\nspec:\n  \
    selector: {matchLabels: {app: reader}}\n  template:\n    metadata: {labels: {app: reader}}\n    \
    spec: {containers: [{name: a, image: \"a:1\", envFrom: [{configMapRef: {name: podinfo}}]}]}\n";
const METRICS: &str = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: metrics}\n\
    spec: {selector: {app: podinfo}, ports: [{port: 9}]}\n";

fn budget(app: &str) -> String {
    format!(
        "\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: podinfo}}\n\
         spec: {{minAvailable: 1, selector: {{matchLabels: {{app: {app}}}}}}}\n"
    )
}

/// With an autoscaler, which alone says how many pods there are.
fn scaled(mut tree: Tree, scaler: &str) -> Tree {
    tree.edit(PODINFO_SET, "  replicas: 2\n", "").append(PODINFO_SET, scaler);
    tree
}

#[test]
fn the_layout_primary_is_read_and_what_it_cannot_do_is_refused() {
    assert_eq!(codes(&in_copies().load(), "shop/podinfo"), []);
    let taken = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: podinfo-primary}\n";
    assert_eq!(codes(&scaled(in_copies(), AUTOSCALER).load(), "shop/podinfo"), []);
    let long = AUTOSCALER.replace("metadata: {name: podinfo}", &format!("metadata: {{name: {}}}", "p".repeat(56)));
    assert_eq!(codes(&scaled(in_copies(), &long).load(), "shop/podinfo"), [Code::NameTooLong]);
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let reader = READER.replace("kind: Deployment", &format!("kind: {kind}"));
        assert_eq!(
            codes(&in_copies().append(PODINFO_SET, &reader).load(), "shop/podinfo"),
            [Code::LayoutLimit],
            "{kind}"
        );
    }
    let table = [(METRICS, Code::SelectorOverlap), (taken, Code::Conflict)];
    for (more, code) in table {
        assert_eq!(codes(&in_copies().append(PODINFO_SET, more).load(), "shop/podinfo"), [code], "{more}");
    }
    // None of these is in the way in place, but for what is called as a copy.
    assert_eq!(codes(&scaled(Tree::example(), AUTOSCALER).load(), "shop/podinfo"), []);
    for more in [READER, METRICS, taken] {
        assert_eq!(codes(&Tree::example().append(PODINFO_SET, more).load(), "shop/podinfo"), [], "{more}");
    }
}

#[test]
fn a_scaled_object_scales_the_target_as_an_autoscaler_does() {
    let keda = |annotations: &str, bounds: &str| {
        format!(
            "\n---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: podinfo, annotations: {{{annotations}}}}}\nspec:\n  \
             scaleTargetRef: {{name: podinfo}}\n  triggers: [{{type: cpu, metadata: {{value: \"60\"}}}}]\n{bounds}"
        )
    };
    let found = |more: &str| codes(&scaled(in_copies(), more).load(), "shop/podinfo");
    assert_eq!(found(&keda("", "")), []);
    assert_eq!(found(&keda("autoscaling.keda.sh/paused-replicas: \"2\"", "")), [Code::Paused]);
    assert_eq!(found(&keda("", "  minReplicaCount: 5\n  maxReplicaCount: 4\n")), [Code::Replicas]);
    assert_eq!(found(&format!("{AUTOSCALER}{}", keda("", ""))), [Code::Conflict]);
}

/// Two that say how many pods there are would take turns.
#[test]
fn a_number_of_pods_beside_an_autoscaler_is_refused() {
    let keda = "\n---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: podinfo}\nspec:\n  \
        scaleTargetRef: {name: podinfo}\n  triggers: [{type: cpu, metadata: {value: \"60\"}}]\n";
    for (layout, scaler) in [(Tree::example(), AUTOSCALER), (in_copies(), AUTOSCALER), (Tree::example(), keda)] {
        let mut tree = layout;
        assert_eq!(codes(&tree.append(PODINFO_SET, scaler).load(), "shop/podinfo"), [Code::Conflict]);
        tree.edit(PODINFO_SET, "replicas: 2", "replicas: null");
        assert_eq!(codes(&tree.load(), "shop/podinfo"), []);
        tree.edit(PODINFO_SET, "replicas: null", "replicas: 2");
        let other = scaler.replace("kind: Deployment, name: podinfo", "kind: Deployment, name: other");
        tree.edit(PODINFO_SET, scaler, &other.replace("{name: podinfo}\n  triggers", "{name: other}\n  triggers"));
        assert_eq!(codes(&tree.load(), "shop/podinfo"), [], "it scales something else");
    }
    let mut tree = Tree::example();
    tree.append(PODINFO_SET, AUTOSCALER);
    let text = report(&tree.load(), Output::Text, Colour::Never).text;
    let told = "the HorizontalPodAutoscaler podinfo says how many pods there are, and so does this";
    assert!(text.contains(told) && text.contains("podinfo.yaml:14:"), "{text}");
}

/// Kubernetes says nothing of an autoscaler whose target is not there.
#[test]
fn an_autoscaler_of_what_is_not_in_the_set_is_warned_of() {
    let warned = |scaler: &str| {
        let loaded = scaled(Tree::example(), scaler).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), []);
        report(&loaded, Output::Text, Colour::Never).text
    };
    assert!(!warned(AUTOSCALER).contains("warning"));
    insta::assert_snapshot!(warned(
        &AUTOSCALER.replace("kind: Deployment, name: podinfo", "kind: Deployment, name: podinf")
    ));
}

/// What there is at the least is the autoscaler's to say.
#[test]
fn a_weight_that_is_no_pod_is_told_with_what_says_how_many_there_are() {
    let mut tree = Tree::example();
    let scaler = AUTOSCALER.replace("podinfo", "worker").replace("minReplicas: 2", "minReplicas: 1");
    tree.edit(WORKER_SET, "  replicas: 4\n", "").append(WORKER_SET, &scaler);
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn another_router_than_a_route_is_refused_with_its_line() {
    let by = |router: &str| {
        let mut tree = in_copies();
        tree.edit(PODINFO, "gatewayAPI: {httpRoute: podinfo, service: podinfo}", router);
        tree.edit(PODINFO, "        headers: [{x-canary: always}]\n        weight: 10", "        weight: 34");
        tree
    };
    insta::assert_snapshot!(report(&by("replicas: {service: podinfo}").load(), Output::Text, Colour::Never).text);
    let mut switched = by("service: podinfo");
    assert_eq!(codes(&switched.load(), "shop/podinfo"), [Code::RouterLimit, Code::RouterLimit], "all or nobody");
    switched.edit(PODINFO, "        weight: 34", "        preview: fullSize");
    switched.edit(PODINFO, "{weight: 50}", "{preview: fullSize}");
    assert_eq!(codes(&switched.load(), "shop/podinfo"), []);
}

#[test]
fn c_30_the_copy_has_a_label_value_of_its_own_that_fits() {
    let mut tree = in_copies();
    let long = "p".repeat(56);
    tree.edit(PODINFO_SET, "matchLabels: {app: podinfo}", &format!("matchLabels: {{app: {long}}}"));
    tree.edit(PODINFO_SET, "labels: {app: podinfo}\n    spec", &format!("labels: {{app: {long}}}\n    spec"));
    tree.edit(PODINFO_SET, "selector: {app: podinfo}", &format!("selector: {{app: {long}}}"));
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::NameTooLong]);
}

#[test]
fn a_budget_for_the_target_alone_is_a_warning() {
    let warnings = |app: &str| {
        let loaded = in_copies().append(PODINFO_SET, &budget(app)).load();
        loaded.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    assert_eq!(warnings("podinfo"), [Code::NotCovered]);
    assert_eq!(warnings("podinfo-primary"), []);
}

/// The example's version, with names of its own.
fn versioned() -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "{kind: Deployment, name: podinfo}", "{kind: Deployment, name: podinfo-v1, layout: versioned}");
    tree.edit(PODINFO, "service: podinfo}", "service: podinfo-v1}");
    tree.name_version("v1");
    tree
}

#[test]
fn t_7_names_of_each_version_may_be_as_long_as_kubernetes_takes_them() {
    assert_eq!(codes(&versioned().load(), "shop/podinfo"), []);
    let own = AUTOSCALER.replace("name: podinfo}\n  max", "name: podinfo-v1}\n  max");
    let beside = |more: &str| versioned().append(PODINFO_SET, more).load();
    for (more, loaded) in [
        (AUTOSCALER, scaled(versioned(), &own).load()),
        (READER, beside(READER)),
        (METRICS, beside(METRICS)),
        ("a budget", beside(&budget("podinfo"))),
    ] {
        assert_eq!(codes(&loaded, "shop/podinfo"), [], "{more}");
        assert_eq!(loaded.warnings, [], "{more}");
    }
    let long = "v".repeat(62);
    let mut tree = versioned();
    let text = |path: &str| Tree::text(&versioned(), path).replace("podinfo-v1", &long);
    let (rollout, set) = (text(PODINFO), text(PODINFO_SET));
    tree.put(PODINFO, rollout).put(PODINFO_SET, set);
    assert_eq!(codes(&tree.load(), "shop/podinfo"), []);
}

#[test]
fn t_7_what_the_layout_versioned_cannot_do_is_refused_with_its_line() {
    let mut shown = String::new();
    for router in ["replicas: {service: podinfo-v1}", "service: podinfo-v1"] {
        let mut tree = versioned();
        tree.edit(PODINFO, "gatewayAPI: {httpRoute: podinfo, service: podinfo-v1}", router);
        tree.edit(PODINFO, "        headers: [{x-canary: always}]\n        weight: 10", "        weight: 34");
        shown += &report(&tree.load(), Output::Text, Colour::Never).text;
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn t_7_two_rollouts_whose_versions_claim_one_name_are_both_rejected() {
    let mut tree = versioned();
    let claimed = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: podinfo-v1}\nspec: {selector: {app: other}, ports: [{port: 9}]}\n";
    let loaded = tree.append(WORKER_SET, claimed).load();
    for rollout in ["shop/podinfo", "shop/worker"] {
        assert_eq!(codes(&loaded, rollout), [Code::Conflict]);
    }
}
