//! The room `cluster` over the world in a process when things go wrong there, and many objects at once.

use crate::cluster::world::{World, version};
use crate::heap;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::cluster::lease::{ElectionTurn, Lease, LeaseAnnotations, Timing};
use tidegate::cluster::store::Observed;
use tidegate::cluster::watch::Watches;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::object::Kind;
use tidegate::plan::action::{GoesBy, Verb as Act};
use tidegate::workload::live::{Expects, LiveState, WriteOutcome};
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::kube_api::{ApiVerb, Fault, FaultVerdict, Happened, KubeApi, SeenRequest, What};
use tokio::sync::Notify;

/// How long a condition may take on the paused clock, which moves on by itself when everybody waits.
const PATIENCE: Duration = Duration::from_secs(3_600);

struct Sight {
    world: World,
    watches: Watches,
    notify: Arc<Notify>,
}

impl Sight {
    async fn new() -> Self {
        let world = World::in_process().await;
        world.by_hand(&world.config_map("a", json!({"k": "1"}))).await;
        let notify = Arc::new(Notify::new());
        let watches =
            Watches::start(&world.cluster, std::slice::from_ref(&world.namespace), &Caps::default().watched(), &notify);
        let sight = Self { world, watches, notify };
        sight.until("ready", |live| live.of_kind(Kind::ConfigMap).count() == 1).await;
        sight
    }

    fn api(&self) -> &KubeApi {
        self.world.api.as_ref().unwrap()
    }

    async fn set(&self, name: &str, value: &str) {
        self.world.by_hand(&self.world.config_map(name, json!({"k": value}))).await;
    }

    fn known(&self, name: &str) -> Option<String> {
        let live = match self.watches.snapshot(&self.world.namespace) {
            Observed::Ready(live) | Observed::Partly(live) | Observed::Lost { last: live, .. } => live,
            Observed::NotYet { .. } => return None,
        };
        let reference = self.world.config_map(name, json!({})).reference().clone();
        live.get(&reference)?.text("/data/k").map(str::to_owned)
    }

    /// Waits until what is known is up to date and `met` holds of it.
    async fn until(&self, what: &str, met: impl Fn(&LiveState) -> bool) {
        let look = async {
            loop {
                let observed = self.watches.snapshot(&self.world.namespace);
                if let Observed::Ready(live) = &observed
                    && met(live)
                {
                    return;
                }
                self.notify.notified().await;
            }
        };
        let done = tokio::time::timeout(PATIENCE, look).await;
        assert!(done.is_ok(), "{what}: {:?}", self.watches.snapshot(&self.world.namespace));
    }

    async fn until_known(&self, name: &str, value: &str) {
        self.until(value, |_| self.known(name).as_deref() == Some(value)).await;
    }
}

/// Counts what the instance asks of that sort.
fn counting(
    api: &KubeApi,
    verb: ApiVerb,
    verdict: impl Fn(&SeenRequest<'_>, usize) -> FaultVerdict + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let seen_so_far = count.clone();
    api.judge(move |seen| {
        let config = seen.resource.kind == "ConfigMap" && seen.caller == "it" && seen.name != "tidegate-brake";
        let asked = matches!(seen.what, What::Request { verb: asked, .. } if asked == verb);
        let number = if config && asked { seen_so_far.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        if config { verdict(seen, number) } else { FaultVerdict::Pass }
    });
    count
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was() {
    let sight = Sight::new().await;
    let lists = counting(sight.api(), ApiVerb::List, |_, _| FaultVerdict::Pass);
    sight.api().break_watches();
    sight.set("a", "2").await;
    sight.until_known("a", "2").await;
    assert_eq!(lists.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_history_is_listed_again() {
    let sight = Sight::new().await;
    let lists = counting(sight.api(), ApiVerb::List, |_, _| FaultVerdict::Pass);
    // A change that the watch cannot be told before its connection breaks and the history goes.
    let world = sight.api().change(|world| {
        let held = world.get(Resource::at("v1", "configmaps").unwrap(), "cluster", "a").unwrap().as_ref().clone();
        let mut next = held;
        next["data"]["k"] = "2".into();
        world.update(next, "", "hand").unwrap();
        world.compact();
        world.clone()
    });
    sight.api().break_watches();
    sight.until_known("a", "2").await;
    assert!(lists.load(Ordering::Relaxed) >= 1, "{world:?}");
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_are_tried_again() {
    let world = World::in_process().await;
    world.by_hand(&world.config_map("a", json!({"k": "1"}))).await;
    let faults =
        [Fault::Reset, Fault::TooManyRequests, Fault::Internal, Fault::Unavailable, Fault::Timeout, Fault::Silence];
    let lists = counting(world.api.as_ref().unwrap(), ApiVerb::List, move |_, number| {
        faults.get(number.wrapping_sub(1)).map_or(FaultVerdict::Pass, |fault| FaultVerdict::Before(*fault))
    });
    let notify = Arc::new(Notify::new());
    let watches =
        Watches::start(&world.cluster, std::slice::from_ref(&world.namespace), &Caps::default().watched(), &notify);
    let look = async {
        while !matches!(watches.snapshot(&world.namespace), Observed::Ready(_)) {
            notify.notified().await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap();
    // The brake is watched by a list of its own.
    assert!(lists.load(Ordering::Relaxed) > faults.len());
}

#[tokio::test(start_paused = true)]
async fn events_may_be_doubled_and_late() {
    let sight = Sight::new().await;
    sight.api().judge(|seen| match seen.what {
        What::Event(Happened::Modified) => FaultVerdict::Double,
        What::Event(Happened::Added) => FaultVerdict::Delay(chrono::TimeDelta::seconds(5)),
        What::Event(Happened::Deleted) | What::Request { .. } => FaultVerdict::Pass,
    });
    sight.set("a", "2").await;
    sight.until_known("a", "2").await;
    sight.set("b", "1").await;
    sight.set("a", "3").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((sight.known("b"), sight.known("a").as_deref()), (None, Some("2")));
    sight.api().pass(chrono::TimeDelta::seconds(5));
    sight.until_known("a", "3").await;
    assert_eq!(sight.known("b").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_definition_comes_and_goes() {
    let sight = Sight::new().await;
    let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute").unwrap();
    sight.api().change(|world| world.uninstall(routes));
    sight.until("missing", |live| live.missing.contains(&Kind::HttpRoute)).await;
    let route = sight.world.object(Kind::HttpRoute, "podinfo", json!({"spec": {}}));
    let outcome = sight.world.cluster.dry_run(&route, &Expects::Absent).await;
    assert_eq!(outcome, WriteOutcome::MissingKind(Kind::HttpRoute));
    sight.api().change(|world| world.install(routes));
    sight.until("served", |live| live.missing.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_fails_after_it_took_effect_is_stale_when_tried_again() {
    let world = World::in_process().await;
    let first = world.applied(&world.config_map("a", json!({"k": "1"})), Expects::Absent).await;
    let wanted = world.config_map("a", json!({"k": "2"}));
    let outcomes = [
        (FaultVerdict::Before(Fault::Internal), "Retriable", "1"),
        (FaultVerdict::Before(Fault::Conflict), "Stale", "1"),
        (FaultVerdict::Before(Fault::Silence), "Retriable", "1"),
        (FaultVerdict::After(Fault::Reset), "Retriable", "2"),
        (FaultVerdict::Pass, "Stale", "2"),
    ];
    for (verdict, expected, value) in outcomes {
        world.api.as_ref().unwrap().judge(move |seen| match seen.what {
            What::Request { verb: ApiVerb::Patch, .. } => verdict,
            What::Request { .. } | What::Event(_) => FaultVerdict::Pass,
        });
        let outcome = world.apply(&wanted, version(&first)).await;
        assert!(format!("{outcome:?}").starts_with(expected), "{verdict:?}: {outcome:?}");
        assert_eq!(world.read(first.reference()).await.unwrap().text("/data/k"), Some(value), "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_is_of_an_earlier_moment() {
    let world = World::in_process().await;
    let first = world.applied(&world.config_map("a", json!({"k": "1"})), Expects::Absent).await;
    let second = world.applied(&world.config_map("a", json!({"k": "2"})), version(&first)).await;
    let then: u64 = first.resource_version().unwrap().parse().unwrap();
    world.api.as_ref().unwrap().judge(move |_| FaultVerdict::Stale(then));
    assert_eq!(world.read(first.reference()).await.as_ref(), Some(&first));
    // A write is never of an earlier moment.
    let outcome = world
        .perform(Act::Delete { target: first.reference().clone(), expects: version(&first), by: GoesBy::Policy })
        .await;
    assert!(matches!(outcome, WriteOutcome::Stale(_)), "{outcome:?}");
    let outcome = world
        .perform(Act::Delete { target: first.reference().clone(), expects: version(&second), by: GoesBy::Policy })
        .await;
    assert_eq!(outcome, WriteOutcome::Done(None));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_written_unseen_is_still_ours() {
    let world = World::in_process().await;
    let mut lease = Lease::new(world.cluster.clone(), "me", Timing::default());
    let api = world.api.as_ref().unwrap();
    let wall = |seconds| api.look(|world| world.now()) + chrono::TimeDelta::seconds(seconds);
    let now = tokio::time::Instant::now();
    let turn = lease.turn(&LeaseAnnotations::default(), now, wall(0)).await;
    assert!(matches!(turn, ElectionTurn::Leading { .. }), "{turn:?}");
    api.judge(|seen| match seen.what {
        What::Request { verb: ApiVerb::Update, .. } => FaultVerdict::After(Fault::Reset),
        What::Request { .. } | What::Event(_) => FaultVerdict::Pass,
    });
    let turn = lease.turn(&LeaseAnnotations::default(), now + Duration::from_secs(5), wall(5)).await;
    assert!(matches!(turn, ElectionTurn::Unknown { .. }), "{turn:?}");
    api.acquit();
    let turn = lease.turn(&LeaseAnnotations::default(), now + Duration::from_secs(6), wall(6)).await;
    let ElectionTurn::Leading { held, inherited: None } = turn else { panic!("{turn:?}") };
    assert_eq!(held.epoch(), 1);
}

#[tokio::test]
async fn ten_thousand_objects_are_no_burden() {
    let world = World::in_process().await;
    let api = world.api.as_ref().unwrap();
    api.change(|inside| {
        for number in 0..10_000 {
            let metadata = json!({"name": format!("c{number}"), "namespace": "cluster"});
            inside.create("v1", "ConfigMap", "test", json!({"metadata": metadata, "data": {"k": "1"}})).unwrap();
        }
    });
    let notify = Arc::new(Notify::new());
    let watches =
        Watches::start(&world.cluster, std::slice::from_ref(&world.namespace), &Caps::default().watched(), &notify);
    while !matches!(watches.snapshot(&world.namespace), Observed::Ready(_)) {
        notify.notified().await;
    }
    let Observed::Ready(live) = watches.snapshot(&world.namespace) else { panic!("not ready any more") };
    assert_eq!(live.of_kind(Kind::ConfigMap).count(), 10_000);
    // One write must not cost what the number of objects does: in bytes that are asked for, all of them on this thread.
    let full = asked_for(&world, 100).await;
    let empty = World::in_process().await;
    let bare = asked_for(&empty, 100).await;
    assert!(full < bare * 10, "{full} bytes among ten thousand, {bare} among none");
}

/// The bytes that are asked for while so many objects are written.
async fn asked_for(world: &World, count: usize) -> usize {
    let before = heap::asked();
    for number in 0..count {
        let object = world.config_map(&format!("c{number}"), json!({"k": number.to_string()}));
        world.by_hand(&object).await;
    }
    heap::asked() - before
}
