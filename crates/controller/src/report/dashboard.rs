//! The dashboard: `README.md` of the state branch, for whoever looks at it on a Git host.
//!
//! It is made of records alone and names no "now", so equal records give equal bytes. Foreign text is in code spans:
//! there no Git host makes links, mentions, pictures or tables of it (design: fine print 13).

use super::view::Urgency;
use crate::manifest::ids::InstanceName;
use crate::record::message::exposed;
use crate::record::state::{Phase, RolloutState};
use crate::record::store::paths;
use crate::record::text::{count, plain, rest, since};
use std::collections::BTreeMap;

/// One rollout on the dashboard.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its record.
    pub state: &'a RolloutState,
    /// What it waits on, in words; foreign text is welcome.
    pub waiting: &'a [String],
}

/// How many rows each table has; Git hosts stop showing files of some 500 KiB.
const ROWS: usize = 500;

/// Foreign text as a Markdown code span, safe in a table too: one line, at most 1 KiB, nothing hidden, never a link.
#[must_use]
pub fn escape(text: &str) -> String {
    // Nothing ends the span but a backtick, and nothing splits a table's cell but a bar.
    let text = plain(text).replace('`', "'").replace('|', "¦");
    let text = if text.is_empty() { "(nothing)".to_owned() } else { plain(&text) };
    format!("`{text}`")
}

/// The dashboard of all rollouts: first what is not steady, what went wrong on top, then what is.
#[must_use]
pub fn print(instance: &InstanceName, rows: &[Row<'_>]) -> String {
    let (mut busy, mut steady): (Vec<&Row<'_>>, Vec<&Row<'_>>) = rows.iter().partition(|row| row.is_busy());
    busy.sort_by_key(|row| (row.urgency(), &row.state.metadata));
    steady.sort_by_key(|row| &row.state.metadata);
    let mut text = format!(
        "# tidegate `{instance}`\n\n{}\n\nWritten by tidegate with each record; changes made here by hand are lost.\n",
        counts(rows)
    );
    if !busy.is_empty() {
        text.push_str(
            "\n## Not steady\n\n| rollout | phase | step | exposure | waits on | since | run |\n|---|---|---|---|---|---|---|\n",
        );
        busy.iter().take(ROWS).for_each(|row| text.push_str(&row.busy()));
        text.push_str(&more(busy.len()));
    }
    if !steady.is_empty() {
        text.push_str("\n## Steady\n\n| rollout | came to rest | revision | since |\n|---|---|---|---|\n");
        steady.iter().take(ROWS).for_each(|row| text.push_str(&row.steady()));
        text.push_str(&more(steady.len()));
    }
    text
}

fn more(rows: usize) -> String {
    if rows > ROWS { format!("\nand {} more\n", rows - ROWS) } else { String::new() }
}

fn counts(rows: &[Row<'_>]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.state.phase.name()).or_default() += 1);
    let phases: Vec<String> = counts.iter().map(|(phase, n)| format!("{n} {phase}")).collect();
    match phases.is_empty() {
        true => "No rollouts.".to_owned(),
        false => format!("{}: {}.", count(rows.len(), "rollout"), phases.join(", ")),
    }
}

impl Row<'_> {
    fn is_busy(&self) -> bool {
        self.urgency() != Urgency::Rest
    }

    fn urgency(&self) -> Urgency {
        Urgency::of(&self.state.phase, !self.state.conditions.is_empty() || !self.waiting.is_empty())
    }

    /// The name, as a link to the record.
    fn link(&self) -> String {
        let id = &self.state.metadata;
        format!("[{id}]({})", paths(id).state)
    }

    /// The step that it stands on, and the one that it would enter.
    fn step(&self) -> String {
        let at = self.state.phase.position().map(|position| position.step.to_string());
        let next = match &self.state.phase {
            Phase::Waiting { next, .. } => Some(next.to_string()),
            Phase::WaitingPromotion { .. } => Some("promotion".to_owned()),
            Phase::Initializing(_)
            | Phase::Steady { .. }
            | Phase::Progressing(_)
            | Phase::Promoting(_)
            | Phase::Finalising(_)
            | Phase::Reverting { .. }
            | Phase::Failed { .. }
            | Phase::Terminating { .. }
            | Phase::Unknown(_) => None,
        };
        match (at, next) {
            (None, None) => "–".to_owned(),
            (Some(at), None) => at,
            (at, Some(next)) => format!("{} → {next}", at.unwrap_or_default()).trim().to_owned(),
        }
    }

    fn since(&self) -> String {
        since(&self.state.phase).map_or("–".to_owned(), |time| time.format("%Y-%m-%d %H:%M:%SZ").to_string())
    }

    fn busy(&self) -> String {
        let mut waits: Vec<String> = match &self.state.phase {
            Phase::Failed { why, .. } | Phase::Reverting { why, .. } => vec![escape(why)],
            Phase::Unknown(_) => vec!["a newer tidegate".to_owned()],
            Phase::Initializing(_)
            | Phase::Steady { .. }
            | Phase::Waiting { .. }
            | Phase::Progressing(_)
            | Phase::WaitingPromotion { .. }
            | Phase::Promoting(_)
            | Phase::Finalising(_)
            | Phase::Terminating { .. } => Vec::new(),
        };
        waits.extend(self.state.conditions.iter().map(|c| escape(&format!("{}: {}", c.reason, c.message))));
        waits.extend(self.waiting.iter().map(|wait| escape(wait)));
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            self.link(),
            self.state.phase.name(),
            self.step(),
            match exposed(self.state) {
                parts if parts.is_empty() => "–".to_owned(),
                parts => escape(&parts),
            },
            if waits.is_empty() { "–".to_owned() } else { waits.join("<br>") },
            self.since(),
            self.state.run.as_ref().map_or("–".to_owned(), |run| format!("`{}`", run.id)),
        )
    }

    fn steady(&self) -> String {
        let revision = self.state.promoted.as_ref().map_or("–".to_owned(), |p| format!("`{}`", p.revision.short()));
        let phase = &self.state.phase;
        let how = if let Phase::Steady { how, .. } = phase { rest(*how) } else { phase.name() };
        format!("| {} | {how} | {revision} | {} |\n", self.link(), self.since())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{condition, open, position, run, steady, time};
    use crate::record::state::{Serving, Then};
    use proptest::prelude::*;

    fn instance() -> InstanceName {
        "prod".parse().unwrap()
    }

    fn named(name: &str, state: RolloutState) -> RolloutState {
        RolloutState { metadata: format!("shop/{name}").parse().unwrap(), ..state }
    }

    #[test]
    fn what_needs_a_person_comes_first() {
        let failed = Phase::Failed {
            why: "error-rate | 0.2 > 0.01, see https://evil.example @ana `x`".to_owned(),
            since: time("10:30:00"),
            standing: Serving::Stable,
        };
        let back = Phase::Reverting { position: position("split"), why: "aborted".to_owned(), then: Then::Aborted };
        let waiting =
            Phase::Waiting { at: Some(position("tenth")), next: "half".parse().unwrap(), since: time("10:10:00") };
        let rejected = condition("ManifestRejected", "rollout.yaml:3:1", time("10:00:00"));
        let states = [
            named("zebra", steady()),
            named("cart", open()),
            named("login", RolloutState { phase: waiting, ..open() }),
            named("api", RolloutState { phase: back, ..open() }),
            named("web", RolloutState { phase: failed, ..steady() }),
            named("mail", RolloutState { conditions: vec![rejected], ..steady() }),
            named("new", RolloutState { phase: Phase::Unknown(serde_json::json!({"name": "Baking"})), ..steady() }),
            named("ant", RolloutState { promoted: None, ..steady() }),
        ];
        let wait = ["window office-hours is closed".to_owned(), "half waits for approval".to_owned()];
        let rows: Vec<Row<'_>> = states
            .iter()
            .map(|state| Row { state, waiting: if state.metadata.name.as_str() == "login" { &wait } else { &[] } })
            .collect();
        insta::assert_snapshot!(print(&instance(), &rows));
        let mut other = rows.clone();
        other.reverse();
        assert_eq!(print(&instance(), &rows), print(&instance(), &other), "equal records, equal bytes");
    }

    #[test]
    fn an_empty_dashboard_and_a_large_one() {
        insta::assert_snapshot!(print(&instance(), &[]));
        let states: Vec<RolloutState> = (0..ROWS + 5).map(|n| named(&format!("r{n:05}"), steady())).collect();
        let rows: Vec<Row<'_>> = states.iter().map(|state| Row { state, waiting: &[] }).collect();
        let text = print(&instance(), &rows);
        assert!(text.contains("505 rollouts: 505 Steady.") && text.ends_with("\nand 5 more\n"));
        assert!(text.len() < 100_000, "{}", text.len());
        assert!(!text.contains(run(6).as_str()));
    }

    #[test]
    fn fine_print_13_foreign_text_is_no_markdown() {
        assert_eq!(
            escape("[x](https://evil.example) @ana <img src=x> #1"),
            "`[x](https://evil.example) @ana <img src=x> #1`"
        );
        assert_eq!(escape("a`b``c | d\n| e"), "`a'b''c ¦ d ¦ e`");
        assert_eq!(escape("\u{202e}"), "`\\u{202e}`");
        assert_eq!(escape(" \n "), "`(nothing)`");
        assert!(escape(&"|".repeat(5_000)).len() <= crate::record::text::CAP + 2);
    }

    proptest! {
        #[test]
        fn escaped_text_never_leaves_its_cell(text in "(?s).{0,300}|[`|\\\\\n<>a ]{0,40}") {
            let escaped = escape(&text);
            let inner = escaped.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap();
            prop_assert!(!inner.is_empty() && !inner.contains(['`', '|', '\n', '\r']));
            prop_assert!(inner.trim() == inner && inner.len() <= crate::record::text::CAP);
        }
    }
}
