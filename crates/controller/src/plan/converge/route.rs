//! Whether the route is in force, and what it says of the version where it is not.

use super::{Drift, Pass};
use crate::plan::context::Context;
use crate::plan::exposure;
use crate::plan::report::{Reason, Wait};
use crate::workload::routers::{RouteStatus, place};

impl Pass<'_> {
    pub(super) fn await_route(&mut self) -> bool {
        // A plain route that nobody runs a gateway for is no reason to hold a rollout at rest.
        if self.drift == Drift::Restore {
            return false;
        }
        match exposure::status(self.context) {
            RouteStatus::Barred { why } if !self.moves_route() => {
                self.out.barred = Some(format!("the gateway does not let the route in: {why}"));
            }
            RouteStatus::Refused { why } | RouteStatus::Barred { why } => {
                self.out.refused = Some(format!("the route was refused: {why}"));
            }
            RouteStatus::Effective | RouteStatus::NotYet { .. } | RouteStatus::Unknown { .. } => {}
        }
        let wait = not_in_force(self.context);
        self.out.waits.extend(wait);
        !self.out.waits.is_empty()
    }

    /// Whether the route belongs elsewhere than where the run began, by the version that the posture has for it.
    fn moves_route(&self) -> bool {
        let context = self.context;
        let route = context.router().and_then(|router| router.route()).map(|(kind, name)| context.object(kind, name));
        let place = |id| context.set(id).zip(route.as_ref()).and_then(|(set, route)| set.objects.get(route)).map(place);
        place(context.base) != place(&self.posture.stable.set)
    }
}

/// Why the route is not in force, if it is not.
#[must_use]
pub fn not_in_force(context: &Context<'_>) -> Option<Wait> {
    match exposure::status(context) {
        RouteStatus::Effective => None,
        RouteStatus::NotYet { why } | RouteStatus::Refused { why } | RouteStatus::Barred { why } => {
            Some(Wait::new(Reason::RouteNotEffective, why))
        }
        RouteStatus::Unknown { why } => Some(Wait::new(Reason::RouteUnknown, why)),
    }
}
