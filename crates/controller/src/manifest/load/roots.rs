//! Objects by which a rollout takes a host for itself: the roots of Contour's HTTPProxies.
//!
//! A host that no tenant was given is nobody's to take. Who declares one is rejected alone; of two roots of one host Contour serves neither
//! (`VirtualHostError`, `DuplicateVhost`), so that both are.

use super::Judged;
use super::claim::Claim;
use crate::manifest::diagnostic::{Code, Diagnostic, few};
use crate::manifest::ids::{ClusterName, TenantName};
use crate::manifest::object::{Kind, ObjectRef};
use crate::manifest::policy::Tenant;
use crate::manifest::set::{Item, Items};
use std::collections::BTreeMap;

pub(super) const FQDN: &str = "/spec/virtualhost/fqdn";

/// The hosts that objects of a set take, each with the object.
fn taken(items: &Items) -> impl Iterator<Item = (String, &Item)> {
    let roots = items.values().filter(|item| item.object.reference().kind == Kind::HttpProxy);
    roots.filter_map(|item| Some((item.object.text(FQDN)?.to_ascii_lowercase(), item)))
}

/// Hosts that the tenant was not given.
pub(super) fn check(items: &Items, name: &TenantName, tenant: &Tenant) -> Vec<Diagnostic> {
    let foreign = taken(items).filter(|(fqdn, _)| !tenant.hosts.iter().any(|host| host.covers(fqdn)));
    let error = |(fqdn, item): (String, &Item)| {
        let found = format!("the policy gives tenant {name} no host {fqdn}");
        let expected = match &tenant.hosts {
            none if none.is_empty() => {
                "an HTTPProxy without virtualhost, which a root of operations includes".to_owned()
            }
            some => format!("one of {}", few(some.iter().map(ToString::to_string), 5, ", ")),
        };
        let help = format!("hosts are given by the policy: tenants: {{{name}: {{hosts: [{fqdn}]}}}}");
        item.error(FQDN, Code::HostNotAllowed, found, expected).help(help)
    };
    foreign.map(error).collect()
}

/// The hosts that are a rollout's own to take, by their objects.
pub(super) fn own(items: &Items, tenant: &Tenant) -> BTreeMap<ObjectRef, String> {
    let own = taken(items).filter(|(fqdn, _)| tenant.hosts.iter().any(|host| host.covers(fqdn)));
    own.map(|(fqdn, item)| (item.object.reference().clone(), fqdn)).collect()
}

/// Who takes a host of a cluster.
type Takers<'a> = BTreeMap<(&'a ClusterName, &'a str), Vec<(usize, &'a Claim)>>;

/// What several objects of a cluster take, as a mistake of each.
pub(super) fn doubled(judged: &[Judged]) -> Vec<(usize, Diagnostic)> {
    let mut takers = Takers::new();
    for (i, one) in judged.iter().enumerate().filter(|(_, one)| one.permitted) {
        for (root, fqdn) in &one.roots {
            let item = one.items.get(root).map(|item| (i, item));
            for cluster in &one.claims {
                takers.entry((cluster, fqdn)).or_default().extend(item);
            }
        }
    }
    let several = takers.into_iter().filter(|(_, takers)| takers.len() > 1);
    let errors = several.flat_map(|((_, fqdn), takers)| {
        let errors: Vec<(usize, Diagnostic)> = takers
            .iter()
            .enumerate()
            .map(|(n, (i, item))| {
                let others = takers.iter().enumerate().filter(|(m, _)| *m != n);
                let others = few(others.map(|(_, (_, other))| other.place()), 3, " and ");
                let found = format!("the host {fqdn} is also taken in {others}, and Contour serves neither");
                (*i, item.reaching(Code::Conflict, found, "one HTTPProxy for each host"))
            })
            .collect();
        errors
    });
    errors.collect()
}
