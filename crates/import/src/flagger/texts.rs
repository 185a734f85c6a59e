//! What is said of fields of a Canary at length.

pub(super) const UNCOUNTED: &str = "what the proxy of this provider counts is not known here: write a query with labels, or the name of the proxy that \
     counts (docs/checks.md)";
pub(super) const HOOK: &str = "spec.providers of the Installation. It is told with another body, and answers with the run and the step as JSON \
     (docs/checks.md)";
pub(super) const ROLLBACK: &str = "a check of each phase, pre-rollout too, which takes the run back when it answers bad: HTTP 200 alone says nothing (docs/checks.md)";
pub(super) const SERVICE_TARGET: &str = "spec.target.kind. The Service itself is the old version until the promotion, and a run makes NAME-canary beside it: \
     NAME-primary has no part in it (docs/layouts.md)";
pub(super) const DAEMON_SET_TARGET: &str = "spec.target.kind. Its own pods become new, node by node: a weight is the share of them, and nothing splits requests \
     (docs/strategies.md)";
pub(super) const OTHER_TARGET: &str = "neither a Deployment, nor a DaemonSet, nor a Service of Kubernetes itself; the rollout names a Deployment of that name";
pub(super) const OWN_PODS: &str =
    "no traffic: the pods of a DaemonSet are moved, and nothing splits requests between its versions";
pub(super) const UNSPLIT: &str = "nothing splits requests between the versions of a DaemonSet, so that nobody counts those to the new one: write a query";
pub(super) const SAME_PODS: &str = "the query of the check, which reads both versions' pods, as they have the same names: tell them apart by \
     labels.version (docs/checks.md)";
pub(super) const UNMET: &str = "nobody is let in before all are, so that ingress-nginx counts nothing of the new version: measure in the application, with a \
     query and labels: {pod: …} (docs/checks.md). While the promotion bakes it counts: a successRate or latency can stand in promotion.checks";
pub(super) const BY_PODS: &str = "this is counted by pods or workloads, and the target is a Service, which has none of its own: write a query with \
     labels: {service: …} (docs/checks.md)";
pub(super) const UNASKED: &str =
    "with the provider kubernetes Flagger goes past it, as no request is looked at: nobody is let in before all are";
pub(super) const SKIPPED: &str =
    "Flagger goes past it with skipAnalysis; remove that, and import again, to have phases and checks";
