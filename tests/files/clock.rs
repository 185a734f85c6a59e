//! Tests wait for conditions and count: none fails because a machine is slow. A clock that the test itself moves on is exact, and
//! may be read.

use crate::code::{Source, read, shipped};
use crate::tree::source_dir;

/// Who reads how much time has passed without a test that hangs on it, and what for.
const READERS: &[(&str, &str)] = &[
    ("tests/convergence/search.rs", "it is printed"),
    (
        "tests/real/controller/faults.rs",
        "at least so long, and whether a soak is over: then there is another, and longer",
    ),
    ("tests/real/controller/measured.rs", "what is measured grows with it"),
    ("tests/real/testbed.rs", "at least so long: a slow machine takes longer"),
];

/// How passed time is read.
const READS: [&str; 2] = [".elapsed()", ".duration_since("];

/// Whether a line of a file belongs to a test on a clock that stands still until everybody waits.
fn is_paused(lines: &[&str], line: usize) -> bool {
    let begin = lines[..line].iter().rev().find(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"));
    begin.is_some_and(|begin| begin.contains("start_paused = true"))
}

/// Each line of a test that reads how much real time has passed.
fn readings(all: &[Source]) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for source in all {
        let lines: Vec<&str> = source.all.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            if READS.iter().any(|read| line.contains(read)) && !is_paused(&lines, n) {
                found.push((source.path.as_str(), n + 1));
            }
        }
    }
    found
}

/// The sources of all tests, by their paths from the root.
fn tests() -> Vec<Source> {
    let below = |dir: &'static str| {
        let sources = read(&source_dir().join(dir)).into_iter();
        sources.map(move |source| Source { path: format!("{dir}/{}", source.path), ..source })
    };
    let of_tests = |source: &Source| source.path.ends_with("/tests.rs") || source.path.contains("/tests/");
    below("tests").chain(shipped(&source_dir()).into_iter().filter(of_tests)).collect()
}

#[test]
fn no_test_asserts_how_long_something_takes() {
    let all = tests();
    let readings = readings(&all);
    let known = |path: &str| READERS.iter().any(|(reader, _)| *reader == path);
    let wrong: Vec<_> = readings.iter().filter(|(path, _)| !known(path)).collect();
    assert!(wrong.is_empty(), "count in place of the clock, or let the test move it on: {wrong:?}");
    for (reader, _) in READERS {
        assert!(readings.iter().any(|(path, _)| path == reader), "{reader} reads no clock any more");
    }
}

#[test]
fn the_rule_of_clocks_bites() {
    let text = "#[test]\nfn a() {\n    assert!(began.elapsed() < second);\n}\n#[tokio::test(start_paused = true)]\nasync fn b() {\n    \
                assert!(began.elapsed() < second);\n}\n#[test]\nfn c() {\n    let took = end.duration_since(began);\n}\n";
    let made_up = crate::code::sources(vec![("tests/a.rs".to_owned(), text.to_owned())]);
    assert_eq!(readings(&made_up), [("tests/a.rs", 3), ("tests/a.rs", 11)]);
    assert!(tests().iter().any(|source| source.path.starts_with("plan/")), "tests beside the code are looked at, too");
}
