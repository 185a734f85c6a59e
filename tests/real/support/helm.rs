//! The real Helm, and what it makes of the chart.

use super::cluster::program;
use super::rights::Right;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The kinds that say what somebody may do.
pub(crate) const RBAC: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// Where the chart lies.
pub(crate) fn chart() -> PathBuf {
    crate::support::root::root().join("charts/tidegate")
}

/// Helm as the test bed's script has built it, without any settings of the machine.
pub(crate) fn helm() -> Command {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let build = crate::support::root::root().join("tests/testbed/build");
    let built = BUILT.get_or_init(|| Command::new(&build).status().is_ok_and(|status| status.success()));
    assert!(*built, "there is no Helm: run {} and see what it lacks", build.display());
    let mut helm = Command::new(program("helm"));
    let settings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helm");
    helm.env_clear().env("HOME", &settings).env("KUBECONFIG", "/dev/null");
    helm
}

/// Runs it with these values, if it takes any; what it printed, or its complaint.
pub(crate) fn run(mut helm: Command, values: Option<&Value>) -> Result<String, String> {
    if values.is_some() {
        helm.args(["--values", "-"]);
    }
    helm.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = helm.spawn().unwrap();
    let text = values.map(Value::to_string).unwrap_or_default();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// A release as `helm template` is told of it.
pub(crate) struct Release<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
}

impl Release<'_> {
    /// What the chart makes of these values, as Helm prints it; its complaint if it refuses. The same is rendered once.
    pub(crate) fn text(&self, values: &Value) -> Result<String, String> {
        type Rendered = Arc<OnceLock<Result<String, String>>>;
        static KNOWN: LazyLock<Mutex<HashMap<[String; 3], Rendered>>> = LazyLock::new(Mutex::default);
        let asked = [self.name.to_owned(), self.namespace.to_owned(), values.to_string()];
        let rendered = Arc::clone(KNOWN.lock().unwrap().entry(asked).or_default());
        let render = || {
            let mut helm = helm();
            helm.args(["template", self.name]).arg(chart()).args(["--namespace", self.namespace]);
            run(helm, Some(values))
        };
        rendered.get_or_init(render).clone()
    }

    /// The objects that the chart makes of these values, those of `helm test` too.
    pub(crate) fn objects(&self, values: &Value) -> Vec<Value> {
        let text = self.text(values).unwrap_or_else(|why| panic!("{why}"));
        let documents = serde_yaml::Deserializer::from_str(&text).map(|one| Value::deserialize(one).unwrap());
        documents.filter(|one| !one.is_null()).collect()
    }
}

/// Who the controller is in a cluster that it is not run in, and what it may do there.
pub(crate) struct Identity {
    /// Its ServiceAccount, in the namespace of the release.
    pub(crate) account: String,
    /// The ServiceAccount, and all roles and bindings of the release.
    pub(crate) objects: Vec<Value>,
    /// What these roles let it do.
    pub(crate) rights: BTreeSet<Right>,
}

impl Identity {
    /// As a release without pods makes it in this namespace, for an instance that serves these ones. Helm is asked once, for a
    /// namespace and a served one whose names are nowhere else in it, and those that are meant take their places.
    pub(crate) fn render(instance: &str, home: &str, namespaces: &[String]) -> Self {
        const HOME: &str = "qq-home-qq";
        const SERVED: &str = "qq-served-qq";
        let rendered = Self::rendered(instance, HOME, &[SERVED.to_owned()]);
        let named = |object: &Value, served: &str| -> Value {
            serde_json::from_str(&object.to_string().replace(HOME, home).replace(SERVED, served)).unwrap()
        };
        let each = |object: &Value| -> Vec<Value> {
            let of_each = object["metadata"]["namespace"] == SERVED;
            let namespaces = if of_each { namespaces } else { &namespaces[..1] };
            namespaces.iter().map(|served| named(object, served)).collect()
        };
        Self::of(rendered.iter().flat_map(each).collect(), home)
    }

    fn rendered(instance: &str, home: &str, namespaces: &[String]) -> Vec<Value> {
        let values = json!({
            "instance": instance, "namespaces": namespaces, "replicas": 0, "rbac": {"lookUpSecrets": true},
            "repository": {"url": "https://git.example.test/shop.git"},
            "image": {"repository": "registry.example.test/tidegate"},
        });
        Release { name: "tide", namespace: home }.objects(&values)
    }

    fn of(mut objects: Vec<Value>, home: &str) -> Self {
        let account = objects.iter().find(|object| object["kind"] == "ServiceAccount").unwrap();
        let account = account["metadata"]["name"].as_str().unwrap().to_owned();
        objects.retain(|object| object["kind"] == "ServiceAccount" || RBAC.iter().any(|kind| object["kind"] == *kind));
        let rights = Right::of(&objects, &json!({"kind": "ServiceAccount", "name": account, "namespace": home}));
        Self { account, objects, rights }
    }
}

#[test]
fn an_identity_is_what_helm_makes_of_its_names() {
    let (home, namespaces) = ("delivery", ["shop".to_owned(), "blog".to_owned()]);
    let sorted = |identity: Identity| {
        let mut objects: Vec<String> = identity.objects.iter().map(Value::to_string).collect();
        objects.sort();
        (objects, identity.rights, identity.account)
    };
    let direct = Identity::of(Identity::rendered("it", home, &namespaces), home);
    assert_eq!(sorted(Identity::render("it", home, &namespaces)), sorted(direct));
}
