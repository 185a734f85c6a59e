//! Which kinds a tenant's sets may hold: what the installation allows, as far as the policy leaves it.

use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::TenantName;
use crate::manifest::installation::{self, Caps};
use crate::manifest::object::Kind;
use crate::manifest::other::GroupKind;
use crate::manifest::policy::{self, Tenant};
use crate::manifest::set::Item;
use crate::manifest::set::refused::Unallowed;

/// A kind that is known, and that the installation or the tenant may not have.
pub(super) fn capped(item: &Item, caps: &Caps, tenant: Option<(&TenantName, &Tenant)>) -> Option<Diagnostic> {
    let kind = item.object.reference().kind;
    if let Kind::Other(_) = kind {
        // That was asked as it was read.
        return None;
    }
    if !caps.allows_kind(kind) {
        let found = format!("this installation manages no objects of kind {kind}");
        return Some(item.error("/kind", Code::NotPermitted, found, "kinds that its caps allow"));
    }
    let (name, _) = tenant.filter(|(_, tenant)| !tenant.allows_kind(kind))?;
    let found = format!("tenant {name} may have no objects of kind {kind}");
    Some(item.error("/kind", Code::NotPermitted, found, format!("kinds of tenants.{name}.kinds in {}", policy::FILE)))
}

/// Whether a kind that is known by its names alone may stand in a tenant's sets, or who has to allow it.
pub(super) fn allowed(kind: &GroupKind, caps: &Caps, tenant: Option<(&TenantName, &Tenant)>) -> Result<(), Unallowed> {
    if let Err(why) = installation::managed(kind) {
        return Err(Unallowed { found: Some(why.found), help: format!("what may stand here: {}", why.expected) });
    }
    if !caps.allows_other_of(kind, tenant.map(|(_, tenant)| tenant)) {
        let help = format!(
            "operations allows it by caps.kinds: [{kind}] in the Installation, which the chart writes by extraKinds (docs/files.md)"
        );
        return Err(Unallowed { found: None, help });
    }
    match tenant.filter(|(_, tenant)| !tenant.allows_other(kind)) {
        Some((name, _)) => Err(Unallowed {
            found: Some(format!("tenant {name} may have no objects of kind {kind}")),
            help: format!("operations allows it by tenants.{name}.kinds in {}", policy::FILE),
        }),
        None => Ok(()),
    }
}

/// The same beside layers: nobody has to allow them.
pub(super) fn beside_layers(_: &GroupKind) -> Result<(), Unallowed> {
    Err(Unallowed { found: None, help: "a rollout of nodes has layers alone".to_owned() })
}
