//! Checks: each is written once, used, and can come to a result within the soak of every step that names it.

mod counted;
mod query;

use super::Case;
use crate::manifest::desired::{Bound, Check, Criterion};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::duration::Span;
use crate::manifest::expand;
use crate::manifest::ids::{CheckName, Percent};
use crate::manifest::measure::Limits;
use crate::manifest::raw;
use std::collections::BTreeSet;

/// How long a provider has to be away at least before a run goes back for it.
const LEAST_AWAY: Span = Span::from_secs(60);

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        case.spec.checks.iter().flat_map(|(name, check)| useless(case, name, check)).collect();
    for Measured { pointer, length, names, stable } in steps(case.spec) {
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
                Some(check) => {
                    found.extend(too_short(case, &pointer, name, check, length));
                    found.extend(alone(case, &pointer, name, check, stable));
                }
            }
        }
    }
    found.extend(counted::by_rule(case));
    found.extend(counted::of_nobody(case));
    found
}

/// Checks that no step names, and those that may find nothing.
pub(super) fn idle(case: &Case<'_>) -> Vec<Diagnostic> {
    let used: BTreeSet<&CheckName> = steps(case.spec).flat_map(|step| step.names).collect();
    let idle = case.spec.checks.keys().filter(|name| !used.contains(name));
    let idle = idle.map(|name| {
        let what = format!("no phase names the check {name}");
        let expected = format!("checks: [{name}] in a phase or in promotion");
        case.error(&format!("/spec/checks/{name}"), Code::CheckMissing, what, expected)
    });
    let asked = case.spec.checks.iter().filter_map(|(name, check)| {
        query::unfamiliar(case, &format!("/spec/checks/{name}"), check.prometheus.as_ref()?)
    });
    idle.chain(asked).chain(counted::of_any_host(case)).chain(counted::of_load_tests(case)).collect()
}

/// A step that can have checks.
struct Measured<'a> {
    /// Where its list stands.
    pointer: String,
    /// How long it stays.
    length: Span,
    names: &'a [CheckName],
    stable: Stable,
}

/// Whether anything can be measured of stable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stable {
    Serves,
    Idles,
}

fn steps(spec: &raw::RolloutSpec) -> impl Iterator<Item = Measured<'_>> {
    let mut shares =
        spec.phases.iter().map(|phase| expand::parts(phase).into_iter().filter_map(|part| part.weight).max());
    let all = shares.position(|share| share == Some(Percent::ALL)).unwrap_or(usize::MAX);
    let phases = spec.phases.iter().enumerate().map(move |(i, phase)| Measured {
        pointer: format!("/spec/phases/{i}/checks"),
        length: phase.soak,
        names: &phase.checks,
        stable: if i < all { Stable::Serves } else { Stable::Idles },
    });
    phases.chain([Measured {
        pointer: "/spec/promotion/checks".to_owned(),
        length: spec.promotion.bake,
        names: &spec.promotion.checks,
        stable: Stable::Idles,
    }])
}

fn useless(case: &Case<'_>, name: &CheckName, check: &raw::Check) -> Vec<Diagnostic> {
    let pointer = format!("/spec/checks/{name}");
    if check.interval == Span::ZERO {
        let pointer = format!("{pointer}/interval");
        return vec![case.error(&pointer, Code::CheckUseless, "no time between two samples", "at least 1s")];
    }
    if let Some(hasty) = hasty(case, &pointer, check) {
        return vec![hasty];
    }
    let raw::Check { prometheus, success_rate, latency, webhook, .. } = check;
    let measured = match (prometheus, success_rate, latency, webhook) {
        (Some(asked), None, None, None) => query::check(case, &pointer, asked, check.compared_with_stable),
        (None, Some(asked), None, None) => counted::success_rate(case, &pointer, check, asked.proxy),
        (None, None, Some(asked), None) => counted::latency(case, &pointer, check, asked.proxy),
        (None, None, None, Some(_)) => return foreign(case, &pointer, check),
        _ => {
            let what = format!("it is not clear what {name} asks");
            let expected = "exactly one of prometheus, successRate, latency and webhook";
            return vec![case.error(&pointer, Code::Schema, what, expected)];
        }
    };
    let useless = bounds(case, &pointer, name, check).into_iter();
    useless.chain(query::compared(case, &pointer, check.compared_with_stable)).chain(measured).collect()
}

/// A deadline that a provider which restarts would pass.
fn hasty(case: &Case<'_>, pointer: &str, check: &raw::Check) -> Option<Diagnostic> {
    let away = check.on_away.filter(|away| away.after < LEAST_AWAY)?;
    let what = format!("a provider that does not answer is asked again after 5s, and {} is no outage", away.after);
    let expected = format!("at least {LEAST_AWAY}");
    Some(case.error(&format!("{pointer}/onAway/after"), Code::CheckUseless, what, expected))
}

fn bounds(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check) -> Option<Diagnostic> {
    if (check.min, check.max, check.compared_with_stable) == (None, None, None) {
        let what = format!("every value of {name} is good");
        return Some(case.error(pointer, Code::CheckUseless, what, "max, min or comparedWithStable"));
    }
    limits(case, pointer, "value", Limits { max: check.max, min: check.min })
}

/// Limits that nothing is within.
fn limits(case: &Case<'_>, pointer: &str, what: &str, Limits { max, min }: Limits) -> Option<Diagnostic> {
    let (min, max) = min.zip(max).filter(|(min, max): &(Bound, Bound)| min.get() > max.get())?;
    let what = format!("no {what} is at least {min} and at most {max}");
    Some(case.error(&format!("{pointer}/min"), Code::CheckUseless, what, "a min that is not above max"))
}

/// What stands beside a webhook and belongs to a query.
fn foreign(case: &Case<'_>, pointer: &str, check: &raw::Check) -> Vec<Diagnostic> {
    let fields = [
        ("max", check.max.is_some()),
        ("min", check.min.is_some()),
        ("comparedWithStable", check.compared_with_stable.is_some()),
        ("minSamples", check.min_samples.is_some()),
        ("failureLimit", check.failure_limit.is_some()),
    ];
    let found = fields.iter().filter(|(_, is_there)| *is_there).map(|(field, _)| {
        let what = format!("{field} belongs to a check that measures");
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

/// A step that ends before there can be enough samples, or one question, would hold for ever, or pass unmeasured; before there can be
/// more bad ones than are allowed, it would pass whatever is measured.
fn too_short(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check, length: Span) -> Option<Diagnostic> {
    let Check { criterion, interval, .. } = check.clone().try_into().ok()?;
    let (questions, what, or) = match criterion {
        Criterion::Prometheus(bounds) => {
            let (enough, bad) = (bounds.min_samples, bounds.failure_limit.saturating_add(1));
            if bad > enough {
                (bad, format!("can have {bad} bad samples"), "a shorter interval, or a smaller failureLimit")
            } else {
                (enough, format!("has {enough} samples"), "a shorter interval, or fewer minSamples")
            }
        }
        Criterion::Webhook(_) => (1, "is asked for the first time".to_owned(), "or a shorter interval"),
    };
    let needed = Span::from_secs(interval.as_secs().saturating_mul(u64::from(questions)));
    (length < needed).then(|| {
        let what = format!("the step stays {length}, and {name} {what} after {needed}");
        case.error(pointer, Code::CheckUseless, what, format!("at least {needed}, {or}"))
    })
}

/// A comparison where stable has no requests has nothing to compare with.
fn alone(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check, stable: Stable) -> Option<Diagnostic> {
    (stable == Stable::Idles && check.compared_with_stable.is_some()).then(|| {
        let what = format!("{name} is compared with stable, which serves nobody in this step");
        let expected = "checks with limits of their own: max or min";
        case.error(pointer, Code::CheckUseless, what, expected)
    })
}
