//! What tidegate has written to Git: records, plans, and Git's own trees.

use crate::fuzz::budget::{Fate, tried, within};
use crate::fuzz::change::{Few, Text};
use crate::fuzz::inside::Inside;
use crate::fuzz::world::{RUN, id, plan_text};
use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::Value;
use std::sync::Arc;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load;
use tidegate::manifest::proof::{ApprovalRule, By};
use tidegate::manifest::raw::Trust;
use tidegate::plan::draft::RecordChange;
use tidegate::plan::forecast::{Way, forecast};
use tidegate::plan::input::{Desired, Input, RecordedState};
use tidegate::plan::planner;
use tidegate::record::message::{self, CommitEntry};
use tidegate::record::state::{RolloutState, Route};
use tidegate::record::store::{self, RecordError};
use tidegate::report::dashboard::{self, Row};
use tidegate::report::metrics::Metrics;
use tidegate::report::view;

/// A document that a program wrote, changed as a text or as a value.
#[derive(Debug)]
enum Written {
    Text(Text),
    Values(Few<Inside>),
}

impl<'a> Arbitrary<'a> for Written {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(if u.ratio(1, 5)? { Self::Text(u.arbitrary()?) } else { Self::Values(u.arbitrary()?) })
    }
}

impl Written {
    fn bytes(&self, seed: &str) -> Vec<u8> {
        match self {
            Self::Text(text) => text.bytes(&[seed.to_owned()]),
            Self::Values(changes) => {
                let mut value: Value = serde_yaml::from_str(seed).expect("YAML");
                changes.0.iter().for_each(|change| change.apply(&mut value));
                serde_yaml::to_string(&value).expect("YAML").into_bytes()
            }
        }
    }
}

/// What a plan makes of it can be written down and told.
pub(crate) fn is_planned(input: &Input) {
    let plan = planner::plan(input);
    let before = match &input.recorded {
        RecordedState::State(state, _) => Some(&**state),
        RecordedState::None | RecordedState::Unreadable(_) => None,
    };
    if let RecordChange::Write { state, plan, adopted: _, what } = &plan.record {
        drop(message::commit(&[CommitEntry { rollout: &input.id, before, after: Some(state), why: what }]));
        // A set may be missing, which is an outcome; the files lie where the rollout's belong.
        let edits = store::edits(before, Some(state), &input.sets, plan.as_deref());
        if !matches!(edits, Err(RecordError::Seq(_) | RecordError::NextRun(_))) {
            reads_again(state);
        }
        if let Ok(edits) = edits {
            let root = store::paths(&input.id).root;
            assert!(edits.keys().all(|path| path.is_within(&root)), "{edits:?}");
        }
    }
}

fn reads_again(state: &RolloutState) {
    let text = store::print_state(state);
    let again = store::parse_state(&state.metadata, text.as_bytes()).expect("what was written reads");
    assert_eq!(store::print_state(&again), text);
    // What this version does not know is equal if it is written alike.
    assert_eq!(RolloutState { unknown: state.unknown.clone(), ..again }, *state, "{text}");
}

#[test]
fn a_record_is_read_and_planned_or_refused() {
    let seed = store::print_state(&RUN.state);
    tried("records", 600, move |written: &Written| {
        let bytes = written.bytes(&seed);
        let Ok(state) = within(bytes.len(), || store::parse_state(&id(), &bytes)) else { return Fate::Refused };
        reads_again(&state);
        let prod = "prod".parse().expect("a name");
        drop(dashboard::print(&prod, &[Row { state: &state, waiting: &["it waits".to_owned()] }]));
        let mut input = RUN.input();
        if let RecordedState::State(_, plan) = input.recorded {
            input.recorded = RecordedState::State(Box::new(state), plan);
        }
        is_planned(&input);
        Fate::Taken
    });
}

/// Numbers and times at the ends of what there is, and nothing else.
#[derive(Debug)]
struct Extremes(Vec<(u16, u8)>);

impl<'a> Arbitrary<'a> for Extremes {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        (0..u.int_in_range(1..=4)?).map(|_| u.arbitrary()).collect::<Result<_>>().map(Self)
    }
}

#[test]
fn a_record_of_extremes_is_refused_or_goes_through_plan_forecast_and_why() {
    let seed: Value = serde_yaml::from_str(&store::print_state(&RUN.state)).expect("YAML");
    let loaded = load::load(&RUN.main, &Caps::default());
    let metrics = Metrics::new();
    tried("extremes", 400, move |Extremes(changes): &Extremes| {
        let mut value = seed.clone();
        changes.iter().for_each(|(at, n)| Inside::far(*at, *n).apply(&mut value));
        let bytes = serde_yaml::to_string(&value).expect("YAML").into_bytes();
        let Ok(state) = store::parse_state(&id(), &bytes) else { return Fate::Refused };
        let mut input = RUN.input();
        let (RecordedState::State(_, plan), Desired::Wanted(rollout)) = (&input.recorded, &input.desired) else {
            panic!("a run of what is wanted")
        };
        let (plan, rollout) = (plan.clone().expect("a plan"), Arc::clone(rollout));
        let record = view::Record { state: state.clone(), plan: Some((*plan).clone()) };
        drop(view::rollouts(&[(id(), Ok(record))].into(), input.now));
        metrics.rollouts(std::iter::once(&state), std::iter::empty());
        let from = state.promoted.as_ref().map_or(&rollout.set.id, |promoted| &promoted.set);
        let entered = state.phase.position();
        let way = Way { rollout: &rollout, plan: &plan, route: Route::Phases, from, entered, approved: &[] };
        drop(forecast(&way, loaded.policy.as_ref().ok(), input.now).sentence());
        let approvers = ["ana".to_owned()].into();
        input.policy.proof = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Reviews });
        input.recorded = RecordedState::State(Box::new(state), Some(plan));
        is_planned(&input);
        Fate::Taken
    });
}

#[test]
fn a_plan_is_read_and_followed_or_refused() {
    let seed = plan_text(&RUN.texts).to_owned();
    tried("plans", 700, move |written: &Written| {
        let bytes = written.bytes(&seed);
        let Ok(plan) = within(bytes.len(), || store::parse_plan(&bytes)) else { return Fate::Refused };
        let text = store::print_plan(&plan);
        assert_eq!(store::parse_plan(text.as_bytes()).expect("what was written reads"), plan, "{text}");
        let mut input = RUN.input();
        if let RecordedState::State(state, _) = input.recorded {
            input.recorded = RecordedState::State(state, Some(Arc::new(plan)));
        }
        is_planned(&input);
        Fate::Taken
    });
}
