//! What a Git host is asked, and how soon a word that is given there is recorded.

use crate::fleet::Fleet;
use crate::measure::{Finding, Samples};
use crate::rest::Sim;
use crate::retreat::{LEADER, Meter, PATIENCE};
use crate::support::cluster::Bed;
use crate::support::git_host::{GitHost, Hosted};
use crate::support::gitlab::Gitlab;
use crate::support::origin::{Origin, Stamp};
use crate::support::site::Site;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tidegate::analysis::provider::ProviderClient;
use tidegate::forge::host::{CallOutcome, CallPurpose, Host, Pass};
use tidegate::git::Store;
use tidegate::manifest::ids::RolloutId;
use tidegate::manifest::installation::{self, Installation};
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::controller::{self, Once, Options};
use tidegate::reconcile::world::{Backends, pass, remote};
use tidegate::record::store::parse_state;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const REQUESTS: usize = 1_000;
const POLLS: usize = 20;
const MERGES: usize = 15;
const STATE: &str = "refs/heads/tidegate/it/state";
const DECISIONS: &str = "tidegate/it/decisions";

pub(crate) async fn measure() -> Vec<Finding> {
    let mut findings = vec![lists().await, at_rest().await];
    for (queues, what, why) in QUEUES {
        findings.push(merges(queues, what, why).await);
    }
    findings
}

/// How a Gitea keeps its queues, through which a push and then its webhook go.
const QUEUES: [(&str, &str, &str); 2] = [
    (
        "channel",
        "From a merge to the record of the decision, by a webhook (a real Gitea, its queues in memory; the cluster is the world in a \
         process)",
        "The host's delivery, a look, a fetch and a push are in it, and the host starts several programs for each",
    ),
    (
        "level",
        "From a merge to the record of the decision, by a webhook (a real Gitea, its queues on disk as by default)",
        "Gitea looks into each of its queues on disk only every two seconds when little happens, and the push goes through two of them",
    ),
];

/// A fleet in the world in a process whose repository is on a Git host.
struct Story {
    sim: Sim,
    origin: Origin,
    installation: Installation,
    cache: tempfile::TempDir,
}

/// A controller that was started.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

impl Story {
    async fn on(site: &Site, name: &str, fleet: &Fleet, polls: &str) -> Self {
        let mut sim = Sim::of(fleet);
        sim.providers.insert("bench".parse().unwrap(), ProviderClient::Prometheus(Arc::new(Meter::default())));
        let Hosted { origin, url } = site.repository(name).await;
        let files = fleet.files();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
        origin.commit("main", &files, "fleet");
        site.keep(name, DECISIONS).await;
        let installation = installed(site, &url, fleet, polls);
        Self { sim, origin, installation, cache: tempfile::tempdir().unwrap() }
    }

    async fn world(&self) -> Backends {
        let mut world = self.sim.world(LEADER).await;
        world.pass = pass(&self.installation, &world.clock).unwrap();
        let remote = remote(&self.installation, world.pass.as_ref()).unwrap();
        world.store = Store::open(self.cache.path(), remote).unwrap();
        world
    }

    /// Runs a controller until nothing is left to do, and nothing is waited on.
    async fn settle(&self) {
        let options = Options { once: Once::Yes { timeout: PATIENCE }, listen: None, identity: LEADER.to_owned() };
        let stop = CancellationToken::new();
        let waiting = controller::run_in(self.world().await, &self.installation, &options, &stop).await.unwrap();
        assert!(waiting.is_empty(), "{waiting:#?}");
    }

    /// Starts one that goes on.
    async fn start(&self, listen: Option<SocketAddr>) -> Running {
        let (world, installation, stop) = (self.world().await, self.installation.clone(), CancellationToken::new());
        let (told, options) = (stop.clone(), Options { once: Once::No, listen, identity: LEADER.to_owned() });
        let task = async move { drop(controller::run_in(world, &installation, &options, &told).await.unwrap()) };
        Running { stop, task: tokio::spawn(task) }
    }
}

/// The controller's own file.
fn installed(site: &Site, url: &str, fleet: &Fleet, polls: &str) -> Installation {
    let hosted = format!("{polls}, {}}}", site.access());
    let text = fleet.installation(url, "{inCluster: {}}").replace("poll: 1h}", &hosted);
    installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap()
}

/// Calls for lists, with many open requests, of which a person answers one between two polls.
async fn lists() -> Finding {
    let site = Gitlab::start().await;
    let Hosted { origin, url } = site.repository("lists");
    let tip = origin.commit("main", &[("README.md", Some(b"x"))], "first");
    let branches: String = (0..REQUESTS).map(|n| format!("create refs/heads/ask/{n} {tip}\n")).collect();
    origin.git_with(&["update-ref", "--stdin"], branches.as_bytes());
    for n in 0..REQUESTS {
        let branch = format!("ask/{n}");
        let draft = json!({"title": &branch, "description": "", "source_branch": &branch, "target_branch": "main"});
        site.open("bot", "lists", &draft);
    }
    let (site, calls) = (Site::Gitlab(site), Arc::new(AtomicU32::new(0)));
    let of = installed(&site, &url, &Fleet::new("n", 1, 0), "poll: 1h").repository.forge.unwrap();
    let (counted, clock) = (Arc::clone(&calls), Clock::default());
    let count = move |errand: CallPurpose, _: CallOutcome| {
        if errand == CallPurpose::List {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    };
    let pass = Pass::new(&of, Box::new(|| tidegate::record::state::Time::UNIX_EPOCH)).unwrap();
    let mut host = Host::new(of, pass, Box::new(count), Box::new(move || clock.now())).unwrap();
    assert_eq!(host.open().await.unwrap().len(), REQUESTS);
    println!("  the first look takes {} calls", calls.swap(0, Ordering::Relaxed));
    let mut ours = Samples::default();
    for n in 1..=POLLS {
        site.close("reviewer", "lists", &json!({"number": n})).await;
        assert_eq!(host.open().await.unwrap().len(), REQUESTS - n);
        ours.push(f64::from(calls.swap(0, Ordering::Relaxed)));
    }
    Finding {
        what: "Calls for lists for each poll with 1,000 open requests, one answered since the last (a stand-in for GitLab)",
        ours,
        unit: "calls",
        reference: None,
        goal: 1.0,
        share: 1.0,
        why: "More has changed than one page shows",
    }
}

/// Calls for each poll while nothing happens and nobody tells of anything.
async fn at_rest() -> Finding {
    let host = Gitlab::start().await;
    let site = Site::Gitlab(host);
    let story = Story::on(&site, "rest", &Fleet::new("n", 1, 10), "poll: 1s").await;
    story.settle().await;
    let running = story.start(None).await;
    let Site::Gitlab(host) = &site else { panic!("it is a stand-in") };
    // What is left to say is said, and what is asked was asked before: nothing else has been asked for some polls.
    while host.asked().iter().rev().take(POLLS).filter(|(_, status)| *status == 304).count() < POLLS {
        sleep(Duration::from_millis(200)).await;
    }
    let (before, start) = (host.asked().len(), Instant::now());
    sleep(Duration::from_secs(POLLS as u64)).await;
    let (asked, polls) = (host.asked().split_off(before), start.elapsed().as_secs_f64());
    running.end().await;
    assert!(asked.iter().all(|(_, status)| *status == 304), "by ETag: {asked:#?}");
    let mut ours = Samples::default();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    ours.push(asked.len() as f64 / polls);
    Finding {
        what: "Calls for each poll at rest, without a webhook, all of them by ETag (a stand-in for GitLab)",
        ours,
        unit: "calls",
        reference: None,
        goal: 1.0,
        share: 1.0,
        why: "The polls are a second apart, and the first and the last of them at any time of theirs",
    }
}

/// A tenth after a person's word.
fn asks(_: usize) -> String {
    "  - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 100h, checks: [CHECKS]}\n"
        .to_owned()
}

/// What a webhook tells of, as docs/hosts.md has it.
const EVENTS: [&str; 2] = ["push", "pull_request"];

/// From a merge on a real host that tells of it to the record that names the decision.
async fn merges(queues: &'static str, what: &'static str, why: &'static str) -> Finding {
    let bed = Bed::own().await;
    let (name, gitea) = ("bench", &*Box::leak(Box::new(GitHost::beside(&bed, queues).await)));
    let site = Site::Gitea(gitea);
    let fleet = Fleet { routed: MERGES, phases: asks, ..Fleet::new("n", 1, MERGES) };
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a-secret-of-both").unwrap();
    let polls = format!("poll: 1h, webhookSecretFile: {}", secret.path().display());
    let mut story = Story::on(&site, name, &fleet, &polls).await;
    let hears = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    story.installation.webhook_address = hears.to_string();
    story.settle().await;
    let next: Vec<_> = (0..MERGES).map(|n| (fleet.manifests_path(n), fleet.manifests(n, 2))).collect();
    let next: Vec<_> = next.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
    story.origin.commit("main", &next, "version 2");

    let config =
        json!({"url": format!("http://{hears}/webhook"), "content_type": "json", "secret": "a-secret-of-both"});
    let filter = format!("{{main,{DECISIONS}}}");
    let hook = json!({"type": "gitea", "active": true, "events": EVENTS, "branch_filter": filter, "config": config});
    gitea.want(201, "owner", "POST", &format!("repos/owner/{name}/hooks"), Some(hook)).await;
    let running = story.start("127.0.0.1:0".parse().ok()).await;
    let asked = async {
        while site.pulls(name).await.len() < MERGES {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(PATIENCE, asked).await.expect("every run asks");
    let mut ours = Samples::default();
    for pull in site.pulls(name).await {
        // People take longer, and two looks at a repository are a second apart; what the merge before has set off has ended.
        sleep(Duration::from_secs(6)).await;
        let title = pull["title"].as_str().unwrap();
        let rollout = title.split_once(':').unwrap().0.parse().unwrap();
        site.merge(name, &pull).await;
        let recorded = recorded(&story.origin, &rollout);
        ours.add(timeout(PATIENCE, recorded).await.expect("it is recorded"));
    }
    running.end().await;
    Finding { what, ours, unit: "ms", reference: None, goal: 1_000.0, share: 0.5, why }
}

/// From the last move of the decisions branch to the first record of a rollout with a decision, both as the repository saw them.
async fn recorded(origin: &Origin, rollout: &RolloutId) -> Duration {
    let decisions = format!("refs/heads/{DECISIONS}");
    let merged = origin.stamps().into_iter().rfind(|stamp| stamp.name == decisions).expect("it was merged");
    let names = |stamp: &Stamp| {
        let file = format!("{}:rollouts/{rollout}/state.yaml", stamp.new);
        !parse_state(rollout, &origin.git_with(&["cat-file", "blob", &file], b"")).unwrap().consumed.is_empty()
    };
    loop {
        let after = origin.stamps().into_iter().filter(|stamp| stamp.name == STATE && stamp.at > merged.at);
        if let Some(record) = after.into_iter().find(names) {
            return Duration::from_secs_f64(record.at - merged.at);
        }
        sleep(Duration::from_millis(100)).await;
    }
}
