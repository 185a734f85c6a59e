//! The decision against every kill: a node as a value, with its disk, what is in force on it, and an API server beside it.

use super::*;
use crate::content::ContentFiles;
use proptest::prelude::*;

fn digest(name: &str) -> ContentDigest {
    ContentDigest::of(&ContentFiles::from([(name.to_owned(), Vec::new())]))
}

fn now() -> Time {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// What is wrong with a content, or with the node while it is put into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    Nothing,
    CheckFails,
    TryFails,
    /// It ends well and does nothing.
    TryDoesNothing,
    /// It fails half-way.
    TryHalf,
    ProbeFails,
    CommitFails,
    /// The probe failed before, too.
    ProbeFailedBefore,
    ContentMissing,
}

/// A node, and what is beside it.
#[derive(Debug, Clone)]
struct Node {
    disk: NodeDisk,
    in_force: String,
    object: NodeSeen,
    odd: Odd,
    /// `restore` ends well and does nothing.
    restore_is_broken: bool,
    disk_is_full: bool,
    api_is_away: bool,
    // What was seen of the rules.
    tried: Vec<NodeAsk>,
    /// Whether something was put into force, or asked of the API server, before an open change was taken back.
    restored: bool,
    wrong: Vec<String>,
}

impl Node {
    fn new(odd: Odd) -> Self {
        let old = Good { digest: digest("old"), shown: "old".into() };
        let ask = NodeAsk { digest: digest("new"), attempt: 0 };
        let object = NodeSeen { ask, content: "c".into(), generation: 2, version: "1".into(), said: None };
        Self {
            disk: NodeDisk { good: Some(old), ..NodeDisk::default() },
            in_force: "old".into(),
            object,
            odd,
            restore_is_broken: false,
            disk_is_full: false,
            api_is_away: false,
            tried: Vec::new(),
            restored: true,
            wrong: Vec::new(),
        }
    }

    fn shown_of(&self, of: &ContentDigest) -> String {
        if *of == digest("old") { "old".into() } else { "new".into() }
    }

    fn is_odd(&self, odd: Odd, of: &ContentDigest) -> bool {
        self.odd == odd && *of == digest("new")
    }

    fn act(&mut self, step: &AgentStep) -> StepOutcome {
        if !self.restored && !matches!(step, AgentStep::Restore { .. }) {
            self.wrong.push(format!("{step:?} before an open change was taken back"));
        }
        match step {
            AgentStep::Restore { good, .. } => {
                if !self.restore_is_broken {
                    self.in_force = good.as_ref().map_or("none".into(), |good| self.shown_of(good));
                }
                self.restored = true;
                StepOutcome::Shown(self.in_force.clone())
            }
            AgentStep::Probe(wanted) => self.probe(wanted.as_ref()),
            AgentStep::Fetch { .. } if self.odd == Odd::ContentMissing => {
                StepOutcome::Refused("ContentMissing: c".into())
            }
            AgentStep::Fetch { .. } if self.disk_is_full => StepOutcome::Refused("DiskUnwritable: full".into()),
            AgentStep::Fetch { .. } if self.api_is_away => StepOutcome::Away,
            AgentStep::Fetch { .. } => StepOutcome::Done,
            AgentStep::Check(of) if self.is_odd(Odd::CheckFails, of) => StepOutcome::Failed("check: no".into()),
            AgentStep::Check(_) => StepOutcome::Checked(self.in_force.clone(), None),
            AgentStep::Stamp(report) | AgentStep::Report(report) => self.tell(report),
            AgentStep::Keep(_) if self.disk_is_full => StepOutcome::Failed("full".into()),
            AgentStep::Keep(disk) => {
                self.disk = disk.clone();
                StepOutcome::Done
            }
            AgentStep::Try(of) => self.put(of),
            AgentStep::Commit(of) if self.is_odd(Odd::CommitFails, of) => StepOutcome::Failed("commit: no".into()),
            AgentStep::Commit(_) | AgentStep::Read => StepOutcome::Shown(self.in_force.clone()),
            AgentStep::Rest => StepOutcome::Done,
        }
    }

    fn probe(&self, wanted: Option<&BTreeSet<String>>) -> StepOutcome {
        let bad = self.odd == Odd::ProbeFailedBefore || self.odd == Odd::ProbeFails && self.in_force == "new";
        let all = BTreeMap::from([("tcp".to_owned(), bad.then(|| "no answer".to_owned())), ("up".to_owned(), None)]);
        StepOutcome::Probed(
            all.into_iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted.contains(name))).collect(),
        )
    }

    fn put(&mut self, of: &ContentDigest) -> StepOutcome {
        let ask = NodeAsk { digest: of.clone(), attempt: self.object.ask.attempt };
        if self.disk.doing.as_ref().is_none_or(|doing| doing.ask != ask) {
            self.wrong.push("something was tried that the disk does not know".into());
        }
        let said = self.object.said.as_ref().filter(|said| said.ask == ask);
        if said.is_none_or(|said| said.state != Progress::Started) {
            self.wrong.push("something was tried without a stamp".into());
        }
        if self.disk.bad.iter().any(|verdict| verdict.ask == ask) {
            self.wrong.push("what was found bad is tried again".into());
        }
        self.tried.push(ask);
        if self.is_odd(Odd::TryFails, of) {
            return StepOutcome::Failed("try: no".into());
        }
        if !self.is_odd(Odd::TryDoesNothing, of) {
            self.in_force = if self.is_odd(Odd::TryHalf, of) { "half".into() } else { self.shown_of(of) };
        }
        if self.is_odd(Odd::TryHalf, of) {
            StepOutcome::Failed("try: half".into())
        } else {
            StepOutcome::Shown(self.in_force.clone())
        }
    }

    fn tell(&mut self, report: &NodeReport) -> StepOutcome {
        if self.api_is_away {
            return StepOutcome::Away;
        }
        let applied_too_early = report.state == Progress::Applied && self.in_force != self.shown_of(&report.ask.digest);
        let failed_too_early = report.state == Progress::Failed && self.in_force != "old";
        if applied_too_early || failed_too_early {
            self.wrong.push(format!("{:?} is told while {} is in force", report.state, self.in_force));
        }
        self.object.version.push('1');
        self.object.said = Some(report.clone());
        StepOutcome::Heard(self.object.clone())
    }

    /// A process that starts.
    fn start(&mut self) -> AgentState {
        self.restored = self.disk.doing.is_none();
        AgentState::new(self.disk.clone(), String::new())
    }
}

/// Where a process is killed: before this step, after it took effect, or between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    Before(usize),
    After(usize),
    Amid(usize),
}

/// A rule of the agent that is broken, to see that it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// What is open is not taken back by who is started again.
    RestoreFirst,
    /// The API server has not taken the stamp.
    StampFirst,
    /// The disk does not know of what is tried.
    NoteFirst,
    /// What fails is told before it is taken back.
    RestoreBeforeReport,
    /// What failed is forgotten.
    Remember,
}

/// What a process makes of a step that leaves the rule out; nothing if it is another rule's.
fn leaves_out(broken: Option<Broken>, node: &mut Node, state: &AgentState, step: &AgentStep) -> Option<StepOutcome> {
    match (broken?, step) {
        (Broken::RestoreFirst, AgentStep::Restore { accept, .. }) if state.stage == Stage::Rest => {
            Some(StepOutcome::Shown(accept.first()?.clone()))
        }
        (Broken::StampFirst, AgentStep::Stamp(report)) => {
            Some(StepOutcome::Heard(NodeSeen { said: Some(report.clone()), ..node.object.clone() }))
        }
        (Broken::NoteFirst, AgentStep::Keep(disk)) if disk.doing.is_some() => Some(StepOutcome::Done),
        (Broken::RestoreBeforeReport, AgentStep::Restore { .. }) if state.stage != Stage::Rest => {
            node.tell(&node.object.clone().report(Progress::Failed, "", now()));
            None
        }
        _ => None,
    }
}

fn settle(node: &mut Node, kills: &[Kill]) -> usize {
    settle_with(node, kills, None)
}

/// Runs until nothing is left to do; whoever is killed is started again. How many steps it took.
fn settle_with(node: &mut Node, kills: &[Kill], broken: Option<Broken>) -> usize {
    let (mut state, mut count, mut pauses) = (node.start(), 0, 0);
    loop {
        let step = state.decide(now());
        if step == AgentStep::Rest {
            if state.version() != Some(&node.object.version) && !node.api_is_away {
                state.look(Some(node.object.clone()));
                continue;
            }
            // A while without anything new.
            if !state.is_waiting() || pauses == 8 {
                return count;
            }
            pauses += 1;
            state.retry();
            continue;
        }
        if let Some(outcome) = leaves_out(broken, node, &state, &step) {
            state.learn(&step, outcome);
            continue;
        }
        let dies = |kill: Kill| kills.contains(&kill);
        let number = count;
        count += 1;
        if count == 300 {
            node.wrong.push(format!("it does not settle: {step:?}"));
            return count;
        }
        if dies(Kill::Before(number)) {
            state = node.start();
            continue;
        }
        if dies(Kill::Amid(number)) {
            if let AgentStep::Try(_) = step {
                node.act(&step);
                node.in_force = "half".into();
            }
            if let (AgentStep::Restore { .. }, false) = (&step, node.restore_is_broken) {
                node.in_force = "half".into();
            }
            state = node.start();
            continue;
        }
        let outcome = node.act(&step);
        if dies(Kill::After(number)) {
            state = node.start();
            continue;
        }
        state.learn(&step, outcome);
        if broken == Some(Broken::Remember) {
            state.disk.bad.clear();
        }
    }
}

const ODD: [Odd; 9] = [
    Odd::Nothing,
    Odd::CheckFails,
    Odd::TryFails,
    Odd::TryDoesNothing,
    Odd::TryHalf,
    Odd::ProbeFails,
    Odd::CommitFails,
    Odd::ProbeFailedBefore,
    Odd::ContentMissing,
];

fn said(node: &Node) -> (Option<Progress>, String) {
    node.object.said.clone().map_or((None, String::new()), |said| (Some(said.state), said.message))
}

/// What does not hold in the end, although it was killed only so often.
fn faults(node: &Node, killed: usize) -> Vec<String> {
    let (state, in_force) = (said(node).0, node.in_force.as_str());
    let mut faults = node.wrong.clone();
    if node.disk.doing.is_some() {
        faults.push("a change is left open".into());
    }
    if node.disk.good.as_ref().is_none_or(|good| good.shown != in_force) {
        faults.push("last-good is not in force".into());
    }
    // Interrupted once it is tried once more, and never a third time.
    if node.tried.len() > 2 {
        faults.push("it is tried a third time".into());
    }
    let fine = match node.odd {
        Odd::Nothing | Odd::ProbeFailedBefore if killed < 2 => (state, in_force) == (Some(Progress::Applied), "new"),
        Odd::Nothing | Odd::ProbeFailedBefore => {
            state == Some(if in_force == "new" { Progress::Applied } else { Progress::Failed })
        }
        Odd::ContentMissing => (state, in_force) == (Some(Progress::Refused), "old"),
        Odd::CheckFails | Odd::TryFails | Odd::TryDoesNothing | Odd::TryHalf | Odd::ProbeFails | Odd::CommitFails => {
            (state, in_force) == (Some(Progress::Failed), "old")
        }
    };
    if !fine {
        faults.push(format!("{state:?} while {in_force} is in force"));
    }
    faults
}

fn judge(node: &Node, killed: usize) {
    assert_eq!(faults(node, killed), [""; 0], "{node:#?}");
}

fn kills(steps: usize) -> Vec<Kill> {
    (0..steps).flat_map(|n| [Kill::Before(n), Kill::Amid(n), Kill::After(n)]).collect()
}

#[test]
fn n_19_n_21_whatever_fails_the_node_has_the_old_or_the_new() {
    let expected = [
        (Odd::Nothing, Progress::Applied, ""),
        (Odd::CheckFails, Progress::Failed, "check: no"),
        (Odd::TryFails, Progress::Failed, "try: no"),
        (Odd::TryDoesNothing, Progress::Failed, "try ended well, and has changed nothing that is in force"),
        (Odd::TryHalf, Progress::Failed, "try: half"),
        (Odd::ProbeFails, Progress::Failed, "since the change tcp fails: no answer"),
        (Odd::CommitFails, Progress::Failed, "commit: no"),
        (Odd::ProbeFailedBefore, Progress::Applied, ""),
        (Odd::ContentMissing, Progress::Refused, "ContentMissing: c"),
    ];
    for (odd, state, message) in expected {
        let mut node = Node::new(odd);
        settle(&mut node, &[]);
        judge(&node, 0);
        assert_eq!(said(&node), (Some(state), message.to_owned()), "{odd:?}");
        // At rest it stays so, whoever is started again; and what was found bad is not touched.
        let (tried, version) = (node.tried.len(), node.object.version.clone());
        settle(&mut node, &[]);
        assert_eq!((node.tried.len(), &node.object.version), (tried, &version), "{odd:?}");
    }
}

#[test]
fn n_19_killed_between_any_two_steps_or_in_one_of_them() {
    let mut ways = 0;
    for odd in ODD {
        let steps = settle(&mut Node::new(odd), &[]) + 12;
        let all = kills(steps);
        for (n, first) in all.iter().enumerate() {
            for second in &all[n..] {
                let mut node = Node::new(odd);
                settle(&mut node, &[*first, *second]);
                judge(&node, 1 + usize::from(first != second));
                ways += 1;
            }
        }
    }
    assert!(ways > 10_000, "{ways}");
}

#[test]
fn each_rule_is_needed() {
    let noticed = |broken: Broken| -> Vec<String> {
        let ways = ODD.into_iter().flat_map(|odd| kills(20).into_iter().map(move |kill| (odd, kill)));
        let found = ways.flat_map(|(odd, kill)| {
            let mut node = Node::new(odd);
            settle_with(&mut node, &[kill], Some(broken));
            // Somebody starts it once more.
            settle_with(&mut node, &[], Some(broken));
            faults(&node, 1)
        });
        found.collect()
    };
    let found = [
        (Broken::RestoreFirst, "before an open change was taken back"),
        (Broken::StampFirst, "something was tried without a stamp"),
        (Broken::NoteFirst, "something was tried that the disk does not know"),
        (Broken::RestoreBeforeReport, "Failed is told while new is in force"),
        (Broken::Remember, "it is tried a third time"),
    ];
    for (broken, expected) in found {
        let faults = noticed(broken);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{broken:?}: {faults:?}");
    }
}

#[test]
fn an_answer_that_is_changed_on_the_way_is_not_said_all_the_time() {
    let mut node = Node::new(Odd::CheckFails);
    let mut state = node.start();
    state.look(Some(node.object.clone()));
    let mut told = 0;
    for _ in 0..50 {
        let step = state.decide(now());
        let outcome = node.act(&step);
        if let (AgentStep::Report(_), StepOutcome::Heard(mut heard)) = (&step, outcome.clone()) {
            told += 1;
            heard.said = None;
            state.learn(&step, StepOutcome::Heard(heard));
        } else {
            state.learn(&step, outcome);
        }
    }
    assert_eq!((told, state.is_waiting()), (1, true));
}

#[test]
fn n_19_without_an_api_server_it_goes_back_and_tells_later() {
    // It goes away behind each step.
    for after in 0..20 {
        let mut node = Node::new(Odd::ProbeFails);
        let mut state = node.start();
        state.look(Some(node.object.clone()));
        for n in 0..200 {
            node.api_is_away = n >= after;
            let step = state.decide(now());
            let outcome = node.act(&step);
            state.learn(&step, outcome);
        }
        assert_eq!((node.in_force.as_str(), &node.disk.doing), ("old", &None), "{after}");
        assert_eq!(node.wrong, [""; 0]);
        // Killed meanwhile, it tells once the API server is back.
        node.api_is_away = false;
        settle(&mut node, &[]);
        assert_eq!(said(&node).0, Some(Progress::Failed), "{after}");
        assert_eq!(node.tried.len(), 1, "{after}");
    }
}

#[test]
fn n_7_an_agent_that_cannot_write_starts_nothing() {
    let mut node = Node::new(Odd::Nothing);
    let mut state = node.start();
    state.look(Some(node.object.clone()));
    node.api_is_away = true;
    for _ in 0..100 {
        let step = state.decide(now());
        let outcome = node.act(&step);
        state.learn(&step, outcome);
        state.retry();
    }
    assert_eq!((node.tried.len(), said(&node).0), (0, None));
    node.api_is_away = false;
    settle(&mut node, &[]);
    judge(&node, 0);
}

#[test]
fn n_23_a_stale_stamp_begins_nothing() {
    let mut node = Node::new(Odd::Nothing);
    let mut state = node.start();
    state.look(Some(node.object.clone()));
    loop {
        let step = state.decide(now());
        if let AgentStep::Stamp(_) = step {
            state.learn(&step, StepOutcome::Stale);
            break;
        }
        let outcome = node.act(&step);
        state.learn(&step, outcome);
    }
    // What is asked by now has to be seen first.
    assert_eq!(state.decide(now()), AgentStep::Rest);
    state.look(Some(NodeSeen { ask: NodeAsk { digest: digest("old"), attempt: 0 }, ..node.object.clone() }));
    assert_eq!(state.decide(now()), AgentStep::Read);
    assert!(node.tried.is_empty());
}

#[test]
fn n_20_nothing_is_begun_on_a_disk_that_takes_nothing() {
    let mut node = Node::new(Odd::Nothing);
    node.disk_is_full = true;
    settle(&mut node, &[]);
    assert_eq!((said(&node), node.tried.len()), ((Some(Progress::Refused), "DiskUnwritable: full".into()), 0));
    node.disk_is_full = false;
    settle(&mut node, &[]);
    judge(&node, 0);
    // It becomes full behind each step: what was in force before is so again, or the new is kept.
    for after in 0..20 {
        let mut node = Node::new(Odd::Nothing);
        let mut state = node.start();
        state.look(Some(node.object.clone()));
        for n in 0..100 {
            node.disk_is_full = n >= after;
            let step = state.decide(now());
            let outcome = node.act(&step);
            state.learn(&step, outcome);
        }
        let fine = match said(&node).0 {
            Some(Progress::Applied) => "new",
            _ => "old",
        };
        assert_eq!((node.in_force.as_str(), &node.wrong), (fine, &Vec::new()), "{after}: {node:#?}");
    }
}

#[test]
fn n_31_a_restore_that_restores_nothing_is_told_and_tried_by_the_next_start() {
    let mut node = Node::new(Odd::ProbeFails);
    node.restore_is_broken = true;
    settle(&mut node, &[]);
    let (state, message) = said(&node);
    assert_eq!((state, node.in_force.as_str()), (Some(Progress::RestoreFailed), "new"));
    assert_eq!(
        message,
        "restore ended well, and what was in force before is not; it had to go back because since the change tcp fails: no answer"
    );
    // Started again it tries again, and says nothing new while that is in vain.
    let version = node.object.version.clone();
    settle(&mut node, &[]);
    assert_eq!((said(&node), &node.object.version), ((state, message.clone()), &version));
    node.restore_is_broken = false;
    settle(&mut node, &[]);
    assert_eq!((said(&node), node.in_force.as_str()), ((Some(Progress::Failed), message), "old"));
    assert_eq!((node.tried.len(), &node.disk.doing), (1, &None));
}

#[test]
fn n_31_new_content_leads_out_of_what_could_not_be_taken_back() {
    let mut node = Node::new(Odd::ProbeFails);
    node.restore_is_broken = true;
    settle(&mut node, &[]);
    // What was there before, as new content: it is put into force, since it is not.
    (node.object.ask.digest, node.object.generation) = (digest("old"), 3);
    settle(&mut node, &[]);
    assert_eq!((said(&node).0, node.in_force.as_str()), (Some(Progress::Applied), "old"));
    assert_eq!(node.disk.doing, None);
}

#[test]
fn n_21_a_retry_is_tried_and_the_same_is_not() {
    let mut node = Node::new(Odd::ProbeFails);
    settle(&mut node, &[]);
    assert_eq!(node.tried.len(), 1);
    // Another generation of the same: answered at once, for that generation.
    node.object.generation = 9;
    settle(&mut node, &[]);
    assert_eq!((node.tried.len(), node.object.said.as_ref().unwrap().observed_generation), (1, 9));
    (node.object.ask.attempt, node.object.generation, node.odd) = (1, 10, Odd::Nothing);
    settle(&mut node, &[]);
    assert_eq!((node.tried.len(), said(&node).0), (2, Some(Progress::Applied)));
    // A disk that was lost does not make it forget what it has told.
    let mut node = Node::new(Odd::ProbeFails);
    settle(&mut node, &[]);
    node.disk.bad.clear();
    settle(&mut node, &[]);
    assert_eq!(node.tried.len(), 1);
}

#[test]
fn n_2_what_is_in_force_already_is_answered_without_touching_it() {
    let mut node = Node::new(Odd::Nothing);
    (node.object.ask.digest, node.object.generation) = (digest("old"), 7);
    settle(&mut node, &[]);
    assert_eq!((said(&node).0, node.tried.len()), (Some(Progress::Applied), 0));
    assert_eq!(node.object.said.as_ref().unwrap().observed_generation, 7);
    // A hand has changed it: then it is put into force as anything else.
    node.in_force = "by hand".into();
    node.object.generation = 8;
    settle(&mut node, &[]);
    assert_eq!((said(&node).0, node.in_force.as_str(), node.tried.len()), (Some(Progress::Applied), "old", 1));
}

#[test]
fn n_19_a_promise_of_the_driver_is_held_against_it() {
    let change = |expected: &str, shown: &str| {
        let mut node = Node::new(Odd::Nothing);
        let mut state = node.start();
        state.look(Some(node.object.clone()));
        loop {
            let step = state.decide(now());
            let outcome = if let AgentStep::Check(_) = step {
                StepOutcome::Checked("old".into(), Some(expected.into()))
            } else if let AgentStep::Try(_) = step {
                state.learn(&step, StepOutcome::Shown(shown.into()));
                return state.decide(now());
            } else {
                node.act(&step)
            };
            state.learn(&step, outcome);
        }
    };
    assert!(matches!(change("new", "new"), AgentStep::Probe(Some(_))));
    assert!(matches!(change("new", "something"), AgentStep::Restore { .. }));
    // Nothing changes, as it has said.
    assert!(matches!(change("old", "old"), AgentStep::Probe(Some(_))));
}

#[test]
fn verdicts_are_bounded() {
    let mut disk = NodeDisk::default();
    for attempt in 0..100 {
        let ask = NodeAsk { digest: digest("new"), attempt };
        disk.condemn(NodeVerdict { ask, state: Progress::Failed, message: String::new() });
    }
    assert_eq!((disk.bad.len(), disk.bad[0].ask.attempt), (VERDICTS, 100 - VERDICTS as u64));
}

proptest! {
    #[test]
    fn n_19_n_21_random_kills_and_outages(
        odd in proptest::sample::select(&ODD), kills in proptest::collection::vec((0..60_usize, 0..3_u8), 0..6),
        full in any::<bool>(), away in any::<bool>(),
    ) {
        let mut node = Node::new(odd);
        let kill = |(n, how): &(usize, u8)| match how { 0 => Kill::Before(*n), 1 => Kill::Amid(*n), _ => Kill::After(*n) };
        let kills: Vec<Kill> = kills.iter().map(kill).collect();
        (node.disk_is_full, node.api_is_away) = (full, away);
        settle(&mut node, &kills);
        (node.disk_is_full, node.api_is_away) = (false, false);
        settle(&mut node, &[]);
        judge(&node, 2);
    }
}
