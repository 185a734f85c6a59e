//! `tidegate run`, and where the log goes.

use super::args::{Command, LogForm};
use super::failure::Failure;
use super::screen::Screen;
use super::{Cli, Exit};
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::RolloutId;
use crate::manifest::installation::{self, Installation};
use crate::plan::report::Wait;
use crate::reconcile::caught;
use crate::reconcile::controller::{self, Once, Options, Waiting};
use crate::record::text::plain;
use anyhow::Context;
use clap::Args;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// Run the controller
#[derive(Debug, Args)]
#[command(
    long_about = "Runs the controller: it reads desired state from Git, writes its record to Git, and moves clusters no \
                  further than that record says. Ends with SIGTERM or SIGINT after the tick that it is in.",
    after_help = "Examples:
  tidegate run --config installation.yaml
  tidegate run --config installation.yaml --once --timeout 30m
  tidegate run --config installation.yaml --log json --log-level info,kube=warn

The address of --listen serves /metrics, /healthz and /readyz."
)]
pub(super) struct RunArgs {
    /// The file that describes this controller (kind Installation)
    #[arg(short, long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    config: PathBuf,
    /// Ends as soon as nothing is left to do by itself; with 3 if something still waits
    #[arg(long)]
    once: bool,
    /// With --once: ends after this time at the latest
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "once")]
    timeout: Span,
    /// Where metrics and health are served
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", env = "TIDEGATE_LISTEN")]
    listen: SocketAddr,
    /// The directory for the Git cache; it may be lost at any time
    #[arg(long, value_name = "DIR", default_value = "/var/cache/tidegate", env = "TIDEGATE_CACHE")]
    cache: PathBuf,
    /// What tells this process from others of its instance. Default: a name made up
    #[arg(long, value_name = "NAME", env = "TIDEGATE_IDENTITY")]
    identity: Option<String>,
    /// What is logged, as a filter of tracing-subscriber: `info`, `tidegate=debug,kube=warn`. Default: info
    #[arg(long, value_name = "FILTER", env = "TIDEGATE_LOG_LEVEL")]
    log_level: Option<String>,
}

/// Sets the log up: on standard error, so that data on standard output stays clean.
pub(super) fn log_to_stderr(cli: &Cli) -> Result<(), Failure> {
    let asked = if let Command::Run(args) = &cli.command { args.log_level.clone() } else { None };
    let level = asked.unwrap_or_else(|| default_level(&cli.command, cli.global.verbose).to_owned());
    let filter = EnvFilter::try_new(&level).map_err(|error| {
        Failure::usage(format!("{level:?} is no log filter: {error}; expected info or tidegate=debug,kube=warn"))
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Setting it twice is the only way to fail, and this is the only place.
    let result = match cli.global.log {
        LogForm::Text => {
            log.with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never).try_init()
        }
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
    result.map_err(|error| Failure::failed(format!("the log cannot be set up: {error}")))
}

fn default_level(command: &Command, verbose: u8) -> &'static str {
    // The controller's decisions are its log; other commands print theirs.
    match verbose.min(9) + u8::from(matches!(command, Command::Run(_) | Command::Agent(_))) {
        0 => "error",
        1 => "info",
        2 => "debug,hyper=info,h2=info,tower=info",
        _ => "trace",
    }
}

/// Runs the controller.
pub(super) async fn command(args: RunArgs, screen: &Screen) -> Result<Exit, Failure> {
    let installation = installation(&args.config, "--config")?;
    caught::abort_elsewhere();
    let cache = args.cache.clone();
    let waiting = controller::run(installation, options(args), &cache).await.map_err(anyhow::Error::new)?;
    let still = still(&waiting);
    screen.print(&still)?;
    Ok(if still.is_empty() { Exit::Done } else { Exit::Waiting })
}

/// Where the controller's pod has the installation's file.
pub(super) const IN_POD: &str = "/etc/tidegate/installation/installation.yaml";

/// Reads the installation's file, which that option names; all its mistakes at once.
pub(super) fn installation(path: &Path, option: &str) -> Result<Installation, Failure> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failure::usage(format!(
                "there is no {}: name the file that describes the controller (kind Installation) with {option}; the controller's \
                 pod has it at {IN_POD}",
                path.display()
            )));
        }
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    // Diagnostics point into a file by a path as a repository has it: the file's own name will do.
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("installation.yaml");
    let name: RepoPath = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    installation::parse(&name, &bytes).map_err(|found| {
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        Failure::failed(format!("{} is not a valid installation:\n{}", path.display(), lines.join("\n")))
    })
}

fn options(args: RunArgs) -> Options {
    let timeout = Duration::from_secs(args.timeout.as_secs());
    Options {
        once: if args.once { Once::Yes { timeout } } else { Once::No },
        listen: Some(args.listen),
        identity: args.identity.unwrap_or_else(anonymous),
    }
}

/// A name that no other process has: the id alone would be shared by first processes of containers.
fn anonymous() -> String {
    format!("tidegate-{}-{:08x}", std::process::id(), RandomState::new().hash_one(0_u8) as u32)
}

/// What was still waited on when the controller ended, a line each.
fn still(waiting: &Waiting) -> String {
    let line = |(id, wait): (&RolloutId, &Wait)| format!("{id}: {}: {}\n", wait.reason.as_str(), plain(&wait.message));
    waiting.iter().flat_map(|(id, waits)| waits.iter().map(move |wait| (id, wait))).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::report::Reason;

    #[test]
    fn what_still_waits_is_said_line_by_line() {
        let waits = vec![Wait::new(Reason::Approval, "tenth waits\nfor a person"), Wait::new(Reason::Freeze, "xmas")];
        let waiting =
            Waiting::from([("shop/podinfo".parse().unwrap(), waits), ("shop/cart".parse().unwrap(), Vec::new())]);
        assert_eq!(still(&waiting), "shop/podinfo: Approval: tenth waits for a person\nshop/podinfo: Freeze: xmas\n");
    }

    #[test]
    fn names_of_nobody_differ() {
        assert_ne!(anonymous(), anonymous());
    }

    #[test]
    fn a_broken_installation_is_told_with_its_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("installation.yaml");
        std::fs::write(&path, "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec: {instance: Prod}\n")
            .unwrap();
        let text = installation(&path, "--config").unwrap_err().text();
        assert!(text.contains("is not a valid installation:") && text.contains("installation.yaml:3:"), "{text}");
        let text = installation(dir.path(), "--config").unwrap_err().text();
        assert!(text.contains("cannot read"), "{text}");
    }

    #[test]
    fn where_there_is_no_installation_people_are_told_what_to_name() {
        let missing = installation(Path::new("/none/installation.yaml"), "--config").unwrap_err();
        assert_eq!(
            (missing.code(), missing.text().as_str()),
            (
                2,
                "there is no /none/installation.yaml: name the file that describes the controller (kind Installation) with \
                 --config; the controller's pod has it at /etc/tidegate/installation/installation.yaml"
            )
        );
    }
}
