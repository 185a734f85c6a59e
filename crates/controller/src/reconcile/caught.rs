//! A panic while one rollout is planned is that rollout's trouble. Any other ends the process: it would go on with less than it has.

use super::observe::Scene;
use crate::manifest::ids::RolloutId;
use crate::plan::draft::RolloutPlan;
use crate::plan::evidence::Evidence;
use crate::plan::input::{Input, MayStart};
use crate::plan::planner;
use crate::plan::report::{Reason, Wait};
use crate::record::text::plain;
use chrono::TimeDelta;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::process::abort;
use std::sync::Arc;
use tracing::Span;

/// After this time it is tried again, whether anything has changed or not.
const AGAIN: TimeDelta = TimeDelta::minutes(1);

thread_local! {
    /// Whether a panic of this thread is caught.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Where the last one that is caught was, and what it said.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets every panic that [`plan`] does not catch end the process: a task that dies unheard would be waited for without end.
pub fn abort_elsewhere() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if GUARDED.get() {
            let place = panicked.location().map(|at| format!("{}:{}: ", at.file(), at.line()));
            let said = format!("{}{}", place.unwrap_or_default(), text(panicked.payload()));
            SAID.with_borrow_mut(|last| *last = Some(said));
            return;
        }
        before(panicked);
        abort();
    }));
}

/// What one rollout shall do next. Where that cannot be said, for a fault of ours, marks and the brake act all the same; none where not even
/// what is observed of it can be put together.
pub(super) fn plan(
    scene: &Scene<'_>,
    id: &RolloutId,
    evidence: Arc<Evidence>,
    may_start: MayStart,
) -> Option<(Input, RolloutPlan)> {
    let _whose = of_rollout(id).entered();
    let failed = |why: &str| tracing::error!(rollout = %id, why, "this rollout cannot be planned; all others go on");
    let input = guarded(|| scene.input(id, evidence, may_start)).map_err(|why| failed(&why)).ok()?;
    // A plan is a value that is made from values: what a panic leaves of it is nothing.
    let plan = guarded(|| planner::plan(&input)).unwrap_or_else(|why| {
        failed(&why);
        let waits = vec![Wait::new(Reason::PlanFailed, why)];
        let blind = guarded(|| planner::blindly(&input, waits.clone())).unwrap_or_else(|_| planner::hold(waits));
        // What it failed on may be a matter of the time.
        RolloutPlan { wake_at: Some(input.now + AGAIN), ..blind }
    });
    Some((input, plan))
}

/// Whose all is that is logged meanwhile.
pub(super) fn of_rollout(id: &RolloutId) -> Span {
    tracing::info_span!("rollout", %id)
}

/// Does it; `Err` with what a panic in it says.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.map_err(|payload| {
        let said = SAID.with_borrow_mut(Option::take).unwrap_or_else(|| text(&*payload).to_owned());
        plain(&said).chars().take(500).collect()
    })
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    payload.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("a panic without a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_nobody_elses() {
        let why = guarded(|| -> u8 { panic!("attempt to add\nwith {}", "overflow") }).unwrap_err();
        assert!(why.contains("attempt to add") && why.contains("with overflow") && !why.contains('\n'), "{why}");
        assert_eq!(guarded(|| 7), Ok(7), "the next one is done");
        assert!(!GUARDED.get(), "and what comes after is nobody's to catch");
    }
}
