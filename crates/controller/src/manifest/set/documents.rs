//! The documents of a manifest file: what of them is an object, what may be a secret, and files that are rendered elsewhere.

use crate::manifest::files::RepoPath;
use crate::manifest::yaml::{Content, Node, Parsed};
use serde_json::Value;
use std::ops::Range;

/// The objects of a document: the items of a `kind: List` of Kubernetes, one level deep, else the document itself.
pub(super) fn objects(document: &Node) -> Vec<&Node> {
    if (document.text_at("/apiVersion"), document.text_at("/kind")) != (Some("v1"), Some("List")) {
        return vec![document];
    }
    const KEYS: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];
    if let Content::Map(fields) = &document.content
        && fields.iter().any(|(key, _)| !KEYS.contains(&key.text.as_str()))
    {
        // It is refused as the List that it is not: what stands elsewhere would be lost without a word.
        return vec![document];
    }
    match document.get("items").map(|items| &items.content) {
        None | Some(Content::Scalar(Value::Null)) => Vec::new(),
        Some(Content::List(items)) => items.iter().collect(),
        // It is refused as the List that it is not.
        Some(Content::Scalar(_) | Content::Map(_)) => vec![document],
    }
}

/// The lines that may hold a secret: those of each object that is a Secret, or of which nobody knows what it is. In the order of the file.
pub(super) fn secret(parsed: &Parsed) -> Vec<Range<usize>> {
    let text = parsed.source.text();
    if !parsed.complete {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        return Vec::from_iter(words.any(is_secret).then_some(0..usize::MAX));
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let all: Vec<&Node> = parsed.documents.iter().flat_map(objects).collect();
    let ends = |at: usize| {
        let Some(next) = all.get(at + 1).map(|next| next.mark) else { return usize::MAX };
        let line = lines.get(next.line.saturating_sub(1)).copied().unwrap_or_default();
        let mut before = line.chars().take(next.column.saturating_sub(1));
        // What stands before the next object on its line is of this one.
        if before.all(|c| c.is_whitespace() || c == '-') { next.line } else { next.line + 1 }
    };
    let may_be = |object: &Node| object.text_at("/kind").is_none_or(|kind| is_secret(kind) || kind == "List");
    let secret = all.iter().enumerate().filter(|(_, object)| may_be(object));
    let mut hidden: Vec<Range<usize>> = secret.map(|(at, object)| object.mark.line..ends(at)).collect();
    // Of a List that has one all is hidden that stands before it, too.
    let lists = parsed.documents.iter().filter(|document| document.text_at("/kind") == Some("List"));
    let with_one = lists.filter_map(|list| {
        let first = objects(list).into_iter().find(|object| may_be(object))?;
        Some(list.mark.line..first.mark.line + 1)
    });
    hidden.extend(with_one);
    hidden
}

fn is_secret(kind: &str) -> bool {
    matches!(kind, "Secret" | "SecretList")
}

/// What to do with a file that is another program's, and stands where objects are expected.
pub(super) fn rendered_elsewhere(path: &RepoPath) -> Option<&'static str> {
    match path.file_name() {
        "kustomization.yaml" | "kustomization.yml" => Some(KUSTOMIZE),
        name if name == "Chart.yaml" || name.starts_with("values") => {
            Some("this is Helm's own file: render the chart in CI (helm template) and commit the plain objects")
        }
        _ => None,
    }
}

/// What to do with a Kustomization.
pub(super) const KUSTOMIZE: &str = "render it in CI (kustomize build) and commit the plain objects";
