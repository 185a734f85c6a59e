//! Rollouts of Argo Rollouts: whom their steps let in, what their analyses take, and whose pods they are.

use super::*;

/// A Rollout with this spec beside its template and what else is in the file, imported.
fn rollout(spec: &str, beside: &str) -> Imported {
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web, namespace: shop}}\nspec:\n  replicas: 5\n  {spec}\n{beside}"
    );
    imported(Tool::Argo, &[("a.yaml", &text)])
}

const POD: &str = "selector: {matchLabels: {app: web}}\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: a}]}}";

/// A Rollout of a template with these fields of its canary.
fn canary(fields: &str, beside: &str) -> Imported {
    rollout(&format!("{POD}\n  strategy:\n    canary:\n      stableService: web\n      {fields}"), beside)
}

/// A file of the rollout, without breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is said of a field.
fn said(imported: &Imported, path: &str) -> String {
    let note = imported.fields.iter().find(|note| note.path == path);
    note.map(|note| format!("{}: {}", note.outcome.words(), note.text)).unwrap_or_default()
}

#[test]
fn headers_are_alternatives_with_istio_alone() {
    let steps = "steps: [{setHeaderRoute: {name: h, match: [{headerName: x-a, headerValue: {exact: one}}, {headerName: x-b, headerValue: \
                 {exact: two}}]}}, {pause: {duration: 5m}}, {setWeight: 10}]";
    for (router, any) in [
        ("alb: {ingress: web, servicePort: 80}", false),
        ("apisix: {route: {name: web}}", false),
        ("plugins: {argoproj-labs/gatewayAPI: {httpRoute: web}}", false),
        ("istio: {virtualService: {name: web}}", true),
    ] {
        let made = flat(&canary(&format!("trafficRouting: {{{router}}}\n      {steps}"), "").files[0].text);
        let wanted = if any { "headers: - x-a: one - x-b: two" } else { "headers: - x-a: one x-b: two soak" };
        assert!(made.contains(wanted), "{router}: {made}");
    }
}

#[test]
fn users_by_annotations_of_the_canary_ingress_are_let_in_with_the_first_phase() {
    let with = |annotations: &str, steps: &str| {
        let routing = format!("trafficRouting: {{nginx: {{stableIngress: web, {annotations}}}}}");
        canary(&format!("{routing}\n      steps: [{steps}]"), "")
    };
    let steps = "{setWeight: 5}, {pause: {duration: 1h}}, {setWeight: 50}";
    let nginx = "spec.strategy.canary.trafficRouting.nginx";
    for (annotations, exposed) in [
        (
            "additionalIngressAnnotations: {canary-by-header: X-Canary, canary-by-header-value: iwantsit}",
            "weight: 5 headers: - X-Canary: iwantsit soak: 1h",
        ),
        (
            "additionalIngressAnnotations: {canary-by-header: X-Canary}",
            "weight: 5 headers: - X-Canary: always soak: 1h",
        ),
        (
            "canaryIngressAnnotations: {nginx.ingress.kubernetes.io/canary-by-header: x-a, nginx.ingress.kubernetes.io/canary-by-header-pattern: a.*, \
             nginx.ingress.kubernetes.io/canary-by-cookie: tester}",
            "weight: 5 headers: - x-a: regex: \"a.*\" cookies: - tester: always soak: 1h",
        ),
    ] {
        let imported = with(annotations, steps);
        let made = flat(&imported.files[0].text);
        assert!(made.contains(&format!("expose: {exposed}")), "{made}");
        let note =
            imported.fields.iter().filter(|note| note.path.starts_with(nginx) && note.path.contains("canary-by"));
        let note: Vec<FieldOutcome> = note.map(|note| note.outcome).collect();
        assert!(
            !note.is_empty() && note.iter().all(|outcome| *outcome == FieldOutcome::Imported),
            "{annotations}: {note:?}"
        );
    }
    let none = with("additionalIngressAnnotations: {canary-by-header: X-Canary}", "{pause: {}}");
    let text = said(&none, &format!("{nginx}.additionalIngressAnnotations.canary-by-header"));
    assert!(text.starts_with("not built: no phase lets anybody in"), "{text}");
}

/// It has another name than that of a run, and goes before it.
#[test]
fn argos_canary_ingress_is_told_with_the_command_that_deletes_it() {
    let note = |field: &str, ingresses: &str| {
        let routing = format!("trafficRouting: {{nginx: {{{field}: {ingresses}}}}}");
        let imported = canary(&format!("{routing}\n      steps: [{{setWeight: 5}}]"), "");
        said(&imported, &format!("spec.strategy.canary.trafficRouting.nginx.{field}"))
    };
    let one = note("stableIngress", "front");
    assert!(one.starts_with("differs: spec.traffic.nginx. Argo's canary Ingress stays"), "{one}");
    assert!(one.contains("deleted, kubectl --namespace shop delete ingress web-front-canary (docs"), "{one}");
    let all = note("stableIngresses", "[front, back]");
    assert!(all.starts_with("differs: spec.traffic.nginx: the first of them; a rollout splits one. Argo's"), "{all}");
    assert!(all.contains("delete ingress web-front-canary web-back-canary (docs"), "{all}");
    assert_eq!(note("stableIngress", "\"$(reboot)\""), "imported: spec.traffic.nginx", "no command has that in it");
}

#[test]
fn a_deployment_that_is_referred_to_has_the_pods_that_the_rollout_says() {
    let deployment = |replicas: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-d, namespace: shop}}\nspec:\n  {replicas}\n  {POD}\n{SERVICE}"
        )
    };
    let spec = "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web-d}\n  strategy: {blueGreen: {activeService: web}}";
    for replicas in ["replicas: 0", "replicas: 3", "minReadySeconds: 1"] {
        let imported = rollout(spec, &deployment(replicas));
        assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
        assert!(imported.files[1].text.contains("replicas: 5\n"), "{}", imported.files[1].text);
        assert_eq!(said(&imported, "spec.replicas"), "imported: the Deployment web-d, in place of its own number");
        let note = imported.fields.iter().find(|note| note.object == "Deployment shop/web-d").unwrap();
        assert!(note.outcome == FieldOutcome::Differs && note.text.contains("with replicas: 5"), "{note:?}");
    }
    let alone = rollout(spec, "");
    assert_eq!(said(&alone, "spec.replicas"), "done otherwise: say it in the Deployment web-d");
    let scaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop}\nspec: {scaleTargetRef: \
                  {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}, minReplicas: 2, maxReplicas: 6}\n";
    let scaled = rollout(spec, &format!("{}{scaler}", deployment("replicas: 0")));
    assert!(!scaled.files[1].text.contains("  replicas:"), "{}", scaled.files[1].text);
    assert_eq!(said(&scaled, "spec.replicas"), "not needed: the autoscaler web says how many");
}

/// The Service of the stable version.
const SERVICE: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";

/// What beside a Rollout scales that, or the Deployment in its place.
fn scaled(of: &str, scaler: &str, bounds: &str) -> String {
    format!(
        "{SERVICE}---\n{scaler}\nmetadata: {{name: web, namespace: shop}}\nspec: {{scaleTargetRef: {{{of}, name: web}}, {bounds}}}\n"
    )
}

/// A share has to be a whole pod of the fewest that there may be.
#[test]
fn the_minimum_of_an_autoscaler_is_what_weights_by_pods_are_of() {
    let (own, made) = ("apiVersion: argoproj.io/v1alpha1, kind: Rollout", "apiVersion: apps/v1, kind: Deployment");
    let plain = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler";
    let keda = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject";
    let triggers = "triggers: [{type: kafka, metadata: {topic: a}}]";
    for (beside, weight) in [
        (SERVICE.to_owned(), 17),
        (scaled(own, plain, "minReplicas: 2, maxReplicas: 9"), 34),
        (scaled(made, plain, "minReplicas: 2, maxReplicas: 9"), 34),
        (scaled(own, plain, "maxReplicas: 9"), 50),
        (scaled(own, keda, &format!("minReplicaCount: 3, {triggers}")), 25),
        (scaled(own, keda, triggers), 50),
    ] {
        let imported = canary("steps: [{setWeight: 5}, {setWeight: 60}]", &beside);
        assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
        let rollout = flat(&imported.files[0].text);
        assert!(rollout.contains(&format!("expose: weight: {weight} - name: weight-60")), "{beside}: {rollout}");
    }
}

/// Where all are let in there is nobody left for headers, and nothing to copy.
#[test]
fn what_argo_does_beside_all_requests_is_no_phase() {
    let header = "setHeaderRoute: {name: h, match: [{headerName: x-a, headerValue: {exact: one}}]}";
    let mirror = "setMirrorRoute: {name: m, match: [{path: {prefix: /}}], percentage: 50}";
    let steps = format!("steps: [{{setWeight: 100}}, {{{header}}}, {{{mirror}}}, {{pause: {{duration: 5m}}}}]");
    let imported = canary(&format!("trafficRouting: {{istio: {{virtualService: {{name: web}}}}}}\n      {steps}"), "");
    let made = flat(&imported.files[0].text);
    assert!(made.contains("phases: - name: weight-100 expose: weight: 100 soak: 5m"), "{made}");
    assert!(!made.contains("headers:") && !made.contains("mirror:"), "{made}");
    for field in ["steps[1].setHeaderRoute", "steps[2].setMirrorRoute"] {
        let note = said(&imported, &format!("spec.strategy.canary.{field}"));
        assert_eq!(note, "not needed: all requests go to the new version by then", "{field}");
    }
}

/// An AnalysisTemplate whose only metric has these fields.
fn template(metric: &str, args: &str) -> String {
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: t, namespace: shop}}\nspec:\n  args: [{args}]\n  metrics:\n  \
         - {{name: errors, interval: 1m, successCondition: \"result[0] <= 5\", {metric}}}\n"
    )
}

/// A canary of two steps with an analysis beside them, whose only metric has these fields.
fn measured(steps: &str, metric: &str, args: &str) -> Imported {
    let analysis = "analysis: {templates: [{templateName: t}]}";
    canary(&format!("{analysis}\n      steps: [{steps}]"), &template(metric, args))
}

/// A check that tolerates all of its values could never be bad.
#[test]
fn an_analysis_of_a_step_tolerates_fewer_values_than_it_takes() {
    let query = "provider: {prometheus: {address: \"http://p:9090\", query: 'sum(rate(e[1m]))'}}";
    for (counts, made, note) in [
        ("failureLimit: 1", "max: 5 interval: 1m", "differs: left out: of one value none may be bad"),
        ("count: 3, failureLimit: 2", "minSamples: 3 failureLimit: 2 interval: 1m", "imported: failureLimit"),
        ("count: 3, failureLimit: 3", "minSamples: 3 failureLimit: 2 interval: 1m", "differs: failureLimit of the"),
        ("count: 3, failureLimit: 999", "minSamples: 3 failureLimit: 2 interval: 1m", "differs: failureLimit of the"),
        ("count: 3, failureLimit: 1000", "minSamples: 3 interval: 1m", "not understood: its value is left out"),
    ] {
        let beside = format!("{SERVICE}{}", template(&format!("{counts}, {query}"), ""));
        let imported = canary("steps: [{setWeight: 20}, {analysis: {templates: [{templateName: t}]}}]", &beside);
        assert_eq!(told_of(&imported), [""; 0], "{}", manifests(&imported.files));
        let rollout = flat(&imported.files[0].text);
        assert!(rollout.contains(made), "{counts}: {rollout}");
        let text = said(&imported, "spec.metrics[0].failureLimit");
        assert!(text.starts_with(note), "{counts}: {text}");
    }
}

#[test]
fn an_analysis_beside_the_steps_tolerates_what_it_did() {
    let query = "provider: {prometheus: {address: \"http://p:9090\", query: 'sum(rate(e[1m]))'}}";
    let long = "{setWeight: 20}, {pause: {duration: 1h}}, {setWeight: 50}";
    let short = "{setWeight: 20}, {pause: {duration: 2m}}, {setWeight: 50}";
    let limit = format!("failureLimit: 2, {query}");
    let (kept, cut) = (measured(long, &limit, ""), measured(short, &limit, ""));
    let made = flat(&kept.files[0].text);
    assert!(
        made.contains("max: 5 minSamples: 3 failureLimit: 2") || made.contains("minSamples: 3 failureLimit: 2 max: 5"),
        "{made}"
    );
    assert!(made.contains("weight: 20 soak: 1h") && made.contains("weight: 50 soak: 3m"), "{made}");
    let path = "spec.metrics[0].failureLimit";
    assert!(said(&kept, path).starts_with("differs: failureLimit of the check, in each phase anew"));
    // One that no phase has the time for would tolerate all values.
    assert!(!cut.files[0].text.contains("failureLimit"), "{}", cut.files[0].text);
    let note = said(&cut, path);
    assert!(
        note.starts_with("differs: left out: each phase judges its own values, and none stays for 3, of which"),
        "{note}"
    );
    assert_eq!(
        said(&measured(long, &format!("failureLimit: 0, {query}"), ""), path),
        "imported: failureLimit of the check"
    );
}

#[test]
fn an_address_with_arguments_is_that_of_their_values() {
    let metric = "provider: {prometheus: {address: \"http://p:{{ args.port }}\", query: 'sum(rate(e[1m]))'}}";
    let known = measured("{setWeight: 20}", metric, "{name: port, value: \"9091\"}");
    assert_eq!(known.providers["main"]["prometheus"]["url"], "http://p:9091");
    let path = "spec.metrics[0].provider.prometheus.address";
    assert!(said(&known, path).starts_with("imported"));
    let note = said(&measured("{setWeight: 20}", metric, "{name: port}"), path);
    assert!(
        note.starts_with("differs: spec.providers of the Installation, where you have to write it: {{ args.port }}"),
        "{note}"
    );
}

#[test]
fn a_pause_that_is_rounded_is_told() {
    for (duration, note) in [("500ms", "differs: times are whole seconds here: 1s"), ("90s", ""), ("\"30\"", "")] {
        let imported = canary(&format!("steps: [{{setWeight: 20}}, {{pause: {{duration: {duration}}}}}]"), "");
        assert_eq!(said(&imported, "spec.strategy.canary.steps[1].pause.duration"), note);
    }
}
