//! The search: every state that can be reached, what must hold in each, and that each comes to rest.

use crate::exhaustive::faults::Faults;
use crate::exhaustive::manifests::UNGATED;
use crate::exhaustive::order::{Next, Worlds};
use crate::exhaustive::plans::{Known, Sight};
use crate::exhaustive::state::{At, Controller, Event, Packed, Packer, State};
use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

/// What is asked of each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// What must never be.
    Always,
    /// That, and whether it comes to rest.
    AndRest,
}

/// What a search came to.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// A way to break what must hold, with as few faults as it takes, for people.
    pub(crate) broken: Option<String>,
    /// What was met on the way, for people.
    pub(crate) met: String,
}

struct Search {
    worlds: Worlds,
    /// Whatever can go on from a state with few faults left can go on from it with more: each is noted once, with the most.
    seen: HashSet<Packed>,
    /// Each state with the place of the one that it was reached from.
    all: Vec<(Packed, u32)>,
    /// The places that are to be looked at.
    ahead: VecDeque<u32>,
    /// What one more fault leads to, each with the place that it was reached from. A state among them may yet be reached
    /// without that fault, and go on further: so they are noted when there is nothing ahead any more.
    later: Vec<(Packed, u32)>,
    /// States from which all comes to rest.
    calm: HashSet<Packed>,
    packer: Packer,
    transitions: usize,
}

/// Explores everything with such faults.
pub(crate) fn search(faults: &Faults, ask: Ask) -> Found {
    let mut worlds = Worlds::new(faults.clone());
    let start = State { faults: faults.most, ..at_rest_on_the_first(&mut worlds) };
    let (seen, calm, packer, ahead) = (HashSet::new(), HashSet::new(), Packer::default(), VecDeque::new());
    let (all, later) = (Vec::new(), Vec::new());
    let mut search = Search { worlds, seen, all, ahead, later, calm, packer, transitions: 0 };
    search.note(start, 0);
    let broken = search.run(ask);
    let Search { worlds, all, transitions, .. } = search;
    let met = format!(
        "{} clusters, {} tips of the state branch, {} plans",
        worlds.clusters.count(),
        worlds.branch.count(),
        worlds.plans.count()
    );
    Found { states: all.len(), transitions, broken, met }
}

/// The first version is promoted, main wants the second, and nobody has looked yet.
fn at_rest_on_the_first(worlds: &mut Worlds) -> State {
    let state = State {
        cluster: 0,
        tip: 0,
        main: 1,
        words: 0,
        retreated: 0,
        bad: false,
        git: true,
        brake: false,
        faults: 0,
        controllers: [Controller::default(); 2],
    };
    let (mut calm, mut packer) = (HashSet::new(), Packer::default());
    let rest = comes_to_rest(worlds, &mut calm, &mut packer, state)
        .map_err(|(_, why)| why)
        .expect("the first version is promoted");
    worlds.tidied(State { main: 2, controllers: [Controller::default(); 2], ..rest })
}

impl Search {
    fn run(&mut self, ask: Ask) -> Option<String> {
        let mut next = Next::new();
        while let Some(place) = self.ahead() {
            let state = self.state(place);
            if ask == Ask::AndRest
                && let Err((later, why)) = comes_to_rest(&mut self.worlds, &mut self.calm, &mut self.packer, state)
            {
                return Some(self.story(place, &later, &why));
            }
            next.clear();
            if !second_run(&self.worlds, &state) {
                successors(&mut self.worlds, &state, &mut next);
            }
            for (event, after) in next.drain(..) {
                self.transitions += 1;
                if let Some(why) = wrong(&mut self.worlds, &state, &after) {
                    return Some(self.story(place, &[(event, after)], &why));
                }
                if after.faults == state.faults {
                    self.note(after, place);
                } else {
                    self.later.push((self.packer.pack(&after), place));
                }
            }
        }
        None
    }

    fn state(&self, place: u32) -> State {
        self.packer.unpack(self.all[at(place)].0)
    }

    /// The place to look at next.
    fn ahead(&mut self) -> Option<u32> {
        if self.ahead.is_empty() {
            for (packed, from) in std::mem::take(&mut self.later) {
                self.note(self.packer.unpack(packed), from);
            }
        }
        self.ahead.pop_front()
    }

    /// Takes note of a state that was reached from that place.
    fn note(&mut self, state: State, from: u32) {
        if self.seen.insert(self.packer.pack(&State { faults: 0, ..state.unnamed() })) {
            self.ahead.push_back(u32::try_from(self.all.len()).expect("memory ends before"));
            self.all.push((self.packer.pack(&state), from));
        }
    }

    /// How it came to that, and went on, step by step.
    fn story(&mut self, place: u32, later: &[(Event, State)], why: &str) -> String {
        let mut places = vec![place];
        while places[places.len() - 1] != 0 {
            places.push(self.all[at(places[places.len() - 1])].1);
        }
        places.reverse();
        let states: Vec<State> = places.into_iter().map(|place| self.state(place)).collect();
        let mut text = String::new();
        tell(&self.worlds, &mut text, 0, None, &states[0]);
        for (n, pair) in states.windows(2).enumerate() {
            let mut next = Next::new();
            successors(&mut self.worlds, &pair[0], &mut next);
            let event = next.into_iter().find(|(_, after)| *after == pair[1]).expect("it was reached from there").0;
            tell(&self.worlds, &mut text, n + 1, Some(event), &pair[1]);
        }
        for (n, (event, after)) in later.iter().enumerate() {
            tell(&self.worlds, &mut text, states.len() + n, Some(*event), after);
        }
        text + &format!("    {why}\n")
    }
}

fn at(place: u32) -> usize {
    usize::try_from(place).expect("wide enough")
}

fn successors(worlds: &mut Worlds, state: &State, next: &mut Next) {
    for who in 0..2 {
        worlds.steps(state, who, next);
    }
    worlds.fault_injection(state, next);
    for (_, after) in next {
        *after = worlds.tidied(*after);
    }
}

/// Whether a second run is open and all know it: it opens only from rest, and goes from there as the first did.
fn second_run(worlds: &Worlds, state: &State) -> bool {
    let run = |tip: u32| worlds.branch.get(tip).run.as_ref().map(|(run, _)| run);
    let second = run(state.tip).filter(|run| !run.as_str().starts_with("1-"));
    let knows = |c: &Controller| c.at == At::Idle && matches!(c.known, Known::View { tip, .. } if run(tip) == second);
    second.is_some() && state.controllers.iter().all(knows)
}

/// What must never be, if it is so.
fn wrong(worlds: &mut Worlds, before: &State, after: &State) -> Option<String> {
    let tip = worlds.branch.get(after.tip);
    let (was, is) = (&worlds.clusters.get(before.cluster).reach, &worlds.clusters.get(after.cluster).reach);
    for (n, (reached, allowed)) in is.iter().zip(&tip.allowed).enumerate() {
        if reached > allowed {
            return Some(format!("live is ahead of Git: {reached} % reach v{}, the record allows {allowed} %", n + 1));
        }
    }
    let (run, version) = tip.run.clone()?;
    let exposed = tip.allowed[version];
    let raised = is[version] > was[version];
    let place = 1 << worlds.plans.run(&run);
    if raised && before.retreated & place != 0 {
        return Some(format!("run {run} was raised after its retreat"));
    }
    if exposed > UNGATED && after.words & place == 0 {
        return Some(format!("run {run} passed a closed gate: {exposed} % are recorded, and nobody approved"));
    }
    None
}

/// Whether all comes to rest from there if nothing goes wrong any more, Git and the brake are as they should, and people
/// approve: the controllers take turns. Returns the state of rest; or how it went instead, and what is wrong with that.
fn comes_to_rest(
    worlds: &mut Worlds,
    calm: &mut HashSet<Packed>,
    packer: &mut Packer,
    from: State,
) -> Result<State, (Next, String)> {
    let mut state = State { git: true, brake: false, faults: 0, ..from };
    let (mut way, mut later, mut next) = (Vec::new(), Next::new(), Next::new());
    if !from.git || from.brake {
        later.push((Event { who: None, what: "Git is as it should be, and so is the brake", action: None }, state));
    }
    for _ in 0..MOST_TURNS {
        let before = state;
        let packed = packer.pack(&state);
        if calm.contains(&packed) || second_run(worlds, &state) {
            calm.extend(way);
            return Ok(state);
        }
        way.push(packed);
        for turn in [Turn::FaultInjection, Turn::Controller(0), Turn::Controller(1)] {
            next.clear();
            match turn {
                Turn::FaultInjection => worlds.fault_injection(&state, &mut next),
                Turn::Controller(who) => worlds.steps(&state, who, &mut next),
            }
            // Git is looked at now and then, whatever else there is to do: what comes last is not put off for ever.
            let behind = matches!(turn, Turn::Controller(who) if state.controllers[who].known != state.said());
            let chosen = if behind { next.last() } else { next.first() };
            let Some((event, after)) = chosen.copied() else { continue };
            later.push((event, after));
            if let Some(why) = wrong(worlds, &state, &after) {
                return Err((later, why));
            }
            state = after;
        }
        if state == before {
            calm.extend(way);
            return settled(worlds, &state).map(|()| state).map_err(|why| (later, why));
        }
    }
    later.truncate(40);
    Err((later, "and so on: it never comes to rest".to_owned()))
}

/// The most turns that coming to rest may take: a run has some 30 steps, of which each may have to be tried again.
const MOST_TURNS: usize = 500;

enum Turn {
    FaultInjection,
    Controller(usize),
}

/// Rest: nobody wants anything, nothing is open, and the version that is promoted has all.
fn settled(worlds: &mut Worlds, state: &State) -> Result<(), String> {
    let sight = Sight { cluster: state.cluster, known: state.said(), bad: state.bad, brake: state.brake };
    let plan = worlds.plans.plan(sight, &worlds.clusters, &worlds.branch);
    let tip = worlds.branch.get(state.tip);
    let reach = &worlds.clusters.get(state.cluster).reach;
    let served = reach.iter().zip(&tip.allowed).all(|(reached, allowed)| reached == allowed);
    let knows = |c: &Controller| c.at == At::Idle && c.known == state.said();
    if worlds.plans.get(plan).is_empty() && tip.at_rest() && served && state.controllers.iter().all(knows) {
        return Ok(());
    }
    Err(format!("comes to a stop that is no rest: {}, {}", tip.told(), reached(reach)))
}

/// One line of a story.
fn tell(worlds: &Worlds, text: &mut String, number: usize, event: Option<Event>, state: &State) {
    let who = event.and_then(|event| event.who).map(|who| ["A ", "B "][who]).unwrap_or_default();
    let what = event.map_or("the start", |event| event.what);
    let action = event.and_then(|event| event.action).map(|number| &worlds.plans.due(number).action);
    let action = action.map(|action| format!(" ({:?}: {})", action.class, action.why)).unwrap_or_default();
    let live = reached(&worlds.clusters.get(state.cluster).reach);
    let stale: Vec<&str> = state
        .controllers
        .iter()
        .zip(["A", "B"])
        .filter(|(c, _)| matches!(c.known, Known::View { tip, .. } if tip != state.tip))
        .map(|(_, name)| name)
        .collect();
    let stale = if stale.is_empty() { String::new() } else { format!("; {} know an older one", stale.join(" and ")) };
    let record = worlds.branch.get(state.tip).told();
    writeln!(text, "{number:>2}. {who}{what}{action}\n      live {live}; {record}{stale}").unwrap();
}

fn reached(reach: &[u8]) -> String {
    let shares = reach.iter().enumerate().filter(|(_, share)| **share > 0);
    let shares: Vec<String> = shares.map(|(n, share)| format!("v{} {share} %", n + 1)).collect();
    if shares.is_empty() { "nothing".to_owned() } else { shares.join(", ") }
}
