//! Who leads, decided from the Lease: the rules of client-go's leader election. Pure.
//!
//! Clocks of different machines are never compared. A contender waits until it has itself seen the same state of the
//! Lease for the whole of its duration. The number of transitions is the epoch: it fences what a leader of the past
//! still writes (requirement X-12).

use super::unobserved::{self, Unobserved};
use crate::manifest::ids::CommitId;
use crate::record::state::Time;
use chrono::TimeDelta;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// The newest tip of the state branch that a leader knew.
pub const ANCHOR: &str = "tidegate.io/anchor";
/// The spans of time in which nobody observed.
pub const GAPS: &str = "tidegate.io/gaps";

/// The longest duration that is believed; a Lease that claims more would lock everybody out.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A Lease as it was read. What in it is no Lease's content is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it; `None` after a release.
    pub holder: Option<String>,
    /// How long it holds without a renewal.
    pub duration: Duration,
    /// When it was renewed last, by the holder's clock.
    pub renewed: Option<Time>,
    /// How often it changed hands: the epoch of its holder.
    pub epoch: u64,
    /// The newest state tip that its holders knew.
    pub anchor: Option<CommitId>,
    /// The spans of time in which nobody observed.
    pub gaps: Vec<Unobserved>,
}

impl LeaseView {
    /// Reads a Lease of `coordination.k8s.io/v1`.
    #[must_use]
    pub fn parse(lease: &Value) -> Self {
        let spec = |field: &str| lease.get("spec").and_then(|spec| spec.get(field));
        let note = |key: &str| lease.get("metadata")?.get("annotations")?.get(key)?.as_str();
        let text = |field| spec(field).and_then(Value::as_str);
        let seconds = spec("leaseDurationSeconds").and_then(Value::as_u64);
        let duration = Duration::from_secs(seconds.unwrap_or(0)).clamp(Duration::from_secs(1), LONGEST);
        Self {
            holder: text("holderIdentity").filter(|holder| !holder.is_empty()).map(str::to_owned),
            duration,
            renewed: text("renewTime").and_then(|time| time.parse().ok()),
            epoch: spec("leaseTransitions").and_then(Value::as_u64).unwrap_or(0),
            anchor: note(ANCHOR).and_then(|tip| tip.parse().ok()),
            gaps: note(GAPS).map(unobserved::parse).unwrap_or_default(),
        }
    }

    /// Whether two views are of the same renewal.
    fn same_renewal(&self, other: &Self) -> bool {
        (&self.holder, self.renewed, self.epoch) == (&other.holder, other.renewed, other.epoch)
    }
}

/// A state of the Lease, and when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLease {
    /// The state.
    pub view: LeaseView,
    /// When we first saw it, by our own clock.
    pub since: Instant,
}

impl ObservedLease {
    /// What is seen now, after what was seen before.
    #[must_use]
    pub fn next(before: Option<Self>, view: LeaseView, now: Instant) -> Self {
        let since = before.filter(|seen| seen.view.same_renewal(&view)).map_or(now, |seen| seen.since);
        Self { view, since }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender<'a> {
    /// Its identity, which no other process has at the same time.
    pub identity: &'a str,
    /// The epoch in which it leads, as far as it knows.
    pub epoch: Option<u64>,
    /// The highest epoch that it has ever heard of, from the record too: a new epoch lies above, also when somebody
    /// has deleted the Lease.
    pub floor: u64,
}

/// What a contender may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionStep {
    /// There is no Lease: make one, with this epoch.
    Create(u64),
    /// It is free, or its holder is gone: take it, with this epoch.
    Take(u64),
    /// It is ours: renew it.
    Renew,
    /// Another holds it; look again at this time at the latest.
    Wait(Instant),
}

/// The highest epoch that is believed of a record: leaders change for millennia before they come to it. One at the end of what a Lease can
/// hold would let nobody lead any more.
const BELIEVED: u64 = 1 << 30;

/// What a new epoch lies above, by those that the records name.
#[must_use]
pub fn floor(epochs: impl Iterator<Item = u64>) -> u64 {
    epochs.filter(|epoch| *epoch < BELIEVED).max().unwrap_or(0)
}

/// What `me` may do, after having `seen` the Lease as it is `now`; `None`: there is no Lease.
#[must_use]
pub fn evaluate(seen: Option<&ObservedLease>, me: &Contender<'_>, now: Instant) -> ElectionStep {
    let Some(ObservedLease { view, since }) = seen else {
        return ElectionStep::Create(me.floor.max(me.epoch.unwrap_or(0)).saturating_add(1));
    };
    let next = view.epoch.max(me.floor).saturating_add(1);
    match &view.holder {
        None => ElectionStep::Take(next),
        Some(holder) if holder == me.identity => {
            // With our name, but not by us: an earlier life of this process, whose writes are fenced by a new epoch.
            if me.epoch == Some(view.epoch) { ElectionStep::Renew } else { ElectionStep::Take(next) }
        }
        Some(_) if now >= *since + view.duration => ElectionStep::Take(next),
        Some(_) => ElectionStep::Wait(*since + view.duration),
    }
}

/// The span in which nobody renewed, from the last renewal until `wall`. Where that was by a clock that is ahead, it is as long as the
/// Lease was `seen` unchanged.
#[must_use]
pub fn gap(view: &LeaseView, seen: Duration, wall: Time) -> Option<Unobserved> {
    let renewed = view.renewed?.trunc_subsecs(3);
    let from = if renewed <= wall { renewed } else { wall - TimeDelta::from_std(seen).unwrap_or_default() };
    (from < wall).then_some(Unobserved { from, to: wall, of: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_epoch_at_the_end_of_what_a_lease_holds_is_not_believed() {
        assert_eq!(floor([3, 8, 2_147_483_647, u64::MAX].into_iter()), 8);
        assert_eq!(floor(std::iter::empty()), 0);
    }

    fn view(holder: &str, epoch: u64) -> LeaseView {
        LeaseView::parse(&json!({"spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": epoch,
            "renewTime": "2026-03-01T12:00:00.000000Z",
        }}))
    }

    #[test]
    fn the_table() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let me = |epoch, floor| Contender { identity: "me", epoch, floor };
        let seen = |holder, epoch| Some(ObservedLease { view: view(holder, epoch), since: start });
        let rows = [
            ("no lease", None, me(None, 0), 0, ElectionStep::Create(1)),
            ("no lease any more", None, me(Some(4), 0), 0, ElectionStep::Create(5)),
            ("no lease, but a record", None, me(None, 41), 0, ElectionStep::Create(42)),
            ("released", seen("", 3), me(None, 0), 0, ElectionStep::Take(4)),
            ("held by another", seen("other", 3), me(None, 0), 14, ElectionStep::Wait(after(15))),
            ("the other is gone", seen("other", 3), me(None, 0), 15, ElectionStep::Take(4)),
            ("the record knows more", seen("other", 3), me(None, 9), 15, ElectionStep::Take(10)),
            ("lost to another", seen("other", 4), me(Some(3), 0), 1, ElectionStep::Wait(after(15))),
            ("ours", seen("me", 3), me(Some(3), 0), 5, ElectionStep::Renew),
            ("ours, long not renewed", seen("me", 3), me(Some(3), 0), 600, ElectionStep::Renew),
            ("an earlier life of ours", seen("me", 3), me(None, 0), 0, ElectionStep::Take(4)),
            ("our name in another epoch", seen("me", 5), me(Some(3), 0), 0, ElectionStep::Take(6)),
        ];
        for (name, seen, me, at, step) in rows {
            assert_eq!(evaluate(seen.as_ref(), &me, after(at)), step, "{name}");
        }
    }

    #[test]
    fn a_state_is_seen_from_its_first_sight_until_it_is_renewed() {
        let start = Instant::now();
        let later = start + Duration::from_secs(9);
        let first = ObservedLease::next(None, view("a", 1), start);
        let mut noted = view("a", 1);
        noted.anchor = None;
        noted.gaps = unobserved::parse("2026-03-01T11:00:00Z/2026-03-01T11:00:07Z");
        assert_eq!(ObservedLease::next(Some(first.clone()), noted, later).since, start);
        assert_eq!(ObservedLease::next(Some(first.clone()), view("a", 2), later).since, later);
        let mut renewed = view("a", 1);
        renewed.renewed = Some("2026-03-01T12:00:05Z".parse().unwrap());
        assert_eq!(ObservedLease::next(Some(first), renewed, later).since, later);
    }

    #[test]
    fn the_gap_counts_from_the_last_renewal_and_is_never_negative() {
        let seen = Duration::from_secs(20);
        let at = |time: &str| gap(&view("a", 1), seen, time.parse().unwrap()).map(|gap| gap.to_string());
        assert_eq!(at("2026-03-01T12:01:00Z").as_deref(), Some("2026-03-01T12:00:00Z/2026-03-01T12:01:00Z"));
        assert_eq!(at("2026-03-01T12:00:00Z"), None);
        let ahead = "by a clock that is ahead";
        assert_eq!(at("2026-03-01T11:00:00Z").as_deref(), Some("2026-03-01T10:59:40Z/2026-03-01T11:00:00Z"), "{ahead}");
        assert_eq!(gap(&LeaseView::parse(&json!({})), seen, "2026-03-01T12:01:00Z".parse().unwrap()), None);
    }

    #[test]
    fn nonsense_is_data() {
        let empty = LeaseView::parse(&json!({}));
        assert_eq!((empty.holder.as_ref(), empty.epoch, empty.duration.as_secs()), (None, 0, 1));
        let odd = json!({
            "metadata": {"annotations": {ANCHOR: "--upload-pack=x", GAPS: "-1 x/y"}},
            "spec": {"holderIdentity": 7, "leaseDurationSeconds": u64::MAX, "leaseTransitions": -4, "renewTime": 1},
        });
        let odd = LeaseView::parse(&odd);
        assert_eq!((odd.holder, odd.epoch, odd.duration, odd.renewed), (None, 0, LONGEST, None));
        assert_eq!((odd.anchor, odd.gaps), (None, vec![]));
    }
}
