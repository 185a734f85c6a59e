//! Questions of checks: each asked of its provider in a task of its own, and once for all rollouts that want to know the same.

use super::{Collector, Known, PATIENCE};
use crate::analysis::judge::Inquiry;
use crate::analysis::provider::ask;
use crate::analysis::reading::Received;
use crate::manifest::ids::RolloutId;
use crate::record::state::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is on its way, and to whom.
#[derive(Default)]
pub(super) struct UnderWay {
    by_rollout: BTreeMap<RolloutId, BTreeSet<Inquiry>>,
    /// Equal questions are one: who, what, from when and until when. Those to a webhook name their run, and so are never equal.
    waiting: BTreeMap<Inquiry, BTreeSet<RolloutId>>,
}

/// Whether a question has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// Nobody has asked it yet.
    First,
    /// Its answer is on its way to another rollout, and comes to this one as well.
    Along,
    /// This rollout waits for an answer to it, or to an older question of the same check.
    Already,
}

impl UnderWay {
    fn begin(&mut self, rollout: &RolloutId, question: &Inquiry) -> Begun {
        let asked = self.by_rollout.entry(rollout.clone()).or_default();
        if asked.iter().any(|other| other.is_like(question)) {
            return Begun::Already;
        }
        asked.insert(question.clone());
        let waiting = self.waiting.entry(question.clone()).or_default();
        waiting.insert(rollout.clone());
        if waiting.len() == 1 { Begun::First } else { Begun::Along }
    }

    /// The answer is there: for these.
    fn end(&mut self, question: &Inquiry) -> BTreeSet<RolloutId> {
        let rollouts = self.waiting.remove(question).unwrap_or_default();
        for rollout in &rollouts {
            let Some(asked) = self.by_rollout.get_mut(rollout) else { continue };
            asked.remove(question);
            if asked.is_empty() {
                self.by_rollout.remove(rollout);
            }
        }
        rollouts
    }
}

impl Known {
    fn keep(&mut self, question: &Inquiry, received: &Received, now: Time) {
        let rollouts = self.measuring.end(question);
        for rollout in &rollouts {
            self.of(rollout).readings.keep(received.clone(), now);
        }
        self.tell(rollouts);
    }
}

impl Collector {
    /// Asks the providers what a rollout's checks want to know. While an older question of the same check is on its way it
    /// waits: a provider that is slow is not asked twice at a time. Nor is one asked what it is being asked for another rollout.
    pub fn measure(&self, rollout: &RolloutId, questions: &[Inquiry]) {
        for question in questions {
            let begun = self.known().measuring.begin(rollout, question);
            match begun {
                Begun::First => self.put(question.clone()),
                Begun::Along => tracing::debug!(%rollout, provider = %question.provider(), "asked for another as well"),
                Begun::Already => {}
            }
        }
    }

    fn put(&self, question: Inquiry) {
        let provider = self.providers.get(question.provider()).cloned();
        let (clock, shared) = (self.clock.clone(), Arc::clone(&self.shared));
        self.spawn(tracing::info_span!("question", provider = %question.provider()), async move {
            let _turn = shared.measuring.take(question.provider()).await;
            let received = ask(provider.as_ref(), question.clone(), PATIENCE).await;
            tracing::debug!(provider = %question.provider(), ?received, "measured");
            shared.known().keep(&question, &received, clock.now());
            shared.woken.notify_one();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::call::fixture::call;
    use crate::analysis::call::{Call, CallKind};
    use crate::analysis::judge::Range;
    use crate::analysis::provider::{Measures, ProviderClient};
    use crate::analysis::reading::{Reading, Samples};
    use crate::cluster::client::Cluster;
    use crate::manifest::duration::Span;
    use crate::reconcile::clock::Clock;
    use crate::reconcile::evidence::Providers;
    use futures::future::{BoxFuture, FutureExt, pending};
    use std::sync::Mutex;
    use tidegate_world::kube_api::KubeApi;
    use tokio::sync::{Notify, Semaphore};

    fn rollout(name: &str) -> RolloutId {
        format!("shop/{name}").parse().unwrap()
    }

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(seconds, 0).unwrap()
    }

    fn range(provider: &str, query: &str, until: i64) -> Range {
        let (provider, interval) = (provider.parse().unwrap(), Span::from_secs(60));
        Range { provider, query: query.to_owned(), from: at(60), until: at(until), interval }
    }

    fn question(provider: &str, query: &str, until: i64) -> Inquiry {
        Inquiry::Range(range(provider, query, until))
    }

    /// The answer: at the last moment the number of letters of the query.
    fn said(range: &Range) -> Reading<Samples> {
        let letters = u32::try_from(range.query.len()).unwrap();
        Reading::Said([(range.until, f64::from(letters))].into())
    }

    /// Keeps what it is asked, and answers when it is let.
    struct Counting {
        asked: Mutex<Vec<Range>>,
        answers: Semaphore,
    }

    impl Measures for Counting {
        fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<Samples>> {
            self.asked.lock().unwrap().push(range.clone());
            async move {
                self.answers.acquire().await.unwrap().forget();
                said(range)
            }
            .boxed()
        }
    }

    /// Never answers.
    struct Hanging;

    impl Measures for Hanging {
        fn read<'a>(&'a self, _: &'a Range) -> BoxFuture<'a, Reading<Samples>> {
            pending().boxed()
        }
    }

    struct World {
        counting: Arc<Counting>,
        collector: Collector,
        woken: Arc<Notify>,
    }

    impl World {
        /// With the provider `main`, which lets so many questions have their answers, and `slow`.
        async fn answering(answers: usize) -> Self {
            let clock = Clock::default();
            let (home, instance) = ("default".parse().unwrap(), "prod".parse().unwrap());
            let cluster = Cluster::over(KubeApi::new(*clock.now()).caller("it"), home, &instance).await.unwrap();
            let counting = Arc::new(Counting { asked: Mutex::default(), answers: Semaphore::new(answers) });
            let hanging = ProviderClient::Prometheus(Arc::new(Hanging));
            let main = ProviderClient::Prometheus(Arc::clone(&counting) as Arc<dyn Measures>);
            let providers = Providers::from([("main".parse().unwrap(), main), ("slow".parse().unwrap(), hanging)]);
            let woken = Arc::new(Notify::new());
            let collector = Collector::new(cluster, providers, clock, Arc::clone(&woken));
            Self { counting, collector, woken }
        }

        fn asked(&self) -> usize {
            self.counting.asked.lock().unwrap().len()
        }

        /// Waits until all of these have an answer to their question.
        async fn answered<'a>(&self, all: impl IntoIterator<Item = (&'a RolloutId, Range)>) {
            for (id, range) in all {
                loop {
                    let found = self.collector.of(id).readings.samples.get(&range).map(|found| found.reading.clone());
                    if let Some(found) = found {
                        assert_eq!(found, said(&range), "{id}");
                        break;
                    }
                    self.woken.notified().await;
                }
            }
        }
    }

    #[tokio::test]
    async fn what_two_want_to_know_is_asked_once_and_both_are_told() {
        let world = World::answering(0).await;
        let [one, other, third] = ["one", "other", "third"].map(rollout);
        let same = question("main", "errors", 120);
        // Two checks of one rollout may want to know the same, too.
        world.collector.measure(&one, &[same.clone(), same.clone()]);
        world.collector.measure(&other, &[same]);
        world.collector.measure(&third, &[question("main", "errors", 180), question("main", "speed", 120)]);
        world.counting.answers.add_permits(3);
        let [errors, later, speed] =
            [("errors", 120), ("errors", 180), ("speed", 120)].map(|(q, t)| range("main", q, t));
        world.answered([(&one, errors.clone()), (&other, errors.clone()), (&third, later), (&third, speed)]).await;
        assert_eq!(world.asked(), 3, "another range, and another query, are other questions");
        assert_eq!(world.collector.news(), [one.clone(), other, third].into());

        // What is asked again, later, is asked: an old answer is none to it.
        world.counting.answers.add_permits(1);
        let fourth = rollout("fourth");
        world.collector.measure(&fourth, &[question("main", "errors", 120)]);
        world.answered([(&fourth, errors)]).await;
        assert_eq!(world.asked(), 4);
    }

    #[tokio::test]
    async fn c_34_a_thousand_with_questions_of_their_own_are_answered_beside_a_provider_that_hangs() {
        const ROLLOUTS: usize = 1_000;
        let world = World::answering(2 * ROLLOUTS).await;
        let ids: Vec<RolloutId> = (0..ROLLOUTS).map(|n| rollout(&format!("r{n}"))).collect();
        let own = |id: &RolloutId| range("main", id.name.as_str(), 120);
        for id in &ids {
            let hangs = question("slow", id.name.as_str(), 120);
            world.collector.measure(id, &[hangs, question("slow", "all", 120), Inquiry::Range(own(id))]);
        }
        world.answered(ids.iter().map(|id| (id, own(id)))).await;
        assert_eq!(world.asked(), ROLLOUTS);
    }

    #[test]
    fn of_one_check_one_question_is_under_way() {
        let (mut known, a, b) = (Known::default(), rollout("a"), rollout("b"));
        let [old, new] = [60, 90].map(|seconds| Inquiry::Call(call(at(seconds))));
        let gate = Inquiry::Call(Call { asks: CallKind::Gate, ..call(at(60)) });
        assert_eq!(known.measuring.begin(&a, &old), Begun::First, "nothing is under way");
        assert_eq!([&old, &new].map(|question| known.measuring.begin(&a, question)), [Begun::Already; 2]);
        assert_eq!([&a, &b].map(|id| known.measuring.begin(id, &gate)), [Begun::First, Begun::Along]);
        let away = Received::Verdict(call(at(60)), Reading::Away("refused".to_owned()));
        known.keep(&old, &away, at(91));
        assert_eq!(known.measuring.begin(&a, &new), Begun::First);
        assert_eq!((known.news.clone(), known.by_rollout.len()), ([a.clone()].into(), 1), "it was told, and no other");
        for question in [&gate, &new] {
            known.keep(question, &away, at(92));
        }
        assert!(known.measuring.by_rollout.is_empty() && known.measuring.waiting.is_empty(), "nothing is left of it");
    }
}
