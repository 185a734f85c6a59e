//! What a request for a person's decision says and contains, on any Git host: the branch, its base, the files that it adds
//! and the commit message that a person reads. Composed from values; `git` makes the commits.
//!
//! Merging approves; on a host without pull requests, deleting the branch unmerged denies.

use crate::manifest::decision::listed;
use crate::manifest::desired::Plan;
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{InstanceName, Percent, Revision, RolloutId, RunId, StepName};
use crate::manifest::proof::By;
use crate::record::posture::Split;
use crate::record::state::{DeletionQuestion, Run, Void};
use crate::record::text::{exposure, unlinked};
use std::fmt::Write as _;

pub use crate::record::branches::{Asks, Head, approval, decisions_branch, deletion, propose_prefix, state_branch};

/// A request to let a run go on.
#[derive(Debug, Clone, Copy)]
pub struct Advance<'a> {
    /// The instance that asks.
    pub instance: &'a InstanceName,
    /// For which rollout.
    pub rollout: &'a RolloutId,
    /// Its open run.
    pub run: &'a Run,
    /// The plan of that run.
    pub plan: &'a Plan,
    /// The step that approval is asked for: a phase, or `promotion`.
    pub through: &'a StepName,
    /// The words for it that did not count, oldest first.
    pub void: &'a [&'a Void],
}

impl Advance<'_> {
    /// Its branch, based on [`decisions_branch`].
    #[must_use]
    pub fn head(&self) -> Head {
        let asks = Asks::Advance(self.through.clone());
        Head { rollout: self.rollout.clone(), run: self.run.id.clone(), asks }
    }

    /// The one file that it adds to the decisions branch.
    ///
    /// # Panics
    /// Never: names and ids make a short path.
    #[must_use]
    pub fn file(&self) -> (RepoPath, String) {
        approval(self.rollout, &self.run.id, self.through, self.void.len())
    }

    /// The last decision for it, if that did not count.
    pub(super) fn unproven(&self) -> Option<String> {
        let Void { why, through: _, head: _ } = self.void.last()?;
        Some(format!("The last word for it does not count, so it is asked again: {}.", unlinked(why)))
    }

    /// What the step exposes, in words; nothing if all stays on stable.
    pub(super) fn exposes(&self) -> Option<String> {
        exposure(&exposed_at(self.plan, self.through))
    }

    /// What comes after the step was entered.
    pub(super) fn then(&self) -> String {
        let Self { plan, through, .. } = self;
        match plan.phases.iter().find(|phase| phase.name == **through) {
            Some(phase) => format!("stays there for at least {}", phase.soak),
            None if plan.promotion.bake == Span::ZERO => "becomes the stable version".to_owned(),
            None => format!("bakes for {}, then becomes the stable version", plan.promotion.bake),
        }
    }

    /// What a person reads before merging it.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { instance, rollout, run, plan: _, through, void: _ } = self;
        let (decisions, branch) = (decisions_branch(instance), self.head().branch(instance));
        let exposes = self.exposes().map(|words| format!(" ({})", unlinked(&words))).unwrap_or_default();
        let then = format!("and it {}.", self.then());
        let again = self.unproven().map(|why| format!("{why}\n\n")).unwrap_or_default();
        format!(
            "{rollout}: go on to {through}{exposes}\n\n\
             {again}Merging this into {decisions} lets {rollout} go on to\n`{through}`{exposes}, {then}\n\
             It opens every approval gate of this run up to and with `{through}`; windows, freezes\n\
             and checks hold as before. It counts for this run alone: other content makes another run.\n\n\
             Run:      {} (started {})\n\
             Version:  {}\n\
             Source:   {}\n\n\
             {}\n\n\
             To deny (traffic stays where it is, and nothing is asked again before a resume), close\n\
             the pull request unmerged if there is one, or:\n\n    \
             git push origin --delete {branch}\n\n\
             Tidegate-Rollout: {rollout}\nTidegate-Run: {}\nTidegate-Step: {through}\n",
            run.id,
            run.started.format("%Y-%m-%d %H:%M:%SZ"),
            run.revision,
            run.source,
            self.by_git(&decisions, &branch),
            run.id,
        )
    }

    /// How it is merged by hand.
    fn by_git(&self, decisions: &str, branch: &str) -> String {
        let Self { rollout, run, .. } = self;
        let merge = |sign: &str| {
            format!(
                "git fetch origin\n    \
                 git switch --detach origin/{decisions}\n    \
                 git merge --no-ff --no-edit{sign} origin/{branch}\n    \
                 git push origin HEAD:refs/heads/{decisions}"
            )
        };
        // A fast-forward would leave it as it is: not signed.
        if run.rule.as_ref().is_some_and(|rule| rule.by == By::Signatures) {
            return format!(
                "To approve with plain git, as an approver who did not make the version (the merge has\n\
                 to be signed):\n\n    {}\n\n\
                 If there is no {decisions} yet:\n\n    tidegate approve {rollout}",
                merge(" -S")
            );
        }
        format!(
            "To approve with plain git (a merge commit says who approved, a fast-forward does not):\n\n    {}\n\n\
             If there is no {decisions} yet, this becomes its beginning:\n\n    \
             git push origin origin/{branch}:refs/heads/{decisions}",
            merge("")
        )
    }
}

/// What of the users' requests reaches the candidate at a step: phases add up, the promotion takes all.
pub(super) fn exposed_at(plan: &Plan, step: &StepName) -> Split {
    let mut split = Split::stable();
    for phase in &plan.phases {
        split.open(&phase.expose);
        if phase.name == *step {
            return split;
        }
    }
    if plan.traffic.is_some() { Split { weight: Percent::ALL, ..Split::stable() } } else { Split::stable() }
}

/// A request to undo a run's change on main. Traffic has gone back before anybody reads it.
#[derive(Debug, Clone, Copy)]
pub struct RevertRequest<'a> {
    /// The instance that asks.
    pub instance: &'a InstanceName,
    /// The branch that people write, which it is based on.
    pub main: &'a str,
    /// For which rollout.
    pub rollout: &'a RolloutId,
    /// The run that went back.
    pub run: &'a RunId,
    /// The revision that it had brought.
    pub revision: &'a Revision,
    /// The revision that serves.
    pub stable: &'a Revision,
    /// Why it went back; foreign text is welcome.
    pub why: &'a str,
}

impl RevertRequest<'_> {
    /// Its branch, based on main.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { rollout: self.rollout.clone(), run: self.run.clone(), asks: Asks::Revert }
    }

    /// What a person reads before merging it.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { instance, main, rollout, run, revision, stable, why } = self;
        let branch = self.head().branch(instance);
        format!(
            "{rollout}: revert run {run}\n\n\
             Run {run} went back: {}\n\n\
             All traffic is on the stable version already; nothing waits for this request.\n\n\
             Refused:  {revision}\n\
             Stable:   {stable}\n\n\
             Merging this into {main} undoes what run {run} changed in the manifests, file by file;\n\
             what others changed since stays. Without it the revision stays refused until {main}\n\
             changes or a decision says retry.\n\n\
             To merge with plain git:\n\n    \
             git fetch origin\n    \
             git switch {main}\n    \
             git merge --no-edit origin/{branch}\n    \
             git push origin {main}\n\n\
             To leave {main} as it is:\n\n    \
             git push origin --delete {branch}\n\n\
             Tidegate-Rollout: {rollout}\nTidegate-Run: {run}\n",
            unlinked(why),
        )
    }
}

/// A request to let objects go that are more than the policy lets go with one change.
#[derive(Debug, Clone, Copy)]
pub struct Deletion<'a> {
    /// The instance that asks.
    pub instance: &'a InstanceName,
    /// For which rollout.
    pub rollout: &'a RolloutId,
    /// The run that decisions are about.
    pub run: &'a RunId,
    /// What would go, and why.
    pub question: &'a DeletionQuestion,
    /// How many decisions to delete there were in this run.
    pub before: usize,
    /// What proves the decision.
    pub by: Option<By>,
}

impl Deletion<'_> {
    /// Its branch, based on [`decisions_branch`].
    #[must_use]
    pub fn head(&self) -> Head {
        Head { rollout: self.rollout.clone(), run: self.run.clone(), asks: Asks::Delete }
    }

    /// The one file that it adds to the decisions branch.
    #[must_use]
    pub fn file(&self) -> (RepoPath, String) {
        deletion(self.rollout, self.run, self.question.what(), self.before)
    }

    /// `7 objects`.
    pub(super) fn count(&self) -> String {
        match self.question.objects.len() {
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        }
    }

    /// Why they would go.
    pub(super) fn why(&self) -> &'static str {
        match &self.question.successor {
            None => "main has them no longer",
            Some(_) => "they are the stable version's, and go once the new one has taken its place",
        }
    }

    /// What becomes of them with a yes.
    pub(super) fn then(&self) -> &'static str {
        match &self.question.successor {
            None => "they are deleted",
            Some(_) => "the run of the new version may begin, and they are deleted at its end",
        }
    }

    /// What becomes of them with a no.
    pub(super) fn unless(&self) -> &'static str {
        match &self.question.successor {
            None => "all of them stay",
            Some(_) => "all of them stay, and the new version does not come",
        }
    }

    /// What a person reads before merging it.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { instance, rollout, run, question, .. } = self;
        let (decisions, branch) = (decisions_branch(instance), self.head().branch(instance));
        let mut list = String::new();
        for object in listed(&question.objects) {
            writeln!(list, "    {} {}", object.kind, object.name).expect("a String takes all");
        }
        let (count, sign) = (self.count(), if self.by == Some(By::Signatures) { " -S" } else { "" });
        let says =
            if sign.is_empty() { "a merge commit says who" } else { "the merge has to be signed by an approver" };
        format!(
            "{rollout}: delete {count}\n\n\
             These would be deleted, as {}:\n\n{list}\n\
             The policy lets {} go with one change of a rollout (limits.maxDeletions), so nothing of\n\
             it goes without a word. With this merged into {decisions}\n\
             {}. It counts for this list: if something else\n\
             would go, that is asked anew.\n\n\
             To say yes with plain git ({says}):\n\n    \
             git fetch origin\n    \
             git switch --detach origin/{decisions}\n    \
             git merge --no-ff --no-edit{sign} origin/{branch}\n    \
             git push origin HEAD:refs/heads/{decisions}\n\n\
             If there is no {decisions} yet:\n\n    tidegate delete {rollout}\n\n\
             To say no ({}; nothing is asked about them\n\
             again before a resume), close the pull request unmerged if there is one, or:\n\n    \
             git push origin --delete {branch}\n\n\
             Tidegate-Rollout: {rollout}\nTidegate-Run: {run}\n",
            self.why(),
            question.limit,
            self.then(),
            self.unless(),
        )
    }
}

#[cfg(test)]
mod tests;
