//! What proxies count of the requests to one role: one table, from which the built-in checks make their queries. Pure.
//!
//! A new proxy is one row here, and its name in [`Proxy`].

use super::sides::{Side, narrowed};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::measure::{Latency, Measure, Proxy, SuccessRate};
use crate::manifest::promql::{Matcher, Query, Value};
use crate::record::state::RoleName;

/// The names of a proxy's metrics.
struct Metrics {
    /// What counts answered requests.
    requests: &'static str,
    /// Which of them the server failed.
    failed: &'static str,
    /// The histogram of how long they took.
    buckets: &'static str,
    /// Its values times this are milliseconds.
    milliseconds: &'static str,
}

fn metrics(proxy: Proxy) -> Metrics {
    match proxy {
        Proxy::Contour => Metrics {
            requests: "envoy_cluster_upstream_rq",
            failed: r#"{envoy_response_code=~"5.."}"#,
            buckets: "envoy_cluster_upstream_rq_time_bucket",
            milliseconds: "",
        },
        Proxy::Istio => Metrics {
            requests: "istio_requests_total",
            failed: r#"{response_code=~"5.."}"#,
            buckets: "istio_request_duration_milliseconds_bucket",
            milliseconds: "",
        },
        Proxy::Linkerd => Metrics {
            requests: "response_total",
            failed: r#"{classification="failure"}"#,
            buckets: "response_latency_ms_bucket",
            milliseconds: "",
        },
        Proxy::Nginx => Metrics {
            requests: "nginx_ingress_controller_requests",
            failed: r#"{status=~"5.."}"#,
            // As the client waits: how long the backend took is not counted of a request that was tried twice.
            buckets: "nginx_ingress_controller_request_duration_seconds_bucket",
            milliseconds: "1000 * ",
        },
        Proxy::Traefik => Metrics {
            requests: "traefik_service_requests_total",
            failed: r#"{code=~"5.."}"#,
            buckets: "traefik_service_request_duration_seconds_bucket",
            milliseconds: "1000 * ",
        },
    }
}

/// The number of a port, or its name if that is one word.
const PORT: &str = "[0-9a-z]{1,15}";

/// What tells one role's series; where labels can be called in several ways, each of these. The patterns end with a port, so that no
/// longer name fits.
fn told(proxy: Proxy, namespace: &Namespace, side: &Side) -> Result<Vec<Vec<Matcher>>, String> {
    let service = || side.service.as_ref().ok_or("with this router the candidate has no Service of its own");
    let (namespace, workload) = (namespace.as_str(), side.workload.as_str());
    let all = match proxy {
        Proxy::Contour => vec![("envoy_cluster_name", Value::Like(format!("{namespace}_{}_[0-9]+", service()?)))],
        Proxy::Istio => vec![
            ("reporter", is("destination")),
            ("destination_workload_namespace", is(namespace)),
            ("destination_workload", is(workload)),
        ],
        Proxy::Linkerd => {
            vec![("direction", is("inbound")), ("namespace", is(namespace)), ("deployment", is(workload))]
        }
        Proxy::Nginx => return Ok(by_canary(namespace, service()?, side.role)),
        // Of its own kinds Traefik counts a service among several as `NAMESPACE-SERVICE-PORT` (its reference, "Service Metrics";
        // `pkg/provider/kubernetes/crd/kubernetes_http.go`), and one that is alone in a route by 20 digits of the route's rule: more than
        // the name of a port has.
        Proxy::Traefik => {
            let port = format!("((http-)?[0-9]+@kubernetesgateway|{PORT}@kubernetescrd)");
            vec![("service", Value::Like(format!("{namespace}-{}-{port}", service()?)))]
        }
    };
    Ok(vec![matching(all)])
}

/// ingress-nginx counts all requests under stable's Service, and says beside it which backend of a canary got one (its documents,
/// "Prometheus Metrics", `canary`; `rootfs/etc/nginx/lua/balancer.lua`): `NAMESPACE-SERVICE-PORT`, or nothing. A Prometheus that has labels
/// of its own for what it scrapes keeps those that were counted as `exported_…`, unless it is told to honour them.
fn by_canary(namespace: &str, service: &ObjectName, role: RoleName) -> Vec<Vec<Matcher>> {
    let named =
        |label, exported, value: &str| [vec![(label, is(value)), (exported, is(""))], vec![(exported, is(value))]];
    // The name alone could be that of another namespace's Service too: all of its parts may have dashes.
    let namespaces = named("namespace", "exported_namespace", namespace);
    if role == RoleName::Candidate {
        let canary = [("canary", Value::Like(format!("{namespace}-{service}-{PORT}")))];
        return namespaces.iter().map(|one| matching([&canary[..], &one[..]].concat())).collect();
    }
    let services = named("service", "exported_service", service.as_str());
    let both = namespaces
        .iter()
        .flat_map(|one| services.iter().map(|other| matching([&[("canary", is(""))], &one[..], &other[..]].concat())));
    both.collect()
}

fn is(text: &str) -> Value {
    Value::Is(text.to_owned())
}

fn matching(all: Vec<(&str, Value)>) -> Vec<Matcher> {
    all.into_iter().map(|(label, value)| Matcher { label: label.to_owned(), value }).collect()
}

/// What is asked of one role's series. Each value of a built-in check is about one interval.
///
/// # Errors
/// When that cannot be asked: a plan can be older, or newer, than this program.
pub fn query(measure: &Measure, interval: Span, namespace: &Namespace, side: &Side) -> Result<String, String> {
    let proxy = match measure {
        Measure::Query(query) => return narrowed(query, namespace, side),
        Measure::SuccessRate(SuccessRate { provider: _, proxy })
        | Measure::Latency(Latency { provider: _, proxy, percentile: _ }) => *proxy,
    };
    let told = told(proxy, namespace, side)?;
    let rate = |series: String| {
        let read = Query::parse(&format!("rate({series}[{}s])", interval.as_secs())).map_err(|why| why.to_string())?;
        let each: Vec<String> = told.iter().map(|matchers| read.narrowed(matchers)).collect();
        Ok::<_, String>(each.join(" or "))
    };
    let Metrics { requests, failed, buckets, milliseconds } = metrics(proxy);
    Ok(match measure {
        Measure::Latency(Latency { percentile, .. }) => {
            let took = format!("sum by (le) ({})", rate(buckets.to_owned())?);
            format!("{milliseconds}histogram_quantile(0.{percentile:02}, {took})")
        }
        // Where nothing failed yet, nothing counts failures; without requests there is no share.
        Measure::Query(_) | Measure::SuccessRate(_) => {
            let failures = format!("(sum({}) or vector(0))", rate(format!("{requests}{failed}"))?);
            format!("100 * (1 - {failures} / sum({}))", rate(requests.to_owned())?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::sides::fixture::sides;

    fn asked(yaml: &str, side: fn() -> Side) -> Result<String, String> {
        let check: crate::manifest::desired::Check = serde_yaml::from_str(yaml).unwrap();
        let crate::manifest::desired::Criterion::Prometheus(bounds) = check.criterion else { panic!("a measure") };
        query(&bounds.measure, check.interval, &sides().namespace, &side())
    }

    #[test]
    fn each_proxy_has_its_queries() {
        let mut all = String::new();
        for proxy in ["contour", "istio", "linkerd", "nginx", "traefik"] {
            for check in [
                format!("{{successRate: {{provider: main, proxy: {proxy}}}, min: 99}}"),
                format!("{{latency: {{provider: main, proxy: {proxy}}}, max: 500, interval: 30s}}"),
            ] {
                for side in [|| sides().candidate, || sides().stable] {
                    all += &format!("{}\n", asked(&check, side).unwrap());
                }
            }
        }
        insta::assert_snapshot!(all);
    }

    /// Stable's series are never the candidate's, whose names begin with the same words.
    #[test]
    fn c_34_no_pattern_takes_one_role_for_the_other() {
        let patterns = |side: &Side| {
            let all = [Proxy::Contour, Proxy::Traefik].map(|proxy| told(proxy, &sides().namespace, side).unwrap());
            all.concat().concat().into_iter().map(|matcher| matcher.value).collect::<Vec<_>>()
        };
        let of_traefik = "-((http-)?[0-9]+@kubernetesgateway|[0-9a-z]{1,15}@kubernetescrd)";
        let wanted = [("shop_podinfo", "_[0-9]+"), ("shop-podinfo", of_traefik)];
        let like = |role: &str| wanted.map(|(name, port)| Value::Like(format!("{name}{role}{port}")));
        assert_eq!(patterns(&sides().stable), like(""));
        assert_eq!(patterns(&sides().candidate), like("-canary"));
    }

    /// What answered for the candidate is told by ingress-nginx alone; all else is stable's, however Prometheus calls the labels.
    #[test]
    fn c_34_behind_ingress_nginx_what_a_canary_answered_is_the_candidates() {
        let of = |side: &Side| {
            let told = told(Proxy::Nginx, &sides().namespace, side).unwrap();
            let read = Query::parse("a").unwrap();
            told.iter().map(|matchers| read.narrowed(matchers)).collect::<Vec<_>>()
        };
        let (own, scraped) = (r#"namespace="shop",exported_namespace="""#, r#"exported_namespace="shop""#);
        let canary = |ns: &str| format!(r#"a{{canary=~"shop-podinfo-canary-[0-9a-z]{{1,15}}",{ns}}}"#);
        assert_eq!(of(&sides().candidate), [own, scraped].map(canary));
        let (service, behind) = (r#"service="podinfo",exported_service="""#, r#"exported_service="podinfo""#);
        let stable = [(own, service), (own, behind), (scraped, service), (scraped, behind)];
        assert_eq!(of(&sides().stable), stable.map(|(ns, service)| format!(r#"a{{canary="",{ns},{service}}}"#)));
    }

    #[test]
    fn without_a_service_of_its_own_a_role_is_not_told_by_one() {
        let shared = || Side { service: None, ..sides().candidate };
        assert!(asked("{successRate: {provider: main, proxy: contour}, min: 99}", shared).is_err());
        assert!(asked("{successRate: {provider: main, proxy: istio}, min: 99}", shared).is_ok());
    }
}
