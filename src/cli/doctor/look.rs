//! Looks at the repository, the cluster and the Git host, each for itself: what cannot be reached keeps nothing else from being
//! looked at.

use super::app;
use super::checks::{self, Check, Found, Weight};
use super::fleet;
use super::pinned;
use super::signers;
use super::teams;
use crate::cli::cache::Cache;
use crate::cli::failure::Failure;
use crate::cli::screen::now;
use crate::cluster::client::Cluster;
use crate::cluster::rights;
use crate::forge::host::{Host, Pass};
use crate::forge::settings::{ProtectedBranch, Settings};
use crate::git::{GitError, Sought, Store};
use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::ids::{CommitId, Namespace, RolloutId};
use crate::manifest::installation::{Installation, PullHost};
use crate::manifest::load::{self, Loaded};
use crate::manifest::object::Kind;
use crate::manifest::raw::Trust;
use crate::reconcile::clock::Clock;
use crate::reconcile::source::Branches;
use crate::reconcile::world;
use crate::record::text::plain;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Everything, in the order in which people set it up.
pub(super) async fn all(installation: &Installation, cache: &Path) -> Result<Vec<Check>, Failure> {
    let cache = Cache::below(cache).context("cannot make a directory for the Git cache")?;
    let pass = world::pass(installation, &Clock::default()).map_err(anyhow::Error::new)?;
    let (mut all, loaded) = repository(installation, pass.as_ref(), &cache).await?;
    all.extend(cluster(installation, loaded.as_ref()).await);
    match installation.repository.forge.as_ref().zip(pass) {
        Some((site, pass)) => all.extend(host(installation, site, pass, loaded.as_ref()).await?),
        None => all.push(unhosted(installation)),
    }
    Ok(all)
}

/// The repository, and what main says.
async fn repository(
    installation: &Installation,
    pass: Option<&Pass>,
    cache: &Cache,
) -> Result<(Vec<Check>, Option<Loaded>), Failure> {
    let config = world::remote(installation, pass).map_err(anyhow::Error::new)?;
    let branches =
        Branches::new(&installation.instance, &installation.repository.branch).map_err(anyhow::Error::new)?;
    let store = Store::open(&cache.path, config)?;
    let main = &installation.repository.branch;
    let found = async {
        let Some(tip) = store.ls_refs(&[branches.main.as_str()]).await?.remove(&branches.main) else { return Ok(None) };
        store.fetch(&BTreeMap::from([(branches.main.clone(), tip.clone())])).await?;
        let declared = store.declared(&tip, &Sought::default(), None).await?;
        Ok::<_, GitError>(declared.map(|declared| (tip.clone(), declared.files)))
    };
    let (check, act) = ("repository", "look at spec.repository of the Installation: url, branch, credentialsFile");
    let (tip, files) = match found.await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let says = format!("there is no branch {main}");
            return Ok((vec![Check::new(Found::Broken, check, &says, act)], None));
        }
        Err(error) => return Ok((vec![Check::new(Found::Broken, check, &error.to_string(), act)], None)),
    };
    let loaded = load::load(&files, &installation.caps);
    let read = Check::ok(check, format!("{main} is at {}", tip.as_str().get(..8).unwrap_or_default()));
    let mut all = vec![read];
    all.extend(signed(installation, &store, &tip).await?);
    all.extend(declared(main, &loaded));
    all.extend(checks::reaching(&loaded.warnings));
    all.extend(signers::checks(installation, &loaded, &store));
    Ok((all, Some(loaded)))
}

/// Whether somebody who may has signed main's tip; nothing where nobody has to.
async fn signed(installation: &Installation, store: &Store, tip: &CommitId) -> Result<Option<Check>, GitError> {
    let repository = &installation.repository;
    if repository.signers_file.is_none() && repository.keyring_file.is_none() {
        return Ok(None);
    }
    Ok(Some(checks::signed(&repository.branch, store.unverified(tip, now()).await?.as_deref())))
}

/// What main declares.
pub(super) fn declared(main: &str, loaded: &Loaded) -> Vec<Check> {
    let (check, act) = ("manifests", "tidegate validate, in a clone, shows each error with its line");
    let rejected = loaded.rollouts.values().filter(|rollout| rollout.is_err()).count() + loaded.unnamed.len();
    match &loaded.policy {
        Err(errors) => {
            // Those that `validate` cannot know are about the Installation.
            let told = |Diagnostic { line, column, found, expected, .. }: &Diagnostic| {
                let says = format!("the policy tidegate.yaml of {main} cannot be followed: {line}:{column}: {found}");
                Check::new(Found::Broken, check, &says, format!("{line}:{column}: expected {}", plain(expected)))
            };
            errors.iter().map(told).collect()
        }
        Ok(_) if rejected > 0 => {
            vec![Check::new(Found::Warning, check, &format!("{rejected} rollouts of {main} have errors"), act)]
        }
        Ok(_) => {
            vec![Check::ok(check, format!("{main} declares {} rollouts, all without errors", loaded.rollouts.len()))]
        }
    }
}

async fn cluster(installation: &Installation, loaded: Option<&Loaded>) -> Vec<Check> {
    let (check, act) = ("API server", "look at spec.clusters of the Installation, and at the network between");
    let broken = |error: String| Check::new(Found::Broken, check, &error, act);
    let cluster = match world::served(installation) {
        Ok((_, source)) => match Cluster::connect(&source, &installation.instance).await {
            Ok(cluster) => cluster,
            Err(error) => return vec![broken(error.to_string())],
        },
        Err(error) => return vec![broken(error.to_string())],
    };
    let mut all = match cluster.server().await {
        Ok(server) => checks::server(&server, now()),
        Err(error) => vec![broken(error)],
    };
    let mut needed =
        rights::needed(&installation.instance, cluster.home(), &installation.caps, installation.projection);
    needed.extend(rights::to_copy(&loaded.map(copying).unwrap_or_default()));
    needed.extend(rights::to_look(&installation.gateways, installation.caps.namespaces()));
    match cluster.lacks(needed.clone()).await {
        Ok(missing) => all.extend(checks::rights(&needed, &missing)),
        Err(error) => {
            all.push(Check::new(Found::Unknown, "rights", &error, "kubectl auth can-i --list, as the controller"));
        }
    }
    if let Some(loaded) = loaded {
        if let Ok((name, _)) = world::served(installation) {
            all.extend(fleet::check(loaded, &name, &installation.instance, cluster.uid()));
        }
        let kinds = kinds(loaded);
        match cluster.does_not_serve(&kinds.keys().copied().collect()).await {
            Ok(missing) => all.extend(checks::kinds(&kinds, &missing)),
            Err(error) => all.push(Check::new(Found::Unknown, "kinds", &error, "kubectl api-resources")),
        }
    }
    all
}

/// The namespaces of rollouts that track Secrets.
pub(super) fn copying(loaded: &Loaded) -> BTreeSet<Namespace> {
    let tracks = |rollout: &&Rollout| !rollout.plan.target.track.secrets.is_empty();
    loaded.rollouts.values().flatten().filter(tracks).map(|rollout| rollout.id.namespace.clone()).collect()
}

/// The kinds that rollouts have objects of, by who has them.
fn kinds(loaded: &Loaded) -> BTreeMap<Kind, BTreeSet<RolloutId>> {
    let mut kinds: BTreeMap<Kind, BTreeSet<RolloutId>> = BTreeMap::new();
    for (id, rollout) in &loaded.rollouts {
        for object in rollout.iter().flat_map(|rollout| rollout.set.objects.keys()) {
            kinds.entry(object.kind).or_default().insert(id.clone());
        }
    }
    kinds
}

async fn host(
    installation: &Installation,
    site: &PullHost,
    pass: Pass,
    loaded: Option<&Loaded>,
) -> Result<Vec<Check>, Failure> {
    let host = Host::new(site.clone(), pass.clone(), Box::new(|_, _| ()), Box::new(now));
    let mut host = host.map_err(anyhow::Error::new)?;
    let login = match host.login().await {
        Ok(login) => login,
        Err(error) => {
            let act = "look at spec.repository.forge of the Installation: kind, url, tokenFile or app";
            return Ok(vec![Check::new(Found::Broken, "Git host", &error.to_string(), act)]);
        }
    };
    let number = host.repository().await;
    let mut all: Vec<Check> =
        host.clock().map(|clock| checks::apart("clock of the Git host", clock, now())).into_iter().collect();
    all.push(match &pass {
        // An answer without permissions and none at all say as much.
        Pass::Token(_) => checks::account(&login, host.permissions().await.ok().flatten(), site),
        // What the repository says of an App's user is not what the App may do.
        Pass::App(found) => {
            let of = &installation.repository;
            app::rights(&login, found.granted().await.as_ref(), &app::needed(of), app::wished(of))
        }
    });
    all.push(pinned::check(installation.repository.pinned, site, &number));
    let id = match &pass {
        Pass::Token(_) => host.ids().await.ok().map(|ids| ids.user),
        // It is let past as itself, not as its user.
        Pass::App(found) => found.number().await.ok(),
    };
    let main = &installation.repository.branch;
    let settings = Settings { instance: &installation.instance, main, account: &login, id };
    for branch in ProtectedBranch::ALL {
        let weight = weight(branch, installation, loaded);
        let rules = host.rules(&settings.name(branch)).await;
        all.push(checks::branch(&settings, site, branch, weight, &rules));
    }
    all.extend(teams::checks(&mut host, loaded).await);
    all.push(match &installation.repository.webhook_secret_file {
        Some(_) => checks::webhook(site.kind, &host.hooks().await),
        None => Check::ok("webhook", "none is heard: the repository is looked at every poll"),
    });
    Ok(all)
}

/// What becomes of a branch that nothing protects.
fn weight(branch: ProtectedBranch, installation: &Installation, loaded: Option<&Loaded>) -> Weight {
    let policy = loaded.and_then(|loaded| loaded.policy.as_ref().ok());
    let trusts = policy.is_some_and(|policy| policy.tenants.values().all(|tenant| tenant.trust == Trust::Writers));
    match branch {
        ProtectedBranch::Decisions if !trusts => Weight::Needed,
        ProtectedBranch::State if installation.signing.is_none() => Weight::Needed,
        ProtectedBranch::Main | ProtectedBranch::Decisions | ProtectedBranch::State => Weight::Wished,
    }
}

/// Where no host has an API that is asked.
fn unhosted(installation: &Installation) -> Check {
    let main = &installation.repository.branch;
    let settings = Settings { instance: &installation.instance, main, account: "its account", id: None };
    let of = |branch| format!("{}: {}", settings.name(branch), settings.words(branch));
    let act = format!("see yourself that the Git host has\n    {}", ProtectedBranch::ALL.map(of).join("\n    "));
    let says = "the Installation names no host with an API (forge.kind), so nothing can be asked of it";
    Check::new(Found::Unknown, "Git host", says, act)
}
