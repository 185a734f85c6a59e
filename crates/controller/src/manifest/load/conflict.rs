//! Where two rollouts want the same: both are rejected, since nobody can say whose it is (requirements F-9, C-32).
//!
//! Only rollouts that their directory may declare take part: nobody can reject another tenant's rollout by naming it.

use super::{Judged, Loaded, Rejected, roots};
use crate::manifest::diagnostic::{Code, Diagnostic, MOST, few};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{ClusterName, RolloutId};
use crate::manifest::object::{Kind, ObjectRef};
use std::collections::{BTreeMap, BTreeSet};

/// How what several rollouts need has a home.
const SHARED: &str = "what both need stands in a rollout of its own, with target: none (docs/files.md)";
/// How many of those that share something are named.
const FEW: usize = 3;
/// How many such mistakes of one rollout are told, of each sort: of those of two rollouts there can be as many as pairs of objects.
const TOLD: usize = 10;

/// Rollouts by the objects of their sets.
type Claims = BTreeMap<(ClusterName, ObjectRef), Vec<usize>>;

/// Rejects all rollouts that want the same name, or the same object on the same cluster, and those that would make a copy under the
/// name of another's object.
pub(super) fn reject(judged: &mut [Judged]) {
    let mut names: BTreeMap<RolloutId, Vec<usize>> = BTreeMap::new();
    let mut claims = Claims::new();
    for (i, one) in judged.iter().enumerate().filter(|(_, one)| one.permitted) {
        names.entry(one.id.clone()).or_default().push(i);
        // The nodes are claimed as one: what each is told has its name.
        let nodes = one.target.iter().filter(|target| target.kind == Kind::NodeConfig);
        for reference in one.items.keys().chain(nodes) {
            for cluster in &one.claims {
                claims.entry((cluster.clone(), reference.clone())).or_default().push(i);
            }
        }
    }
    let mut found = Vec::new();
    for sharers in names.values().filter(|sharers| sharers.len() > 1) {
        found.extend(sharers.iter().map(|&i| (i, same_name(&judged[i], &others(judged, sharers, i)))));
    }
    // What the same rollouts share is one mistake of each, however many objects it is.
    let mut shared: BTreeMap<&[usize], Vec<&ObjectRef>> = BTreeMap::new();
    for ((_, reference), sharers) in &claims {
        let distinct = sharers.iter().any(|&i| judged[i].id != judged[sharers[0]].id);
        if sharers.len() > 1 && distinct {
            let references = shared.entry(sharers).or_default();
            // On several clusters it is the same mistake.
            if !references.contains(&reference) {
                references.push(reference);
            }
        }
    }
    let mut told = vec![0; judged.len()];
    for (sharers, references) in &shared {
        for &i in sharers.iter() {
            told[i] += 1;
            if told[i] <= TOLD {
                found.push((i, same_objects(judged, sharers, i, references)));
            }
        }
    }
    found.extend(roots::doubled(judged));
    let targets = targets(judged);
    for (i, one) in judged.iter().enumerate().filter(|(_, one)| one.permitted) {
        found.extend(autoscalers(one, &targets).take(TOLD).map(|diagnostic| (i, diagnostic)));
        found.extend(taken(judged, one, &claims).take(TOLD).map(|diagnostic| (i, diagnostic)));
    }
    for (i, diagnostic) in found {
        let one = &mut judged[i];
        match &mut one.outcome {
            Err(diagnostics) => {
                // It stands for what only a look at all rollouts shows, and is not left out for the hundredth slip.
                diagnostics.truncate(MOST - 1);
                diagnostics.push(diagnostic);
            }
            Ok(_) => one.outcome = Err(vec![diagnostic]),
        }
    }
}

fn others(judged: &[Judged], sharers: &[usize], me: usize) -> String {
    few(sharers.iter().filter(|&&i| i != me).map(|&i| judged[i].path.to_string()), FEW, " and ")
}

fn same_name(one: &Judged, others: &str) -> Diagnostic {
    let found = format!("{} is declared in {others} too", one.id);
    let expected = "each rollout in one file".to_owned();
    Diagnostic { found, expected, ..one.name_at.clone() }.help("rename or remove one of them")
}

/// One mistake for all that `me` shares with others, at the object that says most: the target, else the route.
fn same_objects(judged: &[Judged], sharers: &[usize], me: usize, references: &[&ObjectRef]) -> Diagnostic {
    let one = &judged[me];
    let route = |reference: &ObjectRef| sharers.iter().any(|&i| judged[i].route.as_ref() == Some(reference));
    let code = if references.iter().all(|r| route(r)) { Code::RouteConflict } else { Code::Conflict };
    let first = references.iter().find(|r| one.target.as_ref() == Some(**r));
    let first = first.or_else(|| references.iter().find(|r| route(r))).or(references.first());
    let rollouts = few(sharers.iter().map(|&i| format!("{} ({})", judged[i].id, judged[i].path)), FEW, " and ");
    let what = few(references.iter().map(ToString::to_string), FEW, ", ");
    let found = format!("the rollouts {rollouts} lay claim to the same: {what}");
    let expected = "each object in one rollout";
    match first.and_then(|reference| one.items.get(*reference)) {
        Some(item) if code == Code::Conflict && first.is_none_or(|first| one.target.as_ref() != Some(*first)) => {
            item.error(code, found, expected).help(SHARED)
        }
        Some(item) => item.error(code, found, expected),
        None => Diagnostic { code, found, expected: expected.to_owned(), ..one.name_at.clone() },
    }
}

/// Copies of `one` with the name of what another rollout has: no run of `one` can make them.
fn taken<'a>(judged: &'a [Judged], one: &'a Judged, claims: &'a Claims) -> impl Iterator<Item = Diagnostic> + 'a {
    one.copies.names.iter().filter_map(move |(copy, of)| {
        let there = one.claims.iter().filter_map(|cluster| claims.get(&(cluster.clone(), copy.clone()))).flatten();
        let other = there.map(|&i| &judged[i]).find(|other| other.id != one.id)?;
        let found = format!(
            "its copy would be called {}, as {} {} of the rollout {} is",
            copy.name, copy.kind, copy.name, other.id
        );
        let diagnostic = one.items.get(of)?.error(Code::Conflict, found, "a name whose copy has one of its own");
        Some(diagnostic.help(format!("rename it, or what {} has", other.path)))
    })
}

/// Services that would lead requests to the candidate of another rollout, past its split: its runs wait for that.
pub(super) fn overlapping(judged: &[Judged]) -> Vec<Diagnostic> {
    let mut beside: BTreeMap<_, Vec<&Judged>> = BTreeMap::new();
    for one in judged.iter().filter(|one| one.permitted) {
        for cluster in &one.claims {
            beside.entry((cluster, &one.id.namespace)).or_default().push(one);
        }
    }
    let mut found = Vec::new();
    for all in beside.values() {
        for one in all {
            let services = one.items.values().filter_map(|item| Some((item, item.service.as_ref()?)));
            let reached = services.flat_map(|(item, service)| {
                let others = all.iter().filter(|other| other.id != one.id && other.copies.reached_by(service));
                others.map(move |other| (item, &other.id))
            });
            found.extend(reached.take(TOLD).map(|(item, other)| {
                let what = format!("this selector would also match the candidate's pods of the rollout {other}");
                let expected = "a selector for the pods of its own rollout alone";
                let diagnostic = item.reaching(Code::SelectorOverlap, what, expected);
                diagnostic.help(format!("no run of {other} makes a candidate as long as this is so"))
            }));
        }
    }
    found
}

/// Rollouts by what they roll out.
type Targets<'a> = BTreeMap<(&'a ClusterName, &'a ObjectRef), Vec<&'a Judged>>;

fn targets(judged: &[Judged]) -> Targets<'_> {
    let mut targets = Targets::new();
    for one in judged.iter().filter(|one| one.permitted) {
        if let Some(target) = &one.target {
            for cluster in &one.claims {
                targets.entry((cluster, target)).or_default().push(one);
            }
        }
    }
    targets
}

/// Autoscalers in the set of `one` that scale what another rollout rolls out: each run would fight with them.
fn autoscalers<'a>(one: &'a Judged, targets: &'a Targets<'_>) -> impl Iterator<Item = Diagnostic> + 'a {
    one.items.values().filter_map(move |item| {
        let (kind, name) = item.scales.clone()?;
        let reference = ObjectRef { kind, namespace: one.id.namespace.clone(), name };
        let mut there = one.claims.iter().filter_map(|cluster| targets.get(&(cluster, &reference))).flatten();
        let other = there.find(|other| other.id != one.id)?;
        let found = format!("this autoscaler scales {reference}, the target of the rollout {}", other.id);
        let expected = format!("an autoscaler of it among the manifests of {} alone", other.path);
        Some(item.reaching(Code::Conflict, found, &expected))
    })
}

/// Files every judgement under its name. A name that is not its file's to use goes to the rollout that may use it.
pub(super) fn file(judged: Vec<Judged>, loaded: &mut Loaded) {
    let (permitted, others): (Vec<Judged>, Vec<Judged>) = judged.into_iter().partition(|one| one.permitted);
    for one in permitted {
        insert(loaded, one);
    }
    let taken: BTreeSet<RolloutId> = loaded.rollouts.keys().cloned().collect();
    for one in others {
        match one.outcome {
            Err(diagnostics) if taken.contains(&one.id) => loaded.unnamed.extend(diagnostics),
            _ => insert(loaded, one),
        }
    }
}

fn insert(loaded: &mut Loaded, one: Judged) {
    let rejected = |path: RepoPath, diagnostics| Rejected { paths: [path].into(), diagnostics };
    let Judged { id, path, outcome, .. } = one;
    let outcome = outcome.map_err(|diagnostics| rejected(path, diagnostics));
    match (loaded.rollouts.get_mut(&id), outcome) {
        (Some(Err(first)), Err(second)) => {
            first.paths.extend(second.paths);
            if first.diagnostics.len() < MOST {
                first.diagnostics.extend(second.diagnostics);
                first.diagnostics.sort();
                first.diagnostics.truncate(MOST);
            }
        }
        (_, outcome) => drop(loaded.rollouts.insert(id, outcome)),
    }
}
