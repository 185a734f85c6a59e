//! The approvers of the policy where signatures have to prove what they say.

use super::checks::{Check, Found};
use crate::git::Store;
use crate::manifest::installation::Installation;
use crate::manifest::load::Loaded;
use crate::manifest::raw::Trust;
use crate::manifest::team::Approver;
use std::collections::BTreeSet;

/// Whether those whom the policy names can sign; nothing where a Git host has reviews, or the policy names nobody.
pub(super) fn checks(installation: &Installation, loaded: &Loaded, store: &Store) -> Option<Check> {
    let repository = &installation.repository;
    let listed = repository.forge.is_none().then(|| store.listed())?;
    let file = repository.signers_file.as_ref().map(|file| file.display().to_string());
    check(&approvers(loaded), &listed, &file.unwrap_or_default())
}

/// All accounts whose word any tenant asks for, in lower case. Teams are told as errors of the policy.
fn approvers(loaded: &Loaded) -> BTreeSet<String> {
    let tenants = loaded.policy.iter().flat_map(|policy| policy.tenants.values());
    let asked = tenants.filter(|tenant| tenant.trust != Trust::Writers).flat_map(|tenant| &tenant.approvers);
    let account = |approver: &Approver| match approver {
        Approver::Account(name) => Some(name.to_ascii_lowercase()),
        Approver::Team(_) => None,
    };
    asked.filter_map(account).collect()
}

fn check(approvers: &BTreeSet<String>, listed: &Result<Option<BTreeSet<String>>, String>, file: &str) -> Option<Check> {
    let check = "approvers";
    let list = |names: Vec<&String>| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    if approvers.is_empty() {
        return None;
    }
    Some(match listed {
        Err(why) => {
            Check::new(Found::Broken, check, why, "mend the list: until then nobody approves (docs/decisions.md)")
        }
        Ok(None) => {
            let says = format!(
                "the policy names who may approve ({}), and nothing can prove that they did: gates that wait for an approval stay closed",
                list(approvers.iter().collect())
            );
            let act = "set repository.allowedSignersFile or repository.forge in the Installation, or trust: writers in the policy";
            Check::new(Found::Broken, check, &says, act)
        }
        Ok(Some(listed)) => {
            let missing: Vec<&String> = approvers.difference(listed).collect();
            if missing.is_empty() {
                let says = format!("all {} that the policy names are on the list of allowed signers", approvers.len());
                return Some(Check::ok(check, says));
            }
            let found = if missing.len() == approvers.len() { Found::Broken } else { Found::Warning };
            let says = format!(
                "{} of the policy are not on the list of allowed signers: no word of theirs counts",
                list(missing)
            );
            let act = format!("add a line for each to {file}, or take them off the approvers in tidegate.yaml");
            Check::new(found, check, &says, act)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::look::declared;
    use super::*;
    use crate::manifest::files::Entry;
    use crate::manifest::installation::Caps;
    use crate::manifest::load::load;
    use crate::manifest::oid;
    use crate::manifest::team::Teams;

    fn policy(text: &str) -> Loaded {
        let text = format!("apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n{text}");
        let file = Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().to_vec().into() };
        load(&[("tidegate.yaml".parse().unwrap(), file)].into(), &Caps::default().with(Teams::None))
    }

    const TENANTS: &str =
        "    a: {path: a, namespaces: [a], clusters: [home], approvers: [Ana@x.test, ben+shop@x.test]}
    b: {path: b, namespaces: [b], clusters: [home], approvers: [carol], trust: writers}
";

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn who_cannot_sign_is_told() {
        let all = approvers(&policy(TENANTS));
        assert_eq!(all, names(&["ana@x.test", "ben+shop@x.test"]));
        let of = |listed: Result<Option<&[&str]>, String>| {
            let listed = listed.map(|listed| listed.map(names));
            let check = check(&all, &listed, "/signers").unwrap();
            (check.found, check.says, check.act.unwrap_or_default())
        };
        let (found, says, act) = of(Ok(None));
        assert!(
            found == Found::Broken && says.contains("(ana@x.test, ben+shop@x.test), and nothing can prove"),
            "{says}"
        );
        assert!(act.contains("repository.allowedSignersFile"), "{act}");
        let (found, says, act) = of(Ok(Some(&["ana@x.test", "*@x.test"])));
        assert!(
            found == Found::Warning && says.starts_with("ben+shop@x.test of the policy are not on the list"),
            "{says}"
        );
        assert!(act.contains("add a line for each to /signers"), "{act}");
        assert_eq!(of(Ok(Some(&["ana@y.test"]))).0, Found::Broken);
        assert_eq!(of(Ok(Some(&["ana@x.test", "ben+shop@x.test"]))).0, Found::Ok);
        assert_eq!(of(Err("line 1: no".to_owned())).1, "line 1: no");
        assert_eq!(check(&BTreeSet::new(), &Ok(None), ""), None, "nobody is named");
    }

    #[test]
    fn all_that_is_wrong_with_a_policy_is_told() {
        let loaded = policy(
            "    a: {path: a, namespaces: [a], clusters: [home], approvers: [\"@acme/shop\"]}
    b: {path: b, namespaces: [b], clusters: [home], approvers: [ana@x.test, ben@x.test], approvals: 2}
",
        );
        let all = declared("main", &loaded);
        let says: Vec<&str> = all.iter().map(|check| check.says.as_str()).collect();
        assert_eq!(says.len(), 2, "{says:?}");
        assert!(
            says.iter()
                .any(|says| says.contains("5:65: the installation names no Git host that tells who is in @acme/shop")),
            "{says:?}"
        );
        assert!(
            says.iter().any(|says| says.contains("2 approvals are asked for, and this installation names no Git host")),
            "{says:?}"
        );
        assert!(all.iter().all(|check| check.found == Found::Broken && check.act.is_some()));
    }
}
