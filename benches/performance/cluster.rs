//! A real API server: from a change on main to the first write, and a restart with open runs.

use crate::fleet::Fleet;
use crate::git::{Repository, stream};
use crate::leader::{Leader, settle};
use crate::measure::{Finding, Samples, timed};
use crate::retreat::providers;
use crate::support::cluster::{Bed, Space, program};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tidegate::cluster::client::Cluster;
use tidegate::cluster::connection::ClusterSource;
use tidegate::cluster::store::Observed;
use tidegate::cluster::watch::Watches;
use tidegate::manifest::installation::{self, Caps, Installation};
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::evidence::Providers;
use tidegate::reconcile::tick::Requeue;
use tidegate::reconcile::world::Backends;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Notify;

const ROLLOUTS: usize = 1_000;
/// How many of them have an open run.
const OPEN: usize = 10;
const REPETITIONS: usize = 7;

/// Rollouts of a real cluster and a real Git server.
pub(crate) struct Real {
    pub(crate) bed: Bed,
    space: Space,
    pub(crate) fleet: Fleet,
    pub(crate) repository: Repository,
    pub(crate) installation: Installation,
    pub(crate) providers: Providers,
}

impl Real {
    /// Its namespaces get names of their own.
    pub(crate) async fn new(mut fleet: Fleet) -> Self {
        let bed = Bed::own().await;
        let mut space = bed.space("bench").await;
        let mut others = Vec::new();
        for name in &mut fleet.namespaces {
            let other = bed.space("fleet").await;
            name.clone_from(&other.name);
            others.push(other);
        }
        space.serve(&fleet.namespaces).await;
        let repository = Repository::of(&fleet).await;
        let cluster = format!("{{kubeconfigFile: {}}}", space.kubeconfig.display());
        let text = fleet.installation(&repository.url(), &cluster);
        let installation = installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap();
        let providers = providers(&Arc::default());
        Self { bed, space, fleet, repository, installation, providers }
    }

    /// So many nodes, for more pods than three of them have room for.
    pub(crate) async fn nodes(&self, count: usize) {
        let node = |n: usize| {
            let name = format!("node-{n}");
            let labels = json!({"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}).to_string()
        };
        let all: Vec<String> = (0..count).map(node).collect();
        self.bed.kubectl(&["apply", "-f", "-"], &all.join("\n---\n")).await;
    }

    /// What a process works on that keeps its Git cache under that name.
    pub(crate) async fn world(&self, cache: &str) -> Backends {
        let source = ClusterSource::KubeconfigFile(self.space.kubeconfig.clone());
        Backends {
            cluster: Cluster::connect(&source, &self.installation.instance).await.unwrap(),
            store: self.repository.store(cache),
            providers: self.providers.clone(),
            clock: Clock::default(),
            pass: None,
            transport: None,
        }
    }

    /// Waits until everything was listed; a process that does nothing else.
    async fn lists(&self) {
        let Backends { cluster, .. } = self.world("lists").await;
        let woken = Arc::new(Notify::new());
        let namespaces: Vec<_> = self.installation.caps.namespaces().iter().cloned().collect();
        let watches = Watches::start(&cluster, &namespaces, &Caps::default().watched(), &woken);
        while !namespaces.iter().all(|name| matches!(watches.snapshot(name), Observed::Ready(_))) {
            tokio::select! {
                () = woken.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    }

    fn release(&self, n: usize, version: u32) {
        let file = (self.fleet.manifests_path(n), self.fleet.manifests(n, version).into_bytes());
        self.repository
            .origin
            .git_with(&["fast-import", "--quiet"], &stream("main", Some("refs/heads/main^0"), &[file]));
    }
}

pub(crate) async fn measure() -> Vec<Finding> {
    let real = Real::new(Fleet { routed: OPEN, replicas: 0, ..Fleet::new("bench", 5, ROLLOUTS) }).await;
    let ((), took) = timed(async {
        let mut leader = Leader::start(real.world("first").await, &real.installation, "first").await;
        let mut term = leader.term();
        settle(&mut term).await;
        (0..OPEN).for_each(|n| real.release(n, 2));
        term.look_up().await;
        settle(&mut term).await;
        let open = term.source.view().map_or(0, |view| view.records.states().filter(|s| s.run.is_some()).count());
        assert_eq!(open, OPEN);
        drop(term);
        leader.end().await;
    })
    .await;
    println!("  {ROLLOUTS} rollouts at rest after {} s", took.as_secs());
    vec![writes(&real).await, restarts(&real).await]
}

/// From the start of a poll that finds a change to the first write that is no dry run.
async fn writes(real: &Real) -> Finding {
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let reference = Reference::new(real);
    let mut leader = Leader::start(real.world("first").await, &real.installation, "first").await;
    let mut term = leader.term();
    settle(&mut term).await;
    for n in OPEN..OPEN + REPETITIONS {
        let mark = real.bed.mark().await;
        real.release(n, 2);
        let start = SystemTime::now();
        let next = term.look_up().await;
        assert_eq!(next, Requeue::Now, "it is seen");
        settle(&mut term).await;
        let requests = real.bed.requests_since(mark).await;
        let name = real.fleet.place(n).0;
        let first = requests.iter().find(|request| request.is_write() && request.name == name).expect("it is written");
        let first = SystemTime::from(first.received);
        ours.add(first.duration_since(start).expect("the API server has this machine's clock"));
        theirs.add(reference.rolls_out(real, ROLLOUTS - 1 - n).await);
    }
    // What was changed by hand is recorded too, so that the next process finds nothing to do.
    term.look_up().await;
    settle(&mut term).await;
    drop(term);
    leader.end().await;
    Finding {
        what: "From a poll to the first write of a new version (the record is pushed before), real cluster, 1,000 rollouts, ten open",
        ours,
        unit: "ms",
        reference: Some(("`git fetch` + `git push` + `kubectl apply`", theirs)),
        goal: 1.1,
        share: 0.5,
        why: "Beyond the fetch and the push there is a dry run of each object, a second look at the remote, and more than one tick",
    }
}

/// The same by hand: a clone, and kubectl.
struct Reference {
    clone: tempfile::TempDir,
}

impl Reference {
    fn new(real: &Real) -> Self {
        let clone = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("git")
            .args(["clone", "--quiet", &real.repository.url()])
            .arg(clone.path())
            .status();
        assert!(status.unwrap().success());
        Self { clone }
    }

    async fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.clone.path()).args(["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]);
        assert!(git.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().await.unwrap().success());
    }

    /// Fetches a change, pushes a small commit of its own, and applies the change.
    async fn rolls_out(&self, real: &Real, n: usize) -> Duration {
        real.release(n, 2);
        // The commit is made before: only what has to wait for the fetch is measured.
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a record"]).await;
        let ((), time) = timed(async {
            self.git(&["fetch", "--quiet", "origin", "main"]).await;
            self.git(&["push", "--quiet", "origin", "+HEAD:refs/heads/by-hand"]).await;
            apply(&real.bed.kubeconfig(), real.fleet.place(n).1, &real.fleet.manifests(n, 2)).await;
        })
        .await;
        time
    }
}

/// `kubectl apply`, by server-side apply as we do.
async fn apply(kubeconfig: &Path, namespace: &str, text: &str) {
    let mut kubectl = Command::new(program("kubectl"));
    kubectl.arg("--kubeconfig").arg(kubeconfig).args(["--namespace", namespace, "apply", "--server-side"]);
    kubectl
        .args(["--field-manager", "hand", "--force-conflicts", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = kubectl.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    assert!(child.wait().await.unwrap().success());
}

/// A restart with an empty Git cache, beyond the time of the LISTs.
async fn restarts(real: &Real) -> Finding {
    let (mut ours, mut lists) = (Samples::default(), Samples::default());
    let mark = real.bed.mark().await;
    for n in 0..5 {
        let ((), time) = timed(real.lists()).await;
        lists.add(time);
        let start = Instant::now();
        let mut leader = Leader::start(real.world(&format!("restart-{n}")).await, &real.installation, "again").await;
        settle(&mut leader.term()).await;
        ours.push((start.elapsed().as_secs_f64() - time.as_secs_f64()) * 1_000.0);
        leader.end().await;
    }
    let requests = real.bed.requests_since(mark).await;
    let writes = requests
        .iter()
        .filter(|r| r.is_write() && r.user == real.space.user && !matches!(r.resource.as_str(), "leases" | "events"))
        .count();
    assert_eq!(writes, 0, "nothing differs");
    println!("  the LISTs take {lists} ms");
    Finding {
        what: "A start with an empty Git cache until every rollout is planned, beyond the LISTs, real cluster, 1,000 rollouts, ten open",
        ours,
        unit: "ms",
        reference: None,
        goal: 1_500.0,
        share: 0.5,
        why: "Main and the state branch are fetched whole, and every manifest and record is parsed",
    }
}
