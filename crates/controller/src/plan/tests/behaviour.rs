//! How what is not tidegate behaves in a test: pods, gateways, measurements.

use crate::analysis::call::{CallKind, WebhookVerdict};
use crate::analysis::judge::{Inquiry, Range};
use crate::analysis::reading::{Reading, Received, Samples};
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
    /// It takes what leads to Services that are there.
    Resolves,
    Off,
    Refuse,
    /// Its listeners let in no route, or those that name no host or that one.
    Bar(Option<&'static str>),
}

/// What is measured of the candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Value(f64),
    Silent,
    Away,
    /// Webhooks say so.
    Bad,
}

impl Metric {
    /// What a provider answers. To webhooks all that is measured is good.
    pub(super) fn hear(self, question: &Inquiry, gate: &Reading<WebhookVerdict>) -> Received {
        match question {
            Inquiry::Range(range) => Received::Samples(range.clone(), self.read(range)),
            Inquiry::Call(call) if call.asks == CallKind::Gate => Received::Verdict(call.clone(), gate.clone()),
            Inquiry::Call(call) => Received::Verdict(call.clone(), self.word()),
        }
    }

    fn word(self) -> Reading<WebhookVerdict> {
        match self {
            Self::Value(_) => Reading::Said(WebhookVerdict::Good),
            Self::Silent => Reading::Said(WebhookVerdict::Hold("tests run".to_owned())),
            Self::Away => Reading::Away("refused".to_owned()),
            Self::Bad => Reading::Said(WebhookVerdict::Bad("3 of 9\ntests fail".to_owned())),
        }
    }

    fn read(self, range: &Range) -> Reading<Samples> {
        match self {
            Self::Value(value) => {
                let count = (range.until - range.from).num_seconds() / range.interval.delta().num_seconds();
                let at = |n: i64| range.until - range.interval.delta() * i32::try_from(n).expect("few");
                Reading::Said((0..=count).map(|n| (at(n), value)).collect())
            }
            Self::Silent => Reading::Said(BTreeMap::new()),
            Self::Bad | Self::Away => Reading::Away("refused".to_owned()),
        }
    }
}
