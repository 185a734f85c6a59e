//! What people see of each finding.

use super::checks::{Check, Found, Weight, account, apart, branch, kinds, rights, server, text, webhook};
use super::*;
use crate::cli::ui::Ink;
use crate::cluster::checkup::Server;
use crate::cluster::rights::needed;
use crate::forge::host::{Hook, HostError, Permissions};
use crate::forge::settings::{Branch, Settings};
use crate::gate::guard::Rules;
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::manifest::object::Kind;
use crate::manifest::raw::Projection;
use crate::record::fixture::time;

fn site(kind: HostKind) -> PullHost {
    let api = "https://git.example.test/api/v1".to_owned();
    let access = Access::Token("/etc/tidegate/token".into());
    PullHost { kind, api, owner: "acme".to_owned(), name: "fleet".to_owned(), access }
}

fn refused() -> HostError {
    HostError::Refused { doing: "GET hooks".to_owned(), status: 403, why: "no".to_owned() }
}

fn of_branch(which: Branch, rules: Result<Option<Rules>, HostError>) -> Check {
    let instance = "prod".parse().unwrap();
    let settings = Settings { instance: &instance, main: "main", account: "bot" };
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

#[test]
fn all_that_is_well_is_a_table() {
    let all = vec![
        Check::ok("repository", "main is at 01234567"),
        account("bot", Some(Permissions { admin: false, push: true }), &site(HostKind::Gitea)),
        of_branch(Branch::Decisions, Ok(Some(kept()))),
        of_branch(Branch::State, Ok(Some(Rules { may_push: Some(true), ..kept() }))),
    ];
    insta::assert_snapshot!(text(&all, Ink::Plain));
}

#[test]
fn a_state_branch_that_all_may_push_to_is_no_reason_to_set_what_is_set() {
    let rules = Rules { may_push: Some(true), all_push: true, ..kept() };
    let Check { found, says, act, .. } = of_branch(Branch::State, Ok(Some(rules)));
    assert!(found == Found::Broken && says.contains("whoever may write"), "{says}");
    assert!(act.unwrap().contains("spec.signing"));
}

#[test]
fn what_is_wrong_comes_with_what_to_do() {
    let (instance, home) = ("prod".parse().unwrap(), "tidegate".parse().unwrap());
    let wanted = needed(&instance, &home, &["shop".parse().unwrap()].into(), Projection::Off);
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
    all.push(of_branch(Branch::Decisions, Ok(Some(Rules::default()))));
    let named = |name: &str| Rules { name: Some(name.to_owned()), approvals: Some(0), ..kept() };
    all.push(of_branch(Branch::Decisions, Ok(Some(named("tidegate/prod/decisions")))));
    let wide = of_branch(Branch::Decisions, Ok(Some(named("tidegate/**"))));
    assert!(!wide.act.unwrap().contains("PATCH"), "a rule that is about other branches too stays as it is");
    all.push(of_branch(Branch::State, Ok(Some(kept()))));
    all.push(webhook(HostKind::Gitea, &Ok(Vec::new())));
    let last = Some((Some(502), "bad gateway".to_owned()));
    let hook = Hook { url: "https://tidegate.example.test/webhook".to_owned(), pushes: true, last };
    all.push(webhook(HostKind::Github, &Ok(vec![hook])));
    insta::assert_snapshot!(text(&all, Ink::Plain));
    assert!(all.iter().filter(|check| check.found != Found::Ok).all(|check| check.act.is_some()), "{all:#?}");
}

#[test]
fn what_a_host_hides_could_not_be_looked_at() {
    let hidden = Rules { protected: true, ..Rules::default() };
    let all = vec![
        account("bot", None, &site(HostKind::Github)),
        of_branch(Branch::Main, Ok(Some(hidden))),
        of_branch(Branch::Decisions, Err(refused())),
        of_branch(Branch::State, Ok(None)),
        webhook(HostKind::Gitea, &Err(refused())),
    ];
    assert!(all.iter().all(|check| check.found == Found::Unknown), "{all:#?}");
    insta::assert_snapshot!(text(&all, Ink::Plain));
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&Examined { checks: all }).unwrap());
}
