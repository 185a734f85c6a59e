use super::*;
use serde_json::json;
use tidegate_controller::manifest::kinds::Schema;
use tidegate_controller::manifest::object::Kind;

fn root(kind: Kind) -> &'static Type {
    Schema::of(kind.api_version(), kind.as_str()).unwrap().root()
}

fn finalizers(names: &[&str]) -> Value {
    json!({"metadata": {"finalizers": names}})
}

/// The order of a list by value after `over` is laid over `under`.
fn order(under: &[&str], over: &[&str]) -> Vec<String> {
    let merged = merge(root(Kind::ConfigMap), Some(&finalizers(under)), Some(&finalizers(over))).unwrap();
    serde_json::from_value(merged["metadata"]["finalizers"].clone()).unwrap()
}

#[test]
fn items_that_both_have_stand_as_the_applier_wants_and_others_as_far_in_front_as_that_allows() {
    assert_eq!(order(&["a", "b", "c"], &["c", "a"]), ["b", "c", "a"]);
    assert_eq!(order(&["a", "b", "c", "d"], &["x", "d", "y", "b", "z"]), ["a", "c", "x", "d", "y", "b", "z"]);
    assert_eq!(order(&["a"], &["x", "y"]), ["a", "x", "y"]);
    assert_eq!(order(&[], &["x"]), ["x"]);
    assert_eq!(order(&["a", "b"], &[]), ["a", "b"]);
    assert_eq!(order(&["a", "a", "b"], &["a", "x"]), ["a", "x", "b"]);
}

#[test]
fn a_list_with_one_owner_is_replaced() {
    let rules = |name: &str| json!({"spec": {"rules": [{"name": name}]}});
    let merged = merge(root(Kind::HttpRoute), Some(&rules("a")), Some(&rules("b"))).unwrap();
    assert_eq!(merged, rules("b"));
    let set = field_set(root(Kind::HttpRoute), &rules("a")).write();
    assert_eq!(Value::Object(set), json!({"f:spec": {"f:rules": {}}}));
}

#[test]
fn items_are_told_apart_by_their_keys_and_these_have_defaults() {
    let ports = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}]}});
    let set = field_set(root(Kind::Service), &ports).write();
    assert_eq!(
        Value::Object(set),
        json!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}},
        }}})
    );
}

#[test]
fn what_is_new_gone_or_different_is_told_apart() {
    let old = json!({"data": {"a": "1", "b": "1"}, "metadata": {"labels": {"x": "1"}}});
    let new = json!({"data": {"a": "2", "c": "1"}});
    let difference = compare(root(Kind::ConfigMap), &old, &new);
    let fields = |set: &FieldSet| Value::Object(set.write());
    assert_eq!(fields(&difference.modified), json!({"f:data": {"f:a": {}}}));
    assert_eq!(fields(&difference.added), json!({"f:data": {"f:c": {}}}));
    let gone = json!({"f:data": {"f:b": {}}, "f:metadata": {".": {}, "f:labels": {".": {}, "f:x": {}}}});
    assert_eq!(fields(&difference.removed), gone);
}

#[test]
fn an_item_that_is_cut_out_takes_all_that_is_in_it() {
    let containers =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}}}});
    let item = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {}}}}}});
    let rest = without(root(Kind::Deployment), &containers, &FieldSet::read(&item).unwrap());
    assert_eq!(rest["spec"]["template"]["spec"]["containers"], json!([{"name": "b"}]));
}
