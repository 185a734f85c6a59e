use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_controller::record::state::Time;

fn config_map() -> &'static Schema {
    Schema::of("v1", "ConfigMap").unwrap()
}

fn object(more: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}});
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn at(second: i64) -> Time {
    Time::from_timestamp(1_000_000_000 + second, 0).unwrap()
}

fn writer(manager: &str, operation: Operation, second: i64) -> FieldWriter<'_> {
    FieldWriter { manager, operation, subresource: None, now: at(second) }
}

const APPLY: Operation = Operation::Apply { force: false };
const FORCE: Operation = Operation::Apply { force: true };

/// Applies data.
fn apply(live: Option<&Value>, manager: &str, data: &Value, second: i64) -> Result<FieldsWritten, FieldRefusal> {
    write(config_map(), live, &object(&json!({"data": data})), &writer(manager, APPLY, second))
}

/// What each manager owns of `data`, with the second of its entry.
fn owners(object: &Value) -> Vec<(String, Value, i64)> {
    let entry = |entry: &Value| {
        let time: Time = entry["time"].as_str().unwrap().parse().unwrap();
        (
            entry["manager"].as_str().unwrap().to_owned(),
            entry["fieldsV1"]["f:data"].clone(),
            (time - at(0)).num_seconds(),
        )
    };
    managed_fields(object).iter().map(entry).collect()
}

fn owner(manager: &str, data: Value, second: i64) -> (String, Value, i64) {
    (manager.to_owned(), data, second)
}

#[test]
fn what_a_manager_no_longer_applies_goes_unless_somebody_else_owns_it() {
    let live = apply(None, "a", &json!({"k": "1", "l": "1", "m": "1"}), 1).unwrap().object;
    let live = apply(Some(&live), "b", &json!({"l": "1"}), 2).unwrap().object;
    let live = apply(Some(&live), "a", &json!({"k": "1"}), 3).unwrap().object;
    assert_eq!(live["data"], json!({"k": "1", "l": "1"}));
    // The first entry of `b` changed no value, so that it has no time.
    assert_eq!(live["metadata"]["managedFields"][0]["time"], Value::Null);
    assert_eq!(live["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:l": {}}}));
}

#[test]
fn a_conflict_names_every_field_and_its_owner() {
    let live = apply(None, "a", &json!({"k": "1", "l": "1"}), 1).unwrap().object;
    let refusal = apply(Some(&live), "b", &json!({"k": "2"}), 2).unwrap_err();
    let cause =
        |field: &str| json!({"reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": field});
    assert_eq!(
        refusal.status(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Apply failed with 1 conflict: conflict with \"a\": .data.k",
            "reason": "Conflict", "details": {"causes": [cause(".data.k")]}, "code": 409,
        })
    );
    let merged = object(&json!({"data": {"k": "3", "l": "1"}}));
    let live = write(config_map(), Some(&live), &merged, &writer("c", Operation::Update, 3)).unwrap().object;
    let refusal = apply(Some(&live), "b", &json!({"k": "2", "l": "2"}), 4).unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.l\nconflicts with \"c\" using v1:\n- .data.k"
    );
}

#[test]
fn force_takes_what_differs_and_shares_what_is_equal() {
    let live = apply(None, "a", &json!({"k": "1", "l": "1"}), 1).unwrap().object;
    let sent = object(&json!({"data": {"k": "2", "l": "1"}}));
    let live = write(config_map(), Some(&live), &sent, &writer("b", FORCE, 2)).unwrap().object;
    assert_eq!(owners(&live), [owner("a", json!({"f:l": {}}), 1), owner("b", json!({"f:k": {}, "f:l": {}}), 2)]);
}

#[test]
fn an_apply_that_changes_nothing_leaves_the_object_and_its_times() {
    let live = apply(None, "a", &json!({"k": "1"}), 1).unwrap().object;
    let written = apply(Some(&live), "a", &json!({"k": "1"}), 9).unwrap();
    assert_eq!(written, FieldsWritten { object: live, changed: false });
}

#[test]
fn an_update_owns_what_it_changes() {
    let live = apply(None, "a", &json!({"k": "1", "l": "1"}), 1).unwrap().object;
    let mut sent = live.clone();
    sent["data"] = json!({"k": "2", "l": "1", "m": "1"});
    let live = write(config_map(), Some(&live), &sent, &writer("b", Operation::Update, 2)).unwrap().object;
    assert_eq!(owners(&live), [owner("a", json!({"f:l": {}}), 1), owner("b", json!({"f:k": {}, "f:m": {}}), 2)]);
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let mut sent = object(&json!({"data": {"k": "1"}}));
    sent["metadata"]["managedFields"] = json!([]);
    let live = write(config_map(), Some(&sent), &sent, &writer("a", Operation::Update, 1)).unwrap().object;
    assert!(managed_fields(&live).is_empty());
    let live = apply(Some(&live), "b", &json!({"l": "1"}), 2).unwrap().object;
    assert_eq!(
        owners(&live),
        [owner("b", json!({"f:l": {}}), 2), owner("before-first-apply", json!({".": {}, "f:k": {}}), 2)]
    );
}

#[test]
fn the_status_is_written_at_its_own_place_only() {
    let schema = Schema::of("apps/v1", "Deployment").unwrap();
    let object = |spec: Value, status: Value| {
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec, "status": status,
        });
        object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
        object["spec"]["template"] = template;
        object
    };
    let sent = object(json!({"replicas": 2}), json!({"replicas": 2}));
    let live = write(schema, None, &sent, &writer("a", APPLY, 1)).unwrap().object;
    assert_eq!(live["status"], json!({}));
    let sent = object(json!({"replicas": 5}), json!({"replicas": 2}));
    let status = FieldWriter { subresource: Some("status"), ..writer("a", Operation::Update, 2) };
    let live = write(schema, Some(&live), &sent, &status).unwrap().object;
    assert_eq!((&live["spec"]["replicas"], &live["status"]), (&json!(2), &json!({"replicas": 2})));
    let last = managed_fields(&live).last().unwrap();
    assert_eq!((&last["subresource"], &last["fieldsV1"]), (&json!("status"), &json!({"f:status": {"f:replicas": {}}})));
}

#[test]
fn what_does_not_fit_the_schema_is_a_failure_without_a_reason() {
    let sent = object(&json!({"dat": {}}));
    let refusal = write(config_map(), None, &sent, &writer("a", APPLY, 1)).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (500, ""));
    let message =
        "failed to create typed patch object (shop/c; /v1, Kind=ConfigMap): .dat: field not declared in schema";
    assert_eq!(refusal.message, message);
}

/// Data of up to three keys.
fn data() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(select(vec!["k", "l", "m"]), select(vec!["1", "2"]), 0..=3)
        .prop_map(|data| json!(data))
}

/// Writes by somebody, one after the other.
fn history() -> impl Strategy<Value = Vec<(&'static str, Operation, Value)>> {
    let operation = select(vec![APPLY, FORCE, Operation::Update]);
    proptest::collection::vec((select(vec!["a", "b", "c"]), operation, data()), 0..8)
}

fn after(history: &[(&str, Operation, Value)]) -> Option<Value> {
    let mut live: Option<Value> = None;
    for (second, (manager, operation, data)) in (1..).zip(history) {
        let sent = object(&json!({"data": data}));
        live = write(config_map(), live.as_ref(), &sent, &writer(manager, *operation, second))
            .map(|w| w.object)
            .ok()
            .or(live);
    }
    live
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_manager_owns_exactly_what_it_applied(history in history(), data in data()) {
        let live = after(&history);
        let sent = object(&json!({"data": data}));
        let written = write(config_map(), live.as_ref(), &sent, &writer("a", FORCE, 99)).unwrap();
        let entry = managed_fields(&written.object).iter().find(|e| e["manager"] == "a" && e["operation"] == "Apply");
        let keys = data.as_object().unwrap().keys();
        let wanted: Map<String, Value> = keys.map(|key| (format!("f:{key}"), json!({}))).collect();
        let wanted = if wanted.is_empty() { json!({"f:data": {}}) } else { json!({"f:data": wanted}) };
        prop_assert_eq!(&entry.unwrap()["fieldsV1"], &wanted);
        for (key, value) in data.as_object().unwrap() {
            prop_assert_eq!(&written.object["data"][key], value);
        }
    }

    #[test]
    fn applying_twice_changes_nothing(history in history(), data in data()) {
        // An empty map is stored as none, so that it is new to the API server each time.
        prop_assume!(data != json!({}));
        let live = after(&history);
        let sent = object(&json!({"data": data}));
        let once = write(config_map(), live.as_ref(), &sent, &writer("a", FORCE, 98)).unwrap().object;
        let twice = write(config_map(), Some(&once), &sent, &writer("a", FORCE, 99)).unwrap();
        prop_assert_eq!(&twice.object, &once);
        prop_assert!(!twice.changed);
    }

    #[test]
    fn leaving_all_out_takes_only_what_was_the_managers_own(history in history()) {
        let Some(live) = after(&history) else { return Ok(()) };
        let others: Vec<Value> = managed_fields(&live).iter()
            .filter(|e| e["manager"] != "a" || e["operation"] != "Apply").map(|e| e["fieldsV1"].clone()).collect();
        let sent = object(&json!({}));
        let written = write(config_map(), Some(&live), &sent, &writer("a", APPLY, 99)).unwrap().object;
        for (key, value) in live["data"].as_object().into_iter().flatten() {
            let owned = others.iter().any(|fields| fields["f:data"].get(format!("f:{key}")).is_some());
            let left = written["data"].get(key);
            if owned {
                prop_assert_eq!(left, Some(value));
            }
        }
    }
}
