//! Whose the noes are to requests whose branches are gone, as whoever asks the Git host has found out.

use super::{Collector, Shared};
use crate::manifest::ids::{CommitId, RolloutId};
use crate::plan::evidence::Denial;
use std::sync::Arc;

/// Takes note of whose the no to a request is, by its branch and head.
pub type Inbox = Box<dyn Fn(&RolloutId, (String, CommitId), Denial) + Send + Sync>;

impl Collector {
    /// For the one who asks.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        let shared = Arc::clone(&self.shared);
        Box::new(move |rollout, request, denial| shared.denied(rollout, request, denial))
    }
}

impl Shared {
    fn denied(&self, rollout: &RolloutId, request: (String, CommitId), denial: Denial) {
        let mut known = self.known();
        if known.of(rollout).denials.get(&request) == Some(&denial) {
            return;
        }
        tracing::debug!(%rollout, branch = request.0, ?denial, "asked whose no it is");
        known.of(rollout).denials.insert(request, denial);
        known.tell([rollout.clone()].into());
        drop(known);
        self.woken.notify_one();
    }
}
