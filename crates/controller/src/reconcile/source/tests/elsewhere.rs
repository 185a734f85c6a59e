//! What may lie where nobody looked is not gone: what is gone is ended.

use super::*;
use crate::git::{RefName, Sought};
use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, Signature, Tree};

/// Two tenants; `b` may have another directory and another namespace.
fn policy(path: &str, namespace: &str) -> String {
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
         a: {{path: teams/shop, namespaces: [shop], clusters: [home]}}\n    \
         b: {{path: {path}, namespaces: [{namespace}], clusters: [home]}}\n"
    )
}

/// Moves what `b` is to another directory, with what else changes.
async fn mv(world: &World, [from, to]: [&str; 2], more: &[(&str, Option<&str>)]) -> CommitId {
    let (file, app) = (rollout("b"), manifest("b", "b:1"));
    let paths = [from, to].map(|dir| ["rollout.yaml", "app.yaml"].map(|name| format!("{dir}/{name}")));
    let [[old, old_app], [new, new_app]] = &paths;
    let moves: [(&str, Option<&str>); 4] = [(old, None), (old_app, None), (new, Some(&file)), (new_app, Some(&app))];
    world.commit("main", &[&moves, more].concat()).await
}

/// Commits what only libgit2 takes.
fn tree(world: &World, change: impl FnOnce(&Repository, &Tree<'_>) -> Oid) {
    let origin = Repository::open(world.dir.path().join("origin.git")).unwrap();
    let main = origin.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap();
    let tree = origin.find_tree(change(&origin, &main.tree().unwrap())).unwrap();
    let ana = Signature::new("ana", "ana@example.org", &git2::Time::new(1_767_300_000, 0)).unwrap();
    origin.commit(Some("refs/heads/main"), &ana, &ana, "odd", &tree, &[&main]).unwrap();
}

/// A world in which `b` is recorded, and what is seen of it.
async fn recorded(change: impl FnOnce(&mut crate::git::RemoteConfig)) -> (World, Source) {
    let world = World::new().await;
    let mut source = world.source_with("c", change);
    let (state, _) = steady(&*moved(&mut source, None).await, "b", 5);
    put(&world, &state, &manifest("b", "b:1")).await;
    (world, source)
}

async fn seen(source: &mut Source) -> String {
    let view = moved(source, None).await;
    assert_eq!(desired(&view, "a"), "wanted 12");
    desired(&view, "b")
}

#[tokio::test]
async fn a_rollout_is_not_gone_because_another_one_lies_where_it_was() {
    let (world, mut source) = recorded(|_| {}).await;
    let (file, app) = (rollout("c"), manifest("c", "c:1"));
    let more = [("teams/shop/b/rollout.yaml", Some(file.as_str())), ("teams/shop/b/app.yaml", Some(app.as_str()))];
    mv(&world, ["teams/shop/b", "apps/b"], &[]).await;
    world.commit("main", &more).await;
    let why = seen(&mut source).await;
    assert!(why.starts_with("rejected: ") && why.contains("directory of no tenant"), "{why}");
    world.commit("main", &[("apps/b/rollout.yaml", None)]).await;
    assert_eq!(seen(&mut source).await, "gone");
}

#[tokio::test]
async fn a_rollout_is_not_gone_because_its_directory_lies_in_another_repository_or_behind_a_link() {
    let (world, mut source) = recorded(|_| {}).await;
    mv(&world, ["teams/shop/b", "libs/b"], &[("tidegate.yaml", Some(&policy("libs/b", "shop")))]).await;
    assert_eq!(seen(&mut source).await, "wanted 12");
    for mode in [FileMode::Commit, FileMode::Link] {
        tree(&world, |origin, main| {
            let [link, other] = [origin.blob(b"elsewhere").unwrap(), Oid::from_str(&"1".repeat(40)).unwrap()];
            let target = if mode == FileMode::Link { link } else { other };
            let mut root = origin.treebuilder(Some(main)).unwrap();
            root.insert("libs", target, mode.into()).unwrap();
            root.write().unwrap()
        });
        let why = seen(&mut source).await;
        assert!(why.starts_with("rejected: ") && why.contains("libs"), "{why}");
    }
}

#[tokio::test]
async fn nor_because_a_directory_below_its_tenants_became_another_repository_or_a_link() {
    for mode in [FileMode::Commit, FileMode::Link] {
        let (world, mut source) = recorded(|_| {}).await;
        tree(&world, |origin, main| {
            let below = |tree: &Tree<'_>, name| origin.find_tree(tree.get_name(name).unwrap().id()).unwrap();
            let [link, other] = [origin.blob(b"elsewhere").unwrap(), Oid::from_str(&"1".repeat(40)).unwrap()];
            let (teams, mut id) = (below(main, "teams"), if mode == FileMode::Link { link } else { other });
            let levels = [("b", mode, Some(below(&teams, "shop"))), ("shop", FileMode::Tree, Some(teams))];
            for (name, mode, above) in levels.into_iter().chain([("teams", FileMode::Tree, Some(main.clone()))]) {
                let mut tree = origin.treebuilder(above.as_ref()).unwrap();
                tree.insert(name, id, mode.into()).unwrap();
                id = tree.write().unwrap();
            }
            id
        });
        let why = seen(&mut source).await;
        assert!(why.starts_with("rejected: ") && why.contains("teams/shop/b"), "{why}");
    }
}

#[tokio::test]
async fn attack_103_no_rollout_of_any_namespace_is_gone_while_a_directory_is_not_read() {
    let (world, mut source) = recorded(|config| config.limits.entries = 20).await;
    let crowd: Vec<String> = (0..21).map(|n| format!("libs/{n}.txt")).collect();
    let policy = policy("libs", "blog");
    let more: Vec<_> =
        crowd.iter().map(|path| (path.as_str(), Some("x"))).chain([("tidegate.yaml", Some(policy.as_str()))]).collect();
    mv(&world, ["teams/shop/b", "libs/b"], &more).await;
    let why = seen(&mut source).await;
    assert!(why.starts_with("rejected: ") && why.contains("exceeds the limit of 20"), "{why}");
}

#[tokio::test]
async fn attack_103_no_rollout_is_gone_while_not_all_names_were_looked_at() {
    let (world, mut source) = recorded(|config| config.limits.entries = 20).await;
    let crowd: Vec<String> = (0..500).map(|n| format!("docs/{n}.md")).collect();
    let more: Vec<_> = crowd.iter().map(|path| (path.as_str(), Some("x"))).collect();
    mv(&world, ["teams/shop/b", "apps/b"], &more).await;
    let why = seen(&mut source).await;
    assert_eq!(why, "rejected: it has more than 400 names, and not all were looked at");
    // Nor where no path can name what lies there.
    let less: Vec<_> = crowd.iter().map(|path| (path.as_str(), None)).collect();
    world.commit("main", &less).await;
    assert!(seen(&mut source).await.contains("directory of no tenant"));
    let file = rollout("b");
    tree(&world, |origin, main| {
        let odd = origin.blob(file.as_bytes()).unwrap();
        let mut update = TreeUpdateBuilder::new();
        update.remove("apps/b/rollout.yaml").upsert("50%/rollout.yaml", odd, FileMode::Blob);
        update.create_updated(origin, main).unwrap()
    });
    let why = seen(&mut source).await;
    assert!(why.starts_with("rejected: ") && why.contains("no path can name it"), "{why}");
}

#[tokio::test]
async fn a_rollout_is_not_gone_because_the_file_that_it_moved_to_does_not_tell_its_name() {
    let (world, mut source) = recorded(|_| {}).await;
    mv(&world, ["teams/shop/b", "teams/shop/x"], &[("teams/shop/x/rollout.yaml", Some("kind: Rollout\nmetadata: ["))])
        .await;
    let why = seen(&mut source).await;
    assert!(why.starts_with("rejected: ") && why.contains("teams/shop/x/rollout.yaml"), "{why}");
    let file = rollout("b");
    world.commit("main", &[("teams/shop/x/rollout.yaml", None), ("teams/shop/x/rollout.yml", Some(&file))]).await;
    let why = seen(&mut source).await;
    assert!(why.starts_with("rejected: ") && why.contains("git mv rollout.yml rollout.yaml"), "{why}");
    world.commit("main", &[("teams/shop/x/rollout.yml", None)]).await;
    assert_eq!(seen(&mut source).await, "gone");
}

#[tokio::test]
async fn where_a_rollout_was_moved_to_is_found_without_looking_through_all_that_there_is() {
    let (world, mut source) = recorded(|_| {}).await;
    let to = mv(&world, ["teams/shop/b", "teams/shop/x"], &[]).await;
    assert_eq!(seen(&mut source).await, "wanted 12");
    let sought = Sought { files: ["teams/shop/b/rollout.yaml".parse().unwrap()].into(), rollouts: [id("b")].into() };
    let known = source.store().declared(&to, &sought, None).await.unwrap().unwrap().known;
    let beside = world.commit("main", &[("docs/x.md", Some("x"))]).await;
    source.store().fetch(&[(RefName::branch("main").unwrap(), beside.clone())].into()).await.unwrap();
    assert_eq!(source.store().declared(&beside, &sought, Some(&known)).await.unwrap(), None);
}
