//! Jobs before steps: what is wrong with them is told with its line.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use std::collections::BTreeSet;
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::load;
use tidegate::manifest::object::Kind;

const GATE: &str = "job: smoke.yaml";

/// A Job whose pods carry these labels, and do that.
fn job(labels: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: smoke}}\nspec:\n  template:\n    metadata: {{labels: {labels}}}\n    \
         spec: {{{spec}, containers: [{{name: test, image: \"example.test/tester:1\"}}]}}\n"
    )
}

/// The example, with a gate before its promotion and that file.
fn with(gate: &str, file: &str) -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "promotion: {bake: 10s}", &format!("promotion: {{bake: 10s, before: {{{gate}}}}}"));
    tree.put(&PODINFO.replace("rollout.yaml", "smoke.yaml"), file);
    tree
}

#[test]
fn a_job_is_kept_with_the_plan_and_makes_no_version() {
    let never = job("{app: smoke}", "restartPolicy: Never");
    let load = |tree: &Tree| tree.load().rollouts.remove(&"shop/podinfo".parse().unwrap()).unwrap().unwrap();
    let (without, rollout) = (load(&Tree::example()), load(&with(GATE, &never)));
    let file = "smoke.yaml".parse().unwrap();
    assert_eq!(rollout.plan.promotion.before.job.as_ref(), Some(&file));
    assert_eq!(rollout.plan.jobs[&file]["metadata"]["name"], "smoke");
    assert_eq!(rollout.set.revision, without.set.revision);
    let other = load(&with(GATE, &never.replace("tester:1", "tester:2")));
    assert_ne!(other.plan, rollout.plan);
    assert_eq!(other.set.id, rollout.set.id);
}

#[test]
fn x_18_jobs_are_among_the_kinds_of_an_installation_or_not_made_and_so_are_copies_of_what_is_tracked() {
    let caps = |kinds: &[Kind]| {
        let example = [Kind::Deployment, Kind::Service, Kind::HttpRoute];
        Caps::new(BTreeSet::new(), example.into_iter().chain(kinds.iter().copied()).collect())
    };
    let found = |tree: &Tree, kinds: &[Kind]| {
        let mut loaded = load(&tree.0, &caps(kinds));
        let rollout = loaded.rollouts.remove(&"shop/podinfo".parse().unwrap()).unwrap();
        rollout
            .err()
            .map(|rejected| rejected.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let job = with(GATE, &job("{app: smoke}", "restartPolicy: Never"));
    assert_eq!(found(&job, &[Kind::ConfigMap]), [Code::NotPermitted]);
    assert_eq!(found(&job, &[Kind::ConfigMap, Kind::Job]), []);
    let mut tracks = Tree::example();
    tracks.edit(PODINFO, "name: podinfo}\n  traffic", "name: podinfo, track: {configMaps: [settings]}}\n  traffic");
    let barred = |kinds| found(&tracks, kinds).into_iter().filter(|code| *code == Code::NotPermitted).count();
    // Beside the ConfigMap among the manifests.
    assert_eq!([barred(&[]), barred(&[Kind::ConfigMap])], [2, 0]);
}

#[test]
fn c_34_each_mistake_of_a_job_has_its_name() {
    let never = "restartPolicy: Never";
    let good = job("{app: smoke}", never);
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: smoke}\nstringData: {a: b}\n";
    for (gate, file, wanted) in [
        (GATE, good.clone(), vec![]),
        (GATE, good.replace("batch/v1", "batch/v1beta1"), vec![Code::KindNotAllowed]),
        (GATE, good.replace("kind: Job", "kind: CronJob"), vec![Code::KindNotAllowed]),
        (GATE, good.replace("{name: smoke}", "{generateName: smoke-}"), vec![Code::Schema, Code::Schema]),
        (GATE, good.replace("{name: smoke}", "{name: smoke, namespace: blog}"), vec![Code::CrossNamespace]),
        (GATE, format!("{good}---\n{}", good.replace("name: smoke}", "name: other}")), vec![Code::SeveralDocuments]),
        (GATE, String::new(), vec![Code::SeveralDocuments]),
        (GATE, secret.to_owned(), vec![Code::SecretData]),
        (GATE, job("{app: smoke}", "restartPolicy: Always"), vec![Code::Schema]),
        (GATE, job("{app: smoke}", "hostNetwork: false"), vec![Code::Schema]),
        (GATE, good.replace("spec:\n  template", "spec:\n  suspend: true\n  template"), vec![Code::Schema]),
        (GATE, job("{app: podinfo}", never), vec![Code::SelectorOverlap, Code::SelectorOverlap]),
        (GATE, job("{app: podinfo-canary}", never), vec![Code::SelectorOverlap, Code::SelectorOverlap]),
        ("job: ../smoke.yaml", good.clone(), vec![Code::PathEscape]),
        ("job: absent.yaml", good.clone(), vec![Code::FileMissing]),
        ("job: {file: smoke.yaml}", good.clone(), vec![Code::Schema]),
    ] {
        let loaded = with(gate, &file).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), wanted, "{gate}\n{file}{:#?}", loaded.errors());
    }
}

#[test]
fn mistakes_of_a_job_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let mut listed = Tree::example();
    listed.append(PODINFO_SET, &format!("---\n{}", job("{app: smoke}", "restartPolicy: Never")));
    let texts = [
        shown(&with("job: absent.yaml", "")),
        shown(&with(GATE, &job("{app: podinfo}", "restartPolicy: Always"))),
        shown(&listed),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
