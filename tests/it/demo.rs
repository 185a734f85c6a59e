//! The world in a process, shown by the real program as a newcomer meets it.

use std::process::Output;
use tokio::process::Command;

async fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).arg("demo").args(arguments).output().await.unwrap()
}

/// What it printed, without the times on the left, which depend on how fast the machine is.
fn told(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let stamp = |word: &str| word.contains(':') && word.bytes().all(|c| c.is_ascii_digit() || c == b':');
    let line = |line: &str| match line.trim_start().split_once("  ") {
        Some((first, rest)) if stamp(first) => rest.to_owned(),
        Some(_) | None => line.trim().to_owned(),
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// The world may say more in between, but all this, in this order.
#[track_caller]
fn says(told: &[String], wanted: &[&str]) {
    let mut rest = told.iter();
    for part in wanted {
        assert!(rest.any(|line| line.contains(part)), "{part:?} is not where it should be in {told:#?}");
    }
}

#[tokio::test]
async fn a_newcomer_sees_a_good_version_go_out_and_a_bad_one_come_back() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("world");
    let shown = directory.display().to_string();
    let output = demo(&["--auto", "--speed", "max", "--dir", &shown]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = told(&output);
    let good = [
        "Ana pushes podinfo to main.",
        "first sight → steady (initialized)",
        "Ana pushes version 2.",
        "It waits for a person, who merges tidegate/world/propose/shop/podinfo/1-",
        "Ana merges it.",
        "prepare → tenth (weight 10)",
        "90 % stable, 10 % new",
        "tenth → half (weight 50)",
        "50 % stable, 50 % new",
        "half → shift (weight 100)",
        "0 % stable, 100 % new",
        "retire → steady (succeeded)",
    ];
    let bad = [
        "Ana pushes version 3, which answers every fourth request with an error.",
        "prepare → tenth (weight 10)",
        "tenth → reverting (split)",
        "100 % stable, 0 % new",
        "reverting (retire) → failed",
        "version 3 is not tried again: tenth: errors: 0.25 at ",
        "-revert undoes it on main",
        "git -C ",
    ];
    says(&told, &[good.as_slice(), &bad].concat());
    // What it says to look at is there.
    let repository = directory.join("fleet.git");
    let mut git = Command::new("git");
    let git = git.arg("-C").arg(&repository).args(["log", "--oneline", "tidegate/world/state"]);
    let log = String::from_utf8(git.output().await.unwrap().stdout).unwrap();
    assert!(log.lines().count() > 20, "{log}");
    let again = demo(&["--auto", "--speed", "max", "--dir", &shown]).await;
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already; name a new directory"));
}
