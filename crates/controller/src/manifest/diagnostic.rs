//! What is wrong with a file: where, what was found, what was expected, how to mend it.
//!
//! A diagnostic is text for people and never for control flow; only its [`Code`] is meant for programs.

use super::files::RepoPath;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Range;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What kind of mistake it is. The list is closed; the names are part of the `-o json` output and stay.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

codes! {
    /// A path that is no plain path below the rollout's directory.
    PathEscape,
    /// A symbolic link or a submodule: never followed.
    SymlinkIgnored,
    /// Nodes that operations does not let a tenant configure.
    NodeNotAllowed,
    /// Clusters or waves that do not go together.
    FleetInvalid,
    /// Two paths that differ in case only.
    AmbiguousPath,
    /// A file or directory that is not there, or a directory without manifests.
    FileMissing,
    /// A key that stands twice in one mapping.
    DuplicateKey,
    /// An anchor or an alias.
    Alias,
    /// A merge key `<<`.
    MergeKey,
    /// A tag, such as `!!str` or `!Ref`.
    Tag,
    /// Nested deeper than any real manifest.
    TooDeep,
    /// More bytes or nodes than any real manifest has.
    TooLarge,
    /// Not UTF-8 with LF or CRLF, or an invisible character.
    Encoding,
    /// Not YAML.
    Syntax,
    /// Not exactly one document.
    SeveralDocuments,
    /// An unquoted scalar that YAML 1.1 and 1.2 read differently.
    AmbiguousScalar,
    /// A number that JSON readers do not agree on: beyond ±2^53, infinite, or none.
    NumberRange,
    /// An apiVersion that this version does not know.
    ApiVersion,
    /// Not of the documented shape.
    Schema,
    /// A field that does not exist.
    UnknownField,
    /// Something that the layout of the target does not go together with.
    LayoutLimit,
    /// A phase that exposes no more than the phase before it.
    PhasesGoDown,
    /// A phase whose name is reserved or used twice.
    PhaseName,
    /// A check that a step names and nobody wrote, or the other way round.
    CheckMissing,
    /// A check that can never come to a result.
    CheckUseless,
    /// A query that cannot be read, or that is about nobody in particular.
    CheckQuery,
    /// Phases without a router.
    TrafficMissing,
    /// Something that the router cannot do.
    RouterLimit,
    /// The target, or what the router needs, is not in the set or does not fit it.
    TargetMissing,
    /// Two declarations of the same thing.
    Conflict,
    /// Two rollouts on one route.
    RouteConflict,
    /// A host that the policy gives to somebody else, or to nobody.
    HostNotAllowed,
    /// A window that the policy does not have.
    WindowMissing,
    /// Outside of what the policy or the installation allows.
    NotPermitted,
    /// An object that keeps the cluster or tidegate itself running.
    ProtectedTarget,
    /// A kind of object that may not stand in a set.
    KindNotAllowed,
    /// A Secret with its data in plain text.
    SecretData,
    /// A weight that rounds to no pod at all.
    WeightTooFine,
    /// A selector that would also match the candidate's pods.
    SelectorOverlap,
    /// A selector that matches stable's pods and will not match the candidate's.
    NotCovered,
    /// More rules, matches, backends or headers than the Gateway API takes once the route is split.
    RouteLimit,
    /// No pods to split requests to.
    ScaleToZero,
    /// A number of pods that there cannot be.
    Replicas,
    /// A workload that is told to stand still.
    Paused,
    /// A file or directory that looks like a rollout's and is not read under its name.
    Misnamed,
    /// A name that has no room for the candidate's suffix.
    NameTooLong,
    /// A reference to, or an object in, another namespace.
    CrossNamespace,
    /// A pod that cannot run twice.
    CannotClone,
    /// There is no policy.
    PolicyMissing,
    /// The policy has errors of its own; nothing is decided without it.
    PolicyInvalid,
    /// Less than the policy asks of every rollout of its tenant.
    PolicyFloor,
    /// A schedule that is none.
    Schedule,
    /// A URL that is not allowed.
    Url,
    /// A decision whose path and content disagree.
    DecisionPath,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place in a file: one line of it, counted from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// How many characters it covers on that line.
    pub length: usize,
}

/// One mistake in one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: RepoPath,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How many characters it covers on that line.
    pub length: usize,
    /// What kind of mistake.
    pub code: Code,
    /// What was found, as a sentence without its full stop.
    pub found: String,
    /// What was expected, as a noun phrase.
    pub expected: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The source line, without its line break; empty where there is none to show.
    pub source: String,
}

fn as_text<S: Serializer>(path: &RepoPath, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(path.as_str())
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, code, found, expected, .. } = self;
        write!(f, "{path}:{line}:{column}: {code}: {found}; expected {expected}")?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

impl Diagnostic {
    /// A mistake that concerns a file as a whole.
    #[must_use]
    pub fn of_file(path: &RepoPath, code: Code, found: impl Into<String>, expected: impl Into<String>) -> Self {
        let (found, expected) = (capped(found.into()), capped(expected.into()));
        Self {
            path: path.clone(),
            line: 1,
            column: 1,
            length: 0,
            code,
            found,
            expected,
            help: None,
            source: String::new(),
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(capped(help.into())), ..self }
    }
}

/// The longest text of a diagnostic (design §13.13).
const LONGEST: usize = 1_024;

fn capped(text: String) -> String {
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST - 1).chain(['…']).collect() }
}

/// Foreign text in quotes, escaped and cut to 80 characters: safe to show.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// The first of them, `most` at most, and how many there are besides.
#[must_use]
pub fn few(all: impl Iterator<Item = String> + Clone, most: usize, between: &str) -> String {
    let mut told: Vec<String> = all.clone().take(most).collect();
    let more = all.count().saturating_sub(most);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join(between)
}

/// A file that diagnostics can point into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    path: RepoPath,
    text: String,
    /// Where each line starts, in bytes.
    starts: Vec<usize>,
    /// The lines that may not be quoted, in the order of the file.
    silent: Vec<Range<usize>>,
}

/// The most mistakes that are told of one file: nobody mends more at a time, and a hostile file could have a million.
pub const MOST: usize = 100;

impl SourceText {
    /// The file at `path` with this content.
    #[must_use]
    pub fn new(path: RepoPath, text: String) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path, text, starts, silent: Vec::new() }
    }

    /// The same file, of which these lines, in its order, are never quoted: what stands beside a mistake may be a secret.
    #[must_use]
    pub fn silent(self, lines: Vec<Range<usize>>) -> Self {
        Self { silent: lines, ..self }
    }

    /// Whether a line is never quoted.
    #[must_use]
    pub fn is_silent(&self, line: usize) -> bool {
        let begun = self.silent.partition_point(|lines| lines.start <= line);
        self.silent[..begun].last().is_some_and(|lines| lines.contains(&line))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &RepoPath {
        &self.path
    }

    /// Its content.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line, from 1, without its line break; empty behind the last one.
    fn line(&self, line: usize) -> &str {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        self.text[start..].lines().next().unwrap_or_default()
    }

    /// Where a part of a text, in bytes, stands in this file, if the text begins at `whole` or on the line behind it and stands there as it
    /// is, line by line: not with escapes, and not folded.
    #[must_use]
    pub fn within(&self, whole: Mark, text: &str, part: Range<usize>) -> Option<Mark> {
        let before = text.get(..part.start).filter(|_| !part.is_empty())?;
        let first = text.lines().next()?;
        let behind = |mark: Mark| {
            self.line(mark.line).chars().take(mark.column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
        };
        let same = |line: usize, from: usize, wanted: &str| Some(self.line(line).get(from..)?.find(wanted)? + from);
        let on_next = || same(whole.line + 1, 0, first).map(|_| whole.line + 1);
        let start = same(whole.line, behind(whole), first).map(|_| whole.line).or_else(on_next)?;
        let (line, own) = (before.matches('\n').count(), before.rsplit('\n').next()?);
        let from = if line == 0 && start == whole.line { behind(whole) } else { 0 };
        let all = text.lines().enumerate().all(|(i, wanted)| same(start + i, 0, wanted).is_some());
        let at = same(start + line, from, text.lines().nth(line)?).filter(|_| all)? + own.len();
        let column = self.line(start + line).get(..at)?.chars().count() + 1;
        let length = text.get(part)?.lines().next().map_or(0, |part| part.chars().count());
        Some(Mark { line: start + line, column, length })
    }

    /// A mistake at that place.
    #[must_use]
    pub fn at(&self, mark: Mark, code: Code, found: impl Into<String>, expected: impl Into<String>) -> Diagnostic {
        let line = self.line(mark.line);
        let source: String =
            if self.is_silent(mark.line) { String::new() } else { line.chars().take(LONGEST).collect() };
        Diagnostic {
            line: mark.line,
            column: mark.column,
            length: mark.length,
            source,
            ..Diagnostic::of_file(&self.path, code, found, expected)
        }
    }
}
