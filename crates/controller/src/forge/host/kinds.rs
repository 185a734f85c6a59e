//! Where the hosts differ in words: paths, queries and fields.

use super::{Host, HostMark, Me, Method, Status};
use crate::forge::pull::Text;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::CommitId;
use crate::manifest::installation::{HostKind, PullHost};
use crate::people::user::User;
use crate::record::text::plain;
use serde_json::{Map, Value, json};
use url::Url;

/// Where a pull request is brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Closed unmerged.
    Close,
    /// Open again.
    Reopen,
}

/// What becomes of a pull request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    /// What it says.
    pub(super) text: Option<&'a Text>,
    /// Where it leads.
    pub(super) base: Option<&'a str>,
    /// Where it is brought to.
    pub(super) turn: Option<Turn>,
}

impl HostKind {
    /// The query for a page of a list: how long pages may be differs, and what that is called.
    pub(super) fn page(self, page: usize) -> String {
        match self {
            Self::Gitea => format!("limit=50&page={page}"),
            Self::Github | Self::Gitlab => format!("per_page=50&page={page}"),
        }
    }

    /// The query for the pull requests that are to be decided, on Gitea and GitLab those of a user alone.
    pub(super) fn open(self, me: &Me) -> String {
        match self {
            Self::Gitea => format!("state=open&poster={}", me.login),
            Self::Github => "state=open".to_owned(),
            Self::Gitlab => format!("state=opened&author_id={}", me.ids.user),
        }
    }

    /// The query for pull requests however they stand, those that changed last first, on Gitea and GitLab those of a user alone.
    pub(super) fn changes(self, me: &Me) -> String {
        match self {
            Self::Gitea => format!("state=all&sort=recentupdate&poster={}", me.login),
            Self::Github => "state=all&sort=updated&direction=desc".to_owned(),
            Self::Gitlab => format!("state=all&order_by=updated_at&sort=desc&author_id={}", me.ids.user),
        }
    }

    /// The query for closed pull requests, among them those of a branch, the latest first. Gitea can look for a branch
    /// too, but then gives any one of several. On GitLab one that is being merged is neither open nor closed, so all are asked for.
    pub(super) fn closed(self, owner: &str, me: &Me, branch: &str) -> String {
        match self {
            Self::Gitea => format!("state=closed&sort=recentupdate&poster={}", me.login),
            Self::Github => format!("state=closed&sort=created&direction=desc&head={owner}:{branch}"),
            Self::Gitlab => {
                format!("state=all&order_by=created_at&sort=desc&author_id={}&source_branch={branch}", me.ids.user)
            }
        }
    }

    /// The query for open pull requests of whomever, among them those of a branch.
    pub(super) fn anybodys(self, owner: &str, branch: &str) -> String {
        match self {
            Self::Gitea => "state=open".to_owned(),
            Self::Github => format!("state=open&head={owner}:{branch}"),
            Self::Gitlab => format!("state=opened&source_branch={branch}"),
        }
    }

    /// The path of a repository below the API. GitLab wants its groups and its name as one part.
    #[must_use]
    pub fn repository(self, owner: &str, name: &str) -> String {
        match self {
            Self::Gitea | Self::Github => format!("repos/{owner}/{name}"),
            Self::Gitlab => format!("projects/{}%2F{name}", owner.replace('/', "%2F")),
        }
    }

    /// Where the pull requests of a repository are.
    pub(super) fn pulls(self) -> &'static str {
        match self {
            Self::Gitea | Self::Github => "pulls",
            Self::Gitlab => "merge_requests",
        }
    }

    /// Where the comments of one are.
    pub(super) fn comments(self, number: u64) -> String {
        match self {
            Self::Gitea | Self::Github => format!("issues/{number}/comments"),
            Self::Gitlab => format!("merge_requests/{number}/notes"),
        }
    }

    /// Where a comment of one is.
    pub(super) fn comment(self, number: u64, comment: u64) -> String {
        match self {
            Self::Gitea | Self::Github => format!("issues/comments/{comment}"),
            Self::Gitlab => format!("merge_requests/{number}/notes/{comment}"),
        }
    }

    /// How one is changed, and a comment.
    pub(super) fn changing(self) -> Method {
        match self {
            Self::Gitea | Self::Github => Method::PATCH,
            Self::Gitlab => Method::PUT,
        }
    }

    /// A new one.
    pub(super) fn draft(self, Text { title, body }: &Text, branch: &str, base: &str) -> Value {
        match self {
            Self::Gitea | Self::Github => json!({"title": title, "body": body, "head": branch, "base": base}),
            Self::Gitlab => {
                json!({"title": title, "description": body, "source_branch": branch, "target_branch": base})
            }
        }
    }

    /// What one is called in a comment.
    pub(super) fn named(self, number: u64) -> String {
        match self {
            Self::Gitea | Self::Github => format!("#{number}"),
            Self::Gitlab => format!("!{number}"),
        }
    }

    /// What one shall say, where it leads, and where it is brought to.
    pub(super) fn change(self, Change { text, base, turn }: Change<'_>) -> Value {
        let (said, leads, state, [close, reopen]) = match self {
            Self::Gitea | Self::Github => ("body", "base", "state", ["closed", "open"]),
            Self::Gitlab => ("description", "target_branch", "state_event", ["close", "reopen"]),
        };
        let mut fields = Map::new();
        if let Some(Text { title, body }) = text {
            fields.insert("title".to_owned(), json!(title));
            fields.insert(said.to_owned(), json!(body));
        }
        if let Some(base) = base {
            fields.insert(leads.to_owned(), json!(base));
        }
        if let Some(turn) = turn {
            let word = match turn {
                Turn::Close => close,
                Turn::Reopen => reopen,
            };
            fields.insert(state.to_owned(), json!(word));
        }
        fields.into()
    }

    /// How a commit stands, under a name.
    pub(super) fn status(self, name: &str, Status { mark, text }: &Status) -> Value {
        match self {
            Self::Gitea | Self::Github => json!({"state": mark, "description": text, "context": name}),
            Self::Gitlab => {
                let state = match mark {
                    HostMark::Pending => "pending",
                    HostMark::Success => "success",
                    HostMark::Failure => "failed",
                };
                json!({"state": state, "description": text, "name": name})
            }
        }
    }
}

impl PullHost {
    /// Where people see a file as a commit has it; none if the API is not where such hosts have it.
    pub(super) fn page(&self, commit: &CommitId, path: &RepoPath) -> Option<String> {
        let below = match self.kind {
            HostKind::Gitea => "src/commit",
            HostKind::Github => "blob",
            HostKind::Gitlab => "-/blob",
        };
        self.below(&[below, commit.as_str(), path.as_str()])
    }

    /// Where people see a file as a branch has it by then.
    pub(super) fn page_on(&self, branch: &str, path: &RepoPath) -> Option<String> {
        let below = match self.kind {
            HostKind::Gitea => "src/branch",
            HostKind::Github => "blob",
            HostKind::Gitlab => "-/blob",
        };
        self.below(&[below, branch, path.as_str()])
    }

    /// Where people see what the second commit changes beside the first one.
    pub(super) fn compare(&self, from: &CommitId, to: &CommitId) -> Option<String> {
        let below = match self.kind {
            HostKind::Gitea | HostKind::Github => "compare",
            HostKind::Gitlab => "-/compare",
        };
        self.below(&[below, &format!("{from}...{to}")])
    }

    /// Whose address that is, of those that the host itself gives people to hide others behind. Gitea's have no number in them.
    pub(super) fn owner_of(&self, address: &str) -> Option<User> {
        let sign = match self.kind {
            HostKind::Gitea => return None,
            HostKind::Github => '+',
            HostKind::Gitlab => '-',
        };
        let (name, domain) = address.split_once('@')?;
        let (id, login) = name.split_once(sign)?;
        let api = Url::parse(&self.api).ok()?;
        let host = api.host_str()?;
        let is_here = domain.strip_prefix("users.noreply.")? == host.strip_prefix("api.").unwrap_or(host);
        let id = id.parse().ok().filter(|_| is_here)?;
        Some(User { id, login: plain(login) })
    }

    fn below(&self, path: &[&str]) -> Option<String> {
        let Self { kind, api, owner, name, access: _ } = self;
        let root = match kind {
            HostKind::Gitea => api.strip_suffix("/api/v1")?.to_owned(),
            HostKind::Github => {
                let pages = api.strip_suffix("/api/v3").map(str::to_owned);
                pages.or_else(|| Some(format!("https://{}", api.strip_prefix("https://api.")?)))?
            }
            HostKind::Gitlab => api.strip_suffix("/api/v4")?.to_owned(),
        };
        let mut page = Url::parse(&root).ok()?;
        let parts = [&[owner.as_str(), name], path].concat();
        page.path_segments_mut().ok()?.pop_if_empty().extend(parts.iter().flat_map(|part| part.split('/')));
        Some(page.into())
    }
}

impl Host {
    /// The page that shows what the second commit changes beside the first one; none if the API is not where such hosts have it.
    #[must_use]
    pub fn compare(&self, from: &CommitId, to: &CommitId) -> Option<String> {
        self.site.compare(from, to)
    }

    /// The page of a file as a branch has it when somebody looks; none as for [`Self::compare`].
    #[must_use]
    pub fn page_on(&self, branch: &str, path: &RepoPath) -> Option<String> {
        self.site.page_on(branch, path)
    }

    /// What a pull request is called in a comment, so that it becomes a link.
    #[must_use]
    pub fn named(&self, number: u64) -> String {
        self.site.kind.named(number)
    }
}
