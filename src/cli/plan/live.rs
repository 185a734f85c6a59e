//! What the planner itself would do, with what is live: the controller's own pure function on the same values.

use super::{ActionView, Effect, PlanView, PlannedView};
use crate::cli::decisions;
use crate::cli::failure::Failure;
use crate::cli::live::{self, Sight};
use crate::cli::repository::Repository;
use crate::gate::guard::Guard;
use crate::gate::schedule::{FreezeSpan, Window};
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::ids::{CommitId, Namespace, RolloutId, SetId};
use crate::manifest::load::{Loaded, Rejected};
use crate::manifest::object::Kind;
use crate::manifest::policy::{Policy, Schedule};
use crate::manifest::raw::Floors;
use crate::plan::action::{Action, Ask, Class, Verb};
use crate::plan::draft::{RecordChange, RolloutPlan};
use crate::plan::evidence::{Answer, Found, Need};
use crate::plan::input::{Desired, Git, Input, Live, MayStart, PolicyView, RecordedState};
use crate::plan::planner;
use crate::record::history::is_under_way;
use crate::record::state::{RolloutState, Time, Writer};
use crate::record::text::plain;
use crate::report::view::Record;
use crate::workload::live::{Expects, LiveState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// How often dry runs are asked for: the answers to the first may lead to others.
const ROUNDS: usize = 3;

/// Adds to each rollout what the planner wants done now, and all that it waits on.
pub(super) async fn add(
    plan: &mut PlanView,
    loaded: &Loaded,
    repository: &Repository,
    kubeconfig: &Path,
    now: Time,
) -> Result<(), Failure> {
    let records = repository.records().await?;
    let mut kinds: BTreeMap<Namespace, BTreeSet<Kind>> = BTreeMap::new();
    for (id, wanted) in &loaded.rollouts {
        let state = records.get(id).and_then(|record| record.as_ref().ok()).map(|record| &record.state);
        let set = wanted.as_ref().ok().map(|rollout| &*rollout.set);
        kinds.entry(id.namespace.clone()).or_default().extend(live::kinds(set, state));
    }
    let sight = live::look(kubeconfig, &repository.instance, kinds).await?;
    let open =
        records.values().filter(|record| record.as_ref().is_ok_and(|record| is_under_way(&record.state))).count();
    let limit = loaded.policy.as_ref().map_or(0, |policy| policy.limits.max_concurrent_runs) as usize;
    let may_start = if open < limit { MayStart::Yes } else { MayStart::No { limit } };
    for planned in &mut plan.rollouts {
        let Some((id, wanted)) = loaded.rollouts.iter().find(|(id, _)| id.to_string() == planned.rollout) else {
            continue;
        };
        let scene = Scene { repository, sight: &sight, loaded, now };
        let input = scene.input(id, wanted, records.get(id), may_start).await?;
        let plan = decide(input, &sight).await;
        show(planned, &plan);
    }
    Ok(())
}

struct Scene<'a> {
    repository: &'a Repository,
    sight: &'a Sight,
    loaded: &'a Loaded,
    now: Time,
}

impl Scene<'_> {
    async fn input(
        &self,
        id: &RolloutId,
        wanted: &Result<Rollout, Rejected>,
        record: Option<&Result<Record, String>>,
        may_start: MayStart,
    ) -> Result<Input, Failure> {
        let state = record.and_then(|record| record.as_ref().ok());
        let desired = match wanted {
            Ok(rollout) => Desired::Wanted(Arc::new(rollout.clone())),
            Err(rejected) => {
                Desired::Rejected(rejected.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            }
        };
        let path = match (wanted, state) {
            (Ok(rollout), _) => Some(rollout.path.clone()),
            (Err(_), Some(record)) => Some(record.state.source.path.clone()),
            (Err(_), None) => None,
        };
        let policy = self.loaded.policy.as_ref().ok();
        let tenant = policy.zip(path.as_ref()).and_then(|(policy, path)| policy.tenant_of(path));
        let floors = tenant.map(|(_, tenant)| tenant.floors.clone()).unwrap_or_default();
        let policy = PolicyView { tenant: tenant.map(|(name, _)| name.clone()), may_start, floors, ..rules(policy) };
        let (decisions, recorded) = match record {
            None => (Default::default(), RecordedState::None),
            Some(Err(why)) => (Default::default(), RecordedState::Unreadable(why.clone())),
            Some(Ok(record)) => {
                let recorded = RecordedState::State(Box::new(record.state.clone()), record.plan.clone().map(Arc::new));
                (decisions::about(self.repository, record).await?, recorded)
            }
        };
        let live = match self.sight.spaces.get(&id.namespace) {
            Some(live) => Live::Seen(Arc::clone(live)),
            None => Live::Away { why: "it was not read".to_owned() },
        };
        Ok(Input {
            now: self.now,
            id: id.clone(),
            me: self.me(wanted.as_ref().ok(), state.map(|record| &record.state)),
            sets: self.sets(id, wanted.as_ref().ok(), state).await?,
            past: BTreeMap::new(),
            desired,
            main: state.map_or_else(CommitId::none, |record| record.state.source.commit.clone()),
            recorded,
            decisions,
            proposals: self.repository.proposals(id),
            policy,
            brake: self.sight.brake.of(id).or(Ok(None)),
            live,
            // Whose namespaces those of gateways are is the Installation's to say.
            trees: Arc::default(),
            evidence: Arc::default(),
            gaps: Vec::new(),
            git: Git::Fresh,
        }
        .tracking())
    }

    /// The controller that would act: the one that wrote the record.
    fn me(&self, rollout: Option<&Rollout>, state: Option<&RolloutState>) -> Writer {
        if let Some(state) = state {
            return state.writer.clone();
        }
        let cluster = rollout.and_then(|rollout| rollout.clusters.first().cloned());
        Writer {
            instance: self.repository.instance.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: cluster.unwrap_or_else(|| "unknown".parse().expect("a cluster's name, because it is a DNS label")),
            cluster_uid: self.sight.cluster.uid().to_owned(),
            epoch: 0,
        }
    }

    /// All sets that the record and the files name.
    async fn sets(
        &self,
        id: &RolloutId,
        rollout: Option<&Rollout>,
        record: Option<&Record>,
    ) -> Result<BTreeMap<SetId, Arc<Set>>, Failure> {
        let mut sets: BTreeMap<SetId, Arc<Set>> = BTreeMap::new();
        sets.extend(rollout.map(|rollout| (rollout.set.id.clone(), Arc::clone(&rollout.set))));
        let Some(record) = record else { return Ok(sets) };
        let target = record.plan.as_ref().map(|plan| &plan.target).or(rollout.map(|rollout| &rollout.plan.target));
        let Some(target) = target else { return Ok(sets) };
        for set in crate::record::history::pinned(&record.state) {
            if sets.contains_key(set) {
                continue;
            }
            // One that cannot be read is missed by the planner, which says so.
            if let Ok(found) = self.repository.pinned(id, set, target, &record.state).await? {
                sets.insert(set.clone(), Arc::new(found));
            }
        }
        Ok(sets)
    }
}

/// Plans, answers what the planner wants to know by server-side dry runs and looking up, and plans again.
async fn decide(mut input: Input, sight: &Sight) -> RolloutPlan {
    let mut plan = planner::plan(&input);
    for _ in 0..ROUNDS {
        let Live::Seen(live) = input.live.clone() else { return plan };
        let open: Vec<Need> =
            plan.needs.iter().filter(|need| !input.evidence.dry_runs.contains_key(&need.question)).cloned().collect();
        if open.is_empty() && plan.lookups.is_empty() {
            return plan;
        }
        for lookup in plan.lookups {
            let presence = sight.cluster.look(&lookup).await;
            Arc::make_mut(&mut input.evidence).looked.insert(lookup, Found { presence, at: input.now });
        }
        for need in open {
            let outcome = sight.cluster.dry_run(&need.object, &expected(&need, &live)).await;
            Arc::make_mut(&mut input.evidence).dry_runs.insert(need.question, Answer { outcome, at: input.now });
        }
        input = input.tracking();
        plan = planner::plan(&input);
    }
    plan
}

fn expected(need: &Need, live: &LiveState) -> Expects {
    let object = live.get(&need.question.target);
    match (object.and_then(|object| object.uid()), object.and_then(|object| object.resource_version())) {
        (Some(uid), Some(version)) => Expects::Version { uid: uid.to_owned(), resource_version: version.to_owned() },
        _ => Expects::Absent,
    }
}

fn rules(policy: Option<&Policy>) -> PolicyView {
    let Some(policy) = policy else { return PolicyView::default() };
    let window = |schedule: &Schedule| Window::new(&schedule.cron, schedule.duration, schedule.zone).ok();
    let windows = policy.windows.iter().filter_map(|(name, schedule)| Some((name.clone(), window(schedule)?)));
    let freezes = policy.freezes.iter().filter_map(|(name, freeze)| {
        let tenants = freeze.tenants.clone();
        Some((name.clone(), FreezeSpan { window: window(&freeze.schedule)?, tenants }))
    });
    PolicyView {
        windows: windows.collect(),
        freezes: freezes.collect(),
        // What other clusters have is for the controller to read.
        waves: None,
        tenant: None,
        max_deletions: policy.limits.max_deletions as usize,
        may_start: MayStart::Yes,
        // No run that is open is planned further here.
        proof: None,
        guard: Guard::Unasked,
        floors: Floors::default(),
        teams: policy.teams(),
        unread: false,
    }
}

/// Puts a plan into words.
pub(super) fn show(planned: &mut PlannedView, plan: &RolloutPlan) {
    let RolloutPlan {
        retreats,
        record,
        actions,
        proposals,
        void,
        waits,
        needs: _,
        lookups: _,
        questions: _,
        review_queries: _,
        wake_at: _,
    } = plan;
    planned.actions.extend(retreats.iter().map(action));
    match record {
        RecordChange::Keep => {}
        RecordChange::Write { what, .. } => planned.actions.push(recorded("writes", what)),
        RecordChange::Remove { what } => planned.actions.push(recorded("removes", what)),
    }
    planned.actions.extend(actions.iter().map(action));
    planned.actions.extend(proposals.iter().map(|proposal| {
        let does = match &proposal.ask {
            Ask::Advance { through } => format!("asks for approval of {through}"),
            Ask::Revert { .. } => "proposes to undo the change on main".to_owned(),
            Ask::Delete { objects } => format!("asks whether {} objects may go", objects.len()),
        };
        ActionView { class: "upkeep", does, why: format!("run {}", proposal.run) }
    }));
    planned.actions.extend(void.iter().map(|(branch, _)| ActionView {
        class: "upkeep",
        does: format!("withdraws {}", plain(branch)),
        why: "it asks for nothing any more".to_owned(),
    }));
    if planned.change != Effect::Rejected {
        planned.waits =
            waits.iter().map(|wait| format!("{}: {}", wait.reason.as_str(), plain(&wait.message))).collect();
    }
}

fn recorded(does: &str, what: &str) -> ActionView {
    ActionView { class: "record", does: format!("{does} the record"), why: plain(what) }
}

fn action(action: &Action) -> ActionView {
    let class = match action.class {
        Class::Retreat => "retreat",
        Class::Upkeep => "upkeep",
        Class::Advance => "advance",
    };
    let verb = match &action.verb {
        Verb::Apply { .. } => "applies",
        Verb::Migrate { .. } => "takes over the fields of",
        Verb::Delete { .. } => "deletes",
        Verb::CopySecret(_) => "copies the Secret of",
    };
    ActionView { class, does: format!("{verb} {}", action.verb.target()), why: plain(&action.why) }
}
