//! What the objects of Istio and ingress-nginx send to a candidate, read as their documents say.

use super::live::share;
use serde_json::Value;
use tidegate::manifest::desired::{HeaderMatch, HeaderValue};
use tidegate::manifest::ids::Percent;
use tidegate::record::posture::Split;

/// What a VirtualService sends to `<service>-canary`: the largest share of any route that names both, the headers of routes that
/// name it alone, and what is copied to it.
pub(super) fn virtual_service(spec: &Value, service: &str) -> Split {
    let canary = format!("{service}-canary");
    let mut split = Split::default();
    for http in items(&spec["http"]) {
        let weight = |name: &str| -> u64 {
            let to = items(&http["route"]).filter(|to| to["destination"]["host"] == name);
            to.map(|to| to["weight"].as_u64().unwrap_or(1)).sum()
        };
        let copied = items(&http["mirrors"]).map(|to| (&to["destination"], &to["percentage"]));
        let copied = copied.chain([(&http["mirror"], &http["mirrorPercentage"])]);
        for (_, percent) in copied.filter(|(to, _)| to["host"] == *canary) {
            split.mirror = split.mirror.max(percent["value"].as_f64().map_or(Percent::ALL, at_least));
        }
        let (stable, new) = (weight(service), weight(&canary));
        let asked: Option<Vec<HeaderMatch>> = http["match"].as_array().map(|all| all.iter().map(headers).collect());
        match asked {
            _ if new == 0 => {}
            Some(asked) if stable == 0 && asked.iter().all(|headers| !headers.is_empty()) => {
                split.headers.extend(asked);
            }
            Some(_) | None => split.weight = split.weight.max(share(new, stable)),
        }
    }
    split
}

fn headers(asked: &Value) -> HeaderMatch {
    let value = |how: &Value| {
        let exact = how["exact"].as_str().map(|value| HeaderValue::Exact(value.to_owned()));
        exact.or_else(|| how["regex"].as_str().map(|regex| HeaderValue::Regex { regex: regex.to_owned() }))
    };
    let all = asked["headers"].as_object().into_iter().flatten();
    all.filter_map(|(name, how)| Some((name.to_lowercase(), value(how)?))).collect()
}

/// What the annotations of a canary Ingress send to it.
pub(super) fn canary_ingress(annotations: &Value) -> Split {
    let said = |what: &str| {
        annotations[format!("nginx.ingress.kubernetes.io/{what}")].as_str().filter(|text| !text.is_empty())
    };
    if said("canary") != Some("true") {
        return Split { weight: Percent::ALL, ..Split::default() };
    }
    let weight = said("canary-weight").map_or(Percent::ZERO, |weight| at_least(weight.parse().unwrap_or(100.0)));
    let value = match (said("canary-by-header-value"), said("canary-by-header-pattern")) {
        (Some(exact), _) => HeaderValue::Exact(exact.to_owned()),
        (None, Some(regex)) => HeaderValue::Regex { regex: regex.to_owned() },
        (None, None) => HeaderValue::Exact("always".to_owned()),
    };
    let header = said("canary-by-header").map(|name| HeaderMatch::from([(name.to_lowercase(), value)]));
    Split { weight, headers: header.into_iter().collect(), ..Split::default() }
}

fn at_least(percent: f64) -> Percent {
    (0..=100u8).find(|n| f64::from(*n) >= percent).and_then(|n| Percent::try_from(n).ok()).unwrap_or(Percent::ALL)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
