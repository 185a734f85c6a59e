//! Packets of OpenPGP (RFC 9580, section 4) and the armour around them, as far as public keys and signatures take them.

use crate::sign::wire::Reader;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One packet.
pub(super) struct Packet<'a> {
    /// What it is.
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

pub(super) const SIGNATURE: u8 = 2;
pub(super) const SECRET_KEY: u8 = 5;
pub(super) const KEY: u8 = 6;
pub(super) const SECRET_SUBKEY: u8 = 7;
pub(super) const USER: u8 = 13;
pub(super) const SUBKEY: u8 = 14;
pub(super) const ATTRIBUTE: u8 = 17;
/// Trust, a marker, padding: nothing that anybody has said.
pub(super) const SAYS_NOTHING: [u8; 3] = [12, 10, 21];

/// All packets, each with its whole length before it; `None` where one is cut off.
pub(super) fn packets(bytes: &[u8]) -> Option<Vec<Packet<'_>>> {
    let (mut read, mut found) = (Reader(bytes), Vec::new());
    while !read.is_done() {
        let head = *read.take(1)?.first()?;
        let (tag, length) = match (head >> 6, head & 3) {
            (0b10, 3) => return None,
            (0b10, size) => ((head >> 2) & 0xf, big_endian(&mut read, 1 << size)?),
            // From 224 on these are lengths of parts, which only data has.
            (0b11, _) => (head & 0x3f, length(&mut read, 223)?),
            _ => return None,
        };
        found.push(Packet { tag, body: read.take(usize::try_from(length).ok()?)? });
    }
    Some(found)
}

/// What a signature says beside its mathematics: each one's type, with the highest bit where it has to be understood.
pub(super) fn subpackets(bytes: &[u8]) -> Option<Vec<Packet<'_>>> {
    let (mut read, mut found) = (Reader(bytes), Vec::new());
    while !read.is_done() {
        let length = length(&mut read, 254)?;
        let (tag, body) = read.take(usize::try_from(length).ok()?)?.split_first()?;
        found.push(Packet { tag: *tag, body });
    }
    Some(found)
}

/// A length of one, two or five octets; `two` is the last first octet of two.
fn length(read: &mut Reader<'_>, two: u64) -> Option<u64> {
    match big_endian(read, 1)? {
        first @ ..=191 => Some(first),
        first if first <= two => Some(((first - 192) << 8) + big_endian(read, 1)? + 192),
        255 => big_endian(read, 4),
        _ => None,
    }
}

/// A number of so many octets, at most eight.
pub(super) fn big_endian(read: &mut Reader<'_>, octets: usize) -> Option<u64> {
    Some(read.take(octets)?.iter().fold(0, |number, octet| (number << 8) | u64::from(*octet)))
}

/// A number with its exact length in bits before it.
pub(super) fn integer<'a>(read: &mut Reader<'a>) -> Option<&'a [u8]> {
    let bits = usize::try_from(big_endian(read, 2)?).ok()?;
    let number = read.take(bits.div_ceil(8))?;
    let zeros = number.first().map_or(0, |first| first.leading_zeros() as usize);
    (zeros == number.len() * 8 - bits).then_some(number)
}

/// Something in armour: which line it begins at, what it says that it is, and what it holds.
pub(super) struct Block<'a> {
    pub(super) line: usize,
    pub(super) kind: &'a str,
    pub(super) bytes: Vec<u8>,
}

/// All that stands in armour in a text; between there may be blank lines and comments that begin with `#`. The checksum is passed over,
/// as RFC 9580 asks for: whether the content is whole is told by signatures.
///
/// # Errors
/// With the line at which the text is no armour, and why.
pub(super) fn blocks(text: &str) -> Result<Vec<Block<'_>>, (usize, &'static str)> {
    let mut lines = (1..).zip(text.lines().map(str::trim_end));
    let mut found = Vec::new();
    while let Some((line, begin)) = lines.next() {
        if begin.is_empty() || begin.starts_with('#') {
            continue;
        }
        let kind = begin.strip_prefix("-----BEGIN ").and_then(|kind| kind.strip_suffix("-----"));
        let kind = kind.ok_or((line, "this is neither armour nor a comment"))?;
        // Whatever says which program has made it ends with a blank line.
        let named = lines.find(|(_, header)| !header.contains(':'));
        if named.is_none_or(|(_, header)| !header.is_empty()) {
            return Err((line, "armour without a blank line before its content"));
        }
        let (mut body, end) = (String::new(), format!("-----END {kind}-----"));
        loop {
            match lines.next() {
                None => return Err((line, "armour that does not end")),
                Some((_, text)) if text == end => break,
                Some((_, text)) if text.starts_with('=') => {}
                Some((_, text)) => body.push_str(text),
            }
        }
        let bytes = STANDARD.decode(body).map_err(|_| (line, "what is in the armour is not base64"))?;
        found.push(Block { line, kind, bytes });
    }
    Ok(found)
}
