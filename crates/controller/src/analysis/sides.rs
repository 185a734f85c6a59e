//! Whose series a query is about: the candidate's, or stable's. Pure.

use crate::manifest::desired::TargetKind;
use crate::manifest::ids::{Namespace, ObjectName, PodsDigest};
use crate::manifest::measure::{Labels, PrometheusQuery};
use crate::manifest::promql::{Matcher, Query, Value};
use crate::record::state::RoleName;

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
    /// Which one.
    pub role: RoleName,
    /// What its workload is.
    pub kind: TargetKind,
    /// Its workload.
    pub workload: ObjectName,
    /// Its Service, if it has one of its own.
    pub service: Option<ObjectName>,
    /// What the label `tidegate.io/pods` is on its pods, if they have it.
    pub pods: Option<PodsDigest>,
}

impl Side {
    /// What its pods are called. Another workload whose name is longer has one dash more.
    fn pattern(&self) -> String {
        let workload = self.workload.as_str().replace('.', "\\.");
        match self.kind {
            TargetKind::Deployment | TargetKind::Service | TargetKind::NodeConfig | TargetKind::None => {
                format!("{workload}-[0-9a-z]+-[0-9a-z]+")
            }
            TargetKind::StatefulSet => format!("{workload}-[0-9]+"),
            TargetKind::DaemonSet => format!("{workload}-[0-9a-z]+"),
        }
    }
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
    let Labels { namespace: of_namespace, pod, service, workload, version } = labels;
    if version.is_none() && side.kind.own_router().is_some() {
        // A plan of a program that knew no better: its comparison would be of one number with itself.
        return Err("both versions are pods of one workload, and its labels name no version".to_owned());
    }
    let mut values = vec![(of_namespace, Value::Is(namespace.to_string()))];
    values.extend(pod.as_ref().map(|label| (label, Value::Like(side.pattern()))));
    if let Some(label) = service {
        let of_its_own = side.service.as_ref().ok_or("with this router the candidate has no Service of its own")?;
        values.push((label, Value::Is(of_its_own.to_string())));
    }
    values.extend(workload.as_ref().map(|label| (label, Value::Is(side.workload.to_string()))));
    if let Some(label) = version {
        let of_others = side.pods.is_none() && labels.telling().all(|(key, _)| key == "version");
        if of_others {
            return Err("its pods have no label tidegate.io/pods yet, and neither have those of others".to_owned());
        }
        values.push((label, Value::Is(side.pods.as_ref().map(ToString::to_string).unwrap_or_default())));
    }
    Ok(values.into_iter().map(|(label, value)| Matcher { label: label.as_str().to_owned(), value }).collect())
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::{RoleName, Side, Sides, TargetKind};

    /// Those of `podinfo` in `shop`.
    pub(crate) fn sides() -> Sides {
        let side = |role, name: &str, pods: &str| Side {
            role,
            kind: TargetKind::Deployment,
            workload: name.parse().unwrap(),
            service: Some(name.parse().unwrap()),
            pods: Some(pods.repeat(16).parse().unwrap()),
        };
        let candidate = side(RoleName::Candidate, "podinfo-canary", "b");
        let stable = side(RoleName::Stable, "podinfo", "a");
        Sides { namespace: "shop".parse().unwrap(), candidate, stable }
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
        let dotted = Side { workload: "a.b".parse().unwrap(), service: None, ..sides.candidate.clone() };
        assert_eq!(of("{pod: p}", &dotted), wanted(r#"namespace="shop",p=~"a\\.b-[0-9a-z]+-[0-9a-z]+""#));
        let broken = PrometheusQuery { query: "a{".to_owned(), ..query("{pod: pod}") };
        assert!(narrowed(&broken, &sides.namespace, &sides.stable).is_err());
    }

    /// Pods of a version that went back had the same names, and what is measured looks back in time.
    #[test]
    fn attack_67_by_its_version_a_query_is_about_no_earlier_candidate() {
        let sides = fixture::sides();
        let of = |labels: &str, side: &Side| narrowed(&query(labels), &sides.namespace, side);
        let wanted = |matchers: &str| Ok(format!("rate(a{{{matchers}}}[1m]) / b{{{matchers}}}"));
        let candidate = of("{version: v}", &sides.candidate);
        assert_eq!(candidate, wanted(r#"namespace="shop",v="bbbbbbbbbbbbbbbb""#));
        assert_eq!(of("{version: v}", &sides.stable), wanted(r#"namespace="shop",v="aaaaaaaaaaaaaaaa""#));
        // What no run has promoted yet has no such label, as all else in the namespace.
        let adopted = Side { pods: None, ..sides.stable.clone() };
        assert!(of("{version: v}", &adopted).is_err());
        assert_eq!(of("{workload: w, version: v}", &adopted), wanted(r#"namespace="shop",w="podinfo",v="""#));
    }

    #[test]
    fn attack_67_both_versions_of_one_workload_are_never_the_same_question() {
        let base = fixture::sides();
        for (kind, pattern) in [(TargetKind::StatefulSet, "db-[0-9]+"), (TargetKind::DaemonSet, "db-[0-9a-z]+")] {
            let side = |pods: &Side| Side { kind, workload: "db".parse().unwrap(), service: None, ..pods.clone() };
            let of = |labels: &str, side: &Side| narrowed(&query(labels), &base.namespace, side);
            let (candidate, stable) = (side(&base.candidate), side(&base.stable));
            for labels in ["{workload: w}", "{pod: pod}"] {
                assert!(of(labels, &candidate).is_err() && of(labels, &stable).is_err(), "{kind:?} {labels}");
            }
            let both = "{pod: pod, workload: w, version: v}";
            let wanted = |version: &str| {
                let matchers = format!(r#"namespace="shop",pod=~"{pattern}",w="db",v="{version}""#);
                Ok(format!("rate(a{{{matchers}}}[1m]) / b{{{matchers}}}"))
            };
            assert_eq!(of(both, &candidate), wanted(&"b".repeat(16)));
            assert_eq!(of(both, &stable), wanted(&"a".repeat(16)));
            assert_eq!(of(both, &Side { pods: None, ..stable }), wanted(""));
        }
    }
}
