//! Signatures of OpenPGP, version 4, and what they say.

use super::KeyRefused;
use super::key::{Fingerprint, Hash, Key, time};
use super::packet::{Packet, SIGNATURE, big_endian, blocks, packets, subpackets};
use crate::sign::wire::Reader;
use chrono::{DateTime, TimeDelta, Utc};
use std::fmt;

/// Over the bytes of a content.
const BINARY: u8 = 0x00;
/// What stands above a signature that is detached from its content.
const ARMOUR: &str = "-----BEGIN PGP SIGNATURE-----";
/// One by RSA of 8192 bits takes 2 KiB.
const LONGEST: usize = 16 << 10;

/// A signature that may hold.
pub(super) struct Signature {
    /// What it is about, as RFC 9580 numbers it.
    pub(super) kind: u8,
    algorithm: u8,
    hash: Hash,
    /// All up to where the unsigned part begins: it is signed too.
    head: Vec<u8>,
    numbers: Vec<u8>,
    pub(super) made: DateTime<Utc>,
    /// Until when it counts; for ever, if it says nothing.
    pub(super) until: Option<DateTime<Utc>>,
    /// How many seconds the key counts that it is about, from when that was created.
    pub(super) lasts: Option<u64>,
    /// What that key is for.
    pub(super) flags: Option<u8>,
    /// Who is said to have made it. A hint: whether they have is told by [`Self::holds`].
    pub(super) issuer: Option<Issuer>,
    /// What a subkey says of the key that it belongs to: another signature. It is not read before it is asked for, since each may hold one.
    pub(super) back: Option<Vec<u8>>,
}

/// How a signature names its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Issuer {
    /// The whole fingerprint.
    Key(Fingerprint),
    /// The end of one.
    Id([u8; 8]),
}

impl Issuer {
    /// Whether this key may be meant.
    pub(super) fn is(&self, key: &Fingerprint) -> bool {
        match self {
            Self::Key(named) => named == key,
            Self::Id(id) => id == key.id(),
        }
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Id(id) => id.iter().try_for_each(|octet| write!(f, "{octet:02X}")),
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Signature {
    /// Reads what stands in a commit: one signature, detached from what it is over, and nothing besides.
    ///
    /// # Errors
    /// When it is anything else.
    pub(super) fn detached(text: &[u8]) -> Result<Self, KeyRefused> {
        if text.len() > LONGEST {
            return Err(KeyRefused::Damaged("it is longer than 16 KiB"));
        }
        let text = std::str::from_utf8(text).map_err(|_| KeyRefused::Damaged("it is not UTF-8"))?.trim_end();
        if text.lines().next().map(str::trim_end) != Some(ARMOUR) {
            return Err(KeyRefused::Attached);
        }
        let blocks = blocks(text).map_err(|(_, why)| KeyRefused::Damaged(why))?;
        let [block] = &blocks[..] else { return Err(KeyRefused::Several) };
        let packets = packets(&block.bytes).ok_or(KeyRefused::Damaged("it is cut off"))?;
        match &packets[..] {
            [] => Err(KeyRefused::Damaged("it is empty")),
            [one] if one.tag == SIGNATURE => {
                let signature = Self::read(one.body)?;
                if signature.kind == BINARY { Ok(signature) } else { Err(KeyRefused::Kind(signature.kind)) }
            }
            all if all.iter().all(|packet| packet.tag == SIGNATURE) => Err(KeyRefused::Several),
            _ => Err(KeyRefused::Attached),
        }
    }

    /// Reads the packet of a signature.
    ///
    /// # Errors
    /// When it is damaged, or one that cannot be relied on.
    pub(super) fn read(body: &[u8]) -> Result<Self, KeyRefused> {
        let damaged = KeyRefused::Damaged("it is cut off");
        let Parts { head, hashed, unhashed, numbers } = match body.first() {
            Some(4) => Parts::of(body).ok_or(damaged)?,
            Some(version) => return Err(KeyRefused::Version(*version)),
            None => return Err(damaged),
        };
        let [_, kind, algorithm, hash] = head.first_chunk().copied().ok_or(damaged)?;
        let hash = Hash::of(hash).map_err(KeyRefused::Hash)?;
        let (signed, unsigned) = subpackets(hashed).zip(subpackets(unhashed)).ok_or(damaged)?;
        let mut said = Said::default();
        signed.iter().try_for_each(|packet| said.read(packet))?;
        let Said { made, lifetime, lasts, flags } = said;
        let made = time(made.ok_or(KeyRefused::Damaged("it does not say when it was made"))?);
        let until = lifetime.map(|lifetime| after(made, lifetime));
        let all = || signed.iter().chain(&unsigned);
        let key = all().find_map(|packet| match (packet.tag & 0x7f, packet.body) {
            (33, [4, key @ ..]) => Fingerprint::of(key).map(Issuer::Key),
            _ => None,
        });
        let id = all().filter(|packet| packet.tag & 0x7f == 16).find_map(|packet| packet.body.try_into().ok());
        let back = all().find(|packet| packet.tag & 0x7f == 32).map(|packet| packet.body.to_vec());
        let (head, numbers, issuer) = (head.to_vec(), numbers.to_vec(), key.or(id.map(Issuer::Id)));
        Ok(Self { kind, algorithm, hash, head, numbers, made, until, lasts, flags, issuer, back })
    }

    /// Whether this key has made it, over exactly this.
    pub(super) fn holds(&self, key: &Key, content: &[u8]) -> bool {
        let length = u32::try_from(self.head.len()).expect("below 4 GiB because its lengths have 16 bits");
        let data = [content, &self.head, &[4, 0xff], &length.to_be_bytes()].concat();
        key.verifies(self.algorithm, self.hash, &data, &self.numbers).is_some()
    }
}

/// What the signed part says.
#[derive(Default)]
struct Said {
    made: Option<u64>,
    lifetime: Option<u64>,
    lasts: Option<u64>,
    flags: Option<u8>,
}

impl Said {
    fn read(&mut self, packet: &Packet<'_>) -> Result<(), KeyRefused> {
        let number = || {
            let number = big_endian(&mut Reader(packet.body), 4).filter(|_| packet.body.len() == 4);
            number.ok_or(KeyRefused::Damaged("a time in it has not four octets"))
        };
        match packet.tag & 0x7f {
            2 => self.made = Some(number()?),
            // No seconds are all seconds.
            3 => self.lifetime = Some(number()?).filter(|seconds| *seconds != 0),
            9 => self.lasts = Some(number()?).filter(|seconds| *seconds != 0),
            27 => self.flags = Some(packet.body.first().copied().unwrap_or_default()),
            // Wishes, remarks and hints, from which nothing follows for what is signed. Notations are none of them: one may mean anything.
            4 | 7 | 11 | 12 | 16 | 21..=26 | 28..=30 | 32..=34 | 39 => {}
            unknown if packet.tag != unknown => return Err(KeyRefused::Critical(unknown)),
            _ => {}
        }
        Ok(())
    }
}

/// A time, and so many seconds, which have 32 bits.
pub(super) fn after(time: DateTime<Utc>, seconds: u64) -> DateTime<Utc> {
    let seconds = i64::try_from(seconds).expect("below 2³² because it has 32 bits");
    time + TimeDelta::seconds(seconds)
}

/// A signature, divided.
struct Parts<'a> {
    head: &'a [u8],
    hashed: &'a [u8],
    unhashed: &'a [u8],
    numbers: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body.get(4..)?);
        let area = |read: &mut Reader<'a>| {
            let length = big_endian(read, 2)?;
            read.take(usize::try_from(length).ok()?)
        };
        let hashed = area(&mut read)?;
        let head = &body[..body.len() - read.0.len()];
        let unhashed = area(&mut read)?;
        // The beginning of the hash, which tells nothing that the numbers do not.
        let _beginning = read.take(2)?;
        Some(Self { head, hashed, unhashed, numbers: read.0 })
    }
}
