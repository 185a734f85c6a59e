//! What lets in to a Git host.

use super::{AppAuth, Count, HostError, HttpTransport, Now, Token};
use crate::git::{Lent, Refusal};
use crate::manifest::installation::{Access, PullHost};
use secrecy::SecretString;
use std::path::PathBuf;
use std::sync::Arc;

/// What lets in to a Git host. Clones share what a GitHub App was given.
#[derive(Clone)]
pub enum Pass {
    /// A token, read from its file each time.
    Token(PathBuf),
    /// A GitHub App.
    App(Arc<AppAuth>),
}

impl Pass {
    /// As an installation says. Asks nothing yet.
    ///
    /// # Errors
    /// When there is no HTTP client: this machine's certificates cannot be read.
    pub fn new(site: &PullHost, now: Now) -> Result<Self, reqwest::Error> {
        Ok(match &site.access {
            Access::Token(file) => Self::Token(file.clone()),
            Access::App(app) => Self::App(Arc::new(AppAuth::new(site, app, now)?)),
        })
    }

    /// The same, over whatever brings requests to the host.
    #[must_use]
    pub fn over(transport: HttpTransport, site: &PullHost, now: Now) -> Self {
        match &site.access {
            Access::Token(file) => Self::Token(file.clone()),
            Access::App(app) => Self::App(Arc::new(AppAuth::over(transport, site, app, now))),
        }
    }

    /// What Git is let in by too, if it is.
    #[must_use]
    pub fn lent(&self) -> Option<Lent> {
        match self {
            Self::Token(_) => None,
            Self::App(app) => Some(Lent::by(app.clone())),
        }
    }

    /// What is asked to be let in is counted there, like all else that is asked.
    pub(super) fn counted_by(&self, count: &Arc<Count>) {
        match self {
            Self::Token(_) => {}
            Self::App(app) => app.counted_by(count),
        }
    }

    pub(super) async fn bearer(&self) -> Result<SecretString, HostError> {
        match self {
            Self::Token(file) => Ok(Token::read(file).await?.0),
            Self::App(app) => app.token().await,
        }
    }

    /// The host does not take that.
    pub(super) async fn refused(&self, bearer: &SecretString, why: Refusal) {
        match self {
            // Another one stands in its file soon, or never.
            Self::Token(_) => {}
            Self::App(app) => app.refused(bearer, why).await,
        }
    }
}
