//! Kubernetes quantities, compared by value: the API server writes `1000m` back as `1`.

use serde_json::Value;

/// What one unit is in billionths, the finest that Kubernetes keeps.
const NANO: i128 = 1_000_000_000;

/// Whether both are quantities of the same value. Text that is no quantity equals nothing.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    matches!((parse(a), parse(b)), (Some(a), Some(b)) if a == b)
}

/// A quantity as the API server writes it back: with the largest suffix of its sort that leaves a whole number. None
/// if it is no quantity. (`CanonicalizeBytes` of apimachinery's `resource.Quantity`.)
pub fn canonical(value: &Value) -> Option<String> {
    let nanos = parse(value)?;
    let suffix = value.as_str().map_or("", |text| text.trim_start_matches(|c: char| !c.is_ascii_alphabetic()));
    let shrink = |number: &mut i128, by: i128, most: usize| {
        (0..most)
            .take_while(|_| {
                *number != 0 && *number % by == 0 && {
                    *number /= by;
                    true
                }
            })
            .count()
    };
    if suffix.ends_with('i') && nanos.abs() >= 1_024 * NANO {
        let mut number = nanos / NANO + i128::from(nanos % NANO > 0);
        let power = shrink(&mut number, 1_024, 6);
        return Some(format!("{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]));
    }
    let mut number = nanos;
    let power = if number == 0 { 3 } else { shrink(&mut number, 1_000, 9) };
    if suffix.len() > 1 && !suffix.ends_with('i') {
        let exponent = 3 * i64::try_from(power).ok()? - 9;
        return Some(if exponent == 0 { number.to_string() } else { format!("{number}e{exponent}") });
    }
    Some(format!("{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power]))
}

/// The value in billionths, rounded up like the API server's; none if it is no quantity or does not fit.
fn parse(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (factor, divisor) = scale(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let digits = format!("{}{fraction}", whole.trim_start_matches(['+', '-']));
    let scaled = digits.parse::<i128>().ok()?.checked_mul(factor)?.checked_mul(NANO)?;
    let divisor = divisor.checked_mul(10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?)?;
    let nanos = if negative { -(scaled / divisor) } else { scaled.checked_add(divisor - 1)? / divisor };
    Some(nanos)
}

/// Factor and divisor of a suffix, as "Quantity" of the Kubernetes API reference lists them.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let thousand = |power| 1_000_i128.pow(power);
    let binary = |power| 1_024_i128.pow(power);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, thousand(3)),
        "u" => (1, thousand(2)),
        "m" => (1, thousand(1)),
        "k" => (thousand(1), 1),
        "M" => (thousand(2), 1),
        "G" => (thousand(3), 1),
        "T" => (thousand(4), 1),
        "P" => (thousand(5), 1),
        "E" => (thousand(6), 1),
        "Ki" => (binary(1), 1),
        "Mi" => (binary(2), 1),
        "Gi" => (binary(3), 1),
        "Ti" => (binary(4), 1),
        "Pi" => (binary(5), 1),
        "Ei" => (binary(6), 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let ten = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1, ten) } else { (ten, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quantity_is_written_with_the_largest_suffix_that_leaves_a_whole_number() {
        let table = [
            (json!("1000m"), "1"),
            (json!("0.5"), "500m"),
            (json!(1_000_000), "1M"),
            (json!("1500"), "1500"),
            (json!("1024Mi"), "1Gi"),
            (json!("1536Mi"), "1536Mi"),
            (json!("0.5Ki"), "512"),
            (json!("1.5Gi"), "1536Mi"),
            (json!("0"), "0"),
            (json!("-2000m"), "-2"),
            (json!("1e3"), "1e3"),
            (json!("1000E"), "1000E"),
            (json!("10n"), "10n"),
        ];
        for (value, expected) in table {
            assert_eq!(canonical(&value).as_deref(), Some(expected), "{value}");
        }
        assert_eq!(canonical(&json!("1x")), None);
    }

    #[test]
    fn quantities_compare_by_value() {
        let table = [
            (json!("1000m"), json!("1"), true),
            (json!("0.5"), json!("500m"), true),
            (json!(1), json!("1"), true),
            (json!(0.1), json!("100m"), true),
            (json!("1Gi"), json!("1024Mi"), true),
            (json!("1G"), json!("1Gi"), false),
            (json!("1e3"), json!("1k"), true),
            (json!("1E3"), json!("1000"), true),
            (json!("1E"), json!("1000P"), true),
            (json!("25e-1"), json!("2500m"), true),
            (json!("-1"), json!("-1000m"), true),
            (json!("0.0000000001"), json!("1n"), true),
            (json!("100m"), json!("101m"), false),
            (json!("1x"), json!("1x"), false),
            (json!(""), json!("0"), false),
            (json!("1e99"), json!("1e99"), false),
            (json!(true), json!("1"), false),
        ];
        for (a, b, expected) in table {
            assert_eq!(same(&a, &b), expected, "{a} and {b}");
        }
    }
}
