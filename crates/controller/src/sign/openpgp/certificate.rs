//! What the owner of a key says of it: which subkeys belong to it, what each is for, until when, and that it counts no more.
//!
//! As `gpg` does it, a revocation counts whenever it was made, and what the owner has said last counts for all that was signed before. Other than
//! there, a key has to say itself that it is for signing.

use super::key::{Key, Material};
use super::signature::{Signature, after};
use super::{KeyFlaw, Whose};
use chrono::{DateTime, Utc};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Kinds of signatures (RFC 9580, section 5.2.1).
const SUBKEY_OF: u8 = 0x18;
const OF_KEY: u8 = 0x19;
const ON_KEY: u8 = 0x1f;
const KEY_REVOKED: u8 = 0x20;
const SUBKEY_REVOKED: u8 = 0x28;
const USER_REVOKED: u8 = 0x30;

/// The flag of a key that is for signing.
const SIGNS: u8 = 0x02;
/// The least that RSA takes.
const RSA_BITS: usize = 2048;

/// What a signature in a certificate is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The key itself.
    Primary,
    /// A name or a picture of its owner, as signatures over it have it.
    User(Vec<u8>),
    Subkey(Key),
}

/// A key's parts, with the signatures on each.
#[derive(Default)]
pub(super) struct Certificate(BTreeMap<Part, Vec<Kept>>);

/// A signature on a part.
struct Kept {
    kind: u8,
    /// That, if it can be relied on.
    signature: Option<Signature>,
}

/// When a signature was made, and when it is looked at: what it relies on has to hold at both.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) made: DateTime<Utc>,
    pub(super) now: DateTime<Utc>,
}

impl Certificate {
    /// The part is there, whether or not anybody has signed it.
    pub(super) fn hold(&mut self, part: &Part) {
        self.0.entry(part.clone()).or_default();
    }

    /// Takes the packet of a signature on a part; nothing that is too short to be one.
    pub(super) fn keep(&mut self, part: &Part, body: &[u8]) -> Option<()> {
        let ((2 | 3, [_, _, kind, ..]) | (4.., [_, kind, ..])) = (*body.first()?, body) else { return None };
        let kept = Kept { kind: *kind, signature: Signature::read(body).ok() };
        self.0.entry(part.clone()).or_default().push(kept);
        Some(())
    }

    /// Its key and its subkeys.
    pub(super) fn keys<'a>(&'a self, primary: &'a Key) -> impl Iterator<Item = (&'a Part, &'a Key)> {
        self.0.keys().filter_map(move |part| match part {
            Part::Primary => Some((part, primary)),
            Part::Subkey(key) => Some((part, key)),
            Part::User(_) => None,
        })
    }

    /// Why what that key has signed does not count, if it does not.
    pub(super) fn flaw(&self, primary: &Key, part: &Part, times: Times) -> Option<(Whose, KeyFlaw)> {
        let said = self.standing(primary, primary, &Part::Primary, times);
        let Part::Subkey(key) = part else {
            return said.and_then(|said| signs(&said)).err().map(|flaw| (Whose::Own, flaw));
        };
        if let Err(flaw) = said {
            return Some((Whose::Primary, flaw));
        }
        let belongs = |said: Vec<&Signature>| {
            signs(&said)?;
            let back = said.last().and_then(|said| Signature::read(said.back.as_deref()?).ok());
            let over = over(primary, part);
            back.filter(|back| back.kind == OF_KEY && back.holds(key, &over)).map(drop).ok_or(KeyFlaw::OneSided)
        };
        self.standing(primary, key, part, times).and_then(belongs).err().map(|flaw| (Whose::Own, flaw))
    }

    /// What the owner says of one of the keys, last what counts most; why it does not stand, if it does not.
    fn standing(&self, primary: &Key, key: &Key, part: &Part, times: Times) -> Result<Vec<&Signature>, KeyFlaw> {
        // Whoever puts one here means it, also one that cannot be checked: made with an old hash, or by another key that may revoke this one,
        // or put behind something else than the key.
        let has = |(at, kept): (&Part, &Vec<Kept>)| match part {
            Part::Primary | Part::User(_) => kept.iter().any(|kept| kept.kind == KEY_REVOKED),
            Part::Subkey(_) => at == part && kept.iter().any(|kept| kept.kind == SUBKEY_REVOKED),
        };
        if self.0.iter().any(has) {
            return Err(KeyFlaw::Revoked);
        }
        let said = self.said(primary, part, times.now);
        if said.is_empty() {
            return Err(KeyFlaw::Unbound);
        }
        if key.created > times.made {
            return Err(KeyFlaw::Younger(key.created));
        }
        let lasts = said.iter().rev().find_map(|signature| signature.lasts);
        match lasts.map(|seconds| after(key.created, seconds)) {
            Some(end) if end <= times.made.max(times.now) => Err(KeyFlaw::Expired(end)),
            Some(_) | None => Ok(said),
        }
    }

    /// The last word on each part that tells of this key; of the primary one, all names of the owner do.
    fn said(&self, primary: &Key, of: &Part, now: DateTime<Utc>) -> Vec<&Signature> {
        let tells = |part: &Part| part == of || (*of == Part::Primary && matches!(part, Part::User(_)));
        let parts = self.0.iter().filter(|(part, _)| tells(part));
        let mut said: Vec<&Signature> = parts.filter_map(|(part, kept)| last(primary, part, kept, now)).collect();
        said.sort_by_key(|signature| rank(signature));
        said
    }
}

/// What the owner has said last of a part, and still says.
fn last<'a>(primary: &Key, part: &Part, kept: &'a [Kept], now: DateTime<Utc>) -> Option<&'a Signature> {
    let over = over(primary, part);
    let own = |kept: &Kept| kept.signature.as_ref().is_none_or(|signature| signature.holds(primary, &over));
    // Others may take back what they have said of a name; that does not count, but what cannot be checked does.
    if kept.iter().any(|kept| kept.kind == USER_REVOKED && own(kept)) {
        return None;
    }
    let words = kept.iter().filter(|kept| binds(part, kept.kind)).filter_map(|kept| kept.signature.as_ref());
    let stand = words.filter(|signature| signature.until.is_none_or(|until| now < until));
    stand.filter(|signature| signature.holds(primary, &over)).max_by_key(|signature| rank(signature))
}

/// What was said later counts; of what was said in one second, what is stricter.
fn rank(signature: &Signature) -> (DateTime<Utc>, Reverse<u64>) {
    (signature.made, Reverse(signature.lasts.unwrap_or(u64::MAX)))
}

/// Whether a signature of that kind on a part says that it belongs to the key.
fn binds(part: &Part, kind: u8) -> bool {
    match part {
        Part::Primary => kind == ON_KEY,
        Part::User(_) => matches!(kind, 0x10..=0x13),
        Part::Subkey(_) => kind == SUBKEY_OF,
    }
}

/// What a signature on a part is over.
fn over(primary: &Key, part: &Part) -> Vec<u8> {
    let mut over = primary.framed();
    match part {
        Part::Primary => {}
        Part::User(user) => over.extend(user),
        Part::Subkey(key) => over.extend(key.framed()),
    }
    over
}

/// Whether the owner says that the key is for signing.
fn signs(said: &[&Signature]) -> Result<(), KeyFlaw> {
    let flags = said.iter().rev().find_map(|signature| signature.flags).unwrap_or_default();
    if flags & SIGNS == 0 { Err(KeyFlaw::NotForSigning) } else { Ok(()) }
}

/// Why nothing that a key has signed is looked at.
pub(super) fn unfit(key: &Key) -> Option<KeyFlaw> {
    match &key.material {
        Material::Rsa { modulus, exponent: _ } => {
            let bits = modulus.len() * 8 - modulus.first().map_or(0, |first| first.leading_zeros() as usize);
            (bits < RSA_BITS).then_some(KeyFlaw::Weak(bits))
        }
        Material::Unread(number) => Some(KeyFlaw::Unread(*number)),
        Material::Ecdsa { .. } | Material::Ed25519(_) => None,
    }
}
