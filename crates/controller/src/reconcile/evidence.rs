//! Evidence: dry runs asked of the API server and questions of checks asked of providers, each in a task of its own, and what
//! came of writes and of requests to people that did not succeed.
//!
//! A tick never waits for any of it. An answer is kept with its exact question, by rollout, until that rollout is settled.

mod denied;
mod look;
mod news;
mod questions;
mod review_fetcher;
mod signature_verifier;

pub use denied::Inbox;
pub use review_fetcher::ReviewFetcher;
pub use signature_verifier::SignatureVerifier;

use self::questions::UnderWay;
use super::caught::of_rollout;
use super::clock::Clock;
use crate::analysis::provider::ProviderClient;
use crate::cluster::client::Cluster;
use crate::gate::proof::ProofQuestion;
use crate::manifest::ids::{ProviderName, RolloutId};
use crate::manifest::object::{APPLIED, Object, ObjectRef};
use crate::plan::action::{Action, SecretCopy, Verb};
use crate::plan::evidence::{Answer, Entangled, Evidence, Need, Question};
use crate::record::state::Time;
use crate::report::metrics::outcome_label;
use crate::workload::live::{Expects, LiveState, WriteOutcome};
use crate::workload::lookup::Lookup;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};

/// How many questions may be under way at once: to the API server, and to each provider.
const AT_ONCE: usize = 8;
/// For how long a provider may think.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long a provider is not asked again that said nothing.
const AGAIN: TimeDelta = TimeDelta::seconds(5);
/// How many answers of one rollout are kept, of each sort; where a plan asks for more at once, twice as many as that: what it asks beside may be
/// answered already, and without those answers it would ask again.
const KEPT: usize = 256;

/// For how long a write that failed is left alone, if nothing tells it from the next one like it.
const REST: TimeDelta = TimeDelta::seconds(10);
/// What stands for the content of a delete, and of a migration of field managers.
const DELETE: &str = "delete";
const MIGRATE: &str = "migrate";

/// For how long an answer holds that says nothing about the content: then it is asked again. `None`: for good.
fn lifetime(outcome: &WriteOutcome) -> Option<TimeDelta> {
    match outcome {
        WriteOutcome::Done(_) | WriteOutcome::Refused(_) => None,
        WriteOutcome::Retriable(_) | WriteOutcome::Stale(_) => Some(TimeDelta::seconds(5)),
        WriteOutcome::Conflict { .. } | WriteOutcome::MissingKind(_) | WriteOutcome::Forbidden(_) => {
            Some(TimeDelta::seconds(60))
        }
    }
}

/// Who answers the questions of checks, by the name that the installation gives it.
pub type Providers = BTreeMap<ProviderName, ProviderClient>;

/// What is known, and what is being asked.
pub struct Collector {
    cluster: Cluster,
    providers: Providers,
    clock: Clock,
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
    review_fetcher: Option<Arc<ReviewFetcher>>,
    signature_verifier: Option<Arc<SignatureVerifier>>,
}

struct Shared {
    known: Mutex<Known>,
    turns: Semaphore,
    /// A provider that hangs keeps no dry run waiting.
    measuring: Turns,
    /// Told of each answer.
    woken: Arc<Notify>,
}

#[derive(Default)]
struct Known {
    by_rollout: BTreeMap<RolloutId, Arc<Evidence>>,
    /// What is on its way.
    asked: BTreeSet<Question>,
    /// How many answers a rollout has asked for at once, where that is more than usual.
    most: BTreeMap<RolloutId, usize>,
    looking: BTreeSet<(RolloutId, Lookup)>,
    measuring: UnderWay,
    attesting: BTreeSet<(RolloutId, ProofQuestion)>,
    /// What was applied in a dry run whose answer does not hold for good.
    again: BTreeMap<Question, (RolloutId, Need, Expects)>,
    /// Rollouts with news since a tick looked at them, since anybody did, and since anybody asked whether they are bad.
    news: BTreeSet<RolloutId>,
    fresh: BTreeSet<RolloutId>,
    unexamined: BTreeSet<RolloutId>,
}

impl Collector {
    /// Nothing known; `woken` is told of each answer.
    #[must_use]
    pub fn new(cluster: Cluster, providers: Providers, clock: Clock, woken: Arc<Notify>) -> Self {
        let (turns, measuring) = (Semaphore::new(AT_ONCE), Turns::of(providers.keys()));
        let shared = Shared { known: Mutex::default(), turns, measuring, woken };
        let (shared, tasks) = (Arc::new(shared), Mutex::default());
        Self { cluster, providers, clock, shared, tasks, review_fetcher: None, signature_verifier: None }
    }

    /// What is known about a rollout.
    #[must_use]
    pub fn of(&self, rollout: &RolloutId) -> Arc<Evidence> {
        self.known().by_rollout.get(rollout).cloned().unwrap_or_default()
    }

    /// Asks what a rollout wants to know, unless it is being asked already. Each question is about `live` as it was planned
    /// with: one about an older object is not asked.
    pub fn ask(&self, rollout: &RolloutId, needs: &[Need], live: &LiveState) {
        self.known().expect_answers(rollout, needs.len());
        for need in needs {
            let object = live.get(&need.question.target);
            let version = object.and_then(Object::resource_version);
            if version != need.question.over.as_deref() {
                continue;
            }
            let expects = match (object.and_then(Object::uid), version) {
                (Some(uid), Some(version)) => {
                    Expects::Version { uid: uid.to_owned(), resource_version: version.to_owned() }
                }
                _ => Expects::Absent,
            };
            self.send(rollout, need, &expects);
        }
    }

    fn send(&self, rollout: &RolloutId, need: &Need, expects: &Expects) {
        if !self.known().asked.insert(need.question.clone()) {
            return;
        }
        let (cluster, clock, shared) = (self.cluster.clone(), self.clock.clone(), Arc::clone(&self.shared));
        let (rollout, need, expects) = (rollout.clone(), need.clone(), expects.clone());
        self.spawn(of_rollout(&rollout), async move {
            let _turn = shared.turns.acquire().await;
            let outcome = cluster.dry_run(&need.object, &expects).await;
            tracing::debug!(%rollout, object = %need.question.target, ?expects, answer = outcome_label(&outcome), "dry run");
            shared.known().take(rollout, need, expects, Answer { outcome, at: clock.now() });
            shared.woken.notify_one();
        });
    }

    fn spawn(&self, whose: Span, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task.instrument(whose));
    }

    /// Forgets or asks again what does not hold any more. Answers that people can change (a right, a field's owner) are
    /// replaced only when the new one is there, so that what is shown of them does not flicker.
    pub fn age(&self, now: Time) {
        let due: Vec<(RolloutId, Need, Expects)> = {
            let mut known = self.known();
            let mut news = BTreeSet::new();
            let gone = |answer: &Answer| {
                matches!(answer.outcome, WriteOutcome::Retriable(_) | WriteOutcome::Stale(_)) && expired(answer, now)
            };
            for (rollout, evidence) in &mut known.by_rollout {
                if evidence.dry_runs.values().any(gone) || evidence.readings.due(AGAIN).is_some_and(|at| at <= now) {
                    let evidence = Arc::make_mut(evidence);
                    evidence.dry_runs.retain(|_, answer| !gone(answer));
                    evidence.readings.age(AGAIN, now);
                    news.insert(rollout.clone());
                }
            }
            known.tell(news);
            let expired = |(question, (rollout, _, _)): &(&Question, &(RolloutId, Need, Expects))| {
                let answer = known.by_rollout.get(rollout).and_then(|evidence| evidence.dry_runs.get(question));
                answer.is_some_and(|answer| expired(answer, now))
            };
            known.again.iter().filter(expired).map(|(_, again)| again.clone()).collect()
        };
        for (rollout, need, expects) in due {
            self.send(&rollout, &need, &expects);
        }
    }

    /// When [`Self::age`] has something to do.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let known = self.known();
        let all = known.by_rollout.values();
        let answers = all.clone().flat_map(|evidence| evidence.dry_runs.values());
        let answers = answers.filter_map(|answer| Some(answer.at + lifetime(&answer.outcome)?));
        let writes = all.clone().flat_map(|evidence| evidence.writes.iter());
        let rests = writes.filter(|((_, what), _)| [DELETE, MIGRATE, SecretCopy::CONTENT].contains(&what.as_str()));
        let rests = rests.map(|(_, answer)| answer.at + REST);
        let readings = all.filter_map(|evidence| evidence.readings.due(AGAIN));
        answers.chain(rests).chain(readings).min()
    }

    /// Takes note of what came of a write.
    pub fn wrote(&self, action: &Action, outcome: &WriteOutcome) {
        let key = key_of(action);
        let mut known = self.known();
        if let Verb::CopySecret(copy) = &action.verb {
            known.of(&action.rollout).looked.retain(|lookup, _| !look::is_news(lookup, copy, outcome));
        }
        match outcome {
            WriteOutcome::Done(_) => {
                let evidence = known.by_rollout.get_mut(&action.rollout);
                if let Some(evidence) = evidence.filter(|evidence| !evidence.writes.is_empty()) {
                    Arc::make_mut(evidence).writes.retain(|(object, _), _| *object != key.0);
                }
            }
            WriteOutcome::Stale(_) => {}
            WriteOutcome::Conflict { .. }
            | WriteOutcome::Refused(_)
            | WriteOutcome::MissingKind(_)
            | WriteOutcome::Forbidden(_)
            | WriteOutcome::Retriable(_) => {
                let answer = Answer { outcome: outcome.clone(), at: self.clock.now() };
                let room = known.room(&action.rollout);
                let writes = &mut known.of(&action.rollout).writes;
                writes.insert(key, answer);
                if writes.len() > room {
                    drop_oldest(writes);
                }
            }
        }
    }

    /// Takes note of a run's change on main that cannot be undone by itself.
    pub fn entangled(&self, rollout: &RolloutId, entangled: Entangled) {
        let mut known = self.known();
        known.of(rollout).entangled = Some(entangled);
        known.tell([rollout.clone()].into());
    }

    /// Whether a write that no digest tells apart (a delete, a migration) failed so recently that it is left alone now.
    #[must_use]
    pub fn rests(&self, action: &Action, now: Time) -> bool {
        if matches!(action.verb, Verb::Apply { .. }) {
            return false;
        }
        let known = self.known();
        let failed = known.by_rollout.get(&action.rollout).and_then(|evidence| evidence.writes.get(&key_of(action)));
        failed.is_some_and(|answer| now < answer.at + REST)
    }

    /// Forgets every answer, as their times are of a clock that has been set back since; but not what is on its way, and what hooks were told.
    pub fn forget(&self) {
        let mut known = self.known();
        for evidence in known.by_rollout.values_mut() {
            let readings = evidence.readings.notified().unwrap_or_default();
            *evidence = Arc::new(Evidence { readings, ..Evidence::default() });
        }
        known.again.clear();
    }

    /// Forgets everything about a rollout that is gone.
    pub fn gone(&self, rollout: &RolloutId) {
        self.known().forget(rollout);
    }

    /// Forgets everything about a rollout that is settled, but of what was told, and of what is looked up again and again.
    pub fn settled(&self, rollout: &RolloutId, watched: &BTreeSet<Lookup>) {
        let mut known = self.known();
        let Some(before) = known.forget(rollout) else { return };
        let looked = before.looked.iter().filter(|(lookup, _)| watched.contains(lookup));
        let looked: BTreeMap<_, _> = looked.map(|(lookup, found)| (lookup.clone(), found.clone())).collect();
        let told = before.readings.notified();
        if told.is_some() || !looked.is_empty() {
            let kept = Evidence { readings: told.unwrap_or_default(), looked, ..Evidence::default() };
            known.by_rollout.insert(rollout.clone(), Arc::new(kept));
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.known()
    }
}

/// How many questions each provider may be asked at once: one that hangs keeps no other waiting.
struct Turns(BTreeMap<ProviderName, Semaphore>);

impl Turns {
    fn of<'a>(providers: impl Iterator<Item = &'a ProviderName>) -> Self {
        Self(providers.map(|provider| (provider.clone(), Semaphore::new(AT_ONCE))).collect())
    }

    /// Waits for a turn; whoever is not there needs none.
    async fn take(&self, provider: &ProviderName) -> Option<SemaphorePermit<'_>> {
        self.0.get(provider)?.acquire().await.ok()
    }
}

impl Shared {
    /// What is in it is never left half changed, so a panic while it was held does no harm.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What is known about a rollout, to be changed: who plans with it keeps what it was.
    fn of(&mut self, rollout: &RolloutId) -> &mut Evidence {
        Arc::make_mut(self.by_rollout.entry(rollout.clone()).or_default())
    }

    fn forget(&mut self, rollout: &RolloutId) -> Option<Arc<Evidence>> {
        self.most.remove(rollout);
        let evidence = self.by_rollout.remove(rollout)?;
        self.again.retain(|_, (of, _, _)| of != rollout);
        Some(evidence)
    }

    /// Makes room for what a plan asks: all of one set, and all of a version beside it.
    fn expect_answers(&mut self, rollout: &RolloutId, asked: usize) {
        if asked * 2 > self.room(rollout) {
            self.most.insert(rollout.clone(), asked);
        }
    }

    fn room(&self, rollout: &RolloutId) -> usize {
        self.most.get(rollout).map_or(KEPT, |most| most * 2)
    }

    fn take(&mut self, rollout: RolloutId, need: Need, expects: Expects, answer: Answer) {
        let question = need.question.clone();
        self.asked.remove(&question);
        self.tell([rollout.clone()].into());
        if matches!(
            answer.outcome,
            WriteOutcome::Conflict { .. } | WriteOutcome::MissingKind(_) | WriteOutcome::Forbidden(_)
        ) {
            self.again.insert(question.clone(), (rollout.clone(), need, expects));
        } else {
            self.again.remove(&question);
        }
        let room = self.room(&rollout);
        let answers = &mut self.of(&rollout).dry_runs;
        // An object has one state at a time: what was asked about an older one is asked no more.
        answers.retain(|old, _| old.target != question.target || old.over == question.over);
        answers.insert(question, answer);
        if answers.len() > room {
            drop_oldest(answers);
        }
        let by_rollout = &self.by_rollout;
        self.again.retain(|question, (of, _, _)| {
            by_rollout.get(of).is_some_and(|evidence| evidence.dry_runs.contains_key(question))
        });
    }
}

fn expired(answer: &Answer, now: Time) -> bool {
    lifetime(&answer.outcome).is_some_and(|lifetime| now >= answer.at + lifetime)
}

fn drop_oldest<K: Ord + Clone>(answers: &mut BTreeMap<K, Answer>) {
    let oldest = answers.iter().min_by_key(|(_, answer)| answer.at).map(|(key, _)| key.clone());
    oldest.map(|key| answers.remove(&key));
}

/// What tells writes apart: the object and the digest of what was to be applied.
fn key_of(action: &Action) -> (ObjectRef, String) {
    let what = match &action.verb {
        Verb::Apply { object, .. } => object.annotation(APPLIED).unwrap_or_default(),
        Verb::Migrate { .. } => MIGRATE,
        Verb::Delete { .. } => DELETE,
        Verb::CopySecret(_) => SecretCopy::CONTENT,
    };
    (action.verb.target().clone(), what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;
    use futures::future::FutureExt;
    use serde_json::Value;

    fn rollout() -> RolloutId {
        "shop/a".parse().unwrap()
    }

    fn need(name: &str, over: Option<&str>) -> Need {
        let target = ObjectRef { kind: Kind::Service, namespace: "shop".parse().unwrap(), name: name.parse().unwrap() };
        let object = Box::new(Object::new(target.clone(), Value::Null));
        let over = over.map(str::to_owned);
        Need { question: Question { cluster: "home".parse().unwrap(), target, content: "c".to_owned(), over }, object }
    }

    fn take(known: &mut Known, need: &Need, outcome: WriteOutcome) {
        let answer = Answer { outcome, at: Time::from_timestamp(0, 0).unwrap() };
        known.take(rollout(), need.clone(), Expects::Absent, answer);
    }

    fn answers(known: &Known) -> usize {
        known.by_rollout[&rollout()].dry_runs.len()
    }

    #[test]
    fn an_answer_about_an_older_object_goes_when_a_newer_one_comes() {
        let mut known = Known::default();
        take(&mut known, &need("x", Some("1")), WriteOutcome::Done(None));
        take(&mut known, &need("y", None), WriteOutcome::Done(None));
        take(&mut known, &need("x", Some("2")), WriteOutcome::Forbidden("no".to_owned()));
        assert_eq!((answers(&known), known.again.len()), (2, 1));
        assert_eq!(known.news, [rollout()].into());
        take(&mut known, &need("x", Some("3")), WriteOutcome::Done(None));
        assert_eq!((answers(&known), known.again.len()), (2, 0), "what is asked no more is not asked again either");
    }

    #[test]
    fn c_34_a_provider_that_hangs_keeps_no_other_waiting() {
        let [slow, main] = ["slow", "main"].map(|name| name.parse::<ProviderName>().unwrap());
        let turns = Turns::of([&slow, &main].into_iter());
        let turn = |provider| turns.take(provider).now_or_never();
        let taken: Vec<_> = (0..AT_ONCE).map(|_| turn(&slow)).collect();
        assert!(taken.iter().all(|turn| matches!(turn, Some(Some(_)))) && turn(&slow).is_none());
        assert!(matches!(turn(&main), Some(Some(_))));
    }

    #[test]
    fn the_number_of_answers_is_bounded() {
        let mut known = Known::default();
        for n in 0..(KEPT + 40) {
            take(&mut known, &need(&format!("x{n}"), None), WriteOutcome::Forbidden("no".to_owned()));
        }
        assert_eq!((answers(&known), known.again.len()), (KEPT, KEPT));
    }

    #[test]
    fn no_answer_goes_that_the_same_plan_has_asked_for() {
        let mut known = Known::default();
        known.expect_answers(&rollout(), 600);
        known.expect_answers(&rollout(), 1);
        for n in 0..1_400 {
            take(&mut known, &need(&format!("x{n}"), None), WriteOutcome::Done(None));
        }
        assert_eq!(answers(&known), 1_200, "and what is not asked any more does not heap up");
        known.forget(&rollout());
        assert_eq!(known.room(&rollout()), KEPT);
    }

    #[test]
    fn what_says_nothing_about_the_content_does_not_hold_for_good() {
        let lasts = |outcome: WriteOutcome| {
            let answer = Answer { outcome, at: Time::from_timestamp(0, 0).unwrap() };
            [4, 5, 59, 60, 1_000_000].map(|second| expired(&answer, Time::from_timestamp(second, 0).unwrap()))
        };
        assert_eq!(lasts(WriteOutcome::Done(None)), [false; 5]);
        assert_eq!(lasts(WriteOutcome::Refused(String::new())), [false; 5]);
        assert_eq!(lasts(WriteOutcome::Retriable(String::new())), [false, true, true, true, true]);
        assert_eq!(lasts(WriteOutcome::Forbidden(String::new())), [false, false, false, true, true]);
    }
}
