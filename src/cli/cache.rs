//! Where a command keeps its copy of the repository: in the clone that it runs in, else in a temporary place.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory for the Git cache that no other command uses at the same time.
pub(super) struct Cache {
    /// The directory.
    pub(super) path: PathBuf,
    held: Held,
}

enum Held {
    /// In the clone, locked for as long as this lives; the next command goes on from what is there.
    InClone(File),
    /// Temporary; it goes with this.
    Temporary,
}

/// How many commands can keep a cache in one clone at the same time; more have temporary ones.
const SLOTS: u32 = 8;

impl Cache {
    /// In the clone with this Git directory, else in a temporary place.
    ///
    /// # Errors
    /// When neither can be written.
    pub(super) fn of(git_dir: Option<&Path>) -> std::io::Result<Self> {
        // A clone that cannot be written to is read with a temporary cache.
        let in_clone = git_dir.and_then(|dir| Self::in_clone(&dir.join("tidegate-cache")).ok().flatten());
        in_clone.map_or_else(Self::temporary, Ok)
    }

    fn in_clone(dir: &Path) -> std::io::Result<Option<Self>> {
        std::fs::create_dir_all(dir)?;
        for slot in 0..SLOTS {
            let lock = File::create(dir.join(format!("{slot}.lock")))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Some(Self { path: dir.join(slot.to_string()), held: Held::InClone(lock) })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Below this directory, else in a temporary place: a container may have no other that can be written to.
    ///
    /// # Errors
    /// When neither can be written.
    pub(super) fn below(dir: &Path) -> std::io::Result<Self> {
        Self::made_in(dir).or_else(|_| Self::temporary())
    }

    fn temporary() -> std::io::Result<Self> {
        Self::made_in(&std::env::temp_dir())
    }

    fn made_in(base: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let mut number = 0_u32;
        loop {
            let path = base.join(format!("tidegate-{}-{number}", std::process::id()));
            // Nobody else may have made it, or look into it.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1_000 => number += 1,
                result => return result.map(|()| Self { path, held: Held::Temporary }),
            }
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        match &self.held {
            // Closing it is not enough: a program that is being started has the file too, for a moment.
            Held::InClone(lock) => lock.unlock().ok(),
            // What cannot be removed is left to whoever cleans the machine's temporary files.
            Held::Temporary => std::fs::remove_dir_all(&self.path).ok(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_at_the_same_time_have_caches_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let first = Cache::of(Some(dir.path())).unwrap();
        let second = Cache::of(Some(dir.path())).unwrap();
        assert!(first.path.starts_with(dir.path()) && second.path.starts_with(dir.path()));
        assert_ne!(first.path, second.path);
        let path = first.path.clone();
        let Held::InClone(lock) = &first.held else { panic!("it is in the clone") };
        // As a program has it that is being started meanwhile.
        let elsewhere = lock.try_clone().unwrap();
        drop(first);
        assert_eq!(Cache::of(Some(dir.path())).unwrap().path, path);
        drop(elsewhere);
        let temporary = Cache::of(None).unwrap();
        let path = temporary.path.clone();
        assert!(path.is_dir());
        drop(temporary);
        assert!(!path.exists());
        assert!(Cache::below(dir.path()).unwrap().path.starts_with(dir.path()));
        assert!(Cache::below(&dir.path().join("none")).unwrap().path.starts_with(std::env::temp_dir()));
    }
}
