//! Every field of Flagger's objects (flagger.app/v1beta1), and what becomes of it. What is said here holds unless the import says
//! something else of a single field.

use crate::fields::Outcome::{Differs, DoneOtherwise, Imported, NotBuilt, NotNeeded};
use crate::fields::Row;

/// What is said of more than one field.
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
const OTHER_ROUTE: &str = "imported as gatewayAPI: a route of this kind is not built";
const ALERTS: &str = "messages to chats are not built yet; Events, metrics and the chart's alarms tell of a rollout (docs/operations.md)";
const AFFINITY: &str = "the cookie is for all paths of the host that was asked, and no script reads it";
const PRIMARY_COOKIE: &str = "nobody is kept at the old version: each weight is one of all who were not let in yet";
const COPY: &str = "the Services of the two versions are copies of the Service itself, with its labels and annotations";
const ROUTE: &str = "the HTTPRoute, or the VirtualService";
const SERVICE: &str = "the Service";
const SCALER: &str = "an autoscaler is one of the manifests: put it beside the rollout";
const PRIMARY_SCALER: &str = "the autoscaler of stable is as the manifests say";

/// A Canary.
pub(super) const CANARY: &[Row] = &[
    ("spec.provider", Imported, "spec.traffic: which router it is"),
    ("spec.metricsServer", Imported, "spec.providers of the Installation"),
    ("spec.targetRef.apiVersion", NotNeeded, "the kind says it"),
    ("spec.targetRef.kind", Imported, "spec.target.kind"),
    ("spec.targetRef.name", Imported, "spec.target.name"),
    ("spec.autoscalerRef.apiVersion", DoneOtherwise, SCALER),
    ("spec.autoscalerRef.kind", DoneOtherwise, SCALER),
    ("spec.autoscalerRef.name", DoneOtherwise, SCALER),
    ("spec.autoscalerRef.primaryScalerQueries", NotBuilt, PRIMARY_SCALER),
    ("spec.autoscalerRef.primaryScalerReplicas", NotBuilt, PRIMARY_SCALER),
    ("spec.ingressRef.apiVersion", NotNeeded, "the kind says it"),
    ("spec.ingressRef.kind", NotNeeded, "an Ingress"),
    ("spec.ingressRef.name", Imported, "spec.traffic.nginx: the Ingress"),
    ("spec.routeRef", NotBuilt, OTHER_ROUTE),
    ("spec.upstreamRef", NotBuilt, OTHER_ROUTE),
    ("spec.progressDeadlineSeconds", Imported, "spec.progressDeadline"),
    ("spec.skipAnalysis", Imported, "no phases and no checks; who may begin a rollout is asked before its promotion"),
    (
        "spec.revertOnDeletion",
        DoneOtherwise,
        "always so: when the rollout leaves main, what is left is what the manifests say",
    ),
    ("spec.suspend", Imported, "spec.suspend"),
    ("spec.service.name", Imported, "spec.traffic: the Service"),
    ("spec.service.port", Imported, SERVICE),
    ("spec.service.portName", Imported, SERVICE),
    ("spec.service.targetPort", Imported, SERVICE),
    ("spec.service.appProtocol", Imported, SERVICE),
    ("spec.service.trafficDistribution", Imported, SERVICE),
    ("spec.service.headless", Imported, SERVICE),
    ("spec.service.portDiscovery", Imported, "the Service: the ports of the pods' containers"),
    ("spec.service.apex.labels", Imported, SERVICE),
    ("spec.service.apex.annotations", Imported, SERVICE),
    ("spec.service.primary", DoneOtherwise, COPY),
    ("spec.service.canary", DoneOtherwise, COPY),
    ("spec.service.unmanagedMetadata", NotNeeded, "fields that Git does not say are left to whoever sets them"),
    ("spec.service.timeout", Imported, ROUTE),
    ("spec.service.backendTimeout", Imported, ROUTE),
    ("spec.service.gatewayRefs", Imported, ROUTE),
    ("spec.service.hosts", Imported, ROUTE),
    ("spec.service.match", Imported, ROUTE),
    ("spec.service.rewrite.uri", Imported, ROUTE),
    ("spec.service.rewrite.authority", Imported, ROUTE),
    ("spec.service.rewrite.type", Imported, ROUTE),
    ("spec.service.headers.request", Imported, ROUTE),
    ("spec.service.headers.response", Imported, ROUTE),
    ("spec.service.mirror", Imported, ROUTE),
    ("spec.service.gateways", Imported, "the VirtualService"),
    ("spec.service.delegation", Imported, "the VirtualService, without hosts and gateways"),
    ("spec.service.trafficPolicy", Imported, "a DestinationRule of the Service"),
    ("spec.service.retries", Imported, "the VirtualService"),
    ("spec.service.corsPolicy", Imported, "the VirtualService"),
    ("spec.service.meshName", NotBuilt, "App Mesh is not supported"),
    ("spec.service.backends", NotBuilt, "App Mesh is not supported"),
    ("spec.canaryAnalysis", NotNeeded, "spec.analysis goes before this old name of it"),
    ("spec.analysis.interval", Imported, "the soak of each phase, and the interval of each check"),
    (
        "spec.analysis.iterations",
        Imported,
        "the soak: so many intervals. Of a blue/green behind a route one more is promotion.bake, with the same checks",
    ),
    (
        "spec.analysis.threshold",
        DoneOtherwise,
        "failed checks are not counted over the analysis: the first value out of bounds takes the version \
      back. A check allows more with failureLimit, in each phase anew",
    ),
    ("spec.analysis.maxWeight", Imported, "the last weight of the ramp"),
    ("spec.analysis.stepWeight", Imported, "the step of the ramp"),
    ("spec.analysis.stepWeights", Imported, "the weights of the ramp"),
    (
        "spec.analysis.stepWeightPromotion",
        NotBuilt,
        "a promotion moves all requests at once, and keeps the old version at full size for \
      promotion.bake",
    ),
    ("spec.analysis.canaryReadyThreshold", NotBuilt, "all pods of the new version have to be ready"),
    ("spec.analysis.primaryReadyThreshold", NotBuilt, "all pods of the stable version have to be ready"),
    ("spec.analysis.mirror", Imported, "expose.mirror"),
    ("spec.analysis.mirrorWeight", Imported, "expose.mirror"),
    ("spec.analysis.match", Imported, "expose.headers"),
    ("spec.analysis.sessionAffinity.cookieName", Imported, "traffic.sessionAffinity.cookie"),
    ("spec.analysis.sessionAffinity.maxAge", Imported, "traffic.sessionAffinity.maxAge"),
    ("spec.analysis.sessionAffinity.primaryCookieName", NotBuilt, PRIMARY_COOKIE),
    ("spec.analysis.sessionAffinity.domain", NotBuilt, AFFINITY),
    ("spec.analysis.sessionAffinity.path", NotBuilt, AFFINITY),
    ("spec.analysis.sessionAffinity.httpOnly", NotBuilt, AFFINITY),
    ("spec.analysis.sessionAffinity.secure", NotBuilt, AFFINITY),
    ("spec.analysis.sessionAffinity.partitioned", NotBuilt, AFFINITY),
    ("spec.analysis.sessionAffinity.sameSite", NotBuilt, AFFINITY),
    ("spec.analysis.metrics[].name", Imported, "the name of the check"),
    ("spec.analysis.metrics[].interval", Imported, "the range in the query"),
    ("spec.analysis.metrics[].threshold", Imported, "max of the check"),
    ("spec.analysis.metrics[].thresholdRange.min", Imported, "min of the check"),
    ("spec.analysis.metrics[].thresholdRange.max", Imported, "max of the check"),
    (
        "spec.analysis.metrics[].query",
        Imported,
        "the query of the check, which names the pods of the new version itself",
    ),
    ("spec.analysis.metrics[].templateRef.apiVersion", NotNeeded, "the name says it"),
    ("spec.analysis.metrics[].templateRef.kind", NotNeeded, "the name says it"),
    ("spec.analysis.metrics[].templateRef.name", Imported, "the query of the check"),
    ("spec.analysis.metrics[].templateRef.namespace", Imported, "the query of the check"),
    ("spec.analysis.metrics[].templateVariables", Imported, "the query of the check"),
    ("spec.analysis.alerts", NotBuilt, ALERTS),
    ("spec.analysis.webhooks[].name", Imported, "the name of the check and of its provider"),
    ("spec.analysis.webhooks[].type", Imported, "where the webhook stands"),
    (
        "spec.analysis.webhooks[].url",
        Differs,
        "spec.providers of the Installation. It is asked with another body, and answers with a verdict as \
      JSON; HTTP 200 alone says nothing (docs/checks.md)",
    ),
    ("spec.analysis.webhooks[].metadata", Imported, "the metadata of the webhook"),
    (
        "spec.analysis.webhooks[].timeout",
        DoneOtherwise,
        "an answer takes 10 s at most; what takes longer answers hold, and is asked again",
    ),
    ("spec.analysis.webhooks[].retries", DoneOtherwise, "no answer says nothing about the version, and is asked again"),
    ("spec.analysis.webhooks[].muteAlert", NotNeeded, "webhooks make no alerts"),
    (
        "spec.analysis.webhooks[].disableTLS",
        NotBuilt,
        "certificates are always verified: give the controller the authority that signed it",
    ),
];

/// A MetricTemplate.
pub(super) const METRIC_TEMPLATE: &[Row] = &[
    ("spec.provider.type", Imported, "prometheus of the check"),
    ("spec.provider.address", Imported, "spec.providers of the Installation"),
    ("spec.provider.secretRef", DoneOtherwise, "credentialsFile of the provider in the Installation"),
    ("spec.provider.headers", NotBuilt, "no headers are sent but those of credentialsFile"),
    (
        "spec.provider.region",
        NotBuilt,
        "providers other than Prometheus are not built; ask them by a webhook (docs/checks.md)",
    ),
    (
        "spec.provider.insecureSkipVerify",
        NotBuilt,
        "certificates are always verified: give the controller the authority that signed it",
    ),
    ("spec.query", Imported, "the query of each check that refers to it"),
];

/// An AlertProvider.
pub(super) const ALERT_PROVIDER: &[Row] = &[("spec", NotBuilt, ALERTS)];
