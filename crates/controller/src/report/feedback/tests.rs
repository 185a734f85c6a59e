//! What people read on their pull requests, whatever is in them.

use super::*;
use crate::manifest::diagnostic::Code;
use crate::record::fixture::{commit, time};
use proptest::prelude::*;

fn instance() -> InstanceName {
    "prod".parse().unwrap()
}

fn diagnostic(path: &str, found: &str) -> Diagnostic {
    Diagnostic {
        line: 17,
        column: 5,
        ..Diagnostic::of_file(&path.parse().unwrap(), Code::Schema, found, "at most 100").help("write less")
    }
}

fn read(reading: FeedbackReading) -> PullRequestFeedback {
    PullRequestFeedback { head: commit(0xab), verdict: FeedbackVerdict::Read(reading) }
}

fn said(feedback: &PullRequestFeedback) -> String {
    feedback.comment(&instance(), time("12:00:00"))
}

#[test]
fn findings_are_told_at_their_lines() {
    let errors = vec![diagnostic("teams/shop/podinfo/rollout.yaml", "101 is too large")];
    let warnings = vec![diagnostic("teams/shop/podinfo/podinfo.yaml", "\"replica\" is no field")];
    let feedback = read(FeedbackReading { errors, warnings, ..FeedbackReading::default() });
    insta::assert_snapshot!(said(&feedback));
    insta::assert_snapshot!(
        feedback.status().text,
        @"1 finding: teams/shop/podinfo/rollout.yaml:17:5: 101 is too large"
    );
    assert_eq!(feedback.status().mark, HostMark::Failure);
}

#[test]
fn a_finding_leads_to_its_line_on_the_page_of_its_file() {
    let finding = diagnostic("teams/shop/pod)](info/rollout.yaml", "101 is too large");
    let page = "https://git.example.test/acme/fleet/src/commit/ab/teams/shop/pod)](info/rollout.yaml".to_owned();
    let same = [(finding.path.clone(), Some(page.clone()))].into();
    let text = said(&read(FeedbackReading { errors: vec![finding], same, ..FeedbackReading::default() }));
    let place = format!("- **[teams/shop/pod\\)\\]\\(info/rollout.yaml:17:5](<{page}#L17>)** `Schema`: 101");
    assert!(text.contains(&place), "{place} in {text}");
}

#[test]
fn what_is_no_finding_is_told_too() {
    let of = |verdict| PullRequestFeedback { head: commit(0xab), verdict };
    let all = [
        of(FeedbackVerdict::Elsewhere),
        of(FeedbackVerdict::Conflict(["teams/shop/a.yaml".to_owned()].into())),
        of(FeedbackVerdict::Unreadable(
            "the tree is refused at \".git\": the name means Git's own directory".to_owned(),
        )),
        read(FeedbackReading::default()),
    ];
    let told: Vec<String> =
        all.iter().map(|f| format!("{:?} {}\n{}", f.status().mark, f.status().text, said(f))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn attack_99_the_text_of_a_stranger_ends_nothing_names_nobody_and_is_cut() {
    let evil = "x --> @everyone <script>alert(1)</script> | `a` [click](https://evil.example) ![i](x) #1 \u{202e} www.evil.example\n# big";
    let path = "teams/@everyone/-->/<img src=x>/`x`/rollout.yaml";
    let feedback = read(FeedbackReading { errors: vec![diagnostic(path, evil); 5_000], ..FeedbackReading::default() });
    let text = said(&feedback);
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with("<!-- tidegate prod abab") && first.ends_with(" -->"), "{first}");
    for bad in ["-->", "@everyone", "<script", "<img", "](", "https://", "\n# ", "#1", "\u{202e}", "www.evil"] {
        assert!(!rest.contains(bad), "{bad} in {rest}");
    }
    assert!(text.len() < 60_000 && rest.contains("more: `tidegate validate`"), "{}", text.len());
    assert!(feedback.status().text.chars().count() <= Status::LONGEST);
}

#[test]
fn there_is_news_when_the_substance_changes_and_not_with_the_time() {
    let one = read(FeedbackReading { errors: vec![diagnostic("a/rollout.yaml", "one")], ..FeedbackReading::default() });
    let other =
        read(FeedbackReading { errors: vec![diagnostic("a/rollout.yaml", "two")], ..FeedbackReading::default() });
    let line = |feedback: &PullRequestFeedback, at: &str| {
        feedback.comment(&instance(), time(at)).lines().next().unwrap().to_owned()
    };
    assert_eq!(line(&one, "12:00:00"), line(&one, "13:00:00"));
    assert_eq!(line(&one, "12:00:00"), one.first_line(&instance()));
    assert_ne!(one.first_line(&instance()), other.first_line(&instance()));
    assert_ne!(
        one.first_line(&instance()),
        PullRequestFeedback { head: commit(0xac), ..one.clone() }.first_line(&instance())
    );
    assert!(one.first_line(&instance()).starts_with(&mark(&instance())));
    assert!(
        !one.first_line(&"prod2".parse().unwrap()).starts_with(&mark(&instance())),
        "another instance's is not ours"
    );
}

proptest! {
    #[test]
    fn attack_99_no_text_breaks_out(found in "\\PC{0,60}", path in "[a-z@<>`|*_#!&\\[\\]() -]{1,20}") {
        let Ok(path) = format!("t/{path}/rollout.yaml").parse() else { return Ok(()) };
        let finding = Diagnostic::of_file(&path, Code::Schema, found, "x");
        let text = said(&read(FeedbackReading { errors: vec![finding], ..FeedbackReading::default() }));
        let rest = text.split_once('\n').unwrap().1;
        prop_assert!(!rest.contains("-->") && !rest.contains("<!--") && !rest.contains("://"));
        let mention = |pair: &[char]| pair[0] == '@' && pair[1].is_alphanumeric();
        prop_assert!(!rest.chars().collect::<Vec<_>>().windows(2).any(mention), "{rest}");
    }
}
