//! The layout `primary`: how many pods the copy has is the word of an autoscaler of its own, which follows a promotion.

use super::app::{App, of, ungated};
use super::world::World;
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::record::state::Rest;

const NAME: &str = "scaled";
const COPY: &str = "scaled-primary";

impl World {
    /// A version whose number of pods is an autoscaler's word.
    fn scaled(&self, version: u8, least: u32) {
        let app = App::new(NAME, version).text().replace("  replicas: 2\n", "");
        let text = format!(
            "{app}---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {NAME}}}\nspec:\n  \
             scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {NAME}}}\n  minReplicas: {least}\n  maxReplicas: 6\n"
        );
        self.commit(&[(&format!("it/{NAME}.yaml"), &text)]);
    }

    /// The version and the pods of a Deployment, as its spec says.
    async fn runs(&self, name: &str) -> Option<(String, Value)> {
        let deployment = self.get("Deployment", name).await?;
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
        let tag = image.rsplit(':').next()?.to_owned();
        Some((tag, deployment["spec"]["replicas"].clone()))
    }

    /// What an autoscaler scales, and the fewest pods it lets that have.
    async fn scaler(&self, name: &str) -> (Value, Value) {
        let spec = self.get("HorizontalPodAutoscaler", name).await.unwrap()["spec"].clone();
        (spec["scaleTargetRef"]["name"].clone(), spec["minReplicas"].clone())
    }
}

/// Begins with version 1 and at least two pods.
pub(super) fn begins(world: &mut World) {
    world.add(&format!("    layout: primary\n{}", of(NAME, &ungated())), &App::new(NAME, 1));
    world.scaled(1, 2);
}

/// The next version comes with more pods at least.
pub(super) async fn c_17_c_18_c_31_the_copy_has_an_autoscaler_of_its_own_that_follows_a_promotion_alone(world: &World) {
    world.until_steady_of(NAME, Rest::Initialized).await;
    assert_eq!(world.scaler(COPY).await, (json!(COPY), json!(2)));
    world.scaled(2, 3);
    world.until_steady_of(NAME, Rest::Succeeded).await;
    assert_eq!(world.scaler(COPY).await, (json!(COPY), json!(3)));
    for (name, pods) in [(NAME, 0), (COPY, 3)] {
        let pods = ("2".to_owned(), json!(pods));
        eventually(&format!("{pods:?} of {name}"), async || (world.runs(name).await? == pods).then_some(())).await;
    }
}

/// The number stays the autoscaler's.
pub(super) async fn c_31_it_keeps_its_word(world: &World) {
    assert_eq!(world.runs(COPY).await, Some(("2".to_owned(), json!(3))));
}
