//! Cookies, as what the header `Cookie` has to be (RFC 6265).

use super::desired::{HeaderMatch, HeaderValue};

const HEADER: &str = "cookie";
const BEFORE: &str = "^(.*; *)?";
const AFTER: &str = "( *;.*)?$";

/// The header `Cookie` with that cookie among its cookies. The pattern says where it begins and ends, for gateways that look for one
/// anywhere in a value, and uses nothing in which the dialects differ.
#[must_use]
pub fn matching(name: &str, value: &str) -> HeaderMatch {
    let regex = format!("{BEFORE}{}={}{AFTER}", literal(name), literal(value));
    HeaderMatch::from([(HEADER.to_owned(), HeaderValue::Regex { regex })])
}

/// The cookie, name and value, that an alternative is about, if it is one of [`matching`]'s.
#[must_use]
pub fn named(alternative: &HeaderMatch) -> Option<(String, String)> {
    let HeaderValue::Regex { regex } = alternative.get(HEADER)? else { return None };
    let (name, value) = regex.strip_prefix(BEFORE)?.strip_suffix(AFTER)?.split_once('=')?;
    let (name, value) = (meant(name), meant(value));
    (matching(&name, &value) == *alternative).then_some((name, value))
}

/// A pattern for exactly this text.
fn literal(text: &str) -> String {
    let special = |c: char| r"\.+*?()|[]{}^$".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// The text that such a pattern is for.
fn meant(literal: &str) -> String {
    let mut chars = literal.chars();
    std::iter::from_fn(|| chars.next().and_then(|c| if c == '\\' { chars.next() } else { Some(c) })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_known_again() {
        for (name, value) in [("canary", "always"), ("a.b", r"1|2+\d"), ("a", ""), ("a", "b=c")] {
            assert_eq!(named(&matching(name, value)), Some((name.to_owned(), value.to_owned())));
        }
        let two = matching("a", "1").into_iter().chain([("x".to_owned(), "y".into())]).collect();
        let by_hand =
            |regex: &str| HeaderMatch::from([(HEADER.to_owned(), HeaderValue::Regex { regex: regex.to_owned() })]);
        for other in [two, by_hand("^(.*; *)?a=.*( *;.*)?$"), by_hand("a=1"), HeaderMatch::new()] {
            assert_eq!(named(&other), None, "{other:?}");
        }
    }
}
