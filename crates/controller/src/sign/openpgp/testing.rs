//! Owners of OpenPGP keys, for tests: they say and sign also what `gpg` refuses to.

use super::key::{Fingerprint, Key};
use super::packet::{KEY, SIGNATURE, SUBKEY, USER};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// When all keys are made: 2025-01-01.
pub(super) const NEW: u32 = 1_735_689_600;
/// When they sign, if nothing else is said: 2025-06-01.
pub(super) const SIGNS: u32 = 1_748_736_000;

/// Something that a signature says.
pub(super) type Word<'a> = (u8, &'a [u8]);

/// The owner of a key that is for signing.
pub(crate) struct Owner {
    pair: Ed25519KeyPair,
    pub(super) body: Vec<u8>,
}

impl Owner {
    /// One with another key for each number.
    pub(crate) fn new(number: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
        let curve = [9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0xf, 1];
        let point = integer(&[&[0x40], pair.public_key().as_ref()].concat());
        let body = [&[4], &NEW.to_be_bytes()[..], &[22], &curve, &point].concat();
        Self { pair, body }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.key().fingerprint()
    }

    /// As signatures on it are over it.
    pub(super) fn key_framed(&self) -> Vec<u8> {
        self.key().framed()
    }

    fn key(&self) -> Key {
        Key::read(&self.body).unwrap()
    }

    /// The body of a signature of that type. It says when it was made and by whom, and `words`.
    pub(super) fn signature(&self, kind: u8, over: &[u8], words: &[Word<'_>]) -> Vec<u8> {
        let issuer = [&[4], self.fingerprint().octets()].concat();
        let made = (2, &SIGNS.to_be_bytes()[..]);
        let said: Vec<u8> =
            [&[made, (33, &issuer[..])], words].concat().iter().flat_map(|word| subpacket(*word)).collect();
        let length = u16::try_from(said.len()).unwrap().to_be_bytes();
        self.over([4, kind, 22, 8], over, &[&length[..], &said].concat())
    }

    /// The same from its bytes: what it begins with, and the signed part with its length.
    pub(super) fn over(&self, begin: [u8; 4], over: &[u8], said: &[u8]) -> Vec<u8> {
        let head = [&begin[..], said].concat();
        let length = u32::try_from(head.len()).unwrap().to_be_bytes();
        let sum = digest(&SHA256, &[over, &head, &[4, 0xff], &length].concat());
        let signature = self.pair.sign(sum.as_ref());
        let (first, second) = signature.as_ref().split_at(32);
        [&head[..], &[0, 0, 0, 0], &integer(first), &integer(second)].concat()
    }

    /// Its key, as a packet.
    pub(super) fn packet(&self) -> Vec<u8> {
        packet(KEY, &self.body)
    }

    /// A name, and what the owner says with it.
    pub(super) fn named(&self, name: &str, words: &[Word<'_>]) -> Vec<u8> {
        let signature = self.signature(0x13, &self.with_name(name), words);
        [packet(USER, name.as_bytes()), packet(SIGNATURE, &signature)].concat()
    }

    /// What signatures on a name are over.
    pub(super) fn with_name(&self, name: &str) -> Vec<u8> {
        [&self.key().framed(), &[0xb4][..], &u32::try_from(name.len()).unwrap().to_be_bytes(), name.as_bytes()].concat()
    }

    /// A subkey, and what the owner says of it.
    pub(super) fn with_subkey(&self, subkey: &Self, words: &[Word<'_>]) -> Vec<u8> {
        let signature = self.signature(0x18, &self.both(subkey), words);
        [packet(SUBKEY, &subkey.body), packet(SIGNATURE, &signature)].concat()
    }

    /// What signatures on a subkey are over.
    pub(super) fn both(&self, subkey: &Self) -> Vec<u8> {
        [self.key().framed(), subkey.key().framed()].concat()
    }

    /// A keyring with this key.
    pub(crate) fn keyring(&self) -> String {
        armoured("PUBLIC KEY BLOCK", &[self.packet(), self.named("Ana", &[(27, &[3])])].concat())
    }

    /// Signs a content as `gpg --detach-sign` does.
    pub(crate) fn sign(&self, content: &[u8]) -> String {
        signed(&self.signature(0x00, content, &[]))
    }
}

/// The body of a signature, as it stands in a commit.
pub(super) fn signed(body: &[u8]) -> String {
    armoured("SIGNATURE", &packet(SIGNATURE, body))
}

pub(super) fn armoured(kind: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN PGP {kind}-----\n\n{}\n-----END PGP {kind}-----\n", STANDARD.encode(bytes))
}

pub(super) fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[0xc0 | tag, 255], &u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

pub(super) fn subpacket((tag, body): Word<'_>) -> Vec<u8> {
    [&[u8::try_from(body.len() + 1).unwrap(), tag], body].concat()
}

fn integer(number: &[u8]) -> Vec<u8> {
    let number = &number[number.iter().take_while(|octet| **octet == 0).count()..];
    let bits = number.len() * 8 - number.first().map_or(0, |first| first.leading_zeros() as usize);
    [&u16::try_from(bits).unwrap().to_be_bytes()[..], number].concat()
}
