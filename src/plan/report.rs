//! Why nothing happens: what each rollout waits on, the same in the terminal, the dashboard and the log.

use crate::record::state::Time;
use serde::Serialize;

/// One reason why a rollout does not move.
///
/// Everything that waits says: on what, since when, who can change it, and when it will be looked at next (design §13.17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// One word: `Approval`, `Window`, `Soak`, `CandidateNotReady`, `FieldConflict`, …
    pub reason: Reason,
    /// What it means here.
    pub message: String,
    /// Who can change it.
    pub owner: &'static str,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The earliest moment at which it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Where to act: a branch, a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
}

macro_rules! reasons {
    ($($name:ident: $owner:literal, $doc:literal;)*) => {
        /// Why something waits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Reason { $(#[doc = $doc] $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Who can change it, in words.
            #[must_use]
            pub fn owner(self) -> &'static str {
                match self { $(Self::$name => $owner,)* }
            }

            /// The word that people see.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

reasons! {
    Approval: "approvers", "A person has to approve the next step.";
    Denied: "approvers", "A person said no; nothing is asked again before `tidegate resume`.";
    Held: "approvers", "A person holds the run; `tidegate resume` lifts it.";
    Window: "time", "The next step may be entered only inside a window of the policy.";
    Freeze: "operations", "A freeze of the policy bars every step.";
    Suspended: "the team", "The rollout has `suspend: true`.";
    Brake: "operations", "The brake in the cluster holds this rollout.";
    Concurrency: "operations", "As many runs are open as the policy allows.";
    Soak: "time", "The step has to stay exposed for its soak time.";
    Evidence: "tidegate", "Answers are on their way: dry runs, measurements.";
    Inconclusive: "the team", "A check has no result: too few samples, or its provider is away.";
    Writing: "tidegate", "Objects are being written.";
    CandidateNotReady: "the team", "The candidate's pods are not ready yet.";
    StableNotReady: "the team", "The stable version's pods are not ready.";
    RouteNotEffective: "the gateway controller", "The route is not in force yet.";
    RouteUnknown: "the gateway controller", "Nobody says whether the route is in force.";
    SelectorOverlap: "the team", "Another selector in the namespace matches the candidate's pods.";
    AdoptionDiffers: "the team", "Live objects differ from Git at first sight; nothing is written until they agree.";
    ForeignApplier: "the team", "Another tool applies this object; hand it over first.";
    OwnedByOther: "operations", "Another rollout or instance owns this object.";
    FieldConflict: "the team", "Another field manager owns a field that we need.";
    Forbidden: "operations", "tidegate has no right to do this.";
    CrdMissing: "operations", "The cluster does not serve a kind that this rollout needs.";
    ClusterAway: "operations", "The cluster cannot be read.";
    GitAway: "operations", "Git cannot be reached; only retreats run.";
    StateLost: "operations", "Live objects carry our marks, but Git has no record of them.";
    RecordUnreadable: "operations", "The record in Git cannot be read.";
    ForeignState: "operations", "The record was written by another instance or for another cluster.";
    StaleRead: "tidegate", "A live object was written under a newer record than the one read.";
    UnknownPhase: "operations", "The record was written by a newer version of tidegate.";
    LoweredByHand: "the team", "Somebody lowered the exposure by hand; set it back, or abort the run.";
    Drifted: "the team", "Somebody changed fields that are ours; they are put back when no run is open.";
    Rejected: "the team", "The rollout's file has errors; its last good state stays.";
    SourceUnreadable: "operations", "Main cannot be read, or what it shows cannot be trusted.";
    Refused: "the team", "This revision failed before; `tidegate retry` or other content lifts it.";
    RevertConflict: "the team", "What a run changed on main cannot be undone by itself, since others changed the same lines.";
    TooManyDeletions: "operations", "More objects would be deleted than the policy allows.";
    OnCandidate: "the team", "Stable was not ready at promotion; the healthy candidate serves. Retry or abort.";
    Retrying: "tidegate", "A request failed for a reason that says nothing about the version; it is tried again.";
    RetreatBlocked: "operations", "Traffic could not be taken back; it is tried again.";
}

impl Wait {
    /// A reason with its message.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), owner: reason.owner(), since: None, until: None, act: None }
    }

    /// The same, since then.
    #[must_use]
    pub fn since(self, since: Time) -> Self {
        Self { since: Some(since), ..self }
    }

    /// The same, ending by itself then.
    #[must_use]
    pub fn until(self, until: Time) -> Self {
        Self { until: Some(until), ..self }
    }

    /// The same, with what a person can do.
    #[must_use]
    pub fn act(self, act: impl Into<String>) -> Self {
        Self { act: Some(act.into()), ..self }
    }
}
