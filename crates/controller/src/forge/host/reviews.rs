//! Who approved a merged pull request, who opened it and what they may do: what proofs of approvals are made from.
//!
//! Every list is read to its end, or is an error. A user is their number; who has none (a deleted account, a program of the
//! host) is nobody.

use super::wire::Id;
use super::{CallPurpose, Host, HostError, LINK, Method, PAGES};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::manifest::installation::HostKind;
use crate::people::review::{Review, Says};
use crate::people::user::{Account, Being, Permission, User};
use crate::record::state::Time;
use crate::record::text::plain;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// A merged pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Its number.
    pub number: u64,
    /// The branch that it led to.
    pub base: String,
    /// Who opened it; none if that account is gone.
    pub author: Option<User>,
    /// Who merged it, and when.
    pub by: Option<(User, Time)>,
    /// What they are, as far as the host tells.
    pub being: Being,
}

#[derive(Deserialize)]
pub(super) struct RawUser {
    /// Of an account that is gone, or is the host's own, nothing or no number that a person has.
    id: Option<i64>,
    login: Option<String>,
    /// GitLab's word for it. Gitea says both.
    username: Option<String>,
    /// GitHub alone: `User`, `Bot`, …
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RawMerged {
    pub(super) number: u64,
    pub(super) merged_at: Option<Time>,
    pub(super) merge_commit_sha: Option<CommitId>,
    pub(super) user: Option<RawUser>,
    merged_by: Option<RawUser>,
    pub(super) base: RawBase,
}

#[derive(Deserialize)]
pub(super) struct RawBase {
    #[serde(rename = "ref")]
    pub(super) name: String,
    pub(super) repo: Option<Id>,
}

#[derive(Deserialize)]
struct RawReview {
    id: u64,
    user: Option<RawUser>,
    state: String,
    commit_id: Option<String>,
    submitted_at: Option<Time>,
    /// Gitea alone.
    #[serde(default)]
    dismissed: bool,
}

#[derive(Deserialize)]
struct RawPermission {
    permission: String,
}

impl RawUser {
    pub(super) fn read(&self) -> Option<User> {
        let id = u64::try_from(self.id?).ok().filter(|id| *id > 0)?;
        Some(User { id, login: plain(self.login.as_deref().or(self.username.as_deref())?) })
    }

    fn being(&self) -> Being {
        let person = self.kind.as_deref().is_none_or(|kind| kind == "User");
        if person { Being::Person } else { Being::Machine }
    }
}

impl RawReview {
    fn says(&self) -> Says {
        match self.state.as_str() {
            _ if self.dismissed => Says::Withdrawn,
            "DISMISSED" => Says::Withdrawn,
            "APPROVED" => Says::Approved,
            "CHANGES_REQUESTED" | "REQUEST_CHANGES" => Says::ChangesRequested,
            _ => Says::Nothing,
        }
    }

    /// What it says of a commit. A yes is nothing where nobody, or no commit, can be told. A no, and what takes a yes back, is about
    /// whatever commit, and from whenever.
    ///
    /// # Errors
    /// It asks for changes, and whose it is cannot be told: they may be somebody to whom that is up.
    fn read(self) -> Result<Option<(Review, Being)>, String> {
        let (id, says) = (self.id, self.says());
        let by = self.user.as_ref().and_then(|user| Some((user.read()?, user.being())));
        let Some((by, being)) = by else {
            let why =
                format!("nobody can tell whose review {id} is, which asks for changes: have it dismissed on the host");
            return if says == Says::ChangesRequested { Err(why) } else { Ok(None) };
        };
        let commit = self.commit_id.and_then(|commit| commit.parse().ok());
        let (commit, at) = match (commit.zip(self.submitted_at), says) {
            (Some(of), _) => of,
            (None, Says::Approved | Says::Nothing) => return Ok(None),
            (None, Says::ChangesRequested | Says::Withdrawn) => (CommitId::none(), Time::MIN),
        };
        Ok(Some((Review { id, by, says, commit, at }, being)))
    }
}

impl Host {
    /// The merged pull request that became this commit of its base, if there is one: of several, one to the branch that is asked about.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn merged_as(&mut self, commit: &CommitId, base: &str) -> Result<Option<Pulled>, HostError> {
        if self.site.kind == HostKind::Gitlab {
            return self.request_merged_as(commit, base).await;
        }
        let found = self.pulls_of(commit).await?;
        let is_it = |pull: &RawMerged| pull.merged_at.is_some() && pull.merge_commit_sha.as_ref() == Some(commit);
        let found = found.into_iter().filter(is_it).min_by_key(|pull| pull.base.name != base);
        let Some(pull) = found else { return Ok(None) };
        // GitHub's lists do not tell who merged.
        let pull = match (&pull.merged_by, self.site.kind) {
            (None, HostKind::Github) => {
                let path = self.in_repository(&format!("pulls/{}", pull.number));
                self.get::<RawMerged>(CallPurpose::Review, path).await?
            }
            _ => pull,
        };
        if !is_it(&pull) {
            return Ok(None);
        }
        let by = pull.merged_by.as_ref().and_then(RawUser::read).zip(pull.merged_at);
        let being = pull.merged_by.as_ref().map_or(Being::Person, RawUser::being);
        let author = pull.user.as_ref().and_then(RawUser::read);
        Ok(Some(Pulled { number: pull.number, base: pull.base.name, author, by, being }))
    }

    /// The pull requests that Gitea and GitHub tell of to a commit: Gitea of the one that became it, GitHub of all that had it.
    pub(super) async fn pulls_of(&mut self, commit: &CommitId) -> Result<Vec<RawMerged>, HostError> {
        if self.site.kind == HostKind::Github {
            return self.all(&format!("commits/{commit}/pulls")).await;
        }
        let path = self.in_repository(&format!("commits/{commit}/pull"));
        let found = self.get(CallPurpose::Review, path).await;
        Ok(self.there(found).await?.into_iter().collect())
    }

    /// What a file is in a commit; none if it is not there.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn blob(&mut self, commit: &CommitId, path: &RepoPath) -> Result<Option<BlobId>, HostError> {
        #[derive(Deserialize)]
        struct RawFile {
            #[serde(alias = "blob_id")]
            sha: BlobId,
        }
        let path = match self.site.kind {
            HostKind::Gitea | HostKind::Github => format!("contents/{path}?ref={commit}"),
            HostKind::Gitlab => format!("repository/files/{}?ref={commit}", path.as_str().replace('/', "%2F")),
        };
        let path = self.in_repository(&path);
        let found = self.get::<RawFile>(CallPurpose::Review, path).await;
        self.there(found).await.map(|file| file.map(|file| file.sha))
    }

    /// What was found; none only if the repository itself can be seen still: a host that has gone astray, or that does not let us in any
    /// more, says 404 as well.
    pub(super) async fn there<T>(&mut self, found: Result<T, HostError>) -> Result<Option<T>, HostError> {
        match found {
            Err(HostError::Refused { status: 404, .. }) => {
                let repository = self.in_repository("");
                self.get::<Id>(CallPurpose::Review, repository).await.map(|_| None)
            }
            found => found.map(Some),
        }
    }

    /// All reviews of a pull request, and which of their authors are no persons.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn reviews(&mut self, number: u64) -> Result<(Vec<Review>, BTreeSet<User>), HostError> {
        if self.site.kind == HostKind::Gitlab {
            // There the account itself tells.
            return Ok((self.approvals(number).await?, BTreeSet::new()));
        }
        let raw: Vec<RawReview> = self.all(&format!("pulls/{number}/reviews")).await?;
        let (mut reviews, mut machines) = (Vec::new(), BTreeSet::new());
        for review in raw.into_iter().filter_map(|review| review.read().transpose()) {
            let doing = || format!("read the reviews of pull request {number}");
            let (review, being) = review.map_err(|why| HostError::Unusable { doing: doing(), why })?;
            if being == Being::Machine {
                machines.insert(review.by.clone());
            }
            reviews.push(review);
        }
        Ok((reviews, machines))
    }

    /// What users may do now.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn accounts(
        &mut self,
        users: &BTreeSet<User>,
        machines: &BTreeSet<User>,
    ) -> Result<BTreeMap<User, Account>, HostError> {
        let mut accounts = BTreeMap::new();
        for user in users {
            let known = if machines.contains(user) { Being::Machine } else { Being::Person };
            accounts.insert(user.clone(), self.account(user, known).await?);
        }
        Ok(accounts)
    }

    /// What a user may do now, and what they are, where the host tells it; else they are what is `known`.
    async fn account(&mut self, user: &User, known: Being) -> Result<Account, HostError> {
        match self.site.kind {
            HostKind::Gitea | HostKind::Github => {
                self.permission(user).await.map(|permission| Account { being: known, permission })
            }
            HostKind::Gitlab => self.member(user).await,
        }
    }

    async fn permission(&mut self, user: &User) -> Result<Permission, HostError> {
        let path = self.in_repository(&format!("collaborators/{}/permission", user.login));
        match (self.get::<RawPermission>(CallPurpose::Review, path).await, self.site.kind) {
            (Ok(RawPermission { permission }), _) => Ok(match permission.as_str() {
                "owner" | "admin" => Permission::Admin,
                "write" => Permission::Write,
                "read" => Permission::Read,
                _ => Permission::None,
            }),
            // There is no such user any more.
            (Err(error @ HostError::Refused { status: 404, .. }), _) => {
                self.there::<RawPermission>(Err(error)).await.map(|_| Permission::None)
            }
            // Gitea tells it to administrators of the repository alone; who can be assigned may write.
            (Err(HostError::Refused { status: 403, .. }), HostKind::Gitea) => {
                let path = self.in_repository("assignees");
                let all: Vec<RawUser> = self.get(CallPurpose::Review, path).await?;
                let may_write = all.iter().filter_map(RawUser::read).any(|other| other == *user);
                Ok(if may_write { Permission::Write } else { Permission::None })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Who closed a pull request last; none if nobody can be told.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn closer(&mut self, number: u64) -> Result<Option<User>, HostError> {
        #[derive(Deserialize)]
        struct Issue {
            closed_by: Option<RawUser>,
        }
        #[derive(Deserialize)]
        struct Event {
            #[serde(rename = "type")]
            kind: String,
            user: Option<RawUser>,
        }
        let closer = match self.site.kind {
            HostKind::Github => {
                let path = self.in_repository(&format!("issues/{number}"));
                self.get::<Issue>(CallPurpose::Review, path).await?.closed_by
            }
            HostKind::Gitea => {
                let all: Vec<Event> = self.all(&format!("issues/{number}/timeline")).await?;
                all.into_iter().rfind(|event| event.kind == "close").and_then(|event| event.user)
            }
            HostKind::Gitlab => return self.request_closer(number).await,
        };
        Ok(closer.as_ref().and_then(RawUser::read))
    }

    /// Whether the host itself may have closed a pull request, since a branch of that name was deleted before it was opened: Gitea and
    /// Forgejo do in a queue what follows from a push, and name who pushed, which is us.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn closes_late(&mut self, number: u64, own: u64) -> Result<bool, HostError> {
        Ok(self.site.kind == HostKind::Gitea && self.closer(number).await?.is_some_and(|user| user.id == own))
    }

    /// What one user may do now.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn may_write(&mut self, user: &User) -> Result<bool, HostError> {
        Ok(self.account(user, Being::Person).await?.permission >= Permission::Write)
    }

    /// A list, to its end.
    pub(super) async fn all<T: DeserializeOwned>(&mut self, what: &str) -> Result<Vec<T>, HostError> {
        let mut all = Vec::new();
        for page in 1..=PAGES {
            let joint = if what.contains('?') { '&' } else { '?' };
            let path = self.in_repository(&format!("{what}{joint}{}", self.site.kind.page(page)));
            let answer = self.ask(CallPurpose::Review, Method::GET, &path, None, None).await?;
            let some: Vec<T> = answer.read::<Option<Vec<T>>>()?.unwrap_or_default();
            let link = answer.headers.get(LINK).and_then(|value| value.to_str().ok());
            let is_last = match self.site.kind {
                // Not all of its lists tell whether there is more.
                HostKind::Gitea => some.is_empty(),
                HostKind::Github | HostKind::Gitlab => !link.is_some_and(|link| link.contains("rel=\"next\"")),
            };
            all.extend(some);
            if is_last {
                return Ok(all);
            }
        }
        Err(HostError::Unusable { doing: format!("list {what}"), why: format!("more than {PAGES} pages") })
    }
}
