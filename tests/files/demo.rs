//! The world in a process, shown by the real program as a newcomer meets it.

use crate::tree::source_dir;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The demo, as somebody calls it by its path.
fn called() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    // Cargo, which runs the tests, says that it runs the program.
    command.env_remove("CARGO_PKG_NAME").arg("demo").kill_on_drop(true);
    command
}

async fn demo(arguments: &[&str]) -> Output {
    called().args(arguments).output().await.unwrap()
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

/// The recording that the README shows tells the present story: its chapters, its phases, and what it waits on.
fn recording_is_of(told: &[String]) {
    let read = |path: &str| std::fs::read_to_string(source_dir().join(path)).unwrap();
    assert!(read("README.md").contains("(docs/demo.svg)"), "the README shows the recording");
    let recorded = read("docs/demo.svg");
    assert!(recorded.len() < 200_000, "{}", recorded.len());
    let shown: Vec<&str> = recorded.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text).collect();
    let shows = |part: &str| shown.iter().any(|text| text.contains(part));
    let chapters: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("Ana pushes") || line.starts_with("Users"))
        .collect();
    assert_eq!(chapters.len(), 4, "{told:#?}");
    let rollout = read("src/cli/demo/rollout.yaml");
    let phases: Vec<String> =
        rollout.lines().filter_map(|line| Some(format!("● {}", line.trim().strip_prefix("- name: ")?))).collect();
    assert_eq!(phases.len(), 2, "{rollout}");
    let parts = ["Approval: ", "m", "merge the request", "90 % stable, 10 % new", "It goes back at once: "];
    for part in parts.into_iter().chain(chapters).chain(phases.iter().map(String::as_str)) {
        assert!(shows(part), "docs/demo.svg is not of the present demo, make it anew with docs/demo/record: {part:?}");
    }
}

#[tokio::test]
async fn a_newcomer_sees_a_good_version_go_out_and_a_bad_one_come_back() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("Ana's world");
    let shown = directory.display().to_string();
    let output = demo(&["--auto", "--speed", "max", "--dir", &shown]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = told(&output);
    let good = [
        "Ana pushes an application to main.",
        "first sight → steady (initialized)",
        "Ana pushes version 2.",
        "nothing of the new version runs",
        "It waits for a person, who merges tidegate/world/propose/shop/podinfo/1-",
        "Ana merges it.",
        "prepare → tenth (weight 10)",
        "10 of 100 requests go to the new version, and its errors are counted.",
        "90 % stable, 10 % new",
        "tenth → half (weight 50)",
        "50 % stable, 50 % new",
        "half → shift (weight 100)",
        "0 % stable, 100 % new",
        "retire → steady (succeeded)",
    ];
    let bad = [
        "Ana pushes version 3, which answers every fourth request with an error.",
        "Ana merges it.",
        "prepare → tenth (weight 10)",
        "tenth → reverting (split)",
        "It goes back at once: tenth: errors: 0.25 at ",
        "100 % stable, 0 % new",
        "reverting (retire) → failed",
        "It is not tried again: tenth: errors: 0.25 at ",
        "Users are on version 2 again, and nobody had to do anything.",
        "-revert undoes version 3 on main",
        "The repository stays in ",
        "./try",
    ];
    says(&told, &[good.as_slice(), &bad].concat());
    recording_is_of(&told);
    // What it says to look at is there.
    let commands: Vec<&str> = told.iter().map(String::as_str).filter(|line| line.contains("fleet.git")).collect();
    let repository = directory.join("fleet.git").display().to_string();
    let [stays, log, why] = &commands[..] else { panic!("{commands:#?}") };
    assert!(stays.contains(&repository), "{stays}");
    let (mut shell, mut other) = (Command::new("sh"), Command::new("sh"));
    let said = shell.args(["-c", log]).output().await.unwrap();
    assert!(String::from_utf8(said.stdout).unwrap().lines().count() > 20, "{log}");
    let said = String::from_utf8(other.args(["-c", why]).output().await.unwrap().stdout).unwrap();
    assert!(said.starts_with("shop/podinfo  Failed, since ") && said.contains("ago)"), "{why}: {said}");
    let again = demo(&["--auto", "--speed", "max", "--dir", &shown]).await;
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already; name a new directory"));
}

#[tokio::test]
async fn who_ends_the_run_of_the_good_version_is_told_so() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("world");
    let repository = directory.join("fleet.git").display().to_string();
    let mut demo = called().arg("--dir").arg(&directory).stdout(Stdio::piped()).spawn().unwrap();
    let (mut picture, mut written) = (demo.stdout.take().unwrap(), Vec::new());
    while !String::from_utf8_lossy(&written).contains("prepare → tenth") {
        assert_ne!(picture.read_buf(&mut written).await.unwrap(), 0, "{}", String::from_utf8_lossy(&written));
    }
    // While it is stopped its clock stands, however long the words take on a busy machine.
    let id = demo.id().unwrap().to_string();
    let signal = async |name: &str| Command::new("kill").args([name, &id]).status().await.unwrap().success();
    assert!(signal("-STOP").await);
    // Nobody is asked, so a word is meant only if it says so. The demo is the same after the first.
    for (more, code) in [([].as_slice(), 2), (&["--yes"], 0)] {
        let mut abort = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        abort.args(["abort", "shop/podinfo", "--repo", &repository]).args(more).stdin(Stdio::null());
        let said = abort.output().await.unwrap();
        assert_eq!(said.status.code(), Some(code), "{}", String::from_utf8_lossy(&said.stderr));
    }
    assert!(signal("-CONT").await);
    picture.read_to_end(&mut written).await.unwrap();
    let output = Output { status: demo.wait().await.unwrap(), stdout: written, stderr: Vec::new() };
    assert!(output.status.success());
    let wanted = ["Users stay on version 1, as somebody has ended the run.", "-revert undoes version 2 on main"];
    says(&told(&output), &wanted);
}

/// The demo with its directory below this one, left after its first line: what it printed.
async fn left(scratch: &Path, leave: impl AsyncFnOnce(&mut Child, &mut Vec<u8>)) -> String {
    let mut command = called();
    let mut demo = command.env("TMPDIR", scratch).stdout(Stdio::piped()).spawn().unwrap();
    let mut written = Vec::new();
    while !String::from_utf8_lossy(&written).contains("first sight") {
        assert_ne!(demo.stdout.as_mut().unwrap().read_buf(&mut written).await.unwrap(), 0);
    }
    assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 1);
    leave(&mut demo, &mut written).await;
    assert!(demo.wait().await.unwrap().success());
    String::from_utf8(written).unwrap()
}

#[tokio::test]
async fn who_leaves_before_the_end_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let words = left(scratch.path(), async |demo, written| {
        let id = demo.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
        demo.stdout.as_mut().unwrap().read_to_end(written).await.unwrap();
    });
    let words = words.await;
    assert!(
        words.contains("Nothing of it stays. To look into the repository: ") && words.contains(" demo --dir DIR"),
        "{words}"
    );
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    // Nor who reads no further, as with `| head`.
    left(scratch.path(), async |demo, _| drop(demo.stdout.take())).await;
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// The demo in a terminal that `script` makes, into which these bytes are typed as soon as it is drawn on; all that it wrote.
async fn on_a_terminal(arguments: &str, typed: &[u8]) -> String {
    let mut script = Command::new("script");
    let command = format!("{} demo {arguments}", env!("CARGO_BIN_EXE_tidegate"));
    script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]).env("TERM", "xterm");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (mut keyboard, mut picture) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut written = Vec::new();
    while !String::from_utf8_lossy(&written).contains("leave") {
        assert_ne!(picture.read_buf(&mut written).await.unwrap(), 0, "{}", String::from_utf8_lossy(&written));
    }
    keyboard.write_all(typed).await.unwrap();
    picture.read_to_end(&mut written).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    String::from_utf8_lossy(&written).into_owned()
}

#[tokio::test]
async fn a_terminal_is_given_back_however_the_demo_ends() {
    let scratch = tempfile::tempdir().unwrap();
    for (n, (options, typed)) in
        [("--auto --speed max", ""), ("--speed 1", "q"), ("--speed 1", "\u{3}")].iter().enumerate()
    {
        let directory = scratch.path().join(n.to_string()).display().to_string();
        let written = on_a_terminal(&format!("{options} --dir {directory}"), typed.as_bytes()).await;
        let (before, rest) = written.split_once("\u{1b}[?1049h").expect("the demo draws on a screen of its own");
        let (picture, after) = rest.split_once("\u{1b}[?1049l").expect("the screen is given back");
        assert!(
            before.trim().is_empty() && picture.contains("tidegate demo") && picture.contains("\u{1b}[?25h"),
            "{written:?}"
        );
        assert!(after.contains(&format!("The repository stays in {directory}/fleet.git. Look around:")), "{after}");
    }
}
