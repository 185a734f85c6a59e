//! A Git server behind SSH, reached by OpenSSH's client: the only program that is ever started, and only for such a URL.
//!
//! It reads no settings of the machine or of a user, asks nobody, uses the one key and believes the one list of host keys that
//! the installation names, forwards nothing, and has no environment. What it is told was parsed before ([`SshUrl`]); it ends with
//! the operation, whatever the server does. The files are read by OpenSSH, never here.

use super::GitError;
use super::http::{Budget, Service, Version, late};
use super::remote::{RemoteConfig, SshIdentity, Timeouts};
use super::repo::blocking;
use crate::manifest::ssh_url::SshUrl;
use crate::record::text::plain;
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout, timeout_at};

/// OpenSSH's client, and where it is looked for.
const PROGRAM: &str = "ssh";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The most of what is said beside the protocol that is kept.
const REMARKS: u64 = 4 << 10;
/// How much is read at a time: what a pipe holds.
const CHUNK: usize = 64 << 10;
/// How long a program may take to end once it has nothing more to say.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a server may take to end in order: whoever is cut off may leave its hooks undone.
const FINISH: Duration = Duration::from_secs(10);

/// One repository.
#[derive(Debug)]
pub(super) struct Ssh {
    program: &'static str,
    url: SshUrl,
    identity: SshIdentity,
    timeouts: Timeouts,
}

impl Ssh {
    pub(super) fn new(url: SshUrl, config: &RemoteConfig) -> Result<Self, GitError> {
        let Some(identity) = config.ssh.clone() else {
            return Err(GitError::Config(format!("{url} needs a private key and a list of known hosts")));
        };
        for file in [&identity.key_file, &identity.known_hosts_file] {
            // In what OpenSSH is told these begin something else.
            if file.to_str().is_none_or(|file| file.contains(['"', '%', '$', '\\', '\n'])) {
                let why = "a path for OpenSSH is UTF-8 and holds no \" % $ \\ and no line's end";
                return Err(GitError::Config(format!("{}: {why}", file.display())));
            }
        }
        Ok(Self { program: PROGRAM, url, identity, timeouts: config.timeouts })
    }

    /// What an operation that starts now may take.
    pub(super) fn budget(&self, bytes: u64) -> Budget {
        Budget { deadline: Instant::now() + self.timeouts.total, bytes }
    }

    /// The failure of an operation that took too long.
    pub(super) fn late(&self, doing: &str) -> GitError {
        late(doing, self.timeouts.total)
    }

    /// Starts OpenSSH, which connects to a service, on a thread that may block: a file for it may lie on a volume that hangs.
    ///
    /// # Errors
    /// As [`Self::connect`]; `Away` when that takes too long.
    pub(super) async fn connect_aside(
        self: &Arc<Self>,
        service: Service,
        version: Version,
        budget: Budget,
    ) -> Result<Pipe, GitError> {
        let ssh = Arc::clone(self);
        let connecting = blocking(move || ssh.connect(service, version, budget));
        let late = |_| Err(self.late(&format!("{} at {}", service.name(), self.url)));
        timeout_at(budget.deadline, connecting).await.unwrap_or_else(late)
    }

    /// Starts OpenSSH, which connects to a service. Opens files: not for async workers.
    ///
    /// # Errors
    /// `Config` when OpenSSH or a file for it is not there.
    ///
    /// # Panics
    /// Outside of tokio.
    pub(super) fn connect(
        self: &Arc<Self>,
        service: Service,
        version: Version,
        budget: Budget,
    ) -> Result<Pipe, GitError> {
        let SshIdentity { key_file, known_hosts_file } = &self.identity;
        for (what, file) in [("private key", key_file), ("list of known hosts", known_hosts_file)] {
            let opened = File::open(file).map(drop);
            opened.map_err(|e| GitError::Config(format!("cannot open the {what} {}: {e}", file.display())))?;
        }
        let mut child = self.command(service, version).spawn().map_err(|error| self.not_started(&error))?;
        let piped = "piped, because command() asks for it";
        Ok(Pipe {
            doing: format!("{} at {}", service.name(), self.url),
            input: Some(child.stdin.take().expect(piped)),
            output: child.stdout.take().expect(piped),
            remarks: child.stderr.take().expect(piped),
            child,
            ssh: Arc::clone(self),
            budget,
            left: budget.bytes,
        })
    }

    fn not_started(&self, error: &std::io::Error) -> GitError {
        GitError::Config(format!(
            "{} takes OpenSSH's client, and {} cannot be started ({error}); install it, on Debian or Ubuntu as \
             openssh-client, or use the https address of the repository",
            self.url, self.program
        ))
    }

    #[expect(clippy::disallowed_methods, reason = "OpenSSH and nothing else, with these arguments and no environment")]
    fn command(&self, service: Service, version: Version) -> Command {
        let SshIdentity { key_file, known_hosts_file } = &self.identity;
        let quoted = |name: &str, file: &Path| format!("{name}=\"{}\"", file.display());
        let mut command = Command::from(std::process::Command::new(self.program));
        command.env_clear().env("PATH", PATH).args(["-T", "-F", "none"]);
        let seconds = self.timeouts.connect.as_secs().max(1);
        let settings = [
            "BatchMode=yes".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            quoted("UserKnownHostsFile", known_hosts_file),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "UpdateHostKeys=no".to_owned(),
            "CheckHostIP=no".to_owned(),
            quoted("IdentityFile", key_file),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            "PreferredAuthentications=publickey".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "ForwardAgent=no".to_owned(),
            "ForwardX11=no".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "ProxyCommand=none".to_owned(),
            "ControlPath=none".to_owned(),
            "LogLevel=ERROR".to_owned(),
            format!("ConnectTimeout={seconds}"),
        ];
        for setting in settings {
            command.arg("-o").arg(setting);
        }
        if version == Version::V2 {
            command.env("GIT_PROTOCOL", "version=2").args(["-o", "SendEnv=GIT_PROTOCOL"]);
        }
        // The path holds no quote and no blank, see SshUrl.
        let asked = format!("{} '{}'", service.name(), self.url.path());
        command.args(["-p", &self.url.port().to_string(), "-l", self.url.user(), "--", self.url.host(), &asked]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Sorts why OpenSSH ended: 255 is its own, all else the server's.
    fn sort(&self, doing: &str, code: Option<i32>, remarks: &str) -> GitError {
        let says = |words: &[&str]| words.iter().any(|word| remarks.contains(word));
        let (doing, why) = (doing.to_owned(), plain(remarks));
        let denied = |doing: String| {
            let hint = format!("check what the key {} may do there", self.identity.key_file.display());
            GitError::Denied { doing, said: why.clone(), hint }
        };
        let (hosts, known_as) = (self.identity.known_hosts_file.display(), self.url.known_as());
        match code {
            Some(255) if says(&["IDENTIFICATION HAS CHANGED"]) => GitError::HostKey {
                doing,
                why: format!(
                    "the host shows another key than {hosts} has for {known_as}: it was given a new one, or somebody else \
                     answers; nothing was sent. If the host has told of a new key, put that one into the file"
                ),
            },
            Some(255) if says(&["host key is known for", "Host key verification failed"]) => GitError::HostKey {
                doing,
                why: format!(
                    "{hosts} has no key for {known_as} that the host shows; nothing was sent. `ssh-keyscan -p {} {}` prints \
                     its keys: compare them with what the host publishes, and put them into the file ({why})",
                    self.url.port(),
                    self.url.host()
                ),
            },
            Some(255) if says(&["Permission denied", "Too many authentication failures"]) => denied(doing),
            Some(255) if says(&["No user exists for uid"]) => {
                let mend = "OpenSSH runs as a user with an entry in /etc/passwd alone: give the controller's user one";
                GitError::Config(format!("{doing}: {mend} ({why})"))
            }
            Some(255) | None => GitError::Away { doing, why },
            Some(127) => GitError::Protocol { doing, why: format!("the host has no such program: {why}") },
            Some(_) if says(&["not appear to be a git repository", "not found", "Not Found", "does not exist"]) => {
                GitError::Missing(format!("the repository {}, as far as we may see,", self.url))
            }
            Some(_) if says(&["denied", "read only", "read-only", "not allowed", "ermission"]) => denied(doing),
            Some(code) => GitError::Protocol { doing, why: format!("it ended with {code}: {why}") },
        }
    }
}

/// A connection to one service: OpenSSH, its input and its output.
pub(super) struct Pipe {
    /// What is being done, for error texts.
    pub(super) doing: String,
    ssh: Arc<Ssh>,
    child: Child,
    /// None once we have said goodbye.
    input: Option<ChildStdin>,
    output: ChildStdout,
    remarks: ChildStderr,
    budget: Budget,
    left: u64,
}

impl Pipe {
    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// `Away` when nothing comes in time, `Limit` when it is too much, else why OpenSSH ended.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, GitError> {
        let patience = self.ssh.timeouts.read;
        let until = Instant::now() + patience;
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = timeout_at(until.min(self.budget.deadline), self.output.read_buf(&mut chunk)).await;
        match read {
            Err(_) if until < self.budget.deadline => {
                let why = format!("nothing came for {} s", patience.as_secs_f32());
                return Err(GitError::Away { doing: self.doing.clone(), why });
            }
            Err(_) => return Err(self.ssh.late(&self.doing)),
            Ok(Ok(0) | Err(_)) => return self.ended().await.map_or(Ok(None), Err),
            Ok(Ok(_)) => {}
        }
        self.left = self.left.checked_sub(chunk.len() as u64).ok_or_else(|| GitError::Limit {
            what: format!("the answer to {}", self.doing),
            limit: format!("{} bytes", self.budget.bytes),
        })?;
        Ok(Some(chunk.freeze()))
    }

    /// So many bytes may come from now on.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.left = bytes;
        self.budget.bytes = bytes;
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// `Away` when it is not taken in time, else why OpenSSH ended.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        let gone = |doing: &str, why: &str| GitError::Away { doing: doing.to_owned(), why: why.to_owned() };
        let Some(input) = &mut self.input else { return Err(gone(&self.doing, "we have said goodbye already")) };
        let write = async {
            input.write_all(bytes).await?;
            input.flush().await
        };
        match timeout_at(self.budget.deadline, write).await {
            Err(_) => Err(self.ssh.late(&self.doing)),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.ended().await.unwrap_or_else(|| gone(&self.doing, &error.to_string()))),
        }
    }

    /// Ends the connection in order: the server sees the end and may finish what it does, within limits.
    pub(super) async fn leave(&mut self) {
        drop(self.input.take());
        let until = self.budget.deadline.min(Instant::now() + FINISH);
        let rest = async {
            while self.output.read_buf(&mut BytesMut::with_capacity(CHUNK)).await.is_ok_and(|count| count > 0) {}
            self.child.wait().await
        };
        timeout_at(until, rest).await.ok();
    }

    /// Why OpenSSH has ended; none if all is well with it, or if it does not say.
    async fn ended(&mut self) -> Option<GitError> {
        let mut remarks = Vec::new();
        let mut said = (&mut self.remarks).take(REMARKS);
        timeout(LEAVE, said.read_to_end(&mut remarks)).await.ok();
        let status = timeout(LEAVE, self.child.wait()).await.ok()?.ok()?;
        let remarks = String::from_utf8_lossy(&remarks);
        (!status.success()).then(|| self.ssh.sort(&self.doing, status.code(), &remarks))
    }
}

#[cfg(test)]
mod tests;
