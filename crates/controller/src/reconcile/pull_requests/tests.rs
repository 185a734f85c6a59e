//! What has to be asked on a page, and what is said of what needs not.

use super::super::source::{LoadedRecord, Source};
use super::super::testing::{World, id, moved, steady};
use super::tidy::over;
use super::*;
use crate::forge::host::HostMark;
use crate::gate::proof::Flaw;
use crate::manifest::desired::Set;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::StepName;
use crate::manifest::proof::By;
use crate::manifest::raw::Trust;
use crate::manifest::reference::Referent;
use crate::manifest::set;
use crate::manifest::tracked::Taken;
use crate::people::user::User;
use crate::record::fixture;
use crate::record::state::{
    Consumed, DeletionAnswer, DeletionQuestion, DeletionVerdict, Governed, Phase, Pull, RolloutState, Run, Terms, Time,
    Void,
};
use crate::record::store::{print_plan, print_state};

const BRANCH: &str = "tidegate/prod/propose/shop/a/7-07070707-half";

fn instance() -> InstanceName {
    "prod".parse().unwrap()
}

/// A view with a branch that asks for `half`, and the record of `shop/a` as `change` makes it.
pub(super) async fn seen(world: &World, source: &mut Source, change: impl FnOnce(&mut RolloutState)) -> Arc<GitView> {
    if source.view().is_none() {
        moved(source, None).await;
    }
    let view = source.view().unwrap();
    let (mut state, _) = steady(&view, "a", 5);
    let set = state.promoted.as_ref().unwrap().set.clone();
    state.run = fixture::open().run.map(|run| Run { from: set.clone(), to: set.clone(), approved: Vec::new(), ..run });
    change(&mut state);
    let root = format!("rollouts/{}", id("a"));
    let file = (format!("{root}/sets/{}/app.yaml", set.short()), super::super::testing::manifest("a", "a:1"));
    let mut files = vec![(format!("{root}/state.yaml"), print_state(&state)), file];
    if let Some(run) = &state.run {
        files.push((format!("{root}/runs/{}.yaml", run.id), print_plan(&fixture::plan())));
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    world.commit(super::super::testing::STATE, &files).await;
    moved(source, None).await
}

/// What a branch asks for.
fn request(view: &GitView, asked: (&str, &CommitId)) -> Option<PullBody> {
    requested(view, asked, fixture::time("10:10:00"))
}

fn requested(view: &GitView, asked: (&str, &CommitId), now: Time) -> Option<PullBody> {
    let (compare, record) = (&|_: &CommitId, _: &CommitId| None, &|path: &RepoPath| Some(format!("page of {path}")));
    body::request(view, &Asker { instance: &instance(), main: "main", now, compare, record }, asked)
}

fn recorded(state: &mut RolloutState, head: &CommitId) {
    let half: StepName = "half".parse().unwrap();
    let pull = Pull { branch: BRANCH.to_owned(), head: head.clone(), checks: Vec::new() };
    state.run.as_mut().unwrap().pulls.insert(half, pull);
}

#[tokio::test]
async fn only_what_the_record_names_is_asked_on_a_page() {
    let world = World::new().await;
    let mut source = world.source("c");
    let head = world.commit(BRANCH, &[("x", Some("y"))]).await;
    let asked = |view: &GitView| request(view, (BRANCH, &head));
    assert_eq!(asked(&*seen(&world, &mut source, |_| {}).await), None, "made, and not recorded");
    let view = seen(&world, &mut source, |state| recorded(state, &head)).await;
    let found = asked(&view).unwrap();
    assert_eq!((found.base.as_str(), &found.head), ("tidegate/prod/decisions", &head));
    assert!(found.text.body.contains(head.as_str()), "{}", found.text.body);
    let moved_on = request(&view, (BRANCH, &fixture::commit(9)));
    assert_eq!(moved_on, None, "somebody pushed to it, and the record does not know");
    assert_eq!(request(&view, ("tidegate/prod/propose/x", &head)), None);

    // Whose no counts is what the run started with, where that is stricter.
    assert_eq!(found.rule, None);
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    let ruled = seen(&world, &mut source, |state| {
        recorded(state, &head);
        state.run.as_mut().unwrap().rule = Some(rule.clone());
    });
    assert_eq!(asked(&*ruled.await).unwrap().rule, Some(rule.clone()));

    let denied = seen(&world, &mut source, |state| {
        recorded(state, &head);
        state.run.as_mut().unwrap().denied = true;
    });
    assert_eq!(asked(&*denied.await), None);
    let approved = seen(&world, &mut source, |state| {
        recorded(state, &head);
        state.run.as_mut().unwrap().approved = vec!["half".parse().unwrap()];
    });
    assert_eq!(asked(&*approved.await), None);
}

/// Each change is a call to the host: there is none but with the calendar, whatever else goes on meanwhile.
#[tokio::test]
async fn a_request_says_what_comes_next_and_changes_only_as_a_freeze_nears_begins_and_ends() {
    let world = World::new().await;
    let (mut source, branch) = (world.source("c"), BRANCH.replace("half", "promotion"));
    let head = world.commit(&branch, &[("x", Some("y"))]).await;
    let view = seen(&world, &mut source, |state| {
        let mut at = fixture::position("half");
        at.clock.lost = at.clock.exposed;
        state.phase = Phase::WaitingPromotion { at, since: fixture::time("10:05:00") };
        let pull = Pull { branch: branch.clone(), head: head.clone(), checks: Vec::new() };
        state.run.as_mut().unwrap().pulls.insert("promotion".parse().unwrap(), pull);
    })
    .await;
    let told = |now: Time| requested(&view, (&branch, &head), now).unwrap().text.body;
    let begun = fixture::time("10:10:00");
    assert!(told(begun).contains("so far ([the record](page of rollouts/shop/a/state.yaml))."), "{}", told(begun));
    // An hour by the minute, then six weeks by the hour: into the freeze and beyond.
    let (minutes, hours) = ((0..60).map(chrono::TimeDelta::minutes), (0..24 * 42).map(chrono::TimeDelta::hours));
    let mut all: Vec<String> = minutes.chain(hours).map(|later| told(begun + later)).collect();
    all.dedup();
    let lines = all.iter().filter_map(|body| body.lines().find(|line| line.starts_with("**What comes next**")));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    **What comes next**, if nothing goes wrong: promotion after your approval, done about 30m35s later.
    **What comes next**, if nothing goes wrong: promotion after your approval and not before 3 January 2027 00:00 UTC \(freeze xmas\), done about 00:30.
    **What comes next**, if nothing goes wrong: promotion after your approval and not before Sunday 00:00 UTC \(freeze xmas\), done about 00:30.
    **What comes next**, if nothing goes wrong: promotion after your approval, done about 30m35s later.
    ");
    assert_eq!(all.len(), 4, "{all:#?}");
}

#[tokio::test]
async fn x_2_people_are_told_why_a_request_is_void() {
    let world = World::new().await;
    let mut source = world.source("c");
    let why = |view: &GitView| over(view, &instance(), BRANCH);
    assert_eq!(why(&*seen(&world, &mut source, |_| {}).await), None, "the record does not tell yet");
    let denied = seen(&world, &mut source, |state| state.run.as_mut().unwrap().denied = true).await;
    assert!(why(&denied).unwrap().contains("tidegate resume shop/a"));
    let void = |state: &mut RolloutState| {
        let why = "it was pushed to the branch, not merged by a pull request".to_owned();
        let void = Some(Void { why, through: Some("half".parse().unwrap()), head: None });
        state.consumed.extend(fixture::open().consumed.into_iter().map(|word| Consumed { void: void.clone(), ..word }));
    };
    let told = why(&*seen(&world, &mut source, void).await).unwrap();
    assert_eq!(told, "it was pushed to the branch, not merged by a pull request. It is asked again.");
    let flaw =
        Flaw::NotListed(User { login: "eve".to_owned(), id: 7 }, ["@acme/ops".parse().unwrap()].into()).to_string();
    let void = |state: &mut RolloutState| {
        let void = Some(Void { why: flaw.clone(), through: Some("half".parse().unwrap()), head: None });
        state.consumed.extend(fixture::open().consumed.into_iter().map(|word| Consumed { void: void.clone(), ..word }));
    };
    let told = why(&*seen(&world, &mut source, void).await).unwrap();
    assert_eq!(told, "eve is none of the policy's approvers, and not in \\@ acme/ops. It is asked again.");
    assert!(unsaid::not_authorized(&flaw).contains("not in \\@ acme/ops, so this is no answer"), "nobody is called");
    let approved = |state: &mut RolloutState| state.run.as_mut().unwrap().approved = vec!["promotion".parse().unwrap()];
    assert_eq!(why(&*seen(&world, &mut source, approved).await).unwrap(), "`half` is approved already.");
    let ended = seen(&world, &mut source, |state| state.run = None).await;
    assert!(why(&ended).unwrap().starts_with("run `7-07070707` is over"));
    assert!(
        over(&ended, &instance(), &BRANCH.replace("half", "revert")).unwrap().starts_with("there is nothing to undo")
    );
}

#[tokio::test]
async fn main_s_tip_is_pending_until_all_is_as_wanted() {
    let world = World::new().await;
    let mut source = world.source("c");
    let status = |view: &GitView| {
        commit_status::status(view).map(|(commit, Status { mark, text })| (commit, mark, text)).unwrap()
    };
    let view = seen(&world, &mut source, |_| {}).await;
    let tip = view.tips.main.clone().unwrap();
    let steady_now = seen(&world, &mut source, |state| state.run = None).await;
    assert_eq!(status(&steady_now), (tip.clone(), HostMark::Pending, "seen; shop/b: first sight".to_owned()));
    let under_way = "seen; shop/a: steady (succeeded), shop/b: first sight".to_owned();
    assert_eq!(status(&view), (tip, HostMark::Pending, under_way));
    world.commit("main", &[("teams/shop/b/rollout.yaml", Some("kind: [Rollout"))]).await;
    let broken = status(&*moved(&mut source, None).await);
    assert_eq!(broken.1, HostMark::Failure, "{broken:?}");
    let refused = seen(&world, &mut source, |state| {
        let revision = state.promoted.as_ref().unwrap().revision.clone();
        state.run = None;
        state.refused = fixture::steady()
            .refused
            .into_iter()
            .map(|refused| crate::record::state::Refused { revision: revision.clone(), ..refused })
            .collect();
    });
    let refused = status(&*refused.await);
    assert!(refused.1 == HostMark::Failure && refused.2.contains("shop/a is refused"), "{refused:?}");
}

#[tokio::test]
async fn c_7_what_a_promoted_version_tracks_is_no_part_of_what_main_says() {
    let world = World::new().await;
    let view = moved(&mut world.source("c"), None).await;
    let wanted = view.main.rollout(&id("a")).unwrap();
    let (mut state, _) = steady(&view, "a", 5);
    let taken = Taken { content: "sha256:1".to_owned(), copy: "settings-primary-1".parse().unwrap() };
    let tracked = [((Referent::ConfigMap, "settings".parse().unwrap()), taken)].into();
    let target = wanted.set.get(wanted.plan.target.kind.kind(), &wanted.plan.target.name).unwrap();
    let set = Arc::new(set::tracking(&wanted.set, target, tracked));
    let promoted = state.promoted.as_mut().unwrap();
    (promoted.set, promoted.revision) = (set.id.clone(), set.revision.clone());
    let record = |sets| LoadedRecord::written(state.clone(), None, &sets);
    assert!(commit_status::promoted(&record([(set.id.clone(), Arc::clone(&set))].into()), &state, wanted));
    let mut other = Set::clone(&set);
    other.files.insert("more.yaml".parse().unwrap(), ("b".repeat(40).parse().unwrap(), Arc::from(*b"")));
    assert!(!commit_status::promoted(&record([(set.id.clone(), Arc::new(other))].into()), &state, wanted));
}

const DELETION: &str = "tidegate/prod/propose/shop/a/0-delete";

/// No run is open or was, and people are asked to let objects go by that head.
fn deleting(state: &mut RolloutState, head: Option<&CommitId>, denied: bool) {
    (state.run, state.last_run) = (None, None);
    let pull = head.map(|head| Pull { branch: DELETION.to_owned(), head: head.clone(), checks: Vec::new() });
    let question = DeletionQuestion { pull, ..fixture::too_many(6) };
    if denied {
        state.deletions.said =
            vec![DeletionAnswer { objects: question.objects, successor: None, said: DeletionVerdict::No }];
    } else {
        state.deletions.asked = Some(question);
    }
}

#[tokio::test]
async fn x_3_the_deletions_that_the_record_asks_about_are_asked_on_a_page() {
    let world = World::new().await;
    let mut source = world.source("c");
    let head = world.commit(DELETION, &[("x", Some("y"))]).await;
    let asked = |view: &GitView| request(view, (DELETION, &head));
    assert_eq!(asked(&*seen(&world, &mut source, |state| deleting(state, None, false)).await), None, "not recorded");
    assert_eq!(asked(&*seen(&world, &mut source, |state| deleting(state, Some(&head), true)).await), None, "denied");
    let found = asked(&*seen(&world, &mut source, |state| deleting(state, Some(&head), false)).await).unwrap();
    assert_eq!((found.base.as_str(), &found.head), ("tidegate/prod/decisions", &head));
    assert!(found.text.title.contains("delete 7 objects") && found.text.body.contains("`ConfigMap worker-5`"));
}

/// As where one change of main has taken the objects away and let everybody decide.
#[tokio::test]
async fn attack_81_whose_no_to_deletions_counts_is_what_held_before_they_came() {
    let world = World::new().await;
    let mut source = world.source("c");
    let head = world.commit(DELETION, &[("x", Some("y"))]).await;
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    let loosened = |state: &mut RolloutState, head: &CommitId| {
        deleting(state, Some(head), false);
        let holds = Some(Terms { rule: Some(rule.clone()), ..Terms::default() });
        let wanted = state.promoted.as_ref().unwrap().set.clone();
        state.policy = Some(Governed { wanted, said: Terms::default(), holds });
    };
    let view = seen(&world, &mut source, |state| loosened(state, &head)).await;
    let asked = request(&view, (DELETION, &head)).unwrap();
    assert_eq!(asked.rule, Some(rule.clone()));
    assert!(gone::gone(&view).is_empty());
    world.delete(DELETION).await;
    let view = moved(&mut source, None).await;
    let gone = BTreeMap::from([(DELETION.to_owned(), gone::Gone::new("shop/a", head, rule))]);
    assert!(gone::gone(&view) == gone);
}

#[tokio::test]
async fn x_2_whether_the_branch_is_protected_matters_while_people_are_asked_to_let_objects_go() {
    let world = World::new().await;
    let mut source = world.source("c");
    let asked = seen(&world, &mut source, |state| deleting(state, None, false)).await;
    assert!(guard::gated(&asked));
    assert!(!guard::gated(&*seen(&world, &mut source, |state| deleting(state, None, true)).await));
    // Where the policy trusts whoever may write it does not matter.
    let policy =
        world.files("main").await["tidegate.yaml"].replace("clusters: [home]", "clusters: [home], trust: writers");
    world.commit("main", &[("tidegate.yaml", Some(&policy))]).await;
    assert!(!guard::gated(&*seen(&world, &mut source, |state| deleting(state, None, false)).await));
}

#[tokio::test]
async fn x_2_why_a_request_to_let_objects_go_is_over() {
    let world = World::new().await;
    let mut source = world.source("c");
    let why = |view: &GitView| over(view, &instance(), DELETION);
    let head = fixture::commit(9);
    let there = seen(&world, &mut source, |state| deleting(state, Some(&head), false)).await;
    assert_eq!(why(&there), None, "the record does not tell yet");
    let denied = seen(&world, &mut source, |state| deleting(state, Some(&head), true)).await;
    assert!(why(&denied).unwrap().starts_with("nobody is asked that any more: people have answered"));
    let other = seen(&world, &mut source, |state| deleting(state, None, false)).await;
    assert!(why(&other).unwrap().starts_with("something else would go by now"));
    let said = |void: Option<Void>| {
        let run = crate::manifest::ids::RunId::zero();
        let word = fixture::open().consumed.remove(0);
        Consumed { action: "delete".to_owned(), run, void, ..word }
    };
    let void = || Some(Void { why: "ana is no person".to_owned(), through: None, head: None });
    let unproven = seen(&world, &mut source, |state| {
        deleting(state, None, false);
        state.consumed = vec![said(void())];
    });
    assert_eq!(why(&*unproven.await).unwrap(), "ana is no person. It is asked again.");
    let given = seen(&world, &mut source, |state| {
        deleting(state, None, false);
        state.deletions.asked = None;
        state.consumed = vec![said(None)];
    });
    assert_eq!(why(&*given.await), why(&denied));
    let nothing = seen(&world, &mut source, |state| (state.run, state.last_run) = (None, None)).await;
    assert_eq!(why(&nothing), why(&denied));
}
