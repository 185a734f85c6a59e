//! Every interleaving on a small world: one rollout of two phases and its promotion, two controllers that both believe that
//! they lead, and a number of faults, with the planner, the executor and the text of the record that are shipped.
//!
//! A state ([`state::State`]) is what the cluster, the branches and the two controllers are at one moment, as numbers of values
//! that are kept beside it; so each question to the planner and each write to the cluster is asked once, and the search itself
//! is cheap. What may happen next is told in [`order`], what must never be in [`search`].
//!
//! What is made simple here, and why nothing is lost by it:
//! - Time stands still but for a step between a write and the next look, in which every soak ends and no deadline passes.
//! - Pods are ready and routes in force at once, and evidence is there when it is asked for: controllers that wait are
//!   controllers that are paused, and those are played everywhere.
//! - A failed write is not remembered by who sent it: the pause before it is tried again has passed by the next look.
//! - The push is a compare-and-swap of the tip's number. That of libgit2 is tested against real servers elsewhere.
//! - A second run is explored for as long as a controller may remember the first.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells what it has seen")]

mod branch;
mod cluster;
mod faults;
mod manifests;
mod numbers;
mod order;
mod plans;
mod search;
mod state;

use faults::Faults;
use search::{Ask, Found, search};
use tidegate::rules::{Broken, Rule};

/// What every run of the tests can afford of all kinds. `TIDEGATE_FAULTS=<n>` explores more, with
/// `TIDEGATE_FAULT_KINDS=<names>` of some kinds only.
const FAULTS: u8 = 1;

#[test]
fn the_promise_holds_in_every_state_and_each_comes_to_rest() {
    let most = setting("TIDEGATE_FAULTS").map_or(FAULTS, |text| text.parse().expect("TIDEGATE_FAULTS is a number"));
    let kinds = setting("TIDEGATE_FAULT_KINDS");
    holds_with(&kinds.map_or_else(|| Faults::any(most), |names| Faults::of(most, &names).unwrap()));
}

#[test]
fn it_holds_with_up_to_four_faults_of_kinds_that_are_cheap() {
    holds_with(&Faults::of(4, "crash,lost-push,failed-write,git,checks").unwrap());
}

/// Three faults: Git is away, a controller without a memory marks the route as the brake says, and the other one remembers that
/// the run is in *return*, which a mark turns back, while it is in *retire* already.
#[test]
fn a_mark_that_was_made_blindly_takes_back_nothing_that_is_promoted() {
    holds_with(&Faults::of(3, "crash,git,brake").unwrap());
}

#[test]
fn a_kind_of_fault_that_nobody_knows_is_told_with_those_that_are_known() {
    let error = Faults::of(4, "crash, crush").unwrap_err();
    assert!(error.starts_with("no kind of fault is called \"crush\"; there are crash, lost-push, "), "{error}");
}

fn holds_with(faults: &Faults) {
    let Found { states, transitions, broken, met } = search(faults, Ask::AndRest);
    println!("{faults}: {states} states, {transitions} transitions; {met}");
    assert!(broken.is_none(), "after {states} states:\n{}", broken.unwrap_or_default());
}

#[expect(clippy::disallowed_methods, reason = "switches of this test alone")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A search with these rules broken, for what must never be.
fn without(rules: &[Rule], faults: u8) -> Found {
    let off: Vec<Broken> = rules.iter().copied().map(Broken::new).collect();
    let found = search(&Faults::any(faults), Ask::Always);
    drop(off);
    found
}

/// How what must never be comes about without these rules, with as few faults as it takes, for people.
fn broken(rules: &[Rule], faults: u8) -> String {
    let Found { states, broken, .. } = without(rules, faults);
    let story = broken.unwrap_or_else(|| panic!("nothing is broken without {rules:?} in {states} states"));
    println!("without {rules:?}, {faults} faults, after {states} states:\n{story}");
    story
}

#[test]
fn without_a_mark_a_paused_leader_raises_a_run_that_went_back() {
    assert!(broken(&[Rule::Mark], 1).ends_with("was raised after its retreat\n"));
}

#[test]
fn with_a_mark_only_where_something_was_lowered_the_same_happens() {
    assert!(broken(&[Rule::MarkAlways], 1).ends_with("was raised after its retreat\n"));
}

#[test]
fn without_the_version_that_was_planned_on_the_same_happens() {
    assert!(broken(&[Rule::Expect], 0).ends_with("was raised after its retreat\n"));
}

#[test]
fn with_the_record_lowered_before_live_live_is_ahead() {
    assert!(broken(&[Rule::LowerLast], 1).contains("live is ahead of Git"));
}

#[test]
fn with_actions_before_their_record_live_is_ahead() {
    assert!(broken(&[Rule::RecordFirst], 0).contains("live is ahead of Git"));
}

#[test]
fn with_pushes_onto_any_tip_live_is_ahead() {
    assert!(broken(&[Rule::Swap], 0).contains("live is ahead of Git"));
}

/// A record that was read before live may be older than what live was written under. In the sketch nothing else tells; here
/// objects name the record of their last write, so that such a plan is found out. One of the two rules has to hold.
#[test]
fn with_the_record_read_before_live_and_no_fence_live_is_ahead() {
    assert!(broken(&[Rule::LiveFirst, Rule::Fence], 0).contains("live is ahead of Git"));
}

#[test]
fn with_the_record_read_before_live_the_fence_is_enough() {
    let found = without(&[Rule::LiveFirst], setting("TIDEGATE_FAULTS").map_or(0, |text| text.parse().unwrap()));
    assert!(found.broken.is_none(), "after {} states:\n{}", found.states, found.broken.unwrap_or_default());
}
