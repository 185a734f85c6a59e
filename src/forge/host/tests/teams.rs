//! Who is in a team, as each kind of host tells it.

use super::*;
use crate::manifest::raw::Trust;
use crate::record::state::Rule;
use std::collections::BTreeSet;

const KINDS: [HostKind; 3] = [HostKind::Gitea, HostKind::Github, HostKind::Gitlab];

fn rule(approvers: &[&str]) -> Rule {
    Rule { approvers: approvers.iter().map(|name| (*name).to_owned()).collect(), approvals: 1, trust: Trust::Reviews }
}

/// Ana is in the team, Ben is not really, and Eve is not at all.
fn people() -> BTreeSet<User> {
    [(1, "Ana"), (2, "ben"), (3, "eve")].map(|(id, login)| User { id, login: login.to_owned() }).into()
}

/// A host with the team `@acme/shop`.
async fn host(kind: HostKind) -> Client {
    let client = Client::new(kind).await;
    let there = match kind {
        HostKind::Github => vec![
            ("/orgs/acme/teams/shop", json!({"id": 5, "slug": "shop"})),
            ("/orgs/acme/teams/shop/memberships/Ana", json!({"role": "member", "state": "active"})),
            ("/orgs/acme/teams/shop/memberships/ben", json!({"role": "member", "state": "pending"})),
        ],
        HostKind::Gitea => vec![
            (
                "/orgs/acme/teams/search",
                json!({"ok": true, "data": [{"id": 4, "name": "shoppers"}, {"id": 5, "name": "Shop"}]}),
            ),
            ("/teams/5/members/Ana", json!({"id": 1, "login": "Ana"})),
            // The name is somebody else's by now.
            ("/teams/5/members/ben", json!({"id": 9, "login": "ben"})),
        ],
        HostKind::Gitlab => vec![
            ("/groups/acme%2Fshop", json!({"id": 5, "full_path": "acme/shop"})),
            ("/groups/acme%2Fshop/members/all/1", json!({"access_level": 10, "state": "active"})),
            (
                "/groups/acme%2Fshop/members/all/2",
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
        assert_eq!((asked.len(), client.counted().len()), (3, 3), "the team, and Ana and Ben: {asked:?}");
        assert!(!asked.iter().any(|asked| asked.contains("eve") || asked.ends_with("/3")), "{asked:?}");
        let nobody = client.host.teams(&rule(&["ana", "ben", "eve", "@acme/shop"]), people()).await;
        assert_eq!(nobody, Ok([].into()));
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
        assert!(
            ghosts.contains("there is no team @acme/ghosts, or the token in ") && ghosts.contains(right),
            "{ghosts}"
        );
        assert!(client.host.tells(&"@acme/ghosts".parse().unwrap()).await.is_err());
        assert_eq!(client.host.tells(&"@acme/shop".parse().unwrap()).await, Ok(()));
        let member = match kind {
            HostKind::Gitea => "/members/",
            HostKind::Github => "/memberships/",
            HostKind::Gitlab => "/members/all/",
        };
        for at in ["shop", member] {
            let at = if kind == HostKind::Gitea && at == "shop" { "search" } else { at };
            client.fails(at, 403, &[], "{\"message\": \"Resource not accessible\"}");
            let refused = client.host.teams(&rule(&["@acme/shop"]), people()).await.unwrap_err().to_string();
            assert!(refused.contains("(403)") && refused.contains(right), "{refused}");
        }
    }
}

#[tokio::test]
async fn attack_85_x_13_what_is_not_told_of_a_team_is_not_no() {
    for kind in KINDS {
        for at in [if kind == HostKind::Gitea { "search" } else { "shop" }, "/member"] {
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
    let mut client = host(HostKind::Gitea).await;
    let many: Vec<Value> = (0..50).map(|n| json!({"id": n, "name": format!("shop-{n}")})).collect();
    client.server.state().there.insert("/orgs/acme/teams/search".to_owned(), json!({"data": many}));
    let told = client.host.teams(&rule(&["@acme/shop"]), people()).await.unwrap_err().to_string();
    assert!(told.contains("50 teams or more have shop in their names"), "{told}");
}
