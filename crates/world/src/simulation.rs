//! A whole world in a process: a cluster with its controllers, a repository with real Git in a directory, measurements, and
//! one clock. The controller that runs in it is the one that is shipped.

use super::kube_api::{KubeApi, World};
use super::metrics::SimulatedMetrics;
use super::webhook::SimulatedWebhook;
use super::workloads::Controllers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_controller::analysis::provider::ProviderClient;
use tidegate_controller::cluster::client::Cluster;
use tidegate_controller::cluster::connection::ClusterError;
use tidegate_controller::forge::host::{HttpTransport, Pass};
use tidegate_controller::git::{
    CommitDraft, CommitSigning, Edit, FaultInjection, GitError, Logged, Person, Pushed, RefName, RemoteCall,
    RemoteConfig, RemoteFault, RemoteUrl, Store, create_bare,
};
use tidegate_controller::manifest::desired::Plan;
use tidegate_controller::manifest::diagnostic::Diagnostic;
use tidegate_controller::manifest::files::{Entry, InvalidPath, RepoPath};
use tidegate_controller::manifest::ids::{CommitId, InvalidId, Namespace, RolloutId};
use tidegate_controller::manifest::installation::{self, Installation, PullHost};
use tidegate_controller::manifest::raw::Gateways;
use tidegate_controller::manifest::team::Teams;
use tidegate_controller::reconcile::clock::{Clock, Hand};
use tidegate_controller::reconcile::controller::{self, Options, RunError, Waiting};
use tidegate_controller::reconcile::evidence::Providers;
use tidegate_controller::reconcile::world::Backends;
use tidegate_controller::record::state::{RolloutState, Time};
use tidegate_controller::record::store;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The most commits that are told of at once.
const MOST: usize = 1_000;
/// Who changes main and merges requests.
const PERSON: (&str, &str) = ("Ana", "ana@example.org");
/// Where the controller lives.
const HOME: &str = "tidegate";
/// An installation of the world. Nobody asks its addresses: the parts are handed in.
fn installed(instance: &str, cluster: &str) -> Result<Installation, SimulationError> {
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: {instance}\n  \
         repository: {{url: \"https://world.invalid/fleet.git\", poll: 2s}}\n  clusters: {{{cluster}: {{inCluster: {{}}}}}}\n  \
         caps: {{namespaces: [shop], nodes: {{}}}}\n"
    );
    let name = "installation.yaml".parse().expect("a plain name");
    installation::parse(&name, text.as_bytes()).map_err(SimulationError::Installation)
}

/// How many uids clusters of one repository are apart.
const APART: u64 = 1 << 32;

/// Why the world does not come to be, or cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A name.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// A path.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// The world's own installation.
    #[error("the world's installation is not valid: {0:?}")]
    Installation(Vec<Diagnostic>),
    /// Somebody else moved a branch.
    #[error("{0} has moved meanwhile")]
    Moved(RefName),
    /// There is nothing of that name.
    #[error("{0} is not there")]
    Absent(String),
}

/// A world.
pub struct Simulation {
    /// The cluster.
    pub api: KubeApi,
    /// The time, as everybody in it sees it whose clock is right.
    pub clock: Clock,
    clocks: Mutex<BTreeMap<String, (Clock, Hand)>>,
    installation: Installation,
    metrics: Arc<SimulatedMetrics>,
    others: Providers,
    /// The provider `tester` of checks.
    pub tester: Arc<SimulatedWebhook>,
    directory: PathBuf,
    repository: PathBuf,
    person: Store,
    fault_injection: Arc<Mutex<Option<Arc<GitHook>>>>,
    signing: Mutex<Option<CommitSigning>>,
    away: AtomicBool,
    host: Mutex<Option<GitHost>>,
    gateways: Mutex<Gateways>,
}

/// A Git host in this process, on which requests are shown as pull requests.
#[derive(Clone)]
pub struct GitHost {
    /// What an installation would say of it.
    pub site: PullHost,
    /// What answers.
    pub transport: HttpTransport,
}

type GitHook = dyn Fn(&str, &RemoteCall) -> RemoteFault + Send + Sync;

impl Simulation {
    /// A world with an empty repository in `directory`, at that time.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn new(directory: &Path, at: Time) -> Result<Self, SimulationError> {
        let repository = directory.join("fleet.git");
        create_bare(&repository)?;
        let cluster = World::new(at);
        Self::of(directory, repository, cluster, (Clock::set(at), installed("world", "home")?))
    }

    /// The `number`th cluster beside this one, at the same time and with the same repository: its instance, and the cluster in the policy,
    /// are called `name`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn beside(&self, directory: &Path, name: &str, number: u64) -> Result<Self, SimulationError> {
        let cluster = World::numbered(self.clock.now(), number * APART);
        Self::of(directory, self.repository.clone(), cluster, (self.clock.clone(), installed(name, name)?))
    }

    fn of(
        directory: &Path,
        repository: PathBuf,
        mut cluster: World,
        (clock, installation): (Clock, Installation),
    ) -> Result<Self, SimulationError> {
        let served = installation.caps.namespaces().iter().map(Namespace::as_str);
        served.chain([HOME]).for_each(|namespace| cluster.make_namespace(namespace));
        Ok(Self {
            api: KubeApi::over(cluster),
            clock,
            clocks: Mutex::default(),
            installation,
            metrics: Arc::new(SimulatedMetrics::default()),
            others: Providers::new(),
            tester: Arc::new(SimulatedWebhook::default()),
            directory: directory.to_owned(),
            person: Store::open(&directory.join("ana"), remote(&repository))?,
            repository,
            fault_injection: Arc::default(),
            signing: Mutex::default(),
            away: AtomicBool::new(false),
            host: Mutex::default(),
            gateways: Mutex::default(),
        })
    }

    /// The same world, in which these are asked too, beside the providers `world` and `tester`.
    #[must_use]
    pub fn answered(mut self, others: Providers) -> Self {
        self.others = others;
        self
    }

    /// The same world, whose controllers look at the repository that often.
    #[must_use]
    pub fn polled(mut self, poll: Duration) -> Self {
        self.installation.repository.poll = poll;
        self
    }

    /// Where the repository is.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        self.repository.clone()
    }

    /// Lets `hook` decide from now on what goes wrong between a controller, by its identity, and Git.
    pub fn judge_git(&self, hook: impl Fn(&str, &RemoteCall) -> RemoteFault + Send + Sync + 'static) {
        *self.fault_injection.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// Controllers that start from now on sign the record, and believe none that nobody has signed.
    pub fn sign(&self, signing: CommitSigning) {
        *self.signing.lock().unwrap_or_else(PoisonError::into_inner) = Some(signing);
    }

    /// Controllers that start from now on show their requests on that host.
    pub fn host(&self, host: GitHost) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(host);
    }

    /// Controllers that start from now on look at what stands in the namespaces of these proxies.
    pub fn look_at(&self, gateways: Gateways) {
        *self.gateways.lock().unwrap_or_else(PoisonError::into_inner) = gateways;
    }

    /// The repository, as a controller of that identity reaches it.
    fn reached_by(&self, identity: &str) -> RemoteConfig {
        let (identity, fault_injection) = (identity.to_owned(), Arc::clone(&self.fault_injection));
        let fate = move |errand: &RemoteCall| {
            let hook = fault_injection.lock().unwrap_or_else(PoisonError::into_inner).clone();
            hook.map_or(RemoteFault::Pass, |hook| hook(&identity, errand))
        };
        let signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        RemoteConfig { fault_injection: Some(FaultInjection::new(fate)), signing, ..remote(&self.repository()) }
    }

    /// Sets the clock of a controller that has started forward, or back, by so many seconds; what it shows then.
    pub fn step_clock(&self, identity: &str, seconds: i64) -> Option<Time> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, hand) = clocks.get(identity)?;
        hand.step(seconds);
        Some(clock.now())
    }

    /// The clock of a controller that starts.
    fn clock_of(&self, identity: &str) -> Clock {
        let (clock, hand) = self.clock.another();
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.insert(identity.to_owned(), (clock.clone(), hand));
        clock
    }

    /// Lets kube-controller-manager stand still, or go on.
    pub fn stop_controllers(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
        // `nature` looks again.
        self.api.change(|_| ());
    }

    /// Plays everything in the cluster that is not tidegate, for as long as it is polled.
    pub async fn nature(&self) {
        let (mut changes, mut controllers) = (self.api.changes(), Controllers::default());
        loop {
            controllers.away = self.away.load(Ordering::Relaxed);
            let now = self.clock.now();
            let due = self.api.change(|world| {
                let passed = (now - world.now()).max(chrono::TimeDelta::zero());
                controllers.pass(world, passed)
            });
            self.api.look(|world| self.metrics.sample(world));
            changes.mark_seen();
            let pause = due.map_or(Duration::from_secs(3_600), |due| self.clock.until(due));
            tokio::select! {
                biased;
                () = changes.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Runs a controller until `stop` is cancelled. Dropped before that it is a controller that was killed.
    ///
    /// # Errors
    /// When it cannot start, or one of its tasks ended.
    pub async fn controller(
        &self,
        identity: &str,
        options: Options,
        stop: &CancellationToken,
    ) -> Result<Waiting, RunError> {
        let home: Namespace = HOME.parse()?;
        let instance = &self.installation.instance;
        let (metrics, tester) = (self.metrics.clone(), self.tester.clone());
        let mut providers = self.others.clone();
        providers.insert("world".parse()?, ProviderClient::Prometheus(metrics));
        providers.insert("tester".parse()?, ProviderClient::Webhook(tester));
        let (clock, host) = (self.clock_of(identity), self.host.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let now = clock.clone();
        let pass = host
            .as_ref()
            .map(|GitHost { site, transport }| Pass::over(transport.clone(), site, Box::new(move || now.now())));
        let mut installation = self.installation.clone();
        let (site, transport) = host.map(|GitHost { site, transport }| (site, transport)).unzip();
        installation.caps = installation.caps.with(Teams::on(site.as_ref()));
        installation.repository.forge = site;
        installation.gateways = self.gateways.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let world = Backends {
            cluster: Cluster::over(self.api.caller(identity), home, instance).await?,
            store: Store::open(&self.directory.join(identity), self.reached_by(identity))?,
            providers,
            clock,
            pass,
            transport,
        };
        controller::run_in(world, &installation, &options, stop).await
    }

    /// A person pushes files to main.
    ///
    /// # Errors
    /// When Git does not take them.
    pub async fn push(&self, files: &[(&str, &str)], subject: &str) -> Result<CommitId, SimulationError> {
        let main = RefName::branch("main")?;
        let edits =
            files.iter().map(|(path, text)| Ok((path.parse::<RepoPath>()?, Edit::Write(text.as_bytes().into()))));
        let edits = edits.collect::<Result<_, InvalidPath>>()?;
        self.commit(&main, edits, subject).await
    }

    /// A person merges a request of tidegate's into the decisions branch.
    ///
    /// # Errors
    /// `Absent` when there is no such request.
    pub async fn merge(&self, request: &RefName) -> Result<CommitId, SimulationError> {
        let decisions = RefName::branch(&format!("tidegate/{}/decisions", self.installation.instance))?;
        let tips = self.fetched().await?;
        let asked = tips.get(request).ok_or_else(|| SimulationError::Absent(request.to_string()))?;
        let files = self.person.files(asked, None).await?;
        let decided = match tips.get(&decisions) {
            Some(tip) => self.person.files(tip, None).await?,
            None => BTreeMap::new(),
        };
        let new = files.iter().filter(|(path, _)| !decided.contains_key(*path));
        let edits = new.filter_map(|(path, entry)| match entry {
            Entry::File { blob, .. } => Some((path.clone(), Edit::Blob(blob.clone()))),
            Entry::Symlink
            | Entry::Submodule
            | Entry::Unread { .. }
            | Entry::TooLarge { .. }
            | Entry::BadName { .. } => None,
        });
        self.commit(&decisions, edits.collect(), &format!("Merge {}", request.short())).await
    }

    /// The requests that are open, by branch.
    ///
    /// # Errors
    /// When Git cannot be read.
    pub async fn requests(&self) -> Result<BTreeMap<RefName, CommitId>, SimulationError> {
        let prefix = format!("refs/heads/tidegate/{}/propose/", self.installation.instance);
        Ok(self.person.ls_refs(&[&prefix]).await?)
    }

    /// What Git says of a rollout.
    ///
    /// # Errors
    /// When Git cannot be read.
    pub async fn record(&self, rollout: &RolloutId) -> Result<Option<RolloutState>, SimulationError> {
        let state = RefName::branch(&format!("tidegate/{}/state", self.installation.instance))?;
        let tips = self.fetched().await?;
        let Some(tip) = tips.get(&state) else { return Ok(None) };
        let bytes = self.person.file(tip, &store::paths(rollout).state).await?;
        Ok(bytes.and_then(|bytes| store::parse_state(rollout, &bytes).ok()))
    }

    /// The plan of the run that a record has open.
    ///
    /// # Errors
    /// When Git cannot be read.
    pub async fn plan(&self, record: &RolloutState) -> Result<Option<Plan>, SimulationError> {
        let state = RefName::branch(&format!("tidegate/{}/state", self.installation.instance))?;
        let (tips, run) = (self.fetched().await?, record.run.as_ref());
        let (Some(tip), Some(run)) = (tips.get(&state), run) else { return Ok(None) };
        let bytes = self.person.file(tip, &store::paths(&record.metadata).plan(&run.id)).await?;
        Ok(bytes.and_then(|bytes| store::parse_plan(&bytes).ok()))
    }

    /// The commits of the state branch since that one, oldest first.
    ///
    /// # Errors
    /// When Git cannot be read.
    pub async fn commits(&self, since: Option<&CommitId>) -> Result<Vec<Logged>, SimulationError> {
        let state = RefName::branch(&format!("tidegate/{}/state", self.installation.instance))?;
        let tips = self.fetched().await?;
        let Some(tip) = tips.get(&state).filter(|tip| Some(*tip) != since) else { return Ok(Vec::new()) };
        let mut commits = self.person.history(tip, MOST).await?;
        if let Some(known) = commits.iter().position(|logged| Some(&logged.commit) == since) {
            commits.truncate(known);
        }
        commits.reverse();
        Ok(commits)
    }

    async fn fetched(&self) -> Result<BTreeMap<RefName, CommitId>, SimulationError> {
        let tips = self.person.ls_refs(&["refs/heads/"]).await?;
        self.person.fetch(&tips).await?;
        Ok(tips)
    }

    async fn commit(
        &self,
        branch: &RefName,
        edits: BTreeMap<RepoPath, Edit>,
        subject: &str,
    ) -> Result<CommitId, SimulationError> {
        let parent = self.fetched().await?.get(branch).cloned();
        let author = Person { name: PERSON.0.to_owned(), email: PERSON.1.to_owned() };
        let (subject, body, time) = (subject.to_owned(), String::new(), self.clock.now());
        let draft = CommitDraft { parent: parent.clone(), edits, subject, body, author, time };
        let new = self.person.commit(draft).await?;
        match self.person.push(branch, parent.as_ref(), &new, None).await? {
            Pushed::Done { .. } => Ok(new),
            Pushed::Raced { .. } | Pushed::SourceMoved { .. } | Pushed::Rejected { .. } => {
                Err(SimulationError::Moved(branch.clone()))
            }
        }
    }
}

fn remote(repository: &Path) -> RemoteConfig {
    RemoteConfig::new(RemoteUrl::Local(repository.to_owned()))
}
