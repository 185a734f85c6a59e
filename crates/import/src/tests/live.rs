//! What is read from a cluster in which Flagger or Argo Rollouts manages it.

use super::*;

/// What a tool has made in the cluster is left out and told, and what it has changed is as people wrote it.
#[test]
fn what_is_live_is_imported_as_people_would_have_written_it() {
    for (tool, files, owned) in [(Tool::Flagger, MANAGED, 6), (Tool::Argo, MANAGED_BY_ARGO, 1)] {
        let imported = imported(tool, files);
        let made = manifests(&imported.files);
        let left = [
            "uid:",
            "web-primary",
            "web-canary",
            "kube-root",
            "hash",
            "resourceVersion",
            "rollout.argoproj.io",
            "null",
        ];
        assert_eq!(left.into_iter().filter(|word| made.contains(word)).collect::<Vec<_>>(), [""; 0], "{made}");
        let left_out = imported.fields.iter().filter(|note| note.path.is_empty() && note.text.contains("has it made"));
        assert_eq!(left_out.count(), owned);
    }
}

/// What is live with one change, as it is imported beside its rollout, and what is said of an object.
fn live_with(tool: Tool, text: &str, object: &str) -> (String, String) {
    let imported = imported(tool, &[("live.yaml", text)]);
    assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
    let said = imported.fields.into_iter().find(|note| note.path.is_empty() && note.object == object);
    (imported.files[1].text.clone(), said.map(|note| note.text).unwrap_or_default())
}

#[test]
fn a_target_that_a_tool_keeps_at_none_has_the_pods_that_run_in_its_place() {
    let live = MANAGED[0].1;
    let (made, said) = live_with(Tool::Flagger, live, "Deployment shop/web");
    assert!(
        made.contains("replicas: 3") && said.ends_with("with replicas: 3, as many as run in its place"),
        "{said}: {made}"
    );
    let scaler = "  - apiVersion: autoscaling/v2\n    kind: HorizontalPodAutoscaler\n    metadata: {name: web, namespace: shop, uid: a}\n    \
                  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4}\n";
    let (made, said) = live_with(Tool::Flagger, &format!("{live}{scaler}"), "Deployment shop/web");
    assert!(!made.contains("replicas:") && said.ends_with("the autoscaler web says how many"), "{said}: {made}");
    // Nobody knows it where the copy is not among what was read.
    let (before, after) = live
        .split_once("  - apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: web-primary")
        .unwrap();
    let without = format!("{before}{}", &after[after.find("  - apiVersion: v1").unwrap()..]);
    let note = imported(Tool::Flagger, &[("live.yaml", &without)]).fields;
    assert!(
        note.iter().any(|note| note.path == "spec.targetRef.name" && note.text.contains("say its replicas")),
        "{note:#?}"
    );
    let referred = "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";
    let (start, rest) = MANAGED_BY_ARGO[0].1.split_once("selector: {matchLabels: {app: web}}").unwrap();
    let strategy = &rest[rest.find("      strategy:").unwrap()..];
    let deployment = "  - apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web, namespace: shop, uid: a}\n    spec: {replicas: 0, selector: \
                      {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: a, ports: \
                      [{containerPort: 8080}]}]}}}\n";
    let scaled = format!("{start}{referred}{strategy}{deployment}");
    let (made, said) = live_with(Tool::Argo, &scaled, "Deployment shop/web");
    assert!(!made.contains("replicas:") && said.ends_with("the autoscaler web says how many"), "{said}: {made}");
    let alone = scaled.replace("kind: HorizontalPodAutoscaler", "kind: Other");
    let (made, said) = live_with(Tool::Argo, &alone, "Deployment shop/web");
    assert!(
        made.contains("replicas: 4") && said.ends_with("with replicas: 4, as many as run in its place"),
        "{said}: {made}"
    );
}

#[test]
fn what_a_tool_has_changed_of_an_object_that_it_did_not_make_is_undone() {
    let (before, after) = MANAGED[0]
        .1
        .split_once("      name: web\n      namespace: shop\n      labels: {app: web}\n      ownerReferences: [")
        .unwrap();
    let (_, after) = after.split_once("]\n").unwrap();
    let found = format!("{before}      name: web\n      namespace: shop\n{after}");
    let (made, said) = live_with(Tool::Flagger, &found, "Service shop/web");
    assert!(
        made.contains("selector:\n    app: web\n") && said.contains("leading to the pods of the target"),
        "{said}: {made}"
    );
    let (made, said) = live_with(Tool::Argo, MANAGED_BY_ARGO[0].1, "HorizontalPodAutoscaler shop/web");
    assert!(
        made.contains("kind: Deployment\n    name: web\n") && said.ends_with("for the Deployment web"),
        "{said}: {made}"
    );
    let keda = "  - apiVersion: keda.sh/v1alpha1\n    kind: ScaledObject\n    metadata: {name: NAME, namespace: shop, uid: a, annotations: \
                {autoscaling.keda.sh/paused-replicas: \"0\"}, ownerReferences: [OWNER]}\n    spec: {scaleTargetRef: {name: web}, triggers: []}\n";
    let owner = "{apiVersion: flagger.app/v1beta1, kind: Canary, name: web, uid: a}";
    let (own, copy) =
        (keda.replace("NAME", "web").replace("OWNER", ""), keda.replace("NAME", "web-primary").replace("OWNER", owner));
    let (made, said) = live_with(Tool::Flagger, &format!("{}{own}{copy}", MANAGED[0].1), "ScaledObject shop/web");
    assert!(!made.contains("paused") && said.contains("by which Flagger pauses it"), "{said}: {made}");
    let text = DAEMONS[0].1.replace(
        "metadata: {name: agent, namespace: shop}\nspec:\n  selector",
        "metadata: {name: agent, namespace: shop, uid: a}\nspec:\n  selector",
    );
    let text = text.replace(
        "    spec:\n      containers",
        "    spec:\n      nodeSelector: {flagger.app/scale-to-zero: \"true\"}\n      containers",
    );
    let (made, said) = live_with(Tool::Flagger, &text, "DaemonSet shop/agent");
    assert!(
        !made.contains("nodeSelector") && said.contains("by which Flagger keeps it without pods"),
        "{said}: {made}"
    );
}
