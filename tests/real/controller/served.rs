//! Counts the ready endpoints of a Service at every instant.

use super::world::World;
use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// Watches the EndpointSlices of one Service, until dropped.
pub(super) struct Served {
    counts: Arc<Mutex<Vec<usize>>>,
    task: JoinHandle<()>,
}

impl Served {
    pub(super) fn watch(world: &World, service: &str) -> Self {
        let slices: Api<EndpointSlice> = world.space.api();
        let config = watcher::Config::default().labels(&format!("kubernetes.io/service-name={service}"));
        let counts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            let (mut ready, mut listed) = (BTreeMap::new(), false);
            // A watch that breaks is opened again where it was. One that has to list anew did not see what lay between.
            let mut events = watcher(slices, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                let Ok(event) = event else { continue };
                let listing = matches!(event, Event::Init | Event::InitApply(_));
                match event {
                    Event::Init => assert!(!listed, "the endpoints were listed anew"),
                    Event::InitDone => listed = true,
                    Event::InitApply(slice) | Event::Apply(slice) => {
                        let count = slice.endpoints.iter().flatten().filter(|e| {
                            e.conditions.as_ref().is_some_and(|conditions| conditions.ready.unwrap_or(true))
                        });
                        ready.insert(slice.name_any(), count.count());
                    }
                    Event::Delete(slice) => drop(ready.remove(&slice.name_any())),
                }
                // A list is one sight.
                if !listing {
                    seen.lock().unwrap().push(ready.values().sum());
                }
            }
        });
        Self { counts, task }
    }

    /// The fewest there were, from the first that was ready on.
    pub(super) fn fewest(&self) -> usize {
        self.fewest_from(1)
    }

    /// The fewest there were, from when there were so many on.
    pub(super) fn fewest_from(&self, enough: usize) -> usize {
        assert!(!self.task.is_finished(), "the watch has ended");
        let counts = self.counts.lock().unwrap();
        counts.iter().copied().skip_while(|count| *count < enough).min().expect("so many endpoints were ready")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
