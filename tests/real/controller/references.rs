//! What pods cannot start without, and nobody has: the run waits before anything is made, and goes on when it is there.

use super::app::{App, ungated};
use super::world::World;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_7_a_missing_secret_holds_the_run_until_it_is_there_and_nobody_reads_it() {
    let mut world = World::new("needs", &ungated()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    let image = "image: \"example.test/web:2\"";
    let needs = format!("{image}, envFrom: [{{configMapRef: {{name: flags}}}}, {{secretRef: {{name: token}}}}]");
    world.commit(&[("it/web.yaml", &App::new("web", 2).text().replace(image, &needs))]);
    let told = world.until_condition(Reason::ReferenceMissing).await;
    let missing = |what: &str| {
        format!("{what}, which the pods need (it/web.yaml:9), is neither among the manifests nor in the cluster")
    };
    assert_eq!(told, format!("{}; {}", missing("ConfigMap flags"), missing("Secret token")));
    world.settled(&[Reason::ReferenceMissing]).await;
    assert!(world.get("Deployment", "web-canary").await.is_none(), "nothing is made");
    world.start();

    world.kubectl(&["create", "configmap", "flags"], "").await;
    let told = |condition: &tidegate::record::state::Condition| condition.message == missing("Secret token");
    world.until("the Secret alone is missing", |record| record.conditions.iter().any(told)).await;
    world.kubectl(&["create", "secret", "generic", "token", "--from-literal=key=hush-hush"], "").await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
    let mut written = world.state_files();
    written.insert("README.md".to_owned(), world.readme());
    assert!(written.values().all(|text| !text.contains("hush") && !text.contains("aHVzaC1odXNo")), "{written:#?}");
}
