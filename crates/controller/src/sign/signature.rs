//! Signatures as Git keeps them: armoured SSHSIG (OpenSSH's PROTOCOL.sshsig), namespace `git`.

use super::wire::{Reader, armoured, strings, unarmoured};
use super::{PublicKey, SigningKey};
use aws_lc_rs::digest::{SHA256, SHA512, digest};

const MAGIC: &[u8] = b"SSHSIG";
const NAMESPACE: &[u8] = b"git";
const KIND: &str = "SSH SIGNATURE";

/// Whose signature a content carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedBy {
    /// This key has signed exactly this content.
    By(PublicKey),
    /// Nobody's.
    None,
    /// One that proves nothing, and why.
    Void(&'static str),
}

/// Judges what `content` carries.
#[must_use]
pub fn signed_by(signature: Option<&[u8]>, content: &[u8]) -> SignedBy {
    let Some(signature) = signature else { return SignedBy::None };
    if signature.starts_with(b"-----BEGIN PGP") {
        return SignedBy::Void("an OpenPGP signature, which is not read");
    }
    let Some(bytes) = unarmoured(signature, KIND) else { return SignedBy::Void("a signature that cannot be read") };
    let Some((key, data, signature)) = opened(&bytes, content) else {
        return SignedBy::Void("a signature that is none of SSH for Git");
    };
    let Some(key) = PublicKey::of_blob(key) else { return SignedBy::Void("a signature by a key of an unknown kind") };
    if key.verifies(signature, &data) { SignedBy::By(key) } else { SignedBy::Void("a signature of something else") }
}

/// The key, what it has signed if that is `content`, and the signature.
fn opened<'a>(bytes: &'a [u8], content: &[u8]) -> Option<(&'a [u8], Vec<u8>, &'a [u8])> {
    let mut read = Reader(bytes.strip_prefix(MAGIC)?);
    (read.number()? == 1).then_some(())?;
    let (key, namespace, reserved) = (read.string()?, read.string()?, read.string()?);
    let (hash, signature) = (read.text()?, read.string()?);
    (namespace == NAMESPACE && reserved.is_empty() && read.is_done()).then_some(())?;
    Some((key, signed(hash, content)?, signature))
}

/// What is signed for a content: where it counts, and its hash.
fn signed(hash: &str, content: &[u8]) -> Option<Vec<u8>> {
    let sum = match hash {
        "sha512" => digest(&SHA512, content),
        "sha256" => digest(&SHA256, content),
        _ => return None,
    };
    Some([MAGIC, &strings(&[NAMESPACE, b"", hash.as_bytes(), sum.as_ref()])].concat())
}

impl SigningKey {
    /// Signs a content; the same one always gets the same signature.
    #[must_use]
    pub fn sign(&self, content: &[u8]) -> String {
        let data = signed("sha512", content).expect("known because it is a constant");
        let signature = strings(&[b"ssh-ed25519", &self.raw(&data)]);
        let rest = strings(&[self.public().blob(), NAMESPACE, b"", b"sha512", &signature]);
        armoured(&[MAGIC, &1_u32.to_be_bytes(), &rest].concat(), KIND)
    }
}

#[cfg(test)]
mod tests;
