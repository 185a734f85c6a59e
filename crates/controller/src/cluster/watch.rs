//! Watches: what is live, kept up to date without asking again.
//!
//! One watch for each kind and namespace, and one for the brake. Each lists once, without `resourceVersion` and
//! therefore from a quorum (attack 56), then follows the changes. When a connection ends it is opened again where it
//! left off; when that history is gone (410), everything is listed again, and the new list replaces the old one only
//! when it is complete. There is no periodic resync: API servers end each watch after some minutes, and a watch opened
//! again at a resourceVersion misses nothing.
//!
//! kube's own watcher is not used, as it does not tell when a broken watch is open again, and so not whether what
//! is known is up to date.

use super::brake::{self, BRAKE, BrakeSight};
use super::chance::random;
use super::client::Cluster;
use super::failure::Failure;
use super::list::{self, PAGE};
use super::store::{Change, Observed, Sight, Space};
use super::total::{TOTAL, Total};
use super::{request, trim};
use crate::manifest::ids::Namespace;
use crate::manifest::object::{Kind, Object, ObjectRef, at};
use crate::manifest::raw::Gateways;
use crate::workload::live::Expects;
use crate::workload::tree::{SharedProxy, Trees};
use futures::{FutureExt, StreamExt};
use kube::core::WatchEvent;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How many lists may run at once.
const LISTS: usize = 16;
/// The most memory that is taken for the objects of a kind in a namespace, in bytes: beyond it the kind cannot be read there, and who needs it
/// holds, so that nobody fills what all have.
const ROOM: usize = 64 << 20;
/// The shortest pause before asking again. Doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
/// A watch that is not open for longer than this is lost.
const NOTICED: Duration = Duration::from_secs(1);
/// The longest pause before asking again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before asking again for a kind that the cluster does not serve.
const LONGEST_PAUSE_MISSING: Duration = Duration::from_secs(300);

/// A watch ended, which it never should.
#[derive(Debug, thiserror::Error)]
#[error("a watch ended: {0}")]
pub struct WatchEnded(String);

/// What is live in the namespaces that we serve. Dropping it ends its watches.
pub struct Watches {
    cluster: Cluster,
    spaces: BTreeMap<Namespace, Arc<Mutex<Space>>>,
    home: Arc<Mutex<Space>>,
    /// Those of gateways that are not served.
    gateways: (Gateways, BTreeMap<Namespace, Arc<Mutex<Space>>>),
    tasks: Mutex<JoinSet<()>>,
    notify: Arc<Notify>,
    lists: Arc<Semaphore>,
    total: Arc<Total>,
}

impl Watches {
    /// Starts to watch these kinds in these namespaces, and the brake. `notify` is told of each change; our own writes
    /// that come back are none. Other kinds are not looked at: who has objects of them holds.
    #[must_use]
    pub fn start(cluster: &Cluster, namespaces: &[Namespace], kinds: &BTreeSet<Kind>, notify: &Arc<Notify>) -> Self {
        let home = Arc::new(Mutex::new(Space::new(cluster.uid(), &BTreeSet::from([Kind::ConfigMap]))));
        let space = |_: &Namespace| Arc::new(Mutex::new(Space::new(cluster.uid(), kinds)));
        let watches = Self {
            cluster: cluster.clone(),
            spaces: namespaces.iter().map(|namespace| (namespace.clone(), space(namespace))).collect(),
            home,
            gateways: Default::default(),
            tasks: Mutex::default(),
            notify: notify.clone(),
            lists: Arc::new(Semaphore::new(LISTS)),
            total: Arc::new(Total::of(TOTAL)),
        };
        watches.follow(Kind::ConfigMap, cluster.home(), Some(BRAKE), &watches.home);
        for (namespace, space) in &watches.spaces {
            kinds.iter().for_each(|&kind| watches.follow(kind, namespace, None, space));
        }
        watches
    }

    /// The same, which look at the routes of shared proxies too: in the gateways' namespaces, and in all that are served.
    #[must_use]
    pub fn beside(mut self, gateways: &Gateways) -> Self {
        let named = [(SharedProxy::Gloo, &gateways.gloo), (SharedProxy::Contour, &gateways.contour)];
        let mut homes: BTreeMap<&Namespace, BTreeSet<Kind>> = BTreeMap::new();
        for (proxy, gateway) in named.into_iter().filter_map(|(proxy, gateway)| Some((proxy, gateway.as_ref()?))) {
            self.spaces.keys().for_each(|namespace| self.want(namespace, &proxy.kinds()));
            homes.entry(&gateway.namespace).or_default().extend(proxy.kinds());
        }
        self.gateways.0 = gateways.clone();
        for (namespace, kinds) in homes.into_iter().filter(|(namespace, _)| !self.spaces.contains_key(*namespace)) {
            let space = Arc::new(Mutex::new(Space::new(self.cluster.uid(), &kinds)));
            kinds.iter().for_each(|&kind| self.follow(kind, namespace, None, &space));
            self.gateways.1.insert(namespace.clone(), space);
        }
        self
    }

    /// What is known of the routes of shared proxies.
    #[must_use]
    pub fn trees(&self) -> Trees {
        let (gateways, homes) = &self.gateways;
        if *gateways == Gateways::default() {
            return Trees::default();
        }
        let served: BTreeSet<Namespace> = self.spaces.keys().cloned().collect();
        Trees::of(gateways, &served, |namespace| {
            let observed = homes.get(namespace).map(|space| lock(space).observed());
            match observed.unwrap_or_else(|| self.snapshot(namespace)) {
                Observed::Ready(live) | Observed::Partly(live) => Ok(live),
                Observed::NotYet { why } | Observed::Lost { why, .. } => Err(why),
            }
        })
    }

    fn follow(&self, kind: Kind, namespace: &Namespace, only: Option<&'static str>, space: &Arc<Mutex<Space>>) {
        let (cluster, namespace, space) = (self.cluster.clone(), namespace.clone(), space.clone());
        let (notify, lists) = (self.notify.clone(), self.lists.clone());
        let (page, room, total) = (PAGE, ROOM, self.total.clone());
        let out = total.enter(&(namespace.clone(), kind));
        let watch =
            Watch { cluster, kind, namespace, only, space, notify, lists, page, room, total, out, kept: 0, tries: 0 };
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(watch.follow());
    }

    /// Watches these kinds too, of which the names alone are known, and those of nodes, as some rollout of the namespace has objects of them. Until one is listed it
    /// cannot be read. Of two versions the first that is served is read.
    pub fn want(&self, namespace: &Namespace, kinds: &BTreeSet<Kind>) {
        let Some(space) = self.spaces.get(namespace) else { return };
        for &kind in kinds.iter().filter(|kind| kind.is_other() || Kind::OF_NODES.contains(kind)) {
            if lock(space).want(kind) {
                self.follow(kind, namespace, None, space);
            }
        }
    }

    /// What is known of a namespace. Costs nothing while nothing changes.
    #[must_use]
    pub fn snapshot(&self, namespace: &Namespace) -> Observed {
        match self.spaces.get(namespace) {
            Some(space) => lock(space).observed(),
            None => Observed::NotYet { why: format!("namespace {namespace} is not among those of this installation") },
        }
    }

    /// What is known of the brake.
    #[must_use]
    pub fn brake(&self) -> BrakeSight {
        brake::read(&lock(&self.home).observed(), self.cluster.home())
    }

    /// Takes an object as a write of ours returned it, so that the next tick does not plan against its own past.
    pub fn absorb(&self, mut object: Object, expected: &Expects) {
        if let Some(space) = self.spaces.get(&object.reference().namespace) {
            trim::trim(&mut object, self.cluster.manager());
            // Whoever wrote it knows of it.
            let _ = lock(space).answered(object, expected);
        }
    }

    /// Takes note that we deleted the object of that uid.
    pub fn absorb_delete(&self, object: &ObjectRef, uid: &str) {
        if let Some(space) = self.spaces.get(&object.namespace) {
            lock(space).deleted(object, uid);
        }
    }

    /// Waits until a watch has ended by itself, which no watch does unless it is broken: the process should end.
    pub async fn failed(&self) -> WatchEnded {
        // One that is added meanwhile is waited for, too: the waker is the set's.
        let ended = std::future::poll_fn(|context| {
            self.tasks.lock().unwrap_or_else(PoisonError::into_inner).poll_join_next(context)
        });
        match ended.await {
            Some(Err(error)) => WatchEnded(error.to_string()),
            Some(Ok(())) | None => WatchEnded("without a reason".to_owned()),
        }
    }
}

/// A space is never left half changed, so a panic while it was held does no harm.
fn lock(space: &Mutex<Space>) -> MutexGuard<'_, Space> {
    space.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One watch.
pub(super) struct Watch {
    pub(super) cluster: Cluster,
    pub(super) kind: Kind,
    pub(super) namespace: Namespace,
    /// Only the object of this name.
    pub(super) only: Option<&'static str>,
    space: Arc<Mutex<Space>>,
    notify: Arc<Notify>,
    pub(super) lists: Arc<Semaphore>,
    /// How many objects a page of a list has now.
    pub(super) page: usize,
    /// How much memory its objects may take.
    pub(super) room: usize,
    /// What all watches keep, and by what this one is told that it has to give way.
    total: Arc<Total>,
    out: Arc<Notify>,
    /// How much its objects take.
    pub(super) kept: usize,
    /// How often it was tried since something last came of it.
    tries: u32,
}

/// What follows on the end of a watch.
enum Next {
    /// Open it again at this resourceVersion.
    Resume(String),
    /// List everything again.
    List,
}

impl Watch {
    async fn follow(mut self) {
        let (mut contact, mut is_open) = (Instant::now(), false);
        loop {
            self.kind = lock(&self.space).current(self.kind);
            self.out = self.total.enter(&(self.namespace.clone(), self.kind));
            let listed = if is_open { self.list_again(contact).await } else { self.list().await };
            is_open = listed.is_ok();
            self.total.listed(&(self.namespace.clone(), self.kind));
            match listed {
                Ok((items, version)) => {
                    contact = Instant::now();
                    // A list that works is a sign of life, but not yet that watches work too.
                    self.tries = self.tries.min(3);
                    let change = lock(&self.space).list(self.kind, items, &version);
                    self.tell(change);
                    self.resume(version, &mut contact).await;
                    self.breathe(contact).await;
                }
                Err(failure) => self.pause(&failure, contact).await,
            }
        }
    }

    /// Lists once a watch is over: while that takes its time nothing is seen.
    async fn list_again(&mut self, contact: Instant) -> Result<(Vec<Object>, String), Failure> {
        let (space, notify, kind) = (self.space.clone(), self.notify.clone(), self.kind);
        let notice = async move {
            sleep(NOTICED).await;
            let sight = Sight::Lost { since: contact, why: "it is listed again".to_owned() };
            if lock(&space).see(kind, sight) == Change::Yes {
                notify.notify_one();
            }
            std::future::pending().await
        };
        tokio::select! {
            listed = self.list() => listed,
            never = notice => never,
        }
    }

    /// Watches on from `version` until everything has to be listed again.
    async fn resume(&mut self, mut version: String, contact: &mut Instant) {
        loop {
            let failure = match self.open(&version).await {
                Ok(stream) => {
                    self.see(Sight::Open);
                    let opened = Instant::now();
                    *contact = opened;
                    match self.drain(stream, version, contact).await {
                        Next::List => return,
                        Next::Resume(reached) => version = reached,
                    }
                    if opened.elapsed() > LONGEST_PAUSE {
                        self.tries = 0;
                    }
                    self.breathe(*contact).await;
                    continue;
                }
                Err(failure) => failure,
            };
            if failure.is_expired() || failure.is_missing_kind() {
                return;
            }
            self.pause(&failure, *contact).await;
        }
    }

    /// Takes what comes until the stream ends.
    async fn drain(
        &mut self,
        mut stream: impl StreamExt<Item = Result<WatchEvent<Value>, Failure>> + Unpin,
        mut version: String,
        contact: &mut Instant,
    ) -> Next {
        let out = Arc::clone(&self.out);
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                () = out.notified() => {
                    self.give_way(*contact);
                    return Next::List;
                }
            };
            let Some(event) = event else { return Next::Resume(version) };
            let reached = match event {
                Ok(WatchEvent::Added(value) | WatchEvent::Modified(value)) => {
                    self.take(value, |object| list::size(object.value()), Space::put)
                }
                Ok(WatchEvent::Deleted(value)) => self.take(value, |_| 0, |space, object| space.remove(&object)),
                Ok(WatchEvent::Bookmark(bookmark)) => Some(bookmark.metadata.resource_version),
                Ok(WatchEvent::Error(status)) => {
                    let failure = Failure::Answered(status);
                    tracing::debug!(kind = %self.kind, namespace = %self.namespace, %failure, "watch ended");
                    return if failure.is_expired() { Next::List } else { Next::Resume(version) };
                }
                Err(failure) => {
                    tracing::debug!(kind = %self.kind, namespace = %self.namespace, %failure, "watch broke off");
                    return Next::Resume(version);
                }
            };
            // What has no room any more: the next list says so.
            let reached = reached.filter(|reached| !reached.is_empty() && self.kept <= self.room);
            if !self.stays() {
                self.give_way(*contact);
                return Next::List;
            }
            let Some(reached) = reached else { return Next::List };
            version = reached;
            *contact = Instant::now();
            self.tries = 0;
        }
    }

    /// Whether what is kept has room beside all else. What stops everything always has.
    pub(super) fn stays(&self) -> bool {
        self.only.is_some() || self.total.keep(&(self.namespace.clone(), self.kind), self.kept)
    }

    /// Keeps nothing any more, which is nothing that a conclusion could be drawn from.
    fn give_way(&mut self, contact: Instant) {
        self.see(Sight::Lost { since: contact, why: list::TOO_MUCH.to_owned() });
        lock(&self.space).forget(self.kind);
        self.kept = 0;
        // It has been heard.
        let _ = self.out.notified().now_or_never();
    }

    /// Puts an object of the watch into the store, where it takes so much from now on; returns its resourceVersion.
    fn take(
        &mut self,
        value: Value,
        size: impl FnOnce(&Object) -> usize,
        put: impl FnOnce(&mut Space, Object) -> Change,
    ) -> Option<String> {
        let version = at(&value, "/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
        if let Some(object) = self.object(value) {
            let mut space = lock(&self.space);
            let before = space.known(object.reference()).map_or(0, |known| list::size(known.value()));
            self.kept = (self.kept + size(&object)).saturating_sub(before);
            let change = put(&mut space, object);
            drop(space);
            self.tell(change);
        }
        version
    }

    /// An object as it was read; `None` if it has no name, which no API server sends.
    pub(super) fn object(&self, value: Value) -> Option<Object> {
        let name = at(&value, "/metadata/name")?.as_str()?.parse().ok()?;
        let reference = ObjectRef { kind: self.kind, namespace: self.namespace.clone(), name };
        let mut object = Object::new(reference, value);
        trim::trim(&mut object, self.cluster.manager());
        Some(object)
    }

    async fn open(
        &self,
        version: &str,
    ) -> Result<impl StreamExt<Item = Result<WatchEvent<Value>, Failure>> + Unpin + use<>, Failure> {
        // Spread over a minute, so that watches opened together do not end together.
        let seconds = (240 + random() % 60).to_string();
        let mut query = vec![("watch", "true"), ("allowWatchBookmarks", "true")];
        query.extend([("resourceVersion", version), ("timeoutSeconds", &seconds)]);
        let selector = self.selector();
        if let Some(selector) = &selector {
            query.push(("fieldSelector", selector));
        }
        let path = self.cluster.collection(self.kind, &self.namespace).await?;
        self.cluster.open(request::get(&path, &query)).await
    }

    pub(super) fn selector(&self) -> Option<String> {
        self.only.map(|name| format!("metadata.name={name}"))
    }

    /// Waits before going on after a watch has ended: a server that ends each at once must not be asked in a busy loop,
    /// and what it tells meanwhile is not seen.
    async fn breathe(&mut self, contact: Instant) {
        let pause = self.next_pause(LONGEST_PAUSE);
        if pause > NOTICED {
            self.see(Sight::Lost { since: contact, why: "the API server ends each watch at once".to_owned() });
        }
        sleep(pause).await;
    }

    /// Notes the failure and waits before the next try.
    async fn pause(&mut self, failure: &Failure, contact: Instant) {
        let longest = if failure.is_missing_kind() {
            self.see(Sight::Missing);
            LONGEST_PAUSE_MISSING
        } else {
            self.see(Sight::Lost { since: contact, why: failure.to_string() });
            LONGEST_PAUSE
        };
        tracing::debug!(kind = %self.kind, namespace = %self.namespace, %failure, "not watching");
        sleep(self.next_pause(longest)).await;
    }

    /// Doubles with each try up to `longest`; anything between half of that and the whole.
    fn next_pause(&mut self, longest: Duration) -> Duration {
        let whole = PAUSE.saturating_mul(1 << self.tries.min(16)).min(longest);
        self.tries += 1;
        let half = whole / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_nanos(random() % nanos)
    }

    fn see(&self, sight: Sight) {
        let change = lock(&self.space).see(self.kind, sight);
        self.tell(change);
    }

    fn tell(&self, change: Change) {
        if change == Change::Yes {
            self.notify.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::RESPONSE_LIMIT;
    use super::super::testing::Fake;
    use super::*;
    use crate::workload::live::LiveState;
    use serde_json::json;

    fn config(name: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "uid": name, "resourceVersion": version}})
    }

    fn page(items: &[Value], version: &str, next: &str) -> (u16, Value) {
        (200, json!({"metadata": {"resourceVersion": version, "continue": next}, "items": items}))
    }

    fn event(kind: &str, object: &Value) -> String {
        format!("{}\n", json!({"type": kind, "object": object}))
    }

    /// Follows one watch of ConfigMaps until `met`; what was asked meanwhile, `limit` and `timeoutSeconds` left out.
    async fn follow(fake: &Fake, met: impl Fn(Observed) -> bool) -> Vec<String> {
        follow_within(fake, &Arc::new(Total::of(TOTAL)), met).await
    }

    async fn follow_within(fake: &Fake, total: &Arc<Total>, met: impl Fn(Observed) -> bool) -> Vec<String> {
        let (space, notify) =
            (Arc::new(Mutex::new(Space::new("c", &BTreeSet::from([Kind::ConfigMap])))), Arc::new(Notify::new()));
        let watch = Watch {
            cluster: fake.cluster().await,
            kind: Kind::ConfigMap,
            namespace: "shop".parse().unwrap(),
            only: None,
            space: space.clone(),
            notify: notify.clone(),
            lists: Arc::new(Semaphore::new(1)),
            page: PAGE,
            room: ROOM,
            total: total.clone(),
            out: total.enter(&("shop".parse().unwrap(), Kind::ConfigMap)),
            kept: 0,
            tries: 0,
        };
        let look = async {
            while !met(lock(&space).observed()) {
                notify.notified().await;
            }
        };
        tokio::select! {
            () = watch.follow() => panic!("the watch ended"),
            () = look => {}
            () = sleep(Duration::from_secs(3_600)) => panic!("{:?}", lock(&space).observed()),
        }
        let shown = |line: String| {
            let query = line.split_once('?').map_or("", |(_, query)| query).split('&');
            let told = |part: &&str| !part.starts_with("limit=") && !part.starts_with("timeoutSeconds=");
            query.filter(told).collect::<Vec<_>>().join("&")
        };
        fake.asked().into_iter().map(|asked| shown(asked.line)).collect()
    }

    fn names(live: &LiveState) -> Vec<String> {
        live.objects.values().map(|object| object.reference().name.to_string()).collect()
    }

    fn is_ready_with(observed: &Observed, expected: &[&str]) -> bool {
        matches!(observed, Observed::Ready(live) if names(live) == expected)
    }

    const WATCH: &str = "watch=true&allowWatchBookmarks=true&resourceVersion=";

    #[tokio::test(start_paused = true)]
    async fn attack_55_56_a_watch_goes_on_where_it_was_and_lists_again_when_that_is_gone() {
        let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
        let bookmark = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}});
        let fake = Fake::answering([page(&[config("a", "1")], "", "more"), page(&[config("b", "2")], "5", "")])
            .then(200, &(event("ADDED", &config("c", "6")) + &event("BOOKMARK", &bookmark)))
            .then(200, &event("DELETED", &config("a", "8")))
            .then(200, &event("ERROR", &gone))
            .then(200, &page(&[config("d", "9")], "10", "").1.to_string())
            .then(410, &gone.to_string())
            .then(200, &page(&[config("e", "11")], "12", "").1.to_string())
            .then(200, "");
        let asked = follow(&fake, |observed| is_ready_with(&observed, &["e"])).await;
        let watch = |version: &str| format!("{WATCH}{version}");
        let expected = ["", "continue=more", &watch("5"), &watch("7"), &watch("8"), "", &watch("10"), ""];
        // The last watch may have been opened by now, or not.
        assert_eq!(asked[..expected.len()], expected);
    }

    #[tokio::test(start_paused = true)]
    async fn attack_101_a_page_that_is_longer_than_an_answer_may_be_is_asked_for_in_halves() {
        let large = json!({"metadata": {"name": "large"}, "data": {"x": "x".repeat(RESPONSE_LIMIT)}});
        let fake = Fake::answering([page(&[large], "5", ""), page(&[config("a", "1")], "", "more")])
            .then(200, &page(&[config("b", "2")], "5", "").1.to_string())
            .then(200, "");
        follow(&fake, |observed| is_ready_with(&observed, &["a", "b"])).await;
        let asked: Vec<String> = fake.asked().into_iter().map(|asked| asked.line).take(3).collect();
        let limit =
            |line: &String| line.split_once("limit=").map(|(_, rest)| rest.split('&').next().unwrap().to_owned());
        assert_eq!(asked.iter().filter_map(limit).collect::<Vec<_>>(), ["200", "100", "100"], "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn attack_56_while_it_is_listed_again_nothing_is_seen() {
        let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
        let fake = Fake::answering([page(&[config("a", "1")], "5", "")])
            .then(200, &event("ERROR", &gone))
            .late()
            .then(200, &page(&[config("b", "7")], "8", "").1.to_string())
            .then(200, "");
        let lost = std::cell::Cell::new(false);
        follow(&fake, |observed| {
            let is_lost = matches!(&observed, Observed::Lost { why, .. } if why == "ConfigMap: it is listed again");
            lost.set(lost.get() || is_lost);
            is_ready_with(&observed, &["b"])
        })
        .await;
        assert!(lost.get());
    }

    #[tokio::test(start_paused = true)]
    async fn attack_113_more_than_there_is_room_for_is_not_kept_and_the_kind_cannot_be_read() {
        let large = |n: usize| json!({"metadata": {"name": format!("large-{n}")}, "data": {"x": "x".repeat(1 << 20)}});
        let pages = |from: usize| (from..from + 10).map(large).collect::<Vec<_>>();
        let mut fake = Fake::default();
        for n in 0..7 {
            fake = fake.then(200, &page(&pages(n * 10), "", "more").1.to_string());
        }
        let fake = fake.then(200, &page(&[config("a", "1")], "9", "").1.to_string()).then(200, "");
        let refused = std::cell::Cell::new(false);
        follow(&fake, |observed| {
            if let Observed::NotYet { why } = &observed {
                refused.set(refused.get() || why == "ConfigMap: its objects take more than 64 MiB");
            }
            is_ready_with(&observed, &["a"])
        })
        .await;
        assert!(refused.get());
    }

    #[tokio::test(start_paused = true)]
    async fn attack_117_what_has_grown_the_most_is_not_kept_until_there_is_room_again() {
        let of_size = |size: usize| json!({"metadata": {"name": "b", "uid": "b", "resourceVersion": "6"}, "data": {"x": "x".repeat(size)}});
        let fake = Fake::answering([page(&[config("a", "1")], "5", "")])
            .then(200, &event("ADDED", &of_size(50_000)))
            .then(200, &page(&[config("a", "1"), of_size(50_000)], "7", "").1.to_string())
            .then(200, &page(&[config("a", "1"), of_size(10)], "8", "").1.to_string())
            .then(200, "");
        // Others have the rest, and have not grown.
        let total = Arc::new(Total::of(64_000));
        let other = ("blog".parse().unwrap(), Kind::ConfigMap);
        let told = total.enter(&other);
        assert!(total.keep(&other, 40_000));
        total.listed(&other);
        let given_way = std::cell::Cell::new(0);
        follow_within(&fake, &total, |observed| {
            if let Observed::Lost { why, last, .. } = &observed
                && why.ends_with(list::TOO_MUCH)
                && names(last).is_empty()
            {
                given_way.set(given_way.get() + 1);
            }
            is_ready_with(&observed, &["a", "b"])
        })
        .await;
        assert!(given_way.get() > 0);
        assert!(told.notified().now_or_never().is_none(), "nobody else notices");
    }

    #[tokio::test(start_paused = true)]
    async fn attack_55_59_broken_answers_never_empty_what_is_known() {
        let fake = Fake::answering([page(&[config("a", "1")], "", "more")])
            .then(500, "{}")
            .then(200, "<html>log in</html>")
            .then(200, "{}")
            .then(200, &page(&[], "", "").1.to_string())
            .then(200, &page(&[config("a", "1")], "5", "").1.to_string())
            .then(200, &event("ADDED", &config("b", "6")))
            .then(200, "{\"type\": \"DELETED\", \"object\": ")
            .then(502, "<html>bad gateway</html>")
            .then(429, "{}");
        let lost = |observed| match observed {
            Observed::Lost { why, last, .. } => {
                assert_eq!(names(&last), ["a", "b"]);
                why.contains("unexpected GET")
            }
            Observed::Ready(_) | Observed::Partly(_) | Observed::NotYet { .. } => false,
        };
        let asked = follow(&fake, lost).await;
        assert_eq!(
            asked[7..],
            [WATCH.to_owned() + "6", WATCH.to_owned() + "6", WATCH.to_owned() + "6", WATCH.to_owned() + "6"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_ends_each_watch_at_once_is_not_asked_without_end() {
        let mut fake = Fake::answering([page(&[config("a", "1")], "5", "")]);
        for _ in 0..20 {
            fake = fake.then(200, "");
        }
        let lost = |observed| matches!(observed, Observed::Lost { why, .. } if why.contains("ends each watch"));
        let asked = follow(&fake, lost).await;
        assert!((5..9).contains(&asked.len()), "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unserved_kind_is_asked_for_ever_more_rarely() {
        let mut fake = Fake::default();
        for _ in 0..20 {
            fake = fake.then(404, "404 page not found\n");
        }
        let fake = fake.then(200, &page(&[], "5", "").1.to_string()).then(200, "");
        let start = Instant::now();
        let missing = std::cell::Cell::new(false);
        follow(&fake, |observed| {
            let Observed::Ready(live) = observed else { return false };
            missing.set(missing.get() || live.missing.contains(&Kind::ConfigMap));
            live.missing.is_empty()
        })
        .await;
        assert!(missing.get());
        // 12 tries double from 0.1 s to 300 s, at least half of each; 8 more take between 150 s and 300 s.
        let hour = Duration::from_secs(3_600);
        assert!(start.elapsed() > Duration::from_secs(8 * 150) && start.elapsed() < hour, "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn x_18_kinds_that_are_left_out_are_not_asked_for_and_who_needs_them_waits() {
        let mut fake = Fake::answering([page(&[], "5", ""), page(&[], "5", "")]);
        for _ in 0..20 {
            fake = fake.then(200, "");
        }
        let (cluster, notify) = (fake.cluster().await, Arc::new(Notify::new()));
        let namespace: Namespace = "shop".parse().unwrap();
        let kinds = BTreeSet::from([Kind::ConfigMap]);
        let watches = Watches::start(&cluster, std::slice::from_ref(&namespace), &kinds, &notify);
        let live = loop {
            if let Observed::Ready(live) = watches.snapshot(&namespace) {
                break live;
            }
            notify.notified().await;
        };
        assert!(live.unwatched.contains(&Kind::Ingress) && !live.unwatched.contains(&Kind::ConfigMap), "{live:?}");
        assert!(fake.asked().iter().all(|asked| asked.line.contains("/configmaps")), "{:?}", fake.asked());
    }
}
