//! `docs/performance.md`.

use crate::measure::Finding;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Performance

Made by `UPDATE_DOCS=1 cargo bench`, or, row by row, with the name of a measurement behind `--`; do not edit. Real Git over HTTP (`git http-backend`), and where it says so a real
API server or a real Git host, with all of it on one machine: what matters are the ratios, for which both sides were measured in turn.
Values are the median, with the smallest and the largest. Nothing fails for being slow; counts of calls are held by tests too.
";

const TABLE: &str = "| what | tidegate | compared with |";

/// Writes it: all of it, or of a page that is there the rows of what was measured anew.
pub(crate) fn write(findings: &[Finding], anew: Anew) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md");
    let known = match anew {
        Anew::All => String::new(),
        Anew::Rows => std::fs::read_to_string(&path).unwrap(),
    };
    let is_known = |line: &&str, begin: &str| {
        findings.iter().all(|finding| !line.starts_with(&format!("{begin}{}", finding.what)))
    };
    let kept = |begin: &'static str| {
        known
            .lines()
            .filter(move |line| line.starts_with(begin))
            .filter(move |line| is_known(line, begin))
            .map(str::to_owned)
    };
    let mut rows: Vec<String> = kept("| ").filter(|line| !line.starts_with(TABLE)).collect();
    let mut missed: Vec<String> = kept("- **").collect();
    for finding in findings {
        rows.push(row(finding));
        missed.extend((!finding.is_met()).then(|| why(finding)));
    }
    let mut text =
        format!("{HEAD}\nMeasured on {}.\n\n{TABLE} result | goal | |\n|---|---|---|---|---|---|\n", machine());
    rows.iter().for_each(|row| writeln!(text, "{row}").unwrap());
    if !missed.is_empty() {
        text.push_str("\n## What is missed, and why\n\n");
        missed.iter().for_each(|line| writeln!(text, "{line}").unwrap());
    }
    std::fs::write(path, text).unwrap();
}

/// What of the page is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anew {
    All,
    Rows,
}

fn row(finding: &Finding) -> String {
    let Finding { what, ours, unit, reference, .. } = finding;
    let (value, goal) = finding.verdict();
    let reference = reference.as_ref().map_or_else(|| "–".to_owned(), |(name, of)| format!("{name}: {of} {unit}"));
    let met = if finding.is_met() { "reached" } else { "**missed**" };
    format!("| {what} | {ours} {unit} | {reference} | {value} | {goal} | {met} |")
}

fn why(finding: &Finding) -> String {
    let times = crate::measure::number(finding.value() / finding.goal);
    format!("- **{}**: {times} times the goal. {}.", finding.what, finding.why)
}

/// Cores, memory, kernel: no name of anything.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let model = read("/proc/cpuinfo");
    let model =
        model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |(_, name)| name);
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.split(['-', '+']).next().unwrap_or_default().trim();
    format!("{cores} cores ({model}), {} GiB of memory, Linux {kernel}", kib.unwrap_or(0) / (1 << 20))
}
