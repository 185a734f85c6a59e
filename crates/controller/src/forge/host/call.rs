//! What is asked of a Git host, what a call came to, and why one failed.

use super::Answer;
use std::cell::Cell;
use std::sync::Arc;

/// Counts calls.
pub type Count = Box<dyn Fn(CallPurpose, CallOutcome) + Send + Sync>;

/// What is asked of a Git host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPurpose {
    /// Who we are, and which repository it is.
    Identify,
    /// Which pull requests there are.
    List,
    /// A pull request made.
    Create,
    /// A pull request's text or standing changed.
    Update,
    /// A word to people.
    Comment,
    /// The labels of a pull request.
    Label,
    /// How a commit stands.
    Status,
    /// What a commit comes to, line by line.
    Check,
    /// Who approved, and who made what.
    Review,
    /// Which rules hold for branches, and what else the host says of itself.
    Protection,
}

impl CallPurpose {
    /// All.
    pub const ALL: [Self; 10] = [
        Self::Identify,
        Self::List,
        Self::Create,
        Self::Update,
        Self::Comment,
        Self::Label,
        Self::Status,
        Self::Check,
        Self::Review,
        Self::Protection,
    ];

    /// In a word.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Identify => "identify",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Comment => "comment",
            Self::Label => "label",
            Self::Status => "status",
            Self::Check => "check",
            Self::Review => "review",
            Self::Protection => "protection",
        }
    }
}

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// As wanted.
    Done,
    /// Nothing new since the last time.
    Unchanged,
    /// The host does not allow it, or knows better.
    Refused,
    /// Too much was asked.
    Limited,
    /// No answer.
    Away,
    /// An answer that is no use.
    Failed,
}

impl CallOutcome {
    /// All.
    pub const ALL: [Self; 6] = [Self::Done, Self::Unchanged, Self::Refused, Self::Limited, Self::Away, Self::Failed];

    /// In a word.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Away => "away",
            Self::Failed => "failed",
        }
    }
}

/// Why a call failed. None of the texts holds a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The token cannot be read; nothing was asked.
    #[error("the token file {0}")]
    Token(String),
    /// The key of the GitHub App cannot be used; nothing was asked.
    #[error("the key of the GitHub App, {0}")]
    Key(String),
    /// No answer, or one that says that the host has trouble. Try again later.
    #[error("{doing}: the Git host is away: {why}")]
    Away {
        /// What was asked.
        doing: String,
        /// What happened.
        why: String,
    },
    /// Too much was asked, or would be.
    #[error("the Git host's limit: nothing is asked for {0} s")]
    Limited(i64),
    /// The host does not allow it.
    #[error("{doing}: the Git host refuses ({status}): {why}")]
    Refused {
        /// What was asked.
        doing: String,
        /// The HTTP status.
        status: u16,
        /// In the host's words, escaped, and what can be done.
        why: String,
    },
    /// An answer that is no use.
    #[error("{doing}: unexpected answer: {why}")]
    Unusable {
        /// What was asked.
        doing: String,
        /// What is wrong with it.
        why: String,
    },
}

impl HostError {
    /// In words that stay the same while it lasts: what is recorded would be news at each look else.
    #[must_use]
    pub fn lasting(&self) -> String {
        match self {
            Self::Limited(_) => "the Git host's limit: nothing is asked for a while".to_owned(),
            Self::Token(_) | Self::Key(_) | Self::Away { .. } | Self::Refused { .. } | Self::Unusable { .. } => {
                self.to_string()
            }
        }
    }

    pub(super) fn fate(&self) -> CallOutcome {
        match self {
            Self::Token(_) | Self::Key(_) | Self::Unusable { .. } => CallOutcome::Failed,
            Self::Away { .. } => CallOutcome::Away,
            Self::Limited(_) => CallOutcome::Limited,
            Self::Refused { .. } => CallOutcome::Refused,
        }
    }
}

/// Counts a call once: when it failed, or when its answer is done with.
pub(super) fn counted(
    asked: Result<Answer, HostError>,
    errand: CallPurpose,
    count: &Arc<Count>,
) -> Result<Answer, HostError> {
    match asked {
        Ok(answer) => {
            let fate = Cell::new(if answer.status == 304 { CallOutcome::Unchanged } else { CallOutcome::Done });
            Ok(Answer { tally: Some(Tally { errand, fate, count: Arc::clone(count) }), ..answer })
        }
        Err(error) => {
            count(errand, error.fate());
            Err(error)
        }
    }
}

/// What an answered call comes to, counted at its end: whether the answer is of use shows only when it is read.
pub(super) struct Tally {
    errand: CallPurpose,
    fate: Cell<CallOutcome>,
    count: Arc<Count>,
}

impl Tally {
    /// The answer is no use.
    pub(super) fn no_use(&self) {
        self.fate.set(CallOutcome::Failed);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        (self.count)(self.errand, self.fate.get());
    }
}
