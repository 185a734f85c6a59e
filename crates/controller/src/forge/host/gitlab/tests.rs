//! What GitLab tells, judged: of which commit an approval was, and who may write.

use super::super::Pass;
use super::super::testing::Server;
use super::*;
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::record::fixture::{commit, time};

const APPROVER: u64 = 2;

fn user(id: u64) -> RawUser {
    serde_json::from_value(json!({"id": id, "username": format!("user-{id}")})).unwrap()
}

fn note(id: u64, by: u64, body: &str, at: &str) -> RawNote {
    RawNote { id, system: true, body: body.to_owned(), author: Some(user(by)), created_at: time(at) }
}

/// A head that a merge request had from then on: numbers grow, however they are listed.
fn version(id: u64, head: u8, at: &str) -> RawVersion {
    RawVersion { id, head_commit_sha: Some(commit(head)), created_at: time(at) }
}

/// The reviews of a merge request that was approved, and which heads it had.
fn approved(at: Option<&str>, versions: &[RawVersion]) -> Vec<Review> {
    let approval = RawApproval { user: user(APPROVER), approved_at: at.map(time) };
    let notes = [note(7, APPROVER, APPROVED, "13:00:00"), note(9, APPROVER, APPROVED, "14:00:00")];
    said(&[approval], &[], &notes, versions).unwrap()
}

#[test]
fn attack_75_an_approval_is_of_what_was_there_before_it() {
    let versions = [version(3, 0xc, "12:30:00"), version(2, 0xb, "12:20:00"), version(1, 0xa, "12:10:00")];
    let of = |at: Option<&str>| approved(at, &versions).pop().map(|review| review.commit);
    assert_eq!(of(Some("12:10:01")), Some(commit(0xa)));
    assert_eq!(of(Some("12:25:00")), Some(commit(0xb)));
    assert_eq!(of(Some("12:30:00")), Some(commit(0xb)), "at the same time is not after it");
    assert_eq!(of(Some("12:30:01")), Some(commit(0xc)));
    assert_eq!(of(Some("12:10:00")), None, "before there was anything to see");
    // The note was written after all of them, and proves nothing of when somebody approved.
    assert_eq!(of(None), Some(commit(0xa)));
    // The head of a version that was cleaned away is nobody's.
    let cleaned = RawVersion { head_commit_sha: None, ..version(4, 0xd, "12:40:00") };
    assert_eq!(approved(Some("12:50:00"), &[cleaned]), []);
    let again = [version(5, 0xa, "12:50:00"), version(1, 0xa, "12:10:00")];
    assert_eq!(approved(None, &again).pop().unwrap().commit, commit(0xa));
}

#[test]
fn an_approval_has_the_number_of_its_note() {
    let versions = [version(1, 0xa, "12:10:00")];
    let [review] = &*approved(Some("12:20:00"), &versions) else { panic!() };
    assert_eq!((review.id, review.by.id, review.says, review.at), (9, APPROVER, Says::Approved, time("12:20:00")));
    assert_eq!(approved(None, &versions).pop().unwrap().at, time("14:00:00"));
    // What people write themselves, or others, is no such note; without one it has to be asked again.
    let written = RawNote { system: false, ..note(8, APPROVER, APPROVED, "12:20:00") };
    let more = format!("{APPROVED} not");
    for note in [written, note(8, 3, APPROVED, "12:20:00"), note(8, APPROVER, &more, "12:20:00")] {
        let approval = RawApproval { user: user(APPROVER), approved_at: Some(time("12:20:00")) };
        let why = said(&[approval], &[], &[note], &versions).unwrap_err();
        assert_eq!(why, "no note says yet that user-2 approved");
    }
}

#[test]
fn a_note_without_the_approval_is_none_and_a_no_counts_more() {
    let (versions, notes) = ([version(1, 0xa, "12:10:00")], [note(7, APPROVER, APPROVED, "12:20:00")]);
    assert_eq!(said(&[], &[], &notes, &versions), Ok(Vec::new()), "it was taken back, or reset by a push");
    let reviewer = |state: &str| {
        let (user, state) = (user(APPROVER), state.to_owned());
        RawReviewer { user, state, created_at: time("12:11:00") }
    };
    let approval = || RawApproval { user: user(APPROVER), approved_at: Some(time("12:20:00")) };
    let says = |state: &str| {
        said(&[approval()], &[reviewer(state)], &notes, &versions).unwrap().pop().map(|review| review.says)
    };
    assert_eq!(says("requested_changes"), Some(Says::ChangesRequested));
    for state in ["approved", "reviewed", "unreviewed", "a state to come"] {
        assert_eq!(says(state), Some(Says::Approved), "{state}");
    }
}

#[test]
fn only_active_members_from_developers_on_may_write() {
    let permission = |level: i64, more: Value| {
        let mut member = json!({"access_level": level, "state": "active"});
        member.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<RawMember>(member).unwrap().permission(time("12:00:00"))
    };
    let levels = [0, 5, 10, 20, 25, 30, 35, 40, 50].map(|level| permission(level, json!({})));
    let (none, read, write, admin) = (Permission::None, Permission::Read, Permission::Write, Permission::Admin);
    assert_eq!(levels, [none, read, read, read, read, write, write, admin, admin]);
    let today = time("12:00:00").format("%Y-%m-%d").to_string();
    for over in [
        json!({"state": "blocked"}),
        json!({"membership_state": "awaiting"}),
        json!({"expires_at": today}),
        json!({"expires_at": "2020-01-01T00:00:00Z"}),
    ] {
        assert_eq!(permission(50, over.clone()), none, "{over}");
    }
    assert_eq!(permission(30, json!({"membership_state": "active", "expires_at": "2999-01-01"})), write);
}

#[test]
fn users_of_tokens_are_no_persons() {
    let being = |profile: Value| serde_json::from_value::<RawProfile>(profile).unwrap().being();
    for bot in ["project_7_bot", "project_7_bot_0f3c", "group_12_bot_1"] {
        assert_eq!(being(json!({"username": bot})), Being::Machine, "{bot}");
    }
    assert_eq!(being(json!({"username": "service", "bot": true})), Being::Machine);
    for person in ["ana", "project_bot", "project_x_bot", "my_project_7_bot"] {
        let being = being(json!({"username": person, "bot": false}));
        assert_eq!(being, Being::Person, "{person}");
    }
}

#[test]
fn what_a_merge_request_became() {
    let became = |merge: Value| serde_json::from_value::<RawEnd>(merge).unwrap().became().cloned();
    let request = |state: &str, merge: Option<u8>, squash: Option<u8>| {
        let (merge, squash) = (merge.map(commit), squash.map(commit));
        became(json!({
            "iid": 1, "state": state, "target_branch": "main", "sha": commit(0xa), "merge_commit_sha": merge,
            "squash_commit_sha": squash, "merge_user": {"id": 1, "username": "ana"}, "merged_by": {"id": 1, "username": "ana"},
        }))
    };
    assert_eq!(request("merged", Some(0xc), Some(0xb)), Some(commit(0xc)));
    assert_eq!(request("merged", None, Some(0xb)), Some(commit(0xb)));
    assert_eq!(request("merged", None, None), Some(commit(0xa)), "the base was moved on to it");
    for state in ["opened", "closed", "locked"] {
        assert_eq!(request(state, Some(0xc), None), None, "{state}");
    }
}

#[test]
fn attack_85_a_no_of_which_a_part_is_missing_is_still_a_no() {
    let ask = |user: Value| {
        let asked = json!({"user": user, "state": "requested_changes", "created_at": "2026-01-01T00:00:00Z"});
        said(&[], &[serde_json::from_value(asked).unwrap()], &[], &[])
            .map(|said| said.iter().map(|no| no.says).collect())
    };
    assert_eq!(ask(json!({"id": 3, "username": "eve"})), Ok(vec![Says::ChangesRequested]), "without a version");
    assert!(ask(json!({"id": -1, "username": "ghost"})).unwrap_err().contains("nobody can tell"));
}

#[tokio::test]
async fn nobody_has_an_empty_address() {
    let (server, dir) = (Server::start(HostKind::Gitlab).await, tempfile::tempdir().unwrap());
    let token_file = dir.path().join("token");
    std::fs::write(&token_file, "token").unwrap();
    let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
    let (owner, name) = ("acme".to_owned(), "shop".to_owned());
    let site = PullHost { kind: HostKind::Gitlab, api: server.api(), owner, name, access };
    let mut host = Host::new(site, pass, Box::new(|_, _| {}), Box::new(|| time("12:00:00"))).unwrap();
    // Whoever shows no address has an empty one.
    let ana = json!({"id": 3, "username": "ana", "public_email": ""});
    let ben = json!({"id": 4, "username": "ben", "public_email": "Ben@example.org"});
    server.state().there.insert("/users".to_owned(), json!([ana, ben]));
    assert_eq!(host.owner("ben@example.org").await.unwrap().map(|user| user.id), Some(4));
    assert_eq!(host.owner("").await, Ok(None));
}
