//! Breaks a rule on purpose.

use super::Rule;
use std::cell::Cell;

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// Whether a rule holds, for whoever runs on this thread.
#[must_use]
pub fn holds(rule: Rule) -> bool {
    BROKEN.get() != Some(rule)
}

/// A rule does not hold on this thread for as long as this lives.
#[derive(Debug)]
pub struct Broken(());

impl Broken {
    /// Breaks a rule.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        BROKEN.set(Some(rule));
        Self(())
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        BROKEN.set(None);
    }
}
