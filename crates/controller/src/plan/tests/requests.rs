//! Branches under the names of our requests that say something else than we have asked.

use super::super::input::{HeadChange, HeadContent, RequestBranch};
use super::manifests::{CANARY, set};
use super::world::World;
use crate::gate::decisions::DecisionFile;
use crate::manifest::decision::{Decision, DecisionAction};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::manifest::oid;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::record::branches::{Asks, Head, approval};
use crate::record::history::voids;
use crate::record::state::Void;
use std::collections::{BTreeMap, BTreeSet};

mod beside;

impl World {
    /// The branches of requests, as we make them where nothing else is said.
    pub(super) fn branches(&self) -> BTreeMap<String, RequestBranch> {
        let all = self.proposals.iter();
        all.map(|(name, head)| {
            let content = self.contents.get(head).cloned().unwrap_or_else(|| HeadContent::Read(self.honest(name)));
            (name.clone(), RequestBranch { head: head.clone(), content })
        })
        .collect()
    }

    /// A person says hold, by a file that is called so.
    pub(super) fn hold(&mut self) {
        self.say(DecisionAction::Hold);
        let file = self.files.last_mut().unwrap();
        file.path = file.path.as_str().replace(".yaml", "-hold.yaml").parse().unwrap();
        self.settle();
    }

    /// A person merges the one request that is open.
    pub(super) fn merge_the_request(&mut self) {
        let (name, head) = self.proposals.first_key_value().map(|(name, head)| (name.clone(), head.clone())).unwrap();
        let (change, asks) = (self.honest(&name), Head::parse(&"prod".parse().unwrap(), &name).unwrap().asks);
        let action = match asks {
            Asks::Advance(through) => DecisionAction::Approve { through },
            Asks::Delete => self.word_to_delete(),
            Asks::Revert => panic!("{name} asks for no word"),
        };
        merged(self, &change, action, Some(&head));
    }

    /// By which branches the files came that were not there when the run started.
    pub(super) fn brought(&self) -> BTreeMap<RepoPath, BTreeSet<String>> {
        let branches = self.branches();
        let by = |file: &DecisionFile| {
            let brings = |branch: &RequestBranch| match &branch.content {
                HeadContent::Read(change) => change.files.get(&file.path) == Some(&Some(file.blob.clone())),
                HeadContent::Unread(_) | HeadContent::Odd(_) => false,
            };
            let it = branches.iter().filter(|(_, branch)| file.merged.as_ref() == Some(&branch.head) || brings(branch));
            it.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
        };
        let all = self.files.iter().map(|file| (file.path.clone(), by(file)));
        all.filter(|(_, branches)| !branches.is_empty()).collect()
    }

    /// What we ask by a branch of that name.
    pub(super) fn honest(&self, name: &str) -> HeadChange {
        let head = Head::parse(&"prod".parse().unwrap(), name).expect("a request");
        let void = |through| self.record.iter().flat_map(|record| voids(record, &head.run, through)).count();
        let (path, text) = match &head.asks {
            Asks::Advance(through) => approval(&head.rollout, &head.run, through, void(through)),
            Asks::Revert => (path("teams/shop/podinfo/app.yaml"), "as it was".to_owned()),
            Asks::Delete => self.deletion_asked(&head),
        };
        let files: BTreeMap<_, _> = [(path, Some(oid::blob(text.as_bytes())))].into();
        HeadChange { alone: true, undoing: (head.asks == Asks::Revert).then(|| files.clone()), files }
    }

    /// Somebody pushes to the one request that is open; the head and the branch.
    pub(super) fn pushed(&mut self, digit: &str, content: HeadContent) -> (CommitId, String) {
        let (name, head) = (self.proposals.keys().next().cloned().unwrap(), commit(digit));
        self.proposals.insert(name.clone(), head.clone());
        self.contents.insert(head.clone(), content);
        (head, name)
    }

    /// What the record says of requests for `tenth` that were void.
    fn spoiled(&self) -> Vec<Void> {
        let record = self.record();
        let run = record.run.clone().unwrap();
        voids(&record, &run.id, &"tenth".parse().unwrap()).cloned().collect()
    }

    pub(super) fn asks(&self) -> usize {
        self.log.iter().filter(|line| line.starts_with("proposes")).count()
    }
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

/// A run that waits for a decision before `tenth`, and what its request would bring.
fn asked() -> (World, HeadChange) {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.asks()), ("Waiting", vec!["Approval"], 1));
    let name = world.proposals.keys().next().cloned().unwrap();
    let change = world.honest(&name);
    (world, change)
}

/// The same, by an approval of all that is to come.
fn swapped(change: &HeadChange) -> HeadChange {
    let swap = |(path, _): (&RepoPath, &Option<BlobId>)| {
        (path.as_str().replace("-tenth", "-promotion").parse().unwrap(), Some("9".repeat(40).parse().unwrap()))
    };
    HeadChange { files: change.files.iter().map(swap).collect(), ..change.clone() }
}

#[test]
fn x_2_attack_74_a_request_that_somebody_has_pushed_to_is_void_and_asked_again() {
    let (_, honest) = asked();
    let more = |path: &str, blob: Option<&str>| {
        let file = (path.parse().unwrap(), blob.map(|digit| digit.repeat(40).parse().unwrap()));
        HeadChange { files: honest.files.clone().into_iter().chain([file]).collect(), ..honest.clone() }
    };
    for (content, why) in [
        (HeadContent::Read(swapped(&honest)), "it would change shop/podinfo/1-"),
        (HeadContent::Read(more("shop/other/1-x.yaml", Some("9"))), "it would change shop/other/1-x.yaml"),
        (HeadContent::Read(more("README.md", None)), "it would change README.md"),
        (HeadContent::Read(HeadChange { files: BTreeMap::new(), ..honest.clone() }), "it lacks what was asked"),
        (HeadContent::Read(HeadChange { alone: false, ..honest.clone() }), "it would bring other commits too"),
        (HeadContent::Odd("the tree is odd".to_owned()), "the tree is odd"),
    ] {
        let (mut world, _) = asked();
        let before = world.proposals.clone();
        let (foreign, name) = world.pushed("9", content);
        world.settle();
        let [void] = &world.spoiled()[..] else { panic!("{:?}", world.log) };
        assert!(
            void.why.starts_with("somebody else has written to its branch: ") && void.why.contains(why),
            "{void:?}"
        );
        assert_eq!(void.head.as_ref(), Some(&foreign));
        assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnproven"]));
        assert_eq!(world.asks(), 2, "{:?}", world.log);
        assert!(world.proposals[&name] != before[&name] && world.proposals[&name] != foreign);
        let run = world.record().run.unwrap();
        assert_eq!(run.pulls.values().map(|pull| &pull.head).collect::<Vec<_>>(), [&world.proposals[&name]]);
        assert!(!run.denied, "nobody has said no");
        let commits = world.log.len();
        world.pass(86_400);
        assert_eq!(world.log.len(), commits, "nothing happens by itself: {:?}", world.log);
        world.approve("tenth");
        assert_eq!(world.phase(), "Progressing(tenth)");
    }
}

#[test]
fn pushing_to_a_request_again_and_again_makes_no_record_grow() {
    let (mut world, honest) = asked();
    for digit in ["7", "8", "9"] {
        let (foreign, _) = world.pushed(digit, HeadContent::Read(swapped(&honest)));
        world.settle();
        let [void] = &world.spoiled()[..] else { panic!("{:?}", world.log) };
        assert_eq!(void.head.as_ref(), Some(&foreign));
    }
    assert_eq!(world.asks(), 4);
    // What was void before is no better the next time.
    world.pushed("7", HeadContent::Read(swapped(&honest)));
    world.settle();
    assert_eq!((world.asks(), world.spoiled().len()), (5, 1));
}

#[test]
fn x_3_attack_74_a_branch_that_was_there_before_we_asked_is_no_request() {
    let (twin, honest) = asked();
    let name = twin.proposals.keys().next().cloned().unwrap();
    let beforehand = |content: HeadContent| {
        let mut world = World::new(CANARY, "1");
        world.settle();
        world.want(CANARY, set("2"));
        world.proposals.insert(name.clone(), commit("9"));
        world.contents.insert(commit("9"), content);
        world.settle();
        world
    };
    let world = beforehand(HeadContent::Read(swapped(&honest)));
    assert_eq!((world.asks(), world.spoiled().len()), (1, 1), "{:?}", world.log);
    assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"]);
    assert_ne!(world.proposals[&name], commit("9"));
    // As when a process ended before it could record what it had asked.
    let world = beforehand(HeadContent::Read(honest));
    assert_eq!((world.asks(), world.spoiled().len(), world.waits()), (0, 0, vec!["Approval"]), "{:?}", world.log);
    assert_eq!(
        world.record().run.unwrap().pulls.values().map(|pull| pull.head.clone()).collect::<Vec<_>>(),
        [commit("9")]
    );
}

#[test]
fn x_6_what_could_not_be_read_is_neither_asked_by_nor_a_no() {
    let (mut world, honest) = asked();
    let before = world.record();
    let (head, _) = world.pushed("9", HeadContent::Unread("Git is away".to_owned()));
    world.pass(3_600);
    assert_eq!((world.record(), world.asks()), (before, 1), "{:?}", world.log);
    assert_eq!(world.waits(), ["Approval", "Evidence"]);
    world.contents.insert(head.clone(), HeadContent::Read(honest));
    world.settle();
    assert_eq!((world.waits(), world.asks()), (vec!["Approval"], 1));
    assert_eq!(world.record().run.unwrap().pulls.values().map(|pull| &pull.head).collect::<Vec<_>>(), [&head]);
    // A new process has not read it yet: what was asked stays so.
    world.contents.insert(head, HeadContent::Unread("not read yet".to_owned()));
    let commits = world.log.len();
    world.pass(3_600);
    assert_eq!((world.waits(), world.log.len()), (vec!["Approval"], commits));
}

#[test]
fn x_5_a_request_to_undo_a_change_is_asked_again_when_somebody_has_written_to_it() {
    let mut world = World::failed();
    let (name, ours) = world.proposals.first_key_value().map(|(name, head)| (name.clone(), head.clone())).unwrap();
    let honest = world.honest(&name);
    let revert = |world: &World| world.record().revert.map(|pull| pull.head);
    assert_eq!(revert(&world), Some(ours.clone()));

    let (foreign, _) = world.pushed("9", HeadContent::Unread("Git is away".to_owned()));
    world.settle();
    assert_eq!((revert(&world), world.asks(), world.waits()), (Some(ours), 1, vec!["Evidence", "Refused"]));

    let mut files = honest.files.clone();
    files.insert(path("teams/shop/other/app.yaml"), Some("9".repeat(40).parse().unwrap()));
    let nothing = HeadChange { undoing: None, ..honest.clone() };
    for content in [HeadChange { files, ..honest.clone() }, HeadChange { alone: false, ..honest }, nothing] {
        let (before, asks) = (world.log.len(), world.asks());
        world.proposals.insert(name.clone(), foreign.clone());
        world.contents.insert(foreign.clone(), HeadContent::Read(content));
        world.settle();
        let log = world.log[before..].join("\n");
        assert!(
            log.contains("the request to undo the change is void: somebody else has written to its branch"),
            "{log}"
        );
        assert_eq!((world.asks(), world.waits()), (asks + 1, vec!["Refused"]), "{log}");
        assert!(world.proposals[&name] != foreign && revert(&world).as_ref() == Some(&world.proposals[&name]), "{log}");
    }
}

#[test]
fn attack_74_who_is_asked_about_a_word_learns_which_head_was_asked() {
    let (mut world, honest) = asked();
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    world.policy.proof = Some(rule);
    let ours = world.proposals.values().next().cloned().unwrap();
    let asked = |world: &World| {
        let mut world = world.clone();
        world.say(crate::manifest::decision::DecisionAction::Approve { through: "tenth".parse().unwrap() });
        world
            .plan_now()
            .review_queries
            .into_iter()
            .map(|review_query| review_query.request.unwrap().head)
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&world), [Some(ours.clone())]);
    // What was pushed to the branch, and not seen yet, is not what was asked.
    world.pushed("9", HeadContent::Read(swapped(&honest)));
    assert_eq!(asked(&world), [Some(ours)]);
    assert!(world.tick(), "{:?}", world.log);
    assert_eq!(asked(&world), [None]);
}

/// Somebody merges what lies on that branch, squashed or not, before anybody looks again.
pub(super) fn merged(world: &mut World, change: &HeadChange, action: DecisionAction, by: Option<&CommitId>) {
    let run = world.record().current();
    let (path, blob) =
        change.files.first_key_value().map(|(path, blob)| (path.clone(), blob.clone().unwrap())).unwrap();
    world.files.push(DecisionFile {
        path,
        blob,
        by: "ana <ana@example.org>".to_owned(),
        brought: Some(commit("e")),
        merged: by.cloned(),
        decision: Ok(Decision { rollout: "shop/podinfo".parse().unwrap(), run, action, reason: None }),
    });
    world.settle();
}

fn approve(through: &str) -> DecisionAction {
    DecisionAction::Approve { through: through.parse().unwrap() }
}

#[test]
fn x_2_attack_74_without_approvers_a_head_that_is_replaced_and_merged_in_one_poll_brings_no_word() {
    let (_, honest) = asked();
    let other = swapped(&honest);
    let read = HeadContent::Read(other.clone());
    let unread = HeadContent::Unread("not read yet".to_owned());
    let was = "which was to ask for something else";
    let gone = "was replaced or deleted as it came";
    for (content, is_there, is_merge, why) in [
        (&read, true, true, was),
        (&read, true, false, was),
        (&unread, true, false, gone),
        (&unread, false, true, gone),
        (&unread, false, false, gone),
    ] {
        for action in [approve("promotion"), approve("tenth"), DecisionAction::Resume] {
            let (mut world, _) = asked();
            let (foreign, name) = world.pushed("9", content.clone());
            if !is_there {
                world.proposals.remove(&name);
            }
            merged(&mut world, &other, action.clone(), is_merge.then_some(&foreign));
            let record = world.record();
            let run = record.run.clone().unwrap();
            assert!(run.approved.is_empty() && !run.denied, "{action:?}: {:?}", world.log);
            let word = record.consumed.iter().find(|word| word.path == *other.files.keys().next().unwrap()).unwrap();
            assert!(word.void.as_ref().is_some_and(|void| void.why.contains(why)), "{word:?}");
            assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnproven"]));
            assert_eq!(world.asks(), 2, "{:?}", world.log);
            assert!(![&foreign].contains(&&world.proposals[&name]));
            // What is asked anew says what it did before.
            let again = world.honest(&name);
            let head = world.proposals[&name].clone();
            merged(&mut world, &again, approve("tenth"), Some(&head));
            assert_eq!((world.phase().as_str(), world.asks()), ("Progressing(tenth)", 2), "{:?}", world.log);
        }
    }
}

#[test]
fn what_is_void_where_no_proof_is_asked_for_is_not_said_to_lack_one() {
    for (action, said) in [(approve("promotion"), "approval of promotion"), (DecisionAction::Resume, "resume")] {
        let (mut world, honest) = asked();
        let other = swapped(&honest);
        let (foreign, _) = world.pushed("9", HeadContent::Read(other.clone()));
        merged(&mut world, &other, action, Some(&foreign));
        let log = world.log.join("\n");
        assert!(log.contains(&format!("{said} does not count")) && !log.contains("not proven"), "{log}");
    }
}

#[test]
fn x_2_what_was_asked_counts_whoever_has_committed_it() {
    for (is_there, is_merge) in [(true, true), (true, false), (false, true), (false, false)] {
        let (mut world, honest) = asked();
        let (again, name) = world.pushed("9", HeadContent::Read(honest.clone()));
        if !is_there {
            world.proposals.remove(&name);
        }
        merged(&mut world, &honest, approve("tenth"), is_merge.then_some(&again));
        assert_eq!((world.phase().as_str(), world.asks()), ("Progressing(tenth)", 1), "{:?}", world.log);
    }
    // Merged before the record could name it.
    let (twin, honest) = asked();
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    while world.waits() != ["Approval"] {
        assert!(world.tick(), "{:?}", world.log);
    }
    world.proposals = twin.proposals.clone();
    let head = world.proposals.values().next().cloned();
    merged(&mut world, &honest, approve("tenth"), head.as_ref());
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
}

#[test]
fn attack_74_nor_does_the_request_of_another_rollout_or_a_head_that_was_void_before_bring_a_word() {
    let (mut world, honest) = asked();
    let other = swapped(&honest);
    let name = world.proposals.keys().next().unwrap().replace("podinfo", "other");
    world.proposals.insert(name.clone(), commit("9"));
    world.contents.insert(commit("9"), HeadContent::Read(other.clone()));
    merged(&mut world, &other, approve("promotion"), None);
    let record = world.record();
    assert!(record.run.unwrap().approved.is_empty() && world.asks() == 1, "{:?}", world.log);
    let why = record.consumed.last().unwrap().void.clone().unwrap().why;
    assert!(why.contains(&name), "{why}");
    // A decision of one's own is nobody's request.
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");

    let (mut world, _) = asked();
    let (foreign, _) = world.pushed("9", HeadContent::Read(other.clone()));
    world.settle();
    merged(&mut world, &other, approve("promotion"), Some(&foreign));
    assert!(world.record().run.unwrap().approved.is_empty(), "{:?}", world.log);
    let why = world.record().consumed.last().unwrap().void.clone().unwrap().why;
    assert!(why.contains("somebody else had pushed to a request"), "{why}");
}

#[test]
fn what_restricts_counts_however_it_comes() {
    let (mut world, honest) = asked();
    let other = swapped(&honest);
    let (foreign, _) = world.pushed("9", HeadContent::Read(other.clone()));
    merged(&mut world, &other, DecisionAction::Hold, Some(&foreign));
    assert!(world.record().run.unwrap().held, "{:?}", world.log);
}

#[test]
fn x_2_attack_74_nor_is_one_squashed_that_was_void_before_and_is_not_asked_for_anew_yet() {
    let (mut world, honest) = asked();
    let other = swapped(&honest);
    let (_, name) = world.pushed("9", HeadContent::Read(other.clone()));
    while world.spoiled().is_empty() {
        assert!(world.tick(), "{:?}", world.log);
    }
    world.proposals.remove(&name);
    merged(&mut world, &other, approve("promotion"), None);
    assert!(world.record().run.unwrap().approved.is_empty(), "{:?}", world.log);
    let again = world.honest(&name);
    let head = world.proposals[&name].clone();
    merged(&mut world, &again, approve("tenth"), Some(&head));
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
}

/// A host cannot merge what adds a file that is there, and says something else, by now.
#[test]
fn what_cannot_be_read_at_the_path_of_a_request_is_void_and_the_step_asked_for_on_top_of_it() {
    for is_asked in [true, false] {
        let (mut world, honest) = asked();
        let (path, before) = (honest.files.keys().next().unwrap().clone(), world.proposals.clone());
        if !is_asked {
            world = World::new(CANARY, "1");
            world.settle();
            world.want(CANARY, set("2"));
            while world.record().run.is_none() {
                assert!(world.tick(), "{:?}", world.log);
            }
        }
        world.files.push(DecisionFile {
            path: path.clone(),
            blob: "7".repeat(40).parse().unwrap(),
            by: "ana <ana@example.org>".to_owned(),
            brought: Some(commit("e")),
            merged: None,
            decision: Err("expected a mapping".to_owned()),
        });
        world.settle();
        let [void] = &world.spoiled()[..] else { panic!("{:?}", world.log) };
        assert_eq!(void.why, format!("{path} cannot be read as a decision"));
        assert_eq!(void.head.is_some(), is_asked);
        let run = world.record().run.unwrap();
        assert_eq!(
            (world.asks(), run.pulls.len(), run.denied),
            (1 + usize::from(is_asked), 1, false),
            "{:?}",
            world.log
        );
        assert!(world.proposals != before || !is_asked);
        assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"]);
        let commits = world.log.len();
        world.pass(3_600);
        assert_eq!(world.log.len(), commits, "once: {:?}", world.log);
        // Nor can a host merge what changes a file that is there no more.
        let asks = world.asks();
        world.files.retain(|file| file.path != path);
        world.settle();
        assert_eq!((world.spoiled().len(), world.asks()), (2, asks + 1), "{:?}", world.log);
        world.merge_the_request();
        assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
    }
}
