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
fn f_10_f_11_what_does_not_go_together_tells_its_line() {
    let all = "  - {name: all, clusters: {selector: {}}}\n";
    let table = [
        (CLUSTERS.replace("uid: u-us", "uid: u-eu"), all.to_owned(), "fleet.yaml:7:29", "eu has the uid"),
        (
            CLUSTERS.replace("instance: us", "instance: eu"),
            all.to_owned(),
            "fleet.yaml:7:20",
            "served by the instance eu",
        ),
        (
            CLUSTERS.to_owned(),
            "  - {name: one, clusters: {names: [moon]}}\n".to_owned(),
            "fleet.yaml:9:36",
            "no cluster moon",
        ),
        (
            CLUSTERS.to_owned(),
            "  - {name: one, clusters: {names: [lab]}}\n".to_owned(),
            "fleet.yaml:5:",
            "eu is in no wave",
        ),
        (
            CLUSTERS.to_owned(),
            format!(
                "  - {{name: one, clusters: {{names: [lab]}}}}\n  - {{name: two, clusters: {{names: [lab]}}}}\n{all}"
            ),
            "fleet.yaml:10:36",
            "in the wave one already",
        ),
        (
            CLUSTERS.to_owned(),
            format!("  - {{name: all, clusters: {{names: [lab]}}}}\n{all}"),
            "fleet.yaml:10:12",
            "a wave all already",
        ),
        (
            CLUSTERS.to_owned(),
            all.replace("{}", "{matchExpressions: [{key: tier, operator: In}]}"),
            "fleet.yaml:9:",
            "operator",
        ),
        (CLUSTERS.to_owned(), all.replace("}}}", "}}, maxUpdating: 0}"), "fleet.yaml:9:", "0"),
        (CLUSTERS.to_owned(), all.replace("{selector: {}}", "{}"), "fleet.yaml:9:", ""),
        (String::new(), all.to_owned(), "fleet.yaml:4:", ""),
        (CLUSTERS.to_owned(), String::new(), "fleet.yaml:8:", ""),
    ];
    let mut missed = Vec::new();
    for (clusters, waves, place, words) in table {
        let found = fleet(&clusters, &waves).err().unwrap_or_default();
        if !found.iter().any(|it| it.contains(place) && it.contains(words)) {
            missed.push(format!("{place} {words}: {found:?}"));
        }
    }
    assert_eq!(missed, [""; 0]);
}
