//! The repository that a command looks at: found, let in, and read. Only `decide` and `state` write to it.

use super::address::Address;
use super::args::RepositoryArgs;
use super::cache::Cache;
use super::failure::Failure;
use super::run;
use crate::forge::branch;
use crate::git::{
    Authorship, GitError, Keygen, Lent, Person, RefName, RemoteConfig, RemoteUrl, Sought, Store, WorkingCopy,
};
use crate::manifest::desired::{Set, Target};
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::files::{Entry, Files, Had, RepoPath};
use crate::manifest::fleet::Fleet;
use crate::manifest::ids::{ClusterName, CommitId, InstanceName, RolloutId, SetId};
use crate::manifest::installation::Caps;
use crate::manifest::load::{self, Emptiness, Loaded, Rejected};
use crate::manifest::set::{self, SetFiles};
use crate::plan::input::{HeadContent, RequestBranch};
use crate::reconcile::clock::Clock;
use crate::reconcile::world;
use crate::record::history;
use crate::record::state::RolloutState;
use crate::record::store;
use crate::report::view::{Record, Records};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What all our branches begin with.
const OURS: &str = "refs/heads/tidegate/";

/// A repository as one command sees it.
pub(super) struct Repository {
    /// Its cache and its remote.
    pub store: Store,
    /// Its address, for people.
    pub url: String,
    /// The instance whose branches are read.
    pub instance: InstanceName,
    copy: WorkingCopy,
    tips: BTreeMap<RefName, CommitId>,
    _cache: Cache,
}

/// What a branch says of clusters and waves.
pub(super) enum Declared {
    /// These, and on which of them each rollout without errors runs.
    Fleet(Fleet, BTreeMap<RolloutId, BTreeSet<ClusterName>>),
    /// It has none.
    Nothing,
    /// Why that cannot be told.
    Unreadable(String),
}

/// What a command needs of the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// To read: credentials are asked for when the server wants some.
    Read,
    /// To push as well: credentials are asked for first.
    Write,
}

/// What the GitHub App lends that an installation names, which nobody is sent but the host of its repository.
fn lent(file: &Path, url: &RemoteUrl) -> Result<Lent, Failure> {
    let installation = run::installation(file, "--app-of")?;
    let own = installation.repository.url.as_str();
    if own.parse().as_ref() != Ok(url) {
        return Err(Failure::usage(format!("{} is about {own}, and not about {url}", file.display())));
    }
    let pass = world::pass(&installation, &Clock::default()).map_err(anyhow::Error::new)?;
    let none = || Failure::usage(format!("{} names no GitHub App (spec.repository.forge.app)", file.display()));
    pass.and_then(|pass| pass.lent()).ok_or_else(none)
}

impl Repository {
    /// Finds the repository, looks up the branches of all instances, and chooses one that has a record.
    pub(super) async fn open(args: &RepositoryArgs, access: Access) -> Result<Self, Failure> {
        Self::open_from(Path::new("."), args, access).await
    }

    /// The same for the clone that `dir` lies in, if no repository is named.
    pub(super) async fn open_from(dir: &Path, args: &RepositoryArgs, access: Access) -> Result<Self, Failure> {
        let repository = Self::reach(dir, args, access).await?;
        repository.state_tip()?;
        Ok(repository)
    }

    /// The same, whether or not an instance that is named has a record.
    pub(super) async fn reach(dir: &Path, args: &RepositoryArgs, access: Access) -> Result<Self, Failure> {
        Self::connect(dir, args, access, choose).await
    }

    /// The same for all instances alike.
    pub(super) async fn of_fleet(dir: &Path, args: &RepositoryArgs) -> Result<Self, Failure> {
        Self::connect(dir, args, Access::Read, |_, tips, url| instances(tips).next().ok_or_else(|| no_state(url, None)))
            .await
    }

    async fn connect(
        dir: &Path,
        args: &RepositoryArgs,
        access: Access,
        choose: impl Fn(Option<&str>, &BTreeMap<RefName, CommitId>, &str) -> Result<InstanceName, Failure>,
    ) -> Result<Self, Failure> {
        let address = Address::find(dir, args)?;
        let cache = Cache::of(address.clone.as_deref()).context("cannot make a directory for the Git cache")?;
        let mut config = RemoteConfig::new(address.url.clone());
        config.credentials_file.clone_from(&args.credentials_file);
        config.ca_file.clone_from(&args.ca_file);
        config.ssh = args.ssh.identity();
        config.login.clone_from(&address.login);
        config.lent = args.app_of.as_deref().map(|file| lent(file, &address.url)).transpose()?;
        let knows = config.credentials_file.is_some() || config.login.is_some() || config.lent.is_some();
        if access == Access::Write && !knows {
            config.login = address.ask();
        }
        let mut store = Store::open(&cache.path, config.clone())?;
        let named = args.instance.as_deref();
        let mut tips = look_up(&store, named).await;
        // Hosts hide what is private behind "not found" as well.
        if let Err(GitError::Denied { .. } | GitError::Missing(_)) = tips
            && !knows
            && config.login.is_none()
            && let Some(login) = address.ask()
        {
            config.login = Some(login);
            store = Store::open(&cache.path, config)?;
            tips = look_up(&store, named).await;
        }
        let tips = tips?;
        let url = address.url.to_string();
        let instance = choose(args.instance.as_deref(), &tips, &url)?;
        Ok(Self { store, url, instance, copy: address.copy, tips, _cache: cache })
    }

    /// Looks the branches up again.
    pub(super) async fn refresh(&mut self) -> Result<(), Failure> {
        self.tips = look_up(&self.store, Some(self.instance.as_str())).await?;
        Ok(())
    }

    /// The tip of one of our branches.
    #[must_use]
    pub(super) fn tip(&self, branch: &RefName) -> Option<&CommitId> {
        self.tips.get(branch)
    }

    /// The tip of the state branch.
    pub(super) fn state_tip(&self) -> Result<&CommitId, Failure> {
        let branch = named(&branch::state_branch(&self.instance))?;
        self.tips.get(&branch).ok_or_else(|| no_state(&self.url, Some(&self.instance)))
    }

    /// The tip of the state branch, with all that lies behind it in the cache.
    pub(super) async fn fetch_state(&self) -> Result<CommitId, Failure> {
        self.fetch_state_of(&self.instance).await
    }

    async fn fetch_state_of(&self, instance: &InstanceName) -> Result<CommitId, Failure> {
        let branch = named(&branch::state_branch(instance))?;
        let tip = self.tips.get(&branch).cloned().ok_or_else(|| no_state(&self.url, Some(instance)))?;
        self.store.fetch(&BTreeMap::from([(branch, tip.clone())])).await?;
        Ok(tip)
    }

    /// The decisions branch.
    pub(super) fn decisions_branch(&self) -> Result<RefName, Failure> {
        named(&branch::decisions_branch(&self.instance))
    }

    /// The requests about a rollout, by the names of their branches. What they would bring is for the controller to read.
    #[must_use]
    pub(super) fn proposals(&self, id: &RolloutId) -> BTreeMap<String, RequestBranch> {
        let prefix = format!("{}{id}/", branch::propose_prefix(&self.instance));
        let ours = self.tips.iter().filter(|(name, _)| name.short().starts_with(&prefix));
        let unread = || HeadContent::Unread("the controller reads it".to_owned());
        ours.map(|(name, head)| (name.short().to_owned(), RequestBranch { head: head.clone(), content: unread() }))
            .collect()
    }

    /// The root of the working copy that the command runs in.
    #[must_use]
    pub(super) fn root(&self) -> Option<&Path> {
        self.copy.root()
    }

    /// Who the working copy says that commits here.
    #[must_use]
    pub(super) fn person(&self) -> Option<Person> {
        self.copy.person()
    }

    /// How they sign commits, if they do.
    pub(super) fn keygen(&self) -> Result<Option<Keygen>, Failure> {
        Ok(self.copy.keygen()?)
    }

    /// The files below `dir` of a branch's tip; none if there is neither.
    pub(super) async fn files(&self, branch: &RefName, tip: &CommitId, dir: &RepoPath) -> Result<Files, Failure> {
        self.store.fetch(&BTreeMap::from([(branch.clone(), tip.clone())])).await?;
        self.files_at(tip, dir).await
    }

    /// The files below `dir` of a commit that was fetched; none if there is no such directory.
    pub(super) async fn files_at(&self, tip: &CommitId, dir: &RepoPath) -> Result<Files, Failure> {
        match self.store.tree_id(tip, Some(dir)).await? {
            Some(_) => Ok(self.store.files(tip, Some(dir)).await?),
            None => Ok(Files::new()),
        }
    }

    /// The commits that made a version, as far as the clone tells that this was started in.
    pub(super) fn authors(&self, tip: &CommitId, before: &[BTreeMap<RepoPath, Had>]) -> Vec<Authorship> {
        self.copy.authors(tip, before).unwrap_or_default()
    }

    /// All records. Pinned sets are not read, so the cost grows with the number of rollouts alone.
    pub(super) async fn records(&self) -> Result<Records, Failure> {
        self.records_of(&self.instance).await
    }

    /// The same of another instance.
    pub(super) async fn records_of(&self, instance: &InstanceName) -> Result<Records, Failure> {
        let tip = self.fetch_state_of(instance).await?;
        let root: RepoPath = "rollouts".parse().map_err(anyhow::Error::new)?;
        let mut records = Records::new();
        for dir in self.store.directories(&tip, &root, 2).await?.into_keys() {
            // What is not named like a rollout is none.
            let Some(id) = dir.below(Some(&root)).and_then(|path| path.as_str().parse::<RolloutId>().ok()) else {
                continue;
            };
            let record = self.read(&tip, &id).await?;
            records.insert(id, record);
        }
        Ok(records)
    }

    async fn read(&self, tip: &CommitId, id: &RolloutId) -> Result<Result<Record, String>, Failure> {
        let paths = store::paths(id);
        let Some(bytes) = self.store.file(tip, &paths.state).await? else {
            return Ok(Err(format!("{} is not on the state branch", paths.state)));
        };
        let state = match store::parse_state(id, &bytes) {
            Ok(state) => state,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let plan = match &state.run {
            Some(run) => self.store.file(tip, &paths.plan(&run.id)).await?,
            None => None,
        };
        Ok(match plan.map(|bytes| store::parse_plan(&bytes)).transpose() {
            Ok(plan) => Ok(Record { state, plan }),
            Err(error) => Err(error.to_string()),
        })
    }

    /// All that `branch`, the one that people push to, says, or why that cannot be read; nothing if there is no such branch.
    async fn declared(&self, branch: &str) -> Result<Option<Result<Loaded, String>>, Failure> {
        let name = named(branch)?;
        let Some(tip) = self.store.ls_refs(&[name.as_str()]).await?.remove(&name) else { return Ok(None) };
        self.store.fetch_tip(&name, &tip).await?;
        let declared = self.store.declared(&tip, &Sought::default(), None).await;
        let files = declared.map(|declared| declared.map(|declared| declared.files).unwrap_or_default());
        Ok(Some(files.map(|files| load::load(&files, &Caps::unknown())).map_err(|error| error.to_string())))
    }

    /// The clusters and waves that `branch` declares, and on which of them each rollout runs.
    pub(super) async fn fleet(&self, branch: &str) -> Result<Declared, Failure> {
        let loaded = match self.declared(branch).await? {
            None => return Ok(Declared::Nothing),
            Some(Err(why)) => return Ok(Declared::Unreadable(why)),
            Some(Ok(loaded)) => loaded,
        };
        Ok(match loaded.fleet {
            Ok(None) => Declared::Nothing,
            Err(found) => Declared::Unreadable(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
            Ok(Some(fleet)) => {
                let whole = loaded.rollouts.into_iter().filter_map(|(id, rollout)| Some((id, rollout.ok()?.clusters)));
                Declared::Fleet(fleet, whole.collect())
            }
        })
    }

    /// Whether it is certain that `branch` declares no rollout, not even one with errors.
    pub(super) async fn declares_nothing(&self, branch: &str) -> Result<bool, Failure> {
        let is_empty = |loaded: Result<Loaded, String>| loaded.is_ok_and(|it| it.emptiness() == Emptiness::NoRollouts);
        Ok(self.declared(branch).await?.is_some_and(is_empty))
    }

    /// The rollouts that `branch` declares with errors, as `validate` would tell them; or why it cannot be read.
    pub(super) async fn rejected(
        &self,
        branch: &str,
    ) -> Result<Result<BTreeMap<RolloutId, Rejected>, String>, Failure> {
        let rollouts = self.declared(branch).await?.transpose().map(|loaded| loaded.map(|loaded| loaded.rollouts));
        let rejected = |rollouts: Option<BTreeMap<_, Result<_, _>>>| {
            rollouts.into_iter().flatten().filter_map(|(id, outcome)| Some((id, outcome.err()?))).collect()
        };
        Ok(rollouts.map(rejected))
    }

    /// All files of the state branch below `dir`.
    pub(super) async fn state_files(&self, dir: &RepoPath) -> Result<Files, Failure> {
        let tip = self.state_tip()?.clone();
        self.files(&named(&branch::state_branch(&self.instance))?, &tip, dir).await
    }

    /// The files of a pinned set, by their paths beside the rollout's file; the text says why they cannot be read.
    pub(super) async fn pinned_files(&self, id: &RolloutId, set: &SetId) -> Result<Result<SetFiles, String>, Failure> {
        let dir = store::paths(id).set(set);
        let mut files = SetFiles::new();
        for (path, entry) in self.state_files(&dir).await? {
            let (Some(path), Entry::File { blob, bytes }) = (path.below(Some(&dir)), entry) else {
                return Ok(Err(format!("{path} is not a plain file")));
            };
            files.insert(path, (blob, bytes));
        }
        Ok(if files.is_empty() {
            Err(format!("the set {} is not on the state branch", set.short()))
        } else {
            Ok(files)
        })
    }

    /// A pinned set, whose target is called so or as the record says; the text says why it cannot be read.
    pub(super) async fn pinned(
        &self,
        id: &RolloutId,
        set: &SetId,
        target: &Target,
        state: &RolloutState,
    ) -> Result<Result<Set, String>, Failure> {
        Ok(self.pinned_files(id, set).await?.and_then(|files| {
            let lines = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let read = |target: &Target| set::of_files(files.clone(), &id.namespace, target);
            let mut named = history::targets(state).map(|name| Target { name: name.clone(), ..target.clone() });
            let read = read(target).or_else(|found| named.find_map(|target| read(&target).ok()).ok_or(found));
            let read = read.map_err(lines)?;
            if read.id == *set { Ok(read) } else { Err(format!("the directory of set {} holds another", set.short())) }
        }))
    }

    /// The record of the rollout that a person named, by `NAMESPACE/NAME` or, if no other has it, by name.
    pub(super) async fn record(&self, name: &str) -> Result<(RolloutId, Record), Failure> {
        let records = self.records().await?;
        let id = find(name, records.keys())?;
        match records.get(&id) {
            Some(Ok(record)) => Ok((id, record.clone())),
            Some(Err(why)) => Err(Failure::failed(format!("the record of {id} cannot be read: {why}"))),
            None => Err(unknown(name, records.keys())),
        }
    }
}

/// The name of a branch as a ref.
pub(super) fn named(branch: &str) -> Result<RefName, Failure> {
    Ok(RefName::branch(branch).map_err(anyhow::Error::new)?)
}

/// The rollout that a person named.
pub(super) fn find<'a>(name: &str, ids: impl Iterator<Item = &'a RolloutId> + Clone) -> Result<RolloutId, Failure> {
    if name.contains('/') {
        let id: RolloutId = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
        return ids.clone().find(|known| **known == id).cloned().ok_or_else(|| unknown(name, ids));
    }
    let found: Vec<&RolloutId> = ids.clone().filter(|id| id.name.as_str() == name).collect();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(unknown(name, ids)),
        _ => {
            let names: Vec<String> = found.iter().map(ToString::to_string).collect();
            Err(Failure::usage(format!("{name:?} may mean {}; name the namespace too", names.join(" or "))))
        }
    }
}

fn unknown<'a>(name: &str, ids: impl Iterator<Item = &'a RolloutId> + Clone) -> Failure {
    let known: Vec<String> = ids.map(ToString::to_string).collect();
    let near: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = match similar::get_close_matches(name, &near, 1, 0.6).first() {
        Some(near) => format!("did you mean {near}?"),
        None if known.is_empty() => "the state branch has no record at all yet".to_owned(),
        None => "`tidegate status` lists all".to_owned(),
    };
    Failure::usage(format!("there is no record of a rollout {name:?}: {hint}"))
}

/// The instance that a person means.
/// Looks up the branches of all instances; where there are too many, those of the instance that is named, but for its requests.
async fn look_up(store: &Store, instance: Option<&str>) -> Result<BTreeMap<RefName, CommitId>, GitError> {
    let instance = instance.and_then(|name| name.parse::<InstanceName>().ok());
    match (store.ls_refs(&[OURS]).await, instance) {
        (Err(GitError::Limit { .. }), Some(instance)) => {
            let names = [branch::state_branch(&instance), branch::decisions_branch(&instance)];
            let names = names.map(|name| format!("refs/heads/{name}"));
            store.ls_refs(&names.each_ref().map(String::as_str)).await
        }
        (found, _) => found,
    }
}

/// The instances that have a record.
fn instances(tips: &BTreeMap<RefName, CommitId>) -> impl Iterator<Item = InstanceName> {
    tips.keys().filter_map(|name| name.short().strip_prefix("tidegate/")?.strip_suffix("/state")?.parse().ok())
}

fn choose(asked: Option<&str>, tips: &BTreeMap<RefName, CommitId>, url: &str) -> Result<InstanceName, Failure> {
    let names: Vec<InstanceName> = instances(tips).collect();
    match (asked, &names[..]) {
        (Some(asked), _) => {
            let asked: InstanceName = asked.parse().map_err(|error| Failure::usage(format!("{error}")))?;
            Ok(asked)
        }
        (None, [one]) => Ok(one.clone()),
        (None, []) => Err(no_state(url, None)),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(InstanceName::as_str).collect();
            Err(Failure::usage(format!(
                "several instances write to {url}: {}; name one with --instance",
                names.join(", ")
            )))
        }
    }
}

fn no_state(url: &str, instance: Option<&InstanceName>) -> Failure {
    let branch = instance.map_or("tidegate/<instance>/state".to_owned(), branch::state_branch);
    Failure::NoRecord(format!(
        "{url} has no branch {branch}: no controller has written a record there yet\n\
         Its first tick makes the branch. Start a controller with `tidegate run --config FILE`, or name the right \
         repository with --repo.\n\
         `tidegate validate` and `tidegate plan` work without a record."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<RolloutId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn people_may_leave_the_namespace_out() {
        let known = ids(&["shop/podinfo", "shop/cart", "blog/cart"]);
        let find = |name: &str| find(name, known.iter()).map(|id| id.to_string()).map_err(|failure| failure.text());
        assert_eq!(find("podinfo"), Ok("shop/podinfo".to_owned()));
        assert_eq!(find("blog/cart"), Ok("blog/cart".to_owned()));
        insta::assert_snapshot!(
            ["cart", "shop/podinf", "nothing", "shop/", "Shop/x"].map(|name| find(name).unwrap_err()).join("\n")
        );
    }

    #[test]
    fn instances_are_told_by_their_branches() {
        let tips = |names: &[&str]| {
            let id: CommitId = "a".repeat(40).parse().unwrap();
            names.iter().map(|name| (RefName::branch(name).unwrap(), id.clone())).collect::<BTreeMap<_, _>>()
        };
        let choose = |asked, names: &[&str]| {
            choose(asked, &tips(names), "https://h/x").map(|i| i.to_string()).map_err(|failure| failure.text())
        };
        let two = ["tidegate/prod/state", "tidegate/prod/decisions", "tidegate/test/state"];
        assert_eq!(choose(None, &two[..2]), Ok("prod".to_owned()));
        assert_eq!(choose(Some("test"), &two), Ok("test".to_owned()));
        // Whether it has a record is asked later.
        assert_eq!(choose(Some("dev"), &two), Ok("dev".to_owned()));
        let errors = [choose(None, &two), choose(None, &[]), choose(Some("a/b"), &two)];
        insta::assert_snapshot!(errors.map(Result::unwrap_err).join("\n\n"));
    }
}
