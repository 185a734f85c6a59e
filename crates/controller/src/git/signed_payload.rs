//! A commit as whoever signed it saw it.

use super::GitError;
use git2::{Commit, Repository};

/// What a commit carries, and what that is over.
pub(super) struct Opened {
    /// The header `gpgsig`, be it of OpenPGP, SSH or anything else.
    pub(super) signature: Option<Vec<u8>>,
    /// All other bytes, as they are.
    pub(super) content: Vec<u8>,
}

/// Opens a commit; why it cannot be, if it cannot.
///
/// # Errors
/// When the cache fails.
pub(super) fn open(repository: &Repository, commit: &Commit<'_>) -> Result<Result<Opened, &'static str>, GitError> {
    let read = |error| GitError::local(&format!("read commit {}", commit.id()), error);
    let odb = repository.odb().map_err(read)?;
    let object = odb.read(commit.id()).map_err(read)?;
    Ok(divide(object.data()))
}

/// Divides a commit as Git does it: headers are what stands before the first empty line, and a line that begins with a space goes
/// on with the one before. libgit2's own function looks for the header in the message too, and stops at the first NUL.
fn divide(raw: &[u8]) -> Result<Opened, &'static str> {
    let mut opened = Opened { signature: None, content: Vec::with_capacity(raw.len()) };
    let (mut rest, mut inside) = (raw, false);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, below) = rest.split_at(end + 1);
        match (&mut opened.signature, line.strip_prefix(b"gpgsig "), line.strip_prefix(b" ")) {
            _ if line == b"\n" => break,
            (Some(_), Some(_), _) => return Err("several signatures"),
            (signature @ None, Some(begin), _) => (*signature, inside) = (Some(begin.to_vec()), true),
            (Some(signature), None, Some(more)) if inside => signature.extend(more),
            _ => {
                inside = false;
                opened.content.extend(line);
            }
        }
        rest = below;
    }
    opened.content.extend(rest);
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(raw: &str) -> Result<(Option<String>, String), &'static str> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        divide(raw.as_bytes()).map(|Opened { signature, content }| (signature.map(text), text(content)))
    }

    #[test]
    fn attack_16_a_signature_is_over_all_of_a_commit_but_itself() {
        let signed = |signature: &str, content: &str| Ok((Some(signature.to_owned()), content.to_owned()));
        let plain = "tree 1\nauthor a\n\nmessage\n";
        assert_eq!(divided(plain), Ok((None, plain.to_owned())));
        assert_eq!(divided("tree 1\ngpgsig a\n \n b\nauthor a\n\nmessage\n"), signed("a\n\nb\n", plain));
        // Only that header, and only its own lines; other headers have such too.
        let merge = "tree 1\nmergetag a\n gpgsig b\n c\nauthor a\n\ngpgsig d\n e\n\0 f";
        assert_eq!(divided(merge), Ok((None, merge.to_owned())));
        assert_eq!(divided("tree 1\ngpgsig a\nmergetag b\n c\n\n"), signed("a\n", "tree 1\nmergetag b\n c\n\n"));
        let other = "tree 1\ngpgsig-sha256 a\n b\n\n";
        assert_eq!(divided(other), Ok((None, other.to_owned())));
        assert_eq!(divided("tree 1\ngpgsig a\ngpgsig b\n\n"), Err("several signatures"));
        assert_eq!(divided("tree 1\ngpgsig a"), Ok((None, "tree 1\ngpgsig a".to_owned())));
    }
}
