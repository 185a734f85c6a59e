//! What expressions are, what functions take and give, and whether that fits together
//! (<https://prometheus.io/docs/prometheus/latest/querying/functions/>).

use super::InvalidQuery;
use super::parser::Read;
use super::token::Token;
use crate::manifest::schema::nearest;
use Kind::{Range, Scalar, Text, Unknown, Vector};

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One number.
    Scalar,
    /// A value of each series.
    Vector,
    /// Some time's values of each series.
    Range,
    Text,
    /// What a function gives that is not known here.
    Unknown,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Scalar => "one number",
            Vector => "one value of each series",
            Range => "a range of values",
            Text => "a text",
            Unknown => "something",
        }
    }

    /// How something else becomes this.
    fn wanted(self) -> &'static str {
        match self {
            Scalar => "a number, or scalar(…)",
            Vector => "a metric, or what a function such as rate(…) makes of a range",
            Range => "a range behind the metric, such as [1m]",
            Text | Unknown => "a text in quotes",
        }
    }

    fn is(self, other: Self) -> bool {
        self == other || self == Unknown
    }
}

/// Functions that take and give the same.
struct Functions {
    names: &'static [&'static str],
    takes: &'static [Kind],
    /// The fewest arguments.
    least: usize,
    /// The most; those that are more are as the last one.
    most: usize,
    gives: Kind,
}

const fn each(names: &'static [&'static str], takes: &'static [Kind]) -> Functions {
    Functions { names, takes, least: takes.len(), most: takes.len(), gives: Vector }
}

/// The last argument may be left out, or stand there as often as that makes `most` in all.
const fn optional(names: &'static [&'static str], takes: &'static [Kind], most: usize) -> Functions {
    Functions { names, takes, least: takes.len() - 1, most, gives: Vector }
}

const fn number(names: &'static [&'static str], takes: &'static [Kind]) -> Functions {
    Functions { names, takes, least: takes.len(), most: takes.len(), gives: Scalar }
}

const MANY: usize = usize::MAX;

/// Those of Prometheus 2 and 3, also the experimental ones, and those of Thanos.
#[rustfmt::skip]
const FUNCTIONS: &[Functions] = &[
    each(
        &[
            "abs", "absent", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg", "exp", "floor",
            "histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum", "ln", "log10", "log2", "rad",
            "sgn", "sin", "sinh", "sort", "sort_desc", "sqrt", "start_timestamp", "tan", "tanh", "timestamp",
        ],
        &[Vector],
    ),
    each(
        &[
            "absent_over_time", "avg_over_time", "changes", "count_over_time", "delta", "deriv", "first_over_time", "idelta", "increase",
            "irate", "last_over_time", "mad_over_time", "max_over_time", "min_over_time", "present_over_time", "rate", "resets",
            "stddev_over_time", "stdvar_over_time", "sum_over_time", "ts_of_first_over_time", "ts_of_last_over_time",
            "ts_of_max_over_time", "ts_of_min_over_time", "xdelta", "xincrease", "xrate",
        ],
        &[Range],
    ),
    each(&["clamp"], &[Vector, Scalar, Scalar]),
    each(&["clamp_max", "clamp_min"], &[Vector, Scalar]),
    each(&["double_exponential_smoothing", "holt_winters"], &[Range, Scalar, Scalar]),
    each(&["histogram_fraction"], &[Scalar, Scalar, Vector]),
    each(&["histogram_quantile"], &[Scalar, Vector]),
    each(&["label_replace"], &[Vector, Text, Text, Text, Text]),
    each(&["predict_linear"], &[Range, Scalar]),
    each(&["quantile_over_time"], &[Scalar, Range]),
    each(&["vector"], &[Scalar]),
    optional(
        &["day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month", "year"],
        &[Vector],
        1,
    ),
    optional(&["histogram_quantiles"], &[Vector, Text, Scalar, Scalar], 12),
    optional(&["info"], &[Vector, Vector], 2),
    optional(&["integral"], &[Range, Scalar], 2),
    optional(&["label_join"], &[Vector, Text, Text, Text], MANY),
    optional(&["round"], &[Vector, Scalar], 2),
    optional(&["sort_by_label", "sort_by_label_desc"], &[Vector, Text], MANY),
    number(&["end", "pi", "range", "start", "step", "time"], &[]),
    number(&["max_of", "min_of"], &[Scalar, Scalar]),
    number(&["scalar"], &[Vector]),
];

/// What an aggregation takes.
fn aggregated(name: &str) -> &'static [Kind] {
    match name {
        "topk" | "bottomk" | "limitk" | "limit_ratio" | "quantile" => &[Scalar, Vector],
        "count_values" => &[Text, Vector],
        _ => &[Vector],
    }
}

/// Whether what is aggregated fits; `name` in lower-case letters.
pub(super) fn aggregates(name: &str, called: Token<'_>, arguments: &[Read<'_>]) -> Result<(), InvalidQuery> {
    let takes = aggregated(name);
    fit(called, takes, (takes.len(), takes.len()), arguments)
}

/// What a function gives; an error where its arguments do not fit. None of one that is not known.
pub(super) fn given(called: Token<'_>, arguments: &[Read<'_>]) -> Option<Result<Kind, InvalidQuery>> {
    let function = FUNCTIONS.iter().find(|function| function.names.contains(&called.text))?;
    let Functions { names: _, takes, least, most, gives } = function;
    Some(fit(called, takes, (*least, *most), arguments).map(|()| *gives))
}

/// The function that was most likely meant.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    let names: Vec<&'static str> = FUNCTIONS.iter().flat_map(|function| function.names).copied().collect();
    nearest(&name.to_ascii_lowercase(), &names).and_then(|near| names.iter().find(|name| **name == near).copied())
}

fn fit(
    called: Token<'_>,
    takes: &[Kind],
    (least, most): (usize, usize),
    arguments: &[Read<'_>],
) -> Result<(), InvalidQuery> {
    let (name, count) = (called.text, arguments.len());
    if !(least..=most).contains(&count) {
        let wanted = match most {
            most if most == least => format!("{least} of them"),
            MANY => format!("at least {least} of them"),
            most => format!("{least} to {most} of them"),
        };
        let found = format!("{name} does not take {count} argument{}", if count == 1 { "" } else { "s" });
        return Err(called.doubted(found, wanted));
    }
    let wanted = (0..count).filter_map(|i| takes.get(i).or(takes.last()));
    match arguments.iter().zip(wanted).find(|(argument, wanted)| !argument.kind.is(**wanted)) {
        None => Ok(()),
        Some((argument, wanted)) => {
            let found = format!("{name} takes {}, and this is {}", wanted.words(), argument.kind.words());
            Err(argument.at.doubted(found, wanted.wanted()))
        }
    }
}

/// What stands between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Arithmetic,
    /// With or without `bool`.
    Comparison(bool),
    /// `and`, `or`, `unless`.
    Set,
}

/// What operands are together: sets bind less closely than comparisons, these less than arithmetic.
pub(super) fn joined(operands: &[Read<'_>], operators: &[Operator]) -> Result<Kind, InvalidQuery> {
    let is_set = |operator: &Operator| *operator == Operator::Set;
    let (mut from, mut kind) = (0, Scalar);
    for part in operators.split(is_set) {
        kind = compared(&operands[from..=from + part.len()], part)?;
        if operators.iter().any(is_set) && !kind.is(Vector) {
            let found = "and, or and unless are about series, and this is one number";
            return Err(operands[from].at.doubted(found.to_owned(), "a metric, or vector(…)"));
        }
        from += part.len() + 1;
    }
    Ok(kind)
}

fn compared(operands: &[Read<'_>], operators: &[Operator]) -> Result<Kind, InvalidQuery> {
    let mut kind = counted(&operands[..1])?;
    let mut next = 1;
    while next < operands.len() {
        let operator = operators[next - 1];
        let run = operators[next..].iter().take_while(|operator| **operator == Operator::Arithmetic).count();
        let right = counted(&operands[next..=next + run])?;
        if operator == Operator::Comparison(false) && (kind, right) == (Scalar, Scalar) {
            let found = "two numbers are compared, which leaves none".to_owned();
            return Err(operands[next].at.doubted(found, "bool before it"));
        }
        kind = counted_kinds([kind, right]);
        next += run + 1;
    }
    Ok(kind)
}

fn counted(operands: &[Read<'_>]) -> Result<Kind, InvalidQuery> {
    match operands.iter().find(|operand| matches!(operand.kind, Range | Text)) {
        Some(wrong) => {
            Err(wrong.at.doubted(format!("nothing is counted with {}", wrong.kind.words()), Vector.wanted()))
        }
        None => Ok(operands.iter().fold(Scalar, |kind, operand| counted_kinds([kind, operand.kind]))),
    }
}

fn counted_kinds(kinds: [Kind; 2]) -> Kind {
    [Vector, Unknown].into_iter().find(|kind| kinds.contains(kind)).unwrap_or(Scalar)
}

/// What is asked for as a whole has one value at each moment.
pub(super) fn answers(read: &Read<'_>) -> Result<(), InvalidQuery> {
    match read.kind {
        Range | Text => {
            let found = format!("the query yields {}, which is no value at one moment", read.kind.words());
            Err(read.at.doubted(found, Vector.wanted()))
        }
        Scalar | Vector | Unknown => Ok(()),
    }
}

/// Whether a sign may stand before it.
pub(super) fn signed(read: &Read<'_>) -> Result<(), InvalidQuery> {
    counted(std::slice::from_ref(read)).map(|_| ())
}
