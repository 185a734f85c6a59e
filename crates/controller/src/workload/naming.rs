//! What the objects of the two roles are called, and what becomes of the candidate's while no run is open: the one place
//! that knows it (design §7, "Layout").

use super::layouts;
use super::layouts::primary;
use crate::manifest::desired::{Layout, Plan, Target, TargetKind, Track};
use crate::manifest::ids::ObjectName;
use crate::record::posture::{Names, Naming, Versions};
use crate::record::state::RoleName;
use crate::workload::routers::Services;

impl Naming {
    /// What a rollout asks for. Without a router there is no candidate, and nothing to call it.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        if plan.target.kind.own_router().is_some() {
            return Self::Shared;
        }
        match (plan.target.layout, Names::of(plan)) {
            (Layout::Primary, Some(names)) => Self::Primary(names),
            (Layout::Versioned, Some(stable)) => Self::Versioned(Versions { stable, candidate: None }),
            (Layout::InPlace, _) | (Layout::Primary | Layout::Versioned, None) => Self::InPlace,
        }
    }

    /// The same while a run goes by that plan: it names the version that it brings.
    #[must_use]
    pub fn in_run(&self, plan: &Plan) -> Self {
        match self {
            Self::Versioned(Versions { stable, candidate: None }) => {
                let candidate = Names::of(plan).filter(|names| names != stable);
                Self::Versioned(Versions { stable: stable.clone(), candidate })
            }
            Self::Versioned(_) | Self::InPlace | Self::Primary(_) | Self::Leaving(_) | Self::Shared => self.clone(),
        }
    }

    /// The same once the run is over: the version of that role is stable from then on.
    #[must_use]
    pub fn after(&self, stays: RoleName) -> Self {
        match self {
            Self::Versioned(Versions { stable, candidate }) => {
                let promoted = candidate.as_ref().filter(|_| stays == RoleName::Candidate);
                Self::Versioned(Versions { stable: promoted.unwrap_or(stable).clone(), candidate: None })
            }
            Self::InPlace | Self::Primary(_) | Self::Leaving(_) | Self::Shared => self.clone(),
        }
    }

    /// The Services of both roles, where their names follow from nothing.
    #[must_use]
    pub fn services(&self) -> Option<Services<'_>> {
        match self {
            Self::Versioned(Versions { stable, candidate }) => Some(Services {
                stable: &stable.service,
                candidate: candidate.as_ref().map(|candidate| &candidate.service),
            }),
            Self::InPlace | Self::Primary(_) | Self::Leaving(_) | Self::Shared => None,
        }
    }

    /// The workload of a role, where the rollout names `target`. A name that is too long for a copy has none: the set is
    /// refused for it.
    #[must_use]
    pub fn workload(&self, role: RoleName, target: &ObjectName) -> ObjectName {
        let copy = |name: &ObjectName, suffix| layouts::with_suffix(name, suffix).unwrap_or_else(|| name.clone());
        match (self, role) {
            (Self::InPlace, RoleName::Candidate) => copy(target, layouts::SUFFIX),
            (Self::InPlace, RoleName::Stable) | (Self::Shared, _) => target.clone(),
            (Self::Primary(names), RoleName::Stable) | (Self::Leaving(names), RoleName::Candidate) => {
                copy(&names.target, primary::SUFFIX)
            }
            (Self::Primary(names), RoleName::Candidate) | (Self::Leaving(names), RoleName::Stable) => {
                names.target.clone()
            }
            (Self::Versioned(Versions { stable, candidate: _ }), RoleName::Stable) => stable.target.clone(),
            // Without a run there is one version alone.
            (Self::Versioned(Versions { stable, candidate }), RoleName::Candidate) => {
                candidate.as_ref().unwrap_or(stable).target.clone()
            }
        }
    }

    /// The Service that leads to stable's pods beside [`Self::switched`], where there is one.
    #[must_use]
    pub fn stable_service(&self) -> Option<ObjectName> {
        match self {
            Self::InPlace | Self::Leaving(_) | Self::Shared | Self::Versioned(_) => None,
            Self::Primary(names) => layouts::with_suffix(&names.service, primary::SUFFIX),
        }
    }

    /// The target that the record names itself, where both versions have it.
    #[must_use]
    pub fn target(&self) -> Option<&ObjectName> {
        match self {
            Self::InPlace | Self::Shared | Self::Versioned(_) => None,
            Self::Primary(names) | Self::Leaving(names) => Some(&names.target),
        }
    }

    /// All targets that the record names itself.
    pub fn targets(&self) -> impl Iterator<Item = &ObjectName> {
        let (stable, candidate) = match self {
            Self::Versioned(Versions { stable, candidate }) => (Some(&stable.target), candidate.as_ref()),
            Self::InPlace | Self::Shared | Self::Primary(_) | Self::Leaving(_) => (self.target(), None),
        };
        stable.into_iter().chain(candidate.map(|candidate| &candidate.target))
    }

    /// The Service by which requests come in, where it has to lead elsewhere before the candidate's pods may go.
    #[must_use]
    pub fn switched(&self) -> Option<&ObjectName> {
        match self {
            Self::InPlace | Self::Shared | Self::Versioned(_) => None,
            Self::Primary(names) | Self::Leaving(names) => Some(&names.service),
        }
    }
}

impl Target {
    /// What the record says of a target that it names itself, where no file does any more.
    #[must_use]
    pub fn recorded(name: ObjectName) -> Self {
        Self { kind: TargetKind::Deployment, name, layout: Layout::Primary, track: Track::default(), variant: None }
    }
}

impl Names {
    /// What a rollout's file names; none without a router.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Self> {
        let service = plan.traffic.as_ref()?.router.service()?.clone();
        Some(Self { target: plan.target.name.clone(), service })
    }

    /// The same plan for the version with these names.
    #[must_use]
    pub fn within(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        plan.target.name.clone_from(&self.target);
        if let Some(traffic) = &mut plan.traffic {
            traffic.router = traffic.router.to(&self.service);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fixtures::{gateway, name, plan};

    fn versioned(version: &str) -> Plan {
        let mut plan = plan(Some(gateway()));
        plan.target.layout = Layout::Versioned;
        let name = |what: &str| name(&format!("{what}-{version}"));
        Names { target: name("web"), service: name("of") }.within(&plan)
    }

    #[test]
    fn t_7_each_version_has_the_names_that_its_own_file_gives_it() {
        let (one, two) = (versioned("v1"), versioned("v2"));
        let at_rest = Naming::of(&one);
        let in_run = at_rest.in_run(&two);
        let told = |naming: &Naming| {
            let Services { stable, candidate } = naming.services().unwrap();
            let workload = |role| naming.workload(role, &name("what-main-says")).to_string();
            let candidate = candidate.map_or("-".to_owned(), ToString::to_string);
            [workload(RoleName::Stable), workload(RoleName::Candidate), stable.to_string(), candidate].join(" ")
        };
        assert_eq!(told(&at_rest), "web-v1 web-v1 of-v1 -");
        assert_eq!(told(&in_run), "web-v1 web-v2 of-v1 of-v2");
        assert_eq!(in_run.in_run(&versioned("v3")), in_run, "what is recorded stays");
        assert_eq!(at_rest.in_run(&one), at_rest, "equal pods get no candidate");
        assert_eq!(told(&in_run.after(RoleName::Candidate)), "web-v2 web-v2 of-v2 -");
        assert_eq!(in_run.after(RoleName::Stable), at_rest);
        assert_eq!(Naming::InPlace.in_run(&two).after(RoleName::Candidate), Naming::InPlace);
    }
}
