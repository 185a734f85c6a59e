//! The key that signs: an ed25519 key in the form that `ssh-keygen -t ed25519 -N ''` writes.

use super::PublicKey;
use super::wire::{Reader, unarmoured};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use secrecy::zeroize::Zeroizing;

/// A key that signs. It has no `Debug`, so that nothing can print it.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// A file that holds no key that can be used. The file's text is never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected what `ssh-keygen -t ed25519 -N '' -f FILE` writes")]
pub struct BadSecret(&'static str);

/// What stands behind the cipher in a file with one key: the key's kind, and what is to be read of it.
fn private(mut read: Reader<'_>) -> Option<(&str, Reader<'_>)> {
    let (_kdf, _options) = (read.string()?, read.string()?);
    (read.number()? == 1).then_some(())?;
    let _public = read.string()?;
    let mut read = Reader(read.string()?);
    (read.number()? == read.number()?).then_some(())?;
    Some((read.text()?, read))
}

impl SigningKey {
    /// Reads a key.
    ///
    /// # Errors
    /// When it is none, or of another kind, or has a passphrase.
    pub fn parse(text: &[u8]) -> Result<Self, BadSecret> {
        let bytes = unarmoured(text, "OPENSSH PRIVATE KEY").ok_or(BadSecret("this is no private key of OpenSSH"))?;
        let bytes = Zeroizing::new(bytes);
        let damaged = BadSecret("the private key is damaged");
        let body = bytes.strip_prefix(b"openssh-key-v1\0").ok_or(damaged)?;
        let mut read = Reader(body);
        let cipher = read.text().ok_or(damaged)?;
        if cipher != "none" {
            return Err(BadSecret("the private key has a passphrase, and there is nobody to type it"));
        }
        let (kind, mut read) = private(read).ok_or(damaged)?;
        if kind != "ssh-ed25519" {
            return Err(BadSecret("the private key is of another kind than ed25519"));
        }
        let (public, secret) = read.string().zip(read.string()).ok_or(damaged)?;
        let seed = secret.strip_suffix(public).ok_or(damaged)?;
        let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| damaged)?;
        let public = PublicKey::ed25519(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    /// What its signatures are verified with.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn raw(&self, data: &[u8]) -> Vec<u8> {
        self.pair.sign(data).as_ref().to_vec()
    }
}
