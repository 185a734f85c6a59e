//! Each attack on an approval, against the rules alone.

use super::*;
use crate::manifest::proof::By;
use crate::record::fixture::{commit, time};

const PATH: &str = "shop/podinfo/7-07070707-tenth.yaml";

fn user(id: u64) -> User {
    let login = match id {
        1 => "Ana",
        2 => "ben",
        42 => "bot",
        _ => "stranger",
    };
    User { id, login: login.to_owned() }
}

fn ana() -> User {
    user(1)
}

fn ben() -> User {
    user(2)
}

fn blob(digit: u8) -> BlobId {
    format!("{digit:02x}").repeat(20).parse().unwrap()
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn rule() -> ApprovalRule {
    ApprovalRule {
        approvers: ["ana", "ben"].map(str::to_owned).into(),
        approvals: 1,
        trust: Trust::Reviews,
        by: By::Reviews,
    }
}

fn judged(rule: &ApprovalRule, evidence: &ProofEvidence) -> Result<Vec<Approved>, BTreeSet<Flaw>> {
    let (path, blob) = (path(PATH), blob(1));
    let wanted = Required { base: "tidegate/prod/decisions", file: (&path, &blob), since: time("09:00:00"), rule };
    prove(&wanted, evidence)
}

fn review(id: u64, by: User, says: Says) -> Review {
    Review { id, by, says, commit: commit(0x78), at: time("09:30:00") }
}

fn person(permission: Permission) -> Account {
    Account { being: Being::Person, permission }
}

/// A request of ours that Ana has approved, about a version that somebody else has written.
fn merged() -> MergedPull {
    MergedPull {
        number: 3,
        base: "tidegate/prod/decisions".to_owned(),
        head: commit(0x78),
        author: user(42),
        by: Some((ben(), time("09:31:00"))),
        authors: [Author::Ourselves].into(),
        writers: [(Author::User(user(5)), commit(0xab))].into(),
        changes: [(path(PATH), Some(blob(1)))].into(),
        reviews: vec![review(1, ana(), Says::Approved)],
        accounts: [(ana(), person(Permission::Write)), (ben(), person(Permission::Admin))].into(),
        teams: BTreeMap::new(),
    }
}

fn proven(merged: MergedPull) -> Result<Vec<u64>, BTreeSet<Flaw>> {
    let approved = judged(&rule(), &ProofEvidence::Merged(Box::new(merged)))?;
    Ok(approved.into_iter().filter_map(|approved| approved.user).collect())
}

/// All that is wrong with a merge, of which a lack of approvals is not said again.
#[track_caller]
fn flaws(change: impl FnOnce(&mut MergedPull)) -> Vec<Flaw> {
    let mut merged = merged();
    change(&mut merged);
    let few = Flaw::TooFew { found: 0, needed: 1 };
    proven(merged).unwrap_err().into_iter().filter(|flaw| *flaw != few).collect()
}

#[test]
fn a_request_of_ours_that_another_has_approved_is_proven() {
    let approved = judged(&rule(), &ProofEvidence::Merged(Box::new(merged()))).unwrap();
    let by_ana = Approved {
        user: Some(1),
        login: "Ana".to_owned(),
        review: Some(1),
        team: None,
        key: None,
        at: time("09:30:00"),
    };
    assert_eq!(approved, [by_ana], "names have no case");
    let mut nobody = merged();
    nobody.reviews.clear();
    assert_eq!(proven(nobody.clone()), Err([Flaw::TooFew { found: 0, needed: 1 }].into()), "merging is no review");
    let none = ApprovalRule { approvals: 0, ..rule() };
    assert!(judged(&none, &ProofEvidence::Merged(Box::new(nobody))).is_err(), "one at least");
}

#[test]
fn who_merged_counts_where_the_policy_says_so() {
    let merging = ApprovalRule { trust: Trust::Merges, ..rule() };
    let by = |change: fn(&mut MergedPull)| {
        let mut merged = merged();
        merged.reviews.clear();
        change(&mut merged);
        judged(&merging, &ProofEvidence::Merged(Box::new(merged)))
    };
    let by_ben =
        Approved { user: Some(2), login: "ben".to_owned(), review: None, team: None, key: None, at: time("09:31:00") };
    assert_eq!(by(|_| {}), Ok(vec![by_ben]));
    assert!(by(|m| m.by = None).is_err());
    assert!(by(|m| m.by = Some((user(3), time("09:31:00")))).is_err(), "a stranger");
    let bot = by(|m| {
        let machine = Account { being: Being::Machine, permission: Permission::Admin };
        m.accounts.insert(ben(), machine);
    });
    let bot = bot.unwrap_err();
    assert!(bot.contains(&Flaw::Machine(ben())), "listed or not: {bot:?}");
    let wrote = by(|m| drop(m.writers.insert(Author::User(ben()), commit(0xac)))).unwrap_err();
    assert!(wrote.contains(&Flaw::Wrote(ben(), commit(0xac))), "{wrote:?}");
    let two = ApprovalRule { approvals: 2, ..merging.clone() };
    assert_eq!(judged(&two, &ProofEvidence::Merged(Box::new(merged()))).map(|by| by.len()), Ok(2), "one of each");
    let mut own = merged();
    own.by = Some((ana(), time("09:31:00")));
    let few = judged(&two, &ProofEvidence::Merged(Box::new(own))).unwrap_err();
    assert_eq!(few, [Flaw::TooFew { found: 1, needed: 2 }].into(), "one person is one");
}

#[test]
fn attack_74_nobody_approves_what_they_had_a_hand_in() {
    assert_eq!(flaws(|m| m.author = ana()), [Flaw::Own(ana())]);
    assert_eq!(flaws(|m| m.authors = [Author::User(ana())].into()), [Flaw::Own(ana())]);
    assert_eq!(flaws(|m| drop(m.writers.insert(Author::User(ana()), commit(1)))), [Flaw::Wrote(ana(), commit(1))]);
    // Whose commit it is may be hidden behind an address that no account has.
    let eve = || "eve@example.org".to_owned();
    assert_eq!(flaws(|m| m.authors = [Author::Unknown(eve())].into()), [Flaw::UnknownAuthor(eve())]);
    let hidden = flaws(|m| drop(m.writers.insert(Author::Unknown(eve()), commit(1))));
    assert_eq!(hidden, [Flaw::UnknownWriter(eve(), commit(1))]);
    assert_eq!(flaws(|m| m.authors.clear()), [Flaw::UnknownAuthor("nobody".to_owned())]);
}

#[test]
fn attack_75_76_a_review_counts_for_the_commit_that_was_merged() {
    let other = |reviewed, merged| [Flaw::OtherCommit(ana(), commit(reviewed), commit(merged))];
    assert_eq!(flaws(|m| m.reviews[0].commit = commit(0x79)), other(0x79, 0x78));
    assert_eq!(flaws(|m| m.head = commit(0x79)), other(0x78, 0x79));
}

#[test]
fn attack_77_81_83_the_base_gets_exactly_the_one_file() {
    let other = path("shop/podinfo/7-07070707-half.yaml");
    for change in [Some(blob(1)), None] {
        assert_eq!(flaws(|m| drop(m.changes.insert(other.clone(), change))), [Flaw::OtherChange(other.clone())]);
    }
    let policy = path("tidegate.yaml");
    assert_eq!(flaws(|m| drop(m.changes.insert(policy.clone(), Some(blob(3))))), [Flaw::OtherChange(policy)]);
    for change in [Some(blob(2)), None] {
        assert_eq!(flaws(|m| drop(m.changes.insert(path(PATH), change))), [Flaw::OtherChange(path(PATH))]);
    }
    let below = |text: &str| path(&format!("{PATH}/{text}"));
    let mut gave_way = merged();
    gave_way.changes.insert(below("x"), None);
    assert!(proven(gave_way).is_ok(), "a directory lay there");
    assert_eq!(flaws(|m| drop(m.changes.insert(below("x"), Some(blob(3))))), [Flaw::OtherChange(below("x"))]);
    assert_eq!(flaws(|m| m.changes.clear()), [Flaw::OtherChange(path(PATH))]);
    assert_eq!(flaws(|m| m.base = "main".to_owned()), [Flaw::OtherBase("main".to_owned())]);
}

#[test]
fn attack_78_no_machine_approves() {
    let machine = Account { being: Being::Machine, permission: Permission::Admin };
    assert_eq!(flaws(|m| m.accounts = [(ana(), machine)].into()), [Flaw::Machine(ana())]);
}

#[test]
fn attack_79_80_who_may_not_write_now_does_not_approve() {
    for permission in [Permission::None, Permission::Read] {
        assert_eq!(flaws(|m| m.accounts = [(ana(), person(permission))].into()), [Flaw::NotAllowed(ana())]);
    }
    assert_eq!(flaws(|m| m.accounts.clear()), [Flaw::NotAllowed(ana())]);
    let unlisted = flaws(|m| {
        m.accounts.insert(user(3), person(Permission::Admin));
        m.reviews[0].by = user(3);
    });
    assert_eq!(unlisted, [Flaw::NotListed(user(3), BTreeSet::new())]);
    let nobody = ApprovalRule { approvers: BTreeSet::new(), ..rule() };
    assert!(judged(&nobody, &ProofEvidence::Merged(Box::new(merged()))).is_err(), "no approvers are none, not all");
}

#[test]
fn attack_78_a_login_that_somebody_else_took_is_nobody() {
    let by_number = ApprovalRule { approvers: ["id:1".to_owned()].into(), ..rule() };
    let by = |who: User| {
        let (reviews, accounts) =
            (vec![review(1, who.clone(), Says::Approved)], [(who, person(Permission::Admin))].into());
        judged(&by_number, &ProofEvidence::Merged(Box::new(MergedPull { reviews, accounts, ..merged() })))
    };
    let renamed = User { id: 1, login: "ana-2".to_owned() };
    for who in [ana(), renamed] {
        let approved = by(who.clone()).unwrap();
        assert_eq!((approved[0].user, &approved[0].login, &approved[0].team), (Some(1), &who.login, &None));
    }
    for id in [11, 8] {
        let taken = User { id, login: "Ana".to_owned() };
        assert!(by(taken.clone()).unwrap_err().contains(&Flaw::NotListed(taken, BTreeSet::new())), "{id}");
    }
}

/// A rule that names Ana, and a team.
fn of_team(approvals: u32, trust: Trust) -> ApprovalRule {
    ApprovalRule {
        approvers: ["ana", "@acme/shop", "@acme/ops"].map(str::to_owned).into(),
        approvals,
        trust,
        by: By::Reviews,
    }
}

#[test]
fn x_2_attack_78_80_who_is_in_a_team_of_the_policy_approves_as_one_person() {
    let (shop, ops): (Team, Team) = ("@acme/shop".parse().unwrap(), "@acme/ops".parse().unwrap());
    let rule = of_team(1, Trust::Reviews);
    let by_ben = |teams: BTreeMap<User, Team>| {
        let reviews = vec![review(1, ben(), Says::Approved)];
        judged(&rule, &ProofEvidence::Merged(Box::new(MergedPull { reviews, teams, ..merged() })))
    };
    let [found] = &*by_ben([(ben(), shop.clone())].into()).unwrap() else { panic!("one") };
    assert_eq!((found.user, found.team.as_deref(), found.review), (Some(2), Some("@acme/shop"), Some(1)));
    let gone = by_ben(BTreeMap::new()).unwrap_err();
    assert!(gone.contains(&Flaw::NotListed(ben(), [ops.clone(), shop.clone()].into())), "{gone:?}");
    assert_eq!(
        said(&gone),
        "ben is none of the policy's approvers, and not in @acme/ops or @acme/shop; approved by 0, needed are 1"
    );
    let foreign = by_ben([(ben(), "@evil/shop".parse().unwrap())].into());
    assert_eq!(foreign, Err(gone), "only of a team that the rule names");

    // Whom it names is nobody's member, and who says it twice is one.
    let mut both = merged();
    both.teams = [(ana(), shop.clone()), (ben(), ops)].into();
    let two = |merged: &MergedPull, trust| judged(&of_team(2, trust), &ProofEvidence::Merged(Box::new(merged.clone())));
    assert_eq!(two(&both, Trust::Reviews), Err([Flaw::TooFew { found: 1, needed: 2 }].into()), "teams are no persons");
    let by: Vec<_> = two(&both, Trust::Merges).unwrap().into_iter().map(|by| (by.login, by.team)).collect();
    assert_eq!(by, [("Ana".to_owned(), None), ("ben".to_owned(), Some("@acme/ops".to_owned()))]);
}

#[test]
fn attack_74_79_84_a_team_lets_nobody_in_who_may_not_or_has_made_it() {
    let shop: Team = "@acme/shop".parse().unwrap();
    let flaws = |change: fn(&mut MergedPull)| {
        let mut merged = merged();
        merged.reviews = vec![review(1, ben(), Says::Approved)];
        merged.teams = [(ben(), shop.clone())].into();
        change(&mut merged);
        let mut flaws = judged(&of_team(1, Trust::Reviews), &ProofEvidence::Merged(Box::new(merged))).unwrap_err();
        flaws.remove(&Flaw::TooFew { found: 0, needed: 1 });
        flaws.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(flaws(|m| m.author = ben()), [Flaw::Own(ben())]);
    assert_eq!(flaws(|m| drop(m.writers.insert(Author::User(ben()), commit(1)))), [Flaw::Wrote(ben(), commit(1))]);
    let reader = |m: &mut MergedPull| {
        m.accounts.insert(ben(), person(Permission::Read));
    };
    assert_eq!(flaws(reader), [Flaw::NotAllowed(ben())]);
    let machine = |m: &mut MergedPull| {
        m.accounts.insert(ben(), Account { being: Being::Machine, permission: Permission::Admin });
    };
    assert_eq!(flaws(machine), [Flaw::Machine(ben())]);
    // A no of somebody in the team holds it up.
    assert_eq!(flaws(|m| m.reviews.insert(0, review(2, ben(), Says::ChangesRequested))), [Flaw::Rejected(ben())]);
}

#[test]
fn attack_82_85_what_was_pushed_or_is_not_known_is_no_proof() {
    assert_eq!(judged(&rule(), &ProofEvidence::Pushed), Err([Flaw::Pushed].into()));
    let why = "page 2 of the reviews: status 500".to_owned();
    for told in [ProofEvidence::Incomplete(why.clone()), ProofEvidence::Unseen(why.clone())] {
        assert_eq!(judged(&rule(), &told), Err([Flaw::Incomplete(why.clone())].into()));
    }
}

#[test]
fn attack_84_only_what_a_review_says_counts_and_the_last_one_of_each() {
    let many = |reviews: Vec<Review>| proven(MergedPull { reviews, ..merged() });
    let few = || Flaw::TooFew { found: 0, needed: 1 };
    assert_eq!(many(vec![review(1, ana(), Says::Nothing)]), Err([few()].into()));
    let (yes, no) = (review(1, ana(), Says::Approved), review(2, ana(), Says::ChangesRequested));
    let rejected = || Err([Flaw::Rejected(ana()), few()].into());
    assert_eq!(many(vec![yes.clone(), no.clone()]), rejected());
    assert_eq!(many(vec![no, yes.clone()]), rejected(), "in whatever order they come");
    let comment = review(3, ana(), Says::Nothing);
    assert_eq!(many(vec![yes.clone(), comment]), Ok(vec![1]));
    let withdrawn = review(2, ana(), Says::Withdrawn);
    assert_eq!(many(vec![yes.clone(), withdrawn]), Err([few()].into()), "an older word does not come back");
    let twice = MergedPull { reviews: vec![yes.clone(), review(4, ana(), Says::Approved)], ..merged() };
    let two = ApprovalRule { approvals: 2, ..rule() };
    let one = judged(&two, &ProofEvidence::Merged(Box::new(twice)));
    assert_eq!(one, Err([Flaw::TooFew { found: 1, needed: 2 }].into()), "one person is one");
    let ben_says_no = review(2, ben(), Says::ChangesRequested);
    assert_eq!(many(vec![yes.clone(), ben_says_no.clone()]), Err([Flaw::Rejected(ben())].into()));
    let before = Review { commit: commit(0x79), ..ben_says_no.clone() };
    assert_eq!(many(vec![yes.clone(), before]), Err([Flaw::Rejected(ben())].into()));
    // Who may not approve does not stop it either. A name that looks like another is another number.
    assert_eq!(many(vec![yes, Review { by: user(3), ..ben_says_no }]), Ok(vec![1]));
}

#[test]
fn attack_86_nothing_is_approved_in_advance() {
    assert_eq!(flaws(|m| m.reviews[0].at = time("08:59:59")), [Flaw::Early(ana())]);
}

#[test]
fn people_are_told_what_is_wrong() {
    let all = [
        Flaw::Wrote(ben(), commit(0xab)),
        Flaw::OtherCommit(ana(), commit(0x78), commit(0x79)),
        Flaw::UnknownWriter("eve@example.org".to_owned(), commit(0xab)),
        Flaw::TooFew { found: 0, needed: 1 },
    ];
    insta::assert_snapshot!(said(&all.into()), @"no account on the Git host has the address of eve@example.org, who made commit abababab of this version; ben made commit abababab of this version: an approver must be someone else; Ana reviewed 78787878, merged was 79797979; approved by 0, needed are 1");
}
