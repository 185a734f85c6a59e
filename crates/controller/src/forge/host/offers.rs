//! What people offer for a branch by pull requests of their own, and what we have said about it there.
//!
//! Anybody may open one: all that an answer says of it is foreign, but for the number of the user who wrote a comment.

use super::{Answer, CallPurpose, ETAG, Host, HostError, LINK, Method, gitlab};
use crate::forge::settings::escaped;
use crate::manifest::ids::CommitId;
use crate::manifest::installation::HostKind;
use serde::Deserialize;
use serde_json::json;

/// The most pages of comments that are looked through for ours. Where there are more, nothing is said any more.
const PAGES: usize = 10;

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    /// Its number in the repository.
    pub number: u64,
    /// The commit that it offers.
    pub head: CommitId,
    /// The id of the user who opened it; none if that account is gone.
    pub author: Option<u64>,
}

/// The open pull requests of a branch, as they were listed last.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    etag: Option<String>,
    known: Vec<Offer>,
}

/// What we have said of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The number of the comment.
    pub id: u64,
    /// What it says.
    pub body: String,
}

#[derive(Deserialize)]
struct RawOffer {
    number: u64,
    user: Option<RawUser>,
    head: RawEnd,
    base: RawEnd,
}

/// Of an account that is gone, or is the host's own, there is nothing, or no number that a person has.
#[derive(Deserialize)]
pub(super) struct RawUser {
    id: Option<i64>,
}

impl RawUser {
    pub(super) fn id(&self) -> Option<u64> {
        u64::try_from(self.id?).ok()
    }
}

#[derive(Deserialize)]
struct RawEnd {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

#[derive(Deserialize)]
struct RawComment {
    id: u64,
    user: Option<RawUser>,
    /// GitLab's word for it.
    author: Option<RawUser>,
    body: Option<String>,
}

impl RawComment {
    fn by(&self) -> Option<u64> {
        self.user.as_ref().or(self.author.as_ref())?.id()
    }
}

impl RawOffer {
    /// Where it leads, and what it offers: a head that is no commit, as that of a branch that is gone, offers nothing.
    fn read(self) -> (String, Option<Offer>) {
        let Self { number, user, head, base } = self;
        let author = user.and_then(|user| user.id());
        (base.name, head.sha.parse().ok().map(|head| Offer { number, head, author }))
    }
}

impl HostKind {
    /// The query for the open pull requests of a branch, those that changed last first.
    fn offers(self, base: &str) -> String {
        let base = escaped(base);
        match self {
            Self::Gitea => "state=open&sort=recentupdate".to_owned(),
            Self::Github => format!("state=open&sort=updated&direction=desc&base={base}"),
            Self::Gitlab => format!("state=opened&order_by=updated_at&sort=desc&target_branch={base}"),
        }
    }

    /// The query for the comments of one, the first ones first.
    fn said(self) -> &'static str {
        match self {
            Self::Gitea | Self::Github => "",
            Self::Gitlab => "activity_filter=only_comments&order_by=created_at&sort=asc&",
        }
    }

    /// The ref under which the commit of a pull request can be fetched from its repository, whoever's branch it is in.
    #[must_use]
    pub fn offer_ref(self, number: u64) -> String {
        match self {
            Self::Gitea | Self::Github => format!("refs/pull/{number}/head"),
            Self::Gitlab => format!("refs/merge-requests/{number}/head"),
        }
    }
}

impl Host {
    /// The open pull requests that lead to a branch, those that changed last: one page, which costs nothing while it is the
    /// same.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn offers(&mut self, base: &str, seen: &mut Offers) -> Result<Vec<Offer>, HostError> {
        let kind = self.site.kind;
        let path = self.in_repository(&format!("{}?{}&{}", kind.pulls(), kind.offers(base), kind.page(1)));
        let answer = self.ask(CallPurpose::List, Method::GET, &path, None, seen.etag.clone()).await?;
        if answer.status == 304 {
            return Ok(seen.known.clone());
        }
        let found = self.read_offers(&answer)?.into_iter().filter(|(leads, _)| leads == base);
        let etag = answer.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
        *seen = Offers { etag, known: found.filter_map(|(_, offer)| offer).collect() };
        Ok(seen.known.clone())
    }

    /// Each with the branch that it leads to.
    fn read_offers(&self, answer: &Answer) -> Result<Vec<(String, Option<Offer>)>, HostError> {
        Ok(match self.site.kind {
            HostKind::Gitea | HostKind::Github => answer.read::<Vec<_>>()?.into_iter().map(RawOffer::read).collect(),
            HostKind::Gitlab => answer.read::<Vec<_>>()?.into_iter().map(gitlab::RawOffer::read).collect(),
        })
    }

    /// Our comment on a pull request that begins like that: the first one, as there is only one.
    ///
    /// # Errors
    /// As [`HostError`] says. A list of which a part is missing is an error.
    pub async fn said(&mut self, number: u64, begins: &str) -> Result<Option<Comment>, HostError> {
        let user = self.ids().await?.user;
        for page in 1..=PAGES {
            let kind = self.site.kind;
            let path = self.in_repository(&format!("{}?{}{}", kind.comments(number), kind.said(), kind.page(page)));
            let answer = self.ask(CallPurpose::Comment, Method::GET, &path, None, None).await?;
            let found: Vec<RawComment> = answer.read()?;
            let ours = found.into_iter().filter(|comment| comment.by() == Some(user));
            let mut said = ours.map(|RawComment { id, body, .. }| Comment { id, body: body.unwrap_or_default() });
            if let Some(said) = said.find(|said| said.body.starts_with(begins)) {
                return Ok(Some(said));
            }
            let link = answer.headers.get(LINK).and_then(|value| value.to_str().ok());
            if !link.is_some_and(|link| link.contains("rel=\"next\"")) {
                return Ok(None);
            }
        }
        let why = format!("more than {PAGES} pages");
        Err(HostError::Unusable { doing: format!("list the comments of pull request {number}"), why })
    }

    /// Changes what a comment of ours on a pull request says.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn rephrase(&mut self, number: u64, comment: u64, what: &str) -> Result<(), HostError> {
        let kind = self.site.kind;
        let path = self.in_repository(&kind.comment(number, comment));
        self.ask(CallPurpose::Comment, kind.changing(), &path, Some(&json!({"body": what})), None).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
