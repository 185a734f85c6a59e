//! What has to be over before pods go that people's Service led to until now.

use crate::manifest::desired::Traffic;
use crate::manifest::object::Kind;
use crate::plan::context::Context;
use crate::plan::introduce::written;
use crate::plan::report::{Reason, Wait};
use crate::workload::readiness;

/// Whoever came in by the Service is led elsewhere by then (requirement C-1), and requests in flight drain (requirement C-20): those of a run
/// have done so in *return*. A rollout that left main says nothing of how long that takes.
pub(super) fn pending(context: &Context<'_>) -> Option<Wait> {
    let service = context.naming.switched()?;
    if let Some(pod) = readiness::lagging(context.live, context.namespace(), service) {
        let why = format!("Service {service} still leads to pod {pod}, which it does not ask for any more");
        return Some(Wait::new(Reason::Writing, why));
    }
    let live = context.live.get(&context.object(Kind::Service, service)).filter(|_| context.run.is_none())?;
    let drain = context.plan.traffic.as_ref().map_or(Traffic::DRAIN, |traffic| traffic.drain);
    let at = written(live, context.manager)? + drain.delta();
    let why = format!("Service {service} leads elsewhere: requests in flight have {drain} to drain");
    (context.input.now < at).then(|| Wait::new(Reason::Writing, why).until(at))
}
