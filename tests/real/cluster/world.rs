//! A namespace for each test, the cluster admin's client, and the cluster as an instance of tidegate reaches it.

use crate::support::cluster::{Bed, Space, api_of, apply};
use crate::support::kubeconfig;
use kube::Client;
use serde_json::{Value, json};
use std::path::Path;
use tidegate::cluster::client::Cluster;
use tidegate::cluster::connection::ClusterSource;
use tidegate::manifest::ids::Namespace;
use tidegate::manifest::object::{Kind, Object, ObjectRef};
use tidegate::plan::action::{Action, Class, Verb};
use tidegate::workload::live::{Expects, WriteOutcome};
use tidegate::world::kube_api::{Fault, FaultVerdict, KubeApi};

/// A namespace of its own, and two ways to it.
pub(crate) struct World {
    /// The cluster admin.
    pub(crate) admin: Client,
    /// The instance `it`, which serves that namespace, as the ServiceAccount of a release of the chart.
    pub(crate) cluster: Cluster,
    pub(crate) namespace: Namespace,
    /// The instance's user; none in the process.
    space: Option<Space>,
    /// The cluster, if it is one in the process.
    pub(crate) api: Option<KubeApi>,
}

impl World {
    /// In the bed that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(Bed::shared().await).await
    }

    /// In this bed.
    pub(crate) async fn on(bed: &Bed) -> Self {
        let space = bed.space("cluster").await;
        let cluster = connect(&space.kubeconfig).await;
        let (admin, namespace) = (space.client.clone(), space.name.parse().unwrap());
        Self { admin, cluster, namespace, space: Some(space), api: None }
    }

    /// The same in a cluster in the process, where the instance may only do something in that namespace and its own.
    pub(crate) async fn in_process() -> Self {
        let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
        let (namespace, home): (Namespace, Namespace) = ("cluster".parse().unwrap(), "cluster-home".parse().unwrap());
        for name in [&namespace, &home] {
            api.change(|world| world.make_namespace(name.as_str()));
        }
        api.judge(|seen| {
            let own = matches!(seen.namespace, "cluster" | "cluster-home" | "");
            if seen.caller == "it" && !own { FaultVerdict::Before(Fault::Forbidden) } else { FaultVerdict::Pass }
        });
        let admin = Client::new(api.caller("admin"), "default");
        let cluster = Cluster::over(api.caller("it"), home, &"it".parse().unwrap()).await.unwrap();
        Self { admin, cluster, namespace, space: None, api: Some(api) }
    }

    fn kubeconfig(&self) -> &Path {
        &self.space.as_ref().expect("a real cluster because only tests of one ask").kubeconfig
    }

    /// Another connection of the same user, to another address.
    pub(crate) async fn connect_to(&self, address: &str) -> Cluster {
        let mut config = self.config();
        config["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
        let elsewhere = self.kubeconfig().with_extension("elsewhere");
        std::fs::write(&elsewhere, serde_yaml::to_string(&config).unwrap()).unwrap();
        connect(&elsewhere).await
    }

    /// A client of the instance's user.
    pub(crate) async fn client(&self) -> Client {
        kubeconfig::client(self.kubeconfig()).await
    }

    /// Where the API server listens.
    pub(crate) fn address(&self) -> String {
        let config = self.config();
        let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
        server.strip_prefix("https://").unwrap().to_owned()
    }

    fn config(&self) -> Value {
        serde_yaml::from_str(&std::fs::read_to_string(self.kubeconfig()).unwrap()).unwrap()
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
    pub(crate) async fn perform(&self, verb: Verb) -> WriteOutcome {
        self.perform_as(Class::Upkeep, verb).await
    }

    pub(crate) async fn perform_as(&self, class: Class, verb: Verb) -> WriteOutcome {
        let action = Action {
            class,
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
    pub(crate) async fn apply(&self, object: &Object, expects: Expects) -> WriteOutcome {
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
        let api = api_of(
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
pub(crate) fn done(outcome: WriteOutcome) -> Object {
    let WriteOutcome::Done(Some(object)) = outcome else { panic!("{outcome:?}") };
    *object
}

/// This object exactly as it was read.
pub(crate) fn version(object: &Object) -> Expects {
    let text = |text: Option<&str>| text.unwrap().to_owned();
    Expects::Version { uid: text(object.uid()), resource_version: text(object.resource_version()) }
}

async fn connect(kubeconfig: &Path) -> Cluster {
    let source = ClusterSource::KubeconfigFile(kubeconfig.to_owned());
    Cluster::connect(&source, &"it".parse().unwrap()).await.unwrap()
}
