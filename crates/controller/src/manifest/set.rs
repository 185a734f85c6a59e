//! Sets: the exact manifests of one version, read from the files that a rollout lists or from a pinned copy.

mod documents;
mod list;
pub(super) mod refused;

pub(super) use list::unreadable;
pub use list::{Listed, MAX_FILES, Misplaced, list};
use refused::{UNRENDERED, Unallowed, refused_kind};

use super::canonical::{self, MAX_INTEGER};
use super::desired::{Set, Target, TargetKind};
use super::diagnostic::{Code, Diagnostic, MOST, Mark, SourceText, quoted};
use super::files::{Files, RepoPath};
use super::ids::{BlobId, Namespace, ObjectName, SetId};
use super::layer::{self, Layer};
use super::object::{DOMAIN, Kind, Object, ObjectRef};
use super::oid;
use super::other::{GroupKind, Other};
use super::tracked::{self, Tracked};
use super::yaml::{self, Content, Dialect, Node};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of a set, by their path relative to the rollout's directory.
pub type SetFiles = BTreeMap<RepoPath, (BlobId, Arc<[u8]>)>;

/// The most values that the files of one set have; a stretch of 128 bytes counts as one.
pub const MAX_VALUES: usize = 200_000;
/// The same of all sets of a tenant, a file counted each time that it is listed: what is read of each is kept.
pub const MAX_TENANT_VALUES: usize = 500_000;

/// An object of a set and where it stands.
#[derive(Debug, Clone)]
pub struct Item {
    /// The object.
    pub object: Object,
    /// Its file.
    pub source: Arc<SourceText>,
    /// Its place there.
    pub node: Node,
}

/// The objects of a set, each with its place.
pub type Items = BTreeMap<ObjectRef, Item>;

impl Item {
    /// A mistake at a JSON pointer of the object.
    #[must_use]
    pub fn error(
        &self,
        pointer: &str,
        code: Code,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Diagnostic {
        self.source.at(self.node.locate(pointer), code, found, expected)
    }
}

/// Builds the set that a rollout's file lists.
///
/// # Errors
/// All that is wrong with the files.
pub fn build(
    files: &Files,
    rollout_file: &RepoPath,
    manifests: &[String],
    namespace: &Namespace,
    target: &Target,
) -> Result<Set, Vec<Diagnostic>> {
    let listed = list(files, rollout_file, manifests);
    if !listed.misplaced.is_empty() {
        let describe = |m: &Misplaced| Diagnostic::of_file(rollout_file, m.code, m.found.clone(), m.expected.clone());
        return Err(listed.misplaced.iter().map(describe).collect());
    }
    let (items, found) = read_for(&listed.files, rollout_file.parent().as_ref(), namespace, target.kind);
    finish(listed.files, &items, found, rollout_file, namespace, target)
}

/// Reads a pinned set.
///
/// # Errors
/// All that is wrong with the files.
pub fn of_files(files: SetFiles, namespace: &Namespace, target: &Target) -> Result<Set, Vec<Diagnostic>> {
    let (items, found) = read_for(&files, None, namespace, target.kind);
    let Some(first) = files.keys().find(|path| path.as_str() != tracked::FILE).cloned() else {
        // There is no file to point at: the caller names the set.
        return Err(Vec::new());
    };
    finish(files, &items, found, &first, namespace, target)
}

fn finish(
    files: SetFiles,
    items: &Items,
    mut found: Vec<Diagnostic>,
    blame: &RepoPath,
    namespace: &Namespace,
    target: &Target,
) -> Result<Set, Vec<Diagnostic>> {
    if !target.kind.is_object() {
        return if found.is_empty() { Ok(assemble(files, items, None)) } else { Err(found) };
    }
    let reference = ObjectRef { kind: target.kind.kind(), namespace: namespace.clone(), name: target.name.clone() };
    match items.get(&reference) {
        Some(item) if found.is_empty() => match files.get(&tracks()).map(|(_, bytes)| tracked::parse(bytes)) {
            None => Ok(assemble(files, items, Some(&item.object))),
            Some(Some(tracked)) => Ok(derived(files, objects(items), Vec::new(), Some(&item.object), tracked)),
            Some(None) => {
                let expected = "what this version of tidegate writes there";
                Err(vec![Diagnostic::of_file(&tracks(), Code::Schema, "it cannot be read", expected)])
            }
        },
        Some(_) => Err(found),
        None => {
            let text = format!("the set has no {reference}");
            found.push(Diagnostic::of_file(blame, Code::TargetMissing, text, "the target among the manifests"));
            Err(found)
        }
    }
}

/// Puts a set together from what was read without a mistake; there may be nothing in it that is rolled out.
#[must_use]
pub fn assemble(files: SetFiles, items: &Items, target: Option<&Object>) -> Set {
    let layers = items.values().filter(|item| item.object.reference().kind == Kind::NodeConfigLayer);
    let layers = layers.filter_map(|item| layer::read(item).ok()).collect();
    derived(files, objects(items), layers, target, Tracked::new())
}

fn objects(items: &Items) -> BTreeMap<ObjectRef, Object> {
    items.iter().map(|(r, item)| (r.clone(), item.object.clone())).collect()
}

/// The same manifests as a version whose `target` takes these live objects along.
#[must_use]
pub fn tracking(set: &Set, target: &Object, tracked: Tracked) -> Set {
    let mut files = set.files.clone();
    files.remove(&tracks());
    if !tracked.is_empty() {
        let bytes: Arc<[u8]> = tracked::print(&tracked).into_bytes().into();
        files.insert(tracks(), (oid::blob(&bytes), bytes));
    }
    derived(files, set.objects.clone(), set.layers.clone(), Some(target), tracked)
}

/// The id of the manifests alone: what of a set lies on main.
#[must_use]
pub fn of_main(set: &Set) -> SetId {
    if set.tracked.is_empty() {
        return set.id.clone();
    }
    let own = set.files.iter().filter(|(path, _)| path.as_str() != tracked::FILE);
    oid::tree(own.map(|(path, (blob, _))| (path, blob)))
}

/// Where a pinned set says what it tracks.
fn tracks() -> RepoPath {
    tracked::FILE.parse().expect("a path, because it is a plain file name")
}

/// All that follows from files and what they declare.
fn derived(
    files: SetFiles,
    objects: BTreeMap<ObjectRef, Object>,
    layers: Vec<Layer>,
    target: Option<&Object>,
    tracked: Tracked,
) -> Set {
    let config_maps =
        objects.iter().filter(|(r, _)| r.kind == Kind::ConfigMap).map(|(r, o)| (r.name.as_str(), o)).collect();
    let target = target.map(|target| tracked::moved(target, &tracked));
    let pods = match &target {
        Some(service) if service.reference().kind == Kind::Service => canonical::service(service),
        Some(target) => canonical::pods(target, &config_maps),
        None if layers.is_empty() => canonical::no_pods(),
        None => canonical::layers(objects.values()),
    };
    let id = oid::tree(files.iter().map(|(path, (blob, _))| (path, blob)));
    let is_target = |object: &&Object| target.as_ref().is_some_and(|target| target.reference() == object.reference());
    let others = objects.values().filter(|object| !is_target(object));
    let revision = canonical::revision(others.chain(&target));
    Set { id, files, objects, tracked, layers, revision, pods }
}

/// Reads all objects of all files of a pinned set, with everything that is wrong with them. `base` completes their paths for people.
#[must_use]
pub fn read(files: &SetFiles, base: Option<&RepoPath>, namespace: &Namespace) -> (Items, Vec<Diagnostic>) {
    read_for(files, base, namespace, TargetKind::None)
}

/// The same of what is rolled out for that target.
fn read_for(
    files: &SetFiles,
    base: Option<&RepoPath>,
    namespace: &Namespace,
    target: TargetKind,
) -> (Items, Vec<Diagnostic>) {
    // What is pinned was let in.
    read_kinds(files, base, namespace, &Kinds { known: target.kinds(), others: &|_| Ok(()) }, None)
}

/// Which kinds may stand in a file.
pub(super) struct Kinds<'a> {
    /// Of those that tidegate knows.
    pub(super) known: &'a [Kind],
    /// Of all others, or who has to allow it, in words.
    pub(super) others: &'a dyn Fn(&GroupKind) -> Result<(), Unallowed>,
}

/// The same, where these kinds may stand, and their tenant may list so many values yet.
pub(super) fn read_kinds(
    files: &SetFiles,
    base: Option<&RepoPath>,
    namespace: &Namespace,
    kinds: &Kinds<'_>,
    room: Option<&mut usize>,
) -> (Items, Vec<Diagnostic>) {
    let (mut items, mut found) = (Items::new(), Vec::new());
    let most = room.as_ref().map_or(usize::MAX, |room| MAX_VALUES.min(**room));
    let mut left = most;
    for (relative, (_, bytes)) in files.iter().filter(|(path, _)| path.as_str() != tracked::FILE) {
        let full = base.and_then(|dir| format!("{dir}/{relative}").parse().ok()).unwrap_or_else(|| relative.clone());
        let read = (left > 0).then(|| yaml::parse(&full, bytes, Dialect::Kubernetes));
        let size = |parsed: &yaml::Parsed| parsed.nodes.max(bytes.len() / 128);
        let Some(mut parsed) = read.filter(|parsed| size(parsed) <= left) else {
            left = 0;
            found.push(too_many_values(&full, most));
            break;
        };
        left -= size(&parsed);
        let secret = documents::secret(&parsed);
        parsed.source = parsed.source.silent(secret);
        // What the YAML reader has found quotes its line already.
        let told = parsed.diagnostics.iter_mut().filter(|told| parsed.source.is_silent(told.line));
        told.for_each(|diagnostic| diagnostic.source.clear());
        let mut here = read_file(parsed, namespace, kinds, &mut items);
        here.iter_mut()
            .filter(|told| told.source.contains("{{") && (told.help.is_none() || told.code == Code::Syntax))
            .for_each(|told| told.help = Some(UNRENDERED.to_owned()));
        here.truncate(MOST);
        found.extend(here);
    }
    if let Some(room) = room {
        *room -= most - left;
    }
    (items, found)
}

/// That with this file there is more than is read; `most` is what was left for its set.
fn too_many_values(file: &RepoPath, most: usize) -> Diagnostic {
    let (of, limit) = match most {
        MAX_VALUES => ("the set", MAX_VALUES),
        _ => ("all that the tenant's rollouts list, a file each time that it is listed,", MAX_TENANT_VALUES),
    };
    let found = format!("with this file {of} has more than {limit} values");
    let expected = format!("at most {limit} values, where 128 bytes count as one too");
    Diagnostic::of_file(file, Code::TooLarge, found, expected).help("take out what is large, or list it once")
}

fn read_file(parsed: yaml::Parsed, namespace: &Namespace, kinds: &Kinds<'_>, items: &mut Items) -> Vec<Diagnostic> {
    let mut found = parsed.diagnostics;
    if !parsed.complete {
        return found;
    }
    let source = Arc::new(parsed.source);
    for node in parsed.documents.iter().flat_map(documents::objects) {
        let object = match object(&source, node, namespace, kinds) {
            Ok(object) => object,
            Err(errors) => {
                found.extend(errors);
                continue;
            }
        };
        let reference = object.reference().clone();
        let item = Item { object, source: source.clone(), node: node.clone() };
        if let Some(first) = items.get(&reference) {
            let expected = format!("each object once; the other stands in {}", first.source.path());
            found.push(item.error(
                "/metadata/name",
                Code::Conflict,
                format!("{reference} is declared twice"),
                expected,
            ));
        } else {
            items.insert(reference, item);
        }
    }
    found
}

fn object(
    source: &SourceText,
    node: &Node,
    namespace: &Namespace,
    kinds: &Kinds<'_>,
) -> Result<Object, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut error = |mark: Mark, code, what: String, expected: &str| found.push(source.at(mark, code, what, expected));
    let (Some(api_version), Some(kind)) = (node.text_at("/apiVersion"), node.text_at("/kind")) else {
        let expected = "a Kubernetes object with apiVersion and kind";
        let diagnostic = source.at(node.mark, Code::Schema, "this is no Kubernetes object", expected);
        return Err(vec![match documents::rendered_elsewhere(source.path()) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }]);
    };
    let known = match Kind::find(api_version, kind) {
        Some(known) => Some(known).filter(|known| kinds.known.contains(known)),
        None => other_kind(kinds, api_version, kind),
    };
    let Some(known) = known else {
        return Err(vec![refused_kind(source, node, kinds, api_version, kind)]);
    };
    let name = node.text_at("/metadata/name").and_then(|name| name.parse::<ObjectName>().ok());
    if name.is_none() {
        let what = format!("this {known} has no valid name");
        let expected = "metadata.name: lower-case letters, digits, '-' and '.'";
        error(node.locate("/metadata/name"), Code::Schema, what, expected);
    }
    match node.at("/metadata/namespace").map(|n| (n, n.text())) {
        None => {}
        Some((_, Some(own))) if own == namespace.as_str() => {}
        Some((at, other)) => {
            let what = format!("this {known} is in namespace {}", quoted(other.unwrap_or_default()));
            error(at.mark, Code::CrossNamespace, what, &format!("the rollout's namespace {namespace}"));
        }
    }
    for field in ["uid", "resourceVersion", "generation", "managedFields", "generateName", "ownerReferences"] {
        if node.at(&format!("/metadata/{field}")).is_some_and(|n| n.content != Content::Scalar(Value::Null)) {
            let mark = node.locate_key("/metadata", field);
            error(mark, Code::Schema, format!("metadata.{field} is not for manifests"), "no such field");
        }
    }
    found.extend(shape(source, node, known));
    numbers(source, node, &mut found);
    match name {
        Some(name) if found.is_empty() => {
            let mut value = node.value();
            // The API server ignores it in what is applied; kubectl's dry run leaves it behind.
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("status");
            }
            Ok(Object::new(ObjectRef { kind: known, namespace: namespace.clone(), name }, value))
        }
        _ => Err(found),
    }
}

/// A kind that is known by its names alone, if it may stand here.
fn other_kind(kinds: &Kinds<'_>, api_version: &str, kind: &str) -> Option<Kind> {
    let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let named =
        GroupKind::new(group, kind).filter(|named| !refused::is_never(named) && (kinds.others)(named).is_ok())?;
    // Of what tidegate knows, and of what it has a role for, there is one version.
    let is_known = Kind::ALL.iter().any(|known| known.as_str() == named.kind() && group_of(*known) == named.group());
    (!is_known).then(|| Other::named(api_version, kind).map(Kind::Other)).flatten()
}

/// The API group of a kind; empty for the core.
fn group_of(kind: Kind) -> &'static str {
    kind.api_version().rsplit_once('/').map_or("", |(group, _)| group)
}

/// Mappings where mappings must be, and no marks of ours.
fn shape(source: &SourceText, node: &Node, kind: Kind) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for pointer in kind.facts().mappings {
        let holds = node.at(pointer).is_some_and(|n| matches!(n.content, Content::Map(_)));
        let parent_holds = pointer
            .rsplit_once('/')
            .and_then(|(parent, _)| node.at(parent))
            .is_some_and(|n| matches!(n.content, Content::Map(_)));
        if !holds && parent_holds {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            let text = format!("this {kind} has no {name}, or it is no mapping");
            found.push(source.at(node.locate(pointer), Code::Schema, text, format!("{name}: a mapping")));
        }
    }
    for pointer in [
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/template/metadata/labels",
        "/spec/template/metadata/annotations",
    ] {
        let Some(map) = node.at(pointer) else { continue };
        for (key, value) in map.entries().iter().take(MOST) {
            if value.text().is_none() {
                let text = format!("the value of {} is no text", quoted(&key.text));
                found.push(source.at(key.mark, Code::Schema, text, "a text").help("quote it"));
            }
            if key.text.split('/').next().is_some_and(|prefix| prefix == DOMAIN && key.text.contains('/')) {
                let text = format!("{} is a mark that tidegate sets itself", quoted(&key.text));
                found.push(source.at(key.mark, Code::NotPermitted, text, "labels and annotations of your own"));
            }
        }
    }
    found
}

/// Integers that JSON readers do not agree on.
fn numbers(source: &SourceText, node: &Node, found: &mut Vec<Diagnostic>) {
    match &node.content {
        Content::Scalar(Value::Number(n)) => {
            let whole = n.as_i64().map(i64::unsigned_abs).or_else(|| n.as_u64());
            if whole.is_some_and(|whole| whole > MAX_INTEGER) && found.len() < MOST {
                let expected = format!("an integer within ±{MAX_INTEGER}");
                let text = format!("{n} is read differently by different readers");
                let diagnostic = source.at(node.mark, Code::NumberRange, text, expected);
                found.push(diagnostic.help("quote it if it is a text"));
            }
        }
        Content::Scalar(_) => {}
        Content::List(items) => items.iter().for_each(|item| numbers(source, item, found)),
        Content::Map(entries) => entries.iter().for_each(|(_, item)| numbers(source, item, found)),
    }
}
