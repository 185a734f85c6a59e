//! Why nothing happens: what each rollout waits on, the same in the terminal, the dashboard and the log.

use crate::manifest::ids::SetId;
use crate::record::state::{Condition, Time};
use serde::Serialize;

/// One reason why a rollout does not move.
///
/// Everything that waits says: on what, since when, who can change it, and when it will be looked at next (design §13.17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// One decision: `Approval`, `Window`, `Soak`, `CandidateNotReady`, `FieldConflict`, …
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
    /// What is live, as the set that `adopt` would make stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<SetId>,
}

macro_rules! reasons {
    ($($name:ident: $owner:literal, $doc:literal, $hint:literal;)*) => {
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

            /// What people can do about it, where a wait does not say so itself; `ROLLOUT` stands for its name. None where
            /// it ends by itself.
            #[must_use]
            pub fn hint(self) -> Option<&'static str> {
                let hint = match self { $(Self::$name => $hint,)* };
                (!hint.is_empty()).then_some(hint)
            }
        }
    };
}

reasons! {
    Approval: "approvers", "A person has to approve the next step.", "tidegate approve ROLLOUT";
    ApprovalUnproven: "approvers", "A word for the next step was given, but it does not count: neither reviews on the Git host nor an approver's signature prove it, the decisions branch was not protected then, or it came by a request that somebody else had written to; it is asked again.", "what the message names: have an approver of the policy review and merge the new pull request, or sign the decision";
    ProofUnavailable: "operations", "Nobody tells who approved: the Git host does not, or the installation names neither one nor a list of allowed signers; the gate stays closed.", "look at the Git host, and at the rights of the controller's token there (docs/hosts.md); without one at the list of allowed signers (docs/decisions.md)";
    ApprovalUnprotected: "operations", "The decisions branch is not protected on the Git host, so that anybody who may write to the repository could approve; gates stay closed, and no objects go by a word.", "protect the decisions branch: tidegate doctor prints the setting (docs/hosts.md)";
    DecisionsUnreadable: "approvers", "What the decisions branch has about the rollout cannot be read, or nobody can tell that it is later than the run: no word about it is heard, or none that lets it go further.", "take away from the decisions branch what the message names, or put the branch back to where it was";
    Denied: "approvers", "A person said no; nothing is asked again before `tidegate resume`.", "tidegate resume ROLLOUT, or: tidegate abort ROLLOUT";
    Held: "approvers", "A person holds the run, or the run before it brought the same and went back unmeasured; `tidegate resume` lifts it.", "tidegate resume ROLLOUT";
    Window: "time", "The next step may be entered only inside a window of the policy.", "wait for the window, or widen it in tidegate.yaml";
    Webhook: "the team", "A webhook stands before the next step, and does not say good.", "look at the webhook, which the message names";
    JobRunning: "the team", "A Job stands before the next step, and has not succeeded yet.", "look at the Job, which the message names: kubectl describe, kubectl logs";
    JobRefused: "the team", "The API server does not take the Job that stands before the next step.", "mend the Job's file and push; then tidegate abort ROLLOUT and tidegate retry ROLLOUT";
    JobGone: "the team", "The Job before the next step was taken away before anybody saw how it ended.", "tidegate abort ROLLOUT, then tidegate retry ROLLOUT: a new run makes a new Job";
    Freeze: "operations", "A freeze of the policy bars every step.", "wait for its end, or end it in tidegate.yaml";
    Suspended: "the team", "The rollout has `suspend: true`.", "take `suspend: true` out of the rollout's file and push";
    Brake: "operations", "The brake in the cluster holds this rollout.", "take `all`, the namespace or the rollout out of the brake's ConfigMap (docs/operations.md)";
    PolicyFloor: "the team", "The rollout goes below what the policy asks of every rollout of its tenant; nothing is written.", "change the rollout's file as the message says, or have operations change the tenant's floors in tidegate.yaml";
    Wave: "other clusters", "Other clusters are first: they do not have the version yet, or not for as long as the wave asks.", "look at the clusters that the message names: tidegate fleet ROLLOUT; it goes on by itself";
    WaveFailed: "the team", "The version failed in a cluster that is before this one, or in one of the same wave: it goes no further.", "push other manifests, or tidegate retry ROLLOUT where it failed; fleet.yaml says how many may fail (tolerate)";
    ClusterMismatch: "operations", "The cluster, or the instance, is another one than fleet.yaml names; nothing new is entered.", "mend the cluster's uid or instance in fleet.yaml, or the Installation's name of the cluster";
    Concurrency: "operations", "As many runs are under way as the policy allows.", "wait for another run to end, or raise limits.maxConcurrentRuns in tidegate.yaml";
    Soak: "time", "The step has to stay exposed for its soak time.", "";
    Evidence: "tidegate", "Answers are on their way: dry runs, measurements, webhooks.", "";
    Inconclusive: "the team", "A check has no result: too few samples, a webhook that holds, or a provider that is away.", "look at the check's provider, and at its query; tidegate skip ROLLOUT goes on without it";
    Writing: "tidegate", "Objects are being written.", "";
    CandidateNotReady: "the team", "The candidate's pods are not ready yet.", "look at the candidate's pods: kubectl describe, kubectl logs";
    StableDown: "the team", "No pod of the promoted version is ready: its users see errors.", "look at the pods that the message names: kubectl describe, kubectl logs";
    StableNotReady: "the team", "The stable version's pods are not ready.", "look at the stable version's pods: kubectl describe, kubectl logs";
    TooManyStalled: "the team", "More nodes fell silent with the new version than may: no further node gets it.", "look at the nodes; if they come back the run goes on, else: tidegate abort ROLLOUT";
    LayerConflict: "the team", "Layers give the same nodes one file with different content; these nodes keep what they have.", "let one of the two layers have the file, or select other nodes";
    NodeQuarantined: "operations", "A node could not take what all have, or could not go back to it: it is left alone, and the others go on.", "look at the node that the message names; it takes other content, or what a person gives it";
    RouteNotEffective: "the gateway controller", "The route is not in force yet.", "look at the HTTPRoute's status: kubectl describe httproute";
    BlockedByPeer: "another team", "What another team, or operations, has written keeps the shared proxy from taking the route; nothing is held against the version, and it goes on by itself.", "have the team that the message names mend its object; `replaceInvalidRoutes` of Gloo keeps one team's mistakes from the others (docs/teams.md)";
    PathOutside: "the team", "What the route asks for does not fit what its parents delegate to it; nothing is written.", "change the path or header that the message names, or have operations delegate another prefix";
    RouteHidden: "the team", "A table beside the route's takes its requests before it; nothing is written.", "what the message says: another path, or another spec.weight of one of the two tables";
    NotDelegated: "operations", "Nothing delegates to the route, or several do; nothing waits for it.", "give the route the labels that the parent asks for, or take it out of one of the parents";
    RouteUnknown: "the gateway controller", "Nobody says whether the route is in force.", "look at the HTTPRoute's status and whether a gateway controller runs";
    SelectorOverlap: "the team", "Another selector in the namespace matches the candidate's pods.", "narrow the other selector, so that it does not match the candidate's pods";
    NotCovered: "the team", "A NetworkPolicy covers stable's pods and not the candidate's, whose labels differ; nothing waits for it.", "let its podSelector match the candidate's pods too, if both are meant";
    AdoptionDiffers: "the team", "Live objects differ from Git at first sight; nothing is written until they agree, or what is live is adopted.", "make the manifests on main say what is live, or apply them by hand once; it goes on when both agree";
    ForeignApplier: "the team", "Another tool applies this object; hand it over first.", "stop the other tool from applying this object";
    OwnedByOther: "operations", "Another rollout or instance owns this object, somebody made it under the name that a copy needs, or it takes the traffic that a split would lead.", "take the object out of one of the two rollouts, or delete or rename it";
    FieldConflict: "the team", "Another field manager owns a field that we need.", "take the field away from the other manager, or out of the manifests";
    Forbidden: "operations", "tidegate has no right to do this.", "give tidegate the right that the message names (docs/security.md)";
    VariantChange: "the team", "The version has pods of another variant, which do not get along with those that there are: it is not rolled out pod by pod.", "docs/variants.md: let all old pods go first (strategy Recreate, without traffic), or give each version its own objects (layout: versioned)";
    CrdMissing: "operations", "The cluster does not serve a kind that this rollout needs.", "install the kind in the cluster, or do without it";
    ClusterAway: "operations", "The cluster cannot be read, or a kind of it that this rollout needs; what goes back goes back.", "look at the API server, the controller's kubeconfig and its Role: the message names the kinds";
    GitAway: "operations", "Git cannot be reached; only retreats run.", "look at the Git host and at the controller's credentials";
    RepositoryReplaced: "operations", "What lies at the repository's URL is another repository than the Installation names; only retreats run.", "tidegate doctor says which one lies there: mend spec.repository of the Installation (docs/hosts.md)";
    StateLost: "operations", "Live objects carry our marks, but Git has no record of them.", "push the state branch again from a clone that has it (docs/operations.md)";
    RecordUnreadable: "operations", "The record in Git cannot be read.", "put the state branch back to its last good commit (docs/operations.md)";
    ForeignState: "operations", "The record was written by another instance or for another cluster.", "find out which instance shall write there, and give the other a name of its own";
    StaleRead: "tidegate", "A live object was written under a newer record than the one read.", "";
    PlanFailed: "operations", "A fault of tidegate keeps it from planning this rollout; marks and the brake act.", "take what the message names to tidegate's issues, with the rollout's record; another version may not have the fault";
    UnknownPhase: "operations", "The record was written by a newer version of tidegate.", "run the version of tidegate that wrote the record, or a newer one";
    LoweredByHand: "the team", "Somebody lowered the exposure by hand; set it back, or abort the run.", "set the weights back to what the record says, or: tidegate abort ROLLOUT";
    Drifted: "the team", "Somebody changed fields that are ours; they are put back when no run is open.", "nothing has to be done; to keep such a change, make it on main";
    Rejected: "the team", "The rollout's file has errors; its last good state stays.", "mend what the message names (`tidegate validate` shows it with its lines) and push";
    SourceUnreadable: "operations", "Main cannot be read, or what it shows cannot be trusted.", "mend what the message names on main; until then nothing new is entered";
    Refused: "the team", "This revision failed before; `tidegate retry` or other content lifts it.", "push other manifests, or: tidegate retry ROLLOUT";
    RevertConflict: "the team", "What a run changed on main cannot be undone by itself, since others changed the same lines.", "undo the change on main by hand, or push other manifests";
    TooManyDeletions: "approvers", "More objects would be deleted than the policy allows, or than a person has let go; people are asked whether they may.", "look at what would be deleted; if it is meant, merge the request that asks for it, or: tidegate delete ROLLOUT; or raise limits.maxDeletions in tidegate.yaml; after a no: tidegate resume ROLLOUT";
    ReferenceMissing: "the team", "The pods, or the route, refer to something that is neither among the manifests nor in the cluster.", "add what the message names, to the manifests or in the cluster; it goes on by itself";
    StillReferenced: "the team", "Something that stays still uses what would go with a version; it goes once nothing does.", "take it out of what the message names, or point that elsewhere";
    HeldBack: "the team", "A change that makes no version waits: of the target's autoscaler for the next promotion, as the layout `primary` has it, or in the middle of a run, as the API server does not take it.", "what the message says: push the next version, be it another annotation of the pods, or mend the change";
    OnCandidate: "the team", "Stable was not ready at promotion; the healthy candidate serves. Retry or abort.", "tidegate retry ROLLOUT, or: tidegate abort ROLLOUT";
    Retrying: "tidegate", "A request failed for a reason that says nothing about the version; it is tried again.", "";
    RetreatBlocked: "operations", "Traffic could not be taken back; it is tried again.", "give tidegate the right that the message names, or take the traffic back by hand: all weight on stable";
}

impl Reason {
    /// Whether it ends by itself in a moment, as somebody is at work: not yet the end of `tidegate run --once`.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Self::Writing
                | Self::Evidence
                | Self::CandidateNotReady
                | Self::StableNotReady
                | Self::RouteNotEffective
                | Self::Retrying
                | Self::StaleRead
                | Self::ClusterAway
                | Self::GitAway
                | Self::RetreatBlocked
        )
    }

    /// Whether it belongs in the record: it lasts, and people have to do something.
    #[must_use]
    pub fn is_lasting(self) -> bool {
        matches!(
            self,
            Self::Rejected
                | Self::SourceUnreadable
                | Self::AdoptionDiffers
                | Self::ForeignApplier
                | Self::OwnedByOther
                | Self::FieldConflict
                | Self::Forbidden
                | Self::CrdMissing
                | Self::StateLost
                | Self::SelectorOverlap
                | Self::NotCovered
                | Self::LoweredByHand
                | Self::RetreatBlocked
                | Self::Drifted
                | Self::RevertConflict
                | Self::TooManyDeletions
                | Self::RouteUnknown
                | Self::BlockedByPeer
                | Self::PathOutside
                | Self::RouteHidden
                | Self::NotDelegated
                | Self::Inconclusive
                | Self::Approval
                | Self::ApprovalUnproven
                | Self::ProofUnavailable
                | Self::ApprovalUnprotected
                | Self::DecisionsUnreadable
                | Self::PolicyFloor
                | Self::Denied
                | Self::Held
                | Self::Window
                | Self::Webhook
                | Self::JobRunning
                | Self::JobRefused
                | Self::JobGone
                | Self::Freeze
                | Self::Wave
                | Self::VariantChange
                | Self::WaveFailed
                | Self::ClusterMismatch
                | Self::Suspended
                | Self::Brake
                | Self::Concurrency
                | Self::Refused
                | Self::ReferenceMissing
                | Self::HeldBack
                | Self::StillReferenced
                | Self::OnCandidate
                | Self::StableDown
                | Self::TooManyStalled
                | Self::LayerConflict
                | Self::NodeQuarantined
        )
    }
}

impl Wait {
    /// A reason with its message.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), owner: reason.owner(), since: None, until: None, act: None, live: None }
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

/// Reasons that are learned from what the API server, a provider or the Git host answers.
pub const ANSWERS: [Reason; 9] = [
    Reason::AdoptionDiffers,
    Reason::FieldConflict,
    Reason::Forbidden,
    Reason::CrdMissing,
    Reason::ReferenceMissing,
    Reason::Inconclusive,
    Reason::Webhook,
    Reason::JobRefused,
    Reason::ApprovalUnprotected,
];

/// Reasons whose messages hold what others said, or what is live at the moment: both may be new at each look.
const TALKATIVE: [Reason; 13] = [
    Reason::AdoptionDiffers,
    Reason::Drifted,
    Reason::LoweredByHand,
    Reason::RetreatBlocked,
    Reason::Forbidden,
    Reason::FieldConflict,
    Reason::CrdMissing,
    Reason::RouteUnknown,
    Reason::BlockedByPeer,
    Reason::Inconclusive,
    Reason::Webhook,
    Reason::JobRefused,
    Reason::ApprovalUnprotected,
];

/// What of a condition is worth a commit: not what changes from look to look, nor an end that moves.
#[must_use]
pub fn news(condition: &Condition) -> (&str, Option<&str>, Option<&str>) {
    let talks = TALKATIVE.iter().any(|reason| reason.as_str() == condition.reason);
    let message = (!talks).then_some(condition.message.as_str());
    (&condition.reason, message, condition.act.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_anew_at_each_try_is_no_news() {
        let at = |second| Time::from_timestamp(second, 0).unwrap();
        let condition = |reason: Reason, message: &str, since| Condition {
            reason: reason.as_str().to_owned(),
            message: message.to_owned(),
            since: at(since),
            until: None,
            act: None,
            live: None,
        };
        let blocked = |message| condition(Reason::RetreatBlocked, message, 0);
        assert_eq!(news(&blocked("denied at 12:00:01")), news(&blocked("denied at 12:00:02")));
        let rejected = |message| condition(Reason::Rejected, message, 0);
        assert_ne!(news(&rejected("line 1")), news(&rejected("line 2")));
    }
}
