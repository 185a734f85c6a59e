//! The brake: a ConfigMap in the cluster that holds rollouts or sends them back, also while Git is away (design §3.3).
//!
//! It can never let anything advance, so whatever in it cannot be understood is read as the more careful word.

use crate::manifest::ids::{Namespace, RolloutId};
use std::collections::BTreeMap;
use std::fmt;

/// The key that brakes everything.
const ALL: &str = "all";

/// What the brake says of a rollout. The later word is the stronger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrakeWord {
    /// No step is entered; retreats and upkeep go on.
    Hold,
    /// An open run goes back to stable.
    Revert,
}

impl fmt::Display for BrakeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hold => "hold",
            Self::Revert => "revert",
        })
    }
}

/// The brake of one cluster, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Brake {
    all: Option<BrakeWord>,
    namespaces: BTreeMap<Namespace, BrakeWord>,
    rollouts: BTreeMap<RolloutId, BrakeWord>,
    /// What in it was not understood, for people; sorted by key.
    pub warnings: Vec<String>,
}

impl Brake {
    /// Reads the entries of the ConfigMap: `all`, `<namespace>` or `<namespace>.<name>` (its keys cannot hold a `/`,
    /// and neither a namespace nor a rollout's name can hold a dot), each with `hold` or `revert`.
    ///
    /// An unknown word holds; a key that can name nothing brakes nothing. Both leave a warning.
    pub fn parse<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut brake = Self::default();
        for (key, value) in entries.into_iter().collect::<BTreeMap<_, _>>() {
            let word = brake.word(key, value);
            if key == ALL {
                brake.all = Some(word);
            } else if let Ok(namespace) = key.parse() {
                brake.namespaces.insert(namespace, word);
            } else if let Ok(rollout) = key.replacen('.', "/", 1).parse() {
                brake.rollouts.insert(rollout, word);
            } else {
                brake.warnings.push(format!(
                    "key {:?} brakes nothing: expected `all`, `<namespace>` or `<namespace>.<name>`",
                    excerpt(key)
                ));
            }
        }
        brake
    }

    fn word(&mut self, key: &str, value: &str) -> BrakeWord {
        let text = value.trim();
        if text.eq_ignore_ascii_case("revert") {
            BrakeWord::Revert
        } else {
            if !text.eq_ignore_ascii_case("hold") {
                self.warnings.push(format!(
                    "key {:?} says {:?}: expected `hold` or `revert`, taken as `hold`",
                    excerpt(key),
                    excerpt(value)
                ));
            }
            BrakeWord::Hold
        }
    }

    /// What it says of a rollout: the strongest word of those for it, its namespace, and all.
    #[must_use]
    pub fn of(&self, rollout: &RolloutId) -> Option<BrakeWord> {
        let namespace = self.namespaces.get(&rollout.namespace).copied();
        self.all.max(namespace).max(self.rollouts.get(rollout).copied())
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[(&str, &str)], rollout: &str) -> (Option<BrakeWord>, usize) {
        let brake = Brake::parse(entries.iter().copied());
        (brake.of(&rollout.parse().unwrap()), brake.warnings.len())
    }

    #[test]
    fn each_key_reaches_what_it_names() {
        use BrakeWord::{Hold, Revert};
        type Case = (&'static [(&'static str, &'static str)], &'static str, Option<BrakeWord>, usize);
        let cases: [Case; 10] = [
            (&[], "shop/podinfo", None, 0),
            (&[("all", "hold")], "shop/podinfo", Some(Hold), 0),
            (&[("shop", "revert")], "shop/podinfo", Some(Revert), 0),
            (&[("shop", "revert")], "bank/podinfo", None, 0),
            (&[("shop.podinfo", "hold\n")], "shop/podinfo", Some(Hold), 0),
            (&[("shop.podinfo", "hold")], "shop/other", None, 0),
            (&[("all", "revert"), ("shop.podinfo", "hold")], "shop/podinfo", Some(Revert), 0),
            (&[("all", "hold"), ("shop.podinfo", "Revert")], "shop/podinfo", Some(Revert), 0),
            (&[("shop", "stop!")], "shop/podinfo", Some(Hold), 1),
            (&[("Shop.podinfo", "revert"), ("a.b.c", ""), ("", "hold")], "shop/podinfo", None, 4),
        ];
        for (entries, rollout, word, warnings) in cases {
            assert_eq!(of(entries, rollout), (word, warnings), "{entries:?} for {rollout}");
        }
    }
}
