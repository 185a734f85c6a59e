//! Pull requests as people read them, and what is made of those that are there.

use super::*;
use crate::forge::branch::Asks;
use crate::record::fixture::{commit, open, plan, revision, run, step};

const IDS: Ids = Ids { user: 42, repository: 7 };
const BRANCH: &str = "tidegate/prod/propose/shop/podinfo/7-07070707-half";

fn text(through: &str) -> Text {
    let (instance, state, plan, through) = ("prod".parse().unwrap(), open(), plan(), step(through));
    let run = state.run.as_ref().unwrap();
    let request =
        Advance { instance: &instance, rollout: &state.metadata, run, plan: &plan, through: &through, void: &[] };
    advance(&request, Some(&revision(6)), &commit(0x78))
}

fn request() -> Request {
    Request { base: "tidegate/prod/decisions".to_owned(), head: commit(0x78), text: text("half"), rule: None }
}

fn found(standing: Standing) -> Found {
    Found {
        number: 3,
        standing,
        repository: Some(IDS.repository),
        author: Some(IDS.user),
        branch: BRANCH.to_owned(),
        base: request().base,
        text: request().text,
    }
}

fn judged(found: &[Found]) -> Verdict<'_> {
    verdict(IDS, BRANCH, &request(), found)
}

#[test]
fn the_pull_request_to_go_on() {
    let Text { title, body } = text("half");
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
}

#[test]
fn the_pull_request_to_promote() {
    let Text { title, body } = text("promotion");
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
}

#[test]
fn x_5_the_pull_request_to_revert() {
    let (instance, rollout, run, bad, good) =
        ("prod".parse().unwrap(), "shop/podinfo".parse().unwrap(), run(7), revision(7), revision(6));
    let why = "check error-rate: 0.2 > 0.01\n| <img src=x> [a](https://evil.example) `x` fixes #1 @ana &lt; **now**";
    let request =
        Revert { instance: &instance, main: "main", rollout: &rollout, run: &run, revision: &bad, stable: &good, why };
    assert_eq!(request.head().asks, Asks::Revert);
    let Text { title, body } = revert(&request, &commit(0x78));
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
}

/// GitLab carries out a line of a description that begins with a slash: `/merge`.
#[test]
fn no_foreign_text_begins_a_line() {
    let (instance, rollout, run, bad, good) =
        ("prod".parse().unwrap(), "shop/podinfo".parse().unwrap(), run(7), revision(7), revision(6));
    let why = "/merge\n/approve\r\n  /close\u{2028}/merge";
    let request =
        Revert { instance: &instance, main: "main", rollout: &rollout, run: &run, revision: &bad, stable: &good, why };
    for Text { title, body } in [revert(&request, &commit(0x78)), text("half")] {
        let lines = || title.lines().chain(body.split(['\n', '\r', '\u{2028}', '\u{2029}']));
        assert!(lines().all(|line| !line.trim_start().starts_with('/')), "{title}\n{body}");
    }
}

#[test]
fn titles_are_cut() {
    assert_eq!(short("ä".repeat(250)), "ä".repeat(250));
    let cut = short("ä".repeat(300));
    assert!(cut.chars().count() == 250 && cut.ends_with('…'));
}

#[test]
fn x_3_a_request_is_found_before_it_is_made() {
    assert_eq!(judged(&[]), Verdict::Missing);
    assert_eq!(judged(&[found(Standing::Open)]), Verdict::Fine);
    let mut windows = found(Standing::Open);
    windows.text.body = windows.text.body.replace('\n', "\r\n") + "\n";
    assert_eq!(judged(&[windows]), Verdict::Fine);
    let mut edited = found(Standing::Open);
    edited.text.title = "approve me".to_owned();
    assert_eq!(judged(&[edited]), Verdict::Differs(3));
    assert_eq!(judged(&[found(Standing::Merged)]), Verdict::Merged);
    assert_eq!(judged(&[found(Standing::Closed), found(Standing::Open)]), Verdict::Fine);
}

#[test]
fn x_3_what_only_looks_like_our_request_is_none() {
    for standing in [Standing::Open, Standing::Closed, Standing::Merged] {
        let ours = || found(standing);
        for other in [
            Found { repository: Some(8), ..ours() },
            Found { repository: None, ..ours() },
            Found { author: Some(43), ..ours() },
            Found { author: None, ..ours() },
            Found { base: "main".to_owned(), ..ours() },
            Found { branch: format!("{BRANCH}x"), ..ours() },
        ] {
            assert_eq!(judged(&[other]), Verdict::Missing);
        }
    }
}

#[test]
fn x_4_only_what_was_closed_at_this_head_is_a_no() {
    let closed = [found(Standing::Closed)];
    assert_eq!(judged(&closed), Verdict::Denied(&closed[0]));
    // Asked again after a resume, from a branch of the same name: the old no is not heard twice.
    let again = Request { head: commit(0x79), ..request() };
    assert_eq!(verdict(IDS, BRANCH, &again, &closed), Verdict::Missing);
}

#[test]
fn the_reason_of_an_end_is_given_once() {
    let text = found(Standing::Open).over("`half` is approved already.").unwrap();
    assert!(text.body.starts_with("> **Closed:** `half` is approved already.\n\n"), "{}", text.body);
    assert_eq!(Found { text, ..found(Standing::Open) }.over("again"), None);
}
