//! The one place that reads the time.

use crate::record::state::Time;
use chrono::SubsecRound;
use std::time::Duration;
use tokio::time::Instant;

/// Where the time comes from: the system's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Clock {
    /// The time of day, to the millisecond: in whole seconds, a soak could be a second short.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    pub fn now(self) -> Time {
        chrono::Utc::now().trunc_subsecs(3)
    }

    /// How long it takes until [`Self::now`] says `at`; nothing if it does already.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    pub fn until(self, at: Time) -> Duration {
        (at - chrono::Utc::now()).to_std().unwrap_or(Duration::ZERO)
    }

    /// This process's own clock, for deadlines: it never goes back.
    #[must_use]
    pub fn instant(self) -> Instant {
        Instant::now()
    }
}
