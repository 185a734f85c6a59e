//! One object towards what the posture says of it: written, put back, or shown as different.

use super::{Drift, Pass};
use crate::manifest::object::{APPLIED, Kind, Object, ObjectRef, RETREATED};
use crate::manifest::scaler;
use crate::plan::action::{Class, Verb};
use crate::plan::context::{Context, exactly, seq_of};
use crate::plan::report::{Reason, Wait};
use crate::plan::{exposure, introduce};
use crate::record::posture::{Naming, Posture, Split};
use crate::record::state::RoleName;
use crate::workload::inplace::{self, Rendered};
use crate::workload::kinds::{service, shared};
use crate::workload::live::{Expects, WriteOutcome};
use crate::workload::{compare, layouts, managers, owned};
use chrono::TimeDelta;

impl Pass<'_> {
    pub(super) fn write_kind(&mut self, kind: Kind, which: impl Fn(&Rendered) -> bool) {
        let due: Vec<ObjectRef> = self
            .rendered
            .iter()
            .filter(|(reference, rendered)| reference.kind == kind && which(rendered))
            .map(|(reference, _)| reference.clone())
            .collect();
        for reference in due {
            self.write(&reference);
        }
    }

    /// Writes one object if it is due (design §6): equal hash and no drift → no write.
    fn write(&mut self, reference: &ObjectRef) {
        let Some(rendered) = self.rendered.get(reference) else { return };
        let Some(live) = self.context.live.get(reference) else {
            self.apply(reference, Class::Advance, "create");
            return;
        };
        let digest = compare::applied_digest(&rendered.object);
        let applied = self.context.is_ours(live)
            && live.annotation(APPLIED) == Some(digest.as_str())
            && shared::role(live) == rendered.role;
        let mark_changes = live.annotation(RETREATED) != self.context.mark;
        let fenced = self.context.fence.is_some_and(|fence| seq_of(live, self.context.manager) < fence);
        let differences = compare::differs(&rendered.object, live);
        if !applied || mark_changes || fenced {
            // Marks are lifted, and fences written, over exactly what was read; so is the candidate's size raised.
            let by_rule = rendered.role == RoleName::Stable && applied_before(live) && only_size(&differences);
            let class = if by_rule && !mark_changes && !fenced { Class::Upkeep } else { Class::Advance };
            let why = differences.first().map_or_else(|| "marks".to_owned(), ToString::to_string);
            self.apply(reference, class, &why);
        } else if !differences.is_empty() {
            self.drifted(reference, live, &differences);
        } else {
            self.migrate(live);
        }
    }

    /// Makes the field managers of client-side apply ours, so that fields can go. A status that is written meanwhile makes
    /// it stale: then it is planned again.
    pub(super) fn migrate(&mut self, live: &Object) {
        if managers::client_side_managed(live) {
            let expects = Expects::Uid(live.uid().unwrap_or_default().to_owned());
            let verb = Verb::Migrate { target: live.reference().clone(), expects };
            let posture = Some(self.posture.digest());
            let why = format!("{}: field managers of client-side apply become ours", live.reference());
            self.out.actions.push(self.context.action(Class::Upkeep, posture, verb, why));
        }
    }

    fn drifted(&mut self, reference: &ObjectRef, live: &Object, differences: &[compare::Difference]) {
        let what = differences.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
        if self.drift == Drift::Restore {
            self.apply(reference, Class::Upkeep, &format!("put back {what}"));
            return;
        }
        let carries = exposure::routes(self.context).contains(live.reference());
        let live_split = exposure::live_split(self.context);
        if carries && live_split.is_err() {
            // Nothing could be lowered first, and what nobody can read is no share that a hand has lowered.
            self.apply(reference, Class::Advance, &format!("exposure back to the record: {what}"));
            return;
        }
        let same = live_split.is_ok_and(|split| self.context.reached(&split, self.posture));
        if carries && !same {
            let why = format!("{reference}: {what}");
            self.out.waits.push(Wait::new(Reason::LoweredByHand, why));
        } else {
            self.out.drifted.push(Wait::new(Reason::Drifted, format!("{reference}: {what}")));
        }
    }

    pub(super) fn apply(&mut self, reference: &ObjectRef, class: Class, why: &str) {
        let Some(rendered) = self.rendered.get(reference) else { return };
        let live = self.context.live.get(reference);
        let there = live.map(|live| (introduce::toward(self.context, &rendered.object, live), rendered.role));
        let (object, role) = there.unwrap_or_else(|| self.at_first(rendered));
        if self.failed_before(reference, &compare::applied_digest(&object)) {
            return;
        }
        let seq = if class == Class::Retreat { self.context.read } else { self.context.seq };
        let mut object = Context { seq, ..*self.context }.marked(&object, role);
        let theirs = live.and_then(|live| mark_of_others(live, self.context.manager));
        if let (None, Some(theirs)) = (self.context.mark, theirs) {
            // An apply removes only what is ours alone, and takes only what it changes: the next one removes the mark.
            object.annotate(RETREATED, if theirs.is_empty() { "-" } else { "" });
        }
        let verb = Verb::Apply { object: Box::new(object), expects: exactly(live) };
        let posture = if class == Class::Retreat { None } else { Some(self.posture.digest()) };
        self.out.actions.push(self.context.action(class, posture, verb, format!("{reference}: {why}")));
        if let Some(live) = live {
            self.migrate(live);
        }
    }

    /// Brings a route down to nothing for the candidate. The share of the record comes with what waits for the record.
    pub(super) fn bring_down(&mut self, live: &Object) {
        let (reference, object) = (live.reference(), exposure::at_stable(self.context, live));
        let digest = compare::applied_digest(&object);
        // Who cannot serve gets nobody: then it is put back with what waits for the record.
        let serves = exposure::ready(self.context).stable > 0;
        if !serves || compare::differs(&object, live).is_empty() || self.failed_before(reference, &digest) {
            return;
        }
        let verb = Verb::Apply { object: Box::new(object), expects: exactly(Some(live)) };
        let why = format!("{reference}: all traffic to stable: a hand exposes it in a way of its own");
        self.out.actions.push(self.context.action(Class::Retreat, None, verb, why));
    }

    /// What is created exposes nothing: a paused leader may create late what another run has deleted. Size and split come with
    /// a later tick. A workload that both roles share is made with stable's pods: it knows no other revision yet.
    fn at_first(&self, rendered: &Rendered) -> (Object, RoleName) {
        let reference = rendered.object.reference();
        let is_candidate = rendered.role == RoleName::Candidate;
        if is_candidate && reference.kind == Kind::Deployment {
            return (layouts::with_replicas(rendered.object.clone(), Some(0)), rendered.role);
        }
        if is_candidate && reference.kind == Kind::Service && *reference == self.context.workload(RoleName::Candidate) {
            return (service::leading_nowhere(rendered.object.clone()), rendered.role);
        }
        let candidate = self.posture.candidate.clone().filter(|_| self.posture.naming != Naming::Shared);
        let mut lowered = Posture { split: Split::stable(), candidate, ..self.posture.clone() };
        if self.posture.naming.services().is_some() && !self.posture.split.is_stable() {
            // The new version's own route is for nobody before *return*.
            lowered.stable.set.clone_from(self.context.base);
        }
        let object = inplace::render(&lowered, &self.context.facts()).ok().and_then(|mut all| all.remove(reference));
        object.map_or_else(|| (rendered.object.clone(), rendered.role), |lowered| (lowered.object, lowered.role))
    }

    /// The last write of the same content failed: tell why, and try again after a while.
    pub(super) fn failed_before(&mut self, reference: &ObjectRef, digest: &str) -> bool {
        let key = (reference.clone(), digest.to_owned());
        let answer = self.context.input.evidence.writes.get(&key);
        let Some(answer) = answer.filter(|answer| answer.at >= self.context.since) else { return false };
        let Some((reason, message, pause)) = failure(reference, &answer.outcome) else { return false };
        if let WriteOutcome::Refused(why) = &answer.outcome {
            self.out.refused.get_or_insert_with(|| format!("{reference} was refused: {why}"));
        }
        let again = answer.at + pause;
        self.out.waits.push(Wait::new(reason, message).since(answer.at).until(again));
        self.context.input.now < again
    }
}

/// What to tell of a write that did not succeed, and how long to leave it.
pub fn failure(reference: &ObjectRef, outcome: &WriteOutcome) -> Option<(Reason, String, TimeDelta)> {
    let (reason, message, pause) = match outcome {
        WriteOutcome::Done(_) | WriteOutcome::Stale(_) => return None,
        WriteOutcome::Refused(why) => (Reason::Retrying, format!("{reference}: {why}"), 30),
        WriteOutcome::Conflict { manager, fields } => {
            (Reason::FieldConflict, format!("{reference}: {manager} owns {}", fields.join(", ")), 30)
        }
        WriteOutcome::Forbidden(why) => (Reason::Forbidden, why.clone(), 30),
        WriteOutcome::MissingKind(kind) => (Reason::CrdMissing, format!("the cluster does not serve {kind}"), 30),
        WriteOutcome::Retriable(why) => (Reason::Retrying, format!("{reference}: {why}"), 2),
    };
    Some((reason, message, TimeDelta::seconds(pause)))
}

/// A mark of going back that is also, or only, another manager's.
fn mark_of_others<'a>(live: &'a Object, manager: &str) -> Option<&'a str> {
    let theirs = owned::annotators(live, RETREATED).iter().any(|by| *by != manager);
    live.annotation(RETREATED).filter(|_| theirs)
}

fn applied_before(live: &Object) -> bool {
    live.annotation(APPLIED).is_some()
}

fn only_size(differences: &[compare::Difference]) -> bool {
    !differences.is_empty() && differences.iter().all(|d| scaler::is_size(&d.pointer))
}
