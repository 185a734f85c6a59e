//! People's decisions: each decision that counts changes the record once.

use super::deletions;
use super::draft::Draft;
use super::forward;
use super::guard::{self, Approvals};
use super::{proof, requests, rollback, tracked};
use crate::gate::decisions::{self, Accepted, DecisionFile, EvaluationInput, loosens};
use crate::manifest::decision::{DecisionAction, Through};
use crate::manifest::duration::Span;
use crate::manifest::ids::RunId;
use crate::manifest::proof::{ApprovalRule, By};
use crate::record::branches::decisions_branch;
use crate::record::history;
use crate::record::state::{Phase, Run, Serving, Void};
use std::borrow::Cow;

/// How far back a decision may go whose rollout's file cannot be read.
pub(super) const DAY: Span = Span::from_secs(86_400);

/// What the decisions ask for beyond the record.
#[derive(Debug, Default)]
pub struct Requested {
    /// The promoted run to go back to.
    pub rollback: Option<RunId>,
    /// Whether a rollback waits until it is known what its version took of Secrets: no run may start meanwhile, which would make it void.
    pub postponed: bool,
    /// To adopt what is live. It is counted by whoever acts on it: the cluster is asked first.
    pub adopt: Option<Accepted>,
    /// To let objects go. It is counted by whoever acts on it: what would go is known there.
    pub delete: Vec<Accepted>,
}

/// Counts each decision that counts, in the order of their files.
pub fn apply(draft: &mut Draft<'_>) -> Requested {
    let mut requested = Requested::default();
    guard::doubt(draft);
    let unheard = guard::unreadable_decisions(draft);
    draft.waits.extend(unheard);
    let (rule, base) = (proof::rule(draft), decisions_branch(&draft.input.me.instance));
    let approvals = guard::approvals(draft);
    let files = files(draft, rule.as_ref(), approvals);
    let input = EvaluationInput {
        record: &draft.state,
        plan: draft.plan.as_deref(),
        files: &files,
        at_start: draft.input.decisions.at_start.as_deref(),
        // One that cannot be followed now is counted all the same: it must not be followed when nobody thinks of it any more.
        rollback_window: draft.wanted().map_or(DAY, |rollout| rollout.rollback_window),
        verifier: rule.as_ref().map(|rule| proof::verifier(draft, rule, &base)),
        now: draft.now(),
    };
    let mut evaluation = decisions::evaluate(&input);
    let unprovable = rule.as_ref().is_some_and(|rule| rule.by == By::Nothing);
    // It would count if it could be proven: whoever has said it is told.
    let all = unprovable.then(|| {
        decisions::evaluate(&EvaluationInput { files: &draft.input.decisions.filed, verifier: None, ..input })
    });
    if all.is_some_and(|all| all.accepted.iter().any(|accepted| loosens(&accepted.decision.action))) {
        guard::tell_unprovable(draft);
    }
    if approvals == Approvals::Void {
        let is_approval = |accepted: &Accepted| requests::kind(&accepted.decision.action).is_some();
        let unproven = evaluation
            .unproven
            .extract_if(.., |unproven| is_approval(&unproven.accepted))
            .map(|unproven| unproven.accepted);
        let void = evaluation.accepted.extract_if(.., |accepted| is_approval(accepted)).chain(unproven).collect();
        guard::void(draft, void);
    }
    if rule.is_none() {
        requests::disown(draft, &mut evaluation.accepted);
    }
    requests::clear(draft);
    for (accepted, why) in evaluation.idle {
        deletions::void(draft, accepted, &why);
    }
    for accepted in evaluation.accepted {
        follow(draft, accepted, &mut requested);
    }
    proof::unproven(draft, evaluation.unproven);
    if evaluation.undated {
        draft.waits.push(guard::undated_decisions(draft));
    }
    guard::settle(draft);
    requested
}

/// Counts a decision and follows it; those that the cluster is asked about first are left to whoever acts on them.
fn follow(draft: &mut Draft<'_>, accepted: Accepted, requested: &mut Requested) {
    match accepted.decision.action {
        DecisionAction::Adopt { .. } => requested.adopt = Some(accepted),
        DecisionAction::Delete { .. } => requested.delete.push(accepted),
        // What that version took of Secrets has to be known before the decision is followed, or counted; an open run goes back first.
        DecisionAction::Rollback if draft.state.run.is_none() && tracked::is_unread(draft.input, &[]) => {
            requested.postponed = true;
        }
        DecisionAction::Approve { .. }
        | DecisionAction::Skip { .. }
        | DecisionAction::Hold
        | DecisionAction::Resume
        | DecisionAction::Retry
        | DecisionAction::Deny
        | DecisionAction::Rollback
        | DecisionAction::Abort => {
            let Accepted { decision, consumed } = accepted;
            draft.count(consumed);
            one(draft, &decision.action, decision.reason.as_deref(), &decision.run, requested);
            if lasts(&decision.action) {
                overrule(draft);
            }
        }
    }
}

/// Whether a decision holds until it is lifted.
fn lasts(action: &DecisionAction) -> bool {
    matches!(action, DecisionAction::Hold | DecisionAction::Deny)
}

/// A no counts in an open run: what was said before to lift one, and is not proven yet or cannot be read, does not lift this.
pub(super) fn overrule(draft: &mut Draft<'_>) {
    if draft.state.run.is_none() {
        return;
    }
    let input = EvaluationInput {
        record: &draft.state,
        plan: None,
        files: &draft.input.decisions.filed,
        at_start: draft.input.decisions.at_start.as_deref(),
        rollback_window: DAY,
        verifier: None,
        now: draft.now(),
    };
    let mut accepted = decisions::evaluate(&input).accepted;
    accepted.retain(|accepted| accepted.decision.action == DecisionAction::Resume);
    for mut accepted in accepted {
        let why = "a person said no before it could count: say it again to lift that".to_owned();
        accepted.consumed.void = Some(Void { why, through: None, head: None });
        proof::void(draft, accepted);
    }
}

/// The decisions that can count now. While no policy can be read nobody knows who has to approve, and where nothing could prove who has
/// nobody ever will: what lets a rollout go further waits.
fn files<'d>(draft: &Draft<'d>, rule: Option<&ApprovalRule>, approvals: Approvals) -> Cow<'d, [DecisionFile]> {
    let all = &draft.input.decisions.filed;
    let unproven = draft.input.policy.unread || rule.is_some_and(|rule| rule.by == By::Nothing);
    if !unproven && approvals != Approvals::Wait {
        return Cow::Borrowed(all);
    }
    let waits = |action: &DecisionAction| if unproven { loosens(action) } else { requests::kind(action).is_some() };
    let restricts = |file: &&DecisionFile| file.decision.as_ref().is_ok_and(|accepted| !waits(&accepted.action));
    all.iter().filter(restricts).cloned().collect()
}

fn one(draft: &mut Draft<'_>, action: &DecisionAction, reason: Option<&str>, named: &RunId, requested: &mut Requested) {
    match action {
        DecisionAction::Approve { through } => {
            with_run(draft, |run| {
                run.approved.push(through.clone());
                run.approved.dedup();
            });
        }
        DecisionAction::Deny => with_run(draft, |run| run.denied = true),
        DecisionAction::Skip { step, through } => with_run(draft, |run| {
            run.skipped = Some(step.clone());
            run.hurried |= *through == Through::Promotion;
        }),
        DecisionAction::Hold => with_run(draft, |run| run.held = true),
        DecisionAction::Resume => {
            deletions::resume(draft);
            with_run(draft, |run| {
                run.held = false;
                if run.denied {
                    run.denied = false;
                    // What was approved is proven by its request once more, before the step is entered.
                    let Run { pulls, approved, .. } = run;
                    pulls.retain(|through, _| approved.contains(through));
                }
            });
        }
        DecisionAction::Abort => {
            draft.aborted = Some(said("abort", reason));
        }
        DecisionAction::Retry => {
            if matches!(draft.state.phase, Phase::Failed { standing: Serving::OnCandidate, .. }) {
                forward::retry_promotion(draft);
            }
            history::forgive(&mut draft.state, named);
        }
        DecisionAction::Rollback if draft.state.run.is_some() => {
            rollback::in_run(draft, named, said("rollback", reason));
        }
        DecisionAction::Rollback => requested.rollback = Some(named.clone()),
        DecisionAction::Adopt { .. } | DecisionAction::Delete { .. } => {}
    }
}

/// Why a run goes back that a person takes back.
fn said(action: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| format!("a person said {action}"), |reason| format!("a person said {action}: {reason}"))
}

fn with_run(draft: &mut Draft<'_>, change: impl FnOnce(&mut Run)) {
    if let Some(run) = &mut draft.state.run {
        change(run);
    }
}
