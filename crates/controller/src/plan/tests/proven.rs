//! Decisions that a Git host's reviews have to prove.

use super::super::evidence::ReviewQuery;
use super::super::input::Desired;
use super::manifests::{CANARY, QUICK, set};
use super::world::World;
use crate::gate::proof::{Author, MergedPull, ProofEvidence, Signed, Signer};
use crate::manifest::decision::DecisionAction;
use crate::manifest::ids::CommitId;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::people::review::{Review, Says};
use crate::people::user::{Account, Being, Permission, User};
use crate::record::state::{Consumed, Time};

mod at_once;
mod authors;
mod late;

/// What a Git host tells of each merged pull request.
#[derive(Debug, Clone)]
pub(super) struct Reviewed {
    /// Who approved.
    pub(super) by: Vec<&'static str>,
    /// What they may do now.
    permission: Permission,
    /// Who made a commit of the version.
    writer: &'static str,
    /// By which teams they are approvers.
    teams: Vec<(&'static str, &'static str)>,
    /// Why it tells nothing.
    pub(super) away: Option<&'static str>,
    /// Why it does not tell who is in a team.
    unseen: Option<&'static str>,
    /// Whether a pull request was merged at all.
    pub(super) pushed: bool,
}

impl Default for Reviewed {
    fn default() -> Self {
        Self {
            by: Vec::new(),
            permission: Permission::Write,
            writer: "ben",
            teams: Vec::new(),
            away: None,
            unseen: None,
            pushed: false,
        }
    }
}

fn user(login: &str) -> User {
    User { id: login.bytes().map(u64::from).sum(), login: login.to_owned() }
}

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

impl Reviewed {
    pub(super) fn tell(&self, review_query: &ReviewQuery) -> ProofEvidence {
        if let Some(why) = self.away {
            return ProofEvidence::Incomplete(why.to_owned());
        }
        if let Some(why) = self.unseen {
            return ProofEvidence::Unseen(why.to_owned());
        }
        if self.pushed {
            return ProofEvidence::Pushed;
        }
        if review_query.asked.rule.by == By::Signatures {
            return self.signed(review_query);
        }
        assert!(review_query.version.is_some(), "whoever made the version is looked for: {review_query:?}");
        let at: Time = "2026-03-02T10:00:00Z".parse().unwrap();
        let review = |(n, login): (usize, &&str)| Review {
            id: n as u64 + 1,
            by: user(login),
            says: Says::Approved,
            commit: commit("d"),
            at,
        };
        let account = |login: &&str| (user(login), Account { being: Being::Person, permission: self.permission });
        ProofEvidence::Merged(Box::new(MergedPull {
            number: 3,
            base: "tidegate/prod/decisions".to_owned(),
            head: commit("d"),
            author: user("bot"),
            by: None,
            authors: [Author::Ourselves].into(),
            writers: [(Author::User(user(self.writer)), commit("a"))].into(),
            changes: [(review_query.asked.path.clone(), Some(review_query.asked.blob.clone()))].into(),
            reviews: self.by.iter().enumerate().map(review).collect(),
            accounts: self.by.iter().map(account).collect(),
            teams: self.teams.iter().map(|(login, team)| (user(login), team.parse().unwrap())).collect(),
        }))
    }
}

impl Reviewed {
    /// Whoever approved has signed.
    fn signed(&self, review_query: &ReviewQuery) -> ProofEvidence {
        let address = |who: &str| format!("{who}@example.org");
        let at: Time = "2026-03-02T10:00:00Z".parse().unwrap();
        let signer = |who: &&str| Signer { names: [address(who)].into(), key: "SHA256:x".to_owned(), at };
        ProofEvidence::Signed(Box::new(Signed {
            by: self
                .by
                .first()
                .map(signer)
                .ok_or_else(|| "commit dddd is not signed; /signers lists who may".to_owned()),
            changes: [(review_query.asked.path.clone(), Some(review_query.asked.blob.clone()))].into(),
            writers: [(address(self.writer), commit("a"))].into(),
            sealers: [].into(),
        }))
    }
}

fn rule() -> ApprovalRule {
    ApprovalRule {
        approvers: ["ana", "ben", "eve"].map(str::to_owned).into(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    }
}

/// A run that waits before `tenth` for a decision that Ana, Ben or Eve has to give.
fn asked() -> World {
    asked_of(rule())
}

fn asked_of(rule: ApprovalRule) -> World {
    let mut world = World::new(CANARY, "1");
    world.policy.proof = Some(rule);
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    world
}

fn words(world: &World) -> &[Consumed] {
    &world.record.as_ref().unwrap().consumed
}

fn said(world: &World, reason: &str) -> String {
    let plan = world.plan_now();
    plan.waits.into_iter().find(|wait| wait.reason.as_str() == reason).map(|wait| wait.message).unwrap_or_default()
}

#[test]
fn x_2_a_word_that_reviews_prove_counts_with_its_proof() {
    let mut world = asked();
    world.host.by = vec!["ana"];
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
    let [word] = words(&world) else { panic!() };
    let proven = word.proven.as_ref().unwrap();
    assert_eq!((word.proof.as_str(), word.by.as_str(), proven.pull), ("review", "ana", Some(3)));
    assert_eq!((proven.by[0].review, proven.head.as_str()), (Some(1), commit("d").as_str()));
}

#[test]
fn attack_74_79_a_word_without_proof_is_void_once_and_the_step_is_asked_anew() {
    let mut world = asked();
    let before = world.proposals.clone();
    world.host.by = vec!["ben"];
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ApprovalUnproven"]));
    assert_eq!(
        said(&world, "ApprovalUnproven"),
        "the last word for tenth does not count: ben made commit aaaaaaaa of this version: an approver must be someone \
         else; approved by 0, needed are 1"
    );
    let [word] = words(&world) else { panic!() };
    assert!(word.proven.is_none() && word.void.as_ref().unwrap().head.as_ref() == before.values().next(), "{word:?}");
    assert_ne!(world.proposals, before, "asked anew: {:?}", world.log);
    let log = world.log.len();
    world.pass(86_400);
    assert_eq!(world.log.len(), log, "nothing happens by itself: {:?}", world.log);
    world.host.by = vec!["ben", "ana"];
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
    assert_eq!(words(&world).len(), 2);
}

#[test]
fn attack_82_what_was_pushed_does_not_count_and_no_is_a_no_from_everybody() {
    let mut world = asked();
    world.host.pushed = true;
    world.approve("tenth");
    assert!(said(&world, "ApprovalUnproven").contains("it was pushed to the branch"), "{:?}", world.waits());
    world.say(DecisionAction::Hold);
    world.settle();
    assert!(world.waits().contains(&"Held"), "{:?}", world.waits());
    world.say(DecisionAction::Resume);
    world.settle();
    assert!(world.waits().contains(&"Held"), "who may only push cannot lift it: {:?}", world.waits());
    world.host = Reviewed { by: vec!["ana"], ..Reviewed::default() };
    world.say(DecisionAction::Resume);
    world.settle();
    assert!(!world.waits().contains(&"Held"), "{:?}", world.waits());
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn attack_85_x_6_a_host_that_is_away_keeps_the_gate_closed_and_denies_nothing() {
    let mut world = asked();
    world.host =
        Reviewed { by: vec!["ana"], away: Some("GET reviews: the Git host is away: status 502"), ..world.host };
    world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
    // Hosts may delete a branch that was merged.
    world.proposals.clear();
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ProofUnavailable"]));
    assert!(said(&world, "ProofUnavailable").contains("status 502"));
    world.pass(20);
    assert_eq!(words(&world), []);
    world.host.away = None;
    world.pass(20);
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn attack_80_what_was_approved_is_looked_at_again_before_the_step_is_entered() {
    let ways: [fn(&mut World); 2] = [
        |world| world.host.permission = Permission::Read,
        |world| world.policy.proof.as_mut().unwrap().approvers = ["ben".to_owned(), "eve".to_owned()].into(),
    ];
    for loses in ways {
        let mut world = asked();
        world.host.by = vec!["ana"];
        world.approve("promotion");
        assert_eq!(world.phase(), "Progressing(tenth)");
        loses(&mut world);
        for _ in 0..4 {
            world.pass(330);
        }
        assert_eq!(world.phase(), "WaitingPromotion(half)", "phases without a gate go on: {:?}", world.log);
        assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"], "{:#?}", world.plan_now().waits);
        // Approved anew by somebody who may.
        world.host = Reviewed { by: vec!["eve"], ..Reviewed::default() };
        world.approve("promotion");
        for _ in 0..4 {
            world.pass(60);
        }
        assert_eq!(world.phase(), "Steady");
    }
}

#[test]
fn x_2_attack_80_who_is_in_a_team_is_asked_when_the_word_counts_and_when_the_step_is_entered() {
    let mut world = asked_of(ApprovalRule { approvers: ["ana", "@acme/shop"].map(str::to_owned).into(), ..rule() });
    world.host = Reviewed { by: vec!["eve"], ..Reviewed::default() };
    world.approve("tenth");
    let refused = "eve is none of the policy's approvers, and not in @acme/shop; approved by 0, needed are 1";
    assert!(said(&world, "ApprovalUnproven").contains(refused), "{:#?}", world.plan_now().waits);

    world.host.teams = vec![("eve", "@acme/shop")];
    world.approve("promotion");
    assert_eq!(world.phase(), "Progressing(tenth)");
    let word = words(&world).last().unwrap();
    let by = &word.proven.as_ref().unwrap().by[0];
    assert_eq!((by.user, by.login.as_str(), by.team.as_deref()), (Some(user("eve").id), "eve", Some("@acme/shop")));

    // She is taken off the team before the run is asked for the promotion.
    world.host.teams.clear();
    for _ in 0..4 {
        world.pass(330);
    }
    assert_eq!(world.phase(), "WaitingPromotion(half)", "phases without a gate go on: {:?}", world.log);
    assert!(said(&world, "ApprovalUnproven").contains(refused), "{:#?}", world.plan_now().waits);
    // What cannot be looked up is no no.
    world.host = Reviewed { by: vec!["eve"], away: Some("there is no team @acme/shop, or …"), ..Reviewed::default() };
    world.say(DecisionAction::Approve { through: "promotion".parse().unwrap() });
    world.settle();
    assert!(said(&world, "ProofUnavailable").contains("there is no team @acme/shop"), "{:?}", world.waits());
    world.host = Reviewed { by: vec!["eve"], teams: vec![("eve", "@acme/shop")], ..Reviewed::default() };
    for _ in 0..4 {
        world.pass(60);
    }
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn x_13_a_team_that_cannot_be_seen_is_asked_about_every_five_minutes_alone() {
    let mut world = asked_of(ApprovalRule { approvers: ["@acme/shop".to_owned()].into(), ..rule() });
    let why = "there is no team @acme/shop with access to this repository, or …";
    world.host.unseen = Some(why);
    world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
    world.settle();
    // From now on it can be seen.
    world.host = Reviewed { by: vec!["eve"], teams: vec![("eve", "@acme/shop")], ..Reviewed::default() };
    for _ in 0..4 {
        world.pass(70);
        assert!(said(&world, "ProofUnavailable").contains(why), "{:#?}", world.plan_now().waits);
    }
    assert_eq!((world.phase().as_str(), words(&world).len()), ("Waiting", 0));
    world.pass(20);
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn a_team_that_is_asked_for_anew_is_asked_about_anew() {
    let mut world =
        asked_of(ApprovalRule { approvers: ["ana", "eve", "@acme/shop"].map(str::to_owned).into(), ..rule() });
    world.host = Reviewed { by: vec!["eve"], ..Reviewed::default() };
    world.policy.proof.as_mut().unwrap().approvers.remove("eve");
    world.host.teams = vec![("eve", "@acme/shop")];
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
    let by = &words(&world)[0].proven.as_ref().unwrap().by[0];
    assert_eq!(by.team.as_deref(), Some("@acme/shop"), "by name she is an approver no longer");
}

#[test]
fn a_policy_that_loosens_is_for_later_runs_and_one_that_restricts_acts_at_once() {
    let mut world = asked();
    world.policy.proof = None;
    world.approve("tenth");
    assert_eq!(world.phase(), "Waiting", "the run keeps what it started with");

    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("promotion");
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.policy.proof = Some(rule());
    for _ in 0..4 {
        world.pass(330);
    }
    assert_eq!(
        (world.phase().as_str(), world.waits()),
        ("WaitingPromotion(half)", vec!["Approval", "ApprovalUnproven"])
    );
    assert!(said(&world, "ApprovalUnproven").contains("counted without a proof"));
}

fn signed_by(approvers: &[&str]) -> ApprovalRule {
    let approvers = approvers.iter().map(|name| format!("{name}@example.org")).collect();
    ApprovalRule { approvers, by: By::Signatures, ..rule() }
}

#[test]
fn x_2_attack_74_without_a_host_an_approver_who_did_not_make_the_version_has_to_sign() {
    let mut world = asked_of(signed_by(&["ana", "ben"]));
    let told = world.record.as_ref().unwrap().conditions[0].act.clone().unwrap();
    assert!(told.contains("signs the merge (git merge --no-ff -S), or: tidegate approve shop/podinfo"), "{told}");
    for (by, why) in [
        (None, "commit dddd is not signed; /signers lists who may"),
        (Some("eve"), "eve@example.org signed it, and is none of the policy's approvers"),
        (Some("ben"), "ben@example.org made commit aaaaaaaa of this version: an approver must be someone else"),
    ] {
        world.host.by = by.into_iter().collect();
        world.approve("tenth");
        assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"], "{by:?}");
        assert!(said(&world, "ApprovalUnproven").ends_with(why), "{}", said(&world, "ApprovalUnproven"));
    }
    world.host.by = vec!["ana"];
    world.approve("tenth");
    assert_eq!(world.phase(), "Progressing(tenth)");
    let word = words(&world).last().unwrap();
    let proven = word.proven.as_ref().unwrap();
    assert_eq!((word.proof.as_str(), word.by.as_str(), proven.pull), ("signature", "ana@example.org", None));
    assert_eq!((&proven.by[0].user, proven.by[0].key.as_deref()), (&None, Some("SHA256:x")));
}

#[test]
fn attack_80_a_signature_is_looked_at_again_before_the_step_is_entered() {
    let mut world = asked_of(signed_by(&["ana"]));
    world.host.by = vec!["ana"];
    world.approve("promotion");
    assert_eq!(world.phase(), "Progressing(tenth)");
    // The key is taken off the list.
    world.host.by.clear();
    for _ in 0..4 {
        world.pass(330);
    }
    assert_eq!(world.waits(), ["Approval", "ApprovalUnproven"], "{:#?}", world.plan_now().waits);
    assert_eq!(world.phase(), "WaitingPromotion(half)");
}

#[test]
fn x_2_nobody_has_to_sign_what_restricts_and_everybody_who_loosens() {
    let mut world = asked_of(signed_by(&["ana"]));
    world.say(DecisionAction::Hold);
    world.settle();
    world.say(DecisionAction::Resume);
    world.settle();
    assert!(world.waits().contains(&"Held"), "who has not signed cannot lift it: {:?}", world.waits());
    world.host.by = vec!["ana"];
    world.say(DecisionAction::Resume);
    world.settle();
    assert!(!world.waits().contains(&"Held"), "{:?}", world.waits());
    world.host.by.clear();
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn x_2_approvers_whom_nothing_can_prove_close_the_gate_and_are_never_passed_over() {
    let mut world = World::new(CANARY, "1");
    world.policy.proof = Some(ApprovalRule { by: By::Nothing, ..signed_by(&["ana"]) });
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval", "ProofUnavailable"]));
    assert!(said(&world, "ProofUnavailable").contains("(ana@example.org), and nothing can prove"));
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), words(&world).len()), ("Waiting", 0), "the word waits");
    // Operations set the list: what lies there is judged then.
    world.host.by = vec!["ana"];
    world.policy.proof = Some(signed_by(&["ana"]));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}
