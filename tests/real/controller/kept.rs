//! A decisions branch that the Git host does not keep for those who may decide; and `doctor`, which says how it would.

use super::app::{App, GATED};
use super::hosted::open;
use super::process::Binary;
use super::proven::asked;
use super::world::{World, is_on};
use crate::support::cluster::{apply, eventually};
use crate::support::git_host::{GitHost, Hosted, in_api};
use crate::support::gitlab::Gitlab;
use crate::support::helm::Identity;
use crate::support::site::Site;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate::forge::settings::{ProtectedBranch, Settings};
use tidegate::manifest::installation::HostKind;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Rest, RolloutState};
use tokio::process::Command;

/// What `doctor` asks of the API server beyond what the controller may: what everybody may.
pub(super) const DOCTOR: [&str; 3] = [
    "create selfsubjectreviews.authentication.k8s.io ",
    "create selfsubjectrulesreviews.authorization.k8s.io ",
    "get  in the cluster: ",
];

/// What `doctor` found, by its checks; whether anything is broken.
pub(super) async fn examined(world: &World) -> (Vec<Value>, bool) {
    let binary = Binary::new(world);
    let mut doctor = Command::new(crate::support::PROGRAM);
    doctor.args(["doctor", "-o", "json", "--config"]).arg(binary.path("installation.yaml"));
    let said = doctor.output().await.unwrap();
    let found: Value = serde_json::from_slice(&said.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&said.stderr)));
    let code = said.status.code().unwrap();
    assert!(code < 2, "{code}: {found:#}");
    (found["checks"].as_array().unwrap().clone(), code == 1)
}

/// The one check of that name.
#[track_caller]
pub(super) fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name} in {checks:#?}"))
}

/// Gives a command as the owner of that token; what it complains of.
pub(super) async fn shell(command: &str, token: &str) -> Result<(), String> {
    let mut set = Command::new("bash");
    set.args(["-c", command]).env("TOKEN", token).env("no_proxy", "*");
    let said = set.output().await.unwrap();
    if said.status.success() { Ok(()) } else { Err(String::from_utf8(said.stderr).unwrap()) }
}

/// Does what `doctor` says of the decisions branch, with that token; what it finds then.
async fn mend(world: &World, found: &Value, token: &str) -> Vec<Value> {
    shell(found["act"].as_str().unwrap(), token.trim()).await.unwrap_or_else(|said| panic!("{found}: {said}"));
    let (checks, _) = examined(world).await;
    assert_eq!(check(&checks, "branch tidegate/it/decisions")["found"], "ok", "{checks:#?}");
    checks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_98_what_init_sets_keeps_a_state_branch_of_gitea_from_whoever_may_write() {
    let (site, name) = (GitHost::shared().await, "kept-state");
    site.repository(name).await;
    let (instance, repository) = ("it".parse().unwrap(), in_api(name));
    let settings = Settings { instance: &instance, main: "main", account: "bot", id: None };
    let state = settings.name(ProtectedBranch::State);
    let made = json!({"new_branch_name": &state, "old_branch_name": "main"});
    site.want(201, "owner", "POST", &format!("{repository}/branches"), Some(made)).await;
    let (_, path, rule) = settings.call(HostKind::Gitea, ProtectedBranch::State, None);
    site.want(201, "owner", "POST", &format!("{repository}/{path}"), Some(rule)).await;
    let file = |branch: &str| json!({"branch": "main", "new_branch": branch, "content": "eA==", "message": "forged"});
    site.want(201, "stranger", "POST", &format!("{repository}/contents/state.yaml"), Some(file("forged"))).await;
    let pull = json!({"title": "forged", "head": "forged", "base": &state});
    let pull = site.want(201, "stranger", "POST", &format!("{repository}/pulls"), Some(pull)).await;
    let merge = format!("{repository}/pulls/{}/merge", pull["number"]);
    let refused = async || {
        let (status, said) = site.call("stranger", "POST", &merge, Some(json!({"Do": "merge"}))).await;
        let why = said["message"].as_str().unwrap_or_default().to_owned();
        assert_ne!(status, 200, "who may write has merged a record");
        // It asks to try again until it knows whether there are conflicts.
        (!why.contains("try again")).then_some(why)
    };
    let why = eventually("an answer to the merge", refused).await;
    assert!(why.contains("allowed to merge"), "{why}");
    site.push("bot", name, &state, ("state.yaml", "true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_no_approval_counts_on_an_unprotected_branch_until_what_doctor_says_is_set() {
    none_counts_until_set("kept", &Site::gitea().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_no_approval_counts_on_an_unprotected_branch_of_gitlab_until_what_doctor_says_is_set() {
    none_counts_until_set("kept-gitlab", &Site::gitlab().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_no_approval_counts_on_an_unprotected_branch_of_github_until_what_doctor_says_is_set() {
    let site = Site::github().await;
    none_counts_until_set("kept-github", &site).await;
    site.is_as_described();
}

async fn none_counts_until_set(name: &str, host: &Site) {
    let mut world = World::unkept(name, host).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let told = world.until_condition(Reason::ApprovalUnprotected).await;
    assert!(told.contains("no rule protects it"), "{told}");
    let pull = open(host, &world, "tenth").await;
    host.merge(&name, &pull).await;
    let record = world.until("a word", |record| record.consumed.iter().any(|word| word.action == "approve")).await;
    assert!(!is_on(&record, "tenth"), "{:?}", record.phase);
    let why = record.consumed[0].void.clone().unwrap().why;
    assert_eq!(why, "it was given while the decisions branch was not protected");
    let told = world.until_condition(Reason::ApprovalUnproven).await;
    assert!(told.ends_with(&why), "{told}");
    let second = asked(host, &world, Some(&pull)).await;
    world.kill().await;
    let waiting = world.once().await;
    let reasons: BTreeSet<Reason> = waiting.values().flatten().map(|wait| wait.reason).collect();
    let unmet = [Reason::Approval, Reason::ApprovalUnproven, Reason::ApprovalUnprotected];
    assert_eq!(reasons, unmet.into(), "{waiting:#?}");

    let (checks, broken) = examined(&world).await;
    let found = check(&checks, "branch tidegate/it/decisions");
    assert!(broken && found["found"] == "broken", "{checks:#?}");
    mend(&world, found, &host.owner_token()).await;

    // What was given before opens nothing by that; what is given from now on does.
    world.start();
    let kept = |record: &RolloutState| record.run.as_ref().is_some_and(|run| !run.unkept);
    let record = world.until("a branch that is kept", kept).await;
    assert!(record.consumed.len() == 1 && !is_on(&record, "tenth"), "{:?}", record.consumed);
    let before = world.recorded();
    host.approve("owner", &name, &second).await;
    host.merge(&name, &second).await;
    world.until_since(&before, "a tenth", |record| is_on(record, "tenth")).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled_beside(&[], &DOCTOR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_changes_a_rule_that_asks_for_too_little_and_says_what_it_could_not_see() {
    let host = GitHost::shared().await;
    let world = World::unkept("rules", &Site::Gitea(host)).await;
    let rules = format!("repos/owner/{}/branch_protections", world.space.name);
    let decisions = json!({"new_branch_name": "tidegate/it/decisions", "old_branch_name": "main"});
    host.want(201, "owner", "POST", &format!("repos/owner/{}/branches", world.space.name), Some(decisions)).await;
    let weak = json!({"rule_name": "tidegate/it/decisions", "enable_push": false, "required_approvals": 0});
    host.want(201, "owner", "POST", &rules, Some(weak)).await;
    let (checks, broken) = examined(&world).await;
    let found = check(&checks, "branch tidegate/it/decisions");
    assert!(broken && found["says"].as_str().unwrap().contains("asks for no approval"), "{found}");
    let token = std::fs::read_to_string(host.token_file("owner")).unwrap();
    let checks = mend(&world, found, &token).await;
    // The controller makes it, and its rule can be set before.
    assert_eq!(check(&checks, "branch tidegate/it/state")["found"], "unknown", "{checks:#?}");
    assert_eq!(check(&checks, "account on the Git host")["says"], "bot may write, and not administer");
    for fine in ["repository", "API server", "clock of the API server", "clock of the Git host", "kinds"] {
        assert_eq!(check(&checks, fine)["found"], "ok", "{checks:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_of_gitlab_is_changed_and_the_branch_is_never_without_one() {
    let host = Gitlab::start().await;
    let Hosted { origin, url } = host.repository("rules");
    origin.commit("main", &[("README.md", Some(b"x"))], "first");
    host.keep("rules", "main");
    host.rule("rules", "tidegate/it/state**");
    let (instance, main) = ("it".parse().unwrap(), "main");
    let settings = Settings { instance: &instance, main, account: "bot", id: None };
    let api = format!("{}/api/v4/projects/acme%2Fshops%2Frules", url.split("/acme").next().unwrap());
    // Whoever was interrupted gives it again.
    for branch in [ProtectedBranch::Main, ProtectedBranch::Main, ProtectedBranch::State] {
        let command = settings.command(HostKind::Gitlab, &api, branch, None);
        shell(&command, "glpat-owner").await.unwrap();
    }
    let rules = [("main", [0, 40]), ("tidegate/it/state", [30, 0]), ("tidegate/it/state**", [0, 40])];
    let rules = (rules.map(|(name, levels)| (name.to_owned(), levels)).into(), Vec::<String>::new());
    assert_eq!(host.rules("rules"), rules);
    // Where none can stand behind it, the rule that is there stays.
    host.refuse("rules");
    shell(&settings.command(HostKind::Gitlab, &api, ProtectedBranch::Main, None), "glpat-owner").await.unwrap_err();
    assert_eq!(host.rules("rules"), rules);
    let asked: Vec<u16> = host.asked().into_iter().map(|(_, status)| status).collect();
    let again = [201, 200, 204, 201, 204];
    assert_eq!(asked, [&again[..], &again, &[201, 200, 404, 201, 204], &[422, 404]].concat());
}

/// A part of the story of the rights.
pub(super) async fn x_18_doctor_names_the_verb_that_a_role_lacks(world: &World) {
    let tip = world.origin.tip("tidegate/it/state");
    let (name, home) = (world.space.name.clone(), world.space.home.clone());
    let (checks, broken) = examined(world).await;
    assert!(!broken, "{checks:#?}");
    for place in [format!("in {name}"), format!("in {home}"), "in the cluster".to_owned()] {
        assert_eq!(check(&checks, &format!("rights {place}"))["found"], "ok", "{checks:#?}");
    }
    let (at, served) = (home.clone(), vec![name.clone()]);
    let identity = tokio::task::spawn_blocking(move || Identity::render("it", &at, &served)).await.unwrap();
    let mut role = identity
        .objects
        .into_iter()
        .find(|object| object["kind"] == "Role" && object["metadata"]["namespace"] == *name)
        .unwrap();
    for rule in role["rules"].as_array_mut().unwrap().iter_mut().filter(|rule| rule["apiGroups"] == json!(["apps"])) {
        rule["verbs"].as_array_mut().unwrap().retain(|verb| verb != "patch");
    }
    apply(&world.space.client, &role).await;
    let (checks, broken) = eventually("a role that lacks a verb", async || {
        let (checks, broken) = examined(world).await;
        broken.then_some((checks, broken))
    })
    .await;
    let says = &check(&checks, &format!("rights in {name}"))["says"];
    assert_eq!(*says, "it may not patch deployments.apps, patch statefulsets.apps, patch daemonsets.apps");
    assert!(broken && check(&checks, &format!("rights in {home}"))["found"] == "ok", "{checks:#?}");
    // Nothing was made or changed by looking.
    assert_eq!(world.origin.tip("tidegate/it/state"), tip);
}
