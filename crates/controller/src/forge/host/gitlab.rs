//! What GitLab alone needs: merge requests in its words, and who approved one, which its API does not tell by commit.
//!
//! An approval of GitLab is of a merge request, not of a commit. Which commit that was follows from times: a merge request has
//! a version for each head that it had, made a little after the push, and an approval is of the version that was there
//! *before* it. So whoever approves while a push is on its way has approved what was there before the push. Older GitLab (before
//! about 18.5) does not tell when somebody approved, and the note that it writes comes later than the approval: there an approval is of
//! the first version.

use super::commits::{Opened, Shown, few};
use super::reviews::RawUser;
use super::wire::Id;
use super::{CallPurpose, Host, HostError, Method, Pulled};
use crate::forge::pull::{PullRequest, PullState, Text};
use crate::manifest::ids::CommitId;
use crate::people::review::{Review, Says};
use crate::people::user::{Account, Being, Permission, User};
use crate::record::state::Time;
use crate::record::text::{coauthors, plain};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use url::Url;
use url::form_urlencoded::byte_serialize;

mod offers;
mod rules;

pub(super) use offers::RawOffer;
pub(super) use rules::{RawHook, RawProject};

/// What GitLab notes under a merge request when somebody approves it.
pub(super) const APPROVED: &str = "approved this merge request";
/// Where GraphQL is, seen from the API of version 4.
const GRAPHQL: &str = "../graphql";
/// Asks whose address a commit's author has: only here GitLab tells it to others than administrators.
const AUTHOR: &str = "query($path: ID!, $sha: String!) \
    { project(fullPath: $path) { repository { commit(ref: $sha) { author { id username } } } } }";
/// From this level on a member may write.
const DEVELOPER: i64 = 30;
/// From this level on a member may do everything.
const MAINTAINER: i64 = 40;

/// A merge request.
#[derive(Deserialize)]
pub(super) struct RawRequest {
    iid: u64,
    state: State,
    title: String,
    description: Option<String>,
    author: Option<Id>,
    source_project_id: Option<u64>,
    source_branch: String,
    target_branch: String,
    draft: Option<bool>,
    /// When anything of it was changed.
    pub(super) updated_at: Option<Time>,
}

/// A word that is none of these is no answer: it must not be taken for a no.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Opened,
    /// Being merged.
    Locked,
    Merged,
    Closed,
}

impl RawRequest {
    pub(super) fn read(self) -> PullRequest {
        PullRequest {
            number: self.iid,
            state: match self.state {
                State::Opened | State::Locked => PullState::Open,
                State::Merged => PullState::Merged,
                State::Closed => PullState::Closed,
            },
            branch: self.source_branch,
            base: self.target_branch,
            draft: self.draft == Some(true),
            repository: self.source_project_id,
            author: self.author.map(|user| user.id),
            text: Text { title: self.title, body: self.description.unwrap_or_default() },
        }
    }
}

/// A merge request, as far as its end goes.
#[derive(Deserialize)]
struct RawEnd {
    iid: u64,
    state: State,
    target_branch: String,
    author: Option<RawUser>,
    merge_user: Option<RawUser>,
    /// The same before GitLab 14.7.
    merged_by: Option<RawUser>,
    merged_at: Option<Time>,
    sha: Option<CommitId>,
    merge_commit_sha: Option<CommitId>,
    squash_commit_sha: Option<CommitId>,
}

impl RawEnd {
    /// The commit of its base that it became: its merge's, its only one, or where the base was moved on to, its head.
    fn became(&self) -> Option<&CommitId> {
        let became = self.merge_commit_sha.as_ref().or(self.squash_commit_sha.as_ref()).or(self.sha.as_ref());
        became.filter(|_| self.state == State::Merged)
    }
}

#[derive(Deserialize)]
struct RawApprovals {
    approved_by: Vec<RawApproval>,
}

#[derive(Deserialize)]
struct RawApproval {
    user: RawUser,
    approved_at: Option<Time>,
}

#[derive(Deserialize)]
struct RawNote {
    id: u64,
    system: bool,
    body: String,
    author: Option<RawUser>,
    created_at: Time,
}

#[derive(Deserialize)]
struct RawReviewer {
    user: RawUser,
    state: String,
    created_at: Time,
}

/// What a merge request showed from some time on.
#[derive(Deserialize)]
struct RawVersion {
    id: u64,
    head_commit_sha: Option<CommitId>,
    created_at: Time,
}

#[derive(Deserialize)]
struct RawCommit {
    id: CommitId,
    parent_ids: BTreeSet<CommitId>,
    author_email: Option<String>,
    committer_email: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct RawEvent {
    state: String,
    user: Option<RawUser>,
}

/// Of a project, or of a group.
#[derive(Deserialize)]
pub(super) struct RawMember {
    access_level: i64,
    /// Of the account: `active`, `blocked`, …
    state: String,
    /// Of the membership, where it can wait for a seat.
    membership_state: Option<String>,
    /// The day on which it ends.
    expires_at: Option<String>,
}

impl RawMember {
    pub(super) fn permission(&self, now: Time) -> Permission {
        let awaited = self.membership_state.as_deref().is_some_and(|state| state != "active");
        let today = now.format("%Y-%m-%d").to_string();
        // GitLab takes memberships away some hours after they have ended.
        let over = self.expires_at.as_deref().is_some_and(|day| day.get(..10).unwrap_or(day) <= today.as_str());
        match self.access_level {
            _ if self.state != "active" || awaited || over => Permission::None,
            MAINTAINER.. => Permission::Admin,
            DEVELOPER.. => Permission::Write,
            1.. => Permission::Read,
            _ => Permission::None,
        }
    }
}

#[derive(Deserialize)]
struct RawProfile {
    username: String,
    #[serde(default)]
    bot: bool,
}

impl RawProfile {
    /// Tokens of projects and groups have users of their own, which old GitLabs do not mark.
    fn being(&self) -> Being {
        let of_token = |kind: &str| {
            let rest = self.username.strip_prefix(kind)?;
            rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("_bot").then_some(())
        };
        let bot = self.bot || of_token("project_").or_else(|| of_token("group_")).is_some();
        if bot { Being::Machine } else { Being::Person }
    }
}

/// Which commit something was said of: the head of the last version before it; if nobody knows when, of the first one.
fn seen(versions: &[RawVersion], at: Option<Time>) -> Option<&CommitId> {
    let version = match at {
        Some(at) => versions.iter().filter(|version| version.created_at < at).max_by_key(|version| version.id),
        None => versions.iter().min_by_key(|version| version.id),
    };
    version?.head_commit_sha.as_ref()
}

/// What people said of a merge request. Whoever asks for changes takes it back by approving.
fn said(
    approvals: &[RawApproval],
    reviewers: &[RawReviewer],
    notes: &[RawNote],
    versions: &[RawVersion],
) -> Result<Vec<Review>, String> {
    let mut said = BTreeMap::new();
    for RawApproval { user, approved_at } in approvals {
        let Some(by) = user.read() else { continue };
        let is_it = |note: &&RawNote| {
            note.system && note.body == APPROVED && note.author.as_ref().and_then(RawUser::read).as_ref() == Some(&by)
        };
        let note = notes.iter().filter(is_it).max_by_key(|note| note.id);
        let note = note.ok_or_else(|| format!("no note says yet that {by} approved"))?;
        let Some(commit) = seen(versions, *approved_at).cloned() else { continue };
        let at = approved_at.unwrap_or(note.created_at);
        said.insert(by.clone(), Review { id: note.id, by, says: Says::Approved, commit, at });
    }
    for RawReviewer { user, created_at, .. } in reviewers.iter().filter(|one| one.state == "requested_changes") {
        let by = user.read().ok_or("nobody can tell who asks for changes: have it taken back on the host")?;
        // Of which commit does not matter for a no, and when is not told.
        let commit = seen(versions, None).cloned().unwrap_or_else(CommitId::none);
        said.insert(by.clone(), Review { id: 0, by, says: Says::ChangesRequested, commit, at: *created_at });
    }
    Ok(said.into_values().collect())
}

impl Host {
    /// Says *pending* once more: older GitLab takes no second one under a name before the first is over.
    pub(super) async fn pend_anew(&mut self, path: &str, name: &str, body: &Value) -> Result<(), HostError> {
        let over = json!({"state": "canceled", "name": name});
        for body in [&over, body] {
            self.ask(CallPurpose::Status, Method::POST, path, Some(body), None).await?;
        }
        Ok(())
    }

    /// See [`Self::merged_as`].
    pub(super) async fn request_merged_as(
        &mut self,
        commit: &CommitId,
        base: &str,
    ) -> Result<Option<Pulled>, HostError> {
        let found: Vec<RawEnd> = self.all(&format!("repository/commits/{commit}/merge_requests")).await?;
        let found = found.into_iter().filter(|end| end.became() == Some(commit));
        let Some(end) = found.min_by_key(|end| end.target_branch != base) else { return Ok(None) };
        let by = end.merge_user.or(end.merged_by).and_then(|user| user.read()).zip(end.merged_at);
        let author = end.author.as_ref().and_then(RawUser::read);
        let being = match &by {
            Some((user, _)) => self.profile(user).await?.being(),
            None => Being::Person,
        };
        Ok(Some(Pulled { number: end.iid, base: end.target_branch, author, by, being }))
    }

    /// The merged requests whose commits were squashed to this one; none if there is no merged one at all that has it.
    pub(super) async fn requests_squashed(&mut self, commit: &CommitId) -> Result<Option<Vec<Opened>>, HostError> {
        let mut merged: Vec<RawEnd> = self.all(&format!("repository/commits/{commit}/merge_requests")).await?;
        merged.retain(|end| end.state == State::Merged);
        // With a merge commit on top, that one is what the request became.
        let is_it = |end: &&RawEnd| {
            let made = [&end.squash_commit_sha, &end.merge_commit_sha];
            made.into_iter().flatten().any(|made| made == commit)
        };
        let opened = |end: &RawEnd| Opened { number: end.iid, author: end.author.as_ref().and_then(RawUser::read) };
        Ok((!merged.is_empty()).then(|| merged.iter().filter(is_it).map(opened).collect()))
    }

    /// What people said of a merge request.
    pub(super) async fn approvals(&mut self, number: u64) -> Result<Vec<Review>, HostError> {
        let request = format!("merge_requests/{number}");
        let path = self.in_repository(&format!("{request}/approvals"));
        let RawApprovals { approved_by } = self.get(CallPurpose::Review, path).await?;
        let reviewers: Vec<RawReviewer> = self.all(&format!("{request}/reviewers")).await?;
        let notes: Vec<RawNote> = self.all(&format!("{request}/notes?activity_filter=only_activity")).await?;
        let versions: Vec<RawVersion> = self.all(&format!("{request}/versions")).await?;
        said(&approved_by, &reviewers, &notes, &versions)
            .map_err(|why| HostError::Unusable { doing: format!("list the approvals of merge request {number}"), why })
    }

    /// All commits of a merge request.
    pub(super) async fn shown(&mut self, number: u64) -> Result<Vec<Shown>, HostError> {
        let raw: Vec<RawCommit> = self.all(&format!("merge_requests/{number}/commits")).await?;
        few(raw.len(), number)?;
        let mut all = Vec::new();
        for commit in raw {
            all.push(self.made(commit).await?);
        }
        Ok(all)
    }

    /// One commit.
    pub(super) async fn showing(&mut self, commit: &CommitId) -> Result<Shown, HostError> {
        let path = self.in_repository(&format!("repository/commits/{commit}?stats=false"));
        let commit = self.get(CallPurpose::Review, path).await?;
        self.made(commit).await
    }

    /// Who made a commit. As whose committer GitLab itself stands, has none but its author.
    async fn made(&mut self, commit: RawCommit) -> Result<Shown, HostError> {
        let RawCommit { id, parent_ids, author_email, committer_email, message } = commit;
        let address = |email: Option<String>| email.unwrap_or_else(|| "nobody".to_owned());
        let (author, committer) = (address(author_email), address(committer_email));
        let owner = self.author(&id).await?;
        let mut by = BTreeSet::from([owner.ok_or_else(|| plain(&author))]);
        if committer != author && committer != self.own_address() {
            let owner = self.owner(&committer).await?;
            by.insert(owner.ok_or_else(|| plain(&committer)));
        }
        for (_, address) in coauthors(&message.unwrap_or_default()) {
            let owner = match self.site.owner_of(&address) {
                None => self.owner(&address).await?,
                owner => owner,
            };
            by.extend(owner.map(Ok));
        }
        Ok(Shown { commit: id, parents: parent_ids, by })
    }

    /// Under which address GitLab makes commits that people make on its pages.
    fn own_address(&self) -> String {
        let host = Url::parse(&self.site.api).ok().and_then(|api| api.host_str().map(str::to_owned));
        format!("noreply@{}", host.unwrap_or_default())
    }

    /// Whose address the author of a commit has.
    async fn author(&mut self, commit: &CommitId) -> Result<Option<User>, HostError> {
        #[derive(Deserialize)]
        struct RawAuthor {
            id: String,
            username: String,
        }
        let path = format!("{}/{}", self.site.owner, self.site.name);
        let query = json!({"query": AUTHOR, "variables": {"path": path, "sha": commit}});
        let answer = self.ask(CallPurpose::Review, Method::POST, GRAPHQL, Some(&query), None).await?;
        let told: Value = answer.read()?;
        // Without the right to see the commit, or with a mistake in the query, there is no such field.
        let author = told.pointer("/data/project/repository/commit").and_then(|commit| commit.get("author"));
        let author = author.ok_or_else(|| answer.unusable(&format!("no commit {commit}: {}", answer.message())))?;
        let author: Option<RawAuthor> =
            serde_json::from_value(author.clone()).map_err(|error| answer.unusable(&error.to_string()))?;
        let user = |RawAuthor { id, username }: RawAuthor| {
            let id = id.strip_prefix("gid://gitlab/User/").and_then(|id| id.parse().ok());
            let id = id.ok_or_else(|| answer.unusable(&format!("{id:?} of {username}")))?;
            Ok(User { id, login: plain(&username) })
        };
        author.map(user).transpose()
    }

    /// Whose address that is, if it can be seen in a profile.
    async fn owner(&mut self, address: &str) -> Result<Option<User>, HostError> {
        #[derive(Deserialize)]
        struct RawOwner {
            #[serde(flatten)]
            user: RawUser,
            email: Option<String>,
            public_email: Option<String>,
        }
        // Whoever shows no address has an empty one.
        if address.is_empty() {
            return Ok(None);
        }
        let query: String = byte_serialize(address.as_bytes()).collect();
        let found: Vec<RawOwner> = self.get(CallPurpose::Review, format!("users?search={query}&per_page=100")).await?;
        // Names are searched through as well.
        let has_it = |owner: &&RawOwner| {
            [&owner.email, &owner.public_email].into_iter().flatten().any(|known| known.eq_ignore_ascii_case(address))
        };
        Ok(found.iter().find(has_it).and_then(|owner| owner.user.read()))
    }

    /// What a user is, and may do now.
    pub(super) async fn member(&mut self, user: &User) -> Result<Account, HostError> {
        let path = self.in_repository(&format!("members/all/{}", user.id));
        let found = self.get::<RawMember>(CallPurpose::Review, path).await;
        let member = self.there(found).await?;
        let permission = member.map_or(Permission::None, |member| member.permission((self.now)()));
        Ok(Account { being: self.profile(user).await?.being(), permission })
    }

    async fn profile(&mut self, user: &User) -> Result<RawProfile, HostError> {
        self.get(CallPurpose::Review, format!("users/{}", user.id)).await
    }

    /// Who closed a merge request last.
    pub(super) async fn request_closer(&mut self, number: u64) -> Result<Option<User>, HostError> {
        let all: Vec<RawEvent> = self.all(&format!("merge_requests/{number}/resource_state_events")).await?;
        Ok(all.into_iter().rfind(|event| event.state == "closed").and_then(|event| event.user?.read()))
    }
}

#[cfg(test)]
mod tests;
