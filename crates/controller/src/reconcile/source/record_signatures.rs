//! Whether the commits of the record are ours, where the installation has a key.

use crate::git::{GitError, RefName, Store};
use crate::manifest::ids::CommitId;
use std::collections::BTreeSet;

/// The newest tip of the state branch that this process has believed.
#[derive(Default)]
pub(super) struct RecordSignatures(Option<CommitId>);

impl RecordSignatures {
    /// Why the state tip is not believed: it, or a commit between it and what was believed last, is not signed by a key that
    /// is trusted. The newest tip that any leader knew was believed by that leader; it still has to be signed if it is the
    /// tip, as there may have been no key then.
    pub(super) async fn foreign(
        &mut self,
        store: &Store,
        branch: &RefName,
        tip: Option<&CommitId>,
        anchor: Option<&CommitId>,
    ) -> Result<Option<String>, GitError> {
        let (Some(keys), Some(tip)) = (store.trusted(), tip) else { return Ok(None) };
        if self.0.as_ref() == Some(tip) {
            return Ok(None);
        }
        let known: BTreeSet<CommitId> = self.0.iter().chain(anchor).cloned().collect();
        let Some(foreign) = store.foreign(tip, &keys, &known).await? else {
            self.believe(tip.clone());
            return Ok(None);
        };
        Ok(Some(format!(
            "ForeignState: {} is at {tip}, and commit {} there {}. Nothing of it is acted upon. `tidegate state verify` \
             shows what came in; `tidegate state restore COMMIT` brings an earlier record back, `tidegate state adopt` \
             accepts this one",
            branch.short(),
            foreign.commit,
            foreign.verdict
        )))
    }

    /// Takes note of a tip that we have pushed.
    pub(super) fn believe(&mut self, tip: CommitId) {
        self.0 = Some(tip);
    }
}

#[cfg(test)]
mod tests;
