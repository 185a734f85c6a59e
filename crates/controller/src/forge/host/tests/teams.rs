//! Who is in a team, as each kind of host tells it.

use super::*;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use std::collections::BTreeSet;

const KINDS: [HostKind; 3] = [HostKind::Gitea, HostKind::Github, HostKind::Gitlab];

fn rule(approvers: &[&str]) -> ApprovalRule {
    ApprovalRule {
        approvers: approvers.iter().map(|name| (*name).to_owned()).collect(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    }
}

/// Ana is in the team, Ben is not really, and Eve is not at all.
fn people() -> BTreeSet<User> {
    [(1, "Ana"), (2, "ben"), (3, "eve")].map(|(id, login)| User { id, login: login.to_owned() }).into()
}

/// A part of what is asked first of the team `@acme/shop`.
fn first(kind: HostKind) -> &'static str {
    match kind {
        HostKind::Github => "teams/shop/repos/acme/shop",
        HostKind::Gitea => "repos/acme/shop/teams/shop",
        HostKind::Gitlab => "groups/acme%2Fshop",
    }
}

/// A host with the team `@acme/shop`.
async fn host(kind: HostKind) -> Client {
    let client = Client::new(kind).await;
    let there = match kind {
        HostKind::Github => vec![
            ("/orgs/acme/teams/shop/repos/acme/shop", Value::Null),
            ("/orgs/acme/teams/shop/memberships/Ana", json!({"role": "member", "state": "active"})),
            ("/orgs/acme/teams/shop/memberships/ben", json!({"role": "member", "state": "pending"})),
        ],
        HostKind::Gitea => vec![
            ("teams/shop", json!({"id": 5, "name": "Shop"})),
            ("/teams/5", json!({"id": 5, "name": "Shop"})),
            ("/teams/5/members/Ana", json!({"id": 1, "login": "Ana"})),
            // The name is somebody else's by now.
            ("/teams/5/members/ben", json!({"id": 9, "login": "ben"})),
        ],
        HostKind::Gitlab => vec![
            ("/groups/acme", json!({"id": 4, "full_path": "acme"})),
            ("/groups/acme%2Fshop", json!({"id": 5, "full_path": "acme/shop"})),
            ("/groups/acme%2Fshop/members/1", json!({"access_level": 10, "state": "active"})),
            (
                "/groups/acme%2Fshop/members/2",
                json!({"access_level": 50, "state": "active", "expires_at": "2020-01-01"}),
            ),
        ],
    };
    client.server.state().there = there.into_iter().map(|(path, said)| (path.to_owned(), said)).collect();
    client
}

#[tokio::test]
async fn attack_78_80_only_who_is_in_the_team_now_counts_and_only_the_unnamed_are_asked_about() {
    for kind in KINDS {
        let mut client = host(kind).await;
        let found = client.host.teams(&rule(&["eve", "@acme/shop"]), people()).await.unwrap();
        let found: Vec<_> = found.iter().map(|(user, team)| (user.login.as_str(), team.to_string())).collect();
        assert_eq!(found, [("Ana", "@acme/shop".to_owned())], "{kind:?}");
        let asked = client.asked();
        let calls = match kind {
            HostKind::Github => 3,
            HostKind::Gitea => 4,
            HostKind::Gitlab => 5,
        };
        assert_eq!((asked.len(), client.counted().len()), (calls, calls), "the team, and Ana and Ben: {asked:?}");
        assert!(!asked.iter().any(|asked| asked.contains("eve") || asked.ends_with("/3")), "{asked:?}");
        let nobody = client.host.teams(&rule(&["ana", "ben", "eve", "@acme/shop"]), people()).await;
        assert_eq!(nobody, Ok([].into()));
        let numbered = client.host.teams(&rule(&["id:1", "id:2", "eve", "@acme/shop"]), people()).await;
        assert_eq!(numbered, Ok([].into()));
        assert_eq!(client.host.teams(&rule(&["ana"]), people()).await, Ok([].into()));
        assert_eq!(client.asked(), [""; 0], "there is nobody to ask about, or no team");
    }
}

#[tokio::test]
async fn a_team_that_is_not_there_or_may_not_be_seen_is_not_one_that_nobody_is_in() {
    for (kind, right) in [
        (HostKind::Gitea, "read:organization, and its account has to be in the team"),
        (HostKind::Github, "read:org; a fine-grained one Members: read of the organisation"),
        (HostKind::Gitlab, "read_api, and its account has to be in the group"),
    ] {
        let mut client = host(kind).await;
        let ghosts = client.host.teams(&rule(&["@acme/ghosts"]), people()).await.unwrap_err().to_string();
        let given = if kind == HostKind::Gitlab { "" } else { " with access to this repository" };
        let there = format!("there is no team @acme/ghosts{given}, or the token in ");
        assert!(ghosts.contains(&there) && ghosts.contains(right), "{ghosts}");
        assert!(client.host.tells(&"@acme/ghosts".parse().unwrap()).await.is_err());
        assert_eq!(client.host.tells(&"@acme/shop".parse().unwrap()).await, Ok(()));
        for at in [first(kind), "/member"] {
            client.fails(at, 403, &[], "{\"message\": \"Resource not accessible\"}");
            let refused = client.host.teams(&rule(&["@acme/shop"]), people()).await.unwrap_err().to_string();
            assert!(refused.contains("(403)") && refused.contains(right), "{refused}");
        }
    }
}

#[tokio::test]
async fn attack_85_x_13_what_is_not_told_of_a_team_is_not_no() {
    for kind in KINDS {
        for at in [first(kind), "/member"] {
            for (status, body) in
                [(500, ""), (429, "{}"), (200, "<html>log in</html>"), (200, "[]"), (302, ""), (401, "{}")]
            {
                let mut client = host(kind).await;
                client.fails(at, status, &[("location", "http://evil.test/")], body);
                let told = client.host.teams(&rule(&["@acme/shop"]), people()).await;
                assert!(told.is_err(), "{kind:?} {at} {status} {body}: {told:?}");
            }
        }
    }
}

#[tokio::test]
async fn attack_78_80_a_team_of_that_name_without_the_repository_or_that_hides_is_none() {
    for (kind, path) in [
        (HostKind::Github, "/orgs/acme/teams/shop/repos/acme/shop"),
        (HostKind::Gitea, "teams/shop"),
        // Whoever is not in it is told 404 of every member.
        (HostKind::Gitea, "/teams/5"),
        (HostKind::Gitlab, "/groups/acme"),
    ] {
        let mut client = host(kind).await;
        client.server.state().there.remove(path).unwrap();
        let told = client.host.teams(&rule(&["@acme/shop"]), people()).await.unwrap_err().to_string();
        assert!(told.contains("there is no team @acme/shop"), "{kind:?} {path}: {told}");
    }
}

#[tokio::test]
async fn attack_78_on_gitlab_members_of_the_groups_above_count_and_those_of_invited_groups_do_not() {
    let mut client = host(HostKind::Gitlab).await;
    let active = json!({"access_level": 30, "state": "active"});
    for path in ["/groups/acme/members/2", "/groups/acme%2Fshop/members/all/3", "/groups/acme/members/all/3"] {
        client.server.state().there.insert(path.to_owned(), active.clone());
    }
    let found = client.host.teams(&rule(&["@acme/shop"]), people()).await.unwrap();
    let found: Vec<_> = found.keys().map(|user| user.login.as_str()).collect();
    assert_eq!(found, ["Ana", "ben"]);
}

#[tokio::test]
async fn only_so_many_are_looked_for_and_those_whom_the_rule_names_are_not() {
    let mut client = host(HostKind::Github).await;
    let names: Vec<String> = (1..=51).map(|n| format!("user-{n}")).collect();
    let crowd: BTreeSet<User> = (1..).zip(&names).map(|(id, login)| User { id, login: login.clone() }).collect();
    let mut named = rule(&[]);
    named.approvers = names.iter().cloned().collect();
    assert_eq!(client.host.teams(&rule(&["ana"]), crowd.clone()).await, Ok([].into()), "there is no team");
    named.approvers.insert("@acme/shop".to_owned());
    assert_eq!(client.host.teams(&named, crowd.clone()).await, Ok([].into()), "all are named");
    let told = client.host.teams(&rule(&["ana", "@acme/shop"]), crowd).await.unwrap_err().to_string();
    assert!(told.contains("look for people in @acme/shop: unexpected answer: they are 51, more than 50"), "{told}");
    assert_eq!(client.asked(), [""; 0]);
}

#[tokio::test]
async fn attack_78_a_no_of_somebody_in_a_team_that_nobody_can_see_does_not_count() {
    let mut client = host(HostKind::Github).await;
    for (login, permission) in [("Ana", "write"), ("ben", "read"), ("eve", "write")] {
        let path = format!("collaborators/{login}/permission");
        client.server.state().there.insert(path, json!({"permission": permission}));
    }
    let [ana, ben, eve] = people().into_iter().collect::<Vec<_>>().try_into().unwrap();
    let not_in = "eve is none of the policy's approvers, and not in @acme/shop";
    for (user, approvers, why) in [
        (&ana, ["ben", "@acme/shop"], None),
        (&eve, ["ben", "@acme/shop"], Some(not_in)),
        (&eve, ["eve", "@acme/ghosts"], None),
        (&eve, ["id:3", "@acme/ghosts"], None),
        (&eve, ["id:33", "@acme/shop"], Some(not_in)),
        (&eve, ["ben", "@acme/ghosts"], Some("nobody can tell whether eve is in @acme/ghosts")),
        (&ben, ["ben", "@acme/ghosts"], Some("ben may not write to the repository")),
        (&ben, ["ana", "@acme/ghosts"], Some("ben may not write to the repository")),
    ] {
        let told = client.host.objection(&rule(&approvers), user).await.unwrap();
        assert_eq!(told.as_deref(), why, "{user} {approvers:?}");
    }
    client.fails("/memberships/", 502, &[], "");
    let away = client.host.objection(&rule(&["@acme/shop"]), &ana).await;
    assert!(matches!(away, Err(HostError::Away { .. })), "{away:?}");
}
