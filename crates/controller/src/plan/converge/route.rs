//! Whether the route is in force, and what it says of the version where it is not.

use super::{Drift, Pass};
use crate::manifest::object::Kind;
use crate::plan::context::Context;
use crate::plan::exposure;
use crate::plan::report::{Reason, Wait};
use crate::workload::compare::differs;
use crate::workload::routers::{RouteStatus, place};
use crate::workload::tree::Finding;

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
            // What the version takes for itself may be what others have.
            RouteStatus::Blocked { why, .. } if self.moves_route() => {
                self.out.refused = Some(format!("the route was refused: {why}"));
            }
            RouteStatus::Effective
            | RouteStatus::NotYet { .. }
            | RouteStatus::Blocked { .. }
            | RouteStatus::Unknown { .. } => {}
        }
        let wait = not_in_force(self.context);
        self.out.waits.extend(wait);
        !self.out.waits.is_empty()
    }

    /// What keeps the route of a shared proxy from being written (requirements T-10, T-11 and T-12), or is only told (T-20). Where live is as it
    /// shall be nothing is kept from anything; and what ends a run waits for none of it.
    pub(super) fn await_tree(&mut self) {
        let context = self.context;
        if context.run.is_some() && self.posture.candidate.is_none() {
            return;
        }
        let route = exposure::routes(context).into_iter().find_map(|route| self.rendered.get(&route));
        let Some((tree, route)) = context.tree().zip(route.map(|rendered| &rendered.object)) else { return };
        let made = |kind: Kind, name: &str| {
            let object = context.object(kind, &name.parse().ok()?);
            let is_seen = !kind.is_other() || context.live.others.contains(&kind);
            let is_there = self.rendered.contains_key(&object) || context.live.get(&object).is_some();
            (is_there || is_seen).then_some(is_there)
        };
        let found: Vec<Wait> = match tree.unread() {
            Some(why) => vec![Wait::new(Reason::RouteUnknown, why)],
            None => tree.findings(route, made).into_iter().map(wait_for).collect(),
        };
        let live = context.live.get(route.reference());
        let is_written = self.drift == Drift::Restore && live.is_some_and(|live| differs(route, live).is_empty());
        if is_written {
            self.out.drifted.extend(found);
        } else {
            self.out.waits.extend(found);
        }
        let told = tree.unread().is_none().then(|| tree.told(route)).flatten();
        self.out.drifted.extend(told.map(|why| Wait::new(Reason::NotDelegated, why)));
    }

    /// Whether the route belongs elsewhere than where the run began, by the version that the posture has for it.
    fn moves_route(&self) -> bool {
        let context = self.context;
        let route = context.router().and_then(|router| router.route()).map(|(kind, name)| context.object(kind, name));
        let place = |id| context.set(id).zip(route.as_ref()).and_then(|(set, route)| set.objects.get(route)).map(place);
        place(context.base) != place(&self.posture.stable.set)
    }
}

fn wait_for(finding: Finding) -> Wait {
    match finding {
        Finding::Missing(why) => Wait::new(Reason::ReferenceMissing, why),
        Finding::Outside(why) => Wait::new(Reason::PathOutside, why),
        Finding::Hidden(why) => Wait::new(Reason::RouteHidden, why),
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
        RouteStatus::Blocked { why, since } => Some(Wait { since, ..Wait::new(Reason::BlockedByPeer, why) }),
        RouteStatus::Unknown { why } => Some(Wait::new(Reason::RouteUnknown, why)),
    }
}
