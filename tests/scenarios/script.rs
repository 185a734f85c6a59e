//! The text of a scenario: prose, commands, and below each command what it showed.
//!
//! ```text
//! # The title
//!
//! Prose, as much as the reader needs.
//!
//! > a command
//!   what it shows, indented by two spaces
//! ```

use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A scenario as it was written.
pub(crate) struct Script {
    path: PathBuf,
    text: String,
    lines: Vec<Line>,
}

/// A line that is not output.
enum Line {
    Prose(String),
    Command { number: usize, text: String },
}

/// A command at its place.
#[derive(Clone, Copy)]
pub(crate) struct Command<'a> {
    pub(crate) text: &'a str,
    number: usize,
    path: &'a Path,
}

impl Command<'_> {
    /// Ends the story: this line is wrong.
    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!("{}:{}: {why}", self.path.display(), self.number)
    }
}

impl Script {
    /// Reads a file.
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let line = |(i, line): (usize, &str)| match line.strip_prefix("> ") {
            Some(command) => Some(Line::Command { number: i + 1, text: command.to_owned() }),
            None if line.starts_with("  ") => None,
            None => Some(Line::Prose(line.to_owned())),
        };
        let lines: Vec<Line> = text.lines().enumerate().filter_map(line).collect();
        let script = Self { path, text, lines };
        script.check();
        script
    }

    /// Every scenario has a title, says something, and ends with the look of a fresh process.
    fn check(&self) {
        let place = self.path.display();
        assert!(self.text.starts_with("# "), "{place}:1: the first line is the title: `# What happens`");
        let said = |line: &Line| matches!(line, Line::Prose(text) if !text.is_empty() && !text.starts_with('#'));
        assert!(self.lines.iter().any(said), "{place}: it says in no word what it is about");
        let last = self.commands().last();
        let settled = last.is_some_and(|command| command.text == "settled");
        assert!(settled, "{place}:{}: the last command is `settled`", self.text.lines().count());
    }

    /// The commands, in order.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Command<'_>> {
        self.lines.iter().filter_map(|line| match line {
            Line::Command { number, text } => Some(Command { text, number: *number, path: &self.path }),
            Line::Prose(_) => None,
        })
    }

    /// Compares with what each command showed, or writes that down if `UPDATE_SCENARIOS` is set.
    pub(crate) fn compare(&self, shown: &[String]) {
        let mut new = String::new();
        let mut shown = shown.iter();
        for line in &self.lines {
            match line {
                Line::Prose(text) => writeln!(new, "{text}").unwrap(),
                Line::Command { text, .. } => {
                    writeln!(new, "> {text}").unwrap();
                    for line in shown.next().map_or("", String::as_str).lines() {
                        writeln!(new, "  {line}").unwrap();
                    }
                }
            }
        }
        if new == self.text {
            return;
        }
        if std::env::var_os("UPDATE_SCENARIOS").is_some() {
            std::fs::write(&self.path, new).unwrap();
            return;
        }
        panic!(
            "{} is not what happens (-: the file, +: the world):\n{}\nIf it is meant so:\n  \
             UPDATE_SCENARIOS=1 cargo test --test worlds scenarios::{}\nand read the diff as a change of behaviour.",
            self.path.display(),
            diff(&self.text, &new),
            self.path.file_stem().unwrap_or_default().display(),
        );
    }
}

/// A unified diff, in colours.
fn diff(old: &str, new: &str) -> String {
    let mut out = String::new();
    let compared = TextDiff::from_lines(old, new);
    for hunk in compared.unified_diff().context_radius(4).iter_hunks() {
        writeln!(out, "\x1b[36m{}\x1b[0m", hunk.header()).unwrap();
        for change in hunk.iter_changes() {
            let (sign, colour) = match change.tag() {
                ChangeTag::Delete => ('-', "\x1b[31m"),
                ChangeTag::Insert => ('+', "\x1b[32m"),
                ChangeTag::Equal => (' ', ""),
            };
            let line = change.value().trim_end_matches('\n');
            writeln!(out, "{colour}{sign}{line}\x1b[0m").unwrap();
        }
    }
    out
}
