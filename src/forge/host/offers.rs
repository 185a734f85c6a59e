//! What people offer for a branch by pull requests of their own, and what we have said about it there.
//!
//! Anybody may open one: all that an answer says of it is foreign, but for the number of the user who wrote a comment.

use super::{ETAG, Errand, Host, HostError, LINK, Method};
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
pub struct Said {
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
struct RawUser {
    id: Option<i64>,
}

impl RawUser {
    fn id(&self) -> Option<u64> {
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
    body: Option<String>,
}

impl HostKind {
    /// The query for the open pull requests of a branch, those that changed last first.
    fn offers(self, base: &str) -> String {
        match self {
            Self::Gitea => "state=open&sort=recentupdate".to_owned(),
            Self::Github => {
                let base: String = url::form_urlencoded::byte_serialize(base.as_bytes()).collect();
                format!("state=open&sort=updated&direction=desc&base={base}")
            }
        }
    }

    /// The ref under which the commit of a pull request can be fetched from its repository, whoever's branch it is in.
    #[must_use]
    pub fn offer_ref(self, number: u64) -> String {
        match self {
            Self::Gitea | Self::Github => format!("refs/pull/{number}/head"),
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
        let path = self.in_repository(&format!("pulls?{}&{}", kind.offers(base), kind.page(1)));
        let answer = self.ask(Errand::List, Method::GET, &path, None, seen.etag.clone()).await?;
        if answer.status == 304 {
            return Ok(seen.known.clone());
        }
        let found: Vec<RawOffer> = self.read(Errand::List, &answer)?;
        let leads = found.into_iter().filter(|offer| offer.base.name == base);
        // A head that is no commit, as that of a branch that is gone, offers nothing.
        let offer = |RawOffer { number, user, head, base: _ }: RawOffer| {
            Some(Offer { number, head: head.sha.parse().ok()?, author: user.and_then(|user| user.id()) })
        };
        let etag = answer.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
        *seen = Offers { etag, known: leads.filter_map(offer).collect() };
        Ok(seen.known.clone())
    }

    /// Our comment on a pull request that begins like that: the first one, as there is only one.
    ///
    /// # Errors
    /// As [`HostError`] says. A list of which a part is missing is an error.
    pub async fn said(&mut self, number: u64, begins: &str) -> Result<Option<Said>, HostError> {
        let user = self.ids().await?.user;
        for page in 1..=PAGES {
            let query = self.site.kind.page(page);
            let path = self.in_repository(&format!("issues/{number}/comments?{query}"));
            let answer = self.ask(Errand::Comment, Method::GET, &path, None, None).await?;
            let found: Vec<RawComment> = self.read(Errand::Comment, &answer)?;
            let ours = found.into_iter().filter(|comment| comment.user.as_ref().and_then(RawUser::id) == Some(user));
            let mut said = ours.map(|RawComment { id, user: _, body }| Said { id, body: body.unwrap_or_default() });
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

    /// Changes what a comment of ours says.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn rephrase(&mut self, comment: u64, what: &str) -> Result<(), HostError> {
        let path = self.in_repository(&format!("issues/comments/{comment}"));
        self.ask(Errand::Comment, Method::PATCH, &path, Some(&json!({"body": what})), None).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
