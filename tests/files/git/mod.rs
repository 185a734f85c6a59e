//! The room `git` against the real thing: `git http-backend` over HTTP, and repositories on this machine.

mod authors;
mod faults;
mod large;
mod packs;
mod push;
mod read;
mod trees;

use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use crate::support::store::{branch, draft, id, open, path, sync, write};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::git::{RefName, RemoteConfig, Store};
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

/// Short time limits, as on one machine all answers come at once.
fn config(url: &str) -> RemoteConfig {
    let mut config = RemoteConfig::new(url.parse().unwrap());
    config.shallow = Some(branch("main"));
    config.timeouts.connect = Duration::from_secs(2);
    config.timeouts.read = Duration::from_secs(20);
    config.timeouts.total = Duration::from_secs(40);
    config
}
