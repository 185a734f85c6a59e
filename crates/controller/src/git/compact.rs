//! Keeps the cache small: libgit2 never packs again, each fetch adds a pack and each commit loose objects.

use super::GitError;
use super::repo::TIPS;
use git2::Repository;
use std::path::Path;

/// Loose objects in one of the 256 directories: about 6,700 in all, Git's own default.
const LOOSE: usize = 27;

/// Whether the cache in `directory` has too many files: more than so many packs, or too many loose objects.
pub(super) fn is_due(directory: &Path, packs: usize) -> bool {
    let count = |at: &str| std::fs::read_dir(directory.join(at)).map_or(0, Iterator::count);
    // A pack is two files. Ids are evenly distributed, so that one directory tells of all.
    count("objects/pack") > 2 * packs || count("objects/17") > LOOSE
}

/// Replaces all objects by one pack of what the tips lead to. The caller must be alone with the cache.
///
/// # Errors
/// `Corrupt` when something is missing, `Cache` when the pack cannot be written. The objects stay as they were.
pub(super) fn run(repository: Repository) -> Result<(), GitError> {
    let doing = "pack the cache";
    let failed = |error| GitError::local(doing, error);
    let objects = repository.path().join("objects");
    let name = write(&repository, &objects.join("pack")).map_err(failed)?;
    // It may have the old packs open.
    drop(repository);
    let clean = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(objects.join("pack"))? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().contains(&name) {
                std::fs::remove_file(entry.path())?;
            }
        }
        for entry in std::fs::read_dir(&objects)? {
            let entry = entry?;
            // Loose objects lie in directories named by two digits.
            if entry.file_name().len() == 2 {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    };
    clean().map_err(|error| GitError::Cache { doing: doing.to_owned(), source: Box::new(error) })
}

/// Writes the pack; the name that its files have in common.
fn write(repository: &Repository, into: &Path) -> Result<String, git2::Error> {
    let mut walk = repository.revwalk()?;
    walk.push_glob(&format!("{TIPS}*"))?;
    let mut pack = repository.packbuilder()?;
    pack.insert_walk(&mut walk)?;
    pack.write(into, 0)?;
    let name = pack.name()?.map(str::to_owned);
    name.ok_or_else(|| git2::Error::from_str("the pack was written without a name"))
}
