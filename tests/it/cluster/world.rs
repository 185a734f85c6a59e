//! A namespace for each test, the cluster admin's client, and the cluster as an instance of tidegate reaches it.

use crate::support::cluster::Bed;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, ServiceAccount};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::cluster::client::{Cluster, ClusterSource};
use tidegate::cluster::rbac;
use tidegate::manifest::ids::Namespace;
use tidegate::manifest::object::{Kind, Object, ObjectRef};
use tidegate::plan::action::{Action, Class, Expects, Verb};
use tidegate::sim::kube_api::{Fault, KubeApi, Verdict};
use tidegate::target::live::Outcome;

/// How long a condition may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace of its own, and two ways to it.
pub(crate) struct World {
    /// The cluster admin.
    pub(crate) admin: Client,
    /// The instance `it`, in that namespace, with the rights that it documents.
    pub(crate) cluster: Cluster,
    pub(crate) namespace: Namespace,
    /// How the instance reaches a real cluster; none in the process.
    login: Option<Login>,
    /// The cluster, if it is one in the process.
    pub(crate) api: Option<KubeApi>,
}

/// The kubeconfig of the instance, and where it is written.
struct Login {
    config: Value,
    dir: tempfile::TempDir,
}

impl World {
    /// In the bed that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(Bed::shared().await).await
    }

    /// In this bed.
    pub(crate) async fn on(bed: &Bed) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let admin = bed.client().await;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace: Namespace = format!("cluster-{}-{number}", std::process::id()).parse().unwrap();
        let spaces = Api::<CoreNamespace>::all(admin.clone());
        create(&spaces, json!({"metadata": {"name": namespace.as_str()}})).await;
        let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), namespace.as_str());
        create(&accounts, json!({"metadata": {"name": "tidegate"}})).await;
        let subject = json!({"kind": "ServiceAccount", "name": "tidegate", "namespace": namespace.as_str()});
        // Tests share the cluster, so the roles of the whole cluster must differ between them.
        let instance = format!("it-{number}").parse().unwrap();
        let roles = rbac::manifests(&instance, &namespace, std::slice::from_ref(&namespace), &subject);
        for document in roles.split("---\n") {
            apply(&admin, &serde_yaml::from_str(document).unwrap()).await;
        }
        let mut config: Value = serde_yaml::from_str(&std::fs::read_to_string(bed.kubeconfig()).unwrap()).unwrap();
        config["users"][0]["user"] = json!({"token": token(&accounts).await});
        config["contexts"][0]["context"]["namespace"] = namespace.as_str().into();
        let dir = tempfile::tempdir().unwrap();
        let cluster = connect(&config, dir.path(), instance.as_str()).await;
        Self { admin, cluster, namespace, login: Some(Login { config, dir }), api: None }
    }

    /// The same in a cluster in the process, where the instance may only do something in that namespace.
    pub(crate) async fn in_process() -> Self {
        let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
        let namespace: Namespace = "cluster".parse().unwrap();
        api.change(|world| world.make_namespace(namespace.as_str()));
        api.judge(|seen| {
            let own = matches!(seen.namespace, "cluster" | "");
            if seen.caller == "it" && !own { Verdict::Before(Fault::Forbidden) } else { Verdict::Pass }
        });
        let admin = Client::new(api.caller("admin"), "default");
        let cluster = Cluster::over(api.caller("it"), namespace.clone(), &"it".parse().unwrap()).await.unwrap();
        Self { admin, cluster, namespace, login: None, api: Some(api) }
    }

    fn login(&self) -> &Login {
        self.login.as_ref().expect("a real cluster because only tests of one ask")
    }

    /// Another connection of the same user, to another address.
    pub(crate) async fn connect_to(&self, address: &str) -> Cluster {
        let Login { config, dir } = self.login();
        let mut config = config.clone();
        config["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
        connect(&config, dir.path(), self.cluster.instance().as_str()).await
    }

    /// A client of the instance's user.
    pub(crate) async fn client(&self) -> Client {
        let config: Kubeconfig = serde_json::from_value(self.login().config.clone()).unwrap();
        client(config).await
    }

    /// Where the API server listens.
    pub(crate) fn address(&self) -> String {
        let server = self.login().config["clusters"][0]["cluster"]["server"].as_str().unwrap();
        server.strip_prefix("https://").unwrap().to_owned()
    }

    /// An object of this namespace.
    pub(crate) fn object(&self, kind: Kind, name: &str, value: Value) -> Object {
        Object::new(ObjectRef { kind, namespace: self.namespace.clone(), name: name.parse().unwrap() }, value)
    }

    /// A ConfigMap of this namespace.
    pub(crate) fn config_map(&self, name: &str, data: Value) -> Object {
        self.object(Kind::ConfigMap, name, json!({"data": data}))
    }

    /// A Deployment of this namespace; `more` is added to its spec.
    pub(crate) fn deployment(&self, name: &str, more: Value) -> Object {
        let labels = json!({"app": name});
        let container = json!({"name": "app", "image": "podinfo:1", "ports": [{"containerPort": 8080}],
                               "env": [{"name": "A", "value": "1"}]});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let mut spec = json!({"selector": {"matchLabels": labels}, "template": template});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        self.object(Kind::Deployment, name, json!({"spec": spec}))
    }

    /// Does one action, as the instance.
    pub(crate) async fn perform(&self, verb: Verb) -> Outcome {
        let action = Action {
            class: Class::Upkeep,
            rollout: "shop/podinfo".parse().unwrap(),
            cluster: "home".parse().unwrap(),
            cluster_uid: self.cluster.uid().to_owned(),
            posture: None,
            verb,
            why: String::new(),
        };
        self.cluster.perform(&action).await
    }

    /// Applies, as the instance.
    pub(crate) async fn apply(&self, object: &Object, expects: Expects) -> Outcome {
        self.perform(Verb::Apply { object: Box::new(object.clone()), expects }).await
    }

    /// Applies what must succeed.
    pub(crate) async fn applied(&self, object: &Object, expects: Expects) -> Object {
        done(self.apply(object, expects).await)
    }

    /// Another manager applies, with force.
    pub(crate) async fn by_hand(&self, object: &Object) {
        apply(&self.admin, object.value()).await;
    }

    /// What is there, for the cluster admin.
    pub(crate) async fn read(&self, reference: &ObjectRef) -> Option<Object> {
        let api = api(
            &self.admin,
            &json!({
                "apiVersion": reference.kind.api_version(), "kind": reference.kind.as_str(),
                "metadata": {"namespace": reference.namespace.as_str()},
            }),
        );
        let found = api.get_opt(reference.name.as_str()).await.unwrap()?;
        Some(Object::new(reference.clone(), serde_json::to_value(found).unwrap()))
    }
}

/// The object of an outcome that must be a success.
pub(crate) fn done(outcome: Outcome) -> Object {
    let Outcome::Done(Some(object)) = outcome else { panic!("{outcome:?}") };
    *object
}

/// This object exactly as it was read.
pub(crate) fn version(object: &Object) -> Expects {
    let text = |text: Option<&str>| text.unwrap().to_owned();
    Expects::Version { uid: text(object.uid()), resource_version: text(object.resource_version()) }
}

async fn client(config: Kubeconfig) -> Client {
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn connect(config: &Value, dir: &Path, instance: &str) -> Cluster {
    let path = dir.join("kubeconfig");
    std::fs::write(&path, serde_yaml::to_string(config).unwrap()).unwrap();
    Cluster::connect(&ClusterSource::KubeconfigFile(path), &instance.parse().unwrap()).await.unwrap()
}

async fn token(accounts: &Api<ServiceAccount>) -> String {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(24 * 3_600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let token = accounts.create_token_request("tidegate", &PostParams::default(), &request).await.unwrap();
    token.status.unwrap().token.unwrap()
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// The API that an object belongs to.
fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
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
    api(client, object).patch(name, &params, &Patch::Apply(object)).await.unwrap();
}
