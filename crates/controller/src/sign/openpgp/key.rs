//! Keys of OpenPGP, version 4, and what they verify.

use super::packet::{big_endian, integer};
use crate::sign::key::padded;
use crate::sign::wire::Reader;
use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};
use chrono::{DateTime, Utc};
use std::fmt;

/// A key, or a subkey.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// As a packet has it.
    body: Vec<u8>,
    pub(super) created: DateTime<Utc>,
    pub(super) material: Material,
}

/// What it verifies with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Ecdsa {
        curve: Curve,
        point: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// Of an algorithm that nothing is verified with here: encryption, DSA, other curves.
    Unread(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

/// What is signed is a hash. Those that somebody may have made a second content for are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// By its number, else the name of what it is instead.
    pub(super) fn of(number: u8) -> Result<Self, &'static str> {
        match number {
            8 => Ok(Self::Sha256),
            9 => Ok(Self::Sha384),
            10 => Ok(Self::Sha512),
            1 => Err("MD5"),
            2 => Err("SHA-1"),
            3 => Err("RIPEMD-160"),
            11 => Err("SHA-224"),
            _ => Err("a hash that is not read"),
        }
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }
}

/// What people know a key by. Keys are found by it, and told; what is verified with is the listed key itself, so that a second key of the
/// same SHA-1 is of no use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 20]);

impl Fingerprint {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The short one, which other keys may have too.
    pub(super) fn id(&self) -> &[u8] {
        &self.0[12..]
    }

    #[cfg(test)]
    pub(super) fn octets(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02X}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A key is far smaller; RSA of 8192 bits takes 1 KiB.
const LONGEST: usize = 8 << 10;

impl Key {
    /// Reads the packet of a key or a subkey.
    ///
    /// # Errors
    /// When it is damaged, or of another version.
    pub(super) fn read(body: &[u8]) -> Result<Self, &'static str> {
        if body.len() > LONGEST {
            return Err("a key of more than 8 KiB");
        }
        match body.first() {
            Some(4) => Self::of(body).ok_or("a key that is damaged"),
            _ => Err("a key of another version than 4, which is the one that is read"),
        }
    }

    fn of(body: &[u8]) -> Option<Self> {
        let mut read = Reader(body.get(1..)?);
        let created = time(big_endian(&mut read, 4)?);
        let material = match *read.take(1)?.first()? {
            1 | 3 => {
                let modulus = integer(&mut read)?.to_vec();
                Material::Rsa { modulus, exponent: integer(&mut read)?.to_vec() }
            }
            number @ (19 | 22) => {
                let length = big_endian(&mut read, 1)?;
                let (curve, point) = (read.take(usize::try_from(length).ok()?)?, integer(&mut read)?);
                curve_key(number, curve, point)
            }
            number => return Some(Self { body: body.to_vec(), created, material: Material::Unread(number) }),
        };
        read.is_done().then(|| Self { body: body.to_vec(), created, material })
    }

    /// As signatures over it and its fingerprint have it.
    pub(super) fn framed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).expect("below 64 KiB because longer ones are not read");
        [&[0x99], &length.to_be_bytes()[..], &self.body].concat()
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.framed());
        Fingerprint::of(sum.as_ref()).expect("20 octets because it is SHA-1")
    }

    /// Whether the numbers of a signature, of that algorithm, are one of this key under `data`.
    pub(super) fn verifies(&self, algorithm: u8, hash: Hash, data: &[u8], numbers: &[u8]) -> Option<()> {
        let mut read = Reader(numbers);
        let first = integer(&mut read)?;
        match &self.material {
            Material::Rsa { modulus, exponent } if matches!(algorithm, 1 | 3) && read.is_done() => {
                let rule = match hash {
                    Hash::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                    Hash::Sha384 => &RSA_PKCS1_2048_8192_SHA384,
                    Hash::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(rule, data, &padded(first, modulus.len())?).ok()
            }
            Material::Ecdsa { curve, point } if algorithm == 19 => {
                let pair = asn1([first, integer(&mut read)?]);
                read.is_done().then_some(())?;
                UnparsedPublicKey::new(curve.rule(hash), point).verify(data, &pair).ok()
            }
            Material::Ed25519(key) if algorithm == 22 => {
                let pair = [padded(first, 32)?, padded(integer(&mut read)?, 32)?].concat();
                read.is_done().then_some(())?;
                let sum = digest(hash.algorithm(), data);
                UnparsedPublicKey::new(&ED25519, key).verify(sum.as_ref(), &pair).ok()
            }
            Material::Rsa { .. } | Material::Ecdsa { .. } | Material::Ed25519(_) | Material::Unread(_) => None,
        }
    }
}

/// The key on a curve, for ECDSA (19) or EdDSA (22).
fn curve_key(number: u8, curve: &[u8], point: &[u8]) -> Material {
    let curve = match (number, curve, point) {
        (19, [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], _) => Curve::P256,
        (19, [0x2b, 0x81, 4, 0, 0x22], _) => Curve::P384,
        (19, [0x2b, 0x81, 4, 0, 0x23], _) => Curve::P521,
        (22, [0x2b, 6, 1, 4, 1, 0xda, 0x47, 0xf, 1], [0x40, key @ ..]) => return Material::Ed25519(key.to_vec()),
        _ => return Material::Unread(number),
    };
    Material::Ecdsa { curve, point: point.to_vec() }
}

impl Curve {
    fn rule(self, hash: Hash) -> &'static EcdsaVerificationAlgorithm {
        match (self, hash) {
            (Self::P256, Hash::Sha256) => &ECDSA_P256_SHA256_ASN1,
            (Self::P256, Hash::Sha384) => &ECDSA_P256_SHA384_ASN1,
            (Self::P256, Hash::Sha512) => &ECDSA_P256_SHA512_ASN1,
            (Self::P384, Hash::Sha256) => &ECDSA_P384_SHA256_ASN1,
            (Self::P384, Hash::Sha384) => &ECDSA_P384_SHA384_ASN1,
            (Self::P384, Hash::Sha512) => &ECDSA_P384_SHA512_ASN1,
            (Self::P521, Hash::Sha256) => &ECDSA_P521_SHA256_ASN1,
            (Self::P521, Hash::Sha384) => &ECDSA_P521_SHA384_ASN1,
            (Self::P521, Hash::Sha512) => &ECDSA_P521_SHA512_ASN1,
        }
    }
}

/// Two numbers as the crypto library takes a signature of ECDSA: for each of its hashes, which the form of fixed width is not.
fn asn1(numbers: [&[u8]; 2]) -> Vec<u8> {
    fn put(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
        let length = u16::try_from(body.len()).expect("below 64 KiB because the lengths of the numbers are 16 bits");
        let [high, low] = length.to_be_bytes();
        match length {
            ..0x80 => out.extend([tag, low]),
            0x80..0x100 => out.extend([tag, 0x81, low]),
            _ => out.extend([tag, 0x82, high, low]),
        }
        out.extend(body);
    }
    let (mut pair, mut out) = (Vec::new(), Vec::new());
    for number in numbers {
        let signless = number.first().is_some_and(|first| *first < 0x80);
        let sign: &[u8] = if signless { &[] } else { &[0] };
        put(&mut pair, 2, &[sign, number].concat());
    }
    put(&mut out, 0x30, &pair);
    out
}

/// Seconds since 1970, in 32 bits.
pub(super) fn time(seconds: u64) -> DateTime<Utc> {
    let seconds = i64::try_from(seconds).expect("below 2³² because it has 32 bits");
    DateTime::from_timestamp(seconds, 0).expect("a time that the calendar has because it is before 2107")
}
