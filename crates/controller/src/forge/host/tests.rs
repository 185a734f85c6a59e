//! The client, against a host that pages, counts and refuses as GitHub and as GitLab does: the same for both, as far as they can the same.

use super::testing::github::{self, sha};
use super::testing::{Fault, REPOSITORY, Server, USER};
use super::*;
use crate::forge::pull::PullState;
use crate::people::review::Says;
use crate::people::user::{Being, Permission, User};
use crate::record::fixture::time;
use std::sync::{Arc, Mutex};

mod labels;
mod list;
mod rules;
mod teams;

const TOKEN: &str = "ghp_5ecret";
const KINDS: [HostKind; 2] = [HostKind::Github, HostKind::Gitlab];

struct Client {
    server: Server,
    host: Host,
    fates: Arc<Mutex<Vec<(CallPurpose, CallOutcome)>>>,
    dir: tempfile::TempDir,
}

impl Client {
    async fn new(kind: HostKind) -> Self {
        let (server, dir, fates) =
            (Server::start(kind).await, tempfile::tempdir().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let token_file = dir.path().join("token");
        std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
        let api = server.api();
        let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
        let site = PullHost { kind, api, owner: "acme".to_owned(), name: "shop".to_owned(), access };
        let told = Arc::clone(&fates);
        let count = Box::new(move |errand, fate| told.lock().unwrap().push((errand, fate)));
        let mut host = Host::new(site, pass, count, Box::new(|| time("12:00:00"))).unwrap();
        host.ids().await.unwrap();
        let client = Self { server, host, fates, dir };
        client.asked();
        client.counted();
        client
    }

    /// Takes what was counted.
    fn counted(&self) -> Vec<CallOutcome> {
        std::mem::take(&mut *self.fates.lock().unwrap()).into_iter().map(|(_, fate)| fate).collect()
    }

    /// Takes what was asked.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.server.state().asked).into_iter().map(|(what, _)| what).collect()
    }

    fn fails(&self, at: &'static str, status: u16, headers: &[(&'static str, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.server.state().fault = Some(Fault { at, status, headers, body: body.to_owned() });
    }
}

fn numbers(found: &[PullRequest]) -> Vec<u64> {
    found.iter().map(|found| found.number).collect()
}

#[tokio::test]
async fn attack_85_a_list_of_which_a_part_is_missing_is_no_list() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        for n in 1..=3 {
            client.server.open(USER, &format!("b{n}"), "main", "");
        }
        for (status, body) in
            [(500, ""), (200, "[{\"number\": 1}]"), (200, "<html>log in</html>"), (304, ""), (302, "")]
        {
            client.fails("page=2", status, &[("location", "http://evil.test/")], body);
            let error = client.host.open().await.unwrap_err();
            assert!(matches!(error, HostError::Away { .. } | HostError::Unusable { .. }), "{status}: {error}");
        }
        client.server.state().fault = None;
        assert_eq!(client.host.open().await.unwrap().len(), 3);
        // A word that we do not know is not taken for a no.
        client.fails(kind.pulls(), 200, &[], &client.server.listed("archived"));
        assert!(matches!(client.host.open().await, Err(HostError::Unusable { .. })));
        let (asked, counted) = (client.asked(), client.counted());
        assert_eq!(asked.len(), counted.len(), "each call is counted once, whatever comes of it: {asked:?}");
        assert_eq!(counted.last(), Some(&CallOutcome::Failed));
    }
}

#[tokio::test]
async fn x_13_nothing_is_asked_beyond_the_budget_or_while_the_host_wants_a_pause() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        client.server.state().spent = 79;
        client.host.open().await.unwrap();
        assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
        assert_eq!((client.asked().len(), client.counted()), (2, vec![CallOutcome::Done; 2]));

        for (status, headers, body) in [
            (429, vec![], "{}"),
            (403, vec![("retry-after", "60")], "{}"),
            (403, vec![], "{\"message\": \"You have exceeded a secondary rate limit\"}"),
        ] {
            let mut client = Client::new(kind).await;
            client.fails(kind.pulls(), status, &headers, body);
            assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
            client.server.state().fault = None;
            assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
            assert_eq!((client.asked().len(), client.counted()), (1, vec![CallOutcome::Limited]));
        }
    }
}

#[tokio::test]
async fn a_pull_request_is_made_once_changed_and_closed_with_a_reason() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        assert_eq!(client.host.ids().await.unwrap(), Ids { user: USER, repository: REPOSITORY });
        assert_eq!(client.asked(), [""; 0], "asked once");
        let text = Text { title: "t".to_owned(), body: "b".to_owned() };
        assert_eq!(client.host.create("x/1", "main", &text).await, Ok(1));
        let error = client.host.create("x/1", "main", &text).await.unwrap_err();
        assert!(matches!(error, HostError::Refused { status: 409 | 422, .. }), "{error}");
        assert!(error.to_string().contains("already exists"), "{error}");
        let [found] = &*client.host.open().await.unwrap() else { panic!() };
        assert!(found.is_ours(Ids { user: USER, repository: REPOSITORY }));
        assert!(found.says(&text) && found.branch == "x/1" && found.base == "main", "{found:?}");

        let other = Text { body: "c".to_owned(), ..text };
        client.host.update(1, &other, None).await.unwrap();
        assert!(client.host.pull(1).await.unwrap().says(&other));
        client.host.mention(1, "why").await.unwrap();
        client.host.close(1, Some(&other)).await.unwrap();
        assert_eq!(client.server.state().comments, [("1".to_owned(), "why".to_owned())]);
        assert_eq!(client.host.pull(1).await.unwrap().state, PullState::Closed);
        client.server.open(USER, "x/2", "main", "");
        client.server.change(2, json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}));
        let closed = client.host.closed("x/2", |_| true).await.unwrap();
        assert_eq!((numbers(&closed), closed[0].state), (vec![2], PullState::Merged));
    }
}

#[tokio::test]
async fn attack_93_the_token_is_read_each_time_and_told_to_nobody() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        client.host.open().await.unwrap();
        let last = |client: &Client| client.server.state().asked.last().unwrap().1.clone();
        assert_eq!(last(&client), format!("Bearer {TOKEN}"));
        std::fs::write(client.dir.path().join("token"), "another").unwrap();
        client.host.open().await.unwrap();
        assert_eq!(last(&client), "Bearer another");

        let mut errors = Vec::new();
        std::fs::write(client.dir.path().join("token"), TOKEN).unwrap();
        for (status, body) in
            [(401, "{\"message\": \"Bad credentials\"}"), (403, "{}"), (404, "x"), (400, ""), (301, ""), (503, "")]
        {
            client.fails(kind.pulls(), status, &[], body);
            errors.push(client.host.open().await.unwrap_err());
        }
        for text in ["", "two words", "two\nlines\n"] {
            std::fs::write(client.dir.path().join("token"), text).unwrap();
            errors.push(client.host.open().await.unwrap_err());
        }
        std::fs::remove_file(client.dir.path().join("token")).unwrap();
        errors.push(client.host.open().await.unwrap_err());
        let mut gone = Client::new(kind).await;
        gone.host.site.api = "http://127.0.0.1:1".to_owned();
        errors.push(gone.host.open().await.unwrap_err());
        for error in errors {
            let text = format!("{error} {error:?}");
            assert!(!text.contains("ghp_") && !text.contains("two"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_commit_is_said_to_stand_like_that() {
    for (kind, said) in [
        (HostKind::Github, r#"{"state":"pending","description":"seen","context":"tidegate/prod"}"#),
        (HostKind::Gitlab, r#"{"state":"pending","description":"seen","name":"tidegate/prod"}"#),
    ] {
        let mut client = Client::new(kind).await;
        let (commit, status) = ("1".repeat(40), Status { mark: HostMark::Pending, text: "seen".to_owned() });
        client.host.tell(&commit.parse().unwrap(), "tidegate/prod", &status).await.unwrap();
        assert_eq!(client.server.state().comments, [(commit, said.to_owned())]);
    }
}

#[tokio::test]
async fn gitlab_takes_a_second_pending_after_the_end_of_the_first() {
    let mut client = Client::new(HostKind::Gitlab).await;
    let commit: CommitId = "1".repeat(40).parse().unwrap();
    for (mark, text) in
        [(HostMark::Pending, "a"), (HostMark::Pending, "b"), (HostMark::Success, "c"), (HostMark::Failure, "d")]
    {
        client.host.tell(&commit, "t", &Status { mark, text: text.to_owned() }).await.unwrap();
    }
    let said: Vec<String> = client.server.state().comments.iter().map(|(_, said)| said.clone()).collect();
    let expected = [
        r#"{"state":"pending","description":"a","name":"t"}"#,
        r#"{"state":"canceled","name":"t"}"#,
        r#"{"state":"pending","description":"b","name":"t"}"#,
        r#"{"state":"success","description":"c","name":"t"}"#,
        r#"{"state":"failed","description":"d","name":"t"}"#,
    ];
    assert_eq!(said, expected);
    // What it refuses for another reason stays refused.
    client.fails("statuses", 400, &[], "{\"message\": {\"name\": [\"is too long\"]}, \"error\": null}");
    let error =
        client.host.tell(&commit, "t", &Status { mark: HostMark::Pending, text: String::new() }).await.unwrap_err();
    assert!(error.to_string().contains("is too long"), "{error}");
}

/// A merged pull request with what a host tells of it.
fn reviewed(client: &Client, kind: HostKind) -> CommitId {
    match kind {
        HostKind::Gitea | HostKind::Github => client.server.merges(),
        HostKind::Gitlab => client.server.state().there = merge_request().into(),
    }
    sha("e").parse().unwrap()
}

/// The same on GitLab.
fn merge_request() -> [(String, Value); 16] {
    let user = |id: u64, name: &str| json!({"id": id, "username": name});
    let (ana, robot, eve, at) = (user(1, "Ana"), user(9, "project_7_bot"), user(3, "eve"), "2026-01-01T00:00:00Z");
    let merged = |number: u64, became: &str| {
        json!({"iid": number, "state": "merged", "target_branch": "main", "author": user(USER, "bot"), "sha": sha("d"),
            "merge_commit_sha": became, "merge_user": user(2, "ben"), "merged_by": user(2, "ben"), "merged_at": at})
    };
    let message = "web: 2\n\nCo-authored-by: b <2-ben@users.noreply.127.0.0.1>\nCo-authored-by: t <tool@example.org>";
    let commit = json!({"id": sha("d"), "parent_ids": [sha("c")], "author_email": "eve@example.org",
        "committer_email": "ana@example.org", "message": message});
    let note = |id: u64, by: &Value, body: &str| json!({"id": id, "system": true, "body": body, "author": by, "created_at": at});
    let notes = [note(1, &ana, "assigned to @ana"), note(2, &ana, gitlab::APPROVED), note(3, &robot, gitlab::APPROVED)];
    let version = |id: u64, head: &str| json!({"id": id, "head_commit_sha": sha(head), "created_at": format!("2025-12-31T0{id}:00:00Z")});
    let approval = |by: &Value| json!({"user": by, "approved_at": at});
    let event = |by: &Value, state: &str| json!({"user": by, "state": state});
    let in_request = |what: &str, said: Value| (format!("merge_requests/3/{what}"), said);
    let profile = |id: u64, name: &str| (format!("/users/{id}"), user(id, name));
    let member = |id: u64, level: u64| (format!("members/all/{id}"), json!({"access_level": level, "state": "active"}));
    let mut people = [user(8, "ana@example.org"), ana.clone()];
    people[1]["public_email"] = json!("Ana@example.org");
    [
        (
            format!("repository/commits/{}/merge_requests", sha("e")),
            json!([merged(1, &sha("f")), merged(2, &sha("f")), merged(3, &sha("e"))]),
        ),
        (format!("repository/commits/{}", sha("d")), commit.clone()),
        in_request("commits", json!([commit])),
        in_request("approvals", json!({"approved_by": [approval(&ana), approval(&robot)]})),
        in_request("reviewers", json!([{"user": eve, "state": "requested_changes", "created_at": at}])),
        in_request("notes", json!(notes)),
        in_request("versions", json!([version(3, "d"), version(2, "c"), version(1, "b")])),
        in_request(
            "resource_state_events",
            json!([event(&eve, "closed"), event(&ana, "closed"), event(&ana, "reopened")]),
        ),
        member(1, 30),
        member(9, 40),
        profile(1, "Ana"),
        profile(2, "ben"),
        profile(3, "eve"),
        profile(9, "project_7_bot"),
        // Somebody is called like an address, which only one has.
        ("/users".to_owned(), json!(people)),
        ("/graphql".to_owned(), json!({"data": {"project": {"repository": {"commit": {"author": null}}}}})),
    ]
}

/// What brought the branch to another one became the same commit, and is told of first. Gitea tells of one alone.
fn elsewhere(client: &Client, kind: HostKind, commit: &CommitId) {
    let (path, field, branch) = match kind {
        HostKind::Gitea => return,
        HostKind::Github => (format!("commits/{commit}/pulls"), "base", json!({"ref": "develop", "sha": sha("c")})),
        HostKind::Gitlab => (format!("repository/commits/{commit}/merge_requests"), "target_branch", json!("develop")),
    };
    let mut state = client.server.state();
    let listed = state.there.get_mut(&path).and_then(Value::as_array_mut).unwrap();
    let mut other = listed[2].clone();
    other["number"] = json!(4);
    other["iid"] = json!(4);
    other[field] = branch;
    listed.insert(0, other);
}

#[tokio::test]
async fn what_a_host_tells_of_reviews_is_read_to_its_end() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        let commit = reviewed(&client, kind);
        elsewhere(&client, kind, &commit);
        let pulled = client.host.merged_as(&commit, "main").await.unwrap().unwrap();
        let by = pulled.by.as_ref().map(|(user, _)| user.login.as_str());
        assert_eq!((pulled.number, pulled.base.as_str(), by, pulled.being), (3, "main", Some("ben"), Being::Person));
        match kind {
            HostKind::Gitea | HostKind::Github => {
                client.server.change(3, json!({"merged_by": github::robot()}));
            }
            HostKind::Gitlab => {
                let robot = json!({"id": 2, "username": "ben", "bot": true});
                client.server.state().there.insert("/users/2".to_owned(), robot);
            }
        }
        assert_eq!(client.host.merged_as(&commit, "main").await.unwrap().unwrap().being, Being::Machine, "attack 78");
        let none = client.host.merged_as(&"f".repeat(40).parse().unwrap(), "main").await;
        assert!(matches!(none, Err(HostError::Refused { status: 404, .. })), "{none:?}");

        let (reviews, machines) = client.host.reviews(3).await.unwrap();
        let said: Vec<_> = reviews.iter().map(|review| (review.id, review.by.login.as_str(), review.says)).collect();
        let expected = match kind {
            // Who has no number is nobody.
            HostKind::Gitea | HostKind::Github => vec![
                (1, "Ana", Says::Nothing),
                (2, "Ana", Says::Approved),
                (3, "ci[bot]", Says::Approved),
                (6, "eve", Says::Withdrawn),
            ],
            HostKind::Gitlab => vec![
                (2, "Ana", Says::Approved),
                (0, "eve", Says::ChangesRequested),
                (3, "project_7_bot", Says::Approved),
            ],
        };
        assert_eq!(said, expected);
        assert!(reviews.iter().all(|review| review.commit.as_str() == sha("d") || review.says != Says::Approved));

        let [made] = &*client.host.commits(3).await.unwrap() else { panic!() };
        assert_eq!(*made, client.host.commit(&made.commit).await.unwrap());
        let who: Vec<_> =
            made.by.iter().map(|by| by.as_ref().map(|user| user.login.as_str()).map_err(|e| e.as_str())).collect();
        let mut expected = vec![Ok("Ana"), Err("eve@example.org")];
        // Whom the commit's message names.
        if kind == HostKind::Gitlab {
            expected.insert(1, Ok("ben"));
        }
        assert_eq!(who, expected);

        let users = reviews.iter().map(|review| review.by.clone()).collect();
        let accounts = client.host.accounts(&users, &machines).await.unwrap();
        let may: Vec<_> = accounts.iter().map(|(user, account)| (user.id, account.permission, account.being)).collect();
        let expected = [
            (1, Permission::Write, Being::Person),
            (3, Permission::None, Being::Person),
            (9, Permission::Admin, Being::Machine),
        ];
        assert_eq!(may, expected);
        assert_eq!(client.host.closer(3).await.unwrap().unwrap().login, "Ana");
    }
}

/// Tells of commits: `a`, `b` and `7` were made anew for pull requests, `d` came as it was, `9` by none.
fn remade(kind: HostKind) -> Vec<(String, Value)> {
    let (at, eve) = ("2026-01-01T00:00:00Z", json!({"id": 3, "login": "eve", "username": "eve"}));
    let pull = |number: u64, became: &str, base: &str| json!({"number": number, "merged_at": at, "merge_commit_sha": sha(became), "user": eve, "base": {"ref": base}});
    let request = |number: u64, merge: Option<&str>, squash: Option<&str>| json!({"iid": number, "state": "merged", "target_branch": "main", "author": eve, "sha": sha("d"), "merge_commit_sha": merge.map(sha), "squash_commit_sha": squash.map(sha)});
    let one = |digit: &str, parents: &[&str]| {
        let parents: Vec<Value> = parents.iter().map(|parent| json!({"sha": sha(parent)})).collect();
        let people = json!({"author": null, "committer": null});
        let shown = json!({"sha": sha(digit), "commit": people, "author": null, "committer": null, "parents": parents});
        (format!("commits/{}", sha(digit)), shown)
    };
    let told = |digit: &str, of: Value| match kind {
        HostKind::Gitea | HostKind::Github => (format!("commits/{}/pulls", sha(digit)), of),
        HostKind::Gitlab => (format!("repository/commits/{}/merge_requests", sha(digit)), of),
    };
    let had = |number: u64, digit: &str| (format!("pulls/{number}/commits"), json!([one(digit, &["0"]).1]));
    let mut elsewhere = pull(8, "c", "main");
    elsewhere["base"]["repo"] = json!({"id": 99});
    match kind {
        HostKind::Gitea | HostKind::Github => vec![
            // Squashed, be it into another branch, which was merged then.
            told("a", json!([pull(1, "a", "topic"), pull(7, "f", "release")])),
            had(7, "a"),
            // Rebased, with another one after it.
            told("b", json!([pull(2, "c", "main"), elsewhere])),
            // The same, onto another branch.
            told("7", json!([pull(6, "8", "develop")])),
            had(6, "6"),
            told("d", json!([pull(4, "e", "main"), pull(5, "f", "release")])),
            had(5, "d"),
            told("9", json!([])),
            one("c", &["b"]),
            one("8", &["7"]),
            one("e", &["0", "d"]),
        ],
        HostKind::Gitlab => vec![
            told("a", json!([request(1, Some("e"), Some("a"))])),
            told("b", json!([request(2, None, Some("b"))])),
            told("7", json!([request(6, None, Some("7"))])),
            told("d", json!([request(4, Some("e"), None)])),
            told("9", json!([])),
        ],
    }
}

#[tokio::test]
async fn attack_74_what_a_host_has_squashed_or_rebased_is_told_with_its_pull_request() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        client.server.state().there = remade(kind).into_iter().collect();
        for (digit, number) in [("a", Some(1)), ("b", Some(2)), ("7", Some(6)), ("d", None), ("9", None)] {
            let told = client.host.remade(&sha(digit).parse().unwrap(), "main").await.unwrap();
            let eve = Some(User { id: 3, login: "eve".to_owned() });
            let expected = number.map(|number| Opened { number, author: eve });
            assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{digit}");
        }
        // What was told is kept; a host may learn of a merge late.
        client.asked();
        for (digit, calls) in [("a", 0), ("b", 0), ("7", 0), ("d", 0), ("9", 1)] {
            client.host.remade(&sha(digit).parse().unwrap(), "main").await.unwrap();
            assert_eq!(client.asked().len(), calls, "{digit}");
        }
        client.fails("commits/", 500, &[], "");
        let error = client.host.remade(&sha("9").parse().unwrap(), "main").await.unwrap_err();
        assert!(matches!(error, HostError::Away { .. }), "{error}");
    }
}

#[tokio::test]
async fn attack_85_a_no_of_which_a_part_is_missing_is_still_a_no() {
    let mut client = Client::new(HostKind::Github).await;
    reviewed(&client, HostKind::Github);
    let (sha, at, ana) = ("d".repeat(40), "2026-01-01T00:00:00Z", json!({"id": 1, "login": "Ana"}));
    let mut said = async |state: &str, user: &Value, commit: &Value, at: &Value| {
        let review = json!([{"id": 7, "user": user, "state": state, "commit_id": commit, "submitted_at": at}]);
        client.server.state().there.insert("pulls/3/reviews".to_owned(), review);
        client.host.reviews(3).await.map(|(reviews, _)| reviews.iter().map(|review| review.says).collect::<Vec<_>>())
    };
    let (sha, at, none) = (json!(sha), json!(at), Value::Null);
    for (commit, at) in [(&sha, &at), (&none, &at), (&sha, &none), (&json!(""), &at)] {
        assert_eq!(said("CHANGES_REQUESTED", &ana, commit, at).await, Ok(vec![Says::ChangesRequested]));
        assert_eq!(said("DISMISSED", &ana, commit, at).await, Ok(vec![Says::Withdrawn]));
    }
    for user in [none.clone(), json!({"id": -1, "login": "Ghost"}), json!({"id": 1})] {
        let error = said("CHANGES_REQUESTED", &user, &sha, &at).await.unwrap_err();
        assert!(error.to_string().contains("nobody can tell whose review 7 is"), "{error}");
        assert_eq!(said("APPROVED", &user, &sha, &at).await, Ok(vec![]));
        assert_eq!(said("DISMISSED", &user, &sha, &at).await, Ok(vec![]), "nobody could take that back");
    }
    assert_eq!(said("APPROVED", &ana, &none, &at).await, Ok(vec![]));
}

#[tokio::test]
async fn attack_85_reviews_of_which_a_part_is_missing_are_no_reviews() {
    for kind in KINDS {
        let mut client = Client::new(kind).await;
        reviewed(&client, kind);
        for (status, body) in [(500, ""), (200, "[{\"id\": 1}]"), (200, "<html>log in</html>"), (304, ""), (302, "")] {
            let at = match kind {
                HostKind::Gitea | HostKind::Github => "reviews?per_page=50&page=3",
                HostKind::Gitlab => "versions?per_page=50&page=2",
            };
            client.fails(at, status, &[("location", "http://evil.test/")], body);
            let error = client.host.reviews(3).await.unwrap_err();
            assert!(matches!(error, HostError::Away { .. } | HostError::Unusable { .. }), "{status}: {error}");
        }
        let at = match kind {
            HostKind::Gitea | HostKind::Github => "permission",
            HostKind::Gitlab => "members",
        };
        client.fails(at, 500, &[], "");
        let ana = User { id: 1, login: "Ana".to_owned() };
        assert!(client.host.may_write(&ana).await.is_err(), "not known is not allowed");
    }
}
