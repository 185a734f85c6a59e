//! Breaks rules on purpose.

use super::Rule;
use std::cell::Cell;

thread_local! {
    static BROKEN: Cell<u32> = const { Cell::new(0) };
}

/// Whether a rule holds, for whoever runs on this thread.
#[must_use]
pub fn holds(rule: Rule) -> bool {
    BROKEN.get() & bit(rule) == 0
}

fn bit(rule: Rule) -> u32 {
    1 << rule as u32
}

/// A rule does not hold on this thread for as long as this lives. Several may be broken at the same time.
#[derive(Debug)]
pub struct Broken(Rule);

impl Broken {
    /// Breaks a rule.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        BROKEN.set(BROKEN.get() | bit(rule));
        Self(rule)
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        BROKEN.set(BROKEN.get() & !bit(self.0));
    }
}
