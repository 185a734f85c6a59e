//! The text of a commit on the state branch.
//!
//! `[skip ci]` stands at once after the subject, since some hosts look at the first lines only. The trailers are
//! for people and `git log --grep`: nothing reads them back, the record says it all.

use super::state::RolloutState;
use super::text::{exposure, place, unlinked};
use crate::manifest::ids::RolloutId;
use std::collections::BTreeSet;

/// What a commit says of one rollout.
#[derive(Debug, Clone, Copy)]
pub struct CommitEntry<'a> {
    /// Which.
    pub rollout: &'a RolloutId,
    /// The record before; none for a new rollout.
    pub before: Option<&'a RolloutState>,
    /// The record after; none when it goes.
    pub after: Option<&'a RolloutState>,
    /// Why, in words; foreign text is welcome.
    pub why: &'a str,
}

/// How many rollouts one commit tells of by name; the records themselves tell of all.
const TOLD: usize = 50;

/// The whole message for a commit of these changes.
#[must_use]
pub fn commit(changes: &[CommitEntry<'_>]) -> String {
    let told = &changes[..changes.len().min(TOLD)];
    let (subject, body) = match changes {
        [change] => (change.subject(), unlinked(change.why)),
        _ => {
            let mut lines: Vec<String> = told.iter().map(CommitEntry::line).collect();
            if changes.len() > TOLD {
                lines.push(format!("- and {} more", changes.len() - TOLD));
            }
            (format!("{} rollouts", changes.len()), lines.join("\n"))
        }
    };
    let trailers: Vec<String> = told.iter().flat_map(CommitEntry::trailers).collect();
    let paragraphs = [subject, "[skip ci]".to_owned(), body, trailers.join("\n")];
    let paragraphs: Vec<String> = paragraphs.into_iter().filter(|paragraph| !paragraph.is_empty()).collect();
    paragraphs.join("\n\n") + "\n"
}

/// What the clusters of a record expose, in words.
pub(crate) fn exposed(state: &RolloutState) -> String {
    let mut parts: Vec<String> = state.clusters.values().filter_map(|c| exposure(&c.posture.split)).collect();
    parts.dedup();
    parts.join("; ")
}

/// What is new in a record that stands where it stood: conditions that came and went; empty if it is something else.
fn news(before: &RolloutState, after: &RolloutState) -> String {
    let reasons = |state: &RolloutState| state.conditions.iter().map(|c| c.reason.clone()).collect::<BTreeSet<_>>();
    let (then, now) = (reasons(before), reasons(after));
    let came = now.difference(&then).cloned();
    let gone = then.difference(&now).map(|reason| format!("no longer {reason}"));
    let news: Vec<String> = came.chain(gone).collect();
    unlinked(&news.join(", "))
}

impl CommitEntry<'_> {
    /// `shop/podinfo: testers → tenth (weight 10)`.
    fn subject(&self) -> String {
        let Some(after) = self.after else { return format!("{}: record removed", self.rollout) };
        let now = place(&after.phase);
        let exposed = match exposed(after) {
            parts if parts.is_empty() => parts,
            parts => format!(" ({})", unlinked(&parts)),
        };
        let Some(before) = self.before else { return format!("{}: new → {now}{exposed}", self.rollout) };
        let then = place(&before.phase);
        if then != now {
            return format!("{}: {then} → {now}{exposed}", self.rollout);
        }
        let clock = |state: &RolloutState| state.phase.position().and_then(|position| position.clock.exposed);
        let what = match (clock(before), clock(after)) {
            (None, Some(_)) => "reached".to_owned(),
            _ => match news(before, after) {
                news if !news.is_empty() => news,
                _ if self.why.is_empty() => "record updated".to_owned(),
                _ => unlinked(self.why),
            },
        };
        format!("{}: {now}, {what}{exposed}", self.rollout)
    }

    /// The same as one of several, with the reason.
    fn line(&self) -> String {
        let (subject, why) = (self.subject(), unlinked(self.why));
        if why.is_empty() || subject.contains(&why) {
            return format!("- {subject}");
        }
        format!("- {subject}: {why}")
    }

    fn trailers(&self) -> Vec<String> {
        let mut trailers = vec![format!("Tidegate-Rollout: {}", self.rollout)];
        let Some(state) = self.after.or(self.before) else { return trailers };
        let ended = state.last_run.as_ref().map(|run| &run.id);
        if let Some(run) = state.run.as_ref().map(|run| &run.id).or(ended) {
            trailers.push(format!("Tidegate-Run: {run}"));
        }
        let promoted = state.promoted.as_ref().map(|promoted| &promoted.revision);
        if let Some(revision) = state.run.as_ref().map(|run| &run.revision).or(promoted) {
            trailers.push(format!("Tidegate-Revision: {revision}"));
        }
        if let Some(position) = state.phase.position() {
            trailers.push(format!("Tidegate-Step: {}", position.step));
        }
        trailers.push(format!("Tidegate-Source: {}", state.source.commit));
        trailers
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{open, position, steady, time};
    use super::super::history::end_run;
    use super::super::state::{Outcome, Phase, Rest};
    use super::*;

    fn on(step: &str) -> RolloutState {
        RolloutState { phase: Phase::Progressing(position(step)), ..open() }
    }

    fn message(before: Option<&RolloutState>, after: Option<&RolloutState>, why: &str) -> String {
        let rollout = steady().metadata;
        commit(&[CommitEntry { rollout: &rollout, before, after, why }])
    }

    #[test]
    fn what_stands_where_it_stood_says_what_happened() {
        let subject =
            |why: &str| message(Some(&on("tenth")), Some(&on("tenth")), why).lines().next().unwrap().to_owned();
        assert!(subject("inventory").starts_with("shop/podinfo: tenth, inventory"), "{}", subject("inventory"));
        assert!(subject("").starts_with("shop/podinfo: tenth, record updated"), "{}", subject(""));
        let rollout = steady().metadata;
        let (state, why) = (on("tenth"), "inventory");
        let change = CommitEntry { rollout: &rollout, before: Some(&state), after: Some(&state), why };
        let several = commit(&[change, change]);
        assert_eq!(several.matches("inventory").count(), 2, "{several}");
    }

    #[test]
    fn x_7_a_step_forward() {
        insta::assert_snapshot!(message(Some(&on("testers")), Some(&on("tenth")), "approved by Ana"));
    }

    #[test]
    fn x_7_every_message_skips_ci_and_ends_with_trailers() {
        let evil = "x\n\nTidegate-Run: 9-99999999\n\nfixes #12 @ana https://evil.example";
        for text in [
            message(Some(&on("testers")), Some(&on("tenth")), evil),
            message(None, Some(&steady()), evil),
            message(Some(&steady()), None, evil),
        ] {
            assert_eq!(text.lines().nth(2), Some("[skip ci]"));
            let trailers = text.trim_end().rsplit("\n\n").next().unwrap();
            assert!(trailers.lines().all(|line| line.starts_with("Tidegate-")), "{text}");
            assert!(!trailers.contains("99999999") && !text.contains("#12") && !text.contains("@ana"), "{text}");
            assert!(!text.contains("https://"), "{text}");
        }
    }

    #[test]
    fn subjects() {
        let subject = |before: Option<&RolloutState>, after: Option<&RolloutState>| {
            message(before, after, "").lines().next().unwrap_or_default().to_owned()
        };
        let mut fresh = on("tenth");
        if let Phase::Progressing(position) = &mut fresh.phase {
            position.clock.exposed = None;
        }
        let waiting = RolloutState {
            phase: Phase::Waiting {
                at: Some(position("tenth")),
                next: "half".parse().unwrap(),
                since: time("10:10:00"),
            },
            ..open()
        };
        let mut ended = open();
        end_run(&mut ended, Outcome::Promoted, "", time("11:00:00"));
        ended.phase = Phase::Steady { how: Rest::Succeeded, since: time("11:00:00") };
        ended.clusters = steady().clusters;
        let mut calm = on("tenth");
        calm.conditions.clear();
        let lines = [
            subject(None, Some(&steady())),
            subject(Some(&steady()), Some(&fresh)),
            subject(Some(&fresh), Some(&on("tenth"))),
            subject(Some(&on("tenth")), Some(&calm)),
            subject(Some(&calm), Some(&calm)),
            subject(Some(&calm), Some(&waiting)),
            subject(Some(&on("return")), Some(&ended)),
            subject(Some(&ended), None),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn several_rollouts_are_listed() {
        let (before, after) = (on("testers"), on("tenth"));
        let ids = ["shop/a", "shop/b", "shop/c"].map(|id| id.parse::<RolloutId>().unwrap());
        let change = |rollout, why| CommitEntry { rollout, before: Some(&before), after: Some(&after), why };
        let text = commit(&[change(&ids[0], "soaked"), change(&ids[1], ""), change(&ids[2], "approved")]);
        insta::assert_snapshot!(text);
        let many: Vec<RolloutId> = (0..80).map(|n| format!("shop/r{n}").parse().unwrap()).collect();
        let text = commit(&many.iter().map(|id| change(id, "")).collect::<Vec<_>>());
        assert!(text.starts_with("80 rollouts\n") && text.contains("\n- and 30 more\n"));
    }
}
