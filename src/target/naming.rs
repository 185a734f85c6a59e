//! What the objects of the two roles are called, and what becomes of the candidate's while no run is open: the one place
//! that knows it (design §7, "Layout").

use super::{layout, primary};
use crate::manifest::desired::{Layout, Plan};
use crate::manifest::ids::ObjectName;
use crate::record::posture::{Names, Naming};
use crate::record::state::RoleName;

impl Naming {
    /// What a rollout asks for. Without a router there is no candidate, and nothing to call it.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        if plan.target.kind.own_router().is_some() {
            return Self::Shared;
        }
        let service = plan.traffic.as_ref().and_then(|traffic| traffic.router.service());
        match (plan.target.layout, service) {
            (Layout::Primary, Some(service)) => {
                Self::Primary(Names { target: plan.target.name.clone(), service: service.clone() })
            }
            (Layout::InPlace, _) | (Layout::Primary, None) => Self::InPlace,
        }
    }

    /// The workload of a role, where the rollout names `target`. A name that is too long for a copy has none: the set is
    /// refused for it.
    #[must_use]
    pub fn workload(&self, role: RoleName, target: &ObjectName) -> ObjectName {
        let copy = |name: &ObjectName, suffix| layout::with_suffix(name, suffix).unwrap_or_else(|| name.clone());
        match (self, role) {
            (Self::InPlace, RoleName::Candidate) => copy(target, layout::SUFFIX),
            (Self::InPlace, RoleName::Stable) | (Self::Shared, _) => target.clone(),
            (Self::Primary(names), RoleName::Stable) | (Self::Leaving(names), RoleName::Candidate) => {
                copy(&names.target, primary::SUFFIX)
            }
            (Self::Primary(names), RoleName::Candidate) | (Self::Leaving(names), RoleName::Stable) => {
                names.target.clone()
            }
        }
    }

    /// The Service that leads to stable's pods beside [`Self::switched`], where there is one.
    #[must_use]
    pub fn stable_service(&self) -> Option<ObjectName> {
        match self {
            Self::InPlace | Self::Leaving(_) | Self::Shared => None,
            Self::Primary(names) => layout::with_suffix(&names.service, primary::SUFFIX),
        }
    }

    /// The target that the record names itself.
    #[must_use]
    pub fn target(&self) -> Option<&ObjectName> {
        match self {
            Self::InPlace | Self::Shared => None,
            Self::Primary(names) | Self::Leaving(names) => Some(&names.target),
        }
    }

    /// The Service by which requests come in, where it has to lead elsewhere before the candidate's pods may go.
    #[must_use]
    pub fn switched(&self) -> Option<&ObjectName> {
        match self {
            Self::InPlace | Self::Shared => None,
            Self::Primary(names) | Self::Leaving(names) => Some(&names.service),
        }
    }
}
