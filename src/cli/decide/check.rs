//! Whether a decision makes sense now, and what follows from it. Pure: from the record to a decision, or to why not.

use super::Verb;
use crate::cli::ui;
use crate::gate::approval;
use crate::manifest::decision::{Decision, DecisionAction};
use crate::manifest::desired::Plan;
use crate::manifest::ids::{RunId, StepName};
use crate::plan::report::Reason;
use crate::record::history::{replaced, served};
use crate::record::posture::Split;
use crate::record::state::{Outcome, Phase, RolloutState, Route, Run, Serving, Time};
use crate::record::text::{count, exposure, place, plain, since};
use crate::report::view::Record;

/// A decision that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    /// What is written.
    pub decision: Decision,
    /// What happens next, for people.
    pub next: String,
}

/// Decides whether a decision makes sense now.
///
/// # Errors
/// Why it does not, for people.
pub(crate) fn intent(verb: &Verb, record: &Record, reason: Option<&str>, now: Time) -> Result<Intent, String> {
    let asks = Asks { state: &record.state, plan: record.plan.as_ref(), now };
    let (run, action, next) = match verb {
        Verb::Approve { through } => asks.approve(through.as_deref())?,
        Verb::Deny => asks.deny()?,
        Verb::Skip { through } => asks.skip(*through)?,
        Verb::Hold => asks.hold()?,
        Verb::Resume => asks.resume()?,
        Verb::Abort => asks.abort()?,
        Verb::Retry { run } => asks.retry(run.as_ref())?,
        Verb::Rollback { to } => asks.rollback(to.as_ref())?,
        Verb::Adopt { live } => asks.adopt(live.as_deref())?,
        Verb::Delete => asks.delete()?,
    };
    let decision =
        Decision { rollout: record.state.metadata.clone(), run, action, reason: reason.map(ToOwned::to_owned) };
    Ok(Intent { decision, next })
}

/// Which run a decision is about, the decision, and what comes of it; or why it makes no sense.
pub(super) type Found = Result<(RunId, DecisionAction, String), String>;

/// What is known of a rollout.
pub(super) struct Asks<'a> {
    /// Its record.
    pub(super) state: &'a RolloutState,
    plan: Option<&'a Plan>,
    now: Time,
}

impl Asks<'_> {
    /// Where the rollout stands, as the second half of a sentence.
    pub(super) fn stands(&self) -> String {
        let phase = &self.state.phase;
        let since = since(phase).map_or(String::new(), |since| format!(", since {}", ui::distance(since, self.now)));
        let (name, place) = (phase.name(), place(phase));
        // `steady (succeeded)` and `failed` say the phase themselves.
        let says_it = place.starts_with(&name.to_lowercase());
        let stands = if says_it { place } else { format!("{name} ({place})") };
        format!("{} is {stands}{since}", self.state.metadata)
    }

    /// The open run, if decisions about going on can still reach it.
    pub(super) fn open(&self, what: &str) -> Result<&Run, String> {
        let Some(run) = &self.state.run else {
            return Err(format!("{what}: no run is open; {}{}", self.stands(), self.asked_to_delete()));
        };
        if let Phase::Reverting { why, .. } = &self.state.phase {
            return Err(format!("{what}: run {} is on its way back already: {}", run.id, plain(why)));
        }
        if let Phase::Finalising(position) = &self.state.phase {
            return Err(format!(
                "{what}: run {} is promoted but for its last steps; it stands on {}",
                run.id, position.step
            ));
        }
        Ok(run)
    }

    pub(super) fn plan(&self, run: &Run) -> Result<&Plan, String> {
        self.plan.ok_or_else(|| {
            format!("the plan of run {} is not on the state branch, so nothing can be said of its steps", run.id)
        })
    }

    fn approve(&self, through: Option<&str>) -> Found {
        let run = self.open("nothing waits for approval")?;
        let plan = self.plan(run)?;
        let id = &self.state.metadata;
        if run.denied {
            return Err(format!("a person said no to run {}; lift that first: tidegate resume {id}", run.id));
        }
        let gates = approvals(plan, run);
        let through = self.chosen(through, &gates, plan, run)?;
        let mut next =
            format!("Once tidegate has counted this, {id} may go on to {through}{}.", exposes(plan, &through));
        if let Some(window) = window(plan, &through) {
            next.push_str(&format!("\nIt still waits for the window {window}."));
        }
        let reached = [run.approved.as_slice(), std::slice::from_ref(&through)].concat();
        let later: Vec<&str> =
            gates.iter().filter(|gate| !approval::covers(plan, &reached, gate)).map(StepName::as_str).collect();
        if !later.is_empty() {
            next.push_str(&format!("\nLater it asks before: {}.", later.join(", ")));
        }
        if run.held {
            next.push_str(&format!("\nThe run is held: nothing is entered before tidegate resume {id}."));
        }
        Ok((run.id.clone(), DecisionAction::Approve { through }, next))
    }

    /// The approval that is meant: the one named, else the one that the run waits for.
    fn chosen(&self, named: Option<&str>, gates: &[StepName], plan: &Plan, run: &Run) -> Result<StepName, String> {
        let (id, names) = (&self.state.metadata, gates.iter().map(StepName::as_str).collect::<Vec<_>>().join(", "));
        if gates.is_empty() {
            return Err(format!("no step of run {} asks for approval", run.id));
        }
        let approved = |gate: &StepName| approval::covers(plan, &run.approved, gate);
        let promotion = StepName::fixed("promotion");
        let gate = match named {
            // All gates that are left, whether or not the promotion has one itself.
            Some("promotion") if !gates.contains(&promotion) => {
                if !gates.iter().any(|gate| self.is_ahead(plan, gate) && !approved(gate)) {
                    return Err(format!("run {} asks for no further approval: {}", run.id, self.stands()));
                }
                &promotion
            }
            Some(named) => gates.iter().find(|gate| gate.as_str() == named).ok_or_else(|| {
                let phases: Vec<&str> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
                let what = if phases.contains(&named) || named == "promotion" {
                    format!("{named:?} asks for no approval")
                } else {
                    format!("there is no phase {named:?}, but {}", phases.join(", "))
                };
                format!("{what}; run {} asks before: {names}", run.id)
            })?,
            None => self.awaited(plan).ok_or_else(|| {
                match gates.iter().find(|gate| self.is_ahead(plan, gate) && !approved(gate)) {
                    Some(gate) => format!(
                        "run {} waits for no approval yet: {}\nThe next that it will ask for is {gate}; to give it \
                         already: tidegate approve {id} --through {gate}",
                        run.id,
                        self.stands()
                    ),
                    None => format!("run {} asks for no further approval: {}", run.id, self.stands()),
                }
            })?,
        };
        if !self.is_ahead(plan, gate) {
            Err(format!("run {} has gone past the approval of {gate}: {}", run.id, self.stands()))
        } else if approved(gate) {
            Err(format!("{gate} of run {} is approved already", run.id))
        } else {
            Ok(gate.clone())
        }
    }

    /// Whether the run has yet to pass the approval that is asked for under this name.
    fn is_ahead(&self, plan: &Plan, gate: &StepName) -> bool {
        let place = |step: &StepName| match step.as_str() {
            // It stands behind the first phase's gates.
            "prepare" => 0,
            _ => plan.phases.iter().position(|phase| phase.name == *step).unwrap_or(plan.phases.len()),
        };
        // A run that failed on its candidate had its promotion approved.
        let failed = matches!(self.state.phase, Phase::Failed { .. });
        !failed && self.state.phase.position().is_none_or(|position| place(gate) > place(&position.step))
    }

    /// The approval that the run waits for now.
    fn awaited<'p>(&self, plan: &'p Plan) -> Option<&'p StepName> {
        let run = self.state.run.as_ref()?;
        self.gate(plan).filter(|gate| !approval::covers(plan, &run.approved, gate))
    }

    /// The approval that stands before the step that the run waits for, given or not.
    fn gate<'p>(&self, plan: &'p Plan) -> Option<&'p StepName> {
        let step = if let Phase::Waiting { next, .. } = &self.state.phase {
            approval::asked_as(plan, next)?
        } else if let Phase::WaitingPromotion { .. } = &self.state.phase {
            StepName::fixed("promotion")
        } else {
            return None;
        };
        approvals_ref(plan).find(|gate| **gate == step)
    }

    fn deny(&self) -> Found {
        let run = self.open("there is nothing to deny")?;
        if run.denied {
            return Err(format!("run {} is denied already", run.id));
        }
        let plan = self.plan(run)?;
        if self.gate(plan).is_none() {
            let id = &self.state.metadata;
            return Err(format!(
                "run {} waits for no approval now: {}\nTo keep it where it is: tidegate hold {id}; to take it back: \
                 tidegate abort {id}",
                run.id,
                self.stands()
            ));
        }
        let next = format!(
            "Run {} stays where it is, with what it exposes now, and asks for nothing before tidegate resume {}.",
            run.id, self.state.metadata
        );
        Ok((run.id.clone(), DecisionAction::Deny, next))
    }

    fn hold(&self) -> Found {
        let id = &self.state.metadata;
        let run = self.open("there is nothing to hold")?;
        if run.held {
            return Err(format!("run {} is held already", run.id));
        }
        let next = format!(
            "Run {} enters no further step before tidegate resume {id}. What it exposes now stays; failing evidence still \
             takes it back.",
            run.id
        );
        Ok((run.id.clone(), DecisionAction::Hold, next))
    }

    fn resume(&self) -> Found {
        let denied = self.state.deletions.denied().count();
        if denied > 0 && self.state.run.is_none() {
            let next = format!("People are asked again whether {} may go.", count(denied, "object"));
            return Ok((self.state.current(), DecisionAction::Resume, next));
        }
        let run = self.open("there is nothing to resume")?;
        if !run.held && !run.denied {
            return Err(format!("run {} is neither held nor denied: {}", run.id, self.stands()));
        }
        let next = match (run.held, run.denied) {
            (_, false) => format!("Run {} goes on as its gates allow.", run.id),
            (_, true) => format!("Run {} goes on as its gates allow, and asks again for what was denied.", run.id),
        };
        Ok((run.id.clone(), DecisionAction::Resume, next))
    }

    fn abort(&self) -> Found {
        let id = &self.state.metadata;
        if let (Phase::Finalising(_), Some(run)) = (&self.state.phase, &self.state.run) {
            return Err(format!(
                "run {} is promoted but for its last steps and cannot be aborted; when it has ended: tidegate rollback {id}",
                run.id
            ));
        }
        let run = self.open("there is nothing to abort")?;
        let next = format!(
            "All traffic returns to the stable version, the candidate goes, and revision {} is not started again before \
             tidegate retry {id} or other manifests.",
            run.revision.short()
        );
        Ok((run.id.clone(), DecisionAction::Abort, next))
    }

    fn retry(&self, named: Option<&RunId>) -> Found {
        let id = &self.state.metadata;
        if let (Phase::Failed { standing: Serving::OnCandidate, .. }, Some(run)) = (&self.state.phase, &self.state.run)
            && named.is_none_or(|named| *named == run.id)
        {
            let next = format!("Run {} tries its promotion again.", run.id);
            return Ok((run.id.clone(), DecisionAction::Retry, next));
        }
        let runs: Vec<String> = self.state.refused.iter().map(|refused| refused.run.to_string()).collect();
        let refused = match named {
            Some(named) => self.state.refused.iter().find(|refused| refused.run == *named).ok_or_else(|| {
                if runs.is_empty() {
                    format!("no revision of {id} is refused; there is nothing to retry")
                } else {
                    format!("nothing is refused because of run {named}; refused are those of: {}", runs.join(", "))
                }
            })?,
            None => self.state.refused.last().ok_or_else(|| {
                format!("no revision of {id} is refused; there is nothing to retry: {}", self.stands())
            })?,
        };
        let next = format!(
            "Revision {} ({:?} in run {}: {}) may start again; it does at once if it is what main wants.",
            refused.revision.short(),
            refused.outcome,
            refused.run,
            plain(&refused.why)
        );
        Ok((refused.run.clone(), DecisionAction::Retry, next))
    }

    fn rollback(&self, named: Option<&RunId>) -> Found {
        let id = &self.state.metadata;
        if let Some(run) = &self.state.run
            && let Some(found) = self.rollback_of(run, named)
        {
            return found;
        }
        let promoted = self.state.history.iter().filter(|past| past.outcome == Outcome::Promoted).map(|past| &past.run);
        let zero = RunId::zero();
        let mut reachable: Vec<&RunId> =
            std::iter::once(&zero).chain(promoted).filter(|run| replaced(self.state, run).is_some()).collect();
        reachable.reverse();
        let names = reachable.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let run = match named {
            Some(named) if reachable.contains(&named) => named,
            Some(named) if reachable.is_empty() => {
                return Err(format!("{id} has no version to go back to, not {named} either"));
            }
            Some(named) => return Err(format!("run {named} cannot be gone back to; these can: {names}")),
            None => *reachable.first().ok_or_else(|| format!("{id} has no earlier version to go back to"))?,
        };
        let version = if *run == zero {
            "what served before the first run".to_owned()
        } else {
            format!("the version of run {run}")
        };
        let from = self.state.promoted.as_ref().map_or("?", |promoted| promoted.revision.short());
        let first = self.state.run.as_ref().map(|open| match open.route {
            Route::Rollback => format!("Run {} goes back already, and ends first. ", open.id),
            Route::Phases | Route::Plain => self.taken_back(open),
        });
        let first = first.unwrap_or_default();
        let next = format!(
            "{first}If rollback.window still allows it, {version} comes back: prepared, then all traffic at once, \
             without phases or approvals. Revision {from} is refused until tidegate retry {id} or other manifests.",
        );
        Ok((run.clone(), DecisionAction::Rollback, next))
    }

    /// A rollback that takes the open run back, and leads to the version that served before it; none where another is named.
    fn rollback_of(&self, open: &Run, named: Option<&RunId>) -> Option<Found> {
        let (served, goes_back) = (served(self.state), open.route == Route::Rollback);
        match named {
            None if goes_back => {
                let (run, id) = (&open.id, &self.state.metadata);
                return Some(Err(format!(
                    "run {run} is a rollback: {}\nTo take it back: tidegate abort {id}",
                    self.stands()
                )));
            }
            Some(named) if *named != open.id && (goes_back || *named != served) => return None,
            None | Some(_) => {}
        }
        let named = if goes_back { open.id.clone() } else { served };
        let next = if let Phase::Finalising(_) = self.state.phase {
            let comes = "Then the version before it comes back: prepared, then all traffic at once, without phases or approvals.";
            format!("{}{comes}", self.taken_back(open))
        } else {
            self.taken_back(open).trim_end().to_owned()
        };
        Some(Ok((named, DecisionAction::Rollback, next)))
    }

    /// What becomes of the open run first.
    fn taken_back(&self, open: &Run) -> String {
        let (run, id) = (&open.id, &self.state.metadata);
        if let Phase::Finalising(_) = self.state.phase {
            return format!("Run {run} is promoted but for its last steps, and ends first. ");
        }
        let revision = open.revision.short();
        format!(
            "Run {run} is taken back: all traffic returns to the stable version, the candidate goes, and revision {revision} is not \
             started again before tidegate retry {id} or other manifests. "
        )
    }

    fn adopt(&self, named: Option<&str>) -> Found {
        let id = &self.state.metadata;
        let differs = self.state.conditions.iter().find(|c| c.reason == Reason::AdoptionDiffers.as_str());
        let differs = differs.ok_or_else(|| format!("nothing waits to be adopted: {}", self.stands()))?;
        let live = differs.live.as_ref().ok_or_else(|| {
            let why = differs.act.as_deref().map_or(String::new(), |act| format!(": {}", plain(act)));
            format!("what is live of {id} cannot be adopted{why}")
        })?;
        if let Some(named) = named.filter(|named| !live.as_str().starts_with(named)) {
            return Err(format!(
                "what is live of {id} is {} by now, not {}; look at what differs: tidegate why {id}",
                live.short(),
                plain(named)
            ));
        }
        let run = self.state.last_run.as_ref().map_or_else(RunId::zero, |run| run.id.clone());
        let next = format!(
            "What is live ({}) becomes the stable version of {id}, without a restart; then a run leads to what main wants, \
             as its gates allow.\nThese differences were seen: {}",
            live.short(),
            plain(&differs.message)
        );
        Ok((run, DecisionAction::Adopt { live: live.clone() }, next))
    }
}

/// The names under which a run asks for approval, in order.
fn approvals(plan: &Plan, run: &Run) -> Vec<StepName> {
    match run.route {
        Route::Phases | Route::Plain => approvals_ref(plan).cloned().collect(),
        Route::Rollback => Vec::new(),
    }
}

fn approvals_ref(plan: &Plan) -> impl Iterator<Item = &StepName> {
    static PROMOTION: std::sync::LazyLock<StepName> = std::sync::LazyLock::new(|| StepName::fixed("promotion"));
    let promotion = plan.promotion.before.approval.is_some().then_some(&*PROMOTION);
    plan.phases.iter().filter(|phase| phase.before.approval.is_some()).map(|phase| &phase.name).chain(promotion)
}

/// The window that stands before the same step.
fn window<'a>(plan: &'a Plan, step: &StepName) -> Option<&'a crate::manifest::ids::ScheduleName> {
    let phase = plan.phases.iter().find(|phase| phase.name == *step);
    phase.map_or(&plan.promotion.before, |phase| &phase.before).window.as_ref()
}

/// What a step exposes, in words.
fn exposes(plan: &Plan, step: &StepName) -> String {
    let mut split = Split::stable();
    for phase in &plan.phases {
        split.open(&phase.expose);
        if phase.name == *step {
            return exposure(&split).map_or(String::new(), |words| format!(" ({words})"));
        }
    }
    if plan.traffic.is_some() { " (all traffic)".to_owned() } else { String::new() }
}
