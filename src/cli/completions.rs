//! `tidegate completions SHELL`.

use super::failure::Failure;
use super::screen::Screen;
use super::{Cli, Exit};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a shell's completions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate completions bash > /etc/bash_completion.d/tidegate
  tidegate completions zsh > \"${fpath[1]}/_tidegate\"
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish")]
pub(super) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Prints the completions of a shell.
pub(super) fn command(args: &CompletionsArgs, screen: &Screen) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tidegate", &mut script);
    screen.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
