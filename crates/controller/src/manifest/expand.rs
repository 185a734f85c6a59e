//! The phases that a phase of a file stands for: itself, or one for each weight of a ramp.
//!
//! Behind this nothing knows of ramps: plans, records and people's words name the phases that come out of it.

use super::cookie;
use super::desired::{Expose, Gates, HeaderMatch, PhasePlan};
use super::ids::Percent;
use super::raw;
use std::collections::BTreeSet;

/// One phase of a plan, as far as its file tells.
pub(super) struct Part {
    /// Its name; that of a ramp's phase may be longer than a step's may.
    pub(super) name: String,
    /// The share of all requests.
    pub(super) weight: Option<Percent>,
    /// Where that stands, below the phase of the file.
    pub(super) at: String,
}

/// Whether a phase of the file is a ramp.
pub(super) fn is_ramp(
    raw::Expose { headers: _, cookies: _, weight: _, weights, ramp, mirror: _, units: _, preview: _ }: &raw::Expose,
) -> bool {
    !weights.is_empty() || ramp.is_some()
}

/// What a phase of the file stands for, in order.
pub(super) fn parts(phase: &raw::Phase) -> Vec<Part> {
    let part = |weight: Percent, at| Part { name: format!("{}-{weight}", phase.name), weight: Some(weight), at };
    let raw::Expose { headers: _, cookies: _, weight, weights, ramp, mirror: _, units: _, preview: _ } = &phase.expose;
    match ramp {
        _ if !weights.is_empty() => {
            weights.iter().enumerate().map(|(i, weight)| part(*weight, format!("expose/weights/{i}"))).collect()
        }
        Some(ramp) => shares(*ramp).map(|weight| part(weight, "expose/ramp".to_owned())).collect(),
        None => vec![Part { name: phase.name.to_string(), weight: *weight, at: "expose/weight".to_owned() }],
    }
}

/// The shares of a ramp: the last one is its maximum, whether or not the steps meet it.
fn shares(raw::Ramp { step, max }: raw::Ramp) -> impl Iterator<Item = Percent> {
    let before = (step.get()..max.get()).step_by(usize::from(step.get().max(1)));
    before.filter_map(|share| Percent::try_from(share).ok()).chain([max])
}

/// The phases of the plan. Gates and headers of a ramp are those of its first phase: headers stay until promotion, and
/// nobody means to be asked at each step of a ramp.
pub(super) fn phases(phase: &raw::Phase) -> Vec<PhasePlan> {
    let raw::Phase { name: _, before, expose, soak, checks } = phase;
    let headers: BTreeSet<_> = alternatives(expose).filter_map(|(_, headers)| headers.ok()).collect();
    let plan = |(i, part): (usize, Part)| {
        let headers = if i == 0 { headers.clone() } else { BTreeSet::new() };
        Some(PhasePlan {
            name: part.name.parse().ok()?,
            before: if i == 0 { gates(before) } else { Gates::default() },
            expose: Expose {
                headers,
                weight: part.weight,
                mirror: expose.mirror,
                units: expose.units,
                preview: expose.preview,
            },
            soak: *soak,
            checks: checks.clone(),
        })
    };
    parts(phase).into_iter().enumerate().filter_map(plan).collect()
}

/// The alternatives of a phase, those by cookies too, with where they stand below the phase; a header that stands twice in one
/// is an error.
pub(super) fn alternatives(expose: &raw::Expose) -> impl Iterator<Item = (String, Result<HeaderMatch, String>)> {
    let headers =
        expose.headers.iter().enumerate().map(|(j, headers)| (format!("expose/headers/{j}"), folded(headers)));
    let cookies = expose
        .cookies
        .iter()
        .enumerate()
        .map(|(j, cookie)| (format!("expose/cookies/{j}"), by_cookie(cookie)))
        .filter_map(|(at, cookie)| Some((at, Ok(cookie?))));
    headers.chain(cookies)
}

/// The one cookie that an alternative asks for.
fn by_cookie(raw::Cookie(cookie): &raw::Cookie) -> Option<HeaderMatch> {
    cookie.iter().next().map(|(name, value)| cookie::matching(name, value))
}

/// Header names in lower case, as they are compared; the name that stands twice if one does.
fn folded(raw::Headers(headers): &raw::Headers) -> Result<HeaderMatch, String> {
    let mut all = HeaderMatch::new();
    for (name, value) in headers {
        if all.insert(name.to_ascii_lowercase(), value.clone()).is_some() {
            return Err(name.clone());
        }
    }
    Ok(all)
}

/// The gates of a plan.
pub(super) fn gates(raw::Gates { approval, window, webhook, job }: &raw::Gates) -> Gates {
    Gates { approval: *approval, window: window.clone(), webhook: webhook.clone(), job: job.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::desired::HeaderValue;
    use super::*;
    use serde_json::{Value, json};

    fn phase(expose: Value) -> raw::Phase {
        let gates = json!({"approval": "pullRequest"});
        serde_json::from_value(json!({"name": "ramp", "before": gates, "expose": expose, "soak": "1m"})).unwrap()
    }

    fn weights(expose: Value) -> Vec<u8> {
        phases(&phase(expose)).iter().map(|phase| phase.expose.weight.unwrap().get()).collect()
    }

    #[test]
    fn a_ramp_ends_at_its_maximum() {
        for (step, max, expected) in [
            (10, 50, vec![10, 20, 30, 40, 50]),
            (30, 50, vec![30, 50]),
            (50, 50, vec![50]),
            (40, 100, vec![40, 80, 100]),
            (100, 100, vec![100]),
        ] {
            assert_eq!(weights(json!({"ramp": {"step": step, "max": max}})), expected, "{step} {max}");
        }
        assert_eq!(weights(json!({"weights": [1, 5, 60]})), [1, 5, 60]);
    }

    #[test]
    fn the_first_phase_of_a_ramp_has_its_gates_and_headers() {
        let all = phases(&phase(json!({"headers": [{"X-Canary": "always"}], "weights": [10, 20]})));
        let names: Vec<&str> = all.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["ramp-10", "ramp-20"]);
        assert_eq!(all.iter().map(|phase| phase.before.is_empty()).collect::<Vec<_>>(), [false, true]);
        assert_eq!(all.iter().map(|phase| phase.expose.headers.len()).collect::<Vec<_>>(), [1, 0]);
        assert!(all.iter().all(|phase| phase.soak == "1m".parse().unwrap()));
    }

    #[test]
    fn a_phase_of_one_weight_is_itself() {
        let all = phases(&phase(json!({"weight": 10})));
        assert_eq!(all.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(), ["ramp"]);
    }

    #[test]
    fn a_cookie_is_a_pattern_for_exactly_that_cookie() {
        let one = |name: &str, value: &str| {
            let expose = phase(json!({"cookies": [{name: value}]})).expose;
            let (at, headers) = alternatives(&expose).next().unwrap();
            assert_eq!(at, "expose/cookies/0");
            match &headers.unwrap()["cookie"] {
                HeaderValue::Regex { regex } => regex.clone(),
                HeaderValue::Exact(value) => panic!("{value} is no pattern"),
            }
        };
        assert_eq!(one("canary", "always"), "^(.*; *)?canary=always( *;.*)?$");
        assert_eq!(one("a.b", "1|2+"), r"^(.*; *)?a\.b=1\|2\+( *;.*)?$");
        assert_eq!(one("a", ""), "^(.*; *)?a=( *;.*)?$");
    }

    #[test]
    fn a_pattern_of_a_cookie_tells_it_from_its_neighbours() {
        let expose = phase(json!({"cookies": [{"canary": "al.ways"}]})).expose;
        let headers = alternatives(&expose).next().unwrap().1.unwrap();
        let HeaderValue::Regex { regex } = &headers["cookie"] else { panic!("no pattern") };
        let takes = |cookies: &str| {
            let schema = json!({"type": "string", "pattern": regex});
            jsonschema::is_valid(&schema, &json!(cookies))
        };
        for cookies in ["canary=al.ways", "a=1; canary=al.ways", "canary=al.ways; b=2", "a=1;canary=al.ways ;b=2"] {
            assert!(takes(cookies), "{cookies}");
        }
        for cookies in [
            "",
            "xcanary=al.ways",
            "a=canary=al.ways",
            "canary=al.waysx",
            "canary=alxways",
            "canary=",
            "b=2; xcanary=al.ways; c=3",
        ] {
            assert!(!takes(cookies), "{cookies}");
        }
    }
}
