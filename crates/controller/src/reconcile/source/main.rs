//! Main: what people want, and the policy. A tree is parsed once; an unreadable one leaves the last good policy in force.

use super::state::LoadedRecords;
use crate::gate::guard::Guard;
use crate::gate::schedule::{FreezeSpan, ScheduleError, Window};
use crate::git::{Ancestry, Declared, GitError, Known, Sought, Store};
use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::duration::Span;
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::fleet::Fleet;
use crate::manifest::ids::{ClusterName, CommitId, Namespace, RolloutId, ScheduleName, TenantName};
use crate::manifest::installation::Caps;
use crate::manifest::load::{self, Emptiness, Loaded, Rejected};
use crate::manifest::policy::{self, Policy, Tenant};
use crate::manifest::raw::Trust;
use crate::plan::input::{Desired, MayStart, PolicyView};
use crate::record::state::{RolloutState, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What main's tip says.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The tip; the last one seen if the branch is gone.
    pub commit: Option<CommitId>,
    /// What its tree says, or why it cannot be believed.
    tree: Result<Arc<Tree>, String>,
    /// The policy of that tree, or the last good one.
    policies: Option<Arc<Policies>>,
}

/// One tree of main, parsed.
#[derive(Debug)]
struct Tree {
    rollouts: BTreeMap<RolloutId, Result<Arc<Rollout>, String>>,
    /// Those that are for other clusters of the fleet alone.
    elsewhere: BTreeSet<RolloutId>,
    /// Files that may declare a rollout whose name cannot be read, with what is wrong with them.
    broken: BTreeMap<RepoPath, String>,
    /// Where a rollout that is not found may lie, and why nobody knows.
    hidden: Vec<Hidden>,
    emptiness: Emptiness,
}

/// What was not looked at, or tells nothing.
#[derive(Debug)]
struct Hidden {
    why: String,
    /// The namespaces of rollouts that may lie there; any, if none.
    of: Option<BTreeSet<Namespace>>,
}

/// The policy, ready to be asked.
#[derive(Debug)]
pub struct Policies {
    policy: Policy,
    windows: BTreeMap<ScheduleName, Window>,
    freezes: BTreeMap<ScheduleName, FreezeSpan>,
    fleet: Option<Arc<Fleet>>,
}

impl Wanted {
    /// Main could not be read, and no policy is known.
    #[must_use]
    pub fn unreadable(why: String) -> Self {
        Self { commit: None, tree: Err(why), policies: None }
    }

    /// Whether it says the same as another one, and is the same value where that is large.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let is_same = match (&self.tree, &other.tree) {
            (Ok(one), Ok(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.as_ref().err() == other.as_ref().err(),
        };
        let policies = [self, other].map(|it| it.policies.as_ref().map(Arc::as_ptr));
        is_same && self.commit == other.commit && policies[0] == policies[1]
    }

    /// Every rollout that it names.
    pub fn rollouts(&self) -> impl Iterator<Item = &RolloutId> {
        self.tree.iter().flat_map(|tree| tree.rollouts.keys())
    }

    /// The rollout, if it is wanted and fine.
    #[must_use]
    pub fn rollout(&self, id: &RolloutId) -> Option<&Arc<Rollout>> {
        self.tree.as_ref().ok()?.rollouts.get(id)?.as_ref().ok()
    }

    /// Files that may declare a rollout whose name cannot be read.
    pub fn nameless(&self) -> impl Iterator<Item = &RepoPath> {
        self.tree.iter().flat_map(|tree| tree.broken.keys())
    }

    /// The policy in force.
    #[must_use]
    pub fn policies(&self) -> Option<Arc<Policies>> {
        self.policies.clone()
    }

    /// Why main cannot be believed.
    #[must_use]
    pub fn why_unreadable(&self) -> Option<&str> {
        self.tree.as_ref().err().map(String::as_str)
    }

    /// What it says of a rollout, of which `recorded` is known.
    #[must_use]
    pub fn desired(&self, id: &RolloutId, recorded: Option<&RolloutState>) -> Desired {
        let tree = match &self.tree {
            Ok(tree) => tree,
            Err(why) => return Desired::Unreadable(why.clone()),
        };
        match tree.rollouts.get(id) {
            Some(Ok(rollout)) => return Desired::Wanted(Arc::clone(rollout)),
            Some(Err(why)) => return Desired::Rejected(why.clone()),
            None => {}
        }
        if tree.elsewhere.contains(id) {
            return Desired::Rejected("its tenant runs on other clusters of the fleet by now".to_owned());
        }
        // A file too broken to tell its name is no sign that its rollout is gone, nor is a directory that is not read.
        if let Some(why) = recorded.and_then(|state| tree.broken_at(&state.source.path)) {
            return Desired::Rejected(why.clone());
        }
        let may_be_there = |hidden: &&Hidden| hidden.of.as_ref().is_none_or(|of| of.contains(&id.namespace));
        match (&tree.emptiness, tree.hidden.iter().find(may_be_there)) {
            // It may have moved there.
            (Emptiness::Whole, Some(hidden)) => Desired::Rejected(hidden.why.clone()),
            (Emptiness::Whole, None) => Desired::Gone,
            (Emptiness::NoRollouts, _) => {
                Desired::Unreadable("main holds no rollout at all; nothing is ended by that".into())
            }
            (Emptiness::AllFailing, _) => {
                Desired::Unreadable("every rollout of main has errors; nothing is ended by that".into())
            }
        }
    }

    /// What the policy says of a rollout whose file is `path`. Without any policy nothing is entered.
    #[must_use]
    pub fn policy(&self, path: &RepoPath, may_start: MayStart) -> PolicyView {
        let Some(Policies { policy, windows, freezes, fleet: _ }) = self.policies.as_deref() else {
            return PolicyView { freezes: frozen(), may_start, unread: true, ..PolicyView::default() };
        };
        let tenant = policy.tenant_of(path);
        PolicyView {
            windows: windows.clone(),
            freezes: freezes.clone(),
            tenant: tenant.map(|(name, _)| name.clone()),
            max_deletions: usize::try_from(policy.limits.max_deletions).unwrap_or(usize::MAX),
            may_start,
            unread: false,
            proof: tenant.and_then(|(_, tenant)| tenant.rule()),
            guard: match tenant {
                Some((_, Tenant { trust: Trust::Writers, .. })) => Guard::Unasked,
                Some(_) | None => Guard::Unknown,
            },
            floors: tenant.map(|(_, tenant)| tenant.floors.clone()).unwrap_or_default(),
            teams: policy.teams(),
            waves: None,
        }
    }

    /// How many runs may be under way at a time.
    #[must_use]
    pub fn max_concurrent_runs(&self) -> usize {
        let limit = self.policies.as_ref().map_or(0, |policies| policies.policy.limits.max_concurrent_runs);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// A freeze without end: nothing is entered while no policy was ever read.
fn frozen() -> BTreeMap<ScheduleName, FreezeSpan> {
    let always = Window::new("* * * * *", Span::from_secs(60), chrono_tz::UTC);
    let window = always.expect("valid because it is a constant of five fields");
    let name = "policy-unreadable".parse().expect("valid because the constant is a DNS label");
    [(name, FreezeSpan { window, tenants: BTreeSet::new() })].into()
}

/// What is kept between two looks at main.
#[derive(Default)]
pub(super) struct Cache {
    /// The last tip that could be believed.
    tip: Option<CommitId>,
    /// Whether what the records name was compared with that tip, or one before it.
    compared: bool,
    /// The tree that was parsed last.
    parsed: Option<Parsed>,
    /// The last good policy.
    policies: Option<Arc<Policies>>,
    /// The tip whose signature was judged last, and whether it was accepted.
    judged: Option<(CommitId, bool)>,
}

/// A tree of main, with the policy in it.
#[derive(Clone)]
struct Parsed {
    /// What stands for all that was read.
    known: Known,
    /// The commit that it is known to be of.
    commit: CommitId,
    /// What was looked for besides.
    sought: Sought,
    tree: Arc<Tree>,
    policies: Result<Arc<Policies>, String>,
}

impl Cache {
    /// Reads main at `tip`.
    ///
    /// # Errors
    /// When the cache of the repository fails; what a tree contains is no error.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        tip: Option<&CommitId>,
        caps: &Caps,
        records: &LoadedRecords,
        now: Time,
    ) -> Result<Arc<Wanted>, GitError> {
        self.judged = None;
        let Some(tip) = tip else { return Ok(self.unreadable("the branch does not exist".to_owned())) };
        if let Some(why) = self.rewritten(store, tip, records).await? {
            return Ok(self.unreadable(why));
        }
        let unverified = store.unverified(tip, now).await?;
        self.judged = Some((tip.clone(), unverified.is_none()));
        if let Some(why) = unverified {
            return Ok(self.unreadable(format!("UnverifiedSource: {why}")));
        }
        self.compared |= matches!(records, LoadedRecords::Read(_));
        let sought: Sought = records.states().collect();
        if self.parsed.as_ref().is_none_or(|known| known.commit != *tip || known.sought != sought) {
            match store.declared(tip, &sought, self.parsed.as_ref().map(|parsed| &parsed.known)).await {
                Ok(Some(Declared { files, unseen, known })) => {
                    let (caps, served) = (caps.clone(), caps.cluster());
                    // It may take its time, and what goes back must not wait for it.
                    let (loaded, files) = store.aloof(move || (load::load(&files, &caps), files)).await?;
                    let hidden = hidden(&loaded, &files, unseen);
                    self.parse(loaded, hidden, (known, tip), served);
                }
                Ok(None) => {}
                Err(error) if error.is_of_content() => return Ok(self.unreadable(error.to_string())),
                Err(error) => return Err(error),
            }
            if let Some(parsed) = &mut self.parsed {
                (parsed.commit, parsed.sought) = (tip.clone(), sought);
            }
        }
        let Some(Parsed { tree, policies, .. }) = self.parsed.clone() else {
            return Ok(self.unreadable("main was not parsed".to_owned()));
        };
        self.tip = Some(tip.clone());
        match policies {
            Ok(policies) => self.policies = Some(policies),
            Err(why) => return Ok(self.unreadable(why)),
        }
        Ok(Arc::new(Wanted { commit: self.tip.clone(), tree: Ok(tree), policies: self.policies.clone() }))
    }

    fn parse(
        &mut self,
        loaded: Loaded,
        hidden: Vec<Hidden>,
        (id, commit): (Known, &CommitId),
        served: Option<&ClusterName>,
    ) {
        // The API server knows its own fields best, and refuses those that it does not know.
        for warning in loaded.warnings.iter().filter(|warning| warning.code != Code::UnknownField) {
            tracing::warn!(%warning, "main");
        }
        let policies = Policies::of(&loaded).map(|new| match &self.policies {
            // An equal policy stays the same value, so that nothing is planned anew for it.
            Some(known) if known.policy == new.policy && known.fleet == new.fleet => Arc::clone(known),
            Some(_) | None => Arc::new(new),
        });
        let known = self.parsed.take().map(|parsed| parsed.tree);
        let tree = Tree::of(loaded, hidden, known.as_deref(), served);
        // Without a policy every rollout is rejected for that alone, which is told as such.
        if policies.is_ok() {
            for (what, why) in tree.news(known.as_deref()) {
                tracing::warn!(rejected = what, "{why}");
            }
        }
        let (tree, commit) = (Arc::new(tree), commit.clone());
        self.parsed = Some(Parsed { known: id, commit, sought: Sought::default(), tree, policies });
    }

    /// What the tip has to descend from: the last one that this process believed, and, once in a term, what the records name.
    fn acted_upon(&self, records: &LoadedRecords) -> BTreeSet<CommitId> {
        let named = records.states().filter(|_| !self.compared).map(|state| &state.source.commit);
        named.filter(|commit| **commit != CommitId::none()).chain(&self.tip).cloned().collect()
    }

    /// Whether a tip whose signature was judged is accepted now and was not, or the other way round: the list of who may sign has
    /// changed, or a key has expired. Where it was not judged, as it cannot be believed for something else, nothing would change.
    pub(super) async fn is_judged_anew(&self, store: &Store, tip: Option<&CommitId>, now: Time) -> bool {
        let Some((judged, accepted)) = self.judged.as_ref().filter(|(judged, _)| Some(judged) == tip) else {
            return false;
        };
        store.unverified(judged, now).await.is_ok_and(|unverified| unverified.is_none() != *accepted)
    }

    /// Compares with the records again: another leader may have acted upon a newer tip than we saw.
    pub(super) fn forget(&mut self) {
        self.compared = false;
    }

    /// Whether more of main's past is needed to tell that `tip` descends from what was acted upon.
    pub(super) async fn lacks_past(
        &self,
        store: &Store,
        tip: Option<&CommitId>,
        records: &LoadedRecords,
    ) -> Result<bool, GitError> {
        let Some(tip) = tip else { return Ok(false) };
        let strangers = store.strangers(&self.acted_upon(records), tip).await?;
        // One that is certain is enough.
        Ok(!strangers.is_empty() && strangers.values().all(|ancestry| *ancestry == Ancestry::Unknown))
    }

    /// Why the tip cannot follow what was acted upon.
    async fn rewritten(
        &self,
        store: &Store,
        tip: &CommitId,
        records: &LoadedRecords,
    ) -> Result<Option<String>, GitError> {
        let strangers = store.strangers(&self.acted_upon(records), tip).await?;
        let certain = strangers.iter().find(|(_, ancestry)| **ancestry != Ancestry::Unknown);
        Ok(certain.or(strangers.first_key_value()).map(|(seen, ancestry)| match ancestry {
            Ancestry::Unknown => format!(
                "it is not known whether the tip {tip} descends from {seen}, which was acted upon: main's history could \
                 not be fetched. A server that can leave out what is in commits (uploadpack.allowFilter) sends it without"
            ),
            Ancestry::Not | Ancestry::Same | Ancestry::Ancestor => format!(
                "history rewritten: the tip {tip} does not descend from {seen}, which was acted upon. If that is \
                 meant, say so with a merge that keeps the new content: git merge -s ours {seen}"
            ),
        }))
    }

    /// What is known of main where its tip cannot be believed.
    pub(super) fn unreadable(&self, why: String) -> Arc<Wanted> {
        Arc::new(Wanted { commit: self.tip.clone(), tree: Err(why), policies: self.policies.clone() })
    }
}

impl Tree {
    /// `known` is the tree before: rollouts that are equal stay the same value, so that nothing is planned anew for them.
    fn of(loaded: Loaded, hidden: Vec<Hidden>, known: Option<&Self>, served: Option<&ClusterName>) -> Self {
        let emptiness = loaded.emptiness();
        let elsewhere = loaded.elsewhere(served);
        let Loaded { policy: _, fleet: _, differing: _, mut rollouts, unnamed, warnings } = loaded;
        rollouts.retain(|id, _| !elsewhere.contains(id));
        let links = warnings.into_iter().filter(|warning| warning.code == Code::SymlinkIgnored);
        let mut broken: BTreeMap<RepoPath, String> = BTreeMap::new();
        for diagnostic in unnamed.into_iter().chain(links) {
            let text = broken.entry(diagnostic.path.clone()).or_default();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&diagnostic.to_string());
        }
        let same = |id: &RolloutId, rollout: Rollout| {
            let before = known.and_then(|tree| tree.rollouts.get(id)?.as_ref().ok());
            before.filter(|before| ***before == rollout).cloned().unwrap_or_else(|| Arc::new(rollout))
        };
        let judged = |(id, outcome): (RolloutId, Result<Rollout, Rejected>)| {
            let outcome = match outcome {
                Ok(rollout) => Ok(same(&id, rollout)),
                Err(rejected) => Err(lines(&rejected.diagnostics)),
            };
            (id, outcome)
        };
        Self { rollouts: rollouts.into_iter().map(judged).collect(), elsewhere, broken, hidden, emptiness }
    }

    /// What is wrong with a file, or with a directory that it lies in.
    fn broken_at(&self, path: &RepoPath) -> Option<&String> {
        std::iter::successors(Some(path.clone()), RepoPath::parent).find_map(|path| self.broken.get(&path))
    }

    /// What is rejected now and was not, or not for these reasons, in the tree before: rollout or file, and why on one line.
    fn news(&self, known: Option<&Self>) -> Vec<(String, String)> {
        let rollouts = self.rollouts.iter().filter_map(|(id, outcome)| {
            let why = outcome.as_ref().err()?;
            let before = known.and_then(|tree| tree.rollouts.get(id)?.as_ref().err());
            (before != Some(why)).then(|| (id.to_string(), first_of(why)))
        });
        let files = self.broken.iter().filter_map(|(path, why)| {
            let before = known.and_then(|tree| tree.broken.get(path));
            (before != Some(why)).then(|| (path.to_string(), first_of(why)))
        });
        rollouts.chain(files).collect()
    }
}

/// Where a rollout may lie that was not found.
fn hidden(loaded: &Loaded, files: &Files, unseen: Option<String>) -> Vec<Hidden> {
    let mut hidden: Vec<Hidden> = unseen.into_iter().map(|why| Hidden { why, of: None }).collect();
    let Ok(policy) = &loaded.policy else { return hidden };
    let is_read = |path: &RepoPath| matches!(files.get(path), Some(Entry::File { .. }));
    let misnamed = loaded.warnings.iter().filter(|warning| warning.code == Code::Misnamed);
    for diagnostic in loaded.unnamed.iter().chain(misnamed) {
        let of = match policy.tenant_of(&diagnostic.path) {
            // What a tenant has written there, it may have written there of its own.
            Some((_, tenant)) if tenant.path != diagnostic.path => Some(tenant.namespaces.clone()),
            // In no tenant's directory other programs may have files of that name.
            None if is_read(&diagnostic.path) => continue,
            Some(_) | None => None,
        };
        hidden.push(Hidden { why: diagnostic.to_string(), of });
    }
    hidden
}

/// The first of several lines, and how many there are besides.
fn first_of(lines: &str) -> String {
    match lines.split_once('\n') {
        None => lines.to_owned(),
        Some((first, more)) => {
            format!("{first} (and {} more: `tidegate validate` shows them all)", more.lines().count())
        }
    }
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// For where all is told on one line.
fn in_a_row(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Policies {
    /// As people wrote it.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The clusters and waves, where there are any.
    #[must_use]
    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.as_ref()
    }

    fn of(loaded: &Loaded) -> Result<Self, String> {
        let policy = loaded.policy.as_ref().map_err(|diagnostics| in_a_row(diagnostics))?.clone();
        let window = |name: &ScheduleName, schedule: &policy::Schedule| {
            let policy::Schedule { cron, duration, zone } = schedule;
            Window::new(cron, *duration, *zone)
                .map_err(|error: ScheduleError| format!("{}: {name}: {error}", policy::FILE))
        };
        let windows: Result<_, String> =
            policy.windows.iter().map(|(name, schedule)| Ok((name.clone(), window(name, schedule)?))).collect();
        let freezes: Result<_, String> = policy
            .freezes
            .iter()
            .map(|(name, freeze)| {
                let tenants: BTreeSet<TenantName> = freeze.tenants.clone();
                Ok((name.clone(), FreezeSpan { window: window(name, &freeze.schedule)?, tenants }))
            })
            .collect();
        // One with errors is told, and no rollout that needs it is taken.
        let fleet = loaded.fleet.as_ref().ok().and_then(Option::clone).map(Arc::new);
        Ok(Self { windows: windows?, freezes: freezes?, policy, fleet })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(rollouts: &[(&str, &str)], broken: &[(&str, &str)]) -> Tree {
        Tree {
            rollouts: rollouts.iter().map(|(id, why)| (id.parse().unwrap(), Err((*why).to_owned()))).collect(),
            broken: broken.iter().map(|(path, why)| (path.parse().unwrap(), (*why).to_owned())).collect(),
            elsewhere: BTreeSet::new(),
            hidden: Vec::new(),
            emptiness: Emptiness::Whole,
        }
    }

    #[test]
    fn a_rejection_is_news_once_and_again_when_it_changes() {
        let told = |before: Option<&Tree>, after: &Tree| -> Vec<String> {
            after.news(before).into_iter().map(|(what, why)| format!("{what}: {why}")).collect()
        };
        let first = tree(&[("shop/a", "one"), ("shop/b", "one\ntwo\nthree")], &[("x.rollout.yaml", "broken")]);
        assert_eq!(
            told(None, &first),
            ["shop/a: one", "shop/b: one (and 2 more: `tidegate validate` shows them all)", "x.rollout.yaml: broken"]
        );
        assert_eq!(told(Some(&first), &first), Vec::<String>::new());
        let second = tree(&[("shop/a", "one"), ("shop/b", "two")], &[]);
        assert_eq!(told(Some(&first), &second), ["shop/b: two"]);
    }
}
