//! Which question a check asks, and what the answer says of the version. Pure.
//!
//! A check is one question over the whole time that a step has been in force, so that no counter is kept anywhere: after a
//! restart the same question has the same answer. No data is not success (requirement C-34).

use super::call::{About, Call, CallKind, WebhookVerdict};
use super::compare;
use super::proxy;
use super::reading::{Reading, Readings, Samples};
use super::sides::Sides;
use crate::manifest::desired::{Bounds, Check, Criterion, WebhookCall};
use crate::manifest::duration::Span;
use crate::manifest::ids::{CheckName, ProviderName};
use crate::record::state::Time;
use chrono::TimeDelta;

/// The most samples that one question asks for: the newest.
const MOST: i64 = 1_000;
/// The time between two questions to a webhook that stands before a step.
const PACE: Span = Span::from_secs(30);
/// How much later than the next question is due an answer may come and still let a run go on.
const LATE: TimeDelta = TimeDelta::seconds(60);

/// A question of a check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inquiry {
    /// What was measured?
    Range(Range),
    /// Is the version good?
    Call(Call),
}

impl Inquiry {
    /// Who is asked.
    #[must_use]
    pub fn provider(&self) -> &ProviderName {
        match self {
            Self::Range(range) => &range.provider,
            Self::Call(call) => &call.webhook.provider,
        }
    }

    /// Whether both are questions of one check of a rollout, or of a gate before it, at whatever moments.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Range(one), Self::Range(other)) => one.is_like(other),
            (Self::Call(one), Self::Call(other)) => one.is_like(other),
            (Self::Range(_), Self::Call(_)) | (Self::Call(_), Self::Range(_)) => false,
        }
    }
}

/// The question for the values of a query at certain moments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// Who measures.
    pub provider: ProviderName,
    /// What.
    pub query: String,
    /// The first moment.
    pub from: Time,
    /// The last moment.
    pub until: Time,
    /// The time between two moments.
    pub interval: Span,
}

impl Range {
    /// What is asked at `now` of a step that has been in force since `since`; nothing before its first sample is due.
    fn of(provider: &ProviderName, query: String, interval: Span, since: Time, now: Time) -> Option<Self> {
        let until = last(interval, since, now)?;
        let from = nth(interval, since, (due(interval, since, now) - MOST).max(0) + 1);
        Some(Self { provider: provider.clone(), query, from, until, interval })
    }

    /// Whether both are questions of one check about one role, at whatever moments.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let Self { provider, query, interval, from: _, until: _ } = self;
        (provider, query, interval) == (&other.provider, &other.query, &other.interval)
    }
}

/// What a check looks at.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The version, and the step that it stands on.
    pub about: &'a About,
    /// Whose series are whose.
    pub sides: &'a Sides,
    /// Since when the step has been in force.
    pub since: Time,
    /// When its soak was over, if it is.
    pub over: Option<Time>,
}

/// What is known of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckState {
    /// It says this.
    Says(Verdict),
    /// It said this of an earlier moment of the step, and that holds until these are answered: who is slower than questions are due would
    /// never be heard else.
    Said(Verdict, Vec<Inquiry>),
    /// Nothing before these are answered.
    Lacks(Vec<Inquiry>),
}

/// What a check says of the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is good.
    Good,
    /// It is bad, for this reason.
    Bad(String),
    /// All may be well, but it cannot be told yet: too few samples, a webhook that waits.
    Undecided(String),
    /// Nothing, for this reason.
    Unknown(String),
}

/// What a check says at `now`.
#[must_use]
pub fn look(check: &Check, name: &CheckName, subject: Subject<'_>, now: Time, readings: &Readings) -> CheckState {
    let Subject { about, sides, since, over } = subject;
    // From the end of the soak on, what was said of its last moment is enough.
    let enough =
        over.map(|over| last(check.interval, since, over).unwrap_or(since).max(since_late(check.interval, now)));
    match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let query = |side| proxy::query(&bounds.measure, check.interval, &sides.namespace, side);
            let stable = bounds.compared.map(|_| query(&sides.stable)).transpose();
            let (candidate, stable) = match (query(&sides.candidate), stable) {
                (Ok(candidate), Ok(stable)) => (candidate, stable),
                (Err(why), _) | (_, Err(why)) => return CheckState::Says(Verdict::Unknown(why)),
            };
            let range = |query| Range::of(bounds.measure.provider(), query, check.interval, since, now);
            match range(candidate) {
                None => CheckState::Says(Verdict::Undecided(few(bounds, 0))),
                Some(candidate) => {
                    let stable = stable.and_then(range);
                    let before = || said_before(bounds, &candidate, stable.as_ref(), since, readings);
                    measured(bounds, &candidate, stable.as_ref(), readings).or_before(enough, before)
                }
            }
        }
        Criterion::Webhook(webhook) => {
            let Some(at) = last(check.interval, since, now) else {
                return CheckState::Says(Verdict::Undecided("was not asked yet".to_owned()));
            };
            let (webhook, about, asks) = (webhook.clone(), about.clone(), CallKind::Check(name.clone()));
            called(Call { webhook, about, asks, since, at }, enough, readings)
        }
    }
}

/// What a check has said last of a version, whatever the moment that was about, for people.
#[must_use]
pub fn last_verdict(check: &Check, name: &CheckName, subject: Subject<'_>, readings: &Readings) -> String {
    let Subject { about, sides, since, over: _ } = subject;
    match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let query = match proxy::query(&bounds.measure, check.interval, &sides.namespace, &sides.candidate) {
                Ok(query) => query,
                Err(why) => return why,
            };
            let is_it = |range: &&Range| {
                range.provider == *bounds.measure.provider() && range.query == query && range.from > since
            };
            let found = readings.samples.keys().rfind(is_it).map(|range| values(range, readings));
            match found.map(|found| found.map(|own| own.into_iter().next_back())) {
                Some(Ok(Some((at, value)))) => {
                    format!("{} at {}, {}", number(value), at.format("%H:%M:%SZ"), bounds.words())
                }
                Some(Err(Verdict::Unknown(why))) => why,
                Some(Ok(None) | Err(_)) | None => "nothing was measured".to_owned(),
            }
        }
        Criterion::Webhook(webhook) => {
            let asks = CallKind::Check(name.clone());
            let is_it = |call: &&Call| call.webhook == *webhook && call.about == *about && call.asks == asks;
            let found = readings.verdicts.iter().rfind(|(call, _)| is_it(call));
            match found.map(|(call, found)| told(call, &found.reading)) {
                Some(Verdict::Good) => "good".to_owned(),
                Some(Verdict::Bad(why) | Verdict::Undecided(why) | Verdict::Unknown(why)) => why,
                None => "was not asked yet".to_owned(),
            }
        }
    }
}

/// Whether an answer that is there seems to speak against the version, whatever the moment and the query: who that is of is looked
/// at first. What only differs from stable is not seen from afar.
#[must_use]
pub fn is_alarming<'a>(checks: impl IntoIterator<Item = &'a Check>, readings: &Readings) -> bool {
    let is_bad = |verdict| matches!(verdict, Verdict::Bad(_));
    let said_so = || readings.verdicts.iter().any(|(call, found)| is_bad(told(call, &found.reading)));
    checks.into_iter().any(|check| match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let asked =
                |range: &&Range| range.provider == *bounds.measure.provider() && range.interval == check.interval;
            let mut found = readings.samples.keys().filter(asked).flat_map(|range| values(range, readings));
            found.any(|own| is_bad(judged(bounds, &own, None)))
        }
        Criterion::Webhook(_) => said_so(),
    })
}

/// What a webhook says at `now` that stands before a step, which has been waited for since `since`, and when it is asked
/// next: at once, then at a pace.
#[must_use]
pub fn gate(webhook: &WebhookCall, about: About, since: Time, now: Time, readings: &Readings) -> (CheckState, Time) {
    let count = due(PACE, since, now);
    let (at, next) = (nth(PACE, since, count), nth(PACE, since, count + 1));
    let call = Call { webhook: webhook.clone(), about, asks: CallKind::Gate, since, at };
    (called(call, Some(since_late(PACE, now)), readings), next)
}

fn called(call: Call, enough: Option<Time>, readings: &Readings) -> CheckState {
    if let Some(found) = readings.verdicts.get(&call) {
        return CheckState::Says(told(&call, &found.reading));
    }
    let is_older = |older: &Call| older.at < call.at && Call { at: call.at, ..older.clone() } == call;
    let older = readings.verdicts.iter().rfind(|(older, _)| is_older(older));
    let before = || older.map(|(older, found)| (told(older, &found.reading), older.at));
    CheckState::Lacks(vec![Inquiry::Call(call.clone())]).or_before(enough, before)
}

impl CheckState {
    /// Where an answer is not there yet, what was said before it, of an earlier moment. What speaks against a version does so at once, and so does
    /// that nothing was learned; what lets it go on has to be about a moment from `enough` on.
    fn or_before(self, enough: Option<Time>, before: impl FnOnce() -> Option<(Verdict, Time)>) -> Self {
        let Self::Lacks(questions) = self else { return self };
        match before() {
            Some((verdict @ (Verdict::Bad(_) | Verdict::Unknown(_)), _)) => Self::Said(verdict, questions),
            Some((verdict @ (Verdict::Good | Verdict::Undecided(_)), at)) if enough.is_some_and(|from| at >= from) => {
                Self::Said(verdict, questions)
            }
            Some((Verdict::Good | Verdict::Undecided(_), _)) | None => Self::Lacks(questions),
        }
    }
}

/// The earliest moment of which an answer still lets a run go on at `now`.
fn since_late(interval: Span, now: Time) -> Time {
    now - length(interval) - LATE
}

/// When a check asks next.
#[must_use]
pub fn next(check: &Check, since: Time, now: Time) -> Time {
    nth(check.interval, since, due(check.interval, since, now) + 1)
}

/// The last moment that is due by now.
fn last(interval: Span, since: Time, now: Time) -> Option<Time> {
    let count = due(interval, since, now);
    (count > 0).then(|| nth(interval, since, count))
}

fn nth(interval: Span, since: Time, n: i64) -> Time {
    since + length(interval) * i32::try_from(n).unwrap_or(i32::MAX)
}

/// How many moments are due by now.
fn due(interval: Span, since: Time, now: Time) -> i64 {
    (now - since).num_milliseconds().max(0) / length(interval).num_milliseconds()
}

fn length(interval: Span) -> TimeDelta {
    interval.delta().max(TimeDelta::seconds(1))
}

/// What was said; `Err` if nothing follows from it.
fn said<'a, T>(provider: &ProviderName, reading: &'a Reading<T>) -> Result<&'a T, Verdict> {
    match reading {
        Reading::Said(said) => Ok(said),
        Reading::Unusable(why) => Err(Verdict::Unknown(why.clone())),
        Reading::Away(why) => Err(Verdict::Unknown(format!("provider {provider} is away: {why}"))),
    }
}

/// What the word of a webhook says.
fn told(call: &Call, reading: &Reading<WebhookVerdict>) -> Verdict {
    match said(&call.webhook.provider, reading) {
        Ok(WebhookVerdict::Good) => Verdict::Good,
        Ok(WebhookVerdict::Bad(why)) if why.is_empty() => Verdict::Bad("the webhook says bad".to_owned()),
        Ok(WebhookVerdict::Bad(why)) => Verdict::Bad(why.clone()),
        Ok(WebhookVerdict::Hold(why)) if why.is_empty() => Verdict::Undecided("holds".to_owned()),
        Ok(WebhookVerdict::Hold(why)) => Verdict::Undecided(format!("holds ({why})")),
        Err(nothing) => nothing,
    }
}

/// What measurements say, of the candidate, and of stable where they are compared: the same moments of both.
fn measured(bounds: &Bounds, candidate: &Range, stable: Option<&Range>, readings: &Readings) -> CheckState {
    let both = || std::iter::once(candidate).chain(stable);
    let lacks: Vec<Inquiry> =
        both().filter(|range| !readings.samples.contains_key(*range)).cloned().map(Inquiry::Range).collect();
    if !lacks.is_empty() {
        return CheckState::Lacks(lacks);
    }
    let own = match values(candidate, readings) {
        Ok(own) => own,
        Err(nothing) => return CheckState::Says(nothing),
    };
    CheckState::Says(match stable.map(|range| values(range, readings)) {
        None => judged(bounds, &own, None),
        Some(Ok(stable)) => judged(bounds, &own, Some(&stable)),
        // Nobody knows what stable is at; the candidate's own limits hold all the same.
        Some(Err(nothing)) => match judged(bounds, &own, Some(&Samples::new())) {
            Verdict::Bad(why) => Verdict::Bad(why),
            Verdict::Good | Verdict::Undecided(_) | Verdict::Unknown(_) => nothing,
        },
    })
}

/// What earlier measurements of a step said, and until when they were made: of both roles the same moments.
fn said_before(
    bounds: &Bounds,
    candidate: &Range,
    stable: Option<&Range>,
    since: Time,
    readings: &Readings,
) -> Option<(Verdict, Time)> {
    let older = |of: &Range| {
        let is_it = |range: &&Range| range.is_like(of) && range.from > since && range.until < of.until;
        readings.samples.keys().rfind(is_it)
    };
    let (own, beside) = (older(candidate)?, stable.map(older));
    let beside = match beside {
        Some(found) => Some(found.filter(|range| (range.from, range.until) == (own.from, own.until))?),
        None => None,
    };
    match measured(bounds, own, beside, readings) {
        CheckState::Says(verdict) => Some((verdict, own.until)),
        CheckState::Said(..) | CheckState::Lacks(_) => None,
    }
}

/// The values within the exposure: of others nothing follows.
fn values(range: &Range, readings: &Readings) -> Result<Samples, Verdict> {
    let Some(found) = readings.samples.get(range) else { return Ok(Samples::new()) };
    let samples = said(&range.provider, &found.reading)?;
    let within = samples.range(range.from..=range.until).filter(|(_, value)| !value.is_nan());
    Ok(within.map(|(at, value)| (*at, *value)).collect())
}

/// What values say: enough of them, and not too many out of bounds.
fn judged(bounds: &Bounds, own: &Samples, stable: Option<&Samples>) -> Verdict {
    let (mut count, mut out, mut lacking) = (0_usize, Vec::new(), None);
    for (at, value) in own {
        let beside = match (bounds.compared, stable) {
            (Some(limits), Some(stable)) => compare::beside(limits, *value, stable.get(at).copied()),
            (_, _) => Ok(None),
        };
        let alone = bounds.limits.exceeded(*value).map(|how| format!("is {how}"));
        count += usize::from(beside.is_ok());
        let beyond = alone.or_else(|| beside.as_ref().ok()?.clone());
        out.extend(beyond.map(|how| (at, value, how)));
        lacking = beside.err().or(lacking);
    }
    let allowed = usize::try_from(bounds.failure_limit).unwrap_or(usize::MAX);
    if let Some((at, value, how)) = out.last().filter(|_| out.len() > allowed) {
        let what = format!("{} at {} {how}", number(**value), at.format("%H:%M:%SZ"));
        let often = format!("; {} of {} samples are out of bounds, {allowed} may be", out.len(), own.len());
        return Verdict::Bad(if allowed == 0 { what } else { what + &often });
    }
    let enough = usize::try_from(bounds.min_samples).unwrap_or(usize::MAX);
    match lacking {
        _ if count >= enough => Verdict::Good,
        Some(why) => Verdict::Undecided(format!("{} to compare: {why}", few(bounds, count))),
        None => Verdict::Undecided(few(bounds, count)),
    }
}

fn few(bounds: &Bounds, found: usize) -> String {
    format!("has {found} of {} samples", bounds.min_samples)
}

/// A measured value for people: four digits after the point are enough.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests;
