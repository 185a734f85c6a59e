//! Of which time series are read: ranges, `offset`, `@`.

use super::kind::Kind;
use super::number::{Amount, amount};
use super::parser::{DEEPEST, Parser, Read};
use super::token::{Token, What};
use super::{Form, InvalidQuery};
use crate::manifest::diagnostic::quoted;

impl<'a> Parser<'a> {
    /// Of which time: a range or a subquery in brackets, `offset`, `@`; and how a range counts what is outside of it.
    pub(super) fn shifts(&mut self, mut read: Read<'a>, depth: usize) -> Result<Read<'a>, InvalidQuery> {
        let mut plain = read.form == Form::Selector && read.at.text != "(";
        let (mut seen, is_time) = (Vec::<&str>::new(), |word: &&str| matches!(*word, "offset" | "@"));
        loop {
            let at = self.tokens.peek();
            if self.tokens.take("[") {
                let of_any = self.range(depth)?;
                let found = match (read.kind, plain || of_any) {
                    (Kind::Vector | Kind::Unknown, true) if of_any || !seen.iter().any(is_time) => None,
                    (Kind::Vector | Kind::Unknown, true) => {
                        Some(("a range stands behind offset or @", "the range before it"))
                    }
                    (Kind::Range, _) => Some(("this is a range already", "a subquery, such as [5m:1m]")),
                    _ => Some(("a range stands behind what selects series alone", "a subquery, such as [5m:1m]")),
                };
                self.doubt(found.map_or(Ok(()), |(found, wanted)| Err(at.doubted(found.to_owned(), wanted))));
                (read.kind, plain) = (Kind::Range, true);
                seen.clear();
                continue;
            }
            let word = if self.tokens.take_word(&["offset"]).is_some() {
                self.span(depth)?;
                "offset"
            } else if self.tokens.take("@") {
                self.moment()?;
                "@"
            } else if let Some(word) = self.tokens.take_word(&["anchored", "smoothed"]) {
                if word.text.eq_ignore_ascii_case("anchored") { "anchored" } else { "smoothed" }
            } else {
                return Ok(read);
            };
            if !plain {
                let found = format!("{} stands behind what selects series, or a range", at.text);
                self.doubt(Err(at.doubted(found, "the same behind the metric")));
            } else if is_time(&word) && seen.contains(&word) {
                self.doubt(Err(at.doubted(format!("{word} stands here twice"), "one of them")));
            } else if !is_time(&word) && seen.iter().any(|other| *other != word && !is_time(other)) {
                self.doubt(Err(at.doubted("anchored and smoothed stand here together".to_owned(), "one of them")));
            }
            seen.push(word);
        }
    }

    /// The moment behind `@`.
    fn moment(&mut self) -> Result<(), InvalidQuery> {
        if self.tokens.take_word(&["start", "end"]).is_some() {
            self.tokens.expect("(", "()")?;
            return self.tokens.expect(")", ")");
        }
        self.signed("a time in seconds, start() or end()")
    }

    /// A number, with or without a sign.
    pub(super) fn signed(&mut self, wanted: &'static str) -> Result<(), InvalidQuery> {
        if !self.tokens.take("-") {
            self.tokens.take("+");
        }
        let token = self.tokens.next();
        if token.what != What::Number {
            return Err(token.wrong(wanted));
        }
        self.amount(token);
        Ok(())
    }

    /// Up to the closing bracket; whether it is one of a subquery.
    fn range(&mut self, depth: usize) -> Result<bool, InvalidQuery> {
        const WANTED: &str = "a duration and ]";
        self.lasting(depth)?;
        let subquery = self.tokens.take(":");
        if subquery && !self.tokens.is("]") {
            self.lasting(depth)?;
        }
        self.tokens.expect("]", WANTED).map(|()| subquery)
    }

    /// A duration that is more than nothing.
    fn lasting(&mut self, depth: usize) -> Result<(), InvalidQuery> {
        let at = self.tokens.peek();
        if self.counted(depth)? == Some(Amount::Nothing) {
            let found = "a range has to be longer than nothing".to_owned();
            self.doubt(Err(at.doubted(found, "a longer one, such as 5m")));
        }
        Ok(())
    }

    /// A duration, or what newer versions of Prometheus count of several; how much it is, if it is one alone.
    fn counted(&mut self, depth: usize) -> Result<Option<Amount>, InvalidQuery> {
        let mut amount = self.span(depth)?;
        while ["+", "-", "*", "/", "%", "^"].iter().any(|symbol| self.tokens.take(symbol)) {
            self.span(depth)?;
            amount = None;
        }
        Ok(amount)
    }

    /// One duration, with or without a sign, a function of some, or several in parentheses.
    fn span(&mut self, depth: usize) -> Result<Option<Amount>, InvalidQuery> {
        const WANTED: &str = "a duration";
        if depth > DEEPEST {
            return Err(self.tokens.wrong("a query that is nested less deeply"));
        }
        let negative = self.tokens.take("-");
        if !negative {
            self.tokens.take("+");
        }
        let token = self.tokens.next();
        let called = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(token.text));
        match token.what {
            What::Number => {
                let amount = self.amount(token);
                return Ok(if negative { Some(Amount::Nothing) } else { amount });
            }
            What::Symbol if token.text == "(" => drop(self.counted(depth + 1)?),
            What::Word if called(&["step", "range"]) => self.tokens.expect("(", "()")?,
            What::Word if called(&["max_of", "min_of"]) => {
                self.tokens.expect("(", "( with two durations")?;
                self.counted(depth + 1)?;
                self.tokens.expect(",", "a comma")?;
                self.counted(depth + 1)?;
            }
            What::Word | What::Text | What::Symbol | What::End => return Err(token.wrong(WANTED)),
        }
        self.tokens.expect(")", ")").map(|()| None)
    }

    /// How much a number or a duration is.
    pub(super) fn amount(&mut self, token: Token<'a>) -> Option<Amount> {
        let amount = amount(token.text);
        if amount.is_none() {
            let found = format!("{} is neither a number nor a duration", quoted(token.text));
            self.doubt(Err(token.doubted(found, "digits and units, such as 5m or 1h30m")));
        }
        amount
    }
}
