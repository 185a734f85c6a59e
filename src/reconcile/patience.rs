//! How long a task that asks a Git host leaves it alone: longer each time in a row that it comes to nothing.

use crate::forge::host::HostError;
use crate::git::GitError;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// What the host is left alone for at most while it gives no answer.
const LONGEST: Duration = Duration::from_secs(300);

/// What it is left alone for at least, however often it tells of something (attack 72).
const SHORTEST: Duration = Duration::from_secs(1);

/// Waits for a change; for ever where nobody makes one any more.
pub(super) async fn changed<T>(of: &mut watch::Receiver<T>) {
    if of.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the host has told of something since it was looked at, which was just done.
pub(super) async fn rung(of: &mut watch::Receiver<()>) {
    sleep(SHORTEST).await;
    changed(of).await;
}

/// Why nothing came of it this time.
#[derive(Debug, thiserror::Error)]
pub(super) enum Setback {
    /// The host's API.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Its repository.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// How it went so far.
#[derive(Default)]
pub(super) struct Patience {
    /// What was told of last.
    trouble: Option<String>,
    /// How often in a row it came to nothing.
    tries: u32,
    /// What was told of last that is about one thing alone.
    aside: Option<String>,
}

impl Patience {
    /// Whether nothing went wrong the last time.
    pub(super) fn is_fine(&self) -> bool {
        self.tries == 0
    }

    /// How long to wait now; `what` is said of trouble that is new.
    pub(super) fn after(&mut self, done: Result<(), Setback>, poll: Duration, what: &str) -> Duration {
        let Err(setback) = done else {
            (self.trouble, self.tries) = (None, 0);
            return poll;
        };
        let limited = match &setback {
            Setback::Host(HostError::Limited(seconds)) => Some(Duration::from_secs(seconds.unsigned_abs())),
            Setback::Host(_) | Setback::Git(_) => None,
        };
        let text = setback.to_string();
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

    #[tokio::test(start_paused = true)]
    async fn attack_72_a_host_that_tells_without_end_is_looked_at_once_a_second() {
        let (tell, mut told) = watch::channel(());
        let telling = async {
            loop {
                tell.send_replace(());
                sleep(Duration::from_millis(1)).await;
            }
        };
        let mut looks = 0;
        let looking = async {
            loop {
                told.mark_unchanged();
                rung(&mut told).await;
                looks += 1;
            }
        };
        let both = async { tokio::join!(telling, looking) };
        assert!(timeout(Duration::from_millis(5_500), both).await.is_err());
        assert_eq!(looks, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_while_the_host_is_looked_at_is_not_lost() {
        let (tell, mut told) = watch::channel(());
        let begun = Instant::now();
        told.mark_unchanged();
        tell.send_replace(());
        rung(&mut told).await;
        assert_eq!(begun.elapsed(), SHORTEST);
        drop(tell);
        told.mark_unchanged();
        assert!(
            timeout(Duration::from_secs(3600), rung(&mut told)).await.is_err(),
            "nobody tells of anything any more"
        );
    }
}
