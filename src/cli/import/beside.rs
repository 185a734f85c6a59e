//! Manifests of the application beside its rollout: word for word, but for what a run makes itself.

use super::argo;
use super::draft::Draft;
use super::fields::Fate;
use super::input::Document;
use super::yaml;
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
pub(super) fn manifest(document: &Document, draft: &Draft) -> Beside {
    let file = draft.manifests();
    let kind = document.manifest();
    if let (Some(second), Some(kind)) = (&draft.second, kind) {
        if kind == Kind::Service && document.name == *second {
            let told = "each run makes the Service of the new version itself, as a copy of the stable one".to_owned();
            return Beside { text: None, fate: Fate::DoneOtherwise, told };
        }
        if let Some(cut) = argo::without(&document.node.value(), kind, second) {
            let told = format!("{file}, without the Service {second}: each run splits requests itself");
            return Beside { text: Some(yaml::written(&cut)), fate: Fate::Differs, told };
        }
    }
    let scaled = document.at("/spec/scaleTargetRef/kind");
    let (fate, told) = if scaled.is_there() && scaled.text() != Some("Deployment") {
        (Fate::Differs, format!("{file}; let its scaleTargetRef name the Deployment {} of apps/v1", draft.target))
    } else {
        (Fate::Imported, file)
    };
    Beside { text: Some(document.text.clone()), fate, told }
}
