//! A Git host as the people of a story meet it: the same story is told on each.

use super::git_host::{GitHost, Hosted, in_api};
use super::github::Github;
use super::github_app::LOGIN;
use super::gitlab::Gitlab;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Where a story takes place.
pub(crate) enum Site {
    /// A real one.
    Gitea(&'static GitHost),
    /// A stand-in, which is held against what GitHub has published; with the App that tidegate is there, if it is one.
    Github(&'static Github, Option<String>),
    /// A stand-in.
    Gitlab(Gitlab),
}

impl Site {
    pub(crate) async fn gitea() -> Self {
        Self::Gitea(GitHost::shared().await)
    }

    pub(crate) async fn github() -> Self {
        Self::Github(Github::shared().await, None)
    }

    /// GitHub, where tidegate is an App of its own.
    pub(crate) async fn github_app() -> Self {
        let host = Github::shared().await;
        Self::Github(host, Some(host.register()))
    }

    pub(crate) async fn gitlab() -> Self {
        Self::Gitlab(Gitlab::start().await)
    }

    /// Whose API it speaks.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Gitea(_) => "gitea",
            Self::Github(..) => "github",
            Self::Gitlab(_) => "gitlab",
        }
    }

    /// Whose API it speaks, where, and who tidegate is there, as its own file says it.
    pub(crate) fn access(&self) -> String {
        let (kind, api) = match self {
            Self::Github(host, _) => (self.kind(), format!("url: \"{}\", ", host.api())),
            Self::Gitea(_) | Self::Gitlab(_) => (self.kind(), String::new()),
        };
        if let Self::Github(host, Some(app)) = self {
            return format!("forge: {{kind: {kind}, {api}app: {}}}", host.app(app));
        }
        let token = self.token_file();
        let token = token.display();
        format!("credentialsFile: {token}, forge: {{kind: {kind}, {api}tokenFile: {token}}}")
    }

    /// The file with the token by which tidegate is let in, if it is no App.
    pub(crate) fn token_file(&self) -> PathBuf {
        match self {
            Self::Gitea(host) => host.token_file("bot"),
            Self::Github(host, _) => host.token_file(),
            Self::Gitlab(host) => host.token_file(),
        }
    }

    /// What tidegate is called there.
    pub(crate) fn account(&self) -> &'static str {
        match self {
            Self::Github(_, Some(_)) => LOGIN,
            Self::Gitea(_) | Self::Github(..) | Self::Gitlab(_) => "bot",
        }
    }

    /// Panics if anything that was asked or answered is not as the host's maker has published, where there is such.
    pub(crate) fn is_as_described(&self) {
        match self {
            Self::Github(host, _) => host.is_as_described(),
            Self::Gitea(_) | Self::Gitlab(_) => (),
        }
    }

    /// The token of who owns the repositories.
    pub(crate) fn owner_token(&self) -> String {
        match self {
            Self::Gitea(host) => std::fs::read_to_string(host.token_file("owner")).unwrap().trim().to_owned(),
            Self::Github(..) => "ghp_owner".to_owned(),
            Self::Gitlab(_) => "glpat-owner".to_owned(),
        }
    }

    /// Makes a repository that all may write to.
    pub(crate) async fn repository(&self, name: &str) -> Hosted {
        match self {
            Self::Gitea(host) => host.repository(name).await,
            Self::Github(host, Some(app)) => host.repository_of(name, app),
            Self::Github(host, None) => host.repository(name),
            Self::Gitlab(host) => host.repository(name),
        }
    }

    /// Makes a branch of a repository to which only those may write who may decide.
    pub(crate) async fn keep(&self, name: &str, branch: &str) {
        match self {
            Self::Gitea(host) => host.keep(name, branch).await,
            Self::Github(host, _) => host.keep(name, branch),
            Self::Gitlab(host) => host.keep(name, branch),
        }
    }

    /// Makes a team `@acme/NAME` of these people, or lets them alone stay in it.
    pub(crate) async fn team(&self, name: &str, people: &[&str]) {
        match self {
            Self::Gitea(host) => host.team(name, people).await,
            Self::Github(host, _) => host.team(name, people),
            Self::Gitlab(host) => host.team(name, people),
        }
    }

    /// All pull requests of a repository, newest first.
    pub(crate) async fn pulls(&self, name: &str) -> Vec<Value> {
        match self {
            Self::Gitea(host) => host.pulls(name).await,
            Self::Github(host, _) => host.pulls(name),
            Self::Gitlab(host) => host.pulls(name),
        }
    }

    /// One of them, as it is now.
    pub(crate) async fn pull(&self, name: &str, pull: &Value) -> Value {
        self.pulls(name).await.into_iter().find(|found| found["number"] == pull["number"]).unwrap()
    }

    /// Opens one as a user, with what another one shows.
    pub(crate) async fn open(&self, user: &str, name: &str, like: &Value, base: &str) -> Value {
        let (title, body, head) = ("mine", &like["body"], &like["head"]["ref"]);
        match self {
            Self::Gitea(host) => {
                let sent = json!({"title": title, "body": body, "head": head, "base": base});
                host.want(201, user, "POST", &format!("{}/pulls", in_api(name)), Some(sent)).await
            }
            Self::Github(host, _) => {
                host.open(user, name, &json!({"title": title, "body": body, "head": head, "base": base}))
            }
            Self::Gitlab(host) => {
                let sent = json!({"title": title, "description": body, "source_branch": head, "target_branch": base});
                json!({"number": host.open(user, name, &sent)["iid"]})
            }
        }
    }

    /// Closes one unmerged as a user.
    pub(crate) async fn close(&self, user: &str, name: &str, pull: &Value) {
        match self {
            Self::Gitea(host) => host.patch(user, name, pull, json!({"state": "closed"})).await,
            Self::Github(host, _) => host.change(user, name, number(pull), &json!({"state": "closed"})),
            Self::Gitlab(host) => host.change(user, name, number(pull), &json!({"state_event": "close"})),
        }
    }

    /// Gives one another title as a user.
    pub(crate) async fn rename(&self, user: &str, name: &str, pull: &Value, title: &str) {
        let sent = json!({"title": title});
        match self {
            Self::Gitea(host) => host.patch(user, name, pull, sent).await,
            Self::Github(host, _) => host.change(user, name, number(pull), &sent),
            Self::Gitlab(host) => host.change(user, name, number(pull), &sent),
        }
    }

    /// All that was said below one, in the host's own words.
    pub(crate) async fn said(&self, name: &str, pull: &Value) -> Vec<Value> {
        match self {
            Self::Gitea(host) => {
                let path = format!("{}/issues/{}/comments", in_api(name), pull["number"]);
                host.want(200, "owner", "GET", &path, None).await.as_array().unwrap().clone()
            }
            Self::Github(host, _) => host.said(name, number(pull)),
            Self::Gitlab(host) => host.said(name, number(pull)),
        }
    }

    /// What people were told below one.
    pub(crate) async fn comments(&self, name: &str, pull: &Value) -> Vec<String> {
        let said = self.said(name, pull).await;
        said.iter().map(|said| said["body"].as_str().unwrap().to_owned()).collect()
    }

    /// All that was said of a commit, in the host's own words.
    pub(crate) async fn told(&self, name: &str, commit: &str) -> Vec<Value> {
        match self {
            Self::Gitea(host) => {
                let path = format!("{}/statuses/{commit}", in_api(name));
                host.want(200, "owner", "GET", &path, None).await.as_array().unwrap().clone()
            }
            Self::Github(host, _) => host.statuses(name, commit),
            Self::Gitlab(host) => host.statuses(name, commit),
        }
    }

    /// How a commit was said to stand, under the name of the tests' installation: in which words, in which lines.
    pub(crate) async fn statuses(&self, name: &str, commit: &str) -> Vec<(String, String)> {
        self.marks(name, commit, "tidegate/it").await
    }

    /// The same under another name. What GitLab calls `failed` is a `failure` elsewhere.
    pub(crate) async fn marks(&self, name: &str, commit: &str, under: &str) -> Vec<(String, String)> {
        let (word, title) = match self {
            Self::Gitea(_) => ("status", "context"),
            Self::Github(..) => ("state", "context"),
            Self::Gitlab(_) => ("state", "name"),
        };
        let text = |status: &Value, field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let all = self.told(name, commit).await;
        let ours = all.iter().filter(|status| status[title] == under);
        ours.map(|status| (text(status, word).replace("failed", "failure"), text(status, "description"))).collect()
    }

    /// Adds a commit to a branch as a user.
    pub(crate) fn push(&self, user: &str, name: &str, branch: &str, file: (&str, &str)) {
        match self {
            Self::Gitea(host) => host.push(user, name, branch, file),
            Self::Github(host, _) => host.push(user, name, branch, file),
            Self::Gitlab(host) => host.push(user, name, branch, file),
        }
    }

    /// Puts another commit in the place of the last one of a branch as a user.
    pub(crate) fn rewrite(&self, user: &str, name: &str, branch: &str, file: (&str, &str)) {
        match self {
            Self::Gitea(host) => host.rewrite(user, name, branch, file),
            Self::Github(host, _) => host.rewrite(user, name, branch, file),
            Self::Gitlab(host) => host.rewrite(user, name, branch, file),
        }
    }

    /// Says yes to one as a user; the number of the review.
    pub(crate) async fn approve(&self, user: &str, name: &str, pull: &Value) -> Value {
        match self {
            Self::Gitea(host) => host.approve(user, name, pull).await,
            Self::Github(host, _) => json!(host.approve(user, name, number(pull))),
            Self::Gitlab(host) => json!(host.approve(user, name, number(pull))),
        }
    }

    /// Merges one at its head as `reviewer`.
    pub(crate) async fn merge(&self, name: &str, pull: &Value) {
        match self {
            Self::Gitea(host) => host.merge(name, pull).await,
            Self::Github(host, _) => host.merge("reviewer", name, number(pull)),
            Self::Gitlab(host) => host.merge("reviewer", name, number(pull)),
        }
    }
}

fn number(pull: &Value) -> u64 {
    pull["number"].as_u64().unwrap()
}
