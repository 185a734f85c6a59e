//! Asks people, and withdraws what is void: only what the record has a reason for.

use super::faults;
use super::record::{Recorded, author, push_outcome};
use super::source::{GitView, Source, to_undo};
use crate::forge::branch::{Advance, Asks, Deletion, Head, RevertRequest};
use crate::forge::request::{self, RequestError, RequestOutcome, Signature};
use crate::git::Pushed;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, InstanceName, RolloutId};
use crate::manifest::installation::HostKind;
use crate::manifest::proof::By;
use crate::manifest::set;
use crate::plan::action::{Ask, Proposal};
use crate::plan::evidence::Entangled;
use crate::plan::input::MayStart;
use crate::record::history::{self, voids};
use crate::record::state::{Time, Void};
use crate::report::metrics::{GitOperation, GitOutcome, Metrics};
use std::collections::BTreeSet;

/// Asks people.
pub struct Proposer<'a> {
    /// Who asks.
    pub instance: &'a InstanceName,
    /// The name of main, as people say it.
    pub main: &'a str,
    /// Counts what is asked of Git.
    pub metrics: &'a Metrics,
    /// Where requests are pull requests too: they need a decisions branch to lead to.
    pub host: Option<HostKind>,
    /// What can prove approvals.
    pub by: By,
    /// The time of this tick.
    pub now: Time,
}

/// What came of requests; of several, what comes last here is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    /// As wanted: the next plan sees it.
    Done,
    /// Not this time.
    Later,
    /// Not with what main has now: people have to do it.
    Entangled(Entangled),
}

impl Proposer<'_> {
    /// Makes the branch of a proposal.
    pub async fn propose(&self, source: &mut Source, proof: &Recorded<'_>, proposal: &Proposal) -> Came {
        let rollout = &proposal.rollout;
        let Some(view) = source.view().filter(|_| proof.allows_pull(proposal)) else {
            tracing::debug!(%rollout, run = %proposal.run, "the record has no reason to ask that");
            return Came::Later;
        };
        let asked = match &proposal.ask {
            Ask::Advance { .. } => faults::effect(rollout, self.advance(source, &view, proposal)).await,
            Ask::Revert { why } => faults::effect(rollout, self.revert(source, &view, proposal, why)).await,
            Ask::Delete { .. } => faults::effect(rollout, self.delete(source, &view, proposal)).await,
        };
        let name = self.head(proposal).branch(self.instance);
        let outcome = match &asked {
            Ok(Some(RequestOutcome::Open(_))) => GitOutcome::Done,
            Ok(Some(RequestOutcome::There(_) | RequestOutcome::Raced)) => GitOutcome::Raced,
            Ok(Some(RequestOutcome::Rejected(_))) => GitOutcome::Rejected,
            Ok(Some(RequestOutcome::Conflict(files))) => return entangled(&view, proposal, files),
            Ok(Some(RequestOutcome::Nothing)) => {
                tracing::debug!(%rollout, branch = name, "main has undone the change already");
                return Came::Later;
            }
            Ok(None) => {
                tracing::debug!(%rollout, branch = name, "what the request is about is not at hand");
                return Came::Later;
            }
            Err(RequestError::Git(error)) => GitOutcome::of(error),
            Err(RequestError::Branch(_) | RequestError::Path(_)) => GitOutcome::Failed,
        };
        self.metrics.asked_git(GitOperation::Push, outcome);
        match asked {
            Ok(Some(RequestOutcome::Open(head))) => {
                tracing::info!(%rollout, run = %proposal.run, branch = name, %head, "asks people");
                source.made(&name, head).await;
                Came::Done
            }
            Ok(Some(RequestOutcome::There(head))) => {
                tracing::info!(%rollout, run = %proposal.run, branch = name, %head, "such a branch is there already");
                source.proposed(&name, Some(head));
                Came::Done
            }
            Ok(Some(RequestOutcome::Rejected(why))) => {
                tracing::warn!(%rollout, branch = name, why, "the Git server does not take the request");
                Came::Later
            }
            Ok(_) => Came::Later,
            Err(error) => {
                tracing::warn!(%rollout, branch = name, %error, "the request was not made");
                Came::Later
            }
        }
    }

    fn head(&self, proposal: &Proposal) -> Head {
        let asks = match &proposal.ask {
            Ask::Advance { through } => Asks::Advance(through.clone()),
            Ask::Revert { .. } => Asks::Revert,
            Ask::Delete { .. } => Asks::Delete,
        };
        Head { rollout: proposal.rollout.clone(), run: proposal.run.clone(), asks }
    }

    fn signature(&self) -> Signature {
        Signature { person: author(self.instance), time: self.now }
    }

    /// `None` when the record has moved on meanwhile.
    async fn advance(
        &self,
        source: &Source,
        view: &GitView,
        proposal: &Proposal,
    ) -> Result<Option<RequestOutcome>, RequestError> {
        let Ask::Advance { through } = &proposal.ask else { return Ok(None) };
        let Some(record) = view.records.get(&proposal.rollout) else { return Ok(None) };
        let Ok(state) = &record.state else { return Ok(None) };
        let (Some(run), Some(plan)) = (&state.run, record.plan.as_deref()) else { return Ok(None) };
        let void: Vec<&Void> = voids(state, &run.id, through).collect();
        let request = Advance { instance: self.instance, rollout: &proposal.rollout, run, plan, through, void: &void };
        match self.decisions(source, view).await? {
            Ok(tip) => request::advance(source.store(), tip.as_ref(), &request, self.signature()).await.map(Some),
            Err(asked) => Ok(Some(asked)),
        }
    }

    /// `None` when the record has moved on meanwhile.
    async fn delete(
        &self,
        source: &Source,
        view: &GitView,
        proposal: &Proposal,
    ) -> Result<Option<RequestOutcome>, RequestError> {
        let Some(record) = view.records.get(&proposal.rollout) else { return Ok(None) };
        let Ok(state) = &record.state else { return Ok(None) };
        let Some(question) = &state.deletions.asked else { return Ok(None) };
        let policy = view.main.policy(&state.source.path, MayStart::Yes).proof;
        let request = Deletion {
            instance: self.instance,
            rollout: &proposal.rollout,
            run: &proposal.run,
            question,
            before: history::deletion_paths(state, &proposal.run),
            by: state.rule(policy.as_ref()).map(|_| self.by),
        };
        match self.decisions(source, view).await? {
            Ok(tip) => request::delete(source.store(), tip.as_ref(), &request, self.signature()).await.map(Some),
            Err(asked) => Ok(Some(asked)),
        }
    }

    /// The tip of the decisions branch, which is begun where a pull request needs one to lead to; else what came of that.
    async fn decisions(
        &self,
        source: &Source,
        view: &GitView,
    ) -> Result<Result<Option<CommitId>, RequestOutcome>, RequestError> {
        match (&view.tips.decisions, self.host) {
            (None, Some(HostKind::Gitea | HostKind::Github | HostKind::Gitlab)) => {
                Ok(match request::begin(source.store(), self.instance, self.signature()).await? {
                    RequestOutcome::Open(tip) | RequestOutcome::There(tip) => Ok(Some(tip)),
                    asked @ (RequestOutcome::Nothing
                    | RequestOutcome::Conflict(_)
                    | RequestOutcome::Rejected(_)
                    | RequestOutcome::Raced) => Err(asked),
                })
            }
            (decisions, _) => Ok(Ok(decisions.clone())),
        }
    }

    async fn revert(
        &self,
        source: &Source,
        view: &GitView,
        proposal: &Proposal,
        why: &str,
    ) -> Result<Option<RequestOutcome>, RequestError> {
        let rollout = &proposal.rollout;
        let record = view.records.get(rollout);
        let state = record.and_then(|record| Some((record, record.state.as_ref().ok()?)));
        // While the revision is refused, main still wants what the run brought; else there is nothing to undo.
        let (Some((record, state)), Some(wanted), Some(main)) =
            (state, view.main.rollout(rollout), view.tips.main.as_ref())
        else {
            return Ok(None);
        };
        let (Some(promoted), Some(sets)) = (&state.promoted, to_undo(record, wanted, &proposal.run)) else {
            return Ok(None);
        };
        let request = RevertRequest {
            instance: self.instance,
            main: self.main,
            rollout,
            run: &proposal.run,
            revision: &wanted.set.revision,
            stable: &promoted.revision,
            why,
        };
        request::revert(source.store(), main, &wanted.path, sets, &request, self.signature()).await.map(Some)
    }

    /// Deletes the branch of a request that asks for nothing any more.
    pub async fn withdraw(&self, source: &mut Source, rollout: &RolloutId, name: &str, head: &CommitId) -> Came {
        let pushed = faults::effect(rollout, request::withdraw(source.store(), name, head)).await;
        match pushed {
            Ok(pushed) => {
                let pushed = Ok(pushed);
                self.metrics.asked_git(GitOperation::Push, push_outcome(&pushed));
                match pushed {
                    Ok(Pushed::Done { .. }) => {
                        tracing::info!(%rollout, branch = name, "withdraws its request: nothing is asked by it any more");
                        source.proposed(name, None);
                        Came::Done
                    }
                    Ok(Pushed::Rejected { why }) => {
                        tracing::warn!(%rollout, branch = name, why, "the Git server does not let the request go");
                        Came::Later
                    }
                    Ok(Pushed::Raced { .. } | Pushed::SourceMoved { .. }) | Err(_) => Came::Later,
                }
            }
            Err(error) => {
                tracing::warn!(%rollout, branch = name, %error, "the request was not withdrawn");
                Came::Later
            }
        }
    }

    /// All requests of one rollout.
    pub async fn all(
        &self,
        source: &mut Source,
        proof: &Recorded<'_>,
        rollout: &RolloutId,
        proposals: &[Proposal],
        void: &[(String, CommitId)],
    ) -> Came {
        let mut came = Came::Done;
        for proposal in proposals {
            came = came.max(self.propose(source, proof, proposal).await);
        }
        for (name, head) in void {
            came = came.max(self.withdraw(source, rollout, name, head).await);
        }
        came
    }
}

/// What a plan has to know so that it does not ask for the same again.
fn entangled(view: &GitView, Proposal { rollout, run, ask: _ }: &Proposal, files: &BTreeSet<RepoPath>) -> Came {
    let Some(wanted) = view.main.rollout(rollout) else { return Came::Later };
    let all = files.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    tracing::warn!(%rollout, %run, files = all, "the run's change on main cannot be undone by itself");
    Came::Entangled(Entangled { run: run.clone(), wanted: set::of_main(&wanted.set), files: files.clone() })
}

#[cfg(test)]
mod tests;
