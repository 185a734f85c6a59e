//! How a text is read: an operand by its first word, and what stands between two.

use super::kind::{self, Kind, Operator};
use super::token::{Token, Tokens, What};
use super::{Form, InvalidQuery, Part, Query, Selector, Written, pattern, quote};
use crate::manifest::diagnostic::quoted;

/// The deepest nesting.
pub(super) const DEEPEST: usize = 64;
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
/// Words that are no names of metrics.
const NO_NAMES: &[&str] = &["atan2", "bool", "group_left", "group_right", "ignoring", "on"];
/// Words that are names of metrics where nothing else can stand, and of no function.
const KEYWORDS: &[&str] = &["and", "by", "offset", "or", "unless", "without"];
/// Words that are numbers.
const NUMBERS: &[&str] = &["inf", "nan"];
/// What stands for series that are missing on one side.
const FILLS: &[&str] = &["fill", "fill_left", "fill_right"];

/// Functions of counters, which leave each series one.
const RATES: &[&str] = &["rate", "irate", "increase"];

/// Reads a query.
pub(super) fn read(text: &str) -> Result<Query, InvalidQuery> {
    let tokens = Tokens::of(text);
    let mut parser =
        Parser { text, tokens, parts: Vec::new(), copied: 0, of_labels: false, flaw: None, unfamiliar: None };
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
pub(super) struct Parser<'a> {
    text: &'a str,
    pub(super) tokens: Tokens<'a>,
    parts: Vec<Part>,
    /// How much of the text is in the parts.
    copied: usize,
    /// Whether what is read are labels that `info` looks for, in the shape of a selector.
    of_labels: bool,
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
    pub(super) fn doubt(&mut self, fits: Result<(), InvalidQuery>) {
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
        let read = self.shifts(read, depth)?;
        if sign {
            self.doubt(kind::signed(&read));
        }
        Ok(read)
    }

    fn operator(&mut self) -> Result<Option<Operator>, InvalidQuery> {
        let taken = |tokens: &mut Tokens<'a>, symbols: &[&str]| symbols.iter().any(|symbol| tokens.take(symbol));
        let (mut operator, compares) = if taken(&mut self.tokens, &["+", "-", "*", "/", "%", "^"]) {
            (Operator::Arithmetic, false)
        } else if taken(&mut self.tokens, &["==", "!=", "<=", "<", ">=", ">"]) {
            (Operator::Comparison(false), true)
        } else if taken(&mut self.tokens, &["</", ">/"]) {
            // They bind as comparisons do, and leave numbers.
            (Operator::Comparison(true), false)
        } else if let Some(word) = self.tokens.take_word(OPERATORS) {
            (if word.text.eq_ignore_ascii_case("atan2") { Operator::Arithmetic } else { Operator::Set }, false)
        } else {
            return Ok(None);
        };
        if let Some(word) = self.tokens.take_word(&["bool"]) {
            if compares {
                operator = Operator::Comparison(true);
            } else {
                self.doubt(Err(word.doubted("bool stands behind what compares nothing".to_owned(), "no bool")));
            }
        }
        if self.tokens.take_word(&["on", "ignoring"]).is_some() {
            self.labels()?;
            if let Some(word) = self.tokens.take_word(&["group_left", "group_right"]) {
                if self.tokens.is("(") {
                    self.labels()?;
                }
                if operator == Operator::Set {
                    let found = format!("and, or and unless take no {}", word.text);
                    self.doubt(Err(word.doubted(found, "none")));
                }
            }
        }
        self.fill()?;
        Ok(Some(operator))
    }

    /// Which values stand for what is missing.
    fn fill(&mut self) -> Result<(), InvalidQuery> {
        while self.tokens.is_called() {
            let Some(word) = self.tokens.take_word(FILLS) else { return Ok(()) };
            let found = format!("{} is an experimental feature of Prometheus", word.text);
            self.unfamiliar.get_or_insert_with(|| {
                word.doubted(found, "or vector(0) behind what may be missing, or a Prometheus that has it switched on")
            });
            self.tokens.expect("(", "( with a number")?;
            self.signed("a number")?;
            self.tokens.expect(")", ")")?;
        }
        Ok(())
    }

    fn operand(&mut self, depth: usize) -> Result<Read<'a>, InvalidQuery> {
        let at = self.tokens.peek();
        match at.what {
            What::Number | What::Text => {
                self.tokens.next();
                let kind = if at.what == What::Text { Kind::Text } else { Kind::Scalar };
                if kind == Kind::Text {
                    self.spelt(at);
                } else {
                    self.amount(at);
                }
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
        if is(NO_NAMES) || called && (is(KEYWORDS) || is(NUMBERS)) {
            return Err(at.wrong("a metric, whose name is no keyword (else write {__name__=\"…\"})"));
        }
        if called {
            let outer = std::mem::replace(&mut self.of_labels, at.text == "info");
            let arguments = self.arguments(depth)?;
            self.of_labels = outer;
            return Ok(self.function(at, &arguments));
        }
        if is(NUMBERS) {
            return Ok(Read { form: Form::Other, kind: Kind::Scalar, at });
        }
        self.selector(Some(at.text.to_owned()), at)
    }

    fn function(&mut self, at: Token<'a>, arguments: &[Read<'a>]) -> Read<'a> {
        let of_counter = matches!(arguments, [one] if one.form == Form::Selector) && RATES.contains(&at.text);
        let form = if of_counter { Form::Rate } else { Form::Other };
        if let ("label_replace", Some(pattern)) = (at.text, arguments.get(4).filter(|read| read.at.what == What::Text))
        {
            self.pattern(pattern.at);
        }
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
        let text = quote::unquoted(token.text).map_err(|escape| {
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

    /// A text that has to be a pattern.
    fn pattern(&mut self, token: Token<'a>) {
        let Ok(text) = quote::unquoted(token.text) else { return };
        if let Some(why) = pattern::mistake(&text) {
            self.doubt(Err(token.doubted(format!("{} is no pattern: {why}", quoted(&text)), "a pattern of RE2")));
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
            let label = self.label()?;
            if label.what == What::Word
                && ["without", "inf", "nan"].iter().any(|word| word.eq_ignore_ascii_case(label.text))
            {
                return Err(label.wrong("the name of a label, in quotes if it is this one"));
            }
            labels.push(label.text.to_owned());
            if !self.tokens.take(",") {
                self.tokens.expect(")", "a comma or )")?;
                break;
            }
        }
        Ok(labels)
    }

    fn selector(&mut self, name: Option<String>, first: Token<'a>) -> Result<Read<'a>, InvalidQuery> {
        self.words_until(first.start);
        let (mut matchers, mut chooses) = (Vec::new(), name.is_some() || self.of_labels);
        let mut end = first.end();
        if self.tokens.take("{") {
            while !self.tokens.is("}") {
                let (matcher, at) = (self.tokens.peek(), self.matcher()?);
                let names = at.operator.is_empty() || super::unquoted(&at.label) == "__name__";
                if names && name.is_some() {
                    let found = "the name of the metric stands here twice".to_owned();
                    self.doubt(Err(matcher.doubted(found, "one name")));
                }
                chooses |= at.chooses();
                matchers.push(at);
                if !self.tokens.take(",") && !self.tokens.is("}") {
                    return Err(self.tokens.wrong("a comma or }"));
                }
            }
            end = self.tokens.next().end();
        }
        if !chooses {
            let found = "nothing is chosen here, so that all series there are would be taken".to_owned();
            self.doubt(Err(first.doubted(found, "a metric, or a label with a value that is not empty")));
        }
        self.parts.push(Part::Selector(Selector { name, matchers }));
        self.copied = end;
        Ok(Read { form: Form::Selector, kind: Kind::Vector, at: first })
    }

    fn matcher(&mut self) -> Result<Written, InvalidQuery> {
        let label = self.label()?;
        if label.what == What::Word && label.text.contains(':') {
            return Err(label.wrong("the name of a label, which has no colon"));
        }
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
        if self.spelt(value).is_some() && operator.ends_with('~') {
            self.pattern(value);
        }
        let [label, operator, value] = [label.text, operator, value.text].map(str::to_owned);
        Ok(Written { label, operator, value })
    }

    fn label(&mut self) -> Result<Token<'a>, InvalidQuery> {
        let token = self.tokens.next();
        if matches!(token.what, What::Word | What::Text) { Ok(token) } else { Err(token.wrong("the name of a label")) }
    }
}
