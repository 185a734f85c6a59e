//! Canaries of which nobody can be let in as they say: a preview stands in the place of that, and no phase is lost.

use super::*;

/// A Canary of that provider with this analysis, imported.
fn canary(provider: &str, analysis: &str) -> Imported {
    let text = format!(
        "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {{name: web, namespace: shop}}\nspec:\n  provider: {provider}\n  targetRef: \
         {{kind: Deployment, name: web}}\n  service: {{port: 80, appProtocol: http}}\n  analysis:\n    interval: 1m\n    {analysis}\n    \
         metrics: [{{name: errors, query: 'sum(rate(errors[1m]))', threshold: 1}}]\n"
    );
    imported(Tool::Flagger, &[("a.yaml", &text)])
}

/// What a rollout says from its traffic to its checks, without breaks.
fn way(imported: &Imported) -> String {
    let text =
        imported.files[0].text.split("  traffic:\n").nth(1).unwrap().split("  checks:\n    errors").next().unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is said of a field of the analysis.
fn said(imported: &Imported, field: &str) -> String {
    let note = imported.fields.iter().find(|note| note.path == format!("spec.analysis.{field}"));
    note.map(|note| format!("{}: {}", note.outcome.words(), note.text)).unwrap_or_default()
}

const USERS: &str = "match: [{headers: {x-canary: {exact: a}}}]";

/// Flagger goes past match and weights there, and takes ten intervals where it is told no number of them.
#[test]
fn with_the_provider_kubernetes_every_analysis_is_a_blue_green() {
    let preview = |soak: &str| {
        format!("service: web phases: - name: preview expose: preview: fullSize soak: {soak} checks: - errors")
    };
    for (analysis, soak) in [
        ("iterations: 5", "5m"),
        (&format!("iterations: 5\n    {USERS}"), "5m"),
        (&format!("stepWeight: 50\n    maxWeight: 50\n    {USERS}"), "10m"),
        ("stepWeight: 5\n    maxWeight: 50", "10m"),
        ("stepWeights: [1, 2]\n    mirror: true", "10m"),
        ("threshold: 10", "10m"),
    ] {
        let imported = canary("kubernetes", analysis);
        assert_eq!(way(&imported), preview(soak), "{analysis}");
        assert!(imported.files[0].text.contains("layout: primary"));
        let ten = said(&imported, "iterations").contains("Flagger goes by no weights, and sets it to 10");
        assert_eq!(ten, soak == "10m", "{analysis}");
        let match_ = said(&imported, "match");
        assert_eq!(match_.contains("not needed: with the provider kubernetes"), analysis.contains("match"), "{match_}");
        for field in ["stepWeight", "stepWeights"].into_iter().filter(|field| analysis.contains(&format!("{field}:"))) {
            assert_eq!(said(&imported, field), "not needed: nobody is let in before all are");
        }
    }
}

#[test]
fn where_no_match_can_be_imported_nobody_is_let_in_before_all_are() {
    let by_path = "match: [{uri: {prefix: /a}}, {sourceLabels: {a: b}}]";
    let odd =
        "match: [{headers: {x-a: {exact: a}}, ignoreUriCase: true}, {headers: {b: {}}}, {headers: {C: {exact: \"\"}}}]";
    let preview = "phases: - name: preview expose: preview: fullSize soak: 3m checks: - errors promotion: bake: 1m checks: - errors";
    for (provider, analysis) in [
        ("istio", format!("iterations: 3\n    {by_path}")),
        ("gatewayapi:v1", format!("iterations: 3\n    mirror: true\n    {by_path}")),
        ("istio", format!("iterations: 3\n    stepWeights: [10, 20]\n    {odd}")),
        ("istio", format!("stepWeights: [10, 20, 30]\n    {odd}")),
        ("nginx", format!("iterations: 3\n    {by_path}")),
        ("traefik", format!("iterations: 3\n    {USERS}")),
    ] {
        let imported = canary(provider, &analysis);
        assert!(way(&imported).ends_with(preview), "{provider}: {}", way(&imported));
        assert_eq!(
            said(&imported, "iterations"),
            "differs: nothing of match is imported; nobody is let in before all are, for 3 intervals",
            "{analysis}"
        );
    }
}

/// All that match are let in at once, for as long as Flagger takes to let in all of them by and by.
#[test]
fn users_by_weight_are_let_in_for_as_long_as_all_weights_take() {
    for (analysis, soak, iterations, weights) in [
        (
            "stepWeight: 10\n    maxWeight: 50",
            "5m",
            "differs: the soak: 5 intervals, one for each weight",
            "not built: a share of",
        ),
        (
            "stepWeights: [1, 5, 50]",
            "3m",
            "differs: the soak: 3 intervals, one for each weight",
            "not built: a share of",
        ),
        ("iterations: 4\n    stepWeight: 10", "4m", "imported: the soak", "not needed: with iterations all requests"),
        ("threshold: 1", "10m", "differs: the soak: 10 intervals, as nothing says how many", ""),
    ] {
        let imported = canary("istio", &format!("{analysis}\n    {USERS}"));
        assert!(
            way(&imported).contains(&format!("headers: - x-canary: a soak: {soak} checks: - errors")),
            "{analysis}"
        );
        assert!(said(&imported, "iterations").starts_with(iterations), "{analysis}: {}", said(&imported, "iterations"));
        let said = [said(&imported, "stepWeight"), said(&imported, "stepWeights")].concat();
        assert!(said.starts_with(weights), "{analysis}: {said}");
    }
}

/// Without a phase no check would judge anything.
#[test]
fn an_analysis_without_a_step_is_no_promotion_without_checks() {
    for analysis in ["stepWeight: 0", "stepWeights: []", "stepWeights: [0, 200]", "maxWeight: 150", "iterations: -3"] {
        let imported = canary("istio", analysis);
        assert!(way(&imported).contains("expose: preview: fullSize soak: 10m checks: - errors"), "{analysis}");
        let why = "differs: no step leads to a weight, and Flagger would not go on; nobody is let in before all are, for 10 intervals";
        assert_eq!(said(&imported, "iterations"), why, "{analysis}");
    }
    let daemons = DAEMONS[0].1.replace("stepWeights: [10, 50]", "iterations: 5");
    let imported = imported(Tool::Flagger, &[("a.yaml", &daemons)]);
    let text = &imported.files[0].text;
    assert!(text.contains("weight: 10\n      soak: 5m\n      checks:\n        - errors\n"), "{text}");
    assert!(said(&imported, "iterations").contains("have no preview: 10 percent of them are new, for 5 intervals"));
}

#[test]
fn a_webhook_that_takes_back_is_asked_before_the_rollout_too() {
    let hook = |kind: &str| format!("{{name: {kind}, type: {kind}, url: \"http://x.test/{kind}\"}}");
    let hooks = format!("iterations: 2\n    webhooks: [{}, {}]", hook("rollback"), hook("pre-rollout"));
    let phases = way(&canary("kubernetes", &hooks));
    assert!(phases.contains("soak: 1m checks: - pre-rollout - rollback - name: preview"), "{phases}");
    assert!(phases.contains("soak: 2m checks: - errors - rollback"), "{phases}");
}

#[test]
fn a_time_that_is_cut_or_rounded_is_told() {
    for (age, wanted, note) in [
        ("99999999999", "87600h", "differs: traffic.sessionAffinity.maxAge: ten years, which is the most"),
        ("-1", "24h", "not understood: its value is left out; expected a number of seconds; it is a day"),
        ("3600", "1h", "imported: traffic.sessionAffinity.maxAge"),
    ] {
        let imported =
            canary("istio", &format!("stepWeight: 10\n    sessionAffinity: {{cookieName: a, maxAge: {age}}}"));
        assert!(imported.files[0].text.contains(&format!("maxAge: {wanted}\n")), "{}", imported.files[0].text);
        assert_eq!(said(&imported, "sessionAffinity.maxAge"), note);
    }
    let imported = canary("istio", "stepWeight: 10").fields;
    assert!(imported.iter().all(|note| !note.text.contains("whole seconds")));
    let text = CANARY[0].1.replacen("interval: 30s\n", "interval: 30.5s\n", 1);
    let note = super::imported(Tool::Flagger, &[("a.yaml", &text), CANARY[1]]).fields;
    assert!(
        note.iter()
            .any(|note| note.outcome == FieldOutcome::Differs && note.text == "times are whole seconds here: 31s")
    );
}
