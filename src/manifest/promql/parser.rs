//! How a text is read: an operand by its first word, and what stands between two.

use super::kind::{self, Kind, Operator};
use super::pattern;
use super::token::{Token, Tokens, What};
use super::{Form, InvalidQuery, Part, Query, Selector, Written};
use crate::manifest::diagnostic::quoted;

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

/// Reads a query.
pub(super) fn read(text: &str) -> Result<Query, InvalidQuery> {
    let tokens = Tokens::of(text);
    let mut parser = Parser { text, tokens, parts: Vec::new(), copied: 0, flaw: None, unfamiliar: None };
    let read = parser.expression(0)?;
    parser.tokens.expect_end()?;
    parser.words_until(text.len());
    parser.doubt(kind::answers(&read));
    let Parser { parts, flaw, unfamiliar, .. } = parser;
    Ok(Query { parts, form: read.form, flaw, unfamiliar })
}

/// An expression that was read.
pub(super) struct Read<'a> {
    pub(super) form: Form,
    pub(super) kind: Kind,
    /// Where it begins.
    pub(super) at: Token<'a>,
}

/// Takes tokens and keeps the selectors among them, and what stands between.
struct Parser<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    parts: Vec<Part>,
    /// How much of the text is in the parts.
    copied: usize,
    flaw: Option<InvalidQuery>,
    unfamiliar: Option<InvalidQuery>,
}

impl<'a> Parser<'a> {
    fn words_until(&mut self, end: usize) {
        if self.copied < end {
            self.parts.push(Part::Words(self.text[self.copied..end].to_owned()));
            self.copied = end;
        }
    }

    /// Keeps what is wrong; the first mistake is told, as others may follow from it.
    fn doubt(&mut self, fits: Result<(), InvalidQuery>) {
        if let (None, Err(wrong)) = (&self.flaw, fits) {
            self.flaw = Some(wrong);
        }
    }

    /// Operands with operators between them.
    fn expression(&mut self, depth: usize) -> Result<Read<'a>, InvalidQuery> {
        if depth > DEEPEST {
            return Err(self.tokens.wrong("a query that is nested less deeply"));
        }
        let (at, mut operands, mut operators) = (self.tokens.peek(), Vec::new(), Vec::new());
        loop {
            operands.push(self.factor(depth)?);
            let Some(operator) = self.operator()? else { break };
            operators.push(operator);
        }
        if let Some(alone) = operands.pop_if(|_| operators.is_empty()) {
            return Ok(alone);
        }
        let kind = kind::joined(&operands, &operators).unwrap_or_else(|wrong| {
            self.doubt(Err(wrong));
            Kind::Unknown
        });
        Ok(Read { form: Form::Other, kind, at })
    }

    /// An operand with the signs before it and the time behind it.
    fn factor(&mut self, depth: usize) -> Result<Read<'a>, InvalidQuery> {
        let mut sign = false;
        while self.tokens.take("+") || self.tokens.take("-") {
            sign = true;
        }
        let read = self.operand(depth)?;
        let read = self.shifts(read)?;
        if sign {
            self.doubt(kind::signed(&read));
        }
        Ok(read)
    }

    fn operator(&mut self) -> Result<Option<Operator>, InvalidQuery> {
        let taken = |tokens: &mut Tokens<'a>, symbols: &[&str]| symbols.iter().any(|symbol| tokens.take(symbol));
        let mut operator = if taken(&mut self.tokens, &["+", "-", "*", "/", "%", "^"]) {
            Operator::Arithmetic
        } else if taken(&mut self.tokens, &["==", "!=", "<=", "<", ">=", ">"]) {
            Operator::Comparison(false)
        } else if let Some(word) = self.tokens.take_word(OPERATORS) {
            if word.text.eq_ignore_ascii_case("atan2") { Operator::Arithmetic } else { Operator::Set }
        } else {
            return Ok(None);
        };
        if self.tokens.take_word(&["bool"]).is_some() && operator == Operator::Comparison(false) {
            operator = Operator::Comparison(true);
        }
        if self.tokens.take_word(&["on", "ignoring"]).is_some() {
            self.labels()?;
            if self.tokens.take_word(&["group_left", "group_right"]).is_some() && self.tokens.is("(") {
                self.labels()?;
            }
        }
        Ok(Some(operator))
    }

    fn operand(&mut self, depth: usize) -> Result<Read<'a>, InvalidQuery> {
        let at = self.tokens.peek();
        match at.what {
            What::Number | What::Text => {
                self.tokens.next();
                if at.what == What::Text {
                    self.spelt(at);
                }
                let kind = if at.what == What::Text { Kind::Text } else { Kind::Scalar };
                Ok(Read { form: Form::Other, kind, at })
            }
            What::Symbol if at.text == "(" => {
                self.tokens.next();
                let inner = self.expression(depth + 1)?;
                self.tokens.expect(")", "an operator or )")?;
                Ok(Read { at, ..inner })
            }
            What::Symbol if at.text == "{" => self.selector(None, at),
            What::Word => self.named(depth, at),
            What::Symbol | What::End => Err(self.tokens.wrong("a selector, a function or a number")),
        }
    }

    /// What begins with a word: a number, an aggregation, a function, or a metric.
    fn named(&mut self, depth: usize, at: Token<'a>) -> Result<Read<'a>, InvalidQuery> {
        self.tokens.next();
        let word = at.text.to_ascii_lowercase();
        let (called, is) = (self.tokens.is("("), |words: &[&str]| words.contains(&&*word));
        if is(AGGREGATIONS) && (called || self.tokens.is_word(&["by", "without"])) {
            let before = self.grouping()?;
            let arguments = self.arguments(depth)?;
            let grouping = if before.is_some() { before } else { self.grouping()? };
            self.doubt(kind::aggregates(&word, at, &arguments));
            return Ok(Read { form: grouping.unwrap_or(Form::Other), kind: Kind::Vector, at });
        }
        if is(AGGREGATIONS) || is(OPERATORS) || is(KEYWORDS) {
            return Err(at.wrong("a metric, whose name is no keyword (else write {__name__=\"…\"})"));
        }
        if called {
            let arguments = self.arguments(depth)?;
            return Ok(self.function(at, &arguments));
        }
        if is(&["inf", "nan"]) {
            return Ok(Read { form: Form::Other, kind: Kind::Scalar, at });
        }
        self.selector(Some(at.text.to_owned()), at)
    }

    fn function(&mut self, at: Token<'a>, arguments: &[Read<'a>]) -> Read<'a> {
        let of_counter = matches!(arguments, [one] if one.form == Form::Selector) && RATES.contains(&at.text);
        let form = if of_counter { Form::Rate } else { Form::Other };
        let kind = match kind::given(at, arguments) {
            Some(Ok(kind)) => kind,
            Some(Err(wrong)) => {
                self.doubt(Err(wrong));
                Kind::Unknown
            }
            None => {
                let found = format!("{} is no function of PromQL", at.text);
                let meant = kind::meant(at.text).unwrap_or("a function");
                self.unfamiliar.get_or_insert_with(|| at.doubted(found, meant));
                Kind::Unknown
            }
        };
        Read { form, kind, at }
    }

    /// What a text in quotes stands for.
    fn spelt(&mut self, token: Token<'a>) -> Option<String> {
        let text = pattern::unquoted(token.text).map_err(|escape| {
            let found = format!("there is no escape {escape} in a text between {}", &token.text[..1]);
            token.doubted(found, format!("\\{escape}, or the text between backticks"))
        });
        match text {
            Ok(text) => Some(text),
            Err(wrong) => {
                self.doubt(Err(wrong));
                None
            }
        }
    }

    /// Which labels an aggregation keeps, if that is said here.
    fn grouping(&mut self) -> Result<Option<Form>, InvalidQuery> {
        let Some(word) = self.tokens.take_word(&["by", "without"]) else { return Ok(None) };
        let labels = self.labels()?;
        Ok(Some(if word.text.eq_ignore_ascii_case("by") { Form::By(labels) } else { Form::Other }))
    }

    /// Expressions in parentheses, or none.
    fn arguments(&mut self, depth: usize) -> Result<Vec<Read<'a>>, InvalidQuery> {
        self.tokens.expect("(", "( with what it is about")?;
        let mut all = Vec::new();
        if self.tokens.take(")") {
            return Ok(all);
        }
        all.push(self.expression(depth + 1)?);
        while self.tokens.take(",") {
            all.push(self.expression(depth + 1)?);
        }
        self.tokens.expect(")", "an operator, a comma or )")?;
        Ok(all)
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

    fn selector(&mut self, name: Option<String>, first: Token<'a>) -> Result<Read<'a>, InvalidQuery> {
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
        Ok(Read { form: Form::Selector, kind: Kind::Vector, at: first })
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
        let text = self.spelt(value).filter(|_| operator.ends_with('~'));
        if let Some((text, why)) = text.and_then(|text| Some((quoted(&text), pattern::mistake(&text)?))) {
            self.doubt(Err(value.doubted(format!("{text} is no pattern: {why}"), "a pattern of RE2")));
        }
        let [label, operator, value] = [label.text, operator, value.text].map(str::to_owned);
        Ok(Written { label, operator, value })
    }

    fn label(&mut self) -> Result<Token<'a>, InvalidQuery> {
        let token = self.tokens.next();
        if matches!(token.what, What::Word | What::Text) { Ok(token) } else { Err(token.wrong("the name of a label")) }
    }

    /// Of which time: a range or a subquery in brackets, `offset`, `@`.
    fn shifts(&mut self, mut read: Read<'a>) -> Result<Read<'a>, InvalidQuery> {
        let mut plain = read.form == Form::Selector && read.at.text != "(";
        loop {
            let at = self.tokens.peek();
            if self.tokens.take("[") {
                let of_any = self.range()?;
                let found = match (read.kind, plain || of_any) {
                    (Kind::Vector | Kind::Unknown, true) => None,
                    (Kind::Range, _) => Some("this is a range already"),
                    _ => Some("a range stands behind what selects series alone"),
                };
                self.doubt(
                    found.map_or(Ok(()), |found| Err(at.doubted(found.to_owned(), "a subquery, such as [5m:1m]"))),
                );
                (read.kind, plain) = (Kind::Range, true);
                continue;
            }
            if self.tokens.take_word(&["offset"]).is_some() {
                self.tokens.take("-");
                self.duration()?;
            } else if self.tokens.take("@") {
                if self.tokens.take_word(&["start", "end"]).is_some() {
                    self.tokens.expect("(", "()")?;
                    self.tokens.expect(")", ")")?;
                } else {
                    self.tokens.take("-");
                    self.number("a time in seconds, start() or end()")?;
                }
            } else {
                return Ok(read);
            }
            if !plain {
                let found = format!("{} stands behind what selects series, or a range", at.text);
                self.doubt(Err(at.doubted(found, "the same behind the metric")));
            }
        }
    }

    /// Up to the closing bracket; whether it is one of a subquery.
    fn range(&mut self) -> Result<bool, InvalidQuery> {
        const WANTED: &str = "a duration and ]";
        self.duration()?;
        let subquery = self.tokens.take(":");
        if subquery && !self.tokens.is("]") {
            self.duration()?;
        }
        self.tokens.expect("]", WANTED).map(|()| subquery)
    }

    fn duration(&mut self) -> Result<(), InvalidQuery> {
        let token = self.tokens.peek();
        self.number("a duration")?;
        let mut rest = token.text;
        let is_number = rest.parse::<f64>().is_ok();
        while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0) {
            let unit = ["ms", "s", "m", "h", "d", "w", "y"].iter().find(|unit| rest[digits..].starts_with(**unit));
            let Some(unit) = unit else { break };
            rest = &rest[digits + unit.len()..];
        }
        if !rest.is_empty() && !is_number {
            let found = format!("{} is no duration", quoted(token.text));
            self.doubt(Err(token.doubted(found, "a number and one of ms, s, m, h, d, w and y, such as 1m")));
        }
        Ok(())
    }

    fn number(&mut self, wanted: &'static str) -> Result<(), InvalidQuery> {
        let token = self.tokens.next();
        if token.what == What::Number { Ok(()) } else { Err(token.wrong(wanted)) }
    }
}
