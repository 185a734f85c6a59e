//! What the tenants' directories hold, put together within limits: whoever has too much stops for itself.

use super::files::{Entry, Files, RepoPath};
use std::collections::BTreeMap;

/// How much is taken of what all tenants' directories hold.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Entries, of one and of all.
    pub entries: usize,
    /// Bytes of one tenant's manifests.
    pub tenant_bytes: u64,
    /// Bytes of all tenants' manifests.
    pub bytes: u64,
}

/// The tenants' directories that were read so far.
#[derive(Debug)]
pub struct Gathered {
    most: Most,
    directories: BTreeMap<RepoPath, Directory>,
    refused: Files,
}

#[derive(Debug)]
struct Directory {
    files: Files,
    bytes: u64,
}

impl Gathered {
    /// Nothing yet.
    #[must_use]
    pub fn new(most: Most) -> Self {
        Self { most, directories: BTreeMap::new(), refused: Files::new() }
    }

    /// Adds a directory, whose files have so many bytes. Where all are too much by then, the largest one is left out.
    pub fn add(&mut self, path: RepoPath, files: Files, bytes: u64) {
        let Most { entries, tenant_bytes, bytes: all } = self.most;
        if files.len() > entries {
            return self.refuse(path, format!("it has more than {entries} entries"));
        }
        if bytes > tenant_bytes {
            return self.refuse(path, format!("its manifests have more than {tenant_bytes} bytes"));
        }
        self.directories.insert(path, Directory { files, bytes });
        while self.directories.values().map(|found| found.bytes).sum::<u64>() > all {
            self.drop_largest(|found| found.bytes, &format!("{all} bytes"));
        }
        while self.directories.values().map(|found| found.files.len()).sum::<usize>() > entries {
            self.drop_largest(|found| found.files.len() as u64, &format!("{entries} entries"));
        }
    }

    fn drop_largest(&mut self, size: impl Fn(&Directory) -> u64, limit: &str) {
        let largest = self.directories.iter().max_by_key(|(_, found)| size(found)).map(|(path, _)| path.clone());
        if let Some(path) = largest {
            self.directories.remove(&path);
            self.refuse(path, format!("all tenants' directories have more than {limit}, and it is the largest"));
        }
    }

    /// Leaves a directory out.
    pub fn refuse(&mut self, path: RepoPath, why: String) {
        self.refused.insert(path, Entry::Unread { why: why.into() });
    }

    /// All files; of a directory that was left out why.
    #[must_use]
    pub fn finish(self) -> Files {
        let read = self.directories.into_values().flat_map(|found| found.files);
        read.chain(self.refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_103_the_largest_is_left_out() {
        let mut all = Gathered::new(Most { entries: 6, tenant_bytes: 50, bytes: 100 });
        for (directory, entries, bytes) in
            [("a", 1, 40), ("b", 2, 50), ("c", 1, 20), ("d", 1, 51), ("e", 4, 0), ("f", 7, 1)]
        {
            let files = (0..entries).map(|n| (format!("{directory}/{n}").parse().unwrap(), Entry::other())).collect();
            all.add(directory.parse().unwrap(), files, bytes);
        }
        all.refuse("g".parse().unwrap(), "it is no directory".to_owned());
        let told = |(path, entry): (RepoPath, Entry)| {
            let Entry::Unread { why } = entry else { panic!("{entry:?}") };
            if path.as_str().contains('/') { path.to_string() } else { format!("{path}: {why}") }
        };
        let expected = [
            "a/0",
            "b: all tenants' directories have more than 100 bytes, and it is the largest",
            "c/0",
            "d: its manifests have more than 50 bytes",
            "e/0",
            "e/1",
            "e/2",
            "e/3",
            "f: it has more than 6 entries",
            "g: it is no directory",
        ];
        assert_eq!(all.finish().into_iter().map(told).collect::<Vec<_>>(), expected);
    }
}
