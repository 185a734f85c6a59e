//! The Git host that an installation names, and who the controller is there.

use super::place::{Odd, Place};
use super::text::http_url;
use crate::manifest::diagnostic::quoted;
use crate::manifest::raw;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// A repository on a Git host with pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullHost {
    /// Whose API it speaks.
    pub kind: HostKind,
    /// Where the API is, without a slash at the end.
    pub api: String,
    /// Who the repository belongs to; on GitLab perhaps groups in groups.
    pub owner: String,
    /// What it is called.
    pub name: String,
    /// Who the controller is there.
    pub access: Access,
}

/// Whose API a Git host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// Gitea's, or Forgejo's.
    Gitea,
    /// GitHub's.
    Github,
    /// GitLab's.
    Gitlab,
}

/// Who the controller is on a Git host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// An account, by a token in this file.
    Token(PathBuf),
    /// A GitHub App.
    App(App),
}

/// A GitHub App, installed where the repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// What it calls itself: its App ID or its client ID.
    pub id: String,
    /// The number of its installation; none if it is looked up.
    pub installation: Option<String>,
    /// The file with its private key.
    pub key_file: PathBuf,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(file) => write!(f, "the token in {}", file.display()),
            Self::App(app) => write!(f, "the GitHub App {}", app.id),
        }
    }
}

/// The host of the repository at `url`; `credentials` is what the installation names for Git.
pub(super) fn forge(asked: raw::Forge, url: &Url, credentials: Option<&str>) -> Result<Option<PullHost>, Odd> {
    let raw::Forge { kind, url: api, token_file, app, repository_id, feedback: _ } = asked;
    let kind = match kind {
        raw::ForgeKind::Branch if api.is_some() || token_file.is_some() || app.is_some() || repository_id.is_some() => {
            let what = "with kind: branch nothing is asked of an API".to_owned();
            let expected = "kind: gitea, github or gitlab, or no url, no tokenFile, no app and no repositoryId";
            return Err(Odd { field: "", what, expected });
        }
        raw::ForgeKind::Branch => return Ok(None),
        raw::ForgeKind::Gitea => HostKind::Gitea,
        raw::ForgeKind::Github => HostKind::Github,
        raw::ForgeKind::Gitlab => HostKind::Gitlab,
    };
    let access = access(kind, token_file, app, url, credentials)?;
    let given = api.map(|api| http_url(&api)).transpose();
    let given = given.map_err(|what| Odd { field: "/url", what, expected: "https://HOST/PATH" })?;
    let Some(place) = Place::of(kind, url, given.as_ref()) else {
        let what = format!("{} does not end with the repository's owner and name", quoted(url.as_str()));
        return Err(Odd { field: "/kind", what, expected: "repository.url: https://HOST/OWNER/NAME.git" });
    };
    let api = given.unwrap_or_else(|| place.api(kind, url)).as_str().trim_end_matches('/').to_owned();
    Ok(Some(PullHost { kind, api, owner: place.owner, name: place.name, access }))
}

fn access(
    kind: HostKind,
    token_file: Option<String>,
    app: Option<raw::App>,
    url: &Url,
    credentials: Option<&str>,
) -> Result<Access, Odd> {
    let odd = |field, what: &str, expected| Err(Odd { field, what: what.to_owned(), expected });
    match (token_file, app) {
        (None, None) if kind == HostKind::Github => {
            let expected = "tokenFile: the file with the API token of the bot's account, or app: a GitHub App";
            odd("", "pull requests need a token", expected)
        }
        (None, None) => {
            odd("", "pull requests need a token", "tokenFile: the file with the API token of the bot's account")
        }
        (Some(_), Some(_)) => odd("/app", "it is not clear who to be on the host", "either tokenFile or app"),
        (None, Some(_)) if kind != HostKind::Github => odd("/app", "only GitHub has Apps", "tokenFile"),
        (None, Some(_)) if credentials.is_some() && url.scheme() != "ssh" => {
            odd("/app", "Git is let in by the App too, and needs no other credentials", "no repository.credentialsFile")
        }
        (None, Some(raw::App { id, installation, key_file })) => {
            Ok(Access::App(App { id, installation, key_file: key_file.into() }))
        }
        (Some(file), None) => Ok(Access::Token(file.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Installation, parse};
    use super::*;
    use crate::manifest::diagnostic::Diagnostic;

    fn with(more: &str, forge: &str) -> Result<Installation, Vec<Diagnostic>> {
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: prod\n  repository:\n    \
             url: https://github.com/acme/shop.git\n{more}    forge: {{{forge}}}\n  clusters: {{home: {{inCluster: {{}}}}}}\n"
        );
        parse(&"installation.yaml".parse().unwrap(), text.as_bytes())
    }

    #[test]
    fn on_github_the_controller_may_be_an_app() {
        let access = |app: &str| {
            let host = with("", &format!("kind: github, app: {{{app}}}")).unwrap().repository.forge.unwrap();
            (host.api.clone(), host.access.to_string(), host.access)
        };
        let (api, shown, found) = access("id: \"123456\", keyFile: /etc/app/key.pem");
        assert_eq!((api.as_str(), shown.as_str()), ("https://api.github.com", "the GitHub App 123456"));
        let app = App { id: "123456".to_owned(), installation: None, key_file: "/etc/app/key.pem".into() };
        assert_eq!(found, Access::App(app));
        let (_, _, found) = access("id: Iv23liAbCdEf, installation: \"789\", keyFile: /k");
        let Access::App(App { id, installation, .. }) = found else { panic!("{found:?}") };
        assert_eq!((id.as_str(), installation.as_deref()), ("Iv23liAbCdEf", Some("789")));
    }

    #[test]
    fn what_does_not_go_together_is_told_at_its_line() {
        let app = "app: {id: \"1\", keyFile: /k}";
        for (more, forge, hint) in [
            ("", format!("kind: gitea, {app}"), "only GitHub has Apps"),
            ("", format!("kind: github, tokenFile: /t, {app}"), "either tokenFile or app"),
            ("    credentialsFile: /c\n", format!("kind: github, {app}"), "expected no repository.credentialsFile"),
            ("", app.to_owned(), "kind: gitea, github or gitlab"),
            ("", "kind: github".to_owned(), "or app: a GitHub App"),
            ("", "kind: github, app: {id: \"1\"}".to_owned(), "keyFile"),
            ("", "kind: github, app: {id: 1, keyFile: /k}".to_owned(), "expected a text (quote it)"),
            ("", "kind: github, app: {id: \"a/b\", keyFile: /k}".to_owned(), "a/b"),
            ("", "kind: github, app: {id: \"1\", installation: mine, keyFile: /k}".to_owned(), "mine"),
            ("", "kind: github, app: {id: \"1\", keyFile: k.pem}".to_owned(), "is not a path of a file"),
        ] {
            let error = with(more, &forge).unwrap_err()[0].to_string();
            assert!(error.contains(hint) && error.contains("installation.yaml:"), "{hint} in {error}");
        }
    }
}
