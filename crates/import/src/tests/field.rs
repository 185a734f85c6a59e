//! What people have, as it was found.

use super::*;

const MISPLACED: &str = include_str!("../../../../tests/files/field/canary_webhooks_misplaced.yaml");
const EXPERIMENT: &str = include_str!("../../../../tests/files/field/experiment.yaml");

fn said(imported: &Imported, path: &str) -> String {
    let note = imported.fields.iter().find(|note| note.path == path);
    note.map(|note| format!("{}: {}", note.outcome.words(), note.text)).unwrap_or_default()
}

#[test]
fn a_field_at_the_wrong_level_is_told_where_it_belongs() {
    let imported = imported(Tool::Flagger, &[("canary.yaml", MISPLACED)]);
    assert_eq!(
        said(&imported, "spec.webhooks"),
        "not understood: nothing reads it here; it belongs at spec.analysis.webhooks"
    );
    let misspelt = MISPLACED.replace("  webhooks:", "  webhoks:");
    let told = said(&super::imported(Tool::Flagger, &[("canary.yaml", &misspelt)]), "spec.webhoks");
    assert_eq!(told, "not understood: no field that this version knows; is it spelled right?");
}

#[test]
fn an_experiment_before_the_first_weight_is_a_preview_with_its_analyses() {
    let routed = EXPERIMENT.replace("    canary:\n", "    canary:\n      trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: exp}}}\n      stableService: exp\n");
    let template = "---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: json-ok, namespace: shop}\nspec:\n  metrics:\n  \
                    - {name: ok, interval: 1m, count: 3, successCondition: 'result[0] >= 0.9', provider: {prometheus: {address: 'http://p.test', query: 'json_ok'}}}\n";
    let imported = imported(Tool::Argo, &[("a.yaml", &format!("{routed}{template}"))]);
    let path = "spec.strategy.canary.steps[0].experiment";
    assert!(said(&imported, path).starts_with("differs: a preview"), "{}", said(&imported, path));
    let made = imported.files[0].text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(made.contains("- name: preview expose: preview: fullSize soak: 5m checks:"), "{made}");
    assert!(made.contains("weight: 50"), "{made}");
    // By pods nobody can be kept from the new version; and the analysis has to be among the files.
    let by_pods = super::imported(Tool::Argo, &[("a.yaml", EXPERIMENT)]);
    assert!(said(&by_pods, path).starts_with("not built"), "{}", said(&by_pods, path));
    let lacking = super::imported(Tool::Argo, &[("a.yaml", &routed)]);
    assert!(said(&lacking, path).contains("the templates json-ok are not among the files"), "{:?}", lacking.fields);
    // Once users are let in nothing stands apart from them any more.
    let later = routed.replace("      steps:\n", "      steps:\n      - setWeight: 5\n");
    let later = super::imported(Tool::Argo, &[("a.yaml", &later)]);
    assert!(said(&later, "spec.strategy.canary.steps[1].experiment").starts_with("not built"), "{:?}", later.fields);
}
