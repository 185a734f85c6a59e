//! The world that a scenario plays in, and what it shows of what happens there.

use crate::scenarios::granted::Granted;
use crate::scenarios::host::Host;
use crate::scenarios::hosts;
use crate::scenarios::log::{Log, Said, Waits, What};
use crate::scenarios::names::Names;
use crate::scenarios::person::{Ana, Commit};
use crate::scenarios::witness::Witness;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::manifest::ids::{CommitId, RolloutId};
use tidegate::manifest::raw::Gateways;
use tidegate::reconcile::controller::{Once, Options};
use tidegate::record::message::{self, CommitEntry};
use tidegate::record::posture::{Posture, Role, Size};
use tidegate::record::state::{Phase, RolloutState, Serving, Time};
use tidegate::record::text::exposure;
use tidegate::world::kube_api::{ApiVerb, Fault, FaultVerdict, SeenRequest, What as Asked};
use tidegate::world::simulation::Simulation;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// When all stories begin: a Monday.
const BEGIN: &str = "2026-03-02T10:00:00Z";
/// How often Git is looked at.
const POLL: Duration = Duration::from_secs(20);
/// So long it takes until what was begun is seen and done.
const MOMENT: Duration = Duration::from_secs(25);
/// How long a fresh process may take to see that all is settled.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What goes wrong with requests to the API server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    /// All verbs if none.
    pub(crate) verb: Option<ApiVerb>,
    /// All kinds if none.
    pub(crate) kind: Option<&'static str>,
}

/// What everybody who asks the API server meets and leaves behind.
struct Gate {
    granted: Granted,
    troubles: Vec<Trouble>,
    /// What was asked for and is not granted.
    missed: BTreeSet<String>,
    /// What each process wrote, its Lease and Events aside.
    writes: BTreeMap<String, Vec<String>>,
}

pub(crate) struct World {
    pub(crate) stage: Arc<Simulation>,
    pub(crate) ana: Ana,
    pub(crate) names: Names,
    pub(crate) git_is_away: bool,
    /// The Git host with pull requests, if there is one.
    pub(crate) hosting: Option<hosts::Host>,
    pub(crate) log: Log,
    gate: Arc<Mutex<Gate>>,
    witness: Arc<Mutex<Witness>>,
    tasks: JoinSet<()>,
    running: Option<AbortHandle>,
    processes: u32,
    began: Time,
    /// The last commit of the record that was shown, and all records as it left them.
    told: Option<CommitId>,
    records: BTreeMap<RolloutId, RolloutState>,
    /// Troubles that were shown since the last command.
    troubles: BTreeSet<String>,
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stage = Arc::new(Simulation::new(directory.path(), BEGIN.parse().unwrap()).unwrap().polled(POLL));
        let log = Log::listen(stage.clock.clone());
        let mut names = Names::default();
        names.hide(stage.repository().display().to_string(), "the repository");
        let gate = Arc::new(Mutex::new(Gate::new()));
        let shared = Arc::clone(&gate);
        stage.api.judge(move |seen| shared.lock().unwrap().judge(seen));
        let witness = Arc::new(Mutex::new(Witness::default()));
        let seen = Arc::clone(&witness);
        stage.api.witness(move |world, _| seen.lock().unwrap().look(world));
        let mut tasks = JoinSet::new();
        let nature = Arc::clone(&stage);
        tasks.spawn(async move { nature.nature().await });
        Self {
            ana: Ana::new(directory.path(), &stage.repository(), stage.clock.clone()),
            began: stage.clock.now(),
            running: None,
            processes: 0,
            told: None,
            records: BTreeMap::new(),
            troubles: BTreeSet::new(),
            git_is_away: false,
            hosting: None,
            stage,
            names,
            log,
            gate,
            witness,
            tasks,
            directory,
        }
    }

    /// Starts a controller that has nothing but what Git and the cluster have.
    pub(crate) async fn start(&mut self) {
        assert!(self.running.is_none(), "a controller runs already");
        self.processes += 1;
        self.learn().await;
        let (stage, identity) = (Arc::clone(&self.stage), format!("process-{}", self.processes));
        self.running = Some(self.tasks.spawn(async move {
            let options = Options { once: Once::No, listen: None, identity: identity.clone() };
            let ended = stage.controller(&identity, options, &CancellationToken::new()).await;
            panic!("the controller ended: {ended:?}");
        }));
    }

    /// Names what main shows, once there is a controller that reads it.
    pub(crate) async fn learn(&mut self) {
        if self.processes > 0 && !self.git_is_away {
            self.names.learn(&self.ana.main().await);
        }
    }

    /// Sets the clock of the process that runs forward, or back.
    pub(crate) fn set_clock(&self, by: TimeDelta) {
        self.stage.step_clock(&format!("process-{}", self.processes), by.num_seconds());
    }

    /// Ends it without a chance to say good-bye.
    pub(crate) fn kill(&mut self) {
        self.running.take().expect("a controller runs").abort();
        self.log.forget_waits();
    }

    /// Lets requests fail from now on; none for no trouble any more.
    pub(crate) fn trouble(&self, troubles: Vec<Trouble>) {
        self.gate.lock().unwrap().troubles = troubles;
        self.stage.api.break_watches();
    }

    /// Where files of the world can be.
    pub(crate) fn folder(&self) -> &Path {
        self.directory.path()
    }

    /// The Git host.
    pub(crate) fn host(&self) -> Host {
        Host::open(&self.stage.repository())
    }

    /// Makes the Git host vanish, or come back.
    pub(crate) fn move_git(&mut self, away: bool) {
        let (here, there) = (self.stage.repository(), self.directory.path().join("away.git"));
        let (from, to) = if away { (here, there) } else { (there, here) };
        std::fs::rename(from, to).unwrap();
        self.git_is_away = away;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        self.assert_alive();
    }

    /// Lets so much time pass that what people just did was seen, and what is due was done.
    pub(crate) async fn moment(&mut self) {
        self.pass(MOMENT).await;
    }

    /// Returns when the controller has planned or recorded something; says whether it did within that time.
    pub(crate) async fn listen(&mut self, time: Duration) -> bool {
        let heard = tokio::time::timeout(time, self.log.heard()).await;
        self.assert_alive();
        heard.is_ok()
    }

    fn assert_alive(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            assert!(ended.as_ref().is_err_and(JoinError::is_cancelled), "something ended: {ended:?}");
        }
    }

    /// The fewest ready endpoints that a Service had since it was asked last.
    pub(crate) fn served(&self, service: &str) -> Result<String, String> {
        self.witness.lock().unwrap().served(service)
    }

    /// A fresh process must find nothing to do. Says what it waits on.
    pub(crate) async fn settled(&mut self) -> String {
        if self.running.is_some() {
            self.kill();
        }
        let mut out = self.happened().await;
        let (requests, main) = (self.ana.requests().await, self.ana.main().await);
        let pulls = self.hosting.as_ref().map(hosts::Host::pulls);
        let options = Options { once: Once::Yes { timeout: TIMEOUT }, listen: None, identity: "fresh".to_owned() };
        let ended = self.stage.controller("fresh", options, &CancellationToken::new()).await;
        let waiting = ended.expect("a fresh process comes to its end");
        self.log.news();
        // It says once more how main's tip stands.
        self.hosting.iter().for_each(|host| drop(host.news()));
        assert_eq!(pulls, self.hosting.as_ref().map(hosts::Host::pulls), "not settled: pull requests change");
        let writes = self.gate.lock().unwrap().writes.remove("fresh").unwrap_or_default();
        assert!(writes.is_empty(), "not settled: a fresh process writes to the cluster: {writes:#?}");
        let commits = self.ana.commits(self.told.as_ref()).await;
        let subjects: Vec<&str> = commits.iter().map(|commit| commit.logged.subject.as_str()).collect();
        assert!(subjects.is_empty(), "not settled: a fresh process commits: {subjects:#?}");
        let missed = self.gate.lock().unwrap().missed.clone();
        assert!(missed.is_empty(), "asked for, and not granted by the chart: {missed:#?}");
        let witness = Arc::clone(&self.witness);
        let sizes = self.stage.api.look(|world| witness.lock().unwrap().sizes(world));
        assert!(sizes.is_empty(), "numbers of pods that are an autoscaler's word: {sizes:#?}");
        assert_eq!((requests, main), (self.ana.requests().await, self.ana.main().await), "not settled: branches move");
        out.push_str("settled, second plan empty\n");
        for (rollout, waits) in waiting {
            for wait in waits {
                let waits = Waits { reason: wait.reason.as_str().to_owned(), message: wait.message, until: wait.until };
                self.wait_line(&mut out, &rollout.to_string(), &waits);
            }
        }
        out
    }

    /// What has happened since it was asked last: commits, writes, troubles, in their order.
    pub(crate) async fn happened(&mut self) -> String {
        let mut out = String::new();
        // What is said after this is told next time; the commits that it is about may be told now.
        let mut news = self.log.news();
        let hosted = self.hosting.iter().flat_map(hosts::Host::news);
        news.extend(hosted.map(|(at, word, what)| Said { at, what: What::Host { word, what } }));
        news.sort_by_key(|said| said.at);
        let commits = if self.git_is_away { Vec::new() } else { self.ana.commits(self.told.as_ref()).await };
        if !commits.is_empty() {
            self.names.learn_tracked(&self.ana.state().await);
        }
        let mut commits = commits.into_iter();
        self.troubles.clear();
        for Said { at, what } in news {
            match what {
                What::Recorded { rollout, seq, why } => {
                    let rollout = rollout.parse().unwrap();
                    while self.records.get(&rollout).map(|record| record.seq) < seq
                        || seq.is_none() && self.records.contains_key(&rollout)
                    {
                        let Some(commit) = commits.next() else { break };
                        self.tell_commit(&mut out, commit, &why);
                    }
                }
                What::Wrote { class, why } => self.line(&mut out, at, &class, &why),
                What::Branch { doing, branch } => {
                    let branch = branch.trim_start_matches("tidegate/world/").to_owned();
                    self.line(&mut out, at, "branch", &format!("{doing} {branch}"));
                }
                What::NotTaken { object, why } => {
                    let text = format!("{object} not written: {why}");
                    self.tell_trouble(&mut out, at, text);
                }
                What::Warned(text) => self.tell_trouble(&mut out, at, text),
                What::Host { word, what } => self.line(&mut out, at, word, &what),
                What::Leads => self.line(&mut out, at, "leads", &format!("process {}", self.processes)),
            }
        }
        for commit in commits {
            self.tell_commit(&mut out, commit, "");
        }
        out
    }

    /// What is tried again is told once.
    fn tell_trouble(&mut self, out: &mut String, at: Time, text: String) {
        if self.troubles.insert(text.clone()) {
            self.line(out, at, "trouble", &text);
        }
    }

    /// One line for each record that a commit changes, and what it allows if that is new.
    fn tell_commit(&mut self, out: &mut String, commit: Commit, why: &str) {
        let Commit { logged, records } = commit;
        let ids: BTreeSet<&RolloutId> = self.records.keys().chain(records.keys()).collect();
        let changed: Vec<&RolloutId> = ids.into_iter().filter(|id| self.records.get(id) != records.get(id)).collect();
        for rollout in &changed {
            let (before, after) = (self.records.get(rollout), records.get(rollout));
            let alone = changed.len() == 1;
            let text = message::commit(&[CommitEntry { rollout, before, after, why }]);
            let subject = if alone { &logged.subject } else { text.lines().next().unwrap_or_default() };
            self.line(out, logged.time, "record", subject);
            let allows = |record: Option<&RolloutState>| record.and_then(|record| self.allowed(record));
            if let Some(allowed) = allows(after).filter(|_| allows(before) != allows(after)) {
                writeln!(out, "               allows {allowed}").unwrap();
            }
        }
        self.records = records;
        self.told = Some(logged.commit);
    }

    /// What a record lets the cluster be.
    pub(crate) fn allowed(&self, record: &RolloutState) -> Option<String> {
        let Posture { stable, candidate, split, naming: _ } = &record.clusters.values().next()?.posture;
        let role = |role: &Role| match role.size {
            Size::Declared => self.names.set(&role.set),
            Size::Share(share) => format!("{} sized for {share} %", self.names.set(&role.set)),
            Size::AtLeast(n) => format!("{} at least {n}", self.names.set(&role.set)),
        };
        let candidate = candidate.as_ref().map(|c| format!(" + {}", role(c))).unwrap_or_default();
        let split = exposure(split).map(|text| format!(", {text}")).unwrap_or_default();
        Some(format!("{}{candidate}{split}", role(stable)))
    }

    /// What each rollout waits on.
    pub(crate) fn waits(&self) -> String {
        let mut out = String::new();
        if self.running.is_none() {
            out.push_str("no controller runs\n");
        }
        for (rollout, waits) in self.log.waits() {
            for wait in &waits {
                self.wait_line(&mut out, &rollout, wait);
            }
        }
        out
    }

    fn wait_line(&self, out: &mut String, rollout: &str, Waits { reason, message, until }: &Waits) {
        let until = until.map(|at| format!(" (until {})", self.time(at))).unwrap_or_default();
        let text = self.names.plain(&format!("{rollout} {reason}: {}{until}", without_progress(message)));
        writeln!(out, "waits    {text}").unwrap();
    }

    fn line(&self, out: &mut String, at: Time, word: &str, text: &str) {
        writeln!(out, "{:>5} {word:<8} {}", self.time(at), self.names.plain(text)).unwrap();
    }

    /// Hours and minutes since the story began: retries come at random seconds.
    pub(crate) fn time(&self, at: Time) -> String {
        let minutes = (at - self.began).num_minutes();
        format!("{}:{:02}", minutes / 60, minutes % 60)
    }
}

impl World {
    /// Controllers that start from now on look at what is in the namespaces of these, and may.
    pub(crate) fn look_at(&self, gateways: Gateways) {
        self.gate.lock().unwrap().granted.look_at(&gateways);
        self.stage.look_at(gateways);
    }
}

impl Gate {
    fn new() -> Self {
        Self { granted: Granted::new(), troubles: Vec::new(), missed: BTreeSet::new(), writes: BTreeMap::new() }
    }

    fn judge(&mut self, seen: &SeenRequest<'_>) -> FaultVerdict {
        let Asked::Request { verb, dry_run } = seen.what else { return FaultVerdict::Pass };
        if seen.caller.is_empty() {
            return FaultVerdict::Pass;
        }
        self.missed.extend(self.granted.misses(seen, verb));
        let meant = |trouble: &&Trouble| {
            trouble.verb.is_none_or(|of| of == verb) && trouble.kind.is_none_or(|kind| kind == seen.resource.kind)
        };
        if let Some(trouble) = self.troubles.iter().find(meant) {
            return FaultVerdict::Before(trouble.fault);
        }
        if verb.writes() && !dry_run && !matches!(seen.resource.plural, "leases" | "events") {
            let text = format!("{verb} {} {}", seen.resource.kind, seen.name);
            self.writes.entry(seen.caller.to_owned()).or_default().push(text);
        }
        FaultVerdict::Pass
    }
}

/// Where a rollout stands: the phase, and in brackets the step, the rest, or who serves.
pub(crate) fn label(phase: &Phase) -> String {
    let step = || phase.position().map(|stop| stop.step.to_string()).unwrap_or_default();
    let inside = match phase {
        Phase::Steady { how, .. } => format!("{how:?}").to_lowercase(),
        Phase::Waiting { next, .. } => next.to_string(),
        Phase::Failed { standing: Serving::Stable, .. } => "stable".to_owned(),
        Phase::Failed { standing: Serving::OnCandidate, .. } => "candidate".to_owned(),
        Phase::WaitingPromotion { .. } => return phase.name().to_owned(),
        Phase::Initializing(_) | Phase::Progressing(_) | Phase::Promoting(_) | Phase::Finalising(_) => step(),
        Phase::Reverting { .. } | Phase::Terminating { .. } | Phase::Unknown(_) => step(),
    };
    if inside.is_empty() { phase.name().to_owned() } else { format!("{}({inside})", phase.name()) }
}

/// `2m3s of 10m` → `10m`: how far it is depends on when it was looked at last.
fn without_progress(message: &str) -> String {
    let words: Vec<&str> = message.split(' ').collect();
    let is_span = |word: &str| word.parse::<tidegate::manifest::duration::Span>().is_ok();
    let mut out: Vec<&str> = Vec::new();
    let mut i = 0;
    while i < words.len() {
        if i + 2 < words.len() && is_span(words[i]) && words[i + 1] == "of" {
            i += 2;
        }
        out.push(words[i]);
        i += 1;
    }
    out.join(" ")
}
