//! Checks: each is written once, used, and can come to a result within the soak of every step that names it.

use super::Case;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::duration::Span;
use crate::manifest::ids::CheckName;
use crate::manifest::raw;
use std::collections::BTreeSet;

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        case.spec.checks.iter().flat_map(|(name, check)| bounds(case, name, check)).collect();
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

fn bounds(case: &Case<'_>, name: &CheckName, check: &raw::Check) -> Option<Diagnostic> {
    let pointer = format!("/spec/checks/{name}");
    if check.interval == Span::ZERO {
        let pointer = format!("{pointer}/interval");
        return Some(case.error(&pointer, Code::CheckUseless, "no time between two samples", "at least 1s"));
    }
    match (check.min, check.max) {
        (None, None) => {
            let what = format!("every value of {name} is good");
            Some(case.error(&pointer, Code::CheckUseless, what, "max, min or both"))
        }
        (Some(min), Some(max)) if min.get() > max.get() => {
            let what = format!("no value is at least {min} and at most {max}");
            Some(case.error(&format!("{pointer}/min"), Code::CheckUseless, what, "a min that is not above max"))
        }
        (Some(_), _) | (_, Some(_)) => None,
    }
}

fn unknown(case: &Case<'_>, pointer: &str, name: &CheckName) -> Diagnostic {
    let known: Vec<&str> = case.spec.checks.keys().map(CheckName::as_str).collect();
    let expected =
        if known.is_empty() { "a check below spec.checks".to_owned() } else { format!("one of {}", known.join(", ")) };
    case.error(pointer, Code::CheckMissing, format!("there is no check {name}"), expected)
}

/// A step that ends before there can be enough samples would hold for ever, or pass unmeasured.
fn too_short(case: &Case<'_>, pointer: &str, name: &CheckName, check: &raw::Check, length: Span) -> Option<Diagnostic> {
    let needed = check.interval.as_secs().saturating_mul(u64::from(check.min_samples));
    (length.as_secs() < needed).then(|| {
        let needed = Span::from_secs(needed);
        let what = format!("the step stays {length}, and {name} has {} samples after {needed}", check.min_samples);
        let expected = format!("at least {needed}, a shorter interval, or fewer minSamples");
        case.error(pointer, Code::CheckUseless, what, expected)
    })
}
