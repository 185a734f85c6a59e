//! What the commands say of files, repositories and mistakes.

use crate::support::command::{Said, example, spawn};
use crate::support::origin::Origin;
use crate::tree::source_dir;
use std::path::Path;
use tokio::process::Command;

/// Runs tidegate in a directory, for somebody without settings.
async fn tidegate(dir: &Path, arguments: &[&str]) -> Said {
    spawn(dir, Command::new(env!("CARGO_BIN_EXE_tidegate")).current_dir(dir).args(arguments)).await
}

#[tokio::test]
async fn who_cannot_be_asked_has_to_say_yes() {
    let dir = tempfile::tempdir().unwrap();
    for word in ["abort", "rollback", "delete"] {
        let said = tidegate(dir.path(), &[word, "shop/podinfo"]).await;
        assert!(said.err.lines().count() == 1 && said.err.contains("pass --yes"), "{}", said.err);
        said.ends(2);
    }
}

#[tokio::test]
async fn a_reason_that_would_be_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = tidegate(dir.path(), &["hold", "shop/podinfo", "--reason", &"ü".repeat(1_025)]).await;
    assert!(said.err.contains("has 1025 characters; at most 1024"), "{}", said.err);
    said.ends(2);
    let said = tidegate(dir.path(), &["hold", "shop/podinfo", "--reason", &"ü".repeat(1_024)]).await;
    assert!(said.err.contains("is in no Git clone"), "{}", said.err);
    said.ends(2);
}

#[tokio::test]
async fn files_are_those_of_the_repository_that_a_directory_lies_in() {
    let home = tempfile::tempdir().unwrap();
    let (home, shown) = (home.path(), |path: &Path| path.canonicalize().unwrap().display().to_string());
    let clone = home.join("clone");
    for (path, text) in example("shop") {
        std::fs::create_dir_all(clone.join(&path).parent().unwrap()).unwrap();
        std::fs::write(clone.join(&path), text).unwrap();
    }
    let below = clone.join("teams/shop");
    // No repository, or one that is no clone of another: there is nothing that the files could be compared with.
    let said = tidegate(&below, &["plan"]).await;
    let missing = format!("error: the directory {} is in no Git clone;", shown(&clone));
    assert!(said.err.starts_with(&missing) && said.err.contains("tidegate plan --without-record"), "{}", said.err);
    said.ends(2);
    spawn(home, Command::new("git").arg("init").arg("--quiet").arg(&clone)).await.ends(0);
    let said = tidegate(&below, &["plan"]).await;
    let missing = format!("error: the clone {} has no remote \"origin\";", shown(&clone));
    assert!(said.err.starts_with(&missing) && said.err.contains("tidegate plan --without-record"), "{}", said.err);
    said.ends(2);
    let plan = tidegate(&below, &["plan", "--without-record"]).await.ends(0);
    assert!(plan.contains("shop/podinfo  first sight") && plan.contains("Compared with no record"), "{plan}");
    assert_eq!(tidegate(&below, &["validate"]).await.ends(0), tidegate(&clone, &["validate"]).await.ends(0));

    // Without a policy it is no repository of ours.
    std::fs::remove_file(clone.join("tidegate.yaml")).unwrap();
    std::fs::write(home.join("tidegate.yaml"), "that of another repository").unwrap();
    let said = tidegate(&below, &["plan", "--without-record"]).await;
    assert!(said.err.contains(&format!("there is no tidegate.yaml in {},", shown(&below))), "{}", said.err);
    said.ends(2);
    let text = tidegate(&clone, &["validate"]).await.ends(1);
    assert!(text.contains(&format!("there is no policy in {}\n", shown(&clone))), "{text}");
}

/// What `helm uninstall` asks: a record that is gone is no proof that nothing is open.
#[tokio::test]
async fn without_a_record_nothing_is_open_only_where_nothing_is_declared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet.git");
    tidegate::git::create_bare(&path).unwrap();
    let origin = Origin::at(&path);
    let repo = path.display().to_string();
    let ask = async || {
        tidegate(dir.path(), &["status", "--open", "--exit-code", "--instance", "prod", "--repo", &repo]).await
    };
    // Another branch may be meant.
    assert!(ask().await.err.contains("its record is missing, and main declares rollouts, or cannot be read\n"));
    origin.commit("main", &[("README.md", Some(b"soon"))], "first");
    assert_eq!(ask().await.ends(0), "No run of prod is open.\n");
    let files = example("shop");
    let files: Vec<(&str, Option<&[u8]>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
    origin.commit("main", &files, "a rollout");
    let said = ask().await;
    assert!(
        said.err.contains("its record is missing, and main declares rollouts, or cannot be read\n"),
        "{}",
        said.err
    );
    assert!(said.err.contains("tidegate/prod/state"), "{}", said.err);
    said.ends(1);
    // One that cannot even be told by its name counts, too.
    let all: Vec<(&str, Option<&[u8]>)> = files.iter().map(|(path, _)| (*path, None)).collect();
    origin.commit("main", &[&all[..], &[("teams/shop/rollout.yaml", Some(b"{"))]].concat(), "broken");
    ask().await.ends(1);
}

#[tokio::test]
async fn warnings_fail_a_strict_validation_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in example("shop") {
        std::fs::create_dir_all(dir.path().join(&path).parent().unwrap()).unwrap();
        let text = if path.ends_with("podinfo.yaml") { text.replace("  replicas: 2", "  replica: 2") } else { text };
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    let text = tidegate(dir.path(), &["validate"]).await.ends(0);
    assert!(text.contains("warning[UnknownField]") && text.ends_with(", 0 errors, 1 warning\n"), "{text}");
    assert_eq!(tidegate(dir.path(), &["validate", "--strict"]).await.ends(1), text);
    // Without warnings it changes nothing.
    tidegate(&source_dir(), &["validate", "--strict", "examples-repo"]).await.ends(0);
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file").display().to_string();
    std::fs::write(&file, "").unwrap();
    let gone = dir.path().join("gone").display().to_string();
    let cases: [(&[&str], &str, i32); 6] = [
        (&["status", "--repo", &file], "is a file; a repository is a directory, or a URL", 2),
        (&["status", "--repo", &format!("file://{file}")], "is a file; a repository is a directory, or a URL", 2),
        (&["status", "--repo", &gone], "there is no repository at", 1),
        (&["man", "--dir", &file], "cannot make the directory", 1),
        (&["validate", &gone], "cannot read", 2),
        (&["plan", &gone], "cannot read", 2),
    ];
    for (arguments, why, code) in cases {
        let said = tidegate(dir.path(), arguments).await;
        let name = if arguments.contains(&gone.as_str()) { &gone } else { &file };
        assert!(said.err.contains(why) && said.err.contains(name.as_str()), "{arguments:?}: {}", said.err);
        assert_eq!(said.code, code, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_used_are_named() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    std::fs::write(at("key"), "ssh-ed25519 canary").unwrap();
    let said = tidegate(home.path(), &["state", "verify", "--trusted", &at("key")]).await;
    assert!(said.err.contains("key:1: what follows the kind of the key is not base64"), "{}", said.err);
    said.ends(2);
    let said = tidegate(home.path(), &["state", "adopt", "--yes", "--key", &at("key")]).await;
    assert!(said.err.contains("this is no private key of OpenSSH") && !said.err.contains("canary"), "{}", said.err);
    said.ends(2);
    let said = tidegate(home.path(), &["state", "restore", "main", "--key", &at("key")]).await;
    assert!(said.err.contains("40"), "{}", said.err);
    said.ends(2);
}
