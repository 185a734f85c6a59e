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
            for person in &made.by {
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
