//! A repository in memory: the example repository, changed as a test needs it.
#![allow(dead_code, reason = "each program asks for some of it")]

use std::path::PathBuf;
use tidegate::cli::validate;
use tidegate::manifest::diagnostic::{Code, Diagnostic};
use tidegate::manifest::files::{Entry, Files, RepoPath};
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::{Loaded, load};
use tidegate::manifest::oid;

pub(crate) const PODINFO: &str = "teams/shop/podinfo/rollout.yaml";
pub(crate) const PODINFO_SET: &str = "teams/shop/podinfo/podinfo.yaml";
pub(crate) const WORKER: &str = "teams/shop/worker/rollout.yaml";
pub(crate) const WORKER_SET: &str = "teams/shop/worker/worker.yaml";
pub(crate) const SITE: &str = "teams/blog/site/rollout.yaml";
pub(crate) const POLICY: &str = "tidegate.yaml";

pub(crate) fn source_dir() -> PathBuf {
    crate::support::root::root()
}

#[derive(Clone)]
pub(crate) struct Tree(pub(crate) Files);

impl Tree {
    pub(crate) fn example() -> Self {
        Self(validate::read(&source_dir().join("examples-repo")).unwrap())
    }

    pub(crate) fn put(&mut self, path: &str, content: impl AsRef<[u8]>) -> &mut Self {
        let bytes = content.as_ref();
        self.0.insert(path.parse().unwrap(), Entry::File { blob: oid::blob(bytes), bytes: bytes.into() });
        self
    }

    pub(crate) fn entry(&mut self, path: &str, entry: Entry) -> &mut Self {
        self.0.insert(path.parse().unwrap(), entry);
        self
    }

    pub(crate) fn remove(&mut self, path: &str) -> &mut Self {
        assert!(self.0.remove(&path.parse::<RepoPath>().unwrap()).is_some(), "{path}");
        self
    }

    pub(crate) fn text(&self, path: &str) -> String {
        match &self.0[&path.parse::<RepoPath>().unwrap()] {
            Entry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
            other @ (Entry::TooLarge { .. }
            | Entry::BadName { .. }
            | Entry::Symlink
            | Entry::Submodule
            | Entry::Unread { .. }) => {
                panic!("{path} is {other:?}")
            }
        }
    }

    /// Gives podinfo's Deployment and Service names of a version.
    pub(crate) fn name_version(&mut self, version: &str) -> &mut Self {
        for kind in ["Deployment", "Service"] {
            let head = format!("kind: {kind}\nmetadata:\n  name: podinfo");
            self.edit(PODINFO_SET, &head, &format!("{head}-{version}"));
        }
        self.edit(PODINFO_SET, "- {name: podinfo, port: 80}", &format!("- {{name: podinfo-{version}, port: 80}}"))
    }

    /// Replaces the one place of a file that reads `from`.
    pub(crate) fn edit(&mut self, path: &str, from: &str, to: &str) -> &mut Self {
        let text = self.text(path);
        assert!(text.contains(from), "{path} has no {from:?}");
        self.put(path, text.replacen(from, to, 1))
    }

    pub(crate) fn append(&mut self, path: &str, more: &str) -> &mut Self {
        let text = self.text(path) + more;
        self.put(path, text)
    }

    pub(crate) fn load(&self) -> Loaded {
        load(&self.0, &Caps::default())
    }
}

/// What is told of the podinfo's objects: warnings of unknown fields, and all errors.
pub(crate) fn told(loaded: &Loaded) -> (Vec<&Diagnostic>, Vec<&Diagnostic>) {
    let warnings = loaded.warnings.iter().filter(|warning| warning.code == Code::UnknownField);
    (warnings.collect(), loaded.errors())
}

/// The codes of a rollout's mistakes; none if it is fine.
pub(crate) fn codes(loaded: &Loaded, id: &str) -> Vec<Code> {
    match loaded.rollouts.get(&id.parse().unwrap()) {
        Some(Ok(_)) => Vec::new(),
        Some(Err(rejected)) => rejected.diagnostics.iter().map(|d| d.code).collect(),
        None => panic!("there is no rollout {id}"),
    }
}
