//! Which question a check asks, and what the answer says of the version. Pure.
//!
//! A check is one question over the whole time that a step has been in force, so that no counter is kept anywhere: after a
//! restart the same question has the same answer. No data is not success (requirement C-34).

use super::call::{About, Asks, Call, Word};
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
}

/// What is known of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It says this.
    Says(Verdict),
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
pub fn look(check: &Check, name: &CheckName, subject: Subject<'_>, now: Time, readings: &Readings) -> Known {
    let Subject { about, sides, since } = subject;
    match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let query = |side| proxy::query(&bounds.measure, check.interval, &sides.namespace, side);
            let stable = bounds.compared.map(|_| query(&sides.stable)).transpose();
            let (candidate, stable) = match (query(&sides.candidate), stable) {
                (Ok(candidate), Ok(stable)) => (candidate, stable),
                (Err(why), _) | (_, Err(why)) => return Known::Says(Verdict::Unknown(why)),
            };
            let range = |query| Range::of(bounds.measure.provider(), query, check.interval, since, now);
            match range(candidate) {
                None => Known::Says(Verdict::Undecided(few(bounds, 0))),
                Some(candidate) => measured(bounds, &candidate, stable.and_then(range).as_ref(), readings),
            }
        }
        Criterion::Webhook(webhook) => {
            let Some(at) = last(check.interval, since, now) else {
                return Known::Says(Verdict::Undecided("was not asked yet".to_owned()));
            };
            let (webhook, about, asks) = (webhook.clone(), about.clone(), Asks::Check(name.clone()));
            called(Call { webhook, about, asks, since, at }, readings)
        }
    }
}

/// What a webhook says at `now` that stands before a step, which has been waited for since `since`, and when it is asked
/// next: at once, then at a pace.
#[must_use]
pub fn gate(webhook: &WebhookCall, about: About, since: Time, now: Time, readings: &Readings) -> (Known, Time) {
    let count = due(PACE, since, now);
    let (at, next) = (nth(PACE, since, count), nth(PACE, since, count + 1));
    (called(Call { webhook: webhook.clone(), about, asks: Asks::Gate, since, at }, readings), next)
}

fn called(call: Call, readings: &Readings) -> Known {
    match readings.words.get(&call) {
        Some(found) => Known::Says(told(&call, &found.reading)),
        None => Known::Lacks(vec![Inquiry::Call(call)]),
    }
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
fn told(call: &Call, reading: &Reading<Word>) -> Verdict {
    match said(&call.webhook.provider, reading) {
        Ok(Word::Good) => Verdict::Good,
        Ok(Word::Bad(why)) if why.is_empty() => Verdict::Bad("the webhook says bad".to_owned()),
        Ok(Word::Bad(why)) => Verdict::Bad(why.clone()),
        Ok(Word::Hold(why)) if why.is_empty() => Verdict::Undecided("holds".to_owned()),
        Ok(Word::Hold(why)) => Verdict::Undecided(format!("holds ({why})")),
        Err(nothing) => nothing,
    }
}

/// What measurements say, of the candidate, and of stable where they are compared: the same moments of both.
fn measured(bounds: &Bounds, candidate: &Range, stable: Option<&Range>, readings: &Readings) -> Known {
    let both = || std::iter::once(candidate).chain(stable);
    let lacks: Vec<Inquiry> =
        both().filter(|range| !readings.samples.contains_key(*range)).cloned().map(Inquiry::Range).collect();
    if !lacks.is_empty() {
        return Known::Lacks(lacks);
    }
    let own = match values(candidate, readings) {
        Ok(own) => own,
        Err(nothing) => return Known::Says(nothing),
    };
    Known::Says(match stable.map(|range| values(range, readings)) {
        None => judged(bounds, &own, None),
        Some(Ok(stable)) => judged(bounds, &own, Some(&stable)),
        // Nobody knows what stable is at; the candidate's own limits hold all the same.
        Some(Err(nothing)) => match judged(bounds, &own, Some(&Samples::new())) {
            Verdict::Bad(why) => Verdict::Bad(why),
            Verdict::Good | Verdict::Undecided(_) | Verdict::Unknown(_) => nothing,
        },
    })
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
mod tests {
    use super::*;
    use crate::analysis::call::fixture::call;
    use crate::analysis::reading::Heard;
    use crate::analysis::sides::fixture::sides;

    fn check(yaml: &str) -> Check {
        let query =
            if yaml.contains("comparedWithStable") { LABELS } else { "prometheus: {provider: main, query: errors}\n" };
        serde_yaml::from_str(&format!("{query}interval: 60s\nonNoData: hold\n{yaml}")).unwrap()
    }

    fn webhook() -> Check {
        serde_yaml::from_str("webhook: {provider: tester, metadata: {suite: smoke}}\ninterval: 60s").unwrap()
    }

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000 + seconds, 0).unwrap()
    }

    fn samples(values: &[(i64, f64)]) -> Reading<Samples> {
        Reading::Said(values.iter().map(|(seconds, value)| (at(*seconds), *value)).collect())
    }

    fn known(check: &Check, now: i64, readings: &Readings) -> Known {
        let (about, sides) = (call(at(0)).about, sides());
        let subject = Subject { about: &about, sides: &sides, since: at(0) };
        look(check, &"smoke".parse().unwrap(), subject, at(now), readings)
    }

    /// The question that is asked then.
    fn asked(check: &Check, now: i64) -> Option<Inquiry> {
        match known(check, now, &Readings::default()) {
            Known::Lacks(questions) => Some(questions[0].clone()),
            Known::Says(_) => None,
        }
    }

    fn range(check: &Check, now: i64) -> Range {
        let Some(Inquiry::Range(range)) = asked(check, now) else { panic!("a sample is due") };
        range
    }

    fn heard(check: &Check, now: i64, heard: Heard) -> Verdict {
        let mut readings = Readings::default();
        readings.keep(heard, at(now));
        let Known::Says(verdict) = known(check, now, &readings) else { panic!("it was answered") };
        verdict
    }

    fn verdict(yaml: &str, now: i64, values: &[(i64, f64)]) -> Verdict {
        let check = check(yaml);
        heard(&check, now, Heard::Samples(range(&check, now), samples(values)))
    }

    fn few(found: usize) -> Verdict {
        Verdict::Undecided(format!("has {found} of 2 samples"))
    }

    const MAX: &str = "max: 0.01\nminSamples: 2\nfailureLimit: 0";

    #[test]
    fn a_question_ends_at_the_last_sample_that_is_due() {
        let check = check(MAX);
        assert_eq!(asked(&check, 59), None);
        assert_eq!(next(&check, at(0), at(59)), at(60));
        let asks = range(&check, 200);
        assert_eq!((asks.from, asks.until), (at(60), at(180)));
        assert_eq!(next(&check, at(0), at(180)), at(240));
        assert_eq!(range(&check, 239), asks);
    }

    #[test]
    fn a_long_wait_asks_for_the_newest_samples() {
        let asks = range(&check(MAX), 60 * 5_000);
        assert_eq!((asks.from, asks.until), (at(60 * 4_001), at(60 * 5_000)));
    }

    #[test]
    fn bounds_belong_to_what_is_good() {
        assert_eq!(verdict(MAX, 120, &[(60, 0.01), (120, 0.0)]), Verdict::Good);
        assert_eq!(verdict("min: 1\nmax: 1\nminSamples: 1\nfailureLimit: 0", 60, &[(60, 1.0)]), Verdict::Good);
        let bad = |text: &str| Verdict::Bad(text.to_owned());
        assert_eq!(verdict(MAX, 120, &[(60, 0.0), (120, 0.1234567)]), bad("0.1235 at 13:48:40Z is above 0.01"));
        let min = "min: 0.99\nminSamples: 1\nfailureLimit: 0";
        assert_eq!(verdict(min, 60, &[(60, 0.5)]), bad("0.5 at 13:47:40Z is below 0.99"));
        assert_eq!(verdict(MAX, 60, &[(60, f64::INFINITY)]), bad("inf at 13:47:40Z is above 0.01"));
    }

    #[test]
    fn some_samples_may_be_out_of_bounds() {
        let two = "max: 1\nminSamples: 1\nfailureLimit: 1";
        assert_eq!(verdict(two, 120, &[(60, 2.0), (120, 1.0)]), Verdict::Good);
        let why = "3 at 13:48:40Z is above 1; 2 of 2 samples are out of bounds, 1 may be";
        assert_eq!(verdict(two, 120, &[(60, 2.0), (120, 3.0)]), Verdict::Bad(why.to_owned()));
    }

    #[test]
    fn c_34_no_data_is_not_success() {
        assert_eq!(verdict(MAX, 120, &[]), few(0));
        assert_eq!(verdict(MAX, 120, &[(60, f64::NAN), (120, 0.0)]), few(1));
        assert_eq!(verdict(MAX, 120, &[(30, 9.0), (300, 9.0)]), few(0), "outside of the exposure");
        let check = check(MAX);
        let away = heard(&check, 120, Heard::Samples(range(&check, 120), Reading::Away("timed out".to_owned())));
        assert_eq!(away, Verdict::Unknown("provider main is away: timed out".to_owned()));
    }

    /// A comparison: what is said of the candidate at 60 s, and at 120 s, and of stable.
    fn compared(limits: &str, own: [f64; 2], stable: Reading<Samples>) -> Verdict {
        let check = check(&format!("minSamples: 2\n{limits}"));
        let Known::Lacks(questions) = known(&check, 130, &Readings::default()) else { panic!("samples are due") };
        let [Inquiry::Range(candidate), Inquiry::Range(other)] = &questions[..] else { panic!("{questions:?}") };
        assert_eq!((candidate.from, candidate.until), (other.from, other.until), "the same moments");
        let mut readings = Readings::default();
        let own = samples(&[(60, own[0]), (120, own[1])]);
        readings.keep(Heard::Samples(candidate.clone(), own), at(130));
        let lacks = Known::Lacks(vec![Inquiry::Range(other.clone())]);
        assert_eq!(known(&check, 130, &readings), lacks, "nothing follows from one of them");
        readings.keep(Heard::Samples(other.clone(), stable), at(130));
        let Known::Says(verdict) = known(&check, 130, &readings) else { panic!("it was answered") };
        verdict
    }

    const LABELS: &str = "prometheus: {provider: main, query: errors, labels: {pod: pod}}\n";
    const RATIO: &str = "comparedWithStable: {ratio: {max: 1.2}}";

    #[test]
    fn the_candidate_is_compared_with_stable_moment_by_moment() {
        let stable = || samples(&[(60, 0.1), (120, 0.2)]);
        assert_eq!(compared(RATIO, [0.11, 0.24], stable()), Verdict::Good);
        let why = "0.2 at 13:47:40Z is 2 times stable's 0.1, which is above 1.2";
        assert_eq!(compared(RATIO, [0.2, 0.2], stable()), Verdict::Bad(why.to_owned()));
        let one = format!("{RATIO}\nfailureLimit: 1");
        assert_eq!(compared(&one, [0.2, 0.2], stable()), Verdict::Good);
    }

    #[test]
    fn c_34_without_stable_nothing_is_good_and_the_limits_of_the_candidate_hold() {
        let undecided =
            |found: usize, why: &str| Verdict::Undecided(format!("has {found} of 2 samples to compare: {why}"));
        assert_eq!(compared(RATIO, [0.0, 0.0], samples(&[])), undecided(0, "stable has none"));
        assert_eq!(
            compared(RATIO, [0.5, 0.5], samples(&[(60, 1.0), (120, f64::NAN)])),
            undecided(1, "stable has none")
        );
        let zero = samples(&[(60, 0.0), (120, 0.0)]);
        let none = "stable is at 0, to which there is no ratio";
        assert_eq!(compared(RATIO, [0.0, 0.5], zero.clone()), undecided(0, none));
        assert_eq!(compared("comparedWithStable: {difference: {max: 0.1}}", [0.0, 0.05], zero.clone()), Verdict::Good);
        let away = || Reading::Away("timed out".to_owned());
        let unknown = Verdict::Unknown("provider main is away: timed out".to_owned());
        assert_eq!(compared(RATIO, [0.0, 0.5], away()), unknown);
        let both = format!("{RATIO}\nmax: 0.4");
        let bad = Verdict::Bad("0.5 at 13:48:40Z is above 0.4".to_owned());
        assert_eq!((compared(&both, [0.0, 0.5], away()), compared(&both, [0.0, 0.5], zero)), (bad.clone(), bad));
    }

    #[test]
    fn a_query_that_another_program_wrote_and_nobody_reads_says_nothing() {
        let check: Check = serde_yaml::from_str(&LABELS.replace("errors", "'errors{'")).unwrap();
        let Known::Says(Verdict::Unknown(why)) = known(&check, 60, &Readings::default()) else { panic!("it is read") };
        assert!(why.starts_with("the query cannot be read from its end on"), "{why}");
    }

    #[test]
    fn a_webhook_before_a_step_is_asked_at_once_and_then_at_a_pace() {
        let (Criterion::Webhook(webhook), about) = (webhook().criterion, call(at(0)).about) else {
            panic!("a webhook")
        };
        let asked = |now| gate(&webhook, about.clone(), at(0), at(now), &Readings::default());
        let question = |now| Call { asks: Asks::Gate, since: at(0), ..call(at(now)) };
        for (now, due, next) in [(0, 0, 30), (29, 0, 30), (30, 30, 60), (89, 60, 90)] {
            assert_eq!(asked(now), (Known::Lacks(vec![Inquiry::Call(question(due))]), at(next)));
        }
        let mut readings = Readings::default();
        readings.keep(Heard::Word(question(30), Reading::Said(Word::Good)), at(31));
        let says = |now| gate(&webhook, about.clone(), at(0), at(now), &readings).0;
        assert_eq!(says(59), Known::Says(Verdict::Good));
        assert_eq!(says(60), Known::Lacks(vec![Inquiry::Call(question(60))]), "it may have changed its mind");
    }

    #[test]
    fn a_webhook_is_asked_at_each_interval_and_says_itself_what_is_good() {
        let check = webhook();
        assert_eq!(asked(&check, 59), None);
        let Some(Inquiry::Call(first)) = asked(&check, 60) else { panic!("a question is due") };
        assert_eq!(first, Call { since: at(0), ..call(at(60)) });
        assert_eq!(asked(&check, 119), Some(Inquiry::Call(first.clone())));
        assert_eq!(asked(&check, 120), Some(Inquiry::Call(Call { at: at(120), ..first.clone() })));
        let says = |reading| heard(&check, 60, Heard::Word(first.clone(), reading));
        let word = |word: fn(String) -> Word, why: &str| says(Reading::Said(word(why.to_owned())));
        let [bad, undecided, unknown] = [Verdict::Bad, Verdict::Undecided, Verdict::Unknown];
        assert_eq!(says(Reading::Said(Word::Good)), Verdict::Good);
        assert_eq!(word(Word::Bad, "3 of 9 tests fail"), bad("3 of 9 tests fail".to_owned()));
        assert_eq!(word(Word::Bad, ""), bad("the webhook says bad".to_owned()));
        assert_eq!(word(Word::Hold, "tests run"), undecided("holds (tests run)".to_owned()));
        assert_eq!(word(Word::Hold, ""), undecided("holds".to_owned()));
        let away = says(Reading::Away("timed out".to_owned()));
        assert_eq!(away, unknown("provider tester is away: timed out".to_owned()));
        assert_eq!(says(Reading::Unusable("no JSON".to_owned())), unknown("no JSON".to_owned()));
    }
}
