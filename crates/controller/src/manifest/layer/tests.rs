use super::*;
use crate::manifest::ids::Namespace;
use crate::manifest::object::{Object, ObjectRef};
use crate::manifest::yaml::{self, Dialect};
use proptest::prelude::*;
use serde_json::json;

/// A document as the reader of sets has it.
fn item(text: &str) -> Item {
    let parsed = yaml::parse(&"layers/base.yaml".parse().unwrap(), text.as_bytes(), Dialect::Kubernetes);
    assert!(parsed.complete && parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let node = parsed.documents[0].clone();
    let name = node.text_at("/metadata/name").unwrap().parse().unwrap();
    let namespace: Namespace = "network".parse().unwrap();
    // Its kind is nothing that this module looks at.
    let reference = ObjectRef { kind: Kind::ConfigMap, namespace, name };
    Item { object: Object::new(reference, node.value()), source: Arc::new(parsed.source), node }
}

fn text(spec: &str) -> String {
    format!("apiVersion: tidegate.io/v1alpha1\nkind: NodeConfigLayer\nmetadata: {{name: base}}\nspec:\n{spec}")
}

fn told(spec: &str) -> Vec<String> {
    let one = |d: &Diagnostic| format!("{}:{}: {}; expected {}", d.line, d.column, d.found, d.expected);
    read(&item(&text(spec))).err().unwrap_or_default().iter().map(one).collect()
}

fn labels(all: &[(&str, &str)]) -> NodeLabels {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

const FILES: &str = "  files: {a.yaml: one}\n";

#[test]
fn n_16_a_selector_has_the_four_operators_of_kubernetes() {
    let selects = |selector: &str, all: &[(&str, &str)]| {
        let layer = read(&item(&text(&format!("  nodeSelector: {selector}\n{FILES}")))).unwrap();
        layer.nodes.selects(&labels(all))
    };
    let (storage, edge) = ([("role", "storage"), ("zone", "a")], [("role", "edge")]);
    for (selector, expected) in [
        ("{}", [true, true, true]),
        ("{matchLabels: {role: storage}}", [true, false, false]),
        ("{matchLabels: {role: storage, zone: b}}", [false, false, false]),
        ("{matchExpressions: [{key: role, operator: In, values: [storage, edge]}]}", [true, true, false]),
        ("{matchExpressions: [{key: role, operator: NotIn, values: [storage]}]}", [false, true, true]),
        ("{matchExpressions: [{key: zone, operator: Exists}]}", [true, false, false]),
        ("{matchExpressions: [{key: zone, operator: DoesNotExist}]}", [false, true, true]),
        ("{matchLabels: {zone: a}, matchExpressions: [{key: role, operator: NotIn, values: [storage]}]}", [false; 3]),
    ] {
        assert_eq!(
            [selects(selector, &storage), selects(selector, &edge), selects(selector, &[])],
            expected,
            "{selector}"
        );
    }
}

#[test]
fn n_24_each_mistake_has_its_place() {
    let of = |selector: &str| told(&format!("  nodeSelector: {selector}\n{FILES}"));
    assert_eq!(of("{}"), [""; 0]);
    let [one] = &of("{matchExpressions: [{key: a, operator: Near, values: [b]}]}")[..] else { panic!("one mistake") };
    assert!(
        one.starts_with("5:") && one.ends_with("\"Near\" is no operator; expected In, NotIn, Exists or DoesNotExist"),
        "{one}"
    );
    for (selector, what) in [
        ("{matchLabels: {}}", "matchLabels is empty, and would select all nodes"),
        ("{matchLabels: {a: 1}}", "the value of \"a\" is no text"),
        ("{matchExpressions: [{operator: Exists}]}", "this expression names no label"),
        ("{matchExpressions: [{key: a, operator: In}]}", "In has no values"),
        ("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", "Exists looks at no value"),
        ("{matchExpressions: [{key: a, operator: In, values: [1]}]}", "a value is no text"),
        ("{matchLabel: {a: b}}", "there is no field \"matchLabel\" in spec/nodeSelector"),
        ("everything", "this layer does not say which nodes it is for"),
    ] {
        let told = of(selector);
        assert!(told.len() == 1 && told[0].contains(what), "{selector}: {told:?}");
    }
    assert!(told(FILES)[0].contains("does not say which nodes"));
    let file = |name: &str| told(&format!("  nodeSelector: {{}}\n  files: {{{name}: one}}\n"));
    for (name, what) in [
        ("a/b", "it leads into a directory"),
        ("..", "it leads elsewhere"),
        ("..data", "it leads elsewhere"),
        ("\"\"", "it is empty"),
        ("\"a b\"", "it has characters"),
        (&"a".repeat(254), "it is too long"),
    ] {
        assert!(file(name)[0].contains(what), "{name}: {:?}", file(name));
    }
    assert_eq!(file("10-a_b.yaml"), [""; 0]);
    assert!(told("  nodeSelector: {}\n  files: {a: [1]}\n")[0].contains("is no text"));
    assert!(told("  nodeSelector: {}\n")[0].contains("has no files"));
    assert_eq!(told("  nodes: {}\n").len(), 3, "all at once");
}

fn layer(name: &str, key: Option<&str>, files: &[(&str, &str)]) -> Layer {
    let nodes = NodeSelector(key.map(|key| Asked::Exists(key.to_owned())).into_iter().collect());
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), Arc::from(text.as_bytes()))).collect();
    Layer { name: name.parse().unwrap(), nodes, files }
}

#[test]
fn n_24_layers_that_contradict_each_other_name_both_and_spare_other_nodes() {
    let all = [
        layer("base", None, &[("a", "1")]),
        layer("edge", Some("edge"), &[("a", "2")]),
        layer("same", None, &[("a", "1")]),
    ];
    let content = |of: &[(&str, &str)]| NodeContent::of(&all, &labels(of));
    assert_eq!(content(&[]).unwrap().files().keys().collect::<Vec<_>>(), ["a"]);
    let told = content(&[("edge", "")]).unwrap_err().to_string();
    assert_eq!(told, "the layers base and edge both have the file a, with other content");
    let half = "x".repeat(MOST_BYTES / 2);
    let large = [layer("one", None, &[("a", &half)]), layer("two", None, &[("b", &half)])];
    assert_eq!(NodeContent::of(&large, &labels(&[])), Err(NodeContentError::TooLarge { bytes: MOST_BYTES + 2 }));
    assert!(NodeContent::of(&large[..1], &labels(&[])).is_ok());
}

#[test]
fn n_17_a_digest_tells_names_from_contents() {
    let digest = |files: &[(&str, &str)]| NodeContent::of(&[layer("a", None, files)], &labels(&[])).unwrap().digest();
    let all = [
        digest(&[("a", "bc")]),
        digest(&[("ab", "c")]),
        digest(&[("a", "b"), ("c", "")]),
        digest(&[("a", ""), ("bc", "")]),
        NodeContent::default().digest(),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert!(all.iter().all(|digest| digest.as_str().len() == 64));
}

proptest! {
    /// Requirement N-17: nothing but names and bytes decides, in whatever order layers come and however they are divided.
    #[test]
    fn n_17_the_order_of_layers_says_nothing(
        files in prop::collection::btree_map("[a-d]{1,3}", "[x-z]{0,3}", 1..8), split in prop::collection::vec(0..3_usize, 8),
        order in Just([0_usize, 1, 2]).prop_shuffle(),
    ) {
        let one: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let part = |of: usize| {
            let own = one.iter().zip(&split).filter(|(_, part)| **part == of).map(|(file, _)| *file);
            layer(["b", "a", "c"][of], None, &own.collect::<Vec<_>>())
        };
        let whole = NodeContent::of(&[layer("all", None, &one)], &labels(&[])).unwrap();
        let parts = order.map(part);
        let union = NodeContent::of(&parts, &labels(&[])).unwrap();
        prop_assert_eq!(union.digest(), whole.digest());
        prop_assert_eq!(union, whole);
    }

    /// Requirement N-16: a node has the files of the layers that select it, and no others.
    #[test]
    fn n_16_a_node_has_what_selects_it(keys in prop::collection::vec(prop::option::of("[a-c]"), 1..6), own in prop::collection::btree_set("[a-c]", 0..3)) {
        let names: Vec<String> = (0..keys.len()).map(|n| format!("layer-{n}")).collect();
        let layers: Vec<Layer> =
            keys.iter().zip(&names).map(|(key, name)| layer(name, key.as_deref(), &[(name, "x")])).collect();
        let labels: NodeLabels = own.iter().map(|key| (key.clone(), String::new())).collect();
        let content = NodeContent::of(&layers, &labels).unwrap();
        for (key, name) in keys.iter().zip(&names) {
            prop_assert_eq!(content.files().contains_key(name), key.as_ref().is_none_or(|key| own.contains(key)));
        }
    }
}

#[test]
fn a_layer_is_read_as_it_is_written() {
    let layer =
        read(&item(&text("  nodeSelector: {matchLabels: {a: b}}\n  files:\n    x.yaml: |\n      one\n      two\n")))
            .unwrap();
    assert_eq!(layer.name.as_str(), "base");
    assert_eq!(layer.files["x.yaml"].as_ref(), b"one\ntwo\n");
    assert!(!layer.nodes.is_all());
    assert_eq!(json!(layer.files.len()), json!(1));
}
