//! Shows that the search bites: each rule that is broken on purpose is noticed. Which world notices it, and by what, stands in
//! `docs/testing.md`; `UPDATE_DOCS=1` looks for another one where that world notices nothing any more.

use crate::convergence::search::{story_of, try_seed};
use crate::convergence::shape::{Router, Shape};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate::manifest::desired::Layout;
use tidegate::rules::Rule;

/// The rules, and what is done instead.
const RULES: [(Rule, &str, &str); 14] = [
    (Rule::Gates, "Gates", "steps are entered whatever their gates say"),
    (Rule::Checks, "Checks", "a check that fails takes nothing back"),
    (Rule::LowerAtOnce, "LowerAtOnce", "a rollback in a run waits until that has ended"),
    (Rule::Refused, "Refused", "what was refused is started again"),
    (Rule::Ready, "Ready", "the candidate is exposed before it is ready"),
    (Rule::ShiftFirst, "ShiftFirst", "stable is overwritten while requests are led to it"),
    (Rule::RetireLast, "RetireLast", "the candidate goes while requests are led to it"),
    (Rule::RecordFirst, "RecordFirst", "what the record will allow is done before the record is pushed"),
    (Rule::Swap, "Swap", "the record is pushed on top of whatever is there"),
    (Rule::Lease, "Lease", "who has led goes on, whoever holds the Lease"),
    (Rule::Gaps, "Gaps", "time in which nobody observed counts as soak"),
    (Rule::Unread, "Unread", "what cannot be read is taken for what it was, or for absent"),
    (Rule::Expect, "Expect", "a write does not say which version it was planned on"),
    (Rule::Fence, "Fence", "a record is acted upon that is older than what live was written under"),
];

/// A kind of rollouts, a rule that is broken in worlds that have no others, and what is said of that.
type Kind = (&'static str, fn(&Shape) -> bool, Rule, &'static str);

const KINDS: [Kind; 18] = [
    ("names of each version", |shape| shape.layout == Layout::Versioned, Rule::RecordFirst, "live ≤ recorded"),
    ("names of each version", |shape| shape.layout == Layout::Versioned, Rule::Checks, "what fails is not promoted"),
    ("a DaemonSet", |shape| shape.router == Router::Daemon, Rule::Refused, "what was refused stays refused"),
    ("copies behind a VirtualService", |shape| is_copied(shape, Router::Mesh), Rule::RecordFirst, "live ≤ recorded"),
    ("copies behind an Ingress", |shape| is_copied(shape, Router::Ingress), Rule::RecordFirst, "live ≤ recorded"),
    ("a GRPCRoute", |shape| shape.router == Router::Grpc, Rule::RecordFirst, "live ≤ recorded"),
    ("a TraefikService", |shape| shape.router == Router::Traefik, Rule::RecordFirst, "live ≤ recorded"),
    ("an IngressRoute", |shape| shape.router == Router::IngressRoute, Rule::RecordFirst, "live ≤ recorded"),
    ("an HTTPProxy", |shape| shape.router == Router::Proxy, Rule::RecordFirst, "live ≤ recorded"),
    ("a RouteTable", |shape| shape.router == Router::Table, Rule::RecordFirst, "live ≤ recorded"),
    ("a Service as the target", |shape| shape.leads.is_some(), Rule::RecordFirst, "live ≤ recorded"),
    ("a Service as the target", |shape| shape.leads.is_some(), Rule::Checks, "what fails is not promoted"),
    ("a Service as the target", |shape| shape.leads.is_some(), Rule::ShiftFirst, "stable is overwritten"),
    ("an autoscaler", |shape| shape.scaled, Rule::Ready, "weights name ready pods only"),
    ("Jobs before steps", Shape::is_tried_out, Rule::Gates, "no Job has succeeded"),
    ("Jobs before steps", Shape::is_tried_out, Rule::RecordFirst, "is made before Git has that a run waits"),
    ("checks of pods that are no copies", |shape| shape.router.is_shared(), Rule::Checks, "what fails is not promoted"),
    ("checks that compare", Shape::is_compared, Rule::Checks, "what fails is not promoted"),
];

/// In how many worlds a broken rule is looked for.
const TRIES: u64 = 500;
/// In how many, where most have other rollouts.
const TRIES_OF_A_KIND: u64 = 16_000;

/// The page, below the directory that `cargo test` was started for.
fn page() -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&root).join("docs/testing.md")
}

/// A rule, where it is broken, and what has to be said of that.
struct Row {
    rule: Rule,
    cells: String,
    tries: u64,
    of: fn(&Shape) -> bool,
    says: &'static str,
}

impl Row {
    /// By what invariant a broken rule is noticed in that world.
    fn noticed(&self, seed: u64) -> Option<String> {
        let failure = try_seed(seed, &mut BTreeMap::new(), Some(self.rule))?;
        let found = failure.ended.found.filter(|found| found.contains(self.says))?;
        Some(found.split(": ").next().unwrap_or_default().to_owned())
    }

    fn first(&self) -> Option<(u64, String)> {
        let alone = |seed: &u64| story_of(*seed).1.rollouts.iter().all(|part| (self.of)(&part.shape));
        (0..self.tries).filter(alone).find_map(|seed| self.noticed(seed).map(|by| (seed, by)))
    }

    /// The row, where the page names that world, or none; another one may be looked for where that notices nothing.
    fn told(&self, known: Option<u64>, update: bool) -> String {
        let found = known.and_then(|seed| self.noticed(seed).map(|by| (seed, by)));
        let found = if update || known.is_none() { found.or_else(|| self.first()) } else { found };
        let (seed, by) = found.map_or((String::new(), "not noticed".to_owned()), |(seed, by)| (seed.to_string(), by));
        format!("| {} | {by} | {seed} |\n", self.cells)
    }
}

fn is_copied(shape: &Shape, router: Router) -> bool {
    shape.layout == Layout::Primary && shape.router == router
}

fn rules() -> Vec<Row> {
    let row = |(rule, name, instead): &(Rule, &str, &str)| Row {
        rule: *rule,
        cells: format!("`{name}` | {instead}"),
        tries: TRIES,
        of: |_| true,
        says: "",
    };
    RULES.iter().map(row).collect()
}

fn kinds() -> Vec<Row> {
    let row = |(kind, of, rule, says): &Kind| Row {
        rule: *rule,
        cells: format!("{kind} | `{rule:?}`"),
        tries: TRIES_OF_A_KIND,
        of: *of,
        says,
    };
    KINDS.iter().map(row).collect()
}

/// The worlds that a table of the page names, by its first two cells.
fn told(table: &str) -> BTreeMap<String, u64> {
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        Some((cells.get(..2)?.join(" | "), cells.get(3)?.parse().ok()?))
    });
    rows.collect()
}

/// Puts a table in its place on the page, and gives the one that was there.
fn put(name: &str, wanted: Option<&str>) -> String {
    // Two tests may do so.
    static PAGE: Mutex<()> = Mutex::new(());
    let _page = PAGE.lock().unwrap();
    let text = std::fs::read_to_string(page()).unwrap();
    let (start, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->"));
    let (before, rest) = text.split_once(&start).unwrap();
    let (table, after) = rest.split_once(&end).unwrap();
    if let Some(wanted) = wanted {
        std::fs::write(page(), format!("{before}{start}{wanted}{end}{after}")).unwrap();
    }
    table.to_owned()
}

/// A table of the page, as it should be: all its rows are noticed.
fn check(name: &str, header: &str, rows: &[Row]) {
    let table = put(name, None);
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let known = told(&table);
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        // Some rules take many worlds: nobody waits for them.
        for _ in rows {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(place) else { return };
                    let line = row.told(known.get(&row.cells).copied(), update);
                    lines.lock().unwrap().insert(place, line);
                }
            });
        }
    });
    let lines: String = lines.into_inner().unwrap().into_values().collect();
    let wanted = format!("{header}\n|---|---|---|---|\n{lines}");
    if update {
        put(name, Some(&wanted));
    }
    assert!(!wanted.contains("not noticed"), "{wanted}");
    assert!(update || table == wanted, "docs/testing.md is stale: run this once with UPDATE_DOCS=1\n{wanted}");
}

#[test]
fn a_rule_that_is_broken_is_noticed() {
    check("rules", "| rule | what is done instead | noticed by | in world |", &rules());
}

#[test]
fn a_rule_that_is_broken_is_noticed_of_each_kind_of_rollouts() {
    check("kinds", "| rollouts | rule that is broken | noticed by | in world |", &kinds());
}
