//! Trees that somebody made by hand: refused as a whole, or shown as what they are.

use super::{Bed, branch, config, id, open, path};
use crate::support::origin::Origin;
use tidegate::git::{GitError, RemoteConfig, Sought, Store};
use tidegate::manifest::files::{Entry, Files};

/// A cache that holds whatever a test puts there: servers refuse to send the worst of it.
struct Cache {
    scratch: tempfile::TempDir,
    objects: Origin,
}

impl Cache {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        open(scratch.path(), config("/absent.git"));
        let objects = Origin::at(&scratch.path().join("repository.git"));
        Self { scratch, objects }
    }

    fn store(&self, change: impl FnOnce(&mut RemoteConfig)) -> Store {
        let mut config = config("/absent.git");
        change(&mut config);
        open(self.scratch.path(), config)
    }

    async fn read(&self, tree: &str) -> Result<Files, GitError> {
        let tip = id(self.objects.commit_tree("any", tree));
        self.store(|_| {}).files(&tip, None).await
    }
}

async fn read(make: impl FnOnce(&Origin) -> String) -> Result<Files, GitError> {
    let cache = Cache::new();
    cache.read(&make(&cache.objects)).await
}

async fn read_within(
    make: impl FnOnce(&Origin) -> String,
    change: impl FnOnce(&mut RemoteConfig),
) -> Result<Files, GitError> {
    let cache = Cache::new();
    let tip = id(cache.objects.commit_tree("any", &make(&cache.objects)));
    cache.store(change).files(&tip, None).await
}

const BLOB: &[u8] = b"kind: Service\n";

#[tokio::test]
async fn attack_6_7_names_that_leave_the_tree_are_refused() {
    let names: [&[u8]; 9] =
        [b".", b"..", b".git", b".GIT", b"git~1", b".g\xe2\x80\x8cit", b"a/b", b"../../etc/passwd", b".git. ."];
    let cache = Cache::new();
    let origin = &cache.objects;
    let blob = origin.object("blob", BLOB);
    let inner = origin.tree(&[("100644", b"x", &blob)]);
    for name in names {
        let below = origin.tree(&[("100644", name, &blob)]);
        for (at, tree) in [
            ("", origin.tree(&[("100644", name, &blob)])),
            ("", origin.tree(&[("40000", name, &inner)])),
            ("teams/", origin.tree(&[("40000", b"teams", &below)])),
        ] {
            let error = cache.read(&tree).await.unwrap_err();
            let expected = format!("{at}{}", name.escape_ascii());
            assert!(matches!(&error, GitError::BadTree { path, .. } if *path == expected), "{expected}: {error}");
        }
    }
}

#[tokio::test]
async fn a_bad_tree_that_a_server_sends_is_refused_and_the_last_good_one_stays() {
    let bed = Bed::new().await;
    let good = bed.sync().await[&branch("main")].clone();
    let blob = bed.origin.object("blob", BLOB);
    bed.origin.commit_tree("main", &bed.origin.tree(&[("100644", b"..", &blob)]));
    let bad = bed.sync().await[&branch("main")].clone();
    let error = bed.store.files(&bad, None).await.unwrap_err();
    assert!(matches!(&error, GitError::BadTree { path, .. } if path == ".."), "{error}");
    assert_eq!(bed.store.files(&good, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn attack_5_a_name_that_comes_twice_is_refused() {
    let make = |origin: &Origin| {
        let (blob, target) = (origin.object("blob", BLOB), origin.object("blob", b"/etc"));
        origin.tree(&[("100644", b"a", &blob), ("120000", b"a", &target)])
    };
    let error = read(make).await.unwrap_err();
    assert!(matches!(&error, GitError::BadTree { why, .. } if why.contains("twice")), "{error}");
}

#[tokio::test]
async fn malformed_trees_are_refused() {
    let empty_name = read(|objects| objects.tree(&[("100644", b"", &objects.object("blob", BLOB))])).await;
    let odd_mode = read(|objects| objects.tree(&[("100123", b"a", &objects.object("blob", BLOB))])).await;
    let no_mode = read(|objects| objects.object("tree", b"nonsense")).await;
    let no_tree = read(|objects| objects.object("blob", BLOB)).await;
    let inner = |objects: &Origin| objects.tree(&[("40000", b"a", &objects.object("tree", b"nonsense"))]);
    for result in [empty_name, odd_mode, no_mode, no_tree, read(inner).await] {
        let error = result.unwrap_err();
        assert!(matches!(error, GitError::BadTree { .. } | GitError::Malformed { .. }), "{error:?}");
    }
    let cache = Cache::new();
    let commit = cache.objects.object("commit", b"tree 1111111111111111111111111111111111111111\n\nno author\n");
    let error = cache.store(|_| {}).files(&id(commit), None).await.unwrap_err();
    assert!(matches!(error, GitError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn attack_3_4_9_links_and_submodules_are_entries_and_never_followed() {
    let make = |origin: &Origin| {
        let (blob, target) = (origin.object("blob", BLOB), origin.object("blob", b"/var/run/secrets/token"));
        let absent = "1".repeat(40);
        let modules = origin.object("blob", b"[submodule \"evil\"]\n\turl = -u./payload\n");
        origin.tree(&[
            ("100644", b".gitmodules", &modules),
            ("160000", b"evil", &absent),
            ("120000", b"link.yaml", &target),
            ("100755", b"run.yaml", &blob),
        ])
    };
    let files = read(make).await.unwrap();
    assert_eq!(files[&path("evil")], Entry::Submodule);
    assert_eq!(files[&path("link.yaml")], Entry::Symlink);
    assert!(matches!(&files[&path("run.yaml")], Entry::File { bytes, .. } if **bytes == *BLOB));
    assert_eq!(files.len(), 4);
}

#[tokio::test]
async fn odd_names_stand_under_a_safe_path() {
    let make = |origin: &Origin| {
        let blob = origin.object("blob", BLOB);
        let inner = origin.tree(&[("100644", b"x.yaml", &blob)]);
        origin.tree(&[
            ("100644", b"50%.yaml", &blob),
            ("100644", b"50:.yaml", &blob),
            ("100644", b"50_.yaml", &blob),
            ("100644", b"\xff.yaml", &blob),
            ("40000", b"c:\\temp", &inner),
            ("40000", b"~ana", &inner),
        ])
    };
    let files = read(make).await.unwrap();
    let odd = |entry: &Entry| if let Entry::BadName { name } = entry { name.clone() } else { "fine".to_owned() };
    let found: Vec<(String, String)> = files.iter().map(|(path, entry)| (path.to_string(), odd(entry))).collect();
    let expected = [
        ("50_.yaml", "fine"),
        ("50_.yaml_", "50%.yaml"),
        ("50_.yaml__", "50:.yaml"),
        ("_.yaml", "\\xff.yaml"),
        ("_ana", "~ana"),
        ("c__temp", "c:\\\\temp"),
    ];
    assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
}

#[tokio::test]
async fn attack_10_bytes_are_taken_as_they_are() {
    let attributes = b"* filter=lfs eol=crlf\n";
    let make = |origin: &Origin| {
        let (crlf, rules) = (origin.object("blob", b"a: 1\r\n\0"), origin.object("blob", attributes));
        origin.tree(&[("100644", b".gitattributes", &rules), ("100644", b"a.yaml", &crlf)])
    };
    let files = read(make).await.unwrap();
    assert!(matches!(&files[&path("a.yaml")], Entry::File { bytes, .. } if **bytes == *b"a: 1\r\n\0"));
}

#[tokio::test]
async fn attack_13_a_large_file_is_an_error_of_its_own() {
    let make = |origin: &Origin| {
        let (small, large) = (origin.object("blob", b"123"), origin.object("blob", b"12345"));
        origin.tree(&[("100644", b"large", &large), ("100644", b"small", &small)])
    };
    let files = read_within(make, |config| config.limits.blob_bytes = 4).await.unwrap();
    assert!(matches!(files[&path("large")], Entry::TooLarge { size: 5, .. }));
    assert!(matches!(files[&path("small")], Entry::File { .. }));
}

const POLICY: &[u8] = b"apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
    a: {path: teams/a, namespaces: [a], clusters: [home]}\n    b: {path: teams/b, namespaces: [b], clusters: [home]}\n";

/// A repository of two tenants: `a` with a manifest and a text, `b` with so many manifests, and so many files beside them.
fn tenants(origin: &Origin, of_b: usize, beside: usize, rest: &[(&str, &[u8], &str)]) -> String {
    let blob = origin.object("blob", BLOB);
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("{n:06}.yaml")).collect();
        origin.tree(&names.iter().map(|name| ("100644", name.as_bytes(), blob.as_str())).collect::<Vec<_>>())
    };
    let a = origin.tree(&[("100644", b"README.md", &blob), ("100644", b"rollout.yaml", &blob)]);
    let (b, docs) = (many(of_b), many(beside));
    let teams = origin.tree(&[("40000", b"a", &a), ("40000", b"b", &b)]);
    let policy = origin.object("blob", POLICY);
    let all: [(&str, &[u8], &str); 3] =
        [("40000", b"docs", &docs), ("40000", b"teams", &teams), ("100644", b"tidegate.yaml", &policy)];
    let mut all: Vec<_> = all.into_iter().chain(rest.iter().copied()).collect();
    all.sort_by_key(|(_, name, _)| name.to_vec());
    origin.tree(&all)
}

/// What is declared, one line for each entry.
fn shown(files: &Files) -> Vec<String> {
    let shown = |(path, entry): (&tidegate::manifest::files::RepoPath, &Entry)| match entry {
        Entry::File { .. } => path.to_string(),
        Entry::Unread { why } => format!("{path}: {why}"),
        Entry::TooLarge { .. } | Entry::BadName { .. } | Entry::Symlink | Entry::Submodule => {
            format!("{path}: {entry:?}")
        }
    };
    files.iter().map(shown).collect()
}

#[tokio::test]
async fn attack_103_what_lies_beside_the_tenants_directories_may_be_of_any_size() {
    const TEXT: &str = "teams/a/README.md: only files that end in .yaml, .yml or .json are read";
    let cache = Cache::new();
    let origin = &cache.objects;
    let store = cache.store(|config| config.limits.entries = 20);
    let none = Sought::default();
    let commit = |tree: &str| id(origin.commit_tree("any", tree));
    let large = commit(&tenants(origin, 2, 101_000, &[]));
    let declared = store.declared(&large, &none, None).await.unwrap().unwrap();
    let two = [TEXT, "teams/a/rollout.yaml", "teams/b/000000.yaml", "teams/b/000001.yaml", "tidegate.yaml"];
    assert_eq!(shown(&declared.files), two);
    // Other files beside them are the same thing; other manifests are not.
    let other = commit(&tenants(origin, 2, 5, &[]));
    assert_eq!(store.declared(&other, &none, Some(&declared.known)).await.unwrap(), None);
    let more = commit(&tenants(origin, 3, 5, &[]));
    assert_ne!(store.declared(&more, &none, Some(&declared.known)).await.unwrap(), None);

    // Whoever has too much, or what no Git would check out, stops for itself.
    let stopped = |why: &str| {
        vec![TEXT.to_owned(), "teams/a/rollout.yaml".to_owned(), format!("teams/b: {why}"), "tidegate.yaml".to_owned()]
    };
    let crowded = commit(&tenants(origin, 21, 0, &[]));
    let files = store.declared(&crowded, &none, None).await.unwrap().unwrap().files;
    assert_eq!(shown(&files), stopped("the number of entries in the tree exceeds the limit of 20"));
    let small = cache.store(|config| config.limits.tenant_bytes = 3 * BLOB.len() as u64);
    let files = small.declared(&more, &none, None).await.unwrap().unwrap().files;
    assert_eq!(files.len(), 6, "{files:?}");
    let heavy = commit(&tenants(origin, 4, 0, &[]));
    let files = small.declared(&heavy, &none, None).await.unwrap().unwrap().files;
    assert_eq!(shown(&files), stopped("the size of all files in bytes exceeds the limit of 42"));
    let blob = origin.object("blob", BLOB);
    let bad = origin.tree(&[("100644", b"..", &blob)]);
    let a = origin.tree(&[("100644", b"rollout.yaml", &blob)]);
    let teams = origin.tree(&[("40000", b"a", &a), ("40000", b"b", &bad)]);
    let policy = origin.object("blob", POLICY);
    let bad = commit(&origin.tree(&[("40000", b"teams", &teams), ("100644", b"tidegate.yaml", &policy)]));
    let files = store.declared(&bad, &none, None).await.unwrap().unwrap().files;
    assert_eq!(shown(&files)[1], "teams/b: the tree is refused at \"teams/b/..\": the name means a directory");
}

#[tokio::test]
async fn what_is_recorded_is_found_wherever_it_lies() {
    let cache = Cache::new();
    let origin = &cache.objects;
    let blob = origin.object("blob", BLOB);
    let moved = origin.tree(&[("100644", b"web.rollout.yaml", &blob), ("100644", b"web.yaml", &blob)]);
    let tip = id(origin.commit_tree("any", &tenants(origin, 0, 3, &[("40000", b"apps", &moved)])));
    let store = cache.store(|_| {});
    let found = async |file: &str, rollout: Option<&str>| {
        let rollouts = rollout.into_iter().map(|rollout| rollout.parse().unwrap()).collect();
        let sought = Sought { files: [path(file)].into(), rollouts };
        shown(&store.declared(&tip, &sought, None).await.unwrap().unwrap().files)
    };
    let all = [
        "teams/a/README.md: only files that end in .yaml, .yml or .json are read",
        "teams/a/rollout.yaml",
        "tidegate.yaml",
    ];
    assert_eq!(found("teams/a/rollout.yaml", None).await, all);
    let also = [&["apps/web.rollout.yaml"], &all[..]].concat();
    assert_eq!(found("apps/web.rollout.yaml", None).await, also);
    assert_eq!(found("teams/a/rollout.yaml", Some("shop/web")).await, also, "another one lies where it was");
}

#[tokio::test]
async fn attack_12_large_trees_stop_at_their_limits() {
    let many = |origin: &Origin| {
        let blob = origin.object("blob", b"");
        let names: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
        let entries: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), blob.as_str())).collect();
        let inner = origin.tree(&entries);
        // Each level holds the one below many times: a small repository with very many paths.
        let entries: Vec<_> = names.iter().map(|name| ("40000", name.as_bytes(), inner.as_str())).collect();
        origin.tree(&entries)
    };
    let deep = |origin: &Origin| {
        let blob = origin.object("blob", b"");
        let mut tree = origin.tree(&[("100644", b"x", &blob)]);
        for _ in 0..10 {
            tree = origin.tree(&[("40000", b"d", &tree)]);
        }
        tree
    };
    let heavy = |origin: &Origin| {
        let blob = origin.object("blob", &[b'x'; 600]);
        origin.tree(&[("100644", b"a", &blob), ("100644", b"b", &blob)])
    };
    for (what, result) in [
        ("entries", read_within(many, |config| config.limits.entries = 5_000).await),
        ("depth", read_within(deep, |config| config.limits.depth = 10).await),
        ("size", read_within(heavy, |config| config.limits.fetch_bytes = 1_000).await),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(&error, GitError::Limit { what: found, .. } if found.contains(what)), "{what}: {error}");
    }
}
