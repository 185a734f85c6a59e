//! Commands for people to copy into a shell: how this program is called there, and what has to be quoted.

use std::ffi::OsStr;

/// How this program was called: by cargo, by a path, or by its name.
#[must_use]
pub(super) fn program() -> String {
    called(std::env::var_os("CARGO_PKG_NAME").as_deref(), std::env::args_os().next().as_deref())
}

/// `package` is what cargo tells a program that it runs.
fn called(package: Option<&OsStr>, name: Option<&OsStr>) -> String {
    if package.is_some_and(|package| package == env!("CARGO_PKG_NAME")) {
        return "cargo run --".to_owned();
    }
    let path = name.and_then(OsStr::to_str).filter(|name| name.contains('/'));
    path.map_or_else(|| "tidegate".to_owned(), quoted)
}

/// The text as one word of a POSIX shell.
#[must_use]
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_as_it_was() {
        let called = |package: Option<&str>, name: Option<&str>| called(package.map(OsStr::new), name.map(OsStr::new));
        assert_eq!(called(Some("tidegate"), Some("target/debug/tidegate")), "cargo run --");
        assert_eq!(called(Some("another"), Some("/opt/my tools/tidegate")), "'/opt/my tools/tidegate'");
        assert_eq!(called(None, Some("./target/release/tidegate")), "./target/release/tidegate");
        assert_eq!(called(None, Some("tidegate")), "tidegate");
        assert_eq!(called(None, None), "tidegate");
    }

    #[test]
    fn words_stay_one_word() {
        assert_eq!(quoted("/tmp/tidegate-demo-1-0/fleet.git"), "/tmp/tidegate-demo-1-0/fleet.git");
        let odd = ["", "a b", "$HOME", "~", "a;b", "*", "ü"].map(quoted);
        assert_eq!(odd, ["''", "'a b'", "'$HOME'", "'~'", "'a;b'", "'*'", "'ü'"]);
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
