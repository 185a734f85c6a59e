//! What is live, as watches know it: changes, our own writes, broken connections, missing kinds.

use super::world::{World, version};
use crate::support::audit::{Mark, Request as Asked};
use crate::support::cluster::{Bed, PATIENCE};
use http::{Request, Uri};
use kube::client::Body;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate::cluster::brake::BrakeSight;
use tidegate::cluster::client::Cluster;
use tidegate::cluster::store::Observed;
use tidegate::cluster::watch::Watches;
use tidegate::gate::brake::BrakeWord;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::object::{Kind, Object, ObjectRef};
use tidegate::plan::action::{GoesBy, Verb};
use tidegate::workload::live::{Expects, LiveState, WriteOutcome};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

on_both! {
    our_own_writes_are_known_at_once_and_for_good,
    the_brake_is_watched;
    watches_see_what_is_there_what_comes_and_what_goes,
    a_broken_connection_is_noticed_and_nothing_is_missed,
    a_kind_that_is_not_served_is_missing_until_it_is,
}

/// Watches of the world's namespace.
struct Sight {
    watches: Watches,
    notify: Arc<Notify>,
}

impl Sight {
    fn of(world: &World, cluster: &Cluster) -> Self {
        let notify = Arc::new(Notify::new());
        let watches =
            Watches::start(cluster, std::slice::from_ref(&world.namespace), &Caps::default().watched(), &notify);
        Self { watches, notify }
    }

    /// Waits until `met` finds something, looking again whenever the watches say that something changed.
    async fn until<T>(&self, what: &str, world: &World, met: impl Fn(Observed) -> Option<T>) -> T {
        let look = async {
            loop {
                if let Some(found) = met(self.watches.snapshot(&world.namespace)) {
                    return found;
                }
                self.notify.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, look)
            .await
            .unwrap_or_else(|_| panic!("{what}: {:?}", self.watches.snapshot(&world.namespace)))
    }

    async fn ready(&self, world: &World) -> Arc<LiveState> {
        self.until("ready", world, ready).await
    }
}

fn ready(observed: Observed) -> Option<Arc<LiveState>> {
    match observed {
        Observed::Ready(live) => Some(live),
        Observed::Partly(_) | Observed::NotYet { .. } | Observed::Lost { .. } => None,
    }
}

fn data<'a>(live: &'a LiveState, reference: &ObjectRef) -> Option<&'a str> {
    live.get(reference)?.text("/data/k")
}

async fn watches_see_what_is_there_what_comes_and_what_goes() {
    let world = World::new().await;
    let mut there = world.config_map("there", json!({"k": "1"}));
    there.annotate("kubectl.kubernetes.io/last-applied-configuration", "{}");
    world.by_hand(&there).await;
    let sight = Sight::of(&world, &world.cluster);
    let live = sight.ready(&world).await;
    assert_eq!(live.cluster_uid, world.cluster.uid());
    let seen = live.get(there.reference()).unwrap();
    assert_eq!(seen.annotation("kubectl.kubernetes.io/last-applied-configuration"), None);
    assert_eq!(seen.text("/metadata/managedFields/0/manager"), Some("hand"));

    world.by_hand(&world.deployment("podinfo", json!({"replicas": 2}))).await;
    let pods = |observed| ready(observed).filter(|live| live.of_kind(Kind::Pod).count() == 2);
    let live = sight.until("two pods", &world, pods).await;
    let pod = live.of_kind(Kind::Pod).next().unwrap();
    assert_eq!((pod.label("app"), pod.at("/spec/containers")), (Some("podinfo"), None));

    world.perform(Verb::Delete { target: there.reference().clone(), expects: version(seen), by: GoesBy::Policy }).await;
    let gone = |observed| ready(observed).filter(|live| live.get(there.reference()).is_none());
    sight.until("the deletion", &world, gone).await;
    let elsewhere = sight.watches.snapshot(&"kube-system".parse().unwrap());
    assert!(matches!(elsewhere, Observed::NotYet { .. }), "{elsewhere:?}");
}

async fn our_own_writes_are_known_at_once_and_for_good(world: World) {
    let sight = Sight::of(&world, &world.cluster);
    sight.ready(&world).await;
    let know = || match sight.watches.snapshot(&world.namespace) {
        Observed::Ready(live) | Observed::Partly(live) | Observed::Lost { last: live, .. } => live,
        Observed::NotYet { why } => panic!("{why}"),
    };
    let wanted = |value: u32| world.config_map("a", json!({"k": value.to_string()}));
    let mut last = world.applied(&wanted(0), Expects::Absent).await;
    sight.watches.absorb(last.clone(), &Expects::Absent);
    for value in 1..50 {
        last = world.applied(&wanted(value), version(&last)).await;
        sight.watches.absorb(last.clone(), &version(&last));
        // Older news, which arrive meanwhile, do not undo it.
        assert_eq!(data(&know(), last.reference()), Some(value.to_string().as_str()));
        tokio::task::yield_now().await;
    }
    let target = last.reference().clone();
    let deleted =
        world.perform(Verb::Delete { target: target.clone(), expects: version(&last), by: GoesBy::Policy }).await;
    assert_eq!(deleted, WriteOutcome::Done(None));
    sight.watches.absorb_delete(&target, last.uid().unwrap());
    assert_eq!(know().get(&target), None);
    let again = world.applied(&wanted(99), Expects::Absent).await;
    let seen = |observed| ready(observed).filter(|live| live.get(&target).is_some_and(|o| o.uid() == again.uid()));
    sight.until("the next of that name", &world, seen).await;
}

async fn the_brake_is_watched(world: World) {
    let sight = Sight::of(&world, &world.cluster);
    let word = || match sight.watches.brake() {
        BrakeSight::Known(brake) => Some(brake.of(&"shop/podinfo".parse().unwrap())),
        BrakeSight::Unknown { .. } => None,
    };
    let until = async |expected| sight.until("the brake", &world, |_| (word() == expected).then_some(())).await;
    until(Some(None)).await;
    let brake = world.config_map("tidegate-brake", json!({"all": "hold", "shop.podinfo": "revert\n"}));
    let at_home = ObjectRef { namespace: world.cluster.home().clone(), ..brake.reference().clone() };
    world.by_hand(&Object::new(at_home, brake.value().clone())).await;
    until(Some(Some(BrakeWord::Revert))).await;
}

/// A door to the API server that can be shut: what goes through it then is cut, and nobody gets in.
struct Door {
    address: String,
    open: watch::Sender<bool>,
}

impl Door {
    async fn to(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (open, is_open) = watch::channel(true);
        let target = world.address();
        tokio::spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                let (mut is_open, target) = (is_open.clone(), target.clone());
                tokio::spawn(async move {
                    if *is_open.borrow() {
                        let mut outer = TcpStream::connect(target).await.unwrap();
                        tokio::select! {
                            _ = tokio::io::copy_bidirectional(&mut inner, &mut outer) => {}
                            _ = is_open.wait_for(|open| !open) => {}
                        }
                    }
                });
            }
        });
        Self { address, open }
    }
}

fn lost(observed: Observed) -> Option<(String, Arc<LiveState>)> {
    match observed {
        Observed::Lost { why, last, .. } => Some((why, last)),
        Observed::Ready(_) | Observed::Partly(_) | Observed::NotYet { .. } => None,
    }
}

/// How often the watches of the world's namespace listed its ConfigMaps.
async fn lists(bed: &Bed, world: &World, since: Mark) -> usize {
    let uri = format!("/api/v1/namespaces/{}/configmaps?limit=200", world.namespace);
    let listed = |asked: &&Asked| asked.verb == "list" && asked.uri == uri && asked.code == 200;
    bed.requests_since(since).await.iter().filter(listed).count()
}

async fn a_broken_connection_is_noticed_and_nothing_is_missed() {
    let world = World::new().await;
    let door = Door::to(&world).await;
    let cluster = world.connect_to(&door.address).await;
    for object in ["stays", "goes"] {
        world.by_hand(&world.config_map(object, json!({"k": "1"}))).await;
    }
    let bed = Bed::shared().await;
    let start = bed.mark().await;
    let sight = Sight::of(&world, &cluster);
    sight.ready(&world).await;
    let brake = || matches!(sight.watches.brake(), BrakeSight::Known(_)).then_some(());
    sight.until("the brake", &world, |_| brake()).await;

    door.open.send(false).unwrap();
    let (why, last) = sight.until("lost", &world, lost).await;
    assert!(!why.is_empty());
    let reference = |name| world.config_map(name, json!({})).reference().clone();
    assert_eq!(data(&last, &reference("goes")), Some("1"));
    assert_eq!(brake(), Some(()));

    world.by_hand(&world.config_map("stays", json!({"k": "2"}))).await;
    let goes = world.read(&reference("goes")).await.unwrap();
    world.perform(Verb::Delete { target: reference("goes"), expects: version(&goes), by: GoesBy::Policy }).await;
    door.open.send(true).unwrap();
    let caught_up = |observed| {
        ready(observed)
            .filter(|live| data(live, &reference("stays")) == Some("2") && live.get(&reference("goes")).is_none())
    };
    sight.until("caught up", &world, caught_up).await;
    assert_eq!(lists(bed, &world, start).await, 1, "the watch went on where it was");
}

/// What has changed while the API server forgot its history is known; on a bed that nobody else has.
pub(crate) async fn is_listed_again(bed: &Bed) {
    let world = World::on(bed).await;
    let object = |value: &str| world.config_map("a", json!({"k": value}));
    world.by_hand(&object("1")).await;
    let start = bed.mark().await;
    let sight = Sight::of(&world, &world.cluster);
    sight.ready(&world).await;
    // History goes on without a word to the watch of ConfigMaps. Then the API server is killed, and comes back without
    // the part of it that this watch needs: 410.
    for name in ["b", "c", "d"] {
        world.by_hand(&world.object(Kind::ServiceAccount, name, json!({}))).await;
    }
    bed.fault(&["expire"]).await;
    world.by_hand(&object("2")).await;
    let caught_up = |observed| ready(observed).filter(|live| data(live, object("").reference()) == Some("2"));
    sight.until("caught up", &world, caught_up).await;
    assert_eq!(lists(bed, &world, start).await, 2);
}

async fn a_kind_that_is_not_served_is_missing_until_it_is() {
    let world = World::new().await;
    // Asks the real API server for a version of the Gateway API that it does not serve.
    let missing = Arc::new(AtomicBool::new(true));
    let (client, asked) = (world.client().await, missing.clone());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        if asked.load(Ordering::Relaxed) {
            let uri =
                request.uri().to_string().replace("/gateway.networking.k8s.io/v1/", "/gateway.networking.k8s.io/v0/");
            *request.uri_mut() = uri.parse::<Uri>().unwrap();
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    let cluster = Cluster::over(service, world.cluster.home().clone(), world.cluster.instance()).await.unwrap();
    let sight = Sight::of(&world, &cluster);
    let live = sight.ready(&world).await;
    assert_eq!(live.missing.iter().collect::<Vec<_>>(), [&Kind::GrpcRoute, &Kind::HttpRoute]);
    let route = world.object(Kind::HttpRoute, "podinfo", json!({"spec": {}}));
    assert_eq!(cluster.dry_run(&route, &Expects::Absent).await, WriteOutcome::MissingKind(Kind::HttpRoute));

    missing.store(false, Ordering::Relaxed);
    sight.until("served", &world, |observed| ready(observed).filter(|live| live.missing.is_empty())).await;
}
