//! What Canaries of Flagger roll out: Services and DaemonSets.

use super::*;

/// How a target is imported whose Canary is changed so, and what is said of a field.
fn imported_with(files: &[(&str, &str)], from: &str, to: &str, field: &str) -> (String, String) {
    let text = files[0].1.replacen(from, to, 1);
    assert_ne!(text, files[0].1, "{from}");
    let imported = imported(Tool::Flagger, &[("a.yaml", &text)]);
    assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
    let said = imported.fields.iter().find(|told| told.path == field).map(|told| told.text.clone());
    (imported.files[0].text.clone(), said.unwrap_or_default())
}

#[test]
fn c_25_c_27_a_service_that_is_the_target_stays_one() {
    let (made, _) = imported_with(ALIAS, "mirror: true", "iterations: 5", "");
    assert!(made.contains("preview: fullSize") && made.contains("service=\\\"podinfo-canary\\\""), "{made}");
    // What needs no pods is left, whatever splits requests; by pods nothing can be split.
    let selector = ALIAS[0]
        .1
        .replace("type: ExternalName, externalName: lb.blue.example.test", "selector: {app: blue}")
        .replace("gateways: [infra/public]", "gatewayRefs: [{name: public, namespace: infra}]");
    let pods = [("a.yaml", selector.as_str())];
    let (made, said) = imported_with(&pods, "provider: istio", "provider: kubernetes", "spec.provider");
    assert!(made.contains("gatewayAPI:") && said.contains("a route splits"), "{said}: {made}");
    let (made, _) = imported_with(&pods, "provider: istio", "provider: contour", "");
    assert!(made.contains("successRate:") && !made.contains("labels:"), "{made}");
    let (made, said) = imported_with(&pods, "port: 80", "port: 80\n    name: web", "spec.service.name");
    assert!(made.contains("service: podinfo\n") && said.contains("as it is the target"), "{said}: {made}");
    // One of another kind of that name, and a Service that nobody has put beside the Canary.
    let of_knative = CANARY[0]
        .1
        .replace("apiVersion: apps/v1\n    kind: Deployment", "apiVersion: serving.knative.dev/v1\n    kind: Service");
    let knative = imported(Tool::Flagger, &[("canary.yaml", &of_knative), CANARY[1]]);
    assert!(knative.files[0].text.contains("    kind: Deployment\n"), "{}", knative.files[0].text);
    let alone = ALIAS[0].1.split("---\n").next().unwrap();
    let expected = imported(Tool::Flagger, &[("a.yaml", alone)]).expected;
    assert_eq!(expected.iter().map(|e| e.object.as_str()).collect::<Vec<_>>(), ["Service podinfo"]);
}

#[test]
fn of_a_daemon_set_nothing_is_imported_that_needs_two_of_them() {
    let iterations = ("stepWeights: [10, 50]", "iterations: 5", "spec.analysis.iterations");
    let users =
        ("stepWeights: [10, 50]", "iterations: 5\n    match: [{headers: {x-a: {exact: b}}}]", "spec.analysis.match");
    let mirror = ("stepWeights: [10, 50]", "stepWeights: [10, 50]\n    mirror: true", "spec.analysis.mirror");
    for (from, to, field) in [iterations, users, mirror] {
        let (made, said) = imported_with(DAEMONS, from, to, field);
        assert!(made.contains("    kind: DaemonSet\n    name: agent\n") && !made.contains("traffic:"), "{made}");
        assert!(!said.is_empty(), "{field}");
    }
}
