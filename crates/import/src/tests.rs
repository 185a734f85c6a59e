//! Whole imports, as people see them; that what is made is valid; and that no field is lost.

use super::*;
use tidegate_controller::manifest::files::{Entry, Files};
use tidegate_controller::manifest::installation::Caps;
use tidegate_controller::manifest::{load, oid, raw};

mod field;
mod live;
mod preview;
mod providers;
mod queries;
mod steps;
mod targets;

mod examples;

use examples::*;

/// As `kubectl get deployment,service -o yaml` prints them.
const LIVE: &str = include_str!("examples/live.yaml");

/// Every example, with what its rollout needs to be valid.
fn examples() -> Vec<(Tool, Vec<(&'static str, &'static str)>)> {
    let whole_ab = [AB, &CANARY[1..]].concat();
    vec![
        (Tool::Flagger, CANARY.to_vec()),
        (Tool::Flagger, BLUE_GREEN.to_vec()),
        (Tool::Flagger, whole_ab),
        (Tool::Flagger, COPIES.to_vec()),
        (Tool::Flagger, INGRESS.to_vec()),
        (Tool::Flagger, TRAEFIK.to_vec()),
        (Tool::Flagger, ALIAS.to_vec()),
        (Tool::Flagger, DAEMONS.to_vec()),
        (Tool::Flagger, SKIPPED.to_vec()),
        (Tool::Flagger, MANAGED.to_vec()),
        (Tool::Argo, MANAGED_BY_ARGO.to_vec()),
        (Tool::Argo, STEPS.to_vec()),
        (Tool::Argo, MESH.to_vec()),
        (Tool::Argo, WEIGHTED.to_vec()),
        (Tool::Argo, BY_PODS.to_vec()),
        (Tool::Argo, PREVIEW.to_vec()),
        (Tool::Bare, CANARY[1..].to_vec()),
    ]
}

fn bytes(files: &[(&str, &str)]) -> Vec<(RepoPath, Vec<u8>)> {
    files.iter().map(|(path, text)| (path.parse().unwrap(), text.as_bytes().to_vec())).collect()
}

fn imported(tool: Tool, files: &[(&str, &str)]) -> Imported {
    converted(tool, &bytes(files), "default", None).unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

/// What `tidegate validate` says of the files that were made.
fn told_of(imported: &Imported) -> Vec<String> {
    let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants: {shop: {path: shop, namespaces: [shop], clusters: [home], allow: [triggers]}}\n";
    let made = imported.files.iter().map(|made| (made.path.as_str(), made.text.as_str()));
    let file = |(path, text): (&str, &str)| {
        let bytes = text.as_bytes();
        (path.parse().unwrap(), Entry::File { blob: oid::blob(bytes), bytes: bytes.into() })
    };
    let files: Files = made.chain([("tidegate.yaml", policy)]).map(file).collect();
    let loaded = load::load(&files, &Caps::default());
    loaded.errors().into_iter().chain(&loaded.warnings).map(ToString::to_string).collect()
}

#[test]
fn what_is_made_is_valid() {
    for (tool, files) in examples() {
        let imported = imported(tool, &files);
        assert_eq!(told_of(&imported), Vec::<String>::new(), "{}", manifests(&imported.files));
        assert_eq!(imported.expected, []);
    }
}

/// Without a check a version that fails its users alone is promoted.
#[test]
fn a_rollout_without_a_check_is_told() {
    let note = |tool, files: &[(&str, &str)]| {
        let fields = imported(tool, files).fields;
        let found = fields.into_iter().filter(|note| note.text.starts_with("no check is imported"));
        found.map(|note| format!("{} {:?}", note.object, note.outcome)).collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert_eq!(note(Tool::Flagger, CANARY), none);
    assert_eq!(note(Tool::Argo, STEPS), none);
    let flagger = CANARY[0].1.split("    metrics:\n").next().unwrap();
    let flagger = note(Tool::Flagger, &[("canary.yaml", flagger), CANARY[1]]);
    assert_eq!(flagger, ["Canary shop/podinfo Differs"]);
}

/// Both would say how many pods there are.
#[test]
fn a_number_of_pods_beside_an_autoscaler_is_left_out_and_told() {
    let with = |number: &str| CANARY[1].1.replace("  minReadySeconds: 3\n", &format!("  minReadySeconds: 3\n{number}"));
    for number in ["  replicas: 2\n", "  replicas: 2  # by hand\n", "  replicas:\n    2\n"] {
        let (bare, canary) = (with(number), CANARY[0].1);
        for (tool, files) in [
            (Tool::Bare, vec![("a.yaml", bare.as_str())]),
            (Tool::Flagger, vec![("canary.yaml", canary), ("a.yaml", bare.as_str())]),
        ] {
            let imported = imported(tool, &files);
            assert_eq!(told_of(&imported), Vec::<String>::new(), "{}", manifests(&imported.files));
            assert!(
                !manifests(&imported.files).contains("replicas:\n")
                    && !manifests(&imported.files).contains("replicas: 2")
            );
            let left = "without replicas: the autoscaler podinfo says how many";
            assert!(
                imported.fields.iter().any(|note| note.outcome == FieldOutcome::Differs && note.text.contains(left))
            );
        }
    }
    let kept = imported(Tool::Bare, &[("a.yaml", &with("  replicas: 2\n"))]);
    assert!(manifests(&kept.files).contains("# The application itself"), "a comment stays");
    let alone = with("  replicas: 2\n").replace("kind: Deployment, name: podinfo}", "kind: Deployment, name: other}");
    assert!(manifests(&imported(Tool::Bare, &[("a.yaml", &alone)]).files).contains("replicas: 2"));
}

/// Flagger's names stay where nothing is in their way; what is, is told.
#[test]
fn what_the_layout_primary_refuses_is_imported_in_place() {
    let other =
        COPIES[0].1.split("---\n").nth(1).unwrap().replace("name: podinfo, namespace", "name: other, namespace");
    let other = other.replace("app: podinfo", "app: other");
    let metrics = "apiVersion: v1\nkind: Service\nmetadata: {name: metrics, namespace: shop}\n\
                   spec: {selector: {app: podinfo}, ports: [{port: 9}]}\n";
    let scaler = "autoscalerRef: {kind: HorizontalPodAutoscaler, name: podinfo}\n  service:";
    let cases = [
        (COPIES[0].1.to_owned(), "", "    layout: primary\n"),
        (format!("{}---\n{other}", COPIES[0].1), "with primary it reads the ConfigMap podinfo, of which", ""),
        (format!("{}---\n{metrics}", COPIES[0].1), "with primary this selector would also match the candidate's", ""),
        (COPIES[0].1.replacen("service:", scaler, 1), "", "    layout: primary\n"),
        (COPIES[0].1.replace("provider: contour", "provider: istio"), "", "    layout: primary\n"),
        (
            COPIES[0].1.replace("provider: contour", "provider: traefik"),
            "IngressRoute that leads",
            "    layout: primary\n",
        ),
        (
            COPIES[0].1.replace("provider: contour", "provider: kubernetes"),
            "with the provider kubernetes Flagger goes by no weights, and sets it to 10; nobody is let in",
            "    layout: primary\n",
        ),
    ];
    for (text, why, layout) in cases {
        let imported = imported(Tool::Flagger, &[("a.yaml", &text)]);
        let rollout = &imported.files[0].text;
        assert!(rollout.contains(&format!("    name: podinfo\n{layout}  traffic:")), "{rollout}");
        let pods = if layout.is_empty() { "podinfo-canary-[0-9a-z]+" } else { "podinfo-[0-9a-z]+" };
        assert!(rollout.contains(&format!("errors{{pod=~\\\"{pods}")), "{rollout}");
        assert!(imported.fields.iter().any(|note| note.text.contains(why)), "{why}: {:#?}", imported.fields);
    }
}

#[test]
fn comparisons_are_left_out_where_stable_serves_nobody() {
    let text = MESH[0].1.replace("setWeight: 20", "setWeight: 100");
    let imported = imported(Tool::Argo, &[("a.yaml", &text)]);
    assert_eq!(told_of(&imported), Vec::<String>::new());
    let rollout = &imported.files[0].text;
    assert!(rollout.contains("        - errors\n") && !rollout.contains("latency"), "{rollout}");
}

/// A path with all its places in lists: `spec.analysis.metrics[].name`.
fn pattern(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part.to_owned(), |(_, rest)| format!("]{rest}")))
        .collect::<Vec<_>>()
        .join("[")
}

#[test]
fn every_field_of_the_tables_is_a_field_and_the_other_way_round() {
    let files = [
        ("flagger.yaml", include_str!("examples/flagger-every-field.yaml")),
        ("argo.yaml", include_str!("examples/argo-every-field.yaml")),
    ];
    for document in &input::read(&bytes(&files), "shop").unwrap().documents {
        let tool = if Tool::Flagger.owns(&document.api_version) { Tool::Flagger } else { Tool::Argo };
        let tables = [fields::rows(tool, &document.kind).unwrap(), &fields::TABLES[0].rows];
        let note = fields::each(document, tool, &Notes::default());
        let odd: Vec<&Note> = note.iter().filter(|note| note.outcome == FieldOutcome::NotUnderstood).collect();
        assert_eq!(odd, Vec::<&Note>::new());
        let hit: BTreeSet<String> = note.iter().map(|note| pattern(&note.path)).collect();
        // One kind has all that every object has.
        let wanted = if document.kind == "Canary" { &tables[..] } else { &tables[..1] };
        let missed = wanted.iter().flat_map(|table| table.iter()).map(|row| row.0).filter(|row| !hit.contains(*row));
        assert_eq!(missed.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", document.kind);
    }
}

#[test]
fn every_field_of_the_examples_is_told_once() {
    for (tool, files) in examples() {
        let imported = imported(tool, &files);
        let mut places = BTreeSet::new();
        for Note { file, object, path, text, .. } in &imported.fields {
            assert!(places.insert((file, object, path)), "{file}: {object}: {path} is told of twice");
            assert!(!text.is_empty(), "{path}");
        }
        for document in &input::read(&bytes(&files), "default").unwrap().documents {
            let note: Vec<&Note> = imported
                .fields
                .iter()
                .filter(|note| note.object == format!("{} {}/{}", document.kind, document.namespace, document.name))
                .collect();
            leaves(&document.node.value(), String::new(), &mut |path| {
                let covered = note.iter().any(|note| {
                    note.path.is_empty()
                        || path == note.path
                        || path.strip_prefix(&note.path).is_some_and(|rest| rest.starts_with(['.', '[']))
                });
                // What stands under the old name is told under the new one.
                assert!(covered || path.contains("canaryAnalysis"), "{}: {path} is not told of", document.kind);
            });
        }
    }
}

fn leaves(value: &Value, path: String, see: &mut impl FnMut(&str)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            leaves(value, if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, see);
        }),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| leaves(value, format!("{path}[{n}]"), see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => see(&path),
    }
}

/// The value without what stands at a path; none if there is nothing.
fn without(value: &Value, path: &str) -> Option<Value> {
    let mut value = value.clone();
    let pointer = format!("/{}", path.replace("].", "/").replace(']', "").replace(['.', '['], "/"));
    let (above, last) = pointer.rsplit_once('/')?;
    match value.pointer_mut(above)? {
        Value::Object(map) => map.shift_remove(last).map(drop),
        Value::Array(list) => last.parse().ok().filter(|n| *n < list.len()).map(|n: usize| drop(list.remove(n))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }?;
    Some(value)
}

/// The value with something else at a path.
fn changed(value: &Value, path: &str) -> Option<Value> {
    let mut value = value.clone();
    let pointer = format!("/{}", path.replace("].", "/").replace(']', "").replace(['.', '['], "/"));
    let at = value.pointer_mut(&pointer)?;
    *at = match &*at {
        Value::Bool(yes) => (!yes).into(),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| (number.as_f64().unwrap_or(0.0) + 1.0).into(), |n| (n + 1).into())
        }
        Value::String(text) => format!("x{text}").into(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(value)
}

/// Fields that are rightly called imported and make no difference by themselves.
const SILENT: [(&str, &str); 2] = [
    // Nothing of it is imported; its name only says which one it is.
    ("AlertProvider", "metadata."),
    // It makes a difference with a value, and where the rollout says none.
    ("AnalysisTemplate", "spec.args["),
];

/// What is imported has to go somewhere: without it, or with another value, something else is made or said.
#[test]
fn what_is_called_imported_makes_a_difference() {
    let (mut tried, mut lost) = (0, Vec::new());
    for (tool, files) in examples() {
        let documents = input::read(&bytes(&files), "default").unwrap().documents;
        let again = |changed: Option<(usize, &Value)>| {
            let one = |(n, document): (usize, &Document)| match changed {
                Some((m, value)) if n == m => yaml::written(value),
                _ => yaml::written(&document.node.value()),
            };
            let text = documents.iter().enumerate().map(one).collect::<Vec<_>>().join("---\n");
            let all = converted(tool, &bytes(&[("a.yaml", &text)]), "default", None).ok()?;
            let outcomes: Vec<_> = all.fields.into_iter().map(|note| (note.path, note.outcome)).collect();
            Some(((all.files, all.providers), outcomes))
        };
        let whole = again(None).unwrap();
        for note in imported(tool, &files).fields {
            let Note { object, path, outcome: FieldOutcome::Imported | FieldOutcome::Differs, .. } = &note else {
                continue;
            };
            if SILENT.iter().any(|(kind, start)| object.starts_with(kind) && path.starts_with(start)) {
                continue;
            }
            let is_it = |d: &Document| *object == format!("{} {}/{}", d.kind, d.namespace, d.name);
            let at = documents.iter().position(is_it).unwrap();
            let value = documents[at].node.value();
            let less = without(&value, path).and_then(|less| again(Some((at, &less))));
            let other = changed(&value, path).and_then(|other| again(Some((at, &other))));
            tried += 1;
            if less.is_some_and(|less| less.0 == whole.0) && other.is_none_or(|other| other == whole) {
                lost.push(format!("{object}: {path}"));
            }
        }
    }
    assert_eq!(lost, Vec::<String>::new());
    assert!(tried > 100, "{tried}");
}

#[test]
fn what_is_made_is_in_the_shape_of_a_rollout() {
    for (tool, files) in examples() {
        for made in imported(tool, &files).files.iter().filter(|made| made.path.ends_with("/rollout.yaml")) {
            let parsed = tidegate_controller::manifest::yaml::parse(
                &"a.yaml".parse().unwrap(),
                made.text.as_bytes(),
                tidegate_controller::manifest::yaml::Dialect::Own,
            );
            assert_eq!(parsed.diagnostics, [], "{}", made.text);
            serde_json::from_value::<raw::Rollout>(parsed.documents[0].value()).unwrap();
        }
    }
}

#[test]
fn long_ramps_become_coarse_ones_that_take_as_long() {
    let canary = |analysis: &str| {
        let text = format!(
            "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {{name: a}}\nspec:\n  provider: gatewayapi\n  targetRef: {{kind: Deployment, name: a}}\n  \
             service: {{port: 80}}\n  analysis: {{interval: 1m, threshold: 1, {analysis}}}\n"
        );
        let made = imported(Tool::Flagger, &[("a.yaml", text.as_str())]).files;
        let phases =
            made[0].text.split("  phases:\n").nth(1).unwrap_or_default().split("  progressDeadline").next().unwrap();
        phases.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(canary("stepWeight: 1"), "- name: ramp expose: ramp: step: 3 max: 100 soak: 3m");
    assert_eq!(canary("stepWeight: 60, maxWeight: 50"), "- name: weight-50 expose: weight: 50 soak: 1m");
    assert_eq!(canary("stepWeights: [5, 5, 200, 20]"), "- name: ramp expose: weights: - 5 - 20 soak: 1m");
    assert_eq!(
        canary("stepWeight: 10, stepWeights: [1, 5, 40], maxWeight: 70"),
        "- name: ramp expose: ramp: step: 10 max: 40 soak: 1m",
        "as its scheduler goes"
    );
    let asked = "stepWeight: 20, maxWeight: 30, mirror: true, webhooks: [{name: b, type: confirm-traffic-increase, url: \"http://x.test\"}]";
    let gate = "before: webhook: provider: b";
    assert_eq!(
        canary(asked),
        format!(
            "- name: mirror expose: mirror: 100 soak: 1m - name: weight-20 {gate} expose: weight: 20 soak: 1m \
             - name: weight-30 {gate} expose: weight: 30 soak: 1m"
        )
    );
    let nobody = "- name: preview expose: preview: fullSize soak: 10m promotion: bake: 1m";
    assert_eq!(canary("stepWeight: 0"), nobody);
}

#[test]
fn two_of_one_name_have_files_of_their_own() {
    let one = "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: a.b, namespace: shop}\nspec: {targetRef: {kind: Deployment, name: a}, service: {port: 80}}\n";
    let text = format!("{one}---\n{}", one.replace("a.b", "A_B"));
    let paths: Vec<String> =
        imported(Tool::Flagger, &[("a.yaml", text.as_str())]).files.into_iter().map(|made| made.path).collect();
    assert_eq!(
        paths,
        ["shop/a-b/rollout.yaml", "shop/a-b/a-b.yaml", "shop/a-b-2/rollout.yaml", "shop/a-b-2/a-b-2.yaml"]
    );
    // Any other name than that of the object is told.
    let text = format!("{one}---\n{one}---\n{}", one.replace("a.b", "../../../evil").replace("shop", "../x"));
    let fields = imported(Tool::Flagger, &[("a.yaml", &text.replacen("a.b", "web", 1))]).fields;
    let names: Vec<String> = fields
        .iter()
        .filter(|note| note.outcome == FieldOutcome::Differs && note.path.starts_with("metadata."))
        .map(|note| format!("{}:{}", note.line, note.text.split(", as").next().unwrap()))
        .collect();
    assert_eq!(names, ["8:metadata.name: a-b", "13:metadata.name: evil", "13:metadata.namespace: x"]);
}

#[test]
fn the_page_shows_what_is_made() {
    let page = include_str!("../../../docs/migrating.md");
    let blocks: Vec<&str> = page.split("```").filter_map(|block| block.strip_prefix("yaml\n")).collect();
    let template = "apiVersion: flagger.app/v1beta1\nkind: MetricTemplate\nmetadata: {name: not-found, namespace: shop}\nspec:\n  \
                    query: sum(rate(http_requests_total{pod=~\"{{ target }}-.+\", code=\"404\"}[{{ interval }}]))\n";
    let made = imported(Tool::Flagger, &[("canary.yaml", blocks[0]), ("template.yaml", template)]).files;
    assert_eq!(made[0].text, format!("# Canary podinfo in canary.yaml\n{}", blocks[1]));
}

#[test]
fn an_application_without_a_rollout_gets_its_first() {
    insta::assert_snapshot!("bare", manifests(&imported(Tool::Bare, &CANARY[1..]).files));
    let live = imported(Tool::Bare, &[("live.yaml", LIVE)]);
    assert_eq!(told_of(&live), [""; 0]);
    insta::assert_snapshot!("bare_live", manifests(&live.files));
    let route = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: all, namespace: shop}\nspec: {hosts: [web], http: \
                 [{route: [{destination: {host: web}}]}]}\n";
    let meshed = manifests(&imported(Tool::Bare, &[("live.yaml", LIVE), ("route.yaml", route)]).files);
    assert!(meshed.contains("istio:\n      virtualService: all\n      service: web"), "{meshed}");
    let nothing = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n";
    let wrong = converted(Tool::Bare, &bytes(&[("a.yaml", nothing)]), "default", None).unwrap_err();
    assert!(wrong[0].to_string().contains("a Deployment of apps/v1"), "{wrong:?}");
}
