//! What people offer, in GitLab's words.

use super::super::Offer;
use super::super::offers::RawUser;
use serde::Deserialize;

/// A merge request of somebody.
#[derive(Deserialize)]
pub(in super::super) struct RawOffer {
    iid: u64,
    author: Option<RawUser>,
    target_branch: String,
    /// None of a source that is gone.
    sha: Option<String>,
}

impl RawOffer {
    /// Where it leads, and what it offers: what is no commit offers nothing.
    pub(in super::super) fn read(self) -> (String, Option<Offer>) {
        let head = self.sha.and_then(|sha| sha.parse().ok());
        let author = self.author.and_then(|user| user.id());
        (self.target_branch, head.map(|head| Offer { number: self.iid, head, author }))
    }
}
