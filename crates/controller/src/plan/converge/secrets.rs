//! The copies of tracked Secrets are there before the pods that read them: a run that cannot make one makes no pods either.

use super::Pass;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, ObjectRef};
use crate::manifest::reference::{self, Reference, Referent};
use crate::plan::action::{Class, SecretCopy, Verb};
use crate::plan::adopt;
use crate::plan::report::{Reason, Wait};
use crate::plan::tracked::TrackedView;
use crate::record::state::RoleName;
use crate::workload::live::Expects;
use crate::workload::lookup::Presence;
use crate::workload::tracked::{KEPT, secrets};
use serde_json::Value;
use std::collections::BTreeMap;

impl Pass<'_> {
    /// Anchors, then copies; says whether what follows has to wait.
    pub(super) fn copy_secrets(&mut self) -> bool {
        let context = self.context;
        let mut taken: BTreeMap<ObjectRef, (&ObjectName, &str)> = BTreeMap::new();
        for (copy, of) in secrets(context.input.sets.values().map(AsRef::as_ref)) {
            let anchor = context.object(KEPT, copy);
            if self.rendered.contains_key(&anchor) {
                taken.insert(anchor, of);
            }
        }
        self.write_kind(KEPT, |rendered| taken.contains_key(rendered.object.reference()));
        for (anchor, (secret, version)) in taken {
            if let Some(live) = context.live.get(&anchor) {
                self.copy_secret(live, secret, version);
            }
        }
        self.busy()
    }

    fn copy_secret(&mut self, anchor: &Object, secret: &ObjectName, version: &str) {
        let (context, name) = (self.context, &anchor.reference().name);
        let sight = TrackedView::of(context.input, context.live);
        let (Some(uid), Some(Presence::There(_) | Presence::Absent)) = (anchor.uid(), sight.secret(name)) else {
            let (reason, why) = sight.unseen(Referent::Secret, name);
            let wait = Wait::new(reason, why);
            // What is done with pods that are there needs no look at their copy: least of all to see that they fail.
            if self.is_read(name) {
                self.out.drifted.push(wait);
            } else {
                self.out.waits.push(wait);
            }
            return;
        };
        if let Some(Presence::There(there)) = sight.secret(name) {
            if there.holders.contains(uid) {
                return;
            }
            self.out.waits.push(if there.owner.as_deref() == Some(context.owner) {
                Wait::new(Reason::Writing, format!("Secret {name}, a copy that an earlier run left, is being removed"))
            } else {
                adopt::no_copy(format_args!("Secret {name}"))
            });
            return;
        }
        match sight.content(Referent::Secret, secret) {
            Some(current) if current == version => match sight.unsettled(secret, context.input.now) {
                Some(settled) => {
                    let why =
                        format!("Secret {secret} was written to a moment ago, and may be still: then it is copied");
                    self.out.waits.push(Wait::new(Reason::Evidence, why).until(settled));
                }
                None => self.make_copy(anchor.reference(), uid, secret, version),
            },
            None if matches!(sight.secret(secret), None | Some(Presence::Unknown(_))) => {
                let (reason, why) = sight.unseen(Referent::Secret, secret);
                self.out.waits.push(Wait::new(reason, why));
            }
            Some(_) | None => {
                let why = format!(
                    "Secret {name}, the copy of {secret}, is gone, and that has changed since: pods that refer to the copy \
                     cannot start anew"
                );
                let wait = Wait::new(Reason::ReferenceMissing, why).act("push the next version");
                self.out.drifted.push(wait);
            }
        }
    }

    /// Whether pods were made that read a copy, which was there before them.
    fn is_read(&self, copy: &ObjectName) -> bool {
        let roles = [RoleName::Stable, RoleName::Candidate].into_iter();
        roles.filter_map(|role| self.context.live.get(&self.context.workload(role))).any(|workload| {
            let read = reference::references(workload.at("/spec/template").unwrap_or(&Value::Null));
            let names = |one: &Reference| one.to == Referent::Secret && one.name == copy.as_str();
            workload.int("/spec/replicas") != Some(0) && read.iter().any(names)
        })
    }

    fn make_copy(&mut self, anchor: &ObjectRef, uid: &str, secret: &ObjectName, version: &str) {
        if self.failed_before(anchor, SecretCopy::CONTENT) {
            return;
        }
        let copy = SecretCopy {
            anchor: anchor.clone(),
            expects: Expects::Uid(uid.to_owned()),
            secret: secret.clone(),
            version: version.to_owned(),
            owner: self.context.owner.to_owned(),
        };
        let why = format!("Secret {}: copy of {secret}", anchor.name);
        let posture = Some(self.posture.digest());
        self.out.actions.push(self.context.action(Class::Advance, posture, Verb::CopySecret(Box::new(copy)), why));
    }
}
