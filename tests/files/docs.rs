//! The documents say what is so: requirement ids are those of the tests, lists are those of the code, links lead
//! somewhere, and examples are read without an error.

use crate::code::{Source, read, shipped};
use crate::support::pages::{document, generated};
use crate::tree::{Tree, source_dir};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate::import::{self, Tool};
use tidegate::manifest::files::{Files, RepoPath};
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::load;
use tidegate::manifest::{decision, installation, policy, reach};
use tidegate::plan::report::Reason;

/// The requirements that have to be held by a test.
const HELD: &str = "X-1 X-2 X-3 X-4 X-5 X-6 X-7 X-8 X-9 X-10 X-11 X-12 X-13 X-14 X-15 X-16 X-17 C-1 C-2 C-3 C-4 C-5 C-6 C-7 C-8 C-9 \
                    C-10 C-11 C-12 C-13 C-14 C-15 C-16 C-17 C-18 C-19 C-20 C-21 C-22 C-23 C-24 C-25 C-26 C-27 C-28 C-29 C-30 C-31 C-32 C-33 C-34 C-35 N-4 N-7 N-8 N-18 \
                    X-18 F-16 T-2 T-3 T-5 T-6 T-7 T-8 T-9 T-14 T-15 T-19 T-21";

/// Every Markdown file that people read, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = source_dir();
    let pages = [root.clone(), root.join("docs"), root.join("charts/tidegate")]
        .into_iter()
        .flat_map(|dir| fs::read_dir(dir).unwrap());
    let pages = pages.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// What the name of a test begins with: `c_9_n_18_back_again` holds C-9 and N-18, `attack_3_4_c_7_links` attacks 3 and 4, and C-7.
fn held_by(test: &str) -> (Vec<String>, Vec<u8>) {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let parts: Vec<&str> = test.split('_').collect();
    let (mut ids, mut attacks, mut rest) = (Vec::new(), Vec::new(), parts.as_slice());
    loop {
        rest = match rest {
            [letter @ ("x" | "c" | "n" | "f" | "t" | "v"), number, after @ ..] if is_number(number) => {
                ids.push(format!("{}-{number}", letter.to_uppercase()));
                after
            }
            ["attack", number, ..] if is_number(number) => {
                let numbers = rest[1..].iter().map_while(|part| part.parse::<u8>().ok());
                attacks.extend(numbers);
                let count = rest[1..].iter().take_while(|part| is_number(part)).count();
                &rest[1 + count..]
            }
            _ => return (ids, attacks),
        }
    }
}

/// The names of all functions.
fn tests(all: &[Source]) -> impl Iterator<Item = &str> {
    all.iter().flat_map(|source| source.all.lines()).filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(super) ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
        let line = line.trim_start_matches("async ");
        line.strip_prefix("fn ")?.split(['(', '<']).next()
    })
}

/// The ids that tests hold.
fn held(all: &[Source]) -> BTreeSet<String> {
    tests(all).flat_map(|test| held_by(test).0).collect()
}

/// The ids that the document gives a text.
fn told(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| Some(line.strip_prefix("- **")?.split_once("** ")?.0.to_owned())).collect()
}

fn missing(wanted: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    wanted.difference(found).cloned().collect()
}

#[test]
fn requirements_are_told_and_held() {
    let mut sources = shipped(&source_dir());
    sources.extend(read(&source_dir().join("tests")));
    let (held, told) = (held(&sources), told(&document("docs/requirements.md")));
    let wanted: BTreeSet<String> = HELD.split_whitespace().map(str::to_owned).collect();
    assert_eq!(missing(&held, &told), Vec::<String>::new(), "tests name what docs/requirements.md does not tell");
    assert_eq!(missing(&told, &held), Vec::<String>::new(), "docs/requirements.md tells what no test holds");
    assert_eq!(missing(&wanted, &told), Vec::<String>::new(), "docs/requirements.md lacks a text");
}

#[test]
fn the_rule_of_requirements_bites() {
    let text = "fn c_9_n_18_back() {}\n    async fn x_7_a_b<T>() {}\n// fn x_1_no() {}\nfn c_x_5() {}\nfn n_a_4() {}\nfn nothing() {}";
    let sources = crate::code::sources(vec![("a.rs".to_owned(), text.to_owned())]);
    let (held, told) = (held(&sources), told("- **C-9** a\n- **X-7** b\n- **X-8** c\ntext **X-9** d\n"));
    assert_eq!(missing(&held, &told), ["N-18"]);
    assert_eq!(missing(&told, &held), ["X-8"]);
}

/// How many inputs the list of threats has.
const ATTACKS: u8 = 98;

/// The numbers that the page tells, in its order.
fn attacks_told(page: &str) -> Vec<u8> {
    page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok()).collect()
}

/// The numbers of the attacks that another program plays, which are its rows: `row(68, "…", …)`.
fn rows(all: &[Source]) -> impl Iterator<Item = u8> {
    let played = all.iter().filter(|source| source.path.contains("real/attacks/"));
    let rows =
        played.flat_map(|source| source.all.match_indices("row(").map(|(at, row)| &source.all[at + row.len()..]));
    rows.filter_map(|row| row.split_once(',')?.0.trim().parse().ok())
}

#[test]
fn attacks_are_told_and_held() {
    let mut sources = shipped(&source_dir());
    sources.extend(read(&source_dir().join("tests")));
    let mut held: BTreeSet<u8> = tests(&sources).flat_map(|test| held_by(test).1).collect();
    held.extend(crate::attacks::numbers().chain(rows(&sources)));
    let told = attacks_told(&document("docs/attacks.md"));
    assert!(told.is_sorted_by(|one, next| one < next), "in order, each once: {told:?}");
    let told: BTreeSet<u8> = told.into_iter().collect();
    let passed = (1..=ATTACKS).filter(|number| held.contains(number) && told.contains(number)).count();
    println!("{passed} of {ATTACKS} are told and held by tests, and {} besides", told.range(ATTACKS + 1..).count());
    let missing: Vec<u8> = (1..=ATTACKS).filter(|number| !told.contains(number)).collect();
    assert_eq!(missing, Vec::<u8>::new(), "docs/attacks.md does not tell these");
    assert_eq!(told.difference(&held).collect::<Vec<_>>(), Vec::<&u8>::new(), "told, and held by no test");
    assert_eq!(held.difference(&told).collect::<Vec<_>>(), Vec::<&u8>::new(), "held by tests, and not told");
}

#[test]
fn the_rule_of_attacks_bites() {
    let (ids, attacks) = held_by("x_2_attack_74_75_c_7_no_9");
    assert_eq!((ids.join(" ").as_str(), attacks), ("X-2 C-7", vec![74, 75]));
    assert_eq!(held_by("attack_addresses_are_plain"), (Vec::new(), Vec::new()));
    assert_eq!(held_by("no_attack_3_here"), (Vec::new(), Vec::new()));
    let text = "row(68, \"row(69, \", x), row(\n    70, \"b\", y)\n// row(71,\nfn row(number: u8, b: u8) {}";
    let sources = crate::code::sources(vec![("real/attacks/a.rs".to_owned(), text.to_owned())]);
    assert_eq!(rows(&sources).collect::<Vec<_>>(), [68, 70]);
    assert_eq!(attacks_told("| number | what |\n|---|---|\n| 3 | a |\ntext | 4 | b\n| 5 | c |"), [3, 5]);
}

/// What `status` and `why` tell from the record without a condition in it: by the step's clock, and when they cannot read it.
const FROM_RECORD: [&str; 3] = ["Soak", "RecordUnreadable", "UnknownPhase"];

#[test]
fn the_reasons_are_those_of_the_planner() {
    let mut table =
        "| reason | what it means | who can change it | what to do | seen in |\n|---|---|---|---|---|\n".to_owned();
    for reason in Reason::ALL {
        let (name, hint) = (reason.as_str(), reason.hint().unwrap_or("–"));
        let seen = match () {
            () if reason.is_lasting() => "the record",
            () if FROM_RECORD.contains(&name) => "`status` and `why`, metric, log",
            () => "metric, log",
        };
        let _ = writeln!(table, "| `{name}` | {} | {} | {hint} | {seen} |", reason.meaning(), reason.owner());
    }
    generated("docs/reasons.md", "reasons", &table);
}

#[test]
fn what_content_may_reach_is_what_holds() {
    let mut table = "| objects | place | may hold | else |\n|---|---|---|---|\n".to_owned();
    for [kinds, place, fine, who] in reach::told() {
        let fine = fine.split(' ').map(|word| match word {
            "-" => "nothing".to_owned(),
            "@namespace" => "the own namespace".to_owned(),
            "@name" | "@service" => "a name outside of the cluster, or of the own namespace".to_owned(),
            "@secret" => "`NAME`, or `NAMESPACE/NAME` of the own namespace".to_owned(),
            "@local" => "a name without `@`".to_owned(),
            "@private" => "gateways alone, no wildcards, or `exportTo`".to_owned(),
            word => word.strip_prefix('!').map_or_else(|| format!("`{word}`"), |word| format!("all but `{word}`")),
        });
        let (fine, place) = (fine.collect::<Vec<_>>().join(", ").replace('|', "\\|"), place.replace('|', "\\|"));
        let who = match who {
            "never" => "an error".to_owned(),
            "nobody" => "refused".to_owned(),
            permission => format!("`{permission}`"),
        };
        let _ = writeln!(table, "| {} | `{place}` | {fine} | {who} |", kinds.replace(' ', ", "));
    }
    generated("docs/security.md", "reach", &table);
}

#[test]
fn fields_of_others_are_those_of_the_import() {
    for (name, tool) in [("flagger", Tool::Flagger), ("argo", Tool::Argo)] {
        let mut table = "| object | field | | |\n|---|---|---|---|\n".to_owned();
        for (kind, path, outcome, text) in import::lines(tool) {
            let _ = writeln!(table, "| {kind} | `{path}` | {} | {text} |", outcome.words());
        }
        generated("docs/migrating.md", name, &table);
    }
    let mut table = "| | its name there | becomes | its metrics |\n|---|---|---|---|\n".to_owned();
    for (name, tool) in [("Flagger, `provider`", Tool::Flagger), ("Argo, `trafficRouting`", Tool::Argo)] {
        for [router, here, metrics] in import::routers(tool) {
            let _ = writeln!(table, "| {name} | {router} | {here} | {metrics} |");
        }
    }
    generated("docs/migrating.md", "routers", &table);
    let lines =
        [Tool::Flagger, Tool::Argo].map(|tool| import::from_cluster(tool, "--namespace shop ", " --write teams"));
    let lines: String = lines.into_iter().flatten().map(|line| format!("$ {line}\n")).collect();
    generated("docs/migrating.md", "live", &format!("```console\n{lines}```\n"));
}

/// Where the relative links of a page lead.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for (path, text) in documents() {
        for link in links(&text) {
            let file = link.split('#').next().unwrap_or(link);
            if !path.parent().unwrap_or(Path::new("")).join(file).exists() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// The YAML of a page that is one of our files, with its kind.
fn examples(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(yaml, _)| yaml);
    let kind = |yaml: &str| {
        ["Rollout", "Policy", "Decision", "Installation"]
            .into_iter()
            .find(|kind| yaml.contains("apiVersion: tidegate.io") && yaml.contains(&format!("kind: {kind}\n")))
    };
    blocks.filter_map(|yaml| Some((kind(yaml)?, yaml))).collect()
}

/// What examples of StatefulSets are about.
const DB: &str = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 5\n  serviceName: db\n  \
    selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    \
    spec: {containers: [{name: db, image: \"db:1\"}]}\n";

/// What examples of DaemonSets are about.
const AGENT: &str = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  \
    selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    \
    spec: {containers: [{name: agent, image: \"agent:1\"}]}\n";

/// Who may have examples about nodes, and what they are about.
const NETWORK: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
    network: {path: network, namespaces: [network], clusters: [home], nodes: {}}\n";
const LAYER: &str = "apiVersion: tidegate.io/v1alpha1\nkind: NodeConfigLayer\nmetadata: {name: all}\nspec:\n  \
    nodeSelector: {}\n  files: {a: \"1\"}\n";

/// What is wrong with an example; a Rollout stands in for that of podinfo.
fn mistakes(kind: &str, yaml: &str) -> Vec<String> {
    let path = |text: &str| -> RepoPath { text.parse().unwrap() };
    let found = match kind {
        "Policy" => policy::parse(&path("tidegate.yaml"), yaml.as_bytes()).err(),
        "Installation" => installation::parse(&path("installation.yaml"), yaml.as_bytes()).err(),
        // Its first line names its file.
        "Decision" => {
            let named = yaml.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a comment with the path");
            decision::parse(&path(named), yaml.as_bytes()).err()
        }
        _ if yaml.contains("kind: NodeConfig,") => {
            let mut tree = Tree(Files::new());
            tree.put("tidegate.yaml", NETWORK)
                .put("network/layers/all.yaml", LAYER)
                .put("network/fabric.rollout.yaml", yaml);
            let loaded = load(&tree.0, &Caps::unknown());
            let rejected = loaded.rollouts.into_values().filter_map(Result::err);
            Some(rejected.flat_map(|r| r.diagnostics).chain(loaded.unnamed).collect())
        }
        _ => {
            let mut tree = Tree::example();
            tree.put("teams/shop/podinfo/db.yaml", DB);
            if yaml.contains("layout: versioned") {
                tree.name_version("v2");
            }
            tree.put("teams/shop/podinfo/agent.yaml", AGENT);
            let loaded = tree.put("teams/shop/podinfo/rollout.yaml", yaml).load();
            let rejected = loaded.rollouts.into_values().filter_map(Result::err);
            Some(rejected.flat_map(|r| r.diagnostics).chain(loaded.unnamed).collect())
        }
    };
    found.unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn examples_are_read_without_an_error() {
    let mut kinds = BTreeSet::new();
    for (path, text) in documents() {
        for (kind, yaml) in examples(&text) {
            assert_eq!(mistakes(kind, yaml), Vec::<String>::new(), "{}\n{yaml}", path.display());
            kinds.insert(kind.to_owned());
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), "Decision Installation Policy Rollout");
}

/// The subcommands that the shell lines of a page call.
fn commands(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with("$ "));
    let calls = lines.flat_map(|line| line.split("tidegate ").skip(1));
    let words = calls.map(|rest| rest.split([' ', ';', '`']).next().unwrap_or(rest));
    words.filter(|word| word.chars().all(|c| c.is_ascii_lowercase()) && !word.is_empty()).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the program is asked what it can do")]
fn commands_that_pages_show_exist() {
    for (path, text) in documents() {
        for command in commands(&text) {
            // `kubectl --namespace tidegate create …` is no call of ours.
            if ["create", "annotate", "delete", "exec", "logs"].contains(&command) {
                continue;
            }
            let help = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate")).args([command, "--help"]).output();
            assert!(help.unwrap().status.success(), "{}: tidegate {command}", path.display());
        }
    }
    assert!(commands(&document("docs/decisions.md")).len() >= 7);
}
