//! The App, against a host that knows its key, and lets nobody else in.

use super::*;
use crate::forge::host::testing::{Fault, REPOSITORY, Server};
use crate::forge::host::{CallOutcome, CheckRun, Host, HostMark, Pass, Status};
use crate::forge::pull::Ids;
use crate::git::{RemoteConfig, RemoteUrl};
use crate::manifest::installation::{Access, HostKind};
use crate::record::fixture::{commit, time};
use crate::sign::testing::{BOT, CANARY, INSTALLATION, LOGIN, Registered};
use futures::future::join_all;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as Shared};

/// An App, its host, and the clock of this machine.
struct Story {
    server: Server,
    app: Arc<AppAuth>,
    site: PullHost,
    ours: Arc<Shared<Time>>,
    key: PathBuf,
    _dir: tempfile::TempDir,
}

impl Story {
    async fn new() -> Self {
        Self::with(None).await
    }

    async fn with(installation: Option<&str>) -> Self {
        let (server, dir) = (Server::start(HostKind::Github).await, tempfile::tempdir().unwrap());
        let (there, key) = (Registered::new("123"), dir.path().join("key.pem"));
        std::fs::write(&key, there.pkcs1()).unwrap();
        server.state().app = Some((there, time("12:00:00").into()));
        let app = installation::App {
            id: "123".to_owned(),
            installation: installation.map(str::to_owned),
            key_file: key.clone(),
        };
        let (owner, name) = ("acme".to_owned(), "shop".to_owned());
        let access = Access::App(app.clone());
        let site = PullHost { kind: HostKind::Github, api: server.api(), owner, name, access };
        let ours = Arc::new(Shared::new(time("12:00:00")));
        let shown = Arc::clone(&ours);
        let app = Arc::new(AppAuth::new(&site, &app, Box::new(move || *shown.lock().unwrap())).unwrap());
        Self { server, app, site, ours, key, _dir: dir }
    }

    /// Lets time pass everywhere.
    fn pass(&self, time: TimeDelta) {
        self.server.pass(time);
        self.adjust(time);
    }

    /// Sets this machine's clock forward, or back.
    fn adjust(&self, by: TimeDelta) {
        *self.ours.lock().unwrap() += by;
    }

    fn handed_out(&self) -> usize {
        self.server.state().app.as_ref().unwrap().0.handed_out()
    }

    /// As many callers at once: what each was given.
    async fn tokens(&self, callers: usize) -> Vec<Result<String, HostError>> {
        let one = async || self.app.token().await.map(|token| token.expose_secret().to_owned());
        join_all((0..callers).map(|_| one())).await
    }

    async fn error(&self) -> String {
        let error = self.app.token().await.unwrap_err();
        let text = format!("{error} {error:?} {:?}", self.app.as_git(error.clone()));
        assert!(!text.contains(CANARY), "{text}");
        error.to_string()
    }

    fn fails(&self, at: &'static str, status: u16, body: &str) {
        self.server.state().fault = Some(Fault { at, status, headers: Vec::new(), body: body.to_owned() });
    }

    fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut self.server.state().asked);
        asked.into_iter().map(|(what, _)| what.replace("/api/v3/", "")).collect()
    }
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_again_shortly_before_its_end() {
    let story = Story::new().await;
    let first = vec![Ok(format!("{CANARY}123_0")); 20];
    assert_eq!(story.tokens(20).await, first);
    let asked = ["GET repos/acme/shop/installation", "POST app/installations/789/access_tokens"];
    assert_eq!(story.asked(), asked);
    let wanted = story.server.state().app.as_ref().unwrap().0.wanted.clone();
    assert_eq!(wanted, [json!({"repositories": ["shop"]})], "for this repository alone");
    story.pass(TimeDelta::minutes(54));
    assert_eq!(story.tokens(20).await, first);
    assert_eq!(story.asked(), Vec::<String>::new());
    story.pass(TimeDelta::minutes(2));
    assert_eq!(story.tokens(20).await, vec![Ok(format!("{CANARY}123_1")); 20]);
    assert_eq!(story.asked(), asked[1..], "where it is installed is known");
    // One that an installation names is not looked up.
    let story = Story::with(Some("789")).await;
    assert_eq!((story.tokens(1).await.len(), story.asked()), (1, asked[1..].iter().map(ToString::to_string).collect()));
}

#[tokio::test]
async fn a_token_that_ends_before_all_time_is_asked_for_anew() {
    let story = Story::with(Some("789")).await;
    let headers = vec![("date", "Fri, 31 Dec 9999 23:59:59 GMT".to_owned())];
    let body = json!({"token": "old", "expires_at": "-262000-01-01T00:00:00Z"}).to_string();
    story.server.state().fault = Some(Fault { at: "access_tokens", status: 201, headers, body });
    assert_eq!(story.tokens(1).await, [Ok("old".to_owned())]);
    story.server.state().fault = None;
    assert_eq!(story.tokens(1).await, [Ok(format!("{CANARY}123_0"))]);
}

#[tokio::test]
async fn who_waits_while_a_try_fails_is_told_the_same() {
    let story = Story::new().await;
    story.fails("access_tokens", 502, "");
    let told = story.tokens(5).await;
    assert!(told.iter().all(|one| matches!(one, Err(HostError::Away { .. })) && *one == told[0]), "{told:?}");
    assert_eq!(story.asked().len(), 2);
    story.tokens(1).await[0].clone().unwrap_err();
    assert_eq!(story.asked().len(), 1, "the next one tries again");
    story.server.state().fault = None;
    assert_eq!(story.tokens(2).await, vec![Ok(format!("{CANARY}123_0")); 2]);
    // A host that wants a pause gets one.
    story.pass(TimeDelta::hours(1));
    story.fails("access_tokens", 429, "");
    assert!(matches!(story.tokens(1).await[0], Err(HostError::Limited(60))));
    story.asked();
    story.tokens(3).await[0].clone().unwrap_err();
    assert_eq!(story.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn clocks_that_differ_are_told_and_a_little_does_not_matter() {
    for (seconds, said) in [
        (1_200, "this machine's clock is 20m ahead of the host's (2026-"),
        (120, "2m ahead of"),
        (-1_200, "20m behind the host's"),
    ] {
        let story = Story::new().await;
        story.adjust(TimeDelta::seconds(seconds));
        let error = story.error().await;
        assert!(error.contains(said) && error.contains("(NTP)") && error.contains("401"), "{said} in {error}");
    }
    for seconds in [-60, -20, 20, 59] {
        let story = Story::new().await;
        story.adjust(TimeDelta::seconds(seconds));
        assert_eq!(story.tokens(1).await, [Ok(format!("{CANARY}123_0"))], "{seconds}");
    }
    // A token ends by the host's clock: one that ours, far behind by then, takes for new is refused there, and renewed.
    let story = Story::new().await;
    story.tokens(1).await[0].clone().unwrap();
    story.pass(TimeDelta::hours(1));
    story.adjust(TimeDelta::seconds(-3_590));
    let stale = story.app.token().await.unwrap();
    story.adjust(TimeDelta::seconds(3_590));
    story.app.refused(&stale, Refusal::Unknown).await;
    assert_eq!(story.tokens(1).await, [Ok(format!("{CANARY}123_1"))]);
}

#[tokio::test]
async fn it_is_its_own_user_and_renews_what_the_host_refuses() {
    let story = Story::new().await;
    let fates = Arc::<Shared<Vec<_>>>::default();
    let told = Arc::clone(&fates);
    let count = Box::new(move |errand, fate| told.lock().unwrap().push((errand, fate)));
    let mut host =
        Host::new(story.site.clone(), Pass::App(Arc::clone(&story.app)), count, Box::new(|| time("12:00:00"))).unwrap();
    assert_eq!(host.ids().await.unwrap(), Ids { user: BOT, repository: REPOSITORY });
    assert_eq!(host.login().await.unwrap(), LOGIN);
    let asked = story.asked();
    let who: Vec<&str> = asked.iter().map(String::as_str).filter(|what| !what.contains("installation")).collect();
    assert_eq!(who, ["GET app", "GET users/tidegate-acme%5Bbot%5D", "GET repos/acme/shop"]);
    assert_eq!(fates.lock().unwrap().len(), asked.len(), "each call is counted once, the App's own too: {asked:?}");
    assert!(fates.lock().unwrap().iter().all(|(_, fate)| *fate == CallOutcome::Done));
    assert_eq!(story.app.granted().await.unwrap()["pull_requests"], "write");

    story.server.state().app.as_mut().unwrap().0.revoke();
    let error = host.open().await.unwrap_err().to_string();
    assert!(error.contains("Bad credentials; the next call asks for a new token"), "{error}");
    assert_eq!(host.open().await.unwrap(), []);
    assert_eq!(story.handed_out(), 2);
    story.fails("pulls", 403, "{\"message\": \"Resource not accessible by integration\"}");
    let error = host.open().await.unwrap_err().to_string();
    assert!(error.contains("may the GitHub App 123 read and write pull requests?"), "{error}");
    story.app.token().await.unwrap();
    assert_eq!(story.handed_out(), 2, "a new token would lack the same");
}

/// An owner grants what is missing: that counts from the next token on.
#[tokio::test]
async fn a_token_that_lacks_a_permission_is_renewed_and_not_more_often_than_every_few_minutes() {
    let story = Story::new().await;
    let pass = Pass::App(Arc::clone(&story.app));
    let mut host = Host::new(story.site.clone(), pass, Box::new(|_, _| ()), Box::new(|| time("12:00:00"))).unwrap();
    host.ids().await.unwrap();
    // Another refusal says nothing of what the token may do.
    for (said, made) in [("Resource not accessible by integration", [1, 2, 2]), ("Must have admin rights", [2, 2, 2])] {
        story.fails("pulls", 403, &json!({"message": said}).to_string());
        for (minutes, made) in [5, 1, 4].into_iter().zip(made) {
            story.pass(TimeDelta::minutes(minutes));
            host.open().await.unwrap_err();
            assert_eq!(story.handed_out(), made, "{said}");
        }
    }
    // Git likewise.
    let login = story.app.lend().await.unwrap();
    Lender::refused(&*story.app, &login, Refusal::Lacking).await;
    story.app.lend().await.unwrap();
    assert_eq!(story.handed_out(), 3);
}

/// It is not tried, so no refusal of the host tells.
#[tokio::test]
async fn checks_that_an_owner_grants_count_from_the_next_token_on() {
    let story = Story::new().await;
    let grant = |level: &str| story.server.state().app.as_mut().unwrap().0.granted["checks"] = json!(level);
    grant("read");
    let pass = Pass::App(Arc::clone(&story.app));
    let mut host = Host::new(story.site.clone(), pass, Box::new(|_, _| ()), Box::new(|| time("12:00:00"))).unwrap();
    let (status, id, summary) = (Status::new(HostMark::Success, "fine"), "a".to_owned(), "a".to_owned());
    let check = CheckRun { status, id, summary, annotations: Vec::new() };
    for (minutes, made, checks) in [(0, 1, 0), (4, 1, 0), (1, 2, 0), (0, 2, 1)] {
        story.pass(TimeDelta::minutes(minutes));
        host.show(&commit(0xab), "name", &check).await.unwrap();
        assert_eq!((story.handed_out(), story.server.state().checks.of(commit(0xab).as_str()).len()), (made, checks));
        grant("write");
    }
}

#[tokio::test]
async fn what_keeps_an_app_out_is_told_with_what_to_look_at() {
    let story = Story::new().await;
    let key = std::fs::read(&story.key).unwrap();
    for (text, said) in [
        (None, "key.pem: No such file"),
        (Some(&b"ghs_canary"[..]), "no private key in PEM"),
        (Some(Registered::new("123").pkcs1().as_bytes()), "one of its keys?"),
    ] {
        match text {
            Some(text) => std::fs::write(&story.key, text).unwrap(),
            None => std::fs::remove_file(&story.key).unwrap(),
        }
        let error = story.error().await;
        assert!(error.contains(said) && error.contains("key.pem"), "{said} in {error}");
    }
    // Mended while it runs.
    std::fs::write(&story.key, key).unwrap();
    story.app.token().await.unwrap();
    let denied = unread(&std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    assert!(denied.contains("defaultMode (0440)"), "{denied}");

    let story = Story::new().await;
    story.fails("/installation", 404, "{\"message\": \"Not Found\"}");
    let error = story.error().await;
    assert!(error.contains("Not Found; is the GitHub App 123 installed for acme/shop?"), "{error}");
    let story = Story::with(Some("788")).await;
    let error = story.error().await;
    assert!(error.contains("installed for acme/shop, with the number 788?"), "{error}");
    for (status, body, said) in [
        (403, "{\"message\": \"This installation has been suspended\"}", "suspended; is the installation of the App"),
        (201, "{\"token\": [\"ghs_canary\"]}", "it is not as expected, at line 1"),
        (301, "", "a redirect"),
    ] {
        story.fails("access_tokens", status, body);
        let error = story.error().await;
        assert!(error.contains(said), "{said} in {error}");
    }
}

#[tokio::test]
async fn an_installation_that_is_gone_is_looked_up_anew() {
    let story = Story::new().await;
    story.fails("access_tokens", 404, "{\"message\": \"Not Found\"}");
    story.error().await;
    story.server.state().fault = None;
    story.asked();
    story.app.token().await.unwrap();
    assert_eq!(story.asked()[0], "GET repos/acme/shop/installation");
    assert_eq!(INSTALLATION, 789);
}

#[tokio::test]
async fn attack_93_git_is_lent_the_same_token_and_nothing_shows_it() {
    let story = Story::new().await;
    let lent = Pass::App(Arc::clone(&story.app)).lent().unwrap();
    let login = story.app.lend().await.unwrap();
    assert_eq!((login.user.as_str(), login.password.expose_secret()), ("x-access-token", "ghs_canary123_0"));
    assert_eq!(story.tokens(1).await, [Ok("ghs_canary123_0".to_owned())]);
    Lender::refused(&*story.app, &login, Refusal::Unknown).await;
    assert_eq!(story.app.lend().await.unwrap().password.expose_secret(), "ghs_canary123_1");
    let mut config = RemoteConfig::new(RemoteUrl::Local("/nowhere".into()));
    config.lent = Some(lent);
    let key = std::fs::read_to_string(&story.key).unwrap();
    let line = key.lines().nth(1).unwrap();
    let shown = format!("{config:?} {login:?} {:?} {}", story.site, story.app.hint());
    assert!(!shown.contains(CANARY) && !shown.contains(line), "{shown}");
    // The key is sent nowhere either.
    let asked = format!("{:?}", story.server.state().asked);
    assert!(asked.contains("Bearer ey") && !asked.contains(line));

    story.fails("access_tokens", 502, "");
    story.pass(TimeDelta::hours(1));
    assert!(matches!(story.app.lend().await, Err(GitError::Away { .. })));
    std::fs::write(&story.key, "ghs_canary").unwrap();
    let error = story.app.lend().await.unwrap_err();
    assert!(matches!(&error, GitError::Config(why) if why.contains("key.pem") && !why.contains(CANARY)), "{error}");
}
