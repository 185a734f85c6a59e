//! What goes wrong at the stand-in: answers that are none, people whose rights change, merges that bring something else.

use super::{Gitlab, MergeRequest, now, user};
use axum::http::Uri;
use serde_json::json;
use std::collections::BTreeMap;

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// This status, and a few words.
    Status(u16),
    /// "Not modified", whatever is known.
    Unmodified,
    /// It ends in the middle.
    Half,
    /// A list says that there is more, without end.
    Endless,
}

/// What goes wrong there now, and how often it did.
#[derive(Debug, Default)]
pub(super) struct Faults {
    at: Option<(&'static str, Wrong)>,
    met: usize,
}

impl Faults {
    /// What is wrong with the answer to that.
    pub(super) fn meet(&mut self, uri: &Uri) -> Option<Wrong> {
        let (_, wrong) = self.at.filter(|(part, _)| uri.path().contains(part))?;
        self.met += 1;
        Some(wrong)
    }
}

/// What people may do who are none of the owners: write.
const WRITES: u64 = 30;

/// The level of each person where it is not as usual.
pub(super) type Levels = BTreeMap<String, u64>;

/// The level of somebody.
pub(super) fn level(levels: &Levels, name: &str) -> u64 {
    levels.get(name).copied().unwrap_or(if name == "owner" { 50 } else { WRITES })
}

impl MergeRequest {
    /// Was merged by a user, as one of these commits.
    pub(super) fn merged(&mut self, by: &str, [merge, squash]: [Option<String>; 2]) {
        let merged = json!({
            "state": "merged", "merge_commit_sha": merge, "squash_commit_sha": squash, "merge_user": user(by),
            "merged_by": user(by), "merged_at": now(),
        });
        self.shown.as_object_mut().unwrap().extend(merged.as_object().unwrap().clone());
        self.events.push(json!({"user": user(by), "state": "merged", "created_at": now()}));
    }
}

impl Gitlab {
    /// From now on what is answered below paths with that part is wrong; nothing is, if that is none.
    pub(crate) fn fault(&self, fault: Option<(&'static str, Wrong)>) {
        *self.state.faults.lock().unwrap() = Faults { at: fault, met: 0 };
    }

    /// How often something went wrong since it was said to.
    pub(crate) fn met(&self) -> usize {
        self.state.faults.lock().unwrap().met
    }

    /// Lets somebody do so much in a repository from now on: 10 is a guest, 20 reads, 30 writes.
    pub(crate) fn level(&self, name: &str, who: &str, level: u64) {
        self.state.with(name, |project, _| project.levels.insert(who.to_owned(), level));
    }

    /// From now on another repository lies there.
    pub(crate) fn renumber(&self, name: &str, number: u64) {
        self.state.with(name, |project, _| project.number = Some(number));
    }

    /// Merges one as a user, by a commit that somebody has made.
    pub(crate) fn merged_as(&self, by: &str, name: &str, number: u64, commit: &str) {
        self.state.with(name, |project, origin| {
            let target = project.request(number).shown["target_branch"].as_str().unwrap().to_owned();
            origin.git(&["update-ref", &format!("refs/heads/{target}"), commit]);
            project.request(number).merged(by, [Some(commit.to_owned()), None]);
        });
    }

    /// Says something below one as a user.
    pub(crate) fn say(&self, by: &str, name: &str, number: u64, what: &str) {
        self.state.with(name, |project, _| project.note(number, by, what, false));
    }
}
