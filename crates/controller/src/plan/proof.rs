//! Words of people that have to be proven: which proofs are asked of the Git host, or of Git, and what becomes of words that have none.
//!
//! A proof is looked at twice: when the decision is counted, and again right before the step is entered that it lets in. What is
//! not known keeps the gate closed.

use super::draft::Draft;
use super::evidence::{ReviewQuery, Version};
use super::report::{Reason, Wait};
use super::{idle, requests};
use crate::gate::approval;
use crate::gate::decisions::{Accepted, ApprovalVerifier, Lacks, Unproven, through};
use crate::gate::proof::{ProofQuestion, said};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Plan;
use crate::manifest::files::{Had, RepoPath};
use crate::manifest::ids::{CommitId, SetId, StepName};
use crate::manifest::object::ObjectRef;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::set::SetFiles;
use crate::manifest::tracked;
use crate::record::branches::{Asks, Head, decisions_branch};
use crate::record::history;
use crate::record::state::{DeletionQuestion, PastRun, Promoted, RolloutState, Run, SetOrigin, SetSource, Time, Void};
use crate::record::text::plain;
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::BTreeMap;

/// The Jobs of a plan, by their files beside the rollout's.
type Jobs = BTreeMap<RepoPath, Value>;

/// By how much a host's clock may be behind ours.
const SKEW: TimeDelta = TimeDelta::minutes(10);

/// What proves people's decisions now, those about a run that starts now too.
#[must_use]
pub fn rule(draft: &Draft<'_>) -> Option<ApprovalRule> {
    draft.state.rule(draft.input.policy.proof.as_ref())
}

/// Whether a promotion has to be approved by people whom the policy names, as far as it can be read.
#[must_use]
pub fn is_asked(draft: &Draft<'_>) -> bool {
    draft.input.policy.unread || rule(draft).is_some()
}

/// What proofs are judged by now.
pub fn verifier<'b>(draft: &Draft<'b>, rule: &'b ApprovalRule, base: &'b str) -> ApprovalVerifier<'b> {
    let since = draft.state.run.as_ref().map_or(Time::MIN, |run| run.started - SKEW);
    ApprovalVerifier { rule, base, since, told: &draft.input.evidence.proofs, now: draft.now() }
}

/// Decisions that are not proven: the host is asked, or they are void, once.
pub fn unproven(draft: &mut Draft<'_>, decisions: Vec<Unproven>) {
    for Unproven { accepted: decision, asked, lacks } in decisions {
        // A no has made it void meanwhile.
        if history::is_consumed(&draft.state, &decision.consumed.path, &decision.consumed.blob) {
            continue;
        }
        let asks = requests::kind(&decision.decision.action);
        let wait = match (lacks, asked) {
            _ if is_of_another(draft, &decision) => elsewhere(&decision),
            (Lacks::Proof(_), _) | (_, None) => {
                void(draft, decision);
                continue;
            }
            (Lacks::Answer, Some(asked)) => ask(draft, asked, asks.as_ref()),
            (Lacks::Knowledge(why, at), Some(asked)) => unknown(draft, asked, asks.as_ref(), &why, at),
        };
        match asks {
            Some(Asks::Advance(step)) => drop(draft.undecided.insert(step, wait)),
            Some(Asks::Delete) => {
                draft.waits.push(wait.clone());
                draft.undecided.insert(requests::delete(), wait);
            }
            Some(Asks::Revert) | None => draft.waits.push(wait),
        }
    }
}

/// Whether a decision lets a version be tried again that main does not have now: who made it cannot be told from what main has.
fn is_of_another(draft: &Draft<'_>, Accepted { decision, .. }: &Accepted) -> bool {
    let refusal = draft.wanted().and_then(|wanted| idle::refusal(draft, wanted));
    let is_it = refusal.is_some_and(|refused| refused.run == decision.run);
    decision.action == DecisionAction::Retry && draft.state.run.is_none() && !is_it
}

fn elsewhere(Accepted { consumed, .. }: &Accepted) -> Wait {
    let why = format!(
        "{} is about a version that main does not have now, so that nobody can tell who made it",
        consumed.path
    );
    Wait::new(Reason::ProofUnavailable, why).act("bring the version to main again: then the word counts")
}

/// A decision that does not count, as it is not proven, or came as it must not where no proof is asked for. It is not looked at again. What we
/// ask for is asked for anew: nothing was approved.
pub(super) fn void(draft: &mut Draft<'_>, Accepted { decision, mut consumed }: Accepted) {
    let lacks = if rule(draft).is_some() { "is not proven" } else { "does not count" };
    let mut what = format!("{} {lacks}", consumed.action);
    if let Some(step) = through(&decision.action) {
        what = format!("approval of {step} {lacks}");
        let head = request(draft, step);
        if let Some(void) = &mut consumed.void {
            void.head = head;
        }
    }
    if let DecisionAction::Delete { .. } = decision.action {
        let head = requests::beside(draft, &consumed.path);
        if let Some(void) = &mut consumed.void {
            void.head = head;
        }
    }
    draft.note(what);
    draft.state.consumed.push(consumed);
}

/// Takes back that `step` was asked for; the head of that request.
pub(super) fn request(draft: &mut Draft<'_>, step: &StepName) -> Option<CommitId> {
    let run = draft.state.run.as_mut()?;
    let asked = run.pulls.remove(step).map(|pull| pull.head);
    let head = Head { rollout: draft.input.id.clone(), run: run.id.clone(), asks: Asks::Advance(step.clone()) };
    let there = draft.input.proposals.get(&head.branch(&draft.input.me.instance));
    there.map(|branch| branch.head.clone()).or(asked)
}

/// Asks the host about a decision.
fn ask(draft: &mut Draft<'_>, asked: ProofQuestion, asks: Option<&Asks>) -> Wait {
    let path = asked.path.clone();
    let run = draft.state.run.as_ref();
    let request = asks.and_then(|asks| requests::to_the_letter(draft, asks));
    let wanted = draft.wanted().map(|wanted| &wanted.set.id).zip(draft.state.promoted.as_ref());
    let wanted = wanted.map(|(to, promoted)| (to, of_main(draft, promoted, to)));
    let question = draft.state.deletions.asked.as_ref().filter(|_| asks == Some(&Asks::Delete));
    let version = match (run, question) {
        (Some(run), _) => {
            let sets = draft.input.sets.get(&run.from).zip(draft.input.sets.get(run.began())).zip(draft.plan.as_ref());
            Some(sets.and_then(|((from, to), plan)| of_run(&draft.state, run, [&from.files, &to.files], &plan.jobs)))
        }
        (None, Some(DeletionQuestion { successor: Some(to), .. })) => {
            Some(wanted.filter(|(wanted, _)| *wanted == to).and_then(|(_, version)| version))
        }
        (None, Some(question)) => Some(removal(draft, question)),
        // A decision before a run is about what main wants; before the first version it is about none.
        (None, None) => draft.state.promoted.as_ref().map(|_| wanted.and_then(|(_, version)| version)),
    };
    if version == Some(None) {
        let why = format!("nobody can tell who made the version that {path} is about: its manifests are not at hand");
        return Wait::new(Reason::ProofUnavailable, why);
    }
    let asks = match asked.rule.by {
        By::Reviews | By::Nothing => format!("the Git host is asked who approved {path}"),
        By::Signatures => format!("it is looked up who signed {path}"),
    };
    let tenant = draft.input.policy.tenant.clone();
    draft.review_queries.push(ReviewQuery { tenant, asked, request, version: version.flatten() });
    Wait::new(Reason::Evidence, asks)
}

fn unknown(draft: &mut Draft<'_>, asked: ProofQuestion, asks: Option<&Asks>, why: &str, at: Time) -> Wait {
    let why = format!("who approved {} is not known: {why}", asked.path);
    if at <= draft.now() {
        ask(draft, asked, asks);
    } else {
        draft.wake(at);
    }
    Wait::new(Reason::ProofUnavailable, plain(&why))
}

/// What main wants.
fn of_main(draft: &Draft<'_>, promoted: &Promoted, to: &SetId) -> Option<Version> {
    let (wanted, from, to) = (draft.wanted()?, draft.input.sets.get(&promoted.set)?, draft.input.sets.get(to)?);
    let place = Place { commit: &draft.input.main, path: &wanted.path };
    version(place, draft.state.origin_of_stable().as_ref(), [&from.files, &to.files], &wanted.plan.jobs)
}

/// What a run brings, with the files of what it replaces and of what it brings, and the Jobs of its plan.
#[must_use]
pub fn of_run(state: &RolloutState, run: &Run, sets: [&SetFiles; 2], jobs: &Jobs) -> Option<Version> {
    let place = Place { commit: &run.source, path: run.path.as_ref().unwrap_or(&state.source.path) };
    version(place, run.stable.as_ref(), sets, jobs)
}

/// The commits that took away what people are asked to let go: all since the oldest of the versions that had each of it last. None if
/// the record cannot tell, as it keeps so many versions only, and none that a change without a run has replaced.
fn removal(draft: &Draft<'_>, DeletionQuestion { objects, .. }: &DeletionQuestion) -> Option<Version> {
    let promoted = draft.state.promoted.as_ref()?;
    let past: Vec<&PastRun> = draft.state.history.iter().rev().collect();
    let had = |object: &ObjectRef| {
        let has =
            |past: &&PastRun| draft.input.past.get(&past.from).is_some_and(|set| set.objects.contains_key(object));
        past.iter().position(has)
    };
    let last: Option<Vec<usize>> = objects.iter().map(had).collect();
    let from = past[last?.into_iter().max()?];
    let (files, to) = (draft.input.past.get(&from.from)?, draft.input.sets.get(&promoted.set)?);
    let place = Place {
        commit: promoted.commit.as_ref().unwrap_or(&draft.input.main),
        path: promoted.path.as_ref().unwrap_or(&draft.state.source.path),
    };
    // No Job takes anything away.
    version(place, from.stable.as_ref(), [&files.files, &to.files], &Jobs::new())
}

/// A rollout's file in a commit of main.
struct Place<'a> {
    commit: &'a CommitId,
    path: &'a RepoPath,
}

/// The version that main has there, in place of one that it had at `was`: what main had then at the paths of both; and apart from that, as
/// a change without a run replaces manifests alone, the rollout's file, which says what else belongs to them, and the Jobs that try it out.
/// Since that was moved there was nothing where it lies now, and what others made before the move counts; so does all that anybody ever
/// made there of a version in the place of one that main never had, and of a file that nobody decided on. What is tracked in the cluster
/// lies on no branch.
fn version(now: Place<'_>, was: Option<&SetOrigin>, [from, to]: [&SetFiles; 2], jobs: &Jobs) -> Option<Version> {
    let lay = was.map_or(now.path, |was| &was.source.path);
    let mut manifests = BTreeMap::new();
    for path in from.keys().chain(to.keys()).filter(|path| path.as_str() != tracked::FILE) {
        // Directories may lie in each other: what was there is never taken for nothing.
        manifests.entry(now.path.beside(path.as_str()).ok()?).or_insert(Had::Nothing);
        let blob = from.get(path).map_or(Had::Nothing, |(blob, _)| Had::Blob(blob.clone()));
        manifests.insert(lay.beside(path.as_str()).ok()?, blob);
    }
    let mut file = BTreeMap::from([(now.path.clone(), Had::Nothing)]);
    for job in jobs.keys() {
        file.insert(now.path.beside(job.as_str()).ok()?, Had::Nothing);
    }
    if let Some(SetSource { commit, path }) = was.and_then(|was| was.decided.as_ref()) {
        file.insert(path.clone(), Had::AsIn(commit.clone()));
        for job in jobs.keys() {
            file.insert(path.beside(job.as_str()).ok()?, Had::AsIn(commit.clone()));
        }
    }
    Some(Version { commit: now.commit.clone(), stable: [manifests, file] })
}

/// Whether what lets the run enter `step` is proven now, too: who approved may have lost the right to meanwhile. What is not
/// proven any more is void; then nothing has approved the step.
pub fn still(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &StepName) -> Vec<Wait> {
    let Some(rule) = rule(draft) else { return Vec::new() };
    let base = decisions_branch(&draft.input.me.instance);
    let (mut waits, mut lost) = (Vec::new(), Vec::new());
    for (n, decision) in draft.state.consumed.clone().into_iter().enumerate() {
        if decision.run != run.id || decision.action != "approve" || decision.void.is_some() {
            continue;
        }
        let Some(proven) = decision.proven else {
            lost.push((n, "it was counted without a proof, for which the policy asks by now".to_owned()));
            continue;
        };
        let Some(reach) = proven.through.filter(|reach| approval::covers(plan, std::slice::from_ref(reach), step))
        else {
            continue;
        };
        let asked =
            ProofQuestion { path: decision.path, blob: decision.blob, commit: proven.commit, rule: rule.clone() };
        match verifier(draft, &rule, &base).verdict(&asked) {
            Ok(_) => return Vec::new(),
            Err(Lacks::Answer) => waits.push(ask(draft, asked, Some(&Asks::Advance(reach)))),
            Err(Lacks::Knowledge(why, at)) => waits.push(unknown(draft, asked, Some(&Asks::Advance(reach)), &why, at)),
            Err(Lacks::Proof(flaws)) => lost.push((n, said(&flaws))),
        }
    }
    if waits.is_empty() {
        let head = request(draft, step);
        for (n, why) in lost {
            let void = Void { why: plain(&why), through: Some(step.clone()), head: head.clone() };
            draft.state.consumed[n].void = Some(void);
        }
        if let Some(run) = &mut draft.state.run {
            run.approved.retain(|reach| !approval::covers(plan, std::slice::from_ref(reach), step));
        }
        draft.note(format!("approval of {step} is not proven any more"));
        waits.push(Wait::new(Reason::ApprovalUnproven, format!("what approved {step} is not proven any more")));
    }
    waits
}
