//! `tidegate doctor`: reads back all that the controller needs, and says what is missing and how to set it.

mod app;
mod checks;
mod fleet;
mod look;
mod pinned;
mod signers;
mod teams;

#[cfg(test)]
mod tests;

use super::Exit;
use super::failure::Failure;
use super::run;
use super::screen::Screen;
use checks::{Check, Found, text};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Check what the controller needs, and say what is missing
#[derive(Debug, Args)]
#[command(
    long_about = "Checks what the controller needs, and says what is missing, with the setting or the command that mends it: the \
                  repository, the API server, the controller's rights there, the kinds that rollouts need, clocks, and what the Git \
                  host holds for each branch, for the controller's account and its webhook. Nothing is changed anywhere.\n\n\
                  It looks with the Installation's own credentials: run it where the controller runs, else the rights are those of \
                  somebody else. What a host does not tell its account could not be looked at, which is no failure. Ends with 1 if \
                  something is broken.",
    after_help = "Examples:
  kubectl exec -n tidegate deploy/tidegate-prod -- tidegate doctor
  tidegate doctor --config installation.yaml
  tidegate doctor -o json | jq '.checks[] | select(.found == \"broken\")'"
)]
pub(super) struct DoctorArgs {
    /// The file that describes the controller (kind Installation)
    #[arg(short, long, value_name = "FILE", env = "TIDEGATE_CONFIG", default_value = run::IN_POD)]
    config: PathBuf,
    /// Where a copy of the repository is kept meanwhile; if it cannot be, in a temporary place
    #[arg(long, value_name = "DIR", default_value = "/var/cache/tidegate", env = "TIDEGATE_CACHE")]
    cache: PathBuf,
}

/// All that was looked at.
#[derive(Debug, Serialize)]
struct Examined {
    checks: Vec<Check>,
}

/// Looks, and says.
pub(super) async fn command(args: DoctorArgs, screen: &Screen) -> Result<Exit, Failure> {
    let installation = run::installation(&args.config, "--config")?;
    let checks = look::all(&installation, &args.cache).await?;
    let broken = checks.iter().any(|check| check.found == Found::Broken);
    screen.show(&Examined { checks }, |examined, ink| text(&examined.checks, ink))?;
    Ok(if broken { Exit::Findings } else { Exit::Done })
}
