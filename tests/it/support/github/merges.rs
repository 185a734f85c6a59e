//! Pull requests that are merged.

use super::super::ways::{Way, anew};
use super::{Github, now, user};
use serde_json::json;

impl Github {
    /// Merges one as a user, in one of GitHub's ways.
    pub(crate) fn merge_by(&self, way: Way, by: &str, name: &str, number: u64) {
        self.state.with(name, |repository, origin| {
            let pull = repository.pull(number);
            let text = |end: &str, field: &str| pull.shown[end][field].as_str().unwrap().to_owned();
            let (head, base) = (text("head", "sha"), text("base", "ref"));
            let became = match way {
                Way::Merge => origin.merge_as(by, &head, &base),
                // Of one commit both make one.
                Way::Squash | Way::Rebase => anew(origin, &head, &base),
                Way::RebaseMerge => panic!("GitHub has no such way"),
            };
            pull.change(by, &json!({"state": "closed"}));
            (pull.shown["merged_at"], pull.shown["merge_commit_sha"]) = (json!(now()), json!(became));
            pull.merged_by = user(by);
        });
    }
}
