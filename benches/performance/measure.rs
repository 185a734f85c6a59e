//! Samples, what they come to, and what they are held against.

use std::fmt;
use std::time::{Duration, Instant};

/// Values of one kind, in one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Adds a time in milliseconds.
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1_000.0);
    }

    /// Adds a value.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value that so large a share of them does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a short list"
        )]
        let place = (share * last as f64).round() as usize;
        sorted.get(place).copied().unwrap_or(f64::NAN)
    }

    /// The middle one.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// The middle, and the range from the smallest to the largest.
impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.quantile(0.0), self.quantile(1.0));
        if self.0.len() == 1 {
            return f.write_str(&number(low));
        }
        write!(f, "{} ({}–{})", number(self.median()), number(low), number(high))
    }
}

/// A number with three digits that say something.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// How long something takes.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let result = work.await;
    (result, start.elapsed())
}

/// What was found.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// What was measured.
    pub(crate) what: &'static str,
    /// Of us.
    pub(crate) ours: Samples,
    /// In which unit.
    pub(crate) unit: &'static str,
    /// What it is compared with, and that.
    pub(crate) reference: Option<(&'static str, Samples)>,
    /// What is wanted of the ratio, or of our own value if there is no reference.
    pub(crate) goal: f64,
    /// Which of our values is held against the goal: the median, or a higher one.
    pub(crate) share: f64,
    /// Why it may be missed, in words.
    pub(crate) why: &'static str,
}

impl Finding {
    /// What is held against the goal.
    pub(crate) fn value(&self) -> f64 {
        let ours = self.ours.quantile(self.share);
        self.reference.as_ref().map_or(ours, |(_, reference)| ours / reference.median())
    }

    /// Whether the goal is reached.
    pub(crate) fn is_met(&self) -> bool {
        self.value() <= self.goal
    }

    /// The value and the goal, in words.
    pub(crate) fn verdict(&self) -> (String, String) {
        let unit = if self.reference.is_some() { " ×".to_owned() } else { format!(" {}", self.unit) };
        (format!("{}{unit}", number(self.value())), format!("≤ {}{unit}", number(self.goal)))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, goal) = self.verdict();
        let Self { what, ours, unit, reference, .. } = self;
        write!(f, "{what}: {ours} {unit}")?;
        if let Some((name, samples)) = reference {
            write!(f, "; {name}: {samples} {unit}")?;
        }
        write!(f, "; {value}, goal {goal}{}", if self.is_met() { "" } else { ": missed" })
    }
}
