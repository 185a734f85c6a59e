//! The client, against a host that pages, counts and refuses as GitHub does.

use super::testing::{Fault, REPOSITORY, Server, USER};
use super::*;
use crate::forge::pull::Standing;
use crate::gate::proof::{Being, Permission, Says, User};
use crate::record::fixture::time;
use std::sync::{Arc, Mutex};

const TOKEN: &str = "ghp_5ecret";

struct Client {
    server: Server,
    host: Host,
    fates: Arc<Mutex<Vec<(Errand, Fate)>>>,
    dir: tempfile::TempDir,
}

impl Client {
    async fn new() -> Self {
        let (server, dir, fates) =
            (Server::start().await, tempfile::tempdir().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let token_file = dir.path().join("token");
        std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
        let api = format!("http://{}/api/v3", server.address);
        let site =
            PullHost { kind: HostKind::Github, api, owner: "acme".to_owned(), name: "shop".to_owned(), token_file };
        let told = Arc::clone(&fates);
        let count = Box::new(move |errand, fate| told.lock().unwrap().push((errand, fate)));
        let mut host = Host::new(site, count, Box::new(|| time("12:00:00"))).unwrap();
        host.ids().await.unwrap();
        let client = Self { server, host, fates, dir };
        client.asked();
        client.counted();
        client
    }

    /// Takes what was counted.
    fn counted(&self) -> Vec<Fate> {
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

fn numbers(found: &[Found]) -> Vec<u64> {
    found.iter().map(|found| found.number).collect()
}

#[tokio::test]
async fn a_list_is_read_to_its_end_and_costs_nothing_while_it_is_the_same() {
    let mut client = Client::new().await;
    for n in 1..=3 {
        client.server.open(USER, &format!("b{n}"), "main", "");
    }
    assert_eq!(numbers(&client.host.open().await.unwrap()), [3, 2, 1]);
    // The next page is asked of the address that we know, not of the one that the answer names.
    let list = "GET /api/v3/repos/acme/shop/pulls?state=open&per_page=100&page=";
    assert_eq!(client.asked(), [format!("{list}1"), format!("{list}2")]);
    assert_eq!(client.counted(), [Fate::Done, Fate::Done]);
    let spent = client.server.state().spent;
    assert_eq!(numbers(&client.host.open().await.unwrap()), [3, 2, 1]);
    assert_eq!((client.counted(), client.server.state().spent), (vec![Fate::Unchanged, Fate::Unchanged], spent));
    client.server.change(1, json!({"state": "closed"}));
    assert_eq!(numbers(&client.host.open().await.unwrap()), [3, 2]);
}

#[tokio::test]
async fn attack_85_a_list_of_which_a_part_is_missing_is_no_list() {
    let mut client = Client::new().await;
    for n in 1..=3 {
        client.server.open(USER, &format!("b{n}"), "main", "");
    }
    for (status, body) in [(500, ""), (200, "[{\"number\": 1}]"), (200, "<html>log in</html>"), (304, ""), (302, "")] {
        client.fails("page=2", status, &[("location", "http://evil.test/")], body);
        let error = client.host.open().await.unwrap_err();
        assert!(matches!(error, HostError::Away { .. } | HostError::Unusable { .. }), "{status}: {error}");
    }
    client.server.state().fault = None;
    assert_eq!(client.host.open().await.unwrap().len(), 3);
    // A word that we do not know is not taken for a no.
    let list = json!(client.server.state().pulls).to_string().replace("\"open\"", "\"archived\"");
    client.fails("pulls", 200, &[], &list);
    assert!(matches!(client.host.open().await, Err(HostError::Unusable { .. })));
}

#[tokio::test]
async fn x_13_nothing_is_asked_beyond_the_budget_or_while_the_host_wants_a_pause() {
    let mut client = Client::new().await;
    client.server.state().spent = 80;
    client.host.open().await.unwrap();
    assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
    assert_eq!((client.asked().len(), client.counted()), (1, vec![Fate::Done]));

    for (status, headers, body) in [
        (429, vec![], "{}"),
        (403, vec![("retry-after", "60")], "{}"),
        (403, vec![], "{\"message\": \"You have exceeded a secondary rate limit\"}"),
    ] {
        let mut client = Client::new().await;
        client.fails("pulls", status, &headers, body);
        assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
        client.server.state().fault = None;
        assert_eq!(client.host.open().await, Err(HostError::Limited(60)));
        assert_eq!((client.asked().len(), client.counted()), (1, vec![Fate::Limited]));
    }
}

#[tokio::test]
async fn a_pull_request_is_made_once_changed_and_closed_with_a_reason() {
    let mut client = Client::new().await;
    assert_eq!(client.host.ids().await.unwrap(), Ids { user: USER, repository: REPOSITORY });
    assert_eq!(client.asked(), [""; 0], "asked once");
    let text = Text { title: "t".to_owned(), body: "b".to_owned() };
    assert_eq!(client.host.create("x/1", "main", &text).await, Ok(1));
    let error = client.host.create("x/1", "main", &text).await.unwrap_err();
    assert!(matches!(error, HostError::Refused { status: 422, .. }), "{error}");
    assert!(error.to_string().contains("already exists"), "{error}");
    let [found] = &*client.host.open().await.unwrap() else { panic!() };
    assert!(found.is_ours(Ids { user: USER, repository: REPOSITORY }));
    assert!(found.says(&text) && found.branch == "x/1" && found.base == "main", "{found:?}");

    let other = Text { body: "c".to_owned(), ..text };
    client.host.update(1, &other).await.unwrap();
    assert!(client.host.pull(1).await.unwrap().says(&other));
    client.host.close(1, "why", &other).await.unwrap();
    assert_eq!(client.server.state().comments, [("1".to_owned(), "why".to_owned())]);
    assert_eq!(client.host.pull(1).await.unwrap().standing, Standing::Closed);
    client.server.open(USER, "x/2", "main", "");
    client.server.change(2, json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}));
    let closed = client.host.closed("x/2", |_| true).await.unwrap();
    assert_eq!((numbers(&closed), closed[0].standing), (vec![2], Standing::Merged));
}

#[tokio::test]
async fn attack_93_the_token_is_read_each_time_and_told_to_nobody() {
    let mut client = Client::new().await;
    client.host.open().await.unwrap();
    assert_eq!(client.server.state().asked[0].1, format!("Bearer {TOKEN}"));
    std::fs::write(client.dir.path().join("token"), "another").unwrap();
    client.host.open().await.unwrap();
    assert_eq!(client.server.state().asked[1].1, "Bearer another");

    let mut errors = Vec::new();
    std::fs::write(client.dir.path().join("token"), TOKEN).unwrap();
    for (status, body) in
        [(401, "{\"message\": \"Bad credentials\"}"), (403, "{}"), (404, "x"), (400, ""), (301, ""), (503, "")]
    {
        client.fails("pulls", status, &[], body);
        errors.push(client.host.open().await.unwrap_err());
    }
    for text in ["", "two words", "two\nlines\n"] {
        std::fs::write(client.dir.path().join("token"), text).unwrap();
        errors.push(client.host.open().await.unwrap_err());
    }
    std::fs::remove_file(client.dir.path().join("token")).unwrap();
    errors.push(client.host.open().await.unwrap_err());
    let mut gone = Client::new().await;
    gone.host.site.api = "http://127.0.0.1:1".to_owned();
    errors.push(gone.host.open().await.unwrap_err());
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("ghp_") && !text.contains("two"), "{text}");
    }
}

#[tokio::test]
async fn a_commit_is_said_to_stand_like_that() {
    let mut client = Client::new().await;
    let (commit, status) = ("1".repeat(40), Status { mark: Mark::Pending, text: "seen".to_owned() });
    client.host.tell(&commit.parse().unwrap(), "tidegate/prod", &status).await.unwrap();
    let said = r#"{"state":"pending","description":"seen","context":"tidegate/prod"}"#.to_owned();
    assert_eq!(client.server.state().comments, [(commit, said)]);
}

/// A merged pull request with what a host tells of it.
fn reviewed(client: &Client) -> CommitId {
    let sha = |digit: &str| digit.repeat(40);
    let user = |id: u64, login: &str| json!({"id": id, "login": login, "type": "User"});
    let review = |id: u64, by: &Value, state: &str| json!({"id": id, "user": by, "state": state, "commit_id": sha("d"), "submitted_at": "2026-01-01T00:00:00Z"});
    let pull = |number: u64, merged_as: &str| {
        let (base, at) = (json!({"ref": "main"}), "2026-01-01T00:00:00Z");
        json!({"number": number, "merged_at": at, "merge_commit_sha": merged_as, "user": user(USER, "bot"), "base": base})
    };
    let (ana, robot) = (user(1, "Ana"), json!({"id": 9, "login": "ci[bot]", "type": "Bot"}));
    let people = json!({"author": {"email": "eve@example.org"}, "committer": {"email": "ana@example.org"}});
    let commit =
        json!({"sha": sha("d"), "commit": people, "author": null, "committer": ana, "parents": [{"sha": sha("c")}]});
    let mut merged = pull(3, &sha("e"));
    merged["merged_by"] = user(2, "ben");
    let reviews = [
        review(1, &ana, "COMMENTED"),
        review(2, &ana, "APPROVED"),
        review(3, &robot, "APPROVED"),
        review(4, &Value::Null, "APPROVED"),
        review(5, &json!({"id": -1, "login": "Ghost"}), "APPROVED"),
        review(6, &user(3, "eve"), "DISMISSED"),
    ];
    let there = [
        // It was in others before that, which were not merged as this commit.
        (format!("commits/{}/pulls", sha("e")), json!([pull(1, &sha("f")), pull(2, &sha("f")), pull(3, &sha("e"))])),
        (format!("commits/{}", sha("d")), commit.clone()),
        ("pulls/3/reviews".to_owned(), json!(reviews)),
        ("pulls/3/commits".to_owned(), json!([commit])),
        ("collaborators/Ana/permission".to_owned(), json!({"permission": "write"})),
        ("collaborators/ci[bot]/permission".to_owned(), json!({"permission": "admin"})),
        ("issues/3".to_owned(), json!({"closed_by": ana})),
    ];
    client.server.state().there = there.into();
    for _ in 0..3 {
        client.server.open(USER, "b", "main", "");
    }
    client.server.change(3, merged);
    sha("e").parse().unwrap()
}

#[tokio::test]
async fn what_a_host_tells_of_reviews_is_read_to_its_end() {
    let mut client = Client::new().await;
    let commit = reviewed(&client);
    let pulled = client.host.merged_as(&commit).await.unwrap().unwrap();
    let by = pulled.by.as_ref().map(|(user, _)| user.login.as_str());
    assert_eq!((pulled.number, pulled.base.as_str(), by, pulled.being), (3, "main", Some("ben"), Being::Person));
    let robot = json!({"id": 9, "login": "ci[bot]", "type": "Bot"});
    client.server.change(3, json!({"merged_by": robot}));
    assert_eq!(client.host.merged_as(&commit).await.unwrap().unwrap().being, Being::Machine, "attack 78");
    let none = client.host.merged_as(&"f".repeat(40).parse().unwrap()).await;
    assert!(matches!(none, Err(HostError::Refused { status: 404, .. })), "{none:?}");

    let (reviews, machines) = client.host.reviews(3).await.unwrap();
    let said: Vec<_> = reviews.iter().map(|review| (review.id, review.by.login.as_str(), review.says)).collect();
    let expected = [
        (1, "Ana", Says::Nothing),
        (2, "Ana", Says::Approved),
        (3, "ci[bot]", Says::Approved),
        (6, "eve", Says::Withdrawn),
    ];
    assert_eq!(said, expected, "who has no number is nobody");
    assert_eq!(machines.iter().map(|user| user.id).collect::<Vec<_>>(), [9]);

    let [made] = &*client.host.commits(3).await.unwrap() else { panic!() };
    assert_eq!(*made, client.host.commit(&made.commit).await.unwrap());
    let who: Vec<_> =
        made.by.iter().map(|by| by.as_ref().map(|user| user.login.as_str()).map_err(|e| e.as_str())).collect();
    assert_eq!(who, [Ok("Ana"), Err("eve@example.org")]);

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

#[tokio::test]
async fn attack_85_a_no_of_which_a_part_is_missing_is_still_a_no() {
    let mut client = Client::new().await;
    reviewed(&client);
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
    let mut client = Client::new().await;
    reviewed(&client);
    for (status, body) in [(500, ""), (200, "[{\"id\": 1}]"), (200, "<html>log in</html>"), (304, ""), (302, "")] {
        client.fails("reviews?per_page=100&page=3", status, &[("location", "http://evil.test/")], body);
        let error = client.host.reviews(3).await.unwrap_err();
        assert!(matches!(error, HostError::Away { .. } | HostError::Unusable { .. }), "{status}: {error}");
    }
    client.fails("permission", 500, &[], "");
    let ana = User { id: 1, login: "Ana".to_owned() };
    assert!(client.host.may_write(&ana).await.is_err(), "not known is not allowed");
}

/// What GitHub tells of a branch: its rulesets, and the classic rule where our account may know it.
fn of_branch(client: &Client, protected: bool, listed: Value, classic: Option<Value>) {
    let (branch, rules) = ("branches/tidegate%2Fprod%2Fdecisions", "rules/branches/tidegate%2Fprod%2Fdecisions");
    let classic = classic.map(|rule| (format!("{branch}/protection"), rule));
    let there = [(branch.to_owned(), json!({"protected": protected})), (rules.to_owned(), listed)];
    client.server.state().there = there.into_iter().chain(classic).collect();
}

#[tokio::test]
async fn what_protects_a_branch_is_read_from_rulesets_and_from_classic_rules() {
    let mut client = Client::new().await;
    assert_eq!(client.host.rules("tidegate/prod/decisions").await, Ok(None), "there is no such branch");
    let review = |count: u32| json!({"type": "pull_request", "parameters": {"required_approving_review_count": count}});
    let reviews =
        |count: u32| Some(json!({"required_pull_request_reviews": {"required_approving_review_count": count}}));
    let only = |login: &str| Some(json!({"restrictions": {"users": [{"login": login}], "teams": [], "apps": []}}));
    let idle = json!([{"type": "deletion"}, {"type": "non_fast_forward"}]);
    for (what, protected, listed, classic, open) in [
        ("nothing", false, json!([]), None, Some("no rule")),
        ("a ruleset", true, json!([review(1)]), None, None),
        ("a ruleset without reviewers", true, json!([review(0)]), None, Some("no approval")),
        ("one that asks for less", true, idle.clone(), None, Some("push")),
        ("that and a classic rule", true, idle, reviews(2), None),
        ("a classic rule", true, json!([]), reviews(1), None),
        ("one without reviewers", true, json!([]), reviews(0), Some("no approval")),
        ("who may push", true, json!([]), only("ana"), None),
        ("that we may push", true, json!([]), only("Bot"), Some("push")),
        ("what nobody tells us", true, json!([]), None, None),
    ] {
        of_branch(&client, protected, listed, classic);
        let rules = client.host.rules("tidegate/prod/decisions").await.unwrap().unwrap();
        match open {
            Some(part) => assert!(rules.open().is_some_and(|why| why.contains(part)), "{what}: {rules:?}"),
            None => assert_eq!(rules.open(), None, "{what}: {rules:?}"),
        }
        assert_eq!(rules.is_hidden(), what == "what nobody tells us", "{what}: {rules:?}");
    }
}

#[tokio::test]
async fn rules_that_have_not_changed_cost_nothing() {
    let mut client = Client::new().await;
    of_branch(&client, false, json!([]), None);
    let first = client.host.rules("tidegate/prod/decisions").await.unwrap();
    let spent = client.server.state().spent;
    client.counted();
    assert_eq!(client.host.rules("tidegate/prod/decisions").await.unwrap(), first);
    assert_eq!((client.counted(), client.server.state().spent), (vec![Fate::Unchanged], spent));
    client.fails("branches", 500, &[], "");
    assert!(matches!(client.host.rules("tidegate/prod/decisions").await, Err(HostError::Away { .. })));
}

#[tokio::test]
async fn who_is_told_of_pushes_and_what_our_account_may_do() {
    let mut client = Client::new().await;
    assert_eq!(client.host.permissions().await, Ok(None));
    let hook = |active: bool, last: Value| json!({"active": active, "events": ["push"], "config": {"url": "https://t.test/webhook"}, "last_response": last});
    let all =
        json!([hook(false, Value::Null), hook(true, json!({"code": 502, "status": "x", "message": "bad\ngateway"}))]);
    client.server.state().there = [("hooks".to_owned(), all)].into();
    let [hook] = &*client.host.hooks().await.unwrap() else { panic!() };
    assert!(hook.pushes && hook.url == "https://t.test/webhook", "{hook:?}");
    assert_eq!(hook.last, Some((Some(502), "bad gateway".to_owned())));
    client.server.state().there.clear();
    assert!(matches!(client.host.hooks().await, Err(HostError::Refused { status: 404, .. })), "hidden");
    assert!(client.host.clock().is_some());
}
