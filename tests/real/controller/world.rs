//! Rollouts in a namespace of their own, a Git server, and the controller in this process.

mod named;

pub(super) use self::named::{is_exposed, is_on, is_steady};

use super::app::App;
use super::running::Running;
use crate::support::audit::{self, Request};
use crate::support::cluster::{Bed, PATIENCE, Space, eventually};
use crate::support::git_host::Hosted;
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use crate::support::port::Port;
use crate::support::promise::{Checked, Watched};
use crate::support::site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate::manifest::desired::Router;
use tidegate::manifest::ids::ObjectName;
use tidegate::manifest::installation;
use tidegate::plan::report::Reason;
use tidegate::reconcile::controller::{self, Once, Options, Waiting};
use tidegate::record::state::{Rest, RolloutState};

/// The branches of the instance `it`.
pub(super) const STATE: &str = "tidegate/it/state";
pub(super) const DECISIONS: &str = "tidegate/it/decisions";

/// The bed of all tests, or one that a test may break.
pub(super) enum Held {
    Shared(&'static Bed),
    Own(Box<Bed>),
}

impl Deref for Held {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        match self {
            Self::Shared(bed) => bed,
            Self::Own(bed) => bed,
        }
    }
}

pub(super) struct World {
    pub(super) bed: Held,
    pub(super) space: Space,
    pub(super) git: GitServer,
    pub(super) origin: Origin,
    /// Where the controller finds that, as its own file says it, if it is not on the Git server.
    repository: Option<String>,
    /// The namespaces that the controller serves; that of the test is the first.
    pub(super) namespaces: Vec<String>,
    /// How often it looks at the repository.
    pub(super) poll: Duration,
    /// Who measures, as the controller's own file says it.
    pub(super) providers: String,
    /// What it signs its record with, as its own file says it.
    pub(super) signing: String,
    /// What operations lets rollouts have besides, as its own file says it.
    pub(super) caps: String,
    /// Where the controller that is started serves its numbers.
    pub(super) listen: Option<Port>,
    /// Where it hears webhooks.
    pub(super) heard: Option<Port>,
    watched: BTreeMap<String, Watched>,
    dir: tempfile::TempDir,
    running: Option<Running>,
}

impl World {
    /// A repository with a policy and the rollout `web` at version 1, and nothing in the cluster.
    pub(super) async fn new(name: &str, spec: &str) -> Self {
        let mut world = Self::empty(Held::Shared(Bed::shared().await), name).await;
        world.add(spec, &App::new("web", 1));
        world
    }

    /// A repository with a policy and no rollout.
    pub(super) async fn empty(bed: Held, name: &str) -> Self {
        let space = bed.space(name).await;
        let git = GitServer::start().await;
        let origin = git.init("it");
        let dir = tempfile::tempdir().unwrap();
        let namespaces = vec![space.name.clone()];
        let poll = Duration::from_secs(1);
        let world = Self {
            bed,
            space,
            git,
            origin,
            repository: None,
            namespaces,
            poll,
            providers: String::new(),
            signing: String::new(),
            caps: String::new(),
            listen: None,
            heard: None,
            watched: BTreeMap::new(),
            dir,
            running: None,
        };
        world.begin();
        world
    }

    /// Moves to a repository on a Git host, which takes the place of the one on the Git server. `reviewer` and `owner` alone may
    /// write to its decisions branch.
    pub(super) async fn hosted(name: &str, site: &Site) -> Self {
        let world = Self::unkept(name, site).await;
        site.keep(&world.space.name, DECISIONS).await;
        world
    }

    /// The same with branches that nobody protects.
    pub(super) async fn unkept(name: &str, site: &Site) -> Self {
        let mut world = Self::empty(Held::Shared(Bed::shared().await), name).await;
        let Hosted { origin, url } = site.repository(&world.space.name).await;
        world.repository = Some(format!("{{url: \"{url}\", poll: 1s, {}}}", site.access()));
        world.origin = origin;
        world.begin();
        world
    }

    /// Looks at its repository once an hour, unless a webhook that is signed with that secret tells it to.
    pub(super) fn polls_once_an_hour(&mut self, secret: &Path) {
        self.heard = Some(Port::held());
        let seldom = format!("poll: 1h, webhookSecretFile: {}", secret.display());
        self.repository = self.repository.take().map(|repository| repository.replace("poll: 1s", &seldom));
    }

    /// Where it hears webhooks.
    pub(super) fn hook(&self) -> String {
        format!("http://{}/webhook", self.heard.as_ref().expect("it hears webhooks").address)
    }

    fn begin(&self) {
        let policy = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
             it: {{path: it, namespaces: [{}], clusters: [home]}}\n",
            self.space.name
        );
        self.commit(&[("tidegate.yaml", &policy)]);
    }

    /// Adds a rollout of that app to main, with everything of its spec below `target.name`.
    pub(super) fn add(&mut self, spec: &str, app: &App<'_>) -> String {
        let (name, namespace) = (app.name, &self.space.name);
        let rollout = rollout_of(namespace, name, spec);
        let object = |name: &str| name.parse().unwrap();
        let router = if spec.contains("gatewayAPI:") {
            Some(Router::GatewayApi { http_route: object(name), service: object(name) })
        } else if spec.contains("replicas:") {
            Some(Router::Replicas { service: object(name) })
        } else if spec.contains("istio:") {
            Some(Router::Istio { virtual_service: object(name), service: object(name) })
        } else if spec.contains("nginx:") {
            Some(Router::Nginx { ingress: object(name), service: object(name) })
        } else if spec.contains(&format!("service: {name}")) {
            Some(Router::Service { service: object(name) })
        } else {
            None
        };
        let id = format!("{namespace}/{name}");
        if spec.contains("layout: primary") {
            self.watch_in_copies(&id, router);
        } else {
            self.watch(&id, router);
        }
        self.commit(&[(&format!("it/{name}.rollout.yaml"), &rollout), (&format!("it/{name}.yaml"), &app.text())])
    }

    /// Lets the controller serve a second namespace.
    pub(super) async fn serve(&mut self, other: &Space) {
        self.namespaces.push(other.name.clone());
        self.space.serve(&self.namespaces[1..]).await;
    }

    /// From now on [`World::assert_kept`] looks at that rollout.
    pub(super) fn watch(&mut self, rollout: &str, router: Option<Router>) {
        let id: tidegate::manifest::ids::RolloutId = rollout.parse().unwrap();
        let watched = Watched {
            stable: id.name.as_str().parse().unwrap(),
            candidate: format!("{}-canary", id.name).parse().unwrap(),
            rollout: id,
            cluster: "home".parse().unwrap(),
            router,
            service: None,
            user: self.space.user.clone(),
        };
        self.watched.insert(rollout.to_owned(), watched);
    }

    /// The same where stable's pods are those of a copy.
    pub(super) fn watch_in_copies(&mut self, rollout: &str, router: Option<Router>) {
        self.watch(rollout, router);
        let Some(watched) = self.watched.get_mut(rollout) else { return };
        let name = watched.rollout.name.to_string();
        (watched.stable, watched.candidate) = (format!("{name}-primary").parse().unwrap(), name.parse().unwrap());
    }

    /// The same where the versions' Deployments are called as their Services, which have names of their own.
    pub(super) fn watch_versions(&mut self, rollout: &str, router: Router, new: &ObjectName) {
        let stable = router.service().cloned();
        self.watch(rollout, Some(router));
        let (Some(watched), Some(stable)) = (self.watched.get_mut(rollout), stable) else { return };
        (watched.stable, watched.candidate, watched.service) = (stable, new.clone(), Some(new.clone()));
    }

    /// Commits files to main; the new tip.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> String {
        let files: Vec<(&str, Option<&[u8]>)> =
            files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
        self.origin.commit("main", &files, "change")
    }

    /// Takes files off main; the new tip.
    pub(super) fn remove(&self, files: &[&str]) -> String {
        let files: Vec<(&str, Option<&[u8]>)> = files.iter().map(|path| (*path, None)).collect();
        self.origin.commit("main", &files, "removed")
    }

    /// Commits the manifests of a version.
    pub(super) fn release(&self, app: &App<'_>) -> String {
        self.commit(&[(&format!("it/{}.yaml", app.name), &app.text())])
    }

    /// Starts the controller.
    pub(super) fn start(&mut self) {
        let filter = tracing_subscriber::EnvFilter::new("tidegate=info");
        tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init().ok();
        let (installation, options, cache) = (self.installation(), self.options(Once::No), self.cache());
        let options = Options { listen: self.listen.as_ref().map(|port| port.address), ..options };
        self.running = Some(Running::start(async move {
            let ended = controller::run(installation, options, &cache).await;
            panic!("the controller ended: {ended:?}");
        }));
    }

    /// Ends it without a chance to say good-bye.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
    }

    /// Runs it until nothing is left to do.
    pub(super) async fn once(&self) -> Waiting {
        controller::run(self.installation(), self.options(Once::Yes { timeout: PATIENCE }), &self.cache())
            .await
            .unwrap()
    }

    /// The end of every story: the promise was kept, a new process finds nothing to do, and waits on nothing but this; and
    /// nothing was asked for that the chart does not grant.
    /// Returns what is known of the promise, of `web` if there are several.
    pub(super) async fn settled(&mut self, waits: &[Reason]) -> Checked {
        self.settled_beside(waits, &[]).await
    }

    /// The same after somebody else has asked, as the same user, for what begins like that.
    pub(super) async fn settled_beside(&mut self, waits: &[Reason], asked: &[&str]) -> Checked {
        self.kill().await;
        // What the killed process had begun is brought to its end by the next.
        self.once().await;
        let (start, tip) = (self.bed.mark().await, self.origin.tip(STATE));
        let waiting = self.once().await;
        let reasons: BTreeSet<Reason> = waiting.values().flatten().map(|wait| wait.reason).collect();
        assert_eq!(reasons, waits.iter().copied().collect(), "{waiting:#?}");
        let writes: Vec<Request> = self.requests_since(start).await.into_iter().filter(Request::is_write).collect();
        let writes: Vec<_> = writes.iter().filter(|r| r.resource != "leases").collect();
        assert!(writes.is_empty(), "writes although all is settled: {writes:#?}");
        let since =
            tip.iter().map(|tip| self.origin.git(&["log", "-p", &format!("{tip}..{STATE}")])).collect::<String>();
        assert_eq!(self.origin.tip(STATE), tip, "a commit although all is settled: {since}");
        let mut beyond = self.space.audited(&self.bed).await.beyond;
        beyond.retain(|one| !asked.iter().any(|begin| one.starts_with(begin)));
        assert_eq!(beyond, BTreeSet::new(), "asked for, and not granted");
        self.assert_kept()
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn options(&self, once: Once) -> Options {
        let identity = format!("it-{}", std::process::id());
        Options { once, listen: None, identity }
    }

    /// The controller's own file.
    pub(super) fn installation_text(&self) -> String {
        let heard = self.heard.as_ref().map(|port| format!("  report: {{webhook: \"{}\"}}\n", port.address));
        let repository = self.repository.clone();
        let repository = repository.unwrap_or_else(|| format!("{{url: \"{}\", poll: 1s}}", self.git.url("it")));
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  \
             repository: {repository}\n  clusters: {{home: {{kubeconfigFile: {}}}}}\n{}{}{}  caps: {{namespaces: [{}]{}}}\n",
            self.space.kubeconfig.display(),
            self.providers,
            self.signing,
            heard.unwrap_or_default(),
            self.namespaces.join(", "),
            self.caps,
        )
    }

    fn installation(&self) -> installation::Installation {
        let name = "installation.yaml".parse().unwrap();
        let mut installation = installation::parse(&name, self.installation_text().as_bytes()).unwrap();
        installation.repository.poll = self.poll;
        installation
    }

    /// The record of `web`, if there is one.
    pub(super) fn record(&self) -> Option<RolloutState> {
        self.record_of("web")
    }

    /// The record of a rollout, if there is one.
    pub(super) fn record_of(&self, name: &str) -> Option<RolloutState> {
        self.record_at(&format!("{}/{name}", self.space.name))
    }

    /// The record of a rollout in any namespace, if there is one.
    pub(super) fn record_at(&self, rollout: &str) -> Option<RolloutState> {
        self.record_in(&self.origin.tip(STATE)?, rollout)
    }

    fn record_in(&self, commit: &str, rollout: &str) -> Option<RolloutState> {
        let path = format!("rollouts/{rollout}/state.yaml");
        let bytes = self.origin.file(commit, &path)?;
        Some(tidegate::record::store::parse_state(&rollout.parse().unwrap(), &bytes).unwrap())
    }

    /// Waits until the record of `web` is like that.
    pub(super) async fn until(&self, what: &str, like: impl Fn(&RolloutState) -> bool) -> RolloutState {
        self.until_of("web", what, like).await
    }

    fn assert_running(&self) {
        assert!(self.running.as_ref().is_none_or(Running::runs), "the controller has ended");
    }

    /// Waits until `web` rests like that.
    pub(super) async fn until_steady(&self, how: Rest) -> RolloutState {
        self.until_steady_of("web", how).await
    }

    /// Waits until the record of `web` stands on that step.
    pub(super) async fn until_on(&self, step: &str) -> RolloutState {
        self.until(step, |record| is_on(record, step)).await
    }

    /// Waits until the record of `web` has that condition, and returns its message.
    pub(super) async fn until_condition(&self, reason: Reason) -> String {
        self.until_condition_of("web", reason).await
    }

    /// Waits for the request of `web` that ends like that; its branch.
    pub(super) async fn request(&self, end: &str) -> String {
        self.request_of("web", end).await
    }

    /// Waits for the request to let `web` enter a step, and merges it.
    pub(super) async fn approve(&self, step: &str) {
        self.approve_of("web", step).await;
    }

    /// Files a decision about `web` on the decisions branch.
    pub(super) fn decide(&self, run: &str, action: &str) {
        self.decide_with(run, action, "");
    }

    /// The same with more fields.
    pub(super) fn decide_with(&self, run: &str, action: &str, more: &str) {
        self.decide_of("web", run, action, more);
    }

    /// Waits until the Git server was asked so many times more.
    pub(super) async fn polls(&self, times: usize) {
        let asked = || self.git.requests().into_values().sum::<usize>();
        let before = asked();
        eventually("polls", async || (asked() >= before + times).then_some(())).await;
    }

    /// Runs kubectl as a person in the test's namespace.
    pub(super) async fn kubectl(&self, args: &[&str], stdin: &str) -> String {
        self.bed.kubectl(&[&["--namespace", &self.space.name], args].concat(), stdin).await
    }

    /// Runs kubectl as a person in the controller's own namespace.
    pub(super) async fn kubectl_at_home(&self, args: &[&str]) -> String {
        self.bed.kubectl(&[&["--namespace", &self.space.home], args].concat(), "").await
    }

    /// What the controller has asked the API server since then.
    pub(super) async fn requests_since(&self, start: audit::Mark) -> Vec<Request> {
        let end = self.bed.mark().await;
        audit::of_user(&self.bed.audit_log(), &self.space.user, start.max(self.space.begin), end)
    }
}

/// The file of a rollout of a Deployment, with everything below `target.name`.
pub(super) fn rollout_of(namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  \
         manifests: [{name}.yaml]\n  target:\n    kind: Deployment\n    name: {name}\n{spec}"
    )
}
