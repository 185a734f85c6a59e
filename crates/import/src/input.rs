//! The files that are imported, as documents that know where they stand.

use serde_json::{Map, Value};
use tidegate_controller::manifest::diagnostic::{Code, Diagnostic, SourceText};
use tidegate_controller::manifest::files::RepoPath;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::other::Other;
use tidegate_controller::manifest::yaml::{self, Content, Dialect, Node};

/// The most objects of one import: each is looked at beside all others.
const MOST_OBJECTS: usize = 5_000;
/// The most files of one import.
pub const MOST_FILES: usize = 1_000;

/// One object of the input.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// The file that it stands in.
    pub file: RepoPath,
    /// Its fields.
    pub node: Node,
    /// Its text as it stands there, without the lines that divide documents.
    pub text: String,
    /// Its kind, as the file spells it.
    pub kind: String,
    /// Its group and version.
    pub api_version: String,
    /// Its namespace, or that of all that name none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Document {
    /// Its kind, if it may stand in a set of manifests.
    pub(super) fn manifest(&self) -> Option<Kind> {
        let known = Kind::find(&self.api_version, &self.kind).filter(|kind| Kind::MANIFEST.contains(kind));
        let is = |usual: &Other| usual.api_version() == self.api_version && usual.kind() == self.kind;
        known.or_else(|| Other::usual().find(is).map(Kind::Other))
    }

    /// Whether it is the manifest of that kind and name.
    pub(super) fn is(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        self.manifest() == Some(kind) && self.namespace == namespace && self.name == name
    }

    /// What no other object of a tool has: its kind, namespace and name.
    pub(super) fn key(&self) -> (String, String, String) {
        (self.kind.clone(), self.namespace.clone(), self.name.clone())
    }

    /// The field below its `spec`, at a JSON pointer without the first slash.
    pub(super) fn spec(&self, field: &str) -> Field<'_> {
        self.at(&format!("/spec/{field}"))
    }

    /// The field at a JSON pointer that needs no escapes.
    pub(super) fn at(&self, pointer: &str) -> Field<'_> {
        Field { node: self.node.at(pointer), pointer: pointer.to_owned() }
    }
}

/// A field of a document, there or not, that knows its place.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    /// What stands there.
    pub node: Option<&'a Node>,
    /// Its JSON pointer.
    pub pointer: String,
}

impl<'a> Field<'a> {
    /// The field below it.
    pub(super) fn get(&self, key: &str) -> Self {
        self.at(&format!("/{}", key.replace('~', "~0").replace('/', "~1")))
    }

    /// The field below it at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Self {
        Self { node: self.node.and_then(|node| node.at(pointer)), pointer: format!("{}{pointer}", self.pointer) }
    }

    /// Whether it is there and says something.
    pub(super) fn is_there(&self) -> bool {
        self.node.is_some_and(|node| node.content != Content::Scalar(Value::Null))
    }

    /// Its items; none if it is no list.
    pub(super) fn items(&self) -> Vec<Self> {
        let items = self.node.map_or(&[][..], Node::items).iter().enumerate();
        items.map(|(i, node)| Self { node: Some(node), pointer: format!("{}/{i}", self.pointer) }).collect()
    }

    /// Its value if it is a list; null else.
    pub(super) fn list(&self) -> Value {
        self.node.filter(|node| matches!(node.content, Content::List(_))).map(Node::value).unwrap_or_default()
    }

    /// Its entries; none if it is no mapping.
    pub(super) fn entries(&self) -> Vec<(&'a str, Self)> {
        let entries = self.node.map_or(&[][..], Node::entries);
        entries.iter().map(|(key, _)| (key.text.as_str(), self.get(&key.text))).collect()
    }

    /// Its text, if it is one.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.node.and_then(Node::text)
    }

    /// Its text, or its number or truth value as text.
    pub(super) fn words(&self) -> Option<String> {
        match &self.node?.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            Content::Scalar(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Its number, if it is one, or a text that is one.
    pub(super) fn number(&self) -> Option<f64> {
        self.words()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Its whole number from 0 up, as Kubernetes takes it: a number, or a text that is one.
    pub(super) fn count(&self) -> Option<u32> {
        self.words()?.parse().ok()
    }

    /// Those of its entries that say something, as they stand there.
    pub(super) fn only(&self, keys: &[&str]) -> Map<String, Value> {
        let said = keys.iter().map(|key| (*key, self.get(key))).filter(|(_, field)| field.is_there());
        said.map(|(key, field)| (key.to_owned(), field.value())).collect()
    }

    /// Whether it says yes.
    pub(super) fn is_true(&self) -> bool {
        self.node.is_some_and(|node| node.content == Content::Scalar(true.into()))
    }

    /// Its value; null if it is not there.
    pub(super) fn value(&self) -> Value {
        self.node.map(Node::value).unwrap_or_default()
    }
}

/// Everything in the files that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Input {
    /// Its objects, in the order of the files.
    pub documents: Vec<Document>,
    /// What is made of them in the cluster, and so is no manifest.
    pub made: Vec<Document>,
}

impl Input {
    /// The manifest of that kind and name.
    pub(super) fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Document> {
        self.documents.iter().find(|document| document.is(kind, namespace, name))
    }
}

/// Reads files. `namespace` is that of the objects that name none.
///
/// # Errors
/// All that is wrong with their YAML: what was read in part only is not imported.
pub(super) fn read(files: &[(RepoPath, Vec<u8>)], namespace: &str) -> Result<Input, Vec<Diagnostic>> {
    let (mut input, mut wrong) = (Input::default(), Vec::new());
    for (path, bytes) in files {
        let parsed = yaml::parse(path, bytes, Dialect::Kubernetes);
        let source = parsed.source;
        wrong.extend(parsed.diagnostics);
        let nodes: Vec<(Node, bool)> = parsed.documents.into_iter().flat_map(items).collect();
        if input.documents.len() + nodes.len() > MOST_OBJECTS {
            let what = format!("more than {MOST_OBJECTS} objects");
            wrong.push(Diagnostic::of_file(path, Code::TooLarge, what, "fewer at a time"));
            break;
        }
        for node in nodes {
            match document(&source, node, namespace) {
                Ok(document) => input.documents.push(document),
                Err(diagnostic) => wrong.push(*diagnostic),
            }
        }
    }
    if wrong.is_empty() { Ok(input) } else { Err(wrong) }
}

/// The objects of a document, and whether they are the items of a list, as `kubectl get -o yaml` prints them.
fn items(node: Node) -> Vec<(Node, bool)> {
    match (node.text_at("/kind"), node.at("/items")) {
        (Some("List"), Some(items)) => items.items().iter().map(|item| (item.clone(), true)).collect(),
        _ => vec![(node, false)],
    }
}

fn document(source: &SourceText, (node, listed): (Node, bool), namespace: &str) -> Result<Document, Box<Diagnostic>> {
    let needed = |pointer: &str, expected: &str| {
        node.text_at(pointer).filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| {
            let what = format!("this object has no {}", pointer.trim_start_matches('/').replace('/', "."));
            Box::new(source.at(node.locate(pointer), Code::Schema, what, expected))
        })
    };
    let (kind, api_version) = (needed("/kind", "a kind")?, needed("/apiVersion", "an apiVersion")?);
    let name = needed("/metadata/name", "the object's name")?;
    let namespace = node.text_at("/metadata/namespace").filter(|text| !text.is_empty()).unwrap_or(namespace).to_owned();
    // An item of a list has no text of its own.
    let text = if listed { super::yaml::written(&node.value()) } else { slice(source.text(), node.mark.line) };
    Ok(Document { file: source.path().clone(), text, kind, api_version, namespace, name, node })
}

/// The text of the document that covers a line. A line that begins with `---` or `...` divides documents wherever it stands, in
/// a quoted text too (YAML 1.2.2, 9.1.2).
fn slice(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let divides = |line: &&str| {
        ["---", "..."]
            .iter()
            .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])))
    };
    let at = line.saturating_sub(1).min(lines.len());
    // The line itself may begin with the mark: `--- {kind: Service}`.
    let start = lines[..(at + 1).min(lines.len())].iter().rposition(divides);
    let end = lines.iter().skip(at + 1).position(divides).map_or(lines.len(), |n| at + 1 + n);
    let head =
        start.and_then(|n| lines[n].get(3..)).map(str::trim).filter(|rest| !rest.is_empty() && !rest.starts_with('#'));
    let body = &lines[start.map_or(0, |n| n + 1).min(end)..end];
    let body: Vec<&str> = head.into_iter().chain(body.iter().copied()).collect();
    format!("{}\n", body.join("\n").trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        text.parse().unwrap()
    }

    #[test]
    fn documents_keep_their_texts() {
        let text = "# first\nkind: Service # a\napiVersion: v1\nmetadata: {name: a}\n---\n\n--- {kind: Service, apiVersion: v1, \
                    metadata: {name: b}}\n--- # third\nkind: Service\napiVersion: v1\nmetadata:\n  name: c\n...\n";
        let input = read(&[(path("a.yaml"), text.as_bytes().to_vec())], "shop").unwrap();
        let texts: Vec<(&str, &str)> = input.documents.iter().map(|d| (d.name.as_str(), d.text.as_str())).collect();
        assert_eq!(
            texts,
            [
                ("a", "# first\nkind: Service # a\napiVersion: v1\nmetadata: {name: a}\n"),
                ("b", "{kind: Service, apiVersion: v1, metadata: {name: b}}\n"),
                ("c", "kind: Service\napiVersion: v1\nmetadata:\n  name: c\n"),
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_told_with_its_place() {
        let text =
            "kind: List\napiVersion: v1\nitems: []\n---\nkind: Canary\nmetadata: {name: a}\n---\na: &x 1\nb: *x\n";
        let wrong = read(&[(path("a.yaml"), text.as_bytes().to_vec())], "shop").unwrap_err();
        insta::assert_snapshot!(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
}
