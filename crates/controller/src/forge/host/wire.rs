//! What a Git host's API answers, in the words that Gitea and GitHub share.

use crate::forge::pull::{PullRequest, PullState, Text};
use crate::record::state::Time;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Id {
    pub(super) id: u64,
}

/// A pull request in the words that both hosts share.
#[derive(Deserialize)]
pub(super) struct RawPull {
    number: u64,
    state: State,
    merged_at: Option<String>,
    /// When anything of it was changed.
    pub(super) updated_at: Option<Time>,
    title: String,
    body: Option<String>,
    /// Old Gitea does not say it.
    draft: Option<bool>,
    user: Option<Author>,
    head: End,
    base: End,
}

#[derive(Deserialize)]
struct Author {
    /// Below nothing, of an account that is gone.
    id: i64,
}

/// A word that is neither is no answer: it must not be taken for a no.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Closed,
}

#[derive(Deserialize)]
struct End {
    /// `OWNER:BRANCH`, or the branch alone. Gitea says something else in `ref` once the branch is gone.
    label: Option<String>,
    #[serde(rename = "ref")]
    reference: String,
    repo: Option<Id>,
}

impl End {
    fn branch(&self) -> &str {
        let label = self.label.as_deref().and_then(|label| label.rsplit(':').next());
        label.unwrap_or(&self.reference)
    }
}

impl RawPull {
    pub(super) fn read(self) -> PullRequest {
        let standing = match (&self.merged_at, &self.state) {
            (Some(_), _) => PullState::Merged,
            (None, State::Open) => PullState::Open,
            (None, State::Closed) => PullState::Closed,
        };
        PullRequest {
            number: self.number,
            state: standing,
            branch: self.head.branch().to_owned(),
            base: self.base.branch().to_owned(),
            repository: self.head.repo.map(|repo| repo.id),
            draft: self.draft == Some(true),
            author: self.user.and_then(|user| u64::try_from(user.id).ok()),
            text: Text { title: self.title, body: self.body.unwrap_or_default() },
        }
    }
}
