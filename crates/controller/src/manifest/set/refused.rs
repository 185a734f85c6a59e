//! Kinds that may not stand in a set, and what to do instead.

use super::{Kinds, documents};
use crate::manifest::diagnostic::{Code, Diagnostic, SourceText, quoted};
use crate::manifest::object::Kind;
use crate::manifest::other::{GroupKind, is_cluster_wide};
use crate::manifest::yaml::Node;

/// What to do with a template where an object is expected.
pub(in crate::manifest) const UNRENDERED: &str =
    "this is a template that was not rendered: render it in CI (helm template) and commit the plain objects";

/// Why a kind that is known by its names alone may not stand in a set.
pub(in crate::manifest) struct Unallowed {
    /// What is found, if it is not the usual.
    pub(in crate::manifest) found: Option<String>,
    /// Who may allow it, and how.
    pub(in crate::manifest) help: String,
}

/// Kinds of Gloo, beside a RouteTable, that are about all teams.
const OF_OPERATIONS: [&str; 4] = ["Gateway", "Proxy", "Settings", "VirtualService"];

/// What to do with a kind that stands in no set, whatever operations allows.
pub(in crate::manifest) fn instead(kind: &GroupKind) -> Option<String> {
    match (kind.group(), kind.kind()) {
        ("batch", "Job") => {
            return Some(
                "a Job that tries a version out, or migrates, stands before a step, in a file that manifests do not list: \
                 before: {job: FILE} (docs/checks.md)"
                    .to_owned(),
            );
        }
        ("", "Secret") => {
            return Some("create it outside of Git, or use an ExternalSecret or a SealedSecret".to_owned());
        }
        ("", "Namespace") => {
            return Some(
                "operations makes namespaces, and lists them in tidegate.yaml (tenants.*.namespaces)".to_owned(),
            );
        }
        ("", "Pod") | ("apps", "ReplicaSet") => return Some("a Deployment makes pods".to_owned()),
        ("kustomize.config.k8s.io", _) => return Some(documents::KUSTOMIZE.to_owned()),
        (_, "List") => return Some("a List stands at the top of a document, and holds objects".to_owned()),
        ("tidegate.io", _) => return Some("a rollout, a policy or a decision is no object of a set".to_owned()),
        _ => {}
    }
    let wide =
        "its objects belong to the whole cluster, and a rollout to a namespace: operations applies them by other means";
    is_cluster_wide(kind).then(|| wide.to_owned())
}

/// Whether a kind stands in no set, whatever operations allows.
pub(in crate::manifest) fn is_never(kind: &GroupKind) -> bool {
    let of_gloo = kind.group() == "gateway.solo.io" && OF_OPERATIONS.contains(&kind.kind());
    of_gloo || instead(kind).is_some()
}

/// Says of an object of a kind that may not stand here what is expected, and who may allow it.
pub(super) fn refused_kind(
    source: &SourceText,
    node: &Node,
    kinds: &Kinds<'_>,
    api_version: &str,
    kind: &str,
) -> Diagnostic {
    let mark = node.locate("/kind");
    let has = |field: &str| node.get(field).is_some_and(|data| !data.entries().is_empty());
    if api_version == "v1" && kind == "Secret" && (has("data") || has("stringData")) {
        let diagnostic = source.at(mark, Code::SecretData, "a Secret with its data in plain text", "no Secret");
        return diagnostic.help("everyone who reads the repository reads it: rotate it, and create it outside of Git");
    }
    if api_version == Kind::RouteTable.api_version() && OF_OPERATIONS.contains(&kind) {
        let found = format!("{api_version} {kind} belongs to operations");
        let diagnostic = source.at(mark, Code::KindNotAllowed, found, "a RouteTable");
        return diagnostic.help("a VirtualService outside of rollouts delegates a path to the RouteTable");
    }
    let text = format!("objects of kind {} ({}) are not managed here", quoted(kind), quoted(api_version));
    let expected = match kinds.known {
        [only] => only.to_string(),
        _ => "a kind that may stand in a set (docs/files.md)".to_owned(),
    };
    let diagnostic = source.at(mark, Code::KindNotAllowed, text, expected);
    if let Some(known) = kinds.known.iter().find(|k| k.as_str() == kind) {
        return diagnostic.help(format!("write apiVersion: {}", known.api_version()));
    }
    let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let Some(named) = GroupKind::new(group, kind) else {
        return diagnostic.help("kinds begin with a capital letter, as in ServiceMonitor");
    };
    match (instead(&named), (kinds.others)(&named)) {
        (Some(help), _) => diagnostic.help(help),
        (None, Err(Unallowed { found, help })) => {
            Diagnostic { found: found.unwrap_or(diagnostic.found.clone()), ..diagnostic }.help(help)
        }
        (None, Ok(())) => diagnostic.help("write its apiVersion as GROUP/VERSION, as in batch/v1"),
    }
}
