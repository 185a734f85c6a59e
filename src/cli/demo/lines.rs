//! The story in plain lines: what is new since they were printed last.

use super::scene::{Scene, clock, shares};
use crate::cli::failure::Failure;
use crate::cli::screen::Screen;
use crate::cli::ui::Ink;
use std::fmt::Write;

/// How wide the bar of traffic is.
const BAR: usize = 20;

/// Plain lines, and what they have told.
pub(super) struct Lines {
    screen: Screen,
    told: Scene,
}

impl Lines {
    /// Nothing is told yet.
    #[must_use]
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen, told: Scene::default() }
    }

    /// Prints what is new.
    ///
    /// # Errors
    /// As [`Screen::print`].
    pub(super) fn tell(&mut self, scene: &Scene) -> Result<(), Failure> {
        let news = news(&self.told, scene, self.screen.ink);
        self.told = scene.clone();
        if news.is_empty() { Ok(()) } else { self.screen.print(&news) }
    }
}

/// What is so now and was not before.
fn news(before: &Scene, after: &Scene, ink: Ink) -> String {
    let mut out = String::new();
    if before.chapter != after.chapter {
        let _ = writeln!(out, "\n{}", ink.bold(&after.chapter));
    }
    if before.asks.is_some() && after.asks.is_none() {
        out.push_str("  Ana merges it.\n\n");
    }
    for (seconds, subject) in after.commits.iter().skip(before.commits.len()) {
        let _ = writeln!(out, "  {}  {subject}", ink.dim(&clock(*seconds)));
    }
    if before.sentence != after.sentence && !after.sentence.is_empty() {
        let _ = writeln!(out, "         {}", after.sentence);
    }
    if before.weight != after.weight
        && let Some(weight) = after.weight
    {
        let [stable, new, words] = shares(weight, BAR);
        let _ = writeln!(out, "         {}{}  {words}", ink.good(&stable), ink.busy(&new));
    }
    if let (None, Some(ask)) = (&before.asks, &after.asks) {
        let _ = writeln!(out, "\n  It waits for a person, who merges {}.", ink.bold(&ask.request));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::scene::tests::{approval, tenth};

    #[test]
    fn lines_tell_what_is_new_and_nothing_twice() {
        let (first, then) = (approval(), tenth());
        insta::assert_snapshot!(format!(
            "{}----\n{}----\n{}",
            news(&Scene::default(), &first, Ink::Plain),
            news(&first, &then, Ink::Plain),
            news(&then, &then, Ink::Plain)
        ));
    }
}
