//! The root of the workspace, from whichever package asks.

use std::path::{Path, PathBuf};

/// Where `Cargo.lock` lies.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).expect("Cargo.lock lies at the root").to_owned()
}
