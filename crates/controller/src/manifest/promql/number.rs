//! Numbers and durations, as Go reads them (`strconv.ParseInt` to the base 0, `strconv.ParseFloat`, `model.ParseDuration`).

/// The units of a duration, in the order in which they stand, each once at the most.
const UNITS: [&str; 7] = ["y", "w", "d", "h", "m", "s", "ms"];

/// How much a number or a duration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Nothing,
    Something,
}

/// How much a text is; none if it is neither a number nor a duration.
pub(super) fn amount(text: &str) -> Option<Amount> {
    let is_some = if is_number(text) {
        let lower = text.to_ascii_lowercase();
        let digits = lower.strip_prefix("0x").unwrap_or_else(|| lower.split('e').next().unwrap_or_default());
        digits.contains(|c: char| c.is_ascii_hexdigit() && c != '0')
    } else {
        duration(text)?
    };
    Some(if is_some { Amount::Something } else { Amount::Nothing })
}

fn is_number(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        return separated(hex.strip_prefix('_').unwrap_or(hex), |c| c.is_ascii_hexdigit());
    }
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    separated(&lower, |c| c.is_ascii_digit()) || lower.chars().all(plain) && lower.parse::<f64>().is_ok()
}

/// Digits with single underscores between them.
fn separated(text: &str, is_digit: impl Fn(char) -> bool) -> bool {
    text.split('_').all(|part| !part.is_empty() && part.chars().all(&is_digit))
}

/// Whether a duration is more than nothing; none if it is no duration.
fn duration(text: &str) -> Option<bool> {
    let (mut rest, mut units, mut is_some) = (text, UNITS.iter(), false);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let letters = rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let unit = &rest[digits..digits + letters];
        units.find(|known| **known == unit)?;
        is_some |= rest[..digits].contains(|c| c != '0');
        rest = &rest[digits + letters..];
    }
    (!text.is_empty()).then_some(is_some)
}

#[cfg(test)]
mod tests {
    use super::{Amount, amount};

    #[test]
    fn numbers_and_durations_are_read_as_go_reads_them() {
        for text in [
            "1",
            "1.5",
            ".5",
            "5.",
            "1e3",
            "1E-3",
            "1e+3",
            "0x1f",
            "0X_1F",
            "1_000",
            "5m",
            "1h30m",
            "1y2w3d4h5m6s7ms",
            "0x0a",
        ] {
            assert_eq!(amount(text), Some(Amount::Something), "{text}");
        }
        for text in ["0", "0.0", "0e5", "0x0", "0s", "0h0m", "00"] {
            assert_eq!(amount(text), Some(Amount::Nothing), "{text}");
        }
        for text in [
            "", ".", "1e", "0x", "5min", "1m1h", "1m1m", "0x5m", "1.5m", "1_", "1__0", "1_0.5", "m", "5 m", "0b1",
            "1e5m",
        ] {
            assert_eq!(amount(text), None, "{text}");
        }
    }
}
