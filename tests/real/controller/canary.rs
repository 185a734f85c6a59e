//! The token that lets the controller in, looked for in all that anybody can read of it.

use super::app::{App, GATED};
use super::hosted::open;
use super::process::Binary;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::site::Site;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use tidegate::manifest::installation;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// A token that nobody is let in with.
const WRONG: &str = "canary-93-5e1f0a7c";
/// What webhooks are signed with, and what somebody takes it for.
const HOOK: [&str; 2] = ["canary-68-b07d9e31", "canary-68-0c44a6f2"];

/// All that the controller has said, by where; with what a panic could print of its settings.
async fn outputs(host: &Site, world: &World, binary: &Binary) -> BTreeMap<String, String> {
    let name = &world.space.name;
    let mut found = BTreeMap::new();
    let mut put = |at: &str, text: String| {
        assert!(!text.is_empty(), "{at}: nothing to look through");
        found.insert(at.to_owned(), text);
    };
    put("the log", binary.log("one"));
    for (at, address) in [("", binary.address("one").await), ("webhooks: ", binary.hears("one").await)] {
        for path in
            ["metrics", "readyz", "healthz", "webhook", "", "debug/pprof/heap", "debug/vars", "config", "..%2ftoken"]
        {
            let answer = reqwest::get(format!("http://{address}/{path}")).await.unwrap();
            let head = format!("{} {:?}", answer.status(), answer.headers());
            put(&format!("{at}/{path}"), head + &answer.text().await.unwrap());
        }
    }
    let kinds = "events,configmaps,deployments,services,httproutes.gateway.networking.k8s.io";
    put("objects and Events", world.kubectl(&["get", kinds, "-o", "json"], "").await);
    put("the Lease", world.kubectl_at_home(&["get", "leases,configmaps,events", "-o", "json"]).await);
    put("Git", world.origin.git(&["log", "-p", "--all"]));
    let pulls = host.pulls(name).await;
    put("pull requests", format!("{pulls:#?}"));
    let said = host.said(name, &pulls[0]).await;
    let told = host.told(name, &world.origin.tip("main").unwrap()).await;
    for (at, said) in [("comments", said), ("commit statuses", told)] {
        assert_ne!(said.len(), 0, "{at}: nothing was said");
        put(at, format!("{said:#?}"));
    }
    put("doctor", binary.doctor("table").await);
    put("doctor as JSON", binary.doctor("json").await);
    let text = std::fs::read(binary.path("installation.yaml")).unwrap();
    put("the settings", format!("{:?}", installation::parse(&"installation.yaml".parse().unwrap(), &text)));
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_73_93_no_secret_is_in_anything_that_anybody_can_read() {
    // The stand-ins let anybody read and push by Git.
    let refused = ["the Git server refuses access (401", "the Git host refuses (401)"];
    no_secret_is_shown("canary", &Site::gitea().await, &refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_73_93_so_it_is_on_gitlab() {
    no_secret_is_shown("canary-gitlab", &Site::gitlab().await, &["the Git host refuses (401)"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_73_93_so_it_is_on_github_by_a_token() {
    no_secret_is_shown("canary-github", &Site::github().await, &["the Git host refuses (401)"]).await;
}

/// A webhook with that secret; what is answered.
async fn call(address: &str, secret: &str) -> u16 {
    let sent = reqwest::Client::new().post(format!("http://{address}/webhook")).header("x-gitlab-token", secret);
    sent.send().await.unwrap().status().as_u16()
}

async fn no_secret_is_shown(name: &str, site: &Site, refused: &[&str]) {
    let mut world = World::hosted(name, site).await;
    world.add(GATED, &App::new("web", 1));
    let token = std::fs::read_to_string(site.token_file()).unwrap().trim().to_owned();
    let binary = Binary::new(&world);
    let (theirs, file, hook) = (site.token_file().display().to_string(), binary.path("token"), binary.path("hook"));
    std::fs::write(&file, &token).unwrap();
    std::fs::write(&hook, HOOK[0]).unwrap();
    let text = world.installation_text().replace(&theirs, &file.display().to_string());
    let text = text.replace("poll: 1s", &format!("poll: 1s, webhookSecretFile: {}", hook.display()));
    let text = text + "  report: {webhook: \"127.0.0.1:0\"}\n";
    std::fs::write(binary.path("installation.yaml"), text).unwrap();
    let process = binary.start("one", "", &["--log-level", "trace"]);
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let pull = open(site, &world, "tenth").await;
    let address = binary.hears("one").await;
    assert_eq!([call(&address, HOOK[0]).await, call(&address, HOOK[1]).await], [202, 401]);

    // Whoever is not let in says so, and not with what.
    std::fs::write(&file, WRONG).unwrap();
    eventually("refusals", async || {
        let log = binary.log("one");
        refused.iter().all(|words| log.contains(words)).then_some(())
    })
    .await;
    let said = [binary.doctor("table").await, binary.doctor("json").await];
    assert!(said.iter().all(|said| said.contains("401")), "{said:#?}");
    std::fs::write(&file, &token).unwrap();

    site.close("reviewer", &world.space.name, &pull).await;
    world.until_condition(Reason::Denied).await;
    eventually("a comment", async || site.comments(&world.space.name, &pull).await.first().cloned()).await;
    let mut found = outputs(site, &world, &binary).await;
    found.insert("doctor that is not let in".to_owned(), said.concat());
    for secret in [token.as_str(), WRONG, HOOK[0], HOOK[1]] {
        let logins = [secret.to_owned(), STANDARD.encode(secret), STANDARD.encode(format!("x-access-token:{secret}"))];
        for (at, text) in &found {
            assert!(logins.iter().all(|login| !text.contains(login)), "a token stands in {at}:\n{text}");
        }
    }
    drop(process);
    world.assert_kept();
}
