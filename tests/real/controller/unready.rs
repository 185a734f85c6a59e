//! What is not ready: pods that the API server refuses to make, and what the controller says that it waits for.

use super::world::World;
use crate::support::cluster::eventually;
use serde_json::json;
use tidegate::plan::report::Reason;

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
    pub(super) async fn refuse_pods(&self, app: &str, version: u8) {
        let image = format!("object.spec.containers.exists(c, c.image.endsWith(':{version}'))");
        let rule = format!("!(object.metadata.labels['app'] == '{app}' && {image})");
        self.bed.refuse(&self.space, "", "pods", &rule, "there is no room").await;
        eventually("the policy", async || (!self.takes(&pod(app, version)).await).then_some(())).await;
    }

    /// Takes that back.
    pub(super) async fn accept_pods(&self, app: &str, version: u8) {
        self.bed.accept(&self.space).await;
        eventually("no policy", async || self.takes(&pod(app, version)).await.then_some(())).await;
    }

    /// Lets the controller that is started serve its numbers.
    pub(super) fn listens(&mut self) {
        self.listen = Some(std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    }

    /// Waits until the controller says that one rollout waits for that.
    pub(super) async fn waits_for(&self, reason: Reason) {
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
}
