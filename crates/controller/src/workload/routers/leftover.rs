//! Routes to copies of the Service, as another tool has left them where the layout is `primary`.
//!
//! All of them are looked at in the words of an HTTPRoute. What Flagger leaves of `nginx` leads to the Service itself.

use super::http_form::HttpRouteForm;
use super::{Routing, gateway_api, routing};
use crate::manifest::desired::Router;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items_mut, section};
use serde_json::Value;

/// A route that leads to the Service's copy, as if it led to the Service itself, which leads to the same pods. What it says in
/// more words than it needs is left out: to be compared with another one, not to be written.
#[must_use]
pub fn without_copies(router: &Router, live: &Object, copy: &ObjectName) -> Object {
    let routing = routing(router);
    let Some(HttpRouteForm { route: mut words, service }) = words(router, &*routing, live) else { return live.clone() };
    let namespace = live.reference().namespace.as_str();
    for backend in rules_of(&mut words).flat_map(|rule| items_mut(rule, "backendRefs")) {
        let said = |key: &str, value: &Value| match key {
            "kind" => value != "Service",
            "namespace" => value != namespace,
            key => key != "was",
        };
        section(backend, &[]).retain(|key, value| said(key, value));
    }
    let mut led = gateway_api::without_copies(&words, service, copy);
    for rule in rules_of(&mut led) {
        // Alone it gets everything, whatever its weight.
        if let Some([backend]) = rule.get_mut("backendRefs").and_then(Value::as_array_mut).map(Vec::as_mut_slice) {
            section(backend, &[]).shift_remove("weight");
            if let Some(own) = backend.get_mut("own") {
                section(own, &[]).shift_remove("weight");
            }
        }
    }
    routing.with_http_route(live, led)
}

/// What is written over a live route that leads to the copy, before `wanted` is.
#[must_use]
pub fn next(router: &Router, wanted: &Object, live: &Object, copy: &ObjectName) -> Option<Object> {
    let routing = routing(router);
    let live = words(router, &*routing, live)?;
    let next = gateway_api::next(&routing.as_http_route(wanted)?.route, &live.route, live.service, copy)?;
    Some(routing.with_http_route(wanted, next))
}

/// Whether a live route names both the Service and its copy.
#[must_use]
pub fn names_both(router: &Router, live: &Object, copy: &ObjectName) -> bool {
    let routing = routing(router);
    words(router, &*routing, live).is_some_and(|words| gateway_api::names_both(&words.route, words.service, copy))
}

fn rules_of(words: &mut Object) -> impl Iterator<Item = &mut Value> {
    items_mut(&mut words.value_mut()["spec"], "rules")
}

/// The object in the words of an HTTPRoute, if it is the router's route.
fn words<'a>(router: &Router, routing: &'a dyn Routing, live: &Object) -> Option<HttpRouteForm<'a>> {
    let reference = live.reference();
    (router.route() == Some((reference.kind, &reference.name))).then(|| routing.as_http_route(live))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;
    use crate::workload::fixtures::{name, object};
    use serde_json::json;

    fn istio() -> Router {
        Router::Istio { virtual_service: name("web"), service: name("web") }
    }

    fn traefik() -> Router {
        Router::Traefik { traefik_service: name("web"), service: name("web") }
    }

    fn mesh(http: Value) -> Object {
        object(Kind::VirtualService, "web", json!({"spec": {"hosts": ["web"], "http": http}}))
    }

    fn weighted(services: Value) -> Object {
        object(Kind::TraefikService, "web", json!({"spec": {"weighted": {"services": services}}}))
    }

    fn to(host: &str, weight: u32) -> Value {
        json!({"destination": {"host": host}, "weight": weight})
    }

    #[test]
    fn what_flagger_leaves_is_like_what_leads_to_the_service() {
        let copy = name("web-primary");
        let plain = mesh(json!([{"timeout": "5s", "route": [{"destination": {"host": "web"}}]}]));
        let split = json!([to("web-primary", 100), to("web-canary", 0)]);
        let some = json!([{"headers": {"x-canary": {"exact": "always"}}}]);
        for left in [
            json!([{"timeout": "5s", "route": split.clone()}]),
            json!([{"timeout": "5s", "match": some, "route": split}, {"timeout": "5s", "route": [to("web-primary", 100)]}]),
            json!([{"timeout": "5s", "route": [to("web", 100)]}]),
        ] {
            assert_eq!(without_copies(&istio(), &mesh(left), &copy), without_copies(&istio(), &plain, &copy));
        }
        let plain = weighted(json!([{"name": "web", "port": 80}]));
        let left = weighted(json!([{"name": "web-primary", "namespace": "shop", "port": 80, "weight": 100}]));
        assert_eq!(without_copies(&traefik(), &left, &copy), without_copies(&traefik(), &plain, &copy));
        for other in [
            mesh(json!([{"route": [to("web-primary", 90), to("web-canary", 10)]}])),
            mesh(json!([{"route": [to("web-primary", 100)], "timeout": "6s"}])),
            mesh(json!([{"route": [to("web-primary.other", 100)]}])),
        ] {
            let plain = mesh(json!([{"route": [to("web", 100)]}]));
            assert_ne!(without_copies(&istio(), &other, &copy), without_copies(&istio(), &plain, &copy));
        }
    }

    #[test]
    fn the_service_is_named_then_led_to_and_then_it_is_alone() {
        let copy = name("web-primary");
        let wanted = mesh(json!([{"route": [{"destination": {"host": "web"}}]}]));
        let routes = [
            json!([to("web-primary", 100), to("web-canary", 0)]),
            json!([to("web-primary", 100), to("web-canary", 0), to("web", 0)]),
            json!([to("web-primary", 0), to("web-canary", 0), to("web", 100)]),
        ];
        let [left, named, led] = routes.map(|route| mesh(json!([{"route": route}])));
        assert_eq!(next(&istio(), &wanted, &left, &copy), Some(named.clone()));
        assert_eq!(next(&istio(), &wanted, &named, &copy), Some(led.clone()));
        assert_eq!(next(&istio(), &wanted, &led, &copy), None);
        let both = [&left, &named, &led, &wanted].map(|live| names_both(&istio(), live, &copy));
        assert_eq!(both, [false, true, true, false]);
        let entry = |name: &str, weight: u32| json!({"name": name, "port": 80, "weight": weight});
        let wanted = weighted(json!([{"name": "web", "port": 80}]));
        let named = weighted(json!([entry("web-primary", 100), entry("web", 0)]));
        assert_eq!(next(&traefik(), &wanted, &weighted(json!([entry("web-primary", 100)])), &copy), Some(named));
    }
}
