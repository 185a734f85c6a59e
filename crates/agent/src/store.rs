//! The agent's directory on the node: what is known beyond the process, and the contents that may be needed without an API server.
//!
//! ```text
//! state.json           written beside, synced, renamed, and the directory synced (N-20)
//! content/DIGEST/      files of a content
//! lock, driver.lock    held by the agent, and by the guard of a driver
//! ```
//!
//! Every file is 0600, every directory 0700.

use crate::content::{ContentDigest, ContentFiles};
use crate::decide::NodeDisk;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most that a state may hold.
const MOST_STATE: u64 = 1 << 20;

/// The most that the files of a directory may hold together: contents are smaller, and what was there before may be larger.
const MOST_FILES: u64 = 16 << 20;

/// The directory.
#[derive(Debug)]
pub struct AgentStore {
    dir: PathBuf,
}

impl AgentStore {
    /// Opens the directory, or makes it, and reads what is known. What cannot be read is set aside: beside what is known then, what people
    /// should be told of it; empty if all is well.
    ///
    /// # Errors
    /// When the directory cannot be made, or its state neither read nor set aside.
    pub fn open(dir: &Path) -> io::Result<(Self, NodeDisk, String)> {
        private().recursive(true).create(dir.join("content"))?;
        let store = Self { dir: dir.to_owned() };
        let (mut disk, mut told) = match store.read() {
            Ok(disk) => (disk, String::new()),
            Err(why) => {
                let aside = dir.join("state.unreadable");
                fs::rename(dir.join("state.json"), &aside)?;
                (
                    NodeDisk::default(),
                    format!("the state was unreadable ({why}), and is set aside as {}", aside.display()),
                )
            }
        };
        if disk.good.as_ref().is_some_and(|good| store.content(&good.digest).is_none()) {
            disk.good = None;
            told.push_str("last-good was unreadable, and is not gone back to");
        }
        Ok((store, disk, told))
    }

    fn read(&self) -> Result<NodeDisk, String> {
        let file = match File::open(self.dir.join("state.json")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(NodeDisk::default()),
            file => file.map_err(|error| error.to_string())?,
        };
        let mut text = String::new();
        file.take(MOST_STATE).read_to_string(&mut text).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Writes what is known. Whenever it is cut short, the file is the old one or the new one.
    ///
    /// # Errors
    /// When it cannot be written: nothing has changed then.
    pub fn save(&self, disk: &NodeDisk) -> io::Result<()> {
        let (beside, path) = (self.dir.join("state.json.new"), self.dir.join("state.json"));
        write(&beside, &serde_json::to_vec_pretty(disk)?, 0o600)?;
        fs::rename(beside, path)?;
        sync(&self.dir)
    }

    /// The directory of a content, if all of it is there.
    #[must_use]
    pub fn content(&self, digest: &ContentDigest) -> Option<PathBuf> {
        let dir = self.dir.join("content").join(digest.as_str());
        let files = read_files(&dir).ok()?;
        (ContentDigest::of(&files) == *digest).then_some(dir)
    }

    /// Has these files on the disk, as the content of that digest.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn keep(&self, digest: &ContentDigest, files: &ContentFiles) -> io::Result<()> {
        let contents = self.dir.join("content");
        let (beside, dir) = (contents.join("new"), contents.join(digest.as_str()));
        remove(&beside)?;
        write_files(&beside, files, 0o600)?;
        remove(&dir)?;
        fs::rename(&beside, &dir)?;
        sync(&contents)
    }

    /// Removes all contents but that one. What cannot be removed does no harm.
    pub fn tidy(&self, keep: Option<&ContentDigest>) {
        for entry in fs::read_dir(self.dir.join("content")).into_iter().flatten().flatten() {
            if keep.is_none_or(|keep| entry.file_name() != keep.as_str()) {
                remove(&entry.path()).ok();
            }
        }
    }

    /// Keeps every other agent of this node away for as long as the file is held, and waits for drivers of one that has died.
    ///
    /// # Errors
    /// When a lock cannot be had.
    pub fn lock(&self) -> io::Result<File> {
        let lock = lock_at(&self.dir.join("lock"))?;
        lock.lock()?;
        lock_at(&self.driver_lock())?.lock()?;
        Ok(lock)
    }

    /// What the guard of a driver holds.
    #[must_use]
    pub fn driver_lock(&self) -> PathBuf {
        self.dir.join("driver.lock")
    }
}

pub(crate) fn lock_at(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// The files of a directory that holds nothing else, and not too much.
pub(crate) fn read_files(dir: &Path) -> io::Result<ContentFiles> {
    let (mut files, mut size) = (ContentFiles::new(), 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| io::Error::other(format!("{} is no name", name.display())))?;
        if !entry.file_type()?.is_file() {
            return Err(io::Error::other(format!("{} holds {name}, which is no file", dir.display())));
        }
        size += entry.metadata()?.len();
        if size > MOST_FILES {
            return Err(io::Error::other(format!("{} holds more than {MOST_FILES} bytes", dir.display())));
        }
        files.insert(name, fs::read(entry.path())?);
    }
    Ok(files)
}

/// Makes a directory with these files; all of it is on the disk then.
pub(crate) fn write_files(dir: &Path, files: &ContentFiles, mode: u32) -> io::Result<()> {
    // A directory is entered by whoever may read its files.
    private().mode(if mode & 0o004 == 0 { 0o700 } else { 0o755 }).create(dir)?;
    for (name, bytes) in files {
        write(&dir.join(name), bytes, mode)?;
    }
    sync(dir)
}

pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Good;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn files() -> ContentFiles {
        ContentFiles::from([("a.conf".to_owned(), b"one".to_vec()), ("b".to_owned(), Vec::new())])
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn n_20_last_good_is_one_file_that_is_whole_or_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("agent");
        let (store, disk, told) = AgentStore::open(&home).unwrap();
        assert_eq!((disk, told.as_str()), (NodeDisk::default(), ""));
        let digest = ContentDigest::of(&files());
        store.keep(&digest, &files()).unwrap();
        let disk = NodeDisk { good: Some(Good { digest: digest.clone(), shown: "s".into() }), ..NodeDisk::default() };
        store.save(&disk).unwrap();
        assert_eq!([mode(&home), mode(&home.join("state.json"))], [0o700, 0o600]);
        let content = store.content(&digest).unwrap();
        assert_eq!([mode(&content), mode(&content.join("a.conf"))], [0o700, 0o600]);
        // Started again it knows the same, also where a write was cut short.
        fs::write(home.join("state.json.new"), "{\"doing\": ").unwrap();
        fs::create_dir(home.join("content/new")).unwrap();
        let (store, again, told) = AgentStore::open(&home).unwrap();
        assert_eq!((&again, told.as_str()), (&disk, ""));
        store.keep(&digest, &files()).unwrap();
        store.tidy(Some(&digest));
        assert!(store.content(&digest).is_some());
        store.tidy(None);
        assert!(store.content(&digest).is_none());
    }

    #[test]
    fn n_20_what_is_unreadable_is_set_aside_and_told() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{", "{\"doing\": 1}", "{\"of a newer version\": 1}", "\u{0}"] {
            fs::write(dir.path().join("state.json"), text).unwrap();
            let (_, disk, told) = AgentStore::open(dir.path()).unwrap();
            assert_eq!(disk, NodeDisk::default());
            assert!(told.starts_with("the state was unreadable (") && told.ends_with("state.unreadable"), "{told}");
            assert_eq!(fs::read_to_string(dir.path().join("state.unreadable")).unwrap(), text);
        }
        // The content of last-good is not what it was.
        let (store, ..) = AgentStore::open(dir.path()).unwrap();
        let digest = ContentDigest::of(&files());
        store.keep(&digest, &files()).unwrap();
        let good = Some(Good { digest: digest.clone(), shown: "s".into() });
        store.save(&NodeDisk { good, ..NodeDisk::default() }).unwrap();
        fs::write(store.content(&digest).unwrap().join("a.conf"), "two").unwrap();
        let (_, disk, told) = AgentStore::open(dir.path()).unwrap();
        assert_eq!((disk.good, told.as_str()), (None, "last-good was unreadable, and is not gone back to"));
    }

    #[test]
    fn there_is_one_agent_for_a_directory_and_one_driver_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (store, ..) = AgentStore::open(dir.path()).unwrap();
        let held = store.lock().unwrap();
        assert!(lock_at(&dir.path().join("lock")).unwrap().try_lock().is_err());
        // The guard of a driver takes the other one, which the agent has only waited for.
        lock_at(&store.driver_lock()).unwrap().try_lock().unwrap();
        drop(held);
        lock_at(&dir.path().join("lock")).unwrap().try_lock().unwrap();
    }

    #[test]
    fn n_20_a_disk_that_takes_nothing_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (store, disk, _) = AgentStore::open(dir.path()).unwrap();
        store.save(&disk).unwrap();
        // A device that is always full.
        symlink("/dev/full", dir.path().join("state.json.new")).unwrap();
        let other =
            NodeDisk { good: Some(Good { digest: ContentDigest::of(&files()), shown: String::new() }), ..disk.clone() };
        assert_eq!(store.save(&other).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(AgentStore::open(dir.path()).unwrap().1, disk);
    }
}
