//! Looking up what pods refer to and nobody watches: each in a task of its own, as dry runs.

use super::{Collector, of_rollout};
use crate::manifest::ids::RolloutId;
use crate::manifest::reference::Referent;
use crate::plan::action::SecretCopy;
use crate::plan::evidence::Found;
use crate::workload::live::WriteOutcome;
use crate::workload::lookup::{Lookup, Presence};
use std::sync::Arc;

/// Whether what was looked up may be otherwise since that copy was tried: the copy itself, and the Secret if that has moved on.
pub(super) fn is_news(lookup: &Lookup, copy: &SecretCopy, outcome: &WriteOutcome) -> bool {
    let moved = matches!(outcome, WriteOutcome::Stale(_));
    lookup.to == Referent::Secret && (lookup.name == copy.anchor.name || moved && lookup.name == copy.secret)
}

impl Collector {
    /// Looks up what a rollout wants to know, unless that is under way already.
    pub fn look(&self, rollout: &RolloutId, lookups: &[Lookup]) {
        for lookup in lookups {
            let asked = (rollout.clone(), lookup.clone());
            if !self.known().looking.insert(asked.clone()) {
                continue;
            }
            let (cluster, clock, shared) = (self.cluster.clone(), self.clock.clone(), Arc::clone(&self.shared));
            self.spawn(of_rollout(rollout), async move {
                let _turn = shared.turns.acquire().await;
                let presence = cluster.look(&asked.1).await;
                tracing::debug!(rollout = %asked.0, ?presence, "looked up");
                let found = Found { presence, at: clock.now() };
                let mut known = shared.known();
                known.looking.remove(&asked);
                known.tell([asked.0.clone()].into());
                let looked = &mut known.of(&asked.0).looked;
                match looked.get_mut(&asked.1) {
                    // Silence takes nothing back: what is made of it is looked at once more when it is made.
                    Some(Found { presence: Presence::There(_), at })
                        if matches!(found.presence, Presence::Unknown(_)) =>
                    {
                        *at = found.at;
                    }
                    _ => drop(looked.insert(asked.1, found)),
                }
                drop(known);
                shared.woken.notify_one();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Providers;
    use super::*;
    use crate::cluster::client::Cluster;
    use crate::reconcile::clock::Clock;
    use serde_json::json;
    use tidegate_world::kube_api::{Fault, FaultVerdict, KubeApi};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn c_7_one_look_without_an_answer_takes_nothing_back() {
        let (clock, hand) = Clock::default().another();
        let api = KubeApi::new(*clock.now());
        let home = "default".parse().unwrap();
        let cluster = Cluster::over(api.caller("it"), home, &"prod".parse().unwrap()).await.unwrap();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": "default"}});
        let secret = api.change(|world| world.create("v1", "Secret", "maker", secret)).unwrap();
        let woken = Arc::new(Notify::new());
        let collector = Collector::new(cluster, Providers::new(), clock, Arc::clone(&woken));
        let (rollout, namespace) = ("default/web".parse().unwrap(), "default".parse().unwrap());
        let lookup = Lookup { to: Referent::Secret, namespace, name: "tls".parse().unwrap() };
        let look = async || {
            hand.step(30);
            collector.look(&rollout, std::slice::from_ref(&lookup));
            woken.notified().await;
            collector.of(&rollout).looked[&lookup].clone()
        };
        let first = look().await;
        assert!(matches!(first.presence, Presence::There(_)), "{first:?}");
        api.judge(|_| FaultVerdict::Before(Fault::Unavailable));
        let silent = look().await;
        assert!(silent.presence == first.presence && silent.at > first.at, "{silent:?}");
        // What is said counts, and so does silence where nothing was known.
        api.judge(|_| FaultVerdict::Before(Fault::Forbidden));
        assert!(matches!(look().await.presence, Presence::Forbidden(_)));
        api.judge(|_| FaultVerdict::Before(Fault::Unavailable));
        assert!(matches!(look().await.presence, Presence::Unknown(_)));
        api.acquit();
        assert_eq!(look().await.presence, first.presence);
        api.change(|world| world.delete(&secret)).unwrap();
        assert_eq!(look().await.presence, Presence::Absent);
    }
}
