//! Public keys, as `*.pub` files and lists of allowed signers hold them.

use super::wire::{Reader, put};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A key that signatures are verified with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("format" = "ssh-public-key"))]
pub struct PublicKey {
    /// As SSH sends it.
    blob: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ed25519(Vec<u8>),
    /// The same on a token that adds what it was asked for.
    Token {
        key: Vec<u8>,
        application: Vec<u8>,
    },
    Ecdsa {
        curve: Curve,
        point: Vec<u8>,
    },
    Rsa {
        exponent: Vec<u8>,
        modulus: Vec<u8>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Its name, how long a coordinate is, and what verifies.
    fn parts(self) -> (&'static str, usize, &'static dyn VerificationAlgorithm) {
        match self {
            Self::P256 => ("nistp256", 32, &ECDSA_P256_SHA256_FIXED),
            Self::P384 => ("nistp384", 48, &ECDSA_P384_SHA384_FIXED),
            Self::P521 => ("nistp521", 66, &ECDSA_P521_SHA512_FIXED),
        }
    }
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected a line as in a *.pub file, such as: ssh-ed25519 AAAAC3… name")]
pub struct BadKey(&'static str);

const ED: &str = "ssh-ed25519";
const TOKEN: &str = "sk-ssh-ed25519@openssh.com";
const RSA: &str = "ssh-rsa";

impl PublicKey {
    /// Reads a key as SSH sends it.
    pub(super) fn of_blob(blob: &[u8]) -> Option<Self> {
        let mut read = Reader(blob);
        let kind = match read.text()? {
            ED => Kind::Ed25519(read.string().filter(|key| key.len() == 32)?.to_vec()),
            TOKEN => Kind::Token {
                key: read.string().filter(|key| key.len() == 32)?.to_vec(),
                application: read.string()?.to_vec(),
            },
            RSA => Kind::Rsa { exponent: read.integer()?.to_vec(), modulus: read.integer()?.to_vec() },
            name => {
                let curve = name.strip_prefix("ecdsa-sha2-")?;
                let curve = [Curve::P256, Curve::P384, Curve::P521].into_iter().find(|c| c.parts().0 == curve)?;
                (read.text()? == curve.parts().0).then_some(())?;
                Kind::Ecdsa { curve, point: read.string()?.to_vec() }
            }
        };
        read.is_done().then(|| Self { blob: blob.to_vec(), kind })
    }

    /// The key of a pair.
    pub(super) fn ed25519(key: &[u8]) -> Self {
        let mut blob = Vec::new();
        put(&mut blob, ED.as_bytes());
        put(&mut blob, key);
        Self { blob, kind: Kind::Ed25519(key.to_vec()) }
    }

    pub(super) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// What people know it by, as `ssh-keygen -l` shows it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, &self.blob)))
    }

    /// Whether `signature`, as SSH sends it, is one of this key under `data`. SHA-1 is no signature.
    pub(super) fn verifies(&self, signature: &[u8], data: &[u8]) -> bool {
        self.check(signature, data).is_some()
    }

    fn check(&self, signature: &[u8], data: &[u8]) -> Option<()> {
        let mut read = Reader(signature);
        let (algorithm, bytes) = (read.text()?, read.string()?);
        match &self.kind {
            Kind::Ed25519(key) if algorithm == ED && read.is_done() => {
                UnparsedPublicKey::new(&ED25519, key).verify(data, bytes).ok()
            }
            Kind::Token { key, application } if algorithm == TOKEN => {
                let shown = read.take(5).filter(|_| read.is_done())?;
                let asked = [digest(&SHA256, application).as_ref(), shown, digest(&SHA256, data).as_ref()].concat();
                // The lowest bit says that somebody touched the token.
                (shown[0] & 1 == 1).then_some(())?;
                UnparsedPublicKey::new(&ED25519, key).verify(&asked, bytes).ok()
            }
            Kind::Ecdsa { curve, point } if read.is_done() => {
                let (name, width, verifier) = curve.parts();
                (algorithm.strip_prefix("ecdsa-sha2-")? == name).then_some(())?;
                let mut parts = Reader(bytes);
                let (r, s) = (parts.integer()?, parts.integer()?);
                let fixed = [padded(r, width)?, padded(s, width)?].concat();
                let key = UnparsedPublicKey::new(verifier, point);
                parts.is_done().then(|| key.verify(data, &fixed).ok())?
            }
            Kind::Rsa { exponent, modulus } if read.is_done() => {
                let rule = match algorithm {
                    "rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                    "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                    _ => return None,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(rule, data, bytes).ok()
            }
            Kind::Ed25519(_) | Kind::Token { .. } | Kind::Ecdsa { .. } | Kind::Rsa { .. } => None,
        }
    }
}

/// A number with leading zeros, so that it is so wide.
pub(super) fn padded(number: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; width.checked_sub(number.len())?];
    out.extend_from_slice(number);
    Some(out)
}

impl FromStr for PublicKey {
    type Err = BadKey;

    fn from_str(line: &str) -> Result<Self, BadKey> {
        let mut words = line.split_ascii_whitespace();
        let (Some(kind), Some(encoded)) = (words.next(), words.next()) else {
            return Err(BadKey("this is no public key of SSH"));
        };
        let blob = STANDARD.decode(encoded).map_err(|_| BadKey("what follows the kind of the key is not base64"))?;
        if Reader(&blob).text() != Some(kind) {
            return Err(BadKey("the key is not of the kind that stands before it"));
        }
        let unknown = "keys are ssh-ed25519, sk-ssh-ed25519@openssh.com, ecdsa-sha2-nistp256, -384, -521 or ssh-rsa";
        Self::of_blob(&blob).ok_or(BadKey(unknown))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = BadKey;

    fn try_from(line: String) -> Result<Self, BadKey> {
        line.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = Reader(&self.blob).text().expect("readable because it was read, or made, with its kind");
        write!(f, "{kind} {}", STANDARD.encode(&self.blob))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}
