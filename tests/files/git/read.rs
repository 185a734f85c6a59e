//! Looking up, fetching, reading, asking about the past.

use super::{Bed, branch, config, draft, id, open, path, sync, write};
use crate::support::git_server::Fault;
use crate::support::origin::Origin;
use std::collections::{BTreeMap, BTreeSet};
use tidegate::git::{Ancestry, Brought, Edit, GitError, Person};
use tidegate::manifest::files::{Entry, Files};

fn texts(files: &Files) -> BTreeMap<String, String> {
    let text = |entry: &Entry| match entry {
        Entry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
        other @ (Entry::TooLarge { .. }
        | Entry::BadName { .. }
        | Entry::Symlink
        | Entry::Submodule
        | Entry::Unread { .. }) => {
            format!("{other:?}")
        }
    };
    files.iter().map(|(path, entry)| (path.to_string(), text(entry))).collect()
}

#[tokio::test]
async fn tips_and_files_over_http() {
    let bed = Bed::new().await;
    let tip = bed.origin.commit("main", &[("teams/shop/podinfo.yaml", Some(b"kind: Service\n"))], "second");
    bed.origin.commit("tidegate/prod/state", &[("README.md", Some(b"# state\n"))], "state");
    bed.origin.git(&["tag", "v1", "main"]);

    let tips = bed.store.ls_refs(&["refs/heads/main", "refs/heads/tidegate/prod/"]).await.unwrap();
    assert_eq!(tips.keys().map(|name| name.short()).collect::<Vec<_>>(), ["main", "tidegate/prod/state"]);
    assert_eq!(tips[&branch("main")].as_str(), tip);
    bed.store.fetch(&tips).await.unwrap();
    assert_eq!(bed.store.cached_tips().await.unwrap(), tips);

    let files = bed.store.files(&id(&tip), None).await.unwrap();
    let expected = [("teams/shop/podinfo.yaml", "kind: Service\n"), ("teams/shop/rollout.yaml", "a: 1\n")];
    assert_eq!(texts(&files), expected.map(|(p, t)| (p.to_owned(), t.to_owned())).into());
    assert_eq!(bed.store.files(&id(&tip), Some(&path("teams/shop"))).await.unwrap(), files);
    let blob = bed.origin.git(&["rev-parse", "main:teams/shop/rollout.yaml"]);
    let Entry::File { blob: found, .. } = &files[&path("teams/shop/rollout.yaml")] else { panic!("a file") };
    assert_eq!(found.as_str(), blob);

    let tree = bed.store.tree_id(&id(&tip), Some(&path("teams"))).await.unwrap();
    assert_eq!(tree, Some(bed.origin.git(&["rev-parse", "main:teams"])));
    assert_eq!(bed.store.tree_id(&id(&tip), Some(&path("absent"))).await.unwrap(), None);
    let other = tips[&branch("tidegate/prod/state")].clone();
    let odd = Files::from([(path("teams"), Entry::Symlink), (path("teams/shop/rollout.yaml/x"), Entry::Submodule)]);
    for (commit, entries, shared) in [
        (id(&tip), files.clone(), files.keys().cloned().collect()),
        (other, files, BTreeSet::new()),
        (id(&tip), odd, BTreeSet::new()),
    ] {
        assert_eq!(bed.store.shared(&commit, entries).await.unwrap(), shared);
    }
    let absent = bed.store.files(&id(&tip), Some(&path("teams/absent"))).await.unwrap_err();
    assert!(matches!(&absent, GitError::Missing(what) if what.contains("teams/absent")), "{absent}");
    let unknown = bed.store.files(&id("0".repeat(40)), None).await.unwrap_err();
    assert!(matches!(unknown, GitError::Missing(_)), "{unknown}");
}

#[tokio::test]
async fn tips_and_files_of_a_local_repository() {
    let scratch = tempfile::tempdir().unwrap();
    let origin = Origin::init(&scratch.path().join("fleet.git"));
    let tip = origin.commit("main", &[("a.yaml", Some(b"1\n"))], "first");
    let store = open(&scratch.path().join("cache"), config(origin.path().to_str().unwrap()));
    let tips = sync(&store).await;
    assert_eq!(tips, [(branch("main"), id(&tip))].into());
    assert_eq!(texts(&store.files(&id(&tip), None).await.unwrap()), [("a.yaml".to_owned(), "1\n".to_owned())].into());

    let gone = open(&scratch.path().join("cache2"), config(scratch.path().join("gone.git").to_str().unwrap()));
    let error = gone.ls_refs(&["refs/heads/"]).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error}");
    let error = gone.fetch(&tips).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error}");
}

#[tokio::test]
async fn a_poll_is_one_request() {
    let bed = Bed::new().await;
    let tips = bed.sync().await;
    bed.server.take_count();
    for _ in 0..3 {
        assert_eq!(bed.store.ls_refs(&["refs/heads/"]).await.unwrap(), tips);
        bed.store.fetch(&tips).await.unwrap();
    }
    let expected = [("POST /fleet.git/git-upload-pack".to_owned(), 3)].into();
    assert_eq!(bed.server.requests(), expected);
}

#[tokio::test]
async fn an_old_server_is_understood() {
    let bed = Bed::new().await;
    bed.server.fault("", Fault::Without("git-protocol"));
    bed.origin.commit("other", &[("a", Some(b"1"))], "other");
    let tips = bed.store.ls_refs(&["refs/heads/main"]).await.unwrap();
    assert_eq!(tips, [(branch("main"), id(bed.origin.tip("main").unwrap()))].into());
    assert_eq!(bed.server.take_count(), 1);
    // It learns v2 meanwhile, and forgets it again.
    bed.server.heal();
    assert_eq!(bed.store.ls_refs(&["refs/heads/main"]).await.unwrap(), tips);
    bed.server.fault("", Fault::Without("git-protocol"));
    bed.store.ls_refs(&["refs/heads/main"]).await.unwrap_err();
    assert_eq!(bed.store.ls_refs(&["refs/heads/main"]).await.unwrap(), tips);
}

#[tokio::test]
async fn an_empty_repository_has_no_tips() {
    let bed = Bed::new().await;
    bed.origin.git(&["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(bed.sync().await, BTreeMap::new());
    bed.server.fault("", Fault::Without("git-protocol"));
    assert_eq!(bed.other("cache2").ls_refs(&["refs/heads/"]).await.unwrap(), BTreeMap::new());
}

#[tokio::test]
async fn main_comes_without_its_past_and_then_grows() {
    let bed = Bed::new().await;
    let old = id(bed.origin.tip("main").unwrap());
    let first = id(bed.origin.grow("main", 50));
    bed.sync().await;
    assert_eq!(bed.store.history(&first, 100).await.unwrap().len(), 1);
    assert_eq!(bed.store.is_ancestor(&old, &first).await.unwrap(), Ancestry::Unknown);
    assert_eq!(bed.store.is_ancestor(&first, &first).await.unwrap(), Ancestry::Same);

    let second = id(bed.origin.commit("main", &[("b.yaml", Some(b"2\n"))], "grown"));
    bed.sync().await;
    let history = bed.store.history(&second, 100).await.unwrap();
    assert_eq!(history.iter().map(|c| c.subject.as_str()).collect::<Vec<_>>(), ["grown", "c"]);
    assert_eq!(bed.store.is_ancestor(&first, &second).await.unwrap(), Ancestry::Ancestor);
    assert_eq!(bed.store.is_ancestor(&second, &first).await.unwrap(), Ancestry::Not);
    bed.store.deepen(&branch("main")).await.unwrap();
    assert_eq!(bed.store.history(&second, 100).await.unwrap().len(), 52);
    assert_eq!(bed.store.is_ancestor(&old, &second).await.unwrap(), Ancestry::Ancestor);
    assert_eq!(bed.store.is_ancestor(&second, &old).await.unwrap(), Ancestry::Not);
    bed.server.take_count();
    bed.store.deepen(&branch("main")).await.unwrap();
    assert_eq!(bed.server.take_count(), 0);
}

#[tokio::test]
async fn x_8_main_forced_elsewhere_does_not_descend_from_what_was_seen() {
    let bed = Bed::new().await;
    let base = bed.origin.grow("main", 10);
    let old = id(bed.origin.grow("main", 5));
    let tree = bed.origin.git(&["rev-parse", "main^{tree}"]);
    let git = |arguments: &[&str]| bed.origin.git(arguments);
    let amended = git(&["commit-tree", "-m", "amended", "-p", "main~1", &tree]);
    let side = git(&["commit-tree", "-m", "side", "-p", &format!("{base}~3"), &tree]);
    let next = git(&["commit-tree", "-m", "next", "-p", old.as_str(), &tree]);
    let merged = git(&["commit-tree", "-m", "merged", "-p", old.as_str(), "-p", &side, &tree]);
    let other_way = git(&["commit-tree", "-m", "merged the other way", "-p", &side, "-p", old.as_str(), &tree]);
    let without = git(&["commit-tree", "-m", "merged without it", "-p", "main~1", "-p", &side, &tree]);
    let (one, five) = (git(&["rev-parse", "main~1"]), git(&["rev-parse", "main~5"]));
    for (at, new, expected) in [
        ("one", one, Ancestry::Not),
        ("five", five, Ancestry::Not),
        ("amended", amended, Ancestry::Not),
        ("side", side, Ancestry::Not),
        ("without", without, Ancestry::Not),
        ("next", next, Ancestry::Ancestor),
        ("merged", merged, Ancestry::Ancestor),
        ("other-way", other_way, Ancestry::Ancestor),
    ] {
        // Seen before, or named by the record alone, as after the loss of a cache.
        for seen in [true, false] {
            let store = bed.other(&format!("{at}-{seen}"));
            if seen {
                git(&["update-ref", "refs/heads/main", old.as_str()]);
                sync(&store).await;
                assert_eq!(store.history(&old, 100).await.unwrap().len(), 1, "{at}");
            }
            git(&["update-ref", "refs/heads/main", &new]);
            sync(&store).await;
            let new = id(&new);
            let first = store.is_ancestor(&old, &new).await.unwrap();
            assert!(first == expected || (!seen && first == Ancestry::Unknown), "{at}, {seen}: {first:?}");
            store.deepen(&branch("main")).await.unwrap();
            assert_eq!(store.is_ancestor(&old, &new).await.unwrap(), expected, "{at}, {seen}");
        }
    }
}

#[tokio::test]
async fn other_branches_come_whole() {
    let bed = Bed::new().await;
    let old = id(bed.origin.commit("state", &[("a", Some(b"1"))], "one"));
    bed.origin.commit("state", &[("a", Some(b"2"))], "two");
    let tip = id(bed.origin.commit("state", &[("a", Some(b"3"))], "three\n\nbody"));
    bed.sync().await;
    let history = bed.store.history(&tip, 2).await.unwrap();
    assert_eq!(history.iter().map(|c| c.subject.as_str()).collect::<Vec<_>>(), ["three", "two"]);
    assert_eq!(history[0].time.timestamp(), 1_767_225_600 + 120);
    assert_eq!(bed.store.is_ancestor(&old, &tip).await.unwrap(), Ancestry::Ancestor);
    assert_eq!(bed.store.is_ancestor(&tip, &old).await.unwrap(), Ancestry::Not);
    // Rewritten by force: the new tip does not descend from the old one.
    let tree = bed.origin.git(&["rev-parse", "state^{tree}"]);
    let forced = id(bed.origin.commit_tree("state", &tree));
    bed.sync().await;
    assert_eq!(bed.store.is_ancestor(&tip, &forced).await.unwrap(), Ancestry::Not);
}

#[tokio::test]
async fn only_the_exact_tips_count() {
    let bed = Bed::new().await;
    let wanted = bed.store.ls_refs(&["refs/heads/"]).await.unwrap();
    bed.origin.commit("main", &[("b", Some(b"2"))], "moved");
    let error = bed.store.fetch(&wanted).await.unwrap_err();
    assert!(error.is_retriable() && error.to_string().contains("moved meanwhile"), "{error}");
    assert_eq!(bed.store.cached_tips().await.unwrap(), BTreeMap::new());
    bed.sync().await;
}

#[tokio::test]
async fn who_brought_a_file_to_a_branch() {
    let bed = Bed::new().await;
    let decision = "shop/podinfo/7-9ac41f02-tenth.yaml";
    bed.origin.commit("decisions", &[("README.md", Some(b"# decisions\n"))], "start");
    bed.origin.commit("decisions", &[(decision, Some(b"approve\n"))], "approve");
    let approved = bed.origin.tip("decisions").unwrap();
    let tip = id(bed.origin.commit("decisions", &[("other.yaml", Some(b"1"))], "later"));
    bed.sync().await;
    let brought = async |tip, file| bed.store.brought(tip, [path(file)].into()).await.unwrap().remove(&path(file));
    let found = brought(&tip, decision).await.unwrap();
    let ana = Person { name: "Ana".to_owned(), email: "ana@example.com".to_owned() };
    assert_eq!(found, Brought { commit: id(approved), merged: None, author: ana.clone(), committer: ana });
    assert_eq!(brought(&tip, "absent").await, None);
    // A file that comes by a merge is brought by the merge, whatever comes later and whoever wrote it.
    let base = bed.origin.git(&["rev-list", "--max-parents=0", "decisions"]);
    bed.origin.git(&["update-ref", "refs/heads/request", "decisions"]);
    bed.origin.git(&["update-ref", "refs/heads/decisions", &base]);
    bed.origin.commit("decisions", &[("elsewhere.yaml", Some(b"1"))], "meanwhile");
    let merge = id(bed.origin.merge("request", "decisions"));
    let tip = id(bed.origin.commit("decisions", &[("later.yaml", Some(b"1"))], "later"));
    bed.sync().await;
    let found = brought(&tip, decision).await.unwrap();
    assert_eq!((found.commit, found.merged), (merge, Some(id(bed.origin.tip("request").unwrap()))));
    // Main's past was not fetched, so nobody can tell.
    let main = id(bed.origin.tip("main").unwrap());
    assert!(bed.store.file(&main, &path("teams/shop/rollout.yaml")).await.unwrap().is_some());
    assert_eq!(brought(&main, "teams/shop/rollout.yaml").await, None);
    let error = bed.store.brought(&id("0".repeat(40)), [path(decision)].into()).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error}");
}

#[tokio::test]
async fn one_walk_tells_who_brought_each_of_many_files() {
    let bed = Bed::new().await;
    let mut files: Vec<String> = Vec::new();
    for number in 0..24 {
        let file =
            format!("{}/{}/{number}-tenth.yaml", ["blog", "shop"][number % 2], ["site", "web", "web-2"][number % 3]);
        bed.origin.commit("decisions", &[(&file, Some(b"approve\n"))], "approve");
        files.push(file);
    }
    let (gone, came, new) = (files[3].as_str(), files[4].as_str(), files[5].as_str());
    bed.origin.commit("decisions", &[(gone, None), (came, None), (new, Some(b"deny\n"))], "other");
    bed.origin.commit("decisions", &[(came, Some(b"approve\n")), ("shop/web/7.yaml/inside", Some(b"1"))], "back");
    let below = format!("{}/inside", files[6]);
    bed.origin.commit("decisions", &[(&files[6], None), (&below, Some(b"1"))], "a directory in the place of a file");
    let mut of: BTreeSet<String> = files.iter().cloned().collect();
    of.extend(["shop/web/7.yaml", "shop/web/7.yaml/inside", &below, "shop", "absent"].map(str::to_owned));
    bed.origin.git(&["update-ref", "refs/heads/request", "decisions~9"]);
    bed.origin.commit("request", &[("shop/api/1.yaml", Some(b"1")), (&files[7], Some(b"2"))], "asked");
    bed.origin.merge("request", "decisions");
    let tip = id(bed.origin.commit("decisions", &[("later/web/1.yaml", Some(b"1"))], "later"));
    of.extend(["shop/api/1.yaml", "later/web/1.yaml"].map(str::to_owned));
    bed.sync().await;

    let found = bed.store.brought(&tip, of.iter().map(|file| path(file)).collect()).await.unwrap();
    let found: BTreeMap<_, _> = found.into_iter().map(|(file, by)| (file.to_string(), by.commit.to_string())).collect();
    let listed = bed.origin.git(&["ls-tree", "-r", "-t", "--name-only", tip.as_str()]);
    let there = of.into_iter().filter(|file| listed.lines().any(|line| line == file));
    let log = ["log", "--first-parent", "-m", "-1", "--format=%H", tip.as_str(), "--"];
    let told = |file: &String| bed.origin.git(&[&log[..], &[file]].concat());
    let told: BTreeMap<_, _> = there.map(|file| (file.clone(), told(&file))).collect();
    assert_eq!(found, told);
    assert!(found.len() == 29 && !found.contains_key(gone), "{found:?}");
}

#[tokio::test]
async fn who_brought_files_is_told_as_far_as_what_was_pushed_can_be_read() {
    let bed = Bed::new().await;
    let (a, b, new, late) = ("a/x/1.yaml", "b/y/1.yaml", "b/y/2.yaml", "b/y/3.yaml");
    let first = id(bed.origin.commit("decisions", &[(a, Some(b"1")), (b, Some(b"1"))], "first"));
    let object = |name: &str| bed.origin.git(&["rev-parse", name]);
    let (blob, fine) = (object("decisions:a/x/1.yaml"), object("decisions:a"));
    let directory = |entries: &[(&str, &[u8], &str)]| bed.origin.tree(entries);
    let on_top = |tree: &str| {
        let commit = bed.origin.git(&["commit-tree", "-m", "odd", "-p", "decisions", tree]);
        bed.origin.git(&["update-ref", "refs/heads/decisions", &commit]);
        id(commit)
    };
    let of_b = |y: &str| directory(&[("40000", b"a", &fine), ("40000", b"b", &directory(&[("40000", b"y", y)]))]);
    // Git servers take such a mode, and libgit2 refuses all of the directory that has it.
    on_top(&of_b(&directory(&[("1100644", b"odd.yaml", &blob)])));
    let whole = [("100644", &b"1.yaml"[..], &*blob), ("100644", b"2.yaml", &blob)];
    let mended = on_top(&of_b(&directory(&whole)));
    let later = id(bed.origin.commit("decisions", &[(late, Some(b"1"))], "later"));
    bed.sync().await;
    let brought = async |tip, files: &[&str]| {
        let found = bed.store.brought(tip, files.iter().map(|file| path(file)).collect()).await.unwrap();
        found.into_iter().map(|(file, by)| (file.to_string(), by.commit)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(brought(&mended, &[a, b, new]).await, [(a.to_owned(), first.clone())].into());
    let known = [(a.to_owned(), first), (late.to_owned(), later.clone())];
    assert_eq!(brought(&later, &[a, b, new, late]).await, known.into());

    let odd = on_top(&directory(&[("1100644", b"odd.yaml", &blob)]));
    let mended = on_top(&of_b(&directory(&whole)));
    bed.sync().await;
    assert_eq!(brought(&odd, &[]).await, BTreeMap::new());
    assert_eq!(brought(&odd, &[a]).await, BTreeMap::new());
    assert_eq!(brought(&mended, &[a, b]).await, BTreeMap::new());
}

#[tokio::test]
async fn a_damaged_cache_is_made_anew() {
    let bed = Bed::new().await;
    let tip = bed.sync().await[&branch("main")].clone();
    let cache = bed.server.scratch().join("cache/repository.git");
    for pack in std::fs::read_dir(cache.join("objects/pack")).unwrap() {
        std::fs::remove_file(pack.unwrap().path()).unwrap();
    }
    // While it runs: the loss is noticed by a fetch, and mended by the next one.
    bed.store.files(&tip, None).await.unwrap_err();
    let tips = bed.store.ls_refs(&["refs/heads/"]).await.unwrap();
    let error = bed.store.fetch(&tips).await.unwrap_err();
    assert!(matches!(error, GitError::Corrupt { .. }), "{error}");
    bed.store.fetch(&tips).await.unwrap();
    bed.store.files(&tip, None).await.unwrap();
    // At the start.
    std::fs::remove_dir_all(cache.join("objects")).unwrap();
    let again = bed.other("cache");
    assert_eq!(again.cached_tips().await.unwrap(), BTreeMap::new());
    sync(&again).await;
    // The cache of another repository is not taken for ours.
    let other = bed.server.init("other");
    other.commit("main", &[("x", Some(b"1"))], "x");
    let moved = open(&bed.server.scratch().join("cache"), config(&bed.server.url("other")));
    assert_eq!(moved.cached_tips().await.unwrap(), BTreeMap::new());
}

#[tokio::test]
async fn the_cache_is_packed_again() {
    let bed = Bed::new().await;
    let main = id(bed.origin.grow("main", 10));
    bed.sync().await;
    // Ids of objects do not change, so that this always makes enough of them.
    let many: Vec<(String, Edit)> =
        (0..8_000).map(|n| (format!("d{}/{n}", n % 40), write(&format!("{n}\n")))).collect();
    let many: Vec<(&str, Edit)> = many.iter().map(|(at, edit)| (at.as_str(), edit.clone())).collect();
    // Small commits, as those of many files are packs.
    let mut state = None;
    for some in many.chunks(50) {
        state = Some(bed.store.commit(draft(state.as_ref(), some)).await.unwrap());
    }
    let state = state.unwrap();
    bed.store.push(&branch("state"), None, &state, None).await.unwrap();
    let cache = Origin::at(&bed.server.scratch().join("cache/repository.git"));
    let loose = || cache.git(&["count-objects"]).split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(loose() > 8_000);
    bed.sync().await;
    assert_eq!(loose(), 0);
    cache.git(&["fsck", "--strict"]);
    assert_eq!(bed.store.files(&state, None).await.unwrap().len(), 8_000);
    let next = id(bed.origin.commit("main", &[("b.yaml", Some(b"2\n"))], "grown"));
    bed.sync().await;
    assert_eq!(bed.store.is_ancestor(&main, &next).await.unwrap(), Ancestry::Ancestor);
}

#[tokio::test]
async fn commits_are_made_from_edits() {
    let bed = Bed::new().await;
    let main = bed.sync().await[&branch("main")].clone();
    let files = bed.store.files(&main, None).await.unwrap();
    let Entry::File { blob, .. } = &files[&path("teams/shop/rollout.yaml")] else { panic!("a file") };
    let edits = [
        ("README.md", write("# state\n")),
        ("sets/one/a.yaml", Edit::Blob(blob.clone())),
        ("sets/two/b/c.yaml", write("c\n")),
    ];
    let first = bed.store.commit(draft(None, &edits)).await.unwrap();
    assert_eq!(bed.store.commit(draft(None, &edits)).await.unwrap(), first, "the same draft is the same commit");
    let edits = [
        ("README.md", Edit::Remove),
        ("absent/too.yaml", Edit::Remove),
        ("sets/one", Edit::RemoveDir),
        ("sets/one/new.yaml", write("new\n")),
        ("sets/two", Edit::RemoveDir),
        ("absent", Edit::RemoveDir),
    ];
    let second = bed.store.commit(draft(Some(&first), &edits)).await.unwrap();
    let found = |files| texts(&files).into_keys().collect::<Vec<_>>();
    let before = ["README.md", "sets/one/a.yaml", "sets/two/b/c.yaml"];
    assert_eq!(found(bed.store.files(&first, None).await.unwrap()), before);
    assert_eq!(found(bed.store.files(&second, None).await.unwrap()), ["sets/one/new.yaml"]);
    let empty = bed.store.commit(draft(Some(&second), &[("sets", Edit::RemoveDir)])).await.unwrap();
    assert!(bed.store.files(&empty, None).await.unwrap().is_empty());

    let clash = [("a", write("1")), ("a/b", write("2"))];
    let error = bed.store.commit(draft(None, &clash)).await.unwrap_err();
    assert!(matches!(error, GitError::BadTree { .. }), "{error}");
    let error = bed.store.commit(draft(Some(&second), &[("sets", Edit::Remove)])).await.unwrap_err();
    assert!(matches!(error, GitError::BadTree { .. }), "{error}");
    let unknown = Edit::Blob("0".repeat(40).parse().unwrap());
    let error = bed.store.commit(draft(None, &[("a", unknown)])).await.unwrap_err();
    assert!(matches!(error, GitError::Missing(_)), "{error}");
}
