//! Which rollouts have answers that nobody has looked at yet.

use super::{Collector, Known};
use crate::manifest::ids::RolloutId;
use crate::plan::evidence::Evidence;
use std::collections::BTreeSet;
use std::mem::take;

impl Collector {
    /// The rollouts with answers that came since the last call: for a tick.
    #[must_use]
    pub fn news(&self) -> BTreeSet<RolloutId> {
        let mut known = self.known();
        known.fresh.clear();
        known.unheard.clear();
        take(&mut known.news)
    }

    /// Those of them that came since the last call of either: for a look besides the tick, which leaves the news there.
    #[must_use]
    pub fn fresh(&self) -> BTreeSet<RolloutId> {
        let mut known = self.known();
        known.unheard.clear();
        take(&mut known.fresh)
    }

    /// Those of the fresh that `is_bad` says so of. Each answer is asked about once, so that many good ones cost little however
    /// often somebody calls; they stay fresh.
    #[must_use]
    pub fn bad_news(&self, is_bad: impl Fn(&RolloutId, &Evidence) -> bool) -> BTreeSet<RolloutId> {
        let known = &mut *self.known();
        let mut bad = take(&mut known.unheard);
        bad.retain(|id| known.by_rollout.get(id).is_some_and(|evidence| is_bad(id, evidence)));
        for id in &bad {
            known.fresh.remove(id);
        }
        bad
    }
}

impl Known {
    /// Takes note of rollouts with news.
    pub(super) fn tell(&mut self, news: BTreeSet<RolloutId>) {
        self.unheard.extend(news.iter().cloned());
        self.fresh.extend(news.iter().cloned());
        self.news.extend(news);
    }
}
