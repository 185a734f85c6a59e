//! A small world for planner tests: one namespace, controllers that answer at once, a state branch that is a value.

use super::super::action::{Action, Ask, Class, Proposal};
use super::super::draft::{RecordChange, RolloutPlan};
use super::super::evidence::{Answer, Evidence};
use super::super::input::{Decisions, Desired, Git, HeadContent, Input, Live, PolicyView, RecordedState};
use super::super::planner;
pub(super) use super::behaviour::{Gateway, Metric, Pods};
pub(super) use super::effect::Effect;
use super::manifests::{CANARY, QUICK, hex, id, object, plan, set};
use super::proven::Reviewed;
use super::secrets::Held;
use crate::analysis::call::WebhookVerdict;
use crate::analysis::reading::Reading;
use crate::gate::BrakeWord;
use crate::gate::decisions::DecisionFile;
use crate::gate::proof::ReviewEvidence;
use crate::manifest::decision::{Decision, DecisionAction};
use crate::manifest::desired::{Plan, Rollout, Set, Suspend};
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, RunId, SetId};
use crate::manifest::object::{Kind, OWNER, Object, RETREATED};
use crate::plan::unread;
use crate::record::branches::{Asks, Head};
use crate::record::posture::PostureDigest;
use crate::record::state::{RolloutState, Time, Writer};
use crate::workload::live::{LiveState, WriteOutcome};
use crate::workload::tree::Trees;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const MANAGER: &str = "tidegate-prod";

/// A label of the target that changes no pods.
pub(super) const LABEL: &str = "team.example.test/name";

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: Time,
    pub(super) desired: Desired,
    pub(super) record: Option<RolloutState>,
    /// The state branch cannot be read.
    pub(super) unreadable: bool,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) sets: BTreeMap<SetId, Arc<Set>>,
    pub(super) live: LiveState,
    pub(super) files: Vec<DecisionFile>,
    pub(super) at_start: Option<BTreeSet<(RepoPath, BlobId)>>,
    pub(super) muted: Option<String>,
    pub(super) proposals: BTreeMap<String, CommitId>,
    /// What those of them would bring that are not as they were made.
    pub(super) contents: BTreeMap<CommitId, HeadContent>,
    pub(super) policy: PolicyView,
    /// What is known of the proxies that teams share.
    pub(super) trees: Arc<Trees>,
    pub(super) brake: Result<Option<BrakeWord>, String>,
    pub(super) evidence: Evidence,
    pub(super) gaps: Vec<(Time, Time)>,
    /// Kinds that cannot be read, and of which nothing ever was.
    pub(super) hidden: BTreeSet<Kind>,
    pub(super) git: Git,
    pub(super) behaviour: BTreeMap<String, Pods>,
    pub(super) refused_images: BTreeSet<String>,
    /// Values of [`LABEL`] that admission refuses.
    pub(super) refused_labels: BTreeSet<String>,
    pub(super) gateway: Gateway,
    /// Whether one ready pod has no endpoint yet.
    pub(super) lagging: bool,
    pub(super) metric: Metric,
    /// What the Git host tells of whoever approved.
    pub(super) host: Reviewed,
    /// What is there that nobody watches, `Secret tls`; an error if nobody may know.
    pub(super) unwatched: Result<BTreeMap<String, Held>, String>,
    /// What webhooks say that stand before steps.
    pub(super) webhook: Reading<WebhookVerdict>,
    pub(super) only_stable_stuck: bool,
    /// The Service that no endpoint is known of, whatever it selects.
    pub(super) lost_to: Option<String>,
    pub(super) outage: Option<WriteOutcome>,
    pub(super) epoch: u64,
    /// Pods take a turn of the controllers to become ready.
    pub(super) slow: bool,
    /// So many of the candidate's pods are not ready.
    pub(super) lost: i64,
    /// So many of stable's pods are not ready.
    pub(super) lost_stable: i64,
    pub(super) main: u32,
    pub(super) versions: u64,
    pub(super) log: Vec<String>,
    pub(super) weights: Vec<u8>,
}

impl World {
    pub(super) fn at_tenth() -> Self {
        let mut world = Self::new(CANARY, "1");
        world.settle();
        world.want(CANARY, set("2"));
        world.settle();
        world.approve("tenth");
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
        world
    }

    pub(super) fn at_shift() -> Self {
        let mut world = Self::at_tenth();
        world.pass(306);
        world.pass(306);
        world.approve("promotion");
        assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
        world
    }

    pub(super) fn at_return() -> Self {
        let mut world = Self::at_shift();
        world.pass(66);
        assert_eq!((world.phase().as_str(), world.weight()), ("Finalising(return)", 0));
        world
    }

    pub(super) fn failed() -> Self {
        let mut world = Self::new(QUICK, "1");
        world.settle();
        world.behave("app:2", Pods::Stuck);
        world.want(QUICK, set("2"));
        world.settle();
        world.pass(601);
        assert_eq!(world.phase(), "Failed");
        world
    }

    pub(super) fn behave(&mut self, image: &str, pods: Pods) {
        self.behaviour.insert(image.to_owned(), pods);
    }

    pub(super) fn record(&self) -> RolloutState {
        self.record.clone().expect("a record")
    }

    pub(super) fn gone(&mut self) {
        self.main += 1;
        self.desired = Desired::Gone;
    }

    pub(super) fn suspend(&mut self, suspend: Suspend) {
        if let Desired::Wanted(rollout) = &self.desired {
            self.desired = Desired::Wanted(Arc::new(Rollout { suspend, ..(**rollout).clone() }));
        }
    }

    pub(super) fn with_git(&mut self) {
        self.git = Git::Fresh;
    }

    /// Objects that are there before we are.
    pub(super) fn exists(&mut self, set: &Set) {
        for object in set.objects.values() {
            let mut object = object.clone();
            object.value_mut()["metadata"]["managedFields"] = json!([{"manager": "helm-free", "operation": "Update"}]);
            self.put(object);
        }
        self.controllers();
    }

    pub(super) fn exists_value(&mut self, value: Value) {
        self.put(object(value));
    }

    /// An action of a plan that was made earlier, carried out now.
    pub(super) fn try_late(&mut self, action: &Action) {
        self.write(action);
        self.check_promise();
    }

    pub(super) fn new(plan: &str, version: &str) -> Self {
        let mut world = Self {
            now: "2026-03-02T10:00:00Z".parse().expect("a time"),
            desired: Desired::Gone,
            record: None,
            unreadable: false,
            plan: None,
            sets: BTreeMap::new(),
            live: LiveState { cluster_uid: "cluster-1".to_owned(), ..LiveState::default() },
            files: Vec::new(),
            at_start: Some(BTreeSet::new()),
            muted: None,
            proposals: BTreeMap::new(),
            contents: BTreeMap::new(),
            policy: PolicyView { max_deletions: 5, ..PolicyView::default() },
            trees: Arc::default(),
            brake: Ok(None),
            evidence: Evidence::default(),
            gaps: Vec::new(),
            hidden: BTreeSet::new(),
            git: Git::Fresh,
            behaviour: BTreeMap::new(),
            refused_images: BTreeSet::new(),
            refused_labels: BTreeSet::new(),
            gateway: Gateway::On,
            lagging: false,
            metric: Metric::Value(0.0),
            host: Reviewed::default(),
            unwatched: Ok(BTreeMap::new()),
            webhook: Reading::Said(WebhookVerdict::Good),
            only_stable_stuck: false,
            lost_to: None,
            outage: None,
            epoch: 1,
            slow: false,
            lost: 0,
            lost_stable: 0,
            main: 0,
            versions: 100,
            log: Vec::new(),
            weights: Vec::new(),
        };
        world.want(plan, set(version));
        world
    }

    /// Main wants this set.
    pub(super) fn want(&mut self, yaml: &str, set: Arc<Set>) {
        self.main += 1;
        self.sets.insert(set.id.clone(), set.clone());
        self.desired = Desired::Wanted(Arc::new(Rollout {
            id: id(),
            path: "teams/shop/podinfo/rollout.yaml".parse().expect("a path"),
            blob: "b".repeat(40).parse().expect("a blob"),
            clusters: ["home".parse().expect("a cluster")].into(),
            elsewhere: BTreeMap::new(),
            plan: plan(yaml),
            rollback_window: Span::from_secs(86_400),
            suspend: Suspend::No,
            set,
        }));
    }

    pub(super) fn input(&self) -> Input {
        Input {
            now: self.now,
            id: id(),
            me: Writer {
                instance: "prod".parse().expect("an instance"),
                version: "0.1.0".to_owned(),
                cluster: "home".parse().expect("a cluster"),
                cluster_uid: "cluster-1".to_owned(),
                epoch: self.epoch,
            },
            desired: self.desired.clone(),
            main: hex(&self.main.to_string(), 20).parse().expect("a commit"),
            recorded: match self.record.clone() {
                _ if self.unreadable => RecordedState::Unreadable("the branch was put back".to_owned()),
                None => RecordedState::None,
                Some(record) => RecordedState::State(Box::new(record), self.plan.clone()),
            },
            sets: self.sets.clone(),
            past: self.sets.clone(),
            decisions: Decisions {
                tip: None,
                filed: Arc::new(self.files.clone()),
                at_start: self.at_start.clone().map(Arc::new),
                requests: self.brought(),
                unreadable: self.muted.clone(),
            },
            proposals: self.branches(),
            policy: self.policy.clone(),
            brake: self.brake.clone(),
            live: Live::Seen(Arc::new(self.shown().attentive())),
            trees: Arc::clone(&self.trees),
            evidence: Arc::new(self.evidence.clone()),
            gaps: self.gaps.clone(),
            git: self.git.clone(),
        }
        .tracking()
    }

    /// What can be read of the cluster.
    fn shown(&self) -> LiveState {
        let mut shown = self.live.clone();
        for &kind in &self.hidden {
            shown.objects.remove_kind(kind);
            shown.closed.insert(kind, "forbidden".to_owned());
        }
        shown
    }

    pub(super) fn plan_now(&self) -> RolloutPlan {
        let input = self.input();
        let plan = planner::plan(&input);
        if let Live::Seen(live) = &input.live {
            let (asked, needs) = (live.objects.asked(), unread::needs(&input));
            let beyond: Vec<_> = asked.difference(&needs).filter(|kind| **kind != Kind::NetworkPolicy).collect();
            assert!(beyond.is_empty(), "asked for {beyond:?}, which it does not need: {:?}", self.log);
        }
        plan
    }

    /// One tick, in the order of the protocol; says whether anything happened.
    pub(super) fn tick(&mut self) -> bool {
        self.tick_until(usize::MAX)
    }

    /// One tick that ends after so many effects: a crash.
    pub(super) fn tick_until(&mut self, effects: usize) -> bool {
        self.controllers();
        let mut due = self.effects(self.plan_now());
        due.truncate(effects);
        let busy = !due.is_empty();
        let mut proof = self.proof();
        for effect in due {
            let before = self.log.len();
            self.carry_out(&effect, &mut proof);
            // One copy alone plans only what its own record allows.
            assert!(!self.log[before..].iter().any(|line| line.starts_with("not recorded")), "{:?}", self.log.last());
        }
        busy
    }

    /// All that a plan does to the outside, in the order of the protocol.
    pub(super) fn effects(&self, plan: RolloutPlan) -> Vec<Effect> {
        let base = self.record.as_ref().map(|r| r.seq);
        let RolloutPlan {
            retreats,
            record,
            actions,
            proposals,
            void,
            waits: _,
            needs,
            lookups,
            questions,
            review_queries,
            wake_at: _,
        } = plan;
        let (lowered, actions): (Vec<_>, Vec<_>) = actions.into_iter().partition(|a| a.class == Class::Retreat);
        assert!(retreats.iter().all(|a| a.class == Class::Retreat), "{retreats:?}");
        let mut effects: Vec<Effect> = needs.into_iter().map(|need| Effect::Ask(Box::new(need))).collect();
        effects.extend(lookups.into_iter().map(Effect::Look));
        effects.extend(questions.into_iter().map(Effect::Measure));
        effects.extend(review_queries.into_iter().map(Effect::ReviewQuery));
        effects.extend(retreats.into_iter().chain(lowered).map(|a| Effect::Act(Box::new(a))));
        if self.git != Git::Fresh {
            return effects;
        }
        if record != RecordChange::Keep {
            effects.push(Effect::Record { base, change: Box::new(record) });
        }
        effects.extend(actions.into_iter().map(|a| Effect::Act(Box::new(a))));
        effects.extend(proposals.into_iter().map(Effect::Propose));
        effects.extend(void.into_iter().map(|(name, _)| Effect::Withdraw(name)));
        effects
    }

    /// What the record allows now.
    pub(super) fn proof(&self) -> Option<PostureDigest> {
        self.record.as_ref().and_then(|r| r.clusters.values().next()).map(|c| c.posture.digest())
    }

    /// Carries out one effect with what its tick knows to be recorded; says whether its tick may go on.
    pub(super) fn carry_out(&mut self, effect: &Effect, proof: &mut Option<PostureDigest>) -> bool {
        let goes_on = match effect {
            Effect::Ask(need) => {
                let outcome = self.dry_run(&need.object);
                self.evidence.dry_runs.insert(need.question.clone(), Answer { outcome, at: self.now });
                true
            }
            Effect::Look(lookup) => {
                self.look(lookup);
                true
            }
            Effect::Measure(question) => {
                self.evidence.readings.keep(self.metric.hear(question, &self.webhook), self.now);
                true
            }
            Effect::ReviewQuery(review_query) => {
                let evidence = ReviewEvidence { evidence: self.host.tell(review_query), at: self.now };
                self.evidence.proofs.insert(review_query.asked.clone(), evidence);
                true
            }
            Effect::Record { base, change } => {
                let won = self.git == Git::Fresh && self.record.as_ref().map(|r| r.seq) == *base;
                if won {
                    self.push(change);
                    *proof = self.proof();
                }
                won
            }
            Effect::Act(action)
                if action.class != Class::Retreat && !(action.posture == *proof && self.may_go(action)) =>
            {
                self.log.push(format!("not recorded: {}", action.why));
                false
            }
            Effect::Act(action) => self.write(action),
            Effect::Propose(proposal) => {
                self.propose(proposal);
                true
            }
            Effect::Withdraw(name) => {
                self.proposals.remove(name);
                true
            }
        };
        self.check_promise();
        goes_on
    }

    fn push(&mut self, change: &RecordChange) {
        match change {
            RecordChange::Keep => {}
            RecordChange::Write { state, plan, adopted, what } => {
                self.sets.extend(self.input().sets);
                self.sets.extend(adopted.iter().map(|set| (set.id.clone(), set.clone())));
                let before = self.record.as_ref().map_or("nothing", |r| r.phase.name());
                self.log.push(format!("{before} → {}: {what}", state.phase.name()));
                assert!(self.record.as_ref().is_none_or(|r| r.phase.may_become(&state.phase)), "{:?}", self.log);
                let started = state.run.as_ref().map(|r| &r.id)
                    != self.record.as_ref().and_then(|r| r.run.as_ref()).map(|r| &r.id);
                if started && state.run.is_some() {
                    self.at_start = Some(self.files.iter().map(|f| (f.path.clone(), f.blob.clone())).collect());
                }
                self.record = Some((**state).clone());
                self.plan = plan.clone();
            }
            RecordChange::Remove { what } => {
                self.log.push(format!("removed: {what}"));
                (self.record, self.plan) = (None, None);
            }
        }
    }

    fn propose(&mut self, proposal: &Proposal) {
        let asks = match &proposal.ask {
            Ask::Advance { through } => Asks::Advance(through.clone()),
            Ask::Revert { .. } => Asks::Revert,
            Ask::Delete { .. } => Asks::Delete,
        };
        let head = Head { rollout: proposal.rollout.clone(), run: proposal.run.clone(), asks };
        let name = head.branch(&"prod".parse().expect("an instance"));
        self.log.push(format!("proposes {name}"));
        if let Ask::Delete { .. } = proposal.ask {
            self.propose_deletion(name);
            return;
        }
        // Asked again, it is another commit.
        let again = self.record.iter().flat_map(|record| &record.consumed).filter(|word| word.void.is_some()).count();
        let commit = if again == 0 { "c".repeat(40) } else { hex(&again.to_string(), 20) };
        self.proposals.insert(name, commit.parse().expect("a commit"));
    }

    /// Ticks until nothing happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..60 {
            if !(self.tick() || self.slow && self.tick()) {
                self.controllers();
                let plan = self.plan_now();
                assert_eq!(plan.record, RecordChange::Keep, "the second plan is empty: {:?}", self.log);
                assert_eq!((plan.retreats, plan.actions), (vec![], vec![]), "the second plan is empty: {:?}", self.log);
                return;
            }
        }
        panic!("does not settle: {:#?}\n{:#?}", self.log, self.plan_now());
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
        self.settle();
    }

    pub(super) fn say(&mut self, action: DecisionAction) {
        let record = self.record.as_ref().expect("a record");
        let run = record.run.as_ref().map(|r| r.id.clone()).or(record.last_run.as_ref().map(|r| r.id.clone()));
        self.say_of(action, run.expect("a run"));
    }

    /// The word that ends the soak of the step on which the run stands.
    pub(super) fn soak_is_over(&self) -> DecisionAction {
        let position = self.record.as_ref().and_then(|record| record.phase.position());
        let step = position.map_or_else(|| "tenth".parse().expect("a step"), |position| position.step.clone());
        DecisionAction::Skip { step, through: crate::manifest::decision::Through::Step }
    }

    pub(super) fn say_of(&mut self, action: DecisionAction, run: RunId) {
        let n = self.files.len();
        self.files.push(DecisionFile {
            path: format!("shop/podinfo/{run}-{n}.yaml").parse().expect("a path"),
            blob: hex(&n.to_string(), 20).parse().expect("a blob"),
            by: "ana <ana@example.org>".to_owned(),
            brought: Some(hex(&format!("merge {n}"), 20).parse().expect("a commit")),
            merged: None,
            decision: Ok(Decision { rollout: id(), run, action, reason: None }),
        });
    }

    pub(super) fn approve(&mut self, through: &str) {
        self.say(DecisionAction::Approve { through: through.parse().expect("a step") });
        self.settle();
    }

    pub(super) fn phase(&self) -> String {
        let record = self.record.as_ref().expect("a record");
        match record.phase.position() {
            Some(position) => format!("{}({})", record.phase.name(), position.step),
            None => record.phase.name().to_owned(),
        }
    }

    pub(super) fn waits(&self) -> Vec<&'static str> {
        self.plan_now().waits.iter().map(|w| w.reason.as_str()).collect()
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.live.find(kind, &id().namespace, &name.parse().expect("a name"))
    }

    pub(super) fn image(&self, name: &str) -> Option<&str> {
        self.get(Kind::Deployment, name)?.text("/spec/template/spec/containers/0/image")
    }

    pub(super) fn marked(&self) -> Vec<String> {
        let marked = self.live.objects.values().filter(|o| o.annotation(RETREATED).is_some());
        marked.map(|o| o.reference().to_string()).collect()
    }

    pub(super) fn owned(&self) -> usize {
        self.live.objects.values().filter(|o| o.annotation(OWNER).is_some()).count()
    }

    pub(super) fn without_git(&mut self) {
        self.git = Git::Away("connection refused".to_owned());
    }
}
