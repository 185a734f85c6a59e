use super::{Code, Dialect, MAX_BYTES, MOST, Parsed, parse};
use serde_json::json;

fn own(text: &str) -> Parsed {
    parse(&"a.yaml".parse().unwrap(), text.as_bytes(), Dialect::Own)
}

fn kubernetes(text: &str) -> Parsed {
    parse(&"a.yaml".parse().unwrap(), text.as_bytes(), Dialect::Kubernetes)
}

fn codes(parsed: &Parsed) -> Vec<(usize, usize, Code)> {
    parsed.diagnostics.iter().map(|d| (d.line, d.column, d.code)).collect()
}

#[test]
fn a_document_knows_where_its_nodes_are() {
    let parsed = own("a:\n  b: [1, two]\n  c: {d: \"x\"}\n");
    assert_eq!(parsed.diagnostics, []);
    let root = &parsed.documents[0];
    assert_eq!(root.value(), json!({"a": {"b": [1, "two"], "c": {"d": "x"}}}));
    let at = |pointer| {
        let mark = root.locate(pointer);
        (mark.line, mark.column, mark.length)
    };
    assert_eq!(at("/a/b/1"), (2, 10, 3));
    assert_eq!(at("/a/c/d"), (3, 10, 3));
    assert_eq!(at("/a/b"), (2, 3, 1));
    assert_eq!(at("/a/c/missing"), (3, 3, 1));
    assert_eq!(at(""), (1, 1, 1));
}

#[test]
fn attack_26_billion_laughs_is_refused_before_it_expands() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let alias = format!("*a{}", i - 1);
        text.push_str(&format!("a{i}: &a{i} [{}]\n", [alias.as_str(); 10].join(", ")));
    }
    // Expanded, these are a million million nodes: neither the time nor the memory for them is there.
    let parsed = kubernetes(&text);
    assert!(parsed.diagnostics.iter().all(|d| d.code == Code::Alias));
    assert_eq!(parsed.diagnostics.len(), MOST);
}

#[test]
fn attack_27_deep_nesting_does_not_overflow_the_stack() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        let parsed = own(&text);
        assert_eq!(parsed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::TooDeep]);
        assert!(!parsed.complete);
    }
}

#[test]
fn attack_28_a_key_that_stands_twice() {
    let parsed = own("approve: false\nother: 1\napprove: true\n");
    assert_eq!(codes(&parsed), [(3, 1, Code::DuplicateKey)]);
    let parsed = kubernetes("on: 1\ntrue: 2\n");
    assert_eq!(codes(&parsed), [(2, 1, Code::DuplicateKey)]);
}

#[test]
fn attack_29_merge_keys_are_off() {
    let parsed = kubernetes("base: {a: 1}\nuse:\n  <<: {a: 2}\n");
    assert_eq!(codes(&parsed), [(3, 3, Code::MergeKey)]);
}

#[test]
fn attack_30_tags_are_refused() {
    for text in ["a: !!python/object x\n", "a: !Ref x\n", "a: !!str 1\n", "a: ! 1\n", "!x {a: 1}\n"] {
        let parsed = kubernetes(text);
        assert_eq!(parsed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::Tag], "{text}");
    }
}

#[test]
fn attack_32_no_document_is_passed_over() {
    let hidden = format!("a: 1\n{}---\nb: 2\n", "\n".repeat(1_000));
    assert_eq!(codes(&own(&hidden)), [(1_002, 1, Code::SeveralDocuments)]);
    let all = kubernetes(&format!("---\n# nothing\n---\n{hidden}...\n---\nc: 3\n"));
    assert_eq!(
        all.documents.iter().map(super::Node::value).collect::<Vec<_>>(),
        [json!({"a": 1}), json!({"b": 2}), json!({"c": 3})]
    );
    assert_eq!(own("# nothing\n").diagnostics[0].code, Code::Schema);
}

#[test]
fn attack_35_invisible_characters() {
    for c in ['\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}', '\u{ad}', '\u{2028}', '\u{7f}', '\0'] {
        assert_eq!(codes(&own(&format!("a: x{c}y\n"))), [(1, 5, Code::Encoding)], "{c:?}");
    }
    // What nobody sees does not hide what nothing can read.
    assert_eq!(codes(&own("a: x\u{202e}y\rb: \u{7f}\n")), [(1, 7, Code::Encoding)]);
}

#[test]
fn attack_36_encodings() {
    let bytes: [(&str, &[u8]); 4] = [
        ("byte order mark", b"\xef\xbb\xbfa: 1\n"),
        ("UTF-16", b"\xff\xfea\0:\0 \x001\0"),
        ("no UTF-8", b"a: \xc3\x28\n"),
        ("lone carriage return", b"a: 1\rb: 2\r"),
    ];
    for (what, bytes) in bytes {
        for dialect in [Dialect::Own, Dialect::Kubernetes] {
            let parsed = parse(&"a.yaml".parse().unwrap(), bytes, dialect);
            assert_eq!(parsed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::Encoding], "{what}");
        }
    }
    let text = "a: 1\nb: |\n  two\n  lines\nc: \"folded\n  text\"\n";
    let (lf, crlf) = (kubernetes(text), kubernetes(&text.replace('\n', "\r\n")));
    assert_eq!((lf.diagnostics.len(), crlf.diagnostics.len()), (0, 0));
    assert_eq!(lf.documents[0].value(), crlf.documents[0].value());
}

/// What is said of a file, with its place.
fn said(bytes: &[u8]) -> Vec<String> {
    let parsed = parse(&"a.yaml".parse().unwrap(), bytes, Dialect::Kubernetes);
    parsed.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn the_first_byte_that_is_not_utf_8_has_a_place() {
    let said = said("a: ü\r\nb: é".bytes().chain([0xff, 0xfe]).collect::<Vec<u8>>().as_slice());
    assert_eq!(
        said,
        [
            "a.yaml:2:5: Encoding: the byte 0xFF is not UTF-8 here; expected UTF-8 without a byte order mark (save the file \
          as UTF-8)"
        ]
    );
}

#[test]
fn a_merge_conflict_is_called_so() {
    let text = "a: no\nspec:\n<<<<<<< HEAD\n  image: x:1\n=======\n  image: x:2\n>>>>>>> theirs\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace("<<<<<<< HEAD\n", "\n")] {
        let parsed = own(&text);
        let line = if text.contains("<<<") { 3 } else { 5 };
        assert_eq!(codes(&parsed), [(1, 4, Code::AmbiguousScalar), (line, 1, Code::Syntax)], "{text}");
        assert_eq!(parsed.diagnostics[1].found, "a merge conflict is not resolved");
        assert!(
            !parsed.complete && parsed.documents[0].text_at("/a") == Some("no"),
            "what was read still tells a name"
        );
    }
    assert_eq!(said(b"a: |\n  <<<<<<< HEAD\n  >>>>>>> x\n"), Vec::<String>::new());
}

#[test]
fn a_template_is_called_so() {
    let templates = [
        ("{{- if .Values.on }}\nkind: Service\n{{- end }}\n", (1, 1)),
        ("{{/* a comment */}}\nkind: Service\n", (1, 1)),
        ("kind: Service\nmetadata:\n  name: {{ include \"x.fullname\" . }}\n", (3, 9)),
        ("kind: Service\nmetadata:\n  name: {{ .Release.Name }}-web # it's\n", (3, 9)),
        ("kind: Service\nmetadata:\n  labels:\n    {{- toYaml .Values.labels | nindent 4 }}\n", (4, 5)),
        ("image: {{ .Values.image }}\nreplicas: {{ .Values.n }}\n", (1, 8)),
        ("spec:\n  {{ with .Values.x }}\n  a: {{ .x }}\n  {{ end }}\n", (2, 3)),
    ];
    for (text, (line, column)) in templates {
        let parsed = kubernetes(text);
        assert_eq!(codes(&parsed), [(line, column, Code::Syntax)], "{text}\n{:#?}", parsed.diagnostics);
        assert_eq!(parsed.diagnostics[0].found, "this is a Helm template", "{text}");
    }
    // What a text says is its own affair, and another mistake keeps its name.
    let texts = ["a: \"{{ .x }}\"\n", "a: |\n  {{ .x }}\nb: '{{ .y }}'\n", "a: x # {{ .x }}\n", "a: {b: {c: d}}\n"];
    assert_eq!(texts.map(|text| said(text.as_bytes())).concat(), Vec::<String>::new());
    for broken in ["a: [\nb: |\n  {{ .x }}\n", "a: |\n  {{ .x }}\n\n\nb: [\n", "a: \"{{ .x }}\n"] {
        let parsed = kubernetes(broken);
        assert!(parsed.diagnostics.iter().all(|d| !d.found.contains("template")), "{:#?}", parsed.diagnostics);
    }
}

#[test]
fn attack_41_a_file_of_comments_is_refused_by_its_size() {
    let parsed = own(&"# nothing\n".repeat(MAX_BYTES / 10 + 1));
    assert_eq!(parsed.diagnostics[0].code, Code::TooLarge);
    assert_eq!(kubernetes(&format!("[{}]", "[],".repeat(super::MAX_NODES + 1))).diagnostics[0].code, Code::TooLarge);
    assert_eq!(kubernetes(&format!("[{}]", "1,".repeat(super::MAX_NODES + 1))).diagnostics[0].code, Code::TooLarge);
}

#[test]
fn json_is_yaml() {
    let parsed = kubernetes("{\n\t\"a\": [1, true, null],\n\t\"b\": \"\\u00e9\\/\"\n}\n");
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.documents[0].value(), json!({"a": [1, true, null], "b": "é/"}));
}

#[test]
fn mistakes_are_collected_and_syntax_ends_the_reading() {
    let parsed = own("a: no\nb: 0644\nb: &x 1\nc: *x\nd: [\n");
    assert_eq!(
        codes(&parsed)[..4],
        [(1, 4, Code::AmbiguousScalar), (2, 4, Code::AmbiguousScalar), (3, 1, Code::DuplicateKey), (3, 7, Code::Alias)]
    );
    assert_eq!(parsed.diagnostics.last().map(|d| d.code), Some(Code::Syntax));
    assert!(!parsed.complete);
    assert_eq!(parsed.documents[0].text_at("/a"), Some("no"));
}

#[test]
fn where_lines_do_not_stand_below_each_other_that_is_said() {
    for text in ["spec:\n  a: 1\n   b: 2\n", "spec:\n    a: {b: c}\n  d: 2\n", "a:\n  - b\n c: 1\n"] {
        let found = &own(text).diagnostics;
        let help = found[0].help.as_deref().unwrap_or_default();
        assert!(found[0].code == Code::Syntax && help.contains("indentation of line "), "{found:?}");
    }
    let other = &own("a: {b: c\n").diagnostics;
    assert!(other[0].help.as_ref().is_none_or(|help| !help.contains("indentation")), "{other:?}");
}
