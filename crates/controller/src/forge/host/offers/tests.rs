//! People's own pull requests, as a host lists them, and our comment there.

use crate::forge::host::testing::{Server, USER};
use crate::forge::host::{Host, HostError, Offers, Pass};
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::record::fixture::{commit, time};
use serde_json::json;

async fn client(kind: HostKind) -> (Server, Host, tempfile::TempDir) {
    let (server, dir) = (Server::start(kind).await, tempfile::tempdir().unwrap());
    let token_file = dir.path().join("token");
    std::fs::write(&token_file, "token").unwrap();
    let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
    let site = PullHost { kind, api: server.api(), owner: "acme".to_owned(), name: "shop".to_owned(), access };
    let host = Host::new(site, pass, Box::new(|_, _| {}), Box::new(|| time("12:00:00"))).unwrap();
    (server, host, dir)
}

fn offers(server: &Server, base: &str, sha: &str) -> u64 {
    let number = server.open(5, "topic", base, "");
    server.change(number, json!({"head": {"label": "eve:topic", "ref": "topic", "sha": sha, "repo": {"id": 99}}}));
    server.change(number, json!({"base": {"label": format!("acme:{base}"), "ref": base, "sha": "0".repeat(40)}}));
    number
}

#[tokio::test]
async fn one_page_of_what_leads_to_a_branch_is_listed_and_costs_nothing_while_it_is_the_same() {
    for kind in [HostKind::Github, HostKind::Gitlab] {
        let (server, mut host, _dir) = client(kind).await;
        offers(&server, "main", "gone");
        offers(&server, "main", &"a".repeat(40));
        offers(&server, "other", &"b".repeat(40));
        let mut seen = Offers::default();
        // The stand-in's pages are two long; Gitea cannot be asked for one base alone.
        assert_eq!(host.offers("main", &mut seen).await.unwrap().len(), 1);
        let spent = server.state().spent;
        let again = host.offers("main", &mut seen).await.unwrap();
        assert_eq!((again[0].number, again[0].author, server.state().spent), (2, Some(5), spent));
        let asked = server.state().asked.last().unwrap().0.clone();
        let query = match kind {
            HostKind::Gitea | HostKind::Github => {
                "/repos/acme/shop/pulls?state=open&sort=updated&direction=desc&base=main"
            }
            HostKind::Gitlab => {
                "/projects/acme%2Fshop/merge_requests?state=opened&order_by=updated_at&sort=desc&target_branch=main"
            }
        };
        assert_eq!(asked, format!("GET {}{query}&per_page=50&page=1", server.root()));
    }
    assert_eq!(HostKind::Gitea.offer_ref(7), "refs/pull/7/head");
    assert_eq!(HostKind::Gitlab.offer_ref(7), "refs/merge-requests/7/head");
}

#[tokio::test]
async fn our_comment_is_found_by_its_author_and_its_first_words() {
    for kind in [HostKind::Github, HostKind::Gitlab] {
        let (server, mut host, _dir) = client(kind).await;
        let ours = "<!-- tidegate prod ";
        let foreign = json!([
            {"id": 901, "user": {"id": 5}, "body": format!("{ours}forged")},
            {"id": 902, "user": null, "body": ours},
            {"id": 903, "user": {"id": -1}, "body": ours},
            {"id": 904, "user": {"id": USER}, "body": "asks for something else"},
        ]);
        server.state().there.insert("foreign".to_owned(), foreign);
        assert_eq!(host.said(3, ours).await, Ok(None));
        host.comment(3, &format!("{ours}one")).await.unwrap();
        host.comment(4, &format!("{ours}two")).await.unwrap();
        let said = host.said(4, ours).await.unwrap().unwrap();
        assert_eq!(said.body, format!("{ours}two"));
        host.rephrase(4, said.id, "three").await.unwrap();
        assert_eq!(host.said(4, ours).await, Ok(None));
        assert_eq!(server.state().comments[1].1, "three");
    }
}

#[tokio::test]
async fn attack_85_comments_without_end_are_no_reason_to_say_it_twice() {
    for kind in [HostKind::Github, HostKind::Gitlab] {
        let (server, mut host, _dir) = client(kind).await;
        let many: Vec<_> = (0..30).map(|id| json!({"id": id, "user": {"id": 5}, "body": "x"})).collect();
        server.state().there.insert("foreign".to_owned(), json!(many));
        assert!(matches!(host.said(3, "<!--").await, Err(HostError::Unusable { .. })));
    }
}

#[test]
fn two_commits_have_a_page() {
    for (kind, api, owner, expected) in [
        (HostKind::Gitea, "https://g.test/x/api/v1", "acme", Some("https://g.test/x/acme/shop/compare/AB...CD")),
        (HostKind::Github, "https://api.github.com", "acme", Some("https://github.com/acme/shop/compare/AB...CD")),
        (HostKind::Gitlab, "https://g.test/api/v4", "a/b", Some("https://g.test/a/b/shop/-/compare/AB...CD")),
        (HostKind::Gitlab, "https://g.test/other", "a/b", None),
    ] {
        let access = Access::Token("/token".into());
        let site = PullHost { kind, api: api.to_owned(), owner: owner.to_owned(), name: "shop".to_owned(), access };
        let page = site.compare(&commit(0xab), &commit(0xcd));
        let page = page.map(|page| page.replace(commit(0xab).as_str(), "AB").replace(commit(0xcd).as_str(), "CD"));
        assert_eq!(page.as_deref(), expected);
    }
}

#[test]
fn a_file_of_a_branch_has_a_page() {
    for (kind, api, expected) in [
        (HostKind::Gitea, "https://g.test/x/api/v1", Some("https://g.test/x/acme/shop/src/branch/a/b/c/d.yaml")),
        (HostKind::Github, "https://api.github.com", Some("https://github.com/acme/shop/blob/a/b/c/d.yaml")),
        (HostKind::Gitlab, "https://g.test/api/v4", Some("https://g.test/acme/shop/-/blob/a/b/c/d.yaml")),
        (HostKind::Gitlab, "https://g.test/other", None),
    ] {
        let access = Access::Token("/token".into());
        let site = PullHost { kind, api: api.to_owned(), owner: "acme".to_owned(), name: "shop".to_owned(), access };
        assert_eq!(site.page_on("a/b", &"c/d.yaml".parse().unwrap()).as_deref(), expected);
    }
}

#[test]
fn a_file_of_a_commit_has_a_page() {
    let page = |kind, api: &str, owner: &str, path: &str| {
        let access = Access::Token("/token".into());
        let site = PullHost { kind, api: api.to_owned(), owner: owner.to_owned(), name: "shop".to_owned(), access };
        site.page(&commit(0xab), &path.parse().unwrap()).map(|page| page.replace(commit(0xab).as_str(), "AB"))
    };
    let file = "a b/c#1.yaml";
    for (kind, api, owner, expected) in [
        (
            HostKind::Gitea,
            "https://g.test/x/api/v1",
            "acme",
            "https://g.test/x/acme/shop/src/commit/AB/a%20b/c%231.yaml",
        ),
        (HostKind::Github, "https://api.github.com", "acme", "https://github.com/acme/shop/blob/AB/a%20b/c%231.yaml"),
        (HostKind::Github, "https://g.test/api/v3", "acme", "https://g.test/acme/shop/blob/AB/a%20b/c%231.yaml"),
        (HostKind::Gitlab, "https://g.test/api/v4", "a/b", "https://g.test/a/b/shop/-/blob/AB/a%20b/c%231.yaml"),
    ] {
        assert_eq!(page(kind, api, owner, file).as_deref(), Some(expected));
    }
    assert_eq!(page(HostKind::Gitea, "https://g.test/other", "acme", file), None);
    // What ends a link in Markdown, or the page's path, is none of it.
    let hostile = page(HostKind::Gitea, "https://g.test/api/v1", "acme", "a>)?<x>`\"{}|/y").unwrap();
    assert!(!hostile.contains(['<', '>', '?', '`', '"', '{', ' ']), "{hostile}");
}
