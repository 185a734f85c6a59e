//! Entering a step: gates, evidence and people's decisions. Gates are judged on entry: one that closes never stops a step
//! that was entered (C-15).

use super::action::{Ask, Proposal};
use super::adopt::{self, Reply};
use super::along::{self, TakenAlong};
use super::back::{self, Superseding, Turn};
use super::checks;
use super::decisions;
use super::denial;
use super::draft::Draft;
use super::floor;
use super::forward;
use super::guard;
use super::input::{Git, MayStart};
use super::jobs::{self, Way};
use super::joined::joined;
use super::missing;
use super::procedure::{Stage, Step};
use super::proof;
use super::report::{Reason, Wait};
use super::requests::{self, Lies};
use super::waves;
use crate::analysis::judge::{self, CheckState, Verdict};
use crate::gate::approval;
use crate::gate::schedule::WindowState;
use crate::manifest::desired::{Plan, Suspend, WebhookCall};
use crate::manifest::ids::{CommitId, StepName};
use crate::manifest::proof::By;
use crate::record::branches::Asks;
use crate::record::history::{self, voids};
use crate::record::posture::{Directly, Posture, Role, Size, Split};
use crate::record::state::{Phase, Position, Pull, Rest, RoleName, Route, Run, Serving, Void};
use crate::record::text::plain;
use crate::rules::{Rule, holds};
use crate::workload::inplace;
use crate::workload::live::LiveState;
use std::sync::Arc;

/// A run that has not entered its first step: nothing of it is in the cluster.
pub fn start(draft: &mut Draft<'_>, plan: &Arc<Plan>, run: &Run, steps: &[Step]) {
    if let Some(turn) = back::asked_for(draft, run, Superseding::Interrupts) {
        drop_run(draft, run, &turn);
        return;
    }
    if draft.unread.is_some() {
        return;
    }
    let taken = along::take(draft, plan, run, None);
    if taken != TakenAlong::Recorded {
        begin(draft, plan, run, steps);
        along::tell(draft, taken);
    }
}

fn begin(draft: &mut Draft<'_>, plan: &Arc<Plan>, run: &Run, steps: &[Step]) {
    let Some(first) = steps.first() else { return };
    // Before its turn nobody is asked anything for it, and nothing is tried.
    if let Some(turn) = waves::turn(draft, run) {
        let barred = barred(draft);
        draft.waits.extend(barred.into_iter().chain([turn]));
        return;
    }
    let mut waits = gates(draft, plan, run, first);
    // What goes back to a version of before waits for nobody else's.
    if let (MayStart::No { limit }, Route::Phases | Route::Plain) = (draft.input.policy.may_start, run.route) {
        let why = format!("{limit} runs are under way, as many as the policy allows");
        waits.push(Wait::new(Reason::Concurrency, why));
    }
    if let Some(set) = draft.input.sets.get(&run.to).cloned() {
        waits.extend(missing::missing(draft, plan, &set, run.started));
    }
    let tried = jobs::failed(draft, plan, run, Some(first));
    match tried.map_or_else(|| dry_runs(draft, plan, run, steps), Err) {
        Ok(missing) => {
            waits.extend(missing);
            waits.extend(tried_out(draft, plan, run, first, &waits));
        }
        Err(why) => {
            let now = draft.now();
            history::end_run(&mut draft.state, crate::record::state::Outcome::Failed, &why, now);
            draft.plan = None;
            let phase = Phase::Failed { why: why.clone(), since: now, standing: Serving::Stable };
            draft.enter(phase, format!("run {} failed before anything was exposed: {why}", run.id));
            return;
        }
    }
    if waits.is_empty() {
        waits = proven(draft, plan, run, first);
    }
    if waits.is_empty() {
        forward::enter(draft, run, first, format!("enters {}", first.name));
    } else {
        draft.waits.extend(waits);
    }
}

/// The run ends before anything was made.
fn drop_run(draft: &mut Draft<'_>, run: &Run, turn: &Turn) {
    let now = draft.now();
    history::end_run(&mut draft.state, forward::outcome_of(turn.then), &turn.why, now);
    draft.plan = None;
    let phase = Phase::Steady { how: Rest::Reverted, since: now };
    draft.enter(phase, format!("run {} dropped before it began: {}", run.id, turn.why));
}

/// Before the first step both the candidate's and the promotion's rendering pass a server-side dry run (design §6).
///
/// # Errors
/// What the API server says against them.
fn dry_runs(draft: &mut Draft<'_>, plan: &Plan, run: &Run, steps: &[Step]) -> Result<Vec<Wait>, String> {
    let (mut waits, mut needs) = (Vec::new(), Vec::new());
    let context = draft.context(plan, None, None);
    let promoted = steps.iter().find(|s| s.name.as_str() == "promote").map(|s| s.posture.stable.clone());
    let stable =
        promoted.unwrap_or(Role { set: run.to.clone(), size: Size::Declared, pods: None, directly: Directly::new() });
    let naming = steps.last().map_or_else(|| draft.naming.clone(), |last| last.posture.naming.clone());
    let mut postures = vec![Posture { stable, candidate: None, split: Split::stable(), naming }];
    postures.extend(steps.first().filter(|_| run.route != Route::Plain).map(|s| s.posture.clone()));
    for (i, posture) in postures.iter().enumerate() {
        let rendered = inplace::render(posture, &context.facts()).map_err(|e| e.to_string())?;
        let wanted = if i == 0 { RoleName::Stable } else { RoleName::Candidate };
        if wanted == RoleName::Stable {
            waits.extend(joined(&context, &rendered));
        }
        for rendered in rendered.values().filter(|r| r.role == wanted) {
            if context.live.missing.contains(&rendered.object.reference().kind) {
                let why = LiveState::unserved(rendered.object.reference().kind);
                waits.push(Wait::new(Reason::CrdMissing, why));
                continue;
            }
            let live = context.live.get(rendered.object.reference());
            // Of stable's own copies nobody is told to delete one: people are served by them.
            let in_the_way = |live| adopt::in_the_way(&context, live).filter(|_| wanted == RoleName::Candidate);
            let barred = |live| adopt::claimed_by_others(&context, live).or_else(|| in_the_way(live));
            if let Some(wait) = live.and_then(barred) {
                waits.push(wait);
                continue;
            }
            match adopt::ask(&context, &rendered.object, wanted) {
                Reply::Allowed(_) => {}
                Reply::Asked(need) => needs.push(need),
                Reply::Wait(wait) => waits.push(wait),
                Reply::Refused(why) => return Err(why),
            }
        }
    }
    if !needs.is_empty() {
        waits.push(Wait::new(Reason::Evidence, format!("{} server-side dry runs are on their way", needs.len())));
    }
    draft.needs.extend(needs);
    Ok(waits)
}

/// From a step that is done to the next, if its gates are open; else the run waits where it is.
pub fn advance(draft: &mut Draft<'_>, plan: &Arc<Plan>, run: &Run, next: &Step, at: &Position) {
    let mut waits = unmet(draft, plan, run, next);
    waits.extend(tried_out(draft, plan, run, next, &waits));
    if waits.is_empty() {
        waits = proven(draft, plan, run, next);
    }
    if waits.is_empty() {
        forward::enter(draft, run, next, format!("{} → {}{}", at.step, next.name, exposure(next)));
        return;
    }
    let asking = waits.iter().all(|wait| wait.reason == Reason::Evidence);
    draft.waits.extend(waits);
    if asking {
        // In a moment it is known whether the run has to wait.
        return;
    }
    let since = draft.now();
    let waiting = match next.stage {
        Stage::Progressing => Phase::Waiting { at: Some(at.clone()), next: next.name.clone(), since },
        Stage::Promoting | Stage::Finalising => Phase::WaitingPromotion { at: at.clone(), since },
    };
    if draft.state.phase.name() != waiting.name() {
        let reasons: Vec<&str> = draft.waits.iter().map(|w| w.reason.as_str()).collect();
        let what = format!("waits before {} on {}", next.name, reasons.join(", "));
        draft.enter(waiting, what);
    }
}

fn exposure(step: &Step) -> String {
    let Split { headers, weight, mirror, units } = &step.posture.split;
    let headers = (!headers.is_empty()).then(|| "headers".to_owned());
    let copies = (!mirror.is_zero()).then(|| format!("copies of {mirror} %"));
    let weight = (!weight.is_zero()).then(|| format!("weight {weight}"));
    let units = (units.count > 0).then(|| format!("units {}", units.count));
    let parts: Vec<String> = [headers, copies, weight, units].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// All that bars the way to the next step now, but for its Job. Back, promote, return and retire are never barred.
pub fn unmet(draft: &mut Draft<'_>, plan: &Plan, run: &Run, next: &Step) -> Vec<Wait> {
    let barred = next.stage == Stage::Progressing || next.name.as_str() == "shift";
    if barred { gates(draft, plan, run, next) } else { Vec::new() }
}

/// The Job before a step that nothing else keeps the run from but `others`.
fn tried_out(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &Step, others: &[Wait]) -> Option<Wait> {
    if !holds(Rule::Gates) {
        return None;
    }
    jobs::before(draft, plan, run, step, if others.is_empty() { Way::Clear } else { Way::Barred })
}

/// What the gates of a step are asked for: *prepare* is the way to the first phase, *shift* and *promote* to the promotion.
#[must_use]
pub fn through(plan: &Plan, step: &StepName) -> StepName {
    approval::asked_as(plan, step).unwrap_or_else(|| StepName::fixed("promotion"))
}

/// Whether what lets the run enter a step is proven now. Looked at last, since it is asked of the Git host each time.
fn proven(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &Step) -> Vec<Wait> {
    if step.before.approval.is_some() && holds(Rule::Gates) {
        proof::still(draft, plan, run, &through(plan, &step.name))
    } else {
        Vec::new()
    }
}

/// All that bars entry to a step now, its Job left out. Every unmet condition is listed.
fn gates(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &Step) -> Vec<Wait> {
    if !holds(Rule::Gates) {
        return Vec::new();
    }
    let mut waits = barred(draft);
    if run.route == Route::Rollback {
        waits.retain(|wait| wait.reason != Reason::Freeze);
    } else {
        waits.extend(floor::below(draft, plan));
    }
    if run.held {
        let act = format!("tidegate resume {}", draft.input.id);
        let by_a_person = || format!("run {} is held by a person's word", run.id);
        let past = history::unmeasured(&draft.state, (&run.to, &run.revision));
        let why = past.map_or_else(by_a_person, |past| {
            format!("run {} brought the same and went back unmeasured: {}", past.run, past.why)
        });
        waits.push(Wait::new(Reason::Held, why).act(act));
    }
    if let Some(name) = &step.before.window {
        match draft.input.policy.windows.get(name) {
            None => waits.push(Wait::new(Reason::Window, format!("the policy has no window {name}"))),
            Some(window) => match window.is_open(draft.now()) {
                WindowState::Open { .. } => {}
                WindowState::Closed { opens } => {
                    let wait = Wait::new(Reason::Window, format!("{} waits for the window {name}", step.name));
                    waits.push(Wait { until: opens, ..wait });
                }
            },
        }
    }
    let through = through(plan, &step.name);
    if step.before.approval.is_some() {
        waits.extend(approved(draft, plan, run, &through));
        waits.extend(guard::unprotected(draft));
        let unprovable = guard::unprovable(draft);
        // A decision may have told it already; the gate itself says it in any case, as it is what keeps the step out.
        draft.waits.retain(|told| Some(told) != unprovable.as_ref());
        waits.extend(unprovable);
    }
    waits.extend(step.before.webhook.as_ref().and_then(|webhook| called(draft, run, &through, webhook)));
    waits
}

/// The word of a webhook for a step. Whatever it says, it speaks against no version (C-16).
fn called(draft: &mut Draft<'_>, run: &Run, through: &StepName, webhook: &WebhookCall) -> Option<Wait> {
    let since = draft.state.phase.position().map_or(run.started, |position| position.clock.entered);
    let readings = &draft.input.evidence.readings;
    let (known, next) = judge::gate(webhook, draft.about(run, through), since, draft.now(), readings);
    draft.wake(next);
    let (verdict, questions) = match known {
        CheckState::Says(verdict) => (Some(verdict), Vec::new()),
        CheckState::Said(verdict, questions) => (Some(verdict), questions),
        CheckState::Lacks(questions) => (None, questions),
    };
    draft.questions.extend(questions);
    let why = match verdict {
        None => return Some(Wait::new(Reason::Evidence, format!("{through}: the webhook is being asked"))),
        Some(Verdict::Good) => return None,
        Some(Verdict::Bad(why)) => format!("says bad ({why})"),
        Some(Verdict::Undecided(why)) => why,
        Some(Verdict::Unknown(why)) => format!("says nothing: {why}"),
    };
    Some(Wait::new(Reason::Webhook, format!("{through} waits for {}, which {}", webhook.provider, plain(&why))))
}

/// What bars entry to prepare, a phase, shift and a direct change alike: suspend, freeze, brake, a file that cannot be read.
#[must_use]
pub fn barred(draft: &Draft<'_>) -> Vec<Wait> {
    let mut waits = Vec::new();
    if draft.wanted().is_some_and(|rollout| rollout.suspend == Suspend::Yes) {
        waits.push(Wait::new(Reason::Suspended, "the rollout's file says suspend: true"));
    }
    // It may say `suspend: true`, or a freeze may stand in it: nobody knows.
    waits.extend(draft.input.desired.unread());
    waits.extend(waves::mistaken(draft));
    match &draft.input.brake {
        Ok(Some(word)) => waits.push(Wait::new(Reason::Brake, format!("the ConfigMap tidegate-brake says {word}"))),
        Ok(None) => {}
        Err(why) => {
            let why = format!("the ConfigMap tidegate-brake was not read yet: {why}");
            waits.push(Wait::new(Reason::ClusterAway, why));
        }
    }
    for (name, freeze) in &draft.input.policy.freezes {
        if let Some(until) = freeze.holds(draft.input.policy.tenant.as_ref(), draft.now()) {
            waits.push(Wait::new(Reason::Freeze, format!("freeze {name}")).until(until));
        }
    }
    waits
}

/// A person's decision for a step: asked for once, by a branch that adds the decision.
fn approved(draft: &mut Draft<'_>, plan: &Plan, run: &Run, through: &StepName) -> Vec<Wait> {
    let id = draft.input.id.clone();
    // A no stands above what was approved before it, or is approved after it, until a person lifts it.
    if run.denied {
        let act = format!("tidegate resume {id}");
        return vec![Wait::new(Reason::Denied, format!("a person said no to {through}")).act(act)];
    }
    if approval::covers(plan, &run.approved, through) {
        return Vec::new();
    }
    let name = requests::name(draft, &run.id, Asks::Advance(through.clone()));
    let last = voids(&draft.state, &run.id, through).last().cloned();
    if let Some((_, wait)) = draft.undecided.iter().find(|(reach, _)| reaches(plan, reach, through)) {
        // What the record says already stays until it is known.
        let waiting = matches!(draft.state.phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. });
        let told = if waiting { asking(draft, &name, through, last.as_ref()) } else { Vec::new() };
        return told.into_iter().chain([wait.clone()]).collect();
    }
    let asked = run.pulls.get(through).cloned();
    let is_asked = |head: &CommitId| asked.as_ref().is_some_and(|pull| pull.head == *head);
    let mut unsure = None;
    match requests::advance(draft, run, through) {
        Lies::Ours(head) if is_asked(&head) => {}
        Lies::Ours(head) => {
            let checks = checks::last_verdicts(draft, plan, run);
            if let Some(open) = &mut draft.state.run {
                open.pulls.insert(through.clone(), Pull { branch: name.clone(), head, checks });
                draft.note(format!("asks for approval of {through}"));
            }
        }
        Lies::Unread(head, _) if is_asked(&head) => {}
        Lies::Unread(_, why) => unsure = Some(requests::unread(&name, &why)),
        // What is void goes before people are asked anew.
        Lies::Void(head, Some(why)) => {
            let void = requests::spoil(draft, run, through, head, &why);
            return asking(draft, &name, through, Some(&void));
        }
        Lies::Void(_, None) => {
            if let Some(open) = &mut draft.state.run {
                open.pulls.remove(through);
            }
        }
        Lies::Nothing => match &asked {
            Some(pull) => unsure = gone(draft, pull, through),
            None => {
                let ask = Ask::Advance { through: through.clone() };
                draft.proposals.push(Proposal { rollout: id, run: run.id.clone(), ask });
            }
        },
    }
    let told = asking(draft, &name, through, last.as_ref());
    told.into_iter().chain(unsure).collect()
}

/// A propose branch deleted unmerged means deny (design §13.8), if whoever did it may say so. What is waited for until that is known.
fn gone(draft: &mut Draft<'_>, pull: &Pull, through: &StepName) -> Option<Wait> {
    if draft.input.git != Git::Fresh || guard::is_deaf(draft) {
        return None;
    }
    let objection = match denial::objection(draft, pull, through) {
        Ok(objection) => objection,
        Err(wait) => return Some(wait),
    };
    let open = draft.state.run.as_mut()?;
    match objection {
        None => {
            open.denied = true;
            draft.note(format!("{through} was denied: its branch was deleted unmerged"));
            decisions::overrule(draft);
        }
        Some(why) => {
            open.pulls.remove(through);
            draft.note(format!("{through} is asked for again, as nobody said no who may: {why}"));
        }
    }
    None
}

/// That a step waits for a person's decision, and why the last one does not count.
fn asking(draft: &Draft<'_>, branch: &str, through: &StepName, void: Option<&Void>) -> Vec<Wait> {
    let id = &draft.input.id;
    let act = match proof::rule(draft).map(|rule| rule.by) {
        Some(By::Reviews) => format!("approve and merge the pull request of {branch}"),
        Some(By::Nothing) => guard::PROVE.to_owned(),
        Some(By::Signatures) => format!(
            "an approver merges {branch} into the decisions branch and signs the merge (git merge --no-ff -S), or: tidegate approve {id}"
        ),
        None => format!("merge {branch} into the decisions branch, or: tidegate approve {id}"),
    };
    let mut waits = vec![Wait::new(Reason::Approval, format!("{through} waits for a person's word")).act(&act)];
    if let Some(Void { why, through: _, head: _ }) = void {
        let why = format!("the last word for {through} does not count: {why}");
        waits.push(Wait::new(Reason::ApprovalUnproven, why).act(act));
    }
    waits
}

fn reaches(plan: &Plan, reach: &StepName, step: &StepName) -> bool {
    approval::covers(plan, std::slice::from_ref(reach), step)
}
