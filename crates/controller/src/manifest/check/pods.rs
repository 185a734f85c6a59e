//! Pods: enough of them, whose copies nobody else selects, with names that have room for the suffix.

use super::primary::is_primary;
use super::versioned::is_versioned;
use super::{Case, Findings, PRIMARY, SUFFIX, scale};
use crate::manifest::canonical::referenced_config_maps;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, items};
use crate::manifest::reference::{self, Referent};
use crate::manifest::set::Item;
use crate::manifest::set::refused::UNRENDERED;
use crate::manifest::{expand, raw};
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest name and label value that Kubernetes takes for everything (RFC 1123 label).
const LONGEST: usize = 63;

pub(super) type Labels = BTreeMap<String, String>;

/// All of this matters only where a candidate runs beside stable, so only with a router.
pub(super) fn check(case: &Case<'_>, target: &Item, findings: &mut Findings) {
    let Some((pointer, service)) = case.service() else { return };
    let service = match case.require(&pointer, Kind::Service, &service) {
        Ok(service) => service,
        Err(missing) => {
            findings.errors.extend(missing);
            return;
        }
    };
    findings.errors.extend(sizes(case, target));
    findings.errors.extend(names(case, target, service));
    clones(case, target, findings);
    selectors(case, target, service, findings);
    findings.errors.extend(tells_apart(case, target, service));
}

fn is_replicas(case: &Case<'_>) -> bool {
    case.spec.traffic.as_ref().is_some_and(|traffic| traffic.replicas.is_some())
}

fn sizes(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    if scale::number(target, "/spec/replicas").is_some() {
        // Told already; nothing can be counted from it.
        return Vec::new();
    }
    let pods = scale::baseline(case, target);
    if pods == 0 {
        let expected = "at least one replica, or no traffic in the rollout";
        return vec![target.error(
            "/spec/replicas",
            Code::ScaleToZero,
            "there are no pods to split requests to",
            expected,
        )];
    }
    if !is_replicas(case) {
        return Vec::new();
    }
    let phases = case.spec.phases.iter().enumerate();
    phases.filter_map(|(i, phase)| too_fine(case, target, pods, (i, phase))).collect()
}

/// A weight that is no pod at all; of a ramp the first says it for all.
fn too_fine(case: &Case<'_>, target: &Item, pods: u64, (i, phase): (usize, &raw::Phase)) -> Option<Diagnostic> {
    let weighs = |part: &expand::Part| part.weight.map_or(0, |weight| u64::from(weight.get()));
    let none = |weight: u64| weight > 0 && weight < 100 && pods * weight / (100 - weight) == 0;
    let part = expand::parts(phase).into_iter().find(|part| none(weighs(part)))?;
    // ⌊pods × w / (100 − w)⌋ ≥ 1 where w ≥ 100 / (pods + 1)
    let smallest = 100_u64.div_ceil(pods + 1);
    let (count, why, more) = scale::counted(case, target, pods);
    let found = format!("{} percent of {count} beside them{why} is less than one pod", weighs(&part));
    let pointer = format!("/spec/phases/{i}/{}", part.at);
    let found = case.error(&pointer, Code::WeightTooFine, found, format!("a weight of at least {smallest}"));
    Some(found.help(format!("the router replicas weighs by whole pods; {more}, or gatewayAPI, allow finer weights")))
}

/// What the names of most copies, and the label value of their pods, end in.
fn suffix(case: &Case<'_>) -> &'static str {
    if is_primary(case) { PRIMARY } else { SUFFIX }
}

fn names(case: &Case<'_>, target: &Item, service: &Item) -> Vec<Diagnostic> {
    let copied = copied(case, target, service).into_iter();
    copied.flat_map(|(item, suffix)| name_of_copy(case, item, suffix)).collect()
}

/// What has a copy, with what the copy's name ends in.
pub(super) fn copied<'a>(case: &'a Case<'_>, target: &'a Item, service: &'a Item) -> Vec<(&'a Item, &'static str)> {
    if is_versioned(case) {
        // Nothing is copied.
        return Vec::new();
    }
    let template = target.object.at("/spec/template").unwrap_or(&Value::Null);
    let maps: Vec<ObjectName> = referenced_config_maps(template).iter().filter_map(|name| name.parse().ok()).collect();
    let copied = maps.iter().filter_map(|name| case.item(Kind::ConfigMap, name));
    let copied = copied.chain([target]).chain((!is_replicas(case)).then_some(service));
    let copied = copied.chain(scale::autoscalers(case, target).filter(|_| is_primary(case)));
    let canary = is_primary(case).then_some(service).into_iter().chain(ingress(case)).map(|item| (item, SUFFIX));
    copied.map(|item| (item, suffix(case))).chain(canary).collect()
}

/// The labels of the candidate's pods, where no other Service may select these.
pub(super) fn of_candidate(case: &Case<'_>, target: &Item) -> Option<Labels> {
    let mut pods = labels(target.object.at("/spec/template/metadata/labels"));
    if is_versioned(case) {
        return None;
    }
    if !is_replicas(case) && !is_primary(case) {
        let own = labels(target.object.at("/spec/selector/matchLabels"));
        let key = telling_label(&own)?;
        pods.insert(key.to_owned(), format!("{}{SUFFIX}", own.get(key)?));
    }
    Some(pods)
}

/// Whether the copy of an object can be called what it will be called.
pub(super) fn name_of_copy(case: &Case<'_>, item: &Item, suffix: &str) -> Vec<Diagnostic> {
    name_beside(case, item, item.object.reference().kind, suffix)
}

/// Whether an object of that kind can be made beside another, and called so.
pub(super) fn name_beside(case: &Case<'_>, item: &Item, kind: Kind, suffix: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let reference = item.object.reference();
    let copy = format!("{}{suffix}", reference.name);
    if copy.len() > LONGEST {
        let what = format!("its copy would be called {copy}, {} characters", copy.len());
        let expected = format!("a name of at most {} characters", LONGEST - suffix.len());
        found.push(item.error("/metadata/name", Code::NameTooLong, what, expected));
    }
    let taken = copy.parse().ok().and_then(|name| case.item(kind, &name));
    if let Some(other) = taken {
        let what = format!("the copy of {} will have this name", reference.name);
        found.push(other.error("/metadata/name", Code::Conflict, what, format!("a name without {suffix}")));
    }
    found
}

/// The Ingress that has a copy beside it during a run.
pub(super) fn ingress<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Item> {
    case.of_kind(Kind::Ingress).filter(|item| case.route() == Some(item.object.reference().clone()))
}

/// A named port of a Service that leads to the target's pods is one of theirs (requirement C-29).
pub(super) fn ports(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let containers = list(target.object.at("/spec/template/spec/containers"));
    let sidecars = list(target.object.at("/spec/template/spec/initContainers"));
    let named: Vec<String> = containers
        .iter()
        .chain(&sidecars)
        .flat_map(|container| list(container.get("ports")))
        .filter_map(|port| port.get("name")?.as_str().map(ToOwned::to_owned))
        .collect();
    let pods = labels(target.object.at("/spec/template/metadata/labels"));
    let services = case.of_kind(Kind::Service).filter(|item| matches_plain(item.object.at("/spec/selector"), &pods));
    let wanted = services.flat_map(|service| {
        let ports = items(&service.object.value()["spec"], "ports").enumerate();
        ports.filter_map(move |(i, port)| Some((service, i, port.get("targetPort")?.as_str()?)))
    });
    wanted
        .filter(|(_, _, name)| !named.iter().any(|n| n == name))
        .map(|(service, i, name)| {
            let expected =
                if named.is_empty() { "a number".to_owned() } else { format!("one of {}", named.join(", ")) };
            let pointer = format!("/spec/ports/{i}/targetPort");
            service.error(&pointer, Code::TargetMissing, format!("the pods have no port called {name:?}"), expected)
        })
        .collect()
}

/// What a second copy of the pods would fight over (design §13.15).
fn clones(case: &Case<'_>, target: &Item, findings: &mut Findings) {
    let spec = "/spec/template/spec";
    let count = |pointer: &str| target.object.at(pointer).and_then(Value::as_array).map_or(0, Vec::len);
    for i in 0..count(&format!("{spec}/containers")) {
        for j in 0..count(&format!("{spec}/containers/{i}/ports")) {
            let pointer = format!("{spec}/containers/{i}/ports/{j}/hostPort");
            if target.object.int(&pointer).is_some_and(|port| port > 0) {
                let found = "the candidate's pods would fight with stable's for this port of the node";
                findings.errors.push(target.error(&pointer, Code::CannotClone, found, "no hostPort, or no traffic"));
            }
        }
    }
    for i in 0..count(&format!("{spec}/volumes")) {
        let pointer = format!("{spec}/volumes/{i}/persistentVolumeClaim");
        let Some(claim) = target.object.at(&format!("{pointer}/claimName")).and_then(Value::as_str) else { continue };
        if !is_for_many(case, claim) {
            let found = "the candidate's pods will mount the same claim as stable's";
            let expected = "a claim that many pods can mount (ReadWriteMany or ReadOnlyMany)";
            findings.warnings.push(target.error(&pointer, Code::CannotClone, found, expected));
        }
    }
}

/// Images that are templates: to YAML they are texts, to the kubelet no names of images.
pub(super) fn unrendered(item: &Item) -> Vec<Diagnostic> {
    let found = |at: String| item.error(&at, Code::Schema, "this image is a template", "an image").help(UNRENDERED);
    reference::images(item.object.value()).filter(|(_, image)| image.contains("{{")).map(|(at, _)| found(at)).collect()
}

/// Whether a claim of the set is one that pods of several nodes can mount.
fn is_for_many(case: &Case<'_>, name: &str) -> bool {
    let is_it = |item: &&Item| reference::given(&item.object) == Some((Referent::PersistentVolumeClaim, name));
    let mut modes = case.items.values().filter(is_it).flat_map(|it| items(&it.object.value()["spec"], "accessModes"));
    modes.any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany")
}

pub(super) fn labels(value: Option<&Value>) -> Labels {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
}

/// The label that tells the candidate's pods from stable's: the first of the usual ones, else the first in order.
pub(super) fn telling_label(match_labels: &Labels) -> Option<&str> {
    let usual = ["app", "name", "app.kubernetes.io/name"];
    usual
        .into_iter()
        .find(|key| match_labels.contains_key(*key))
        .or_else(|| match_labels.keys().next().map(String::as_str))
}

fn selectors(case: &Case<'_>, target: &Item, service: &Item, findings: &mut Findings) {
    let own = labels(target.object.at("/spec/template/metadata/labels"));
    let match_labels = labels(target.object.at("/spec/selector/matchLabels"));
    let Some(key) = telling_label(&match_labels) else {
        let found = "the selector has no matchLabels that a copy could be told by";
        findings.errors.push(target.error("/spec/selector", Code::TargetMissing, found, "matchLabels: {app: …}"));
        return;
    };
    let mut copy = own.clone();
    if !is_replicas(case) && !is_versioned(case) {
        let suffix = suffix(case);
        let value = match_labels.get(key).map(|value| format!("{value}{suffix}")).unwrap_or_default();
        if value.len() > LONGEST {
            let pointer = format!("/spec/selector/matchLabels/{}", key.replace('~', "~0").replace('/', "~1"));
            let found = format!("the pods of its copy would carry the label {key}: {value}");
            let expected = format!("a value of at most {} characters", LONGEST - suffix.len());
            findings.errors.push(target.error(&pointer, Code::NameTooLong, found, expected));
        }
        copy.insert(key.to_owned(), value);
    }
    let candidate = if is_primary(case) { &own } else { &copy };
    if !matches(target.object.at("/spec/selector"), &own) {
        let found = "this Deployment does not select the pods of its own template";
        findings.errors.push(target.error(
            "/spec/selector",
            Code::TargetMissing,
            found,
            "labels that the pod template has",
        ));
    }
    if service.object.text("/spec/type") == Some("ExternalName") {
        let found = "this Service is a DNS alias, which has no pods";
        findings.errors.push(service.error("/spec/type", Code::TargetMissing, found, "a Service with a selector"));
    } else if !matches_plain(service.object.at("/spec/selector"), &own) {
        let found = format!("this Service selects none of the pods of {}", target.object.reference().name);
        findings.errors.push(service.error(
            "/spec/selector",
            Code::TargetMissing,
            found,
            "labels that the pod template has",
        ));
    }
    if is_versioned(case) {
        // Whose pods else they may select is seen beside the promoted version.
        return;
    }
    // One Service is for both, or is led to the copy.
    let ours =
        |item: &Item| (is_replicas(case) || is_primary(case)) && item.object.reference() == service.object.reference();
    let overlap = |item: &Item| {
        let found =
            format!("this selector would also match the candidate's pods of {}", target.object.reference().name);
        let expected = format!("a selector with the label {key}");
        item.error("/spec/selector", Code::SelectorOverlap, found, expected)
    };
    let services = case.of_kind(Kind::Service).filter(|item| !ours(item));
    findings
        .errors
        .extend(services.filter(|item| matches_plain(item.object.at("/spec/selector"), candidate)).map(overlap));
    let others = case.of_kind(Kind::Deployment).filter(|item| item.object.reference() != target.object.reference());
    findings.errors.extend(others.filter(|item| matches(item.object.at("/spec/selector"), candidate)).map(overlap));
    findings.warnings.extend(uncovered(case, key, &own, &copy));
}

/// Budgets that cover the pods that the manifests ask for, and not those of their copy.
fn uncovered(case: &Case<'_>, key: &str, own: &Labels, copy: &Labels) -> Vec<Diagnostic> {
    let (covered, other) =
        if is_primary(case) { ("the candidate's", "stable's") } else { ("stable's", "the candidate's") };
    let budgets = case.of_kind(Kind::PodDisruptionBudget);
    let half = budgets.filter(|item| {
        let selector = item.object.at("/spec/selector");
        matches(selector, own) && !matches(selector, copy)
    });
    half.map(|item| {
        let found = format!("this budget covers {covered} pods and will not cover {other}");
        let expected = format!("a selector without the label {key}, if both are meant");
        item.error("/spec/selector", Code::NotCovered, found, expected)
    })
    .collect()
}

/// A Service that is switched from one version to the other asks for the label that they differ in.
fn tells_apart(case: &Case<'_>, target: &Item, service: &Item) -> Option<Diagnostic> {
    case.spec.traffic.as_ref()?.service.as_ref()?;
    let differ = labels(target.object.at("/spec/selector/matchLabels"));
    let (key, asked) = (telling_label(&differ)?, labels(service.object.at("/spec/selector")));
    (telling_label(&asked) != Some(key)).then(|| {
        let found = format!("this Service does not select by the label {key}, in which the two versions differ");
        service.error("/spec/selector", Code::TargetMissing, found, format!("a selector with the label {key}"))
    })
}

/// A Service's selector: no entries select nothing.
pub(super) fn matches_plain(selector: Option<&Value>, pod: &Labels) -> bool {
    let wanted = labels(selector);
    !wanted.is_empty() && wanted.iter().all(|(key, value)| pod.get(key) == Some(value))
}

/// A label selector (`meta/v1` LabelSelector): matchLabels and matchExpressions, all of them.
pub(super) fn matches(selector: Option<&Value>, pod: &Labels) -> bool {
    let Some(selector) = selector else { return false };
    let plain = labels(selector.get("matchLabels")).iter().all(|(key, value)| pod.get(key) == Some(value));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    plain && expressions.into_iter().all(|expression| holds(expression, pod))
}

fn holds(expression: &Value, pod: &Labels) -> bool {
    let value = expression.get("key").and_then(Value::as_str).and_then(|key| pod.get(key));
    let mut values = expression.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match expression.get("operator").and_then(Value::as_str) {
        Some("In") => value.is_some_and(|value| values.any(|v| v == value)),
        Some("NotIn") => value.is_none_or(|value| values.all(|v| v != value)),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}
