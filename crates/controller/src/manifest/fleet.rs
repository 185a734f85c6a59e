//! Many clusters that follow one repository: which instance serves each, and in which order a version reaches them (requirements F-10, F-11).

use super::diagnostic::{Code, Diagnostic, quoted};
use super::files::RepoPath;
use super::ids::{ClusterName, InstanceName, WaveName};
use super::layer::{NodeSelector, UNSELECTIVE};
use super::raw::{self, Wave, WaveClusters};
use super::schema;
use super::yaml::{self, Dialect, Node, Parsed};
use std::collections::{BTreeMap, BTreeSet};

/// The file that says it, at the root of the repository.
pub const FILE: &str = "fleet.yaml";

/// The clusters of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// Each with who serves it.
    pub clusters: BTreeMap<ClusterName, FleetMember>,
    /// In which order versions reach them. Each cluster is in one wave.
    pub waves: Vec<FleetWave>,
}

/// One cluster of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetMember {
    /// The instance that serves it.
    pub instance: InstanceName,
    /// The uid of its namespace `kube-system`.
    pub uid: String,
}

/// Clusters that a version reaches together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetWave {
    /// What is said of it.
    pub said: Wave,
    /// Its clusters, in the order in which they begin.
    pub clusters: BTreeSet<ClusterName>,
}

impl Fleet {
    /// The wave of a cluster, counted from 0.
    #[must_use]
    pub fn wave_of(&self, cluster: &ClusterName) -> Option<usize> {
        self.waves.iter().position(|wave| wave.clusters.contains(cluster))
    }
}

/// Reads the file.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn parse(path: &RepoPath, bytes: &[u8]) -> Result<Fleet, Vec<Diagnostic>> {
    let parsed = yaml::parse(path, bytes, Dialect::Own);
    let raw: raw::Fleet = schema::read(&parsed)?;
    let mut found = doubled(&parsed, &raw.spec.clusters);
    let waves = waves(&parsed, &raw.spec, &mut found);
    let member = |cluster: raw::FleetCluster| FleetMember { instance: cluster.instance, uid: cluster.uid };
    let clusters: BTreeMap<_, _> = raw.spec.clusters.into_iter().map(|(name, it)| (name, member(it))).collect();
    let fleet = Fleet { clusters, waves };
    let whole = found.is_empty();
    for name in fleet.clusters.keys().filter(|name| whole && fleet.wave_of(name).is_none()) {
        let what = format!("the cluster {name} is in no wave");
        found.push(at(&parsed, &format!("/spec/clusters/{name}"), what, "each cluster in one of the waves"));
    }
    if found.is_empty() { Ok(fleet) } else { Err(found) }
}

fn at(parsed: &Parsed, pointer: &str, what: String, expected: &str) -> Diagnostic {
    let mark = parsed.documents.first().map(|root| root.locate(pointer)).unwrap_or_default();
    parsed.source.at(mark, Code::FleetInvalid, what, expected)
}

/// What tells clusters apart has to.
fn doubled(parsed: &Parsed, clusters: &BTreeMap<ClusterName, raw::FleetCluster>) -> Vec<Diagnostic> {
    let (mut uids, mut instances) = (BTreeMap::new(), BTreeMap::new());
    let mut found = Vec::new();
    for (name, cluster) in clusters {
        if let Some(other) = uids.insert(&cluster.uid, name) {
            let what = format!("{other} has the uid {} already", quoted(&cluster.uid));
            found.push(at(parsed, &format!("/spec/clusters/{name}/uid"), what, "a uid that no other cluster has"));
        }
        if let Some(other) = instances.insert(&cluster.instance, name) {
            let what = format!("{other} is served by the instance {} already", cluster.instance);
            let expected = "an instance for each cluster: its record says where that one stands";
            found.push(at(parsed, &format!("/spec/clusters/{name}/instance"), what, expected));
        }
    }
    found
}

fn waves(parsed: &Parsed, spec: &raw::FleetSpec, found: &mut Vec<Diagnostic>) -> Vec<FleetWave> {
    let mut seen: BTreeMap<&ClusterName, &WaveName> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut waves = Vec::new();
    for (i, wave) in spec.waves.iter().enumerate() {
        if !names.insert(&wave.name) {
            let what = format!("there is a wave {} already", wave.name);
            found.push(at(parsed, &format!("/spec/waves/{i}/name"), what, "a name that no other wave has"));
        }
        let mut clusters = BTreeSet::new();
        match &wave.clusters {
            WaveClusters::Names(named) => {
                let pointer = format!("/spec/waves/{i}/clusters/names");
                let wrong = |name: &ClusterName, what: String, expected: &str| {
                    let list = parsed.documents.first().and_then(|root| root.at(&pointer)).map(Node::items);
                    let item = list.unwrap_or_default().iter().find(|item| item.text() == Some(name.as_str()));
                    parsed.source.at(item.map(|item| item.mark).unwrap_or_default(), Code::FleetInvalid, what, expected)
                };
                for name in named {
                    let known = spec.clusters.get_key_value(name);
                    let Some((name, _)) = known else {
                        found.push(wrong(name, format!("there is no cluster {name}"), "names of spec.clusters"));
                        continue;
                    };
                    if let Some(other) = seen.insert(name, &wave.name) {
                        let what = format!("the cluster {name} is in the wave {other} already");
                        found.push(wrong(name, what, "each cluster in one wave"));
                    }
                    clusters.insert(name.clone());
                }
            }
            WaveClusters::Selector(selector) => match NodeSelector::of(selector) {
                Err(_) => {
                    let pointer = format!("/spec/waves/{i}/clusters/selector");
                    found.push(at(parsed, &pointer, UNSELECTIVE.0.to_owned(), UNSELECTIVE.1));
                }
                Ok(selector) => {
                    let named = |name: &ClusterName| {
                        let says =
                            |wave: &Wave| matches!(&wave.clusters, WaveClusters::Names(all) if all.contains(name));
                        spec.waves.iter().any(says)
                    };
                    let selected =
                        spec.clusters.iter().filter(|(name, it)| selector.selects(&it.labels) && !named(name));
                    // What a selector before has is not meant again: the last wave may say `{}`.
                    let selected = selected.filter(|(name, _)| !seen.contains_key(name)).map(|(name, _)| name);
                    let selected: Vec<&ClusterName> = selected.collect();
                    seen.extend(selected.iter().map(|name| (*name, &wave.name)));
                    clusters.extend(selected.into_iter().cloned());
                }
            },
        }
        waves.push(FleetWave { said: wave.clone(), clusters });
    }
    waves
}

#[cfg(test)]
mod tests;
