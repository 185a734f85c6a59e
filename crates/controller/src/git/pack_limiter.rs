//! Measures what a server sends on its way to libgit2, which has no limit of its own on what a pack unpacks to.
//!
//! A few bytes can stand for gigabytes: zlib shrinks a thousandfold, and a delta can copy the same bytes again and again.
//! Formats: gitprotocol-pack(5) for the answer, gitformat-pack(5) for the pack.

use super::GitError;
use flate2::{Decompress, FlushDecompress, Status};

/// The largest object that a pack may hold as it is, in bytes: libgit2 hashes such a one piece by piece, and files that we read are
/// far smaller, so this is what a repository may hold beside them.
const OBJECT: u64 = 128 << 20;

/// The largest one that a delta may be made from, or make, in bytes: libgit2 holds both at once.
const DELTA: u64 = 32 << 20;

/// What a pack may unpack to, as a multiple of what may be fetched.
const EXPANSION: u64 = 8;

/// What comes next in an answer.
enum Frame {
    /// The four digits of a packet's length, or the start of a pack without packets.
    Length(Vec<u8>),
    /// The first byte of a packet of so many more bytes.
    Band(usize),
    /// So many bytes of the pack.
    Data(usize),
    /// So many bytes of something else.
    Other(usize),
    /// The pack, up to the end of the answer.
    Raw,
}

/// What comes next in a pack.
enum Part {
    /// The head of the pack: magic, version, number of objects.
    Head(Vec<u8>),
    /// The type and the size of an object.
    Object(Vec<u8>),
    /// The distance back to a delta's base.
    Distance,
    /// So many bytes of the name of a delta's base.
    Name(usize),
    /// Compressed content.
    Content,
    /// The checksum, and whatever follows.
    Tail,
}

/// The measure of one answer to a fetch.
pub(super) struct PackLimiter {
    frame: Frame,
    part: Part,
    /// Objects that are to come.
    objects: u32,
    /// The size that the current object's content has by its own account.
    size: u64,
    /// The beginning of a delta, which says what it makes.
    delta: Option<Vec<u8>>,
    inflate: Decompress,
    /// Bytes that may still be unpacked.
    left: u64,
}

impl PackLimiter {
    /// For an answer that may have `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            frame: Frame::Length(Vec::new()),
            part: Part::Head(Vec::new()),
            objects: 0,
            size: 0,
            delta: None,
            inflate: Decompress::new(true),
            left: bytes.saturating_mul(EXPANSION),
        }
    }

    /// Measures the next bytes of the answer.
    ///
    /// # Errors
    /// `Limit` before anybody unpacks too much; `Corrupt` where it is no pack.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> Result<(), GitError> {
        while let Some(&first) = bytes.first() {
            match &mut self.frame {
                Frame::Length(digits) => {
                    digits.push(first);
                    bytes = &bytes[1..];
                    if digits.len() == 4 {
                        let digits = std::mem::take(digits);
                        self.frame = frame(&digits)?;
                        if matches!(self.frame, Frame::Raw) {
                            self.unpack(&digits)?;
                        }
                    }
                }
                Frame::Band(len) => {
                    self.frame = if first == 1 { Frame::Data(*len) } else { Frame::Other(*len) };
                    bytes = &bytes[1..];
                }
                Frame::Data(len) | Frame::Other(len) if *len == 0 => self.frame = Frame::Length(Vec::new()),
                Frame::Other(len) => {
                    let taken = bytes.len().min(*len);
                    *len -= taken;
                    bytes = &bytes[taken..];
                }
                Frame::Data(len) => {
                    let (data, rest) = bytes.split_at(bytes.len().min(*len));
                    *len -= data.len();
                    self.unpack(data)?;
                    bytes = rest;
                }
                Frame::Raw => return self.unpack(bytes),
            }
        }
        Ok(())
    }

    fn unpack(&mut self, mut bytes: &[u8]) -> Result<(), GitError> {
        while let Some((&first, rest)) = bytes.split_first() {
            match &mut self.part {
                Part::Head(head) => {
                    head.push(first);
                    if let Some(count) = head.get(8..12) {
                        self.objects = count.iter().fold(0, |count, byte| count << 8 | u32::from(*byte));
                        self.next_object();
                    }
                    bytes = rest;
                }
                Part::Object(head) => {
                    head.push(first);
                    if head.len() > 10 {
                        return Err(corrupt("the size of an object has no end"));
                    }
                    if first < 0x80 {
                        let head = std::mem::take(head);
                        self.begin(&head)?;
                    }
                    bytes = rest;
                }
                Part::Distance => {
                    if first < 0x80 {
                        self.part = Part::Content;
                    }
                    bytes = rest;
                }
                Part::Name(len) => {
                    *len -= 1;
                    if *len == 0 {
                        self.part = Part::Content;
                    }
                    bytes = rest;
                }
                Part::Content => bytes = self.inflate(bytes)?,
                Part::Tail => return Ok(()),
            }
        }
        Ok(())
    }

    fn next_object(&mut self) {
        self.part = if self.objects == 0 { Part::Tail } else { Part::Object(Vec::new()) };
        self.objects = self.objects.saturating_sub(1);
        self.inflate.reset(true);
    }

    /// An object's head is complete: three bits of type, then its size, the low bits first.
    fn begin(&mut self, head: &[u8]) -> Result<(), GitError> {
        let low = u64::from(head[0] & 0x0f);
        let size = number(&head[1..]).unwrap_or(0).checked_mul(16).map_or(u64::MAX, |high| high | low);
        let is_delta = matches!(head[0] >> 4 & 7, 6 | 7);
        self.size = bounded(size, if is_delta { DELTA } else { OBJECT })?;
        (self.part, self.delta) = match head[0] >> 4 & 7 {
            1..=4 => (Part::Content, None),
            6 => (Part::Distance, Some(Vec::new())),
            7 => (Part::Name(20), Some(Vec::new())),
            other => return Err(corrupt(&format!("an object of type {other}"))),
        };
        Ok(())
    }

    /// Unpacks content into nothing; what is left of the bytes.
    fn inflate<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], GitError> {
        let mut scratch = [0; 16 << 10];
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(bytes, &mut scratch, FlushDecompress::None);
        let status = status.map_err(|_| corrupt("content that zlib cannot read"))?;
        let consumed = usize::try_from(self.inflate.total_in() - read).unwrap_or(bytes.len());
        let made = self.inflate.total_out() - written;
        self.left = self.left.checked_sub(made).ok_or_else(|| GitError::Limit {
            what: "what a fetch unpacks to".to_owned(),
            limit: format!("{EXPANSION} times what may be fetched"),
        })?;
        if self.inflate.total_out() > self.size {
            return Err(corrupt("an object is larger than it says"));
        }
        self.look_at_delta(&scratch[..usize::try_from(made).unwrap_or(0)])?;
        if status == Status::StreamEnd {
            self.next_object();
        } else if consumed == 0 && made == 0 {
            return Err(corrupt("content that does not go on"));
        }
        Ok(&bytes[consumed..])
    }

    /// A delta begins with the size of its base and the size of what it makes.
    fn look_at_delta(&mut self, made: &[u8]) -> Result<(), GitError> {
        let Some(delta) = &mut self.delta else { return Ok(()) };
        delta.extend(made.iter().take(20 - delta.len().min(20)));
        let ends: Vec<usize> = (0..delta.len()).filter(|at| delta[*at] < 0x80).take(2).collect();
        if let [base, result] = ends[..] {
            bounded(number(&delta[..=base]).unwrap_or(u64::MAX), DELTA)?;
            bounded(number(&delta[base + 1..=result]).unwrap_or(u64::MAX), DELTA)?;
            self.delta = None;
        } else if delta.len() == 20 {
            return Err(corrupt("a delta whose size has no end"));
        }
        Ok(())
    }
}

/// What the four bytes at the start of a packet say.
fn frame(digits: &[u8]) -> Result<Frame, GitError> {
    if digits == b"PACK" {
        return Ok(Frame::Raw);
    }
    let len = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
    match len.ok_or_else(|| corrupt("a packet without a length"))? {
        0..=4 => Ok(Frame::Length(Vec::new())),
        len => Ok(Frame::Band(len - 5)),
    }
}

/// Seven bits in each byte, the low ones first; `None` if there are none or too many.
fn number(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 9 {
        return None;
    }
    Some(bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

fn bounded(size: u64, most: u64) -> Result<u64, GitError> {
    if size <= most {
        return Ok(size);
    }
    let what = if most == DELTA { "a large file that was changed" } else { "a file" };
    Err(GitError::Limit { what: format!("{what} in the repository"), limit: format!("{most} bytes") })
}

fn corrupt(why: &str) -> GitError {
    GitError::Corrupt { doing: "read what the server sent".to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(0x80 | (number & 0x7f) as u8);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// An object that claims a size.
    fn object(kind: u8, says: u64, between: &[u8], content: &[u8]) -> Vec<u8> {
        let first = kind << 4 | (says & 0x0f) as u8;
        let head = if says < 16 { vec![first] } else { [vec![first | 0x80], varint(says >> 4)].concat() };
        [head, between.to_vec(), zlib(content)].concat()
    }

    fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
        let count = u32::try_from(objects.len()).unwrap();
        [b"PACK\0\0\0\x02".as_slice(), &count.to_be_bytes(), &objects.concat(), &[7; 20]].concat()
    }

    fn packet(bytes: &[u8]) -> Vec<u8> {
        [format!("{:04x}", bytes.len() + 4).as_bytes(), bytes].concat()
    }

    /// An answer with progress between the parts of a pack.
    fn answer(pack: &[u8]) -> Vec<u8> {
        let mut all = [packet(b"shallow 1111\n"), b"0000".to_vec(), packet(b"NAK\n")].concat();
        for part in pack.chunks(1_000) {
            all.extend(packet(b"\x02Counting objects"));
            all.extend(packet(&[&[1], part].concat()));
        }
        [all, b"0000".to_vec()].concat()
    }

    fn delta(base: u64, makes: u64) -> Vec<u8> {
        [varint(base), varint(makes), vec![1, b'x']].concat()
    }

    fn passes(objects: &[Vec<u8>]) -> Result<(), GitError> {
        let pack = pack(objects);
        let whole = PackLimiter::new(1 << 20).pass(&answer(&pack));
        let mut slow = PackLimiter::new(1 << 20);
        let bytewise = answer(&pack).chunks(1).try_for_each(|byte| slow.pass(byte));
        let unframed = PackLimiter::new(1 << 20).pass(&[packet(b"NAK\n"), pack].concat());
        let text = |result: &Result<(), GitError>| result.as_ref().map_err(ToString::to_string).copied();
        assert_eq!(text(&whole), text(&bytewise));
        assert_eq!(text(&whole), text(&unframed));
        whole
    }

    #[test]
    fn what_is_honest_passes() {
        let long = b"some text ".repeat(5_000);
        let delta = delta(50_000, 50_001);
        passes(&[]).unwrap();
        passes(&[
            object(1, 3, &[], b"abc"),
            object(3, 50_000, &[], &long),
            object(6, delta.len() as u64, &[0x81, 0x01], &delta),
            object(7, delta.len() as u64, &[0xff; 20], &delta),
            object(4, 0, &[], b""),
        ])
        .unwrap();
    }

    #[test]
    fn attack_13_what_would_unpack_to_too_much_is_stopped_before() {
        let zeros = vec![0; 1 << 20];
        let bomb = object(3, 1 << 20, &[], &zeros);
        assert!(bomb.len() < 2_000);
        for objects in [
            vec![object(3, 1 << 40, &[], b"x")],
            vec![object(3, u64::MAX >> 4, &[], b"x")],
            vec![object(7, delta(9, 1 << 40).len() as u64, &[1; 20], &delta(9, 1 << 40))],
            vec![object(6, delta(1 << 40, 9).len() as u64, &[1], &delta(1 << 40, 9))],
            vec![object(7, delta(9, 33 << 20).len() as u64, &[1; 20], &delta(9, 33 << 20))],
            vec![object(7, delta(33 << 20, 9).len() as u64, &[1; 20], &delta(33 << 20, 9))],
            vec![object(7, 33 << 20, &[1; 20], b"x")],
            vec![bomb; 9],
        ] {
            assert!(matches!(passes(&objects), Err(GitError::Limit { .. })));
        }
    }

    #[test]
    fn what_is_no_pack_is_corrupt() {
        let endless = object(7, 30, &[1; 20], &[0xff; 30]);
        for objects in
            [vec![object(3, 2, &[], b"abc")], vec![object(5, 1, &[], b"a")], vec![vec![0xff; 20]], vec![endless]]
        {
            assert!(matches!(passes(&objects), Err(GitError::Corrupt { .. })));
        }
        assert!(matches!(PackLimiter::new(9).pass(b"zzzz"), Err(GitError::Corrupt { .. })));
        assert!(matches!(
            PackLimiter::new(9).pass(&answer(&pack(&[vec![0x31, 1, 2, 3]]))),
            Err(GitError::Corrupt { .. })
        ));
    }
}
