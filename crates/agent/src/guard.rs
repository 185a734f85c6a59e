//! What stands between the agent and a driver: it ends the driver, and all of its process group, as soon as the agent lets go of it or dies.
//!
//! Without it a driver that hangs would go on beside the agent that is started next, and undo what that one restores.

use crate::store::lock_at;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;

/// What the agent says once it is there to wait.
pub(crate) const GO: u8 = b'g';

/// Starts a driver, waits for it, and ends it early when standard input does. Holds the lock meanwhile. The code is the driver's, or 128 and the
/// number of the signal that has ended it.
///
/// # Errors
/// When the lock cannot be had, or the driver not be started.
#[expect(clippy::disallowed_methods, reason = "the driver that the installation names, and nothing else")]
pub fn guard(lock: &Path, program: &[OsString]) -> io::Result<u8> {
    let lock = lock_at(lock)?;
    lock.lock()?;
    let mut word = [0];
    if io::stdin().read(&mut word)? == 0 || word != [GO] {
        return Ok(128);
    }
    let (name, arguments) = program.split_first().ok_or_else(|| io::Error::other("no driver is named"))?;
    let mut command = std::process::Command::new(name);
    let mut child = command.args(arguments).stdin(Stdio::null()).process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    std::thread::spawn(move || {
        // It ends with the agent, or with the agent's patience.
        while matches!(io::stdin().read(&mut [0]), Ok(1..)) {}
        end(group);
    });
    let status = child.wait()?;
    // What it has left behind would hold its output open.
    end(group);
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
    Ok(u8::try_from(code).unwrap_or(255))
}

fn end(group: Pid) {
    // Who is not there any more has ended.
    kill_process_group(group, Signal::KILL).ok();
}
