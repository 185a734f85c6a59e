//! Whose series a query is about: the candidate's, or stable's. Pure.

use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::measure::{Labels, PrometheusQuery};
use crate::manifest::promql::{Matcher, Query, Value};

/// Both roles, as their objects are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// Where they are.
    pub namespace: Namespace,
    /// The new version.
    pub candidate: Side,
    /// The old version.
    pub stable: Side,
}

/// One role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Its Deployment.
    pub workload: ObjectName,
    /// Its Service, if it has one of its own.
    pub service: Option<ObjectName>,
}

/// The query, asked of one role's series alone.
///
/// # Errors
/// When it cannot be read, or the role has not what its labels tell: a plan can be older, or newer, than this program.
pub fn narrowed(query: &PrometheusQuery, namespace: &Namespace, side: &Side) -> Result<String, String> {
    let Some(labels) = &query.labels else { return Ok(query.query.clone()) };
    let read = Query::parse(&query.query).map_err(|why| why.to_string())?;
    Ok(read.narrowed(&matchers(labels, namespace, side)?))
}

fn matchers(labels: &Labels, namespace: &Namespace, side: &Side) -> Result<Vec<Matcher>, String> {
    let Labels { namespace: of_namespace, pod, service, workload } = labels;
    let mut values = vec![(of_namespace, Value::Is(namespace.to_string()))];
    // As its ReplicaSets call them; another Deployment whose name is longer has one dash more.
    values.extend(pod.as_ref().map(|label| {
        let deployment = side.workload.as_str().replace('.', "\\.");
        (label, Value::Like(format!("{deployment}-[0-9a-z]+-[0-9a-z]+")))
    }));
    if let Some(label) = service {
        let of_its_own = side.service.as_ref().ok_or("with this router the candidate has no Service of its own")?;
        values.push((label, Value::Is(of_its_own.to_string())));
    }
    values.extend(workload.as_ref().map(|label| (label, Value::Is(side.workload.to_string()))));
    Ok(values.into_iter().map(|(label, value)| Matcher { label: label.as_str().to_owned(), value }).collect())
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::{Side, Sides};

    /// Those of `podinfo` in `shop`.
    pub(crate) fn sides() -> Sides {
        let side = |name: &str| Side { workload: name.parse().unwrap(), service: Some(name.parse().unwrap()) };
        Sides { namespace: "shop".parse().unwrap(), candidate: side("podinfo-canary"), stable: side("podinfo") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(labels: &str) -> PrometheusQuery {
        serde_yaml::from_str(&format!("{{provider: main, query: 'rate(a[1m]) / b', labels: {labels}}}")).unwrap()
    }

    #[test]
    fn attack_67_each_role_is_told_by_the_labels_that_the_file_names() {
        let sides = fixture::sides();
        let of = |labels: &str, side: &Side| narrowed(&query(labels), &sides.namespace, side);
        let wanted = |matchers: &str| Ok(format!("rate(a{{{matchers}}}[1m]) / b{{{matchers}}}"));
        let pods = r#"namespace="shop",pod=~"podinfo-canary-[0-9a-z]+-[0-9a-z]+""#;
        assert_eq!(of("{pod: pod}", &sides.candidate), wanted(pods));
        assert_eq!(of("{pod: pod}", &sides.stable), wanted(&pods.replace("-canary", "")));
        let services = r#"ns="shop",svc="podinfo-canary""#;
        assert_eq!(of("{namespace: ns, service: svc}", &sides.candidate), wanted(services));
        let both = r#"namespace="shop",svc="podinfo",deployment="podinfo""#;
        assert_eq!(of("{service: svc, workload: deployment}", &sides.stable), wanted(both));
        let shared = Side { service: None, ..sides.candidate.clone() };
        assert!(of("{service: svc}", &shared).is_err());
        let dotted = Side { workload: "a.b".parse().unwrap(), service: None };
        assert_eq!(of("{pod: p}", &dotted), wanted(r#"namespace="shop",p=~"a\\.b-[0-9a-z]+-[0-9a-z]+""#));
        let broken = PrometheusQuery { query: "a{".to_owned(), ..query("{pod: pod}") };
        assert!(narrowed(&broken, &sides.namespace, &sides.stable).is_err());
    }
}
