//! Manifests of the application beside its rollout: word for word, but for what a run makes itself and what tools have changed.

use super::draft::Draft;
use super::fields::FieldOutcome;
use super::input::{Document, Input};
use super::router::ROUTES;
use super::undone::{Around, undone};
use super::{live, yaml};
use serde_json::Value;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::yaml::{Dialect, parse};

/// What becomes of a manifest.
pub(super) struct Beside {
    /// Its text, if it stands there.
    pub text: Option<String>,
    /// What becomes of it.
    pub outcome: FieldOutcome,
    /// Where it is, or why not.
    pub note: String,
}

/// The text of a manifest without the line that says its number of pods, word for word else, if that is all that is changed.
fn unnumbered(document: &Document, wanted: &Value) -> Option<String> {
    let read = |text: &str| parse(&document.file, text.as_bytes(), Dialect::Kubernetes).documents.into_iter().next();
    let number = read(&document.text)?.at("/spec/replicas")?.mark.line;
    let mut lines: Vec<&str> = document.text.lines().collect();
    lines.get(number.checked_sub(1)?)?.trim_start().strip_prefix("replicas:")?;
    lines.remove(number - 1);
    let text = format!("{}\n", lines.join("\n"));
    (read(&text)?.value() == *wanted).then_some(text)
}

/// A manifest of that rollout.
pub(super) fn manifest(document: &Document, draft: &Draft, input: &Input) -> Beside {
    let (mut value, mut changes) = (live::value(document), Vec::new());
    if let (Some(second), Some(kind)) = (&draft.second, document.manifest()) {
        if kind == Kind::Service && document.name == *second {
            let note = "each run makes the Service of the new version itself, as a copy of the stable one".to_owned();
            return Beside { text: None, outcome: FieldOutcome::DoneOtherwise, note };
        }
        if let Some(cut) = without(&value, kind, second) {
            value = cut;
            changes.push(format!("without the Service {second}: each run splits requests itself"));
        }
    }
    changes.extend(undone(&mut value, &Around { document, draft, input }));
    let file = draft.manifests();
    if changes.is_empty() {
        return Beside { text: Some(document.text.clone()), outcome: FieldOutcome::Imported, note: file };
    }
    let text = unnumbered(document, &value).unwrap_or_else(|| yaml::written(&value));
    Beside { text: Some(text), outcome: FieldOutcome::Differs, note: format!("{file}, {}", changes.join("; ")) }
}

/// A manifest without the Service of the new version, which a run makes and names itself; none if it does not name it.
fn without(manifest: &Value, kind: Kind, service: &str) -> Option<Value> {
    let mut split = ROUTES.into_iter().filter(|(kind, ..)| ![Kind::GrpcRoute, Kind::Ingress].contains(kind));
    let (_, _, _, rules, backends, name) = split.find(|(of, ..)| *of == kind)?;
    let (mut manifest, mut cut) = (manifest.clone(), false);
    let rules = manifest.pointer_mut(rules)?;
    let rules = if rules.is_object() { std::slice::from_mut(rules) } else { rules.as_array_mut()?.as_mut_slice() };
    for list in rules.iter_mut().filter_map(|rule| rule.pointer_mut(backends)?.as_array_mut()) {
        let named = |backend: &Value| {
            backend.pointer(name).and_then(Value::as_str).is_some_and(|host| host.split('.').next() == Some(service))
        };
        if list.iter().any(named) && !list.iter().all(named) {
            list.retain(|backend| !named(backend));
            cut = true;
        }
    }
    cut.then_some(manifest)
}
