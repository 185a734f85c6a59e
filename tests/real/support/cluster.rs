//! A real control plane for the tests: one bed for all tests of the process, a fresh namespace for each.
//!
//! The programs are built once per machine by `tests/testbed/build`; a bed is started by `tests/testbed/up` and wiped as
//! soon as this process ends, however it ends.

use super::audit::{self, Request};
use super::gateway::Gateway;
use super::helm::Identity;
use super::kubeconfig::client;
use super::rights::{Audited, Right};
use super::root::root;
#[allow(unused_imports, reason = "benchmarks ask for one of them")]
pub(crate) use super::wait::{PATIENCE, eventually};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OnceCell;

/// A control plane with fake nodes, the HTTPRoute CRD, an audit log and a gateway.
pub(crate) struct Bed {
    run: PathBuf,
    /// Plays the gateway controller.
    pub(crate) gateway: Gateway,
    /// The bed lives as long as this end of the pipe is open.
    _alive: ChildStdin,
}

static SHARED: OnceCell<Result<Bed, String>> = OnceCell::const_new();

static QUIET: OnceCell<Result<Bed, String>> = OnceCell::const_new();

/// Held by who asks the quiet bed, and alone by who lets it forget what was.
pub(crate) static CALM: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

impl Bed {
    /// The bed that all tests of this process share.
    pub(crate) async fn shared() -> &'static Self {
        let bed = SHARED.get_or_init(|| start("shared".to_owned())).await;
        bed.as_ref().unwrap_or_else(|why| panic!("the test bed does not start: {why}"))
    }

    /// A bed without controllers, so that nobody else writes, which all tests of this process share.
    pub(crate) async fn quiet() -> &'static Self {
        let start = async || {
            let run = folder("quiet");
            std::fs::create_dir_all(&run).unwrap();
            std::fs::write(run.join("quiet"), "").unwrap();
            start("quiet".to_owned()).await
        };
        let bed = QUIET.get_or_init(start).await;
        bed.as_ref().unwrap_or_else(|why| panic!("the test bed does not start: {why}"))
    }

    /// A bed of its own, for tests that break things: wiped when dropped.
    pub(crate) async fn own() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("own-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        start(name).await.unwrap_or_else(|why| panic!("the test bed does not start: {why}"))
    }

    /// Its folder, which goes with it.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// The cluster admin's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.run.join("kubeconfig")
    }

    /// A folder for what stands beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        let folder = self.run.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The API server's audit log.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.run.join("audit.log")
    }

    /// A client of the cluster admin, for the runtime that asks.
    pub(crate) async fn client(&self) -> Client {
        client(&self.kubeconfig()).await
    }

    /// Runs kubectl as the cluster admin and returns what it printed; panics with its complaint if it fails.
    pub(crate) async fn kubectl(&self, args: &[&str], stdin: &str) -> String {
        self.try_kubectl(args, stdin).await.unwrap_or_else(|why| panic!("kubectl {}: {why}", args.join(" ")))
    }

    /// The same; its complaint if it fails.
    pub(crate) async fn try_kubectl(&self, args: &[&str], stdin: &str) -> Result<String, String> {
        let mut command = Command::new(program("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(args);
        run(command, stdin.to_owned()).await
    }

    /// Injects a fault; the kinds are listed in `tests/testbed/fault`.
    pub(crate) async fn fault(&self, args: &[&str]) {
        let mut command = script("fault", &self.run);
        command.args(args);
        run(command, String::new()).await.unwrap_or_else(|why| panic!("fault {}: {why}", args.join(" ")));
    }

    /// Starts again what a fault has killed.
    pub(crate) async fn revive(&self) {
        run(script("up", &self.run), String::new()).await.unwrap_or_else(|why| panic!("up: {why}"));
    }

    /// Makes admission refuse every create and update of a resource in that namespace for which the CEL expression is
    /// false. The API server obeys a moment later: wait for it with a dry run. One at a time for each namespace.
    pub(crate) async fn refuse(&self, space: &Space, group: &str, resource: &str, unless: &str, message: &str) {
        let name = format!("testbed-{}", space.name);
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": &name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE", "UPDATE"],
                }]},
                "validations": [{"expression": unless, "message": message}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": &name},
            "spec": {
                "policyName": &name, "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": &space.name}}},
            },
        });
        self.kubectl(&["apply", "-f", "-"], &format!("{policy}\n---\n{binding}")).await;
    }

    /// Takes back [`Bed::refuse`].
    pub(crate) async fn accept(&self, space: &Space) {
        let name = format!("testbed-{}", space.name);
        let kinds = "validatingadmissionpolicybindings,validatingadmissionpolicies";
        self.kubectl(&["delete", kinds, &name], "").await;
    }

    /// A place in the audit log: everything that was answered before is written above it.
    pub(crate) async fn mark(&self) -> audit::Mark {
        audit::mark(&self.client().await, &self.audit_log()).await
    }

    /// All requests since a mark, in the order in which they were answered.
    pub(crate) async fn requests_since(&self, start: audit::Mark) -> Vec<Request> {
        let end = self.mark().await;
        audit::between(&self.audit_log(), start, end)
    }

    /// A namespace that no other test has, and a controller's user who serves it.
    pub(crate) async fn space(&self, name: &str) -> Space {
        Space::new(self, unique(name)).await
    }

    /// A namespace that no other test has, and nothing else.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        let name = unique(name);
        create(&Api::<Namespace>::all(self.client().await), json!({"metadata": {"name": name}})).await;
        name
    }
}

fn unique(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A namespace of one test, and who the instance `it` is that serves it.
pub(crate) struct Space {
    /// Its name.
    pub(crate) name: String,
    /// The controller's own namespace.
    pub(crate) home: String,
    /// A client of the cluster admin.
    pub(crate) client: Client,
    /// The kubeconfig of the controller's user: the ServiceAccount of a release of the chart.
    pub(crate) kubeconfig: PathBuf,
    /// That user, as the audit log names it.
    pub(crate) user: String,
    /// All that the release lets it do.
    pub(crate) rights: BTreeSet<Right>,
    /// Where the audit log was before there was anything of it.
    pub(crate) begin: audit::Mark,
}

impl Space {
    async fn new(bed: &Bed, name: String) -> Self {
        let (begin, client, home) = (bed.mark().await, bed.client().await, format!("{name}-home"));
        for namespace in [&name, &home] {
            create(&Api::<Namespace>::all(client.clone()), json!({"metadata": {"name": namespace}})).await;
        }
        let Identity { account, rights, .. } = install(&client, &home, vec![name.clone()]).await;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(24 * 3600), ..TokenRequestSpec::default() }),
            ..TokenRequest::default()
        };
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &home);
        let token = accounts.create_token_request(&account, &PostParams::default(), &request).await.unwrap();
        let kubeconfig = bed.run.join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, for_token(&bed.kubeconfig(), &token.status.unwrap().token.unwrap(), &home))
            .unwrap();
        Self { user: format!("system:serviceaccount:{home}:{account}"), client, kubeconfig, name, home, rights, begin }
    }

    /// Lets the controller's user serve these namespaces too, as an upgrade of the release does.
    pub(crate) async fn serve(&mut self, others: &[String]) {
        let served = [std::slice::from_ref(&self.name), others].concat();
        self.rights = install(&self.client, &self.home, served).await.rights;
    }

    /// What the controller's user has asked for so far, beside what the release lets it do.
    pub(crate) async fn audited(&self, bed: &Bed) -> Audited {
        let end = bed.mark().await;
        Audited::new(&self.rights, &audit::of_user(&bed.audit_log(), &self.user, self.begin, end))
    }

    /// The API of a kind in this namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }
}

/// Makes what the chart gives the instance `it` that is at home there and serves these namespaces.
async fn install(client: &Client, home: &str, served: Vec<String>) -> Identity {
    let at = home.to_owned();
    let render = move || Identity::render("it", &at, &served);
    let identity = tokio::task::spawn_blocking(render).await.unwrap();
    for object in &identity.objects {
        apply(client, object).await;
    }
    in_force(client, home, &identity).await;
    identity
}

/// Waits until the API server knows of all of it: it reads roles and their bindings by watches of its own, and refuses until then.
async fn in_force(client: &Client, home: &str, identity: &Identity) {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let user = format!("system:serviceaccount:{home}:{}", identity.account);
    let of_each_role: BTreeMap<_, _> =
        identity.rights.iter().map(|right| ((&right.namespace, &right.group), right)).collect();
    for right in of_each_role.into_values() {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let attributes = json!({"namespace": right.namespace, "group": right.group, "resource": resource,
                                "subresource": subresource, "name": right.name, "verb": right.verb});
        let review = json!({"metadata": {}, "spec": {"user": user, "resourceAttributes": attributes}});
        let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
        eventually(&format!("{user} may {right}"), async || {
            let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
            answer.status.is_some_and(|status| status.allowed).then_some(())
        })
        .await;
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// The API that an object belongs to.
pub(crate) fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
    let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
    let resource = ApiResource::from_gvk(&kind);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Applies an object as the manager `hand`, with force.
pub(crate) async fn apply(client: &Client, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("hand").force();
    api_of(client, object).patch(name, &params, &Patch::Apply(object)).await.unwrap();
}

fn testbed() -> PathBuf {
    root().join("tests/testbed")
}

/// Where `build` puts what it builds.
pub(crate) fn home() -> PathBuf {
    std::env::var("TIDEGATE_TESTBED").map(PathBuf::from).unwrap_or_else(|_| {
        let cache = std::env::var("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.unwrap_or_else(|_| Path::new(&std::env::var("HOME").unwrap()).join(".cache"));
        cache.join("tidegate-testbed")
    })
}

/// A program that `build` has built.
pub(crate) fn program(name: &str) -> PathBuf {
    home().join("bin").join(name)
}

/// Builds what not every test needs, if it is not built yet.
pub(crate) async fn build(group: &'static str) {
    let build = move || Command::new(testbed().join("build")).arg(group).stdout(Stdio::null()).status().unwrap();
    let built = tokio::task::spawn_blocking(build).await.unwrap();
    assert!(built.success(), "tests/testbed/build {group}: {built}; what it needs is said above");
}

/// Starts Contour and Envoy beside a bed, in a network where the addresses of pods are local.
pub(crate) async fn proxy(bed: &Bed) {
    run(script("proxy", &bed.run), String::new()).await.unwrap_or_else(|why| panic!("proxy: {why}"));
}

/// Builds a Git host if there is none yet, and starts it beside a bed, with queues of that type: its folder and its address.
pub(crate) async fn git_host(bed: &Bed, queues: &str) -> (PathBuf, String) {
    build("gitea").await;
    let mut script = script("githost", &bed.run);
    script.env("TIDEGATE_TESTBED_QUEUES", queues);
    let said = run(script, String::new()).await.unwrap_or_else(|why| panic!("githost: {why}"));
    (bed.run.join("gitea.d"), said.trim().to_owned())
}

/// A script of the test bed, for the bed in that folder.
pub(crate) fn script(name: &str, run: &Path) -> Command {
    let mut command = Command::new(testbed().join(name));
    command.env("TIDEGATE_TESTBED_RUN", run);
    command
}

/// Where a bed of this process keeps all it has.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("testbed-{}-{name}", std::process::id()))
}

async fn start(name: String) -> Result<Bed, String> {
    let run = folder(&name);
    let at = run.clone();
    let started = tokio::task::spawn_blocking(move || start_blocking(&at)).await;
    let alive = started.map_err(|e| e.to_string())??;
    let gateway = Gateway::start(run.join("kubeconfig"));
    Ok(Bed { run, gateway, _alive: alive })
}

/// Builds what is not built, which takes minutes the first time and says so on standard error; then starts it.
fn start_blocking(run: &Path) -> Result<ChildStdin, String> {
    let status = Command::new(testbed().join("build")).status().map_err(|e| format!("tests/testbed/build: {e}"))?;
    if !status.success() {
        return Err(format!("tests/testbed/build: {status}; what it needs is said above"));
    }
    let mut up = script("up", run);
    up.arg("--while-stdin").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut up = up.spawn().map_err(|e| format!("tests/testbed/up: {e}"))?;
    let alive = up.stdin.take().ok_or("tests/testbed/up has no standard input")?;
    let ended = up.wait_with_output().map_err(|e| format!("tests/testbed/up: {e}"))?;
    let complaint = String::from_utf8_lossy(&ended.stderr);
    if ended.status.success() { Ok(alive) } else { Err(format!("tests/testbed/up: {}: {complaint}", ended.status)) }
}

/// Runs a command to its end with that standard input; what it printed, or its complaint.
async fn run(mut command: Command, stdin: String) -> Result<String, String> {
    let work = move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let mut input = child.stdin.take().ok_or("no standard input")?;
        // A program that ends without reading it all says why on standard error.
        input.write_all(stdin.as_bytes()).ok();
        drop(input);
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string())?
}

/// That kubeconfig for who has this token and is at home in that namespace.
pub(crate) fn for_token(kubeconfig: &Path, token: &str, home: &str) -> String {
    let mut config: Value = serde_yaml::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": token});
    config["contexts"][0]["context"]["namespace"] = home.into();
    serde_yaml::to_string(&config).unwrap()
}
