//! What proxies count: whether one stands before both versions, and tells their requests apart.

use super::steps;
use crate::manifest::check::{Case, ingress, traefik};
use crate::manifest::desired::{OnNoData, Router, TargetKind};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::{CheckName, Percent};
use crate::manifest::measure::{self, Counted, Limits, Proxy, Useless};
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use crate::manifest::{expand, raw};
use serde_json::Value;

/// A share in percent.
pub(super) fn success_rate(case: &Case<'_>, pointer: &str, check: &raw::Check, proxy: Proxy) -> Vec<Diagnostic> {
    let useless = useless(case, pointer, check, Counted::Share).into_iter();
    let pointer = format!("{pointer}/successRate");
    useless.chain(counted(case, &pointer, proxy)).chain(of_calls(case, &pointer, proxy)).collect()
}

/// A time in milliseconds.
pub(super) fn latency(case: &Case<'_>, pointer: &str, check: &raw::Check, proxy: Proxy) -> Vec<Diagnostic> {
    let useless = useless(case, pointer, check, Counted::Time).into_iter();
    useless.chain(counted(case, &format!("{pointer}/latency"), proxy)).collect()
}

fn useless(case: &Case<'_>, pointer: &str, check: &raw::Check, counted: Counted) -> Option<Diagnostic> {
    let limits = Limits { max: check.max, min: check.min };
    let Useless { at, found, wanted } = measure::useless(counted, limits, check.compared_with_stable)?;
    Some(case.error(&format!("{pointer}/{at}"), Code::CheckUseless, found, wanted))
}

/// gRPC tells an error in `grpc-status`, beside HTTP 200.
fn of_calls(case: &Case<'_>, pointer: &str, proxy: Proxy) -> Option<Diagnostic> {
    let router = case.router()?;
    let calls = match proxy {
        Proxy::Contour | Proxy::Istio | Proxy::Traefik => matches!(router, Router::Grpc { .. }),
        Proxy::Nginx => {
            let route = router.route().and_then(|(kind, name)| case.item(kind, name));
            route.is_some_and(ingress::passes_calls)
        }
        Proxy::Linkerd => false,
    };
    calls.then(|| {
        let what = "gRPC says that a call failed beside HTTP 200, and what this proxy counts are HTTP's codes";
        let expected = if proxy == Proxy::Nginx { "a query of your own" } else { "proxy: linkerd" };
        let found = case.error(&format!("{pointer}/proxy"), Code::RouterLimit, what, expected);
        found.help("or count by grpc_code: prometheus with a query of your own and labels: {pod: pod}")
    })
}

/// Whether that proxy counts here, by backend.
fn counted(case: &Case<'_>, pointer: &str, proxy: Proxy) -> Vec<Diagnostic> {
    let own = match case.spec.target.kind {
        TargetKind::Deployment => {
            "else measure in the application: prometheus with a query of your own and labels: {pod: pod}"
        }
        TargetKind::StatefulSet | TargetKind::DaemonSet => {
            "else measure in the application: prometheus with a query of your own and \
             labels: {pod: pod, version: tidegate_io_pods}"
        }
        TargetKind::Service | TargetKind::NodeConfig | TargetKind::None => {
            "else prometheus with a query of your own about the Service of the new version"
        }
    };
    let refused = |at: &str, what: &str, expected: &str| {
        vec![case.error(&format!("{pointer}{at}"), Code::RouterLimit, what, expected).help(own)]
    };
    if case.spec.target.kind == TargetKind::Service && matches!(proxy, Proxy::Istio | Proxy::Linkerd) {
        let what = "this proxy counts by workloads, and the target is a Service, which has none of its own";
        return refused("/proxy", what, "proxy: contour, nginx or traefik");
    }
    let Some(traffic) = &case.spec.traffic else { return refused("", UNSPLIT, SPLITTING) };
    let raw::Traffic { contour, gateway_api, gloo, istio, nginx, traefik, .. } = traffic;
    if gloo.is_some() {
        let what = "behind Gloo nobody counts requests by the Service that they are led to, as far as is known here";
        return refused("", what, "a query of your own");
    }
    if contour.is_some() {
        let what = "with the router contour it is Contour that counts";
        return if proxy == Proxy::Contour { Vec::new() } else { refused("/proxy", what, "proxy: contour") };
    }
    match (gateway_api, istio, nginx, traefik) {
        (Some(_), _, _, _) if proxy == Proxy::Nginx => {
            let what = "ingress-nginx carries out no route of the Gateway API, so it counts none of its requests";
            refused("/proxy", what, "proxy: contour, istio, linkerd or traefik")
        }
        (Some(_), _, _, _) => Vec::new(),
        (_, Some(_), _, _) if proxy == Proxy::Istio => Vec::new(),
        (_, Some(_), _, _) => refused("/proxy", "with the router istio it is Istio that counts", "proxy: istio"),
        (_, _, Some(_), _) if proxy == Proxy::Nginx => unnumbered(case),
        (_, _, Some(_), _) => {
            refused("/proxy", "with the router nginx it is ingress-nginx that counts", "proxy: nginx")
        }
        (_, _, _, Some(_)) if proxy == Proxy::Traefik => unnumbered(case),
        (_, _, _, Some(_)) => refused("/proxy", "with the router traefik it is Traefik that counts", "proxy: traefik"),
        (None, None, None, None) => refused("", UNSPLIT, SPLITTING),
    }
}

const UNSPLIT: &str = "no proxy splits the requests here, so none counts those to the candidate";
const SPLITTING: &str = "traffic.contour, gatewayAPI, istio, nginx or traefik";

/// Where the backend is a part of a longer name, a port with dashes could be the end of another Service's.
fn unnumbered(case: &Case<'_>) -> Vec<Diagnostic> {
    let named = ports(case).into_iter().filter(|(_, _, port)| port.as_str().is_some_and(|name| name.contains('-')));
    let found = named.map(|(item, at, port)| {
        let what =
            format!("the proxy counts by names that end in the port, and {port} could be the end of another one");
        item.error(&at, Code::RouterLimit, what, "the number of the port, or a name without dashes")
    });
    found.collect()
}

/// The ports by which requests are led to the Service, with their places.
fn ports<'a>(case: &'a Case<'_>) -> Vec<(&'a Item, String, &'a Value)> {
    let Some(router) = case.router() else { return Vec::new() };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return Vec::new() };
    let Some(route) = case.item(kind, name) else { return Vec::new() };
    let (under, entries) = if kind == Kind::Ingress {
        ("/service/port/name", ingress::leading(route, service.as_str()))
    } else {
        ("/port", traefik::leading(route, service.as_str()))
    };
    let port = |(at, entry): (String, &'a Value)| Some((route, format!("{at}{under}"), entry.pointer(under)?));
    entries.into_iter().filter_map(port).collect()
}

/// Checks of steps whose requests nobody counts as the candidate's: who sends a header comes by a route of an IngressRoute that has one service,
/// and Traefik counts that by the rule.
pub(super) fn by_rule(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(Router::IngressRoute { .. }) = case.router() else { return Vec::new() };
    let phases = &case.spec.phases;
    let shared = |phase: &raw::Phase| {
        let share = expand::parts(phase).into_iter().filter_map(|part| part.weight).chain(phase.expose.mirror);
        share.into_iter().any(|share| share > Percent::ZERO)
    };
    let told = phases.iter().take_while(|phase| !shared(phase)).enumerate();
    let told = told.filter(|(_, phase)| phase.expose.preview.is_none());
    let named = told.flat_map(|(i, phase)| phase.checks.iter().enumerate().map(move |(j, name)| (i, j, name)));
    let found =
        named.filter(|(_, _, name)| case.spec.checks.get(*name).and_then(proxy).is_some()).map(|(i, j, name)| {
            let what = format!(
                "Traefik counts those who send a header by the rule of their route, and {name} asks for the Service"
            );
            let expected = "a weight or copies too, or a check with a query of your own";
            case.error(&format!("/spec/phases/{i}/checks/{j}"), Code::RouterLimit, what, expected)
        });
    found.collect()
}

/// What a check of a preview asks of a proxy, which leads nobody there.
struct Previewed<'a> {
    /// Where it is named.
    pointer: String,
    name: &'a CheckName,
    check: &'a raw::Check,
    proxy: Proxy,
}

fn previewed<'a>(case: &'a Case<'_>) -> impl Iterator<Item = Previewed<'a>> {
    let phases = case.spec.phases.iter().enumerate().filter(|(_, phase)| phase.expose.preview.is_some());
    let named = phases.flat_map(|(i, phase)| phase.checks.iter().enumerate().map(move |(j, name)| (i, j, name)));
    named.filter_map(|(i, j, name)| {
        let check = case.spec.checks.get(name)?;
        Some(Previewed { pointer: format!("/spec/phases/{i}/checks/{j}"), name, check, proxy: proxy(check)? })
    })
}

/// Of ingress-nginx's requests those are the candidate's that its canary answered: none of them is a load test's.
pub(super) fn of_nobody(case: &Case<'_>) -> Vec<Diagnostic> {
    let found = previewed(case).filter(|it| it.proxy == Proxy::Nginx).map(|Previewed { pointer, name, .. }| {
        let what =
            format!("nobody is led to a preview, so ingress-nginx counts nothing there, and {name} has no value");
        let found = case.error(&pointer, Code::CheckUseless, what, "a check with a query of your own");
        found.help("measure in the application what a load test calls: prometheus with labels: {pod: pod}")
    });
    found.collect()
}

/// Others count what is sent to the candidate's Service on purpose: by sidecars, or by a route that people have made for it.
pub(super) fn of_load_tests(case: &Case<'_>) -> Vec<Diagnostic> {
    let counts = |it: &Previewed<'_>| it.proxy != Proxy::Nginx && it.check.on_no_data != OnNoData::Pass;
    let found = previewed(case).filter(counts).map(|Previewed { pointer, name, proxy, .. }| {
        let what = format!(
            "nobody is led to a preview, so {name} has no value unless a load test calls the candidate's Service"
        );
        let expected = match proxy {
            Proxy::Istio | Proxy::Linkerd => "such a test, or a check with a query of your own",
            Proxy::Contour | Proxy::Nginx | Proxy::Traefik => {
                "such a test by a route of your own to that Service, or a check with a query of your own"
            }
        };
        case.error(&pointer, Code::CheckUseless, what, expected)
    });
    found.collect()
}

/// Whose numbers a check asks for.
fn proxy(check: &raw::Check) -> Option<Proxy> {
    let rate = check.success_rate.as_ref().map(|asked| asked.proxy);
    rate.or_else(|| check.latency.as_ref().map(|asked| asked.proxy))
}

/// Hosts of which ingress-nginx counts nothing unless it is told to (its documents, "Wildcard ingresses").
pub(super) fn of_any_host(case: &Case<'_>) -> Vec<Diagnostic> {
    let used: Vec<&CheckName> = steps(case.spec).flat_map(|step| step.names).collect();
    let asks = case.spec.checks.iter().any(|(name, check)| used.contains(&name) && proxy(check) == Some(Proxy::Nginx));
    let Some(Router::Nginx { ingress, .. }) = case.router().filter(|_| asks) else { return Vec::new() };
    let Some(main) = case.item(Kind::Ingress, &ingress) else { return Vec::new() };
    let spec = &main.object.value()["spec"];
    let rules = items(spec, "rules").enumerate();
    let wild = rules.filter(|(_, rule)| rule["host"].as_str().is_none_or(|host| host.starts_with('*')));
    let wild: Vec<String> = wild.map(|(i, _)| format!("/spec/rules/{i}")).collect();
    // Where there are rules it is for their hosts; without any it is for all that no other Ingress has.
    let all = main.object.at("/spec/defaultBackend").filter(|_| items(spec, "rules").next().is_none());
    let found = wild.into_iter().chain(all.map(|_| "/spec/defaultBackend".to_owned())).map(|at| {
        let what = "ingress-nginx counts no requests to a host that is not written out, so a check may find none";
        main.error(&at, Code::RouterLimit, what, "a host, or ingress-nginx with --metrics-per-host=false")
    });
    found.collect()
}
