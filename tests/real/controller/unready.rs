//! What is not ready: pods that the API server refuses to make, and what the controller says that it waits for.

use super::world::World;
use crate::support::cluster::eventually;
use crate::support::port::Port;
use serde_json::json;
use tidegate::plan::report::Reason;

/// A pod of an app as the API server would be asked to make it.
fn pod(app: &str, version: u8) -> String {
    let metadata = json!({"name": "probe", "labels": {"app": app}});
    let spec = json!({"containers": [{"name": "main", "image": format!("example.test/web:{version}")}]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).to_string()
}

impl World {
    /// Tries, in a dry run, to make that pod; the complaint, if it is refused.
    async fn tries(&self, pod: &str) -> Option<String> {
        let args = ["--namespace", &self.space.name, "apply", "--dry-run=server", "-f", "-"];
        self.bed.try_kubectl(&args, pod).await.err()
    }

    /// From now on no pod of that version of an app can be made.
    pub(super) async fn refuse_pods(&self, app: &str, version: u8) {
        let image = format!("object.spec.containers.exists(c, c.image.endsWith(':{version}'))");
        let rule = format!("!(object.metadata.labels['app'] == '{app}' && {image})");
        self.bed.refuse(&self.space, "", "pods", &rule, "there is no room").await;
        eventually("the policy", async || {
            self.tries(&pod(app, version)).await?.contains("there is no room").then_some(())
        })
        .await;
    }

    /// Takes that back.
    pub(super) async fn accept_pods(&self, app: &str, version: u8) {
        self.bed.accept(&self.space).await;
        eventually("no policy", async || self.tries(&pod(app, version)).await.is_none().then_some(())).await;
    }

    /// Lets the controller that is started serve its numbers.
    pub(super) fn listens(&mut self) {
        self.listen = Some(Port::held());
    }

    /// The address of something that it serves.
    pub(super) fn served(&self, path: &str) -> String {
        format!("http://{}/{path}", self.listen.as_ref().expect("it listens").address)
    }

    /// Waits until the controller says that one rollout waits for that.
    pub(super) async fn waits_for(&self, reason: Reason) {
        let (numbers, wanted) =
            (self.served("metrics"), format!("tidegate_waiting{{reason=\"{}\"}} 1", reason.as_str()));
        eventually(reason.as_str(), async || {
            let answer = reqwest::get(&numbers).await.ok()?;
            answer.text().await.ok()?.lines().any(|line| line == wanted).then_some(())
        })
        .await;
    }
}
