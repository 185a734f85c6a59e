//! The token that lets the controller in, looked for in all that anybody can read of it.

use super::app::{App, GATED};
use super::hosted::open;
use super::process::Binary;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::site::Site;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use tidegate::manifest::installation;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// A token that nobody is let in with.
const WRONG: &str = "canary-93-5e1f0a7c";

/// All that the controller has said, by where; with what a panic could print of its settings.
async fn outputs(host: &GitHost, world: &World, binary: &Binary) -> BTreeMap<String, String> {
    let name = &world.space.name;
    let mut found = BTreeMap::new();
    let mut put = |at: &str, text: String| {
        assert!(!text.is_empty(), "{at}: nothing to look through");
        found.insert(at.to_owned(), text);
    };
    put("the log", binary.log("one"));
    let address = binary.address("one").await;
    for path in ["metrics", "readyz", "healthz"] {
        put(path, reqwest::get(format!("http://{address}/{path}")).await.unwrap().text().await.unwrap());
    }
    let kinds = "events,configmaps,deployments,services,httproutes.gateway.networking.k8s.io";
    put("objects and Events", world.kubectl(&["get", kinds, "-o", "json"], "").await);
    put("the Lease", world.kubectl_at_home(&["get", "leases,configmaps,events", "-o", "json"]).await);
    put("Git", world.origin.git(&["log", "-p", "--all"]));
    let pulls = host.pulls(name).await;
    put("pull requests", format!("{pulls:#?}"));
    let below = format!("repos/owner/{name}/issues/{}/comments", pulls[0]["number"]);
    let of_main = format!("repos/owner/{name}/statuses/{}", world.origin.tip("main").unwrap());
    for (at, path) in [("comments", below), ("commit statuses", of_main)] {
        let said = host.want(200, "owner", "GET", &path, None).await;
        assert_ne!(said.as_array().unwrap().len(), 0, "{at}: nothing was said");
        put(at, said.to_string());
    }
    put("doctor", binary.doctor("table").await);
    put("doctor as JSON", binary.doctor("json").await);
    let text = std::fs::read(binary.path("installation.yaml")).unwrap();
    put("the settings", format!("{:?}", installation::parse(&"installation.yaml".parse().unwrap(), &text)));
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_93_the_token_is_in_nothing_that_anybody_can_read() {
    let host = GitHost::shared().await;
    let site = Site::Gitea(host);
    let mut world = World::hosted("canary", &site).await;
    world.add(GATED, &App::new("web", 1));
    let token = std::fs::read_to_string(host.token_file("bot")).unwrap().trim().to_owned();
    let binary = Binary::new(&world);
    let (theirs, file) = (host.token_file("bot").display().to_string(), binary.path("token"));
    std::fs::write(&file, &token).unwrap();
    let text = world.installation_text().replace(&theirs, &file.display().to_string());
    std::fs::write(binary.path("installation.yaml"), text).unwrap();
    let process = binary.start("one", "", &[]);
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let pull = open(&site, &world, "tenth").await;

    // Whoever is not let in says so, and not with what.
    std::fs::write(&file, WRONG).unwrap();
    let refused = ["the Git server refuses access (401", "the Git host refuses (401)"];
    eventually("two refusals", async || {
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
    let mut found = outputs(host, &world, &binary).await;
    found.insert("doctor that is not let in".to_owned(), said.concat());
    for secret in [token.as_str(), WRONG] {
        let logins = [secret.to_owned(), STANDARD.encode(secret), STANDARD.encode(format!("x-access-token:{secret}"))];
        for (at, text) in &found {
            assert!(logins.iter().all(|login| !text.contains(login)), "a token stands in {at}:\n{text}");
        }
    }
    drop(process);
    world.assert_kept();
}
