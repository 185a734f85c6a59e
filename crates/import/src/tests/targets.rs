//! What Canaries of Flagger roll out: Services and DaemonSets; and the ports that they discover.

use super::*;

/// How a target is imported whose Canary is changed so, and what is said of a field.
fn imported_with(files: &[(&str, &str)], from: &str, to: &str, field: &str) -> (String, String) {
    let text = files[0].1.replacen(from, to, 1);
    assert_ne!(text, files[0].1, "{from}");
    let imported = imported(Tool::Flagger, &[("a.yaml", &text)]);
    assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
    let said = imported.fields.iter().find(|note| note.path == field).map(|note| note.text.clone());
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

/// The ports of the Service that is made where the Canary and the Deployment's containers are so, and what is said of the discovery.
fn discovered(service: &str, containers: &str) -> (String, String) {
    let text = format!(
        "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {{name: web, namespace: shop}}\nspec:\n  provider: kubernetes\n  \
         targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  service: {{{service}, portDiscovery: true}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{containers}]}}}}\n"
    );
    let imported = imported(Tool::Flagger, &[("a.yaml", &text)]);
    assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
    let parsed = tidegate_controller::manifest::yaml::parse(
        &"a.yaml".parse().unwrap(),
        imported.files[1].text.as_bytes(),
        tidegate_controller::manifest::yaml::Dialect::Kubernetes,
    );
    let ports = parsed.documents[0].at("/spec/ports").unwrap().value();
    let one = |port: &Value| {
        assert_eq!(port["protocol"], "TCP");
        format!("{}:{}:{}", port["name"], port["port"], port["targetPort"]).replace('"', "")
    };
    let said = imported.fields.into_iter().find(|note| note.path == "spec.service.portDiscovery").unwrap();
    (
        ports.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(" "),
        format!("{}: {}", said.outcome.words(), said.text),
    )
}

#[test]
fn c_28_ports_are_discovered_as_flagger_does_and_always_in_the_same_order() {
    let web = "{name: web, image: a, ports: [{containerPort: 8080}, {name: metrics, containerPort: 9797}, {containerPort: 9999}]}";
    let proxies = "{name: istio-proxy, image: a, ports: [{containerPort: 15090}]}, {name: envoy, image: a, ports: [{containerPort: 9901}]}";
    let cache = "{name: cache, image: a, ports: [{containerPort: 6379}]}, {name: none, image: a}";
    let all = format!("{proxies}, {web}, {cache}");
    let mine = "metrics:9797:9797 tcp-web-2:9999:9999 tcp-cache-0:6379:6379";
    // The port is left out where no target port says another one.
    let cases = [
        ("port: 8080", format!("http:8080:8080 {mine}")),
        ("port: 80, targetPort: 8080", format!("http:80:8080 {mine}")),
        (
            "port: 80, targetPort: metrics, portName: grpc",
            "grpc:80:metrics tcp-web-0:8080:8080 tcp-web-2:9999:9999 tcp-cache-0:6379:6379".to_owned(),
        ),
    ];
    for (service, ports) in cases {
        let (found, said) = discovered(service, &all);
        assert_eq!(
            (found, said.as_str()),
            (ports, "imported: the Service: the ports of the pods' containers"),
            "{service}"
        );
    }
    // What the API server would not take is left out, and told.
    let same = "{name: a, image: a, ports: [{name: http, containerPort: 81}, {containerPort: 80}]}, {name: b, image: a, ports: [{containerPort: 82}]}";
    let (found, said) = discovered("port: 80, targetPort: 82", same);
    assert_eq!(found, "http:80:82");
    assert!(said.starts_with("differs: the Service, but for http (81), tcp-a-1 (80)"), "{said}");
    // Without the Deployment nobody knows them.
    let note = imported(Tool::Flagger, &CANARY[..1])
        .fields
        .into_iter()
        .find(|note| note.path.ends_with("portDiscovery"))
        .unwrap();
    assert_eq!(
        (note.outcome, note.text.contains("not among the files")),
        (FieldOutcome::DoneOtherwise, true),
        "{note:?}"
    );
}
