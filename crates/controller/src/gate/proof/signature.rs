//! Whether a signature proves a decision, where no Git host with reviews can: made by somebody on the installation's list of allowed
//! signers whom the policy names, over the commit that brought the decision and nothing else, and by no one who made the version.

use super::{Approved, Flaw, Required, others};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::record::state::Time;
use std::collections::{BTreeMap, BTreeSet};

/// How a decision came to its branch, as Git itself tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Who of the list has signed the commit that brought it; why nobody has, if so.
    pub by: Result<Signer, String>,
    /// What that commit changed, against its first parent; none for what it took away.
    pub changes: BTreeMap<RepoPath, Option<BlobId>>,
    /// Who made the commits of the version that it is about, each with one of them: the addresses of authors, committers and co-authors,
    /// in lower case.
    pub writers: BTreeMap<String, CommitId>,
    /// The same of those who have signed such commits: all that the list calls them.
    pub sealers: BTreeMap<String, CommitId>,
}

/// Somebody on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// All that the list calls the key, in lower case: one person, however many names and keys they have.
    pub names: BTreeSet<String>,
    /// The key's fingerprint.
    pub key: String,
    /// When the commit says that it was made.
    pub at: Time,
}

/// Who has approved, if that is proven; else all that is wrong.
pub(super) fn prove(wanted: &Required<'_>, signed: &Signed) -> Result<Vec<Approved>, BTreeSet<Flaw>> {
    let mut flaws: BTreeSet<Flaw> = others(wanted, &signed.changes).map(Flaw::SignedMore).collect();
    let signer = match &signed.by {
        Ok(signer) => signer,
        Err(why) => {
            flaws.insert(Flaw::Unsigned(why.clone()));
            return Err(flaws);
        }
    };
    let named = signer.names.iter().find(|name| wanted.rule.names(name));
    let who = named.cloned().unwrap_or_else(|| signer.names.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    if named.is_none() {
        flaws.insert(Flaw::Unnamed(who.clone()));
    }
    if let Some(commit) = signer.names.iter().find_map(|name| signed.writers.get(name)) {
        flaws.insert(Flaw::SignedOwn(who.clone(), commit.clone()));
    } else if let Some(commit) = signer.names.iter().find_map(|name| signed.sealers.get(name)) {
        flaws.insert(Flaw::SignedVersion(who.clone(), commit.clone()));
    }
    // Commits name addresses: who is on the list under another name alone could have made any of them.
    let is_address = |name: &String| name.contains('@') && !name.contains(['*', '?', '!']);
    if !signer.names.iter().any(is_address) {
        flaws.insert(Flaw::NoAddress(who.clone()));
    }
    if signer.at < wanted.since {
        flaws.insert(Flaw::SignedEarly(who.clone()));
    }
    // A policy that asks for more is refused before it comes here, if it was read here.
    if wanted.rule.approvals > 1 {
        flaws.insert(Flaw::TooFew { found: 1, needed: wanted.rule.approvals });
    }
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let (key, at) = (Some(signer.key.clone()), signer.at);
    Ok(vec![Approved { user: None, login: who, review: None, team: None, key, at }])
}

#[cfg(test)]
mod tests {
    use super::super::{ProofEvidence, prove};
    use super::*;
    use crate::manifest::proof::{ApprovalRule, By};
    use crate::manifest::raw::Trust;
    use crate::record::fixture::{commit, time};

    const PATH: &str = "shop/podinfo/7-07070707-tenth.yaml";

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn blob() -> BlobId {
        "b".repeat(40).parse().unwrap()
    }

    /// Ana has signed what lets a version of Ben's go on.
    fn by_ana() -> Signed {
        Signed {
            by: Ok(Signer { names: names(&["ana@example.org"]), key: "SHA256:x".to_owned(), at: time("09:30:00") }),
            changes: [(PATH.parse().unwrap(), Some(blob()))].into(),
            writers: [("ben@example.org".to_owned(), commit(1))].into(),
            sealers: BTreeMap::new(),
        }
    }

    fn rule() -> ApprovalRule {
        let approvers = names(&["ana@example.org", "ben@example.org"]);
        ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Signatures }
    }

    fn judged(signed: &Signed, rule: &ApprovalRule) -> Result<Vec<Approved>, String> {
        let path = PATH.parse().unwrap();
        let wanted =
            Required { base: "tidegate/prod/decisions", file: (&path, &blob()), since: time("09:00:00"), rule };
        prove(&wanted, &ProofEvidence::Signed(Box::new(signed.clone()))).map_err(|flaws| super::super::said(&flaws))
    }

    fn signer(change: impl FnOnce(&mut Signer)) -> Signed {
        let mut signed = by_ana();
        change(signed.by.as_mut().unwrap());
        signed
    }

    #[test]
    fn x_2_the_signature_of_an_approver_proves_a_decision() {
        let [approved] = &*judged(&by_ana(), &rule()).unwrap() else { panic!("one") };
        assert_eq!((approved.login.as_str(), approved.key.as_deref()), ("ana@example.org", Some("SHA256:x")));
        // Names are compared as addresses are, and one of several is enough.
        let upper = ApprovalRule { approvers: names(&["ana@example.org"]), ..rule() };
        assert!(judged(&signer(|by| by.names = names(&["a.b@example.com", "ana@example.org"])), &upper).is_ok());
    }

    #[test]
    fn attack_74_78_84_no_other_signature_proves_one() {
        let unsigned =
            Signed { by: Err("commit 1a is not signed; /signers lists who may sign".to_owned()), ..by_ana() };
        let own = |name: &str| Signed { writers: [(name.to_owned(), commit(2))].into(), ..by_ana() };
        let signed_by = |name: &str| Signed { sealers: [(name.to_owned(), commit(2))].into(), ..by_ana() };
        let more = {
            let mut signed = by_ana();
            signed.changes.insert("shop/podinfo/7-07070707-promotion.yaml".parse().unwrap(), Some(blob()));
            signed
        };
        let other =
            Signed { changes: [(PATH.parse().unwrap(), Some("c".repeat(40).parse().unwrap()))].into(), ..by_ana() };
        let cases = [
            ("nobody has signed it", unsigned, rule()),
            ("not named", signer(|by| by.names = names(&["eve@example.org"])), rule()),
            ("a pattern is nobody", signer(|by| by.names = names(&["*@example.org"])), rule()),
            ("a commit of theirs", own("ana@example.org"), rule()),
            ("a commit that they signed", signed_by("ana@example.org"), rule()),
            (
                "under another name",
                {
                    let names = names(&["ana@example.org", "ana@home.example"]);
                    Signed { by: signer(|by| by.names = names).by, ..own("ana@home.example") }
                },
                rule(),
            ),
            (
                "a pattern is no address",
                signer(|by| by.names = names(&["ana", "*@example.org"])),
                ApprovalRule { approvers: names(&["ana"]), ..rule() },
            ),
            (
                "no address",
                signer(|by| by.names = names(&["ana"])),
                ApprovalRule { approvers: names(&["ana"]), ..rule() },
            ),
            ("before the run", signer(|by| by.at = time("08:59:59")), rule()),
            ("two decisions", more, rule()),
            ("another content", other, rule()),
            ("too few", by_ana(), ApprovalRule { approvals: 2, ..rule() }),
            ("nobody may", by_ana(), ApprovalRule { approvers: BTreeSet::new(), ..rule() }),
        ];
        let said =
            cases.map(|(what, signed, rule)| format!("{what}: {}", judged(&signed, &rule).unwrap_err())).join("\n");
        insta::assert_snapshot!(said, @r"
        nobody has signed it: commit 1a is not signed; /signers lists who may sign
        not named: eve@example.org signed it, and is none of the policy's approvers
        a pattern is nobody: *@example.org signed it, and is none of the policy's approvers; *@example.org signed it, and that is no address: nobody can tell whether they made a commit of this version
        a commit of theirs: ana@example.org made commit 02020202 of this version: an approver must be someone else
        a commit that they signed: ana@example.org signed commit 02020202 of this version: an approver must be someone else
        under another name: ana@example.org made commit 02020202 of this version: an approver must be someone else
        a pattern is no address: ana signed it, and that is no address: nobody can tell whether they made a commit of this version
        no address: ana signed it, and that is no address: nobody can tell whether they made a commit of this version
        before the run: ana@example.org signed it before the run started
        two decisions: the commit that was signed changed shop/podinfo/7-07070707-promotion.yaml: it may add the one decision alone
        another content: the commit that was signed changed shop/podinfo/7-07070707-tenth.yaml: it may add the one decision alone
        too few: approved by 1, needed are 2
        nobody may: ana@example.org signed it, and is none of the policy's approvers
        ");
    }
}
