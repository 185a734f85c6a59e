//! The Apps of the stand-in: each is let in to its own repositories, to the API and to Git, and nobody else is.

use super::{Github, State, nothing, wrong};
use crate::support::git_host::Hosted;
use crate::support::github_app::{LOGIN, Registered};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// By their ids.
pub(super) type Apps = BTreeMap<String, Registered>;

/// Who asks.
pub(super) struct Asker {
    pub(super) login: &'static str,
    /// The id of the App that it is.
    pub(super) app: Option<String>,
}

impl Github {
    /// Makes an App; its id.
    pub(crate) fn register(&self) -> String {
        let mut apps = self.state.apps.lock().unwrap();
        let id = (123 + apps.len()).to_string();
        let app = Registered::new(&id);
        std::fs::write(self.key_file(&id), app.pkcs8()).unwrap();
        apps.insert(id.clone(), app);
        id
    }

    fn key_file(&self, app: &str) -> PathBuf {
        self.folder.join(format!("app-{app}.pem"))
    }

    /// An App's private key.
    pub(crate) fn key(&self, app: &str) -> String {
        std::fs::read_to_string(self.key_file(app)).unwrap()
    }

    /// What an installation says of an App.
    pub(crate) fn app(&self, app: &str) -> String {
        format!("{{id: \"{app}\", keyFile: {}}}", self.key_file(app).display())
    }

    /// From now on no token lets in that an App was given before.
    pub(crate) fn revoke(&self, app: &str) {
        self.state.apps.lock().unwrap().get_mut(app).unwrap().revoke();
    }

    /// How many tokens an App was given.
    pub(crate) fn handed_out(&self, app: &str) -> usize {
        self.state.apps.lock().unwrap()[app].handed_out()
    }

    /// Makes a repository in which an App is installed, and to which nobody else is let in.
    pub(crate) fn repository_of(&self, name: &str, app: &str) -> Hosted {
        let hosted = self.repository(name);
        self.state.lock().get_mut(name).unwrap().app = Some(app.to_owned());
        hosted
    }
}

impl State {
    /// Whether a repository belongs to that App, or to none as that is.
    fn belongs(&self, name: &str, app: Option<&str>) -> bool {
        self.lock().get(name).is_none_or(|repository| repository.app.as_deref() == app)
    }

    /// Who asks the API for what is at a path, or what is answered right away.
    pub(super) fn asker(
        &self,
        method: &str,
        path: &str,
        headers: &HeaderMap,
        sent: &Value,
    ) -> Result<Asker, (u16, Value)> {
        let authorization = headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap()).unwrap_or_default();
        let below = path.trim_start_matches("/api/v3/");
        let name = below.strip_prefix("repos/acme/").and_then(|below| below.split('/').next());
        let asker = match authorization {
            "Bearer ghp_bot" => Asker { login: "bot", app: None },
            "token ghp_owner" => Asker { login: "owner", app: None },
            _ => self.as_app(method, below, authorization, sent)?,
        };
        match name {
            Some(name) if !self.belongs(name, asker.app.as_deref()) => Err(nothing("Not Found")),
            _ => Ok(asker),
        }
    }

    fn as_app(&self, method: &str, path: &str, authorization: &str, sent: &Value) -> Result<Asker, (u16, Value)> {
        let bearer = authorization.strip_prefix("Bearer ").unwrap_or_default();
        let mut apps = self.apps.lock().unwrap();
        let Some((id, app)) = apps.iter_mut().find(|(_, app)| app.is(bearer)) else {
            return Err(wrong(401, "Bad credentials"));
        };
        if let Some(name) = path.strip_prefix("repos/acme/").and_then(|path| path.strip_suffix("/installation"))
            && !self.belongs(name, Some(id))
        {
            return Err(nothing("Not Found"));
        }
        match app.answer(method, path, authorization, sent, chrono::Utc::now()) {
            Some(said) => Err(said),
            None => Ok(Asker { login: LOGIN, app: Some(id.clone()) }),
        }
    }

    /// Whether Git is let in to what is at a path: to an App's repository by its token, under the name that GitHub wants for it.
    pub(super) fn lets_in(&self, path: &str, headers: &HeaderMap) -> bool {
        let name = path.trim_start_matches("/acme/").split(".git").next().unwrap_or_default();
        let Some(id) = self.lock().get(name).and_then(|repository| repository.app.clone()) else { return true };
        let login = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let login = login.strip_prefix("Basic ").and_then(|login| STANDARD.decode(login).ok());
        let login = login.and_then(|login| String::from_utf8(login).ok()).unwrap_or_default();
        let token = login.strip_prefix("x-access-token:");
        token.is_some_and(|token| self.apps.lock().unwrap()[&id].lets_in(token, chrono::Utc::now()))
    }
}
