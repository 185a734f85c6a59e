//! Where only files are at hand: what a rollout tracks is taken to be as its record knew it last.

use super::failure::Failure;
use super::repository::{Record, Repository};
use crate::manifest::desired::Rollout;
use crate::manifest::set;
use std::sync::Arc;

/// The rollout with the tracked objects as its open run, else what is promoted, has them.
pub(super) async fn as_recorded(
    repository: &Repository,
    record: &Record,
    rollout: Rollout,
) -> Result<Rollout, Failure> {
    let (target, state) = (&rollout.plan.target, &record.state);
    let last = state.run.as_ref().map(|run| &run.to).or(state.promoted.as_ref().map(|promoted| &promoted.set));
    let Some(last) = last.filter(|_| !target.track.is_empty()) else { return Ok(rollout) };
    let Ok(mut last) = repository.pinned(&rollout.id, last, target).await? else { return Ok(rollout) };
    let Some(object) = rollout.set.get(target.kind.kind(), &target.name) else { return Ok(rollout) };
    last.tracked.retain(|known, _| target.track.all().any(|(kind, name)| (kind, name) == (known.0, &known.1)));
    let set = Arc::new(set::tracking(&rollout.set, object, last.tracked));
    Ok(Rollout { set, ..rollout })
}
