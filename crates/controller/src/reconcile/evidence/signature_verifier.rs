//! Who has signed decisions, where the installation names a list of allowed signers and no Git host: all of it is asked of Git.

use super::review_fetcher::made;
use crate::gate::proof::{ProofEvidence, Signed, Signer};
use crate::git::{Changed, GitError, RefName, Signatory, Store};
use crate::manifest::ids::CommitId;
use crate::plan::evidence::ReviewQuery;
use crate::record::state::Time;
use std::collections::BTreeMap;

/// Who tells whose a decision is by its signature.
pub struct SignatureVerifier {
    /// The repository, and the list.
    pub store: Store,
    /// What people want.
    pub main: RefName,
}

impl SignatureVerifier {
    /// Who has signed the commit that brought a decision, what else it changed, and who made the version.
    pub(super) async fn tell(&self, review_query: &ReviewQuery, now: Time) -> Result<ProofEvidence, GitError> {
        let decision = &review_query.asked.commit;
        let Changed { merged: _, files: changes } = self.store.changed(decision).await?;
        let made = match &review_query.version {
            Some(version) => made(&self.store, &self.main, version).await?,
            None => Vec::new(),
        };
        let all = std::iter::once(decision).chain(made.iter().map(|made| &made.commit)).cloned().collect();
        let mut signatories = self.store.signatories(all, now).await?.into_iter();
        let by = match signatories.next().unwrap_or_else(|| Err("it was not looked at".to_owned())) {
            // Who made the version is judged by their time alone.
            Ok(Signatory { lapsed: Some(why), .. }) => Err(why),
            by => by.map(signer),
        };
        let (mut writers, mut sealers) = (BTreeMap::<String, CommitId>::new(), BTreeMap::<String, CommitId>::new());
        for (made, signatory) in made.iter().zip(signatories) {
            for person in made.makers() {
                writers.entry(person.email.to_ascii_lowercase()).or_insert_with(|| made.commit.clone());
            }
            for name in signatory.into_iter().flat_map(|signatory| signer(signatory).names) {
                sealers.entry(name).or_insert_with(|| made.commit.clone());
            }
        }
        Ok(ProofEvidence::Signed(Box::new(Signed { by, changes, writers, sealers })))
    }
}

fn signer(Signatory { names, key, at, lapsed: _ }: Signatory) -> Signer {
    Signer { names: names.iter().map(|name| name.to_ascii_lowercase()).collect(), key, at }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::World;
    use super::*;
    use crate::gate::proof::ProofQuestion;
    use crate::manifest::files::Had;
    use crate::manifest::proof::{ApprovalRule, By};
    use crate::manifest::raw::Trust;
    use crate::plan::evidence::Version;
    use crate::record::fixture;
    use git2::build::TreeUpdateBuilder;
    use git2::{FileMode, Repository, Signature};

    const APP: &str = "teams/shop/a/app.yaml";

    /// Commits the app to main as Eve does, with Ben; the commit.
    fn paired(origin: &Repository) -> CommitId {
        let eve = Signature::new("eve", "eve@example.org", &git2::Time::new(1_767_300_000, 0)).unwrap();
        let main = origin.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap();
        let blob = origin.blob(b"new").unwrap();
        let tree =
            TreeUpdateBuilder::new().upsert(APP, blob, FileMode::Blob).create_updated(origin, &main.tree().unwrap());
        let tree = origin.find_tree(tree.unwrap()).unwrap();
        let message = "web: 2\n\nCo-authored-by: Ben <Ben@example.org>\n";
        let commit = origin.commit(Some("refs/heads/main"), &eve, &eve, message, &tree, &[&main]).unwrap();
        commit.to_string().parse().unwrap()
    }

    #[tokio::test]
    async fn attack_74_who_is_named_as_a_co_author_cannot_sign_for_the_version() {
        let world = World::new().await;
        let stable = world.tip("main").await.unwrap();
        let commit = paired(&Repository::open(world.dir.path().join("origin.git")).unwrap());
        let signers = world.dir.path().join("signers");
        std::fs::write(&signers, "").unwrap();
        let source = world.source_with("c", |config| config.signers_file = Some(signers));
        let (store, main) = (source.store().clone(), source.branches().main.clone());
        store.fetch(&[(main.clone(), commit.clone())].into()).await.unwrap();
        let rule = ApprovalRule {
            approvers: ["ben".to_owned()].into(),
            approvals: 1,
            trust: Trust::Reviews,
            by: By::Signatures,
        };
        let asked = ProofQuestion {
            path: "shop/a/7.yaml".parse().unwrap(),
            blob: "1".repeat(40).parse().unwrap(),
            commit: commit.clone(),
            rule,
        };
        let part = BTreeMap::from([(APP.parse().unwrap(), Had::AsIn(stable))]);
        let version = Some(Version { commit: commit.clone(), stable: [part, BTreeMap::new()] });
        let query = ReviewQuery { tenant: None, asked, request: None, version };
        let told = SignatureVerifier { store, main }.tell(&query, fixture::time("12:00:00")).await.unwrap();
        let ProofEvidence::Signed(signed) = told else { panic!("{told:?}") };
        let expected = ["ben@example.org", "eve@example.org"].map(|address| (address.to_owned(), commit.clone()));
        assert_eq!(signed.writers, expected.into());
    }
}
