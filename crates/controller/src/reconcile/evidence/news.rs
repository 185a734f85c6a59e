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
        known.unexamined.clear();
        take(&mut known.news)
    }

    /// Those of them that came since the last call of either: for a look besides the tick, which leaves the news there.
    #[must_use]
    pub fn fresh(&self) -> BTreeSet<RolloutId> {
        let mut known = self.known();
        known.unexamined.clear();
        take(&mut known.fresh)
    }

    /// Those of the fresh that `is_bad` says so of. Each answer is asked about once, so that many good ones cost little however
    /// often somebody calls; they stay fresh.
    #[must_use]
    pub fn bad_news(&self, is_bad: impl Fn(&RolloutId, &Evidence) -> bool) -> BTreeSet<RolloutId> {
        let known = &mut *self.known();
        let mut bad = take(&mut known.unexamined);
        bad.retain(|id| known.by_rollout.get(id).is_some_and(|evidence| is_bad(id, evidence)));
        for id in &bad {
            known.fresh.remove(id);
        }
        bad
    }

    /// Takes note that a rollout is planned with all of its answers so far: whatever is bad of them its plan does.
    pub fn examined(&self, id: &RolloutId) {
        self.known().unexamined.remove(id);
    }
}

impl Known {
    /// Takes note of rollouts with news.
    pub(super) fn tell(&mut self, news: BTreeSet<RolloutId>) {
        self.unexamined.extend(news.iter().cloned());
        self.fresh.extend(news.iter().cloned());
        self.news.extend(news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::client::Cluster;
    use crate::reconcile::clock::Clock;
    use crate::reconcile::evidence::Providers;
    use std::cell::RefCell;
    use std::sync::Arc;
    use tidegate_world::kube_api::KubeApi;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn each_answer_is_asked_about_once_and_a_tick_sees_all() {
        let clock = Clock::default();
        let (home, instance) = ("default".parse().unwrap(), "prod".parse().unwrap());
        let cluster = Cluster::over(KubeApi::new(*clock.now()).caller("it"), home, &instance).await.unwrap();
        let collector = Collector::new(cluster, Providers::new(), clock, Arc::new(Notify::new()));
        let [bad, good] = ["shop/bad", "shop/good"].map(|id| id.parse::<RolloutId>().unwrap());
        let comes = |id: &RolloutId| {
            let mut known = collector.known();
            known.of(id);
            known.tell([id.clone()].into());
        };
        let asked = RefCell::new(Vec::new());
        let bad_news = || {
            collector.bad_news(|id, _| {
                asked.borrow_mut().push(id.name.to_string());
                *id == bad
            })
        };
        [&bad, &good].into_iter().for_each(comes);
        assert_eq!((bad_news(), bad_news()), ([bad.clone()].into(), [].into()));
        assert_eq!(asked.take(), ["bad", "good"]);
        // Nobody has looked at the other one.
        assert_eq!(collector.fresh(), [good.clone()].into());
        comes(&good);
        assert_eq!((bad_news(), asked.take()), ([].into(), vec!["good".to_owned()]));
        comes(&bad);
        collector.examined(&bad);
        assert_eq!((bad_news(), collector.fresh()), ([].into(), [bad.clone(), good.clone()].into()));
        comes(&bad);
        assert_eq!(collector.news(), [bad.clone(), good.clone()].into());
        assert_eq!((bad_news(), collector.fresh()), ([].into(), [].into()));
    }
}
