//! What tools have changed in the cluster of what people wrote: here it stands as before.

use super::draft::Draft;
use super::input::{Document, Input};
use serde_json::{Value, json};
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::scaler;

/// The label by which Argo Rollouts tells the pods of its versions apart.
pub(super) const HASH: &str = "rollouts-pod-template-hash";
/// The label of no node, by which Flagger keeps a DaemonSet without pods.
const NOWHERE: &str = "flagger.app/scale-to-zero";
/// The annotation by which Flagger keeps KEDA from making pods.
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// A manifest, the rollout that it belongs to, and what was read beside it.
pub(super) struct Around<'a> {
    /// The manifest as it was read.
    pub document: &'a Document,
    /// The rollout.
    pub draft: &'a Draft,
    /// All that was read.
    pub input: &'a Input,
}

/// Undoes one thing, and says how the manifest is then.
type Undo = fn(&mut Value, &Around<'_>) -> Option<String>;

const ALL: [(Kind, Undo); 8] = [
    (Kind::Service, without_hash),
    (Kind::Service, led_back),
    (Kind::DestinationRule, subsets_without_hash),
    (Kind::Deployment, sized),
    (Kind::DaemonSet, on_its_nodes),
    (Kind::HorizontalPodAutoscaler, scaling),
    (Kind::ScaledObject, scaling),
    (Kind::ScaledObject, awake),
];

/// Undoes all of it in a manifest, and says how it is then.
pub(super) fn undone(value: &mut Value, around: &Around<'_>) -> Vec<String> {
    let kind = around.document.manifest();
    ALL.iter().filter(|(of, _)| Some(*of) == kind).filter_map(|(_, undo)| undo(value, around)).collect()
}

/// The autoscaler among the input that names a workload.
pub(super) fn scaler<'a>(input: &'a Input, namespace: &str, kind: &str, name: &str) -> Option<&'a Document> {
    let names = |d: &Document| {
        let scaled = d.at("/spec/scaleTargetRef");
        // KEDA need not be told that it is a Deployment.
        scaled.get("kind").text().unwrap_or("Deployment") == kind && scaled.get("name").text() == Some(name)
    };
    let scales = |d: &&Document| d.manifest().is_some_and(|kind| scaler::KINDS.contains(&kind));
    input.documents.iter().filter(scales).find(|d| d.namespace == namespace && names(d))
}

fn without_hash(value: &mut Value, _: &Around<'_>) -> Option<String> {
    value.pointer_mut("/spec/selector")?.as_object_mut()?.shift_remove(HASH)?;
    Some("without the hash by which Argo Rollouts leads it to one version".to_owned())
}

fn subsets_without_hash(value: &mut Value, _: &Around<'_>) -> Option<String> {
    let subsets = value.pointer_mut("/spec/subsets")?.as_array_mut()?.iter_mut();
    let labels = subsets.filter_map(|subset| subset.get_mut("labels")?.as_object_mut());
    let hashed = labels.filter_map(|labels| labels.shift_remove(HASH)).count();
    (hashed > 0).then(|| "without the hashes by which Argo Rollouts tells its subsets apart".to_owned())
}

/// Flagger leads a Service that was there before it to its own copy of the pods.
fn led_back(value: &mut Value, around: &Around<'_>) -> Option<String> {
    let Around { document, draft, input } = around;
    draft.refers.iter().find(|(kind, name, _)| *kind == Kind::Service && *name == document.name)?;
    let target = input.find(draft.kind.kind(), &document.namespace, &draft.target)?;
    let labels = target.spec("selector/matchLabels");
    let mut led = false;
    for (label, value) in value.pointer_mut("/spec/selector")?.as_object_mut()? {
        let own = labels.get(label).words().filter(|own| *value == format!("{own}-primary"));
        led |= own.is_some();
        own.into_iter().for_each(|own| *value = own.into());
    }
    led.then(|| "leading to the pods of the target, not to Flagger's copy of them".to_owned())
}

/// A target without pods is that of a tool which runs others in its place.
fn sized(value: &mut Value, around: &Around<'_>) -> Option<String> {
    let Around { document, draft, input } = around;
    let is_target = document.name == draft.target;
    let of_tool = || scaler(input, &document.namespace, "Rollout", &draft.name).filter(|_| is_target);
    let spec = value.get_mut("spec")?.as_object_mut()?;
    if let Some(scaler) = scaler(input, &document.namespace, "Deployment", &document.name).or_else(of_tool) {
        spec.shift_remove("replicas")?;
        return Some(format!("without replicas: the autoscaler {} says how many", scaler.name));
    }
    let is_none = spec.get("replicas") == Some(&json!(0));
    let size = draft.replicas.or(draft.size.filter(|_| is_none)).filter(|_| is_target)?;
    if spec.get("replicas") == Some(&json!(size)) {
        return None;
    }
    spec.insert("replicas".to_owned(), size.into());
    Some(format!("with replicas: {size}, as many as run in its place"))
}

fn on_its_nodes(value: &mut Value, _: &Around<'_>) -> Option<String> {
    dropped(value, "/spec/template/spec", "nodeSelector", NOWHERE)?;
    Some(format!("without the nodeSelector {NOWHERE}, by which Flagger keeps it without pods"))
}

fn scaling(value: &mut Value, around: &Around<'_>) -> Option<String> {
    let scaled = value.pointer_mut("/spec/scaleTargetRef").filter(|scaled| scaled["kind"] == "Rollout")?;
    let Draft { target, .. } = around.draft;
    *scaled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": target});
    Some(format!("for the Deployment {target}"))
}

fn awake(value: &mut Value, around: &Around<'_>) -> Option<String> {
    let copy = format!("{}-primary", around.document.name);
    around.input.made.iter().find(|made| made.manifest() == Some(Kind::ScaledObject) && made.name == copy)?;
    dropped(value, "/metadata", "annotations", PAUSED)?;
    Some("without the annotation by which Flagger pauses it".to_owned())
}

/// Takes an entry out of a map, and the map out of what it stands in if it was the last one; none if there is none.
fn dropped(value: &mut Value, around: &str, map: &str, entry: &str) -> Option<()> {
    let around = value.pointer_mut(around)?.as_object_mut()?;
    let entries = around.get_mut(map)?.as_object_mut()?;
    entries.shift_remove(entry)?;
    if entries.is_empty() {
        around.shift_remove(map);
    }
    Some(())
}
