//! Many clusters that follow one repository: which instance serves each, and in which order a version reaches them (requirements F-10, F-11).

use super::diagnostic::{Code, Diagnostic, quoted};
use super::duration::Span;
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Why who serves a cluster, or the cluster with that uid, is not the one that the file means; nothing of a cluster that it does not have.
    #[must_use]
    pub fn mistaken(&self, cluster: &ClusterName, instance: &InstanceName, uid: &str) -> Option<String> {
        let said = self.clusters.get(cluster)?;
        if said.uid != uid {
            return Some(format!(
                "{FILE} says that the cluster {cluster} has the uid {}, and this one has {uid}",
                said.uid
            ));
        }
        (said.instance != *instance).then(|| {
            format!("{FILE} says that the cluster {cluster} is served by {}, and this is {instance}", said.instance)
        })
    }

    /// What a version that goes to these clusters waits for before it begins in one of them, in words; nothing where it is the first.
    #[must_use]
    pub fn awaits(&self, me: &ClusterName, clusters: &BTreeSet<ClusterName>) -> Option<String> {
        let own = self.wave_of(me)?;
        let wave = &self.waves[own];
        let before = self.waves[..own].iter().rev().find(|wave| !wave.clusters.is_disjoint(clusters));
        let after = before.map(|wave| match wave.said.soak {
            Span::ZERO => format!("{} has it", wave.said.name),
            soak => format!("{} has had it for {soak}", wave.said.name),
        });
        let first = wave.clusters.intersection(clusters).any(|other| other < me);
        let turn = first.then(|| format!("{} at a time", wave.said.max_updating));
        let words: Vec<String> = after.into_iter().chain(turn).collect();
        (!words.is_empty()).then(|| format!("wave {}: {}", wave.said.name, words.join(", ")))
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
        let pointer = format!("/spec/waves/{i}/clusters");
        let clusters = match &wave.clusters {
            WaveClusters { names: Some(names), selector: None } => {
                named(parsed, spec, (i, wave), names, &mut seen, found)
            }
            WaveClusters { names: None, selector: Some(selector) } => match NodeSelector::of(selector) {
                Ok(selector) => selected(spec, wave, &selector, &mut seen),
                Err(_) => {
                    found.push(at(parsed, &format!("{pointer}/selector"), UNSELECTIVE.0.to_owned(), UNSELECTIVE.1));
                    BTreeSet::new()
                }
            },
            WaveClusters { .. } => {
                let what = "names and selector, or neither of them".to_owned();
                found.push(at(parsed, &pointer, what, "names: […], or selector: {…}; selector: {} for all others"));
                BTreeSet::new()
            }
        };
        found.extend(idle(parsed, (i, wave), &clusters).filter(|_| found.is_empty()));
        waves.push(FleetWave { said: wave.clone(), clusters });
    }
    waves
}

/// The clusters that a wave names.
fn named<'a>(
    parsed: &Parsed,
    spec: &'a raw::FleetSpec,
    (i, wave): (usize, &'a Wave),
    names: &BTreeSet<ClusterName>,
    seen: &mut BTreeMap<&'a ClusterName, &'a WaveName>,
    found: &mut Vec<Diagnostic>,
) -> BTreeSet<ClusterName> {
    let list = parsed.documents.first().and_then(|root| root.at(&format!("/spec/waves/{i}/clusters/names")));
    let items = list.map(Node::items).unwrap_or_default();
    let wrong = |name: &ClusterName, what: String, expected: &str| {
        let item = items.iter().find(|item| item.text() == Some(name.as_str()));
        parsed.source.at(item.map(|item| item.mark).unwrap_or_default(), Code::FleetInvalid, what, expected)
    };
    let mut clusters = BTreeSet::new();
    for name in names {
        let Some((name, _)) = spec.clusters.get_key_value(name) else {
            found.push(wrong(name, format!("there is no cluster {name}"), "names of spec.clusters"));
            continue;
        };
        if let Some(other) = seen.insert(name, &wave.name) {
            let what = format!("the cluster {name} is in the wave {other} already");
            found.push(wrong(name, what, "each cluster in one wave"));
        }
        clusters.insert(name.clone());
    }
    clusters
}

/// The clusters that a wave selects: of those that no wave names, and none before has.
fn selected<'a>(
    spec: &'a raw::FleetSpec,
    wave: &'a Wave,
    selector: &NodeSelector,
    seen: &mut BTreeMap<&'a ClusterName, &'a WaveName>,
) -> BTreeSet<ClusterName> {
    let is_named = |name: &ClusterName| {
        spec.waves.iter().any(|wave| wave.clusters.names.as_ref().is_some_and(|names| names.contains(name)))
    };
    let all = spec.clusters.iter().filter(|(name, it)| selector.selects(&it.labels) && !is_named(name));
    let all: Vec<&ClusterName> = all.map(|(name, _)| name).filter(|name| !seen.contains_key(name)).collect();
    seen.extend(all.iter().map(|name| (*name, &wave.name)));
    all.into_iter().cloned().collect()
}

/// A wave that the next one would not wait for.
fn idle(parsed: &Parsed, (i, wave): (usize, &Wave), clusters: &BTreeSet<ClusterName>) -> Option<Diagnostic> {
    let many = u32::try_from(clusters.len()).unwrap_or(u32::MAX);
    if clusters.is_empty() {
        let what = format!("the wave {} has no cluster", wave.name);
        return Some(at(parsed, &format!("/spec/waves/{i}/clusters"), what, "clusters that no wave before has"));
    }
    (wave.tolerate >= many).then(|| {
        let what = format!("all {many} clusters of the wave {} may fail, so that nobody would wait for it", wave.name);
        at(parsed, &format!("/spec/waves/{i}/tolerate"), what, "fewer than the wave has clusters")
    })
}

#[cfg(test)]
mod tests;
