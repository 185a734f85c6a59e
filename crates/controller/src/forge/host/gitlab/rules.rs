//! What GitLab says of itself: how a branch is protected, what our account may do, who is told of pushes.
//!
//! The rules themselves it tells to Maintainers alone. What they come to it says of each branch to whoever may read it: all of
//! them together, those with wildcards too, since on GitLab the one that allows most holds.

use super::super::{Host, HostError, HostWebhook, Permissions};
use super::{DEVELOPER, MAINTAINER};
use crate::forge::settings::escaped;
use crate::people::branch::Rules;
use crate::record::text::plain;
use serde::Deserialize;

/// A branch. Without one of these words nobody knows how it is kept.
#[derive(Deserialize)]
struct RawBranch {
    protected: bool,
    /// Whether our account may.
    can_push: bool,
    developers_can_push: bool,
    developers_can_merge: bool,
}

impl RawBranch {
    /// Approvals do not count: in the free plan none are needed, and in the others whoever opens a merge request may by default
    /// change there how many it needs, and approve as well.
    fn read(self) -> Rules {
        Rules {
            protected: self.protected,
            name: None,
            may_push: Some(self.can_push || self.developers_can_push),
            may_merge: Some(self.developers_can_merge),
            approvals: Some(0),
            all_push: self.developers_can_push,
            hidden: false,
        }
    }
}

/// A project, as far as our account goes.
#[derive(Deserialize)]
pub(in super::super) struct RawProject {
    permissions: Option<RawPermissions>,
}

#[derive(Deserialize)]
struct RawPermissions {
    project_access: Option<RawAccess>,
    group_access: Option<RawAccess>,
}

#[derive(Deserialize)]
struct RawAccess {
    access_level: i64,
}

impl RawProject {
    /// None if it is a member of neither the project nor a group.
    pub(in super::super) fn permissions(self) -> Option<Permissions> {
        let RawPermissions { project_access, group_access } = self.permissions?;
        let level = [project_access, group_access].into_iter().flatten().map(|access| access.access_level).max()?;
        Some(Permissions { admin: level >= MAINTAINER, push: level >= DEVELOPER })
    }
}

/// A webhook. What came of deliveries is told elsewhere, and by new GitLabs alone.
#[derive(Deserialize)]
pub(in super::super) struct RawHook {
    url: String,
    push_events: bool,
    #[serde(default)]
    merge_requests_events: bool,
    /// Whether it is switched off, after failures.
    alert_status: Option<String>,
}

impl RawHook {
    /// None if it is switched off.
    pub(in super::super) fn read(self) -> Option<HostWebhook> {
        let works = self.alert_status.is_none_or(|status| status == "executable");
        let Self { push_events: pushes, merge_requests_events: pulls, .. } = self;
        works.then(|| HostWebhook { url: plain(&self.url), pushes, pulls, last: None })
    }
}

impl Host {
    /// The rules of a branch; none if there is no such branch.
    pub(in super::super) async fn kept(&mut self, branch: &str) -> Result<Option<Rules>, HostError> {
        match self.again::<RawBranch>(format!("repository/branches/{}", escaped(branch))).await {
            Err(HostError::Refused { status: 404, .. }) => Ok(None),
            found => Ok(Some(found?.read())),
        }
    }
}
