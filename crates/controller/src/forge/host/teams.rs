//! Who is in a team: asked about people who have said something, one by one, never for a list of all.
//!
//! A team that cannot be seen is an error, never one that nobody is in: hosts say 404 to both.

use super::gitlab::RawMember;
use super::reviews::RawUser;
use super::wire::Id;
use super::{CallPurpose, Host, HostError, Method, PullHost};
use crate::forge::settings::escaped;
use crate::manifest::installation::{Access, HostKind};
use crate::manifest::proof::ApprovalRule;
use crate::manifest::team::{Team, either};
use crate::people::user::{Permission, User};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many people may have to be looked for in teams: each costs a call.
const PEOPLE: usize = 50;

#[derive(Deserialize)]
struct RawMembership {
    /// Who was invited, and has not come yet, is `pending`.
    state: String,
}

impl Host {
    /// By which team each of these people is an approver now, of those whom the rule does not name. Who is in none is left out.
    ///
    /// # Errors
    /// As [`HostError`] says; also if a team is not there, or may not be seen.
    pub async fn teams(
        &mut self,
        rule: &ApprovalRule,
        people: BTreeSet<User>,
    ) -> Result<BTreeMap<User, Team>, HostError> {
        let (mut left, mut found, teams) = (people, BTreeMap::new(), rule.teams());
        left.retain(|user| !rule.means(user.id, &user.login));
        if !teams.is_empty() && left.len() > PEOPLE {
            let doing = format!("look for people in {}", either(&teams));
            return Err(HostError::Unusable { doing, why: format!("they are {}, more than {PEOPLE}", left.len()) });
        }
        for team in teams {
            if left.is_empty() {
                break;
            }
            let places = self.places(&team).await?;
            for user in std::mem::take(&mut left) {
                if self.is_in(&team, &places, &user).await? {
                    found.insert(user, team.clone());
                } else {
                    left.insert(user);
                }
            }
        }
        Ok(found)
    }

    /// Why the no of somebody does not count. Who may not write is no business of teams; and where nobody can tell who is in one, a
    /// no that may not be meant is not taken.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn objection(&mut self, rule: &ApprovalRule, user: &User) -> Result<Option<String>, HostError> {
        if !self.may_write(user).await? {
            return Ok(Some(format!("{user} may not write to the repository")));
        }
        if rule.means(user.id, &user.login) {
            return Ok(None);
        }
        match self.teams(rule, [user.clone()].into()).await {
            Ok(found) if found.is_empty() => Ok(Some(user.not_listed(&rule.teams()))),
            Ok(_) => Ok(None),
            Err(error @ (HostError::Refused { status: 403..=405, .. } | HostError::Unusable { .. })) => {
                tracing::warn!(%error, "nobody can tell who is in a team");
                Ok(Some(format!("nobody can tell whether {user} is in {}", either(&rule.teams()))))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it tells who is in a team: it is asked about our own account.
    ///
    /// # Errors
    /// As [`HostError`] says; also if the team is not there, or may not be seen.
    pub async fn tells(&mut self, team: &Team) -> Result<(), HostError> {
        let (me, places) = (self.me().await?, self.places(team).await?);
        self.is_in(team, &places, &User { id: me.ids.user, login: me.login }).await.map(drop)
    }

    /// Where it is told who is in a team that can be seen. A name can become another team's in the middle of a run, so a team has to have
    /// been given the repository; on GitLab groups are given to groups, and a path is what a group is known by.
    async fn places(&mut self, team: &Team) -> Result<Vec<String>, HostError> {
        let places = match self.site.kind {
            HostKind::Github => self.of_github(team).await,
            HostKind::Gitea => self.of_gitea(team).await,
            HostKind::Gitlab => self.of_gitlab(team).await,
        };
        places.map_err(|error| self.unseen(team, error))
    }

    async fn of_github(&mut self, team: &Team) -> Result<Vec<String>, HostError> {
        let PullHost { owner, name, .. } = &self.site;
        let place = format!("orgs/{}/teams/{}", team.owner(), team.name());
        let path = format!("{place}/repos/{owner}/{name}");
        let answer = self.ask(CallPurpose::Review, Method::GET, &path, None, None).await?;
        // A yes has nothing in it, or the repository.
        if answer.status != 204 {
            let Id { id: _ } = answer.read()?;
        }
        Ok(vec![place])
    }

    async fn of_gitea(&mut self, team: &Team) -> Result<Vec<String>, HostError> {
        let path = self.in_repository(&format!("teams/{}", team.name()));
        let Id { id } = self.get(CallPurpose::Review, path).await?;
        let place = format!("teams/{id}");
        // Of a team that we may not look into it says 404 to any member.
        let Id { id: _ } = self.get(CallPurpose::Review, place.clone()).await?;
        Ok(vec![place])
    }

    /// The group, and those above it. `members/all` would know of all at once, but of those in groups as well that were invited.
    async fn of_gitlab(&mut self, team: &Team) -> Result<Vec<String>, HostError> {
        let (path, mut places) = (team.path(), Vec::new());
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]).rev() {
            let place = format!("groups/{}", path[..end].replace('/', "%2F"));
            let Id { id: _ } = self.get(CallPurpose::Review, place.clone()).await?;
            places.push(place);
        }
        Ok(places)
    }

    /// Whether somebody is in the team at one of these places.
    async fn is_in(&mut self, team: &Team, places: &[String], user: &User) -> Result<bool, HostError> {
        for place in places {
            if self.is_member(place, user).await.map_err(|error| self.unseen(team, error))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn is_member(&mut self, place: &str, user: &User) -> Result<bool, HostError> {
        let login = escaped(&user.login);
        let found = match self.site.kind {
            HostKind::Github => {
                let membership =
                    self.get::<RawMembership>(CallPurpose::Review, format!("{place}/memberships/{login}")).await;
                membership.map(|membership| membership.state == "active")
            }
            HostKind::Gitea => {
                let member = self.get::<RawUser>(CallPurpose::Review, format!("{place}/members/{login}")).await;
                member.map(|member| member.read().as_ref() == Some(user))
            }
            HostKind::Gitlab => {
                let member = self.get::<RawMember>(CallPurpose::Review, format!("{place}/members/{}", user.id)).await;
                member.map(|member| member.permission((self.now)()) > Permission::None)
            }
        };
        match found {
            Err(HostError::Refused { status: 404, .. }) => Ok(false),
            found => found,
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
            (HostKind::Gitlab, _) => {
                "the scope read_api, and its account has to be in the group, or in those above it, if they are private"
            }
        };
        let given = if self.site.kind == HostKind::Gitlab { "" } else { " with access to this repository" };
        let HostError::Refused { doing, status: status @ 403..=405, why: _ } = error else { return error };
        let why = format!("there is no team {team}{given}, or {access} may not see who is in it: it needs {needs}");
        HostError::Refused { doing, status, why }
    }
}
