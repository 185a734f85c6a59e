//! Findings at their lines, whatever is in them.

use super::*;
use crate::forge::host::{HostMark, Status};
use crate::manifest::diagnostic::Code;
use crate::record::fixture::{commit, time};
use proptest::prelude::*;

const FILE: &str = "teams/shop/podinfo/rollout.yaml";

fn at(path: &str, line: usize, found: &str) -> Diagnostic {
    let of_file = Diagnostic::of_file(&path.parse().unwrap(), Code::Schema, found, "at most 100").help("write less");
    Diagnostic { line, column: 5, length: 3, source: "canary-5f3a".to_owned(), ..of_file }
}

fn check(errors: Vec<Diagnostic>, warnings: Vec<Diagnostic>, same: &[&str]) -> CheckRun {
    let same = same.iter().map(|path| (path.parse().unwrap(), None)).collect();
    let verdict = FeedbackVerdict::Read(FeedbackReading { errors, warnings, same, ..FeedbackReading::default() });
    PullRequestFeedback { head: commit(0xab), verdict }.check(time("12:00:00"))
}

#[test]
fn each_finding_is_at_its_line_what_is_wrong_first() {
    let whole = Diagnostic { length: 0, ..at("tidegate.yaml", 1, "nothing") };
    let other = "teams/shop/podinfo/podinfo.yaml";
    let found =
        check(vec![at(FILE, 17, "101"), whole], vec![at(other, 3, "\"replica\"")], &[FILE, other, "tidegate.yaml"]);
    let shown = |line: usize, path: &str, columns, level, what: &str| Annotation {
        path: path.parse().unwrap(),
        line,
        columns,
        level,
        title: "Schema".to_owned(),
        message: format!("{what}; expected at most 100 (write less)"),
    };
    let expected = [
        shown(17, FILE, Some((5, 7)), AnnotationLevel::Failure, "101"),
        shown(1, "tidegate.yaml", None, AnnotationLevel::Failure, "nothing"),
        shown(3, other, Some((5, 7)), AnnotationLevel::Warning, "\"replica\""),
    ];
    assert_eq!(found.annotations, expected);
    assert_eq!((found.status.mark, found.writes()), (HostMark::Failure, 1));
    assert!(found.summary.contains("**2 findings.**") && !found.summary.contains("at a line"), "{}", found.summary);
}

#[test]
fn what_is_in_a_file_that_the_commit_has_not_like_this_is_in_the_list_alone() {
    let found = check(vec![at(FILE, 17, "one"), at("tidegate.yaml", 1, "two")], Vec::new(), &["tidegate.yaml"]);
    assert_eq!(found.annotations.len(), 1);
    assert!(found.summary.contains("rollout.yaml:17:5** `Schema`: one"), "{}", found.summary);
    assert!(found.summary.contains("1 of these is not shown at a line"), "{}", found.summary);
    let other = check(vec![at(FILE, 17, "one"), at("tidegate.yaml", 1, "two")], Vec::new(), &[FILE]);
    assert_eq!(other.annotations.len(), 1);
    assert_ne!(other.id, found.id, "nobody goes on with the other's run");
}

#[test]
fn the_first_two_hundred_are_shown_and_the_rest_is_counted() {
    let many = |n: usize| (1..=n).map(|line| at(FILE, line, "x")).collect::<Vec<_>>();
    for (errors, warnings, shown, writes, hidden) in [
        (50, 0, 50, 1, None),
        (51, 0, 51, 2, None),
        (150, 50, 200, 4, None),
        (199, 3, 200, 4, Some(2)),
        (0, 5_000, 200, 4, Some(4_800)),
    ] {
        let found = check(many(errors), many(warnings), &[FILE]);
        assert_eq!((found.annotations.len(), found.writes()), (shown, writes));
        let said = found.summary.lines().find(|line| line.contains("not shown at a line"));
        assert_eq!(said.and_then(|line| line.split(' ').next()?.parse().ok()), hidden, "{said:?}");
        assert_eq!(
            found.annotations.iter().filter(|one| one.level == AnnotationLevel::Failure).count(),
            errors.min(200)
        );
    }
}

#[test]
fn what_has_no_findings_has_no_annotations() {
    for (verdict, mark) in [
        (FeedbackVerdict::Elsewhere, HostMark::Success),
        (FeedbackVerdict::Conflict(["a.yaml".to_owned()].into()), HostMark::Pending),
        (FeedbackVerdict::Unreadable("it is too large".to_owned()), HostMark::Failure),
        (FeedbackVerdict::Read(FeedbackReading::default()), HostMark::Success),
    ] {
        let feedback = PullRequestFeedback { head: commit(0xab), verdict };
        let found = feedback.check(time("12:00:00"));
        assert_eq!(found.status, feedback.status());
        assert_eq!((found.status.mark, found.annotations.len(), found.writes()), (mark, 0, 1));
        assert_eq!(found.id, feedback.check(time("13:00:00")).id, "not with the time alone");
    }
}

#[test]
fn attack_99_the_text_of_a_stranger_is_plain_short_and_at_no_path_that_hides_something() {
    let evil = format!("\u{1b}[31m\u{202e}x\0\n@everyone https://evil.example #1 {}", "long ".repeat(1_000));
    let hidden = "teams/\u{200b}/rollout.yaml";
    let help = Diagnostic { help: Some(evil.clone()), ..at(FILE, 1, &evil) };
    let found = check(vec![help, at(hidden, 1, &evil)], Vec::new(), &[FILE, hidden]);
    let [one] = found.annotations.as_slice() else { panic!("{:#?}", found.annotations) };
    assert!(one.message.len() < 4_096 && one.title.len() < 255, "{one:?}");
    for bad in ["\u{1b}", "\u{202e}", "\0", "\n", "@everyone", "://", "#1", "canary"] {
        assert!(!one.message.contains(bad) && !found.status.text.contains("canary"), "{bad:?} in {one:?}");
    }
    assert!(!found.summary.contains("canary") && found.status.text.chars().count() <= Status::LONGEST);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn attack_99_nothing_is_larger_than_the_host_takes(
        errors in 0..400_usize,
        warnings in 0..400_usize,
        found in "(?s).{0,200}",
        path in "[a-z@<>`|*_#!&\\[\\]() -]{1,200}",
    ) {
        let Ok(path) = format!("t/{path}/rollout.yaml").parse() else { return Ok(()) };
        let all = |n: usize| vec![Diagnostic::of_file(&path, Code::Schema, found.repeat(20), "x"); n];
        let found = check(all(errors), all(warnings), &[path.as_str()]);
        prop_assert!(found.summary.chars().count() <= 65_535 && found.annotations.len() <= SHOWN);
        prop_assert!(found.annotations.iter().all(|one| one.message.len() <= 64 << 10));
        let is_control = |one: &Annotation| one.message.chars().any(char::is_control);
        prop_assert!(!found.annotations.iter().any(is_control));
    }
}
