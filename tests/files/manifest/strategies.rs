//! Strategies: what the phases of a file stand for, and what is wrong with phases that cannot be.

use crate::tree::{PODINFO, PODINFO_SET, Tree, WORKER, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::desired::PhasePlan;
use tidegate::manifest::diagnostic::Code;

/// The example with one phase exchanged.
fn with(path: &str, from: &str, to: &str) -> Tree {
    let mut tree = Tree::example();
    tree.edit(path, from, to);
    tree
}

fn phases(tree: &Tree, rollout: &str) -> Vec<PhasePlan> {
    let loaded = tree.load();
    let found = loaded.rollouts[&rollout.parse().unwrap()].as_ref();
    found.unwrap_or_else(|rejected| panic!("{:#?}", rejected.diagnostics)).plan.phases.clone()
}

fn names(phases: &[PhasePlan]) -> Vec<&str> {
    phases.iter().map(|phase| phase.name.as_str()).collect()
}

/// What a file with this change is refused with.
fn refused(path: &str, from: &str, to: &str) -> String {
    report(&with(path, from, to).load(), Output::Text, Colour::Never).text
}

#[test]
fn a_ramp_is_several_phases_in_the_plan() {
    let found = phases(&with(PODINFO, "expose: {weight: 50}", "expose: {weights: [20, 50]}"), "shop/podinfo");
    assert_eq!(names(&found), ["tenth", "half-20", "half-50", "all"]);
    let found = phases(&with(PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 30, max: 70}}"), "shop/podinfo");
    assert_eq!(names(&found), ["tenth", "half-30", "half-60", "half-70", "all"]);
    let found = phases(&with(WORKER, "expose: {weight: 50}", "expose: {weights: [50, 80]}"), "shop/worker");
    assert_eq!(names(&found), ["quarter", "half-50", "half-80"]);
    assert_eq!(found.iter().map(|phase| phase.before.is_empty()).collect::<Vec<_>>(), [true, false, true]);
}

#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "expose: {weight: 50}", "expose: {weight: 50, weights: [60]}", &[Code::Conflict]),
    (PODINFO, "expose: {weight: 50}", "expose: {weights: [20, 30], ramp: {step: 20, max: 50}}", &[Code::Conflict]),
    (PODINFO, "expose: {weight: 50}", "expose: {weights: []}", &[Code::Schema]),
    (PODINFO, "expose: {weight: 50}", "expose: {weights: [50, 30]}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 50}", "expose: {weights: [30, 30]}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 0, max: 50}}", &[Code::Schema]),
    (PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 60, max: 50}}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 5, max: 50}}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 20}}", &[Code::Schema]),
    (PODINFO, "expose: {weight: 50}", "expose: {ramp: {step: 20, max: 50, by: 10}}", &[Code::UnknownField]),
    (PODINFO, "- name: tenth", "- name: first\n      expose: {ramp: {step: 1, max: 60}}\n    - name: tenth", &[Code::Schema, Code::PhasesGoDown, Code::PhasesGoDown]),
    (PODINFO, "name: half\n      expose: {weight: 50}", "name: a234567890123456789012345678901234567890\n      expose: {weights: [50]}", &[Code::PhaseName]),
    (PODINFO, "name: half\n      expose: {weight: 50}", "name: half-20\n      expose: {weight: 20}\n    - name: half\n      expose: {weights: [30, 50]}\n    - name: half-30\n      expose: {weight: 60}", &[Code::PhaseName]),
    (PODINFO, "- name: tenth", "- name: first\n      expose: {preview: fullSize}\n    - name: second\n      expose: {preview: fullSize}\n    - name: tenth", &[]),
    (PODINFO, "expose: {weight: 50}", "expose: {preview: fullSize}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 50}", "expose: {preview: fullSize, weight: 50}", &[Code::PhasesGoDown, Code::Conflict]),
    (PODINFO, "expose: {weight: 50}", "expose: {preview: true}", &[Code::Schema]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^(a|b)$'}, x-team: shop}", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "{x-canary: always}", "{x-canary: {prefix: al}}", &[Code::Schema, Code::UnknownField]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: ''}}", &[Code::Schema]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: a, X-Canary: b}}", &[Code::UnknownField]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always, team: shop}]", &[Code::Schema]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: 'a;b'}]", &[Code::Schema]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{'a=b': c}]", &[Code::Schema]),
    (PODINFO, "expose: {weight: 50}", "expose: {headers: [{x-canary: {regex: always}}]}", &[]),
    (PODINFO, "expose: {weight: 50}", "expose: {headers: [{x-canary: always, x-team: {regex: a}}]}", &[Code::PhasesGoDown]),
    (WORKER, "expose: {weight: 25}", "expose: {cookies: [{canary: always}], weight: 25}", &[Code::RouterLimit]),
    (PODINFO, "headers: [{x-canary: always}]\n        weight: 10", "mirror: 10", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[]),
    (PODINFO, "expose: {weight: 50}", "expose: {mirror: 50}", &[]),
    (PODINFO, "expose: {weight: 50}", "expose: {mirror: 0}", &[Code::Schema]),
    (PODINFO, "expose: {weight: 50}", "expose: {mirror: 20}\n    - name: less\n      expose: {mirror: 10, weight: 50}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 100}\n      soak: 10s", "expose: {weight: 100}\n    - name: copies\n      expose: {mirror: 50}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 100}\n      soak: 10s", "expose: {weight: 100}\n    - name: team\n      expose: {headers: [{x-team: shop}]}", &[Code::PhasesGoDown]),
    (PODINFO, "expose: {weight: 100}", "expose: {mirror: 50, headers: [{x-team: shop}], weight: 100}", &[]),
    (WORKER, "expose: {weight: 25}", "expose: {mirror: 10, weight: 25}", &[Code::RouterLimit]),
    (WORKER, "expose: {weight: 25}", "expose: {preview: fullSize}", &[Code::RouterLimit]),
    (WORKER, "expose: {weight: 25}", "expose: {ramp: {step: 2, max: 30}}", &[Code::WeightTooFine]),
    (WORKER, "expose: {weight: 25}", "expose: {weights: [10, 25]}", &[Code::WeightTooFine]),
];

#[test]
fn each_mistake_of_a_strategy_has_its_name() {
    for (path, from, to, wanted) in MISTAKES {
        let rollout = if *path == PODINFO { "shop/podinfo" } else { "shop/worker" };
        let loaded = with(path, from, to).load();
        assert_eq!(codes(&loaded, rollout), **wanted, "{to}\n{:#?}", loaded.errors());
    }
}

#[test]
fn mistakes_of_previews_are_shown_with_their_lines() {
    let later = refused(PODINFO, "{weight: 50}", "{preview: fullSize}");
    let more = refused(
        PODINFO,
        "- name: tenth",
        "- name: first\n      expose: {preview: fullSize, weight: 5}\n    - name: tenth",
    );
    let by_pods = refused(WORKER, "expose: {weight: 25}", "expose: {preview: fullSize}");
    let flag = refused(PODINFO, "{weight: 50}", "{preview: true}");
    insta::assert_snapshot!([later, more, by_pods, flag].join("\n"));
}

#[test]
fn mistakes_of_headers_and_cookies_are_shown_with_their_lines() {
    let texts = [
        "headers: [{x-canary: {prefix: al}}]",
        "headers: [{x-canary: 1}]",
        "cookies: [{canary: always, team: shop}]",
        "cookies: [{'a=b': 'c;d'}]",
    ]
    .map(|to| refused(PODINFO, "headers: [{x-canary: always}]", to));
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_route_that_asks_for_a_header_leaves_no_pattern_for_it() {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "{x-canary: always}", "{x-canary: {regex: a}}");
    tree.edit(
        PODINFO_SET,
        "{type: PathPrefix, value: /}",
        "{value: /}\n          headers: [{name: X-Canary, value: always}]",
    );
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::RouteLimit]);
}

#[test]
fn mistakes_of_ramps_are_shown_with_their_lines() {
    let texts = [
        "{weights: [60, 30]}",
        "{ramp: {step: 60, max: 50}}",
        "{ramp: {step: 0, max: 101}}",
        "{weight: 50, ramp: {step: 20, max: 50}}",
    ]
    .map(|to| refused(PODINFO, "{weight: 50}", to));
    insta::assert_snapshot!(texts.join("\n"));
}
