//! The driver that comes along: a directory of files, exchanged as a whole.
//!
//! What was there before the first `try` is kept beside it for good. A directory survives a reboot: what was tried and not committed is taken
//! back by the agent, which restores before anything else.

use crate::content::ContentFiles;
use crate::driver::DriverOperation;
use crate::store::{read_files, remove, sync, write, write_files};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use tidegate_controller::manifest::hex::hex;

/// A directory of files, and its two neighbours.
struct Place {
    /// What is in force.
    dir: PathBuf,
    /// What was there before the first `try`.
    original: PathBuf,
    /// What is being made, or was exchanged.
    beside: PathBuf,
    parent: PathBuf,
}

/// Does an operation, and returns what it prints.
///
/// # Errors
/// When it cannot be done; what is in force is whole all the same.
pub fn drive(dir: &Path, operation: DriverOperation, content: Option<&Path>) -> io::Result<String> {
    let place = Place::of(dir)?;
    let given = || content.ok_or_else(|| io::Error::other("no content is named"));
    match operation {
        DriverOperation::Check => {
            place.in_force()?;
            Ok(listed(&read_files(given()?)?))
        }
        DriverOperation::Try => {
            let files = read_files(given()?)?;
            place.keep_original()?;
            place.put(|beside| write_files(beside, &files, 0o644))?;
            Ok(String::new())
        }
        DriverOperation::Commit => sync(&place.parent).map(|()| String::new()),
        DriverOperation::Restore => {
            match content {
                Some(content) => {
                    let files = read_files(content)?;
                    place.put(|beside| write_files(beside, &files, 0o644))?;
                }
                None if place.original.exists() => place.put(|beside| copy(&place.original, beside))?,
                // Nothing was ever tried.
                None => {}
            }
            Ok(String::new())
        }
        DriverOperation::Read => Ok(listed(&place.in_force()?)),
    }
}

/// The files with their digests, a line each.
fn listed(files: &ContentFiles) -> String {
    files.iter().map(|(name, bytes)| format!("{}  {name}\n", hex(&Sha256::digest(bytes)))).collect()
}

impl Place {
    fn of(dir: &Path) -> io::Result<Self> {
        let parts = dir.parent().filter(|parent| dir.is_absolute() && parent.parent().is_some()).zip(dir.file_name());
        let (parent, name) = parts.ok_or_else(|| {
            io::Error::other(format!(
                "{} is no directory that could be exchanged: name one as /etc/fabric/files",
                dir.display()
            ))
        })?;
        let near = |what: &str| parent.join(format!(".{}.tidegate-{what}", name.display()));
        Ok(Self { dir: dir.to_owned(), original: near("original"), beside: near("beside"), parent: parent.to_owned() })
    }

    /// What is there now; where there is no directory, that is nothing.
    fn in_force(&self) -> io::Result<ContentFiles> {
        match read_files(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(ContentFiles::new()),
            files => files,
        }
    }

    fn keep_original(&self) -> io::Result<()> {
        if self.original.exists() {
            return Ok(());
        }
        remove(&self.beside)?;
        if self.dir.exists() {
            copy(&self.dir, &self.beside)?;
        } else {
            write_files(&self.beside, &ContentFiles::new(), 0o644)?;
        }
        fs::rename(&self.beside, &self.original)?;
        sync(&self.parent)
    }

    /// Puts files into force: in one moment all old ones are there, in the next all new ones.
    fn put(&self, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        remove(&self.beside)?;
        make(&self.beside)?;
        match renameat_with(CWD, &self.beside, CWD, &self.dir, RenameFlags::EXCHANGE) {
            Err(error) if error.kind() == ErrorKind::NotFound => fs::rename(&self.beside, &self.dir)?,
            exchanged => exchanged?,
        }
        sync(&self.parent)?;
        remove(&self.beside)
    }
}

/// Copies a directory of files, whose they are and who may read them too.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    write_files(to, &ContentFiles::new(), 0o600)?;
    let like = |from: &Path, to: &Path| {
        let (wanted, made) = (fs::metadata(from)?, fs::metadata(to)?);
        if (wanted.uid(), wanted.gid()) != (made.uid(), made.gid()) {
            chown(to, Some(wanted.uid()), Some(wanted.gid()))?;
        }
        fs::set_permissions(to, wanted.permissions())?;
        sync(to)
    };
    for (name, bytes) in read_files(from)? {
        let copied = to.join(&name);
        write(&copied, &bytes, 0o600)?;
        like(&from.join(name), &copied)?;
    }
    like(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_is_exchanged_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        let (dir, content) = (home.path().join("fabric/files"), home.path().join("content"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("own"), "by hand").unwrap();
        fs::set_permissions(dir.join("own"), fs::Permissions::from_mode(0o640)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let files = |text: &str| ContentFiles::from([("a".to_owned(), text.as_bytes().to_vec())]);
        let done = |operation, content: Option<&Path>| drive(&dir, operation, content).unwrap();
        let own = done(DriverOperation::Read, None);
        assert!(own.ends_with("  own\n"));
        // Before anything was tried there is nothing to go back to, and nothing is done.
        done(DriverOperation::Restore, None);
        assert_eq!(done(DriverOperation::Read, None), own);

        write_files(&content, &files("one"), 0o600).unwrap();
        let promised = done(DriverOperation::Check, Some(&content));
        assert_eq!(done(DriverOperation::Read, None), own);
        done(DriverOperation::Try, Some(&content));
        done(DriverOperation::Commit, Some(&content));
        assert_eq!(
            (done(DriverOperation::Read, None), fs::read(dir.join("a")).unwrap()),
            (promised.clone(), b"one".to_vec())
        );
        // What was there before is not for more eyes than it was.
        let original = home.path().join("fabric/.files.tidegate-original/own");
        assert_eq!([mode(&dir.join("a")), mode(&dir), mode(&original)], [0o644, 0o755, 0o640]);
        // Killed before the exchange: what lies beside is made anew.
        fs::create_dir(home.path().join("fabric/.files.tidegate-beside")).unwrap();
        let other = home.path().join("other");
        write_files(&other, &files("two"), 0o600).unwrap();
        done(DriverOperation::Try, Some(&other));
        assert_ne!(done(DriverOperation::Read, None), promised);
        done(DriverOperation::Restore, Some(&content));
        assert_eq!(done(DriverOperation::Read, None), promised);
        done(DriverOperation::Restore, None);
        assert_eq!((done(DriverOperation::Read, None), fs::read(dir.join("own")).unwrap()), (own, b"by hand".to_vec()));
        assert_eq!(mode(&dir.join("own")), 0o640);
    }

    #[test]
    fn what_cannot_be_exchanged_is_told_by_check() {
        let home = tempfile::tempdir().unwrap();
        let (dir, content) = (home.path().join("a/b"), home.path().join("content"));
        fs::create_dir_all(dir.join("deeper")).unwrap();
        write_files(&content, &ContentFiles::new(), 0o600).unwrap();
        let why = drive(&dir, DriverOperation::Check, Some(&content)).unwrap_err().to_string();
        assert!(why.ends_with("/a/b holds deeper, which is no file"), "{why}");
        for odd in ["/", "/etc", "relative/dir"] {
            let why = drive(Path::new(odd), DriverOperation::Read, None).unwrap_err().to_string();
            assert_eq!(why, format!("{odd} is no directory that could be exchanged: name one as /etc/fabric/files"));
        }
        fs::remove_dir(dir.join("deeper")).unwrap();
        let large = fs::File::create(dir.join("large")).unwrap();
        large.set_len((16 << 20) + 1).unwrap();
        let why = drive(&dir, DriverOperation::Check, Some(&content)).unwrap_err().to_string();
        assert!(why.ends_with("/a/b holds more than 16777216 bytes"), "{why}");
        // One that is not there yet is none of files.
        let fresh = home.path().join("c/d");
        fs::create_dir(home.path().join("c")).unwrap();
        assert_eq!(drive(&fresh, DriverOperation::Read, None).unwrap(), "");
        drive(&fresh, DriverOperation::Try, Some(&content)).unwrap();
        drive(&fresh, DriverOperation::Restore, None).unwrap();
        assert_eq!(drive(&fresh, DriverOperation::Read, None).unwrap(), "");
    }
}
