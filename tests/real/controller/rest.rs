//! The example repository, as it lies there.

use super::world::{DECISIONS, Held, World};
use crate::support::cluster::{Bed, eventually};
use std::path::Path;
use tidegate::manifest::desired::Router;
use tidegate::record::state::Rest;

/// The files of examples-repo/, in these namespaces and with soaks that are as short as they can be.
fn example(shop: &str, blog: &str) -> Vec<(String, String)> {
    fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    let root = crate::support::root::root().join("examples-repo");
    let mut found = Vec::new();
    files(&root, &mut found);
    let moved = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.replace("namespace: shop}", &format!("namespace: {shop}}}"));
        let text = text.replace("namespace: blog}", &format!("namespace: {blog}}}"));
        let text = text.replace("namespaces: [shop]", &format!("namespaces: [{shop}]"));
        let text = text.replace("namespaces: [blog]", &format!("namespaces: [{blog}]"));
        let text =
            text.replace("soak: 10s", "soak: 1s").replace("bake: 10s", "bake: 1s").replace("drain: 5s", "drain: 1s");
        (path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), text)
    };
    found.iter().map(moved).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_repository_is_rolled_out_as_it_is() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "shop").await;
    let blog = world.bed.space("blog").await;
    let shop = world.space.name.clone();
    world.serve(&blog).await;
    let files = example(&shop, &blog.name);
    let commit = |world: &World, files: &[(String, String)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        world.commit(&files);
    };
    commit(&world, &files);
    let object = |name: &str| name.parse().unwrap();
    let route = |name| Some(Router::GatewayApi { http_route: object(name), service: object(name) });
    let rollouts = [
        (format!("{shop}/podinfo"), route("podinfo")),
        (format!("{shop}/worker"), Some(Router::Replicas { service: object("worker") })),
        (format!("{}/site", blog.name), route("site")),
    ];
    let ids: Vec<String> = rollouts.iter().map(|(id, _)| id.clone()).collect();
    let next: Vec<_> = files.iter().map(|(path, text)| (path.clone(), text.replace(":1\n", ":2\n"))).collect();
    assert_eq!(next.iter().zip(&files).filter(|(new, old)| new != old).count(), 3, "each has an image");
    world.start();
    for id in &ids {
        eventually(id, async || world.record_at(id).filter(|record| record.promoted.is_some())).await;
    }
    commit(&world, &next);
    for (name, step) in [("podinfo", "tenth"), ("worker", "half"), ("site", "promotion")] {
        world.origin.merge(&world.request_of(name, step).await, DECISIONS);
    }
    for id in &ids {
        let promoted = async || world.record_at(id).filter(|record| super::world::is_steady(record, Rest::Succeeded));
        let record = eventually(id, promoted).await;
        assert_eq!(record.history.len(), 1);
    }
    for (id, router) in rollouts {
        world.watch(&id, router);
    }
    world.settled(&[]).await;
}
