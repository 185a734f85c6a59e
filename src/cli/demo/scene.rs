//! What is so in the world of the demo, and how it looks on a terminal. Pure: the same scene is the same picture.

use crate::cli::status::paint;
use crate::cli::ui::{Ink, Paint};
use crate::record::state::Phase;
use crate::record::text::plain;
use crate::report::view::{RolloutView, WaitView};
use std::iter::repeat_n;

/// The column in which facts begin.
const FACTS: usize = 11;
/// From this height on, parts are set apart by an empty line.
const ROOMY: usize = 20;

/// How fast time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tempo {
    /// Not at all.
    #[default]
    Paused,
    /// So many seconds in one second here.
    Times(u32),
    /// As fast as it goes.
    Max,
}

/// A request that a person has to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// The branch that asks.
    pub request: String,
    /// The command that says yes, too.
    pub command: String,
}

impl Ask {
    /// The command, on two lines where it does not fit on one: it can be copied as it stands.
    fn lines(&self, width: usize) -> Vec<String> {
        match self.command.split_once(" --repo ") {
            Some((word, place)) if self.command.chars().count() > width => {
                vec![format!("{word} \\"), format!("  --repo {place}")]
            }
            Some(_) | None => vec![self.command.clone()],
        }
    }
}

/// What is so at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scene {
    /// What somebody has just done.
    pub chapter: String,
    /// What tidegate makes of it.
    pub sentence: String,
    /// The seconds that have passed in the world.
    pub seconds: i64,
    /// How fast they pass.
    pub tempo: Tempo,
    /// Where the rollout stands, once there is a record.
    pub view: Option<RolloutView>,
    /// The candidate's share of live requests, in percent; none while there is no route.
    pub weight: Option<u8>,
    /// The commits of the record, oldest first: when, and the first line.
    pub commits: Vec<(i64, String)>,
    /// What a person is asked for.
    pub asks: Option<Ask>,
    /// Whether all is told.
    pub over: bool,
}

/// What a phase means for those who use the application, in one sentence; `weight` is the most that the record lets reach
/// the new version, in percent.
#[must_use]
pub(super) fn sentence(phase: &Phase, weight: u8) -> String {
    match phase {
        Phase::Initializing(_) => "First sight: the cluster is brought to what main says.".to_owned(),
        Phase::Steady { .. } => "At rest: what runs is what was promoted.".to_owned(),
        Phase::Waiting { at: None, .. } => {
            "A branch asks. Until somebody merges it, nothing of the new version runs.".to_owned()
        }
        Phase::Waiting { at: Some(_), .. } | Phase::WaitingPromotion { .. } => {
            "It waits; no more requests reach the new version meanwhile.".to_owned()
        }
        Phase::Progressing(_) if weight == 0 => {
            "Pods of the new version start. No request reaches them yet.".to_owned()
        }
        Phase::Progressing(_) => {
            format!("{weight} of 100 requests go to the new version, and its errors are counted.")
        }
        Phase::Promoting(_) => "All requests go to the new pods, while stable becomes the new version.".to_owned(),
        Phase::Finalising(_) => "Stable is the new version. Requests return to it, and the extra pods go.".to_owned(),
        Phase::Reverting { why, .. } => format!("It goes back at once: {}.", plain(why)),
        Phase::Failed { why, .. } => format!("It is not tried again: {}.", plain(why)),
        Phase::Terminating { .. } | Phase::Unknown(_) => String::new(),
    }
}

/// A time in the world: `0:18`.
#[must_use]
pub(super) fn clock(seconds: i64) -> String {
    format!("{:>2}:{:02}", seconds / 60, seconds % 60)
}

/// Who gets the requests: the two parts of a bar of `width`, and words.
#[must_use]
pub(super) fn shares(weight: u8, width: usize) -> [String; 3] {
    let weight = usize::from(weight.min(100));
    let new = (weight * width).div_ceil(100);
    ["█".repeat(width - new), "░".repeat(new), format!("{} % stable, {weight} % new", 100 - weight)]
}

/// A line, as pieces with a paint each.
#[derive(Default)]
struct Line(Vec<(String, Option<Paint>)>);

impl Line {
    fn of(text: impl Into<String>, paint: Option<Paint>) -> Self {
        Self::default().and(text, paint)
    }

    fn and(mut self, text: impl Into<String>, paint: Option<Paint>) -> Self {
        self.0.push((text.into(), paint));
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// Painted, and cut at `width`: in characters, since all of ours are one cell wide.
    fn print(self, width: usize, ink: Ink) -> String {
        let mut left = width;
        let mut out = String::new();
        for (text, paint) in self.0 {
            let text: String = text.chars().take(left).collect();
            left -= text.chars().count();
            out.push_str(&paint.map_or_else(|| text.clone(), |paint| paint(ink, &text)));
        }
        out
    }
}

impl Scene {
    /// The picture: at most `height` lines of at most `width` characters.
    #[must_use]
    pub(super) fn draw(&self, width: usize, height: usize, ink: Ink) -> Vec<String> {
        let gap = || (height >= ROOMY).then(Line::default);
        let mut lines = vec![self.head(width)];
        lines.extend(gap());
        lines.push(Line::of(self.chapter.as_str(), Some(Ink::bold)));
        // So much room that what is below does not jump with every sentence.
        let mut told = wrapped(&self.sentence, width);
        if let Some(ask) = &self.asks {
            told.push("Press m to merge it, or say it in another terminal:".to_owned());
            told.extend(ask.lines(width));
        }
        told.resize_with(if gap().is_some() { told.len().max(3) } else { 1 }, String::new);
        lines.extend(told.into_iter().map(|text| Line::of(text, None)));
        lines.extend(gap());
        lines.push(fact("steps", self.steps(width.saturating_sub(FACTS))));
        lines.push(fact("requests", self.requests(width.saturating_sub(FACTS))));
        lines.extend(self.waits(width.saturating_sub(FACTS), if gap().is_some() { 4 } else { 2 }));
        lines.extend(gap());
        lines.push(Line::of("Commits on tidegate/world/state, each before what it says is done", Some(Ink::dim)));
        // The line of keys stays, whatever the height.
        let room = height.saturating_sub(1);
        let newest = self.commits.len().saturating_sub(room.saturating_sub(lines.len() + usize::from(gap().is_some())));
        lines.extend(self.commits.iter().enumerate().skip(newest).map(|(n, (seconds, subject))| {
            let latest = n + 1 == self.commits.len();
            Line::of(format!(" {}  ", clock(*seconds)), Some(Ink::dim))
                .and(subject, latest.then_some(Ink::bold as Paint))
        }));
        lines.resize_with(room, Line::default);
        lines.push(self.keys());
        lines.into_iter().take(height).map(|line| line.print(width, ink)).collect()
    }

    fn head(&self, width: usize) -> Line {
        let (pace, paint): (String, Paint) = match self.tempo {
            _ if self.over => ("the end".to_owned(), Ink::dim),
            Tempo::Paused => ("paused".to_owned(), Ink::warn),
            Tempo::Times(times) => (format!("{times}× faster than here"), Ink::dim),
            Tempo::Max => ("as fast as it goes".to_owned(), Ink::dim),
        };
        let application = self.view.as_ref().map(|view| view.rollout.to_string()).unwrap_or_default();
        let left = Line::of("tidegate demo  ", Some(Ink::bold)).and(application, None);
        let right = Line::of(format!("{}  ", clock(self.seconds)), None).and(pace, Some(paint));
        let between = width.saturating_sub(left.width() + right.width()).max(1);
        Line(left.0.into_iter().chain([(" ".repeat(between), None)]).chain(right.0).collect())
    }

    /// The steps of the open run, the one that it stands on marked; without one, where the rollout stands.
    fn steps(&self, width: usize) -> Line {
        let Some(view) = &self.view else { return Line::of("–", Some(Ink::dim)) };
        let at = view.entered.unwrap_or(0);
        let step = |(i, name): (usize, &String)| -> (String, Option<Paint>) {
            match () {
                () if i + 1 < at => (format!("✓ {name}  "), Some(Ink::good)),
                () if i + 1 == at => (format!("● {name}  "), Some(Ink::busy)),
                () => (format!("○ {name}  "), Some(Ink::dim)),
            }
        };
        let mut line = Line(view.steps.iter().enumerate().map(step).collect());
        if line.0.is_empty() {
            let step = view.step.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
            return Line::of(format!("● {}{step}", view.phase), Some(paint(view.urgency)));
        }
        // What is done makes room.
        let done = at.saturating_sub(1);
        let fits = (0..done).find(|n| Line(line.0[*n..].to_vec()).width() <= width + 2).unwrap_or(done);
        line.0.drain(..fits);
        if let Some((last, _)) = line.0.last_mut() {
            last.truncate(last.trim_end().len());
        }
        line
    }

    fn requests(&self, width: usize) -> Line {
        let Some(weight) = self.weight else { return Line::of("–", Some(Ink::dim)) };
        let [_, _, words] = shares(weight, 0);
        let [stable, new, _] = shares(weight, width.saturating_sub(words.len() + 3).min(40));
        Line::of(stable, Some(Ink::good)).and(new, Some(Ink::busy)).and(format!("  {words}"), None)
    }

    /// What it waits on, in exactly so many lines: what, who can change that, and how.
    fn waits(&self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for WaitView { reason, message, owner, until: _, since: _, act } in
            self.view.iter().flat_map(|view| &view.waits)
        {
            let mut words = wrapped(&format!("{reason}: {message}"), width).into_iter();
            lines.extend(words.next().map(|first| Line::of(first, Some(Ink::warn))));
            lines.extend(words.map(|text| Line::of(text, Some(Ink::warn))));
            let act = act.as_ref().map(|act| format!(" · do: {act}")).unwrap_or_default();
            lines.extend(
                wrapped(&format!("who: {owner}{act}"), width).into_iter().map(|text| Line::of(text, Some(Ink::dim))),
            );
        }
        if lines.is_empty() {
            lines.push(Line::of("nothing", Some(Ink::dim)));
        }
        lines.resize_with(height, Line::default);
        lines
            .into_iter()
            .zip(["waits on"].into_iter().chain(repeat_n("", height)))
            .map(|(line, name)| fact(name, line))
            .collect()
    }

    fn keys(&self) -> Line {
        let merge = self.asks.is_some().then_some(("m", "merge the request"));
        let pause = (!self.over).then_some(("space", if self.tempo == Tempo::Paused { "go on" } else { "pause" }));
        let keys = merge.into_iter().chain(pause).chain([("q", "leave")]);
        Line(
            keys.flat_map(|(key, does)| [(key.to_owned(), Some(Ink::bold as Paint)), (format!(" {does}   "), None)])
                .collect(),
        )
    }
}

fn fact(name: &str, line: Line) -> Line {
    if name.is_empty() && line.0.is_empty() {
        return line;
    }
    let name = (format!("{name:<FACTS$}"), Some(Ink::dim as Paint));
    Line([name].into_iter().chain(line.0).collect())
}

/// Text in lines of at most `width`, broken between words; a longer word stands on a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
pub(super) mod tests;
