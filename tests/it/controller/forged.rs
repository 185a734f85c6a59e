//! A signed record on a real Git host, and somebody else who may push to its branch.

use super::app::{App, GATED};
use super::hosted::open;
use super::process::Binary;
use super::world::{STATE, World};
use crate::support::audit::Request;
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::site::Site;
use std::path::Path;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;
use tokio::process::Command;

/// Runs a program of a person, who has nothing else than what is in that directory.
async fn run(dir: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.current_dir(dir).args(arguments).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").env("no_proxy", "*");
    let said = command.output().await.unwrap_or_else(|why| panic!("{program}: {why}"));
    assert!(said.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_98_a_record_that_a_stranger_pushes_to_a_real_host_moves_nothing() {
    let host = GitHost::shared().await;
    let site = Site::Gitea(host);
    let mut world = World::hosted("forged", &site).await;
    let home = tempfile::tempdir().unwrap();
    run(home.path(), "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "key"]).await;
    let key = home.path().join("key").display().to_string();
    world.signing = format!("  signing: {{keyFile: {key}}}\n");
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    let binary = Binary::new(&world);
    let mut process = binary.start("one", "", &[]);
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let pull = open(&site, &world, "tenth").await;
    world.until_condition(Reason::Approval).await;
    let good = world.origin.tip(STATE).unwrap();

    // That the step was approved.
    let path = format!("rollouts/{name}/web/state.yaml");
    let text = world.origin.git(&["show", &format!("{STATE}:{path}")]) + "\n";
    let forged = text.replace("\n  route: phases\n", "\n  route: phases\n  approved: [tenth]\n");
    let start = world.bed.mark().await;
    host.push("stranger", &name, STATE, (&path, &forged));
    let commit = world.origin.tip(STATE).unwrap();
    assert_eq!(world.record().unwrap().run.unwrap().approved, ["tenth".parse().unwrap()], "it can be read");
    eventually("a record that is not believed", async || {
        let log = binary.log("one");
        log.lines().any(|line| line.contains("ForeignState: ") && line.contains(&commit)).then_some(())
    })
    .await;
    let address = binary.address("one").await;
    eventually("a number that an alert looks at", async || {
        let text = reqwest::get(format!("http://{address}/metrics")).await.ok()?.text().await.ok()?;
        text.contains("\ntidegate_waiting{reason=\"RecordUnreadable\"} 1\n").then_some(())
    })
    .await;
    // A word that would open the step, if anything could.
    site.merge(&name, &pull).await;
    process.kill().await.unwrap();
    let said = world.once().await.into_values().flatten().map(|wait| (wait.reason, wait.message)).collect::<Vec<_>>();
    let [(Reason::RecordUnreadable, said)] = &*said else { panic!("{said:#?}") };
    assert!(said.starts_with("ForeignState: ") && said.contains(&commit) && said.contains("is not signed"), "{said}");
    let writes: Vec<Request> = world.requests_since(start).await.into_iter().filter(Request::is_write).collect();
    let writes: Vec<_> = writes.iter().filter(|request| request.resource != "leases").collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(world.origin.tip(STATE), Some(commit), "it is for people to decide");

    // Who has the key brings the record back, and the run goes on with the word that was given.
    let token = site.owner_token();
    let helper = format!("credential.helper=!f() {{ echo username=owner; echo password={token}; }}; f");
    run(home.path(), "git", &["clone", "--quiet", "-c", &helper, &host.url_of(&name), "clone"]).await;
    let restore = ["state", "restore", &good, "--key", &key, "--yes", "--author", "Olga <owner@example.test>"];
    run(&home.path().join("clone"), env!("CARGO_BIN_EXE_tidegate"), &restore).await;
    world.start();
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
