//! What our requests say on the pages of a Git host. Pure.
//!
//! Nothing in it changes from one look to the next while the rollout stands where it stands, but where a window or a freeze begins or ends:
//! each change is a call to the host.

use crate::forge::branch::{Advance, Asks, Deletion, Head, RevertRequest, decisions_branch};
use crate::forge::pull::{self, PullBody};
use crate::gate::approval;
use crate::manifest::desired::{Plan, Suspend};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, InstanceName};
use crate::plan::forecast::{Way, forecast};
use crate::plan::input::MayStart;
use crate::reconcile::source::GitView;
use crate::record::history::{self, voids};
use crate::record::state::{Phase, Promoted, Pull, RolloutState, Run, Time, Void};
use crate::record::store;

/// Who asks, when, and what people can be led to.
pub(super) struct Asker<'a> {
    pub(super) instance: &'a InstanceName,
    /// The name of main, as people say it.
    pub(super) main: &'a str,
    pub(super) now: Time,
    /// The page that shows what the second commit changes beside the first one.
    pub(super) compare: &'a dyn Fn(&CommitId, &CommitId) -> Option<String>,
    /// The page of a file of the record.
    pub(super) record: &'a dyn Fn(&RepoPath) -> Option<String>,
}

/// What a branch asks for, if the record names it.
pub(super) fn request(view: &GitView, asker: &Asker<'_>, (branch, head): (&str, &CommitId)) -> Option<PullBody> {
    let Asker { instance, main, now, compare, record: page } = *asker;
    let asked = Head::parse(instance, branch)?;
    let record = view.records.get(&asked.rollout)?;
    let state = record.state.as_ref().ok()?;
    let recorded = |pull: &&Pull| pull.branch == branch && pull.head == *head;
    let rule = || state.rule(view.main.policy(&state.source.path, MayStart::Yes).proof.as_ref());
    let (base, text, rule) = match &asked.asks {
        Asks::Advance(through) => {
            let run = state.run.as_ref().filter(|run| run.id == asked.run && !run.denied)?;
            let plan = record.plan.as_deref()?;
            run.pulls.get(through).filter(recorded)?;
            if approval::covers(plan, &run.approved, through) {
                return None;
            }
            let void: Vec<&Void> = voids(state, &run.id, through).collect();
            let request = Advance { instance, rollout: &asked.rollout, run, plan, through, void: &void };
            let serving = state.promoted.as_ref().map(|Promoted { revision, commit, .. }| {
                let compare = commit.as_ref().and_then(|commit| compare(commit, &run.source));
                pull::ServingVersion { revision, compare }
            });
            let record = page(&store::paths(&asked.rollout).state);
            let beside = pull::Beside { serving, record, foreseen: foreseen(view, state, (run, plan), now) };
            (decisions_branch(instance), pull::advance(&request, &beside, head), rule())
        }
        Asks::Revert => {
            state.revert.as_ref().filter(recorded)?;
            let refused = state.refused.iter().find(|refused| refused.run == asked.run)?;
            let stable = &state.promoted.as_ref()?.revision;
            let Head { rollout, run, asks: _ } = &asked;
            let request =
                RevertRequest { instance, main, rollout, run, revision: &refused.revision, stable, why: &refused.why };
            (main.to_owned(), pull::revert(&request, head), None)
        }
        Asks::Delete => {
            let question = state.deletions.asked.as_ref()?;
            question.pull.as_ref().filter(recorded)?;
            let (rollout, run) = (&asked.rollout, &asked.run);
            let rule = rule();
            let (before, by) = (history::deletion_paths(state, run), rule.as_ref().map(|rule| rule.by));
            let request = Deletion { instance, rollout, run, question, before, by };
            (decisions_branch(instance), pull::delete(&request, head), rule)
        }
    };
    Some(PullBody { base, head: head.clone(), text, rule })
}

/// How a run goes on from the step that it waits before; nothing while its file keeps it from entering anything.
fn foreseen(view: &GitView, state: &RolloutState, (run, plan): (&Run, &Plan), now: Time) -> Option<String> {
    let rollout = view.main.rollout(&state.metadata).filter(|rollout| rollout.suspend == Suspend::No)?;
    if matches!(state.phase, Phase::Reverting { .. }) {
        return None;
    }
    let entered = state.phase.position();
    let way = Way { rollout, plan, route: run.route, from: &run.from, entered, approved: &run.approved };
    forecast(&way, Some(view.main.policies()?.policy()), now).sentence()
}
