//! What the stand-in was told of commits, comments that change, and labels.

use super::super::github_app::LOGIN;
use super::super::gitlab::now;
use super::{Asked, Github, Pull, Repository};
use serde_json::{Value, json};

impl Github {
    /// How a commit was said to stand.
    pub(crate) fn statuses(&self, name: &str, commit: &str) -> Vec<Value> {
        self.state.with(name, |repository, _| {
            repository.statuses.iter().filter(|status| status["sha"] == commit).cloned().collect()
        })
    }

    /// The check runs of a commit, each with its annotations.
    pub(crate) fn checks(&self, name: &str, commit: &str) -> Vec<(Value, Vec<Value>)> {
        self.state.with(name, |repository, _| repository.checks.of(commit))
    }
}

/// What is answered if it is about that.
pub(super) fn answer(repository: &mut Repository, asked: &Asked<'_>) -> Option<(u16, Value)> {
    let Asked { method, below, query, sent, by } = asked;
    match (*method, *below) {
        ("PATCH", ["issues", "comments", id]) => {
            let id: u64 = id.parse().unwrap();
            let is_it = |comment: &&mut Value| comment["id"] == id;
            let comments = |pull: &mut Pull| -> Option<Value> {
                let comment = pull.comments.iter_mut().find(is_it)?;
                (comment["body"], comment["updated_at"]) = (sent["body"].clone(), json!(now()));
                Some(comment.clone())
            };
            repository.pulls.iter_mut().find_map(comments).map(|comment| (200, comment))
        }
        ("POST", ["issues", number, "labels"]) => {
            let pull = repository.pull(number.parse().unwrap());
            let mut all = pull.shown["labels"].as_array().cloned().unwrap_or_default();
            all.extend(sent["labels"].as_array().unwrap().iter().map(|name| json!({"name": name})));
            pull.shown["labels"] = json!(all);
            Some((200, json!(all)))
        }
        // GitHub lets nobody else write them.
        _ if *by == LOGIN => repository.checks.answer(method, below, query, sent),
        _ => None,
    }
}
