//! A forecast as a sentence: `testers now, tenth after your approval, half not before Monday 09:00 CET, done about 10:15`.

use super::{Forecast, Foreseen, Given, Shut};
use crate::manifest::desired::Gates;
use crate::manifest::duration::Span;
use crate::plan::procedure::Stage;
use crate::record::state::Time;
use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;

/// Of steps that follow each other by themselves more are told one by one only if they are this few.
const FEW: usize = 3;

impl Forecast {
    /// The whole in a sentence without its full stop; nothing if nobody is let in any more.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let stops = self.stops();
        let first = stops.first()?;
        let mut teller = Teller::new(self, first.at.unwrap_or(self.now));
        let mut parts = Vec::new();
        for (n, stop) in stops.iter().enumerate() {
            let Some(at) = stop.at else {
                // Nor does anything that comes after it.
                parts.push(format!("{} not in sight, as nothing opens for it", stop.name));
                break;
            };
            if !is_between(&stops, n) {
                let after = if n > 0 && is_between(&stops, n - 1) { "on to " } else { "" };
                parts.push(format!("{after}{}", teller.stop(stop, at)));
            }
        }
        parts.extend(self.steps.last().and_then(|last| last.earliest).map(|end| teller.end(end)));
        Some(parts.join(", "))
    }

    /// The clocks of the forecast at a moment: `Friday 16:05 CET`.
    #[must_use]
    pub fn clock(&self, at: Time) -> String {
        at.with_timezone(&self.zone).format("%A %-d %B %Y %H:%M %Z").to_string()
    }

    /// The steps that people speak of: the phases, and the promotion. What stands before *prepare* is told of the first.
    fn stops(&self) -> Vec<Stop<'_>> {
        let mut stops = Vec::new();
        let mut prepare: Option<&Foreseen> = None;
        for step in &self.steps {
            let name = match (step.name.as_str(), step.stage) {
                ("prepare", _) => {
                    prepare = Some(step);
                    continue;
                }
                (name, Stage::Progressing) => name,
                ("shift", _) => "promotion",
                // Where there is no candidate it is the one step that people meet.
                ("promote", _) if stops.is_empty() && prepare.is_none() => "promotion",
                _ => continue,
            };
            let before = prepare.take().filter(|prepare| prepare.through == step.through).into_iter().chain([step]);
            let before: Vec<&Foreseen> = before.collect();
            stops.push(Stop { name, at: step.earliest, before });
        }
        stops
    }
}

/// One of the steps that people speak of.
struct Stop<'a> {
    name: &'a str,
    at: Option<Time>,
    /// The steps whose gates stand before it.
    before: Vec<&'a Foreseen>,
}

impl Stop<'_> {
    /// Whose decision it takes.
    fn asks(&self) -> Vec<String> {
        let asks = self.before.iter().flat_map(|step| {
            let Gates { approval, window: _, webhook, job } = &step.before;
            let approval = approval.filter(|_| step.given == Given::No).map(|_| "after your approval".to_owned());
            let webhook = webhook.as_ref().map(|webhook| format!("once {} agrees", webhook.provider));
            let job = job.as_ref().map(|job| format!("once the Job {job} succeeds"));
            [approval, webhook, job].into_iter().flatten()
        });
        asks.collect()
    }

    fn shut(&self) -> Option<&Shut> {
        self.before.iter().find_map(|step| step.shut.as_ref())
    }

    fn window(&self) -> Option<String> {
        let window = self.before.iter().find_map(|step| step.before.window.as_ref());
        window.map(|window| format!(" (within {window})"))
    }

    /// Whether it follows by itself.
    fn follows(&self) -> bool {
        self.at.is_some() && self.asks().is_empty() && self.shut().is_none()
    }
}

/// Whether a stop is neither the first nor the last of many that follow each other by themselves.
fn is_between(stops: &[Stop<'_>], n: usize) -> bool {
    let before = stops[..n].iter().rev().take_while(|stop| stop.follows()).count();
    let after = stops[n..].iter().take_while(|stop| stop.follows()).count();
    // The promotion is always told.
    before > 0 && after > 2 && before + after > FEW + 1
}

/// What is known of the time at some point of the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// It follows from the clock.
    Fixed,
    /// It depends on when people, or others, say yes.
    Floating,
}

/// Tells one time after the other.
struct Teller {
    now: Time,
    zone: Tz,
    /// The day and the zone that were told last.
    day: NaiveDate,
    zoned: Option<String>,
    /// What the last part was about.
    last: Time,
    pace: Pace,
}

impl Teller {
    fn new(Forecast { steps: _, now, zone }: &Forecast, first: Time) -> Self {
        let day = now.with_timezone(zone).date_naive();
        Self { now: *now, zone: *zone, day, zoned: None, last: first, pace: Pace::Fixed }
    }

    /// One part of the sentence.
    fn stop(&mut self, stop: &Stop<'_>, at: Time) -> String {
        let mut when = stop.asks();
        if !when.is_empty() {
            self.pace = Pace::Floating;
        }
        if let Some(shut) = stop.shut() {
            let why = match shut {
                Shut::Window => String::new(),
                Shut::Freeze(freeze) => format!(" (freeze {freeze})"),
            };
            when.push(format!("not before {}{why}", self.clock(at)));
            // Whoever says yes before that is early enough.
            self.pace = Pace::Fixed;
        } else if when.is_empty() {
            when.push(self.follows(at));
        }
        self.last = at;
        let within = stop.window().filter(|_| self.pace == Pace::Floating).unwrap_or_default();
        format!("{} {}{within}", stop.name, when.join(" and "))
    }

    fn follows(&mut self, at: Time) -> String {
        let wait = at - self.last;
        match self.pace {
            Pace::Floating if wait > TimeDelta::zero() => format!("{} later", span(wait)),
            Pace::Floating => "right after".to_owned(),
            Pace::Fixed if at <= self.now => "now".to_owned(),
            Pace::Fixed => format!("about {}", self.clock(at)),
        }
    }

    /// The end of the sentence.
    fn end(&mut self, at: Time) -> String {
        let rest = at - self.last;
        match self.pace {
            Pace::Floating if rest > TimeDelta::zero() => format!("done about {} later", span(rest)),
            Pace::Fixed if at > self.now => format!("done about {}", self.clock(at)),
            Pace::Floating | Pace::Fixed => "done once its pods are ready".to_owned(),
        }
    }

    /// A time with what of the day and the zone was not told yet: `Monday 09:00 CET`, then `10:15`.
    fn clock(&mut self, at: Time) -> String {
        let local = at.with_timezone(&self.zone);
        let (day, zone) = (local.date_naive(), local.format("%Z").to_string());
        let near = day - self.now.with_timezone(&self.zone).date_naive() < TimeDelta::days(7);
        let told = std::mem::replace(&mut self.day, day) == day;
        let date = match (told, near) {
            (true, _) => String::new(),
            (false, true) => local.format("%A ").to_string(),
            (false, false) => local.format("%-d %B %Y ").to_string(),
        };
        let named = self.zoned.as_ref() == Some(&zone);
        let suffix = if named { String::new() } else { format!(" {zone}") };
        self.zoned = Some(zone);
        format!("{date}{}{suffix}", local.format("%H:%M"))
    }
}

fn span(delta: TimeDelta) -> Span {
    Span::from_secs(u64::try_from(delta.num_seconds()).unwrap_or(0))
}
