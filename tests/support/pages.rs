//! The documents, and what of them is made from the code.

use super::root::root;
use std::fs;

/// A document's text.
pub(crate) fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compares a document's part between its markers with what it shall be; `UPDATE_DOCS=1` writes it.
pub(crate) fn generated(path: &str, name: &str, wanted: &str) {
    let (start, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->"));
    let text = document(path);
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{path} has no {start}"));
    let (found, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{path} has no {end}"));
    if found != wanted && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), format!("{before}{start}{wanted}{end}{after}")).unwrap();
        return;
    }
    assert!(found == wanted, "{path} is stale: run the tests once with UPDATE_DOCS=1\n{wanted}");
}
