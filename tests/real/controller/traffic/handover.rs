//! An application that Flagger has managed is taken over as `tidegate import` writes it down, while people use it: nothing restarts,
//! no request is lost, and a version is rolled out after it.

use super::load::Load;
use super::pods::Pods;
use super::{Behind, serves};
use crate::support::audit::Mark;
use crate::support::cluster::{Bed, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate::import::{self, FieldOutcome, Tool};
use tidegate::manifest::desired::Router;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// Where it is found.
const HOST: &str = "web.example.test";
const CANARY: &str = include_str!("flagger/canary.yaml");
const TEMPLATE: &str = include_str!("flagger/template.yaml");
/// What people keep in Git.
const WEB: &str = include_str!("flagger/web.yaml");
/// What Flagger made of it.
const MADE: &str = include_str!("flagger/made.yaml");

/// Brings the application to where Flagger leaves it while no version is on its way.
async fn managed_by_flagger(behind: &Behind) {
    let world = &behind.world;
    world.kubectl(&["apply", "-f", "-"], &format!("{WEB}---\n{CANARY}")).await;
    let uid = world.kubectl(&["get", "canary", "web", "--output=jsonpath={.metadata.uid}"], "").await;
    let owner = json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": "web", "uid": uid.trim(), "controller": true,
        "blockOwnerDeletion": true,
    });
    let made = MADE.replace("OWNER", &owner.to_string());
    world.kubectl(&["create", "--field-manager=flagger", "-f", "-"], &made).await;
    let no_pods = json!({"spec": {"replicas": 0}}).to_string();
    world.kubectl(&["patch", "deployment", "web", "--field-manager=flagger", "--type=merge", "-p", &no_pods], "").await;
    eventually("the pods of web-primary alone", async || {
        let primary = world.get("Deployment", "web-primary").await?;
        (primary["status"]["availableReplicas"] == 2 && world.pods("web").await.is_empty()).then_some(())
    })
    .await;
    collected(behind).await;
}

/// Waits until the garbage collector knows HTTPRoutes: one that nobody owns any more is gone. It takes an owner from those objects only
/// that it knows (`--cascade=orphan`); it deletes the others later.
async fn collected(behind: &Behind) {
    let gone = "{apiVersion: v1, kind: ConfigMap, name: gone, uid: 5f0c3c0e-8d5e-4a86-9d4f-0c5f0b6a7e11}";
    let orphan = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: orphan, ownerReferences: [{gone}]}}\n\
         spec: {{hostnames: [orphan.example.test]}}\n"
    );
    behind.world.kubectl(&["create", "-f", "-"], &orphan).await;
    let is_gone = async || behind.world.get("HTTPRoute", "orphan").await.is_none().then_some(());
    eventually("a garbage collector that knows HTTPRoutes", is_gone).await;
}

/// Commits what the import makes, as it stands.
fn imported(behind: &mut Behind) -> String {
    let files = [("canary.yaml", CANARY), ("template.yaml", TEMPLATE), ("web.yaml", WEB)];
    let files = files.map(|(path, text)| (path.parse().unwrap(), text.as_bytes().to_vec()));
    let namespace = behind.world.space.name.clone();
    let imported = import::converted(Tool::Flagger, &files, &namespace, None).unwrap();
    assert_eq!(imported.expected, []);
    let lost = imported
        .fields
        .iter()
        .filter(|note| matches!(note.outcome, FieldOutcome::NotBuilt | FieldOutcome::NotUnderstood));
    assert_eq!(lost.collect::<Vec<_>>(), Vec::<&import::Note>::new());
    let made: Vec<(String, &str)> =
        imported.files.iter().map(|made| (format!("it/{}", made.path), made.text.as_str())).collect();
    let [web, service] = ["web", "web"].map(|name| name.parse().unwrap());
    let router = Router::GatewayApi { http_route: web, service };
    behind.world.watch_in_copies(&format!("{namespace}/web"), Some(router));
    behind.world.commit(&made.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>());
    imported.files[1].text.clone()
}

/// What the controller wrote, but for its Lease and Events.
async fn writes(behind: &Behind) -> BTreeSet<String> {
    let requests = behind.world.requests_since(Mark::START).await;
    let writes = requests.iter().filter(|r| r.is_write() && !matches!(r.resource.as_str(), "leases" | "events"));
    writes.map(|r| format!("{} {}/{}", r.verb, r.resource, r.name)).collect()
}

/// The whole story.
pub(super) async fn story(bed: &'static Bed, pods: &Pods) {
    let mut behind = Behind::empty(bed, "handover", pods).await;
    managed_by_flagger(&behind).await;
    c_1_c_17_what_flagger_left_is_taken_over_without_a_restart_or_a_lost_request(&mut behind).await;
    behind.world.settled(&[]).await;
}

async fn c_1_c_17_what_flagger_left_is_taken_over_without_a_restart_or_a_lost_request(behind: &mut Behind) {
    serves(HOST, "1").await;
    let (people, before) = (Load::start(HOST, None), behind.world.pods("web-primary").await);

    let manifests = imported(behind);
    behind.world.start();
    let shown = behind.world.until_condition(Reason::ForeignApplier).await;
    assert!(shown.contains("Flagger") && shown.contains("--cascade=orphan"), "{shown}");
    assert_eq!(writes(behind).await, BTreeSet::new(), "while the Canary owns it");

    behind.world.kubectl(&["delete", "canary", "web", "--cascade=orphan"], "").await;
    behind.world.until_steady(Rest::Initialized).await;
    people.next(500).await;
    assert_eq!(behind.world.pods("web-primary").await, before, "no pod was started anew");
    assert_eq!(behind.world.pods("web").await, BTreeSet::new(), "nor beside them");
    let route = behind.world.get("HTTPRoute", "web").await.unwrap();
    let backends = route["spec"]["rules"][0]["backendRefs"].as_array().unwrap();
    assert_eq!(backends.iter().map(|backend| &backend["name"]).collect::<Vec<_>>(), ["web"], "as Git says");
    assert_eq!(people.tally().failed, Default::default(), "requests that failed meanwhile");

    first_version_after(behind, &manifests, &people).await;
}

/// The first change of the version that tidegate rolls out.
async fn first_version_after(behind: &Behind, manifests: &str, people: &Load) {
    let namespace = &behind.world.space.name;
    let next =
        manifests.replace("example.test/web:1", "example.test/web:2").replace("greeting: hello", "greeting: good day");
    behind.world.commit(&[(&format!("it/{namespace}/web/web.yaml"), &next)]);
    behind.world.until_steady(Rest::Succeeded).await;
    people.row(2, 500).await;
    assert_eq!(people.tally().failed, Default::default(), "requests that failed");
    let primary = behind.world.get("Deployment", "web-primary").await.unwrap();
    assert_eq!(primary["spec"]["template"]["spec"]["containers"][0]["image"], "example.test/web:2");
    let greeting = behind.world.get("ConfigMap", "web-primary").await.unwrap()["data"]["greeting"].clone();
    assert_eq!((greeting, replicas(behind, "web").await), (json!("good day"), json!(0)));
}

async fn replicas(behind: &Behind, name: &str) -> Value {
    behind.world.get("Deployment", name).await.unwrap()["spec"]["replicas"].clone()
}
