use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn set(fields: &Value) -> FieldSet {
    FieldSet::read(fields).unwrap()
}

fn fields(set: &FieldSet) -> Value {
    Value::Object(set.write())
}

#[test]
fn fields_v1_is_read_in_any_order_and_written_in_one() {
    let ordered = concat!(
        r#"{"f:a":{},"f:b":{".":{},"f:c":{}},"k:{\"n\":\"x\",\"p\":1}":{".":{},"f:n":{}},"#,
        r#""v:\"x\"":{},"v:true":{},"i:2":{}}"#
    );
    let shuffled = concat!(
        r#"{"i:2":{},"v:true":{},"k:{\"p\":1,\"n\":\"x\"}":{"f:n":{},".":{}},"#,
        r#""v:\"x\"":{},"f:b":{"f:c":{},".":{}},"f:a":{}}"#
    );
    for text in [ordered, shuffled] {
        assert_eq!(fields(&set(&serde_json::from_str(text).unwrap())).to_string(), ordered);
    }
}

#[test]
fn what_nobody_knows_is_left_out_and_nonsense_is_refused() {
    assert_eq!(fields(&set(&json!({"f:a": {}, "z:b": {}}))), json!({"f:a": {}}));
    for nonsense in
        [json!(1), json!({"f": {}}), json!({"fa": {}}), json!({"k:x": {}}), json!({"i:x": {}}), json!({"f:a": 1})]
    {
        assert_eq!(FieldSet::read(&nonsense), Err(Malformed), "{nonsense}");
    }
}

#[test]
fn taking_a_path_leaves_what_is_below_it_unless_all_of_it_goes() {
    let all = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let a = set(&json!({"f:a": {}}));
    assert_eq!(fields(&all.difference(&a)), json!({"f:a": {"f:b": {}}, "f:c": {}}));
    assert_eq!(fields(&all.outside(&a)), json!({"f:c": {}}));
    assert_eq!(fields(&a.difference(&set(&json!({"f:a": {"f:b": {}}})))), json!({"f:a": {}}));
}

#[test]
fn paths_read_as_in_conflicts() {
    let set = set(&json!({
        "f:spec": {"f:list": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:image": {}}}, "f:z": {}},
        "f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}},
    }));
    let paths: Vec<String> = set.paths().iter().map(|path| display(path)).collect();
    let item = r#".spec.list[name="a",port=80]"#;
    assert_eq!(
        paths,
        [r#".metadata.finalizers[="a/b"]"#.to_owned(), ".spec.z".to_owned(), item.to_owned(), format!("{item}.image")]
    );
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let step = (0..4_u8).prop_map(|n| match n {
        0 => Step::field("a"),
        1 => Step::field("b"),
        2 => Step::Value(Literal(json!("x"))),
        _ => Step::Keys(vec![("n".to_owned(), Literal(json!(1)))]),
    });
    vec(vec(step, 1..4), 0..6).prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

fn paths(set: &FieldSet) -> BTreeSet<Vec<Step>> {
    set.paths().into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_set_is_read_back(set in any_set()) {
        prop_assert_eq!(FieldSet::read(&fields(&set)).unwrap(), set);
    }

    #[test]
    fn sets_are_sets(left in any_set(), right in any_set()) {
        let (ours, theirs) = (paths(&left), paths(&right));
        let both = left.intersection(&right);
        prop_assert_eq!(paths(&left.union(&right)), ours.union(&theirs).cloned().collect());
        prop_assert_eq!(paths(&both), ours.intersection(&theirs).cloned().collect());
        prop_assert_eq!(paths(&left.difference(&right)), ours.difference(&theirs).cloned().collect());
        prop_assert_eq!(both.union(&left.difference(&right)), left);
    }
}
