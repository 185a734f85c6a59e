//! What differs, as people and programs see it.

use super::{DiffView, LiveDiff, file_diffs, text};
use crate::cli::ui::Ink;
use crate::manifest::oid;
use crate::manifest::set::SetFiles;

fn files(of: &[(&str, &str)]) -> SetFiles {
    of.iter()
        .map(|(path, text)| (path.parse().unwrap(), (oid::blob(text.as_bytes()), text.as_bytes().into())))
        .collect()
}

fn view() -> DiffView {
    let old =
        files(&[("a.yaml", "kind: A\nreplicas: 2\nimage: one\n"), ("gone.yaml", "kind: B\n"), ("same.yaml", "x\n")]);
    let new = files(&[
        ("a.yaml", "kind: A\nreplicas: 2\nimage: two\u{1b}[2J\n"),
        ("new.yaml", "kind: C"),
        ("same.yaml", "x\n"),
    ]);
    DiffView {
        rollout: "shop/podinfo".to_owned(),
        promoted: Some("v1:sha256:06".to_owned()),
        wanted: Some("v1:sha256:07".to_owned()),
        files: file_diffs(&old, &new),
        live: vec![LiveDiff {
            object: "Deployment shop/podinfo".to_owned(),
            differences: vec!["/spec/replicas is 2, not 3".to_owned(), "/spec/x is \u{202e}, not 1".to_owned()],
        }],
    }
}

#[test]
fn diffs_are_unified_and_nothing_in_them_moves_the_cursor() {
    let shown = text(&view(), Ink::Plain);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'));
    insta::assert_snapshot!(shown);
    insta::assert_snapshot!("diff_json", serde_json::to_string_pretty(&view()).unwrap());
    assert_eq!(anstream::adapter::strip_str(&text(&view(), Ink::Colour)).to_string(), shown);
}

#[test]
fn equal_files_say_so() {
    let view = DiffView { files: Vec::new(), live: Vec::new(), ..view() };
    assert_eq!(text(&view, Ink::Plain), "shop/podinfo: nothing differs.\n");
}
