use super::*;
use crate::manifest::object::PODS;
use crate::workload::fixtures::{gateway, name, object, plan, pods, set};
use serde_json::json;

fn names(version: &str) -> Names {
    Names { target: name(&format!("web-{version}")), service: name(&format!("web-{version}")) }
}

fn versions() -> Versions {
    Versions { stable: names("v1"), candidate: Some(names("v2")) }
}

/// A version: its Deployment, its Service with these ports, its configuration, and the route that both have.
fn version(version: &str, ports: &Value, more: impl IntoIterator<Item = Object>) -> Set {
    let app = format!("web-{version}");
    let config = format!("settings-{version}");
    let template = json!({
        "metadata": {"labels": {"app": app, "tier": "front"}},
        "spec": {
            "serviceAccountName": "web",
            "containers": [{"name": "web", "image": version, "envFrom": [{"configMapRef": {"name": config}}]}],
        },
    });
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": app}}, "template": template});
    let rules = json!([{"backendRefs": [{"name": app, "port": ports[0]["port"]}]}]);
    let objects = [
        object(Kind::Deployment, &app, json!({"spec": spec})),
        object(Kind::Service, &app, json!({"spec": {"selector": {"app": app}, "ports": ports}})),
        object(Kind::ConfigMap, &config, json!({"data": {"a": version}})),
        object(Kind::HttpRoute, "web", json!({"spec": {"rules": rules}})),
    ];
    set(objects.into_iter().chain(more))
}

fn http() -> Value {
    json!([{"port": 80}])
}

fn brought(stable: &Set, new: &Set) -> Result<Vec<String>, String> {
    let plan = names("v2").within(&plan(Some(gateway())));
    let all = candidate(stable, new, &plan, &versions(), &pods()).map_err(|error| error.to_string())?;
    Ok(all.keys().map(|reference| reference.to_string().replace("shop/", "")).collect())
}

#[test]
fn t_7_a_version_brings_what_its_pods_need_and_what_is_about_them() {
    let labels = |app: &str| json!({"spec": {"selector": {"matchLabels": {"app": app}}}});
    let scaler = json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}}});
    let more = [
        object(Kind::HorizontalPodAutoscaler, "any", scaler),
        object(Kind::PodDisruptionBudget, "web-v2", labels("web-v2")),
        object(Kind::PodDisruptionBudget, "worker", labels("worker")),
        object(Kind::Deployment, "worker-v2", labels("worker")),
        object(Kind::ConfigMap, "unread", json!({"data": {}})),
        object(Kind::ServiceAccount, "web", json!({})),
        object(
            Kind::HttpRoute,
            "direct-v2",
            json!({"spec": {"rules": [{"backendRefs": [{"name": "web-v2", "port": 80}]}]}}),
        ),
    ];
    let (old, new) = (version("v1", &http(), []), version("v2", &http(), more));
    let expected = [
        "ConfigMap settings-v2",
        "ServiceAccount web",
        "Deployment web-v2",
        "Service web-v2",
        "HorizontalPodAutoscaler any",
        "PodDisruptionBudget web-v2",
    ];
    assert_eq!(brought(&old, &new).unwrap(), expected);
    let plan = names("v2").within(&plan(Some(gateway())));
    let all = candidate(&old, &new, &plan, &versions(), &pods()).unwrap();
    let target = all.values().find(|object| object.reference().kind == Kind::Deployment).unwrap();
    let template = target.at("/spec/template/metadata/labels").unwrap();
    assert_eq!(
        (target.at("/spec/replicas"), &template[PODS], &template["app"]),
        (None, &json!(pods().as_str()), &json!("web-v2"))
    );
    // Nothing is brought without a second version.
    let alone = Versions { candidate: None, ..versions() };
    assert_eq!(candidate(&old, &new, &plan, &alone, &pods()), Ok(BTreeMap::new()));
}

#[test]
fn t_7_what_cannot_stand_beside_the_promoted_version_is_refused() {
    let old = || version("v1", &http(), []);
    let edit = |kind: Kind, change: fn(&mut Value)| {
        let mut new = version("v2", &http(), []);
        let object = new.objects.values_mut().find(|object| object.reference().kind == kind).unwrap();
        change(object.value_mut());
        new
    };
    let shared = |content: &str| object(Kind::ConfigMap, "settings-v2", json!({"data": {"a": content}}));
    let mut same_service = version("v2", &http(), []);
    let apex = old().get(Kind::Service, &name("web-v1")).unwrap().clone();
    let apex = object(Kind::Service, "web-v2", apex.value().clone());
    same_service.objects.insert(apex.reference().clone(), apex);
    let table = [
        (version("v1", &http(), []).objects, old(), "the manifests hold no Deployment web-v2"),
        (
            old().objects,
            edit(Kind::Deployment, |d| d["spec"]["selector"] = json!({"matchLabels": {"tier": "front"}})),
            "Deployment shop/web-v2 selects the pods of the other version's Deployment web-v1",
        ),
        (
            old().objects,
            edit(Kind::Service, |s| s["spec"]["selector"] = json!({"tier": "front"})),
            "Service shop/web-v2 selects the pods of the other version's Deployment web-v1",
        ),
        (old().objects, same_service, "Service web-v2 does not select the pods of Deployment web-v2"),
        (
            version("v1", &http(), [shared("0")]).objects,
            version("v2", &http(), []),
            "ConfigMap settings-v2 has other content",
        ),
        (
            version("v1", &json!([{"port": 90}]), []).objects,
            version("v2", &http(), []),
            "the stable HTTPRoute sends to port 90 of Service web-v2",
        ),
    ];
    for (objects, new, why) in table {
        let told = brought(&set(objects.into_values()), &new).unwrap_err();
        assert!(told.starts_with(why), "{told}");
    }
    let both = version("v2", &http(), old().objects.into_values());
    let told = brought(&both, &both).unwrap_err();
    assert!(told.starts_with("Deployment shop/web-v2 is the promoted version's as well"), "{told}");
    assert!(told.contains("such as web-v2-2"), "{told}");
}
