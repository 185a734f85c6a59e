//! Packs: many objects in one file, where each by itself would cost several system calls.

use git2::{Oid, Repository};

/// Writes these objects of one repository as one pack of another, which may be the same.
///
/// # Errors
/// When one is missing or the pack cannot be written; then nothing is there of it.
pub(super) fn write(from: &Repository, objects: &[Oid], to: &Repository) -> Result<(), git2::Error> {
    let mut pack = from.packbuilder()?;
    objects.iter().try_for_each(|id| pack.insert_object(*id, None))?;
    pack.write(&to.commondir().join("objects/pack"), 0)
}
