//! Who signed what: SSH keys and signatures as values, in the form that Git and `ssh-keygen` use (SSHSIG, namespace `git`), and
//! signatures of people by OpenPGP. And the key by which a GitHub App says who it is.
//!
//! Nothing here reads a file or a repository, and no program is started: what signs and verifies is the crypto library that
//! TLS uses too. A key that signs has no `Debug` and never leaves the process.
//!
//! Called by `manifest` (keys that an installation names), `git`, `forge`, `reconcile` and `cli`.

mod app;
mod key;
pub mod openpgp;
mod secret;
mod signature;
mod signers;
mod wire;

pub use app::{AppKey, BadAppKey};
pub use key::{BadKey, PublicKey};
pub use secret::{BadSecret, SigningKey};
pub use signature::{SignedBy, signed_by};
pub use signers::{BadSigners, Signers};

#[cfg(test)]
#[path = "../../../../tests/support/github_app.rs"]
pub(crate) mod testing;
