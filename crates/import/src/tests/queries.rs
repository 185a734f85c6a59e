//! Queries of other tools: what is refused of them is told at once; and the metrics that Flagger knows by name.

use super::*;

/// An example that is changed so.
fn with(tool: Tool, file: &str, from: &str, to: &str) -> Imported {
    let text = file.replacen(from, to, 1);
    assert_ne!(text, file, "{from}");
    imported(tool, &[("a.yaml", &text)])
}

/// Whatever `tidegate validate` refuses of a query is told when it is written, with the reason.
#[test]
fn a_query_that_is_refused_is_told() {
    let by_hash = "sum(rate(errors{rollouts_pod_template_hash=\\\"{{args.new}}\\\"}[1m]))";
    for (tool, file, from, to, why) in [
        (Tool::Flagger, ALIAS[0].1, "[{{ interval }}]", "", "rate takes a range of values, and this is one value"),
        (Tool::Flagger, DAEMONS[0].1, "sum(rate(", "sum(rate((", "the query cannot be read from its end on"),
        (
            Tool::Argo,
            MESH[0].1,
            by_hash,
            &by_hash[4..by_hash.len() - 1],
            "the query yields a series for each that is counted, of each pod",
        ),
    ] {
        let imported = with(tool, file, from, to);
        let [RefusedCheck { file, check, why: note }] = imported.refused.as_slice() else { panic!("{imported:#?}") };
        assert_eq!((file.as_str(), check.as_str()), (imported.files[0].path.as_str(), "errors"));
        assert!(note.starts_with(why), "{note}");
        let said = told_of(&imported);
        assert!(said.len() == 1 && said[0].contains(note), "{said:?}");
    }
    for (tool, files) in examples() {
        assert_eq!(imported(tool, &files).refused, []);
    }
}

/// Whose series such a query is about is not known, so it is not written at all.
#[test]
fn a_query_by_the_hash_that_cannot_be_read_is_told_so() {
    let imported = with(Tool::Argo, MESH[0].1, "{{args.new}}\\\"}[1m]))", "{{args.new}}\\\"}[1m])");
    let note = imported.fields.iter().find(|note| note.text.contains("cannot be read")).unwrap();
    assert_eq!(note.outcome, FieldOutcome::NotUnderstood);
    assert!(note.text.starts_with("its query is not imported: the query cannot be read from its end on"), "{note:?}");
    assert!(!imported.files[0].text.contains("errors:"), "{}", imported.files[0].text);
}

#[test]
fn what_flagger_asks_of_a_proxy_is_built_in_where_that_counts() {
    for (example, proxy) in [(INGRESS, "nginx"), (TRAEFIK, "traefik"), (COPIES, "contour")] {
        let made = &imported(Tool::Flagger, example).files[0].text;
        for check in ["successRate", "latency"] {
            assert!(made.contains(&format!("{check}:\n        provider: main\n        proxy: {proxy}\n")), "{made}");
        }
    }
    let note = imported(Tool::Flagger, INGRESS).fields;
    let mean = note.iter().find(|note| note.path == "spec.analysis.metrics[1].name").unwrap();
    assert!(mean.outcome == FieldOutcome::Differs && mean.text.contains("the mean"), "{mean:?}");
    // Without users of the candidate ingress-nginx counts nothing of it.
    let users =
        "    match:\n      - headers: {x-canary: {exact: insider}}\n      - headers: {cookie: {exact: canary}}\n";
    let preview = with(Tool::Flagger, INGRESS[0].1, users, "");
    assert_eq!(told_of(&preview), [""; 0]);
    assert!(preview.files[0].text.contains("preview:") && !preview.files[0].text.contains("proxy:"), "{preview:#?}");
    let said = preview.fields.iter().find(|note| note.path == "spec.analysis.metrics[0]").unwrap();
    assert!(
        said.outcome == FieldOutcome::NotBuilt && said.text.starts_with("nobody is let in before all are"),
        "{said:?}"
    );
}
