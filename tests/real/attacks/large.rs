//! What is large: a kind with much of it (attacks 101, 113), a repository with much in it (103, 104). Whoever has not brought it goes on,
//! and all go on once it is gone.

use super::world::{NAME, STATE, Story, manifests};
use super::{Row, Told, row};
use futures::FutureExt as _;
use serde_json::json;
use std::fmt::Write as _;
use tidegate::world::kube_api::resource::Resource;

pub(super) const ROWS: &[Row] = &[
    row(101, "more of a kind than an answer may be long", "Approval: ", halved),
    row(113, "more of it than there is room for", "its objects take more than 64 MiB", crowded),
    row(103, "60 MiB beside the tenants' directories", "Approval: ", beside),
    row(103, "70 MiB in a tenant's", "the size of all files in bytes exceeds the limit of 67108864", inside),
    row(104, "17 MiB of branches with names as we give them", "Approval: ", branches),
];

/// Bytes that no packing makes smaller, and no reader takes for text.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::once([0; 8]).chain(std::iter::repeat_with(&mut next)).take(bytes / 8).flatten().collect()
}

/// Releases a version with a ConfigMap of its own, and waits until it waits to be approved.
async fn follows(story: &mut Story, version: u8) -> String {
    let before = story.record().and_then(|record| record.run).map(|run| run.id);
    let text = manifests(version) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n";
    story.commit("owner", &[("shop/web.yaml", text)]);
    let is_new = |run: &tidegate::record::state::Run| before.as_ref() != Some(&run.id);
    story.until("a run of what main wants", |record| record.run.as_ref().is_some_and(is_new)).await;
    story.asked().await;
    story.waits("Approval").await
}

fn crowd(story: &Story, numbers: std::ops::Range<usize>) {
    for n in numbers {
        let object = json!({"metadata": {"name": format!("large-{n}"), "namespace": "shop"}, "data": {"x": "x".repeat(1 << 20)}});
        story.api.stage.api.change(|world| drop(world.create("v1", "ConfigMap", "hand", object).unwrap()));
    }
}

/// From then on what was done before is not held against the row.
async fn begun_anew(story: &mut Story) {
    story.restart().await;
    story.mark();
}

fn halved(story: &mut Story) -> Told<'_> {
    async {
        crowd(story, 0..20);
        begun_anew(story).await;
        follows(story, 3).await
    }
    .boxed()
}

fn crowded(story: &mut Story) -> Told<'_> {
    async {
        crowd(story, 20..70);
        let why = "its objects take more than 64 MiB";
        story.held("ClusterAway", &[why]).await;
        // Who lists all of it at once needs no more room than who has seen it come.
        begun_anew(story).await;
        story.held("ClusterAway", &["kind=ConfigMap", why]).await
    }
    .boxed()
}

fn clear(story: &Story) {
    let kind = Resource::of_kind("v1", "ConfigMap").unwrap();
    story.api.stage.api.change(|world| {
        let all: Vec<_> = world.list(kind, "shop").cloned().collect();
        for object in all.iter().filter(|object| object["metadata"]["name"].as_str().unwrap().starts_with("large-")) {
            world.delete(object).unwrap();
        }
    });
}

/// So many files of a MiB each on main, or none of them.
fn fill(story: &Story, directory: &str, files: u64, is_there: bool) {
    let files: Vec<_> =
        (0..files).map(|n| (format!("{directory}/{n}.yaml"), is_there.then(|| noise(n + 1, 1 << 20)))).collect();
    let files: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_deref())).collect();
    story.origin.commit_as("owner <owner@example.test>", "main", &files, "change");
}

fn beside(story: &mut Story) -> Told<'_> {
    async {
        clear(story);
        story.mark();
        fill(story, "media", 60, true);
        follows(story, 4).await
    }
    .boxed()
}

fn inside(story: &mut Story) -> Told<'_> {
    async {
        let record = story.recorded();
        fill(story, "shop/media", 70, true);
        let told = story.waits("Rejected").await;
        let run = |commit: &str| story.record_in(commit).unwrap().run.map(|run| run.id);
        assert_eq!(run(&record), run(&story.recorded()), "what was begun stays");
        fill(story, "shop/media", 70, false);
        told
    }
    .boxed()
}

fn branches(story: &mut Story) -> Told<'_> {
    async {
        story.origin.git(&["pack-refs", "--all"]);
        let (file, tip) = (story.origin.path().join("packed-refs"), story.origin.tip("main").unwrap());
        let packed = std::fs::read_to_string(&file).unwrap();
        // The first line says that they are sorted.
        let mut refs: String =
            packed.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        let long = ["x".repeat(200), "y".repeat(200), "z".repeat(200), "w".repeat(200)].join("/");
        for n in 0..20_000 {
            writeln!(refs, "{tip} refs/heads/tidegate/it/propose/shop/web/9-01010101-x{n}/{long}").unwrap();
        }
        // Whoever reads it meanwhile reads all of it.
        std::fs::write(file.with_extension("new"), refs).unwrap();
        std::fs::rename(file.with_extension("new"), &file).unwrap();
        let looks = story.looks().await;
        story.soon("a look", async || (story.looks().await >= looks + 2).then_some(())).await;
        follows(story, 5).await
    }
    .boxed()
}

/// A version that waits for a word.
pub(super) async fn begin() -> Story {
    let mut story = Story::new("").await;
    // What cannot be made smaller is sent as it is: nobody waits for a host that tries.
    for (setting, value) in [("core.compression", "0"), ("core.bigFileThreshold", "64k")] {
        story.origin.git(&["config", setting, value]);
    }
    story.start("one").await;
    story.rest().await;
    story.release("owner", 2);
    story.asked().await;
    story
}

/// It goes on: what is approved now is what main wants now.
pub(super) async fn end(story: &mut Story) {
    let before = story.origin.tip(STATE).unwrap();
    let pull = story.asked().await;
    story.site.merge(NAME, &pull).await;
    story.entered(&before).await;
    story.rest().await;
    assert_eq!(story.api.reached(), ("web:5".to_owned(), 0));
}
