//! A real sshd on 127.0.0.1: it lets some keys in, to whatever this user may do, or to one command.

use super::cluster::eventually;
use super::origin::Origin;
use super::port::Port;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// What a key is good for that runs nothing else: it says nothing, or has no end.
const COMMANDS: [(&str, &str); 2] =
    [("silent", "exec sleep 600"), ("endless", "while printf '003a%040d refs/heads/a\\n' 1; do :; done")];

/// The running server; it ends with this value.
pub(crate) struct Sshd {
    dir: tempfile::TempDir,
    port: Port,
    user: String,
    /// How it is started, one word each.
    program: Vec<String>,
    child: Child,
}

impl Sshd {
    /// Starts one on a free port, which lets clients choose the version of Git's protocol.
    pub(crate) async fn start() -> Self {
        Self::with("AcceptEnv GIT_PROTOCOL\n").await
    }

    /// The same with these lines in its configuration.
    pub(crate) async fn with(more: &str) -> Self {
        let script = crate::support::root::root().join("tests/testbed/sshd");
        let found = said(Command::new(script).stderr(Stdio::inherit())).await;
        let program: Vec<String> = found.lines().map(str::to_owned).collect();
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        for key in ["host", "client", "stranger", "silent", "endless"] {
            let mut command = Command::new("ssh-keygen");
            said(command.args(["-q", "-t", "ed25519", "-N", "", "-C", key, "-f"]).arg(at(key))).await;
        }
        let mut authorized = read("client.pub");
        for (key, command) in COMMANDS {
            authorized += &format!("command=\"{command}\" {}", read(&format!("{key}.pub")));
        }
        std::fs::write(at("authorized"), authorized).unwrap();
        let port = Port::held();
        let address = port.address;
        let config = format!(
            "ListenAddress {address}\nAuthorizedKeysFile {}\nUsePAM no\nStrictModes no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n{more}",
            at("authorized").display()
        );
        std::fs::write(at("sshd_config"), config).unwrap();
        let known = |key: &str| format!("[{}]:{} {}", address.ip(), address.port(), read(key));
        std::fs::write(at("known_hosts"), known("host.pub")).unwrap();
        std::fs::write(at("other_hosts"), known("stranger.pub")).unwrap();
        std::fs::write(at("no_hosts"), "").unwrap();
        let child = serve(&program, dir.path(), &port, "host").await;
        let user = said(Command::new("id").arg("-un")).await.trim().to_owned();
        Self { dir, port, user, program, child }
    }

    /// From now on it shows that key of [`Self::file`] as its own, as a host does that was set up anew, or somebody in its place.
    pub(crate) async fn show(&mut self, key: &str) {
        self.child.kill().await.unwrap();
        self.child = serve(&self.program, self.dir.path(), &self.port, key).await;
    }

    /// How often its log says that.
    pub(crate) fn said(&self, words: &str) -> usize {
        std::fs::read_to_string(self.file("log")).unwrap().matches(words).count()
    }

    /// Of what the test needs. Private keys: `client`, which may do anything, `silent` and `endless`, which run one command, and
    /// `stranger`, who may not enter. Lists of hosts: `known_hosts`; `other_hosts`, another key; `no_hosts`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A repository with two commits on main.
    pub(crate) fn origin(&self) -> Origin {
        let origin = Origin::init(&self.file("fleet.git"));
        origin.commit("main", &[("teams/shop/rollout.yaml", Some(b"a: 1\n"))], "first");
        origin.commit("main", &[("teams/shop/rollout.yaml", Some(b"a: 2\n"))], "second");
        origin
    }

    /// The URL of a repository on this machine.
    pub(crate) fn url(&self, path: &Path) -> String {
        format!("ssh://{}@{}{}", self.user, self.port.address, path.display())
    }
}

async fn serve(program: &[String], dir: &Path, port: &Port, key: &str) -> Child {
    let log = OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).args(["-D", "-e", "-f"]).arg(dir.join("sshd_config")).arg("-h").arg(dir.join(key));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    let child = command.spawn().unwrap();
    eventually("an sshd that listens", async || TcpStream::connect(port.address).await.ok()).await;
    child
}

async fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
