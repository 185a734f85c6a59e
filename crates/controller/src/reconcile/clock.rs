//! The one place that reads the time.

use crate::record::state::Time;
use chrono::TimeDelta;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Where the time comes from.
#[derive(Debug, Clone, Default)]
pub struct Clock(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    /// The system's clocks.
    #[default]
    System,
    /// This process's own clock, which was set at that instant, and what its hand has added since.
    Set(Time, Instant, Hand),
}

/// What sets a clock that is not the system's.
#[derive(Debug, Clone, Default)]
pub struct Hand {
    stepped: Arc<AtomicI64>,
    slept: Arc<AtomicU64>,
}

impl Hand {
    /// Sets the clock forward, or back, by so many seconds.
    pub fn step(&self, seconds: i64) {
        self.stepped.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Lets the machine be suspended for so many seconds: the time of day goes on, and this process's own clock does not.
    pub fn suspend(&self, seconds: u32) {
        self.step(seconds.into());
        self.slept.fetch_add(seconds.into(), Ordering::Relaxed);
    }
}

impl Clock {
    /// A clock that shows `at` now, and from then on goes as this process's own clock does: a world that steps that one
    /// steps both.
    #[must_use]
    pub fn set(at: Time) -> Self {
        Self(Source::Set(at, Instant::now(), Hand::default()))
    }

    /// A clock that shows the same now, and has a hand of its own.
    #[must_use]
    pub fn another(&self) -> (Self, Hand) {
        let hand = Hand::default();
        (Self(Source::Set(self.exact(), Instant::now(), hand.clone())), hand)
    }

    /// The time of day, to the millisecond: in whole seconds, a soak could be a second short.
    #[must_use]
    pub fn now(&self) -> Time {
        self.exact().trunc_subsecs(3)
    }

    /// How long it takes until [`Self::now`] says `at`; nothing if it does already.
    #[must_use]
    pub fn until(&self, at: Time) -> Duration {
        (at - self.exact()).to_std().unwrap_or(Duration::ZERO)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn exact(&self) -> Time {
        match &self.0 {
            Source::System => chrono::Utc::now().into(),
            Source::Set(at, since, hand) => {
                let passed = TimeDelta::from_std(since.elapsed()).unwrap_or(TimeDelta::MAX);
                *at + passed + TimeDelta::seconds(hand.stepped.load(Ordering::Relaxed))
            }
        }
    }

    /// This process's own clock, for deadlines: it never goes back. While the machine is suspended it stands still, by which a gap is known.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// The same, but it goes on while the machine is suspended: for what others count down meanwhile.
    #[must_use]
    pub fn boot(&self) -> Instant {
        self.instant()
            + match &self.0 {
                Source::System => suspended(),
                Source::Set(_, _, hand) => Duration::from_secs(hand.slept.load(Ordering::Relaxed)),
            }
    }
}

/// How long this machine has been suspended since it was started, in whole milliseconds: the two clocks are read one after the other.
fn suspended() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let (awake, all) = (read(ClockId::Monotonic), read(ClockId::Boottime));
    let all = all.saturating_sub(awake);
    all - Duration::from_nanos(u64::from(all.subsec_nanos() % 1_000_000))
}
