//! Git's object ids for blobs and trees, so that a set has an id before anything is written.

use super::files::RepoPath;
use super::hex::hex;
use super::ids::{BlobId, SetId};
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;

/// The id that Git gives to a file with this content.
#[must_use]
pub fn blob(bytes: &[u8]) -> BlobId {
    hex(&object("blob", bytes)).parse().expect("20 bytes make 40 hex digits")
}

/// The id that Git gives to the tree that holds exactly these files, all with mode 100644.
#[must_use]
pub fn tree<'a>(files: impl IntoIterator<Item = (&'a RepoPath, &'a BlobId)>) -> SetId {
    let mut root = Dir::default();
    for (path, blob) in files {
        let mut parts: Vec<&str> = path.as_str().split('/').collect();
        let name = parts.pop().unwrap_or_default();
        let dir = parts.into_iter().fold(&mut root, |dir, part| dir.dirs.entry(part).or_default());
        dir.files.insert(name, blob);
    }
    hex(&root.id()).parse().expect("20 bytes make 40 hex digits")
}

#[derive(Default)]
struct Dir<'a> {
    files: BTreeMap<&'a str, &'a BlobId>,
    dirs: BTreeMap<&'a str, Dir<'a>>,
}

impl Dir<'_> {
    /// Paths have at most 32 parts, so this does not recurse deep.
    fn id(&self) -> [u8; 20] {
        // Git sorts a directory as if its name ended with '/'.
        let mut entries: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (name, blob) in &self.files {
            entries.insert((*name).to_owned(), entry("100644", name, &bytes(blob.as_str())));
        }
        for (name, dir) in &self.dirs {
            entries.insert(format!("{name}/"), entry("40000", name, &dir.id()));
        }
        object("tree", &entries.into_values().flatten().collect::<Vec<u8>>())
    }
}

fn entry(mode: &str, name: &str, id: &[u8]) -> Vec<u8> {
    [format!("{mode} {name}\0").as_bytes(), id].concat()
}

fn object(kind: &str, content: &[u8]) -> [u8; 20] {
    let mut hash = Sha1::new();
    hash.update(format!("{kind} {}\0", content.len()));
    hash.update(content);
    hash.finalize().into()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or_default();
    hex.as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |value, &c| value * 16 + digit(c)))
        .filter_map(|value| u8::try_from(value).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{blob, tree};
    use crate::manifest::files::RepoPath;

    #[test]
    fn ids_are_those_of_git() {
        // `git hash-object` of the two contents.
        let (a, b) = (blob(b"a: 1\n"), blob(b""));
        assert_eq!(a.as_str(), "a8926a52d8dcba5c4386945476ab6a2ad008afd4");
        assert_eq!(b.as_str(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        // `git write-tree` of the index with them; "a.yaml" sorts before the directory "a".
        let path = |text: &str| text.parse::<RepoPath>().unwrap();
        let files = [(path("a/x.yaml"), &a), (path("a.yaml"), &b), (path("b/c/d.json"), &a), (path("a-b.yaml"), &b)];
        assert_eq!(tree(files.iter().map(|(p, b)| (p, *b))).as_str(), "17c4e03e37ef5c72da6d7559a708f70f63791261");
        assert_eq!(tree([]).as_str(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }
}
