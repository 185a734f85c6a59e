//! How much is read, kept and told of one tenant: whoever has more stops for itself.

use crate::tree::{Tree, codes};
use std::fmt::Write as _;
use std::sync::LazyLock;
use tidegate::manifest::diagnostic::{Code, MOST};
use tidegate::manifest::load::Loaded;
use tidegate::manifest::set::{MAX_TENANT_VALUES, MAX_VALUES};

/// A ConfigMap of 30,000 short keys, each of which counts as its value does.
const KEYS: usize = 30_000;
const VALUES: usize = 2 * KEYS;
static DATA: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata:\n");
    (0..KEYS).for_each(|n| writeln!(text, "  k{n}: v").unwrap());
    text
});

fn rollout(name: &str, files: &str) -> String {
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec: {{manifests: [{files}], target: none}}\n"
    )
}

fn others_go_on(loaded: &Loaded) {
    assert_eq!(codes(loaded, "blog/site"), [], "{:#?}", loaded.errors());
}

#[test]
fn attack_116_a_set_with_more_values_than_are_read_stops_for_itself() {
    let mut tree = Tree::example();
    tree.put("teams/shop/z/rollout.yaml", rollout("z", "all"));
    for n in 0..20 {
        tree.put(&format!("teams/shop/z/all/{n:02}.yaml"), DATA.replace("NAME", &format!("c{n}")));
    }
    let loaded = tree.load();
    assert!(codes(&loaded, "shop/z").contains(&Code::TooLarge));
    let errors = loaded.rollouts[&"shop/z".parse().unwrap()].as_ref().unwrap_err();
    let told = errors.diagnostics.iter().find(|told| told.code == Code::TooLarge).unwrap();
    assert_eq!(told.path.as_str(), format!("teams/shop/z/all/{:02}.yaml", MAX_VALUES / VALUES), "{told}");
    assert_eq!(codes(&loaded, "shop/podinfo"), [], "what is read before and needs little");
    others_go_on(&loaded);
}

#[test]
fn attack_116_a_file_counts_each_time_that_it_is_listed() {
    let mut tree = Tree::example();
    for (name, file) in [("z", DATA.replace("NAME", "z")), ("y", format!("# {}\n", "x".repeat(1_000_000)))] {
        tree.put(&format!("teams/shop/{name}/all.yaml"), file);
    }
    for n in 0..30 {
        tree.put(&format!("teams/shop/z/{n:02}.rollout.yaml"), rollout(&format!("z{n}"), "all.yaml"));
    }
    let loaded = tree.load();
    // Those that are read lay claim to the same object; all others were not read.
    let all = (0..30).map(|n| codes(&loaded, &format!("shop/z{n}")));
    let read = all.clone().filter(|codes| !codes.contains(&Code::TooLarge)).count();
    assert_eq!(read, MAX_TENANT_VALUES / (VALUES + 20));
    others_go_on(&loaded);
    // A file of few values is read as one of many: its text is kept, too.
    for n in 0..100 {
        tree.put(&format!("teams/shop/y/{n:02}.rollout.yaml"), rollout(&format!("y{n}"), "all.yaml"));
        tree.put(&format!("teams/shop/z/{n:02}.rollout.yaml"), "");
    }
    let loaded = tree.load();
    let too_large = (0..100).filter(|n| codes(&loaded, &format!("shop/y{n}")).contains(&Code::TooLarge)).count();
    // What lies before has a share of it.
    let all = MAX_TENANT_VALUES / (1_000_000 / 128);
    assert!((all - 1..=all).contains(&(100 - too_large)), "{too_large} of 100");
    others_go_on(&loaded);
}

#[test]
fn attack_116_of_many_rollouts_with_many_mistakes_each_tells_its_first() {
    let mut tree = Tree::example();
    let fields: String = (0..110).map(|n| format!("  f{n}: 1\n")).collect();
    for n in 0..300 {
        let nameless = if n % 2 == 0 { "" } else { "# " };
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata:\n  {nameless}name: w{n}\n  namespace: shop\n\
             spec:\n  manifests: [w.yaml]\n  target: none\n{fields}"
        );
        tree.put(&format!("teams/shop/w/{n:03}.rollout.yaml"), text);
    }
    let loaded = tree.load();
    let of_rollouts = loaded.rollouts.values().filter_map(|one| one.as_ref().err()).map(|it| it.diagnostics.len());
    assert!(of_rollouts.clone().all(|told| told > 0) && of_rollouts.count() == 150);
    let told = loaded.errors().len();
    assert!((300..=300 + MOST).contains(&told), "{told} mistakes are kept");
    others_go_on(&loaded);
}

#[test]
fn attack_116_what_rollouts_have_in_common_is_told_of_a_few() {
    let mut tree = Tree::example();
    let shared = |n: usize, m: usize| {
        let (least, most) = (n.min(m), n.max(m));
        format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c-{least}-{most}}}}}\n")
    };
    for n in 0..40 {
        let objects: String = (0..40).map(|m| shared(n, m)).collect();
        tree.put(&format!("teams/shop/s/{n:02}.yaml"), objects);
        tree.put(&format!("teams/shop/s/{n:02}.rollout.yaml"), rollout(&format!("s{n}"), &format!("{n:02}.yaml")));
    }
    let loaded = tree.load();
    let told: Vec<usize> = (0..40).map(|n| codes(&loaded, &format!("shop/s{n}")).len()).collect();
    assert!(told.iter().all(|told| (1..=10).contains(told)), "{told:?}");
    others_go_on(&loaded);
}
