//! Words that several surfaces share, and the rule for foreign text (design: fine print 13): admission messages, check
//! errors, reasons, header values and branch names are shown on one line, cut, with nothing hidden in them.

use super::posture::Split;
use super::state::{Phase, Rest, Time};
use crate::manifest::cookie;
use crate::manifest::desired::HeaderValue;

/// The most of a foreign text that people are shown, in bytes.
pub const CAP: usize = 1_024;

/// How many a commit may name beside its author: each may cost a call of the Git host.
const COAUTHORS: usize = 20;

/// Whether a character is invisible, changes the direction of text, or has no fixed meaning (private use).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xE000..=0xF8FF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0x10_FFFF)
}

/// `1 rollout`, `2 rollouts`.
#[must_use]
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Foreign text on one line of at most [`CAP`] bytes: blanks are single spaces, and what hides is shown as `\u{202e}`.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            if is_hidden(c) {
                out.extend(c.escape_unicode());
            } else {
                out.push(c);
            }
            if out.len() > CAP {
                let end = (0..=CAP - '…'.len_utf8()).rev().find(|&end| out.is_char_boundary(end)).unwrap_or(0);
                out.truncate(end);
                out.push('…');
                return out;
            }
        }
    }
    out
}

/// The names and addresses, these in lower case, of those who made a commit with its author, as its message says, wherever a line
/// `Co-authored-by: NAME <ADDRESS>` stands in it.
pub fn coauthors(message: &str) -> impl Iterator<Item = (String, String)> {
    let person = |line: &str| {
        let (key, who) = line.split_once(':')?;
        let (name, rest) = who.split_once('<')?;
        let (address, _) = rest.split_once('>')?;
        let is_it = key.trim().eq_ignore_ascii_case("co-authored-by") && address.contains('@');
        is_it.then(|| (plain(name), plain(address).to_ascii_lowercase()))
    };
    message.lines().filter_map(person).take(COAUTHORS)
}

/// What caused an error, on one line. For errors whose own text only repeats what their reader knows, such as a URL.
#[must_use]
pub fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    if texts.is_empty() { plain(&error.to_string()) } else { plain(&texts.join(": ")) }
}

/// An error with what caused it, on one line, and no text twice.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    plain(&text)
}

/// Foreign text for places where a Git host turns `@name`, `#12`, `!12` and addresses into links, and where no code
/// span can stop it: commit messages. A space after the sign breaks the link and can be seen.
#[must_use]
pub fn unlinked(text: &str) -> String {
    let text = plain(text).replace("://", ": //").replace("www.", "www .").replace("GH-", "GH -");
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_alphanumeric() && out.ends_with(['@', '#', '!', '$', '&', '%', '~']) {
            out.push(' ');
        }
        out.push(c);
    }
    // What was put in may lead over the cap.
    plain(&out)
}

/// What reaches the candidate, in words: `weight 10`, `units 1`, `header x-canary: always`, `header x-canary matches ^a`; nothing if all
/// goes to stable.
#[must_use]
pub fn exposure(split: &Split) -> Option<String> {
    let mut parts = Vec::new();
    if split.weight.get() > 0 {
        parts.push(format!("weight {}", split.weight));
    }
    if split.units.count > 0 {
        parts.push(format!("units {}", split.units.count));
    }
    if split.mirror.get() > 0 {
        parts.push(format!("copies of {} %", split.mirror));
    }
    for alternative in &split.headers {
        if let Some((name, value)) = cookie::named(alternative) {
            parts.push(format!("cookie {}", plain(&format!("{name}={value}"))));
            continue;
        }
        let headers = alternative.iter().map(|(name, value)| match value {
            HeaderValue::Exact(value) => plain(&format!("{name}: {value}")),
            HeaderValue::Regex { regex } => plain(&format!("{name} matches {regex}")),
        });
        parts.push(format!("header {}", headers.collect::<Vec<_>>().join(" and ")));
    }
    (!parts.is_empty()).then(|| plain(&parts.join(", ")))
}

/// How a rollout came to rest, in a word.
#[must_use]
pub fn rest(how: Rest) -> &'static str {
    match how {
        Rest::Initialized => "initialized",
        Rest::Succeeded => "succeeded",
        Rest::Reverted => "reverted",
    }
}

/// Where a rollout stands, in words: the step if there is one.
#[must_use]
pub fn place(phase: &Phase) -> String {
    match phase {
        Phase::Initializing(_) => "first sight".to_owned(),
        Phase::Steady { how, since: _ } => format!("steady ({})", rest(*how)),
        Phase::Waiting { at: None, next, .. } => format!("waiting for {next}"),
        Phase::Waiting { at: Some(at), next, .. } => format!("{}, waiting for {next}", at.step),
        Phase::Progressing(position) | Phase::Promoting(position) | Phase::Finalising(position) => {
            position.step.to_string()
        }
        Phase::WaitingPromotion { at, .. } => format!("{}, waiting for promotion", at.step),
        Phase::Reverting { position, .. } => format!("reverting ({})", position.step),
        Phase::Failed { .. } => "failed".to_owned(),
        Phase::Terminating { .. } => "terminating".to_owned(),
        Phase::Unknown(_) => "a phase of a newer version".to_owned(),
    }
}

/// Since when a rollout stands where it stands; not known for a phase of a newer version.
#[must_use]
pub fn since(phase: &Phase) -> Option<Time> {
    match phase {
        Phase::Initializing(clock) => Some(clock.entered),
        Phase::Progressing(position) | Phase::Promoting(position) | Phase::Finalising(position) => {
            Some(position.clock.entered)
        }
        Phase::Reverting { position, .. } => Some(position.clock.entered),
        Phase::Steady { since, .. }
        | Phase::Waiting { since, .. }
        | Phase::WaitingPromotion { since, .. }
        | Phase::Failed { since, .. }
        | Phase::Terminating { since } => Some(*since),
        Phase::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attack_35_nothing_hides_in_foreign_text() {
        assert_eq!(plain("approve\u{202e}evil\u{200b} x\u{feff}"), "approve\\u{202e}evil\\u{200b} x\\u{feff}");
        assert_eq!(plain("a\u{2066}b\u{e0041}c\u{ad}d"), "a\\u{2066}b\\u{e0041}c\\u{ad}d");
        assert_eq!(plain(" one\r\n\r\ntwo\tthree\u{a0}four\u{1b}[31m "), "one two three four\\u{1b}[31m");
        assert_eq!(plain("Fehler: größer als 1 %"), "Fehler: größer als 1 %");
        assert_eq!(plain(""), "");
    }

    #[test]
    fn attack_74_co_authors_are_read_wherever_and_however_they_are_named() {
        let of = |message: &str| coauthors(message).collect::<Vec<_>>();
        let both =
            [("Ana", "ana@example.org"), ("", "ben@example.org")].map(|(name, at)| (name.to_owned(), at.to_owned()));
        let message =
            "web: 2\n\nCo-authored-by: Ana <Ana@Example.org>\r\n  CO-AUTHORED-BY :<ben@example.org> (pair)\nmore";
        assert_eq!(of(message), both);
        for none in
            ["Co-authored-by: Ana", "Co-authored-by: Ana <>", "Co-authored-by: Ana <ana", "Reviewed-by: A <a@b>", ""]
        {
            assert_eq!(of(none), [], "{none}");
        }
        assert_eq!(of(&"Co-authored-by: A <a@b>\n".repeat(1_000)).len(), COAUTHORS);
    }

    #[test]
    fn foreign_text_is_cut_on_a_character() {
        let long = plain(&"ä".repeat(5_000));
        assert!(long.len() <= CAP && long.ends_with('…'), "{}", long.len());
    }

    #[test]
    fn text_of_commit_messages_makes_no_links() {
        let links = "closes #12, GH-7, !9, @ana see https://evil.example/x or www.evil.example";
        let safe = "closes # 12, GH -7, ! 9, @ ana see https: //evil.example/x or www .evil.example";
        assert_eq!(unlinked(links), safe);
    }

    proptest! {
        #[test]
        fn plain_is_one_short_line_and_final(text in "\\PC{0,40}|(?s).{0,400}") {
            let once = plain(&text);
            prop_assert!(once.len() <= CAP && !once.chars().any(is_hidden));
            prop_assert_eq!(plain(&once), once);
        }
    }
}
