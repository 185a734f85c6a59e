//! Texts in quotes.

/// The text that a text in quotes stands for.
///
/// # Errors
/// The escape that there is none of.
pub(super) fn unquoted(quoted: &str) -> Result<String, String> {
    let quote = quoted.chars().next().unwrap_or('`');
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if quote == '`' {
        return Ok(inner.to_owned());
    }
    let (mut out, mut rest) = (String::new(), inner.chars());
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = rest.next() else { return Err("\\".to_owned()) };
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='3' => 2,
            _ => 0,
        };
        let number: String = rest.by_ref().take(digits).collect();
        let code = |digits: &str, base, length| {
            let fits = digits.len() == length && digits.chars().all(|c| c.is_digit(base));
            u32::from_str_radix(digits, base).ok().filter(|_| fits).and_then(char::from_u32)
        };
        let c = match escape {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'v' => Some('\u{b}'),
            'x' | 'u' | 'U' => code(&number, 16, digits),
            '0'..='3' => code(&format!("{escape}{number}"), 8, 3),
            c => Some(c).filter(|c| *c == '\\' || *c == quote),
        };
        out.push(c.ok_or_else(|| format!("\\{escape}"))?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn texts_are_read_as_prometheus_reads_them() {
        for (quoted, text) in [
            ("\"a\\\\.b\"", "a\\.b"),
            ("'a\\'b\"'", "a'b\""),
            ("`a\\.b`", "a\\.b"),
            ("\"\\n\\x41\\u00e4\\101\"", "\nAäA"),
            ("\"ä\"", "ä"),
        ] {
            assert_eq!(unquoted(quoted).as_deref(), Ok(text), "{quoted}");
        }
        for (quoted, escape) in [("\"a\\.b\"", "\\."), ("\"\\d\"", "\\d"), ("\"\\'\"", "\\'"), ("\"\\x4\"", "\\x")] {
            assert_eq!(unquoted(quoted), Err(escape.to_owned()), "{quoted}");
        }
    }
}
