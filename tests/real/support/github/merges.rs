//! Pull requests that are merged, by people and by the merge queue.

use super::super::ways::{Way, anew};
use super::{Github, Pull, now, user};
use serde_json::json;

/// What GitHub's merge queue is called, and its number.
pub(crate) const QUEUE: (u64, &str) = (118_344_674, "github-merge-queue[bot]");

impl Pull {
    fn merged(&mut self, by: &str, became: &str) {
        self.change(by, &json!({"state": "closed"}));
        (self.shown["merged_at"], self.shown["merge_commit_sha"]) = (json!(now()), json!(became));
        self.merged_by = user(by);
    }

    fn text(&self, end: &str, field: &str) -> String {
        self.shown[end][field].as_str().unwrap().to_owned()
    }
}

impl Github {
    /// Merges one as a user, in one of GitHub's ways.
    pub(crate) fn merge_by(&self, way: Way, by: &str, name: &str, number: u64) {
        self.state.with(name, |repository, origin| {
            let pull = repository.pull(number);
            let (head, base) = (pull.text("head", "sha"), pull.text("base", "ref"));
            let became = match way {
                Way::Merge => origin.merge_as(by, &head, &base),
                // Of one commit both make one.
                Way::Squash | Way::Rebase => anew(origin, &head, &base),
                Way::RebaseMerge => panic!("GitHub has no such way"),
            };
            pull.merged(by, &became);
        });
    }

    /// Merges a group as the merge queue does: each on a branch of the queue's own, by a merge commit on top of the one before, and what comes
    /// of the last one becomes the base, all at once. `by` is who GitHub says has merged: the queue, or who put them into it.
    pub(crate) fn merge_queued(&self, by: &str, name: &str, numbers: &[u64]) {
        self.state.with(name, |repository, origin| {
            let base = repository.pull(numbers[0]).text("base", "ref");
            let mut group = Vec::new();
            for number in numbers {
                let pull = repository.pull(*number);
                assert_eq!(pull.text("base", "ref"), base, "a queue is a branch's");
                let tip = group.last().map_or_else(|| origin.tip(&base).unwrap(), |(_, merge): &(u64, String)| merge.clone());
                let queued = format!("gh-readonly-queue/{base}/pr-{number}-{tip}");
                origin.git(&["update-ref", &format!("refs/heads/{queued}"), &tip]);
                let (head, opener) = (pull.text("head", "sha"), pull.shown["user"]["login"].as_str().unwrap());
                let tree = origin.git(&["merge-tree", "--write-tree", &tip, &head]);
                let at = chrono::Utc::now().timestamp();
                let stream = format!(
                    "commit refs/heads/{queued}\nauthor {opener} <{opener}@example.test> {at} +0000\n\
                     committer GitHub <noreply@github.com> {at} +0000\ndata 5\nmerge\nfrom refs/heads/{queued}^0\nmerge {head}\n\
                     M 040000 {tree} \"\"\n"
                );
                origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
                group.push((*number, origin.tip(&queued).unwrap()));
            }
            let (_, last) = group.last().unwrap();
            origin.git(&["update-ref", &format!("refs/heads/{base}"), last]);
            for (number, merge) in group {
                repository.pull(number).merged(by, &merge);
            }
        });
    }
}
