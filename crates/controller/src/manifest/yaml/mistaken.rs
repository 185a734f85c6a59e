//! Files that are not YAML because they are something else: the middle of a merge, or a template. What they are says more
//! than what the YAML reader stumbles over.

use super::{Code, Diagnostic, Mark, Parsed, SourceText};
use std::collections::BTreeSet;

/// The same, with what the file is in the place of all that follows from it.
pub(super) fn told(mut parsed: Parsed) -> Parsed {
    let source = &parsed.source;
    let Some(found) = conflict(source).or_else(|| template(source, &parsed.diagnostics)) else { return parsed };
    parsed.diagnostics.retain(|diagnostic| diagnostic.line < found.line);
    parsed.diagnostics.push(found);
    parsed.complete = false;
    parsed
}

/// The first of the lines that Git writes around what it could not merge. No YAML of ours can begin a line with the outer
/// two; the inner ones count beside them.
fn conflict(source: &SourceText) -> Option<Diagnostic> {
    let is = |line: &str, marks: &[&str]| {
        let rest = marks.iter().find_map(|mark| line.strip_prefix(mark));
        rest.is_some_and(|rest| matches!(rest.chars().next(), None | Some(' ' | '\r')))
    };
    let lines = || source.text().split('\n');
    lines().find(|line| is(line, &["<<<<<<<", ">>>>>>>"]))?;
    let (at, line) = lines().enumerate().find(|(_, line)| is(line, &["<<<<<<<", "|||||||", "=======", ">>>>>>>"]))?;
    let mark = Mark { line: at + 1, column: 1, length: line.trim_end().chars().count() };
    let (found, expected) = ("a merge conflict is not resolved", "the lines of one side, or both merged");
    let diagnostic = source.at(mark, Code::Syntax, found, expected);
    Some(diagnostic.help("edit the file until no line of <<<<<<<, ======= and >>>>>>> is left, then git add it"))
}

/// An action of a template (`{{ … }}`) over which the YAML reader stumbled. In a text it is none of our business.
fn template(source: &SourceText, diagnostics: &[Diagnostic]) -> Option<Diagnostic> {
    let stumbled = diagnostics.iter().filter(|diagnostic| matches!(diagnostic.code, Code::Syntax | Code::Schema));
    let lines: BTreeSet<usize> = stumbled.map(|diagnostic| diagnostic.line).collect();
    let mut numbered = source.text().split('\n').zip(1..).filter(|(_, line)| lines.contains(line));
    let (text, line, column) = numbered.find_map(|(text, line)| Some((text, line, action(text)?)))?;
    let mark = Mark { line, column, length: text.trim_end().chars().count() + 1 - column };
    let diagnostic = source.at(mark, Code::Syntax, "this is a Helm template", "plain YAML, without {{ … }}");
    Some(diagnostic.help("render it first, with `helm template`, and commit what comes out"))
}

/// The column of an action that stands where YAML has its structure: not in a quoted text or a comment.
fn action(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.chars().enumerate() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(c),
            (None, '#') if before.is_whitespace() => return None,
            (None, '{') if before == '{' => return Some(at),
            (None, _) => {}
        }
        before = c;
    }
    None
}
