//! Bytes as text.

use std::fmt::Write;

/// Two hex digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String, because writing to it cannot fail");
        text
    })
}
