//! Which questions are asked, and what their answers say.

use super::*;
use crate::analysis::call::fixture::call;
use crate::analysis::reading::Received;
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

/// How long the step of these tests soaks.
const SOAK: i64 = 600;

fn known(check: &Check, now: i64, readings: &Readings) -> CheckState {
    let (about, sides) = (call(at(0)).about, sides());
    let subject =
        Subject { about: &about, sides: &sides, since: at(0), over: Some(at(SOAK)).filter(|over| *over <= at(now)) };
    look(check, &"smoke".parse().unwrap(), subject, at(now), readings)
}

/// The question that is asked then.
fn asked(check: &Check, now: i64) -> Option<Inquiry> {
    match known(check, now, &Readings::default()) {
        CheckState::Lacks(questions) => Some(questions[0].clone()),
        CheckState::Says(_) | CheckState::Said(..) => None,
    }
}

fn range(check: &Check, now: i64) -> Range {
    let Some(Inquiry::Range(range)) = asked(check, now) else { panic!("a sample is due") };
    range
}

fn heard(check: &Check, now: i64, heard: Received) -> Verdict {
    let mut readings = Readings::default();
    readings.keep(heard, at(now));
    let CheckState::Says(verdict) = known(check, now, &readings) else { panic!("it was answered") };
    verdict
}

fn verdict(yaml: &str, now: i64, values: &[(i64, f64)]) -> Verdict {
    let check = check(yaml);
    heard(&check, now, Received::Samples(range(&check, now), samples(values)))
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
    readings.keep(Received::Samples(range(&measured, 120), samples(&[(60, 0.0), (120, 0.5)])), at(120));
    assert!(is(&[&asked, &measured], &readings) && !is(&[&asked, &other], &readings));
    readings.keep(Received::Samples(range(&measured, 180), samples(&[(120, 0.0), (180, 0.0)])), at(180));
    assert!(!is(&[&asked, &measured], &readings));
    let bad = Reading::Said(WebhookVerdict::Bad("404".to_owned()));
    readings.keep(Received::Verdict(call(at(180)), bad), at(180));
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
    let away = heard(&check, 120, Received::Samples(range(&check, 120), Reading::Away("timed out".to_owned())));
    assert_eq!(away, Verdict::Unknown("provider main is away: timed out".to_owned()));
}

/// A comparison: what is said of the candidate at 60 s, and at 120 s, and of stable.
fn compared(limits: &str, own: [f64; 2], stable: Reading<Samples>) -> Verdict {
    let check = check(&format!("minSamples: 2\n{limits}"));
    let CheckState::Lacks(questions) = known(&check, 130, &Readings::default()) else { panic!("samples are due") };
    let [Inquiry::Range(candidate), Inquiry::Range(other)] = &questions[..] else { panic!("{questions:?}") };
    assert_eq!((candidate.from, candidate.until), (other.from, other.until), "the same moments");
    let mut readings = Readings::default();
    let own = samples(&[(60, own[0]), (120, own[1])]);
    readings.keep(Received::Samples(candidate.clone(), own), at(130));
    let lacks = CheckState::Lacks(vec![Inquiry::Range(other.clone())]);
    assert_eq!(known(&check, 130, &readings), lacks, "nothing follows from one of them");
    readings.keep(Received::Samples(other.clone(), stable), at(130));
    let CheckState::Says(verdict) = known(&check, 130, &readings) else { panic!("it was answered") };
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
    let undecided = |found: usize, why: &str| Verdict::Undecided(format!("has {found} of 2 samples to compare: {why}"));
    assert_eq!(compared(RATIO, [0.0, 0.0], samples(&[])), undecided(0, "stable has none"));
    assert_eq!(compared(RATIO, [0.5, 0.5], samples(&[(60, 1.0), (120, f64::NAN)])), undecided(1, "stable has none"));
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
    let CheckState::Says(Verdict::Unknown(why)) = known(&check, 60, &Readings::default()) else { panic!("it is read") };
    assert!(why.starts_with("the query cannot be read from its end on"), "{why}");
}

#[test]
fn a_webhook_before_a_step_is_asked_at_once_and_then_at_a_pace() {
    let (Criterion::Webhook(webhook), about) = (webhook().criterion, call(at(0)).about) else { panic!("a webhook") };
    let asked = |now| gate(&webhook, about.clone(), at(0), at(now), &Readings::default());
    let question = |now| Call { asks: CallKind::Gate, since: at(0), ..call(at(now)) };
    for (now, due, next) in [(0, 0, 30), (29, 0, 30), (30, 30, 60), (89, 60, 90)] {
        assert_eq!(asked(now), (CheckState::Lacks(vec![Inquiry::Call(question(due))]), at(next)));
    }
    let mut readings = Readings::default();
    readings.keep(Received::Verdict(question(30), Reading::Said(WebhookVerdict::Good)), at(31));
    let says = |now| gate(&webhook, about.clone(), at(0), at(now), &readings).0;
    assert_eq!(says(59), CheckState::Says(Verdict::Good));
    let anew = |now| vec![Inquiry::Call(question(now))];
    assert_eq!(says(60), CheckState::Said(Verdict::Good, anew(60)), "it is asked anew, and may be slow");
    assert_eq!(says(121), CheckState::Lacks(anew(120)), "it may have changed its mind");
}

/// Whoever takes longer than the interval answers to questions of which a newer one is due already.
#[test]
fn c_34_what_comes_later_than_the_next_question_is_heard_all_the_same() {
    let check = webhook();
    let later = |asked_at: i64, reading: Reading<WebhookVerdict>, now: i64| {
        let mut readings = Readings::default();
        let Some(Inquiry::Call(call)) = asked(&check, asked_at) else { panic!("a question is due") };
        readings.keep(Received::Verdict(call, reading), at(now));
        match known(&check, now, &readings) {
            CheckState::Said(verdict, questions) => {
                assert_eq!(questions.first(), asked(&check, now).as_ref(), "it is asked all the same");
                Some(verdict)
            }
            CheckState::Lacks(_) => None,
            CheckState::Says(verdict) => panic!("{verdict:?} of an earlier moment"),
        }
    };
    let (bad, good) = (Reading::Said(WebhookVerdict::Bad("3 fail".to_owned())), Reading::Said(WebhookVerdict::Good));
    let away = Reading::Away("timed out".to_owned());
    assert_eq!(later(60, bad, 130), Some(Verdict::Bad("3 fail".to_owned())));
    assert_eq!(later(60, away, 130), Some(Verdict::Unknown("provider tester is away: timed out".to_owned())));
    assert_eq!(later(540, good.clone(), 605), None, "it says nothing of the last minute of the soak");
    assert_eq!(later(600, good.clone(), 662), Some(Verdict::Good));
    assert_eq!(later(600, good.clone(), 720), Some(Verdict::Good), "a minute late");
    assert_eq!(later(600, good, 721), None, "older than that it lets nothing go on");
}

#[test]
fn c_34_measurements_that_come_late_are_of_both_roles_about_the_same_moments() {
    let check = check("comparedWithStable: {ratio: {max: 2}}\nmax: 10\nminSamples: 1");
    let CheckState::Lacks(questions) = known(&check, 660, &Readings::default()) else {
        panic!("two questions are due")
    };
    let [Inquiry::Range(candidate), Inquiry::Range(stable)] = &questions[..] else { panic!("one for each role") };
    let until = |range: &Range, end: i64| Range { until: at(end), ..range.clone() };
    let said = |own: (i64, f64), beside: (i64, f64)| {
        let mut readings = Readings::default();
        for (range, (end, value)) in [(candidate, own), (stable, beside)] {
            readings.keep(Received::Samples(until(range, end), samples(&[(end, value)])), at(661));
        }
        known(&check, 661, &readings)
    };
    assert!(matches!(said((600, 1.0), (600, 1.0)), CheckState::Said(Verdict::Good, asked) if asked == questions));
    assert!(matches!(said((600, 3.0), (600, 1.0)), CheckState::Said(Verdict::Bad(_), _)));
    assert_eq!(said((600, 1.0), (540, 1.0)), CheckState::Lacks(questions.clone()), "of other moments");
    // The step before had other moments: its answers say nothing of this one.
    let mut before = Readings::default();
    for range in [candidate, stable] {
        let range = Range { from: at(-60), ..until(range, -30) };
        before.keep(Received::Samples(range, samples(&[(-40, 99.0)])), at(1));
    }
    assert_eq!(known(&check, 660, &before), CheckState::Lacks(questions));
}

#[test]
fn a_webhook_is_asked_at_each_interval_and_says_itself_what_is_good() {
    let check = webhook();
    assert_eq!(asked(&check, 59), None);
    let Some(Inquiry::Call(first)) = asked(&check, 60) else { panic!("a question is due") };
    assert_eq!(first, Call { since: at(0), ..call(at(60)) });
    assert_eq!(asked(&check, 119), Some(Inquiry::Call(first.clone())));
    assert_eq!(asked(&check, 120), Some(Inquiry::Call(Call { at: at(120), ..first.clone() })));
    let says = |reading| heard(&check, 60, Received::Verdict(first.clone(), reading));
    let word = |word: fn(String) -> WebhookVerdict, why: &str| says(Reading::Said(word(why.to_owned())));
    let [bad, undecided, unknown] = [Verdict::Bad, Verdict::Undecided, Verdict::Unknown];
    assert_eq!(says(Reading::Said(WebhookVerdict::Good)), Verdict::Good);
    assert_eq!(word(WebhookVerdict::Bad, "3 of 9 tests fail"), bad("3 of 9 tests fail".to_owned()));
    assert_eq!(word(WebhookVerdict::Bad, ""), bad("the webhook says bad".to_owned()));
    assert_eq!(word(WebhookVerdict::Hold, "tests run"), undecided("holds (tests run)".to_owned()));
    assert_eq!(word(WebhookVerdict::Hold, ""), undecided("holds".to_owned()));
    let away = says(Reading::Away("timed out".to_owned()));
    assert_eq!(away, unknown("provider tester is away: timed out".to_owned()));
    assert_eq!(says(Reading::Unusable("no JSON".to_owned())), unknown("no JSON".to_owned()));
}
