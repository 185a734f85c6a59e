//! Many objects at once lie in one pack, a few each by itself; Git reads both.

use super::{Bed, branch, draft, open, sync, write};
use crate::support::origin::Origin;
use std::path::Path;
use tidegate::git::{Edit, Pushed, RemoteConfig, RemoteUrl};

/// Packs, and whether there are loose objects.
fn lies(repository: &Path) -> (usize, bool) {
    let names = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(repository.join("objects").join(directory)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    (names("pack").iter().filter(|name| name.ends_with(".pack")).count(), names("").iter().any(|name| name.len() == 2))
}

/// So many files, in some directories.
fn files(count: usize, text: &str) -> Vec<(String, Edit)> {
    (0..count).map(|n| (format!("rollouts/n{}/r{n}/state.yaml", n % 7), write(&format!("{text} {n}\n")))).collect()
}

fn named(files: &[(String, Edit)]) -> Vec<(&str, Edit)> {
    files.iter().map(|(name, edit)| (name.as_str(), edit.clone())).collect()
}

#[tokio::test]
async fn a_commit_of_many_files_is_a_pack_and_a_later_small_one_is_none() {
    let bed = Bed::new().await;
    let state = branch("tidegate/prod/state");
    let cache = bed.server.scratch().join("cache/repository.git");
    let first = bed.store.commit(draft(None, &named(&files(200, "seq: 1")))).await.unwrap();
    assert_eq!(lies(&cache), (1, false));
    // What is there already is not written once more, and is found in the pack.
    let again = bed.store.commit(draft(None, &named(&files(200, "seq: 1")))).await.unwrap();
    assert_eq!((&again, lies(&cache)), (&first, (1, false)));
    let second =
        bed.store.commit(draft(Some(&first), &[("rollouts/n0/r0/state.yaml", write("seq: 2\n"))])).await.unwrap();
    assert_eq!(lies(&cache), (1, true));

    let done = bed.store.push(&state, None, &second, None).await.unwrap();
    assert!(matches!(done, Pushed::Done { .. }), "{done:?}");
    let there = bed.origin.files(state.short());
    assert_eq!((there.len(), there["rollouts/n3/r10/state.yaml"].as_slice()), (200, b"seq: 1 10\n".as_slice()));
    assert_eq!(there["rollouts/n0/r0/state.yaml"], b"seq: 2\n");
    Origin::at(&cache).git(&["fsck", "--full", "--strict"]);
}

#[tokio::test]
async fn many_objects_of_a_repository_on_this_machine_come_as_a_pack_and_a_few_by_themselves() {
    let scratch = tempfile::tempdir().unwrap();
    let remote = scratch.path().join("fleet.git");
    let origin = Origin::init(&remote);
    origin.commit("main", &[("tidegate.yaml", Some(b"a: 1\n"))], "first");
    let local = |name: &str| {
        let directory = scratch.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        (open(&directory, RemoteConfig::new(RemoteUrl::Local(remote.clone()))), directory.join("repository.git"))
    };
    let (store, cache) = local("few");
    let tips = sync(&store).await;
    assert_eq!(lies(&cache), (0, true));
    let parent = &tips[&branch("main")];
    let many = store.commit(draft(Some(parent), &named(&files(1_200, "seq: 1")))).await.unwrap();
    let done = store.push(&branch("main"), Some(parent), &many, None).await.unwrap();
    assert!(matches!(done, Pushed::Done { .. }), "{done:?}");
    assert_eq!(lies(&remote).0, 1);
    origin.git(&["fsck", "--full", "--strict"]);

    let (store, cache) = local("many");
    assert_eq!(sync(&store).await[&branch("main")], many);
    assert_eq!(lies(&cache), (1, false));
    Origin::at(&cache).git(&["fsck", "--full", "--strict"]);
}
