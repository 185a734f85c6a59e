//! The one place that touches Git: one remote repository, its bare cache, and compare-and-swap pushes to it.
//!
//! Trees are read as values, straight from the object database; there is no worktree, no index, no hook, no filter, and
//! nothing that a repository contains is ever executed or followed. A push names the tip that it expects and is refused
//! here unless the server's advertisement says exactly that; nothing is ever forced. The cache is disposable: whatever is
//! in it can be fetched again, and a broken one is made anew. One program is ever started, OpenSSH's client, and only for a URL
//! that begins with `ssh://`.
//!
//! Called by `reconcile` and `cli`. Every call that may block runs on tokio's blocking threads with its own handle and
//! ends within [`Timeouts::total`]; none is retried here, the next tick is the retry.

mod allowed;
mod authors;
mod commit;
mod compact;
mod credentials;
mod declared;
mod fault_injection;
mod history;
mod http;
mod keygen;
mod local;
mod look;
mod merge;
mod offer;
mod pack;
mod pack_limiter;
mod past;
mod push;
mod ref_list;
mod refs;
mod remote;
mod repo;
mod signed;
mod signed_payload;
mod ssh;
mod transport;
mod tree;
mod working_copy;

pub use allowed::Signatory;
pub use authors::{Authorship, Changed};
pub use commit::{CommitDraft, Edit, Person};
pub use declared::{Declared, Known, Sought};
pub use fault_injection::{FaultInjection, RemoteCall, RemoteFault};
pub use history::{Ancestry, Brought, Logged};
pub use keygen::Keygen;
pub use look::{DirectoryIndex, Leaf};
pub use merge::{Merge, merge_files};
pub use offer::{MergeResult, Proposed};
pub use push::Pushed;
pub use refs::RefName;
pub use remote::{
    InvalidUrl, Lender, Lent, Login, Refusal, RemoteConfig, RemoteLimits, RemoteUrl, SshIdentity, Timeouts,
};
pub use repo::{Below, LookedUp, Store, create_bare};
pub use signed::{CommitSigning, Keys, Sealed, SignatureVerdict};
pub use working_copy::WorkingCopy;

use crate::manifest::ids::CommitId;
use crate::record::text::plain;

/// Why a call to Git failed. None of the texts ever contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A setting is wrong; trying again does not help.
    #[error("the repository's settings are wrong: {0}")]
    Config(String),
    /// The server cannot be reached, is overloaded, too slow, or cut its answer off. Try again later. After a push was
    /// sent the outcome is unknown: look at the refs again.
    #[error("{doing}: the Git server is away: {why}")]
    Away {
        /// What was being done, with the URL.
        doing: String,
        /// What happened.
        why: String,
    },
    /// The server refused the credentials, or wants some.
    #[error("{doing}: the Git server refuses access ({said}); {hint}")]
    Denied {
        /// What was being done, with the URL.
        doing: String,
        /// The HTTP status, or the words of the server.
        said: String,
        /// Which credentials were used and where to mend them.
        hint: String,
    },
    /// A server behind SSH is not known to be the one that is meant. Nothing was sent to it.
    #[error("{doing}: {why}")]
    HostKey {
        /// What was being done, with the URL.
        doing: String,
        /// Which key is missing or another one, and how to mend it.
        why: String,
    },
    /// A repository, commit, object or path does not exist.
    #[error("{0} does not exist")]
    Missing(String),
    /// The server answers, but not as a Git server should.
    #[error("{doing}: unexpected answer: {why}")]
    Protocol {
        /// What was being done, with the URL.
        doing: String,
        /// What was found and what was expected.
        why: String,
    },
    /// Objects that were received or cached are damaged. The next fetch makes the cache anew.
    #[error("{doing}: damaged objects: {why}")]
    Corrupt {
        /// What was being done.
        doing: String,
        /// What is wrong with them.
        why: String,
    },
    /// A whole object that is not what Git calls well-formed, so its author made it so.
    #[error("{doing}: malformed object: {why}")]
    Malformed {
        /// What was being done.
        doing: String,
        /// What is wrong with it.
        why: String,
    },
    /// More than the installation allows; nothing of it was used.
    #[error("{what} exceeds the limit of {limit}")]
    Limit {
        /// What is too large.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// A tree that Git itself would refuse to check out, or edits that contradict each other.
    #[error("the tree is refused at {path:?}: {why}")]
    BadTree {
        /// The path from the root, escaped.
        path: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// The cache directory cannot be used: permissions, space.
    #[error("{doing}: the cache on disk failed: {source}")]
    Cache {
        /// What was being done.
        doing: String,
        /// What libgit2 or the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl GitError {
    /// Whether the same call may succeed later with nothing changed.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// Whether it is what somebody has pushed that is wrong: it stays so, and is only its author's to mend.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        match self {
            Self::BadTree { .. } | Self::Limit { .. } | Self::Malformed { .. } => true,
            Self::Config(_)
            | Self::Away { .. }
            | Self::Denied { .. }
            | Self::HostKey { .. }
            | Self::Missing(_)
            | Self::Protocol { .. }
            | Self::Corrupt { .. }
            | Self::Cache { .. } => false,
        }
    }

    /// Sorts a failure of libgit2 on what is in the cache.
    fn local(doing: &str, error: git2::Error) -> Self {
        use git2::ErrorClass::{Invalid, Object, Odb, Sha1, Tree, Zlib};
        let (doing, why) = (doing.to_owned(), plain(error.message()));
        if matches!(error.class(), Odb | Zlib | Sha1) {
            Self::Corrupt { doing, why }
        } else if matches!(error.class(), Object | Tree | Invalid) {
            Self::Malformed { doing, why }
        } else {
            Self::Cache { doing, source: Box::new(error) }
        }
    }

    /// The failure to find a commit.
    fn commit(id: &CommitId, error: git2::Error) -> Self {
        if error.code() == git2::ErrorCode::NotFound {
            Self::Missing(format!("commit {id} in the cache (was it fetched?)"))
        } else {
            Self::local(&format!("read commit {id}"), error)
        }
    }
}

/// The object id of a commit or a blob.
fn oid(id: &str) -> git2::Oid {
    git2::Oid::from_str(id).expect("40 hex digits, because CommitId and BlobId hold nothing else")
}
