//! One world from its beginning to its end, with a list of faults.

use crate::convergence::check::{Checker, KINDS, MONITORS};
use crate::convergence::daemon::NODES;
use crate::convergence::fault_injection::FaultInjection;
use crate::convergence::faults::Fault;
use crate::convergence::host::{Host, MAIN, STATE};
use crate::convergence::player::{Pace, Player};
use crate::convergence::shape::Router;
use crate::convergence::spans::AHEAD;
use crate::convergence::story::Story;
use chrono::TimeDelta;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::cluster::chance;
use tidegate::manifest::ids::RolloutId;
use tidegate::reconcile::controller::{Once, Options, Waiting};
use tidegate::record::state::Time;
use tidegate::rules::{Broken, Rule};
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::simulation::Simulation;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// The longest time until a world without faults rests for the first time.
const BEGINS: u64 = 300;
/// How long all that was done has to stay as it is.
const QUIET: i64 = 5;

/// What came of a world.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// What should never be, and was.
    pub(crate) found: Option<String>,
    /// Where each rollout stood in the end.
    pub(crate) standing: Vec<String>,
    /// All that was recorded and written.
    pub(crate) transcript: Vec<String>,
    /// How long it took there, in seconds.
    pub(crate) lasted: i64,
}

/// Runs a story with these faults, with a rule broken if one is named.
pub(crate) fn run(seed: u64, story: &Story, faults: &[Fault], broken: Option<Rule>) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let directory = tempfile::tempdir_in(place()).unwrap();
    chance::repeat(seed);
    let _broken = broken.map(Broken::new);
    runtime.block_on(async {
        let mut play = Play::begin(story, faults, directory.path());
        let found = play.whole().await.err();
        play.ended(found)
    })
}

/// Where repositories cost least: in memory, if there is such a place.
fn place() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

struct Play {
    stage: Arc<Simulation>,
    host: Host,
    checker: Arc<Mutex<Checker>>,
    fault_injection: Arc<FaultInjection>,
    players: Vec<Player>,
    ids: Vec<RolloutId>,
    controllers: usize,
    tasks: JoinSet<()>,
    running: BTreeMap<String, AbortHandle>,
    /// Who comes back when.
    returns: Vec<(Time, String)>,
    /// Until when somebody who came back may not lead yet: the Lease of the dead has to run out.
    led_by: Time,
    timed: Vec<Fault>,
    /// Until when something is on its way.
    underway: Time,
    /// When the state branch is put right, and where.
    mends: Option<(Time, git2::Oid)>,
    /// When what is closed can be read again.
    opens: Option<Time>,
    /// When ServiceMonitors are served again.
    defined: Option<Time>,
    /// Whose clock is far ahead, and when it is set right.
    ahead: Option<(Time, String)>,
    began: Time,
    /// What `--once` says at the end that it waits on.
    last: Arc<Mutex<Option<Waiting>>>,
}

fn monitors() -> &'static Resource {
    let (api_version, kind, _) = MONITORS;
    Resource::of_kind(api_version, kind).unwrap()
}

fn make_node(world: &mut World, number: u64) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")}});
    world.create("v1", "Node", "hand", node).unwrap();
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Play {
    fn begin(story: &Story, faults: &[Fault], directory: &Path) -> Self {
        let began: Time = "2026-03-02T10:00:00Z".parse().unwrap();
        let stage = Arc::new(Simulation::new(directory, began).unwrap());
        if story.rollouts.iter().any(|part| part.shape.router == Router::Daemon) {
            stage.api.change(|world| (0..NODES).for_each(|number| make_node(world, number)));
        }
        if story.rollouts.iter().any(|part| part.shape.beside) {
            stage.api.change(|world| world.install(monitors()));
        }
        let host = Host::open(&stage.repository());
        let checker = Arc::new(Mutex::new(Checker::new(Host::open(&stage.repository()), &story.rollouts)));
        let fault_injection = Arc::new(FaultInjection::new(faults, &stage.repository(), began));
        let (watching, judging) = (Arc::clone(&checker), Arc::clone(&fault_injection));
        stage.api.witness(move |world, caller| {
            judging.version.store(world.version(), std::sync::atomic::Ordering::Relaxed);
            lock(&watching).witness(world, caller);
        });
        let (watching, judging) = (Arc::clone(&checker), Arc::clone(&fault_injection));
        stage.api.judge(move |seen| {
            if FaultInjection::is_write(seen) && !judging.is_dead(seen.caller) {
                lock(&watching).writes(seen.caller, &format!("{}/{}", seen.resource.plural, seen.name));
            }
            judging.judge(seen)
        });
        let judging = Arc::clone(&fault_injection);
        stage.judge_git(move |caller, errand| judging.judge_git(caller, errand));
        let mut players: Vec<Player> = story.rollouts.iter().map(Player::new).collect();
        players.iter_mut().flat_map(Player::deeds).for_each(|deed| stage.api.change(deed));
        let mut files = vec![("tidegate.yaml".to_owned(), story.policy())];
        files.extend(players.iter().flat_map(Player::files));
        host.commit(MAIN, &files, "the first versions", began);
        let mut timed: Vec<Fault> = faults.iter().filter(|fault| fault.second().is_some()).copied().collect();
        timed.sort_by_key(Fault::second);
        let mut tasks = JoinSet::new();
        let world = Arc::clone(&stage);
        tasks.spawn(async move { world.nature().await });
        Self {
            ids: story.rollouts.iter().map(|part| format!("shop/{}", part.shape.name).parse().unwrap()).collect(),
            stage,
            host,
            checker,
            fault_injection,
            players,
            controllers: story.controllers,
            tasks,
            running: BTreeMap::new(),
            returns: Vec::new(),
            led_by: Time::MIN,
            timed,
            underway: began,
            mends: None,
            opens: None,
            defined: None,
            ahead: None,
            began,
            last: Arc::default(),
        }
    }

    fn start(&mut self, identity: &str, once: Once) {
        let stage = Arc::clone(&self.stage);
        let (name, last) = (identity.to_owned(), Arc::clone(&self.last));
        let task = self.tasks.spawn(async move {
            let options = Options { once, listen: None, identity: name.clone() };
            loop {
                match stage.controller(&name, options.clone(), &CancellationToken::new()).await {
                    Ok(waiting) => {
                        *lock(&last) = Some(waiting);
                        return;
                    }
                    // A process that cannot start is started again.
                    Err(_) => tokio::time::sleep(Duration::from_secs(5)).await,
                }
            }
        });
        self.running.insert(identity.to_owned(), task);
    }

    /// The whole story.
    ///
    /// # Errors
    /// What was found to be wrong.
    async fn whole(&mut self) -> Result<(), String> {
        for name in ["one", "two"].into_iter().take(self.controllers) {
            self.start(name, Once::No);
        }
        let mut second = 0;
        while !self.all_rest() {
            self.second().await?;
            second += 1;
            if second > BEGINS {
                return Err(format!("it settles: the world does not begin: {:?}", self.standing()));
            }
        }
        lock(&self.checker).begun();
        self.began = self.stage.clock.now();
        self.fault_injection.begin();
        self.story().await?;
        self.fault_injection.clear();
        self.second_plan().await
    }

    fn all_rest(&self) -> bool {
        let checker = lock(&self.checker);
        self.players.iter().all(|player| player.rests(&checker))
    }

    /// All chapters, until nothing more is to come.
    async fn story(&mut self) -> Result<(), String> {
        let mut quiet = 0;
        while quiet < QUIET {
            self.happen().await;
            let now = self.stage.clock.now();
            let mut busy = self.mends.is_some()
                || self.opens.is_some()
                || self.defined.is_some()
                || self.ahead.is_some()
                || !self.returns.is_empty()
                || now < self.led_by.max(self.underway);
            for player in &mut self.players {
                let pace = player.step(&self.host, &mut lock(&self.checker), now);
                if let Some(verdict) = player.verdict() {
                    self.stage.tester.say(verdict, "");
                }
                for deed in player.deeds() {
                    self.stage.api.change(deed);
                }
                match pace {
                    Pace::Busy => busy = true,
                    Pace::Done => {}
                    Pace::Stuck(what) => return Err(format!("it settles: {what}")),
                }
            }
            quiet = if busy { 0 } else { quiet + 1 };
            self.second().await?;
        }
        Ok(())
    }

    /// Lets a second pass.
    async fn second(&mut self) -> Result<(), String> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (now, told) = (self.stage.clock.now(), self.stage.tester.told());
        lock(&self.checker).told(&told, now);
        self.underway =
            self.underway.max(now + TimeDelta::seconds(i64::try_from(self.fault_injection.late()).unwrap()));
        if let Some(tip) = self.fault_injection.rewound() {
            // Where nothing that is live was written under what was lost, nobody can tell that it was.
            let lasts = if lock(&self.checker).is_told() { 30 } else { 0 };
            self.mends = Some((now + TimeDelta::seconds(lasts), tip));
        }
        for (name, back) in self.fault_injection.fallen() {
            if let Some(task) = self.running.remove(&name) {
                task.abort();
            }
            let back = now + TimeDelta::seconds(i64::try_from(back).unwrap());
            self.returns.push((back, format!("{name}-again")));
        }
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended.map_err(JoinError::try_into_panic)
                && let Ok(panic) = error
            {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                return Err(format!("nothing panics: {}", text.unwrap_or_default()));
            }
        }
        lock(&self.checker).found.clone().map_or(Ok(()), Err)
    }

    /// What happens at this second.
    async fn happen(&mut self) {
        let now = self.stage.clock.now();
        if let Some((at, tip)) = self.mends
            && now >= at
        {
            // On what somebody has made of it meanwhile the checker has its say.
            if self.host.tip(STATE) == self.host.parent(tip) {
                self.host.put(STATE, tip);
            }
            self.mends = None;
        }
        if self.opens.is_some_and(|at| at <= now) {
            self.fault_injection.open();
            self.opens = None;
        }
        if self.defined.take_if(|at| *at <= now).is_some() {
            self.stage.api.change(|world| world.install(monitors()));
        }
        if let Some((_, whose)) = self.ahead.take_if(|(at, _)| *at <= now) {
            self.stage.step_clock(&whose, -AHEAD.num_seconds());
        }
        let (due, later) = std::mem::take(&mut self.returns).into_iter().partition(|(at, _)| *at <= now);
        self.returns = later;
        let due: Vec<(Time, String)> = due;
        for (_, name) in due {
            self.start(&name, Once::No);
            self.led_by = now + TimeDelta::seconds(30);
        }
        let second = u64::try_from((now - self.began).num_seconds()).unwrap();
        while let Some(fault) =
            self.timed.first().copied().filter(|fault| fault.second().is_some_and(|at| at <= second))
        {
            self.timed.remove(0);
            self.strike(fault, now).await;
        }
    }

    async fn strike(&mut self, fault: Fault, now: Time) {
        match fault {
            Fault::Jump { by, .. } => tokio::time::advance(Duration::from_secs(by)).await,
            Fault::Clock { by, .. } => {
                let leader = lock(&self.checker).leader();
                // The dead have no clock.
                if self.running.contains_key(&leader)
                    && let Some(shown) = self.stage.step_clock(&leader, by)
                {
                    lock(&self.checker).clock_set(shown, by);
                }
            }
            Fault::Ahead { .. } => {
                let leader = lock(&self.checker).leader();
                if self.running.contains_key(&leader) {
                    self.stage.step_clock(&leader, AHEAD.num_seconds());
                    self.ahead = Some((now + TimeDelta::seconds(60), leader));
                }
            }
            Fault::Break { .. } => self.stage.api.break_watches(),
            Fault::Closed { kind, lasts, .. } => {
                self.fault_injection.close(kind);
                // As where a Role is changed together with the Deployment of the controllers.
                self.running.keys().for_each(|name| self.fault_injection.restart(name));
                self.opens = Some(now + TimeDelta::seconds(i64::try_from(lasts).unwrap()));
            }
            Fault::Undefined { lasts, .. } => {
                self.stage.api.change(|world| world.uninstall(monitors()));
                self.defined = Some(now + TimeDelta::seconds(i64::try_from(lasts).unwrap()));
            }
            Fault::Compact { .. } => self.stage.api.change(World::compact),
            Fault::LeaseDeleted { .. } | Fault::LeaseTaken { .. } => {
                lock(&self.checker).meddled = Some(now);
                self.meddle(fault);
            }
            Fault::Rewritten { mended, .. } => {
                let tip = self.host.tip(STATE);
                let parent = tip.and_then(|tip| self.host.parent(tip));
                lock(&self.checker).catch_up(now);
                // Where nothing that is live was written under what is gone, who has not seen it cannot know of it.
                if let (Some(tip), Some(parent), None, true) = (tip, parent, self.mends, lock(&self.checker).is_told())
                {
                    self.host.put(STATE, parent);
                    self.mends = Some((now + TimeDelta::seconds(i64::try_from(mended).unwrap()), tip));
                }
            }
            Fault::Request { .. }
            | Fault::Event { .. }
            | Fault::Git { .. }
            | Fault::Raced { .. }
            | Fault::Kill { .. }
            | Fault::FailOver { .. } => {}
        }
    }

    /// A hand on the Lease.
    fn meddle(&self, fault: Fault) {
        let leases = Resource::of_kind("coordination.k8s.io/v1", "Lease").unwrap();
        self.stage.api.change(|world| {
            let Some(lease) = world.get(leases, "tidegate", "tidegate-world").cloned() else { return };
            if let Fault::LeaseDeleted { .. } = fault {
                world.delete(&lease).unwrap();
                return;
            }
            let mut lease = (*lease).clone();
            lease["spec"]["holderIdentity"] = "somebody".into();
            world.update(lease, "", "hand").unwrap();
        });
    }

    /// Once all is settled, another controller finds nothing to do.
    async fn second_plan(&mut self) -> Result<(), String> {
        for (_, task) in std::mem::take(&mut self.running) {
            task.abort();
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let (tip, version) = (self.host.tip(STATE), self.shown());
        *lock(&self.last) = None;
        self.start("last", Once::Yes { timeout: Duration::from_secs(300) });
        for _ in 0..400 {
            self.second().await?;
            if lock(&self.last).is_some() {
                break;
            }
        }
        if self.host.tip(STATE) != tip {
            let subject = lock(&self.checker).transcript.last().cloned();
            return Err(format!("the second plan is empty: it records {subject:?}"));
        }
        let lost = self
            .fault_injection
            .others()
            .into_iter()
            .find(|other| tip.is_some_and(|tip| !self.host.leads_to(tip, *other)));
        if let Some(lost) = lost {
            return Err(format!("no record is lost: somebody else's commit {lost} is gone from the state branch"));
        }
        if let Some(untold) = lock(&self.checker).untold() {
            return Err(format!("the end of a run is told: nobody was told {untold:?}"));
        }
        if self.shown() != version {
            let what = lock(&self.checker).transcript.last().cloned();
            return Err(format!("the second plan is empty: it writes {what:?}"));
        }
        let waiting = lock(&self.last).take().ok_or("the second plan is empty: it does not end")?;
        let passing = |reason: &str| !matches!(reason, "Refused");
        let open = waiting.iter().find(|(_, waits)| waits.iter().any(|wait| passing(wait.reason.as_str())));
        open.map_or(Ok(()), |(id, waits)| Err(format!("it settles: {id} still waits: {waits:?}")))
    }

    /// The versions of all that users meet.
    fn shown(&self) -> Vec<String> {
        self.stage.api.look(|world| {
            let all = KINDS.iter().flat_map(|(api, kind, _)| {
                let resource = Resource::of_kind(api, kind).unwrap();
                world
                    .list(resource, "shop")
                    .map(|object| object["metadata"]["resourceVersion"].to_string())
                    .collect::<Vec<_>>()
            });
            all.collect()
        })
    }

    fn standing(&self) -> Vec<String> {
        let checker = lock(&self.checker);
        self.ids.iter().map(|id| checker.standing(id)).collect()
    }

    fn ended(&self, found: Option<String>) -> Ended {
        let now = self.stage.clock.now();
        let standing = self.standing();
        let mut checker = lock(&self.checker);
        checker.catch_up(now);
        let found = checker.found.clone().or(found).or_else(|| checker.verdict());
        let transcript = std::mem::take(&mut checker.transcript);
        Ended { found, standing, transcript, lasted: (now - self.began).num_seconds() }
    }
}
