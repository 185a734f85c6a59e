//! What an unquoted scalar means.
//!
//! Kubernetes manifests are read as kubectl reads them: the rules are those of `goyaml.v2/resolve.go` in
//! `sigs.k8s.io/yaml` (YAML 1.1 booleans, legacy octal, `_` in numbers, no base 60, dates stay texts). Our own files
//! take only what YAML 1.1 and 1.2 read alike.

use super::Dialect;
use serde_json::{Number, Value};

/// What an unquoted scalar was read as.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plain {
    /// A value.
    Value(Value),
    /// A number that JSON has no room for.
    NoNumber,
    /// YAML 1.1 and 1.2 disagree, in our own file: on what, and how to mend it.
    Ambiguous(&'static str, &'static str),
}

/// Reads an unquoted scalar.
pub(super) fn resolve(text: &str, dialect: Dialect) -> Plain {
    match dialect {
        Dialect::Own => own(text),
        Dialect::Kubernetes => kubectl(text),
    }
}

fn own(text: &str) -> Plain {
    const YAML_11_BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    if YAML_11_BOOLEANS.contains(&unsigned) {
        return Plain::Ambiguous(
            "a text or a truth value, depending on the reader",
            "write true or false, or quote it",
        );
    }
    if [".nan", ".inf"].contains(&unsigned) {
        return Plain::NoNumber;
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Value(Value::Null),
        "true" | "True" | "TRUE" => return Plain::Value(true.into()),
        "false" | "False" | "FALSE" => return Plain::Value(false.into()),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Plain::Value(text.into());
    }
    own_number(text, unsigned)
}

fn own_number(text: &str, unsigned: &str) -> Plain {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|c| c.is_ascii_digit());
    if digits(unsigned) {
        if unsigned.len() > 1 && unsigned.starts_with('0') {
            return Plain::Ambiguous(
                "octal or decimal, depending on the reader",
                "write it without the zero, or quote it",
            );
        }
        let plain = text.strip_prefix('+').unwrap_or(text);
        return plain.parse::<i64>().map_or(Plain::NoNumber, |n| Plain::Value(n.into()));
    }
    let prefixed = ["0x", "0o", "0b"].iter().any(|p| unsigned.strip_prefix(p).is_some_and(all_word));
    if prefixed || (unsigned.contains('_') && digits(&unsigned.replace('_', ""))) {
        return Plain::Ambiguous(
            "a text or a number, depending on the reader",
            "write it in plain digits, or quote it",
        );
    }
    if unsigned.contains(':') && unsigned.split(':').all(digits) {
        return Plain::Ambiguous("a text or a number to the base 60, depending on the reader", "quote it");
    }
    match float(unsigned) {
        None => Plain::Value(text.into()),
        Some(n) if !n.is_finite() => Plain::NoNumber,
        Some(n) if n.fract() == 0.0 => {
            Plain::Ambiguous("a whole number written as a fraction", "write it in plain digits")
        }
        Some(_) => text.parse().ok().and_then(Number::from_f64).map_or(Plain::NoNumber, |n| Plain::Value(n.into())),
    }
}

fn all_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_hexdigit() || c == b'_')
}

/// Go's `yamlStyleFloat`: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|c| c.is_ascii_digit());
    let shaped = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some((whole, part)) => {
            (whole.is_empty() || digits(whole)) && (digits(part) || (part.is_empty() && !whole.is_empty()))
        }
    };
    let scaled = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    if shaped && scaled { text.parse().ok() } else { None }
}

fn kubectl(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Value(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Plain::Value(true.into());
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Plain::Value(false.into());
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => return Plain::NoNumber,
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Plain::Value(text.into());
    }
    let plain = if text.starts_with('.') { text.to_owned() } else { text.replace('_', "") };
    match go_integer(&plain) {
        Some(Some(number)) => return Plain::Value(number.into()),
        // goyaml makes a big integer of it, which the API server then refuses.
        Some(None) => return Plain::NoNumber,
        None => {}
    }
    // A float that overflows is an error to Go's ParseFloat, and so stays a text.
    let number = float(&plain).filter(|n| n.is_finite()).and_then(Number::from_f64);
    Plain::Value(number.map_or_else(|| text.into(), Value::Number))
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint`: `None` if it is no integer, `Some(None)` if it has no room.
fn go_integer(text: &str) -> Option<Option<Number>> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .find_map(|&(prefix, radix)| lower.strip_prefix(prefix).map(|rest| (radix, rest)))
        .or_else(|| lower.strip_prefix('0').filter(|rest| !rest.is_empty()).map(|rest| (8, rest)))
        .unwrap_or((10, &lower));
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok().map(|n| if negative { -n } else { n });
    Some(value.and_then(|n| i64::try_from(n).map(Number::from).or_else(|_| u64::try_from(n).map(Number::from)).ok()))
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Plain, resolve};
    use serde_json::{Value, json};

    fn kubectl(text: &str) -> Plain {
        resolve(text, Dialect::Kubernetes)
    }

    #[test]
    fn attack_31_kubernetes_scalars_are_read_as_kubectl_reads_them() {
        let cases: &[(&str, Value)] = &[
            ("no", json!(false)),
            ("Yes", json!(true)),
            ("y", json!(true)),
            ("On", json!(true)),
            ("yEs", json!("yEs")),
            ("0644", json!(420)),
            ("0o10", json!(8)),
            ("0x1F", json!(31)),
            ("-0b11", json!(-3)),
            ("1_000", json!(1000)),
            ("08", json!(8.0)),
            ("1:30", json!("1:30")),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("1e309", json!("1e309")),
            ("2001-01-01", json!("2001-01-01")),
            ("1.2.3", json!("1.2.3")),
            ("10m", json!("10m")),
            ("-", json!("-")),
            ("~", Value::Null),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ];
        for (text, expected) in cases {
            assert_eq!(kubectl(text), Plain::Value(expected.clone()), "{text}");
        }
        assert_eq!(kubectl("18446744073709551616"), Plain::NoNumber);
        assert_eq!(kubectl(".inf"), Plain::NoNumber);
    }

    #[test]
    fn attack_31_our_files_refuse_what_readers_disagree_on() {
        for text in
            ["no", "Yes", "y", "ON", "off", "0644", "08", "0o10", "0x1F", "1_000", "1:30", "1:30:00", "1e3", "10.0"]
        {
            assert!(matches!(resolve(text, Dialect::Own), Plain::Ambiguous(..)), "{text}");
        }
        for text in ["1e309", "-1e999", "9223372036854775808", ".inf", "-.INF", ".nan"] {
            assert_eq!(resolve(text, Dialect::Own), Plain::NoNumber, "{text}");
        }
        let fine: &[(&str, Value)] = &[
            ("10", json!(10)),
            ("-1", json!(-1)),
            ("0", json!(0)),
            ("0.01", json!(0.01)),
            ("100.0000001", json!(100.000_000_1)),
            ("10m", json!("10m")),
            ("7-9ac41f02", json!("7-9ac41f02")),
            ("1h30m", json!("1h30m")),
            ("always", json!("always")),
            ("true", json!(true)),
        ];
        for (text, expected) in fine {
            assert_eq!(resolve(text, Dialect::Own), Plain::Value(expected.clone()), "{text}");
        }
    }
}
