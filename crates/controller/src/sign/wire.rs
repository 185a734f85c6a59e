//! The wire format of SSH (RFC 4251, section 5) and the armour around it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Reads one value after the other; `None` where the bytes end too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A text with its length before it.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A positive number without leading zeros.
    pub(super) fn integer(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.first().is_none_or(|byte| byte & 0x80 == 0).then(|| &bytes[zeros..])
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

/// Adds a text with its length before it.
pub(super) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("below 4 GiB because it was read from a file with a limit");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Several texts, one after the other.
pub(super) fn strings(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| put(&mut out, part));
    out
}

/// What stands between the lines `-----BEGIN KIND-----` and `-----END KIND-----`, decoded.
pub(super) fn unarmoured(text: &[u8], kind: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let body = text.strip_prefix(&format!("-----BEGIN {kind}-----"))?.strip_suffix(&format!("-----END {kind}-----"))?;
    let joined: String = body.lines().map(str::trim_end).collect();
    STANDARD.decode(joined).ok()
}

/// The same way back, in lines of 70 characters as `ssh-keygen` makes them, without a line break at the end.
pub(super) fn armoured(bytes: &[u8], kind: &str) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {kind}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(70));
        out.push_str(line);
        out.push('\n');
        rest = more;
    }
    out.push_str(&format!("-----END {kind}-----"));
    out
}
