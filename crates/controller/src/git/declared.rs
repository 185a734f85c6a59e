//! What of a repository is read as what people want: the policy, and the manifests in the directories that it gives to tenants.
//! What lies beside them may be of any size.

use super::remote::RemoteLimits;
use super::{GitError, Store, tree};
use crate::manifest::files::{Entry, Files, RepoPath, is_manifest};
use crate::manifest::fleet;
use crate::manifest::gathered::{Extent, Most, left_out};
use crate::manifest::ids::{CommitId, RolloutId};
use crate::manifest::load;
use crate::manifest::policy;
use crate::record::state::RolloutState;
use git2::{Repository, Tree, TreeEntry};
use std::collections::{BTreeMap, BTreeSet};

/// How many times as many names are looked at for a file that was moved out of the tenants' directories.
const NAMES: usize = 20;

/// What a commit declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The policy and the manifests. A tenant's directory that cannot be read, or is too much, is one entry.
    pub files: Files,
    /// Why not all was looked at, where a rollout that is sought was not found: it may be there.
    pub unseen: Option<String>,
    /// What the next commit is compared with.
    pub known: Known,
}

/// What is known of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Equal ids mean equal files.
    id: String,
    /// How large the tenants' directories were when they were last read.
    sizes: BTreeMap<RepoPath, Extent>,
}

/// What is looked for besides, wherever it lies, so that nothing is ended by a file or a directory that moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sought {
    /// Files.
    pub files: BTreeSet<RepoPath>,
    /// Rollouts, by their names: what lies where one was may be another one.
    pub rollouts: BTreeSet<RolloutId>,
}

impl<'s> FromIterator<&'s RolloutState> for Sought {
    fn from_iter<I: IntoIterator<Item = &'s RolloutState>>(states: I) -> Self {
        let (files, rollouts) = states.into_iter().map(|it| (it.source.path.clone(), it.metadata.clone())).unzip();
        Self { files, rollouts }
    }
}

impl Store {
    /// What a commit declares, and the files that are sought; where a rollout is gone that is sought, also the files of rollouts that lie in
    /// no tenant's directory, among which it may be. `None` if that is what is `known`.
    ///
    /// # Errors
    /// `Missing` when the commit is not there; what is wrong with the root, or the policy, if it is of content
    /// ([`GitError::is_of_content`]).
    pub async fn declared(
        &self,
        commit: &CommitId,
        sought: &Sought,
        known: Option<&Known>,
    ) -> Result<Option<Declared>, GitError> {
        let (commit, sought, known) = (commit.clone(), sought.clone(), known.cloned());
        self.on_cache(move |inner, repository| {
            let root = tree::root(repository, &commit)?;
            read(repository, &root, &sought, known.as_ref(), &inner.config.limits)
        })
        .await
    }
}

/// What lies at a path, or why that cannot be told.
type Place = Result<Option<TreeEntry<'static>>, GitError>;

/// The same of a tree.
pub(super) fn read(
    repository: &Repository,
    root: &Tree<'_>,
    sought: &Sought,
    known: Option<&Known>,
    limits: &RemoteLimits,
) -> Result<Option<Declared>, GitError> {
    let (policy, directories) = policy_of(repository, root, limits)?;
    let is_outside = |path: &RepoPath| !directories.iter().any(|directory| path.is_within(directory));
    let placed = |path: &RepoPath| (path.clone(), place(repository, root, path));
    let places: Vec<(RepoPath, Place)> = directories.iter().map(placed).collect();
    // Of those in the directories only what is above them can keep them from being seen.
    let unlisted = |(path, found): &(RepoPath, Place)| is_outside(path) || found.is_err();
    let beside: Vec<(RepoPath, Place)> = sought.files.iter().map(placed).filter(unlisted).collect();
    let fleet = tree::entry(root, &fleet_path())?;
    let ours = [tree::entry(root, &policy_path())?, fleet.clone()];
    let ids = Ids::of(root, &ours, sought, [&places, &beside]);
    if known.is_some_and(|known| known.id == ids.whole || (!ids.needs_whole && known.id == ids.parts)) {
        return Ok(None);
    }
    let before = known.map(|known| known.sizes.clone()).unwrap_or_default();
    let (mut files, sizes) = of_tenants(repository, places, before, limits)?;
    files.extend(policy.map(|policy| (policy_path(), policy)));
    let fleet = fleet.map(|found| tree::read_one(repository, &found, &fleet_path(), limits)).transpose()?.flatten();
    files.extend(fleet.map(|fleet| (fleet_path(), fleet)));
    let mut left = limits.tenant_bytes;
    add_all(repository, &mut files, beside, &mut left, limits)?;
    let mut unseen = None;
    // Without directories nobody knows where rollouts may lie; where one is not read, nothing is taken for gone in any case.
    let is_closed = directories.iter().any(|directory| files.contains_key(directory));
    let lost = directories.is_empty() || !(is_closed || sought.rollouts.is_subset(&load::declared(&files)));
    if lost {
        let Strays { found, cut } = strays(repository, root, is_outside, limits)?;
        let found = found.into_iter().filter(|(path, _)| !files.contains_key(path));
        let found: Vec<(RepoPath, Place)> = found.map(|(path, found)| (path, Ok(Some(found)))).collect();
        add_all(repository, &mut files, found, &mut left, limits)?;
        unseen = cut;
    }
    let id = if lost || ids.needs_whole { ids.whole } else { ids.parts };
    Ok(Some(Declared { files, unseen, known: Known { id, sizes } }))
}

/// What tells commits apart.
struct Ids {
    /// By what was looked at.
    parts: String,
    /// By all that there is.
    whole: String,
    /// Whether something is not one thing, which is told apart by the whole.
    needs_whole: bool,
}

impl Ids {
    fn of(root: &Tree<'_>, ours: &[Option<TreeEntry<'_>>], sought: &Sought, places: [&[(RepoPath, Place)]; 2]) -> Self {
        let told = |found: &TreeEntry<'_>| (found.id(), found.filemode_raw());
        let ours: Vec<_> = ours.iter().map(|found| found.as_ref().map(told)).collect();
        let (mut parts, mut needs_whole) = (format!("{ours:?} {:?}", sought.rollouts), false);
        for (path, found) in places.into_iter().flatten() {
            needs_whole |= found.is_err();
            parts.push_str(&format!(" {path} {:?}", found.as_ref().map(|found| found.as_ref().map(told)).ok()));
        }
        let whole = format!("{parts} {}", root.id());
        Self { parts, whole, needs_whole }
    }
}

/// What the tenants' directories hold, within limits, and how large they are. What is not read keeps the size that it had before.
fn of_tenants(
    repository: &Repository,
    places: Vec<(RepoPath, Place)>,
    before: BTreeMap<RepoPath, Extent>,
    limits: &RemoteLimits,
) -> Result<(Files, BTreeMap<RepoPath, Extent>), GitError> {
    let (mut trees, mut sizes, mut refused) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let most = Most { entries: limits.entries, tenant_bytes: limits.tenant_bytes, bytes: limits.fetch_bytes };
    let limits = &RemoteLimits { fetch_bytes: limits.tenant_bytes, ..*limits };
    for (path, found) in places {
        let measured = found.and_then(|found| {
            let tree = found.map(|found| directory(repository, &found, &path)).transpose()?;
            tree.map(|tree| Ok((tree::measure(repository, &tree, &format!("{path}/"), limits)?, tree))).transpose()
        });
        match measured {
            Ok(None) => {}
            Ok(Some((size, tree))) => {
                sizes.insert(path.clone(), size);
                trees.push((path, tree));
            }
            Err(error) if error.is_of_content() => drop(refused.insert(path, error.to_string())),
            Err(error) => return Err(error),
        }
    }
    refused.extend(left_out(most, sizes.clone(), &before));
    let mut files = Files::new();
    for (path, tree) in trees.into_iter().filter(|(path, _)| !refused.contains_key(path)) {
        let mut read = tree::read_manifests(repository, &tree, &format!("{path}/"), limits)?;
        // Names of other files only say what they are not: of too many they are forgotten. What cannot be read may be more.
        if files.len() + read.len() > limits.entries {
            read.retain(|path, entry| is_manifest(path.file_name()) || !matches!(entry, Entry::Unread { .. }));
        }
        files.extend(read);
    }
    sizes.retain(|path, _| !refused.contains_key(path));
    let kept = before.into_iter().filter(|(path, _)| refused.contains_key(path)).collect::<Vec<_>>();
    sizes.extend(kept);
    files.extend(refused.into_iter().map(|(path, why)| (path, Entry::Unread { why: why.into() })));
    Ok((files, sizes))
}

/// Adds single files, of which so many bytes may be read yet.
fn add_all(
    repository: &Repository,
    files: &mut Files,
    places: Vec<(RepoPath, Place)>,
    left: &mut u64,
    limits: &RemoteLimits,
) -> Result<(), GitError> {
    for (path, found) in places {
        let limits = RemoteLimits { fetch_bytes: *left, ..*limits };
        let read =
            found.and_then(|found| found.map(|found| tree::read_one(repository, &found, &path, &limits)).transpose());
        let entry = match read.map(Option::flatten) {
            Err(error) if error.is_of_content() => Some(Entry::Unread { why: error.to_string().into() }),
            read => read?,
        };
        if let Some(Entry::File { bytes, .. }) = &entry {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        files.extend(entry.map(|entry| (path, entry)));
    }
    Ok(())
}

fn policy_path() -> RepoPath {
    policy::FILE.parse().expect("the name of the policy's file is a path")
}

fn fleet_path() -> RepoPath {
    fleet::FILE.parse().expect("the name of the fleet's file is a path")
}

/// The policy of a tree, and the directories that it gives to tenants.
pub(super) fn policy_of(
    repository: &Repository,
    root: &Tree<'_>,
    limits: &RemoteLimits,
) -> Result<(Option<Entry>, BTreeSet<RepoPath>), GitError> {
    let path = policy_path();
    let found = place(repository, root, &path)?;
    let policy = found.map(|found| tree::read_one(repository, &found, &path, limits)).transpose()?.flatten();
    let directories = match &policy {
        Some(Entry::File { bytes, .. }) => policy::directories(bytes),
        _ => BTreeSet::new(),
    };
    Ok((policy, directories))
}

/// What lies at a path, if each name on the way there is one that comes once. What is a link or another repository cannot be told.
fn place(repository: &Repository, root: &Tree<'_>, path: &RepoPath) -> Place {
    let (mut tree, mut at) = (root.clone(), String::new());
    let mut parts = path.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        let mut named = tree.iter().filter(|entry| entry.name_bytes() == part.as_bytes());
        let Some(found) = named.next().map(|entry| entry.to_owned()) else { return Ok(None) };
        at.push_str(part);
        if named.next().is_some() {
            return Err(GitError::BadTree { path: at, why: "the name comes twice" });
        }
        drop(named);
        if parts.peek().is_none() {
            return Ok(Some(found));
        }
        tree = directory(repository, &found, &at)?;
        at.push('/');
    }
    Ok(None)
}

/// What was found, as a directory.
fn directory<'r>(
    repository: &'r Repository,
    found: &TreeEntry<'_>,
    path: &impl ToString,
) -> Result<Tree<'r>, GitError> {
    let path = path.to_string();
    if found.filemode() != i32::from(git2::FileMode::Tree) {
        return Err(GitError::BadTree { path, why: "it is no directory" });
    }
    let tree = repository.find_tree(found.id());
    tree.map_err(|error| GitError::local(&format!("read the directory {path}"), error))
}

/// Files of rollouts, and why there may be others.
#[derive(Default)]
struct Strays {
    found: Vec<(RepoPath, TreeEntry<'static>)>,
    cut: Option<String>,
}

/// The files of rollouts that lie outside, found by their names alone; a repository may be larger than is looked through.
fn strays(
    repository: &Repository,
    root: &Tree<'_>,
    is_outside: impl Fn(&RepoPath) -> bool,
    limits: &RemoteLimits,
) -> Result<Strays, GitError> {
    let (mut strays, names) = (Strays::default(), limits.entries.saturating_mul(NAMES));
    let mut left = names;
    // What lies below a name that no path can hold has no path either.
    let mut open = vec![(root.clone(), Some(String::new()))];
    while let Some((tree, at)) = open.pop() {
        let Some(less) = left.checked_sub(tree.len()) else {
            strays.cut = Some(format!("it has more than {names} names, and not all were looked at"));
            break;
        };
        left = less;
        for entry in tree.iter() {
            let path = at.as_ref().and_then(|at| tree::below(at, &entry));
            let is_tree = entry.filemode() == i32::from(git2::FileMode::Tree);
            if is_tree {
                let below = repository.find_tree(entry.id());
                match below.map_err(|error| GitError::local("read a directory", error)) {
                    Ok(below) => open.push((below, path.map(String::from))),
                    Err(error) if error.is_of_content() => strays.cut = Some(error.to_string()),
                    Err(error) => return Err(error),
                }
            } else if load::is_rollout_name(&String::from_utf8_lossy(entry.name_bytes())) {
                match path {
                    Some(path) if is_outside(&path) => strays.found.push((path, entry.to_owned())),
                    Some(_) => {}
                    None => {
                        let name = entry.name_bytes().escape_ascii();
                        strays.cut = Some(format!("a file {name} lies where no path can name it"));
                    }
                }
            }
        }
    }
    Ok(strays)
}
