//! Short words for what is asked of a repository's view.

use std::collections::BTreeMap;
use std::path::Path;
use tidegate::git::{CommitDraft, Edit, Person, RefName, RemoteConfig, Store};
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::ids::CommitId;

pub(crate) async fn sync(store: &Store) -> BTreeMap<RefName, CommitId> {
    let tips = store.ls_refs(&["refs/heads/"]).await.unwrap();
    store.fetch(&tips).await.unwrap();
    tips
}

pub(crate) fn open(cache: &Path, config: RemoteConfig) -> Store {
    Store::open(cache, config).unwrap()
}

pub(crate) fn branch(name: &str) -> RefName {
    RefName::branch(name).unwrap()
}

pub(crate) fn id(text: impl AsRef<str>) -> CommitId {
    text.as_ref().parse().unwrap()
}

pub(crate) fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

pub(crate) fn write(text: &str) -> Edit {
    Edit::Write(text.as_bytes().into())
}

pub(crate) fn draft(parent: Option<&CommitId>, edits: &[(&str, Edit)]) -> CommitDraft {
    CommitDraft {
        parent: parent.cloned(),
        edits: edits.iter().map(|(at, edit)| (path(at), edit.clone())).collect(),
        subject: "shop/podinfo: testers → tenth (weight 10)".to_owned(),
        body: "Tidegate-Rollout: shop/podinfo".to_owned(),
        author: Person { name: "tidegate".to_owned(), email: "tidegate@example.com".to_owned() },
        time: tidegate::record::state::Time::from_timestamp(1_767_225_600, 0).unwrap(),
    }
}
