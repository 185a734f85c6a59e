//! Everything that a tree says: the policy, and each rollout by itself.
//!
//! The unit of failure is one rollout (design §8): a file that does not parse rejects that rollout, with all that is
//! wrong with it, and touches no other. Only a true conflict between two rollouts that may both be there rejects both.

mod claim;
mod conflict;
pub mod fleet;
mod hostnames;
mod kinds;
mod misnamed;
mod permission;
mod roots;
mod router;

use self::claim::{Claim, Room};
use self::permission::{no_policy, permission};
use super::check::{self, Case, Copies, Findings};
use super::desired::{Check, OnFailure, Plan, Promotion, Rollout, Suspend, Target, TargetKind, Traffic};
use super::diagnostic::{Code, Diagnostic, MOST};
use super::duration::Span;
use super::expand;
use super::files::{Entry, Files, RepoPath};
use super::fleet::Fleet;
use super::ids::{BlobId, ClusterName, RolloutId, TenantName};
use super::installation::Caps;
use super::job::{self, Jobs};
use super::layer::NodeSelector;
use super::object::{Kind, ObjectRef};
use super::other::GroupKind;
use super::policy::Policy;
use super::set::refused::Unallowed;
use super::set::{self, Item, Items, Kinds, SetFiles};
use super::tracked::Track;
use super::yaml::{self, Dialect, Node, Parsed};
use super::{raw, schema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use router::router;

/// What a tree says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The policy. Without one no rollout is permitted anything.
    pub policy: Result<Policy, Vec<Diagnostic>>,
    /// The clusters and waves; none where there is one cluster for each tenant.
    pub fleet: Result<Option<Fleet>, Vec<Diagnostic>>,
    /// The clusters that have files of their own for some rollout.
    pub differing: BTreeSet<ClusterName>,
    /// Every rollout that could be told by its name.
    pub rollouts: BTreeMap<RolloutId, Result<Rollout, Rejected>>,
    /// What is wrong with files that are rollouts of no name, or of a name that is not theirs.
    pub unnamed: Vec<Diagnostic>,
    /// What people should know and what stops nothing.
    pub warnings: Vec<Diagnostic>,
}

/// A rollout that cannot be used as it stands; its last good state stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file, or the files, that declare it.
    pub paths: BTreeSet<RepoPath>,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether a tree can be believed when it says that there is nothing (requirement X-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptiness {
    /// At least one rollout is fine.
    Whole,
    /// There is no rollout at all: a read failure, unless a person decided it.
    NoRollouts,
    /// There are rollouts and not one of them is fine: a read failure.
    AllFailing,
}

impl Loaded {
    /// Whether it can be believed. Anything but [`Emptiness::Whole`] must never lead to a deletion.
    #[must_use]
    pub fn emptiness(&self) -> Emptiness {
        if self.rollouts.values().any(Result::is_ok) {
            Emptiness::Whole
        } else if self.rollouts.is_empty() && self.unnamed.is_empty() {
            Emptiness::NoRollouts
        } else {
            Emptiness::AllFailing
        }
    }

    /// All mistakes of all files, by place. Rejections that only repeat that there is no policy are left out.
    #[must_use]
    pub fn errors(&self) -> Vec<&Diagnostic> {
        let rejected = self.rollouts.values().filter_map(|r| r.as_ref().err()).flat_map(|r| &r.diagnostics);
        let policy = self.policy.as_ref().err().into_iter().flatten();
        let fleet = self.fleet.as_ref().err().into_iter().flatten();
        let mut all: Vec<&Diagnostic> = rejected
            .filter(|d| d.code != Code::PolicyInvalid)
            .chain(policy)
            .chain(&self.unnamed)
            .chain(fleet)
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Whether a file declares a rollout, by its name.
#[must_use]
pub fn is_rollout_file(path: &RepoPath) -> bool {
    is_rollout_name(path.file_name())
}

/// The same of a name alone.
#[must_use]
pub fn is_rollout_name(name: &str) -> bool {
    name == "rollout.yaml" || name.ends_with(".rollout.yaml")
}

/// The rollouts that files declare, as far as they tell their names, whatever else is wrong with them.
#[must_use]
pub fn declared(files: &Files) -> BTreeSet<RolloutId> {
    let contents = files.iter().filter(|(path, _)| is_rollout_file(path)).filter_map(|(path, entry)| match entry {
        Entry::File { bytes, .. } => Some(yaml::parse(path, bytes, Dialect::Own)),
        Entry::TooLarge { .. } | Entry::BadName { .. } | Entry::Symlink | Entry::Submodule | Entry::Unread { .. } => {
            None
        }
    });
    contents.filter_map(|parsed| parsed.documents.first().and_then(identity)).collect()
}

/// Reads everything.
#[must_use]
pub fn load(files: &Files, caps: &Caps) -> Loaded {
    let (policy, fleet) = (permission::read_policy(files, caps), fleet::read(files));
    let mut loaded = Loaded {
        policy,
        fleet,
        differing: BTreeSet::new(),
        rollouts: BTreeMap::new(),
        unnamed: Vec::new(),
        warnings: Vec::new(),
    };
    let mut judged = Vec::new();
    let mut rooms: BTreeMap<Option<&TenantName>, Room> = BTreeMap::new();
    let policy = loaded.policy.as_ref().ok();
    let fleet = loaded.fleet.as_ref();
    for (path, entry) in files.iter().filter(|(path, _)| is_rollout_file(path)) {
        match entry {
            Entry::File { blob, bytes } => {
                let tenant = policy.and_then(|policy| policy.tenant_of(path)).map(|(name, _)| name);
                let room = rooms.entry(tenant).or_default();
                match Judged::new(files, (policy, fleet), caps, Draft::read(path, blob, bytes), room) {
                    Ok((rollout, warnings)) => {
                        loaded.warnings.extend(warnings);
                        loaded.differing.extend(rollout.differing.iter().cloned());
                        judged.push(rollout);
                    }
                    Err(diagnostics) => loaded.unnamed.extend(diagnostics),
                }
            }
            Entry::TooLarge { .. } | Entry::Unread { .. } => loaded.unnamed.push(unread(path, entry)),
            Entry::BadName { .. } | Entry::Symlink | Entry::Submodule => loaded.warnings.push(unread(path, entry)),
        }
    }
    loaded.warnings.extend(misnamed::find(files));
    let directories = policy.into_iter().flat_map(|policy| policy.tenants.values()).map(|tenant| &tenant.path);
    let closed = directories.filter_map(|path| Some((path, files.get(path)?)));
    loaded.unnamed.extend(closed.map(|(path, entry)| unread(path, entry)));
    loaded.warnings.extend(conflict::overlapping(&judged));
    conflict::reject(&mut judged);
    conflict::file(judged, &mut loaded);
    loaded.unnamed.sort();
    loaded.warnings.sort();
    loaded.warnings.dedup();
    loaded
}

fn unread(path: &RepoPath, entry: &Entry) -> Diagnostic {
    let (code, found, expected) = set::unreadable(path, entry);
    Diagnostic::of_file(path, code, found, expected)
}

/// A file that declares a rollout, as read.
struct Draft {
    path: RepoPath,
    blob: BlobId,
    id: Option<RolloutId>,
    parsed: Parsed,
    raw: Result<raw::Rollout, Vec<Diagnostic>>,
}

impl Draft {
    fn read(path: &RepoPath, blob: &BlobId, bytes: &[u8]) -> Self {
        let parsed = yaml::parse(path, bytes, Dialect::Own);
        let raw = schema::read::<raw::Rollout>(&parsed);
        let id = parsed.documents.first().and_then(identity);
        Self { path: path.clone(), blob: blob.clone(), id, parsed, raw }
    }

    fn at(&self, pointer: &str, code: Code, found: impl Into<String>, expected: impl Into<String>) -> Diagnostic {
        let mark = self.parsed.documents.first().map(|root| root.locate(pointer)).unwrap_or_default();
        self.parsed.source.at(mark, code, found, expected)
    }
}

/// The name of a rollout, even if much else is wrong with its file.
fn identity(root: &Node) -> Option<RolloutId> {
    let text = |pointer| root.text_at(pointer);
    if text("/kind") != Some("Rollout") || !text("/apiVersion").is_some_and(|v| v.starts_with("tidegate.io/")) {
        return None;
    }
    let (namespace, name) = (text("/metadata/namespace")?.parse().ok()?, text("/metadata/name")?.parse().ok()?);
    Some(RolloutId { namespace, name })
}

/// A rollout after its own checks, with what it lays claim to.
struct Judged {
    id: RolloutId,
    path: RepoPath,
    /// Whether its directory may declare it at all; if not, it takes part in no conflict.
    permitted: bool,
    clusters: BTreeSet<ClusterName>,
    /// The clusters in which what it has is held against what others have there: one of all that the same rollouts run on.
    claims: BTreeSet<ClusterName>,
    /// Those that have files of their own for it.
    differing: BTreeSet<ClusterName>,
    /// Its objects, as far as others may want the same: of all that were read no more is kept until all rollouts were.
    items: BTreeMap<ObjectRef, Claim>,
    target: Option<ObjectRef>,
    route: Option<ObjectRef>,
    copies: Copies,
    /// The hosts that its objects take.
    roots: BTreeMap<ObjectRef, String>,
    name_at: Diagnostic,
    outcome: Result<Rollout, Vec<Diagnostic>>,
}

impl Judged {
    /// `Err` if the file tells no name.
    fn new(
        files: &Files,
        (policy, fleet): (Option<&Policy>, Result<&Option<Fleet>, &Vec<Diagnostic>>),
        caps: &Caps,
        draft: Draft,
        room: &mut Room,
    ) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let Some(id) = draft.id.clone() else {
            return Err(room.told(draft.raw.err().unwrap_or_default()));
        };
        let mut errors = permission(&draft, &id, policy, caps);
        let clusters = fleet::clusters(&draft, policy);
        errors.extend(fleet::unordered(&draft, &clusters, fleet));
        let differs = draft.raw.as_ref().is_ok_and(|raw| fleet::differ(&raw.spec.manifests));
        let mut judged = Self {
            path: draft.path.clone(),
            permitted: errors.is_empty(),
            claims: fleet::claims(&clusters, caps.cluster(), (policy, differs)),
            differing: if differs { clusters.clone() } else { BTreeSet::new() },
            clusters,
            items: BTreeMap::new(),
            target: None,
            route: None,
            copies: Copies::default(),
            roots: BTreeMap::new(),
            name_at: draft.at("/metadata/name", Code::Conflict, String::new(), String::new()),
            outcome: Err(Vec::new()),
            id,
        };
        // Where nobody may put a rollout, its manifests are not read either.
        if policy.is_some_and(|policy| policy.tenant_of(&draft.path).is_none()) {
            judged.outcome = Err(room.told(errors));
            return Ok((judged, Vec::new()));
        }
        let (mut warnings, mut finished) = (Vec::new(), None);
        match (&draft.raw, draft.parsed.documents.first()) {
            (Ok(raw), Some(root)) => {
                let (source, namespace) = (&draft.parsed.source, &judged.id.namespace);
                let jobs = job::read(files, &draft.path, source, root, &raw.spec, namespace, &mut room.values);
                let tenant = policy.and_then(|policy| policy.tenant_of(&judged.path));
                let nodes = caps.nodes_of(tenant.map(|(_, tenant)| tenant));
                let entries = fleet::entries(&raw.spec.manifests, fleet::read_for(&judged.clusters, caps.cluster()));
                let (findings, listed, items) =
                    judged.examine(files, policy, caps, (&draft, root), (raw, &entries, &jobs), &mut room.values);
                errors.extend(findings.errors);
                warnings = room.warned(findings.warnings);
                finished = judged.finished(&draft, raw, (listed, &items), (&jobs, nodes));
                if let Some(rollout) = &mut finished {
                    rollout.elsewhere = fleet::elsewhere(files, &judged.path, raw, rollout, caps.cluster());
                }
            }
            (Err(found), _) => errors.extend(found.clone()),
            (Ok(_), None) => {}
        }
        if errors.is_empty() && finished.is_none() {
            errors.push(no_policy(&draft.path));
        }
        errors.sort();
        errors.dedup();
        errors.truncate(MOST);
        judged.outcome = finished.filter(|_| errors.is_empty()).ok_or(room.told(errors));
        Ok((judged, warnings))
    }

    /// Reads the set and checks it; remembers what the rollout lays claim to.
    fn examine(
        &mut self,
        files: &Files,
        policy: Option<&Policy>,
        caps: &Caps,
        (draft, root): (&Draft, &Node),
        (raw, entries, jobs): (&raw::Rollout, &[String], &Jobs),
        room: &mut usize,
    ) -> (Findings, SetFiles, Items) {
        let listed = set::list(files, &self.path, entries);
        let tenant = policy.and_then(|policy| policy.tenant_of(&self.path));
        let others = |kind: &GroupKind| kinds::allowed(kind, caps, tenant);
        let target = raw.spec.target.kind;
        let others: &dyn Fn(&GroupKind) -> Result<(), Unallowed> =
            if target == TargetKind::NodeConfig { &kinds::beside_layers } else { &others };
        let kinds = Kinds { known: target.kinds(), others };
        let base = self.path.parent();
        let (items, found) = set::read_kinds(&listed.files, base.as_ref(), &self.id.namespace, &kinds, Some(room));
        let case = Case {
            source: &draft.parsed.source,
            root,
            namespace: &self.id.namespace,
            spec: &raw.spec,
            items: &items,
            jobs: &jobs.items,
            whole: listed.misplaced.is_empty() && found.is_empty(),
            broken: found.iter().map(|diagnostic| diagnostic.path.clone()).collect(),
        };
        let mut findings = check::check(&case, policy);
        findings.errors.extend(check::nodes(&case, caps.nodes_of(tenant.map(|(_, tenant)| tenant)).as_ref()));
        findings.errors.extend(found);
        findings.errors.extend(
            listed.misplaced.iter().map(|m| {
                draft.at(&format!("/spec/manifests/{}", m.index), m.code, m.found.clone(), m.expected.clone())
            }),
        );
        findings.errors.extend(jobs.wrong.iter().cloned());
        let all = items.values().chain(jobs.items.values());
        let capped = |item: &Item| kinds::capped(item, caps, tenant).filter(|_| target != TargetKind::NodeConfig);
        findings.errors.extend(all.filter_map(capped));
        if raw.spec.target.track != Track::default() && !caps.allows_kind(Kind::ConfigMap) {
            let found =
                "this installation manages no objects of kind ConfigMap, and each copy of what is tracked has one";
            findings.errors.push(draft.at(
                "/spec/target/track",
                Code::NotPermitted,
                found,
                "kinds that its caps allow",
            ));
        }
        findings.warnings.extend(listed.ignored.iter().filter_map(|path| Some(unread(path, files.get(path)?))));
        self.target = if raw.spec.target.kind == TargetKind::NodeConfig {
            let (kind, namespace) = (Kind::NodeConfig, self.id.namespace.clone());
            "all".parse().ok().map(|name| ObjectRef { kind, namespace, name })
        } else {
            case.target().map(|item| item.object.reference().clone())
        };
        self.route = route(&self.id, &raw.spec);
        self.copies = check::copies(&case);
        if let (Some(policy), Some((name, tenant))) = (policy, tenant) {
            findings.errors.extend(hostnames::check(&items, policy, name, tenant));
            findings.errors.extend(roots::check(&items, name, tenant));
            self.roots = roots::own(&items, tenant);
        }
        self.items = items.iter().map(|(reference, item)| (reference.clone(), Claim::of(item))).collect();
        (findings, listed.files, items)
    }

    /// The rollout, if it has a cluster, a target and at most one router.
    fn finished(
        &self,
        draft: &Draft,
        raw: &raw::Rollout,
        (files, items): (SetFiles, &Items),
        (jobs, nodes): (&Jobs, Option<NodeSelector>),
    ) -> Option<Rollout> {
        let target =
            if raw.spec.target.kind.is_object() { Some(&items.get(self.target.as_ref()?)?.object) } else { None };
        Some(Rollout {
            id: self.id.clone(),
            path: draft.path.clone(),
            blob: draft.blob.clone(),
            clusters: Some(self.clusters.clone()).filter(|clusters| !clusters.is_empty())?,
            elsewhere: BTreeMap::new(),
            plan: plan(&raw.spec, jobs, nodes)?,
            rollback_window: raw.spec.rollback.window,
            suspend: if raw.spec.suspend { Suspend::Yes } else { Suspend::No },
            set: Arc::new(set::assemble(files, items, target)),
        })
    }
}

/// What two rollouts cannot both have: the object that leads requests.
fn route(id: &RolloutId, spec: &raw::RolloutSpec) -> Option<ObjectRef> {
    let router = router(spec.traffic.as_ref()?)?;
    router.route().map(|(kind, name)| ObjectRef { kind, namespace: id.namespace.clone(), name: name.clone() })
}

/// The plan that the file describes; `None` where the router, or what a check asks, is not exactly one.
fn plan(spec: &raw::RolloutSpec, jobs: &Jobs, nodes: Option<NodeSelector>) -> Option<Plan> {
    let traffic = match &spec.traffic {
        None => {
            let of = |router| Traffic { router, settle: Span::ZERO, drain: Span::ZERO, session_affinity: None };
            spec.target.kind.own_router().map(of)
        }
        Some(traffic) => {
            let router = router(traffic)?;
            let session_affinity = traffic.session_affinity.clone();
            Some(Traffic { router, settle: traffic.settle, drain: traffic.drain, session_affinity })
        }
    };
    let known = spec.checks.iter().map(|(name, check)| Some((name.clone(), Check::try_from(check.clone()).ok()?)));
    let known: BTreeMap<_, _> = known.collect::<Option<_>>()?;
    let raw::Promotion { before, bake, checks } = &spec.promotion;
    let raw::Target { kind, name, layout, track, variant } = spec.target.clone();
    Some(Plan {
        nodes: nodes.filter(|_| kind == TargetKind::NodeConfig),
        target: Target { kind, name, layout, track, variant },
        traffic,
        phases: spec.phases.iter().flat_map(expand::phases).collect(),
        promotion: Promotion { before: expand::gates(before), bake: *bake, checks: checks.clone() },
        on_failure: OnFailure { revert: spec.on_failure.revert },
        progress_deadline: spec.progress_deadline,
        max_unready: spec.max_unready,
        on_stable_down: spec.on_stable_down,
        rolling_update: spec.rolling_update.clone().unwrap_or_default(),
        checks: known,
        hooks: spec.hooks.clone(),
        jobs: jobs.values(),
    })
}
