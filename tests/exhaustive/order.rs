//! What may happen next: the steps of a controller, cut at each side effect, and what goes wrong around them.
//!
//! The order of a tick is that of `reconcile::tick`, told again in [`after_retreats`] to [`advancing`] and in the arms of
//! [`Worlds::steps`]: plan with what is known of Git → retreats → look whether Git still says so → push → advances. What the
//! tick asks on its way is asked here of the same functions: what goes back, what goes forward, what a retreat that was not
//! done makes void, what the record allows, which rules hold.
//!
//! Two steps are one where nothing between them could be told from something before or after both: the look that follows
//! a plan without retreats, or the last retreat, is done at once (the most dangerous moment: later it may only find that Git
//! has moved on). What a controller may do meanwhile, while Git keeps it waiting, is going back: the other one does it.

use crate::exhaustive::branch::Branch;
use crate::exhaustive::cluster::{Clusters, Mishap, Wrote, bit};
use crate::exhaustive::faults::{Faults, Kind};
use crate::exhaustive::manifests::{route, versions};
use crate::exhaustive::plans::{Due, Known, Plan, Plans, Sight};
use crate::exhaustive::state::{At, Controller, Event, State};
use std::collections::HashMap;
use tidegate::plan::draft::RecordChange;
use tidegate::rules::{Rule, holds};
use tidegate::workload::live::Expects;

/// All that was met, and what follows from it.
pub(crate) struct Worlds {
    pub(crate) clusters: Clusters,
    pub(crate) branch: Branch,
    pub(crate) plans: Plans,
    faults: Faults,
    written: HashMap<Asked, Came>,
    pushed: HashMap<(u32, u32, u32), u32>,
}

/// A write: the cluster, the action, whether its object is as it was planned for, whether the record allows it if it has to.
type Asked = (u32, u32, bool, Option<bool>, Mishap);
/// What came of it: the cluster then, and the bits of the objects that were changed.
type Came = (Wrote, u32, u8);

/// What may happen next, and what comes of it.
pub(crate) type Next = Vec<(Event, State)>;

/// Where a tick goes on after its retreats: once it has seen that Git still says what was planned from.
fn after_retreats(state: &State, c: Controller, plan: &Plan) -> Controller {
    let Known::View { fresh: true, .. } = c.known else { return Controller::idle(c.known) };
    let known = asked(state, c.known);
    if !plan.wants_git() {
        Controller::idle(c.known)
    } else if known == c.known || !holds(Rule::LiveFirst) {
        committing(c, plan)
    } else {
        Controller::idle(known)
    }
}

/// Where it goes on once Git was seen to say what was planned from.
fn committing(c: Controller, plan: &Plan) -> Controller {
    let at_once = !holds(Rule::RecordFirst) && !plan.advances.is_empty();
    if at_once { Controller { at: At::ActFirst, next: 0, ..c } } else { recording(c, plan) }
}

fn recording(c: Controller, plan: &Plan) -> Controller {
    match (&plan.change, c.known) {
        (RecordChange::Keep, Known::View { tip, .. }) => advancing(c, plan, tip),
        _ => Controller { at: At::Push, next: 0, proof: 0, ..c },
    }
}

/// Where it goes on once `tip` is known to be what the branch says.
fn advancing(c: Controller, plan: &Plan, tip: u32) -> Controller {
    if plan.advances.is_empty() {
        return Controller::idle(c.known);
    }
    Controller { at: At::Advance, next: 0, proof: tip, ..c }
}

/// What was learned of Git by asking it.
fn asked(state: &State, known: Known) -> Known {
    match (state.git, known) {
        (true, _) => state.said(),
        (false, Known::View { tip, main, words, .. }) => Known::View { tip, main, words, fresh: false },
        (false, Known::Nothing | Known::Blind) => Known::Blind,
    }
}

impl Worlds {
    /// Nothing was met yet; only such faults happen.
    pub(crate) fn new(faults: Faults) -> Self {
        let plans = Plans::new();
        let branch = Branch::new(&crate::exhaustive::manifests::rollouts());
        Self { clusters: Clusters::new(), branch, plans, faults, written: HashMap::new(), pushed: HashMap::new() }
    }

    /// Whether a fault of that kind may happen now.
    fn may(&self, state: &State, kind: Kind) -> bool {
        state.faults > 0 && self.faults.has(kind)
    }

    /// What that controller may do next. Where nothing goes wrong there is at most one way on, but for looking at Git
    /// between two ticks, which comes last.
    pub(crate) fn steps(&mut self, state: &State, who: usize, next: &mut Next) {
        let c = state.controllers[who];
        let mut tell = |what, action, state| next.push((Event { who: Some(who), what, action }, state));
        let with = |c: Controller| {
            let mut state = *state;
            state.controllers[who] = c;
            state
        };
        match c.at {
            At::Idle | At::Lagging => {
                let begun = match (c.known, c.at) {
                    (Known::Nothing, _) => Controller::idle(c.known),
                    (_, At::Lagging) => self.begun(state, c, c.plan),
                    _ => self.begun(state, c, state.cluster),
                };
                let known = asked(state, c.known);
                let looked = Controller { known, ..c };
                if begun != c && begun != looked {
                    tell("reads the cluster and plans", None, with(begun));
                }
                if known != c.known {
                    tell("looks at Git", None, with(looked));
                }
            }
            At::Push => self.push(state, who, next),
            At::Retreat | At::ActFirst | At::Advance => self.write(state, who, next),
        }
    }

    /// A tick begins with what is known of Git and that cluster.
    fn begun(&mut self, state: &State, c: Controller, cluster: u32) -> Controller {
        let sight = Sight { cluster, known: c.known, bad: state.bad, brake: state.brake };
        let number = self.plans.plan(sight, &self.clusters, &self.branch);
        let plan = self.plans.get(number);
        let c = Controller { plan: number, next: 0, ..c };
        if plan.retreats.is_empty() { after_retreats(state, c, plan) } else { Controller { at: At::Retreat, ..c } }
    }

    fn push(&mut self, state: &State, who: usize, next: &mut Next) {
        let (c, before) = (state.controllers[who], state.tip);
        let mut tell = |what, tip, c: Controller, faults| {
            let mut state = State { tip, faults: state.faults - faults, ..*state };
            state.controllers[who] = c;
            let other = &mut state.controllers[1 - who];
            if other.at == At::Push && tip != before && holds(Rule::Swap) {
                // Its push can only be refused by now.
                *other = Controller::idle(other.known);
            }
            next.push((Event { who: Some(who), what, action: None }, state));
        };
        let Known::View { tip: planned, main, words, .. } = c.known else { unreachable!("it planned a record") };
        let away = Controller::idle(Known::View { tip: planned, main, words, fresh: false });
        if !state.git {
            tell("pushes: Git does not answer", state.tip, away, 0);
        } else if main != state.main || (planned != state.tip && holds(Rule::Swap)) {
            tell("pushes: the branch or main has moved", state.tip, Controller::idle(c.known), 0);
        } else {
            let tip = self.after_push(state.tip, planned, c.plan);
            let done = Controller { known: Known::View { tip, main, words, fresh: true }, ..c };
            let done = advancing(done, self.plans.get(c.plan), tip);
            tell("pushes", tip, done, 0);
            if self.may(state, Kind::LostPush) {
                tell("pushes, and the answer is lost", tip, away, 1);
            }
        }
    }

    fn after_push(&mut self, tip: u32, planned: u32, plan: u32) -> u32 {
        let (branch, plans) = (&mut self.branch, &self.plans);
        *self.pushed.entry((tip, planned, plan)).or_insert_with(|| branch.pushed(tip, planned, &plans.get(plan).change))
    }

    /// The same without what cannot be told from something simpler: who has nothing but writes before it that are stale for
    /// good begins a new tick, and so does who would only find that live was written under a newer record than it knows. Both
    /// are asked, not assumed: of the API server, and of live.
    pub(crate) fn tidied(&mut self, mut state: State) -> State {
        for who in 0..2 {
            let c = state.controllers[who];
            let simpler = match (c.at, c.known) {
                (At::Idle, Known::Nothing) => Controller::idle(asked(&state, c.known)),
                (At::Idle, Known::View { tip, .. })
                    if holds(Rule::Fence)
                        && state.git
                        && self.clusters.get(state.cluster).newest > self.branch.get(tip).seq() =>
                {
                    Controller::idle(state.said())
                }
                (At::Retreat | At::Advance, _) if c.moved != 0 => self.late(&state, c),
                _ => c,
            };
            state.controllers[who] = self.ahead(simpler);
        }
        state
    }

    /// The same without what no step of it will ask for again: what it has done of its plan, and what became of objects
    /// that are not, or no more, to be written as they were when it was made.
    fn ahead(&mut self, c: Controller) -> Controller {
        if !matches!(c.at, At::Retreat | At::Push | At::Advance) {
            return c;
        }
        let plan = self.plans.rest(c.plan, c.at, c.next);
        Controller { plan, next: 0, moved: c.moved & self.plans.get(plan).aims, ..c }
    }

    /// Where a controller stands whose next write is stale, and stays so whatever is written meanwhile.
    fn late(&mut self, state: &State, c: Controller) -> Controller {
        let plan = self.plans.get(c.plan);
        let list = if c.at == At::Retreat { &plan.retreats } else { &plan.advances };
        let number = list[usize::from(c.next)];
        let Due { action, bit, .. } = self.plans.due(number);
        if c.moved & bit == 0 || !matches!(action.verb.expects(), Expects::Version { .. }) {
            return c;
        }
        let proof = (c.at == At::Advance).then_some(c.proof);
        let wrote = self.wrote(state.cluster, number, c.moved, proof, Mishap::None);
        if wrote == (Wrote::Void, state.cluster, 0) { Controller::idle(c.known) } else { c }
    }

    /// The next of a plan's actions.
    fn write(&mut self, state: &State, who: usize, next: &mut Next) {
        let c = state.controllers[who];
        let plan = self.plans.get(c.plan);
        let list = if c.at == At::Retreat { &plan.retreats } else { &plan.advances };
        let (number, count, run) = (list[usize::from(c.next)], list.len(), plan.run);
        // Whoever is blind takes back whichever run is open.
        let open = self.branch.get(state.tip).run.as_ref().map(|(run, _)| run.clone());
        let run = run.or_else(|| open.map(|run| self.plans.run(&run)));
        let proof = match (c.at, c.known) {
            (At::ActFirst, Known::View { tip, .. }) => Some(self.after_push(tip, tip, c.plan)),
            (At::Retreat, _) => None,
            _ => Some(c.proof),
        };
        for mishap in [Mishap::None, Mishap::Before, Mishap::After] {
            if mishap != Mishap::None && !self.may(state, Kind::FailedWrite) {
                continue;
            }
            let (wrote, cluster, changed) = self.wrote(state.cluster, number, c.moved, proof, mishap);
            let plan = self.plans.get(c.plan);
            let mut after = State { cluster, faults: state.faults - u8::from(mishap != Mishap::None), ..*state };
            after.controllers[who] = went_on(&after, c, plan, wrote, usize::from(c.next) + 1 == count);
            for controller in after.controllers.iter_mut().filter(|c| c.at != At::Idle) {
                controller.moved |= changed;
            }
            let Due { back, bit: object, .. } = self.plans.due(number);
            if *back && *object == bit(&route()) && (wrote == Wrote::Done || changed != 0) {
                after.retreated |= run.map_or(0, |run| 1 << run);
            }
            let what = match (wrote, mishap) {
                (_, Mishap::After) => "writes, and the answer is lost",
                (Wrote::Done, _) => "writes",
                (Wrote::Void, _) => "writes, and that is stale or not recorded",
                (Wrote::Failed, _) => "writes, which fails",
            };
            next.push((Event { who: Some(who), what, action: Some(number) }, after));
        }
    }

    fn wrote(&mut self, cluster: u32, number: u32, moved: u8, proof: Option<u32>, mishap: Mishap) -> Came {
        let Due { action, bit, .. } = self.plans.due(number);
        let recorded = proof.map(|tip| self.branch.get(tip).proof());
        // Of the proof only that it allows the action matters, and of the cluster nothing to a request that never arrives.
        let allowed = recorded.as_ref().map(|proof| proof.allows(action));
        let fresh = moved & bit == 0 || mishap == Mishap::Before;
        let there = if mishap == Mishap::Before { 0 } else { cluster };
        let key = (there, number, fresh, allowed, mishap);
        if let Some(known) = self.written.get(&key) {
            return if mishap == Mishap::Before { (known.0, cluster, 0) } else { *known };
        }
        let result = self.clusters.write(there, action, fresh, recorded.as_ref(), mishap);
        self.written.insert(key, result);
        if mishap == Mishap::Before { (result.0, cluster, 0) } else { result }
    }

    /// What goes wrong, and what people do.
    pub(crate) fn fault_injection(&mut self, state: &State, next: &mut Next) {
        let mut tell = |who, what, state| next.push((Event { who, what, action: None }, state));
        if let Some((run, _)) = self.branch.get(state.tip).run.clone().filter(|_| self.branch.get(state.tip).waits()) {
            let words = state.words | 1 << self.plans.run(&run);
            if words != state.words {
                tell(None, "a person approves", State { words, ..*state });
            }
        }
        if state.faults == 0 {
            return;
        }
        let worse = State { faults: state.faults - 1, ..*state };
        for (who, c) in state.controllers.iter().enumerate() {
            let loses = c.at != At::Idle || (!state.git && matches!(c.known, Known::View { .. }));
            if loses && self.may(state, Kind::Crash) {
                let mut crashed = worse;
                crashed.controllers[who] = Controller::default();
                tell(Some(who), "crashes", crashed);
            }
            if c.at == At::Idle && c.known != Known::Nothing && self.may(state, Kind::Lag) {
                let mut lagging = worse;
                lagging.controllers[who] = Controller { at: At::Lagging, plan: state.cluster, ..*c };
                tell(Some(who), "reads the cluster, and is told of no later change", lagging);
            }
        }
        if self.may(state, Kind::Checks) {
            let what = if state.bad { "the checks are good again" } else { "the checks are bad" };
            tell(None, what, State { bad: !state.bad, ..worse });
        }
        if self.may(state, Kind::Git) {
            let what = if state.git { "Git is away" } else { "Git is back" };
            tell(None, what, State { git: !state.git, ..worse });
        }
        if self.may(state, Kind::Brake) {
            let what = if state.brake { "the brake is lifted" } else { "the brake says revert" };
            tell(None, what, State { brake: !state.brake, ..worse });
        }
        if self.may(state, Kind::Main) {
            for main in (1..=u8::try_from(versions()).unwrap()).filter(|main| *main != state.main) {
                let what = ["main wants v1", "main wants v2", "main wants v3"][usize::from(main) - 1];
                tell(None, what, State { main, ..worse });
            }
        }
    }
}

/// Where a tick goes on after a write.
fn went_on(state: &State, c: Controller, plan: &Plan, wrote: Wrote, last: bool) -> Controller {
    match (c.at, wrote) {
        (_, Wrote::Done) if !last => Controller { next: c.next + 1, ..c },
        (At::Retreat, Wrote::Void) => Controller::idle(c.known),
        (At::Retreat, Wrote::Done | Wrote::Failed) => after_retreats(state, c, plan),
        (At::ActFirst, _) => recording(c, plan),
        _ => Controller::idle(c.known),
    }
}
