//! The conditions of a metric as bounds.

use crate::draft::number;

/// What is good, as a range.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Whether a bound is not good itself.
    pub strict: bool,
}

/// How a value may compare with a number: whether it may be less, equal, greater.
type Holds = [bool; 3];

/// How conditions say it, the longer words first.
const OPERATORS: [(&str, Holds); 6] = [
    ("<=", [true, true, false]),
    (">=", [false, true, true]),
    ("==", [false, true, false]),
    ("!=", [true, false, true]),
    ("<", [true, false, false]),
    (">", [false, false, true]),
];

/// All comparisons hold of what is good.
pub(super) fn good(text: &str) -> Option<Bounds> {
    all(text.split("&&").flat_map(|part| part.split(" and ")).map(comparison))
}

/// Any comparison that holds makes it bad.
pub(super) fn bad(text: &str) -> Option<Bounds> {
    let parts = text.split("||").flat_map(|part| part.split(" or "));
    all(parts.map(|part| comparison(part).map(|(holds, number)| (holds.map(|holds| !holds), number))))
}

fn all(parts: impl Iterator<Item = Option<(Holds, f64)>>) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    for part in parts {
        let ([less, equal, greater], number) = part?;
        if less && greater {
            return None;
        }
        if !less {
            bounds.min = Some(bounds.min.map_or(number, |min| min.max(number)));
        }
        if !greater {
            bounds.max = Some(bounds.max.map_or(number, |max| max.min(number)));
        }
        bounds.strict |= !equal;
    }
    let Bounds { min, max, strict: _ } = bounds;
    let fits = number(min.unwrap_or(0.0)).is_some() && number(max.unwrap_or(0.0)).is_some();
    (fits && min.zip(max).is_none_or(|(min, max)| min <= max)).then_some(bounds)
}

/// `result[0] >= 0.95`, either way around: how the result compares with the number.
fn comparison(text: &str) -> Option<(Holds, f64)> {
    let found = OPERATORS.into_iter().find_map(|(how, holds)| Some((holds, text.split_once(how)?)));
    let ([less, equal, greater], (left, right)) = found?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match (number(left), number(right)) {
        (_, Some(number)) if is_result(left) => Some(([less, equal, greater], number)),
        (Some(number), _) if is_result(right) => Some(([greater, equal, less], number)),
        _ => None,
    }
}

fn is_result(text: &str) -> bool {
    let text = text.trim();
    let inner = ["asFloat(", "asInt("].into_iter().find_map(|cast| text.strip_prefix(cast)?.strip_suffix(')'));
    matches!(inner.unwrap_or(text).trim(), "result" | "result[0]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: Option<f64>, max: Option<f64>, strict: bool) -> Option<Bounds> {
        Some(Bounds { min, max, strict })
    }

    #[test]
    fn conditions_are_bounds_or_nothing() {
        assert_eq!(good("result[0] >= 0.95"), range(Some(0.95), None, false));
        assert_eq!(good("asFloat(result) < 5 && result >= 1"), range(Some(1.0), Some(5.0), true));
        assert_eq!(good("0.5 <= result[0] and result[0] <= 1"), range(Some(0.5), Some(1.0), false));
        assert_eq!(good("result == 1"), range(Some(1.0), Some(1.0), false));
        assert_eq!(bad("result[0] > 0.05"), range(None, Some(0.05), false));
        assert_eq!(bad("result[0] < 0.9 || result[0] >= 2"), range(Some(0.9), Some(2.0), true));
        assert_eq!(bad("result != 1"), range(Some(1.0), Some(1.0), false));
        for text in [
            "",
            "true",
            "len(result) == 0 || result[0] < 1",
            "result[0] > result[1]",
            "result < 1 && result > 2",
            "result < 1e999",
            "isNaN(result)",
        ] {
            assert_eq!(good(text), None, "{text}");
        }
        assert_eq!(bad("result == 1"), None);
    }
}
