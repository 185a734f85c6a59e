//! POSIX cron expressions: five fields, evaluated on local wall-clock time without a zone.
//!
//! The crate `cron` speaks Quartz: six or seven fields, day-of-week 1 = Sunday, day-of-month *and* day-of-week. So the
//! five fields are read here, by the rules of crontab(5), and handed over as plain lists of numbers:
//!
//! - `*`, numbers, ranges, lists, and steps after `*` or a range; English three-letter names of months and weekdays;
//! - day-of-week 0 to 7, where 0 and 7 are Sunday;
//! - when neither day field begins with `*`, a day matches if *either* field does; else it must match both.

use ::cron::Schedule;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A parsed cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// One schedule, or two of which either may match.
    schedules: Vec<Schedule>,
}

/// A text that is not a cron expression that tidegate understands. The texts say what was found, a colon, and what was
/// expected: the schema's reports are made of these two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error("{found:?} is not five fields but {count}: minute, hour, day of month, month and day of week")]
    Fields {
        /// The text, cut to 80 characters.
        found: String,
        /// How many fields it has.
        count: usize,
    },
    /// A part of a field makes no sense.
    #[error("{found:?} is not a valid {field}: {rule}")]
    Part {
        /// Which field.
        field: &'static str,
        /// The part, cut to 80 characters.
        found: String,
        /// What is expected there, as a noun phrase.
        rule: String,
    },
    /// All fields are right, but no day is ever like that.
    #[error("{found:?} is not a day of any year: a day of the calendar")]
    Never {
        /// The text.
        found: String,
    },
}

/// One of the five fields: its name, its smallest and largest number, and names for numbers from the smallest on.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY_OF_MONTH: Field = Field { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { name: "month", min: 1, max: 12, names: MONTHS };
const DAY_OF_WEEK: Field = Field { name: "day of week", min: 0, max: 7, names: DAYS };

impl Field {
    fn refuse(&self, found: &str, rule: impl Into<String>) -> CronError {
        CronError::Part { field: self.name, found: cut(found), rule: rule.into() }
    }

    fn number(&self, text: &str) -> Result<u32, CronError> {
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.min + u32::try_from(index).expect("a handful of names, because the lists are above"));
        }
        let digits = !text.is_empty() && text.len() <= 2 && text.bytes().all(|c| c.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && (self.min..=self.max).contains(&number) => Ok(number),
            Ok(_) | Err(_) => {
                let names = self.names.first().zip(self.names.last());
                let names = names.map_or(String::new(), |(first, last)| format!(", or a name from {first} to {last}"));
                Err(self.refuse(text, format!("a number from {} to {}{names}", self.min, self.max)))
            }
        }
    }

    fn part(&self, text: &str) -> Result<Vec<u32>, CronError> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None if step.is_some() => return Err(self.refuse(text, "a step after * or a range, as in */15")),
            None => (self.number(range)?, self.number(range)?),
        };
        if first > last {
            return Err(self.refuse(text, "a range that goes up, or two, as in 22-23,0-2"));
        }
        let step = match step.map(str::parse::<usize>) {
            None => 1,
            Some(Ok(step)) if (1..=59).contains(&step) => step,
            Some(_) => return Err(self.refuse(text, "a step from 1 to 59")),
        };
        Ok((first..=last).step_by(step).collect())
    }

    fn parse(&self, text: &str) -> Result<BTreeSet<u32>, CronError> {
        let mut numbers = BTreeSet::new();
        for part in text.split(',') {
            numbers.extend(self.part(part)?);
        }
        Ok(numbers)
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Numbers as the crate `cron` reads them.
fn list(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError::Fields { found: cut(text), count: fields.len() });
        };
        let clock = format!("0 {} {}", list(MINUTE.parse(minute)?), list(HOUR.parse(hour)?));
        let months = list(MONTH.parse(month)?);
        let days = list(DAY_OF_MONTH.parse(day)?);
        // Quartz counts Sunday as 1; a full week has to be spelled `*`.
        let week: BTreeSet<u32> = DAY_OF_WEEK.parse(weekday)?.into_iter().map(|n| n % 7 + 1).collect();
        let week = if week.len() == 7 { "*".to_owned() } else { list(week) };
        let either = !day.starts_with('*') && !weekday.starts_with('*');
        let pairs = if either { vec![(days.as_str(), "*"), ("*", week.as_str())] } else { vec![(&*days, &*week)] };
        let schedules = pairs.into_iter().map(|(days, week)| {
            Schedule::from_str(&format!("{clock} {days} {months} {week}"))
                .expect("lists of numbers in range, because the fields were read above")
        });
        let cron = Self { text: fields.join(" "), schedules: schedules.collect() };
        // From a leap year on: 29 February counts as a day that comes.
        if cron.after(DateTime::UNIX_EPOCH.naive_utc()).is_none() {
            return Err(CronError::Never { found: cron.text });
        }
        Ok(cron)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The crate `cron` wants a zone; wall-clock time is passed through as if it were UTC, which has no gaps.
fn as_utc(local: NaiveDateTime) -> DateTime<Utc> {
    local.and_utc()
}

impl Cron {
    /// The first time of the wall clock that is later than `local`; none after the year 2100.
    #[must_use]
    pub fn after(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let start = as_utc(local);
        self.schedules.iter().filter_map(|s| s.after(&start).next()).min().map(|t| t.naive_utc())
    }

    /// The last time of the wall clock that is not later than `local`; none before the year 1970.
    #[must_use]
    pub fn at_or_before(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        // The iterator leaves out its starting point, and times have whole seconds.
        let start = as_utc(local).checked_add_signed(TimeDelta::seconds(1))?;
        let floor = DateTime::from_timestamp(start.timestamp(), 0)?;
        self.schedules.iter().filter_map(|s| s.after(&floor).next_back()).max().map(|t| t.naive_utc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate, Timelike};
    use proptest::prelude::*;

    fn at(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").expect(text)
    }

    fn next(cron: &str, from: &str) -> String {
        let cron: Cron = cron.parse().expect(cron);
        cron.after(at(from)).expect("comes").format("%a %Y-%m-%d %H:%M").to_string()
    }

    #[test]
    fn the_posix_dialect() {
        assert_eq!(next("0 9 * * 1-5", "2026-11-21 00:00"), "Mon 2026-11-23 09:00");
        assert_eq!(next("0 9 * * mon-FRI", "2026-11-21 00:00"), "Mon 2026-11-23 09:00");
        assert_eq!(next("0 0 * * 0", "2026-11-21 00:00"), "Sun 2026-11-22 00:00");
        assert_eq!(next("0 0 * * 7", "2026-11-21 00:00"), "Sun 2026-11-22 00:00");
        assert_eq!(next("0 0 * * 5-7", "2026-11-21 00:00"), "Sun 2026-11-22 00:00");
        assert_eq!(next("*/15 2 * jan *", "2026-11-21 00:00"), "Fri 2027-01-01 02:00");
        assert_eq!(next("10-40/15 2 * * *", "2026-11-21 02:10"), "Sat 2026-11-21 02:25");
        assert_eq!(next("0 0 29 2 *", "2026-11-21 00:00"), "Tue 2028-02-29 00:00");
    }

    #[test]
    fn two_day_fields_are_either_or_unless_one_has_a_star() {
        assert_eq!(next("0 0 13 * 5", "2026-11-21 00:00"), "Fri 2026-11-27 00:00");
        assert_eq!(next("0 0 13 * 5", "2026-12-12 00:00"), "Sun 2026-12-13 00:00");
        // crontab(5): a field that begins with * restricts nothing on its own, so both must match.
        assert_eq!(next("0 0 */10 * 1", "2026-11-21 00:00"), "Mon 2026-12-21 00:00");
    }

    #[test]
    fn attack_34_expressions_that_are_none() {
        for text in [
            "",
            "* * * *",
            "0 * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "-1 * * * *",
            "5/15 * * * *",
            "*/0 * * * *",
            "*/99999999999999999999 * * * *",
            "22-2 * * * *",
            "1,,2 * * * *",
            "? * * * *",
            "0 0 L * *",
            "0 0 * * 5#2",
            "@daily",
            "0 0 30 2 *",
            "+5 * * * *",
            "0 0 * * montag",
        ] {
            assert!(text.parse::<Cron>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text: &str| text.parse::<Cron>().expect_err(text).to_string();
        let texts = [
            "0 9 * *",
            "@daily",
            "61 9 * * *",
            "0 9 * * 9",
            "0 22-2 * * *",
            "5/15 * * * *",
            "*/0 * * * *",
            "0 0 31 4 *",
        ];
        insta::assert_snapshot!(texts.map(error).join("\n"), @r#"
        "0 9 * *" is not five fields but 4: minute, hour, day of month, month and day of week
        "@daily" is not five fields but 1: minute, hour, day of month, month and day of week
        "61" is not a valid minute: a number from 0 to 59
        "9" is not a valid day of week: a number from 0 to 7, or a name from sun to sat
        "22-2" is not a valid hour: a range that goes up, or two, as in 22-23,0-2
        "5/15" is not a valid minute: a step after * or a range, as in */15
        "*/0" is not a valid minute: a step from 1 to 59
        "0 0 31 4 *" is not a day of any year: a day of the calendar
        "#);
    }

    /// The rule written down again, minute by minute.
    fn matches(fields: [&str; 5], t: NaiveDateTime) -> bool {
        let has = |field: &Field, text: &str, n: u32| field.parse(text).expect(text).contains(&n);
        let weekday = t.weekday().num_days_from_sunday();
        let day = has(&DAY_OF_MONTH, fields[2], t.day());
        let week = has(&DAY_OF_WEEK, fields[4], weekday) || weekday == 0 && has(&DAY_OF_WEEK, fields[4], 7);
        let either = !fields[2].starts_with('*') && !fields[4].starts_with('*');
        has(&MINUTE, fields[0], t.minute())
            && has(&HOUR, fields[1], t.hour())
            && has(&MONTH, fields[3], t.month())
            && if either { day || week } else { day && week }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn equals_a_search_minute_by_minute(
            minute in prop::sample::select(vec!["0", "59", "*/20", "7,31"]),
            hour in prop::sample::select(vec!["*", "0", "23", "2,14"]),
            day in prop::sample::select(vec!["*", "1", "31", "*/2", "28-30"]),
            month in prop::sample::select(vec!["*", "2,3", "1,3,12"]),
            week in prop::sample::select(vec!["*", "0", "7", "1-5", "6"]),
            ordinal in 1_u32..365,
            clock in 0_u32..1_440,
        ) {
            let fields = [minute, hour, day, month, week];
            let cron: Cron = fields.join(" ").parse().unwrap();
            let start = NaiveDate::from_yo_opt(2027, ordinal).unwrap().and_hms_opt(clock / 60, clock % 60, 0).unwrap();
            let span = 3 * 1_440;
            let forth = (1..span).map(|n| start + TimeDelta::minutes(n)).find(|&t| matches(fields, t));
            let found = cron.after(start).filter(|&t| t < start + TimeDelta::minutes(span));
            prop_assert_eq!(forth, found);
            let back = (0..span).map(|n| start - TimeDelta::minutes(n)).find(|&t| matches(fields, t));
            let found = cron.at_or_before(start).filter(|&t| t > start - TimeDelta::minutes(span));
            prop_assert_eq!(back, found);
        }
    }
}
