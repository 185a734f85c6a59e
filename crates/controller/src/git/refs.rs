//! Refs: their names, and the look-up of the remote's tips (Git protocol v2, `ls-refs`).
//!
//! libgit2 reads a server's whole advertisement; a poll asks for the refs of its prefixes alone, in one request.

use super::GitError;
use super::http::{Answer, Ask, Http, Service, Version};
use super::remote::RemoteLimits;
use super::ssh::{Pipe, Ssh};
use crate::manifest::ids::{CommitId, InvalidId};
use crate::record::text::plain;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HEADS: &str = "refs/heads/";

/// The full name of a branch, `refs/heads/…`: what `git check-ref-format` allows, and no part begins with `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

impl RefName {
    /// The branch called `name`, as people say it: `main`.
    ///
    /// # Errors
    /// When it is no name of a branch.
    pub fn branch(name: &str) -> Result<Self, InvalidId> {
        format!("{HEADS}{name}").parse()
    }

    /// The text of it, from `refs/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the branch, as people say it.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[HEADS.len()..]
    }
}

impl FromStr for RefName {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
        let part =
            |p: &str| !p.is_empty() && !p.starts_with(['.', '-']) && !p.ends_with(['.']) && !p.ends_with(".lock");
        let branch = text.strip_prefix(HEADS).filter(|branch| {
            branch.len() <= 240
                && branch.split('/').all(part)
                && !branch.contains(forbidden)
                && !branch.contains("..")
                && !branch.contains("@{")
        });
        branch.map(|_| Self(text.to_owned())).ok_or_else(|| InvalidId {
            what: "branch",
            found: text.chars().take(80).collect(),
            rule: "refs/heads/ and a name that git check-ref-format allows, without a leading '-', at most 240 bytes",
        })
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tips that a look-up found. Names that are not [`RefName`]s are left out: no branch of ours has such a name.
pub(super) struct Tips<'a> {
    prefixes: &'a [&'a str],
    limit: usize,
    /// Bytes that what was asked for may still have.
    left: u64,
    bytes: u64,
    pub(super) found: BTreeMap<RefName, CommitId>,
}

impl<'a> Tips<'a> {
    pub(super) fn new(prefixes: &'a [&'a str], limits: &RemoteLimits) -> Self {
        let bytes = limits.advertisement_bytes;
        Self { prefixes, limit: limits.refs, left: bytes, bytes, found: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, doing: &str, name: &str, id: &str) -> Result<(), GitError> {
        // A server may send more than the prefixes ask for: whatever begins like main, or all that there is.
        let is_meant = |prefix: &&str| if prefix.ends_with('/') { name.starts_with(*prefix) } else { name == *prefix };
        if !self.prefixes.iter().any(is_meant) {
            return Ok(());
        }
        // What nobody asked for counts for nothing: anybody who may push can make any number of it.
        self.left = self.left.checked_sub((id.len() + name.len()) as u64).ok_or_else(|| GitError::Limit {
            what: format!("the list of branches below {}", self.prefixes.join(", ")),
            limit: format!("{} bytes", self.bytes),
        })?;
        let Ok(name) = name.parse() else { return Ok(()) };
        let id = id.parse().map_err(|_| GitError::Protocol {
            doing: doing.to_owned(),
            why: format!("object id {:?} instead of 40 hex digits (SHA-256 repositories are not supported)", plain(id)),
        })?;
        self.found.insert(name, id);
        if self.found.len() > self.limit {
            let what = format!("the number of branches below {}", self.prefixes.join(", "));
            return Err(GitError::Limit { what, limit: self.limit.to_string() });
        }
        Ok(())
    }
}

/// Looks the tips up on a server; `speaks_v2` is what is known of it from earlier look-ups.
pub(super) async fn over_http(
    http: &Http,
    speaks_v2: &AtomicBool,
    prefixes: &[&str],
    limits: &RemoteLimits,
) -> Result<BTreeMap<RefName, CommitId>, GitError> {
    let budget = http.budget(limits.advertisement_bytes).with_unasked();
    let mut tips = Tips::new(prefixes, limits);
    if !speaks_v2.load(Ordering::Relaxed) {
        let answer = http.ask(Ask::Advertise(Service::UploadPack), Version::V2, budget).await?;
        if read_advertisement(&mut Lines::new(answer), &mut tips).await? == Version::V0 {
            return Ok(tips.found);
        }
        speaks_v2.store(true, Ordering::Relaxed);
    }
    let ask = Ask::Command(Service::UploadPack, question(prefixes));
    let result = match http.ask(ask, Version::V2, budget).await {
        Ok(answer) => read_list(&mut Lines::new(answer), &mut tips).await,
        Err(error) => Err(error),
    };
    if result.is_err() {
        // Perhaps the server was exchanged for an older one, which may answer v2 with nothing at all: ask anew next time.
        speaks_v2.store(false, Ordering::Relaxed);
    }
    result.map(|()| tips.found)
}

/// Looks the tips up behind SSH, on one connection, whichever version the server chooses.
pub(super) async fn over_ssh(
    ssh: &Arc<Ssh>,
    prefixes: &[&str],
    limits: &RemoteLimits,
) -> Result<BTreeMap<RefName, CommitId>, GitError> {
    let budget = ssh.budget(limits.advertisement_bytes).with_unasked();
    let pipe = ssh.connect_aside(Service::UploadPack, Version::V2, budget).await?;
    let mut tips = Tips::new(prefixes, limits);
    let mut lines = Lines::new(pipe);
    if read_advertisement(&mut lines, &mut tips).await? == Version::V2 {
        lines.source.send(&question(prefixes)).await?;
        read_list(&mut lines, &mut tips).await?;
    }
    // Nothing more is wanted; the tips are known whatever comes of saying so.
    lines.source.send(b"0000").await.ok();
    lines.source.leave().await;
    Ok(tips.found)
}

/// `command=ls-refs` with our prefixes (gitprotocol-v2). No `object-format`, as SHA-1 is what that means.
fn question(prefixes: &[&str]) -> Vec<u8> {
    let mut out = b"0014command=ls-refs\n0001".to_vec();
    for prefix in prefixes {
        let argument = format!("ref-prefix {prefix}\n");
        out.extend_from_slice(format!("{:04x}{argument}", argument.len() + 4).as_bytes());
    }
    out.extend_from_slice(b"0000");
    out
}

/// Reads `info/refs`: either the capabilities of v2, or all refs.
async fn read_advertisement(lines: &mut Lines<impl Chunks>, tips: &mut Tips<'_>) -> Result<Version, GitError> {
    let mut line = lines.next().await?;
    if matches!(&line, Line::Data(data) if data.starts_with(b"# service=")) {
        if lines.next().await? != Line::Flush {
            return Err(lines.wrong("no flush after the service line"));
        }
        line = lines.next().await?;
    }
    let mut version = Version::V0;
    let mut lists_refs = false;
    while let Line::Data(data) = line {
        let text = lines.text(&data)?;
        if text == "version 2" {
            version = Version::V2;
        } else if version == Version::V2 {
            lists_refs |= text == "ls-refs" || text.starts_with("ls-refs=");
        } else if let Some((id, name)) = text.split('\0').next().and_then(|head| head.split_once(' ')) {
            tips.add(lines.source.doing(), name, id)?;
        }
        line = lines.next().await?;
    }
    if version == Version::V2 && !lists_refs {
        return Err(lines.wrong("protocol v2 without ls-refs"));
    }
    Ok(version)
}

/// Reads the answer to `ls-refs`: `ID NAME[ ATTRIBUTE]…`.
async fn read_list(lines: &mut Lines<impl Chunks>, tips: &mut Tips<'_>) -> Result<(), GitError> {
    while let Line::Data(data) = lines.next().await? {
        let text = lines.text(&data)?;
        let mut words = text.split(' ');
        if let (Some(id), Some(name)) = (words.next(), words.next()) {
            tips.add(lines.source.doing(), name, id)?;
        }
    }
    Ok(())
}

/// One packet of Git's protocol (gitprotocol-common, pkt-line).
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Data(Bytes),
    Flush,
    /// A delimiter or the end of a response.
    Other,
}

/// Where packets come from.
trait Chunks {
    /// What is being done, for error texts.
    fn doing(&self) -> &str;

    /// The next bytes; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, GitError>;
}

impl Chunks for Answer {
    fn doing(&self) -> &str {
        &self.doing
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, GitError> {
        Answer::chunk(self).await
    }
}

impl Chunks for Pipe {
    fn doing(&self) -> &str {
        &self.doing
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, GitError> {
        Pipe::chunk(self).await
    }
}

/// Reads an answer packet by packet.
struct Lines<S> {
    source: S,
    buffer: BytesMut,
}

impl<S: Chunks> Lines<S> {
    fn new(source: S) -> Self {
        Self { source, buffer: BytesMut::new() }
    }

    fn wrong(&self, why: &str) -> GitError {
        GitError::Protocol { doing: self.source.doing().to_owned(), why: why.to_owned() }
    }

    /// The text of a packet, without the newline that may end it.
    ///
    /// # Errors
    /// When the server says that something went wrong (`ERR …`).
    fn text<'a>(&self, data: &'a [u8]) -> Result<std::borrow::Cow<'a, str>, GitError> {
        let text = String::from_utf8_lossy(data.strip_suffix(b"\n").unwrap_or(data));
        match text.strip_prefix("ERR ") {
            Some(why) => Err(self.wrong(&format!("the server says {:?}", plain(why)))),
            None => Ok(text),
        }
    }

    async fn take(&mut self, len: usize) -> Result<Bytes, GitError> {
        while self.buffer.len() < len {
            let Some(chunk) = self.source.chunk().await? else {
                let why = "the answer was cut off".to_owned();
                return Err(GitError::Away { doing: self.source.doing().to_owned(), why });
            };
            self.buffer.extend_from_slice(&chunk);
        }
        Ok(self.buffer.split_to(len).freeze())
    }

    async fn next(&mut self) -> Result<Line, GitError> {
        let head = self.take(4).await?;
        let len = std::str::from_utf8(&head).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        match len {
            Some(0) => Ok(Line::Flush),
            Some(1 | 2) => Ok(Line::Other),
            Some(len @ 4..) => Ok(Line::Data(self.take(len - 4).await?)),
            Some(3) | None => {
                Err(self.wrong(&format!("no packet length: {:?}", plain(&String::from_utf8_lossy(&head)))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches() {
        for good in ["refs/heads/main", "refs/heads/tidegate/prod/state", "refs/heads/a-b", "refs/heads/ü"] {
            good.parse::<RefName>().unwrap_or_else(|e| panic!("{e}"));
        }
        for bad in [
            "main",
            "HEAD",
            "refs/heads/",
            "refs/tags/v1",
            "refs/heads/../../config",
            "refs/heads/a..b",
            "refs/heads/-option",
            "refs/heads/a/-b",
            "refs/heads/.git",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a.",
            "refs/heads/a//b",
            "refs/heads/a/",
            "refs/heads/a b",
            "refs/heads/a\u{7}b",
            "refs/heads/a\nb",
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/a@{1}",
            "refs/heads/a*",
            "refs/heads/a\\b",
        ] {
            bad.parse::<RefName>().expect_err(bad);
        }
        assert_eq!(RefName::branch("main").unwrap().short(), "main");
        RefName::branch(&"x".repeat(241)).unwrap_err();
    }

    #[test]
    fn the_question_is_framed() {
        let expected = "0014command=ls-refs\n0001001fref-prefix refs/heads/main\n0000";
        assert_eq!(String::from_utf8(question(&["refs/heads/main"])).unwrap(), expected);
    }
}
