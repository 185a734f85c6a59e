//! Stable without a ready pod: its users see errors, at rest as in a run, and people are told what its pods say.

use super::context::Context;
use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::manifest::desired::{OnStableDown, Plan, TargetKind};
use crate::manifest::ids::Percent;
use crate::manifest::object::{Object, at, items};
use crate::record::posture::Posture;
use crate::record::state::{Phase, RoleName, Time};
use crate::record::text::plain;
use crate::workload::live::LiveState;
use crate::workload::readiness;
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::BTreeMap;

/// For how long no pod may be ready before that is told: pods that are replaced are away for a moment.
const NOTICED: TimeDelta = TimeDelta::seconds(60);
/// The most pods of one trouble that are named.
const NAMED: usize = 3;

/// What is told of stable, if it serves nobody. Looks again by itself once it has to be told.
pub fn told(draft: &mut Draft<'_>, plan: &Plan, posture: &Posture) -> Option<Wait> {
    let context = draft.context(plan, None, None);
    let since = down(&context)?;
    if draft.now() < since + NOTICED {
        draft.wake(since + NOTICED);
        return None;
    }
    let workload = context.workload(RoleName::Stable);
    let live = context.live.get(&workload)?;
    let wait = |why: String| Wait::new(Reason::StableDown, why).since(since);
    let why = format!("no pod of {workload} is ready: {}", troubles(live, context.live));
    let (id, share) = (&draft.input.id, Percent::ALL.get() - posture.split.weight.get());
    let goes_back = matches!(draft.state.phase, Phase::Reverting { .. });
    if posture.candidate.is_none() || share == 0 && !goes_back {
        return Some(wait(why));
    }
    let why = if share == 0 { why } else { format!("{why}; {share} % of the requests are led there") };
    let act = if goes_back {
        format!("tidegate skip {id} leads all requests to stable, ready or not, so that what is on main can follow")
    } else {
        format!(
            "tidegate skip {id} --through promotion brings the new version without its soaks; tidegate abort {id} does not help while stable is so"
        )
    };
    Some(wait(why).act(act))
}

/// Whether a way back would end in front of a stable that serves nobody: main's next version follows on this one.
pub fn is_stranded(draft: &Draft<'_>, plan: &Plan) -> bool {
    draft.posture().is_some_and(|posture| !posture.split.is_stable()) && is_down(draft, plan)
}

fn is_down(draft: &Draft<'_>, plan: &Plan) -> bool {
    down(&draft.context(plan, None, None)).is_some_and(|since| draft.now() >= since + NOTICED)
}

/// Whether a run goes on without its soaks, as its plan says for a stable that serves nobody.
pub fn hurries(draft: &Draft<'_>, plan: &Plan) -> bool {
    plan.on_stable_down == OnStableDown::Promote && is_down(draft, plan)
}

/// Since when stable has had no ready pod, if it has none and should.
fn down(context: &Context<'_>) -> Option<Time> {
    if let TargetKind::Service | TargetKind::NodeConfig | TargetKind::None = context.plan.target.kind {
        return None;
    }
    let workload = context.live.get(&context.workload(RoleName::Stable))?;
    // A DaemonSet's pods are told by another name than those of the two others.
    let count = |field: &str| workload.int(&format!("/status/{field}")).unwrap_or(0);
    let wanted = workload.int("/spec/replicas").unwrap_or_else(|| count("desiredNumberScheduled").max(1));
    if wanted == 0 || count("readyReplicas") + count("numberReady") > 0 || count("observedGeneration") == 0 {
        return None;
    }
    let lost = |pod: &Object| {
        let ready = items(pod.at("/status")?, "conditions").find(|condition| condition["type"] == "Ready")?;
        if ready["status"] == "True" { None } else { ready["lastTransitionTime"].as_str()?.parse().ok() }
    };
    let since = readiness::pods(workload, context.live).filter_map(lost).max();
    since.or(match readiness::available(workload) {
        readiness::Available::NotSince(since) => Some(since),
        readiness::Available::Perhaps(written) => written,
        readiness::Available::Unseen => None,
    })
}

/// What keeps the pods of a workload from being ready: by trouble, with the first of those that have it.
fn troubles(workload: &Object, live: &LiveState) -> String {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in readiness::pods(workload, live).filter(|pod| !is_ready(pod)) {
        all.entry(trouble(pod)).or_default().push(pod.reference().name.as_str());
    }
    if all.is_empty() {
        let failed = items(workload.at("/status").unwrap_or(&Value::Null), "conditions");
        let mut failed = failed.filter(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
        let said = failed.find_map(|one| one["message"].as_str());
        return said.map_or_else(|| "there is none".to_owned(), |said| format!("none can be made: {}", short(said)));
    }
    let told = all.into_iter().map(|(trouble, mut pods)| {
        pods.sort_unstable();
        let more = if pods.len() > NAMED { format!(" and {} more", pods.len() - NAMED) } else { String::new() };
        pods.truncate(NAMED);
        format!("{}{more}: {trouble}", pods.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

fn is_ready(pod: &Object) -> bool {
    let conditions = items(pod.at("/status").unwrap_or(&Value::Null), "conditions");
    conditions.filter(|one| one["type"] == "Ready").any(|one| one["status"] == "True")
}

/// What is wrong with a pod, in words that stay as they are while it is.
fn trouble(pod: &Object) -> String {
    let status = pod.at("/status").unwrap_or(&Value::Null);
    let mut unplaced =
        items(status, "conditions").filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
    if let Some(why) = unplaced.find_map(|one| one["message"].as_str()) {
        return format!("no node takes it: {}", short(why));
    }
    let waiting = ["initContainerStatuses", "containerStatuses"].into_iter().flat_map(|list| items(status, list));
    let said = waiting.filter_map(|container| Some((container, at(container, "/state/waiting")?))).find_map(
        |(container, waiting)| {
            let text = |value: &Value| value.as_str().map(short).unwrap_or_default();
            match waiting["reason"].as_str()? {
                "CrashLoopBackOff" => {
                    let last = &container["lastState"]["terminated"];
                    let code = last["exitCode"].as_i64().map(|code| format!(", exit code {code}")).unwrap_or_default();
                    let words = Some(text(&last["message"])).filter(|words| !words.is_empty());
                    Some(format!(
                        "it crashes again and again{code}{}",
                        words.map(|words| format!(": {words}")).unwrap_or_default()
                    ))
                }
                "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                    Some("its image cannot be pulled".to_owned())
                }
                "ContainerCreating" | "PodInitializing" | "" => None,
                reason => Some(format!("{}: {}", plain(reason), text(&waiting["message"]))),
            }
        },
    );
    said.unwrap_or_else(|| "not ready".to_owned())
}

fn short(text: &str) -> String {
    plain(text).chars().take(160).collect()
}
