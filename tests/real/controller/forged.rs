//! A signed record on a real Git host where all is set as `doctor` says, and whoever has tidegate's own token.

use super::app::{App, GATED};
use super::hosted::open;
use super::kept::{DOCTOR, check, examined, shell};
use super::process::Binary;
use super::world::{DECISIONS, STATE, World};
use crate::support::audit::{Mark, Request};
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::site::Site;
use serde_json::json;
use std::path::Path;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;
use tokio::process::Command;

/// Tries a program of a person, who has nothing else than what is in that directory; what it complains of.
async fn attempt(dir: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.current_dir(dir).args(arguments).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").env("no_proxy", "*");
    let said = command.output().await.unwrap_or_else(|why| panic!("{program}: {why}"));
    if said.status.success() { Ok(()) } else { Err(String::from_utf8(said.stderr).unwrap()) }
}

/// Runs one to a good end.
async fn run(dir: &Path, program: &str, arguments: &[&str]) {
    attempt(dir, program, arguments).await.unwrap_or_else(|said| panic!("{program} {arguments:?}: {said}"));
}

/// A key in that directory, and the world that signs its record with it.
async fn signing(world: &mut World, home: &Path) -> String {
    run(home, "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "key"]).await;
    let key = home.join("key").display().to_string();
    world.signing = format!("  signing: {{keyFile: {key}}}\n");
    key
}

/// A clone of somebody's with their token, as `clone` in that directory.
async fn cloned(home: &Path, host: &GitHost, name: &str, user: &str) {
    let token = std::fs::read_to_string(host.token_file(user)).unwrap();
    let helper = format!("credential.helper=!f() {{ echo username={user}; echo password={}; }}; f", token.trim());
    run(home, "git", &["clone", "--quiet", "-c", &helper, &host.url_of(name), "clone"]).await;
}

/// A record by which the step was approved: its path and its text.
fn forged(world: &World) -> (String, String) {
    let path = format!("rollouts/{}/web/state.yaml", world.space.name);
    let text = world.origin.git(&["show", &format!("{STATE}:{path}")]) + "\n";
    (path, text.replace("\n  route: phases\n", "\n  route: phases\n  approved: [tenth]\n"))
}

/// Waits until that record, which lies on its branch, is not believed.
async fn until_foreign(binary: &Binary, world: &World, commit: &str) {
    assert_eq!(world.record().unwrap().run.unwrap().approved, ["tenth".parse().unwrap()], "it can be read");
    eventually("a record that is not believed", async || {
        let log = binary.log("one");
        log.lines().any(|line| line.contains("ForeignState: ") && line.contains(commit)).then_some(())
    })
    .await;
}

/// Nothing was written since, and all that is waited for are people who look at the record.
async fn nothing_moves(world: &World, start: Mark, commit: &str) {
    let said = world.once().await.into_values().flatten().map(|wait| (wait.reason, wait.message)).collect::<Vec<_>>();
    let [(Reason::RecordUnreadable, said)] = &*said else { panic!("{said:#?}") };
    assert!(said.starts_with("ForeignState: ") && said.contains(commit) && said.contains("is not signed"), "{said}");
    let writes: Vec<Request> = world.requests_since(start).await.into_iter().filter(Request::is_write).collect();
    let writes: Vec<_> = writes.iter().filter(|request| request.resource != "leases").collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(world.origin.tip(STATE).as_deref(), Some(commit), "it is for people to decide");
}

/// Who has the key brings a record back.
async fn restore(home: &Path, good: &str, key: &str) {
    let restore = ["state", "restore", good, "--key", key, "--yes", "--author", "Olga <owner@example.test>"];
    run(&home.join("clone"), crate::support::PROGRAM, &restore).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_98_who_has_the_token_of_the_controller_alone_changes_no_manifest_and_decides_nothing() {
    let host = GitHost::shared().await;
    let site = Site::Gitea(host);
    let mut world = World::unkept("leaked", &site).await;
    let home = tempfile::tempdir().unwrap();
    let key = signing(&mut world, home.path()).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    let binary = Binary::new(&world);
    let mut process = binary.start("one", "", &[]);
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let pull = open(&site, &world, "tenth").await;
    world.until_condition(Reason::Approval).await;
    protect(&world, &site).await;

    let thief = tempfile::tempdir().unwrap();
    cloned(thief.path(), host, &name, "bot").await;
    let clone = thief.path().join("clone");
    let git = async |arguments: &[&str]| attempt(&clone, "git", arguments).await;
    git(&["config", "user.name", "bot"]).await.unwrap();
    git(&["config", "user.email", "bot@example.test"]).await.unwrap();
    for branch in ["main", DECISIONS] {
        let (tip, at) = (world.origin.tip(branch), format!("origin/{branch}"));
        git(&["switch", "--quiet", "--detach", &at]).await.unwrap();
        git(&["commit", "--quiet", "--allow-empty", "--message", "mine"]).await.unwrap();
        let onto = format!("HEAD:refs/heads/{branch}");
        for push in [&["push", "--quiet", "origin", &onto][..], &["push", "--quiet", "--force", "origin", &onto]] {
            let said = git(push).await.unwrap_err();
            assert!(said.contains("Not allowed to push to protected branch"), "{push:?}: {said}");
        }
        git(&["push", "--quiet", "--delete", "origin", branch]).await.unwrap_err();
        assert_eq!(world.origin.tip(branch), tip, "{branch}");
    }
    // Nor can the request be answered that it has made itself.
    let below = |what: &str| format!("repos/owner/{name}/pulls/{}/{what}", pull["number"]);
    let review = json!({"event": "APPROVED", "body": "fine", "commit_id": pull["head"]["sha"]});
    let (status, _) = host.call("bot", "POST", &below("reviews"), Some(review)).await;
    assert_eq!(status, 422);
    eventually("a merge that is refused for want of an approval", async || {
        let (status, said) = host.call("bot", "POST", &below("merge"), Some(json!({"Do": "merge"}))).await;
        assert_eq!(status, 405, "{said}");
        // Until Gitea knows whether it can be merged, it says another thing.
        said["message"].as_str()?.contains("approval").then_some(())
    })
    .await;

    // The record is the one thing that it may push, and without the key it is none.
    let good = world.origin.tip(STATE).unwrap();
    let ((path, text), start) = (forged(&world), world.bed.mark().await);
    git(&["fetch", "--quiet"]).await.unwrap();
    git(&["switch", "--quiet", "--detach", &format!("origin/{STATE}")]).await.unwrap();
    std::fs::write(clone.join(path), text).unwrap();
    git(&["commit", "--quiet", "--all", "--message", "go on"]).await.unwrap();
    git(&["push", "--quiet", "origin", &format!("HEAD:refs/heads/{STATE}")]).await.unwrap();
    let commit = world.origin.tip(STATE).unwrap();
    assert_ne!(commit, good);
    until_foreign(&binary, &world, &commit).await;
    process.kill().await.unwrap();
    nothing_moves(&world, start, &commit).await;

    restore(thief.path(), &good, &key).await;
    world.start();
    site.approve("reviewer", &name, &pull).await;
    site.merge(&name, &pull).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled_beside(&[], &DOCTOR).await;
}

/// Sets what `doctor` says of the branches.
async fn protect(world: &World, site: &Site) {
    let branches = ["main", DECISIONS, STATE].map(|branch| format!("branch {branch}"));
    let (checks, _) = examined(world).await;
    for branch in &branches {
        let act = check(&checks, branch)["act"].as_str().unwrap_or_else(|| panic!("{checks:#?}")).to_owned();
        shell(&act, site.owner_token().trim()).await.unwrap_or_else(|said| panic!("{act}: {said}"));
    }
    let (checks, _) = examined(world).await;
    assert!(branches.iter().all(|branch| check(&checks, branch)["found"] == "ok"), "{checks:#?}");
}
