//! Pull requests that others open from the branches by which we ask, where hosts take one alone.

use super::Worker;
use crate::forge::host::HostError;
use crate::forge::pull::PullRequest;

/// What is said of somebody else's pull request from a branch by which we ask.
pub(super) const IN_THE_WAY: &str = "By this branch tidegate asks people, in a pull request of its own, and this one is in its place. So it is \
    closed. That is no answer.";

impl Worker {
    /// Hosts take one pull request from a branch to another. Where ours is refused, since somebody else has opened one from its branch, that
    /// one is closed, and the next look tries again.
    pub(super) async fn make_way(&mut self, error: HostError, branch: &str, base: &str) -> Result<(), HostError> {
        if !matches!(error, HostError::Refused { status: 409 | 422, .. }) {
            return Err(error);
        }
        let others = self.setting.host.others(branch, base).await?;
        if others.is_empty() {
            return Err(error);
        }
        let mut again = false;
        for PullRequest { number, .. } in others {
            if self.setting.lead.held().is_none() {
                return Ok(());
            }
            self.setting.host.close(number, None).await?;
            tracing::info!(branch, number, "somebody else's pull request was in the way of ours, and is closed");
            if self.moved.insert(number) {
                self.unsaid.add(number, IN_THE_WAY.to_owned());
            } else {
                again = true;
            }
        }
        if again {
            return Err(error);
        }
        self.setting.told.send_replace(());
        Ok(())
    }
}
