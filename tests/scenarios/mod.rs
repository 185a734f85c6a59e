//! Scenario transcripts: a story in prose and commands, and below each command what happens in the world. The controller,
//! the Kubernetes client and Git are the ones that are shipped; only the cluster and the clock are not.
//!
//! A scenario is a file here, `<name>.txt`; `commands` says what can stand in it. `UPDATE_SCENARIOS=1 cargo test --test
//! worlds scenarios` writes down what happens: read the diff as a change of behaviour.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod contract;
mod edits;
mod granted;
mod host;
mod hosted;
#[path = "../support/hosts/mod.rs"]
mod hosts;
pub(crate) mod live;
mod log;
mod look;
mod names;
mod person;
mod script;
mod witness;
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

#[test]
fn the_table_of_rules_names_scenarios_that_exist() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/testing.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Scenarios\n")).unwrap();
    let cells = section.lines().filter(|line| line.starts_with('|')).filter_map(|row| row.split('|').nth(2));
    let names = cells.flat_map(|cell| cell.trim().split(", "));
    let named: Vec<&str> = names.filter_map(|name| name.strip_prefix('`')?.strip_suffix('`')).collect();
    assert!(named.len() > 30, "the table of docs/testing.md is not read: {named:?}");
    let missing: Vec<&&str> = named.iter().filter(|name| !directory().join(format!("{name}.txt")).exists()).collect();
    assert!(missing.is_empty(), "docs/testing.md names scenarios that are not there: {missing:?}");
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
    adopted
    adopted_and_bad
    adopted_stateful
    adopted_too_late
    adoption_differs
    adoption_of_equals
    adoption_surplus
    all_mistakes_at_once
    another_instance
    answered
    answered_as_app
    answered_on_gitlab
    api_away
    api_fails_with_503
    app_shows_findings
    approvals
    approvals_of_two
    attacks_on_approvals
    autoscaler
    autoscaler_is_lowered
    autoscaler_wants_fewer
    bad_by_its_metric
    blocked_by_a_peer
    blue_green
    brake_at_first_sight
    brake_at_return
    brake_holds
    brake_in_a_newer_record
    brake_reverts
    brake_while_git_is_away
    brake_without_a_record
    broken_file
    broken_file_during_a_run
    by_grpc
    by_hand_image
    by_hand_restart
    by_hand_scale
    by_ingress
    by_ingress_fails
    by_ingress_route
    by_mesh
    by_mesh_fails
    by_pods
    by_pods_stable_loses_pods
    by_proxy
    by_service
    by_service_fails
    by_table
    by_traefik
    candidate_fails_at_return
    candidate_is_evicted
    check_nobody_understands
    checks_go_on_at_the_promotion_gate
    claims_and_secrets_of_the_set
    clock_ran_ahead
    clock_set_forward
    closed_gate
    compared_with_stable
    concurrency
    config_map
    daemon
    daemon_at_a_pace
    daemon_by_hand
    daemon_compared
    daemon_fails
    daemon_goes_back
    daemon_grows
    daemon_node_is_lost
    daemon_nodes
    daemon_pod_fails
    daemon_pod_is_deleted
    daemon_pods_are_not_listed
    daemon_pods_end_slowly
    daemon_removed
    daemon_without_a_record
    deadline
    deletions_are_asked_for
    denied_by_a_file
    denied_by_deletion
    direct_change
    direct_change_at_promote
    direct_change_in_a_run
    drift
    equal_pods
    failed_on_the_candidate
    failed_on_the_candidate_aborted
    field_conflict
    files_are_moved
    first_sight_is_suspended
    first_sight_refused
    first_sight_waits_for_pods
    flaps
    foreign_applier
    foreign_words
    former_content
    freeze
    gateway_refuses
    git_away_during_a_bad_version
    git_away_during_a_good_version
    git_keeps_everybody_waiting
    good_version
    hand_lowers
    hand_raises
    host_in_trouble
    idle
    in_a_team
    in_a_team_on_gitlab
    job_and_a_crash
    job_before_a_step
    job_fails
    job_is_taken_away
    keda
    killed_at_a_gate
    killed_in_a_soak
    killed_on_the_way_back
    kind_is_gone
    kind_is_not_listed
    last_rollout_is_removed
    let_go
    let_go_on_gitlab
    lives
    lives_on_gitlab
    main_goes_back
    main_is_gone
    main_is_rewritten
    main_is_rewritten_and_meant
    main_is_set_back
    marks_are_blocked
    marks_by_hand
    mirror
    never_ready
    new_version_at_return
    no_data
    no_data_fails
    no_revert_wanted
    no_status_yet
    nodes
    nodes_agents
    nodes_by_hand
    nodes_come_and_go
    nodes_fail
    nodes_first
    nodes_killed
    nodes_third
    not_ready_in_the_bake
    object_leaves_the_set
    offered
    offered_on_gitlab
    other_kind_is_gone
    other_kinds
    other_kinds_leave
    other_objects
    over
    over_on_gitlab
    peak
    phases_go_down
    pods_fail_at_half
    pods_fail_in_the_bake
    pods_that_cannot_be_cloned
    policy_loosened_with_a_label
    port_moves
    primary_autoscaler
    primary_autoscaler_has_its_word
    primary_bad_version
    primary_by_ingress
    primary_by_mesh
    primary_by_service
    primary_by_traefik
    primary_failed_on_the_candidate
    primary_good_version
    primary_keda
    primary_life
    primary_not_ready
    primary_removed
    proven
    proven_on_gitlab
    provider_stays_away
    queue_is_nobody
    queued
    ramp
    record_is_lost
    reference_is_missing
    refused_by_a_dry_run
    removed_after_a_failure
    removed_at_rest
    removed_during_a_run
    replaced_after_its_review
    replaced_after_its_review_on_gitlab
    replicas_mid_run
    replicas_mid_run_approved
    replicas_mid_run_versioned
    request_is_merged_as_another
    request_is_spoiled
    restart_while_git_is_away
    retry
    revert_conflicts
    rights_are_missing
    rollback
    rollback_at_return
    rollback_further_in_a_run
    rollback_in_a_run
    rollback_of_a_broken_file
    route_alone
    route_is_barred
    route_is_refused
    route_is_refused_later
    second_root
    secret_in_git
    service_headless
    service_of_clusters
    service_of_clusters_goes_back
    service_target
    service_target_fails
    session_affinity
    shared_objects
    shared_proxy
    smuggled
    soak_while_not_ready
    spoiled
    squashed
    squashed_on_gitlab
    stable_down_at_rest
    stable_down_in_a_run
    stable_down_is_promoted
    stable_down_main_moves_on
    stable_down_taken_back
    stable_fails_during_a_run
    state_branch_is_forged
    state_branch_is_forged_at_a_gate
    state_branch_is_gone_at_rest
    state_branch_is_gone_during_a_run
    state_branch_is_gone_with_its_lease
    state_branch_is_put_back
    stateful
    stateful_at_a_pace
    stateful_compared
    stateful_fails
    stateful_git_away
    stateful_goes_back
    stateful_is_scaled
    stateful_pod_is_evicted
    stateful_pod_is_set_aside
    stateful_refused
    stateful_removed
    stateful_without_a_record
    success_rate
    success_rate_by_ingress
    success_rate_by_traefik
    suspend
    table_is_rejected
    testers_by_cookie
    testers_first
    third_version
    told_by_a_webhook
    tracked_config_map
    tracked_goes_back
    tracked_is_missing
    tracked_moves_on
    tracked_secret
    two_claim_one
    unprotected
    unprotected_on_gitlab
    unproven
    unproven_on_gitlab
    versioned_deletions_are_asked_for
    versioned_goes_back
    versioned_good_version
    versioned_kept
    versioned_taken_back_and_again
    versioned_under_the_same_name
    variant_changes
    way_back_is_blocked
    way_back_is_frozen
    waves
    webhook_before_a_step
    webhook_holds
    webhook_says_bad
    weight_is_too_fine
    window
    word_before_its_run
    words
    worker
}
