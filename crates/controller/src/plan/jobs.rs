//! Jobs before steps: each is made once in a run, as soon as nothing else bars its step. Its success opens the step, its failure
//! is evidence against the version.
//!
//! A Job is found by its name, which its run and its step make, so that whoever plans again after a crash finds it there. The
//! record says that it was seen, and that it has succeeded: one that vanishes after that is not made again. One that vanishes before
//! is: nothing is left that would say that it was made.

use super::action::{Action, Class, GoesBy, Verb};
use super::converge;
use super::draft::Draft;
use super::entry;
use super::procedure::Step;
use super::report::{Reason, Wait};
use crate::manifest::desired::Plan;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::StepName;
use crate::manifest::object::{Kind, OWNER, Object};
use crate::record::posture::Posture;
use crate::record::state::{Phase, Run, Time, Trial};
use crate::record::text::plain;
use crate::workload::compare;
use crate::workload::kinds::job::{self, For, JobStatus};
use crate::workload::live::{Expects, WriteOutcome};
use chrono::TimeDelta;

/// Whether anything but its Job bars a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nothing does: a Job that is not there is made.
    Clear,
    /// Something does.
    Barred,
}

/// What is known of a Job.
enum Known<'a> {
    /// It was never seen.
    NotMade,
    /// It was seen, and is not there any more; or another one is.
    Gone,
    /// What has its name is not ours.
    Foreign,
    /// It has not come to an end.
    Runs(&'a Object),
    /// It has succeeded; the object, where nobody has recorded that.
    Passed(Option<&'a Object>),
    /// It has failed, for this reason.
    Failed(String),
}

fn known<'a>(draft: &Draft<'a>, run: &Run, made: For<'_>) -> Known<'a> {
    let seen = run.jobs.get(made.step);
    if seen.is_some_and(|trial| trial.passed.is_some()) {
        return Known::Passed(None);
    }
    let Some(live) = draft.live.get(&made.reference()) else {
        return if seen.is_some() { Known::Gone } else { Known::NotMade };
    };
    match seen {
        Some(trial) if live.uid() != Some(trial.uid.as_str()) => Known::Gone,
        None if !is_ours(draft, live, made) => Known::Foreign,
        Some(_) | None => match job::status(live) {
            JobStatus::Running => Known::Runs(live),
            JobStatus::Complete => Known::Passed(Some(live)),
            JobStatus::Failed { why } => Known::Failed(why),
        },
    }
}

fn is_ours(draft: &Draft<'_>, live: &Object, made: For<'_>) -> bool {
    live.annotation(OWNER) == Some(draft.input.me.instance.owner_of(&draft.input.id).as_str()) && made.made(live)
}

/// What bars a step as its Job has not succeeded; where the way is clear it is made.
pub fn before(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &Step, way: Way) -> Option<Wait> {
    let file = step.before.job.as_ref()?;
    let through = entry::through(plan, &step.name);
    let made = For { rollout: &draft.input.id, run: &run.id, step: &through };
    let name = made.reference().name;
    let wait = Wait::new(Reason::JobRunning, format!("{through} waits for the success of Job {name}"));
    let act = format!("tidegate abort {0}, then tidegate retry {0}: a new run makes a new Job", draft.input.id);
    match known(draft, run, made) {
        Known::Passed(live) => {
            if let Some(live) = live {
                remember(draft, &through, live, Some(draft.now()));
                draft.note(format!("Job {name} succeeded"));
            }
            None
        }
        Known::Runs(live) => {
            if !run.jobs.contains_key(&through) {
                remember(draft, &through, live, None);
                draft.note(format!("Job {name} runs"));
            }
            Some(Wait { since: time(live, "/metadata/creationTimestamp"), until: deadline(live), ..wait })
        }
        Known::NotMade => Some(make(draft, plan, run, made, file, way).unwrap_or(wait)),
        // The run goes back for it before its gates are looked at.
        Known::Failed(_) => Some(wait),
        Known::Gone => {
            let why = format!("{through} waits for Job {name}, which was taken away before anybody saw how it ended");
            Some(Wait::new(Reason::JobGone, why).act(act))
        }
        Known::Foreign => {
            let why = format!("{through} needs a Job {name}, and there is one that is not ours");
            Some(Wait::new(Reason::OwnedByOther, why).act(format!("delete Job {name}; it is made anew")))
        }
    }
}

/// Why the version is bad: the Job before the next step has failed.
#[must_use]
pub fn failed(draft: &Draft<'_>, plan: &Plan, run: &Run, next: Option<&Step>) -> Option<String> {
    let step = next.filter(|step| step.before.job.is_some())?;
    let through = entry::through(plan, &step.name);
    let made = For { rollout: &draft.input.id, run: &run.id, step: &through };
    match known(draft, run, made) {
        Known::Failed(why) => Some(format!("{through}: Job {} failed: {}", made.reference().name, plain(&why))),
        Known::NotMade | Known::Gone | Known::Foreign | Known::Runs(_) | Known::Passed(_) => None,
    }
}

fn remember(draft: &mut Draft<'_>, through: &StepName, live: &Object, passed: Option<Time>) {
    let uid = live.uid().unwrap_or_default().to_owned();
    if let Some(run) = &mut draft.state.run {
        run.jobs.insert(through.clone(), Trial { uid, passed });
    }
}

fn time(live: &Object, pointer: &str) -> Option<Time> {
    live.text(pointer)?.parse().ok()
}

/// When the cluster ends it.
fn deadline(live: &Object) -> Option<Time> {
    let seconds = TimeDelta::try_seconds(live.int("/spec/activeDeadlineSeconds")?)?;
    Some(time(live, "/status/startTime")? + seconds)
}

/// Lets a Job be made; what says that this does not work. Nothing of that is evidence against the version: it has not been tried.
fn make(draft: &mut Draft<'_>, plan: &Plan, run: &Run, made: For<'_>, file: &RepoPath, way: Way) -> Option<Wait> {
    let Some(value) = plan.jobs.get(file) else {
        return Some(Wait::new(Reason::RecordUnreadable, format!("the run's plan has no Job {file}")));
    };
    let object = job::render(made, &run.revision, value);
    let key = (object.reference().clone(), compare::applied_digest(&object));
    let answer = draft.input.evidence.writes.get(&key).filter(|answer| answer.at >= run.started);
    let met = answer.and_then(|answer| Some((answer, converge::failure(object.reference(), &answer.outcome)?)));
    let again = met.as_ref().map(|(answer, (_, _, pause))| answer.at + *pause);
    if way == Way::Clear && again.is_none_or(|again| draft.now() >= again) {
        draft.job = Some(object);
    }
    met.map(|(answer, (reason, message, pause))| {
        let refused = matches!(answer.outcome, WriteOutcome::Refused(_));
        let reason = if refused { Reason::JobRefused } else { reason };
        Wait::new(reason, message).since(answer.at).until(answer.at + pause)
    })
}

/// What is due of Jobs once the record says so: one is made, those of runs that have ended are taken away.
#[must_use]
pub fn due(draft: &Draft<'_>) -> Vec<Action> {
    let Some(posture) = draft.posture().map(Posture::digest) else { return Vec::new() };
    let (input, owner) = (draft.input, draft.input.me.instance.owner_of(&draft.input.id));
    let action = |verb, why| Action {
        class: Class::Advance,
        rollout: input.id.clone(),
        cluster: input.me.cluster.clone(),
        cluster_uid: draft.live.cluster_uid.clone(),
        posture: Some(posture.clone()),
        verb,
        why,
    };
    let ended = left(draft).map(|live| {
        let (target, uid) = (live.reference().clone(), live.uid().unwrap_or_default().to_owned());
        let why = format!("delete {target}");
        action(Verb::Delete { target, expects: Expects::Uid(uid), by: GoesBy::Policy }, why)
    });
    let made = draft.job.iter().map(|job| {
        let object = compare::marked(job.clone(), &owner, draft.next_seq(), input.me.epoch);
        action(
            Verb::Apply { object: Box::new(object), expects: Expects::Absent },
            format!("{}: create", job.reference()),
        )
    });
    ended.chain(made).collect()
}

/// The Jobs of runs that are not open any more. One that took a run back stays to be looked at, until the rollout goes on. What
/// has a name that its own marks do not make is a copy of somebody's.
pub fn left<'a>(draft: &'a Draft<'_>) -> impl Iterator<Item = &'a Object> {
    let owner = draft.input.me.instance.owner_of(&draft.input.id);
    let open = draft.state.run.as_ref().map(|run| &run.id);
    let failed = draft.state.last_run.as_ref().map(|run| &run.id);
    let failed = failed.filter(|_| matches!(draft.state.phase, Phase::Failed { .. }));
    let ours = draft.live.objects.owned_by(&owner).filter(|live| live.reference().kind == Kind::Job);
    ours.filter(move |live| {
        let Some((run, step)) = job::made_for(live) else { return false };
        let made = For { rollout: &draft.input.id, run: &run, step: &step }.made(live);
        let kept = failed == Some(&run) && matches!(job::status(live), JobStatus::Failed { .. });
        made && open != Some(&run) && !kept && live.at("/metadata/deletionTimestamp").is_none()
    })
}
