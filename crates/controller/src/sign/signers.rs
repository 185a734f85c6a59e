//! Lists of allowed signers, as `ssh-keygen` and Git read them (ALLOWED SIGNERS of ssh-keygen(1)): who may sign, since when and
//! until when.

use super::PublicKey;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use std::collections::BTreeSet;

/// Who may sign.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signers(Vec<Signer>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Signer {
    principal: String,
    key: PublicKey,
    after: Option<DateTime<Utc>>,
    before: Option<DateTime<Utc>>,
}

impl Signer {
    fn may(&self, key: &PublicKey, at: DateTime<Utc>) -> bool {
        self.key == *key && self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at < before)
    }
}

/// A line that cannot be read. One that is passed over would be read by Git all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}; expected: PRINCIPAL [namespaces=\"git\"] ssh-ed25519 AAAAC3…")]
pub struct BadSigners {
    line: usize,
    why: String,
}

impl Signers {
    /// Reads a list. Keys for other namespaces than `git` are passed over.
    ///
    /// # Errors
    /// At the first line that cannot be read, and for certificate authorities.
    pub fn parse(text: &str) -> Result<Self, BadSigners> {
        let mut signers = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            signers.extend(signer(line).map_err(|why| BadSigners { line: n + 1, why })?);
        }
        Ok(Self(signers))
    }

    /// The name under which a key may sign at that time.
    #[must_use]
    pub fn name(&self, key: &PublicKey, at: DateTime<Utc>) -> Option<&str> {
        self.0.iter().find(|signer| signer.may(key, at)).map(|signer| signer.principal.as_str())
    }

    /// All that it names, whatever for and since when.
    #[must_use]
    pub fn all(&self) -> BTreeSet<&str> {
        self.0.iter().flat_map(|signer| signer.principal.split(',')).collect()
    }

    /// All that the list calls a key that may sign at that time. A pattern is one of its names as it stands, and so nobody's.
    #[must_use]
    pub fn names(&self, key: &PublicKey, at: DateTime<Utc>) -> BTreeSet<&str> {
        let lines = self.0.iter().filter(|signer| signer.may(key, at));
        lines.flat_map(|signer| signer.principal.split(',')).collect()
    }
}

fn signer(line: &str) -> Result<Option<Signer>, String> {
    let words = words(line)?;
    let mut words = words.iter().map(String::as_str).peekable();
    let Some(principal) = words.next() else { return Err("nobody is named".to_owned()) };
    let (mut after, mut before, mut counts) = (None, None, true);
    while let Some(word) = words.next_if(|word| !is_kind(word)) {
        match word.split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("namespaces") => {
                if value.contains('!') {
                    return Err("namespaces that are left out are not read; list those that count".to_owned());
                }
                counts = value.split(',').any(|namespace| matches!(namespace, "git" | "*"));
            }
            Some((name, value)) if name.eq_ignore_ascii_case("valid-after") => after = Some(time(value)?),
            Some((name, value)) if name.eq_ignore_ascii_case("valid-before") => before = Some(time(value)?),
            _ if word.eq_ignore_ascii_case("cert-authority") => {
                return Err("certificate authorities are not read; list the keys themselves".to_owned());
            }
            _ => return Err(format!("{word:?} is neither an option nor the kind of a key")),
        }
    }
    let rest: Vec<&str> = words.collect();
    let key = rest.join(" ").parse().map_err(|error: super::BadKey| error.to_string())?;
    Ok(counts.then(|| Signer { principal: principal.to_owned(), key, after, before }))
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "sk-", "ecdsa-"].iter().any(|kind| word.starts_with(kind))
}

/// The words of a line; in double quotes blanks belong to the word.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_ascii_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            // Options are divided by commas (ssh-keygen(1), ALLOWED SIGNERS), principals keep theirs.
            ',' if !quoted && !words.is_empty() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    if quoted { Err("a quote is not closed".to_owned()) } else { Ok(words) }
}

/// `YYYYMMDD[HHMM[SS]][Z]`; always UTC, as a controller has no other zone.
fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    let found = match digits.len() {
        8 => NaiveDate::parse_from_str(digits, "%Y%m%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0)),
        12 => NaiveDateTime::parse_from_str(&format!("{digits}00"), "%Y%m%d%H%M%S").ok(),
        14 => NaiveDateTime::parse_from_str(digits, "%Y%m%d%H%M%S").ok(),
        _ => None,
    };
    found.map(|time| time.and_utc()).ok_or_else(|| format!("{text:?} is no time, such as 20260131 or 202601311200Z"))
}
