//! `tidegate run`, and where the log goes.

use super::Cli;
use super::Exit;
use super::args::{Command, LogForm};
use super::failure::Failure;
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::installation::{self, Installation};
use anyhow::Context;
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tracing_subscriber::EnvFilter;

/// Run the controller
#[derive(Debug, Args)]
#[command(
    long_about = "Runs the controller: it reads desired state from Git, writes its record to Git, and moves clusters no \
                  further than that record says. Ends with SIGTERM or SIGINT after the tick that it is in.",
    after_help = "Examples:
  tidegate run --config installation.yaml
  tidegate run --config installation.yaml --once --timeout 10m   # until nothing moves, then ends
  tidegate run --config installation.yaml --log json --log-level info,kube=warn

The address of --listen serves /metrics, /healthz and /readyz."
)]
pub(super) struct RunArgs {
    /// The file that describes this controller (kind Installation)
    #[arg(short, long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    config: PathBuf,
    /// Ends as soon as nothing is left to do but to wait
    #[arg(long)]
    once: bool,
    /// With --once: ends after this time at the latest, with 3 if something still moves
    #[arg(long, value_name = "TIME", requires = "once")]
    timeout: Option<Span>,
    /// Where metrics and health are served
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", env = "TIDEGATE_LISTEN")]
    listen: SocketAddr,
    /// The directory for the Git cache; it may be lost at any time
    #[arg(long, value_name = "DIR", default_value = "/var/cache/tidegate", env = "TIDEGATE_CACHE")]
    cache: PathBuf,
    /// What is logged, as a filter of tracing-subscriber: `info`, `tidegate=debug,kube=warn`. Default: info
    #[arg(long, value_name = "FILTER", env = "TIDEGATE_LOG_LEVEL")]
    log_level: Option<String>,
}

/// Sets the log up: on standard error, so that data on standard output stays clean.
pub(super) fn log_to_stderr(cli: &Cli) -> Result<(), Failure> {
    let asked = match &cli.command {
        Command::Run(args) => args.log_level.clone(),
        _ => None,
    };
    let level = asked.unwrap_or_else(|| default_level(&cli.command, cli.global.verbose).to_owned());
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| Failure::usage(format!("{level:?} is no log filter: {error}; expected info or tidegate=debug,kube=warn")))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Setting it twice is the only way to fail, and this is the only place.
    let result = match cli.global.log {
        LogForm::Text => log.with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never).try_init(),
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
    result.map_err(|error| Failure::failed(format!("the log cannot be set up: {error}")))
}

fn default_level(command: &Command, verbose: u8) -> &'static str {
    match (command, verbose) {
        (Command::Run(_), 0) => "info",
        (_, 0) => "error",
        (Command::Run(_), 1) | (_, 2) => "debug,hyper=info,h2=info,tower=info",
        (_, 1) => "info",
        (_, _) => "trace",
    }
}

/// Runs the controller.
pub(super) async fn command(args: RunArgs) -> Result<Exit, Failure> {
    let installation = installation(&args.config)?;
    serve(installation, args).await
}

/// Reads the installation's file; all its mistakes at once.
fn installation(path: &Path) -> Result<Installation, Failure> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Diagnostics point into a file by a path as a repository has it: the file's own name will do.
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("installation.yaml");
    let name: RepoPath = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    installation::parse(&name, &bytes).map_err(|found| {
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        Failure::failed(format!("{} is not a valid installation:\n{}", path.display(), lines.join("\n")))
    })
}

async fn serve(_installation: Installation, _args: RunArgs) -> Result<Exit, Failure> {
    Err(Failure::failed("x"))
}
