//! What people see: every help text, and records in all the states that matter.

use super::fixture::{self, past, position, time};
use super::status::{table, verdict};
use super::ui::Ink;
use super::why::{text, why};
use super::{Cli, Exit};
use crate::gate::decisions::Ignored;
use crate::manifest::desired::{Plan, Router};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::RunId;
use crate::manifest::load::Rejected;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::record::posture::Split;
use crate::record::state::{
    Condition, Consumed, Outcome, Phase, Position, Pull, RolloutState, Route, Serving, StepClock, Then, Time, Void,
};
use crate::report::view::{Record, Records, RolloutView, StatusView, rollouts};
use clap::CommandFactory;
use std::collections::BTreeSet;

/// Three phases: testers by header, a tenth after approval, half inside a window; promotion after approval.
pub(crate) fn plan() -> Plan {
    serde_json::from_value(serde_json::json!({
        "target": {"kind": "Deployment", "name": "podinfo", "layout": "inPlace"},
        "traffic": {
            "router": {"gatewayApi": {"httpRoute": "podinfo", "service": "podinfo"}},
            "settle": "5s", "drain": "30s",
        },
        "phases": [
            {"name": "testers", "expose": {"headers": [{"x-canary": "always"}]}, "soak": "5m"},
            {"name": "tenth", "before": {"approval": "pullRequest"}, "expose": {"weight": 10}, "soak": "10m"},
            {"name": "half", "before": {"window": "office-hours"}, "expose": {"weight": 50}, "soak": "10m"},
        ],
        "promotion": {"before": {"approval": "pullRequest"}, "bake": "30m"},
        "progressDeadline": "10m",
    }))
    .unwrap()
}

/// The moment at which everything here is looked at.
pub(crate) fn now() -> Time {
    time("10:05:00")
}

fn named(mut state: RolloutState, name: &str) -> RolloutState {
    state.metadata = format!("shop/{name}").parse().unwrap();
    state
}

fn condition(reason: &str, message: &str, act: Option<&str>) -> Condition {
    let (since, act) = (time("09:50:00"), act.map(ToOwned::to_owned));
    Condition { reason: reason.to_owned(), message: message.to_owned(), since, until: None, act, live: None }
}

/// At rest.
pub(crate) fn steady() -> Record {
    Record { state: named(fixture::steady(), "steady"), plan: None }
}

/// Run 7 soaks on `tenth`.
pub(crate) fn soaking() -> Record {
    let mut state = named(fixture::open(), "soaking");
    state.conditions.clear();
    Record { state, plan: Some(plan()) }
}

/// Run 7 is on `tenth`, whose pods are not ready.
pub(crate) fn unreached() -> Record {
    let Record { mut state, plan } = soaking();
    let clock = StepClock::entered(time("10:01:00"));
    state.phase = Phase::Progressing(Position { clock, ..position("tenth") });
    Record { state: named(state, "unreached"), plan }
}

/// Run 7 is on `testers` and waits for the approval of `tenth`.
pub(crate) fn waiting() -> Record {
    let Record { mut state, plan } = soaking();
    let next = "tenth".parse().unwrap();
    state.phase = Phase::Waiting { at: Some(position("testers")), next, since: time("09:50:00") };
    let act = "merge tidegate/prod/propose/shop/waiting/7-07070707-tenth into the decisions branch, or: tidegate approve \
               shop/waiting";
    state.conditions = vec![condition("Approval", "tenth waits for a person's word", Some(act))];
    let run = state.run.as_mut().unwrap();
    run.approved.clear();
    let posture = &mut state.clusters.values_mut().next().unwrap().posture;
    posture.split.weight = 0.try_into().unwrap();
    Record { state: named(state, "waiting"), plan }
}

/// Run 7 waits for its promotion.
pub(crate) fn promotion() -> Record {
    let Record { mut state, plan } = soaking();
    state.phase = Phase::WaitingPromotion { at: position("half"), since: time("10:00:00") };
    state.conditions = vec![condition("Approval", "promotion waits for a person's word", None)];
    Record { state: named(state, "promotion"), plan }
}

/// Run 7 goes back.
pub(crate) fn reverting() -> Record {
    let Record { mut state, plan } = soaking();
    let why = "tenth: error-rate 0.2 > 0.01 \u{202e}evil".to_owned();
    state.phase = Phase::Reverting { position: position("return"), why, then: Then::Failed };
    Record { state: named(state, "reverting"), plan }
}

/// Run 7 is past its promotion.
pub(crate) fn finalising() -> Record {
    let Record { mut state, plan } = soaking();
    state.phase = Phase::Finalising(position("return"));
    Record { state: named(state, "finalising"), plan }
}

/// Run 7 failed.
pub(crate) fn failed() -> Record {
    let mut state = named(fixture::steady(), "failed");
    let why = "tenth: not ready after 10m: ImagePullBackOff".to_owned();
    state.phase = Phase::Failed { why: why.clone(), since: time("09:55:00"), standing: Serving::Stable };
    let mut run = past(7, 6, 7, Outcome::Failed);
    run.why = why.clone();
    state.history.push(run);
    let revision = fixture::revision(7);
    let (run, outcome, at) = (fixture::run(7), Outcome::Failed, time("09:55:00"));
    state.refused.push(crate::record::state::Refused { revision, run, outcome, why, at });
    state.conditions = vec![condition("Refused", "revision 07070707 met its end in run 7-07070707", None)];
    Record { state, plan: None }
}

/// Run 7 could not be promoted: its candidate serves.
pub(crate) fn on_candidate() -> Record {
    let Record { mut state, plan } = soaking();
    let why = "promote: not ready after 10m".to_owned();
    state.phase = Phase::Failed { why, since: time("09:55:00"), standing: Serving::OnCandidate };
    Record { state: named(state, "stuck"), plan }
}

/// More would be deleted than the policy lets go at once.
pub(crate) fn too_many() -> Record {
    let mut state = named(fixture::steady(), "too-many");
    state.deletions.asked = Some(fixture::too_many(6));
    let act = "merge tidegate/prod/propose/shop/too-many/6-06060606-delete into the decisions branch, or: tidegate delete \
               shop/too-many; or raise limits.maxDeletions in tidegate.yaml";
    let why = "7 objects would be deleted, the policy allows 5: ConfigMap shop/worker-0, ConfigMap shop/worker-1, …";
    state.conditions = vec![condition("TooManyDeletions", why, Some(act))];
    Record { state, plan: None }
}

/// Live objects differ at first sight.
pub(crate) fn blocked() -> Record {
    let mut state = named(fixture::steady(), "blocked");
    state.promoted = None;
    state.history.clear();
    state.refused.clear();
    state.last_run = None;
    state.phase = Phase::Initializing(StepClock::entered(time("09:00:00")));
    for cluster in state.clusters.values_mut() {
        cluster.posture.split = Split::stable();
    }
    let act = "make main say what is live, or take over what is live: tidegate adopt shop/blocked --live 060606060606";
    state.conditions = vec![Condition {
        live: Some(fixture::set(6)),
        ..condition("AdoptionDiffers", "Deployment shop/podinfo: /spec/replicas is 2, not 3", Some(act))
    }];
    Record { state, plan: None }
}

/// The soak of run 7 is over, and nobody enters the next step.
pub(crate) fn due() -> Record {
    let Record { mut state, plan } = soaking();
    let clock = StepClock { exposed: Some(time("09:50:00")), ..StepClock::entered(time("09:49:00")) };
    state.phase = Phase::Progressing(Position { clock, ..position("tenth") });
    Record { state: named(state, "due"), plan }
}

/// Run 7 failed, and a branch proposes to undo its change.
pub(crate) fn failed_with_revert() -> Record {
    let Record { mut state, plan } = failed();
    let branch = "tidegate/prod/propose/shop/failed/7-07070707-revert".to_owned();
    state.revert = Some(Pull { branch, head: fixture::commit(9), checks: Vec::new() });
    Record { state, plan }
}

fn rejected() -> RolloutView {
    let error = |line, found: &str| Diagnostic {
        line,
        ..Diagnostic::of_file(&"shop/new/rollout.yaml".parse().unwrap(), Code::Schema, found, "another thing")
    };
    let diagnostics = vec![error(3, "one"), error(5, "two"), error(8, "three"), error(13, "four")];
    crate::report::view::rejected(&"shop/new".parse().unwrap(), &Rejected { paths: BTreeSet::new(), diagnostics })
}

#[test]
fn a_new_rollout_with_errors_is_shown() {
    let why = super::why::unrecorded(rejected());
    insta::assert_snapshot!("why_rejected", text(&why, now(), Ink::Plain));
    let status = StatusView { rollouts: vec![rejected()], ..status() };
    insta::assert_snapshot!("status_rejected", table(&status, false, now(), Ink::Plain));
    assert_eq!(verdict(&status), Exit::Findings);
}

fn all() -> Records {
    let records = [
        steady(),
        soaking(),
        unreached(),
        waiting(),
        promotion(),
        reverting(),
        finalising(),
        failed(),
        on_candidate(),
        blocked(),
    ];
    let mut records: Records = records.into_iter().map(|record| (record.state.metadata.clone(), Ok(record))).collect();
    records.insert("shop/broken".parse().unwrap(), Err("the file is not YAML".to_owned()));
    records
}

fn status() -> StatusView {
    StatusView {
        instance: "prod".parse().unwrap(),
        tip: Some(fixture::commit(0xcd).to_string()),
        main_unreadable: None,
        rollouts: rollouts(&all(), now()),
    }
}

#[test]
fn help_of_every_command() {
    let mut command = Cli::command().term_width(100);
    command.build();
    insta::assert_snapshot!("help", command.render_help());
    // What the agent starts of itself is no command of people.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<String> = shown.map(|c| c.get_name().to_owned()).collect();
    let help = command.render_help().to_string();
    for name in names {
        assert!(help.contains(&format!("\n  {name} ")), "the groups of --help leave {name} out");
        let command = command.find_subcommand_mut(&name).unwrap().clone().term_width(100);
        for below in command.get_subcommands() {
            let text = below.clone().term_width(100).render_long_help();
            insta::assert_snapshot!(format!("help_{name}_{}", below.get_name()), text);
        }
        insta::assert_snapshot!(format!("help_{name}"), { command }.render_long_help());
    }
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn status_for_people() {
    insta::assert_snapshot!(table(&status(), false, now(), Ink::Plain));
    let empty = StatusView { rollouts: Vec::new(), ..status() };
    insta::assert_snapshot!("status_empty", table(&empty, false, now(), Ink::Plain));
    let unread = StatusView { main_unreadable: Some("it is too much".to_owned()), ..empty.clone() };
    assert!(table(&unread, true, now(), Ink::Plain).starts_with(
        "Main cannot be read: it is too much
No run "
    ));
    assert_eq!(table(&empty, true, now(), Ink::Plain), format!("No run of {} is open.\n", empty.instance));
}

/// Requirement C-13: one condition says whether what main wants is promoted.
#[test]
fn c_13_promoted_is_unknown_while_a_run_is_open() {
    let said: Vec<String> = status()
        .rollouts
        .iter()
        .flat_map(|view| view.conditions.iter().map(move |c| (view, c)))
        .map(|(view, c)| {
            let since = c.last_transition_time.map(|at| at.to_rfc3339()).unwrap_or_default();
            format!("{}: {}={} {} {since}", view.rollout, c.kind, c.status, c.reason)
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn status_in_colour_differs_by_its_colours_alone() {
    let plain = anstream::adapter::strip_str(&table(&status(), false, now(), Ink::Colour)).to_string();
    assert_eq!(plain, table(&status(), false, now(), Ink::Plain));
}

#[test]
fn status_for_programs() {
    let mut status = status();
    status.rollouts.retain(|view| view.rollout.name.as_str() == "soaking" || view.rollout.name.as_str() == "broken");
    insta::assert_snapshot!(serde_json::to_string_pretty(&status).unwrap());
}

#[test]
fn open_are_runs_and_what_nobody_can_read() {
    let (open, closed): (Vec<_>, Vec<_>) = status().rollouts.into_iter().partition(RolloutView::may_be_open);
    let phases = |views: Vec<RolloutView>| views.into_iter().map(|view| view.phase).collect::<BTreeSet<_>>();
    // Who failed on the candidate has an open run, who failed on stable has none.
    assert_eq!(
        Vec::from_iter(phases(open)),
        ["Failed", "Finalising", "Progressing", "Reverting", "Unreadable", "Waiting", "WaitingPromotion"]
    );
    assert_eq!(Vec::from_iter(phases(closed)), ["Failed", "Initializing", "Steady"]);
}

#[test]
fn exit_codes_of_status_say_what_is_worst() {
    let of = |record: Record| {
        let records = Records::from([(record.state.metadata.clone(), Ok(record))]);
        verdict(&StatusView { rollouts: rollouts(&records, now()), ..status() })
    };
    assert_eq!(of(steady()), Exit::Done);
    assert_eq!(of(failed()), Exit::Findings);
    assert_eq!([of(waiting()), of(soaking()), of(reverting()), of(blocked())], [Exit::Waiting; 4]);
    assert_eq!(verdict(&status()), Exit::Findings);
    assert_eq!(verdict(&StatusView { rollouts: Vec::new(), ..status() }), Exit::Done);
}

#[test]
fn why_of_each_state() {
    let ignored = || {
        vec![Ignored {
            path: "shop/waiting/6-06060606-tenth.yaml".parse().unwrap(),
            why: "it names run 6-06060606; run 7-07070707 is meant now".to_owned(),
        }]
    };
    for (name, record) in [
        ("steady", steady()),
        ("soaking", soaking()),
        ("unreached", unreached()),
        ("waiting", waiting()),
        ("reverting", reverting()),
        ("failed", failed()),
        ("failed_with_revert", failed_with_revert()),
        ("due", due()),
        ("on_candidate", on_candidate()),
        ("blocked", blocked()),
        ("too_many", too_many()),
    ] {
        let ignored = if name == "waiting" { ignored() } else { Vec::new() };
        insta::assert_snapshot!(format!("why_{name}"), text(&why(&record, ignored, now()), now(), Ink::Plain));
    }
    insta::assert_snapshot!("why_json", serde_json::to_string_pretty(&why(&waiting(), ignored(), now())).unwrap());
}

/// Where there is no gateway, its kinds may be unknown, and kubectl would refuse the whole command.
#[test]
fn a_step_without_a_route_is_not_looked_for_among_routes() {
    let mut record = unreached();
    let traffic = record.plan.as_mut().unwrap().traffic.as_mut().unwrap();
    traffic.router = Router::Service { service: "podinfo".parse().unwrap() };
    let told = text(&why(&record, Vec::new(), now()), now(), Ink::Plain);
    assert!(told.contains("kubectl --namespace shop describe deployments,services\n"), "{told}");
}

#[test]
fn a_word_without_proof_is_told_as_one_that_does_not_count() {
    let mut record = waiting();
    let word = fixture::open().consumed.remove(0);
    let because = "ben made commit abababab of this version: an approver must be someone else".to_owned();
    let void = Some(Void { why: because, through: Some("tenth".parse().unwrap()), head: None });
    record.state.consumed = vec![Consumed { void, ..word }];
    let rule =
        ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
    record.state.run.as_mut().unwrap().rule = Some(rule);
    let why = why(&record, Vec::new(), now());
    assert_eq!((why.counted.len(), why.ignored.len()), (0, 1));
    let text = text(&why, now(), Ink::Plain);
    assert!(text.contains("ignored approve is not proven: ben made commit abababab of this version"), "{text}");
}

#[test]
fn a_word_that_came_as_it_must_not_is_told_whatever_it_says_and_whichever_run_it_is_about() {
    let because = "it came by a commit that somebody else had pushed to a request";
    let word = fixture::open().consumed.remove(0);
    let said = |mut record: Record, action: &str, run: RunId| {
        let void = Some(Void { why: because.to_owned(), through: None, head: None });
        record.state.consumed = vec![Consumed { void, run, action: action.to_owned(), ..word.clone() }];
        text(&why(&record, Vec::new(), now()), now(), Ink::Plain)
    };
    let mut first = steady();
    (first.state.last_run, first.state.run) = (None, None);
    let open = waiting().state.run.unwrap().id;
    for (record, action, run) in [
        (waiting(), "skip", open.clone()),
        (waiting(), "resume", open),
        (steady(), "retry", steady().state.refused[0].run.clone()),
        (first, "adopt", RunId::zero()),
    ] {
        let text = said(record, action, run);
        assert!(text.contains(&format!("ignored {action} does not count: {because}")), "{text}");
    }
    let text = said(waiting(), "skip", "3-03030303".parse().unwrap());
    assert!(!text.contains("ignored"), "nobody wants to know what was said of a run long ago: {text}");
}

#[test]
fn decisions_that_do_not_count_are_capped_and_counted() {
    let ignored = |n: usize| Ignored {
        path: format!("shop/waiting/{n}-06060606-tenth.yaml").parse().unwrap(),
        why: "it names another run".to_owned(),
    };
    let why = why(&waiting(), (1..=8).map(ignored).collect(), now());
    let text = text(&why, now(), Ink::Plain);
    assert!(text.contains("ignored 3 older, all in -o json\n"), "{text}");
    assert_eq!((text.matches("it names another run").count(), why.ignored.len()), (5, 8));
}

#[test]
fn attack_35_what_is_foreign_stays_on_its_line() {
    let shown = text(&why(&reverting(), Vec::new(), now()), now(), Ink::Plain);
    assert!(!shown.contains('\u{202e}') && shown.contains("\\u{202e}"), "{shown}");
}

#[test]
fn a_plain_run_has_no_candidate_steps() {
    let Record { mut state, plan } = soaking();
    state.run.as_mut().unwrap().route = Route::Plain;
    state.phase = Phase::Promoting(position("promote"));
    let view = crate::report::view::rollout(&Record { state, plan }, now());
    assert_eq!(view.steps, ["promote", "return", "retire"]);
    assert_eq!(view.entered, Some(1));
}

#[test]
fn every_shell_gets_completions_for_every_command() {
    for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "tidegate", &mut script);
        let script = String::from_utf8(script).unwrap();
        for command in ["approve", "rollback", "status"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let mut main = Cli::command();
    main.build();
    let page = |command| {
        String::from_utf8(super::man::page(command).unwrap()).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION")
    };
    let sections = |page: &str| page.lines().filter(|line| line.starts_with(".SH")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("man", sections(&page(&main)));
    insta::assert_snapshot!("man_approve", page(main.find_subcommand("approve").unwrap()));
    for command in main.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        assert!(page(&main).contains(&format!("tidegate\\-{name}")), "{name}");
        for command in command.get_subcommands().chain([command]) {
            assert!(sections(&page(command)).contains("EXAMPLES"), "{name}");
        }
    }
}
