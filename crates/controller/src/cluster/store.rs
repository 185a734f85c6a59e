//! What is known of one namespace, kept up to date by watches and by our own writes. Pure.
//!
//! Of two states of an object the newer one counts, by resourceVersion: Kubernetes documents them as comparable
//! integers since 1.35. Where they are none, what came last counts.

use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::workload::live::{Expects, LiveState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

/// One namespace, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// Every kind was listed, and its watch is open.
    Ready(Arc<LiveState>),
    /// Some kinds cannot be read ([`LiveState::closed`]); of all others the same holds.
    Partly(Arc<LiveState>),
    /// Some kind was not asked for yet, or none can be read and some never was: nothing may be concluded, least of all that something
    /// is absent.
    NotYet {
        /// What is missing, and why.
        why: String,
    },
    /// No kind can be read any more: what is known may be out of date.
    Lost {
        /// Since when, on this process's own clock.
        since: Instant,
        /// Which kinds, and why.
        why: String,
        /// What was known last.
        last: Arc<LiveState>,
    },
}

/// How the watch of a kind is doing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sight {
    /// Nobody knows yet whether it can be listed.
    Unasked,
    /// It was never listed, and why.
    NotYet(String),
    /// It was listed, and the watch is open.
    Open,
    /// It was listed, but is not watched any more.
    Lost { since: Instant, why: String },
    /// The cluster does not serve it.
    Missing,
}

impl Sight {
    /// Why the kind cannot be read, if it cannot.
    fn trouble(&self) -> Option<&str> {
        match self {
            Self::Unasked => Some("not asked yet"),
            Self::NotYet(why) | Self::Lost { why, .. } => Some(why),
            Self::Open | Self::Missing => None,
        }
    }
}

/// Whether something changed that a plan could depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Change {
    No,
    Yes,
}

/// Why a kind cannot be read that was not listed yet.
const FIRST: &str = "it is listed for the first time";

/// One namespace.
#[derive(Debug)]
pub(super) struct Space {
    live: Arc<LiveState>,
    sights: BTreeMap<Kind, Sight>,
    /// The uids of objects that we deleted, until the watch has seen it: a uid never comes back.
    deleted: BTreeMap<ObjectRef, String>,
}

impl Space {
    /// Nothing known yet of these kinds.
    pub(super) fn new(cluster_uid: &str, kinds: &BTreeSet<Kind>) -> Self {
        let unwatched =
            Kind::ALL.iter().copied().filter(|kind| !kinds.contains(kind) && !Kind::OF_NODES.contains(kind));
        let unwatched = unwatched.collect();
        let live = LiveState { cluster_uid: cluster_uid.to_owned(), unwatched, ..LiveState::default() };
        let sights = kinds.iter().map(|&kind| (kind, Sight::Unasked)).collect();
        Self { live: Arc::new(live), sights, deleted: BTreeMap::new() }
    }

    /// Whether a kind has to be watched from now on. Nobody else waits for it. In a version that is not served it gives way to another.
    pub(super) fn want(&mut self, kind: Kind) -> bool {
        if self.current(kind).api_version() != kind.api_version() && self.sights.get(&kind) == Some(&Sight::Missing) {
            self.sights.remove(&kind);
            self.sights.insert(kind, Sight::Missing);
        }
        let is_new = !self.sights.contains_key(&kind);
        if is_new {
            let live = Arc::make_mut(&mut self.live);
            live.others.insert(kind);
            live.closed.insert(kind, FIRST.to_owned());
            self.sights.insert(kind, Sight::NotYet(FIRST.to_owned()));
        }
        is_new
    }

    /// The kind in the version that it is read in.
    pub(super) fn current(&self, kind: Kind) -> Kind {
        self.sights.get_key_value(&kind).map_or(kind, |(current, _)| *current)
    }

    /// What is known.
    pub(super) fn observed(&self) -> Observed {
        let any = |is: fn(&Sight) -> bool| self.sights.values().any(is);
        let why = self.sights.iter().filter_map(|(kind, sight)| Some(format!("{kind}: {}", sight.trouble()?)));
        let why = why.collect::<Vec<_>>().join("; ");
        if why.is_empty() {
            return Observed::Ready(self.live.clone());
        }
        let is_read = any(|sight| *sight == Sight::Open);
        if any(|sight| *sight == Sight::Unasked) || !is_read && any(|sight| matches!(sight, Sight::NotYet(_))) {
            return Observed::NotYet { why };
        }
        let lost = self.sights.values().filter_map(|sight| match sight {
            Sight::Lost { since, .. } => Some(*since),
            Sight::Unasked | Sight::NotYet(_) | Sight::Open | Sight::Missing => None,
        });
        match lost.min().filter(|_| !is_read) {
            Some(since) => Observed::Lost { since, why, last: self.live.clone() },
            None => Observed::Partly(self.live.clone()),
        }
    }

    /// Takes a complete list of a kind, made at `version`. Objects that we know in a newer state, from our own
    /// writes, stay as they are.
    pub(super) fn list(&mut self, kind: Kind, items: Vec<Object>, version: &str) -> Change {
        let mut change = Change::No;
        let listed: BTreeSet<ObjectRef> = items.iter().map(|item| item.reference().clone()).collect();
        for item in items {
            if self.put(item) == Change::Yes {
                change = Change::Yes;
            }
        }
        let absent = |reference: &ObjectRef| reference.kind == kind && !listed.contains(reference);
        self.deleted.retain(|reference, _| !absent(reference));
        let outdated = |object: &Arc<Object>| {
            let reference = object.reference();
            (absent(reference) && !is_newer(object.resource_version(), Some(version))).then(|| reference.clone())
        };
        let gone: Vec<_> = self.live.objects.values().filter_map(outdated).collect();
        for reference in gone {
            Arc::make_mut(&mut self.live).objects.remove(&reference);
            change = Change::Yes;
        }
        change
    }

    /// Forgets all objects of a kind that cannot be read.
    pub(super) fn forget(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.live).objects.remove_kind(kind);
    }

    /// Takes an object, unless it is known in the same or a newer state, or was deleted by us.
    pub(super) fn put(&mut self, object: Object) -> Change {
        let reference = object.reference();
        if self.deleted.get(reference).is_some_and(|uid| object.uid() == Some(uid)) {
            return Change::No;
        }
        if let Some(known) = self.live.get(reference) {
            let same = known.resource_version().is_some() && known.resource_version() == object.resource_version();
            // What is kept of a Node has no version: most of its versions are signs of life alone.
            if same || is_newer(known.resource_version(), object.resource_version()) || *known == object {
                return Change::No;
            }
        }
        let reference = reference.clone();
        Arc::make_mut(&mut self.live).objects.insert(reference, Arc::new(object));
        Change::Yes
    }

    /// Takes the object with which a write of ours was answered. One that was there when we planned and is not known any more has
    /// gone: its watch has said so before our write was answered.
    pub(super) fn answered(&mut self, object: Object, expected: &Expects) -> Change {
        if *expected == Expects::Absent || self.holds(&object) { self.put(object) } else { Change::No }
    }

    /// An object as it is known.
    pub(super) fn known(&self, reference: &ObjectRef) -> Option<&Object> {
        self.live.get(reference)
    }

    /// Whether the object is known, be it in another state.
    fn holds(&self, object: &Object) -> bool {
        self.live.get(object.reference()).is_some_and(|known| known.uid() == object.uid())
    }

    /// Takes the news from the watch that an object was deleted.
    pub(super) fn remove(&mut self, object: &Object) -> Change {
        let reference = object.reference();
        self.deleted.remove(reference);
        if self.holds(object) {
            Arc::make_mut(&mut self.live).objects.remove(reference);
            Change::Yes
        } else {
            Change::No
        }
    }

    /// Notes that we deleted an object ourselves.
    pub(super) fn deleted(&mut self, reference: &ObjectRef, uid: &str) {
        if self.live.get(reference).is_some_and(|known| known.uid() == Some(uid)) {
            Arc::make_mut(&mut self.live).objects.remove(reference);
            self.deleted.insert(reference.clone(), uid.to_owned());
        }
    }

    /// Notes how the watch of a kind is doing. One that was never listed is not lost, and what is lost was lost when
    /// it was first noted.
    pub(super) fn see(&mut self, kind: Kind, sight: Sight) -> Change {
        let Some(before) = self.sights.get(&kind) else { return Change::No };
        let sight = match (before, sight) {
            (Sight::Unasked | Sight::NotYet(_) | Sight::Missing, Sight::Lost { why, .. }) => Sight::NotYet(why),
            (Sight::Lost { since, .. }, Sight::Lost { why, .. }) => Sight::Lost { since: *since, why },
            (_, sight) => sight,
        };
        if *before == sight {
            return Change::No;
        }
        if (sight == Sight::Missing) != self.live.missing.contains(&kind) {
            let live = Arc::make_mut(&mut self.live);
            if sight == Sight::Missing {
                live.missing.insert(kind);
                live.objects.remove_kind(kind);
            } else {
                live.missing.remove(&kind);
            }
        }
        let closed = sight.trouble().filter(|_| sight != Sight::Unasked);
        if self.live.closed.get(&kind).map(String::as_str) != closed {
            let all = &mut Arc::make_mut(&mut self.live).closed;
            match closed {
                Some(why) => drop(all.insert(kind, why.to_owned())),
                None => drop(all.remove(&kind)),
            }
        }
        self.sights.insert(kind, sight);
        Change::Yes
    }
}

/// Whether the left resourceVersion is surely newer than the right one.
fn is_newer(left: Option<&str>, right: Option<&str>) -> bool {
    let number = |version: Option<&str>| version?.parse::<u128>().ok();
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left > right,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn config(name: &str, uid: &str, version: &str) -> Object {
        let reference =
            ObjectRef { kind: Kind::ConfigMap, namespace: "shop".parse().unwrap(), name: name.parse().unwrap() };
        Object::new(reference, json!({"metadata": {"uid": uid, "resourceVersion": version}}))
    }

    fn space() -> Space {
        let mut space = Space::new("c", &BTreeSet::from([Kind::ConfigMap]));
        assert_eq!(space.see(Kind::ConfigMap, Sight::Open), Change::Yes);
        space
    }

    /// Names, uids and resourceVersions of what is known.
    fn known(space: &Space) -> String {
        let of = |object: &Object| {
            format!("{} {}@{}", object.reference().name, object.uid().unwrap(), object.resource_version().unwrap())
        };
        space.live.of_kind(Kind::ConfigMap).map(of).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn our_own_write_is_not_undone_by_older_news() {
        let mut space = space();
        assert_eq!(space.put(config("a", "u", "9")), Change::Yes);
        assert_eq!(space.put(config("a", "u", "8")), Change::No);
        assert_eq!(space.put(config("a", "u", "9")), Change::No);
        assert_eq!(known(&space), "a u@9");
        assert_eq!(space.put(config("a", "u", "10")), Change::Yes);
        assert_eq!(space.put(config("a", "u", "opaque")), Change::Yes);
        assert_eq!(space.put(config("a", "u", "7")), Change::Yes);
        assert_eq!(known(&space), "a u@7");
    }

    #[test]
    fn a_list_replaces_all_but_what_is_newer_than_it() {
        let mut space = space();
        for object in [config("gone", "1", "3"), config("written", "2", "8"), config("stays", "3", "9")] {
            assert_eq!(space.put(object), Change::Yes);
        }
        let listed = vec![config("stays", "3", "4"), config("new", "4", "5")];
        assert_eq!(space.list(Kind::ConfigMap, listed.clone(), "6"), Change::Yes);
        assert_eq!(known(&space), "new 4@5, stays 3@9, written 2@8");
        assert_eq!(space.list(Kind::ConfigMap, listed, "7"), Change::No);
        assert_eq!(space.list(Kind::Service, vec![], "99"), Change::No);
    }

    #[test]
    fn what_we_deleted_stays_away_and_its_successor_does_not() {
        let mut space = space();
        assert_eq!(space.put(config("a", "old", "3")), Change::Yes);
        let reference = config("a", "old", "3").reference().clone();
        space.deleted(&reference, "other");
        assert_eq!(known(&space), "a old@3");
        space.deleted(&reference, "old");
        assert_eq!(known(&space), "");
        assert_eq!(space.put(config("a", "old", "4")), Change::No);
        assert_eq!(space.list(Kind::ConfigMap, vec![config("a", "old", "4")], "5"), Change::No);
        assert_eq!(space.put(config("a", "new", "6")), Change::Yes);
        assert_eq!(space.remove(&config("a", "old", "5")), Change::No);
        assert_eq!(known(&space), "a new@6");
        assert_eq!(space.remove(&config("a", "new", "7")), Change::Yes);
        assert!(space.deleted.is_empty() && known(&space).is_empty());
    }

    #[test]
    fn what_has_gone_does_not_come_back_with_the_answer_to_a_write() {
        let mut space = space();
        let expected = Expects::Uid("u".to_owned());
        assert_eq!(space.answered(config("a", "u", "3"), &Expects::Absent), Change::Yes);
        assert_eq!(space.answered(config("a", "u", "4"), &expected), Change::Yes);
        assert_eq!(known(&space), "a u@4");
        // A pod that was told to end, and whose kubelet was faster than our answer.
        assert_eq!(space.remove(&config("a", "u", "6")), Change::Yes);
        assert_eq!(space.answered(config("a", "u", "5"), &expected), Change::No);
        assert_eq!(known(&space), "");
    }

    #[test]
    fn a_snapshot_is_a_value() {
        let mut space = space();
        let Observed::Ready(before) = space.observed() else { panic!() };
        assert_eq!(space.put(config("a", "u", "1")), Change::Yes);
        assert_eq!(before.objects.values().len(), 0);
        let Observed::Ready(after) = space.observed() else { panic!() };
        assert_eq!(after.objects.values().len(), 1);
    }

    #[test]
    fn sights_add_up_to_what_may_be_concluded() {
        let (then, later) = (Instant::now(), Instant::now() + Duration::from_secs(9));
        let lost = |since, why: &str| Sight::Lost { since, why: why.to_owned() };
        let mut space = Space::new("c", &BTreeSet::from([Kind::ConfigMap, Kind::HttpRoute]));
        let note = |space: &mut Space, kind, sight| {
            let _ = space.see(kind, sight);
            space.observed()
        };
        let not_yet = |why: &str| Observed::NotYet { why: why.to_owned() };
        let closed =
            |live: &LiveState| live.closed.iter().map(|(kind, why)| format!("{kind}: {why}")).collect::<Vec<_>>();
        let state = note(&mut space, Kind::ConfigMap, lost(then, "refused"));
        assert_eq!(state, not_yet("ConfigMap: refused; HTTPRoute: not asked yet"));
        let state = note(&mut space, Kind::ConfigMap, Sight::Open);
        assert_eq!(state, not_yet("HTTPRoute: not asked yet"));
        let Observed::Partly(live) = note(&mut space, Kind::HttpRoute, lost(then, "forbidden")) else { panic!() };
        assert_eq!(closed(&live), ["HTTPRoute: forbidden"]);
        let Observed::Ready(live) = note(&mut space, Kind::HttpRoute, Sight::Missing) else { panic!() };
        assert!(live.missing.contains(&Kind::HttpRoute));
        let Observed::Ready(live) = note(&mut space, Kind::HttpRoute, Sight::Open) else { panic!() };
        assert!(live.missing.is_empty() && live.closed.is_empty());
        let Observed::Partly(live) = note(&mut space, Kind::ConfigMap, lost(then, "refused")) else { panic!() };
        assert_eq!(closed(&live), ["ConfigMap: refused"]);
        let _ = space.see(Kind::HttpRoute, lost(later, "time-out"));
        let state = note(&mut space, Kind::ConfigMap, lost(later, "still refused"));
        let Observed::Lost { since, why, .. } = state else { panic!() };
        assert_eq!((since, why.as_str()), (then, "ConfigMap: still refused; HTTPRoute: time-out"));
        assert_eq!(space.see(Kind::Pod, Sight::Open), Change::No);
    }
}
