//! A plan in the making: the record as it will be, and what was found on the way.

use super::action::{Action, Ask, Class, Proposal};
use super::context::{Context, Stable};
use super::converge::{self, Converged, Drift, Spare, StableFirst};
use super::deletions::Going;
use super::evidence::{Need, ReviewQuery};
use super::exposure;
use super::input::{Desired, Input};
use super::procedure::Roles;
use super::report::{ANSWERS, Reason, Wait, news};
use super::unread;
use crate::analysis::call::About;
use crate::analysis::judge::Inquiry;
use crate::manifest::desired::{Plan, Rollout, Set};
use crate::manifest::ids::{CommitId, Percent, SetId, StepName};
use crate::manifest::object::Object;
use crate::record::posture::{Naming, Posture, Split, Units};
use crate::record::state::{
    ClusterState, Condition, Consumed, Deletions, Owned, Phase, RoleName, RolloutState, Run, Time,
};
use crate::workload::kinds::shared;
use crate::workload::layouts;
use crate::workload::live::LiveState;
use crate::workload::lookup::Lookup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the next commit says of a rollout.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordChange {
    /// Nothing new.
    Keep,
    /// This.
    Write {
        /// The record.
        state: Box<RolloutState>,
        /// The plan of its open run.
        plan: Option<Arc<Plan>>,
        /// A set that it names and no branch holds yet: what was live.
        adopted: Option<Arc<Set>>,
        /// What happened, for the commit's subject.
        what: String,
    },
    /// It ends.
    Remove {
        /// Why.
        what: String,
    },
}

/// What one rollout shall do next.
#[derive(Debug, Clone)]
pub struct RolloutPlan {
    /// What only lowers what the new version reaches: runs at once.
    pub retreats: Vec<Action>,
    /// What Git has to say before anything else is done.
    pub record: RecordChange,
    /// What the record, once pushed, allows.
    pub actions: Vec<Action>,
    /// What is asked of people.
    pub proposals: Vec<Proposal>,
    /// Branches of ours that ask for nothing any more, with the head that was seen.
    pub void: Vec<(String, CommitId)>,
    /// What it waits on; empty when it is settled.
    pub waits: Vec<Wait>,
    /// The dry runs that it wants answered.
    pub needs: Vec<Need>,
    /// What it wants looked up.
    pub lookups: Vec<Lookup>,
    /// What its checks want to know.
    pub questions: Vec<Inquiry>,
    /// The decisions that it wants proven.
    pub review_queries: Vec<ReviewQuery>,
    /// When it wants to be looked at again, if nothing happens before.
    pub wake_at: Option<Time>,
}

/// A plan in the making.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Everything observed.
    pub input: &'a Input,
    /// What is there.
    pub live: &'a LiveState,
    /// The record as it will be.
    pub state: RolloutState,
    /// The record as it is.
    before: Option<RolloutState>,
    /// The plan of the open run.
    pub plan: Option<Arc<Plan>>,
    /// What the objects of both roles are called: as recorded, or as main wants it where nothing is recorded yet.
    pub naming: Naming,
    /// What happened, for the commit's subject.
    what: Vec<String>,
    /// Nothing of the rollout is left: its record ends, for this reason.
    pub removed: Option<String>,
    /// A person's decision that takes the run back.
    pub aborted: Option<String>,
    /// What was live and becomes the stable version.
    pub adopted: Option<Arc<Set>>,
    /// What is to go at rest.
    pub going: Going,
    /// The Job before the next step, where it is to be made.
    pub job: Option<Object>,
    /// What waits for nothing.
    pub retreats: Vec<Action>,
    /// What is asked of people.
    pub proposals: Vec<Proposal>,
    /// Branches that ask for nothing any more.
    pub void: Vec<(String, CommitId)>,
    /// What it waits on.
    pub waits: Vec<Wait>,
    /// The dry runs that it wants answered.
    pub needs: Vec<Need>,
    /// What it wants looked up.
    pub lookups: Vec<Lookup>,
    /// What its checks want to know.
    pub questions: Vec<Inquiry>,
    /// The decisions that it wants proven.
    pub review_queries: Vec<ReviewQuery>,
    /// Decisions that a request asks for whose proof is not known yet, by the step that it is about, with what is waited for.
    pub undecided: BTreeMap<StepName, Wait>,
    /// What of the kinds that it needs cannot be read: nothing is done then but what lowers.
    pub unread: Option<Wait>,
    /// The posture that live was found to meet as it is.
    met: Option<Posture>,
    wake_at: Option<Time>,
    manager: String,
    owner: String,
}

impl<'a> Draft<'a> {
    /// A plan that starts from this record.
    #[must_use]
    pub fn new(
        input: &'a Input,
        live: &'a LiveState,
        before: Option<RolloutState>,
        state: RolloutState,
        plan: Option<Arc<Plan>>,
    ) -> Self {
        let recorded = state.clusters.get(&input.me.cluster).map(|cluster| cluster.posture.naming.clone());
        Self {
            input,
            live,
            naming: recorded.unwrap_or_default(),
            state,
            before,
            plan,
            what: Vec::new(),
            removed: None,
            aborted: None,
            adopted: None,
            going: Going::default(),
            job: None,
            retreats: Vec::new(),
            proposals: Vec::new(),
            void: Vec::new(),
            waits: Vec::new(),
            needs: Vec::new(),
            lookups: Vec::new(),
            questions: Vec::new(),
            review_queries: Vec::new(),
            undecided: BTreeMap::new(),
            unread: unread::unread(input, live),
            met: None,
            wake_at: None,
            manager: input.me.instance.in_cluster(),
            owner: input.me.instance.owner_of(&input.id),
        }
    }

    /// The moment that everything is judged at.
    #[must_use]
    pub fn now(&self) -> Time {
        self.input.now
    }

    /// Names what the next commit is about.
    pub fn note(&mut self, what: impl Into<String>) {
        self.what.push(what.into());
    }

    /// A person's decision counts, once.
    pub fn count(&mut self, consumed: Consumed) {
        self.note(format!("{} by {}", consumed.action, consumed.by));
        self.state.consumed.push(consumed);
    }

    /// Asks to be looked at again then.
    pub fn wake(&mut self, at: Time) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// When it wants to be looked at again: also when something that it waits on ends by itself.
    #[must_use]
    pub fn wake_at(&self) -> Option<Time> {
        let ends = self.waits.iter().filter_map(|wait| wait.until).filter(|at| *at > self.now());
        ends.chain(self.wake_at).min()
    }

    /// Changes the phase.
    pub fn enter(&mut self, phase: Phase, what: impl Into<String>) {
        debug_assert!(self.state.phase.may_become(&phase), "{:?} → {phase:?}", self.state.phase);
        self.state.phase = phase;
        self.note(what);
        // The next step is looked at as soon as this one is recorded.
        self.wake(self.now());
    }

    /// The rollout left main. Where stable's objects are copies, what the manifests say is brought back first.
    pub fn leave(&mut self, what: &str) {
        if let (Some(posture), Naming::Primary(names)) = (self.posture().cloned(), &self.naming) {
            let naming = Naming::Leaving(names.clone());
            self.allow(Posture { stable: posture.stable, candidate: None, split: Split::stable(), naming });
        }
        self.state.deletions = Deletions::default();
        self.enter(Phase::Terminating { since: self.now() }, what);
    }

    /// What main wants, if it can be used.
    #[must_use]
    pub fn wanted(&self) -> Option<&'a Arc<Rollout>> {
        match &self.input.desired {
            Desired::Wanted(rollout) => Some(rollout),
            Desired::Lacking(..) | Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
        }
    }

    /// What the record lets this cluster be.
    #[must_use]
    pub fn posture(&self) -> Option<&Posture> {
        self.state.clusters.get(&self.input.me.cluster).map(|c| &c.posture)
    }

    /// Sets what the record lets this cluster be.
    pub fn allow(&mut self, posture: Posture) {
        self.naming = posture.naming.clone();
        let uid = self.live.cluster_uid.clone();
        let inventory =
            self.state.clusters.get(&self.input.me.cluster).map(|c| c.inventory.clone()).unwrap_or_default();
        self.state.clusters.insert(self.input.me.cluster.clone(), ClusterState { uid, posture, inventory });
    }

    /// The roles of the open run.
    #[must_use]
    pub fn roles(&self, run: &Run) -> Roles {
        let baseline = run.baseline.get(&self.input.me.cluster).copied().unwrap_or(0);
        let naming = self.plan.as_ref().map_or_else(|| self.naming.clone(), |plan| self.naming.in_run(plan));
        let units = self.posture().map(|posture| posture.split.units.clone()).unwrap_or_default();
        Roles { units, ..Roles::of(run, self.state.promoted.as_ref(), baseline, naming) }
    }

    /// What a webhook is asked about.
    #[must_use]
    pub fn about(&self, run: &Run, step: &StepName) -> About {
        let rollout = self.input.id.clone();
        About { rollout, run: run.id.clone(), step: step.clone(), revision: run.revision.clone() }
    }

    /// The plan that is in force: the run's, else main's.
    #[must_use]
    pub fn plan_in_force(&self) -> Option<Arc<Plan>> {
        if self.state.run.is_some() { self.plan.clone() } else { self.wanted().map(|r| Arc::new(r.plan.clone())) }
    }

    /// Looks at the rollout with a plan.
    #[must_use]
    pub fn context<'b>(&'b self, plan: &'b Plan, mark: Option<&'b str>, fence: Option<u64>) -> Context<'b> {
        let cluster = self.state.clusters.get(&self.input.me.cluster);
        let run = self.state.run.as_ref();
        let stable_set = cluster.map(|c| &c.posture.stable.set);
        let overwritten = run.is_some_and(|r| stable_set == Some(&r.to));
        let base = run.map(|r| &r.from).or(stable_set).unwrap_or_else(|| fallback_set(self));
        let began = run.and_then(|r| r.baseline.get(&self.input.me.cluster).copied()).unwrap_or(0);
        let stable = self.naming.workload(RoleName::Stable, &plan.target.name);
        let stable = self.live.find(plan.target.kind.kind(), &self.input.id.namespace, &stable);
        let weight = cluster.map_or(Percent::ZERO, |cluster| cluster.posture.split.weight);
        Context {
            input: self.input,
            plan,
            naming: &self.naming,
            live: self.live,
            cluster: &self.input.me.cluster,
            run: run.map(|r| &r.id),
            base,
            directly: self.state.directly(base),
            baseline: exposure::counted(plan, stable, weight, began),
            stable: if overwritten { Stable::Overwritten } else { Stable::Untouched },
            manager: &self.manager,
            owner: &self.owner,
            seq: self.next_seq(),
            read: self.before.as_ref().map_or(0, |before| before.seq),
            mark,
            fence,
            since: self.began(),
            inventory: cluster.map(|c| c.inventory.as_slice()).unwrap_or_default(),
            units: cluster.map_or(&NO_UNITS, |cluster| &cluster.posture.split.units),
            deletions: &self.state.deletions,
            version: run.map(|r| &r.to).or(self.state.promoted.as_ref().map(|promoted| &promoted.set)),
        }
    }

    /// When the open run, or first sight, was recorded to begin: answers from before are of something else. A clock that was ahead
    /// can have recorded it: then each answer counts, as none would before that moment comes, and what was answered is asked on and on.
    fn began(&self) -> Time {
        let began = match (&self.state.run, self.before.as_ref().map(|before| &before.phase)) {
            (Some(run), _) => run.started,
            (None, Some(Phase::Initializing(clock))) => clock.entered,
            (None, _) => Time::MIN,
        };
        if began > self.now() { Time::MIN } else { began }
    }

    /// How far live is from a posture.
    #[must_use]
    pub fn converge(&self, plan: &Plan, posture: &Posture, how: Manner<'_>) -> Converged {
        let context = self.context(plan, how.mark, how.fence);
        converge::converge(&context, posture, how).unwrap_or_else(|error| Converged {
            waits: vec![Wait::new(Reason::RecordUnreadable, error.to_string())],
            ..Converged::default()
        })
    }

    /// Takes note of whether live meets a posture, as [`Self::converge`] found with the plan and in the manner of the recorded phase.
    pub fn note_met(&mut self, posture: &Posture, converged: &Converged) {
        self.met = (converged.reached && converged.actions.is_empty()).then(|| posture.clone());
    }

    /// Whether live was found to meet this posture, and the record stays as it was then: nothing is due toward it.
    #[must_use]
    pub fn is_met(&self, posture: &Posture) -> bool {
        self.met.as_ref() == Some(posture) && !self.changes()
    }

    /// The sequence number that this plan's writes rely on.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.state.seq + u64::from(self.changes())
    }

    fn changes(&self) -> bool {
        self.before.as_ref() != Some(&self.state)
    }

    /// Lists in the record what is ours in the cluster now: what carries our mark, and was listed before or has a name
    /// that one of the pinned sets gives. Marks alone are copied too easily.
    pub fn take_inventory(&mut self) {
        let Some(cluster) = self.state.clusters.get_mut(&self.input.me.cluster) else { return };
        let listed = |object: &Object| cluster.inventory.iter().any(|owned| owned.is(object));
        let made = |object: &Object| self.input.sets.values().any(|set| layouts::makes(set, object.reference()));
        let ours = self.live.objects.owned_by(&self.owner);
        let mut inventory: Vec<Owned> = ours
            .filter(|object| listed(object) || made(object))
            .filter_map(|o| {
                let uid = o.uid()?.to_owned();
                Some(Owned { reference: o.reference().clone(), uid, role: shared::role(o) })
            })
            .collect();
        // Whoever is not listed now is there still, as far as anybody knows.
        let hidden = |owned: &&Owned| unread::why(self.live, owned.reference.kind).is_some();
        let hidden = cluster.inventory.iter().filter(hidden);
        let hidden: Vec<Owned> = hidden.filter(|owned| !inventory.contains(owned)).cloned().collect();
        inventory.extend(hidden);
        inventory.sort();
        cluster.inventory = inventory;
    }

    /// Keeps those waits that people have to know of as conditions; `since` stays while a reason stays. What the API server
    /// said stays until it says something else: as long as an answer is awaited, or a write is `due`. So does what came of
    /// undoing a change on main, as long as that is tried, and everything while part of the cluster was not read yet.
    fn keep_conditions(&mut self, due: bool) {
        let mut conditions: Vec<Condition> = Vec::new();
        for wait in self.waits.iter().filter(|w| w.reason.is_lasting()) {
            let reason = wait.reason.as_str().to_owned();
            let old = self.state.conditions.iter().find(|c| c.reason == reason);
            if conditions.iter().any(|c| c.reason == reason) {
                continue;
            }
            let message: String = wait.message.chars().take(1_000).collect();
            let since = old.map_or(self.now(), |c| c.since);
            // When something is tried again is no end.
            let until =
                wait.until.filter(|_| matches!(wait.reason, Reason::Window | Reason::Freeze | Reason::Inconclusive));
            let (act, live) = (wait.act.clone(), wait.live.clone());
            conditions.push(Condition { reason, message, since, until, act, live });
        }
        let awaited = due || !self.needs.is_empty() || self.waits.iter().any(|wait| wait.reason == Reason::Evidence);
        let unread = super::tracked::is_unread(self.input, &self.waits);
        let undoes = self.proposals.iter().any(|proposal| matches!(proposal.ask, Ask::Revert { .. }));
        let answers = self.state.conditions.iter().filter(|c| {
            unread
                || awaited && ANSWERS.iter().any(|r| r.as_str() == c.reason)
                || undoes && c.reason == Reason::RevertConflict.as_str()
        });
        let kept: Vec<_> = answers.filter(|old| conditions.iter().all(|c| c.reason != old.reason)).cloned().collect();
        conditions.extend(kept);
        conditions.sort_by(|a, b| a.reason.cmp(&b.reason));
        if !conditions.iter().map(news).eq(self.state.conditions.iter().map(news)) {
            let gone = self.state.conditions.iter().filter(|old| conditions.iter().all(|c| c.reason != old.reason));
            let mut words: Vec<String> = gone.map(|c| format!("no longer {}", c.reason)).collect();
            words.extend(conditions.iter().map(|c| c.reason.clone()));
            if self.what.is_empty() {
                self.what.extend(words);
            }
            self.state.conditions = conditions;
        }
    }

    /// The finished plan. `actions` gets the record that they rely on.
    #[must_use]
    pub fn finish(mut self, actions: impl Fn(&Self) -> Vec<Action>) -> RolloutPlan {
        let wake_at = self.wake_at();
        let told = self.state.conditions.iter().any(|c| ANSWERS.iter().any(|reason| reason.as_str() == c.reason));
        let due = told && !actions(&self).is_empty();
        self.keep_conditions(due);
        let mut record = RecordChange::Keep;
        if self.changes() {
            self.take_inventory();
        }
        let actions = actions(&self);
        if let Some(what) = self.removed {
            record = RecordChange::Remove { what };
        } else if self.changes() {
            self.state.seq += 1;
            self.state.writer = self.input.me.clone();
            self.state.source.commit = self.input.main.clone();
            if let Some(wanted) = self.wanted() {
                self.state.source.path = wanted.path.clone();
            }
            let what = if self.what.is_empty() { "noted".to_owned() } else { self.what.join(", ") };
            record = RecordChange::Write { state: Box::new(self.state), plan: self.plan, adopted: self.adopted, what };
        }
        RolloutPlan {
            retreats: self.retreats,
            record,
            actions,
            proposals: self.proposals,
            void: self.void,
            waits: self.waits,
            needs: self.needs,
            lookups: self.lookups,
            questions: self.questions,
            review_queries: self.review_queries,
            wake_at,
        }
    }
}

/// How a posture is to be met.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// What a hand's changes are met with.
    pub drift: Drift,
    /// Whether stable has to be ready first.
    pub stable_first: StableFirst,
    /// What becomes of what the posture has no place for.
    pub spare: Spare,
    /// The mark that objects carry.
    pub mark: Option<&'a str>,
    /// The oldest record that objects may have been written under.
    pub fence: Option<u64>,
}

impl RolloutPlan {
    /// All that goes back, and so waits for nothing.
    pub fn going_back(&self) -> impl Iterator<Item = &Action> {
        let lowered = self.actions.iter().filter(|action| action.class == Class::Retreat);
        self.retreats.iter().chain(lowered)
    }

    /// All that needs the record's leave.
    pub fn going_forward(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|action| action.class != Class::Retreat)
    }
}

impl Manner<'_> {
    /// At rest.
    pub const AT_REST: Self =
        Self { drift: Drift::Restore, stable_first: StableFirst::No, spare: Spare::Goes, mark: None, fence: None };
}

/// Where the record lets nobody in.
static NO_UNITS: Units = Units { count: 0, done: 0, batch: BTreeSet::new() };

/// The base set of a rollout that has neither run nor posture: what main wants.
fn fallback_set<'b>(draft: &'b Draft<'_>) -> &'b SetId {
    static NONE: std::sync::LazyLock<SetId> =
        std::sync::LazyLock::new(|| "0".repeat(40).parse().expect("40 zeros are a set id because they are hex digits"));
    draft.wanted().map_or(&NONE, |rollout| &rollout.set.id)
}
