//! What people write: YAML, trees of manifests, decisions, the installation, and names and paths in them.

use crate::fuzz::budget::{Fate, tried, within};
use crate::fuzz::change::{Few, Piece, Text};
use crate::fuzz::record::is_planned;
use crate::fuzz::world::{POLICY, ROLLOUT, RUN, file, id, manifests};
use arbitrary::Arbitrary;
use serde_json::Value;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::Arc;
use tidegate::gate::schedule::{Window, WindowState};
use tidegate::manifest::decision::{self, Decision, DecisionAction};
use tidegate::manifest::desired::Rollout;
use tidegate::manifest::diagnostic::{Diagnostic, MOST};
use tidegate::manifest::duration::Span;
use tidegate::manifest::files::{Entry, Files, RepoPath};
use tidegate::manifest::ids::{CommitId, InstanceName, Namespace, ObjectName, Revision, RolloutId, RunId, StepName};
use tidegate::manifest::installation::{self, Caps};
use tidegate::manifest::object::{Kind, ObjectRef};
use tidegate::manifest::yaml::{self, Content, Dialect, Node};
use tidegate::manifest::{load, set};
use tidegate::plan::input::{Desired, RecordedState};
use tidegate::record::branches::Head;
use tidegate::record::store;
use tidegate::record::text::{CAP, plain, unlinked};

fn path(text: &str) -> RepoPath {
    text.parse().expect("a path")
}

/// A file with a mistake is told of at a place that is there, in words that can be shown.
fn well_told(diagnostic: &Diagnostic, bytes: Option<&[u8]>) {
    let Diagnostic { line, column, length, found, expected, help, source, .. } = diagnostic;
    let texts = [Some(found), Some(expected), help.as_ref(), Some(source)];
    assert!(texts.iter().flatten().all(|text| text.chars().count() <= 1_024), "{diagnostic}");
    assert!(!found.is_empty() && !expected.is_empty(), "{diagnostic}");
    assert!(*line >= 1 && *column >= 1, "{diagnostic}");
    let text = bytes.map(String::from_utf8_lossy).unwrap_or_default();
    // A file may end with an empty line, and a mistake may be that nothing follows.
    let lines = text.split('\n').count();
    assert!(*line <= lines, "{diagnostic}: the file has {lines} lines");
    let width = text.split('\n').nth(line - 1).map_or(0, |line| line.chars().count());
    assert!(*column <= width + 1, "{diagnostic}: the line has {width} characters");
    assert!(*length <= width + 1, "{diagnostic} covers {length} of {width} characters");
}

fn nodes(node: &Node) -> usize {
    1 + match &node.content {
        Content::Scalar(_) => 0,
        Content::List(items) => items.iter().map(nodes).sum(),
        Content::Map(entries) => entries.iter().map(|(_, node)| nodes(node)).sum(),
    }
}

fn documents() -> Vec<String> {
    let decision = "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {name: web, namespace: shop}\n";
    let decision = format!("{decision}spec: {{run: 7-9ac41f02, action: hold, reason: \"x\"}}\n");
    let mut all = vec![ROLLOUT.to_owned(), manifests("2"), POLICY.to_owned(), decision];
    all.extend(RUN.texts.iter().filter(|(path, _)| path.ends_with("state.yaml")).map(|(_, text)| text.clone()));
    all
}

#[test]
fn yaml_is_read_or_refused() {
    let seeds = documents();
    tried("yaml", 600, move |text: &Text| {
        let bytes = text.bytes(&seeds);
        let path = path("shop/web.yaml");
        let mut fate = Fate::Refused;
        for dialect in [Dialect::Own, Dialect::Kubernetes] {
            let parsed = within(bytes.len(), || yaml::parse(&path, &bytes, dialect));
            assert!(parsed.diagnostics.len() <= MOST + 2, "{} mistakes", parsed.diagnostics.len());
            parsed.diagnostics.iter().for_each(|diagnostic| well_told(diagnostic, Some(&bytes)));
            assert!(parsed.documents.iter().map(nodes).sum::<usize>() <= yaml::MAX_NODES);
            assert!(parsed.complete || !parsed.diagnostics.is_empty(), "it stopped without a word");
            if !parsed.diagnostics.is_empty() {
                continue;
            }
            fate = Fate::Taken;
            assert!(dialect == Dialect::Kubernetes || parsed.documents.len() == 1);
            for document in &parsed.documents {
                reads_as_json(&document.value());
            }
        }
        fate
    });
}

fn longest_key(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| key.len().max(longest_key(value))).max().unwrap_or(0),
        Value::Array(items) => items.iter().map(longest_key).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// What was read reads the same from JSON, which is YAML.
fn reads_as_json(value: &Value) {
    let text = value.to_string();
    // JSON takes some control characters as they are, and keys of any length; YAML does not.
    if text.chars().any(|c| c.is_control() || c == '\u{feff}') || longest_key(value) > 1_000 {
        return;
    }
    let again = yaml::parse(&path("again.json"), text.as_bytes(), Dialect::Kubernetes);
    assert_eq!(again.diagnostics, [], "{text}");
    assert_eq!(again.documents.iter().map(Node::value).collect::<Vec<_>>(), std::slice::from_ref(value), "{text}");
}

/// A tree of main, changed.
#[derive(Debug, Arbitrary)]
struct Tree {
    policy: Option<Text>,
    rollout: Option<Text>,
    manifests: Option<Text>,
    more: Few<(Name, Thing)>,
}

#[derive(Debug, Arbitrary)]
enum Name {
    Near(u8),
    Any(Piece),
}

#[derive(Debug, Arbitrary)]
enum Thing {
    Nothing,
    Text(Text),
    Symlink,
    Submodule,
    TooLarge,
    BadName(Piece),
}

const NEAR: [&str; 10] = [
    "shop/web.yaml",
    "shop/web.rollout.yaml",
    "shop/other.rollout.yaml",
    "shop/WEB.yaml",
    "shop/web.yaml/deep.yaml",
    "shop/rollout.yaml",
    "shop/rollout.yml",
    "teams/web.rollout.yaml",
    "tidegate.yaml",
    "web.yaml",
];

impl Tree {
    fn files(&self) -> Files {
        let mut files = RUN.main.clone();
        let texts = [("tidegate.yaml", POLICY.to_owned()), ("shop/web.rollout.yaml", ROLLOUT.to_owned())];
        let texts = texts.into_iter().chain([("shop/web.yaml", manifests("2"))]);
        for ((name, seed), text) in texts.zip([&self.policy, &self.rollout, &self.manifests]) {
            if let Some(text) = text {
                files.insert(path(name), file(&text.bytes(&[seed])));
            }
        }
        for (name, thing) in &self.more.0 {
            let name = match name {
                Name::Near(n) => NEAR[usize::from(*n) % NEAR.len()].parse().ok(),
                Name::Any(piece) => format!("shop/{}", piece.0).parse().ok(),
            };
            let Some(name) = name else { continue };
            let entry = match thing {
                Thing::Nothing => {
                    files.remove(&name);
                    continue;
                }
                Thing::Text(text) => file(&text.bytes(&[ROLLOUT.to_owned(), manifests("3")])),
                Thing::Symlink => Entry::Symlink,
                Thing::Submodule => Entry::Submodule,
                Thing::TooLarge => Entry::TooLarge { size: u64::MAX },
                Thing::BadName(piece) => Entry::BadName { name: piece.0.clone() },
            };
            files.insert(name, entry);
        }
        files
    }
}

fn size(files: &Files) -> usize {
    let bytes = |entry: &Entry| match entry {
        Entry::File { bytes, .. } => bytes.len(),
        Entry::TooLarge { .. } | Entry::BadName { .. } | Entry::Symlink | Entry::Submodule | Entry::Unread { .. } => 0,
    };
    files.values().map(bytes).sum()
}

#[test]
fn a_tree_is_read_and_planned_or_refused() {
    // The schemas are compiled once; that belongs to no case.
    drop(load::load(&RUN.main, &Caps::default()));
    tried("trees", 300, |tree: &Tree| {
        let files = tree.files();
        let loaded = within(size(&files), || load::load(&files, &Caps::default()));
        let text = |path: &RepoPath| match files.get(path) {
            Some(Entry::File { bytes, .. }) => Some(Arc::clone(bytes)),
            _ => None,
        };
        let rejected = loaded.rollouts.values().filter_map(|rollout| rollout.as_ref().err());
        for rejected in rejected {
            assert!(!rejected.diagnostics.is_empty() && rejected.diagnostics.len() <= MOST);
        }
        let told = loaded.errors().into_iter().chain(&loaded.warnings);
        told.for_each(|diagnostic| well_told(diagnostic, text(&diagnostic.path).as_deref()));
        let mut fate = Fate::Refused;
        for rollout in loaded.rollouts.into_values().flatten() {
            fate = Fate::Taken;
            is_usable(rollout);
        }
        fate
    });
}

/// What was taken can be pinned, read back, recorded and planned with.
fn is_usable(rollout: Rollout) {
    let Rollout { id: name, plan, set, .. } = &rollout;
    let pinned = set::of_files(set.files.clone(), &name.namespace, &plan.target).expect("what was taken reads again");
    assert_eq!(pinned, **set);
    assert_eq!(store::parse_plan(store::print_plan(plan).as_bytes()).expect("a plan that was printed"), *plan);
    let mut input = RUN.input();
    input.sets.insert(set.id.clone(), Arc::clone(set));
    input.id = name.clone();
    input.desired = Desired::Wanted(Arc::new(rollout));
    let followed = input.desired.clone();
    if input.id == id() {
        // In the middle of a run, and as one that goes there, if it is a new version.
        is_planned(&input);
        if let (RecordedState::State(state, plan), Desired::Wanted(wanted)) = (&mut input.recorded, followed) {
            *plan = Some(Arc::new(wanted.plan.clone()));
            if let Some(run) = &mut state.run {
                (run.to, run.revision) = (wanted.set.id.clone(), wanted.set.revision.clone());
                run.pods = wanted.set.pods.clone();
            }
            is_planned(&input);
        }
    }
    input.recorded = RecordedState::None;
    is_planned(&input);
}

fn named(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: id().namespace, name: name.parse().expect("a name") }
}

/// A decision's file.
#[derive(Debug, Arbitrary)]
struct Word {
    path: Option<Piece>,
    action: u8,
    reason: Option<Piece>,
    number: Option<u32>,
    text: Option<Text>,
}

#[test]
fn a_decision_is_read_or_refused() {
    tried("decisions", 1_500, |word: &Word| {
        let actions = [
            DecisionAction::Approve { through: "tenth".parse().expect("a step") },
            DecisionAction::Deny,
            DecisionAction::Skip {
                step: "tenth".parse().expect("a step"),
                through: tidegate::manifest::decision::Through::Promotion,
            },
            DecisionAction::Hold,
            DecisionAction::Resume,
            DecisionAction::Abort,
            DecisionAction::Retry,
            DecisionAction::Rollback,
            DecisionAction::Adopt { live: "ab".repeat(20).parse().expect("a set") },
            DecisionAction::Delete {
                objects: [named(Kind::Service, "on"), named(Kind::ConfigMap, "old")].into(),
                successor: word.number.map(|_| "cd".repeat(20).parse().expect("a set")),
            },
        ];
        let action = actions[usize::from(word.action) % actions.len()].clone();
        let reason = word.reason.as_ref().map(|piece| piece.0.clone());
        let decision = Decision { rollout: id(), run: "7-9ac41f02".parse().expect("a run"), action, reason };
        let (name, text) = decision::print(&decision, word.number);
        let same =
            |read: &Decision| (&read.rollout, &read.run, &read.action) == (&id(), &decision.run, &decision.action);
        let read = decision::parse(&name, text.as_bytes()).expect("what was printed reads");
        assert!(same(&read), "{read:?}");

        let name = word.path.as_ref().and_then(|piece| piece.0.parse().ok()).unwrap_or(name);
        let bytes = word
            .text
            .as_ref()
            .map_or_else(|| text.clone().into_bytes(), |change| change.bytes(std::slice::from_ref(&text)));
        match within(bytes.len(), || decision::parse(&name, &bytes)) {
            Ok(read) => {
                let (_, text) = decision::print(&read, None);
                let lies = format!("{}/{}", read.rollout, read.run);
                assert!(name.as_str().starts_with(&lies), "{name} is read as {text}");
                Fate::Taken
            }
            Err(found) => {
                assert!(!found.is_empty() && found.len() <= MOST + MOST + 2);
                found.iter().for_each(|diagnostic| well_told(diagnostic, Some(&bytes)));
                Fate::Refused
            }
        }
    });
}

const INSTALLATION: &str = "apiVersion: tidegate.io/v1alpha1
kind: Installation
spec:
  instance: prod
  repository:
    url: \"https://git.example.test/fleet.git\"
    branch: main
    poll: 30s
    credentialsFile: /etc/git
  clusters:
    home: {inCluster: {}}
  # What no policy may go beyond.
  caps:
    namespaces: [shop]
    kinds: []
";

#[test]
fn an_installation_is_read_or_refused() {
    tried("installations", 800, |text: &Text| {
        let bytes = text.bytes(&[INSTALLATION.to_owned()]);
        match within(bytes.len(), || installation::parse(&path("installation.yaml"), &bytes)) {
            Ok(read) => {
                assert!(read.repository.url.password().is_none() && read.repository.poll.as_secs() >= 1);
                Fate::Taken
            }
            Err(found) => {
                found.iter().for_each(|diagnostic| well_told(diagnostic, Some(&bytes)));
                Fate::Refused
            }
        }
    });
}

/// What parses is written as it was, or as something that parses to the same.
fn stays<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string().parse::<T>().expect("what was printed reads"), read, "{text:?}");
    }
}

#[test]
fn names_and_paths_stay_inside() {
    tried("names", 8_000, |pieces: &Few<Piece>| {
        let parts: Vec<&str> = pieces.0.iter().map(|piece| piece.0.as_str()).collect();
        let mut fate = Fate::Refused;
        for text in [parts.join("/"), parts.join("-"), parts.concat()] {
            if let Ok(path) = text.parse::<RepoPath>() {
                fate = Fate::Taken;
                let parts: Vec<&str> = path.as_str().split('/').collect();
                assert!(path.as_str() == text && text.len() <= 1_024 && parts.len() <= 32, "{text:?}");
                assert!(!parts.iter().any(|part| ["", ".", ".."].contains(part)) && !text.contains('\\'), "{text:?}");
                assert!(path.parent().is_none_or(|parent| path.is_within(&parent)), "{text:?}");
                if let Ok(beside) = path.beside(parts[0]) {
                    assert_eq!(beside.parent(), path.parent(), "{text:?}");
                }
            }
            stays::<RolloutId>(&text);
            stays::<Namespace>(&text);
            stays::<ObjectName>(&text);
            stays::<RunId>(&text);
            stays::<StepName>(&text);
            stays::<CommitId>(&text);
            stays::<Revision>(&text);
            stays::<Span>(&text);
            let prod: InstanceName = "prod".parse().expect("a name");
            let branch = format!("tidegate/prod/propose/{text}");
            if let Some(head) = Head::parse(&prod, &branch) {
                assert_eq!(head.branch(&prod), branch);
            }
            for shown in [plain(&text), unlinked(&text)] {
                assert!(shown.len() <= CAP && !shown.chars().any(char::is_control), "{text:?}: {shown:?}");
            }
        }
        fate
    });
}

/// A window of a policy, by its parts.
#[derive(Debug, Arbitrary)]
struct Opening {
    fields: [(u8, u8, u8); 5],
    odd: Option<Piece>,
    duration: u32,
    zone: u16,
    at: u32,
}

#[test]
fn a_window_opens_and_closes_after_now() {
    tried("windows", 150, |opening: &Opening| {
        let most: [(u8, u8); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
        let field = |((low, high), (kind, a, b)): ((u8, u8), (u8, u8, u8))| {
            let within = |n: u8| low + n % (high - low + 1);
            match kind % 5 {
                0 => "*".to_owned(),
                1 => within(a).to_string(),
                2 => format!("*/{}", b.max(1)),
                3 => format!("{}-{}", within(a).min(within(b)), within(a).max(within(b))),
                _ => format!("{},{}", within(a), within(b)),
            }
        };
        let fields: Vec<String> = most.into_iter().zip(opening.fields).map(field).collect();
        let cron = opening.odd.as_ref().map_or_else(|| fields.join(" "), |piece| piece.0.clone());
        let zones = chrono_tz::TZ_VARIANTS;
        let zone = zones[usize::from(opening.zone) % zones.len()];
        let Ok(window) = Window::new(&cron, Span::from_secs(opening.duration.into()), zone) else {
            return Fate::Refused;
        };
        let now = tidegate::record::state::Time::from_timestamp(i64::from(opening.at), 0).expect("a time");
        match window.is_open(now) {
            WindowState::Open { until } => assert!(until > now, "{cron}: open until {until}, which is past"),
            WindowState::Closed { opens } => {
                assert!(opens.is_none_or(|opens| opens > now), "{cron}: opens at {opens:?}, which is past");
            }
        }
        Fate::Taken
    });
}

#[test]
fn what_many_files_lay_claim_to_is_told_shortly() {
    let mut files = RUN.main.clone();
    for n in 0..200 {
        files.insert(path(&format!("shop/{n}/web.rollout.yaml")), file(ROLLOUT.as_bytes()));
        files.insert(path(&format!("shop/{n}/web.yaml")), file(manifests("2").as_bytes()));
    }
    let loaded = load::load(&files, &Caps::default());
    let rejected = loaded.rollouts[&id()].as_ref().expect_err("nobody can say whose it is");
    assert_eq!((rejected.paths.len(), rejected.diagnostics.len()), (201, MOST));
    rejected.diagnostics.iter().for_each(|diagnostic| well_told(diagnostic, Some(ROLLOUT.as_bytes())));
    let told = rejected.diagnostics[0].to_string();
    assert!(told.contains("and 197 more too"), "{told}");
}
