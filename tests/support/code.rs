//! Rust sources as text without what does not count: comments, the insides of literals, and what is compiled for tests
//! alone. Enough for rules about names; formatted sources are assumed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its path below the directory that was read, with `/` between parts.
    pub(crate) path: String,
    /// Its text, comments and the insides of literals blanked; lines stay where they are.
    pub(crate) all: String,
    /// The same without what is compiled for tests alone; empty for a file that only tests have.
    pub(crate) shipped: String,
}

/// All `.rs` files below `dir`, sorted.
pub(crate) fn read(dir: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(dir, &mut paths);
    paths.sort();
    let texts = paths.iter().map(|path| {
        let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    sources(texts.collect())
}

/// All that is shipped, each file by its room: the controller's are its modules, and the program and the other crates one each.
pub(crate) fn shipped(root: &Path) -> Vec<Source> {
    let of = |dir: &str, room: &str| {
        let named = |source: Source| Source { path: format!("{room}{}", source.path), ..source };
        read(&root.join(dir)).into_iter().map(named).collect::<Vec<_>>()
    };
    let crates =
        fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut all = of("src", "");
    for name in crates {
        let room = if name == "controller" { String::new() } else { format!("{name}/") };
        all.extend(of(&format!("crates/{name}/src"), &room));
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Files from their paths and texts.
pub(crate) fn sources(texts: Vec<(String, String)>) -> Vec<Source> {
    let mut all: Vec<Source> = texts
        .into_iter()
        .map(|(path, text)| {
            let all = blanked(&text);
            Source { shipped: without_tests(&all).0, path, all }
        })
        .collect();
    let mut for_tests = BTreeSet::new();
    for source in &all {
        let dir = module_dir(&source.path);
        for name in without_tests(&source.all).1 {
            for_tests.insert(format!("{dir}{name}.rs"));
            for_tests.insert(format!("{dir}{name}/"));
        }
    }
    for source in &mut all {
        if for_tests.iter().any(|path| source.path == *path || path.ends_with('/') && source.path.starts_with(path)) {
            source.shipped.clear();
        }
    }
    all
}

/// Where the modules that a file declares lie.
fn module_dir(path: &str) -> String {
    let (dir, file) = path.rsplit_once('/').map_or(("", path), |(dir, file)| (dir, file));
    let dir = if dir.is_empty() { String::new() } else { format!("{dir}/") };
    match file {
        "mod.rs" | "lib.rs" | "main.rs" => dir,
        _ => format!("{dir}{}/", file.trim_end_matches(".rs")),
    }
}

/// The text with everything blanked that is no code.
fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal ends that begins at `at`; `at` itself if none does.
fn literal_or_comment(chars: &[char], at: usize) -> usize {
    let is = |offset: usize, c: char| chars.get(at + offset) == Some(&c);
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if is(0, '/') && is(1, '/') {
        return at + chars[at..].iter().take_while(|c| **c != '\n').count();
    }
    if is(0, '/') && is(1, '*') {
        return block_comment(chars, at);
    }
    if is(0, 'r') && !in_word || is(0, 'r') && at > 0 && chars[at - 1] == 'b' {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if is(hashes + 1, '"') {
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let rest: String = chars[at + hashes + 2..].iter().collect();
            let length = rest.find(&end).map_or(rest.chars().count(), |n| rest[..n].chars().count());
            return (at + hashes + 2 + length + end.len()).min(chars.len());
        }
    }
    if is(0, '"') {
        return quoted(chars, at, '"');
    }
    // A lifetime has no closing quote right behind its first character.
    if is(0, '\'') && (is(1, '\\') || is(2, '\'')) {
        return quoted(chars, at, '\'');
    }
    at
}

fn block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The text without items under `#[cfg(test)]`, and the names of the modules among them that are files.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut out, mut files) = (String::new(), Vec::new());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        out.push_str(&rest[..start]);
        let item = &rest[start + MARK.len()..];
        let end = item_end(item);
        if let Some(name) = item[..end].trim_end_matches(';').split_whitespace().skip_while(|w| *w != "mod").nth(1)
            && item[..end].ends_with(';')
        {
            files.push(name.to_owned());
        }
        rest = &item[end..];
    }
    out.push_str(rest);
    (out, files)
}

/// Where an item ends: at its `;`, or with the block that it opens.
fn item_end(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    item.len()
}

/// Whether a character can be part of a name.
pub(crate) fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The places of a name or path as a whole: `kube` is not in `kubectl`, nor `fs` in `std::fs2`.
pub(crate) fn has_name(code: &str, name: &str) -> bool {
    let whole = |end: usize| !name.ends_with(in_name) || !code[end..].starts_with(in_name);
    code.match_indices(name).any(|(at, _)| !code[..at].ends_with(in_name) && whole(at + name.len()))
}

/// The names that follow each `prefix`: of `crate::a::b`, `crate::c` those are `a`, `c`.
pub(crate) fn names_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(prefix).filter(|(at, _)| !code[..*at].ends_with(in_name)).map(move |(at, _)| {
        let rest = &code[at + prefix.len()..];
        &rest[..rest.find(|c| !in_name(c)).unwrap_or(rest.len())]
    })
}

#[test]
fn what_is_no_code_is_blanked() {
    let text =
        "a(\"x // y\\\" z\"); // b\n/* c /* d */ e */ f('\"', '\\'', b'g'); r#\"h \" i\"# j::<'k>(\"l\nm\") /// n\n";
    let found: Vec<String> = blanked(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(found.join(" "), "a( ); f( , , b ); j::<'k>( )");
    assert_eq!(blanked(text).lines().count(), text.lines().count());
}

#[test]
fn what_is_compiled_for_tests_alone_is_not_shipped() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let all = sources(vec![
        file(
            "a/mod.rs",
            "mod b;\n#[cfg(test)]\npub(crate) mod c;\nfn d() {}\n#[cfg(test)]\nmod e { fn f() { g } }\nfn h() {}",
        ),
        file("a/b.rs", "fn i() {}\n#[cfg(test)]\nmod tests;"),
        file("a/b/tests.rs", "fn j() {}"),
        file("a/c.rs", "fn k() {}"),
    ]);
    let shipped: Vec<String> = all.iter().map(|s| s.shipped.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(shipped, ["mod b; fn d() {} fn h() {}", "fn i() {}", "", ""]);
}

#[test]
fn names_are_found_as_a_whole() {
    assert!(
        has_name("use kube::Api;", "kube") && has_name("std::fs::read", "std::fs") && has_name("std::{fs", "std::{")
    );
    assert!(!has_name("kubectl my_kube kube2", "kube"));
    assert_eq!(names_after("crate::a::b mycrate::x crate::c;", "crate::").collect::<Vec<_>>(), ["a", "c"]);
}
