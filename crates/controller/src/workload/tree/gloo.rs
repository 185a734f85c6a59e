//! What RouteTables hang on, and what they name. Semantics: Gloo's references of VirtualService and RouteTable (`delegateAction`,
//! `RouteTableSelector`), and `route_table_selector.go`.

use super::{Finding, Parent, Tree, named_alone};
use crate::manifest::gloo::IN_MEMORY;
use crate::manifest::object::{Kind, Object, items};
use serde_json::{Map, Value};

/// What has hosts, and delegates.
pub(super) const ROOT: (&str, &str) = ("gateway.solo.io/v1", "VirtualService");
/// Options that routes share.
pub(super) const OPTIONS: (&str, &str) = ("gateway.solo.io/v1", "RouteOption");
/// Where requests are led.
pub(super) const UPSTREAM: (&str, &str) = ("gloo.solo.io/v1", "Upstream");
/// Several of those with shares.
pub(super) const GROUP: (&str, &str) = ("gloo.solo.io/v1", "UpstreamGroup");
/// What Gloo does where something is wrong.
pub(super) const SETTINGS: (&str, &str) = ("gloo.solo.io/v1", "Settings");

/// The routes of what may delegate.
pub(super) fn routes(object: &Object) -> impl Iterator<Item = &Value> {
    let holder = if object.reference().kind == Kind::RouteTable { "/spec" } else { "/spec/virtualHost" };
    object.at(holder).into_iter().flat_map(|holder| items(holder, "routes"))
}

impl Tree {
    pub(super) fn gloo_parents(&self, table: &Object) -> Vec<Parent<'_>> {
        let owners = self.of_kind(named_alone(ROOT)).chain(self.of_kind(Kind::RouteTable));
        let mut found = Vec::new();
        for object in owners.filter(|object| object.reference() != table.reference()) {
            let owner = object.reference().namespace.as_str();
            let all = routes(object).enumerate();
            let all = all.filter_map(|(number, route)| {
                let selects = delegates(&route["delegateAction"], owner, table)?;
                Some(Parent { object, number, route, selects })
            });
            found.extend(all);
        }
        found
    }

    /// What a table names that is not there. What stands in a namespace that is not looked at nobody can tell.
    pub(super) fn gloo_missing(&self, table: &Object, made: &impl Fn(Kind, &str) -> Option<bool>) -> Vec<Finding> {
        let own = table.reference().namespace.as_str();
        let lacks = |kind: Kind, to: &Value, at: String| {
            let name = to["name"].as_str()?;
            let namespace = to["namespace"].as_str().unwrap_or(own);
            let made = (namespace == own).then(|| made(kind, name)).flatten();
            let is_there = made.filter(|made| *made).or_else(|| self.has(kind, namespace, name)).or(made);
            let why = || format!("{at} of the RouteTable names the {kind} {namespace}/{name}, which is not there");
            (is_there == Some(false)).then(|| Finding::Missing(why()))
        };
        let mut found = Vec::new();
        for (i, route) in routes(table).enumerate() {
            let action = &route["routeAction"];
            let single = action.get("single").map(|to| (format!("routes[{i}].routeAction.single"), to));
            let several = items(&action["multi"], "destinations")
                .enumerate()
                .map(|(j, entry)| (format!("routes[{i}].routeAction.multi.destinations[{j}]"), &entry["destination"]));
            for (at, to) in single.into_iter().chain(several) {
                found.extend(to["kube"].get("ref").and_then(|to| lacks(Kind::Service, to, at.clone())));
                let upstream = to.get("upstream");
                let upstream =
                    upstream.filter(|to| to["name"].as_str().is_some_and(|name| !name.starts_with(IN_MEMORY)));
                found.extend(upstream.and_then(|to| lacks(named_alone(UPSTREAM), to, at)));
            }
            let group = action.get("upstreamGroup");
            found.extend(group.and_then(|to| lacks(named_alone(GROUP), to, format!("routes[{i}].routeAction"))));
            let table = route["delegateAction"].get("ref");
            found.extend(table.and_then(|to| lacks(Kind::RouteTable, to, format!("routes[{i}].delegateAction"))));
            let options = items(&route["optionsConfigRefs"], "delegateOptions");
            let at = || format!("routes[{i}].optionsConfigRefs");
            found.extend(options.filter_map(|to| lacks(named_alone(OPTIONS), to, at())));
        }
        found
    }

    /// Whether Gloo replaces the routes that are wrong alone, and goes on with all others. Without that the proxy keeps what it has.
    pub(super) fn replaces_routes(&self) -> bool {
        let settings = self.of_kind(named_alone(SETTINGS)).filter(|one| one.reference().namespace == self.home);
        let mut all = settings.map(|one| one.at("/spec/gloo/invalidConfigPolicy/replaceInvalidRoutes"));
        all.any(|on| on == Some(&Value::Bool(true)))
    }
}

/// Whether an action of an object of that namespace delegates to a table, and then whether by labels. The older spelling goes before both.
fn delegates(action: &Value, owner: &str, table: &Object) -> Option<bool> {
    let own = table.reference();
    let named = |to: &Value| to["name"] == own.name.as_str() && to["namespace"] == own.namespace.as_str();
    if action.get("name").is_some() {
        return named(action).then_some(false);
    }
    match (action.get("ref"), action.get("selector")) {
        (Some(to), _) => named(to).then_some(false),
        (None, Some(selector)) => selects(selector, owner, table).then_some(true),
        (None, None) => None,
    }
}

/// Whether a selector of an object of that namespace takes a table: no namespaces are its own, `*` are all.
fn selects(selector: &Value, owner: &str, table: &Object) -> bool {
    let own = table.reference().namespace.as_str();
    let mut namespaces = items(selector, "namespaces").filter_map(Value::as_str).peekable();
    let here = match namespaces.peek() {
        None => own == owner,
        Some(_) => namespaces.any(|one| one == own || one == "*"),
    };
    let labels = selector["labels"].as_object().into_iter().flat_map(Map::iter);
    let mut labels = labels.map(|(key, value)| table.label(key) == value.as_str());
    here && labels.all(|fits| fits) && items(selector, "expressions").all(|one| is_met(one, table))
}

/// Whether labels meet an expression. One that is not known is met by none.
fn is_met(expression: &Value, table: &Object) -> bool {
    let label = table.label(expression["key"].as_str().unwrap_or_default());
    let values: Vec<&str> = items(expression, "values").filter_map(Value::as_str).collect();
    let is_in = label.is_some_and(|label| values.contains(&label));
    let number = |text: &str| text.parse::<i64>().ok();
    let both = || label.and_then(number).zip(values.first().and_then(|text| number(text)));
    match expression["operator"].as_str().unwrap_or_default() {
        "Equals" | "DoubleEquals" | "In" => is_in,
        "NotEquals" | "NotIn" => !is_in,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "GreaterThan" => both().is_some_and(|(label, bound)| label > bound),
        "LessThan" => both().is_some_and(|(label, bound)| label < bound),
        _ => false,
    }
}
