//! Requests as pull requests: people answer them on a real Git host, Gitea. The same on GitHub and GitLab are scenarios.

use super::app::{App, GATED};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::site::Site;
use serde_json::{Value, json};
use tidegate::forge::settings::{ProtectedBranch, Settings};
use tidegate::manifest::installation::HostKind;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// A word before each phase.
pub(super) fn twice_gated() -> String {
    GATED.replace("name: half, expose", "name: half, before: {approval: pullRequest}, expose")
}

/// Waits for the open pull request that leads to a step.
pub(super) async fn open(host: &Site, world: &World, step: &str) -> Value {
    let wanted =
        |pull: &Value| pull["state"] == "open" && pull["head"]["ref"].as_str().unwrap().ends_with(&format!("-{step}"));
    eventually(&format!("a pull request for {step}"), async || {
        host.pulls(&world.space.name).await.into_iter().find(wanted)
    })
    .await
}

/// Waits until one has these labels, by which people filter.
pub(super) async fn until_labelled(host: &Site, world: &World, pull: &Value, labels: &[&str]) {
    eventually("its labels", async || {
        let found = host.pull(&world.space.name, pull).await;
        let mut names: Vec<&str> =
            found["labels"].as_array()?.iter().filter_map(|label| label["name"].as_str()).collect();
        names.sort_unstable();
        (names == labels).then_some(())
    })
    .await;
}

/// Waits until main's tip is said to stand like that.
async fn until_status(host: &Site, world: &World, mark: &str, text: &str) {
    let tip = world.origin.tip("main").unwrap();
    eventually(&format!("the status {mark}"), async || {
        let all = host.statuses(&world.space.name, &tip).await;
        all.iter().any(|(word, said)| word == mark && said.starts_with(text)).then_some(())
    })
    .await;
}

/// Closes a pull request unmerged, and waits until it is heard and answered.
async fn close(host: &Site, world: &World, pull: &Value) {
    let name = &world.space.name;
    host.close("reviewer", name, pull).await;
    world.until_condition(Reason::Denied).await;
    let branch = pull["head"]["ref"].as_str().unwrap();
    assert_eq!(world.origin.tip(branch), None, "its branch is gone");
    let said = eventually("a word about the no", async || host.comments(name, pull).await.first().cloned()).await;
    assert!(said.contains("somebody said no") && said.contains("tidegate resume"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_3_x_4_people_answer_pull_requests_on_a_real_host() {
    people_answer(&Site::gitea().await).await;
}

/// The body of a pull request for the first step, for a person on a phone.
fn says_what_it_asks(body: &str) {
    for part in [
        "| it gets now | nothing |",
        "| it gets then | weight 10 |",
        "**What comes next**, if nothing goes wrong: tenth after your approval, half after your approval, promotion ",
        "**Merge** it",
        "**Close** it",
        "tidegate abort",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

async fn people_answer(host: &Site) {
    let mut world = World::hosted("hosted", host).await;
    world.add(&twice_gated(), &App::new("web", 1));
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));

    let pull = open(host, &world, "tenth").await;
    assert_eq!(
        (&pull["user"]["login"], &pull["base"]["ref"]),
        (&json!(host.account()), &json!("tidegate/it/decisions"))
    );
    assert_eq!(pull["title"], format!("{name}/web: go on to tenth (weight 10)"));
    says_what_it_asks(pull["body"].as_str().unwrap());
    let range = format!("{}...{}", pull["base"]["ref"].as_str().unwrap(), pull["head"]["sha"].as_str().unwrap());
    let files = world.origin.git(&["diff", "--name-only", &range]);
    assert_eq!(files.lines().count(), 1, "{files}");

    until_labelled(host, &world, &pull, &["tidegate", "tidegate/advance"]).await;

    // Main's tip says the same.
    until_status(host, &world, "pending", &format!("seen; {name}/web: ")).await;

    // What a person has written over is put right; another process finds what is there.
    host.rename("reviewer", &name, &pull, "nothing to see").await;
    world.kill().await;
    world.once().await;
    let pulls = host.pulls(&name).await;
    assert_eq!((pulls.len(), &pulls[0]["title"]), (1, &pull["title"]));

    world.start();
    host.merge(&name, &pull).await;
    world.until("a tenth", |record| is_on(record, "tenth")).await;

    let pull = open(host, &world, "half").await;
    assert!(pull["body"].as_str().unwrap().contains("| it gets now | weight 10 |"), "{}", pull["body"]);
    close(host, &world, &pull).await;
    let denied = pull;
    world.kill().await;
    world.once().await;
    assert_eq!(host.pulls(&name).await.len(), 2, "nothing is asked again");

    // Asked again from a branch of the same name: the old no does not count.
    world.start();
    let run = world.record().unwrap().run.unwrap().id;
    world.decide(run.as_str(), "resume");
    let again = open(host, &world, "half").await;
    assert_ne!(again["number"], denied["number"]);
    host.merge(&name, &again).await;
    world.until_steady(Rest::Succeeded).await;
    until_status(host, &world, "success", "all is as wanted").await;
    world.settled(&[]).await;
    let pulls = host.pulls(&name).await;
    assert_eq!(pulls.len(), 3);
    assert!(pulls.iter().all(|pull| pull["state"] == "closed"), "{pulls:#?}");
    let said = host.comments(&name, &denied).await;
    assert_eq!(said.len(), 1, "it is said once: {said:?}");
    // Who approved is whoever merged there.
    let by: Vec<String> = world.record().unwrap().consumed.into_iter().map(|word| word.by).collect();
    assert!(by.iter().any(|by| by.starts_with("reviewer ")), "{by:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_host_takes_the_settings_that_init_says() {
    let host = GitHost::shared().await;
    let world = World::unkept("settings", &Site::Gitea(host)).await;
    let name = &world.space.name;
    let path = format!("repos/owner/{name}/branch_protections");
    let instance = "it".parse().unwrap();
    let settings = Settings { instance: &instance, main: "main", account: "bot", id: None };
    for branch in ProtectedBranch::ALL {
        let (method, _, rule) = settings.call(HostKind::Gitea, branch, None);
        let made = host.want(201, "owner", method, &path, Some(rule.clone())).await;
        let kept = rule.as_object().unwrap().iter().filter(|(key, value)| made[key.as_str()] != **value);
        assert_eq!(kept.collect::<Vec<_>>(), [], "{made:#}");
    }
}
