//! `tidegate agent`, and what it starts of this same program: the guard of a driver, and the driver that comes along.

use super::Exit;
use super::failure::Failure;
use super::screen::{Screen, now};
use crate::cluster::connection::{ClusterSource, plain_client};
use crate::manifest::duration::Span;
use crate::manifest::ids::Namespace;
use crate::reconcile::caught;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_agent::decide::AgentState;
use tidegate_agent::driver::{Driver, DriverOperation};
use tidegate_agent::edge::Edge;
use tidegate_agent::probes::{self, Probes};
use tidegate_agent::run::Agent;
use tidegate_agent::store::AgentStore;
use tidegate_agent::{files, guard};
use tokio::signal::unix::{SignalKind, signal};

/// This program, whatever has become of its file.
const OWN: &str = "/proc/self/exe";

/// Put a node's configuration into force, and take back what does harm
#[derive(Debug, Args)]
#[command(
    long_about = "Puts the content that the NodeConfig of this node names into force: probes, check, stamp, try, probes, commit. \
                  What fails is taken back at once, without the API server, and told afterwards. What an earlier process has left open \
                  is taken back before anything else. Ends with SIGTERM or SIGINT once no change is open.",
    after_help = "Examples:
  tidegate agent --node worker-1 --namespace network --files /etc/fabric/files
  tidegate agent --node worker-1 --namespace network --driver /opt/fabric --probes probes.yaml

docs/nodes.md has the contract of drivers, and what to do by hand."
)]
pub(super) struct AgentArgs {
    /// The node that this is
    #[arg(long, value_name = "NAME", env = "TIDEGATE_NODE")]
    node: String,
    /// Where the NodeConfigs are
    #[arg(long, value_name = "NAME", env = "TIDEGATE_NAMESPACE")]
    namespace: Namespace,
    /// The directory that the files of a content are put into force as, exchanged as a whole
    #[arg(long, value_name = "DIR", required_unless_present = "driver")]
    files: Option<PathBuf>,
    /// The program that puts contents into force, instead of --files
    #[arg(long, value_name = "PROGRAM", conflicts_with = "files")]
    driver: Option<PathBuf>,
    /// How long each operation of a driver may take
    #[arg(long, value_name = "TIME", default_value = "1m")]
    limit: Span,
    /// The file with what has to work: interfaces, tcp, apiServer, within. Default: nothing is probed
    #[arg(long, value_name = "FILE")]
    probes: Option<PathBuf>,
    /// Where last-good and what is open are kept; it has to survive a reboot
    #[arg(long, value_name = "DIR", default_value = "/var/lib/tidegate-agent")]
    state: PathBuf,
    /// A kubeconfig. Default: the service account of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A taint of this node that goes once the node has what it shall have
    #[arg(long, value_name = "KEY")]
    startup_taint: Option<String>,
}

/// What the agent itself starts
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct AgentDriverArgs {
    #[command(subcommand)]
    command: DriverCommand,
}

#[derive(Debug, Subcommand)]
enum DriverCommand {
    /// Start a driver, and end it with whoever has started this
    Guard {
        /// What is held meanwhile
        lock: PathBuf,
        /// The driver
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<OsString>,
    },
    /// The driver of --files
    Files {
        /// The directory that is exchanged
        dir: PathBuf,
        /// What to do
        operation: Word,
        /// The content
        content: Option<PathBuf>,
    },
}

/// The operations of a driver.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Word {
    Check,
    Try,
    Commit,
    Restore,
    Read,
}

/// Runs the agent.
pub(super) async fn command(args: AgentArgs) -> Result<Exit, Failure> {
    caught::abort_elsewhere();
    if args.limit.is_zero() {
        return Err(Failure::usage("--limit 0s: no driver does anything in no time; give it some, such as 1m"));
    }
    let probes = match &args.probes {
        Some(path) => probes::read(path).map_err(Failure::failed)?,
        None => Probes::default(),
    };
    let state = args.state.display();
    let (store, disk, told) = AgentStore::open(&args.state).with_context(|| format!("cannot use {state}"))?;
    if !told.is_empty() {
        tracing::error!("{told}");
    }
    let _lock = store.lock().with_context(|| format!("cannot lock {state}"))?;
    let source = args.kubeconfig.map_or(ClusterSource::InCluster, ClusterSource::KubeconfigFile);
    let client =
        plain_client(&source).await.context("no way to the API server; outside of a pod give --kubeconfig FILE")?;
    let program = match (&args.driver, &args.files) {
        (Some(program), _) => vec![program.into()],
        (None, files) => {
            let words = [OWN, "agent-driver", "files"].map(OsString::from);
            words.into_iter().chain(files.iter().map(OsString::from)).collect()
        }
    };
    let limit = Duration::from_secs(args.limit.as_secs());
    let driver = Driver { own: OWN.into(), program, lock: store.driver_lock(), limit, node: args.node.clone() };
    let edge = Edge::new(client, args.namespace.as_str(), &args.node);
    let (state, startup_taint) = (AgentState::new(disk, told), args.startup_taint);
    let mut agent = Agent { store, driver, probes, edge, startup_taint, clock: now, state };
    let mut ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let [terminate, interrupt] = &mut ends;
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    agent.run(end).await;
    Ok(Exit::Done)
}

/// Does what the agent starts this program for.
pub(super) fn driver(args: AgentDriverArgs, screen: &Screen) -> Result<Exit, Failure> {
    match args.command {
        DriverCommand::Guard { lock, program } => match guard::guard(&lock, &program)? {
            0 => Ok(Exit::Done),
            code => std::process::exit(code.into()),
        },
        DriverCommand::Files { dir, operation, content } => {
            let operation = match operation {
                Word::Check => DriverOperation::Check,
                Word::Try => DriverOperation::Try,
                Word::Commit => DriverOperation::Commit,
                Word::Restore => DriverOperation::Restore,
                Word::Read => DriverOperation::Read,
            };
            screen.print(&files::drive(&dir, operation, content.as_deref())?)?;
            Ok(Exit::Done)
        }
    }
}
