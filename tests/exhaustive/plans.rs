//! Plans by number: what the planner that is shipped makes of what a controller sees, asked once for each sight.

use crate::exhaustive::branch::Branch;
use crate::exhaustive::cluster::{Clusters, bit};
use crate::exhaustive::manifests::{GATED, id, instance, look, rollouts, start};
use crate::exhaustive::numbers::Numbers;
use crate::exhaustive::state::At;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tidegate::analysis::judge::{Inquiry, Range};
use tidegate::analysis::reading::{Measurement, Reading, Samples};
use tidegate::gate::brake::BrakeWord;
use tidegate::gate::decisions::DecisionFile;
use tidegate::manifest::decision::{self, Decision, DecisionAction};
use tidegate::manifest::desired::Rollout;
use tidegate::manifest::ids::{CommitId, RunId};
use tidegate::manifest::oid;
use tidegate::plan::action::{Action, Class, Verb};
use tidegate::plan::draft::{RecordChange, RolloutPlan};
use tidegate::plan::evidence::Answer;
use tidegate::plan::input::{Decisions, Desired, Git, Input, Live, PolicyView, RecordedState};
use tidegate::plan::planner;
use tidegate::record::state::Writer;
use tidegate::workload::live::Expects;

/// What a controller knows of Git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Known {
    /// Nothing: it has not asked yet.
    #[default]
    Nothing,
    /// Nothing, and Git does not answer.
    Blind,
    /// What Git said when it was asked last.
    View {
        tip: u32,
        main: u8,
        words: u64,
        /// Whether it answered the last time that it was asked.
        fresh: bool,
    },
}

/// All that a plan is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sight {
    pub(crate) cluster: u32,
    pub(crate) known: Known,
    pub(crate) bad: bool,
    pub(crate) brake: bool,
}

/// A plan.
pub(crate) struct Plan {
    /// What goes back, by number.
    pub(crate) retreats: Vec<u32>,
    pub(crate) change: RecordChange,
    /// What the record then allows, by number.
    pub(crate) advances: Vec<u32>,
    /// The open run of the record that it was made from, if anything goes back.
    pub(crate) run: Option<usize>,
    /// The objects of actions that say which version they were planned on, a bit for each.
    pub(crate) aims: u8,
}

impl Plan {
    /// Whether it is for nothing to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.retreats.is_empty() && !self.wants_git()
    }

    /// Whether there is anything that needs Git, or its leave.
    pub(crate) fn wants_git(&self) -> bool {
        self.change != RecordChange::Keep || !self.advances.is_empty()
    }
}

/// An action of some plan.
pub(crate) struct Due {
    pub(crate) action: Action,
    /// It takes a run back; otherwise it brings a raise that nobody recorded down to the record, or goes forward.
    pub(crate) back: bool,
    pub(crate) bit: u8,
}

/// All plans that were made.
pub(crate) struct Plans {
    rollouts: BTreeMap<u8, Arc<Rollout>>,
    by_sight: HashMap<Sight, u32>,
    by_place: HashMap<(u32, At, u8), u32>,
    plans: Numbers<Plan>,
    due: Numbers<Due>,
    /// All questions of checks that were asked.
    asked: BTreeSet<Range>,
    /// All runs that were met.
    runs: Vec<RunId>,
}

impl Plans {
    pub(crate) fn new() -> Self {
        let (plans, due) = (Numbers::default(), Numbers::default());
        let (by_sight, by_place, asked) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        Self { rollouts: rollouts(), by_sight, by_place, plans, due, asked, runs: Vec::new() }
    }

    pub(crate) fn get(&self, number: u32) -> &Plan {
        self.plans.get(number)
    }

    pub(crate) fn due(&self, number: u32) -> &Due {
        self.due.get(number)
    }

    pub(crate) fn count(&self) -> usize {
        self.plans.len()
    }

    /// The place of a run among all that were met.
    pub(crate) fn run(&mut self, run: &RunId) -> usize {
        self.runs.iter().position(|known| known == run).unwrap_or_else(|| {
            self.runs.push(run.clone());
            assert!(self.runs.len() <= 64, "a state has a bit for each run");
            self.runs.len() - 1
        })
    }

    /// What the planner says to that.
    pub(crate) fn plan(&mut self, sight: Sight, clusters: &Clusters, branch: &Branch) -> u32 {
        if let Some(number) = self.by_sight.get(&sight) {
            return *number;
        }
        let plan = self.made(sight, clusters, branch);
        let run = match sight.known {
            Known::View { tip, .. } => branch.get(tip).run.clone().map(|(run, _)| self.run(&run)),
            Known::Nothing | Known::Blind => None,
        };
        let advances = plan.going_forward().cloned().collect::<Vec<_>>();
        let retreats: Vec<u32> = plan.going_back().cloned().map(|action| self.number(action)).collect();
        let advances: Vec<u32> = advances.into_iter().map(|action| self.number(action)).collect();
        let number = self.meet(retreats, plan.record, advances, run);
        self.by_sight.insert(sight, number);
        number
    }

    /// What is left of a plan for who stands there, about to do the `next` of its retreats or of its advances.
    pub(crate) fn rest(&mut self, number: u32, at: At, next: u8) -> u32 {
        if let Some(number) = self.by_place.get(&(number, at, next)) {
            return *number;
        }
        let Plan { retreats, change, advances, run, .. } = self.get(number);
        let after = |list: &[u32]| list[usize::from(next)..].to_vec();
        let rest = match at {
            At::Retreat => self.meet(after(retreats), change.clone(), advances.clone(), *run),
            At::Push => self.meet(Vec::new(), change.clone(), advances.clone(), None),
            At::Advance => self.meet(Vec::new(), RecordChange::Keep, after(advances), None),
            At::Idle | At::Lagging | At::ActFirst => number,
        };
        self.by_place.insert((number, at, next), rest);
        rest
    }

    fn meet(&mut self, retreats: Vec<u32>, change: RecordChange, advances: Vec<u32>, run: Option<usize>) -> u32 {
        let key = format!("{retreats:?} {advances:?} {run:?} {change:?}");
        let all = retreats.iter().chain(&advances).map(|number| self.due(*number));
        let aimed = all.filter(|due| matches!(due.action.verb.expects(), Expects::Version { .. }));
        let aims = aimed.fold(0, |bits, due| bits | due.bit);
        self.plans.number(&key, || Plan { retreats, change, advances, run, aims })
    }

    fn number(&mut self, mut action: Action) -> u32 {
        if let Verb::Apply { expects, .. } | Verb::Migrate { expects, .. } | Verb::Delete { expects, .. } =
            &mut action.verb
            && let Expects::Version { resource_version, .. } = expects
        {
            // Told by who carries it out: as it was when it was planned, or changed since.
            resource_version.clear();
        }
        let bit = bit(action.verb.target());
        let back = action.class == Class::Retreat && !action.why.ends_with("exposure back to the record");
        self.due.number(&format!("{action:?}"), || Due { action, back, bit })
    }

    /// Plans until all that it wants to know is known: evidence comes in at once.
    fn made(&mut self, sight: Sight, clusters: &Clusters, branch: &Branch) -> RolloutPlan {
        let mut input = self.input(sight, clusters, branch);
        for range in &self.asked {
            let measured = Measurement { reading: measured(range, sight.bad), at: look() };
            Arc::make_mut(&mut input.evidence).readings.samples.insert(range.clone(), measured);
        }
        loop {
            let plan = planner::plan(&input);
            if plan.needs.is_empty() && plan.questions.is_empty() {
                return plan;
            }
            for need in &plan.needs {
                let answer = Answer { outcome: clusters.dry_run(sight.cluster, need), at: look() };
                Arc::make_mut(&mut input.evidence).dry_runs.insert(need.question.clone(), answer);
            }
            for question in &plan.questions {
                let Inquiry::Range(range) = question else { panic!("no rollout here asks a webhook") };
                self.asked.insert(range.clone());
                let reading = measured(range, sight.bad);
                Arc::make_mut(&mut input.evidence)
                    .readings
                    .samples
                    .insert(range.clone(), Measurement { reading, at: look() });
            }
        }
    }

    fn input(&self, sight: Sight, clusters: &Clusters, branch: &Branch) -> Input {
        let away = || "connection refused".to_owned();
        let (tip, main, words, git) = match sight.known {
            Known::View { tip, main, words, fresh } => {
                (Some(branch.get(tip)), main, words, if fresh { Git::Fresh } else { Git::Away(away()) })
            }
            Known::Nothing | Known::Blind => (None, 0, 0, Git::Away(away())),
        };
        let wanted = self.rollouts.get(&main);
        let mut sets = tip.map(|tip| tip.sets.clone()).unwrap_or_default();
        sets.extend(wanted.map(|rollout| (rollout.set.id.clone(), rollout.set.clone())));
        let heard = tip.and_then(|tip| tip.state.as_ref().ok()?.as_ref()?.decisions_at()).map_or(0, words_at);
        let filed = self.filed(words);
        let at_start: BTreeSet<_> = self.filed(heard).into_iter().map(|file| (file.path, file.blob)).collect();
        Input {
            now: look(),
            id: id(),
            me: Writer {
                instance: instance(),
                version: "0.1.0".to_owned(),
                cluster: "home".parse().unwrap(),
                cluster_uid: clusters.uid().to_owned(),
                epoch: 1,
            },
            desired: wanted.map_or_else(|| Desired::Unreadable(away()), |rollout| Desired::Wanted(rollout.clone())),
            main: commit(main.into()),
            recorded: tip.map_or_else(|| RecordedState::Unreadable(away()), crate::exhaustive::branch::Tip::recorded),
            sets,
            past: BTreeMap::new(),
            decisions: Decisions {
                tip: (words > 0).then(|| commit(words)),
                filed: Arc::new(filed),
                at_start: Some(Arc::new(at_start)),
                requests: BTreeMap::new(),
                unreadable: None,
            },
            proposals: BTreeMap::new(),
            policy: PolicyView { max_deletions: 5, ..PolicyView::default() },
            brake: Ok(sight.brake.then_some(BrakeWord::Revert)),
            live: Live::Seen(clusters.get(sight.cluster).live.clone()),
            trees: Arc::default(),
            evidence: Arc::default(),
            gaps: Vec::new(),
            git,
        }
    }

    /// The decisions branch where these runs, a bit for each, are approved.
    fn filed(&self, words: u64) -> Vec<DecisionFile> {
        let approved = self.runs.iter().enumerate().filter(|(place, _)| words & 1 << place != 0);
        let file = |(_, run): (usize, &RunId)| {
            let action = DecisionAction::Approve { through: GATED.parse().unwrap() };
            let decision = Decision { rollout: id(), run: run.clone(), action, reason: None };
            let (path, text) = decision::print(&decision, None);
            let blob = oid::blob(text.as_bytes());
            let by = "ana <ana@example.org>".to_owned();
            DecisionFile { path, blob, by, brought: None, merged: None, decision: Ok(decision) }
        };
        approved.map(file).collect()
    }
}

/// A commit that stands for a small number.
fn commit(number: u64) -> CommitId {
    format!("{number:040x}").parse().unwrap()
}

fn words_at(commit: &CommitId) -> u64 {
    u64::from_str_radix(commit.as_str(), 16).unwrap()
}

/// What the provider of metrics says of those moments.
fn measured(range: &Range, bad: bool) -> Reading<Samples> {
    let value = if bad { 1.0 } else { 0.0 };
    let mut samples = BTreeMap::new();
    let mut at = range.from.max(start());
    while at <= range.until {
        samples.insert(at, value);
        at += range.interval.delta();
    }
    Reading::Said(samples)
}
