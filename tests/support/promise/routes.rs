//! What the objects of Contour, Gloo, Istio, ingress-nginx and Traefik send to a candidate, read as their documents say.

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
    let all = asked["headers"].as_object().into_iter().flatten();
    all.filter_map(|(name, value)| Some((name.to_lowercase(), how(value)?))).collect()
}

fn how(asked: &Value) -> Option<HeaderValue> {
    let exact = asked["exact"].as_str().map(|value| HeaderValue::Exact(value.to_owned()));
    exact.or_else(|| asked["regex"].as_str().map(|regex| HeaderValue::Regex { regex: regex.to_owned() }))
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
    let cookie = said("canary-by-cookie").map(|name| {
        let regex = format!("^(.*; *)?{name}=always( *;.*)?$");
        HeaderMatch::from([("cookie".to_owned(), HeaderValue::Regex { regex })])
    });
    Split { weight, headers: header.into_iter().chain(cookie).collect(), ..Split::default() }
}

/// What a TraefikService sends to `<service>-canary`.
pub(super) fn traefik_service(spec: &Value, service: &str) -> Split {
    let Sums { stable, new, copied } = sums(&spec["weighted"]["services"], service);
    let of = |part: u64, rest: u64| if part == 0 { Percent::ZERO } else { share(part, rest) };
    Split { weight: of(new, stable), mirror: of(copied, stable - copied), ..Split::default() }
}

/// What an IngressRoute sends to `<service>-canary`: the largest share of any route that names both, and the headers of routes that
/// name it alone.
pub(super) fn ingress_route(spec: &Value, service: &str) -> Split {
    let mut split = Split::default();
    for route in items(&spec["routes"]) {
        let part = traefik_service(&serde_json::json!({"weighted": {"services": route["services"]}}), service);
        let rule = route["match"].as_str().unwrap_or_default();
        let asked: Vec<HeaderMatch> = rule.split(" || ").map(headers_of_a_rule).collect();
        if part.weight == Percent::ALL && asked.iter().all(|headers| !headers.is_empty()) {
            split.headers.extend(asked);
        } else {
            split.weight = split.weight.max(part.weight);
        }
        split.mirror = split.mirror.max(part.mirror);
    }
    split
}

/// What an HTTPProxy sends to `<service>-canary`: the largest share of any route that names both, the headers of routes that name it
/// alone, and what is copied to it.
pub(super) fn http_proxy(spec: &Value, service: &str) -> Split {
    let canary = format!("{service}-canary");
    let mut split = Split::default();
    for route in items(&spec["routes"]) {
        let number = |to: &Value| to["weight"].as_u64().unwrap_or(0);
        let (copied, led): (Vec<&Value>, Vec<&Value>) = items(&route["services"]).partition(|to| to["mirror"] == true);
        for to in copied.iter().filter(|to| to["name"] == *canary) {
            // A mirror of weight 0 is one of everything.
            let percent = u8::try_from(number(to)).ok().filter(|percent| *percent > 0);
            let percent = percent.and_then(|percent| Percent::try_from(percent).ok());
            split.mirror = split.mirror.max(percent.unwrap_or(Percent::ALL));
        }
        let even = led.iter().all(|to| number(to) == 0);
        let weight = |name: &str| -> u64 {
            let to = led.iter().filter(|to| to["name"] == *name);
            to.map(|to| if even { 1 } else { number(to) }).sum()
        };
        let (stable, new) = (weight(service), weight(&canary));
        let asked = items(&route["conditions"]).map(|condition| &condition["header"]);
        let asked: HeaderMatch =
            asked.filter_map(|asked| Some((asked["name"].as_str()?.to_lowercase(), how(asked)?))).collect();
        match new {
            0 => {}
            _ if stable == 0 && !asked.is_empty() => drop(split.headers.insert(asked)),
            _ => split.weight = split.weight.max(share(new, stable)),
        }
    }
    split
}

/// What a RouteTable sends to `<service>-canary`: the largest share of any route that names both, and the headers of routes that name it
/// alone.
pub(super) fn route_table(spec: &Value, service: &str) -> Split {
    let canary = format!("{service}-canary");
    let mut split = Split::default();
    for route in items(&spec["routes"]) {
        let named = |to: &Value, name: &str| to["kube"]["ref"]["name"] == *name;
        let weight = |name: &str| -> u64 {
            let several = items(&route["routeAction"]["multi"]["destinations"]);
            let several: u64 =
                several.filter(|to| named(&to["destination"], name)).map(|to| to["weight"].as_u64().unwrap_or(0)).sum();
            several + u64::from(named(&route["routeAction"]["single"], name))
        };
        let (stable, new) = (weight(service), weight(&canary));
        let asked: Vec<HeaderMatch> = items(&route["matchers"])
            .map(|matcher| {
                let header = |header: &Value| {
                    let value = header["value"].as_str()?.to_owned();
                    let pattern = header["regex"] == true;
                    let value = if pattern { HeaderValue::Regex { regex: value } } else { HeaderValue::Exact(value) };
                    Some((header["name"].as_str()?.to_lowercase(), value))
                };
                items(&matcher["headers"]).filter_map(header).collect()
            })
            .collect();
        match new {
            0 => {}
            _ if stable == 0 && !asked.is_empty() && asked.iter().all(|headers| !headers.is_empty()) => {
                split.headers.extend(asked);
            }
            _ => split.weight = split.weight.max(share(new, stable)),
        }
    }
    split
}

/// Weights of Traefik's services.
struct Sums {
    /// Those of stable's Service, what is copied among them.
    stable: u64,
    new: u64,
    /// What comes by a TraefikService that leads to stable and copies.
    copied: u64,
}

fn sums(services: &Value, service: &str) -> Sums {
    let canary = format!("{service}-canary");
    let sum = |is: &dyn Fn(&Value) -> bool| -> u64 {
        items(services).filter(|one| is(one)).map(|one| one["weight"].as_u64().unwrap_or(1)).sum()
    };
    let copies = |one: &Value| one["kind"] == "TraefikService";
    let copied = sum(&copies);
    let stable = sum(&|one| one["name"] == service && !copies(one)) + copied;
    Sums { stable, new: sum(&|one| one["name"] == *canary && !copies(one)), copied }
}

/// The headers that one alternative of Traefik's rule asks for.
fn headers_of_a_rule(rule: &str) -> HeaderMatch {
    let matchers = ["Header(`", "HeaderRegexp(`"].into_iter().flat_map(|matcher| {
        rule.match_indices(matcher).filter_map(move |(at, _)| {
            let (name, rest) = rule[at + matcher.len()..].split_once("`, `")?;
            let (value, _) = rest.split_once("`)")?;
            let value = match matcher {
                "Header(`" => HeaderValue::Exact(value.to_owned()),
                _ => HeaderValue::Regex { regex: value.to_owned() },
            };
            Some((name.to_lowercase(), value))
        })
    });
    matchers.collect()
}

fn at_least(percent: f64) -> Percent {
    (0..=100u8).find(|n| f64::from(*n) >= percent).and_then(|n| Percent::try_from(n).ok()).unwrap_or(Percent::ALL)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
