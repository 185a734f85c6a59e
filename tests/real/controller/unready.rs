//! What is not ready, and what says that it is though nobody has looked: pods that the API server refuses to make, and a controller
//! manager that stands still.

use super::app::{App, GATED, hasty};
use super::hands::applied_by_hand;
use super::scaling::each_step_gated;
use super::served::Served;
use super::world::{Held, World, is_on};
use crate::support::cluster::{Bed, eventually};
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Phase, Rest};

/// A pod of an app as the API server would be asked to make it.
fn pod(app: &str, version: u8) -> String {
    let metadata = json!({"name": "probe", "labels": {"app": app}});
    let spec = json!({"containers": [{"name": "main", "image": format!("example.test/web:{version}")}]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).to_string()
}

impl World {
    /// Whether that pod could be made.
    async fn takes(&self, pod: &str) -> bool {
        let args = ["--namespace", &self.space.name, "apply", "--dry-run=server", "-f", "-"];
        self.bed.try_kubectl(&args, pod).await.is_ok()
    }

    /// From now on no pod of that version of an app can be made.
    async fn refuse_pods(&self, app: &str, version: u8) {
        let image = format!("object.spec.containers.exists(c, c.image.endsWith(':{version}'))");
        let rule = format!("!(object.metadata.labels['app'] == '{app}' && {image})");
        self.bed.refuse(&self.space, "", "pods", &rule, "there is no room").await;
        eventually("the policy", async || (!self.takes(&pod(app, version)).await).then_some(())).await;
    }

    /// Takes that back.
    async fn accept_pods(&self, app: &str, version: u8) {
        self.bed.accept(&self.space).await;
        eventually("no policy", async || self.takes(&pod(app, version)).await.then_some(())).await;
    }

    /// Lets the controller that is started serve its numbers.
    fn listens(&mut self) {
        self.listen = Some(std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    }

    /// Waits until the controller says that its one rollout waits for that.
    async fn waits_for(&self, reason: Reason) {
        let (numbers, wanted) = (
            format!("http://{}/metrics", self.listen.expect("it listens")),
            format!("tidegate_waiting{{reason=\"{}\"}} 1", reason.as_str()),
        );
        eventually(reason.as_str(), async || {
            let answer = reqwest::get(&numbers).await.ok()?;
            answer.text().await.ok()?.lines().any(|line| line == wanted).then_some(())
        })
        .await;
    }

    async fn app_behind(&self, service: &str) -> Value {
        self.get("Service", service).await.unwrap()["spec"]["selector"]["app"].clone()
    }

    /// The share of requests that the candidate's Service has, in percent of those of all.
    async fn candidates_share(&self) -> i64 {
        let route = self.get("HTTPRoute", "web").await.unwrap();
        let refs = route["spec"]["rules"][0]["backendRefs"].as_array().unwrap().clone();
        let weight = |backend: &Value| backend["weight"].as_i64().unwrap_or(1);
        let ours = refs.iter().filter(|backend| backend["name"] == "web-canary");
        ours.map(weight).sum::<i64>() * 100 / refs.iter().map(weight).sum::<i64>()
    }

    fn is_initializing(&self) -> bool {
        matches!(self.record().unwrap().phase, Phase::Initializing(_))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_2_nothing_is_put_in_front_of_a_stable_that_is_not_ready() {
    let mut world = World::new("unready", GATED).await;
    world.refuse_pods("web", 1).await;
    world.listens();
    world.start();
    world.waits_for(Reason::StableNotReady).await;
    world.polls(3).await;
    assert!(world.is_initializing());
    for kind in ["Service", "HTTPRoute"] {
        assert_eq!(world.get(kind, "web").await, None, "{kind}");
    }
    world.accept_pods("web", 1).await;
    world.until_steady(Rest::Initialized).await;
    assert_eq!(world.app_behind("web").await, "web");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_1_c_2_the_target_keeps_its_pods_and_the_service_while_the_copy_is_not_ready() {
    let mut world = World::new("unready-copy", &format!("    layout: primary\n{GATED}")).await;
    applied_by_hand(&world, &App::new("web", 1)).await;
    let (before, served) = (world.pods("web").await, Served::watch(&world, "web"));
    // A pod is available before its endpoint is.
    eventually("both endpoints", async || (served.now() == 2).then_some(())).await;
    world.refuse_pods("web-primary", 1).await;
    world.listens();
    world.start();
    world.waits_for(Reason::StableNotReady).await;
    world.polls(3).await;
    assert!(world.is_initializing());
    assert_eq!((world.pods("web").await, world.app_behind("web").await), (before, json!("web")));
    world.accept_pods("web-primary", 1).await;
    world.until_steady(Rest::Initialized).await;
    assert_eq!(world.app_behind("web").await, "web-primary");
    world.settled(&[]).await;
    assert!(served.fewest_from(2) >= 2, "{}", served.fewest_from(2));
}

/// Stable's pods of the new version cannot be made.
async fn stays_on_the_candidate(name: &str, layout: &str, [stable, candidate]: [&str; 2]) {
    let promotion = "  promotion: {before: {approval: pullRequest}}\n";
    let mut world = World::new(name, &format!("{layout}{}{promotion}", hasty(GATED, 30))).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.approve("tenth").await;
    world.request("promotion").await;
    world.refuse_pods(stable, 2).await;
    let served = Served::watch(&world, "web-canary");
    world.approve("promotion").await;
    let told = world.until_condition(Reason::OnCandidate).await;
    assert!(matches!(world.record().unwrap().phase, Phase::Failed { .. }), "{told}");
    world.polls(3).await;
    assert_eq!(world.candidates_share().await, 100);
    let kept = world.get("Deployment", candidate).await.unwrap();
    assert_eq!((&kept["spec"]["replicas"], &kept["status"]["readyReplicas"]), (&json!(2), &json!(2)));
    assert!(served.fewest() >= 2, "{}", served.fewest());
    world.accept_pods(stable, 2).await;
    let run = world.record().unwrap().run.unwrap().id;
    world.decide(run.as_str(), "retry");
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(record.history.last().unwrap().outcome, Outcome::Promoted);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_19_a_stable_that_does_not_become_ready_leaves_traffic_on_the_candidate() {
    stays_on_the_candidate("unready-at-promotion", "", ["web", "web-canary"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_19_so_does_a_copy() {
    stays_on_the_candidate("unready-copy-at-promotion", "    layout: primary\n", ["web-primary", "web"]).await;
}

/// What a Deployment says of itself: how many pods are updated and ready, and whether that is about what it asks for now.
async fn says(world: &World, name: &str) -> (Value, Value, bool) {
    let deployment = world.get("Deployment", name).await.unwrap();
    let status = &deployment["status"];
    let present = status["observedGeneration"] == deployment["metadata"]["generation"];
    (status["updatedReplicas"].clone(), status["readyReplicas"].clone(), present)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_33_while_the_controller_manager_stands_still_no_status_is_believed() {
    let mut world = World::empty(Held::Own(Box::new(Bed::own().await)), "lagging").await;
    world.add(&each_step_gated().replace("Deadline: 90s", "Deadline: 10m"), &App::new("web", 1));
    world.listens();
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.request("tenth").await;

    // What was made has no status at all.
    world.bed.fault(&["stop", "kube-controller-manager"]).await;
    world.approve("tenth").await;
    world.waits_for(Reason::CandidateNotReady).await;
    world.polls(3).await;
    assert_eq!(world.weight().await, 0);
    world.bed.fault(&["cont", "kube-controller-manager"]).await;
    world.approve("half").await;
    world.request("promotion").await;

    // What was overwritten has one that says that all is well, of what it was before.
    world.bed.fault(&["stop", "kube-controller-manager"]).await;
    world.approve("promotion").await;
    world.waits_for(Reason::StableNotReady).await;
    assert_eq!(says(&world, "web").await, (json!(2), json!(2), false));
    // A process that knows nothing of all that believes it as little.
    world.kill().await;
    world.start();
    world.waits_for(Reason::StableNotReady).await;
    world.polls(3).await;
    assert!(is_on(&world.record().unwrap(), "promote"));
    assert_eq!((world.weight().await, says(&world, "web").await), (100, (json!(2), json!(2), false)));
    world.bed.fault(&["cont", "kube-controller-manager"]).await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(says(&world, "web").await, (json!(2), json!(2), true));
    let checked = world.settled(&[]).await;
    assert_eq!(checked.highest_weight.get(), 100);
}
