//! The teams that the policy names as approvers.

use super::checks::{Check, Found};
use crate::forge::host::{Host, HostError};
use crate::manifest::load::Loaded;
use crate::manifest::team::{Approver, Team};
use std::collections::BTreeSet;

/// Whether the host tells who is in each of them.
pub(super) async fn checks(host: &mut Host, loaded: Option<&Loaded>) -> Vec<Check> {
    let mut all = Vec::new();
    for team in loaded.map(named).unwrap_or_default() {
        let asked = host.tells(&team).await;
        all.push(check(&team, &asked));
    }
    all
}

/// All that any tenant names.
fn named(loaded: &Loaded) -> BTreeSet<Team> {
    let tenants = loaded.policy.iter().flat_map(|policy| policy.tenants.values());
    let team = |approver: &Approver| match approver {
        Approver::Team(team) => Some(team.clone()),
        Approver::Account(_) => None,
    };
    tenants.flat_map(|tenant| &tenant.approvers).filter_map(team).collect()
}

fn check(team: &Team, asked: &Result<(), HostError>) -> Check {
    let check = format!("team {team}");
    match asked {
        Ok(()) => Check::ok(check, "the host tells who is in it"),
        Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) => {
            let act = "give the controller's account that right, or mend the approvers in tidegate.yaml: until then nobody \
                       approves as a member of it (docs/hosts.md)";
            Check::new(Found::Broken, check, &error.to_string(), act)
        }
        Err(error) => Check::new(Found::Unknown, check, &error.to_string(), "run doctor again once the host answers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::files::Entry;
    use crate::manifest::installation::Caps;
    use crate::manifest::load::load;
    use crate::manifest::oid;

    #[test]
    fn every_team_of_the_policy_is_looked_for_once() {
        let text = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
                    a: {path: a, namespaces: [a], clusters: [home], approvers: [ana, \"@acme/Shop\"]}\n    \
                    b: {path: b, namespaces: [b], clusters: [home], approvers: [\"@acme/shop\", \"@acme/ops\"]}\n";
        let file = Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().to_vec().into() };
        let loaded = load(&[("tidegate.yaml".parse().unwrap(), file)].into(), &Caps::default());
        let names: Vec<String> = named(&loaded).iter().map(Team::to_string).collect();
        assert_eq!(names, ["@acme/ops", "@acme/shop"]);
    }

    #[test]
    fn a_team_that_cannot_be_seen_is_broken_and_a_host_that_is_away_says_nothing() {
        let of = |asked: Result<(), HostError>| check(&"@acme/shop".parse().unwrap(), &asked);
        assert_eq!(of(Ok(())).found, Found::Ok);
        let why = "there is no team @acme/shop, or …".to_owned();
        let refused = of(Err(HostError::Refused { doing: "GET orgs/acme/teams/shop".to_owned(), status: 404, why }));
        assert!(refused.found == Found::Broken && refused.says.contains("no team @acme/shop"), "{refused:?}");
        assert_eq!(of(Err(HostError::Limited(60))).found, Found::Unknown);
    }
}
