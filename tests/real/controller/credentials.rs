//! Credentials that are missing or wrong: what is missing for it is told at `/readyz`, why in the log alone, and they are picked up once they are mended, by the same process.

use super::app::App;
use super::process::{Binary, QUICK};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::cluster::for_token;
use tidegate::record::state::Phase;

/// What is said at `/readyz`.
async fn ready(address: &str) -> (u16, String) {
    let answer = reqwest::get(format!("http://{address}/readyz")).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Waits until `/readyz` answers so, with that line, and the log of the process says why, in a line with all of these words.
async fn until(binary: &Binary, address: &str, status: u16, says: &str, why: &[&str]) {
    eventually(&format!("{status} with {says:?} at /readyz, and {why:?} in the log"), async || {
        let (found, body) = ready(address).await;
        let said = body.lines().any(|line| line == says);
        let logged = binary.log("one").lines().any(|line| why.iter().all(|word| line.contains(word)));
        (found == status && said && logged).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_credential_that_is_missing_or_wrong_is_told_and_counts_once_it_is_mended() {
    let world = World::new("credentials", QUICK).await;
    world.git.require("tidegate", "hush-1");
    let binary = Binary::new(&world);
    let (kubeconfig, git) = (binary.path("far-kubeconfig"), binary.path("tidegate-git"));
    let theirs = world.space.kubeconfig.display().to_string();
    let text = world.installation_text().replace(&theirs, &kubeconfig.display().to_string());
    let text = text.replace("poll: 1s}", &format!("poll: 1s, credentialsFile: {}}}", git.display()));
    std::fs::write(binary.path("installation.yaml"), text).unwrap();
    let mut process = binary.start("one", "", &[]);
    let address = binary.address("one").await;

    // At the start: the kubeconfig, then the Git credentials.
    until(&binary, &address, 503, "the cluster was not listed yet", &["far-kubeconfig", "No such file"]).await;
    std::fs::write(&kubeconfig, for_token(&world.space.kubeconfig, "hush-2", &world.space.home)).unwrap();
    until(&binary, &address, 503, "the cluster was not listed yet", &["Unauthorized"]).await;
    std::fs::copy(&world.space.kubeconfig, &kubeconfig).unwrap();
    until(&binary, &address, 503, "main was not read yet", &["tidegate-git", "No such file"]).await;
    std::fs::write(&git, "tidegate:hush-3").unwrap();
    until(&binary, &address, 503, "main was not read yet", &["tidegate-git", "401"]).await;
    std::fs::write(&git, "tidegate:hush-1").unwrap();
    until(&binary, &address, 200, "ok", &[]).await;
    let done = async |version: u8| {
        eventually(&format!("version {version}"), async || {
            let image =
                world.get("Deployment", "web").await?["spec"]["template"]["spec"]["containers"][0]["image"].clone();
            let there = image == format!("example.test/web:{version}")
                && world.record().is_some_and(|r| matches!(r.phase, Phase::Steady { .. }));
            there.then_some(())
        })
        .await;
    };
    done(1).await;

    // While it runs: a token that is taken away, and a ServiceAccount that is made anew, whose old tokens are worth nothing.
    std::fs::write(&git, "tidegate:hush-4").unwrap();
    until(&binary, &address, 200, "Git is away", &["tidegate-git", "401"]).await;
    std::fs::write(&git, "tidegate:hush-1").unwrap();
    let (namespace, account) = world.space.user.rsplit_once(':').unwrap();
    let namespace = namespace.rsplit_once(':').unwrap().1;
    for verb in ["delete", "create"] {
        world.bed.kubectl(&["-n", namespace, verb, "serviceaccount", account], "").await;
    }
    let token = world.bed.kubectl(&["-n", namespace, "create", "token", account], "").await;
    // One that is at home elsewhere would look for the brake elsewhere.
    std::fs::write(&kubeconfig, for_token(&world.space.kubeconfig, token.trim(), "elsewhere")).unwrap();
    let refused = async || binary.log("one").contains("the kubeconfig now names another namespace").then_some(());
    eventually("a request that is refused, and a kubeconfig that is not used", refused).await;
    std::fs::write(&kubeconfig, for_token(&world.space.kubeconfig, token.trim(), &world.space.home)).unwrap();
    // The API server believes a token for ten seconds more.
    let renewed = async || binary.log("one").contains("the kubeconfig has changed: connected anew").then_some(());
    eventually("a request that is refused, and another connection", renewed).await;
    world.release(&App::new("web", 2));
    done(2).await;
    let log = binary.log("one");
    assert!(process.try_wait().unwrap().is_none(), "{log}");
    for secret in ["hush", token.trim()] {
        assert!(!log.contains(secret) && !ready(&address).await.1.contains(secret), "{secret} in\n{log}");
    }
}
