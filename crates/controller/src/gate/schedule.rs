//! Windows and freezes: spans of time that begin when a cron expression says so, in a zone, and last for a duration.
//!
//! Change of daylight saving, as for jobs of cron(8): an opening that falls into the hour that is left out happens at
//! the first minute after it; one that falls into the hour that comes twice happens the first time only. A window lasts
//! its duration of real time, whatever the wall clock does meanwhile.
//!
//! Each question looks at few openings, however long a window is: all windows of a schedule are equally long, so the
//! last one that opened closes last.

use crate::manifest::cron::{Cron, CronError};
use crate::manifest::duration::Span;
use crate::manifest::ids::TenantName;
use crate::record::state::Time;
use chrono::{NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use std::collections::BTreeSet;

/// A window of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    cron: Cron,
    duration: Span,
    zone: Tz,
}

/// Whether a window is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    /// It is open.
    Open {
        /// It stays open at least until then. Overlapping and adjoining windows count as one; after some 1,500 of them
        /// the count stops and this is an instant at which it is still open: look again then.
        until: Time,
    },
    /// It is closed.
    Closed {
        /// When it opens; never again if none.
        opens: Option<Time>,
    },
}

/// A freeze of the policy: a window in which nothing is entered, for some tenants or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreezeSpan {
    /// When.
    pub window: Window,
    /// For whom; everyone if empty.
    pub tenants: BTreeSet<TenantName>,
}

/// A window that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Its cron expression.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// Its duration.
    #[error("a window of no duration never opens; expected at least 1m")]
    Duration,
}

/// Parses a POSIX cron expression of five fields.
///
/// # Errors
/// When the text is none, or when no day is ever like that.
pub fn parse(cron: &str) -> Result<Cron, CronError> {
    cron.parse()
}

/// How many windows that touch each other count as one: a day of minutes and some.
const MERGED: usize = 1_500;

impl Window {
    /// A window that opens as `cron` says on the clocks of `zone`, and closes `duration` later.
    ///
    /// # Errors
    /// When the expression is none, or the duration is zero.
    pub fn new(cron: &str, duration: Span, zone: Tz) -> Result<Self, ScheduleError> {
        let cron = parse(cron)?;
        if duration == Span::ZERO {
            return Err(ScheduleError::Duration);
        }
        Ok(Self { cron, duration, zone })
    }

    /// Whether it is open at `now`: from each opening on, up to and without its end.
    #[must_use]
    pub fn is_open(&self, now: Time) -> WindowState {
        let end = |opening: Time| opening + self.duration.delta();
        let Some(mut opening) = self.last_opening(now).filter(|&opening| now < end(opening)) else {
            return WindowState::Closed { opens: self.next_opening(now) };
        };
        for _ in 0..MERGED {
            match self.last_opening(end(opening)) {
                Some(later) if later > opening => opening = later,
                Some(_) | None => break,
            }
        }
        WindowState::Open { until: end(opening) }
    }

    fn local(&self, at: Time) -> NaiveDateTime {
        at.with_timezone(&self.zone).naive_local()
    }

    /// The instant at which the clocks of the zone show `local` for the first time, or pass it.
    fn instant(&self, local: NaiveDateTime) -> Option<Time> {
        // No zone has ever left out more than a day (Samoa, 30 December 2011).
        let minutes = (0..=1_440).map(|n| local + TimeDelta::minutes(n));
        let mut shown = minutes.filter_map(|t| self.zone.from_local_datetime(&t).earliest());
        shown.next().map(|t| t.to_utc().into())
    }

    /// The last opening that is not later than `at`.
    fn last_opening(&self, at: Time) -> Option<Time> {
        // After clocks were set back, times that they are yet to show again have been already: start above them.
        let day = TimeDelta::days(1);
        let mut local = self.cron.at_or_before(self.local(at).max(self.local(at - day) + day))?;
        loop {
            let opening = self.instant(local)?;
            if opening <= at {
                return Some(opening);
            }
            local = self.cron.at_or_before(local - TimeDelta::minutes(1))?;
        }
    }

    /// The first opening that is later than `at`.
    fn next_opening(&self, at: Time) -> Option<Time> {
        let mut local = self.cron.after(self.local(at))?;
        loop {
            let opening = self.instant(local)?;
            if opening > at {
                return Some(opening);
            }
            local = self.cron.after(local)?;
        }
    }
}

impl FreezeSpan {
    /// Until when nothing is entered, if it holds for a rollout of `tenant` at `now`.
    #[must_use]
    pub fn holds(&self, tenant: Option<&TenantName>, now: Time) -> Option<Time> {
        let meant = self.tenants.is_empty() || tenant.is_some_and(|t| self.tenants.contains(t));
        match self.window.is_open(now) {
            WindowState::Open { until } if meant => Some(until),
            WindowState::Open { .. } | WindowState::Closed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Time {
        text.parse().expect(text)
    }

    fn window(cron: &str, duration: &str, zone: &str) -> Window {
        Window::new(cron, duration.parse().expect(duration), zone.parse().expect(zone)).expect(cron)
    }

    fn berlin(cron: &str, duration: &str) -> Window {
        window(cron, duration, "Europe/Berlin")
    }

    fn open(until: &str) -> WindowState {
        WindowState::Open { until: at(until) }
    }

    fn closed(opens: &str) -> WindowState {
        WindowState::Closed { opens: Some(at(opens)) }
    }

    #[test]
    fn office_hours_open_and_close() {
        let hours = berlin("0 9 * * 1-5", "8h");
        assert_eq!(hours.is_open(at("2026-11-20T08:59:59+01:00")), closed("2026-11-20T09:00:00+01:00"));
        assert_eq!(hours.is_open(at("2026-11-20T09:00:00+01:00")), open("2026-11-20T17:00:00+01:00"));
        assert_eq!(hours.is_open(at("2026-11-20T16:59:59.9+01:00")), open("2026-11-20T17:00:00+01:00"));
        assert_eq!(hours.is_open(at("2026-11-20T17:00:00+01:00")), closed("2026-11-23T09:00:00+01:00"));
    }

    #[test]
    fn windows_that_touch_are_one() {
        let shifts = window("0 0,8,16 * * 1", "8h", "UTC");
        assert_eq!(shifts.is_open(at("2026-11-23T03:00:00Z")), open("2026-11-24T00:00:00Z"));
        let overlapping = window("0 9-12 * * *", "90m", "UTC");
        assert_eq!(overlapping.is_open(at("2026-11-23T09:30:00Z")), open("2026-11-23T13:30:00Z"));
        let twice = window("0 20 * 12 *", "336h", "UTC");
        assert_eq!(twice.is_open(at("2026-12-05T00:00:00Z")), open("2027-01-14T20:00:00Z"));
    }

    #[test]
    fn a_window_that_never_closes_says_when_to_look_again() {
        let always = window("* * * * *", "1m", "UTC");
        let now = at("2026-11-23T09:30:30Z");
        let WindowState::Open { until } = always.is_open(now) else { panic!("closed") };
        assert!(until > now + TimeDelta::days(1));
        let long = window("* * * * *", "87600h", "Europe/Berlin");
        assert!(matches!(long.is_open(now), WindowState::Open { .. }));
    }

    #[test]
    fn an_opening_in_the_hour_left_out_comes_right_after_it() {
        // Berlin, 28 March 2027: 02:00 CET becomes 03:00 CEST.
        let night = berlin("30 2 * * *", "2h");
        assert_eq!(night.is_open(at("2027-03-28T01:59:59+01:00")), closed("2027-03-28T03:00:00+02:00"));
        assert_eq!(night.is_open(at("2027-03-28T03:00:00+02:00")), open("2027-03-28T05:00:00+02:00"));
        assert_eq!(night.is_open(at("2027-03-28T05:00:00+02:00")), closed("2027-03-29T02:30:00+02:00"));
    }

    #[test]
    fn an_opening_in_the_hour_that_comes_twice_comes_once() {
        // Berlin, 31 October 2027: 03:00 CEST becomes 02:00 CET.
        let night = berlin("30 2 * * *", "20m");
        assert_eq!(night.is_open(at("2027-10-31T02:29:59+02:00")), closed("2027-10-31T02:30:00+02:00"));
        assert_eq!(night.is_open(at("2027-10-31T02:30:00+02:00")), open("2027-10-31T02:50:00+02:00"));
        assert_eq!(night.is_open(at("2027-10-31T02:50:00+02:00")), closed("2027-11-01T02:30:00+01:00"));
        assert_eq!(night.is_open(at("2027-10-31T02:30:00+01:00")), closed("2027-11-01T02:30:00+01:00"));
        // Seen from the second 02:10, the opening at the first 02:30 lies 40 minutes back.
        let longer = berlin("30 2 * * *", "1h");
        assert_eq!(longer.is_open(at("2027-10-31T02:10:00+01:00")), open("2027-10-31T02:30:00+01:00"));
    }

    #[test]
    fn a_window_over_the_change_lasts_its_real_duration() {
        let night = berlin("0 22 * * 6", "8h");
        assert_eq!(night.is_open(at("2027-03-28T00:00:00+01:00")), open("2027-03-28T07:00:00+02:00"));
        assert_eq!(night.is_open(at("2027-10-31T00:00:00+02:00")), open("2027-10-31T05:00:00+01:00"));
    }

    #[test]
    fn a_day_left_out_and_a_shift_of_half_an_hour() {
        // Samoa went from 29 to 31 December 2011; Lord Howe sets its clocks by 30 minutes.
        let noon = window("0 12 30 12 *", "1h", "Pacific/Apia");
        assert_eq!(noon.is_open(at("2011-12-29T23:00:00-10:00")), closed("2011-12-31T00:00:00+14:00"));
        let howe = window("45 1 * * *", "10m", "Australia/Lord_Howe");
        assert_eq!(howe.is_open(at("2027-04-04T01:50:00+11:00")), open("2027-04-04T01:55:00+11:00"));
        assert_eq!(howe.is_open(at("2027-04-04T01:50:00+10:30")), closed("2027-04-05T01:45:00+10:30"));
    }

    #[test]
    fn freezes_hold_for_their_tenants() {
        let xmas = window("0 0 20 12 *", "336h", "UTC");
        let [shop, bank]: [TenantName; 2] = ["shop", "bank"].map(|name| name.parse().unwrap());
        let some = FreezeSpan { window: xmas.clone(), tenants: BTreeSet::from([shop.clone()]) };
        let all = FreezeSpan { window: xmas, tenants: BTreeSet::new() };
        let (now, end) = (at("2026-12-24T18:00:00Z"), Some(at("2027-01-03T00:00:00Z")));
        assert_eq!(
            (some.holds(Some(&shop), now), some.holds(Some(&bank), now), some.holds(None, now)),
            (end, None, None)
        );
        assert_eq!((all.holds(Some(&bank), now), all.holds(None, now)), (end, end));
        assert_eq!(all.holds(Some(&shop), at("2027-01-03T00:00:00Z")), None);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        assert_eq!(Window::new("0 9 * * *", Span::ZERO, Tz::UTC), Err(ScheduleError::Duration));
        assert!(matches!(Window::new("9 o'clock", Span::from_secs(60), Tz::UTC), Err(ScheduleError::Cron(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Openings found from either side agree, also around changes of daylight saving.
        #[test]
        fn openings_agree_from_both_sides(
            cron in prop::sample::select(vec!["*/7 * * * *", "30 2 * * *", "0 2,3 * * 0", "59 1 * * *", "0 0 1 * *"]),
            zone in prop::sample::select(vec!["Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Africa/Casablanca"]),
            start in prop::sample::select(vec!["2027-03-27T00:00:00Z", "2027-10-30T00:00:00Z", "2027-04-03T00:00:00Z", "2027-02-06T00:00:00Z"]),
            minutes in 0_i64..4_320,
        ) {
            let w = window(cron, "1m", zone);
            let now = at(start) + TimeDelta::minutes(minutes);
            let next = w.next_opening(now).unwrap();
            prop_assert!(next > now);
            prop_assert_eq!(w.last_opening(next), Some(next));
            let last = w.last_opening(now).unwrap();
            prop_assert!(last <= now);
            prop_assert!(w.last_opening(next - TimeDelta::seconds(1)).unwrap() == last);
        }
    }
}
