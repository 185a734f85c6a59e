//! The repository of a host, as it lies on its disk.

use super::site::Time;
use git2::{Commit, FileMode, Oid, Repository, Signature, Tree, build::TreeUpdateBuilder};
use std::path::Path;

/// How a pull request is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a merge commit.
    Merge,
    /// As one new commit.
    Squash,
    /// As its commits, made anew on top of the base.
    Rebase,
}

/// A commit, as hosts show it.
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) parents: Vec<String>,
    /// The addresses of its author and its committer.
    pub(crate) author: String,
    pub(crate) committer: String,
}

/// As whom GitHub makes commits on its pages.
pub(crate) const OF_GITHUB: (&str, &str) = ("GitHub", "noreply@github.com");
/// As whom GitLab does.
pub(crate) const OF_GITLAB: (&str, &str) = ("GitLab", "noreply@git.example");

/// A bare repository, and as whom its host makes commits.
pub(crate) struct Bare(Repository, (&'static str, &'static str));

/// The address of a user.
pub(crate) fn address(user: &str) -> String {
    format!("{user}@example.org")
}

fn oid(commit: &str) -> Oid {
    Oid::from_str(commit).unwrap()
}

fn signature(name: &str, address: &str, at: Time) -> Signature<'static> {
    Signature::new(name, address, &git2::Time::new(at.timestamp(), 0)).unwrap()
}

impl Bare {
    pub(crate) fn open(path: &Path, own: (&'static str, &'static str)) -> Self {
        Self(Repository::open_bare(path).unwrap(), own)
    }

    fn own(&self, at: Time) -> Signature<'static> {
        signature(self.1.0, self.1.1, at)
    }

    /// The tip of a branch.
    pub(crate) fn tip(&self, branch: &str) -> Option<String> {
        self.0.refname_to_id(&format!("refs/heads/{branch}")).ok().map(|id| id.to_string())
    }

    /// Puts a ref somewhere.
    pub(crate) fn set(&self, name: &str, commit: &str) {
        self.0.reference(name, oid(commit), true, "by the host").unwrap();
    }

    /// Deletes a branch, if it is there.
    pub(crate) fn delete(&self, branch: &str) {
        if let Ok(mut found) = self.0.find_reference(&format!("refs/heads/{branch}")) {
            found.delete().unwrap();
        }
    }

    fn commit(&self, id: &str) -> Commit<'_> {
        self.0.find_commit(oid(id)).unwrap()
    }

    /// A commit; none if there is no such.
    pub(crate) fn show(&self, id: &str) -> Option<Shown> {
        let commit = self.0.find_commit(Oid::from_str(id).ok()?).ok()?;
        let address = |who: Signature<'_>| String::from_utf8_lossy(who.email_bytes()).into_owned();
        Some(Shown {
            id: id.to_owned(),
            parents: commit.parent_ids().map(|id| id.to_string()).collect(),
            author: address(commit.author()),
            committer: address(commit.committer()),
        })
    }

    /// The commits that a head has and a base has not, oldest first.
    pub(crate) fn since(&self, base: &str, head: &str) -> Vec<String> {
        let mut walk = self.0.revwalk().unwrap();
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE).unwrap();
        walk.push(oid(head)).unwrap();
        walk.hide(oid(base)).unwrap();
        walk.map(|id| id.unwrap().to_string()).collect()
    }

    /// The id of what is at a path in a commit.
    pub(crate) fn entry(&self, commit: &str, path: &str) -> Option<String> {
        let tree = self.0.find_commit(Oid::from_str(commit).ok()?).ok()?.tree().ok()?;
        tree.get_path(Path::new(path)).ok().map(|entry| entry.id().to_string())
    }

    /// The text of a file in a commit.
    pub(crate) fn text(&self, commit: &str, path: &str) -> Option<String> {
        let blob = self.0.find_blob(oid(&self.entry(commit, path)?)).ok()?;
        String::from_utf8(blob.content().to_vec()).ok()
    }

    /// All that anybody can read in it but trees.
    pub(crate) fn texts(&self) -> Vec<String> {
        let (odb, mut ids) = (self.0.odb().unwrap(), Vec::new());
        odb.foreach(|id| {
            ids.push(*id);
            true
        })
        .unwrap();
        let objects = ids.into_iter().filter_map(|id| odb.read(id).ok());
        objects.map(|object| String::from_utf8_lossy(object.data()).into_owned()).collect()
    }

    /// The paths of files that a commit has, and another one has not, or otherwise.
    pub(crate) fn changed(&self, from: &str, to: &str) -> Vec<String> {
        let [from, to] = [from, to].map(|id| self.commit(id).tree().unwrap());
        let diff = self.0.diff_tree_to_tree(Some(&from), Some(&to), None).unwrap();
        diff.deltas().map(|delta| delta.new_file().path().unwrap().display().to_string()).collect()
    }

    fn make(&self, who: [&Signature<'_>; 2], text: &str, tree: &Tree<'_>, parents: &[&Commit<'_>]) -> String {
        self.0.commit(None, who[0], who[1], text, tree, parents).unwrap().to_string()
    }

    /// A commit of a user's on top of another one, with that file.
    pub(crate) fn write(&self, user: &str, onto: &str, (path, text): (&str, &str), at: Time) -> String {
        let (parent, who) = (self.commit(onto), signature(user, &address(user), at));
        let mut update = TreeUpdateBuilder::new();
        update.upsert(path, self.0.blob(text.as_bytes()).unwrap(), FileMode::Blob);
        let tree = update.create_updated(&self.0, &parent.tree().unwrap()).unwrap();
        self.make([&who, &who], "more", &self.0.find_tree(tree).unwrap(), &[&parent])
    }

    /// What a head is, merged into another commit.
    fn merged(&self, onto: &Commit<'_>, head: &Commit<'_>) -> Tree<'_> {
        let mut index = self.0.merge_commits(onto, head, None).unwrap();
        assert!(!index.has_conflicts(), "the host would not merge it");
        self.0.find_tree(index.write_tree_to(&self.0).unwrap()).unwrap()
    }

    /// A merge that a user has made themselves: on these commits, but with what another one is, merged.
    pub(crate) fn merged_as(&self, user: &str, parents: [&str; 2], like: &str, at: Time) -> String {
        let ([base, top], like, who) =
            (parents.map(|id| self.commit(id)), self.commit(like), signature(user, &address(user), at));
        self.make([&who, &who], "Merge a request", &self.merged(&base, &like), &[&base, &top])
    }

    /// Merges a head on top of a commit as GitHub's merge queue does, for whoever opened the pull request.
    pub(crate) fn queued(&self, opener: &str, onto: &str, head: &str, at: Time) -> String {
        let (base, top) = (self.commit(onto), self.commit(head));
        let (opener, own) = (signature(opener, &address(opener), at), self.own(at));
        self.make([&opener, &own], "Merge a request", &self.merged(&base, &top), &[&base, &top])
    }

    /// Merges a head on top of a commit, that way: who merges, whose pull request it is. What it became.
    pub(crate) fn merge(&self, way: Way, who: [&str; 2], onto: &str, head: &str, at: Time) -> String {
        let [merger, opener] = who.map(|user| signature(user, &address(user), at));
        let own = self.own(at);
        let (base, top) = (self.commit(onto), self.commit(head));
        match way {
            Way::Merge => self.make([&merger, &merger], "Merge a request", &self.merged(&base, &top), &[&base, &top]),
            Way::Squash => self.make([&opener, &own], "All in one", &self.merged(&base, &top), &[&base]),
            Way::Rebase => self.since(onto, head).iter().fold(onto.to_owned(), |onto, id| {
                let (onto, picked) = (self.commit(&onto), self.commit(id));
                let mut index = self.0.cherrypick_commit(&picked, &onto, 0, None).unwrap();
                let tree = self.0.find_tree(index.write_tree_to(&self.0).unwrap()).unwrap();
                let text = String::from_utf8_lossy(picked.message_bytes()).into_owned();
                self.make([&picked.author(), &own], &text, &tree, &[&onto])
            }),
        }
    }
}
