//! What holds for every route and every split.

use super::simulated::{self, Request, candidate_share, requests};
use super::*;
use crate::manifest::desired::HeaderValue;
use proptest::prelude::*;

fn header() -> impl Strategy<Value = Value> {
    let value = prop::sample::select(vec!["1", "2", "2|1"]);
    (prop::sample::select(vec!["a", "b", "A"]), value)
        .prop_map(|(n, v)| if v == "2|1" { pattern(n, v) } else { exact(n, v) })
}

fn one_match() -> impl Strategy<Value = Value> {
    let path = prop::option::of(prop::sample::select(vec!["/", "/x"]));
    (path, prop::collection::vec(header(), 0..2)).prop_map(|(path, headers)| {
        let mut one = json!({"headers": headers});
        if let Some(path) = path {
            one["path"] = json!({"type": "PathPrefix", "value": path});
        }
        one
    })
}

fn backend(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    (prop::sample::select(names), prop::option::of(0_u32..4), 80_u16..82).prop_map(|(name, weight, port)| {
        let mut backend = json!({"name": name, "port": port});
        if let Some(weight) = weight {
            backend["weight"] = weight.into();
        }
        backend
    })
}

fn any_route(names: &'static [&'static str]) -> impl Strategy<Value = Object> {
    let rule = (prop::collection::vec(one_match(), 0..3), prop::collection::vec(backend(names), 1..4))
        .prop_map(|(matches, refs)| json!({"matches": matches, "backendRefs": refs}));
    prop::collection::vec(rule, 1..4).prop_map(|rules| route(rules.into()))
}

fn any_split() -> impl Strategy<Value = Split> {
    let names = prop::sample::select(vec!["a", "b", "c"]);
    let regex = |regex: &str| HeaderValue::Regex { regex: regex.to_owned() };
    let value = prop::sample::select(vec!["1".into(), "2".into(), regex("2|1"), regex("1")]);
    let alternative = prop::collection::btree_map(names.prop_map(str::to_owned), value, 1..3);
    let mirror = prop::sample::select(vec![0_u8, 0, 10, 100]);
    (0_u8..=100, mirror, prop::collection::btree_set(alternative, 0..3)).prop_map(|(weight, mirror, headers)| Split {
        weight: weight.try_into().unwrap(),
        mirror: mirror.try_into().unwrap(),
        headers,
        ..Split::stable()
    })
}

const MANIFEST: &[&str] = &["web", "web", "old"];
const LIVE: &[&str] = &["web", "web-canary", "old"];

fn sum(refs: &Value, of: &str) -> u64 {
    refs.as_array().unwrap().iter().filter(|b| b["name"] == of).map(rules::weight).sum()
}

proptest! {
    #[test]
    fn c_22_weights_add_up_and_no_path_is_lost(base in any_route(MANIFEST), split in any_split()) {
        let rendered = render(&base, &web(), &split);
        let kept: Vec<_> = rules_of(&rendered).as_array().unwrap().iter()
            .filter(|rule| rule["backendRefs"].as_array().unwrap().iter().any(|b| b["name"] != "web-canary"))
            .collect();
        let rules = rules_of(&base).as_array().unwrap();
        prop_assert_eq!(kept.len(), rules.len());
        for (new, old) in kept.iter().zip(rules) {
            let (new_refs, old_refs) = (&new["backendRefs"], &old["backendRefs"]);
            prop_assert_eq!(&new["matches"], &old["matches"]);
            let named = old_refs.as_array().unwrap().iter().any(|b| b["name"] == "web");
            let factor = if named { 100 } else { 1 };
            prop_assert_eq!(sum(new_refs, "web") + sum(new_refs, "web-canary"), sum(old_refs, "web") * factor);
            prop_assert_eq!(sum(new_refs, "web-canary"), sum(old_refs, "web") * u64::from(split.weight.get()));
            prop_assert_eq!(sum(new_refs, "old"), sum(old_refs, "old") * factor);
        }
    }

    #[test]
    fn c_22_what_is_rendered_is_read(base in any_route(MANIFEST), split in any_split()) {
        let rendered = render(&base, &web(), &split);
        prop_assert_eq!(&rendered, &render(&base, &web(), &split));
        if check(&base, &web(), &split).is_ok() {
            let ObservedSplit::Split(seen) = read(&rendered, &web()) else { panic!("foreign") };
            prop_assert!(seen.same(&split), "{seen:?}");
        }
    }

    #[test]
    fn a_header_that_no_rule_asks_for_is_always_read_back(base in any_route(MANIFEST), weight in 0_u8..100) {
        let served = rules_of(&base).as_array().unwrap().iter().any(|r| sum(&r["backendRefs"], "web") > 0);
        let wanted = split(weight, &[&[("c", "1")], &[("c", "2"), ("d", "1")]]);
        if served {
            prop_assert_eq!(read(&render(&base, &web(), &wanted), &web()), ObservedSplit::Split(wanted));
        }
    }

    #[test]
    fn headers_never_widen(base in any_route(MANIFEST), split in any_split()) {
        let rendered = render(&base, &web(), &split);
        for request in requests() {
            if !split.headers.iter().any(|alternative| request.carries(alternative)) {
                let share = candidate_share(&rendered, &request);
                prop_assert!(share <= f64::from(split.weight.get()) + 1e-9, "{request:?}: {share}");
            }
        }
    }

    #[test]
    fn what_is_read_is_never_less_than_what_reaches_the_candidate(live in any_route(LIVE)) {
        if let ObservedSplit::Split(seen) = read(&live, &web()) {
            for request in requests() {
                if !seen.headers.iter().any(|alternative| request.carries(alternative)) {
                    let share = candidate_share_of_both(&live, &request);
                    prop_assert!(share <= f64::from(seen.weight.get()) + 1e-9, "{request:?}: {share} of {seen:?}");
                }
            }
        }
    }

    #[test]
    fn retreat_is_idempotent_and_at_stable(live in any_route(LIVE)) {
        let once = retreat(&live, &web());
        prop_assert_eq!(&retreat(&once, &web()), &once);
        prop_assert_eq!(read(&once, &web()), seen_stable());
        for request in requests() {
            prop_assert!(candidate_share(&once, &request) == 0.0);
            let answered = |route: &Object| simulated::rule_for(route, &request).is_some();
            prop_assert_eq!(answered(&once), answered(&live));
        }
    }

    #[test]
    fn retreat_undoes_render(base in any_route(MANIFEST), split in any_split()) {
        let rendered = render(&base, &web(), &split);
        prop_assert_eq!(retreat(&rendered, &web()), render(&base, &web(), &Split::stable()));
    }
}

fn candidate_share_of_both(route: &Object, request: &Request) -> f64 {
    simulated::share(route, request, "web-canary", &["web", "web-canary"])
}
