//! The list of refs with which a server begins, on its way to libgit2: what nobody asked for is left out. Anybody who may push can
//! make any number of branches, and libgit2 would keep them all.
//!
//! Format: gitprotocol-pack(5), "Reference Discovery".

use super::GitError;
use bytes::{Bytes, BytesMut};

/// How many times as much of a list may come as is kept of it: what nobody asked for takes no memory, and ends somewhere.
pub(super) const UNASKED: u64 = 64;

/// What is asked of a server in one operation.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// The full names of refs.
    pub(super) refs: Vec<String>,
    /// Whether commits alone are wanted, without what is in them. A server that does not offer that must not be asked for it.
    pub(super) commits_only: bool,
}

/// One list of refs.
pub(super) struct RefList {
    asked: Asked,
    buffer: BytesMut,
    /// The first line was handed on: it has the capabilities.
    begun: bool,
    ended: bool,
    /// Bytes that may still be handed on, and how many there were.
    left: u64,
    most: u64,
    /// Whether the server can leave out of a pack what is in commits.
    pub(super) offers_filter: bool,
}

impl RefList {
    /// A list of which so many bytes are kept.
    pub(super) fn new(asked: Asked, bytes: u64) -> Self {
        let (left, most) = (bytes, bytes);
        Self { asked, buffer: BytesMut::new(), begun: false, ended: false, left, most, offers_filter: false }
    }

    /// What follows is no list any more.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// What is handed on of the next bytes.
    ///
    /// # Errors
    /// `Limit` when what was asked for is too much, `Protocol` where it is no list.
    pub(super) fn pass(&mut self, doing: &str, chunk: Bytes) -> Result<Bytes, GitError> {
        if self.ended && self.buffer.is_empty() {
            return Ok(chunk);
        }
        self.buffer.extend_from_slice(&chunk);
        let mut kept = BytesMut::new();
        while !self.ended {
            let Some(head) = self.buffer.get(..4) else { break };
            let len = std::str::from_utf8(head).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
            let wrong = || GitError::Protocol { doing: doing.to_owned(), why: "no packet length".to_owned() };
            let len = len.ok_or_else(wrong)?.max(4);
            if self.buffer.len() < len {
                break;
            }
            let packet = self.buffer.split_to(len);
            if self.is_kept(&packet) {
                kept.extend_from_slice(&packet);
            }
        }
        self.left = self.left.checked_sub(kept.len() as u64).ok_or_else(|| GitError::Limit {
            what: format!("the list of refs to {doing}"),
            limit: format!("{} bytes", self.most),
        })?;
        if self.ended {
            kept.extend_from_slice(&self.buffer.split());
        }
        Ok(kept.freeze())
    }

    fn is_kept(&mut self, packet: &[u8]) -> bool {
        let line = &packet[4..];
        if line.is_empty() {
            // The flush after the name of the service is not the end.
            self.ended = self.begun;
            return true;
        }
        if line.starts_with(b"# service=") {
            return true;
        }
        if !self.begun {
            self.begun = true;
            let abilities = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
            self.offers_filter = abilities.trim_ascii().split(|byte| *byte == b' ').any(|word| word == b"filter");
            return true;
        }
        let name = line.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or_default().trim_ascii_end();
        let is_ref = line.get(40) == Some(&b' ');
        !is_ref || self.asked.refs.iter().any(|asked| asked.as_bytes() == name)
    }
}

/// A request for a pack that asks for commits alone; anything else as it is.
pub(super) fn commits_only(request: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(request.len() + 32);
    let (mut rest, mut first) = (request, true);
    while let Some(head) = rest.get(..4) {
        let len = std::str::from_utf8(head).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(packet) = len.and_then(|len| rest.get(..len.max(4))) else { break };
        let line = &packet[4..];
        if first && !line.starts_with(b"want ") {
            break;
        }
        if line.is_empty() {
            out.extend_from_slice(b"0012filter tree:0\n");
            break;
        }
        if first {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            out.extend_from_slice(format!("{:04x}", text.len() + 4 + " filter\n".len()).as_bytes());
            out.extend_from_slice(text);
            out.extend_from_slice(b" filter\n");
        } else {
            out.extend_from_slice(packet);
        }
        first = false;
        rest = &rest[packet.len()..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn line(name: &str) -> String {
        packet(&format!("{} {name}\n", "1".repeat(40)))
    }

    fn passed(list: &str, size: usize, most: u64) -> Result<String, GitError> {
        let asked = Asked { refs: vec!["refs/heads/main".to_owned()], commits_only: false };
        let mut sieve = RefList::new(asked, most);
        let mut kept = String::new();
        for chunk in list.as_bytes().chunks(size) {
            kept.push_str(std::str::from_utf8(&sieve.pass("fetch", Bytes::copy_from_slice(chunk))?).unwrap());
        }
        assert!(sieve.offers_filter);
        Ok(kept)
    }

    #[test]
    fn attack_104_what_nobody_asked_for_is_neither_kept_nor_counted() {
        let head = packet(&format!("{} HEAD\0multi_ack filter agent=git\n", "1".repeat(40)));
        let others: String = (0..1_000).map(|n| line(&format!("refs/heads/main-{n}"))).collect();
        let (main, shallow) = (line("refs/heads/main"), packet(&format!("shallow {}", "2".repeat(40))));
        let service = packet("# service=git-upload-pack\n");
        for begin in [String::new(), format!("{service}0000")] {
            let list = format!("{begin}{head}{others}{main}{others}{shallow}0000PACK");
            for size in [1, 7, 1_000_000] {
                assert_eq!(passed(&list, size, 400).unwrap(), format!("{begin}{head}{main}{shallow}0000PACK"));
            }
            assert!(matches!(passed(&list, 100, 100), Err(GitError::Limit { .. })));
        }
        let wrong = RefList::new(Asked::default(), 9).pass("fetch", Bytes::from_static(b"<html>"));
        assert!(matches!(wrong, Err(GitError::Protocol { .. })));
    }

    #[test]
    fn a_request_for_commits_alone() {
        let (one, two) = (format!("want {} ofs-delta\n", "1".repeat(40)), format!("want {}\n", "2".repeat(40)));
        let have = packet(&format!("have {}\n", "3".repeat(40)));
        let asked = format!("{}{}0000{have}0009done\n", packet(&one), packet(&two));
        let filtered = format!(
            "{}{}0012filter tree:0\n0000{have}0009done\n",
            packet(&one.replace('\n', " filter\n")),
            packet(&two)
        );
        assert_eq!(String::from_utf8(commits_only(asked.as_bytes())).unwrap(), filtered);
        assert_eq!(commits_only(have.as_bytes()), have.as_bytes());
    }
}
