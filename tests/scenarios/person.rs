//! Ana, who changes main, merges requests and writes decisions, as people do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidegate::git::{
    CommitDraft, CommitSigning, Edit, GitError, Logged, Person, Pushed, RefName, RemoteConfig, RemoteUrl, Sealed, Store,
};
use tidegate::manifest::files::{Entry, Files, RepoPath};
use tidegate::manifest::ids::{CommitId, RolloutId, RunId};
use tidegate::reconcile::clock::Clock;
use tidegate::record::state::{Outcome, Phase, Refused, Rest, RolloutState, Serving};
use tidegate::record::store;
use tidegate::sign::SigningKey;

/// All branches of the world are below this.
const BRANCHES: &str = "tidegate/world";
/// More than any story has.
const MOST: usize = 10_000;

pub(crate) struct Ana {
    store: Store,
    clock: Clock,
    /// As whom she commits.
    pub(crate) author: String,
}

/// A commit of the state branch, with all records as it left them.
pub(crate) struct Commit {
    pub(crate) logged: Logged,
    pub(crate) records: BTreeMap<RolloutId, RolloutState>,
}

/// The key of the world.
pub(crate) fn key() -> Arc<SigningKey> {
    Arc::new(SigningKey::parse(include_bytes!("../../crates/controller/src/sign/fixtures/ed25519")).unwrap())
}

fn branch(name: &str) -> RefName {
    RefName::branch(name).unwrap()
}

impl Ana {
    pub(crate) fn new(directory: &Path, repository: &Path, clock: Clock) -> Self {
        let config = RemoteConfig::new(RemoteUrl::Local(repository.to_owned()));
        Self { store: Store::open(&directory.join("person"), config).unwrap(), clock, author: "Ana".to_owned() }
    }

    /// The tip of a branch, brought here.
    async fn tip(&self, name: &RefName) -> Option<CommitId> {
        let tips = self.store.ls_refs(&[name.as_str()]).await.unwrap();
        self.store.fetch(&tips).await.unwrap();
        tips.get(name).cloned()
    }

    async fn files(&self, name: &RefName) -> Files {
        match self.tip(name).await {
            Some(tip) => self.store.files(&tip, None).await.unwrap(),
            None => Files::new(),
        }
    }

    /// Main as it is.
    pub(crate) async fn main(&self) -> Files {
        self.files(&branch("main")).await
    }

    /// A branch of people as it is, or main if there is none of that name.
    pub(crate) async fn branch(&self, name: &str) -> Files {
        let files = self.files(&branch(name)).await;
        if files.is_empty() { self.main().await } else { files }
    }

    /// Changes main.
    pub(crate) async fn push(&self, edits: BTreeMap<RepoPath, Edit>, subject: &str) {
        self.commit(&branch("main"), edits, subject).await;
    }

    /// Changes a branch of people, which begins at main.
    pub(crate) async fn push_to(&self, name: &str, edits: BTreeMap<RepoPath, Edit>, subject: &str) {
        let name = branch(name);
        if self.tip(&name).await.is_none() {
            let main = self.tip(&branch("main")).await.unwrap();
            let pushed = self.store.push(&name, None, &main, None).await.unwrap();
            assert!(matches!(pushed, Pushed::Done { .. }), "{name}: {pushed:?}");
        }
        self.commit(&name, edits, subject).await;
    }

    /// Writes a decision, into a file of its own.
    pub(crate) async fn decide(&self, rollout: &RolloutId, run: &str, action: &str, spec: &str) {
        let decisions = branch(&format!("{BRANCHES}/decisions"));
        let files = self.files(&decisions).await;
        let name = (1..).map(|n| if n == 1 { format!("{run}-{action}") } else { format!("{run}-{action}-{n}") });
        let path = name.map(|name| format!("{rollout}/{name}.yaml").parse::<RepoPath>().unwrap());
        let path = path.into_iter().find(|path| !files.contains_key(path)).unwrap();
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: {}, namespace: {}}}\nspec: {spec}\n",
            rollout.name, rollout.namespace
        );
        self.commit(&decisions, [(path, Edit::Write(text.as_bytes().into()))].into(), action).await;
    }

    /// The requests that are open.
    pub(crate) async fn requests(&self) -> BTreeMap<RefName, CommitId> {
        self.store.ls_refs(&[&format!("refs/heads/{BRANCHES}/propose/")]).await.unwrap()
    }

    /// The one open request about a rollout that ends like that.
    ///
    /// # Errors
    /// What requests there are, if it is not one.
    pub(crate) async fn request(&self, rollout: &RolloutId, end: &str) -> Result<RefName, String> {
        let open = self.requests().await;
        let (rollout, end) = (format!("/{rollout}/"), format!("-{end}"));
        let mut found = open.keys().filter(|name| name.as_str().contains(&rollout) && name.as_str().ends_with(&end));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one.clone()),
            _ => Err(format!("not one request ends with {end}: {:?}", open.keys().collect::<Vec<_>>())),
        }
    }

    /// Merges a request into main, which must not have moved since it was made.
    pub(crate) async fn merge(&self, request: &RefName) {
        let (theirs, ours) = (self.files(request).await, self.main().await);
        let mut edits: BTreeMap<RepoPath, Edit> = BTreeMap::new();
        for (path, entry) in &theirs {
            if let tidegate::manifest::files::Entry::File { bytes, .. } = entry
                && ours.get(path) != Some(entry)
            {
                edits.insert(path.clone(), Edit::Write(bytes.clone()));
            }
        }
        edits.extend(ours.keys().filter(|path| !theirs.contains_key(*path)).map(|path| (path.clone(), Edit::Remove)));
        self.push(edits, "Merge a request").await;
    }

    /// Pushes to a request what nobody has asked: a word for all that is to come in place of one for a step, or one more file.
    pub(crate) async fn spoil(&self, request: &RefName) {
        let mut edits: BTreeMap<RepoPath, Edit> = BTreeMap::new();
        let (_, asked) = request.as_str().rsplit_once('/').unwrap();
        let (_, step) = asked.rsplit_once('-').unwrap();
        for (path, entry) in self.files(request).await {
            if let tidegate::manifest::files::Entry::File { bytes, .. } = entry
                && path.file_name() == format!("{asked}.yaml")
            {
                let swap = |text: &str| text.replace(step, "promotion");
                let text = swap(std::str::from_utf8(&bytes).unwrap());
                edits.insert(swap(path.as_str()).parse().unwrap(), Edit::Write(text.as_bytes().into()));
                edits.insert(path, Edit::Remove);
            }
        }
        if edits.is_empty() {
            edits.insert("more.yaml".parse().unwrap(), Edit::Write(b"more: true\n".as_slice().into()));
        }
        self.commit(request, edits, "More").await;
    }

    /// Deletes a request unmerged.
    pub(crate) async fn delete(&self, request: &RefName) {
        let tip = self.tip(request).await.unwrap();
        assert!(matches!(self.store.delete_branch(request, &tip).await.unwrap(), Pushed::Done { .. }), "{request}");
    }

    /// The commits of the state branch since that one, oldest first.
    pub(crate) async fn commits(&self, since: Option<&CommitId>) -> Vec<Commit> {
        let Some(tip) = self.tip(&branch(&format!("{BRANCHES}/state"))).await else { return Vec::new() };
        let mut new = self.store.history(&tip, MOST).await.unwrap();
        match new.iter().position(|logged| Some(&logged.commit) == since) {
            Some(known) => new.truncate(known),
            // A branch that somebody put elsewhere: what it shows there is no news.
            None if since.is_some() => new.clear(),
            None => {}
        }
        let mut commits = Vec::with_capacity(new.len());
        for logged in new.into_iter().rev() {
            let records = self.records(&logged.commit).await;
            commits.push(Commit { logged, records });
        }
        commits
    }

    /// Removes a record from the state branch.
    pub(crate) async fn forget(&self, rollout: &RolloutId) -> Result<(), String> {
        let state = branch(&format!("{BRANCHES}/state"));
        let record = format!("rollouts/{rollout}/");
        let files = self.files(&state).await;
        let gone =
            files.keys().filter(|path| path.as_str().starts_with(&record)).map(|path| (path.clone(), Edit::Remove));
        let gone: BTreeMap<RepoPath, Edit> = gone.collect();
        if gone.is_empty() {
            return Err(format!("there is no record of {rollout}"));
        }
        self.commit(&state, gone, &format!("Remove {rollout}")).await;
        Ok(())
    }

    /// Brings a record again, as it was last.
    pub(crate) async fn remember(&self, rollout: &RolloutId) -> Result<(), String> {
        let state = branch(&format!("{BRANCHES}/state"));
        let record = format!("rollouts/{rollout}/");
        let tip = self.tip(&state).await.ok_or("there is no state branch")?;
        let mut files = Files::new();
        for past in self.store.history(&tip, MOST).await.unwrap() {
            files = self.store.files(&past.commit, None).await.unwrap();
            if files.keys().any(|path| path.as_str().starts_with(&record)) {
                break;
            }
        }
        let edits = files.iter().filter(|(path, _)| path.as_str().starts_with(&record));
        let edits = edits.filter_map(|(path, entry)| {
            let tidegate::manifest::files::Entry::File { bytes, .. } = entry else { return None };
            Some((path.clone(), Edit::Write(bytes.clone())))
        });
        self.commit(&state, edits.collect(), &format!("Bring {rollout} again")).await;
        Ok(())
    }

    /// Lets the record say that a step was approved.
    pub(crate) async fn forge(&self, rollout: &RolloutId, step: &str) -> Result<(), String> {
        let route = "\n  route: phases\n";
        self.rewrite(rollout, route, &format!("{route}  approved: [{step}]\n")).await
    }

    /// What the instance of another cluster records of the version that is under way here, else of the promoted one.
    pub(crate) async fn elsewhere(&self, cluster: &str, rollout: &RolloutId, what: &str) -> Result<(), String> {
        let mut state = self.record(rollout).await.ok_or_else(|| format!("there is no record of {rollout}"))?;
        let theirs = branch(&format!("tidegate/{cluster}/state"));
        let path = store::paths(rollout).state;
        let known = self.files(&theirs).await;
        let known = known.get(&path).map(|entry| {
            let Entry::File { bytes, .. } = entry else { panic!("{entry:?}") };
            store::parse_state(rollout, bytes).unwrap()
        });
        let run = state.run.take();
        let brings = run.as_ref().map_or_else(|| state.promoted.clone().unwrap().revision, |run| run.revision.clone());
        let since = self.clock.now();
        state.writer.instance = cluster.parse().unwrap();
        state.writer.cluster = cluster.parse().unwrap();
        state.writer.cluster_uid = format!("uid-of-{cluster}");
        state.seq = known.as_ref().map_or(1, |known| known.seq + 1);
        state.conditions.clear();
        match what {
            "has" => {
                state.promoted.as_mut().unwrap().revision = brings;
                state.phase = Phase::Steady { how: Rest::Succeeded, since };
            }
            "lags" => state.phase = Phase::Steady { how: Rest::Succeeded, since },
            "fails" => {
                let run = run.map_or_else(RunId::zero, |run| run.id);
                let why = "a check failed there".to_owned();
                state.refused.push(Refused {
                    revision: brings,
                    run,
                    outcome: Outcome::Failed,
                    why: why.clone(),
                    at: since,
                });
                state.phase = Phase::Failed { why, since, standing: Serving::Stable };
            }
            _ => return Err(format!("no cluster {what} a version")),
        }
        let text = store::print_state(&state);
        self.commit(&theirs, [(path, Edit::Write(text.as_bytes().into()))].into(), "Go on").await;
        Ok(())
    }

    /// Lets the record be one that a newer version wrote, or what it was before that.
    pub(crate) async fn renew(&self, rollout: &RolloutId, newer: bool) -> Result<(), String> {
        let (known, unknown) = ("\nphase:\n  name: ", "\nphase:\n  name: Newer");
        let (from, to) = if newer { (known, unknown) } else { (unknown, known) };
        self.rewrite(rollout, from, to).await
    }

    async fn rewrite(&self, rollout: &RolloutId, from: &str, to: &str) -> Result<(), String> {
        let (state, path) = (branch(&format!("{BRANCHES}/state")), store::paths(rollout).state);
        let tip = self.tip(&state).await.ok_or("there is no state branch")?;
        let bytes = self.store.file(&tip, &path).await.unwrap();
        let bytes = bytes.ok_or_else(|| format!("there is no record of {rollout}"))?;
        let old = String::from_utf8(bytes.to_vec()).unwrap();
        let new = old.replace(from, to);
        if new == old {
            return Err(format!("there is no `{from}` in the record of {rollout}:\n{old}"));
        }
        self.commit(&state, [(path, Edit::Write(new.as_bytes().into()))].into(), "Go on").await;
        Ok(())
    }

    /// Accepts the record as it is, or as it was at a commit.
    pub(crate) async fn vouch(&self, of: Option<&CommitId>) {
        let state = branch(&format!("{BRANCHES}/state"));
        let tip = self.tip(&state).await.unwrap();
        let subject = if of.is_some() { "the record is brought back" } else { "the record is accepted as it is" };
        let commit = self.store.vouch(self.draft(None, BTreeMap::new(), subject), &tip, of, key()).await.unwrap();
        let pushed = self.store.push(&state, Some(&tip), &commit, None).await.unwrap();
        assert!(matches!(pushed, Pushed::Done { .. }), "{pushed:?}");
    }

    /// Brings the newest signed record back.
    pub(crate) async fn restore(&self) -> Result<(), String> {
        let tip = self.tip(&branch(&format!("{BRANCHES}/state"))).await.ok_or("there is no state branch")?;
        let keys = CommitSigning::new(key(), []).trusted;
        let all = self.store.sealed(&tip, &keys).await.unwrap();
        let newest = all.into_iter().find(Sealed::is_trusted).ok_or("nothing is signed")?;
        self.vouch(Some(&newest.commit)).await;
        Ok(())
    }

    /// What the state branch shows to people.
    pub(crate) async fn dashboard(&self) -> String {
        match self.files(&branch(&format!("{BRANCHES}/state"))).await.get(&"README.md".parse().unwrap()) {
            Some(tidegate::manifest::files::Entry::File { bytes, .. }) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => "no dashboard\n".to_owned(),
        }
    }

    /// The state branch as it is.
    pub(crate) async fn state(&self) -> Files {
        self.files(&branch(&format!("{BRANCHES}/state"))).await
    }

    /// What Git says now.
    pub(crate) async fn record(&self, rollout: &RolloutId) -> Option<RolloutState> {
        let tip = self.tip(&branch(&format!("{BRANCHES}/state"))).await?;
        let bytes = self.store.file(&tip, &store::paths(rollout).state).await.unwrap()?;
        Some(store::parse_state(rollout, &bytes).unwrap())
    }

    async fn records(&self, commit: &CommitId) -> BTreeMap<RolloutId, RolloutState> {
        let files = match self.store.files(commit, Some(&"rollouts".parse().unwrap())).await {
            Ok(files) => files,
            Err(GitError::Missing(_)) => return BTreeMap::new(),
            Err(error) => panic!("{error}"),
        };
        let record = |(path, entry): (&RepoPath, &tidegate::manifest::files::Entry)| {
            let tidegate::manifest::files::Entry::File { bytes, .. } = entry else { return None };
            let id = path.as_str().strip_suffix("/state.yaml")?.trim_start_matches("rollouts/").parse().ok()?;
            let state = store::parse_state(&id, bytes).unwrap();
            Some((id, state))
        };
        files.iter().filter_map(record).collect()
    }

    async fn commit(&self, name: &RefName, edits: BTreeMap<RepoPath, Edit>, subject: &str) {
        let parent = self.tip(name).await;
        let new = self.store.commit(self.draft(parent.clone(), edits, subject)).await.unwrap();
        let pushed = self.store.push(name, parent.as_ref(), &new, None).await.unwrap();
        assert!(matches!(pushed, Pushed::Done { .. }), "{name}: {pushed:?}");
    }

    fn draft(&self, parent: Option<CommitId>, edits: BTreeMap<RepoPath, Edit>, subject: &str) -> CommitDraft {
        let email = format!("{}@example.org", self.author.to_lowercase());
        let author = Person { name: self.author.clone(), email };
        let (subject, time) = (subject.to_owned(), self.clock.now());
        CommitDraft { parent, edits, subject, body: String::new(), author, time }
    }
}
