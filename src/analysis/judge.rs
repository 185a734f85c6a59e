//! Which question a check asks, and what the answer says of the version. Pure.
//!
//! A check is one question over the whole time that a step has been in force, so that no counter is kept anywhere: after a
//! restart the same question has the same answer. No data is not success (requirement C-34).

use super::call::{About, Asks, Call, Word};
use super::reading::{Reading, Readings, Samples};
use crate::manifest::desired::{Bounds, Check, Criterion, PrometheusQuery, WebhookCall};
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
            Self::Range(range) => &range.query.provider,
            Self::Call(call) => &call.webhook.provider,
        }
    }

    /// Whether both are questions of one check of a rollout, or of a gate before it, at whatever moments.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Range(one), Self::Range(other)) => one.query == other.query && one.interval == other.interval,
            (Self::Call(one), Self::Call(other)) => one.asks == other.asks,
            (Self::Range(_), Self::Call(_)) | (Self::Call(_), Self::Range(_)) => false,
        }
    }
}

/// The question for the values of a query at certain moments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// What is measured, and by whom.
    pub query: PrometheusQuery,
    /// The first moment.
    pub from: Time,
    /// The last moment.
    pub until: Time,
    /// The time between two moments.
    pub interval: Span,
}

impl Range {
    /// What is asked at `now` of a step that has been in force since `since`; nothing before its first sample is due.
    #[must_use]
    pub fn of(bounds: &Bounds, interval: Span, since: Time, now: Time) -> Option<Self> {
        let until = last(interval, since, now)?;
        let from = nth(interval, since, (due(interval, since, now) - MOST).max(0) + 1);
        Some(Self { query: bounds.query.clone(), from, until, interval })
    }
}

/// What is known of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It says this.
    Says(Verdict),
    /// Nothing before this is answered.
    Lacks(Inquiry),
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

/// What a check says at `now`, of a step that has been in force since `since`.
#[must_use]
pub fn look(check: &Check, name: &CheckName, about: &About, since: Time, now: Time, readings: &Readings) -> Known {
    match &check.criterion {
        Criterion::Prometheus(bounds) => match Range::of(bounds, check.interval, since, now) {
            None => Known::Says(too_few(bounds, 0)),
            Some(range) => match readings.samples.get(&range) {
                Some(found) => Known::Says(measured(bounds, &range, &found.reading)),
                None => Known::Lacks(Inquiry::Range(range)),
            },
        },
        Criterion::Webhook(webhook) => {
            let Some(at) = last(check.interval, since, now) else {
                return Known::Says(Verdict::Undecided("was not asked yet".to_owned()));
            };
            let (webhook, about, asks) = (webhook.clone(), about.clone(), Asks::Check(name.clone()));
            called(Call { webhook, about, asks, since, at }, readings)
        }
    }
}

/// Whether an answer that is there speaks against the version, whatever the moment that it is about: who that is of is looked at
/// first.
#[must_use]
pub fn is_alarming<'a>(checks: impl IntoIterator<Item = &'a Check>, readings: &Readings) -> bool {
    let is_bad = |verdict| matches!(verdict, Verdict::Bad(_));
    let said_so = || readings.words.iter().any(|(call, found)| is_bad(told(call, &found.reading)));
    checks.into_iter().any(|check| match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let mut ours = readings.samples.iter().filter(|(range, _)| range.query == bounds.query);
            ours.any(|(range, found)| is_bad(measured(bounds, range, &found.reading)))
        }
        Criterion::Webhook(_) => said_so(),
    })
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
        None => Known::Lacks(Inquiry::Call(call)),
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

/// What measurements say: enough samples, and not too many of them out of bounds.
fn measured(bounds: &Bounds, range: &Range, reading: &Reading<Samples>) -> Verdict {
    let samples = match said(&bounds.query.provider, reading) {
        Ok(samples) => samples,
        Err(nothing) => return nothing,
    };
    // Of samples outside of the exposure nothing follows.
    let samples = samples.range(range.from..=range.until).filter(|(_, value)| !value.is_nan());
    let (mut count, mut out) = (0_usize, Vec::new());
    for (at, value) in samples {
        count += 1;
        out.extend(beyond(bounds, *value).map(|how| (at, value, how)));
    }
    let allowed = usize::try_from(bounds.failure_limit).unwrap_or(usize::MAX);
    if let Some((at, value, how)) = out.last().filter(|_| out.len() > allowed) {
        let what = format!("{} at {} is {how}", number(**value), at.format("%H:%M:%SZ"));
        let often = format!("; {} of {count} samples are out of bounds, {allowed} may be", out.len());
        return Verdict::Bad(if allowed == 0 { what } else { what + &often });
    }
    let enough = usize::try_from(bounds.min_samples).unwrap_or(usize::MAX);
    if count >= enough { Verdict::Good } else { too_few(bounds, count) }
}

fn too_few(bounds: &Bounds, found: usize) -> Verdict {
    Verdict::Undecided(format!("has {found} of {} samples", bounds.min_samples))
}

/// How a value is out of bounds.
fn beyond(bounds: &Bounds, value: f64) -> Option<String> {
    match (bounds.min, bounds.max) {
        (_, Some(max)) if value > max.get() => Some(format!("above {max}")),
        (Some(min), _) if value < min.get() => Some(format!("below {min}")),
        (_, _) => None,
    }
}

/// A measured value for people: four digits after the point are enough.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::call::fixture::call;
    use crate::analysis::reading::Heard;

    fn check(yaml: &str) -> Check {
        let common = "prometheus: {provider: main, query: errors}\ninterval: 60s\nonNoData: hold\n";
        serde_yaml::from_str(&format!("{common}{yaml}")).unwrap()
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
        look(check, &"smoke".parse().unwrap(), &call(at(0)).about, at(0), at(now), readings)
    }

    /// The question that is asked then.
    fn asked(check: &Check, now: i64) -> Option<Inquiry> {
        match known(check, now, &Readings::default()) {
            Known::Lacks(question) => Some(question),
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
    fn what_speaks_against_a_version_is_seen_from_afar() {
        let (measured, asked) = (check(MAX), webhook());
        let other = Check { criterion: check("max: 9").criterion, ..measured.clone() };
        let mut readings = Readings::default();
        let is = |checks: &[&Check], readings: &Readings| is_alarming(checks.iter().copied(), readings);
        assert!(!is(&[&measured, &asked], &readings));
        readings.keep(Heard::Samples(range(&measured, 120), samples(&[(60, 0.0), (120, 0.5)])), at(120));
        assert!(is(&[&asked, &measured], &readings) && !is(&[&asked, &other], &readings));
        readings.keep(Heard::Samples(range(&measured, 180), samples(&[(120, 0.0), (180, 0.0)])), at(180));
        assert!(!is(&[&asked, &measured], &readings));
        let bad = Reading::Said(Word::Bad("404".to_owned()));
        readings.keep(Heard::Word(call(at(180)), bad), at(180));
        assert!(is(&[&measured, &asked], &readings) && !is(&[&measured], &readings));
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

    #[test]
    fn a_webhook_before_a_step_is_asked_at_once_and_then_at_a_pace() {
        let (Criterion::Webhook(webhook), about) = (webhook().criterion, call(at(0)).about) else {
            panic!("a webhook")
        };
        let asked = |now| gate(&webhook, about.clone(), at(0), at(now), &Readings::default());
        let question = |now| Call { asks: Asks::Gate, since: at(0), ..call(at(now)) };
        for (now, due, next) in [(0, 0, 30), (29, 0, 30), (30, 30, 60), (89, 60, 90)] {
            assert_eq!(asked(now), (Known::Lacks(Inquiry::Call(question(due))), at(next)));
        }
        let mut readings = Readings::default();
        readings.keep(Heard::Word(question(30), Reading::Said(Word::Good)), at(31));
        let says = |now| gate(&webhook, about.clone(), at(0), at(now), &readings).0;
        assert_eq!(says(59), Known::Says(Verdict::Good));
        assert_eq!(says(60), Known::Lacks(Inquiry::Call(question(60))), "it may have changed its mind");
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
