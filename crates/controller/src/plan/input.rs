//! What a plan is made from: everything observed, as values, with one `now`.

use super::evidence::Evidence;
use super::report::{Reason, Wait};
use crate::gate::BrakeWord;
use crate::gate::decisions::DecisionFile;
use crate::gate::guard::Guard;
use crate::gate::schedule::{FreezeSpan, Window};
use crate::gate::wave::Waves;
use crate::manifest::desired::{Plan, Rollout, Set};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, Namespace, RolloutId, ScheduleName, SetId, TenantName};
use crate::manifest::proof::ApprovalRule;
use crate::manifest::raw::Floors;
use crate::record::state::{RolloutState, Terms, Time, Writer};
use crate::workload::live::LiveState;
use crate::workload::tree::Trees;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that one rollout's next move depends on.
#[derive(Debug, Clone)]
pub struct Input {
    /// The moment that all of it is judged at.
    pub now: Time,
    /// Which rollout.
    pub id: RolloutId,
    /// Who plans: becomes the record's writer.
    pub me: Writer,
    /// What main's tip says of it.
    pub desired: Desired,
    /// Main's tip.
    pub main: CommitId,
    /// What the state branch's tip says.
    pub recorded: RecordedState,
    /// The sets that `recorded` and `desired` name, by id.
    pub sets: BTreeMap<SetId, Arc<Set>>,
    /// Those of versions before, which may have had what people are asked to let go.
    pub past: BTreeMap<SetId, Arc<Set>>,
    /// People's decisions.
    pub decisions: Decisions,
    /// The branches of ours that ask for people's decisions about this rollout, by name.
    pub proposals: BTreeMap<String, RequestBranch>,
    /// What the policy says of it.
    pub policy: PolicyView,
    /// What the brake says of it; an error if it was never read, which bars entry like a decision of it.
    pub brake: Result<Option<BrakeWord>, String>,
    /// What its namespace looked like.
    pub live: Live,
    /// What is known of the proxies that teams share.
    pub trees: Arc<Trees>,
    /// What collectors brought.
    pub evidence: Arc<Evidence>,
    /// Intervals in which nobody observed (requirement X-14), oldest first.
    pub gaps: Vec<(Time, Time)>,
    /// Whether Git could be asked since live was read.
    pub git: Git,
}

/// What main's tip says of a rollout.
#[derive(Debug, Clone)]
pub enum Desired {
    /// It is wanted like this.
    Wanted(Arc<Rollout>),
    /// It is wanted like this, but what it tracks is not there, or not known yet. The last good state stays.
    Lacking(Arc<Rollout>, Wait),
    /// Its file is broken: the last good state stays. The message names every error.
    Rejected(String),
    /// Main has no file for it.
    Gone,
    /// Main could not be read, or what was read cannot be trusted: nothing follows from it.
    Unreadable(String),
}

impl Desired {
    /// Why main does not say what is wanted, if it does not: nothing new is entered then, and people have to know.
    #[must_use]
    pub fn unread(&self) -> Option<Wait> {
        match self {
            Self::Lacking(_, wait) => Some(wait.clone()),
            Self::Rejected(why) => Some(Wait::new(Reason::Rejected, why.clone())),
            Self::Unreadable(why) => Some(Wait::new(Reason::SourceUnreadable, why.clone())),
            Self::Wanted(_) | Self::Gone => None,
        }
    }
}

/// What the state branch's tip says of a rollout.
#[derive(Debug, Clone)]
pub enum RecordedState {
    /// Nothing.
    None,
    /// This, and the plan of its open run.
    State(Box<RolloutState>, Option<Arc<Plan>>),
    /// Something that cannot be used: hold.
    Unreadable(String),
}

/// People's decisions about a rollout.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    /// The tip of the decisions branch.
    pub tip: Option<CommitId>,
    /// Its files about this rollout.
    pub filed: Arc<Vec<DecisionFile>>,
    /// Those that were there when the open (else the last) run started; none if nobody can tell, as the branch was rewritten.
    pub at_start: Option<Arc<BTreeSet<(RepoPath, BlobId)>>>,
    /// The branches of requests, of any rollout, by which later ones came as far as Git tells, by path.
    pub requests: BTreeMap<RepoPath, BTreeSet<String>>,
    /// Why nobody knows what people say about it.
    pub unreadable: Option<String>,
}

/// A branch under the name of a request of ours. Whoever may write to the repository may have made it, or pushed to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBranch {
    /// Its head.
    pub head: CommitId,
    /// What merging it would bring.
    pub content: HeadContent,
}

/// What merging the head of a branch would bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadContent {
    /// Not read, or not yet: nobody knows, and nothing follows from it.
    Unread(String),
    /// Something that we never make.
    Odd(String),
    /// This.
    Read(HeadChange),
}

/// What the head of a branch changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadChange {
    /// Whether it alone is new: it follows one commit of the branch that it is to be merged into, or is the first of all.
    pub alone: bool,
    /// What it changes there; none for what it takes away.
    pub files: BTreeMap<RepoPath, Option<BlobId>>,
    /// What undoing the run's change comes to on that commit, where the branch is called so.
    pub undoing: Option<BTreeMap<RepoPath, Option<BlobId>>>,
}

/// What the policy says of one rollout.
#[derive(Debug, Clone, Default)]
pub struct PolicyView {
    /// Windows by name.
    pub windows: BTreeMap<ScheduleName, Window>,
    /// Freezes by name.
    pub freezes: BTreeMap<ScheduleName, FreezeSpan>,
    /// The tenant that it belongs to.
    pub tenant: Option<TenantName>,
    /// The most objects that one run may delete, beyond the candidate's.
    pub max_deletions: usize,
    /// Whether another run may start.
    pub may_start: MayStart,
    /// Who has to approve, and what can prove that they did.
    pub proof: Option<ApprovalRule>,
    /// Whether the Git host keeps the decisions branch for those who may decide.
    pub guard: Guard,
    /// What no plan goes below.
    pub floors: Floors,
    /// Whose namespaces are whose.
    pub teams: BTreeMap<Namespace, TenantName>,
    /// Whose turn it is, where it runs on several clusters.
    pub waves: Option<Waves>,
    /// Whether no policy could be read: then nobody knows who has to approve.
    pub unread: bool,
}

impl PolicyView {
    /// What it asks of the rollout.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms { rule: self.proof.clone(), floors: self.floors.clone() }
    }
}

/// Whether another run may start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MayStart {
    /// Fewer runs are under way than the policy allows.
    #[default]
    Yes,
    /// As many runs as the policy allows are under way.
    No {
        /// How many that is.
        limit: usize,
    },
}

/// What was observed of the rollout's namespace.
#[derive(Debug, Clone)]
pub enum Live {
    /// Read.
    Seen(Arc<LiveState>),
    /// Could not be read.
    Away {
        /// Why.
        why: String,
    },
}

/// Whether Git could be asked after live was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Git {
    /// The tips are the remote's, looked up after live was read.
    Fresh,
    /// The tips are the last fetched: only retreats may run.
    Away(String),
    /// The same, as what lies at the repository's URL by now is another repository.
    Replaced(String),
}

impl Git {
    /// Why the tips are the last fetched, if they are.
    #[must_use]
    pub fn trouble(&self) -> Option<Wait> {
        match self {
            Self::Fresh => None,
            Self::Away(why) => Some(Wait::new(Reason::GitAway, why.clone())),
            Self::Replaced(why) => Some(Wait::new(Reason::RepositoryReplaced, why.clone())),
        }
    }
}
