//! What a GitHub App may do, beside what it has to.

use super::checks::{Check, Found};
use crate::forge::host::{Granted, HostError};
use crate::manifest::installation::Repository;
use crate::manifest::raw::Feedback;
use crate::record::text::plain;

/// A permission of a repository: GitHub's name for it in its API, what its settings call it, and the level that is needed.
pub(super) type Needed = (&'static str, &'static str, Level);

/// How much a permission allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Read,
    Write,
}

impl Level {
    /// By the host's word; nothing for one that allows nothing.
    fn of(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "write" | "admin" => Some(Self::Write),
            _ => None,
        }
    }

    /// As the settings say it.
    fn label(self) -> &'static str {
        match self {
            Self::Read => "Read-only",
            Self::Write => "Read and write",
        }
    }
}

/// What the controller needs of an App.
pub(super) fn needed(repository: &Repository) -> Vec<Needed> {
    // Behind ssh a key lets Git in; commits are looked at in any case.
    let contents = if repository.ssh.is_some() { Level::Read } else { Level::Write };
    vec![
        ("metadata", "Metadata", Level::Read),
        ("contents", "Contents", contents),
        ("pull_requests", "Pull requests", Level::Write),
        ("statuses", "Commit statuses", Level::Write),
    ]
}

/// What it does without, in a poorer way, and that way.
pub(super) fn wished(repository: &Repository) -> Option<(Needed, &'static str)> {
    let poorer = "people's pull requests get a commit status and a comment, and no finding is shown at its line";
    (repository.feedback == Feedback::On).then_some((("checks", "Checks", Level::Write), poorer))
}

/// Whether it has that, and not too much.
pub(super) fn rights(
    login: &str,
    granted: Result<&Granted, &HostError>,
    needed: &[Needed],
    wished: Option<(Needed, &str)>,
) -> Check {
    let (check, app) = ("GitHub App", plain(login.trim_end_matches("[bot]")));
    let page = format!(
        "on GitHub, in the settings of whom the App belongs to: Developer settings, GitHub Apps, {app}, Permissions & events"
    );
    let granted = match granted {
        Ok(granted) => granted,
        Err(error) => return Check::new(Found::Broken, check, &error.to_string(), page),
    };
    let level = |name: &str| granted.get(name).and_then(|word| Level::of(word));
    let lacks = |(name, _, wanted): &Needed| level(name).is_none_or(|has| has < *wanted);
    let set = |(_, label, wanted): &Needed| format!("{label}: {}", wanted.label());
    let act = |what: &str| {
        format!(
            "{page}, Repository permissions: set {what}; then accept that where it is installed (Settings, GitHub Apps, Configure)"
        )
    };
    let missing: Vec<String> = needed.iter().filter(|one| lacks(one)).map(set).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Check::new(Found::Broken, check, &format!("{app} lacks {missing}"), act(&missing));
    }
    if let Some((one, poorer)) = wished.filter(|(one, _)| lacks(one)) {
        let says = format!("{app} lacks {}: {poorer}", set(&one));
        return Check::new(Found::Warning, check, &says, act(&set(&one)));
    }
    if level("administration") == Some(Level::Write) {
        let says = format!("{app} may administer the repository, and so change the rules that hold it");
        return Check::new(Found::Warning, check, &says, format!("{page}: set Administration: Read-only"));
    }
    let all = needed.len() + usize::from(wished.is_some());
    Check::ok(check, format!("{app} has all {all} permissions that the controller uses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: [Needed; 2] = [("contents", "Contents", Level::Write), ("metadata", "Metadata", Level::Read)];

    fn of(granted: &[(&str, &str)]) -> Check {
        let granted = granted.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
        rights("tide[bot]", Ok(&granted), &NEEDED, None)
    }

    #[test]
    fn what_an_app_lacks_is_said_as_its_settings_say_it() {
        let fine = of(&[("contents", "write"), ("metadata", "read"), ("administration", "read")]);
        assert_eq!((fine.found, fine.act), (Found::Ok, None));
        let Check { found, says, act, .. } = of(&[("contents", "read"), ("metadata", "write")]);
        assert_eq!((found, says.as_str()), (Found::Broken, "tide lacks Contents: Read and write"));
        let act = act.unwrap();
        assert!(act.contains("GitHub Apps, tide, Permissions & events, Repository permissions: set Contents: Read and write; then accept"), "{act}");
        assert_eq!(of(&[]).says, "tide lacks Contents: Read and write, Metadata: Read-only");
        let much = of(&[("contents", "write"), ("metadata", "read"), ("administration", "write")]);
        assert_eq!((much.found, much.act.unwrap().contains("Administration: Read-only")), (Found::Warning, true));
        let error = HostError::Key("/k: gone".to_owned());
        let granted = [("contents", "write"), ("metadata", "read"), ("checks", "read")];
        let granted = granted.map(|(name, level)| (name.to_owned(), level.to_owned())).into();
        let checks = Some((("checks", "Checks", Level::Write), "no finding is shown at its line"));
        let Check { found, says, act, .. } = rights("tide[bot]", Ok(&granted), &NEEDED, checks);
        assert_eq!(
            (found, says.as_str()),
            (Found::Warning, "tide lacks Checks: Read and write: no finding is shown at its line")
        );
        assert!(act.unwrap().contains("set Checks: Read and write; then accept"));
        let away = rights("tide[bot]", Err(&error), &NEEDED, None);
        assert!(away.found == Found::Broken && away.says.contains("/k: gone") && away.act.is_some(), "{away:?}");
    }
}
