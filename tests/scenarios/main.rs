//! Scenario transcripts: a story in prose and commands, and below each command what happens in the world. The controller,
//! the Kubernetes client and Git are the ones that are shipped; only the cluster and the clock are not.
//!
//! A scenario is a file here, `<name>.txt`; `commands` says what can stand in it. `UPDATE_SCENARIOS=1 cargo test --test
//! scenarios` writes down what happens: read the diff as a change of behaviour.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod edits;
mod live;
mod log;
mod names;
mod person;
mod script;
mod world;

use std::path::PathBuf;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Plays one scenario.
fn play(name: &str) {
    let script = script::Script::read(directory().join(format!("{name}.txt")));
    // The pauses between tries are as long in each run.
    tidegate::cluster::chance::repeat(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    script.compare(&runtime.block_on(commands::run(&script)));
}

/// One test for each scenario, and one that there are no others.
macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test] fn $name() { play(stringify!($name)); })*

        #[test]
        fn each_file_is_played() {
            let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name());
            let files = files.filter_map(|file| Some(file.to_str()?.strip_suffix(".txt")?.to_owned()));
            let files: std::collections::BTreeSet<String> = files.collect();
            let played = [$(stringify!($name)),*].map(str::to_owned).into();
            assert_eq!(files, played, "list the file in tests/scenarios/main.rs");
        }
    };
}

scenarios! {
    adoption_differs
    adoption_of_equals
    api_away
    api_fails_with_503
    approvals
    bad_by_its_metric
    brake_holds
    brake_reverts
    broken_file
    broken_file_during_a_run
    by_pods
    candidate_fails_at_return
    check_nobody_understands
    checks_go_on_at_the_promotion_gate
    concurrency
    config_map
    denied_by_a_file
    denied_by_deletion
    direct_change
    drift
    equal_pods
    failed_on_the_candidate
    first_sight_refused
    first_sight_waits_for_pods
    foreign_applier
    freeze
    git_away_during_a_bad_version
    git_away_during_a_good_version
    good_version
    hand_lowers
    hand_raises
    killed_in_a_soak
    killed_on_the_way_back
    last_rollout_is_removed
    main_goes_back
    marks_are_blocked
    never_ready
    new_version_at_return
    no_data
    no_data_fails
    object_leaves_the_set
    pods_fail_at_half
    pods_fail_in_the_bake
    refused_by_a_dry_run
    removed_at_rest
    removed_during_a_run
    restart_while_git_is_away
    retry
    rights_are_missing
    rollback
    rollback_of_a_broken_file
    suspend
    testers_first
    third_version
    two_claim_one
    way_back_is_blocked
    window
    words
    worker
}
