//! Numbers for Prometheus. Each label has a closed list of values, or is the name of a rollout, which is two DNS labels: none is made from
//! foreign text, and the number of series is bounded by that of the rollouts, whatever a repository or a cluster says.

use crate::forge::host::{CallOutcome, CallPurpose};
use crate::forge::receiver::Delivery;
use crate::git::GitError;
use crate::manifest::ids::RolloutId;
use crate::manifest::object::Kind;
use crate::plan::action::Class;
use crate::plan::report::Reason;
use crate::record::state::{Phase, RolloutState};
use crate::workload::live::WriteOutcome;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// What `/metrics` answers with.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type One = [(&'static str, &'static str); 1];
type Three = [(&'static str, String); 3];
type Two = [(&'static str, &'static str); 2];

/// What is asked of a Git server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOperation {
    /// The tips of branches.
    LookUp,
    /// Objects.
    Fetch,
    /// A branch moved, made or deleted.
    Push,
}

impl GitOperation {
    const ALL: [Self; 3] = [Self::LookUp, Self::Fetch, Self::Push];

    fn label(self) -> &'static str {
        match self {
            Self::LookUp => "look-up",
            Self::Fetch => "fetch",
            Self::Push => "push",
        }
    }
}

/// What a request to a Git server came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOutcome {
    /// As wanted.
    Done,
    /// A push met a branch that had moved.
    Raced,
    /// The server does not allow it.
    Rejected,
    /// No answer.
    Away,
    /// An answer that is no use.
    Failed,
}

impl GitOutcome {
    const ALL: [Self; 5] = [Self::Done, Self::Raced, Self::Rejected, Self::Away, Self::Failed];

    /// Sorts a failure.
    #[must_use]
    pub fn of(error: &GitError) -> Self {
        match error {
            GitError::Away { .. } => Self::Away,
            GitError::Denied { .. } => Self::Rejected,
            GitError::Config(_)
            | GitError::HostKey { .. }
            | GitError::Missing(_)
            | GitError::Protocol { .. }
            | GitError::Corrupt { .. }
            | GitError::Malformed { .. }
            | GitError::Limit { .. }
            | GitError::BadTree { .. }
            | GitError::Cache { .. } => Self::Failed,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Raced => "raced",
            Self::Rejected => "rejected",
            Self::Away => "away",
            Self::Failed => "failed",
        }
    }
}

fn class_label(class: Class) -> &'static str {
    match class {
        Class::Retreat => "retreat",
        Class::Upkeep => "upkeep",
        Class::Advance => "advance",
    }
}

/// All that [`outcome_label`] says.
const OUTCOMES: [&str; 7] = ["done", "stale", "conflict", "refused", "missing-kind", "forbidden", "retriable"];

/// An outcome in one word.
#[must_use]
pub fn outcome_label(outcome: &WriteOutcome) -> &'static str {
    match outcome {
        WriteOutcome::Done(_) => "done",
        WriteOutcome::Stale(_) => "stale",
        WriteOutcome::Conflict { .. } => "conflict",
        WriteOutcome::Refused(_) => "refused",
        WriteOutcome::MissingKind(_) => "missing-kind",
        WriteOutcome::Forbidden(_) => "forbidden",
        WriteOutcome::Retriable(_) => "retriable",
    }
}

/// All numbers. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    rollouts: Family<One, Gauge>,
    waiting: Family<One, Gauge>,
    waiting_since: Family<One, Gauge>,
    info: Family<Three, Gauge>,
    unread: Family<One, Gauge>,
    /// The series of `info` that there are.
    informed: Arc<Mutex<BTreeSet<Three>>>,
    transitions: Family<One, Counter>,
    actions: Family<Two, Counter>,
    git: Family<Two, Counter>,
    host: Family<Two, Counter>,
    webhooks: Family<One, Counter>,
    ticks: Counter,
    leading: Gauge,
    rejected: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        let mut metrics = Self {
            registry: Arc::default(),
            rollouts: Family::default(),
            waiting: Family::default(),
            waiting_since: Family::default(),
            info: Family::default(),
            unread: Family::default(),
            informed: Arc::default(),
            transitions: Family::default(),
            actions: Family::default(),
            git: Family::default(),
            host: Family::default(),
            webhooks: Family::default(),
            ticks: Counter::default(),
            leading: Gauge::default(),
            rejected: Gauge::default(),
        };
        registry.register("rollouts", "Rollouts by the phase that their record names", metrics.rollouts.clone());
        registry.register("waiting", "Rollouts that wait, by reason", metrics.waiting.clone());
        let help = "When the wait began that is recorded for longest, by reason, as a Unix time; 0 if there is none";
        registry.register("waiting_since_seconds", help, metrics.waiting_since.clone());
        let help =
            "1 for each rollout and each reason that it waits for (empty: none), with the phase that its record names";
        registry.register("rollout_info", help, metrics.info.clone());
        registry.register("kinds_unread", "Namespaces in which a kind cannot be read", metrics.unread.clone());
        registry.register("transitions", "Phases entered, as recorded in Git", metrics.transitions.clone());
        registry.register("actions", "Writes to the cluster", metrics.actions.clone());
        registry.register("git_requests", "Requests to the Git server", metrics.git.clone());
        registry.register("host_requests", "Requests to the Git host's API", metrics.host.clone());
        registry.register("webhooks", "Webhooks of the Git host, by what became of them", metrics.webhooks.clone());
        registry.register("ticks", "Times that the world was looked at", metrics.ticks.clone());
        registry.register("leading", "Whether this process holds the Lease", metrics.leading.clone());
        let help = "Rollouts whose record the Git server does not take";
        registry.register("record_rejected", help, metrics.rejected.clone());
        metrics.registry = Arc::new(registry);
        metrics.begin();
        metrics
    }

    /// Makes every series. One that began with its first event would show no increase at that event, and an alarm about it
    /// would stay silent the first time.
    fn begin(&self) {
        self.rollouts([].into_iter(), [].into_iter());
        self.unread(&BTreeMap::new());
        for phase in Phase::NAMES {
            drop(self.transitions.get_or_create(&[("phase", phase)]));
        }
        for class in [Class::Retreat, Class::Upkeep, Class::Advance].map(class_label) {
            for outcome in OUTCOMES {
                drop(self.actions.get_or_create(&[("class", class), ("outcome", outcome)]));
            }
        }
        for operation in GitOperation::ALL.map(GitOperation::label) {
            for outcome in GitOutcome::ALL.map(GitOutcome::label) {
                drop(self.git.get_or_create(&[("operation", operation), ("outcome", outcome)]));
            }
        }
        for outcome in Delivery::ALL.map(Delivery::label) {
            drop(self.webhooks.get_or_create(&[("outcome", outcome)]));
        }
        for operation in CallPurpose::ALL.map(CallPurpose::label) {
            for outcome in CallOutcome::ALL.map(CallOutcome::label) {
                drop(self.host.get_or_create(&[("operation", operation), ("outcome", outcome)]));
            }
        }
    }

    /// In how many namespaces each kind cannot be read now.
    pub fn unread(&self, namespaces: &BTreeMap<Kind, i64>) {
        // Those that are known by their names alone come and go.
        self.unread.clear();
        let others = namespaces.keys().filter(|kind| kind.is_other());
        for kind in Kind::ALL.iter().chain(others) {
            let count = namespaces.get(kind).copied().unwrap_or_default();
            self.unread.get_or_create(&[("kind", kind.as_str())]).set(count);
        }
    }

    /// How many rollouts are in each phase, how many wait for each reason, and since when, as far as it is recorded.
    pub fn rollouts<'a>(&self, states: impl Iterator<Item = &'a RolloutState>, waits: impl Iterator<Item = Reason>) {
        let mut counts: BTreeMap<&'static str, i64> = Phase::NAMES.iter().map(|name| (*name, 0)).collect();
        let mut since: BTreeMap<&str, i64> = BTreeMap::new();
        for state in states {
            *counts.entry(state.phase.name()).or_default() += 1;
            for condition in &state.conditions {
                let began = condition.since.timestamp();
                since.entry(&condition.reason).and_modify(|known| *known = began.min(*known)).or_insert(began);
            }
        }
        for reason in Reason::ALL.iter().map(|reason| reason.as_str()) {
            let began = since.get(reason).copied().unwrap_or_default();
            self.waiting_since.get_or_create(&[("reason", reason)]).set(began);
        }
        for (phase, count) in counts {
            self.rollouts.get_or_create(&[("phase", phase)]).set(count);
        }
        let mut counts: BTreeMap<Reason, i64> = Reason::ALL.iter().map(|reason| (*reason, 0)).collect();
        waits.for_each(|reason| *counts.entry(reason).or_default() += 1);
        for (reason, count) in counts {
            self.waiting.get_or_create(&[("reason", reason.as_str())]).set(count);
        }
    }

    /// Where each rollout stands, and what it waits for.
    pub fn inform<'a>(
        &self,
        rollouts: impl Iterator<Item = (&'a RolloutId, Option<&'a RolloutState>, BTreeSet<Reason>)>,
    ) {
        let mut now = BTreeSet::new();
        for (rollout, state, reasons) in rollouts {
            let phase = state.map_or("", |state| state.phase.name());
            let series = |reason: &str| {
                [("rollout", rollout.to_string()), ("phase", phase.to_owned()), ("reason", reason.to_owned())]
            };
            let none = reasons.is_empty().then(|| series(""));
            now.extend(reasons.iter().map(|reason| series(reason.as_str())).chain(none));
        }
        let mut known = self.informed.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in known.difference(&now) {
            self.info.remove(gone);
        }
        for new in now.difference(&known) {
            self.info.get_or_create(new).set(1);
        }
        *known = now;
    }

    /// A phase was entered.
    pub fn entered(&self, phase: &Phase) {
        self.transitions.get_or_create(&[("phase", phase.name())]).inc();
    }

    /// A write to the cluster was tried.
    pub fn acted(&self, class: Class, outcome: &WriteOutcome) {
        self.actions.get_or_create(&[("class", class_label(class)), ("outcome", outcome_label(outcome))]).inc();
    }

    /// The Git server was asked.
    pub fn asked_git(&self, operation: GitOperation, outcome: GitOutcome) {
        self.git.get_or_create(&[("operation", operation.label()), ("outcome", outcome.label())]).inc();
    }

    /// The Git host's API was asked.
    pub fn asked_host(&self, errand: CallPurpose, fate: CallOutcome) {
        self.host.get_or_create(&[("operation", errand.label()), ("outcome", fate.label())]).inc();
    }

    /// A webhook came.
    pub fn delivered(&self, delivery: Delivery) {
        self.webhooks.get_or_create(&[("outcome", delivery.label())]).inc();
    }

    /// The world is looked at; for which time.
    pub fn ticked(&self) -> u64 {
        self.ticks.inc() + 1
    }

    /// Whether this process leads. Who does not lead records nothing, and knows of no rollout how it stands.
    pub fn leads(&self, leading: bool) {
        self.leading.set(i64::from(leading));
        self.rejected(0);
        if !leading {
            self.rollouts([].into_iter(), [].into_iter());
            self.inform([].into_iter());
            self.unread(&BTreeMap::new());
        }
    }

    /// How many rollouts have a record that the Git server does not take.
    pub fn rejected(&self, rollouts: usize) {
        self.rejected.set(i64::try_from(rollouts).unwrap_or(i64::MAX));
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String, because writing to it cannot fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{condition, steady};
    use crate::record::state::Time;

    #[test]
    fn every_series_is_there_before_its_first_event() {
        let metrics = Metrics::new();
        let series = |text: String| text.lines().filter(|line| !line.starts_with('#')).count();
        let before = series(metrics.text());
        assert_eq!(
            before,
            3 + Kind::ALL.len()
                + Phase::NAMES.len() * 2
                + Reason::ALL.len() * 2
                + 3 * 7
                + 3 * 5
                + 10 * 6
                + Delivery::ALL.len(),
            "{}",
            metrics.text()
        );
        let manager = String::new();
        for outcome in [
            WriteOutcome::Done(None),
            WriteOutcome::Stale(String::new()),
            WriteOutcome::Conflict { manager, fields: vec![] },
            WriteOutcome::Refused(String::new()),
            WriteOutcome::MissingKind(crate::manifest::object::Kind::Pod),
            WriteOutcome::Forbidden(String::new()),
            WriteOutcome::Retriable(String::new()),
        ] {
            metrics.acted(Class::Retreat, &outcome);
        }
        metrics.asked_git(GitOperation::LookUp, GitOutcome::Away);
        assert_eq!(series(metrics.text()), before, "{}", metrics.text());
    }

    #[test]
    fn each_rollout_has_a_series_for_each_reason_for_as_long_as_it_waits_and_is_led() {
        let (metrics, state) = (Metrics::new(), steady());
        let info =
            || metrics.text().lines().filter(|l| l.starts_with("tidegate_rollout_info")).collect::<Vec<_>>().join("\n");
        let waits = |reasons: &[Reason]| {
            metrics.inform([(&state.metadata, Some(&state), reasons.iter().copied().collect())].into_iter());
        };
        assert_eq!(info(), "");
        waits(&[Reason::Brake, Reason::Window]);
        let line = |reason: &str| {
            format!("tidegate_rollout_info{{rollout=\"{}\",phase=\"Steady\",reason=\"{reason}\"}} 1", state.metadata)
        };
        let mut both: Vec<String> = info().lines().map(str::to_owned).collect();
        both.sort();
        assert_eq!(both, [line("Brake"), line("Window")]);
        waits(&[]);
        assert_eq!(info(), line(""));
        metrics.leads(false);
        assert_eq!(info(), "");
    }

    #[test]
    fn the_text_names_what_was_counted() {
        let metrics = Metrics::new();
        metrics.ticked();
        metrics.leads(true);
        metrics.rejected(3);
        metrics.acted(Class::Retreat, &WriteOutcome::Stale("`x`{}\n".to_owned()));
        metrics.asked_git(GitOperation::Push, GitOutcome::Raced);
        metrics.rollouts([].into_iter(), [Reason::Approval, Reason::Approval].into_iter());
        metrics.unread(&BTreeMap::from([(Kind::Pod, 2)]));
        let text = metrics.text();
        for line in [
            "tidegate_kinds_unread{kind=\"Pod\"} 2",
            "tidegate_kinds_unread{kind=\"Service\"} 0",
            "tidegate_ticks_total 1",
            "tidegate_leading 1",
            "tidegate_record_rejected 3",
            "tidegate_actions_total{class=\"retreat\",outcome=\"stale\"} 1",
            "tidegate_git_requests_total{operation=\"push\",outcome=\"raced\"} 1",
            "tidegate_waiting{reason=\"Approval\"} 2",
            "tidegate_waiting{reason=\"Soak\"} 0",
            "tidegate_rollouts{phase=\"Steady\"} 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn the_longest_wait_counts() {
        let metrics = Metrics::new();
        let waits = |since: i64| {
            let since = Time::from_timestamp(since, 0).unwrap();
            RolloutState { conditions: vec![condition("Approval", "", since)], ..steady() }
        };
        metrics.rollouts([waits(70), waits(60), waits(80)].iter(), [].into_iter());
        let text = metrics.text();
        assert!(text.contains("\ntidegate_waiting_since_seconds{reason=\"Approval\"} 60\n"), "{text}");
        assert!(text.contains("\ntidegate_waiting_since_seconds{reason=\"Soak\"} 0\n"), "{text}");
    }

    #[test]
    fn who_leads_no_more_counts_no_rollouts() {
        let metrics = Metrics::new();
        metrics.leads(true);
        metrics.rollouts([].into_iter(), [Reason::Approval].into_iter());
        metrics.leads(false);
        let text = metrics.text();
        assert!(text.contains("\ntidegate_waiting{reason=\"Approval\"} 0\n"), "{text}");
    }
}
