//! What providers said, kept with the exact question, so that an old answer is never taken for a new one. Pure.

use super::call::{Call, CallKind, WebhookVerdict};
use super::judge::Range;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// The values at those moments that have one. What is not a number (no requests, divided by no requests) is no value.
pub type Samples = BTreeMap<Time, f64>;

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading<T> {
    /// This.
    Said(T),
    /// The answer is of no use: several series, a query that the provider refuses, an answer to something else.
    Unusable(String),
    /// The provider did not answer.
    Away(String),
}

/// A question with what came of it: each kind of question has its own kind of answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// Measurements.
    Samples(Range, Reading<Samples>),
    /// The word of a webhook.
    Verdict(Call, Reading<WebhookVerdict>),
}

/// What came of a question, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement<T> {
    /// What came of it.
    pub reading: Reading<T>,
    /// When.
    pub at: Time,
}

impl<T> Measurement<T> {
    /// When a question that brought nothing is tried again.
    fn again_at(&self, pause: TimeDelta) -> Option<Time> {
        (!matches!(self.reading, Reading::Said(_))).then(|| self.at + pause)
    }
}

/// What is known, by the exact question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// Measurements.
    pub samples: BTreeMap<Range, Measurement<Samples>>,
    /// What webhooks said.
    pub verdicts: BTreeMap<Call, Measurement<WebhookVerdict>>,
}

impl Readings {
    /// Keeps an answer in place of those to older questions that are like its own.
    pub fn keep(&mut self, received: Received, at: Time) {
        match received {
            Received::Samples(range, reading) => {
                self.samples.retain(|old, _| !old.is_like(&range));
                self.samples.insert(range, Measurement { reading, at });
            }
            Received::Verdict(call, reading) => {
                self.verdicts.retain(|old, _| !old.is_like(&call));
                self.verdicts.insert(call, Measurement { reading, at });
            }
        }
    }

    /// What hooks have taken: all that is kept of a rollout at rest, so that they are not told again.
    #[must_use]
    pub fn notified(&self) -> Option<Self> {
        let is_told = |call: &Call| matches!(call.asks, CallKind::Event(_));
        let words: BTreeMap<_, _> = self
            .verdicts
            .iter()
            .filter(|(call, _)| is_told(call))
            .map(|(call, word)| (call.clone(), word.clone()))
            .collect();
        (!words.is_empty()).then(|| Self { samples: BTreeMap::new(), verdicts: words })
    }

    /// How many answers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.samples.len() + self.verdicts.len()
    }

    /// Forgets questions that brought nothing, so that they are asked again after a pause.
    pub fn age(&mut self, pause: TimeDelta, now: Time) {
        self.samples.retain(|_, found| found.again_at(pause).is_none_or(|at| now < at));
        self.verdicts.retain(|_, found| found.again_at(pause).is_none_or(|at| now < at));
    }

    /// When [`Self::age`] has something to do.
    #[must_use]
    pub fn due(&self, pause: TimeDelta) -> Option<Time> {
        let samples = self.samples.values().filter_map(|found| found.again_at(pause));
        samples.chain(self.verdicts.values().filter_map(|found| found.again_at(pause))).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::call::fixture::call;
    use crate::manifest::duration::Span;

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(seconds, 0).unwrap()
    }

    const PAUSE: TimeDelta = TimeDelta::seconds(5);

    #[test]
    fn a_newer_answer_takes_the_place_of_the_older_and_one_that_brought_nothing_wears_out() {
        let range = |until| Range {
            provider: "main".parse().unwrap(),
            query: "errors".to_owned(),
            from: at(60),
            until: at(until),
            interval: Span::from_secs(60),
        };
        let mut readings = Readings::default();
        readings.keep(Received::Samples(range(60), Reading::Said(BTreeMap::new())), at(60));
        assert_eq!(readings.due(PAUSE), None);
        readings.keep(Received::Samples(range(120), Reading::Away("refused".to_owned())), at(120));
        assert_eq!(readings.samples.keys().collect::<Vec<_>>(), [&range(120)]);
        readings.keep(Received::Verdict(call(at(60)), Reading::Said(WebhookVerdict::Hold(String::new()))), at(121));
        readings.keep(Received::Verdict(call(at(120)), Reading::Unusable("no JSON".to_owned())), at(121));
        assert_eq!(readings.verdicts.keys().collect::<Vec<_>>(), [&call(at(120))]);
        assert_eq!((readings.count(), readings.due(PAUSE)), (2, Some(at(125))));
        readings.age(PAUSE, at(125));
        assert_eq!((readings.count(), readings.due(PAUSE)), (1, Some(at(126))));
        readings.age(PAUSE, at(126));
        assert_eq!((readings.count(), readings.due(PAUSE)), (0, None));
    }

    #[test]
    fn what_a_webhook_said_holds_until_it_is_asked_anew() {
        let mut readings = Readings::default();
        readings.keep(Received::Verdict(call(at(60)), Reading::Said(WebhookVerdict::Hold(String::new()))), at(60));
        readings.age(PAUSE, at(1_000_000));
        assert_eq!((readings.count(), readings.due(PAUSE)), (1, None));
    }
}
