//! So many cases for a target, each with a bound on its time and its memory.

use crate::heap;
use arbitrary::{Arbitrary, Unstructured};
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// No case takes a second; one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// The random bytes that a case is made of.
const BYTES: usize = 600;
/// What reading may hold at once, whatever it reads.
const ROOM: usize = 4 << 20;
/// What it may hold for each byte that it reads: a byte such as `[` makes a node, and a list of its own.
const ROOM_FOR_A_BYTE: usize = 2_000;

/// The same numbers for the same seed: `splitmix64`.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn made<T: for<'a> Arbitrary<'a>>(seed: u64, n: u64) -> T {
    let mut dice = Dice(Dice(seed ^ n.wrapping_mul(0xd6e8_feb8_6659_fd93)).next());
    let bytes: Vec<u8> = std::iter::repeat_with(|| dice.next().to_le_bytes()).flatten().take(BYTES).collect();
    T::arbitrary_take_rest(Unstructured::new(&bytes)).expect("a case is made of any bytes")
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test is told how long to go on")]
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}; expected a number")))
}

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was read, at least in part.
    Taken,
    /// It was refused.
    Refused,
}

impl Fate {
    /// What it is for something that was read, or not.
    pub(crate) fn of(taken: bool) -> Self {
        if taken { Self::Taken } else { Self::Refused }
    }
}

/// Tries `count` cases, or as many more as asked for. Cases of which next to none are read would show nothing.
#[expect(clippy::print_stdout, reason = "a run tells its seed")]
pub(crate) fn tried<T>(target: &'static str, count: u64, check: impl Fn(&T) -> Fate + Send + 'static)
where
    T: for<'a> Arbitrary<'a> + Debug,
{
    let times = setting("TIDEGATE_FUZZ");
    let fresh = || if times.is_some() { RandomState::new().hash_one(target) } else { 1 };
    let seed = setting("TIDEGATE_FUZZ_SEED").unwrap_or_else(fresh);
    let count = count * times.unwrap_or(1).max(1);
    println!("{target}: {count} cases, TIDEGATE_FUZZ_SEED={seed}");
    let (tell, told) = channel();
    let work = std::thread::spawn(move || {
        let mut taken = 0;
        for n in 0..count {
            tell.send(n).expect("the other end waits");
            let case: T = made(seed, n);
            let tale = Tale { target, seed, n, case: &case };
            taken += u64::from(check(&case) == Fate::Taken);
            drop(tale);
        }
        taken
    });
    let mut last = 0;
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(n) => last = n,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{target}: case {last} of seed {seed} takes forever: {:?}", made::<T>(seed, last))
            }
        }
    }
    let taken = work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    println!("{target}: {taken} were read");
    assert!(taken > count / 20, "{target}: of {count} cases {taken} were read: nothing is tried behind the reader");
}

/// Tells of a case that panics.
struct Tale<'a, T: Debug> {
    target: &'static str,
    seed: u64,
    n: u64,
    case: &'a T,
}

impl<T: Debug> Drop for Tale<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { target, seed, n, case } = self;
            let shown: String = format!("{case:?}").chars().take(2_000).collect();
            eprintln!("{target}: case {n} of TIDEGATE_FUZZ_SEED={seed}: {shown}");
        }
    }
}

/// Does what reads so many bytes, within the memory that this may take.
pub(crate) fn within<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let (result, peak) = heap::peak(work);
    let most = ROOM + ROOM_FOR_A_BYTE * bytes;
    assert!(peak <= most, "{bytes} bytes were read with {peak} bytes of memory, more than {most}");
    result
}
