//! A process that runs once, beside a Git host.

use crate::support::origin::Origin;
use std::time::Duration;
use tidegate::cluster::client::Cluster;
use tidegate::git::{RemoteConfig, RemoteUrl, Store, create_bare};
use tidegate::manifest::installation;
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::controller::{self, Once, Options};
use tidegate::reconcile::evidence::Providers;
use tidegate::reconcile::world::{Backends, pass};
use tidegate::world::kube_api::KubeApi;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec: {tenants: {shop: {path: shop, namespaces: [shop], clusters: [home]}}}
";

/// Webhooks tell of what happens, so that Git is asked rarely.
const INSTALLATION: &str = "apiVersion: tidegate.io/v1alpha1
kind: Installation
spec:
  instance: it
  repository:
    url: \"http://HOST/owner/fleet.git\"
    poll: 1h
    webhookSecretFile: TOKEN
    credentialsFile: TOKEN
    forge: {kind: gitea, tokenFile: TOKEN}
  clusters: {home: {inCluster: {}}}
  caps: {namespaces: [shop]}
";

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_host_was_looked_at_and_not_when_git_is_asked_next() {
    let directory = tempfile::tempdir().unwrap();
    let (fleet, token) = (directory.path().join("fleet.git"), directory.path().join("token"));
    create_bare(&fleet).unwrap();
    Origin::at(&fleet).commit("main", &[("tidegate.yaml", Some(POLICY.as_bytes()))], "a policy");
    std::fs::write(&token, "a-token").unwrap();
    // It lets everybody in and never answers: what it was asked ends later than all else that is to be done.
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = INSTALLATION
        .replace("HOST", &host.local_addr().unwrap().to_string())
        .replace("TOKEN", &token.display().to_string());
    let installation = installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap();

    let clock = Clock::set("2026-03-02T10:00:00Z".parse().unwrap());
    let api = KubeApi::new(*clock.now());
    api.change(|world| ["shop", "tidegate"].into_iter().for_each(|namespace| world.make_namespace(namespace)));
    let cache = directory.path().join("cache");
    let world = Backends {
        cluster: Cluster::over(api.caller("one"), "tidegate".parse().unwrap(), &installation.instance).await.unwrap(),
        store: Store::open(&cache, RemoteConfig::new(RemoteUrl::Local(fleet))).unwrap(),
        providers: Providers::new(),
        pass: pass(&installation, &clock).unwrap(),
        transport: None,
        clock,
    };
    let (begun, timeout) = (Instant::now(), Duration::from_secs(200));
    let options = Options { once: Once::Yes { timeout }, listen: None, identity: "one".to_owned() };
    let ended = controller::run_in(world, &installation, &options, &CancellationToken::new()).await;
    assert!(ended.unwrap().is_empty());
    assert!(begun.elapsed() < timeout, "in this world's time");
}
