//! A driver: the executable that knows how configuration is put into force on this node (docs/nodes.md has the contract).
//!
//! *Guarantees*: it is ended at its limit with all of its process group; no more of its output is kept than [`MOST_OUTPUT`]; nothing of the
//! agent's environment reaches it.

use crate::decide::InForce;
use crate::guard::GO;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tidegate_controller::manifest::hex::hex;
use tidegate_controller::record::text::plain;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The most that an operation may print, on either of its outputs.
pub const MOST_OUTPUT: u64 = 1 << 20;
/// How long the guard may take to end what it guards.
const TO_END: Duration = Duration::from_secs(10);
/// Where a driver's own programs are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a driver is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverOperation {
    /// Say whether a content can be put into force; may print what `read` will print then. Changes nothing.
    Check,
    /// Put a content into force, so that it is gone after a reboot where that is possible.
    Try,
    /// Let what was tried stay.
    Commit,
    /// Put a content into force and let it stay; without one, what was there before the first `try`.
    Restore,
    /// Print what is in force.
    Read,
}

impl DriverOperation {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Try => "try",
            Self::Commit => "commit",
            Self::Restore => "restore",
            Self::Read => "read",
        }
    }
}

/// Why an operation came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverFailure {
    /// There is no driver.
    #[error("DriverMissing: {0}")]
    Missing(String),
    /// It did not end well.
    #[error("{0}")]
    Failed(String),
}

/// The driver of this node.
#[derive(Debug, Clone)]
pub struct Driver {
    /// This program, which guards it.
    pub own: PathBuf,
    /// The driver, with what comes before the operation.
    pub program: Vec<OsString>,
    /// What the guard holds.
    pub lock: PathBuf,
    /// How long each operation may take.
    pub limit: Duration,
    /// The node, which it is told as `TIDEGATE_NODE`.
    pub node: String,
}

impl Driver {
    /// Asks the driver for an operation, and returns what it has printed.
    ///
    /// # Errors
    /// When there is no driver, it does not end well, not in time, or prints too much.
    pub async fn run(&self, operation: DriverOperation, dir: Option<&Path>) -> Result<Vec<u8>, DriverFailure> {
        self.is_there()?;
        let what = operation.as_str();
        let failed = |why: String| DriverFailure::Failed(format!("{what}: {why}"));
        let mut child = self.command(what, dir).spawn().map_err(|error| failed(error.to_string()))?;
        let asked = async {
            let mut input = child.stdin.take();
            if let Some(input) = &mut input {
                input.write_all(&[GO]).await?;
            }
            let output = output(&mut child).await;
            drop(input);
            output
        };
        let ended = timeout(self.limit, asked).await;
        // Its standard input is closed by now: the guard ends what has not ended by itself.
        let Output { status, stdout, stderr } = match ended {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => {
                self.end(child).await;
                return Err(failed(error.to_string()));
            }
            Err(_) => {
                self.end(child).await;
                return Err(failed(format!("killed after {} s, which is its limit", self.limit.as_secs_f32())));
            }
        };
        if status.success() {
            return Ok(stdout);
        }
        let said = [stderr, stdout].into_iter().find(|said| !said.trim_ascii().is_empty()).unwrap_or_default();
        let code = status.code().map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
        Err(failed(format!("ended with {code}: {}", plain(&String::from_utf8_lossy(&said)))))
    }

    /// The digest of what is in force.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn read(&self) -> Result<InForce, DriverFailure> {
        Ok(shown(&self.run(DriverOperation::Read, None).await?))
    }

    fn is_there(&self) -> Result<(), DriverFailure> {
        let name = self.program.first().cloned().unwrap_or_default();
        let missing = |why: &str| DriverFailure::Missing(format!("{} {why}", Path::new(&name).display()));
        let found = std::fs::metadata(&name).map_err(|error| missing(&format!("cannot be used: {error}")))?;
        if found.is_file() && found.permissions().mode() & 0o111 != 0 { Ok(()) } else { Err(missing("is no program")) }
    }

    fn command(&self, operation: &str, dir: Option<&Path>) -> Command {
        let mut command = Command::new(&self.own);
        command.args(["agent-driver", "guard"]).arg(&self.lock).args(&self.program).arg(operation).args(dir);
        command.env_clear().env("PATH", PATH).env("TIDEGATE_NODE", &self.node);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn end(&self, mut child: Child) {
        drop(child.stdin.take());
        if timeout(TO_END, child.wait()).await.is_err() {
            tracing::error!("a driver cannot be ended: it hangs in the kernel");
            child.start_kill().ok();
        }
    }
}

/// What is in force, as something that can be compared.
#[must_use]
pub fn shown(output: &[u8]) -> InForce {
    hex(&Sha256::digest(output))
}

async fn output(child: &mut Child) -> io::Result<Output> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(bounded(stdout), bounded(stderr))?;
    Ok(Output { status: child.wait().await?, stdout, stderr })
}

async fn bounded(from: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(MOST_OUTPUT + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > MOST_OUTPUT {
        return Err(io::Error::other(format!("killed, as it printed more than {MOST_OUTPUT} bytes")));
    }
    Ok(bytes)
}
