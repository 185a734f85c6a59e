//! The rim: where text leaves the program.

use super::args::{Colour, Format, Global};
use super::failure::Failure;
use super::ui::Ink;
use crate::reconcile::clock::Clock;
use crate::record::state::Time;
use anstream::ColorChoice;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Where a command prints, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Colour on standard output, or none.
    pub ink: Ink,
    /// The form of data.
    pub format: Format,
}

impl Screen {
    /// As the command line asks. Colour, unless told: on a terminal, if `NO_COLOR` and its kind do not say otherwise.
    #[must_use]
    pub(super) fn new(global: &Global) -> Self {
        let choice = match global.color {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        choice.write_global();
        let colourful = anstream::AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
        Self { ink: if colourful { Ink::Colour } else { Ink::Plain }, format: global.output }
    }

    /// Prints text.
    ///
    /// # Errors
    /// When the reader has gone away, which ends the program quietly, or standard output cannot be written.
    pub(super) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = anstream::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::NobodyReads),
            result => Ok(result?),
        }
    }

    /// Prints data as the command line asks: for people, or for programs.
    ///
    /// # Errors
    /// As [`Self::print`].
    pub(super) fn show<T: Serialize>(&self, data: &T, people: impl FnOnce(&T, Ink) -> String) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.print(&people(data, self.ink)),
            Format::Json => self.print(&format!("{}\n", serde_json::to_string_pretty(data)?)),
            Format::Yaml => {
                let value = serde_json::to_value(data)?;
                let text = serde_yaml::to_string(&value).map_err(anyhow::Error::new)?;
                self.print(&text)
            }
        }
    }

    /// Says on standard error what went wrong.
    #[must_use]
    pub(super) fn fail(&self, failure: &Failure) -> ExitCode {
        if let Failure::NobodyReads = failure {
            return ExitCode::SUCCESS;
        }
        let colourful = anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
        let ink = if colourful { Ink::Colour } else { Ink::Plain };
        let text = format!("{} {}\n", ink.bad("error:"), failure.text());
        // There is nowhere left to say that standard error is closed.
        anstream::stderr().lock().write_all(text.as_bytes()).ok();
        ExitCode::from(failure.code())
    }

    /// Whether there is somebody who can be asked.
    ///
    /// # Errors
    /// When there is no terminal, with what to do instead.
    pub(super) fn can_ask(&self) -> Result<(), Failure> {
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            return Ok(());
        }
        Err(Failure::usage(
            "there is no terminal to ask on whether this shall be done; pass --yes to do it without being asked",
        ))
    }

    /// Asks a question that only `y` or `yes` agrees to.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub(super) fn agreed(&self, question: &str) -> Result<bool, Failure> {
        let mut err = anstream::stderr().lock();
        err.write_all(format!("{question} [y/N] ").as_bytes())?;
        err.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }
}

/// The time at which a command looks; it goes on as a value.
#[must_use]
pub(super) fn now() -> Time {
    Clock::default().now()
}
