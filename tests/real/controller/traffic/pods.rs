//! Answers HTTP for every fake pod: all their addresses are local here, so one server takes every connection and knows by the
//! address that it came to which pod was meant.
//!
//! The pod's annotation `testbed/error-percent: "20"` makes that share of its answers a 500.

use crate::support::cluster::{Bed, eventually};
use axum::extract::{ConnectInfo, State, connect_info::Connected};
use axum::http::StatusCode;
use axum::serve::IncomingStream;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A namespace, a pod in it, and with what it has answered.
type Answer = (String, String, u16);

/// All pods of the cluster, and how often they have answered.
#[derive(Clone)]
pub(super) struct Pods {
    known: Store<Pod>,
    api: Api<Pod>,
    answered: Arc<Mutex<BTreeMap<Answer, u64>>>,
    requests: Arc<AtomicU64>,
}

/// The address that a request came to.
#[derive(Clone, Copy)]
struct Meant(IpAddr);

impl Connected<IncomingStream<'_, TcpListener>> for Meant {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self(stream.io().local_addr().unwrap().ip())
    }
}

impl Pods {
    /// Serves port 80 of all pods, until the runtime ends.
    pub(super) async fn serve(bed: &Bed) -> Self {
        let writer = reflector::store::Writer::default();
        let api: Api<Pod> = Api::all(bed.client().await);
        let known = writer.as_reader();
        let pods = Self { known, api: api.clone(), answered: Arc::default(), requests: Arc::default() };
        let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
        tokio::spawn(events.for_each(|_| std::future::ready(())));
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let app = axum::Router::new().fallback(answer).with_state(pods.clone());
        let service = app.into_make_service_with_connect_info::<Meant>();
        tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        pods
    }

    /// What the applications in the pods tell a Prometheus.
    pub(super) fn page(&self) -> String {
        let mut page = String::from("# TYPE http_requests_total counter\n");
        for ((namespace, pod, code), count) in self.answered.lock().unwrap().iter() {
            let labels = format!("namespace=\"{namespace}\",pod=\"{pod}\",code=\"{code}\"");
            writeln!(page, "http_requests_total{{{labels}}} {count}").unwrap();
        }
        page
    }

    /// The pod that has this address now. The proxy may know of one before we are told.
    async fn at(&self, address: IpAddr) -> Option<Arc<Pod>> {
        let address = address.to_string();
        let is_it = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()) == Some(&address);
        if let Some(known) = self.known.find(is_it) {
            return Some(known);
        }
        let there = ListParams::default().fields(&format!("status.podIP={address}"));
        let listed = eventually("a list of pods", async || self.api.list(&there).await.ok()).await;
        listed.items.into_iter().next().map(Arc::new)
    }
}

/// The version of a pod, which is the tag of its image.
async fn answer(ConnectInfo(Meant(address)): ConnectInfo<Meant>, State(pods): State<Pods>) -> (StatusCode, String) {
    let Some(pod) = pods.at(address).await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "no pod has this address".to_owned());
    };
    let fails: u64 = pod.annotations().get("testbed/error-percent").map_or(0, |percent| percent.parse().unwrap());
    // 61 and 100 have no common divisor: each hundred requests meets each rest once.
    let rest = pods.requests.fetch_add(1, Ordering::Relaxed) * 61 % 100;
    let status = if rest < fails { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    let asked = (pod.namespace().unwrap_or_default(), pod.name_any(), status.as_u16());
    *pods.answered.lock().unwrap().entry(asked).or_default() += 1;
    let image = pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.as_deref()).unwrap_or_default();
    (status, image.rsplit(':').next().unwrap_or_default().to_owned())
}
