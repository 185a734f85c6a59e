//! The command line as types. The help texts are part of the interface: tests hold them.

use super::agent::{AgentArgs, AgentDriverArgs};
use super::completions::CompletionsArgs;
use super::decide::{AbortArgs, AdoptArgs, ApproveArgs, DecisionArgs, DeleteArgs, RetryArgs, RollbackArgs, SkipArgs};
use super::demo::DemoArgs;
use super::diff::DiffArgs;
use super::doctor::DoctorArgs;
use super::fleet::FleetArgs;
use super::import::ImportArgs;
use super::init::InitArgs;
use super::man::ManArgs;
use super::plan::PlanArgs;
use super::run::RunArgs;
use super::schema::SchemaArgs;
use super::state::StateArgs;
use super::status::StatusArgs;
use super::validate::ValidateArgs;
use super::why::WhyArgs;
use crate::git::SshIdentity;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Progressive delivery for Kubernetes where Git is the only control plane.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, disable_help_subcommand = true, help_template = HELP, max_term_width = 100)]
pub(super) struct Cli {
    /// What all commands take.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands in groups: clap lists them in one.
const HELP: &str = "\
{about}

{usage-heading} {usage}

Look:
  status       Show where each rollout stands
  why          Say all that one rollout waits on
  fleet        Show where each rollout stands in all clusters
  diff         Compare the promoted manifests of a rollout with the wanted ones

Decide (each writes one file to the decisions branch):
  approve      Let a run go on
  deny         Say no to what a run asks for
  skip         End this step's soak
  hold         Keep a run from entering its next step
  resume       Lift a hold or a denial
  abort        Take a run back and refuse its revision
  retry        Let a refused revision try again
  rollback     Go back to a version promoted before
  adopt        Take over what is live as the stable version
  delete       Let objects go that are more than the policy lets go at once

Keep (where the record is signed):
  state        Check, accept or bring back a signed record

Write:
  init         Write the first files of a repository
  validate     Check all files of a repository
  plan         Show what tidegate would do with these files
  schema       Print the JSON Schema of a kind
  import       Make rollouts of what Flagger or Argo Rollouts read

Serve:
  run          Run the controller
  agent        Put a node's configuration into force, and take back what does harm
  doctor       Check what the controller needs, and say what is missing

Try:
  demo         Show a good and a bad rollout, without a cluster

Install:
  completions  Print a shell's completions
  man          Print the manual page, or write one for each command

Options:
{options}

Exit codes: 0 done; 1 failed, or errors or differences found; 2 wrong use; 3 something waits
(status --exit-code, run --once).
`tidegate COMMAND --help` says more, with examples.
";

/// What all commands take.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", env = "TIDEGATE_COLOR")]
    pub color: Colour,
    /// The form of printed data
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    /// The form of the log on standard error
    #[arg(long, global = true, value_name = "FORM", default_value = "text", env = "TIDEGATE_LOG")]
    pub log: LogForm,
    /// Log more; twice for all
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    Auto,
    Always,
    Never,
}

/// The form of printed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Yaml,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogForm {
    Text,
    Json,
}

/// The repository that a command looks at, and how to get in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Repository")]
pub(super) struct RepositoryArgs {
    /// The repository: a URL, or a directory. Default: the remote of the clone that this directory lies in
    #[arg(long, value_name = "URL|DIR", env = "TIDEGATE_REPO")]
    pub repo: Option<String>,
    /// Which remote of the clone
    #[arg(long, value_name = "NAME", default_value = "origin")]
    pub remote: String,
    /// Which tidegate. Default: the only one that writes to the repository
    #[arg(long, value_name = "NAME", env = "TIDEGATE_INSTANCE")]
    pub instance: Option<String>,
    /// A file with USER:PASSWORD or a token. Default: Git's credential helpers are asked
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CREDENTIALS_FILE")]
    pub credentials_file: Option<PathBuf>,
    /// Be the GitHub App that this Installation names: for the chart, as nobody else has the App's key
    #[arg(long, value_name = "FILE", conflicts_with = "credentials_file", hide = true)]
    pub app_of: Option<PathBuf>,
    /// Certificates (PEM) to trust besides the system's
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// What a repository behind SSH takes.
    #[command(flatten)]
    pub ssh: SshArgs,
}

/// The two files that a repository behind SSH takes; OpenSSH reads them.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SshArgs {
    /// The private key for a repository behind ssh://, without a passphrase
    #[arg(long, value_name = "FILE", env = "TIDEGATE_SSH_KEY_FILE", requires = "known_hosts_file")]
    pub ssh_key_file: Option<PathBuf>,
    /// The keys of its host, as ssh-keyscan prints them; no other is believed
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KNOWN_HOSTS_FILE", requires = "ssh_key_file")]
    pub known_hosts_file: Option<PathBuf>,
}

impl SshArgs {
    /// Who to be, and whom to believe.
    pub(super) fn identity(&self) -> Option<SshIdentity> {
        let Self { ssh_key_file, known_hosts_file } = self.clone();
        let (key_file, known_hosts_file) = ssh_key_file.zip(known_hosts_file)?;
        Some(SshIdentity { key_file, known_hosts_file })
    }
}

/// What to do. Commands with options of their own have their texts beside them.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(RunArgs),
    Agent(AgentArgs),
    AgentDriver(AgentDriverArgs),
    Doctor(DoctorArgs),
    Init(InitArgs),
    Validate(ValidateArgs),
    Import(ImportArgs),
    Plan(PlanArgs),
    Diff(DiffArgs),
    Status(StatusArgs),
    Why(WhyArgs),
    Fleet(FleetArgs),
    Approve(ApproveArgs),
    /// Say no to what a run asks for
    #[command(
        long_about = "Says no to what a run asks for: traffic stays where it is, and nothing is asked again before \
                      `tidegate resume`. To take traffic back as well: `tidegate abort`.",
        after_help = "Example:\n  tidegate deny shop/podinfo --reason \"not before the sale ends\""
    )]
    Deny(DecisionArgs),
    Skip(SkipArgs),
    /// Keep a run from entering its next step
    #[command(
        long_about = "Keeps a run from entering its next step. What is exposed stays; going back is never held.",
        after_help = "Example:\n  tidegate hold shop/podinfo --reason \"looking at the latency\""
    )]
    Hold(DecisionArgs),
    /// Lift a hold or a denial
    #[command(after_help = "Example:\n  tidegate resume shop/podinfo")]
    Resume(DecisionArgs),
    Abort(AbortArgs),
    Retry(RetryArgs),
    Rollback(RollbackArgs),
    Adopt(AdoptArgs),
    Delete(DeleteArgs),
    State(StateArgs),
    Schema(SchemaArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Demo(DemoArgs),
}
