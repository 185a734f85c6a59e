//! The hosts that a rollout's routes answer for, where the policy gives hosts to tenants (`tenants.*.hosts`): each is the own tenant's.
//! Of an HTTPProxy that is a root more is asked ([`super::roots`]).

use crate::manifest::diagnostic::{Code, Diagnostic, MOST, few};
use crate::manifest::ids::{Namespace, TenantName};
use crate::manifest::object::{Kind, Object, items};
use crate::manifest::policy::{Policy, Tenant};
use crate::manifest::set::{Item, Items};
use serde_json::Value;

/// What a place says of hosts.
enum Answers {
    /// For that one, or with `*.` for all below it.
    For(String),
    /// For every host that nobody else answers for.
    ForAll,
    /// Nobody can tell.
    Untold,
}

/// By this annotation names come into a zone of the DNS.
const NAMED: &str = "external-dns.alpha.kubernetes.io/";

/// Hosts that are not the tenant's; nothing as long as the policy gives nobody any.
pub(super) fn check(items: &Items, policy: &Policy, name: &TenantName, tenant: &Tenant) -> Vec<Diagnostic> {
    if policy.tenants.values().all(|tenant| tenant.hosts.is_empty()) {
        return Vec::new();
    }
    let places = items.values().flat_map(|item| answers(&item.object).into_iter().map(move |place| (item, place)));
    places.filter_map(|(item, (at, answers))| error(item, &at, &answers, (name, tenant))).take(MOST).collect()
}

fn error(item: &Item, at: &str, answers: &Answers, (name, tenant): (&TenantName, &Tenant)) -> Option<Diagnostic> {
    let found = match answers {
        Answers::For(host) if tenant.hosts.iter().any(|own| own.covers(host)) => return None,
        Answers::For(host) => format!("the policy gives tenant {name} no host {host}"),
        Answers::ForAll => "this answers for every host".to_owned(),
        Answers::Untold => "nobody can tell which hosts this rule is for".to_owned(),
    };
    let expected = match (answers, few(tenant.hosts.iter().map(ToString::to_string), 5, ", ")) {
        (Answers::Untold, _) => "Host(`…`) in each part between ||".to_owned(),
        (_, none) if none.is_empty() => "no route of its own, as the policy gives it no host".to_owned(),
        (_, own) => format!("one of {own}"),
    };
    let help = format!("hosts are given by the policy: tenants: {{{name}: {{hosts: […]}}}}");
    Some(item.error(at, Code::HostNotAllowed, found, expected).help(help))
}

/// What an object says of hosts, with the places.
fn answers(object: &Object) -> Vec<(String, Answers)> {
    let kind = object.reference().kind;
    let mut found = by_annotation(object);
    if [Kind::HttpRoute, Kind::GrpcRoute].contains(&kind) && !is_for_services(object) {
        found.extend(each(object, "/spec/hostnames", "/spec"));
    } else if kind == Kind::Ingress {
        found.extend(of_ingress(object));
    } else if kind == Kind::VirtualService && object.at("/spec/hosts").is_some() {
        // Without hosts it has those of whoever delegates to it.
        let own = &object.reference().namespace;
        found.extend(each(object, "/spec/hosts", "/spec").into_iter().filter(|(_, answers)| match answers {
            Answers::For(host) => !is_inside(host, own),
            Answers::ForAll | Answers::Untold => true,
        }));
    } else if kind == Kind::IngressRoute && object.at("/spec/parentRefs").is_none() {
        let rules = items(&object.value()["spec"], "routes").enumerate();
        found.extend(rules.flat_map(|(i, route)| {
            let hosts = route["match"].as_str().and_then(hosts_of);
            let at = format!("/spec/routes/{i}/match");
            let all = hosts.map_or(vec![Answers::Untold], |hosts| hosts.into_iter().map(Answers::For).collect());
            all.into_iter().map(move |answers| (at.clone(), answers)).collect::<Vec<_>>()
        }));
    } else if let Kind::Other(other) = kind
        && (other.group(), other.kind()) == ("cert-manager.io", "Certificate")
    {
        // Whoever has a certificate for a host can answer for it, whichever issuer gave it.
        let names = listed(object, "/spec/dnsNames");
        let common = object.at("/spec/commonName").map(|name| ("/spec/commonName".to_owned(), answer(name)));
        found.extend(names.chain(common));
    }
    found
}

/// Those of a list.
fn listed<'a>(object: &'a Object, list: &'a str) -> impl Iterator<Item = (String, Answers)> + 'a {
    let hosts = object.at(list).and_then(Value::as_array).into_iter().flatten().enumerate();
    hosts.map(move |(i, host)| (format!("{list}/{i}"), answer(host)))
}

/// Those of a list, or all where it is empty.
fn each(object: &Object, list: &str, otherwise: &str) -> Vec<(String, Answers)> {
    let all: Vec<_> = listed(object, list).collect();
    if all.is_empty() { vec![(otherwise.to_owned(), Answers::ForAll)] } else { all }
}

fn answer(host: &Value) -> Answers {
    match host.as_str() {
        None | Some("" | "*") => Answers::ForAll,
        Some(host) => Answers::For(host.trim_end_matches('.').to_ascii_lowercase()),
    }
}

fn of_ingress(ingress: &Object) -> Vec<(String, Answers)> {
    let spec = &ingress.value()["spec"];
    let rules = items(spec, "rules").enumerate();
    let mut found: Vec<_> = rules
        .map(|(i, rule)| {
            let host = rule.get("host");
            let at = if host.is_some() { "/host" } else { "" };
            (format!("/spec/rules/{i}{at}"), answer(host.unwrap_or(&Value::Null)))
        })
        .collect();
    // Some take that for all hosts that nobody else has.
    if spec.get("defaultBackend").is_some() {
        found.push(("/spec/defaultBackend".to_owned(), Answers::ForAll));
    } else if found.is_empty() {
        found.push(("/spec".to_owned(), Answers::ForAll));
    }
    for (i, tls) in items(spec, "tls").enumerate() {
        let hosts = items(tls, "hosts").enumerate();
        found.extend(hosts.map(|(j, host)| (format!("/spec/tls/{i}/hosts/{j}"), answer(host))));
    }
    found
}

/// Further names by annotations: of ingress-nginx, and in the DNS.
fn by_annotation(object: &Object) -> Vec<(String, Answers)> {
    let all = object.at("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    let names =
        all.filter(|(key, _)| key.ends_with("/server-alias") || (key.starts_with(NAMED) && key.ends_with("hostname")));
    let each = names.flat_map(|(key, value)| {
        let at = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
        let hosts = value.as_str().unwrap_or_default().split(',').map(str::trim).filter(|host| !host.is_empty());
        hosts.map(|host| (at.clone(), answer(&host.into()))).collect::<Vec<_>>()
    });
    each.collect()
}

/// Whether a route is for callers inside the cluster alone, who call a Service by its name.
fn is_for_services(route: &Object) -> bool {
    let mut parents = items(&route.value()["spec"], "parentRefs").peekable();
    parents.peek().is_some() && parents.all(|parent| parent["kind"] == "Service")
}

/// Whether a host is what callers inside the cluster call a Service of that namespace.
fn is_inside(host: &str, own: &Namespace) -> bool {
    host.split_once('.').is_none_or(|(_, rest)| {
        let mut labels = rest.split('.');
        labels.next() == Some(own.as_str()) && labels.next().is_none_or(|label| label == "svc")
    })
}

/// What stands between two parentheses of a rule, or is the whole of it.
#[derive(Default)]
struct Level {
    /// Whether each alternative before the present one has a host, but for none.
    lacks: bool,
    /// Whether the present one has.
    has_one: bool,
    /// Whether these are hosts.
    is_host: bool,
    /// Whether it stands for all else.
    is_not: bool,
}

/// The hosts of a rule of Traefik's, each of whose alternatives has one; none if that cannot be told.
fn hosts_of(rule: &str) -> Option<Vec<String>> {
    let (mut hosts, mut levels) = (Vec::new(), vec![Level::default()]);
    for (i, part) in rule.split('`').enumerate() {
        if i % 2 == 1 {
            let is_meant = !levels.iter().any(|level| level.is_not);
            if let Some(level) = levels.last_mut().filter(|level| level.is_host && is_meant) {
                hosts.push(part.trim_end_matches('.').to_ascii_lowercase());
                level.has_one = true;
            }
            continue;
        }
        let mut name = String::new();
        for sign in part.chars().filter(|sign| !sign.is_whitespace()) {
            match sign {
                '"' => return None,
                '(' => {
                    let is_not = name.starts_with('!');
                    levels.push(Level { is_host: name == "Host", is_not, ..Level::default() });
                }
                ')' => {
                    let inner = levels.pop()?;
                    levels.last_mut()?.has_one |= inner.has_one && !inner.lacks && !inner.is_not;
                }
                '|' if name == "|" => {
                    let level = levels.last_mut()?;
                    level.lacks |= !level.has_one;
                    level.has_one = false;
                }
                _ => {}
            }
            match sign {
                '(' | ')' | '&' => name.clear(),
                '|' if name == "|" => name.clear(),
                sign => name.push(sign),
            }
        }
    }
    let whole = levels.pop().filter(|_| levels.is_empty())?;
    (whole.has_one && !whole.lacks).then_some(hosts)
}

#[cfg(test)]
mod tests {
    use super::hosts_of;

    #[test]
    fn attack_106_a_rule_of_traefik_names_its_hosts_or_nobody_can_tell() {
        for (rule, hosts) in [
            ("Host(`a.example`)", Some(&["a.example"][..])),
            ("Host(`A.example`, `b.example`) && PathPrefix(`/x`)", Some(&["a.example", "b.example"])),
            ("Host(`a.example`) || (Host( `b.example`) && Header(`x`, `Host(`))", Some(&["a.example", "b.example"])),
            ("Host(`a.example`) || Host(`b.example`)", Some(&["a.example", "b.example"])),
            ("Host(`a.example`) || PathPrefix(`/`)", None),
            ("PathPrefix(`/`)", None),
            ("HostRegexp(`.*`)", None),
            ("!Host(`a.example`)", None),
            ("Host(`a.example`) && !Path(`/x`)", Some(&["a.example"])),
            ("Host(`a.example`) && (Path(`/x`) || Path(`/y`))", Some(&["a.example"])),
            ("(Path(`/x`) || Path(`/y`)) && Host(`a.example`)", Some(&["a.example"])),
            ("(Host(`a.example`) || Path(`/y`))", None),
            ("!(Host(`b.example`)) && Path(`/x`)", None),
            ("Host(`a.example`))", None),
            ("(Host(`a.example`)", None),
            ("Host(\"a.example\")", None),
            ("Header(`x`, `Host(`) && Path(`/`)", None),
            ("", None),
        ] {
            assert_eq!(
                hosts_of(rule).as_deref().map(<[String]>::to_vec),
                hosts.map(|all| all.iter().map(|host| (*host).to_owned()).collect()),
                "{rule}"
            );
        }
    }
}
