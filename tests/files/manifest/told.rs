//! How findings are told: with the rule that was broken, the true size, and nothing that is secret.

use crate::tree::{PODINFO, PODINFO_SET, POLICY, Tree};
use tidegate::cli::validate::{Colour, Output, report, validate};

#[test]
fn the_name_of_a_header_is_told_with_its_rule() {
    let mut tree = Tree::example();
    let report =
        report(&tree.edit(PODINFO, "x-canary: always", "x canary: always").load(), Output::Text, Colour::Never);
    assert!(report.text.contains("error[Schema]: \"x canary\" is not the name of a header\n"), "{}", report.text);
    let expected = "^^^^^^^^ expected 1 to 256 letters, digits and characters of !#$%&'*+.^_`|~-\n";
    assert!(report.text.contains("rollout.yaml:16:20\n") && report.text.contains(expected), "{}", report.text);
}

#[test]
fn a_line_of_a_secret_is_not_shown_where_a_file_is_no_text() {
    for odd in [b"\xff".as_slice(), b"\x07"] {
        let mut tree = Tree::example();
        let mut bytes = tree.text(PODINFO_SET).into_bytes();
        bytes.extend(b"\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}");
        bytes.extend(odd);
        let report = report(&tree.put(PODINFO_SET, bytes).load(), Output::Text, Colour::Never);
        assert!(report.text.contains("error[Encoding]") && !report.text.contains("hunter2"), "{}", report.text);
    }
}

#[test]
fn a_large_file_is_refused_with_its_size() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shop")).unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write("tidegate.yaml", Tree::example().text(POLICY).replace("teams/", ""));
    write("shop/rollout.yaml", Tree::example().text(PODINFO));
    write("shop/podinfo.yaml", "# nothing\n".repeat(200_000));
    let report = validate(dir.path(), Output::Text, Colour::Never);
    let found = "shop/podinfo.yaml is a file of 2000000 bytes";
    assert!(report.text.contains(found) && report.text.contains("expected at most 1048576 bytes"), "{}", report.text);
}
