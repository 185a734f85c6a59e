//! The rim to a terminal: it is taken, drawn on, listened to, and given back however the program ends.

use super::scene::Scene;
use crate::cli::ui::Ink;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue, style::Print};
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Merge the request that is open; leave, when all is told.
    Merge,
    /// Stop the time, or let it go on.
    Pause,
    /// Leave.
    Quit,
    /// The terminal has another size.
    Resized,
}

/// A terminal that is drawn on. Given back when dropped.
pub(super) struct Terminal {
    ink: Ink,
    shown: Vec<String>,
}

impl Terminal {
    /// Whether there is somebody who can see it and press keys.
    #[must_use]
    pub(super) fn is_there() -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        std::io::stdin().is_terminal() && stdout().is_terminal() && !dumb
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be written or has no raw mode.
    pub(super) fn open(ink: Ink) -> std::io::Result<Self> {
        // In a program that aborts, nothing is dropped.
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
        terminal::enable_raw_mode()?;
        let taken = Self { ink, shown: Vec::new() };
        execute!(stdout(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        Ok(taken)
    }

    /// Draws the scene, if that changes anything.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub(super) fn draw(&mut self, scene: &Scene) -> std::io::Result<()> {
        let (width, height) = match terminal::size()? {
            // It does not know its size.
            (0, _) | (_, 0) => (80, 24),
            size => size,
        };
        let lines = scene.draw(width.into(), height.into(), self.ink);
        if lines == self.shown {
            return Ok(());
        }
        let mut out = stdout().lock();
        queue!(out, BeginSynchronizedUpdate)?;
        for (row, line) in (0..height).zip(&lines) {
            queue!(out, MoveTo(0, row), Print(line), Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        out.flush()?;
        self.shown = lines;
        Ok(())
    }

    /// Forgets what is shown, since the terminal may have moved it.
    pub(super) fn redraw(&mut self) {
        self.shown.clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal what it was; once, however often it is asked.
fn give_back() {
    if terminal::is_raw_mode_enabled().unwrap_or(false) {
        // A terminal that has gone away needs nothing back.
        execute!(stdout(), Show, EnableLineWrap, LeaveAlternateScreen).ok();
        terminal::disable_raw_mode().ok();
    }
}

/// Waits so long for a key that means something. Blocks.
#[must_use]
pub(super) fn read_key(wait: Duration) -> Option<Key> {
    match poll(wait) {
        Ok(true) => read().map_or(Some(Key::Quit), |event| meaning(&event)),
        Ok(false) => None,
        // A terminal that cannot be read has gone away.
        Err(_) => Some(Key::Quit),
    }
}

fn meaning(event: &Event) -> Option<Key> {
    if let Event::Resize(_, _) = event {
        return Some(Key::Resized);
    }
    let key = event.as_key_press_event()?;
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let pressed = |wanted: &[KeyCode]| wanted.contains(&key.code);
    match () {
        // In raw mode these are keys, not signals.
        () if control => pressed(&[KeyCode::Char('c'), KeyCode::Char('d')]).then_some(Key::Quit),
        () if pressed(&[KeyCode::Char('q'), KeyCode::Esc]) => Some(Key::Quit),
        () if pressed(&[KeyCode::Char('m'), KeyCode::Enter]) => Some(Key::Merge),
        () => pressed(&[KeyCode::Char(' ')]).then_some(Key::Pause),
    }
}
