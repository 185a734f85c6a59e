//! Fields of Kubernetes objects: what is told of those that do not exist or hold the wrong sort of value. That the real API server
//! says the same of every field is seen in `tests/real/fields.rs`.

use crate::tree::{PODINFO_SET, Tree, source_dir, told};
use serde_json::{Value, json};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::{Code, MOST};
use tidegate::manifest::kinds;

#[test]
fn mistyped_fields_are_shown_with_their_lines() {
    let mut tree = Tree::example();
    for (from, to) in [
        ("  replicas: 2", "  replica: 2"),
        ("{name: http, containerPort: 9898}", "{name: http, containerport: 9898}"),
        ("periodSeconds: 2", "periodSeconds: \"2\""),
        ("          envFrom:\n", "          env: {name: PORT, value: 8080}\n          envFrom:\n"),
        (
            "      containers:\n",
            "      resources: {limits: {memory: 64Mi}}\n      securityContexts: {}\n      containers:\n",
        ),
        ("    - {name: http, port: 80, targetPort: http}", "    - {name: http, port: 80, targetport: http}"),
        ("  hostnames: [shop", "  hostname: [shop"),
    ] {
        tree.edit(PODINFO_SET, from, to);
    }
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn a_field_that_stands_elsewhere_is_told_where() {
    let helps = |from: &str, to: &str| -> Vec<String> {
        let mut tree = Tree::example();
        let loaded = tree.edit(PODINFO_SET, from, to).load();
        told(&loaded).0.iter().map(|warning| warning.help.clone().unwrap_or_default()).collect()
    };
    // One level too far out, one too far in, misspelt, and nothing like any field.
    let inside = helps("      containers:\n", "      readinessProbe: {}\n      containers:\n");
    assert_eq!(inside, ["readinessProbe is a field of containers: look at the indentation"]);
    let outside = helps("    spec:\n", "    spec:\n      replicas: 3\n");
    assert_eq!(outside, ["replicas is a field of spec: look at the indentation"]);
    assert_eq!(helps("  replicas: 2", "  Replicas: 2"), ["did you mean replicas?"]);
    assert_eq!(helps("  replicas: 2", "  zz: 2\n  \"a\\eb\": 1"), ["", ""]);
    let top = helps("\ndata:\n", "\ndataa: {}\ndata:\n");
    assert_eq!(top, ["did you mean data?"]);
}

#[test]
fn an_unknown_field_stops_nothing() {
    let mut tree = Tree::example();
    let loaded = tree.edit(PODINFO_SET, "  replicas: 2", "  replicas: 2\n  fromTheFuture: {a: [1]}").load();
    let (warnings, errors) = told(&loaded);
    assert!(errors.is_empty() && warnings.len() == 1, "{errors:?}");
    assert!(loaded.rollouts.values().all(Result::is_ok));
    let report = report(&loaded, Output::Json, Colour::Never);
    let report = (serde_json::from_str::<Value>(&report.text).unwrap(), report.code);
    assert_eq!((report.0["warnings"][0]["code"].as_str(), report.1), (Some("UnknownField"), 0));
    assert_eq!(report.0["errors"], json!([]));
}

#[test]
fn what_the_api_server_takes_in_several_forms_is_fine() {
    let mut tree = Tree::example();
    for (from, to) in [
        ("targetPort: http", "targetPort: 9898"),
        ("port: http}", "port: 9898}"),
        ("cpu: 10m", "cpu: 1"),
        ("limits: {memory: 64Mi}", "limits: {memory: 64000000, cpu: 0.5, example.test/gpu: 1}"),
        (
            "  replicas: 2\n",
            "  replicas: 2\n  paused:\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}\n",
        ),
        ("  name: podinfo\n  labels", "  name: podinfo\n  creationTimestamp: null\n  labels"),
        (
            "          envFrom:",
            "          command: null\n          env: [{name: A, value: \"8\"}, {name: B, value:}]\n          envFrom:",
        ),
    ] {
        tree.edit(PODINFO_SET, from, to);
    }
    // kubectl's dry run leaves a status behind.
    tree.edit(
        PODINFO_SET,
        "---\napiVersion: v1\nkind: Service",
        "status: {replicas: x, y: z}\n---\napiVersion: v1\nkind: Service",
    );
    let loaded = tree.load();
    assert_eq!(told(&loaded), (vec![], vec![]));
}

#[test]
fn what_is_told_already_is_told_once() {
    let mut tree = Tree::example();
    let loaded = tree.edit(PODINFO_SET, "replicas: 2", "replicas: \"2\"").load();
    let codes: Vec<Code> = told(&loaded).1.iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::Replicas]);
}

#[test]
fn a_hostile_file_has_no_endless_list_of_fields() {
    let mut tree = Tree::example();
    let many = |value: &str| (0..5_000).map(|n| format!("      - {{x{n}: 1, name: {value}}}\n")).collect::<String>();
    let text = format!("    spec:\n      imagePullSecrets:\n{}", many("1"));
    let loaded = tree.edit(PODINFO_SET, "    spec:\n", &text).load();
    let (warnings, errors) = told(&loaded);
    assert_eq!((warnings.len(), errors.len()), (MOST, MOST));
}

#[test]
fn the_documents_name_the_version_whose_fields_are_known() {
    let text = std::fs::read_to_string(source_dir().join("docs/files.md")).unwrap();
    assert!(text.contains(&format!("those that Kubernetes {} and the Gateway API have", kinds::version())));
}

#[test]
fn no_value_is_quoted() {
    let mut tree = Tree::example();
    tree.edit(PODINFO_SET, "  message: Welcome to the shop", "  password: 271828");
    tree.edit(PODINFO_SET, "periodSeconds: 2", "periodSeconds: hunter2");
    // Only the line beneath shows it, as a ConfigMap and a Deployment are no Secrets.
    let text: String = tree.load().errors().iter().map(|error| format!("{error}\n")).collect();
    assert!(text.contains("password is a number") && text.contains("periodSeconds is a text"), "{text}");
    assert!(!text.contains("271828") && !text.contains("hunter2"), "{text}");
}
