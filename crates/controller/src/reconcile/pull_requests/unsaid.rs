//! Comments that lead people on. Each is said once, when all else of a look is done but labels. One that the host fails to take for a moment is tried
//! again, ever less often.

use super::Worker;
use super::request_backoff::backoff;
use crate::forge::host::HostError;
use crate::forge::pull;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Clone)]
struct Remark {
    /// On which pull request.
    number: u64,
    what: String,
    /// Whether a look has ended without it: the host may have taken it though it did not say so, or somebody who led meanwhile have said it.
    late: bool,
}

/// What people have not been told yet.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    left: VecDeque<Remark>,
    /// How often in a row the host took none.
    tries: u32,
    /// Until when it is left alone after that.
    until: Option<Instant>,
}

impl Unsaid {
    /// People shall be told that.
    pub(super) fn add(&mut self, number: u64, what: String) {
        self.left.push_back(Remark { number, what, late: false });
    }

    /// Whether there is something to say now.
    pub(super) fn is_due(&self) -> bool {
        !self.left.is_empty() && self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// The host took the first one, or never will.
    fn done(&mut self) {
        self.left.pop_front();
        (self.tries, self.until) = (0, None);
    }

    /// It did not take the first one for a moment, which is the last at the next try: none keeps the others waiting.
    fn failed(&mut self, poll: Duration) {
        self.tries = self.tries.saturating_add(1);
        self.until = Some(Instant::now() + backoff(poll, self.tries));
        self.left.rotate_left(1);
    }
}

impl Worker {
    /// Says what is due.
    pub(super) async fn remark(&mut self) {
        while self.unsaid.is_due() && self.setting.lead.held().is_some() {
            let Some(remark) = self.unsaid.left.front().cloned() else { break };
            match self.say_once(&remark).await {
                Ok(()) => self.unsaid.done(),
                Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) => {
                    tracing::debug!(number = remark.number, %error, "a comment is not said");
                    self.unsaid.done();
                }
                Err(error) => {
                    tracing::debug!(number = remark.number, %error, "a comment is said later");
                    self.unsaid.failed(self.setting.poll);
                }
            }
        }
        self.unsaid.left.iter_mut().for_each(|remark| remark.late = true);
    }

    async fn say_once(&mut self, Remark { number, what, late }: &Remark) -> Result<(), HostError> {
        let host = &mut self.setting.host;
        if *late && host.said(*number, what).await?.is_some() {
            return Ok(());
        }
        host.mention(*number, what).await
    }
}

/// What is said of a no that does not count: a team that it tells of is not called.
pub(super) fn not_authorized(why: &str) -> String {
    format!("{}, so this is no answer, and it is opened again.", pull::escaped(why))
}
