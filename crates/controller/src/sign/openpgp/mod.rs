//! Whose an OpenPGP signature is: keyrings and detached signatures, as `gpg --armor` writes them (RFC 9580, version 4), and nothing else
//! of OpenPGP: no encryption, no trust in keys that are not listed, no secret keys.
//!
//! Beside the crypto library that is there anyway this takes some hundred lines. rPGP would bring 106 crates and leave all of `certificate` to
//! us; `gpgv` "does not check for expired or revoked keys" (its manual).

mod certificate;
mod key;
mod packet;
mod signature;

pub use key::Fingerprint;
pub use signature::Issuer;

use certificate::{Certificate, Part, Times, unfit};
use chrono::{DateTime, Utc};
use key::Key;
use packet::{
    ATTRIBUTE, KEY, Packet, SAYS_NOTHING, SECRET_KEY, SECRET_SUBKEY, SIGNATURE, SUBKEY, USER, blocks, packets,
};
use signature::Signature;
use std::collections::BTreeMap;
use std::fmt;

/// Whether a signature is one of OpenPGP, or wants to be.
#[must_use]
pub fn is_meant(signature: &[u8]) -> bool {
    signature.starts_with(b"-----BEGIN PGP")
}

/// Keys whose signatures count. One that is listed twice is one key, and all that is said of it counts.
#[derive(Default)]
pub struct Keyring(BTreeMap<Key, Certificate>);

/// A text that is no keyring.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}; expected armoured public keys, as `gpg --armor --export NAME…` writes them")]
pub struct BadKeyring {
    line: usize,
    why: &'static str,
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefused {
    /// It cannot be read.
    #[error("an OpenPGP signature that cannot be read: {0}")]
    Damaged(&'static str),
    /// A message that is signed in itself, cleartext, a key: what it is over need not be the commit.
    #[error("OpenPGP armour that holds no detached signature")]
    Attached,
    /// Each may be over something else, or by somebody else.
    #[error("several OpenPGP signatures, where one is expected")]
    Several,
    /// Of another version.
    #[error("an OpenPGP signature of version {0}, where version 4 is read")]
    Version(u8),
    /// Over something else than bytes: a text with any line breaks, a key.
    #[error("an OpenPGP signature of type {0:#04x}, where one of binary data (0x00) is expected")]
    Kind(u8),
    /// Of a weak hash.
    #[error("an OpenPGP signature made with {0}, where SHA-256, SHA-384 or SHA-512 is expected")]
    Hash(&'static str),
    /// It says itself that it must not be believed by who does not know what it says.
    #[error("an OpenPGP signature with a critical subpacket that is not known ({0})")]
    Critical(u8),
    /// It does not say by which key it is.
    #[error("an OpenPGP signature that names no key")]
    Nameless,
    /// It is said to be by a key that is not listed.
    #[error("an OpenPGP signature by {0}, which is not in the keyring")]
    Unlisted(Issuer),
    /// The key has not signed this.
    #[error("an OpenPGP signature that is not {0}'s, or of something else")]
    Else(Issuer),
    /// It was said to count until then.
    #[error("an OpenPGP signature by {0} that expired on {1}")]
    Expired(Fingerprint, DateTime<Utc>),
    /// The key has signed this, but does not count.
    #[error("an OpenPGP signature by {0}, {1} {2}")]
    Key(Fingerprint, Whose, KeyFlaw),
}

/// Which key a signature does not count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The one that has signed.
    Own,
    /// The one that this belongs to.
    Primary,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "which",
            Self::Primary => "whose primary key",
        })
    }
}

/// Why a key does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFlaw {
    /// Its owner has taken it back; also what was signed before does not count, as whoever has the key can write any time into it.
    #[error("was revoked")]
    Revoked,
    /// It counts no more now, or counted no more when it signed.
    #[error("expired on {0}")]
    Expired(DateTime<Utc>),
    /// It was not there yet when it signed.
    #[error("was made later, on {0}")]
    Younger(DateTime<Utc>),
    /// Nothing that the primary key has signed says that it counts.
    #[error("has no self-signature that counts (SHA-256 or better, not expired)")]
    Unbound,
    /// Its owner does not say that it signs.
    #[error("is not for signing")]
    NotForSigning,
    /// A subkey that anybody could have put below their key.
    #[error("has not signed that it belongs to its primary key")]
    OneSided,
    /// RSA with too few bits.
    #[error("is RSA of {0} bits, where 2048 is the least")]
    Weak(usize),
    /// An algorithm that is not read.
    #[error("is of an algorithm that is not read ({0}), where RSA, ECDSA of NIST's curves or ed25519 is expected")]
    Unread(u8),
}

const PRIVATE: &str = "this is a private key, which nobody but its owner should have";

impl Keyring {
    /// Reads a keyring: any number of blocks, with comments between.
    ///
    /// # Errors
    /// At the first block that cannot be read, or holds anything but public keys.
    pub fn parse(text: &str) -> Result<Self, BadKeyring> {
        let mut keyring = Self::default();
        for block in blocks(text).map_err(|(line, why)| BadKeyring { line, why })? {
            let bad = |why| BadKeyring { line: block.line, why };
            match block.kind {
                "PGP PUBLIC KEY BLOCK" => {}
                "PGP PRIVATE KEY BLOCK" => return Err(bad(PRIVATE)),
                _ => return Err(bad("this armour holds no public keys")),
            }
            let packets = packets(&block.bytes).ok_or(bad("what is in the armour is cut off"))?;
            keyring.take(&packets).map_err(bad)?;
        }
        Ok(keyring)
    }

    fn take(&mut self, packets: &[Packet<'_>]) -> Result<(), &'static str> {
        if packets.iter().any(|packet| matches!(packet.tag, SECRET_KEY | SECRET_SUBKEY)) {
            return Err(PRIVATE);
        }
        for owned in packets.chunk_by(|_, next| next.tag != KEY) {
            let Some((Packet { tag: KEY, body }, rest)) = owned.split_first() else {
                return Err("what is in the armour begins with no key");
            };
            let certificate = self.0.entry(Key::read(body)?).or_default();
            let mut part = Part::Primary;
            certificate.hold(&part);
            for Packet { tag, body } in rest {
                match *tag {
                    SUBKEY => part = Part::Subkey(Key::read(body)?),
                    USER => part = Part::User(framed(0xb4, body)),
                    ATTRIBUTE => part = Part::User(framed(0xd1, body)),
                    SIGNATURE => certificate.keep(&part, body).ok_or("a signature that is cut off")?,
                    tag if SAYS_NOTHING.contains(&tag) => {}
                    _ => return Err("there is something else in the armour than keys, names and signatures"),
                }
                certificate.hold(&part);
            }
        }
        Ok(())
    }

    /// Whose signature of `content` this is: the fingerprint of the key, or subkey, that counts `now` and counted when it signed.
    ///
    /// # Errors
    /// When it is not one detached signature of exactly this by a key that is listed, binding, for signing, and neither expired nor revoked.
    pub fn judge(&self, signature: &[u8], content: &[u8], now: DateTime<Utc>) -> Result<Fingerprint, KeyRefused> {
        let signature = Signature::detached(signature)?;
        let issuer = signature.issuer.ok_or(KeyRefused::Nameless)?;
        let mut refused = KeyRefused::Unlisted(issuer);
        for (primary, certificate) in &self.0 {
            for (part, key) in certificate.keys(primary) {
                let name = key.fingerprint();
                if !issuer.is(&name) {
                    continue;
                }
                refused = if let Some(flaw) = unfit(key) {
                    KeyRefused::Key(name, Whose::Own, flaw)
                } else if !signature.holds(key, content) {
                    KeyRefused::Else(issuer)
                } else if let Some(end) = signature.until.filter(|until| *until <= now) {
                    KeyRefused::Expired(name, end)
                } else if let Some((whose, flaw)) = certificate.flaw(primary, part, Times { made: signature.made, now })
                {
                    KeyRefused::Key(name, whose, flaw)
                } else {
                    return Ok(name);
                };
            }
        }
        Err(refused)
    }
}

/// The name of an owner, as signatures over it have it.
fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("below 4 GiB because it was read from a file with a limit");
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
