use super::{DEFAULTS, MAX_INTEGER, ROWS, pods, referenced_config_maps, revision};
use crate::manifest::diagnostic::MOST;
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::set;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn object(kind: Kind, value: Value) -> Object {
    let (namespace, name) = ("shop".parse().unwrap(), "a".parse().unwrap());
    Object::new(ObjectRef { kind, namespace, name }, value)
}

fn of(kind: Kind, value: &Value) -> String {
    revision([&object(kind, value.clone())]).to_string()
}

#[test]
fn c_5_each_row_of_the_table_is_left_out() {
    assert_eq!(ROWS.len(), DEFAULTS.len());
    let container = |fields: Value| json!({"spec": {"selector": {}, "template": {"spec": {"containers": [fields]}}}});
    let (bare, full) = (
        container(json!({"name": "a", "ports": [{"containerPort": 1}], "livenessProbe": {"httpGet": {"port": 1}}})),
        container(json!({
            "name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}], "resources": {}, "env": null,
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "livenessProbe": {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
        })),
    );
    assert_eq!(of(Kind::Deployment, &bare), of(Kind::Deployment, &full));
    let deployment = |spec: Value| json!({"spec": spec});
    assert_eq!(
        of(Kind::Deployment, &deployment(json!({}))),
        of(
            Kind::Deployment,
            &deployment(json!({"replicas": 1, "revisionHistoryLimit": 10, "strategy":
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}))
        )
    );
    assert_ne!(
        of(Kind::Deployment, &deployment(json!({}))),
        of(Kind::Deployment, &deployment(json!({"strategy": {"type": "Recreate"}})))
    );
    let route = |rule: Value| json!({"spec": {"rules": [rule]}});
    assert_eq!(
        of(Kind::HttpRoute, &route(json!({"backendRefs": [{"name": "a", "port": 1}]}))),
        of(
            Kind::HttpRoute,
            &route(json!({
                "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                "backendRefs": [{"group": "", "kind": "Service", "name": "a", "port": 1, "weight": 1}],
            }))
        )
    );
    // The same field elsewhere is no default.
    assert_ne!(of(Kind::ConfigMap, &json!({"data": {"type": "ClusterIP"}})), of(Kind::ConfigMap, &json!({"data": {}})));
}

#[test]
fn all_references_to_config_maps_are_found() {
    let template = json!({"spec": {
        "volumes": [
            {"name": "v", "configMap": {"name": "volume"}},
            {"name": "w", "projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "no"}}]}},
            {"name": "x", "emptyDir": {}},
        ],
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "init"}}, {"secretRef": {"name": "no"}}]}],
        "containers": [{"env": [
            {"name": "E", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
            {"name": "F", "value": "x"},
            {"name": "G", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "l"}}},
        ]}],
    }});
    assert_eq!(referenced_config_maps(&template), ["env", "init", "projected", "volume"]);
    assert_eq!(referenced_config_maps(&json!(null)), Vec::<String>::new());
}

#[test]
fn c_6_only_what_reaches_the_pods_counts_for_them() {
    let target = object(
        Kind::Deployment,
        json!({"spec": {"template": {"spec": {
        "containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "used"}}]}]}}}}),
    );
    let map = |value: Value| object(Kind::ConfigMap, value);
    let digest = |used: Value, other: Value| {
        let (used, other) = (map(used), map(other));
        pods(&target, &BTreeMap::from([("used", &used), ("other", &other)]))
    };
    let base = digest(json!({"data": {"a": "1"}}), json!({"data": {"a": "1"}}));
    assert_eq!(base, digest(json!({"data": {"a": "1"}}), json!({"data": {"a": "2"}})));
    assert_eq!(base, digest(json!({"data": {"a": "1"}, "metadata": {"labels": {"x": "y"}}}), json!({})));
    assert_ne!(base, digest(json!({"data": {"a": "2"}}), json!({})));
    assert_ne!(base, digest(json!({"binaryData": {"a": "1"}}), json!({})));
}

#[test]
fn attack_44_near_misses() {
    let hash = |value: Value| of(Kind::ConfigMap, &json!({ "x": value }));
    assert_eq!(hash(json!(1)), hash(json!(1.0)));
    assert_eq!(hash(json!(0)), hash(json!(-0.0)));
    assert_eq!(hash(json!({"a": 1, "b": null})), hash(json!({"a": 1})));
    assert_ne!(hash(json!(1)), hash(json!("1")));
    assert_ne!(hash(json!("\u{e9}")), hash(json!("e\u{301}")));
    assert_ne!(hash(json!([1, 2])), hash(json!([2, 1])));
    assert_ne!(hash(json!({"a": {}})), hash(json!({})));
    assert_ne!(hash(json!({"a": ""})), hash(json!({})));
    assert_ne!(hash(json!(false)), hash(json!({})));
}

/// A value without nulls, as deep as manifests are; texts that YAML readers like to take for something else.
fn value() -> impl Strategy<Value = Value> {
    let texts = prop_oneof![
        prop::sample::select(vec![
            "no",
            "08",
            "0x1",
            "1_000",
            "1:30",
            "~",
            "null",
            "true",
            "",
            " ",
            "-",
            "? a",
            "a: b",
            "#",
            "<<",
            "*a",
            "&a",
            "!x",
            "\u{e9}",
            "e\u{301}",
            "\n",
            "a\r\nb",
            "\t",
            "1.0",
            "1e3",
            "{}",
            "\u{1f600}",
            "\u{202e}",
        ])
        .prop_map(ToOwned::to_owned),
        "[a-zA-Z0-9 :#'\"\\\\-]{0,12}",
    ];
    let safe = i64::try_from(MAX_INTEGER).unwrap();
    let leaf = prop_oneof![
        texts.prop_map(Value::from),
        (-safe..=safe).prop_map(Value::from),
        (-1_000_000_i32..1_000_000).prop_map(|n| Value::from(f64::from(n) / 64.0)),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z0-9/._ -]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Block YAML with the keys backwards, a null beside each, whole numbers as fractions: another text, the same meaning.
fn block(value: &Value, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields.iter().rev() {
                out.push_str(&format!("\n{pad}{}:", Value::from(key.as_str())));
                block(field, indent + 1, out);
            }
            out.push_str(&format!("\n{pad}\"an absent field\":"));
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("\n{pad}-"));
                block(item, indent + 1, out);
            }
        }
        Value::Number(n) if n.as_i64().is_some_and(|n| n.abs() < 1_000_000) => out.push_str(&format!(" {n}.0")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            out.push_str(&format!(" {value}"));
        }
    }
}

fn read(text: &str) -> String {
    let files =
        set::SetFiles::from([("a.yaml".parse().unwrap(), (crate::manifest::oid::blob(b""), text.as_bytes().into()))]);
    let (items, found) = set::read(&files, None, &"shop".parse().unwrap());
    assert!(found.is_empty(), "{found:#?}\n{text}");
    revision(items.values().map(|item| &item.object)).to_string()
}

/// Two values that a JSON reader cannot tell apart: numbers by what they are worth.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Attack 44: equal meaning ⇔ equal hash.
    #[test]
    fn attack_44_equal_meaning_is_equal_hash(a in value(), b in value()) {
        let whole = |spec: &Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": spec});
        let mut other = String::new();
        block(&whole(&a), 0, &mut other);
        prop_assert_eq!(read(&whole(&a).to_string()), read(&other));
        prop_assert_eq!(read(&whole(&a).to_string()) == read(&whole(&b).to_string()), same(&a, &b));
    }

    /// No text makes the reader panic, whatever it says.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9:{}\\[\\],&*!|>'\"%@`#? \n\t<~.-]{0,200}") {
        let files = set::SetFiles::from([("a.yaml".parse().unwrap(), (crate::manifest::oid::blob(b""), text.as_bytes().into()))]);
        let (_, found) = set::read(&files, None, &"shop".parse().unwrap());
        prop_assert!(found.len() <= MOST && found.iter().all(|d| d.line > 0 && d.column > 0));
    }
}

#[test]
fn c_26_what_the_server_allots_makes_no_other_service() {
    let of = |spec: Value| super::service(&object(Kind::Service, json!({"spec": spec})));
    let asked = json!({"selector": {"app": "a"}, "ports": [{"port": 80}]});
    let plain = of(asked.clone());
    let with = |more: Value| {
        let mut spec = asked.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        of(spec)
    };
    let same = [
        json!({"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "fd00::1"]}),
        json!({"clusterIP": ""}),
        json!({"healthCheckNodePort": 30_001}),
        json!({"ports": [{"port": 80, "nodePort": 30_080, "protocol": "TCP"}]}),
        json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "externalName": null}),
    ];
    for more in same {
        assert_eq!(with(more.clone()), plain, "{more}");
    }
    let other = [
        json!({"clusterIP": "None"}),
        json!({"selector": {"app": "b"}}),
        json!({"ports": [{"port": 81}]}),
        json!({"ports": [{"port": 80, "targetPort": 8080}]}),
        json!({"type": "NodePort"}),
        json!({"type": "ExternalName", "externalName": "a.example.net"}),
    ];
    let all: std::collections::BTreeSet<_> = other.map(|more| with(more).to_string()).into();
    assert_eq!((all.len(), all.contains(plain.as_str())), (6, false));
    assert_ne!(
        of(json!({"type": "ExternalName", "externalName": "a.example.net"})),
        of(json!({"type": "ExternalName", "externalName": "b.example.net"}))
    );
    // A Service without a spec, and one that is none, are read without a word.
    for odd in [json!(null), json!("x"), json!({"ports": {"a": 1}}), json!({"ports": [1, null]})] {
        of(odd);
    }
}
