//! PromQL, as far as it is needed to narrow a query down: a syntax tree whose leaves are the selectors of series and the words
//! between them (<https://prometheus.io/docs/prometheus/latest/querying/basics/>).
//!
//! Matchers are added to the tree, and never to a text, so that no query can close a brace to get out of them. What this
//! grammar does not know is refused; whether functions and types fit is for the Prometheus to say.

mod token;

use std::fmt::{self, Write};
use token::{Token, Tokens, What};

/// The deepest nesting.
const DEEPEST: usize = 64;
const AGGREGATIONS: &[&str] = &[
    "sum",
    "avg",
    "count",
    "min",
    "max",
    "group",
    "stddev",
    "stdvar",
    "topk",
    "bottomk",
    "count_values",
    "quantile",
    "limitk",
    "limit_ratio",
];
/// Operators that are words.
const OPERATORS: &[&str] = &["and", "or", "unless", "atan2"];
/// Other words that are no names of metrics, as far as this grammar goes.
const KEYWORDS: &[&str] =
    &["by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", "start", "end"];

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query(Vec<Part>);

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

/// Why a text is no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the query cannot be read from {found} on, at character {at}: {wanted} is wanted")]
pub struct InvalidQuery {
    found: String,
    at: usize,
    wanted: &'static str,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// When it is none, or none that this grammar knows.
    pub fn parse(text: &str) -> Result<Self, InvalidQuery> {
        let mut parser = Parser { text, tokens: Tokens::of(text), parts: Vec::new(), copied: 0 };
        parser.expression(0)?;
        parser.tokens.expect_end()?;
        parser.words_until(text.len());
        Ok(Self(parser.parts))
    }

    /// What selects its series.
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        self.0.iter().filter_map(|part| match part {
            Part::Selector(selector) => Some(selector),
            Part::Words(_) => None,
        })
    }

    /// The text of the same query, whose series must fit these matchers too.
    #[must_use]
    pub fn narrowed(&self, matchers: &[Matcher]) -> String {
        self.0.iter().fold(String::new(), |text, part| match part {
            Part::Words(words) => text + words,
            Part::Selector(selector) => text + &selector.narrowed(matchers),
        })
    }

    /// The text of the same query without the matchers whose value holds this text; none if one of its selectors has none.
    #[must_use]
    pub fn without(&self, value: &str) -> Option<String> {
        let parts = self.0.iter().map(|part| match part {
            Part::Words(_) => Some(part.clone()),
            Part::Selector(Selector { name, matchers }) => {
                let kept: Vec<Written> = matchers.iter().filter(|m| !m.value.contains(value)).cloned().collect();
                (kept.len() < matchers.len()).then(|| Part::Selector(Selector { name: name.clone(), matchers: kept }))
            }
        });
        Some(Self(parts.collect::<Option<_>>()?).narrowed(&[]))
    }
}

impl Selector {
    /// The labels that it looks at.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.matchers.iter().filter(|matcher| !matcher.operator.is_empty()).map(|matcher| unquoted(&matcher.label))
    }

    /// The value that a label must have exactly, if there is nothing in it that needs quoting.
    #[must_use]
    pub fn exact(&self, label: &str) -> Option<&str> {
        let found =
            self.matchers.iter().find(|matcher| unquoted(&matcher.label) == label && matcher.operator == "=")?;
        Some(unquoted(&found.value)).filter(|value| !value.contains('\\'))
    }

    fn narrowed(&self, more: &[Matcher]) -> String {
        let written = self.matchers.iter().map(ToString::to_string);
        let all: Vec<String> = written.chain(more.iter().map(ToString::to_string)).collect();
        let name = self.name.as_deref().unwrap_or_default();
        if all.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", all.join(",")) }
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

/// Takes tokens and keeps the selectors among them, and what stands between.
struct Parser<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    parts: Vec<Part>,
    /// How much of the text is in the parts.
    copied: usize,
}

impl<'a> Parser<'a> {
    fn words_until(&mut self, end: usize) {
        if self.copied < end {
            self.parts.push(Part::Words(self.text[self.copied..end].to_owned()));
            self.copied = end;
        }
    }

    /// Operands with operators between them; which of them binds closer is of no concern here.
    fn expression(&mut self, depth: usize) -> Result<(), InvalidQuery> {
        if depth > DEEPEST {
            return Err(self.tokens.wrong("a query that is nested less deeply"));
        }
        loop {
            while self.tokens.take("+") || self.tokens.take("-") {}
            self.operand(depth)?;
            self.shifts()?;
            let symbol = ["+", "-", "*", "/", "%", "^", "==", "!=", "<=", "<", ">=", ">"];
            if !symbol.iter().any(|symbol| self.tokens.take(symbol)) && self.tokens.take_word(OPERATORS).is_none() {
                return Ok(());
            }
            self.tokens.take_word(&["bool"]);
            if self.tokens.take_word(&["on", "ignoring"]).is_some() {
                self.labels()?;
                if self.tokens.take_word(&["group_left", "group_right"]).is_some() && self.tokens.is("(") {
                    self.labels()?;
                }
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Result<(), InvalidQuery> {
        let token = self.tokens.peek();
        match token.what {
            What::Number | What::Text => {
                self.tokens.next();
                Ok(())
            }
            What::Symbol if token.text == "(" => self.arguments(depth),
            What::Symbol if token.text == "{" => self.selector(None, token),
            What::Word => self.named(depth, token),
            What::Symbol | What::End => Err(self.tokens.wrong("a selector, a function or a number")),
        }
    }

    /// What begins with a word: a number, an aggregation, a function, or a metric.
    fn named(&mut self, depth: usize, token: Token<'a>) -> Result<(), InvalidQuery> {
        self.tokens.next();
        let word = token.text.to_ascii_lowercase();
        let (called, is) = (self.tokens.is("("), |words: &[&str]| words.contains(&&*word));
        if is(AGGREGATIONS) && (called || self.tokens.is_word(&["by", "without"])) {
            let grouped = self.tokens.take_word(&["by", "without"]).is_some();
            if grouped {
                self.labels()?;
            }
            self.arguments(depth)?;
            if !grouped && self.tokens.take_word(&["by", "without"]).is_some() {
                self.labels()?;
            }
            return Ok(());
        }
        if is(AGGREGATIONS) || is(OPERATORS) || is(KEYWORDS) {
            return Err(token.wrong("a metric, whose name is no keyword (else write {__name__=\"…\"})"));
        }
        if called {
            return self.arguments(depth);
        }
        if is(&["inf", "nan"]) {
            return Ok(());
        }
        self.selector(Some(token.text.to_owned()), token)
    }

    /// Expressions in parentheses, or none.
    fn arguments(&mut self, depth: usize) -> Result<(), InvalidQuery> {
        self.tokens.expect("(", "( with what it is about")?;
        if self.tokens.take(")") {
            return Ok(());
        }
        loop {
            self.expression(depth + 1)?;
            if !self.tokens.take(",") {
                return self.tokens.expect(")", "an operator, a comma or )");
            }
        }
    }

    /// Names of labels in parentheses.
    fn labels(&mut self) -> Result<(), InvalidQuery> {
        self.tokens.expect("(", "( with names of labels")?;
        while !self.tokens.take(")") {
            self.label()?;
            if !self.tokens.take(",") {
                return self.tokens.expect(")", "a comma or )");
            }
        }
        Ok(())
    }

    fn selector(&mut self, name: Option<String>, first: Token<'a>) -> Result<(), InvalidQuery> {
        self.words_until(first.start);
        let mut matchers = Vec::new();
        let mut end = first.end();
        if self.tokens.take("{") {
            while !self.tokens.is("}") {
                matchers.push(self.matcher()?);
                if !self.tokens.take(",") && !self.tokens.is("}") {
                    return Err(self.tokens.wrong("a comma or }"));
                }
            }
            end = self.tokens.next().end();
        }
        self.parts.push(Part::Selector(Selector { name, matchers }));
        self.copied = end;
        Ok(())
    }

    fn matcher(&mut self) -> Result<Written, InvalidQuery> {
        let label = self.label()?;
        let operator = ["=", "!=", "=~", "!~"].into_iter().find(|operator| self.tokens.take(operator));
        let Some(operator) = operator else {
            if label.what == What::Text {
                return Ok(Written { label: label.text.to_owned(), operator: String::new(), value: String::new() });
            }
            return Err(self.tokens.wrong("=, !=, =~ or !~"));
        };
        let value = self.tokens.next();
        if value.what != What::Text {
            return Err(value.wrong("a value in quotes"));
        }
        let [label, operator, value] = [label.text, operator, value.text].map(str::to_owned);
        Ok(Written { label, operator, value })
    }

    fn label(&mut self) -> Result<Token<'a>, InvalidQuery> {
        let token = self.tokens.next();
        if matches!(token.what, What::Word | What::Text) { Ok(token) } else { Err(token.wrong("the name of a label")) }
    }

    /// Of which time: a range or a subquery in brackets, `offset`, `@`.
    fn shifts(&mut self) -> Result<(), InvalidQuery> {
        loop {
            if self.tokens.take("[") {
                while !self.tokens.take("]") {
                    let token = self.tokens.next();
                    if token.what != What::Number && token.text != ":" {
                        return Err(token.wrong("a duration and ]"));
                    }
                }
            } else if self.tokens.take_word(&["offset"]).is_some() {
                self.tokens.take("-");
                self.number("a duration")?;
            } else if self.tokens.take("@") {
                if self.tokens.take_word(&["start", "end"]).is_some() {
                    self.tokens.expect("(", "()")?;
                    self.tokens.expect(")", ")")?;
                } else {
                    self.tokens.take("-");
                    self.number("a time in seconds, start() or end()")?;
                }
            } else {
                return Ok(());
            }
        }
    }

    fn number(&mut self, wanted: &'static str) -> Result<(), InvalidQuery> {
        let token = self.tokens.next();
        if token.what == What::Number { Ok(()) } else { Err(token.wrong(wanted)) }
    }
}

#[cfg(test)]
mod tests;
