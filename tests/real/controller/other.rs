//! The rest of an application: kinds that are known by their names alone, with the definitions that their makers ship.

use super::app::{App, GATED};
use super::world::{Held, World, is_on};
use crate::support::cluster::{Bed, build, eventually, home};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// The objects beside the app, with that interval and whatever more of the Certificate's spec.
fn beside(interval: &str, issuer: &str) -> String {
    format!(
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {{name: web}}\n\
         spec: {{selector: {{matchLabels: {{app: web}}}}, endpoints: [{{port: http, interval: {interval}}}]}}\n---\n\
         apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: web}}\n\
         spec: {{refreshInterval: 1h, secretStoreRef: {{name: store}}, target: {{name: web-outside}}, \
         data: [{{secretKey: key, remoteRef: {{key: web}}}}]}}\n---\n\
         apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {{name: web}}\n\
         spec: {{secretName: web-tls, dnsNames: [web.example.test]{issuer}}}\n---\n\
         apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: web}}\n\
         spec: {{podSelector: {{matchLabels: {{app: web}}}}, policyTypes: [Ingress], ingress: [{{}}]}}\n---\n\
         apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: web-nightly}}\n\
         spec: {{schedule: 0 3 * * *, jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, \
         containers: [{{name: main, image: 'example.test/web:1'}}]}}}}}}}}}}\n---\n\
         apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: web-data}}\n\
         spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}"
    )
}

const ISSUER: &str = ", issuerRef: {name: internal, kind: Issuer}";
const DEFINITIONS: [&str; 3] = [
    "monitoring.coreos.com_servicemonitors.yaml",
    "external-secrets.io_externalsecrets.yaml",
    "cert-manager.io_certificates.yaml",
];

impl World {
    async fn define(&self, file: &str) {
        let file = home().join("crds").join(file);
        let file = file.to_str().unwrap();
        self.bed.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", file], "").await;
    }

    fn releases(&self, version: u8, more: &str) {
        self.release(&App { more, ..App::new("web", version) });
    }

    async fn field(&self, object: &str, path: &str) -> String {
        self.kubectl(&["get", object, "--output", &format!("jsonpath={{{path}}}")], "").await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_of_others_wait_for_their_definitions_and_are_applied_judged_and_removed() {
    build("crds").await;
    // Definitions are of the whole cluster, and one of them goes in between.
    let mut world = World::empty(Held::Own(Box::new(Bed::own().await)), "others").await;
    world.add(GATED, &App { more: &beside("30s", ISSUER), ..App::new("web", 1) });
    world.add("", &App::worker("alone", 1));
    world.start();
    let lacking = world.until_condition(Reason::CrdMissing).await;
    assert!(lacking.contains("ServiceMonitor") || lacking.contains("Certificate"), "{lacking}");
    world.until_steady_of("alone", Rest::Initialized).await;
    for file in DEFINITIONS {
        world.define(file).await;
    }
    world.until_steady(Rest::Initialized).await;
    assert_eq!(world.field("externalsecrets.external-secrets.io/web", ".spec.target.name").await, "web-outside");

    // Its definition lacks an issuer: the API server says so in the dry run, before anything is made.
    world.releases(2, &beside("15s", ""));
    let (_, why) = world.until_failed_of("web").await;
    assert!(why.contains("Certificate") && why.contains("spec.issuerRef: Required value"), "{why}");
    assert_eq!(world.field("servicemonitors/web", ".spec.endpoints[0].interval").await, "30s");

    // A good version; its objects stay stable's until it is promoted, and one kind goes in between with all its objects.
    world.releases(2, &beside("15s", ISSUER));
    world.approve("tenth").await;
    world.until("half", |record| is_on(record, "half") || matches!(record.phase, Phase::Promoting(_))).await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(world.field("servicemonitors/web", ".spec.endpoints[0].interval").await, "15s");

    world.releases(3, &beside("10s", ISSUER));
    world.request("tenth").await;
    world.bed.kubectl(&["delete", "crd", "certificates.cert-manager.io"], "").await;
    let lacking = world.until_condition(Reason::CrdMissing).await;
    assert!(lacking.contains("Certificate"), "{lacking}");
    world.release(&App::worker("alone", 2));
    world.until_steady_of("alone", Rest::Succeeded).await;
    world.define(DEFINITIONS[2]).await;
    world.approve("tenth").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(world.field("certificates.cert-manager.io/web", ".spec.issuerRef.name").await, "internal");
    assert_eq!(world.field("servicemonitors/web", ".spec.endpoints[0].interval").await, "10s");

    // What main no longer has goes, behind the gates that its phases have. So many go at once, and a claim among them that may hold data: a
    // person has the word. What a finalizer holds keeps none of the others.
    world.releases(3, "");
    world.approve("promotion").await;
    let asked = world.until_condition(Reason::TooManyDeletions).await;
    assert!(asked.contains("6 objects"), "{asked}");
    world.approve("delete").await;
    let kinds =
        "servicemonitors,certificates.cert-manager.io,externalsecrets.external-secrets.io,networkpolicies,cronjobs";
    eventually("the rest is gone", async || {
        world.kubectl(&["get", kinds, "--output", "name"], "").await.trim().is_empty().then_some(())
    })
    .await;
    let patch = r#"{"metadata": {"finalizers": null}}"#;
    assert_ne!(world.field("persistentvolumeclaims/web-data", ".metadata.deletionTimestamp").await, "");
    world.kubectl(&["patch", "persistentvolumeclaims/web-data", "--type", "merge", "--patch", patch], "").await;
    eventually("the claim is gone", async || {
        world.kubectl(&["get", "persistentvolumeclaims", "--output", "name"], "").await.trim().is_empty().then_some(())
    })
    .await;
    world.until_steady(Rest::Succeeded).await;
    // What the cluster calls a kind everybody may ask (`system:discovery`), by no right of the chart's.
    world.settled_beside(&[], &["get  in the cluster: 200 /api", "get  in the cluster: 404 /apis/"]).await;
}
