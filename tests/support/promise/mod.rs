//! The promise, checked from outside: what live users reach of a new version is at most what the record in Git says, at
//! every instant.
//!
//! What moved either is merged by time (`logs` takes it from the API server's audit log, and from what the Git server wrote
//! down whenever the state branch moved). After each event the live exposure is held against the record. A raise counts from
//! the moment when its request came, a move of the branch from the moment when it was done: the strict reading of both.
//!
//! What another hand raises is not held against tidegate, until it writes there itself.

pub(crate) mod live;
mod routes;

use live::Live;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegate::manifest::desired::{HeaderMatch, HeaderValue, Router, UnitKind};
use tidegate::manifest::ids::{ClusterName, ObjectName, Percent, RolloutId, SetId};
use tidegate::record::posture::{Posture, Split, Units};
use tidegate::record::state::{ClusterState, RoleName, RolloutState};

/// One rollout whose promise is checked.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// Which.
    pub(crate) rollout: RolloutId,
    /// The cluster, as the record calls it.
    pub(crate) cluster: ClusterName,
    /// Stable's Deployment.
    pub(crate) stable: ObjectName,
    /// The candidate's.
    pub(crate) candidate: ObjectName,
    /// What splits its requests.
    pub(crate) router: Option<Router>,
    /// The candidate's Service, where it has a name of its own.
    pub(crate) service: Option<ObjectName>,
    /// The controller's user, as the audit log names it.
    pub(crate) user: String,
}

/// What was checked: a test that expects a rollout to have happened asks here whether it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Moves of the state branch.
    pub(crate) moves: usize,
    /// Writes to the rollout's objects.
    pub(crate) writes: usize,
    /// The largest share of requests that reached a candidate.
    pub(crate) highest_weight: Percent,
    /// The largest number of candidate pods.
    pub(crate) most_pods: u32,
    /// The values of `tidegate.io/pods` that the stable Deployment has had.
    pub(crate) stable_pods: BTreeSet<Option<String>>,
}

/// An instant at which live was ahead of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    at: Nanos,
    event: String,
    object: String,
    live: String,
    recorded: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, event, object, live, recorded } = self;
        write!(f, "at {at}, {event}: {object} is ahead of the record\n  live:     {live}\n  recorded: {recorded}")
    }
}

/// Nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(pub(crate) i64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", chrono::DateTime::from_timestamp_nanos(self.0).format("%FT%T%.9fZ"))
    }
}

/// Something that moved live or the record.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: Nanos,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// The state branch came to this commit; there may be no record of the rollout in it.
    Moved { commit: String, state: Option<Box<RolloutState>> },
    /// A write to one of its objects.
    Wrote { by: String, object: live::Write },
}

impl Watched {
    /// What the candidate's Service is called; none where the versions have one between them.
    fn copy(&self) -> Option<String> {
        let service = self.router.as_ref()?.service()?;
        Some(self.service.as_ref().map_or_else(|| format!("{service}-canary"), ToString::to_string))
    }

    /// Checks every instant. At equal times the branch has moved first: that reading needs no luck of the clock.
    ///
    /// # Errors
    /// The first instant at which live was ahead.
    pub(crate) fn check(&self, mut events: Vec<Event>) -> Result<Checked, Box<Violation>> {
        events.sort_by_key(|event| (event.at, matches!(event.what, What::Wrote { .. })));
        let commit = "none".to_owned();
        let mut now = Instant { watched: self, record: None, commit, copied: None, live: Live::default() };
        let mut templates = BTreeMap::new();
        let mut checked = Checked::default();
        for Event { at, what } in events {
            let pods_before = now.live.candidate_pods();
            let (event, by) = match what {
                What::Moved { commit, state } => {
                    checked.moves += 1;
                    let event = format!("when the record became {commit}");
                    now.record = state;
                    now.commit = commit;
                    now.remember_copied();
                    (event, None)
                }
                What::Wrote { by, object } => {
                    if !now.live.take(self, &by, &object) {
                        continue;
                    }
                    checked.writes += 1;
                    (format!("when {by} wrote {}", object.name()), Some(by))
                }
            };
            let found = now.exposed_too_much().or_else(|| now.stable_unrecorded()).or_else(|| {
                (by.as_deref() == Some(self.user.as_str()))
                    .then(|| now.written_unasked(pods_before).or_else(|| now.template_changed(&templates)))
                    .flatten()
            });
            if let Some(Ahead { object, live, recorded }) = found {
                let recorded = format!("{recorded} (commit {})", now.commit);
                return Err(Box::new(Violation { at, event, object, live, recorded }));
            }
            now.remember_template(&mut templates);
            now.count(&mut checked);
        }
        Ok(checked)
    }
}

/// What is ahead of the record.
struct Ahead {
    object: String,
    live: String,
    recorded: String,
}

/// The world between two events.
struct Instant<'a> {
    watched: &'a Watched,
    record: Option<Box<RolloutState>>,
    commit: String,
    /// The manifests of the last candidate: those of its Service as long as that is there.
    copied: Option<SetId>,
    live: Live,
}

/// The pod template's spec that each value of the label `tidegate.io/pods` stands for, on the stable Deployment.
type Templates = BTreeMap<Option<String>, serde_json::Value>;

impl Instant<'_> {
    fn cluster(&self) -> Option<&ClusterState> {
        self.record.as_ref()?.clusters.get(&self.watched.cluster)
    }

    fn posture(&self) -> Option<&Posture> {
        self.cluster().map(|c| &c.posture)
    }

    /// Whether the pods of the candidate Deployment are of the version that the record calls stable: then what reaches them
    /// is no exposure of anything new.
    fn candidate_is_stable(&self) -> bool {
        let recorded = self.posture().and_then(|p| p.stable.pods.as_ref());
        let alike = recorded.is_some() && recorded.map(|p| p.as_str()) == self.live.candidate_label();
        // Where the target is a Service there are no pods to tell by, and its copy goes after the record has no candidate any more.
        let copied = self.copied.as_ref().filter(|_| self.live.is_of_a_service());
        let same = |p: &Posture| p.candidate.as_ref().map(|role| &role.set).or(copied) == Some(&p.stable.set);
        alike || self.live.candidate_label().is_none() && self.posture().is_some_and(same)
    }

    /// Whether the candidate Deployment is the one that the record knows.
    fn candidate_is_recorded(&self) -> bool {
        let recorded = self.posture().and_then(|p| p.candidate.as_ref());
        recorded.is_some_and(|role| {
            let live = self.live.candidate_label();
            live.is_none() || live == role.pods.as_ref().map(|p| p.as_str())
        })
    }

    /// The most that may be exposed now.
    fn ceiling(&self) -> Split {
        if self.candidate_is_stable() {
            return Split { weight: Percent::ALL, ..Split::default() };
        }
        match self.posture() {
            Some(posture) if self.candidate_is_recorded() => posture.split.clone(),
            _ => Split::stable(),
        }
    }

    /// More requests reach the candidate than the record says.
    fn exposed_too_much(&self) -> Option<Ahead> {
        let ceiling = self.ceiling();
        let reach = self.live.reach(self.watched)?;
        if self.by_another_hand(&reach.by) {
            return None;
        }
        let recorded = match self.watched.router.as_ref()? {
            Router::GatewayApi { .. }
            | Router::Grpc { .. }
            | Router::Istio { .. }
            | Router::Nginx { .. }
            | Router::Service { .. }
            | Router::Traefik { .. }
            | Router::IngressRoute { .. }
            | Router::Contour { .. }
            | Router::Gloo { .. }
                if reach.split.within(&ceiling) =>
            {
                return None;
            }
            Router::GatewayApi { .. }
            | Router::Grpc { .. }
            | Router::Istio { .. }
            | Router::Nginx { .. }
            | Router::Service { .. }
            | Router::Traefik { .. }
            | Router::IngressRoute { .. }
            | Router::Contour { .. }
            | Router::Gloo { .. } => describe(&ceiling),
            Router::Units(of) => {
                let limit = self.posture().map_or_else(Split::stable, |posture| posture.split.clone());
                let at_rest = *of == UnitKind::StatefulSet && self.shared_is_stable();
                let counted = reach.pods <= limit.units.count.max(limit.units.done);
                if at_rest || counted || reach.split.within(&limit) {
                    return None;
                }
                describe(&limit)
            }
            Router::Replicas { .. } if ceiling.weight == Percent::ALL => return None,
            Router::Replicas { .. } => {
                let most = self.most_pods(ceiling.weight);
                if reach.split.is_stable() && reach.pods <= most {
                    return None;
                }
                format!("{}, which is {most} pods", describe(&ceiling))
            }
        };
        let live = format!("{}, {} candidate pods", describe(&reach.split), reach.pods);
        Some(Ahead { object: reach.object, live, recorded })
    }

    /// Whether a workload of both versions makes pods of one that the record calls stable alone.
    fn shared_is_stable(&self) -> bool {
        let promoted = self.record.as_ref().and_then(|record| record.promoted.as_ref()?.label.as_ref());
        let known = [self.posture().and_then(|posture| posture.stable.pods.as_ref()), promoted];
        known.map(|pods| pods.map(|pods| pods.as_str())).contains(&self.live.shared_label())
    }

    /// How many candidate pods behind one Service a weight below 100 stands for: ⌊baseline × w / (100 − w)⌋.
    fn most_pods(&self, weight: Percent) -> u32 {
        let run = self.record.as_ref().and_then(|r| r.run.as_ref());
        let baseline = run.and_then(|r| r.baseline.get(&self.watched.cluster)).copied().unwrap_or(0);
        let weight = u32::from(weight.get());
        baseline * weight / (100 - weight)
    }

    /// The stable Deployment is of a version that the record does not call stable. The record goes first at *promote* and
    /// last on the way back, so the promoted version may still stand there.
    fn stable_unrecorded(&self) -> Option<Ahead> {
        let record = self.record.as_ref()?;
        let (label, by) = self.live.stable_label()?;
        let promoted = record.promoted.as_ref().and_then(|p| p.label.as_ref());
        let allowed = [self.posture().and_then(|p| p.stable.pods.as_ref()), promoted].map(|p| p.map(|p| p.as_str()));
        let stands = |p: &Posture| p.naming.workload(RoleName::Stable, &self.watched.stable) == self.watched.stable;
        // Under a name of its own the old version may stand beside what is stable by now.
        let is_stable = self.watched.service.is_none() || self.posture().is_none_or(stands);
        if allowed.contains(&label) || self.by_another_hand(&by) || !is_stable {
            return None;
        }
        let show = |label: Option<&str>| label.map_or("pods without a label".to_owned(), |l| format!("pods {l}"));
        Some(Ahead {
            object: format!("Deployment {}", self.watched.stable),
            live: show(label),
            recorded: allowed.map(show).join(" or "),
        })
    }

    /// The controller wrote before there was a record, or raised the candidate's pods without one of them.
    fn written_unasked(&self, pods_before: u32) -> Option<Ahead> {
        let pods = self.live.candidate_pods();
        let unrecorded = self.record.is_none();
        let raised = pods > pods_before && !self.candidate_is_recorded() && !self.candidate_is_stable();
        (unrecorded || raised).then(|| Ahead {
            object: if raised { format!("Deployment {}", self.watched.candidate) } else { "the write".to_owned() },
            live: format!("{pods} candidate pods of {}", self.live.candidate_label().unwrap_or("no label")),
            recorded: if unrecorded { "no record" } else { "no such candidate" }.to_owned(),
        })
    }

    /// The controller changed the stable pod template and kept its label, so that no label tells the versions apart.
    fn template_changed(&self, known: &Templates) -> Option<Ahead> {
        let (label, _) = self.live.stable_label()?;
        let before = known.get(&label.map(str::to_owned))?;
        let template = self.live.stable_template()?;
        (before != template).then(|| Ahead {
            object: format!("Deployment {}", self.watched.stable),
            live: format!("template {template}"),
            recorded: format!("the same label, template {before}"),
        })
    }

    fn remember_template(&self, known: &mut Templates) {
        let Some((label, by)) = self.live.stable_label() else { return };
        let label = label.map(str::to_owned);
        // Until there is a record, people may change what they deploy by hand.
        if self.record.is_none() || (by == self.watched.user && !known.contains_key(&label)) {
            known.extend(self.live.stable_template().map(|template| (label, template.clone())));
        }
    }

    fn remember_copied(&mut self) {
        let candidate = self.posture().and_then(|posture| posture.candidate.as_ref());
        if let Some(set) = candidate.map(|role| role.set.clone()) {
            self.copied = Some(set);
        }
    }

    fn by_another_hand(&self, by: &str) -> bool {
        by != self.watched.user
    }

    fn count(&self, checked: &mut Checked) {
        checked.most_pods = checked.most_pods.max(self.live.candidate_pods());
        let at_rest = self.watched.router == Some(Router::Units(UnitKind::StatefulSet)) && self.shared_is_stable();
        if let Some(reach) = self.live.reach(self.watched).filter(|_| !at_rest) {
            checked.highest_weight = checked.highest_weight.max(reach.split.weight);
        }
        if let Some((label, _)) = self.live.stable_label() {
            checked.stable_pods.insert(label.map(str::to_owned));
        }
    }
}

fn describe(split: &Split) -> String {
    let alternative = |headers: &HeaderMatch| {
        let one = |(name, value): (&String, &HeaderValue)| match value {
            HeaderValue::Exact(value) => format!("{name}: {value}"),
            HeaderValue::Regex { regex } => format!("{name} matches {regex}"),
        };
        headers.iter().map(one).collect::<Vec<_>>().join(" and ")
    };
    let mut parts = vec![format!("weight {}", split.weight)];
    parts.extend((split.units != Units::default()).then(|| format!("{:?}", split.units)));
    parts.extend((!split.mirror.is_zero()).then(|| format!("mirror {}", split.mirror)));
    parts.extend(split.headers.iter().map(alternative));
    parts.join(", ")
}
