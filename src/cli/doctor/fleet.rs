//! Whether the cluster is the one that the fleet calls so.

use super::checks::{Check, Found};
use crate::manifest::ids::{ClusterName, InstanceName};
use crate::manifest::load::Loaded;

/// What `fleet.yaml` says of the cluster that an instance serves; nothing where there is none.
pub(super) fn check(loaded: &Loaded, cluster: &ClusterName, instance: &InstanceName, uid: &str) -> Option<Check> {
    let fleet = loaded.fleet.as_ref().ok()?.as_ref()?;
    let (name, act) =
        ("fleet", "mend fleet.yaml, or spec.instance and the cluster's name of the Installation (docs/fleet.md)");
    let broken = |says: &str| Some(Check::new(Found::Broken, name, says, act));
    if let Some(why) = fleet.mistaken(cluster, instance, uid) {
        return broken(&why);
    }
    let Some(wave) = fleet.wave_of(cluster).and_then(|i| fleet.waves.get(i)) else {
        return broken(&format!("fleet.yaml has no cluster {cluster}, which this instance serves"));
    };
    Some(Check::ok(name, format!("{cluster} is in the wave {}", wave.said.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::files::Entry;
    use crate::manifest::installation::Caps;
    use crate::manifest::load::load;
    use crate::manifest::oid;

    /// Requirement F-10.
    #[test]
    fn f_10_another_cluster_than_the_fleet_says_is_told() {
        let text = "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters: {home: {instance: prod, uid: right}}\n  waves:\n  \
                    - {name: all, clusters: {selector: {}}}\n";
        let file = Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().into() };
        let loaded = load(&[("fleet.yaml".parse().unwrap(), file)].into(), &Caps::default());
        let told = |cluster: &str, instance: &str, uid: &str| {
            let check = check(&loaded, &cluster.parse().unwrap(), &instance.parse().unwrap(), uid).unwrap();
            check.says
        };
        assert_eq!(told("home", "prod", "right"), "home is in the wave all");
        assert!(told("away", "prod", "right").contains("has no cluster away"));
        assert!(told("home", "prod", "wrong").contains("has the uid right"));
        assert!(told("home", "test", "right").contains("is served by prod"));
        let none = load(&[].into(), &Caps::default());
        assert!(super::check(&none, &"home".parse().unwrap(), &"prod".parse().unwrap(), "x").is_none());
    }
}
