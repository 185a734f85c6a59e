//! One moment of the whole world: a handful of small numbers.

use crate::exhaustive::numbers::Pool;
use crate::exhaustive::plans::Known;

/// Where a controller stands in its tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum At {
    /// Between two ticks.
    #[default]
    Idle,
    /// Its watches lag: it will plan with this cluster, as it was.
    Lagging,
    /// About to do the next retreat.
    Retreat,
    /// About to do what is not recorded yet. Only where that rule is broken.
    ActFirst,
    /// About to push.
    Push,
    /// About to do what the record allows.
    Advance,
}

/// A controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Controller {
    pub(crate) known: Known,
    pub(crate) at: At,
    /// What it is about to do; which of the actions comes next; the tip that allows them. Where it lags: the cluster.
    pub(crate) plan: u32,
    pub(crate) next: u8,
    pub(crate) proof: u32,
    /// The objects that were changed since it read the cluster, a bit for each.
    pub(crate) moved: u8,
}

impl Controller {
    /// Between two ticks, with what is known of Git.
    pub(crate) fn idle(known: Known) -> Self {
        Self { known, ..Self::default() }
    }
}

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) cluster: u32,
    pub(crate) tip: u32,
    /// The version that main names.
    pub(crate) main: u8,
    /// The approved runs, a bit for each.
    pub(crate) words: u64,
    /// The runs that went back, a bit for each.
    pub(crate) retreated: u64,
    /// What is measured is against the new version.
    pub(crate) bad: bool,
    /// Git answers.
    pub(crate) git: bool,
    /// The brake says revert.
    pub(crate) brake: bool,
    /// How much may still go wrong.
    pub(crate) faults: u8,
    pub(crate) controllers: [Controller; 2],
}

impl State {
    /// The same whichever of the controllers is which.
    pub(crate) fn unnamed(mut self) -> Self {
        self.controllers.sort_unstable();
        self
    }

    /// What Git says.
    pub(crate) fn said(&self) -> Known {
        Known::View { tip: self.tip, main: self.main, words: self.words, fresh: true }
    }
}

/// A state in 20 bytes: there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Packed {
    cluster: u32,
    tip: u32,
    others: u32,
    controllers: [u32; 2],
}

/// Packs states.
#[derive(Default)]
pub(crate) struct Packer {
    /// States without clusters, tips and controllers.
    others: Pool<State>,
    controllers: Pool<Controller>,
}

impl Packer {
    pub(crate) fn pack(&mut self, state: &State) -> Packed {
        let State { cluster, tip, controllers, .. } = *state;
        let others = State { cluster: 0, tip: 0, controllers: [Controller::default(); 2], ..*state };
        let controllers = controllers.map(|controller| self.controllers.number(controller));
        Packed { cluster, tip, others: self.others.number(others), controllers }
    }

    pub(crate) fn unpack(&self, packed: Packed) -> State {
        let Packed { cluster, tip, others, controllers } = packed;
        let controllers = controllers.map(|controller| self.controllers.get(controller));
        State { cluster, tip, controllers, ..self.others.get(others) }
    }
}

/// What happens from one moment to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    /// Which controller does it; none for what happens around them.
    pub(crate) who: Option<usize>,
    pub(crate) what: &'static str,
    /// The action that it is about.
    pub(crate) action: Option<u32>,
}
