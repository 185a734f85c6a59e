//! The Lease of an instance: only its holder acts. Reads and writes what [`super::election`] decides.
//!
//! Each write replaces the Lease at the resourceVersion that was read, so of two contenders one loses with 409.

use super::client::Cluster;
use super::election::{ANCHOR, Contender, ElectionStep, GAPS, LeaseView, ObservedLease, evaluate, gap};
use super::failure::Failure;
use super::request;
use super::unobserved::{self, Unobserved};
use crate::manifest::ids::CommitId;
use crate::record::state::Time;
use chrono::SecondsFormat;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const API: &str = "coordination.k8s.io/v1";
const PLURAL: &str = "leases";

/// How a Lease is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long it holds without a renewal, in whole seconds: a contender waits as long before it takes over.
    pub duration: Duration,
    /// How long the holder goes on without a renewal. Shorter than `duration`, so that it has stopped before another
    /// starts (client-go's renew deadline).
    pub deadline: Duration,
    /// How often the holder renews it, and how often others look.
    pub renew: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), deadline: seconds(10), renew: seconds(5) }
    }
}

/// Proof that this process leads. It expires: ask [`LeaseHeld::still`] before each effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHeld {
    epoch: u64,
    until: Instant,
}

impl LeaseHeld {
    /// The fencing token: grows with each change of leader.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether it holds at `now`.
    #[must_use]
    pub fn still(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// What is written on the Lease with a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseAnnotations {
    /// The newest state tip that we know; `None` leaves the one that is there.
    pub anchor: Option<CommitId>,
    /// The spans of time in which something was not observed; `None` leaves what is there.
    pub gaps: Option<Vec<Unobserved>>,
    /// The highest epoch that the records name: a new one lies above it.
    pub floor: u64,
}

impl LeaseAnnotations {
    fn put(&self, lease: &mut Value, wall: Time) {
        let annotations = table(table(lease, "metadata"), "annotations");
        if let Some(anchor) = &self.anchor {
            annotations[ANCHOR] = anchor.as_str().into();
        }
        if let Some(gaps) = &self.gaps {
            // What is there stays: who notes may not have heard yet of what was inherited.
            let known = annotations[GAPS].as_str().map(unobserved::parse).unwrap_or_default();
            let all = unobserved::merged(known.into_iter().chain(gaps.iter().cloned()).collect());
            let all = unobserved::cut(all, wall);
            annotations[GAPS] = unobserved::print(&all).into();
        }
    }
}

/// What a leader finds when it begins, or begins again after it could not renew in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    /// The newest state tip that was known before.
    pub anchor: Option<CommitId>,
    /// The spans of time in which nobody observed; the last is that since the last renewal. They are on the Lease now.
    pub gaps: Vec<Unobserved>,
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionTurn {
    /// We lead.
    Leading {
        /// The proof.
        held: LeaseHeld,
        /// What was found, if leading has just begun.
        inherited: Option<Inherited>,
    },
    /// Another leads, or has just won.
    Standby {
        /// Who, if it is known.
        holder: Option<String>,
        /// The Lease is free for us at this time, if nothing is renewed until then.
        free_at: Instant,
    },
    /// The API server gave no usable answer. A proof that we hold stays true until it expires.
    Unknown {
        /// Why.
        why: String,
    },
}

/// The Lease `tidegate-<instance>` in our own namespace, as one contender sees it.
pub struct Lease {
    cluster: Cluster,
    identity: String,
    timing: Timing,
    /// The Lease as it was last read or written, to be renewed without reading it again.
    known: Option<Value>,
    seen: Option<ObservedLease>,
    /// What it said when it was seen last, if it is gone since.
    deleted: Option<LeaseView>,
    held: Option<LeaseHeld>,
    /// What was to be noted when leading began: of what was inherited then it knows nothing.
    outdated: Option<LeaseAnnotations>,
}

impl Lease {
    /// A contender. `identity` must belong to no other running process: the name of the pod will do.
    #[must_use]
    pub fn new(cluster: Cluster, identity: &str, timing: Timing) -> Self {
        Self {
            cluster,
            identity: identity.to_owned(),
            timing,
            known: None,
            seen: None,
            deleted: None,
            held: None,
            outdated: None,
        }
    }

    /// Renews the Lease, takes it, or looks at it: to be called every [`Timing::renew`], and whenever the notes change.
    ///
    /// *Guarantees*: `Leading` only after a write that nobody else can have made; its proof expires before any other
    /// contender may take over, unless a person deletes or changes the Lease.
    /// *Assumptions*: `now` and `wall` are the time of the call.
    pub async fn turn(&mut self, notes: &LeaseAnnotations, now: Instant, wall: Time) -> ElectionTurn {
        // At rest a renewal is one request: the Lease as it is known is replaced, and 409 says that it has changed.
        if let (Some(known), Some(held)) = (self.known.clone(), self.held.clone()) {
            match self.renew(&known, held.epoch, notes, now, wall).await {
                Err(failure) if lost_race(&failure) => {}
                answer => return answer.unwrap_or_else(|failure| ElectionTurn::Unknown { why: failure.to_string() }),
            }
        }
        let found = match self.cluster.call_within(request::get(&self.path(), &[]), self.timing.renew).await {
            Ok(found) => Some(found),
            Err(failure) if failure.is_absent(PLURAL) => None,
            Err(failure) => return ElectionTurn::Unknown { why: failure.to_string() },
        };
        let before = self.seen.take();
        match &found {
            Some(lease) => self.seen = Some(ObservedLease::next(before, LeaseView::parse(lease), now)),
            None => self.deleted = before.map(|seen| seen.view).or(self.deleted.take()),
        }
        let led = self.held.as_ref().map_or(0, LeaseHeld::epoch);
        let me = Contender {
            identity: &self.identity,
            epoch: self.held.as_ref().map(LeaseHeld::epoch),
            floor: notes.floor.max(led).max(self.deleted.as_ref().map_or(0, |view| view.epoch)),
        };
        let lease = found.unwrap_or_else(|| json!({}));
        let written = match evaluate(self.seen.as_ref(), &me, now) {
            ElectionStep::Renew => self.renew(&lease, me.epoch.unwrap_or(0), notes, now, wall).await,
            ElectionStep::Take(epoch) => self.take(&lease, epoch, notes, now, wall).await,
            ElectionStep::Create(epoch) => self.take(&lease, epoch, notes, now, wall).await,
            ElectionStep::Wait(free_at) => return self.standby(free_at),
        };
        match written {
            Ok(turn) => turn,
            Err(failure) if lost_race(&failure) => self.standby(now + self.timing.renew),
            Err(failure) => ElectionTurn::Unknown { why: failure.to_string() },
        }
    }

    /// Gives the Lease back, so that another need not wait. To be called when the process ends; what goes wrong only
    /// costs the next leader the wait.
    pub async fn release(&mut self, wall: Time) {
        if let (Some(mut lease), Some(_)) = (self.known.take(), self.held.take()) {
            let spec = table(&mut lease, "spec");
            spec["holderIdentity"] = "".into();
            spec["leaseDurationSeconds"] = 1.into();
            spec["renewTime"] = micro_time(wall).into();
            if let Err(failure) = self.cluster.call_within(self.put(&lease), self.timing.renew).await {
                tracing::debug!(%failure, "the Lease was not given back");
            }
        }
    }

    fn standby(&mut self, free_at: Instant) -> ElectionTurn {
        self.held = None;
        self.known = None;
        let holder = self.seen.as_ref().and_then(|seen| seen.view.holder.clone());
        ElectionTurn::Standby { holder, free_at }
    }

    async fn renew(
        &mut self,
        lease: &Value,
        epoch: u64,
        notes: &LeaseAnnotations,
        now: Instant,
        wall: Time,
    ) -> Result<ElectionTurn, Failure> {
        // Nobody took over meanwhile, but nobody observed either.
        let lapsed = !self.held.as_ref().is_some_and(|held| held.still(now));
        let mut lease = lease.clone();
        if self.outdated.as_ref() != Some(notes) {
            // What we noted since then is newer than what is on the Lease.
            notes.put(&mut lease, wall);
            self.outdated = None;
        }
        let inherited = lapsed.then(|| self.inherited(&LeaseView::parse(&lease), None, now, wall));
        self.write(&mut lease, epoch, inherited.as_ref(), wall);
        self.hold(self.put(&lease), epoch, now, notes, inherited).await
    }

    async fn take(
        &mut self,
        lease: &Value,
        epoch: u64,
        notes: &LeaseAnnotations,
        now: Instant,
        wall: Time,
    ) -> Result<ElectionTurn, Failure> {
        let mut lease = lease.clone();
        let exists = lease.pointer("/metadata/resourceVersion").is_some();
        if !exists && (self.held.is_some() || self.deleted.is_none()) {
            // Else what another has noted is newer than what we know of earlier terms.
            notes.put(&mut lease, wall);
        }
        let inherited = self.inherited(&LeaseView::parse(&lease), self.deleted.as_ref(), now, wall);
        self.write(&mut lease, epoch, Some(&inherited), wall);
        table(&mut lease, "spec")["acquireTime"] = micro_time(wall).into();
        let request = if exists { self.put(&lease) } else { self.post(&lease) };
        self.hold(request, epoch, now, notes, Some(inherited)).await
    }

    /// Sends the write that makes or keeps us the holder.
    async fn hold(
        &mut self,
        request: http::Request<Vec<u8>>,
        epoch: u64,
        now: Instant,
        notes: &LeaseAnnotations,
        inherited: Option<Inherited>,
    ) -> Result<ElectionTurn, Failure> {
        match self.cluster.call_within(request, self.timing.renew).await {
            Ok(written) => {
                // Counted from before the request was sent: no contender can have seen it earlier.
                let held = LeaseHeld { epoch, until: now + self.timing.deadline };
                self.seen = Some(ObservedLease { view: LeaseView::parse(&written), since: now });
                self.known = Some(written);
                self.deleted = None;
                self.held = Some(held.clone());
                if inherited.is_some() {
                    self.outdated = Some(notes.clone());
                }
                Ok(ElectionTurn::Leading { held, inherited })
            }
            Err(failure) => {
                // Whether it was written is not known: the next turn reads.
                self.known = None;
                Err(failure)
            }
        }
    }

    fn write(&self, lease: &mut Value, epoch: u64, inherited: Option<&Inherited>, wall: Time) {
        let spec = table(lease, "spec");
        spec["holderIdentity"] = self.identity.as_str().into();
        spec["leaseDurationSeconds"] = self.timing.duration.as_secs().max(1).into();
        spec["leaseTransitions"] = epoch.into();
        spec["renewTime"] = micro_time(wall).into();
        if let Some(found) = inherited {
            let annotations = table(table(lease, "metadata"), "annotations");
            annotations[GAPS] = unobserved::print(&found.gaps).into();
            if let Some(anchor) = &found.anchor {
                annotations[ANCHOR] = anchor.as_str().into();
            }
        }
    }

    /// What is noted, with the span since the last renewal; what somebody deleted is not forgotten.
    fn inherited(&self, noted: &LeaseView, deleted: Option<&LeaseView>, now: Instant, wall: Time) -> Inherited {
        let last = deleted.filter(|_| noted.renewed.is_none()).unwrap_or(noted);
        let known = noted.gaps.iter().chain(deleted.into_iter().flat_map(|view| &view.gaps));
        let seen = self.seen.as_ref().map_or(Duration::ZERO, |seen| now.saturating_duration_since(seen.since));
        let gaps = known.cloned().chain(gap(last, seen, wall)).collect();
        let anchor = noted.anchor.clone().or_else(|| deleted?.anchor.clone());
        Inherited { anchor, gaps: unobserved::cut(unobserved::merged(gaps), wall) }
    }

    fn name(&self) -> &str {
        self.cluster.manager()
    }

    fn path(&self) -> String {
        format!("{}/{}", request::under(API, self.cluster.home(), PLURAL), self.name())
    }

    fn put(&self, lease: &Value) -> http::Request<Vec<u8>> {
        request::put(&self.path(), &[("fieldManager", self.cluster.manager())], lease)
    }

    fn post(&self, lease: &Value) -> http::Request<Vec<u8>> {
        let mut lease = lease.clone();
        lease["apiVersion"] = API.into();
        lease["kind"] = "Lease".into();
        table(&mut lease, "metadata")["name"] = self.name().into();
        let path = request::under(API, self.cluster.home(), PLURAL);
        request::post(&path, &[("fieldManager", self.cluster.manager())], &lease)
    }
}

/// Another was faster: the Lease has changed, is gone, or was made meanwhile.
fn lost_race(failure: &Failure) -> bool {
    failure.code() == Some(409) || failure.is_absent(PLURAL)
}

/// The table under `key`, made if there is none: what the API server sent is data.
fn table<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    let below = &mut value[key];
    if !below.is_object() {
        *below = json!({});
    }
    below
}

/// Kubernetes' MicroTime.
fn micro_time(wall: Time) -> String {
    wall.to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests;
