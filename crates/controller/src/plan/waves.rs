//! A run that waits for other clusters. Once it has entered its first step nobody's waits for it any more.

use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::gate::wave::{WaveTurn, Waves};
use crate::record::state::{Route, Run, Time};

/// Why the run may not begin in this cluster yet. What goes back to a version of before waits for no other cluster.
pub(super) fn turn(draft: &mut Draft<'_>, run: &Run) -> Option<Wait> {
    let waves = draft.input.policy.waves.clone().filter(|_| run.route != Route::Rollback)?;
    let now = draft.now();
    // What makes no version may have come along since.
    let set = draft.input.sets.get(&run.to);
    let revision = set.map_or(&run.revision, |set| &set.revision);
    let (soak, first) = match waves.turn(&draft.input.me.cluster, revision, &run.revision) {
        WaveTurn::Failed(why) => {
            precede(draft, None, "it failed in a cluster that is before this one");
            return Some(Wait::new(Reason::WaveFailed, why));
        }
        WaveTurn::Waits(why) => {
            precede(draft, None, "a cluster of the waves before does not have it any more");
            return Some(Wait::new(Reason::Wave, why));
        }
        WaveTurn::Next { soak, first } => (soak, first),
    };
    let since = run.preceded.unwrap_or(now);
    if run.preceded.is_none() && !soak.is_zero() {
        precede(draft, Some(now), "the waves before have it");
    }
    let until = since + soak.delta();
    if let Some(why) = first {
        return Some(Wait::new(Reason::Wave, why));
    }
    if until <= now {
        return None;
    }
    draft.wake(until);
    let why = "the waves before have had the version for less time than fleet.yaml asks".to_owned();
    Some(Wait::new(Reason::Wave, why).until(until))
}

fn precede(draft: &mut Draft<'_>, since: Option<Time>, what: &str) {
    if let Some(open) = draft.state.run.as_mut().filter(|open| open.preceded != since) {
        open.preceded = since;
        draft.note(what);
    }
}

/// Why nothing new is entered here: the fleet says that this cluster is another one, or somebody else's.
pub(super) fn mistaken(draft: &Draft<'_>) -> Option<Wait> {
    let Waves { fleet, .. } = draft.input.policy.waves.as_ref()?;
    let me = &draft.input.me;
    let why = fleet.mistaken(&me.cluster, &me.instance, &me.cluster_uid)?;
    Some(Wait::new(Reason::ClusterMismatch, why))
}
