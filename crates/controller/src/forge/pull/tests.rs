//! Pull requests as people read them, and what is made of those that are there.

use super::*;
use crate::forge::branch::Asks;
use crate::manifest::ids::RolloutId;
use crate::record::fixture::{commit, open, plan, revision, run, set, step, too_many};
use crate::record::state::{DeletionQuestion, Pull, Run};

const IDS: Ids = Ids { user: 42, repository: 7 };
const BRANCH: &str = "tidegate/prod/propose/shop/podinfo/7-07070707-half";

fn text(through: &str) -> Text {
    let (instance, state, plan, through) = ("prod".parse().unwrap(), open(), plan(), step(through));
    let run = state.run.as_ref().unwrap();
    advanced(&instance, &state.metadata, run, &plan, &through)
}

fn advanced(instance: &InstanceName, rollout: &RolloutId, run: &Run, plan: &Plan, through: &StepName) -> Text {
    let page = |below: &str| Some(format!("https://git.example.com/acme/fleet/{below}"));
    let request = Advance { instance, rollout, run, plan, through, void: &[] };
    let foreseen =
        format!("{through} after your approval and not before Monday 09:00 CET (freeze xmas), done about 09:30");
    let beside = Beside {
        serving: Some(ServingVersion { revision: &revision(6), compare: page("compare/6666...abab") }),
        record: page("src/branch/tidegate/prod/state/rollouts/shop/podinfo/state.yaml"),
        foreseen: Some(foreseen),
    };
    advance(&request, &beside, &commit(0x78))
}

/// The one before `half`, after its checks have said that.
fn checked(says: &[(&str, &str)]) -> Text {
    let (instance, mut state, plan, through) = ("prod".parse().unwrap(), open(), plan(), step("half"));
    let run = state.run.as_mut().unwrap();
    let said = |(check, says): &(&str, &str)| Checked { check: check.parse().unwrap(), says: (*says).to_owned() };
    let checks = says.iter().map(said).collect();
    run.pulls.insert(through.clone(), Pull { branch: BRANCH.to_owned(), head: commit(0x78), checks });
    advanced(&instance, &state.metadata, run, &plan, &through)
}

fn request() -> PullBody {
    PullBody { base: "tidegate/prod/decisions".to_owned(), head: commit(0x78), text: text("half"), rule: None }
}

fn found(standing: PullState) -> PullRequest {
    PullRequest {
        number: 3,
        state: standing,
        repository: Some(IDS.repository),
        author: Some(IDS.user),
        branch: BRANCH.to_owned(),
        base: request().base,
        draft: false,
        text: request().text,
    }
}

fn judged(found: &[PullRequest]) -> PullVerdict<'_> {
    verdict(IDS, BRANCH, &request(), found)
}

#[test]
fn the_pull_request_to_go_on() {
    let Text { title, body } = text("half");
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
}

#[test]
fn the_pull_request_to_go_on_after_checks() {
    let Text { title, body } = checked(&[
        ("error-rate", "0.002 at 10:05:00Z, at most 0.01 is good"),
        ("smoke", "holds (see [a](https://evil.example) | @ana)"),
    ]);
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
}

/// GitHub takes 65,536 characters, the other hosts more. The last line names the head.
#[test]
fn bodies_keep_within_what_hosts_take() {
    let (long, names): (String, Vec<String>) = ("*".repeat(100_000), (0..50).map(|n| format!("check-{n}")).collect());
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
    let body = checked(&many).body;
    assert!(body.chars().count() < 50_000 && body.contains("- and 30 more"), "{} characters", body.chars().count());
    let (instance, rollout, run, bad, good) =
        ("prod".parse().unwrap(), "shop/podinfo".parse().unwrap(), run(7), revision(7), revision(6));
    let request = RevertRequest {
        instance: &instance,
        main: "main",
        rollout: &rollout,
        run: &run,
        revision: &bad,
        stable: &good,
        why: &long,
    };
    let undo = revert(&request, &commit(0x78)).body;
    assert!(undo.chars().count() < 50_000, "{} characters", undo.chars().count());
    for body in [body, undo] {
        assert!(body.lines().last().unwrap().contains(commit(0x78).as_str()));
    }
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
    let request = RevertRequest {
        instance: &instance,
        main: "main",
        rollout: &rollout,
        run: &run,
        revision: &bad,
        stable: &good,
        why,
    };
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
    let request = RevertRequest {
        instance: &instance,
        main: "main",
        rollout: &rollout,
        run: &run,
        revision: &bad,
        stable: &good,
        why,
    };
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
    assert_eq!(judged(&[]), PullVerdict::Missing);
    assert_eq!(judged(&[found(PullState::Open)]), PullVerdict::Fine);
    let mut windows = found(PullState::Open);
    windows.text.body = windows.text.body.replace('\n', "\r\n") + "\n";
    assert_eq!(judged(&[windows]), PullVerdict::Fine);
    let mut edited = found(PullState::Open);
    edited.text.title = "approve me".to_owned();
    let edited = [edited];
    assert_eq!(judged(&edited), PullVerdict::Differs(&edited[0]));
    assert_eq!(judged(&[found(PullState::Merged)]), PullVerdict::Merged);
    assert_eq!(judged(&[found(PullState::Closed), found(PullState::Open)]), PullVerdict::Fine);
}

#[test]
fn x_3_what_only_looks_like_our_request_is_none() {
    for standing in [PullState::Open, PullState::Closed, PullState::Merged] {
        let ours = || found(standing);
        for other in [
            PullRequest { repository: Some(8), ..ours() },
            PullRequest { repository: None, ..ours() },
            PullRequest { author: Some(43), ..ours() },
            PullRequest { author: None, ..ours() },
            PullRequest { branch: format!("{BRANCH}x"), ..ours() },
        ] {
            assert_eq!(judged(&[other]), PullVerdict::Missing);
        }
    }
}

/// Where one leads, whoever may write can change; it stays ours.
#[test]
fn x_3_a_request_that_leads_elsewhere_is_put_right_and_not_made_again() {
    let elsewhere = |standing| [PullRequest { base: "main".to_owned(), ..found(standing) }];
    let open = elsewhere(PullState::Open);
    assert_eq!(judged(&open), PullVerdict::Differs(&open[0]));
    let closed = elsewhere(PullState::Closed);
    assert_eq!(judged(&closed), PullVerdict::Denied(&closed[0]));
    // There nobody reads what it says: it was no answer.
    assert_eq!(judged(&elsewhere(PullState::Merged)), PullVerdict::Missing);
    let [right, wrong] = [[found(PullState::Open)], open];
    assert_eq!(judged(&[wrong[0].clone(), right[0].clone()]), PullVerdict::Fine);
}

#[test]
fn x_4_people_are_told_what_to_do_with_a_draft() {
    let draft = |text: Text| PullRequest { draft: true, text, ..found(PullState::Open) };
    let plain = [draft(request().text)];
    assert_eq!(judged(&plain), PullVerdict::Differs(&plain[0]));
    let told = request().on(&plain[0]);
    assert!(told.body.starts_with("> **This is a draft, so nobody can merge it.**"), "{}", told.body);
    assert_eq!(judged(&[draft(told.clone())]), PullVerdict::Fine, "it is said once");
    // A draft by its title becomes none with the right one.
    let titled = draft(Text { title: format!("WIP: {}", told.title), ..request().text });
    assert_eq!(request().on(&titled), request().text);
    let ready = [PullRequest { text: told, ..found(PullState::Open) }];
    assert_eq!((judged(&ready), request().on(&ready[0])), (PullVerdict::Differs(&ready[0]), request().text));
}

#[test]
fn x_4_only_what_was_closed_at_this_head_is_a_no() {
    let closed = [found(PullState::Closed)];
    assert_eq!(judged(&closed), PullVerdict::Denied(&closed[0]));
    // Asked again after a resume, from a branch of the same name: the old no is not heard twice.
    let again = PullBody { head: commit(0x79), ..request() };
    assert_eq!(verdict(IDS, BRANCH, &again, &closed), PullVerdict::Missing);
}

#[test]
fn the_reason_of_an_end_is_given_once() {
    let text = found(PullState::Open).over("`half` is approved already.").unwrap();
    assert!(text.body.starts_with("> **Closed:** `half` is approved already.\n\n"), "{}", text.body);
    assert_eq!(PullRequest { text, ..found(PullState::Open) }.over("again"), None);
}

fn deletion(question: &DeletionQuestion) -> Text {
    let (instance, rollout, run) = ("prod".parse().unwrap(), "shop/podinfo".parse().unwrap(), run(6));
    delete(
        &Deletion { instance: &instance, rollout: &rollout, run: &run, question, before: 0, by: None },
        &commit(0x78),
    )
}

#[test]
fn x_3_the_pull_request_to_let_objects_go() {
    let Text { title, body } = deletion(&too_many(6));
    insta::assert_snapshot!(format!("{title}\n\n{body}"));
    let Text { title, body } = deletion(&DeletionQuestion { successor: Some(set(7)), ..too_many(6) });
    insta::assert_snapshot!("x_3_the_pull_request_to_let_a_version_go", format!("{title}\n\n{body}"));
}

/// GitHub takes 65,536 characters.
#[test]
fn a_list_of_objects_that_no_host_takes_whole_is_cut() {
    let body = deletion(&too_many(5_000)).body;
    assert!(body.chars().count() < 52_000 && body.contains(" more, which the file of this request names"), "{body}");
    assert!(body.contains("**5001 objects**") && body.lines().last().unwrap().contains(commit(0x78).as_str()));
    assert!(!deletion(&too_many(1_000)).body.contains(" more, "), "no shorter than it has to be");
}
