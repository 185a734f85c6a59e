//! What people do to pull requests beside merging and closing them.

use super::git_host::in_api;
use super::origin::Origin;
use super::site::Site;
use serde_json::{Value, json};

/// How one is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a merge commit.
    Merge,
    /// As one new commit.
    Squash,
    /// As its commits, made anew on top of the base.
    Rebase,
    /// The same, and a merge commit on top. Gitea alone has it.
    RebaseMerge,
}

/// Makes what a head changes anew on top of a branch, as a host does for whoever asks; the new commit.
pub(super) fn anew(origin: &Origin, head: &str, into: &str) -> String {
    let tip = origin.tip(into).unwrap();
    let tree = origin.git(&["merge-tree", "--write-tree", &tip, head]);
    let at = chrono::Utc::now().timestamp();
    let stream = format!(
        "commit refs/heads/{into}\nauthor bot <bot@example.test> {at} +0000\ncommitter GitHub <noreply@github.com> {at} +0000\n\
         data 4\nanew\nfrom refs/heads/{into}^0\nM 040000 {tree} \"\"\n"
    );
    origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    origin.tip(into).unwrap()
}

fn number(pull: &Value) -> u64 {
    pull["number"].as_u64().unwrap()
}

impl Site {
    /// What one is called in a comment.
    pub(crate) fn named(&self, pull: &Value) -> String {
        match self {
            Self::Gitea(_) | Self::Github(..) => format!("#{}", pull["number"]),
            Self::Gitlab(_) => format!("!{}", pull["number"]),
        }
    }

    /// Lets one lead to another branch, as a user.
    pub(crate) async fn retarget(&self, user: &str, name: &str, pull: &Value, base: &str) {
        match self {
            Self::Gitea(host) => host.patch(user, name, pull, json!({"base": base})).await,
            Self::Github(host, _) => host.change(user, name, number(pull), &json!({"base": base})),
            Self::Gitlab(host) => host.change(user, name, number(pull), &json!({"target_branch": base})),
        }
    }

    /// Marks one as unfinished, as a user; by its title, but on GitHub.
    pub(crate) async fn unfinish(&self, user: &str, name: &str, pull: &Value) {
        match self {
            Self::Github(host, _) => host.change(user, name, number(pull), &json!({"draft": true})),
            Self::Gitea(_) => self.rename(user, name, pull, &format!("WIP: {}", pull["title"])).await,
            Self::Gitlab(_) => self.rename(user, name, pull, &format!("Draft: {}", pull["title"])).await,
        }
    }

    /// Takes that back, where the title does not do it.
    pub(crate) fn finish(&self, user: &str, name: &str, pull: &Value) {
        if let Self::Github(host, _) = self {
            host.change(user, name, number(pull), &json!({"draft": false}));
        }
    }

    /// Deletes the branch of one, as a user, if that was not done already.
    pub(crate) async fn delete_branch(&self, user: &str, name: &str, origin: &Origin, pull: &Value) {
        let branch = pull["head"]["ref"].as_str().unwrap();
        match self {
            Self::Gitea(host) => {
                let path = format!("{}/branches/{}", in_api(name), branch.replace('/', "%2F"));
                let (status, said) = host.call(user, "DELETE", &path, None).await;
                assert!(matches!(status, 204 | 404), "{status} {said}");
            }
            Self::Github(..) | Self::Gitlab(_) => {
                if let Some(tip) = origin.tip(branch) {
                    origin.git(&["update-ref", "-d", &format!("refs/heads/{branch}"), &tip]);
                }
            }
        }
    }

    /// Merges one at its head as `reviewer`, that way.
    pub(crate) async fn merge_by(&self, way: Way, name: &str, pull: &Value) {
        match self {
            Self::Gitea(host) => {
                let way = match way {
                    Way::Merge => "merge",
                    Way::Squash => "squash",
                    Way::Rebase => "rebase",
                    Way::RebaseMerge => "rebase-merge",
                };
                host.merge_by(way, name, pull).await;
            }
            Self::Github(host, _) => host.merge_by(way, "reviewer", name, number(pull)),
            Self::Gitlab(host) => host.merge_by(way, "reviewer", name, number(pull)),
        }
    }
}
