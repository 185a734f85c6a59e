//! A person's own way to sign: OpenSSH's `ssh-keygen`, as `git commit -S` starts it, with their agent, their passphrase and their
//! token. At a desk alone; the controller signs with a key in its memory.

use super::GitError;
use crate::record::text::plain;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a person's settings say of signing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keygen {
    /// `gpg.ssh.program`, else `ssh-keygen`.
    pub(super) program: String,
    /// `user.signingKey`: the file of a key, or of its public half.
    pub(super) key: PathBuf,
}

impl Keygen {
    /// The signature of a content. It may ask the person.
    ///
    /// # Errors
    /// `Config` when there is none, with the program's own words.
    pub(super) fn sign(&self, content: &[u8]) -> Result<String, GitError> {
        let failed = |why: String| {
            let (program, key) = (plain(&self.program), self.key.display());
            GitError::Config(format!("{program} did not sign with {key} (user.signingKey): {why}"))
        };
        let broken = |error: std::io::Error| failed(error.to_string());
        let mut child = self.command().spawn().map_err(broken)?;
        let mut input = child.stdin.take().expect("piped, because command() asks for it");
        // A commit without its files is small, and read to its end before anything is said.
        input.write_all(content).map_err(broken)?;
        drop(input);
        let said = child.wait_with_output().map_err(broken)?;
        let signature = String::from_utf8(said.stdout).unwrap_or_default();
        if said.status.success() && signature.starts_with("-----BEGIN SSH SIGNATURE-----") {
            Ok(signature)
        } else {
            Err(failed(plain(String::from_utf8_lossy(&said.stderr).trim())))
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what a person's Git starts to sign, with their environment, at their desk"
    )]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-Y", "sign", "-n", "git", "-f"]).arg(&self.key);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
