//! What people see of each finding.

use super::checks::{
    Check, Found, Weight, account, apart, branch, kinds, reaching, rights, server, signed, text, webhook,
};
use super::look::copying;
use super::*;
use crate::cli::args::Format;
use crate::cli::fixture::time;
use crate::cli::ui::Ink;
use crate::cli::validate;
use crate::cluster::checkup::Server;
use crate::cluster::rights::{needed, to_copy};
use crate::forge::host::{HostError, HostWebhook, Permissions};
use crate::forge::settings::{ProtectedBranch, Settings};
use crate::manifest::files::Entry;
use crate::manifest::installation::{Access, Caps, HostKind, PullHost};
use crate::manifest::load::load;
use crate::manifest::object::Kind;
use crate::manifest::oid;
use crate::manifest::raw::Projection;
use crate::people::branch::Rules;
use std::collections::BTreeSet;
use std::path::Path;

fn site(kind: HostKind) -> PullHost {
    let api = "https://git.example.test/api/v1".to_owned();
    let access = Access::Token("/etc/tidegate/token".into());
    PullHost { kind, api, owner: "acme".to_owned(), name: "fleet".to_owned(), access }
}

fn refused() -> HostError {
    HostError::Refused { doing: "GET hooks".to_owned(), status: 403, why: "no".to_owned() }
}

fn of_branch(which: ProtectedBranch, rules: Result<Option<Rules>, HostError>) -> Check {
    let instance = "prod".parse().unwrap();
    let settings = Settings { instance: &instance, main: "main", account: "bot", id: Some(7) };
    branch(&settings, &site(HostKind::Gitea), which, Weight::Needed, &rules)
}

fn kept() -> Rules {
    Rules {
        protected: true,
        name: None,
        may_push: Some(false),
        may_merge: Some(true),
        approvals: Some(1),
        ..Rules::default()
    }
}

fn of_state() -> Rules {
    Rules { may_push: Some(true), may_merge: Some(false), ..kept() }
}

#[test]
fn a_state_branch_of_gitea_that_all_may_merge_into_is_open() {
    let Check { found, says, act, .. } =
        of_branch(ProtectedBranch::State, Ok(Some(Rules { may_merge: Some(true), ..of_state() })));
    assert!(found == Found::Broken && says.contains("by a pull request"), "{says}");
    assert!(act.unwrap().contains("\"enable_merge_whitelist\":true"));
}

#[test]
fn all_that_is_well_is_a_table() {
    let all = vec![
        Check::ok("repository", "main is at 01234567"),
        account("bot", Some(Permissions { admin: false, push: true }), &site(HostKind::Gitea)),
        of_branch(ProtectedBranch::Decisions, Ok(Some(kept()))),
        of_branch(ProtectedBranch::State, Ok(Some(of_state()))),
    ];
    insta::assert_snapshot!(text(&all, Ink::Plain));
}

#[test]
fn a_tip_that_nobody_who_may_has_signed_is_broken() {
    assert_eq!(signed("main", None).found, Found::Ok);
    let Check { found, says, act, .. } =
        signed("main", Some("commit 1 is not signed; /keyring.asc lists who may sign it"));
    assert!(
        found == Found::Broken && says.contains("is not signed") && act.unwrap().contains("git commit -S"),
        "{says}"
    );
}

#[test]
fn a_state_branch_that_all_may_push_to_is_no_reason_to_set_what_is_set() {
    let rules = Rules { may_push: Some(true), all_push: true, ..kept() };
    let Check { found, says, act, .. } = of_branch(ProtectedBranch::State, Ok(Some(rules)));
    assert!(found == Found::Broken && says.contains("whoever may write"), "{says}");
    assert!(act.unwrap().contains("spec.signing"));
}

#[test]
fn what_is_wrong_comes_with_what_to_do() {
    let (instance, home) = ("prod".parse().unwrap(), "tidegate".parse().unwrap());
    let caps = Caps::new(["shop".parse().unwrap()].into(), BTreeSet::new());
    let wanted = needed(&instance, &home, &caps, Projection::Off);
    let missing: Vec<_> =
        wanted.iter().filter(|right| right.resource == "deployments" && right.verb == "patch").cloned().collect();
    let users = [(Kind::HttpRoute, ["shop/podinfo".parse().unwrap()].into())].into();
    let host = Server { version: "v1.34.2".to_owned(), user: Some("ana".to_owned()), clock: Some(time("12:01:00")) };
    let mut all = server(&host, time("12:00:00"));
    all.extend(rights(&wanted, &missing));
    all.extend(kinds(&users, &[Kind::HttpRoute].into()));
    all.push(apart("clock of the Git host", time("11:00:00"), time("12:00:00")));
    all.push(account("bot", Some(Permissions { admin: false, push: false }), &site(HostKind::Gitea)));
    all.push(account("bot", Some(Permissions { admin: true, push: true }), &site(HostKind::Gitea)));
    all.push(of_branch(ProtectedBranch::Decisions, Ok(Some(Rules::default()))));
    let named = |name: &str| Rules { name: Some(name.to_owned()), approvals: Some(0), ..kept() };
    all.push(of_branch(ProtectedBranch::Decisions, Ok(Some(named("tidegate/prod/decisions")))));
    let wide = of_branch(ProtectedBranch::Decisions, Ok(Some(named("tidegate/**"))));
    assert!(!wide.act.unwrap().contains("PATCH"), "a rule that is about other branches too stays as it is");
    all.push(of_branch(ProtectedBranch::State, Ok(Some(kept()))));
    all.push(webhook(HostKind::Gitea, &Ok(Vec::new())));
    let last = Some((Some(502), "bad gateway".to_owned()));
    let hook = |pulls, last| {
        let url = "https://tidegate.example.test/webhook".to_owned();
        Ok(vec![HostWebhook { url, pushes: true, pulls, last }])
    };
    all.push(webhook(HostKind::Github, &hook(true, last)));
    all.push(webhook(HostKind::Gitlab, &hook(false, None)));
    insta::assert_snapshot!(text(&all, Ink::Plain));
    assert!(all.iter().filter(|check| check.found != Found::Ok).all(|check| check.act.is_some()), "{all:#?}");
}

#[test]
fn the_right_to_copy_secrets_is_looked_for_where_rollouts_track_them() {
    let mut files = validate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo")).unwrap();
    assert_eq!(copying(&load(&files, &Caps::default())), BTreeSet::new());
    for (name, from, to) in [
        ("rollout.yaml", "name: podinfo}", "name: podinfo, layout: primary, track: {secrets: [tls]}}"),
        ("podinfo.yaml", "- configMapRef: {name: podinfo}", "- secretRef: {name: tls}"),
    ] {
        let path = format!("teams/shop/podinfo/{name}").parse().unwrap();
        let Some(Entry::File { bytes, .. }) = files.get(&path) else { panic!("{path} is a file") };
        let text = String::from_utf8(bytes.to_vec()).unwrap().replace(from, to);
        files.insert(path, Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.into_bytes().into() });
    }
    let places = copying(&load(&files, &Caps::default()));
    assert_eq!(places, ["shop".parse().unwrap()].into());
    let wanted = to_copy(&places);
    assert_eq!(wanted.iter().map(ToString::to_string).collect::<Vec<_>>(), ["create secrets", "get secrets"]);
    let [check] = &*rights(&wanted, &wanted) else { panic!("one place") };
    assert!(check.act.as_ref().unwrap().contains("rbac.copySecrets=true"), "{check:?}");
}

#[test]
fn what_would_be_refused_is_told() {
    let mut files = validate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo")).unwrap();
    let mut edit = |path: &str, from: &str, to: &str| {
        let path = path.parse().unwrap();
        let Some(Entry::File { bytes, .. }) = files.get(&path) else { panic!("{path} is a file") };
        let text = String::from_utf8(bytes.to_vec()).unwrap().replace(from, to);
        files.insert(path, Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.into_bytes().into() });
        reaching(&load(&files, &Caps::default()).warnings)
    };
    assert_eq!(
        edit("teams/shop/podinfo/podinfo.yaml", "    spec:\n", "    spec:\n      hostPID: true\n"),
        None,
        "an error"
    );
    let told = edit("tidegate.yaml", "      allow: []\n", "").unwrap();
    assert!(told.found == Found::Warning && told.act.unwrap().contains("allow: []"));
    assert!(told.says.starts_with("1 thing") && told.says.contains("teams/shop/podinfo/podinfo.yaml"), "{}", told.says);
}

#[test]
fn what_a_host_hides_could_not_be_looked_at() {
    let hidden = Rules { protected: true, hidden: true, ..Rules::default() };
    let kept = of_branch(ProtectedBranch::Decisions, Ok(Some(hidden.clone())));
    assert!(kept.found == Found::Unknown && kept.act.unwrap().contains("ruleset") && kept.says.contains("approvers"));
    let all = vec![
        account("bot", None, &site(HostKind::Github)),
        of_branch(ProtectedBranch::Main, Ok(Some(hidden))),
        of_branch(ProtectedBranch::Decisions, Err(refused())),
        of_branch(ProtectedBranch::State, Ok(None)),
        webhook(HostKind::Gitea, &Err(refused())),
    ];
    assert!(all.iter().all(|check| check.found == Found::Unknown), "{all:#?}");
    insta::assert_snapshot!(text(&all, Ink::Plain));
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&Examined { checks: all }).unwrap());
}

#[tokio::test]
async fn who_runs_it_elsewhere_is_told_what_to_name() {
    let dir = tempfile::tempdir().unwrap();
    let args = DoctorArgs { config: dir.path().join("none.yaml"), cache: dir.path().join("cache") };
    let error = command(args, &Screen { ink: Ink::Plain, format: Format::Table }).await.unwrap_err();
    assert_eq!(error.code(), 2);
    assert!(error.text().contains("none.yaml") && error.text().contains("with --config"), "{}", error.text());
}
