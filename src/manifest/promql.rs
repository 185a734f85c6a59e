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

/// Functions of counters, which leave each series one.
const RATES: &[&str] = &["rate", "irate", "increase"];
/// Labels by which no two pods, or no two buckets of a histogram, are the same.
const EACH: &[&str] = &["pod", "instance", "le"];

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    parts: Vec<Part>,
    form: Form,
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
        let form = parser.expression(0)?;
        parser.tokens.expect_end()?;
        parser.words_until(text.len());
        Ok(Self { parts: parser.parts, form })
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
                let is_one = |label: &str| told.contains(&label) || self.selectors().any(|s| s.exact(label).is_some());
                let each = |label: &&str| (EACH.contains(label) || Some(*label) == pod) && !is_one(label);
                labels.iter().map(|label| unquoted(label)).find(each)
            }
        }
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
        let found =
            self.matchers.iter().find(|matcher| unquoted(&matcher.label) == label && matcher.operator == "=")?;
        Some(unquoted(&found.value)).filter(|value| !value.contains('\\'))
    }

    /// Whether it takes what pods count as it comes: no value is chosen, and no rule recorded it, as names with a colon say.
    fn is_of_counters(&self) -> bool {
        self.name.as_ref().is_some_and(|name| !name.contains(':')) && self.matchers.iter().all(|m| m.operator != "=")
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
    fn expression(&mut self, depth: usize) -> Result<Form, InvalidQuery> {
        if depth > DEEPEST {
            return Err(self.tokens.wrong("a query that is nested less deeply"));
        }
        let mut alone = true;
        loop {
            while self.tokens.take("+") || self.tokens.take("-") {}
            let form = self.operand(depth)?;
            self.shifts()?;
            let symbol = ["+", "-", "*", "/", "%", "^", "==", "!=", "<=", "<", ">=", ">"];
            if !symbol.iter().any(|symbol| self.tokens.take(symbol)) && self.tokens.take_word(OPERATORS).is_none() {
                return Ok(if alone { form } else { Form::Other });
            }
            alone = false;
            self.tokens.take_word(&["bool"]);
            if self.tokens.take_word(&["on", "ignoring"]).is_some() {
                self.labels()?;
                if self.tokens.take_word(&["group_left", "group_right"]).is_some() && self.tokens.is("(") {
                    self.labels()?;
                }
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Form, InvalidQuery> {
        let token = self.tokens.peek();
        match token.what {
            What::Number | What::Text => {
                self.tokens.next();
                Ok(Form::Other)
            }
            What::Symbol if token.text == "(" => self.arguments(depth),
            What::Symbol if token.text == "{" => self.selector(None, token),
            What::Word => self.named(depth, token),
            What::Symbol | What::End => Err(self.tokens.wrong("a selector, a function or a number")),
        }
    }

    /// What begins with a word: a number, an aggregation, a function, or a metric.
    fn named(&mut self, depth: usize, token: Token<'a>) -> Result<Form, InvalidQuery> {
        self.tokens.next();
        let word = token.text.to_ascii_lowercase();
        let (called, is) = (self.tokens.is("("), |words: &[&str]| words.contains(&&*word));
        if is(AGGREGATIONS) && (called || self.tokens.is_word(&["by", "without"])) {
            let before = self.grouping()?;
            self.arguments(depth)?;
            let grouping = if before.is_some() { before } else { self.grouping()? };
            return Ok(grouping.unwrap_or(Form::Other));
        }
        if is(AGGREGATIONS) || is(OPERATORS) || is(KEYWORDS) {
            return Err(token.wrong("a metric, whose name is no keyword (else write {__name__=\"…\"})"));
        }
        if called {
            let of = self.arguments(depth)?;
            return Ok(if is(RATES) && of == Form::Selector { Form::Rate } else { Form::Other });
        }
        if is(&["inf", "nan"]) {
            return Ok(Form::Other);
        }
        self.selector(Some(token.text.to_owned()), token)
    }

    /// Which labels an aggregation keeps, if that is said here.
    fn grouping(&mut self) -> Result<Option<Form>, InvalidQuery> {
        let Some(word) = self.tokens.take_word(&["by", "without"]) else { return Ok(None) };
        let labels = self.labels()?;
        Ok(Some(if word.text.eq_ignore_ascii_case("by") { Form::By(labels) } else { Form::Other }))
    }

    /// Expressions in parentheses, or none; what it is, if it is one.
    fn arguments(&mut self, depth: usize) -> Result<Form, InvalidQuery> {
        self.tokens.expect("(", "( with what it is about")?;
        if self.tokens.take(")") {
            return Ok(Form::Other);
        }
        let mut form = self.expression(depth + 1)?;
        while self.tokens.take(",") {
            self.expression(depth + 1)?;
            form = Form::Other;
        }
        self.tokens.expect(")", "an operator, a comma or )")?;
        Ok(form)
    }

    /// Names of labels in parentheses.
    fn labels(&mut self) -> Result<Vec<String>, InvalidQuery> {
        self.tokens.expect("(", "( with names of labels")?;
        let mut labels = Vec::new();
        while !self.tokens.take(")") {
            labels.push(self.label()?.text.to_owned());
            if !self.tokens.take(",") {
                self.tokens.expect(")", "a comma or )")?;
                break;
            }
        }
        Ok(labels)
    }

    fn selector(&mut self, name: Option<String>, first: Token<'a>) -> Result<Form, InvalidQuery> {
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
        Ok(Form::Selector)
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
