//! The one place that reads the time.

use crate::record::state::Time;
use chrono::{DateTime, SubsecRound};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Where the time comes from. Clones tell the same time.
#[derive(Debug, Clone)]
pub struct Clock(Reading);

#[derive(Debug, Clone)]
enum Reading {
    System,
    /// Seconds since 1970, moved by hand.
    Stepped(Arc<AtomicI64>),
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Reading::System)
    }

    /// A clock that stands still until [`Self::step`] moves it.
    #[must_use]
    pub fn stepped(start: Time) -> Self {
        Self(Reading::Stepped(Arc::new(AtomicI64::new(start.timestamp()))))
    }

    /// Moves a stepped clock on; the system's clock takes no orders.
    pub fn step(&self, seconds: i64) {
        if let Reading::Stepped(at) = &self.0 {
            at.fetch_add(seconds, Ordering::SeqCst);
        }
    }

    /// The time of day, to the second, as Kubernetes and our records write it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    pub fn now(&self) -> Time {
        match &self.0 {
            Reading::System => chrono::Utc::now().trunc_subsecs(0),
            Reading::Stepped(at) => DateTime::from_timestamp(at.load(Ordering::SeqCst), 0).unwrap_or_default(),
        }
    }

    /// How long it takes until [`Self::now`] says `at`; nothing if it does already.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    pub fn until(&self, at: Time) -> Duration {
        let now = match &self.0 {
            Reading::System => chrono::Utc::now(),
            Reading::Stepped(_) => self.now(),
        };
        (at - now).to_std().unwrap_or(Duration::ZERO)
    }

    /// This process's own clock, for deadlines: it never goes back.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }
}
