//! A route that leads to a Service's copies, as Flagger leaves it behind: read as one that leads to the Service.

use super::rules::{Backend, Names, named, narrows, weight};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items, section};
use serde_json::Value;

/// The live route where whoever is sent to `copy` of a Service is sent to the Service itself: the candidate, which gets nothing, is not
/// named, and a rule that only says for some requests what the next one says for all is not there.
///
/// Both lead to the same pods as long as the Service leads to those of its copy. A route that sends anything to the candidate
/// is returned as it is.
pub(in crate::workload::routers) fn without_copies(live: &Object, service: &ObjectName, copy: &ObjectName) -> Object {
    let names = Names::of(live, service);
    let copies = Names::of(live, copy);
    let mut rules: Vec<Value> = Vec::new();
    for rule in items(&live.value()["spec"], "rules") {
        let sums = names.sums(rule);
        if sums.candidate.unwrap_or(0) > 0 || names.mirrors_candidate(rule) {
            return live.clone();
        }
        let meant = items(rule, "backendRefs").filter(|backend| names.backend(backend) != Backend::Candidate);
        let meant = meant.map(|backend| match copies.backend(backend) {
            Backend::Stable => named(backend, service.as_str()),
            Backend::Candidate | Backend::Other => backend.clone(),
        });
        let mut meant: Vec<Value> = meant.collect();
        // Alone it gets everything, whatever its weight is.
        if let [one] = meant.as_mut_slice()
            && weight(one) > 0
        {
            section(one, &[]).insert("weight".to_owned(), 1.into());
        }
        rules.push(super::with_field(rule, "backendRefs", meant));
    }
    let says_the_same = |one: &Value, next: &Value| {
        let all = |rule: &Value| super::with_field(rule, "matches", Vec::new());
        all(one) == all(next) && narrows(one, next)
    };
    let kept = (0..rules.len()).filter(|&n| rules.get(n + 1).is_none_or(|next| !says_the_same(&rules[n], next)));
    let kept = kept.map(|n| rules[n].clone()).collect();
    super::with_rules(live, kept)
}

/// The next step from a live route that leads to the copy to `wanted`: the Service is named beside the copy with a share of nothing, then
/// it has the share, and the copy nothing. None where nothing leads to the copy, and where anything is sent to the candidate.
pub(in crate::workload::routers) fn next(
    wanted: &Object,
    live: &Object,
    service: &ObjectName,
    copy: &ObjectName,
) -> Option<Object> {
    let (names, copies) = (Names::of(live, service), Names::of(live, copy));
    let mut rules: Vec<Value> = Vec::new();
    let mut changed = false;
    for rule in items(&live.value()["spec"], "rules") {
        if names.sums(rule).candidate.unwrap_or(0) > 0 || names.mirrors_candidate(rule) {
            return None;
        }
        let led = items(rule, "backendRefs").find(|b| copies.backend(b) == Backend::Stable && weight(b) > 0);
        let refs: Vec<Value> = match (led, names.sums(rule).stable) {
            (Some(led), None) => {
                let beside = super::with_weight(&named(led, service.as_str()), 0);
                items(rule, "backendRefs").cloned().chain([beside]).collect()
            }
            (Some(led), Some(0)) => {
                let moved = |backend: &Value| match (copies.backend(backend), names.backend(backend)) {
                    (Backend::Stable, _) => super::with_weight(backend, 0),
                    (_, Backend::Stable) => super::with_weight(backend, weight(led)),
                    _ => backend.clone(),
                };
                items(rule, "backendRefs").map(moved).collect()
            }
            (Some(_) | None, _) => {
                rules.push(rule.clone());
                continue;
            }
        };
        changed = true;
        rules.push(super::with_field(rule, "backendRefs", refs));
    }
    changed.then(|| super::with_rules(wanted, rules))
}

/// Whether a rule names both the Service and its copy.
pub(in crate::workload::routers) fn names_both(live: &Object, service: &ObjectName, copy: &ObjectName) -> bool {
    let (names, copies) = (Names::of(live, service), Names::of(live, copy));
    let both = |rule: &Value| names.sums(rule).stable.is_some() && copies.sums(rule).stable.is_some();
    items(&live.value()["spec"], "rules").any(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;
    use crate::workload::fixtures::object;
    use serde_json::json;

    fn check(rules: &Value) -> Value {
        let live = object(Kind::HttpRoute, "web", json!({"spec": {"rules": rules}}));
        let [service, copy] = ["web", "web-primary"].map(|name| name.parse().unwrap());
        without_copies(&live, &service, &copy).value()["spec"]["rules"].clone()
    }

    fn to(name: &str, weight: u32) -> Value {
        json!({"group": "", "kind": "Service", "name": name, "port": 80, "weight": weight})
    }

    #[test]
    fn the_service_is_named_then_led_to_and_then_it_is_alone() {
        let [service, copy] = ["web", "web-primary"].map(|name| name.parse().unwrap());
        let route = |refs: Value| object(Kind::HttpRoute, "web", json!({"spec": {"rules": [{"backendRefs": refs}]}}));
        let wanted = route(json!([to("web", 1)]));
        let left = route(json!([to("web-primary", 100), to("web-canary", 0)]));
        let named = route(json!([to("web-primary", 100), to("web-canary", 0), to("web", 0)]));
        let led = route(json!([to("web-primary", 0), to("web-canary", 0), to("web", 100)]));
        let next = |live: &Object| next(&wanted, live, &service, &copy);
        assert_eq!([next(&left).as_ref(), next(&named).as_ref()], [Some(&named), Some(&led)]);
        let both = [&left, &named, &led, &wanted].map(|live| names_both(live, &service, &copy));
        assert_eq!(both, [false, true, true, false]);
        for other in [&led, &wanted, &route(json!([to("web-primary", 90), to("web-canary", 10)]))] {
            assert_eq!(next(other), None);
        }
    }

    #[test]
    fn what_leads_to_the_copy_leads_to_the_service() {
        let rule = |matches: Value, refs: Value| json!({"matches": matches, "backendRefs": refs});
        let (all, some) = (
            json!([{"path": {"type": "PathPrefix", "value": "/"}}]),
            json!([{
                "path": {"type": "PathPrefix", "value": "/"}, "headers": [{"type": "Exact", "name": "x-canary", "value": "always"}]
            }]),
        );
        let plain = json!([rule(all.clone(), json!([to("web", 1)]))]);
        let left = rule(all.clone(), json!([to("web-primary", 100), to("web-canary", 0)]));
        assert_eq!(check(&json!([left])), plain);
        let split = rule(some, json!([to("web-primary", 100), to("web-canary", 0)]));
        assert_eq!(check(&json!([split, rule(all.clone(), json!([to("web-primary", 100)]))])), plain, "for some users");
        for kept in [
            json!([rule(all.clone(), json!([to("web-primary", 90), to("web-canary", 10)]))]),
            json!([rule(all.clone(), json!([to("other", 3), to("another", 1)]))]),
        ] {
            assert_eq!(check(&kept), kept);
        }
    }
}
