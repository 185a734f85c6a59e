//! The API of a Git host, as far as pull requests go: Gitea (and Forgejo) and GitHub, which differ in little, and GitLab, which
//! has other words for the same. All that differs stands in `kinds`, and what GitLab alone needs in `gitlab`.
//!
//! Every call ends within [`PATIENCE`], goes to the one address that the installation names (`line`), follows no redirect, and is
//! counted. The token is read from its file at each call, or is that of a GitHub App (`app`), and is in no error.

use super::budget::{Budget, Pause};
use super::pull::{Ids, PullRequest, Text};
use super::settings::escaped;
use crate::git::Refusal;
use crate::manifest::ids::CommitId;
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::people::user::User;
use crate::record::state::Time;
use crate::record::text::plain;
use http::Method;
use http::header::{DATE, ETAG, HeaderMap, LINK};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

mod app;
mod call;
mod checks;
mod commits;
mod gitlab;
mod kinds;
mod labels;
mod line;
mod list;
mod offers;
mod pass;
mod reviews;
mod rules;
mod teams;
mod wire;

pub use app::{AppAuth, Granted};
pub use call::{CallOutcome, CallPurpose, Count, HostError};
use call::{Tally, counted};
pub use checks::{Annotation, AnnotationLevel, CheckRun};
use commits::Told;
pub use commits::{Opened, Shown};
use gitlab::RawRequest;
use kinds::{Change, Turn};
use line::Line;
pub use line::{HttpTransport, network};
use list::Listed;
pub use offers::{Comment, Offer, Offers};
pub use pass::Pass;
pub use reviews::Pulled;
use reviews::RawUser;
pub use rules::{HostWebhook, Permissions};
use wire::{Id, RawPull};

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Percent of what the host allows that are left to others who use the same account.
const SPARE: i64 = 20;
/// The longest answer that is read.
const LONGEST: usize = 16 << 20;
/// The most pages of a list that are read: a longer one is not believed to end.
const PAGES: usize = 100;

/// How a commit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// In a word that hosts know.
    pub mark: HostMark,
    /// In a line of at most [`Self::LONGEST`] characters.
    pub text: String,
}

impl Status {
    /// The most that GitHub takes.
    pub const LONGEST: usize = 140;

    /// The text is cut to what hosts take.
    #[must_use]
    pub fn new(mark: HostMark, text: &str) -> Self {
        let short = text.chars().count() <= Self::LONGEST;
        let text = if short { text.to_owned() } else { text.chars().take(Self::LONGEST - 1).chain(['…']).collect() };
        Self { mark, text }
    }
}

/// The words that hosts know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostMark {
    /// Something is under way, or waits.
    Pending,
    /// All is as wanted.
    Success,
    /// Something will never be as it is wanted.
    Failure,
}

/// Tells the time.
pub type Now = Box<dyn Fn() -> Time + Send + Sync>;

/// A repository on a Git host.
pub struct Host {
    transport: HttpTransport,
    site: PullHost,
    pass: Pass,
    budget: Budget,
    /// Our pull requests.
    listed: Listed,
    /// What else was read, with its ETag.
    known: BTreeMap<String, (String, Vec<u8>)>,
    /// What it has told of commits, and stays so.
    told: Told,
    /// What its clock said last.
    date: Option<Time>,
    me: Option<Me>,
    count: Arc<Count>,
    now: Now,
}

/// Our user, and the repository.
#[derive(Debug, Clone)]
struct Me {
    ids: Ids,
    login: String,
}

impl Host {
    /// Over the network. Asks nothing yet.
    ///
    /// # Errors
    /// When there is no HTTP client: this machine's certificates cannot be read.
    pub fn new(site: PullHost, pass: Pass, count: Count, now: Now) -> Result<Self, reqwest::Error> {
        Ok(Self::over(network()?, site, pass, count, now))
    }

    /// Over whatever brings its requests there.
    #[must_use]
    pub fn over(transport: HttpTransport, site: PullHost, pass: Pass, count: Count, now: Now) -> Self {
        let (budget, listed, known) = (Budget::leaving(SPARE), Listed::default(), BTreeMap::new());
        let (count, told) = (Arc::new(count), Told::default());
        pass.counted_by(&count);
        Self { transport, site, pass, budget, listed, known, told, date: None, me: None, count, now }
    }

    /// Leaves so many percent of what the host allows to others who use the same account.
    #[must_use]
    pub fn leaving(self, spare: i64) -> Self {
        Self { budget: Budget::leaving(spare), ..self }
    }

    /// Is one of so many who ask, and leave the same to others: none takes what is another's.
    pub fn share(&mut self, among: usize) {
        self.budget.share(among);
    }

    /// Keeps a pause that the host asked another one for.
    #[must_use]
    pub fn heeding(mut self, pause: &Pause) -> Self {
        self.budget.heed(pause);
        self
    }

    /// Who we are there: asked once.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn ids(&mut self) -> Result<Ids, HostError> {
        self.me().await.map(|me| me.ids)
    }

    /// The number of the repository that lies there now: asked each time.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn repository(&mut self) -> Result<u64, HostError> {
        let Id { id } = self.get(CallPurpose::Identify, self.in_repository("")).await?;
        Ok(id)
    }

    async fn me(&mut self) -> Result<Me, HostError> {
        if let Some(me) = &self.me {
            return Ok(me.clone());
        }
        let path = match self.pass.clone() {
            Pass::Token(_) => "user".to_owned(),
            // What an App does is done by a user of its own, whose token nobody has.
            Pass::App(app) => format!("users/{}", escaped(&app.login().await?)),
        };
        let user: RawUser = self.get(CallPurpose::Identify, path.clone()).await?;
        let Some(User { id: user, login }) = user.read() else {
            let why = "an account without a number or a name".to_owned();
            return Err(HostError::Unusable { doing: format!("GET {path}"), why });
        };
        let repository = self.repository().await?;
        let me = Me { ids: Ids { user, repository }, login };
        self.me = Some(me.clone());
        Ok(me)
    }

    /// One pull request.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn pull(&mut self, number: u64) -> Result<PullRequest, HostError> {
        let path = self.in_repository(&format!("{}/{number}", self.site.kind.pulls()));
        let answer = self.ask(CallPurpose::List, Method::GET, &path, None, None).await?;
        self.read_pull(&answer)
    }

    /// Opens a pull request.
    ///
    /// # Errors
    /// As [`HostError`] says; `Refused` also when there is one already.
    pub async fn create(&mut self, branch: &str, base: &str, text: &Text) -> Result<u64, HostError> {
        let (path, body) = (self.in_repository(self.site.kind.pulls()), self.site.kind.draft(text, branch, base));
        let answer = self.ask(CallPurpose::Create, Method::POST, &path, Some(&body), None).await?;
        Ok(self.read_pull(&answer)?.number)
    }

    /// Changes what a pull request says, and where it leads, if that is to be changed.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn update(&mut self, number: u64, text: &Text, base: Option<&str>) -> Result<(), HostError> {
        self.change(number, Change { text: Some(text), base, turn: None }).await
    }

    /// Closes a pull request, which says that from then on, if anything.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn close(&mut self, number: u64, text: Option<&Text>) -> Result<(), HostError> {
        self.change(number, Change { text, base: None, turn: Some(Turn::Close) }).await
    }

    /// Tells people something, where the host takes it: one that is locked, or has thousands of comments, takes none.
    ///
    /// # Errors
    /// As [`HostError`] says; a word that is refused is none.
    pub async fn mention(&mut self, number: u64, what: &str) -> Result<(), HostError> {
        match self.comment(number, what).await {
            Err(error @ HostError::Refused { .. }) => {
                tracing::warn!(number, %error, "nobody is told there");
                Ok(())
            }
            told => told,
        }
    }

    /// Tells people something.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn comment(&mut self, number: u64, what: &str) -> Result<(), HostError> {
        let path = self.in_repository(&self.site.kind.comments(number));
        self.ask(CallPurpose::Comment, Method::POST, &path, Some(&json!({"body": what})), None).await.map(drop)
    }

    /// Opens a pull request again that was closed.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn reopen(&mut self, number: u64) -> Result<(), HostError> {
        self.change(number, Change { text: None, base: None, turn: Some(Turn::Reopen) }).await
    }

    /// Says how a commit stands, under a name.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn tell(&mut self, commit: &CommitId, name: &str, status: &Status) -> Result<(), HostError> {
        let path = self.in_repository(&format!("statuses/{commit}"));
        let body = self.site.kind.status(name, status);
        let told = self.ask(CallPurpose::Status, Method::POST, &path, Some(&body), None).await;
        match (told, self.site.kind) {
            (Err(HostError::Refused { status: 400, .. }), HostKind::Gitlab) if status.mark == HostMark::Pending => {
                self.pend_anew(&path, name, &body).await
            }
            (told, _) => told.map(drop),
        }
    }

    async fn change(&mut self, number: u64, change: Change<'_>) -> Result<(), HostError> {
        let kind = self.site.kind;
        let path = self.in_repository(&format!("{}/{number}", kind.pulls()));
        self.ask(CallPurpose::Update, kind.changing(), &path, Some(&kind.change(change)), None).await.map(drop)
    }

    fn in_repository(&self, path: &str) -> String {
        let PullHost { owner, name, .. } = &self.site;
        format!("{}/{path}", self.site.kind.repository(owner, name)).trim_end_matches('/').to_owned()
    }

    fn read_pull(&self, answer: &Answer) -> Result<PullRequest, HostError> {
        match self.site.kind {
            HostKind::Gitea | HostKind::Github => answer.read().map(RawPull::read),
            HostKind::Gitlab => answer.read().map(RawRequest::read),
        }
    }

    async fn get<T: DeserializeOwned>(&mut self, errand: CallPurpose, path: String) -> Result<T, HostError> {
        let answer = self.ask(errand, Method::GET, &path, None, None).await?;
        answer.read()
    }

    /// One call, counted once, when what came of it is known.
    async fn ask(
        &mut self,
        errand: CallPurpose,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<String>,
    ) -> Result<Answer, HostError> {
        if let Some(pause) = self.budget.rests((self.now)()) {
            return Err(HostError::Limited(pause.num_seconds().max(1)));
        }
        let asked = self.exchange(method, path, body, etag).await;
        counted(asked, errand, &self.count)
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<String>,
    ) -> Result<Answer, HostError> {
        let bearer = self.pass.bearer().await?;
        let line = Line { transport: &self.transport, site: &self.site, bearer: &bearer };
        let answer = line.send(method, path, body, etag).await?;
        self.date = answer.date().or(self.date);
        let message = if (200..300).contains(&answer.status) { String::new() } else { answer.message() };
        if self.budget.update(answer.status, &answer.headers, &message, (self.now)()) {
            let pause = self.budget.rests((self.now)()).map_or(1, |pause| pause.num_seconds());
            return Err(HostError::Limited(pause));
        }
        if let Some(why) = answer.refusal(&message) {
            self.pass.refused(&bearer, why).await;
        }
        answer.judged(&message, &self.site)
    }
}

/// The secret that lets us in: printed nowhere.
pub(super) struct Token(SecretString);

impl Token {
    pub(super) async fn read(file: &Path) -> Result<Self, HostError> {
        let wrong = |why: &str| HostError::Token(format!("{}: {why}", file.display()));
        let text = tokio::fs::read_to_string(file).await.map_err(|error| wrong(&error.to_string()))?;
        match text.trim() {
            "" => Err(wrong("it is empty")),
            line if line.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                Err(wrong("it has more than one word: expected the token alone"))
            }
            line => Ok(Self(line.into())),
        }
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

struct Answer {
    doing: String,
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    tally: Option<Tally>,
}

impl Answer {
    fn unusable(&self, why: &str) -> HostError {
        if let Some(tally) = &self.tally {
            tally.no_use();
        }
        HostError::Unusable { doing: self.doing.clone(), why: plain(why) }
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, HostError> {
        serde_json::from_slice(&self.body).map_err(|error| self.unusable(&error.to_string()))
    }

    /// What the host's clock showed.
    fn date(&self) -> Option<Time> {
        moment(self.headers.get(DATE)?.to_str().ok()?)
    }

    /// What an error says of itself, escaped: in words, or, as GitLab may, in lists and maps of them.
    fn message(&self) -> String {
        let Ok(Value::Object(said)) = serde_json::from_slice(&self.body) else { return String::new() };
        let words = ["message", "error", "error_description", "errors"].into_iter().filter_map(|key| said.get(key));
        let words = words.filter(|word| !word.is_null());
        let words = words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned));
        plain(&words.collect::<Vec<_>>().join(" "))
    }

    /// Whether what let us in does not any more, or does not as far as that.
    fn refusal(&self, message: &str) -> Option<Refusal> {
        match self.status {
            401 => Some(Refusal::Unknown),
            403 if message.contains("not accessible by integration") => Some(Refusal::Lacking),
            _ => None,
        }
    }

    fn judged(self, message: &str, site: &PullHost) -> Result<Self, HostError> {
        let doing = self.doing.clone();
        let refused = |why: String| Err(HostError::Refused { doing: doing.clone(), status: self.status, why });
        let access = &site.access;
        match self.status {
            200..=299 | 304 => Ok(self),
            300..=399 => {
                Err(self.unusable("a redirect, which is not followed: was the repository moved, is the URL right?"))
            }
            401 => refused(match access {
                Access::Token(_) => format!("{message}; is {access} valid?"),
                Access::App(_) => format!("{message}; the next call asks for a new token"),
            }),
            403 => refused(format!("{message}; may {access} read and write pull requests?")),
            404 => refused(format!("{message}; does {}/{} exist, and may {access} see it?", site.owner, site.name)),
            500.. => Err(HostError::Away { doing, why: format!("status {}", self.status) }),
            _ => refused(message.to_owned()),
        }
    }
}

/// The time as HTTP says it.
fn moment(date: &str) -> Option<Time> {
    Time::from_rfc2822(date)
}

#[cfg(test)]
use crate::sign::testing::Registered;
#[cfg(test)]
use github_checks::Checks;
#[cfg(test)]
#[path = "../../../../tests/support/github_checks.rs"]
pub(crate) mod github_checks;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
