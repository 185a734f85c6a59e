//! How long a task that asks a Git host leaves it alone: longer each time in a row that it comes to nothing.

use crate::forge::host::HostError;
use crate::git::GitError;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// What the host is left alone for at most while it gives no answer.
const LONGEST: Duration = Duration::from_secs(300);

/// What it is left alone for at least after a look, however often it tells of something (attack 72): at first, and at last while it goes on.
/// Anybody can make it tell of something, and each look may be taken off what it allows us.
const SHORTEST: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_secs(30);

/// Waits for a change; for ever where nobody makes one any more.
pub(super) async fn changed<T>(of: &mut watch::Receiver<T>) {
    if of.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Wakes whoever looks at the host when that tells of something: at once where it was quiet, and ever later while it goes on.
pub(super) struct WakeUp {
    told: watch::Receiver<()>,
    /// When it was looked at last because it had told of something.
    last: Option<Instant>,
    /// What it is left alone for after that.
    pause: Duration,
}

impl WakeUp {
    /// Nothing told yet.
    pub(super) fn new(told: watch::Receiver<()>) -> Self {
        Self { told, last: None, pause: SHORTEST }
    }

    /// The host is looked at now, for whatever reason: what it told before is no news after that.
    pub(super) fn heed(&mut self) {
        if !self.told.has_changed().unwrap_or_default() {
            return;
        }
        self.told.mark_unchanged();
        let quiet = self.last.is_none_or(|last| last.elapsed() >= self.pause + BUSY);
        self.pause = if quiet { SHORTEST } else { (self.pause * 2).min(BUSY) };
        self.last = Some(Instant::now());
    }

    /// Waits until the host has told of something since it was looked at, which was just done.
    pub(super) async fn rung(&mut self) {
        sleep(SHORTEST).await;
        if let Some(last) = self.last {
            sleep_until(last + self.pause).await;
        }
        changed(&mut self.told).await;
        // It is heeded with the look.
        self.told.mark_changed();
    }
}

/// Why nothing came of it this time.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The host's API.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Its repository.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// How it went so far.
#[derive(Default)]
pub(super) struct Backoff {
    /// What was told of last.
    trouble: Option<String>,
    /// How often in a row it came to nothing.
    tries: u32,
    /// What was told of last that is about one thing alone.
    aside: Option<String>,
}

impl Backoff {
    /// Whether nothing went wrong the last time.
    pub(super) fn is_fine(&self) -> bool {
        self.tries == 0
    }

    /// How long to wait now; `what` is said of trouble that is new.
    pub(super) fn after(&mut self, done: Result<(), Error>, poll: Duration, what: &str) -> Duration {
        let Err(error) = done else {
            (self.trouble, self.tries) = (None, 0);
            return poll;
        };
        let limited = match &error {
            Error::Host(HostError::Limited(seconds)) => Some(Duration::from_secs(seconds.unsigned_abs())),
            Error::Host(_) | Error::Git(_) => None,
        };
        let text = error.to_string();
        if self.trouble.as_ref() != Some(&text) && limited.is_none() {
            tracing::warn!(error = text, "{what}; tries again");
        }
        self.trouble = Some(text);
        self.tries = (self.tries + 1).min(10);
        limited.unwrap_or_else(|| (poll * self.tries).min(LONGEST))
    }
    /// Takes note of trouble that is about one thing alone: all else goes on, and as often as before. `what` is said of it if it is new.
    pub(super) fn aside(&mut self, trouble: Option<&HostError>, what: &str) {
        let text = trouble.map(HostError::to_string);
        if let Some(error) = text.as_ref().filter(|_| self.aside != text) {
            tracing::warn!(error, "{what}; tries again");
        }
        self.aside = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    /// How often the host was looked at within that time, while it tells of something so often.
    async fn looks(wake_up: &mut WakeUp, tell: &watch::Sender<()>, often: Duration, within: Duration) -> u32 {
        let telling = async {
            loop {
                tell.send_replace(());
                sleep(often).await;
            }
        };
        let mut looks = 0;
        let looking = async {
            loop {
                wake_up.rung().await;
                wake_up.heed();
                looks += 1;
            }
        };
        let both = async { tokio::join!(telling, looking) };
        assert!(timeout(within, both).await.is_err());
        looks
    }

    #[tokio::test(start_paused = true)]
    async fn attack_72_a_host_that_tells_without_end_is_looked_at_ever_less_often() {
        let (tell, told) = watch::channel(());
        let mut wake_up = WakeUp::new(told);
        let often = Duration::from_millis(100);
        // After 1, 2, 4, 8 and 16 seconds more, ...
        assert_eq!(looks(&mut wake_up, &tell, often, Duration::from_millis(32_500)).await, 6);
        // ... and then each half a minute.
        assert_eq!(looks(&mut wake_up, &tell, often, Duration::from_secs(3600)).await, 120);
    }

    #[tokio::test(start_paused = true)]
    async fn attack_72_nobody_gets_many_looks_by_waiting_between_words() {
        for seconds in 1..120 {
            let (tell, told) = watch::channel(());
            let (mut wake_up, often) = (WakeUp::new(told), Duration::from_secs(seconds));
            let looks = looks(&mut wake_up, &tell, often, Duration::from_secs(3600)).await;
            assert!(looks <= 125, "{looks} in an hour with a word each {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_after_a_quiet_time_is_looked_at_at_once() {
        let (tell, told) = watch::channel(());
        let mut wake_up = WakeUp::new(told);
        looks(&mut wake_up, &tell, Duration::from_secs(1), Duration::from_secs(600)).await;
        let mut waited = Vec::new();
        for quiet in [60, 0, 0, 60, 0].map(Duration::from_secs) {
            wake_up.heed();
            let telling = async {
                sleep(quiet).await;
                tell.send_replace(());
                Instant::now()
            };
            let ((), told) = tokio::join!(wake_up.rung(), telling);
            waited.push(told.elapsed());
        }
        assert_eq!(waited, [0, 1, 2, 0, 1].map(Duration::from_secs));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_while_the_host_is_looked_at_is_not_lost() {
        let (tell, told) = watch::channel(());
        let (mut wake_up, begun) = (WakeUp::new(told), Instant::now());
        wake_up.heed();
        tell.send_replace(());
        wake_up.rung().await;
        assert_eq!(begun.elapsed(), SHORTEST);
        wake_up.heed();
        drop(tell);
        assert!(timeout(Duration::from_secs(3600), wake_up.rung()).await.is_err(), "nobody tells of anything any more");
    }
}
