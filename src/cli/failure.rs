//! Why a command did not do what it was asked, for people.

use crate::record::text::plain;

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It was asked for something that makes no sense: exit code 2, as for a wrong option.
    #[error("{0}")]
    Usage(String),
    /// There is no repository to look at: exit code 2.
    #[error("{0}")]
    NoRepository(String),
    /// The repository has no record yet: exit code 1.
    #[error("{0}")]
    NoRecord(String),
    /// Nobody reads what is printed any more, as after `| head`: nothing is said, and all is well.
    #[error("nobody reads what is printed")]
    NobodyReads,
    /// It could not be done: exit code 1.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

impl Failure {
    /// A request that makes no sense.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// Something that makes sense and cannot be done now.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(anyhow::Error::msg(text.into()))
    }

    /// The number that the shell sees.
    #[must_use]
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::NobodyReads => 0,
            Self::Usage(_) | Self::NoRepository(_) => 2,
            Self::NoRecord(_) | Self::Failed(_) => 1,
        }
    }

    /// What people see. Each line is shown without anything hidden in it, as servers' words may be among them.
    #[must_use]
    pub(super) fn text(&self) -> String {
        self.to_string()
            .lines()
            .map(|line| {
                let indent = line.len() - line.trim_start().len();
                format!("{}{}", &line[..indent], plain(line))
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Whoever names a directory that cannot be read has named the wrong one.
impl From<super::validate::Unreadable> for Failure {
    fn from(error: super::validate::Unreadable) -> Self {
        Self::usage(format!("{:#}", anyhow::Error::new(error)))
    }
}

macro_rules! from {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        })*
    };
}

from!(crate::git::GitError, tidegate_world::simulation::SimulationError, std::io::Error, serde_json::Error);
