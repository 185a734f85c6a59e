//! What splits requests in the place of Flagger's provider: named, guessed or said by the flag, and what it leaves behind.

use super::*;

/// A Canary with these fields, imported with that flag: the rollout's file, and what is said of its provider.
fn of_provider(fields: &str, flag: Option<&str>) -> (String, Option<Note>) {
    let text = format!(
        "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         targetRef: {{kind: Deployment, name: web}}\n{fields}"
    );
    let imported = converted(Tool::Flagger, &bytes(&[("a.yaml", &text)]), "default", flag).unwrap();
    let mut said = imported.fields.into_iter().filter(|note| note.path == "spec.provider");
    let first = said.next();
    assert_eq!(said.next(), None, "told once");
    (imported.files[0].text.clone(), first)
}

const BY_WEIGHT: &str = "  analysis: {stepWeight: 10}\n";

#[test]
fn a_provider_that_is_not_named_is_told_with_what_it_is_taken_for() {
    let port = "  service: {port: 80}\n";
    for (fields, flag, wanted, router) in [
        (port, None, Some("not said, so taken as gatewayapi: say --provider"), "gatewayAPI:"),
        ("  service: {port: 80, gateways: [mesh]}\n", None, Some("taken as istio for its service.gateways:"), "istio:"),
        ("  service: {port: 80}\n  provider: \"\"\n", None, Some("taken as gatewayapi:"), "gatewayAPI:"),
        ("  service: {port: 80}\n  provider:\n", None, Some("taken as gatewayapi:"), "gatewayAPI:"),
        (
            "  service: {port: 80}\n  routeRef: {name: web}\n",
            None,
            Some("istio if that is not set); imported as"),
            "gatewayAPI:",
        ),
        (port, Some("istio"), None, "istio:"),
        (
            port,
            Some("linkerd"),
            Some("not said, so linkerd, as --provider says; imported as gatewayAPI"),
            "gatewayAPI:",
        ),
        (port, Some("kubernetes"), None, "service: web"),
    ] {
        let (made, said) = of_provider(&format!("{fields}{BY_WEIGHT}"), flag);
        assert!(made.contains(&format!("  traffic:\n    {router}\n")), "{made}");
        let place = |note: &Note| (note.outcome, note.line, note.text.clone());
        match (said.as_ref().map(place), wanted) {
            (Some((outcome, line, text)), Some(wanted)) => {
                assert!(outcome == FieldOutcome::Differs && line >= 4 && text.contains(wanted), "{text}");
            }
            (said, wanted) => assert!(said.is_none() && wanted.is_none(), "{said:?}"),
        }
    }
    let daemons = DAEMONS[0].1.replace("  provider: gatewayapi:v1\n", "");
    let note = imported(Tool::Flagger, &[("a.yaml", &daemons)]).fields;
    assert!(note.iter().all(|note| note.path != "spec.provider"), "nothing splits requests: {note:#?}");
}

/// What leads users past the new route stays as it is when the Canary goes.
#[test]
fn what_a_provider_leaves_that_leads_users_elsewhere_is_told() {
    for (provider, kind) in [
        ("contour", "HTTPProxy"),
        ("linkerd", "TrafficSplit"),
        ("smi:v1alpha2:linkerd", "TrafficSplit"),
        ("osm", "TrafficSplit"),
        ("kuma", "TrafficRoute"),
        ("gatewayapi:v1", ""),
        ("istio", ""),
        ("traefik", ""),
        ("knative", ""),
    ] {
        let fields = format!("  service: {{port: 80}}\n{BY_WEIGHT}");
        let named = of_provider(&format!("  provider: {provider}\n{fields}"), None).1.map(|note| note.text);
        let flagged = of_provider(&fields, Some(provider)).1.map(|note| note.text);
        for text in [named, flagged].map(Option::unwrap_or_default) {
            let left = format!("Flagger's {kind} stays, and leads users past that route");
            assert_eq!(text.contains("stays"), !kind.is_empty(), "{text}");
            assert!(kind.is_empty() || text.contains(&left), "{text}");
        }
    }
}

/// Behind a route all users are led to the new version for one interval more, and it is still judged.
#[test]
fn a_blue_green_behind_a_route_is_judged_with_all_users_before_it_is_promoted() {
    let analysis = |text: &str| text.replacen("    maxWeight: 50\n    stepWeight: 5\n", "    iterations: 3\n", 1);
    let own = "{name: errors, query: 'sum(rate(errors[1m]))', threshold: 1}";
    let text = analysis(TRAEFIK[0].1).replacen(
        "{name: request-success-rate, thresholdRange: {min: 99}, interval: 1m}",
        own,
        1,
    );
    let text = text.replacen("      - {name: request-duration, thresholdRange: {max: 500}, interval: 1m}\n", "", 1);
    let promotion =
        "      soak: 30s\n      checks:\n        - errors\n  promotion:\n    bake: 10s\n    checks:\n      - errors\n";
    for (provider, bakes) in
        [("traefik", true), ("istio", true), ("contour", true), ("nginx", true), ("kubernetes", false)]
    {
        let text = text.replacen("provider: traefik", &format!("provider: {provider}"), 1);
        let imported = imported(Tool::Flagger, &[("a.yaml", &text)]);
        let made = &imported.files[0].text;
        assert_eq!(made.contains(promotion), bakes, "{provider}: {made}");
        assert_eq!(made.contains("bake:"), bakes, "{provider}: {made}");
        if matches!(provider, "traefik" | "istio" | "kubernetes") {
            assert_eq!(told_of(&imported), [""; 0], "{made}");
        }
    }
    let made = &imported(Tool::Flagger, TRAEFIK).files[0].text;
    assert!(!made.contains("promotion:"), "weights are judged on their way: {made}");
}
