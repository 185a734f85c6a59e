//! Requests that the host refuses. Each is left alone for a while, longer each time in a row, and keeps no other one waiting.

use crate::forge::host::HostError;
use crate::forge::pull::PullBody;
use crate::manifest::ids::CommitId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What one is left alone for at most.
const LONGEST: Duration = Duration::from_secs(300);

/// How long the host is left alone after so many refusals in a row.
pub(super) fn backoff(poll: Duration, tries: u32) -> Duration {
    poll.saturating_mul(tries).min(LONGEST)
}

struct Refused {
    /// What was asked.
    head: CommitId,
    /// What the host said.
    error: HostError,
    /// How often in a row.
    tries: u32,
    until: Instant,
}

/// By their branches.
#[derive(Default)]
pub(super) struct RequestBackoff(BTreeMap<String, Refused>);

impl RequestBackoff {
    /// What the host said of that one, while it is left alone.
    pub(super) fn of(&self, branch: &str, request: &PullBody) -> Option<HostError> {
        let rest = self.same(branch, request).filter(|rest| Instant::now() < rest.until)?;
        Some(rest.error.clone())
    }

    /// The host has refused it.
    pub(super) fn begin(&mut self, branch: &str, request: &PullBody, error: &HostError, poll: Duration) {
        let tries = self.same(branch, request).map_or(1, |rest| rest.tries.saturating_add(1));
        let until = Instant::now() + backoff(poll, tries);
        let rest = Refused { head: request.head.clone(), error: error.clone(), tries, until };
        self.0.insert(branch.to_owned(), rest);
    }

    /// It went well.
    pub(super) fn end(&mut self, branch: &str) {
        self.0.remove(branch);
    }

    /// Only those are wanted.
    pub(super) fn keep(&mut self, wanted: &BTreeMap<String, PullBody>) {
        self.0.retain(|branch, _| wanted.contains_key(branch));
    }

    fn same(&self, branch: &str, request: &PullBody) -> Option<&Refused> {
        self.0.get(branch).filter(|rest| rest.head == request.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::pull::Text;
    use crate::record::fixture::commit;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_tried_ever_less_often_until_something_else_is_asked() {
        let text = Text { title: String::new(), body: String::new() };
        let request = |n| PullBody { base: "main".to_owned(), head: commit(n), text: text.clone(), rule: None };
        let error = HostError::Refused { doing: "POST x".to_owned(), status: 422, why: "no".to_owned() };
        let (mut request_backoff, poll, asked) = (RequestBackoff::default(), Duration::from_secs(60), request(1));
        for seconds in [60, 120, 180, 240, 300, 300] {
            assert_eq!(request_backoff.of("b", &asked), None);
            request_backoff.begin("b", &asked, &error, poll);
            advance(Duration::from_secs(seconds - 1)).await;
            assert_eq!(request_backoff.of("b", &asked), Some(error.clone()), "{seconds}");
            assert_eq!((request_backoff.of("b", &request(2)), request_backoff.of("c", &asked)), (None, None));
            advance(Duration::from_secs(1)).await;
        }
        request_backoff.begin("b", &asked, &error, poll);
        request_backoff.end("b");
        assert_eq!(request_backoff.of("b", &asked), None);
        request_backoff.begin("b", &asked, &error, poll);
        request_backoff.keep(&BTreeMap::new());
        assert_eq!(request_backoff.of("b", &asked), None);
    }
}
