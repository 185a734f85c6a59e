//! `tidegate delete ROLLOUT`: a person lets objects go that are more than the policy lets go with one change.

use super::check::{Asks, Found};
use super::{Ask, Asked, DecisionArgs, Verb};
use crate::manifest::decision::{DecisionAction, listed};
use crate::record::text::count;
use clap::Args;
use std::fmt::Write;

/// Let objects go that are more than the policy lets go at once
#[derive(Debug, Args)]
#[command(
    long_about = "Lets objects go that are more than `limits.maxDeletions` of the policy lets go with one change of a rollout \
                  (TooManyDeletions). It says what would go, and counts for that list alone: if something else would go, that is \
                  asked anew. Asks first; without a terminal --yes has to be given.",
    after_help = "Examples:
  tidegate delete shop/podinfo
  tidegate delete shop/podinfo --yes --reason \"the old workers are gone for good\"
  tidegate delete shop/podinfo --dry-run"
)]
pub(in crate::cli) struct DeleteArgs {
    /// Does not ask first
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    common: DecisionArgs,
}

impl From<DeleteArgs> for Asked {
    fn from(DeleteArgs { yes, common }: DeleteArgs) -> Self {
        Self { ask: Ask::unless(yes), ..Self::new(Verb::Delete, common) }
    }
}

impl Asks<'_> {
    /// How to answer what people are asked meanwhile; nothing if they are not.
    pub(super) fn asked_to_delete(&self) -> String {
        let id = &self.state.metadata;
        let Some(asked) = &self.state.deletions.asked else { return String::new() };
        let no = asked.pull.as_ref().map(|pull| format!(". No: git push origin --delete {}", pull.branch));
        let (what, no) = (count(asked.objects.len(), "object"), no.unwrap_or_default());
        format!("\nPeople are asked whether {what} may go. Yes: tidegate delete {id}{no}")
    }

    /// What people were asked last is let go.
    pub(super) fn delete(&self) -> Found {
        let id = &self.state.metadata;
        let asked = self.state.deletions.asked.as_ref();
        let denied = self.state.deletions.denied().count();
        let asked = asked.ok_or_else(|| match denied {
            0 => format!("nobody is asked whether objects of {id} may go: {}", self.stands()),
            denied => {
                let what = count(denied, "object");
                format!("a person said no to the deletion of {what}; lift that first: tidegate resume {id}")
            }
        })?;
        let what = count(asked.objects.len(), "object");
        let mut next = match &asked.successor {
            None => format!("Once tidegate has counted this, {what} of {id} are deleted:"),
            Some(_) => {
                format!(
                    "Once tidegate has counted this, the new version of {id} may begin, and with its end {what} are deleted:"
                )
            }
        };
        for object in listed(&asked.objects) {
            let _ = write!(next, "\n  {} {}", object.kind, object.name);
        }
        let _ = write!(next, "\nIf something else would go by then, nothing does, and that is asked anew.");
        let (objects, successor) = (asked.objects.clone(), asked.successor.clone());
        Ok((self.state.current(), DecisionAction::Delete { objects, successor }, next))
    }
}
