use super::*;
use proptest::prelude::*;
use proptest::sample::subsequence;

fn filled(kind: Kind, mut object: Value) -> Value {
    fill(Schema::of(kind.api_version(), kind.as_str()).unwrap(), &mut object);
    object
}

/// A Deployment with these optional fields in its spec, its pods' spec and its container.
fn deployment(spec: Value, pod: Value, container: Value) -> Value {
    let over = |mut base: Value, more: Value| {
        base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        base
    };
    let container = over(json!({"name": "a", "image": "a:1"}), container);
    let pod = over(json!({"containers": [container]}), pod);
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let base = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    json!({"spec": over(base, spec)})
}

#[test]
fn a_deployment_is_stored_with_its_defaults() {
    let object =
        filled(Kind::Deployment, deployment(json!({}), json!({}), json!({"env": [{"name": "A", "value": ""}]})));
    let pod = json!({
        "containers": [{
            "name": "a", "image": "a:1", "env": [{"name": "A"}], "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler", "securityContext": {},
    });
    assert_eq!(
        object["spec"],
        json!({
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
        })
    );
    assert_eq!(object["status"], json!({}));
}

#[test]
fn an_image_without_a_fixed_tag_is_always_pulled() {
    for (image, policy) in [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r:5000/a", "Always"),
        ("r:5000/a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ] {
        let object = filled(Kind::Deployment, deployment(json!({}), json!({}), json!({"image": image})));
        assert_eq!(object.pointer("/spec/template/spec/containers/0/imagePullPolicy"), Some(&json!(policy)), "{image}");
    }
}

#[test]
fn a_strategy_without_rolling_updates_gets_none() {
    let object = filled(Kind::Deployment, deployment(json!({"strategy": {"type": "Recreate"}}), json!({}), json!({})));
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn a_custom_resource_has_the_defaults_of_its_schema_and_keeps_what_is_empty() {
    let route = filled(
        Kind::HttpRoute,
        json!({"spec": {"hostnames": [], "rules": [{"backendRefs": [{"name": "a"}]}], "x": 1}}),
    );
    let reference = json!({"name": "a", "group": "", "kind": "Service", "weight": 1});
    let matches = json!([{"path": {"type": "PathPrefix", "value": "/"}}]);
    assert_eq!(route["spec"], json!({"hostnames": [], "rules": [{"backendRefs": [reference], "matches": matches}]}));
}

#[test]
fn the_target_of_a_services_port_is_the_port() {
    let service = filled(Kind::Service, json!({"spec": {"ports": [{"port": 80}], "selector": {}}}));
    assert_eq!(
        service["spec"],
        json!({
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "type": "ClusterIP",
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        })
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filling_twice_changes_nothing(
        spec in subsequence(vec![
            ("paused", json!(false)), ("strategy", json!({"type": "Recreate"})), ("replicas", json!(0)),
        ], 0..=3),
        pod in subsequence(vec![
            ("volumes", json!([{"name": "v"}, {"name": "c", "configMap": {"name": "c"}}])),
            ("serviceAccountName", json!("x")),
            ("affinity", json!({})), ("tolerations", json!([])), ("unknown", json!(1)), ("hostNetwork", json!(false)),
        ], 0..=6),
        container in subsequence(vec![
            ("ports", json!([{"containerPort": 1}])), ("livenessProbe", json!({"httpGet": {"port": 1}})),
            ("image", json!("a")), ("lifecycle", json!({"preStop": {"httpGet": {"port": 1}}})),
        ], 0..=4),
    ) {
        let map = |fields: Vec<(&str, Value)>| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let once = filled(Kind::Deployment, deployment(map(spec), map(pod), map(container)));
        prop_assert_eq!(filled(Kind::Deployment, once.clone()), once);
    }
}
