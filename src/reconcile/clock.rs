//! The one place that reads the time.

use crate::record::state::Time;
use chrono::{SubsecRound, TimeDelta};
use std::time::Duration;
use tokio::time::Instant;

/// Where the time comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(Source);

#[derive(Debug, Clone, Copy, Default)]
enum Source {
    /// The system's clocks.
    #[default]
    System,
    /// This process's own clock, which was set at that instant.
    Set(Time, Instant),
}

impl Clock {
    /// A clock that shows `at` now, and from then on goes as this process's own clock does: a world that steps that one
    /// steps both.
    #[must_use]
    pub fn set(at: Time) -> Self {
        Self(Source::Set(at, Instant::now()))
    }

    /// The time of day, to the millisecond: in whole seconds, a soak could be a second short.
    #[must_use]
    pub fn now(self) -> Time {
        self.exact().trunc_subsecs(3)
    }

    /// How long it takes until [`Self::now`] says `at`; nothing if it does already.
    #[must_use]
    pub fn until(self, at: Time) -> Duration {
        (at - self.exact()).to_std().unwrap_or(Duration::ZERO)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn exact(self) -> Time {
        match self.0 {
            Source::System => chrono::Utc::now(),
            Source::Set(at, since) => at + TimeDelta::from_std(since.elapsed()).unwrap_or(TimeDelta::MAX),
        }
    }

    /// This process's own clock, for deadlines: it never goes back.
    #[must_use]
    pub fn instant(self) -> Instant {
        Instant::now()
    }
}
