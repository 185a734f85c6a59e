//! What is wrong behind a shared proxy, whose it is, and what of it concerns a route (requirements T-14, T-15, T-17).

use super::{SharedProxy, Tree, gloo, named_alone};
use crate::manifest::ids::{Namespace, TenantName};
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef};
use crate::record::state::Time;
use crate::record::text::plain;
use crate::workload::routers::{RouteStatus, contour_fault, gloo_fault, gloo_written, names};
use std::collections::BTreeMap;

/// How many objects above a route are looked at.
const DEPTH: usize = 16;

/// Something that a proxy does not take as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// What.
    object: ObjectRef,
    /// Whose rollout's, as `NAMESPACE/NAME`; none where it is no rollout's.
    owner: Option<String>,
    /// What is said of it.
    words: String,
    /// Since when, as far as anybody tells.
    since: Option<Time>,
    /// Whether it is refused as a whole.
    is_rejected: bool,
}

/// What a proxy's own controller says of an object that it does not take as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workload) struct Complaint {
    /// Its words.
    pub(in crate::workload) words: String,
    /// Since when, as far as it says.
    pub(in crate::workload) since: Option<Time>,
    /// Whether it refuses the object as a whole.
    pub(in crate::workload) is_rejected: bool,
}

/// The route that is asked about.
#[derive(Debug, Clone, Copy)]
pub struct SharedRoute<'a> {
    /// The route, as it is live.
    pub route: &'a Object,
    /// It, its Service and the candidate's, by their names.
    pub named: &'a [&'a str],
    /// Whose namespaces are whose.
    pub teams: &'a BTreeMap<Namespace, TenantName>,
}

impl Fault {
    fn of(object: &Object, Complaint { words, since, is_rejected }: Complaint) -> Self {
        let owner = object.annotation(OWNER).and_then(|owner| owner.split_once('/')).map(|(_, rollout)| plain(rollout));
        Self { object: object.reference().clone(), owner, words: plain(&words), since, is_rejected }
    }

    /// In words: the object, its rollout and its team, and what is said of it.
    fn told(&self, teams: &BTreeMap<Namespace, TenantName>) -> String {
        let ObjectRef { kind, namespace, name } = &self.object;
        let rollout = self.owner.as_ref().map(|rollout| format!("rollout {rollout}"));
        let team = teams.get(namespace).map(|team| format!("team {team}"));
        let whose: Vec<String> = rollout.into_iter().chain(team).collect();
        let whose = if whose.is_empty() { "of nobody known".to_owned() } else { whose.join(" of ") };
        format!("{kind} {namespace}/{name} ({whose}): {}", self.words)
    }

    /// What a route stands as that this keeps from being in force.
    fn blocks(&self, teams: &BTreeMap<Namespace, TenantName>, then: &str) -> RouteStatus {
        RouteStatus::Blocked { why: format!("{}; {then}", self.told(teams)), since: self.since }
    }
}

/// What follows of a proxy that does not take some route, and replaces none.
const FROZEN: &str = "Gloo replaces no routes (invalidConfigPolicy), so that the proxy keeps what it had";

impl Tree {
    /// What is wrong, the oldest first. What nothing delegates to is no part of the proxy.
    fn faults(&self) -> Vec<Fault> {
        let one = |object: &Object| {
            let complaint = match self.proxy {
                SharedProxy::Gloo => gloo_fault(object, self.home.as_str())?,
                SharedProxy::Contour => contour_fault(object)?,
            };
            let alone = object.reference().kind == Kind::RouteTable && self.parents(object).is_empty();
            (!alone).then(|| Fault::of(object, complaint))
        };
        let mut all: Vec<Fault> = self.objects.values().filter_map(|object| one(object)).collect();
        all.sort_by_key(|fault| (fault.since.is_none(), fault.since));
        all
    }

    /// Whether a route is in force, by what is said of it alone and by all that is known of the proxy. Nothing that others have done is held
    /// against it.
    #[must_use]
    pub fn judged(&self, own: RouteStatus, of: &SharedRoute<'_>) -> RouteStatus {
        match own {
            RouteStatus::Refused { .. } | RouteStatus::Blocked { .. } => return own,
            RouteStatus::Effective
            | RouteStatus::NotYet { .. }
            | RouteStatus::Barred { .. }
            | RouteStatus::Unknown { .. } => {}
        }
        if let Some(why) = &self.unread {
            return RouteStatus::Unknown { why: why.clone() };
        }
        match self.proxy {
            SharedProxy::Gloo => self.judged_by_gloo(own, of),
            SharedProxy::Contour => self.judged_by_contour(own, of),
        }
    }

    fn judged_by_gloo(&self, own: RouteStatus, of: &SharedRoute<'_>) -> RouteStatus {
        let route = of.route.reference();
        let above = self.above(of.route);
        // What has the hosts repeats what is said of the tables below it (`reporterHelper` of `converter.go`): a warning about the route is its own.
        let ours =
            |fault: &Fault| above.contains(&&fault.object) && names(&fault.words, of.named, route.namespace.as_str());
        let all = self.faults().into_iter().filter(|fault| fault.object != *route);
        let (ours, others): (Vec<Fault>, Vec<Fault>) = all.partition(ours);
        // What was said before the last change of the route is about another one.
        let written: Option<Time> = gloo_written(of.route, false).and_then(|time| time.parse().ok());
        let mut ours = ours.into_iter().filter(|fault| fault.is_rejected && fault.since >= written);
        if let Some(fault) = ours.next() {
            return RouteStatus::Refused { why: fault.told(of.teams) };
        }
        let own_warning = matches!(own, RouteStatus::Barred { .. });
        if own_warning || self.replaces_routes() || others.is_empty() {
            return own;
        }
        let root = named_alone(gloo::ROOT);
        if let Some(fault) = others.iter().find(|fault| fault.object.kind != root) {
            return fault.blocks(of.teams, FROZEN);
        }
        // Nothing but what has the hosts is said to be wrong: whom it names is to blame.
        let fault = &others[0];
        let known = self.objects.values().filter(|one| one.reference().kind != root && one.reference() != route);
        let mut blamed = known.filter(|one| {
            let ObjectRef { namespace, name, .. } = one.reference();
            names(&fault.words, &[name.as_str()], namespace.as_str())
        });
        match blamed.next() {
            Some(one) => {
                let Fault { words, since, is_rejected, .. } = fault.clone();
                Fault::of(one, Complaint { words, since, is_rejected }).blocks(of.teams, FROZEN)
            }
            None => RouteStatus::Unknown { why: format!("{}; {FROZEN}", fault.told(of.teams)) },
        }
    }

    /// Contour leaves out what is wrong, with all below it: a root with a host that another has too, each with its includes.
    fn judged_by_contour(&self, own: RouteStatus, of: &SharedRoute<'_>) -> RouteStatus {
        if !matches!(own, RouteStatus::Barred { .. }) {
            return own;
        }
        let route = of.route.reference();
        let above = self.above(of.route);
        let own_root = Some(route).filter(|_| self.is_root(of.route));
        let Some(root) = above.last().copied().or(own_root).and_then(|name| self.objects.get(name)) else { return own };
        let host = |proxy: &Object| proxy.text("/spec/virtualhost/fqdn").map(str::to_ascii_lowercase);
        let taken = self
            .of_kind(Kind::HttpProxy)
            .find(|other| other.reference() != root.reference() && host(other).is_some() && host(other) == host(root));
        if let Some(other) = taken {
            let host = host(root).unwrap_or_default();
            let since = other.text("/metadata/creationTimestamp").and_then(|time| time.parse().ok());
            let words = format!("it has the host {host}, and so has {}", root.reference());
            let complaint = Complaint { words, since, is_rejected: true };
            return Fault::of(other, complaint).blocks(of.teams, "Contour serves neither");
        }
        match contour_fault(root).filter(|_| root.reference() != route) {
            Some(complaint) => Fault::of(root, complaint).blocks(of.teams, "Contour serves nothing that it includes"),
            None => own,
        }
    }

    /// What delegates to a route, and to that, from below: of several the first.
    fn above(&self, route: &Object) -> Vec<&ObjectRef> {
        let mut all = Vec::new();
        let mut next = self.parents(route).first().map(|parent| parent.object);
        while let Some(object) = next.filter(|_| all.len() < DEPTH) {
            all.push(object.reference());
            next = self.parents(object).first().map(|parent| parent.object);
        }
        all
    }

    /// What keeps the proxy at what it had, be it the route itself: what was written since is not served (requirement T-17).
    #[must_use]
    pub fn frozen(&self, teams: &BTreeMap<Namespace, TenantName>) -> Option<(String, Option<Time>)> {
        let is_frozen = self.proxy == SharedProxy::Gloo && self.unread.is_none() && !self.replaces_routes();
        let fault = self.faults().into_iter().next().filter(|_| is_frozen)?;
        Some((format!("{}; {FROZEN}", fault.told(teams)), fault.since))
    }
}
