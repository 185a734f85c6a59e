//! `tidegate man`.

use super::failure::Failure;
use super::screen::Screen;
use super::{Cli, Exit};
use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::PathBuf;

/// How the program ends, as `--help` says it too.
const STATUS: [(&str, &str); 4] = [
    ("0", "Done."),
    ("1", "Failed, or errors or differences were found."),
    ("2", "Wrong use."),
    ("3", "Something waits (status --exit-code, run --once)."),
];

/// Print the manual page, or write one for each command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate man | man -l -
  tidegate man --dir ~/.local/share/man/man1 && man tidegate-approve")]
pub(super) struct ManArgs {
    /// Writes the pages of all commands to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes manual pages.
pub(super) fn command(args: &ManArgs, screen: &Screen) -> Result<Exit, Failure> {
    let mut main = Cli::command();
    main.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
        let mut ahead = vec![&main];
        while let Some(command) = ahead.pop() {
            let path = dir.join(format!("{}.1", name(command)));
            std::fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
            ahead.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        }
    } else {
        screen.print(&String::from_utf8_lossy(&page(&main)?))?;
    }
    Ok(Exit::Done)
}

/// What the page of a command is called.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command, in roff.
pub(super) fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).manual("tidegate").source(concat!("tidegate ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let mut synopsis = Roff::new();
    let usage = command.clone().render_usage().to_string();
    synopsis.control("SH", ["SYNOPSIS"]).text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut rest = Roff::new();
    if command.has_subcommands() {
        rest.control("SH", ["COMMANDS"]);
        for one in command.get_subcommands() {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            rest.control("TP", []);
            rest.text([bold(name(one)), roman("(1)")]).text([roman(about)]);
        }
    }
    if name(command) == "tidegate" {
        rest.control("SH", ["EXIT STATUS"]);
        for (code, means) in STATUS {
            rest.control("TP", []);
            rest.text([bold(code)]).text([roman(means)]);
        }
    } else {
        if let Some(examples) = command.get_after_help() {
            rest.control("SH", ["EXAMPLES"]);
            rest.control("nf", []);
            for line in examples.to_string().lines().skip(1) {
                rest.text([roman(line.trim_start())]);
            }
            rest.control("fi", []);
        }
        rest.control("SH", ["SEE ALSO"]);
        rest.text([bold("tidegate"), roman("(1)")]);
    }
    rest.to_writer(&mut page)?;
    Ok(page)
}
