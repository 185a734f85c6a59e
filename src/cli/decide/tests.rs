//! Decisions: when they make sense, what they are refused with, and how they come to the decisions branch.

use super::{Intent, Place, Verb, command, file, intent, person, unproven};
use crate::cli::args::{Format, RepositoryArgs, SshArgs};
use crate::cli::decide::{Ask, Asked, DecisionArgs};
use crate::cli::decisions;
use crate::cli::failure::Failure;
use crate::cli::fixture;
use crate::cli::repository::{Access, Repository};
use crate::cli::screen::Screen;
use crate::cli::tests as states;
use crate::cli::ui::Ink;
use crate::gate::decisions::{DecisionFile, EvaluationInput, evaluate};
use crate::git::Person;
use crate::manifest::decision::{self, Decision, DecisionAction, Through};
use crate::manifest::duration::Span;
use crate::manifest::files::{Entry, Files};
use crate::manifest::oid;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::record::state::{
    Consumed, DeletionAnswer, DeletionQuestion, DeletionVerdict, Governed, RolloutState, Route, Terms, Void,
};
use crate::record::store;
use crate::report::view::Record;
use std::collections::BTreeSet;
use std::fmt::Write;

fn ask(verb: Verb, record: &Record) -> Result<Intent, String> {
    intent(&verb, record, Some("because"), states::now())
}

fn approve(through: Option<&str>) -> Verb {
    Verb::Approve { through: through.map(ToOwned::to_owned) }
}

fn verbs() -> Vec<(&'static str, Verb)> {
    vec![
        ("approve", approve(None)),
        ("approve --through tenth", approve(Some("tenth"))),
        ("approve --through promotion", approve(Some("promotion"))),
        ("approve --through half", approve(Some("half"))),
        ("deny", Verb::Deny),
        ("skip", Verb::Skip { through: Through::Step }),
        ("hold", Verb::Hold),
        ("resume", Verb::Resume),
        ("abort", Verb::Abort),
        ("retry", Verb::Retry { run: None }),
        ("retry --run 3-03030303", Verb::Retry { run: Some(fixture::run(3)) }),
        ("rollback", Verb::Rollback { to: None }),
        ("rollback --to 6-06060606", Verb::Rollback { to: Some(fixture::run(6)) }),
        ("adopt", Verb::Adopt { live: None }),
        ("adopt --live 060606060606", Verb::Adopt { live: Some("060606060606".to_owned()) }),
        ("adopt --live 070707070707", Verb::Adopt { live: Some("070707070707".to_owned()) }),
        ("delete", Verb::Delete),
    ]
}

/// Of a plan whose promotion has no gate.
#[test]
fn through_promotion_is_all_gates_that_are_left() {
    let Record { state, plan } = states::waiting();
    let mut plan = plan.unwrap();
    plan.promotion.before.approval = None;
    let mut record = Record { state, plan: Some(plan) };
    let Ok(intent) = ask(approve(Some("promotion")), &record) else { panic!("refused") };
    assert_eq!(intent.decision.action, decision::DecisionAction::Approve { through: fixture::step("promotion") });
    let run = record.state.run.as_mut().unwrap();
    run.approved.push(fixture::step("promotion"));
    assert!(ask(approve(Some("promotion")), &record).is_err_and(|why| why.contains("no further approval")));
}

/// The name of a ramp is none: its phases are told.
#[test]
fn a_phase_that_is_not_there_is_answered_with_those_that_are() {
    let why = ask(approve(Some("ramp")), &states::waiting()).unwrap_err();
    assert!(why.starts_with("there is no phase \"ramp\", but testers, "), "{why}");
    assert!(why.contains("asks before: "), "{why}");
}

#[test]
fn a_no_can_be_said_to_a_step_that_was_approved_and_is_not_entered_yet() {
    let mut record = states::waiting();
    record.state.run.as_mut().unwrap().approved.push(fixture::step("promotion"));
    let Ok(Intent { decision, next }) = ask(Verb::Deny, &record) else { panic!("refused") };
    assert_eq!(decision.action, DecisionAction::Deny);
    assert!(next.contains("asks for nothing before tidegate resume"), "{next}");
    assert!(ask(Verb::Deny, &states::soaking()).is_err_and(|why| why.contains("waits for no approval now")));
}

fn denied_deletions() -> Record {
    let Record { mut state, plan } = states::too_many();
    state.metadata = "shop/kept".parse().unwrap();
    let DeletionQuestion { objects, successor, .. } = state.deletions.asked.take().unwrap();
    state.deletions.said.push(DeletionAnswer { objects, successor, said: DeletionVerdict::No });
    Record { state, plan }
}

fn records() -> Vec<Record> {
    let held = |denied: bool| {
        let Record { mut state, plan } = states::waiting();
        let run = state.run.as_mut().unwrap();
        (run.held, run.denied) = (!denied, denied);
        state.metadata = format!("shop/{}", if denied { "denied" } else { "held" }).parse().unwrap();
        Record { state, plan }
    };
    vec![
        states::steady(),
        states::soaking(),
        states::waiting(),
        states::promotion(),
        states::reverting(),
        states::finalising(),
        states::failed(),
        states::on_candidate(),
        states::blocked(),
        states::too_many(),
        denied_deletions(),
        held(false),
        held(true),
    ]
}

#[test]
fn every_word_in_every_state() {
    let mut out = String::new();
    for record in records() {
        let _ = writeln!(out, "== {} ==", record.state.metadata);
        for (name, verb) in verbs() {
            let _ = match ask(verb, &record) {
                Ok(Intent { decision, next }) => {
                    writeln!(out, "{name}: {} about {}\n{next}\n", decision.action.word(), decision.run)
                }
                Err(why) => writeln!(out, "{name}: no: {why}\n"),
            };
        }
    }
    insta::assert_snapshot!(out);
}

fn skip() -> DecisionAction {
    DecisionAction::Skip { step: "tenth".parse().unwrap(), through: crate::manifest::decision::Through::Step }
}

#[test]
fn what_a_run_takes_from_pull_requests_alone_is_not_pushed() {
    let Record { mut state, .. } = states::waiting();
    let approve = DecisionAction::Approve { through: "tenth".parse().unwrap() };
    assert_eq!(unproven(&state, &approve), None);
    let approvers = ["ana", "ben"].map(str::to_owned).into();
    state.run.as_mut().unwrap().rule =
        Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Reviews });
    let told = |action| unproven(&state, &action).unwrap_or_default();
    insta::assert_snapshot!(told(approve), @"run 7-07070707 takes this word from a pull request alone that 1 of ana, ben approved; what is pushed does not count. Approve and merge the pull request that tidegate has opened.");
    insta::assert_snapshot!(told(skip()), @"run 7-07070707 takes this word from a pull request alone that 1 of ana, ben approved; what is pushed does not count. Bring the file of --dry-run to the decisions branch by a pull request.");
    assert_eq!(told(DecisionAction::Abort), "", "no is a no from everybody");
    let Record { state: mut rest, .. } = states::too_many();
    let objects = rest.deletions.asked.clone().unwrap().objects;
    let delete = DecisionAction::Delete { objects, successor: None };
    assert_eq!(unproven(&rest, &delete), None);
    let said = Terms { rule: state.run.as_ref().unwrap().rule.clone(), ..Terms::default() };
    rest.policy = Some(Governed { wanted: fixture::set(6), said, holds: None });
    insta::assert_snapshot!(unproven(&rest, &delete).unwrap_or_default());
    let by = |by| unproven(&ruled(by), &skip()).unwrap_or_default();
    assert_eq!(by(By::Signatures), "", "it is signed and pushed");
    insta::assert_snapshot!(by(By::Nothing), @"run 7-07070707 takes this word from ana, ben alone, and the installation names neither a Git host with reviews nor a list of allowed signers, so that nothing can prove it");
    // The installation has named a list since the run began.
    let mut state = ruled(By::Nothing);
    let said = Terms { rule: ruled(By::Signatures).run.unwrap().rule, ..Terms::default() };
    state.policy = Some(Governed { wanted: fixture::set(7), said, holds: None });
    assert_eq!(unproven(&state, &skip()), None);
}

#[test]
fn a_run_that_goes_back_already_is_turned_round_by_its_own_name_alone() {
    let mut record = states::soaking();
    let open = record.state.run.as_mut().unwrap();
    open.route = Route::Rollback;
    let id = open.id.clone();
    let why = ask(Verb::Rollback { to: None }, &record).unwrap_err();
    assert!(why.contains("is a rollback") && why.ends_with("tidegate abort shop/soaking"), "{why}");
    let intent = ask(Verb::Rollback { to: Some(id.clone()) }, &record).unwrap();
    assert_eq!((intent.decision.run, intent.decision.action), (id, DecisionAction::Rollback));
    let served = ask(Verb::Rollback { to: Some(fixture::run(6)) }, &record);
    assert!(served.is_err_and(|why| why.contains("cannot be gone back to")), "the version that is left");
}

/// A run that waits for a decision of Ana's or Ben's.
fn ruled(by: By) -> RolloutState {
    let Record { mut state, .. } = states::waiting();
    let approvers = ["ana", "ben"].map(str::to_owned).into();
    state.run.as_mut().unwrap().rule = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by });
    state
}

#[test]
fn an_approval_that_was_void_is_said_again_in_other_words() {
    let intent = ask(approve(None), &states::waiting()).unwrap();
    let (path, text) = file(&intent.decision, &Files::new(), &[]).unwrap();
    let entry = |text: &str| Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().into() };
    let word = |text: &str| Consumed {
        path: path.clone(),
        blob: oid::blob(text.as_bytes()),
        void: Some(Void { why: "it is not signed".to_owned(), through: None, head: None }),
        ..fixture::open().consumed.remove(0)
    };
    let there = |text: &str| Files::from([(path.clone(), entry(text))]);
    let (same, second) = file(&intent.decision, &there(&text), &[word(&text)]).unwrap();
    assert!(same == path && second != text && second.contains("again (1): because"), "{second}");
    let (_, third) = file(&intent.decision, &there(&second), &[word(&text), word(&second)]).unwrap();
    assert!(third.contains("again (2): because"), "{third}");
    // What was not looked at yet is not said twice, and what counted neither.
    file(&intent.decision, &there(&second), &[word(&text)]).unwrap_err();
    file(&intent.decision, &there(&text), &[Consumed { void: None, ..word(&text) }]).unwrap_err();
    let long = Decision { reason: Some("x".repeat(decision::MAX_REASON)), ..intent.decision };
    let (_, said) = file(&long, &Files::new(), &[]).unwrap();
    assert!(file(&long, &there(&said), &[word(&said)]).unwrap().1.contains("again (1): xx"));
}

/// Whatever a decision is accepted for here, the controller counts.
#[test]
fn what_is_accepted_is_heard() {
    for record in records() {
        for (name, verb) in verbs() {
            let Ok(Intent { decision, .. }) = ask(verb, &record) else { continue };
            let (path, text) = decision::print(&decision, None);
            let file = DecisionFile {
                blob: oid::blob(text.as_bytes()),
                by: "Ana".to_owned(),
                brought: None,
                merged: None,
                decision: Ok(decision::parse(&path, text.as_bytes()).unwrap()),
                path,
            };
            let evaluation = evaluate(&EvaluationInput {
                record: &record.state,
                plan: record.plan.as_ref(),
                files: &[file],
                at_start: Some(&BTreeSet::new()),
                rollback_window: Span::from_secs(u64::MAX),
                verifier: None,
                now: states::now(),
            });
            assert_eq!(evaluation.ignored, [], "{name} of {}", record.state.metadata);
            assert_eq!(evaluation.accepted.len(), 1);
        }
    }
}

#[test]
fn a_word_said_again_gets_a_number_and_an_approval_none() {
    let hold = ask(Verb::Hold, &states::soaking()).unwrap().decision;
    let entry = || Entry::File { blob: oid::blob(b""), bytes: [].as_slice().into() };
    let mut files = Files::new();
    for expected in ["7-07070707-hold.yaml", "7-07070707-hold-2.yaml", "7-07070707-hold-3.yaml"] {
        let (path, _) = file(&hold, &files, &[]).unwrap();
        assert_eq!(path.file_name(), expected);
        files.insert(path, entry());
    }
    // One that the record has looked at is not looked at again, whether or not it lies there.
    let (path, text) = file(&hold, &Files::new(), &[]).unwrap();
    let blob = oid::blob(text.as_bytes());
    let there = Files::from([(path.clone(), Entry::File { blob: blob.clone(), bytes: text.as_bytes().into() })]);
    assert!(file(&hold, &there, &[]).unwrap_err().contains("tidegate counts it at its next look"));
    let word = Consumed { path, blob, ..fixture::open().consumed.remove(0) };
    assert_eq!(file(&hold, &Files::new(), &[word]).unwrap().0.file_name(), "7-07070707-hold-2.yaml");
    let approve = ask(approve(None), &states::waiting()).unwrap().decision;
    let (path, _) = file(&approve, &files, &[]).unwrap();
    files.insert(path, entry());
    insta::assert_snapshot!(file(&approve, &files, &[]).unwrap_err());
}

#[test]
fn people_are_named_as_git_names_them() {
    let ana = Person { name: "Ana B".to_owned(), email: "ana@example.org".to_owned() };
    assert_eq!(person("Ana B <ana@example.org>"), Ok(ana));
    for bad in ["Ana", "<a@b>", "Ana <>", "Ana <a@b> x", "An\na <a@b>", "A <b<c>"] {
        assert!(person(bad).is_err(), "{bad:?}");
    }
}

/// A repository with the records of [`records`], and nobody's settings.
struct Origin {
    dir: tempfile::TempDir,
}

impl Origin {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(dir.path()).unwrap();
        let mut index = git2::Index::new().unwrap();
        let mut add = |path: &str, text: String| {
            let id = repository.blob(text.as_bytes()).unwrap();
            let entry = git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add(&entry).unwrap();
        };
        for mut record in records() {
            // No decision was there when the run started.
            record.state.run.iter_mut().for_each(|run| run.decisions_at = None);
            let paths = store::paths(&record.state.metadata);
            add(paths.state.as_str(), store::print_state(&record.state));
            if let (Some(run), Some(plan)) = (&record.state.run, &record.plan) {
                add(paths.plan(&run.id).as_str(), store::print_plan(plan));
            }
        }
        let tree = repository.find_tree(index.write_tree_to(&repository).unwrap()).unwrap();
        let who = git2::Signature::new("tidegate", "t@example.org", &git2::Time::new(0, 0)).unwrap();
        repository.commit(Some("refs/heads/tidegate/prod/state"), &who, &who, "state", &tree, &[]).unwrap();
        drop(tree);
        Self { dir }
    }

    fn repository(&self) -> git2::Repository {
        git2::Repository::open_bare(self.dir.path()).unwrap()
    }

    fn args(&self) -> RepositoryArgs {
        RepositoryArgs {
            repo: Some(self.dir.path().to_str().unwrap().to_owned()),
            remote: "origin".to_owned(),
            instance: None,
            credentials_file: None,
            app_of: None,
            ca_file: None,
            ssh: SshArgs::default(),
        }
    }

    fn word(&self, rollout: &str) -> DecisionArgs {
        DecisionArgs {
            rollout: rollout.to_owned(),
            reason: Some("errors flat".to_owned()),
            author: Some(Person { name: "Ana".to_owned(), email: "ana@example.org".to_owned() }),
            dry_run: false,
            repository: self.args(),
        }
    }

    async fn decide(&self, verb: Verb, common: DecisionArgs) -> Result<(), Failure> {
        let screen = Screen { ink: Ink::Plain, format: Format::Table };
        command(Asked { verb, args: common, ask: Ask::No }, &screen).await.map(drop)
    }

    /// The files of the decisions branch, and its commits' messages, newest first.
    fn decisions(&self) -> (Vec<String>, Vec<String>) {
        let repository = self.repository();
        let Ok(tip) = repository.refname_to_id("refs/heads/tidegate/prod/decisions") else { return Default::default() };
        let mut files = Vec::new();
        let tree = repository.find_commit(tip).unwrap().tree().unwrap();
        tree.walk(git2::TreeWalkMode::PreOrder, |dir, entry| {
            if entry.kind() == Some(git2::ObjectType::Blob) {
                files.push(format!("{dir}{}", entry.name().unwrap()));
            }
            git2::TreeWalkResult::Ok
        })
        .unwrap();
        let mut walk = repository.revwalk().unwrap();
        walk.push(tip).unwrap();
        let message = |id: Result<git2::Oid, git2::Error>| {
            let commit = repository.find_commit(id.unwrap()).unwrap();
            format!(
                "{} <{}>: {}",
                commit.author().name().unwrap(),
                commit.author().email().unwrap(),
                commit.message().unwrap()
            )
        };
        (files, walk.map(message).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_word_makes_the_branch_and_the_next_stands_on_it() {
    let origin = Origin::new();
    origin.decide(approve(None), origin.word("waiting")).await.unwrap();
    origin.decide(Verb::Hold, origin.word("shop/soaking")).await.unwrap();
    let (files, commits) = origin.decisions();
    assert_eq!(files, ["shop/soaking/7-07070707-hold.yaml", "shop/waiting/7-07070707-tenth.yaml"]);
    insta::assert_snapshot!(commits.join("\n---\n"));
    // What was written is what the controller reads.
    let repository = Repository::open(&origin.args(), Access::Read).await.unwrap();
    let (_, record) = repository.record("waiting").await.unwrap();
    assert_eq!(decisions::ignored(&repository, &record, states::now()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_the_file_and_pushes_nothing() {
    let origin = Origin::new();
    let common = DecisionArgs { dry_run: true, author: None, ..origin.word("waiting") };
    origin.decide(approve(None), common).await.unwrap();
    assert_eq!(origin.decisions(), Default::default());
    let repository = Repository::open(&origin.args(), Access::Read).await.unwrap();
    let (_, record) = repository.record("waiting").await.unwrap();
    let intent = ask(approve(None), &record).unwrap();
    insta::assert_snapshot!(Place::find(&repository, &intent.decision, &record.state).await.unwrap().preview(&intent));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_makes_no_sense_is_refused_and_nothing_is_pushed() {
    let origin = Origin::new();
    let refused = [
        origin.decide(approve(None), origin.word("steady")).await,
        origin.decide(Verb::Abort, origin.word("nothing")).await,
        origin.decide(Verb::Resume, origin.word("soaking")).await,
        origin.decide(Verb::Hold, DecisionArgs { author: None, ..origin.word("soaking") }).await,
    ];
    let codes = refused.each_ref().map(|result| result.as_ref().unwrap_err().code());
    assert_eq!(codes, [1, 2, 1, 2]);
    // What follows is how long ago that was on the clock of this machine.
    let text = |result: Result<(), Failure>| result.unwrap_err().text().split(", since").next().unwrap().to_owned();
    insta::assert_snapshot!(refused.map(text).join("\n\n"));
    assert_eq!(origin.decisions(), Default::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_two_words_at_once_both_count() {
    let origin = Origin::new();
    origin.decide(Verb::Hold, origin.word("waiting")).await.unwrap();
    // Planned on a tip that is no longer the branch's: the push must find out.
    let repository = Repository::open(&origin.args(), Access::Write).await.unwrap();
    let (_, record) = repository.record("soaking").await.unwrap();
    let intent = ask(Verb::Hold, &record).unwrap();
    let place = Place::find(&repository, &intent.decision, &record.state).await.unwrap();
    origin.decide(Verb::Abort, origin.word("promotion")).await.unwrap();
    let ana = Person { name: "Ana".to_owned(), email: "ana@example.org".to_owned() };
    assert_eq!(place.push(&repository, &intent.decision, ana, None, states::now()).await.unwrap(), None);
    let results = tokio::join!(
        origin.decide(Verb::Hold, origin.word("soaking")),
        origin.decide(Verb::Skip { through: Through::Step }, origin.word("soaking")),
    );
    assert!(results.0.is_ok() && results.1.is_ok(), "{results:?}");
    let (files, commits) = origin.decisions();
    assert_eq!(
        files,
        [
            "shop/promotion/7-07070707-abort.yaml",
            "shop/soaking/7-07070707-hold.yaml",
            "shop/soaking/7-07070707-skip.yaml",
            "shop/waiting/7-07070707-hold.yaml",
        ]
    );
    assert_eq!(commits.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_record_the_next_step_is_named() {
    let dir = tempfile::tempdir().unwrap();
    git2::Repository::init_bare(dir.path()).unwrap();
    let args = RepositoryArgs {
        repo: Some(dir.path().to_str().unwrap().to_owned()),
        remote: "origin".to_owned(),
        instance: None,
        credentials_file: None,
        app_of: None,
        ca_file: None,
        ssh: SshArgs::default(),
    };
    let failure = Repository::open(&args, Access::Read).await.err().unwrap();
    assert!(matches!(failure, Failure::NoRecord(_)) && failure.text().contains("tidegate run"), "{}", failure.text());
    let args = RepositoryArgs { instance: Some("dev".to_owned()), ..args };
    let failure = Repository::open(&args, Access::Read).await.err().unwrap();
    let why = failure.text();
    assert!(matches!(failure, Failure::NoRecord(_)) && why.contains("has no branch tidegate/dev/state: "), "{why}");
    let missing = RepositoryArgs { repo: Some("no/such/place".to_owned()), ..args };
    assert!(Repository::open(&missing, Access::Read).await.err().unwrap().text().contains("no/such/place"));
}
