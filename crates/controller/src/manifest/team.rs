//! Whom a policy names as an approver: an account on the Git host by its name or its number, or a team as `CODEOWNERS` names it.

use super::installation::{HostKind, PullHost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The longest name of an account.
const LONGEST_NAME: usize = 100;
/// The longest name of a team.
const LONGEST_TEAM: usize = 255;
/// The rules again, lengths left out, as a pattern for editors.
const PATTERN: &str =
    "^([A-Za-z0-9][A-Za-z0-9._+@-]*|id:[1-9][0-9]{0,19}|@[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)+)$";

/// A text that names nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidApprover {
    /// It begins as a team does.
    #[error(
        "{0:?} is not a team: @ORGANISATION/TEAM, as in CODEOWNERS, such as \"@acme/shop\"; on GitLab a group by its whole \
         path; at most 255 letters, digits, '.', '_' and '-'"
    )]
    Team(String),
    /// It does not.
    #[error(
        "{0:?} is not the name of an account: at most 100 letters, digits, '.', '_', '-', '+' and '@', the first one a \
         letter or a digit; or its number as in id:7, as the host counts its users; or a team such as \"@acme/shop\""
    )]
    Account(String),
}

/// A team of an organisation on GitHub and Gitea; on GitLab a group in groups. Hosts do not tell upper case from lower
/// case here, so it is in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Team(String);

impl Team {
    /// Without the `@`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0
    }

    /// The organisation, or the outermost group.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(owner, _)| owner)
    }

    /// What comes after it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl FromStr for Team {
    type Err = InvalidApprover;

    fn from_str(text: &str) -> Result<Self, InvalidApprover> {
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && part.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
        };
        let path = text.strip_prefix('@').filter(|path| path.contains('/') && text.len() <= LONGEST_TEAM);
        let path = path.filter(|path| path.split('/').all(part));
        path.map(|path| Self(path.to_ascii_lowercase())).ok_or_else(|| InvalidApprover::Team(cut(text)))
    }
}

/// Whom a policy names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("format" = "approver", "pattern" = PATTERN, "maxLength" = LONGEST_TEAM))]
pub enum Approver {
    /// An account, by its name, or by its number with `id:` before it.
    Account(String),
    /// Whoever is in a team.
    Team(Team),
}

impl FromStr for Approver {
    type Err = InvalidApprover;

    fn from_str(text: &str) -> Result<Self, InvalidApprover> {
        if text.starts_with('@') {
            return text.parse().map(Self::Team);
        }
        let is_name = || {
            text.len() <= LONGEST_NAME
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._+@-".contains(&c))
        };
        // A number has one spelling, so that nobody is named by it twice.
        let is_number = |number: &str| number.parse::<u64>().is_ok_and(|id| id > 0 && format!("{id}") == number);
        let good = text.strip_prefix("id:").map_or_else(is_name, is_number);
        if good { Ok(Self::Account(text.to_owned())) } else { Err(InvalidApprover::Account(cut(text))) }
    }
}

impl TryFrom<String> for Approver {
    type Error = InvalidApprover;

    fn try_from(text: String) -> Result<Self, InvalidApprover> {
        text.parse()
    }
}

impl From<Approver> for String {
    fn from(approver: Approver) -> Self {
        approver.to_string()
    }
}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(name) => f.write_str(name),
            Self::Team(team) => team.fmt(f),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Which teams a policy may name: a repository chooses who decides among its own, never a foreign identity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Teams {
    /// It is not known on which Git host the repository lies.
    #[default]
    Any,
    /// No host is asked who is in a team.
    None,
    /// Those of whom the repository belongs to.
    Of {
        /// Whose API the host speaks.
        kind: HostKind,
        /// An organisation; on GitLab the outermost group. In lower case.
        owner: String,
    },
}

impl Teams {
    /// Those that the policy of a repository on this host may name.
    #[must_use]
    pub fn on(host: Option<&PullHost>) -> Self {
        let of = |PullHost { kind, owner, .. }: &PullHost| {
            let outermost = owner.split('/').next().unwrap_or(owner);
            Self::Of { kind: *kind, owner: outermost.to_ascii_lowercase() }
        };
        host.map_or(Self::None, of)
    }

    /// Why a policy may not name a team: what was found, and what was expected.
    #[must_use]
    pub fn refuse(&self, team: &Team) -> Option<(String, String)> {
        let (kind, owner) = match self {
            Self::Any => return None,
            Self::None => {
                let found = format!("the installation names no Git host that tells who is in {team}");
                let expected = "names of accounts, or spec.repository.forge of the Installation with kind: gitea, github or gitlab";
                return Some((found, expected.to_owned()));
            }
            Self::Of { kind, owner } => (*kind, owner),
        };
        let deep = kind != HostKind::Gitlab && team.name().contains('/');
        let found = if team.owner() != owner {
            format!("{team} is a team of {}, and the repository belongs to {owner}", team.owner())
        } else if deep {
            format!("{team} is a group in groups, which only GitLab has")
        } else {
            return None;
        };
        Some((found, format!("a team of {owner}: \"@{owner}/TEAM\"")))
    }
}

/// One of these teams, in words.
#[must_use]
pub fn either(teams: &BTreeSet<Team>) -> String {
    teams.iter().map(Team::to_string).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_has_an_organisation_and_a_name() {
        for (text, owner, name) in [
            ("@acme/shop", "acme", "shop"),
            ("@Acme/Shop.Leads_1-x", "acme", "shop.leads_1-x"),
            ("@acme/shops/web", "acme", "shops/web"),
        ] {
            let team: Team = text.parse().unwrap();
            assert_eq!((team.owner(), team.name()), (owner, name));
            assert_eq!((team.to_string(), format!("@{}", team.path())), (text.to_lowercase(), text.to_lowercase()));
        }
        let long = format!("@acme/{}", "x".repeat(250));
        for bad in [
            "@shop",
            "@/shop",
            "@acme/",
            "@acme//shop",
            "acme/shop",
            "@",
            "@acme/..",
            "@acme/.",
            "@acme/-x",
            "@acme/a b",
            "@acme/a%2fb",
            "@acme/a?b",
            "@acme/ä",
            "@@acme/x",
            &long,
        ] {
            assert_eq!(bad.parse::<Team>(), Err(InvalidApprover::Team(cut(bad))), "{bad}");
        }
    }

    #[test]
    fn what_has_no_at_sign_before_it_is_an_account() {
        let largest = format!("id:{}", u64::MAX);
        for name in ["ana", "Ana.B_c-1", "ana@example.test", "ana+shop@example.test", "id", "id:7", &largest] {
            let approver: Approver = name.parse().unwrap();
            assert_eq!(
                (&approver, String::from(approver.clone())),
                (&Approver::Account(name.to_owned()), name.to_owned())
            );
        }
        let number = format!("{largest}9");
        let numbers = ["id:", "id:0", "id:07", "id:-7", "id:x", "ID:7", "id:7 ", "id:+7", "no:7", &number];
        for bad in ["", "-ana", "+ana", "a b", "acme/shop", "ana\n", &"x".repeat(101)].into_iter().chain(numbers) {
            assert!(matches!(bad.parse::<Approver>(), Err(InvalidApprover::Account(_))), "{bad}");
        }
        assert!(matches!("@acme/shop".parse(), Ok(Approver::Team(_))));
        assert!(matches!("@acme".parse::<Approver>(), Err(InvalidApprover::Team(_))));
    }

    #[test]
    fn attack_78_only_teams_of_whom_the_repository_belongs_to_are_named() {
        let on = |kind, owner: &str| Teams::Of { kind, owner: owner.to_owned() };
        let why = |teams: &Teams, team: &str| teams.refuse(&team.parse().unwrap()).map(|(found, _)| found);
        for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
            assert_eq!(why(&on(kind, "acme"), "@Acme/shop"), None);
            let foreign = "@evil/shop is a team of evil, and the repository belongs to acme";
            assert_eq!(why(&on(kind, "acme"), "@evil/shop").as_deref(), Some(foreign));
        }
        assert_eq!(why(&on(HostKind::Gitlab, "acme"), "@acme/a/b"), None);
        let deep = why(&on(HostKind::Github, "acme"), "@acme/a/b");
        assert_eq!(deep.as_deref(), Some("@acme/a/b is a group in groups, which only GitLab has"));
        assert_eq!(why(&Teams::Any, "@evil/shop"), None, "nothing is known of the host");
        assert!(why(&Teams::on(None), "@acme/shop").unwrap().contains("names no Git host"));
    }
}
