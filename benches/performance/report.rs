//! `docs/performance.md`.

use crate::measure::Finding;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Performance

Made by `UPDATE_DOCS=1 cargo bench` from one run; do not edit. Real Git over HTTP (`git http-backend`), and where it says so a real
API server or a real Git host, with all of it on one machine: what matters are the ratios, for which both sides were measured in turn.
Values are the median, with the smallest and the largest. Nothing fails for being slow; counts of calls are held by tests too.
";

/// Writes it.
pub(crate) fn write(findings: &[Finding]) {
    let mut text = format!("{HEAD}\nMeasured on {}.\n\n", machine());
    text.push_str("| what | tidegate | compared with | result | goal | |\n|---|---|---|---|---|---|\n");
    for finding in findings {
        let Finding { what, ours, unit, reference, .. } = finding;
        let (value, goal) = finding.verdict();
        let reference = reference.as_ref().map_or_else(|| "–".to_owned(), |(name, of)| format!("{name}: {of} {unit}"));
        let met = if finding.is_met() { "reached" } else { "**missed**" };
        writeln!(text, "| {what} | {ours} {unit} | {reference} | {value} | {goal} | {met} |").unwrap();
    }
    let missed: Vec<&Finding> = findings.iter().filter(|finding| !finding.is_met()).collect();
    if !missed.is_empty() {
        text.push_str("\n## What is missed, and why\n\n");
        for finding in missed {
            let times = finding.value() / finding.goal;
            writeln!(
                text,
                "- **{}**: {} times the goal. {}.",
                finding.what,
                crate::measure::number(times),
                finding.why
            )
            .unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md");
    std::fs::write(path, text).unwrap();
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
