//! The Lease of an instance: only its holder acts. Reads and writes what [`super::election`] decides.
//!
//! Each write replaces the Lease at the resourceVersion that was read, so of two contenders one loses with 409.

use super::client::Cluster;
use super::election::{ANCHOR, Contender, GAPS, LeaseView, Seen, Step, evaluate, gap};
use super::failure::Failure;
use super::gap::{self, Gap};
use super::request;
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
pub struct Notes {
    /// The newest state tip that we know; `None` leaves the one that is there.
    pub anchor: Option<CommitId>,
    /// The spans of time in which something was not observed; `None` leaves what is there.
    pub gaps: Option<Vec<Gap>>,
    /// The highest epoch that the records name: a new one lies above it.
    pub floor: u64,
}

impl Notes {
    fn put(&self, lease: &mut Value) {
        let annotations = table(table(lease, "metadata"), "annotations");
        if let Some(anchor) = &self.anchor {
            annotations[ANCHOR] = anchor.as_str().into();
        }
        if let Some(gaps) = &self.gaps {
            annotations[GAPS] = gap::print(gaps).into();
        }
    }
}

/// What a leader finds when it begins, or begins again after it could not renew in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    /// The newest state tip that was known before.
    pub anchor: Option<CommitId>,
    /// The spans of time in which nobody observed; the last is that since the last renewal. They are on the Lease now.
    pub gaps: Vec<Gap>,
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
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
    seen: Option<Seen>,
    held: Option<LeaseHeld>,
    /// What was to be noted when leading began: of what was inherited then it knows nothing.
    outdated: Option<Notes>,
}

impl Lease {
    /// A contender. `identity` must belong to no other running process: the name of the pod will do.
    #[must_use]
    pub fn new(cluster: Cluster, identity: &str, timing: Timing) -> Self {
        Self { cluster, identity: identity.to_owned(), timing, known: None, seen: None, held: None, outdated: None }
    }

    /// Renews the Lease, takes it, or looks at it: to be called every [`Timing::renew`], and whenever the notes change.
    ///
    /// *Guarantees*: `Leading` only after a write that nobody else can have made; its proof expires before any other
    /// contender may take over, unless a person deletes or changes the Lease.
    /// *Assumptions*: `now` and `wall` are the time of the call.
    pub async fn turn(&mut self, notes: &Notes, now: Instant, wall: Time) -> Turn {
        // At rest a renewal is one request: the Lease as it is known is replaced, and 409 says that it has changed.
        if let (Some(known), Some(held)) = (self.known.clone(), self.held.clone()) {
            match self.renew(&known, held.epoch, notes, now, wall).await {
                Err(failure) if lost_race(&failure) => {}
                answer => return answer.unwrap_or_else(|failure| Turn::Unknown { why: failure.to_string() }),
            }
        }
        let found = match self.cluster.call_within(request::get(&self.path(), &[]), self.timing.renew).await {
            Ok(found) => Some(found),
            Err(failure) if failure.is_absent(PLURAL) => None,
            Err(failure) => return Turn::Unknown { why: failure.to_string() },
        };
        let before = self.seen.take();
        self.seen = found.as_ref().map(|lease| Seen::next(before, LeaseView::parse(lease), now));
        let me = Contender {
            identity: &self.identity,
            epoch: self.held.as_ref().map(LeaseHeld::epoch),
            floor: notes.floor.max(self.held.as_ref().map_or(0, LeaseHeld::epoch)),
        };
        let lease = found.unwrap_or_else(|| json!({}));
        let written = match evaluate(self.seen.as_ref(), &me, now) {
            Step::Renew => self.renew(&lease, me.epoch.unwrap_or(0), notes, now, wall).await,
            Step::Take(epoch) => self.take(&lease, epoch, notes, now, wall).await,
            Step::Create(epoch) => self.take(&lease, epoch, notes, now, wall).await,
            Step::Wait(free_at) => return self.standby(free_at),
        };
        match written {
            Ok(turn) => turn,
            Err(failure) if lost_race(&failure) => self.standby(now + self.timing.renew),
            Err(failure) => Turn::Unknown { why: failure.to_string() },
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

    fn standby(&mut self, free_at: Instant) -> Turn {
        self.held = None;
        self.known = None;
        let holder = self.seen.as_ref().and_then(|seen| seen.view.holder.clone());
        Turn::Standby { holder, free_at }
    }

    async fn renew(
        &mut self,
        lease: &Value,
        epoch: u64,
        notes: &Notes,
        now: Instant,
        wall: Time,
    ) -> Result<Turn, Failure> {
        let view = LeaseView::parse(lease);
        // Nobody took over meanwhile, but nobody observed either.
        let lapsed = !self.held.as_ref().is_some_and(|held| held.still(now));
        let mut lease = lease.clone();
        if self.outdated.as_ref() != Some(notes) {
            // What we noted since then is newer than what is on the Lease.
            notes.put(&mut lease);
            self.outdated = None;
        }
        let inherited = lapsed.then(|| inherited(&LeaseView::parse(&lease), &view, wall));
        self.write(&mut lease, epoch, inherited.as_ref(), wall);
        self.hold(self.put(&lease), epoch, now, notes, inherited).await
    }

    async fn take(
        &mut self,
        lease: &Value,
        epoch: u64,
        notes: &Notes,
        now: Instant,
        wall: Time,
    ) -> Result<Turn, Failure> {
        let mut lease = lease.clone();
        let exists = lease.pointer("/metadata/resourceVersion").is_some();
        if !exists {
            // Else what another has noted is newer than what we know of earlier terms.
            notes.put(&mut lease);
        }
        let view = LeaseView::parse(&lease);
        let inherited = inherited(&view, &view, wall);
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
        notes: &Notes,
        inherited: Option<Inherited>,
    ) -> Result<Turn, Failure> {
        match self.cluster.call_within(request, self.timing.renew).await {
            Ok(written) => {
                // Counted from before the request was sent: no contender can have seen it earlier.
                let held = LeaseHeld { epoch, until: now + self.timing.deadline };
                self.seen = Some(Seen { view: LeaseView::parse(&written), since: now });
                self.known = Some(written);
                self.held = Some(held.clone());
                if inherited.is_some() {
                    self.outdated = Some(notes.clone());
                }
                Ok(Turn::Leading { held, inherited })
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
            table(table(lease, "metadata"), "annotations")[GAPS] = gap::print(&found.gaps).into();
        }
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

/// What is noted, with the span since the last renewal.
fn inherited(noted: &LeaseView, last: &LeaseView, wall: Time) -> Inherited {
    let gaps = noted.gaps.iter().cloned().chain(gap(last, wall)).collect();
    Inherited { anchor: noted.anchor.clone(), gaps: gap::merged(gaps) }
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
mod tests {
    use super::super::testing::Fake;
    use super::*;

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/tidegate/leases/tidegate-a";
    const TIP: &str = "0123456789012345678901234567890123456789";

    const EARLIER: &str = "2026-03-01T11:00:00Z/2026-03-01T11:00:07Z";
    const LATER: &str = "2026-03-01T11:30:00Z/2026-03-01T11:30:03Z";

    fn wall(seconds: i64) -> Time {
        "2026-03-01T12:00:00Z".parse::<Time>().unwrap() + chrono::Duration::seconds(seconds)
    }

    fn stored(holder: &str, epoch: u64, version: &str) -> Value {
        json!({
            "metadata": {"name": "tidegate-a", "resourceVersion": version, "labels": {"kept": "yes"},
                         "annotations": {ANCHOR: TIP, GAPS: EARLIER}},
            "spec": {"holderIdentity": holder, "leaseTransitions": epoch, "leaseDurationSeconds": 15,
                     "renewTime": "2026-03-01T12:00:00.000000Z"},
        })
    }

    fn refusal(code: u16, reason: &str) -> (u16, Value) {
        (code, json!({"code": code, "reason": reason, "details": {"kind": "leases", "name": "tidegate-a"}}))
    }

    async fn contender(fake: &Fake) -> Lease {
        Lease::new(fake.cluster().await, "pod-1", Timing::default())
    }

    #[tokio::test]
    async fn a_missing_lease_is_made_above_every_known_epoch_then_renewed_with_one_request() {
        let fake = Fake::answering([
            refusal(404, "NotFound"),
            (201, stored("pod-1", 42, "1")),
            (200, stored("pod-1", 42, "2")),
        ]);
        let mut lease = contender(&fake).await;
        let start = Instant::now();
        let notes = Notes { anchor: Some(TIP.parse().unwrap()), gaps: None, floor: 41 };
        let Turn::Leading { held, inherited } = lease.turn(&notes, start, wall(0)).await else { panic!() };
        assert_eq!(inherited, Some(Inherited { anchor: Some(TIP.parse().unwrap()), gaps: vec![] }));
        assert_eq!(held.epoch(), 42);
        assert!(held.still(start + Duration::from_secs(9)) && !held.still(start + Duration::from_secs(10)));

        let notes = Notes { gaps: Some(gap::parse(LATER)), ..notes };
        let turn = lease.turn(&notes, start + Duration::from_secs(5), wall(5)).await;
        assert!(matches!(turn, Turn::Leading { inherited: None, .. }), "{turn:?}");
        let asked = fake.asked();
        assert_eq!(asked.len(), 3);
        assert_eq!(asked[1].body["spec"]["leaseTransitions"], 42);
        assert_eq!(asked[1].body["metadata"]["annotations"][ANCHOR], TIP);
        assert_eq!(asked[2].line, format!("PUT {PATH}?fieldManager=tidegate-a"));
        let metadata = json!({"name": "tidegate-a", "resourceVersion": "1", "labels": {"kept": "yes"},
                              "annotations": {ANCHOR: TIP, GAPS: LATER}});
        assert_eq!(asked[2].body["metadata"], metadata);
        assert_eq!(asked[2].body["spec"]["renewTime"], "2026-03-01T12:00:05.000000Z");
    }

    #[tokio::test]
    async fn a_take_over_waits_for_the_whole_duration_and_keeps_what_it_finds() {
        let other = || (200, stored("pod-0", 3, "5"));
        let fake = Fake::answering([other(), other(), (200, stored("pod-1", 4, "6"))]);
        let mut lease = contender(&fake).await;
        let start = Instant::now();
        let turn = lease.turn(&Notes::default(), start, wall(100)).await;
        let free_at = start + Duration::from_secs(15);
        assert_eq!(turn, Turn::Standby { holder: Some("pod-0".into()), free_at });
        let turn = lease.turn(&Notes::default(), free_at, wall(115)).await;
        let Turn::Leading { held, inherited } = turn else { panic!("{turn:?}") };
        assert_eq!(held.epoch(), 4);
        let gaps = format!("{EARLIER} 2026-03-01T12:00:00Z/2026-03-01T12:01:55Z");
        assert_eq!(inherited, Some(Inherited { anchor: Some(TIP.parse().unwrap()), gaps: gap::parse(&gaps) }));
        let written = &fake.asked()[2].body;
        assert_eq!(written["metadata"]["annotations"], json!({ANCHOR: TIP, GAPS: gaps}));
        assert_eq!(written["metadata"]["resourceVersion"], "5");
    }

    #[tokio::test]
    async fn x_14_what_was_to_be_noted_before_does_not_replace_what_was_inherited() {
        let other = || (200, stored("pod-0", 3, "5"));
        let mine = || (200, stored("pod-1", 4, "6"));
        let fake = Fake::answering([other(), other(), mine(), mine(), mine()]);
        let mut lease = contender(&fake).await;
        let (start, old) = (Instant::now(), Notes { gaps: Some(Vec::new()), ..Notes::default() });
        assert!(matches!(lease.turn(&old, start, wall(0)).await, Turn::Standby { .. }));
        let taken = start + Duration::from_secs(15);
        assert!(matches!(lease.turn(&old, taken, wall(115)).await, Turn::Leading { inherited: Some(_), .. }));
        assert!(matches!(lease.turn(&old, taken, wall(120)).await, Turn::Leading { inherited: None, .. }));
        assert_eq!(fake.asked()[3].body["metadata"]["annotations"][GAPS], EARLIER);
        let new = Notes { gaps: Some(gap::parse(LATER)), ..Notes::default() };
        assert!(matches!(lease.turn(&new, taken, wall(121)).await, Turn::Leading { .. }));
        assert_eq!(fake.asked()[4].body["metadata"]["annotations"][GAPS], LATER);
    }

    #[tokio::test]
    async fn a_lost_race_and_a_lost_lease_end_leading_at_once() {
        let fake = Fake::answering([
            (200, stored("", 3, "5")),
            refusal(409, "Conflict"),
            (200, stored("", 3, "6")),
            (200, stored("pod-1", 4, "7")),
            refusal(409, "Conflict"),
            (200, stored("pod-2", 5, "9")),
        ]);
        let mut lease = contender(&fake).await;
        let now = Instant::now();
        assert!(matches!(lease.turn(&Notes::default(), now, wall(0)).await, Turn::Standby { .. }));
        assert!(matches!(lease.turn(&Notes::default(), now, wall(0)).await, Turn::Leading { .. }));
        let turn = lease.turn(&Notes::default(), now, wall(5)).await;
        assert!(matches!(&turn, Turn::Standby { holder: Some(holder), .. } if holder == "pod-2"), "{turn:?}");
    }

    #[tokio::test]
    async fn an_absent_api_server_is_survived_and_the_gap_is_counted() {
        let lost = || (503, json!("away"));
        let fake = Fake::answering([
            (200, stored("", 3, "5")),
            (200, stored("pod-1", 4, "6")),
            lost(),
            (200, stored("pod-1", 4, "6")),
            (200, stored("pod-1", 4, "7")),
        ]);
        let mut lease = contender(&fake).await;
        let now = Instant::now();
        assert!(matches!(lease.turn(&Notes::default(), now, wall(0)).await, Turn::Leading { .. }));
        let notes = Notes { gaps: Some(gap::parse(LATER)), ..Notes::default() };
        assert!(matches!(lease.turn(&notes, now, wall(5)).await, Turn::Unknown { .. }));
        let turn = lease.turn(&notes, now + Duration::from_secs(60), wall(60)).await;
        let Turn::Leading { held, inherited: Some(inherited) } = turn else { panic!("{turn:?}") };
        let gaps = format!("{LATER} 2026-03-01T12:00:00Z/2026-03-01T12:01:00Z");
        assert_eq!((held.epoch(), gap::print(&inherited.gaps)), (4, gaps));
    }

    #[tokio::test]
    async fn a_release_frees_it_and_nonsense_does_not_stop_it() {
        let fake = Fake::answering([(200, json!({"metadata": "x", "spec": []})), (200, json!("y")), (200, json!({}))]);
        let mut lease = contender(&fake).await;
        assert!(matches!(lease.turn(&Notes::default(), Instant::now(), wall(0)).await, Turn::Leading { .. }));
        lease.release(wall(3)).await;
        let asked = fake.asked();
        assert_eq!(asked[2].body["spec"]["holderIdentity"], "");
        lease.release(wall(4)).await;
        assert_eq!(fake.asked().len(), 3);
    }
}
