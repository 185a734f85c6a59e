//! How what is not tidegate behaves in a test: pods, gateways, measurements.

use crate::analysis::judge::{Range, Reading};
use std::collections::BTreeMap;

/// How the pods of an image behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pods {
    Ready,
    Stuck,
}

/// How the gateway controller behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gateway {
    On,
    Off,
    Refuse,
}

/// What is measured of the candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Value(f64),
    Silent,
    Away,
}

impl Metric {
    /// What a provider answers.
    pub(super) fn read(self, range: &Range) -> Reading {
        match self {
            Self::Value(value) => {
                let count = (range.until - range.from).num_seconds() / range.interval.delta().num_seconds();
                let at = |n: i64| range.until - range.interval.delta() * i32::try_from(n).expect("few");
                Reading::Samples((0..=count).map(|n| (at(n), value)).collect())
            }
            Self::Silent => Reading::Samples(BTreeMap::new()),
            Self::Away => Reading::Away("refused".to_owned()),
        }
    }
}
