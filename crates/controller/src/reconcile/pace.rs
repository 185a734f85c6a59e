//! When to look at Git, and when to tick.

use super::tick::{Requeue, Term};
use crate::cluster::chance::random;
use crate::plan::input::Git;
use std::time::Duration;
use tokio::time::Instant;

/// When to look at Git, and when to tick.
pub(super) struct Pace {
    poll: Duration,
    pub(super) poll_at: Instant,
    pub(super) wake_at: Instant,
    /// When Git was asked last.
    asked_at: Option<Instant>,
    /// How often in a row Git was away.
    tries: u32,
    /// How many ticks followed each other at once.
    streak: u32,
}

impl Pace {
    /// How many ticks may follow each other at once: somebody who undoes what we do must not keep us busy.
    const STREAK: u32 = 50;
    /// Between two ticks that timers ask for, at least.
    const BREATH: Duration = Duration::from_millis(50);
    /// Far beyond any timer that is needed.
    const DAY: Duration = Duration::from_secs(86_400);

    pub(super) fn new(poll: Duration) -> Self {
        let now = Instant::now();
        Self { poll, poll_at: now, wake_at: now, asked_at: None, tries: 0, streak: 0 }
    }

    pub(super) fn poll_is_due(&self) -> bool {
        Instant::now() >= self.poll_at
    }

    /// Git was asked: again after the poll interval, or, while it is away, sooner at first and not all at the same time.
    pub(super) fn looked(&mut self, git: &Git) {
        let pause = match git {
            Git::Fresh => {
                self.tries = 0;
                self.poll
            }
            Git::Away(_) | Git::Replaced(_) => {
                self.tries = (self.tries + 1).min(10);
                jittered(Duration::from_secs(1 << self.tries).min(self.poll))
            }
        };
        let now = Instant::now();
        self.asked_at = Some(now);
        self.poll_at = now + pause;
    }

    /// Something was pushed: Git is asked at once, but not twice within a second (attack 72).
    pub(super) fn hurry(&mut self) -> Requeue {
        let soonest = self.asked_at.map_or_else(Instant::now, |asked| asked + Duration::from_secs(1));
        self.poll_at = self.poll_at.min(soonest);
        Requeue::Idle
    }

    /// A tick was made: the next one comes at once, in a moment, or when something is due.
    pub(super) fn ticked(&mut self, term: &Term<'_>, next: Requeue) {
        let git = term.git();
        if git != Git::Fresh && self.tries == 0 {
            self.looked(&git);
        }
        self.streak = if next == Requeue::Now { self.streak + 1 } else { 0 };
        let clock = &term.shell.clock;
        let moment = Duration::from_secs(1);
        let pause = match next {
            Requeue::Now if self.streak < Self::STREAK => Duration::ZERO,
            Requeue::Now | Requeue::Soon => moment,
            Requeue::WaitForGit | Requeue::Idle => {
                let now = clock.now();
                match term.wake_at(now) {
                    Some(at) if at > now => clock.until(at).clamp(Self::BREATH, Self::DAY),
                    // It was due, and is not done.
                    Some(_) => moment,
                    None => Self::DAY,
                }
            }
        };
        self.wake_at = Instant::now() + pause;
    }
}

/// Anything between half of it and the whole.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_nanos(random() % nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often Git is asked while somebody tells of a push every tenth of a millisecond, for so long.
    async fn asked_within(seconds: u32) -> u32 {
        let mut pace = Pace::new(Duration::from_secs(3600));
        pace.looked(&Git::Fresh);
        let mut asked = 0;
        for _ in 0..seconds * 10_000 {
            tokio::time::advance(Duration::from_micros(100)).await;
            pace.hurry();
            if pace.poll_is_due() {
                pace.looked(&Git::Fresh);
                asked += 1;
            }
        }
        asked
    }

    #[tokio::test(start_paused = true)]
    async fn attack_72_ten_thousand_webhooks_in_a_second_make_one_poll() {
        assert_eq!(asked_within(1).await, 1);
        assert_eq!(asked_within(5).await, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_is_looked_for_at_once_where_nobody_has_looked_for_a_second() {
        let mut pace = Pace::new(Duration::from_secs(3600));
        pace.looked(&Git::Fresh);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!pace.poll_is_due());
        pace.hurry();
        assert!(pace.poll_is_due());
    }
}
