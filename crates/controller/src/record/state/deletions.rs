//! Objects that are more than the policy lets go with one change: what people are asked about them, and what they have said.

use super::{Proven, Pull, Time};
use crate::manifest::ids::SetId;
use crate::manifest::object::ObjectRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What people are asked about deletions, and what they have said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deletions {
    /// What they are asked; none if nothing would go, it is not too much, or they have said what is to become of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<DeletionQuestion>,
    /// What they have said of objects that are still there, or still to go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<DeletionAnswer>,
}

/// What people are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletionQuestion {
    /// All that would go.
    pub objects: BTreeSet<ObjectRef>,
    /// How many the policy lets go with one change.
    pub limit: usize,
    /// The version that is to take the place of theirs, whose run waits for the decision; none where main has them no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<SetId>,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
    /// The decisions branch was seen without protection, and not with one since: who has answered meanwhile could be anybody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unkept: bool,
}

/// What people have said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletionAnswer {
    /// What they were asked about.
    pub objects: BTreeSet<ObjectRef>,
    /// The version for which they may go; none where main has them no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<SetId>,
    /// What.
    pub said: DeletionVerdict,
}

/// Yes or no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeletionVerdict {
    /// They may go.
    Yes(Consent),
    /// They stay, and nothing is asked about them again before `resume`.
    No,
    /// No, and that was lifted: people are asked again, however few they are.
    Again,
}

/// Who has let objects go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consent {
    /// Who brought the decision to the decisions branch.
    pub by: String,
    /// When it was counted.
    pub at: Time,
    /// How it was proved, as of any decision.
    pub proof: String,
    /// What proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<Proven>,
}

impl DeletionQuestion {
    /// What may go, and for which version: what a decision for it has to say.
    #[must_use]
    pub fn what(&self) -> (&BTreeSet<ObjectRef>, Option<&SetId>) {
        (&self.objects, self.successor.as_ref())
    }

    /// Whether a decision answers it: it is for the same version, and lists all that would go. Why not.
    ///
    /// # Errors
    /// What it lacks, for people.
    pub fn answered(&self, listed: &BTreeSet<ObjectRef>, successor: Option<&SetId>) -> Result<(), String> {
        if self.successor.as_ref() != successor {
            return Err("it is for another version than people are asked about".to_owned());
        }
        let other = self.objects.iter().find(|object| !listed.contains(*object));
        other.map_or(Ok(()), |other| Err(format!("{other} would go too, which it does not list")))
    }
}

impl Deletions {
    /// Whether nobody is asked and nothing was said.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.asked.is_none() && self.said.is_empty()
    }

    /// People have answered a question.
    pub fn answer(&mut self, DeletionQuestion { objects, successor, .. }: DeletionQuestion, said: DeletionVerdict) {
        for again in self.said.iter_mut().filter(|answer| answer.said == DeletionVerdict::Again) {
            again.objects.retain(|object| !objects.contains(object));
        }
        self.said.retain(|answer| !answer.objects.is_empty());
        self.said.push(DeletionAnswer { objects, successor, said });
        self.asked = None;
    }

    /// Lifts what was denied.
    pub fn resume(&mut self) {
        self.said
            .iter_mut()
            .filter(|answer| answer.said == DeletionVerdict::No)
            .for_each(|answer| answer.said = DeletionVerdict::Again);
    }

    /// The run that brings a version took something along: what was said of that, or is asked, is about what it brings now.
    pub fn renamed(&mut self, old: &SetId, new: &SetId) {
        let asked = self.asked.iter_mut().map(|asked| &mut asked.successor);
        let all = asked.chain(self.said.iter_mut().map(|answer| &mut answer.successor));
        all.filter(|successor| successor.as_ref() == Some(old)).for_each(|successor| *successor = Some(new.clone()));
    }

    /// That version is stable, or was taken back: what was said for it is about what main has no longer, or over.
    pub fn ended(&mut self, version: &SetId, is_stable: bool) {
        let is_about = |answer: &DeletionAnswer| answer.successor.as_ref() == Some(version);
        if !is_stable {
            self.said.retain(|answer| !is_about(answer));
        }
        self.said.iter_mut().filter(|answer| is_about(answer)).for_each(|answer| answer.successor = None);
    }

    /// What a version has, or is to have, is not let go any more, nor denied.
    pub fn keep(&mut self, has: impl Fn(&ObjectRef) -> bool) {
        for DeletionAnswer { objects, .. } in self.said.iter_mut().filter(|answer| answer.successor.is_none()) {
            objects.retain(|object| !has(object));
        }
        self.said.retain(|answer| !answer.objects.is_empty());
    }

    /// What was said of an object, where that version is stable or to become it.
    #[must_use]
    pub fn said_of(&self, object: &ObjectRef, version: Option<&SetId>) -> Option<&DeletionVerdict> {
        let is_for = |answer: &&DeletionAnswer| answer.successor.is_none() || answer.successor.as_ref() == version;
        self.said.iter().filter(is_for).rfind(|answer| answer.objects.contains(object)).map(|answer| &answer.said)
    }

    /// All that may go by what people have said.
    pub fn let_go(&self) -> impl Iterator<Item = &ObjectRef> {
        self.said
            .iter()
            .filter(|answer| matches!(answer.said, DeletionVerdict::Yes(_)))
            .flat_map(|answer| &answer.objects)
    }

    /// All that was denied.
    pub fn denied(&self) -> impl Iterator<Item = &ObjectRef> {
        self.said.iter().filter(|answer| answer.said == DeletionVerdict::No).flat_map(|answer| &answer.objects)
    }
}
