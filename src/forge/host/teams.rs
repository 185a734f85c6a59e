//! Who is in a team: asked about people who have said something, one by one, never for a list of all.
//!
//! A team that cannot be seen is an error, never one that nobody is in: hosts say 404 to both.

use super::gitlab::RawMember;
use super::reviews::RawUser;
use super::wire::Id;
use super::{Errand, Host, HostError};
use crate::forge::settings::escaped;
use crate::gate::proof::{Permission, User};
use crate::manifest::installation::{Access, HostKind};
use crate::manifest::team::Team;
use crate::record::state::Rule;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many teams with a word in their names Gitea lists at most.
const LISTED: usize = 50;

#[derive(Deserialize)]
struct RawMembership {
    /// Who was invited, and has not come yet, is `pending`.
    state: String,
}

#[derive(Deserialize)]
struct RawFound {
    data: Vec<RawTeam>,
}

#[derive(Deserialize)]
struct RawTeam {
    id: u64,
    name: String,
}

impl Host {
    /// By which team each of these people is an approver now, of those whom the rule does not name. Who is in none is left out.
    ///
    /// # Errors
    /// As [`HostError`] says; also if a team is not there, or may not be seen.
    pub async fn teams(&mut self, rule: &Rule, people: BTreeSet<User>) -> Result<BTreeMap<User, Team>, HostError> {
        let (mut left, mut found) = (people, BTreeMap::new());
        left.retain(|user| !rule.names(&user.login));
        for team in rule.teams() {
            if left.is_empty() {
                break;
            }
            let place = self.place(&team).await?;
            for user in std::mem::take(&mut left) {
                if self.is_in(&team, &place, &user).await? {
                    found.insert(user, team.clone());
                } else {
                    left.insert(user);
                }
            }
        }
        Ok(found)
    }

    /// Whether it tells who is in a team: it is asked about our own account.
    ///
    /// # Errors
    /// As [`HostError`] says; also if the team is not there, or may not be seen.
    pub async fn tells(&mut self, team: &Team) -> Result<(), HostError> {
        let (me, place) = (self.me().await?, self.place(team).await?);
        self.is_in(team, &place, &User { id: me.ids.user, login: me.login }).await.map(drop)
    }

    /// Where a team is that can be seen.
    async fn place(&mut self, team: &Team) -> Result<String, HostError> {
        let (owner, name) = (team.owner(), team.name());
        let place = match self.site.kind {
            HostKind::Github => format!("orgs/{owner}/teams/{name}"),
            HostKind::Gitlab => format!("groups/{}", team.path().replace('/', "%2F")),
            HostKind::Gitea => {
                let doing = format!("orgs/{owner}/teams/search");
                let path = format!("{doing}?q={}&include_desc=false&limit={LISTED}", escaped(name));
                let RawFound { data } = self.get(Errand::Review, path).await.map_err(|e| self.unseen(team, e))?;
                let listed = data.len();
                return match data.into_iter().find(|found| found.name.eq_ignore_ascii_case(name)) {
                    Some(RawTeam { id, name: _ }) => Ok(format!("teams/{id}")),
                    None if listed >= LISTED => {
                        let why = format!("{listed} teams or more have {name} in their names");
                        Err(HostError::Unusable { doing: format!("GET {doing}"), why })
                    }
                    None => {
                        let refused =
                            HostError::Refused { doing: format!("GET {doing}"), status: 404, why: String::new() };
                        Err(self.unseen(team, refused))
                    }
                };
            }
        };
        let Id { id: _ } = self.get(Errand::Review, place.clone()).await.map_err(|error| self.unseen(team, error))?;
        Ok(place)
    }

    /// Whether somebody is in the team there.
    async fn is_in(&mut self, team: &Team, place: &str, user: &User) -> Result<bool, HostError> {
        let login = escaped(&user.login);
        let found = match self.site.kind {
            HostKind::Github => {
                let membership =
                    self.get::<RawMembership>(Errand::Review, format!("{place}/memberships/{login}")).await;
                membership.map(|membership| membership.state == "active")
            }
            HostKind::Gitea => {
                let member = self.get::<RawUser>(Errand::Review, format!("{place}/members/{login}")).await;
                member.map(|member| member.read().as_ref() == Some(user))
            }
            HostKind::Gitlab => {
                let member = self.get::<RawMember>(Errand::Review, format!("{place}/members/all/{}", user.id)).await;
                member.map(|member| member.permission((self.now)()) > Permission::None)
            }
        };
        match found {
            Err(HostError::Refused { status: 404, .. }) => Ok(false),
            found => found.map_err(|error| self.unseen(team, error)),
        }
    }

    /// What is wrong where a team cannot be seen, and which right it takes.
    fn unseen(&self, team: &Team, error: HostError) -> HostError {
        let access = &self.site.access;
        let needs = match (self.site.kind, access) {
            (HostKind::Github, Access::Token(_)) => {
                "the scope read:org; a fine-grained one Members: read of the organisation"
            }
            (HostKind::Github, Access::App(_)) => "the permission Members: read of the organisation",
            (HostKind::Gitea, _) => "the scope read:organization, and its account has to be in the team",
            (HostKind::Gitlab, _) => "the scope read_api, and its account has to be in the group if that is private",
        };
        let HostError::Refused { doing, status: status @ (403 | 404), why: _ } = error else { return error };
        let why = format!("there is no team {team}, or {access} may not see who is in it: it needs {needs}");
        HostError::Refused { doing, status, why }
    }
}
