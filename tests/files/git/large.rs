//! A repository of any size: what lies beside main, how much main's past holds, and how many refs there are.

use super::{Bed, branch, config, id, open, path};
use std::path::PathBuf;
use std::sync::Arc;
use tidegate::git::{Ancestry, GitError, Pushed, Store};
use tidegate::manifest::files::Had;
use tidegate::manifest::ids::CommitId;
use tidegate::manifest::installation::Caps;
use tidegate::plan::input::Desired;
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::source::{Branches, GitView, LoadedRecords, Poll, Source};
use tidegate::report::metrics::Metrics;

const STATE: &str = "tidegate/prod/state";
const DECISIONS: &str = "tidegate/prod/decisions";

/// Not compressible, and the same in each run.
fn noise() -> Vec<u8> {
    let step = |last: &u64| {
        let last = last ^ (last << 13);
        let last = last ^ (last >> 7);
        Some(last ^ (last << 17))
    };
    std::iter::successors(Some(88_172_645_463_325_252_u64), step).take(40_000).map(|n| n.to_le_bytes()[0]).collect()
}

fn source(store: &Store) -> Source {
    let branches = Branches::new(&"prod".parse().unwrap(), "main").unwrap();
    Source::new(store.clone(), branches, Caps::default(), Metrics::new(), Clock::default())
}

async fn view(source: &mut Source) -> Arc<GitView> {
    match source.look_up(None).await {
        Poll::Changed(view) => view,
        other @ (Poll::Unchanged | Poll::Unreachable(_) | Poll::WrongRepository(_)) => panic!("{other:?}"),
    }
}

fn why(view: &GitView) -> String {
    match view.main.desired(&"shop/web".parse().unwrap(), None) {
        Desired::Unreadable(why) => why,
        other @ (Desired::Wanted(_) | Desired::Lacking(..) | Desired::Rejected(_) | Desired::Gone) => {
            panic!("{other:?}")
        }
    }
}

#[tokio::test]
async fn attack_115_a_main_that_is_more_than_may_be_fetched_stops_main_alone() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    bed.origin.commit(STATE, &[("README.md", Some(b"1"))], "record");
    bed.origin.commit("main", &[("noise", Some(&noise()[..]))], "noise");
    let mut source = source(&bed.store);
    let first = view(&mut source).await;
    assert!(matches!(first.records, LoadedRecords::Read(_)));
    let told = why(&first);
    assert!(told.contains("exceeds the limit of 20000 bytes: take what is large out of main"), "{told}");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged), "it is not fetched again for nothing");
    // The record and the decisions are followed meanwhile.
    bed.origin.commit(STATE, &[("README.md", Some(b"2"))], "record");
    let decided = id(bed.origin.commit(DECISIONS, &[("README.md", Some(b"1"))], "decide"));
    let second = view(&mut source).await;
    assert_eq!((why(&second), second.tips.decisions.clone()), (told, Some(decided)));
    assert_ne!(first.tips.state, second.tips.state);
    // Once it is gone, main is read as it was: its past, which has it still, is left alone.
    bed.origin.commit("main", &[("noise", None)], "no noise");
    let third = why(&*view(&mut source).await);
    assert!(third.contains("there is no policy"), "{third}");
}

#[tokio::test]
async fn attack_115_what_a_tip_descends_from_is_told_by_commits_alone() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    let old = bed.sync().await[&branch("main")].clone();
    let large = |name: &str| {
        bed.origin.commit("main", &[("noise", Some(&noise()[..]))], name);
        id(bed.origin.commit("main", &[("noise", None)], name))
    };
    let tip = large("first");
    bed.sync().await;
    let judged = async |store: &Store, tip: &CommitId| store.is_ancestor(&old, tip).await.unwrap();
    assert_eq!(judged(&bed.store, &tip).await, Ancestry::Unknown);
    // A server that has to send everything sends too much.
    let refused = bed.store.fetch_ancestry(&branch("main")).await.unwrap_err();
    assert!(matches!(refused, GitError::Limit { .. }), "{refused}");
    assert_eq!(judged(&bed.store, &tip).await, Ancestry::Unknown);

    bed.origin.git(&["config", "uploadpack.allowFilter", "true"]);
    bed.store.fetch_ancestry(&branch("main")).await.unwrap();
    assert_eq!(judged(&bed.store, &tip).await, Ancestry::Ancestor);
    let foreign = id(bed.origin.commit("other", &[("x", Some(b"1"))], "other"));
    assert_eq!(bed.store.is_ancestor(&foreign, &tip).await.unwrap(), Ancestry::Not);
    // What comes on top is fetched on top, also into a cache that is found there, and what is there is whole.
    let tip = large("second");
    let mut fresh = config(&bed.server.url("fleet"));
    fresh.limits.fetch_bytes = 20_000;
    let again = open(&bed.server.scratch().join("cache"), fresh);
    let tips = again.ls_refs(&["refs/heads/main"]).await.unwrap();
    again.fetch(&tips).await.unwrap();
    again.fetch_ancestry(&branch("main")).await.unwrap();
    assert_eq!(judged(&again, &tip).await, Ancestry::Ancestor);
    assert_eq!(again.files(&tip, None).await.unwrap().len(), 1);
}

/// A past that is more than may be fetched, behind what is not.
fn heavy(bed: &Bed) -> CommitId {
    bed.origin.commit("main", &[("noise", Some(&noise()[..]))], "noise");
    id(bed.origin.commit("main", &[("noise", None)], "no noise"))
}

#[tokio::test]
async fn attack_115_who_made_a_version_is_told_though_all_of_the_past_is_too_much() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    bed.origin.git(&["config", "uploadpack.allowFilter", "true"]);
    heavy(&bed);
    bed.sync().await;
    let app = |who: &str, branch: &str, text: &str| {
        bed.origin.commit_as(
            &format!("{who} <{who}@example.org>"),
            branch,
            &[("app.yaml", Some(text.as_bytes()))],
            "app",
        )
    };
    let stable = app("ana", "main", "1");
    bed.origin.git(&["branch", "side", &stable]);
    app("ben", "side", "2");
    bed.origin.commit("main", &[("README.md", Some(b"hello"))], "about");
    let tip = id(bed.origin.merge("side", "main"));
    bed.sync().await;
    let before = [[(path("app.yaml"), Had::AsIn(id(&stable)))].into()];
    let cut = bed.store.authors(&tip, &before).await;
    assert!(matches!(cut, Err(GitError::Missing(_))), "where both have parted is not known: {cut:?}");
    let deepen = async || bed.store.deepen(&branch("main")).await.unwrap_err();
    assert!(matches!(deepen().await, GitError::Limit { .. }));
    bed.server.take_count();
    assert!(matches!(deepen().await, GitError::Limit { .. }));
    assert_eq!(bed.server.take_count(), 0, "what was too much is not asked for again");
    bed.store.fetch_ancestry(&branch("main")).await.unwrap();
    let made = bed.store.authors(&tip, &before).await.unwrap();
    assert_eq!(made.iter().flat_map(|made| made.makers()).map(|by| by.name.as_str()).collect::<Vec<_>>(), ["ben"]);
    // What follows has as much behind it; what was begun anew has not.
    app("ana", "main", "3");
    bed.sync().await;
    bed.server.take_count();
    assert!(matches!(deepen().await, GitError::Limit { .. }));
    assert_eq!(bed.server.take_count(), 0);
}

#[tokio::test]
async fn attack_115_commits_that_are_damaged_are_fetched_anew() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    bed.origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let old = bed.sync().await[&branch("main")].clone();
    let packs = || -> Vec<PathBuf> {
        let packs = std::fs::read_dir(bed.server.scratch().join("cache/past/repository.git/objects/pack")).unwrap();
        packs
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "pack"))
            .collect()
    };
    let garbage = |pack: &PathBuf| {
        std::fs::remove_file(pack).unwrap();
        std::fs::write(pack, noise()).unwrap();
    };
    let removed = |pack: &PathBuf| std::fs::remove_file(pack).unwrap();
    for (what, damage) in
        [("nothing", None), ("garbage", Some(&garbage as &dyn Fn(&PathBuf))), ("gone", Some(&removed))]
    {
        let tip = heavy(&bed);
        bed.sync().await;
        if let Some(damage) = damage {
            packs().iter().for_each(damage);
        }
        bed.store.fetch_ancestry(&branch("main")).await.unwrap();
        assert_eq!(bed.store.is_ancestor(&old, &tip).await.unwrap(), Ancestry::Ancestor, "{what}");
    }
}

#[tokio::test]
async fn attack_115_decisions_that_are_more_than_may_be_fetched_are_unread_and_nothing_else() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    bed.origin.commit(STATE, &[("README.md", Some(b"1"))], "record");
    bed.origin.commit(DECISIONS, &[("noise", Some(&noise()[..]))], "noise");
    let mut source = source(&bed.store);
    let about = |view: &GitView| view.decisions.unreadable(&"shop/web".parse().unwrap()).map(str::to_owned);
    let first = view(&mut source).await;
    let told = about(&first).unwrap();
    assert!(
        told.contains("exceeds the limit of 20000 bytes: take what is large out of tidegate/prod/decisions"),
        "{told}"
    );
    assert!(matches!(first.records, LoadedRecords::Read(_)));
    assert!(why(&first).contains("there is no policy"), "main is read");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged), "they are not fetched again for nothing");
    bed.origin.git(&["update-ref", "-d", &format!("refs/heads/{DECISIONS}")]);
    bed.origin.commit(DECISIONS, &[("README.md", Some(b"1"))], "decide");
    assert_eq!(about(&*view(&mut source).await), None);
}

#[tokio::test]
async fn decisions_that_begin_where_a_large_main_is_come_after_it() {
    let bed = Bed::with(|config| config.limits.fetch_bytes = 20_000).await;
    let tip = heavy(&bed);
    bed.origin.git(&["branch", DECISIONS, tip.as_str()]);
    bed.origin.commit(DECISIONS, &[("shop/web/x.yaml", Some(b"x"))], "decide");
    let first = view(&mut source(&bed.store)).await;
    let about = &"shop/web".parse().unwrap();
    assert_eq!((first.decisions.unreadable(about), first.decisions.about(about).filed.len()), (None, 1));
}

#[tokio::test]
async fn a_tip_that_is_wanted_alone_comes_without_its_past() {
    let bed = Bed::with(|config| (config.shallow, config.limits.fetch_bytes) = (None, 20_000)).await;
    let tip = heavy(&bed);
    let whole = bed.store.fetch(&[(branch("main"), tip.clone())].into()).await;
    assert!(matches!(whole, Err(GitError::Limit { .. })), "{whole:?}");
    bed.store.fetch_tip(&branch("main"), &tip).await.unwrap();
    assert_eq!(bed.store.files(&tip, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn attack_104_any_number_of_refs_that_nobody_asked_for_holds_nothing_up() {
    let bed = Bed::with(|config| config.limits.advertisement_bytes = 4_000).await;
    let main = bed.origin.tip("main").unwrap();
    let long = "x".repeat(150);
    let mut refs = String::new();
    for n in 0..200 {
        for name in ["heads/propose/", "heads/main-", "tags/", "pull/"] {
            refs.push_str(&format!("create refs/{name}{long}{n} {main}\n"));
        }
    }
    bed.origin.git_with(&["update-ref", "--stdin"], refs.as_bytes());
    let tips = bed.store.ls_refs(&["refs/heads/main"]).await.unwrap();
    assert_eq!(tips.len(), 1);
    bed.store.fetch(&tips).await.unwrap();
    let draft = super::draft(None, &[("a", super::write("1"))]);
    let first = bed.store.commit(draft).await.unwrap();
    let from = (branch("main"), id(&main));
    let pushed = bed.store.push(&branch(STATE), None, &first, Some((&from.0, &from.1))).await.unwrap();
    assert!(matches!(pushed, Pushed::Done { .. }), "{pushed:?}");
    bed.origin.commit("main", &[("x", Some(b"1"))], "next");
    let raced = bed.store.push(&branch(STATE), Some(&first), &first, Some((&from.0, &from.1))).await.unwrap();
    assert!(matches!(raced, Pushed::SourceMoved { .. }), "{raced:?}");
    let error = bed.store.ls_refs(&["refs/heads/main", "refs/heads/propose/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Limit { .. }), "what is asked for has its limit: {error}");
}
