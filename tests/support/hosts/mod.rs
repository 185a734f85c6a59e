//! Git hosts in this process, over a bare repository: GitHub as it describes its API, and GitLab as its documentation and its source
//! have it. What they know is the same (`site`), what they are asked and what they answer is not (`github`, `gitlab`). They see a push
//! when they are looked at next. Of what was asked of GitHub, and what it answered, a list is kept, so that it can be held against what
//! GitHub has published.
#![allow(dead_code, reason = "a host offers more than each of its users asks of it")]

mod bare;
pub(crate) mod github;
#[path = "../github_app.rs"]
mod github_app;
#[path = "../github_checks.rs"]
mod github_checks;
mod gitlab;
pub(crate) mod site;

pub(crate) use bare::Way;
use bare::{Bare, OF_GITHUB, OF_GITLAB};
use bytes::Bytes;
use github_app::{CANARY, LOGIN, Registered};
use http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK, RETRY_AFTER};
use http::{HeaderMap, Request, Response};
use reqwest::Body;
use serde_json::{Value, json};
use site::{Change, Says, Site, Standing, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::forge::host::HttpTransport;
use tidegate::manifest::installation::{self, Access, HostKind, PullHost};
use tokio::time::sleep;
use tower::{BoxError, service_fn};

/// Who the repository belongs to.
const OWNER: &str = "acme";
/// The number of the repository.
const REPOSITORY: u64 = 7;
/// The name of the repository.
const NAME: &str = "fleet";
/// The token of tidegate's account.
const TOKEN: &str = "token-of-bot";

/// A request to the API.
struct Asked<'a> {
    method: &'a str,
    /// What is below the API's address.
    parts: &'a [&'a str],
    query: &'a BTreeMap<String, String>,
    sent: &'a Value,
    by: &'a str,
    /// The name of the repository.
    name: &'a str,
}

fn text(sent: &Value, field: &str) -> String {
    sent[field].as_str().unwrap_or_default().to_owned()
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Nobody answers.
    Away,
    /// This status, and a few words.
    Status(u16),
    /// "Not modified", whatever is known.
    Unmodified,
    /// It ends in the middle.
    Half,
    /// A list says that there is more, without end.
    Endless,
}

/// What goes wrong there: with all that has this part in its address, so often, or always.
struct Fault {
    part: String,
    wrong: Wrong,
    left: Option<usize>,
}

/// What was asked, and what was answered to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    /// With its query, below the API's address.
    pub(crate) path: String,
    pub(crate) sent: String,
    pub(crate) status: u16,
    pub(crate) answer: String,
}

struct Shared {
    api: String,
    repository: PathBuf,
    clock: Box<dyn Fn() -> Time + Send + Sync>,
    site: Mutex<Site>,
    app: Mutex<Option<Registered>>,
    fault: Mutex<Option<Fault>>,
    exchanges: Mutex<Vec<Exchange>>,
}

/// A host; clones are the same.
#[derive(Clone)]
pub(crate) struct Host(Arc<Shared>);

impl Host {
    /// Over that repository.
    pub(crate) fn new(kind: HostKind, repository: &Path, clock: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let api = match kind {
            HostKind::Github => "https://api.git.example",
            HostKind::Gitlab => "https://git.example/api/v4",
            HostKind::Gitea => panic!("a real one is there for that"),
        };
        Self(Arc::new(Shared {
            api: api.to_owned(),
            repository: repository.to_owned(),
            clock: Box::new(clock),
            site: Mutex::new(Site::new(kind, "bot")),
            app: Mutex::default(),
            fault: Mutex::default(),
            exchanges: Mutex::default(),
        }))
    }

    /// From now on tidegate is an App there, and nobody else is let in.
    pub(crate) fn as_app(&self) {
        *self.0.app.lock().unwrap() = Some(Registered::new("123"));
        LOGIN.clone_into(&mut self.0.site.lock().unwrap().account);
    }

    /// What an installation says of it, with the secret in a file of that folder.
    pub(crate) fn site(&self, folder: &Path) -> PullHost {
        let (api, kind) = (self.0.api.clone(), self.kind());
        let access = if let Some(app) = &*self.0.app.lock().unwrap() {
            let key_file = folder.join("app.pem");
            std::fs::write(&key_file, app.pkcs8()).unwrap();
            Access::App(installation::App { id: "123".to_owned(), installation: None, key_file })
        } else {
            let file = folder.join("bot.token");
            std::fs::write(&file, TOKEN).unwrap();
            Access::Token(file)
        };
        PullHost { kind, api, owner: OWNER.to_owned(), name: NAME.to_owned(), access }
    }

    /// What brings requests to it. That takes some time, which is not the same for all, so that of several they come in a fixed order.
    pub(crate) fn transport(&self) -> HttpTransport {
        let host = self.clone();
        HttpTransport::new(service_fn(move |request: Request<Bytes>| {
            let host = host.clone();
            async move {
                let what = format!("{} {}", request.method(), request.uri());
                sleep(Duration::from_millis(50 + print(&what) % 100)).await;
                host.answer(&request)
            }
        }))
    }

    pub(crate) fn kind(&self) -> HostKind {
        self.0.site.lock().unwrap().kind
    }

    /// Sees what was pushed, or deleted, since it was looked at last.
    pub(crate) fn look(&self) {
        if self.0.repository.exists() {
            self.with(|_, _| ());
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Site, &Bare) -> T) -> T {
        let mut site = self.0.site.lock().unwrap();
        let own = if site.kind == HostKind::Gitlab { OF_GITLAB } else { OF_GITHUB };
        let git = Bare::open(&self.0.repository, own);
        site.tick((self.0.clock)());
        site.look(&git);
        act(&mut site, &git)
    }

    /// What it and tidegate did there since the last time: when, in which word, what.
    pub(crate) fn news(&self) -> Vec<(Time, &'static str, String)> {
        self.0.site.lock().unwrap().news()
    }

    /// What was asked and answered so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.0.exchanges.lock().unwrap().clone()
    }

    /// From now on something is wrong with what is answered below paths with that part, so often; nothing is, if that is none.
    pub(crate) fn fault(&self, fault: Option<(&str, Wrong, Option<usize>)>) {
        let fault = fault.map(|(part, wrong, left)| Fault { part: part.to_owned(), wrong, left });
        *self.0.fault.lock().unwrap() = fault;
    }

    fn meet(&self, uri: &str) -> Option<Wrong> {
        let mut met = self.0.fault.lock().unwrap();
        let fault = met.as_mut().filter(|fault| uri.contains(&fault.part))?;
        let wrong = fault.wrong;
        match &mut fault.left {
            Some(1) => *met = None,
            Some(left) => *left -= 1,
            None => {}
        }
        Some(wrong)
    }

    /// Who asks, or what they are answered right away.
    fn asker(&self, path: &str, request: &Request<Bytes>, sent: &Value) -> Result<String, (u16, Value)> {
        let said = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (mut app, now) = (self.0.app.lock().unwrap(), (self.0.clock)());
        match &mut *app {
            None if said == format!("Bearer {TOKEN}") => Ok("bot".to_owned()),
            None => Err(github::wrong(401, "Bad credentials")),
            Some(app) => match app.answer(request.method().as_str(), path, said, sent, *now) {
                Some(answer) => Err(answer),
                None => Ok(LOGIN.to_owned()),
            },
        }
    }

    /// The part of an address below the API's.
    fn below(&self, request: &Request<Bytes>) -> String {
        let uri = request.uri().to_string();
        let root = self.0.api.trim_end_matches("/v4");
        let below = uri.strip_prefix(root).unwrap_or_else(|| panic!("{uri} is another host's"));
        below.trim_start_matches("/v4").trim_start_matches('/').to_owned()
    }

    fn carry_out(&self, below: &str, request: &Request<Bytes>, sent: &Value) -> (u16, Value) {
        let (path, query) = below.split_once('?').unwrap_or((below, ""));
        let by = match self.asker(path, request, sent) {
            Ok(by) => by,
            Err(said) => return said,
        };
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let parts: Vec<&str> = path.split('/').collect();
        let method = request.method().as_str();
        let asked = Asked { method, parts: &parts, query: &query, sent, by: &by, name: NAME };
        let (status, answer) = self.with(|site, git| match site.kind {
            HostKind::Gitlab => gitlab::answer(site, git, &asked),
            HostKind::Gitea | HostKind::Github => github::answer(site, git, &asked),
        });
        (status, answer)
    }

    fn answer(&self, request: &Request<Bytes>) -> Result<Response<Body>, BoxError> {
        let below = self.below(request);
        let wrong = self.meet(&below);
        if wrong == Some(Wrong::Away) || !self.0.repository.exists() {
            return Err("connection refused".into());
        }
        let sent: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let (status, answer) = match wrong {
            Some(Wrong::Status(status)) => github::wrong(status, "not now"),
            _ => self.carry_out(&below, request, &sent),
        };
        let (answer, mut more) = paged(answer, &below);
        more |= wrong == Some(Wrong::Endless);
        let mut said = if status == 204 { String::new() } else { answer.to_string() };
        if wrong.is_none() {
            self.0.exchanges.lock().unwrap().push(Exchange {
                method: request.method().to_string(),
                path: below,
                sent: String::from_utf8_lossy(request.body()).into_owned(),
                status,
                answer: said.clone(),
            });
        }
        if wrong == Some(Wrong::Half) {
            said.truncate(said.len() / 2);
        }
        let etag = format!("\"{:x}\"", print(&said));
        let known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
        let same = (status == 200 && known) || wrong == Some(Wrong::Unmodified);
        let (status, said) = if same { (304, String::new()) } else { (status, said) };
        let mut response = Response::new(Body::from(said));
        *response.status_mut() = status.try_into()?;
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, etag.parse()?);
        headers.insert(CONTENT_TYPE, "application/json; charset=utf-8".parse()?);
        if more {
            headers.insert(LINK, "<https://next.invalid/>; rel=\"next\"".parse()?);
        }
        if wrong == Some(Wrong::Status(429)) {
            headers.insert(RETRY_AFTER, "60".parse()?);
        }
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// A number for a text.
fn print(text: &str) -> u64 {
    text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// The page of a list that is asked for, and whether there is more.
fn paged(answer: Value, below: &str) -> (Value, bool) {
    let Value::Array(all) = answer else { return (answer, false) };
    let query = below.split_once('?').map_or("", |(_, query)| query);
    let query: BTreeMap<String, String> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let number = |name: &str, else_is: usize| query.get(name).map_or(else_is, |text| text.parse().unwrap());
    let (length, page) = (number("per_page", 30), number("page", 1));
    let more = all.len() > length * page;
    (json!(all.chunks(length).nth(page - 1).unwrap_or_default()), more)
}

/// A pull request, as its page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) number: u64,
    /// `#1`, or `!1`.
    pub(crate) named: String,
    pub(crate) by: String,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) branch: String,
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) standing: Standing,
    pub(crate) labels: Vec<String>,
    /// Each with whose it is.
    pub(crate) comments: Vec<(String, String)>,
}

/// What people do there.
impl Host {
    /// All pull requests, the last one first.
    pub(crate) fn pulls(&self) -> Vec<Page> {
        self.with(|site, _| {
            let page = |pull: &site::Pull| Page {
                number: pull.number,
                named: site.named(pull.number),
                by: pull.by.clone(),
                title: pull.title.clone(),
                body: pull.body.clone(),
                branch: pull.branch.clone(),
                head: pull.head.clone(),
                base: pull.base.clone(),
                standing: pull.standing,
                labels: pull.labels.clone(),
                comments: pull.comments.iter().map(|said| (said.by.clone(), said.text.clone())).collect(),
            };
            site.pulls.iter().rev().map(page).collect()
        })
    }

    /// Opens one as a user; its number.
    pub(crate) fn open(&self, by: &str, text: [&str; 2], ends: [&str; 2]) -> Result<u64, String> {
        let opened = self.with(|site, git| site.open(git, by, text, ends));
        opened.ok_or_else(|| format!("{} has an open one, or is no branch", ends[0]))
    }

    /// Changes one as a user.
    pub(crate) fn change(&self, by: &str, number: u64, change: Change) {
        self.with(|site, _| site.change(number, by, change));
    }

    /// Nobody may comment on it any more.
    pub(crate) fn lock(&self, number: u64) {
        self.with(|site, _| site.lock(number));
    }

    pub(crate) fn review(&self, by: &str, number: u64, says: Says) {
        self.with(|site, _| site.review(number, by, says));
    }

    pub(crate) fn comment(&self, by: &str, number: u64, text: &str) {
        self.with(|site, _| site.comment(number, by, text, false));
    }

    pub(crate) fn merge(&self, way: Way, by: &str, number: u64) -> Result<(), String> {
        self.with(|site, git| site.merge(git, number, by, way))
    }

    /// Merges them as GitHub's queue does.
    pub(crate) fn merge_queued(&self, by: &str, numbers: &[u64]) -> Result<(), String> {
        self.with(|site, git| github::merge_queued(site, git, by, numbers))
    }

    /// Merges one as a user, as a commit of their own making: that of a merge, with this file beside, or instead.
    pub(crate) fn merge_with(&self, by: &str, number: u64, file: (&str, &str)) -> Result<(), String> {
        self.with(|site, git| {
            let pull = site.pull(number).ok_or("there is no such pull request")?;
            let tip = git.tip(&pull.base).ok_or("its base is gone")?;
            let head = git.write(by, &pull.head, file, site.now);
            let became = git.merged_as(by, [&tip, &pull.head], &head, site.now);
            site.became(git, number, by, Way::Merge, became);
            Ok(())
        })
    }

    /// Adds a commit to a branch as a user, on top of what is there, or in the place of its last one. The branch may be a new one, from
    /// another.
    pub(crate) fn push(&self, by: &str, branch: &str, from: &str, file: (&str, &str)) -> Result<(), String> {
        self.with(|site, git| {
            let onto = git.tip(from).ok_or_else(|| format!("there is no branch {from}"))?;
            git.set(&format!("refs/heads/{branch}"), &git.write(by, &onto, file, site.now));
            site.look(git);
            Ok(())
        })
    }

    /// Takes the last commit off a branch.
    pub(crate) fn undo(&self, branch: &str) -> Result<(), String> {
        self.with(|_, git| {
            let tip = git.tip(branch).ok_or_else(|| format!("there is no branch {branch}"))?;
            let parent = git.show(&tip).and_then(|shown| shown.parents.first().cloned());
            git.set(&format!("refs/heads/{branch}"), &parent.ok_or("it has one commit")?);
            Ok(())
        })
    }

    pub(crate) fn delete_branch(&self, branch: &str) {
        self.with(|site, git| {
            git.delete(branch);
            site.look(git);
        });
    }

    /// A file of a commit.
    pub(crate) fn file(&self, commit: &str, path: &str) -> Option<String> {
        self.with(|_, git| git.text(commit, path))
    }

    /// The files that a pull request would change.
    pub(crate) fn files(&self, number: u64) -> Vec<String> {
        self.with(|site, git| {
            let pull = site.pull(number).unwrap();
            let base = pull.commits(git).first().and_then(|first| git.show(first)?.parents.first().cloned());
            base.map(|base| git.changed(&base, &pull.head)).unwrap_or_default()
        })
    }

    /// Lets pull requests lead to a branch alone, or everybody push to it.
    pub(crate) fn protect(&self, branch: &str, protect: bool) {
        self.with(|site, _| {
            if protect {
                site.rules.insert(branch.to_owned(), github::rule());
            } else {
                site.rules.remove(branch);
            }
        });
    }

    /// Lets somebody do so much from now on: 20 reads, 30 writes.
    pub(crate) fn level(&self, user: &str, level: u64) {
        self.with(|site, _| site.levels.insert(user.to_owned(), level));
    }

    /// Makes a team of these people, or lets them alone stay in it.
    pub(crate) fn team(&self, name: &str, people: &[&str]) {
        let people = people.iter().map(|name| (*name).to_owned()).collect();
        self.with(|site, _| site.teams.insert(name.to_owned(), people));
    }

    /// How a branch's tip was said to stand last, under each name: in which word, in which line.
    pub(crate) fn statuses(&self, branch: &str) -> BTreeMap<String, (String, String)> {
        self.with(|site, git| {
            let tip = git.tip(branch);
            let of_it = site.statuses.iter().filter(|status| Some(&status.commit) == tip.as_ref());
            of_it.map(|status| (status.name.clone(), (status.mark.clone(), status.text.clone()))).collect()
        })
    }

    /// The checks of a branch's tip, each with its annotations.
    pub(crate) fn checks(&self, branch: &str) -> Vec<(Value, Vec<Value>)> {
        self.with(|site, git| git.tip(branch).map(|tip| site.checks.of(&tip)).unwrap_or_default())
    }

    /// What lets tidegate in: a part of each token, and the lines of its key.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let app = self.0.app.lock().unwrap();
        let Some(app) = &*app else { return vec![TOKEN.to_owned()] };
        let key = app.pkcs8();
        let lines = key.lines().filter(|line| !line.starts_with('-')).map(str::to_owned);
        lines.chain([CANARY.to_owned()]).collect()
    }

    /// What has one of these in it: of what it was sent, or of what lies in its repository.
    pub(crate) fn told(&self, secrets: &[String]) -> Vec<String> {
        let sent = self.exchanges().into_iter().map(|exchange| exchange.sent);
        let all = sent.chain(self.with(|_, git| git.texts()));
        all.filter(|text| secrets.iter().any(|secret| text.contains(secret))).collect()
    }

    /// Tokens that were given before let in no more.
    pub(crate) fn revoke(&self) {
        self.0.app.lock().unwrap().iter_mut().for_each(Registered::revoke);
    }

    /// How many tokens were given.
    pub(crate) fn handed_out(&self) -> usize {
        self.0.app.lock().unwrap().as_ref().map_or(0, Registered::handed_out)
    }
}
