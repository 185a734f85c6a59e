//! The room `git` against the real thing: `git http-backend` over HTTP, OpenSSH, and repositories on this machine.

mod faults;
mod makers;
mod packs;
mod push;
mod read;
mod ssh;
mod trees;

use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tidegate::git::{Draft, Edit, Person, RefName, RemoteConfig, Store};
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::ids::CommitId;

/// A server with one repository, and our view of it.
struct Bed {
    server: GitServer,
    origin: Origin,
    store: Store,
}

impl Bed {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut RemoteConfig)) -> Self {
        let server = GitServer::start().await;
        let origin = server.init("fleet");
        origin.commit("main", &[("teams/shop/rollout.yaml", Some(b"a: 1\n"))], "first");
        let mut config = config(&server.url("fleet"));
        change(&mut config);
        let store = open(&server.scratch().join("cache"), config);
        Self { server, origin, store }
    }

    /// Looks the tips of all branches up and fetches them.
    async fn sync(&self) -> BTreeMap<RefName, CommitId> {
        sync(&self.store).await
    }

    /// Another view of the same repository, with a cache of its own.
    fn other(&self, name: &str) -> Store {
        open(&self.server.scratch().join(name), config(&self.server.url("fleet")))
    }
}

async fn sync(store: &Store) -> BTreeMap<RefName, CommitId> {
    let tips = store.ls_refs(&["refs/heads/"]).await.unwrap();
    store.fetch(&tips).await.unwrap();
    tips
}

/// Short time limits, as on one machine all answers come at once.
fn config(url: &str) -> RemoteConfig {
    let mut config = RemoteConfig::new(url.parse().unwrap());
    config.shallow = Some(branch("main"));
    config.timeouts.connect = Duration::from_secs(2);
    config.timeouts.read = Duration::from_secs(20);
    config.timeouts.total = Duration::from_secs(40);
    config
}

fn open(cache: &Path, config: RemoteConfig) -> Store {
    Store::open(cache, config).unwrap()
}

fn branch(name: &str) -> RefName {
    RefName::branch(name).unwrap()
}

fn id(text: impl AsRef<str>) -> CommitId {
    text.as_ref().parse().unwrap()
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn write(text: &str) -> Edit {
    Edit::Write(text.as_bytes().into())
}

fn draft(parent: Option<&CommitId>, edits: &[(&str, Edit)]) -> Draft {
    Draft {
        parent: parent.cloned(),
        edits: edits.iter().map(|(at, edit)| (path(at), edit.clone())).collect(),
        subject: "shop/podinfo: testers → tenth (weight 10)".to_owned(),
        body: "Tidegate-Rollout: shop/podinfo".to_owned(),
        author: Person { name: "tidegate".to_owned(), email: "tidegate@example.com".to_owned() },
        time: chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap(),
    }
}
