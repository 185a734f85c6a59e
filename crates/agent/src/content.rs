//! What a node shall have: files by their names, and the digest that they are called by. Pure.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
pub use tidegate_controller::manifest::content::ContentDigest;

/// The files of a content by their names.
pub type ContentFiles = BTreeMap<String, Vec<u8>>;

/// The most that the files of one content hold together: what a ConfigMap takes.
const MOST_BYTES: usize = 1 << 20;

/// Whether a file may be called so: it lies in one directory, whatever its name says.
#[must_use]
pub(crate) fn is_file_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    (1..=253).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with("..") && name != "."
}

/// The files of a ConfigMap, which are its `binaryData`.
///
/// # Errors
/// When that is no content: what is wrong, in a few words.
pub fn of_config_map(object: &Value) -> Result<ContentFiles, String> {
    let mut files = ContentFiles::new();
    let data = object.get("binaryData").and_then(Value::as_object);
    for (name, text) in data.into_iter().flatten() {
        if !is_file_name(name) {
            return Err(format!("{name:?} is no name of a file"));
        }
        let bytes = text.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
        files.insert(name.clone(), bytes.ok_or_else(|| format!("{name} is not base64"))?);
    }
    let size: usize = files.values().map(Vec::len).sum();
    if size > MOST_BYTES {
        return Err(format!("it holds {size} bytes; at most {MOST_BYTES}"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_is_of_names_and_bytes_alone() {
        let files = |all: &[(&str, &str)]| -> ContentFiles {
            all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let (one, other) = (files(&[("a", "1"), ("b", "2")]), files(&[("b", "2"), ("a", "1")]));
        assert_eq!(ContentDigest::of(&one), ContentDigest::of(&other));
        // Lengths stand before what they are of: nothing moves from a name to its bytes unseen.
        for near in [files(&[("a", "1b"), ("b", "2")]), files(&[("a1", ""), ("b", "2")]), files(&[("a", "1")])] {
            assert_ne!(ContentDigest::of(&near), ContentDigest::of(&one));
        }
        // As `printf '\0\0\0\0\0\0\0\1a\0\0\0\0\0\0\0\1x' | sha256sum` says it.
        let known = "e8197eec1ea18962a4f72c2f992a3a779b244cf58feae22a64cba25cbea5ae5b";
        assert_eq!(ContentDigest::of(&files(&[("a", "x")])).as_str(), known);
        assert_eq!(
            ContentDigest::of(&ContentFiles::new()).as_str(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn what_is_no_content_is_told() {
        let read = |data: Value| of_config_map(&json!({"binaryData": data}));
        assert_eq!(read(json!({"a.yaml": "eA=="})).unwrap()["a.yaml"], b"x");
        assert_eq!(of_config_map(&json!({})).unwrap(), ContentFiles::new());
        for (data, why) in [
            (json!({"../a": "eA=="}), "\"../a\" is no name of a file"),
            (json!({"..": "eA=="}), "\"..\" is no name of a file"),
            (json!({"a": "%"}), "a is not base64"),
            (json!({"a": 1}), "a is not base64"),
            (json!({"a": BASE64_STANDARD.encode(vec![0; MOST_BYTES + 1])}), "it holds 1048577 bytes; at most 1048576"),
        ] {
            assert_eq!(read(data).unwrap_err(), why);
        }
        assert!("E3".repeat(32).parse::<ContentDigest>().is_err() && "e3".repeat(32).parse::<ContentDigest>().is_ok());
    }
}
