//! Whether the repository is the one that the Installation means, whoever has its name by now.

use super::checks::{Check, Found};
use crate::forge::host::HostError;
use crate::manifest::installation::PullHost;

/// The number that the Installation names, beside the one that the host tells.
pub(super) fn check(pinned: Option<u64>, site: &PullHost, asked: &Result<u64, HostError>) -> Check {
    let (check, at) = ("number of the repository", format!("{}/{}", site.owner, site.name));
    match (pinned, asked) {
        (_, Err(error)) => {
            let act =
                "see yourself that the repository there is yours: the host tells its number to whoever may read it";
            Check::new(Found::Unknown, check, &error.to_string(), act)
        }
        (Some(pinned), Ok(found)) if pinned == *found => {
            Check::ok(check, format!("{at} is number {found} there, as it should be"))
        }
        (Some(pinned), Ok(found)) => {
            let says = format!(
                "{at} is number {found} there, and the Installation means number {pinned}: another has its name"
            );
            let act = format!(
                "give spec.repository.url the address that number {pinned} has now; if the other one is meant, \
                 spec.repository.forge.repositoryId: {found}"
            );
            Check::new(Found::Broken, check, &says, act)
        }
        (None, Ok(found)) => {
            let says = format!(
                "{at} is number {found} there; whoever takes its name, once it is renamed or deleted, would be followed"
            );
            Check::new(Found::Warning, check, &says, format!("spec.repository.forge.repositoryId: {found}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::installation::{Access, HostKind};

    #[test]
    fn attack_22_doctor_tells_a_repository_that_has_taken_the_name_of_ours() {
        let api = "https://git.example.test/api/v1".to_owned();
        let (owner, name) = ("acme".to_owned(), "fleet".to_owned());
        let access = Access::Token("/etc/tidegate/token".into());
        let site = PullHost { kind: HostKind::Gitea, api, owner, name, access };
        let found = |pinned, asked| {
            let Check { found, says, act, .. } = check(pinned, &site, &asked);
            (found, says, act.unwrap_or_default())
        };
        assert_eq!(found(Some(7), Ok(7)).0, Found::Ok);
        let (judged, says, act) = found(Some(7), Ok(8));
        assert!(
            judged == Found::Broken && says.contains("number 8 there") && says.contains("means number 7"),
            "{says}"
        );
        assert!(act.contains("number 7 has now") && act.ends_with("repositoryId: 8"), "{act}");
        let (judged, _, act) = found(None, Ok(8));
        assert_eq!((judged, act.as_str()), (Found::Warning, "spec.repository.forge.repositoryId: 8"));
        assert_eq!(found(Some(7), Err(HostError::Limited(60))).0, Found::Unknown);
    }
}
