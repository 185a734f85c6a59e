//! A decisions branch that the Git host does not keep for those who may decide: no approval that was given on it opens a gate, and no decision
//! lets objects go, then or later. And approvers whose decision nothing could prove.

use super::draft::Draft;
use super::proof;
use super::report::{Reason, Wait};
use crate::gate::approval;
use crate::gate::decisions::{Accepted, through};
use crate::gate::guard::Guard;
use crate::manifest::decision;
use crate::manifest::ids::StepName;
use crate::manifest::proof::By;
use crate::record::branches::decisions_branch;
use crate::record::state::{Consumed, RolloutState, Run, Void};
use crate::record::text::plain;

/// Why an approval is void that came to a branch without protection.
const UNKEPT: &str = "it was given while the decisions branch was not protected";

/// What can be done where nothing could prove a decision.
pub const PROVE: &str =
    "set repository.allowedSignersFile or repository.forge in the Installation, or trust: writers in the policy";

/// Notes that the decisions branch is not protected, and takes back what was approved of steps that are still to be entered: whoever may
/// write to the repository could have done that. What was entered stays (C-15), and so does that objects may go which were let go before.
pub fn doubt(draft: &mut Draft<'_>) {
    let is_doubtful = match draft.input.policy.guard {
        Guard::Open { .. } => true,
        // Nobody knows what the rule lets through, and nothing else proves a decision.
        Guard::Hidden { .. } => proof::rule(draft).is_none(),
        Guard::Unasked | Guard::Unknown | Guard::Untold(_) | Guard::Kept => false,
    };
    if !is_doubtful {
        return;
    }
    if let Some(asked) = draft.state.deletions.asked.as_mut().filter(|asked| !asked.unkept) {
        asked.unkept = true;
        draft.note("the decisions branch is not protected: no word on it lets objects go");
    }
    let Some((plan, run)) = draft.plan.clone().zip(draft.state.run.as_mut()) else { return };
    let ahead = approval::ahead(&plan, draft.state.phase.position().map(|position| &position.step));
    if run.unkept || ahead.is_empty() {
        return;
    }
    run.unkept = true;
    let reaches =
        |reach: &StepName| ahead.iter().any(|gate| approval::covers(&plan, std::slice::from_ref(reach), gate));
    let Run { approved, pulls, .. } = run;
    let lost: Vec<StepName> = approved.extract_if(.., |reach| reaches(reach)).collect();
    // Requests for what was approved are withdrawn: that one is gone is no answer, and all are made anew.
    pulls.retain(|step, _| approval::covers(&plan, approved, step) || !approval::covers(&plan, &lost, step));
    let id = run.id.clone();
    draft.note("the decisions branch is not protected: no approval on it counts");
    for n in 0..draft.state.consumed.len() {
        let decision = &draft.state.consumed[n];
        let counted = decision.run == id && decision.action == "approve" && decision.void.is_none();
        let Some(step) = reach_of(draft, decision).filter(|reach| counted && reaches(reach)) else { continue };
        let head = proof::request(draft, &step);
        draft.state.consumed[n].void = Some(Void { why: UNKEPT.to_owned(), through: Some(step), head });
    }
}

/// How far an approval reaches that was counted. Its file may have left the branch since; then the name tells, which says so too.
fn reach_of(draft: &Draft<'_>, decision: &Consumed) -> Option<StepName> {
    let file =
        || draft.input.decisions.filed.iter().find(|file| file.path == decision.path && file.blob == decision.blob);
    let filed = || through(&file()?.decision.as_ref().ok()?.action).cloned();
    let proven = decision.proven.as_ref().and_then(|proven| proven.through.clone());
    proven.or_else(filed).or_else(|| decision::approves(&decision.path, &decision.run))
}

/// What becomes of approvals, and of words that let objects go, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// They count.
    Count,
    /// They are void: some may be from when the branch was not protected.
    Void,
    /// They wait: nobody knows whether it is by now.
    Wait,
}

/// What becomes of them now. That the branch is protected again is believed of what comes later: a plan is carried out only if
/// the branch is then where it was when it was read.
pub fn approvals(draft: &Draft<'_>) -> Approvals {
    let RolloutState { run, deletions, .. } = &draft.state;
    if !run.as_ref().is_some_and(|run| run.unkept) && !deletions.asked.as_ref().is_some_and(|asked| asked.unkept) {
        return Approvals::Count;
    }
    match draft.input.policy.guard {
        // By now the policy trusts whoever may write.
        Guard::Unasked => Approvals::Count,
        Guard::Kept | Guard::Open { .. } | Guard::Hidden { .. } => Approvals::Void,
        Guard::Unknown | Guard::Untold(_) => Approvals::Wait,
    }
}

/// Counts none of these approvals.
pub fn void(draft: &mut Draft<'_>, decisions: Vec<Accepted>) {
    for mut decision in decisions {
        let through = through(&decision.decision.action).cloned();
        decision.consumed.void = Some(Void { why: UNKEPT.to_owned(), through, head: None });
        proof::void(draft, decision);
    }
}

/// Whether a decision may lie there that nobody can hear now: that a request is gone is no answer then.
#[must_use]
pub fn is_deaf(draft: &Draft<'_>) -> bool {
    draft.input.policy.unread
        || draft.input.decisions.unreadable.is_some()
        || draft.input.decisions.at_start.is_none()
        || approvals(draft) == Approvals::Wait
        || proof::rule(draft).is_some_and(|rule| rule.by == By::Nothing)
}

/// From now on they count again, where the branch is protected.
pub fn settle(draft: &mut Draft<'_>) {
    let is_kept = match &draft.input.policy.guard {
        Guard::Kept | Guard::Unasked => true,
        // Whatever the rule lets through, a decision alone opens nothing.
        Guard::Hidden { .. } => proof::rule(draft).is_some(),
        Guard::Unknown | Guard::Untold(_) | Guard::Open { .. } => false,
    };
    if !is_kept {
        return;
    }
    let RolloutState { run, deletions, .. } = &mut draft.state;
    let run = run.as_mut().map(|run| std::mem::take(&mut run.unkept));
    let asked = deletions.asked.as_mut().map(|asked| std::mem::take(&mut asked.unkept));
    if [run, asked].contains(&Some(true)) {
        draft.note("the decisions branch is protected: what is said on it counts again");
    }
}

/// That nobody knows what people say about the rollout.
#[must_use]
pub fn unreadable_decisions(draft: &Draft<'_>) -> Option<Wait> {
    let why = draft.input.decisions.unreadable.as_ref()?;
    let branch = decisions_branch(&draft.input.me.instance);
    let why = format!("what {branch} has about this rollout cannot be read, so no word about it is heard: {why}");
    Some(Wait::new(Reason::DecisionsUnreadable, plain(&why)))
}

/// That nobody knows which words are later than the run that they mean.
#[must_use]
pub fn undated_decisions(draft: &Draft<'_>) -> Wait {
    let branch = decisions_branch(&draft.input.me.instance);
    let run = draft.state.current();
    let why = format!(
        "{branch} was rewritten, and nobody can tell what was said there before run {run} started: what lets it go further is not \
         heard, what stops it or takes it back is"
    );
    Wait::new(Reason::DecisionsUnreadable, plain(&why))
}

/// Why gates that wait for a decision of approvers stay closed where nothing could prove one.
#[must_use]
pub fn unprovable(draft: &Draft<'_>) -> Option<Wait> {
    let rule = proof::rule(draft).filter(|rule| rule.by == By::Nothing)?;
    let who = rule.approvers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let why = format!(
        "the policy names who may approve ({who}), and nothing can prove that they did: the installation names neither a Git host \
         with reviews nor a list of allowed signers"
    );
    Some(Wait::new(Reason::ProofUnavailable, plain(&why)).act(PROVE))
}

/// The same, if it is not told already.
pub fn tell_unprovable(draft: &mut Draft<'_>) {
    let untold = unprovable(draft).filter(|wait| !draft.waits.contains(wait));
    draft.waits.extend(untold);
}

/// Why gates that wait for a person's decision stay closed, and objects stay that wait for one, whatever stands on the decisions branch.
#[must_use]
pub fn unprotected(draft: &Draft<'_>) -> Option<Wait> {
    let branch = decisions_branch(&draft.input.me.instance);
    match &draft.input.policy.guard {
        Guard::Unasked | Guard::Kept => None,
        // Whatever the rule lets through, a decision alone opens nothing.
        Guard::Hidden { .. } if proof::rule(draft).is_some() => None,
        Guard::Hidden { act } => {
            let why = format!("{branch} has a rule, and the Git host does not tell what it asks for");
            Some(Wait::new(Reason::ApprovalUnprotected, why).act(act.clone()))
        }
        Guard::Unknown => {
            Some(Wait::new(Reason::Evidence, format!("the Git host is asked whether {branch} is protected")))
        }
        Guard::Untold(why) => {
            let why = format!("nobody knows whether {branch} is protected: {why}");
            let act = "look at the Git host, and at the rights of the controller's token there: tidegate doctor";
            Some(Wait::new(Reason::ApprovalUnprotected, plain(&why)).act(act))
        }
        Guard::Open { why, act } => {
            let wait = Wait::new(Reason::ApprovalUnprotected, format!("{branch} is not protected: {why}"));
            Some(wait.act(act.clone()))
        }
    }
}
