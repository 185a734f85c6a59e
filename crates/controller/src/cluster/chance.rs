//! Chance: for pauses that should not end at the same time everywhere.

#[cfg(feature = "faults")]
pub use seeded::{random, repeat};

/// Any number: each hasher of the standard library starts from its own random keys.
#[cfg(not(feature = "faults"))]
#[must_use]
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The same chance again, for tests that repeat a run.
#[cfg(feature = "faults")]
mod seeded {
    use std::cell::Cell;
    use std::hash::{BuildHasher, Hasher, RandomState};

    thread_local! {
        static NEXT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Any number; after [`repeat`], the next one of that row.
    #[must_use]
    pub fn random() -> u64 {
        let Some(seed) = NEXT.get() else { return RandomState::new().build_hasher().finish() };
        // splitmix64
        let next = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        NEXT.set(Some(next));
        let mut z = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Whatever runs on this thread draws the row of numbers of this seed from now on.
    pub fn repeat(seed: u64) {
        NEXT.set(Some(seed));
    }
}
