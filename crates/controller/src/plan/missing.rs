//! What the pods of a version cannot do without, and nobody has: a run would make a candidate that never starts, and end at its
//! deadline; first sight would never end. Both wait before anything is made instead, and go on by itself (requirement C-7).

use super::draft::Draft;
use super::evidence::Found;
use super::report::{Reason, Wait};
use crate::manifest::desired::{Plan, Set};
use crate::manifest::object::{Kind, Object};
use crate::manifest::reference::{self, Reference, ReferenceNeed};
use crate::record::state::Time;
use crate::record::text::plain;
use crate::workload::lookup::{Lookup, Presence};
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// For how long an answer holds that something is not there.
pub const AGAIN: TimeDelta = TimeDelta::seconds(10);

/// What a set waits on for what its pods refer to. Answers from before `since` are about something else.
pub fn missing(draft: &mut Draft<'_>, plan: &Plan, set: &Set, since: Time) -> Vec<Wait> {
    let Some(target) = set.get(plan.target.kind.kind(), &plan.target.name) else { return Vec::new() };
    let all = reference::references(target.at("/spec/template").unwrap_or(&Value::Null));
    let mut names = BTreeSet::new();
    let required = all.into_iter().filter(|one| one.need == ReferenceNeed::Required);
    let once: Vec<Reference> = required.filter(|one| names.insert((one.to, one.name.clone()))).collect();
    let (mut told, mut asked) = (BTreeMap::<Reason, Vec<String>>::new(), 0);
    for one in once {
        let seen = match one.to.kind() {
            Some(kind) => watched(draft, plan, set, kind, &one),
            None => given(draft, set, &one).unwrap_or_else(|| looked_up(draft, since, &one)),
        };
        let is_new = matches!(&seen, Seen::Lacking(Reason::ReferenceMissing, _)) && is_given(set, &one);
        let seen = if is_new { Seen::Lacking(Reason::ReferenceMissing, NEW.to_owned()) } else { seen };
        let (reason, why) = match seen {
            Seen::There => continue,
            Seen::Asked => {
                asked += 1;
                continue;
            }
            Seen::Lacking(reason, why) => (reason, why),
        };
        let path = draft.wanted().map_or(&draft.state.source.path, |rollout| &rollout.path);
        let pointer = format!("/spec/template{}", one.pointer);
        let place = reference::place(set, path.parent().as_ref(), target.reference(), &pointer);
        let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
        let text = format!("{} {}, which the pods need{place}, {why}", one.to, one.name);
        told.entry(reason).or_default().push(text);
    }
    if asked > 0 {
        // Only once all is known: what is shown would change with each answer.
        let why = format!("{asked} objects that the pods need are being looked up");
        return vec![Wait::new(Reason::Evidence, why)];
    }
    told.into_iter().map(|(reason, all)| Wait::new(reason, all.join("; "))).collect()
}

/// What is known of something that pods refer to.
enum Seen {
    There,
    Asked,
    Lacking(Reason, String),
}

const NOWHERE: &str = "is neither among the manifests nor in the cluster";
/// What stands beside pods is stable's until the promotion, and so is what it gives.
const NEW: &str = "comes with the promotion alone: bring it to main by itself first, or in a rollout with target: none";

/// Whether something of a watched kind is there. A name that nothing can have is for the API server to refuse.
fn watched(draft: &Draft<'_>, plan: &Plan, set: &Set, kind: Kind, one: &Reference) -> Seen {
    let context = draft.context(plan, None, None);
    let Ok(name) = one.name.parse() else { return Seen::There };
    if set.get(kind, &name).is_some() {
        return Seen::There;
    }
    let why = match context.live.find(kind, context.namespace(), &name) {
        // It came with the manifests, and goes as they do.
        Some(live) if context.is_ours(live) && of_manifests(draft, live) => {
            "is no longer among the manifests: the promotion would remove it"
        }
        Some(_) => return Seen::There,
        None => NOWHERE,
    };
    Seen::Lacking(Reason::ReferenceMissing, why.to_owned())
}

/// What the promoted manifests have is there, or is made again; before there are any, all of a set is made together.
fn given(draft: &Draft<'_>, set: &Set, one: &Reference) -> Option<Seen> {
    let together = match &draft.state.promoted {
        Some(promoted) => draft.input.sets.get(&promoted.set)?,
        None => set,
    };
    is_given(together, one).then_some(Seen::There)
}

fn is_given(set: &Set, one: &Reference) -> bool {
    set.objects.values().any(|object| reference::given(object) == Some((one.to, one.name.as_str())))
}

/// Whether a live object is one that the promoted manifests have.
fn of_manifests(draft: &Draft<'_>, live: &Object) -> bool {
    let promoted = draft.state.promoted.as_ref().and_then(|promoted| draft.input.sets.get(&promoted.set));
    promoted.is_some_and(|set| set.objects.contains_key(live.reference()))
}

/// Whether something is there that has to be looked up. What is not known, or may have come since, is asked.
fn looked_up(draft: &mut Draft<'_>, since: Time, one: &Reference) -> Seen {
    let Ok(name) = one.name.parse() else { return Seen::There };
    let lookup = Lookup { to: one.to, namespace: draft.input.id.namespace.clone(), name };
    let found = draft.input.evidence.looked.get(&lookup).filter(|found| found.at >= since).cloned();
    let Some(Found { presence, at }) = found else {
        draft.lookups.push(lookup);
        return Seen::Asked;
    };
    let seen = match presence {
        // What may not be asked is for the kubelet to tell: the right is not needed for anything else.
        Presence::There(_) | Presence::Forbidden(_) => return Seen::There,
        Presence::Absent => Seen::Lacking(Reason::ReferenceMissing, NOWHERE.to_owned()),
        Presence::Unknown(why) => Seen::Lacking(Reason::Retrying, format!("could not be looked up: {}", plain(&why))),
    };
    if draft.now() >= at + AGAIN {
        draft.lookups.push(lookup);
    } else {
        draft.wake(at + AGAIN);
    }
    seen
}
