//! What proxies count of the requests to one role: one table, from which the built-in checks make their queries. Pure.
//!
//! A new proxy is one row here, and its name in [`Proxy`].

use super::sides::{Side, narrowed};
use crate::manifest::duration::Span;
use crate::manifest::ids::Namespace;
use crate::manifest::measure::{Latency, Measure, Proxy, SuccessRate};
use crate::manifest::promql::{Matcher, Query, Value};

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
        Proxy::Traefik => Metrics {
            requests: "traefik_service_requests_total",
            failed: r#"{code=~"5.."}"#,
            buckets: "traefik_service_request_duration_seconds_bucket",
            milliseconds: "1000 * ",
        },
    }
}

/// What tells one role's series. The patterns end with a port, so that no longer name fits.
fn matchers(proxy: Proxy, namespace: &Namespace, side: &Side) -> Result<Vec<Matcher>, String> {
    let service = || side.service.as_ref().ok_or("with this router the candidate has no Service of its own");
    let is = |text: &str| Value::Is(text.to_owned());
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
        Proxy::Traefik => {
            let like = format!("{namespace}-{}-(http-)?[0-9]+@kubernetesgateway", service()?);
            vec![("service", Value::Like(like))]
        }
    };
    Ok(all.into_iter().map(|(label, value)| Matcher { label: label.to_owned(), value }).collect())
}

/// What is asked of one role's series. Each value of a built-in check is about one interval.
///
/// # Errors
/// When that cannot be asked: a plan can be older, or newer, than this program.
pub fn query(measure: &Measure, interval: Span, namespace: &Namespace, side: &Side) -> Result<String, String> {
    let window = format!("[{}s]", interval.as_secs());
    let (proxy, text) = match measure {
        Measure::Query(query) => return narrowed(query, namespace, side),
        // Where nothing failed yet, nothing counts failures; without requests there is no share.
        Measure::SuccessRate(SuccessRate { provider: _, proxy }) => {
            let Metrics { requests, failed, buckets: _, milliseconds: _ } = metrics(*proxy);
            let failures = format!("(sum(rate({requests}{failed}{window})) or vector(0))");
            (*proxy, format!("100 * (1 - {failures} / sum(rate({requests}{window})))"))
        }
        Measure::Latency(Latency { provider: _, proxy, percentile }) => {
            let Metrics { requests: _, failed: _, buckets, milliseconds } = metrics(*proxy);
            let took = format!("sum by (le) (rate({buckets}{window}))");
            (*proxy, format!("{milliseconds}histogram_quantile(0.{percentile:02}, {took})"))
        }
    };
    let read = Query::parse(&text).map_err(|why| why.to_string())?;
    Ok(read.narrowed(&matchers(proxy, namespace, side)?))
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
        for proxy in ["contour", "istio", "linkerd", "traefik"] {
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
            let all = [Proxy::Contour, Proxy::Traefik].map(|proxy| matchers(proxy, &sides().namespace, side).unwrap());
            all.concat().into_iter().map(|matcher| matcher.value).collect::<Vec<_>>()
        };
        let wanted = [("shop_podinfo", "_[0-9]+"), ("shop-podinfo", "-(http-)?[0-9]+@kubernetesgateway")];
        let like = |role: &str| wanted.map(|(name, port)| Value::Like(format!("{name}{role}{port}")));
        assert_eq!(patterns(&sides().stable), like(""));
        assert_eq!(patterns(&sides().candidate), like("-canary"));
    }

    #[test]
    fn without_a_service_of_its_own_a_role_is_not_told_by_one() {
        let shared = || Side { service: None, ..sides().candidate };
        assert!(asked("{successRate: {provider: main, proxy: contour}, min: 99}", shared).is_err());
        assert!(asked("{successRate: {provider: main, proxy: istio}, min: 99}", shared).is_ok());
    }
}
