//! How much is taken of what the tenants' directories hold: whoever has too much stops for itself.

use super::files::{Entry, Files, RepoPath};
use std::collections::BTreeMap;

/// How much is taken of what all tenants' directories hold.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Entries of one directory, and manifests of all.
    pub entries: usize,
    /// Bytes of one tenant's manifests.
    pub tenant_bytes: u64,
    /// Bytes of all tenants' manifests.
    pub bytes: u64,
}

/// How large a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Its entries, whatever they are.
    pub entries: usize,
    /// Its manifests.
    pub manifests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Extent {
    /// The size of these files.
    #[must_use]
    pub fn of(files: &Files) -> Self {
        let contents =
            files.values().filter_map(|entry| if let Entry::File { bytes, .. } = entry { Some(bytes) } else { None });
        let add = |size: Self, bytes: u64| Self { manifests: size.manifests + 1, bytes: size.bytes + bytes, ..size };
        contents.map(|bytes| bytes.len() as u64).fold(Self { entries: files.len(), ..Self::default() }, add)
    }
}

/// The directories that are left out, each with the reason. Where all are too much, it is whoever has grown the most beyond what was
/// `believed`, be it from nothing: nobody is pushed out by another one.
#[must_use]
pub fn left_out(
    Most { entries, tenant_bytes, bytes }: Most,
    mut sizes: BTreeMap<RepoPath, Extent>,
    believed: &BTreeMap<RepoPath, Extent>,
) -> BTreeMap<RepoPath, String> {
    let mut out = BTreeMap::new();
    sizes.retain(|path, size| {
        let why = if size.entries > entries {
            format!("it has more than {entries} entries")
        } else if size.bytes > tenant_bytes {
            format!("its manifests have more than {tenant_bytes} bytes")
        } else {
            return true;
        };
        out.insert(path.clone(), why);
        false
    });
    let of_bytes: fn(&Extent) -> u64 = |size| size.bytes;
    for (of, limit, what) in [(of_bytes, bytes, "bytes"), (|size| size.manifests, entries as u64, "manifests")] {
        while sizes.values().map(of).sum::<u64>() > limit {
            let grown = |path: &RepoPath, size: &Extent| of(size).saturating_sub(believed.get(path).map_or(0, of));
            let most = sizes.iter().max_by_key(|(path, size)| (grown(path, size), of(size)));
            let Some(path) = most.map(|(path, _)| path.clone()) else { break };
            sizes.remove(&path);
            out.insert(
                path,
                format!("all tenants' directories have more than {limit} {what}, and it has grown the most"),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told<'a> = (&'a str, usize, u64, u64);

    fn out(sizes: &[Told<'_>], believed: &[Told<'_>]) -> Vec<String> {
        let all = |sizes: &[Told<'_>]| {
            let size = |(_, entries, manifests, bytes): &Told<'_>| Extent {
                entries: *entries,
                manifests: *manifests,
                bytes: *bytes,
            };
            sizes.iter().map(|told| (told.0.parse().unwrap(), size(told))).collect::<BTreeMap<RepoPath, Extent>>()
        };
        let most = Most { entries: 6, tenant_bytes: 50, bytes: 100 };
        left_out(most, all(sizes), &all(believed)).into_iter().map(|(path, why)| format!("{path}: {why}")).collect()
    }

    #[test]
    fn attack_103_whoever_has_too_much_is_left_out() {
        let told = out(
            &[("a", 1, 1, 40), ("b", 2, 2, 50), ("c", 1, 1, 20), ("d", 1, 1, 51), ("e", 4, 2, 0), ("f", 7, 1, 1)],
            &[],
        );
        let expected = [
            "b: all tenants' directories have more than 100 bytes, and it has grown the most",
            "d: its manifests have more than 50 bytes",
            "f: it has more than 6 entries",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn attack_103_nobody_is_pushed_out_by_who_grows() {
        let (before, after) = ([("a", 1, 1, 50), ("b", 1, 1, 10)], [("a", 1, 1, 50), ("b", 1, 1, 49), ("c", 1, 1, 2)]);
        let expected = "all tenants' directories have more than 100 bytes, and it has grown the most";
        assert_eq!(out(&after, &before), [format!("b: {expected}")]);
        assert_eq!(out(&after, &[]), [format!("a: {expected}")], "where nothing is known the largest");
        // What is no manifest takes nothing from others.
        assert_eq!(out(&[("a", 6, 1, 1), ("b", 6, 5, 1)], &[]), [""; 0]);
        let many = "all tenants' directories have more than 6 manifests, and it has grown the most";
        assert_eq!(out(&[("a", 4, 4, 1), ("b", 3, 3, 1)], &[("a", 4, 4, 1)]), [format!("b: {many}")]);
    }
}
