//! A Service as the target: its versions differ by where they lead, and what is there is other people's.

use serde_json::{Value, json};
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// How the versions of a Service differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// It selects other pods.
    Pods,
    /// It is an alias of another name.
    Name,
}

/// How many pods answer behind the Services of a rollout.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behind {
    pub(crate) stable: u64,
    pub(crate) candidate: u64,
}

impl Leads {
    /// Where a version leads.
    pub(crate) fn spec(self, name: &str, tag: &str) -> String {
        match self {
            Self::Pods => format!("selector: {{app: {}}}", workload(name, tag)),
            Self::Name => format!("type: ExternalName, externalName: {}", alias(name, tag)),
        }
    }

    /// A hand leads a Service where a version leads.
    pub(crate) fn lead(self, service: &mut Value, name: &str, tag: &str) {
        match self {
            Self::Pods => service["spec"]["selector"]["app"] = workload(name, tag).into(),
            Self::Name => service["spec"]["externalName"] = alias(name, tag).into(),
        }
    }
}

/// The Deployment behind a version, which people have made.
pub(crate) fn workload(name: &str, tag: &str) -> String {
    format!("{name}-{tag}")
}

fn alias(name: &str, tag: &str) -> String {
    format!("{}.example.net", workload(name, tag))
}

/// People make the pods of a version.
pub(crate) fn make(world: &mut World, name: &str, tag: &str) {
    let app = workload(name, tag);
    let containers = json!([{"name": name, "image": format!("{name}:{tag}")}]);
    let template = json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": containers}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": app}}, "template": template});
    let metadata = json!({"name": app, "namespace": "shop"});
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
    world.create("apps/v1", "Deployment", "hand", object).unwrap();
}

/// The image of what a Service leads to.
pub(crate) fn image(name: &str, service: &Value) -> String {
    let app = leads_to(service).unwrap_or_default();
    let tag = app.split('.').next().and_then(|app| app.strip_prefix(name)?.strip_prefix('-'));
    tag.map_or_else(String::new, |tag| format!("{name}:{tag}"))
}

/// The label that it asks for, or the name that it stands for; none if it leads nowhere.
fn leads_to(service: &Value) -> Option<&str> {
    let spec = &service["spec"];
    spec["selector"]["app"].as_str().or_else(|| spec["externalName"].as_str())
}

/// How many of the pods that it asks for answer by a Service. An alias has whoever is behind the name.
pub(crate) fn answering(world: &World, name: &str) -> u64 {
    let service = world.get(Resource::of_kind("v1", "Service").unwrap(), "shop", name);
    let Some((service, app)) = service.and_then(|service| Some((service, leads_to(service)?))) else { return 0 };
    if service["spec"]["externalName"].is_string() {
        return 1;
    }
    let (asked, slices) = (format!("{app}-"), Resource::of_kind("discovery.k8s.io/v1", "EndpointSlice").unwrap());
    let own = |slice: &&std::sync::Arc<Value>| slice["metadata"]["labels"]["kubernetes.io/service-name"] == name;
    let endpoints = world.list(slices, "shop").filter(own).filter_map(|slice| slice["endpoints"].as_array()).flatten();
    let answers = |endpoint: &&Value| {
        let pod = endpoint["targetRef"]["name"].as_str().unwrap_or_default();
        endpoint["conditions"]["ready"] == true && pod.starts_with(&asked)
    };
    u64::try_from(endpoints.filter(answers).count()).unwrap()
}
