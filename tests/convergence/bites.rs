//! Shows that the search bites: each rule that is broken on purpose is noticed. Which world notices it, and by what, stands in
//! `docs/testing.md`; `UPDATE_DOCS=1` looks for the first such world anew.

use crate::search::try_seed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate::rules::Rule;

/// The rules, and what is done instead.
const RULES: [(Rule, &str, &str); 12] = [
    (Rule::Gates, "Gates", "steps are entered whatever their gates say"),
    (Rule::Checks, "Checks", "a check that fails takes nothing back"),
    (Rule::Refused, "Refused", "what was refused is started again"),
    (Rule::Ready, "Ready", "the candidate is exposed before it is ready"),
    (Rule::ShiftFirst, "ShiftFirst", "stable is overwritten while requests are led to it"),
    (Rule::RetireLast, "RetireLast", "the candidate goes while requests are led to it"),
    (Rule::RecordFirst, "RecordFirst", "what the record will allow is done before the record is pushed"),
    (Rule::Swap, "Swap", "the record is pushed on top of whatever is there"),
    (Rule::Lease, "Lease", "who has led goes on, whoever holds the Lease"),
    (Rule::Gaps, "Gaps", "time in which nobody observed counts as soak"),
    (Rule::Expect, "Expect", "a write does not say which version it was planned on"),
    (Rule::Fence, "Fence", "a record is acted upon that is older than what live was written under"),
];

/// In how many worlds a broken rule is looked for.
const TRIES: u64 = 500;
const START: &str = "<!-- generated: rules -->\n";
const END: &str = "<!-- end: rules -->";

/// The page, below the directory that `cargo test` was started for.
fn page() -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&root).join("docs/testing.md")
}

/// By what invariant a broken rule is noticed in that world.
fn noticed(rule: Rule, seed: u64) -> Option<String> {
    let failure = try_seed(seed, &mut BTreeMap::new(), Some(rule))?;
    let found = failure.ended.found?;
    Some(found.split(": ").next().unwrap_or_default().to_owned())
}

fn first(rule: Rule) -> Option<(u64, String)> {
    (0..TRIES).find_map(|seed| noticed(rule, seed).map(|by| (seed, by)))
}

/// The worlds that the page names, by rule.
fn told(table: &str) -> BTreeMap<String, u64> {
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        Some((cells.first()?.trim_matches('`').to_owned(), cells.get(3)?.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn a_rule_that_is_broken_is_noticed() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let (update, known) = (std::env::var_os("UPDATE_DOCS").is_some(), told(table));
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        // Some rules take many worlds: nobody waits for them.
        for _ in 0..RULES.len() {
            scope.spawn(|| {
                while let Some((rule, name, instead)) = RULES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = match known.get(*name) {
                        Some(seed) if !update => noticed(*rule, *seed).map(|by| (*seed, by)),
                        Some(_) | None => first(*rule),
                    };
                    let row = match found {
                        Some((seed, by)) => format!("| `{name}` | {instead} | {by} | {seed} |\n"),
                        None => format!("| `{name}` | {instead} | not noticed | |\n"),
                    };
                    println!("{}", row.trim_end());
                    rows.lock().unwrap().insert(*name, row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    let mut wanted = "| rule | what is done instead | noticed by | first in world |\n|---|---|---|---|\n".to_owned();
    wanted.extend(RULES.iter().map(|(_, name, _)| rows.remove(name).unwrap_or_default()));
    if update {
        std::fs::write(page(), format!("{before}{START}{wanted}{END}{after}")).unwrap();
    }
    assert!(!wanted.contains("not noticed"), "{wanted}");
    if !update {
        assert!(table == wanted, "docs/testing.md is stale: run this once with UPDATE_DOCS=1\n{wanted}");
    }
}
