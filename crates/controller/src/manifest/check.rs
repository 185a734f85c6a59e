//! What a rollout must be beyond its shape, so that a run of it cannot get stuck or do harm.
//!
//! Each check takes the whole [`Case`] and returns all that it finds; none of them looks at another rollout.

mod affinity;
mod copies;
mod daemon;
mod delegated;
mod fields;
mod ingress;
mod jobs;
mod measured;
mod node;
mod none;
mod phases;
mod pods;
mod primary;
pub mod reach;
mod rights;
mod route;
mod scale;
mod service;
mod stateful;
mod tracked;
mod traefik;
mod variant;
mod versioned;
mod virtual_service;

pub(super) use copies::{Copies, copies};
pub(super) use node::check as nodes;

use super::desired::{Router, TargetKind};
use super::diagnostic::{Code, Diagnostic, SourceText};
use super::files::RepoPath;
use super::ids::{Namespace, ObjectName};
use super::object::{Kind, ObjectRef};
use super::set::{Item, Items};
use super::yaml::Node;
use super::{load, policy::Policy, raw};
use std::collections::{BTreeMap, BTreeSet};

/// What the names of the candidate's copies end in (design §7).
const SUFFIX: &str = "-canary";
/// What the names of stable's copies end in, with the layout `primary`.
const PRIMARY: &str = "-primary";

/// A rollout's file of the right shape, and the objects of its set as far as they could be read.
pub(super) struct Case<'a> {
    pub(super) source: &'a SourceText,
    pub(super) root: &'a Node,
    pub(super) namespace: &'a Namespace,
    pub(super) spec: &'a raw::RolloutSpec,
    pub(super) items: &'a Items,
    /// The Jobs that stand before steps, by their files.
    pub(super) jobs: &'a BTreeMap<RepoPath, Item>,
    /// Whether every file of the set was read; if not, what is missing proves nothing.
    pub(super) whole: bool,
    /// The files of the set with mistakes of their own, from which others may follow.
    pub(super) broken: BTreeSet<RepoPath>,
}

/// What the checks found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

impl Case<'_> {
    fn error(&self, pointer: &str, code: Code, found: impl Into<String>, expected: impl Into<String>) -> Diagnostic {
        self.source.at(self.root.locate(pointer), code, found, expected)
    }

    fn item(&self, kind: Kind, name: &ObjectName) -> Option<&Item> {
        self.items.get(&ObjectRef { kind, namespace: self.namespace.clone(), name: name.clone() })
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |(r, _)| r.kind == kind).map(|(_, item)| item)
    }

    /// What is rolled out.
    pub(super) fn target(&self) -> Option<&Item> {
        self.item(self.spec.target.kind.kind(), &self.spec.target.name)
    }

    /// The object that the rollout's file names at `pointer`, or what is wrong.
    fn require(&self, pointer: &str, kind: Kind, name: &ObjectName) -> Result<&Item, Vec<Diagnostic>> {
        self.item(kind, name).ok_or_else(|| {
            let there: Vec<&str> = self.items.keys().filter(|r| r.kind == kind).map(|r| r.name.as_str()).collect();
            let article = if kind.as_str().starts_with(['H', 'I']) { "an" } else { "a" };
            let expected = match there.as_slice() {
                [] => format!("{article} {kind} among the manifests"),
                names => format!("{article} {kind} among the manifests: {}", names.join(", ")),
            };
            let found = format!("there is no {kind} {name} in the set");
            self.whole.then(|| self.error(pointer, Code::TargetMissing, found, expected)).into_iter().collect()
        })
    }

    fn service(&self) -> Option<(String, ObjectName)> {
        let router = self.router()?;
        Some((router.spelling().service, router.service()?.clone()))
    }

    /// The object that leads requests to the Service.
    fn route(&self) -> Option<ObjectRef> {
        let router = self.router()?;
        router.route().map(|(kind, name)| ObjectRef { kind, namespace: self.namespace.clone(), name: name.clone() })
    }

    /// What splits requests, where the file names exactly one router.
    fn router(&self) -> Option<Router> {
        load::router(self.spec.traffic.as_ref()?)
    }
}

/// Checks one rollout. The policy, where it could be read, knows the windows.
pub(super) fn check(case: &Case<'_>, policy: Option<&Policy>) -> Findings {
    let mut findings = Findings::default();
    meaning(case, policy, &mut findings);
    fields::check(case, &mut findings);
    findings
}

/// What the rollout and its objects would lead to.
fn meaning(case: &Case<'_>, policy: Option<&Policy>, findings: &mut Findings) {
    findings.errors.extend(phases::check(case));
    findings.errors.extend(measured::check(case));
    findings.warnings.extend(measured::idle(case));
    findings.errors.extend(windows(case, policy));
    findings.errors.extend(jobs::check(case));
    findings.errors.extend(case.items.values().flat_map(protected));
    reach::check(case, policy, findings);
    findings.errors.extend(rights::check(case));
    findings.errors.extend(case.items.values().flat_map(pods::unrendered));
    let kind = case.spec.target.kind;
    if kind == TargetKind::None {
        findings.errors.extend(none::check(case));
        return;
    }
    if kind == TargetKind::NodeConfig {
        return;
    }
    let target = match case.require("/spec/target/name", kind.kind(), &case.spec.target.name) {
        Ok(target) => target,
        Err(missing) => {
            findings.errors.extend(missing);
            return;
        }
    };
    findings.errors.extend(versioned::check(case));
    scale::check(case, target, findings);
    match kind {
        TargetKind::Deployment => pods::check(case, target, findings),
        TargetKind::Service => service::check(case, target, findings),
        TargetKind::StatefulSet => findings.errors.extend(stateful::check(case, target)),
        TargetKind::DaemonSet => findings.errors.extend(daemon::check(case)),
        TargetKind::NodeConfig | TargetKind::None => {}
    }
    if kind != TargetKind::Service {
        findings.errors.extend(pods::ports(case, target));
        findings.errors.extend(primary::check(case, target));
    }
    findings.errors.extend(tracked::check(case, target));
    findings.errors.extend(variant::check(case, target));
    findings.errors.extend(affinity::check(case));
    route::check(case, findings);
    findings.errors.extend(ingress::check(case));
    findings.errors.extend(virtual_service::check(case));
    traefik::check(case, findings);
    findings.errors.extend(delegated::check(case));
}

fn windows(case: &Case<'_>, policy: Option<&Policy>) -> Vec<Diagnostic> {
    let Some(policy) = policy else { return Vec::new() };
    let phases = case.spec.phases.iter().enumerate();
    let gates = phases.map(|(i, phase)| (format!("/spec/phases/{i}/before/window"), &phase.before));
    let promotion = ("/spec/promotion/before/window".to_owned(), &case.spec.promotion.before);
    gates
        .chain([promotion])
        .filter_map(|(pointer, gates)| Some((pointer, gates.window.as_ref()?)))
        .filter(|(_, window)| !policy.windows.contains_key(*window))
        .map(|(pointer, window)| {
            let known: Vec<&str> = policy.windows.keys().map(super::ids::ScheduleName::as_str).collect();
            let expected =
                if known.is_empty() { "no window".to_owned() } else { format!("one of {}", known.join(", ")) };
            case.error(&pointer, Code::WindowMissing, format!("the policy has no window {window}"), expected)
        })
        .collect()
}

/// Whether a name is that of something that keeps tidegate itself running.
pub(super) fn is_protected(name: &str) -> bool {
    name == "tidegate" || name.starts_with("tidegate-")
}

fn protected(item: &Item) -> Option<Diagnostic> {
    let reference = item.object.reference();
    is_protected(reference.name.as_str()).then(|| {
        let found = format!("{reference} belongs to tidegate itself");
        item.error("/metadata/name", Code::ProtectedTarget, found, "objects of your own")
            .help("names that start with tidegate- are kept for the controller")
    })
}
