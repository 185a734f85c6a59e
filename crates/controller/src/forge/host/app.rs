//! A GitHub App: what it is called on its host, and the token that lets it in.
//!
//! One value for all who need that token: Git and whoever asks the API. It is kept until shortly before its end, and renewed
//! by who comes first then; who comes meanwhile waits for what came of it. The key is read from its file whenever something
//! is signed, and is in no error.

use super::call::counted;
use super::{Answer, CallPurpose, Count, HostError, HttpTransport, Line, Method, Now, network};
use crate::forge::budget::Budget;
use crate::git::{GitError, Lender, Login, Refusal};
use crate::manifest::duration::Span;
use crate::manifest::installation::{self, PullHost};
use crate::record::state::Time;
use crate::record::text::plain;
use crate::sign::AppKey;
use chrono::TimeDelta;
use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// How long before its end a token is not used any more: longer than anything takes that begins with it.
const MARGIN: TimeDelta = TimeDelta::minutes(5);
/// A token keeps the permissions that it was made with. One that lacks some is no reason for a new one for so long, so that what nobody
/// grants is asked for 12 times an hour and no more.
const FRESH: TimeDelta = TimeDelta::minutes(5);
/// An assertion is valid from so many seconds ago, as the host's clock may be behind.
const SINCE: i64 = 60;
/// And for so many: it may not end more than ten minutes from now, and the host's clock may be behind there too.
const LASTS: i64 = 540;
/// How many seconds clocks may be apart before they are told to be the reason why an assertion is refused.
const CLOSE: i64 = 30;

/// What the App may do, by the host's names for it: `contents` to `write`.
pub type Granted = BTreeMap<String, String>;

/// A GitHub App. It has no `Debug`, so that nothing can print what it keeps.
pub struct AppAuth {
    transport: HttpTransport,
    site: PullHost,
    app: installation::App,
    now: Now,
    kept: Mutex<Kept>,
    /// How often a token was asked for.
    tries: AtomicU64,
    count: OnceLock<Arc<Count>>,
}

struct Kept {
    budget: Budget,
    named: Option<RawApp>,
    /// The number of the installation, as it was looked up.
    installation: Option<String>,
    held: Option<Held>,
    /// Why there is no token, as the last try says.
    failed: Option<HostError>,
}

#[derive(Clone)]
struct Held {
    token: SecretString,
    made: Time,
    until: Time,
    granted: Granted,
}

#[derive(Clone, Deserialize)]
struct RawApp {
    id: u64,
    /// GitHub does not promise it.
    slug: Option<String>,
    /// Ends with it.
    html_url: String,
}

impl RawApp {
    fn slug(&self) -> &str {
        self.slug.as_deref().or_else(|| self.html_url.rsplit('/').next()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct RawInstallation {
    id: u64,
}

#[derive(Deserialize)]
struct RawToken {
    token: String,
    #[serde(deserialize_with = "Time::clamped")]
    expires_at: Time,
    #[serde(default)]
    permissions: Granted,
}

impl AppAuth {
    /// Over the network. Asks nothing yet.
    ///
    /// # Errors
    /// When there is no HTTP client: this machine's certificates cannot be read.
    pub fn new(site: &PullHost, app: &installation::App, now: Now) -> Result<Self, reqwest::Error> {
        Ok(Self::over(network()?, site, app, now))
    }

    /// Over whatever brings its requests there.
    pub(super) fn over(transport: HttpTransport, site: &PullHost, app: &installation::App, now: Now) -> Self {
        let kept = Kept {
            budget: Budget::leaving(0),
            named: None,
            installation: app.installation.clone(),
            held: None,
            failed: None,
        };
        let (site, app) = (site.clone(), app.clone());
        Self { transport, site, app, now, kept: Mutex::new(kept), tries: AtomicU64::new(0), count: OnceLock::new() }
    }

    /// Counts its calls there, if they are counted nowhere yet: several hosts share an App.
    pub(super) fn counted_by(&self, count: &Arc<Count>) {
        self.count.get_or_init(|| Arc::clone(count));
    }

    /// What the App may do where it is installed.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn granted(&self) -> Result<Granted, HostError> {
        Ok(self.held().await?.granted)
    }

    /// What lets in now.
    pub(super) async fn token(&self) -> Result<SecretString, HostError> {
        Ok(self.held().await?.token)
    }

    /// The host does not take that token: nobody is given it again, unless a new one would be the same.
    pub(super) async fn refused(&self, token: &SecretString, why: Refusal) {
        let mut kept = self.kept.lock().await;
        let since = (self.now)() - FRESH;
        kept.held.take_if(|held| {
            held.token.expose_secret() == token.expose_secret() && (why == Refusal::Unknown || held.made <= since)
        });
    }

    /// Its number, whatever it calls itself: by that rules of branches let it past.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn number(&self) -> Result<u64, HostError> {
        Ok(self.named().await?.id)
    }

    /// What its user is called.
    pub(super) async fn login(&self) -> Result<String, HostError> {
        Ok(format!("{}[bot]", self.named().await?.slug()))
    }

    /// Who it is: asked once.
    async fn named(&self) -> Result<RawApp, HostError> {
        let mut kept = self.kept.lock().await;
        if let Some(named) = &kept.named {
            return Ok(named.clone());
        }
        let named: RawApp = self.ask(&mut kept.budget, Method::GET, "app", None).await?;
        Ok(kept.named.insert(named).clone())
    }

    async fn held(&self) -> Result<Held, HostError> {
        let tries = self.tries.load(Ordering::Relaxed);
        let mut kept = self.kept.lock().await;
        if let Some(held) = kept.held.as_ref().filter(|held| (held.made..held.until).contains(&(self.now)())) {
            return Ok(held.clone());
        }
        // Somebody has tried while we waited: it would come to the same.
        if let Some(error) = kept.failed.as_ref().filter(|_| self.tries.load(Ordering::Relaxed) != tries) {
            return Err(error.clone());
        }
        let renewed = self.renew(&mut kept).await;
        self.tries.fetch_add(1, Ordering::Relaxed);
        (kept.held, kept.failed) = (renewed.as_ref().ok().cloned(), renewed.as_ref().err().cloned());
        renewed
    }

    async fn renew(&self, kept: &mut Kept) -> Result<Held, HostError> {
        let PullHost { owner, name, .. } = &self.site;
        let installation = match &kept.installation {
            Some(number) => number.clone(),
            None => {
                let path = format!("repos/{owner}/{name}/installation");
                let RawInstallation { id } = self.ask(&mut kept.budget, Method::GET, &path, None).await?;
                kept.installation.insert(id.to_string()).clone()
            }
        };
        let path = format!("app/installations/{installation}/access_tokens");
        // For this repository alone, wherever else the App is installed.
        let body = json!({"repositories": [name]});
        let before = (self.now)();
        let asked = self.answer(&mut kept.budget, Method::POST, &path, Some(&body)).await;
        if matches!(asked, Err(HostError::Refused { status: 404, .. })) {
            // Installed anew it has another number.
            kept.installation.clone_from(&self.app.installation);
        }
        let answer = asked?;
        let RawToken { token, expires_at, permissions } = read(&answer)?;
        // By the host's own clock, whatever ours says; GitHub's last an hour.
        let lasts = (expires_at - answer.date().unwrap_or(before)).min(TimeDelta::hours(1));
        let granted = permissions.into_iter().map(|(what, level)| (plain(&what), plain(&level))).collect();
        let until = before + (lasts - MARGIN);
        Ok(Held { token: token.into(), made: before, until, granted })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        budget: &mut Budget,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, HostError> {
        read(&self.answer(budget, method, path, body).await?)
    }

    /// One call in the name of the App itself.
    async fn answer(
        &self,
        budget: &mut Budget,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, HostError> {
        if let Some(pause) = budget.rests((self.now)()) {
            return Err(HostError::Limited(pause.num_seconds().max(1)));
        }
        let asked = self.exchange(budget, method, path, body).await;
        match self.count.get() {
            Some(count) => counted(asked, CallPurpose::Identify, count),
            None => asked,
        }
    }

    async fn exchange(
        &self,
        budget: &mut Budget,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, HostError> {
        let now = (self.now)();
        let at = now.timestamp();
        let assertion = self.key().await?.assertion(&self.app.id, at - SINCE..at + LASTS);
        let line = Line { transport: &self.transport, site: &self.site, bearer: &assertion };
        let answer = line.send(method, path, body, None).await?;
        let (status, message) = (answer.status, answer.message());
        if budget.update(status, &answer.headers, &message, (self.now)()) {
            return Err(HostError::Limited(budget.rests((self.now)()).map_or(1, |pause| pause.num_seconds())));
        }
        let app = &self.app;
        let why = match status {
            401 => match answer.date().and_then(|theirs| apart(theirs, now)) {
                Some(clocks) => format!("{message}; {clocks}"),
                None => format!(
                    "{message}; is {} the App's id, and the key in {} one of its keys?",
                    app.id,
                    app.key_file.display()
                ),
            },
            403 => format!("{message}; is the installation of the App suspended?"),
            404 | 422 => format!(
                "{message}; is the GitHub App {} installed for {}/{}{}?",
                app.id,
                self.site.owner,
                self.site.name,
                app.installation.as_ref().map(|number| format!(", with the number {number}")).unwrap_or_default()
            ),
            _ => return answer.judged(&message, &self.site),
        };
        Err(HostError::Refused { doing: answer.doing, status, why })
    }

    async fn key(&self) -> Result<AppKey, HostError> {
        let file = &self.app.key_file;
        let wrong = |why: String| HostError::Key(format!("{}: {why}", file.display()));
        let text = tokio::fs::read(file).await.map(Zeroizing::new).map_err(|error| wrong(unread(&error)))?;
        AppKey::parse(&text).map_err(|error| wrong(error.to_string()))
    }
}

/// Why the file with the key cannot be read.
fn unread(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return format!(
            "{error}; let the user read it as whom tidegate runs: in a pod by the volume's defaultMode (0440) and the pod's fsGroup"
        );
    }
    error.to_string()
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, HostError> {
    // The error says where in the answer, and nothing of what is there.
    serde_json::from_slice(&answer.body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        answer.unusable(&format!("it is not as expected, at line {line}, column {column}"))
    })
}

/// How two clocks differ, if it is enough for an assertion to be refused.
fn apart(theirs: Time, ours: Time) -> Option<String> {
    let seconds = (ours - theirs).num_seconds();
    let way = if seconds > 0 { "ahead of" } else { "behind" };
    (seconds.abs() > CLOSE).then(|| {
        format!(
            "this machine's clock is {} {way} the host's ({} here, {} there): set it right (NTP)",
            Span::from_secs(seconds.unsigned_abs()),
            ours.format("%Y-%m-%d %H:%M:%S UTC"),
            theirs.format("%Y-%m-%d %H:%M:%S UTC")
        )
    })
}

impl Lender for AppAuth {
    fn lend(&self) -> BoxFuture<'_, Result<Login, GitError>> {
        let lend = async {
            let token = self.token().await.map_err(|error| self.as_git(error))?;
            Ok(Login { user: "x-access-token".to_owned(), password: token })
        };
        lend.boxed()
    }

    fn refused<'a>(&'a self, login: &'a Login, why: Refusal) -> BoxFuture<'a, ()> {
        self.refused(&login.password, why).boxed()
    }

    fn hint(&self) -> String {
        format!("see that the GitHub App {} may read and write Contents of this repository", self.app.id)
    }
}

impl AppAuth {
    fn as_git(&self, error: HostError) -> GitError {
        let doing = format!("ask for a token as the GitHub App {}", self.app.id);
        match error {
            HostError::Token(_) | HostError::Key(_) => GitError::Config(error.to_string()),
            HostError::Away { .. } | HostError::Limited(_) | HostError::Unusable { .. } => {
                GitError::Away { doing, why: error.to_string() }
            }
            HostError::Refused { status, why, .. } => GitError::Denied { doing, said: status.to_string(), hint: why },
        }
    }
}

#[cfg(test)]
mod tests;
