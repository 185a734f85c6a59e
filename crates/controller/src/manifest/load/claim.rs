//! What is kept of a rollout's objects until all rollouts were read, and how much of a tenant's is read and told: whoever has more stops
//! for itself.

use super::roots::FQDN;
use crate::manifest::diagnostic::{Code, Diagnostic, MOST, Mark, SourceText};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object};
use crate::manifest::scaler;
use crate::manifest::set::{Item, MAX_TENANT_VALUES};
use std::sync::Arc;

/// What others may want at an object of a set too.
pub(super) struct Claim {
    source: Arc<SourceText>,
    name: Mark,
    /// Where it selects pods, scales or takes a host.
    reach: Mark,
    /// What it scales.
    pub(super) scales: Option<(Kind, ObjectName)>,
    /// Itself, if it is a Service.
    pub(super) service: Option<Object>,
}

impl Claim {
    /// Of an object as it was read.
    pub(super) fn of(item: &Item) -> Self {
        let kind = item.object.reference().kind;
        let service = kind == Kind::Service;
        let reach = [("/spec/selector", service), (FQDN, kind == Kind::HttpProxy)];
        let reach = reach.into_iter().find_map(|(pointer, its)| its.then_some(pointer));
        Self {
            source: Arc::clone(&item.source),
            name: item.node.locate("/metadata/name"),
            reach: item.node.locate(reach.unwrap_or("/spec/scaleTargetRef/name")),
            scales: scaler::scaled(&item.object),
            service: service.then(|| item.object.clone()),
        }
    }

    /// A mistake at its name.
    pub(super) fn error(&self, code: Code, found: String, expected: &str) -> Diagnostic {
        self.source.at(self.name, code, found, expected)
    }

    /// A mistake where it reaches others.
    pub(super) fn reaching(&self, code: Code, found: String, expected: &str) -> Diagnostic {
        self.source.at(self.reach, code, found, expected)
    }

    /// Where it reaches others, for people.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.source.path(), self.reach.line)
    }
}

/// What is read and told yet of one tenant's rollouts.
pub(super) struct Room {
    /// Values in what they list.
    pub(super) values: usize,
    /// Mistakes, and warnings, beyond the first of each rollout.
    errors: usize,
    warnings: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { values: MAX_TENANT_VALUES, errors: MOST, warnings: MOST }
    }
}

impl Room {
    /// As many of a rollout's mistakes as are told.
    pub(super) fn told(&mut self, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
        kept(&mut self.errors, errors)
    }

    /// As many of its warnings.
    pub(super) fn warned(&mut self, warnings: Vec<Diagnostic>) -> Vec<Diagnostic> {
        kept(&mut self.warnings, warnings)
    }
}

fn kept(room: &mut usize, mut all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    all.truncate(1 + *room);
    *room -= all.len().saturating_sub(1);
    if *room == 0 {
        all.iter_mut().for_each(|diagnostic| diagnostic.source.clear());
    }
    all.shrink_to_fit();
    all
}
