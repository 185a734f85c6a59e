//! What stands in the cluster: the Lease, the brake, and objects whose annotations anybody may have written.

use crate::fuzz::budget::{Fate, tried, within};
use crate::fuzz::change::{Few, Piece};
use crate::fuzz::inside::Inside;
use crate::fuzz::record::is_planned;
use crate::fuzz::world::{RUN, live, seen};
use arbitrary::Arbitrary;
use serde_json::Value;
use std::time::Duration;
use tidegate::cluster::election::{Contender, ElectionStep, LeaseView, ObservedLease, evaluate, gap};
use tidegate::cluster::unobserved;
use tidegate::gate::brake::Brake;
use tidegate::manifest::object::{APPLIED, EPOCH, OWNER, RETREATED, ROLE, SEQ};
use tidegate::plan::unread;
use tidegate::reconcile::unobserved::UnobservedSpans;
use tidegate::workload::owned;
use tokio::time::Instant;

#[test]
fn a_lease_is_read_whatever_it_says() {
    tried("leases", 400, |changes: &Few<Inside>| {
        let mut lease = RUN.lease.clone();
        changes.0.iter().for_each(|change| change.apply(&mut lease));
        let view = within(lease.to_string().len(), || LeaseView::parse(&lease));
        let printed = unobserved::print(&view.gaps);
        assert!(unobserved::parse(&printed).len() <= unobserved::KEPT);
        let now = Instant::now();
        let seen = ObservedLease::next(None, view.clone(), now);
        let me = Contender { identity: "me", epoch: None, floor: 3 };
        if let ElectionStep::Create(epoch) | ElectionStep::Take(epoch) =
            evaluate(Some(&seen), &me, now + Duration::from_secs(10_000))
        {
            assert!(epoch > me.floor && epoch > view.epoch, "{view:?}");
        }
        let mut input = RUN.input();
        let mut gaps = UnobservedSpans::default();
        gaps.inherit(view.gaps.clone());
        gaps.inherit(gap(&view, Duration::from_secs(20), input.now).into_iter().collect());
        input.gaps = gaps.of(&input.id.namespace).counted(&unread::needs(&input), input.now);
        is_planned(&input);
        Fate::Taken
    });
}

/// What somebody has done to what is live.
#[derive(Debug, Arbitrary)]
enum Hand {
    Change(Inside),
    Mark {
        object: u8,
        key: u8,
        value: Piece,
    },
    /// Of managed fields, which say whose a mark is.
    Manage {
        object: u8,
        change: Inside,
    },
}

const MARKS: [&str; 6] = [OWNER, APPLIED, SEQ, EPOCH, RETREATED, ROLE];

impl Hand {
    fn apply(&self, live: &mut Value) {
        let count = live.as_array().map_or(1, |all| all.len().max(1));
        let at = |object: u8| format!("/{}/metadata", usize::from(object) % count);
        match self {
            Self::Change(change) => change.apply(live),
            Self::Mark { object, key, value } => {
                let Some(metadata) = live.pointer_mut(&at(*object)).filter(|metadata| metadata.is_object()) else {
                    return;
                };
                if metadata["annotations"].is_object() || metadata["annotations"].is_null() {
                    metadata["annotations"][MARKS[usize::from(*key) % MARKS.len()]] = value.0.as_str().into();
                }
            }
            Self::Manage { object, change } => {
                if let Some(managed) = live.pointer_mut(&format!("{}/managedFields", at(*object))) {
                    change.apply(managed);
                }
            }
        }
    }
}

#[test]
fn live_objects_are_planned_with_whatever_they_carry() {
    tried("live", 500, |hands: &Few<Hand>| {
        let mut all = Value::Array(RUN.live.clone());
        hands.0.iter().for_each(|hand| hand.apply(&mut all));
        let objects = live(all.as_array().map(Vec::as_slice).unwrap_or_default());
        let manager = RUN.state.writer.instance.in_cluster();
        for object in &objects {
            let size = object.value().to_string().len();
            let ours = within(size, || owned::owned_by(object, &manager));
            // What is ours is a part of what is there.
            if let Some(ours) = ours {
                assert!(ours.value().to_string().len() <= size + 200, "{ours:?}");
                assert_eq!(ours.reference(), object.reference());
            }
        }
        let mut input = RUN.input();
        input.live = seen(&RUN.state, objects);
        is_planned(&input);
        Fate::Taken
    });
}

#[test]
fn a_brake_brakes_or_warns() {
    tried("brakes", 2_000, |entries: &Few<(Piece, Piece)>| {
        let entries = entries.0.iter().map(|(key, value)| (key.0.as_str(), value.0.as_str()));
        let brake = Brake::parse(entries.clone());
        assert!(brake.warnings.iter().all(|warning| warning.len() < 2_000), "{:?}", brake.warnings);
        if entries.into_iter().any(|(key, _)| key == "shop.web" || key == "all" || key == "shop") {
            assert!(brake.of(&RUN.input().id).is_some());
        }
        Fate::of(brake != Brake::default())
    });
}
