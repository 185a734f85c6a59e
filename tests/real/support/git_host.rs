//! A real Git host, Gitea, with the users `owner`, `reviewer`, `bot` and `stranger`: one for all tests of the process.

use super::cluster::{Bed, eventually, git_host};
use super::origin::Origin;
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::sync::OnceCell;

/// A Gitea; it ends with the bed that it stands beside.
pub(crate) struct GitHost {
    folder: PathBuf,
    url: String,
}

/// A repository on it.
pub(crate) struct Hosted {
    /// As it lies on the host's disk.
    pub(crate) origin: Origin,
    /// Where it is served.
    pub(crate) url: String,
}

static SHARED: OnceCell<GitHost> = OnceCell::const_new();

/// An organisation of `owner`.
const ORGANISATION: &str = "acme";

/// Who a repository belongs to: those of stories about teams are an organisation's.
fn owner_of(name: &str) -> &'static str {
    if name.starts_with("team") { ORGANISATION } else { "owner" }
}

/// Where its API has a repository.
pub(crate) fn in_api(name: &str) -> String {
    format!("repos/{}/{name}", owner_of(name))
}

impl GitHost {
    /// The one beside the shared bed.
    pub(crate) async fn shared() -> &'static Self {
        SHARED.get_or_init(async || Self::beside(Bed::shared().await, "level").await).await
    }

    /// One beside that bed, with queues of that type: `level`, Gitea's default, or `channel`.
    pub(crate) async fn beside(bed: &Bed, queues: &str) -> Self {
        let (folder, url) = git_host(bed, queues).await;
        Self { folder, url }
    }

    /// The file with a user's token.
    pub(crate) fn token_file(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.token"))
    }

    /// Makes a repository that all may write to: of `owner`, or of an organisation of theirs.
    pub(crate) async fn repository(&self, name: &str) -> Hosted {
        let wanted = json!({"name": name, "auto_init": true, "default_branch": "main", "private": true});
        let to = if owner_of(name) == ORGANISATION {
            // The first one makes it.
            self.call("owner", "POST", "orgs", Some(json!({"username": ORGANISATION}))).await;
            format!("orgs/{ORGANISATION}/repos")
        } else {
            "user/repos".to_owned()
        };
        self.want(201, "owner", "POST", &to, Some(wanted)).await;
        for user in ["reviewer", "bot", "stranger"] {
            let path = format!("{}/collaborators/{user}", in_api(name));
            // While much else is made, Gitea may say that it has let somebody in and not have done so.
            eventually("a repository that all may write to", async || {
                self.want(204, "owner", "PUT", &path, Some(json!({"permission": "write"}))).await;
                let is_in = self.call(user, "GET", &in_api(name), None).await.0 == 200;
                if !is_in {
                    // It does nothing for one that it takes for let in.
                    self.call("owner", "DELETE", &path, None).await;
                }
                is_in.then_some(())
            })
            .await;
        }
        let disk = self.folder.join(format!("data/gitea-repositories/{}/{name}.git", owner_of(name)));
        Hosted { origin: Origin::at(&disk).stamped(), url: self.url_of(name) }
    }

    /// Makes a branch of a repository to which `reviewer` and `owner` alone may write.
    pub(crate) async fn keep(&self, name: &str, branch: &str) {
        let made = json!({"new_branch_name": branch, "old_branch_name": "main"});
        self.want(201, "owner", "POST", &format!("{}/branches", in_api(name)), Some(made)).await;
        let may = ["reviewer", "owner"];
        let rule = json!({
            "rule_name": branch, "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": may,
            "enable_merge_whitelist": true, "merge_whitelist_usernames": may,
        });
        self.want(201, "owner", "POST", &format!("{}/branch_protections", in_api(name)), Some(rule)).await;
    }

    /// Makes a team of the organisation for the repository of its name, of these people and of `bot`, who may not look into it else; or
    /// lets them alone stay in it.
    pub(crate) async fn team(&self, name: &str, people: &[&str]) {
        let wanted = json!({"name": name, "permission": "read", "units_map": {"repo.code": "read"}});
        let (status, made) = self.call("owner", "POST", &format!("orgs/{ORGANISATION}/teams"), Some(wanted)).await;
        let id = if status == 201 {
            let path = format!("teams/{}/repos/{ORGANISATION}/{name}", made["id"]);
            self.want(204, "owner", "PUT", &path, None).await;
            made["id"].clone()
        } else {
            let found = self.want(200, "owner", "GET", &format!("orgs/{ORGANISATION}/teams?limit=50"), None).await;
            found.as_array().unwrap().iter().find(|team| team["name"] == name).unwrap()["id"].clone()
        };
        for user in ["owner", "reviewer", "bot", "stranger"] {
            let is_in = user == "bot" || people.contains(&user);
            let path = format!("teams/{id}/members/{user}");
            self.want(204, "owner", if is_in { "PUT" } else { "DELETE" }, &path, None).await;
        }
    }

    /// Where a repository is served.
    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}/{}/{name}.git", self.url, owner_of(name))
    }

    /// One call to its API as a user: the status, and the answer if it is JSON.
    pub(crate) async fn call(&self, user: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let token = std::fs::read_to_string(self.token_file(user)).unwrap();
        let url = format!("{}/api/v1/{path}", self.url);
        let request = reqwest::Client::new().request(method.parse().unwrap(), url).bearer_auth(token.trim());
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default())
    }

    /// The same, which has to come to that.
    pub(crate) async fn want(&self, status: u16, user: &str, method: &str, path: &str, body: Option<Value>) -> Value {
        let (found, answer) = self.call(user, method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        answer
    }

    /// Changes a pull request as a user.
    pub(crate) async fn patch(&self, user: &str, name: &str, pull: &Value, fields: Value) {
        let path = format!("{}/pulls/{}", in_api(name), pull["number"]);
        self.want(201, user, "PATCH", &path, Some(fields)).await;
    }

    /// All pull requests of a repository, newest first.
    pub(crate) async fn pulls(&self, name: &str) -> Vec<Value> {
        let path = format!("{}/pulls?state=all&limit=50", in_api(name));
        self.want(200, "owner", "GET", &path, None).await.as_array().unwrap().clone()
    }

    /// Adds a commit to a branch, by a push of that user.
    pub(crate) fn push(&self, user: &str, name: &str, branch: &str, file: (&str, &str)) {
        self.push_after(user, name, branch, file, |_| (), "");
    }

    /// Puts another commit in the place of the last one of a branch, by a push of that user with force.
    pub(crate) fn rewrite(&self, user: &str, name: &str, branch: &str, file: (&str, &str)) {
        self.push_after(user, name, branch, file, |clone| clone.undo(branch), "+");
    }

    fn push_after(
        &self,
        user: &str,
        name: &str,
        branch: &str,
        file: (&str, &str),
        prepare: impl FnOnce(&Origin),
        force: &str,
    ) {
        let token = std::fs::read_to_string(self.token_file(user)).unwrap();
        let url = self.url.replace("://", &format!("://{user}:{}@", token.trim()));
        let (url, dir) = (format!("{url}/{}/{name}.git", owner_of(name)), tempfile::tempdir().unwrap());
        let clone = Origin::at(dir.path());
        let reference = format!("refs/heads/{branch}:refs/heads/{branch}");
        clone.git(&["init", "--quiet", "--bare"]);
        clone.git(&["fetch", "--quiet", &url, &reference]);
        prepare(&clone);
        let person = format!("{user} <{user}@example.test>");
        clone.commit_as(&person, branch, &[(file.0, Some(file.1.as_bytes()))], "more");
        clone.git(&["push", "--quiet", &url, &format!("{force}{reference}")]);
    }

    /// Says yes to a pull request; the number of the review.
    pub(crate) async fn approve(&self, user: &str, name: &str, pull: &Value) -> Value {
        let path = format!("{}/pulls/{}/reviews", in_api(name), pull["number"]);
        let review = json!({"event": "APPROVED", "body": "fine", "commit_id": pull["head"]["sha"]});
        self.want(200, user, "POST", &path, Some(review)).await["id"].clone()
    }

    /// Merges a pull request at its head as `reviewer`. Gitea asks to try again until it knows whether it can be merged.
    pub(crate) async fn merge(&self, name: &str, pull: &Value) {
        self.merge_by("merge", name, pull).await;
    }

    /// The same in another way than by a merge commit, in Gitea's words.
    pub(crate) async fn merge_by(&self, way: &str, name: &str, pull: &Value) {
        let path = format!("{}/pulls/{}/merge", in_api(name), pull["number"]);
        let body = json!({"Do": way, "head_commit_id": pull["head"]["sha"]});
        eventually(&format!("a merge of {}", pull["title"]), async || {
            let (status, answer) = self.call("reviewer", "POST", &path, Some(body.clone())).await;
            // 404: it is closed for a moment, where Gitea is late to see that the branch of the one before was deleted.
            assert!(matches!(status, 200 | 404 | 405), "{status} {answer}");
            (status == 200).then_some(())
        })
        .await;
    }
}
