//! The rules that hold the rooms of the crates apart (`ARCHITECTURE.md`): who may import whom, what pure rooms never
//! touch, and how long a file may be. Each rule is shown to bite on a made-up source.

use crate::code::{Source, has_name, names_after, shipped, sources};
use crate::tree::source_dir;
use std::collections::{BTreeMap, BTreeSet};

/// Each room with all that it imports, as the code does now: an import that is not here is an error, and so is an entry
/// that nothing needs.
const IMPORTS: &[(&str, &[&str])] = &[
    // The keys that an installation names.
    ("manifest", &["sign"]),
    ("sign", &[]),
    ("record", &["manifest"]),
    ("workload", &["manifest", "record"]),
    ("people", &["manifest", "record"]),
    ("gate", &["manifest", "people", "record"]),
    ("analysis", &["manifest", "record"]),
    ("plan", &["analysis", "gate", "manifest", "record", "rules", "workload"]),
    ("git", &["manifest", "record", "rules", "sign"]),
    // An App signs what lets it in.
    ("forge", &["git", "manifest", "people", "record", "sign"]),
    // Actions and live objects are the values that this room takes and gives; the brake is one that it reads.
    ("cluster", &["gate", "manifest", "plan", "record", "rules", "workload"]),
    ("report", &["forge", "git", "manifest", "plan", "record", "workload"]),
    (
        "reconcile",
        &[
            "analysis", "cluster", "forge", "gate", "git", "manifest", "people", "plan", "record", "report", "rules",
            "sign", "workload",
        ],
    ),
    ("rules", &[]),
    // One node, beside the controller: its own kind of object, and a client.
    ("agent", &["cluster", "manifest", "record"]),
    // Files in, files and notes out.
    ("import", &["manifest", "plan", "record", "workload"]),
    ("world", &["analysis", "cluster", "forge", "git", "manifest", "reconcile", "record", "workload"]),
    (
        "cli",
        &[
            "agent",
            "cluster",
            "forge",
            "gate",
            "git",
            "import",
            "manifest",
            "people",
            "plan",
            "reconcile",
            "record",
            "report",
            "sign",
            "workload",
            "world",
        ],
    ),
];

/// Rooms, and files and directories of others, that take values and return values.
const PURE: &[&str] = &[
    "manifest",
    "record",
    "workload",
    "people",
    "gate",
    "plan",
    "rules",
    "sign",
    "import",
    "agent/content.rs",
    "agent/decide",
    "agent/decide.rs",
    "agent/report.rs",
    "analysis/call.rs",
    "analysis/compare.rs",
    "analysis/judge.rs",
    "analysis/proxy.rs",
    "analysis/reading.rs",
    "analysis/sides.rs",
    "forge/branch.rs",
    "forge/budget.rs",
    "forge/pull.rs",
    "forge/settings.rs",
    "reconcile/feedback/reading.rs",
    "report/dashboard.rs",
    "report/feedback.rs",
    "report/feedback/check.rs",
    "report/view.rs",
];

/// What a pure room never names.
const IMPURE: &[&str] = &[
    "async",
    "await",
    "tokio",
    "futures",
    "kube",
    "git2",
    "reqwest",
    "axum",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "thread::sleep",
    "SystemTime",
    "Instant::now",
    "Utc::now",
    "Local::now",
    // Groups would hide what they hold; a `use` for each keeps this list true.
    "std::{",
    "crate::{",
];

/// The most lines of code in a file, tests, comments and blank lines aside.
const LONGEST: usize = 400;

/// By how much a room may stay below its figure in `ARCHITECTURE.md`: what was won is not spent unseen.
const SLACK: usize = 100;

/// The room that a file belongs to; none for those at the root.
fn room(path: &str) -> Option<&str> {
    path.split_once('/').map(|(room, _)| room)
}

/// Rooms that are crates of their own; all others but the program are the controller's.
const CRATES: [&str; 3] = ["agent", "import", "world"];

/// The rooms that a file names: by their crate, by `crate::`, or by so many `super::` that they leave its own.
fn imports(source: &Source) -> BTreeSet<String> {
    let code = &source.shipped;
    let mut found: BTreeSet<String> = names_after(code, "tidegate_controller::").map(str::to_owned).collect();
    // By another name it would not be found.
    if names_after(code, "tidegate_controller as ").next().is_some() {
        found.insert("tidegate_controller by another name".to_owned());
    }
    let of_crate = CRATES.iter().filter(|room| has_name(code, &format!("tidegate_{room}")));
    found.extend(of_crate.map(|room| (*room).to_owned()));
    if room(&source.path).is_some_and(|own| CRATES.contains(&own)) {
        return found;
    }
    found.extend(names_after(code, "crate::").map(str::to_owned));
    let modules = source.path.trim_end_matches(".rs").trim_end_matches("/mod").split('/').count();
    let climb = "super::".repeat(modules);
    found.extend(names_after(code, &climb).map(str::to_owned));
    if let Some(own) = room(&source.path) {
        found.remove(own);
    }
    found
}

/// Every breach of the table of imports.
fn arrows(all: &[Source], table: &[(&str, &[&str])]) -> Vec<String> {
    let table: BTreeMap<&str, BTreeSet<&str>> =
        table.iter().map(|(r, of)| (*r, of.iter().copied().collect())).collect();
    let mut breaches = Vec::new();
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for source in all {
        let Some(room) = room(&source.path) else {
            let named: BTreeSet<&str> = names_after(&source.shipped, "crate::").collect();
            if !named.is_empty() {
                breaches.push(format!("{}: names {named:?}; the root only lists the rooms", source.path));
            }
            continue;
        };
        let Some(allowed) = table.get(room) else {
            breaches.push(format!("{}: {room} is not a room of the table", source.path));
            continue;
        };
        let named = imports(source);
        for other in named.iter().filter(|other| !allowed.contains(other.as_str())) {
            breaches.push(format!("{}: {room} must not import {other:?}", source.path));
        }
        seen.entry(room).or_default().extend(named);
    }
    for (room, allowed) in &table {
        let seen = seen.get(room).cloned().unwrap_or_default();
        let unused = allowed.iter().filter(|other| !seen.contains(**other));
        breaches.extend(unused.map(|other| format!("the table lets {room} import {other}, which it does not")));
    }
    breaches
}

/// Every impure word in a pure room.
fn impurities(all: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let within =
        |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let pure = |source: &&Source| PURE.iter().any(|of| within(&source.path, of));
    for source in all.iter().filter(pure) {
        for (n, line) in source.shipped.lines().enumerate() {
            for word in IMPURE.iter().filter(|word| has_name(line, word)) {
                found.push(format!("{}:{}: {word} in a pure room", source.path, n + 1));
            }
        }
    }
    found
}

/// Lines of code, tests, comments and blank lines aside.
fn lines(source: &Source) -> usize {
    source.shipped.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The most lines of each room, as its row in the page's table says: `| `room` | | lines | what it is for |`.
fn caps(page: &str) -> BTreeMap<&str, usize> {
    let row = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    row.filter_map(|(room, rest)| Some((room, rest.split(" | ").nth(1)?.replace(',', "").parse().ok()?))).collect()
}

/// The lines of each room.
fn sizes(all: &[Source]) -> BTreeMap<&str, usize> {
    let mut sizes = BTreeMap::new();
    for source in all {
        if let Some(room) = room(&source.path) {
            *sizes.entry(room).or_default() += lines(source);
        }
    }
    sizes
}

/// Every room that has more lines than its figure, or so many less that the figure can be lowered.
fn missized(sizes: &BTreeMap<&str, usize>, caps: &BTreeMap<&str, usize>) -> Vec<String> {
    let wrong = sizes.iter().filter_map(|(room, n)| match caps.get(room) {
        None => Some(format!("{room}: {n} lines, and no figure in the table of rooms")),
        Some(most) if n > most => Some(format!("{room}: {n} lines of code, at most {most}")),
        Some(most) if n + SLACK < *most => Some(format!("{room}: {n} lines of code; lower its figure of {most}")),
        Some(_) => None,
    });
    wrong.collect()
}

/// Every file that is too long.
fn too_long(all: &[Source], most: usize) -> Vec<String> {
    let long = all.iter().map(|source| (source, lines(source))).filter(|(_, n)| *n > most);
    long.map(|(source, n)| format!("{}: {n} lines of code, at most {most}", source.path)).collect()
}

/// Public types that share a name with one of another room, each with its rooms. Files as they are written (`manifest/raw`) have the names that
/// they have when they are checked.
fn shared_names(all: &[Source]) -> Vec<String> {
    let mut rooms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in all.iter().filter(|source| !source.path.starts_with("manifest/raw")) {
        let Some(room) = room(&source.path) else { continue };
        for line in source.shipped.lines() {
            let mut words = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
            if let (Some("pub"), Some("enum" | "struct" | "trait" | "type"), Some(name)) =
                (words.next(), words.next(), words.next())
            {
                rooms.entry(name).or_default().insert(room);
            }
        }
    }
    let shared = rooms.into_iter().filter(|(_, rooms)| rooms.len() > 1);
    shared.map(|(name, rooms)| format!("{name}: {}", Vec::from_iter(rooms).join(", "))).collect()
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    assert_eq!(shared_names(&shipped(&source_dir())), [""; 0], "rename one of them");
}

#[test]
fn rooms_import_what_the_table_says() {
    assert_eq!(arrows(&shipped(&source_dir()), IMPORTS), Vec::<String>::new());
}

#[test]
fn pure_rooms_take_values_and_return_values() {
    assert_eq!(impurities(&shipped(&source_dir())), Vec::<String>::new());
}

#[test]
fn times_are_of_the_one_type_whose_sums_cannot_fail() {
    let own = |path: &str| path.starts_with("sign/") || ["manifest/time.rs", "manifest/cron.rs"].contains(&path);
    let all = shipped(&source_dir());
    let others = all.iter().filter(|source| !own(&source.path) && source.path.split('/').next() != Some("world"));
    let named: Vec<&str> = others.filter(|s| has_name(&s.shipped, "DateTime")).map(|s| s.path.as_str()).collect();
    assert_eq!(named, Vec::<&str>::new(), "they reckon with chrono::DateTime, not with manifest::time::Time");
}

#[test]
fn files_stay_short() {
    assert_eq!(too_long(&shipped(&source_dir()), LONGEST), Vec::<String>::new());
}

#[test]
fn rooms_stay_as_small_as_they_are_said_to_be() {
    let page = std::fs::read_to_string(source_dir().join("ARCHITECTURE.md")).unwrap();
    let all = shipped(&source_dir());
    let sizes = sizes(&all);
    println!("{sizes:#?}\n{} in all", sizes.values().sum::<usize>());
    assert_eq!(missized(&sizes, &caps(&page)), Vec::<String>::new());
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    sources(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[test]
fn the_table_of_imports_bites() {
    let all = made_up(&[
        ("lib.rs", "pub mod plan;"),
        ("plan/mod.rs", "use crate::record::state;\nuse super::git;"),
        ("plan/deep/er.rs", "use super::super::super::cluster::Client; use super::super::words;"),
        ("plan/fine.rs", "// crate::git\nfn a() { \"crate::git\" }\n#[cfg(test)]\nmod tests { use crate::git; }"),
        ("record/mod.rs", "use crate::record::state; use super::plan;"),
        ("extra/mod.rs", ""),
        (
            "world/lib.rs",
            "use tidegate_controller as core; use tidegate_controller::git::Store; use tidegate_import::Outcome;",
        ),
    ]);
    let table: &[(&str, &[&str])] = &[("plan", &["record", "gate"]), ("record", &[]), ("world", &["import"])];
    assert_eq!(
        arrows(&all, table),
        [
            "plan/mod.rs: plan must not import \"git\"",
            "plan/deep/er.rs: plan must not import \"cluster\"",
            "record/mod.rs: record must not import \"plan\"",
            "extra/mod.rs: extra is not a room of the table",
            "world/lib.rs: world must not import \"git\"",
            "world/lib.rs: world must not import \"tidegate_controller by another name\"",
            "the table lets plan import gate, which it does not",
        ]
    );
}

#[test]
fn the_rule_of_purity_bites() {
    let impure = "use kube::Api;\nlet t = chrono::Utc::now();\nuse std::{fs, io};\nasync fn a() {}\nstd::fs::read(x)\n";
    let fine = "// async kube\nlet a = \"tokio\"; let kubectl = asynchronous;\n#[cfg(test)]\nmod t { use std::fs; }";
    let found = impurities(&made_up(&[("plan/a.rs", impure), ("gate/b.rs", fine), ("git/c.rs", impure)]));
    let lines: Vec<&str> = found.iter().map(|breach| breach.split(" in ").next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "plan/a.rs:1: kube",
            "plan/a.rs:2: Utc::now",
            "plan/a.rs:3: std::{",
            "plan/a.rs:4: async",
            "plan/a.rs:5: std::fs"
        ]
    );
}

#[test]
fn the_rule_of_names_bites() {
    let all = made_up(&[
        ("plan/a.rs", "pub struct Answer {}\npub(super) enum Known {}"),
        ("git/b.rs", "    pub enum Answer<'a> {}\nenum Known {}\npub type Known = u8;"),
        ("manifest/raw/c.rs", "pub struct Answer;"),
    ]);
    assert_eq!(shared_names(&all), ["Answer: git, plan"]);
}

#[test]
fn the_rule_of_length_bites() {
    let all = made_up(&[("a.rs", "a\n\n// b\n/* c\n d */\ne\n#[cfg(test)]\nmod t {\n f\n}\n")]);
    assert_eq!(too_long(&all, 2), Vec::<String>::new());
    assert_eq!(too_long(&all, 1), ["a.rs: 2 lines of code, at most 1"]);
}

#[test]
fn the_rule_of_sizes_bites() {
    let all =
        made_up(&[("lib.rs", "a\n"), ("a/b.rs", "a\n// b\nc\n"), ("a/c.rs", "d\n"), ("b/c.rs", "a"), ("c/c.rs", "a")]);
    let page = "| room | | lines | for |\n| `a` | pure | 2 | x |\n| `b` | I/O | 1,000 | y |\n";
    assert_eq!(
        missized(&sizes(&all), &caps(page)),
        [
            "a: 3 lines of code, at most 2",
            "b: 1 lines of code; lower its figure of 1000",
            "c: 1 lines, and no figure in the table of rooms"
        ]
    );
}
