//! PromQL, as far as it is needed to narrow a query down: a syntax tree whose leaves are the selectors of series and the words
//! between them (<https://prometheus.io/docs/prometheus/latest/querying/basics/>).
//!
//! Matchers are added to the tree, and never to a text, so that no query can close a brace to get out of them. What this
//! grammar does not know is refused. What can be read and no Prometheus would take is a [flaw](Query::flaw) of it: who checks a file looks
//! for it, and who asks a run's questions leaves it to the Prometheus.

mod kind;
mod number;
mod parser;
mod pattern;
mod quote;
mod time;
mod token;

use std::fmt::{self, Write};
use std::ops::Range;

/// Labels by which no two pods, or no two buckets of a histogram, are the same.
const EACH: &[&str] = &["pod", "instance", "le"];

/// What makes a pattern more than a text.
const SPECIAL: [char; 14] = ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    parts: Vec<Part>,
    form: Form,
    flaw: Option<InvalidQuery>,
    unfamiliar: Option<InvalidQuery>,
}

/// What the whole of an expression is, as far as that says how many series it yields.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Other,
    Selector,
    /// How fast a selected counter grows.
    Rate,
    /// An aggregation by these labels.
    By(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// What selects no series, as it is written.
    Words(String),
    Selector(Selector),
}

/// What selects series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The name of the metric, if it stands before the braces.
    pub name: Option<String>,
    /// What their labels must be, and quoted names of metrics.
    matchers: Vec<Written>,
}

/// A matcher as it is written. A quoted name of a metric has neither operator nor value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    label: String,
    operator: String,
    value: String,
}

/// What a label must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The label.
    pub label: String,
    /// What its value must be.
    pub value: Value,
}

/// What a value must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this.
    Is(String),
    /// What this pattern matches as a whole.
    Like(String),
}

/// Why a text is no query, or none that a Prometheus would take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}, at character {at}: {wanted} is wanted")]
pub struct InvalidQuery {
    /// What is wrong.
    pub found: String,
    /// At which character of the query, from 1.
    pub at: usize,
    /// Where that is, in bytes.
    pub place: Range<usize>,
    /// What is wanted there.
    pub wanted: String,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// When it is none, or none that this grammar knows.
    pub fn parse(text: &str) -> Result<Self, InvalidQuery> {
        parser::read(text)
    }

    /// Why no Prometheus would take it, though it can be read: the first reason.
    #[must_use]
    pub fn flaw(&self) -> Option<&InvalidQuery> {
        self.flaw.as_ref()
    }

    /// The first function that is not known here.
    #[must_use]
    pub fn unfamiliar(&self) -> Option<&InvalidQuery> {
        self.unfamiliar.as_ref()
    }

    /// What selects its series.
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        self.parts.iter().filter_map(|part| match part {
            Part::Selector(selector) => Some(selector),
            Part::Words(_) => None,
        })
    }

    /// The text of the same query, whose series must fit these matchers too.
    #[must_use]
    pub fn narrowed(&self, matchers: &[Matcher]) -> String {
        narrowed(&self.parts, matchers)
    }

    /// The label of which the query plainly yields a series for each value, where `pod` is that of pods, and `told` will have one
    /// value each. What may be a single series is no such query: a rule may record what a selector takes.
    #[must_use]
    pub fn of_each<'a>(&'a self, pod: Option<&'a str>, told: &[&str]) -> Option<&'a str> {
        match &self.form {
            Form::Other | Form::Selector => None,
            Form::Rate => {
                let counts = told.is_empty() && self.selectors().all(Selector::is_of_counters);
                counts.then_some(pod.unwrap_or("pod"))
            }
            Form::By(labels) => {
                let is_one = |label: &str| told.contains(&label) || self.selectors().any(|s| s.has_one(label));
                let each = |label: &&str| (EACH.contains(label) || Some(*label) == pod) && !is_one(label);
                labels.iter().map(|label| unquoted(label)).find(each)
            }
        }
    }

    /// Whether it is a rate of each counter, and no sum of them.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        self.form == Form::Rate
    }

    /// The text of the same query without the matchers whose value holds this text; none if one of its selectors has none.
    #[must_use]
    pub fn without(&self, value: &str) -> Option<String> {
        let parts = self.parts.iter().map(|part| match part {
            Part::Words(_) => Some(part.clone()),
            Part::Selector(Selector { name, matchers }) => {
                let kept: Vec<Written> = matchers.iter().filter(|m| !m.value.contains(value)).cloned().collect();
                (kept.len() < matchers.len()).then(|| Part::Selector(Selector { name: name.clone(), matchers: kept }))
            }
        });
        Some(narrowed(&parts.collect::<Option<Vec<_>>>()?, &[]))
    }
}

fn narrowed(parts: &[Part], matchers: &[Matcher]) -> String {
    parts.iter().fold(String::new(), |text, part| match part {
        Part::Words(words) => text + words,
        Part::Selector(selector) => text + &selector.narrowed(matchers),
    })
}

impl Selector {
    /// The labels that it looks at.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.matchers.iter().filter(|matcher| !matcher.operator.is_empty()).map(|matcher| unquoted(&matcher.label))
    }

    /// The value that a label must have exactly, if there is nothing in it that needs quoting.
    #[must_use]
    pub fn exact(&self, label: &str) -> Option<&str> {
        self.plain(label, "=")
    }

    fn plain(&self, label: &str, operator: &str) -> Option<&str> {
        let is = |matcher: &&Written| unquoted(&matcher.label) == label && matcher.operator == operator;
        Some(unquoted(&self.matchers.iter().find(is)?.value)).filter(|value| !value.contains('\\'))
    }

    /// The pattern that a label must match, if there is nothing in it that needs quoting.
    #[must_use]
    pub fn pattern(&self, label: &str) -> Option<&str> {
        self.plain(label, "=~")
    }

    /// Whether it takes what pods count as it comes: no value is chosen, and no rule recorded it, as names with a colon say.
    fn is_of_counters(&self) -> bool {
        self.name.as_ref().is_some_and(|name| !name.contains(':')) && !self.matchers.iter().any(Written::is_one)
    }

    /// Whether all that it takes has one value of a label.
    fn has_one(&self, label: &str) -> bool {
        self.matchers.iter().any(|matcher| unquoted(&matcher.label) == label && matcher.is_one())
    }

    fn narrowed(&self, more: &[Matcher]) -> String {
        let written = self.matchers.iter().map(ToString::to_string);
        let all: Vec<String> = written.chain(more.iter().map(ToString::to_string)).collect();
        let name = self.name.as_deref().unwrap_or_default();
        if all.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", all.join(",")) }
    }
}

impl Written {
    /// Whether it fits one value alone. A pattern without anything special in it is one.
    fn is_one(&self) -> bool {
        self.operator == "=" || self.operator == "=~" && !self.value.contains(SPECIAL)
    }

    /// Whether it fits only series with a value there.
    fn chooses(&self) -> bool {
        let Ok(value) = quote::unquoted(&self.value) else { return true };
        match self.operator.as_str() {
            "=" => !value.is_empty(),
            "!=" => value.is_empty(),
            "=~" => !pattern::fits_nothing(&value),
            "!~" => pattern::fits_nothing(&value),
            _ => true,
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`'])
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, operator, value } = self;
        write!(f, "{label}{operator}{value}")
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operator, value) = match &self.value {
            Value::Is(value) => ("=", value),
            Value::Like(pattern) => ("=~", pattern),
        };
        write!(f, "{}{operator}\"", self.label)?;
        value.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })?;
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests;
