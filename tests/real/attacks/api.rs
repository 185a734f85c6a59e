//! The cluster in a process behind TLS, as the binary reaches it, and what was written to it.

use super::world::run;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidegate::reconcile::clock::Clock;
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::kube_api::{FaultVerdict, SeenRequest, What};
use tidegate::world::simulation::Simulation;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// What lets in a process of that name.
fn token(caller: &str) -> String {
    format!("canary-kube-{caller}-8a1f03d7")
}

/// The kinds of objects that nobody may change.
const KINDS: [(&str, &str); 5] = [
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
];

/// All that there is of [`KINDS`], without what only says how it stands.
pub(super) type Objects = BTreeMap<String, Value>;

/// The running API server; it ends with this value.
pub(super) struct Api {
    pub(super) stage: Arc<Simulation>,
    pub(super) address: SocketAddr,
    authority: String,
    writes: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// Whether a request asks to change what users reach: neither the Lease nor an Event does.
fn is_write(seen: &SeenRequest<'_>) -> bool {
    let What::Request { verb, dry_run: false } = seen.what else { return false };
    verb.writes() && !matches!(seen.resource.plural, "leases" | "events")
}

impl Api {
    /// Serves an empty cluster, in whose namespace `shop` there is something to do.
    pub(super) async fn start(dir: &Path) -> Self {
        let stage = Arc::new(Simulation::new(dir, Clock::default().now()).unwrap());
        let writes: Arc<Mutex<Vec<String>>> = Arc::default();
        let written = Arc::clone(&writes);
        stage.api.judge(move |seen| {
            if is_write(seen) {
                let SeenRequest { caller, resource, name, what, .. } = seen;
                written.lock().unwrap().push(format!("{caller}: {what:?} {} {name}", resource.plural));
            }
            FaultVerdict::Pass
        });
        let mut tasks = JoinSet::new();
        let nature = Arc::clone(&stage);
        tasks.spawn(async move { nature.nature().await });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = TlsAcceptor::from(Arc::new(certified(dir).await));
        tasks.spawn(serve(listener, tls, Arc::clone(&stage)));
        let authority = std::fs::read_to_string(dir.join("api.crt")).unwrap();
        Self { stage, address, authority, writes, _tasks: tasks }
    }

    /// How a process of that name reaches it, and what it must not tell.
    pub(super) fn kubeconfig(&self, caller: &str) -> (String, String) {
        let token = token(caller);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": "tidegate"}}],
        });
        (config.to_string(), token)
    }

    /// All that was asked to be changed so far, by whom.
    pub(super) fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }

    pub(super) fn objects(&self) -> Objects {
        let mut found = Objects::new();
        self.stage.api.look(|world| {
            for (version, kind) in KINDS {
                let resource = Resource::of_kind(version, kind).unwrap();
                for object in ["shop", "tidegate"].into_iter().flat_map(|namespace| world.list(resource, namespace)) {
                    let mut object = Value::clone(object);
                    object.as_object_mut().unwrap().remove("status");
                    let metadata = object["metadata"].as_object_mut().unwrap();
                    metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "resourceVersion"));
                    let at = format!("{kind} {}/{}", object["metadata"]["namespace"], object["metadata"]["name"]);
                    found.insert(at, object);
                }
            }
        });
        found
    }

    /// All that anybody can read there, by kind.
    pub(super) fn texts(&self) -> String {
        let kinds = KINDS.into_iter().chain([("events.k8s.io/v1", "Event"), ("coordination.k8s.io/v1", "Lease")]);
        let mut text = String::new();
        self.stage.api.look(|world| {
            for resource in kinds.filter_map(|(version, kind)| Resource::of_kind(version, kind)) {
                for object in ["shop", "tidegate"].into_iter().flat_map(|namespace| world.list(resource, namespace)) {
                    text += &object.to_string();
                }
            }
        });
        text
    }

    /// The image that users reach, and how much of another one.
    pub(super) fn reached(&self) -> (String, i64) {
        let objects = self.objects();
        let image = &objects["Deployment \"shop\"/\"web\""]["spec"]["template"]["spec"]["containers"][0]["image"];
        let backends = &objects["HTTPRoute \"shop\"/\"web\""]["spec"]["rules"][0]["backendRefs"];
        let canary = backends.as_array().unwrap().iter().find(|backend| backend["name"] == "web-canary");
        (image.as_str().unwrap().to_owned(), canary.map_or(0, |backend| backend["weight"].as_i64().unwrap()))
    }
}

/// With a certificate of its own.
async fn certified(dir: &Path) -> ServerConfig {
    let at = |name: &str| dir.join(name).display().to_string();
    let (key, certificate) = (at("api.key"), at("api.crt"));
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=world -days 30 \
                     -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    run(
        "openssl",
        &[&arguments.split_whitespace().collect::<Vec<_>>()[..], &["-keyout", &key, "-out", &certificate]].concat(),
    )
    .await;
    let chain = vec![CertificateDer::from_pem_file(&certificate).unwrap()];
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(&key).unwrap()).unwrap()
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, stage: Arc<Simulation>) {
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, stage) = (tls.clone(), Arc::clone(&stage));
        open.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
                let caller = ["one", "two"].into_iter().find(|name| header == Some(&format!("Bearer {}", token(name))));
                let api = stage.api.caller(caller.expect("only who has a token asks"));
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes().to_vec();
                    api.oneshot(http::Request::from_parts(parts, Body::from(body))).await
                }
            });
            // Whoever is killed does not say good-bye.
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}
