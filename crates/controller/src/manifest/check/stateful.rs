//! A StatefulSet as the target: its own pods are moved, so that there is no router, and its partition is the rollout's.

use super::{Case, scale};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::set::Item;
use crate::manifest::{expand, raw};

pub(super) fn check(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    let mut found = own_pods(case);
    found.extend(strategy(target));
    let phases = || case.spec.phases.iter().enumerate();
    if scale::number(target, "/spec/replicas").is_some() {
        // Told already; nothing can be counted from it.
        return found;
    }
    let pods = scale::baseline(case, target);
    if pods == 0 {
        let what = "there are no pods by which a new version could be tried";
        found.push(target.error("/spec/replicas", Code::ScaleToZero, what, "at least one replica"));
        return found;
    }
    found.extend(phases().filter_map(|(i, phase)| too_fine(case, target, pods, (i, phase))));
    found.extend(one_by_one(case, target, pods));
    found
}

/// Several pods away at a time, where Kubernetes makes one after the other: they would only be away for longer.
fn one_by_one(case: &Case<'_>, target: &Item, pods: u64) -> Option<Diagnostic> {
    let rolling = case.spec.rolling_update.as_ref()?;
    let ordered = target.object.text("/spec/podManagementPolicy") != Some("Parallel");
    let many = rolling.slots(u32::try_from(pods).unwrap_or(u32::MAX)) > 1;
    (ordered && many).then(|| {
        let what = format!(
            "with maxUnavailable {} several pods are away at a time, and Kubernetes makes them one after the other",
            rolling.max_unavailable
        );
        let pointer = "/spec/rollingUpdate/maxUnavailable";
        let found = case.error(pointer, Code::Conflict, what, "maxUnavailable: 1, or podManagementPolicy: Parallel");
        found.help("podManagementPolicy of a StatefulSet that is there already cannot be changed")
    })
}

/// What does not go together with a target whose own pods are moved.
pub(super) fn own_pods(case: &Case<'_>) -> Vec<Diagnostic> {
    let phases = case.spec.phases.iter().enumerate();
    routed(case).into_iter().chain(phases.flat_map(|(i, phase)| by_pods_alone(case, i, &phase.expose))).collect()
}

fn routed(case: &Case<'_>) -> Option<Diagnostic> {
    case.spec.traffic.as_ref()?;
    let kind = case.spec.target.kind.kind();
    let what =
        format!("the pods of a {kind} are never copied, so that no router has a second version to lead requests to");
    let found = case.error("/spec/traffic", Code::RouterLimit, what, format!("no traffic with the target {kind}"));
    Some(found.help(
        "requests reach its pods as without a rollout; expose: {weight: …} is the share of the pods that are new",
    ))
}

/// What needs a router.
fn by_pods_alone(case: &Case<'_>, i: usize, expose: &raw::Expose) -> Vec<Diagnostic> {
    let raw::Expose { headers, cookies, weight: _, weights: _, ramp: _, mirror, units: _, preview } = expose;
    let given = [
        ("headers", !headers.is_empty()),
        ("cookies", !cookies.is_empty()),
        ("mirror", mirror.is_some()),
        ("preview", preview.is_some()),
    ];
    let given = given.into_iter().filter(|(_, given)| *given);
    let error = |(field, _): (&str, bool)| {
        let kind = case.spec.target.kind.kind();
        let what = format!("of a {kind} pods are exposed, and {field} would take a router");
        let pointer = format!("/spec/phases/{i}/expose/{field}");
        let found = case.error(
            &pointer,
            Code::RouterLimit,
            what,
            "a weight, the share of the pods that are new, or units, their number",
        );
        found.help("whoever needs more puts a Deployment before it, with a router of its own")
    };
    given.map(error).collect()
}

/// The update strategy of the manifest: what the rollout itself decides it cannot say.
fn strategy(target: &Item) -> Option<Diagnostic> {
    let strategy = "/spec/updateStrategy";
    if target.object.text(&format!("{strategy}/type")) == Some("OnDelete") {
        let what = "with OnDelete people choose which pods are new, and the rollout does";
        let found =
            target.error(&format!("{strategy}/type"), Code::RouterLimit, what, "RollingUpdate, or no updateStrategy");
        return Some(
            found.help(
                "pods are moved phase by phase, from the highest number down, and each phase can ask for approval",
            ),
        );
    }
    let pointer = format!("{strategy}/rollingUpdate/partition");
    let kept = target.object.int(&pointer).filter(|partition| *partition != 0)?;
    let what = format!("the partition {kept} would keep pods of an older version for good");
    let found = target.error(&pointer, Code::RouterLimit, what, "no partition, or 0");
    Some(found.help("the rollout sets it while a run is open; a phase with a weight is how some pods are new first"))
}

/// A weight that is no pod at all; of a ramp the first says it for all.
fn too_fine(case: &Case<'_>, target: &Item, pods: u64, (i, phase): (usize, &raw::Phase)) -> Option<Diagnostic> {
    let weighs = |part: &expand::Part| part.weight.map_or(0, |weight| u64::from(weight.get()));
    let none = |weight: u64| weight > 0 && pods * weight / 100 == 0;
    let part = expand::parts(phase).into_iter().find(|part| none(weighs(part)))?;
    let (count, why, more) = scale::counted(case, target, pods);
    let found = format!("{} percent of {count}{why} is less than one pod", weighs(&part));
    let pointer = format!("/spec/phases/{i}/{}", part.at);
    let smallest = 100_u64.div_ceil(pods);
    let found = case.error(&pointer, Code::WeightTooFine, found, format!("a weight of at least {smallest}"));
    Some(found.help(format!("a StatefulSet is weighed by whole pods; {more} would allow finer weights")))
}
