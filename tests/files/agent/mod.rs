//! The agent as it runs on a node: its loop, its disk, real drivers behind the program's own guard, and an API server in the process.

mod api;

use api::{Api, NODE, files};
use std::ffi::OsString;
use std::fs;
use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tidegate::agent::content::ContentFiles;
use tidegate::agent::decide::AgentState;
use tidegate::agent::driver::{Driver, DriverFailure, DriverOperation};
use tidegate::agent::edge::Edge;
use tidegate::agent::probes::{self, Probes};
use tidegate::agent::run::Agent;
use tidegate::agent::store::AgentStore;
use tidegate::manifest::time::Time;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

/// A node with its directories, and the API server that it belongs to.
struct Place {
    home: TempDir,
    api: Api,
}

fn now() -> Time {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("fabric")).unwrap();
        Self { home, api: Api::new() }
    }

    fn dir(&self) -> PathBuf {
        self.home.path().join("fabric/files")
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// What is in force.
    fn in_force(&self) -> ContentFiles {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }

    /// The driver of files.
    fn own(&self) -> Vec<OsString> {
        vec![TIDEGATE.into(), "agent-driver".into(), "files".into(), self.dir().into()]
    }

    /// A driver in the shell, which is the one of files but for what `code` does: `$1` is the operation.
    fn script(&self, code: &str) -> Vec<OsString> {
        let path = self.home.path().join("driver");
        let rest = format!("exec {TIDEGATE} agent-driver files {} \"$@\"", self.dir().display());
        fs::write(&path, format!("#!/bin/sh\ncd {}\n{code}\n{rest}\n", self.home.path().display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        vec![path.into()]
    }

    fn driver(&self, program: Vec<OsString>, limit: Duration) -> Driver {
        let lock = self.home.path().join("state/driver.lock");
        Driver { own: TIDEGATE.into(), program, lock, limit, node: NODE.to_owned() }
    }

    /// A process that starts.
    fn agent(&self, program: Vec<OsString>) -> Agent {
        let (store, disk, told) = AgentStore::open(&self.state()).unwrap();
        let driver = self.driver(program, Duration::from_secs(60));
        let edge = Edge::new(self.api.client(), "network", NODE);
        let (state, probes) = (AgentState::new(disk, told), Probes::default());
        Agent { store, driver, probes, edge, startup_taint: None, clock: now, state }
    }

    /// Runs until the status says that, and tells why.
    async fn runs_until(&self, agent: &mut Agent, state: &str) -> String {
        self.runs(agent, |api| api.said().0 == state).await;
        self.api.said().1
    }

    async fn runs(&self, agent: &mut Agent, holds: impl Fn(&Api) -> bool) {
        let ends = timeout(Duration::from_secs(180), agent.run(self.api.until(holds))).await;
        ends.unwrap_or_else(|_| panic!("{:?} {:?}", self.api.said(), self.api.asked()));
    }

    /// Brings the first content into force.
    async fn with_good(&self, program: Vec<OsString>) -> ContentFiles {
        let good = files(&[("a.conf", "good")]);
        self.api.ask(&good);
        self.runs_until(&mut self.agent(program), "Applied").await;
        assert_eq!(self.in_force(), good);
        good
    }
}

#[tokio::test]
async fn n_19_a_content_is_put_into_force_and_nothing_is_asked_at_rest() {
    let place = Place::new();
    let mut agent = place.agent(place.own());
    let first = files(&[("a.conf", "one"), ("b.conf", "")]);
    place.api.ask(&first);
    assert_eq!(place.runs_until(&mut agent, "Applied").await, "");
    assert_eq!(place.in_force(), first);
    let asked = place.api.asked();
    let map = asked[1].clone();
    assert!(map.starts_with("GET fabric-"), "{map}");
    assert_eq!(asked[..4], ["GET nodeconfigs", &map, "PATCH status", "PATCH status"]);
    // The next comes by the watch, and what is in force already is not touched.
    place.runs(&mut agent, |api| api.asked().last().unwrap() == "WATCH nodeconfigs").await;
    let next = files(&[("a.conf", "two")]);
    place.api.ask(&next);
    assert_eq!(place.runs_until(&mut agent, "Applied").await, "");
    assert_eq!(place.in_force(), next);
    assert_eq!(place.api.asked()[4..].iter().filter(|asked| *asked == "GET nodeconfigs").count(), 0);
    place.api.ask_with(&next, &next, 1);
    let before = place.api.asked().len();
    place.runs_until(&mut agent, "Applied").await;
    assert_eq!(place.api.asked()[before..], ["PATCH status"]);
}

#[tokio::test]
async fn n_19_a_content_that_cuts_the_node_off_is_taken_back_without_the_api_server() {
    let place = Place::new();
    let good = place.with_good(place.own()).await;
    place.api.cut_by(place.dir().join("cut"));
    let config = place.home.path().join("probes.yaml");
    fs::write(&config, "apiServer: true\nwithin: 1s\n").unwrap();
    let mut agent = place.agent(place.own());
    agent.probes = probes::read(&config).unwrap();
    place.api.ask(&files(&[("a.conf", "bad"), ("cut", "")]));
    let why = place.runs_until(&mut agent, "Failed").await;
    assert!(why.starts_with("since the change API server fails: ") && why.contains("no route to host"), "{why}");
    assert_eq!(place.in_force(), good);
    // Started again it leaves that alone (N-21), and takes what comes next.
    let mut agent = place.agent(place.own());
    let next = files(&[("a.conf", "next")]);
    place.runs(&mut agent, |api| api.asked().last().unwrap() == "WATCH nodeconfigs").await;
    assert_eq!(place.in_force(), good);
    place.api.ask(&next);
    place.runs_until(&mut agent, "Applied").await;
    assert_eq!(place.in_force(), next);
}

#[tokio::test]
async fn n_19_what_is_not_its_digest_is_refused_until_it_is() {
    let place = Place::new();
    let good = place.with_good(place.own()).await;
    let (wanted, other) = (files(&[("a.conf", "wanted")]), files(&[("a.conf", "other")]));
    place.api.ask_with(&wanted, &other, 0);
    let mut agent = place.agent(place.own());
    let why = place.runs_until(&mut agent, "Refused").await;
    assert!(why.starts_with("DigestMismatch: ConfigMap fabric-"), "{why}");
    assert_eq!(place.in_force(), good);
    place.api.ask_with(&wanted, &wanted, 0);
    place.runs_until(&mut agent, "Applied").await;
    assert_eq!(place.in_force(), wanted);
}

#[tokio::test]
async fn n_23_a_conflict_is_told_by_its_code_and_begun_anew() {
    let place = Place::new();
    place.api.be_stale(3);
    let good = place.with_good(place.own()).await;
    assert_eq!(place.in_force(), good);
    let looks = place.api.asked().iter().filter(|asked| *asked == "GET nodeconfigs").count();
    assert_eq!(looks, 4, "{:?}", place.api.asked());
}

#[tokio::test]
async fn n_7_an_api_server_that_is_away_is_asked_again_and_nothing_is_begun() {
    let place = Place::new();
    let cut = place.home.path().join("cut");
    fs::write(&cut, "").unwrap();
    place.api.cut_by(cut.clone());
    let first = files(&[("a.conf", "one")]);
    place.api.ask(&first);
    let mut agent = place.agent(place.own());
    place.runs(&mut agent, |api| api.asked().len() == 4).await;
    assert_eq!((place.api.asked(), place.in_force()), (vec!["GET in vain".to_owned(); 4], files(&[])));
    fs::remove_file(cut).unwrap();
    place.runs_until(&mut agent, "Applied").await;
    assert_eq!(place.in_force(), first);
}

#[tokio::test]
async fn n_30_a_taint_that_cannot_be_taken_away_fails_nothing() {
    let place = Place::new();
    place.api.forbid_nodes(true);
    place.api.ask(&files(&[("a.conf", "one")]));
    let mut agent = place.agent(place.own());
    agent.startup_taint = Some("fresh".into());
    place.runs(&mut agent, |api| api.asked().iter().filter(|asked| *asked == "GET worker-1").count() > 1).await;
    assert_eq!((place.api.said().0.as_str(), place.api.taints()), ("Applied", vec!["fresh".into(), "other".into()]));
    place.api.forbid_nodes(false);
    place.runs(&mut agent, |api| api.taints() == ["other"]).await;
}

#[tokio::test]
async fn n_19_a_driver_that_is_missing_is_named_and_begins_nothing() {
    let place = Place::new();
    place.api.ask(&files(&[("a.conf", "one")]));
    let mut agent = place.agent(vec!["/nowhere/driver".into()]);
    let why = place.runs_until(&mut agent, "Refused").await;
    assert!(why.starts_with("DriverMissing: /nowhere/driver cannot be used: "), "{why}");
}

#[tokio::test]
async fn n_19_what_a_driver_may_do_wrong_is_told_and_taken_back() {
    // What try does instead, and what is said of it.
    let rows = [
        ("echo 'no such vlan: 7' >&2; exit 3", "try: ended with code 3: no such vlan: 7"),
        ("exit 0", "try ended well, and what is in force is not what check has said"),
        ("head -c 1073741824 /dev/zero", "try: killed, as it printed more than 1048576 bytes"),
        ("kill -9 $$", "try: ended with code 137: "),
    ];
    for (instead, expected) in rows {
        let place = Place::new();
        let good = place.with_good(place.own()).await;
        let program = place.script(&format!("if [ $1 = try ]; then {instead}; fi"));
        place.api.ask(&files(&[("a.conf", "bad")]));
        let why = place.runs_until(&mut place.agent(program), "Failed").await;
        assert_eq!((why.as_str(), place.in_force()), (expected.trim_end(), good), "{instead}");
    }
}

#[tokio::test]
async fn n_31_a_driver_that_restores_nothing_is_told() {
    let place = Place::new();
    place.with_good(place.own()).await;
    let program =
        place.script("if [ $1 = restore ]; then exit 0; fi\nif [ $1 = commit ]; then echo no >&2; exit 1; fi");
    let bad = files(&[("a.conf", "bad")]);
    place.api.ask(&bad);
    let why = place.runs_until(&mut place.agent(program), "RestoreFailed").await;
    assert_eq!(
        why,
        "restore ended well, and what was in force before is not; it had to go back because commit: ended with code 1: no"
    );
    assert_eq!(place.in_force(), bad);
}

/// Waits until a process is gone, or only its number is left.
async fn is_gone(pid: &str) {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let ended = async {
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(120), ended).await.unwrap();
}

/// Waits until a file holds something.
async fn written(path: &Path) -> String {
    let read = async {
        loop {
            match fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(Duration::from_secs(120), read).await.unwrap()
}

const HANGS: &str = "if [ $1 = try ]; then sleep 1000 & echo $! > pid; wait; fi";

#[tokio::test]
async fn n_19_a_driver_that_hangs_is_ended_with_its_whole_group() {
    let place = Place::new();
    fs::create_dir(place.state()).unwrap();
    let driver = place.driver(place.script(HANGS), Duration::from_secs(6));
    let why = driver.run(DriverOperation::Try, None).await.unwrap_err();
    assert_eq!(why, DriverFailure::Failed("try: killed after 6 s, which is its limit".into()));
    is_gone(&written(&place.home.path().join("pid")).await).await;
    // What a driver leaves behind keeps nobody waiting.
    let driver = place.driver(place.script("sleep 1000 & echo $! > left; exit 0"), Duration::from_secs(60));
    assert_eq!(driver.run(DriverOperation::Read, None).await, Ok(Vec::new()));
    is_gone(&written(&place.home.path().join("left")).await).await;
}

#[tokio::test]
async fn n_19_killed_in_the_middle_of_a_try_the_next_start_goes_back_and_the_api_server_is_away() {
    let place = Place::new();
    let good = place.with_good(place.own()).await;
    place.api.ask(&files(&[("a.conf", "bad")]));
    // It has taken effect, and hangs.
    let code =
        format!("if [ $1 = try ]; then {TIDEGATE} agent-driver files {} try $2; fi\n{HANGS}", place.dir().display());
    let mut agent = place.agent(place.script(&code));
    let pid = place.home.path().join("pid");
    let hung = async {
        tokio::select! {
            () = agent.run(pending()) => String::new(),
            pid = written(&pid) => pid,
        }
    };
    let hung = timeout(Duration::from_secs(180), hung).await.unwrap();
    assert_ne!(place.in_force(), good);
    // Whoever dies lets go of its guard.
    drop(agent);
    is_gone(&hung).await;

    let kubeconfig = place.home.path().join("kubeconfig");
    fs::write(
        &kubeconfig,
        "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], \
         users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}",
    )
    .unwrap();
    let mut started = Command::new(TIDEGATE)
        .args(["agent", "--node", NODE, "--namespace", "network", "--files"])
        .arg(place.dir())
        .arg("--state")
        .arg(place.state())
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let state = place.state().join("state.json");
    let restored = async {
        while place.in_force() != good || !fs::read_to_string(&state).unwrap().contains("\"doing\": null") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(180), restored).await.unwrap();
    started.kill().await.unwrap();

    // It is tried once more, with a driver that works by now.
    place.runs_until(&mut place.agent(place.own()), "Applied").await;
}

#[tokio::test]
async fn n_20_a_full_disk_begins_nothing() {
    let place = Place::new();
    let good = place.with_good(place.own()).await;
    // A device that is always full stands where the state is written.
    let beside = place.state().join("state.json.new");
    std::os::unix::fs::symlink("/dev/full", &beside).unwrap();
    let next = files(&[("a.conf", "next")]);
    place.api.ask(&next);
    let mut agent = place.agent(place.own());
    let why = place.runs_until(&mut agent, "Refused").await;
    assert!(why.starts_with("DiskUnwritable: No space left on device"), "{why}");
    assert_eq!(place.in_force(), good);
    fs::remove_file(&beside).unwrap();
    place.runs_until(&mut agent, "Applied").await;
    assert_eq!(place.in_force(), next);
}

#[tokio::test]
async fn agents_are_told_what_is_wrong_with_their_options() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("probes.yaml");
    fs::write(&file, "tcp: [there]\n").unwrap();
    let file = file.display().to_string();
    let base = ["agent", "--node", NODE, "--namespace", "network", "--state", "state"];
    let cases: [(&[&str], &str, i32); 4] = [
        (&["--files", "/a/b", "--limit", "0s"], "--limit 0s: no driver does anything in no time", 2),
        (&[], "--files <DIR>", 2),
        (&["--files", "/a/b", "--driver", "/c"], "cannot be used with", 2),
        (&["--files", "/a/b", "--probes", &file], "\"there\" is no address: expected HOST:PORT", 1),
    ];
    for (more, why, code) in cases {
        let mut command = Command::new(TIDEGATE);
        let said =
            crate::support::command::spawn(dir.path(), command.current_dir(dir.path()).args(base).args(more)).await;
        assert!(said.err.contains(why), "{}", said.err);
        assert_eq!(said.code, code);
    }
}
