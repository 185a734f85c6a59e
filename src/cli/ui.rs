//! How text looks: colour, columns, bars, times. Pure: what is printed is decided elsewhere.

use crate::record::state::Time;
use owo_colors::{OwoColorize, Style};
use std::fmt::Write;

/// Colour, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// ANSI styles.
    Colour,
    /// Plain text.
    Plain,
}

impl Ink {
    fn paint(self, text: &str, style: Style) -> String {
        match self {
            Self::Colour => text.style(style).to_string(),
            Self::Plain => text.to_owned(),
        }
    }

    /// A heading.
    #[must_use]
    pub(super) fn bold(self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    /// What matters less.
    #[must_use]
    pub(super) fn dim(self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }

    /// What is well.
    #[must_use]
    pub(super) fn good(self, text: &str) -> String {
        self.paint(text, Style::new().green())
    }

    /// What waits.
    #[must_use]
    pub(super) fn warn(self, text: &str) -> String {
        self.paint(text, Style::new().yellow())
    }

    /// What went wrong.
    #[must_use]
    pub(super) fn bad(self, text: &str) -> String {
        self.paint(text, Style::new().red().bold())
    }

    /// What is under way.
    #[must_use]
    pub(super) fn busy(self, text: &str) -> String {
        self.paint(text, Style::new().cyan())
    }
}

/// The paint of a cell.
pub(super) type Paint = fn(Ink, &str) -> String;

/// A table whose columns are as wide as they need to be; the last one is not padded.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<(String, Option<Paint>)>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub(super) fn new(headings: &[&str]) -> Self {
        let row = headings.iter().map(|text| ((*text).to_owned(), Some(Ink::bold as Paint))).collect();
        Self { rows: vec![row] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<(String, Option<Paint>)>) {
        self.rows.push(cells);
    }

    /// The whole table. Widths are counted in characters: cells hold names, numbers and block elements.
    #[must_use]
    pub(super) fn print(&self, ink: Ink) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (text, paint)) in row.iter().enumerate() {
                let pad = widths[column] - text.chars().count();
                line.push_str(&paint.map_or_else(|| text.clone(), |paint| paint(ink, text)));
                if column + 1 < row.len() {
                    line.push_str(&" ".repeat(pad + 2));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A bar of `width` cells, `at` of `of` full: `▕██░░▏`.
#[must_use]
pub(super) fn bar(at: usize, of: usize, width: usize) -> String {
    let full = if of == 0 { 0 } else { (at.min(of) * width).div_ceil(of) };
    format!("▕{}{}▏", "█".repeat(full), "░".repeat(width - full))
}

/// A length of time, to its two largest units: `4m10s`, `3h5m`, `2d4h`.
#[must_use]
pub(super) fn span(seconds: i64) -> String {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let units = [(seconds / 86_400, 'd'), (seconds / 3_600 % 24, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let mut out = String::new();
    let first = units.iter().position(|(n, _)| *n > 0).unwrap_or(3);
    for (n, unit) in units.iter().skip(first).take(2).filter(|(n, _)| *n > 0) {
        let _ = write!(out, "{n}{unit}");
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

/// A moment: `10:00:09Z`, with its date if that is not today's.
#[must_use]
pub(super) fn moment(at: Time, now: Time) -> String {
    let today = at.date_naive() == now.date_naive();
    at.format(if today { "%H:%M:%SZ" } else { "%Y-%m-%d %H:%M:%SZ" }).to_string()
}

/// A moment with its distance: `10:00:09Z (4m ago)`, `10:10:14Z (in 5m)`.
#[must_use]
pub(super) fn distance(at: Time, now: Time) -> String {
    let away = (at - now).num_seconds();
    let words = match away {
        0 => "now".to_owned(),
        1.. => format!("in {}", span(away)),
        _ => format!("{} ago", span(-away)),
    };
    format!("{} ({words})", moment(at, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let cases =
            [(0, "0s"), (59, "59s"), (60, "1m"), (250, "4m10s"), (3_600, "1h"), (11_100, "3h5m"), (187_201, "2d4h")];
        for (seconds, expected) in cases {
            assert_eq!(span(seconds), expected);
        }
        assert_eq!(span(-5), "0s");
    }

    #[test]
    fn bars_show_that_something_began() {
        assert_eq!(bar(0, 5, 5), "▕░░░░░▏");
        assert_eq!(bar(1, 8, 5), "▕█░░░░▏");
        assert_eq!(bar(8, 8, 5), "▕█████▏");
        assert_eq!(bar(9, 8, 5), "▕█████▏");
        assert_eq!(bar(0, 0, 5), "▕░░░░░▏");
    }

    #[test]
    fn columns_line_up_whatever_their_colour() {
        let mut table = Table::new(&["A", "LONG"]);
        table.row(vec![("x▏y".to_owned(), Some(Ink::good)), ("1".to_owned(), None)]);
        assert_eq!(table.print(Ink::Plain), "A    LONG\nx▏y  1\n");
        assert_eq!(
            table.print(Ink::Colour),
            "\u{1b}[1mA\u{1b}[0m    \u{1b}[1mLONG\u{1b}[0m\n\u{1b}[32mx▏y\u{1b}[0m  1\n"
        );
    }
}
