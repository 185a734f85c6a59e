//! The configuration of nodes as the target: layers and nothing else, for nodes that operations lets it have.

use super::Case;
use crate::manifest::desired::{Layout, TargetKind, Track};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::layer::{self, MOST_LAYERS, NodeSelector};
use crate::manifest::raw;

/// `allowed` is what operations lets any rollout configure.
pub(in crate::manifest) fn check(case: &Case<'_>, allowed: Option<&NodeSelector>) -> Vec<Diagnostic> {
    if case.spec.target.kind != TargetKind::NodeConfig {
        return Vec::new();
    }
    let Some(allowed) = allowed else {
        let found = "nobody has said which nodes this rollout may configure";
        let expected = "nodes of the tenant in the policy, and caps.nodes in the installation";
        return vec![case.error("/spec/target/kind", Code::NodeNotAllowed, found, expected)];
    };
    let mut found = misplaced(case);
    if case.whole && case.items.is_empty() {
        let expected = "at least one NodeConfigLayer";
        found.push(case.error("/spec/manifests", Code::TargetMissing, "the manifests hold no layer", expected));
    }
    if case.items.len() > MOST_LAYERS {
        let what = format!("these are {} layers", case.items.len());
        found.push(case.error("/spec/manifests", Code::TooLarge, what, format!("at most {MOST_LAYERS}")));
        return found;
    }
    for item in case.items.values() {
        match layer::read(item) {
            Err(errors) => found.extend(errors),
            Ok(layer) => found.extend(layer.nodes.parted_by(allowed).map(|label| {
                let what = format!("by their label {label} these are nodes that this rollout may not configure");
                item.error("/spec/nodeSelector", Code::NodeNotAllowed, what, "nodes that operations allows")
            })),
        }
    }
    found
}

/// What says something of requests, or of pods.
fn misplaced(case: &Case<'_>) -> Vec<Diagnostic> {
    let raw::RolloutSpec { target, traffic, phases, .. } = case.spec;
    let given = [
        ("traffic", traffic.is_some()),
        ("target/layout", target.layout != Layout::InPlace),
        ("target/track", target.track != Track::default()),
    ];
    let given = given.into_iter().filter(|(_, given)| *given).map(|(field, _)| format!("/spec/{field}"));
    let phases = phases.iter().enumerate().flat_map(|(i, phase)| {
        let expose = &phase.expose;
        let given = [
            ("headers", !expose.headers.is_empty()),
            ("cookies", !expose.cookies.is_empty()),
            ("mirror", expose.mirror.is_some()),
            ("preview", expose.preview.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(move |(field, _)| format!("/spec/phases/{i}/expose/{field}"))
    });
    let error = |pointer: String| case.error(&pointer, Code::RouterLimit, "nodes get no requests", "no such field");
    given.chain(phases).map(error).collect()
}
