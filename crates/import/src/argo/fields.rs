//! Every field of the objects of Argo Rollouts (argoproj.io/v1alpha1), and what becomes of it. What is said here holds unless the
//! import says something else of a single field.

use crate::fields::Outcome::{DoneOtherwise, Imported, NotBuilt, NotNeeded};
use crate::fields::Row;

/// What is said of more than one field.
const OTHER_ROUTER: &str = "imported as gatewayAPI: a route of this kind is not built";
const SUBSETS: &str = "the versions differ by their Service: there are no subsets to name";
const CANARY_INGRESS: &str =
    "the canary Ingress of a run has the annotations of the Ingress itself, and those that split requests";
const DEPLOYMENT: &str = "the Deployment";
const SIZE: &str =
    "the new version has as many pods as its share of requests needs, and all of them before it gets all requests";
const LABELS: &str =
    "pods carry no labels by role but tidegate's own; the new version's are those of the Deployment NAME-canary";
const AFFINITY: &str = "pods are not kept apart by version; the Deployment's own affinity holds for both";
const KEPT: &str = "the record keeps what was measured";
pub(super) const PROVIDER: &str =
    "providers other than Prometheus are not built; ask them by a webhook (docs/checks.md)";
const AUTH: &str = "credentialsFile of the provider in the Installation";
const VERIFIED: &str = "certificates are always verified: give the controller the authority that signed it";

/// A Rollout.
pub(super) const ROLLOUT: &[Row] = &[
    ("spec.replicas", Imported, DEPLOYMENT),
    ("spec.selector", Imported, DEPLOYMENT),
    ("spec.template", Imported, DEPLOYMENT),
    ("spec.minReadySeconds", Imported, DEPLOYMENT),
    ("spec.revisionHistoryLimit", Imported, DEPLOYMENT),
    ("spec.workloadRef.apiVersion", NotNeeded, "the kind says it"),
    ("spec.workloadRef.kind", Imported, "spec.target.kind"),
    ("spec.workloadRef.name", Imported, "spec.target.name"),
    ("spec.workloadRef.scaleDown", NotNeeded, "the Deployment itself is the stable version, and keeps its size"),
    ("spec.paused", Imported, "spec.suspend"),
    ("spec.progressDeadlineSeconds", Imported, "spec.progressDeadline"),
    ("spec.progressDeadlineAbort", DoneOtherwise, "a version that is not ready in time always goes back"),
    ("spec.restartAt", DoneOtherwise, "pods are restarted by a change of the template in Git"),
    (
        "spec.rollbackWindow",
        DoneOtherwise,
        "rollback.window says for how long, not how many versions back: tidegate rollback",
    ),
    ("spec.analysis", NotNeeded, KEPT),
    (
        "spec.strategy.canary.canaryService",
        DoneOtherwise,
        "the new version's Service is a copy of the stable one, NAME-canary, and there during a run only",
    ),
    ("spec.strategy.canary.stableService", Imported, "spec.traffic: the Service"),
    ("spec.strategy.canary.steps[].setWeight", Imported, "a phase with that weight"),
    (
        "spec.strategy.canary.steps[].pause",
        Imported,
        "the soak of the phase; without a duration an approval before what comes next",
    ),
    ("spec.strategy.canary.steps[].setCanaryScale", DoneOtherwise, SIZE),
    ("spec.strategy.canary.steps[].setHeaderRoute.name", NotNeeded, "what lets requests in belongs to its phase"),
    ("spec.strategy.canary.steps[].setHeaderRoute.match", Imported, "expose.headers of a phase"),
    ("spec.strategy.canary.steps[].setMirrorRoute.name", NotNeeded, "what is mirrored belongs to its phase"),
    ("spec.strategy.canary.steps[].setMirrorRoute.match", NotBuilt, "all requests are mirrored, or a share of them"),
    ("spec.strategy.canary.steps[].setMirrorRoute.percentage", Imported, "expose.mirror of a phase"),
    (
        "spec.strategy.canary.steps[].analysis.templates[].templateName",
        Imported,
        "checks of the phase, which stays until they are through",
    ),
    ("spec.strategy.canary.steps[].analysis.templates[].clusterScope", Imported, "checks of the phase"),
    ("spec.strategy.canary.steps[].analysis.args[].name", Imported, "the query of the check"),
    ("spec.strategy.canary.steps[].analysis.args[].value", Imported, "the query of the check"),
    ("spec.strategy.canary.steps[].analysis.args[].valueFrom", Imported, "the query of the check"),
    (
        "spec.strategy.canary.steps[].analysis.dryRun",
        NotBuilt,
        "a check that judges nothing is not built: leave it out",
    ),
    ("spec.strategy.canary.steps[].analysis.measurementRetention", NotNeeded, KEPT),
    ("spec.strategy.canary.steps[].analysis.analysisRunMetadata", NotNeeded, "a check is no object in the cluster"),
    ("spec.strategy.canary.steps[].experiment", NotBuilt, "experiments beside a run are not built"),
    (
        "spec.strategy.canary.steps[].plugin",
        NotBuilt,
        "there are no plugins; a webhook may stand before a step (docs/checks.md)",
    ),
    ("spec.strategy.canary.analysis.templates[].templateName", Imported, "checks of the phases"),
    ("spec.strategy.canary.analysis.templates[].clusterScope", Imported, "checks of the phases"),
    ("spec.strategy.canary.analysis.args[].name", Imported, "the query of the check"),
    ("spec.strategy.canary.analysis.args[].value", Imported, "the query of the check"),
    ("spec.strategy.canary.analysis.args[].valueFrom", Imported, "the query of the check"),
    ("spec.strategy.canary.analysis.startingStep", Imported, "the first phase that has the checks"),
    ("spec.strategy.canary.analysis.dryRun", NotBuilt, "a check that judges nothing is not built: leave it out"),
    ("spec.strategy.canary.analysis.measurementRetention", NotNeeded, KEPT),
    ("spec.strategy.canary.analysis.analysisRunMetadata", NotNeeded, "a check is no object in the cluster"),
    ("spec.strategy.canary.maxSurge", DoneOtherwise, SIZE),
    ("spec.strategy.canary.maxUnavailable", DoneOtherwise, "stable keeps its size until the promotion"),
    ("spec.strategy.canary.minPodsPerReplicaSet", DoneOtherwise, SIZE),
    (
        "spec.strategy.canary.dynamicStableScale",
        NotBuilt,
        "stable keeps its size until the new version is promoted, so that going back is one write",
    ),
    ("spec.strategy.canary.replicaProgressThreshold", NotBuilt, "all pods of a step have to be ready"),
    ("spec.strategy.canary.scaleDownDelaySeconds", Imported, "promotion.bake: the old version stays at full size"),
    ("spec.strategy.canary.scaleDownDelayRevisionLimit", NotNeeded, "there are two versions at a time at the most"),
    (
        "spec.strategy.canary.abortScaleDownDelaySeconds",
        DoneOtherwise,
        "spec.traffic.drain says how long the new version stays for requests in flight",
    ),
    ("spec.strategy.canary.antiAffinity", NotBuilt, AFFINITY),
    ("spec.strategy.canary.canaryMetadata", NotBuilt, LABELS),
    ("spec.strategy.canary.stableMetadata", NotBuilt, LABELS),
    ("spec.strategy.canary.pingPong", NotNeeded, "stable keeps its Service"),
    ("spec.strategy.canary.trafficRouting.alb", NotBuilt, OTHER_ROUTER),
    ("spec.strategy.canary.trafficRouting.ambassador", NotBuilt, OTHER_ROUTER),
    ("spec.strategy.canary.trafficRouting.apisix", NotBuilt, OTHER_ROUTER),
    ("spec.strategy.canary.trafficRouting.appMesh", NotBuilt, OTHER_ROUTER),
    ("spec.strategy.canary.trafficRouting.istio.virtualService.name", Imported, "spec.traffic.istio"),
    (
        "spec.strategy.canary.trafficRouting.istio.virtualService.routes",
        DoneOtherwise,
        "every HTTP route that sends to the Service is split",
    ),
    ("spec.strategy.canary.trafficRouting.istio.virtualService.tlsRoutes", NotBuilt, "no phase splits connections"),
    ("spec.strategy.canary.trafficRouting.istio.virtualService.tcpRoutes", NotBuilt, "no phase splits connections"),
    ("spec.strategy.canary.trafficRouting.istio.virtualServices", Imported, "spec.traffic.istio"),
    ("spec.strategy.canary.trafficRouting.istio.destinationRule", DoneOtherwise, SUBSETS),
    (
        "spec.strategy.canary.trafficRouting.nginx.annotationPrefix",
        NotBuilt,
        "annotations of another prefix than nginx.ingress.kubernetes.io are not written",
    ),
    ("spec.strategy.canary.trafficRouting.nginx.stableIngress", Imported, "spec.traffic.nginx"),
    ("spec.strategy.canary.trafficRouting.nginx.stableIngresses", Imported, "spec.traffic.nginx"),
    ("spec.strategy.canary.trafficRouting.nginx.additionalIngressAnnotations", DoneOtherwise, CANARY_INGRESS),
    ("spec.strategy.canary.trafficRouting.nginx.canaryIngressAnnotations", DoneOtherwise, CANARY_INGRESS),
    ("spec.strategy.canary.trafficRouting.smi", NotBuilt, OTHER_ROUTER),
    ("spec.strategy.canary.trafficRouting.traefik.weightedTraefikServiceName", Imported, "spec.traffic.traefik"),
    ("spec.strategy.canary.trafficRouting.plugins", NotBuilt, "of plugins only that for the Gateway API is imported"),
    (
        "spec.strategy.canary.trafficRouting.managedRoutes",
        NotNeeded,
        "the HTTPRoute's rules are the rollout's as a whole",
    ),
    ("spec.strategy.canary.trafficRouting.maxTrafficWeight", NotNeeded, "weights are percent"),
    ("spec.strategy.blueGreen.activeService", Imported, "spec.traffic.service"),
    (
        "spec.strategy.blueGreen.previewService",
        DoneOtherwise,
        "the preview stands behind NAME-canary, a copy of the active Service, during a run only",
    ),
    ("spec.strategy.blueGreen.previewReplicaCount", DoneOtherwise, "a preview has as many pods as the stable version"),
    ("spec.strategy.blueGreen.previewMetadata", NotBuilt, LABELS),
    ("spec.strategy.blueGreen.activeMetadata", NotBuilt, LABELS),
    ("spec.strategy.blueGreen.autoPromotionEnabled", Imported, "promotion.before.approval"),
    ("spec.strategy.blueGreen.autoPromotionSeconds", Imported, "the soak of the preview"),
    ("spec.strategy.blueGreen.maxUnavailable", DoneOtherwise, "stable keeps its size until the promotion"),
    ("spec.strategy.blueGreen.scaleDownDelaySeconds", Imported, "promotion.bake: the old version stays at full size"),
    ("spec.strategy.blueGreen.scaleDownDelayRevisionLimit", NotNeeded, "there are two versions at a time at the most"),
    (
        "spec.strategy.blueGreen.abortScaleDownDelaySeconds",
        DoneOtherwise,
        "spec.traffic.drain says how long the new version stays for requests in flight",
    ),
    ("spec.strategy.blueGreen.antiAffinity", NotBuilt, AFFINITY),
    ("spec.strategy.blueGreen.prePromotionAnalysis.templates[].templateName", Imported, "checks of the preview"),
    ("spec.strategy.blueGreen.prePromotionAnalysis.templates[].clusterScope", Imported, "checks of the preview"),
    ("spec.strategy.blueGreen.prePromotionAnalysis.args[].name", Imported, "the query of the check"),
    ("spec.strategy.blueGreen.prePromotionAnalysis.args[].value", Imported, "the query of the check"),
    ("spec.strategy.blueGreen.prePromotionAnalysis.args[].valueFrom", Imported, "the query of the check"),
    (
        "spec.strategy.blueGreen.prePromotionAnalysis.dryRun",
        NotBuilt,
        "a check that judges nothing is not built: leave it out",
    ),
    ("spec.strategy.blueGreen.prePromotionAnalysis.measurementRetention", NotNeeded, KEPT),
    (
        "spec.strategy.blueGreen.prePromotionAnalysis.analysisRunMetadata",
        NotNeeded,
        "a check is no object in the cluster",
    ),
    ("spec.strategy.blueGreen.postPromotionAnalysis.templates[].templateName", Imported, "promotion.checks"),
    ("spec.strategy.blueGreen.postPromotionAnalysis.templates[].clusterScope", Imported, "promotion.checks"),
    ("spec.strategy.blueGreen.postPromotionAnalysis.args[].name", Imported, "the query of the check"),
    ("spec.strategy.blueGreen.postPromotionAnalysis.args[].value", Imported, "the query of the check"),
    ("spec.strategy.blueGreen.postPromotionAnalysis.args[].valueFrom", Imported, "the query of the check"),
    (
        "spec.strategy.blueGreen.postPromotionAnalysis.dryRun",
        NotBuilt,
        "a check that judges nothing is not built: leave it out",
    ),
    ("spec.strategy.blueGreen.postPromotionAnalysis.measurementRetention", NotNeeded, KEPT),
    (
        "spec.strategy.blueGreen.postPromotionAnalysis.analysisRunMetadata",
        NotNeeded,
        "a check is no object in the cluster",
    ),
];

/// An AnalysisTemplate or a ClusterAnalysisTemplate.
pub(super) const TEMPLATE: &[Row] = &[
    ("spec.args[].name", Imported, "the query of each check"),
    ("spec.args[].value", Imported, "the query of each check, where the rollout says nothing else"),
    ("spec.args[].valueFrom", NotBuilt, "a query holds no secrets"),
    ("spec.dryRun", NotBuilt, "a check that judges nothing is not built: leave it out"),
    ("spec.measurementRetention", NotNeeded, KEPT),
    ("spec.templates[].templateName", Imported, "checks of their own"),
    ("spec.templates[].clusterScope", Imported, "checks of their own"),
    ("spec.metrics[].name", Imported, "the name of the check"),
    ("spec.metrics[].interval", Imported, "interval of the check"),
    ("spec.metrics[].initialDelay", DoneOtherwise, "the first value is taken one interval after the step is in force"),
    ("spec.metrics[].count", Imported, "minSamples of the check, and the soak that they need"),
    ("spec.metrics[].successCondition", Imported, "min and max of the check"),
    ("spec.metrics[].failureCondition", Imported, "min and max of the check"),
    ("spec.metrics[].failureLimit", Imported, "failureLimit of the check"),
    (
        "spec.metrics[].inconclusiveLimit",
        DoneOtherwise,
        "what cannot be told holds the run until a person says otherwise",
    ),
    (
        "spec.metrics[].consecutiveErrorLimit",
        DoneOtherwise,
        "a provider that is away speaks against no version: the run holds",
    ),
    ("spec.metrics[].consecutiveSuccessLimit", NotBuilt, "all values of a step are judged, not the last ones"),
    ("spec.metrics[].provider.prometheus.address", Imported, "spec.providers of the Installation"),
    (
        "spec.metrics[].provider.prometheus.query",
        Imported,
        "the query of the check, which names the pods of the new version itself",
    ),
    ("spec.metrics[].provider.prometheus.authentication", DoneOtherwise, AUTH),
    ("spec.metrics[].provider.prometheus.headers", NotBuilt, "no headers are sent but those of credentialsFile"),
    ("spec.metrics[].provider.prometheus.insecure", NotBuilt, VERIFIED),
    (
        "spec.metrics[].provider.prometheus.timeout",
        DoneOtherwise,
        "an answer takes 10 s at most; none says nothing, and is asked again",
    ),
    (
        "spec.metrics[].provider.prometheus.rangeQuery",
        DoneOtherwise,
        "every query is asked over the whole time that the step is in force",
    ),
    (
        "spec.metrics[].provider.web",
        NotBuilt,
        "a webhook here says itself what is good (docs/checks.md); an address with a jsonPath is not asked",
    ),
    (
        "spec.metrics[].provider.job",
        NotBuilt,
        "a Job may stand before a step: put its spec into a file and name it there, before: {job: FILE} (docs/checks.md)",
    ),
    ("spec.metrics[].provider.kayenta", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.datadog", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.wavefront", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.newRelic", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.cloudWatch", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.graphite", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.influxdb", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.skywalking", NotBuilt, PROVIDER),
    ("spec.metrics[].provider.plugin", NotBuilt, PROVIDER),
];
