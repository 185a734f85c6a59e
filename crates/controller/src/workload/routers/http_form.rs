//! The form of an HTTPRoute in which routes of other kinds are split, and what their destinations are like there.
//!
//! A destination becomes a backend reference that keeps its entry as it stood (`own`), and what it said of name and weight (`was`): what
//! no split has changed is written back as it was.

use super::{Routing, Services};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, ObjectRef, items, section};
use crate::record::posture::Naming;
use serde_json::{Value, json};

/// A route in the words of an HTTPRoute.
pub(super) struct HttpRouteForm<'a> {
    pub(super) route: Object,
    /// Stable's Service.
    pub(super) service: &'a ObjectName,
}

impl<'s> HttpRouteForm<'s> {
    /// An object as these rules, which lead to that Service.
    pub(super) fn of(object: &Object, rules: Vec<Value>, service: &'s ObjectName) -> Self {
        let reference = ObjectRef { kind: Kind::HttpRoute, ..object.reference().clone() };
        Self { route: Object::new(reference, json!({"spec": {"rules": rules}})), service }
    }

    pub(super) fn services<'a>(&'a self, naming: &'a Naming) -> Services<'a> {
        naming.services().unwrap_or(self.service.into())
    }
}

/// The route with a change in the words of an HTTPRoute.
pub(super) fn rewritten(
    routing: &(impl Routing + ?Sized),
    route: &Object,
    change: impl FnOnce(&HttpRouteForm<'_>) -> Object,
) -> Object {
    routing.as_http_route(route).map_or_else(|| route.clone(), |words| routing.with_http_route(route, change(&words)))
}

/// The object with the rules of its form as entries of that list of its `spec`, if it has one.
pub(super) fn with_rules<E: IntoIterator<Item = Value>>(
    object: &Object,
    list: &str,
    form: &Object,
    entries: impl FnMut(&Value) -> E,
) -> Object {
    let mut object = object.clone();
    if object.at(&format!("/spec/{list}")).is_some() {
        let all: Vec<Value> = items(&form.value()["spec"], "rules").flat_map(entries).collect();
        section(object.value_mut(), &["spec"]).insert(list.to_owned(), all.into());
    }
    object
}

/// A destination as the backend reference `to`, with that weight.
pub(super) fn backend(entry: &Value, mut to: Value, weight: u64) -> Value {
    to["weight"] = weight.into();
    to["own"] = entry.clone();
    to["was"] = json!([to["name"], weight]);
    to
}

/// Whether any of these says something else than when it was read.
pub(super) fn changed(backends: &[&Value]) -> bool {
    backends.iter().any(|backend| backend["was"] != json!([backend["name"], backend["weight"]]))
}

/// The name that a backend has by now, where it is another than when it was read.
pub(super) fn renamed(backend: &Value) -> Option<&str> {
    backend["name"].as_str().filter(|name| backend["was"][0] != *name)
}
