//! What the configuration of a node is called by.

use super::hex::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The SHA-256 of a content, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentDigest(String);

impl ContentDigest {
    /// The digest of these files, which depends on nothing but their names and bytes (requirement N-17): over the length of each name, the name,
    /// the length of its bytes, and the bytes, in the order of the names, with lengths as eight bytes, the largest first.
    #[must_use]
    pub fn of<B: AsRef<[u8]>>(files: &BTreeMap<String, B>) -> Self {
        let mut hash = Sha256::new();
        for (name, bytes) in files {
            for part in [name.as_bytes(), bytes.as_ref()] {
                hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                hash.update(part);
            }
        }
        Self(hex(&hash.finalize()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ContentDigest> for String {
    fn from(digest: ContentDigest) -> Self {
        digest.0
    }
}

impl TryFrom<String> for ContentDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is no digest: expected 64 of 0-9 and a-f"))
    }
}

impl FromStr for ContentDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}
