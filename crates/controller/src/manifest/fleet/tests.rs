use super::*;

fn fleet(clusters: &str, waves: &str) -> Result<Fleet, Vec<String>> {
    let text =
        format!("apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n{clusters}  waves:\n{waves}");
    parse(&FILE.parse().unwrap(), text.as_bytes()).map_err(|found| found.iter().map(ToString::to_string).collect())
}

const CLUSTERS: &str = "    eu: {instance: eu, uid: u-eu, labels: {tier: prod}}\n    lab: {instance: lab, uid: u-lab, labels: {tier: lab}}\n    \
                        us: {instance: us, uid: u-us, labels: {tier: prod}}\n";

#[test]
fn f_11_each_cluster_is_in_one_wave() {
    let fleet = fleet(
        CLUSTERS,
        "  - {name: first, clusters: {names: [lab]}, soak: 1h}\n  - {name: rest, clusters: {selector: {}}, maxUpdating: 50%, tolerate: 1}\n",
    );
    let fleet = fleet.unwrap();
    let wave = |name: &str| fleet.wave_of(&name.parse().unwrap());
    assert_eq!((wave("lab"), wave("eu"), wave("us"), wave("none")), (Some(0), Some(1), Some(1), None));
    assert_eq!(fleet.waves[1].said.max_updating.of(2), 1);
}

#[test]
fn f_11_what_is_waited_for_is_said_beforehand() {
    let waves = "  - {name: first, clusters: {names: [lab]}, soak: 1h}\n  - {name: rest, clusters: {selector: {}}}\n";
    let fleet = fleet(CLUSTERS, waves).unwrap();
    let all: BTreeSet<ClusterName> = fleet.clusters.keys().cloned().collect();
    let awaits = |name: &str| fleet.awaits(&name.parse().unwrap(), &all);
    assert_eq!(awaits("lab"), None);
    assert_eq!(awaits("eu").as_deref(), Some("wave rest: first has had it for 1h"));
    assert_eq!(awaits("us").as_deref(), Some("wave rest: first has had it for 1h, 1 at a time"));
    assert_eq!(fleet.awaits(&"us".parse().unwrap(), &["us".parse().unwrap()].into()), None);
}

const ALL: &str = "  - {name: all, clusters: {selector: {}}}\n";

/// What is told of these clusters and waves.
fn told(clusters: &str, waves: &str) -> String {
    fleet(clusters, waves).err().unwrap_or_default().join("\n")
}

#[track_caller]
fn tells(clusters: &str, waves: &str, place: &str, words: &str) {
    let told = told(clusters, waves);
    assert!(told.contains(place) && told.contains(words), "{words}: {told}");
}

#[test]
fn f_10_f_11_clusters_and_waves_that_do_not_go_together_tell_their_line() {
    let twice = "  - {name: one, clusters: {names: [lab]}}\n  - {name: two, clusters: {names: [lab]}}\n";
    let same = "  - {name: all, clusters: {names: [lab]}}\n";
    tells(&CLUSTERS.replace("uid: u-us", "uid: u-eu"), ALL, "fleet.yaml:7:29", "eu has the uid");
    tells(&CLUSTERS.replace("instance: us", "instance: eu"), ALL, "fleet.yaml:7:20", "served by the instance eu");
    tells(CLUSTERS, "  - {name: one, clusters: {names: [moon]}}\n", "fleet.yaml:9:36", "no cluster moon");
    tells(CLUSTERS, "  - {name: one, clusters: {names: [lab]}}\n", "fleet.yaml:5:", "eu is in no wave");
    tells(CLUSTERS, &format!("{twice}{ALL}"), "fleet.yaml:10:36", "in the wave one already");
    tells(CLUSTERS, &format!("{same}{ALL}"), "fleet.yaml:10:12", "a wave all already");
    tells("", ALL, "fleet.yaml:4:", "");
    tells(CLUSTERS, "", "fleet.yaml:8:", "");
}

#[test]
fn f_11_a_wave_that_is_none_tells_its_line() {
    let with = |clusters: &str| ALL.replace("{selector: {}}", clusters);
    let typo = "  - {name: canary, clusters: {selector: {matchLabels: {teir: lab}}}}\n";
    let odd = "{selector: {matchExpressions: [{key: tier, operator: In}]}}";
    tells(CLUSTERS, &with(odd), "fleet.yaml:9:", "operator");
    tells(CLUSTERS, &with("{}"), "fleet.yaml:9:", "neither of them");
    tells(CLUSTERS, &with("{selector: {}, names: [lab]}"), "fleet.yaml:9:", "names and selector");
    tells(CLUSTERS, &with("{names: []}"), "fleet.yaml:9:", "names");
    tells(CLUSTERS, &with("{names: [lab, Moon]}"), "fleet.yaml:9:", "Moon");
    tells(CLUSTERS, &with("{selector: {}}, maxUpdating: 0"), "fleet.yaml:9:", "0");
    tells(CLUSTERS, &with("{selector: {}}, tolerate: 3"), "fleet.yaml:9:", "all 3 clusters of the wave all may fail");
    tells(CLUSTERS, &format!("{typo}{ALL}"), "fleet.yaml:9:", "the wave canary has no cluster");
}
