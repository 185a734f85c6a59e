//! Queries that tell versions apart by the hash of their pods: here they are about nobody in particular, and tidegate says whose series
//! they read; one that holds the new version against the stable one becomes a comparison.

use tidegate_controller::manifest::promql::{Query, Selector};

/// What stands for the hash of the new version's pods until the query is read.
pub(super) const LATEST: &str = "hash.of.latest";
/// The same of the stable version's.
pub(super) const STABLE: &str = "hash.of.stable";
/// The label with the name of the pod, as Prometheus calls it in a cluster by custom.
pub(super) const POD: &str = "pod";

/// What a query asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// What it says.
    AsSaid,
    /// The same of the new version's series.
    OfLatest(String),
    /// How the new version's value compares with stable's: `ratio` or `difference`.
    Compared(String, &'static str),
}

/// What a query asks; none if it tells versions apart in a way that has no equal here.
pub(super) fn asked(query: &str) -> Option<Asked> {
    match (query.contains(LATEST), query.contains(STABLE)) {
        (false, false) => Some(Asked::AsSaid),
        (true, false) => Some(Asked::OfLatest(bare(query, LATEST)?)),
        (_, true) => {
            let (left, how, right) = halves(query)?;
            let (latest, stable) = (bare(left, LATEST)?, bare(right, STABLE)?);
            (latest == stable).then_some(Asked::Compared(latest, how))
        }
    }
}

/// The query without the matchers by the hash; none if not all of its series are chosen by it, or by the name of the pod as well.
fn bare(query: &str, hash: &str) -> Option<String> {
    let bare = Query::parse(query.trim()).ok()?.without(hash)?;
    let again = Query::parse(&bare).ok()?;
    let by_pod = again.selectors().flat_map(Selector::labels).any(|label| label == POD);
    (!by_pod && !bare.contains(LATEST) && !bare.contains(STABLE)).then_some(bare)
}

/// What else joins two values, beside symbols.
const JOINS: [&str; 4] = ["and", "or", "unless", "atan2"];

/// Both sides of the one division or subtraction that is not inside of anything, if nothing else is joined there: which of two operators
/// binds closer is nothing that a cut could tell.
fn halves(query: &str) -> Option<(&str, &'static str, &str)> {
    let (mut depth, mut quote, mut found, mut outside) = (0_i32, None, Vec::new(), String::new());
    for (at, c) in query.char_indices() {
        outside.push(if depth == 0 && quote.is_none() { c.to_ascii_lowercase() } else { ' ' });
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '{' | '[') => depth += 1,
            (None, ')' | '}' | ']') => depth -= 1,
            (None, '/' | '-') if depth == 0 => found.push((at, if c == '/' { "ratio" } else { "difference" })),
            (None, '*' | '%' | '^' | '+' | '=' | '!' | '<' | '>') if depth == 0 => return None,
            (None, _) => {}
        }
    }
    if outside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| JOINS.contains(&word)) {
        return None;
    }
    let [(at, how)] = found.as_slice() else { return None };
    Some((query.get(..*at)?, how, query.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_become_labels_or_comparisons() {
        let latest = format!("sum(rate(errors{{hash=\"{LATEST}\",code=~\"5..\"}}[1m]))");
        let stable = latest.replace(LATEST, STABLE);
        let bare = "sum(rate(errors{code=~\"5..\"}[1m]))".to_owned();
        assert_eq!(asked("up"), Some(Asked::AsSaid));
        assert_eq!(asked(&latest), Some(Asked::OfLatest(bare.clone())));
        assert_eq!(asked(&format!("{latest} / {stable}")), Some(Asked::Compared(bare.clone(), "ratio")));
        assert_eq!(asked(&format!("{latest}\n-\n{stable}")), Some(Asked::Compared(bare, "difference")));
        assert_eq!(
            asked(&format!(
                "(a{{pod=~\"web-{LATEST}-.+\"}} / b{{x=\"{LATEST}\"}}) / (a{{pod=~\"web-{STABLE}-.+\"}} / b{{x=\"{STABLE}\"}})"
            )),
            Some(Asked::Compared("(a / b)".to_owned(), "ratio"))
        );
        for odd in [
            stable.clone(),
            format!("{stable} / {latest}"),
            format!("{latest} / 2 / {stable}"),
            format!("{latest} * 2 / {stable} * 2"),
            format!("{latest}AND {latest} / {stable}AND {stable}"),
            format!("{latest} / sum(rate(all{{hash=\"{STABLE}\"}}[1m]))"),
            format!("{latest} / sum(rate(all[1m]))"),
            format!("a{{pod=\"x\",hash=\"{LATEST}\"}}"),
            format!("label_replace(a{{hash=\"{LATEST}\"}}, \"x\", \"{LATEST}\", \"\", \"\")"),
            format!("{latest} +"),
        ] {
            assert_eq!(asked(&odd), None, "{odd}");
        }
    }
}
