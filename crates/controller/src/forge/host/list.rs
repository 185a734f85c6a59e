//! Our pull requests, as the host lists them: all that are open are read once, and from then on what has changed. So one call for
//! each poll tells of any number of them, and costs nothing where the host has ETags and nothing has changed.

use super::gitlab::RawRequest;
use super::wire::RawPull;
use super::{Answer, CallPurpose, ETAG, Host, HostError, LINK, Me, Method, PAGES};
use crate::forge::pull::{PullRequest, PullState, Text};
use crate::manifest::installation::HostKind;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// The most pages of pull requests that are looked through for those of one branch. What is further back counts as never made.
const BRANCH_PAGES: usize = 10;
/// After that long all are read anew, so that nothing that was missed is missed for good: no list of changes tells of one that was deleted.
const ANEW: TimeDelta = TimeDelta::minutes(10);

/// What is known of them.
#[derive(Default)]
pub(super) struct Listed {
    /// Those that are open, and whatever is among those that changed last.
    pulls: BTreeMap<u64, PullRequest>,
    /// What tells the list of those from a newer one.
    etag: Option<String>,
    /// When the latest change was made that is known.
    until: Option<Time>,
    /// When all that are open were read; none if some may have been missed.
    whole: Option<Time>,
}

struct Page {
    etag: Option<String>,
    /// Each with the time of its last change.
    pulls: Vec<(Option<Time>, PullRequest)>,
    is_last: bool,
}

impl Page {
    fn changed(&self) -> impl Iterator<Item = Time> {
        self.pulls.iter().filter_map(|(at, _)| *at)
    }
}

/// What a list of changes brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// All that it shows was known.
    None,
    /// Something else.
    Some,
}

impl Host {
    /// All open pull requests of ours, and perhaps others without their texts, newest first.
    ///
    /// # Errors
    /// As [`HostError`] says. A list of which a part is missing is an error.
    pub async fn open(&mut self) -> Result<Vec<PullRequest>, HostError> {
        let (me, now) = (self.me().await?, (self.now)());
        if self.listed.whole.is_some_and(|read| (now - read).abs() < ANEW) {
            self.changes(&me).await?;
        } else {
            self.listed = Listed::default();
            self.changes(&me).await?;
            self.whole(&me, now).await?;
        }
        let open = self.listed.pulls.values().rev().filter(|found| found.state == PullState::Open);
        Ok(open.cloned().collect())
    }

    /// The closed pull requests of a branch that `wanted` says are the ones sought, or none if the latest have no such. Those that
    /// [`Self::open`] has seen being closed are not asked for.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn closed(
        &mut self,
        branch: &str,
        wanted: impl Fn(&PullRequest) -> bool,
    ) -> Result<Vec<PullRequest>, HostError> {
        let is_it = |found: &&PullRequest| found.state != PullState::Open && found.branch == branch && wanted(found);
        let seen: Vec<PullRequest> = self.listed.pulls.values().rev().filter(is_it).cloned().collect();
        if !seen.is_empty() {
            return Ok(seen);
        }
        let me = self.me().await?;
        let query = self.site.kind.closed(&self.site.owner, &me, branch);
        for page in 1..=BRANCH_PAGES {
            let Page { pulls, is_last, .. } = self.page(&query, page).await?;
            let found: Vec<PullRequest> = pulls.into_iter().map(|(_, found)| found).filter(&wanted).collect();
            if !found.is_empty() || is_last {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// What somebody else has opened from a branch of this repository to another one, and is open. Hosts take no second one there.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn others(&mut self, branch: &str, base: &str) -> Result<Vec<PullRequest>, HostError> {
        let Me { ids, .. } = self.me().await?;
        let is_it = |found: &PullRequest| {
            let leads = found.repository == Some(ids.repository) && found.branch == branch && found.base == base;
            leads && found.state == PullState::Open && found.author != Some(ids.user)
        };
        let query = self.site.kind.anybodys(&self.site.owner, branch);
        let mut others = Vec::new();
        for page in 1..=BRANCH_PAGES {
            let Page { pulls, is_last, .. } = self.page(&query, page).await?;
            others.extend(pulls.into_iter().map(|(_, found)| found).filter(is_it));
            if is_last {
                break;
            }
        }
        Ok(others)
    }

    /// Reads all that are open.
    async fn whole(&mut self, me: &Me, now: Time) -> Result<(), HostError> {
        let query = self.site.kind.open(me);
        for page in 1..=PAGES {
            let Page { pulls, is_last, .. } = self.page(&query, page).await?;
            self.listed.pulls.extend(pulls.into_iter().map(|(_, found)| (found.number, found)));
            if is_last {
                // Where one is closed meanwhile, the next moves to a page that was read already: then all are read again the next time.
                let missed = page > 1 && self.changes(me).await? == News::Some;
                self.listed.whole = (!missed).then_some(now);
                return Ok(());
            }
        }
        Err(endless("list open pull requests"))
    }

    /// Reads what has changed since the last time, back to what is known. Nothing is taken note of before all is read.
    async fn changes(&mut self, me: &Me) -> Result<News, HostError> {
        let query = self.site.kind.changes(me);
        let Some(mut page) = self.page_unless(&query, 1, self.listed.etag.clone()).await? else {
            return Ok(News::None);
        };
        let (etag, until) = (page.etag.take(), page.changed().max());
        let mut pulls: BTreeMap<u64, PullRequest> = BTreeMap::new();
        for next in 2_usize.. {
            // While not all are known, they are read besides.
            let is_known = self.listed.whole.is_none() || page.changed().any(|at| Some(at) < self.listed.until);
            pulls.extend(page.pulls.into_iter().map(|(_, found)| (found.number, found)));
            if is_known || page.is_last {
                break;
            }
            if next > PAGES {
                return Err(endless("list changed pull requests"));
            }
            page = self.page(&query, next).await?;
        }
        let known = &mut self.listed;
        let is_news = pulls.iter().any(|(number, found)| known.pulls.get(number) != Some(found));
        known.pulls.retain(|_, found| found.state == PullState::Open);
        known.pulls.extend(pulls);
        (known.etag, known.until) = (etag, until.or(known.until));
        Ok(if is_news { News::Some } else { News::None })
    }

    async fn page(&mut self, query: &str, page: usize) -> Result<Page, HostError> {
        let found = self.page_unless(query, page, None).await?;
        Ok(found.expect("a page, because no ETag was named that it could still have"))
    }

    /// A page of a list; none if it still has that ETag.
    async fn page_unless(&mut self, query: &str, page: usize, etag: Option<String>) -> Result<Option<Page>, HostError> {
        let kind = self.site.kind;
        let path = self.in_repository(&format!("{}?{query}&{}", kind.pulls(), kind.page(page)));
        let is_known = etag.is_some();
        let answer = self.ask(CallPurpose::List, Method::GET, &path, None, etag).await?;
        if answer.status == 304 {
            return if is_known {
                Ok(None)
            } else {
                Err(answer.unusable("not modified, though nothing is known of it"))
            };
        }
        let header = |name| answer.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Some(Page {
            etag: header(ETAG).map(str::to_owned),
            pulls: self.read_pulls(&answer)?,
            is_last: !header(LINK).is_some_and(|link| link.contains("rel=\"next\"")),
        }))
    }

    /// What others write in theirs is of no use to us, and may be long: it is not kept.
    fn read_pulls(&self, answer: &Answer) -> Result<Vec<(Option<Time>, PullRequest)>, HostError> {
        let own = self.me.as_ref().map(|me| me.ids.user);
        let mut all: Vec<(Option<Time>, PullRequest)> = match self.site.kind {
            HostKind::Gitea | HostKind::Github => {
                let pulls = answer.read::<Vec<RawPull>>()?.into_iter();
                pulls.map(|pull| (pull.updated_at, pull.read())).collect()
            }
            HostKind::Gitlab => {
                let requests = answer.read::<Vec<RawRequest>>()?.into_iter();
                requests.map(|request| (request.updated_at, request.read())).collect()
            }
        };
        for (_, found) in all.iter_mut().filter(|(_, found)| found.author != own) {
            found.text = Text { title: String::new(), body: String::new() };
        }
        Ok(all)
    }
}

fn endless(doing: &str) -> HostError {
    HostError::Unusable { doing: doing.to_owned(), why: format!("more than {PAGES} pages") }
}
