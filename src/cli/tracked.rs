//! Where only files are at hand: what a rollout tracks is taken to be as its record knew it last.

use super::failure::Failure;
use super::repository::Repository;
use crate::manifest::desired::Rollout;
use crate::plan::outlook::tracking;
use crate::report::view::Record;

/// The rollout with the tracked objects as its open run, else what is promoted, has them.
pub(super) async fn as_recorded(
    repository: &Repository,
    record: &Record,
    rollout: Rollout,
) -> Result<Rollout, Failure> {
    let (target, state) = (&rollout.plan.target, &record.state);
    let last = state.run.as_ref().map(|run| &run.to).or(state.promoted.as_ref().map(|promoted| &promoted.set));
    let Some(last) = last.filter(|_| !target.track.is_empty()) else { return Ok(rollout) };
    Ok(match repository.pinned(&rollout.id, last, target, state).await? {
        Ok(last) => tracking(rollout, last.tracked),
        Err(_) => rollout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::validate;
    use crate::manifest::installation::Caps;
    use crate::manifest::load::load;
    use crate::manifest::reference::Referent;
    use crate::manifest::tracked::{Taken, Tracked};
    use std::path::Path;
    use std::sync::Arc;

    fn taken(names: &[&str]) -> Tracked {
        let one = |name: &&str| {
            let copy = format!("{name}-primary-1").parse().unwrap();
            ((Referent::ConfigMap, name.parse().unwrap()), Taken { content: "sha256:1".to_owned(), copy })
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn c_7_what_is_tracked_is_as_it_was_known_last() {
        let files = validate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo")).unwrap();
        let mut loaded = load(&files, &Caps::unknown());
        let mut rollout = loaded.rollouts.remove(&"shop/podinfo".parse().unwrap()).unwrap().unwrap();
        rollout.plan.target.track.config_maps = vec!["podinfo".parse().unwrap()];
        let plain = Arc::clone(&rollout.set);
        let known = tracking(rollout, taken(&["podinfo", "others"]));
        assert_eq!(known.set.tracked, taken(&["podinfo"]), "what is tracked no more goes");
        assert!(known.set.revision != plain.revision && known.set.pods != plain.pods);
        assert_eq!(tracking(known, Tracked::new()).set, plain);
    }
}
