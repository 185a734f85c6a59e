//! Manifests of the application beside its rollout: word for word, but for what a run makes itself and what tools have changed.

use super::argo;
use super::draft::Draft;
use super::fields::Fate;
use super::input::{Document, Input};
use super::undone::{Around, undone};
use super::{live, yaml};
use crate::manifest::object::Kind;

/// What becomes of a manifest.
pub(super) struct Beside {
    /// Its text, if it stands there.
    pub text: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// Where it is, or why not.
    pub told: String,
}

/// A manifest of that rollout.
pub(super) fn manifest(document: &Document, draft: &Draft, input: &Input) -> Beside {
    let (mut value, mut changes) = (live::value(document), Vec::new());
    if let (Some(second), Some(kind)) = (&draft.second, document.manifest()) {
        if kind == Kind::Service && document.name == *second {
            let told = "each run makes the Service of the new version itself, as a copy of the stable one".to_owned();
            return Beside { text: None, fate: Fate::DoneOtherwise, told };
        }
        if let Some(cut) = argo::without(&value, kind, second) {
            value = cut;
            changes.push(format!("without the Service {second}: each run splits requests itself"));
        }
    }
    changes.extend(undone(&mut value, &Around { document, draft, input }));
    let file = draft.manifests();
    if changes.is_empty() {
        return Beside { text: Some(document.text.clone()), fate: Fate::Imported, told: file };
    }
    Beside { text: Some(yaml::written(&value)), fate: Fate::Differs, told: format!("{file}, {}", changes.join("; ")) }
}
