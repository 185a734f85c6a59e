//! The command line: one file for each subcommand, and all text that people read there.
//!
//! Each subcommand decides in functions that return values or text, and prints at its rim through [`Screen`]. Only
//! `main.rs` calls this room. It may import every other room; nobody imports it.

mod address;
mod agent;
mod args;
mod cache;
mod completions;
mod decide;
mod decisions;
mod demo;
mod diff;
mod doctor;
mod failure;
mod fleet;
pub mod import;
pub mod init;
mod live;
mod man;
mod plan;
mod repository;
mod run;
mod schema;
mod screen;
mod shell;
mod state;
mod status;
mod tracked;
mod ui;
mod units;
pub mod validate;
mod why;

use args::Cli;

use clap::Parser;
use failure::Failure;
use screen::Screen;
use std::process::ExitCode;

/// How a command ended; the numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Done,
    /// It worked, and found something: errors in files, differences.
    Findings,
    /// Something waits (`status --exit-code`, `run --once`).
    Waiting,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings => 1,
            Self::Waiting => 3,
        }
    }
}

/// Reads the command line, does what it says, and tells the shell how it went.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let screen = Screen::new(&cli.global);
    if let Err(failure) = run::log_to_stderr(&cli) {
        return screen.fail(&failure);
    }
    let runtime = if let args::Command::Demo(_) = cli.command {
        demo::runtime()
    } else if let args::Command::Agent(_) = cli.command {
        // One on each node: small.
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return screen.fail(&Failure::from(anyhow::Error::new(error).context("no threads to run on"))),
    };
    let result = runtime.block_on(dispatch(cli, &screen));
    // A collector that hangs must not keep the process.
    runtime.shutdown_background();
    match result {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(failure) => screen.fail(&failure),
    }
}

async fn dispatch(cli: Cli, screen: &Screen) -> Result<Exit, Failure> {
    use args::Command;
    match cli.command {
        Command::Run(args) => run::command(args, screen).await,
        Command::Agent(args) => agent::command(args).await,
        Command::AgentDriver(args) => agent::driver(args, screen),
        Command::Doctor(args) => doctor::command(args, screen).await,
        Command::Validate(args) => validate::command(&args, screen),
        Command::Init(args) => init::command(&args, screen),
        Command::Import(args) => import::command(&args, screen),
        Command::Plan(args) => plan::command(args, screen).await,
        Command::Diff(args) => diff::command(args, screen).await,
        Command::Status(args) => status::command(args, screen).await,
        Command::Why(args) => why::command(args, screen).await,
        Command::Fleet(args) => fleet::command(args, screen).await,
        Command::Approve(args) => decide::command(args.into(), screen).await,
        Command::Deny(args) => decide::command(decide::Asked::new(decide::Verb::Deny, args), screen).await,
        Command::Skip(args) => decide::command(args.into(), screen).await,
        Command::Hold(args) => decide::command(decide::Asked::new(decide::Verb::Hold, args), screen).await,
        Command::Resume(args) => decide::command(decide::Asked::new(decide::Verb::Resume, args), screen).await,
        Command::Abort(args) => decide::command(args.into(), screen).await,
        Command::Retry(args) => decide::command(args.into(), screen).await,
        Command::Rollback(args) => decide::command(args.into(), screen).await,
        Command::Adopt(args) => decide::command(args.into(), screen).await,
        Command::Delete(args) => decide::command(args.into(), screen).await,
        Command::State(args) => state::command(args, screen).await,
        Command::Schema(args) => schema::command(&args, screen),
        Command::Completions(args) => completions::command(&args, screen),
        Command::Man(args) => man::command(&args, screen),
        Command::Demo(args) => demo::command(args, screen).await,
    }
}

#[cfg(test)]
#[path = "../../crates/controller/src/record/fixture.rs"]
#[allow(dead_code, reason = "the tests of each room ask for some of it")]
mod fixture;
#[cfg(test)]
mod tests;
