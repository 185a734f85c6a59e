//! Objects that are more than the policy lets go with one change: people are asked, and Git says what may go before it goes.

use super::super::action::{Action, GoesBy, Verb};
use super::super::evidence::Denial;
use super::super::input::{HeadChange, HeadContent};
use super::manifests::{QUICK, hex, id, set_with};
use super::requests::merged;
use super::world::World;
use crate::gate::guard::Guard;
use crate::manifest::decision::{DecisionAction, MAX_OBJECTS};
use crate::manifest::desired::Set;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, RunId};
use crate::manifest::object::{Kind, ObjectRef};
use crate::manifest::oid;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::record::branches::{Head, deletion};
use crate::record::history::deletion_paths;
use crate::record::state::{Consent, DeletionAnswer, DeletionQuestion, DeletionVerdict};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod authors;
mod governed;
mod versions;

impl World {
    /// Makes the branch of a request to let objects go, which stays as it was made.
    pub(super) fn propose_deletion(&mut self, name: String) {
        let head: CommitId = hex(&format!("1{}", self.asks()), 20).parse().unwrap();
        let content = HeadContent::Read(self.honest(&name));
        self.contents.insert(head.clone(), content);
        self.proposals.insert(name, head);
    }

    /// The file that such a request adds.
    pub(super) fn deletion_asked(&self, Head { rollout, run, .. }: &Head) -> (RepoPath, String) {
        deletion(rollout, run, self.question().unwrap().what(), deletion_paths(&self.record(), run))
    }

    /// What people are asked to let go.
    pub(super) fn asked_to_delete(&self) -> BTreeSet<ObjectRef> {
        self.question().map(|asked| asked.objects).unwrap_or_default()
    }

    /// The word for it.
    pub(super) fn word_to_delete(&self) -> DecisionAction {
        let successor = self.question().and_then(|asked| asked.successor);
        DecisionAction::Delete { objects: self.asked_to_delete(), successor }
    }

    /// Whether the record lets an action's object go, if it has to.
    pub(super) fn may_go(&self, action: &Action) -> bool {
        let Verb::Delete { target, by: GoesBy::Word, .. } = &action.verb else { return true };
        self.record.as_ref().is_some_and(|record| record.deletions.let_go().any(|object| object == target))
    }

    fn question(&self) -> Option<DeletionQuestion> {
        self.record.as_ref()?.deletions.asked.clone()
    }

    /// Of how many objects a person has said what: `true` lets them go.
    fn said(&self) -> Vec<(usize, bool)> {
        let said = self.record().deletions.said;
        let holds = said.into_iter().filter(|answer| answer.said != DeletionVerdict::Again);
        holds
            .map(|DeletionAnswer { objects, said, .. }| (objects.len(), matches!(said, DeletionVerdict::Yes(_))))
            .collect()
    }

    /// Why decisions to delete did not count, oldest first.
    fn void_words(&self) -> Vec<String> {
        let words = self.record().consumed.into_iter().filter(|word| word.action == "delete");
        words.filter_map(|word| Some(word.void?.why)).collect()
    }

    fn extras(&self) -> usize {
        let maps = self.live.objects.values().filter(|object| object.reference().kind == Kind::ConfigMap);
        maps.filter(|object| object.reference().name.as_str().starts_with("extra-")).count()
    }

    fn pass_a_run(&mut self) {
        self.settle();
        for seconds in [61, 61, 1] {
            self.pass(seconds);
        }
    }

    fn let_go(&mut self, names: impl IntoIterator<Item = u8>) {
        let objects = names.into_iter().map(extra).collect();
        self.say(DecisionAction::Delete { objects, successor: None });
        self.settle();
    }

    fn act(&self) -> String {
        let wait = self.plan_now().waits.into_iter().find(|wait| wait.reason.as_str() == "TooManyDeletions");
        wait.unwrap().act.unwrap()
    }
}

fn extra(n: u8) -> ObjectRef {
    ObjectRef { kind: Kind::ConfigMap, namespace: id().namespace, name: format!("extra-{n}").parse().unwrap() }
}

/// That a person has let them go.
fn let_go(names: impl IntoIterator<Item = u8>) -> DeletionAnswer {
    let (at, by, proof) = ("2026-03-02T10:00:00Z".parse().unwrap(), "ana".to_owned(), "none".to_owned());
    let objects = names.into_iter().map(extra).collect();
    DeletionAnswer { objects, successor: None, said: DeletionVerdict::Yes(Consent { by, at, proof, proven: None }) }
}

/// A version with so many more ConfigMaps.
fn many(version: &str, extras: usize) -> Arc<Set> {
    set_with(version, |all| {
        for n in 0..extras {
            let name = format!("extra-{n}");
            all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}));
        }
    })
}

/// Main has one of nine objects left, and eight are to go.
fn asked() -> World {
    asked_by(None)
}

fn asked_by(rule: Option<ApprovalRule>) -> World {
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, many("1", 9));
    world.settle();
    world.want(QUICK, many("2", 1));
    world.pass_a_run();
    if let Some(rule) = rule {
        world.policy.proof = Some(rule);
        world.settle();
    }
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["TooManyDeletions"]), "{:#?}", world.log);
    assert_eq!((world.extras(), world.proposals.len(), world.asks()), (9, 1, 1));
    world
}

fn rule() -> ApprovalRule {
    ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews }
}

#[test]
fn f_6_x_3_attack_50_people_are_asked_before_more_goes_than_the_policy_allows() {
    let mut world = asked();
    let (name, head) = world.proposals.first_key_value().map(|(name, head)| (name.clone(), head.clone())).unwrap();
    assert!(name.starts_with("tidegate/prod/propose/shop/podinfo/1-") && name.ends_with("-delete"), "{name}");
    let asked = world.question().unwrap();
    assert_eq!(asked.pull.map(|pull| (pull.branch, pull.head)), Some((name.clone(), head)));
    assert_eq!((asked.objects.len(), asked.limit, asked.successor), (8, 5, None));
    let act = world.act();
    assert!(act.contains("to keep them"), "{act}");
    assert!(
        act.contains(&name) && act.contains("tidegate delete shop/podinfo") && act.contains("maxDeletions"),
        "{act}"
    );
    world.merge_the_request();
    assert_eq!((world.phase().as_str(), world.waits(), world.extras()), ("Steady", vec![], 1), "{:#?}", world.log);
    let record = world.record();
    assert_eq!(record.consumed.iter().map(|word| word.action.as_str()).collect::<Vec<_>>(), ["delete"]);
    assert!(record.deletions.is_none(), "at rest nothing is left of it: {:?}", record.deletions);
    assert!(world.proposals.is_empty(), "it asks for nothing any more");
}

#[test]
fn f_6_a_word_counts_for_all_that_would_go_and_for_nothing_less() {
    let mut world = asked();
    world.let_go(1..=7);
    assert_eq!((world.waits(), world.extras(), world.asks()), (vec!["TooManyDeletions"], 9, 1));
    assert_eq!(world.void_words(), ["ConfigMap shop/extra-8 would go too, which it does not list"]);
    // What is listed beyond what was asked is nobody's to delete, now or later.
    world.say(DecisionAction::Delete { objects: (0..=12).map(extra).collect(), successor: None });
    world.tick();
    assert_eq!(world.said(), [(8, true)], "{:#?}", world.log);
    world.settle();
    assert_eq!((world.waits(), world.extras(), world.record().consumed.len()), (vec![], 1, 2));
    assert!(world.proposals.is_empty() && world.get(Kind::ConfigMap, "extra-0").is_some());
}

#[test]
fn x_2_a_word_that_nobody_asks_for_does_not_count_and_never_will() {
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, many("1", 9));
    world.settle();
    world.want(QUICK, many("2", 9));
    world.pass_a_run();
    world.let_go(1..=8);
    assert_eq!(world.void_words(), ["nobody is asked whether objects may go"]);
    world.want(QUICK, many("3", 1));
    world.pass_a_run();
    assert_eq!((world.waits(), world.extras(), world.asks()), (vec!["TooManyDeletions"], 9, 1), "{:#?}", world.log);
    // Nor does one that says it while a run is open.
    world.want(QUICK, many("4", 1));
    world.settle();
    assert!(world.record().run.is_some() && world.question().is_none() && world.proposals.is_empty());
    world.let_go(1..=8);
    assert_eq!(world.void_words().len(), 2);
    world.pass_a_run();
    assert_eq!((world.waits(), world.extras(), world.asks()), (vec!["TooManyDeletions"], 9, 2), "{:#?}", world.log);
}

#[test]
fn x_2_the_word_is_for_what_was_asked_alone() {
    let mut world = asked();
    world.let_go(1..=8);
    assert_eq!((world.extras(), world.record().deletions.is_none()), (1, true));
    world.want(QUICK, many("3", 9));
    world.pass_a_run();
    world.want(QUICK, many("4", 0));
    world.pass_a_run();
    assert_eq!((world.waits(), world.extras()), (vec!["TooManyDeletions"], 9), "it was over when nothing was to go");
    world.let_go(1..=8);
    assert_eq!(world.extras(), 9, "extra-0 would go too");
    world.let_go(0..=8);
    assert_eq!((world.waits(), world.extras()), (vec![], 0));
}

#[test]
fn x_2_what_is_on_main_again_is_not_let_go_any_more() {
    let mut world = asked();
    let said = vec![let_go(1..=8)];
    world.record.as_mut().unwrap().deletions.said = said.clone();
    world.want(QUICK, many("3", 9));
    world.tick();
    assert_eq!((world.record().run.is_some(), world.said()), (true, vec![]), "{:#?}", world.log);
    world.pass_a_run();
    // Nor where the next run begins before anybody has looked.
    world.record.as_mut().unwrap().deletions.said = said;
    world.want(QUICK, many("4", 1));
    world.tick();
    assert_eq!((world.record().run.is_some(), world.said()), (true, vec![]), "{:#?}", world.log);
}

#[test]
fn x_2_what_would_go_has_changed_and_is_asked_anew() {
    let mut world = asked();
    let old = world.proposals.clone();
    world.remove(Kind::ConfigMap, "extra-8");
    world.settle();
    assert_eq!((world.asked_to_delete().len(), world.asks(), world.proposals.len()), (7, 2, 1), "{:#?}", world.log);
    assert_ne!(world.proposals, old);
    assert_eq!(world.question().unwrap().pull.map(|pull| pull.head).as_ref(), world.proposals.values().next());
    assert_eq!(world.record().consumed, [], "nobody has written to it: that was us");
    // Nor does it go on asking in the name of a run that is not the last any more.
    world.want(QUICK, many("3", 1));
    world.pass_a_run();
    assert_eq!((world.asks(), world.proposals.len(), world.waits()), (3, 1, vec!["TooManyDeletions"]));
    assert!(world.proposals.keys().all(|name| name.contains("/2-")), "{:?}", world.proposals);
    world.merge_the_request();
    assert_eq!((world.waits(), world.extras()), (vec![], 1));
}

#[test]
fn x_2_what_may_go_anyway_is_not_asked_any_more() {
    let mut world = asked();
    world.policy.max_deletions = 8;
    world.settle();
    assert_eq!((world.waits(), world.extras(), world.proposals.len()), (vec![], 1, 0));
    assert!(world.record().deletions.is_none());
}

#[test]
fn x_4_a_no_is_kept_until_a_resume_and_keeps_nothing_else() {
    let mut world = asked();
    world.proposals.clear();
    world.settle();
    assert_eq!((world.said(), world.question()), (vec![(8, false)], None), "{:?}", world.log);
    assert_eq!((world.waits(), world.proposals.len(), world.asks()), (vec!["TooManyDeletions"], 0, 1));
    assert!(world.act().contains("tidegate resume shop/podinfo"), "{}", world.act());
    let why = world.plan_now().waits.remove(0).message;
    assert!(why.starts_with("8 objects would be deleted, but a person said no: ConfigMap shop/extra-1, "), "{why}");
    // Another version's run changes nothing of that.
    world.want(QUICK, many("3", 1));
    world.pass_a_run();
    assert_eq!((world.proposals.len(), world.asks(), world.extras()), (0, 1, 9));
    let mut resumed = world.clone();
    resumed.say(DecisionAction::Resume);
    resumed.settle();
    assert_eq!((resumed.proposals.len(), resumed.asks(), resumed.said()), (1, 2, vec![]));
    let mut said = world.clone();
    said.let_go(1..=8);
    assert_eq!((said.extras(), said.void_words().len()), (9, 1), "a resume lifts a no, and nothing else");
    // What is little enough goes by itself, and what is too much by its own decision.
    world.want(QUICK, many("4", 0));
    world.pass_a_run();
    assert_eq!((world.waits(), world.extras(), world.asks()), (vec!["TooManyDeletions"], 8, 1), "{:#?}", world.log);
    // Main has some of them again: they are no longer refused, nor the rest lifted.
    world.want(QUICK, many("5", 6));
    world.pass_a_run();
    assert_eq!((world.said(), world.extras()), (vec![(3, false)], 9), "{:#?}", world.log);
}

#[test]
fn x_4_where_the_policy_names_approvers_a_no_is_theirs() {
    let mut world = asked_by(Some(rule()));
    world.policy.guard = Guard::Kept;
    let request = world.proposals.pop_first().unwrap();
    world.settle();
    assert_eq!((world.said(), world.waits()), (vec![], vec!["TooManyDeletions", "Evidence"]));
    let mut denied = world.clone();
    denied.evidence.denials.insert(request.clone(), Denial::No);
    denied.settle();
    assert_eq!(denied.said(), [(8, false)]);
    world.evidence.denials.insert(request, Denial::NotAuthorized("eve is none of the policy's approvers".to_owned()));
    world.settle();
    assert_eq!((world.said(), world.proposals.len()), (vec![], 1), "{:?}", world.log);
}

#[test]
fn x_3_where_the_policy_names_approvers_the_word_is_proven_like_any_that_lets_go_further() {
    let mut world = asked_by(Some(rule()));
    let head = world.proposals.values().next().cloned();
    // Somebody pushed it: void, and asked anew.
    world.host.pushed = true;
    let change = world.honest(world.proposals.keys().next().unwrap());
    let action = world.word_to_delete();
    merged(&mut world, &change, action, None);
    assert_eq!((world.waits(), world.extras()), (vec!["TooManyDeletions"], 9));
    let void = world.record().consumed.last().unwrap().void.clone().unwrap();
    assert!(void.why.contains("it was pushed") && void.head == head, "{void:?}");
    assert_eq!(world.asks(), 2, "{:?}", world.log);
    let name = world.proposals.keys().next().cloned().unwrap();
    let path = world.honest(&name).files.into_keys().next().unwrap();
    assert!(path.as_str().ends_with("-delete-2.yaml"), "another word: {path}");
    // Merged, and its branch deleted; but nobody knows yet who approved.
    world.host.pushed = false;
    world.host.away = Some("the host is away");
    let (change, ours) = (world.honest(&name), world.proposals.values().next().cloned());
    let action = world.word_to_delete();
    merged(&mut world, &change, action, ours.as_ref());
    world.proposals.clear();
    world.settle();
    assert!(world.said().is_empty() && world.extras() == 9, "that is no no: {:?}", world.log);
    world.host.away = None;
    world.host.by = vec!["ana"];
    world.pass(61);
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
    let word = world.record().consumed.last().cloned().unwrap();
    assert_eq!((word.action.as_str(), word.proof.as_str(), word.void), ("delete", "review", None));
}

#[test]
fn the_host_is_asked_with_what_was_asked_to_the_letter() {
    let mut world = asked_by(Some(rule()));
    let head = world.proposals.values().next().cloned();
    world.say(world.word_to_delete());
    let request = world.plan_now().review_queries.remove(0).request.unwrap();
    let name = world.proposals.keys().next().cloned().unwrap();
    let letters: BTreeMap<_, _> = request.letters.into_iter().map(|(path, blob)| (path, Some(blob))).collect();
    assert_eq!((letters, request.head), (world.honest(&name).files, head));
}

#[test]
fn x_2_attack_74_a_request_that_somebody_has_written_to_lets_nothing_go() {
    let mut world = asked();
    let name = world.proposals.keys().next().cloned().unwrap();
    let honest = world.honest(&name);
    let more: BTreeSet<ObjectRef> = (0..=8).map(extra).collect();
    let run: RunId = world.record().current();
    let (path, text) = deletion(&id(), &run, (&more, None), 0);
    let other = HeadChange { files: [(path, Some(oid::blob(text.as_bytes())))].into(), ..honest.clone() };
    // Seen before it was merged.
    let mut spoiled = world.clone();
    let (foreign, _) = spoiled.pushed("9", HeadContent::Read(other.clone()));
    spoiled.settle();
    assert_eq!((spoiled.asks(), spoiled.extras(), spoiled.proposals.len()), (2, 9, 1), "{:?}", spoiled.log);
    let void = spoiled.record().consumed.last().unwrap().void.clone().unwrap();
    assert!(void.head == Some(foreign) && void.why.contains("somebody else has written"), "{void:?}");
    assert_eq!(spoiled.said(), []);
    // Squashed, and gone, within one look: as far as Git tells, it came by our own request.
    world.proposals.clear();
    merged(&mut world, &other, DecisionAction::Delete { objects: more, successor: None }, None);
    assert_eq!((world.extras(), world.asks()), (9, 2), "{:?}", world.log);
    let void = world.record().consumed[0].void.clone().unwrap();
    assert!(void.why.contains("was replaced or deleted as it came"), "{void:?}");
    world.merge_the_request();
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
}

#[test]
fn x_4_a_resume_asks_again_however_little_it_is_and_in_a_run_it_is_about_the_run() {
    let mut world = asked();
    world.proposals.clear();
    world.settle();
    world.want(QUICK, many("3", 6));
    world.settle();
    world.say(DecisionAction::Resume);
    world.pass_a_run();
    assert_eq!((world.said(), world.waits()), (vec![(3, false)], vec!["TooManyDeletions"]), "{:#?}", world.log);
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!((world.said(), world.extras(), world.asked_to_delete().len()), (vec![], 9, 3), "{:#?}", world.log);
    let why = world.plan_now().waits.remove(0).message;
    assert!(why.starts_with("3 objects would be deleted, to which a person had said no before: "), "{why}");
    // A no again is one.
    let mut denied = world.clone();
    denied.proposals.clear();
    denied.settle();
    assert_eq!((denied.said(), denied.extras()), (vec![(3, false)], 9));
    world.merge_the_request();
    assert_eq!((world.waits(), world.extras(), world.record().deletions.is_none()), (vec![], 6, true));
}

/// A version that main wants again, and that was refused: the answer is not lost for it.
#[test]
fn x_4_a_no_lasts_where_main_wants_what_was_refused() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, many("2", 9));
    world.pass_a_run();
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    world.pass_a_run();
    assert_eq!(world.waits(), ["Refused", "TooManyDeletions"], "{:#?}", world.log);
    assert_eq!(world.asked_to_delete().len(), 9);
    world.proposals.retain(|name, _| !name.ends_with("-delete"));
    world.settle();
    let commits = world.log.len();
    world.pass(3_600);
    assert_eq!((world.said(), world.log.len()), (vec![(9, false)], commits), "{:#?}", world.log);
}

/// They were let go without a proof, and have not gone yet.
#[test]
fn x_3_where_the_policy_names_approvers_by_now_what_was_not_proven_is_asked_again() {
    let mut world = asked();
    world.record.as_mut().unwrap().deletions.said.push(let_go(1..=8));
    world.policy.proof = Some(rule());
    world.settle();
    assert!(world.said().is_empty() && world.question().is_some() && world.extras() == 9, "{:#?}", world.log);
}

#[test]
fn nobody_is_asked_about_a_rollout_that_has_left_main() {
    let mut world = asked();
    world.gone();
    world.settle();
    assert!(world.proposals.is_empty(), "{:?}", world.log);
    assert!(world.record.as_ref().is_none_or(|record| record.deletions.is_none()), "{:?}", world.log);
}

#[test]
fn what_cannot_be_read_at_the_path_of_a_request_to_let_objects_go_is_void_and_it_is_asked_anew() {
    let mut world = asked();
    let name = world.proposals.keys().next().cloned().unwrap();
    let path = world.honest(&name).files.into_keys().next().unwrap();
    world.say(DecisionAction::Hold);
    let file = world.files.last_mut().unwrap();
    (file.path, file.decision) = (path.clone(), Err("expected a mapping".to_owned()));
    world.settle();
    assert_eq!(world.void_words(), [format!("{path} cannot be read as a decision")]);
    assert_eq!((world.asks(), world.proposals.len()), (2, 1), "{:?}", world.log);
    let next = world.honest(world.proposals.keys().next().unwrap()).files.into_keys().next().unwrap();
    assert!(next.as_str().ends_with("-delete-2.yaml"), "{next}");
    world.merge_the_request();
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
}

#[test]
fn more_objects_than_a_record_has_room_for_are_not_asked_about() {
    let world = asked();
    for (others, is_asked) in [(MAX_OBJECTS - 8, true), (MAX_OBJECTS - 7, false)] {
        let mut world = world.clone();
        let other = |n| ObjectRef { name: format!("other-{n}").parse().unwrap(), ..extra(1) };
        let objects = (0..others).map(other).chain([extra(1)]).collect();
        let said = DeletionAnswer { objects, successor: None, said: DeletionVerdict::No };
        world.record.as_mut().unwrap().deletions.said.push(said);
        world.settle();
        assert_eq!((world.question().is_some(), world.proposals.len()), (is_asked, usize::from(is_asked)));
    }
}
