//! Values by number: equal ones have the same, so that a state is a handful of small numbers.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::Hash;

/// Values, each with its number.
pub(crate) struct Numbers<T> {
    /// By the hash of the key: keys are long.
    of_key: HashMap<[u8; 32], u32>,
    all: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { of_key: HashMap::new(), all: Vec::new() }
    }
}

impl<T> Numbers<T> {
    /// The number of the value with that key; it is made if it is new.
    pub(crate) fn number(&mut self, key: &str, make: impl FnOnce() -> T) -> u32 {
        let next = u32::try_from(self.all.len()).expect("few");
        *self.of_key.entry(Sha256::digest(key).into()).or_insert_with(|| {
            self.all.push(make());
            next
        })
    }

    /// The value with that number.
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.all[usize::try_from(number).expect("wide enough")]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Small values, each with its number.
pub(crate) struct Pool<T> {
    of_value: HashMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { of_value: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Pool<T> {
    /// The number of that value.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.all.len()).expect("few");
        *self.of_value.entry(value).or_insert_with(|| {
            self.all.push(value);
            next
        })
    }

    /// The value with that number.
    pub(crate) fn get(&self, number: u32) -> T {
        self.all[usize::try_from(number).expect("wide enough")]
    }
}
