//! Queries of checks: PromQL to which the candidate's labels are added, in its syntax tree and not in its text, so that
//! no comment, string or subquery can escape them.

use super::diagnostic::quoted;
use super::ids::{Namespace, ObjectName};
use super::raw::{self, Subject};
use promql_parser::label::Matchers;
use promql_parser::parser::{Expr, parse};

/// How deep a query may be nested: a stack is finite.
const DEPTH: usize = 100;
/// What Kubernetes cuts the names of pods to before it adds five characters
/// (`apiserver/pkg/storage/names/generate.go`).
const BASE: usize = 58;
/// The digest of a pod template in the name of a ReplicaSet.
const HASH: usize = 10;

/// What is wrong with a query, and which part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Below the check's `prometheus`.
    pub(super) pointer: String,
    pub(super) found: String,
    pub(super) expected: String,
}

/// The names of what serves the new version during a run.
pub(super) struct Candidate<'a> {
    pub(super) namespace: &'a Namespace,
    /// The Deployment.
    pub(super) workload: String,
    /// The Service, where the router has one for it.
    pub(super) service: Option<String>,
}

impl<'a> Candidate<'a> {
    pub(super) fn of(namespace: &'a Namespace, spec: &raw::RolloutSpec, suffix: &str) -> Self {
        let gateway = spec.traffic.as_ref().and_then(|traffic| traffic.gateway_api.as_ref());
        let copy = |name: &ObjectName| format!("{name}{suffix}");
        Self { namespace, workload: copy(&spec.target.name), service: gateway.map(|route| copy(&route.service)) }
    }

    /// The matcher that a label gets.
    fn matcher(&self, label: &str, subject: Subject) -> Result<String, Wrong> {
        let wrong = |found: String, expected: &str| {
            Err(Wrong { pointer: "/select".to_owned(), found, expected: expected.to_owned() })
        };
        let start = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !label.starts_with(start) || !label.chars().all(|c| start(c) || c.is_ascii_digit()) {
            return wrong(
                format!("{} is not the name of a label", quoted(label)),
                "letters, digits and '_', no digit first",
            );
        }
        Ok(match subject {
            Subject::Namespace => format!("{label}=\"{}\"", self.namespace),
            Subject::Workload => format!("{label}=\"{}\"", self.workload),
            Subject::Service => match &self.service {
                Some(service) => format!("{label}=\"{service}\""),
                None => {
                    return wrong(
                        "the candidate has no Service".to_owned(),
                        "workload or pod, or the router gatewayAPI",
                    );
                }
            },
            Subject::Pod if self.workload.len() + 1 + HASH + 1 > BASE => {
                let found = format!("Kubernetes cuts the names of the pods of {}", self.workload);
                return wrong(found, "a target with a shorter name, or another label");
            }
            // Two backslashes in PromQL are one in the expression.
            Subject::Pod => {
                format!("{label}=~\"{}-[0-9a-z]+-[0-9a-z]{{5}}\"", self.workload.replace('.', "\\\\."))
            }
        })
    }
}

/// The query with a matcher for each label of `select` in each of its selectors; as it is if there are none.
pub(super) fn narrowed(query: &raw::PrometheusQuery, candidate: &Candidate<'_>) -> Result<String, Wrong> {
    if query.select.is_empty() {
        return Ok(query.query.clone());
    }
    let at_query =
        |found: String, expected: &str| Wrong { pointer: "/query".to_owned(), found, expected: expected.to_owned() };
    let matchers = query.select.iter().map(|(label, subject)| candidate.matcher(label, *subject));
    let matchers = matchers.collect::<Result<Vec<_>, _>>()?.join(",");
    let read = |text: &str| {
        parse(text).map_err(|why| at_query(format!("this PromQL cannot be read: {why}"), "a query in PromQL"))
    };
    let Expr::VectorSelector(added) = read(&format!("{{{matchers}}}"))? else {
        return Err(at_query("nothing to add".to_owned(), "labels to select by"));
    };
    let mut expr = read(&query.query)?;
    let mut selectors = Vec::new();
    collect(&mut expr, DEPTH, &mut selectors)
        .map_err(|TooDeep| at_query(format!("the query is nested more than {DEPTH} deep"), "a simpler query"))?;
    if selectors.is_empty() {
        return Err(at_query("the query selects no series".to_owned(), "the name of a metric"));
    }
    for selector in selectors {
        if !selector.or_matchers.is_empty() {
            return Err(at_query(
                "a selector with 'or' in its braces".to_owned(),
                "two selectors with 'or' between them",
            ));
        }
        if let Some(own) = selector.matchers.iter().find(|own| query.select.contains_key(&own.name)) {
            let found = format!("the query itself says what the label {} must be", own.name);
            return Err(at_query(found, "the label either in the query or in select"));
        }
        selector.matchers.extend(added.matchers.matchers.clone());
        // As they are printed.
        selector.matchers.sort_by_cached_key(ToString::to_string);
    }
    let text = expr.to_string();
    // What is printed means the same: a parser's printer is a program, too.
    if parse(&text).as_ref() != Ok(&expr) {
        return Err(at_query(
            "labels cannot be added to this query".to_owned(),
            "the labels in the query, and no select",
        ));
    }
    Ok(text)
}

struct TooDeep;

/// The matchers of all selectors of a query.
fn collect<'a>(expr: &'a mut Expr, depth: usize, found: &mut Vec<&'a mut Matchers>) -> Result<(), TooDeep> {
    let depth = depth.checked_sub(1).ok_or(TooDeep)?;
    match expr {
        Expr::VectorSelector(selector) => found.push(&mut selector.matchers),
        Expr::MatrixSelector(matrix) => found.push(&mut matrix.vs.matchers),
        Expr::Aggregate(of) => {
            collect(&mut of.expr, depth, found)?;
            if let Some(param) = &mut of.param {
                collect(param, depth, found)?;
            }
        }
        Expr::Unary(of) => collect(&mut of.expr, depth, found)?,
        Expr::Paren(of) => collect(&mut of.expr, depth, found)?,
        Expr::Subquery(of) => collect(&mut of.expr, depth, found)?,
        Expr::Binary(of) => {
            collect(&mut of.lhs, depth, found)?;
            collect(&mut of.rhs, depth, found)?;
        }
        Expr::Call(of) => {
            for argument in &mut of.args.args {
                collect(argument, depth, found)?;
            }
        }
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn candidate() -> Candidate<'static> {
        let namespace: &'static Namespace = Box::leak(Box::new("shop".parse().unwrap()));
        Candidate { namespace, workload: "podinfo-canary".to_owned(), service: Some("web-canary".to_owned()) }
    }

    fn narrow(query: &str, select: &[(&str, Subject)]) -> Result<String, Wrong> {
        let select: BTreeMap<String, Subject> = select.iter().map(|(label, of)| ((*label).to_owned(), *of)).collect();
        let query = raw::PrometheusQuery { provider: "main".parse().unwrap(), query: query.to_owned(), select };
        narrowed(&query, &candidate())
    }

    #[test]
    fn each_selector_gets_the_labels_of_the_candidate() {
        let select = [("pod", Subject::Pod), ("namespace", Subject::Namespace)];
        let text = narrow(
            r#"sum(rate(http_requests_total{code=~"5..", path!="}"}[1m])) / sum(rate(http_requests_total[1m] offset 1m)) # }"#,
            &select,
        );
        insta::assert_snapshot!(text.unwrap());
        let subquery = r#"max_over_time(histogram_quantile(0.99, sum by (le) (rate(x_bucket[1m])))[5m:1m]) > bool 2"#;
        insta::assert_snapshot!(narrow(subquery, &[("w", Subject::Workload), ("s", Subject::Service)]).unwrap());
    }

    #[test]
    fn without_labels_the_query_stays_as_it_is() {
        let metrics_ql = "sum(rate(x)) default 0 # not PromQL at all";
        assert_eq!(narrow(metrics_ql, &[]).as_deref(), Ok(metrics_ql));
    }

    #[test]
    fn what_cannot_be_narrowed_says_why() {
        let pod = [("pod", Subject::Pod)];
        let deep = format!("{}x{}", "(".repeat(101), ")".repeat(101));
        let refused: Vec<String> = [
            narrow("sum(", &pod),
            narrow("1 + 1", &pod),
            narrow(r#"x{pod="mine"}"#, &pod),
            narrow(r#"x{a="b" or c="d"}"#, &pod),
            narrow(&deep, &pod),
            narrow(&"-".repeat(4_000), &pod),
            narrow("x", &[("1pod", Subject::Pod)]),
            narrow("x", &[("pod=\"a\"} or y{b", Subject::Pod)]),
        ]
        .into_iter()
        .map(|refused| refused.map_err(|Wrong { pointer, found, expected }| format!("{pointer}: {found}; {expected}")))
        .map(Result::unwrap_err)
        .collect();
        insta::assert_snapshot!(refused.join("\n"));
        let long = Candidate { workload: "w".repeat(47), service: None, ..candidate() };
        let query = |of| raw::PrometheusQuery {
            provider: "main".parse().unwrap(),
            query: "x".to_owned(),
            select: BTreeMap::from([("a".to_owned(), of)]),
        };
        assert!(narrowed(&query(Subject::Pod), &long).unwrap_err().found.starts_with("Kubernetes cuts"));
        assert_eq!(narrowed(&query(Subject::Service), &long).unwrap_err().found, "the candidate has no Service");
    }
}
