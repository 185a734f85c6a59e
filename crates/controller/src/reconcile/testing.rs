//! What the tests of this room share: a repository on this machine with a policy, two rollouts, and people who write to it.

use super::clock::Clock;
use super::lead::{Lead, Renewer};
use super::source::{Branches, GitView, Poll, Source};
use crate::cluster::client::Cluster;
use crate::cluster::lease::{Lease, LeaseAnnotations, Timing};
use crate::git::{CommitDraft, Edit, Person, RemoteConfig, Store};
use crate::manifest::desired::Set;
use crate::manifest::files::Entry;
use crate::manifest::ids::{CommitId, RolloutId, SetId};
use crate::plan::draft::RecordChange;
use crate::record::fixture;
use crate::record::posture::{Naming, Posture, Role, Size, Split};
use crate::record::state::{Phase, Promoted, Rest, RolloutState};
use crate::report::metrics::Metrics;
use crate::sign::SigningKey;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidegate_world::kube_api::KubeApi;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) const STATE: &str = "tidegate/prod/state";
pub(super) const DECISIONS: &str = "tidegate/prod/decisions";

const POLICY: &str = "\
apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: teams/shop, namespaces: [shop], clusters: [home]}
  freezes:
    xmas: {cron: \"0 0 20 12 *\", duration: 336h, zone: UTC}
";

/// The repository.
pub(super) struct World {
    pub(super) dir: tempfile::TempDir,
    /// What people write with.
    people: Store,
}

pub(super) fn id(name: &str) -> RolloutId {
    format!("shop/{name}").parse().unwrap()
}

pub(super) fn rollout(name: &str) -> String {
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  manifests: [app.yaml]\n  target: {{kind: Deployment, name: {name}}}\n"
    )
}

pub(super) fn manifest(name: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec:\n      containers:\n      - name: app\n        image: example.test/{image}\n"
    )
}

impl World {
    /// Main with the rollouts `shop/a` and `shop/b`.
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let origin = dir.path().join("origin.git");
        git2::Repository::init_bare(&origin).unwrap();
        let people = open(&dir.path().join("people"), &origin);
        let world = Self { dir, people };
        let (a, b) = (manifest("a", "a:1"), manifest("b", "b:1"));
        let files = [
            ("tidegate.yaml", POLICY),
            ("teams/shop/a/rollout.yaml", &rollout("a")),
            ("teams/shop/a/app.yaml", &a),
            ("teams/shop/b/rollout.yaml", &rollout("b")),
            ("teams/shop/b/app.yaml", &b),
        ];
        world.commit("main", &files.map(|(path, text)| (path, Some(text)))).await;
        world
    }

    /// Git as a controller with an empty cache sees it.
    pub(super) fn source(&self, cache: &str) -> Source {
        self.source_with(cache, |_| {})
    }

    /// The same with other settings.
    pub(super) fn source_with(&self, cache: &str, change: impl FnOnce(&mut RemoteConfig)) -> Source {
        let (cache, mut config) = (self.dir.path().join(cache), remote(&self.dir.path().join("origin.git")));
        change(&mut config);
        std::fs::create_dir_all(&cache).unwrap();
        let store = Store::open(&cache, config).unwrap();
        let branches = Branches::new(&"prod".parse().unwrap(), "main").unwrap();
        let caps = crate::manifest::installation::Caps::default();
        Source::new(store, branches, caps, Metrics::new(), Clock::default())
    }

    /// The tip of a branch.
    pub(super) async fn tip(&self, branch: &str) -> Option<CommitId> {
        let name = crate::git::RefName::branch(branch).unwrap();
        self.people.ls_refs(&[name.as_str()]).await.unwrap().remove(&name)
    }

    /// Commits to a branch as people do; `None` removes a file.
    pub(super) async fn commit(&self, branch: &str, files: &[(&str, Option<&str>)]) -> CommitId {
        let parent = self.tip(branch).await;
        self.commit_on(branch, parent, files).await
    }

    /// The same, signed.
    pub(super) async fn commit_signed(
        &self,
        branch: &str,
        files: &[(&str, Option<&str>)],
        key: &Arc<SigningKey>,
    ) -> CommitId {
        let parent = self.tip(branch).await;
        self.fetched(branch).await;
        let commit = self.people.commit_signed(draft(parent.clone(), files), Arc::clone(key)).await.unwrap();
        self.pushed(branch, parent.as_ref(), &commit).await
    }

    /// Accepts a branch as it is, or as it was at `of`.
    pub(super) async fn vouch(&self, branch: &str, of: Option<&CommitId>, key: &Arc<SigningKey>) -> CommitId {
        let tip = self.fetched(branch).await.unwrap();
        let draft = draft(None, &[]);
        let commit = self.people.vouch(draft, &tip, of, Arc::clone(key)).await.unwrap();
        self.pushed(branch, Some(&tip), &commit).await
    }

    /// The tip of a branch, brought here.
    async fn fetched(&self, branch: &str) -> Option<CommitId> {
        let (name, tip) = (crate::git::RefName::branch(branch).unwrap(), self.tip(branch).await?);
        self.people.fetch(&BTreeMap::from([(name, tip.clone())])).await.unwrap();
        Some(tip)
    }

    async fn pushed(&self, branch: &str, before: Option<&CommitId>, commit: &CommitId) -> CommitId {
        let name = crate::git::RefName::branch(branch).unwrap();
        let pushed = self.people.push(&name, before, commit, None).await.unwrap();
        assert!(matches!(pushed, crate::git::Pushed::Done { .. }), "{pushed:?}");
        commit.clone()
    }

    /// Commits on top of any commit; the branch is put there, whatever it was.
    pub(super) async fn commit_on(
        &self,
        branch: &str,
        parent: Option<CommitId>,
        files: &[(&str, Option<&str>)],
    ) -> CommitId {
        let before = self.fetched(branch).await;
        let commit = self.people.commit(draft(parent.clone(), files)).await.unwrap();
        if before.is_some() && before != parent {
            self.delete(branch).await;
        }
        let before = before.filter(|before| Some(before) == parent.as_ref());
        self.pushed(branch, before.as_ref(), &commit).await
    }

    /// Makes a branch that ends at a commit which was made here.
    pub(super) async fn branch(&self, name: &str, at: &CommitId) {
        self.pushed(name, None, at).await;
    }

    /// Deletes a branch.
    pub(super) async fn delete(&self, branch: &str) {
        let tip = self.tip(branch).await.unwrap();
        self.people.delete_branch(&crate::git::RefName::branch(branch).unwrap(), &tip).await.unwrap();
    }

    /// The files of a branch, as text.
    pub(super) async fn files(&self, branch: &str) -> BTreeMap<String, String> {
        let name = crate::git::RefName::branch(branch).unwrap();
        let tip = self.tip(branch).await.unwrap();
        self.people.fetch(&BTreeMap::from([(name, tip.clone())])).await.unwrap();
        let text = |entry| match entry {
            Entry::File { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
            other @ (Entry::TooLarge { .. }
            | Entry::BadName { .. }
            | Entry::Symlink
            | Entry::Submodule
            | Entry::Unread { .. }) => {
                format!("{other:?}")
            }
        };
        self.people.files(&tip, None).await.unwrap().into_iter().map(|(p, e)| (p.to_string(), text(e))).collect()
    }

    /// The subjects of a branch's commits, newest first.
    pub(super) async fn subjects(&self, branch: &str) -> Vec<String> {
        let name = crate::git::RefName::branch(branch).unwrap();
        let tip = self.tip(branch).await.unwrap();
        self.people.fetch(&BTreeMap::from([(name, tip.clone())])).await.unwrap();
        self.people.history(&tip, 10).await.unwrap().into_iter().map(|logged| logged.subject).collect()
    }
}

fn open(cache: &Path, origin: &Path) -> Store {
    std::fs::create_dir_all(cache).unwrap();
    Store::open(cache, remote(origin)).unwrap()
}

fn remote(origin: &Path) -> RemoteConfig {
    RemoteConfig::new(origin.to_str().unwrap().parse().unwrap())
}

fn draft(parent: Option<CommitId>, files: &[(&str, Option<&str>)]) -> CommitDraft {
    let edit = |text: &Option<&str>| text.map_or(Edit::Remove, |text| Edit::Write(text.as_bytes().into()));
    CommitDraft {
        edits: files.iter().map(|(path, text)| (path.parse().unwrap(), edit(text))).collect(),
        subject: "change".to_owned(),
        body: String::new(),
        author: Person { name: "Ana".to_owned(), email: "ana@example.com".to_owned() },
        time: fixture::time("12:00:00"),
        parent,
    }
}

/// Looks, and expects news.
pub(super) async fn moved(source: &mut Source, anchor: Option<&CommitId>) -> Arc<GitView> {
    match source.look_up(anchor).await {
        Poll::Changed(view) => view,
        other @ (Poll::Unchanged | Poll::Unreachable(_) | Poll::WrongRepository(_)) => panic!("{other:?}"),
    }
}

/// A rollout at rest on what main wants, as its record.
pub(super) fn steady(view: &GitView, name: &str, seq: u64) -> (RolloutState, BTreeMap<SetId, Arc<Set>>) {
    let wanted = view.main.rollout(&id(name)).unwrap();
    let set = &wanted.set;
    let mut state = fixture::steady();
    state.metadata = id(name);
    state.seq = seq;
    state.source.commit = view.tips.main.clone().unwrap();
    state.source.path = wanted.path.clone();
    state.phase = Phase::Steady { how: Rest::Succeeded, since: fixture::time("08:00:00") };
    state.history.clear();
    state.refused.clear();
    state.last_run = None;
    state.promoted = Some(Promoted {
        set: set.id.clone(),
        revision: set.revision.clone(),
        pods: set.pods.clone(),
        label: None,
        run: fixture::run(6),
        commit: None,
        path: None,
        decided: None,
        directly: BTreeMap::new(),
        at: fixture::time("08:00:00"),
    });
    let role = Role { set: set.id.clone(), size: Size::Declared, pods: None, directly: BTreeMap::new() };
    let cluster = state.clusters.values_mut().next().unwrap();
    cluster.posture = Posture { stable: role, candidate: None, split: Split::stable(), naming: Naming::default() };
    (state, BTreeMap::from([(set.id.clone(), Arc::clone(set))]))
}

/// That this becomes the record.
pub(super) fn write(state: RolloutState) -> RecordChange {
    RecordChange::Write { state: Box::new(state), plan: None, adopted: None, what: "test".to_owned() }
}

/// A process that leads a cluster in this one.
pub(super) async fn leading(clock: &Clock) -> Lead {
    let api = KubeApi::new(*clock.now());
    let home = "default".parse().unwrap();
    let cluster = Cluster::over(api.caller("it"), home, &"prod".parse().unwrap()).await.unwrap();
    let (notes, noted) = watch::channel(LeaseAnnotations::default());
    let lease = Lease::new(cluster, "me", Timing::default());
    let (renewer, mut lead, begun) = Renewer::new(lease, Timing::default(), clock.clone(), noted);
    tokio::spawn(async move {
        let _kept = (notes, begun);
        renewer.keep(CancellationToken::new()).await;
    });
    while lead.held().is_none() {
        lead.changed().await;
    }
    lead
}
