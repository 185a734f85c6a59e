//! Checks: each is written once, used, and can come to a result within the soak of every step that names it.

use super::Case;
use crate::manifest::desired::{Bounds, Check, Criterion};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::duration::Span;
use crate::manifest::ids::CheckName;
use crate::manifest::raw;
use std::collections::BTreeSet;

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        case.spec.checks.iter().flat_map(|(name, check)| useless(case, name, check)).collect();
    for (pointer, length, names) in steps(case.spec) {
        let mut seen = BTreeSet::new();
        for (i, name) in names.iter().enumerate() {
            let pointer = format!("{pointer}/{i}");
            if !seen.insert(name) {
                found.push(case.error(
                    &pointer,
                    Code::Conflict,
                    format!("{name} stands here twice"),
                    "each check once",
                ));
            }
            match case.spec.checks.get(name) {
                None => found.push(unknown(case, &pointer, name)),
                Some(check) => found.extend(too_short(case, &pointer, name, check, length)),
            }
        }
    }
    found
}

/// Checks that no step names.
pub(super) fn idle(case: &Case<'_>) -> Vec<Diagnostic> {
    let used: BTreeSet<&CheckName> = steps(case.spec).flat_map(|(_, _, names)| names).collect();
    let idle = case.spec.checks.keys().filter(|name| !used.contains(name));
    idle.map(|name| {
        let what = format!("no phase names the check {name}");
        let expected = format!("checks: [{name}] in a phase or in promotion");
        case.error(&format!("/spec/checks/{name}"), Code::CheckMissing, what, expected)
    })
    .collect()
}

/// Every step that can have checks: where its list stands, and how long the step stays.
fn steps(spec: &raw::RolloutSpec) -> impl Iterator<Item = (String, Span, &Vec<CheckName>)> {
    let phases = spec.phases.iter().enumerate();
    let phases = phases.map(|(i, phase)| (format!("/spec/phases/{i}/checks"), phase.soak, &phase.checks));
    phases.chain([("/spec/promotion/checks".to_owned(), spec.promotion.bake, &spec.promotion.checks)])
}

fn useless(case: &Case<'_>, name: &CheckName, check: &raw::Check) -> Vec<Diagnostic> {
    let pointer = format!("/spec/checks/{name}");
    if check.interval == Span::ZERO {
        let pointer = format!("{pointer}/interval");
        return vec![case.error(&pointer, Code::CheckUseless, "no time between two samples", "at least 1s")];
    }
    match (&check.prometheus, &check.webhook) {
        (Some(_), None) => bounds(case, &pointer, name, check).into_iter().collect(),
        (None, Some(_)) => foreign(case, &pointer, check),
        (Some(_), Some(_)) | (None, None) => {
            let what = format!("it is not clear what {name} asks");
            vec![case.error(&pointer, Code::Schema, what, "exactly one of prometheus and webhook")]
        }
    }
}

fn bounds(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check) -> Option<Diagnostic> {
    match (check.min, check.max) {
        (None, None) => {
            let what = format!("every value of {name} is good");
            Some(case.error(pointer, Code::CheckUseless, what, "max, min or both"))
        }
        (Some(min), Some(max)) if min.get() > max.get() => {
            let what = format!("no value is at least {min} and at most {max}");
            Some(case.error(&format!("{pointer}/min"), Code::CheckUseless, what, "a min that is not above max"))
        }
        (Some(_), _) | (_, Some(_)) => None,
    }
}

/// What stands beside a webhook and belongs to a query.
fn foreign(case: &Case<'_>, pointer: &str, check: &raw::Check) -> Vec<Diagnostic> {
    let fields = [
        ("max", check.max.is_some()),
        ("min", check.min.is_some()),
        ("minSamples", check.min_samples.is_some()),
        ("failureLimit", check.failure_limit.is_some()),
    ];
    let found = fields.iter().filter(|(_, is_there)| *is_there).map(|(field, _)| {
        let what = format!("{field} belongs to a check with prometheus");
        let expected = format!("no {field}: a webhook says itself what is good");
        case.error(&format!("{pointer}/{field}"), Code::CheckUseless, what, expected)
    });
    found.collect()
}

fn unknown(case: &Case<'_>, pointer: &str, name: &CheckName) -> Diagnostic {
    let known: Vec<&str> = case.spec.checks.keys().map(CheckName::as_str).collect();
    let expected =
        if known.is_empty() { "a check below spec.checks".to_owned() } else { format!("one of {}", known.join(", ")) };
    case.error(pointer, Code::CheckMissing, format!("there is no check {name}"), expected)
}

/// A step that ends before there can be enough samples, or one question, would hold for ever, or pass unmeasured.
fn too_short(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check, length: Span) -> Option<Diagnostic> {
    let Check { criterion, interval, .. } = check.clone().try_into().ok()?;
    let (questions, what, or) = match criterion {
        Criterion::Prometheus(Bounds { min_samples, .. }) => {
            (min_samples, format!("has {min_samples} samples"), "a shorter interval, or fewer minSamples")
        }
        Criterion::Webhook(_) => (1, "is asked for the first time".to_owned(), "or a shorter interval"),
    };
    let needed = Span::from_secs(interval.as_secs().saturating_mul(u64::from(questions)));
    (length < needed).then(|| {
        let what = format!("the step stays {length}, and {name} {what} after {needed}");
        case.error(pointer, Code::CheckUseless, what, format!("at least {needed}, {or}"))
    })
}
