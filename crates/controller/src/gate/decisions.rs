//! Which decisions of people count now.
//!
//! A decision counts once, by path and content, and only if it was not yet on the decisions branch when the run started
//! (X-2): nothing is approved in advance, replayed, or carried over to other content. What does not count says why.

use crate::manifest::decision::{Decision, DecisionAction};
use crate::manifest::desired::Plan;
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, RunId, SetId, StepName};
use crate::record::history::{self, pinned, replaced};
use crate::record::state::{Consumed, Phase, RolloutState, Route, Serving, Time};
use crate::record::text::plain;
use std::collections::BTreeSet;

use super::approval;
use super::proof::{Flaw, ProofQuestion};

mod verifier;

pub use verifier::ApprovalVerifier;

/// A file at the tip of the decisions branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFile {
    /// Where it lies.
    pub path: RepoPath,
    /// Its content.
    pub blob: BlobId,
    /// Who brought it to the decisions branch, as Git says; where Git does not say it, that.
    pub by: String,
    /// The commit of the branch with which it came; none where Git does not tell.
    pub brought: Option<CommitId>,
    /// The head that this commit merged, if it is a merge of one.
    pub merged: Option<CommitId>,
    /// What it says, or why it cannot be read.
    pub decision: Result<Decision, String>,
}

/// All that decides which decisions count for one rollout.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationInput<'a> {
    /// The rollout's record.
    pub record: &'a RolloutState,
    /// The plan of the open run, if one is open.
    pub plan: Option<&'a Plan>,
    /// All decision files of the rollout, at the tip.
    pub files: &'a [DecisionFile],
    /// The files that were there when the open run (else the last one) started; none if nobody can tell.
    pub at_start: Option<&'a BTreeSet<(RepoPath, BlobId)>>,
    /// For how long after its replacement a promoted set can be gone back to.
    pub rollback_window: Span,
    /// How decisions that let the rollout go further are proven; none where whoever may write to the branch may decide.
    pub verifier: Option<ApprovalVerifier<'a>>,
    /// The time of this tick.
    pub now: Time,
}

/// A decision that counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What it says.
    pub decision: Decision,
    /// What the record keeps of it, so that it counts once. To be written by whoever acts on the decision, in the same
    /// commit.
    pub consumed: Consumed,
}

/// A decision that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its file.
    pub path: RepoPath,
    /// Why, for people.
    pub why: String,
}

/// A decision that would count if it were proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproven {
    /// What it says, and what the record keeps of it.
    pub accepted: Accepted,
    /// What is asked of the host; none where Git does not tell how the file came.
    pub asked: Option<ProofQuestion>,
    /// How it stands.
    pub lacks: Lacks,
}

/// What a proof lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacks {
    /// Nobody was asked yet.
    Answer,
    /// The host did not tell all, and is asked again then.
    Knowledge(String, Time),
    /// It is none: all that is wrong.
    Proof(BTreeSet<Flaw>),
}

/// What a input comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// What counts. Decisions of one tick have no order that Git could tell, so what restricts comes last: a `hold` beside a
    /// `resume` holds.
    pub accepted: Vec<Accepted>,
    /// Those of them that have no proof, or none yet, by path.
    pub unproven: Vec<Unproven>,
    /// Those that never will, whoever's they are, as nobody asks for them; why.
    pub idle: Vec<(Accepted, String)>,
    /// Whether one of those that do not might, if it were known to be later than its run.
    pub undated: bool,
    /// What does not, by path. Decisions that were counted before are in no list.
    pub ignored: Vec<Ignored>,
}

/// Decides which decisions count now.
#[must_use]
pub fn evaluate(input: &EvaluationInput<'_>) -> Evaluation {
    let consumed: BTreeSet<_> = input.record.consumed.iter().map(|c| (&c.path, &c.blob)).collect();
    let mut evaluation = Evaluation::default();
    for file in input.files.iter().filter(|file| !consumed.contains(&(&file.path, &file.blob))) {
        match input.weigh(file) {
            Ok(Accepted { decision, .. }) if input.at_start.is_none() && loosens(&decision.action) => {
                evaluation.undated = true;
                let why = format!("nobody can tell that it was not there before run {} started", decision.run);
                evaluation.ignored.push(Ignored { path: file.path.clone(), why });
            }
            Ok(accepted) => match (input.is_asked(&accepted.decision.action), input.verifier) {
                (Err(why), _) => evaluation.idle.push((accepted, why)),
                (Ok(()), Some(verifier)) if loosens(&accepted.decision.action) => {
                    match verifier.judge(file, accepted) {
                        Ok(accepted) => evaluation.accepted.push(accepted),
                        Err(unproven) => evaluation.unproven.push(*unproven),
                    }
                }
                (Ok(()), _) => evaluation.accepted.push(accepted),
            },
            Err(why) => evaluation.ignored.push(Ignored { path: file.path.clone(), why: plain(&why) }),
        }
    }
    evaluation
        .accepted
        .sort_by(|a, b| (rank(&a.decision), &a.consumed.path).cmp(&(rank(&b.decision), &b.consumed.path)));
    evaluation.unproven.sort_by(|a, b| a.accepted.consumed.path.cmp(&b.accepted.consumed.path));
    evaluation.ignored.sort_by(|a, b| a.path.cmp(&b.path));
    evaluation
}

/// Whether a decision lets a rollout go further. What restricts counts from everybody who may write to the branch; so does going
/// back to what was promoted before, which is for nights.
#[must_use]
pub fn loosens(action: &DecisionAction) -> bool {
    match action {
        DecisionAction::Approve { .. }
        | DecisionAction::Skip { .. }
        | DecisionAction::Resume
        | DecisionAction::Retry
        | DecisionAction::Adopt { .. }
        | DecisionAction::Delete { .. } => true,
        DecisionAction::Deny | DecisionAction::Hold | DecisionAction::Abort | DecisionAction::Rollback => false,
    }
}

/// How far an approval reaches.
#[must_use]
pub fn through(action: &DecisionAction) -> Option<&StepName> {
    match action {
        DecisionAction::Approve { through } => Some(through),
        DecisionAction::Skip { .. }
        | DecisionAction::Resume
        | DecisionAction::Retry
        | DecisionAction::Adopt { .. }
        | DecisionAction::Delete { .. }
        | DecisionAction::Deny
        | DecisionAction::Hold
        | DecisionAction::Abort
        | DecisionAction::Rollback => None,
    }
}

/// What restricts more comes later.
fn rank(decision: &Decision) -> u8 {
    match decision.action {
        DecisionAction::Resume => 0,
        DecisionAction::Retry => 1,
        DecisionAction::Approve { .. } => 2,
        DecisionAction::Skip { .. } => 3,
        DecisionAction::Hold => 4,
        DecisionAction::Deny => 5,
        DecisionAction::Adopt { .. } | DecisionAction::Delete { .. } => 6,
        DecisionAction::Rollback => 7,
        DecisionAction::Abort => 8,
    }
}

impl EvaluationInput<'_> {
    fn weigh(&self, file: &DecisionFile) -> Result<Accepted, String> {
        let decision = file.decision.clone()?;
        let id = &self.record.metadata;
        if decision.rollout != *id {
            return Err(format!("it speaks of {}, but lies among the decisions on {id}", decision.rollout));
        }
        if self.at_start.is_some_and(|there| there.contains(&(file.path.clone(), file.blob.clone()))) {
            return Err(format!(
                "it was there before run {} started: nothing is decided in advance",
                self.record.current()
            ));
        }
        self.meant(&decision)?;
        let consumed = Consumed {
            path: file.path.clone(),
            blob: file.blob.clone(),
            action: decision.action.word().to_owned(),
            run: decision.run.clone(),
            proof: "none".to_owned(),
            by: plain(&file.by),
            at: self.now,
            proven: None,
            void: None,
        };
        Ok(Accepted { decision, consumed })
    }

    /// Whether the run that a decision names is one that its action can be about.
    fn meant(&self, decision: &Decision) -> Result<(), String> {
        match &decision.action {
            DecisionAction::Approve { through } => {
                self.is_open(&decision.run)?;
                // A run's plan that is not at hand cannot be entered either: the decision waits with it.
                let plan = self.plan.ok_or_else(|| format!("the plan of run {} is not known", decision.run))?;
                match approval::asked_as(plan, through) {
                    Some(step) if step == *through => Ok(()),
                    Some(step) => Err(format!("approval is asked for {step}, not for {through}")),
                    None => Err(format!("the plan of run {} has no step {through}", decision.run)),
                }
            }
            DecisionAction::Skip { step, through: _ } => {
                self.is_open(&decision.run)?;
                self.is_on(step)
            }
            DecisionAction::Deny | DecisionAction::Abort => self.is_open(&decision.run),
            DecisionAction::Hold | DecisionAction::Resume => self.is_current(&decision.run),
            DecisionAction::Retry => self.is_refused(&decision.run),
            DecisionAction::Rollback => self.can_go_back_to(&decision.run),
            DecisionAction::Adopt { live } => {
                self.is_current(&decision.run)?;
                self.is_live(live)
            }
            DecisionAction::Delete { .. } => self.is_current(&decision.run),
        }
    }

    /// Whether a decision of adoption is about what is live, as the record told people last.
    fn is_live(&self, meant: &SetId) -> Result<(), String> {
        let found = self.record.live_at_first_sight().ok_or("nothing that is live differs from Git at first sight")?;
        if found == meant {
            Ok(())
        } else {
            Err(format!("it was decided when {} was live; that is {} by now", meant.short(), found.short()))
        }
    }

    /// Whether people are asked for a decision, of those that they have to be asked for: whether objects may go, and all of them.
    fn is_asked(&self, action: &DecisionAction) -> Result<(), String> {
        let DecisionAction::Delete { objects, successor } = action else { return Ok(()) };
        let asked = self.record.deletions.asked.as_ref().filter(|_| self.record.run.is_none());
        let asked = asked.ok_or("nobody is asked whether objects may go")?;
        asked.answered(objects, successor.as_ref())
    }

    fn is_current(&self, run: &RunId) -> Result<(), String> {
        let current = self.record.current();
        if *run == current { Ok(()) } else { Err(format!("it names run {run}; run {current} is meant now")) }
    }

    fn is_open(&self, run: &RunId) -> Result<(), String> {
        self.is_current(run)?;
        if self.record.run.is_some() { Ok(()) } else { Err(format!("run {run} is not open")) }
    }

    /// Whether the run stands on a step: its soak may be over by the time that a decision about it is proven.
    fn is_on(&self, step: &StepName) -> Result<(), String> {
        match self.record.phase.position() {
            Some(position) if position.step == *step => Ok(()),
            Some(position) => Err(format!("it is about the soak of {step}; the run stands on {}", position.step)),
            None => Err(format!("it is about the soak of {step}, on which the run does not stand")),
        }
    }

    fn is_refused(&self, run: &RunId) -> Result<(), String> {
        // A promotion that stuck with all traffic on the candidate leaves its run open: it is tried again.
        let on_candidate = matches!(self.record.phase, Phase::Failed { standing: Serving::OnCandidate, .. });
        if on_candidate && self.is_open(run).is_ok() {
            return Ok(());
        }
        if self.record.refused.iter().any(|refused| refused.run == *run) {
            Ok(())
        } else {
            Err(format!("nothing is refused because of run {run}"))
        }
    }

    /// Whether a rollback can name the run. One that is open is taken back whatever is named, unless it goes back itself already.
    fn can_go_back_to(&self, run: &RunId) -> Result<(), String> {
        let late = matches!(self.record.phase, Phase::Finalising(_)) && *run == history::served(self.record);
        match &self.record.run {
            Some(open) if *run == open.id || late || open.route != Route::Rollback => Ok(()),
            Some(_) | None => can_go_back_to(self.record, run, self.rollback_window, self.now),
        }
    }
}

/// Whether there is a way back to a promoted version: it was replaced, within the window, and its manifests are kept.
///
/// # Errors
/// Why not.
pub fn can_go_back_to(record: &RolloutState, run: &RunId, window: Span, now: Time) -> Result<(), String> {
    let promoted = replaced(record, run)
        .ok_or_else(|| format!("run {run} is not in the history as one that was promoted and replaced"))?;
    if now > promoted.at + window.delta() {
        let at = promoted.at.format("%Y-%m-%d %H:%M:%SZ");
        return Err(format!("what run {run} brought was replaced at {at}, longer ago than rollback.window"));
    }
    if pinned(record).contains(promoted.set) {
        Ok(())
    } else {
        Err(format!("the manifests of run {run} are no longer kept; only the last five promoted are"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{open, plan, run, set, steady, time};
    use crate::record::history::end_run;
    use crate::record::state::Outcome;

    fn file(name: &str, run: RunId, action: DecisionAction) -> DecisionFile {
        let decision = Decision { rollout: steady().metadata, run, action, reason: None };
        let digit = char::from_digit(name.len() as u32 % 16, 16).unwrap();
        DecisionFile {
            path: format!("shop/podinfo/{name}.yaml").parse().unwrap(),
            blob: digit.to_string().repeat(40).parse().unwrap(),
            by: "Ana <ana@example.org>".to_owned(),
            brought: None,
            merged: None,
            decision: Ok(decision),
        }
    }

    fn approve(step: &str) -> DecisionAction {
        DecisionAction::Approve { through: step.parse().unwrap() }
    }

    /// Of the step on which `open` stands.
    fn skip() -> DecisionAction {
        DecisionAction::Skip { step: "tenth".parse().unwrap(), through: crate::manifest::decision::Through::Step }
    }

    fn key(file: &DecisionFile) -> (RepoPath, BlobId) {
        (file.path.clone(), file.blob.clone())
    }

    fn evaluation(record: &RolloutState, files: &[DecisionFile], at_start: &[&DecisionFile]) -> Evaluation {
        let at_start = at_start.iter().map(|file| key(file)).collect();
        let plan = plan();
        let plan = record.run.is_some().then_some(&plan);
        let rollback_window = "24h".parse().unwrap();
        evaluate(&EvaluationInput {
            record,
            plan,
            files,
            at_start: Some(&at_start),
            rollback_window,
            verifier: None,
            now: time("12:00:00"),
        })
    }

    /// Which files count, in order.
    fn counted(evaluation: &Evaluation) -> Vec<&str> {
        evaluation.accepted.iter().map(|w| w.consumed.path.file_name().trim_end_matches(".yaml")).collect()
    }

    fn whys(evaluation: &Evaluation) -> String {
        let line = |ignored: &Ignored| format!("{}: {}", ignored.path.file_name(), ignored.why);
        evaluation.ignored.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn x_2_a_decision_counts_once() {
        let mut record = open();
        let files = [file("half", run(7), approve("half"))];
        let first = evaluation(&record, &files, &[]);
        assert_eq!(counted(&first), ["half"]);
        let consumed = first.accepted[0].consumed.clone();
        assert_eq!((consumed.action.as_str(), consumed.proof.as_str()), ("approve", "none"));
        assert_eq!((&consumed.run, consumed.at), (&run(7), time("12:00:00")));
        record.consumed.push(consumed);
        assert_eq!(evaluation(&record, &files, &[]), Evaluation::default());
        // The same path with other content is another decision.
        let again = DecisionFile { blob: "f".repeat(40).parse().unwrap(), ..files[0].clone() };
        assert_eq!(counted(&evaluation(&record, &[again], &[])), ["half"]);
    }

    #[test]
    fn x_2_nothing_is_decided_in_advance_or_carried_over() {
        let early = file("early", run(7), approve("promotion"));
        let other = file("other", run(6), approve("half"));
        let next = file("next", run(8), DecisionAction::Hold);
        let zero = file("zero", RunId::zero(), DecisionAction::Hold);
        let evaluation = evaluation(&open(), &[early.clone(), other, next, zero], &[&early]);
        assert!(evaluation.accepted.is_empty());
        insta::assert_snapshot!(whys(&evaluation), @r"
        early.yaml: it was there before run 7-07070707 started: nothing is decided in advance
        next.yaml: it names run 8-08080808; run 7-07070707 is meant now
        other.yaml: it names run 6-06060606; run 7-07070707 is meant now
        zero.yaml: it names run 0; run 7-07070707 is meant now
        ");
    }

    #[test]
    fn an_approval_names_a_step_that_is_asked_for() {
        let files = ["half", "promotion", "prepare", "shift", "haf"].map(|name| file(name, run(7), approve(name)));
        let evaluation = evaluation(&open(), &files, &[]);
        assert_eq!(counted(&evaluation), ["half", "promotion"]);
        insta::assert_snapshot!(whys(&evaluation), @r"
        haf.yaml: the plan of run 7-07070707 has no step haf
        prepare.yaml: approval is asked for testers, not for prepare
        shift.yaml: approval is asked for promotion, not for shift
        ");
    }

    #[test]
    fn words_about_no_open_run() {
        let actions = |run: RunId| {
            [
                file("1-hold", run.clone(), DecisionAction::Hold),
                file("2-resume", run.clone(), DecisionAction::Resume),
                file("3-abort", run.clone(), DecisionAction::Abort),
                file("4-skip", run.clone(), skip()),
                file("5-deny", run.clone(), DecisionAction::Deny),
                file("6-approve", run, approve("half")),
            ]
        };
        let last = evaluation(&steady(), &actions(run(6)), &[]);
        assert_eq!(counted(&last), ["2-resume", "1-hold"]);
        assert_eq!(last.ignored.len(), 4);
        assert_eq!(last.ignored[0].why, "run 6-06060606 is not open");
        let fresh = RolloutState { last_run: None, history: Vec::new(), ..steady() };
        assert_eq!(counted(&evaluation(&fresh, &actions(RunId::zero()), &[])), ["2-resume", "1-hold"]);
    }

    #[test]
    fn what_restricts_comes_last() {
        let files = [
            file("a", run(7), DecisionAction::Abort),
            file("b", run(7), DecisionAction::Deny),
            file("c", run(7), DecisionAction::Hold),
            file("d", run(7), skip()),
            file("e", run(7), approve("half")),
            file("f", run(7), DecisionAction::Resume),
            file("g", run(4), DecisionAction::Retry),
            file("h", run(5), DecisionAction::Rollback),
        ];
        assert_eq!(counted(&evaluation(&open(), &files, &[])), ["f", "g", "e", "d", "c", "b", "h", "a"]);
    }

    #[test]
    fn n_4_retry_names_a_run_that_was_refused() {
        let evaluation = evaluation(
            &steady(),
            &[file("4", run(4), DecisionAction::Retry), file("5", run(5), DecisionAction::Retry)],
            &[],
        );
        assert_eq!(counted(&evaluation), ["4"]);
        assert_eq!(whys(&evaluation), "5.yaml: nothing is refused because of run 5-05050505");
    }

    #[test]
    fn rollback_names_a_run_whose_set_was_replaced_lately() {
        let back = |n: u8| file(&n.to_string(), run(n), DecisionAction::Rollback);
        let mut record = steady();
        assert_eq!(counted(&evaluation(&record, &[back(5)], &[])), ["5"]);
        assert_eq!(
            whys(&evaluation(&record, &[back(6), back(4)], &[])),
            "4.yaml: run 4-04040404 is not in the history as one that was promoted and replaced\n\
             6.yaml: run 6-06060606 is not in the history as one that was promoted and replaced"
        );
        record.history[1].ended = time("11:59:59") - chrono::TimeDelta::hours(24);
        assert_eq!(
            whys(&evaluation(&record, &[back(5)], &[])),
            "5.yaml: what run 5-05050505 brought was replaced at 2026-11-24 11:59:59Z, longer ago than rollback.window"
        );
        // Six more promotions since: its set is not kept any longer.
        let mut record = steady();
        for n in 10..16 {
            let mut next = open().run.unwrap();
            (next.id, next.from, next.to) = (run(n), set(n), set(n + 1));
            record.run = Some(next);
            end_run(&mut record, Outcome::Promoted, "", time("11:00:00"));
        }
        assert_eq!(
            whys(&evaluation(&record, &[back(5)], &[])),
            "5.yaml: the manifests of run 5-05050505 are no longer kept; only the last five promoted are"
        );
    }

    #[test]
    fn files_that_cannot_be_read_or_lie_wrong_say_so() {
        let mut broken = file("broken", run(7), DecisionAction::Hold);
        broken.decision = Err("3:1: unknown field\n\"aktion\"\u{200b}".to_owned());
        let mut stray = file("stray", run(7), DecisionAction::Hold);
        if let Ok(decision) = &mut stray.decision {
            decision.rollout = "shop/other".parse().unwrap();
        }
        insta::assert_snapshot!(whys(&evaluation(&open(), &[broken, stray], &[])), @r#"
        broken.yaml: 3:1: unknown field "aktion"\u{200b}
        stray.yaml: it speaks of shop/other, but lies among the decisions on shop/podinfo
        "#);
    }
}
