//! What other clusters of the fleet have.

use super::*;
use crate::record::state::{Phase, Serving};

const FLEET: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n    home: {instance: prod, uid: u-home}\n    \
                     lab: {instance: lab, uid: u-lab}\n    moon: {instance: moon, uid: u-moon}\n  waves:\n  - {name: first, clusters: {names: [lab]}}\n  \
                     - {name: rest, clusters: {selector: {}}}\n";
const LAB: &str = "tidegate/lab/state";

/// The record of the cluster `lab`.
fn of_lab(seq: u64) -> RolloutState {
    let mut state = RolloutState { metadata: id("a"), seq, ..fixture::steady() };
    state.writer.instance = "lab".parse().unwrap();
    state.writer.cluster_uid = "u-lab".to_owned();
    state
}

async fn write(world: &World, state: &RolloutState) -> CommitId {
    let path = format!("rollouts/{}/state.yaml", state.metadata);
    world.commit(LAB, &[(&path, Some(&print_state(state)))]).await
}

/// What a cluster says of a rollout, in words.
fn says(view: &GitView, cluster: &str, name: &str) -> String {
    match view.peers.of(&cluster.parse().unwrap(), &id(name)) {
        Ok(Some(peer)) => format!("{} has {}", peer.phase, peer.promoted.unwrap().short()),
        Ok(None) => "nothing".to_owned(),
        Err(why) => why,
    }
}

#[tokio::test]
async fn f_11_what_other_clusters_have_is_read_from_their_own_branches() {
    let world = World::new().await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    assert_eq!(says(&view, "lab", "a"), "nobody has looked there yet");
    // What is of no cluster of the fleet is not looked up.
    let first = write(&world, &of_lab(7)).await;
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    world.commit("main", &[("fleet.yaml", Some(FLEET))]).await;
    let view = moved(&mut source, None).await;
    let has = format!("Steady has {}", of_lab(7).promoted.unwrap().revision.short());
    assert_eq!((says(&view, "lab", "a"), says(&view, "lab", "b")), (has.clone(), "nothing".to_owned()));
    assert_eq!(says(&view, "moon", "a"), "there is no branch tidegate/moon/state");
    assert_eq!(says(&view, "home", "a"), "nobody has looked there yet");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    // What others have come to makes no write of ours void.
    world.commit("tidegate/lab/state", &[("x", Some("y"))]).await;
    assert!(matches!(source.look_up_to_write(None).await, Poll::Unchanged));
    assert_eq!(says(&source.view().unwrap(), "lab", "a"), has);

    let failed = Phase::Failed {
        why: "bad".to_owned(),
        since: "2026-03-02T10:00:00Z".parse().unwrap(),
        standing: Serving::Stable,
    };
    write(&world, &RolloutState { phase: failed, ..of_lab(8) }).await;
    let view = moved(&mut source, None).await;
    assert_eq!(says(&view, "lab", "a"), has.replace("Steady", "Failed"));
    // Somebody puts it back, and brings it on again.
    world.commit_on(LAB, Some(first), &[("x", Some("y"))]).await;
    let view = moved(&mut source, None).await;
    assert_eq!(says(&view, "lab", "a"), "HistoryRewritten: its record went back from 8 to 7");
    write(&world, &of_lab(9)).await;
    assert_eq!(says(&*moved(&mut source, None).await, "lab", "a"), has);
}

#[tokio::test]
async fn f_10_a_record_of_another_cluster_or_instance_counts_for_nothing() {
    let world = World::new().await;
    world.commit("main", &[("fleet.yaml", Some(FLEET))]).await;
    let mut source = world.source("c");
    for (seq, change) in [(1, "uid"), (2, "instance")] {
        let mut state = of_lab(seq);
        match change {
            "uid" => state.writer.cluster_uid = "u-moon".to_owned(),
            _ => state.writer.instance = "moon".parse().unwrap(),
        }
        write(&world, &state).await;
        let told = says(&*moved(&mut source, None).await, "lab", "a");
        assert!(told.starts_with("ForeignState: its record was written by"), "{change}: {told}");
    }
    world.commit(LAB, &[("rollouts/shop/a/state.yaml", Some("phase: ["))]).await;
    assert!(says(&*moved(&mut source, None).await, "lab", "a").contains("rollouts/shop/a/state.yaml"));
    world.commit(LAB, &[("rollouts/shop/a/state.yaml", None)]).await;
    assert_eq!(says(&*moved(&mut source, None).await, "lab", "a"), "nothing");
    // What the fleet says of the cluster is what its record is judged by.
    write(&world, &of_lab(3)).await;
    assert!(says(&*moved(&mut source, None).await, "lab", "a").starts_with("Steady has"));
    world.commit("main", &[("fleet.yaml", Some(&FLEET.replace("uid: u-lab", "uid: u-new")))]).await;
    assert!(says(&*moved(&mut source, None).await, "lab", "a").starts_with("ForeignState"));
    world.commit("main", &[("fleet.yaml", Some(FLEET))]).await;
    assert!(says(&*moved(&mut source, None).await, "lab", "a").starts_with("Steady has"));
    // Without the fleet nobody is looked at any more.
    world.commit("main", &[("fleet.yaml", None)]).await;
    assert_eq!(says(&*moved(&mut source, None).await, "lab", "a"), "nobody has looked there yet");
}

#[tokio::test]
async fn what_git_said_of_others_stays_while_it_is_away() {
    let world = World::new().await;
    world.commit("main", &[("fleet.yaml", Some(FLEET))]).await;
    write(&world, &of_lab(3)).await;
    let mut source = world.source("c");
    let view = moved(&mut source, None).await;
    let has = says(&view, "lab", "a");
    assert!(has.starts_with("Steady has"));
    assert_eq!(says(&*source.offline(away(), None).await, "lab", "a"), has);
}
