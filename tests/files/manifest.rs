//! Requirements on what people write, against the example repository.

mod amount;
mod daemon;
mod field;
mod fields;
mod fleet;
mod jobs;
mod layouts;
mod lists;
mod measured;
mod mistakes;
mod nodes;
mod others;
mod reach;
mod routers;
mod services;
mod stateful;
mod strategies;
mod teams;
mod told;
mod tracked;
mod variants;

use crate::tree::{PODINFO, PODINFO_SET, POLICY, SITE, Tree, WORKER, WORKER_SET, codes, source_dir};
use std::collections::BTreeMap;
use tidegate::cli::validate::{Colour, Output, report, validate};
use tidegate::manifest::desired::{Rollout, Set};
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::ids::Namespace;
use tidegate::manifest::load::{Emptiness, Loaded};
use tidegate::manifest::{schema, set};
use tidegate::record::schema as record;

fn rollout<'a>(loaded: &'a Loaded, id: &str) -> &'a Rollout {
    loaded.rollouts[&id.parse().unwrap()].as_ref().unwrap()
}

fn podinfo(tree: &Tree) -> Set {
    (*rollout(&tree.load(), "shop/podinfo").set).clone()
}

#[test]
fn the_example_repository_is_fine() {
    let report = validate(&source_dir().join("examples-repo"), Output::Text, Colour::Never);
    assert_eq!((report.text.as_str(), report.code), ("3 of 3 rollouts valid, 0 errors\n", 0));
}

#[test]
fn a_directory_that_is_not_there_is_an_error_of_usage() {
    let report = validate(&source_dir().join("no-such-directory"), Output::Text, Colour::Never);
    assert_eq!(report.code, 2);
    assert!(report.text.starts_with("error: cannot read"), "{}", report.text);
}

/// Every schema, by kind: of what people write, and of the record.
fn schemas() -> BTreeMap<&'static str, serde_json::Value> {
    let mut all = schema::schemas();
    all.insert(record::KIND, record::schema());
    all
}

#[test]
fn the_schemas_in_the_tree_are_those_of_the_types() {
    let dir = source_dir().join("schemas");
    for (kind, schema) in schemas() {
        let file = dir.join(format!("{kind}.schema.json"));
        let wanted = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&file, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == wanted, "{} is stale: run the tests once with UPDATE_SCHEMAS=1", file.display());
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), schemas().len());
}

/// Every place of a schema that describes a field says what it is for.
#[test]
fn every_field_of_the_schemas_is_described() {
    fn undescribed(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
        if let Some(fields) = value.get("properties").and_then(|p| p.as_object()) {
            // A constant is the tag of an enum; the one field of a variant is described by the variant.
            let variant = fields.len() == 1 && value.get("description").is_some();
            let silent =
                fields.iter().filter(|(_, f)| f.get("description").is_none() && f.get("const").is_none() && !variant);
            found.extend(silent.map(|(name, _)| format!("{at}/{name}")));
        }
        match value {
            serde_json::Value::Object(all) => {
                all.iter().for_each(|(key, v)| undescribed(v, &format!("{at}/{key}"), found));
            }
            serde_json::Value::Array(all) => all.iter().for_each(|v| undescribed(v, at, found)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    for (kind, schema) in schemas() {
        undescribed(&schema, kind, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_pinned_set_reads_as_the_files_it_was_pinned_from() {
    let loaded = Tree::example().load();
    for id in ["shop/podinfo", "shop/worker", "blog/site"] {
        let rollout = rollout(&loaded, id);
        let again = set::of_files(rollout.set.files.clone(), &rollout.id.namespace, &rollout.plan.target).unwrap();
        assert_eq!(again, *rollout.set);
    }
}

#[test]
fn a_set_is_built_from_the_list_of_a_rollout() {
    let (tree, namespace) = (Tree::example(), "shop".parse::<Namespace>().unwrap());
    let loaded = tree.load();
    let rollout = rollout(&loaded, "shop/podinfo");
    let build = |list: &str| {
        set::build(&tree.0, &PODINFO.parse().unwrap(), &[list.to_owned()], &namespace, &rollout.plan.target)
    };
    assert_eq!(build("podinfo.yaml").unwrap(), *rollout.set);
    assert_eq!(build("nothing.yaml").unwrap_err()[0].code, Code::FileMissing);
    assert_eq!(build("rollout.yaml").unwrap_err()[0].code, Code::KindNotAllowed);
}

#[test]
fn c_5_the_order_of_keys_defaults_and_nulls_do_not_make_a_version() {
    let before = podinfo(&Tree::example());
    let mut tree = Tree::example();
    tree.edit(PODINFO_SET, "{name: http, containerPort: 9898}", "{protocol: TCP, containerPort: 9898, name: http}");
    tree.edit(PODINFO_SET, "  replicas: 2\n", "  revisionHistoryLimit: 10\n  replicas: 2\n  paused:\n");
    tree.edit(PODINFO_SET, "    spec:\n", "    spec:\n      restartPolicy: Always\n      dnsPolicy: ClusterFirst\n");
    tree.edit(
        PODINFO_SET,
        "  rules:\n    - matches:\n        - path: {type: PathPrefix, value: /}\n      backendRefs:",
        "  rules:\n    - backendRefs:",
    );
    let after = podinfo(&tree);
    assert_eq!((&after.revision, &after.pods), (&before.revision, &before.pods));
    assert_ne!(after.id, before.id);
}

#[test]
fn c_5_what_can_mean_something_makes_a_version() {
    let before = podinfo(&Tree::example());
    for (from, to) in [
        ("limits: {memory: 64Mi}", "limits: {}"),
        ("message: Welcome", "message: welcome"),
        ("image: example.test/podinfo:1", "image: example.test/podinfo:2"),
        ("hostnames: [shop.example.test]", "hostnames: [shop.example.test, b.example.test]"),
        ("{name: http, port: 80, targetPort: http}", "{name: web, port: 80, targetPort: http}"),
    ] {
        let mut tree = Tree::example();
        let after = podinfo(tree.edit(PODINFO_SET, from, to));
        assert_ne!(after.revision, before.revision, "{to}");
    }
}

#[test]
fn c_5_the_hash_of_a_version_stays_what_it_is() {
    // A new tidegate that computes another value starts runs all over: that takes a new tag and a way to migrate.
    let loaded = Tree::example().load();
    let hashes: Vec<String> = loaded
        .rollouts
        .values()
        .map(|r| r.as_ref().unwrap())
        .map(|r| format!("{} {} {} {}", r.id, r.set.id, r.set.revision, r.set.pods))
        .collect();
    insta::assert_snapshot!(hashes.join("\n"));
}

#[test]
fn c_6_a_template_label_makes_new_pods_and_replicas_alone_do_not() {
    let before = podinfo(&Tree::example());
    let mut tree = Tree::example();
    let scaled = podinfo(tree.edit(PODINFO_SET, "replicas: 2", "replicas: 3"));
    assert_eq!(scaled.pods, before.pods);
    assert_ne!(scaled.revision, before.revision);
    let mut tree = Tree::example();
    let labelled =
        podinfo(tree.edit(PODINFO_SET, "      labels: {app: podinfo}", "      labels: {app: podinfo, tier: web}"));
    assert_ne!(labelled.pods, before.pods);
    assert_ne!(labelled.revision, before.revision);
    let mut tree = Tree::example();
    let configured = podinfo(tree.edit(PODINFO_SET, "message: Welcome to the shop", "message: Closed"));
    assert_ne!(configured.pods, before.pods);
    let mut tree = Tree::example();
    let marked = podinfo(tree.edit(PODINFO_SET, "name: podinfo\ndata:", "name: podinfo\n  labels: {a: b}\ndata:"));
    assert_eq!(marked.pods, before.pods);
}

#[test]
fn n_18_former_content_is_the_former_version() {
    let mut tree = Tree::example();
    let a = podinfo(&tree);
    let b = podinfo(tree.edit(PODINFO_SET, "podinfo:1", "podinfo:2"));
    let again = podinfo(tree.edit(PODINFO_SET, "podinfo:2", "podinfo:1"));
    assert_ne!((&a.revision, &a.id), (&b.revision, &b.id));
    assert_eq!((&a.revision, &a.id), (&again.revision, &again.id));
}

#[test]
fn c_29_a_named_port_is_one_of_the_pods() {
    let mut tree = Tree::example();
    let loaded = tree.edit(PODINFO_SET, "port: 80, targetPort: http", "port: 80, targetPort: web").load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::TargetMissing]);
}

/// Whatever leads to the target's pods, with a router and without one.
#[test]
fn c_29_a_named_port_of_any_service_before_the_target_is_one_of_the_pods() {
    let service = |app: &str| {
        let spec = format!("{{selector: {{app: {app}}}, ports: [{{port: 9, targetPort: metrics}}]}}");
        format!("\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: metrics}}\nspec: {spec}\n")
    };
    let text = Tree::example().text(WORKER);
    let [traffic, phases, deadline] =
        ["  traffic:", "  phases:", "  progressDeadline:"].map(|part| text.find(part).unwrap());
    for (kind, size, without) in [
        ("Deployment", "  replicas: 4\n", traffic..deadline),
        ("StatefulSet", "  replicas: 4\n  serviceName: worker\n", traffic..phases),
        ("DaemonSet", "", traffic..phases),
    ] {
        let mut tree = Tree::example();
        tree.edit(WORKER, &text[without], "").edit(WORKER, "kind: Deployment", &format!("kind: {kind}"));
        tree.edit(WORKER_SET, "kind: Deployment", &format!("kind: {kind}")).edit(WORKER_SET, "  replicas: 4\n", size);
        for (app, expected) in [("worker", &[Code::TargetMissing][..]), ("other", &[])] {
            let loaded = tree.clone().append(WORKER_SET, &service(app)).load();
            assert_eq!(codes(&loaded, "shop/worker"), expected, "{kind}, {app}");
        }
    }
    let loaded = Tree::example().append(PODINFO_SET, &service("podinfo")).load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::TargetMissing]);
}

#[test]
fn c_30_a_target_without_a_label_to_tell_its_copy_by_is_refused() {
    let mut tree = Tree::example();
    let from = "  selector:\n    matchLabels: {app: podinfo}";
    let to = "  selector:\n    matchExpressions: [{key: app, operator: In, values: [podinfo]}]";
    assert_eq!(codes(&tree.edit(PODINFO_SET, from, to).load(), "shop/podinfo"), [Code::TargetMissing]);
}

#[test]
fn c_32_two_rollouts_with_one_target_are_both_rejected() {
    let mut tree = Tree::example();
    let (text, set) = (tree.text(WORKER).replace("name: worker, n", "name: other, n"), tree.text(WORKER_SET));
    let loaded = tree.put("teams/shop/b/rollout.yaml", text).put("teams/shop/b/worker.yaml", set).load();
    for id in ["shop/worker", "shop/other"] {
        assert_eq!(codes(&loaded, id), [Code::Conflict], "{id}");
    }
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    let rejected = loaded.rollouts[&"shop/worker".parse().unwrap()].as_ref().unwrap_err();
    insta::assert_snapshot!(rejected.diagnostics[0].to_string());
}

#[test]
fn two_rollouts_on_one_route_are_both_rejected() {
    let mut tree = Tree::example();
    let set = tree.text(PODINFO_SET);
    let route = set.split("---\n").last().unwrap().to_owned();
    let other = set.replace("name: podinfo\n", "name: other\n").replace("app: podinfo", "app: other");
    let other = other.replace("{name: podinfo}", "{name: other}");
    let others: Vec<&str> = other.split("---\n").take(3).collect();
    let route = route.replace("- {name: podinfo, port: 80}", "- {name: other, port: 80}");
    let text =
        tree.text(PODINFO).replace("name: podinfo, n", "name: other, n").replace("name: podinfo}", "name: other}");
    let text = text.replace("service: podinfo", "service: other");
    let loaded = tree
        .put("teams/shop/other/rollout.yaml", text)
        .put("teams/shop/other/podinfo.yaml", others.join("---\n") + "---\n" + &route)
        .load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::RouteConflict]);
    assert_eq!(codes(&loaded, "shop/other"), [Code::RouteConflict]);
}

#[test]
fn x_8_a_tree_in_which_nothing_is_fine_is_not_believed() {
    let mut tree = Tree::example();
    assert_eq!(tree.load().emptiness(), Emptiness::Whole);
    tree.put(PODINFO, "").put(WORKER, "kind: Rollout\n");
    assert_eq!(tree.load().emptiness(), Emptiness::Whole);
    assert_eq!(tree.clone().put(SITE, "[").load().emptiness(), Emptiness::AllFailing);
    assert_eq!(tree.clone().put(POLICY, "[").load().emptiness(), Emptiness::AllFailing);
    assert_eq!(tree.clone().remove(POLICY).load().emptiness(), Emptiness::AllFailing);
    tree.remove(PODINFO).remove(WORKER).remove(SITE);
    assert_eq!(tree.load().emptiness(), Emptiness::NoRollouts);
    assert_eq!(Tree(tidegate::manifest::files::Files::new()).load().emptiness(), Emptiness::NoRollouts);
}

#[test]
fn x_9_the_unit_of_failure_is_one_rollout() {
    let mut tree = Tree::example();
    let before = tree.load();
    let text = tree.text(PODINFO);
    // Whatever line of the file is lost, the others stay what they were.
    for lost in 0..text.lines().count() {
        let broken: Vec<&str> = text.lines().enumerate().filter(|(i, _)| *i != lost).map(|(_, line)| line).collect();
        let after = tree.put(PODINFO, broken.join("\n")).load();
        for id in ["shop/worker", "blog/site"] {
            assert_eq!(rollout(&after, id), rollout(&before, id), "line {lost}");
        }
    }
}

#[test]
fn x_10_an_unknown_version_is_rejected_by_itself() {
    for version in ["tidegate.io/v2", "argoproj.io/v1alpha1"] {
        let mut tree = Tree::example();
        let loaded = tree.edit(PODINFO, "tidegate.io/v1alpha1", version).load();
        let found: Vec<Code> = match version {
            "tidegate.io/v2" => codes(&loaded, "shop/podinfo"),
            _ => loaded.unnamed.iter().map(|d| d.code).collect(),
        };
        assert_eq!(found, [Code::ApiVersion], "{version}");
        assert_eq!(codes(&loaded, "shop/worker"), []);
    }
}

#[test]
fn a_check_that_no_phase_names_is_a_warning() {
    let mut tree = Tree::example();
    let check = "  checks: {errors: {prometheus: {provider: main, query: q}, max: 1}}\n  progressDeadline: 2m";
    let loaded = tree.edit(PODINFO, "  progressDeadline: 2m", check).load();
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    assert_eq!(loaded.warnings.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::CheckMissing]);
}

#[test]
fn a_rollout_under_a_name_that_does_not_count_is_told_of() {
    let mut tree = Tree::example();
    let text = tree.text(WORKER);
    for name in ["rollout.yml", "Rollout.yaml", "worker-rollout.yaml", "a.yaml"] {
        tree.put(&format!("teams/shop/more/{name}"), &text);
    }
    tree.put("teams/shop/more/rollout.yaml/worker.yaml", "a: 1\n").put("teams/shop/more/NOTES.md", &text);
    let loaded = tree.load();
    assert_eq!(loaded.errors(), Vec::<&tidegate::manifest::diagnostic::Diagnostic>::new());
    insta::assert_snapshot!(loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_selector_that_would_catch_the_candidate_is_an_overlap() {
    let service = |labels: &str| {
        format!("\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: all}}\nspec: {{selector: {{{labels}}}}}\n")
    };
    let mut tree = Tree::example();
    tree.edit(PODINFO_SET, "      labels: {app: podinfo}", "      labels: {app: podinfo, tier: web}");
    assert_eq!(codes(&tree.clone().append(PODINFO_SET, &service("app: podinfo")).load(), "shop/podinfo"), []);
    let overlap = tree.clone().append(PODINFO_SET, &service("tier: web")).load();
    assert_eq!(codes(&overlap, "shop/podinfo"), [Code::SelectorOverlap]);
    let budget = "\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: 1, selector: {matchLabels: {app: podinfo}}}\n";
    let loaded = tree.append(PODINFO_SET, budget).load();
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    assert_eq!(loaded.warnings.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::NotCovered]);
}

#[test]
fn names_have_room_for_the_suffix() {
    let long = "p".repeat(57);
    let mut tree = Tree::example();
    let set = tree.text(PODINFO_SET).replace("name: podinfo\n", &format!("name: {long}\n"));
    let set = set
        .replace("{name: podinfo}", &format!("{{name: {long}}}"))
        .replace("{name: podinfo, port", &format!("{{name: {long}, port"));
    let text = tree.text(PODINFO).replace("name: podinfo}", &format!("name: {long}}}"));
    let text = text
        .replace("service: podinfo", &format!("service: {long}"))
        .replace("httpRoute: podinfo", &format!("httpRoute: {long}"));
    let loaded = tree.put(PODINFO, text).put(PODINFO_SET, set).load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::NameTooLong; 3]);
    let mut tree = Tree::example();
    let taken = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: podinfo-canary}\n";
    assert_eq!(codes(&tree.append(PODINFO_SET, taken).load(), "shop/podinfo"), [Code::Conflict]);
}

#[test]
fn a_route_keeps_the_limits_of_the_gateway_api_once_it_is_split() {
    let rule = "    - matches:\n        - path: {type: PathPrefix, value: /}\n      backendRefs:\n        - {name: podinfo, port: 80}\n";
    let with = |rules: String| {
        let mut tree = Tree::example();
        tree.edit(PODINFO_SET, rule, &rules);
        codes(&tree.load(), "shop/podinfo")
    };
    assert_eq!(with(rule.repeat(8)), []);
    assert_eq!(with(rule.repeat(9)), [Code::RouteLimit]);
    let backends = |n: usize| rule.to_owned() + &"        - {name: podinfo, port: 80}\n".repeat(n - 1);
    assert_eq!(with(backends(8)), []);
    assert_eq!(with(backends(9)), [Code::RouteLimit]);
    let matches =
        |n: usize| rule.replace("        - path", &("        - path: {value: /x}\n".repeat(n - 1) + "        - path"));
    assert_eq!(with(matches(64)), []);
    assert_eq!(with(matches(65)), [Code::RouteLimit; 2]);
    let named = rule.replace("    - matches", "    - name: a\n      matches");
    assert_eq!(with(named.repeat(2)), [Code::RouteLimit]);
    let headers = |n: usize| {
        let list: Vec<String> = (0..n).map(|i| format!("{{name: h{i}, value: v}}")).collect();
        rule.replace("{type: PathPrefix, value: /}", &format!("{{value: /}}\n          headers: [{}]", list.join(", ")))
    };
    assert_eq!(with(headers(15)), []);
    assert_eq!(with(headers(16)), [Code::RouteLimit]);
    let same = rule.replace("value: /}", "value: /}\n          headers: [{name: X-Canary, value: never}]");
    assert_eq!(with(same), []);
    let pattern = rule
        .replace("value: /}", "value: /}\n          headers: [{name: X-Canary, value: .*, type: RegularExpression}]");
    assert_eq!(with(pattern), [Code::RouteLimit]);
}

fn broken() -> Loaded {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "approval: pullRequest", "aproval: pullRequest");
    tree.edit(PODINFO, "soak: 10s", "soak: 10 s");
    tree.edit(PODINFO, "weight: 100", "weight: 100.5");
    tree.edit(PODINFO, "revert: pullRequest", "revert: no");
    tree.edit(WORKER, "weight: 25", "weight: 10");
    tree.edit(SITE, "metadata: {name: site, namespace: blog}", "metadata: {name: site, namespace: blog");
    tree.entry("teams/blog/site/manifests/link.yaml", tidegate::manifest::files::Entry::Symlink);
    tree.load()
}

#[test]
fn findings_are_shown_with_their_lines() {
    insta::assert_snapshot!(report(&broken(), Output::Text, Colour::Never).text);
}

#[test]
fn texts_say_what_is_meant() {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "soak: 10s", "soak: 10").edit(PODINFO, "bake: 10s", "bake: '10'");
    tree.edit(WORKER_SET, "replicas: 4", "replicas: -4");
    let secret = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    tree.append(WORKER_SET, secret);
    let text = report(&tree.load(), Output::Text, Colour::Never).text;
    assert!(!text.contains("hunter2"));
    insta::assert_snapshot!(text);
}

#[test]
fn findings_are_printed_for_programs() {
    insta::assert_snapshot!(report(&broken(), Output::Json, Colour::Never).text);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let (plain, styled) =
        (report(&broken(), Output::Text, Colour::Never), report(&broken(), Output::Text, Colour::Always));
    assert_ne!(plain.text, styled.text);
    assert_eq!(anstream::adapter::strip_str(&styled.text).to_string(), plain.text);
    assert_eq!((plain.code, styled.code), (1, 1));
}
