//! The Git host, where branches can be moved past all that people and tidegate agree on.

use git2::{Oid, Repository, Signature, Time};
use std::path::Path;

pub(crate) struct Host {
    repository: Repository,
}

/// Where a branch was before somebody moved it.
fn kept(branch: &str) -> String {
    branch.replace("refs/heads/", "refs/before/")
}

fn somebody() -> Signature<'static> {
    Signature::new("Somebody", "somebody@example.org", &Time::new(0, 0)).unwrap()
}

impl Host {
    pub(crate) fn open(directory: &Path) -> Self {
        Self { repository: Repository::open_bare(directory).unwrap() }
    }

    /// What happens to the branch `state` or `main`: it is `gone`, `older` by a commit, `rewritten` without a past, `back`
    /// where it was, or what lies there now `merged` with what was there before.
    pub(crate) fn put(&self, name: &str, what: &str) -> Result<(), String> {
        let branch = if name == "main" { "refs/heads/main" } else { "refs/heads/tidegate/world/state" };
        let tip = |name: &str| self.repository.refname_to_id(name).map_err(|_| format!("there is no {name}"));
        if what == "back" {
            self.set(branch, tip(&kept(branch))?);
            return Ok(());
        }
        if what == "merged" {
            let [now, past] = [tip(branch)?, tip(&kept(branch))?].map(|id| self.repository.find_commit(id).unwrap());
            let tree = now.tree().unwrap();
            let by = somebody();
            self.set(branch, self.repository.commit(None, &by, &by, "Merge", &tree, &[&now, &past]).unwrap());
            return Ok(());
        }
        let before = tip(branch)?;
        self.set(&kept(branch), before);
        let commit = self.repository.find_commit(before).unwrap();
        match what {
            "gone" => self.repository.find_reference(branch).unwrap().delete().unwrap(),
            "older" => self.set(branch, commit.parent_id(0).map_err(|_| format!("{name} has one commit"))?),
            "rewritten" => {
                let (by, tree) = (somebody(), commit.tree().unwrap());
                let alone = self.repository.commit(None, &by, &by, "All anew", &tree, &[]).unwrap();
                self.set(branch, alone);
            }
            _ => return Err(format!("no branch can be {what}")),
        }
        Ok(())
    }

    fn set(&self, branch: &str, tip: Oid) {
        self.repository.reference(branch, tip, true, "by hand").unwrap();
    }
}
