//! What goes wrong, by kind, and how much of it may.

use std::fmt::{self, Display, Formatter};

/// What one fault is, by the name that settings and `docs/testing.md` have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A controller crashes between any two steps.
    Crash,
    /// A push is accepted, and the answer lost.
    LostPush,
    /// A write fails, before or after it took effect.
    FailedWrite,
    /// A controller plans with the cluster as it was.
    Lag,
    /// The checks turn bad, or good again.
    Checks,
    /// Git goes away, or comes back.
    Git,
    /// The brake says revert, or is lifted.
    Brake,
    /// Main wants another version.
    Main,
}

/// All kinds, with their names.
const KINDS: [(Kind, &str); 8] = [
    (Kind::Crash, "crash"),
    (Kind::LostPush, "lost-push"),
    (Kind::FailedWrite, "failed-write"),
    (Kind::Lag, "lag"),
    (Kind::Checks, "checks"),
    (Kind::Git, "git"),
    (Kind::Brake, "brake"),
    (Kind::Main, "main"),
];

/// The faults of a search: on each way at most so many, of these kinds only.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    pub(crate) most: u8,
    kinds: Vec<Kind>,
}

impl Faults {
    /// So many, of whatever kind.
    pub(crate) fn any(most: u8) -> Self {
        Self { most, kinds: KINDS.map(|(kind, _)| kind).to_vec() }
    }

    /// So many, of the kinds with these names, which are separated by commas. The error says which name nobody knows.
    pub(crate) fn of(most: u8, names: &str) -> Result<Self, String> {
        let known = |name: &str| KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
        let kinds = names.split(',').map(str::trim).map(|name| known(name).ok_or_else(|| unknown(name)));
        Ok(Self { most, kinds: kinds.collect::<Result<_, _>>()? })
    }

    /// Whether faults of that kind happen.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }
}

fn unknown(name: &str) -> String {
    format!("no kind of fault is called \"{name}\"; there are {}", KINDS.map(|(_, name)| name).join(", "))
}

impl Display for Faults {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = KINDS.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        write!(f, "{} faults of {}", self.most, names.join(","))
    }
}
